//! Checks of a specification: settings that contradict each other, or that would change nothing.
//!
//! A [`Problem`] names the keys and what to type instead. The plan checks what depends on the machine or the
//! engine.

#[cfg(test)]
mod tests;

use super::{JobSpec, Rw, StreamSpec};
use crate::job::{
    Arrivals, Clones, Kind, Mix, OpPriority, Order, Positions, ReplayPace, Sharing, Start, SyncCall, ThinkLaw,
};
use crate::spec::keys::{KEYS, Key};
use crate::spec::number::{FEWEST_GATED_RUNS, FEWEST_ROUNDS, MAX_PHASES, MAX_STREAMS};
use crate::spec::{TurnSpec, Until, is_turn_key};

/// Keys that each define the complete content of writes.
const COMPLETE_CONTENT_KEYS: [&str; 3] = ["zeros", "counting", "data"];

/// Keys for the kind and the order of operations. Lines, turns and replays define both themselves.
pub(super) const ACCESS_KEYS: [&str; 15] = [
    "rw",
    "mix",
    "bs",
    "align",
    "random",
    "stride",
    "hole",
    "backwards",
    "start",
    "positions",
    "consecutive",
    "run-length",
    "interleaved",
    "times",
    "mix-by-run",
];

/// Keys for the region that operations touch, and for the sync calls and passes around them. Turns and replays define
/// these themselves.
const SURROUNDING_KEYS: [&str; 16] = [
    "strided",
    "line",
    "offset",
    "size",
    "sharing",
    "shared",
    "own",
    "shift-hosts",
    "workers",
    "fsync",
    "fdatasync",
    "sync-file-range",
    "passes",
    "evict-each-pass",
    "verify",
    "read-back",
];

/// A problem of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The keys that cause the problem. The first one is the key to change. Empty if no key was given.
    pub keys: Vec<&'static str>,
    /// Index of the phase.
    pub phase: usize,
    /// Index of the stream in the phase.
    pub stream: usize,
    /// A sentence with what to do instead. A key is in braces, with its value if it has one: `{rw randrw}`.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(keys: &[&'static str], message: String) -> Self {
        Self { keys: keys.to_vec(), phase: 0, stream: 0, message }
    }

    /// Returns the message with its keys as flags: `--rw randrw`.
    pub fn in_flags(&self) -> String {
        self.spelled(|key, value| match value {
            Some(value) => format!("--{key} {value}"),
            None => format!("--{key}"),
        })
    }

    /// Returns the message, with each key and its value written by `format_key`.
    pub fn spelled(&self, format_key: impl Fn(&str, Option<&str>) -> String) -> String {
        let mut out = String::new();
        let mut rest = self.message.as_str();
        while let Some((before, (inside, after))) =
            rest.split_once('{').and_then(|(b, r)| Some((b, r.split_once('}')?)))
        {
            out += before;
            out += &match inside.split_once(' ') {
                Some((key, value)) => format_key(key, Some(value)),
                None => format_key(inside, None),
            };
            rest = after;
        }
        out + rest
    }

    /// Returns the message with its keys as in a job file: `rw = "randrw"`.
    pub fn in_toml(&self) -> String {
        self.spelled(|key, value| match value {
            Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => format!("`{key} = {number}`"),
            Some(value) => format!("`{key} = \"{value}\"`"),
            None => format!("`{key}`"),
        })
    }
}

