//! `fathom time`: what it reports of commands whose reads, writes and syncs are known, and that it leaves the commands alone.

use crate::disk::{Device, Disk, Image};
use crate::group::Group;
use crate::output::{check_outcome, shell};
use crate::stage::{Outcome, Stage, is_root, names};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

/// Runs `fathom time` with these words in a directory of the stage, and reads its report as JSON.
fn timed(stage: &Stage, words: &str) -> (Outcome, Value) {
    let out = shell(stage, &format!("cd \"$D\" && \"$F\" time -o report.json --force {words}"));
    let text = std::fs::read_to_string(stage.path("here/report.json")).unwrap_or_default();
    (out, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// The last run of the first command.
fn run(report: &Value) -> &Value {
    report["commands"]["commands"][0]["runs"].as_array().and_then(|runs| runs.last()).unwrap_or(&Value::Null)
}

/// A figure of the last run, which must be known.
#[track_caller]
fn known(report: &Value, name: &str) -> f64 {
    let value = &run(report)[name]["Ok"];
    value.as_f64().unwrap_or_else(|| panic!("{name} is not known: {:#}", run(report)))
}

/// The I/O of the command.
#[track_caller]
fn moved(report: &Value, name: &str) -> f64 {
    run(report)["moved"]["Ok"][name].as_f64().unwrap_or_else(|| panic!("{:#}", run(report)))
}

/// Asserts that a figure is within 2 % of the truth, or within a few pages, because programs also read their libraries.
#[track_caller]
fn near(value: f64, truth: f64) {
    assert!((value - truth).abs() <= 0.02 * truth + 256.0 * 1024.0, "{value} is not {truth}");
}

fn finds(report: &Value, id: &str) -> bool {
    let findings = report["findings"].as_array();
    findings.into_iter().flatten().any(|f| f["id"] == id && f["outcome"] == "finding")
}

const MIB: f64 = 1_048_576.0;

#[test]
fn exit_codes_and_streams_pass_through() {
    let stage = Stage::shared();
    for (words, code) in [
        ("-- true", 0),
        ("-- sh -c 'exit 7'", 7),
        ("-- sh -c 'kill -9 $$'", 137),
        ("-- /nowhere/none", 127),
        ("-- /etc/passwd", 126),
        ("--nope -- true", 125),
        ("", 125),
        ("--runs 3 -- sh -c 'echo x >> runs; exit 2'", 2),
    ] {
        let out = shell(&stage, &format!("cd \"$D\" && \"$F\" time {words}"));
        assert_eq!(out.code, Some(code), "{words}: {out:?}");
    }
    let runs = std::fs::read_to_string(stage.path("here/runs")).unwrap();
    assert_eq!(runs, "x\n", "the first failure ends the runs");
    let fourth_fails = "--runs 9 -- sh -c 'echo x >> turns; test $(wc -l < turns) -lt 4'";
    let out = shell(&stage, &format!("cd \"$D\" && \"$F\" time {fourth_fails}"));
    assert!(out.code == Some(1) && out.stderr.contains("over 3 runs"), "{out:?}");
    let out = shell(&stage, "echo in | COLUMNS=80 \"$F\" time -- sh -c 'cat; echo out; echo err >&2'");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "in\nout\n"), "{out:?}");
    let report: Vec<&str> = out.stderr.lines().collect();
    assert_eq!(report.first(), Some(&"err"), "{out:?}");
    assert!(report.len() <= 9 && report.iter().all(|line| line.chars().count() <= 80), "{out:?}");
    // Only sessions of commands that could be started are kept.
    let sessions = stage.path("xdg/fathom/sessions");
    assert_eq!(names(&sessions).len(), 6);
    let once = "printf '#!/bin/sh\\nrm \"$0\"\\n' > once && chmod +x once";
    let out = shell(&stage, &format!("cd \"$D\" && {once} && \"$F\" time --runs 2 -- ./once"));
    assert_eq!((out.code, names(&sessions).len()), (Some(127), 7), "the first run is lost: {out:?}");
    assert!(out.stderr.contains("once took") && out.stderr.contains("could not be started again"), "{out:?}");
    let out = shell(&stage, "\"$F\" time --cleanup 'exit 3' -- true");
    assert_eq!((out.code, names(&sessions).len()), (Some(125), 8), "{out:?}");
    assert!(out.stderr.contains("--cleanup 'exit 3' failed") && out.stderr.contains("true took"), "{out:?}");
}

