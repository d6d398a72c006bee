//! Events of block I/O: from a record's bytes to its figures.
//!
//! For: the events that a capture is made of. Not for: what belongs together ([`super::pair`]).

use super::Foreign;
use super::format::{Field, Format};
use super::page::{Layout, Records};
use crate::names::{Names, Task};
use crate::row::{Flags, op};
use model::captured::Op;
use std::collections::HashMap;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request was put into the scheduler (`block_rq_insert`).
    Inserted,
    /// A request was issued to the driver, or a bio queued where there are no requests.
    Issued,
    /// It completed, whole or in part.
    Completed,
    /// The driver gave it back (`block_rq_requeue`).
    Requeued,
    /// A flush, or a write with one, was asked for (`block_bio_queue`).
    Asked,
    /// The kernel wrote over so many records (in `sectors`) before they were read.
    Lost,
}

/// The kernel's events by name, and what they mean; of devices that have requests.
pub const OF_REQUESTS: [(&str, Step); 5] = [
    ("block_rq_issue", Step::Issued),
    ("block_rq_complete", Step::Completed),
    ("block_rq_requeue", Step::Requeued),
    ("block_bio_queue", Step::Asked),
    ("block_rq_insert", Step::Inserted),
];
/// The kernel's events by name, and what they mean; of devices that have only bios.
pub const OF_BIOS: [(&str, Step); 2] =
    [("block_bio_queue", Step::Issued), ("block_bio_complete", Step::Completed)];

/// Something that happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the clock of the trace, in ns.
    pub at_ns: u64,
    /// What happened.
    pub step: Step,
    /// What the request does.
    pub op: Op,
    /// First sector of 512 bytes, on the whole device.
    pub sector: u64,
    /// Sectors; of lost records their number.
    pub sectors: u32,
    /// Index of its flags among the names.
    pub flags: u32,
    /// Index of the task that it happened in; of completions 0.
    pub task: u32,
    /// Number of the device, 12 bits and 20; 0 where the event does not tell.
    pub device: u32,
}

/// What a task is, by the number of its thread: its process, and whether it is the kernel's.
pub type AskTask<'a> = &'a mut dyn FnMut(u32) -> (Option<u32>, bool);

/// Where the figures of one event stand.
#[derive(Clone, Debug)]
struct Places {
    step: Step,
    pid: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    error: Option<Field>,
    device: Option<Field>,
    comm: Option<Field>,
}

/// Decodes pages, and knows every task and flags that it met.
#[derive(Debug)]
pub struct Decoder {
    layout: Layout,
    id: Field,
    places: Vec<(u16, Places)>,
    tasks: HashMap<(u32, [u8; 16]), u32>,
    flags: HashMap<([u8; 12], i32), u32>,
    /// Tasks and flags.
    pub names: Names,
    /// Events that were decoded.
    pub events: u64,
    /// Records that the kernel wrote over, by the pages.
    pub lost: u64,
}

impl Decoder {
    /// By the text of `events/header_page` and of the `format` of each event.
    ///
    /// # Errors
    /// What this kernel says otherwise than fathom knows it.
    pub fn new(header_page: &str, formats: &[(Step, String)]) -> Result<Self, Foreign> {
        let mut id = Field { offset: 0, size: 2 };
        let mut places = Vec::new();
        for (step, text) in formats {
            let format = Format::parse(text)?;
            id = format.field("common_type")?;
            let of = Places {
                step: *step,
                pid: format.field("common_pid")?,
                sector: format.field("sector")?,
                sectors: format.field("nr_sector")?,
                rwbs: format.field("rwbs")?,
                error: format.has("error").or_else(|| format.has("errors")),
                device: format.has("dev"),
                comm: format.has("comm").filter(|field| field.size == 16),
            };
            places.push((format.id, of));
        }
        let layout = Layout::parse(header_page)?;
        let (names, tasks) = (Names::default(), HashMap::new());
        Ok(Self { layout, id, places, tasks, flags: HashMap::new(), names, events: 0, lost: 0 })
    }

    /// Bytes of a page that has the kernel's own size; pages may be larger where they were made so.
    pub fn page_bytes(&self) -> usize {
        self.layout.bytes
    }

