//! A page of the kernel's ring buffer: records with their times, and how many were written over before it.
//!
//! For: bytes as `trace_pipe_raw` gives them. Not for: what stands in a record.
//!
//! A page begins with the time of its first record, a commit word (how many bytes are in use; two bits of it say that records were
//! lost before, and that their number stands behind the records), then records, each behind a word of 32 bits: five bits of type or
//! length, 27 bits of time since the last. `events/header_page` says where the parts are, `events/header_event` what the bits mean.

use super::Foreign;
use super::format::{Field, Format};

/// Records were lost before this page.
const MISSED: u64 = 1 << 31;
/// Their number stands behind the records.
const STORED: u64 = 1 << 30;
/// The other bits of the commit word: bytes in use.
const IN_USE: u64 = STORED - 1;
/// Bits of the time in a record's word.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time in a record of its own; those above are the last one's.
const STAMP_BITS: u32 = 59;
/// Types behind which no data stand.
const PADDING: u32 = 29;
const EXTEND: u32 = 30;
const STAMP: u32 = 31;

/// Where the parts of a page are, by `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    time: Field,
    commit: Field,
    data: usize,
    /// Bytes of a page.
    pub bytes: usize,
}

impl Layout {
    /// Reads the text of `events/header_page`.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn parse(text: &str) -> Result<Self, Foreign> {
        let format = Format::parse(text)?;
        let data = format.field("data")?;
        let bytes = data.offset.saturating_add(data.size);
        Ok(Self {
            time: format.field("timestamp")?,
            commit: format.field("commit")?,
            data: data.offset,
            bytes,
        })
    }
}

/// Records of a page, one after another, each with its time.
#[derive(Debug)]
pub struct Records<'p> {
    data: &'p [u8],
    at: usize,
    time: u64,
    /// Records that were written over before this page.
    pub missed: u64,
    /// The time of the page.
    pub begins: u64,
}

impl<'p> Records<'p> {
    /// Those of a page, as it was read.
    pub fn parse(page: &'p [u8], layout: &Layout) -> Self {
        let time = layout.time.number(page);
        let commit = layout.commit.number(page);
        let whole = page.get(layout.data..).unwrap_or_default();
        let used = usize::try_from(commit & IN_USE).unwrap_or(usize::MAX).min(whole.len());
        let (data, behind) = whole.split_at(used);
        let stored = Field { offset: 0, size: layout.commit.size }.number(behind);
        let missed = match (commit & MISSED != 0, commit & STORED != 0) {
            (false, _) => 0,
            // Where their number had no room, one is the least that it can be.
            (true, stored_too) => if stored_too { stored } else { 1 }.max(1),
        };
        Self { data, at: 0, time, missed, begins: time }
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.data.get(self.at..self.at + 4)?;
        self.at += 4;
        Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn take(&mut self, bytes: usize) -> Option<&'p [u8]> {
        let end = self.at.checked_add(bytes)?;
        let data = self.data.get(self.at..end)?;
        self.at = end;
        Some(data)
    }
}

/// A record's word in two: as the compiler lays out bit fields, the first stands in the low bits of a little-endian machine.
fn halves(word: u32) -> (u32, u64) {
    if cfg!(target_endian = "little") {
        (word & 31, u64::from(word >> 5))
    } else {
        (word >> DELTA_BITS, u64::from(word & ((1 << DELTA_BITS) - 1)))
    }
}

