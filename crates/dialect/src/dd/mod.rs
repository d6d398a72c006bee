//! dd's language: its operands, as GNU coreutils 9 has them.
//!
//! For: a copy that means what the operands mean; what is not done here is refused by its name, with what to type instead. Not for: the
//! copying, nor dd's own lines.
//!
//! Source: the manual of GNU coreutils, "dd invocation".

mod flags;
mod number;

use crate::line::Line;
use crate::trouble::Trouble;
pub use flags::{Conversion, Flag};
use std::collections::BTreeSet;

/// Bytes of a block where nothing is said.
const DEFAULT_BLOCK_BYTES: u64 = 512;
/// Largest block in bytes: two of them are held in memory.
const MAX_BLOCK_BYTES: u64 = 1 << 30;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To print what can be typed.
    Help,
    /// To print which program this is.
    Version,
    /// To read one side and write the other.
    Copy(Box<Copy>),
}

/// A number of blocks, or of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Blocks of the side that it is said of.
    Blocks(u64),
    /// As the suffix `B` and the flags ending in `_bytes` say.
    Bytes(u64),
}

/// What is told on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Failures alone.
    None,
    /// The blocks, and not how fast.
    NoTransfer,
    /// Both, at the end.
    #[default]
    Usual,
    /// Both, and how fast once a second.
    Progress,
}

/// What dd is to read and to write, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// What is read; standard input where nothing is said.
    pub input: Option<String>,
    /// What is written; standard output where nothing is said.
    pub output: Option<String>,
    /// Bytes of a read.
    pub input_block_bytes: u64,
    /// Bytes of a write.
    pub output_block_bytes: u64,
    /// Whether each read is written as it came (`bs=`), and not gathered into whole blocks of the output.
    pub as_it_came: bool,
    /// What of the input is passed over first.
    pub skip: Amount,
    /// What of the output is passed over first.
    pub seek: Amount,
    /// Where it ends; at the end of the input where nothing is said.
    pub count: Option<Amount>,
    /// How the input is opened and read.
    pub reading: BTreeSet<Flag>,
    /// How the output is opened and written.
    pub writing: BTreeSet<Flag>,
    /// What else is done.
    pub conversion: BTreeSet<Conversion>,
    /// What is told.
    pub status: Status,
    /// What may be overwritten: fathom's own, `--destroy=NAME`.
    pub destroy: Vec<String>,
}

impl Default for Copy {
    fn default() -> Self {
        Self {
            input: None,
            output: None,
            input_block_bytes: DEFAULT_BLOCK_BYTES,
            output_block_bytes: DEFAULT_BLOCK_BYTES,
            as_it_came: false,
            skip: Amount::Blocks(0),
            seek: Amount::Blocks(0),
            count: None,
            reading: BTreeSet::new(),
            writing: BTreeSet::new(),
            conversion: BTreeSet::new(),
            status: Status::default(),
            destroy: Vec::new(),
        }
    }
}

/// Reads a command line: the words behind `dd`.
///
/// # Errors
/// Everything that is wrong with it, each with its word.
pub fn read(words: &[String]) -> Result<Ask, Trouble> {
    let mut reader =
        Reader { line: Line::new(words), copy: Copy::default(), both: None, of_bytes: BTreeSet::new() };
    for (at, word) in words.iter().enumerate() {
        match word.as_str() {
            "--help" => return Ok(Ask::Help),
            "--version" => return Ok(Ask::Version),
            "--" => {}
            word => reader.word(at, word),
        }
    }
    let copy = reader.together(words);
    reader.line.unless_wrong(Ask::Copy(Box::new(copy)))
}

struct Reader {
    line: Line,
    copy: Copy,
    /// What `bs=` says, which counts before `ibs=` and `obs=`.
    both: Option<u64>,
    /// Which of skip, seek and count are bytes by their own suffix.
    of_bytes: BTreeSet<&'static str>,
}

