//! Names: tasks and flags that rows refer to by number.
//!
//! For: keeping each once, in memory and in a block of a file. Not for: finding out about a task (the crate `machine` does).

use crate::row::Flags;
use std::collections::HashMap;

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
