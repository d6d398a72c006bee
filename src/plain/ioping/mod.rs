//! ioping: requests one at a time as ioping makes them, its lines, and who answered them.
//!
//! For: the loop with its pauses, and what is printed when. Not for: its options (crate `dialect`), its target (`target`), nor its lines
//! (`lines`).

mod lines;
mod meaning;
mod statistics;
mod target;

use super::buffer::Buffer;
use super::look::{fetched_between, fetched_bytes};
use super::may_write::Allowed;
use super::words::{reason, say_ours};
use crate::{stderr, stdout};
use dialect::ioping::{Direction, Order, Ping, Print};
use lines::{Moment, Request};
use machine::root::Root;
use meaning::Facts;
use model::payload::split_mix;
use rustix::fs::{Advice, fadvise};
use rustix::io::{pread, pwrite};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use statistics::Statistics;
use std::io;
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use target::Ready;

/// Exit codes: before the first request, at one of them, and at a second signal.
const NOT_PREPARED: u8 = 2;
const FAILED: u8 = 3;
const KILLED: i32 = 4;
/// So many have to count before one is called slow or fast, and by how much.
const KNOWN: u64 = 5;
const TIMES: u64 = 2;
/// What `-v` prints.
pub const VERSION: &str = "ioping 1.3 (fathom)";

/// Makes requests; the exit code is ioping's.
pub fn ioping(said: &Ping, allowed: &Allowed) -> ExitCode {
    let root = Root::real();
    let stop = match watch() {
        Ok(stop) => stop,
        Err(e) => return failed(NOT_PREPARED, &format!("fathom: signals cannot be watched: {}", reason(&e))),
    };
    let ready = match target::open(&root, said, allowed) {
        Ok(ready) => ready,
        Err(line) => return failed(NOT_PREPARED, &line),
    };
    let Some(buffer) = Buffer::new(said.request_bytes as usize) else {
        return failed(NOT_PREPARED, "ioping: buffer allocation failed");
    };
    if said.order == Order::Random || !said.cached {
        let all = NonZeroU64::new(ready.work_bytes);
        if let Err(e) = fadvise(&ready.file, said.offset_bytes, all, Advice::Random) {
            stderr::say(&format!(
                "ioping: fadvise(RANDOM) failed, operations might perform unneeded readahead: {e}"
            ));
        }
    }
    let look = || ready.subject.as_ref().map(|s| s.look(&root));
    let (before, fetched_before) = (look(), fetched_bytes(&root));
    let seed = said.seed.unwrap_or_else(|| jiff::Timestamp::now().as_nanosecond() as u64);
    let pinging = Pinging { said, ready: &ready, buffer, began: Instant::now(), seed, stop };
    let total = match pinging.run() {
        Ok(total) => total,
        Err(line) => return failed(FAILED, &line),
    };
    let fetched = fetched_between(&fetched_before, &fetched_bytes(&root));
    if matches!(said.print, Print::Lines | Print::Quiet) {
        let disk = match (&ready.subject, before, look()) {
            (Some(subject), Some(before), Some(after)) => subject.disk_between(&before, &after),
            _ => Err("what is below it could not be looked at".into()),
        };
        let ram = ready.subject.as_ref().and_then(|s| s.place().ram.clone());
        let facts = Facts { said, requests: total.count, work_bytes: ready.work_bytes, disk, fetched, ram };
        say_ours(&facts.sentences());
    }
    ExitCode::SUCCESS
}

fn failed(code: u8, line: &str) -> ExitCode {
    stderr::say(line);
    ExitCode::from(code)
}

/// Whether the end was asked for.
struct Stop {
    asked: Arc<AtomicBool>,
    /// Wakes whoever pauses.
    waking: Receiver<()>,
}

impl Stop {
    /// Passes this time, unless the end is asked for: whether it is. Without a pause that costs no look at the clock, as in ioping.
    fn pause(&self, pause: Duration) -> bool {
        if pause.is_zero() {
            return self.asked.load(Ordering::Relaxed);
        }
        self.waking.recv_timeout(pause).is_ok()
    }
}

