//! The table "Where do I add" of ARCHITECTURE.md: adds one minimal item of each kind in a copy of this repository, builds it and uses it. Each
//! addition must need exactly the files that the table names.

use crate::turns::Turn;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// Heading of the table.
const TABLE: &str = "## Where do I add ...";
/// Once, and kept nowhere.
const SHORT: &str = "--runs 1 --attempts 1 --no-history --quiet";

/// A change of a file: text that occurs in it once.
struct Edit {
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

/// One of the kinds in the table, with the files that it needs.
struct Addition {
    /// The row of the table.
    row: &'static str,
    /// Files that are new, with what is in them.
    new: Vec<(&'static str, String)>,
    edits: Vec<Edit>,
    /// The place that the row leaves open.
    acts: &'static [&'static str],
    /// The command that updates generated files.
    generate: fn(&Scratch),
}

/// A copy of this repository. What builds it takes the whole machine.
struct Scratch {
    dir: TempDir,
    _turn: Turn,
}

impl Scratch {
    /// All files that git knows or would add, with their content.
    fn new() -> Self {
        let turn = Turn::exclusive();
        let copy = Self { dir: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), _turn: turn };
        let known = output_of(
            Command::new("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]),
            ROOT,
        );
        for file in known.lines().map(Path::new).filter(|file| Path::new(ROOT).join(file).is_file()) {
            let to = copy.path(file);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(Path::new(ROOT).join(file), to).unwrap();
        }
        copy.git("init --quiet");
        copy.git("add --all");
        copy
    }

    fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(file)
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    fn git(&self, words: &str) -> String {
        output_of(Command::new("git").args(words.split(' ')), self.dir.path())
    }

    /// Builds with what this repository's tests were built with, and what is built stays for the next time.
    fn cargo(&self, words: &str, bless: bool) -> String {
        let mut command = Command::new(env!("CARGO"));
        command.args(words.split(' ')).args(["--offline", "--locked", "--quiet"]);
        command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("additions"));
        if bless {
            command.env("FATHOM_BLESS", "1");
        }
        output_of(&mut command, self.dir.path())
    }

    fn fathom(&self, words: &str) -> String {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("additions/debug/fathom");
        // No storage takes part, and the report says so.
        said_with(&[0, 1], Command::new(program).args(words.split(' ')), self.dir.path())
    }

    /// Makes an addition, and gives the files that it took.
    fn add(&self, addition: &Addition) -> BTreeSet<String> {
        for (file, text) in &addition.new {
            std::fs::write(self.path(file), text).unwrap();
        }
        for Edit { file, old, new } in &addition.edits {
            let text = self.read(file);
            assert_eq!(text.matches(old).count(), 1, "this test follows {file}, where once stood:\n{old}");
            std::fs::write(self.path(file), text.replacen(old, new, 1)).unwrap();
        }
        (addition.generate)(self);
        let changed = self.git("ls-files --modified --others --exclude-standard");
        self.git("add --all");
        changed.lines().map(str::to_owned).collect()
    }
}

/// The output of a command that succeeds.
fn output_of(command: &mut Command, dir: impl AsRef<Path>) -> String {
    said_with(&[0], command, dir)
}

