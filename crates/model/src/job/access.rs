//! Access: the lines of an access specification.
//!
//! For: which blocks are touched, in which order, size and direction. Not for: when ([`super::pace`]).

use super::kind::Kind;
use super::mix::{Mix, Percent};
use super::order::{Order, Pattern, Positions, Steps};
use super::sizes::{PerKind, Sizes};
use super::strided::Strided;
use super::think::ThinkLaw;
use serde::{Deserialize, Serialize};

/// Which blocks are touched, in which order and direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Access {
    /// First byte of the span.
    pub offset_bytes: u64,
    /// Bytes from there that may be touched.
    pub span_bytes: u64,
    /// Zones of the span, of which one is worked in at a time; `None` where the span is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strided: Option<Strided>,
    /// Lines of an access specification; the plain case is one. Each operation draws its line by weight.
    pub lines: Vec<Line>,
}

/// One line of an access specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Line {
    /// Weight among the lines; a plan's weights sum to 100.
    pub weight: u32,
    /// Order of offsets.
    pub order: Order,
    /// Whether directions go on from one position or each from its own.
    #[serde(default, skip_serializing_if = "Positions::is_default")]
    pub positions: Positions,
    /// Operations from each random offset on, one behind the other; 1 where each is drawn.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub consecutive: u32,
    /// Mean of the operations from each random offset on, of geometric length; `None` where `consecutive` says how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_length: Option<f64>,
    /// Sequential runs at once: each operation goes on with one of them, drawn at random.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub interleaved: u32,
    /// Operations on each place before the next one; 1 where each has its own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub times: u32,
    /// Shares of directions, drawn per operation.
    pub mix: Mix,
    /// Whether they are drawn at random places alone, and what goes on from one has its direction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mix_by_run: bool,
    /// Sizes of reads, writes and trims.
    pub sizes: PerKind<Sizes>,
    /// Offsets are multiples of this, counted from the span's first byte; 0 stands for no constraint but the target's.
    pub align_bytes: u64,
    /// Operations in a burst; matters only with `delay_ns`.
    pub burst: u32,
    /// Mean pause before each burst, from the completion of the one before; 0 for none.
    pub delay_ns: u64,
    /// How pauses vary around that.
    #[serde(default, skip_serializing_if = "ThinkLaw::is_fixed")]
    pub delay_law: ThinkLaw,
    /// Whether it is not a pause, but the time from the beginning of one burst to that of the next, and what is late is made up for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_period: bool,
    /// Size of an operation in the opposite direction after each; 0 for none.
    pub reply_bytes: u32,
    /// Whether a write of the same bytes follows each trim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes_after_trims: bool,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Access {
    /// The plain access: one order, one size, reads and writes.
    pub fn plain(pattern: Pattern, block_bytes: u32, read_percent: u8) -> Self {
        let order = match pattern {
            Pattern::Sequential => Order::Sequential(Steps::default()),
            Pattern::Random => Order::Random,
        };
        let line = Line {
            weight: 100,
            order,
            positions: Positions::default(),
            consecutive: 1,
            run_length: None,
            interleaved: 1,
            times: 1,
            mix: Mix::of_percents(read_percent, 0),
            mix_by_run: false,
            sizes: PerKind::all(Sizes::Fixed(block_bytes)),
            align_bytes: 0,
            burst: 1,
            delay_ns: 0,
            delay_law: ThinkLaw::Fixed,
            by_period: false,
            reply_bytes: 0,
            writes_after_trims: false,
        };
        Self { offset_bytes: 0, span_bytes: u64::MAX, strided: None, lines: vec![line] }
    }

    /// `4K random read`, `1M sequential write`, `4K random 70/30`, `4K-64K zipf 1.1 read`.
    pub fn describe(&self) -> String {
        let words = match self.lines.as_slice() {
            [line] => line.describe(),
            lines => format!("{} lines", lines.len()),
        };
        self.strided.map_or(words.clone(), |zones| format!("{words} {}", zones.describe()))
    }

    /// `read`, `write`, `trim` or the mix as `70/30`, with trims `60/30/10`.
    pub fn direction(&self) -> String {
        match self.lines.as_slice() {
            [line] => line.direction(),
            _ => "mixed".into(),
        }
    }

    /// Whether all is sequential, or all is random in some way; `None` for a blend.
    pub fn pattern(&self) -> Option<Pattern> {
        let mut patterns = self.lines.iter().map(Line::pattern);
        let first = patterns.next().flatten()?;
        patterns.all(|p| p == Some(first)).then_some(first)
    }

    /// The one size of all operations; `None` where they differ.
    pub fn block_bytes(&self) -> Option<u32> {
        let (least, most) = (self.smallest_bytes(), self.largest_bytes());
        (least == most && self.lines.iter().all(|l| l.reply_bytes == 0)).then_some(most)
    }

    /// The one size of operations that go one behind the other and nowhere else, and how many of each block there are.
    pub fn in_order(&self) -> Option<(u64, u64)> {
        let [line] = self.lines.as_slice() else { return None };
        let plain = matches!(
            line.order,
            Order::Sequential(Steps { stride_bytes: 0, hole_bytes: 0, backwards: false, .. })
        );
        let size: u64 = self.block_bytes().filter(|_| plain && line.positions == Positions::Shared)?.into();
        // An alignment that is no divisor of the size leaves gaps between them.
        let is_close = line.align_bytes == 0 || size.is_multiple_of(line.align_bytes);
        is_close.then(|| (size, if line.has_pairs() { 2 } else { 1 }))
    }

    /// The largest operation.
    pub fn largest_bytes(&self) -> u32 {
        let lines = self.lines.iter();
        lines
            .map(|l| l.drawn_sizes().map(Sizes::most).max().unwrap_or(0).max(l.reply_bytes))
            .max()
            .unwrap_or(0)
    }

    /// The smallest operation, replies aside.
    pub fn smallest_bytes(&self) -> u32 {
        self.lines.iter().flat_map(|l| l.drawn_sizes().map(Sizes::least)).min().unwrap_or(0)
    }

    /// The share of reads where it is the same in all lines and nothing is trimmed.
    pub fn read_percent(&self) -> Option<Percent> {
        let first = self.lines.first()?.mix;
        (!first.does(Kind::Trim) && self.lines.iter().all(|l| l.mix == first)).then_some(first.read_percent)
    }

    /// The kinds of operation that this access draws, syncs aside.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|k| self.lines.iter().any(|l| l.does(*k)))
    }

    /// Whether anything is read.
    pub fn reads(&self) -> bool {
        self.kinds().any(|k| k == Kind::Read)
    }

    /// Whether anything is changed: written or trimmed.
    pub fn writes(&self) -> bool {
        self.kinds().any(|k| k != Kind::Read)
    }
}

