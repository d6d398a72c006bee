//! Computes figures and conclusions from two samples of a running machine. Pure: the crate `machine` takes the samples.
//!
//! Figures of a device and shares of CPU time follow sysstat's formulas (`iostat(1)`). With `d` for the difference of a counter and T for
//! the time between both samples:
//!
//! | figure | formula | iostat |
//! |---|---|---|
//! | requests per second | d ios / T | r/s, w/s, d/s, f/s |
//! | bytes per second | d sectors * 512 / T | rkB/s, wkB/s, dkB/s |
//! | mean size | d sectors * 512 / d ios | rareq-sz, wareq-sz, dareq-sz |
//! | mean time | d ms / d ios | r_await, w_await, d_await, f_await |
//! | merged | d merges / T, and d merges / (d merges + d ios) | rrqm/s, %rrqm |
//! | mean depth | d queue ms / 1000 / T | aqu-sz |
//! | time with a request in flight | d busy ms / 1000 / T | %util |
//!
//! If nothing completed there is no mean: iostat prints 0 then.
//!
//! Conclusions need figures that support them:
//!
//! | rule | condition |
//! |---|---|
//! | `at_limit` | the lower bound of the load is 90 to 105 % of the measured capacity |
//! | `iops_not_throughput` | `at_limit` by a result with requests below 128 KiB; the load moves less than half of the highest throughput measured in that direction, and the requests of that throughput are at least 8 times as large |
//! | `twice_does_not_fit` | the lower bound of the load is 55 to 90 % of the measured capacity |
//! | `at_request_size_limit` | the mean request is at least 95 % of `max_sectors_kb`, and the hardware takes larger ones |
//!
//! Block events show which requests are random. Without them, a load of small requests may be sequential. `fathom bench`
//! measures sequential access with large requests only, so after it the lower bound of such a load is too low for a
//! conclusion about IOPS.
//!
//! The first three rules need a result that was measured with at least 8 operations in flight: with fewer, a deeper queue
//! might serve more. They do not apply if a cgroup limited a result of the device, because the limit holds for that
//! cgroup only. A load above 105 % shows that the measured result is not the limit, so it supports no conclusion. Every rule
//! needs 100 requests in the interval.

pub mod head_room;

use crate::figures::kernel_text::cpu_ticks;
use head_room::{Limits, NearestLimit, requests_in};
use model::Known;
use model::evidence::{BlockFlow, BlockStat, Flushes};
use model::machine::{Capacity, Direction};
use model::units::{show_bytes, show_rate, show_share};
use model::watch::{
    Conclusion, CpuShares, DeviceInterval, DeviceOverTime, FlushRequests, Latencies, LoadOverTime, LoadPoint,
    Requests, Rule, TimedConclusion, Watched, WatchedDevice,
};

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

/// ms counters have 32 bits in the kernel on every machine (`block/genhd.c` prints them as `%u`).
const WRAP_MS: u64 = 1 << 32;

/// Bytes of a MB and of a MiB.
const MB: f64 = 1e6;
const MIB: f64 = 1_048_576.0;

/// The figures of a device between two samples, `seconds` apart.
///
/// # Errors
/// That no time has passed, or which counter went backwards.
pub fn between(before: &BlockStat, after: &BlockStat, seconds: f64) -> Known<DeviceInterval> {
    if !seconds.is_finite() || seconds <= 0.0 {
        return Err("no time has passed between two samples".into());
    }
    let discards = before.discard.zip(after.discard);
    let discard = discards.map(|(a, b)| request_figures("discards", a, b, seconds)).transpose()?;
    let flushes = before.flush.zip(after.flush);
    let flush = flushes.map(|(a, b)| flush_figures(a, b, seconds)).transpose()?;
    Ok(DeviceInterval {
        seconds,
        read: request_figures("reads", before.read, after.read, seconds)?,
        write: request_figures("writes", before.write, after.write, seconds)?,
        discard,
        flush,
        depth_mean: passed_ms("requests in the queue", before.queue_ms, after.queue_ms)? / 1000.0 / seconds,
        in_flight: after.in_flight,
        util_percent: passed_ms("use", before.busy_ms, after.busy_ms)? / 1000.0 / seconds * 100.0,
    })
}

