//! The kernel's trace of a command and its descendants: synchronization calls and their latency, how files
//! were opened, and whether requests were sequential.
//!
//! 1. [`EVENTS`] names the tracepoints. None of them fires in calls that move data, so tracing costs those
//!    almost nothing.
//! 2. [`CommandTrace::page`] collects the pages of all CPUs, and [`CommandTrace::settle`] sorts the events by
//!    time.
//! 3. A thread is followed if the thread that started the command, or a followed one, forked it. Events of
//!    other threads are dropped.
//! 4. A request is sequential if it begins where one of the last 16 requests of its direction ended.
//!
//! [`Calls`] counts the system calls of threads with the event `raw_syscalls:sys_enter`.

use crate::Foreign;
use crate::{Field, Format, Layout, Records};
use model::command::{Requests, Traced};
use model::histogram::Histogram;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call that makes data stable begins.
    SyncBegins(&'static str),
    /// It has ended.
    SyncEnds,
    /// A process or thread is started.
    Fork,
    /// A file is opened with `O_DIRECT`, `O_SYNC` or `O_DSYNC`.
    Open,
    /// Asynchronous I/O is set up.
    Async,
    /// A pipe or a socket is made.
    Pipe,
    /// A device gets a request.
    Request,
}

/// Group, name and meaning of the events. A kernel may lack some of the system calls.
pub const EVENTS: [(&str, &str, Kind); 22] = [
    ("sched", "sched_process_fork", Kind::Fork),
    ("syscalls", "sys_enter_fsync", Kind::SyncBegins("fsync")),
    ("syscalls", "sys_exit_fsync", Kind::SyncEnds),
    ("syscalls", "sys_enter_fdatasync", Kind::SyncBegins("fdatasync")),
    ("syscalls", "sys_exit_fdatasync", Kind::SyncEnds),
    ("syscalls", "sys_enter_sync_file_range", Kind::SyncBegins("sync_file_range")),
    ("syscalls", "sys_exit_sync_file_range", Kind::SyncEnds),
    ("syscalls", "sys_enter_syncfs", Kind::SyncBegins("syncfs")),
    ("syscalls", "sys_exit_syncfs", Kind::SyncEnds),
    ("syscalls", "sys_enter_sync", Kind::SyncBegins("sync")),
    ("syscalls", "sys_exit_sync", Kind::SyncEnds),
    ("syscalls", "sys_enter_msync", Kind::SyncBegins("msync")),
    ("syscalls", "sys_exit_msync", Kind::SyncEnds),
    ("syscalls", "sys_enter_openat", Kind::Open),
    ("syscalls", "sys_enter_open", Kind::Open),
    ("syscalls", "sys_enter_io_uring_setup", Kind::Async),
    ("syscalls", "sys_enter_io_setup", Kind::Async),
    ("syscalls", "sys_enter_pipe2", Kind::Pipe),
    ("syscalls", "sys_enter_pipe", Kind::Pipe),
    ("syscalls", "sys_enter_socketpair", Kind::Pipe),
    ("syscalls", "sys_enter_socket", Kind::Pipe),
    ("block", "block_rq_issue", Kind::Request),
];

/// Number of recent request ends that a sequential request may follow: a file is read in several places at once,
/// and writes are interleaved with the journal.
const MAX_SEQUENTIAL_ENDS: usize = 16;
/// Maximum number of events that wait to be sorted: 64 MiB.
const MAX_WAITING: usize = 2_000_000;

/// An event with the fields that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    time_ns: u64,
    thread: u32,
    kind: Kind,
    /// The child of a fork, the flags of an open, the first sector of a request.
    value: u64,
    /// Sectors of a request, and whether it writes.
    sectors: u64,
    is_write: bool,
}

/// The fields of an event.
#[derive(Debug)]
struct EventReader {
    id: u16,
    kind: Kind,
    thread: Field,
    value: Field,
    sectors: Field,
    flags: Field,
}

