//! Plots: from values to the SVG and the labels of a figure. Each file is one noun: an axis, lines, bands, dots, ...
//!
//! For: pure functions that a page puts together, and the frame around a drawing. Not for: which plots a page has.
//!
//! A drawing has 1000 units a side, whatever its size on the screen: strokes keep their width (`non-scaling-stroke`), dots are strokes
//! without length, and labels are HTML at percent positions, so that they neither stretch nor print as pictures.

pub(crate) mod axis;
pub(crate) mod band;
pub(crate) mod cells;
pub(crate) mod density;
pub(crate) mod dots;
pub(crate) mod flow;
pub(crate) mod heat;
pub(crate) mod line;
pub(crate) mod strip;
pub(crate) mod whiskers;

use self::axis::{SIDE, Tick, label_classes};
use askama::Template;
use serde_json::json;

/// Points that a crosshair stops at, in a plot at most.
const MAX_STOPS: usize = 150;

/// Class of labels in the lowest line of a drawing.
pub(crate) const LOWEST_LINE: &str = "low";

/// A figure: a drawing with its axes.
#[derive(Template, Default)]
#[template(path = "plot.html")]
pub(crate) struct Plot {
    /// What is drawn, and in which unit.
    pub(crate) title: String,
    /// What is drawn, in words for whoever cannot see it, with its main numbers.
    pub(crate) says: String,
    /// Height in pixels.
    pub(crate) height: u32,
    /// Marks from the top down.
    pub(crate) y: Vec<Tick>,
    /// Marks from left to right.
    pub(crate) x: Vec<Tick>,
    /// What the x axis is of; empty where that is said elsewhere.
    pub(crate) x_title: String,
    /// Beside the right end, from the top down.
    pub(crate) right: Vec<Label>,
    /// In the drawing.
    pub(crate) labels: Vec<Label>,
    /// Paths of the drawing.
    pub(crate) marks: String,
    /// Plots of one name share their crosshair.
    pub(crate) link: String,
    /// Stops of the crosshair, as JSON.
    pub(crate) points: String,
}

/// Words at a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    /// Where, from 0 to [`SIDE`].
    pub(crate) at: f64,
    /// The words.
    pub(crate) text: String,
    /// Looks, as the style names them.
    pub(crate) class: &'static str,
}

impl Plot {
    /// Adds a path with these looks.
    pub(crate) fn draw(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            self.marks += &format!(r#"<path class="{class}" d="{path}"/>"#);
        }
    }

    /// Where a crosshair stops, and what it says there.
    pub(crate) fn stop_at(&mut self, stops: &[(f64, String)]) {
        let every = stops.len().div_ceil(MAX_STOPS).max(1);
        let kept = stops.iter().step_by(every).filter(|(x, _)| x.is_finite());
        let json: Vec<_> = kept.map(|(x, words)| json!([x.round(), words])).collect();
        if !json.is_empty() {
            self.points = serde_json::Value::Array(json).to_string();
        }
    }

    /// The marks from left to right, each with the class that hides its label where there is too little room.
    fn marks_below(&self) -> impl Iterator<Item = (&Tick, &'static str)> {
        self.x.iter().zip(tick_classes(&self.x))
    }

    /// The labels in the drawing, each with the class that hides it where it would overlap another: only those in the lowest line, which
    /// name the runs.
    fn labels_inside(&self) -> impl Iterator<Item = (&Label, &'static str)> {
        let is_low = |label: &Label| label.class == LOWEST_LINE;
        let low: Vec<(f64, &str)> = self
            .labels
            .iter()
            .filter(|label| is_low(label))
            .map(|label| (label.at, label.text.as_str()))
            .collect();
        let mut classes = label_classes(&low).into_iter();
        self.labels
            .iter()
            .map(move |label| (label, if is_low(label) { classes.next().unwrap_or_default() } else { "" }))
    }

    /// The figure with its axes, to be put into a page as it is.
    pub(crate) fn html(&self) -> String {
        self.render().unwrap_or_default()
    }
}

/// The class of each mark's label, as [`label_classes`] has it.
pub(crate) fn tick_classes(ticks: &[Tick]) -> Vec<&'static str> {
    label_classes(&ticks.iter().map(|tick| (tick.at, tick.label.as_str())).collect::<Vec<_>>())
}

/// A place in percent of the side, for styles.
fn percent(at: f64) -> String {
    let percent = if at.is_finite() { (100.0 * at / SIDE).clamp(-10.0, 110.0) } else { 0.0 };
    format!("{percent:.2}")
}

impl Tick {
    /// Its place in percent, for styles.
    pub(crate) fn percent(&self) -> String {
        percent(self.at)
    }

    fn place(&self) -> String {
        line::coordinate(self.at)
    }
}

impl Label {
    fn percent(&self) -> String {
        percent(self.at)
    }

    fn place(&self) -> String {
        line::coordinate(self.at)
    }
}

/// Moves labels that stand from the top down apart, so that none covers another: at least so far from each to the next.
pub(crate) fn spread_labels(mut labels: Vec<Label>, least: f64) -> Vec<Label> {
    labels.retain(|label| label.at.is_finite());
    labels.sort_by(|a, b| a.at.total_cmp(&b.at));
    for at in 1..labels.len() {
        let above = labels[at - 1].at + least;
        labels[at].at = labels[at].at.max(above);
    }
    // What was moved beyond the lower end moves up again.
    let mut room = SIDE;
    for label in labels.iter_mut().rev() {
        label.at = label.at.min(room);
        room = label.at - least;
    }
    labels
}

#[test]
fn labels_that_would_cover_one_another_move_apart() {
    let at = |at: f64| Label { at, ..Label::default() };
    let places: Vec<f64> = spread_labels(vec![at(500.0), at(10.0), at(505.0), at(f64::NAN)], 50.0)
        .iter()
        .map(|l| l.at)
        .collect();
    assert_eq!(places, [10.0, 500.0, 550.0]);
    let low: Vec<f64> = spread_labels(vec![at(990.0), at(980.0)], 50.0).iter().map(|l| l.at).collect();
    assert_eq!(low, [950.0, 1000.0]);
}

#[test]
fn a_figure_says_what_it_shows_and_foreign_words_stay_words() {
    let mut plot = Plot { title: "<b>".into(), says: "\"x\"".into(), height: 100, ..Plot::default() };
    plot.draw("o", "M0 0");
    plot.draw("o", "");
    plot.stop_at(&[(1.0, "<i>'\"".into())]);
    let html = plot.html();
    assert!(
        html.contains("<path class=\"o\" d=\"M0 0\"/>") && html.matches("class=\"o\"").count() == 1,
        "{html}"
    );
    assert!(!html.contains("<b>") && !html.contains("<i>") && !html.contains("\"x\""), "{html}");
    assert!(html.contains("style=\"height:100px\""));
}
