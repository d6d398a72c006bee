//! A row: one request as it was seen, and what the kernel's letters say about it.
//!
//! For: what stands in a capture file. Not for: how it is written there ([`crate::file`]).

use model::captured::Op;
use std::collections::HashMap;

/// A request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// When it was issued, ns since the capture began.
    pub issue_ns: u64,
    /// From issue to completion; `None` where that was not seen.
    pub latency_ns: Option<u64>,
    /// From insertion into the scheduler to issue; `None` where it was not inserted, or nobody looked.
    pub queued_ns: Option<u64>,
    /// First sector of 512 bytes; 0 where it has no sectors.
    pub sector: u64,
    /// Sectors of 512 bytes.
    pub sectors: u32,
    /// Index of its [`Flags`] among the names.
    pub flags: u32,
    /// Index of its task among the names.
    pub task: u32,
}

impl Row {
    /// The sector behind its last.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }

    /// How much it moves or discards.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * crate::SECTOR
    }
}

/// What kind of row it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A request or bio of the device.
    #[default]
    Request,
    /// A flush as its owner asked for it, alone or with a write, from being queued until all of it is done. What the device got for it
    /// stands in rows of their own.
    Asked,
}

/// What many rows have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Which kind of row.
    pub kind: RowKind,
    /// The kernel's letters, such as `WS` or `FWFSM` (`blk_fill_rwbs`).
    pub rwbs: String,
    /// The error it completed with, as a negative `errno`; 0 for none.
    pub error: i32,
}

impl Flags {
    /// A request with these letters.
    pub fn parse(rwbs: &str) -> Self {
        Self { rwbs: rwbs.to_owned(), ..Self::default() }
    }

    /// What such a request of so many sectors does.
    pub fn op(&self, sectors: u32) -> Op {
        op(self.rwbs.as_bytes(), sectors)
    }

    /// Whether it asks for the cache to be flushed before it.
    pub fn has_preflush(&self) -> bool {
        split(self.rwbs.as_bytes()).0
    }

    /// Whether it must be stable when it completes.
    pub fn has_fua(&self) -> bool {
        self.has(b'F')
    }

    /// Whether one of the letters behind the operation is there: `F` FUA, `A` read ahead, `S` synchronous, `M` metadata.
    pub fn has(&self, letter: u8) -> bool {
        let (_, rest) = split(self.rwbs.as_bytes());
        rest.get(1..).is_some_and(|letters| letters.contains(&letter))
    }
}

/// Whether a flush comes before it, and the letters from the operation on.
fn split(letters: &[u8]) -> (bool, &[u8]) {
    match letters {
        [b'F', rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, letters),
    }
}

/// The operation by the kernel's letters. What it has no letter for (`N`) and has sectors writes zeroes.
pub(crate) fn op(letters: &[u8], sectors: u32) -> Op {
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

/// Most tasks and most flags that are told apart: what comes beyond is the last of them. Bounds what a hostile file can take.
const MAX_NAMES: usize = 1 << 18;

/// A task that issued requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// Number of the thread.
    pub tid: u32,
    /// Number of its process; `None` where it was gone before it could be asked.
    pub pid: Option<u32>,
    /// Whether it is a kernel thread.
    pub kernel: bool,
    /// As the kernel has it (comm), or what a foreign trace says in its place.
    pub name: String,
}

impl Task {
    /// Whether it is a kernel worker, which does the work of others.
    pub fn is_worker(&self) -> bool {
        self.name.starts_with("kworker/")
    }

    /// Whether it is meant by a name, or by the number of a thread or process.
    pub fn is(&self, word: &str) -> bool {
        let number = word.parse().ok();
        self.name == word || number.is_some_and(|n| n == self.tid || Some(n) == self.pid)
    }
}

/// Each task and each flags once.
#[derive(Clone, Debug, Default)]
pub struct Names {
    tasks: Vec<Task>,
    flags: Vec<Flags>,
    by_task: HashMap<Task, u32>,
    by_flags: HashMap<Flags, u32>,
}

impl Names {
    /// The number of a task.
    pub fn task(&mut self, task: &Task) -> u32 {
        number(&mut self.tasks, &mut self.by_task, task)
    }

    /// The number of flags.
    pub fn flags(&mut self, flags: &Flags) -> u32 {
        number(&mut self.flags, &mut self.by_flags, flags)
    }

    /// The task with this number.
    pub fn task_at(&self, number: u32) -> Option<&Task> {
        self.tasks.get(number as usize)
    }

    /// The flags with this number.
    pub fn flags_at(&self, number: u32) -> Option<&Flags> {
        self.flags.get(number as usize)
    }

    /// All flags, by number.
    pub fn all_flags(&self) -> &[Flags] {
        &self.flags
    }

    /// All tasks, by number.
    pub fn all_tasks(&self) -> &[Task] {
        &self.tasks
    }
}

fn number<T: Clone + Eq + std::hash::Hash>(all: &mut Vec<T>, by: &mut HashMap<T, u32>, one: &T) -> u32 {
    if let Some(number) = by.get(one) {
        return *number;
    }
    if all.len() >= MAX_NAMES {
        return (MAX_NAMES - 1) as u32;
    }
    let number = all.len() as u32;
    all.push(one.clone());
    by.insert(one.clone(), number);
    number
}

#[test]
fn the_letters_of_the_kernel_are_told_apart() {
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
    for (letters, meant) in table {
        assert_eq!(Flags::parse(letters).op(8), meant, "{letters}");
    }
    assert_eq!((Flags::parse("FWS").op(0), Flags::parse("N").op(0)), (Op::Flush, Op::Other));
    let all = Flags::parse("FWFSM");
    assert!(all.has_preflush() && all.has_fua() && all.has(b'M') && !all.has(b'A'));
    let fua = Flags::parse("WFS");
    assert!(!fua.has_preflush() && fua.has_fua() && !Flags::parse("FWS").has_fua());
}

#[test]
fn each_has_one_number() {
    let mut names = Names::default();
    let fio = Task { tid: 7, pid: Some(5), name: "fio".into(), ..Task::default() };
    let worker = Task { tid: 8, kernel: true, name: "kworker/0:1".into(), ..Task::default() };
    assert_eq!([names.task(&fio), names.task(&worker), names.task(&fio)], [0, 1, 0]);
    assert_eq!(names.task_at(1), Some(&worker));
    assert!(fio.is("fio") && fio.is("5") && fio.is("7") && !fio.is("8"));
    assert!(worker.is_worker() && !fio.is_worker());
    assert_eq!([names.flags(&Flags::parse("R")), names.flags(&Flags::parse("W"))], [0, 1]);
    assert_eq!(names.flags_at(2), None);
}
