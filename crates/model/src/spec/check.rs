//! Settings that contradict each other, or that would change nothing.
//!
//! For: refusing a slip before it is taken for a setting that did something. Not for: what depends on the target, the
//! machine or the engine, which the plan asks.

mod bursts;
mod files;
mod order;
mod rates;
mod replay;
#[cfg(test)]
mod tests;
mod turns;

use super::limits::{MAX_PHASES, MAX_STREAMS};
use super::{JobSpec, Rw, StreamSpec};
use crate::job::{Arrivals, Clones, Kind, Mix, OpPriority, Sharing};

/// Keys that each say all of what is written.
const WHOLE: [&str; 3] = ["zeros", "counting", "data"];

/// What is wrong with a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The keys that cause it, the one to change first; empty where nothing was said.
    pub keys: Vec<&'static str>,
    /// Index of the phase.
    pub phase: usize,
    /// Index of the stream in it.
    pub stream: usize,
    /// A sentence with what to do instead. A key stands in braces, with its value where it has one: `{rw randrw}`.
    pub message: String,
}

impl Problem {
    pub(super) fn new(keys: &[&'static str], message: String) -> Self {
        Self { keys: keys.to_vec(), phase: 0, stream: 0, message }
    }

    /// The message as the reader of a command line knows the keys: `--rw randrw`.
    pub fn in_flags(&self) -> String {
        spell(&self.message, |key, value| match value {
            Some(value) => format!("--{key} {value}"),
            None => format!("--{key}"),
        })
    }

    /// The message with each key, and its value where it has one, as `say` writes them.
    pub fn spelled(&self, say: impl Fn(&str, Option<&str>) -> String) -> String {
        spell(&self.message, say)
    }

    /// The message as the reader of a job file knows the keys: `rw = "randrw"`.
    pub fn in_toml(&self) -> String {
        spell(&self.message, |key, value| match value {
            Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => format!("`{key} = {number}`"),
            Some(value) => format!("`{key} = \"{value}\"`"),
            None => format!("`{key}`"),
        })
    }
}

fn spell(message: &str, say: impl Fn(&str, Option<&str>) -> String) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some((before, (inside, after))) =
        rest.split_once('{').and_then(|(b, r)| Some((b, r.split_once('}')?)))
    {
        out += before;
        out += &match inside.split_once(' ') {
            Some((key, value)) => say(key, Some(value)),
            None => say(inside, None),
        };
        rest = after;
    }
    out + rest
}

impl JobSpec {
    /// Everything in it that contradicts itself or would change nothing.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.check_repeats().into_iter().chain(self.check_gated()).collect();
        if self.phases.is_empty() || self.phases.len() > MAX_PHASES {
            let count = self.phases.len();
            problems.push(Problem::new(&[], format!("a job has 1 to {MAX_PHASES} phases, not {count}")));
        }
        for (phase, spec) in self.phases.iter().enumerate() {
            let count = spec.streams.len();
            if count == 1 && spec.streams[0].ends_others == Some(true) {
                let message = "{ends-others} ends nothing: no other stream is in its phase; leave it out";
                problems.push(Problem { phase, ..Problem::new(&["ends-others"], message.into()) });
            }
            if !(1..=MAX_STREAMS).contains(&count) {
                let message = format!("a phase has 1 to {MAX_STREAMS} streams, not {count}");
                problems.push(Problem { phase, ..Problem::new(&[], message) });
            }
            problems.extend(check_flows(&spec.streams).map(|p| Problem { phase, ..p }));
            let window = spec.time.map(|t| t.saturating_add(spec.warmup.unwrap_or(0)));
            for (stream, said) in spec.streams.iter().enumerate() {
                let mut found = said.check();
                if let (Some(delay), Some(window)) = (said.delay, window)
                    && delay >= window
                {
                    let message = "{delay} is as long as the phase; type a shorter one, or a longer {time}";
                    found.push(Problem::new(&["delay", "time"], message.into()));
                }
                if said.steady.is_some()
                    && spec.time.is_none()
                    && said.limit.is_none()
                    && said.passes.is_none()
                {
                    let message =
                        "{steady-state} may never come; type {time} too, the longest that it may take";
                    found.push(Problem::new(&["steady-state"], message.into()));
                }
                problems.extend(found.into_iter().map(|p| Problem { phase, stream, ..p }));
            }
        }
        problems
    }

    /// What is wrong once the targets are known that were named outside the job, for the streams that name none.
    pub fn check_targets(&self, named: usize) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (phase, spec) in self.phases.iter().enumerate() {
            for (stream, said) in spec.streams.iter().enumerate().filter(|(_, s)| s.target.is_empty()) {
                let found = said.check_sharing(named.max(1));
                problems.extend(found.map(|p| Problem { phase, stream, ..p }));
            }
        }
        problems
    }
}

