//! Lines of an access specification, in Iometer's sense.
//!
//! For: their keys, and a line as one word: `share=30,bs=4k,mix=70,random=100,delay=0,burst=1,align=4k,reply=0`.
//! Not for: whether lines fit one another, which [`super::StreamSpec::check`] asks.
//!
//! What is left out is what Iometer's editor begins with: all of the operations, all reads, all random, no pause, bursts of
//! one, no alignment but the target's, no reply. Only the size has to be said.

use super::LineSpec;
use super::limits::{MAX_BLOCK_BYTES, MAX_TIME_NS};
use super::number::{any_of, count, percent, share, shown, size, time};
use super::order::mix;
use super::sizes::sizes;
use crate::job::{Kind, Mix, Sizes};

/// Something that is said about a line.
#[derive(Debug)]
pub struct LineKey {
    /// Its name.
    pub name: &'static str,
    /// What stands for its value in help.
    pub value: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Reads its value.
    pub set: fn(&mut LineSpec, &str) -> Result<(), String>,
}

/// Every key of a line.
pub const LINE_KEYS: &[LineKey] = &[
    LineKey {
        name: "share",
        value: "%",
        about: "Share of the operations; all lines of a stream sum to 100 [default: 100]",
        set: |line, text| put(&mut line.share, percent(text).map(u32::from)),
    },
    LineKey {
        name: "bs",
        value: "SIZE",
        about: "Bytes per operation: 4k, 4k-64k or 4k:60,64k:40; required",
        set: |line, text| put(&mut line.bs, sizes(text)),
    },
    LineKey {
        name: "mix",
        value: "READ%",
        about: "Share of reads, or READ/WRITE/TRIM [default: 100]",
        set: |line, text| put(&mut line.mix, mix(text)),
    },
    LineKey {
        name: "random",
        value: "%",
        about: "Share at random offsets; the rest continues after the last operation [default: 100]",
        set: |line, text| put(&mut line.random, share(text)),
    },
    LineKey {
        name: "delay",
        value: "DURATION",
        about: "Pause before each burst [default: 0]",
        set: |line, text| put(&mut line.delay, time(text, 0, MAX_TIME_NS)),
    },
    LineKey {
        name: "burst",
        value: "N",
        about: "Operations in a burst [default: 1]",
        set: |line, text| put(&mut line.burst, count(text, 1, u32::MAX)),
    },
    LineKey {
        name: "align",
        value: "SIZE",
        about: "Offsets are multiples of this; 0 for what the target needs [default: 0]",
        set: |line, text| put(&mut line.align, size(text, 0, MAX_BLOCK_BYTES)),
    },
    LineKey {
        name: "reply",
        value: "SIZE",
        about: "Size of an operation in the opposite direction after each; 0 for none [default: 0]",
        set: |line, text| put(&mut line.reply, size(text, 0, MAX_BLOCK_BYTES).map(|b| b as u32)),
    },
];

fn put<T>(slot: &mut T, value: Result<T, String>) -> Result<(), String> {
    *slot = value?;
    Ok(())
}

impl LineSpec {
    /// A line of which nothing has been said; its size, which has no default, is 0 until it is.
    pub fn unsaid() -> Self {
        Self {
            share: 100,
            bs: Sizes::Fixed(0),
            mix: Mix::of_percents(100, 0),
            random: 100.0,
            delay: 0,
            burst: 1,
            align: 0,
            reply: 0,
        }
    }

    /// The line as it is, once all has been said.
    ///
    /// # Errors
    /// What is missing and what to type.
    pub fn finished(self) -> Result<Self, String> {
        if self.bs == Sizes::Fixed(0) {
            return Err("a line does not say its size; type bs, such as 4k".into());
        }
        Ok(self)
    }

    /// A line as one word. A piece without `=` belongs to the value before it, so that a split of sizes needs no quoting.
    ///
    /// # Errors
    /// What was wrong and what to type.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pairs: Vec<(&str, Vec<&str>)> = Vec::new();
        for piece in text.split(',') {
            match (piece.split_once('='), pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key.trim(), vec![value])),
                (None, Some((_, pieces))) => pieces.push(piece),
                (None, None) => {
                    return Err(format!(
                        "{} is no line; type KEY=VALUE pairs, such as share=100,bs=4k,mix=70",
                        shown(text)
                    ));
                }
            }
        }
        let mut line = Self::unsaid();
        for (at, (name, value)) in pairs.iter().enumerate() {
            let Some(key) = LINE_KEYS.iter().find(|k| k.name == *name) else {
                let known: Vec<&str> = LINE_KEYS.iter().map(|k| k.name).collect();
                return Err(format!("a line has no {}; type {}", shown(name), any_of(&known)));
            };
            if pairs[..at].iter().any(|(before, _)| before == name) {
                return Err(format!("{name} is there twice in a line; type it once"));
            }
            (key.set)(&mut line, &value.join(",")).map_err(|why| format!("{name} of a line: {why}"))?;
        }
        line.finished()
    }

    /// Whether it writes, as itself or as a reply to its reads.
    pub fn writes(&self) -> bool {
        self.mix.does(Kind::Write) || (self.reply > 0 && self.mix.does(Kind::Read))
    }
}

#[test]
fn a_line_has_the_defaults_of_iometer() {
    let line = LineSpec::parse("bs=2k").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(line, LineSpec { bs: Sizes::Fixed(2048), ..LineSpec::unsaid() });
    assert!(!line.writes());
    let full =
        LineSpec::parse("share=30,bs=4k:60,64k:40,mix=70,random=50,delay=1ms,burst=8,align=4k,reply=512")
            .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((full.share, full.delay, full.burst, full.align, full.reply), (30, 1_000_000, 8, 4096, 512));
    assert_eq!(full.bs, Sizes::Split(vec![(4096, 60), (65536, 40)]));
    assert!(full.writes());
}

#[test]
fn lines_that_cannot_be_say_why() {
    for (bad, word) in [
        ("", "KEY=VALUE"),
        ("share=30", "bs"),
        ("bs=4k,bs=8k", "twice"),
        ("bs=4k,depth=3", "share, bs"),
        ("bs=4k,mix=170", "mix of a line"),
        ("bs=4k,burst=0", "burst of a line"),
    ] {
        let said = LineSpec::parse(bad).map_or_else(|e| e, |l| format!("{l:?}"));
        assert!(said.contains(word) && said.contains("; type"), "{bad}: {said}");
    }
}