impl JobSpec {
    /// Returns all contradictions, and all settings that would change nothing.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.check_repeats().into_iter().chain(self.check_gated()).collect();
        if self.phases.is_empty() || self.phases.len() > MAX_PHASES {
            let count = self.phases.len();
            problems.push(Problem::new(&[], format!("a job has 1 to {MAX_PHASES} phases, not {count}")));
        }
        for (phase, spec) in self.phases.iter().enumerate() {
            let count = spec.streams.len();
            if count == 1 && spec.streams[0].has("ends-others") {
                let message = "{ends-others} ends nothing: no other stream is in its phase; leave it out";
                problems.push(Problem { phase, ..Problem::new(&["ends-others"], message.into()) });
            }
            if !(1..=MAX_STREAMS).contains(&count) {
                let message = format!("a phase has 1 to {MAX_STREAMS} streams, not {count}");
                problems.push(Problem { phase, ..Problem::new(&[], message) });
            }
            problems.extend(check_flows(&spec.streams).map(|p| Problem { phase, ..p }));
            let window = spec.time.map(|t| t.saturating_add(spec.warmup.unwrap_or(0)));
            for (stream, settings) in spec.streams.iter().enumerate() {
                let mut found = settings.check();
                if window.is_some_and(|window| settings.resolved.delay_ns >= window) {
                    let message =
                        "{delay} is not shorter than the phase; type a shorter {delay}, or a longer {time}";
                    found.push(Problem::new(&["delay", "time"], message.into()));
                }
                if settings.has("steady-state")
                    && spec.time.is_none()
                    && settings.resolved.limit.is_none()
                    && settings.passes.is_none()
                {
                    let message = "the stream may never become steady enough for {steady-state}; type {time} too, as an upper limit";
                    found.push(Problem::new(&["steady-state"], message.into()));
                }
                problems.extend(found.into_iter().map(|p| Problem { phase, stream, ..p }));
            }
        }
        problems
    }

    /// Returns the problems of streams without their own targets. These streams use the `named` targets of the command
    /// line.
    pub fn check_targets(&self, named: usize) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (phase, spec) in self.phases.iter().enumerate() {
            for (stream, settings) in spec.streams.iter().enumerate().filter(|(_, s)| s.target.is_empty()) {
                let found = settings.check_sharing(named.max(1));
                problems.extend(found.map(|p| Problem { phase, stream, ..p }));
            }
        }
        problems
    }

    /// Reports contradictions among the settings for the number of runs, and settings that would
    /// change nothing; `None` without a problem.
    fn check_repeats(&self) -> Option<Problem> {
        let few = |n: &u32| *n < FEWEST_ROUNDS;
        let (keys, message): (&[&'static str], String) = match self {
            Self { precision: Some(_), until: Some(_), .. } => (
                &["until", "precision"],
                "{until steady} and {precision} each decide when to stop; type one of them".into(),
            ),
            Self { until: Some(_), runs: Some(runs), .. } => (
                &["runs", "until"],
                format!("{{runs {runs}}} fixes the number of rounds, and {{until steady}} ends when the rate is steady; type {{max-runs}} in place of {{runs}} for a limit, or leave {{until}} out"),
            ),
            Self { settle: Some(true), until: Some(_), .. } => (
                &["settle", "until"],
                "{until steady} and {settle} each decide when to stop; type one of them".into(),
            ),
            Self { settle: Some(true), precision: Some(_), .. } => (
                &["settle", "precision"],
                "{precision} and {settle} each decide when to stop; type one of them".into(),
            ),
            Self { settle: Some(true), runs: Some(runs), .. } if few(runs) => (
                &["runs", "settle"],
                format!("{{runs {runs}}} is too few to estimate how many runs would decide the condition; type {{runs {FEWEST_ROUNDS}}} or more with {{settle}}"),
            ),
            Self { precision: Some(_), runs: Some(runs), .. } if few(runs) => (
                &["runs", "precision"],
                format!("{{runs {runs}}} is too few for {{precision}}: with fewer than {FEWEST_ROUNDS} runs the confidence interval is too often narrow by chance; type {{runs {FEWEST_ROUNDS}}} or more with {{precision}}"),
            ),
            Self { until: Some(_), attempts: Some(_), .. } => (
                &["attempts", "until"],
                "{until steady} repeats no disturbed round, because every round changes the state of the device; leave {attempts} out".into(),
            ),
            Self { max_runs: Some(_), precision: None, until: None, settle: None | Some(false), .. } => (
                &["max-runs"],
                "{max-runs} limits {precision}, {until steady} or {settle}; type one of these too, or {runs} for a fixed number".into(),
            ),
            Self { max_runs: Some(most), .. } if few(most) => (
                &["max-runs"],
                format!("{{max-runs {most}}} ends before anything can be decided; type {{max-runs {FEWEST_ROUNDS}}} or more"),
            ),
            Self { max_runs: Some(most), runs: Some(runs), .. } if most < runs => (
                &["max-runs", "runs"],
                format!("{{max-runs {most}}} is less than {{runs {runs}}}; use a larger {{max-runs}}, or a smaller {{runs}}"),
            ),
            _ => return None,
        };
        Some(Problem::new(keys, message))
    }

    /// Reports too few runs for a percentile in `fail-if`; `None` without this problem.
    pub(super) fn check_gated(&self) -> Option<Problem> {
        if !self.gates_a_percentile() {
            return None;
        }
        match (self.runs, self.until) {
            (Some(runs), _) if runs < FEWEST_GATED_RUNS => Some(Problem::new(
                &["runs", "fail-if"],
                format!(
                    "{{runs {runs}}} is too few for a percentile in {{fail-if}}; type {{runs {FEWEST_GATED_RUNS}}} or more, or leave {{fail-if}} out"
                ),
            )),
            (_, Some(Until::Steady)) => Some(Problem::new(
                &["until", "fail-if"],
                format!(
                    "{{until steady}} counts five rounds, and a percentile in {{fail-if}} needs {FEWEST_GATED_RUNS} runs; type {{runs {FEWEST_GATED_RUNS}}} instead"
                ),
            )),
            _ => None,
        }
    }
}

/// Reports shares of operations (`flow`) in groups with only one worker.
fn check_flows(streams: &[StreamSpec]) -> impl Iterator<Item = Problem> {
    let workers_of = move |group: u32| -> u32 {
        let members = streams.iter().filter(|s| s.resolved.flow.is_some_and(|flow| flow.group == group));
        members.map(|s| s.resolved.workers).sum()
    };
    let groups = streams.iter().enumerate().filter_map(|(at, s)| Some((at, s.resolved.flow?.group)));
    groups.filter(move |(_, group)| workers_of(*group) == 1).map(|(stream, group)| {
        let message = format!(
            "{{flow}} has no effect: its stream has one worker, and no other stream of the phase has {{flow}} in group {group}; give another stream {{flow}} too, or leave {{flow}} out"
        );
        Problem { stream, ..Problem::new(&["flow"], message) }
    })
}

