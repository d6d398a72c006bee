//! Streams: what a job says of each part of a load.
//!
//! For: from what parts are like to keys of a job file, each with where it comes from and how well it fits. Not for: the file's text
//! ([`super::text`]).

use super::bursts;
use super::entry::Entry;
use super::gather::{Class, DATA, Gathered, Gathering, LONG, Load, OfKind, align};
use super::pace::{Loop, Pacing};
use super::part::{Shape, rounded};
use super::survey::{Part, Surveyed};
use model::job::{Arrivals, Kind};
use model::spec::number::{MAX_DEPTH, MAX_RATE, MAX_STREAMS, MAX_TIME_NS};
use model::spec::parsers::of_arrivals;
use model::units::{show_count, show_ns};

/// Operations from which on their dispersion says something.
const FEWEST: u64 = 50;
/// Shares of the operations and bytes of a part below which a direction has no stream of its own.
const RARE: f64 = 0.02;
/// Share of the span by which a part may begin later or end earlier, and still count as active in all of it: so many of its mean gaps,
/// which chance leaves empty, within these bounds.
const LEAST_SLACK: f64 = 0.005;
const MOST_SLACK: f64 = 0.05;
const BY_CHANCE: f64 = 10.0;
/// The shortest time that a part is active.
const SHORTEST_NS: u64 = 1_000_000;
/// Shares of operations and bytes below which one kind of runs is not apart from the other.
const FEW: f64 = 0.05;
/// Share of the operations in long runs beyond what runs of one mean length have, from which on there are two kinds of runs.
const APART: f64 = 0.15;
/// Share of the operations in long runs from which on the order may be sequential.
pub(super) const MOSTLY: f64 = 0.8;
/// Places of an open loop: so many times what was in flight, at least so many, and no more memory than this.
const ROOM: u32 = 2;
const LEAST_ROOM: u32 = 32;
const MOST_ROOM_BYTES: u64 = 256 << 20;
/// Share of the writes that must be stable, with as many flushes before them, from which on all are.
const STABLE: f64 = 0.9;

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) name: String,
    /// What it stands for.
    pub(super) about: Vec<String>,
    pub(super) entries: Vec<Entry>,
    /// Turns that it goes through, each with what is said of it.
    pub(super) turns: Vec<Vec<Entry>>,
}

/// A job that behaves like a load.
#[derive(Clone, Debug, Default)]
pub struct Fitted {
    pub(super) streams: Vec<Described>,
    /// What is not in them.
    pub(super) remarks: Vec<String>,
    pub(super) operations: u64,
    pub(super) tasks: u32,
    pub(super) span_ns: u64,
    pub(super) writes: bool,
    /// The byte behind the last that is touched.
    pub(super) end_bytes: u64,
}

/// Operations of one direction that are a stream.
struct Flow<'a> {
    kind: Kind,
    of: &'a OfKind,
    class: Class,
    /// Whether they are in long runs.
    long: bool,
}

/// What is common to the streams of a part.
pub(super) struct About<'a> {
    part: &'a Part,
    pub(super) load: &'a Load,
    /// What tells it from the rest of its part.
    what: &'static str,
    pub(super) active_ns: u64,
    pub(super) times: Vec<Entry>,
    /// Syncs, of which some may have been asked for by others.
    syncs: u64,
    of_others: u64,
}

impl Gathering {
    /// The job that it comes to.
    pub fn finish(mut self) -> Fitted {
        self.parts.iter_mut().for_each(Gathered::end_stretch);
        Fitted::from_survey(&self.surveyed, &self.parts)
    }
}

impl Fitted {
    /// The sector behind the last that is touched.
    pub fn end_sector(&self) -> u64 {
        self.end_bytes / crate::SECTOR
    }

    /// Whether any of its streams waits for its own operations, without a clock.
    pub fn has_closed_loops(&self) -> bool {
        let is_held = |entry: &Entry| ["rate", "limit-iops"].contains(&entry.key);
        self.streams.iter().any(|stream| !stream.entries.iter().any(is_held))
    }