/// The events of a command.
#[derive(Debug)]
pub struct CommandTrace {
    layout: Layout,
    kind: Field,
    readers: Vec<EventReader>,
    followed: BTreeSet<u32>,
    waiting: Vec<Event>,
    syncing: BTreeMap<u32, u64>,
    sync_ns: Histogram,
    ends: [VecDeque<u64>; 2],
    seen: Traced,
    direct: u64,
    sync: u64,
    /// Records that were lost.
    pub lost: u64,
}

impl CommandTrace {
    /// Creates a trace from the text of `events/header_page` and the format of each event. `parent` is the
    /// thread that starts the command; `direct` and `sync` are the bits of `O_DIRECT` and of `O_SYNC` and
    /// `O_DSYNC`.
    ///
    /// # Errors
    /// Returns what differs on this kernel.
    pub fn new(
        header_page: &str,
        formats: &[(Kind, String)],
        parent: u32,
        [direct, sync]: [u64; 2],
    ) -> Result<Self, Foreign> {
        let mut readers = Vec::new();
        let mut kind_field = Field::default();
        for (kind, text) in formats {
            let format = Format::parse(text)?;
            kind_field = format.field("common_type")?;
            let value = match kind {
                Kind::Fork => format.field("child_pid")?,
                Kind::Open => format.field("flags")?,
                Kind::Request => format.field("sector")?,
                _ => Field::default(),
            };
            let is_request = *kind == Kind::Request;
            readers.push(EventReader {
                id: format.id,
                kind: *kind,
                thread: format.field("common_pid")?,
                value,
                sectors: if is_request { format.field("nr_sector")? } else { Field::default() },
                flags: if is_request { format.field("rwbs")? } else { Field::default() },
            });
        }
        Ok(Self {
            layout: Layout::parse(header_page)?,
            kind: kind_field,
            readers,
            followed: BTreeSet::from([parent]),
            waiting: Vec::new(),
            syncing: BTreeMap::new(),
            sync_ns: Histogram::new(),
            ends: Default::default(),
            seen: Traced::default(),
            direct,
            sync,
            lost: 0,
        })
    }

    /// Returns the bytes of a kernel page.
    pub fn page_bytes(&self) -> usize {
        self.layout.bytes
    }

    /// Collects the events of a page.
    pub fn page(&mut self, page: &[u8]) {
        let records = Records::parse(page, &self.layout);
        self.lost = self.lost.saturating_add(records.missed);
        for (time_ns, record) in records {
            let id = self.kind.number(record) as u16;
            let Some(reader) = self.readers.iter().find(|reader| reader.id == id) else { continue };
            if self.waiting.len() >= MAX_WAITING {
                self.lost = self.lost.saturating_add(1);
                continue;
            }
            let rwbs = reader.flags.bytes(record).unwrap_or_default();
            self.waiting.push(Event {
                time_ns,
                thread: reader.thread.number(record) as u32,
                kind: reader.kind,
                value: reader.value.number(record),
                sectors: reader.sectors.number(record),
                is_write: rwbs.contains(&b'W'),
            });
        }
    }

    /// Counts the events so far in the order of their times.
    pub fn settle(&mut self) {
        let mut events = std::mem::take(&mut self.waiting);
        events.sort_by_key(|event| event.time_ns);
        for event in &events {
            self.count(event);
        }
        // The buffer is reused.
        events.clear();
        self.waiting = events;
    }

    fn count(&mut self, event: &Event) {
        if event.kind == Kind::Request {
            return self.request(event);
        }
        if !self.followed.contains(&event.thread) {
            return;
        }
        match event.kind {
            Kind::Fork => {
                self.followed.insert(event.value as u32);
                self.seen.started += 1;
            }
            Kind::SyncBegins(name) => {
                *self.seen.syncs.entry(name.to_owned()).or_default() += 1;
                self.syncing.insert(event.thread, event.time_ns);
            }
            Kind::SyncEnds => {
                if let Some(began_ns) = self.syncing.remove(&event.thread) {
                    let took_ns = event.time_ns.saturating_sub(began_ns);
                    self.sync_ns.record(took_ns);
                    self.seen.sync_total_ns = self.seen.sync_total_ns.saturating_add(took_ns);
                }
            }
            Kind::Open => {
                self.seen.direct_opens += u64::from(event.value & self.direct != 0);
                self.seen.sync_opens += u64::from(event.value & self.sync != 0);
            }
            Kind::Async => self.seen.async_contexts += 1,
            Kind::Pipe => self.seen.pipes += 1,
            Kind::Request => {}
        }
    }

