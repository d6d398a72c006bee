//! The shape of a stream: sizes, order, offsets and runs as keys of a job file, with comments on how well each key fits.
//!
//! [`Shape`] turns the histograms of sizes and offsets into the keys `rw`, `mix`, `bs`, `offset`, `size`, `random`, `align`, `run-length`
//! and `interleaved`.

use crate::completeness::format_count;
use crate::fit::histograms::{MILLION, Shares, to_parts};
use crate::fit::survey::{Class, DATA_KINDS};
use model::job::Kind;
use model::units::show_bytes;
use trace::SECTOR;

/// Minimum mean run length for the key `run-length`.
const MIN_RUN_LENGTH: f64 = 1.1;
/// Minimum mean run length for the key `interleaved`.
const MIN_INTERLEAVED_RUN_LENGTH: f64 = 1.3;
/// Minimum share of the region that the runs in progress at one time cover, for a sequential order: mean
/// length of a run times the number of interleaved runs. Not required if there are only a few runs.
const MIN_RUN_COVERAGE: f64 = 0.5;

/// The operations of one stream.
pub(super) struct Shape {
    /// The figures of reads, writes and trims.
    pub(super) kinds: Vec<(Kind, Class)>,
    /// All operations together.
    all: Class,
    /// Alignment of offsets and sizes, in sectors.
    align: u64,
    /// Whether runs follow each other through the region.
    pub(super) is_sequential: bool,
}

impl Shape {
    pub(super) fn from_classes(kinds: Vec<(Kind, Class)>, align: u64, may_be_sequential: bool) -> Self {
        let sum: u64 = kinds.iter().map(|(_, class)| class.operations()).sum();
        // Omit kinds whose share is smaller than the smallest share that a job file can express.
        let is_representable =
            |count: u64| count > 0 && u128::from(count) * u128::from(MILLION) >= u128::from(sum);
        let kinds: Vec<_> =
            kinds.into_iter().filter(|(_, class)| is_representable(class.operations())).collect();
        let mut all = kinds.first().map(|(_, class)| class.clone()).unwrap_or_default();
        kinds.iter().skip(1).for_each(|(_, class)| all.join(class));
        let (begin, end) = all.span.unwrap_or((0, 1));
        let runs = all.begun.max(1);
        let run_sectors = all.sizes.bytes() / runs as f64 / SECTOR as f64;
        let has_few_runs = runs <= 2 * u64::from(all.interleaved_runs()) + 1;
        let runs_cover_region =
            run_sectors * f64::from(all.interleaved_runs()) >= MIN_RUN_COVERAGE * (end - begin) as f64;
        let is_sequential = may_be_sequential && (has_few_runs || runs_cover_region);
        Self { kinds, all, align, is_sequential }
    }

    /// Returns the largest operation in bytes.
    pub(super) fn largest(&self) -> u64 {
        u64::from(self.all.sizes.largest()) * SECTOR
    }

    pub(super) fn operations(&self) -> u64 {
        self.all.operations()
    }

    /// Returns the number of operations of a kind.
    pub(super) fn of_kind(&self, kind: Kind) -> u64 {
        self.kinds.iter().find(|(known, _)| *known == kind).map_or(0, |(_, class)| class.operations())
    }

