//! Rates, arrivals, think times and `flow` of a job, and the rules that end it or choose its depth by its
//! speed (steady state, minimum rate, latency target).

use super::access::{BLOCK_BYTES, ParsedRw};
use super::value::DefaultUnit;
use crate::fio::job_file::{Fault, Job};
use model::job::{
    Arrivals, Flow, LatencyTarget, MinRate, Mix, PerKind, Percent, Quantity, Sizes, Steady, Think,
};
use model::spec::conditions::RateLimit;
use model::spec::number::{MAX_RATE, MAX_TIME_NS, MIN_TIME_NS};
use model::spec::{StreamSpec, conditions};

/// Largest weight that fio accepts.
const MAX_WEIGHT: u64 = 1000;

/// Sets the rates and pauses of a job.
pub(super) fn pace(job: &Job, rw: &ParsedRw, stream: &mut StreamSpec) -> Result<(), Fault> {
    let positive = |n: u64| Some(n).filter(|n| *n > 0);
    let has_pairs = rw.kind.writes_after_trims();
    let is_poisson = job.text("rate_process") == Some("poisson");
    let is_offload = job.text("io_submit_mode") == Some("offload");
    let why = "a write of trimwrite waits for its trim, which an open loop cannot do; type rate_process=linear and io_submit_mode=inline";
    job.refuse_if(has_pairs && (is_poisson || is_offload), "rw", why)?;
    let is_deep = job.count("iodepth", 1)?.is_some_and(|depth| depth > 1);
    let why = "fathom does not run a synchronous engine in several threads of one clone; type ioengine=libaio, or numjobs";
    job.refuse_if(is_offload && stream.depth == Some(1) && is_deep, "io_submit_mode", why)?;
    if let Some(rates) = Rates::from_job(job, rw)? {
        if is_poisson || is_offload {
            let option = if is_offload { "io_submit_mode" } else { "rate_process" };
            let arrivals = if is_poisson { Arrivals::Poisson } else { Arrivals::Constant };
            rates.set_open_loop(option, arrivals, stream)?;
        } else {
            rates.set_limits(stream)?;
        }
    }
    stream.resolved.flow = flow(job)?;
    refuse_waits_between_directions(job, stream)?;
    let think = job.time("thinktime", DefaultUnit::Microseconds)?.and_then(positive);
    if think.is_some() {
        stream.think = think.map(Think::fixed);
        stream.burst = job.count("thinktime_blocks", 1)?;
        stream.burst_time = job.time("thinktime_iotime", DefaultUnit::Seconds)?.and_then(positive);
        stream.resolved.think_spin_ns = job.time("thinktime_spin", DefaultUnit::Microseconds)?.unwrap_or(0);
        let why = "the time is longer than thinktime; type a shorter time";
        job.refuse_if(stream.resolved.think_spin_ns > think.unwrap_or(0), "thinktime_spin", why)?;
        let waits = has_pairs || stream.resolved.waits().next().is_some();
        let why = "fathom does not combine the option with trimwrite, serialize_overlap or flow; type thinktime_blocks";
        job.refuse_if(stream.burst_time.is_some() && waits, "thinktime_iotime", why)?;
        if has_pairs {
            let Some(blocks) = stream.burst.filter(|n| n.is_multiple_of(2)) else {
                let why = "a pause cannot separate a trim from its write; type an even thinktime_blocks";
                return Err(job.fault("thinktime", why));
            };
            stream.burst = Some(blocks / 2);
        }
        let has_rate =
            stream.limit_bandwidth.is_some() || stream.limit_iops.is_some() || stream.rate.is_some();
        let why = "fathom does not combine pauses and rates; type only one of them";
        job.refuse_if(has_rate, "thinktime", why)?;
    } else {
        job.count("thinktime_blocks", 0)?;
    }
    Ok(())
}

/// Whether each direction of a mix has its own rate.
pub(super) fn has_rate_per_direction(stream: &StreamSpec) -> bool {
    [stream.limit_iops, stream.limit_bandwidth].iter().flatten().any(|limit| limit.each().is_some())
}

