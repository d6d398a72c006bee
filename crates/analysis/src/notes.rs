//! Notes: what happened on the way, each thing once.
//!
//! For: sentences of the plan, the runs and the end. Not for: findings, which act on numbers.

use model::record::{Record, Run, RunEnding};
use model::report::Ending;

/// How the session ended.
pub(crate) fn ending(record: &Record) -> Ending {
    match record.end.as_ref().map(|e| &e.ending) {
        None => Ending::Cut,
        Some(RunEnding::Complete) => Ending::Complete,
        Some(RunEnding::Interrupted) => Ending::Interrupted,
        Some(RunEnding::Failed(why)) => Ending::Failed(why.clone()),
    }
}

/// All notes, in the order of happening; one that repeats over runs is told once with its count.
pub(crate) fn notes(record: &Record) -> Vec<String> {
    let mut told: Vec<(String, usize)> = Vec::new();
    let mut tell = |sentence: String| match told.iter_mut().find(|(s, _)| *s == sentence) {
        Some((_, times)) => *times += 1,
        None => told.push((sentence, 1)),
    };
    if let Some(why) = &record.header.clock.reason {
        tell(format!("latencies are stamped with {}: {why}", record.header.clock.name));
    }
    for run in &record.runs {
        of_run(record, run).into_iter().for_each(&mut tell);
    }
    if let Some(end) = &record.end {
        end.notes.iter().cloned().for_each(&mut tell);
    }
    told.into_iter().map(|(s, times)| if times > 1 { format!("{s} ({times} times)") } else { s }).collect()
}

fn of_run(record: &Record, run: &Run) -> Vec<String> {
    let job = record.header.plan.jobs.get(run.start.job).map_or("a job", |j| j.name.as_str());
    let who = format!("{job}, run {}", run.start.repeat.saturating_add(1));
    let Some(end) = &run.end else {
        return vec![format!("{who}: the session ends inside this run; it is left out")];
    };
    let mut out: Vec<String> = end.notes.iter().map(|n| format!("{job}: {n}")).collect();
    match &end.ending {
        RunEnding::Complete => {}
        RunEnding::Interrupted => out.push(format!("{who} was interrupted; it is left out")),
        RunEnding::Failed(why) => out.push(format!("{who} failed and is left out: {why}")),
    }
    for worker in &end.workers {
        out.extend(worker.error.iter().map(|why| format!("{who}, worker {}: {why}", worker.worker)));
        out.extend(
            worker.fallbacks.iter().map(|f| format!("the kernel refused and fathom did without: {f}")),
        );
    }
    out
}

#[cfg(test)]
use crate::forge::Forge;

#[test]
fn what_repeats_is_told_once_and_a_cut_file_says_so() {
    let mut record = Forge::honest().record();
    for run in &mut record.runs {
        run.end.as_mut().unwrap().notes.push("3 pages of the target stayed in the page cache".into());
    }
    record.runs[4].end = None;
    record.end = None;
    let notes = notes(&record);
    assert!(notes.iter().any(|n| n.ends_with("(4 times)")), "{notes:?}");
    assert!(notes.iter().any(|n| n.contains("run 5") && n.contains("ends inside")), "{notes:?}");
    assert_eq!(ending(&record), Ending::Cut);
}