    pub(super) fn from_survey(surveyed: &Surveyed, gathered: &[Gathered]) -> Self {
        let all = &surveyed.all;
        let first_ns = all.first_ns.unwrap_or(0);
        let span_ns = all.last_ns.saturating_sub(first_ns).min(MAX_TIME_NS);
        let mut fitted = Self {
            operations: all.data + all.syncs,
            tasks: surveyed.parts.iter().map(|part| part.tasks).sum(),
            span_ns,
            writes: gathered.iter().any(|of| of.whole.kinds[1..].iter().any(|kind| kind.count() > 0)),
            end_bytes: all.span.map_or(0, |(_, end)| end.saturating_mul(crate::SECTOR)),
            ..Self::default()
        };
        // Flushes of tasks that write nothing stand behind the writes of the one that writes most.
        let orphans: u64 =
            surveyed.parts.iter().filter(|part| part.seen.writes == 0).map(|part| part.seen.syncs).sum();
        let writer = (0..surveyed.parts.len()).max_by_key(|at| surveyed.parts[*at].seen.writes);
        let writer = writer.filter(|at| surveyed.parts[*at].seen.writes > 0);
        for (at, (part, gathered)) in surveyed.parts.iter().zip(gathered).enumerate() {
            let (active_ns, times) = active(part, first_ns, span_ns);
            let loads = gathered.loads(part.tasks);
            // Those of the task itself that has no writes beside them, too.
            let bare: u64 =
                loads.iter().filter(|(load, _)| load.kinds[1].count() == 0).map(|(load, _)| load.syncs).sum();
            let by_syncs = |at: &usize| (loads[*at].0.syncs, loads[*at].0.kinds[1].count());
            let host = (0..loads.len()).filter(|at| loads[*at].0.kinds[1].count() > 0).max_by_key(by_syncs);
            let about = |(of, (load, what)): (usize, (_, _))| {
                let load: &Load = load;
                let (writes, is_host) = (load.kinds[1].count(), host == Some(of));
                let of_others = if is_host && writer == Some(at) { orphans } else { 0 };
                let own = load.syncs + if is_host { bare } else { 0 };
                let syncs = if writes > 0 { own + of_others } else { 0 };
                let times = times.clone();
                About { part, load, what, active_ns, times, syncs, of_others }
            };
            let abouts: Vec<About<'_>> = loads.iter().copied().enumerate().map(about).collect();
            match abouts.as_slice() {
                [few, many] if gathered.goes_by_turns() && !few.is_stable() && !many.is_stable() => {
                    let whole = About { load: &gathered.whole, what: "", times, ..*few };
                    let [of_few, of_many] = &gathered.sides;
                    fitted.streams.push(whole.by_turns([(few, of_few), (many, of_many)]));
                }
                all => fitted.streams.extend(all.iter().flat_map(About::streams)),
            }
        }
        let more = fitted.streams.len().saturating_sub(MAX_STREAMS);
        fitted.streams.truncate(MAX_STREAMS);
        if more > 0 {
            fitted.remarks.push(format!("{more} streams are left out: a job has {MAX_STREAMS} at most."));
        }
        fitted.remark(surveyed, if writer.is_none() { orphans } else { 0 });
        fitted
    }

    fn remark(&mut self, surveyed: &Surveyed, lost_syncs: u64) {
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                self.remarks.push(format!("{} {what}", show_count(count as f64)));
            }
        };
        say(surveyed.left_out, "requests are left out: a job has no operation for them.");
        say(lost_syncs, "flushes are left out: nothing is written that they could stand behind.");
        say(surveyed.large, "operations are larger than 1 GiB, and count as that.");
        say(
            surveyed.unfinished,
            "operations have no known completion: think times and depths of their tasks are not known.",
        );
    }
}