fn request_figures(name: &str, before: BlockFlow, after: BlockFlow, seconds: f64) -> Known<Requests> {
    let ios = growth(name, before.ios, after.ios)?;
    let merges = growth(name, before.merges, after.merges)?;
    let bytes = growth(name, before.bytes, after.bytes)?;
    let ms = passed_ms(name, before.ms, after.ms)?;
    Ok(Requests {
        per_s: ios / seconds,
        mb_per_s: bytes / MB / seconds,
        mib_per_s: bytes / MIB / seconds,
        request_bytes: quotient(bytes, ios),
        await_ms: quotient(ms, ios),
        merged_per_s: merges / seconds,
        merged_percent: quotient(merges * 100.0, merges + ios),
    })
}

fn flush_figures(before: Flushes, after: Flushes, seconds: f64) -> Known<FlushRequests> {
    let ios = growth("flushes", before.ios, after.ios)?;
    let ms = passed_ms("flushes", before.ms, after.ms)?;
    Ok(FlushRequests { per_s: ios / seconds, await_ms: quotient(ms, ios) })
}

/// The mean of a sum; `None` if nothing was counted.
fn quotient(sum: f64, number: f64) -> Option<f64> {
    (number > 0.0).then(|| sum / number)
}

/// The difference of a counter that never wraps.
fn growth(name: &str, before: u64, after: u64) -> Known<f64> {
    let passed = after.checked_sub(before).ok_or_else(|| backwards_error(name))?;
    Ok(passed as f64)
}

/// The difference of an ms counter, which may have wrapped. An interval cannot exceed half of the counter's range, so a larger difference
/// means that the counter went backwards.
fn passed_ms(name: &str, before: u64, after: u64) -> Known<f64> {
    if let Some(passed) = after.checked_sub(before) {
        return Ok(passed as f64);
    }
    let wrapped =
        after.checked_add(WRAP_MS).and_then(|after| after.checked_sub(before)).filter(|ms| *ms < WRAP_MS / 2);
    wrapped.map(|ms| ms as f64).ok_or_else(|| backwards_error(&format!("the time of {name}")))
}

fn backwards_error(name: &str) -> String {
    format!("the kernel's counter of {name} jumped back; figures start again with the next interval")
}

/// Maximum number of points of a device, and of conclusions: more than a page can show.
const POINTS_MAX: usize = 2000;

/// Adds an interval with its start and end in s since watching began.
pub fn add_interval(load: &mut LoadOverTime, watched: &Watched, span_s: [f64; 2]) {
    if load.started.is_empty() {
        watched.time.clone_into(&mut load.started);
        load.intervals_per_point = 1;
    }
    watched.time.clone_into(&mut load.ended);
    for device in &watched.devices {
        let new = device.conclusions.iter().filter(|c| c.is_new);
        let timed = |c: &Conclusion| TimedConclusion { since: watched.time.clone(), text: c.text.clone() };
        load.conclusions.extend(new.map(timed));
        let limit_unknown = device.load.as_ref().and_then(|load| load.as_ref().err().cloned());
        match load.devices.iter_mut().find(|d| d.name == device.name) {
            Some(known) => {
                known.points.push(build_point(device, span_s));
                known.limit_unknown = limit_unknown;
            }
            None => load.devices.push(DeviceOverTime {
                name: device.name.clone(),
                points: vec![build_point(device, span_s)],
                limit_unknown,
            }),
        }
    }
    let most = load.devices.iter().map(|d| d.points.len()).max().unwrap_or(0);
    if most > POINTS_MAX {
        load.intervals_per_point = load.intervals_per_point.saturating_mul(2);
        load.devices.iter_mut().for_each(|device| device.points = halve(&device.points));
    }
    load.conclusions.truncate(POINTS_MAX);
}

