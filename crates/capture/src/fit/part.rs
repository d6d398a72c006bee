//! Where the operations of a stream go, as a job says it.
//!
//! For: sizes, order, offsets, runs and their number, each with how well it fits. Not for: when they go ([`super::stream`]).

use super::entry::Entry;
use super::gather::{Class, DATA};
use super::sizes::{PARTS, Shares, to_parts};
use crate::SECTOR;
use model::job::Kind;
use model::units::{show_bytes, show_count};

/// Mean length of runs from which on it is told, and of which it is told how many go on at once.
const IN_RUNS: f64 = 1.1;
const WOVEN: f64 = 1.3;
/// Share of its region that the runs of a sequential order go through in the mean, where they are many.
const THROUGH: f64 = 0.5;

/// Operations of some directions that are one stream.
pub(super) struct Shape<'a> {
    /// Reads, writes and trims; those that it does not have are empty.
    pub(super) kinds: Vec<(Kind, &'a Class)>,
    /// All of them together.
    all: Class,
    /// Sectors that places and sizes are multiples of.
    align: u64,
    /// Whether runs go through its region one behind the other.
    pub(super) is_sequential: bool,
}

impl<'a> Shape<'a> {
    pub(super) fn from_classes(kinds: Vec<(Kind, &'a Class)>, align: u64, may_be_sequential: bool) -> Self {
        let sum: u64 = kinds.iter().map(|(_, class)| class.operations()).sum();
        // Fewer than a share can say are not there.
        let is_told = |count: u64| count > 0 && u128::from(count) * u128::from(PARTS) >= u128::from(sum);
        let kinds: Vec<_> = kinds.into_iter().filter(|(_, class)| is_told(class.operations())).collect();
        let mut all = kinds.first().map(|(_, class)| (*class).clone()).unwrap_or_default();
        kinds.iter().skip(1).for_each(|(_, class)| all.join(class));
        let (begin, end) = all.span.unwrap_or((0, 1));
        let runs = all.begun.max(1);
        let of_a_run = all.sizes.bytes() / runs as f64 / SECTOR as f64;
        let few = runs <= 2 * u64::from(all.at_once()) + 1;
        let through = of_a_run * f64::from(all.at_once()) >= THROUGH * (end - begin) as f64;
        let is_sequential = may_be_sequential && (few || through);
        Self { kinds, all, align, is_sequential }
    }

    /// The largest operation in bytes.
    pub(super) fn largest(&self) -> u64 {
        u64::from(self.all.sizes.largest()) * SECTOR
    }

    pub(super) fn operations(&self) -> u64 {
        self.all.operations()
    }

    /// How many of a kind.
    pub(super) fn of_kind(&self, kind: Kind) -> u64 {
        self.kinds.iter().find(|(known, _)| *known == kind).map_or(0, |(_, class)| class.operations())
    }

    /// Order, direction, mix, sizes, places and runs.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut out = vec![self.direction()];
        out.extend(self.mix());
        out.push(self.sizes());
        out.extend(self.places());
        out.extend(self.runs());
        out
    }

    /// Whether many of its operations begin where another one ended.
    pub(super) fn is_in_runs(&self) -> bool {
        self.is_sequential || self.all.run_length() >= IN_RUNS
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
        let goes_on = 100.0 * self.all.continued as f64 / self.operations().max(1) as f64;
        Entry::text(
            "rw",
            word,
            format!("{goes_on:.1} % begin where one of the last 64 of their direction ended"),
        )
    }

    fn mix(&self) -> Option<Entry> {
        if self.kinds.len() < 2 {
            return None;
        }
        let counts = DATA.map(|kind| self.of_kind(kind));
        let shares: Vec<(u32, u64)> = (0..).zip(counts).collect();
        let parts = to_parts(&shares, self.operations());
        let part = |at: u32| parts.iter().find(|(kind, _)| *kind == at).map_or(0, |(_, part)| *part);
        let text = [0, 1, 2].map(|at| percent(part(at))).join("/");
        let words = counts.map(|count| show_count(count as f64));
        Some(Entry::text(
            "mix",
            &text,
            format!("{} reads, {} writes, {} trims", words[0], words[1], words[2]),
        ))
    }

