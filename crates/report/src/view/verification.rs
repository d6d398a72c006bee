//! A verification: the verdict, each damage with its place, and notes on the numbers.

use model::job::Kind;
use model::machine::Place;
use model::units::{MIB, show_bytes, show_count, show_counted};
use model::verification::{FROM_DEVICE, Failed, LISTED, ReadBack, Verdict, Verifications, Verified};
use std::fmt::Write as _;
use std::time::Duration;

/// Returns the verdict on all hosts, the hosts that decided it, and the amount of data that it covers.
pub(crate) fn verdict_on_all_hosts(all: &Verifications) -> String {
    let (verdict, hosts) = (all.verdict(), all.hosts.len());
    let on = match verdict {
        Verdict::Verified => format!("on {hosts} hosts"),
        Verdict::Damaged | Verdict::Interrupted => {
            let named = all.named(verdict);
            format!("on {} of {hosts} hosts ({})", named.len(), named.join(", "))
        }
    };
    let sum = |amount: fn(&Verified) -> u64| all.known().map(amount).sum::<u64>();
    let damaged = match sum(Verified::damaged) {
        0 => String::new(),
        n => format!("{} damaged, ", show_counted(n, "block")),
    };
    let written = match sum(|v| v.written.as_ref().map_or(0, |_| v.bytes_of(v.writer_progress.begun))) {
        0 => String::new(),
        n => format!("{} written and ", show_bytes(n)),
    };
    let read = sum(|v| v.read.as_ref().map_or(0, |(r, _)| v.bytes_of(r.blocks)));
    format!("{} {on}, {damaged}{written}{} read back", verdict.word(), show_bytes(read))
}

/// Returns the recorded damage and failures, and how many more there are.
pub(crate) fn damage_items(verified: &Verified) -> Vec<String> {
    let (blocks, mut lines): (Vec<u64>, Vec<String>) =
        damage_lines(verified).into_iter().take(LISTED).unzip();
    let more = (verified.damaged() + verified.failed_writes()).saturating_sub(blocks.iter().sum());
    if more > 0 {
        lines.push(format!("and {} more", show_count(more as f64)));
    }
    lines
}

/// Returns the verdict, the amount of data that it covers, and the layers of the target.
pub(crate) fn verification_headline(verified: &Verified) -> String {
    let request = &verified.verification;
    let blocks = show_count(request.blocks as f64);
    let size = show_bytes(u64::from(request.block_bytes));
    let mut out = verified.verdict().word().to_owned();
    let _ = match verified.verdict() {
        Verdict::Verified => {
            let read = verified.read.as_ref().map_or(0, |(r, _)| r.must);
            write!(out, " {} of {size}", show_counted(read, "block"))
        }
        Verdict::Damaged => {
            let damaged = show_count(verified.damaged() as f64);
            match &verified.read {
                Some((r, _)) if r.interrupted => write!(
                    out,
                    " {damaged} of the {} blocks of {size} that were read back before an interruption",
                    show_count(r.blocks as f64)
                ),
                _ => write!(out, " {damaged} of {blocks} blocks of {size}"),
            }
        }
        Verdict::Interrupted => match &verified.read {
            Some((r, _)) => write!(
                out,
                " after {} of {blocks} blocks of {size} were read back, none of them damaged",
                show_count(r.blocks as f64)
            ),
            None => write!(
                out,
                " after {} of {} writes of {size}, and nothing was read back",
                show_count(verified.writer_progress.begun as f64),
                show_count(request.writes() as f64)
            ),
        },
    };
    let mut parts = Vec::new();
    let is_elsewhere = verified.place.ram.is_none() && !verified.source.starts_with(FROM_DEVICE);
    if verified.verdict() == Verdict::Verified && is_elsewhere {
        parts.push("not proven to be on the device".into());
    }
    match verified.failed_writes() {
        0 => {}
        1 => parts.push("1 write or sync failed".into()),
        n => parts.push(format!("{} writes or syncs failed", show_count(n as f64))),
    }
    parts.push(show_counted(request.passes.into(), "pass"));
    parts.push(match (&verified.written, &verified.read) {
        (Some(_), Some((r, _))) => format!(
            "{} written and {} read back",
            show_bytes(verified.bytes_of(verified.writer_progress.begun)),
            show_bytes(verified.bytes_of(r.blocks))
        ),
        (Some(_), None) => {
            format!("{} written", show_bytes(verified.bytes_of(verified.writer_progress.begun)))
        }
        (None, read) => format!(
            "{} of {} writes known to be stable, {} read back",
            show_count(verified.writer_progress.synced as f64),
            show_count(request.writes() as f64),
            show_bytes(verified.bytes_of(read.as_ref().map_or(0, |(r, _)| r.blocks)))
        ),
    });
    parts.push(describe_place(&verified.place));
    out + ", " + &parts.join(", ")
}

