//! The capture file: written while rows come in, and read block by block as far as the file is intact.
//!
//! 1. The file begins with a line `fathom capture 1`, then frames follow: a letter (`H` header, `B` block, `E` end), the length and the
//!    CRC-32 of the content as little-endian 32-bit numbers, and the content.
//! 2. Header and end are JSON. A block has up to [`BLOCK_ROWS`] rows in columns, compressed with LZ4. A block can be decoded without the
//!    others, so a truncated file is readable up to its last complete block.
//! 3. A block lists its tasks and flags. Its columns are, for each row: task and flags by their index in these lists; time since the last
//!    issue; latency + 1, or 0 without a latency; sectors; for rows with sectors the distance from the end of the previous row; queue
//!    time + 1 if the queue was traced. Sectors and distances are counted in the largest power of two that divides all of them. Similar numbers
//!    next to each other compress well.
//! 4. Numbers have as many bytes as they need: seven bits each, the lowest first.

use model::captured::{Ending, Origin};
use std::collections::HashMap;
use std::io;
use std::io::{Read, Write};
use trace::row::{Flags, Names, Row, RowKind, Task};

/// Maximum number of rows of a block.
pub const BLOCK_ROWS: usize = 1 << 14;
/// Maximum number of bytes of a name. Longer names are cut.
const MAX_NAME_BYTES: usize = 256;
/// Maximum number of bytes of an encoded number.
const MAX_NUMBER_BYTES: usize = 10;
/// Maximum number of bytes of a row with its own task and its own flags: two names and at most 14 numbers.
const MAX_ROW_BYTES: usize = 2 * MAX_NAME_BYTES + 14 * MAX_NUMBER_BYTES;
/// Maximum number of bytes of an uncompressed block: its rows, and five numbers before them. The limit bounds the memory that a hostile file
/// can use.
const MAX_BLOCK_BYTES: usize = BLOCK_ROWS * MAX_ROW_BYTES + 5 * MAX_NUMBER_BYTES;
/// Flag of a block: the rows are ordered by issue.
const IN_ORDER: u64 = 1;
/// Flag of a block: the rows have a queue time.
const HAS_QUEUE: u64 = 2;
const IS_KERNEL: u64 = 1;

/// Encodes rows as a block.
pub fn encode(rows: &[Row], names: &Names, has_queue: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * 12 + 256);
    let in_order = rows.windows(2).all(|pair| pair[0].issue_ns <= pair[1].issue_ns);
    let common_shift = common_shift(rows);
    put(&mut out, rows.len() as u64);
    put(&mut out, if in_order { IN_ORDER } else { 0 } | if has_queue { HAS_QUEUE } else { 0 });
    put(&mut out, u64::from(common_shift));
    let tasks = Distinct::collect(rows.iter().map(|row| row.task));
    put(&mut out, tasks.numbers.len() as u64);
    for number in &tasks.numbers {
        put_task(&mut out, &names.task_at(*number).cloned().unwrap_or_default());
    }
    let flags = Distinct::collect(rows.iter().map(|row| row.flags));
    put(&mut out, flags.numbers.len() as u64);
    for number in &flags.numbers {
        put_flags(&mut out, &names.flags_at(*number).cloned().unwrap_or_default());
    }
    put_all(&mut out, rows.iter().map(|row| tasks.index_of(row.task)));
    put_all(&mut out, rows.iter().map(|row| flags.index_of(row.flags)));
    let mut last = 0;
    for row in rows {
        let since = row.issue_ns.wrapping_sub(last);
        put(&mut out, if in_order { since } else { zigzag(since as i64) });
        last = row.issue_ns;
    }
    put_all(&mut out, rows.iter().map(|row| option_code(row.latency_ns)));
    put_all(&mut out, rows.iter().map(|row| u64::from(row.sectors) >> common_shift));
    let mut end = 0_u64;
    for row in rows.iter().filter(|row| row.sectors > 0) {
        let distance = (row.sector >> common_shift).wrapping_sub(end >> common_shift);
        put(&mut out, zigzag(distance as i64));
        end = row.end();
    }
    if has_queue {
        put_all(&mut out, rows.iter().map(|row| option_code(row.queued_ns)));
    }
    compress(&out)
}

