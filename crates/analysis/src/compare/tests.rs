//! Tests of whole comparisons: judged records, each changed in one way. They check which results are compared, what is refused, and that
//! no report causes a panic.

use super::*;
use model::comparison::GateOutcome;
use model::finding::Checked;
use model::job::Cache;
use model::report::Ending;

/// Rates of five runs within 1 %.
const RUNS: [f64; 5] = [9_900.0, 10_100.0, 10_000.0, 9_950.0, 10_050.0];

fn judged(fixture: &Fixture) -> Report {
    judge(&fixture.record(), &Judging::default())
}

/// A report whose runs have the rates [`RUNS`] times a factor, with matching latencies.
fn with_rates(fixture: &Fixture, factor: f64) -> Report {
    let mut report = judged(fixture);
    report.results.iter_mut().for_each(|r| set_rates(r, factor));
    report
}

fn set_rates(result: &mut Measured, factor: f64) {
    for (run, iops) in result.runs.iter_mut().zip(RUNS) {
        run.iops = iops * factor;
        run.mb_per_s = run.iops * 4096.0 / 1e6;
    }
}

fn options() -> Options {
    Options { version: "0.0.0".into(), ..Options::default() }
}

fn answers(comparison: &Comparison, id: CheckId) -> Vec<&Checked> {
    comparison.checks.iter().filter(|f| f.id == id).collect()
}

fn outcome(comparison: &Comparison, id: CheckId) -> Option<(Outcome, Option<Severity>)> {
    answers(comparison, id).first().map(|f| (f.outcome, f.severity))
}

/// Returns why an honest report is not compared with its changed copy; `None` if it is.
fn why_refused(change: impl FnOnce(&mut Report)) -> Option<String> {
    let mut b = with_rates(&Fixture::honest(), 1.0);
    change(&mut b);
    let comparison = compare(&with_rates(&Fixture::honest(), 1.0), &b, &options());
    let refused = comparison.headline().and_then(|p| p.refused.clone());
    assert_eq!(
        refused.is_some(),
        comparison.answer == ComparisonAnswer::Incomparable,
        "{}",
        comparison.sentence
    );
    refused
}

fn stream(report: &mut Report) -> &mut model::job::Stream {
    &mut report.results[0].job.phases[0].streams[0]
}

fn set_block_size(report: &mut Report, bytes: u32) {
    stream(report).access = model::job::Access::plain(model::job::Pattern::Random, bytes, 100);
    stream(report).access.span_bytes = 1 << 30;
}

fn fs(report: &mut Report) -> &mut model::machine::FileSystem {
    report.machine.places[0].file_system.as_mut().unwrap()
}

#[test]
fn a_tenth_less_is_slower_with_its_interval_and_reasons() {
    let (a, b) = (with_rates(&Fixture::honest(), 1.0), with_rates(&Fixture::honest(), 0.9));
    let comparison = compare(&a, &b, &options());
    assert_eq!(comparison.answer, ComparisonAnswer::Slower, "{}", comparison.sentence);
    for part in
        ["slower", "IOPS of 4K random read, depth 32, direct", "by 10 % (9.0 to 11 %)", "over 5 and 5 runs"]
    {
        assert!(comparison.sentence.contains(part), "{part}: {}", comparison.sentence);
    }
    let names: Vec<&str> = comparison.pairs[0].metrics.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["IOPS", "read p50", "read p99", "read p99.9", "CPU per operation"]);
    assert_eq!(outcome(&comparison, CheckId::E14), Some((Outcome::Holds, None)));
    assert_eq!(outcome(&comparison, CheckId::E15), Some((Outcome::NotChecked, None)));
    assert_eq!(outcome(&comparison, CheckId::E16), Some((Outcome::Holds, None)));
    assert_eq!(outcome(&comparison, CheckId::E18), Some((Outcome::Holds, None)));
    assert_eq!(compare(&b, &a, &options()).answer, ComparisonAnswer::Faster);
    // The latencies of the forged runs are equal, so the answer is SAME.
    assert_eq!(comparison.pairs[0].metrics[1].answer, ComparisonAnswer::Same);
}

