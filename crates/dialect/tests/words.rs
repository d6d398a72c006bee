//! Checks that the documentation of job languages is current: examples are valid jobs, and the documents list
//! every key and option. `FATHOM_BLESS=1` writes the generated tables anew.

use dialect::diskspd::options::OPTIONS as DISKSPD;
use dialect::fio::options::{OPTIONS as FIO, OWN as FIO_ITSELF};
use dialect::iometer::options::{HEADINGS, OPTIONS as IOMETER};
use dialect::job::parse;
use dialect::options::{How, ToolOption};
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
fn the_options_of_other_tools_are_documented() {
    let tests = fio_tests();
    let fio = |option: &ToolOption| {
        let types = |(_, text): &&(String, String)| option.names().any(|name| types_option(text, name));
        tests.iter().find(types).map(|(name, _)| name.clone())
    };
    let diskspd = diskspd_tests();
    let diskspd = |option: &ToolOption| {
        let typed = [format!(" -{}", option.name), format!("\"-{}", option.name)];
        typed.iter().any(|typed| diskspd.contains(typed)).then(String::new)
    };
    let untested = |_: &ToolOption| Some(String::new());
    for (tool, begin, generated) in [
        ("fio", "<!-- own options -->\n", table(FIO_ITSELF, "--", &untested)),
        ("fio", "<!-- options -->\n", table(FIO, "", &fio)),
        ("diskspd", "<!-- options -->\n", table(DISKSPD, "-", &diskspd)),
        ("iometer", "<!-- options -->\n", table(IOMETER, "", &untested)),
        ("iometer", "<!-- headings -->\n", table(HEADINGS, "", &untested)),
    ] {
        check_generated(&format!("docs/reference/{tool}.md"), begin, &generated);
    }
}

/// Makes a table of options: names, handling, settings of fathom, effect or reason, and the name of the test that types the option.
/// Panics if no test types an honoured option.
fn table(options: &[ToolOption], prefix: &str, test_of: &dyn Fn(&ToolOption) -> Option<String>) -> String {
    let mut out = String::from("\n| option | here | setting | effect or reason |\n|---|---|---|---|\n");
    let code = |text: &str| format!("`{text}`");
    for option in options {
        let names: Vec<String> =
            option.names().map(|name| code(&format!("{prefix}{name}{}", option.value))).collect();
        let settings: Vec<String> =
            option.settings.split_terminator(' ').map(|name| code(&format!("--{name}"))).collect();
        let (word, about) = match option.how {
            How::Honoured => {
                let test = test_of(option);
                let test = test.unwrap_or_else(|| panic!("no test types {prefix}{}", option.name));
                let by = if test.is_empty() { test } else { format!(" (`{test}`)") };
                ("honoured", format!("{}{by}", option.about))
            }
            How::NoEffect => ("no effect", option.about.to_owned()),
            How::Only(values) => {
                let values: Vec<String> = values.iter().map(|value| code(value)).collect();
                ("refused", format!("except {}: {}", values.join(" or "), option.about))
            }
            How::Refused => ("refused", option.about.to_owned()),
        };
        let cells = [names.join(", "), word.to_owned(), settings.join(", "), about];
        out += &format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    out + "\n"
}

/// The texts of the tests of DISKSPD's options.
fn diskspd_tests() -> String {
    ["tests/it/diskspd.rs", "crates/dialect/src/diskspd/tests.rs"]
        .map(|path| read(&root().join(path)))
        .concat()
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
            // Constants after a test belong to the next test.
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
        // An option without a value is alone on its line, or followed by another word or a quote.
        let ends = after.is_some_and(|c| matches!(c, '=' | '\n' | ' ' | '"'));
        !before.is_some_and(|c| is_word(c) || matches!(c, '.' | ':' | '`')) && ends
    })
}

/// The table of the keys of a line.
fn line_keys() -> String {
    let mut out = String::from("\n| key | value | meaning |\n|---|---|---|\n");
    for key in LINE_KEYS {
        out += &format!("| `{}` | `{}` | {} |\n", key.name, key.value, key.about);
    }
    out + "\n"
}