    fn request(&mut self, event: &Event) {
        let Event { value: sector, sectors, is_write, .. } = *event;
        // A flush has no data.
        if sectors == 0 {
            return;
        }
        let at = usize::from(is_write);
        let Requests { count, sequential } = &mut self.seen.requests[at];
        *count += 1;
        let end = sector.saturating_add(sectors);
        let ends = &mut self.ends[at];
        if let Some(follows) = ends.iter_mut().find(|end| **end == sector) {
            *sequential += 1;
            *follows = end;
            return;
        }
        if ends.len() == MAX_SEQUENTIAL_ENDS {
            ends.pop_front();
        }
        ends.push_back(end);
    }

    /// Returns the counts.
    pub fn finish(mut self) -> Traced {
        self.settle();
        self.seen.sync_median_ns = self.sync_ns.quantile_ns(0.5);
        self.seen.sync_p99_ns = self.sync_ns.supported_quantile_ns(0.99);
        self.seen.sync_max_ns = self.sync_ns.max_ns();
        self.seen
    }
}

/// System calls by thread and call number.
#[derive(Debug)]
pub struct Calls {
    layout: Layout,
    event: u16,
    kind: Field,
    thread: Field,
    number: Field,
    counts: BTreeMap<(u32, u64), u64>,
    /// Records that the kernel overwrote, from the pages.
    pub lost: u64,
}

impl Calls {
    /// Creates a counter from the text of `events/header_page` and of the event's format.
    ///
    /// # Errors
    /// What differs on this kernel.
    pub fn new(header_page: &str, format: &str) -> Result<Self, Foreign> {
        let format = Format::parse(format)?;
        Ok(Self {
            layout: Layout::parse(header_page)?,
            event: format.id,
            kind: format.field("common_type")?,
            thread: format.field("common_pid")?,
            number: format.field("id")?,
            counts: BTreeMap::new(),
            lost: 0,
        })
    }

    /// Returns the bytes of a kernel page.
    pub fn page_bytes(&self) -> usize {
        self.layout.bytes
    }

    /// Counts the calls of a page.
    pub fn page(&mut self, page: &[u8]) {
        let records = Records::parse(page, &self.layout);
        self.lost = self.lost.saturating_add(records.missed);
        for (_, record) in records {
            if self.kind.number(record) as u16 == self.event {
                let place = (self.thread.number(record) as u32, self.number.number(record));
                *self.counts.entry(place).or_default() += 1;
            }
        }
    }

    /// Returns the threads with calls since the last [`Self::take`].
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        let mut last = None;
        self.counts.keys().map(|(thread, _)| *thread).filter(move |one| last.replace(*one) != Some(*one))
    }

    /// Returns how often each thread made each call, and resets the counts.
    pub fn take(&mut self) -> BTreeMap<(u32, u64), u64> {
        std::mem::take(&mut self.counts)
    }
}

