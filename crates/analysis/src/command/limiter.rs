//! What a command waited for.
//!
//! The first of these that its figures support: a throttle; a CPU, or the page cache that it copied from or to; its own syncs; the device,
//! busy with several requests or with one at a time; the other end of a pipe or a terminal. If none does, the shares are given.

use super::figures;
use crate::checks::hard_limits;
use model::command::{CommandRun, DeviceUse, Stream};
use model::evidence::Moment;
use model::job::Kind;
use model::kernel_files::LIMITS;
use model::limiter::Limiter;
use model::record::{CommandRecord, Record};
use model::study::Study;
use model::units::{show_ns, show_rate, show_share};

/// Share of one CPU from which a command waits for nothing else.
const CPU_BOUND: f64 = 0.9;
/// Share of the time in which a device has requests in flight, from which it sets the pace.
const DEVICE_BUSY: f64 = 0.75;
/// Mean depth up to which a device gets one request at a time.
const ONE_AT_A_TIME: f64 = 1.25;
/// Share of the time spent in syncs from which these set the pace.
const SYNC_BOUND: f64 = 0.5;
/// CPU and device share below which a command waits for something else.
const IDLE: f64 = 0.5;
/// Share of the time from which a device takes turns with a CPU.
const BY_TURNS: f64 = 0.2;
/// Bytes through a standard stream from which its other end can set the pace.
const STREAM_BYTES: u64 = 1 << 20;
/// Share of the bytes from which the page cache took part in all of it.
const NEARLY: f64 = 0.95;
/// The kernel counts CPU time in steps of a scheduler tick at most: 4 ms.
const LEAST_CPU_SECONDS: f64 = 0.02;
/// The kernel counts how long devices are busy in ms.
const LEAST_SECONDS: f64 = 0.05;

pub(super) fn command_limiter(record: &Record, run: &CommandRun, seen: &CommandRecord) -> Limiter {
    let cpu = (run.user_seconds + run.system_seconds) / run.seconds.max(1e-9);
    let busiest = run.devices.iter().flatten().max_by(|a, b| a.busy_share.total_cmp(&b.busy_share));
    let busy = busiest.map_or(0.0, |device| device.busy_share);
    let depth = busiest.map_or(0.0, |device| device.mean_depth);
    let syncing = run.syncs.as_ref().map_or(0.0, |syncs| syncs.total_ns as f64 / 1e9 / run.seconds.max(1e-9));
    let evidence =
        [("cpu_share", cpu), ("device_busy_share", busy), ("device_depth", depth), ("sync_share", syncing)];
    let of = |name: &str, sentence: String| Limiter {
        name: name.into(),
        sentence,
        evidence: evidence.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    };
    if run.seconds < LEAST_CPU_SECONDS {
        return of(
            "unknown",
            format!("it took less than {}: too short to tell", show_ns(LEAST_CPU_SECONDS * 1e9)),
        );
    }
    if let Some(limit) = throttle(record, run, seen) {
        return of("throttle", format!("a cgroup limits {limit}"));
    }
    if cpu >= CPU_BOUND {
        let system = show_share(run.system_seconds / (run.user_seconds + run.system_seconds).max(1e-9));
        if let Some(copying) = page_cache_copy(run) {
            return of(
                "page cache",
                format!("{copying} kept a CPU busy {}{}", show_share(cpu), small_calls(run)),
            );
        }
        return of(
            "CPU",
            format!("busy {}, {system} of that in the kernel{}", show_share(cpu), small_calls(run)),
        );
    }
    if run.seconds < LEAST_SECONDS {
        return of(
            "unknown",
            format!("it took less than {}: too short to tell", show_ns(LEAST_SECONDS * 1e9)),
        );
    }
    if syncing >= SYNC_BOUND {
        return of(
            "syncs",
            format!("it waited in its own syncs for {} of the time", show_share(syncing.min(1.0))),
        );
    }
    match busiest {
        Some(device) if busy >= DEVICE_BUSY && depth <= ONE_AT_A_TIME => {
            return of("one request at a time", one_at_a_time(device, run));
        }
        Some(device) if busy >= DEVICE_BUSY => {
            return of(
                "device",
                format!("{} was busy {} of the time, {depth:.1} in flight", device.name, show_share(busy)),
            );
        }
        _ => {}
    }
    let moves = run.moved.as_ref().is_ok_and(|moved| {
        let at_device = moved.fetched_bytes + run.written_at_end_bytes.as_ref().unwrap_or(&0);
        at_device as f64
            >= BY_TURNS * (moved.read_call_bytes.max(moved.fetched_bytes) + moved.dirtied_bytes) as f64
    });
    if moves && busy >= BY_TURNS && depth <= ONE_AT_A_TIME && cpu + busy >= CPU_BOUND {
        return of(
            "one request at a time",
            format!("a CPU ({}) and the device ({}) by turns", show_share(cpu), show_share(busy)),
        );
    }
    let shares = format!("a CPU was busy {} of the time, a disk {}", show_share(cpu), show_share(busy));
    let other_end = other_end(record, run, seen);
    match other_end {
        Some((name, other_end)) if busy < IDLE => {
            of(name, format!("it waited for {other_end}; CPU {}", show_share(cpu)))
        }
        _ if cpu >= IDLE || busy >= IDLE => of("several", shares),
        _ => of("none of these", format!("{shares}: it slept or waited for something else")),
    }
}