impl StreamSpec {
    /// Returns all contradictions, and all settings that would change nothing; phase and stream of
    /// the problems are 0.
    pub fn check(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        self.check_lines(&mut found);
        self.check_turns(&mut found);
        self.check_directions(&mut found);
        self.check_order(&mut found);
        self.check_strided(&mut found);
        self.check_pace(&mut found);
        self.check_rates(&mut found);
        self.check_bursts(&mut found);
        self.check_writes(&mut found);
        self.check_place(&mut found);
        self.check_files(&mut found);
        self.check_replay(&mut found);
        self.check_min_rate(&mut found);
        self.check_priorities(&mut found);
        let unmet = |key: &&Key| key.needs.is_some_and(|(is_met, _)| self.has(key.name) && !is_met(self));
        for key in KEYS.iter().filter(unmet) {
            found.extend(key.needs.map(|(_, message)| Problem::new(&[key.name], message.into())));
        }
        if !self.target.is_empty() {
            found.extend(self.check_sharing(self.target.len()));
        }
        found
    }

    /// Reports minimum rates of directions that the stream does not have.
    fn check_min_rate(&self, found: &mut Vec<Problem>) {
        let Some(rule) = self.resolved.min_rate.as_ref().filter(|rule| !rule.has_equal_limits()) else {
            return;
        };
        for kind in [Kind::Read, Kind::Write, Kind::Trim] {
            if rule.for_kind(kind).is_some() && !self.has_kind(kind) {
                let word = kind.word();
                let message = format!(
                    "{{min-rate}} sets a limit for {word}s, and {{{}}} has no {word}s; name other directions",
                    self.direction_key()
                );
                found.push(Problem::new(&["min-rate"], message));
            }
        }
    }

    /// Reports priorities of directions that the stream does not have.
    fn check_priorities(&self, found: &mut Vec<Problem>) {
        let mut all = self.resolved.op_priorities.iter();
        let kinds = |one: &OpPriority| one.kind.map_or(Kind::MOVING.to_vec(), |kind| vec![kind]);
        let of_none = all.by_ref().map(kinds).find(|kinds| !kinds.iter().any(|kind| self.has_kind(*kind)));
        if let Some(kinds) = of_none {
            let words: Vec<String> = kinds.iter().map(|kind| format!("{}s", kind.word())).collect();
            let message = format!(
                "{{op-priority}} is for {}, and {{{}}} has none of them; name other directions",
                words.join(" and "),
                self.direction_key()
            );
            found.push(Problem::new(&["op-priority"], message));
        }
    }

    /// Returns order and direction; the plan's default if not given.
    fn rw_or_default(&self) -> Rw {
        self.rw.unwrap_or(Rw::Randread)
    }