/// How long a part is active, and what says so where it is not all of the time.
fn active(part: &Part, first_ns: u64, span_ns: u64) -> (u64, Vec<Entry>) {
    let begin = part.seen.first_ns.unwrap_or(first_ns).saturating_sub(first_ns);
    let end = part.seen.last_ns.saturating_sub(first_ns).min(span_ns);
    let operations = (part.seen.data + part.seen.syncs).max(1) as f64;
    let slack = (span_ns as f64 * (BY_CHANCE / operations).clamp(LEAST_SLACK, MOST_SLACK)) as u64;
    // What only the last moment has begins so early that there is time for it.
    let latest = span_ns.saturating_sub(SHORTEST_NS);
    let delay = if begin > slack { begin.min(latest) } else { 0 };
    let stops = end + slack < span_ns;
    let until = if stops { end } else { span_ns };
    let active_ns = until.saturating_sub(delay).max(SHORTEST_NS);
    let mut times = Vec::new();
    if delay > 0 {
        times.push(Entry::text("delay", &typed(delay), "its first operation".into()));
    }
    if stops {
        times.push(Entry::text("stop-after", &typed(active_ns), "its last operation".into()));
    }
    (active_ns, times)
}

/// A duration exactly, in us where that is exact enough.
fn typed(ns: u64) -> String {
    if ns >= 1_000_000_000 { format!("{}us", ns / 1000) } else { format!("{ns}ns") }
}

impl OfKind {
    pub(super) fn count(&self) -> u64 {
        self.classes.iter().map(Class::operations).sum()
    }

    /// All of them.
    pub(super) fn whole(&self) -> Class {
        let [scattered, long] = &self.classes;
        let mut both = scattered.clone();
        both.join(long);
        // Long ones begin as short ones.
        both.begun = scattered.begun;
        both
    }

    /// Its operations as one class or two: those in long runs apart from the others, where there are enough of both.
    fn divided(&self) -> Vec<(Class, bool)> {
        let [scattered, long] = &self.classes;
        let both = self.whole();
        let operations = both.operations().max(1) as f64;
        let is_few = |class: &Class| {
            (class.operations() as f64) < FEW * operations && class.sizes.bytes() < FEW * both.sizes.bytes()
        };
        let share = long.operations() as f64 / operations;
        // So many stand behind seven others where one run is like another.
        let expected = (1.0 - 1.0 / both.run_length()).powi(LONG as i32 - 1);
        if share <= expected + APART || is_few(long) || is_few(scattered) {
            return vec![(both, share >= MOSTLY)];
        }
        vec![(scattered.clone(), false), (long.clone(), true)]
    }
}