    /// Returns the keys for order, direction, mix, sizes, offsets and runs.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut out = vec![self.direction()];
        out.extend(self.mix());
        out.push(self.sizes());
        out.extend(self.places());
        out.extend(self.runs());
        out
    }

    /// Whether many operations begin where another one ended.
    pub(super) fn is_in_runs(&self) -> bool {
        self.is_sequential || self.all.mean_run_operations() >= MIN_RUN_LENGTH
    }

    fn direction(&self) -> Entry {
        let word = match (self.kinds.as_slice(), self.is_sequential) {
            ([(Kind::Read, _)], true) => "read",
            ([(Kind::Read, _)], false) => "randread",
            ([(Kind::Write, _)], true) => "write",
            ([(Kind::Write, _)], false) => "randwrite",
            ([(Kind::Trim, _)], true) => "trim",
            ([(Kind::Trim, _)], false) => "randtrim",
            (_, true) => "rw",
            (_, false) => "randrw",
        };
        let continued_percent = 100.0 * self.all.continued as f64 / self.operations().max(1) as f64;
        Entry::text(
            "rw",
            word,
            format!(
                "{continued_percent:.1} % of the operations begin where one of the last 64 in their direction ended"
            ),
        )
    }

    fn mix(&self) -> Option<Entry> {
        if self.kinds.len() < 2 {
            return None;
        }
        let counts = DATA_KINDS.map(|kind| self.of_kind(kind));
        let [reads, writes, trims] = counts;
        let named = [(reads, "reads"), (writes, "writes"), (trims, "trims")];
        let comment = named.map(|(count, name)| format_count(count, name)).join(", ");
        Some(Entry::text("mix", &percents(counts, self.operations()).join("/"), comment))
    }

    fn sizes(&self) -> Entry {
        let shares = |class: &Class| class.sizes.shares(self.align as u32);
        let by_kind: Vec<(Kind, Shares)> =
            self.kinds.iter().map(|(kind, class)| (*kind, shares(class))).collect();
        let worst = by_kind.iter().map(|(_, shares)| shares.distance).fold(0.0, f64::max);
        let text = match by_kind.as_slice() {
            [(_, only)] => format_size_shares(only),
            several => {
                let format = |(kind, shares): &(Kind, Shares)| {
                    format!("{}={}", kind.word(), format_size_shares(shares))
                };
                several.iter().map(format).collect::<Vec<_>>().join(",")
            }
        };
        let mean = self.all.sizes.bytes() / self.operations().max(1) as f64;
        let comment = format!("mean {}; KS {worst:.3}", show_bytes(mean as u64));
        Entry::text("bs", &text, comment)
    }

    fn places(&self) -> Vec<Entry> {
        let (begin, end) = self.all.span.unwrap_or((0, 1));
        if self.is_sequential {
            return vec![
                Entry::bytes("offset", begin.saturating_mul(SECTOR), "first byte touched"),
                Entry::bytes("size", (end - begin).saturating_mul(SECTOR), "up to the last byte touched"),
            ];
        }
        let (align, most) = (self.align * SECTOR, self.largest());
        let bins = &self.all.bins;
        let filled = bins.filled();
        let (zones, distance) = bins.zones(filled.clone());
        let offset = bins.first.saturating_add(filled.start as u64 * bins.width).saturating_mul(SECTOR);
        let width = bins.width * SECTOR;
        let all: u64 = filled.len() as u64 * width;
        // Zones divide the offsets at which the largest operation can begin. That operation may extend
        // beyond the last zone, but not beyond the touched bytes.
        let left = end.saturating_mul(SECTOR).saturating_sub(offset);
        let room = left.min(all + most - align).max(most);
        let places = room - most + align;
        let mut kept: Vec<(u64, u64)> = Vec::new();
        let mut first = 0;
        for zone in &zones {
            if first < places || kept.is_empty() {
                kept.push((zone.operations, zone.bins * width));
            } else if let Some(last) = kept.last_mut() {
                last.0 += zone.operations;
            }
            first += zone.bins * width;
        }
        let mut out = vec![
            Entry::bytes("offset", offset, "first byte touched, rounded down to a bin"),
            Entry::bytes("size", room, "up to the last byte touched"),
        ];
        if kept.len() > 1 {
            let percents = percents(kept.iter().map(|(operations, _)| *operations), self.operations());
            let zones = percents.iter().zip(&kept);
            let text: Vec<String> =
                zones.map(|(percent, (_, bytes))| format!("{percent}/{}", format_bytes(*bytes))).collect();
            let comment = format!(
                "{} zones, made from {} bins; largest difference from the capture (KS) {distance:.3}",
                kept.len(),
                filled.len()
            );
            out.push(Entry::text("random", &format!("zones:{}", text.join(",")), comment));
        }
        let smallest = self.kinds.iter().filter_map(|(_, class)| class.sizes.smallest()).min().unwrap_or(0);
        if u64::from(smallest) != self.align {
            out.push(Entry::bytes("align", align, "common divisor of all offsets and sizes"));
        }
        out
    }

    fn runs(&self) -> Vec<Entry> {
        let mut out = Vec::new();
        let length = self.all.mean_run_operations();
        if !self.is_sequential && self.is_in_runs() {
            let comment = format_count(self.all.begun, "runs");
            out.push(Entry::bare("run-length", &format_number(length), comment));
            if self.kinds.len() > 1 {
                out.push(Entry::text("positions", "own", "each run has one direction".into()));
            }
        }
        let interleaved_runs = self.all.interleaved_runs();
        if interleaved_runs > 1 && (length >= MIN_INTERLEAVED_RUN_LENGTH || self.is_sequential) {
            let comment = "mean distance between two operations of a run, in operations";
            out.push(Entry::bare("interleaved", &interleaved_runs.to_string(), comment.into()));
        }
        out
    }
}

