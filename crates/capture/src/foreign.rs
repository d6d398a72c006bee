//! Traces of other tools: converts fio's iolog, blktrace, blkparse and MSR Cambridge to rows, and rows to a fio iolog.
//!
//! * blkparse, default output: `8,0 3 1 0.000036983 697 D W 223490 + 8 [kjournald]`: device, CPU, number, time, process, action, letters,
//!   sector, sectors, name. Custom formats (`-f`) are not read.
//! * blktrace, binary files of each CPU or one file that `blkparse -d` made, in either byte order (kernel
//!   `include/uapi/linux/blktrace_api.h`). For devices without requests, blktrace records no issue.
//! * MSR Cambridge (SNIA IOTTA), CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, with times in units of 100 ns since
//!   1601, offsets and sizes in bytes.
//! * fio's iolog (fio's documentation, "Trace file format"): versions 2 and 3 are read, version 3 is written. Version 2: `file action
//!   [offset length]`, and `file wait ms length`: the next operation starts at least `ms` after fio did, as in fio's code
//!   (`read_iolog_get`) and unlike its documentation. Version 3: `us file action [offset length]`, where `us` is the time since the
//!   beginning. Each file of a log gets a separate region of 2 TiB, in the order in which the log first names the files. A log has no
//!   latencies, tasks or FUA.
//!
//! The events of blktrace and blkparse are ordered and paired like the kernel's trace (`trace::pairing`).

use crate::capture_file::read_full;
use model::captured::{Ending, Op, RowUnit};
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use trace::pairing::{Merge, Pairing, Scope};
use trace::row::{Flags, Names, Row, RowKind, Task, op};
use trace::{Event, EventKind};

/// A file with a line of at least this number of bytes is not a trace.
const MAX_LINE_BYTES: u64 = 64 << 10;
/// Number of events that are sorted together. Events of different CPUs may be out of order by up to half as many places.
const ORDERED_AT_ONCE: usize = 1 << 16;

/// Why a trace cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// What is wrong in the trace, and where.
    #[error("{0}")]
    Foreign(String),
    /// The trace cannot be read, or the capture cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A kind of trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// An iolog of fio, version 2 or 3.
    Iolog(u8),
    /// Binary files of blktrace.
    Blktrace,
    /// Text output of blkparse.
    Blkparse,
    /// CSV of MSR Cambridge.
    Msr,
}

/// Receives the converted rows.
pub type Put<'p> = &'p mut dyn FnMut(&Row, &Names) -> io::Result<()>;

impl Language {
    /// Detects the kind of trace from the beginning of a file; `None` for any other file.
    pub fn detect(begins: &[u8]) -> Option<Self> {
        if is_big_endian(begins).is_some() {
            return Some(Self::Blktrace);
        }
        let text = String::from_utf8_lossy(begins);
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        match first.trim() {
            "fio version 2 iolog" => Some(Self::Iolog(2)),
            "fio version 3 iolog" => Some(Self::Iolog(3)),
            line if is_msr_line(line) => Some(Self::Msr),
            line if is_blkparse_line(line) => Some(Self::Blkparse),
            _ => None,
        }
    }

