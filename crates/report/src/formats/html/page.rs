//! The parts of every page: the shell with style and script, cards, folded parts, tables, and number formats.

use crate::view::findings::withheld_caveat;
use crate::view::table::{DEVICE_LEGEND, Table, has_device_column, or_dash};
use askama::Template;
use model::report::{Measured, Report};
use model::units::{show_ns, show_rate};
use std::io::{self, Write};

/// The style for light and dark screens and for print.
const STYLE: &str = include_str!("page.css");
/// The script for crosshairs, zoom and copying; the page works without it.
const SCRIPT: &str = include_str!("page.js");
/// SHA-256 of [`SCRIPT`], the only script that the page allows. A test checks it.
const SCRIPT_HASH: &str = "sha256-UHHBN3xVgeyxBs/QM0s8nhBDX3iA52L/R1vfbMs57w4=";

#[derive(Template)]
#[template(path = "page.html")]
struct PageTemplate<'p> {
    version: &'p str,
    title: &'p str,
    header: &'p [String],
    sections: Vec<&'p String>,
    style: &'static str,
    script: &'static str,
    script_hash: &'static str,
}

/// Returns a complete page from the title of its tab, the line at the top (`header`), and its sections as HTML. Empty
/// sections are left out.
pub(super) fn page(version: &str, title: &str, header: &[String], sections: &[String]) -> String {
    let shell = PageTemplate {
        version,
        title: &format!("{title} · fathom"),
        header,
        sections: sections.iter().filter(|section| !section.is_empty()).collect(),
        style: STYLE,
        script: SCRIPT,
        script_hash: SCRIPT_HASH,
    };
    shell.render().unwrap_or_default()
}

/// Version of this program, for pages of reports that do not record a version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Writes a page with the version of this program; see [`page`].
pub(super) fn write_page(
    to: &mut dyn Write,
    title: &str,
    header: &[String],
    sections: &[String],
) -> io::Result<()> {
    to.write_all(page(VERSION, title, header, sections).as_bytes())
}

#[derive(Template)]
#[template(path = "verdict.html")]
struct Head<'c> {
    /// The first word, such as a verdict.
    word: &'c str,
    /// CSS class of the word.
    class: &'c str,
    icon: &'static str,
    heading: &'c str,
    sentences: Vec<String>,
}

/// Returns the first card of a page: a word and sentences. The first word of `colour_word`, a
/// verdict or an answer, sets the colour.
pub(super) fn head_card(word: &str, colour_word: &str, heading: &str, sentences: &[String]) -> String {
    let class = colour_word.split(' ').next().unwrap_or_default();
    let sentences = sentences.iter().map(|s| with_micro_sign(s)).collect();
    Head { word, class, icon: icon(class), heading, sentences }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "card.html")]
struct CardTemplate<'p> {
    heading: &'p str,
    lead: Vec<String>,
    body: &'p str,
}

/// Returns a section with a heading, sentences below it, and an HTML body.
pub(super) fn card<W: AsRef<str>>(heading: &str, lead: &[W], body: &str) -> String {
    let lead = lead
        .iter()
        .map(|sentence| with_micro_sign(sentence.as_ref()))
        .filter(|sentence| !sentence.is_empty())
        .collect();
    CardTemplate { heading, lead, body }.render().unwrap_or_default()
}

/// Returns a section with a heading and an HTML body.
pub(super) fn plain_card(heading: &str, body: &str) -> String {
    card::<&str>(heading, &[], body)
}

#[derive(Template)]
#[template(source = "<p class=\"sub\"><b>{{ caveat }}</b></p>\n", ext = "html")]
struct CaveatTemplate<'p> {
    caveat: &'p str,
}

/// Returns the HTML of a result's plots. If the number of the result is withheld, a line above them has the reason.
pub(super) fn with_caveat(report: &Report, result: &Measured, plots: String) -> String {
    match withheld_caveat(report, result).filter(|_| !plots.is_empty()) {
        Some(caveat) => CaveatTemplate { caveat: &caveat }.render().unwrap_or_default() + &plots,
        None => plots,
    }
}

#[derive(Template)]
#[template(path = "details.html")]
struct DetailsTemplate<'p> {
    summary: &'p str,
    body: &'p str,
}

