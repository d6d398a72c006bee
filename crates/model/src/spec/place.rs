//! Where workers and their memory are, and who goes first: `cpus`, `memory-nodes`, `io-priority`, `nice`.
//!
//! For: their parsers. Not for: which CPUs and nodes there are (the plan).

use super::limits::{MAX_CPU, MAX_NODE};
use super::number::{count, shown};
use super::parsers::joined;
use crate::job::{IoPriority, MemoryNodes};

/// Adds CPUs to a list: `0-3,8`.
///
/// # Errors
/// What was wrong and what to type.
pub fn cpus(list: &mut Vec<u32>, text: &str) -> Result<(), String> {
    for piece in text.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let number = |t: &str| {
            count(t, 0, MAX_CPU)
                .map_err(|_| format!("{} is no CPU; type their numbers, such as 0-3,8", shown(t)))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("{} runs backwards; type the smaller number first", shown(piece)));
        }
        for cpu in first..=last {
            if list.contains(&cpu) {
                return Err(format!("CPU {cpu} is there twice; type it once"));
            }
            list.push(cpu);
        }
    }
    Ok(())
}

/// NUMA nodes of memory: `bind:0-1`, `prefer:0`, `interleave:0-1`, `local`.
///
/// # Errors
/// What was wrong and what to type.
pub fn memory_nodes(text: &str) -> Result<MemoryNodes, String> {
    let number = |t: &str| {
        count(t, 0, MAX_NODE).map_err(|_| format!("{} is no NUMA node; type its number, such as 0", shown(t)))
    };
    let list = |t: &str| -> Result<Vec<u32>, String> {
        let mut nodes = Vec::new();
        for piece in t.split(',') {
            let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
            let (first, last) = (number(first)?, number(last)?);
            if first > last || nodes.iter().any(|n| (first..=last).contains(n)) {
                return Err(format!("{} is no list of NUMA nodes; type each once, such as 0-1,3", shown(t)));
            }
            nodes.extend(first..=last);
        }
        Ok(nodes)
    };
    match text.split_once(':') {
        None if text == "local" => Ok(MemoryNodes::Local),
        Some(("bind", nodes)) => list(nodes).map(MemoryNodes::Bind),
        Some(("prefer", node)) => number(node).map(MemoryNodes::Prefer),
        Some(("interleave", nodes)) => list(nodes).map(MemoryNodes::Interleave),
        _ => Err(format!("{} is no policy; type bind:0-1, prefer:0, interleave:0-1 or local", shown(text))),
    }
}

/// NUMA nodes of memory as they are typed.
pub fn of_memory_nodes(nodes: &MemoryNodes) -> String {
    match nodes {
        MemoryNodes::Local => "local".into(),
        MemoryNodes::Bind(nodes) => format!("bind:{}", of_cpus(nodes)),
        MemoryNodes::Prefer(node) => format!("prefer:{node}"),
        MemoryNodes::Interleave(nodes) => format!("interleave:{}", of_cpus(nodes)),
    }
}

/// CPUs as they are typed, those that follow each other as a range: `0-3,8`.
pub fn of_cpus(cpus: &[u32]) -> String {
    let ranges = cpus.chunk_by(|before, next| before.checked_add(1) == Some(*next));
    joined(ranges.map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        range => joined(range.iter().map(u32::to_string)),
    }))
}

/// A priority of I/O: `rt:0` to `rt:7`, `be:0` to `be:7`, `idle`.
///
/// # Errors
/// What was wrong and what to type.
pub fn io_priority(text: &str) -> Result<IoPriority, String> {
    let level = |level: &str| level.parse().ok().filter(|level: &u8| *level < 8 && text.len() == 4);
    let read = match text.split_once(':') {
        Some(("rt", number)) => level(number).map(IoPriority::Realtime),
        Some(("be", number)) => level(number).map(IoPriority::BestEffort),
        None if text == "idle" => Some(IoPriority::Idle),
        _ => None,
    };
    read.ok_or_else(|| {
        format!(
            "{} is no priority; type rt:0 to rt:7, be:0 to be:7 or idle, of which 0 goes first",
            shown(text)
        )
    })
}

/// A priority as it is typed.
pub fn of_io_priority(priority: IoPriority) -> String {
    match priority {
        IoPriority::Realtime(level) => format!("rt:{level}"),
        IoPriority::BestEffort(level) => format!("be:{level}"),
        IoPriority::Idle => "idle".into(),
    }
}

/// A nice value: -20 to 19.
///
/// # Errors
/// What was wrong and what to type.
pub fn nice(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|n: &i32| (-20..20).contains(n) && *text == n.to_string());
    number.ok_or_else(|| format!("{} is no nice value; type -20 to 19, of which -20 goes first", shown(text)))
}

#[test]
fn places_are_read_as_they_are_shown() {
    for word in ["0", "0-3,8", "5,2-3", "3,2,1"] {
        let mut list = Vec::new();
        assert_eq!((cpus(&mut list, word), of_cpus(&list).as_str()), (Ok(()), word));
    }
    for word in ["local", "bind:0-1,4", "prefer:3", "interleave:0-1"] {
        assert_eq!(memory_nodes(word).map(|m| of_memory_nodes(&m)).as_deref(), Ok(word));
    }
    for bad in
        ["", "local:0", "bind", "bind:", "bind:1-0", "bind:0,0", "prefer:0-1", "interleave:x", "bind:1024"]
    {
        assert!(memory_nodes(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
    assert_eq!((of_cpus(&[u32::MAX, 0]), of_cpus(&[])), ("4294967295,0".into(), String::new()));
}

#[test]
fn cpus_are_lists_of_numbers_and_ranges() {
    let mut list = Vec::new();
    assert_eq!((cpus(&mut list, "0-3,8"), list.as_slice()), (Ok(()), [0, 1, 2, 3, 8].as_slice()));
    for bad in ["", "3-1", "a", "99999", "0-3,2", "1-"] {
        assert!(cpus(&mut Vec::new(), bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}
