//! dd: a copy as dd makes it, dd's lines, and under them what the disk did meanwhile.
//!
//! For: the order of all that: open, look, copy, tell, make stable, tell. Not for: its operands (crate `dialect`), nor the steps
//! (`sides`, `copy`, `lines`, `meaning`).
//!
//! dd's time is the copy alone, with the sync that was asked for. What fathom looks at is looked at before and after it.

mod copy;
mod counts;
mod lines;
mod meaning;
mod sides;

use super::look::{Look, Subject, fetched_between, fetched_bytes};
use super::may_write::Allowed;
use super::words::{reason, say_ours};
use crate::stderr;
use copy::Copying;
use counts::{Counts, Totals};
use dialect::dd::{Conversion, Copy, Flag, Status};
use machine::root::Root;
use meaning::Facts;
use model::Known;
use sides::Side;
use signal_hook::consts::{SIGINT, SIGUSR1};
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How often progress is told.
const EVERY: Duration = Duration::from_secs(1);
/// What `--version` prints in its first line, as programs look for it.
pub const VERSION: &str = "dd (fathom, as of coreutils 9.1)";

/// What a copy is told from, by whichever thread.
#[derive(Debug)]
struct Progress {
    counts: Counts,
    began: Instant,
    status: Status,
    /// Whether a line of progress has to be ended first.
    in_line: AtomicBool,
    /// Whether the end was told: what is done then is fathom's, and not dd's.
    ended: AtomicBool,
}

impl Progress {
    fn tell(&self, seconds: f64) {
        if self.status == Status::None {
            return;
        }
        if self.in_line.swap(false, Ordering::Relaxed) {
            stderr::say("");
        }
        let totals = self.counts.totals();
        stderr::say(&lines::records(&totals));
        if self.status != Status::NoTransfer {
            stderr::say(&lines::transfer(totals.bytes, seconds, false));
        }
    }

    fn tell_now(&self) {
        self.tell(self.began.elapsed().as_secs_f64());
    }
}