/// Decodes a block, and appends its rows.
///
/// # Errors
/// Why the block is invalid.
pub fn decode(block: &[u8], names: &mut Names, into: &mut Vec<Row>) -> Result<(), &'static str> {
    let plain = decompress(block)?;
    decode_rows(&plain, names, into).ok_or("the columns end early or have invalid values")
}

fn decode_rows(plain: &[u8], names: &mut Names, into: &mut Vec<Row>) -> Option<()> {
    let mut bytes = Bytes { rest: plain };
    let count = usize::try_from(bytes.number()?).ok().filter(|count| *count <= BLOCK_ROWS)?;
    let block_flags = bytes.number()?;
    let common_shift = u32::try_from(bytes.number()?).ok().filter(|common_shift| *common_shift < 32)?;
    let mut tasks = Vec::new();
    for _ in 0..list_length(&mut bytes, count)? {
        tasks.push(names.task(&read_task(&mut bytes)?));
    }
    let mut all_flags = Vec::new();
    for _ in 0..list_length(&mut bytes, count)? {
        all_flags.push(names.flags(&read_flags(&mut bytes)?));
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
        let since = if block_flags & IN_ORDER != 0 { number } else { unzigzag(number) as u64 };
        last = last.wrapping_add(since);
        row.issue_ns = last;
    }
    for row in &mut *new {
        row.latency_ns = bytes.number()?.checked_sub(1);
    }
    for row in &mut *new {
        row.sectors = u32::try_from(bytes.number()?.checked_shl(common_shift)?).ok()?;
    }
    let mut end = 0_u64;
    for row in new.iter_mut().filter(|row| row.sectors > 0) {
        let distance = unzigzag(bytes.number()?);
        row.sector = (end >> common_shift).wrapping_add(distance as u64).wrapping_shl(common_shift);
        end = row.end();
    }
    if block_flags & HAS_QUEUE != 0 {
        for row in &mut *new {
            row.queued_ns = bytes.number()?.checked_sub(1);
        }
    }
    bytes.rest.is_empty().then_some(())
}

/// Reads the length of a list. Returns `None` if the length exceeds the number of rows that could
/// refer to the list.
fn list_length(bytes: &mut Bytes<'_>, rows: usize) -> Option<usize> {
    usize::try_from(bytes.number()?).ok().filter(|count| *count <= rows)
}

/// Returns the number of low bits that are 0 in the first sectors and the sector counts of all rows, at most 31.
fn common_shift(rows: &[Row]) -> u32 {
    let all = rows.iter().fold(0, |all, row| all | row.sector | u64::from(row.sectors));
    if all == 0 { 0 } else { all.trailing_zeros().min(31) }
}

/// Encodes an optional number: 0 for `None`, otherwise the number + 1.
fn option_code(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}

/// Distinct numbers in the order of their first occurrence, with the index of each.
#[derive(Default)]
struct Distinct {
    numbers: Vec<u32>,
    indices: HashMap<u32, u64>,
}

impl Distinct {
    fn collect(numbers: impl Iterator<Item = u32>) -> Self {
        let mut distinct = Self::default();
        for number in numbers {
            distinct.indices.entry(number).or_insert_with(|| {
                distinct.numbers.push(number);
                distinct.numbers.len() as u64 - 1
            });
        }
        distinct
    }