    /// The events of a page, behind those that are there.
    pub fn page(&mut self, page: &[u8], ask: AskTask<'_>, into: &mut Vec<Event>) {
        let records = Records::parse(page, &self.layout);
        if records.missed > 0 {
            self.lost = self.lost.saturating_add(records.missed);
            let sectors = u32::try_from(records.missed).unwrap_or(u32::MAX);
            let (at_ns, op) = (records.begins, Op::Other);
            into.push(Event {
                at_ns,
                step: Step::Lost,
                op,
                sector: 0,
                sectors,
                flags: 0,
                task: 0,
                device: 0,
            });
        }
        for (at_ns, record) in records {
            let id = self.id.number(record) as u16;
            let Some(at) = self.places.iter().position(|(known, _)| *known == id) else { continue };
            self.events += 1;
            let event = self.event(at, at_ns, record, ask);
            into.push(event);
        }
    }

    fn event(&mut self, at: usize, at_ns: u64, record: &[u8], ask: AskTask<'_>) -> Event {
        let of = &self.places[at].1;
        let (sector, sectors) = (of.sector.number(record), of.sectors.number(record) as u32);
        let letters = of.rwbs.bytes(record).unwrap_or_default();
        let error = of.error.map_or(0, |field| field.signed(record));
        let (step, comm, device) = (of.step, of.comm, of.device);
        let tid = of.pid.number(record) as u32;
        let length = letters.iter().position(|b| *b == 0).unwrap_or(letters.len()).min(12);
        let letters = &letters[..length];
        let op = op(letters, sectors);
        let flags = self.flags_of(letters, error);
        let task = match comm.and_then(|field| field.bytes(record)) {
            Some(comm) if step != Step::Completed => self.task_of(tid, comm, ask),
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

    fn task_of(&mut self, tid: u32, comm: &[u8], ask: AskTask<'_>) -> u32 {
        let mut name = [0; 16];
        name.copy_from_slice(comm);
        if let Some(number) = self.tasks.get(&(tid, name)) {
            return *number;
        }
        let length = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        let (pid, kernel) = ask(tid);
        let name_of = String::from_utf8_lossy(&name[..length]).into_owned();
        let number = self.names.task(&Task { tid, pid, kernel, name: name_of });
        self.tasks.insert((tid, name), number);
        number
    }
}

#[cfg(test)]
mod event_tests {
    use super::*;
    use crate::trace::format::ISSUE;
    use crate::trace::page::tests::{HEADER, page, record};

    /// Bytes of `block_rq_issue`.
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
    fn a_page_becomes_events_and_each_task_is_asked_for_once() -> Result<(), Foreign> {
        let mut decoder = Decoder::new(HEADER, &[(Step::Issued, ISSUE.to_owned())])?;
        let mut data = record(1, &issue(800, 8, "RS", 42, "fio"));
        data.extend(record(2, &issue(808, 16, "FWFSM", 42, "fio")));
        // An event that nobody knows.
        data.extend(record(2, &[0; 16]));
        let mut asked = Vec::new();
        let mut events = Vec::new();
        let mut ask = |tid| {
            asked.push(tid);
            (Some(40), false)
        };
        decoder.page(&page(100, 3 << 30, &data, 9), &mut ask, &mut events);
        assert_eq!(asked, [42]);
        assert_eq!((decoder.events, decoder.lost), (2, 9));
        let [lost, read, write] = &events[..] else { panic!("{events:?}") };
        assert_eq!((lost.step, lost.sectors), (Step::Lost, 9));
        assert_eq!((read.at_ns, read.op, read.sector, read.sectors), (101, Op::Read, 800, 8));
        assert_eq!((write.at_ns, write.op, write.task), (103, Op::Write, read.task));
        assert_eq!((read.device, write.device), (7 << 20 | 1, 7 << 20 | 1));
        let task = decoder.names.task_at(read.task).map(|task| (task.name.as_str(), task.pid));
        assert_eq!(task, Some(("fio", Some(40))));
        assert_eq!(decoder.names.flags_at(write.flags), Some(&Flags::parse("FWFSM")));
        Ok(())
    }

    #[test]
    fn a_kernel_without_a_field_is_told() {
        let text = ISSUE.replace("nr_sector", "sectors");
        let why = Decoder::new(HEADER, &[(Step::Issued, text)]).map_or_else(|why| why.0, |_| String::new());
        assert!(why.contains("nr_sector"), "{why}");
    }
}