#[test]
fn calls_are_counted_by_thread_and_number() -> Result<(), Foreign> {
    use crate::tests::{HEADER, page, record};
    let format = "name: sys_enter\nID: 414\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n";
    let mut calls = Calls::new(HEADER, format)?;
    let call = |event: u16, thread: u32, number: u64| {
        let mut bytes = vec![0_u8; 64];
        bytes[..2].copy_from_slice(&event.to_ne_bytes());
        bytes[4..8].copy_from_slice(&thread.to_ne_bytes());
        bytes[8..16].copy_from_slice(&number.to_ne_bytes());
        record(1, &bytes)
    };
    let data: Vec<u8> =
        [call(414, 7, 17), call(414, 7, 17), call(9, 7, 17), call(414, 8, 0), call(414, 7, 74)].concat();
    calls.page(&page(100, 3 << 30, &data, 5));
    assert_eq!((calls.lost, calls.threads().collect::<Vec<_>>()), (5, vec![7, 8]));
    let all: Vec<_> = calls.take().into_iter().collect();
    assert_eq!(all, [((7, 17), 2), ((7, 74), 1), ((8, 0), 1)]);
    assert!(calls.take().is_empty());
    assert!(Calls::new(HEADER, "name: x\nID: 1\n").is_err());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{HEADER, page, record};

    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    fn formats() -> Vec<(Kind, String)> {
        let format = |id: u16, fields: &str| format!("name: x\nID: {id}\nformat:\n{COMMON}{fields}");
        vec![
            (Kind::Fork, format(1, "\tfield:pid_t child_pid;\toffset:8;\tsize:4;\tsigned:1;\n")),
            (Kind::SyncBegins("fsync"), format(2, "")),
            (Kind::SyncEnds, format(3, "")),
            (Kind::Open, format(4, "\tfield:int flags;\toffset:8;\tsize:8;\tsigned:0;\n")),
            (
                Kind::Request,
                format(
                    5,
                    "\tfield:sector_t sector;\toffset:8;\tsize:8;\tsigned:0;\n\
                     \tfield:unsigned int nr_sector;\toffset:16;\tsize:4;\tsigned:0;\n\
                     \tfield:char rwbs[10];\toffset:20;\tsize:10;\tsigned:0;\n",
                ),
            ),
        ]
    }

    fn event(id: u16, thread: u32, value: u64, sectors: u32, rwbs: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0_u8; 32];
        bytes[..2].copy_from_slice(&id.to_ne_bytes());
        bytes[4..8].copy_from_slice(&thread.to_ne_bytes());
        bytes[8..16].copy_from_slice(&value.to_ne_bytes());
        if id == 5 {
            bytes[16..20].copy_from_slice(&sectors.to_ne_bytes());
            bytes[20..20 + rwbs.len()].copy_from_slice(rwbs);
        }
        record(1000, &bytes)
    }

    #[test]
    fn only_syncs_and_opens_of_descendants_count() -> Result<(), Foreign> {
        let mut trace = CommandTrace::new(HEADER, &formats(), 10, [0x4000, 0x1000])?;
        let events = [
            event(1, 10, 20, 0, b""),
            // Another process forks and syncs.
            event(1, 99, 98, 0, b""),
            event(2, 98, 0, 0, b""),
            event(1, 20, 21, 0, b""),
            event(2, 21, 0, 0, b""),
            event(3, 21, 0, 0, b""),
            event(4, 21, 0x4000, 0, b""),
            event(4, 20, 0x1000, 0, b""),
            event(4, 98, 0x4000, 0, b""),
        ];
        trace.page(&page(100, 0, &events.concat(), 0));
        let seen = trace.finish();
        assert_eq!((seen.started, seen.direct_opens, seen.sync_opens), (2, 1, 1), "{seen:?}");
        assert_eq!(seen.syncs.get("fsync"), Some(&1), "{seen:?}");
        assert_eq!((seen.sync_median_ns, seen.sync_p99_ns), (Some(1000), None));
        Ok(())
    }

    #[test]
    fn a_request_that_begins_where_another_ended_is_sequential() -> Result<(), Foreign> {
        let mut trace = CommandTrace::new(HEADER, &formats(), 10, [0, 0])?;
        let events = [
            event(5, 1, 0, 8, b"R"),
            event(5, 1, 8, 8, b"RA"),
            event(5, 1, 1000, 8, b"R"),
            // Another place in between, and a flush.
            event(5, 1, 16, 8, b"R"),
            event(5, 1, 0, 0, b"FF"),
            event(5, 1, 24, 8, b"W"),
        ];
        trace.page(&page(100, 0, &events.concat(), 0));
        let [reads, writes] = trace.finish().requests;
        assert_eq!((reads.count, reads.sequential), (4, 2));
        assert_eq!((writes.count, writes.sequential), (1, 0));
        Ok(())
    }
}