fn build_point(device: &WatchedDevice, span_s: [f64; 2]) -> LoadPoint {
    let figures = device.figures.as_ref().ok();
    let bounds = device.load.as_ref().and_then(|load| load.as_ref().ok());
    LoadPoint {
        span_s,
        per_s: figures.map(|f| [f.read.per_s, f.write.per_s]),
        mb_per_s: figures.map(|f| [f.read.mb_per_s, f.write.mb_per_s]),
        at_least_percent: bounds.map(|load| load.at_least_percent),
        at_most_percent: bounds.and_then(|load| load.at_most_percent),
    }
}

/// Halves the number of points: each is the mean of two neighbours, weighted by their lengths.
fn halve(points: &[LoadPoint]) -> Vec<LoadPoint> {
    let mean = |pair: &[LoadPoint]| {
        let [a, b] = pair else { return pair.first().copied() };
        let [a_seconds, b_seconds] = [a, b].map(|p| p.span_s[1] - p.span_s[0]);
        let mean = |x: f64, y: f64| (x * a_seconds + y * b_seconds) / (a_seconds + b_seconds);
        let single = |x: Option<f64>, y: Option<f64>| Some(mean(x?, y?));
        let pairs = |x: Option<[f64; 2]>, y: Option<[f64; 2]>| {
            let (x, y) = (x?, y?);
            Some([mean(x[0], y[0]), mean(x[1], y[1])])
        };
        Some(LoadPoint {
            span_s: [a.span_s[0], b.span_s[1]],
            per_s: pairs(a.per_s, b.per_s),
            mb_per_s: pairs(a.mb_per_s, b.mb_per_s),
            at_least_percent: single(a.at_least_percent, b.at_least_percent),
            at_most_percent: single(a.at_most_percent, b.at_most_percent),
        })
    };
    points.chunks(2).filter_map(mean).collect()
}

/// Minimum number of requests in an interval for a conclusion.
const REQUESTS_MIN: f64 = 100.0;

/// Minimum number of operations in flight of a result that counts as the limit of its device.
const IN_FLIGHT_MIN: u64 = 8;

/// At this percentage of the measured result or above, a load is at the limit.
const AT_LIMIT_PERCENT: f64 = 90.0;

/// Above this percentage of the measured result, a load exceeds the result by more than the noise between runs.
const BEYOND_LIMIT_PERCENT: f64 = 105.0;

/// At this percentage of the measured result or above, twice the load exceeds the result by more than the noise between
/// runs.
const MORE_THAN_HALF_PERCENT: f64 = 55.0;

/// Results with requests below this size measure IOPS, others throughput.
const LARGE_BYTES: u64 = 128 << 10;

/// A result shows the throughput of a device if its requests are at least this many times as large
/// as those of the result that shows its IOPS.
const LARGER_FACTOR: u64 = 8;

/// Throughput has room if less than this share of it is used.
const ROOM_SHARE: f64 = 0.5;

/// If the mean request has at least this share of the size limit, nearly all requests are as large as the limit.
const AT_SIZE_SHARE: f64 = 0.95;

/// The largest request that the kernel sends to a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSizeLimit {
    /// The current limit (`max_sectors_kb`).
    pub current: u64,
    /// The largest limit that the hardware allows (`max_hw_sectors_kb`).
    pub hardware: u64,
}

/// Draws conclusions about a device. They compare its figures, and its block events if they are known, with the results
/// that were measured on it and with its limit for the size of requests.
pub fn draw_conclusions(
    device: &str,
    figures: &DeviceInterval,
    events: Option<&Latencies>,
    limits: Option<&Limits>,
    size_limit: Option<RequestSizeLimit>,
) -> Vec<Conclusion> {
    let mut all = limits.map_or_else(Vec::new, |limits| load_conclusions(device, figures, events, limits));
    all.extend(size_limit.and_then(|limit| size_conclusion(device, figures, limit)));
    all
}

