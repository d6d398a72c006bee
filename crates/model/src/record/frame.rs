//! Frames as bytes: one line each, a CRC-32 of the rest of the line before it.
//!
//! For: appending frames so that a torn one is recognised, and reading them with any text tool
//! (`cut -c10- FILE | jq`). Not for: files; callers read and write.
//!
//! A file is `fathom session 1` and then lines `xxxxxxxx {json}`, each ended by a line feed. JSON never holds a raw line
//! feed, so the last line feed of a file ends its last whole frame.

use super::{Disorder, Frame, Record};

/// First line of every session file.
pub const MAGIC: &str = "fathom session 1\n";
/// Largest session file that is read: the limit of writing, with room for its end.
pub const MAX_FILE_BYTES: u64 = 80 << 20;

/// Why bytes are not a session.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// No session file at all.
    #[error("this is no session file: its first line is not 'fathom session 1'")]
    NoMagic,
    /// A beginning without its first frame.
    #[error("fathom was killed before the first run, so there is nothing in it")]
    Headless,
    /// The file itself.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// A frame in the middle is damaged.
    #[error("line {line} is damaged: {why}")]
    Damaged {
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The frames contradict one another.
    #[error(transparent)]
    Disorder(#[from] Disorder),
}

/// A frame as a line, line feed included.
///
/// # Errors
/// Only where a number has no JSON form, which no frame built by fathom has.
pub fn encode(frame: &Frame) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(frame)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
}

/// Reads a whole file's bytes. The flag says whether a torn last frame was dropped.
///
/// # Errors
/// [`Unreadable`] for anything but a session whose last frame may be torn.
pub fn decode(bytes: &[u8]) -> Result<(Record, bool), Unreadable> {
    let Some(body) = bytes.strip_prefix(MAGIC.as_bytes()) else {
        let begun = MAGIC.as_bytes().starts_with(bytes);
        return Err(if begun { Unreadable::Headless } else { Unreadable::NoMagic });
    };
    let whole = body.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let mut torn = whole < body.len();
    let lines: Vec<&[u8]> = body[..whole].split_inclusive(|b| *b == b'\n').collect();
    let mut frames = Vec::with_capacity(lines.len());
    for (i, line) in lines.iter().enumerate() {
        match decode_line(line) {
            Ok(frame) => frames.push(frame),
            // A crash of the machine can leave blocks of the last frame unwritten inside the file's length.
            Err(_) if i + 1 == lines.len() => torn = true,
            Err(why) => return Err(Unreadable::Damaged { line: i + 2, why }),
        }
    }
    if frames.is_empty() {
        return Err(Unreadable::Headless);
    }
    Ok((Record::from_frames(frames)?, torn))
}

fn decode_line(line: &[u8]) -> Result<Frame, String> {
    let text = std::str::from_utf8(line).map_err(|e| e.to_string())?.trim_end_matches('\n');
    let (sum, json) = text.split_once(' ').ok_or("no checksum")?;
    let expected = u32::from_str_radix(sum, 16).map_err(|e| format!("checksum: {e}"))?;
    if crc32fast::hash(json.as_bytes()) != expected {
        return Err("the checksum does not match".into());
    }
    serde_json::from_str(json).map_err(|e| e.to_string())
}
