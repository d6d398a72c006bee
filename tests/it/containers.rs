//! fathom in containers: a runtime that denies io_uring, hides files, removes rights and limits memory.
//!
//! `container.sh` sets up restrictions in a private mount namespace, and `deny_calls.py` is the seccomp filter. Each command must work, or
//! refuse before it makes anything. The fast tests apply all restrictions at once; the long tests apply each one alone, and run in a podman
//! container.

use crate::group::Group;
use crate::stage::{Outcome, Stage, fill, is_root, names, skip, tool, wait};
use rustix::fs::chown;
use rustix::process::{Gid, Uid};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The user of the restriction `user`.
const USER: u32 = 12345;
/// Memory limit under the restriction `memory`.
const MEMORY: &str = "128M";
/// Every restriction by its name in `container.sh`; `pid` and `memory` are set up here.
const RESTRICTIONS: [&str; 10] = [
    "eperm",
    "enosys",
    "sys-read-only",
    "masked",
    "read-only-root",
    "user",
    "shm",
    "memory",
    "no-admin",
    "pid",
];
/// Number of commands that run at the same time: most of their time is spent waiting.
const AT_ONCE: usize = 4;

/// The commands of the matrix, with their shortest times. `d` is a directory, `x.icf` a configuration of Iometer.
const COMMANDS: [(&str, &str); 13] = [
    ("bench --quick", "bench --quick --size 16m --no-history --quiet d"),
    ("bench", "bench --size 16m --time 20ms --warmup 0 --runs 1 --attempts 1 --no-history --quiet d"),
    ("limit", "limit --size 16m --time 50ms --warmup 0 --runs 1 --attempts 1 --no-history --quiet d"),
    ("iometer", "iometer /c x.icf /r result.csv d"),
    ("run", "run --size 16m --time 50ms --warmup 0 --runs 1 --attempts 1 --no-history --quiet d"),
    (
        "sweep",
        "sweep --rw randread --bs 4k --depth 1,4 --workers 1 --size 16m --time 50ms --attempts 1 --no-history --quiet d",
    ),
    (
        "layers",
        "layers --rw randread --size 16m --time 20ms --warmup 0 --runs 3 --attempts 1 --no-history --quiet d",
    ),
    (
        "api",
        "api --rw randread --interface pread,libaio,io_uring --size 16m --time 20ms --runs 1 --attempts 1 --no-history --quiet d",
    ),
    ("verify", "verify --size 16m d"),
    ("time", "time --no-history -- dd if=/dev/zero of=d/timed bs=64k count=32 status=none"),
    ("recipe", "recipe sqlite --time 50ms --runs 1 --attempts 1 --no-history --quiet d"),
    (
        "fio",
        "fio --name=t --directory=d --size=16m --rw=randread --ioengine=libaio --direct=1 --iodepth=4 --number_ios=50",
    ),
    ("diskspd", "diskspd -c16M -b4K -d1 -W0 -o4 -r -Su d/data"),
];

/// One worker with one access specification for one second.
const ICF: &str = "Version 1.1.0 \n'TEST SETUP ====\n'Test Description\n\tone worker\n'Run Time\n'\thours      minutes    seconds\n\t0          0          1\n'Ramp Up Time (s)\n\t0\n'Record Results\n\tALL\n'Test Type\n\tNORMAL\n'END test setup\n'ACCESS SPECIFICATIONS ====\n'Access specification name,default assignment\n\t4K,NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t4096,100,100,100,0,1,0,0\n'END access specifications\n'MANAGER LIST ====\n'Manager ID, manager name\n\t1,HOST\n'Manager network address\n\t\n'Worker\n\tWorker 1\n'Worker type\n\tDISK\n'Default target settings for worker\n'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value\n\t4,DISABLED,1,DISABLED,0\n'Disk maximum size,starting sector,Data pattern\n\t32768,0,2\n'End default target settings for worker\n'Assigned access specs\n\t4K\n'End assigned access specs\n'Target assignments\n'Target\n\tC:\n'Target type\n\tDISK\n'End target\n'End target assignments\n'End worker\n'End manager\n'END manager list\nVersion 1.1.0 \n";

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name)
}

