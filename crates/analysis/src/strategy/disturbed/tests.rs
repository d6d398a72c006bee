//! Tests of the rule: what disturbs a run, what is measured again and when, and that the remaining figures are unbiased.

use super::*;
use crate::fixture::Fixture;
use crate::strategy::{left, next, played};
use model::record::Disturbed;
use stats::intervals;
use stats::series::Noise;

fn fixed(jobs: usize, runs: u32) -> Budget {
    Budget {
        jobs,
        runs,
        strategy: Strategy::Fixed,
        seed: 7,
        paired: false,
        attempts: 3,
        ends_ns: None,
        blocks: Vec::new(),
    }
}

fn a_disturbance(attempt: u32) -> Disturbed {
    Disturbed { attempt, by: vec![Disturbance::StolenCpu { share: 0.2 }] }
}

/// Plays a strategy to its end; for each run its rate, and whether others disturb it.
fn play(budget: &Budget, mut run: impl FnMut(&Attempt) -> (f64, bool)) -> Vec<Summary> {
    let mut done = Vec::new();
    let plain = Summary::refused(0, 0);
    while let Next::Measure { job, repeat, attempt, offered_iops } = next(&done, budget) {
        let at = Attempt { job, repeat, attempt, offered_iops, disturbed: false, complete: true };
        let (iops, hit) = run(&at);
        let disturbed = hit.then(|| a_disturbance(attempt));
        let ran = Summary { job, repeat, attempt, offered_iops, disturbed, iops, ..plain.clone() };
        done.push(Summary { refused: false, ..ran });
        assert!(done.len() < 500, "it does not end");
    }
    assert!(left(&done, budget).runs.iter().all(|r| *r == 0), "nothing is left at the end");
    done
}

/// The runs in the order of measuring, with the disturbed ones among them: job, repeat, attempt.
fn order(budget: &Budget, hit: impl Fn(&Attempt) -> bool) -> Vec<(usize, u32, u32)> {
    play(budget, |at| (1.0, hit(at))).iter().map(|s| (s.job, s.repeat, s.attempt)).collect()
}

#[test]
fn a_run_is_measured_again_at_the_end_of_its_round_and_twice_at_most() {
    let quiet: Vec<(usize, u32, u32)> =
        played(&fixed(4, 3), |_, _| 1.0).iter().map(|s| (s.job, s.repeat, 0)).collect();
    assert_eq!(order(&fixed(4, 3), |_| false), quiet);
    let first = quiet[0].0;
    let once = order(&fixed(4, 3), |at| (at.job, at.repeat, at.attempt) == (first, 0, 0));
    assert_eq!((once[..4].to_vec(), once[4]), (quiet[..4].to_vec(), (first, 0, 1)));
    assert_eq!(once[5..], quiet[4..]);
    let always = order(&fixed(4, 3), |at| (at.job, at.repeat) == (first, 1));
    assert_eq!(always[8..10], [(first, 1, 1), (first, 1, 2)]);
    assert_eq!(always.len(), 14);
    let once = Budget { attempts: 1, ..fixed(4, 3) };
    assert_eq!(order(&once, |at| at.repeat == 1), quiet, "--attempts 1");
    let five = Budget { attempts: 5, ..fixed(4, 6) };
    assert_eq!(order(&five, |at| at.repeat == 0 && at.job == first).len(), 24 + 4, "--attempts 5");
}

#[test]
fn of_two_runs_the_one_that_was_tried_less_often_comes_first() {
    let [a, b] = [0, 1].map(|i| order(&fixed(4, 6), |_| false)[i].0);
    let hit = |at: &Attempt| at.repeat == 0 && (at.job == a || (at.job == b && at.attempt == 0));
    assert_eq!(order(&fixed(4, 6), hit)[4..7], [(a, 0, 1), (b, 0, 1), (a, 0, 2)]);
}