/// Shares of operations that no other worker has one of.
fn check_flows(streams: &[StreamSpec]) -> impl Iterator<Item = Problem> {
    let of = |s: &StreamSpec| Some((s.flow?.group, s.workers.unwrap_or(1)));
    let workers = move |group: u32| -> u32 {
        streams.iter().filter_map(of).filter(|(other, _)| *other == group).map(|(_, workers)| workers).sum()
    };
    let groups = streams.iter().enumerate().filter_map(move |(at, s)| Some((at, s.flow?.group)));
    groups.filter(move |(_, group)| workers(*group) == 1).map(|(stream, group)| {
        let message = format!(
            "{{flow}} shares with nobody: no other stream of its phase has a share in group {group}; give another one a share too, or leave it out"
        );
        Problem { stream, ..Problem::new(&["flow"], message) }
    })
}

impl StreamSpec {
    /// Everything in it that contradicts itself or would change nothing; phase and stream of the answers are 0.
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
        self.check_least(&mut found);
        self.check_priorities(&mut found);
        if !self.target.is_empty() {
            found.extend(self.check_sharing(self.target.len()));
        }
        found
    }

    /// A least rate of what is not done.
    fn check_least(&self, found: &mut Vec<Problem>) {
        let Some(rule) = self.min_rate.as_ref().filter(|rule| !rule.is_of_all()) else { return };
        for kind in [Kind::Read, Kind::Write, Kind::Trim] {
            if rule.for_kind(kind).is_some() && !self.does(kind) {
                let word = kind.word();
                let message = format!(
                    "{{min-rate}} asks how fast its {word}s are, and {{{}}} has none; name other directions",
                    self.way_key()
                );
                found.push(Problem::new(&["min-rate"], message));
            }
        }
    }

    /// Priorities of operations that are not done.
    fn check_priorities(&self, found: &mut Vec<Problem>) {
        let all = self.op_priorities.iter().flatten();
        let kinds = |one: &OpPriority| one.kind.map_or(Kind::MOVING.to_vec(), |kind| vec![kind]);
        let of_none = all.map(kinds).find(|kinds| !kinds.iter().any(|kind| self.does(*kind)));
        if let Some(kinds) = of_none {
            let words: Vec<String> = kinds.iter().map(|kind| format!("{}s", kind.word())).collect();
            let message = format!(
                "{{op-priority}} is of {}, and {{{}}} has none; name other directions",
                words.join(" and "),
                self.way_key()
            );
            found.push(Problem::new(&["op-priority"], message));
        }
    }

    /// Order and direction, where nothing was said as the plan will take them.
    fn way(&self) -> Rw {
        self.rw.unwrap_or(Rw::Randread)
    }

    /// The key that says directions.
    fn way_key(&self) -> &'static str {
        match (self.lines.is_empty(), self.turns.is_empty()) {
            (true, true) => "rw",
            (false, _) => "line",
            (true, false) => "turn",
        }
    }

    /// Whether operations of a kind can come up. A mix that was not said has both reads and writes.
    fn does(&self, kind: Kind) -> bool {
        // What is in a file is not known here.
        if self.replay.is_some() {
            return true;
        }
        if !self.turns.is_empty() {
            return self.turns.iter().any(|turn| turn.what.does(kind));
        }
        if !self.lines.is_empty() {
            return self.lines.iter().any(|l| match kind {
                Kind::Read => l.mix.does(Kind::Read) || l.reply > 0,
                Kind::Write => l.writes(),
                Kind::Trim | Kind::Sync => l.mix.does(kind),
            });
        }
        match (self.way(), kind) {
            (Rw::Read | Rw::Randread, Kind::Read)
            | (Rw::Write | Rw::Randwrite, Kind::Write)
            | (Rw::Trim | Rw::Randtrim, Kind::Trim)
            | (Rw::Trimwrite | Rw::Randtrimwrite, Kind::Trim | Kind::Write) => true,
            (Rw::Rw | Rw::Randrw, kind) => self.mix.unwrap_or(Mix::EVEN).does(kind),
            _ => false,
        }
    }

    fn check_lines(&self, found: &mut Vec<Problem>) {
        if self.lines.is_empty() {
            return;
        }
        let paused = [
            ("think", self.think.is_some()),
            ("period", self.period.is_some()),
            ("burst", self.burst.is_some()),
            ("burst-time", self.burst_time.is_some()),
        ];
        let said = self.said_of_accesses().into_iter().chain(paused);
        for (key, _) in said.filter(|(_, said)| *said) {
            let message =
                format!("{{{key}}} does not go with {{line}}; say it in the lines, or leave the lines out");
            found.push(Problem::new(&[key, "line"], message));
        }
        let sum: u32 = self.lines.iter().map(|l| l.share).sum();
        if sum != 100 {
            let message = format!("the shares of {{line}} sum to {sum}; type shares that sum to 100");
            found.push(Problem::new(&["line"], message));
        }
    }

    /// Keys about which operations come after one another, and whether each is said: what lines say for themselves, and files of
    /// replays.
    fn said_of_accesses(&self) -> [(&'static str, bool); 15] {
        [
            ("rw", self.rw.is_some()),
            ("mix", self.mix.is_some()),
            ("bs", self.bs.is_some()),
            ("align", self.align.is_some()),
            ("random", self.random.is_some()),
            ("stride", self.stride.is_some()),
            ("hole", self.hole.is_some()),
            ("backwards", self.backwards == Some(true)),
            ("start", self.start.is_some()),
            ("positions", self.positions.is_some()),
            ("consecutive", self.consecutive.is_some()),
            ("run-length", self.run_length.is_some()),
            ("interleaved", self.interleaved.is_some()),
            ("times", self.times.is_some()),
            ("mix-by-run", self.mix_by_run == Some(true)),
        ]
    }

    fn check_directions(&self, found: &mut Vec<Problem>) {
        if !self.lines.is_empty() || !self.turns.is_empty() {
            return;
        }
        let way = self.way();
        if self.mix.is_some() && !way.is_mixed() {
            let message = format!(
                "{{mix}} goes with {{rw rw}} or {{rw randrw}}; {{rw {}}} says the direction alone",
                way.word()
            );
            found.push(Problem::new(&["mix", "rw"], message));
        }
        let done = [Kind::Read, Kind::Write, Kind::Trim].into_iter().filter(|k| self.does(*k)).count();
        if let Some(bs) = &self.bs
            && (bs.read != bs.write || bs.read != bs.trim)
            && (done < 2 || way.writes_after_trims())
        {
            let has = if done < 2 { "has one" } else { "writes what it trims" };
            let message = format!(
                "{{bs}} has sizes for several directions, and {{rw {}}} {has}; type one size for all",
                way.word()
            );
            found.push(Problem::new(&["bs", "rw"], message));
        }
    }

    fn check_pace(&self, found: &mut Vec<Problem>) {
        let closed = [
            ("limit-iops", self.limit_iops.is_some()),
            ("limit-bandwidth", self.limit_bandwidth.is_some()),
            ("think", self.think.is_some()),
            ("period", self.period.is_some()),
            ("flow", self.flow.is_some()),
        ];
        if self.latency_target.is_some() && self.rate.is_some() {
            let message = "{latency-target} searches for the depth of a closed loop, and {rate} makes an open one; type one of them, or `fathom limit`";
            found.push(Problem::new(&["latency-target", "rate"], message.into()));
        }
        for (key, _) in closed.into_iter().filter(|(_, said)| *said && self.rate.is_some()) {
            let message =
                format!("{{{key}}} is about a closed loop, and {{rate}} makes an open one; type one of them");
            found.push(Problem::new(&[key, "rate"], message));
        }
        if self.arrivals.is_some() && self.rate.is_none() {
            let message = "{arrivals} is about an open loop; type {rate} too, or leave {arrivals} out";
            found.push(Problem::new(&["arrivals"], message.into()));
        }
        if matches!(self.arrivals, Some(Arrivals::OnOff { .. })) && self.workers.unwrap_or(1) > 1 {
            let message = "{arrivals on-off} is on for one worker at a time; leave {workers} out, or write several streams";
            found.push(Problem::new(&["arrivals", "workers"], message.into()));
        }
        if self.burst.is_some() && self.think.is_none() && self.period.is_none() && self.lines.is_empty() {
            let message =
                "{burst} says how many operations follow a pause; type {think} too, or leave {burst} out";
            found.push(Problem::new(&["burst"], message.into()));
        }
        if self.serialize_overlap == Some(true) && self.depth == Some(1) {
            let message = "{serialize-overlap} changes nothing at {depth 1}, where one operation is in flight; leave it out";
            found.push(Problem::new(&["serialize-overlap", "depth"], message.into()));
        }
        if let (Some(batch), Some(depth)) = (self.batch, self.depth)
            && batch.submit.max(batch.complete) > depth
        {
            let message =
                format!("{{batch}} goes beyond {{depth {depth}}}; use a smaller batch, or a larger depth");
            found.push(Problem::new(&["batch", "depth"], message));
        }
    }

    fn check_writes(&self, found: &mut Vec<Problem>) {
        let calls: Vec<&'static str> = [
            ("fsync", self.fsync.is_some()),
            ("fdatasync", self.fdatasync.is_some()),
            ("sync-file-range", self.sync_file_range.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, said)| said.then_some(key))
        .collect();
        let data: Vec<&'static str> = [
            ("compress", self.compress.is_some()),
            ("dedup", self.dedup.is_some()),
            ("dedup-set", self.dedup_set.is_some()),
            ("dedup-shared", self.dedup_shared == Some(true)),
            ("zeros", self.zeros == Some(true)),
            ("counting", self.counting == Some(true)),
            ("data", self.data.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, said)| said.then_some(key))
        .collect();
        if !self.does(Kind::Write) {
            for key in calls.iter().chain(&data) {
                let message = format!("{{{key}}} is about writes, and this writes nothing; leave it out");
                found.push(Problem::new(&[key, self.way_key()], message));
            }
        }
        if let [first, second, ..] = calls.as_slice() {
            let message =
                format!("{{{first}}} and {{{second}}} are two ways to make writes stable; type one of them");
            found.push(Problem::new(&[second, first], message));
        }
        if self.drain == Some(true) && calls.is_empty() {
            let message = "{drain} is about calls that make writes stable; type {fsync} or {fdatasync} too, or leave {drain} out";
            found.push(Problem::new(&["drain"], message.into()));
        }
        if self.dedup_set.is_some() && self.dedup.is_none() {
            let message =
                "{dedup-set} says what copies are of; type {dedup 30} too, or leave {dedup-set} out";
            found.push(Problem::new(&["dedup-set"], message.into()));
        }
        if self.dedup_shared == Some(true) && self.dedup_set.is_none() {
            let message = "{dedup-shared} says whose sets copies are of; type {dedup-set 64m} too, or leave {dedup-shared} out";
            found.push(Problem::new(&["dedup-shared"], message.into()));
        }
        // A compressible share and a share of copies go together; zeros and a file are all of the data.
        for (at, whole) in WHOLE.into_iter().enumerate().filter(|(_, whole)| data.contains(whole)) {
            // Two of them are told once.
            for other in data.iter().filter(|other| **other != whole && !WHOLE[..at].contains(*other)) {
                let message = format!(
                    "{{{whole}}} says all of what is written, so {{{other}}} cannot; type one of them"
                );
                found.push(Problem::new(&[other, whole], message));
            }
        }
    }

    fn check_place(&self, found: &mut Vec<Problem>) {
        if self.clones.is_some() && self.workers.unwrap_or(1) < 2 {
            let message = "{clones} says how several workers do the work, and there is one; type {workers 2} or more, or leave {clones} out";
            found.push(Problem::new(&["clones", "workers"], message.into()));
        }
        if self.place.split && self.place.cpus.is_empty() && self.place.node.is_none() {
            let message = "{pin} needs to know the CPUs; type {cpus 0-3} or {node 0} too";
            found.push(Problem::new(&["pin"], message.into()));
        }
        let by_mapping = self.engine.as_ref().map(|e| e.name == "mmap");
        let mapped = self.cache.map(|c| c == crate::job::Cache::Mmap);
        if let (Some(by_mapping), Some(mapped)) = (by_mapping, mapped)
            && by_mapping != mapped
        {
            let message = if mapped {
                "{cache mmap} is what {engine mmap} does; type that engine, or another {cache}"
            } else {
                "{engine mmap} goes through a mapping and can do no other; leave {cache} out"
            };
            found.push(Problem::new(&["cache", "engine"], message.into()));
        }
    }

    fn check_sharing(&self, targets: usize) -> Option<Problem> {
        let workers = self.workers.unwrap_or(1);
        if self.clones == Some(Clones::Own) && (targets as u64).checked_rem(u64::from(workers)) != Some(0) {
            let message = format!(
                "{{clones own}} divides the targets among {workers} workers, and there are {targets}; name as many for each, or type {{clones same}}"
            );
            return Some(Problem::new(&["clones", "target"], message));
        }
        let message = match self.sharing.as_ref()? {
            Sharing::Weighted(weights) if targets > 1 && weights.len() != targets => {
                format!("{{sharing}} has {} weights for {targets} targets; type one for each", weights.len())
            }
            _ if targets > 1 => return None,
            _ => "{sharing} is about several targets, and there is one; name more, or leave it out".into(),
        };
        Some(Problem::new(&["sharing", "target"], message))
    }
}
