//! Showing what came of a verification: the verdict first, then every damage with its place, as text or JSON.
//!
//! For: words, numbers and the exit code. Not for: finding anything out.

use crate::failure::Failure;
use crate::live::Live;
use crate::signals::INTERRUPTED;
use crate::stdout;
use engine::verifier::{Ending, Failed, Failures, LISTED, ReadBack, Written};
use model::job::Kind;
use model::machine::Place;
use model::units::{MIB, show_bytes, show_count};
use model::verification::{Mark, Verification};
use model::visible::visible;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Everything that is known at the end.
pub(super) struct Outcome {
    pub(super) verification: Verification,
    pub(super) mark: Mark,
    pub(super) target: String,
    pub(super) place: Place,
    /// What was written and how long that took; `None` for a check.
    pub(super) written: Option<(Written, Duration)>,
    /// What was read back and how long that took; `None` where the writing was interrupted.
    pub(super) read: Option<(ReadBack, Duration)>,
    /// Where the reads came from, in words.
    pub(super) source: String,
    pub(super) notes: Vec<String>,
    /// Where the state is kept.
    pub(super) state: Option<PathBuf>,
}

/// The first word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Verified,
    Damaged,
    Interrupted,
}

/// Begins a step that nobody can tell the length of.
pub(super) fn step(live: &Live, words: &str) {
    match live {
        Live::Bar(bar) => {
            bar.set_position(0);
            bar.set_prefix("");
            bar.set_message(visible(words).into_owned());
        }
        Live::Lines | Live::Quiet => live.say(words),
    }
}

/// Prints the outcome and gives the exit code.
///
/// # Errors
/// Where it cannot be printed; the message then has the first words of the outcome.
pub(super) fn print(outcome: &Outcome, as_json: bool) -> Result<ExitCode, Failure> {
    let text = outcome.text();
    let printed = if as_json { stdout::json(format!("{:#}\n", outcome.json())) } else { stdout::text(&text) };
    // What was found out must not be lost with it.
    printed.map_err(|why| Failure::Refused(format!("{}; the outcome:\n{text}", why.words())))?;
    Ok(match outcome.verdict() {
        Verdict::Verified => ExitCode::SUCCESS,
        Verdict::Damaged => ExitCode::from(1),
        Verdict::Interrupted => ExitCode::from(INTERRUPTED),
    })
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Verified => "VERIFIED",
            Self::Damaged => "DAMAGED",
            Self::Interrupted => "INTERRUPTED",
        }
    }
}

impl Outcome {
    fn verdict(&self) -> Verdict {
        let stopped = self.read.as_ref().is_none_or(|(r, _)| r.interrupted);
        if stopped {
            return Verdict::Interrupted;
        }
        if self.damaged() == 0 && self.failed_writes() == 0 { Verdict::Verified } else { Verdict::Damaged }
    }

    /// Blocks that are not as they must be, or cannot be read.
    fn damaged(&self) -> u64 {
        self.read.as_ref().map_or(0, |(r, _)| r.damaged + all(&r.failures))
    }

    /// Writes and syncs that failed.
    fn failed_writes(&self) -> u64 {
        self.written.as_ref().map_or(0, |(w, _)| all(&w.failures))
    }

    fn bytes_of(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(u64::from(self.verification.block_bytes))
    }

    fn text(&self) -> String {
        let mut out = self.headline();
        let lines = self.troubles();
        for line in lines.iter().take(LISTED) {
            out += &format!("  {line}\n");
        }
        let more = (self.damaged() + self.failed_writes()).saturating_sub(lines.len().min(LISTED) as u64);
        if more > 0 {
            out += &format!("  and {} more\n", show_count(more as f64));
        }
        for note in self.all_notes() {
            out += &format!("  Note: {note}.\n");
        }
        let rates = self.rates();
        if !rates.is_empty() {
            out += &format!(
                "  {}; stamping, syncs and examining included: this is no benchmark.\n",
                rates.join(", ")
            );
        }
        out
    }

