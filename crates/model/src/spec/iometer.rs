//! Access specifications in Iometer's sense: the library of named ones, their lines, and test types.
//!
//! A line is written `share=30,bs=4k,mix=70,random=100,delay=0,burst=1,align=4k,reply=0`. Missing keys have the
//! defaults of Iometer's editor: all operations, all reads, all random, no pause, bursts of one, no alignment but
//! the target's, no reply. Only the size is required.
//!
//! Sources. Test types: Iometer 1.1.0, `PageSetup.cpp` (words, first values and steps) and
//! `GalileoView.cpp` (the tests of each type). Iometer's own list: `AccessSpecList.cpp`
//! (`InsertDefaultSpecs`, `InitAccessSpecLine`), without `Idle`, which does nothing. File Server:
//! the pattern that Intel shipped with Iometer, also in fio
//! (`examples/iometer-file-access-server.fio`). Web Server, Workstation and Database:
//! StorageReview's patterns, as in "Tom's Storage Charts 2009",
//! <https://www.tomshardware.com/reviews/tom-s-hdd-charts,2285-8.html>. 4K OLTP: the mix of
//! Database in blocks of 4 KiB.

use crate::job::{Kind, Line, Mix, Order, Pattern, PerKind, Sizes, Steps};
use crate::spec::number::{
    MAX_BLOCK_BYTES, MAX_TIME_NS, any_of, count, percent, quoted_excerpt, reject, share, size, time, word_of,
};
use crate::spec::operations::{key_value_pairs, mix, sizes};
use crate::units::show_block;

/// An access specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Name in Iometer and in reviews.
    pub name: String,
    /// Lines, whose shares sum to 100.
    pub lines: Vec<Line>,
}

/// Name of a specification that the user types line by line.
pub const OWN_LINES: &str = "own lines";

/// A specification that reviews and vendors quote.
struct Classic {
    name: &'static str,
    read_percent: u8,
    random_percent: f64,
    /// Each size with its percent of the operations.
    sizes: &'static str,
}

const CLASSICS: &[Classic] = &[
    Classic { name: "4K OLTP", read_percent: 67, random_percent: 100.0, sizes: "4k:100" },
    Classic {
        name: "File Server",
        read_percent: 80,
        random_percent: 100.0,
        sizes: "512:10,1k:5,2k:5,4k:60,8k:2,16k:4,32k:4,64k:10",
    },
    Classic {
        name: "Web Server",
        read_percent: 100,
        random_percent: 100.0,
        sizes: "512:22,1k:15,2k:8,4k:23,8k:15,16k:2,32k:6,64k:7,128k:1,512k:1",
    },
    Classic { name: "Workstation", read_percent: 80, random_percent: 80.0, sizes: "8k:100" },
    Classic { name: "Database", read_percent: 67, random_percent: 100.0, sizes: "8k:100" },
];

/// Iometer's own list: size, whether offsets are random and aligned to the size, and the percents of reads.
const IOMETER_LIST: &[(u32, bool, &[u8])] = &[
    (512, false, &[100, 75, 50, 25, 0]),
    (4096, false, &[100, 75, 50, 25, 0]),
    (4096, true, &[100, 50, 0]),
    (16 << 10, false, &[100, 75, 50, 25, 0]),
    (32 << 10, false, &[100, 75, 50, 25, 0]),
    (64 << 10, false, &[100, 50, 0]),
    (256 << 10, false, &[100, 50, 0]),
];

/// Returns all specifications: the classics, then Iometer's own list in its order.
pub fn library() -> Vec<Spec> {
    let mut all = classics();
    all.extend(specs_of_iometer());
    all
}

/// Returns the specifications that reviews and vendors quote.
pub fn classics() -> Vec<Spec> {
    let lines = |classic: &Classic| match sizes(classic.sizes) {
        Ok(Sizes::Split(sizes)) => sizes
            .into_iter()
            .map(|(bytes, share)| Line {
                order: order(classic.random_percent),
                ..default_line(share, bytes, classic.read_percent)
            })
            .collect(),
        // Not reached: a test parses all classics.
        _ => Vec::new(),
    };
    let spec = |classic: &Classic| Spec { name: classic.name.into(), lines: lines(classic) };
    CLASSICS.iter().map(spec).collect()
}