/// Names the file system, the topmost and the lowest devices below it, and the drivers: `ext4 on
/// vda1 on vda (virtio_blk)`.
fn describe_place(place: &Place) -> String {
    let tops: Vec<&str> =
        place.tops.iter().filter_map(|t| Some(place.layers.get(*t)?.name.as_str())).collect();
    let leaves: Vec<&str> = place.lowest_layers().map(|l| l.name.as_str()).collect();
    let drivers: Vec<&str> = place.lowest_layers().filter_map(|l| l.driver.as_deref()).collect();
    let on = if place.file_system.is_some() { " on " } else { " " };
    let mut out = place.kind().to_owned();
    if !tops.is_empty() {
        out += on;
        out += &tops.join(" and ");
    }
    if leaves != tops && !leaves.is_empty() {
        out += " on ";
        out += &leaves.join(" and ");
    }
    if !drivers.is_empty() {
        out += &format!(" ({})", drivers.join(", "));
    }
    out
}

/// Returns a line for each recorded damage and failure, and one for all lost blocks: failed writes first, then lost blocks, then the rest
/// by offset. Each has the number of blocks or failures that it covers.
fn damage_lines(verified: &Verified) -> Vec<(u64, String)> {
    let written = verified.written.iter().flat_map(|(w, _)| &w.failures.first);
    let mut lines: Vec<(u64, String)> = written.map(|f| (1, describe_failure(verified, f))).collect();
    lines.extend(verified.read.as_ref().and_then(|(read, _)| read.lost).map(|lost| {
        let line = format!(
            "bytes {} to {} ({}) are lost: {} ends at {0}",
            lost.from_bytes,
            lost.to_bytes,
            show_bytes(lost.to_bytes.saturating_sub(lost.from_bytes)),
            verified.target
        );
        (lost.blocks, line)
    }));
    let mut read: Vec<(u64, String)> = Vec::new();
    if let Some((r, _)) = &verified.read {
        read.extend(r.damage.iter().map(|(offset, d)| (*offset, format!("offset {offset}: {d}"))));
        read.extend(r.failures.first.iter().map(|f| (f.at, describe_failure(verified, f))));
    }
    read.sort();
    lines.extend(read.into_iter().map(|(_, line)| (1, line)));
    lines
}

/// Returns the rates; `None` if no data was moved.
pub(crate) fn verification_rates(verified: &Verified) -> Option<String> {
    let rate = |blocks: u64, took: &Duration| {
        let rate = verified.bytes_of(blocks) as f64 / took.as_secs_f64().max(1e-9);
        format!("{:.0} MB/s ({:.0} MiB/s)", rate / 1e6, rate / MIB as f64)
    };
    let written = verified
        .written
        .as_ref()
        .map(|(_, t)| format!("written at {}", rate(verified.writer_progress.begun, t)));
    let read = verified.read.as_ref().map(|(r, t)| format!("read back at {}", rate(r.blocks, t)));
    let rates: Vec<String> = written.into_iter().chain(read).collect();
    let work = if verified.written.is_some() { "stamping, syncs and checking" } else { "checking" };
    let text = format!("{}; not a benchmark, since the time includes {work}.", rates.join(", "));
    (!rates.is_empty()).then_some(text)
}

