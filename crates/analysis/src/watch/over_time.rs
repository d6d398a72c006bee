//! Collects the load of devices over time. The number of points is bounded: when there are too many, each two neighbours become their mean.

use model::watch::{DeviceOverTime, LoadOverTime, LoadPoint, Watched, WatchedDevice};

/// Most points of a device: more than a page can show.
const POINTS_MAX: usize = 2000;

/// Adds an interval, which began and ended at these s since watching began.
pub fn add(load: &mut LoadOverTime, watched: &Watched, span_s: [f64; 2]) {
    if load.started.is_empty() {
        watched.time.clone_into(&mut load.started);
        load.intervals_per_point = 1;
    }
    watched.time.clone_into(&mut load.ended);
    for device in &watched.devices {
        let new = device.conclusions.iter().filter(|c| c.is_new);
        load.conclusions.extend(new.map(|c| (watched.time.clone(), c.text.clone())));
        let limit_unknown = device.load.as_ref().and_then(|load| load.as_ref().err().cloned());
        match load.devices.iter_mut().find(|d| d.name == device.name) {
            Some(known) => {
                known.points.push(point(device, span_s));
                known.limit_unknown = limit_unknown;
            }
            None => load.devices.push(DeviceOverTime {
                name: device.name.clone(),
                points: vec![point(device, span_s)],
                limit_unknown,
            }),
        }
    }
    let most = load.devices.iter().map(|d| d.points.len()).max().unwrap_or(0);
    if most > POINTS_MAX {
        load.intervals_per_point = load.intervals_per_point.saturating_mul(2);
        load.devices.iter_mut().for_each(|device| device.points = halved(&device.points));
    }
    load.conclusions.truncate(POINTS_MAX);
}

fn point(device: &WatchedDevice, span_s: [f64; 2]) -> LoadPoint {
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

/// The mean of each two neighbours, by their lengths.
fn halved(points: &[LoadPoint]) -> Vec<LoadPoint> {
    let mean = |pair: &[LoadPoint]| {
        let [a, b] = pair else { return pair.first().copied() };
        let [long, short] = [a, b].map(|p| p.span_s[1] - p.span_s[0]);
        let mean = |x: f64, y: f64| (x * long + y * short) / (long + short);
        let both = |x: Option<f64>, y: Option<f64>| Some(mean(x?, y?));
        let pairs = |x: Option<[f64; 2]>, y: Option<[f64; 2]>| {
            let (x, y) = (x?, y?);
            Some([mean(x[0], y[0]), mean(x[1], y[1])])
        };
        Some(LoadPoint {
            span_s: [a.span_s[0], b.span_s[1]],
            per_s: pairs(a.per_s, b.per_s),
            mb_per_s: pairs(a.mb_per_s, b.mb_per_s),
            at_least_percent: both(a.at_least_percent, b.at_least_percent),
            at_most_percent: both(a.at_most_percent, b.at_most_percent),
        })
    };
    points.chunks(2).filter_map(mean).collect()
}

#[test]
fn two_neighbours_become_their_mean_by_length_and_what_is_not_known_stays_unknown() {
    let point = |from: f64, to: f64, reads: f64, most: Option<f64>| LoadPoint {
        span_s: [from, to],
        per_s: Some([reads, 0.0]),
        mb_per_s: None,
        at_least_percent: Some(reads / 10.0),
        at_most_percent: most,
    };
    let all = halved(&[
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