/// Refuses options that make directions wait for each other if each direction has its own rate.
fn refuse_waits_between_directions(job: &Job, stream: &StreamSpec) -> Result<(), Fault> {
    let is_per_direction = has_rate_per_direction(stream);
    let why = "fathom does not combine the option with rates of a mix; type a job for each direction, or remove the option";
    job.refuse_if(is_per_direction && stream.has("flow"), "flow", why)?;
    job.refuse_if(is_per_direction && stream.has("serialize-overlap"), "serialize_overlap", why)
}

/// The rates of the directions that the job has; 0 for the others.
fn of_directions(rw: &ParsedRw, rates: [u64; 3]) -> [u64; 3] {
    [0, 1, 2].map(|at| if rw.directions().contains(&at) { rates[at] } else { 0 })
}

/// Rates of the directions of a job.
struct Rates<'j> {
    job: &'j Job,
    rw: &'j ParsedRw,
    option: &'static str,
    /// Rates of reads, writes and trims. 0 means no limit, or that the job has no such operations.
    per_second: [u64; 3],
}

impl<'j> Rates<'j> {
    /// Reads `rate` or `rate_iops`; `None` if no direction of the job has a rate.
    fn from_job(job: &'j Job, rw: &'j ParsedRw) -> Result<Option<Self>, Fault> {
        let mut found = None;
        for option in ["rate", "rate_iops"] {
            let typed = job.numbers(option)?;
            if typed == [0; 3] {
                continue;
            }
            let why = "fio limits either bytes or operations; type rate or rate_iops";
            job.refuse_if(found.is_some(), option, why)?;
            found = Some(Self { job, rw, option, per_second: of_directions(rw, typed) });
        }
        Ok(found.filter(|rates| rates.per_second != [0; 3]))
    }

    /// Sets the rates as limits of a closed loop.
    fn set_limits(self, stream: &mut StreamSpec) -> Result<(), Fault> {
        let sizes = stream.bs.clone().unwrap_or(PerKind::all(Sizes::Fixed(BLOCK_BYTES)));
        let sizes = [sizes.read, sizes.write, sizes.trim];
        // As in fio, `rate_iops` limits bytes if operations have several sizes: the rate times the smallest size.
        let is_bytes = |at: usize| self.option == "rate" || sizes[at].fixed().is_none();
        let factor = |at: usize| if self.option == "rate" { 1.0 } else { f64::from(sizes[at].least()) };
        let bytes = |at: usize| if is_bytes(at) { self.per_second[at] as f64 * factor(at) } else { 0.0 };
        let iops = |at: usize| if is_bytes(at) { 0.0 } else { self.per_second[at] as f64 };
        let single = |rate: f64| Some(rate).filter(|rate| *rate > 0.0).map(RateLimit::All);
        let is_mix = |read_percent| stream.mix == Some(Mix::from_percents(read_percent, 0));
        let limit = |all: [f64; 3]| match (all, self.rw.directions()) {
            ([0.0, 0.0, 0.0], _) => None,
            // A mix of only reads or only writes has a single direction.
            ([read, ..], [0, 1]) if is_mix(100) => single(read),
            ([_, write, _], [0, 1]) if is_mix(0) => single(write),
            ([read, write, trim], [_, _]) => Some(RateLimit::Each(PerKind { read, write, trim })),
            (all, _) => single(all.iter().sum()),
        };
        if !self.rw.kind.writes_after_trims() {
            let (operations, bytes) = (limit([0, 1, 2].map(iops)), limit([0, 1, 2].map(bytes)));
            (stream.limit_iops, stream.limit_bandwidth) = (operations, bytes);
            return Ok(());
        }
        // As in fio, the rate of writes limits each pair of trim and write. fio ignores the rate of trims.
        let [_, write, trim] = self.per_second;
        let why = "fio ignores the rate of trims in trimwrite; type the same rate for writes and trims";
        self.job.refuse_if(trim > 0 && (write == 0 || trim < write), self.option, why)?;
        (stream.limit_iops, stream.limit_bandwidth) = (single(iops(1) * 2.0), single(bytes(1) * 2.0));
        Ok(())
    }