/// The output of a command that ends with one of these exit codes.
fn said_with(codes: &[i32], command: &mut Command, dir: impl AsRef<Path>) -> String {
    let out = command.current_dir(dir).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let ended_well = out.status.code().is_some_and(|code| codes.contains(&code));
    let [stdout, stderr] = [&out.stdout, &out.stderr].map(|printed| String::from_utf8_lossy(printed));
    assert!(ended_well, "{command:?}: {}\n{stdout}\n{stderr}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

/// The files and folders in a row of the table: texts in backquotes with a slash.
fn named(row: &str) -> Vec<String> {
    let map = std::fs::read_to_string(Path::new(ROOT).join("ARCHITECTURE.md")).unwrap();
    let (_, table) = map.split_once(TABLE).unwrap_or_else(|| panic!("ARCHITECTURE.md has no '{TABLE}'"));
    let start = format!("| {row} |");
    let row = table.lines().find(|line| line.starts_with(&start));
    let row = row.unwrap_or_else(|| panic!("no row '{start}' below '{TABLE}'"));
    row.split('`').skip(1).step_by(2).filter(|word| word.contains('/')).map(str::to_owned).collect()
}

/// A file of this repository under another name, with other words in it.
fn like(file: &str, words: &[(&str, &str)]) -> String {
    let text = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
    words.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

fn nothing(_: &Scratch) {}

/// Writes the page of all settings anew.
fn settings_page(copy: &Scratch) {
    copy.cargo("test -p fathom-io --lib page_of_settings", true);
}

fn engine() -> Addition {
    let engines = "crates/engine/src/engines/mod.rs";
    Addition {
        row: "an engine",
        new: vec![(
            "crates/engine/src/engines/still.rs",
            like("crates/engine/src/engines/null.rs", &[("Null", "Still"), ("`null`", "`still`")]),
        )],
        edits: vec![
            Edit { file: engines, old: "mod stdio;\n", new: "mod stdio;\nmod still;\n" },
            Edit {
                file: engines,
                old: "    Entry::of::<null::Null>(Facts {\n",
                new: "    Entry::of::<still::Still>(Facts { moves_bytes: false, ..deep(\"still\", \"moves nothing\") }),\n    \
                      Entry::of::<null::Null>(Facts {\n",
            },
        ],
        acts: &[],
        generate: settings_page,
    }
}

fn check() -> Addition {
    let words = [("C06", "C07"), ("SYNC_HIDES_TAIL", "SYNC_IS_LONG")];
    let group = "crates/analysis/src/checks/c/mod.rs";
    Addition {
        row: "a check",
        new: vec![(
            "crates/analysis/src/checks/c/c07_sync_is_long.rs",
            like("crates/analysis/src/checks/c/c06_sync_hides_tail.rs", &words),
        )],
        edits: vec![
            Edit { file: "crates/model/src/check_id.rs", old: " C06\n", new: " C06 C07\n" },
            Edit {
                file: group,
                old: "mod c06_sync_hides_tail;\n",
                new: "mod c06_sync_hides_tail;\nmod c07_sync_is_long;\n",
            },
            Edit {
                file: group,
                old: "    c06_sync_hides_tail::CHECK,\n",
                new: "    c06_sync_hides_tail::CHECK,\n    c07_sync_is_long::CHECK,\n",
            },
        ],
        acts: &[],
        generate: |copy| {
            copy.cargo("build --bin fathom", false);
            let pages = copy.fathom("explain --format markdown");
            std::fs::write(copy.path("docs/reference/checks.md"), pages).unwrap();
        },
    }
}

fn format() -> Addition {
    let table = "crates/report/src/formats/mod.rs";
    // It can write a report alone, and says so of each other kind.
    let kinds = like("crates/report/src/format.rs", &[]);
    let kinds = kinds.lines().filter_map(|l| l.trim().strip_prefix("pub ")?.split_once(": Option<Writer<"));
    let others = kinds.filter(|(kind, _)| *kind != "report").map(|(kind, _)| format!("{kind}: None,"));
    let others = others.collect::<Vec<_>>().join("\n    ");
    let file = r#"//! The format `count`: how many results there are.
//!
//! Added by the test.

use crate::format::{Content, Format, Style, Writer};
use model::report::Report;
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "count",
    extension: "count",
    content: Content::Text,
    has_brief: false,
    report: Some(Writer { about: "how many results", write }),
    OTHERS
};

fn write(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "results: {}", report.results.len())
}
"#;
    Addition {
        row: "an output format",
        new: vec![("crates/report/src/formats/count.rs", file.replace("OTHERS", &others))],
        edits: vec![
            Edit { file: table, old: "mod csv;\n", new: "mod count;\nmod csv;\n" },
            Edit { file: table, old: "&csv::FORMAT,", new: "&count::FORMAT, &csv::FORMAT," },
        ],
        acts: &[],
        generate: |copy| drop(copy.cargo("test -p fathom-io-report --test golden", true)),
    }
}

fn setting() -> Addition {
    let plan = "src/plan/stream.rs";
    let stream = "crates/model/src/job/stream.rs";
    Addition {
        row: "a setting of a workload",
        new: Vec::new(),
        edits: vec![
            Edit {
                file: "crates/model/src/spec/keys.rs",
                old: "    key(\n        NAME,\n",
                new: "    key(\n        \"variation\",\n        Group::What,\n        \"N\",\n        \"Draw other offsets from \
                      the same seed\",\n        &[Run],\n        Set::Stream(|s, t| put(&mut s.variation, whole(t, 0, \
                      u64::MAX))),\n    ),\n    key(\n        NAME,\n",
            },
            Edit {
                file: "crates/model/src/spec/mod.rs",
                old: "    /// Time in ns from the phase's start to its first operation.\n",
                new: "    /// Which of the courses that a seed has.\n    pub variation: Option<u64>,\n    /// Time in ns from the \
                      phase's start to its first operation.\n",
            },
            Edit {
                file: stream,
                old: "    /// Where its threads and their memory are.\n    #[serde(default)]\n",
                new: "    /// Which of the courses that a seed has.\n    #[serde(default)]\n    pub variation: u64,\n    /// Where \
                      its threads and their memory are.\n    #[serde(default)]\n",
            },
            Edit {
                file: stream,
                old: "            delay_ns: 0,\n",
                new: "            delay_ns: 0,\n            variation: 0,\n",
            },
            Edit {
                file: plan,
                old: "        delay_ns: spec.delay.unwrap_or(0),\n",
                new: "        delay_ns: spec.delay.unwrap_or(0),\n        variation: spec.variation.unwrap_or(0),\n",
            },
            Edit {
                file: plan,
                old: "    origins.note(\"--delay\",",
                new: "    origins.note(\"--variation\", spec.variation, u64::to_string);\n    origins.note(\"--delay\",",
            },
            Edit {
                file: "src/run/specs.rs",
                old: "split_mix(self.plan.drawn_by() ^ split_mix(own))",
                new: "split_mix(self.plan.drawn_by() ^ stream.variation ^ split_mix(own))",
            },
        ],
        acts: &["src/run/specs.rs"],
        generate: settings_page,
    }
}

fn language() -> Addition {
    let table = "crates/dialect/src/lib.rs";
    let file = r#"//! The language `words`: a stream as `KEY=VALUE`, with blanks between.
//!
//! Added by the test.

use crate::language::{Language, Objections, Tool};
use crate::trouble::{Mark, Trouble};
use model::spec::{JobSpec, keys};

pub(crate) const LANGUAGE: Language = Language { tool: Tool::Fathom, extension: "words", parse };

fn parse(name: &str, text: &str, also: Objections) -> Result<JobSpec, Trouble> {
    let (mut job, mut marks) = (JobSpec::default(), Vec::new());
    let whole = 0..text.len();
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let known = keys::find(key).ok_or_else(|| format!("there is no key {key}"));
        marks.extend(known.and_then(|key| key.say(&mut job, [value])).err().map(|why| Mark::new(whole.clone(), why)));
    }
    let problems = job.check().into_iter().chain(also(&job));
    marks.extend(problems.map(|problem| Mark::new(whole.clone(), problem.in_toml())));
    if marks.is_empty() { Ok(job) } else { Err(Trouble::new(name, text, marks)) }
}
"#;
    Addition {
        row: "a language of workloads",
        new: vec![("crates/dialect/src/words.rs", file.into())],
        edits: vec![
            Edit { file: table, old: "pub mod trouble;\n", new: "pub mod trouble;\nmod words;\n" },
            Edit { file: table, old: " iometer::LANGUAGE];", new: " iometer::LANGUAGE, words::LANGUAGE];" },
        ],
        acts: &[],
        generate: nothing,
    }
}

