//! The live view on a real terminal: its content at three sizes, every way to end, and terminals without a view. Golden files in
//! `crates/live/src/draw` contain every character.

pub(crate) mod screen;

use crate::stage::{Stage, is_root};
use rustix::process::{Pid, Signal, kill_process};
use screen::Screen;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs without a device, so that only fathom decides how long they take.
const NULL: &str = "run --engine null --bs 4k --depth 32 --warmup 0 --attempts 1";
/// A view that lasts until the test has seen enough.
const LONG: &str = "--time 20s --runs 2 --live";
const MIDDLE: (u16, u16) = (80, 24);

/// Waits until the view shows a rate.
fn watch(screen: &Screen) -> String {
    screen.wait_until("a rate in a view", |shown| {
        shown.contains("h help") && shown.lines().any(|l| l.starts_with("rate") && l.contains(" IOPS"))
    })
}

fn signal(screen: &Screen, signal: Signal) {
    let id = Pid::from_raw(screen.id().try_into().unwrap()).unwrap();
    kill_process(id, signal).unwrap();
}

/// CPU time of the view thread.
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
    let stage = Stage::shared();
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
        // A row appears when the first run has ended.
        let shown = screen.wait_until("a rate in the second run", |shown| {
            let rate = shown.lines().find(|l| l.starts_with("rate"));
            let rate = rate.is_some_and(|l| l.contains(" IOPS") && l.contains(" MB/s"));
            rate && !shown.contains("run 1 of 9")
        });
        assert_eq!(screen.alternate_screen_and_cursor(), (true, false), "{shown}");
        for words in more.into_iter().chain(["of 9", "s left", "% ", "device", "depth", "pressure", "others"])
        {
            assert!(shown.contains(words), "'{words}' is not in\n{shown}");
        }
        assert!(shown.contains('█') && shown.contains("4K random read"), "{shown}");
        // Without a device there are no counters; the null engine reaches no depth, which is a finding about the first run.
        assert!(shown.contains("not counted") && shown.contains("B05 DEPTH_NOT_REACHED"), "{shown}");
        screen.keys("q");
        let report = screen.end();
        assert!(report.contains("code=130") && report.contains("B05 DEPTH_NOT_REACHED"), "{report}");
        assert!(report.contains("It takes about") && !report.contains("p plain"), "{report}");
    }
}

#[test]
fn view_uses_at_most_one_percent_of_a_cpu() {
    let stage = Stage::shared();
    let Some(screen) = Screen::new(&stage, "cpu", (120, 40)) else { return };
    screen.fathom(&format!("{NULL} {LONG}"));
    watch(&screen);
    let id = screen.id();
    let (before, since) = (cpu_of_view(id), Instant::now());
    std::thread::sleep(Duration::from_secs(4));
    let (used, passed) = (cpu_of_view(id).saturating_sub(before), since.elapsed());
    // The view rests a hundred times as long as it works; before that it samples and draws once.
    let once = Duration::from_millis(25);
    assert!(used > Duration::ZERO && used <= passed / 100 + once, "{used:?} in {passed:?}");
    screen.keys("C-c");
    screen.end();
}

#[test]
fn q_ends_after_the_run_and_keeps_it() {
    let stage = Stage::shared();
    let Some(screen) = Screen::new(&stage, "q", MIDDLE) else { return };
    // Long enough for the three keys below to arrive during the first run, also on a busy machine.
    screen.fathom(&format!("{NULL} --time 8s --runs 5 --live --format json"));
    screen.until("run 1 of 5");
    watch(&screen);
    screen.keys("h");
    screen.until("close this help");
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
    // The key typed twice ends the measurement at once.
    screen.fathom(&format!("{NULL} {LONG}"));
    watch(&screen);
    screen.keys("q");
    screen.keys("q");
    let report = screen.end();
    assert!(report.contains("Interrupted: these are the results up to that point"), "{report}");
}

#[test]
fn signals_and_panics_restore_the_terminal() {
    let stage = Stage::shared();
    let Some(screen) = Screen::new(&stage, "signals", MIDDLE) else { return };
    for which in [Signal::INT, Signal::TERM, Signal::HUP] {
        screen.fathom(&format!("{NULL} {LONG}"));
        watch(&screen);
        if which == Signal::TERM {
            // A terminal that accepts no output is restored as well.
            screen.keys("C-s");
        }
        signal(&screen, which);
        let report = screen.end();
        assert!(report.contains("code=130") && report.contains("Interrupted: these"), "{which:?}: {report}");
    }
    screen.fathom(&format!("{NULL} {LONG} --test-hook panic-worker"));
    let report = screen.end();
    assert!(report.contains("panicked") && report.contains("code=3"), "{report}");
    // The measuring thread can print no report any more; its results are in the session.
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
    let stage = Stage::shared();
    let Some(screen) = Screen::new(&stage, "kill", MIDDLE) else { return };
    screen.fathom(&format!("{NULL} {LONG}"));
    watch(&screen);
    signal(&screen, Signal::KILL);
    screen.until("code=137");
    assert_eq!(
        screen.alternate_screen_and_cursor(),
        (true, false),
        "nothing of fathom was left that could give it back"
    );
    // The guide documents this command for a terminal that was not restored. `reset` waits for a second.
    screen.enter("reset; tput rmcup");
    screen.wait_until("the first screen", |_| screen.alternate_screen_and_cursor() == (false, true));
    screen.begin("true");
    screen.until("code=0");
}

