//! A row: one captured request with the kernel's letters for its operation. Rows refer to tasks and flags by their index in [`Names`].
//!
//! [`Ends`] has the sectors at which recent requests ended: a request that begins at such a sector is sequential.

use model::captured::Op;
use std::collections::HashMap;

/// A captured request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// When the request was issued, in ns since the capture began.
    pub issue_ns: u64,
    /// Time from issue to completion in ns; `None` if the completion was not seen.
    pub latency_ns: Option<u64>,
    /// Time from insertion into the scheduler to issue, in ns; `None` if the request was not inserted, or insertions were not traced.
    pub queued_ns: Option<u64>,
    /// First sector, in units of 512 bytes from the start of the captured part of the device; 0 for a request without sectors.
    pub sector: u64,
    /// Number of sectors of 512 bytes.
    pub sectors: u32,
    /// Index of the request's [`Flags`] in [`Names`].
    pub flags: u32,
    /// Index in [`Names`] of the task that requested the flush, inserted the request into the scheduler, or else issued it.
    pub task: u32,
}

impl Row {
    /// Returns the sector after the request's last one.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }

    /// Returns the bytes that the request moves or discards.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * crate::SECTOR
    }
}

/// What a row describes: a request of the device, or a flush that a file system or program requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A request or bio of the device.
    #[default]
    Request,
    /// A flush as a task requested it, alone or with a write. Its latency counts from the queueing to the end of its last part. The
    /// requests that the device receives for the flush are separate rows.
    RequestedFlush,
}

/// Properties that many rows share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// The kind of row.
    pub kind: RowKind,
    /// The kernel's letters, such as `WS` or `FWFSM` (`blk_fill_rwbs`).
    pub rwbs: String,
    /// Error with which the request completed, as a negative `errno`; 0 for none.
    pub error: i32,
}

impl Flags {
    /// Returns the flags of a request with these letters.
    pub fn parse(rwbs: &str) -> Self {
        Self { rwbs: rwbs.to_owned(), ..Self::default() }
    }

    /// Returns the operation of a request with these flags and `sectors`.
    pub fn op(&self, sectors: u32) -> Op {
        op(self.rwbs.as_bytes(), sectors)
    }

    /// Returns whether the request flushes the cache first.
    pub fn has_preflush(&self) -> bool {
        split(self.rwbs.as_bytes()).0
    }

    /// Returns whether the request must be stable at completion (FUA).
    pub fn has_fua(&self) -> bool {
        self.has(b'F')
    }

    /// Returns whether a letter follows the operation: `F` FUA, `A` read-ahead, `S` synchronous, `M` metadata.
    pub fn has(&self, letter: u8) -> bool {
        match split(self.rwbs.as_bytes()).1 {
            // The operations of zoned devices have two letters.
            [b'Z', _, rest @ ..] | [_, rest @ ..] => rest.contains(&letter),
            [] => false,
        }
    }
}

/// Splits off the leading flush. Returns whether there is one, and the letters from the operation on.
fn split(letters: &[u8]) -> (bool, &[u8]) {
    match letters {
        [b'F', rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, letters),
    }
}

/// Returns the operation for the kernel's letters. A request that has sectors but the letter `N` (no operation) writes zeroes.
pub fn op(letters: &[u8], sectors: u32) -> Op {
    match split(letters) {
        (true, [b'W', ..]) if sectors == 0 => Op::Flush,
        (_, [b'R', ..]) => Op::Read,
        (_, [b'W', b'Z', ..]) => Op::Zeroes,
        (_, [b'W', ..] | [b'Z', b'A', ..]) => Op::Write,
        (_, [b'D', ..]) => Op::Discard,
        (_, [b'F', ..]) => Op::Flush,
        (_, [b'N', ..]) if sectors > 0 => Op::Zeroes,
        _ => Op::Other,
    }
}

/// Maximum number of distinct tasks, and of distinct flags. This limits the memory that a hostile file can use. All further ones get the
/// last index. Its entry is empty, so that their requests are not attributed to another task.
const MAX_NAMES: usize = 1 << 18;

/// A task that issued requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// Thread id.
    pub tid: u32,
    /// Process id; `None` if the process ended before it could be looked up.
    pub pid: Option<u32>,
    /// Whether the task is a kernel thread.
    pub kernel: bool,
    /// Name of the task (comm), or the name in a foreign trace.
    pub name: String,
}

impl Task {
    /// Returns whether the task is a kernel worker, which works for other tasks.
    pub fn is_worker(&self) -> bool {
        self.name.starts_with("kworker/")
    }

    /// Returns whether `word` equals the task's name, thread id or process id.
    pub fn matches(&self, word: &str) -> bool {
        let number = word.parse().ok();
        self.name == word || number.is_some_and(|n| n == self.tid || Some(n) == self.pid)
    }
}

/// All tasks and flags of a capture, each once.
#[derive(Clone, Debug, Default)]
pub struct Names {
    tasks: Vec<Task>,
    flags: Vec<Flags>,
    by_task: HashMap<Task, u32>,
    by_flags: HashMap<Flags, u32>,
}

impl Names {
    /// Returns the index of a task, and adds the task if it is new.
    pub fn task(&mut self, task: &Task) -> u32 {
        intern(&mut self.tasks, &mut self.by_task, task)
    }

    /// Returns the index of these flags, and adds the flags if they are new.
    pub fn flags(&mut self, flags: &Flags) -> u32 {
        intern(&mut self.flags, &mut self.by_flags, flags)
    }

    /// Returns the task with this index.
    pub fn task_at(&self, number: u32) -> Option<&Task> {
        self.tasks.get(number as usize)
    }

    /// Returns the flags with this index.
    pub fn flags_at(&self, number: u32) -> Option<&Flags> {
        self.flags.get(number as usize)
    }

