//! Draws conclusions from the figures of a device in one interval. A conclusion is drawn only if the figures support it; otherwise there
//! is none.
//!
//! | rule | condition |
//! |---|---|
//! | `at_limit` | the lower bound of the load is 90 to 105 % of what was measured |
//! | `iops_not_throughput` | `at_limit` by a result with requests below 128 KiB, and less than half of the highest measured throughput in that direction, which has requests 8 times as large |
//! | `twice_does_not_fit` | the lower bound of the load is 55 to 90 % of what was measured |
//! | `at_request_size_limit` | the mean request is at least 95 % of `max_sectors_kb`, and the hardware takes larger ones |
//!
//! The first three need a result that was measured with at least 8 operations in flight: with fewer, a deeper queue might serve more.
//! They are not drawn from a cgroup's limit, which holds for that cgroup only. A load above 105 % shows that the measured result is not
//! the limit, so it supports no conclusion. Every rule needs 100 requests in the interval.

use crate::watch::head_room::{Limits, NearestLimit};
use model::machine::Direction;
use model::units::{show_bytes, show_rate, show_share};
use model::watch::{Conclusion, DeviceInterval, Requests, Rule};

/// Fewest requests in an interval.
const REQUESTS_MIN: f64 = 100.0;
/// Fewest operations in flight of a result that counts as the limit of its device.
const IN_FLIGHT_MIN: u64 = 8;
/// A load from here on is at the limit.
const AT_LIMIT_PERCENT: f64 = 90.0;
/// A load above this is more than was measured, beyond the noise between runs.
const BEYOND_LIMIT_PERCENT: f64 = 105.0;
/// Twice a load from here on is more than was measured, beyond the noise between runs.
const MORE_THAN_HALF_PERCENT: f64 = 55.0;
/// Results with requests below this size measure IOPS, others throughput.
const LARGE_BYTES: f64 = (128 << 10) as f64;
/// Requests that are larger by this factor show what throughput a device has.
const LARGER_FACTOR: f64 = 8.0;
/// Throughput has room if less than this share of it is used.
const ROOM_SHARE: f64 = 0.5;
/// The mean size of requests from which nearly all of them are as large as the limit.
const AT_SIZE_SHARE: f64 = 0.95;

/// The largest request that the kernel sends to a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSizeLimit {
    /// As it is set (`max_sectors_kb`).
    pub current: u64,
    /// As far as it may be raised (`max_hw_sectors_kb`).
    pub hardware: u64,
}

/// Returns the conclusions from the figures of a device, by the results that were measured on it and its limit for the size of requests.
pub fn draw(
    device: &str,
    figures: &DeviceInterval,
    limits: Option<&Limits>,
    size_limit: Option<RequestSizeLimit>,
) -> Vec<Conclusion> {
    let mut all = limits.map_or_else(Vec::new, |limits| of_load(device, figures, limits));
    all.extend(size_limit.and_then(|limit| of_request_size(device, figures, limit)));
    all
}

fn is_enough(requests: &Requests, figures: &DeviceInterval) -> bool {
    requests.per_s * figures.seconds >= REQUESTS_MIN
}

fn of_load(device: &str, figures: &DeviceInterval, limits: &Limits) -> Vec<Conclusion> {
    let load = limits.load(figures);
    let percent = load.at_least_percent;
    let Some(nearest) = limits.nearest(figures).filter(|n| n.in_flight >= IN_FLIGHT_MIN && !load.throttled)
    else {
        return Vec::new();
    };
    let requests = requests_of(figures, nearest.direction);
    if !is_enough(requests, figures) {
        return Vec::new();
    }
    let is_exact = load.at_most_percent.is_some_and(|most| (most - percent).abs() < 0.5);
    let share = format!("{}{}", if is_exact { "" } else { "at least " }, show_share(percent / 100.0));
    let what = if nearest.bytes < LARGE_BYTES { "IOPS" } else { "throughput" };
    let measured = format!(
        "measured {} {}/s of {}, {} in flight (session {}{})",
        show_rate(nearest.per_s),
        nearest.direction.word(),
        show_bytes(nearest.bytes as u64),
        nearest.in_flight,
        nearest.session.session,
        nearest.session.day().map_or_else(String::new, |day| format!(", {day}")),
    );
    let now = format!(
        "now {} {}/s of {} on average",
        show_rate(requests.per_s),
        nearest.direction.word(),
        requests.request_bytes.map_or_else(|| "?".into(), |b| show_bytes(b as u64)),
    );
    let of_day = nearest.session.day().map_or_else(String::new, |day| format!(", {day}"));
    let of_result = format!("{} {}{of_day}", show_bytes(nearest.bytes as u64), nearest.direction.word());
    let conclusion = |rule, text: String, condition: &str| Conclusion {
        rule,
        text,
        basis: format!("{condition}; {now}; {measured}: {share}"),
        is_new: true,
    };
    if (AT_LIMIT_PERCENT..=BEYOND_LIMIT_PERCENT).contains(&percent) {
        let text = format!(
            "{device} is at {share} of the {what} measured on it ({of_result}): a faster CPU will not help"
        );
        let condition =
            format!("the load is {AT_LIMIT_PERCENT} to {BEYOND_LIMIT_PERCENT} % of what was measured");
        let at_limit = conclusion(Rule::AtLimit, text, &condition);
        return std::iter::once(at_limit).chain(room(device, &nearest, &now)).collect();
    }
    if (MORE_THAN_HALF_PERCENT..AT_LIMIT_PERCENT).contains(&percent) {
        let twice = show_share(percent * 2.0 / 100.0);
        let text = format!(
            "{device} is at {share} of the {what} measured on it ({of_result}): twice this load would need \
             {twice} and not fit"
        );
        let condition = format!(
            "the load is {MORE_THAN_HALF_PERCENT} to {AT_LIMIT_PERCENT} % of what was measured, so twice of it is more"
        );
        return vec![conclusion(Rule::TwiceDoesNotFit, text, &condition)];
    }
    Vec::new()
}