/// Returns HTML that hides `body` until the user opens it. Returns an empty string if `body` is empty.
pub(super) fn folded(summary: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    DetailsTemplate { summary, body }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "small.html")]
struct SmallTemplate<'p> {
    heading: &'p str,
    body: &'p str,
}

/// Returns small cards, each with a heading and an HTML body, side by side as far as there is room.
/// `class` is a CSS class of the element around the cards. Leaves out entries without a body.
pub(super) fn multiples(class: &str, all: impl Iterator<Item = (String, String)>) -> String {
    let small = all
        .filter(|(_, body)| !body.is_empty())
        .map(|(heading, body)| SmallTemplate { heading: &heading, body: &body }.render().unwrap_or_default());
    let small: String = small.collect();
    if small.is_empty() { small } else { format!("<div class=\"cards {class}\">{small}</div>") }
}

#[derive(Template)]
#[template(path = "key.html")]
struct KeyTemplate<'p> {
    items: &'p [(&'static str, &'p str)],
}

/// Returns the legend of a plot from CSS classes and descriptions.
pub(super) fn key(items: &[(&'static str, &str)]) -> String {
    KeyTemplate { items }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "repeat.html")]
struct RepeatCommands {
    commands: Vec<(&'static str, String)>,
}

/// Returns the commands to copy, each with its purpose, as the content of a card.
pub(super) fn repeat_card(commands: Vec<(&'static str, String)>) -> String {
    RepeatCommands { commands }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "list.html")]
struct FactsTemplate<'p> {
    items: &'p [(String, String)],
}

/// Returns a list of names and values; empty without entries.
pub(super) fn facts(items: &[(String, String)]) -> String {
    if items.is_empty() { String::new() } else { FactsTemplate { items }.render().unwrap_or_default() }
}

/// Returns the icon of a verdict or an answer as SVG. Its shape repeats the meaning of its colour: a circle for a good word, an octagon for
/// a bad one, a triangle for any other word. An empty word has no icon.
pub(super) fn icon(word: &str) -> &'static str {
    match word {
        "" => "",
        "VALID" | "VERIFIED" | "OK" | "FASTER" | "SAME" => {
            r#"<svg viewBox="0 0 18 18" aria-hidden="true"><circle cx="9" cy="9" r="8" fill="currentColor"/><path d="M5 9.3l2.7 2.7L13 6.5" fill="none" stroke="var(--card)" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round"/></svg>"#
        }
        "INVALID" | "DAMAGED" | "SLOWER" => {
            r#"<svg viewBox="0 0 18 18" aria-hidden="true"><path d="M6 1H12L17 6V12L12 17H6L1 12V6Z" fill="currentColor"/><path d="M6 6l6 6M12 6l-6 6" stroke="var(--card)" stroke-width="2.2" stroke-linecap="round"/></svg>"#
        }
        _ => {
            r#"<svg viewBox="0 0 18 18" aria-hidden="true"><path d="M9 1.5L17.3 16.5H.7Z" fill="currentColor" stroke="currentColor" stroke-linejoin="round"/><path d="M9 6.5v4.5M9 13.6h.01" stroke="var(--card)" stroke-width="2.2" stroke-linecap="round"/></svg>"#
        }
    }
}

/// Formats a time: `85.3 µs`.
pub(crate) fn time(ns: f64) -> String {
    with_micro_sign(&show_ns(ns))
}

/// Formats a time, `85.3 µs`, or `-` if it is missing.
pub(crate) fn time_or_dash(ns: Option<f64>) -> String {
    or_dash(ns, time)
}