    fn headline(&self) -> String {
        let v = &self.verification;
        let blocks = show_count(v.blocks as f64);
        let size = show_bytes(u64::from(v.block_bytes));
        let mut out = self.verdict().word().to_owned();
        let _ = match self.verdict() {
            Verdict::Verified => {
                let read = self.read.as_ref().map_or(0, |(r, _)| r.must);
                write!(out, " {} blocks of {size}", show_count(read as f64))
            }
            Verdict::Damaged => {
                write!(out, " {} of {blocks} blocks of {size}", show_count(self.damaged() as f64))
            }
            Verdict::Interrupted => match &self.read {
                Some((r, _)) => write!(
                    out,
                    " after {} of {blocks} blocks of {size} were read back, {} of them damaged",
                    show_count(r.blocks as f64),
                    show_count(self.damaged() as f64)
                ),
                None => write!(
                    out,
                    " after {} of {} writes of {size}, and nothing was read back",
                    show_count(self.mark.begun as f64),
                    show_count(v.writes() as f64)
                ),
            },
        };
        let mut parts = Vec::new();
        match self.failed_writes() {
            0 => {}
            1 => parts.push("1 write or sync failed".into()),
            n => parts.push(format!("{} writes or syncs failed", show_count(n as f64))),
        }
        parts.push(match v.passes {
            1 => "1 pass".into(),
            n => format!("{} passes", show_count(f64::from(n))),
        });
        parts.push(match (&self.written, &self.read) {
            (Some(_), Some((r, _))) => format!(
                "{} written and {} read back",
                show_bytes(self.bytes_of(self.mark.begun)),
                show_bytes(self.bytes_of(r.blocks))
            ),
            (Some(_), None) => format!("{} written", show_bytes(self.bytes_of(self.mark.begun))),
            (None, read) => format!(
                "{} of {} writes known to be stable, {} read back",
                show_count(self.mark.synced as f64),
                show_count(v.writes() as f64),
                show_bytes(self.bytes_of(read.as_ref().map_or(0, |(r, _)| r.blocks)))
            ),
        });
        parts.push(self.place_words());
        out + ", " + &parts.join(", ") + "\n"
    }

    /// `ext4 on vda1 on vda (virtio_blk)`.
    fn place_words(&self) -> String {
        let place = &self.place;
        let tops: Vec<&str> =
            place.tops.iter().filter_map(|t| Some(place.layers.get(*t)?.name.as_str())).collect();
        let leaves: Vec<&str> = place.leaves().map(|l| l.name.as_str()).collect();
        let drivers: Vec<&str> = place.leaves().filter_map(|l| l.driver.as_deref()).collect();
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

    /// A line for each damage and failure, as far as they were kept: writing first, then by offset.
    fn troubles(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.written.iter().flat_map(|(w, _)| &w.failures.first).map(|f| self.failure(f)).collect();
        let mut read: Vec<(u64, String)> = Vec::new();
        if let Some((r, _)) = &self.read {
            read.extend(r.damage.iter().map(|(offset, d)| (*offset, format!("offset {offset}: {d}"))));
            read.extend(r.failures.first.iter().map(|f| (f.at, self.failure(f))));
        }
        read.sort();
        lines.extend(read.into_iter().map(|(_, line)| line));
        lines
    }

    fn failure(&self, failed: &Failed) -> String {
        let Failed { kind, at, result } = *failed;
        let what = match kind {
            Kind::Sync => format!("sync after write {at}"),
            _ => format!("offset {at}: {}", kind.word()),
        };
        if result < 0 {
            let error = std::io::Error::from_raw_os_error(result.saturating_neg());
            return format!("{what} failed: {error}");
        }
        format!("{what} moved {result} of {} bytes", self.verification.block_bytes)
    }

    fn all_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((read, _)) = &self.read {
            notes.push(format!("read back from {}", self.source));
            notes.extend(read_notes(read));
        }
        if let Some(state) = &self.state {
            let (state, target) = (state.display(), &self.target);
            notes.push(format!(
                "what must be there is kept in {state}; `fathom verify --check {state} {target}` asks for it again"
            ));
        }
        notes.extend(self.notes.iter().map(|n| n.trim_end_matches('.').to_owned()));
        notes
    }