/// The program under a filter of system calls that answers those of io_uring with an errno.
fn without_io_uring(stage: &Stage, errno: u32, words: &str, target: &Path) -> Outcome {
    let prefix = ["python3", &script("deny_calls.py").to_string_lossy(), "io_uring", &errno.to_string()]
        .map(str::to_owned);
    wait(&mut stage.command(&prefix, words, target))
}

#[test]
fn old_kernels_are_measured_with_mount_and_devices() {
    let stage = Stage::shared();
    let dir = stage.folder("d");
    let old = |errno: &str, words: &str| {
        let prefix = ["python3", &script("deny_calls.py").to_string_lossy(), "new", errno].map(str::to_owned);
        wait(&mut stage.command(&prefix, words, &dir))
    };
    let words = "run --rw randread --size 16m --time 50ms --warmup 0 --runs 1 --attempts 1 --no-history --quiet --format json";
    let file_system = |report: &serde_json::Value| report["machine"]["places"][0]["file_system"].clone();
    let here = stage.fathom(words, &dir).report();
    for errno in ["38", "1"] {
        let out = old(errno, words);
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        let report = out.report();
        assert!(report.0["results"][0]["read"]["ops"].as_u64() > Some(0), "{out:?}");
        assert!(file_system(&report.0).is_object(), "{}", report.0["machine"]);
        assert_eq!(file_system(&report.0), file_system(&here.0));
    }
    assert!(names(&dir).is_empty());
}

/// A directory for one command of the matrix, with an empty directory `d` for its target.
struct Cell {
    dir: PathBuf,
    memory: Option<Group>,
}

impl Cell {
    fn new(stage: &Stage, name: &str, restrictions: &[&str]) -> Self {
        let dir = stage.folder(name);
        let target = stage.folder(&format!("{name}/d"));
        std::fs::write(dir.join("x.icf"), ICF).unwrap();
        for path in [&dir, &target] {
            chown(path, Some(Uid::from_raw(USER)), Some(Gid::from_raw(USER))).unwrap();
        }
        let memory = restrictions.contains(&"memory").then(|| Group::create("memory")).flatten();
        if let Some(group) = &memory {
            std::fs::write(group.dir().join("memory.limit_in_bytes"), MEMORY).unwrap();
        }
        Self { dir, memory }
    }

    /// Runs a command under restrictions.
    fn fathom(&self, stage: &Stage, restrictions: &[&str], words: &str) -> Outcome {
        let mut named: Vec<String> = Vec::new();
        for restriction in restrictions {
            match (*restriction, &self.memory) {
                ("pid", _) | ("memory", None) => {}
                ("memory", Some(group)) => named.push(format!("memory={}", group.dir().display())),
                (other, _) => named.push(other.to_owned()),
            }
        }
        let named = if named.is_empty() { "none".to_owned() } else { named.join(",") };
        let mut prefix: Vec<String> =
            ["unshare", "--mount", "--propagation", "private"].map(str::to_owned).into();
        if restrictions.contains(&"pid") {
            prefix.extend(["--pid", "--fork", "--kill-child", "--mount-proc"].map(str::to_owned));
        }
        let dir = self.dir.to_string_lossy().into_owned();
        prefix.extend(["sh".to_owned(), script("container.sh").to_string_lossy().into_owned(), dir, named]);
        let mut command = Command::new("unshare");
        // Another user may not enter the directory of the build.
        command.args(&prefix[1..]).arg(stage.path("fathom")).args(words.split(' '));
        // Set no writable home, as in many containers.
        command.env("XDG_DATA_HOME", "/proc/none").env_remove("TMPDIR").env_remove("HOME");
        command.env("COLUMNS", "200").env("FATHOM_TEST_IDLE", "100ms");
        wait(command.current_dir("/"))
    }
}

/// Puts the program where every user may run it.
fn share_program(stage: &Stage) {
    tool(&[&"cp", &env!("CARGO_BIN_EXE_fathom"), &stage.path("fathom")]).unwrap();
}

