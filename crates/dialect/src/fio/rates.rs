//! Rates: how fast a job may go, and where it pauses.
//!
//! For: `rate`, `rate_iops`, their arrivals, the think times and `flow`. Not for: what ends it ([`super::streams`]).

use super::access::Way;
use super::jobs::{Fault, Job};
use super::value::{Bare, triplet};
use model::job::{Arrivals, Flow, Mix, PerKind, Percent, Sizes, Think};
use model::spec::StreamSpec;
use model::spec::limits::MAX_RATE;

/// Largest weight that fio takes.
const MAX_WEIGHT: u64 = 1000;

/// Says what holds a job back.
pub(super) fn pace(job: &Job, way: &Way, one: &mut StreamSpec) -> Result<(), Fault> {
    let positive = |n: u64| Some(n).filter(|n| *n > 0);
    let pairs = way.rw.writes_after_trims();
    if way.rw.is_mixed() {
        rates_of_mix(job, one)?;
    } else {
        let whole = |text: &str| job.units().whole(text);
        // Each direction has a rate for itself, and of a trim and its write there is one each.
        let all = |n: u64| if pairs { n.saturating_mul(2) } else { n };
        let bytes = job.same_for("rate", way.directions(), whole)?.and_then(positive);
        one.limit_bandwidth = bytes.map(all);
        let iops = job.same_for("rate_iops", way.directions(), whole)?.and_then(positive);
        one.limit_iops = iops.map(|n| all(n) as f64);
    }
    if pairs && (job.text("rate_process") == Some("poisson") || job.text("io_submit_mode") == Some("offload"))
    {
        let why = "a write that waits for its trim is no arrival; type rate_process=linear and io_submit_mode=inline";
        return Err(job.fault("rw", why));
    }
    arrivals(job, one)?;
    one.flow = flow(job)?;
    let think = job.time("thinktime", Bare::Microseconds)?.and_then(positive);
    if think.is_some() {
        one.think = think.map(Think::fixed);
        one.burst = job.count("thinktime_blocks", 1)?;
        if pairs {
            let Some(blocks) = one.burst.filter(|n| n.is_multiple_of(2)) else {
                let why = "no pause comes between a trim and its write; type an even thinktime_blocks";
                return Err(job.fault("thinktime", why));
            };
            one.burst = Some(blocks / 2);
        }
        if one.limit_bandwidth.is_some() || one.limit_iops.is_some() || one.rate.is_some() {
            return Err(job.fault("thinktime", "pauses and rates do not go together; type one of them"));
        }
    } else {
        job.count("thinktime_blocks", 0)?;
    }
    Ok(())
}

/// Makes a rate an open loop where operations do not wait for others: arrivals are drawn, or others submit than wait.
fn arrivals(job: &Job, one: &mut StreamSpec) -> Result<(), Fault> {
    let poisson = match job.text("rate_process") {
        None | Some("linear") => false,
        Some("poisson") => true,
        Some(_) => return Err(job.fault("rate_process", "it is linear or poisson; type one of them")),
    };
    let offload = match job.text("io_submit_mode") {
        None | Some("inline") => false,
        Some("offload") => true,
        Some(_) => return Err(job.fault("io_submit_mode", "it is inline or offload; type one of them")),
    };
    let said = if offload { "io_submit_mode" } else { "rate_process" };
    if offload && one.depth == Some(1) && job.count("iodepth", 1)?.is_some_and(|depth| depth > 1) {
        let why = "an engine that does one operation at a time is not carried out by several threads; type ioengine=libaio, or numjobs for each";
        return Err(job.fault(said, why));
    }
    let iops = match (one.limit_iops, one.limit_bandwidth, one.bs.as_ref().and_then(fixed)) {
        (Some(iops), ..) => iops,
        (None, Some(bytes), Some(size)) => bytes as f64 / f64::from(size),
        (None, Some(_), None) if poisson || offload => {
            return Err(job.fault("rate", "bytes of several sizes are no arrivals a second; type rate_iops"));
        }
        // Whoever is not held back submits as soon as there is room, whichever thread does it.
        _ => return Ok(()),
    };
    if !(poisson || offload) {
        return Ok(());
    }
    if !(iops > 0.0 && iops <= MAX_RATE) {
        return Err(job.fault(said, "the rate is out of range; type rate_iops=1000"));
    }
    (one.limit_iops, one.limit_bandwidth) = (None, None);
    one.rate = Some(iops);
    one.arrivals = Some(if poisson { Arrivals::Poisson } else { Arrivals::Constant });
    Ok(())
}

/// The size that all operations have.
fn fixed(bs: &PerKind<Sizes>) -> Option<u32> {
    let [read, write, trim] = [&bs.read, &bs.write, &bs.trim].map(Sizes::fixed);
    read.filter(|_| read == write && read == trim)
}

/// Its share of the operations of jobs at once.
fn flow(job: &Job) -> Result<Option<Flow>, Fault> {
    let group = job.count("flow_id", 0)?.unwrap_or(0);
    let pause_ns = job.number("flow_sleep")?.unwrap_or(0).saturating_mul(1000);
    match job.number("flow")?.unwrap_or(0) {
        0 => Ok(None),
        weight @ 1..=MAX_WEIGHT => Ok(Some(Flow { weight: weight as u32, group, pause_ns })),
        _ => Err(job.fault("flow", format!("it is 0 to {MAX_WEIGHT}; type such a weight"))),
    }
}

/// Rates of a mix, which each direction has for itself: their sum, and a mix in which both come to theirs at once.
fn rates_of_mix(job: &Job, one: &mut StreamSpec) -> Result<(), Fault> {
    if let (Some(_), Some(_)) = (job.text("rate"), job.text("rate_iops")) {
        return Err(job.fault("rate", "a mix is limited by bytes or by operations; type rate or rate_iops"));
    }
    for option in ["rate", "rate_iops"] {
        let Some(text) = job.text(option) else { continue };
        let said = triplet(text).map_err(|why| job.fault(option, why))?;
        let rate = |at: usize| -> Result<u64, Fault> {
            let text: Option<&str> = said.get(at).copied().flatten();
            let rate = text.map_or(Ok(0), |text| job.units().whole(text));
            rate.map_err(|why| job.fault(option, why))
        };
        let [read, write] = [rate(0)?, rate(1)?];
        let bytes = |sizes: &Sizes| if option == "rate" { sizes.fixed() } else { Some(1) };
        let each = one.bs.as_ref().and_then(|bs| Some((bytes(&bs.read)?, bytes(&bs.write)?)));
        let share = match (read, write, each) {
            (0, 0, _) => continue,
            (0, _, _) | (_, 0, _) => {
                let why =
                    "one direction of the mix is limited and the other is not; type a job for each direction";
                return Err(job.fault(option, why));
            }
            (_, _, None) => {
                return Err(job.fault(option, "bytes of several sizes are not divided by it; type rate_iops"));
            }
            (read, write, Some((each_read, each_write))) => {
                let (reads, writes) =
                    (read as f64 / f64::from(each_read), write as f64 / f64::from(each_write));
                100.0 * reads / (reads + writes)
            }
        };
        one.mix =
            Percent::nearest(share).map(|read_percent| Mix { read_percent, trim_percent: Percent::NONE });
        if option == "rate" {
            one.limit_bandwidth = Some(read.saturating_add(write));
        } else {
            one.limit_iops = Some(read as f64 + write as f64);
        }
    }
    Ok(())
}
