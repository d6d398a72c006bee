//! The live view, as somebody at a terminal sees it: what it shows at three sizes, every way out, and where there is none.
//!
//! For: the view on a real terminal. Not for: each character of it, which golden files hold (`src/live/draw`), nor speed.

mod screen;

use crate::stage::{Stage, is_root};
use rustix::process::{Pid, Signal, kill_process};
use screen::Screen;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs without a device, so that nothing but fathom decides how long they take.
const NULL: &str = "run --engine null --bs 4k --depth 32 --warmup 0 --attempts 1";
/// A view for as long as anybody looks.
const LONG: &str = "--time 20s --runs 2 --live";
const MIDDLE: (u16, u16) = (80, 24);

/// Waits until the view shows a rate.
fn watch(screen: &Screen) -> String {
    screen.until_it("a rate in a view", |shown| {
        shown.contains("h help") && shown.lines().any(|l| l.starts_with("rate") && l.contains(" IOPS"))
    })
}

fn signal(screen: &Screen, signal: Signal) {
    let id = Pid::from_raw(screen.id().try_into().unwrap()).unwrap();
    kill_process(id, signal).unwrap();
}

/// CPU time of the thread of the view.
fn cpu_of_view(id: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let view = tasks.filter_map(Result::ok).find(|task| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == "fathom-live")
    });
    let text = std::fs::read_to_string(view.unwrap().path().join("schedstat")).unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn view_works_at_three_sizes_and_leaves_the_report() {
    let stage = Stage::beside_others();
    let mut screens = Vec::new();
    for (size, more) in [
        ((120, 40), ["p50 ", "CPU  ", "max ", "results: 1 of 1"]),
        ((80, 24), ["p50 ", "CPU  ", "max ", "results: 1 of 1"]),
        ((40, 12), ["p50 p99", "max", "CPU", "p plain"]),
    ] {
        let Some(screen) = Screen::new(&stage, &format!("size{}", size.0), size) else { return };
        screen.fathom(&format!("{NULL} --time 2s --runs 9 --live"));
        screens.push((screen, more));
    }
    for (screen, more) in screens {
        // A row stands there when the first run has ended.
        let shown = screen.until_it("a rate in the second run", |shown| {
            let rate = shown.lines().find(|l| l.starts_with("rate"));
            let rate = rate.is_some_and(|l| l.contains(" IOPS") && l.contains(" MB/s"));
            rate && !shown.contains("run 1 of 9")
        });
        assert_eq!(screen.second_and_cursor(), (true, false), "{shown}");
        for words in more.into_iter().chain(["of 9", "s left", "% ", "device", "depth", "pressure", "others"])
        {
            assert!(shown.contains(words), "'{words}' is not in\n{shown}");
        }
        assert!(shown.contains('█') && shown.contains("4K random read"), "{shown}");
        // Of no device nothing is counted; no engine of nothing reaches a depth, which is found of the first run.
        assert!(shown.contains("not counted") && shown.contains("B05 DEPTH_NOT_REACHED"), "{shown}");
        screen.keys("q");
        let report = screen.end();
        assert!(report.contains("code=130") && report.contains("B05 DEPTH_NOT_REACHED"), "{report}");
        assert!(report.contains("It takes about") && !report.contains("p plain"), "{report}");
    }
}

#[test]
fn view_uses_at_most_one_percent_of_a_cpu() {
    let stage = Stage::beside_others();
    let Some(screen) = Screen::new(&stage, "cpu", (120, 40)) else { return };
    screen.fathom(&format!("{NULL} {LONG}"));
    watch(&screen);
    let id = screen.id();
    let (before, since) = (cpu_of_view(id), Instant::now());
    std::thread::sleep(Duration::from_secs(4));
    let (used, passed) = (cpu_of_view(id).saturating_sub(before), since.elapsed());
    // It rests for as long as it worked, times a hundred; what it does before that is one look and one drawing.
    let once = Duration::from_millis(25);
    assert!(used > Duration::ZERO && used <= passed / 100 + once, "{used:?} in {passed:?}");
    screen.keys("C-c");
    screen.end();
}

