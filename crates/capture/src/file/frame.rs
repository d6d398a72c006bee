//! Frames: lengths and checksums around what is written at once.
//!
//! For: telling what is whole. Not for: what is inside.

use std::io::{self, Read, Write};

/// The first line of a capture file; its number is that of the format.
pub const MAGIC: &[u8] = b"fathom capture 1\n";
/// Bytes before what is in a frame.
pub(super) const HEAD: usize = 9;
/// Most bytes in a frame: no block of ours comes near, and nobody's length makes more be taken.
pub(super) const MOST: usize = 4 << 20;

/// What is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
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
pub(super) fn write(to: &mut impl Write, kind: FrameKind, inside: &[u8]) -> io::Result<()> {
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
pub(super) enum Next {
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
pub(super) fn read(from: &mut impl Read, inside: &mut Vec<u8>) -> Next {
    let mut head = [0; HEAD];
    match fill(from, &mut head) {
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
fn fill(from: &mut impl Read, mut room: &mut [u8]) -> io::Result<usize> {
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
