//! The job file of a fit: streams with their keys. Comments say where each value comes from and how well it fits.
//!
//! 1. Each part becomes one or more streams. An open loop has a stream for each direction, and separate streams for the
//!    operations of long sequential runs. A closed loop is one stream. A task that alternates between few and many
//!    operations at a time is one stream with `turn` tables.
//! 2. Flushes of tasks that write nothing are added to the writes of the task that writes most.
//! 3. [`Fitted::toml`] writes the text of the job file.

use crate::completeness::format_count;
use crate::fit::distributions;
use crate::fit::distributions::Law;
use crate::fit::pacing::{LoopKind, Pacing, PacingFigures, Side};
use crate::fit::shape::{Entry, Shape, format_number};
use crate::fit::survey::{
    Class, DATA_KINDS, Gathered, Gathering, KindFigures, LONG_RUN, LoadFigures, OTHER_TASKS, Part, Surveyed,
};
use crate::replay::alignment_sectors;
use model::job::{Arrivals, Kind, ThinkLaw};
use model::spec::number::{MAX_DEPTH, MAX_RATE, MAX_STREAMS, MAX_TIME_NS};
use model::units::{show_bytes, show_count, show_ns};
use std::fmt::Write as _;

/// Minimum number of operations for computing a dispersion.
const MIN_OPERATIONS: u64 = 50;
/// A direction becomes a separate stream if it has at least this share of the operations or of the bytes of its part.
/// Trims always do.
const RARE_SHARE: f64 = 0.02;
/// Minimum slack, as a share of the duration of the capture. A part whose inactive time at the beginning or at the end is shorter than the
/// slack counts as active there.
const MIN_SLACK: f64 = 0.005;
/// Maximum slack, as a share of the duration of the capture.
const MAX_SLACK: f64 = 0.05;
/// The slack is this many mean gaps of the part, within [`MIN_SLACK`] and [`MAX_SLACK`]. Gaps of this length occur by
/// chance.
const SLACK_GAPS: f64 = 10.0;
/// Minimum active time of a part.
const MIN_ACTIVE_NS: u64 = 1_000_000;
/// Long runs and short runs become separate streams only if each has at least this share of the operations or of the bytes.
/// Flushes of stable writes get a key only if they are at least this share of the writes.
const FEW_SHARE: f64 = 0.05;
/// Long runs become a separate stream only if the share of operations in long runs exceeds the expected share by more than this.
/// The expected share assumes that all runs have the same mean length.
const EXTRA_LONG_SHARE: f64 = 0.15;
/// Minimum share of operations in long runs for a sequential order.
pub(super) const MOSTLY_LONG_SHARE: f64 = 0.8;
/// The depth of an open loop is this multiple of the maximum number of operations in flight in the capture.
const DEPTH_FACTOR: u32 = 2;
/// Minimum depth of an open loop.
const MIN_DEPTH: u32 = 32;
/// Maximum memory of the operations in flight of an open loop.
const MAX_DEPTH_BYTES: u64 = 256 << 20;
/// All writes of the job become stable at completion if at least this share is stable in the capture, and if there is a flush for at least
/// this share of the writes.
const STABLE_SHARE: f64 = 0.9;

/// A stream of the job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamText {
    pub(super) name: String,
    /// Comments on the origin of the stream.
    pub(super) about: Vec<String>,
    pub(super) entries: Vec<Entry>,
    /// The turns of the stream, each with its keys.
    pub(super) turns: Vec<Vec<Entry>>,
}

/// The fitted job.
#[derive(Clone, Debug, Default)]
pub struct Fitted {
    pub(super) streams: Vec<StreamText>,
    /// Remarks on captured operations that the job leaves out.
    pub(super) remarks: Vec<String>,
    pub(super) operations: u64,
    pub(super) tasks: u32,
    pub(super) span_ns: u64,
    pub(super) writes: bool,
    /// The byte after the last byte that operations touched.
    pub(super) end_bytes: u64,
}

/// Operations of one direction that become a stream.
struct Flow<'a> {
    kind: Kind,
    figures: &'a KindFigures,
    class: Class,
    /// Whether the operations are in long runs.
    long: bool,
}