#[test]
fn signals_reach_the_command() {
    let stage = Stage::shared();
    let words = "time --no-history -- sh -c";
    let script = "trap 'echo caught' USR1; echo ready >&2; sleep 30 & wait; kill $!; sleep 30 & wait";
    let mut command = stage.command(&[], words, Path::new(script));
    let mut running = crate::stage::Running::start(&mut command);
    running.wait_for_output("ready");
    std::thread::sleep(Duration::from_millis(100));
    running.signal(Signal::USR1);
    std::thread::sleep(Duration::from_millis(200));
    running.signal(Signal::TERM);
    let out = running.end();
    assert_eq!((out.code, out.stdout.as_str()), (Some(143), "caught\n"), "{out:?}");
}

/// Notes the signals that arrive until `SIGUSR2`, and prints their numbers in the end.
const NOTE_SIGNALS: &str = "import signal, sys, time
seen = []
for number in (1, 2, 10, 12, 14, 15, 40):
    signal.signal(number, lambda number, _: seen.append(number))
print('noting', file=sys.stderr, flush=True)
until = time.time() + 20
while 12 not in seen and time.time() < until:
    time.sleep(0.01)
print('seen', sorted(seen))
";

#[test]
fn every_signal_reaches_the_command_once() {
    let stage = Stage::shared();
    let script = stage.path("note.py");
    std::fs::write(&script, NOTE_SIGNALS).unwrap();
    let mut command = stage.command(&[], "time --no-history -- python3", &script);
    let mut running = crate::stage::Running::start(&mut command);
    running.wait_for_output("noting");
    let pause = || std::thread::sleep(Duration::from_millis(60));
    // SIGINT and SIGHUP may be ignored here, and then fathom does not pass them on.
    for signal in [Signal::USR1, Signal::TERM, Signal::ALARM] {
        running.signal(signal);
        pause();
    }
    // A real-time signal has a number and no name.
    let real_time = std::process::Command::new("kill").args(["-40", &running.id().to_string()]).status();
    assert!(real_time.unwrap().success());
    pause();
    running.signal(Signal::USR2);
    let out = running.end();
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "seen [10, 12, 14, 15, 40]\n"), "{out:?}");
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let stage = Stage::shared();
    let script = stage.path("note.py");
    let Some(screen) = crate::live::screen::Screen::new(&stage, "tmux", (80, 24)) else { return };
    // As `timeout` does, the second script leaves the process group that the terminal sends the signal to. The third leaves the terminal.
    for (start, seen) in [
        ("", "seen [2, 2, 12]"),
        ("import os; os.setpgid(0, 0)\n", "seen [2, 2, 12]"),
        ("import os; os.setsid()\n", "seen [2, 12]"),
    ] {
        std::fs::write(&script, format!("{start}{NOTE_SIGNALS}")).unwrap();
        screen.begin(&format!("$F time --no-history -- python3 {}", script.display()));
        screen.until("noting");
        screen.keys("C-c");
        std::thread::sleep(Duration::from_millis(100));
        let fathom = rustix::process::Pid::from_raw(screen.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(fathom, Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        rustix::process::kill_process(fathom, Signal::USR2).unwrap();
        let shown = screen.end();
        assert!(shown.contains(seen), "{start}: {shown}");
    }
}

#[test]
fn requests_to_the_command_have_no_effect_between_runs() {
    let stage = Stage::shared();
    let words = "time --no-history --prepare 'echo prepared >&2; sleep 0.3' --runs 2 -- true";
    let begin = || {
        let line = format!("exec \"$F\" {words}");
        let mut command = stage.command(&["bash".into(), "-c".into(), line], "", Path::new(""));
        let mut running = crate::stage::Running::start(command.env("F", env!("CARGO_BIN_EXE_fathom")));
        running.wait_for_output("prepared");
        running
    };
    let running = begin();
    for signal in [Signal::USR1, Signal::USR2, Signal::IO] {
        running.signal(signal);
    }
    let out = running.end();
    assert!(out.code == Some(0) && out.stderr.matches("prepared").count() == 2, "{out:?}");
    for (signal, code) in [(Signal::TERM, 143), (Signal::ALARM, 142)] {
        let running = begin();
        running.signal(signal);
        let out = running.end();
        assert!(out.code == Some(code) && out.stderr.matches("prepared").count() == 1, "{out:?}");
    }
}

#[test]
fn signals_that_are_ignored_remain_ignored() {
    let stage = Stage::shared();
    let signals = "HUP INT USR1 USR2 XFSZ ALRM";
    let send = format!("for signal in {signals}; do kill -$signal $$; done; echo alive");
    let line = format!("trap '' {signals}; exec \"$F\" time --no-history -- sh -c '{send}'");
    let out = shell(&stage, &line);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "alive\n"), "{out:?}");
}

