//! A block: rows in columns.
//!
//! For: few bytes for each row. Not for: checksums and files.
//!
//! Columns, each a number for each row (`varint`): task and flags by their places in the block's own lists; time since the last
//! issue; latency + 1, or 0 for none; sectors; of rows with sectors their distance from the end of the one before, in the largest unit that
//! divides all; time in the queue + 1 where that was asked for. Like numbers stand together, which is what compresses.

use super::varint::{Bytes, folded, put, unfolded};
use crate::names::{Names, Task};
use crate::row::{Flags, Row, RowKind};
use std::collections::HashMap;

/// Most rows of a block.
pub const BLOCK_ROWS: usize = 1 << 14;
/// Most bytes that a block takes when it is not compressed: more than that many rows ever need.
const MOST_BYTES: usize = 4 << 20;
/// Most bytes of a name; what is longer is cut.
const MOST_NAME: usize = 256;
/// Bits of what a block is like.
const IN_ORDER: u64 = 1;
const HAS_QUEUE: u64 = 2;
const IS_KERNEL: u64 = 1;

/// Writes rows.
pub fn encode(rows: &[Row], names: &Names, has_queue: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * 12 + 256);
    let in_order = rows.windows(2).all(|pair| pair[0].issue_ns <= pair[1].issue_ns);
    let scale = scale(rows);
    put(&mut out, rows.len() as u64);
    put(&mut out, if in_order { IN_ORDER } else { 0 } | if has_queue { HAS_QUEUE } else { 0 });
    put(&mut out, u64::from(scale));
    let tasks = list(rows.iter().map(|row| row.task));
    put(&mut out, tasks.len() as u64);
    tasks.0.iter().for_each(|number| put_task(&mut out, names.task_at(*number)));
    let flags = list(rows.iter().map(|row| row.flags));
    put(&mut out, flags.len() as u64);
    flags.0.iter().for_each(|number| put_flags(&mut out, names.flags_at(*number)));
    for row in rows {
        put(&mut out, tasks.place(row.task));
    }
    for row in rows {
        put(&mut out, flags.place(row.flags));
    }
    let mut last = 0;
    for row in rows {
        let since = row.issue_ns.wrapping_sub(last);
        put(&mut out, if in_order { since } else { folded(since as i64) });
        last = row.issue_ns;
    }
    for row in rows {
        put(&mut out, above(row.latency_ns));
    }
    for row in rows {
        put(&mut out, u64::from(row.sectors) >> scale);
    }
    let mut end = 0_u64;
    for row in rows.iter().filter(|row| row.sectors > 0) {
        let distance = (row.sector >> scale).wrapping_sub(end >> scale);
        put(&mut out, folded(distance as i64));
        end = row.end();
    }
    if has_queue {
        for row in rows {
            put(&mut out, above(row.queued_ns));
        }
    }
    compressed(&out)
}

/// Reads rows, behind those that are there.
///
/// # Errors
/// What is wrong with the bytes.
pub fn decode(block: &[u8], names: &mut Names, into: &mut Vec<Row>) -> Result<(), &'static str> {
    let plain = plain(block)?;
    rows(&plain, names, into).ok_or("its columns end too early, or hold what fathom does not write")
}

fn rows(plain: &[u8], names: &mut Names, into: &mut Vec<Row>) -> Option<()> {
    let mut bytes = Bytes { rest: plain };
    let count = usize::try_from(bytes.number()?).ok().filter(|count| *count <= BLOCK_ROWS)?;
    let like = bytes.number()?;
    let scale = u32::try_from(bytes.number()?).ok().filter(|scale| *scale < 32)?;
    let mut tasks = Vec::new();
    for _ in 0..listed(&mut bytes, count)? {
        tasks.push(names.task(&task(&mut bytes)?));
    }
    let mut all_flags = Vec::new();
    for _ in 0..listed(&mut bytes, count)? {
        all_flags.push(names.flags(&flags(&mut bytes)?));
    }
    let start = into.len();
    for _ in 0..count {
        let task = *tasks.get(usize::try_from(bytes.number()?).ok()?)?;
        into.push(Row { task, ..Row::default() });
    }
    let new = &mut into[start..];
    for row in &mut *new {
        row.flags = *all_flags.get(usize::try_from(bytes.number()?).ok()?)?;
    }
    let mut last = 0_u64;
    for row in &mut *new {
        let number = bytes.number()?;
        let since = if like & IN_ORDER != 0 { number } else { unfolded(number) as u64 };
        last = last.wrapping_add(since);
        row.issue_ns = last;
    }
    for row in &mut *new {
        row.latency_ns = bytes.number()?.checked_sub(1);
    }
    for row in &mut *new {
        row.sectors = u32::try_from(bytes.number()?.checked_shl(scale)?).ok()?;
    }
    let mut end = 0_u64;
    for row in new.iter_mut().filter(|row| row.sectors > 0) {
        let distance = unfolded(bytes.number()?);
        row.sector = (end >> scale).wrapping_add(distance as u64).wrapping_shl(scale);
        end = row.end();
    }
    if like & HAS_QUEUE != 0 {
        for row in &mut *new {
            row.queued_ns = bytes.number()?.checked_sub(1);
        }
    }
    bytes.rest.is_empty().then_some(())
}