#[test]
fn nothing_is_measured_again_once_a_third_was_disturbed() {
    // Of five runs the first is measured three times; with the second it is a third.
    let always = order(&fixed(1, 5), |_| true);
    assert_eq!(always, [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 2, 0), (0, 3, 0), (0, 4, 0)]);
    // A single run shows nothing about the machine.
    assert_eq!(order(&fixed(1, 1), |_| true).len(), 3);
    let done = play(&fixed(1, 5), |_| (1.0, true));
    let counts: Vec<u32> = counting(&done, &fixed(1, 5)).iter().map(|s| s.attempt).collect();
    assert_eq!(counts, [0; 5], "the first attempts count");
}

#[test]
fn remaining_runs_include_repeats() {
    let budget = fixed(2, 2);
    let mut first = Summary { refused: false, iops: 1.0, ..Summary::refused(0, 0) };
    let before: u32 = left(&[first.clone()], &budget).runs.iter().sum();
    first.disturbed = Some(a_disturbance(0));
    assert_eq!((before, left(&[first], &budget).runs.iter().sum::<u32>()), (3, 4));
}

#[test]
fn paired_rounds_are_measured_again_as_a_whole() {
    let paired = Budget { paired: true, ..fixed(3, 3) };
    let quiet = order(&paired, |_| false);
    let middle = quiet[1].0;
    let once = order(&paired, |at| (at.job, at.repeat, at.attempt) == (middle, 0, 0));
    let round: Vec<(usize, u32, u32)> = quiet[..3].iter().map(|(job, ..)| (*job, 0, 1)).collect();
    assert_eq!((once.len(), once[3..6].to_vec()), (12, round));
    // What this machine refuses is no part of the round.
    let mut done: Vec<Summary> = (0..3).map(|n| Summary::refused(1, n)).collect();
    done.extend([0, 2].map(|job| Summary {
        refused: false,
        iops: 1.0,
        disturbed: (job == 0).then(|| a_disturbance(0)),
        ..Summary::refused(job, 0)
    }));
    let repeats: Vec<usize> = waiting(&done, &paired).iter().map(|a| a.at.job).collect();
    assert_eq!(repeats, [0, 2]);
}

#[test]
fn a_load_is_measured_again_at_once_and_rounds_until_steady_never() {
    let latency_target = model::plan::LatencyTarget {
        quantile: 0.99,
        latency_ns: None,
        arrivals: model::job::Arrivals::Poisson,
        curve: true,
    };
    let curve = Budget { jobs: 2, runs: 3, strategy: Strategy::Limit(latency_target), ..fixed(2, 3) };
    let hit = |at: &Attempt| at.job == 1 && at.repeat == 0 && at.attempt == 0 && at.offered_iops == Some(70);
    let done = play(&curve, |at| (at.offered_iops.map_or(100.0, |o| o as f64), hit(at)));
    let at = done.iter().position(|s| s.disturbed.is_some()).unwrap();
    assert_eq!((done[at + 1].attempt, done[at + 1].offered_iops), (1, Some(70)));
    let steady = Budget { strategy: Strategy::Steady { at_most: 25 }, ..fixed(1, 5) };
    assert!(play(&steady, |_| (100.0, true)).iter().all(|s| s.attempt == 0));
}

#[test]
fn a_replay_continues_where_it_stopped() {
    for paired in [false, true] {
        let budget = Budget { paired, ..fixed(3, 4) };
        let whole =
            play(&budget, |at| (1.0, (at.job + at.repeat as usize).is_multiple_of(5) && at.attempt == 0));
        for cut in 0..whole.len() {
            let Next::Measure { job, repeat, attempt, .. } = next(&whole[..cut], &budget) else {
                panic!("done")
            };
            let Summary { job: j, repeat: r, attempt: a, .. } = whole[cut];
            assert_eq!((job, repeat, attempt), (j, r, a));
        }
    }
}

fn traffic(bytes: u64, ios: u64, seconds: f64) -> bool {
    Foreign { device: "vda".into(), bytes, ios: Some(ios), seconds }.disturbs().is_some()
}

