//! Pages: what a browser makes of real ones.
//!
//! For: pages of real measurements and comparisons in Chromium: no complaint, the numbers of the JSON, foreign words as words, and what
//! people with other eyes, papers, phones or no scripts get. Not for: what lies where in a plot, which is tested with each.

mod browser;

use crate::stage::{Stage, skip};
use browser::{Browser, Looks};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A name that would run, were it taken for anything but a name.
const HOSTILE: &str = "<img src=x onerror=alert(1)><script>alert(2)<!--";
/// The same as a tag and as a note.
const TAG: &str = "<script>alert(3)<!--";
const NOTE: &str = "<svg/onload=alert(4)>";
/// How long npm may take for the checker of accessibility.
const NPM: Duration = Duration::from_secs(60);

/// A page and the JSON of the same report.
struct Made {
    name: &'static str,
    page: PathBuf,
    json: Value,
}

/// Measures, and writes both.
fn made(stage: &Stage, name: &'static str, words: &str, target: &Path) -> Made {
    let page = stage.path(&format!("{name}.html"));
    let out = stage.fathom(&format!("{words} --format json -o {}", page.display()), target);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    Made { name, page, json: out.report().0 }
}

/// A session of a directory whose name would run, with a tag and a note that would.
fn hostile(stage: &Stage) -> Made {
    let place = stage.folder(HOSTILE);
    let out = stage.fathom(
        "run --rw randrw --bs 4k --depth 4 --time 1s --warmup 0 --runs 3 --size 16m --quiet --format json",
        &place,
    );
    let session = out.report().0["session"].as_str().unwrap().to_owned();
    for words in [format!("tag {session} {TAG}"), format!("note {session} {NOTE}")] {
        assert_eq!(stage.fathom(&words, Path::new("")).code, Some(0), "{words}");
    }
    made(stage, "run", &format!("show {session}"), Path::new(""))
}

/// What is measured in another way than the hostile directory, by the name of its page.
const MEASURED: [(&str, &str); 6] = [
    ("sim", "run --quiet --engine sim --depth 32 --time 1s --warmup 0 --runs 3 --seed 7"),
    ("again", "run --quiet --engine sim --depth 32 --time 1s --warmup 0 --runs 3 --seed 8"),
    ("limit", "limit --quiet --engine sim:servers=4 --time 300ms --runs 3"),
    ("sweep", "sweep --quiet --engine sim --time 100ms --seed 7 --rw read --bs 4k..64k --depth 1..8"),
    ("bench", "bench --quiet --time 100ms --runs 1 --size 16m"),
    ("layers", "layers --quiet --time 50ms --runs 3 --size 16m"),
];

/// Makes a page of each kind of measurement, and of a comparison, and hands each on as soon as it is there.
fn make(stage: &Stage, to: &Sender<Made>) {
    let place = stage.folder("place");
    let mut sessions = Vec::new();
    for (name, words) in MEASURED {
        let target = if words.contains("--engine sim") { Path::new("") } else { &place };
        let made = made(stage, name, words, target);
        sessions.push(made.json["session"].as_str().unwrap().to_owned());
        to.send(made).unwrap();
    }
    to.send(compared(stage, &sessions[..2].join(" "))).unwrap();
    to.send(hostile(stage)).unwrap();
}

/// A comparison, which is printed and not written.
fn compared(stage: &Stage, sessions: &str) -> Made {
    let [html, json] = ["html", "json"]
        .map(|format| stage.fathom(&format!("compare {sessions} --format {format}"), Path::new("")));
    let page = stage.path("compare.html");
    std::fs::write(&page, &html.stdout).unwrap();
    Made { name: "compare", page, json: json.report().0 }
}

#[test]
fn pages_are_read_by_everybody_and_say_what_the_json_says() {
    let stage = Stage::beside_others();
    let Some(mut browser) = Browser::start(&stage.folder("browser")) else {
        return skip("there is no chromium");
    };
    let (to, made) = channel();
    let pages: Vec<Made> = std::thread::scope(|scope| {
        let stage = &stage;
        // What is measured waits for storage, what is looked at for the browser: both at once.
        scope.spawn(move || make(stage, &to));
        let axe = axe(stage);
        if let Err(why) = &axe {
            skip(why);
        }
        made.iter().inspect(|made| look(&mut browser, made, axe.as_deref().ok())).collect()
    });
    numbers(&mut browser, &pages);
    let page = |name: &str| pages.iter().find(|made| made.name == name).unwrap();
    foreign_words(&mut browser, page("run"));
    plots_are_walked_by_keys(&mut browser, page("sim"));
}

/// Looks at a page with the eyes of everybody.
fn look(browser: &mut Browser, made: &Made, axe: Option<&str>) {
    let phone = Looks { width: 390, ..Looks::default() };
    let print = Looks { print: true, ..Looks::default() };
    let dark = Looks { dark: true, ..Looks::default() };
    for looks in [Looks::default(), dark, phone, print] {
        let complaints = browser.open(&made.page, looks);
        assert!(complaints.is_empty(), "{} {looks:?}: {complaints:?}", made.name);
        let wide = browser.value("document.documentElement.scrollWidth - innerWidth");
        assert!(wide.as_i64().unwrap() <= 0, "{} is {wide} pixels too wide: {looks:?}", made.name);
        // Paper has the colours of the light page, and a phone its words.
        if let Some(axe) = axe.filter(|_| !looks.print && looks.width == 0) {
            let found = violations(browser, axe);
            assert_eq!(found, Value::Array(Vec::new()), "{} {looks:?}", made.name);
        }
    }
    let paths = "document.querySelectorAll('main svg path').length";
    let whole = browser.value(paths);
    let without = Looks { without_scripts: true, ..Looks::default() };
    assert!(browser.open(&made.page, without).is_empty());
    assert_eq!(browser.value(paths), whole, "{}", made.name);
}