/// Carries a copy out; the exit code is dd's.
pub fn dd(said: &Copy, allowed: &Allowed) -> ExitCode {
    let root = Root::real();
    let sides = sides::input(said).and_then(|input| Ok((input, sides::output(&root, said, allowed)?)));
    let (input, output) = match sides {
        Ok(sides) => sides,
        Err(line) => {
            stderr::say(&line);
            return ExitCode::FAILURE;
        }
    };
    let subjects = [&input, &output].map(|side| subject(&root, side));
    let before = Snapshot::look(&root, &subjects);
    let told = Arc::new(Progress {
        counts: Counts::default(),
        began: Instant::now(),
        status: said.status,
        in_line: AtomicBool::new(false),
        ended: AtomicBool::new(false),
    });
    let Some(copying) = Copying::new(said, &input, &output, &told.counts) else {
        stderr::say("dd: memory exhausted by the buffers of its blocks; type a smaller bs=");
        return ExitCode::FAILURE;
    };
    if let Err(e) = watch_signals(&told) {
        stderr::say(&format!("fathom: signals cannot be watched: {}", reason(&e)));
        return ExitCode::FAILURE;
    }
    let progress = (said.status == Status::Progress).then(|| show_progress(&told));
    // dd is one thread, for which the kernel looks descriptors up without counting who else uses them.
    let _ = sys::thread::own_file_table();
    let began = Instant::now();
    let well = copying.run();
    let seconds = began.elapsed().as_secs_f64();
    let after = Snapshot::look(&root, &subjects);
    if let Some((done, thread)) = progress {
        drop(done);
        let _ = thread.join();
    }
    told.ended.store(true, Ordering::Relaxed);
    told.tell(seconds);
    if said.status != Status::None {
        let facts =
            facts(said, (&input, &output), (seconds, &told.counts.totals()), &subjects, (&before, &after));
        let stable = facts.leaves_work().then(|| made_stable(&output, began)).transpose();
        say_ours(&facts.sentences(&stable));
    }
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn subject(root: &Root, side: &Side) -> Option<Subject> {
    let path = side.path.clone().unwrap_or_default();
    Subject::of(root, &side.file, &path)
}

/// All that is looked at, at a moment.
struct Snapshot {
    /// Of input and output.
    looks: [Option<Look>; 2],
    fetched: Known<u64>,
    cpu_ns: Option<u64>,
}

impl Snapshot {
    fn look(root: &Root, subjects: &[Option<Subject>; 2]) -> Self {
        let used = sys::thread::usage().ok();
        Self {
            looks: subjects.each_ref().map(|s| s.as_ref().map(|s| s.look(root))),
            fetched: fetched_bytes(root),
            cpu_ns: used.map(|u| u.user_ns + u.system_ns),
        }
    }
}

/// What is known of a copy that is over.
fn facts(
    said: &Copy,
    (input, output): (&Side, &Side),
    (seconds, totals): (f64, &Totals),
    subjects: &[Option<Subject>; 2],
    (before, after): (&Snapshot, &Snapshot),
) -> Facts {
    let side = |at: usize, side: &Side, flags: &std::collections::BTreeSet<Flag>| {
        let subject = subjects[at].as_ref()?;
        let (a, b) = (before.looks[at].as_ref()?, after.looks[at].as_ref()?);
        Some(meaning::Stored {
            shown: side.shown.clone(),
            is_direct: flags.contains(&Flag::Direct),
            waits: flags.contains(&Flag::Dsync) || flags.contains(&Flag::Sync),
            disk: subject.disk_between(a, b),
            pages_before: a.pages.clone(),
            pages_after: b.pages.clone(),
            ram: subject.place().ram.clone(),
        })
    };
    let fetched = fetched_between(&before.fetched, &after.fetched);
    let syncs = [Conversion::Fsync, Conversion::Fdatasync].into_iter().any(|c| said.conversion.contains(&c));
    Facts {
        input: side(0, input, &said.reading),
        output: side(1, output, &said.writing),
        is_zero: input.path.as_deref().is_some_and(|path| path == "/dev/zero"),
        to_terminal: output.file.is_terminal(),
        syncs,
        seconds,
        bytes: totals.bytes,
        reads: totals.full_reads + totals.partial_reads,
        writes: totals.full_writes + totals.partial_writes,
        input_block_bytes: said.input_block_bytes,
        output_block_bytes: said.output_block_bytes,
        cpu_share: before.cpu_ns.zip(after.cpu_ns).map(|(a, b)| b.saturating_sub(a) as f64 / 1e9 / seconds),
        fetched,
    }
}

/// Makes stable what dd left to the page cache; the seconds from the beginning of the copy until it was.
fn made_stable(output: &Side, began: Instant) -> Known<f64> {
    output.file.sync_all().map_err(|e| reason(&e))?;
    Ok(began.elapsed().as_secs_f64())
}

/// SIGUSR1 tells how far it is; SIGINT too, and ends this process as it does dd.
fn watch_signals(told: &Arc<Progress>) -> std::io::Result<()> {
    let told = Arc::clone(told);
    let mut signals = Signals::new([SIGUSR1, SIGINT])?;
    std::thread::Builder::new().name("fathom-signals".into()).spawn(move || {
        for signal in signals.forever() {
            if !told.ended.load(Ordering::Relaxed) {
                told.tell_now();
            }
            if signal == SIGINT {
                let _ = sys::default_action::take(SIGINT);
            }
        }
    })?;
    Ok(())
}

/// Tells once a second how fast it is, until the sender is dropped.
fn show_progress(told: &Arc<Progress>) -> (Sender<()>, std::thread::JoinHandle<()>) {
    let (done, is_done) = channel();
    let told = Arc::clone(told);
    let thread = std::thread::spawn(move || {
        let mut longest = 0;
        while is_done.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            let line = lines::transfer(told.counts.totals().bytes, told.began.elapsed().as_secs_f64(), true);
            longest = longest.max(line.len());
            stderr::say_in_place(&format!("{line:longest$}"));
            told.in_line.store(true, Ordering::Relaxed);
        }
    });
    (done, thread)
}