#[test]
fn reads_are_split_between_page_cache_and_disk() {
    let stage = Stage::one_per_cpu();
    std::fs::create_dir_all(stage.path("here")).unwrap();
    crate::stage::fill(&stage.path("here/data"), 64);
    let (_, cold) = timed(&stage, "--cold -- dd if=data of=/dev/null bs=1M");
    near(known(&cold, "cached_read_bytes"), 0.0);
    near(moved(&cold, "fetched_bytes"), 64.0 * MIB);
    assert!(!finds(&cold, "A01"), "{cold:#}");
    let (out, hot) = timed(&stage, "-- dd if=data of=/dev/null bs=1M");
    near(known(&hot, "cached_read_bytes"), 64.0 * MIB);
    near(moved(&hot, "fetched_bytes"), 0.0);
    assert!(finds(&hot, "A01"), "{hot:#}");
    assert!(out.stderr.contains("the page cache had all of it"), "{out:?}");
    // A quarter of the file is cached, without read-ahead.
    let quarter = "import os\nf=os.open('data',os.O_RDONLY)\nos.posix_fadvise(f,0,0,os.POSIX_FADV_DONTNEED)\n\
                   os.posix_fadvise(f,0,0,os.POSIX_FADV_RANDOM)\nfor i in range(4096): os.pread(f,4096,i*4096)";
    assert_eq!(shell(&stage, &format!("cd \"$D\" && sync && python3 -c \"{quarter}\"")).code, Some(0));
    let (_, part) = timed(&stage, "-- dd if=data of=/dev/null bs=1M");
    near(known(&part, "cached_read_bytes"), 16.0 * MIB);
}

#[test]
fn holes_and_sparse_output_are_reported() {
    let stage = Stage::shared();
    std::fs::create_dir_all(stage.path("here")).unwrap();
    shell(&stage, "cd \"$D\" && truncate -s 32M holes");
    let (_, report) = timed(&stage, "-- cp --sparse=never holes copied");
    assert!(finds(&report, "A04"), "{report:#}");
    assert_eq!(run(&report)["named"][0]["before"]["Ok"]["hole_bytes"], 32 << 20);
    assert!(known(&report, "cached_read_bytes") < MIB && !finds(&report, "A01"), "{report:#}");
    shell(&stage, "cd \"$D\" && fallocate -l 32M unwritten");
    let (out, report) = timed(&stage, "-- dd if=unwritten of=/dev/null bs=1M");
    assert!(known(&report, "cached_read_bytes") < MIB && !finds(&report, "A01"), "{report:#}");
    let shown = out.stderr.replace("\n  ", " ");
    assert!(finds(&report, "A10") && shown.contains("32 MiB had never been written"), "{out:?}");
    let (_, report) = timed(&stage, "-- dd if=/dev/zero of=sparse bs=1M count=16 conv=sparse");
    assert!(finds(&report, "A08"), "{report:#}");
    let (_, report) = timed(&stage, "-- dd if=/dev/zero of=zeros bs=1M count=16");
    assert!(finds(&report, "A08"), "{report:#}");
    near(moved(&report, "dirtied_bytes"), 16.0 * MIB);
    // The zeros come from standard input, and no read comes from the file that is written again.
    let (_, report) = timed(&stage, "-- dd of=zeros bs=1M count=16 conv=notrunc < /dev/zero");
    assert!(finds(&report, "A08") && !finds(&report, "A01"), "{report:#}");
}