impl Line {
    /// Whether operations of a kind are drawn.
    pub fn does(&self, kind: Kind) -> bool {
        let replies = |to: Kind| self.reply_bytes > 0 && self.mix.does(to);
        let follows = match kind {
            Kind::Read => replies(Kind::Write),
            Kind::Write => replies(Kind::Read) || self.has_pairs(),
            Kind::Trim | Kind::Sync => false,
        };
        self.mix.does(kind) || follows
    }

    /// Whether a trim and the write behind it come one after the other.
    pub fn has_pairs(&self) -> bool {
        self.writes_after_trims && self.mix.does(Kind::Trim)
    }

    /// `read`, `write`, `trim`, the mix as `70/30`, or `trimwrite`.
    pub fn direction(&self) -> String {
        match self.mix.describe() {
            words if !self.has_pairs() => words,
            _ if self.mix.trim_percent == Percent::ALL => "trimwrite".into(),
            words => format!("{words}, a write after each trim"),
        }
    }

    /// Sizes of the directions that are drawn; a write behind a trim has that of the trim.
    pub fn drawn_sizes(&self) -> impl Iterator<Item = &Sizes> {
        let PerKind { read, write, trim } = &self.sizes;
        [(Kind::Read, read), (Kind::Write, write), (Kind::Trim, trim)]
            .into_iter()
            .filter_map(|(kind, sizes)| self.mix.does(kind).then_some(sizes))
    }