#[test]
fn stop_and_continue_restore_and_retake_the_terminal() {
    let stage = Stage::shared();
    let Some(screen) = Screen::new(&stage, "stop", MIDDLE) else { return };
    screen.fathom(&format!("{NULL} {LONG}"));
    watch(&screen);
    screen.keys("C-z");
    screen.until("Stopped");
    assert_eq!(screen.alternate_screen_and_cursor(), (false, true));
    screen.begin("fg");
    watch(&screen);
    assert_eq!(screen.alternate_screen_and_cursor(), (true, false));
    screen.resize((40, 12));
    screen.until("p50 p99");
    // Plain progress is on the normal screen, and keys belong to the shell again.
    screen.keys("p");
    screen.until("It takes about");
    assert_eq!(screen.alternate_screen_and_cursor(), (false, true));
    screen.until("s left");
    screen.keys("C-c");
    screen.end();
}

#[test]
fn ascii_locale_shows_only_ascii_and_no_live_shows_one_line() {
    let stage = Stage::shared();
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
        assert_eq!(screen.alternate_screen_and_cursor(), (false, true), "{words}");
        screen.keys("C-c");
        screen.end();
    }
}

#[test]
fn impossible_view_is_refused() {
    let stage = Stage::shared();
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
    let shown = screen.wait_until("what others do", |shown| {
        shown
            .lines()
            .any(|l| l.starts_with("others") && !l.trim_end().ends_with('-') && !l.contains("no operation"))
    });
    if shown.contains("(the ") {
        crate::stage::skip("the kernel charges nothing apart on this disk");
    } else {
        // This process lives long: fathom cannot name a process that begins and ends between two samples.
        let other = stage.start("run --rw read --bs 1m --time 20s --runs 1 --warmup 0 --quiet", &data);
        let named = format!("fathom ({}): ", other.id());
        screen.wait_until("who it is", |shown| {
            shown.lines().any(|l| {
                l.starts_with("others") && l.contains(&named) && l.contains("MB/s of other processes on")
            })
        });
        other.signal(Signal::INT);
        assert_eq!(other.end().code, Some(130));
    }
    screen.keys("C-c");
    screen.end();
}

#[test]
fn watch_redraws_until_a_key_ends_it() {
    let stage = Stage::shared();
    let Some(screen) = Screen::new(&stage, "watched", (100, 30)) else { return };
    let renewed = |screen: &Screen| {
        let time =
            |shown: &str| shown.lines().next().and_then(|l| l.split_whitespace().last().map(str::to_owned));
        let first = screen.wait_until("a device", |shown| shown.contains("q end") && shown.contains("r/s"));
        screen
            .wait_until("another time", |shown| shown.contains("every 300 ms") && time(shown) != time(&first))
    };
    for (keys, code) in [("q", "code=0"), ("C-c", "code=0")] {
        screen.fathom("watch 300ms");
        let shown = renewed(&screen);
        assert_eq!(screen.alternate_screen_and_cursor(), (true, false), "{shown}");
        assert!(shown.contains("depth") && shown.contains("w ms"), "{shown}");
        screen.keys(keys);
        let left = screen.end();
        assert!(left.contains(code) && !left.contains("r/s"), "{left}");
    }
    // `watch` prints lines instead of the view after the key p, with a flag, and with a limited number of intervals.
    screen.fathom("watch 300ms");
    renewed(&screen);
    screen.keys("p");
    screen.wait_until("lines", |shown| shown.contains("aqu-sz") && !shown.contains("q end"));
    // End with a signal: after Ctrl-C the terminal would show ^C before the last line.
    signal(&screen, Signal::INT);
    assert!(screen.end().contains("code=0"));
    for words in ["watch 200ms 2", "watch --no-live 200ms 2"] {
        screen.fathom(words);
        let left = screen.end();
        assert!(left.contains("aqu-sz") && left.contains("code=0"), "{left}");
    }
}