/// A load of a part, with the properties that all its streams share.
pub(super) struct LoadOfPart<'a> {
    part: &'a Part,
    pub(super) load: &'a LoadFigures,
    /// Text after the name of the part, if the part has two loads.
    name_suffix: &'static str,
    pub(super) active_ns: u64,
    pub(super) times: Vec<Entry>,
    /// Number of syncs, including `of_others`.
    syncs: u64,
    /// Number of syncs that tasks without writes requested.
    of_others: u64,
}

impl Gathering {
    /// Returns the fitted job.
    pub fn finish(mut self) -> Fitted {
        self.parts.iter_mut().for_each(Gathered::end_busy_interval);
        Fitted::from_survey(&self.surveyed, &self.parts)
    }
}

impl Fitted {
    /// Returns the sector after the last sector that operations touched.
    pub fn end_sector(&self) -> u64 {
        self.end_bytes / trace::SECTOR
    }

    /// Returns whether any stream waits for its own operations and not for a clock.
    pub fn has_closed_loops(&self) -> bool {
        let sets_rate = |entry: &Entry| ["rate", "limit-iops"].contains(&entry.key);
        self.streams.iter().any(|stream| !stream.entries.iter().any(sets_rate))
    }

    fn from_survey(surveyed: &Surveyed, gathered: &[Gathered]) -> Self {
        let all = &surveyed.all;
        let first_ns = all.first_ns.unwrap_or(0);
        let span_ns = all.last_ns.saturating_sub(first_ns).min(MAX_TIME_NS);
        let mut fitted = Self {
            operations: all.data + all.syncs,
            tasks: surveyed.parts.iter().map(|part| part.tasks).sum(),
            span_ns,
            writes: gathered.iter().any(|part| part.whole.kinds[1..].iter().any(|kind| kind.count() > 0)),
            end_bytes: all.span.map_or(0, |(_, end)| end.saturating_mul(trace::SECTOR)),
            ..Self::default()
        };
        let foreign_syncs: u64 =
            surveyed.parts.iter().filter(|part| part.seen.writes == 0).map(|part| part.seen.syncs).sum();
        let writer = (0..surveyed.parts.len()).max_by_key(|at| surveyed.parts[*at].seen.writes);
        let writer = writer.filter(|at| surveyed.parts[*at].seen.writes > 0);
        for (at, (part, gathered)) in surveyed.parts.iter().zip(gathered).enumerate() {
            let (active_ns, times) = active(part, first_ns, span_ns);
            let loads = gathered.loads(part.tasks);
            // If one of the task's two loads has flushes but no writes, add these flushes to the load with writes.
            let lone_syncs: u64 =
                loads.iter().filter(|(load, _)| load.kinds[1].count() == 0).map(|(load, _)| load.syncs).sum();
            let by_syncs = |at: &usize| (loads[*at].0.syncs, loads[*at].0.kinds[1].count());
            let host = (0..loads.len()).filter(|at| loads[*at].0.kinds[1].count() > 0).max_by_key(by_syncs);
            let load_of_part = |(index, (load, name_suffix)): (usize, (_, _))| {
                let load: &LoadFigures = load;
                let (writes, is_host) = (load.kinds[1].count(), host == Some(index));
                let of_others = if is_host && writer == Some(at) { foreign_syncs } else { 0 };
                let own = load.syncs + if is_host { lone_syncs } else { 0 };
                let syncs = if writes > 0 { own + of_others } else { 0 };
                let times = times.clone();
                LoadOfPart { part, load, name_suffix, active_ns, times, syncs, of_others }
            };
            let loads_of_part: Vec<LoadOfPart<'_>> =
                loads.iter().copied().enumerate().map(load_of_part).collect();
            match loads_of_part.as_slice() {
                [few, many] if gathered.alternates() && !few.is_stable() && !many.is_stable() => {
                    let whole = LoadOfPart { load: &gathered.whole, name_suffix: "", times, ..*few };
                    let [of_few, of_many] = &gathered.sides;
                    fitted.streams.push(whole.by_turns([(few, of_few), (many, of_many)]));
                }
                all => fitted.streams.extend(all.iter().flat_map(LoadOfPart::streams)),
            }
        }
        let more = fitted.streams.len().saturating_sub(MAX_STREAMS);
        fitted.streams.truncate(MAX_STREAMS);
        if more > 0 {
            fitted.remarks.push(format!("Streams omitted (a job has at most {MAX_STREAMS}): {more}."));
        }
        fitted.remark(surveyed, if writer.is_none() { foreign_syncs } else { 0 });
        fitted
    }