/// Formats a time for an axis, without trailing zeros: `50 µs`.
pub(crate) fn time_tick(ns: f64) -> String {
    let (value, unit) = match ns {
        n if n < 999.5 => (n, "ns"),
        n if n < 999.5e3 => (n / 1e3, "µs"),
        n if n < 999.5e6 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", short_number(value))
}

/// Formats a rate for an axis: `80k`.
pub(crate) fn rate_tick(value: f64) -> String {
    match value.abs() {
        v if v >= 999.5e6 => format!("{}G", short_number(value / 1e9)),
        v if v >= 999.5e3 => format!("{}M", short_number(value / 1e6)),
        v if v >= 10e3 => format!("{}k", short_number(value / 1e3)),
        v if v >= 1e3 => show_rate(value),
        _ => short_number(value),
    }
}

/// Formats a number with at most two decimals and without trailing zeros.
pub(crate) fn short_number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Replaces the unit `us` by `µs`. Reports use `us` because terminals may lack the micro sign.
pub(crate) fn with_micro_sign(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let mut rest = text;
    while let Some(at) = rest.find(" us") {
        let (before, after) = (&rest[..at], &rest[at + 3..]);
        out += before;
        let is_unit =
            before.ends_with(|c: char| c.is_ascii_digit()) && !after.starts_with(char::is_alphanumeric);
        out += if is_unit { " µs" } else { " us" };
        rest = after;
    }
    out + rest
}

#[derive(Template)]
#[template(path = "table.html")]
struct TableTemplate<'t> {
    caption: &'t str,
    headings: Vec<TableCell>,
    rows: Vec<TableRow>,
    /// Explanation of columns; empty if no column needs one.
    legend: &'t str,
}

struct TableRow {
    cells: Vec<TableCell>,
    /// Whether the row is a title of the following rows.
    is_title: bool,
    /// Whether the row is part of the row above.
    is_part: bool,
}

struct TableCell {
    text: String,
    is_left: bool,
}

/// Returns the table as HTML with all non-empty columns. Empty if no row has a value.
pub(super) fn table(caption: &str, table: &Table) -> String {
    let shown = table.filled_columns();
    if table.rows.iter().all(|cells| is_title(&shown, cells)) {
        return String::new();
    }
    let heading =
        |at: &usize| TableCell { text: heading(&table.headings[*at]), is_left: table.is_left_aligned[*at] };
    let headings = shown.iter().map(heading).collect();
    let rows = table.rows.iter().map(|cells| table_row(table, &shown, cells));
    let shown_headings: Vec<&str> = shown.iter().map(|at| table.headings[*at].as_str()).collect();
    let legend = if has_device_column(&shown_headings) { DEVICE_LEGEND } else { "" };
    TableTemplate { caption, headings, rows: rows.collect(), legend }.render().unwrap_or_default()
}

/// Replaces `us` by `µs` in a heading.
fn heading(text: &str) -> String {
    text.strip_suffix(" us").map_or_else(|| text.to_owned(), |text| format!("{text} µs"))
}

fn table_row(table: &Table, shown: &[usize], cells: &[String]) -> TableRow {
    let text = |at: usize| cells.get(at).map_or("", String::as_str);
    let is_title = is_title(shown, cells);
    let kept = if is_title { 1 } else { shown.len() };
    let cell = |at: &usize| {
        let content = if is_title { text(*at).trim_end_matches(':') } else { text(*at) };
        TableCell { text: with_micro_sign(content.trim()), is_left: table.is_left_aligned[*at] }
    };
    TableRow {
        cells: shown.iter().take(kept).map(cell).collect(),
        is_title,
        is_part: text(0).starts_with(' '),
    }
}

/// Whether a row is a title of other rows.
fn is_title(shown: &[usize], cells: &[String]) -> bool {
    let rest = |at: &usize| cells.get(*at).is_none_or(String::is_empty);
    cells.first().is_some_and(|name| name.ends_with(':')) && shown.iter().skip(1).all(rest)
}