/// Of a load that is at the measured IOPS: whether throughput has room.
fn room(device: &str, nearest: &NearestLimit, now: &str) -> Option<Conclusion> {
    let (highest, bytes) = nearest.highest_throughput;
    let has_room = nearest.load_bytes_per_s < highest * ROOM_SHARE;
    if nearest.bytes >= LARGE_BYTES || bytes < nearest.bytes * LARGER_FACTOR || !has_room {
        return None;
    }
    let mb = |bytes_per_s: f64| show_rate(bytes_per_s / 1e6);
    let (load, most) = (mb(nearest.load_bytes_per_s), mb(highest));
    Some(Conclusion {
        rule: Rule::IopsNotThroughput,
        text: format!(
            "{device}: throughput has room ({load} of {most} MB/s measured), IOPS do not: fewer, larger requests \
             would move more data"
        ),
        basis: format!(
            "the load is at the measured IOPS, and below {} of the highest measured throughput; {now}; measured \
             {most} MB/s in {} of {}",
            show_share(ROOM_SHARE),
            nearest.direction.word(),
            show_bytes(bytes as u64),
        ),
        is_new: true,
    })
}

/// Whether requests are as large as the kernel lets them be, and may be larger.
fn of_request_size(device: &str, figures: &DeviceInterval, limit: RequestSizeLimit) -> Option<Conclusion> {
    let RequestSizeLimit { current, hardware } = limit;
    if current == 0 || hardware <= current {
        return None;
    }
    let (direction, requests, bytes) = Direction::ALL.into_iter().find_map(|direction| {
        let requests = requests_of(figures, direction);
        let bytes = requests.request_bytes.filter(|_| is_enough(requests, figures))?;
        (bytes >= AT_SIZE_SHARE * current as f64).then_some((direction, requests, bytes))
    })?;
    let (current, hardware) = (current / 1024, hardware / 1024);
    Some(Conclusion {
        rule: Rule::AtRequestSizeLimit,
        text: format!(
            "{device}: {} are as large as max_sectors_kb = {current} allows, which splits larger ones: raising it \
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

fn requests_of(figures: &DeviceInterval, direction: Direction) -> &Requests {
    match direction {
        Direction::Read => &figures.read,
        Direction::Write => &figures.write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::machine::{Capacity, KnownBy};
    use model::watch::MeasuredIn;

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
        draw("vda", figures, Some(limits), None).into_iter().map(|c| c.rule).collect()
    }

    #[test]
    fn a_load_at_the_measured_iops_is_at_its_limit_while_throughput_has_room() {
        let all = draw("vda", &reads(1840.0, 4.0), Some(&limits(32, false)), None);
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

    #[test]
    fn a_load_at_the_measured_throughput_says_nothing_of_iops() {
        let all = draw("vda", &reads(240.0, 1024.0), Some(&limits(8, false)), None);
        let [limit] = &all[..] else { panic!("{all:?}") };
        assert!(limit.text.contains("96 % of the throughput measured on it (1 MiB reads"), "{limit:?}");
    }

    #[test]
    fn twice_a_load_of_more_than_half_does_not_fit() {
        let all = draw("vda", &reads(1300.0, 4.0), Some(&limits(32, false)), None);
        let [twice] = &all[..] else { panic!("{all:?}") };
        assert!(twice.text.ends_with("twice this load would need 130 % and not fit"), "{twice:?}");
    }

    #[test]
    fn figures_that_support_nothing_give_no_conclusion() {
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
        // A shallow queue may not have reached the limit, a cgroup has its own, and few requests are chance.
        assert_eq!(rules(&reads(1840.0, 4.0), &limits(7, false)), none);
        assert_eq!(rules(&reads(1840.0, 4.0), &limits(32, true)), none);
        assert_eq!(rules(&DeviceInterval { seconds: 0.05, ..reads(1840.0, 4.0) }, &known), none);
        // Between two measured sizes the lower bound counts: 16 KiB take at least as long as 4 KiB.
        let all = draw("vda", &reads(1840.0, 16.0), Some(&known), None);
        assert!(all[0].text.contains("at least 92 %"), "{all:?}");
    }

    #[test]
    fn requests_at_max_sectors_kb_are_named_if_it_can_be_raised() {
        let at = |kib: f64, current: u64, hardware: u64| {
            let limit = RequestSizeLimit { current: current << 10, hardware: hardware << 10 };
            draw("loop4", &reads(500.0, kib), None, Some(limit))
        };
        let all = at(64.0, 64, 1280);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            one.text,
            "loop4: reads are as large as max_sectors_kb = 64 allows, which splits larger ones: raising it may help (echo 1280 > /sys/block/loop4/queue/max_sectors_kb)"
        );
        assert!(one.basis.contains("500 reads/s of 64.0 KiB"), "{one:?}");
        assert!(at(61.0, 64, 1280).len() == 1 && at(60.0, 64, 1280).is_empty());
        assert!(at(64.0, 64, 64).is_empty(), "the hardware takes no more");
    }
}