    fn remark(&mut self, surveyed: &Surveyed, lost_syncs: u64) {
        let remarks = [
            (surveyed.left_out, "Requests omitted (a job cannot make their kind of operation)"),
            (lost_syncs, "Flushes omitted (there are no writes to flush)"),
            (surveyed.large, "Operations larger than 1 GiB (the job makes them 1 GiB)"),
            (
                surveyed.unfinished,
                "Operations without a known completion (the think times and depths of their tasks are unknown)",
            ),
        ];
        let remarks = remarks.into_iter().filter(|(count, _)| *count > 0);
        self.remarks.extend(remarks.map(|(count, what)| format!("{what}: {}.", show_count(count as f64))));
    }
}

/// Returns how long a part is active in ns, and the keys for that time. A part that is active during the whole capture
/// needs no keys.
fn active(part: &Part, first_ns: u64, span_ns: u64) -> (u64, Vec<Entry>) {
    let begin = part.seen.first_ns.unwrap_or(first_ns).saturating_sub(first_ns);
    let end = part.seen.last_ns.saturating_sub(first_ns).min(span_ns);
    let operations = (part.seen.data + part.seen.syncs).max(1) as f64;
    let slack = (span_ns as f64 * (SLACK_GAPS / operations).clamp(MIN_SLACK, MAX_SLACK)) as u64;
    // A part that begins in the last moment is moved to an earlier time, so that it can run.
    let latest = span_ns.saturating_sub(MIN_ACTIVE_NS);
    let delay = if begin > slack { begin.min(latest) } else { 0 };
    let stops = end + slack < span_ns;
    let until = if stops { end } else { span_ns };
    let active_ns = until.saturating_sub(delay).max(MIN_ACTIVE_NS);
    let mut times = Vec::new();
    if delay > 0 {
        times.push(Entry::text("delay", &format_duration(delay), "time of the first operation".into()));
    }
    if stops {
        times.push(Entry::text(
            "stop-after",
            &format_duration(active_ns),
            "time from the first to the last operation".into(),
        ));
    }
    (active_ns, times)
}

/// Formats a duration in us from 1 s on, and in ns below.
fn format_duration(ns: u64) -> String {
    if ns >= 1_000_000_000 { format!("{}us", ns / 1000) } else { format!("{ns}ns") }
}

impl KindFigures {
    pub(super) fn count(&self) -> u64 {
        self.classes.iter().map(Class::operations).sum()
    }

    /// Returns all operations of a direction as one class.
    pub(super) fn whole(&self) -> Class {
        let [scattered, long] = &self.classes;
        let mut both = scattered.clone();
        both.join(long);
        // The first operations of a long run belong to the short class, so `scattered` counts the
        // beginnings of all runs.
        both.begun = scattered.begun;
        both
    }

    /// Returns the operations of a direction as one class, or as two: long runs and the other operations. Two classes need enough
    /// operations each ([`FEW_SHARE`]), and more operations in long runs than expected ([`EXTRA_LONG_SHARE`]). With each class:
    /// whether most of its operations are in long runs.
    fn divided(&self) -> Vec<(Class, bool)> {
        let [scattered, long] = &self.classes;
        let both = self.whole();
        let operations = both.operations().max(1) as f64;
        let is_few = |class: &Class| {
            (class.operations() as f64) < FEW_SHARE * operations
                && class.sizes.bytes() < FEW_SHARE * both.sizes.bytes()
        };
        let share = long.operations() as f64 / operations;
        // If the lengths of all runs were geometric with their mean, this share of the operations would follow at least seven
        // others of their run.
        let expected = (1.0 - 1.0 / both.mean_run_operations()).powi(LONG_RUN as i32 - 1);
        if share <= expected + EXTRA_LONG_SHARE || is_few(long) || is_few(scattered) {
            return vec![(both, share >= MOSTLY_LONG_SHARE)];
        }
        vec![(scattered.clone(), false), (long.clone(), true)]
    }
}