/// Filters for templates. They keep flags such as `--time` on one line.
pub(super) mod filters {
    #![allow(
        unreachable_pub,
        clippy::inline_always,
        clippy::unused_self,
        reason = "the code that the macro generates for a filter"
    )]

    use askama::filters::{Escaper, Html, Safe};
    use askama::{Result, Values};
    use std::fmt::{Display, Write};

    /// Escapes text and keeps every flag on one line: `--time` is never broken after its dashes.
    #[askama::filter_fn]
    pub(in super::super) fn flags(text: impl Display, _: &dyn Values) -> Result<Safe<String>> {
        let text = text.to_string();
        let mut out = String::with_capacity(text.len() + 32);
        let mut rest = text.as_str();
        while let Some((from, to)) = next_flag(rest) {
            Html.write_escaped_str(&mut out, &rest[..from])?;
            // A flag consists of letters, digits and dashes, so it needs no escaping.
            write!(out, "<span class=\"flag\">{}</span>", &rest[from..to])?;
            rest = &rest[to..];
        }
        Html.write_escaped_str(&mut out, rest)?;
        Ok(Safe(out))
    }

    /// Returns the byte range of the first flag, such as `-o` or `--fail-if`. A flag does not
    /// directly follow a letter, a digit, a dash or an underscore.
    fn next_flag(text: &str) -> Option<(usize, usize)> {
        let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        text.match_indices('-').find_map(|(from, _)| {
            if text[..from].ends_with(is_word) {
                return None;
            }
            let dashes = text[from..].bytes().take_while(|b| *b == b'-').count();
            let name = &text[from + dashes..];
            let is_flag = dashes <= 2 && name.starts_with(|c: char| c.is_ascii_alphabetic());
            let is_of_flag = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
            let to = from + dashes + name.bytes().take_while(is_of_flag).count();
            is_flag.then_some((from, to))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::super::filters;
        use super::next_flag;
        use askama::Template;

        #[derive(Template)]
        #[template(source = "{{ text|flags }}", ext = "html")]
        struct Line {
            text: &'static str,
        }

        fn line(text: &'static str) -> String {
            Line { text }.render().unwrap_or_default()
        }

        #[test]
        fn flags_are_not_broken_and_other_text_is_escaped() {
            let whole = |flag: &str| format!("<span class=\"flag\">{flag}</span>");
            assert_eq!(line("longer (--time 20s)."), format!("longer ({} 20s).", whole("--time")));
            assert_eq!(
                line("-o x, --fail-if=a<b"),
                format!("{} x, {}=a&#60;b", whole("-o"), whole("--fail-if"))
            );
            for text in ["A - B", "20261122-144019-20797", "read-ahead", "--- x", "-5", "--", "a--b"] {
                assert_eq!(line(text), text);
            }
            assert!(!line("--x<script>").contains("<script") && !line("<b>").contains("<b>"));
            assert_eq!(next_flag("µ--time"), None, "after a word");
        }
    }
}

#[test]
fn the_page_allows_only_its_own_script() {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
    assert_eq!(SCRIPT_HASH, format!("sha256-{hash}"), "the script has changed: update SCRIPT_HASH");
    let html = page("1", "<t>", &["<i>".into()], &[]);
    assert!(
        html.contains(&format!("script-src &#39;{SCRIPT_HASH}&#39;"))
            || html.contains(&format!("script-src '{SCRIPT_HASH}'"))
    );
    assert!(!html.contains("<t>") && !html.contains("<i>"));
    assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style") && !STYLE.contains("url("));
}

#[test]
fn only_the_unit_us_gets_a_micro_sign() {
    assert_eq!(
        with_micro_sign("366 us of the 392 us; trust us, 3 users"),
        "366 µs of the 392 µs; trust us, 3 users"
    );
    assert_eq!((time(85_312.0), time_or_dash(None)), ("85.3 µs".into(), "-".into()));
}

#[test]
fn ticks_have_no_superfluous_digits() {
    assert_eq!([50e3, 1e6, 200e6, 1e9, 500.0].map(time_tick), ["50 µs", "1 ms", "200 ms", "1 s", "500 ns"]);
    assert_eq!([0.0, 80e3, 2.5e6, 5000.0, 0.25].map(rate_tick), ["0", "80k", "2.5M", "5,000", "0.25"]);
}

#[test]
fn titles_span_the_table_and_foreign_text_is_escaped() {
    let mut rows = Table::new(&["test", "p99", "empty"], &[]).aligned(1, false);
    rows.add(["<b>work</b>:", "", ""].map(str::to_owned));
    rows.add(["  part & whole", "12 us", ""].map(str::to_owned));
    let html = table("it's", &rows);
    assert!(html.contains("scope=\"colgroup\"") && html.contains("colspan=\"2\""), "{html}");
    assert!(html.contains("12 µs") && !html.contains("<b>") && !html.contains("empty"), "{html}");
    assert_eq!(table("none", &Table::new(&["a"], &[])), "");
}
