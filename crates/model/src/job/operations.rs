//! Operations of a stream: their kinds, mix, sizes and order of offsets, zones, and the lines of an access
//! specification with their pauses.

use super::files::{is_one, one};
use crate::units::{show_block, show_bytes, show_ns};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Range;

enum_of_words! {
    /// The effect of an operation.
    #[derive(PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    Kind {
        /// Moves bytes from the target.
        Read = "read",
        /// Moves bytes to the target.
        Write = "write",
        /// Deallocates bytes of the target (discard, punched hole).
        Trim = "trim",
        /// Makes writes stable.
        Sync = "sync",
    }
}

impl Kind {
    /// All kinds, in the order of their indices.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Sync];
    /// The kinds that move bytes between memory and target.
    pub const MOVING: [Self; 2] = [Self::Read, Self::Write];
}

/// Shares of directions in percent; the rest are writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mix {
    /// Share of reads.
    pub read_percent: Percent,
    /// Share of trims.
    #[serde(default)]
    pub trim_percent: Percent,
}

/// A share from 0 to 100 %, stored in millionths of a percent, so that equal shares compare as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

/// Number of stored units per percent.
const PARTS: u32 = 1_000_000;

impl Percent {
    /// 0 %.
    pub const NONE: Self = Self(0);
    /// 100 %.
    pub const ALL: Self = Self(100 * PARTS);

    /// Creates a share of a whole number of percent; values above 100 count as 100.
    pub const fn whole(percent: u8) -> Self {
        if percent >= 100 { Self::ALL } else { Self(percent as u32 * PARTS) }
    }

    /// Returns the nearest share; `None` if `percent` is below 0, above 100 or not a number.
    pub fn nearest(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then(|| Self((percent * f64::from(PARTS)).round() as u32))
    }

    /// Returns the share as a number from 0 to 100.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(PARTS)
    }

    /// Returns 100 % minus this and the other share; 0 if their sum exceeds 100 %.
    #[must_use]
    pub fn rest(self, other: Self) -> Self {
        Self(Self::ALL.0.saturating_sub(self.0).saturating_sub(other.0))
    }
}

/// Formats the share with as few digits as possible: `70`, `76.923077`.
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Writes whole percents as whole numbers, like older versions, which had no fractions.
impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(PARTS) {
            return serializer.serialize_u32(self.0 / PARTS);
        }
        serializer.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        Self::nearest(number)
            .ok_or_else(|| D::Error::custom(format!("{number} is not a share of 0 to 100 %")))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Percent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "A share in percent.", "type": "number", "minimum": 0, "maximum": 100 })
    }
}

impl Mix {
    /// As many reads as writes, the default mix.
    pub const EVEN: Self = Self::from_percents(50, 0);

    /// Creates a mix from whole percents of reads and trims.
    pub const fn from_percents(reads: u8, trims: u8) -> Self {
        Self { read_percent: Percent::whole(reads), trim_percent: Percent::whole(trims) }
    }

    /// Returns the share of a direction; 0 for syncs, which are not drawn at random.
    pub fn share(self, kind: Kind) -> Percent {
        match kind {
            Kind::Read => self.read_percent,
            Kind::Write => self.read_percent.rest(self.trim_percent),
            Kind::Trim => self.trim_percent,
            Kind::Sync => Percent::NONE,
        }
    }

    /// Whether the mix has operations of a direction.
    pub fn does(self, kind: Kind) -> bool {
        self.share(kind) > Percent::NONE
    }

    /// Returns text such as `read`, `write`, `trim`, `70/30`, `60/30/10`.
    pub fn describe(self) -> String {
        let [read, write, trim] = [Kind::Read, Kind::Write, Kind::Trim].map(|kind| self.share(kind));
        match (read, trim) {
            (Percent::ALL, _) => "read".into(),
            (Percent::NONE, Percent::NONE) => "write".into(),
            (_, Percent::ALL) => "trim".into(),
            (_, Percent::NONE) => format!("{read}/{write}"),
            _ => format!("{read}/{write}/{trim}"),
        }
    }
}

/// A value for each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerKind<T> {
    /// Value for operations that move bytes from the target.
    pub read: T,
    /// Value for operations that move bytes to the target.
    pub write: T,
    /// Value for operations that deallocate bytes.
    pub trim: T,
}

impl<T: Clone> PerKind<T> {
    /// Creates the same value for every direction.
    pub fn all(value: T) -> Self {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }
}