    /// Returns the name of this kind of trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iolog(2) => "fio iolog v2",
            Self::Iolog(_) => "fio iolog v3",
            Self::Blktrace => "blktrace",
            Self::Blkparse => "blkparse",
            Self::Msr => "MSR Cambridge CSV",
        }
    }

    /// Returns the unit of the rows that this kind of trace gives.
    pub fn unit(self) -> RowUnit {
        match self {
            Self::Blktrace | Self::Blkparse => RowUnit::Requests,
            Self::Iolog(_) | Self::Msr => RowUnit::Operations,
        }
    }

    /// Converts a trace. A blktrace trace may have several files, one per CPU; every other trace has one
    /// file.
    ///
    /// # Errors
    ///
    /// What is wrong and where, or why the trace cannot be read or written.
    pub fn convert(self, mut from: Vec<Box<dyn BufRead>>, put: Put<'_>) -> Result<(Names, Ending), Trouble> {
        let mut into = Output { names: Names::default(), put, rows: 0, last_ns: 0, within_sectors: 0 };
        let mut ending = Ending { why: "its end".into(), ..Ending::default() };
        if self == Self::Blktrace {
            read_blktrace(from, &mut into, &mut ending)?;
        } else {
            let Some(only) = from.first_mut() else {
                return Err(Trouble::Foreign("the trace has no file".into()));
            };
            match self {
                Self::Iolog(version) => read_iolog(version, only, &mut into)?,
                Self::Msr => read_msr(only, &mut into)?,
                _ => read_blkparse(only, &mut into, &mut ending)?,
            }
        }
        ending.duration_ns = into.last_ns;
        ending.within_sectors = into.within_sectors;
        Ok((into.names, Ending { rows: into.rows, ..ending }))
    }
}

/// The output of a conversion.
struct Output<'p> {
    names: Names,
    put: Put<'p>,
    rows: u64,
    last_ns: u64,
    /// Number of operations that begin or end within a sector.
    within_sectors: u64,
}

impl Output<'_> {
    fn put(&mut self, row: &Row) -> io::Result<()> {
        self.rows += 1;
        self.last_ns = self.last_ns.max(row.issue_ns.saturating_add(row.latency_ns.unwrap_or(0)));
        (self.put)(row, &self.names)
    }

    /// Writes a row for an operation whose offset and length are in bytes. A partly touched sector counts as touched.
    fn put_operation(
        &mut self,
        at_ns: u64,
        latency_ns: Option<u64>,
        rwbs: &str,
        offset: u64,
        length: u64,
        task: &Task,
    ) -> io::Result<()> {
        let sector = offset / trace::SECTOR;
        let end = offset.saturating_add(length).div_ceil(trace::SECTOR);
        self.within_sectors += u64::from(!(offset | length).is_multiple_of(trace::SECTOR));
        // A program's sync becomes a requested flush.
        let kind = if length == 0 { RowKind::RequestedFlush } else { RowKind::Request };
        let flags = self.names.flags(&Flags { kind, ..Flags::parse(rwbs) });
        let sectors = if length == 0 { 0 } else { u32::try_from(end - sector).unwrap_or(u32::MAX) };
        let task = self.names.task(task);
        let sector = if sectors == 0 { 0 } else { sector };
        self.put(&Row { issue_ns: at_ns, latency_ns, queued_ns: None, sector, sectors, flags, task })
    }
}

/// Reads lines and counts them.
struct Lines<'r> {
    from: &'r mut dyn BufRead,
    line: String,
    number: u64,
}

impl<'r> Lines<'r> {
    fn over(from: &'r mut dyn BufRead) -> Self {
        Self { from, line: String::new(), number: 0 }
    }

    /// Returns the next line that is not empty.
    fn next(&mut self) -> Result<Option<String>, Trouble> {
        loop {
            let mut bytes = Vec::new();
            let read = io::Read::take(&mut *self.from, MAX_LINE_BYTES).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.line = String::from_utf8_lossy(&bytes).trim().to_owned();
            if read as u64 == MAX_LINE_BYTES {
                return Err(self.error_at("the line has 64 KiB or more, so the file is not a trace"));
            }
            if !self.line.is_empty() {
                return Ok(Some(self.line.clone()));
            }
        }
    }

    /// Returns the error of the current line.
    fn error_at(&self, why: &str) -> Trouble {
        let shown: String = self.line.chars().take(60).collect();
        Trouble::Foreign(format!("line {}: {why}: '{}'", self.number, model::name::visible(&shown)))
    }
}

/// Pairs events of block I/O into rows.
struct Paired {
    merge: Merge,
    pairing: Pairing,
    names: Names,
    first_ns: Option<u64>,
    events: u64,
}