#[test]
fn q_ends_after_the_run_and_keeps_it() {
    let stage = Stage::beside_others();
    let Some(screen) = Screen::new(&stage, "q", MIDDLE) else { return };
    screen.fathom(&format!("{NULL} --time 2s --runs 5 --live --format json"));
    screen.until("run 1 of 5");
    watch(&screen);
    screen.keys("h");
    screen.until("leave this help");
    screen.keys("h");
    screen.keys("q");
    screen.until("ends after this run");
    let report = screen.end();
    assert!(report.contains("code=130"), "{report}");
    let shown = stage.show().report();
    assert_eq!(shown.0["ending"]["how"], "interrupted");
    assert_eq!(shown.0["results"][0]["runs"].as_array().unwrap().len(), 1);
    let notes = shown.0["notes"].to_string();
    assert!(notes.contains("ended by the key q after 1 run"), "{notes}");
    // Asked twice, it ends at once.
    screen.fathom(&format!("{NULL} {LONG}"));
    watch(&screen);
    screen.keys("q");
    screen.keys("q");
    let report = screen.end();
    assert!(report.contains("Interrupted: these are the results up to that point"), "{report}");
}

#[test]
fn signals_and_panics_restore_the_terminal() {
    let stage = Stage::beside_others();
    let Some(screen) = Screen::new(&stage, "signals", MIDDLE) else { return };
    for which in [Signal::INT, Signal::TERM, Signal::HUP] {
        screen.fathom(&format!("{NULL} {LONG}"));
        watch(&screen);
        if which == Signal::TERM {
            // One that takes nothing by now is given back all the same.
            screen.keys("C-s");
        }
        signal(&screen, which);
        let report = screen.end();
        assert!(report.contains("code=130") && report.contains("Interrupted: these"), "{which:?}: {report}");
    }
    screen.fathom(&format!("{NULL} {LONG} --test-hook panic-worker"));
    let report = screen.end();
    assert!(report.contains("panicked") && report.contains("code=3"), "{report}");
    // The thread that measures has nothing left that could print a report; what it had written is in the session.
    screen.fathom(&format!("{NULL} {LONG} --test-hook panic-main"));
    let report = screen.end();
    assert!(
        report.contains("panicked") && report.contains("panic-main") && report.contains("code=101"),
        "{report}"
    );
    let shown = stage.fathom("show last --format json", Path::new("")).report();
    assert_eq!(shown.0["ending"]["how"], "cut");
}

#[test]
fn reset_restores_the_terminal_after_sigkill() {
    let stage = Stage::beside_others();
    let Some(screen) = Screen::new(&stage, "kill", MIDDLE) else { return };
    screen.fathom(&format!("{NULL} {LONG}"));
    watch(&screen);
    signal(&screen, Signal::KILL);
    screen.until("code=137");
    assert_eq!(
        screen.second_and_cursor(),
        (true, false),
        "nothing of fathom was left that could give it back"
    );
    // As the documents say. The first one waits a second.
    screen.enter("reset; tput rmcup");
    screen.until_it("the first screen", |_| screen.second_and_cursor() == (false, true));
    screen.begin("true");
    screen.until("code=0");
}

#[test]
fn stop_and_continue_restore_and_retake_the_terminal() {
    let stage = Stage::beside_others();
    let Some(screen) = Screen::new(&stage, "stop", MIDDLE) else { return };
    screen.fathom(&format!("{NULL} {LONG}"));
    watch(&screen);
    screen.keys("C-z");
    screen.until("Stopped");
    assert_eq!(screen.second_and_cursor(), (false, true));
    screen.begin("fg");
    watch(&screen);
    assert_eq!(screen.second_and_cursor(), (true, false));
    screen.resize((40, 12));
    screen.until("p50 p99");
    // The plain progress is on the first screen, and keys are those of the shell again.
    screen.keys("p");
    screen.until("It takes about");
    assert_eq!(screen.second_and_cursor(), (false, true));
    screen.until("s left");
    screen.keys("C-c");
    screen.end();
}