#[test]
fn traffic_of_others_disturbs_by_rate_and_only_above_a_minimum() {
    assert!(traffic(240_000_000, 240, 1.0) && traffic(1 << 20, 300, 1.0) && traffic(30_000_000, 1, 2.0));
    assert!(!traffic(9_000_000, 100, 1.0) && !traffic(300 << 20, 1_000, 60.0));
    assert!(!traffic(2 << 20, 90, 0.1), "a commit in a short run");
    assert!(!traffic(1 << 30, 1 << 20, 0.0));
}

/// Whether the second run of a record is disturbed, taken out as the loop sees it.
fn second(record: &Record) -> Vec<Disturbance> {
    let mut one = record.clone();
    one.runs = vec![one.runs.remove(1)];
    disturbances(&one)
}

#[test]
fn the_evidence_of_a_run_is_read_from_its_edges() {
    assert_eq!(second(&Fixture::honest().record()), []);
    let [Disturbance::ForeignIo { device, bytes_per_s, ios_per_s }] =
        &second(&Fixture { foreign_ios: 4_400, ..Fixture::honest() }.record())[..]
    else {
        panic!("silent")
    };
    // A warm-up of a tenth belongs to the run.
    assert!(
        device == "vda" && (ios_per_s.unwrap() - 4_000.0).abs() < 1.0 && (bytes_per_s - 16.384e6).abs() < 1e3
    );
    // The same traffic during a run that is ten times as fast: its share is small, but it disturbs as much.
    let fast = Fixture { ops: 100_000, foreign_ios: 4_400, ..Fixture::honest() };
    assert_eq!(second(&fast.record()).len(), 1);
    let loud = Fixture { device_time_share: 0.1, cpu_share: 1.0, errors: 7, ..Fixture::honest() };
    assert_eq!(second(&loud.record()), [], "what is not of others");
    let blind = Fixture { stat_unreadable: true, foreign_ios: 9_000, ..Fixture::honest() };
    assert_eq!(second(&blind.record()), [], "nothing is decided by what cannot be seen");
}

#[test]
fn a_changed_limit_disturbs() {
    let mut record = Fixture::honest().record();
    let limit = "/sys/fs/cgroup/blkio/fathom/blkio.throttle.read_iops_device: 254:0 400\n";
    let set = |record: &mut Record, run: usize, at: usize, text: &str| {
        record.runs[run].evidence[at].files.insert(LIMITS.into(), Ok(text.into()));
    };
    set(&mut record, 1, 1, limit);
    let [Disturbance::LimitChanged { before, after }] = &second(&record)[..] else { panic!("silent") };
    assert_eq!((before.as_str(), after.as_str()), ("", limit));
    // Between two runs, and still there.
    set(&mut record, 1, 0, limit);
    assert_eq!(second(&record).len(), 1);
    set(&mut record, 1, 0, &limit.replace("254:0", "8:0"));
    set(&mut record, 1, 1, "");
    assert_eq!(second(&record), [], "of another device");
}

#[test]
fn stolen_time_disturbs_above_a_tick_and_a_hundredth() {
    let stolen = |ticks: u64| {
        let mut record = Fixture::honest().record();
        let text = format!("cpu  0 0 0 {} 0 0 0 {ticks} 0 0\n", 200 - ticks);
        record.runs[1].evidence[0].files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0 0 0\n".into()));
        record.runs[1].evidence[1].files.insert("/proc/stat".into(), Ok(text));
        !second(&record).is_empty()
    };
    assert!(!stolen(3) && stolen(4));
}

/// Bursts of others: how many in the time of a run, how long in runs, what part of its rate a run loses meanwhile.
struct Bursts {
    per_run: f64,
    long: f64,
    lose: f64,
}

/// Results of sessions of three workloads: the share of intervals that contain the truth and the bias of the means, of all results and of
/// those without a disturbed run; and the share of the latter.
struct Came {
    all: [f64; 2],
    sound: [f64; 2],
    share: f64,
}