impl Paired {
    fn new() -> Self {
        let pairing = Pairing::new(Scope { unit: RowUnit::Requests, span: None, start_ns: 0 });
        Self { merge: Merge::default(), pairing, names: Names::default(), first_ns: None, events: 0 }
    }

    /// Adds an event. Times are relative to the first event.
    fn add(&mut self, mut event: Event, into: &mut Output<'_>) -> io::Result<()> {
        let first = *self.first_ns.get_or_insert(event.at_ns);
        event.at_ns = event.at_ns.saturating_sub(first);
        self.events += 1;
        self.merge.waiting.push(event);
        if self.merge.waiting.len() < ORDERED_AT_ONCE {
            return Ok(());
        }
        // The newer half stays, because events of other CPUs that come later in the file may belong between its events.
        self.pair(ORDERED_AT_ONCE / 2, into)
    }

    /// Pairs the `count` oldest events.
    fn pair(&mut self, count: usize, into: &mut Output<'_>) -> io::Result<()> {
        let (pairing, names) = (&mut self.pairing, &mut self.names);
        let mut rows = Vec::new();
        self.merge.oldest(count, |event| pairing.add_event(event, names, &mut |row| rows.push(*row)));
        self.pass_on(&rows, into)
    }

    fn pass_on(&self, rows: &[Row], into: &mut Output<'_>) -> io::Result<()> {
        for row in rows {
            let flags = self.names.flags_at(row.flags).map_or(0, |flags| into.names.flags(flags));
            let task = self.names.task_at(row.task).map_or(0, |task| into.names.task(task));
            into.put(&Row { flags, task, ..*row })?;
        }
        Ok(())
    }

    fn finish(mut self, into: &mut Output<'_>, ending: &mut Ending) -> io::Result<()> {
        self.pair(usize::MAX, into)?;
        let mut rows = Vec::new();
        self.pairing.finish(&mut |row| rows.push(*row));
        self.pass_on(&rows, into)?;
        let counts = self.pairing.counts;
        ending.events = self.events;
        ending.without_issue = counts.without_issue;
        ending.without_completion = counts.without_completion;
        ending.requeued = counts.requeued;
        ending.completed = counts.completed;
        Ok(())
    }
}

/// Returns whether a line is an event of blkparse.
fn is_blkparse_line(line: &str) -> bool {
    let fields: Vec<&str> = line.split_whitespace().collect();
    fields.len() >= 6 && is_device(fields[0]) && time_ns(fields[3]).is_some()
}

fn is_device(word: &str) -> bool {
    word.split_once(',')
        .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok())
}

