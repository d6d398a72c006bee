//! The page around everything: one file that needs nothing else and runs nothing but its own script.
//!
//! For: the shell, cards and folded parts that every kind of report puts its content in. Not for: content.

use super::filters;
use super::words::with_micro_sign;
use askama::Template;

/// The looks, light, dark and printed.
const STYLE: &str = include_str!("page.css");
/// Crosshairs, zoom and copying, which nothing needs.
const SCRIPT: &str = include_str!("page.js");
/// The only script that a browser may run here: SHA-256 of [`SCRIPT`]. A test holds it.
const SCRIPT_HASH: &str = "sha256-UHHBN3xVgeyxBs/QM0s8nhBDX3iA52L/R1vfbMs57w4=";

#[derive(Template)]
#[template(path = "page.html")]
struct PageTemplate<'p> {
    version: &'p str,
    title: &'p str,
    eye: &'p [String],
    sections: &'p [String],
    style: &'static str,
    script: &'static str,
    script_hash: &'static str,
}

/// A whole page: what its tab is called, what stands above it, and its sections as HTML.
pub(super) fn page(version: &str, title: &str, eye: &[String], sections: &[String]) -> String {
    let shell = PageTemplate {
        version,
        title,
        eye,
        sections,
        style: STYLE,
        script: SCRIPT,
        script_hash: SCRIPT_HASH,
    };
    shell.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "card.html")]
struct CardTemplate<'p> {
    heading: &'p str,
    lead: Vec<String>,
    body: &'p str,
}

/// A section with its heading, sentences below it, and a body of HTML.
pub(super) fn card<W: AsRef<str>>(heading: &str, lead: &[W], body: &str) -> String {
    let lead =
        lead.iter().map(|words| with_micro_sign(words.as_ref())).filter(|words| !words.is_empty()).collect();
    CardTemplate { heading, lead, body }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "details.html")]
struct DetailsTemplate<'p> {
    summary: &'p str,
    body: &'p str,
    is_open: bool,
}

/// What is folded away until somebody wants it, of HTML; nothing where there is none.
pub(super) fn folded(summary: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    DetailsTemplate { summary, body, is_open: false }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "small.html")]
struct SmallTemplate<'p> {
    heading: &'p str,
    body: &'p str,
}

/// Small multiples: headings with bodies of HTML, as many beside each other as there is room for; `looks` says what they hold, for the style.
/// Those without a body are left out.
pub(super) fn multiples(looks: &str, all: impl Iterator<Item = (String, String)>) -> String {
    let small = all
        .filter(|(_, body)| !body.is_empty())
        .map(|(heading, body)| SmallTemplate { heading: &heading, body: &body }.render().unwrap_or_default());
    let small: String = small.collect();
    if small.is_empty() { small } else { format!("<div class=\"cards {looks}\">{small}</div>") }
}

#[derive(Template)]
#[template(path = "key.html")]
struct KeyTemplate<'p> {
    items: &'p [(&'static str, &'p str)],
}

/// What the lines of plots mean: looks, and words.
pub(super) fn key(items: &[(&'static str, &str)]) -> String {
    KeyTemplate { items }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "list.html")]
struct FactsTemplate<'p> {
    items: &'p [(String, String)],
}

/// Names with their values; nothing where there are none.
pub(super) fn facts(items: &[(String, String)]) -> String {
    if items.is_empty() { String::new() } else { FactsTemplate { items }.render().unwrap_or_default() }
}

/// The icon of a verdict, as SVG: its form says what its colour says. A word that judges nothing has none.
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

#[test]
fn a_browser_may_run_this_script_and_no_other() {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
    assert_eq!(SCRIPT_HASH, format!("sha256-{hash}"), "the script changed; its hash is this now");
    let html = page("1", "<t>", &["<i>".into()], &[]);
    assert!(
        html.contains(&format!("script-src &#39;{SCRIPT_HASH}&#39;"))
            || html.contains(&format!("script-src '{SCRIPT_HASH}'"))
    );
    assert!(!html.contains("<t>") && !html.contains("<i>"));
    assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style") && !STYLE.contains("url("));
}