/// Whether a command answered. Fails unless it answered, or refused with a message before it made anything.
fn has_answered(name: &str, restrictions: &[&str], cell: &Cell, out: &Outcome) -> bool {
    let what = format!("{name} under {restrictions:?}");
    assert!(!out.stderr.contains("panicked"), "{what}: {out:?}");
    let is_foreign = ["fio", "diskspd", "iometer"].contains(&name);
    let is_answer = match name {
        "iometer" => out.code == Some(0) && cell.dir.join("result.csv").exists(),
        "time" => out.code == Some(0) && out.stderr.contains("dd wrote 2"),
        _ if is_foreign => out.code == Some(0) && !out.stdout.is_empty(),
        _ => matches!(out.code, Some(0 | 1)) && !out.stdout.is_empty(),
    };
    if is_answer {
        return true;
    }
    assert!(matches!(out.code, Some(1..=3)), "{what}: {out:?}");
    assert!(out.stdout.is_empty() && out.stderr.contains("fathom: "), "{what}: {out:?}");
    assert!(
        names(&cell.dir.join("d")).is_empty(),
        "{what}: something was made before it was refused: {out:?}"
    );
    false
}

/// Runs commands under restrictions, some at the same time, and returns the first lines of each answer.
fn matrix(stage: &Stage, restrictions: &[&str], must_answer: bool) -> Vec<String> {
    let left: Mutex<Vec<_>> = Mutex::new(COMMANDS.iter().rev().collect());
    let reported = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((name, words)) = left.lock().unwrap().pop() else { return };
                    let cell = Cell::new(
                        stage,
                        &format!("{}-{}", name.replace(' ', ""), restrictions.join("-")),
                        restrictions,
                    );
                    let out = cell.fathom(stage, restrictions, words);
                    let is_answer = has_answered(name, restrictions, &cell, &out);
                    assert!(is_answer || !must_answer, "{name} under {restrictions:?}: {out:?}");
                    let text = match (*name, is_answer) {
                        ("iometer", true) => std::fs::read_to_string(cell.dir.join("result.csv")).unwrap(),
                        ("time", true) | (_, false) => out.stderr.clone(),
                        (_, true) => out.stdout.clone(),
                    };
                    let lines: Vec<&str> =
                        text.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
                    reported.lock().unwrap().push(format!(
                        "{} | {name} | exit code {}\n    {}",
                        restrictions.join(" "),
                        out.code.unwrap_or(-1),
                        lines.join("\n    ")
                    ));
                }
            });
        }
    });
    reported.into_inner().unwrap()
}

#[test]
fn every_command_works_or_refuses_under_all_container_restrictions() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    share_program(&stage);
    let all: Vec<&str> = RESTRICTIONS.into_iter().filter(|r| *r != "enosys").collect();
    let reported = matrix(&stage, &all, true);
    assert_eq!(reported.len(), COMMANDS.len());
}

#[test]
#[ignore = "long"]
fn every_command_works_or_refuses_under_each_container_restriction() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    share_program(&stage);
    for restriction in RESTRICTIONS {
        println!("{}", matrix(&stage, &[restriction], true).join("\n"));
    }
}

#[test]
fn libaio_replaces_io_uring_at_the_same_depth_with_a_reason() {
    let stage = Stage::shared();
    let dir = stage.folder("d");
    for (errno, word) in [(1, "EPERM"), (38, "ENOSYS")] {
        let words = "run --rw randread --depth 4 --workers 2 --size 16m --time 50ms --warmup 0 --runs 1 --attempts 1 --no-history --quiet --format json";
        let out = without_io_uring(&stage, errno, words, &dir);
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        let report = out.report();
        let stream = &report.0["results"][0]["job"]["phases"][0]["streams"][0];
        assert_eq!(
            (&stream["engine"], &stream["depth"], &stream["workers"]),
            (&"libaio".into(), &4.into(), &2.into())
        );
        assert_eq!(stream["engine_fallback"]["wanted"], "io_uring");
        let cause = stream["engine_fallback"]["cause"].as_str().unwrap();
        assert!(cause.contains(word) && cause.contains("seccomp") && !cause.contains("sysctl"), "{cause}");
        let notes = report.0["notes"].as_array().unwrap();
        assert!(notes.iter().any(|note| note.as_str().unwrap().contains(cause)), "{notes:?}");
        let explained = without_io_uring(&stage, errno, "run --size 16m --explain", &dir);
        assert!(explained.stdout.contains("the default io_uring cannot be used"), "{explained:?}");
        // The doctor recommends only what the machine allows.
        let doctor = without_io_uring(&stage, errno, "doctor --format json", &dir);
        assert!(!doctor.stdout.contains("io_uring_disabled"), "{}", doctor.stdout);
    }
    assert!(names(&dir).is_empty());
}

