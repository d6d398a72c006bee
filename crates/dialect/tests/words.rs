//! Checks that the documentation of job languages is current: examples are valid jobs, and the documents list
//! every key and option. `FATHOM_BLESS=1` writes the generated tables anew.

use dialect::diskspd::options as diskspd;
use dialect::fio::options::{FioOption, How, OPTIONS, OWN, OwnOption};
use dialect::job::parse;
use model::spec::iometer::LINE_KEYS;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_example_is_a_valid_job_with_a_description() {
    let folder = root().join("examples/jobs");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.unwrap_or_else(|e| panic!("{e}")).path();
        let text = read(&path);
        let job = parse(&path.display().to_string(), &text, |_| Vec::new()).unwrap_or_else(|e| panic!("{e}"));
        names.push(job.name.unwrap_or_else(|| panic!("{} has no name", path.display())));
        let comments = text.lines().take_while(|l| l.starts_with("# ")).count();
        assert_eq!(comments, 2, "{} must begin with two lines of description", path.display());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 10);
}

#[test]
fn the_keys_of_a_line_are_documented() {
    check_generated("docs/reference/job-files.md", "<!-- keys of a line -->\n", &line_keys());
}

#[test]
fn the_options_of_fio_are_documented() {
    check_generated("docs/reference/fio.md", "<!-- own options -->\n", &own_options());
    check_generated("docs/reference/fio.md", "<!-- options -->\n", &options());
}

#[test]
fn the_options_of_diskspd_are_documented() {
    check_generated("docs/reference/diskspd.md", "<!-- options -->\n", &diskspd_options());
}

/// The table of DISKSPD's options. Panics if no test types an honoured option.
fn diskspd_options() -> String {
    let texts =
        ["tests/it/diskspd.rs", "crates/dialect/src/diskspd/tests.rs"].map(|path| read(&root().join(path)));
    let mut out = String::from("\n| option | here | on Linux |\n|---|---|---|\n");
    for diskspd::DiskspdOption { name, value, how } in diskspd::OPTIONS {
        let (word, about) = match how {
            diskspd::How::Honoured(about) => ("honoured", about),
            diskspd::How::NoEffect(why) => ("no effect", why),
            diskspd::How::Refused(why) => ("refused", why),
        };
        let typed =
            [format!(" -{name}"), format!("\"-{name}"), format!("--{}", name.trim_start_matches('-'))];
        let is_typed = texts.iter().any(|text| typed.iter().any(|typed| text.contains(typed.as_str())));
        assert!(word != "honoured" || is_typed, "no test types -{name}");
        out += &format!("| `-{name}{value}` | {word} | {about} |\n")
            .replace("text|xml", "text\\|xml")
            .replace("1|2|3", "1\\|2\\|3");
    }
    out + "\n"
}

/// Asserts that a document has the current generated part, or writes it.
#[track_caller]
fn check_generated(document: &str, begin: &str, generated: &str) {
    const END: &str = "<!-- end -->\n";
    let path = root().join(document);
    let text = read(&path);
    let (before, rest) =
        text.split_once(begin).unwrap_or_else(|| panic!("{begin} is not in {}", path.display()));
    let (inside, after) =
        rest.split_once(END).unwrap_or_else(|| panic!("{END} is not in {}", path.display()));
    if std::env::var_os("FATHOM_BLESS").is_some() {
        let blessed = format!("{before}{begin}{generated}{END}{after}");
        std::fs::write(&path, blessed).unwrap_or_else(|e| panic!("{e}"));
        return;
    }
    assert_eq!(inside, generated, "FATHOM_BLESS=1 cargo test -p fathom-io-dialect writes it anew");
}

