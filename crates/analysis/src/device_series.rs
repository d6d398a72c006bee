//! The course of the devices in a run: what they had completed at each moment that was looked at.
//!
//! For: counters between any two times, drawn straight from look to look. Not for: the whole run (`CaseRun::counted`), which needs
//! no looks inside.

use crate::case::CaseRun;
use model::Known;
use model::evidence::{BlockStat, Moment};
use model::machine::Layer;

/// What layers had completed since the start of a run, by time.
pub(crate) struct Course {
    /// ns since the workers began, and the counters; in the order of time. At least two.
    points: Vec<(f64, BlockStat)>,
}

/// What layers completed in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    /// Its length, as far as it was looked at.
    pub seconds: f64,
    /// Reads and writes that completed.
    pub ios: f64,
    /// Bytes that these moved.
    pub bytes: f64,
    /// Mean time of a request in ns; `None` where none completed.
    pub latency_ns: Option<f64>,
    /// Mean requests in flight.
    pub in_flight: f64,
}

impl Course {
    /// The course of these layers in a run.
    ///
    /// # Errors
    /// Why one was not counted.
    pub(crate) fn from_run(ran: &CaseRun, layers: &[&Layer]) -> Known<Self> {
        let (start, stop) = (ran.at(Moment::Start)?, ran.at(Moment::Stop)?);
        let parse = |text: &str| BlockStat::parse(text);
        let mut first = Vec::new();
        for layer in layers {
            first.push(parse(start.text(&layer.stat_file)?)?);
        }
        let zero = began_ns(ran)?;
        let mut now = first.clone();
        let mut points = vec![(start.at_ns as f64 - zero, BlockStat::default())];
        let during = ran.run.evidence.iter().filter(|s| s.moment == Moment::During);
        for look in during.chain([stop]) {
            for (layer, stat) in layers.iter().zip(&mut now) {
                // A file that is not there has not changed.
                if look.files.contains_key(&layer.stat_file) {
                    *stat = parse(look.text(&layer.stat_file)?)?;
                }
            }
            let mut sum = BlockStat::default();
            for ((stat, before), layer) in now.iter().zip(&first).zip(layers) {
                let passed = stat.since(before);
                let backwards = || format!("{}: the counters went backwards", layer.stat_file);
                sum = sum.plus(&passed.ok_or_else(backwards)?);
            }
            let at = look.at_ns as f64 - zero;
            if points.last().is_some_and(|(last, _)| at > *last) {
                points.push((at, sum));
            }
        }
        if points.len() < 2 {
            Err("no time passed between the snapshots at start and stop".into())
        } else {
            Ok(Self { points })
        }
    }

    /// What was completed between two times in ns since the workers began; `None` where that is empty or was not looked at.
    pub(crate) fn between(&self, from_ns: f64, to_ns: f64) -> Option<Stretch> {
        let (first, last) = (self.points.first()?.0, self.points.last()?.0);
        let (from_ns, to_ns) = (from_ns.max(first), to_ns.min(last));
        if to_ns <= from_ns {
            return None;
        }
        let (a, b) = (self.at(from_ns)?, self.at(to_ns)?);
        let [ios, bytes, ms, queue_ms] = std::array::from_fn(|i| b[i] - a[i]);
        Some(Stretch {
            seconds: (to_ns - from_ns) / 1e9,
            ios,
            bytes,
            latency_ns: (ios >= 0.5).then(|| ms * 1e6 / ios),
            in_flight: queue_ms * 1e6 / (to_ns - from_ns),
        })
    }

    /// What was completed in the looks that lie wholly between two times; `None` where fewer than two looks do.
    pub(crate) fn within(&self, from_ns: f64, to_ns: f64) -> Option<Stretch> {
        let mut inside = self.points.iter().map(|p| p.0).filter(|at| (from_ns..=to_ns).contains(at));
        let first = inside.next()?;
        self.between(first, inside.next_back()?)
    }

    /// Requests, bytes, ms and queue ms at a time.
    fn at(&self, ns: f64) -> Option<[f64; 4]> {
        let numbers = |s: &BlockStat| {
            let t = s.total();
            [t.ios, t.bytes, t.ms, s.queue_ms].map(|n| n as f64)
        };
        let after = self.points.iter().position(|p| p.0 >= ns)?;
        let (at, counted) = self.points.get(after)?;
        let Some((before, earlier)) = after.checked_sub(1).and_then(|i| self.points.get(i)) else {
            return Some(numbers(counted));
        };
        let part = (ns - before) / (at - before);
        let (a, b) = (numbers(earlier), numbers(counted));
        Some(std::array::from_fn(|i| a[i] + (b[i] - a[i]) * part))
    }
}