#[test]
fn options_that_libaio_lacks_are_refused_with_a_working_command() {
    let stage = Stage::shared();
    let dir = stage.folder("d");
    let short = "--size 16m --time 50ms --warmup 0 --runs 1 --attempts 1 --no-history --quiet";
    for words in [
        format!("run --rw randread --cache buffered --depth 4 {short}"),
        format!("run --rw randtrim --depth 4 {short}"),
        format!("run --rw randwrite --sync-file-range 8 --depth 4 {short}"),
        "verify --size 16m --cache buffered --depth 4".into(),
    ] {
        let out = without_io_uring(&stage, 1, &words, &dir);
        assert_eq!((out.code, out.stdout.as_str()), (Some(3), ""), "{words}: {out:?}");
        assert!(!out.stderr.contains("preparing") && names(&dir).is_empty(), "{words}: {out:?}");
        let advice = out
            .stderr
            .trim()
            .rsplit_once("type: ")
            .unwrap_or_else(|| panic!("{words}: {out:?}"))
            .1
            .to_owned();
        let filter = script("deny_calls.py").display().to_string();
        let pasted = ["python3", &filter, "io_uring", "1", "sh", "-c", &advice].map(str::to_owned);
        let out = wait(&mut stage.command(&pasted, "", Path::new("")));
        assert!(matches!(out.code, Some(0 | 1)) && !out.stdout.is_empty(), "{advice}: {out:?}");
    }
    // DISKSPD goes through the page cache unless -Su is typed.
    let file = stage.path("data");
    fill(&file, 16);
    let out = without_io_uring(&stage, 38, "diskspd -b4K -d1 -W0 -o2 -r", &file);
    assert!(out.code == Some(1) && out.stderr.contains(" diskspd -o1 -t2 -b4K -d1 -W0 -r "), "{out:?}");
}

#[test]
fn denied_io_uring_is_refused_in_the_syntax_of_the_command() {
    let stage = Stage::shared();
    let dir = stage.folder("d");
    let toml = stage.path("job.toml");
    std::fs::write(
        &toml,
        format!("target = \"{}\"\nrw = \"randread\"\nsize = \"16m\"\nengine = \"io_uring\"\n", dir.display()),
    )
    .unwrap();
    let fio = stage.path("job.fio");
    std::fs::write(
        &fio,
        format!("[a]\ndirectory={}\nsize=16m\nrw=randread\nioengine=io_uring\ndirect=1\n", dir.display()),
    )
    .unwrap();
    let file = stage.path("data");
    fill(&file, 16);
    for (words, target, advice) in [
        ("run --engine io_uring --size 16m", &dir, "type --engine libaio"),
        ("bench --engine io_uring:sqpoll --size 16m", &dir, "type --engine libaio"),
        ("sweep --engine io_uring,libaio --size 16m", &dir, "type --engine libaio"),
        ("verify --engine io_uring --size 16m", &dir, "type --engine libaio"),
        ("api --interface io_uring --size 16m", &dir, "--interface 'libaio"),
        ("run", &toml, "engine = \"libaio\""),
        ("run", &fio, "ioengine=libaio"),
        (
            "fio --name=t --rw=randread --ioengine=io_uring --direct=1 --iodepth=4 --number_ios=10 --filename",
            &file,
            "type ioengine=libaio",
        ),
    ] {
        let out = without_io_uring(&stage, 1, words, target);
        assert!(matches!(out.code, Some(1..=3)) && out.stdout.is_empty(), "{words}: {out:?}");
        assert!(out.stderr.contains(advice) && out.stderr.contains("seccomp"), "{words}: {out:?}");
        assert!(names(&dir).is_empty(), "{words}: {out:?}");
    }
}

