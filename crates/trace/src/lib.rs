//! The kernel's trace of block I/O: from the pages of its ring buffers to events.
//!
//! 1. [`Format`] parses `events/GROUP/NAME/format` and `events/header_page`: offset and size of each field on this kernel.
//! 2. [`Records`] splits a page, as `trace_pipe_raw` returns it, into records with their times. A page begins with a time and a commit
//!    word. The times of its records are relative to the page's time. The commit word has the number of bytes in use, and two bits for
//!    lost records; the number of lost records may follow the records. Each record has a 32-bit word before it: five bits of type or
//!    length, 27 bits of time since the previous record.
//! 3. [`Decoder`] turns records into events, and looks up each new task.
//!
//! `pairing` turns events into rows, `syscall_counter` counts system calls. Formats: kernel `Documentation/trace/ring-buffer-map.rst`,
//! `events.rst`, and each event's own `format` file. The crate `machine` reads tracefs.

#![forbid(unsafe_code)]

pub mod interval;
pub mod pairing;
pub mod row;
pub mod syscall_counter;

/// Bytes per sector in the kernel's events, whatever the device's own sector size is.
pub const SECTOR: u64 = 512;

use crate::row::{Flags, Names, Task, op};
use model::captured::Op;
use std::collections::HashMap;

/// Why the kernel's text or bytes cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownFormat(pub String);

/// A field of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Offset of the first byte in the record.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

impl Field {
    /// Returns the bytes of the field; `None` if the record is too short.
    pub fn bytes<'r>(&self, record: &'r [u8]) -> Option<&'r [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Returns the field as an unsigned number in the machine's byte order; 0 if the record is too short.
    pub fn number(&self, record: &[u8]) -> u64 {
        let Some(bytes) = self.bytes(record) else { return 0 };
        if let Ok(eight) = <[u8; 8]>::try_from(bytes) {
            return u64::from_ne_bytes(eight);
        }
        match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => 0,
        }
    }
}

/// The format of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Id of the format, which each record contains; 0 for the header of a page.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Parses the text of a format file.
    ///
    /// # Errors
    /// Names the line whose id or field cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, UnknownFormat> {
        let mut format = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().map_err(|_| unknown_line(line))?;
            } else if let Some(rest) = line.strip_prefix("field:") {
                format.fields.push(field(rest).ok_or_else(|| unknown_line(line))?);
            }
        }
        Ok(format)
    }

    /// Returns the field of this name.
    ///
    /// # Errors
    /// If the format has no such field.
    pub fn field(&self, name: &str) -> Result<Field, UnknownFormat> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found
            .map(|(_, field)| *field)
            .ok_or_else(|| UnknownFormat(format!("the kernel's event has no field {name}")))
    }

    /// Returns the field of this name, or `None`.
    pub fn find_field(&self, name: &str) -> Option<Field> {
        self.field(name).ok()
    }
}

/// Parses a field: `unsigned int nr_sector; offset:24; size:4; signed:0;`, with tabs.
fn field(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.split_whitespace().next_back()?.split('[').next()?;
    let mut value = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    let (offset, size) = (value("offset:")?, value("size:")?);
    Some((name.to_owned(), Field { offset, size }))
}

fn unknown_line(line: &str) -> UnknownFormat {
    UnknownFormat(format!("the kernel's description of an event has an unknown line: {line}"))
}

/// Flag of the commit word: records were lost before this page.
const MISSED: u64 = 1 << 31;
/// Flag of the commit word: the number of lost records is stored after the records.
const STORED: u64 = 1 << 30;
/// Mask of the commit word for the number of bytes in use.
const IN_USE: u64 = STORED - 1;
/// Number of bits of the time in a record's word.
const DELTA_BITS: u32 = 27;
/// Number of bits of an absolute time, which has its own record. The higher bits are taken from the previous time.
const STAMP_BITS: u32 = 59;
/// Types of records without an event.
const PADDING: u32 = 29;
const EXTEND: u32 = 30;
const STAMP: u32 = 31;

/// Where the parts of a page are, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    time: Field,
    commit: Field,
    data: usize,
    /// Size of a page in bytes.
    pub bytes: usize,
}