/// Returns the specifications with which Iometer starts.
fn specs_of_iometer() -> Vec<Spec> {
    let mut all = vec![Spec { name: "Default".into(), lines: vec![default_line(100, 2048, 100)] }];
    let mut each: Vec<Line> = Vec::new();
    for (bytes, aligned, reads) in IOMETER_LIST {
        for reads in *reads {
            let (random, align_bytes) = if *aligned { (100.0, u64::from(*bytes)) } else { (0.0, 0) };
            let line = Line { order: order(random), align_bytes, ..default_line(100, *bytes, *reads) };
            let unit = if *bytes < 1024 { format!("{bytes} B") } else { format!("{} KiB", bytes / 1024) };
            let how = if *aligned { " aligned" } else { "" };
            let name = format!("{unit}{how}; {reads}% Read; {random}% random");
            all.push(Spec { name, lines: vec![line.clone()] });
            each.push(line);
        }
    }
    all.push(Spec { name: "All in one".into(), lines: with_even_shares(each) });
    all
}

/// Returns a line that differs from a new line in Iometer's editor only in these values.
fn default_line(weight: u32, bytes: u32, read_percent: u8) -> Line {
    let sizes = PerKind::all(Sizes::Fixed(bytes));
    Line { weight, sizes, mix: Mix::from_percents(read_percent, 0), ..Line::default() }
}

/// Returns the order of a line with this percentage of operations at random offsets.
pub fn order(random_percent: f64) -> Order {
    match random_percent {
        percent if percent >= 100.0 => Order::Random,
        percent if percent <= 0.0 => Order::Sequential(Steps::default()),
        percent => Order::Mixed(percent),
    }
}

/// Distributes shares as evenly as whole percents allow. The first lines get the remainder, as in Iometer.
fn with_even_shares(mut lines: Vec<Line>) -> Vec<Line> {
    let count = (lines.len() as u32).max(1);
    for (at, line) in (0..).zip(&mut lines) {
        line.weight = 100 / count + u32::from(at < 100 % count);
    }
    lines
}

/// Finds specifications by name, ignoring case, blanks and punctuation, or by group.
///
/// # Errors
/// What is wrong and what to type.
pub fn named(word: &str) -> Result<Vec<Spec>, String> {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(word);
    match wanted.as_str() {
        "all" => return Ok(library()),
        "classics" => return Ok(classics()),
        "iometer" => return Ok(specs_of_iometer()),
        _ => {}
    }
    library().into_iter().find(|s| plain(&s.name) == wanted).map(|s| vec![s]).ok_or_else(|| {
        reject(word, "is not an access specification; type names that --list-specs prints, such as file-server or 'All in one', or one of classics, iometer, all")
    })
}

impl Spec {
    /// Returns the bytes of the largest operation, including replies.
    pub fn largest_bytes(&self) -> u32 {
        self.lines.iter().map(|l| l.sizes.read.most().max(l.reply_bytes)).max().unwrap_or(0)
    }

    /// Returns all sizes; of a range, only its smallest and largest size.
    pub fn sizes(&self) -> impl Iterator<Item = u32> {
        self.lines.iter().flat_map(|l| match &l.sizes.read {
            Sizes::Fixed(size) => vec![*size],
            Sizes::Range(least, most) => vec![*least, *most],
            Sizes::Split(split) => split.iter().map(|s| s.0).collect(),
        })
    }

    /// Returns all reply sizes.
    pub fn replies(&self) -> impl Iterator<Item = u32> {
        self.lines.iter().map(|l| l.reply_bytes).filter(|bytes| *bytes > 0)
    }

    /// Whether anything is written.
    pub fn writes(&self) -> bool {
        self.lines.iter().any(|line| line.does(Kind::Write))
    }

    /// Formats the lines for `--line` of `fathom run`.
    pub fn to_lines(&self) -> Vec<String> {
        self.lines.iter().map(format_line).collect()
    }
}

/// Formats a line of the library, which has no pauses, replies or trims.
fn format_line(line: &Line) -> String {
    let mut words = format!(
        "share={},bs={},mix={},random={}",
        line.weight,
        line.sizes.read.describe().to_lowercase(),
        line.mix.read_percent,
        line.random_percent()
    );
    if line.align_bytes > 0 {
        words += &format!(",align={}", show_block(line.align_bytes).to_lowercase());
    }
    words
}