/// Parses a time: `0.000036983`.
fn time_ns(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.split_once('.')?;
    let fraction: u64 = Some(fraction).filter(|text| text.len() == 9)?.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Returns the text in brackets at the end of a line: the name of a task, which may contain spaces, or the
/// error of a completion.
fn text_in_brackets(line: &str) -> &str {
    line.split_once(" [").and_then(|(_, rest)| rest.trim_end().strip_suffix(']')).unwrap_or_default()
}

/// Parses the error number of a completion. The result is negative, or 0. blkparse prints the kernel's 16 bits
/// as an unsigned number.
fn parse_error(text: &str) -> i32 {
    let bits = text.parse::<u16>().map(u16::cast_signed).or_else(|_| text.parse::<i16>());
    -bits.map_or(0, i32::from).abs()
}

fn read_blkparse(from: &mut dyn BufRead, into: &mut Output<'_>, ending: &mut Ending) -> Result<(), Trouble> {
    let mut lines = Lines::over(from);
    let mut paired = Paired::new();
    let mut device = None;
    while let Some(line) = lines.next()? {
        // blkparse prints a summary after the events.
        if !is_blkparse_line(&line) {
            if line.starts_with("CPU") || line.starts_with("Total") {
                break;
            }
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let step = match fields[5] {
            "D" => EventKind::Issued,
            "C" => EventKind::Completed,
            "I" => EventKind::Inserted,
            "R" => EventKind::Requeued,
            _ => continue,
        };
        let first_device = device.get_or_insert_with(|| fields[0].to_owned());
        if *first_device != fields[0] {
            return Err(
                lines.error_at("the trace contains several devices; select one with `blkparse -i DEVICE`")
            );
        }
        let (Some(at_ns), Ok(tid)) = (time_ns(fields[3]), fields[4].parse::<u32>()) else {
            return Err(lines.error_at("time and process must be numbers"));
        };
        let letters = fields.get(6).copied().unwrap_or_default();
        let number = |at: usize| fields.get(at).and_then(|word| word.parse::<u64>().ok());
        let has_place = fields.get(8) == Some(&"+");
        let (sector, sectors) = if has_place { (number(7), number(9)) } else { (Some(0), Some(0)) };
        let (Some(sector), Some(sectors)) = (sector, sectors.and_then(|n| u32::try_from(n).ok())) else {
            return Err(lines.error_at("sector and sectors must be numbers"));
        };
        let last = text_in_brackets(&line);
        let error = if step == EventKind::Completed { parse_error(last) } else { 0 };
        let task = Task { tid, name: last.to_owned(), ..Task::default() };
        let flags = paired.names.flags(&Flags { error, ..Flags::parse(letters) });
        let task = if step == EventKind::Completed { 0 } else { paired.names.task(&task) };
        let op = op(letters.as_bytes(), sectors);
        paired.add(Event { at_ns, step, op, sector, sectors, flags, task, device: 0 }, into)?;
    }
    if paired.events == 0 {
        return Err(Trouble::Foreign("the trace has no issued or completed request (D, C)".into()));
    }
    Ok(paired.finish(into, ending)?)
}

/// The first word of each event. Its lowest byte is the version.
const MAGIC: u32 = 0x6561_7400;
/// The version that is read.
const VERSION: u32 = 7;
/// Bytes of an event without its trailing data.
const HEAD: usize = 48;
/// Mask of the event in the low half of the action.
const ACT: u32 = 0xff;
const NOTIFY_PROCESS: u32 = 0;
/// Set in the action if an 8-byte cgroup id follows the event.
const HAS_CGROUP: u32 = 1 << 8;
/// Bits of the categories in the high half of the action.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
/// A command of a driver or a program, which has no place on the device.
const COMMAND: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const AHEAD: u32 = 1 << 11;
const META: u32 = 1 << 12;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;
/// Maximum number of process names that are kept.
const MAX_PROCESS_NAMES: usize = 1 << 20;

/// Returns whether the numbers of a blktrace file are big-endian; `None` if the file is not blktrace.
fn is_big_endian(begins: &[u8]) -> Option<bool> {
    let word = <[u8; 4]>::try_from(begins.get(..4)?).ok()?;
    let is = |number: u32| number & !0xff == MAGIC;
    match (is(u32::from_le_bytes(word)), is(u32::from_be_bytes(word))) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}

/// An event of blktrace.
struct Record {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    error: i32,
    trailing: Vec<u8>,
}

/// A file that is being read.
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
        // An event that was incomplete when the tracer stopped is ignored.
        if read_full(&mut self.from, &mut head)? < HEAD {
            return Ok(None);
        }
        let error_at = |why: &str| Trouble::Foreign(format!("at byte {}: {why}", self.at));
        let big_endian = is_big_endian(&head).ok_or_else(|| error_at("this is not a blktrace event"))?;
        let half = |at: usize| decode_number(&head[at..at + 2], big_endian) as u32;
        let word = |at: usize| decode_number(&head[at..at + 4], big_endian) as u32;
        let long = |at: usize| decode_number(&head[at..at + 8], big_endian);
        if word(0) & 0xff != VERSION {
            return Err(error_at("the blktrace format version is not 7"));
        }
        let mut trailing = vec![0; half(46) as usize];
        if read_full(&mut self.from, &mut trailing)? < trailing.len() {
            return Ok(None);
        }
        self.at += (HEAD + trailing.len()) as u64;
        Ok(Some(Record {
            time: long(8),
            sector: long(16),
            bytes: word(24),
            action: word(28),
            pid: word(32),
            device: word(36),
            // In these 16 bits the kernel stores the error number as a negative number.
            error: -i32::from((half(44) as u16).cast_signed()).abs(),
            trailing,
        }))
    }
}