impl PageLayout {
    /// Parses the text of `events/header_page`.
    ///
    /// # Errors
    /// What is missing, or the line that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, UnknownFormat> {
        let format = Format::parse(text)?;
        let data = format.field("data")?;
        let bytes = data.offset.saturating_add(data.size);
        Ok(Self {
            time: format.field("timestamp")?,
            commit: format.field("commit")?,
            data: data.offset,
            bytes,
        })
    }
}

/// The records of a page, each with its time.
#[derive(Debug)]
pub struct Records<'p> {
    data: &'p [u8],
    at: usize,
    time: u64,
    /// Number of records that were overwritten before this page.
    pub missed: u64,
    /// Time at the beginning of the page, in ns.
    pub begins: u64,
}

impl<'p> Records<'p> {
    /// Parses the header of a page. The iterator parses the records.
    pub fn parse(page: &'p [u8], layout: &PageLayout) -> Self {
        let time = layout.time.number(page);
        let commit = layout.commit.number(page);
        let whole = page.get(layout.data..).unwrap_or_default();
        let used = usize::try_from(commit & IN_USE).unwrap_or(usize::MAX).min(whole.len());
        let (data, rest) = whole.split_at(used);
        let stored = Field { offset: 0, size: layout.commit.size }.number(rest);
        let missed = match (commit & MISSED != 0, commit & STORED != 0) {
            (false, _) => 0,
            (true, true) => stored.max(1),
            // The page has no space for the number, but at least one record was lost.
            (true, false) => 1,
        };
        Self { data, at: 0, time, missed, begins: time }
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.data.get(self.at..self.at + 4)?;
        self.at += 4;
        Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn take(&mut self, bytes: usize) -> Option<&'p [u8]> {
        let end = self.at.checked_add(bytes)?;
        let data = self.data.get(self.at..end)?;
        self.at = end;
        Some(data)
    }
}

/// Splits a record's word into type and time. On a little-endian machine compilers place the first bit field in the low bits.
fn split_word(word: u32) -> (u32, u64) {
    if cfg!(target_endian = "little") {
        (word & 31, u64::from(word >> 5))
    } else {
        (word >> DELTA_BITS, u64::from(word & ((1 << DELTA_BITS) - 1)))
    }
}

impl<'p> Iterator for Records<'p> {
    type Item = (u64, &'p [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let word = self.word()?;
            let (kind, delta) = split_word(word);
            match kind {
                // Nothing follows this record on the page.
                PADDING if delta == 0 => return None,
                // A record that a filter dropped. Its length follows the word. Its time still advances the clock.
                PADDING => {
                    let length = self.word()? as usize;
                    self.take(length.saturating_sub(4))?;
                    self.time = self.time.wrapping_add(delta);
                }
                EXTEND => {
                    let high = u64::from(self.word()?);
                    self.time = self.time.wrapping_add((high << DELTA_BITS) + delta);
                }
                STAMP => {
                    let high = u64::from(self.word()?);
                    let above = self.time >> STAMP_BITS << STAMP_BITS;
                    self.time = above | (((high << DELTA_BITS) + delta) & ((1 << STAMP_BITS) - 1));
                }
                0 => {
                    let length = self.word()? as usize;
                    self.time = self.time.wrapping_add(delta);
                    // The length includes the word of the length. The data is padded to four bytes.
                    let data = self.take(length.saturating_sub(4))?;
                    self.at = self.at.next_multiple_of(4);
                    return Some((self.time, data));
                }
                length => {
                    self.time = self.time.wrapping_add(delta);
                    return self.take(length as usize * 4).map(|data| (self.time, data));
                }
            }
        }
    }
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The request was put into the scheduler (`block_rq_insert`).
    Inserted,
    /// The request was issued to the driver. On a device whose driver takes bios directly, without requests: the bio was queued.
    Issued,
    /// The request completed, wholly or in part.
    Completed,
    /// The driver returned the request (`block_rq_requeue`).
    Requeued,
    /// A task requested a flush, or a write with a flush (`block_bio_queue`).
    FlushRequested,
    /// The kernel overwrote records before they were read. `sectors` is the number of records.
    Lost,
}