    /// Returns the key that sets directions.
    fn direction_key(&self) -> &'static str {
        match (self.resolved.access.lines.is_empty(), self.turns.is_empty()) {
            (true, true) => "rw",
            (false, _) => "line",
            (true, false) => "turn",
        }
    }

    /// Whether operations of a kind can occur. An unspecified mix has both reads and writes.
    fn has_kind(&self, kind: Kind) -> bool {
        // The kinds in the replayed file are not known here.
        if self.replay.is_some() {
            return true;
        }
        if !self.turns.is_empty() {
            return self.turns.iter().any(|turn| turn.settings.has_kind(kind));
        }
        if !self.resolved.access.lines.is_empty() {
            return self.resolved.access.lines.iter().any(|line| line.does(kind));
        }
        let rw = self.rw_or_default();
        let mix = rw.fixed_mix().or(self.mix).unwrap_or(Mix::EVEN);
        mix.does(kind) || (kind == Kind::Write && rw.writes_after_trims())
    }

    fn check_lines(&self, found: &mut Vec<Problem>) {
        if self.resolved.access.lines.is_empty() {
            return;
        }
        let paused = ["think", "period", "burst", "burst-time"];
        for key in self.given_of(ACCESS_KEYS.into_iter().chain(paused)) {
            let message =
                format!("{{{key}}} does not go with {{line}}; set it in the lines, or leave the lines out");
            found.push(Problem::new(&[key, "line"], message));
        }
        let sum: u32 = self.resolved.access.lines.iter().map(|l| l.weight).sum();
        if sum != 100 {
            let message = format!("the shares of {{line}} sum to {sum}; type shares that sum to 100");
            found.push(Problem::new(&["line"], message));
        }
    }

    fn check_directions(&self, found: &mut Vec<Problem>) {
        if !self.resolved.access.lines.is_empty() || !self.turns.is_empty() {
            return;
        }
        let rw = self.rw_or_default();
        if self.mix.is_some() && !rw.is_mixed() {
            let message = format!(
                "{{mix}} is for {{rw rw}} or {{rw randrw}}, not for {{rw {}}}; type one of these, or leave {{mix}} out",
                rw.word()
            );
            found.push(Problem::new(&["mix", "rw"], message));
        }
        let done = [Kind::Read, Kind::Write, Kind::Trim].into_iter().filter(|k| self.has_kind(*k)).count();
        if let Some(bs) = &self.bs
            && (bs.read != bs.write || bs.read != bs.trim)
            && (done < 2 || rw.writes_after_trims())
        {
            let has = if done < 2 { "has only one direction" } else { "writes what it trims" };
            let message = format!(
                "{{bs}} has sizes for several directions, and {{rw {}}} {has}; type one size for all",
                rw.word()
            );
            found.push(Problem::new(&["bs", "rw"], message));
        }
    }

    fn check_pace(&self, found: &mut Vec<Problem>) {
        if self.has("latency-target") && self.rate.is_some() {
            let message = "{latency-target} searches for the depth of a closed loop, and {rate} makes an open one; type one of them, or `fathom limit`";
            found.push(Problem::new(&["latency-target", "rate"], message.into()));
        }
        let closed = ["limit-iops", "limit-bandwidth", "think", "period", "flow"];
        for key in self.given_of(closed).filter(|_| self.rate.is_some()) {
            let message =
                format!("{{{key}}} is for a closed loop, and {{rate}} makes an open one; type one of them");
            found.push(Problem::new(&[key, "rate"], message));
        }
        if matches!(self.arrivals, Some(Arrivals::OnOff { .. })) && self.resolved.workers > 1 {
            let message =
                "{arrivals on-off} is for a single worker; leave {workers} out, or write several streams";
            found.push(Problem::new(&["arrivals", "workers"], message.into()));
        }
        if self.has("serialize-overlap") && self.depth == Some(1) {
            let message = "{serialize-overlap} changes nothing at {depth 1}, with one operation in flight; leave it out";
            found.push(Problem::new(&["serialize-overlap", "depth"], message.into()));
        }
        if let (Some(batch), Some(depth)) = (self.batch, self.depth)
            && batch.submit.max(batch.complete) > depth
        {
            let message =
                format!("{{batch}} is larger than {{depth {depth}}}; use a smaller batch, or a larger depth");
            found.push(Problem::new(&["batch", "depth"], message));
        }
    }

    fn check_writes(&self, found: &mut Vec<Problem>) {
        let calls: Vec<&'static str> = self.given_of(["fsync", "fdatasync", "sync-file-range"]).collect();
        let data = ["compress", "dedup", "dedup-set", "dedup-shared", "zeros", "counting", "data"];
        let data: Vec<&'static str> = self.given_of(data).collect();
        if !self.has_kind(Kind::Write) {
            for key in calls.iter().chain(&data) {
                let message =
                    format!("{{{key}}} is for writes, and this stream writes nothing; leave {{{key}}} out");
                found.push(Problem::new(&[key, self.direction_key()], message));
            }
        }
        if let [first, second, ..] = calls.as_slice() {
            let message = format!(
                "a stream makes one kind of sync call, not {{{first}}} and {{{second}}}; type one of them"
            );
            found.push(Problem::new(&[second, first], message));
        }
        // `compress` and `dedup` can be combined. Each of `COMPLETE_CONTENT_KEYS` excludes all other keys for data.
        for (at, whole) in
            COMPLETE_CONTENT_KEYS.into_iter().enumerate().filter(|(_, whole)| data.contains(whole))
        {
            // Report each pair once.
            for other in
                data.iter().filter(|other| **other != whole && !COMPLETE_CONTENT_KEYS[..at].contains(*other))
            {
                let message = format!(
                    "{{{whole}}} sets the complete content of writes, so {{{other}}} has no effect; type one of them"
                );
                found.push(Problem::new(&[other, whole], message));
            }
        }
    }

    fn check_place(&self, found: &mut Vec<Problem>) {
        if self.has("clones") && self.resolved.workers < 2 {
            let message = "{clones} is for several workers, and there is one; type {workers 2} or more, or leave {clones} out";
            found.push(Problem::new(&["clones", "workers"], message.into()));
        }
        let by_mapping = self.engine.as_ref().map(|e| e.name == "mmap");
        let mapped = self.cache.map(|c| c == crate::job::Cache::Mmap);
        if let (Some(by_mapping), Some(mapped)) = (by_mapping, mapped)
            && by_mapping != mapped
        {
            let message = if mapped {
                "{cache mmap} works only with {engine mmap}; type {engine mmap}, or another {cache}"
            } else {
                "{engine mmap} always uses a mapping; leave {cache} out"
            };
            found.push(Problem::new(&["cache", "engine"], message.into()));
        }
    }

    fn check_sharing(&self, targets: usize) -> Option<Problem> {
        let workers = self.resolved.workers;
        if self.resolved.clones == Some(Clones::Own)
            && (targets as u64).checked_rem(u64::from(workers)) != Some(0)
        {
            let message = format!(
                "{{clones own}} cannot divide {targets} {} equally among {workers} workers; name {workers} targets or a multiple of {workers}, or type {{clones same}}",
                if targets == 1 { "target" } else { "targets" }
            );
            return Some(Problem::new(&["clones", "target"], message));
        }
        if !self.has("sharing") {
            return None;
        }
        let message = match &self.resolved.sharing {
            Sharing::Weighted(weights) if targets > 1 && weights.len() != targets => {
                let count = weights.len();
                format!("{{sharing}} needs one weight for each target; weights: {count}, targets: {targets}")
            }
            _ if targets > 1 => return None,
            _ => "{sharing} is for several targets, and there is one; name more, or leave it out".into(),
        };
        Some(Problem::new(&["sharing", "target"], message))
    }

    /// Reports keys that conflict with `period`, because they change when bursts begin.
    fn check_period(&self, found: &mut Vec<Problem>) {
        let others = self.given_of(["think", "limit-iops", "limit-bandwidth"]).chain(self.repeats());
        for key in others.filter(|_| self.period.is_some()) {
            let message = format!(
                "{{period}} sets when bursts begin, and {{{key}}} would change that; leave one of them out"
            );
            found.push(Problem::new(&["period", key], message));
        }
    }

    fn check_bursts(&self, found: &mut Vec<Problem>) {
        if self.think.as_ref().is_some_and(|think| self.resolved.think_spin_ns > think.mean_ns) {
            let message = "{think-spin} is a part of the pause, but is longer than {think}; type a shorter {think-spin}";
            found.push(Problem::new(&["think-spin", "think"], message.into()));
        }
        self.check_period(found);
        if self.burst_time.is_none() {
            return;
        }
        if self.think.as_ref().is_some_and(|think| think.law != ThinkLaw::Fixed) {
            let message =
                "{burst-time} needs pauses of one length; type {think} as a duration, such as 100us";
            found.push(Problem::new(&["think", "burst-time"], message.into()));
        }
        let conflicting = ["limit-iops", "limit-bandwidth", "flow", "serialize-overlap", "latency-target"];
        let pairs = self.rw.is_some_and(Rw::writes_after_trims).then_some("rw");
        for key in self.given_of(conflicting).chain(pairs) {
            let message = format!(
                "{{{key}}} delays operations too, which {{burst-time}} does not allow; type {{burst}}, or leave one of them out"
            );
            found.push(Problem::new(&[key, "burst-time"], message));
        }
    }

    fn check_files(&self, found: &mut Vec<Problem>) {
        if self.own && self.shared.is_some() {
            let message = "{own} makes a file for each worker, and {shared} makes one file for all workers; type one of them";
            found.push(Problem::new(&["own", "shared"], message.into()));
        }
        // The key that sets the file and blocks of each worker, and the keys that conflict with it.
        let (layout_key, conflicting): (_, &[&'static str]) = match (self.own, self.shared) {
            (true, _) => ("own", &["clones", "create"]),
            (false, Some(_)) => ("shared", &["clones", "start", "strided", "stride", "hole", "turn"]),
            (false, None) => return,
        };
        for key in self.given_of(conflicting.iter().copied()) {
            let message = format!(
                "{{{layout_key}}} sets the file and blocks that each worker uses, and {{{key}}} would change them; type one of them"
            );
            found.push(Problem::new(&[layout_key, key], message));
        }
        if self.shared.is_some() && self.target.len() > 1 {
            let message = "{shared} is for one file; name one target";
            found.push(Problem::new(&["shared", "target"], message.into()));
        }
    }

    fn check_order(&self, found: &mut Vec<Problem>) {
        if !self.resolved.access.lines.is_empty() || !self.turns.is_empty() {
            return;
        }
        let rw = self.rw_or_default();
        if self.random.is_some() && !rw.is_random() {
            let message = format!(
                "{{random}} sets how random offsets are drawn, and {{rw {}}} is sequential; type {{rw rand{}}}, or leave {{random}} out",
                rw.word(),
                rw.word()
            );
            found.push(Problem::new(&["random", "rw"], message));
        }
        let sequential = ["stride", "hole", "backwards", "start"];
        for key in self.given_of(sequential).filter(|_| rw.is_random()) {
            let plain = rw.word().trim_start_matches("rand");
            let message = format!(
                "{{{key}}} is for sequential operations, and {{rw {}}} is random; type {{rw {plain}}}, or leave {{{key}}} out",
                rw.word()
            );
            found.push(Problem::new(&[key, "rw"], message));
        }
        for key in self.given_of(["consecutive", "run-length"]).filter(|_| !rw.is_random()) {
            let message = format!(
                "{{{key}}} is for random operations, and {{rw {}}} is sequential; type {{rw rand{}}}, or leave {{{key}}} out",
                rw.word(),
                rw.word()
            );
            found.push(Problem::new(&[key, "rw"], message));
        }
        if self.has("stride") && self.has("hole") {
            let message = "{stride} and {hole} both set the distance between operations; type one of them";
            found.push(Problem::new(&["hole", "stride"], message.into()));
        }
        self.check_positions(found);
        self.check_mix_by_run(found);
        self.check_interleaved(found);
        if self.line.times > 1 && self.think.is_some() {
            let message = "{times} repeats operations at one offset, and {think} could pause between the repetitions; leave {times} or {think} out";
            found.push(Problem::new(&["times", "think"], message.into()));
        }
        if self.has("clones") && self.has("start") {
            let message = "{start} needs workers that divide the work, but with {clones} each does all of the work; type one of them";
            found.push(Problem::new(&["start", "clones"], message.into()));
        } else if self.has("start") && !rw.is_random() && self.resolved.workers < 2 {
            let message = "{start} sets where several workers begin, and there is one worker; type {workers 2} or more, or leave {start} out";
            found.push(Problem::new(&["start", "workers"], message.into()));
        }
    }

    fn check_strided(&self, found: &mut Vec<Problem>) {
        if self.resolved.access.strided.is_none() {
            return;
        }
        if self.has("start") && self.resolved.workers > 1 {
            let message = "{strided} spreads the workers over its zones, and {start} sets where they begin; type one of them";
            found.push(Problem::new(&["strided", "start"], message.into()));
        }
        if self.target.len() > 1 && self.resolved.sharing != Sharing::Each {
            let message = "{strided} uses the zones of one target at a time; leave {sharing} out, or type {sharing each}";
            found.push(Problem::new(&["strided", "sharing"], message.into()));
        }
    }

    /// Reports problems of `mix-by-run`, with which all operations of a sequential run have the same direction.
    fn check_mix_by_run(&self, found: &mut Vec<Problem>) {
        if !self.line.mix_by_run {
            return;
        }
        let in_runs = self.is_partly_random() || self.has("run-length");
        if !self.rw_or_default().is_mixed() || !in_runs {
            let message = "{mix-by-run} is for sequential runs from random offsets, in several directions; type {rw randrw} too, with {random mixed:30} or {run-length 4}, or leave {mix-by-run} out";
            found.push(Problem::new(&["mix-by-run", "random"], message.into()));
        } else if self.bs.as_ref().is_some_and(|bs| bs.read != bs.write || bs.read.fixed().is_none()) {
            let message =
                "{mix-by-run} needs one size for all operations; type one, or leave {mix-by-run} out";
            found.push(Problem::new(&["mix-by-run", "bs"], message.into()));
        } else if self.line.positions != Positions::Shared {
            let message = "{positions own} gives each direction its own position, and {mix-by-run} needs one for all directions; type one of them";
            found.push(Problem::new(&["mix-by-run", "positions"], message.into()));
        }
    }

    /// Reports problems of `run-length` and `interleaved`: the length and the number of sequential runs.
    fn check_interleaved(&self, found: &mut Vec<Problem>) {
        let mixed = self.is_partly_random();
        if self.has("run-length") {
            let other = match (self.has("consecutive"), mixed) {
                (true, _) => Some(("consecutive", "consecutive")),
                (_, true) => Some(("random", "random mixed")),
                _ => None,
            };
            if let Some((key, shown)) = other {
                let message =
                    format!("{{run-length}} and {{{shown}}} both set the length of runs; type one of them");
                found.push(Problem::new(&["run-length", key], message));
            }
            if self.random == Some(Order::Once) {
                let message = "{random once} uses each block once, and runs from random offsets use some twice; type another {random}, or leave {run-length} out";
                found.push(Problem::new(&["run-length", "random"], message.into()));
            }
        }
        if self.line.interleaved < 2 {
            return;
        }
        if self.rw_or_default().is_random() && !mixed && !self.has("run-length") {
            let message = "{interleaved} is for sequential runs, and here each operation is at a random offset; type {run-length 8} too, or a sequential {rw}";
            found.push(Problem::new(&["interleaved", "rw"], message.into()));
        }
        let first = self.given_of(["consecutive", "mix-by-run"]).chain(self.repeats());
        for key in first.chain(self.given_of(["strided", "start"])) {
            let message = format!(
                "{{interleaved}} has several positions at once, and {{{key}}} needs a single position; type one of them"
            );
            found.push(Problem::new(&["interleaved", key], message));
        }
    }

    fn check_positions(&self, found: &mut Vec<Problem>) {
        if !self.has("positions") {
            return;
        }
        let rw = self.rw_or_default();
        if !rw.is_mixed() {
            let message = format!(
                "{{positions}} is for {{rw rw}} and {{rw randrw}}, not for {{rw {}}}; type {{rw rw}}, or leave {{positions}} out",
                rw.word()
            );
            found.push(Problem::new(&["positions", "rw"], message));
        } else if rw.is_random()
            && !self.is_partly_random()
            && self.line.consecutive < 2
            && !self.has("run-length")
        {
            let message = "{positions} applies to sequential operations, and here each is at a random offset; type {rw rw} or {consecutive 8}, or leave {positions} out";
            found.push(Problem::new(&["positions", "rw"], message.into()));
        } else if self.line.positions != Positions::Shared && self.steps.start == Start::Interlocked {
            let message = "{start interlocked} has one position for all workers and directions; type another {start}, or {positions shared}";
            found.push(Problem::new(&["positions", "start"], message.into()));
        }
    }

    fn check_rates(&self, found: &mut Vec<Problem>) {
        let limits = [("limit-iops", self.limit_iops), ("limit-bandwidth", self.limit_bandwidth)];
        let each_limits = limits.map(|(key, limit)| limit.map(|limit| (key, limit.each().copied())));
        let [first, second] = each_limits;
        if let (Some((one, each)), Some((other, other_each))) = (first, second)
            && each.is_some() != other_each.is_some()
        {
            let message = format!(
                "{{{one}}} and {{{other}}} must both be for all operations or both for single directions; type both in one form"
            );
            found.push(Problem::new(&[one, other], message));
        }
        for (key, each) in each_limits.into_iter().flatten().filter_map(|(key, each)| Some((key, each?))) {
            let obstacle = if !self.resolved.access.lines.is_empty() {
                Some((
                    "line",
                    "each {line} has its own directions; type one limit for all directions, or {rw} in place of {line}",
                ))
            } else if !self.turns.is_empty() {
                let why = "the operations of a {turn} have a fixed order; type one limit for all directions, or leave the limit out";
                Some(("turn", why))
            } else if self.rw_or_default().writes_after_trims() {
                Some(("rw", "a write follows each trim; type one limit for both together"))
            } else {
                None
            };
            if let Some((other, why)) = obstacle {
                found.push(Problem::new(
                    &[key, other],
                    format!("{{{key}}} limits single directions, and {why}"),
                ));
                continue;
            }
            let missing =
                Kind::ALL.into_iter().find(|kind| each.for_kind(*kind) > 0.0 && !self.has_kind(*kind));
            if let Some(kind) = missing {
                let message = format!(
                    "{{{key}}} limits {0}s, and {{rw {1}}} has no {0}s; leave {{{key}}} out, or type an {{rw}} with {0}s",
                    kind.word(),
                    self.rw_or_default().word()
                );
                found.push(Problem::new(&[key, "rw"], message));
            }
            self.check_direction_rates_with(key, found);
        }
    }

    /// Reports keys that conflict with separate rates of directions, because they delay or choose the next operation regardless of its
    /// direction.
    fn check_direction_rates_with(&self, key: &'static str, found: &mut Vec<Problem>) {
        if !self.rw_or_default().is_mixed() {
            return;
        }
        let conflicting = [
            ("flow", "waits for others"),
            ("serialize-overlap", "waits for operations in flight"),
            ("think", "rests"),
            ("times", "repeats an offset"),
            ("mix-by-run", "keeps a direction"),
        ];
        let repeats_once = |key: &str| key == "times" && self.line.times == 1;
        for (other, what) in conflicting.into_iter().filter(|(key, _)| self.has(key) && !repeats_once(key)) {
            let message = format!(
                "{{{other}}} {what} regardless of the direction, but with limits for single directions {{{key}}} decides which direction is next; type one limit for all, or leave one of them out"
            );
            found.push(Problem::new(&[other, key], message));
        }
    }

    fn check_replay(&self, found: &mut Vec<Problem>) {
        let Some(replay) = &self.replay else { return };
        if replay.file.is_empty() {
            let key = self.given_of(["pace", "speed", "replay-scale", "replay-align"]).next();
            let key = key.unwrap_or("replay-skip");
            let message = format!(
                "{{{key}}} is for a captured load, and none is given; type {{replay FILE}} too, the file that `fathom capture` or another tool wrote, or leave {{{key}}} out"
            );
            found.push(Problem::new(&[key], message));
            return;
        }
        let paced = [
            "rate",
            "arrivals",
            "limit-iops",
            "limit-bandwidth",
            "flow",
            "think",
            "period",
            "latency-target",
            "serialize-overlap",
        ];
        for key in self.given_of(paced) {
            let message = format!(
                "{{{key}}} sets when operations are submitted, and {{replay}} has its own times; type {{pace}} and {{speed}}, or leave {{{key}}} out"
            );
            found.push(Problem::new(&[key, "replay"], message));
        }
        // A limit of 0 comes from a fio job that only creates its files. A user types at least 1.
        let operations = self.resolved.limit.operations.filter(|operations| *operations > 0).map(|_| "ops");
        for key in operations.into_iter().chain(self.given_of(["bytes"])) {
            let message = format!(
                "{{{key}}} ends a stream, and a captured load is replayed to its end; type {{stop-after 10s}}, or leave {{{key}}} out"
            );
            found.push(Problem::new(&[key, "replay"], message));
        }
        if replay.pace == Some(ReplayPace::Fast) && replay.speed.is_some() {
            let message = "{speed} divides the times of a captured load, and {pace fast} has none; leave one of them out";
            found.push(Problem::new(&["speed", "pace"], message.into()));
        }
        for key in self.given_of(ACCESS_KEYS.into_iter().chain(self.surrounding_keys()).chain(["turn"])) {
            let message =
                format!("{{{key}}} defines operations, and {{replay}} has its own; leave one of them out");
            found.push(Problem::new(&[key, "replay"], message));
        }
    }

    /// Returns the given keys of [`SURROUNDING_KEYS`]; `workers` only if there are several.
    fn surrounding_keys(&self) -> impl Iterator<Item = &'static str> {
        SURROUNDING_KEYS.into_iter().filter(|key| *key != "workers" || self.resolved.workers > 1)
    }

    /// Returns those of `keys` that were given. A switch that is off does not count.
    fn given_of(&self, keys: impl IntoIterator<Item = &'static str>) -> impl Iterator<Item = &'static str> {
        keys.into_iter().filter(|key| self.has(key))
    }

    /// Returns the key that repeats operations at one offset; `None` if each offset has one operation.
    fn repeats(&self) -> Option<&'static str> {
        (self.line.times > 1).then_some("times")
    }

    /// Whether some operations continue from the last one, and others are at random offsets.
    fn is_partly_random(&self) -> bool {
        matches!(self.random, Some(Order::Mixed(_) | Order::MixedEach(_)))
    }
}

