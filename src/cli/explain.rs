//! `fathom explain`: its flags; prints the pages of checks, from the table that also runs them.

use super::help;
use crate::cli::shared_flags::{OUTPUT, find_check, formats_of};
use crate::failure::Failure;
use crate::stdout;
use analysis::catalogue::pages;
use model::finding::{CheckPage, Pages};
use report::{Format, Style};
use std::process::ExitCode;

/// Explain a check: what it reads, its formula, how to trigger it and how to fix what it finds. Also explains a word of a report.
///
/// Without an ID all checks are listed. An ID is what a report prints, such as A01, or the name after it, such as CACHE_SERVED, in any
/// case. A word of a report, such as headline, is explained from the glossary.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Ids or names of checks, or words of a report [default: all checks]
    #[arg(value_name = "ID|WORD")]
    checks: Vec<String>,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Pages>())]
    format: &'static Format,
}

impl Args {
    /// Explains the checks or words.
    ///
    /// # Errors
    /// A usage failure that names the most similar check if one does not exist.
    pub fn explain(self) -> Result<ExitCode, Failure> {
        let meanings: Vec<String> = self.checks.iter().filter_map(|word| help::glossary(word)).collect();
        if !meanings.is_empty() && meanings.len() == self.checks.len() {
            stdout::text(&meanings.concat())?;
            return Ok(ExitCode::SUCCESS);
        }
        let checks = self.checks.iter().map(|word| find_check(word)).collect::<Result<Vec<_>, _>>();
        print_pages(&Request { checks: checks.map_err(Failure::Usage)?, format: self.format })
    }
}

/// A request to explain checks.
#[derive(Debug)]
pub(super) struct Request {
    /// The named checks, in order; empty means all.
    pub checks: Vec<CheckPage>,
    /// Format of the answer.
    pub format: &'static Format,
}

/// Prints the pages.
///
/// # Errors
/// If they cannot be printed.
fn print_pages(request: &Request) -> Result<ExitCode, Failure> {
    let all = request.checks.is_empty();
    let pages = if all { pages().collect() } else { request.checks.clone() };
    stdout::report(request.format, &Pages { pages, all }, Style::default())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn shown(format: &str, pages: Vec<CheckPage>, all: bool) -> String {
        let bytes = report::find::<Pages>(format)
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
    fn the_reference_page_matches_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/checks.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        let now = shown("markdown", pages().collect(), true);
        // Not `assert_eq`: it would print both pages.
        assert!(kept == now, "renew it: fathom explain --format markdown > docs/reference/checks.md");
    }
}