#[test]
fn rate_includes_the_sync_of_dirty_data() {
    let stage = Stage::one_per_cpu();
    std::fs::create_dir_all(stage.path("here")).unwrap();
    shell(&stage, "sync");
    let (out, report) = timed(&stage, "-- sh -c 'head -c 67108864 /dev/urandom > written'");
    near(moved(&report, "dirtied_bytes"), 64.0 * MIB);
    let (end, dirty) = (known(&report, "written_at_end_bytes"), known(&report, "dirty_at_end_bytes"));
    near(end + dirty, 64.0 * MIB);
    assert!(known(&report, "sync_seconds") > 0.0);
    let (_, direct) = timed(&stage, "-- dd if=/dev/zero of=direct bs=1M count=16 oflag=direct");
    assert!(known(&direct, "dirty_at_end_bytes") < MIB, "{direct:#}");
    let (out_of_none, none) = timed(&stage, "--no-sync -- sh -c 'head -c 4194304 /dev/urandom > other'");
    assert_eq!(run(&none)["sync_seconds"]["Err"], "--no-sync", "{out:?} {out_of_none:?}");
}

#[test]
fn root_sees_syncs_and_open_flags() {
    let stage = Stage::one_per_cpu();
    if !is_root() {
        return;
    }
    let script = "import os\nf=os.open('log',os.O_WRONLY|os.O_CREAT)\nfor i in range(100):\n os.write(f,b'x'*4096); os.fsync(f)";
    std::fs::create_dir_all(stage.path("here")).unwrap();
    std::fs::write(stage.path("here/syncs.py"), script).unwrap();
    // The syncs of another process must not count as the command's.
    let _neighbour = spawn_sh(&stage, "echo x > other; while :; do sync -d other; done");
    let (out, report) = timed(&stage, "-- python3 syncs.py");
    let syncs = &run(&report)["syncs"]["Ok"];
    assert_eq!(syncs["calls"]["fsync"], 100, "{out:?} {syncs:#}");
    assert!(syncs["median_ns"].as_u64().is_some_and(|ns| ns > 0), "{syncs:#}");
    let (_, report) = timed(&stage, "-- dd if=/dev/zero of=direct bs=64k count=8 oflag=direct,dsync");
    assert_eq!(run(&report)["interface"]["direct"]["Ok"], true, "{report:#}");
    assert!(run(&report)["syncs"]["Ok"]["sync_opens"].as_u64() >= Some(1), "{report:#}");
    let (_, report) = timed(&stage, "--no-trace -- true");
    assert!(run(&report)["syncs"]["Err"].is_string(), "{report:#}");
}

/// A background shell script, killed on drop.
struct Neighbour(std::process::Child);

