//! `fathom explain`: prints the pages of checks, from the table of checks itself, and entries of the glossary.

use super::help;
use crate::cli::shared_flags::{OUTPUT, find_check, formats_of};
use crate::failure::Failure;
use crate::stdout;
use analysis::catalogue::pages;
use model::finding::{CheckPage, Pages};
use report::{Format, Style};
use std::process::ExitCode;

/// Explain a check (what it reads, its formula, how to trigger it, what to do), or a term of the reports.
///
/// Without an ID it lists all checks. An ID is one that a report prints, such as A01, or the name after it, such as CACHE_SERVED, in
/// upper or lower case. Terms of the reports, such as headline, are explained from the glossary.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Ids or names of checks, or terms of the reports [default: all checks]
    #[arg(value_name = "ID|WORD")]
    checks: Vec<String>,
    /// Format of the pages of checks; terms are always text
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Pages>())]
    format: &'static Format,
}

impl Args {
    /// Explains the checks or terms.
    ///
    /// # Errors
    /// A usage failure for a word that is neither a check nor a term, with the most similar check,
    /// and for terms in another format than text.
    pub fn explain(self) -> Result<ExitCode, Failure> {
        let all = self.checks.is_empty();
        // `fathom explain CANNOT TELL` is a term of two words.
        let as_one = self.checks.join(" ");
        let words = if help::find_term(&as_one).is_some() { vec![as_one] } else { self.checks };
        let (terms, checks): (Vec<_>, Vec<_>) =
            words.iter().map(|word| help::find_term(word).ok_or(word)).partition(Result::is_ok);
        let named: Result<Vec<CheckPage>, String> =
            checks.into_iter().filter_map(Result::err).map(|word| find_check(word)).collect();
        let pages = if all { pages().collect() } else { named.map_err(Failure::Usage)? };
        let terms: String = terms.into_iter().flatten().collect();
        if !terms.is_empty() && self.format.name != report::TEXT.name {
            return Err(Failure::Usage(format!(
                "--format {}: terms are explained as text only; leave --format out, or name only checks",
                self.format.name
            )));
        }
        stdout::print_text(&terms)?;
        if pages.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        stdout::print_report(self.format, &Pages { pages, all }, Style::default()).map(|()| ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn shown(format: &str, pages: Vec<CheckPage>, all: bool) -> String {
        let bytes = report::find_format::<Pages>(format)
            .and_then(|f| f.bytes(&Pages { pages, all }, Style::default()).ok())
            .unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }

    #[test]
    fn every_check_is_in_every_format() {
        let [text, markdown, json] = ["text", "markdown", "json"].map(|f| shown(f, pages().collect(), true));
        let json: Value = serde_json::from_str(&json).unwrap_or_default();
        for (i, check) in pages().enumerate() {
            assert!(text.contains(check.belief.split(' ').next().unwrap_or_default()));
            assert!(markdown.contains(&format!("### {} {}\n", check.id, check.name)));
            assert_eq!(json[i]["id"], check.id.to_string());
            let page = shown("text", vec![check.clone()], false);
            assert!(page.starts_with(&format!("{} {}\n", check.id, check.name)));
            for heading in ["What it reads", "Formula", "To see it fire", "What to do"] {
                assert!(page.contains(heading), "{page}");
            }
        }
    }

    #[test]
    fn code_on_pages_of_checks_is_in_one_line() {
        for check in pages() {
            let page = shown("text", vec![check.clone()], false);
            let texts: [&str; 4] = [check.provoke, check.reads, &check.formula, &check.advice];
            for line in texts.iter().flat_map(|text| text.lines()) {
                for code in line.split('`').skip(1).step_by(2) {
                    let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
                    assert!(page.lines().any(|line| line.contains(&code)), "{code}\n{page}");
                }
            }
        }
    }

    #[test]
    fn the_reference_page_matches_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/checks.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        let now = shown("markdown", pages().collect(), true);
        // Not `assert_eq`: it would print both pages.
        assert!(kept == now, "renew it: fathom explain --format markdown > docs/reference/checks.md");
    }
}