impl LoadOfPart<'_> {
    fn streams(&self) -> Vec<StreamText> {
        let pacing = &self.load.pacing;
        let figures = pacing.figures(self.active_ns);
        match pacing.choose(self.part.tasks, self.active_ns) {
            // The task alternates between two loads, so operations of one load also wait for operations of the other load. Therefore
            // neither load is a closed loop.
            _ if !self.name_suffix.is_empty() => self.open(),
            LoopKind::Open => self.open(),
            chosen => vec![self.closed(&chosen, figures)],
        }
    }

    fn named_stream(&self, what: &str) -> StreamText {
        let Part { name, tasks, .. } = self.part;
        let whose = match tasks {
            1 => String::new(),
            n => format!("{n} tasks, "),
        };
        let name = if name.is_empty() { "task" } else { name };
        let mut about = vec![format!(
            "{name}{}: {whose}{}, {}",
            self.name_suffix,
            format_count(self.load.data(), "operations"),
            format_count(self.load.syncs, "flushes")
        )];
        if name == OTHER_TASKS {
            about.push("Each of these tasks moves no data, has less than 1 % of the operations, 2 % of the bytes and 5 % of the flushes, or comes after 16 larger tasks".into());
        }
        let full: String =
            format!("{name}{}{what}", self.name_suffix).chars().take(model::spec::number::MAX_NAME).collect();
        StreamText { name: full, about, entries: Vec::new(), turns: Vec::new() }
    }

    /// Returns the streams of an open loop: one for each direction, and separate ones for long runs.
    fn open(&self) -> Vec<StreamText> {
        let sectors = alignment_sectors(self.load.kinds.iter().fold(0, |bits, kind| bits | kind.bits));
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
            let mut stream = self.named_stream(&what);
            let mut kinds = vec![(flow.kind, flow.class.clone())];
            if largest == Some(at) {
                kinds.extend(rare.iter().cloned());
                kinds.sort_by_key(|(kind, _)| *kind as usize);
            }
            let shape = Shape::from_classes(kinds, sectors, flow.long);
            stream.entries.extend(shape.entries());
            self.add_arrivals(&mut stream, flow, shape.operations());
            let most = self.load.pacing.depth_max();
            let depth = most.saturating_mul(DEPTH_FACTOR).max(MIN_DEPTH).min(max_depth_in_memory(&shape));
            stream.entries.push(Entry::bare(
                "depth",
                &depth.to_string(),
                match most {
                    0 => "upper limit; the capture does not show how many were in flight".into(),
                    _ => format!("upper limit; the capture had at most {most} in flight"),
                },
            ));
            stream.entries.extend(Self::batch_entry(&self.load.pacing, &shape, depth));
            let host =
                if self.load.kinds[1].count() > 0 && most_writes.is_none() { largest } else { most_writes };
            if host == Some(at) {
                let writes = shape.of_kind(Kind::Write);
                stream.entries.extend(self.flush_entries(writes, self.load.pacing.is_serial()));
            }
            if shape.of_kind(Kind::Write) > 0 {
                stream.entries.extend(self.stable_entry());
            }
            stream.entries.extend(self.times.iter().cloned());
            out.push(stream);
        }
        out
    }

    /// Returns the operations that get their own stream, by direction and by the length of their
    /// sequential runs, and the rare directions, which join the largest stream.
    fn flows(&self) -> (Vec<Flow<'_>>, Vec<(Kind, Class)>) {
        let (mut flows, mut rare) = (Vec::new(), Vec::new());
        let (data, bytes) = (self.load.data() as f64, self.load.bytes());
        for (kind, figures) in
            DATA_KINDS.into_iter().zip(&self.load.kinds).filter(|(_, figures)| figures.count() > 0)
        {
            let whole = figures.whole();
            let is_rare =
                (figures.count() as f64) < RARE_SHARE * data && whole.sizes.bytes() < RARE_SHARE * bytes;
            if is_rare && kind != Kind::Trim {
                rare.push((kind, whole));
                continue;
            }
            flows.extend(figures.divided().into_iter().map(|(class, long)| Flow {
                kind,
                figures,
                class,
                long,
            }));
        }
        (flows, rare)
    }

    fn add_arrivals(&self, stream: &mut StreamText, flow: &Flow<'_>, count: u64) {
        let figures = flow.figures;
        let rate = count as f64 / (self.active_ns as f64 / 1e9);
        let seen = figures.arriving.dispersion(self.active_ns);
        let share = (flow.class.operations() as f64 / figures.count().max(1) as f64).min(1.0);
        // With too few operations the arrivals are unknown.
        let idc = seen
            .map(|idc| distributions::dispersion_of_share(idc, share).filter(|_| count >= MIN_OPERATIONS));
        let fit = distributions::fit_bursts(rate, &figures.arriving.gaps, idc);
        let pacing_figures = self.load.pacing.figures(self.active_ns);
        stream.entries.push(Entry::bare(
            "rate",
            &format_number(rate.min(MAX_RATE)),
            format!(
                "{} in {}; open loop: {:.1} % of the operations overlap, burstiness (IDC) {} in 10 ms",
                format_count(count, "operations"),
                show_ns(self.active_ns as f64),
                100.0 * pacing_figures.overlapping,
                format_figure(pacing_figures.idc[0])
            ),
        ));
        let near = fit
            .distance
            .filter(|_| share >= 1.0)
            .map_or_else(String::new, |d| format!("; KS of the gaps {d:.3}"));
        let [short, long] =
            [0, 1].map(|at| format!("{} (fit {})", format_figure(idc[at]), format_figure(Some(fit.idc[at]))));
        let comment = format!("IDC {short} in 10 ms, {long} in 100 ms{near}");
        stream.entries.push(Entry::text("arrivals", &format_rounded_arrivals(fit.arrivals), comment));
    }

    /// Returns the key `batch` with the number of operations per call. Returns `None` if operations
    /// were issued one by one, or if many begin where another one ended, because the kernel would
    /// merge the operations of a call into one request.
    fn batch_entry(pacing: &Pacing, shape: &Shape, depth: u32) -> Option<Entry> {
        let mean = pacing.in_a_call().filter(|_| !shape.is_in_runs())?;
        let comment = format!("{} operations per call on average", format_number(mean));
        let batch = (mean.round() as u32).min(depth);
        (batch > 1).then(|| Entry::text("batch", &batch.to_string(), comment))
    }

    fn flush_entries(&self, writes: u64, drain: bool) -> Vec<Entry> {
        if self.syncs == 0 || writes == 0 {
            return Vec::new();
        }
        // Each stable write includes a flush, so subtract one flush per write.
        let syncs =
            if self.is_stable() { self.syncs.saturating_sub(self.load.kinds[1].count()) } else { self.syncs };
        if (syncs as f64) < FEW_SHARE * writes as f64 && self.is_stable() {
            return Vec::new();
        }
        let every = writes as f64 / syncs.max(1) as f64;
        // If the counts differ from a whole ratio by one operation at most, the difference comes from the edges of the capture.
        let whole = every.round();
        let every = if (writes as f64 - whole * syncs as f64).abs() <= 1.0 { whole } else { every };
        let mut comment = format!("{}, {}", format_count(writes, "writes"), format_count(syncs, "flushes"));
        if self.of_others > 0 {
            comment += &format!(
                ", {} of them requested by tasks that write nothing",
                show_count(self.of_others as f64)
            );
        }
        let text = if every > 9999.0 {
            every.round().min(f64::from(u32::MAX)).to_string()
        } else {
            format_fraction(every)
        };
        let mut out = vec![Entry::bare("fdatasync", &text, comment)];
        if drain {
            out.push(Entry::bare("drain", "true", "each sync waits for the earlier writes".into()));
        }
        out
    }

    /// Returns the key that makes all writes stable at completion; `None` if the capture has too few stable writes or
    /// too few flushes ([`STABLE_SHARE`]).
    fn stable_entry(&self) -> Option<Entry> {
        let (stable, writes) = (self.load.stable, self.load.kinds[1].count());
        let comment = format!(
            "{} of {} writes are stable when they complete (FUA), and there are about as many flushes",
            show_count(stable as f64),
            show_count(writes as f64)
        );
        self.is_stable().then(|| Entry::text("cache", "direct-dsync", comment))
    }

    fn is_stable(&self) -> bool {
        let writes = self.load.kinds[1].count();
        let many = |count: u64| count as f64 >= STABLE_SHARE * writes as f64 && count > 0;
        many(self.load.stable) && many(self.load.syncs)
    }
}