/// The kernel's events for devices with requests, and what each means. A filter in the kernel drops all `block_bio_queue` events except
/// flushes and writes with a flush.
pub const REQUEST_EVENTS: [(&str, EventKind); 5] = [
    ("block_rq_issue", EventKind::Issued),
    ("block_rq_complete", EventKind::Completed),
    ("block_rq_requeue", EventKind::Requeued),
    ("block_bio_queue", EventKind::FlushRequested),
    ("block_rq_insert", EventKind::Inserted),
];

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event by the clock of the trace, in ns.
    pub at_ns: u64,
    /// What happened to the request.
    pub step: EventKind,
    /// Operation of the request; [`Op::Other`] for lost records.
    pub op: Op,
    /// First sector, counted on the whole device in units of 512 bytes.
    pub sector: u64,
    /// Number of sectors; for lost records, the number of records.
    pub sectors: u32,
    /// Index of the request's flags in [`Names`].
    pub flags: u32,
    /// Index in [`Names`] of the task in which the event happened. Meaningless for completions, requeues and lost records.
    pub task: u32,
    /// Device number (12 bits major, 20 bits minor); 0 if the event does not contain it.
    pub device: u32,
}

/// Finds the process id of a thread (`None` if unknown), and whether the thread is a kernel thread.
pub type LookUpTask<'a> = &'a mut dyn FnMut(u32) -> (Option<u32>, bool);

/// Where the fields of one kind of event are in its records.
#[derive(Clone, Debug)]
struct EventFields {
    step: EventKind,
    pid: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    error: Option<Field>,
    device: Option<Field>,
    comm: Option<Field>,
}

/// Maximum number of known tasks. At this number all of them are forgotten and looked up again, so
/// that memory does not grow with each new process.
const MAX_KNOWN_TASKS: usize = 1 << 16;

/// Decodes pages, and remembers tasks and combinations of flags.
#[derive(Debug)]
pub struct Decoder {
    layout: PageLayout,
    id: Field,
    event_fields: Vec<(u16, EventFields)>,
    tasks: HashMap<(u32, [u8; 16]), u32>,
    flags: HashMap<([u8; 12], i32), u32>,
    /// The tasks and flags of the events decoded so far.
    pub names: Names,
    /// Number of decoded events.
    pub events: u64,
    /// Number of records that the kernel overwrote, according to the pages.
    pub lost: u64,
}

impl Decoder {
    /// Creates a decoder from the text of `events/header_page` and of the `format` of each event.
    ///
    /// # Errors
    /// Names the part of the kernel's text that has an unknown form.
    pub fn new(header_page: &str, formats: &[(EventKind, String)]) -> Result<Self, UnknownFormat> {
        let mut id = Field { offset: 0, size: 2 };
        let mut event_fields = Vec::new();
        for (step, text) in formats {
            let format = Format::parse(text)?;
            id = format.field("common_type")?;
            let fields = EventFields {
                step: *step,
                pid: format.field("common_pid")?,
                sector: format.field("sector")?,
                sectors: format.field("nr_sector")?,
                rwbs: format.field("rwbs")?,
                error: format.find_field("error").or_else(|| format.find_field("errors")),
                device: format.find_field("dev"),
                comm: format.find_field("comm").filter(|field| field.size == 16),
            };
            event_fields.push((format.id, fields));
        }
        let layout = PageLayout::parse(header_page)?;
        let (names, tasks) = (Names::default(), HashMap::new());
        Ok(Self { layout, id, event_fields, tasks, flags: HashMap::new(), names, events: 0, lost: 0 })
    }

    /// Returns the size of a trace buffer page in bytes. The kernel can be configured to use larger pages
    /// here than for memory.
    pub fn page_bytes(&self) -> usize {
        self.layout.bytes
    }