#[test]
fn unsupported_ring_options_are_refused_before_a_file_is_made() {
    let stage = Stage::shared();
    let dir = stage.folder("d");
    for words in [
        "run --engine io_uring:sqpoll=4096 --size 16m",
        "run --engine io_uring:iopoll,plain-files --cache buffered --size 16m",
    ] {
        let out = stage.fathom(words, &dir);
        assert_eq!(out.code, Some(3), "{words}: {out:?}");
        assert!(!out.stderr.contains("watching") && out.stderr.contains("option "), "{words}: {out:?}");
    }
}

/// Copies the program with its libraries, as an image from scratch has them.
fn image(stage: &Stage) -> PathBuf {
    let image = stage.folder("image");
    stage.folder("image/data");
    let program = env!("CARGO_BIN_EXE_fathom");
    tool(&[&"cp", &program, &image.join("fathom")]).unwrap();
    for library in tool(&[&"ldd", &program]).unwrap().split_whitespace().filter(|word| word.starts_with('/'))
    {
        let copy = image.join(&library[1..]);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        tool(&[&"cp", &"-L", &library, &copy]).unwrap();
    }
    image
}

#[test]
fn chroot_without_dev_and_proc_uses_the_same_engine() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let image = image(&stage);
    let words = "run --rw randread --size 16m --time 50ms --warmup 0 --runs 1 --attempts 1 --no-history --quiet --format json";
    let engine = |out: &Outcome| {
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        out.report().0["results"][0]["job"]["phases"][0]["streams"][0]["engine"].clone()
    };
    let outside = engine(&stage.fathom(words, &stage.folder("d")));
    let inside = wait(Command::new("chroot").arg(&image).arg("/fathom").args(words.split(' ')).arg("/data"));
    assert_eq!(engine(&inside), outside);
    assert!(names(&image.join("data")).is_empty());
}

#[test]
#[ignore = "long"]
fn measures_a_volume_in_a_podman_container() {
    if !is_root() {
        return;
    }
    let runtime = tool(&[&"sh", &"-c", &"command -v runc || command -v crun"]);
    let (Ok(runtime), Ok(_)) = (runtime, tool(&[&"podman", &"--version"])) else {
        return skip("podman is not installed");
    };
    let stage = Stage::shared();
    let (image, volume) = (image(&stage), stage.folder("volume"));
    let storage = [("--root", "podman"), ("--runroot", "podman-run")]
        .map(|(flag, name)| [flag.to_owned(), stage.folder(name).display().to_string()]);
    for words in [
        "bench --quick --size 16m /data",
        "run --rw randread --size 16m --time 100ms --warmup 0 --runs 1 --attempts 1 /data",
    ] {
        let mut podman = Command::new("podman");
        podman.args(storage.iter().flatten()).args([
            "--cgroup-manager",
            "cgroupfs",
            "--log-level",
            "error",
            "--runtime",
            &runtime,
        ]);
        // podman's default limits may be above the machine's, so set lower ones.
        podman.args([
            "run",
            "--rm",
            "--network",
            "none",
            "--read-only",
            "--ulimit",
            "nofile=1024:1024",
            "--ulimit",
            "nproc=1000:1000",
        ]);
        podman
            .arg("-v")
            .arg(format!("{}:/data", volume.display()))
            .arg("--rootfs")
            .arg(&image)
            .arg("/fathom");
        podman.args(words.split(' ').chain(["--no-history"]));
        let out = wait(&mut podman);
        println!(
            "podman | {words} | exit code {:?}\n    {}",
            out.code,
            out.stdout.lines().take(3).collect::<Vec<_>>().join("\n    ")
        );
        assert!(matches!(out.code, Some(0 | 1)) && !out.stdout.is_empty(), "{out:?}");
        assert!(
            out.stdout.contains("using libaio instead") || out.stderr.contains("using libaio instead"),
            "{out:?}"
        );
        assert!(names(&volume).is_empty());
    }
}
