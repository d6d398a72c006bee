//! The words of `iflag=`, `oflag=` and `conv=`.
//!
//! For: which there are, and why some are refused. Not for: what the copying does by them.

use crate::nearest::nearest;

/// How a side is opened, read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// `O_APPEND`.
    Append,
    /// `O_DIRECT`.
    Direct,
    /// `O_DIRECTORY`: anything else is refused.
    Directory,
    /// `O_DSYNC`.
    Dsync,
    /// `O_SYNC`.
    Sync,
    /// Reads go on until a block is full.
    FullBlock,
    /// `O_NONBLOCK`.
    NonBlock,
    /// `O_NOATIME`.
    NoAtime,
    /// What was copied is dropped from the page cache; of `count=0` all of the file.
    NoCache,
    /// `O_NOCTTY`.
    NoCtty,
    /// `O_NOFOLLOW`.
    NoFollow,
    /// `count=` counts bytes, and not blocks.
    CountBytes,
    /// So does `skip=`.
    SkipBytes,
    /// So does `seek=`.
    SeekBytes,
}

/// What else is done to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    /// Blocks of zeros are passed over and not written.
    Sparse,
    /// Reads that are not a whole block are filled up with zeros.
    Sync,
    /// The output has to be new.
    Excl,
    /// The output has to be there.
    NoCreat,
    /// The output is not cut off.
    NoTrunc,
    /// Reads that fail are passed over.
    NoError,
    /// `fdatasync` before it ends.
    Fdatasync,
    /// `fsync` before it ends.
    Fsync,
}

/// Which side a flag is said of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
}

/// Word, flag, and the side that alone has it.
const FLAGS: [(&str, Flag, Option<Side>); 14] = [
    ("append", Flag::Append, Some(Side::Output)),
    ("direct", Flag::Direct, None),
    ("directory", Flag::Directory, None),
    ("dsync", Flag::Dsync, None),
    ("sync", Flag::Sync, None),
    ("fullblock", Flag::FullBlock, Some(Side::Input)),
    ("nonblock", Flag::NonBlock, None),
    ("noatime", Flag::NoAtime, None),
    ("nocache", Flag::NoCache, None),
    ("noctty", Flag::NoCtty, None),
    ("nofollow", Flag::NoFollow, None),
    ("count_bytes", Flag::CountBytes, Some(Side::Input)),
    ("skip_bytes", Flag::SkipBytes, Some(Side::Input)),
    ("seek_bytes", Flag::SeekBytes, Some(Side::Output)),
];

const CONVERSIONS: [(&str, Conversion); 8] = [
    ("sparse", Conversion::Sparse),
    ("sync", Conversion::Sync),
    ("excl", Conversion::Excl),
    ("nocreat", Conversion::NoCreat),
    ("notrunc", Conversion::NoTrunc),
    ("noerror", Conversion::NoError),
    ("fdatasync", Conversion::Fdatasync),
    ("fsync", Conversion::Fsync),
];

/// From when on a word is taken for a slip of another one.
const LIKE: f64 = 0.5;

/// Conversions that change bytes in memory, each with what does that.
const REFUSED: [(&str, &str); 8] = [
    ("ascii", "iconv -f IBM1047 -t ASCII"),
    ("ebcdic", "iconv -f ASCII -t IBM1047"),
    ("ibm", "iconv -f ASCII -t IBM037"),
    ("block", "dd itself"),
    ("unblock", "dd itself"),
    ("lcase", "tr A-Z a-z"),
    ("ucase", "tr a-z A-Z"),
    ("swab", "dd itself"),
];

pub(super) fn flag(word: &str, side: Side) -> Result<Flag, String> {
    let (here, there) = match side {
        Side::Input => ("iflag", "oflag"),
        Side::Output => ("oflag", "iflag"),
    };
    match FLAGS.iter().find(|(name, ..)| *name == word) {
        Some((_, flag, only)) if only.is_none_or(|only| only == side) => Ok(*flag),
        Some(_) => Err(format!("{here}={word} means nothing on this side; type {there}={word}")),
        None => {
            let of_side = FLAGS.iter().filter(|(.., only)| only.is_none_or(|only| only == side));
            Err(unknown(here, word, of_side.map(|(name, ..)| *name)))
        }
    }
}

pub(super) fn conversion(word: &str) -> Result<Conversion, String> {
    if let Some((_, conversion)) = CONVERSIONS.iter().find(|(name, _)| *name == word) {
        return Ok(*conversion);
    }
    match REFUSED.iter().find(|(name, _)| *name == word) {
        Some((_, instead)) => Err(format!(
            "conv={word} changes bytes in memory, which is not done where storage is measured; leave it out, or use {instead}"
        )),
        None => Err(unknown("conv", word, CONVERSIONS.iter().map(|(name, _)| *name))),
    }
}

fn unknown(operand: &str, word: &str, names: impl Iterator<Item = &'static str>) -> String {
    let all: Vec<&str> = names.collect();
    match nearest(word, all.iter().copied(), LIKE) {
        Some(near) => format!("dd has no {operand}={word}; type {operand}={near}"),
        None => format!("dd has no {operand}={word}; it has {}", all.join(", ")),
    }
}
