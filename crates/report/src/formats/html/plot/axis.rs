//! An axis: from values to places along one side of a drawing, and the marks beside it.
//!
//! For: linear and logarithmic scales with ticks that are easy to read. Not for: what is drawn between them.

/// Units along each side of every drawing, whatever its size on the screen.
pub(crate) const SIDE: f64 = 1000.0;
/// Marks that have room beside a drawing.
const MAX_MARKS: usize = 10;

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

/// A range of values along one side of a drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
}

/// A mark beside an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Where, from 0 to [`SIDE`] along the axis.
    pub(crate) at: f64,
    /// What stands there.
    pub(crate) label: String,
}

/// Widths of a drawing in pixels, and the class in `page.css` of labels that are shown from this width on. A label with the last class is
/// never shown.
const LABEL_WIDTHS: [(f64, &str); 5] =
    [(180.0, ""), (280.0, "r1"), (400.0, "r2"), (560.0, "r3"), (760.0, "r4")];
const HIDDEN: &str = "r5";
/// Pixels of a letter of a label, and between two labels.
const LETTER_PX: f64 = 7.0;
const LABEL_GAP_PX: f64 = 8.0;

/// Returns the class of each label, so that no two of them overlap at any width. Labels are centred on their places. A label that is shown
/// in a narrow drawing is shown in a wide one too: the widths are tried from the narrowest up, and each keeps the labels that are there.
pub(crate) fn label_classes(labels: &[(f64, &str)]) -> Vec<&'static str> {
    let half = |at: usize| labels[at].1.chars().count() as f64 * LETTER_PX / 2.0;
    let mut classes = vec![HIDDEN; labels.len()];
    for (width, class) in LABEL_WIDTHS {
        for at in 0..labels.len() {
            let overlaps = |other: usize| {
                let apart = (labels[at].0 - labels[other].0).abs() * width / SIDE;
                apart < half(at) + half(other) + LABEL_GAP_PX
            };
            let is_shown = |other: usize| other != at && classes[other] != HIDDEN;
            if classes[at] == HIDDEN && !(0..labels.len()).any(|other| is_shown(other) && overlaps(other)) {
                classes[at] = class;
            }
        }
    }
    classes
}

impl Axis {
    /// From zero to a bit above the largest of these.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let most = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
        Self::linear(0.0, if most > 0.0 { 1.06 * most } else { 1.0 })
    }

    /// From one value to a larger one.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, scale: Scale::Linear }
    }

    /// By the logarithm, from the least to the largest of these and a bit around; those that have none do not count.
    pub(crate) fn log(values: impl Iterator<Item = f64>) -> Self {
        let some = values.filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = some.fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), v| (l.min(v), h.max(v)));
        if high <= 0.0 {
            return Self { low: 1.0, high: 10.0, scale: Scale::Log };
        }
        Self { low: low / 1.15, high: high * 1.15, scale: Scale::Log }
    }

    /// Where a value lies: from 0 to [`SIDE`] within the range, beyond it outside; no number where it has no place.
    pub(crate) fn along(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Log => f64::NAN,
        };
        part * SIDE
    }

    /// Where a value lies from the top down, as drawings count: from 0 to [`SIDE`] within the range, beyond it outside; no number where it
    /// has no place.
    pub(crate) fn down(&self, value: f64) -> f64 {
        SIDE - self.along(value)
    }

    /// Where a value lies: from 0 to [`SIDE`], at the edge where it lies beyond the range; no number where it has no place.
    pub(crate) fn within(&self, value: f64) -> f64 {
        self.along(value).clamp(0.0, SIDE)
    }

    /// Values at which marks stand, where there is room for so many.
    fn marks(&self, most: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear => linear_marks(self.low, self.high),
            Scale::Log => log_marks(self.low, self.high, most),
        }
    }

    /// Marks along an axis that has room for few.
    pub(crate) fn few_ticks(&self, most: usize, show: impl Fn(f64) -> String) -> Vec<Tick> {
        self.marks(most).into_iter().map(|v| Tick { at: self.along(v), label: show(v) }).collect()
    }

    /// Marks along the axis.
    pub(crate) fn ticks(&self, show: impl Fn(f64) -> String) -> Vec<Tick> {
        self.marks(MAX_MARKS).into_iter().map(|v| Tick { at: self.along(v), label: show(v) }).collect()
    }

    /// Marks along the axis from the top down.
    pub(crate) fn ticks_down(&self, show: impl Fn(f64) -> String) -> Vec<Tick> {
        self.marks(MAX_MARKS).into_iter().map(|v| Tick { at: self.down(v), label: show(v) }).collect()
    }
}