/// What is at the other end of a standard stream, if data went through it and nowhere else: an idle pipe is no reason to wait.
fn other_end(
    record: &Record,
    run: &CommandRun,
    seen: &CommandRecord,
) -> Option<(&'static str, &'static str)> {
    let moved = run.moved.as_ref().ok()?;
    let is_apart = match &seen.end.traced {
        Ok(traced) => traced.started <= 1 || traced.pipes == 0,
        Err(_) => seen.end.single_process == Ok(true),
    };
    if !is_apart {
        return None;
    }
    let reads_files = run.named.iter().any(|one| one.before.as_ref().map_or(true, |before| before.bytes > 0));
    let Study::Commands(study) = &record.header.plan.study else { return None };
    let args = &study.commands.get(seen.run.start.job)?.args;
    let writes_elsewhere =
        args.iter().any(|arg| arg.contains("/dev/null")) || run.named.iter().any(|one| one.memory.is_some());
    let out = moved.write_call_bytes.saturating_sub(moved.dirtied_bytes);
    let into = moved.read_call_bytes.saturating_sub(moved.fetched_bytes);
    match (seen.end.stdin, seen.end.stdout) {
        (Stream::Pipe, _) if into > STREAM_BYTES && !reads_files => {
            Some(("the other end of a pipe", "what writes its input"))
        }
        (_, Stream::Pipe) if out > STREAM_BYTES && !writes_elsewhere => {
            Some(("the other end of a pipe", "what reads its output"))
        }
        (_, Stream::Terminal) if out > STREAM_BYTES && !writes_elsewhere => {
            Some(("terminal", "the terminal, which shows its output"))
        }
        _ => None,
    }
}

/// What a command did that only copied from or to the page cache.
fn page_cache_copy(run: &CommandRun) -> Option<&'static str> {
    let moved = run.moved.as_ref().ok()?;
    let is_most = |part: u64, of: u64| of > 1 << 20 && part as f64 >= NEARLY * of as f64;
    if is_most(*run.cached_read_bytes.as_ref().unwrap_or(&0), moved.read_call_bytes) {
        return Some("copying from it");
    }
    let dirty = *run.dirty_at_end_bytes.as_ref().unwrap_or(&0);
    is_most(dirty, moved.dirtied_bytes).then_some("copying to it")
}

/// What calls of a few hundred bytes cost.
fn small_calls(run: &CommandRun) -> String {
    let smallest = [run.interface.read_call_bytes, run.interface.write_call_bytes]
        .into_iter()
        .flatten()
        .fold(f64::INFINITY, f64::min);
    let calls = run.moved.as_ref().map_or(0, |m| m.read_calls + m.write_calls);
    if calls >= 10_000 && smallest <= 16_384.0 {
        format!(
            "; its {} calls moved {} bytes each",
            model::units::show_count(calls as f64),
            show_rate(smallest)
        )
    } else {
        String::new()
    }
}

fn one_at_a_time(device: &DeviceUse, run: &CommandRun) -> String {
    let requests = device.read_requests + device.write_requests;
    let each = show_ns(run.seconds * 1e9 * device.busy_share / requests.max(1) as f64);
    format!("{} got one request at a time, {each} each", device.name)
}

/// The limit that the rate of a device is at, in words.
fn throttle(record: &Record, run: &CommandRun, seen: &CommandRecord) -> Option<String> {
    let start = seen.run.evidence.iter().find(|snapshot| snapshot.moment == Moment::Start)?;
    let text = start.text(LIMITS).ok()?;
    let machine = record.header.hosts.first();
    let places = machine.into_iter().flat_map(|machine| &machine.places);
    let layers: Vec<_> = places.flat_map(|place| &place.layers).collect();
    for number in figures::numbers(machine) {
        let name = layers.iter().find(|layer| layer.number == number).map(|layer| &layer.name)?;
        let Some(device) = run.devices.iter().flatten().find(|device| device.name == *name) else { continue };
        for limit in hard_limits(text, &number) {
            let amount = match (limit.kind, limit.of) {
                (Kind::Read, crate::checks::Of::Bytes) => device.read_bytes,
                (Kind::Read, crate::checks::Of::Operations) => device.read_requests,
                (_, crate::checks::Of::Bytes) => device.written_bytes,
                (_, crate::checks::Of::Operations) => device.write_requests,
            };
            if limit.is_reached_by(amount as f64 / run.seconds.max(1e-9), run.seconds * 1e9) {
                return Some(limit.describe());
            }
        }
    }
    None
}
