//! The copying: read, write, count, as dd does it.
//!
//! For: the loop and its counts, which others look at while it runs. Not for: opening files, nor for words about them other than dd's.
//!
//! Nothing is looked at inside the loop but what was said of the copy; signals and progress have threads of their own. The calls are
//! the kernel's (rustix), and not the C library's: where there are several threads, each of those makes itself cancellable and
//! back again, which dd, that has one thread, does not pay for: 20 ns of a call.

use super::counts::{Counts, add};
use super::sides::Side;
use crate::plain::buffer::Buffer;
use crate::plain::words::reason;
use crate::stderr;
use dialect::dd::{Amount, Conversion, Copy, Flag, Status};
use rustix::fs::{Advice, OFlags, SeekFrom, fadvise, fcntl_getfl, fcntl_setfl, seek};
use rustix::io::Errno;
use signal_hook::consts::SIGPIPE;
use std::fs::File;
use std::io;

/// Bytes after which what was copied is dropped from the page cache, where that was asked for.
const DROP_BYTES: u64 = 128 << 10;

/// A copy under way.
pub(super) struct Copying<'a> {
    said: &'a Copy,
    input: &'a Side,
    output: &'a Side,
    counts: &'a Counts,
    /// What is read into, and what is gathered in.
    buffers: [Buffer; 2],
    /// Bytes in the second buffer that wait to be a whole block.
    waiting: usize,
    failed: bool,
    holes: Holes,
    /// Whether the last write was one that `O_DIRECT` cannot do, so that the rest has to be made stable.
    left_direct: bool,
    warns_of_partial: bool,
    ways: BlockOptions,
    to_drop: [u64; 2],
}

/// What is asked of each block, looked up once.
#[derive(Clone, Copy, Debug)]
struct BlockOptions {
    /// Reads go on until a block is full.
    fills: bool,
    /// Blocks that are not full are filled up with zeros.
    pads: bool,
    /// What was copied is dropped from the page cache, of the input and of the output.
    drops: [bool; 2],
}

/// What becomes of blocks of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holes {
    /// They are written as others.
    Written,
    /// They are passed over.
    PassedOver,
    /// They are passed over, and the last block that was to be written was one of zeros.
    AtTheEnd,
}

/// What a read came to.
enum Got {
    Bytes(usize),
    /// There is no more, or no more can be had.
    End,
    /// Nothing, which was passed over.
    Nothing,
}

/// What ends a copy before its time; it was told.
#[derive(Debug)]
struct Failed;

/// Indices of the two sides, of buffers and of what is to be dropped.
const IN: usize = 0;
const OUT: usize = 1;

impl<'a> Copying<'a> {
    /// `None` where there is no memory for the buffers.
    pub(super) fn new(said: &'a Copy, input: &'a Side, output: &'a Side, counts: &'a Counts) -> Option<Self> {
        // Zeros of a block of the output come out of the first one too.
        let largest = said.input_block_bytes.max(said.output_block_bytes) as usize;
        let gathered = if said.as_it_came { 1 } else { said.output_block_bytes as usize };
        let buffers = [Buffer::new(largest)?, Buffer::new(gathered)?];
        let counts_blocks = said.count.is_some() || said.skip != Amount::Blocks(0);
        let direct = [&said.reading, &said.writing].iter().any(|flags| flags.contains(&Flag::Direct));
        Some(Self {
            said,
            input,
            output,
            counts,
            buffers,
            waiting: 0,
            failed: false,
            holes: if said.conversion.contains(&Conversion::Sparse) && output.position().is_some() {
                Holes::PassedOver
            } else {
                Holes::Written
            },
            left_direct: false,
            warns_of_partial: said.as_it_came
                && !said.reading.contains(&Flag::FullBlock)
                && (counts_blocks || direct),
            ways: BlockOptions {
                fills: said.reading.contains(&Flag::FullBlock),
                pads: said.conversion.contains(&Conversion::Sync),
                drops: [&said.reading, &said.writing].map(|flags| flags.contains(&Flag::NoCache)),
            },
            to_drop: [0; 2],
        })
    }