/// Keys of a stream that also apply to a replay.
#[cfg(test)]
const REPLAY_STREAM_KEYS: &[&str] = &[
    "depth",
    "create",
    "replay",
    "pace",
    "speed",
    "replay-scale",
    "replay-align",
    "replay-skip",
    "delay",
    "batch",
    "stop-after",
    "steady-state",
    "min-rate",
    "max-latency",
    "max-errors",
    "ignore-errors",
    "ends-others",
    "compress",
    "dedup",
    "zeros",
    "counting",
    "data",
    "node",
    "memory-nodes",
    "nice",
    "io-priority",
    "op-priority",
    "op-log-interval",
    "engine",
    "cache",
    "advice",
];

impl StreamSpec {
    fn check_turns(&self, found: &mut Vec<Problem>) {
        if self.turns.is_empty() {
            return;
        }
        if self.turns.len() == 1 {
            let message = "{turn} is given once, and turns alternate; write a second one, or set its keys in the stream";
            found.push(Problem::new(&["turn"], message.into()));
        }
        let inside = ACCESS_KEYS.into_iter().chain(["think", "period", "burst", "drain"]);
        // A stream with turns may have several targets, and several workers with their own turns.
        let around = SURROUNDING_KEYS.into_iter().filter(|key| !["sharing", "workers"].contains(key));
        for key in self.given_of(inside.chain(around).chain(["burst-time"])) {
            let advice =
                if is_turn_key(key) { "set it in the turns, or leave it out" } else { "leave it out" };
            let message = format!("{{{key}}} does not go with {{turn}}; {advice}");
            found.push(Problem::new(&[key, "turn"], message));
        }
        let pauses =
            self.turns.iter().any(|turn| turn.settings.think.is_some() || turn.settings.period.is_some());
        for key in self.given_of(["rate", "limit-iops", "limit-bandwidth"]).filter(|_| pauses) {
            let message = format!(
                "{{{key}}} sets when operations are submitted, and a {{turn}} has its own pauses; leave {{{key}}} or {{think}} out"
            );
            found.push(Problem::new(&[key, "turn"], message));
        }
        let calls: Vec<SyncCall> = self.turns.iter().filter_map(TurnSpec::sync_call).collect();
        if calls.iter().any(|call| Some(call) != calls.first()) {
            let message = "{turn}: two turns make different sync calls, and a stream makes one kind; type {fsync} or {fdatasync} in both";
            found.push(Problem::new(&["turn"], message.into()));
        }
    }
}