impl About<'_> {
    fn streams(&self) -> Vec<Described> {
        let pacing = &self.load.pacing;
        let signs = pacing.signs(self.active_ns);
        match pacing.choose(self.part.tasks, self.active_ns) {
            // Of a task that does two things neither waits for itself alone.
            _ if !self.what.is_empty() => self.open(),
            Loop::Open => self.open(),
            chosen => vec![self.closed(&chosen, signs)],
        }
    }

    pub(super) fn named(&self, what: &str) -> Described {
        let Part { name, tasks, .. } = self.part;
        let whose = match tasks {
            1 => String::new(),
            n => format!("{n} tasks, "),
        };
        let name = if name.is_empty() { "task" } else { name };
        let mut about = vec![format!(
            "{name}{}: {whose}{} operations, {} flushes",
            self.what,
            show_count(self.load.data() as f64),
            show_count(self.load.syncs as f64)
        )];
        if name == "other tasks" {
            about.push("Each of them did less than 1 % of the operations, 2 % of the bytes and 5 % of the flushes, or came behind 16 others".into());
        }
        let full: String =
            format!("{name}{}{what}", self.what).chars().take(model::spec::number::MAX_NAME).collect();
        Described { name: full, about, entries: Vec::new(), turns: Vec::new() }
    }

    /// A stream for each direction, and for long runs apart.
    fn open(&self) -> Vec<Described> {
        let sectors = align(self.load.kinds.iter().fold(0, |bits, of| bits | of.bits));
        let (flows, rare) = self.flows();
        let writes = |flow: &Flow<'_>| if flow.kind == Kind::Write { flow.class.operations() } else { 0 };
        let most_writes =
            (0..flows.len()).max_by_key(|at| writes(&flows[*at])).filter(|at| writes(&flows[*at]) > 0);
        let largest = (0..flows.len()).max_by_key(|at| flows[*at].class.operations());
        let mut out = Vec::new();
        for (at, flow) in flows.iter().enumerate() {
            let what = match (flows.len(), flow.long) {
                (1, _) => String::new(),
                (_, false) => format!(" {}s", flow.kind.word()),
                (_, true) => format!(" {}s in long runs", flow.kind.word()),
            };
            let mut stream = self.named(&what);
            let mut kinds = vec![(flow.kind, &flow.class)];
            if largest == Some(at) {
                kinds.extend(rare.iter().map(|(kind, class)| (*kind, class)));
                kinds.sort_by_key(|(kind, _)| *kind as usize);
            }
            let shape = Shape::from_classes(kinds, sectors, flow.long);
            stream.entries.extend(shape.entries());
            self.arrive(&mut stream, flow, shape.operations());
            let depth = self.room(&shape);
            let most = self.load.pacing.most;
            stream.entries.push(Entry::bare(
                "depth",
                &depth.to_string(),
                format!("room; {most} were in flight at most"),
            ));
            stream.entries.extend(Self::calls(&self.load.pacing, &shape, depth));
            let host =
                if self.load.kinds[1].count() > 0 && most_writes.is_none() { largest } else { most_writes };
            if host == Some(at) {
                let writes = shape.of_kind(Kind::Write);
                stream.entries.extend(self.flushes(writes, self.load.pacing.is_serial()));
            }
            if shape.of_kind(Kind::Write) > 0 {
                stream.entries.extend(self.stable());
            }
            stream.entries.extend(self.times.iter().cloned());
            out.push(stream);
        }
        out
    }

    /// Directions and kinds of runs that have a stream each, and directions with so few operations that they go with the largest.
    fn flows(&self) -> (Vec<Flow<'_>>, Vec<(Kind, Class)>) {
        let (mut flows, mut rare) = (Vec::new(), Vec::new());
        let (data, bytes) = (self.load.data() as f64, self.load.bytes());
        for (kind, of) in DATA.into_iter().zip(&self.load.kinds).filter(|(_, of)| of.count() > 0) {
            let whole = of.whole();
            let is_rare = (of.count() as f64) < RARE * data && whole.sizes.bytes() < RARE * bytes;
            if is_rare && kind != Kind::Trim {
                rare.push((kind, whole));
                continue;
            }
            flows.extend(of.divided().into_iter().map(|(class, long)| Flow { kind, of, class, long }));
        }
        (flows, rare)
    }

    fn arrive(&self, stream: &mut Described, flow: &Flow<'_>, count: u64) {
        let of = flow.of;
        let rate = count as f64 / (self.active_ns as f64 / 1e9);
        let seen = of.arriving.dispersion(self.active_ns);
        let share = (flow.class.operations() as f64 / of.count().max(1) as f64).min(1.0);
        // Few say nothing of how they come.
        let idc = seen.map(|idc| bursts::thinned(idc, share).filter(|_| count >= FEWEST));
        let fit = bursts::fit_bursts(rate, &of.arriving.gaps, idc);
        let signs = self.load.pacing.signs(self.active_ns);
        stream.entries.push(Entry::bare(
            "rate",
            &rounded(rate.min(MAX_RATE)),
            format!(
                "{} in {}; open loop: {:.1} % overlap, IDC {} in 10 ms",
                show_count(count as f64),
                show_ns(self.active_ns as f64),
                100.0 * signs.overlapping,
                format_figure(signs.idc[0])
            ),
        ));
        let near = fit
            .distance
            .filter(|_| share >= 1.0)
            .map_or_else(String::new, |d| format!("; KS of the times between {d:.3}"));
        let [short, long] =
            [0, 1].map(|at| format!("{} (fit {})", format_figure(idc[at]), format_figure(Some(fit.idc[at]))));
        let comment = format!("IDC {short} in 10 ms, {long} in 100 ms{near}");
        stream.entries.push(Entry::text("arrivals", &format_arrivals(fit.arrivals), comment));
    }

    /// Room for what is in flight.
    fn room(&self, shape: &Shape<'_>) -> u32 {
        self.load.pacing.most.saturating_mul(ROOM).max(LEAST_ROOM).min(by_memory(shape))
    }

    /// How many operations go in one call, of so many that may be in flight, where they came so and none goes on from another one, with which the kernel would make one
    /// request of it.
    pub(super) fn calls(pacing: &Pacing, shape: &Shape<'_>, depth: u32) -> Option<Entry> {
        let mean = pacing.in_a_call().filter(|_| !shape.is_in_runs())?;
        let comment = format!("{} were issued at once in the mean", rounded(mean));
        let batch = (mean.round() as u32).min(depth);
        (batch > 1).then(|| Entry::text("batch", &batch.to_string(), comment))
    }

    pub(super) fn flushes(&self, writes: u64, drain: bool) -> Vec<Entry> {
        if self.syncs == 0 || writes == 0 {
            return Vec::new();
        }
        // A write that is stable at once has a flush of its own.
        let syncs =
            if self.is_stable() { self.syncs.saturating_sub(self.load.kinds[1].count()) } else { self.syncs };
        if (syncs as f64) < FEW * writes as f64 && self.is_stable() {
            return Vec::new();
        }
        let every = writes as f64 / syncs.max(1) as f64;
        // One more or less at the edges is no fraction.
        let whole = every.round();
        let every = if (writes as f64 - whole * syncs as f64).abs() <= 1.0 { whole } else { every };
        let mut comment =
            format!("{} writes, {} flushes", show_count(writes as f64), show_count(syncs as f64));
        if self.of_others > 0 {
            comment += &format!(
                ", {} of them asked for by tasks that write nothing",
                show_count(self.of_others as f64)
            );
        }
        let text =
            if every > 9999.0 { every.round().min(f64::from(u32::MAX)).to_string() } else { fraction(every) };
        let mut out = vec![Entry::bare("fdatasync", &text, comment)];
        if drain {
            out.push(Entry { key: "drain", value: "true".into(), comment: "it waits for its writes".into() });
        }
        out
    }

    /// What makes single writes stable.
    pub(super) fn stable(&self) -> Option<Entry> {
        let (stable, writes) = (self.load.stable, self.load.kinds[1].count());
        let comment = format!(
            "{} of {} writes are stable at once, with a flush",
            show_count(stable as f64),
            show_count(writes as f64)
        );
        self.is_stable().then(|| Entry::text("cache", "direct-dsync", comment))
    }

    pub(super) fn is_stable(&self) -> bool {
        let writes = self.load.kinds[1].count();
        let many = |count: u64| count as f64 >= STABLE * writes as f64 && count > 0;
        many(self.load.stable) && many(self.load.syncs)
    }
}

/// How many operations there is memory for.
pub(super) fn by_memory(shape: &Shape<'_>) -> u32 {
    (MOST_ROOM_BYTES / shape.largest().max(1)).clamp(1, u64::from(MAX_DEPTH)) as u32
}

/// As arrivals are typed, with means that people can read.
fn format_arrivals(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Batch { mean } => of_arrivals(Arrivals::Batch { mean: (mean * 1000.0).round() / 1000.0 }),
        Arrivals::OnOff { on_ns, off_ns } => {
            format!("on-off:{}us/{}us", on_ns.div_ceil(1000), off_ns.div_ceil(1000))
        }
        other => of_arrivals(other),
    }
}

/// With four digits, and none where it is whole.
pub(super) fn fraction(number: f64) -> String {
    let number = (number * 1e4).round().max(1.0) / 1e4;
    number.to_string()
}

pub(super) fn format_figure(figure: Option<f64>) -> String {
    figure.map_or_else(|| "unknown".into(), |figure| format!("{figure:.2}"))
}