fn is_enough(requests: &Requests, figures: &DeviceInterval) -> bool {
    requests.per_s * figures.seconds >= REQUESTS_MIN
}

fn load_conclusions(
    device: &str,
    figures: &DeviceInterval,
    events: Option<&Latencies>,
    limits: &Limits,
) -> Vec<Conclusion> {
    let (load, nearest) = limits.compare(figures, events);
    let percent = load.at_least_percent;
    let Some(nearest) = nearest.filter(|n| n.capacity.in_flight >= IN_FLIGHT_MIN && !load.throttled) else {
        return Vec::new();
    };
    let Capacity { direction, request_bytes, requests_per_s, in_flight, .. } = nearest.capacity;
    let requests = requests_in(figures, direction);
    if !is_enough(requests, figures) {
        return Vec::new();
    }
    let is_exact = load.at_most_percent.is_some_and(|most| (most - percent).abs() < 0.5);
    let share = format!("{}{}", show_share(percent / 100.0), if is_exact { "" } else { " or more" });
    let what = if request_bytes < LARGE_BYTES { "IOPS" } else { "throughput" };
    let (word, bytes) = (direction.word(), show_bytes(request_bytes));
    let day = nearest.session.day().map_or_else(String::new, |day| format!(", {day}"));
    let measured = format!(
        "measured {} {word}/s of {bytes}, {in_flight} in flight (session {}{day})",
        show_rate(requests_per_s),
        nearest.session.session,
    );
    let events = events.and_then(|all| all.in_direction(direction));
    let order = events.and_then(|events| events.sequential_percent);
    let now = format!(
        "now {} {word}/s of {} on average{}",
        show_rate(requests.per_s),
        requests.request_bytes.map_or_else(|| "?".into(), |b| show_bytes(b as u64)),
        order.map_or_else(String::new, |percent| format!(", {} random", show_share(1.0 - percent / 100.0))),
    );
    let result = format!("{bytes} {word}{day}");
    let conclusion = |rule, text: String, condition: &str| Conclusion {
        rule,
        text,
        basis: format!("{condition}; {now}; {measured}: {share}"),
        is_new: true,
    };
    if (AT_LIMIT_PERCENT..=BEYOND_LIMIT_PERCENT).contains(&percent) {
        // Programs of the kernel serve a virtual device, and their CPU may have been its limit.
        let so =
            if is_served_by_cpu(device) { "it can hardly do more" } else { "a faster CPU will not help" };
        let text = format!("{device} is at {share} of the {what} measured on it ({result}): {so}");
        let condition =
            format!("the load is {AT_LIMIT_PERCENT} to {BEYOND_LIMIT_PERCENT} % of the measured capacity");
        let at_limit = conclusion(Rule::AtLimit, text, &condition);
        return std::iter::once(at_limit).chain(throughput_room(device, &nearest, &now)).collect();
    }
    if (MORE_THAN_HALF_PERCENT..AT_LIMIT_PERCENT).contains(&percent) {
        let twice = show_share(percent * 2.0 / 100.0);
        let text = format!(
            "{device} is at {share} of the {what} measured on it ({result}): twice this load would need \
             {twice} and not fit"
        );
        let condition = format!(
            "the load is {MORE_THAN_HALF_PERCENT} to {AT_LIMIT_PERCENT} % of the measured capacity, so twice the load exceeds it"
        );
        return vec![conclusion(Rule::TwiceDoesNotFit, text, &condition)];
    }
    Vec::new()
}

/// Whether a device is served by CPUs of this machine: a loop device, a volume, an array, or memory.
fn is_served_by_cpu(device: &str) -> bool {
    ["loop", "dm-", "md", "zram", "ram", "nullb", "bcache", "nbd"].iter().any(|kind| device.starts_with(kind))
}

