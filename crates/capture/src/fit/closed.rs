//! Closed loops: a stream that waits for its own operations.
//!
//! For: think times, bursts and clocks as keys of a job file. Not for: open loops ([`super::stream`]).

use super::entry::Entry;
use super::gather::{Class, DATA, OfKind, align};
use super::law::Law;
use super::pace::{Loop, Signs};
use super::part::{Shape, rounded};
use super::stream::{About, Described, MOSTLY, by_memory, format_figure};
use model::job::ThinkLaw;
use model::spec::number::{MAX_RATE, MAX_TIME_NS};
use model::spec::pace::of_think;
use model::units::show_ns;

impl About<'_> {
    /// One stream that waits for its own operations.
    pub(super) fn closed(&self, chosen: &Loop, signs: Signs) -> Described {
        let classes = self.classes();
        let shape = self.shape(&classes);
        let mut stream = self.named("");
        stream.entries.extend(shape.entries());
        let burst = self.wait(chosen, signs, &shape, &mut stream);
        let writes = self.load.kinds[1].count();
        stream.entries.extend(self.flushes(writes, burst > 1));
        if writes > 0 {
            stream.entries.extend(self.stable());
        }
        stream.entries.extend(self.times.iter().cloned());
        stream
    }

    /// Each direction as one class.
    pub(super) fn classes(&self) -> Vec<Class> {
        self.load.kinds.iter().map(OfKind::whole).collect()
    }

    /// All directions together.
    pub(super) fn shape<'c>(&self, classes: &'c [Class]) -> Shape<'c> {
        let kinds = &self.load.kinds;
        let long: u64 = kinds.iter().map(|of| of.classes[1].operations()).sum();
        let all: u64 = kinds.iter().map(OfKind::count).sum();
        let directions = kinds.iter().filter(|of| of.count() > 0).count();
        let sequential = directions == 1 && long as f64 >= MOSTLY * all as f64;
        let of = DATA.into_iter().zip(classes).collect();
        Shape::from_classes(of, align(kinds.iter().fold(0, |bits, of| bits | of.bits)), sequential)
    }

    /// Most operations in flight that there is memory for.
    pub(super) fn room_at_most(&self) -> u32 {
        by_memory(&self.shape(&self.classes()))
    }

    /// What it waits for; gives how many operations go at once.
    fn wait(&self, chosen: &Loop, signs: Signs, shape: &Shape<'_>, stream: &mut Described) -> u32 {
        let why = format!(
            "closed loop: {:.1} % overlap, IDC {} in 10 ms",
            100.0 * signs.overlapping,
            format_figure(signs.idc[0])
        );
        let most = self.load.pacing.most.clamp(1, by_memory(shape));
        let mut say = |entry: Entry| stream.entries.push(entry);
        match chosen {
            Loop::Open => 1,
            Loop::Full => {
                say(Entry::bare("depth", &most.to_string(), "its queue was kept full".into()));
                1
            }
            Loop::Paced => {
                let rate = shape.operations() as f64 / (self.active_ns as f64 / 1e9);
                say(Entry::bare("depth", "1", why));
                say(Entry::bare(
                    "limit-iops",
                    &rounded(rate.min(MAX_RATE)),
                    "even, by a clock: what is late is made up for".into(),
                ));
                1
            }
            Loop::Thinking { law, burst, mean_burst } => {
                let depth = if *burst > 1 { most } else { 1 };
                say(Entry::bare("depth", &depth.to_string(), why));
                if law.think.mean_ns == 0 {
                    return 1;
                }
                let factor = f64::from(*burst) / mean_burst.max(1.0);
                let (think, comment) = thought(law, factor);
                say(Entry::text("think", &think, comment));
                if *burst > 1 {
                    let comment = format!("{mean_burst:.2} at once in the mean");
                    say(Entry::bare("burst", &burst.to_string(), comment));
                    Self::calls(&self.load.pacing, shape, depth).into_iter().for_each(say);
                }
                *burst
            }
        }
    }
}

/// A think time as it stands in a file: times so many, where bursts are longer or shorter than they were.
fn thought(law: &Law, factor: f64) -> (String, String) {
    let (text, fits) = worded(law, factor);
    let mean = show_ns((law.think.mean_ns + law.taken_ns) as f64);
    let taken = show_ns(law.taken_ns as f64);
    (text, format!("mean {mean}, less {taken} that any program takes; {fits}"))
}

/// Any law of time as it stands in a file, its times multiplied by `factor`, and how well it fits.
pub(super) fn worded(law: &Law, factor: f64) -> (String, String) {
    let scale = |ns: u64| ((ns as f64 * factor).round() as u64).clamp(1, MAX_TIME_NS);
    let mut think = law.think.clone();
    think.mean_ns = scale(think.mean_ns);
    match &mut think.law {
        ThinkLaw::Lognormal { median_ns } => *median_ns = scale(*median_ns),
        ThinkLaw::Quantiles(all) => {
            for quantile in all {
                quantile.ns = ((quantile.ns as f64 * factor).round() as u64).min(MAX_TIME_NS);
            }
        }
        ThinkLaw::Fixed | ThinkLaw::Exponential => {}
    }
    let near = law.distance.map_or_else(|| "all within 10 %".into(), |distance| format!("KS {distance:.3}"));
    let scaled = if (factor - 1.0).abs() > 0.005 {
        format!(", times {factor:.3}, since bursts are whole")
    } else {
        String::new()
    };
    (shortened(&of_think(&think)), format!("{near}{scaled}"))
}

/// The text of a law with times of 1 ms and more in us, where these are exact to a thousandth.
fn shortened(text: &str) -> String {
    let piece = |piece: &str| {
        let (before, time) = piece
            .rsplit_once(['/', ':'])
            .map_or(("", piece), |(before, time)| (&piece[..=before.len()], time));
        match time.strip_suffix("ns").and_then(|ns| ns.parse::<u64>().ok()) {
            Some(ns) if ns >= 1_000_000 => format!("{before}{}us", (ns + 500) / 1000),
            _ => piece.to_owned(),
        }
    };
    text.split(',').map(piece).collect::<Vec<_>>().join(",")
}
