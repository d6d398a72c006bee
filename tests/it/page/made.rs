//! Pages of every kind, made by real measurements and commands.
//!
//! For: a page with the JSON of the same report. Not for: looking at them.

use crate::stage::Stage;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

/// A name that would run, were it taken for anything but a name.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)><script>alert(2)<!--";
/// A tag and a note that would run, were they taken for anything but text.
pub(crate) const TAG: &str = "<script>alert(3)<!--";
pub(crate) const NOTE: &str = "<svg/onload=alert(4)>";

/// A page and the JSON of the same report.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) page: PathBuf,
    pub(crate) json: Value,
}

/// Makes a page and the JSON beside it by one call.
fn made(stage: &Stage, name: &'static str, words: &str, target: &Path) -> Made {
    let page = stage.path(&format!("{name}.html"));
    let out = stage.fathom(&format!("{words} --format json -o {}", page.display()), target);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let json = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    Made { name, page, json }
}

/// Prints a page, where a command writes no files.
fn printed(stage: &Stage, name: &'static str, words: &str, target: &Path) -> Made {
    let out = stage.fathom(&format!("{words} --format html"), target);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let page = stage.path(&format!("{name}.html"));
    std::fs::write(&page, &out.stdout).unwrap();
    Made { name, page, json: Value::Null }
}

/// A session of a directory whose name would run, with a tag and a note that would.
fn hostile(stage: &Stage) -> Made {
    let place = stage.folder(HOSTILE);
    let out = stage.fathom(
        "run --rw randrw --bs 4k --depth 4 --time 500ms --warmup 0 --runs 3 --size 16m --quiet --format json",
        &place,
    );
    let session = out.report().0["session"].as_str().unwrap().to_owned();
    for words in [format!("tag {session} {TAG}"), format!("note {session} {NOTE}")] {
        assert_eq!(stage.fathom(&words, Path::new("")).code, Some(0), "{words}");
    }
    made(stage, "run", &format!("show {session}"), Path::new(""))
}

/// What is simulated, by the name of its page.
const SIMULATED: [(&str, &str); 5] = [
    ("sim", "run --quiet --engine sim --depth 32 --time 1s --warmup 0 --runs 3 --seed 7"),
    ("again", "run --quiet --engine sim --depth 32 --time 1s --warmup 0 --runs 3 --seed 8"),
    ("third", "run --quiet --engine sim --depth 16 --time 1s --warmup 0 --runs 3 --seed 9"),
    ("limit", "limit --quiet --engine sim:servers=4 --time 300ms --runs 3"),
    ("sweep", "sweep --quiet --engine sim --time 100ms --seed 7 --rw read --bs 4k..64k --depth 1..8"),
];

/// Those that are there to stand beside another one.
const OTHERS: [&str; 2] = ["again", "third"];

/// What is measured in a directory.
const STORED: [(&str, &str); 3] = [
    ("bench", "bench --quiet --time 100ms --runs 1 --size 16m"),
    ("layers", "layers --quiet --time 50ms --runs 3 --size 16m"),
    ("api", "api --quiet --time 50ms --runs 1 --size 16m --rw read --bs 64k --interface read,pread,mmap"),
];

/// Makes pages of what is simulated, and of several of those together; hands each on as soon as it is there.
pub(crate) fn simulated(stage: &Stage, to: &Sender<Made>) {
    let none = Path::new("");
    let put = |made: Made| to.send(made).unwrap();
    let mut sessions = Vec::new();
    for (name, words) in SIMULATED {
        let made = made(stage, name, words, none);
        sessions.push(made.json["session"].as_str().unwrap().to_owned());
        // One page of a kind is looked at.
        if !OTHERS.contains(&name) {
            put(made);
        }
    }
    put(made(stage, "compare", &format!("compare {}", sessions[..2].join(" ")), none));
    put(made(stage, "several", &format!("compare --accept E14 {}", sessions[..3].join(" ")), none));
    // Runs, a load curve and maps, each with its own plots.
    put(made(stage, "together", &format!("show {}", sessions.join(" ")), none));
}

/// Makes pages of what touches storage, one after another.
pub(crate) fn stored(stage: &Stage, to: &Sender<Made>) {
    let place = stage.folder("place");
    let put = |made: Made| to.send(made).unwrap();
    for (name, words) in STORED {
        put(made(stage, name, words, &place));
    }
    put(printed(stage, "verify", "verify --quiet --size 16m", &place));
    put(printed(stage, "doctor", "doctor", &place));
    put(hostile(stage));
}