    /// Decodes a page, and appends its events.
    pub fn decode_page(&mut self, page: &[u8], look_up: LookUpTask<'_>, into: &mut Vec<Event>) {
        let records = Records::parse(page, &self.layout);
        if records.missed > 0 {
            self.lost = self.lost.saturating_add(records.missed);
            into.push(Event {
                at_ns: records.begins,
                step: EventKind::Lost,
                op: Op::Other,
                sector: 0,
                sectors: u32::try_from(records.missed).unwrap_or(u32::MAX),
                flags: 0,
                task: 0,
                device: 0,
            });
        }
        for (at_ns, record) in records {
            let id = self.id.number(record) as u16;
            let Some(at) = self.event_fields.iter().position(|(known, _)| *known == id) else { continue };
            self.events += 1;
            let event = self.decode_event(at, at_ns, record, look_up);
            into.push(event);
        }
    }

    fn decode_event(&mut self, at: usize, at_ns: u64, record: &[u8], look_up: LookUpTask<'_>) -> Event {
        let fields = &self.event_fields[at].1;
        let (sector, sectors) = (fields.sector.number(record), fields.sectors.number(record) as u32);
        let letters = fields.rwbs.bytes(record).unwrap_or_default();
        // The error is a signed 32-bit number.
        let error = fields.error.map_or(0, |field| field.number(record) as u32 as i32);
        let (step, comm, device) = (fields.step, fields.comm, fields.device);
        let tid = fields.pid.number(record) as u32;
        let length = letters.iter().position(|b| *b == 0).unwrap_or(letters.len()).min(12);
        let letters = &letters[..length];
        let op = op(letters, sectors);
        // A command of a driver or a program (SG_IO) is issued at sector 0 with no sectors. Its completion has no sector, but a
        // number of sectors, for which the function `op` returns `Zeroes`. Give the issue and the completion the same place.
        let (op, sector, sectors) = match op {
            Op::Other | Op::Zeroes if sector == u64::MAX => (Op::Other, 0, 0),
            _ => (op, sector, sectors),
        };
        let flags = self.flags_of(letters, error);
        let task = match comm.and_then(|field| field.bytes(record)) {
            Some(comm) if step != EventKind::Completed => self.task_of(tid, comm, look_up),
            _ => 0,
        };
        let device = device.map_or(0, |field| field.number(record) as u32);
        Event { at_ns, step, op, sector, sectors, flags, task, device }
    }

    fn flags_of(&mut self, letters: &[u8], error: i32) -> u32 {
        let mut key = [0; 12];
        key[..letters.len()].copy_from_slice(letters);
        if let Some(number) = self.flags.get(&(key, error)) {
            return *number;
        }
        let rwbs = String::from_utf8_lossy(letters).into_owned();
        let number = self.names.flags(&Flags { rwbs, error, ..Flags::default() });
        self.flags.insert((key, error), number);
        number
    }

    fn task_of(&mut self, tid: u32, comm: &[u8], look_up: LookUpTask<'_>) -> u32 {
        let mut name = [0; 16];
        name.copy_from_slice(comm);
        if let Some(number) = self.tasks.get(&(tid, name)) {
            return *number;
        }
        if self.tasks.len() >= MAX_KNOWN_TASKS {
            self.tasks.clear();
        }
        let length = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        let (pid, kernel) = look_up(tid);
        let text = String::from_utf8_lossy(&name[..length]).into_owned();
        let number = self.names.task(&Task { tid, pid, kernel, name: text });
        self.tasks.insert((tid, name), number);
        number
    }
}

#[cfg(test)]
pub(crate) const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
    \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
    \tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n\
    \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"%d\", REC->dev\n";

