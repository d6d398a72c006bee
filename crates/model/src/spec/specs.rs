//! The library of access specifications: workloads in Iometer's sense that have a name.
//!
//! For: the classics that reviews and vendors quote, and the list that Iometer itself begins with, as lines
//! ([`LineSpec`]). Not for: how many workers, targets and operations go at them ([`super::cycle`]).
//!
//! Sources. The tool's own list: `AccessSpecList.cpp` of Iometer 1.1.0 (`InsertDefaultSpecs`, `InitAccessSpecLine`). File
//! Server: the pattern that Intel shipped with Iometer, also in fio (`examples/iometer-file-access-server.fio`). Web Server,
//! Workstation and Database: StorageReview's patterns, as in "Tom's Storage Charts 2009",
//! <https://www.tomshardware.com/reviews/tom-s-hdd-charts,2285-8.html>. 4K OLTP: the mix of Database in blocks of 4 KiB, as its
//! name says.
//!
//! The tool's `Idle` is left out: it does nothing, and there is no number of nothing.

use super::LineSpec;
use super::number::shown;
use crate::job::{Mix, Sizes};
use crate::units::show_block;

/// A workload that has a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name, as Iometer and the reviews have it.
    pub name: String,
    /// Its lines; their shares sum to 100.
    pub lines: Vec<LineSpec>,
}

/// The name of the one that is said on the command line, line by line.
pub const OWN_LINES: &str = "own lines";

/// A classic: its name, percent of reads, percent at random offsets, and percent of operations of each size in bytes.
type Classic = (&'static str, u8, f64, &'static [(u32, u32)]);

const CLASSICS: &[Classic] = &[
    ("4K OLTP", 67, 100.0, &[(100, 4096)]),
    (
        "File Server",
        80,
        100.0,
        &[
            (10, 512),
            (5, 1024),
            (5, 2048),
            (60, 4096),
            (2, 8192),
            (4, 16 << 10),
            (4, 32 << 10),
            (10, 64 << 10),
        ],
    ),
    (
        "Web Server",
        100,
        100.0,
        &[
            (22, 512),
            (15, 1024),
            (8, 2048),
            (23, 4096),
            (15, 8192),
            (2, 16 << 10),
            (6, 32 << 10),
            (7, 64 << 10),
            (1, 128 << 10),
            (1, 512 << 10),
        ],
    ),
    ("Workstation", 80, 80.0, &[(100, 8192)]),
    ("Database", 67, 100.0, &[(100, 8192)]),
];

/// The tool's own list: size, whether offsets are random and aligned to the size, percents of reads.
const OWN: &[(u32, bool, &[u8])] = &[
    (512, false, &[100, 75, 50, 25, 0]),
    (4096, false, &[100, 75, 50, 25, 0]),
    (4096, true, &[100, 50, 0]),
    (16 << 10, false, &[100, 75, 50, 25, 0]),
    (32 << 10, false, &[100, 75, 50, 25, 0]),
    (64 << 10, false, &[100, 50, 0]),
    (256 << 10, false, &[100, 50, 0]),
];

/// Every specification there is: the classics, then the tool's own list in its order.
pub fn library() -> Vec<Spec> {
    let mut all = classics();
    all.extend(own());
    all
}

/// Those that reviews and vendors quote.
pub fn classics() -> Vec<Spec> {
    let line =
        |(share, bytes): &(u32, u32), reads, random| LineSpec { random, ..line(*share, *bytes, reads) };
    CLASSICS
        .iter()
        .map(|(name, reads, random, sizes)| Spec {
            name: (*name).into(),
            lines: sizes.iter().map(|s| line(s, *reads, *random)).collect(),
        })
        .collect()
}

/// Those that Iometer begins with.
fn own() -> Vec<Spec> {
    let mut all = vec![Spec { name: "Default".into(), lines: vec![line(100, 2048, 100)] }];
    let mut each: Vec<LineSpec> = Vec::new();
    for (bytes, aligned, reads) in OWN {
        for reads in *reads {
            let (random, align) = if *aligned { (100.0, u64::from(*bytes)) } else { (0.0, 0) };
            let line = LineSpec { random, align, ..line(100, *bytes, *reads) };
            let unit = if *bytes < 1024 { format!("{bytes} B") } else { format!("{} KiB", bytes / 1024) };
            let how = if *aligned { " aligned" } else { "" };
            let name = format!("{unit}{how}; {reads}% Read; {random}% random");
            all.push(Spec { name, lines: vec![line.clone()] });
            each.push(line);
        }
    }
    all.push(Spec { name: "All in one".into(), lines: evenly(each) });
    all
}