    /// Sets the rates as arrivals of an open loop.
    fn set_open_loop(self, option: &str, arrivals: Arrivals, stream: &mut StreamSpec) -> Result<(), Fault> {
        let job = self.job;
        let sizes = stream.bs.clone().unwrap_or(PerKind::all(Sizes::Fixed(BLOCK_BYTES)));
        let mut each = [0.0; 3];
        for (at, sizes) in [sizes.read, sizes.write, sizes.trim].iter().enumerate() {
            let in_bytes = self.option == "rate";
            let is_drawn = in_bytes && self.per_second[at] > 0 && sizes.fixed().is_none();
            let why = "constant arrivals of several block sizes need operations per second; type rate_iops";
            job.refuse_if(is_drawn && arrivals == Arrivals::Constant, "rate", why)?;
            // As in fio, a rate in bytes means that many bytes per second in operations of the smallest size.
            let bytes = if in_bytes { f64::from(sizes.least()) } else { 1.0 };
            each[at] = self.per_second[at] as f64 / bytes;
        }
        let lacks = self.rw.directions().iter().any(|at| self.per_second[*at] == 0);
        let why = "an open loop needs a rate for each direction of the mix; type a job for each direction, or rate_process=linear";
        job.refuse_if(lacks, self.option, why)?;
        let all = each.iter().sum();
        let is_possible = all > 0.0 && all <= MAX_RATE;
        job.refuse_if(!is_possible, option, "the rate is out of range; type rate_iops=1000")?;
        if self.rw.kind.is_mixed() {
            stream.mix = Percent::nearest(100.0 * each[0] / all)
                .map(|read_percent| Mix { read_percent, trim_percent: Percent::NONE });
        }
        (stream.rate, stream.arrivals) = (Some(all), Some(arrivals));
        Ok(())
    }
}

/// The weight of a job among the jobs of its flow group; `None` if the job has no `flow`.
fn flow(job: &Job) -> Result<Option<Flow>, Fault> {
    let group = job.count("flow_id", 0)?.unwrap_or(0);
    let pause_ns = job.number("flow_sleep")?.unwrap_or(0).saturating_mul(1000);
    match job.number("flow")?.unwrap_or(0) {
        0 => Ok(None),
        weight @ 1..=MAX_WEIGHT => Ok(Some(Flow { weight: weight as u32, group, pause_ns })),
        _ => Err(job.fault("flow", format!("out of range; type a weight from 0 to {MAX_WEIGHT}"))),
    }
}

/// fio's default criterion of the steady state.
const STEADY: &str = "iops_slope:0.01%";
/// Default period of a minimum rate in milliseconds.
const CYCLE_MS: u64 = 1000;
const MS_NS: u64 = 1_000_000;

/// Sets the rules that end a job or choose its depth by its speed.
pub(super) fn rules(job: &Job, rw: &ParsedRw, stream: &mut StreamSpec) -> Result<(), Fault> {
    stream.resolved.steady = steady(job)?;
    stream.resolved.min_rate = min_rate(job, rw)?;
    let micros = |text: &str| crate::fio::value::time(text, DefaultUnit::Microseconds);
    stream.resolved.max_latency_ns =
        job.same_for("max_latency", rw.directions(), micros)?.filter(|ns| *ns > 0);
    stream.resolved.latency_target = latency_target(job, stream.rate.is_some())?;
    Ok(())
}

