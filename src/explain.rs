//! `fathom explain`: the pages of the checks, out of the one table that also asks them.
//!
//! For: a check in words, and all of them as the document `docs/checks.md`. Not for: answers of checks; those are reports.

use crate::failure::Failure;
use crate::stdout;
use analysis::checks::{Told, told};
use model::check_id::CheckId;
use report::prose::prose;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Heading of what makes a check fire: mostly commands.
const TO_FIRE: &str = "To see it fire";

/// What was asked for.
pub struct Wish {
    /// Checks, in the order in which they were named; none means all.
    pub checks: Vec<Told>,
    /// The form of the answer.
    pub form: Form,
}

/// Forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// To read on a terminal.
    Text,
    /// To be a document.
    Markdown,
    /// For programs.
    Json,
}

/// The check with this id or name, in any case.
///
/// # Errors
/// That there is none, with the one most like it.
pub fn find(said: &str) -> Result<Told, String> {
    let word = said.to_ascii_uppercase();
    let id = word.parse::<CheckId>().ok();
    if let Some(check) = told().find(|c| Some(c.id) == id || c.name == word) {
        return Ok(check);
    }
    // Letters that look like figures are the likeliest slip in an id.
    let figures = word.replace('O', "0").replace(['I', 'L'], "1");
    let likeness = |c: &Told| {
        let id = strsim::normalized_damerau_levenshtein(&figures, &c.id.to_string());
        id.max(strsim::normalized_damerau_levenshtein(&word, c.name))
    };
    let nearest = told().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let nearest = nearest.map_or_else(String::new, |c| format!("; the nearest is {} {}", c.id, c.name));
    Err(format!("there is no check '{said}'{nearest}; `fathom explain` lists all"))
}

