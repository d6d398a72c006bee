//! Pages in Chromium: no errors, the numbers of the JSON, hostile names shown as text, and accessibility with other colours, paper, phones and
//! without scripts.

mod axe;
mod browser;
mod made;

use crate::stage::{Stage, skip};
use browser::{Browser, Presentation};
use made::{HOSTILE, Made, NOTE, TAG};
use serde_json::Value;
use std::sync::mpsc::channel;

#[test]
fn pages_are_accessible_and_match_the_json() {
    let stage = Stage::one_per_cpu();
    let Some(mut browser) = Browser::start(&stage.folder("browser")) else {
        return skip("there is no chromium");
    };
    let (to, made) = channel();
    let pages: Vec<Made> = std::thread::scope(|scope| {
        let stage = &stage;
        // Measuring waits for storage and checking for the browser: both run at the same time.
        let also_to = to.clone();
        scope.spawn(move || made::simulated(stage, &also_to));
        scope.spawn(move || made::stored(stage, &to));
        let axe = axe::script(stage);
        if let Err(why) = &axe {
            skip(why);
        }
        made.iter().inspect(|made| check_page(&mut browser, made, axe.as_deref().ok())).collect()
    });
    check_numbers(&mut browser, &pages);
    let page = |name: &str| pages.iter().find(|made| made.name == name).unwrap();
    check_foreign_words(&mut browser, page("run"));
    plots_are_walked_by_keys(&mut browser, page("sim"));
}

/// Checks a page in all presentations.
fn check_page(browser: &mut Browser, made: &Made, axe: Option<&str>) {
    let phone = Presentation { width: 390, ..Presentation::default() };
    let print = Presentation { print: true, ..Presentation::default() };
    let dark = Presentation { dark: true, ..Presentation::default() };
    for presentation in [Presentation::default(), dark, phone, print] {
        let complaints = browser.open(&made.page, presentation);
        assert!(complaints.is_empty(), "{} {presentation:?}: {complaints:?}", made.name);
        let wide = browser.value("document.documentElement.scrollWidth - innerWidth");
        assert!(wide.as_i64().unwrap() <= 0, "{} is {wide} pixels too wide: {presentation:?}", made.name);
        // Skip paper and phones: paper has the colours of the light page, and a phone has the same text.
        if let Some(axe) = axe.filter(|_| !presentation.print && presentation.width == 0) {
            let found = violations(browser, axe);
            assert_eq!(found, Value::Array(Vec::new()), "{} {presentation:?}", made.name);
        }
    }
    let paths = "document.querySelectorAll('main svg path').length";
    let whole = browser.value(paths);
    let without = Presentation { without_scripts: true, ..Presentation::default() };
    assert!(browser.open(&made.page, without).is_empty());
    assert_eq!(browser.value(paths), whole, "{}", made.name);
}

/// Numbers on the pages match the report.
fn check_numbers(browser: &mut Browser, pages: &[Made]) {
    for made in pages.iter().filter(|made| made.json["headline"].is_object()) {
        browser.open(&made.page, Presentation::default());
        let shown = browser.value("document.querySelector('.big').dataset.number");
        let value = &made.json["headline"]["value"];
        let shown: Option<f64> = shown.as_str().and_then(|text| text.parse().ok());
        assert_eq!(shown, value.as_f64(), "{}", made.name);
        let verdict = browser.value("document.querySelector('.verdict').textContent.trim()");
        assert_eq!(verdict, made.json["verdict"], "{}", made.name);
    }
    let page = |name: &str| pages.iter().find(|made| made.name == name).unwrap();
    let [bench, limit] = ["bench", "limit"].map(page);
    browser.open(&bench.page, Presentation::default());
    let cells =
        browser.value("[...document.querySelectorAll('.cdm b[data-number]')].map(b => +b.dataset.number)");
    let mut shown: Vec<f64> = cells.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    let results = bench.json["results"].as_array().unwrap().iter().filter(|r| r["void"] == false);
    let of = |r: &Value| {
        ["read", "write"].into_iter().filter_map(|d| r[d]["mb_per_s"].as_f64()).collect::<Vec<_>>()
    };
    let mut reported: Vec<f64> = results.flat_map(of).collect();
    shown.sort_by(f64::total_cmp);
    reported.sort_by(f64::total_cmp);
    // If all runs are disturbed, no cell has a number.
    let withheld = browser
        .value("[...document.querySelectorAll('.cdm b')].filter(b => b.textContent === 'no number').length");
    assert!(reported.len() as u64 + withheld.as_u64().unwrap() > 0);
    assert_eq!(shown, reported, "the cells of the grid");
    check_maps(browser, page("sweep"));
    check_comparison(browser, page("together"));
    check_strips(browser, page("run"));
    // The crosshair stops at each load, in order of the offered loads.
    browser.open(&limit.page, Presentation::default());
    let stops = browser.value(
        "JSON.parse([...document.querySelectorAll('.pa[data-points]')].at(-1).dataset.points).map(p => p[0])",
    );
    let stops: Vec<f64> = stops.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert_eq!(stops.len(), limit.json["limit"]["points"].as_array().unwrap().len());
    assert!(stops.is_sorted(), "{stops:?}");
}