#[test]
fn the_jobs_in_the_document_are_valid() {
    let text = read(&root().join("docs/reference/job-files.md"));
    let jobs: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(jobs.len() >= 2);
    for job in jobs {
        parse("docs/reference/job-files.md", job, |_| Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The table of fio's job options, each honoured one with a test that types it.
fn options() -> String {
    let tests = fio_tests();
    let row = |option: &FioOption| {
        let names = || std::iter::once(option.name).chain(option.aliases.iter().copied());
        let shown: Vec<String> = names().map(|n| format!("`{n}`")).collect();
        let test = tests.iter().find(|(_, text)| names().any(|name| types_option(text, name)));
        (shown.join(", "), option.how, test.map(|(name, _)| name.clone()))
    };
    let rows: Vec<_> = OPTIONS.iter().map(row).collect();
    let honoured = rows.iter().filter(|(_, how, _)| matches!(how, How::Honoured(_)));
    let without: Vec<&String> =
        honoured.filter(|(.., test)| test.is_none()).map(|(names, ..)| names).collect();
    assert!(without.is_empty(), "no test types these: {without:?}");
    table(rows.into_iter())
}

/// Tests of fio's options, each with its text: integration tests first, then unit tests of the parser.
fn fio_tests() -> Vec<(String, String)> {
    const INTEGRATION_TESTS: [&str; 10] = [
        "fio",
        "fio_calls",
        "fio_logs",
        "fio_out",
        "checked",
        "fio_order",
        "fio_engines",
        "fio_errors",
        "fio_rules",
        "fio_replay",
    ];
    let integration_tests = INTEGRATION_TESTS.map(|name| (name, root().join(format!("tests/it/{name}.rs"))));
    let mut unit_tests: Vec<PathBuf> = std::fs::read_dir(root().join("crates/dialect/src/fio"))
        .unwrap_or_else(|e| panic!("{e}"))
        .map(|entry| entry.unwrap_or_else(|e| panic!("{e}")).path())
        .collect();
    unit_tests.extend(
        ["order", "settings"].map(|name| root().join(format!("crates/dialect/src/fio/tests/{name}.rs"))),
    );
    unit_tests.retain(|path| path.is_file());
    unit_tests.sort();
    let files = integration_tests.into_iter().chain(unit_tests.into_iter().map(|path| ("dialect", path)));
    let mut all = Vec::new();
    for (module, path) in files {
        let text = read(&path);
        for test in text.split("#[test]\n").skip(1) {
            // Constants after a test belong to the next one.
            let body = test.split("\n}\n").next().unwrap_or_default();
            let name =
                body.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map(|(name, _)| name);
            let typed = body.replace("\\n", "\n");
            all.push((format!("{module}::{}", name.unwrap_or_default()), typed));
        }
    }
    all
}

/// Whether a text types an option.
fn types_option(text: &str, option: &str) -> bool {
    text.match_indices(option).any(|(at, _)| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let before = text[..at].chars().next_back();
        let after = text[at + option.len()..].chars().next();
        // A bare word is on its own line, after another word, or at the end.
        let ends = after.is_some_and(|c| matches!(c, '=' | '\n' | ' ' | '"'));
        !before.is_some_and(|c| is_word(c) || matches!(c, '.' | ':' | '`')) && ends
    })
}

/// The table of options of fio itself.
fn own_options() -> String {
    let row = |option: &OwnOption| {
        let value = option.value.map_or_else(String::new, |value| format!("={value}"));
        (format!("`--{}{value}`", option.name).replace('|', "\\|"), option.how, None)
    };
    table(OWN.iter().map(row))
}

/// A table of options with how each is handled, and the test that types it.
fn table(rows: impl Iterator<Item = (String, How, Option<String>)>) -> String {
    let mut out = String::from("\n| option | here | effect or reason |\n|---|---|---|\n");
    for (names, how, test) in rows {
        let (word, about) = match how {
            How::Honoured(about) => {
                let by = test.map_or_else(String::new, |test| format!(" (`{test}`)"));
                ("honoured", about.to_owned() + &by)
            }
            How::NoEffect(why) => ("no effect", why.to_owned()),
            How::Only(values, why) => {
                let values: Vec<String> = values.iter().map(|v| format!("`{v}`")).collect();
                ("refused", format!("except {}: {why}", values.join(" or ")))
            }
            How::Refused(why) => ("refused", why.to_owned()),
        };
        out += &format!("| {names} | {word} | {} |\n", about.replace('|', "\\|"));
    }
    out + "\n"
}

/// The table of the keys of a line.
fn line_keys() -> String {
    let mut out = String::from("\n| key | value | meaning |\n|---|---|---|\n");
    for key in LINE_KEYS {
        out += &format!("| `{}` | `{}` | {} |\n", key.name, key.value, key.about);
    }
    out + "\n"
}