    fn sizes(&self) -> Entry {
        let shares = |class: &Class| class.sizes.shares(self.align as u32);
        let of: Vec<(Kind, Shares)> = self.kinds.iter().map(|(kind, class)| (*kind, shares(class))).collect();
        let worst = of.iter().map(|(_, shares)| shares.distance).fold(0.0, f64::max);
        let text = match of.as_slice() {
            [(_, only)] => format_size_shares(only),
            several => {
                let one = |(kind, shares): &(Kind, Shares)| {
                    format!("{}={}", kind.word(), format_size_shares(shares))
                };
                several.iter().map(one).collect::<Vec<_>>().join(",")
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
                Entry::text("offset", &size(begin.saturating_mul(SECTOR)), "first byte touched".into()),
                Entry::text(
                    "size",
                    &size((end - begin).saturating_mul(SECTOR)),
                    "up to the last byte touched".into(),
                ),
            ];
        }
        let (align, most) = (self.align * SECTOR, self.largest());
        let bins = &self.all.bins;
        let filled = bins.filled();
        let (zones, distance) = bins.zones(filled);
        let offset = bins.first.saturating_add(filled.0 as u64 * bins.width).saturating_mul(SECTOR);
        let width = bins.width * SECTOR;
        let all: u64 = (filled.1 - filled.0) as u64 * width;
        // Zones count places where the largest operation fits; it may reach behind the last one, but not behind what was touched.
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
            Entry::text("offset", &size(offset), "first byte touched, to within a bin".into()),
            Entry::text("size", &size(room), "up to the last byte touched".into()),
        ];
        if kept.len() > 1 {
            let shares: Vec<(u32, u64)> = (0..).zip(kept.iter().map(|(operations, _)| *operations)).collect();
            let parts = to_parts(&shares, self.operations());
            let part = |at: u32| parts.iter().find(|(zone, _)| *zone == at).map_or(0, |(_, part)| *part);
            let one =
                |(at, (_, bytes)): (u32, &(u64, u64))| format!("{}/{}", percent(part(at)), size(*bytes));
            let text: Vec<String> = (0..).zip(&kept).map(one).collect();
            let comment = format!("{} zones of {} bins; KS {distance:.3}", kept.len(), filled.1 - filled.0);
            out.push(Entry::text("random", &format!("zones:{}", text.join(",")), comment));
        }
        let smallest = self.kinds.iter().filter_map(|(_, class)| class.sizes.smallest()).min().unwrap_or(0);
        if u64::from(smallest) != self.align {
            out.push(Entry::text("align", &size(align), "what all places and sizes are multiples of".into()));
        }
        out
    }

    fn runs(&self) -> Vec<Entry> {
        let mut out = Vec::new();
        let length = self.all.run_length();
        if !self.is_sequential && self.is_in_runs() {
            let comment = format!("{} runs", show_count(self.all.begun as f64));
            out.push(Entry::bare("run-length", &rounded(length), comment));
            if self.kinds.len() > 1 {
                out.push(Entry::text("positions", "own", "runs are of one direction".into()));
            }
        }
        let at_once = self.all.at_once();
        if at_once > 1 && (length >= WOVEN || self.is_sequential) {
            let comment = "operations that go on come so many behind each other, in the mean";
            out.push(Entry::bare("interleaved", &at_once.to_string(), comment.into()));
        }
        out
    }
}

/// `4k`, or `4k:70,8k:30`.
fn format_size_shares(shares: &Shares) -> String {
    let bytes = |sectors: u32| size(u64::from(sectors) * SECTOR);
    match shares.all.as_slice() {
        [(sectors, _)] => bytes(*sectors),
        several => {
            let one = |(sectors, part): &(u32, u64)| format!("{}:{}", bytes(*sectors), percent(*part));
            several.iter().map(one).collect::<Vec<_>>().join(",")
        }
    }
}

/// Parts of a million as percent.
fn percent(part: u64) -> String {
    (part as f64 / 1e4).to_string()
}

/// Bytes as somebody would type them, exactly.
pub(super) fn size(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let fits = units.into_iter().find(|(bits, _)| bytes > 0 && bytes.is_multiple_of(1 << bits));
    fits.map_or_else(|| bytes.to_string(), |(bits, unit)| format!("{}{unit}", bytes >> bits))
}

/// A rate or a mean with four digits at least, and never nothing.
pub(super) fn rounded(number: f64) -> String {
    let digits = (3.0 - number.max(1e-9).log10().floor()).clamp(1.0, 9.0) as i32;
    let unit = 10_f64.powi(digits);
    ((number * unit).round().max(1.0) / unit).to_string()
}

#[test]
fn numbers_are_short_and_sizes_exact() {
    let numbers = [2150.1234, 38.2955, 0.012_345_6, 3e-12, 5.0].map(rounded);
    assert_eq!(numbers, ["2150.1", "38.3", "0.01235", "0.000000001", "5"]);
    assert_eq!([0, 512, 4096, 3 << 20, (1 << 30) + 1024].map(size), ["0", "512", "4k", "3m", "1048577k"]);
}
