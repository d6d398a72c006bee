//! E10: an open loop that could not keep its own schedule. Compares the lateness of submissions with the latency
//! percentiles, and the operations served with the requested rate. For a replay, counts the operations read too
//! late from the capture.

use crate::checks::prelude::*;
use crate::figures::{LATE_SHARE, PERCENTILES, is_late};
use crate::runs::{ARRIVALS_VARY, SERVED_FROM, falls_short};

pub(in crate::checks) const CHECK: Check = Check {
    id: CheckId::E10,
    name: "GENERATOR_LATE",
    belief: "operations were submitted on schedule",
    reads: "fathom's own times: the intended start, the submission and the completion of every operation of \
            an open loop.",
    formula: formula!(
        "A percentile is withheld if the submission lateness at the same percentile is more than {late} of \
         it: then it describes fathom more than the storage. If less than {served} of the requested \
         operations were served within the windows, and more are missing than random arrivals vary by \
         ({ARRIVALS_VARY} times the square root of their number), the latencies are void: the rest waits in \
         a queue that grows with the length of the run. A replay is void if more than {starved} of its \
         operations were read from the capture too late.",
        starved = Share(STARVED_TO),
        late = Share(LATE_SHARE),
        served = Share(SERVED_FROM)
    ),
    provoke: "`fathom run --rate 1000000 --depth 1 DIR` requests more than any disk serves. `taskset -c 0 \
              fathom run --rate 50000 --workers 8 DIR` makes submissions late.",
    fix: "Use a lower --rate, a larger --depth or more --workers.",
    accept: "Accept it if you want to see the storage beyond its capacity.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        let open_loop = Some((10_000.0, Some(1_000_000)));
        crate::fixture::Fixture { open_loop, ..crate::fixture::Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture { open_loop: Some((10_000.0, None)), ..crate::fixture::Fixture::honest() }
            .record()
    },
};

/// Share of a replay's operations that may be read too late. Any reader thread is stopped now and then.
const STARVED_TO: f64 = 0.001;

fn evaluate(case: &Case) -> Known<Answer> {
    if let Some(starved) = starved(case) {
        return Ok(starved);
    }
    let Pace::Open { iops: requested, arrivals } = case.stream.pace else { return Ok(Answer::DoesNotApply) };
    let seconds = case.window_ns() / 1e9;
    let ops: u64 = [Kind::Read, Kind::Write, Kind::Trim].iter().map(|k| case.in_windows(*k).ops).sum();
    let served = share(ops as f64 / seconds.max(f64::MIN_POSITIVE), requested);
    let unserved = falls_short(ops as f64, requested, seconds, arrivals);
    let late = late_percentiles(case)?;
    let worst = Kind::ALL.iter().filter_map(|k| case.open_loop(*k)?.lateness.quantile_ns(0.99)).max();
    let numbers = evidence([
        ("asked_iops", requested),
        ("served_share", served),
        ("lateness_p99_ns", worst.unwrap_or(0) as f64),
        ("withheld", late.len() as f64),
    ]);
    if !unserved && late.is_empty() {
        return holds("Operations were submitted on schedule.", numbers);
    }
    if unserved {
        return finding!(
            Severity::Void,
            numbers,
            "Only {} of the requested {} operations per second were served: the rest queued up, and the \
             latencies grow with the length of the run.",
            show_share(served),
            show_rate(requested)
        );
    }
    finding!(
        Severity::Biased,
        numbers,
        "Submissions were late by up to {} (99th percentile), more than a tenth of p{}. Results withhold \
         such percentiles; a load curve shows the lateness in them.",
        show_ns(worst.unwrap_or(0) as f64),
        late.join(", p")
    )
}

/// Returns a finding for a replay whose operations were read too late: its times are those of the reader.
fn starved(case: &Case) -> Option<Answer> {
    case.stream.replay.as_ref()?;
    let replays = case.runs.iter().filter_map(|run| run.stream.replayed.as_ref());
    let late: u64 = replays.clone().map(|run| run.starved).sum();
    let most_ns = replays.map(|run| run.starved_ns).max().unwrap_or(0);
    let ops: u64 = Kind::ALL.iter().map(|kind| case.in_windows(*kind).ops).sum();
    let part = share(late as f64, ops as f64);
    (part > STARVED_TO).then(|| {
        let numbers = evidence([("starved_share", part), ("starved_ns", most_ns as f64)]);
        let sentence = format!(
            "{} of the operations were read from the capture too late, by up to {}: the reader, not the \
             capture, decided when they were submitted.",
            show_share(part),
            show_ns(most_ns as f64)
        );
        let cure = "Put the capture on faster storage, such as /dev/shm, or use a smaller --speed.";
        Answer::Finding(Detail { cure: Some(cure.into()), ..Detail::new(Severity::Void, sentence, numbers) })
    })
}

/// Returns the names of the percentiles that lateness distorts, for any kind of operation.
fn late_percentiles(case: &Case) -> Known<Vec<&'static str>> {
    let mut late = Vec::new();
    let mut has_latencies = false;
    for kind in Kind::ALL {
        let Some(latency) = case.latency(kind) else { continue };
        let open = case.open_loop(kind).ok_or("the record has no lateness of its operations")?;
        has_latencies = true;
        for (name, q) in PERCENTILES {
            let is_distorted =
                latency.supported_quantile_ns(*q).is_some_and(|v| is_late(v, &open.lateness, *q));
            if is_distorted && !late.contains(name) {
                late.push(*name);
            }
        }
    }
    if has_latencies { Ok(late) } else { Err("no operation completed within a measured window".into()) }
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn unserved_operations_are_void_and_late_ones_bias() {
    let overloaded = Fixture { open_loop: Some((20_000.0, Some(1_000))), ..Fixture::honest() };
    assert_eq!(CHECK.severity(&overloaded.record()), Some(Severity::Void));
    let late = Fixture { open_loop: Some((10_000.0, Some(1_000_000))), ..Fixture::honest() };
    assert_eq!(CHECK.severity(&late.record()), Some(Severity::Biased));
    assert_eq!(CHECK.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}

#[test]
fn a_replay_that_was_read_too_late_is_void() {
    use model::job::ReplayPace;
    use model::record::Replayed;
    let with = |starved| Replayed { starved, starved_ns: 1_000_000, is_whole: true, ..Replayed::default() };
    let severity_with = |starved| {
        let record = crate::figures::replay::replaying(ReplayPace::Dependent, |_| {}, Some(&with(starved)));
        CHECK.severity(&record)
    };
    assert_eq!([severity_with(0), severity_with(1)], [None, None]);
    assert_eq!(severity_with(1 << 40), Some(Severity::Void));
}