/// About five round values.
fn linear_marks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    (first..first + 12).map(|i| i as f64 * step).take_while(|v| *v <= high).collect()
}

/// 1, 2 and 5 of each decade, or where these are too many powers of ten, or only some of those.
fn log_marks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let of = |digits: &[f64], every: usize| -> Vec<f64> {
        let all = (from..=to).filter(|k| k.rem_euclid(every as i32) == 0);
        let all = all.flat_map(|k| digits.iter().map(move |d| d * 10_f64.powi(k)));
        all.filter(|v| (low..=high).contains(v)).collect()
    };
    let finest = [of(&[1.0, 2.0, 5.0], 1), of(&[1.0, 3.0], 1), of(&[1.0], 1), of(&[1.0], 2)];
    finest.into_iter().find(|marks| marks.len() <= most).unwrap_or_else(|| of(&[1.0], 3))
}

#[cfg(test)]
fn labels(axis: Axis) -> Vec<String> {
    axis.ticks(|v| v.to_string()).into_iter().map(|t| t.label).collect()
}

#[test]
fn a_value_lies_where_its_share_of_the_range_is() {
    let axis = Axis::linear(0.0, 200.0);
    assert_eq!((axis.along(50.0), axis.down(50.0), axis.within(500.0)), (250.0, 750.0, 1000.0));
    let log = Axis { low: 1.0, high: 10_000.0, scale: Scale::Log };
    assert!((log.along(10.0) - 250.0).abs() < 1e-9 && log.along(0.0).is_nan());
}

#[test]
fn marks_are_round_and_not_many() {
    assert_eq!(labels(Axis::linear(0.0, 87.0)), ["0", "20", "40", "60", "80"]);
    assert_eq!(labels(Axis::from_zero([100.0].into_iter())), ["0", "25", "50", "75", "100"]);
    assert_eq!(labels(Axis::log([100.0, 1000.0].into_iter())), ["100", "200", "500", "1000"]);
    assert_eq!(
        labels(Axis::log([100.0, 1e6].into_iter())),
        ["100", "300", "1000", "3000", "10000", "30000", "100000", "300000", "1000000"]
    );
}

#[test]
fn no_two_labels_overlap_at_any_width() {
    let sets: [Vec<(f64, &str)>; 4] = [
        (0..10).map(|at| (f64::from(at) * 101.0, "0 s")).collect(),
        // The last second of a run that ended early, next to the first of the following one.
        vec![(0.0, "0 s"), (480.0, "1 s"), (492.0, "0 s"), (960.0, "1 s")],
        (0..30).map(|at| (f64::from(at) * 33.0, "1,234,567")).collect(),
        vec![(10.0, "100 us"), (10.0, "200 us")],
    ];
    for labels in sets {
        let classes = label_classes(&labels);
        assert_eq!(classes[0], "", "the first label is always shown");
        for (level, (width, _)) in LABEL_WIDTHS.iter().enumerate() {
            let shown = |at: &usize| LABEL_WIDTHS[..=level].iter().any(|(_, class)| *class == classes[*at]);
            let shown: Vec<usize> = (0..labels.len()).filter(shown).collect();
            for pair in shown.windows(2) {
                let apart = (labels[pair[1]].0 - labels[pair[0]].0) * width / SIDE;
                let letters = (labels[pair[0]].1.len() + labels[pair[1]].1.len()) as f64;
                assert!(apart >= letters * LETTER_PX / 2.0, "{labels:?} {classes:?} at {width}");
            }
        }
    }
    assert_eq!(label_classes(&[(10.0, "a"), (10.0, "b")]), ["", HIDDEN]);
}

#[test]
fn nothing_to_show_is_still_an_axis() {
    for axis in
        [Axis::from_zero([].into_iter()), Axis::log([0.0, f64::NAN].into_iter()), Axis::linear(5.0, 5.0)]
    {
        assert!(axis.ticks(|v| v.to_string()).len() < 13);
    }
}