impl Reader {
    fn word(&mut self, at: usize, word: &str) {
        let Some((name, value)) = word.split_once('=') else {
            self.line.wrong(at, format!("dd has no operand '{word}'; type one as name=value, such as bs=1M"));
            return;
        };
        match name {
            "if" => self.copy.input = Some(value.into()),
            "of" => self.copy.output = Some(value.into()),
            "--destroy" => self.copy.destroy.push(value.into()),
            "bs" => self.both = self.block(at, name, value),
            "ibs" => self.copy.input_block_bytes = self.block(at, name, value).unwrap_or(DEFAULT_BLOCK_BYTES),
            "obs" => self.copy.output_block_bytes = self.block(at, name, value).unwrap_or(DEFAULT_BLOCK_BYTES),
            "cbs" => self.line.wrong(at, "cbs is the size of records for conv=block and conv=unblock, which are not done here; leave it out"),
            "skip" | "iseek" => self.copy.skip = self.amount(at, "skip", value),
            "seek" | "oseek" => self.copy.seek = self.amount(at, "seek", value),
            "count" => self.copy.count = Some(self.amount(at, "count", value)),
            "iflag" => self.flags(at, value, flags::Side::Input),
            "oflag" => self.flags(at, value, flags::Side::Output),
            "conv" => self.conversions(at, value),
            "status" => self.status(at, value),
            _ => self.line.wrong(
                at,
                format!(
                    "dd has no operand '{name}'; it has if, of, bs, ibs, obs, count, skip, seek, iflag, oflag, conv and status"
                ),
            ),
        }
    }

    fn block(&mut self, at: usize, name: &str, value: &str) -> Option<u64> {
        match number::parse(value) {
            Ok(number) if (1..=MAX_BLOCK_BYTES).contains(&number.value) => return Some(number.value),
            Ok(number) => self.line.wrong(
                at,
                format!(
                    "a block of {} bytes cannot be had; type {name}= with 1 to {MAX_BLOCK_BYTES}, such as {name}=1M",
                    number.value
                ),
            ),
            Err(why) => self.line.wrong(at, format!("{why}; type a number as {name}=512, {name}=4k or {name}=1M")),
        }
        None
    }

    fn amount(&mut self, at: usize, name: &'static str, value: &str) -> Amount {
        match number::parse(value) {
            Ok(number) => {
                self.of_bytes.remove(name);
                if number.is_bytes {
                    self.of_bytes.insert(name);
                }
                return Amount::Blocks(number.value);
            }
            Err(why) => {
                self.line.wrong(at, format!("{why}; type a number as {name}=100, or of bytes as {name}=1MB"));
            }
        }
        Amount::Blocks(0)
    }

    fn flags(&mut self, at: usize, value: &str, side: flags::Side) {
        for word in value.split(',') {
            match flags::flag(word, side) {
                Ok(flag) => {
                    match side {
                        flags::Side::Input => self.copy.reading.insert(flag),
                        flags::Side::Output => self.copy.writing.insert(flag),
                    };
                }
                Err(why) => self.line.wrong(at, why),
            }
        }
    }

    fn conversions(&mut self, at: usize, value: &str) {
        for word in value.split(',') {
            match flags::conversion(word) {
                Ok(conversion) => {
                    self.copy.conversion.insert(conversion);
                }
                Err(why) => self.line.wrong(at, why),
            }
        }
    }

    fn status(&mut self, at: usize, value: &str) {
        match value {
            "none" => self.copy.status = Status::None,
            "noxfer" => self.copy.status = Status::NoTransfer,
            "progress" => self.copy.status = Status::Progress,
            _ => self.line.wrong(
                at,
                format!("dd has no status '{value}'; type status=none, status=noxfer or status=progress"),
            ),
        }
    }

    /// What the words mean together.
    fn together(&mut self, words: &[String]) -> Copy {
        let place = |name: &str| words.iter().rposition(|w| w.starts_with(name)).unwrap_or(words.len());
        let mut copy = std::mem::take(&mut self.copy);
        if let Some(bytes) = self.both {
            (copy.input_block_bytes, copy.output_block_bytes, copy.as_it_came) = (bytes, bytes, true);
        }
        let in_bytes = |amount: Amount, name: &str, flag: bool| match amount {
            Amount::Blocks(n) if flag || self.of_bytes.contains(name) => Amount::Bytes(n),
            other => other,
        };
        copy.skip = in_bytes(copy.skip, "skip", copy.reading.contains(&Flag::SkipBytes));
        copy.seek = in_bytes(copy.seek, "seek", copy.writing.contains(&Flag::SeekBytes));
        copy.count = copy.count.map(|n| in_bytes(n, "count", copy.reading.contains(&Flag::CountBytes)));
        for (amount, block, name) in [
            (copy.skip, copy.input_block_bytes, "skip="),
            (copy.seek, copy.output_block_bytes, "seek="),
            (copy.count.unwrap_or(Amount::Blocks(0)), copy.input_block_bytes, "count="),
        ] {
            if amount.bytes(block).is_none() {
                self.line.wrong(
                    place(name),
                    format!("{name} leads beyond the largest file that there can be; type a smaller number"),
                );
            }
        }
        let both = |of: &BTreeSet<Flag>| of.contains(&Flag::Direct) && of.contains(&Flag::NoCache);
        for (name, set) in [("iflag=", &copy.reading), ("oflag=", &copy.writing)] {
            if both(set) {
                self.line.wrong(
                    place(name),
                    "direct and nocache exclude each other: nothing is cached of direct I/O; leave nocache out",
                );
            }
        }
        if [Conversion::Excl, Conversion::NoCreat].iter().all(|c| copy.conversion.contains(c)) {
            self.line
                .wrong(place("conv="), "excl makes a new file and nocreat makes none; leave one of them out");
        }
        copy
    }
}