/// Returns the maximum number of operations in flight whose buffers fit in [`MAX_DEPTH_BYTES`].
fn max_depth_in_memory(shape: &Shape) -> u32 {
    (MAX_DEPTH_BYTES / shape.largest().max(1)).clamp(1, u64::from(MAX_DEPTH)) as u32
}

/// Formats arrivals, with rounded means.
fn format_rounded_arrivals(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Batch { mean } => Arrivals::Batch { mean: (mean * 1000.0).round() / 1000.0 }.to_flag(),
        Arrivals::OnOff { on_ns, off_ns } => {
            format!("on-off:{}us/{}us", on_ns.div_ceil(1000), off_ns.div_ceil(1000))
        }
        other => other.to_flag(),
    }
}

/// Formats a number with up to four decimals.
fn format_fraction(number: f64) -> String {
    let number = (number * 1e4).round().max(1.0) / 1e4;
    number.to_string()
}

fn format_figure(figure: Option<f64>) -> String {
    figure.map_or_else(|| "unknown".into(), |figure| format!("{figure:.2}"))
}

impl LoadOfPart<'_> {
    /// Returns a stream that waits for its own operations.
    fn closed(&self, chosen: &LoopKind, figures: PacingFigures) -> StreamText {
        let shape = self.shape();
        let mut stream = self.named_stream("");
        stream.entries.extend(shape.entries());
        let burst = self.add_pacing(chosen, figures, &shape, &mut stream);
        let writes = self.load.kinds[1].count();
        stream.entries.extend(self.flush_entries(writes, burst > 1));
        if writes > 0 {
            stream.entries.extend(self.stable_entry());
        }
        stream.entries.extend(self.times.iter().cloned());
        stream
    }

    /// Returns the shape of all directions together, without the separation of long runs.
    fn shape(&self) -> Shape {
        let kinds = &self.load.kinds;
        let long: u64 = kinds.iter().map(|kind| kind.classes[1].operations()).sum();
        let all: u64 = kinds.iter().map(KindFigures::count).sum();
        let directions = kinds.iter().filter(|kind| kind.count() > 0).count();
        let sequential = directions == 1 && long as f64 >= MOSTLY_LONG_SHARE * all as f64;
        let by_kind = DATA_KINDS.into_iter().zip(kinds.iter().map(KindFigures::whole)).collect();
        Shape::from_classes(
            by_kind,
            alignment_sectors(kinds.iter().fold(0, |bits, kind| bits | kind.bits)),
            sequential,
        )
    }

    /// Adds the keys that define what the stream waits for before its next operations. Returns the number of
    /// operations per burst.
    fn add_pacing(
        &self,
        chosen: &LoopKind,
        figures: PacingFigures,
        shape: &Shape,
        stream: &mut StreamText,
    ) -> u32 {
        let why = format!(
            "closed loop: {:.1} % of the operations overlap, burstiness (IDC) {} in 10 ms",
            100.0 * figures.overlapping,
            format_figure(figures.idc[0])
        );
        let most = self.load.pacing.depth_max().clamp(1, max_depth_in_memory(shape));
        let mut push = |entry: Entry| stream.entries.push(entry);
        match chosen {
            LoopKind::Open => 1,
            LoopKind::Full => {
                push(Entry::bare("depth", &most.to_string(), "the queue was kept full".into()));
                1
            }
            LoopKind::Paced => {
                let rate = shape.operations() as f64 / (self.active_ns as f64 / 1e9);
                push(Entry::bare("depth", "1", why));
                push(Entry::bare(
                    "limit-iops",
                    &format_number(rate.min(MAX_RATE)),
                    "a clock starts the operations; the task catches up after a delay".into(),
                ));
                1
            }
            LoopKind::Thinking { law, burst, mean_burst } => {
                let depth = if *burst > 1 { most } else { 1 };
                push(Entry::bare("depth", &depth.to_string(), why));
                if law.think.mean_ns == 0 {
                    return 1;
                }
                let factor = f64::from(*burst) / mean_burst.max(1.0);
                let (think, comment) = format_think_law(law, factor);
                push(Entry::text("think", &think, comment));
                if *burst > 1 {
                    let comment = format!("{mean_burst:.2} operations on average");
                    push(Entry::bare("burst", &burst.to_string(), comment));
                    Self::batch_entry(&self.load.pacing, shape, depth).into_iter().for_each(push);
                }
                *burst
            }
        }
    }
}

