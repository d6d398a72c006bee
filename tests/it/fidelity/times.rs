//! Arrival times, rate limits and pauses, by the times of the requests.

use super::{COUNTED, MS, TIMED, assert_share, on_device_one_per_cpu, undisturbed};

#[test]
fn constant_arrivals_follow_their_schedule() {
    undisturbed(|| {
        let words = "--rw randread --rate 500 --arrivals constant --depth 32 --ops 1000";
        on_device_one_per_cpu(&format!("{words} {COUNTED}"), |all| {
            assert_eq!(all.len(), 1000);
            let late: Vec<u64> = all.iter().enumerate().map(|(i, r)| r.at_ns - i as u64 * 2 * MS).collect();
            let first = late.iter().min().unwrap();
            let mut late: Vec<u64> = late.iter().map(|l| l - first).collect();
            late.sort_unstable();
            assert!(
                late[late.len() / 2] < MS / 5,
                "the schedule slips: half are {} ns late",
                late[late.len() / 2]
            );
        });
    });
}

#[test]
fn random_arrivals_are_a_poisson_process() {
    undisturbed(|| {
        let words = "--rw randread --rate 500 --arrivals poisson --depth 64 --ops 3000";
        on_device_one_per_cpu(&format!("{words} {COUNTED}"), |all| {
            let gaps: Vec<f64> =
                all.windows(2).map(|w| (w[1].at_ns - w[0].at_ns) as f64 / (2 * MS) as f64).collect();
            let count = gaps.len() as f64;
            let mean = gaps.iter().sum::<f64>() / count;
            let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / count;
            // For an exponential distribution, mean and deviation are equal. The variance of the sample variance is 8 / n of its square.
            assert!((mean - 1.0).abs() < 5.0 / count.sqrt(), "the mean gap is {mean} of the one asked for");
            assert!(
                (variance - 1.0).abs() < 5.0 * (8.0 / count).sqrt(),
                "the gaps' variance is {variance}, not 1"
            );
            assert_share(gaps.iter().filter(|g| **g < std::f64::consts::LN_2).count(), gaps.len(), 0.5);
        });
    });
}

#[test]
fn closed_loop_rate_limits_hold() {
    undisturbed(|| {
        let words = "--rw randread --limit-iops 500 --depth 8 --time 2s";
        on_device_one_per_cpu(&format!("{words} {TIMED}"), |all| {
            assert!((950..=1010).contains(&all.len()), "{} of 1000", all.len());
        });
    });
}

#[test]
fn bursts_are_separated_by_pauses() {
    undisturbed(|| {
        let words = "--rw randread --think 5ms --burst 4 --depth 8 --ops 200";
        on_device_one_per_cpu(&format!("{words} {COUNTED}"), |all| {
            for (i, w) in all.windows(2).enumerate() {
                let gap = w[1].at_ns - w[0].at_ns;
                assert_eq!(gap >= 5 * MS, i % 4 == 3, "{gap} ns between request {i} and the next");
            }
        });
    });
}