fn decode_number(bytes: &[u8], big_endian: bool) -> u64 {
    let add = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
    if big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
}

fn read_blktrace(
    from: Vec<Box<dyn BufRead>>,
    into: &mut Output<'_>,
    ending: &mut Ending,
) -> Result<(), Trouble> {
    let mut sources: Vec<Source> = from.into_iter().map(|from| Source { from, at: 0, next: None }).collect();
    sources.iter_mut().try_for_each(Source::advance)?;
    let mut paired = Paired::new();
    let mut processes: HashMap<u32, String> = HashMap::new();
    let mut device = None;
    loop {
        // Take the oldest of the next events of all files.
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
                "the trace contains several devices; select one with `blkparse -i DEVICE -d FILE`".into(),
            ));
        }
        let event = event(step, &record, &mut paired, &processes);
        paired.add(event, into)?;
    }
    if paired.events == 0 {
        return Err(Trouble::Foreign("the trace has no issued or completed request".into()));
    }
    Ok(paired.finish(into, ending)?)
}

/// Records the name of a thread from a blktrace note.
fn note_process(record: &Record, processes: &mut HashMap<u32, String>) {
    if record.action & ACT == NOTIFY_PROCESS && processes.len() < MAX_PROCESS_NAMES {
        let skip = if record.action & HAS_CGROUP != 0 { 8 } else { 0 };
        let name = record.trailing.get(skip..).unwrap_or_default();
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        processes.insert(record.pid, String::from_utf8_lossy(&name[..length]).into_owned());
    }
}

fn step(action: u32) -> Option<EventKind> {
    match action & ACT {
        6 => Some(EventKind::Requeued),
        7 => Some(EventKind::Issued),
        8 => Some(EventKind::Completed),
        12 => Some(EventKind::Inserted),
        _ => None,
    }
}

fn event(step: EventKind, record: &Record, paired: &mut Paired, processes: &HashMap<u32, String>) -> Event {
    let is_command = record.action >> 16 & COMMAND != 0;
    let sectors = if is_command { 0 } else { record.bytes / trace::SECTOR as u32 };
    let letters = letters(record.action >> 16, sectors);
    let error = if step == EventKind::Completed { record.error } else { 0 };
    let flags = paired.names.flags(&Flags { error, ..Flags::parse(&letters) });
    let task = if step == EventKind::Completed {
        0
    } else {
        let name = processes.get(&record.pid).cloned().unwrap_or_default();
        paired.names.task(&Task { tid: record.pid, name, ..Task::default() })
    };
    let op = op(letters.as_bytes(), sectors);
    Event { at_ns: record.time, step, op, sector: record.sector, sectors, flags, task, device: 0 }
}