/// The conclusion that throughput has room, for a load at the measured IOPS.
fn throughput_room(device: &str, nearest: &NearestLimit, now: &str) -> Option<Conclusion> {
    let NearestLimit { capacity, load_bytes_per_s, highest_bytes_per_s, highest_request_bytes, .. } = nearest;
    let is_small = capacity.request_bytes < LARGE_BYTES;
    let has_larger = *highest_request_bytes >= capacity.request_bytes.saturating_mul(LARGER_FACTOR);
    let has_room = *load_bytes_per_s < highest_bytes_per_s * ROOM_SHARE;
    if !is_small || !has_larger || !has_room {
        return None;
    }
    let [load, most] =
        [load_bytes_per_s, highest_bytes_per_s].map(|bytes_per_s| show_rate(bytes_per_s / 1e6));
    Some(Conclusion {
        rule: Rule::IopsNotThroughput,
        text: format!(
            "{device}: throughput has room ({load} of {most} MB/s measured), IOPS do not: fewer, larger requests \
             would move more data"
        ),
        basis: format!(
            "the load has reached the measured IOPS, and is below {} of the highest measured throughput: {now}; the \
             highest is {most} MB/s, in {} of {}",
            show_share(ROOM_SHARE),
            capacity.direction.word(),
            show_bytes(*highest_request_bytes),
        ),
        is_new: true,
    })
}

