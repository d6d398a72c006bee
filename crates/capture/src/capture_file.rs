//! The capture file.
//!
//! For: writing rows as they come, and reading them back as far as they are whole. Not for: what they mean.
//!
//! A line `fathom capture 1`, then frames: a letter (`H` header, `B` block, `E` end), the length of what follows and its CRC-32 as numbers
//! of 32 bits, the lowest byte first, then that. Header and end are JSON. A block has up to [`BLOCK_ROWS`] rows in columns, compressed
//! with LZ4; each is whole in itself, so a file that was cut off is readable up to its last whole block.

use crate::row::{Flags, Names, Row, RowKind, Task};
use model::captured::{Ending, Origin};
use std::collections::HashMap;
use std::io;
use std::io::{Read, Write};

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

/// Writes a number.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A difference as a number without a sign, small where it is small.
fn folded(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The difference again.
fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Bytes that are read from.
#[derive(Debug)]
struct Bytes<'b> {
    rest: &'b [u8],
}

impl<'b> Bytes<'b> {
    /// The next number; `None` where there is none, or it is no number of ours.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let (&first, rest) = self.rest.split_first()?;
        if first < 0x80 {
            self.rest = rest;
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for (at, &byte) in rest.iter().enumerate().take(9) {
            number |= u64::from(byte & 0x7f) << (7 * (at + 1));
            if byte < 0x80 {
                self.rest = &rest[at + 1..];
                return Some(number);
            }
        }
        None
    }

    /// So many bytes.
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

/// The first line of a capture file; its number is that of the format.
pub const MAGIC: &[u8] = b"fathom capture 1\n";
/// Bytes before what is in a frame.
const HEAD: usize = 9;
/// Most bytes in a frame: no block of ours comes near, and nobody's length makes more be taken.
const MOST: usize = 4 << 20;

/// What is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameKind {
    Header,
    Block,
    End,
}

impl FrameKind {
    fn letter(self) -> u8 {
        match self {
            Self::Header => b'H',
            Self::Block => b'B',
            Self::End => b'E',
        }
    }

    fn from_letter(letter: u8) -> Option<Self> {
        [Self::Header, Self::Block, Self::End].into_iter().find(|kind| kind.letter() == letter)
    }
}

/// Writes one.
fn write_frame(to: &mut impl Write, kind: FrameKind, inside: &[u8]) -> io::Result<()> {
    let length = u32::try_from(inside.len()).ok().filter(|length| *length as usize <= MOST);
    let length = length.ok_or_else(|| io::Error::other("a block of the capture is too long"))?;
    let mut head = [0; HEAD];
    head[0] = kind.letter();
    head[1..5].copy_from_slice(&length.to_le_bytes());
    head[5..9].copy_from_slice(&crc32fast::hash(inside).to_le_bytes());
    to.write_all(&head)?;
    to.write_all(inside)
}

/// What reading one came to.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// It is whole, and in the buffer.
    Frame(FrameKind),
    /// Nothing is left.
    Nothing,
    /// The file ends within it.
    Cut,
    /// It is no frame, or not as it was written.
    Damaged(String),
}

/// Reads the next one into the buffer.
fn read_frame(from: &mut impl Read, inside: &mut Vec<u8>) -> Next {
    let mut head = [0; HEAD];
    match read_full(from, &mut head) {
        Ok(0) => return Next::Nothing,
        Ok(HEAD) => {}
        Ok(_) => return Next::Cut,
        Err(e) => return Next::Damaged(format!("it cannot be read: {e}")),
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let Some(kind) = FrameKind::from_letter(head[0]) else {
        return Next::Damaged("what stands there is no block of a capture".into());
    };
    let length = word(1) as usize;
    if length > MOST {
        return Next::Damaged(format!("a block of {length} bytes, of which none has more than {MOST}"));
    }
    inside.clear();
    match from.take(length as u64).read_to_end(inside) {
        Ok(got) if got == length => {}
        Ok(_) => return Next::Cut,
        Err(e) => return Next::Damaged(format!("it cannot be read: {e}")),
    }
    if crc32fast::hash(inside) == word(5) {
        Next::Frame(kind)
    } else {
        Next::Damaged("the checksum does not match".into())
    }
}

/// Reads as many bytes as there is room for, fewer only at the end of the file.
fn read_full(from: &mut impl Read, mut room: &mut [u8]) -> io::Result<usize> {
    let all = room.len();
    while !room.is_empty() {
        match from.read(room) {
            Ok(0) => break,
            Ok(got) => room = &mut room[got..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(all - room.len())
}

/// A capture file that is being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    to: W,
    rows: Vec<Row>,
    has_queue: bool,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Begins with the header.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn new(mut to: W, origin: &Origin) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        write_frame(&mut to, FrameKind::Header, &serde_json::to_vec(origin)?)?;
        to.flush()?;
        Ok(Self { to, rows: Vec::with_capacity(BLOCK_ROWS), has_queue: origin.queue, written: 0 })
    }

    /// Adds a row; every so many of them are written.
    ///
    /// # Errors
    /// Why they cannot be written.
    pub fn push(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        self.rows.push(*row);
        if self.rows.len() < BLOCK_ROWS { Ok(()) } else { self.flush(names) }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.written + self.rows.len() as u64
    }

    /// Writes the rows that wait.
    ///
    /// # Errors
    /// Why they cannot be written.
    pub fn flush(&mut self, names: &Names) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        write_frame(&mut self.to, FrameKind::Block, &encode(&self.rows, names, self.has_queue))?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        self.to.flush()
    }

    /// Ends it.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn finish(mut self, names: &Names, ending: &Ending) -> io::Result<W> {
        self.flush(names)?;
        let ending = Ending { rows: self.written, ..ending.clone() };
        write_frame(&mut self.to, FrameKind::End, &serde_json::to_vec(&ending)?)?;
        self.to.flush()?;
        Ok(self.to)
    }
}

