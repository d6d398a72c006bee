//! Streams: what a job says of each part of a load.
//!
//! For: from what parts are like to keys of a job file, each with where it comes from and how well it fits. Not for: the file's text
//! ([`super::text`]).

use super::bursts;
use super::gather::{Class, DATA, Gathered, LONG, Load, OfKind, align};
use super::law::Law;
use super::pace::{Loop, Signs};
use super::part::{Shape, rounded};
use super::survey::{Part, Surveyed};
use model::job::{Arrivals, Kind, ThinkLaw};
use model::spec::limits::{MAX_DEPTH, MAX_TIME_NS};
use model::spec::parsers::of_arrivals;
use model::spec::think::of_think;
use model::units::{show_count, show_ns};

/// Share of the span that a part may begin later or end earlier by, and still count as active in all of it.
const WHOLE: f64 = 0.05;
/// Shares of operations and bytes below which one kind of runs is not apart from the other.
const FEW: f64 = 0.05;
/// Share of the operations in long runs beyond what runs of one mean length have, from which on there are two kinds of runs.
const APART: f64 = 0.15;
/// Share of the operations in long runs from which on the order may be sequential.
const MOSTLY: f64 = 0.8;
/// Places of an open loop: so many times what was in flight, at least so many, and no more memory than this.
const ROOM: u32 = 2;
const LEAST_ROOM: u32 = 32;
const MOST_ROOM_BYTES: u64 = 256 << 20;
/// Share of the writes that must be stable, with as many flushes before them, from which on all are.
const STABLE: f64 = 0.9;

/// A key of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: &'static str,
    /// As it stands in the file.
    pub(super) value: String,
    /// Where it comes from and how well it fits.
    pub(super) comment: String,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) name: String,
    /// What it stands for.
    pub(super) about: Vec<String>,
    pub(super) entries: Vec<Entry>,
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

/// What is common to the streams of a part.
struct About<'a> {
    part: &'a Part,
    load: &'a Load,
    /// What tells it from the rest of its part.
    what: &'static str,
    active_ns: u64,
    times: Vec<Entry>,
    /// Syncs, of which some may have been asked for by others.
    syncs: u64,
    of_others: u64,
}

impl Entry {
    pub(super) fn text(key: &'static str, value: &str, comment: String) -> Self {
        Self { key, value: format!("{value:?}"), comment }
    }

    pub(super) fn bare(key: &'static str, value: &str, comment: String) -> Self {
        Self { key, value: value.to_owned(), comment }
    }
}

impl Fitted {
    /// The sector behind the last that is touched.
    pub fn end_sector(&self) -> u64 {
        self.end_bytes / crate::SECTOR
    }