/// Numbers that stand on the pages are those of the report.
fn numbers(browser: &mut Browser, pages: &[Made]) {
    for made in pages.iter().filter(|made| made.json["headline"].is_object()) {
        browser.open(&made.page, Looks::default());
        let shown = browser.value("document.querySelector('.big').dataset.number");
        let value = &made.json["headline"]["value"];
        let shown: Option<f64> = shown.as_str().and_then(|text| text.parse().ok());
        assert_eq!(shown, value.as_f64(), "{}", made.name);
        let verdict = browser.value("document.querySelector('.verdict').textContent.trim()");
        assert_eq!(verdict, made.json["verdict"], "{}", made.name);
    }
    let page = |name: &str| pages.iter().find(|made| made.name == name).unwrap();
    let [bench, limit] = ["bench", "limit"].map(page);
    browser.open(&bench.page, Looks::default());
    let cells =
        browser.value("[...document.querySelectorAll('.cdm b[data-number]')].map(b => +b.dataset.number)");
    let mut shown: Vec<f64> = cells.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    let results = bench.json["results"].as_array().unwrap().iter().filter(|r| r["void"] == false);
    let of = |r: &Value| {
        ["read", "write"].into_iter().filter_map(|d| r[d]["mb_per_s"].as_f64()).collect::<Vec<_>>()
    };
    let mut told: Vec<f64> = results.flat_map(of).collect();
    shown.sort_by(f64::total_cmp);
    told.sort_by(f64::total_cmp);
    assert!(!told.is_empty());
    assert_eq!(shown, told, "the cells of the grid");
    maps(browser, page("sweep"));
    // Loads lie where they belong: the stops of the crosshair are one for each point, and further right where more was offered.
    browser.open(&limit.page, Looks::default());
    let stops = browser.value(
        "JSON.parse([...document.querySelectorAll('.pa[data-points]')].at(-1).dataset.points).map(p => p[0])",
    );
    let stops: Vec<f64> = stops.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert_eq!(stops.len(), limit.json["limit"]["points"].as_array().unwrap().len());
    assert!(stops.is_sorted(), "{stops:?}");
}

/// Each cell that was measured has its number in a map, and the winner of each work has its frame.
fn maps(browser: &mut Browser, made: &Made) {
    browser.open(&made.page, Looks::default());
    let counted = browser.value(
        "[[...document.querySelectorAll('.heat tbody td')].filter(td => /[0-9]/.test(td.textContent)).length, \
         document.querySelectorAll('.heat .win').length]",
    );
    let cells = made.json["sweep"]["cells"].as_array().unwrap();
    let measured = cells.iter().filter(|cell| !cell["mb_per_s"].is_null()).count();
    assert!(measured > 0);
    let winners = made.json["sweep"]["winner"].as_object().unwrap().len();
    assert_eq!(counted, serde_json::json!([measured, winners]));
}

/// What a user named is shown as it is named, and nothing of it is run.
fn foreign_words(browser: &mut Browser, made: &Made) {
    let complaints = browser.open(&made.page, Looks::default());
    assert!(complaints.is_empty(), "{complaints:?}");
    assert_eq!(browser.value("document.images.length + document.scripts.length"), 1, "its own script alone");
    let text = browser.value("document.body.textContent");
    for words in [HOSTILE, TAG, NOTE] {
        assert!(text.as_str().unwrap().contains(words), "'{words}' is not shown as text");
    }
}

/// With arrow keys a plot tells its values, and linked ones follow.
fn plots_are_walked_by_keys(browser: &mut Browser, made: &Made) {
    browser.open(&made.page, Looks::default());
    let walk = "(() => {
        const all = [...document.querySelectorAll('.pa[data-link$=\"-time\"][data-points]')];
        all[0].focus();
        all[0].dispatchEvent(new KeyboardEvent('keydown', { key: 'End' }));
        return [all.length, all.filter(p => !p.querySelector('.cross').hidden).length, document.getElementById('said').textContent];
    })()";
    let walked = browser.value(walk);
    assert!(walked[0].as_i64().unwrap() >= 2 && walked[0] == walked[1], "{walked}");
    assert!(walked[2].as_str().unwrap().starts_with("run 3, "), "{walked}");
}

/// What the checker of accessibility finds in the page that is open.
fn violations(browser: &mut Browser, axe: &str) -> Value {
    browser.value(&format!("{axe}; 0"));
    let ask = "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.map(v => \
               v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200)).join(' | ')))";
    browser.value(ask)
}

/// The checker, which is no part of the repository.
fn axe(stage: &Stage) -> Result<String, String> {
    let dir = stage.folder("axe");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--silent", "axe-core"]).current_dir(&dir);
    npm.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = npm.spawn().map_err(|e| format!("accessibility was not checked, npm: {e}"))?;
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > NPM {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::read_to_string(dir.join("node_modules/axe-core/axe.min.js"))
        .map_err(|_| "accessibility was not checked: npm cannot bring axe-core".into())
}