/// A setting of an access line, typed as `name=value`.
#[derive(Debug)]
pub struct LineKey {
    /// The word before the `=`: `bs`, `mix`.
    pub name: &'static str,
    /// Placeholder of the value in help.
    pub value: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Parses the value into a line.
    pub set: fn(&mut Line, &str) -> Result<(), String>,
}

/// Every key of a line.
pub const LINE_KEYS: &[LineKey] = &[
    LineKey {
        name: "share",
        value: "%",
        about: "Share of the operations; all lines of a stream sum to 100 [default: 100]",
        set: |line, text| put(&mut line.weight, percent(text).map(u32::from)),
    },
    LineKey {
        name: "bs",
        value: "SIZE",
        about: "Bytes per operation: 4k, 4k-64k or 4k:60,64k:40; required",
        set: |line, text| put(&mut line.sizes, sizes(text).map(PerKind::all)),
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
        set: |line, text| put(&mut line.order, share(text).map(order)),
    },
    LineKey {
        name: "delay",
        value: "DURATION",
        about: "Pause before each burst [default: 0]",
        set: |line, text| put(&mut line.delay_ns, time(text, 0, MAX_TIME_NS)),
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
        set: |line, text| put(&mut line.align_bytes, size(text, 0, MAX_BLOCK_BYTES)),
    },
    LineKey {
        name: "reply",
        value: "SIZE",
        about: "Size of a reply: an operation in the opposite direction after each read or write; 0 for none [default: 0]",
        set: |line, text| put(&mut line.reply_bytes, size(text, 0, MAX_BLOCK_BYTES).map(|b| b as u32)),
    },
];

fn put<T>(slot: &mut T, value: Result<T, String>) -> Result<(), String> {
    *slot = value?;
    Ok(())
}

impl Line {
    /// Returns a line with the defaults of Iometer. The size has no default and is 0 until it is set.
    pub fn with_iometer_defaults() -> Self {
        default_line(100, 0, 100)
    }

    /// Returns the percentage of operations at random offsets. All others begin where the previous
    /// operation ended.
    pub fn random_percent(&self) -> f64 {
        match (&self.order, self.order.pattern()) {
            (Order::Mixed(percent), _) => *percent,
            (_, Some(Pattern::Sequential)) => 0.0,
            _ => 100.0,
        }
    }

    /// Returns the line if it has a size and a share above 0.
    ///
    /// # Errors
    /// What is wrong and what to type.
    pub fn finished(self) -> Result<Self, String> {
        if self.sizes.read == Sizes::Fixed(0) {
            return Err("a line has no size; type bs, such as bs=4k".into());
        }
        if self.weight == 0 {
            return Err("a line has a share of 0; type a share above 0, or leave the line out".into());
        }
        Ok(self)
    }

    /// Parses a line such as `share=30,bs=4k:60,64k:40`. A piece without `=` continues the previous value, so that a split
    /// of sizes needs no quoting.
    ///
    /// # Errors
    /// What is wrong and what to type.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pairs = key_value_pairs(text).map_err(|_| {
            reject(text, "is not a line; type KEY=VALUE pairs, such as share=100,bs=4k,mix=70")
        })?;
        let mut line = Self::with_iometer_defaults();
        for (at, (name, value)) in pairs.iter().enumerate() {
            let Some(key) = LINE_KEYS.iter().find(|k| k.name == *name) else {
                let known: Vec<&str> = LINE_KEYS.iter().map(|k| k.name).collect();
                return Err(format!("a line has no key {}; type {}", quoted_excerpt(name), any_of(&known)));
            };
            if pairs[..at].iter().any(|(before, _)| before == name) {
                return Err(format!("{name} is given twice in a line; type it once"));
            }
            (key.set)(&mut line, value).map_err(|why| format!("{name} of a line: {why}"))?;
        }
        line.finished()
    }
}

/// A test type of Iometer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    /// All workers on all targets, once.
    Normal,
    /// All workers on the first target, then on the first two, and so on up to all targets.
    Targets,
    /// All targets with one worker, then with two, and so on up to all workers.
    Workers,
    /// Adds targets to the first worker one at a time, then to the next worker. All computers do this at the same time.
    IncrementParallel,
    /// Adds targets to the first worker one at a time, then to the next worker. One computer after another does this.
    IncrementSerial,
    /// Each number of workers on each number of targets.
    WorkersAndTargets,
    /// All workers on all targets, with a rising number of operations in flight.
    Outstanding,
    /// All workers with each number of operations in flight on each number of targets.
    OutstandingAndTargets,
}

