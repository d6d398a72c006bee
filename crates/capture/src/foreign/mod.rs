//! Traces of other tools, in and out.
//!
//! For: fio's iolog, blktrace, blkparse, MSR Cambridge, read into rows; rows written as fio's iolog. Not for: finding the files.

mod blkparse;
mod blktrace;
pub mod iolog;
mod msr;

use crate::names::{Names, Task};
use crate::row::{Flags, Row, RowKind};
use crate::trace::event::{Event, Step};
use crate::trace::merge::Merge;
use crate::trace::pair::{Pairing, Scope};
use model::captured::{Ending, Unit};
use std::io::{self, BufRead};

/// Most bytes of a line: what is longer is no trace.
const MOST_LINE: u64 = 64 << 10;
/// Events that are put into order at once: a trace of several CPUs is in order but for less.
const AT_ONCE: usize = 1 << 16;

/// Why a trace cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// What is wrong in it, with the place.
    #[error("{0}")]
    Foreign(String),
    /// It cannot be read, or the capture not written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A kind of trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// fio's log of I/O, version 2 or 3.
    Iolog(u8),
    /// Binary files of blktrace.
    Blktrace,
    /// What blkparse prints.
    Blkparse,
    /// MSR Cambridge.
    Msr,
}

/// Where rows go.
pub type Put<'p> = &'p mut dyn FnMut(&Row, &Names) -> io::Result<()>;

impl Language {
    /// By how a file begins; `None` where it is none of them.
    pub fn detect(begins: &[u8]) -> Option<Self> {
        if self::blktrace::begins_so(begins) {
            return Some(Self::Blktrace);
        }
        let text = String::from_utf8_lossy(begins);
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        match first.trim() {
            "fio version 2 iolog" => Some(Self::Iolog(2)),
            "fio version 3 iolog" => Some(Self::Iolog(3)),
            line if self::msr::is_msr_line(line) => Some(Self::Msr),
            line if self::blkparse::is_blkparse_line(line) => Some(Self::Blkparse),
            _ => None,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iolog(2) => "fio iolog v2",
            Self::Iolog(_) => "fio iolog v3",
            Self::Blktrace => "blktrace",
            Self::Blkparse => "blkparse",
            Self::Msr => "MSR Cambridge CSV",
        }
    }

    /// What its rows are.
    pub fn unit(self) -> Unit {
        match self {
            Self::Blktrace | Self::Blkparse => Unit::Requests,
            Self::Iolog(_) | Self::Msr => Unit::Operations,
        }
    }

    /// Converts it. Several files of blktrace are one trace, those of its CPUs; of the others there is one.
    ///
    /// # Errors
    /// What is wrong and where, or why it cannot be read or written.
    pub fn convert(self, mut from: Vec<Box<dyn BufRead>>, put: Put<'_>) -> Result<(Names, Ending), Trouble> {
        let mut into = Into { names: Names::default(), put, rows: 0, last_ns: 0, within_sectors: 0 };
        let mut ending = Ending { why: "its end".into(), ..Ending::default() };
        if self == Self::Blktrace {
            self::blktrace::read_blktrace(from, &mut into, &mut ending)?;
        } else {
            let Some(only) = from.first_mut() else {
                return Err(Trouble::Foreign("there is no file".into()));
            };
            match self {
                Self::Iolog(2) => self::iolog::read_2(only, &mut into)?,
                Self::Iolog(_) => self::iolog::read_3(only, &mut into)?,
                Self::Msr => self::msr::read_msr(only, &mut into)?,
                _ => self::blkparse::read_blkparse(only, &mut into, &mut ending)?,
            }
        }
        ending.duration_ns = into.last_ns;
        ending.within_sectors = into.within_sectors;
        Ok((into.names, Ending { rows: into.rows, ..ending }))
    }
}

/// What a conversion writes to.
struct Into<'p> {
    names: Names,
    put: Put<'p>,
    rows: u64,
    last_ns: u64,
    /// Operations that begin or end within a sector.
    within_sectors: u64,
}