    /// Copies, and makes stable what is to be; whether all of it went well. What did not was told.
    pub(super) fn run(mut self) -> bool {
        let copied =
            self.skip().and_then(|()| self.seek()).and_then(|()| self.copy()).and_then(|()| self.finish());
        let stable = self.make_stable();
        copied.is_ok() && stable.is_ok() && !self.failed
    }

    fn fails(what: &str, side: &Side, error: impl Into<io::Error>) -> Failed {
        says(&format!("{what} {}: {}", side.shown, reason(&error.into())));
        Failed
    }

    /// Passes over the beginning of the input.
    fn skip(&mut self) -> Result<(), Failed> {
        let bytes = self.said.skip.bytes(self.said.input_block_bytes).unwrap_or(u64::MAX);
        if bytes == 0 {
            return Ok(());
        }
        if self.input.position().is_some() {
            let ends = self.input.file.metadata().ok().filter(std::fs::Metadata::is_file).map(|f| f.len());
            let at = seek(&self.input.file, SeekFrom::Current(bytes as i64))
                .map_err(|e| Self::fails("cannot skip in", self.input, e))?;
            if ends.is_some_and(|end| at > end) && self.said.status != Status::None {
                says(&format!("{}: cannot skip to specified offset", self.input.bare));
            }
            return Ok(());
        }
        let mut left = bytes;
        while left > 0 {
            let part = left.min(self.said.input_block_bytes) as usize;
            match self.read(part) {
                Ok(0) => {
                    if self.said.status != Status::None {
                        says(&format!("{}: cannot skip to specified offset", self.input.bare));
                    }
                    return Ok(());
                }
                Ok(read) => left -= read as u64,
                Err(e) => return Err(Self::fails("error reading", self.input, e)),
            }
        }
        Ok(())
    }

    /// Passes over the beginning of the output; what cannot seek is given zeros.
    fn seek(&mut self) -> Result<(), Failed> {
        let bytes = self.said.seek.bytes(self.said.output_block_bytes).unwrap_or(u64::MAX);
        if bytes == 0 {
            return Ok(());
        }
        if self.output.position().is_some() {
            let done = seek(&self.output.file, SeekFrom::Current(bytes as i64));
            return done.map(|_| ()).map_err(|e| Self::fails("cannot seek in", self.output, e));
        }
        let block = self.said.output_block_bytes;
        self.buffers[IN].bytes().fill(0);
        let mut left = bytes;
        while left > 0 {
            let part = left.min(block) as usize;
            write_all(&self.output.file, &self.buffers[IN].bytes()[..part])
                .map_err(|(_, e)| Self::fails("error writing", self.output, e))?;
            left -= part as u64;
        }
        Ok(())
    }

    /// One read, or as many as fill a block.
    fn read(&mut self, bytes: usize) -> io::Result<usize> {
        let fills = self.ways.fills;
        let buffer = &mut self.buffers[IN].bytes()[..bytes];
        let mut done = 0;
        loop {
            match rustix::io::read(&self.input.file, &mut buffer[done..]) {
                Ok(0) => return Ok(done),
                Ok(read) => done += read,
                Err(Errno::INTR) => continue,
                Err(_) if done > 0 => return Ok(done),
                Err(e) => return Err(e.into()),
            }
            if !fills || done == bytes {
                return Ok(done);
            }
        }
    }