impl<T: Copy + Default + PartialEq> PerKind<T> {
    /// Returns the name (`read`, `write`, `trim`) and the value of each direction whose value is
    /// not the default.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, T)> {
        let Self { read, write, trim } = *self;
        let all = [(Kind::Read, read), (Kind::Write, write), (Kind::Trim, trim)];
        all.into_iter().filter(|(_, value)| *value != T::default()).map(|(kind, value)| (kind.word(), value))
    }

    /// Returns the value for a kind; the default for syncs.
    pub fn for_kind(&self, kind: Kind) -> T {
        match kind {
            Kind::Read => self.read,
            Kind::Write => self.write,
            Kind::Trim => self.trim,
            Kind::Sync => T::default(),
        }
    }
}

/// Sizes of operations in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// One size for all operations.
    Fixed(u32),
    /// Every multiple of the alignment from the first size to the second, equally likely. Without an alignment, every
    /// multiple of the first size.
    Range(u32, u32),
    /// Several sizes: pairs of a size in bytes and its weight.
    Split(Vec<(u32, u32)>),
}

impl Sizes {
    /// Returns the only size; `None` if sizes differ.
    pub fn fixed(&self) -> Option<u32> {
        if let Self::Fixed(size) = self { Some(*size) } else { None }
    }

    /// Returns the smallest size.
    pub fn least(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(size, _) => *size,
            Self::Split(sizes) => sizes.iter().map(|s| s.0).min().unwrap_or(0),
        }
    }

    /// Returns the largest size.
    pub fn most(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(_, size) => *size,
            Self::Split(sizes) => sizes.iter().map(|s| s.0).max().unwrap_or(0),
        }
    }

    /// Returns text such as `4K`, `4K-64K`, `4K:60,64K:40`.
    pub fn describe(&self) -> String {
        let block = |b: u32| show_block(u64::from(b));
        match self {
            Self::Fixed(size) => block(*size),
            Self::Range(least, most) => format!("{}-{}", block(*least), block(*most)),
            Self::Split(sizes) => {
                let all: u64 = sizes.iter().map(|(_, weight)| u64::from(*weight)).sum();
                // Print as many digits as a user may type for a share.
                let share = |weight: u32| (f64::from(weight) * 1e6 / all.max(1) as f64).round() / 1e4;
                let one = |(size, weight): &(u32, u32)| format!("{}:{}", block(*size), share(*weight));
                sizes.iter().map(one).collect::<Vec<_>>().join(",")
            }
        }
    }

    /// Formats the sizes for a name, where a bare number would not look like a size: `512 B`, `4K`, `512-1000 B`.
    pub fn in_a_name(&self) -> String {
        let text = self.describe();
        let bare = match self {
            Self::Fixed(_) | Self::Range(..) => text.ends_with(|c: char| c.is_ascii_digit()),
            Self::Split(_) => false,
        };
        if bare { format!("{text} B") } else { text }
    }
}

/// Whether offsets are sequential or random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One block after another.
    Sequential,
    /// At random offsets.
    #[default]
    Random,
}

/// Order of offsets with its parameters. Random offsets are multiples of the alignment; without one, of the smallest
/// size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Each operation begins where the lane's previous operation ended, unless the steps set another distance. After the
    /// end of the span, operations continue at its beginning.
    Sequential(Steps),
    /// Every block of the span equally likely each time, with replacement.
    Random,
    /// Every block of the span once per pass, in an order that differs from pass to pass; workers divide the blocks.
    Once,
    /// A random offset with this probability in percent, otherwise the end of the last operation: sequential runs of
    /// geometric length.
    Mixed(f64),
    /// As [`Order::Mixed`], with a probability for each direction.
    MixedEach(PerKind<f64>),
    /// Zipf: the block of rank k has a probability proportional to k^-theta. The ranks are scattered over the span,
    /// unless the line is `clustered`.
    Zipf(f64),
    /// Self-similar: the share h (0 to 1) of the blocks gets 1 - h of the operations, and the same holds recursively
    /// within this share. The frequent blocks are scattered over the span, unless the line is `clustered`.
    Pareto(f64),
    /// Normally distributed around the middle of the span, with this standard deviation in percent of the span. Offsets
    /// outside the span are drawn again.
    Normal(f64),
    /// Adjacent zones, each with its share of the operations. Offsets within a zone are uniform.
    Zones(Vec<Zone>),
}

