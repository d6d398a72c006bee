//! The load curve as a plot: latency against offered load, the knee, the latency target and where more came than was served.
//!
//! For: a report of `fathom limit`. Not for: which load meets the target, which the report says.

use super::page::{card, folded, key};
use super::plot::axis::{Axis, SIDE};
use super::plot::{Label, Plot, band, dots, line, spread_labels};
use super::table;
use super::words::{rate_tick, short_number, time, time_tick};
use crate::formats::text::report::table as text_table;
use model::load::{LoadCurve, LoadPoint, LoadState};
use model::report::Report;
use model::units::{show_rate, show_share};

/// Half the width of the end of a bar.
const BAR_END: f64 = 4.0;

/// The card of a load curve.
pub(super) fn load_curve_card(report: &Report, curve: &LoadCurve) -> String {
    let mut lead = Vec::new();
    if report.answer.as_ref().is_none_or(|answer| answer.sentence != curve.sentence) {
        lead.push(curve.sentence.clone());
    }
    if let Some(capacity) = curve.capacity_iops {
        let interval = curve.capacity_interval.map_or_else(String::new, |[low, high]| {
            format!(" (95 % interval {} to {})", show_rate(low), show_rate(high))
        });
        lead.push(format!("Capacity: {} operations per second in a closed loop{interval}. Latency counts from the intended start.", show_rate(capacity)));
    }
    let drawn = CurveDrawing::from_curve(curve);
    let mut body = drawn.key();
    body += &drawn.plot(&common_curve_axes(&[&drawn])).html();
    body += &folded(
        "Every load as a table",
        &table::table("Every load that was offered", &text_table(report, true)),
    );
    card("Latency against load", &lead, &body)
}

/// Load curves of several sessions by name, on the same axes.
pub(super) fn draw_load_curves(curves: &[(String, &LoadCurve)]) -> Vec<(String, String)> {
    let mut all: Vec<CurveDrawing> =
        curves.iter().map(|(_, curve)| CurveDrawing::from_curve(curve)).collect();
    // In shares of capacities of their own, one that serves half as much would look the same.
    for drawn in &mut all {
        drawn.in_shares = false;
    }
    let axes = common_curve_axes(&all.iter().collect::<Vec<_>>());
    let html =
        |drawn: &CurveDrawing| format!("{}{}", drawn.key(), Plot { height: 220, ..drawn.plot(&axes) }.html());
    curves.iter().zip(&all).map(|((name, _), drawn)| (name.clone(), html(drawn))).collect()
}

/// Axes of load and of latency that have all points of these curves on them.
fn common_curve_axes(all: &[&CurveDrawing]) -> (Axis, Axis) {
    let loads = all.iter().flat_map(|drawn| drawn.curve.points.iter().map(|p| drawn.load(p)));
    let most = loads.fold(0.0, f64::max);
    let in_shares = all.iter().any(|drawn| drawn.in_shares);
    let x = Axis::linear(0.0, 1.04 * most.max(if in_shares { 100.0 } else { 1.0 }));
    (x, Axis::log(all.iter().flat_map(|drawn| drawn.latencies())))
}

struct CurveDrawing<'c> {
    curve: &'c LoadCurve,
    rank: &'c str,
    /// Whether loads are told in percent of the capacity.
    in_shares: bool,
}

impl<'c> CurveDrawing<'c> {
    fn from_curve(curve: &'c LoadCurve) -> Self {
        Self { curve, rank: curve.percentile(), in_shares: curve.points.iter().all(|p| p.share.is_some()) }
    }

    fn key(&self) -> String {
        let rank = format!("p{}", self.rank);
        let has = |state| self.curve.points.iter().any(|p| p.state == state);
        let mut items = vec![
            ("ours", "p50"),
            ("third", rank.as_str()),
            ("mean", "mean"),
            ("bar", "95 % interval over runs"),
        ];
        if has(LoadState::Overload) {
            items.push(("mark", "overload: more came than was served"));
        }
        key(&items)
    }