/// The first SIGINT ends the requests, the second this process.
fn watch() -> io::Result<Stop> {
    let (waker, waking) = channel();
    let asked = Arc::new(AtomicBool::new(false));
    let stop = Stop { asked: Arc::clone(&asked), waking };
    let mut signals = Signals::new([SIGINT])?;
    std::thread::Builder::new().name("fathom-signals".into()).spawn(move || {
        for (at, _) in signals.forever().enumerate() {
            asked.store(true, Ordering::Relaxed);
            if at > 0 || waker.send(()).is_err() {
                std::process::exit(KILLED);
            }
        }
    })?;
    Ok(stop)
}

/// Requests under way.
struct Pinging<'a> {
    said: &'a Ping,
    ready: &'a Ready,
    buffer: Buffer,
    began: Instant,
    seed: u64,
    stop: Stop,
}

/// What stands between two requests.
struct Course {
    number: u64,
    at: u64,
    in_burst: u64,
    next_ns: u64,
    part: Statistics,
    total: Statistics,
    /// When numbers are printed next.
    period_ns: u64,
    /// Whether an object of JSON was printed.
    has_object: bool,
}

impl Pinging<'_> {
    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// All of them; what they came to.
    fn run(mut self) -> Result<Statistics, String> {
        let said = self.said;
        let none = || Statistics::new(said.request_bytes, 0);
        let period_ns = said.every_ns.unwrap_or(u64::MAX);
        let mut course = Course {
            number: 0,
            at: 0,
            in_burst: 0,
            next_ns: 0,
            part: none(),
            total: none(),
            period_ns,
            has_object: false,
        };
        if said.print == Print::Json {
            print("[")?;
        }
        loop {
            let (request, ended) = self.one(&mut course)?;
            let now_ns = ended.duration_since(self.began).as_nanos() as u64;
            course.in_burst += 1;
            if course.in_burst >= said.burst {
                course.in_burst = 0;
                course.next_ns = course.next_ns.saturating_add(said.interval_ns);
            }
            course.next_ns = course.next_ns.max(now_ns);
            let goes_on = self.tell(&mut course, &request, now_ns)?;
            let is_last = said.count.is_some_and(|n| course.number >= n)
                || said.time_ns.is_some_and(|ns| course.next_ns >= ns);
            let pause = Duration::from_nanos(course.next_ns.saturating_sub(now_ns));
            if is_last || !goes_on || self.stop.pause(pause) {
                break;
            }
        }
        let now_ns = self.now_ns();
        course.part.finish(now_ns);
        course.total.add(&course.part);
        course.total.finish(now_ns);
        self.conclude(&course)?;
        Ok(course.total)
    }

    /// One request, which is counted, and when it ended.
    fn one(&mut self, course: &mut Course) -> Result<(Request, Instant), String> {
        let said = self.said;
        let bytes = said.request_bytes;
        course.number += 1;
        if said.order == Order::Random {
            let random = split_mix(self.seed ^ split_mix(course.number));
            course.at = random % (self.ready.work_bytes / bytes) * bytes;
        }
        let offset = said.offset_bytes + course.at;
        if !said.cached {
            fadvise(&self.ready.file, offset, NonZeroU64::new(bytes), Advice::DontNeed)
                .map_err(|_| "ioping: fadvise(DONTNEED) failed, please retry with option -C")?;
        }
        let is_write = match said.way {
            Direction::Read => false,
            Direction::Write => true,
            Direction::Both => course.number % 2 == 1,
        };
        if is_write {
            target::randomize(self.buffer.bytes(), self.seed.wrapping_add(course.number));
        }
        let began = Instant::now();
        let done = if is_write {
            pwrite(&self.ready.file, self.buffer.bytes(), offset)
        } else {
            pread(&self.ready.file, self.buffer.bytes(), offset)
        };
        let done = done.map_err(|e| format!("ioping: request failed: {}", reason(&e.into())))? as u64;
        if is_write && !said.cached {
            self.ready.file.sync_data().map_err(|e| {
                format!("ioping: fdatasync failed, please retry with option -C: {}", reason(&e))
            })?;
        }
        let ended = Instant::now();
        let ns = ended.duration_since(began).as_nanos() as u64;
        if done < bytes {
            stderr::say(&format!("ioping: request returned less than expected: {done}"));
        }
        if said.order == Order::Linear {
            let next = course.at + bytes;
            course.at = if next + bytes > self.ready.work_bytes { 0 } else { next };
        }
        let (counts, notice) = self.judged(course, done, ns);
        Ok((Request { number: course.number, is_write, bytes: done, ns, counts, notice }, ended))
    }

    /// Whether a request counts, and what is said of it.
    fn judged(&self, course: &mut Course, done: u64, ns: u64) -> (bool, Option<&'static str>) {
        let part = &mut course.part;
        part.count += 1;
        if done == 0 {
            return (false, None);
        }
        if course.number <= self.said.warmup {
            return (false, Some("warmup"));
        }
        if ns < self.said.least_ns {
            part.too_fast += 1;
            return (false, Some("too fast"));
        }
        if self.said.most_ns.is_some_and(|most| ns > most) {
            part.too_slow += 1;
            return (false, Some("too slow"));
        }
        part.add_valid(ns);
        let mean = part.mean_ns() as u64;
        let notice = match () {
            () if part.valid <= KNOWN => None,
            () if ns.saturating_mul(TIMES) < mean => Some("fast"),
            () if ns > mean.saturating_mul(TIMES) => Some("slow"),
            () => None,
        };
        (true, notice)
    }

    /// Prints what is printed after a request; whether anybody still reads.
    fn tell(&self, course: &mut Course, request: &Request, now_ns: u64) -> Result<bool, String> {
        let said = self.said;
        let target = &self.ready.target;
        let mut out = String::new();
        match said.print {
            Print::Lines => out += &lines::request(target, request),
            Print::Json => out += &object(course, &lines::json_request(&moment(), target, request)),
            Print::Quiet | Print::Batch => {}
        }
        if said.print == Print::Lines && said.burst > 0 && course.in_burst == 0 {
            out.push('\n');
        }
        let is_full = said.every_count.is_some_and(|n| course.part.valid >= n);
        if is_full || course.next_ns >= course.period_ns {
            course.part.finish(now_ns);
            out += &match said.print {
                Print::Json => {
                    let numbers = lines::json_statistics(&moment(), target, &course.part);
                    object(course, &numbers)
                }
                _ => lines::raw(&course.part),
            };
            course.total.add(&course.part);
            course.part = Statistics::new(said.request_bytes, now_ns);
            course.period_ns = now_ns.saturating_add(said.every_ns.unwrap_or(u64::MAX));
        }
        if out.is_empty() { Ok(true) } else { print(&out) }
    }

    fn conclude(&self, course: &Course) -> Result<(), String> {
        let (said, target) = (self.said, &self.ready.target);
        let has_numbers = said.every_count.is_some() || said.every_ns.is_some();
        let text = match said.print {
            Print::Json => {
                let comma = if course.has_object { "," } else { "" };
                format!("{comma}{}]\n", lines::json_statistics(&moment(), target, &course.total))
            }
            Print::Batch => lines::raw(&course.total),
            Print::Quiet if has_numbers => return Ok(()),
            Print::Quiet | Print::Lines => {
                let way = match said.way {
                    Direction::Read => " read",
                    Direction::Write => " written",
                    Direction::Both => "",
                };
                lines::statistics(target, &course.total, way)
            }
        };
        print(&text).map(|_| ())
    }
}

/// An object of JSON behind those before it.
fn object(course: &mut Course, text: &str) -> String {
    let comma = if std::mem::replace(&mut course.has_object, true) { "," } else { "" };
    format!("{comma}{text}")
}

fn moment() -> Moment {
    let now = jiff::Zoned::now();
    let micros = now.timestamp().as_microsecond();
    Moment {
        seconds: format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000),
        local: now.strftime("%Y-%m-%dT%H:%M:%S%z").to_string(),
    }
}

/// Prints; whether anybody still reads.
fn print(text: &str) -> Result<bool, String> {
    let shown = stdout::harmless(text.as_bytes(), report::Content::Text);
    stdout::piece(&shown).map_err(|failure| format!("fathom: {}", failure.words()))
}