    /// Returns all tasks, in the order of their indices.
    pub fn all_tasks(&self) -> &[Task] {
        &self.tasks
    }
}

/// Returns the index of a value. Adds a new value while there is room; without room, returns the last index, whose entry is empty.
fn intern<T>(all: &mut Vec<T>, by: &mut HashMap<T, u32>, one: &T) -> u32
where
    T: Clone + Default + Eq + std::hash::Hash,
{
    if let Some(number) = by.get(one) {
        return *number;
    }
    let number = all.len().min(MAX_NAMES - 1);
    if number + 1 < MAX_NAMES {
        by.insert(one.clone(), number as u32);
        all.push(one.clone());
    } else if all.len() < MAX_NAMES {
        all.push(T::default());
    }
    number as u32
}

/// Number of recent requests whose ends are known. Up to this many interleaved sequential streams are recognised.
pub const RECENT_ENDS: usize = 64;

/// Sectors at which recent requests ended, and the index of the oldest.
#[derive(Debug)]
pub struct Ends {
    sectors: [u64; RECENT_ENDS],
    oldest: usize,
}

impl Default for Ends {
    fn default() -> Self {
        // No request begins at this sector.
        Self { sectors: [u64::MAX; RECENT_ENDS], oldest: 0 }
    }
}

impl Ends {
    /// Returns the index of a recent request that ended at this sector; `None` if no recent request
    /// did.
    #[inline]
    pub fn find(&self, sector: u64) -> Option<usize> {
        // Usually no end matches, so compare all ends first, several at once.
        let found: u64 = self.sectors.iter().map(|end| u64::from(*end == sector)).sum();
        if found > 0 { self.sectors.iter().position(|end| *end == sector) } else { None }
    }

    /// Returns how many requests ago the end at this index was added: 1 for the most recent request.
    #[inline]
    pub fn requests_ago(&self, at: usize) -> u64 {
        ((self.oldest + RECENT_ENDS - at - 1) % RECENT_ENDS) as u64 + 1
    }

    /// Replaces the oldest end, and returns the index of the new one.
    #[inline]
    pub fn push(&mut self, end: u64) -> usize {
        let at = self.oldest;
        self.sectors[at] = end;
        self.oldest = (at + 1) % RECENT_ENDS;
        at
    }
}

#[test]
fn kernel_letters_give_the_operation() {
    let table = [
        ("R", Op::Read),
        ("RA", Op::Read),
        ("WS", Op::Write),
        ("FWFSM", Op::Write),
        ("WZ", Op::Zeroes),
        ("DE", Op::Discard),
        ("FF", Op::Flush),
        ("F", Op::Flush),
        ("N", Op::Zeroes),
        ("ZR", Op::Other),
        ("", Op::Other),
    ];
    for (letters, op) in table {
        assert_eq!(Flags::parse(letters).op(8), op, "{letters}");
    }
    assert_eq!((Flags::parse("FWS").op(0), Flags::parse("N").op(0)), (Op::Flush, Op::Other));
    let all = Flags::parse("FWFSM");
    assert!(all.has_preflush() && all.has_fua() && all.has(b'M') && !all.has(b'A'));
    let append = Flags::parse("ZAS");
    assert!(append.has(b'S') && !append.has(b'A') && !Flags::parse("").has(b'S'));
    let fua = Flags::parse("WFS");
    assert!(!fua.has_preflush() && fua.has_fua() && !Flags::parse("FWS").has_fua());
}

#[test]
fn tasks_and_flags_have_one_number_each() {
    let mut names = Names::default();
    let fio = Task { tid: 7, pid: Some(5), name: "fio".into(), ..Task::default() };
    let worker = Task { tid: 8, kernel: true, name: "kworker/0:1".into(), ..Task::default() };
    assert_eq!([names.task(&fio), names.task(&worker), names.task(&fio)], [0, 1, 0]);
    assert_eq!(names.task_at(1), Some(&worker));
    assert!(fio.matches("fio") && fio.matches("5") && fio.matches("7") && !fio.matches("8"));
    assert!(worker.is_worker() && !fio.is_worker());
    assert_eq!([names.flags(&Flags::parse("R")), names.flags(&Flags::parse("W"))], [0, 1]);
    assert_eq!(names.flags_at(2), None);
}

#[test]
fn tasks_beyond_the_maximum_are_unknown_and_no_other_task() {
    let mut names = Names::default();
    let task = |tid| Task { tid, name: "cc".into(), ..Task::default() };
    let last = (0..MAX_NAMES as u32 + 5).map(|tid| names.task(&task(tid))).last();
    assert_eq!(last.and_then(|number| names.task_at(number)), Some(&Task::default()));
    assert_eq!((names.all_tasks().len(), names.task(&task(9))), (MAX_NAMES, 9));
    // Flags beyond the maximum are unknown too.
    let number =
        (0..=MAX_NAMES as i32).map(|error| names.flags(&Flags { error, ..Flags::parse("R") })).last();
    assert_eq!(number.and_then(|number| names.flags_at(number)), Some(&Flags::default()));
}

#[test]
fn an_end_is_known_until_it_is_replaced() {
    let mut ends = Ends::default();
    assert_eq!(ends.find(8), None);
    assert_eq!(ends.push(8), 0);
    for end in 100..100 + RECENT_ENDS as u64 - 1 {
        ends.push(end);
    }
    assert_eq!((ends.find(8), ends.find(100)), (Some(0), Some(1)));
    assert_eq!((ends.requests_ago(0), ends.requests_ago(RECENT_ENDS - 1)), (RECENT_ENDS as u64, 1));
    assert_eq!(ends.push(7), 0);
    assert_eq!(ends.find(8), None);
}