/// Describes a failure in a sentence.
pub(crate) fn describe_failure(verified: &Verified, failed: &Failed) -> String {
    let Failed { kind, at, result } = *failed;
    let what = match kind {
        Kind::Sync => format!("sync after write {at}"),
        _ => format!("offset {at}: {}", kind.word()),
    };
    if result < 0 {
        let error = std::io::Error::from_raw_os_error(result.saturating_neg());
        return format!("{what} failed: {error}");
    }
    format!("{what} moved {result} of {} bytes", verified.verification.block_bytes)
}

/// Returns notes: where the data was read from, which blocks were not read or were allowed to
/// differ, and how to check the data again.
pub(crate) fn verification_notes(verified: &Verified) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((read, _)) = &verified.read {
        let whose =
            verified.read_of.as_ref().map_or(String::new(), |host| format!("the data of {host} was "));
        notes.push(format!("{whose}read back from {}", verified.source));
        notes.extend(read_notes(read));
    }
    if let Some(state) = &verified.state {
        let target = &verified.target;
        notes.push(format!(
            "the expected data is recorded in {state}; `fathom verify --check {state} {target}` checks it again"
        ));
    }
    notes.extend(verified.notes.iter().map(|n| n.trim_end_matches('.').to_owned()));
    notes
}

/// Returns the notes and the rates as sentences.
pub(crate) fn verification_remarks(verified: &Verified) -> Vec<String> {
    let notes = verification_notes(verified).into_iter().map(|note| format!("{note}."));
    notes.chain(verification_rates(verified)).collect()
}

fn read_notes(read: &ReadBack) -> Vec<String> {
    let mut notes = Vec::new();
    let count = |n: u64| show_count(n as f64);
    if read.unwritten > 0 {
        notes.push(format!(
            "blocks that were not read because they were never written: {}",
            count(read.unwritten)
        ));
    }
    if read.newer > 0 {
        notes.push(format!(
            "blocks with data newer than the last known sync, which is allowed but not guaranteed: {}",
            count(read.newer)
        ));
    }
    if read.partials > 0 {
        let places: Vec<String> = read.partial.iter().map(u64::to_string).collect();
        let more = if read.partials > places.len() as u64 { " and more" } else { "" };
        notes.push(format!(
            "blocks torn by a write that was in flight after the last known sync, which is allowed: \
             {}, at offsets {}{more}",
            count(read.partials),
            places.join(" ")
        ));
    }
    notes
}

#[test]
fn damage_before_an_interruption_is_damage() {
    let verification = model::verification::Verification {
        id: 1,
        seed: 2,
        offset_bytes: 0,
        block_bytes: 4096,
        blocks: 500,
        passes: 1,
        sync_every: 10,
    };
    let mut unreadable = model::verification::Failures::default();
    unreadable.add(Kind::Read, 4096, -5);
    let outcome = |damaged, failures, interrupted| Verified {
        verification,
        writer_progress: verification.progress_after(500),
        target: "/file".into(),
        place: Place::default(),
        written: None,
        read: Some((
            ReadBack { blocks: 300, must: 300, damaged, failures, interrupted, ..ReadBack::default() },
            Duration::from_secs(1),
        )),
        source: String::new(),
        notes: Vec::new(),
        state: None,
        read_of: None,
    };
    let none = model::verification::Failures::default;
    let headline = verification_headline;
    let damaged = outcome(2, none(), true);
    assert!(
        headline(&damaged)
            .starts_with("DAMAGED 2 of the 300 blocks of 4 KiB that were read back before an interruption, "),
        "{}",
        headline(&damaged)
    );
    // A block that could not be read is damage too.
    assert_eq!(outcome(0, unreadable, true).verdict(), Verdict::Damaged);
    let interrupted = outcome(0, none(), true);
    assert!(
        headline(&interrupted).starts_with(
            "INTERRUPTED after 300 of 500 blocks of 4 KiB were read back, none of them damaged, "
        ),
        "{}",
        headline(&interrupted)
    );
    assert!(headline(&outcome(2, none(), false)).starts_with("DAMAGED 2 of 500 blocks of 4 KiB, "));
}