impl Into<'_> {
    fn put(&mut self, row: &Row) -> io::Result<()> {
        self.rows += 1;
        self.last_ns = self.last_ns.max(row.issue_ns.saturating_add(row.latency_ns.unwrap_or(0)));
        (self.put)(row, &self.names)
    }

    /// A row of bytes as programs count them: sectors that are touched in part are touched.
    fn operation(
        &mut self,
        at_ns: u64,
        latency_ns: Option<u64>,
        rwbs: &str,
        bytes: (u64, u64),
        task: &Task,
    ) -> io::Result<()> {
        let (offset, length) = bytes;
        let sector = offset / crate::SECTOR;
        let end = offset.saturating_add(length).div_ceil(crate::SECTOR);
        self.within_sectors += u64::from(!(offset | length).is_multiple_of(crate::SECTOR));
        // A program's sync is what asks for a flush.
        let kind = if length == 0 { RowKind::Asked } else { RowKind::Request };
        let flags = self.names.flags(&Flags { kind, ..Flags::parse(rwbs) });
        let sectors = if length == 0 { 0 } else { u32::try_from(end - sector).unwrap_or(u32::MAX) };
        let task = self.names.task(task);
        let sector = if sectors == 0 { 0 } else { sector };
        self.put(&Row { issue_ns: at_ns, latency_ns, queued_ns: None, sector, sectors, flags, task })
    }
}

/// Lines with their numbers.
struct Lines<'r> {
    from: &'r mut dyn BufRead,
    line: String,
    number: u64,
}

impl<'r> Lines<'r> {
    fn over(from: &'r mut dyn BufRead) -> Self {
        Self { from, line: String::new(), number: 0 }
    }

    /// The next line that says something.
    fn next(&mut self) -> Result<Option<String>, Trouble> {
        loop {
            let mut bytes = Vec::new();
            let read = io::Read::take(&mut *self.from, MOST_LINE).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.line = String::from_utf8_lossy(&bytes).trim().to_owned();
            if !self.line.is_empty() {
                return Ok(Some(self.line.clone()));
            }
        }
    }

    fn wrong(&self, why: &str) -> Trouble {
        let shown: String = self.line.chars().take(60).collect();
        Trouble::Foreign(format!("line {}: {why}: '{}'", self.number, model::visible::visible(&shown)))
    }
}

/// Events of block I/O on their way to rows.
struct Paired {
    merge: Merge,
    pairing: Pairing,
    names: Names,
    first_ns: Option<u64>,
    events: u64,
}

impl Paired {
    fn new() -> Self {
        let pairing = Pairing::new(Scope { unit: Unit::Requests, span: None, start_ns: 0 });
        Self { merge: Merge::default(), pairing, names: Names::default(), first_ns: None, events: 0 }
    }

    /// Adds an event; times are counted from the first.
    fn add(&mut self, mut event: Event, into: &mut Into<'_>) -> io::Result<()> {
        let first = *self.first_ns.get_or_insert(event.at_ns);
        event.at_ns = event.at_ns.saturating_sub(first);
        // A flush completes anywhere.
        if event.step != Step::Lost {
            self.events += 1;
        }
        self.merge.waiting().push(event);
        if self.merge.waiting().len() < AT_ONCE {
            return Ok(());
        }
        let mut times: Vec<u64> = self.merge.waiting().iter().map(|event| event.at_ns).collect();
        times.sort_unstable();
        self.settle(times[AT_ONCE / 2], into)
    }

    fn settle(&mut self, before_ns: u64, into: &mut Into<'_>) -> io::Result<()> {
        let (pairing, names) = (&mut self.pairing, &mut self.names);
        let mut rows = Vec::new();
        self.merge.before(before_ns, |event| pairing.take(event, names, &mut |row| rows.push(*row)));
        self.hand_on(&rows, into)
    }

    fn hand_on(&self, rows: &[Row], into: &mut Into<'_>) -> io::Result<()> {
        for row in rows {
            let flags = self.names.flags_at(row.flags).map_or(0, |flags| into.names.flags(flags));
            let task = self.names.task_at(row.task).map_or(0, |task| into.names.task(task));
            into.put(&Row { flags, task, ..*row })?;
        }
        Ok(())
    }

    fn finish(mut self, into: &mut Into<'_>, ending: &mut Ending) -> io::Result<()> {
        self.settle(u64::MAX, into)?;
        let mut rows = Vec::new();
        self.pairing.finish(&mut |row| rows.push(*row));
        self.hand_on(&rows, into)?;
        let counts = self.pairing.counts;
        ending.events = self.events;
        ending.without_issue = counts.without_issue;
        ending.without_completion = counts.without_completion;
        ending.requeued = counts.requeued;
        ending.completed = counts.completed;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
