//! Tests of whole comparisons: judged records, each changed in one way. They check which results are compared, what is refused, and that
//! no report causes a panic.

use super::*;
use crate::fixture::Fixture;
use crate::{Judging, judge};
use model::comparison::{Answer, Passing};
use model::job::Cache;
use model::report::Measured;

/// Rates of five runs, a per cent apart.
const RUNS: [f64; 5] = [9_900.0, 10_100.0, 10_000.0, 9_950.0, 10_050.0];

fn judged(fixture: &Fixture) -> Report {
    judge(&fixture.record(), &Judging::default())
}

/// A report whose runs have these rates times a factor, and latencies to them.
fn rated(fixture: &Fixture, factor: f64) -> Report {
    let mut report = judged(fixture);
    report.results.iter_mut().for_each(|r| rate(r, factor));
    report
}

fn rate(result: &mut Measured, factor: f64) {
    for (run, iops) in result.runs.iter_mut().zip(RUNS) {
        run.iops = iops * factor;
        run.mb_per_s = run.iops * 4096.0 / 1e6;
    }
}

fn options() -> Options {
    Options { version: "0.0.0".into(), ..Options::default() }
}

fn answers(comparison: &Comparison, id: CheckId) -> Vec<&Finding> {
    comparison.findings.iter().filter(|f| f.id == id).collect()
}

fn outcome(comparison: &Comparison, id: CheckId) -> Option<(Outcome, Option<Severity>)> {
    answers(comparison, id).first().map(|f| (f.outcome, f.severity))
}

/// The refusal of an honest report against what becomes of it.
fn refused(change: impl FnOnce(&mut Report)) -> Option<String> {
    let mut b = rated(&Fixture::honest(), 1.0);
    change(&mut b);
    let comparison = compare(&rated(&Fixture::honest(), 1.0), &b, &options());
    let refused = comparison.headline().and_then(|p| p.refused.clone());
    assert_eq!(refused.is_some(), comparison.answer == Answer::Incomparable, "{}", comparison.sentence);
    refused
}

fn stream(report: &mut Report) -> &mut model::job::Stream {
    &mut report.results[0].job.phases[0].streams[0]
}

fn sizes(report: &mut Report, bytes: u32) {
    stream(report).access = model::job::Access::plain(model::job::Pattern::Random, bytes, 100);
    stream(report).access.span_bytes = 1 << 30;
}

fn fs(report: &mut Report) -> &mut model::machine::FileSystem {
    report.machine.places[0].file_system.as_mut().unwrap()
}

#[test]
fn a_tenth_less_is_slower_with_its_interval_and_reasons() {
    let (a, b) = (rated(&Fixture::honest(), 1.0), rated(&Fixture::honest(), 0.9));
    let comparison = compare(&a, &b, &options());
    assert_eq!(comparison.answer, Answer::Slower, "{}", comparison.sentence);
    for words in
        ["slower", "IOPS of 4K random read, depth 32, direct", "by 10 % (9.0 to 11 %)", "over 5 and 5 runs"]
    {
        assert!(comparison.sentence.contains(words), "{words}: {}", comparison.sentence);
    }
    let names: Vec<&str> = comparison.pairs[0].metrics.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["IOPS", "read p50", "read p99", "read p99.9", "CPU per operation"]);
    assert_eq!(outcome(&comparison, CheckId::E14), Some((Outcome::Holds, None)));
    assert_eq!(outcome(&comparison, CheckId::E15), Some((Outcome::NotChecked, None)));
    assert_eq!(outcome(&comparison, CheckId::E16), Some((Outcome::Holds, None)));
    assert_eq!(outcome(&comparison, CheckId::E18), Some((Outcome::Holds, None)));
    assert_eq!(compare(&b, &a, &options()).answer, Answer::Faster);
    // Forged runs have equal latencies, and equal is the same.
    assert_eq!(comparison.pairs[0].metrics[1].answer, Answer::Same);
}

