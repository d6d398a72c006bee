//! The figures of a device between two looks at its counters, by the formulas of sysstat's iostat (`iostat(1)`).
//!
//! For: rates, sizes, waiting times and depth of an interval; counters that wrapped, and those that jumped back. Not for: which
//! devices are watched.
//!
//! With `d` for the difference of a counter and T for the time between both looks:
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
//! Where nothing completed there is no mean: iostat prints 0 there.

use model::Known;
use model::evidence::{BlockFlow, DiskCounters, Flushes};
use model::watch::{DeviceInterval, FlushRequests, Requests};

/// ms counters have 32 bits in the kernel, whatever the machine has (`block/genhd.c` prints them as `%u`).
const WRAP_MS: u64 = 1 << 32;
/// Bytes of 10^6, and of 2^20.
const MB: f64 = 1e6;
const MIB: f64 = 1_048_576.0;

/// What a device did between two looks, `seconds` apart.
///
/// # Errors
/// That no time has passed, or which counter jumped back.
pub fn between(before: &DiskCounters, after: &DiskCounters, seconds: f64) -> Known<DeviceInterval> {
    if !seconds.is_finite() || seconds <= 0.0 {
        return Err("no time has passed between two looks".into());
    }
    let discard = match before.discard.zip(after.discard) {
        Some((a, b)) => Some(requests("discards", a, b, seconds)?),
        None => None,
    };
    let flush = match before.flush.zip(after.flush) {
        Some((a, b)) => Some(flushes(a, b, seconds)?),
        None => None,
    };
    Ok(DeviceInterval {
        seconds,
        read: requests("reads", before.read, after.read, seconds)?,
        write: requests("writes", before.write, after.write, seconds)?,
        discard,
        flush,
        depth_mean: passed_ms("requests in the queue", before.queue_ms, after.queue_ms)? / 1000.0 / seconds,
        in_flight: after.in_flight,
        util_percent: passed_ms("use", before.busy_ms, after.busy_ms)? / 1000.0 / seconds * 100.0,
    })
}

fn requests(of: &str, a: BlockFlow, b: BlockFlow, seconds: f64) -> Known<Requests> {
    let ios = counted(of, a.ios, b.ios)?;
    let merges = counted(of, a.merges, b.merges)?;
    let bytes = counted(of, a.bytes, b.bytes)?;
    let ms = passed_ms(of, a.ms, b.ms)?;
    Ok(Requests {
        per_s: ios / seconds,
        mb_per_s: bytes / MB / seconds,
        mib_per_s: bytes / MIB / seconds,
        request_bytes: over(bytes, ios),
        await_ms: over(ms, ios),
        merged_per_s: merges / seconds,
        merged_percent: over(merges * 100.0, merges + ios),
    })
}

fn flushes(a: Flushes, b: Flushes, seconds: f64) -> Known<FlushRequests> {
    let ios = counted("flushes", a.ios, b.ios)?;
    let ms = passed_ms("flushes", a.ms, b.ms)?;
    Ok(FlushRequests { per_s: ios / seconds, await_ms: over(ms, ios) })
}

fn over(sum: f64, number: f64) -> Option<f64> {
    (number > 0.0).then(|| sum / number)
}

/// The difference of a counter that never wraps.
fn counted(of: &str, before: u64, after: u64) -> Known<f64> {
    let passed = after.checked_sub(before).ok_or_else(|| jumped(of))?;
    Ok(passed as f64)
}

/// The difference of a counter of ms, which may have wrapped; half of its range is beyond any interval, so more of it is a jump back.
fn passed_ms(of: &str, before: u64, after: u64) -> Known<f64> {
    if let Some(passed) = after.checked_sub(before) {
        return Ok(passed as f64);
    }
    let wrapped = (after + WRAP_MS).checked_sub(before).filter(|ms| *ms < WRAP_MS / 2);
    wrapped.map(|ms| ms as f64).ok_or_else(|| jumped(&format!("the time of {of}")))
}

fn jumped(of: &str) -> String {
    format!("the kernel's counter of {of} jumped back; figures begin anew with the next interval")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DiskCounters {
        DiskCounters::parse(text).unwrap()
    }

    #[test]
    fn figures_are_those_of_the_formulas_to_the_digit() {
        // Fields of /proc/diskstats: reads, merged, sectors, ms; writes the same; in flight, busy ms, queue ms; discards; flushes.
        let before = at("1000 50 80000 400 200 20 16000 900 0 5000 1300 10 0 8000 3 40 120");
        let after = at("3500 150 280000 1650 700 520 136000 4150 7 6900 6250 15 1 48000 8 60 220");
        let f = between(&before, &after, 2.0).unwrap();
        let said = |value: f64| format!("{value:.2}");
        let of = |r: &Requests| {
            [
                r.per_s,
                r.mb_per_s,
                r.request_bytes.unwrap() / 1024.0,
                r.await_ms.unwrap(),
                r.merged_per_s,
                r.merged_percent.unwrap(),
            ]
            .map(said)
            .join(" ")
        };
        // 2500 reads of 200,000 sectors, 100 merged, 1250 ms in 2 s: 2500/2; 102.4e6/2; 100,000 KiB/2500; 1250/2500; 100/2; 100/2600.
        assert_eq!(of(&f.read), "1250.00 51.20 40.00 0.50 50.00 3.85");
        // 500 writes of 120,000 sectors, 500 merged, 3250 ms.
        assert_eq!(of(&f.write), "250.00 30.72 120.00 6.50 250.00 50.00");
        // 5 discards of 40,000 sectors, 1 merged, 5 ms; 20 flushes, 100 ms.
        assert_eq!(of(&f.discard.unwrap()), "2.50 10.24 4000.00 1.00 0.50 16.67");
        let flush = f.flush.unwrap();
        assert_eq!((said(flush.per_s), said(flush.await_ms.unwrap())), ("10.00".into(), "5.00".into()));
        // 4950 ms of the queue and 1900 busy ones in 2 s.
        assert_eq!(
            (said(f.depth_mean), said(f.util_percent), f.in_flight),
            ("2.48".into(), "95.00".into(), 7)
        );
        assert!((f.read.mib_per_s - 100_000.0 / 1024.0 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn where_nothing_completed_there_is_no_mean_and_what_is_not_counted_is_none() {
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
    fn time_that_wrapped_goes_on_and_what_jumped_back_has_no_figure() {
        let before = at("10 0 80 4294967290 5 0 40 10 0 4294967000 4294966296 0 0 0 0 3 4294967295");
        let after = at("12 0 96 4 5 0 40 10 0 704 1000 0 0 0 0 4 1");
        let f = between(&before, &after, 1.0).unwrap();
        assert_eq!((f.read.await_ms, f.depth_mean, f.util_percent), (Some(5.0), 2.0, 100.0));
        assert_eq!(f.flush.unwrap().await_ms, Some(2.0));
        // Another device under the name, or a counter that is not what it was.
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
    }
}