/// Where the operations of a sequential order begin, and the distances between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steps {
    /// Distance in bytes from the start of one operation to the start of the next; 0 for the size of the operation.
    pub stride_bytes: u64,
    /// Bytes skipped after each operation.
    pub hole_bytes: u64,
    /// Whether offsets descend from the end of the span to its beginning.
    pub backwards: bool,
    /// The first offset of each worker.
    pub start: Start,
}

/// The first offset of each worker in a sequential order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Each worker at the beginning of its own part of the span.
    #[default]
    Spread,
    /// All workers at the first byte, so that each touches the same blocks.
    Same,
    /// Each worker this many bytes after the previous worker.
    Every(u64),
    /// All workers share one position: each operation takes the next block from there.
    Interlocked,
}

impl Start {
    /// Formats the value as typed: `every:1048576`.
    pub fn to_flag(self) -> String {
        match self {
            Self::Spread => "spread".into(),
            Self::Same => "same".into(),
            Self::Interlocked => "interlocked".into(),
            Self::Every(bytes) => format!("every:{bytes}"),
        }
    }
}

/// The position from which an operation continues in a mix of directions, unless its offset is random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Positions {
    /// From the last operation of any direction.
    #[default]
    Shared,
    /// From the last operation of its own direction; all directions begin at the same place.
    Own,
    /// As [`Positions::Own`]. When one direction reaches the end of the span, all of them restart.
    OwnRestart,
}

/// A zone of a span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zone {
    /// Share of the operations in percent; all zones sum to 100.
    pub access_percent: f64,
    /// Size of the zone, in percent of the span or in bytes.
    pub size: ZoneSize,
}

/// Size of a zone, in percent of the span or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ZoneSize {
    /// Percent of the span.
    Percent(f64),
    /// A size in bytes. If the last zone would extend beyond the span, it ends with the span.
    Bytes(u64),
    /// At most this many bytes. A zone without space in the span gets no operations, and the other zones get its share.
    UpTo(u64),
}

