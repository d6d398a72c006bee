//! Checks that the documentation of job files is current: examples are valid jobs, and the documents name
//! every key and option.

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
fn the_document_names_every_key_of_a_line() {
    holds("docs/reference/job-files.md", "<!-- keys of a line -->\n", &line_keys());
}

#[test]
fn the_document_says_what_becomes_of_every_option_of_fio() {
    holds("docs/reference/fio.md", "<!-- own options -->\n", &own_options());
    holds("docs/reference/fio.md", "<!-- options -->\n", &options());
}

#[test]
fn the_document_says_what_becomes_of_every_option_of_diskspd() {
    holds("docs/reference/diskspd.md", "<!-- options -->\n", &options_of_diskspd());
}

/// Every supported option of DISKSPD is typed in a story or in a test of the parser.
fn options_of_diskspd() -> String {
    let texts =
        ["tests/it/diskspd.rs", "crates/dialect/src/diskspd/tests.rs"].map(|path| read(&root().join(path)));
    let mut out = String::from("\n| option | here | on Linux |\n|---|---|---|\n");
    for diskspd::DiskspdOption { name, value, how } in diskspd::OPTIONS {
        let (word, about) = match how {
            diskspd::How::Held(about) => ("held", about),
            diskspd::How::NoEffect(why) => ("no effect", why),
            diskspd::How::Refused(why) => ("refused", why),
        };
        let typed =
            [format!(" -{name}"), format!("\"-{name}"), format!("--{}", name.trim_start_matches('-'))];
        let is_typed = texts.iter().any(|text| typed.iter().any(|typed| text.contains(typed.as_str())));
        assert!(word != "held" || is_typed, "no story types -{name}");
        out += &format!("| `-{name}{value}` | {word} | {about} |\n")
            .replace("text|xml", "text\\|xml")
            .replace("1|2|3", "1\\|2\\|3");
    }
    out + "\n"
}

/// Asserts that a document has a generated part as it would be made today, or makes it.
#[track_caller]
fn holds(document: &str, begin: &str, generated: &str) {
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
fn the_jobs_in_the_document_are_jobs() {
    let text = read(&root().join("docs/reference/job-files.md"));
    let jobs: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(jobs.len() >= 2);
    for job in jobs {
        parse("docs/reference/job-files.md", job, |_| Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The table of options of jobs.
fn options() -> String {
    let stories = stories();
    let row = |option: &FioOption| {
        let names = || std::iter::once(option.name).chain(option.aliases.iter().copied());
        let shown: Vec<String> = names().map(|n| format!("`{n}`")).collect();
        let story = stories.iter().find(|(_, text)| names().any(|name| says(text, name)));
        (shown.join(", "), option.how, story.map(|(name, _)| name.clone()))
    };
    let rows: Vec<_> = OPTIONS.iter().map(row).collect();
    let held = rows.iter().filter(|(_, how, _)| matches!(how, How::Held(_)));
    let without: Vec<&String> = held.filter(|(.., story)| story.is_none()).map(|(names, ..)| names).collect();
    assert!(without.is_empty(), "no story types these: {without:?}");
    table(rows.into_iter())
}

/// Stories about fio's language, each with its text: those of the program first, then those of the parser.
fn stories() -> Vec<(String, String)> {
    const OF_THE_PROGRAM: [&str; 10] = [
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
    let of_program = OF_THE_PROGRAM.map(|name| (name, root().join(format!("tests/it/{name}.rs"))));
    let mut of_parser: Vec<PathBuf> = std::fs::read_dir(root().join("crates/dialect/src/fio"))
        .unwrap_or_else(|e| panic!("{e}"))
        .map(|entry| entry.unwrap_or_else(|e| panic!("{e}")).path())
        .collect();
    of_parser.extend(
        ["order", "settings"].map(|name| root().join(format!("crates/dialect/src/fio/tests/{name}.rs"))),
    );
    of_parser.retain(|path| path.is_file());
    of_parser.sort();
    let files = of_program.into_iter().chain(of_parser.into_iter().map(|path| ("dialect", path)));
    let mut all = Vec::new();
    for (module, path) in files {
        let text = read(&path);
        for story in text.split("#[test]\n").skip(1) {
            // Constants below a story are of what follows it.
            let body = story.split("\n}\n").next().unwrap_or_default();
            let name =
                body.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map(|(name, _)| name);
            let typed = body.replace("\\n", "\n");
            all.push((format!("{module}::{}", name.unwrap_or_default()), typed));
        }
    }
    all
}

/// Whether a text types an option.
fn says(text: &str, option: &str) -> bool {
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

/// Options with what becomes of each, and for those that are held the story that types it.
fn table(rows: impl Iterator<Item = (String, How, Option<String>)>) -> String {
    let mut out = String::from("\n| option | here | what becomes of it |\n|---|---|---|\n");
    for (names, how, story) in rows {
        let (word, about) = match how {
            How::Held(about) => {
                let by = story.map_or_else(String::new, |story| format!(" (`{story}`)"));
                ("held", about.to_owned() + &by)
            }
            How::NoEffect(why) => ("no effect", why.to_owned()),
            How::Only(values, why) => {
                let values: Vec<String> = values.iter().map(|v| format!("`{v}`")).collect();
                ("refused", format!("taken as {} alone: {why}", values.join(" or ")))
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