/// How many are in a list: no more than rows that could refer to them.
fn listed(bytes: &mut Bytes<'_>, rows: usize) -> Option<usize> {
    usize::try_from(bytes.number()?).ok().filter(|count| *count <= rows)
}

/// By how many bits all sectors can be shifted.
fn scale(rows: &[Row]) -> u32 {
    let all = rows.iter().fold(0, |all, row| all | row.sector | u64::from(row.sectors));
    if all == 0 { 0 } else { all.trailing_zeros().min(31) }
}

/// 0 for nothing.
fn above(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}

/// Numbers that occur, in the order in which they do, and where each stands.
struct List(Vec<u32>, HashMap<u32, u64>);

impl List {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn place(&self, number: u32) -> u64 {
        self.1.get(&number).copied().unwrap_or(0)
    }
}

fn list(numbers: impl Iterator<Item = u32>) -> List {
    let mut list = List(Vec::new(), HashMap::new());
    for number in numbers {
        list.1.entry(number).or_insert_with(|| {
            list.0.push(number);
            list.0.len() as u64 - 1
        });
    }
    list
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(MOST_NAME);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    put(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn text(bytes: &mut Bytes<'_>) -> Option<String> {
    let length = usize::try_from(bytes.number()?).ok().filter(|length| *length <= MOST_NAME)?;
    String::from_utf8(bytes.take(length)?.to_vec()).ok()
}

fn put_task(out: &mut Vec<u8>, task: Option<&Task>) {
    let nobody = Task::default();
    let task = task.unwrap_or(&nobody);
    put(out, u64::from(task.tid));
    put(out, task.pid.map_or(0, |pid| u64::from(pid) + 1));
    put(out, u64::from(task.kernel) * IS_KERNEL);
    put_text(out, &task.name);
}

fn task(bytes: &mut Bytes<'_>) -> Option<Task> {
    let tid = u32::try_from(bytes.number()?).ok()?;
    let pid = match bytes.number()? {
        0 => None,
        above => Some(u32::try_from(above - 1).ok()?),
    };
    Some(Task { tid, pid, kernel: bytes.number()? & IS_KERNEL != 0, name: text(bytes)? })
}

fn put_flags(out: &mut Vec<u8>, flags: Option<&Flags>) {
    let none = Flags::default();
    let flags = flags.unwrap_or(&none);
    put(out, u64::from(flags.kind == RowKind::Asked));
    put(out, folded(i64::from(flags.error)));
    put_text(out, &flags.rwbs);
}

fn flags(bytes: &mut Bytes<'_>) -> Option<Flags> {
    let kind = match bytes.number()? {
        0 => RowKind::Request,
        1 => RowKind::Asked,
        _ => return None,
    };
    let error = i32::try_from(unfolded(bytes.number()?)).ok()?;
    Some(Flags { kind, error, rwbs: text(bytes)? })
}

/// The length before, then LZ4.
fn compressed(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, plain.len() as u64);
    out.extend(lz4_flex::block::compress(plain));
    out
}

fn plain(block: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Bytes { rest: block };
    let length = bytes.number().and_then(|length| usize::try_from(length).ok());
    let length =
        length.filter(|length| *length <= MOST_BYTES).ok_or("its length is none that a block has")?;
    let plain = lz4_flex::block::decompress(bytes.rest, length).map_err(|_| "it cannot be decompressed")?;
    if plain.len() == length { Ok(plain) } else { Err("it is shorter than it says") }
}
