//! What is written for people about job files is true: the examples are jobs, and the document names every key.
//!
//! For: files outside this crate that would go stale. Not for: the language itself (unit tests).

use dialect::job::parse;
use model::spec::keys::{Group, KEYS};
use model::spec::line::LINE_KEYS;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_example_is_a_job_that_says_what_it_is_for() {
    let folder = root().join("examples/jobs");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.unwrap_or_else(|e| panic!("{e}")).path();
        let text = read(&path);
        let job = parse(&path.display().to_string(), &text, |_| Vec::new()).unwrap_or_else(|e| panic!("{e}"));
        names.push(job.name.unwrap_or_else(|| panic!("{} has no name", path.display())));
        let comments = text.lines().take_while(|l| l.starts_with("# ")).count();
        assert_eq!(comments, 2, "{} begins with two lines that say what it is for", path.display());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 10);
}

#[test]
fn the_document_names_every_key_as_it_is() {
    const BEGIN: &str = "<!-- keys -->\n";
    const END: &str = "<!-- end -->\n";
    let path = root().join("docs/jobs.md");
    let text = read(&path);
    let (before, rest) =
        text.split_once(BEGIN).unwrap_or_else(|| panic!("{BEGIN} is not in {}", path.display()));
    let (inside, after) =
        rest.split_once(END).unwrap_or_else(|| panic!("{END} is not in {}", path.display()));
    if std::env::var_os("FATHOM_BLESS").is_some() {
        let blessed = format!("{before}{BEGIN}{}{END}{after}", tables());
        std::fs::write(&path, blessed).unwrap_or_else(|e| panic!("{e}"));
        return;
    }
    assert_eq!(inside, tables(), "FATHOM_BLESS=1 cargo test -p fathom-io-dialect writes it anew");
}

#[test]
fn the_jobs_in_the_document_are_jobs() {
    let text = read(&root().join("docs/jobs.md"));
    let jobs: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(jobs.len() >= 2);
    for job in jobs {
        parse("docs/jobs.md", job, |_| Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The tables of keys, grouped as in help.
fn tables() -> String {
    let mut out = String::from("\n| key | value | meaning |\n|---|---|---|\n");
    for key in Group::ALL.into_iter().flat_map(|g| KEYS.iter().filter(move |k| k.group == g)) {
        let value = if key.is_switch() { "true" } else { key.value };
        out += &format!("| `{}` | `{value}` | {} |\n", key.name, key.about);
    }
    out += "\nKeys of a line:\n\n| key | value | meaning |\n|---|---|---|\n";
    for key in LINE_KEYS {
        out += &format!("| `{}` | `{}` | {} |\n", key.name, key.value, key.about);
    }
    out + "\n"
}
