//! `fathom explain`: its flags; prints the pages of checks, from the table that also runs them.

use super::help;
use crate::cli::shared_flags::{OUTPUT, formats_of};
use crate::failure::Failure;
use crate::stdout;
use analysis::catalogue::pages;
use model::check_id::CheckId;
use model::check_page::{CheckPage, Pages};
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

/// Finds a check by id or name, in any case.
///
/// # Errors
/// The most similar check if there is none.
pub(super) fn find_check(typed: &str) -> Result<CheckPage, String> {
    let word = typed.to_ascii_uppercase();
    let id = word.parse::<CheckId>().ok();
    if let Some(check) = pages().find(|c| Some(c.id) == id || c.name == word) {
        return Ok(check);
    }
    // Letters that resemble digits are the most likely slip in an id.
    let figures = word.replace('O', "0").replace(['I', 'L'], "1");
    let likeness = |c: &CheckPage| {
        let id = strsim::normalized_damerau_levenshtein(&figures, &c.id.to_string());
        id.max(strsim::normalized_damerau_levenshtein(&word, c.name))
    };
    let nearest = pages().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let nearest = nearest.map_or_else(String::new, |c| format!("; the nearest is {} {}", c.id, c.name));
    Err(format!("there is no check '{typed}'{nearest}; `fathom explain` lists all"))
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
    fn checks_are_found_by_id_and_name_in_any_case() {
        for typed in ["A01", "a01", "cache_served", "CACHE_SERVED"] {
            assert_eq!(find_check(typed).map(|c| c.id), Ok(CheckId::A01), "{typed}");
        }
        let slips = [("CACHE_SERVE", "A01"), ("LITTLES_VIOLATED", "B18"), ("e1O", "E10")];
        for (typed, expected) in slips {
            let why = find_check(typed).err().unwrap_or_default();
            assert!(why.contains(typed) && why.contains(expected), "{typed}: {why}");
        }
        assert!(find_check("").is_err());
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
