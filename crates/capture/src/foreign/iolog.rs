//! fio's log of I/O (`--write_iolog`, `--read_iolog`; fio's documentation, "Trace file format").
//!
//! For: versions 2 and 3 in, version 3 out. Not for: what a log cannot say: latencies, tasks, FUA.
//!
//! Version 2: `file action [offset length]`, and `file wait ms length`: what follows does not begin before so many ms since fio began, which
//! is what fio does (`read_iolog_get`) and not what its documentation says. Version 3: `us file action [offset length]`, us since the beginning.
//! A log may be about several files; each gets a region of its own of 2 TiB, in the order in which they are added.

use super::{Into, Lines, Trouble};
use crate::names::{Names, Task};
use crate::row::{Row, RowKind};
use model::captured::Op;
use std::collections::HashMap;
use std::io::{self, BufRead, Write};

/// Bits of the offset within a file.
const FILE_BITS: u32 = 41;
/// Most files: more have no region.
const MOST_FILES: usize = 1 << 20;
/// ns of a us and of a ms.
const US: u64 = 1000;
const MS: u64 = 1_000_000;

/// Reads version 2.
pub(super) fn read_2(from: &mut dyn BufRead, into: &mut Into<'_>) -> Result<(), Trouble> {
    let mut lines = Lines::over(from);
    let mut files = Files::default();
    let mut now_ns = 0_u64;
    lines.next()?;
    while let Some(line) = lines.next()? {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [file, "wait", ms, ..] => {
                files.number(file);
                let ms: u64 = ms.parse().map_err(|_| lines.wrong("wait has no number of ms"))?;
                now_ns = now_ns.max(ms.saturating_mul(MS));
            }
            [file, action, ref place @ ..] => {
                files.take(file, action, place, now_ns, into, &lines)?;
            }
            _ => return Err(lines.wrong("a line has a file and an action")),
        }
    }
    Ok(())
}

/// Reads version 3.
pub(super) fn read_3(from: &mut dyn BufRead, into: &mut Into<'_>) -> Result<(), Trouble> {
    let mut lines = Lines::over(from);
    let mut files = Files::default();
    lines.next()?;
    while let Some(line) = lines.next()? {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [us, file, action, ref place @ ..] = words[..] else {
            return Err(lines.wrong("a line has a time, a file and an action"));
        };
        let Ok(us) = us.parse::<u64>() else { return Err(lines.wrong("the time is no number of us")) };
        files.take(file, action, place, us.saturating_mul(US), into, &lines)?;
    }
    Ok(())
}

/// Files by their names, each with its region.
#[derive(Default)]
struct Files(HashMap<String, u64>);

impl Files {
    fn number(&mut self, file: &str) -> Option<u64> {
        let next = self.0.len() as u64;
        if self.0.len() >= MOST_FILES && !self.0.contains_key(file) {
            return None;
        }
        Some(*self.0.entry(file.to_owned()).or_insert(next))
    }

    fn take(
        &mut self,
        file: &str,
        action: &str,
        place: &[&str],
        at_ns: u64,
        into: &mut Into<'_>,
        lines: &Lines<'_>,
    ) -> Result<(), Trouble> {
        let region = self.number(file).ok_or_else(|| lines.wrong("there are too many files"))?;
        let rwbs = match action {
            "read" => "R",
            "write" => "W",
            "trim" => "D",
            "sync" | "datasync" | "sync_file_range" => "FWS",
            "add" | "open" | "close" | "wait" => return Ok(()),
            _ => return Err(lines.wrong("fio knows no such action")),
        };
        let task = Task { name: file.to_owned(), ..Task::default() };
        if rwbs == "FWS" {
            return Ok(into.operation(at_ns, None, rwbs, (0, 0), &task)?);
        }
        let figure = |at: usize| place.get(at).and_then(|word| word.parse::<u64>().ok());
        let (Some(offset), Some(length)) = (figure(0), figure(1)) else {
            return Err(lines.wrong("an offset and a length must follow"));
        };
        if length == 0 {
            return Ok(());
        }
        if offset >> FILE_BITS > 0 || length >> FILE_BITS > 0 {
            return Err(lines.wrong("the offset is beyond 2 TiB"));
        }
        Ok(into.operation(at_ns, None, rwbs, (region << FILE_BITS | offset, length), &task)?)
    }
}

/// Writes version 3, for one file or device.
#[derive(Debug)]
pub struct Export<W: Write> {
    to: W,
    file: String,
    last_us: u64,
    asked: bool,
    /// Requests that a log has no word for.
    pub left_out: u64,
}

impl<W: Write> Export<W> {
    /// Begins. Where it is known who asked for flushes, these are written and not what the device got for them.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn new(mut to: W, file: &str, flushes_have_owners: bool) -> io::Result<Self> {
        write!(to, "fio version 3 iolog\n0 {file} add\n0 {file} open\n")?;
        Ok(Self { to, file: file.to_owned(), last_us: 0, asked: flushes_have_owners, left_out: 0 })
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn add(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        let Some(flags) = names.flags_at(row.flags) else { return Ok(()) };
        let action = match (flags.kind, flags.op(row.sectors)) {
            (RowKind::Asked, _) if row.sectors == 0 => "datasync",
            // Its data stand in a row of their own.
            (RowKind::Asked, _) => return Ok(()),
            (_, Op::Flush) if self.asked => return Ok(()),
            (_, Op::Flush) => "datasync",
            (_, Op::Read) => "read",
            (_, Op::Write) => "write",
            (_, Op::Discard) => "trim",
            (_, Op::Zeroes | Op::Other) => {
                self.left_out += 1;
                return Ok(());
            }
        };
        // fio refuses times that go back.
        self.last_us = self.last_us.max(row.issue_ns / US);
        let (offset, bytes) = (row.sector.saturating_mul(crate::SECTOR), row.bytes());
        writeln!(self.to, "{} {} {action} {offset} {bytes}", self.last_us, self.file)
    }

    /// Ends.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        writeln!(self.to, "{} {} close", self.last_us, self.file)?;
        self.to.flush()?;
        Ok(self.to)
    }
}