#[test]
fn different_work_is_refused_and_the_difference_named() {
    type Change = fn(&mut Report);
    let table: [(&str, Change); 18] = [
        ("block size 4K -> 8K", |r| set_block_size(r, 8192)),
        ("depth 32 -> 1", |r| stream(r).depth = 1),
        ("workers 1 -> 4", |r| stream(r).workers = 4),
        ("cache direct -> buffered", |r| stream(r).cache = Cache::Buffered),
        ("cache direct -> direct-sync", |r| stream(r).cache = Cache::DirectSync),
        ("span", |r| stream(r).access.span_bytes = 4096),
        ("first byte", |r| stream(r).access.offset_bytes = 4096),
        ("order random -> zipf 1.1", |r| stream(r).access.lines[0].order = model::job::Order::Zipf(1.1)),
        ("direction read -> 70/30", |r| {
            stream(r).access.lines[0].mix = model::job::Mix::from_percents(70, 0);
        }),
        ("pace closed loop -> open loop at 100", |r| {
            stream(r).pace = model::job::Pace::default().offering(100.0);
        }),
        ("concurrent streams none -> 4K random read", |r| {
            let other = stream(r).clone();
            r.results[0].job.phases[0].streams.push(other);
        }),
        ("targets 1 (each) -> 1 (weighted:3,1)", |r| {
            stream(r).sharing = model::job::Sharing::Weighted(vec![3, 1]);
        }),
        ("pace closed loop -> open loop at 5 IOPS, constant", |r| {
            let arrivals = model::job::Arrivals::Constant;
            stream(r).pace = model::job::Pace::Open { iops: 5.0, arrivals };
        }),
        ("syncs none -> fsync after every 8 writes", |r| {
            let call = model::job::SyncCall::Fsync;
            stream(r).flush = Some(model::job::Flush { call, every: 8, calls: 1, drain: false });
        }),
        ("access.lines[0].times - -> 3", |r| stream(r).access.lines[0].times = 3),
        ("clones - -> own", |r| stream(r).clones = Some(model::job::Clones::Own)),
        ("verify.checks - -> true", |r| {
            let content = model::payload::Content::Stamps { seed: 1 };
            stream(r).verify =
                Some(model::payload::Verify { content, checks: true, back: None, fatal: false });
        }),
        ("access.lines[0].delay_law.quantiles[0].percent - -> 50.0", |r| {
            let quantiles = [50.0, 100.0].map(|percent| model::job::Quantile { percent, ns: 1000 });
            stream(r).access.lines[0].delay_law = model::job::ThinkLaw::Quantiles(quantiles.into());
        }),
    ];
    for (part, change) in table {
        let why = why_refused(change).unwrap_or_else(|| panic!("{part} is compared"));
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(why_refused(|_| {}), None);
    let seed = |r: &mut Report| {
        let content = model::payload::Content::Stamps { seed: r.started.len() as u64 };
        stream(r).verify = Some(model::payload::Verify { content, checks: true, back: None, fatal: false });
    };
    let (mut a, mut b) = (with_rates(&Fixture::honest(), 1.0), with_rates(&Fixture::honest(), 1.0));
    b.started.push('9');
    seed(&mut a);
    seed(&mut b);
    assert_ne!(
        compare(&a, &b, &options()).answer,
        ComparisonAnswer::Incomparable,
        "another seed is the same work"
    );
}

#[test]
fn settings_of_other_streams_are_compared() {
    let with_others = |change: fn(&mut Report)| {
        let mut report = with_rates(&Fixture::honest(), 1.0);
        let job = &mut report.results[0].job;
        let concurrent = job.phases[0].streams[0].clone();
        job.phases.push(job.phases[0].clone());
        job.phases[0].streams.push(concurrent);
        change(&mut report);
        report
    };
    let plain = with_others(|_| {});
    let paced = with_others(|r| {
        r.results[0].job.phases[0].streams[1].pace = model::job::Pace::default().offering(100.0);
    });
    let comparison = compare(&plain, &paced, &options());
    assert_eq!(comparison.answer, ComparisonAnswer::Incomparable);
    assert!(comparison.sentence.contains("phases[0].streams[1].pace"), "{}", comparison.sentence);
    for (part, change) in [
        (
            "phases[0].streams[1].engine io_uring -> libaio",
            (|r: &mut Report| {
                r.results[0].job.phases[0].streams[1].engine = "libaio".into();
            }) as fn(&mut Report),
        ),
        ("phases[1].streams[0].depth 32 -> 1", |r| r.results[0].job.phases[1].streams[0].depth = 1),
    ] {
        let comparison = compare(&plain, &with_others(change), &options());
        assert_ne!(comparison.answer, ComparisonAnswer::Incomparable, "{part}: {}", comparison.sentence);
        assert!(comparison.sentence.contains(part), "{part}: {}", comparison.sentence);
    }
}

#[test]
fn differences_that_may_be_the_subject_are_named_and_not_refused() {
    type Change = fn(&mut Report);
    let table: [(&str, Change); 13] = [
        ("advice - -> random", |r| stream(r).advice = Some(model::job::Advice::Random)),
        ("kernel", |r| r.machine.kernel = "Linux 6.18.5".into()),
        ("CPU", |r| r.machine.cpu = Ok("another".into())),
        ("file system ext4 -> xfs", |r| fs(r).kind = "xfs".into()),
        ("mount options", |r| fs(r).options = "rw,noatime".into()),
        ("engine io_uring -> libaio", |r| stream(r).engine = "libaio".into()),
        ("device", |r| r.machine.places[0].layers[0].model = Some("ACME".into())),
        ("queue/scheduler", |r| {
            r.machine.places[0].layers[0].queue.insert("scheduler".into(), "none [bfq]".into());
        }),
        ("limits none -> io.max: 254:0 riops=1000", |r| {
            let text = "/sys/fs/cgroup/a/io.max: 254:0 riops=1000\n".to_owned();
            r.machine.facts.insert(model::evidence::LIMITS.into(), Ok(text));
        }),
        ("host", |r| r.hosts = vec!["other".into()]),
        ("fathom ", |r| r.fathom.version = "0.0.9".into()),
        ("preconditioned no -> yes", |r| r.preconditioned = Some(model::record::Preconditioned::default())),
        ("biased by nothing -> A01 CACHE_SERVED", |r| {
            let at = r.checks.iter().position(|c| c.id == CheckId::A01).unwrap();
            let about = vec![r.results[0].name.clone()];
            let found = Checked {
                outcome: Outcome::Finding,
                severity: Some(Severity::Biases),
                about,
                ..r.checks[at].clone()
            };
            r.checks[at] = found;
        }),
    ];
    for (part, change) in table {
        let mut b = with_rates(&Fixture::honest(), 0.9);
        change(&mut b);
        let comparison = compare(&with_rates(&Fixture::honest(), 1.0), &b, &options());
        assert_eq!(comparison.answer, ComparisonAnswer::Slower, "{part}: {}", comparison.sentence);
        assert!(
            comparison.sentence.contains(&format!("The sides differ in: {part}")),
            "{}",
            comparison.sentence
        );
        assert_eq!(outcome(&comparison, CheckId::E14), Some((Outcome::Finding, Some(Severity::Note))));
    }
}

#[test]
fn an_engine_that_replaced_a_denied_one_is_not_compared_with_another_one() {
    let fallback = |cause: &str| {
        let mut report = with_rates(&Fixture::honest(), 0.9);
        stream(&mut report).engine = "libaio".into();
        stream(&mut report).engine_fallback =
            Some(model::job::EngineFallback { wanted: "io_uring".into(), cause: cause.into() });
        report
    };
    let usual = with_rates(&Fixture::honest(), 1.0);
    for (a, b) in [(&usual, &fallback("a filter")), (&fallback("a filter"), &usual)] {
        let comparison = compare(a, b, &options());
        assert_eq!(comparison.answer, ComparisonAnswer::CannotTell, "{}", comparison.sentence);
        for part in
            ["engine", "io_uring", "libaio in place of io_uring, which was denied (a filter)", "--accept E14"]
        {
            assert!(comparison.sentence.contains(part), "{part}: {}", comparison.sentence);
        }
        assert_eq!(outcome(&comparison, CheckId::E14), Some((Outcome::Finding, Some(Severity::Invalidates))));
        let slower = model::verdict::SlowdownLimit { share: 0.05, all_numbers: false };
        let gated = compare(a, b, &Options { fail_if_slower: Some(slower), ..options() });
        assert_eq!(gated.gate.map(|gate| gate.outcome), Some(model::comparison::GateOutcome::Undecided));
        let accepted = compare(a, b, &Options { accept_differences: true, ..options() });
        assert!(
            matches!(accepted.answer, ComparisonAnswer::Slower | ComparisonAnswer::Faster),
            "{}",
            accepted.sentence
        );
    }
    // The same engine on both sides is the same work, even if the user named it on one side only.
    let mut named = fallback("");
    stream(&mut named).engine_fallback = None;
    for b in [fallback("another filter"), named.clone()] {
        let comparison = compare(&fallback("a filter"), &b, &options());
        assert_eq!(comparison.answer, ComparisonAnswer::Same, "{}", comparison.sentence);
    }
    // Different work is still refused.
    let mut deeper = fallback("a filter");
    stream(&mut deeper).depth = 64;
    assert_eq!(compare(&usual, &deeper, &options()).answer, ComparisonAnswer::Incomparable);
    // The user may compare engines by naming them.
    assert_eq!(compare(&usual, &named, &options()).answer, ComparisonAnswer::Slower);
}

#[test]
fn circumstances_unknown_on_one_side_are_not_checked() {
    let mut b = with_rates(&Fixture::honest(), 0.9);
    b.machine.cpu = Err("no file".into());
    let comparison = compare(&with_rates(&Fixture::honest(), 1.0), &b, &options());
    let answer = answers(&comparison, CheckId::E14);
    assert!(
        answer[0].outcome == Outcome::NotChecked && answer[0].sentence.contains("CPU: no file"),
        "{answer:?}"
    );
}

#[test]
fn the_page_cache_is_not_compared_with_the_device() {
    let direct = judged(&Fixture { cache: Cache::Buffered, ..Fixture::honest() });
    let cached = judged(&Fixture { cache: Cache::Buffered, delivered: 0.0, ..Fixture::honest() });
    let comparison = compare(&direct, &cached, &options());
    assert_eq!(comparison.answer, ComparisonAnswer::Incomparable);
    for part in ["what was measured", "page cache", "A01 CACHE_SERVED"] {
        assert!(comparison.sentence.contains(part), "{part}: {}", comparison.sentence);
    }
    assert_eq!(outcome(&comparison, CheckId::E14), Some((Outcome::Finding, Some(Severity::Invalidates))));
    assert_ne!(
        compare(&cached, &cached, &options()).answer,
        ComparisonAnswer::Incomparable,
        "same name, same thing"
    );

    let accepted = Options { accept_differences: true, ..options() };
    let comparison = compare(&direct, &cached, &accepted);
    assert_ne!(comparison.answer, ComparisonAnswer::Incomparable);
    assert!(comparison.sentence.contains("what was measured"), "{}", comparison.sentence);
    let finding = answers(&comparison, CheckId::E14)[0];
    assert!(finding.accepted && finding.severity == Some(Severity::Relabels), "{finding:?}");
}

#[test]
fn different_limiters_of_the_same_work_are_only_named() {
    let busy = Fixture { cpu_share: 1.0, ..Fixture::honest() };
    let renamed = judged(&busy).checks.iter().any(|f| f.id == CheckId::D06 && f.outcome == Outcome::Finding);
    assert!(renamed, "the forged record is limited by the CPU");
    let comparison = compare(&with_rates(&Fixture::honest(), 1.0), &with_rates(&busy, 0.9), &options());
    assert_eq!(comparison.answer, ComparisonAnswer::Slower, "{}", comparison.sentence);
    assert!(comparison.sentence.contains("what limited it"), "{}", comparison.sentence);
}

#[test]
fn a_void_result_has_nothing_to_compare_and_no_acceptance_helps() {
    let void = judged(&Fixture { hole_share: 1.0, ..Fixture::honest() });
    for accept_differences in [false, true] {
        let comparison =
            compare(&judged(&Fixture::honest()), &void, &Options { accept_differences, ..options() });
        assert_eq!(comparison.answer, ComparisonAnswer::Invalid);
        assert!(comparison.sentence.starts_with("B has no number") && comparison.sentence.contains("A04"));
        let fix = "; remove the cause and measure again, or type --accept A04 to compare";
        assert!(comparison.sentence.contains(fix), "{}", comparison.sentence);
    }
    // The findings of both sides are named at once.
    let errors = judged(&Fixture { errors: 1, ..Fixture::honest() });
    let both = compare(&errors, &void, &options()).sentence;
    assert!(
        both.contains(
            "; remove the cause and measure again, or type --accept A04 --accept B12 (A04 HOLES_READ, B12 "
        ),
        "{both}"
    );
    let nothing = judged(&Fixture { runs: 0, ..Fixture::honest() });
    assert_eq!(compare(&nothing, &nothing, &options()).answer, ComparisonAnswer::Invalid);
    // With a void side, or with other work, the gate neither passes nor fails.
    let gated =
        Options { fail_if_slower: Some(SlowdownLimit { share: 0.05, all_numbers: false }), ..options() };
    let gate = |b: &Report| {
        compare(&judged(&Fixture::honest()), b, &gated).gate.unwrap_or_else(|| panic!("no gate"))
    };
    let missing = gate(&void);
    assert!(
        missing.no_number
            && missing.outcome == GateOutcome::Invalid
            && missing.sentence.contains("--accept A04")
    );
    for hole_share in [0.0, 1.0] {
        let other = judged(&Fixture { hole_share, block_bytes: 8192, ..Fixture::honest() });
        assert_eq!(gate(&other).outcome, GateOutcome::Undecided, "other work");
        assert_eq!(
            compare(&judged(&Fixture::honest()), &other, &gated).answer,
            ComparisonAnswer::Incomparable
        );
    }
}

#[test]
fn a_finding_may_be_accepted_on_one_side_and_a_gate_needs_it_on_its_command_line() {
    let accepting = |fixture: &Fixture, accept: &[CheckId]| {
        judge(&fixture.record(), &Judging { accept: accept.to_vec(), ..Judging::default() })
    };
    let holes = Fixture { hole_share: 1.0, ..Fixture::honest() };
    let (honest, accepted) = (judged(&Fixture::honest()), accepting(&holes, &[CheckId::A04]));
    let slower = Some(SlowdownLimit { share: 0.05, all_numbers: false });
    let gated = Options { fail_if_slower: slower, ..options() };
    let typed = Options { accept: vec![CheckId::A04], ..gated.clone() };
    for (options, outcome) in [(&gated, GateOutcome::Invalid), (&typed, GateOutcome::Passed)] {
        for (a, b) in [(&honest, &accepted), (&accepted, &honest)] {
            let comparison = compare(a, b, options);
            assert_eq!(comparison.answer, ComparisonAnswer::Same, "{}", comparison.sentence);
            assert!(comparison.sentence.contains("accepted findings: A04"), "{}", comparison.sentence);
            assert_eq!(comparison.gate.map(|g| g.outcome), Some(outcome));
            let notes = comparison.checks.iter().filter(|f| f.id == CheckId::E14);
            let side = if a.results[0].accepted.is_empty() { "none -> A04" } else { "A04 -> none" };
            assert!(notes.clone().all(|f| f.severity == Some(Severity::Note) && f.sentence.contains(side)));
            assert_eq!(notes.count(), 1);
        }
    }
    // A slower side fails the gate, whether its finding was accepted when the report was judged or only afterwards.
    let slower = Fixture { ops: Fixture::honest().ops / 2, ..holes.clone() };
    let mut withheld = judged(&slower);
    accept_findings(&mut withheld, &[CheckId::A04]);
    for slower in [&accepting(&slower, &[CheckId::A04]), &withheld] {
        let comparison = compare(&honest, slower, &typed);
        assert_eq!(
            (comparison.answer, comparison.gate.map(|g| g.outcome)),
            (ComparisonAnswer::Slower, Some(GateOutcome::Failed))
        );
    }
    // The sessions of one side may differ in accepted findings.
    let pooled = compare_sides(&[honest.clone(), accepted.clone()], std::slice::from_ref(&honest), &typed);
    assert_eq!(pooled.answer, ComparisonAnswer::Same, "{}", pooled.sentence);
    // If both sides depend on the accepted finding, they are compared, but a gate decides only with --accept.
    let same = compare(&accepted, &accepted, &gated);
    assert_eq!(same.answer, ComparisonAnswer::Same, "{}", same.sentence);
    let gate = same.gate.unwrap_or_else(|| panic!("no gate"));
    assert!(gate.outcome == GateOutcome::Invalid && gate.sentence.contains("type --accept A04"), "{gate:?}");
    assert_eq!(compare(&accepted, &accepted, &typed).gate.map(|g| g.outcome), Some(GateOutcome::Passed));
    // Different work is still refused.
    let larger = accepting(&Fixture { block_bytes: 8192, ..holes.clone() }, &[CheckId::A04]);
    assert_eq!(compare(&honest, &larger, &typed).answer, ComparisonAnswer::Incomparable);
    // Findings of a judged report can be accepted later. Accepting one of two is not enough.
    let two = Fixture { errors: 1, ..holes.clone() };
    let mut withheld = judged(&two);
    let voids = |r: &Report| r.results[0].void;
    accept_findings(&mut withheld, &[CheckId::A04]);
    assert!(voids(&withheld), "B12 is not accepted");
    accept_findings(&mut withheld, &[CheckId::B12]);
    assert!(!voids(&withheld) && withheld.results[0].accepted == [CheckId::A04, CheckId::B12]);
    assert_eq!(withheld.results[0].verdict, Verdict::Suspect);
}

#[test]
fn few_runs_cannot_tell_and_the_sentence_names_the_option() {
    let one = Fixture { runs: 1, ..Fixture::honest() };
    let comparison = compare(&with_rates(&one, 1.0), &with_rates(&one, 0.5), &options());
    assert_eq!(comparison.answer, ComparisonAnswer::CannotTell);
    assert!(comparison.sentence.contains("three runs") && comparison.sentence.contains("--runs 5"));
    assert!(comparison.sentence.contains("1 run on a side is too few"), "{}", comparison.sentence);
}

#[test]
fn several_sessions_are_one_side_and_their_distance_is_the_floor() {
    let fixture = Fixture::honest();
    let (a, b) = (
        [with_rates(&fixture, 1.0), with_rates(&fixture, 1.08)],
        [with_rates(&fixture, 1.1), with_rates(&fixture, 1.1)],
    );
    let comparison = compare_sides(&a, &b, &options());
    let metric = &comparison.pairs[0].metrics[0];
    assert_eq!((metric.a_runs.len(), metric.b_runs.len(), comparison.a.sessions.len()), (10, 10, 2));
    assert!(metric.floor.is_some_and(|f| (f - 0.08).abs() < 1e-9), "{metric:?}");
    assert_eq!(comparison.answer, ComparisonAnswer::NoDifferenceSeen);
    for part in ["No difference above 8.0 % is proven: B is at most ", "would halve this range"] {
        assert!(comparison.sentence.contains(part), "{part}: {}", comparison.sentence);
    }
    assert_eq!(outcome(&comparison, CheckId::E15), Some((Outcome::Finding, Some(Severity::Biases))));

    let apart = compare_sides(&a, &[with_rates(&fixture, 2.0)], &options());
    assert_eq!(
        (apart.answer, outcome(&apart, CheckId::E15)),
        (ComparisonAnswer::Faster, Some((Outcome::Holds, None)))
    );

    let mut other = with_rates(&fixture, 1.0);
    other.machine.kernel = "Linux 6.18.5".into();
    let mixed = compare_sides(&[with_rates(&fixture, 1.0), other], &b, &options());
    assert_eq!(mixed.answer, ComparisonAnswer::Incomparable);
    assert!(
        mixed.sentence.contains("sessions of A") && mixed.sentence.contains("kernel"),
        "{}",
        mixed.sentence
    );
}

#[test]
fn results_are_paired_by_name_and_the_others_listed() {
    let several = Fixture { jobs: 2, ..Fixture::honest() };
    let named = |names: [&str; 2]| {
        let mut report = with_rates(&several, 1.0);
        report.results.iter_mut().zip(names).for_each(|(r, name)| r.name = name.into());
        report.results[1].true_name = "another".into();
        report
    };
    let comparison = compare(&named(["one", "two"]), &named(["three", "one"]), &options());
    assert_eq!(comparison.pairs.len(), 1);
    assert_eq!(
        (comparison.only_in_a, comparison.only_in_b),
        (vec!["two".to_owned()], vec!["three".to_owned()])
    );
    let apart = compare(&named(["one", "two"]), &named(["three", "four"]), &options());
    assert_eq!(apart.answer, ComparisonAnswer::Incomparable);
    assert!(
        apart.sentence.contains("one, two") && apart.sentence.contains("three, four"),
        "{}",
        apart.sentence
    );
    // Two single results match whatever their names.
    let mut renamed = with_rates(&Fixture::honest(), 0.9);
    renamed.results[0].name = "mine".into();
    assert_eq!(
        compare(&with_rates(&Fixture::honest(), 1.0), &renamed, &options()).answer,
        ComparisonAnswer::Slower
    );
}

#[test]
fn many_numbers_are_corrected_for_and_the_headline_is_judged_alone() {
    let many = Fixture { jobs: 8, ..Fixture::honest() };
    let mut a = with_rates(&many, 1.0);
    for (i, result) in a.results.iter_mut().enumerate() {
        result.name = format!("job {i}");
        result.true_name = format!("true {i}");
    }
    a.headline.name = "true 0".into();
    let mut b = a.clone();
    // Runs that vary by 3 % and are 6 % slower than A's.
    let varied = [0.94, 0.97, 0.91, 0.94, 0.95];
    for result in &mut b.results {
        result.runs.iter_mut().zip(varied).for_each(|(r, factor)| r.iops = 10_000.0 * factor);
    }
    let comparison = compare(&a, &b, &Options { margin: Some(0.01), ..options() });
    let answers: Vec<ComparisonAnswer> = comparison.pairs.iter().map(|p| p.metrics[0].answer).collect();
    assert_eq!(answers[0], ComparisonAnswer::Slower, "{:#?}", comparison.pairs[0].metrics[0]);
    assert!(answers[1..].iter().all(|w| *w == ComparisonAnswer::NoDifferenceSeen), "{answers:?}");
    assert!(comparison.pairs[1].metrics[0].why.contains("Holm"), "{}", comparison.pairs[1].metrics[0].why);
    assert_eq!(outcome(&comparison, CheckId::E16), Some((Outcome::Finding, Some(Severity::Biases))));
}

#[test]
fn a_sum_of_percentiles_is_invalid_and_not_compared() {
    let (a, mut b) = (with_rates(&Fixture::honest(), 1.0), with_rates(&Fixture::honest(), 1.0));
    let percentiles = &mut b.results[0].read.as_mut().unwrap().latency_ns.percentiles;
    let p99 = percentiles.get_mut("99").unwrap();
    *p99 = p99.map(|ns| 8 * ns);
    let comparison = compare(&a, &b, &options());
    assert_eq!(outcome(&comparison, CheckId::E18), Some((Outcome::Finding, Some(Severity::Invalidates))));
    let names: Vec<&str> = comparison.pairs[0].metrics.iter().map(|m| m.name.as_str()).collect();
    assert!(!names.contains(&"read p99") && names.contains(&"read p50"), "{names:?}");
    let old = |mut report: Report| {
        report.results[0].runs.iter_mut().for_each(|r| r.percentiles_ns.clear());
        report
    };
    let comparison = compare(&old(a.clone()), &old(a), &options());
    assert_eq!(outcome(&comparison, CheckId::E18), Some((Outcome::NotChecked, None)));
}

#[test]
fn a_number_that_some_runs_lack_is_left_out_with_a_note() {
    let (a, mut b) = (with_rates(&Fixture::honest(), 1.0), with_rates(&Fixture::honest(), 1.0));
    b.results[0].runs[2].percentiles_ns.get_mut("read").unwrap().insert("99.9".into(), None);
    let comparison = compare(&a, &b, &options());
    assert_eq!(comparison.pairs[0].left_out, ["read p99.9: 1 of 10 runs lack this value"]);
    b.results[0].runs[2].iops = 0.0;
    let comparison = compare(&a, &b, &options());
    assert!(comparison.pairs[0].metrics.iter().all(|m| m.name != "IOPS"), "zero has no logarithm");
}

#[test]
fn sequential_work_compares_bytes_and_an_open_loop_its_tail() {
    let first = |fixture: &Fixture| {
        compare(&judged(fixture), &judged(fixture), &options()).pairs[0].metrics[0].name.clone()
    };
    assert_eq!(first(&Fixture::honest_sequential()), "MB/s");
    assert_eq!(first(&Fixture::honest_open()), "read p99");
}

#[test]
fn equal_rates_decide_nothing_if_the_job_sets_the_rate() {
    let limited = |limit: model::job::Pace, lacking: &[&str]| {
        let mut report = with_rates(&Fixture::honest(), 1.0);
        stream(&mut report).pace = limit;
        for run in &mut report.results[0].runs {
            for values in run.percentiles_ns.values_mut() {
                values.retain(|rank, _| !lacking.contains(&rank.as_str()));
            }
        }
        report
    };
    let rate = with_rates(&Fixture::honest(), 1.0).results[0].runs[0].iops;
    let pace = |iops: f64| model::job::Pace::Limited { iops, bytes_per_s: 0.0 };
    let in_bytes = model::job::Pace::Limited { iops: 0.0, bytes_per_s: rate * 4096.0 };
    let compared = |one: Report| compare(&one, &one, &options());
    let first = |one: Report| compared(one).pairs[0].metrics[0].name.clone();
    assert_eq!(first(limited(pace(rate), &[])), "read p99");
    assert_eq!(first(limited(in_bytes, &[])), "read p99");
    assert_eq!(first(limited(pace(10.0 * rate), &[])), "IOPS", "no run reached the limit");
    assert_eq!(first(limited(pace(rate), &["99", "99.9"])), "read p50");
    let open = model::job::Pace::Open { iops: rate, arrivals: model::job::Arrivals::Poisson };
    for fixed in [pace(rate), open] {
        let comparison = compared(limited(fixed, &["50", "99", "99.9"]));
        assert_eq!(comparison.answer, ComparisonAnswer::Incomparable, "{}", comparison.sentence);
    }
}

#[test]
fn the_gate_fails_only_if_the_whole_interval_is_slower() {
    let gate = |factor: f64| {
        let limit = Some(SlowdownLimit { share: 0.05, all_numbers: false });
        let options = Options { fail_if_slower: limit, ..options() };
        compare(&with_rates(&Fixture::honest(), 1.0), &with_rates(&Fixture::honest(), factor), &options)
            .gate
            .unwrap()
    };
    assert_eq!(
        [0.9, 0.95, 1.0].map(|f| gate(f).outcome),
        [GateOutcome::Failed, GateOutcome::Undecided, GateOutcome::Passed]
    );
    assert!(gate(0.95).sentence.contains("is slower by at most "), "{}", gate(0.95).sentence);
}

#[test]
fn no_report_causes_a_panic() {
    type Damage = fn(&mut Report);
    let honest = with_rates(&Fixture::honest(), 1.0);
    let damages: [Damage; 9] = [
        |r| r.results.clear(),
        |r| r.results[0].runs.clear(),
        |r| r.results[0].runs.iter_mut().for_each(|run| run.iops = f64::NAN),
        |r| r.results[0].runs.iter_mut().for_each(|run| run.iops = f64::MAX),
        |r| r.results[0].runs.iter_mut().for_each(|run| run.iops = -1.0),
        |r| r.results[0].job.phases.clear(),
        |r| r.results[0].phase = u32::MAX,
        |r| r.machine.places.clear(),
        |r| r.headline.name.clear(),
    ];
    for damage in damages {
        let mut broken = honest.clone();
        damage(&mut broken);
        for (a, b) in [(&honest, &broken), (&broken, &honest), (&broken, &broken)] {
            let comparison = compare(a, b, &options());
            assert!(!comparison.sentence.is_empty());
            let metrics = comparison.pairs.iter().flat_map(|p| &p.metrics);
            for m in metrics {
                assert!([m.a, m.b, m.ratio, m.ratio_by_ranks].iter().all(|v| v.is_finite()), "{m:?}");
            }
        }
    }
    assert_eq!(compare_sides(&[], &[], &options()).answer, ComparisonAnswer::Incomparable);
}

#[test]
fn each_of_several_sides_is_compared_with_the_first_and_called_by_its_name() {
    let side = |factor| vec![with_rates(&Fixture::honest(), factor)];
    let limit = SlowdownLimit { share: 0.05, all_numbers: false };
    let asked = Options { fail_if_slower: Some(limit), ..options() };
    let all = compare_each(&side(1.0), &[side(1.3), side(1.0), side(0.7)], &asked);
    let answers: Vec<(&str, ComparisonAnswer)> =
        all.others.iter().map(|o| (o.name.as_str(), o.comparison.answer)).collect();
    assert_eq!(
        answers,
        [("B", ComparisonAnswer::Faster), ("C", ComparisonAnswer::Same), ("D", ComparisonAnswer::Slower)]
    );
    assert!(all.others[2].comparison.sentence.starts_with("D is slower than A"), "{all:?}");
    let gate = all.gate.unwrap();
    assert_eq!(gate.outcome, GateOutcome::Failed);
    for part in ["B: Not slower", "C: Not slower", "D: Slower"] {
        assert!(gate.sentence.contains(part), "{part}: {}", gate.sentence);
    }
    let one = compare_each(&side(1.0), &[side(1.3)], &asked).others.remove(0).comparison;
    assert_eq!(one, compare_sides(&side(1.0), &side(1.3), &asked), "one side is a plain comparison");
    assert!(compare_each::<Vec<Report>>(&[], &[Vec::new()], &options()).others.len() == 1);
}

#[test]
fn headlines_of_many_sides_share_one_correction() {
    let side = |factor| vec![with_rates(&Fixture::honest(), factor)];
    let chance = |sides: usize| {
        let others: Vec<_> = std::iter::repeat_with(|| side(1.07)).take(sides).collect();
        let all = compare_each(&side(1.0), &others, &options());
        all.others[0].comparison.pairs[0].metrics[0].p.unwrap()
    };
    let (alone, of_four) = (chance(1), chance(4));
    assert!((of_four / alone - 4.0).abs() < 1e-6 || of_four >= 1.0, "{alone} and {of_four}");
}

#[cfg(test)]
mod simulation {
    //! Seeded simulations with a known truth: how often an answer is wrong, and how often a difference is found.
    //!
    //! Runs are drawn on a logarithmic axis and weighed like runs that were measured in turns.
    //! `cargo test --release -p fathom-io-analysis error_rates -- --ignored --nocapture` prints the tables of `docs/reference/compare.md`.

    use crate::compare::weighing::{Measure, WeighedNumber, decide_gate, in_turns, pair, rates, weigh};
    use crate::compare::{Options, RunOrder};
    use crate::strategy::{Next, StrategyPlan, Summary, next};
    use model::comparison::{ComparisonAnswer, GateOutcome, Metric, SlowdownGate};
    use model::payload::split_mix;
    use model::plan::Strategy;
    use model::study::TargetLayout;
    use model::verdict::SlowdownLimit;
    use statrs::distribution::{ContinuousCDF, Normal};
    use stats::comparison;
    use stats::series::Noise;

    /// Deviation from run to run, as in the tables of `docs/reference/compare.md`.
    const DEVIATION: f64 = 0.03;

    /// Draws normally distributed values; equal seeds give equal values.
    struct Draw(u64);

    impl Draw {
        fn normal(&mut self) -> f64 {
            self.0 = split_mix(self.0);
            let uniform = (self.0 >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON / 4.0;
            Normal::new(0.0, 1.0).unwrap().inverse_cdf(uniform)
        }

        /// Draws `n` runs of a rate that vary by `deviation` on a logarithmic axis.
        fn runs(&mut self, n: usize, factor: f64, deviation: f64) -> Vec<f64> {
            (0..n).map(|_| 10_000.0 * factor * (deviation * self.normal()).exp()).collect()
        }

        fn pair(&mut self, n: usize, factor: f64) -> Measure {
            rates(&self.runs(n, 1.0, DEVIATION), &self.runs(n, factor, DEVIATION))
        }
    }

    /// Gives the only number of a comparison its answer.
    fn answer_alone(weighed: WeighedNumber) -> Metric {
        let chance = weighed.p_beyond_margin();
        weighed.into_metric(chance, 1)
    }

    /// Shares of comparisons that end with each answer (faster, slower, same, no difference seen, cannot tell), and whose interval contains
    /// the truth.
    fn shares(trials: usize, n: usize, factor: f64) -> ([f64; 5], f64) {
        let mut draw = Draw(7 + n as u64);
        let (mut counts, mut held) = ([0; 5], 0);
        for _ in 0..trials {
            let metric = answer_alone(weigh(draw.pair(n, factor), &in_turns()));
            let word = match metric.answer {
                ComparisonAnswer::Faster => 0,
                ComparisonAnswer::Slower => 1,
                ComparisonAnswer::Same => 2,
                ComparisonAnswer::NoDifferenceSeen => 3,
                _ => 4,
            };
            counts[word] += 1;
            held += usize::from(metric.interval.is_some_and(|[low, high]| low <= factor && factor <= high));
        }
        (counts.map(|n| f64::from(n) / trials as f64), held as f64 / trials as f64)
    }

    #[test]
    fn the_same_system_twice_is_rarely_called_different_and_intervals_hold_the_truth() {
        for n in [3, 5, 10] {
            let ([faster, slower, ..], held) = shares(1000, n, 1.0);
            assert!(faster + slower <= 0.03, "{n} runs: {} called different", faster + slower);
            assert!((0.93..=0.97).contains(&held), "{n} runs: the interval holds the truth in {held}");
        }
    }

    #[test]
    fn a_tenth_is_found_with_five_runs_and_never_with_three() {
        let ([found, wrong, same, ..], _) = shares(1000, 5, 1.1);
        assert!(found > 0.90 && wrong == 0.0 && same == 0.0, "{found} {wrong} {same}");
        let ([found, ..], _) = shares(300, 3, 1.1);
        assert!(found == 0.0, "{found}");
        let ([with_five, ..], _) = shares(1000, 5, 1.05);
        let ([with_ten, ..], _) = shares(1000, 10, 1.05);
        assert!(with_five > 0.25 && with_ten > 0.65, "{with_five} {with_ten}");
    }

    /// Returns how often a difference of the mean detectable size is found.
    fn power_at_detectable_size(trials: usize, n: usize) -> f64 {
        let mut draw = Draw(99);
        let visible: f64 = (0..300)
            .filter_map(|_| answer_alone(weigh(draw.pair(n, 1.0), &in_turns())).could_have_seen)
            .map(f64::ln_1p)
            .sum::<f64>()
            / 300.0;
        shares(trials, n, visible.exp()).0[0]
    }

    #[test]
    fn the_detectable_difference_is_found_four_times_of_five() {
        for n in [5, 10] {
            let found = power_at_detectable_size(1000, n);
            assert!((0.70..=0.90).contains(&found), "{n} runs: {found}");
        }
    }

    #[test]
    fn the_estimated_runs_settle_it() {
        // Five runs miss a difference of 5 % more often than not.
        let mut draw = Draw(5);
        let mut needed: Vec<u32> = (0..500)
            .filter_map(|_| answer_alone(weigh(draw.pair(5, 1.05), &in_turns())).runs_needed)
            .collect();
        needed.sort_unstable();
        let median = needed[needed.len() / 2] as usize;
        assert!((6..=40).contains(&median), "{median}");
        let ([found, ..], _) = shares(500, 12, 1.05);
        assert!(found > 0.75, "12 runs by the formula: {found}");
    }

    #[test]
    fn a_difference_of_twice_the_tolerance_is_never_the_same() {
        for n in [3, 5, 20] {
            let ([_, _, same, ..], _) = shares(500, n, 1.1);
            assert!(same < 0.01, "{n} runs: {same}");
        }
        // At the tolerance itself, one in forty may be SAME.
        let ([_, _, same, ..], _) = shares(1000, 10, 1.05);
        assert!(same < 0.04, "{same}");
    }

    /// Decides the gate on B, which may be 5 % slower.
    fn decide_on_b(a: &[f64], b: &[f64], runs: RunOrder) -> SlowdownGate {
        let metric = answer_alone(weigh(rates(a, b), &in_turns()));
        let options = Options { run_order: runs, ..Options::default() };
        decide_gate(
            &[pair(true, vec![metric])],
            SlowdownLimit { share: 0.05, all_numbers: false },
            &options,
            None,
        )
    }

    /// Shares of PASS and FAIL, and the runs on each side, if B is `factor` times as fast as A. The gate is asked a second time if `runs`
    /// allows it.
    fn simulate_gates(trials: usize, n: usize, factor: f64, runs: RunOrder) -> [f64; 3] {
        let mut draw = Draw(61 + n as u64);
        let mut all = [0.0; 3];
        for _ in 0..trials {
            let (mut a, mut b) = (draw.runs(n, 1.0, DEVIATION), draw.runs(n, factor, DEVIATION));
            let mut gate = decide_on_b(&a, &b, runs);
            if runs == RunOrder::Settling && gate.outcome == GateOutcome::Undecided {
                let more = gate.runs_needed.map_or(9 * n, |needed| (needed as usize).min(10 * n) - n);
                a.extend(draw.runs(more, 1.0, DEVIATION));
                b.extend(draw.runs(more, factor, DEVIATION));
                gate = decide_on_b(&a, &b, runs);
            }
            all[0] += f64::from(u8::from(gate.outcome == GateOutcome::Passed));
            all[1] += f64::from(u8::from(gate.outcome == GateOutcome::Failed));
            all[2] += a.len() as f64;
        }
        all.map(|sum| sum / trials as f64)
    }

    #[test]
    fn a_settling_gate_errs_no_more_often_than_a_single_one() {
        for runs in [RunOrder::InTurns, RunOrder::Settling] {
            let [pass, fail, _] = simulate_gates(400, 5, 0.95, runs);
            assert!(pass <= 0.07 && fail <= 0.07, "at the limit, {runs:?}: {pass} {fail}");
            let [_, fail, _] = simulate_gates(200, 5, 1.0, runs);
            assert!(fail <= 0.01, "no slower, {runs:?}: {fail}");
            let [pass, ..] = simulate_gates(200, 5, 0.90, runs);
            assert!(pass <= 0.01, "twice as much slower as it may be, {runs:?}: {pass}");
        }
    }

    #[test]
    fn a_settling_gate_usually_decides() {
        for (factor, word) in [(1.0, 0), (0.90, 1)] {
            let (once, settled) = (
                simulate_gates(100, 5, factor, RunOrder::InTurns),
                simulate_gates(100, 5, factor, RunOrder::Settling),
            );
            assert!(settled[word] > 0.85 && settled[word] > once[word], "{factor}: {once:?} {settled:?}");
            assert!(settled[2] < 20.0, "{settled:?}");
        }
    }

    /// Whether any of `numbers` numbers of one system is called different from itself after Holm's correction.
    fn is_any_called_different(numbers: usize, n: usize, draw: &mut Draw) -> bool {
        let weighed: Vec<WeighedNumber> =
            (0..numbers).map(|_| weigh(draw.pair(n, 1.0), &in_turns())).collect();
        let chances = comparison::adjust_with_holm(
            &weighed.iter().map(WeighedNumber::p_beyond_margin).collect::<Vec<_>>(),
        );
        let metrics = weighed.into_iter().zip(chances).map(|(w, chance)| w.into_metric(chance, numbers));
        let different = |m: Metric| matches!(m.answer, ComparisonAnswer::Faster | ComparisonAnswer::Slower);
        metrics.map(different).fold(false, |any, this| any | this)
    }

    #[test]
    fn among_forty_numbers_any_false_word_is_rare() {
        let mut draw = Draw(41);
        let wrong = (0..100).filter(|_| is_any_called_different(40, 5, &mut draw)).count();
        assert!(wrong <= 5, "{wrong} of 100 comparisons had a false word");
    }

    /// Shares of the comparisons of a percentile that answer FASTER or SLOWER, that answer SLOWER, and whose interval contains the
    /// truth. The percentile has heavy tails over runs: a tenth of the runs have three times the deviation.
    fn percentiles(trials: usize, n: usize, factor: f64) -> ([f64; 2], f64) {
        let mut draw = Draw(17 + n as u64);
        let mut heavy = |factor: f64| -> Vec<f64> {
            let odd = |draw: &mut Draw| if draw.normal() > 1.2816 { 3.0 } else { 1.0 };
            (0..n)
                .map(|_| {
                    let wide = odd(&mut draw);
                    draw.runs(1, factor, wide * DEVIATION)[0]
                })
                .collect()
        };
        let (mut different, mut right, mut held) = (0, 0, 0);
        for _ in 0..trials {
            let (a, b) = (heavy(1.0), heavy(factor));
            let measure = Measure { is_percentile: true, more_is_better: false, ..rates(&a, &b) };
            let metric = answer_alone(weigh(measure, &in_turns()));
            different +=
                usize::from(matches!(metric.answer, ComparisonAnswer::Faster | ComparisonAnswer::Slower));
            right += usize::from(metric.answer == ComparisonAnswer::Slower);
            held += usize::from(metric.interval.is_some_and(|[low, high]| low <= factor && factor <= high));
        }
        ([different, right].map(|c| c as f64 / trials as f64), held as f64 / trials as f64)
    }

    #[test]
    fn percentiles_with_heavy_tails_are_rarely_called_different() {
        for n in [5, 7] {
            let ([different, _], held) = percentiles(400, n, 1.0);
            assert!(different <= 0.03, "{n} runs: {different}");
            assert!(held >= 0.92, "{n} runs: the interval holds the truth in {held}");
        }
        let ([_, right], _) = percentiles(200, 7, 1.3);
        assert!(right > 0.9, "{right}");
    }

    /// How the rates of a simulated machine vary over time, for all targets alike.
    #[derive(Clone, Copy, Debug)]
    enum Weather {
        /// No common variation: each run varies independently.
        Quiet,
        /// The machine gets slower by a fifth from the first run to the last.
        Drift,
        /// For a tenth of the time, some runs in a row take a third longer.
        Bursts,
        /// Half of the runs, by chance, are a seventh slower.
        TwoLevels,
    }

    /// Deviation of a run of each test.
    const DEVIATIONS: [f64; 4] = [0.03, 0.005, 0.03, 0.1];
    /// Time of a run.
    const RUN_NS: u64 = 420_000_000;
    /// Time of the whole comparison.
    const ENDS_NS: u64 = 60_000_000_000;

    /// Rates of four tests on two targets, measured until the time is up; the second target is faster by the factor.
    fn measure_in_time(seed: u64, factor: f64, weather: Weather) -> Vec<Summary> {
        let layout = TargetLayout { tests: DEVIATIONS.len() as u32, targets: 2 };
        let plan = StrategyPlan {
            jobs: 2 * DEVIATIONS.len(),
            runs: 5,
            strategy: Strategy::Targets(layout),
            seed,
            paired: true,
            max_attempts: 1,
            ends_ns: Some(ENDS_NS),
            ..StrategyPlan::default()
        };
        let mut noise = Noise(split_mix(seed));
        let mut done: Vec<Summary> = Vec::new();
        let (mut now_ns, mut burst) = (2_000_000_000, 0);
        while let Next::Measure { job, repeat, .. } = next(&done, &plan) {
            now_ns += RUN_NS;
            if burst == 0 && noise.uniform() < 0.02 {
                burst = 5;
            }
            let slowdown: f64 = match weather {
                Weather::Drift => 0.2 * now_ns as f64 / ENDS_NS as f64,
                Weather::Bursts if burst > 0 => 0.3,
                Weather::TwoLevels if noise.uniform() < 0.5 => 0.15,
                Weather::Quiet | Weather::Bursts | Weather::TwoLevels => 0.0,
            };
            burst = if burst > 0 { burst - 1 } else { 0 };
            let factor = if job % 2 == 1 { factor } else { 1.0 };
            let iops = 1e4 * factor * (DEVIATIONS[job / 2] * noise.normal() - slowdown).exp();
            done.push(Summary { iops, refused: false, ended_ns: now_ns, ..Summary::refused(job, repeat) });
        }
        done
    }

    /// Results of comparisons with a time limit, as shares of the comparisons or of their tests.
    #[derive(Debug, Default)]
    struct InTime {
        /// Share of comparisons with any FASTER or SLOWER.
        any_word: f64,
        /// Share of tests with FASTER.
        faster: f64,
        /// Share of tests with SAME.
        same: f64,
        /// Share of tests whose interval contains the truth.
        held: f64,
        /// Runs of a test on each target.
        runs: f64,
        /// Mean of the bound of the tests that vary by 3 %, as a share.
        bound: f64,
    }

    /// Simulates `trials` comparisons of four tests. The first test is the headline.
    fn in_time(trials: u64, factor: f64, weather: Weather) -> InTime {
        let mut all = InTime::default();
        let tests = DEVIATIONS.len();
        for seed in 0..trials {
            let done = measure_in_time(seed + 1, factor, weather);
            let rates_of =
                |job: usize| done.iter().filter(|s| s.job == job).map(|s| s.iops).collect::<Vec<f64>>();
            let weighed: Vec<WeighedNumber> = (0..tests)
                .map(|test| weigh(rates(&rates_of(2 * test), &rates_of(2 * test + 1)), &in_turns()))
                .collect();
            let chances: Vec<f64> = weighed.iter().map(WeighedNumber::p_beyond_margin).collect();
            let adjusted = [vec![chances[0]], comparison::adjust_with_holm(&chances[1..])].concat();
            let metrics: Vec<Metric> = weighed
                .into_iter()
                .zip(adjusted)
                .map(|(w, chance)| w.into_metric(chance, tests - 1))
                .collect();
            let differs =
                |m: &&Metric| matches!(m.answer, ComparisonAnswer::Faster | ComparisonAnswer::Slower);
            let count =
                |is: &dyn Fn(&Metric) -> bool| metrics.iter().filter(|m| is(m)).count() as f64 / tests as f64;
            all.any_word += f64::from(u8::from(metrics.iter().any(|m| differs(&m))));
            all.faster += count(&|m| m.answer == ComparisonAnswer::Faster);
            all.same += count(&|m| m.answer == ComparisonAnswer::Same);
            all.held += count(&|m| m.interval.is_some_and(|[low, high]| low <= factor && factor <= high));
            all.runs += metrics.iter().map(|m| m.a_runs.len() as f64).sum::<f64>() / tests as f64;
            let bounds =
                [&metrics[0], &metrics[2]].map(|m| m.at_most().map_or(1.0, |ends| ends[0].max(ends[1])));
            all.bound += f64::midpoint(bounds[0], bounds[1]);
        }
        let n = trials as f64;
        let sums = [all.any_word, all.faster, all.same, all.held, all.runs, all.bound];
        let [any_word, faster, same, held, runs, bound] = sums.map(|sum| sum / n);
        InTime { any_word, faster, same, held, runs, bound }
    }

    #[test]
    fn tests_that_run_until_narrow_have_no_more_false_answers() {
        for weather in [Weather::Quiet, Weather::TwoLevels] {
            let alike = in_time(5, 1.0, weather);
            assert!(alike.any_word == 0.0 && alike.held >= 0.8, "{weather:?}: {alike:?}");
        }
        let quiet = in_time(3, 1.0, Weather::Quiet);
        assert!(quiet.same >= 0.25 && quiet.bound < 0.06, "{quiet:?}");
        let faster = in_time(3, 1.1, Weather::Quiet);
        assert!(faster.faster >= 0.75 && faster.same == 0.0, "{faster:?}");
    }

    #[test]
    #[ignore = "prints the table of bench --compare of docs/reference/compare.md; takes a minute in a release build"]
    fn error_rates_in_time() {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        println!(
            "| machine | truth | any FASTER or SLOWER | tests FASTER | tests SAME | interval holds it | bound at 3 % | runs |\n\
         |---|---|---|---|---|---|---|---|"
        );
        for weather in [Weather::Quiet, Weather::Drift, Weather::Bursts, Weather::TwoLevels] {
            for factor in [1.0, 1.03, 1.1] {
                let found = in_time(400, factor, weather);
                // 5 %, plus three standard deviations of the share that 400 comparisons show.
                let is_honest = factor > 1.0 || found.any_word <= 0.05 + 0.033;
                assert!(is_honest && found.held >= 0.92, "{weather:?} {factor}: {found:?}");
                println!(
                    "| {weather:?} | {:+.0} % | {} | {} | {} | {} | {} | {:.0} |",
                    100.0 * (factor - 1.0),
                    percent(found.any_word),
                    percent(found.faster),
                    percent(found.same),
                    percent(found.held),
                    percent(found.bound),
                    found.runs
                );
            }
        }
    }

    #[test]
    #[ignore = "prints the table of docs/reference/compare.md; takes a minute in a release build"]
    fn error_rates() {
        const TRIALS: usize = 10_000;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        println!(
            "| truth | runs | FASTER | SLOWER | SAME | NO DIFFERENCE SEEN | CANNOT TELL | interval holds it |\n|---|---|---|---|---|---|---|---|"
        );
        for factor in [1.0, 1.02, 1.05, 1.1, 1.2] {
            for n in [3, 4, 5, 7, 10, 20, 40] {
                let (answers, held) = shares(TRIALS, n, factor);
                let cells = answers.map(percent).join(" | ");
                println!("| {:+.0} % | {n} | {cells} | {} |", 100.0 * (factor - 1.0), percent(held));
            }
        }
        println!("\n| runs | a difference of the size that could have been seen is seen |\n|---|---|");
        for n in [4, 5, 7, 10] {
            println!("| {n} | {} |", percent(power_at_detectable_size(TRIALS, n)));
        }
        println!("\n| numbers looked at | runs | any false word |\n|---|---|---|");
        for (numbers, n) in [(5, 5), (40, 5), (40, 10)] {
            let mut draw = Draw(1);
            let wrong = (0..1000).filter(|_| is_any_called_different(numbers, n, &mut draw)).count();
            println!("| {numbers} | {n} | {} |", percent(wrong as f64 / 1000.0));
        }
        println!(
            "\n| percentiles, heavy tails | runs | called different | interval holds it |\n|---|---|---|---|"
        );
        for factor in [1.0, 1.1, 1.3] {
            for n in [5, 6, 7, 10] {
                let ([different, _], held) = percentiles(2000, n, factor);
                let truth = 100.0 * (factor - 1.0);
                println!("| {truth:+.0} % | {n} | {} | {} |", percent(different), percent(held));
            }
        }
    }
}

#[test]
fn a_session_that_ended_early_never_counts_as_pass() {
    let one_run = judged(&Fixture { runs: 1, ..Fixture::honest() });
    let slower = Some(SlowdownLimit { share: 0.05, all_numbers: false });
    let asked = |ending: &Ending, counts_as| {
        let b = Report { ending: ending.clone(), ..one_run.clone() };
        let options = Options { fail_if_slower: slower, inconclusive: Some(counts_as), ..options() };
        compare(&one_run, &b, &options).gate.unwrap_or_else(|| panic!("no gate"))
    };
    let complete = asked(&Ending::Complete, CountsAs::Pass);
    assert_eq!((complete.outcome, complete.counts_as), (GateOutcome::Undecided, Some(CountsAs::Pass)));
    for ending in [Ending::Interrupted, Ending::Cut, Ending::Failed("It failed.".into())] {
        let early = asked(&ending, CountsAs::Pass);
        assert_eq!((early.outcome, early.counts_as), (GateOutcome::Undecided, None), "{ending:?}");
        assert!(early.sentence.ends_with(" B ended early, so this does not count as PASS."), "{early:?}");
        assert_eq!(asked(&ending, CountsAs::Fail).counts_as, Some(CountsAs::Fail));
    }
    // Of several sides, one that ended early leaves the whole undecided, in any order.
    let cut = Report { ending: Ending::Cut, ..one_run.clone() };
    for others in [[cut.clone(), one_run.clone()], [one_run.clone(), cut]] {
        let pass = Options { fail_if_slower: slower, inconclusive: Some(CountsAs::Pass), ..options() };
        let gate =
            compare_each(std::slice::from_ref(&one_run), &others.map(|one| [one]), &pass).gate.unwrap();
        assert_eq!((gate.outcome, gate.counts_as), (GateOutcome::Undecided, None), "{gate:?}");
    }
    // A condition of one session follows the same rule.
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    record.header.plan.fail_if = model::spec::conditions::conditions("p99>1h").unwrap();
    let judging = Judging { inconclusive: Some(CountsAs::Pass), ..Judging::default() };
    assert_eq!(crate::exit_code(&judge(&record, &judging)), 0);
    record.end = None;
    let cut = judge(&record, &judging);
    assert_eq!((crate::exit_code(&cut), cut.counts_as), (4, None), "{:?}", cut.ending);
    let sentence = cut.answer.unwrap().sentence;
    assert!(sentence.ends_with(" The session ended early, so this does not count as PASS."), "{sentence}");
    let unasked = judge(&record, &Judging::default()).answer.unwrap().sentence;
    assert!(!unasked.contains("--inconclusive"), "{unasked}");
}