impl Amount {
    /// In bytes, of blocks of this size; `None` beyond the largest offset of a file.
    pub fn bytes(self, block_bytes: u64) -> Option<u64> {
        let bytes = match self {
            Self::Blocks(n) => n.checked_mul(block_bytes)?,
            Self::Bytes(n) => n,
        };
        i64::try_from(bytes).ok().map(|_| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> Result<Ask, Trouble> {
        read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn copy(line: &str) -> Copy {
        match ask(line) {
            Ok(Ask::Copy(copy)) => *copy,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_operands_of_an_article_mean_what_dd_means() {
        let plain = copy("of=file if=/dev/zero bs=512 count=1000000 oflag=direct");
        assert_eq!((plain.input.as_deref(), plain.output.as_deref()), (Some("/dev/zero"), Some("file")));
        assert_eq!((plain.input_block_bytes, plain.output_block_bytes, plain.as_it_came), (512, 512, true));
        assert_eq!(plain.count, Some(Amount::Blocks(1_000_000)));
        assert!(plain.writing.contains(&Flag::Direct) && plain.reading.is_empty());
        let two = copy(
            "ibs=4k obs=1MB skip=2 seek=10KB count=5 iflag=count_bytes,fullblock conv=sync,noerror status=progress",
        );
        assert_eq!((two.input_block_bytes, two.output_block_bytes, two.as_it_came), (4096, 1_000_000, false));
        assert_eq!(
            (two.skip, two.seek, two.count),
            (Amount::Blocks(2), Amount::Bytes(10_000), Some(Amount::Bytes(5)))
        );
        assert_eq!(two.status, Status::Progress);
        assert_eq!(copy("obs=7 bs=9").output_block_bytes, 9, "bs counts before the others");
        assert_eq!(copy("").input_block_bytes, 512);
        assert_eq!((ask("bs=1 --help").ok(), ask("--version").ok()), (Some(Ask::Help), Some(Ask::Version)));
        assert_eq!(copy("--destroy=/dev/sdz of=/dev/sdz").destroy, ["/dev/sdz"]);
    }

    #[test]
    fn what_is_not_done_is_refused_by_its_name_with_a_cure() {
        for (line, words) in [
            ("conv=ucase", ["conv=ucase", "tr"]),
            ("conv=ebcdic,fsync", ["conv=ebcdic", "iconv"]),
            ("conv=fsyn", ["fsyn", "fsync"]),
            ("conv=excl,nocreat", ["excl", "leave one"]),
            ("cbs=80", ["cbs", "leave it out"]),
            ("oflag=count_bytes", ["count_bytes", "iflag=count_bytes"]),
            ("iflag=direct,nocache", ["nocache", "leave nocache out"]),
            ("iflag=drect", ["drect", "direct"]),
            ("bs=0", ["0 bytes", "bs=1M"]),
            ("bs=4q", ["4q", "bs=4k"]),
            ("count=18446744073709551615 bs=2", ["count=", "smaller"]),
            ("bs", ["'bs'", "name=value"]),
            ("size=4k", ["'size'", "ibs"]),
            ("status=all", ["all", "status=none"]),
        ] {
            let said = ask(line).map(|_| ()).map_err(|trouble| trouble.to_string());
            assert!(said.as_ref().is_err_and(|t| words.iter().all(|w| t.contains(w))), "{line}: {said:?}");
        }
    }
}