fn steady(job: &Job) -> Result<Option<Steady>, Fault> {
    let window_ns = job.time("steadystate_duration", DefaultUnit::Seconds)?.unwrap_or(0);
    let after_ns = job.time("steadystate_ramp_time", DefaultUnit::Seconds)?.unwrap_or(0);
    let every_ns = job.time("steadystate_check_interval", DefaultUnit::Seconds)?.unwrap_or(Steady::EVERY_NS);
    let typed = job.text("steadystate");
    if window_ns == 0 {
        return match typed {
            // fio would check nothing, which cannot be intended.
            Some(_) => Err(job.fault("steadystate", "there is no window; type ss_dur=60s too")),
            None => Ok(None),
        };
    }
    let (name, limit) = typed.unwrap_or(STEADY).split_once(':').unwrap_or((typed.unwrap_or(STEADY), ""));
    let fault = |why: &str| job.fault("steadystate", why);
    let (what, slope) = conditions::parse_quantity(name).map_err(|why| fault(&why))?;
    // As in fio, ignore everything after the percent sign: Python's configuration parsers double the sign.
    let (digits, percent) = limit.split_once('%').map_or((limit, false), |(digits, _)| (digits, true));
    let limit = match (percent, what) {
        (true, _) | (false, Quantity::Iops) => digits.trim().parse::<f64>().ok(),
        (false, Quantity::Bandwidth) => job.units("steadystate").whole(digits).ok().map(|bytes| bytes as f64),
        (false, Quantity::Latency) => {
            crate::fio::value::time(digits, DefaultUnit::Microseconds).ok().map(|ns| ns as f64)
        }
    };
    let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0);
    let limit = limit.ok_or_else(|| fault("there is no limit above 0; type a limit such as iops:10%"))?;
    for (option, time) in [("steadystate_duration", window_ns), ("steadystate_ramp_time", after_ns)] {
        job.refuse_if(time > MAX_TIME_NS, option, "the time is more than a day; type a shorter time")?;
    }
    let is_short = every_ns < Steady::EVERY_NS || window_ns / every_ns < 2;
    let why = "the window needs two values, at least 1 s apart (ss_interval); type a longer ss_dur, or another ss_interval";
    job.refuse_if(is_short, "steadystate_duration", why)?;
    Ok(Some(Steady { quantity: what, slope, limit, percent, window_ns, after_ns, every_ns }))
}

fn min_rate(job: &Job, rw: &ParsedRw) -> Result<Option<MinRate>, Fault> {
    let every_ns = job.number("rate_cycle")?.unwrap_or(CYCLE_MS).saturating_mul(MS_NS);
    let mut found = None;
    let rates = |option: &str| job.numbers(option).map(|all| of_directions(rw, all));
    for (option, most, quantity) in
        [("rate_min", "rate", Quantity::Bandwidth), ("rate_iops_min", "rate_iops", Quantity::Iops)]
    {
        let (least, most) = (rates(option)?, rates(most)?);
        let is_higher = least.iter().zip(most).any(|(least, most)| most > 0 && *least > most);
        job.refuse_if(is_higher, option, "the minimum is above the limit of the rate; type a lower minimum")?;
        let [read, write, trim] = least;
        let least = PerKind { read, write, trim };
        if least == PerKind::all(0) {
            continue;
        }
        let why = "a job has one minimum, of bytes or of operations; type rate_min or rate_iops_min";
        job.refuse_if(found.is_some(), option, why)?;
        let is_possible = (MS_NS..=MAX_TIME_NS).contains(&every_ns);
        job.refuse_if(!is_possible, "rate_cycle", "out of range; type milliseconds such as 1000")?;
        found = Some(MinRate { quantity, least, every_ns });
    }
    Ok(found)
}

fn latency_target(job: &Job, is_open: bool) -> Result<Option<LatencyTarget>, Fault> {
    let ns = job.time("latency_target", DefaultUnit::Microseconds)?.unwrap_or(0);
    let window_ns = job.time("latency_window", DefaultUnit::Microseconds)?.unwrap_or(0);
    let searches_whole_run = job.on("latency_run", false)?;
    let percent = job.text("latency_percentile").map_or(Some(100.0), |text| text.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    let percent = percent.ok_or_else(|| {
        job.fault("latency_percentile", "not a percentage; type a number above 0 and up to 100")
    })?;
    if ns == 0 {
        return Ok(None);
    }
    let has_window = (MIN_TIME_NS..=MAX_TIME_NS).contains(&window_ns);
    let why = "the target needs a window of 1 ms to 1 day; type latency_window=5s";
    job.refuse_if(!has_window, "latency_target", why)?;
    let why = "an open loop has no depth to search; leave rate_process and io_submit_mode out";
    job.refuse_if(is_open, "latency_target", why)?;
    Ok(Some(LatencyTarget { ns, percent, window_ns, searches_whole_run }))
}