#[test]
#[ignore = "long"]
fn each_addition_needs_exactly_the_files_named_in_the_table() {
    let copy = Scratch::new();
    // The check last: what generates its page has all of them in it.
    for addition in [engine(), format(), setting(), language(), check()] {
        let row = addition.row;
        let (took, names) = (copy.add(&addition), named(row));
        let is_named = |file: &String| {
            names.iter().any(|name| name == file || name.ends_with('/') && file.starts_with(name.as_str()))
        };
        let unnamed: Vec<&String> =
            took.iter().filter(|f| !is_named(f) && !addition.acts.contains(&f.as_str())).collect();
        assert!(unnamed.is_empty(), "{row} took {unnamed:?}, which its row in ARCHITECTURE.md does not name");
        let untouched: Vec<&String> =
            names.iter().filter(|name| !took.iter().any(|file| file.starts_with(name.as_str()))).collect();
        assert!(
            untouched.is_empty(),
            "{row} did not take {untouched:?}, which its row names; it took {took:?}"
        );
        println!("{row}: {}", took.into_iter().collect::<Vec<_>>().join(", "));
    }
    let json = copy
        .fathom(&format!("run --engine still --variation 7 --time 100ms --warmup 0 {SHORT} --format json"));
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let stream = &report["results"][0]["job"]["phases"][0]["streams"][0];
    assert_eq!((&stream["engine"], &stream["variation"]), (&"still".into(), &7.into()), "{stream:#}");
    std::fs::write(copy.path("job.words"), "rw=read bs=4k engine=still time=100ms warmup=0").unwrap();
    let counted = copy.fathom(&format!("run {SHORT} --format count job.words"));
    assert_eq!(counted, "results: 1\n");
    assert!(copy.fathom("explain c07").contains("SYNC_IS_LONG"));
}
