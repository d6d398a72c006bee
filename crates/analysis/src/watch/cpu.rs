//! Computes how the CPUs spent an interval, by the formulas of sysstat's iostat: the share of each counter of the first line of
//! `/proc/stat` in the sum of all of them.

use crate::kernel_text::cpu_ticks;
use model::Known;
use model::watch::CpuShares;

/// Returns the shares of an interval from the texts of `/proc/stat` at its start and end; `None` if no tick passed.
///
/// # Errors
/// If a text has no line of all CPUs, or too few counters in it.
pub fn shares(before: &str, after: &str) -> Known<Option<CpuShares>> {
    let (before, after) = (cpu_ticks(before)?, cpu_ticks(after)?);
    // The kernel may count iowait and idle time backwards by a few ticks.
    let passed: Vec<u64> = after.iter().zip(&before).map(|(a, b)| a.saturating_sub(*b)).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = passed[..] else {
        return Err("/proc/stat has fewer than eight counters of CPU time".into());
    };
    let sum: u64 = passed.iter().sum();
    let percent = |ticks: u64| ticks as f64 * 100.0 / sum as f64;
    Ok((sum > 0).then(|| CpuShares {
        user_percent: percent(user),
        nice_percent: percent(nice),
        system_percent: percent(system + irq + softirq),
        iowait_percent: percent(iowait),
        steal_percent: percent(steal),
        idle_percent: percent(idle),
    }))
}

#[test]
fn shares_are_those_of_iostat() {
    let before = "cpu  100 10 50 1000 20 1 2 3 7 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    let after = "cpu  150 15 70 1100 30 2 6 13 9 0\n";
    let Ok(Some(all)) = shares(before, after) else { panic!() };
    // 50 + 5 + 20 + 100 + 10 + 1 + 4 + 10 = 200 ticks.
    let percents = [
        all.user_percent,
        all.nice_percent,
        all.system_percent,
        all.iowait_percent,
        all.steal_percent,
        all.idle_percent,
    ];
    assert_eq!(percents.map(|p| format!("{p:.1}")), ["25.0", "2.5", "12.5", "5.0", "5.0", "50.0"]);
    assert_eq!(shares(before, before), Ok(None));
    assert!(shares("intr 1\n", after).is_err());
    assert!(shares("cpu 1 2 3\n", "cpu 2 3 4\n").is_err());
}

#[test]
fn iowait_that_ran_backwards_counts_as_none() {
    let shares = shares("cpu 0 0 0 10 8 0 0 0\n", "cpu 0 0 0 20 5 0 0 0\n");
    let Ok(Some(all)) = shares else { panic!("{shares:?}") };
    assert_eq!([all.iowait_percent, all.idle_percent].map(|p| format!("{p:.1}")), ["0.0", "100.0"]);
}
