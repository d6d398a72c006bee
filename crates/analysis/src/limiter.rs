//! The limiter: what kept a result from being higher.
//!
//! For: one answer per result, with its numbers, strongest evidence first. Not for: how to remove it.

use crate::case::{Case, asked_depth, no_run, share};
use crate::checks::{Answer, CPU_BOUND, Evidence, Rename, busiest_worker, evidence, one_at_a_time};
use crate::findings::Answered;
use crate::name::moves_nothing;
use model::Known;
use model::job::{Kind, Pace};
use model::report::Limiter;
use model::units::{show_ns, show_rate, show_share};

/// Share of an operation's time inside the device from which the device is what one waits for.
const DEVICE_FROM: f64 = 0.7;
/// Requests per operation up to which both are the same thing.
const ONE_TO_ONE: f64 = 1.1;

/// The limiter of a result.
pub(crate) fn limiter(answered: &Answered) -> Limiter {
    let case = &answered.case;
    if case.runs.is_empty() {
        return unknown(&no_run());
    }
    if let Some(what) = moves_nothing(case) {
        return limiter_of(
            "tool",
            format!("No storage takes part ({what}): this is the speed of fathom itself."),
            evidence([]),
        );
    }
    from_findings(answered).unwrap_or_else(|| waiting(case).unwrap_or_else(|why| unknown(&why)))
}

/// The limiter where there is no result at all.
pub(crate) fn nothing_measured() -> Limiter {
    unknown("nothing was measured")
}

/// What the user holds operations back by.
fn from_pace(case: &Case) -> Option<Limiter> {
    let asked = match case.stream.pace {
        Pace::Open { iops, .. } => {
            format!("Operations arrive {} times a second, whatever the storage does.", show_rate(iops))
        }
        Pace::Limited { .. } => format!("It is {}.", case.stream.conditions().join(" and ")),
        Pace::Closed if !case.stream.is_unheld() => {
            "Pauses or drains between operations hold it back.".to_owned()
        }
        Pace::Closed => return None,
    };
    Some(limiter_of("the job itself", asked, evidence([])))
}

fn from_findings(answered: &Answered) -> Option<Limiter> {
    let case = &answered.case;
    if let Some(ram) = case.ram() {
        return Some(limiter_of("memory", format!("The target is memory ({ram})."), evidence([])));
    }
    let cached = answered.answers.iter().find_map(|(_, a)| match a {
        Ok(Answer::Finding(f)) if matches!(f.renames, Some(Rename::Medium(_))) => Some(f),
        _ => None,
    });
    if let Some(found) = cached {
        return Some(limiter_of("page cache", found.sentence.clone(), found.evidence.clone()));
    }
    if let Some(found) = answered.finding(CPU_BOUND) {
        return Some(limiter_of("CPU", found.sentence.clone(), found.evidence.clone()));
    }
    if let Some(held) = from_pace(case) {
        return Some(held);
    }
    let reached = case.depth_mean().ok()?;
    one_at_a_time(case, reached).then(|| {
        let asked = asked_depth(case.stream);
        let sentence = format!(
            "The engine {} kept {} operations in flight where {asked:.0} were asked for.",
            case.stream.engine,
            show_rate(reached)
        );
        limiter_of("tool", sentence, evidence([("asked_depth", asked), ("depth_mean", reached)]))
    })
}

/// Where an operation spends its time: inside the device or above it.
fn waiting(case: &Case) -> Known<Limiter> {
    let total = case.device()?.total();
    let latency_ns = mean_latency_ns(case).ok_or("no operation completed within a measured window")?;
    let issued = case.issued_total().ops as f64;
    if total.ios == 0 || issued <= 0.0 {
        return Err("the device completed nothing while operations were waited for".into());
    }
    // Counters span the warm-up and latencies the window, so both are taken per operation. Merged operations share the
    // time of their request; the parts of a split one wait side by side, and their sum is only an upper bound.
    let requests = total.ios as f64;
    let per = if requests <= ONE_TO_ONE * issued { requests } else { issued };
    let device_ns = total.ms as f64 * 1e6 / per;
    let inside = share(device_ns, latency_ns).min(1.0);
    let mut numbers =
        evidence([("device_ns", device_ns), ("latency_ns", latency_ns), ("device_share", inside)]);
    numbers.extend(busiest_worker(case).map(|c| ("busiest_worker_cpu_share".to_owned(), c)));
    let times = format!(
        "{} of the {} that an operation took",
        show_ns(device_ns.min(latency_ns)),
        show_ns(latency_ns)
    );
    if inside >= DEVICE_FROM {
        let sentence = format!("{} of the waiting was inside the device ({times}).", show_share(inside));
        return Ok(limiter_of("device", sentence, numbers));
    }
    if !case.stream.cache.is_direct() {
        return Err(format!(
            "the page cache reads ahead and writes behind, and only {times} was inside the device"
        ));
    }
    let sentence = format!(
        "Only {} of the waiting was inside the device ({times}); the rest was above it: the kernel, a limit, or the CPU.",
        show_share(inside)
    );
    Ok(limiter_of("above the device", sentence, numbers))
}

fn mean_latency_ns(case: &Case) -> Option<f64> {
    let whole: Vec<_> = Kind::MOVING.iter().filter_map(|k| case.latency(*k)).collect();
    let ops: f64 = whole.iter().map(|h| h.count() as f64).sum();
    let sum: f64 = whole.iter().map(|h| h.sum_ns() as f64).sum();
    (ops > 0.0 && sum > 0.0).then(|| sum / ops)
}

fn limiter_of(name: &str, sentence: String, evidence: Evidence) -> Limiter {
    Limiter { name: name.into(), sentence, evidence }
}

fn unknown(why: &str) -> Limiter {
    limiter_of("unknown", format!("What limited this is not known: {why}."), evidence([]))
}

#[cfg(test)]
use crate::forge::Forge;

#[cfg(test)]
fn of(forge: &Forge) -> Limiter {
    let record = forge.record();
    let mut cases = crate::case::cases(&record);
    limiter(&crate::findings::ask(cases.remove(0)))
}

#[test]
fn each_limiter_is_told_from_its_evidence() {
    use model::job::Cache;
    let honest = Forge::honest;
    for (name, forge) in [
        ("device", honest()),
        ("above the device", Forge { device_time_share: 0.6, ..honest() }),
        ("page cache", Forge { delivered: 0.0, cache: Cache::Buffered, ..honest() }),
        ("memory", Forge { ram: Some("zram0"), ..honest() }),
        ("CPU", Forge { cpu_share: 0.97, ..honest() }),
        ("tool", Forge { engine: "sync", depth_seen: 0.99, ..honest() }),
        ("tool", Forge { role: model::plan::Role::None, engine: "null", ..honest() }),
        ("unknown", Forge { stat_unreadable: true, ..honest() }),
        ("unknown", Forge { runs: 0, ..honest() }),
        ("unknown", Forge { ops: 0, ..honest() }),
    ] {
        let limiter = of(&forge);
        assert_eq!(limiter.name, name, "{}", limiter.sentence);
    }
    assert!(of(&honest()).sentence.contains("95 %"), "{}", of(&honest()).sentence);
}
