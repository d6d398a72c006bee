//! What a command did, in a sentence or two: the first line of the report.

use super::figures;
use model::command::{Command, CommandRun, Exit, FinalSync};
use model::record::CommandRecord;
use model::units::{show_bytes, show_ns, show_rate};

/// Bytes from which a direction is worth a sentence: any program reads its libraries.
const WORTH_BYTES: u64 = 1 << 20;
/// Bytes of a direction that are worth a sentence if the command moves less than [`WORTH_BYTES`] in both.
const WORTH_BYTES_OF_SMALL: u64 = 64 << 10;
/// Share of its reads from which all of them, or none, came from one place.
const NEARLY: f64 = 0.98;

pub(super) fn sentence(command: &Command, run: &CommandRun, seen: Option<&CommandRecord>) -> String {
    let program = command.program();
    let took = show_ns(run.seconds * 1e9);
    let ended = match run.exit {
        Exit::Code(0) => String::new(),
        Exit::Code(code) => format!(" and ended with exit code {code}"),
        Exit::Signal(signal) => format!(" and was ended by signal {signal}"),
    };
    let mut out: Vec<String> = Vec::new();
    let most = run.moved.as_ref().map_or(0, |m| m.read_call_bytes.max(m.fetched_bytes).max(m.dirtied_bytes));
    let worth = if most >= WORTH_BYTES { WORTH_BYTES } else { WORTH_BYTES_OF_SMALL };
    let read = describe_read(run, seen, worth);
    let wrote = describe_written(run, seen, worth);
    match (&read, &wrote) {
        (Some(read), Some(wrote)) => {
            out.push(format!("{program} read {read}."));
            out.push(format!("It wrote {wrote}."));
        }
        (Some(read), None) => out.push(format!("{program} read {read}.")),
        (None, Some(wrote)) => out.push(format!("{program} wrote {wrote}.")),
        (None, None) => match &run.moved {
            Ok(moved) if moved.read_call_bytes.max(moved.write_call_bytes) >= WORTH_BYTES => out.push(format!(
                "{program} took {took}{ended}. Its calls read {} and wrote {}; nothing was counted on storage.",
                amount_of(moved.read_call_bytes),
                amount_of(moved.write_call_bytes)
            )),
            Ok(_) => out.push(format!("{program} took {took} and moved next to no data{ended}.")),
            Err(why) => out.push(format!("{program} took {took}{ended}. What it moved is not known: {why}.")),
        },
    }
    if !ended.is_empty() && out.len() + usize::from(read.is_some()) > 1 {
        out.push(format!("It took {took}{ended}."));
    }
    out.join(" ")
}

/// `512 MiB in 840 ms; none of it came from vda: the page cache had all of it`.
fn describe_read(run: &CommandRun, seen: Option<&CommandRecord>, worth: u64) -> Option<String> {
    let moved = run.moved.as_ref().ok()?;
    let bytes = moved.read_call_bytes.max(moved.fetched_bytes);
    let is_made = seen.is_some_and(|seen| !seen.end.byte_sources.is_empty()) && moved.fetched_bytes < worth;
    if bytes < worth || is_made {
        return None;
    }
    let rate = show_rate(bytes as f64 / 1e6 / run.seconds.max(1e-9));
    let amount = format!("{} in {} ({rate} MB/s)", amount_of(bytes), show_ns(run.seconds * 1e9));
    let from = device_name(run, |device| device.read_bytes);
    let fetched = moved.fetched_bytes;
    let share = fetched as f64 / bytes as f64;
    let memory = run.named.iter().find_map(|one| one.memory.as_ref());
    Some(match &run.cached_read_bytes {
        Ok(_) if share <= 1.0 - NEARLY && memory.is_some() => {
            format!("{amount}; all of it is memory ({}): no disk was read", memory.map_or("", String::as_str))
        }
        Ok(cached) if share <= 1.0 - NEARLY => {
            format!("{amount}; none of it came from {from}: the page cache had {}", all_but(*cached, bytes))
        }
        Ok(_) if share >= NEARLY => format!("{amount}; all of it came from {from}"),
        Ok(cached) => format!(
            "{amount}; {} came from {from}, and the page cache had {}",
            amount_of(fetched),
            amount_of(*cached)
        ),
        // Mapped memory and asynchronous reads are not among the bytes of calls.
        Err(_) if fetched >= moved.read_call_bytes => format!("{amount}; all of it came from {from}"),
        // Its calls may have read pipes too.
        Err(_) if fetched < worth => format!("{amount} by calls; nothing came from {from}"),
        Err(_) => format!("{amount} by calls; {} came from {from}", amount_of(fetched)),
    })
}