    fn index_of(&self, number: u32) -> u64 {
        self.indices.get(&number).copied().unwrap_or(0)
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(MAX_NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    put(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn read_text(bytes: &mut Bytes<'_>) -> Option<String> {
    let length = usize::try_from(bytes.number()?).ok().filter(|length| *length <= MAX_NAME_BYTES)?;
    String::from_utf8(bytes.take(length)?.to_vec()).ok()
}

fn put_task(out: &mut Vec<u8>, task: &Task) {
    put(out, u64::from(task.tid));
    put(out, option_code(task.pid.map(u64::from)));
    put(out, u64::from(task.kernel) * IS_KERNEL);
    put_text(out, &task.name);
}

fn read_task(bytes: &mut Bytes<'_>) -> Option<Task> {
    let tid = u32::try_from(bytes.number()?).ok()?;
    let pid = match bytes.number()? {
        0 => None,
        above => Some(u32::try_from(above - 1).ok()?),
    };
    Some(Task { tid, pid, kernel: bytes.number()? & IS_KERNEL != 0, name: read_text(bytes)? })
}

fn put_flags(out: &mut Vec<u8>, flags: &Flags) {
    put(out, u64::from(flags.kind == RowKind::RequestedFlush));
    put(out, zigzag(i64::from(flags.error)));
    put_text(out, &flags.rwbs);
}

fn read_flags(bytes: &mut Bytes<'_>) -> Option<Flags> {
    let kind = match bytes.number()? {
        0 => RowKind::Request,
        1 => RowKind::RequestedFlush,
        _ => return None,
    };
    let error = i32::try_from(unzigzag(bytes.number()?)).ok()?;
    Some(Flags { kind, error, rwbs: read_text(bytes)? })
}

/// Compresses a block: first the length of the uncompressed bytes, then LZ4.
fn compress(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, plain.len() as u64);
    out.extend(lz4_flex::block::compress(plain));
    out
}

fn decompress(block: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Bytes { rest: block };
    let length = bytes.number().and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length <= MAX_BLOCK_BYTES).ok_or("the block is too long")?;
    let plain = lz4_flex::block::decompress(bytes.rest, length).map_err(|_| "LZ4 cannot decompress")?;
    if plain.len() == length { Ok(plain) } else { Err("the block is shorter than its length says") }
}

/// Appends a number.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_all(out: &mut Vec<u8>, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        put(out, number);
    }
}

/// Encodes a signed difference as an unsigned number. Small differences give small numbers.
fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// Decodes a difference.
fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Bytes that are consumed from the front.
#[derive(Debug)]
struct Bytes<'b> {
    rest: &'b [u8],
}

impl<'b> Bytes<'b> {
    /// Reads the next number; `None` at the end of the bytes, or if the number is invalid.
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

    /// Reads `count` bytes.
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

/// The first line of a capture file. Its number is the format version.
pub const MAGIC: &[u8] = b"fathom capture 1\n";
/// Number of bytes of a frame before its content.
const FRAME_HEAD_BYTES: usize = 9;
/// Maximum number of bytes in a frame. A block that LZ4 cannot compress grows, by less than one part in 200. The limit bounds the memory
/// that a wrong length can take.
const MAX_FRAME_BYTES: usize = MAX_BLOCK_BYTES + MAX_BLOCK_BYTES / 200;

/// The kinds of frames, with their letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum FrameKind {
    Header = b'H',
    Block = b'B',
    End = b'E',
}

impl FrameKind {
    fn from_letter(letter: u8) -> Option<Self> {
        [Self::Header, Self::Block, Self::End].into_iter().find(|kind| *kind as u8 == letter)
    }
}

fn write_frame(to: &mut impl Write, kind: FrameKind, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).ok().filter(|length| *length as usize <= MAX_FRAME_BYTES);
    let length = length.ok_or_else(|| io::Error::other("a block of the capture is too long"))?;
    let mut head = [0; FRAME_HEAD_BYTES];
    head[0] = kind as u8;
    head[1..5].copy_from_slice(&length.to_le_bytes());
    head[5..9].copy_from_slice(&crc32fast::hash(content).to_le_bytes());
    to.write_all(&head)?;
    to.write_all(content)
}