/// Why a file is no capture that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It begins as no capture does.
    #[error("it is no capture of fathom's")]
    NoCapture,
    /// It is of a version that this one does not know.
    #[error("it is a capture of format {0}, and this fathom reads format 1; use the fathom that wrote it")]
    Version(String),
    /// Its header is not there.
    #[error("it is a capture whose header is {0}, so nothing in it can be read")]
    Header(String),
}

/// A capture file that is being read.
#[derive(Debug)]
pub struct Reader<R: Read> {
    from: R,
    at: u64,
    inside: Vec<u8>,
    rows: Vec<Row>,
    is_over: bool,
    /// Its header.
    pub origin: Origin,
    /// Tasks and flags of the rows so far.
    pub names: Names,
    /// Its trailer, once it was read.
    pub ending: Option<Ending>,
    /// Why it ends before the trailer, once that was met.
    pub damage: Option<String>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// Why it is no capture that can be read.
    pub fn new(mut from: R) -> Result<Self, Unreadable> {
        let mut magic = Vec::new();
        let line = MAGIC.len() as u64;
        let read = from.by_ref().take(line).read_to_end(&mut magic);
        if read.is_err() || magic != MAGIC {
            return Err(unknown(&magic));
        }
        let mut inside = Vec::new();
        let header = |why: &str| Unreadable::Header(why.into());
        match read_frame(&mut from, &mut inside) {
            Next::Frame(FrameKind::Header) => {}
            Next::Frame(_) | Next::Damaged(_) => return Err(header("damaged")),
            Next::Nothing | Next::Cut => return Err(header("cut off")),
        }
        let origin = serde_json::from_slice(&inside).map_err(|_| header("damaged"))?;
        let at = line + (HEAD + inside.len()) as u64;
        let (rows, names) = (Vec::new(), Names::default());
        Ok(Self { from, at, inside, rows, is_over: false, origin, names, ending: None, damage: None })
    }

    /// The rows of the block that was read last, with the names that they refer to.
    pub fn last(&self) -> (&[Row], &Names) {
        (&self.rows, &self.names)
    }

    /// The rows of the next block; `None` at the end, whichever that is.
    pub fn block(&mut self) -> Option<&[Row]> {
        if self.is_over {
            return None;
        }
        let why = match read_frame(&mut self.from, &mut self.inside) {
            Next::Frame(FrameKind::Block) => {
                self.rows.clear();
                match decode(&self.inside, &mut self.names, &mut self.rows) {
                    Ok(()) => {
                        self.at += (HEAD + self.inside.len()) as u64;
                        return Some(&self.rows);
                    }
                    Err(why) => Some(format!("damaged at byte {}: {why}", self.at)),
                }
            }
            Next::Frame(FrameKind::End) => match serde_json::from_slice(&self.inside) {
                Ok(ending) => {
                    self.ending = Some(ending);
                    None
                }
                Err(_) => Some(format!("damaged at byte {}: its end is not understood", self.at)),
            },
            Next::Frame(FrameKind::Header) => Some(format!("damaged at byte {}: a second header", self.at)),
            Next::Nothing => Some(format!("cut off at byte {}: its end is missing", self.at)),
            Next::Cut => Some(format!("cut off within the block at byte {}", self.at)),
            Next::Damaged(why) => Some(format!("damaged at byte {}: {why}", self.at)),
        };
        self.damage = why;
        self.is_over = true;
        None
    }
}

/// What begins so.
fn unknown(magic: &[u8]) -> Unreadable {
    let same = MAGIC.len() - 2;
    match magic.strip_prefix(&MAGIC[..same]) {
        Some(version) => Unreadable::Version(String::from_utf8_lossy(version).trim().to_owned()),
        None => Unreadable::NoCapture,
    }
}

#[test]
fn numbers_come_back_and_what_is_cut_off_is_none() {
    for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
        let mut out = Vec::new();
        put(&mut out, number);
        assert_eq!(Bytes { rest: &out }.number(), Some(number));
        assert_eq!(Bytes { rest: &out[..out.len() - 1] }.number(), None, "{number}");
    }
    for difference in [0, -1, 1, i64::MIN, i64::MAX] {
        assert_eq!(unfolded(folded(difference)), difference);
    }
    assert_eq!(Bytes { rest: &[0xff; 20] }.number(), None);
}

#[cfg(test)]
mod tests;