/// Prints the answer.
///
/// # Errors
/// Where it cannot be printed.
pub fn explain(wish: &Wish) -> Result<ExitCode, Failure> {
    let answer = render(wish);
    if wish.form == Form::Json {
        stdout::json(answer)?;
    } else {
        stdout::text(&answer)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn render(wish: &Wish) -> String {
    let some = &wish.checks;
    match wish.form {
        Form::Text if some.is_empty() => table(),
        Form::Text => some.iter().map(text_page).collect::<Vec<_>>().join("\n"),
        Form::Markdown if some.is_empty() => document(),
        Form::Markdown => some.iter().map(markdown_page).collect::<Vec<_>>().join("\n"),
        Form::Json => {
            let all: Vec<Value> = if some.is_empty() {
                told().map(|c| json_page(&c)).collect()
            } else {
                some.iter().map(json_page).collect()
            };
            format!("{:#}\n", Value::Array(all))
        }
    }
}

/// All checks, those of a group together.
fn groups() -> Vec<Vec<Told>> {
    let all: Vec<Told> = told().collect();
    all.chunk_by(|a, b| a.group == b.group).map(<[Told]>::to_vec).collect()
}

/// The parts of a page that are written, under their headings.
fn parts(check: &Told) -> impl Iterator<Item = (&'static str, &'static str)> {
    let page = check.page;
    let all = [
        ("What it reads", page.reads),
        ("Formula", page.formula),
        (TO_FIRE, page.provoke),
        ("What to do", page.repair),
    ];
    all.into_iter().filter(|(_, text)| !text.is_empty())
}

fn table() -> String {
    let width = told().map(|c| c.name.len()).max().unwrap_or(0);
    let mut out =
        String::from("Every check puts a belief to the test. `fathom explain ID` tells more of one.\n");
    for group in groups() {
        out += &format!("\n{}\n", group[0].group);
        for check in group {
            let first = format!("  {:<4} {:width$}  ", check.id, check.name);
            out += &prose(&first, &" ".repeat(first.len()), check.belief);
        }
    }
    out
}

fn text_page(check: &Told) -> String {
    let mut out = format!("{} {}\n", check.id, check.name);
    out += &prose("  The belief: ", "    ", check.belief);
    out += &format!("  The group: {}\n", check.group);
    for (heading, text) in parts(check) {
        out += &format!("\n  {heading}\n");
        for line in text.lines() {
            out += &text_line(heading, line);
        }
    }
    if check.acceptable {
        out += &format!("\n  To accept it for the exit code: --accept {}\n", check.id);
    }
    out
}

fn text_line(heading: &str, line: &str) -> String {
    if line.is_empty() {
        return "\n".into();
    }
    if is_command(heading, line) { format!("      {}\n", line.trim()) } else { prose("    ", "    ", line) }
}

/// Whether a line is a command to type, which keeps its form: one that is indented, or of [`TO_FIRE`] one that neither ends as a
/// sentence does nor marks its commands itself.
fn is_command(heading: &str, line: &str) -> bool {
    line.starts_with(' ') || (heading == TO_FIRE && !line.ends_with(['.', ':', ';']) && !line.contains('`'))
}

fn document() -> String {
    let mut out = String::from(
        "# Checks\n\n\
         Every result is put through these questions. A check answers *holds*, *finding* or *not checked*, with its reason; a\n\
         finding voids the number, renames it, says that it is biased, or is a note. `fathom explain ID` prints a page of this\n\
         document, which is made by `fathom explain --format markdown > docs/checks.md`.\n",
    );
    for group in groups() {
        out += &format!("\n## {}\n", group[0].group);
        for check in group {
            out += "\n";
            out += &markdown_page(&check);
        }
    }
    out
}

fn markdown_page(check: &Told) -> String {
    let mut out =
        format!("### {} {}\n\nThe belief: {}.\n", check.id, check.name, check.belief.trim_end_matches('.'));
    for (heading, text) in parts(check) {
        out += &markdown_part(heading, text);
    }
    if check.acceptable {
        out += &format!("\nTo accept it for the exit code: `--accept {}`.\n", check.id);
    }
    out
}

/// One sentence stays a paragraph; of several lines each is an item, and a command is marked as one.
fn markdown_part(heading: &str, text: &str) -> String {
    let item = |line: &str| match line.trim() {
        command if is_command(heading, line) => format!("`{command}`"),
        said => said.trim_start_matches("- ").to_owned(),
    };
    let lines: Vec<String> = text.lines().filter(|l| !l.trim().is_empty()).map(item).collect();
    match lines.as_slice() {
        [only] => format!("\n**{heading}.** {only}\n"),
        several => {
            format!("\n**{heading}**\n\n- {}\n", several.join("\n- "))
        }
    }
}

fn json_page(check: &Told) -> Value {
    json!({
        "id": check.id,
        "name": check.name,
        "group": check.group,
        "belief": check.belief,
        "reads": check.page.reads,
        "formula": check.page.formula,
        "provoke": check.page.provoke,
        "repair": check.page.repair,
        "accept": check.acceptable.then(|| format!("--accept {}", check.id)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_found_by_id_and_name_in_any_case_and_a_slip_is_told_the_nearest() {
        for said in ["A01", "a01", "cache_served", "CACHE_SERVED"] {
            assert_eq!(find(said).map(|c| c.id), Ok(CheckId::A01), "{said}");
        }
        let slips = [("CACHE_SERVE", "A01"), ("LITTLES_VIOLATED", "B18"), ("e1O", "E10")];
        for (said, meant) in slips {
            let why = find(said).err().unwrap_or_default();
            assert!(why.contains(said) && why.contains(meant), "{said}: {why}");
        }
        assert!(find("").is_err());
    }

    #[test]
    fn every_check_is_in_every_form() {
        let all = |form| render(&Wish { checks: Vec::new(), form });
        let json: Value = serde_json::from_str(&all(Form::Json)).unwrap_or_default();
        for (i, check) in told().enumerate() {
            assert!(all(Form::Text).contains(check.belief.split(' ').next().unwrap_or_default()));
            assert!(all(Form::Markdown).contains(&format!("### {} {}\n", check.id, check.name)));
            assert_eq!(json[i]["id"], check.id.to_string());
            let page = render(&Wish { checks: vec![check], form: Form::Text });
            assert!(page.starts_with(&format!("{} {}\n", check.id, check.name)));
            for (heading, _) in parts(&check) {
                assert!(page.contains(heading), "{page}");
            }
        }
    }

    #[test]
    fn commands_of_a_page_keep_their_form() {
        assert_eq!(text_line("Formula", "  fathom run  --bs 4k"), "      fathom run  --bs 4k\n");
        assert_eq!(text_line(TO_FIRE, "fathom run --bs 4k"), "      fathom run --bs 4k\n");
        assert_eq!(text_line(TO_FIRE, "A sentence."), "    A sentence.\n");
        assert_eq!(text_line(TO_FIRE, "`a` and `b`"), "    `a` and `b`\n");
        assert_eq!(text_line("Formula", "a > 1"), "    a > 1\n");
        assert_eq!(markdown_part("Formula", "One line."), "\n**Formula.** One line.\n");
        let several = "Make it.\ndd if=/dev/zero of=x\n\n- Look.";
        let items = "- Make it.\n- `dd if=/dev/zero of=x`\n- Look.\n";
        assert_eq!(markdown_part(TO_FIRE, several), format!("\n**{TO_FIRE}**\n\n{items}"));
    }

    #[test]
    fn the_document_is_what_the_table_gives() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/checks.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        // Not `assert_eq`: a page of differences helps nobody.
        assert!(kept == document(), "renew it: fathom explain --format markdown > docs/checks.md");
    }

    #[test]
    fn no_page_is_empty() {
        let empty: Vec<CheckId> = told().filter(|c| parts(c).count() < 4).map(|c| c.id).collect();
        assert_eq!(empty, Vec::new());
    }
}