/// Returns the kernel's letters for categories, as blkparse prints them.
fn letters(categories: u32, sectors: u32) -> String {
    let has = |category: u32| categories & category != 0;
    let mut letters = String::new();
    if has(FLUSH) {
        letters.push('F');
    }
    letters += match () {
        () if has(COMMAND) => "N",
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

/// ns per unit of time in MSR Cambridge CSV.
const UNIT_NS: u64 = 100;

/// Returns whether a line is MSR Cambridge CSV, or its heading.
fn is_msr_line(line: &str) -> bool {
    let fields: Vec<&str> = line.split(',').collect();
    let is_heading = fields.first().is_some_and(|first| first.eq_ignore_ascii_case("timestamp"));
    fields.len() == 7 && (is_heading || msr_kind(fields[3]).is_some())
}

fn msr_kind(word: &str) -> Option<&'static str> {
    match word.trim() {
        w if w.eq_ignore_ascii_case("read") => Some("R"),
        w if w.eq_ignore_ascii_case("write") => Some("W"),
        _ => None,
    }
}

fn read_msr(from: &mut dyn BufRead, into: &mut Output<'_>) -> Result<(), Trouble> {
    let mut lines = Lines::over(from);
    let mut first = None;
    // Each disk has a region of its own, as a file of an iolog has.
    let mut disks = Regions::default();
    let mut largest_end = 0;
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if first.is_none() && fields[0].eq_ignore_ascii_case("timestamp") {
            continue;
        }
        let [time, host, disk, word, offset, size, response] = fields[..] else {
            return Err(lines.error_at("a line needs seven fields"));
        };
        let number = |text: &str| text.parse::<u64>().ok();
        let figures = (number(time), number(offset), number(size), number(response));
        let (Some(time), Some(offset), Some(size), Some(response)) = figures else {
            return Err(lines.error_at("time, offset, size and response time must be numbers"));
        };
        let Some(rwbs) = msr_kind(word) else { return Err(lines.error_at("the type must be Read or Write")) };
        let task = Task { name: format!("{host}.{disk}"), ..Task::default() };
        if size == 0 {
            continue;
        }
        if size > u64::from(u32::MAX) * trace::SECTOR {
            return Err(lines.error_at("the size is beyond 2 TiB"));
        }
        let disk = disks.region_of(&task.name).ok_or_else(|| lines.error_at("there are too many disks"))?;
        largest_end = offset.saturating_add(size).max(largest_end);
        if disks.0.len() > 1 && largest_end > 1 << FILE_BITS {
            return Err(lines.error_at(
                "the trace has several disks, and one is beyond 2 TiB; keep the lines of one disk",
            ));
        }
        let at_ns = time.saturating_sub(*first.get_or_insert(time)).saturating_mul(UNIT_NS);
        let latency_ns = Some(response.saturating_mul(UNIT_NS));
        into.put_operation(at_ns, latency_ns, rwbs, disk << FILE_BITS | offset, size, &task)?;
    }
    Ok(())
}

/// Number of bits for the offset within a file. The higher bits are the index of the file.
const FILE_BITS: u32 = 41;
/// Maximum number of files of a log. A log with more files is refused.
const MAX_FILES: usize = 1 << 20;
/// ns per us.
const US: u64 = 1000;
/// ns per ms.
const MS: u64 = 1_000_000;