impl<'p> Iterator for Records<'p> {
    type Item = (u64, &'p [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let word = self.word()?;
            let (kind, delta) = halves(word);
            match kind {
                // Nothing follows on this page.
                PADDING if delta == 0 => return None,
                // A record that was taken back, by a filter: its length stands behind the word, and it has its time.
                PADDING => {
                    let length = self.word()? as usize;
                    self.take(length.saturating_sub(4))?;
                    self.time = self.time.wrapping_add(delta);
                }
                EXTEND => {
                    let high = u64::from(self.word()?);
                    self.time = self.time.wrapping_add((high << DELTA_BITS) + delta);
                }
                STAMP => {
                    let high = u64::from(self.word()?);
                    let above = self.time >> STAMP_BITS << STAMP_BITS;
                    self.time = above | (((high << DELTA_BITS) + delta) & ((1 << STAMP_BITS) - 1));
                }
                0 => {
                    let length = self.word()? as usize;
                    self.time = self.time.wrapping_add(delta);
                    // The word of the length is part of it; what is behind is aligned to four bytes.
                    let data = self.take(length.saturating_sub(4))?;
                    self.at = self.at.next_multiple_of(4);
                    return Some((self.time, data));
                }
                words => {
                    self.time = self.time.wrapping_add(delta);
                    return self.take(words as usize * 4).map(|data| (self.time, data));
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    /// A record's word on this machine.
    fn word(kind: u32, delta: u32) -> [u8; 4] {
        let word = if cfg!(target_endian = "little") { delta << 5 | kind } else { kind << 27 | delta };
        word.to_ne_bytes()
    }

    /// A page with these data behind its header.
    pub(crate) fn page(time: u64, flags: u64, data: &[u8], behind: u64) -> Vec<u8> {
        let mut page = time.to_ne_bytes().to_vec();
        page.extend((data.len() as u64 | flags).to_ne_bytes());
        page.extend(data);
        page.extend(behind.to_ne_bytes());
        page.resize(4096, 0);
        page
    }

    /// A record of data, so long after the last.
    pub(crate) fn record(delta: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = word(data.len() as u32 / 4, delta).to_vec();
        bytes.extend(data);
        bytes
    }

    #[test]
    fn times_add_up_over_all_types_of_records() -> Result<(), Foreign> {
        let layout = Layout::parse(HEADER)?;
        assert_eq!(layout.bytes, 4096);
        let mut data = record(5, b"abcd");
        data.extend([word(EXTEND, 1), 1_u32.to_ne_bytes()].concat());
        data.extend(record(2, b"efghijkl"));
        // Taken back: four bytes of length, eight behind.
        data.extend([word(PADDING, 3), 12_u32.to_ne_bytes(), *b"gone", *b"gone"].concat());
        data.extend([word(0, 4), 7_u32.to_ne_bytes(), *b"odd\0"].concat());
        data.extend([word(STAMP, 9), 2_u32.to_ne_bytes()].concat());
        data.extend(record(0, b"last"));
        data.extend(word(PADDING, 0));
        data.extend(record(0, b"none"));
        let page = page(1000, 0, &data, 0);
        let found: Vec<(u64, &[u8])> = Records::parse(&page, &layout).collect();
        let extended = 1005 + (1 << 27) + 1 + 2;
        let expected: [(u64, &[u8]); 4] =
            [(1005, b"abcd"), (extended, b"efghijkl"), (extended + 7, b"odd"), ((2 << 27) + 9, b"last")];
        assert_eq!(found, expected);
        Ok(())
    }

    #[test]
    fn lost_records_are_counted_as_the_page_says() -> Result<(), Foreign> {
        let layout = Layout::parse(HEADER)?;
        let missed =
            |flags, behind| Records::parse(&page(7, flags, &record(1, b"abcd"), behind), &layout).missed;
        assert_eq!(missed(0, 137), 0);
        assert_eq!(missed(MISSED | STORED, 137), 137);
        assert_eq!(missed(MISSED, 137), 1);
        Ok(())
    }

    #[test]
    fn whatever_a_page_holds_there_is_an_end() -> Result<(), Foreign> {
        let layout = Layout::parse(HEADER)?;
        for seed in 0..64_u32 {
            let bytes: Vec<u8> = (0..4096_u32)
                .map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed * 40_503) >> 13) as u8)
                .collect();
            assert!(Records::parse(&bytes, &layout).count() <= 1024);
            assert!(Records::parse(&bytes[..seed as usize], &layout).count() <= 16);
        }
        Ok(())
    }
}
