//! What pages of text are made of: lines, paragraphs, tables, colour, and the forms of numbers that several of them share.
//!
//! For: every format that people read. Not for: what is told, nor in which order.

use crate::format::Style;
use crate::prose::{display_width, prose};
use crate::table::Table;
use model::check_id::CheckId;
use model::report::{Latency, Measured, Verdict};
use model::units::{MIB, show_count, show_ns, show_rate, show_share};
use std::io::{self, Write};

/// Half an interval by its value from which digits of the value mean nothing.
const WIDE_INTERVAL: f64 = 0.1;
/// Half an interval by its value from which only the power of ten and one digit of the value mean something.
const VERY_WIDE_INTERVAL: f64 = 1.0;

/// Text under way.
pub(crate) struct Page {
    text: String,
    colour: bool,
    width: usize,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { text: String::new(), colour: style.colour, width: style.width }
    }

    /// Returns a page that looks like this one and has no text.
    pub(crate) fn empty(&self) -> Self {
        Self { text: String::new(), ..*self }
    }

    /// Columns that there are.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Writes what is on it.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(self.text.as_bytes())
    }

    /// Adds an empty line, unless the last one is empty or there is no line.
    pub(crate) fn gap(&mut self) {
        if !self.ends_with_gap() {
            self.line("");
        }
    }

    /// Whether the last line is empty or there is no line.
    pub(crate) fn ends_with_gap(&self) -> bool {
        self.text.is_empty() || self.text.ends_with("\n\n")
    }

    /// The number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Adds the lines of another page.
    pub(crate) fn append(&mut self, other: &Self) {
        self.text += &other.text;
    }

    /// A line, broken as prose is where it has no room.
    pub(crate) fn line(&mut self, text: &str) {
        if display_width(text) <= self.width {
            self.text += text;
            self.text.push('\n');
            return;
        }
        let indent = &text[..text.len() - text.trim_start().len()];
        self.prose(indent, &format!("{indent}  "), text);
    }

    /// A paragraph broken at the width, its further lines indented.
    pub(crate) fn prose(&mut self, first: &str, indent: &str, text: &str) {
        self.text += &prose(self.width, first, indent, text);
    }

    /// A table with as many of its columns as have room, and which have none.
    pub(crate) fn table(&mut self, table: &Table) {
        self.indented_table("", table);
    }

    /// A table with as many of its columns as have room, without the names of the others.
    pub(crate) fn narrow_table(&mut self, table: &Table) {
        for line in table.lines(self.width).0 {
            self.line(&line);
        }
    }

    /// A paragraph of at most `most` lines. `…` replaces the words that do not fit.
    pub(crate) fn prose_within(&mut self, most: usize, first: &str, indent: &str, text: &str) {
        let cut = |kept: &str| {
            prose(self.width, first, indent, &format!("{} …", kept.trim_end_matches([',', ';', ':'])))
        };
        let mut kept = text;
        let mut whole = prose(self.width, first, indent, text);
        while whole.lines().count() > most {
            let Some((shorter, _)) = kept.rsplit_once(' ') else { break };
            kept = shorter;
            whole = cut(kept);
        }
        // The end of a clause reads better than half a clause.
        let clause =
            kept.rfind([',', ';', ':']).filter(|at| *at > kept.len() * 2 / 3 && kept.len() < text.len());
        self.text += &clause.map_or(whole, |at| cut(&kept[..at]));
    }

    /// A table behind an indent, with as many of its columns as have room, and which have none.
    pub(crate) fn indented_table(&mut self, indent: &str, table: &Table) {
        let (lines, left_out) = table.lines(self.width.saturating_sub(display_width(indent)));
        for line in lines {
            self.line(&format!("{indent}{line}"));
        }
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            let said = format!("Columns that do not fit: {left_out}; --format json has them.");
            self.prose("", "  ", &said);
        }
    }

    pub(crate) fn paint(&self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A percentile by its name, `-` where too few operations support it.
pub(crate) fn percentile(latency: &Latency, name: &str) -> String {
    let value = latency.percentiles.get(name).copied().flatten();
    value.map_or_else(|| "-".into(), |ns| show_ns(ns as f64))
}

/// A value with no more digits than its interval supports, `~` before it where that takes some away.
pub(crate) fn supported(value: f64, interval: Option<[f64; 2]>) -> String {
    let share = match interval {
        Some([low, high]) if value > 0.0 => (high - low) / 2.0 / value,
        _ => 0.0,
    };
    let digits = match share {
        s if s >= VERY_WIDE_INTERVAL => 1,
        s if s >= WIDE_INTERVAL => 2,
        _ => return show_rate(value),
    };
    let scale = 10_f64.powi(value.log10().floor() as i32 + 1 - digits);
    let rounded = (value / scale).round() * scale;
    // Fewer digits behind the point, too: 1.2 of 1.23, and 1 of it.
    let places = usize::try_from(digits - 1 - value.log10().floor() as i32).unwrap_or(0);
    if places > 0 { format!("~{rounded:.places$}") } else { format!("~{}", show_count(rounded)) }
}

/// The verdict on a row, with the accepted findings that its number rests on. A void result is invalid, also where an older
/// version judged it.
pub(crate) fn verdict_mark(result: &Measured) -> String {
    let word = match result.verdict {
        _ if result.void => "invalid",
        Verdict::Valid => "valid",
        Verdict::Suspect => "suspect",
        Verdict::Invalid => "invalid",
    };
    word.to_owned() + &accepted(&result.accepted)
}

/// `, accepted: A04, D01`: the accepted findings that a number rests on; empty without any.
pub(crate) fn accepted(ids: &[CheckId]) -> String {
    if ids.is_empty() { String::new() } else { format!(", accepted: {}", CheckId::list(ids, ", ")) }
}

/// Stands behind a figure whose result is suspect, in tables where a row has several figures.
pub(crate) const SUSPECT_MARK: &str = "*";
/// What it means.
pub(crate) const SUSPECT_MARK_MEANING: &str = "* = suspect; void = withheld, a finding invalidates it";

/// The verdict on a row of several results: that of the worst.
pub(crate) fn worst_verdict_mark<'m>(results: impl Iterator<Item = &'m Measured>) -> String {
    results.max_by_key(|r| (r.void, r.verdict)).map_or_else(String::new, verdict_mark)
}