fn spawn_sh(stage: &Stage, script: &str) -> Neighbour {
    let mut command = std::process::Command::new("sh");
    Neighbour(command.args(["-c", script]).current_dir(stage.path("here")).spawn().unwrap())
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn root_sees_the_order_of_requests() {
    // The requests of all processes count.
    let stage = Stage::new();
    if !is_root() {
        return;
    }
    std::fs::create_dir_all(stage.path("here")).unwrap();
    crate::stage::fill(&stage.path("here/data"), 64);
    let share = |words: &str| {
        let (out, report) = timed(&stage, words);
        let share = &run(&report)["interface"]["sequential_reads"];
        if share["Err"].as_str().is_some_and(|why| why.contains("/sys/kernel/btf")) {
            return None;
        }
        Some(share["Ok"].as_f64().unwrap_or_else(|| panic!("{out:?} {share}")))
    };
    let Some(in_sequence) = share("-- dd if=data of=/dev/null bs=4k count=2000 iflag=direct") else {
        return crate::stage::skip("this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)");
    };
    let script = "import os,mmap\nf=os.open('data',os.O_RDONLY|os.O_DIRECT)\nb=mmap.mmap(-1,4096)\n\
                  for i in range(2000): os.preadv(f,[b],i*7919%16384*4096)";
    std::fs::write(stage.path("here/random.py"), script).unwrap();
    let at_random = share("-- python3 random.py").unwrap();
    assert!(in_sequence > 0.95 && at_random < 0.05, "{in_sequence} {at_random}");
}

#[test]
fn calls_that_are_syncs_only_with_certain_flags_are_counted() {
    let stage = Stage::one_per_cpu();
    if !is_root() {
        return;
    }
    let script = "import os,mmap,ctypes\nf=os.open('data',os.O_RDWR|os.O_CREAT)\nos.pwrite(f,b'x'*4096,0)\n\
                  for i in range(7): os.pwritev(f,[b'x'*512],0,os.RWF_DSYNC)\n\
                  for i in range(5): os.pwritev(f,[b'x'*512],0,os.RWF_SYNC)\n\
                  for i in range(3): os.pwritev(f,[b'x'*512],0,os.RWF_HIPRI)\n\
                  m=mmap.mmap(f,4096)\na=ctypes.addressof(ctypes.c_char.from_buffer(m))\n\
                  c=ctypes.CDLL(None).msync\nc.argtypes=[ctypes.c_void_p,ctypes.c_size_t,ctypes.c_int]\n\
                  for i in range(3): assert c(a,4096,4)==0\nfor i in range(9): assert c(a,4096,1)==0\nos.sync()";
    std::fs::create_dir_all(stage.path("here")).unwrap();
    std::fs::write(stage.path("here/flags.py"), script).unwrap();
    let (out, report) = timed(&stage, "-- python3 flags.py");
    let calls = serde_json::json!({"msync": 3, "pwritev2": 12, "sync": 1});
    assert_eq!(run(&report)["syncs"]["Ok"]["calls"], calls, "{out:?} {report:#}");
}

#[test]
fn reads_of_the_kernel_at_the_start_of_a_program_are_not_counted() {
    let stage = Stage::one_per_cpu();
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    // An executable with one segment: three times read(0, 0, 0), then exit_group(0).
    let code = [&b"\x31\xff\x31\xf6\x31\xd2"[..], &b"\x31\xc0\x0f\x05".repeat(3), b"\xb8\xe7\0\0\0\x0f\x05"]
        .concat();
    let (start, bytes) = (0x40_0000_u64, 120 + code.len() as u64);
    let mut program: Vec<u8> = [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[2, 0, 62, 0, 1, 0, 0, 0]].concat();
    program.extend([start + 120, 64, 0].iter().flat_map(|word| word.to_le_bytes()));
    program.extend([0_u16, 0, 64, 56, 1, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    program.extend([1_u32, 5].iter().flat_map(|word| word.to_le_bytes()));
    program.extend([0, start, start, bytes, bytes, 4096].iter().flat_map(|word: &u64| word.to_le_bytes()));
    program.extend(code);
    std::fs::create_dir_all(stage.path("here")).unwrap();
    std::fs::write(stage.path("here/program"), program).unwrap();
    shell(&stage, "cd \"$D\" && chmod +x program");
    let (out, report) = timed(&stage, "-- ./program < /dev/null");
    let counted = &run(&report)["moved"]["Ok"];
    if run(&report)["syncs"]["Ok"].is_object() {
        assert_eq!(
            (&counted["read_calls"], &counted["read_call_bytes"]),
            (&3.into(), &0.into()),
            "{out:?} {report:#}"
        );
    } else {
        assert!(counted["read_calls"].is_null(), "{report:#}");
    }
    let (_, report) = timed(&stage, "--no-trace -- ./program < /dev/null");
    assert!(run(&report)["moved"]["Ok"]["read_calls"].is_null(), "{report:#}");
}

#[test]
fn a_cached_file_is_reported_with_its_own_device() {
    let stage = Stage::new();
    if !is_root() {
        return;
    }
    let Some(disk) = Disk::new(&stage, "ext4", Image::Buffered) else { return };
    let data = disk.file("data", 64);
    std::fs::create_dir_all(stage.path("here")).unwrap();
    crate::stage::fill(&stage.path("here/other"), 16);
    // The disk below is busy with reads.
    let _neighbour =
        spawn_sh(&stage, "while :; do dd if=other of=/dev/null bs=64k iflag=direct status=none; done");
    let report = stage.path("report.json");
    let words = format!("time -o {} -- dd bs=4k of=/dev/null if={}", report.display(), data.display());
    let out = disk.fathom(&stage, &words, Path::new(""));
    let json: Value =
        serde_json::from_str(&std::fs::read_to_string(&report).unwrap_or_default()).unwrap_or(Value::Null);
    // Another test may have emptied the page cache in between.
    let is_cached = run(&json)["moved"]["Ok"]["fetched_bytes"] == 0;
    if is_cached && run(&json)["named"][0]["memory"].is_null() {
        let sentence = json["commands"]["commands"][0]["sentence"].as_str().unwrap_or_default();
        assert!(sentence.contains(&format!("none of it came from {}:", disk.name())), "{out:?} {json:#}");
    }
}

#[test]
fn a_32_bit_program_makes_its_system_calls_unknown() {
    let stage = Stage::one_per_cpu();
    if !is_root() || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    // An executable with one segment: mov eax, 252 (exit_group); xor ebx, ebx; int 0x80.
    let mut program: Vec<u8> = [&b"\x7fELF\x01\x01\x01"[..], &[0; 9]].concat();
    let (start, bytes) = (0x0804_8000_u32, 84 + 9);
    for halves in [[2_u16, 3], [1, 0]] {
        program.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
    }
    program.extend([start + 84, 52, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    program.extend([52_u16, 32, 1, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    program
        .extend([1, 0, start, start, bytes, bytes, 5, 4096].iter().flat_map(|word: &u32| word.to_le_bytes()));
    program.extend(b"\xb8\xfc\0\0\0\x31\xdb\xcd\x80");
    std::fs::create_dir_all(stage.path("here")).unwrap();
    std::fs::write(stage.path("here/program"), program).unwrap();
    let (out, report) = timed(&stage, "-- sh -c 'chmod +x program; ./program'");
    if out.code != Some(0) {
        return crate::stage::skip("this kernel runs no 32-bit programs");
    }
    let why = run(&report)["syncs"]["Err"].as_str().unwrap_or_default();
    assert!(why.contains("32-bit"), "{out:?} {report:#}");
}

#[test]
fn writes_of_others_are_named_and_prevent_a_rate() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.path("here")).unwrap();
    let words = "-- sh -c 'head -c 8388608 /dev/urandom > written; sync written; sleep 0.5'";
    {
        let writes = "while :; do dd if=/dev/zero of=other bs=1M count=16 oflag=direct status=none; done";
        let _neighbour = spawn_sh(&stage, writes);
        let (_, report) = timed(&stage, words);
        assert!(known(&report, "foreign_written_bytes") > 16.0 * MIB, "{report:#}");
        let findings = report["findings"].as_array();
        let foreign_io = findings.into_iter().flatten().find(|finding| finding["id"] == "D01").unwrap();
        assert_eq!(foreign_io["outcome"], "not_checked", "{report:#}");
    }
    let writes = "while :; do dd if=/dev/zero of=other bs=1M count=64 status=none; done";
    let _neighbour = spawn_sh(&stage, writes);
    let (_, report) = timed(&stage, words);
    assert!(run(&report)["stable_mb_per_s"]["Err"].is_string(), "{report:#}");
}

#[test]
fn ended_children_count_and_running_ones_are_named() {
    let stage = Stage::one_per_cpu();
    std::fs::create_dir_all(stage.path("here")).unwrap();
    crate::stage::fill(&stage.path("here/data"), 1);
    let script = "for i in $(seq 50); do head -c 1048576 data > /dev/null; done";
    let (_, report) = timed(&stage, &format!("-- sh -c '{script}'"));
    near(moved(&report, "read_call_bytes"), 50.0 * MIB);
    // A child that outlives the command and one that ends before it. No process waits for either of them.
    let (_, report) = timed(
        &stage,
        "-- sh -c '(head -c 8388608 /dev/zero > orphan &); sleep 0.3; sleep 3 > /dev/null 2>&1 &'",
    );
    assert!(moved(&report, "write_call_bytes") >= 8.0 * MIB, "{report:#}");
    if is_root() && report["machine"]["cgroup"]["Ok"].is_object() {
        let running = run(&report)["still_running"].as_array().map_or(0, Vec::len);
        assert_eq!(running, 1, "{report:#}");
        let dir = report["machine"]["cgroup"]["Ok"]["dir"].as_str().unwrap_or_default();
        assert!(!Path::new(dir).exists(), "{dir} is left");
    }
}

#[test]
fn throttle_is_the_limiter_and_neighbours_are_not_counted() {
    let stage = Stage::new();
    if !is_root() {
        return;
    }
    let device = Device::on(&stage.file("image", 64), Image::Direct);
    let Some(disk) = device.and_then(|device| Disk::bare(&stage, Some(device))) else { return };
    let limit = ("blkio", "blkio.throttle.read_bps_device", "$NUMBER 16777216");
    let Some(group) = Group::limited(&disk, &limit) else { return };
    let report = stage.path("throttled.json");
    let device = disk.device.display();
    let words =
        format!("time -o {} -- dd bs=64k count=256 iflag=direct of=/dev/null if={device}", report.display());
    let prefix = [disk.enter(), group.enter()].concat();
    let out = crate::stage::wait(&mut stage.command(&prefix, &words, Path::new("")));
    let json: Value =
        serde_json::from_str(&std::fs::read_to_string(&report).unwrap_or_default()).unwrap_or(Value::Null);
    assert_eq!(json["limiter"]["name"], "throttle", "{out:?}");
    near(moved(&json, "fetched_bytes"), 16.0 * MIB);
    // A neighbour that reads the same device.
    let reads =
        format!("while :; do dd if={device} of=/dev/null bs=64k count=64 iflag=direct status=none; done");
    let _neighbour = disk.spawn_sh(&reads);
    let words = format!(
        "time -o {} --force -- dd bs=4k count=4096 iflag=direct of=/dev/null if={device}",
        report.display()
    );
    let out = crate::stage::wait(&mut stage.command(&disk.enter(), &words, Path::new("")));
    let json: Value =
        serde_json::from_str(&std::fs::read_to_string(&report).unwrap_or_default()).unwrap_or(Value::Null);
    near(moved(&json, "fetched_bytes"), 16.0 * MIB);
    assert!(finds(&json, "D01"), "{out:?} {json:#}");
}

#[test]
fn pipes_do_not_count_as_storage() {
    let stage = Stage::one_per_cpu();
    std::fs::create_dir_all(stage.path("here/dir")).unwrap();
    crate::stage::fill(&stage.path("here/dir/data"), 8);
    let (_, report) = timed(&stage, "-- tar c dir | sleep 0.3");
    assert!(moved(&report, "dirtied_bytes") < MIB, "{report:#}");
    let (_, report) = timed(&stage, "-- sh -c 'tar c dir | cat > copied.tar'");
    near(moved(&report, "dirtied_bytes"), 8.0 * MIB);
    // fathom cannot distinguish reads from the pipe between the processes from reads of files, so the figure must be unknown.
    assert!(run(&report)["cached_read_bytes"]["Err"].is_string(), "{report:#}");
}

#[test]
fn users_without_rights_see_what_is_missing() {
    let stage = Stage::one_per_cpu();
    if !is_root() {
        return;
    }
    let dir = stage.unprivileged_folder("here");
    crate::stage::fill(&dir.join("data"), 8);
    let report = dir.join("report.json");
    let words = format!("time --verbose -o {} -- cat {}", report.display(), dir.join("data").display());
    let out = stage.fathom_unprivileged(&words, Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stderr.contains("syncs not checked") && out.stderr.contains("Not known"), "{out:?}");
    let json: Value =
        serde_json::from_str(&std::fs::read_to_string(&report).unwrap_or_default()).unwrap_or(Value::Null);
    near(moved(&json, "read_call_bytes"), 8.0 * MIB);
    assert!(
        run(&json)["syncs"]["Err"].is_string() && run(&json)["charged_bytes"]["Err"].is_string(),
        "{json:#}"
    );
}

#[test]
fn conditions_and_comparisons_work() {
    let stage = Stage::one_per_cpu();
    for (words, code) in [
        ("--fail-if 'time>10s' -- true", 0),
        ("--fail-if 'time>1us' -- true", 1),
        ("--fail-if 'time>1us' -- false", 1),
        ("--fail-if 'time>1us' -- sh -c 'exit 9'", 9),
        ("--fail-if 'iops<5' -- true", 125),
    ] {
        let out = shell(&stage, &format!("cd \"$D\" && \"$F\" time {words}"));
        assert_eq!(out.code, Some(code), "{words}: {out:?}");
    }
    let (out, report) =
        timed(&stage, "--runs 4 --prepare 'rm -f x' --compare 'sleep 0.01; touch x' 'sleep 0.1; touch x'");
    assert_eq!(report["commands"]["compared"][0]["metrics"][0]["answer"], "SLOWER", "{out:?} {report:#}");
    assert!(out.stderr.contains("FASTEST  'sleep 0.01; touch x'. 'sleep 0.1; touch x' is SLOWER"), "{out:?}");
    let sessions = stage.sessions();
    let failed = shell(&stage, "\"$F\" time --no-history --compare 'exit 3' 'exit 3'");
    assert!(failed.code == Some(3) && failed.stderr.contains("exit 3: ended with exit code 3"), "{failed:?}");
    assert_eq!(stage.fathom("show", sessions.last().unwrap()).code, Some(0));
    let listed = stage.fathom("list", Path::new(""));
    assert!(listed.stdout.contains("sleep 0.01; touch x"), "{listed:?}");
    let csv = stage.fathom("show --format csv", sessions.last().unwrap());
    assert_eq!(csv.stdout.lines().count(), 9, "{csv:?}");
}

#[test]
fn sessions_of_a_command_can_be_compared() {
    let stage = Stage::one_per_cpu();
    shell(&stage, "\"$F\" time --runs 4 -- sleep 0.02");
    shell(&stage, "\"$F\" time --runs 4 -- sleep 0.1");
    let out = stage.fathom("compare last~1 last", Path::new(""));
    assert!(out.code == Some(0) && out.stdout.starts_with("SLOWER"), "{out:?}");
}

#[test]
fn retired_commands_name_what_to_type_instead() {
    let stage = Stage::shared();
    for name in ["dd", "hdparm", "ioping"] {
        for words in ["", "--help", "if=/dev/zero of=made bs=1k count=1"] {
            let out = shell(&stage, &format!("cd \"$D\" && \"$F\" {name} {words}"));
            check_outcome(&out, 2, &["no longer exists: `fathom "]);
        }
        let link = stage.path(name);
        symlink(env!("CARGO_BIN_EXE_fathom"), &link).unwrap();
        check_outcome(&shell(&stage, &format!("{} --help", link.display())), 2, &["no longer exists"]);
    }
    assert_eq!(names(&stage.path("here")), Vec::<std::path::PathBuf>::new());
}