    /// Whether it is sequential or random; `None` for a blend of both.
    pub fn pattern(&self) -> Option<Pattern> {
        self.order.pattern().filter(|_| !self.is_in_rows())
    }

    /// Whether several operations follow each other from a random offset on.
    pub fn is_in_rows(&self) -> bool {
        let goes_on = self.consecutive > 1 || self.run_length.is_some_and(|length| length > 1.0);
        goes_on && self.order.pattern() != Some(Pattern::Sequential)
    }

    fn describe(&self) -> String {
        let mut sizes: Vec<String> = Vec::new();
        for words in self.drawn_sizes().map(Sizes::in_a_name) {
            if !sizes.contains(&words) {
                sizes.push(words);
            }
        }
        let apart = match self.positions {
            Positions::Shared => "",
            Positions::Own => ", a position each",
            Positions::OwnRestart => ", a position each until one reaches the end",
        };
        let times = if self.times > 1 { format!(", each place {} times", self.times) } else { String::new() };
        let runs = if self.mix_by_run { ", a direction each run" } else { "" };
        let row = match self.run_length {
            _ if !self.is_in_rows() => String::new(),
            Some(length) => format!(", runs of {length} in the mean"),
            None => format!(", {} in a row", self.consecutive),
        };
        let woven =
            if self.interleaved > 1 { format!(", {} at once", self.interleaved) } else { String::new() };
        let order = self.order.describe();
        format!("{} {order} {}{row}{woven}{times}{runs}{apart}", sizes.join("/"), self.direction())
    }
}

#[test]
fn words_are_those_of_the_field() {
    let plain = Access::plain(Pattern::Random, 4096, 70);
    assert_eq!((plain.describe().as_str(), plain.block_bytes()), ("4K random 70/30", Some(4096)));
    let mut odd = Access::plain(Pattern::Random, 4096, 60);
    odd.lines[0].consecutive = 8;
    assert_eq!((odd.describe().as_str(), odd.pattern()), ("4K random 60/40, 8 in a row", None));
    odd.lines[0].consecutive = 1;
    (odd.lines[0].run_length, odd.lines[0].interleaved) = (Some(3.5), 4);
    assert_eq!(odd.describe(), "4K random 60/40, runs of 3.5 in the mean, 4 at once");
    (odd.lines[0].run_length, odd.lines[0].interleaved) = (None, 1);
    odd.lines[0].mix.trim_percent = Percent::whole(10);
    odd.lines[0].order = Order::Zipf(1.1);
    odd.lines[0].sizes.write = Sizes::Range(4096, 65536);
    assert_eq!(odd.describe(), "4K/4K-64K zipf 1.1 60/30/10");
    let mut pairs = Access::plain(Pattern::Sequential, 4096, 0);
    (pairs.lines[0].mix, pairs.lines[0].writes_after_trims) = (Mix::of_percents(0, 100), true);
    assert_eq!(
        (pairs.describe().as_str(), pairs.direction().as_str()),
        ("4K sequential trimwrite", "trimwrite")
    );
    assert_eq!(
        (pairs.kinds().collect::<Vec<_>>(), pairs.block_bytes()),
        (vec![Kind::Write, Kind::Trim], Some(4096))
    );
    pairs.lines[0].mix = Mix::of_percents(60, 10);
    assert_eq!(pairs.direction(), "60/30/10, a write after each trim");
    let sizes = |sizes: Sizes| {
        let mut access = Access::plain(Pattern::Sequential, 512, 0);
        access.lines[0].sizes = PerKind::all(sizes);
        access.describe()
    };
    assert_eq!(sizes(Sizes::Fixed(2300)), "2300 B sequential write");
    assert_eq!(sizes(Sizes::Range(512, 1536)), "512-1536 B sequential write");
    assert_eq!(sizes(Sizes::Range(512, 4096)), "512-4K sequential write");
    assert_eq!(sizes(Sizes::Split(vec![(512, 60), (4096, 40)])), "512:60,4K:40 sequential write");
    assert_eq!((odd.block_bytes(), odd.largest_bytes(), odd.read_percent()), (None, 65536, None));
    assert_eq!(odd.kinds().collect::<Vec<_>>(), [Kind::Read, Kind::Write, Kind::Trim]);
}