/// A line that differs from a new one of the tool's editor by this only.
fn line(share: u32, bytes: u32, read_percent: u8) -> LineSpec {
    LineSpec { share, bs: Sizes::Fixed(bytes), mix: Mix::of_percents(read_percent, 0), ..LineSpec::unsaid() }
}

/// Lines with shares as even as whole percents allow: the first ones get what is left over, as in the tool.
fn evenly(mut lines: Vec<LineSpec>) -> Vec<LineSpec> {
    let count = (lines.len() as u32).max(1);
    for (at, line) in (0..).zip(&mut lines) {
        line.share = 100 / count + u32::from(at < 100 % count);
    }
    lines
}

/// The specifications that a word means: a name without regard to case, blanks and signs, or a group.
///
/// # Errors
/// What was wrong and what to type.
pub fn named(word: &str) -> Result<Vec<Spec>, String> {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(word);
    match wanted.as_str() {
        "all" => return Ok(library()),
        "classics" => return Ok(classics()),
        "iometer" => return Ok(own()),
        _ => {}
    }
    library().into_iter().find(|s| plain(&s.name) == wanted).map(|s| vec![s]).ok_or_else(|| {
        format!(
            "{} is no access specification; type names that --list-specs prints, such as file-server or 'All in one', or one of classics, iometer, all",
            shown(word)
        )
    })
}

impl Spec {
    /// Bytes of its largest operation, replies included.
    pub fn largest_bytes(&self) -> u32 {
        self.lines.iter().map(|l| l.bs.most().max(l.reply)).max().unwrap_or(0)
    }

    /// Every size that it has, ends of ranges.
    pub fn sizes(&self) -> impl Iterator<Item = u32> {
        self.lines.iter().flat_map(|l| match &l.bs {
            Sizes::Fixed(size) => vec![*size],
            Sizes::Range(least, most) => vec![*least, *most],
            Sizes::Split(split) => split.iter().map(|s| s.0).collect(),
        })
    }

    /// Every size of a reply that it has.
    pub fn replies(&self) -> impl Iterator<Item = u32> {
        self.lines.iter().map(|l| l.reply).filter(|bytes| *bytes > 0)
    }

    /// Whether anything is written.
    pub fn writes(&self) -> bool {
        self.lines.iter().any(LineSpec::writes)
    }

    /// Its lines as `--line` of `fathom run` takes them.
    pub fn to_lines(&self) -> Vec<String> {
        self.lines.iter().map(format_line).collect()
    }
}

fn format_line(line: &LineSpec) -> String {
    let mut words = format!(
        "share={},bs={},mix={},random={}",
        line.share,
        line.bs.describe().to_lowercase(),
        line.mix.read_percent,
        line.random
    );
    if line.align > 0 {
        words += &format!(",align={}", show_block(line.align).to_lowercase());
    }
    words
}

#[test]
fn the_lines_of_each_spec_sum_to_all_of_it_and_can_be_typed() {
    let all = library();
    assert_eq!(all.len(), 5 + 1 + 29 + 1, "classics, Default, the tool's list, All in one");
    for spec in &all {
        assert_eq!(spec.lines.iter().map(|l| l.share).sum::<u32>(), 100, "{}", spec.name);
        let typed: Result<Vec<LineSpec>, String> =
            spec.to_lines().iter().map(|w| LineSpec::parse(w)).collect();
        assert_eq!(typed.as_deref(), Ok(spec.lines.as_slice()), "{}", spec.name);
        assert_eq!(named(&spec.name), Ok(vec![spec.clone()]), "no other has this name");
    }
}

#[test]
fn the_well_known_ones_are_as_they_are_known() {
    let one = |word: &str| named(word).unwrap_or_else(|e| panic!("{e}")).remove(0);
    let file_server = one("file-server");
    assert_eq!((file_server.name.as_str(), file_server.lines.len()), ("File Server", 8));
    assert_eq!((file_server.lines[3].share, file_server.lines[3].bs.most()), (60, 4096));
    assert!(file_server.writes() && !one("WEB SERVER").writes());
    assert_eq!(one("web server").largest_bytes(), 512 << 10);
    assert_eq!(one("workstation").to_lines(), ["share=100,bs=8k,mix=80,random=80"]);
    assert_eq!(one("4KiB-aligned-50-read-100-random").lines[0].align, 4096);
    let whole = one("All in one");
    assert_eq!((whole.lines.len(), whole.lines[12].share, whole.lines[13].share), (29, 4, 3));
    assert!(named("idle").is_err_and(|e| e.contains("--list-specs")));
}