impl TurnSpec {
    /// Returns all contradictions, and all settings that would change nothing.
    pub fn check(&self) -> Vec<Problem> {
        let mut found = self.settings.check();
        match self.operations {
            None => {
                let message = "a turn has no length; type {ops}, such as {ops 8}";
                found.push(Problem::new(&[], message.into()));
            }
            Some(length) if length.writes < length.calls => {
                let message =
                    format!("{{ops {}}} is less than one operation; type 1 or more", length.format_count());
                found.push(Problem::new(&["ops"], message));
            }
            Some(_) => {}
        }
        if let Some(rw @ (Rw::Trimwrite | Rw::Randtrimwrite)) = self.settings.rw {
            let message = format!(
                "{{rw {}}} has pairs of operations, and a turn could end between the two; type another direction, or write two turns",
                rw.word()
            );
            found.push(Problem::new(&["rw"], message));
        }
        found
    }

    /// Returns the call that makes the writes of the turn stable; `None` without one.
    fn sync_call(&self) -> Option<SyncCall> {
        let StreamSpec { fsync, fdatasync, sync_file_range, .. } = &self.settings;
        let all = [
            (SyncCall::Fsync, fsync),
            (SyncCall::Fdatasync, fdatasync),
            (SyncCall::SyncFileRange, sync_file_range),
        ];
        all.into_iter().find_map(|(call, given)| given.map(|_| call))
    }
}

