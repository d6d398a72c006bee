//! D27: runs that other load disturbed but that still count. Reports the decisions made while measuring: a
//! disturbed run was repeated (note), or counts because no attempt was undisturbed (biased).

use crate::checks::prelude::*;
use crate::strategy::disturbed::{BYTES_PER_S, FLOOR_BYTES, FLOOR_IOS, IOS_PER_S, Outside, STOLEN_ABOVE};

/// Largest number of disturbed runs in the sentence.
const NAMED: usize = 3;

pub(super) const CHECK: Check = Check {
    id: CheckId::D27,
    name: "RUNS_DISTURBED",
    belief: "no other load disturbed a counted run",
    reads: "fathom's decision after each run, from its start and stop: `/sys/block/*/stat` of the whole disk \
            and of the disks below it, compared with the charges to fathom's cgroup (see D01), stolen time \
            in `/proc/stat`, and the limits of the cgroups above fathom.",
    formula: formula!(
        "A run is disturbed if other processes move {rate} MB/s or {IOS_PER_S} requests per second on its \
         disks (and more than {floor} or {FLOOR_IOS} requests), if more than {stolen} of all CPU time is \
         stolen, or if a limit changed since before the first run. fathom repeats it, at most twice, at the \
         end of its round, and the last attempt counts. If all attempts were disturbed, or if fathom \
         repeated nothing because a third of all attempts were disturbed or the disk was as busy before the \
         first run, the first attempt counts: biased. The thresholds are rates, since the same traffic is a \
         smaller share of a faster run. Runs until steady and cells in order are never repeated.",
        rate = BYTES_PER_S / 1e6,
        floor = show_bytes(FLOOR_BYTES),
        stolen = Share(STOLEN_ABOVE)
    ),
    provoke: "dd if=/dev/vda of=/dev/null iflag=direct bs=1M & fathom run --rw randread .",
    fix: "Stop other users of the disk (`iotop -o`, `pidstat -d 1`) or changes of limits, and measure again.",
    accept: "Accept it if the neighbour belongs to what you want to measure.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| disturbed(&[1])),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let counting: Vec<&CaseRun> = case.runs.iter().filter(|r| r.run.disturbed.is_some()).collect();
    let repeated = case.aside.iter().filter(|r| r.run.disturbed.is_some()).count();
    let numbers = evidence([
        ("disturbed_runs", counting.len() as f64),
        ("runs", case.runs.len() as f64),
        ("disturbed_attempts_left_out", repeated as f64),
    ]);
    if !counting.is_empty() {
        return finding!(
            Severity::Biased,
            numbers,
            "Other load disturbed {}: {}.",
            match case.runs.len() {
                1 => "the only run".into(),
                all => format!("{} of {all} counted runs", counting.len()),
            },
            describe_disturbed_runs(&counting)
        );
    }
    if repeated > 0 {
        let aside: Vec<&CaseRun> = case.aside.iter().filter(|r| r.run.disturbed.is_some()).collect();
        let sentence =
            format!("Other load disturbed runs, which were repeated: {}.", describe_disturbed_runs(&aside));
        let found = Detail::new(Severity::Note, sentence, numbers).with_cure(String::new());
        return Ok(Answer::Finding(found));
    }
    case.need_run()?;
    let outside = Outside::from_runs(case);
    match outside.unseen().as_slice() {
        [] => holds("No other load disturbed the runs.", numbers),
        reasons => Err(reasons.join("; ")),
    }
}

/// Describes disturbed runs, such as `run 2 (240 MB/s of others on vda)`.
fn describe_disturbed_runs(runs: &[&CaseRun]) -> String {
    let describe_run = |ran: &&CaseRun| {
        let by = ran.run.disturbed.as_ref()?;
        Some(format!("run {} ({})", ran.run.start.repeat.saturating_add(1), by.describe()))
    };
    let mut all: Vec<String> = runs.iter().take(NAMED).filter_map(describe_run).collect();
    if runs.len() > NAMED {
        all.push(format!("and {} more", runs.len() - NAMED));
    }
    all.join("; ")
}

/// The honest record with these runs disturbed.
#[cfg(test)]
fn disturbed(runs: &[usize]) -> model::record::Record {
    use model::record::{Disturbance, Disturbed};
    let mut record = crate::fixture::Fixture::honest().record();
    for run in runs {
        let by = vec![Disturbance::StolenCpu { share: 0.2 }];
        record.runs[*run].disturbed = Some(Disturbed { attempt: 0, by });
    }
    record
}

#[test]
fn a_disturbed_run_biases_and_a_repeated_one_is_a_note() {
    let mut record = disturbed(&[1, 2, 3, 4]);
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Biased);
    assert!(
        f.sentence.contains("4 of 5 counted runs") && f.sentence.contains("; and 1 more"),
        "{}",
        f.sentence
    );
    for run in &mut record.runs[1..] {
        let repeated = model::record::Run { disturbed: None, ..run.clone() };
        record.aside.push(std::mem::replace(run, repeated));
    }
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Note);
    assert!(f.sentence.contains("repeated: run 2 (the hypervisor took 20 %"), "{}", f.sentence);
}

#[test]
fn files_without_the_limits_are_not_checked() {
    let mut record = crate::fixture::Fixture::honest().record();
    let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence).chain(&mut record.evidence);
    snapshots.for_each(|s| drop(s.files.remove(model::evidence::LIMITS)));
    assert!(CHECK.answer(&record).is_err_and(|why| why.contains("limits")));
}