/// A figure with the mark of its verdict, in tables where a row has several figures.
pub(crate) fn with_suspect_mark(figure: String, verdict: Verdict) -> String {
    match verdict {
        Verdict::Valid => figure,
        Verdict::Suspect => format!("{figure}{SUSPECT_MARK}"),
        Verdict::Invalid => "void".into(),
    }
}

/// Half the interval in percent of the value.
pub(crate) fn half_width(value: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) if value > 0.0 => show_share((high - low) / 2.0 / value),
        _ => "-".into(),
    }
}

/// What the topmost device completed per second and of which size, in the same time; from the runs that have it.
pub(crate) fn device_rate(result: &Measured) -> String {
    let Some(seen) = result.at_device() else { return "-".into() };
    match seen.request_bytes() {
        Some(size) => format!("{} x {}", show_count(seen.requests_per_s(seen.iops)), short_bytes(size)),
        None => "0".into(),
    }
}

/// A mean size in few letters: `4K`, `1023K`, `1M`.
pub(crate) fn short_bytes(bytes: u64) -> String {
    match bytes {
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{}M", b / MIB),
        b if b >= 10 << 10 => format!("{:.0}K", b as f64 / 1024.0),
        b if b >= 1 << 10 => format!("{:.1}K", b as f64 / 1024.0).replace(".0K", "K"),
        b => b.to_string(),
    }
}

#[test]
fn a_wide_interval_takes_digits_away() {
    let of = |value: f64, share: f64| supported(value, Some([value * (1.0 - share), value * (1.0 + share)]));
    assert_eq!((of(12_677.0, 0.05), of(12_677.0, 1.87)), ("12,677".into(), "~10,000".into()));
    assert_eq!((of(12_677.0, 0.19), of(14_573.0, 0.39)), ("~13,000".into(), "~15,000".into()));
    assert_eq!((of(53.12, 0.2), of(1.234, 0.2), of(1.234, 1.5)), ("~53".into(), "~1.2".into(), "~1".into()));
    assert_eq!((of(0.0123, 0.2), of(99.6, 0.4)), ("~0.012".into(), "~100".into()));
    assert_eq!(
        (supported(78_912.0, None), supported(0.0, Some([0.0, 0.0]))),
        ("78,912".into(), "0.00".into())
    );
    assert_eq!(supported(f64::NAN, Some([0.0, 1.0])), "NaN");
}

#[test]
fn a_figure_among_others_has_its_mark_and_what_is_void_no_number() {
    let of = |verdict| with_suspect_mark("1,234".into(), verdict);
    assert_eq!([Verdict::Valid, Verdict::Suspect, Verdict::Invalid].map(of), ["1,234", "1,234*", "void"]);
}