impl Positions {
    /// All values with the text that a user types.
    pub const WORDS: [(&'static str, Self); 3] =
        [("shared", Self::Shared), ("own", Self::Own), ("own-restart", Self::OwnRestart)];
}

impl Order {
    /// Whether the order is sequential or random; `None` for a blend of both.
    pub fn pattern(&self) -> Option<Pattern> {
        match self {
            Self::Sequential(_) => Some(Pattern::Sequential),
            Self::Mixed(_) | Self::MixedEach(_) => None,
            _ => Some(Pattern::Random),
        }
    }

    /// Returns text such as `sequential`, `random`, `zipf 1.1`, ...
    pub fn describe(&self) -> String {
        match self {
            Self::Sequential(steps) => {
                let mut text = String::from("sequential");
                if steps.backwards {
                    text += " backwards";
                }
                if steps.stride_bytes > 0 {
                    text += &format!(" stride {}", show_block(steps.stride_bytes));
                }
                if steps.hole_bytes > 0 {
                    text += &format!(" holes {}", show_block(steps.hole_bytes));
                }
                text
            }
            Self::Random => "random".into(),
            Self::Once => "random once".into(),
            Self::Mixed(percent) => format!("{percent} % random"),
            Self::MixedEach(PerKind { read, write, trim }) => {
                format!("{read} % of reads, {write} % of writes and {trim} % of trims random")
            }
            Self::Zipf(theta) => format!("zipf {theta}"),
            Self::Pareto(h) => format!("pareto {h}"),
            Self::Normal(deviation) => format!("normal {deviation} %"),
            Self::Zones(zones) => {
                let parts = zones.iter().map(|z| {
                    let size = match z.size {
                        ZoneSize::Percent(p) => format!("{p} %"),
                        ZoneSize::UpTo(u64::MAX) => "the rest".into(),
                        ZoneSize::Bytes(b) | ZoneSize::UpTo(b) => show_bytes(b),
                    };
                    format!("{} % to {size}", z.access_percent)
                });
                format!("zones ({})", parts.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Zones that are used one after another, from the first byte of the span. After the end of the span, the first zone
/// follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Strided {
    /// Bytes, of all directions together, after which the next zone begins.
    pub bytes: u64,
    /// Bytes of a zone. If a zone is smaller than `bytes`, its blocks are used repeatedly.
    pub range_bytes: u64,
    /// Bytes skipped after each zone.
    #[serde(default)]
    pub skip_bytes: u64,
}

impl Strided {
    /// Returns the distance in bytes from the beginning of one zone to the beginning of the next;
    /// at least 1.
    pub fn step_bytes(&self) -> u64 {
        self.range_bytes.saturating_add(self.skip_bytes).max(1)
    }

    /// Returns the number of complete zones in a span of `span_bytes`.
    pub fn whole(&self, span_bytes: u64) -> u64 {
        span_bytes.checked_sub(self.range_bytes).map_or(0, |rest| rest / self.step_bytes() + 1)
    }

    /// Returns the length in bytes, within the span, of a last zone that the end of the span makes shorter; 0 if all
    /// zones are complete.
    pub fn cut_off(&self, span_bytes: u64) -> u64 {
        span_bytes.saturating_sub(self.whole(span_bytes).saturating_mul(self.step_bytes()))
    }

    /// Returns the bytes moved in a last zone that the end of the span makes shorter, if operations of `size` bytes cover
    /// the zone in order, each repeated `times` times.
    pub fn last_bytes(&self, span_bytes: u64, size: u64, times: u64) -> u64 {
        let fit = self.cut_off(span_bytes) / size.max(1);
        fit.saturating_mul(size).saturating_mul(times).min(self.moved(size.saturating_mul(times)))
    }

    /// Returns the bytes moved in a zone by operations of one size. The last operation may exceed `bytes`.
    pub fn moved(&self, size: u64) -> u64 {
        self.bytes.checked_next_multiple_of(size.max(1)).unwrap_or(u64::MAX)
    }

    /// Returns text such as `in zones of 1G`, `in zones of 1G (256M each), 2G apart`.
    pub fn describe(&self) -> String {
        let each = if self.bytes == self.range_bytes {
            String::new()
        } else {
            format!(" ({} each)", show_block(self.bytes))
        };
        let apart = match self.skip_bytes {
            0 => String::new(),
            skip => format!(", {} apart", show_block(skip)),
        };
        format!("in zones of {}{each}{apart}", show_block(self.range_bytes))
    }
}

/// Which blocks operations touch, in which order, and in which directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Access {
    /// First byte of the span.
    pub offset_bytes: u64,
    /// Length of the span: the bytes that operations may touch.
    pub span_bytes: u64,
    /// Zones of the span that are used one at a time; `None` without zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strided: Option<Strided>,
    /// Lines of an access specification, one in the plain case. Each operation draws its line by weight.
    pub lines: Vec<Line>,
}

/// One line of an access specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch")]
pub struct Line {
    /// Weight among the lines. The weights sum to 100, except where lines summarize turns.
    pub weight: u32,
    /// Order of offsets.
    pub order: Order,
    /// Whether the frequent blocks of [`Order::Zipf`] and [`Order::Pareto`] are next to each other, from the span's
    /// first byte on. Otherwise they are scattered over the span.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clustered: bool,
    /// Whether all directions continue from one common position, or each direction from its own.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub positions: Positions,
    /// Number of consecutive operations from each random offset; 1 if every operation has its own random offset.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub consecutive: u32,
    /// Mean number of sequential operations from each random offset; the numbers are geometrically distributed. `None` if
    /// `consecutive` gives a fixed number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_length: Option<f64>,
    /// Number of concurrent sequential runs. Each operation continues one of the runs, chosen at random.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub interleaved: u32,
    /// Number of operations at each offset before the next offset; normally 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub times: u32,
    /// Shares of directions, drawn per operation.
    pub mix: Mix,
    /// Whether the direction is drawn only at a random offset. All sequential operations that
    /// follow have the same direction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mix_by_run: bool,
    /// Sizes of reads, writes and trims.
    pub sizes: PerKind<Sizes>,
    /// Alignment of offsets, counted from the span's first byte. 0 for the alignment of the target in a sequential order,
    /// and for the smallest size in a random order.
    pub align_bytes: u64,
    /// Operations in a burst; matters only with `delay_ns`.
    pub burst: u32,
    /// Mean pause in ns before each burst, from the completion of the previous burst; 0 for none.
    pub delay_ns: u64,
    /// How pauses vary around `delay_ns`.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub delay_law: ThinkLaw,
    /// Whether `delay_ns` is the period from the beginning of one burst to the beginning of the next. A late burst then
    /// shortens the next pause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_period: bool,
    /// Size in bytes of the reply: a read that follows each write, and a write that follows each read; 0 for no replies.
    pub reply_bytes: u32,
    /// Whether a write of the same bytes follows each trim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes_after_trims: bool,
}

impl Access {
    /// Creates a plain access: one order, one size, reads and writes.
    pub fn plain(pattern: Pattern, block_bytes: u32, read_percent: u8) -> Self {
        let order = match pattern {
            Pattern::Sequential => Order::Sequential(Steps::default()),
            Pattern::Random => Order::Random,
        };
        let line = Line {
            order,
            mix: Mix::from_percents(read_percent, 0),
            sizes: PerKind::all(Sizes::Fixed(block_bytes)),
            ..Line::default()
        };
        Self { offset_bytes: 0, span_bytes: u64::MAX, strided: None, lines: vec![line] }
    }

    /// Returns the span: the range of bytes that operations may touch. It may reach beyond the end of the target.
    pub fn region(&self) -> Range<u64> {
        self.offset_bytes..self.offset_bytes.saturating_add(self.span_bytes)
    }

    /// Returns text such as `4K random read`, `1M sequential write`, `4K random 70/30`, `4K-64K
    /// zipf 1.1 read`.
    pub fn describe(&self) -> String {
        let text = match self.lines.as_slice() {
            [line] => line.describe(),
            lines => format!("{} lines", lines.len()),
        };
        self.strided.map_or(text.clone(), |zones| format!("{text} {}", zones.describe()))
    }

    /// Returns `read`, `write`, `trim`, or the mix as `70/30`, with trims as `60/30/10`; `mixed`
    /// for several lines.
    pub fn direction(&self) -> String {
        match self.lines.as_slice() {
            [line] => line.direction(),
            _ => "mixed".into(),
        }
    }

    /// Returns the pattern that all lines have; `None` if lines differ, or if a line blends both patterns.
    pub fn pattern(&self) -> Option<Pattern> {
        let mut patterns = self.lines.iter().map(Line::pattern);
        let first = patterns.next().flatten()?;
        patterns.all(|p| p == Some(first)).then_some(first)
    }

    /// Returns the size of all operations in bytes; `None` if sizes differ, or if a line has replies.
    pub fn block_bytes(&self) -> Option<u32> {
        let (least, most) = (self.smallest_bytes(), self.largest_bytes());
        (least == most && self.lines.iter().all(|l| l.reply_bytes == 0)).then_some(most)
    }

    /// Returns the bytes moved in a last zone that the end of the span makes shorter. Only strictly sequential operations
    /// use such a zone, so the result is 0 for all others.
    pub fn bytes_in_last_zone(&self, zones: Strided, span_bytes: u64) -> u64 {
        let [line] = self.lines.as_slice() else { return 0 };
        let is_plain = line.positions == Positions::Shared
            && matches!(
                line.order,
                Order::Sequential(Steps { stride_bytes: 0, hole_bytes: 0, backwards: false, .. })
            );
        let Some(size) = self.block_bytes().filter(|_| is_plain).map(u64::from) else { return 0 };
        // An alignment that does not divide the size leaves gaps between operations.
        if line.align_bytes > 0 && !size.is_multiple_of(line.align_bytes) {
            return 0;
        }
        zones.last_bytes(span_bytes, size, line.times_each())
    }

    /// Returns how often a pass covers the same bytes. With several lines, this is the largest number of any line.
    pub fn times_each(&self) -> u64 {
        self.lines.iter().map(Line::times_each).max().unwrap_or(1)
    }

    /// Returns the size of the largest operation in bytes, including replies.
    pub fn largest_bytes(&self) -> u32 {
        let lines = self.lines.iter();
        lines
            .map(|l| l.drawn_sizes().map(Sizes::most).max().unwrap_or(0).max(l.reply_bytes))
            .max()
            .unwrap_or(0)
    }

    /// Returns the size of the smallest operation in bytes, not counting replies.
    pub fn smallest_bytes(&self) -> u32 {
        self.lines.iter().flat_map(|l| l.drawn_sizes().map(Sizes::least)).min().unwrap_or(0)
    }

    /// Returns the share of reads; `None` if a line trims, or if the lines have different mixes.
    pub fn read_percent(&self) -> Option<Percent> {
        let first = self.lines.first()?.mix;
        (!first.does(Kind::Trim) && self.lines.iter().all(|l| l.mix == first)).then_some(first.read_percent)
    }

    /// Returns the kinds of operation in this access, without syncs.
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

/// Random reads and writes of 4 KiB, one after another without pauses.
impl Default for Line {
    fn default() -> Self {
        Self {
            weight: 100,
            order: Order::Random,
            clustered: false,
            positions: Positions::default(),
            consecutive: 1,
            run_length: None,
            interleaved: 1,
            times: 1,
            mix: Mix::EVEN,
            mix_by_run: false,
            sizes: PerKind::all(Sizes::Fixed(4096)),
            align_bytes: 0,
            burst: 1,
            delay_ns: 0,
            delay_law: ThinkLaw::Fixed,
            by_period: false,
            reply_bytes: 0,
            writes_after_trims: false,
        }
    }
}

impl Line {
    /// Whether the line has operations of this kind, including replies, and writes after trims.
    pub fn does(&self, kind: Kind) -> bool {
        let replies = |to: Kind| self.reply_bytes > 0 && self.mix.does(to);
        let follows = match kind {
            Kind::Read => replies(Kind::Write),
            Kind::Write => replies(Kind::Read) || self.has_pairs(),
            Kind::Trim | Kind::Sync => false,
        };
        self.mix.does(kind) || follows
    }

    /// Whether writes follow trims of the same bytes.
    pub fn has_pairs(&self) -> bool {
        self.writes_after_trims && self.mix.does(Kind::Trim)
    }

    /// Returns how often a pass covers the same bytes: a trim and the write after it, or several operations at each offset.
    pub fn times_each(&self) -> u64 {
        if self.has_pairs() { 2 } else { u64::from(self.times.max(1)) }
    }

    /// Returns `read`, `write`, `trim`, the mix as `70/30`, `trimwrite`, or the mix followed by `, a write after each trim`.
    pub fn direction(&self) -> String {
        match self.mix.describe() {
            mix if !self.has_pairs() => mix,
            _ if self.mix.trim_percent == Percent::ALL => "trimwrite".into(),
            mix => format!("{mix}, a write after each trim"),
        }
    }

    /// Returns the sizes of the directions that the line has. A write after a trim has the size of the trim.
    pub fn drawn_sizes(&self) -> impl Iterator<Item = &Sizes> {
        let PerKind { read, write, trim } = &self.sizes;
        [(Kind::Read, read), (Kind::Write, write), (Kind::Trim, trim)]
            .into_iter()
            .filter_map(|(kind, sizes)| self.mix.does(kind).then_some(sizes))
    }

    /// Returns whether the access is sequential or random; `None` for a blend of both, such as
    /// sequential runs from random offsets.
    pub fn pattern(&self) -> Option<Pattern> {
        self.order.pattern().filter(|_| !self.is_in_rows())
    }

    /// Whether each random offset is the start of several sequential operations.
    pub fn is_in_rows(&self) -> bool {
        let goes_on = self.consecutive > 1 || self.run_length.is_some_and(|length| length > 1.0);
        goes_on && self.order.pattern() != Some(Pattern::Sequential)
    }

    /// Returns the probabilities that a read, a write or a trim continues a run from a random offset, according to
    /// `run_length` or [`Order::MixedEach`]; 0 without both. `None` if the mean length or a percentage is invalid.
    pub fn chances_to_continue(&self) -> Option<[f64; 3]> {
        let chances = match (self.run_length, &self.order) {
            (Some(length), _) if length.is_infinite() => return None,
            (Some(length), _) => [1.0 - 1.0 / length; 3],
            (None, Order::MixedEach(PerKind { read, write, trim })) => {
                [read, write, trim].map(|percent| 1.0 - percent / 100.0)
            }
            (None, _) => [0.0; 3],
        };
        chances.iter().all(|chance| (0.0..=1.0).contains(chance)).then_some(chances)
    }

    /// Describes the order of this line, followed by its settings that differ from the defaults:
    /// `random, aligned to 4K`.
    pub fn describe_order(&self) -> String {
        let mut order = self.order.describe() + self.describe_clusters();
        if let Order::Sequential(steps) = &self.order
            && steps.start != Start::default()
        {
            order += &format!(", workers from {}", steps.start.to_flag());
        }
        order += &self.describe_rows();
        if self.interleaved > 1 {
            order += &format!(", {} runs at once", self.interleaved);
        }
        order += match self.positions {
            Positions::Shared => "",
            Positions::Own => ", a position for each direction",
            Positions::OwnRestart => ", a position for each direction until one reaches the end",
        };
        if self.align_bytes > 0 {
            order += &format!(", aligned to {}", show_block(self.align_bytes));
        }
        if self.delay_ns > 0 {
            let pause = self.delay_law.describe_mean(self.delay_ns);
            order += &format!(", {pause} between bursts of {}", self.burst);
        }
        order += &self.describe_replies();
        if self.weight != 100 {
            order += &format!(", {} %", self.weight);
        }
        order
    }

    fn describe_clusters(&self) -> &'static str {
        if self.clustered { " clustered" } else { "" }
    }

    /// Describes the sequential runs from random offsets; empty without runs.
    fn describe_rows(&self) -> String {
        match self.run_length {
            _ if !self.is_in_rows() => String::new(),
            Some(length) => format!(", runs of {length} in the mean"),
            None => format!(", {} in a row", self.consecutive),
        }
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
        let row = self.describe_rows();
        let woven =
            if self.interleaved > 1 { format!(", {} at once", self.interleaved) } else { String::new() };
        let (order, once) = match self.order {
            Order::Once => ("random".to_owned(), ", each block once"),
            _ => (self.order.describe() + self.describe_clusters(), ""),
        };
        let replies = self.describe_replies();
        format!(
            "{} {order} {}{once}{row}{woven}{times}{runs}{apart}{replies}",
            sizes.join("/"),
            self.direction()
        )
    }

    fn describe_replies(&self) -> String {
        let replies = || format!(", replies of {}", show_block(u64::from(self.reply_bytes)));
        if self.reply_bytes > 0 { replies() } else { String::new() }
    }
}

/// Pauses: their mean length, and how their lengths vary.
#[derive(Clone, Debug, PartialEq)]
pub struct Think {
    /// Mean of all pauses, in ns.
    pub mean_ns: u64,
    /// Distribution around the mean.
    pub law: ThinkLaw,
}

/// How pauses vary around their mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThinkLaw {
    /// All pauses are equal.
    #[default]
    Fixed,
    /// Exponentially distributed pauses, as between independent users.
    Exponential,
    /// Lognormal: the logarithms of the pauses are normally distributed.
    Lognormal {
        /// Median in ns, which is below the mean.
        median_ns: u64,
    },
    /// The quantiles of the pauses in ascending order, from 0 to 100 %; linear between them.
    Quantiles(Vec<Quantile>),
}

/// A share of pauses, and the duration that this share does not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantile {
    /// Share of the pauses in percent.
    pub percent: f64,
    /// Longest pause of this share, in ns.
    pub ns: u64,
}

impl Think {
    /// Creates pauses of equal length.
    pub fn fixed(ns: u64) -> Self {
        Self { mean_ns: ns, law: ThinkLaw::Fixed }
    }

    /// Creates pauses whose lengths have these quantiles, and computes the mean.
    pub fn quantiles(quantiles: Vec<Quantile>) -> Self {
        let parts = quantiles.iter().zip(quantiles.iter().skip(1));
        let mean = parts.map(|(a, b)| (b.percent - a.percent) / 100.0 * (a.ns as f64 + b.ns as f64) / 2.0);
        Self { mean_ns: mean.sum::<f64>().round() as u64, law: ThinkLaw::Quantiles(quantiles) }
    }

    /// Returns text such as `100 us`, `exponential, mean 100 us`.
    pub fn describe(&self) -> String {
        self.law.describe_mean(self.mean_ns)
    }
}

impl ThinkLaw {
    /// Describes the distribution together with this mean: `100 us`, `exponential, mean 100 us`.
    pub fn describe_mean(&self, mean_ns: u64) -> String {
        let mean = show_ns(mean_ns as f64);
        match self {
            Self::Fixed => mean,
            Self::Exponential => format!("exponential, mean {mean}"),
            Self::Lognormal { median_ns } => {
                format!("lognormal, median {}, mean {mean}", show_ns(*median_ns as f64))
            }
            Self::Quantiles(all) => format!("by {} quantiles, mean {mean}", all.len()),
        }
    }
}

#[test]
fn percentages_keep_their_decimals() {
    assert_eq!(
        [Mix::from_percents(100, 0), Mix::from_percents(0, 0), Mix::from_percents(0, 100)].map(Mix::describe),
        ["read", "write", "trim"]
    );
    assert_eq!(
        [Mix::from_percents(70, 0), Mix::from_percents(60, 10)].map(Mix::describe),
        ["70/30", "60/30/10"]
    );
    let ratio = |reads: f64, writes: f64| Mix {
        read_percent: Percent::nearest(100.0 * reads / (reads + writes)).unwrap_or_default(),
        trim_percent: Percent::NONE,
    };
    assert_eq!(ratio(1000.0, 300.0).describe(), "76.923077/23.076923");
    assert_eq!(ratio(2.0, 1.0).share(Kind::Write), Percent::nearest(33.333_333).unwrap_or_default());
    assert!([f64::NAN, -1e-9, 100.1].map(Percent::nearest).iter().all(Option::is_none));
    assert_eq!(Percent::whole(200), Percent::ALL);
}

#[test]
fn whole_percentages_serialize_as_integers() {
    let json = |mix: Mix| serde_json::to_string(&mix).unwrap_or_default();
    assert_eq!(json(Mix::from_percents(70, 0)), r#"{"read_percent":70,"trim_percent":0}"#);
    for text in [r#"{"read_percent":70}"#, r#"{"read_percent":70.0,"trim_percent":0}"#] {
        assert_eq!(serde_json::from_str::<Mix>(text).ok(), Some(Mix::from_percents(70, 0)), "{text}");
    }
    let part = r#"{"read_percent":76.923077,"trim_percent":0}"#;
    assert_eq!(serde_json::from_str::<Mix>(part).map(json).unwrap_or_default(), part);
    assert!(serde_json::from_str::<Mix>(r#"{"read_percent":101}"#).is_err());
}

#[test]
fn zones_are_consecutive_and_the_end_cuts_the_last() {
    let strided = Strided { bytes: 10, range_bytes: 16, skip_bytes: 4 };
    let at = |span| (strided.whole(span), strided.cut_off(span));
    assert_eq!(
        [0, 15, 16, 19, 20, 21, 35, 36, 41].map(at),
        [(0, 0), (0, 15), (1, 0), (1, 0), (1, 0), (1, 1), (1, 15), (2, 0), (2, 1)]
    );
    assert_eq!((strided.moved(4), strided.moved(5)), (12, 10));
    assert_eq!(
        (strided.last_bytes(27, 4, 1), strided.last_bytes(35, 4, 1), strided.last_bytes(27, 4, 2)),
        (4, 12, 8)
    );
    assert_eq!(strided.describe(), "in zones of 16 (10 each), 4 apart");
    assert_eq!(Strided { bytes: 4096, range_bytes: 4096, skip_bytes: 0 }.describe(), "in zones of 4K");
    let mut access = Access::plain(Pattern::Sequential, 4, 100);
    assert_eq!(access.bytes_in_last_zone(strided, 27), 4);
    access.lines[0].times = 2;
    assert_eq!(access.bytes_in_last_zone(strided, 27), 8, "each block is read twice");
    access.lines[0].align_bytes = 8;
    assert_eq!(access.bytes_in_last_zone(strided, 27), 0, "operations have gaps");
    assert_eq!(Access::plain(Pattern::Random, 4, 100).bytes_in_last_zone(strided, 27), 0);
    let far = Strided { bytes: u64::MAX, range_bytes: u64::MAX, skip_bytes: u64::MAX };
    assert_eq!((far.whole(u64::MAX), far.cut_off(u64::MAX), far.moved(4096)), (1, 0, u64::MAX));
}

#[test]
fn accesses_are_described_in_the_usual_form() {
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
    let mut once = plain.clone();
    once.lines[0].order = Order::Once;
    assert_eq!(once.describe(), "4K random 70/30, each block once");
    once.lines[0].consecutive = 8;
    assert_eq!(once.describe(), "4K random 70/30, each block once, 8 in a row");
    let mut pairs = Access::plain(Pattern::Sequential, 4096, 0);
    (pairs.lines[0].mix, pairs.lines[0].writes_after_trims) = (Mix::from_percents(0, 100), true);
    assert_eq!(
        (pairs.describe().as_str(), pairs.direction().as_str()),
        ("4K sequential trimwrite", "trimwrite")
    );
    assert_eq!(
        (pairs.kinds().collect::<Vec<_>>(), pairs.block_bytes()),
        (vec![Kind::Write, Kind::Trim], Some(4096))
    );
    pairs.lines[0].mix = Mix::from_percents(60, 10);
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