#[test]
fn different_work_is_refused_and_the_difference_named() {
    type Change = fn(&mut Report);
    let table: [(&str, Change); 14] = [
        ("block size 4K -> 8K", |r| sizes(r, 8192)),
        ("depth 32 -> 1", |r| stream(r).depth = 1),
        ("workers 1 -> 4", |r| stream(r).workers = 4),
        ("cache direct -> buffered", |r| stream(r).cache = Cache::Buffered),
        ("cache direct -> direct-sync", |r| stream(r).cache = Cache::DirectSync),
        ("span", |r| stream(r).access.span_bytes = 4096),
        ("first byte", |r| stream(r).access.offset_bytes = 4096),
        ("order random -> zipf 1.1", |r| stream(r).access.lines[0].order = model::job::Order::Zipf(1.1)),
        ("direction read -> 70/30", |r| stream(r).access.lines[0].mix = model::job::Mix::of_percents(70, 0)),
        ("pace closed loop -> open loop at 100", |r| {
            stream(r).pace = model::job::Pace::default().offering(100.0);
        }),
        ("beside it nothing -> 4K random read", |r| {
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
    ];
    for (words, change) in table {
        let why = refused(change).unwrap_or_else(|| panic!("{words} is compared"));
        assert!(why.contains(words), "{words}: {why}");
    }
    assert_eq!(refused(|_| {}), None);
}

#[test]
fn differences_that_may_be_the_subject_are_named_and_not_refused() {
    type Change = fn(&mut Report);
    let table: [(&str, Change); 9] = [
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
    ];
    for (words, change) in table {
        let mut b = rated(&Fixture::honest(), 0.9);
        change(&mut b);
        let comparison = compare(&rated(&Fixture::honest(), 1.0), &b, &options());
        assert_eq!(comparison.answer, Answer::Slower, "{words}: {}", comparison.sentence);
        assert!(
            comparison.sentence.contains(&format!("The difference between these: {words}")),
            "{}",
            comparison.sentence
        );
        assert_eq!(outcome(&comparison, CheckId::E14), Some((Outcome::Finding, Some(Severity::Note))));
    }
}

#[test]
fn an_engine_that_replaced_a_denied_one_is_not_compared_with_another_one() {
    let fallback = |cause: &str| {
        let mut report = rated(&Fixture::honest(), 0.9);
        stream(&mut report).engine = "libaio".into();
        stream(&mut report).engine_fallback =
            Some(model::job::EngineFallback { wanted: "io_uring".into(), cause: cause.into() });
        report
    };
    let usual = rated(&Fixture::honest(), 1.0);
    for (a, b) in [(&usual, &fallback("a filter")), (&fallback("a filter"), &usual)] {
        let comparison = compare(a, b, &options());
        assert_eq!(comparison.answer, Answer::CannotTell, "{}", comparison.sentence);
        for words in
            ["engine", "io_uring", "libaio in place of io_uring, which was denied (a filter)", "--accept E14"]
        {
            assert!(comparison.sentence.contains(words), "{words}: {}", comparison.sentence);
        }
        assert_eq!(outcome(&comparison, CheckId::E14), Some((Outcome::Finding, Some(Severity::Void))));
        let slower = model::verdict::Slower { by: 0.05, all: false };
        let gated = compare(a, b, &Options { fail_if_slower: Some(slower), ..options() });
        assert_eq!(gated.gate.map(|gate| gate.outcome), Some(model::comparison::Passing::Undecided));
        let accepted = compare(a, b, &Options { accept_differences: true, ..options() });
        assert!(matches!(accepted.answer, Answer::Slower | Answer::Faster), "{}", accepted.sentence);
    }
    // The same engine on both sides is the same work, whatever denied the other engine, and whether the user named it.
    let mut named = fallback("");
    stream(&mut named).engine_fallback = None;
    for b in [fallback("another filter"), named.clone()] {
        let comparison = compare(&fallback("a filter"), &b, &options());
        assert_eq!(comparison.answer, Answer::Same, "{}", comparison.sentence);
    }
    // Other work remains other work.
    let mut deeper = fallback("a filter");
    stream(&mut deeper).depth = 64;
    assert_eq!(compare(&usual, &deeper, &options()).answer, Answer::Incomparable);
    // An engine that the user named is what is compared.
    assert_eq!(compare(&usual, &named, &options()).answer, Answer::Slower);
}

#[test]
fn circumstances_unknown_on_one_side_are_not_checked() {
    let mut b = rated(&Fixture::honest(), 0.9);
    b.machine.cpu = Err("no file".into());
    let comparison = compare(&rated(&Fixture::honest(), 1.0), &b, &options());
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
    assert_eq!(comparison.answer, Answer::Incomparable);
    for words in ["what was measured", "page cache", "A01 CACHE_SERVED"] {
        assert!(comparison.sentence.contains(words), "{words}: {}", comparison.sentence);
    }
    assert_eq!(outcome(&comparison, CheckId::E14), Some((Outcome::Finding, Some(Severity::Void))));
    assert_ne!(compare(&cached, &cached, &options()).answer, Answer::Incomparable, "same name, same thing");

    let accepted = Options { accept_differences: true, ..options() };
    let comparison = compare(&direct, &cached, &accepted);
    assert_ne!(comparison.answer, Answer::Incomparable);
    assert!(comparison.sentence.contains("what was measured"), "{}", comparison.sentence);
    let finding = answers(&comparison, CheckId::E14)[0];
    assert!(finding.accepted && finding.severity == Some(Severity::Rename), "{finding:?}");
}

#[test]
fn different_limiters_of_the_same_work_are_only_named() {
    let busy = Fixture { cpu_share: 1.0, ..Fixture::honest() };
    let renamed =
        judged(&busy).findings.iter().any(|f| f.id == CheckId::D06 && f.outcome == Outcome::Finding);
    assert!(renamed, "the forged record is limited by the CPU");
    let comparison = compare(&rated(&Fixture::honest(), 1.0), &rated(&busy, 0.9), &options());
    assert_eq!(comparison.answer, Answer::Slower, "{}", comparison.sentence);
    assert!(comparison.sentence.contains("what limited it"), "{}", comparison.sentence);
}

#[test]
fn a_void_result_has_nothing_to_compare_and_no_acceptance_helps() {
    let void = judged(&Fixture { hole_share: 1.0, ..Fixture::honest() });
    for accept_differences in [false, true] {
        let comparison =
            compare(&judged(&Fixture::honest()), &void, &Options { accept_differences, ..options() });
        assert_eq!(comparison.answer, Answer::Invalid);
        assert!(comparison.sentence.starts_with("B has no number") && comparison.sentence.contains("A04"));
    }
    let nothing = judged(&Fixture { runs: 0, ..Fixture::honest() });
    assert_eq!(compare(&nothing, &nothing, &options()).answer, Answer::Invalid);
    // A gate is not decided by that, whatever else differs.
    let gated = Options { fail_if_slower: Some(Slower { by: 0.05, all: false }), ..options() };
    let gate = |b: &Report| {
        compare(&judged(&Fixture::honest()), b, &gated).gate.unwrap_or_else(|| panic!("no gate"))
    };
    let missing = gate(&void);
    assert!(
        missing.no_number && missing.outcome == Passing::Invalid && missing.sentence.contains("--accept A04")
    );
    for hole_share in [0.0, 1.0] {
        let other = judged(&Fixture { hole_share, block_bytes: 8192, ..Fixture::honest() });
        assert_eq!(gate(&other).outcome, Passing::Undecided, "other work");
        assert_eq!(compare(&judged(&Fixture::honest()), &other, &gated).answer, Answer::Incomparable);
    }
}

#[test]
fn accepted_findings_must_be_the_same_on_both_sides_and_a_gate_wants_them_typed() {
    let accepting = |fixture: &Fixture, accept: &[CheckId]| {
        judge(&fixture.record(), &Judging { accept: accept.to_vec(), ..Judging::default() })
    };
    let holes = Fixture { hole_share: 1.0, ..Fixture::honest() };
    let (honest, accepted) = (judged(&Fixture::honest()), accepting(&holes, &[CheckId::A04]));
    let slower = Some(Slower { by: 0.05, all: false });
    let gated = Options { fail_if_slower: slower, ..options() };
    let typed = Options { accept: vec![CheckId::A04], ..gated.clone() };
    for options in [&gated, &typed] {
        let comparison = compare(&honest, &accepted, options);
        assert_eq!(comparison.answer, Answer::CannotTell, "{}", comparison.sentence);
        for words in ["accepted findings none -> A04", "--accept E14"] {
            assert!(comparison.sentence.contains(words), "{}", comparison.sentence);
        }
        assert_eq!(comparison.gate.map(|g| g.outcome), Some(Passing::Undecided));
    }
    let anyway = compare(&honest, &accepted, &Options { accept_differences: true, ..typed.clone() });
    assert_ne!(anyway.answer, Answer::CannotTell);
    assert!(anyway.sentence.contains("accepted findings: A04"), "{}", anyway.sentence);
    // Both rest on it: compared, and a gate decides only if it is typed.
    let same = compare(&accepted, &accepted, &gated);
    assert_eq!(same.answer, Answer::Same, "{}", same.sentence);
    let gate = same.gate.unwrap_or_else(|| panic!("no gate"));
    assert!(gate.outcome == Passing::Invalid && gate.sentence.contains("type --accept A04"), "{gate:?}");
    assert_eq!(compare(&accepted, &accepted, &typed).gate.map(|g| g.outcome), Some(Passing::Passed));
    // Other work stays other work.
    let larger = accepting(&Fixture { block_bytes: 8192, ..holes.clone() }, &[CheckId::A04]);
    assert_eq!(compare(&honest, &larger, &typed).answer, Answer::Incomparable);
    // A report that was judged without accepting is judged again with it; one of two ids is not enough.
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
fn few_runs_cannot_tell_and_say_what_to_type() {
    let one = Fixture { runs: 1, ..Fixture::honest() };
    let comparison = compare(&rated(&one, 1.0), &rated(&one, 0.5), &options());
    assert_eq!(comparison.answer, Answer::CannotTell);
    assert!(comparison.sentence.contains("three runs") && comparison.sentence.contains("--runs 5"));
}

#[test]
fn several_sessions_are_one_side_and_their_distance_is_the_floor() {
    let fixture = Fixture::honest();
    let (a, b) =
        ([rated(&fixture, 1.0), rated(&fixture, 1.08)], [rated(&fixture, 1.1), rated(&fixture, 1.1)]);
    let comparison = compare_sides(&a, &b, &options());
    let metric = &comparison.pairs[0].metrics[0];
    assert_eq!((metric.a_runs.len(), metric.b_runs.len(), comparison.a.sessions.len()), (10, 10, 2));
    assert!(metric.floor.is_some_and(|f| (f - 0.08).abs() < 1e-9), "{metric:?}");
    assert_eq!(comparison.answer, Answer::NoDifferenceSeen);
    for words in ["No difference above 8.0 % was seen: B is at most ", "would halve this range"] {
        assert!(comparison.sentence.contains(words), "{words}: {}", comparison.sentence);
    }
    assert_eq!(outcome(&comparison, CheckId::E15), Some((Outcome::Finding, Some(Severity::Biased))));

    let apart = compare_sides(&a, &[rated(&fixture, 2.0)], &options());
    assert_eq!((apart.answer, outcome(&apart, CheckId::E15)), (Answer::Faster, Some((Outcome::Holds, None))));

    let mut other = rated(&fixture, 1.0);
    other.machine.kernel = "Linux 6.18.5".into();
    let mixed = compare_sides(&[rated(&fixture, 1.0), other], &b, &options());
    assert_eq!(mixed.answer, Answer::Incomparable);
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
        let mut report = rated(&several, 1.0);
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
    assert_eq!(apart.answer, Answer::Incomparable);
    assert!(
        apart.sentence.contains("one, two") && apart.sentence.contains("three, four"),
        "{}",
        apart.sentence
    );
    // A single result on each side is meant, whatever it is called.
    let mut renamed = rated(&Fixture::honest(), 0.9);
    renamed.results[0].name = "mine".into();
    assert_eq!(compare(&rated(&Fixture::honest(), 1.0), &renamed, &options()).answer, Answer::Slower);
}

#[test]
fn many_numbers_are_corrected_for_and_the_headline_is_judged_alone() {
    let many = Fixture { jobs: 8, ..Fixture::honest() };
    let mut a = rated(&many, 1.0);
    for (i, result) in a.results.iter_mut().enumerate() {
        result.name = format!("job {i}");
        result.true_name = format!("true {i}");
    }
    a.headline.name = "true 0".into();
    let mut b = a.clone();
    // Runs that vary by 3 % and differ by 6 %.
    let varied = [0.94, 0.97, 0.91, 0.94, 0.95];
    for result in &mut b.results {
        result.runs.iter_mut().zip(varied).for_each(|(r, factor)| r.iops = 10_000.0 * factor);
    }
    let comparison = compare(&a, &b, &Options { margin: Some(0.01), ..options() });
    let answers: Vec<Answer> = comparison.pairs.iter().map(|p| p.metrics[0].answer).collect();
    assert_eq!(answers[0], Answer::Slower, "{:#?}", comparison.pairs[0].metrics[0]);
    assert!(answers[1..].iter().all(|w| *w == Answer::NoDifferenceSeen), "{answers:?}");
    assert!(comparison.pairs[1].metrics[0].why.contains("Holm"), "{}", comparison.pairs[1].metrics[0].why);
    assert_eq!(outcome(&comparison, CheckId::E16), Some((Outcome::Finding, Some(Severity::Biased))));
}

#[test]
fn an_added_up_percentile_is_invalid_and_not_compared() {
    let (a, mut b) = (rated(&Fixture::honest(), 1.0), rated(&Fixture::honest(), 1.0));
    let percentiles = &mut b.results[0].read.as_mut().unwrap().latency_ns.percentiles;
    let p99 = percentiles.get_mut("99").unwrap();
    *p99 = p99.map(|ns| 8 * ns);
    let comparison = compare(&a, &b, &options());
    assert_eq!(outcome(&comparison, CheckId::E18), Some((Outcome::Finding, Some(Severity::Void))));
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
    let (a, mut b) = (rated(&Fixture::honest(), 1.0), rated(&Fixture::honest(), 1.0));
    b.results[0].runs[2].percentiles_ns.get_mut("read").unwrap().insert("99.9".into(), None);
    let comparison = compare(&a, &b, &options());
    assert_eq!(comparison.pairs[0].left_out, ["read p99.9: 1 of 10 runs do not have it"]);
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
fn the_gate_fails_only_surely() {
    let gate = |factor: f64| {
        let limit = Some(Slower { by: 0.05, all: false });
        let options = Options { fail_if_slower: limit, ..options() };
        compare(&rated(&Fixture::honest(), 1.0), &rated(&Fixture::honest(), factor), &options).gate.unwrap()
    };
    assert_eq!(
        [0.9, 0.95, 1.0].map(|f| gate(f).outcome),
        [Passing::Failed, Passing::Undecided, Passing::Passed]
    );
    // Whether it fails is the exit code's: what cannot be compared ends with 2.
    assert!(gate(0.95).sentence.contains("cannot be told: "), "{}", gate(0.95).sentence);
}

#[test]
fn no_report_causes_a_panic() {
    type Damage = fn(&mut Report);
    let honest = rated(&Fixture::honest(), 1.0);
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
    assert_eq!(compare_sides(&[], &[], &options()).answer, Answer::Incomparable);
}

#[test]
fn each_of_several_sides_is_compared_with_the_first_and_called_by_its_name() {
    let side = |factor| vec![rated(&Fixture::honest(), factor)];
    let limit = Slower { by: 0.05, all: false };
    let asked = Options { fail_if_slower: Some(limit), ..options() };
    let all = compare_each(&side(1.0), &[side(1.3), side(1.0), side(0.7)], &asked);
    let answers: Vec<(&str, Answer)> =
        all.others.iter().map(|o| (o.name.as_str(), o.comparison.answer)).collect();
    assert_eq!(answers, [("B", Answer::Faster), ("C", Answer::Same), ("D", Answer::Slower)]);
    assert!(all.others[2].comparison.sentence.starts_with("D is slower than A"), "{all:?}");
    let gate = all.gate.unwrap();
    assert_eq!(gate.outcome, Passing::Failed);
    for words in ["B: Not slower", "C: Not slower", "D: Slower"] {
        assert!(gate.sentence.contains(words), "{words}: {}", gate.sentence);
    }
    let one = compare_each(&side(1.0), &[side(1.3)], &asked).others.remove(0).comparison;
    assert_eq!(one, compare_sides(&side(1.0), &side(1.3), &asked), "one side is a plain comparison");
    assert!(compare_each::<Vec<Report>>(&[], &[Vec::new()], &options()).others.len() == 1);
}

#[test]
fn headlines_of_many_sides_share_one_correction() {
    let side = |factor| vec![rated(&Fixture::honest(), factor)];
    let chance = |sides: usize| {
        let others: Vec<_> = std::iter::repeat_with(|| side(1.07)).take(sides).collect();
        let all = compare_each(&side(1.0), &others, &options());
        all.others[0].comparison.pairs[0].metrics[0].p.unwrap()
    };
    let (alone, of_four) = (chance(1), chance(4));
    assert!((of_four / alone - 4.0).abs() < 1e-6 || of_four >= 1.0, "{alone} and {of_four}");
}

#[cfg(test)]
mod simulation;
