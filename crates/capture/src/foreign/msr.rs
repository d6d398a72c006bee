//! Block traces of MSR Cambridge (SNIA IOTTA), as CSV.
//!
//! For: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: times in units of 100 ns since 1601, offsets and sizes in bytes.
//! Not for: other traces of that repository.

use super::{Into, Lines, Trouble};
use crate::names::Task;
use std::io::BufRead;

/// ns of the unit of times.
const UNIT_NS: u64 = 100;

/// Whether a line is of such a trace, or its heading.
pub(super) fn is_msr_line(line: &str) -> bool {
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

pub(super) fn read_msr(from: &mut dyn BufRead, into: &mut Into<'_>) -> Result<(), Trouble> {
    let mut lines = Lines::over(from);
    let mut first = None;
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if lines.number == 1 && fields.first().is_some_and(|field| field.eq_ignore_ascii_case("timestamp")) {
            continue;
        }
        let [time, host, disk, word, offset, size, response] = fields[..] else {
            return Err(lines.wrong("a line has seven fields"));
        };
        let number = |text: &str| text.parse::<u64>().ok();
        let figures = (number(time), number(offset), number(size), number(response));
        let (Some(time), Some(offset), Some(size), Some(response)) = figures else {
            return Err(lines.wrong("time, offset, size and response time are numbers"));
        };
        let Some(rwbs) = msr_kind(word) else { return Err(lines.wrong("the type is Read or Write")) };
        let task = Task { name: format!("{host}.{disk}"), ..Task::default() };
        if size == 0 {
            continue;
        }
        if size > u64::from(u32::MAX) * crate::SECTOR {
            return Err(lines.wrong("the size is beyond 2 TiB"));
        }
        let at_ns = time.saturating_sub(*first.get_or_insert(time)).saturating_mul(UNIT_NS);
        let latency_ns = Some(response.saturating_mul(UNIT_NS));
        into.operation(at_ns, latency_ns, rwbs, (offset, size), &task)?;
    }
    Ok(())
}