/// Reads an iolog of version 2 or 3.
fn read_iolog(version: u8, from: &mut dyn BufRead, into: &mut Output<'_>) -> Result<(), Trouble> {
    let mut lines = Lines::over(from);
    let mut files = Regions::default();
    let mut now_ns = 0_u64;
    lines.next()?;
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (file, action, place) = match (version, fields.as_slice()) {
            (2, [file, "wait", ms, ..]) => {
                files.region_of(file);
                let ms: u64 = ms.parse().map_err(|_| lines.error_at("wait needs a number of ms"))?;
                now_ns = now_ns.max(ms.saturating_mul(MS));
                continue;
            }
            (2, [file, action, place @ ..]) => (*file, *action, place),
            (2, _) => return Err(lines.error_at("a line needs a file and an action")),
            (_, [us, file, action, place @ ..]) => {
                let us: u64 = us.parse().map_err(|_| lines.error_at("the time is not a number of us"))?;
                now_ns = us.saturating_mul(US);
                (*file, *action, place)
            }
            _ => return Err(lines.error_at("a line needs a time, a file and an action")),
        };
        let region =
            files.region_of(file).ok_or_else(|| lines.error_at("the log names more than 1,048,576 files"))?;
        let rwbs = match action {
            "read" => "R",
            "write" => "W",
            "trim" => "D",
            "sync" | "datasync" | "sync_file_range" => "FWS",
            "add" | "open" | "close" | "wait" => continue,
            _ => return Err(lines.error_at("fio does not know this action")),
        };
        let task = Task { name: file.to_owned(), ..Task::default() };
        if rwbs == "FWS" {
            into.put_operation(now_ns, None, rwbs, 0, 0, &task)?;
            continue;
        }
        let figure = |at: usize| place.get(at).and_then(|word| word.parse::<u64>().ok());
        let (Some(offset), Some(length)) = (figure(0), figure(1)) else {
            return Err(lines.error_at("the action needs an offset and a length"));
        };
        if length == 0 {
            continue;
        }
        if offset >> FILE_BITS > 0 || length >> FILE_BITS > 0 {
            return Err(lines.error_at("the offset or the length is beyond 2 TiB"));
        }
        into.put_operation(now_ns, None, rwbs, region << FILE_BITS | offset, length, &task)?;
    }
    Ok(())
}

/// The index of each file's region, by the name of the file.
#[derive(Default)]
struct Regions(HashMap<String, u64>);

impl Regions {
    fn region_of(&mut self, file: &str) -> Option<u64> {
        let next = self.0.len() as u64;
        if self.0.len() >= MAX_FILES && !self.0.contains_key(file) {
            return None;
        }
        Some(*self.0.entry(file.to_owned()).or_insert(next))
    }
}

/// Writes an iolog of version 3, for one file or device.
#[derive(Debug)]
pub struct Export<W: Write> {
    to: W,
    file: String,
    last_us: u64,
    flushes_have_owners: bool,
    /// Number of requests that an iolog cannot express.
    pub left_out: u64,
}

impl<W: Write> Export<W> {
    /// Begins a log. With `flushes_have_owners` it writes the flushes that tasks requested instead of the
    /// flushes that the device received.
    ///
    /// # Errors
    ///
    /// Why the log cannot be written.
    pub fn new(mut to: W, file: &str, flushes_have_owners: bool) -> io::Result<Self> {
        write!(to, "fio version 3 iolog\n0 {file} add\n0 {file} open\n")?;
        Ok(Self { to, file: file.to_owned(), last_us: 0, flushes_have_owners, left_out: 0 })
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Why the log cannot be written.
    pub fn add(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        let Some(flags) = names.flags_at(row.flags) else { return Ok(()) };
        let (is_requested_flush, op) = (flags.kind == RowKind::RequestedFlush, flags.op(row.sectors));
        // fio refuses a log in which times go backwards.
        self.last_us = self.last_us.max(row.issue_ns / US);
        let flushes = op == Op::Flush || (op == Op::Write && flags.has_preflush());
        if flushes && (is_requested_flush || !self.flushes_have_owners) {
            writeln!(self.to, "{} {} datasync 0 0", self.last_us, self.file)?;
        }
        let action = match op {
            // The data of a write with a flush is a separate row.
            _ if is_requested_flush || op == Op::Flush => return Ok(()),
            Op::Read if row.sectors > 0 => "read",
            Op::Write if row.sectors > 0 => "write",
            Op::Discard if row.sectors > 0 => "trim",
            _ => {
                self.left_out += 1;
                return Ok(());
            }
        };
        let (offset, bytes) = (row.sector.saturating_mul(trace::SECTOR), row.bytes());
        writeln!(self.to, "{} {} {action} {offset} {bytes}", self.last_us, self.file)
    }

    /// Ends the log.
    ///
    /// # Errors
    /// Why the log cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        writeln!(self.to, "{} {} close", self.last_us, self.file)?;
        self.to.flush()?;
        Ok(self.to)
    }
}

#[cfg(test)]
mod tests;