    /// Where a load lies: in percent of the capacity where that is known.
    fn load(&self, point: &LoadPoint) -> f64 {
        let share = point.share.filter(|_| self.in_shares);
        share.map_or(point.offered_iops as f64, |share| 100.0 * share)
    }

    fn value(point: &LoadPoint, rank: &str) -> f64 {
        point.percentiles_ns.get(rank).copied().flatten().map_or(f64::NAN, |ns| ns as f64)
    }

    /// What the axis of latency has to show.
    fn latencies(&self) -> Vec<f64> {
        let points = &self.curve.points;
        let values = points.iter().flat_map(|p| {
            let known = [Self::value(p, "50"), Self::value(p, self.rank), p.mean_ns.unwrap_or(f64::NAN)];
            known.into_iter().chain(p.percentile_intervals_ns.get(self.rank).copied().into_iter().flatten())
        });
        let target = self.curve.latency_target.as_ref().map(|t| t.latency_ns as f64);
        // An interval of three runs can be absurd: no more of it than ten times the values.
        let told: Vec<f64> =
            points.iter().flat_map(|p| [Self::value(p, "50"), Self::value(p, self.rank)]).collect();
        let (low, high) = told
            .iter()
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), v| (l.min(*v), h.max(*v)));
        values.filter(|v| *v >= low / 3.0 && *v <= 3.0 * high).chain(target).collect()
    }

    fn plot(&self, (x, y): &(Axis, Axis)) -> Plot {
        let percent = |v: f64| format!("{} %", short_number(v));
        let capacity = self.curve.capacity_iops.map_or_else(|| "?".into(), show_rate);
        let mut plot = Plot {
            title: "Latency (logarithmic)".into(),
            says: self.describe(),
            height: 300,
            y: y.ticks_down(time_tick),
            x: if self.in_shares { x.ticks(percent) } else { x.ticks(rate_tick) },
            x_title: if self.in_shares {
                format!("Offered load, of the capacity ({capacity} operations per second)")
            } else {
                "Offered load, operations per second".into()
            },
            ..Plot::default()
        };
        self.ground(&mut plot, x, y);
        self.lines(&mut plot, x, y);
        plot.right = spread_labels(std::mem::take(&mut plot.right), 52.0);
        let stops = self.curve.points.iter().map(|p| (x.along(self.load(p)), self.describe_point(p)));
        plot.stop_at(&stops.collect::<Vec<_>>());
        plot
    }

    /// The target's zone, the knee and the loads that were too much.
    fn ground(&self, plot: &mut Plot, x: &Axis, y: &Axis) {
        if let Some(target) = &self.curve.latency_target {
            let at = y.down(target.latency_ns as f64);
            plot.draw("over", &band::full_width(0.0, at));
            plot.draw("target", &line::line([(0.0, at), (SIDE, at)]));
            let text = format!("p{} <= {}", target.percentile, time(target.latency_ns as f64));
            plot.right.push(Label { at, text, class: "of-mark" });
        }
        if let Some(knee) = &self.curve.knee {
            let load = knee.share.filter(|_| self.in_shares).map_or(knee.iops, |share| 100.0 * share);
            let at = x.along(load);
            plot.draw("knee", &line::line([(at, 0.0), (at, SIDE)]));
            let word = if knee.reached { "knee" } else { "knee, or above" };
            let class = if at > 600.0 { "end" } else { "" };
            plot.labels.push(Label { at, text: format!("{word}: {}/s", show_rate(knee.iops)), class });
        }
        for point in self.curve.points.iter().filter(|p| p.state == LoadState::Overload) {
            let at = x.along(self.load(point));
            // A cross at the upper edge: there is no latency to draw.
            let cross = [[(at - 7.0, 20.0), (at + 7.0, 60.0)], [(at - 7.0, 60.0), (at + 7.0, 20.0)]];
            for stroke in cross {
                plot.draw("mark", &line::line(stroke));
            }
        }
    }

    fn lines(&self, plot: &mut Plot, x: &Axis, y: &Axis) {
        let points = &self.curve.points;
        let through = |of: &dyn Fn(&LoadPoint) -> f64| {
            points.iter().map(|p| (x.along(self.load(p)), y.down(of(p)))).collect::<Vec<_>>()
        };
        let mean = through(&|p| p.mean_ns.unwrap_or(f64::NAN));
        plot.draw("mean", &line::line(mean));
        for (rank, class, dot, bar, ink) in [
            ("50", "ours", "dot", "bar", "of-ours"),
            (self.rank, "third", "dot of-third", "bar of-third", "of-third"),
        ] {
            let places = through(&|p| Self::value(p, rank));
            plot.draw(class, &line::line(places.iter().copied()));
            for (point, (at, _)) in points.iter().zip(&places) {
                if let Some([low, high]) = point.percentile_intervals_ns.get(rank) {
                    let [top, bottom] = [y.down(*high), y.down(*low)].map(|v| v.clamp(0.0, SIDE));
                    plot.draw(bar, &line::line([(*at, top), (*at, bottom)]));
                    for end in [top, bottom] {
                        plot.draw(bar, &line::line([(at - BAR_END, end), (at + BAR_END, end)]));
                    }
                }
            }
            plot.draw(dot, &dots::dots(places.iter().copied()));
            if let Some((_, at)) = places.iter().rev().find(|(_, v)| v.is_finite()) {
                plot.right.push(Label { at: *at, text: format!("p{rank}"), class: ink });
            }
        }
    }

    fn describe_point(&self, point: &LoadPoint) -> String {
        let state = match point.state {
            LoadState::Served => "",
            LoadState::Late => "\nlate: more than a tenth of a percentile is fathom's own lateness",
            LoadState::Overload => "\noverload: more came than was served",
            LoadState::Void => "\nvoid",
        };
        let ns =
            |rank: &str| super::words::time_or_dash(Some(Self::value(point, rank)).filter(|v| v.is_finite()));
        let share = point.share.map_or_else(String::new, |s| format!(" ({})", show_share(s)));
        format!(
            "{}/s{share}\np50 {}, p{} {}{state}",
            show_rate(point.offered_iops as f64),
            ns("50"),
            self.rank,
            ns(self.rank)
        )
    }

    fn describe(&self) -> String {
        let all: Vec<String> =
            self.curve.points.iter().map(|p| self.describe_point(p).replace('\n', ", ")).collect();
        format!("Latency against offered load: {}", all.join("; "))
    }
}

#[test]
fn curves_of_several_sessions_have_the_same_axes() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/pieces/limit.json");
    let one: LoadCurve = serde_json::from_str(golden)?;
    let mut slower = one.clone();
    for point in &mut slower.points {
        point.percentiles_ns.values_mut().for_each(|ns| *ns = ns.map(|ns| ns * 4));
        point.percentile_intervals_ns.clear();
    }
    let drawn = [CurveDrawing::from_curve(&one), CurveDrawing::from_curve(&slower)];
    let axes = common_curve_axes(&drawn.iter().collect::<Vec<_>>());
    let plots = drawn.iter().map(|d| d.plot(&axes)).collect::<Vec<_>>();
    assert_eq!((&plots[0].x, &plots[0].y), (&plots[1].x, &plots[1].y));
    let first = |curve: &LoadCurve| {
        curve.points.first().map_or(f64::NAN, |p| axes.1.down(CurveDrawing::value(p, "50")))
    };
    assert!(first(&slower) < first(&one), "four times as long lies further up");
    assert_eq!(draw_load_curves(&[("a".into(), &one), ("b".into(), &slower)]).len(), 2);
    Ok(())
}