/// When the workers of a run began, in ns since the session began. They end right before the stop, and how long they took is
/// known; the snapshot before them takes a time that is not.
fn began_ns(ran: &CaseRun) -> Known<f64> {
    let (start, stop) = (ran.at(Moment::Start)?.at_ns, ran.at(Moment::Stop)?.at_ns);
    let longest = ran.end.workers.iter().map(|w| w.wall_ns).max().filter(|ns| *ns > 0);
    Ok(longest.map_or(start, |ns| stop.saturating_sub(ns).max(start)) as f64)
}

/// Adds looks at the device each half second to runs that have none, with what it had done by then as a share of the whole and
/// the ms that it took per request.
#[cfg(test)]
pub(crate) fn look_inside(
    record: &mut model::record::Record,
    ms_per_io: impl Fn(f64) -> f64,
    done: impl Fn(f64) -> f64,
) {
    const FILE: &str = "/sys/block/vda/stat";
    for run in &mut record.runs {
        let (start, stop) = (run.evidence[0].clone(), run.evidence[1].clone());
        let span = run.end.as_ref().map_or(0, |e| e.workers.iter().map(|w| w.wall_ns).max().unwrap_or(0));
        let from = stop.at_ns - span;
        let parse = |s: &model::evidence::Snapshot| BlockStat::parse(s.text(FILE).unwrap()).unwrap();
        let (a, b) = (parse(&start), parse(&stop));
        let ios = (b.total().ios - a.total().ios) as f64;
        let mut ms = a.read.ms as f64;
        let mut before = 0.0;
        let steps = span / 500_000_000;
        for step in 1..=steps {
            let part = step as f64 / steps as f64;
            let at = (a.read.ios as f64 + ios * done(part)) as u64;
            ms += ios * (done(part) - before) * ms_per_io(part);
            before = done(part);
            let w = a.write;
            let text = format!(
                "{at} 0 {} {} {} 0 {} {} 0 0 {} 0 0 0 0 0 0\n",
                at * 8,
                ms as u64,
                w.ios,
                w.bytes / 512,
                w.ms,
                a.queue_ms + ms as u64 - a.read.ms
            );
            let files = [(FILE.to_owned(), Ok(text))].into();
            let moment = if step == steps { Moment::Stop } else { Moment::During };
            let look = model::evidence::Snapshot {
                moment,
                at_ns: from + step * 500_000_000,
                files,
                targets: Vec::new(),
            };
            if step == steps {
                run.evidence[1].files.insert(FILE.to_owned(), look.files[FILE].clone());
            } else {
                let last = run.evidence.len();
                run.evidence.insert(last, look);
            }
        }
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn counters_are_drawn_from_look_to_look() {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    look_inside(&mut record, |part| if part <= 0.5 { 1.0 } else { 3.0 }, |part| part);
    let case = &crate::case::cases(&record)[0];
    let course = Course::from_run(&case.runs[0], &case.tops().unwrap()).unwrap();
    let first = course.between(0.0, 0.5e9).unwrap();
    let second = course.between(0.5e9, 1e9).unwrap();
    assert!((second.ios - 5_500.0).abs() < 2.0 && (second.bytes - 5_500.0 * 4096.0).abs() < 8192.0);
    assert!(first.latency_ns < second.latency_ns.map(|l| l * 0.6), "{first:?} {second:?}");
    assert!((course.between(0.5e9, 0.75e9).unwrap().ios - 2_750.0).abs() < 2.0);
    assert_eq!((course.between(2e9, 3e9), course.within(0.6e9, 0.9e9)), (None, None));
}

#[test]
fn a_run_without_counters_has_no_course_and_says_why() {
    let record = Fixture { stat_unreadable: true, ..Fixture::honest() }.record();
    let case = &crate::case::cases(&record)[0];
    assert!(
        Course::from_run(&case.runs[0], &case.tops().unwrap()).is_err_and(|why| why.contains("Permission"))
    );
}