/// Formats sizes: `4k`, or `4k:70,8k:30`.
fn format_size_shares(shares: &Shares) -> String {
    let bytes = |sectors: u32| format_bytes(u64::from(sectors) * SECTOR);
    match shares.all.as_slice() {
        [(sectors, _)] => bytes(*sectors),
        several => {
            let one = |(sectors, part): &(u32, u64)| format!("{}:{}", bytes(*sectors), percent(*part));
            several.iter().map(one).collect::<Vec<_>>().join(",")
        }
    }
}

/// Formats each count as a percentage of all operations. The percentages sum to 100.
fn percents(counts: impl IntoIterator<Item = u64>, operations: u64) -> Vec<String> {
    let counts: Vec<(u32, u64)> = (0..).zip(counts).collect();
    let parts = to_parts(&counts, operations);
    let part = |at: u32| parts.iter().find(|(known, _)| *known == at).map_or(0, |(_, part)| *part);
    counts.iter().map(|(at, _)| percent(part(*at))).collect()
}

/// Formats millionths as percent.
fn percent(part: u64) -> String {
    (part as f64 / 1e4).to_string()
}

/// Formats bytes exactly, with a unit if possible.
pub(super) fn format_bytes(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let fits = units.into_iter().find(|(bits, _)| bytes > 0 && bytes.is_multiple_of(1 << bits));
    fits.map_or_else(|| bytes.to_string(), |(bits, unit)| format!("{}{unit}", bytes >> bits))
}

/// Formats a rate or a mean with at least four digits. A small number is not rounded to 0.
pub(super) fn format_number(number: f64) -> String {
    let digits = (3.0 - number.max(1e-9).log10().floor()).clamp(1.0, 9.0) as i32;
    let unit = 10_f64.powi(digits);
    ((number * unit).round().max(1.0) / unit).to_string()
}

/// A key of a job file with its value and comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: &'static str,
    /// The value as text of the job file.
    pub(super) value: String,
    /// The origin of the value, and how well it fits.
    pub(super) comment: String,
}

impl Entry {
    pub(super) fn text(key: &'static str, value: &str, comment: String) -> Self {
        Self { key, value: format!("{value:?}"), comment }
    }

    fn bytes(key: &'static str, bytes: u64, comment: &str) -> Self {
        Self::text(key, &format_bytes(bytes), comment.to_owned())
    }

    pub(super) fn bare(key: &'static str, value: &str, comment: String) -> Self {
        Self { key, value: value.to_owned(), comment }
    }
}

#[test]
fn numbers_are_short_and_sizes_exact() {
    let numbers = [2150.1234, 38.2955, 0.012_345_6, 3e-12, 5.0].map(format_number);
    assert_eq!(numbers, ["2150.1", "38.3", "0.01235", "0.000000001", "5"]);
    assert_eq!(
        [0, 512, 4096, 3 << 20, (1 << 30) + 1024].map(format_bytes),
        ["0", "512", "4k", "3m", "1048577k"]
    );
}