#[cfg(test)]
fn turn(rw: Rw, length: &str) -> TurnSpec {
    let settings = StreamSpec { rw: Some(rw), ..StreamSpec::default() };
    TurnSpec { operations: crate::spec::values::every(length).ok(), settings }
}

#[test]
fn keys_without_effect_on_a_replay_are_rejected() {
    use crate::spec::keys::{KEYS, Set, example, find};
    let of_streams = KEYS.iter().filter(|key| matches!(key.set, Set::Stream(_)));
    for key in of_streams {
        let mut job = crate::spec::JobSpec::default();
        for (name, value) in [("replay", "x.log"), (key.name, example(key))] {
            let key = find(name).unwrap_or_else(|| panic!("{name}"));
            key.parse_into_job(&mut job, [value]).unwrap_or_else(|e| panic!("{e}"));
        }
        let found = job.phases[0].streams[0].check();
        assert_eq!(found.is_empty(), REPLAY_STREAM_KEYS.contains(&key.name), "{}: {found:?}", key.name);
    }
}

#[test]
fn keys_that_conflict_with_turns_are_rejected() {
    let turns = || vec![turn(Rw::Write, "8"), turn(Rw::Randread, "2.5")];
    let check = |change: fn(&mut StreamSpec)| {
        let mut stream = StreamSpec { turns: turns(), ..StreamSpec::default() };
        change(&mut stream);
        stream.check().iter().map(Problem::in_toml).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(check(|s| (s.depth, s.resolved.workers, s.rate) = (Some(8), 2, Some(100.0))), "");
    for (change, word) in [
        ((|s| s.rw = Some(Rw::Read)) as fn(&mut StreamSpec), "`rw` does not go with `turn`"),
        (|s| s.size = Some(4096), "`size` does not go with `turn`; set it in the turns"),
        (|s| s.fsync = Some(crate::job::Every::writes(1)), "`fsync` does not go"),
        (|s| s.passes = Some(2), "`passes` does not go with `turn`; leave it out"),
        (|s| s.burst_time = Some(1), "`burst-time` does not go with `turn`; leave it out"),
        (|s| s.turns.truncate(1), "given once"),
        (
            |s| {
                s.turns[0].settings.think = Some(crate::job::Think::fixed(1000));
                s.limit_iops = Some(crate::spec::conditions::RateLimit::All(5.0));
            },
            "its own pauses",
        ),
        (|s| s.limit_iops = crate::spec::conditions::limit_iops("write=5").ok(), "a fixed order"),
        (
            |s| {
                s.turns[1].settings.rw = Some(Rw::Randwrite);
                s.turns[0].settings.fsync = Some(crate::job::Every::writes(1));
                s.turns[1].settings.fdatasync = Some(crate::job::Every::writes(1));
            },
            "different sync calls",
        ),
    ] {
        let message = check(change);
        assert!(message.contains(word), "{word}: {message}");
    }
    for (turn, word) in [
        (turn(Rw::Read, "0.5"), "less than one"),
        (turn(Rw::Read, ""), "has no length"),
        (turn(Rw::Trimwrite, "4"), "pairs"),
    ] {
        let messages: Vec<String> = turn.check().iter().map(Problem::in_toml).collect();
        assert!(messages.iter().any(|message| message.contains(word)), "{word}: {messages:?}");
    }
}