/// Formats a think time and a comment. `factor` corrects for bursts that are longer or shorter than observed.
fn format_think_law(law: &Law, factor: f64) -> (String, String) {
    let (text, fits) = format_law(law, factor);
    let mean = show_ns((law.think.mean_ns + law.overhead_ns) as f64);
    let taken = show_ns(law.overhead_ns as f64);
    (
        text,
        format!(
            "mean {mean}; {taken} of it are subtracted, because running the job takes this time too; {fits}"
        ),
    )
}

/// Formats the fitted distribution of times as the value of a key, with a comment on the fit. Times are
/// multiplied by `factor`.
fn format_law(law: &Law, factor: f64) -> (String, String) {
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
    let near = law.distance.map_or_else(
        || "90 % of the times are within 10 % of the mean".into(),
        |distance| format!("KS {distance:.3}"),
    );
    let scaled = if (factor - 1.0).abs() > 0.005 {
        format!(", multiplied by {factor:.3}, so that the sum of all times is that of the capture")
    } else {
        String::new()
    };
    (shorten_times(&think.to_flag()), format!("{near}{scaled}"))
}

/// Rounds times of 1 ms and more to us, which changes them by less than a thousandth.
fn shorten_times(text: &str) -> String {
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

/// If bursts are at least this share of a turn on average, a turn is one burst.
const WHOLE_TURN_SHARE: f64 = 0.6;

/// Returns the mean number of bursts per turn. A turn has `length` operations, rounded down or up so that the mean of all turns is
/// `length`.
fn bursts(length: f64, burst: f64) -> f64 {
    let (below, above) = (length.floor(), length.ceil());
    let share = length - below;
    (1.0 - share) * (below / burst).ceil() + share * (above / burst).ceil()
}

impl LoadOfPart<'_> {
    /// Returns a stream that alternates between the two sides.
    fn by_turns(&self, sides: [(&LoadOfPart<'_>, &Side); 2]) -> StreamText {
        let cycles = sides.iter().map(|(_, side)| side.turns).min().unwrap_or(1).max(1);
        let mut stream = self.named_stream("");
        let turns = sides.map(|(load, side)| load.turn(side, cycles));
        let max_depth = |(load, side): &(&LoadOfPart<'_>, &Side)| {
            side.pacing.depth_max().min(max_depth_in_memory(&load.shape()))
        };
        let depth = sides.iter().map(max_depth).max().unwrap_or(1);
        let comment =
            format!("the larger depth of the two turns, which alternate {}", format_count(cycles, "times"));
        stream.entries.push(Entry::bare("depth", &depth.max(1).to_string(), comment));
        let calls =
            sides.iter().find_map(|(load, side)| Self::batch_entry(&side.pacing, &load.shape(), depth));
        stream.entries.extend(calls);
        stream.entries.extend(self.times.iter().cloned());
        stream.turns = turns.into();
        stream
    }

    /// Returns the keys of one turn. The turns of the stream alternate `cycles` times.
    fn turn(&self, side: &Side, cycles: u64) -> Vec<Entry> {
        let shape = self.shape();
        let operations = shape.operations();
        let length = operations as f64 / cycles as f64;
        let range =
            side.lengths.map_or_else(String::new, |(least, most)| format!(", {least} to {most} in each"));
        let mut out = vec![Entry::bare(
            "ops",
            &format_fraction(length.max(1.0)),
            format!(
                "{} in {}{range}",
                format_count(operations, "operations"),
                format_count(side.turns, "turns")
            ),
        )];
        out.extend(shape.entries());
        let mean_burst = side.pacing.mean_burst_operations();
        let burst = match mean_burst {
            _ if side.pacing.is_serial() => 1.0,
            mean if mean >= WHOLE_TURN_SHARE * length => length.ceil(),
            mean => mean.round().max(1.0),
        };
        if let Some(law) = distributions::fit_think_law(&side.periods) {
            // The turns take as long in total as in the capture.
            let factor = side.periods.count() as f64 / cycles as f64 / bursts(length.max(1.0), burst);
            let (period, fits) = format_law(&law, factor);
            let [mean, think] = [&side.periods, &side.pacing.think]
                .map(|histogram| show_ns(histogram.mean_ns().unwrap_or(0.0)));
            let comment = format!(
                "mean {mean}, of which {think} are idle (with `think` the period would depend on the speed of the target); {fits}"
            );
            out.push(Entry::text("period", &period, comment));
        }
        if burst > 1.0 {
            let comment = format!("{mean_burst:.2} operations on average");
            out.push(Entry::bare("burst", &burst.to_string(), comment));
        }
        out.extend(self.flush_entries(shape.of_kind(Kind::Write), true));
        out
    }
}

/// Column at which comments begin. If key and value are longer, the comment is on the line before them.
const COMMENT_COLUMN: usize = 40;

/// The origin of a job file, for its comments.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The capture file, as the user typed it.
    pub capture: String,
    /// The captured device.
    pub device: String,
    /// The sentence about the completeness of the capture.
    pub completeness: String,
    /// Why the capture ends early; `None` if it is complete.
    pub damage: Option<String>,
    /// The job file, as the user typed it.
    pub file: String,
}

impl Fitted {
    /// Returns the text of the job file.
    pub fn toml(&self, head: &Head) -> String {
        let mut out = String::new();
        let mut comment = |line: &str| {
            let _ = writeln!(out, "# {}", one_line(line));
        };
        comment(&format!(
            "A job that behaves like {}, made by fathom fit {}",
            head.capture,
            env!("CARGO_PKG_VERSION")
        ));
        comment(&format!(
            "{} of {} in {}, tasks: {}",
            format_count(self.operations, "operations"),
            head.device,
            show_ns(self.span_ns as f64),
            self.tasks,
        ));
        comment(&head.completeness);
        if let Some(damage) = &head.damage {
            comment(&format!("The capture is {damage}; the job is fitted to the part before that"));
        }
        self.remarks.iter().for_each(|remark| comment(remark));
        comment(&format!(
            "Run:     fathom run {} TARGET   (the job touches the first {})",
            head.file,
            show_bytes(self.end_bytes)
        ));
        if self.writes {
            comment(
                "The job writes. A device or an existing file needs --destroy NAME; in a directory fathom creates a test file",
            );
        }
        comment(&format!("Compare: fathom fit --check {} TARGET", head.capture));
        comment(
            "KS: largest difference of the distribution functions of capture and job. IDC: variance divided by mean of the operations per interval",
        );
        let file = head.capture.rsplit('/').next().unwrap_or_default();
        let name: String = format!("fit of {file}").chars().filter(|c| !c.is_control()).collect();
        let name: String = name.chars().take(model::spec::number::MAX_NAME).collect();
        let _ = write!(
            out,
            "\nname = {}\ntime = \"{}us\"\nwarmup = 0\nruns = 1\n",
            quoted(&name),
            (self.span_ns / 1000).max(1000)
        );
        self.streams.iter().for_each(|stream| write_stream(&mut out, stream));
        out
    }
}

fn write_stream(out: &mut String, stream: &StreamText) {
    out.push('\n');
    for line in &stream.about {
        let _ = writeln!(out, "# {}", one_line(line));
    }
    let _ = writeln!(out, "[[stream]]\nname = {}", quoted(&stream.name));
    write_entries(out, &stream.entries);
    for turn in &stream.turns {
        out.push_str("\n[[stream.turn]]\n");
        write_entries(out, turn);
    }
}

fn write_entries(out: &mut String, entries: &[Entry]) {
    for entry in entries {
        let line = format!("{} = {}", entry.key, entry.value);
        let comment = one_line(&entry.comment);
        let _ = match line.chars().count() {
            0..=COMMENT_COLUMN => writeln!(out, "{line:COMMENT_COLUMN$}  # {comment}"),
            _ => writeln!(out, "# {}: {comment}\n{line}", entry.key),
        };
    }
}

/// Quotes a text for TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out + "\""
}

/// Replaces control characters, so that a comment remains one line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[test]
fn a_turn_of_a_mean_length_has_a_mean_number_of_bursts() {
    let near = |found: f64, truth: f64| assert!((found - truth).abs() < 1e-9, "{found}, not {truth}");
    near(bursts(69.25, 1.0), 69.25);
    near(bursts(339.2, 86.0), 4.0);
    near(bursts(3.0, 96.0), 1.0);
    near(bursts(8.5, 8.0), 1.5);
}