    fn copy(&mut self) -> Result<(), Failed> {
        let block = self.said.input_block_bytes;
        let (blocks, rest) = match self.said.count {
            None => (u64::MAX, 0),
            Some(Amount::Blocks(n)) => (n, 0),
            Some(Amount::Bytes(n)) => (n / block, n % block),
        };
        let pads = self.ways.pads;
        let mut reads = 0_u64;
        let mut partial_before = 0;
        while reads < blocks || (reads == blocks && rest > 0) {
            let wanted = if reads == blocks { rest } else { block } as usize;
            let got = match self.get(wanted) {
                Got::Bytes(got) => got,
                Got::Nothing => continue,
                Got::End => break,
            };
            if partial_before > 0 && self.warns_of_partial && self.said.status != Status::None {
                says(&format!("warning: partial read ({partial_before} bytes); suggest iflag=fullblock"));
                self.warns_of_partial = false;
            }
            reads += 1;
            let is_full = got as u64 == block;
            partial_before = if is_full { 0 } else { got };
            add(if is_full { &self.counts.full_reads } else { &self.counts.partial_reads }, 1);
            let mut bytes = got;
            if pads && !is_full {
                self.buffers[IN].bytes()[got..].fill(0);
                bytes = block as usize;
            }
            self.give(bytes)?;
        }
        Ok(())
    }

    /// Reads a block; what fails is told, and passed over where that was asked for.
    fn get(&mut self, wanted: usize) -> Got {
        let error = match self.read(wanted) {
            Ok(0) => return Got::End,
            Ok(got) => {
                self.passed(IN, got as u64);
                return Got::Bytes(got);
            }
            Err(error) => error,
        };
        self.failed = true;
        let goes_on = self.said.conversion.contains(&Conversion::NoError);
        if !goes_on || self.said.status != Status::None {
            let _ = Self::fails("error reading", self.input, error);
        }
        if !goes_on {
            return Got::End;
        }
        self.tell_so_far();
        // What cannot be passed over would be read for ever.
        if seek(&self.input.file, SeekFrom::Current(wanted as i64)).is_err() {
            return Got::End;
        }
        // In its place come zeros where blocks are filled up.
        if self.ways.pads { Got::Bytes(0) } else { Got::Nothing }
    }

    /// Hands on what was read: as it came, or gathered into whole blocks.
    fn give(&mut self, bytes: usize) -> Result<(), Failed> {
        let block = self.said.output_block_bytes as usize;
        // What is a whole block already need not be gathered.
        if self.said.as_it_came || (self.waiting == 0 && bytes == block) {
            return self.write(IN, bytes);
        }
        let mut from = 0;
        while from < bytes {
            let part = (block - self.waiting).min(bytes - from);
            let waiting = self.waiting;
            let [input, output] = &mut self.buffers;
            output.bytes()[waiting..waiting + part].copy_from_slice(&input.bytes()[from..from + part]);
            self.waiting += part;
            from += part;
            if self.waiting == block {
                self.waiting = 0;
                self.write(OUT, block)?;
            }
        }
        Ok(())
    }

    /// Writes so much of a buffer, which counts as one block.
    fn write(&mut self, buffer: usize, bytes: usize) -> Result<(), Failed> {
        let data = &self.buffers[buffer].bytes()[..bytes];
        if self.holes != Holes::Written && data.iter().all(|byte| *byte == 0) {
            seek(&self.output.file, SeekFrom::Current(bytes as i64))
                .map_err(|e| Self::fails("cannot seek in", self.output, e))?;
            self.holes = Holes::AtTheEnd;
        } else {
            if self.holes == Holes::AtTheEnd {
                self.holes = Holes::PassedOver;
            }
            let is_whole = bytes as u64 == self.said.output_block_bytes;
            if !is_whole && self.said.writing.contains(&Flag::Direct) && !self.left_direct {
                self.leave_direct();
            }
            let data = &self.buffers[buffer].bytes()[..bytes];
            if let Err((written, error)) = write_all(&self.output.file, data) {
                add(&self.counts.bytes, written as u64);
                if written > 0 {
                    add(&self.counts.partial_writes, 1);
                }
                if error == Errno::PIPE {
                    // Nobody reads any more, which ends dd without a word.
                    let _ = sys::default_action::take(SIGPIPE);
                }
                return Err(Self::fails("error writing", self.output, error));
            }
            self.passed(OUT, bytes as u64);
        }
        add(&self.counts.bytes, bytes as u64);
        let is_full = bytes as u64 == self.said.output_block_bytes;
        add(if is_full { &self.counts.full_writes } else { &self.counts.partial_writes }, 1);
        Ok(())
    }