/// The conclusion that requests have the largest size that the kernel allows, if that may be raised.
fn size_conclusion(device: &str, figures: &DeviceInterval, limit: RequestSizeLimit) -> Option<Conclusion> {
    let RequestSizeLimit { current, hardware } = limit;
    if current == 0 || hardware <= current {
        return None;
    }
    let (direction, requests, bytes) = Direction::ALL.into_iter().find_map(|direction| {
        let requests = requests_in(figures, direction);
        let bytes = requests.request_bytes.filter(|_| is_enough(requests, figures))?;
        (bytes >= AT_SIZE_SHARE * current as f64).then_some((direction, requests, bytes))
    })?;
    let (current, hardware) = (current / 1024, hardware / 1024);
    Some(Conclusion {
        rule: Rule::AtRequestSizeLimit,
        text: format!(
            "{device}: {} are as large as max_sectors_kb = {current} allows, so the kernel splits larger ones: raising it \
             may help (echo {hardware} > /sys/block/{device}/queue/max_sectors_kb)",
            direction.word()
        ),
        basis: format!(
            "the mean request is at least {} of max_sectors_kb, and max_hw_sectors_kb is higher; now {} {}/s of \
             {:.1} KiB on average; max_sectors_kb {current}, max_hw_sectors_kb {hardware}",
            show_share(AT_SIZE_SHARE),
            show_rate(requests.per_s),
            direction.word(),
            bytes / 1024.0,
        ),
        is_new: true,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> BlockStat {
        BlockStat::parse(text).unwrap()
    }

    #[test]
    fn figures_are_those_of_the_formulas_to_the_digit() {
        // Fields of /proc/diskstats: reads, merged, sectors, ms; writes the same; in flight, busy ms, queue ms; discards; flushes.
        let before = at("1000 50 80000 400 200 20 16000 900 0 5000 1300 10 0 8000 3 40 120");
        let after = at("3500 150 280000 1650 700 520 136000 4150 7 6900 6250 15 1 48000 8 60 220");
        let f = between(&before, &after, 2.0).unwrap();
        let show = |value: f64| format!("{value:.2}");
        let shown = |r: &Requests| {
            [
                r.per_s,
                r.mb_per_s,
                r.request_bytes.unwrap() / 1024.0,
                r.await_ms.unwrap(),
                r.merged_per_s,
                r.merged_percent.unwrap(),
            ]
            .map(show)
            .join(" ")
        };
        // 2500 reads of 200,000 sectors, 100 merged, 1250 ms in 2 s: 2500/2; 102.4e6/2; 100,000 KiB/2500; 1250/2500; 100/2; 100/2600.
        assert_eq!(shown(&f.read), "1250.00 51.20 40.00 0.50 50.00 3.85");
        // 500 writes of 120,000 sectors, 500 merged, 3250 ms.
        assert_eq!(shown(&f.write), "250.00 30.72 120.00 6.50 250.00 50.00");
        // 5 discards of 40,000 sectors, 1 merged, 5 ms; 20 flushes, 100 ms.
        assert_eq!(shown(&f.discard.unwrap()), "2.50 10.24 4000.00 1.00 0.50 16.67");
        let flush = f.flush.unwrap();
        assert_eq!((show(flush.per_s), show(flush.await_ms.unwrap())), ("10.00".into(), "5.00".into()));
        // 4950 queue ms and 1900 busy ms in 2 s.
        assert_eq!(
            (show(f.depth_mean), show(f.util_percent), f.in_flight),
            ("2.48".into(), "95.00".into(), 7)
        );
        assert!((f.read.mib_per_s - 100_000.0 / 1024.0 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn means_need_requests_and_uncounted_figures_are_none() {
        let still = at("1 0 8 1 1 0 8 1 0 1 1");
        let f = between(&still, &still, 1.0).unwrap();
        assert_eq!(
            (f.read.per_s, f.read.request_bytes, f.read.await_ms, f.read.merged_percent),
            (0.0, None, None, None)
        );
        assert_eq!((f.discard, f.flush), (None, None));
        assert!(between(&still, &still, 0.0).is_err());
    }

    #[test]
    fn a_wrapped_time_counter_continues_and_a_counter_that_went_back_gives_no_figure() {
        let before = at("10 0 80 4294967290 5 0 40 10 0 4294967000 4294966296 0 0 0 0 3 4294967295");
        let after = at("12 0 96 4 5 0 40 10 0 704 1000 0 0 0 0 4 1");
        let f = between(&before, &after, 1.0).unwrap();
        assert_eq!((f.read.await_ms, f.depth_mean, f.util_percent), (Some(5.0), 2.0, 100.0));
        assert_eq!(f.flush.unwrap().await_ms, Some(2.0));
        // Another device under the name, or a counter that went backwards.
        for (text, word) in [
            ("3 0 96 4 5 0 40 10 0 704 1000 0 0 0 0 4 1", "reads"),
            ("12 0 70 4 5 0 40 10 0 704 1000 0 0 0 0 4 1", "reads"),
            ("12 0 96 4 5 0 40 9 0 704 1000 0 0 0 0 4 1", "time of writes"),
            ("12 0 96 4 5 0 40 10 0 704 1000 0 0 0 0 2 1", "flushes"),
        ] {
            let why = between(&before, &at(text), 1.0).unwrap_err();
            assert!(why.contains(word) && why.contains("jumped back"), "{why}");
        }
        // A counter of ms that is beyond 32 bits never wrapped.
        assert!(passed_ms("x", 1 << 40, 0).is_err());
        assert!(passed_ms("x", u64::MAX, u64::MAX - 1).is_err());
    }
}

#[test]
fn neighbouring_points_are_averaged_by_length_and_unknown_ones_remain_unknown() {
    let point = |from: f64, to: f64, reads: f64, most: Option<f64>| LoadPoint {
        span_s: [from, to],
        per_s: Some([reads, 0.0]),
        mb_per_s: None,
        at_least_percent: Some(reads / 10.0),
        at_most_percent: most,
    };
    let all = halve(&[
        point(0.0, 1.0, 100.0, Some(20.0)),
        point(1.0, 4.0, 300.0, None),
        point(4.0, 5.0, 7.0, None),
    ]);
    let [mean, last] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (mean.span_s, mean.per_s, mean.at_least_percent),
        ([0.0, 4.0], Some([250.0, 0.0]), Some(25.0))
    );
    assert_eq!((mean.mb_per_s, mean.at_most_percent, last.per_s), (None, None, Some([7.0, 0.0])));
}

#[cfg(test)]
mod conclusions_tests {
    use super::*;
    use model::machine::{Capacity, KnownBy};
    use model::watch::{Latency, MeasuredIn};

    fn disk() -> KnownBy {
        KnownBy { serial: Some("S".into()), bytes: 1 << 40, ..KnownBy::default() }
    }

    /// 4 KiB reads at 2000/s and 1 MiB reads at 250/s.
    fn limits(in_flight: u64, throttled: bool) -> Limits {
        let session =
            MeasuredIn { session: "20261120-1".into(), started: Some("2026-11-20T10:00:00+01:00".into()) };
        let capacity = |kib: u64, requests_per_s| Capacity {
            device: disk(),
            direction: Direction::Read,
            sequential: false,
            request_bytes: kib << 10,
            requests_per_s,
            in_flight,
            throttled,
        };
        let all = [(session.clone(), capacity(4, 2000.0)), (session, capacity(1024, 250.0))];
        Limits::from_capacities(&disk(), &all).unwrap()
    }

    fn reads(per_s: f64, kib: f64) -> DeviceInterval {
        let bytes = kib * 1024.0;
        let requests = |per_s: f64| Requests {
            per_s,
            mb_per_s: per_s * bytes / 1e6,
            mib_per_s: per_s * bytes / 1_048_576.0,
            request_bytes: (per_s > 0.0).then_some(bytes),
            await_ms: None,
            merged_per_s: 0.0,
            merged_percent: None,
        };
        DeviceInterval {
            seconds: 1.0,
            read: requests(per_s),
            write: requests(0.0),
            discard: None,
            flush: None,
            depth_mean: 8.0,
            in_flight: 8,
            util_percent: 100.0,
        }
    }

    fn rules(figures: &DeviceInterval, limits: &Limits) -> Vec<Rule> {
        draw_conclusions("vda", figures, None, Some(limits), None).into_iter().map(|c| c.rule).collect()
    }

    #[test]
    fn a_load_at_the_measured_iops_is_at_its_limit_while_throughput_has_room() {
        let all = draw_conclusions("vda", &reads(1840.0, 4.0), None, Some(&limits(32, false)), None);
        let [limit, room] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            limit.text,
            "vda is at 92 % of the IOPS measured on it (4 KiB reads, 2026-11-20): a faster CPU will not help"
        );
        assert!(
            limit.basis.contains("2,000 reads/s of 4 KiB, 32 in flight (session 20261120-1"),
            "{limit:?}"
        );
        assert_eq!(
            room.text,
            "vda: throughput has room (7.54 of 262 MB/s measured), IOPS do not: fewer, larger requests would move more data"
        );
    }

    /// Recorded on a loop device above one that a cgroup limits to 250 reads per second: `fathom bench`, then an interval of
    /// `fathom watch` during `fathom run --rw randread --bs 4k --rate 240`.
    #[test]
    fn random_reads_after_a_bench_are_at_the_limit_if_block_events_are_known() {
        let session = MeasuredIn {
            session: "20261128-203048-27895".into(),
            started: Some("2026-11-28T20:30:48+00:00".into()),
        };
        let capacity = |sequential, request_bytes, requests_per_s, in_flight| Capacity {
            device: disk(),
            direction: Direction::Read,
            sequential,
            request_bytes,
            requests_per_s,
            in_flight,
            throttled: false,
        };
        let bench = [capacity(true, 1 << 20, 249.094, 8), capacity(false, 4096, 251.256, 32)]
            .map(|c| (session.clone(), c));
        let limits = Limits::from_capacities(&disk(), &bench).unwrap();
        let interval = DeviceInterval {
            seconds: 1.054_292_483,
            depth_mean: 0.046_476_7,
            in_flight: 0,
            util_percent: 3.414_6,
            ..reads(238.074_352_276, 4.0)
        };
        let read = Latency {
            requests: 244,
            p50_ms: Some(0.135_679),
            p99_ms: None,
            max_ms: 4.125_307,
            sequential_percent: Some(0.0),
            random_bytes: Some(4096.0),
        };
        let events = Latencies { read: Some(read), ..Latencies::default() };
        let any_order = draw_conclusions("loop1", &interval, None, Some(&limits), None);
        assert!(any_order.is_empty(), "{any_order:?}");
        let all = draw_conclusions("loop1", &interval, Some(&events), Some(&limits), None);
        assert_eq!(all.iter().map(|c| c.rule).collect::<Vec<_>>(), [Rule::AtLimit, Rule::IopsNotThroughput]);
        assert_eq!(
            all[0].text,
            "loop1 is at 95 % of the IOPS measured on it (4 KiB reads, 2026-11-28): it can hardly do more"
        );
        assert!(all[0].basis.contains("4 KiB on average, 100 % random; measured 251 reads/s"), "{all:?}");
    }

    #[test]
    fn a_load_at_the_measured_throughput_allows_no_conclusion_about_iops() {
        let all = draw_conclusions("vda", &reads(240.0, 1024.0), None, Some(&limits(8, false)), None);
        let [limit] = &all[..] else { panic!("{all:?}") };
        assert!(limit.text.contains("96 % of the throughput measured on it (1 MiB reads"), "{limit:?}");
    }

    #[test]
    fn twice_a_load_of_more_than_half_does_not_fit() {
        let all = draw_conclusions("vda", &reads(1300.0, 4.0), None, Some(&limits(32, false)), None);
        let [twice] = &all[..] else { panic!("{all:?}") };
        assert!(twice.text.ends_with("twice this load would need 130 % and not fit"), "{twice:?}");
    }

    #[test]
    fn weak_figures_give_no_conclusion() {
        let (known, none) = (limits(32, false), Vec::<Rule>::new());
        for per_s in [0.0, 99.0, 1000.0, 1099.0, 2101.0, 5000.0] {
            assert_eq!(rules(&reads(per_s, 4.0), &known), none, "{per_s}");
        }
        for per_s in [1101.0, 1799.0] {
            assert_eq!(rules(&reads(per_s, 4.0), &known), [Rule::TwiceDoesNotFit], "{per_s}");
        }
        for per_s in [1801.0, 2099.0] {
            assert_eq!(
                rules(&reads(per_s, 4.0), &known),
                [Rule::AtLimit, Rule::IopsNotThroughput],
                "{per_s}"
            );
        }
        // A shallow queue may not have reached the limit, a cgroup has its own limit, and few requests may be chance.
        assert_eq!(rules(&reads(1840.0, 4.0), &limits(7, false)), none);
        assert_eq!(rules(&reads(1840.0, 4.0), &limits(32, true)), none);
        assert_eq!(rules(&DeviceInterval { seconds: 0.05, ..reads(1840.0, 4.0) }, &known), none);
        // Between two measured sizes the lower bound counts: 16 KiB take at least as long as 4 KiB.
        let all = draw_conclusions("vda", &reads(1840.0, 16.0), None, Some(&known), None);
        assert!(all[0].text.contains("92 % or more"), "{all:?}");
    }

    #[test]
    fn requests_at_max_sectors_kb_are_named_if_it_can_be_raised() {
        let at = |kib: f64, current: u64, hardware: u64| {
            let limit = RequestSizeLimit { current: current << 10, hardware: hardware << 10 };
            draw_conclusions("loop4", &reads(500.0, kib), None, None, Some(limit))
        };
        let all = at(64.0, 64, 1280);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            one.text,
            "loop4: reads are as large as max_sectors_kb = 64 allows, so the kernel splits larger ones: raising it may help (echo 1280 > /sys/block/loop4/queue/max_sectors_kb)"
        );
        assert!(one.basis.contains("500 reads/s of 64.0 KiB"), "{one:?}");
        assert!(at(61.0, 64, 1280).len() == 1 && at(60.0, 64, 1280).is_empty());
        assert!(at(64.0, 64, 64).is_empty(), "the hardware takes no more");
    }
}
