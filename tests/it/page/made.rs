//! Makes pages of every kind by real measurements and commands, with the JSON of the same reports.

use crate::stage::Stage;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

/// A file name that would run as a script if it were not escaped.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)><script>alert(2)<!--";
/// A tag that would run as a script if it were not escaped.
pub(crate) const TAG: &str = "<script>alert(3)<!--";
/// A note that would run as a script if it were not escaped.
pub(crate) const NOTE: &str = "<svg/onload=alert(4)>";

/// A page, and the JSON of the same report.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) page: PathBuf,
    pub(crate) json: Value,
}

/// Makes a page and its JSON with one command.
fn made(stage: &Stage, name: &'static str, words: &str, target: &Path) -> Made {
    let page = stage.path(&format!("{name}.html"));
    let out = stage.fathom(&format!("{words} --format json -o {}", page.display()), target);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let json = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    Made { name, page, json }
}

/// Prints a page, for a command that writes no files.
fn printed(stage: &Stage, name: &'static str, words: &str, target: &Path) -> Made {
    let out = stage.fathom(&format!("{words} --format html"), target);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let page = stage.path(&format!("{name}.html"));
    std::fs::write(&page, &out.stdout).unwrap();
    Made { name, page, json: Value::Null }
}

/// A session of a directory with a hostile name, tag and note.
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

/// Simulated measurements, by the name of the page.
const SIMULATED: [(&str, &str); 5] = [
    ("sim", "run --quiet --engine sim --depth 32 --time 1s --warmup 0 --runs 3 --seed 7"),
    ("again", "run --quiet --engine sim --depth 32 --time 1s --warmup 0 --runs 3 --seed 8"),
    ("third", "run --quiet --engine sim --depth 16 --time 1s --warmup 0 --runs 3 --seed 9"),
    ("limit", "limit --quiet --engine sim:servers=4 --time 300ms --runs 3"),
    ("sweep", "sweep --quiet --engine sim --time 100ms --seed 7 --rw read --bs 4k..64k --depth 1..8"),
];

/// Measurements for comparisons.
const OTHERS: [&str; 2] = ["again", "third"];

/// Measurements in a directory.
const STORED: [(&str, &str); 3] = [
    ("bench", "bench --quiet --time 100ms --runs 1 --size 16m"),
    ("layers", "layers --quiet --time 50ms --runs 3 --size 16m"),
    ("api", "api --quiet --time 50ms --runs 1 --size 16m --rw read --bs 64k --interface read,pread,mmap"),
];

/// Makes pages of simulated measurements and of comparisons, and sends each when it is ready.
pub(crate) fn simulated(stage: &Stage, to: &Sender<Made>) {
    let none = Path::new("");
    let put = |made: Made| to.send(made).unwrap();
    let mut sessions = Vec::new();
    for (name, words) in SIMULATED {
        let made = made(stage, name, words, none);
        sessions.push(made.json["session"].as_str().unwrap().to_owned());
        // One page of each kind is checked.
        if !OTHERS.contains(&name) {
            put(made);
        }
    }
    put(made(stage, "compare", &format!("compare {}", sessions[..2].join(" ")), none));
    put(made(stage, "several", &format!("compare --accept E14 {}", sessions[..3].join(" ")), none));
    // Runs, a load curve and maps have different plots.
    put(made(stage, "together", &format!("show {}", sessions.join(" ")), none));
}

/// Makes pages of measurements on storage, one after another.
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