#[test]
fn a_format_is_read_as_the_kernel_prints_it() -> Result<(), UnknownFormat> {
    let format = Format::parse(ISSUE)?;
    assert_eq!(format.id, 2104);
    assert_eq!(format.field("sector")?, Field { offset: 16, size: 8 });
    assert_eq!(format.field("rwbs")?, Field { offset: 34, size: 10 });
    assert_eq!(format.field("cmd")?, Field { offset: 60, size: 4 });
    assert!(format.field("error").is_err() && format.find_field("error").is_none());
    assert!(Format::parse("field:int x;\toffset:y;").is_err());
    let mut record = vec![0_u8; 32];
    record[24..28].copy_from_slice(&8_u32.to_ne_bytes());
    assert_eq!(format.field("nr_sector")?.number(&record), 8);
    assert_eq!(format.field("rwbs")?.number(&record), 0, "a record that is too short");
    assert_eq!(Field { offset: usize::MAX, size: 8 }.bytes(&record), None);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    /// The 32-bit word before a record, in this machine's byte order.
    fn word(kind: u32, delta: u32) -> [u8; 4] {
        let word = if cfg!(target_endian = "little") { delta << 5 | kind } else { kind << 27 | delta };
        word.to_ne_bytes()
    }

    /// A page with `data` after its header.
    pub(crate) fn page(time: u64, flags: u64, data: &[u8], trailing: u64) -> Vec<u8> {
        let mut page = time.to_ne_bytes().to_vec();
        page.extend((data.len() as u64 | flags).to_ne_bytes());
        page.extend(data);
        page.extend(trailing.to_ne_bytes());
        page.resize(4096, 0);
        page
    }

    /// A record with `data`, `delta` after the previous record.
    pub(crate) fn record(delta: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = word(data.len() as u32 / 4, delta).to_vec();
        bytes.extend(data);
        bytes
    }

    #[test]
    fn times_add_up_over_all_types_of_records() -> Result<(), UnknownFormat> {
        let layout = PageLayout::parse(HEADER)?;
        assert_eq!(layout.bytes, 4096);
        let mut data = record(5, b"abcd");
        data.extend([word(EXTEND, 1), 1_u32.to_ne_bytes()].concat());
        data.extend(record(2, b"efghijkl"));
        // A discarded record: its length in four bytes, and eight bytes of data.
        data.extend([word(PADDING, 3), 12_u32.to_ne_bytes(), *b"gone", *b"gone"].concat());
        data.extend([word(0, 4), 7_u32.to_ne_bytes(), *b"odd\0"].concat());
        data.extend([word(STAMP, 9), 2_u32.to_ne_bytes()].concat());
        data.extend(record(0, b"last"));
        data.extend(word(PADDING, 0));
        data.extend(record(0, b"none"));
        let page = page(1000, 0, &data, 0);
        let found: Vec<(u64, &[u8])> = Records::parse(&page, &layout).collect();
        let extended = 1005 + (1 << 27) + 1 + 2;
        let expected: [(u64, &[u8]); 4] =
            [(1005, b"abcd"), (extended, b"efghijkl"), (extended + 7, b"odd"), ((2 << 27) + 9, b"last")];
        assert_eq!(found, expected);
        Ok(())
    }

    #[test]
    fn lost_records_are_counted() -> Result<(), UnknownFormat> {
        let layout = PageLayout::parse(HEADER)?;
        let missed =
            |flags, trailing| Records::parse(&page(7, flags, &record(1, b"abcd"), trailing), &layout).missed;
        assert_eq!(missed(0, 137), 0);
        assert_eq!(missed(MISSED | STORED, 137), 137);
        assert_eq!(missed(MISSED, 137), 1);
        Ok(())
    }

    #[test]
    fn decoding_of_any_bytes_ends() -> Result<(), UnknownFormat> {
        let layout = PageLayout::parse(HEADER)?;
        for seed in 0..64_u32 {
            let bytes: Vec<u8> = (0..4096_u32)
                .map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed * 40_503) >> 13) as u8)
                .collect();
            assert!(Records::parse(&bytes, &layout).count() <= 1024);
            assert!(Records::parse(&bytes[..seed as usize], &layout).count() <= 16);
        }
        Ok(())
    }
}

#[cfg(test)]
mod event_tests {
    use super::tests::{HEADER, page, record};
    use super::{ISSUE, *};

    /// The record of an event `block_rq_issue`.
    fn issue(sector: u64, sectors: u32, rwbs: &str, tid: u32, comm: &str) -> Vec<u8> {
        let mut bytes = vec![0_u8; 64];
        bytes[..2].copy_from_slice(&2104_u16.to_ne_bytes());
        bytes[4..8].copy_from_slice(&tid.to_ne_bytes());
        bytes[8..12].copy_from_slice(&(7_u32 << 20 | 1).to_ne_bytes());
        bytes[16..24].copy_from_slice(&sector.to_ne_bytes());
        bytes[24..28].copy_from_slice(&sectors.to_ne_bytes());
        bytes[34..34 + rwbs.len()].copy_from_slice(rwbs.as_bytes());
        bytes[44..44 + comm.len()].copy_from_slice(comm.as_bytes());
        bytes
    }