fn all_but(cached: u64, bytes: u64) -> String {
    if cached as f64 >= NEARLY * bytes as f64 { "all of it".into() } else { amount_of(cached) }
}

/// `1 GiB in 410 ms (2,600 MB/s); 12 MiB had reached vda. Making the rest stable took another 3.20 s: 298 MB/s in all`.
fn describe_written(run: &CommandRun, seen: Option<&CommandRecord>, worth: u64) -> Option<String> {
    let moved = run.moved.as_ref().ok()?;
    let bytes = figures::written(seen?.end).ok()?;
    let memory = run.named.iter().find_map(|one| {
        let grew = one.after.as_ref().ok()?.bytes > one.before.as_ref().map_or(0, |before| before.bytes);
        one.memory.as_ref().filter(|_| grew)
    });
    let shown = if bytes < worth && memory.is_some() { moved.write_call_bytes } else { bytes };
    if shown < worth {
        return None;
    }
    let rate = show_rate(shown as f64 / 1e6 / run.seconds.max(1e-9));
    let amount = format!("{} in {} ({rate} MB/s)", amount_of(shown), show_ns(run.seconds * 1e9));
    // Pages are dirtied as a whole, also by calls of a few bytes.
    let calls = moved.write_call_bytes;
    let amount = if calls > 0 && calls < bytes / 2 {
        format!(
            "{} by calls, which dirtied {} of pages, in {}",
            amount_of(calls),
            amount_of(bytes),
            show_ns(run.seconds * 1e9)
        )
    } else {
        amount
    };
    if let Some(memory) = memory.filter(|_| bytes < worth) {
        return Some(format!("{amount} to memory ({memory}): no disk was written"));
    }
    let to = device_name(run, |device| device.written_bytes.max(device.synced_bytes));
    let reached = match (&run.written_at_end_bytes, &run.dirty_at_end_bytes) {
        (Ok(_), Ok(0)) => format!("all of it had reached {to}"),
        (Ok(0), _) => format!("none of it had reached {to}"),
        (Ok(reached), _) => format!("{} had reached {to}", amount_of(*reached)),
        (Err(why), _) => format!("how much had reached {to} is not known: {why}"),
    };
    let left = !matches!(run.dirty_at_end_bytes, Ok(0));
    let sync = match (&run.sync_seconds, &run.stable_mb_per_s) {
        (Ok(seconds), Ok(rate)) if left => format!(
            ". Making the rest stable took another {}: {} MB/s in all",
            show_ns(seconds * 1e9),
            show_rate(*rate)
        ),
        (Ok(seconds), Err(why)) if left && seen?.end.final_sync != FinalSync::NotNeeded => {
            format!(". The final sync took {}, and no rate follows from it: {why}", show_ns(seconds * 1e9))
        }
        (Err(why), _) if left => {
            format!(". How long it takes to make the rest stable was not measured: {why}")
        }
        _ => String::new(),
    };
    Some(format!("{amount}; {reached}{sync}"))
}

/// `512 MiB`, and `1.25 GiB`: no digits that say nothing.
fn amount_of(bytes: u64) -> String {
    show_bytes(bytes).replace(".00 ", " ")
}

/// The device that did the most, or `the disk`.
fn device_name(run: &CommandRun, bytes: impl Fn(&model::command::DeviceUse) -> u64) -> String {
    run.devices
        .iter()
        .flatten()
        .find(|device| bytes(device) > 0)
        .map_or_else(|| "the disk".into(), |device| device.name.clone())
}
