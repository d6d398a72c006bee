//! A measurement: its main table, its headline, and how it ended.

use crate::view::findings;
use crate::view::numbers::{accepted_suffix, interval_in_parentheses, percentile_ns, verdict_mark};
use crate::view::results::is_of_jobs;
use crate::view::table::Table;
use crate::view::{results, studies, sweep};
use model::machine::Place;
use model::report::{AnswerWord, Ending, Headline, Measured, Report, Verdict};
use model::study::Studied;
use model::units::{show_count, show_ns, show_rate};

/// Returns the layers of each target, from the file system down to the device. Neighbouring targets
/// with the same layers have one entry.
pub(crate) fn chains(places: &[Place]) -> Vec<String> {
    let mut all: Vec<String> = places.iter().map(Place::chain).collect();
    all.dedup();
    all
}

/// Returns when and on which host a report was measured, if it was read from a JSON file. The file may come from another
/// machine. `None` for other reports, and if the file has neither.
pub(crate) fn describe_origin(report: &Report) -> Option<String> {
    report.json_file.as_ref()?;
    let host = Some(&report.machine.host).filter(|host| !host.is_empty()).map(|host| format!("host {host}"));
    let started = Some(report.started.clone()).filter(|started| !started.is_empty());
    let parts: Vec<String> = started.into_iter().chain(host).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the main table. Without `all`, a load curve has only the loads that matter most.
pub(crate) fn main_table(report: &Report, all: bool) -> Table {
    match &report.study {
        Studied::Layers(layers) => studies::layer_table(layers, &report.results),
        Studied::Limit(curve) => studies::load_table(curve, &report.results, all),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => sweep::first_round_table(report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => sweep::iops_table(report, sweep),
        Studied::Sweep(sweep) => sweep::sweep_table(sweep, report),
        Studied::Interfaces(api) => studies::interface_table(api, &report.results),
        Studied::Targets(targets) => studies::target_table(targets, &report.results),
        Studied::Hosts(scaling) => studies::host_count_table(scaling, &report.results),
        Studied::Commands(results) => results::command_table(results),
        Studied::Jobs | Studied::Profile(_) => results::result_table(&report.results),
    }
}

/// Returns the row that the headline is about; `None` unless several jobs, targets or interfaces have rows.
fn headline_row(report: &Report) -> Option<&Measured> {
    let has_rows = is_of_jobs(report) || matches!(report.study, Studied::Targets(_) | Studied::Interfaces(_));
    report.headline_result().filter(|_| has_rows && report.results.len() > 1)
}

/// Returns the result whose verdict is printed after the headline's number; `None` if no verdict is printed there.
fn result_with_shown_verdict(report: &Report) -> Option<&Measured> {
    // The verdict at the top may come from another workload of the sweep.
    let has_other_works = report.study.sweep().is_some_and(|sweep| sweep.works.len() > 1);
    let result = headline_row(report).or_else(|| report.headline_result().filter(|_| has_other_works));
    result.filter(|_| report.headline.value.is_some())
}

/// Whether to omit the verdict before the headline: after the answer INVALID, the verdict SUSPECT would look like a
/// contradiction. True only if the headline's own verdict, after its number, is SUSPECT too.
pub(crate) fn omits_verdict(report: &Report) -> bool {
    let is_invalid = report.answer.as_ref().is_some_and(|answer| answer.word == AnswerWord::Invalid);
    let is_suspect = |result: &Measured| !result.void && result.verdict == Verdict::Suspect;
    is_invalid
        && report.verdict == Verdict::Suspect
        && result_with_shown_verdict(report).is_some_and(is_suspect)
}

/// Returns the headline with its number. With several jobs or targets, the interval is in the table. The line then has
/// the name of the headline's row, and the verdict on that row if the headline has a number.
pub(crate) fn describe_headline(report: &Report, paint: impl Fn(&str) -> String) -> String {
    let name = &report.headline.name;
    let Some(row) = headline_row(report) else {
        let number = paint(&headline_number(&report.headline, report));
        return format!(
            "{name}: {number}{}",
            match result_with_shown_verdict(report) {
                Some(row) => format!(" ({})", verdict_mark(row)),
                None => accepted_suffix(&report.headline.accepted),
            }
        );
    };
    let name = if row.renamed {
        // The row's name ends with the work, and the headline's name begins with it: print the work once.
        let work = row.name.rsplit(", ").next().unwrap_or_default();
        let rest = name.strip_prefix(work).and_then(|rest| rest.strip_prefix(", "));
        format!("{}, in fact {}", row.name, rest.unwrap_or(name))
    } else {
        row.name.clone()
    };
    let number = paint(&findings::headline_value(&report.headline));
    match report.headline.value {
        Some(_) => format!("{name}: {number} ({})", verdict_mark(row)),
        None => format!("{name}: {number}{}", accepted_suffix(&row.accepted)),
    }
}

/// Beginning of the title of a recipe.
const RECIPE: &str = "recipe ";

/// Describes the commits of a recipe in which every write waits for its own sync, as the log of a database does: rate, p99 of the syncs,
/// and how to set a limit. `None` for other reports and for a result without a number. Also `None`:
/// - if a finding relabels the result, because its writes may not be commits
/// - with several hosts, because the rate is of all hosts, but the number of connections is of one host
/// - with a limit, because the answer of the gate has the figures
pub(crate) fn describe_commits(report: &Report) -> Option<String> {
    let [result] = report.results.as_slice() else { return None };
    let stream = result.job.streams().next()?;
    let is_each = stream.flush.as_ref().is_some_and(|f| f.drain && f.every == f.calls);
    if !report.title.starts_with(RECIPE)
        || !report.gates.is_empty()
        || !is_each
        || result.void
        || result.renamed
        || report.fleet.is_some()
    {
        return None;
    }
    let (write, sync) = (result.write.as_ref()?, result.sync.as_ref()?);
    let connections = match stream.workers {
        1 => "one connection".to_owned(),
        workers => format!("{workers} connections"),
    };
    let interval = interval_in_parentheses(write.iops_interval);
    let p99 = percentile_ns(&sync.latency_ns.percentiles, "99");
    let p99 = p99.map_or_else(String::new, |ns| format!("; sync p99 {}", show_ns(ns as f64)));
    Some(format!(
        "{} commits/s for {connections}{interval}{p99}. No limit is set: --fail-if 'sync.p99>5ms' sets one.",
        show_rate(write.iops)
    ))
}

/// Returns how the session ended; `None` if it ended as planned.
pub(crate) fn describe_ending(report: &Report) -> Option<String> {
    match &report.ending {
        Ending::Complete => None,
        Ending::Interrupted => Some("Interrupted: these are the results up to that point.".into()),
        // The reason of the verdict explains why.
        Ending::NotMeasured(_) => Some("Nothing was measured.".into()),
        Ending::Failed(why) => Some(format!("Ended by an error: {why}.")),
        Ending::Cut => Some(
            "The session file has no end, for example because fathom was killed: these are the \
             results up to that point."
                .into(),
        ),
    }
}

/// Returns the headline's number with its interval, or with the reason why there is no interval. A load curve has the load that missed the
/// target in the place of the interval, and rounds have the window.
pub(crate) fn headline_number(headline: &Headline, report: &Report) -> String {
    let Some(value) = headline.value else { return "no number".into() };
    let winner_runs = report.study.sweep().and_then(|s| s.winner.get(&s.works.first()?.name)).map(|c| c.runs);
    let runs = winner_runs.or_else(|| report.results.iter().map(|r| r.runs.len()).max()).unwrap_or(0);
    let number = format!("{} {}", show_rate(value), headline.unit);
    if let Studied::Limit(curve) = &report.study {
        return match curve.latency_target.as_ref().map(|p| p.missed_iops) {
            Some(Some(missed)) => format!("{number}; {} IOPS miss the target", show_count(missed as f64)),
            Some(None) => format!("{number}, and no offered load is proven to miss the target"),
            None => number,
        };
    }
    if let Some([first, last]) = report.study.sweep().and_then(|s| s.rounds.as_ref()?.window) {
        return format!("{number} (mean of rounds {first} to {last})");
    }
    match headline.interval {
        Some([low, high]) => {
            format!("{number} (95 % interval {} to {} over {runs} runs)", show_rate(low), show_rate(high))
        }
        None if runs == 1 => format!("{number} (one run: no interval)"),
        None => format!("{number} ({runs} runs: no interval)"),
    }
}

/// The report of a recipe with fdatasync after each write, made of a golden report of reads.
#[cfg(test)]
fn recipe_report() -> Result<Report, serde_json::Error> {
    use model::job::{Flush, SyncCall};
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    report.title = "recipe postgres-wal".into();
    report.gates.clear();
    report.results.truncate(1);
    for result in &mut report.results {
        (result.void, result.renamed) = (false, false);
        let figures = result.read.clone().or_else(|| result.write.clone());
        (result.write, result.sync) = (figures.clone(), figures);
        if let Some(write) = &mut result.write {
            (write.iops, write.iops_interval) = (360.0, Some([320.0, 405.0]));
        }
        if let Some(sync) = &mut result.sync {
            sync.latency_ns.percentiles.insert("99".into(), Some(8_100_000));
        }
        for stream in result.job.streams_mut() {
            stream.workers = 1;
            stream.flush = Some(Flush { call: SyncCall::Fdatasync, every: 1, calls: 1, drain: true });
        }
    }
    Ok(report)
}

#[test]
fn a_recipe_whose_writes_wait_for_syncs_is_described_in_commits() -> Result<(), serde_json::Error> {
    let changed = |change: fn(&mut Report)| {
        let mut report = recipe_report()?;
        change(&mut report);
        Ok(describe_commits(&report).unwrap_or_default())
    };
    let whole = "360 commits/s for one connection (95 % interval 320 to 405); sync p99 8.10 ms. No limit is set: \
                 --fail-if 'sync.p99>5ms' sets one.";
    assert_eq!(changed(|_| ())?, whole);
    let without_p99 = changed(|r| {
        r.results[0].sync.iter_mut().for_each(|s| s.latency_ns.percentiles.clear());
        r.results[0].job.streams_mut().for_each(|s| s.workers = 4);
    })?;
    assert!(
        without_p99.starts_with("360 commits/s for 4 connections (95 % interval 320 to 405). No"),
        "{without_p99}"
    );
    // No commits: another title, a relabelled or invalid result, a sync after several writes, several hosts.
    let none: [fn(&mut Report); 6] = [
        |r| r.title = "run".into(),
        |r| r.results[0].renamed = true,
        |r| r.results[0].void = true,
        |r| r.results[0].sync = None,
        |r| r.results[0].job.streams_mut().for_each(|s| s.flush.iter_mut().for_each(|f| f.every = 8)),
        |r| {
            r.fleet = Some(model::fleet::FleetFigures {
                hosts: Vec::new(),
                fairness: Vec::new(),
                start: None,
                differences: Vec::new(),
                lost: None,
            });
        },
    ];
    for change in none {
        assert_eq!(changed(change)?, "");
    }
    // Every format for readers has the sentence.
    let report = recipe_report()?;
    for name in ["text", "markdown", "html"] {
        let format =
            crate::find_format::<Report>(name).map(|format| format.bytes(&report, crate::Style::default()));
        let shown = format.and_then(Result::ok).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(shown.is_some_and(|shown| shown.contains("360 commits/s for one connection")), "{name}");
    }
    Ok(())
}

#[test]
fn a_report_from_a_file_has_its_host_and_date() -> Result<(), serde_json::Error> {
    use model::command::CommandResults;
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    report.machine.host = "elsewhere".into();
    let shown = |report: &Report| {
        let format =
            crate::find_format::<Report>("text").map(|format| format.bytes(report, crate::Style::default()));
        String::from_utf8_lossy(&format.and_then(Result::ok).unwrap_or_default()).into_owned()
    };
    let line = format!("When    {}, host elsewhere\n", report.started);
    // A session is on this machine, and its id has the date.
    assert!(!shown(&report).contains("elsewhere"), "{}", shown(&report));
    report.json_file = Some("report.json".into());
    assert!(shown(&report).contains(&line), "{}", shown(&report));
    // A report of `fathom time`.
    let commands = CommandResults { commands: Vec::new(), compared: Vec::new() };
    let of_commands = Report { study: Studied::Commands(Box::new(commands)), ..report.clone() };
    let line = format!("  when     {}, host elsewhere\n", report.started);
    assert!(shown(&of_commands).contains(&line), "{}", shown(&of_commands));
    report.machine.host = String::new();
    assert!(shown(&report).contains(&format!("When    {}\n", report.started)), "{}", shown(&report));
    report.started = String::new();
    assert_eq!(describe_origin(&report), None);
    Ok(())
}

#[test]
fn after_an_invalid_answer_a_suspect_headline_has_only_its_own_verdict() -> Result<(), serde_json::Error> {
    use model::finding::CheckId;
    use model::report::ReportAnswer;
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    report.answer = Some(ReportAnswer { word: AnswerWord::Invalid, sentence: "no answer".into() });
    report.verdict = Verdict::Suspect;
    let shown = |report: &Report, name: &str| {
        let format =
            crate::find_format::<Report>(name).map(|format| format.bytes(report, crate::Style::default()));
        let bytes = format.and_then(Result::ok).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let headline = "RND4K Q32T1 read: 78,912 IOPS";
    for (accepted, mark) in [(Vec::new(), "suspect"), (vec![CheckId::A04], "suspect, accepted: A04")] {
        (report.results[0].verdict, report.results[0].accepted) = (Verdict::Suspect, accepted);
        let (text, markdown) = (shown(&report, "text"), shown(&report, "markdown"));
        assert!(text.starts_with(&format!("INVALID  no answer\n  {headline} ({mark})\n")), "{text}");
        let first = format!("**INVALID** no answer\n\n{headline} ({mark})\n");
        assert!(markdown.starts_with(&first), "{markdown}");
    }
    // The verdict is about another row.
    (report.results[0].verdict, report.results[0].accepted) = (Verdict::Valid, Vec::new());
    let (text, markdown) = (shown(&report, "text"), shown(&report, "markdown"));
    assert!(text.contains(&format!("\nSUSPECT  {headline} (valid)\n")), "{text}");
    assert!(markdown.contains(&format!("\n**SUSPECT** {headline} (valid)\n")), "{markdown}");
    Ok(())
}