    /// The end of what is written directly may be no whole block, which goes through the page cache then.
    fn leave_direct(&mut self) {
        self.left_direct = true;
        let flags = fcntl_getfl(&self.output.file);
        let _ = flags.and_then(|flags| fcntl_setfl(&self.output.file, flags - OFlags::DIRECT));
    }

    /// The block that was not full, and the end of a file that ends in a hole.
    fn finish(&mut self) -> Result<(), Failed> {
        if self.waiting > 0 {
            let rest = std::mem::take(&mut self.waiting);
            self.write(OUT, rest)?;
        }
        if self.holes == Holes::AtTheEnd
            && let (Some(end), Ok(facts)) = (self.output.position(), self.output.file.metadata())
            && facts.is_file()
            && facts.len() < end
        {
            rustix::fs::ftruncate(&self.output.file, end)
                .map_err(|e| Self::fails("failed to truncate", self.output, e))?;
        }
        let all = self.said.count.is_some_and(|n| n.bytes(1) == Some(0));
        for (at, side, flags) in
            [(IN, self.input, &self.said.reading), (OUT, self.output, &self.said.writing)]
        {
            if !flags.contains(&Flag::NoCache) {
                continue;
            }
            if !all {
                self.drop_passed(at);
            } else if let Err(e) = fadvise(&side.file, 0, None, Advice::DontNeed) {
                return Err(Self::fails("failed to discard cache for:", side, e));
            }
        }
        Ok(())
    }

    /// Notes what was read or written, and drops it from the page cache where that is wanted.
    fn passed(&mut self, at: usize, bytes: u64) {
        if self.ways.drops[at] {
            self.to_drop[at] += bytes;
            if self.to_drop[at] >= DROP_BYTES {
                self.drop_passed(at);
            }
        }
    }

    fn drop_passed(&mut self, at: usize) {
        let side = if at == IN { self.input } else { self.output };
        let bytes = std::mem::take(&mut self.to_drop[at]);
        if let (Some(end), Some(bytes)) = (side.position(), std::num::NonZeroU64::new(bytes)) {
            let _ = fadvise(&side.file, end.saturating_sub(bytes.get()), Some(bytes), Advice::DontNeed);
        }
    }

    fn make_stable(&self) -> Result<(), Failed> {
        let wants = |conversion| self.said.conversion.contains(&conversion);
        if wants(Conversion::Fdatasync) {
            rustix::io::retry_on_intr(|| rustix::fs::fdatasync(&self.output.file))
                .map_err(|e| Self::fails("fdatasync failed for", self.output, e))?;
        }
        if wants(Conversion::Fsync) || self.left_direct {
            rustix::io::retry_on_intr(|| rustix::fs::fsync(&self.output.file))
                .map_err(|e| Self::fails("fsync failed for", self.output, e))?;
        }
        Ok(())
    }

    /// What dd tells after a read that failed.
    fn tell_so_far(&self) {
        if self.said.status != Status::None {
            stderr::say(&super::lines::records(&self.counts.totals()));
        }
    }
}

fn says(what: &str) {
    stderr::say(&format!("dd: {what}"));
}

/// Writes all of it; how far it came, where it failed.
fn write_all(file: &File, data: &[u8]) -> Result<(), (usize, Errno)> {
    let mut done = 0;
    while done < data.len() {
        match rustix::io::write(file, &data[done..]) {
            // As a full device answers that says no error.
            Ok(0) => return Err((done, Errno::NOSPC)),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err((done, error)),
        }
    }
    Ok(())
}
