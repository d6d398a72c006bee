//! Binary files of blktrace (kernel `include/uapi/linux/blktrace_api.h`).
//!
//! For: the files of its CPUs, or one that `blkparse -d` made of them; of either byte order. Not for: devices that have no requests, of
//! which blktrace shows no issue.

use super::{Into, Paired, Trouble};
use crate::names::Task;
use crate::row::{Flags, op};
use crate::trace::event::{Event, Step};
use model::captured::Ending;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};

/// In front of each event, with the version in its lowest byte.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
/// Bytes of an event without what follows it.
const HEAD: usize = 48;
/// What happened, in the low half of the action.
const ACT: u32 = 0xff;
const NOTIFY_PROCESS: u32 = 0;
/// Set where a cgroup's number follows, in eight bytes.
const WITH_CGROUP: u32 = 1 << 8;
/// Categories, in the high half.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
const NOTIFY: u32 = 1 << 10;
const AHEAD: u32 = 1 << 11;
const META: u32 = 1 << 12;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;
/// Processes whose names are kept.
const MOST_NAMES: usize = 1 << 20;

/// Whether a file begins as one of them.
pub(super) fn begins_so(begins: &[u8]) -> bool {
    order(begins).is_some()
}

/// Whether its numbers have the highest byte first.
fn order(begins: &[u8]) -> Option<bool> {
    let word = <[u8; 4]>::try_from(begins.get(..4)?).ok()?;
    let is = |number: u32| number & !0xff == MAGIC;
    match (is(u32::from_le_bytes(word)), is(u32::from_be_bytes(word))) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}

/// An event as it stands there.
struct Record {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    error: i32,
    behind: Vec<u8>,
}

/// A file under way.
struct Source {
    from: Box<dyn BufRead>,
    at: u64,
    next: Option<Record>,
}

impl Source {
    fn advance(&mut self) -> Result<(), Trouble> {
        self.next = self.record()?;
        Ok(())
    }

    fn record(&mut self) -> Result<Option<Record>, Trouble> {
        let mut head = [0; HEAD];
        let mut got = 0;
        while got < HEAD {
            match self.from.read(&mut head[got..]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        // What the tracer was writing when it was stopped is left out.
        if got < HEAD {
            return Ok(None);
        }
        let wrong = |why: &str| Trouble::Foreign(format!("at byte {}: {why}", self.at));
        let high_first = order(&head).ok_or_else(|| wrong("there is no event of blktrace"))?;
        let half = |at: usize| number(&head[at..at + 2], high_first) as u32;
        let word = |at: usize| number(&head[at..at + 4], high_first) as u32;
        let long = |at: usize| number(&head[at..at + 8], high_first);
        if word(0) & 0xff != VERSION {
            return Err(wrong("it is of a version that is not 7"));
        }
        let mut behind = vec![0; half(46) as usize];
        if self.from.read_exact(&mut behind).is_err() {
            return Ok(None);
        }
        self.at += (HEAD + behind.len()) as u64;
        Ok(Some(Record {
            time: long(8),
            sector: long(16),
            bytes: word(24),
            action: word(28),
            pid: word(32),
            device: word(36),
            // The kernel puts a negative error number into these 16 bits.
            error: -i32::from((half(44) as u16).cast_signed()).abs(),
            behind,
        }))
    }
}

fn number(bytes: &[u8], high_first: bool) -> u64 {
    let add = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
    if high_first { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
}

pub(super) fn read_blktrace(
    from: Vec<Box<dyn BufRead>>,
    into: &mut Into<'_>,
    ending: &mut Ending,
) -> Result<(), Trouble> {
    let mut sources: Vec<Source> = from.into_iter().map(|from| Source { from, at: 0, next: None }).collect();
    sources.iter_mut().try_for_each(Source::advance)?;
    let mut paired = Paired::new();
    let mut processes: HashMap<u32, String> = HashMap::new();
    let mut device = None;
    loop {
        // The oldest of those that are next.
        let oldest = sources.iter_mut().filter(|source| source.next.is_some());
        let Some(source) = oldest.min_by_key(|source| source.next.as_ref().map(|next| next.time)) else {
            break;
        };
        let Some(record) = source.next.take() else { break };
        source.advance()?;
        if record.action >> 16 & NOTIFY != 0 {
            note_process(&record, &mut processes);
            continue;
        }
        let Some(step) = step(record.action) else { continue };
        if *device.get_or_insert(record.device) != record.device {
            return Err(Trouble::Foreign(
                "it is of several devices; select one with `blkparse -i DEVICE -d FILE`".into(),
            ));
        }
        let event = event(step, &record, &mut paired, &processes);
        paired.add(event, into)?;
    }
    if paired.events == 0 {
        return Err(Trouble::Foreign("it has no request that was issued or completed".into()));
    }
    Ok(paired.finish(into, ending)?)
}

/// Which thread has which name, as blktrace notes it.
fn note_process(record: &Record, processes: &mut HashMap<u32, String>) {
    if record.action & ACT == NOTIFY_PROCESS && processes.len() < MOST_NAMES {
        let skip = if record.action & WITH_CGROUP != 0 { 8 } else { 0 };
        let name = record.behind.get(skip..).unwrap_or_default();
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        processes.insert(record.pid, String::from_utf8_lossy(&name[..length]).into_owned());
    }
}

fn step(action: u32) -> Option<Step> {
    match action & ACT {
        6 => Some(Step::Requeued),
        7 => Some(Step::Issued),
        8 => Some(Step::Completed),
        12 => Some(Step::Inserted),
        _ => None,
    }
}

fn event(step: Step, record: &Record, paired: &mut Paired, processes: &HashMap<u32, String>) -> Event {
    let sectors = record.bytes / crate::SECTOR as u32;
    let letters = letters(record.action >> 16, sectors);
    let error = if step == Step::Completed { record.error } else { 0 };
    let flags = paired.names.flags(&Flags { error, ..Flags::parse(&letters) });
    let task = if step == Step::Completed {
        0
    } else {
        let name = processes.get(&record.pid).cloned().unwrap_or_default();
        paired.names.task(&Task { tid: record.pid, name, ..Task::default() })
    };
    let op = op(letters.as_bytes(), sectors);
    Event { at_ns: record.time, step, op, sector: record.sector, sectors, flags, task, device: 0 }
}

/// The kernel's letters for categories, as blkparse has them.
fn letters(categories: u32, sectors: u32) -> String {
    let has = |category: u32| categories & category != 0;
    let mut letters = String::new();
    if has(FLUSH) {
        letters.push('F');
    }
    letters += match () {
        () if has(DISCARD) => "D",
        () if has(WRITE) && sectors > 0 => "W",
        () if has(FLUSH) => "F",
        () if has(WRITE) => "W",
        () if sectors > 0 => "R",
        () => "N",
    };
    for (category, letter) in [(FUA, 'F'), (AHEAD, 'A'), (SYNC, 'S'), (META, 'M')] {
        if has(category) {
            letters.push(letter);
        }
    }
    letters
}