/// Each valid cell has its number in a map, and the winner of each direction has a frame.
fn check_maps(browser: &mut Browser, made: &Made) {
    browser.open(&made.page, Presentation::default());
    let counted = browser.value(
        "[[...document.querySelectorAll('.heat tbody td')].filter(td => /[0-9]/.test(td.textContent)).length, \
         document.querySelectorAll('.heat .win').length]",
    );
    let cells = made.json["sweep"]["cells"].as_array().unwrap();
    let measured: Vec<&Value> = cells.iter().filter(|cell| !cell["mb_per_s"].is_null()).collect();
    assert!(!measured.is_empty());
    let is_void = |cell: &Value| {
        cell["result"].as_u64().is_some_and(|at| made.json["results"][at as usize]["void"] == true)
    };
    let valid = measured.into_iter().filter(|cell| !is_void(cell)).count();
    let winners = made.json["sweep"]["winner"].as_object().unwrap().len();
    assert_eq!(counted, serde_json::json!([valid, winners]));
}

/// Each named session has a row with the numbers of its report, and all plots share the same marks.
fn check_comparison(browser: &mut Browser, made: &Made) {
    browser.open(&made.page, Presentation::default());
    let rows = browser.value(
        "[...document.querySelectorAll('table.data tbody tr')].map(tr => tr.querySelector('th').textContent)",
    );
    let reported: Vec<&Value> =
        made.json["rows"].as_array().unwrap().iter().map(|row| &row["session"]).collect();
    assert_eq!(rows.as_array().unwrap().iter().collect::<Vec<_>>(), reported);
    assert_eq!(made.json["reports"].as_array().unwrap().len(), reported.len());
    // Three runs of one job, a load curve and maps.
    let marks = browser.value(
        "[...document.querySelectorAll('.small .pa[data-link$=\"-time\"]')].map(pa => \
         [...pa.parentNode.querySelectorAll('.ya span')].map(s => s.textContent + s.style.top).join())",
    );
    let marks = marks.as_array().unwrap();
    assert!(marks.len() == 3 && marks.iter().all(|m| m == &marks[0] && m != ""), "{marks:?}");
    let more = browser.value(
        "[document.querySelectorAll('.small .heat').length > 0, \
         document.body.textContent.includes('Latency against load')]",
    );
    assert_eq!(more, serde_json::json!([true, true]));
}

/// Every run has a block for the busiest worker's CPU, as high as in the report.
fn check_strips(browser: &mut Browser, made: &Made) {
    browser.open(&made.page, Presentation::default());
    let ends = browser.value("[...document.querySelectorAll('path.block')].map(p => p.getAttribute('d'))");
    let first = ends[0].as_str().unwrap().to_owned();
    let grounds = browser.value("document.querySelector('path.ground').getAttribute('d')");
    let number = |path: &str, at: usize| {
        path.split(['M', ' ', 'H', 'V', 'Z'])
            .filter(|w| !w.is_empty())
            .nth(at)
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    // The path of a block is `M x top H x V bottom`: compare the whole background with the block.
    let [top, bottom] = [1, 3].map(|at| number(grounds.as_str().unwrap(), at));
    let drawn = (bottom - number(&first, 1)) / (bottom - top);
    let reported = made.json["results"][0]["runs"][0]["host"]["worker_cpu"].as_f64().unwrap();
    assert!((drawn - reported).abs() < 0.02, "{drawn} is drawn of {reported}");
}

/// User text is shown literally, and never runs.
fn check_foreign_words(browser: &mut Browser, made: &Made) {
    let complaints = browser.open(&made.page, Presentation::default());
    assert!(complaints.is_empty(), "{complaints:?}");
    assert_eq!(browser.value("document.images.length + document.scripts.length"), 1, "its own script alone");
    let text = browser.value("document.body.textContent");
    for words in [HOSTILE, TAG, NOTE] {
        assert!(text.as_str().unwrap().contains(words), "'{words}' is not shown as text");
    }
}

/// Arrow keys walk through the values of a plot, and linked plots follow.
fn plots_are_walked_by_keys(browser: &mut Browser, made: &Made) {
    browser.open(&made.page, Presentation::default());
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

/// The findings of the accessibility checker in the open page.
fn violations(browser: &mut Browser, axe: &str) -> Value {
    browser.value(&format!("{axe}; 0"));
    let ask = "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.map(v => \
               v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200)).join(' | ')))";
    browser.value(ask)
}
