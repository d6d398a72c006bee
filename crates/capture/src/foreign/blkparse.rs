//! What blkparse prints by default.
//!
//! For: `8,0 3 1 0.000036983 697 D W 223490 + 8 [kjournald]`: device, CPU, number, time, process, action, letters, sector, sectors, name.
//! Not for: formats of a user's own (`-f`), nor devices that have no requests, of which blktrace shows no issue.

use super::{Into, Lines, Paired, Trouble};
use crate::names::Task;
use crate::row::{Flags, op};
use crate::trace::event::{Event, Step};
use model::captured::Ending;
use std::io::BufRead;

/// Whether a line is one of an event.
pub(super) fn is_blkparse_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.len() >= 6 && is_device(words[0]) && time_ns(words[3]).is_some()
}

fn is_device(word: &str) -> bool {
    word.split_once(',')
        .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok())
}

/// `0.000036983`.
fn time_ns(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.split_once('.')?;
    let fraction: u64 = Some(fraction).filter(|text| text.len() == 9)?.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// What stands in brackets at the end of a line: the name of a task, which may have spaces, or the error of a completion.
fn bracketed(line: &str) -> &str {
    line.split_once(" [").map_or("", |(_, rest)| rest.trim_end().trim_end_matches(']'))
}

/// A negative error number; blkparse prints the 16 bits that the kernel puts it into as a number without a sign.
fn error(text: &str) -> i32 {
    let bits = text.parse::<u16>().map(u16::cast_signed).or_else(|_| text.parse::<i16>());
    -bits.map_or(0, i32::from).abs()
}

pub(super) fn read_blkparse(from: &mut dyn BufRead, into: &mut Into<'_>, ending: &mut Ending) -> Result<(), Trouble> {
    let mut lines = Lines::over(from);
    let mut paired = Paired::new();
    let mut device = None;
    while let Some(line) = lines.next()? {
        // Behind the events stands a summary.
        if !is_blkparse_line(&line) {
            if line.starts_with("CPU") || line.starts_with("Total") {
                break;
            }
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let step = match words[5] {
            "D" => Step::Issued,
            "C" => Step::Completed,
            "I" => Step::Inserted,
            "R" => Step::Requeued,
            _ => continue,
        };
        let of = device.get_or_insert_with(|| words[0].to_owned());
        if *of != words[0] {
            return Err(lines.wrong("it is of several devices; select one with `blkparse -i`"));
        }
        let (Some(at_ns), Ok(tid)) = (time_ns(words[3]), words[4].parse::<u32>()) else {
            return Err(lines.wrong("time and process are numbers"));
        };
        let letters = words.get(6).copied().unwrap_or_default();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let placed = words.get(8) == Some(&"+");
        let (sector, sectors) = if placed { (number(7), number(9)) } else { (Some(0), Some(0)) };
        let (Some(sector), Some(sectors)) = (sector, sectors.and_then(|n| u32::try_from(n).ok())) else {
            return Err(lines.wrong("sector and sectors are numbers"));
        };
        let last = bracketed(&line);
        let error = if step == Step::Completed { error(last) } else { 0 };
        let task = Task { tid, name: last.to_owned(), ..Task::default() };
        let flags = paired.names.flags(&Flags { error, ..Flags::parse(letters) });
        let task = if step == Step::Completed { 0 } else { paired.names.task(&task) };
        let op = op(letters.as_bytes(), sectors);
        paired.add(Event { at_ns, step, op, sector, sectors, flags, task, device: 0 }, into)?;
    }
    if paired.events == 0 {
        return Err(Trouble::Foreign("it has no request that was issued or completed (D, C)".into()));
    }
    Ok(paired.finish(into, ending)?)
}