    pub(super) fn of(surveyed: &Surveyed, gathered: &[Gathered]) -> Self {
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
        let orphans: u64 = surveyed.parts.iter().filter(|part| part.seen.writes == 0).map(|part| part.seen.syncs).sum();
        let writer = (0..surveyed.parts.len()).max_by_key(|at| surveyed.parts[*at].seen.writes);
        let writer = writer.filter(|at| surveyed.parts[*at].seen.writes > 0);
        for (at, (part, gathered)) in surveyed.parts.iter().zip(gathered).enumerate() {
            let (active_ns, times) = active(part, first_ns, span_ns);
            let loads = gathered.loads(part.tasks);
            // Those of the task itself that has no writes beside them, too.
            let bare: u64 = loads.iter().filter(|(load, _)| load.kinds[1].count() == 0).map(|(load, _)| load.syncs).sum();
            let by_syncs = |at: &usize| (loads[*at].0.syncs, loads[*at].0.kinds[1].count());
            let host = (0..loads.len()).filter(|at| loads[*at].0.kinds[1].count() > 0).max_by_key(by_syncs);
            for (of, (load, what)) in loads.iter().enumerate() {
                let (writes, is_host) = (load.kinds[1].count(), host == Some(of));
                let of_others = if is_host && writer == Some(at) { orphans } else { 0 };
                let own = load.syncs + if is_host { bare } else { 0 };
                let syncs = if writes > 0 { own + of_others } else { 0 };
                let times = times.clone();
                let about = About { part, load, what, active_ns, times, syncs, of_others };
                fitted.streams.extend(about.streams());
            }
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
        say(surveyed.unfinished, "operations have no known completion: think times and depths of their tasks are not known.");
    }
}

/// How long a part is active, and what says so where it is not all of the time.
fn active(part: &Part, first_ns: u64, span_ns: u64) -> (u64, Vec<Entry>) {
    let begin = part.seen.first_ns.unwrap_or(first_ns).saturating_sub(first_ns);
    let end = part.seen.last_ns.saturating_sub(first_ns).min(span_ns);
    let slack = (span_ns as f64 * WHOLE) as u64;
    let delay = if begin > slack { begin } else { 0 };
    let stops = end + slack < span_ns;
    let until = if stops { end } else { span_ns };
    let active_ns = until.saturating_sub(delay).max(1_000_000);
    let mut times = Vec::new();
    if delay > 0 && delay + 1_000_000 < span_ns {
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
    fn whole(&self) -> Class {
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

    fn named(&self, what: &str) -> Described {
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
        let full: String = format!("{name}{}{what}", self.what).chars().take(model::spec::limits::MAX_NAME).collect();
        Described { name: full, about, entries: Vec::new() }
    }

    /// A stream for each direction, and for long runs apart.
    fn open(&self) -> Vec<Described> {
        let mut out = Vec::new();
        let sectors = align(self.part.seen.bits);
        let mut shapes = Vec::new();
        for (kind, of) in DATA.into_iter().zip(&self.load.kinds).filter(|(_, of)| of.count() > 0) {
            shapes.extend(of.divided().into_iter().map(|(class, long)| (kind, of, class, long)));
        }
        let several = shapes.len() > 1;
        let most_writes = shapes.iter().filter(|(kind, ..)| *kind == Kind::Write).map(|(_, _, class, _)| class.operations()).max();
        let mut has_flushes = self.syncs == 0;
        for (kind, of, class, long) in &shapes {
            let what = match (several, long) {
                (false, _) => String::new(),
                (true, false) => format!(" {}s", kind.word()),
                (true, true) => format!(" {}s in long runs", kind.word()),
            };
            let mut stream = self.named(&what);
            let shape = Shape::of(vec![(*kind, class)], sectors, *long);
            stream.entries.extend(shape.entries());
            self.arrive(&mut stream, of, class);
            stream.entries.extend(self.room(&shape));
            if *kind == Kind::Write {
                let is_most = Some(class.operations()) == most_writes;
                if is_most && !std::mem::replace(&mut has_flushes, true) {
                    let is_serial = self.load.pacing.is_serial();
                    stream.entries.extend(self.flushes(class.operations(), is_serial));
                }
                stream.entries.extend(self.stable());
            }
            stream.entries.extend(self.times.iter().cloned());
            out.push(stream);
        }
        out
    }

    fn arrive(&self, stream: &mut Described, of: &OfKind, class: &Class) {
        let count = class.operations();
        let rate = count as f64 / (self.active_ns as f64 / 1e9);
        let seen = of.arriving.dispersion(self.active_ns);
        let share = count as f64 / of.count().max(1) as f64;
        let idc = seen.map(|idc| bursts::thinned(idc, share));
        let fit = bursts::of(rate, &of.arriving.gaps, idc);
        let signs = self.load.pacing.signs(self.active_ns);
        stream.entries.push(Entry::bare(
            "rate",
            &rounded(rate),
            format!(
                "{} in {}; open loop: {:.1} % overlap, IDC {} in 10 ms",
                show_count(count as f64),
                show_ns(self.active_ns as f64),
                100.0 * signs.overlapping,
                told(signs.idc[0])
            ),
        ));
        let near = fit.distance.filter(|_| share >= 1.0).map_or_else(String::new, |d| format!("; KS of the times between {d:.3}"));
        let [short, long] = [0, 1].map(|at| format!("{} (fit {})", told(idc[at]), told(Some(fit.idc[at]))));
        let comment = format!("IDC {short} in 10 ms, {long} in 100 ms{near}");
        stream.entries.push(Entry::text("arrivals", &words(fit.arrivals), comment));
    }

    /// Room for what is in flight.
    fn room(&self, shape: &Shape<'_>) -> Option<Entry> {
        let most = self.load.pacing.most;
        let by_memory = (MOST_ROOM_BYTES / shape.largest().max(1)).clamp(1, u64::from(MAX_DEPTH)) as u32;
        let depth = most.saturating_mul(ROOM).max(LEAST_ROOM).min(by_memory);
        Some(Entry::bare("depth", &depth.to_string(), format!("room; {most} were in flight at most")))
    }

    fn flushes(&self, writes: u64, drain: bool) -> Vec<Entry> {
        if self.syncs == 0 || writes == 0 {
            return Vec::new();
        }
        // A write that is stable at once has a flush of its own.
        let syncs = if self.is_stable() { self.syncs.saturating_sub(self.load.kinds[1].count()) } else { self.syncs };
        if (syncs as f64) < FEW * writes as f64 && self.is_stable() {
            return Vec::new();
        }
        let every = writes as f64 / syncs.max(1) as f64;
        // One more or less at the edges is no fraction.
        let whole = every.round();
        let every = if (writes as f64 - whole * syncs as f64).abs() <= 1.0 { whole } else { every };
        let mut comment = format!("{} writes, {} flushes", show_count(writes as f64), show_count(syncs as f64));
        if self.of_others > 0 {
            comment += &format!(", {} of them asked for by tasks that write nothing", show_count(self.of_others as f64));
        }
        let text = if every > 9999.0 { every.round().min(f64::from(u32::MAX)).to_string() } else { fraction(every) };
        let mut out = vec![Entry::bare("fdatasync", &text, comment)];
        if drain {
            out.push(Entry { key: "drain", value: "true".into(), comment: "it waits for its writes".into() });
        }
        out
    }

    /// What makes single writes stable.
    fn stable(&self) -> Option<Entry> {
        let (stable, writes) = (self.load.stable, self.load.kinds[1].count());
        let comment = format!(
            "{} of {} writes are stable at once, with a flush",
            show_count(stable as f64),
            show_count(writes as f64)
        );
        self.is_stable().then(|| Entry::text("cache", "direct-dsync", comment))
    }

    fn is_stable(&self) -> bool {
        let writes = self.load.kinds[1].count();
        let many = |count: u64| count as f64 >= STABLE * writes as f64 && count > 0;
        many(self.load.stable) && many(self.load.syncs)
    }

    /// One stream that waits for its own operations.
    fn closed(&self, chosen: &Loop, signs: Signs) -> Described {
        let kinds = &self.load.kinds;
        let long: u64 = kinds.iter().map(|of| of.classes[1].operations()).sum();
        let all: u64 = kinds.iter().map(OfKind::count).sum();
        let directions = kinds.iter().filter(|of| of.count() > 0).count();
        let sequential = directions == 1 && long as f64 >= MOSTLY * all as f64;
        let classes: Vec<Class> = kinds.iter().map(OfKind::whole).collect();
        let of = DATA.into_iter().zip(&classes).collect();
        let shape = Shape::of(of, align(self.part.seen.bits), sequential);
        let mut stream = self.named("");
        stream.entries.extend(shape.entries());
        let burst = self.wait(chosen, signs, &shape, &mut stream);
        let writes = kinds[1].count();
        stream.entries.extend(self.flushes(writes, burst > 1));
        if writes > 0 {
            stream.entries.extend(self.stable());
        }
        stream.entries.extend(self.times.iter().cloned());
        stream
    }

    /// What it waits for; gives how many operations go at once.
    fn wait(&self, chosen: &Loop, signs: Signs, shape: &Shape<'_>, stream: &mut Described) -> u32 {
        let why = format!("closed loop: {:.1} % overlap, IDC {} in 10 ms", 100.0 * signs.overlapping, told(signs.idc[0]));
        let most = self.load.pacing.most.max(1);
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
                say(Entry::bare("limit-iops", &rounded(rate), "even, by a clock: what is late is made up for".into()));
                1
            }
            Loop::Thinking { law, burst, mean_burst } => {
                let depth = if *burst > 1 { most.max(*burst) } else { 1 };
                say(Entry::bare("depth", &depth.to_string(), why));
                let factor = f64::from(*burst) / mean_burst.max(1.0);
                let (think, comment) = thought(law, factor);
                say(Entry::text("think", &think, comment));
                if *burst > 1 {
                    say(Entry::bare("burst", &burst.to_string(), format!("{mean_burst:.2} at once in the mean")));
                }
                *burst
            }
        }
    }
}

/// A think time as it stands in a file: times so many, where bursts are longer or shorter than they were.
fn thought(law: &Law, factor: f64) -> (String, String) {
    let scale = |ns: u64| ((ns as f64 * factor).round() as u64).max(1);
    let mut think = law.think.clone();
    think.mean_ns = scale(think.mean_ns);
    match &mut think.law {
        ThinkLaw::Lognormal { median_ns } => *median_ns = scale(*median_ns),
        ThinkLaw::Quantiles(all) => all.iter_mut().for_each(|q| q.ns = (q.ns as f64 * factor).round() as u64),
        ThinkLaw::Fixed | ThinkLaw::Exponential => {}
    }
    let near = law.distance.map_or_else(|| "all within 10 %".into(), |distance| format!("KS {distance:.3}"));
    let scaled = if (factor - 1.0).abs() > 0.005 { format!(", times {factor:.3}, since bursts are whole") } else { String::new() };
    (shortened(&of_think(&think)), format!("mean {}; {near}{scaled}", show_ns(law.think.mean_ns as f64)))
}

/// The same with times in us, where these are exact to a thousandth.
fn shortened(text: &str) -> String {
    let piece = |piece: &str| {
        let (before, time) = piece.rsplit_once(['/', ':']).map_or(("", piece), |(before, time)| (&piece[..=before.len()], time));
        match time.strip_suffix("ns").and_then(|ns| ns.parse::<u64>().ok()) {
            Some(ns) if ns >= 1_000_000 => format!("{before}{}us", (ns + 500) / 1000),
            _ => piece.to_owned(),
        }
    };
    text.split(',').map(piece).collect::<Vec<_>>().join(",")
}

/// As arrivals are typed, with means that people can read.
fn words(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Batch { mean } => of_arrivals(Arrivals::Batch { mean: (mean * 1000.0).round() / 1000.0 }),
        Arrivals::OnOff { on_ns, off_ns } => format!("on-off:{}us/{}us", on_ns.div_ceil(1000), off_ns.div_ceil(1000)),
        other => of_arrivals(other),
    }
}

/// With four digits, and none where it is whole.
fn fraction(number: f64) -> String {
    let number = (number * 1e4).round().max(1.0) / 1e4;
    number.to_string()
}

fn told(figure: Option<f64>) -> String {
    figure.map_or_else(|| "unknown".into(), |figure| format!("{figure:.2}"))
}