/// The result of reading the next frame.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// The frame is intact. Its content is in the buffer.
    Frame(FrameKind),
    /// The file ends before the next frame.
    Nothing,
    /// The file ends within the frame.
    Cut,
    /// The next bytes are not a frame, or the frame is damaged, for this reason.
    Damaged(String),
}

/// Reads the next frame into the buffer.
fn read_frame(from: &mut impl Read, content: &mut Vec<u8>) -> Next {
    let mut head = [0; FRAME_HEAD_BYTES];
    match read_full(from, &mut head) {
        Ok(0) => return Next::Nothing,
        Ok(FRAME_HEAD_BYTES) => {}
        Ok(_) => return Next::Cut,
        Err(e) => return Next::Damaged(format!("reading failed: {e}")),
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let Some(kind) = FrameKind::from_letter(head[0]) else {
        return Next::Damaged("this is not a block of a capture".into());
    };
    let length = word(1) as usize;
    if length > MAX_FRAME_BYTES {
        return Next::Damaged(format!("a block has {length} bytes, but the maximum is {MAX_FRAME_BYTES}"));
    }
    content.clear();
    match from.take(length as u64).read_to_end(content) {
        Ok(got) if got == length => {}
        Ok(_) => return Next::Cut,
        Err(e) => return Next::Damaged(format!("reading failed: {e}")),
    }
    if crc32fast::hash(content) == word(5) {
        Next::Frame(kind)
    } else {
        Next::Damaged("the checksum does not match".into())
    }
}

/// Fills the buffer, and returns the number of bytes read. It is less than the buffer only at the end of the file.
pub(crate) fn read_full(from: &mut impl Read, mut room: &mut [u8]) -> io::Result<usize> {
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
    /// Writes the header.
    ///
    /// # Errors
    /// Why the header cannot be written.
    pub fn new(mut to: W, origin: &Origin) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        write_frame(&mut to, FrameKind::Header, &serde_json::to_vec(origin)?)?;
        to.flush()?;
        Ok(Self { to, rows: Vec::with_capacity(BLOCK_ROWS), has_queue: origin.queue, written: 0 })
    }

    /// Adds a row, and writes a block when [`BLOCK_ROWS`] are waiting.
    ///
    /// # Errors
    /// Why the block cannot be written.
    pub fn push(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        self.rows.push(*row);
        if self.rows.len() < BLOCK_ROWS { Ok(()) } else { self.flush(names) }
    }

    /// Returns the number of rows pushed so far.
    pub fn rows(&self) -> u64 {
        self.written + self.rows.len() as u64
    }

    /// Writes the waiting rows.
    ///
    /// # Errors
    /// Why the rows cannot be written.
    pub fn flush(&mut self, names: &Names) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        write_frame(&mut self.to, FrameKind::Block, &encode(&self.rows, names, self.has_queue))?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        self.to.flush()
    }

    /// Writes the waiting rows and the end frame.
    ///
    /// # Errors
    ///
    /// Why the rows or the end cannot be written.
    pub fn finish(mut self, names: &Names, ending: &Ending) -> io::Result<W> {
        self.flush(names)?;
        let ending = Ending { rows: self.written, ..ending.clone() };
        write_frame(&mut self.to, FrameKind::End, &serde_json::to_vec(&ending)?)?;
        self.to.flush()?;
        Ok(self.to)
    }
}

/// Why a file is not a readable capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The file does not begin like a capture.
    #[error("the file is not a fathom capture")]
    NoCapture,
    /// The format version is unknown.
    #[error("the capture has format {0}, but this fathom reads format 1; use the fathom that wrote it")]
    Version(String),
    /// The header is missing or damaged.
    #[error("the capture cannot be read because its header is {0}")]
    Header(String),
}