    fn rates(&self) -> Vec<String> {
        let rate = |blocks: u64, took: &Duration| {
            let rate = self.bytes_of(blocks) as f64 / took.as_secs_f64().max(1e-9);
            format!("{:.0} MB/s ({:.0} MiB/s)", rate / 1e6, rate / MIB as f64)
        };
        let written = self.written.as_ref().map(|(_, t)| format!("written at {}", rate(self.mark.begun, t)));
        let read = self.read.as_ref().map(|(r, t)| format!("read back at {}", rate(r.blocks, t)));
        written.into_iter().chain(read).collect()
    }

    fn json(&self) -> Value {
        let v = &self.verification;
        let read = self.read.as_ref().map(|(r, _)| r);
        let damage: Vec<Value> =
            read.iter().flat_map(|r| &r.damage).map(|(o, d)| damage_json(*o, d)).collect();
        let failures = |f: &Failures| -> Vec<Value> {
            let of = f.counts.iter();
            of.map(|((kind, errno), n)| json!({ "kind": kind, "errno": errno, "count": n })).collect()
        };
        let first = |f: &Failures| -> Vec<Value> { f.first.iter().map(|f| self.failure(f).into()).collect() };
        json!({
            "fathom": { "format": 1, "version": env!("CARGO_PKG_VERSION") },
            "verdict": self.verdict().word(),
            "target": self.target,
            "place": self.place.chain(),
            "verification": {
                "id": format!("{:016x}", v.id),
                "seed": v.seed,
                "offset_bytes": v.offset_bytes,
                "block_bytes": v.block_bytes,
                "blocks": v.blocks,
                "passes": v.passes,
                "sync_every": v.sync_every,
                "synced": self.mark.synced,
                "begun": self.mark.begun,
            },
            "written": self.written.as_ref().map(|(w, took)| json!({
                "bytes": self.bytes_of(self.mark.begun),
                "seconds": took.as_secs_f64(),
                "ending": match w.ending {
                    Ending::Complete => "complete",
                    Ending::Time => "time",
                    Ending::Interrupted => "interrupted",
                    Ending::Failed => "failed",
                },
                "failures": failures(&w.failures),
                "first_failures": first(&w.failures),
            })),
            "read": self.read.as_ref().map(|(r, took)| json!({
                "from": self.source,
                "blocks": r.blocks,
                "bytes": self.bytes_of(r.blocks),
                "seconds": took.as_secs_f64(),
                "unwritten": r.unwritten,
                "newer_than_synced": r.newer,
                "torn_in_flight": r.partials,
                "torn_in_flight_offsets": r.partial,
                "failures": failures(&r.failures),
                "first_failures": first(&r.failures),
                "interrupted": r.interrupted,
            })),
            "damaged": self.damaged(),
            "damage": damage,
            "notes": self.all_notes(),
            "state": self.state.as_ref().map(|s| s.display().to_string()),
        })
    }
}

fn damage_json(offset: u64, damage: &model::stamp::Damage) -> Value {
    let mut value = json!({ "offset": offset, "sentence": damage.to_string() });
    if let (Value::Object(value), Ok(Value::Object(facts))) = (&mut value, serde_json::to_value(damage)) {
        value.extend(facts);
    }
    value
}

fn all(failures: &Failures) -> u64 {
    failures.counts.values().sum()
}

fn read_notes(read: &ReadBack) -> Vec<String> {
    let mut notes = Vec::new();
    let count = |n: u64| show_count(n as f64);
    if read.unwritten > 0 {
        notes.push(format!("blocks never written, and so not read: {}", count(read.unwritten)));
    }
    if read.newer > 0 {
        notes.push(format!(
            "blocks that hold the write after the last known sync, which may be there and may be lost: {}",
            count(read.newer)
        ));
    }
    if read.partials > 0 {
        let places: Vec<String> = read.partial.iter().map(u64::to_string).collect();
        let more = if read.partials > places.len() as u64 { " and more" } else { "" };
        notes.push(format!(
            "blocks torn between what was stable and the write after the last known sync, which was in flight and which \
             nobody promised whole: {}, at offsets {}{more}",
            count(read.partials),
            places.join(" ")
        ));
    }
    notes
}