impl Cycle {
    /// All test types with Iometer's words.
    pub const ALL: [(&'static str, Self); 8] = [
        ("NORMAL", Self::Normal),
        ("CYCLE_TARGETS", Self::Targets),
        ("CYCLE_WORKERS", Self::Workers),
        ("INCREMENT_TARGETS_PARALLEL", Self::IncrementParallel),
        ("INCREMENT_TARGETS_SERIAL", Self::IncrementSerial),
        ("CYCLE_WORKERS_AND_TARGETS", Self::WorkersAndTargets),
        ("CYCLE_OUTSTANDING_IOS", Self::Outstanding),
        ("CYCLE_OUTSTANDING_IOS_AND_TARGETS", Self::OutstandingAndTargets),
    ];

    /// Parses a word in upper or lower case.
    ///
    /// # Errors
    /// What is wrong and what to type.
    pub fn parse(text: &str) -> Result<Self, String> {
        let word = text.trim().replace('-', "_").to_ascii_uppercase();
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, cycle)| *cycle).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|(word, _)| *word).collect();
            format!("{} is not a test type; type one of {}", quoted_excerpt(text), known.join(", "))
        })
    }

    /// Returns Iometer's word.
    pub fn word(self) -> &'static str {
        word_of(&Self::ALL, &self)
    }

    /// Returns the effect of the test type in fathom, where one computer measures.
    pub fn about(self) -> &'static str {
        match self {
            Self::Normal => "all workers on all targets, once",
            Self::Targets => "all workers on a rising number of targets",
            Self::Workers => "a rising number of workers on all targets",
            Self::IncrementParallel => {
                "adds targets to one worker after the other; on a single computer the same as INCREMENT_TARGETS_SERIAL"
            }
            Self::IncrementSerial => {
                "adds targets to one worker after the other; on a single computer the same as INCREMENT_TARGETS_PARALLEL"
            }
            Self::WorkersAndTargets => "each number of workers on each number of targets",
            Self::Outstanding => "all workers on all targets with a rising number of outstanding I/Os",
            Self::OutstandingAndTargets => "each number of outstanding I/Os on each number of targets",
        }
    }

    /// Whether the number of targets rises.
    pub fn has_targets(self) -> bool {
        self.increments()
            || matches!(self, Self::Targets | Self::WorkersAndTargets | Self::OutstandingAndTargets)
    }

    /// Whether the test type raises the number of workers.
    pub fn has_workers(self) -> bool {
        matches!(self, Self::Workers | Self::WorkersAndTargets)
    }

    /// Whether the number of outstanding I/Os rises.
    pub fn has_outstanding(self) -> bool {
        matches!(self, Self::Outstanding | Self::OutstandingAndTargets)
    }

    /// Whether targets are given to one worker after another.
    pub fn increments(self) -> bool {
        matches!(self, Self::IncrementParallel | Self::IncrementSerial)
    }
}

/// How a number rises from one test to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// By the same amount each time: 3, 5, 7, 9.
    Linear,
    /// By the same factor each time: 1, 2, 4, 8.
    Exponential,
}

impl Step {
    /// Parses a word in upper or lower case.
    ///
    /// # Errors
    /// What is wrong and what to type.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "linear" => Ok(Self::Linear),
            "exponential" => Ok(Self::Exponential),
            _ => Err(reject(text, "is not a kind of step; type linear or exponential")),
        }
    }

    /// Returns Iometer's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Linear => "LINEAR",
            Self::Exponential => "EXPONENTIAL",
        }
    }

    /// Returns numbers from `first` to at most `last`. The sequence ends before a number that is not larger than the
    /// previous one.
    pub fn values(self, first: u32, last: u32, by: u32) -> impl Iterator<Item = u32> {
        let next = move |value: &u32| {
            let next = match self {
                Self::Linear => value.checked_add(by),
                Self::Exponential => value.checked_mul(by),
            };
            next.filter(|n| n > value)
        };
        std::iter::successors(Some(first), next).take_while(move |v| *v <= last)
    }
}