/// Plays sessions of `jobs` x five runs that vary by 3 % while bursts come and go; with the rule, or with none.
fn sessions(count: u64, bursts: &Bursts, budget: &Budget, obeyed: bool) -> Came {
    let (mut all, mut sound) = (Vec::new(), Vec::new());
    for seed in 0..count {
        let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(29));
        let budget = Budget { seed, ..budget.clone() };
        let gap = |noise: &mut Noise| -noise.uniform().ln() / bursts.per_run;
        // The burst that is now or comes next.
        let begin = gap(&mut noise);
        let mut burst = [begin, begin - bursts.long * noise.uniform().ln()];
        let mut now = 0.0;
        let done = play(&budget, |_| {
            let [from, to] = [now, now + 1.0];
            now = to + 0.1;
            let mut hit = 0.0;
            while burst[0] < to {
                hit += (burst[1].min(to) - burst[0].max(from)).max(0.0);
                if burst[1] >= to {
                    break;
                }
                let begin = burst[1] + gap(&mut noise);
                burst = [begin, begin - bursts.long * noise.uniform().ln()];
            }
            let foreign = (300e6 * hit) as u64;
            let rate = (0.03 * noise.normal()).exp() * (1.0 - bursts.lose * hit);
            (rate, obeyed && traffic(foreign, foreign >> 20, 1.0))
        });
        let counting = counting(&done, &budget);
        for job in 0..budget.jobs {
            let runs: Vec<&Summary> = counting.iter().filter(|s| s.job == job).collect();
            assert_eq!(runs.len(), 5);
            let mean = intervals::mean(&runs.iter().map(|s| s.iops).collect::<Vec<_>>()).unwrap();
            let [low, high] = mean.interval.unwrap();
            let one = [f64::from(u8::from(low <= 1.0 && 1.0 <= high)), mean.value.ln()];
            all.push(one);
            sound.extend(runs.iter().all(|s| s.disturbed.is_none()).then_some(one));
        }
    }
    let mean = |of: &[[f64; 2]]| [0, 1].map(|i| of.iter().map(|o| o[i]).sum::<f64>() / of.len() as f64);
    Came { all: mean(&all), sound: mean(&sound), share: sound.len() as f64 / all.len() as f64 }
}

#[test]
fn intervals_cover_the_truth_through_bursts_and_means_are_not_biased() {
    for (bursts, paired) in [
        (Bursts { per_run: 0.05, long: 1.0, lose: 0.4 }, false),
        (Bursts { per_run: 0.02, long: 3.0, lose: 0.7 }, false),
        (Bursts { per_run: 0.05, long: 0.3, lose: 0.5 }, false),
        (Bursts { per_run: 0.03, long: 1.0, lose: 0.4 }, true),
    ] {
        let budget = Budget { paired, ..fixed(3, 5) };
        let Came { all, sound, share } = sessions(1_000, &bursts, &budget, true);
        let without = sessions(300, &bursts, &budget, false).all;
        println!("with {all:.4?}, VALID {sound:.4?} of {share:.3}; without {without:.4?}");
        assert!(sound[0] >= 0.94 && sound[1].abs() < 0.005 && share > 0.8, "{sound:?} {share}");
        assert!(without[1] < -0.005, "such bursts bias what nobody measures again: {without:?}");
    }
}

#[test]
fn judging_by_share_would_keep_the_fast_runs() {
    // A neighbour that is always there, and about as much as the rule allows.
    let bias = |hit: &dyn Fn(f64, f64) -> bool| {
        let mut sum = 0.0;
        for seed in 0..2_000_u64 {
            let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(31));
            let budget = Budget { seed, ..fixed(3, 5) };
            let done = play(&budget, |_| {
                let own = 190e6 * (0.1 * noise.normal()).exp();
                (own, hit(BYTES_PER_S * (0.2 * noise.normal() - 0.25).exp(), own))
            });
            let counting = counting(&done, &budget);
            sum += counting.iter().map(|s| (s.iops / 190e6).ln()).sum::<f64>() / counting.len() as f64;
        }
        sum / 2_000.0
    };
    let by_rate = bias(&|others, _| others > BYTES_PER_S);
    let by_share = bias(&|others, own| others / (others + own) > 0.05);
    println!("by rate {by_rate:.4}, by share {by_share:.4}");
    assert!(by_rate.abs() < 0.002, "{by_rate}");
    assert!(by_share > 0.005, "{by_share}");
}