#[test]
fn ascii_locale_shows_only_ascii_and_no_live_shows_one_line() {
    let stage = Stage::beside_others();
    let Some(screen) = Screen::new(&stage, "plain", MIDDLE) else { return };
    let raw = stage.path("raw");
    screen.enter("export LANG=C NO_COLOR=1");
    screen.record(&raw);
    screen.fathom(&format!("{NULL} {LONG}"));
    let shown = watch(&screen);
    assert!(shown.contains("#---"), "{shown}");
    screen.keys("C-c");
    screen.end();
    let all = std::fs::read_to_string(&raw).unwrap();
    let view = all.split_once("\x1b[?1049h").and_then(|(_, rest)| rest.split_once("\x1b[?1049l")).unwrap().0;
    assert!(view.is_ascii() && view.contains("IOPS") && !view.contains("\x1b[36m"), "{view:?}");
    for (before, words) in [("", "--no-live"), ("TERM=dumb", ""), ("CI=1", ""), ("", "--quiet")] {
        screen.begin(&format!("{before} $F {NULL} --time 1s --runs 6 {words}"));
        match words {
            "--quiet" => std::thread::sleep(Duration::from_millis(600)),
            _ => drop(screen.until("s left")),
        }
        assert_eq!(screen.second_and_cursor(), (false, true), "{words}");
        screen.keys("C-c");
        screen.end();
    }
}

#[test]
fn impossible_view_is_refused() {
    let stage = Stage::beside_others();
    let out = stage.fathom(&format!("{NULL} {LONG}"), Path::new(""));
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stderr.contains("--live: standard error is not a terminal"), "{out:?}");
    for words in ["--live --no-live", "--live --quiet"] {
        let out = stage.fathom(&format!("{NULL} {words}"), Path::new(""));
        assert!(out.code == Some(2) && out.stderr.contains("cannot be used with"), "{out:?}");
    }
}

#[test]
fn view_names_other_processes_on_the_disk() {
    if !is_root() {
        return;
    }
    let stage = Stage::watching();
    let Some(screen) = Screen::new(&stage, "others", (120, 40)) else { return };
    let (data, mine) = (stage.file("data", 32), stage.file("mine", 32));
    screen.fathom(&format!(
        "run --rw randread --depth 1 --warmup 0 --attempts 1 --time 20s --runs 2 --live {}",
        mine.display()
    ));
    let shown = screen.until_it("what others do", |shown| {
        shown
            .lines()
            .any(|l| l.starts_with("others") && !l.trim_end().ends_with('-') && !l.contains("no operation"))
    });
    if shown.contains("(the ") {
        crate::stage::skip("the kernel charges nothing apart on this disk");
    } else {
        // A process that lives: one that begins and ends between two looks is seen by what it moved alone.
        let other = stage.start("run --rw read --bs 1m --time 20s --runs 1 --warmup 0 --quiet", &data);
        let named = format!("fathom ({}): ", other.id());
        screen.until_it("who it is", |shown| {
            shown
                .lines()
                .any(|l| l.starts_with("others") && l.contains(&named) && l.contains("MB/s of others on"))
        });
        other.signal(Signal::INT);
        assert_eq!(other.end().code, Some(130));
    }
    screen.keys("C-c");
    screen.end();
}

#[test]
fn watch_redraws_until_a_key_ends_it() {
    let stage = Stage::beside_others();
    let Some(screen) = Screen::new(&stage, "watched", (100, 30)) else { return };
    let renewed = |screen: &Screen| {
        let time =
            |shown: &str| shown.lines().next().and_then(|l| l.split_whitespace().last().map(str::to_owned));
        let first = screen.until_it("a device", |shown| shown.contains("q end") && shown.contains("r/s"));
        screen.until_it("another time", |shown| shown.contains("every 300 ms") && time(shown) != time(&first))
    };
    for (keys, code) in [("q", "code=0"), ("C-c", "code=0")] {
        screen.fathom("watch 300ms");
        let shown = renewed(&screen);
        assert_eq!(screen.second_and_cursor(), (true, false), "{shown}");
        assert!(shown.contains("depth") && shown.contains("w ms"), "{shown}");
        screen.keys(keys);
        let left = screen.end();
        assert!(left.contains(code) && !left.contains("r/s"), "{left}");
    }
    // Plain lines, by a key, by a flag, and where they are counted.
    screen.fathom("watch 300ms");
    renewed(&screen);
    screen.keys("p");
    screen.until_it("lines", |shown| shown.contains("aqu-sz") && !shown.contains("q end"));
    // By a signal: of the key the terminal shows ^C before the line of the end.
    signal(&screen, Signal::INT);
    assert!(screen.end().contains("code=0"));
    for words in ["watch 200ms 2", "watch --no-live 200ms 2"] {
        screen.fathom(words);
        let left = screen.end();
        assert!(left.contains("aqu-sz") && left.contains("code=0"), "{left}");
    }
}