#[test]
fn shares_of_each_spec_sum_to_100_and_its_lines_can_be_parsed() {
    let all = library();
    assert_eq!(all.len(), 5 + 1 + 29 + 1, "classics, Default, the tool's list, All in one");
    for spec in &all {
        assert_eq!(spec.lines.iter().map(|l| l.weight).sum::<u32>(), 100, "{}", spec.name);
        let typed: Result<Vec<Line>, String> = spec.to_lines().iter().map(|w| Line::parse(w)).collect();
        assert_eq!(typed.as_deref(), Ok(spec.lines.as_slice()), "{}", spec.name);
        assert_eq!(named(&spec.name), Ok(vec![spec.clone()]), "no other has this name");
    }
}

#[test]
fn well_known_specs_have_their_published_lines() {
    let first_named = |word: &str| named(word).unwrap_or_else(|e| panic!("{e}")).remove(0);
    let file_server = first_named("file-server");
    assert_eq!((file_server.name.as_str(), file_server.lines.len()), ("File Server", 8));
    assert_eq!((file_server.lines[3].weight, file_server.lines[3].sizes.read.most()), (60, 4096));
    assert!(file_server.writes() && !first_named("WEB SERVER").writes());
    assert_eq!(first_named("web server").largest_bytes(), 512 << 10);
    assert_eq!(first_named("workstation").to_lines(), ["share=100,bs=8k,mix=80,random=80"]);
    assert_eq!(first_named("4KiB-aligned-50-read-100-random").lines[0].align_bytes, 4096);
    let all_in_one = first_named("All in one");
    assert_eq!(
        (all_in_one.lines.len(), all_in_one.lines[12].weight, all_in_one.lines[13].weight),
        (29, 4, 3)
    );
    assert!(named("idle").is_err_and(|e| e.contains("--list-specs")));
}

#[test]
fn a_line_has_the_defaults_of_iometer() {
    let line = Line::parse("bs=2k").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(line, default_line(100, 2048, 100));
    assert!(!line.does(Kind::Write));
    let full = Line::parse("share=30,bs=4k:60,64k:40,mix=70,random=50,delay=1ms,burst=8,align=4k,reply=512")
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((full.weight, full.delay_ns, full.burst), (30, 1_000_000, 8));
    assert_eq!((full.align_bytes, full.reply_bytes, full.random_percent()), (4096, 512, 50.0));
    assert_eq!(full.sizes.read, Sizes::Split(vec![(4096, 60), (65536, 40)]));
    assert!(full.does(Kind::Write));
}

#[test]
fn invalid_lines_are_rejected_with_a_reason() {
    for (bad, word) in [
        ("", "KEY=VALUE"),
        ("share=30", "bs"),
        ("share=0,bs=4k", "share of 0"),
        ("bs=4k,bs=8k", "twice"),
        ("bs=4k,depth=3", "share, bs"),
        ("bs=4k,mix=170", "mix of a line"),
        ("bs=4k,burst=0", "burst of a line"),
    ] {
        let message = Line::parse(bad).map_or_else(|e| e, |l| format!("{l:?}"));
        assert!(message.contains(word) && message.contains("; type"), "{bad}: {message}");
    }
}

#[test]
fn words_of_iometer_are_accepted_in_any_case() {
    for (word, cycle) in Cycle::ALL {
        assert_eq!((Cycle::parse(&word.to_lowercase()), cycle.word()), (Ok(cycle), word));
        assert!(!cycle.about().is_empty());
    }
    assert_eq!(Cycle::parse("cycle-workers"), Ok(Cycle::Workers));
    assert!(Cycle::parse("sideways").is_err_and(|e| e.contains("; type one of NORMAL")));
    assert!(Step::parse("cubic").is_err_and(|e| e.contains("; type linear")));
}

#[test]
fn steps_follow_the_guide_and_end() {
    let all = |step: Step, (first, last, by)| step.values(first, last, by).collect::<Vec<_>>();
    assert_eq!(all(Step::Linear, (3, 9, 2)), [3, 5, 7, 9]);
    assert_eq!(all(Step::Exponential, (1, 8, 2)), [1, 2, 4, 8]);
    assert_eq!(all(Step::Exponential, (1, 9, 1)), [1], "what does not rise ends");
    assert_eq!(all(Step::Linear, (u32::MAX - 1, u32::MAX, 2)), [u32::MAX - 1]);
}