/// A capture file that is being read.
#[derive(Debug)]
pub struct Reader<R: Read> {
    from: R,
    at: u64,
    content: Vec<u8>,
    rows: Vec<Row>,
    at_end: bool,
    /// The header.
    pub origin: Origin,
    /// Names of the tasks and flags of the rows read so far.
    pub names: Names,
    /// The end frame; `None` until it was read.
    pub ending: Option<Ending>,
    /// Why the file cannot be read to its end; `None` while no damage was found.
    pub damage: Option<String>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// Why the file is not a readable capture.
    pub fn new(mut from: R) -> Result<Self, Unreadable> {
        let mut magic = Vec::new();
        let line = MAGIC.len() as u64;
        let header = |why: &str| Unreadable::Header(why.into());
        from.by_ref().take(line).read_to_end(&mut magic).map_err(|e| header(&format!("unreadable: {e}")))?;
        if magic != MAGIC {
            return Err(unreadable(&magic));
        }
        let mut content = Vec::new();
        match read_frame(&mut from, &mut content) {
            Next::Frame(FrameKind::Header) => {}
            Next::Frame(_) => return Err(header("damaged")),
            Next::Damaged(why) => return Err(header(&format!("damaged: {why}"))),
            Next::Nothing | Next::Cut => return Err(header("cut off")),
        }
        let origin = serde_json::from_slice(&content).map_err(|_| header("damaged"))?;
        let at = line + (FRAME_HEAD_BYTES + content.len()) as u64;
        let (rows, names) = (Vec::new(), Names::default());
        Ok(Self { from, at, content, rows, at_end: false, origin, names, ending: None, damage: None })
    }

    /// Returns the rows of the block that was read last, with the names that they refer to.
    pub fn last(&self) -> (&[Row], &Names) {
        (&self.rows, &self.names)
    }

    /// Reads the next block and returns its rows; `None` at the end of the file, or at damage.
    pub fn block(&mut self) -> Option<&[Row]> {
        if self.at_end {
            return None;
        }
        let why = match read_frame(&mut self.from, &mut self.content) {
            Next::Frame(FrameKind::Block) => {
                self.rows.clear();
                match decode(&self.content, &mut self.names, &mut self.rows) {
                    Ok(()) => {
                        self.at += (FRAME_HEAD_BYTES + self.content.len()) as u64;
                        return Some(&self.rows);
                    }
                    Err(why) => Some(format!("damaged at byte {}: {why}", self.at)),
                }
            }
            Next::Frame(FrameKind::End) => match serde_json::from_slice(&self.content) {
                Ok(ending) => {
                    self.ending = Some(ending);
                    None
                }
                Err(_) => Some(format!("damaged at byte {}: the end frame is invalid", self.at)),
            },
            Next::Frame(FrameKind::Header) => Some(format!("damaged at byte {}: a second header", self.at)),
            Next::Nothing => Some(format!("cut off at byte {}: its end is missing", self.at)),
            Next::Cut => Some(format!("cut off within the block at byte {}", self.at)),
            Next::Damaged(why) => Some(format!("unreadable at byte {}: {why}", self.at)),
        };
        self.damage = why;
        self.at_end = true;
        None
    }
}

/// Returns why a file with this beginning is not readable.
fn unreadable(magic: &[u8]) -> Unreadable {
    let same = MAGIC.len() - 2;
    match magic.strip_prefix(&MAGIC[..same]) {
        Some(version) => Unreadable::Version(String::from_utf8_lossy(version).trim().to_owned()),
        None => Unreadable::NoCapture,
    }
}

#[test]
fn numbers_come_back_and_truncated_ones_are_refused() {
    for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
        let mut out = Vec::new();
        put(&mut out, number);
        assert_eq!(Bytes { rest: &out }.number(), Some(number));
        assert_eq!(Bytes { rest: &out[..out.len() - 1] }.number(), None, "{number}");
    }
    for difference in [0, -1, 1, i64::MIN, i64::MAX] {
        assert_eq!(unzigzag(zigzag(difference)), difference);
    }
    assert_eq!(Bytes { rest: &[0xff; 20] }.number(), None);
}

#[cfg(test)]
mod tests;