    #[test]
    fn a_page_becomes_events_and_each_task_is_looked_up_once() -> Result<(), UnknownFormat> {
        let mut decoder = Decoder::new(HEADER, &[(EventKind::Issued, ISSUE.to_owned())])?;
        let mut data = record(1, &issue(800, 8, "RS", 42, "fio"));
        data.extend(record(2, &issue(808, 16, "FWFSM", 42, "fio")));
        // An unknown event.
        data.extend(record(2, &[0; 16]));
        let mut asked = Vec::new();
        let mut events = Vec::new();
        let mut ask = |tid| {
            asked.push(tid);
            (Some(40), false)
        };
        decoder.decode_page(&page(100, 3 << 30, &data, 9), &mut ask, &mut events);
        assert_eq!(asked, [42]);
        assert_eq!((decoder.events, decoder.lost), (2, 9));
        let [lost, read, write] = &events[..] else { panic!("{events:?}") };
        assert_eq!((lost.step, lost.sectors), (EventKind::Lost, 9));
        assert_eq!((read.at_ns, read.op, read.sector, read.sectors), (101, Op::Read, 800, 8));
        assert_eq!((write.at_ns, write.op, write.task), (103, Op::Write, read.task));
        assert_eq!((read.device, write.device), (7 << 20 | 1, 7 << 20 | 1));
        let task = decoder.names.task_at(read.task).map(|task| (task.name.as_str(), task.pid));
        assert_eq!(task, Some(("fio", Some(40))));
        assert_eq!(decoder.names.flags_at(write.flags), Some(&Flags::parse("FWFSM")));
        Ok(())
    }

    #[test]
    fn the_completion_of_a_command_has_the_place_of_its_issue() -> Result<(), UnknownFormat> {
        let formats =
            [(EventKind::Issued, ISSUE.to_owned()), (EventKind::Completed, ISSUE.replace("2104", "2105"))];
        let mut decoder = Decoder::new(HEADER, &formats)?;
        let mut completed = issue(u64::MAX, 8, "N", 42, "");
        completed[..2].copy_from_slice(&2105_u16.to_ne_bytes());
        let mut flushed = issue(u64::MAX, 0, "FF", 42, "");
        flushed[..2].copy_from_slice(&2105_u16.to_ne_bytes());
        let data = [record(1, &issue(0, 0, "N", 42, "smartd")), record(1, &completed), record(1, &flushed)];
        let mut events = Vec::new();
        decoder.decode_page(&page(100, 0, &data.concat(), 0), &mut |_| (None, false), &mut events);
        let places: Vec<_> = events.iter().map(|event| (event.op, event.sector, event.sectors)).collect();
        assert_eq!(places, [(Op::Other, 0, 0), (Op::Other, 0, 0), (Op::Flush, u64::MAX, 0)]);
        Ok(())
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_tasks() -> Result<(), UnknownFormat> {
        let mut decoder = Decoder::new(HEADER, &[(EventKind::Issued, ISSUE.to_owned())])?;
        let mut ask = |tid| (Some(tid), false);
        let mut task = |tid| decoder.task_of(tid, b"cc\0\0\0\0\0\0\0\0\0\0\0\0\0\0", &mut ask);
        let first = task(1);
        (2..2 * MAX_KNOWN_TASKS as u32).for_each(|tid| assert_ne!(task(tid), first));
        assert_eq!(task(1), first, "a task keeps its number");
        assert!(decoder.tasks.len() <= MAX_KNOWN_TASKS);
        Ok(())
    }

    #[test]
    fn a_missing_field_is_an_error() {
        let text = ISSUE.replace("nr_sector", "sectors");
        let why =
            Decoder::new(HEADER, &[(EventKind::Issued, text)]).map_or_else(|why| why.0, |_| String::new());
        assert!(why.contains("nr_sector"), "{why}");
    }
}
