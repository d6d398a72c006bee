//! `fathom run JOB.fio` and `fathom fio`: effects on files, streams and exit codes, and refusals.

use crate::output::check_outcome;
use crate::stage::{Outcome, Stage, is_root, skip, tool, undisturbed, wait};
use serde_json::Value;
use std::path::Path;

/// fathom by the name of fio.
pub(crate) fn fio(stage: &Stage, words: &str) -> Outcome {
    fio_with(stage, words, &[])
}

pub(crate) fn fio_with(stage: &Stage, words: &str, set: &[(&str, &str)]) -> Outcome {
    let by_name = ["bash", "-c", "exec -a /usr/bin/fio \"$0\" \"$@\""].map(str::to_owned);
    wait(stage.command(&by_name, words, Path::new("")).envs(set.iter().copied()))
}

#[test]
fn fio_job_file_makes_its_files_and_touches_each_block_once() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let file = stage.path("mine.fio");
    let text = format!(
        "[global]\nthread\nsize=17m\ndirectory={}\n[w]\nrw=write\nbs=1m\n[r]\nstonewall\nrw=randread\nbs=64k\nnumjobs=2\ngroup_reporting\n",
        folder.display()
    );
    std::fs::write(&file, text).unwrap();
    for _ in 0..2 {
        let out = stage.fathom("run --runs 1 --attempts 1 --format json --no-history", &file);
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        assert!(out.stderr.contains("thread has no effect here"), "{out:?}");
        let report: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        let ops = |at: usize, kind: &str| report["results"][at][kind]["ops"].as_u64();
        assert_eq!((ops(0, "write"), ops(1, "read")), (Some(17), Some(2 * 17 * 16)), "{report:#}");
    }
    // The second call may write the files again that fathom made in the first call.
    for name in ["w.0.0", "r.0.0", "r.1.0"] {
        assert_eq!(std::fs::metadata(folder.join(name)).unwrap().len(), 17 << 20, "{name}");
    }
    // fathom does not write a file that another program made.
    std::fs::remove_file(folder.join("w.0.0")).unwrap();
    std::fs::write(folder.join("w.0.0"), vec![7; 17 << 20]).unwrap();
    check_outcome(&stage.fathom("run --runs 1 --quiet", &file), 2, &["--destroy", "w.0.0"]);
    assert!(std::fs::read(folder.join("w.0.0")).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn sequential_mixes_advance_each_direction_separately() {
    let stage = Stage::shared();
    for (mine, depth, block) in [("psync", 1, 4096), ("libaio --direct=1", 8, 8192)] {
        let file = stage.path("mixed");
        std::fs::write(&file, vec![0; 4 << 20]).unwrap();
        let words = format!(
            "--name=m --rw=readwrite --size=4m --bs={block} --ioengine={mine} --iodepth={depth} --output-format=json --filename={}",
            file.display()
        );
        let out = fio_with(&stage, &words, &[("FATHOM_DESTROY", file.to_str().unwrap())]);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
        let json: Value = serde_json::from_str(&out.stdout).unwrap();
        let bytes = |kind: &str| json["jobs"][0][kind]["io_bytes"].as_u64().unwrap() as usize;
        assert_eq!(bytes("read") + bytes("write"), 4 << 20, "together they are the size");
        let data = std::fs::read(&file).unwrap();
        let first_untouched = data.chunks(block).position(|b| b.iter().all(|byte| *byte == 0)).unwrap();
        assert_eq!(first_untouched * block, bytes("write"), "the writes follow one another");
        assert!(data[bytes("write")..].iter().all(|byte| *byte == 0), "and nowhere else");
    }
}

#[test]
fn rw_sequencer_numbers_continue_from_each_random_offset() {
    let stage = Stage::shared();
    let file = stage.path("rows");
    std::fs::write(&file, vec![0; 4 << 20]).unwrap();
    let words = format!(
        "--name=r --rw=randwrite:8 --size=4m --number_ios=16 --output-format=json --filename={}",
        file.display()
    );
    let out = fio_with(&stage, &words, &[("FATHOM_DESTROY", file.to_str().unwrap())]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    let data = std::fs::read(&file).unwrap();
    let written: Vec<bool> = data.chunks(4096).map(|b| b.iter().any(|byte| *byte != 0)).collect();
    let begins = (0..1024).filter(|at| written[*at] && !written[(at + 1023) % 1024]).count();
    let count = written.iter().filter(|w| **w).count();
    assert!((9..=16).contains(&count) && (1..=2).contains(&begins), "{count} blocks in {begins} rows");
}

#[test]
fn unsupported_fio_options_are_refused_by_name() {
    let stage = Stage::shared();
    let file = stage.path("mine.fio");
    std::fs::write(&file, "[a]\nsize=1m\nzonemode=zbd\n").unwrap();
    check_outcome(&stage.fathom("run", &file), 2, &["mine.fio:3:1", "zonemode=zbd", "zoned devices"]);
    assert!(!stage.path("a.0.0").exists(), "nothing is made");
}

#[test]
fn json_callers_of_fio_get_only_json() {
    let stage = Stage::shared();
    let file = stage.path("data");
    // As KDiskMark types it, except for the size.
    let words = format!(
        "--output-format=json --ioengine=libaio --randrepeat=0 --refill_buffers --end_fsync=0 --direct=1 --rwmixread=0 \
         --filename={} --name=SEQ --size=8m --bs=1m --rw=write --iodepth=8 --numjobs=1 --loops=2",
        file.display()
    );
    for _ in 0..2 {
        let out = fio(&stage, &words);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
        let json: Value = serde_json::from_str(&out.stdout).unwrap();
        assert_eq!(json["fio version"], "fio-3.33");
        let job = &json["jobs"][0];
        let counts = (job["jobname"].as_str(), job["write"]["io_bytes"].as_u64(), job["error"].as_i64());
        assert_eq!(counts, (Some("SEQ"), Some(16 << 20), Some(0)), "{job:#}");
        assert!(json["fathom"]["verdict"].is_string(), "{:#}", json["fathom"]);
    }
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 8 << 20, "it stays, as fio's does");
    assert_eq!(stage.sessions().len(), 2);
    let shown = stage.fathom("show last --format json", Path::new("")).report();
    assert_eq!(shown.0["results"][0]["runs"].as_array().map(Vec::len), Some(1), "one run");
}

#[test]
fn depth_of_a_synchronous_engine_is_capped_with_the_note_of_fio() {
    let stage = Stage::shared();
    let note = "queue depth will be capped at 1";
    let text = |engine: &str| {
        let words = format!(
            "--iodepth=32 --name=j --ioengine={engine} --rw=read --size=1m --filename={}",
            stage.path("data").display()
        );
        fio(&stage, &words).stdout
    };
    let synchronous = text("psync");
    assert!(synchronous.contains("ioengine=psync, iodepth=32\n"), "{synchronous}");
    assert!(synchronous.contains(note), "{synchronous}");
    assert!(!text("libaio").contains(note));
}

#[test]
fn text_output_goes_where_fio_puts_it() {
    let stage = Stage::shared();
    let (job, to) = (stage.path("two.fio"), stage.path("out"));
    let text = "[global]\nioengine=null\nsize=1m\n[a]\nrw=read\n[b]\nstonewall\nrw=randwrite\nthread\n";
    std::fs::write(&job, text).unwrap();
    let out =
        fio(&stage, &format!("{} --output={} --output-format=normal,terse", job.display(), to.display()));
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(0), "", ""), "{out:?}");
    let written = std::fs::read_to_string(&to).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert!(
        lines[0].starts_with("3;fio-3.33;a;0;0;1024;") && lines[1].starts_with("3;fio-3.33;b;1;0;"),
        "{written}"
    );
    let (theirs, ours) = written.split_once("fathom: ").unwrap();
    assert!(theirs.contains("  write: IOPS=") && ours.starts_with("thread has no effect here"), "{written}");
    assert!(ours.contains("\nfathom: "), "the verdict follows: {written}");
    let printed = fio(&stage, &job.display().to_string());
    check_outcome(&printed, 0, &["fathom: thread has no effect here"]);
    assert!(!printed.stdout.contains("fathom"), "{printed:?}");
    // The same job as one command line gives the same results.
    let line = fio(&stage, &format!("--showcmd {}", job.display())).stdout;
    let again = fio(&stage, &format!("{} --minimal", line.trim().strip_prefix("fio ").unwrap()));
    assert_eq!((again.code, again.stdout.lines().count()), (Some(0), 2), "{again:?}");
    // The output never overwrites a job file that was read.
    check_outcome(
        &fio(&stage, &format!("{0} --output={0}", job.display())),
        1,
        &["--output", "a job file of this command"],
    );
    assert_eq!(std::fs::read_to_string(&job).unwrap(), text);
}

#[test]
fn informational_commands_answer_as_fio() {
    let stage = Stage::shared();
    let job = stage.path("one.fio");
    std::fs::write(&job, "[a]\nsize=1m\nrw=write\n").unwrap();
    let job = job.display();
    assert_eq!(fio(&stage, "--version").stdout, "fio-3.33\n");
    assert!(fio(&stage, "--help").stdout.contains("--output-format"));
    assert!(fio(&stage, "--cmdhelp=iodepth").stdout.contains("queue depth"));
    assert!(fio(&stage, "--enghelp").stdout.contains("io_uring"));
    let parsed = fio(&stage, &format!("--parse-only {job}"));
    assert_eq!((parsed.code, parsed.stdout.as_str(), parsed.stderr.as_str()), (Some(0), "", ""));
    check_outcome(
        &fio(&stage, &format!("--readonly {job}")),
        1,
        &["one.fio:3:1", "--readonly forbids writes"],
    );
    check_outcome(
        &fio(&stage, "--name=a --rw=randread --zonemode=zbd"),
        1,
        &["zonemode=zbd", "does not support zoned devices"],
    );
    check_outcome(&fio(&stage, "nothing.fio"), 1, &["nothing.fio does not exist"]);
    check_outcome(&fio(&stage, "--client=host one.fio"), 1, &["--client", "ssh HOST"]);
    check_outcome(&fio(&stage, ""), 1, &["there is no job"]);
    assert!(stage.sessions().is_empty());
    // `--version` also works as an argument of `fathom fio`.
    assert_eq!(stage.fathom("fio --version", Path::new("")).stdout, "fio-3.33\n");
}

#[test]
fn user_files_are_written_only_when_allowed() {
    let stage = Stage::shared();
    let file = stage.path("data");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let words = format!("--name=a --rw=write --bs=64k --minimal --filename={}", file.display());
    check_outcome(&fio(&stage, &words), 1, &["--destroy"]);
    assert!(std::fs::read(&file).unwrap().iter().all(|byte| *byte == 7));
    // FATHOM_DESTROY may list other files, and does not matter for a file that is only read.
    let other_way = stage.folder("other").join("../data");
    let list = format!("/nothing/here:{}", other_way.display());
    let set = [("FATHOM_DESTROY", list.as_str())];
    assert_eq!(fio_with(&stage, &words.replace("rw=write", "rw=read"), &set).code, Some(0));
    assert!(std::fs::read(&file).unwrap().iter().all(|byte| *byte == 7));
    let out = fio_with(&stage, &words, &set);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(std::fs::read(&file).unwrap().iter().any(|byte| *byte != 7));
    let named = format!("{words} --destroy={}", file.display());
    assert_eq!(fio(&stage, &named).code, Some(0));
}

#[test]
fn one_refusal_names_all_files_and_new_files_are_announced() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let words = |name: &str| {
        format!("--name={name} --rw=write --bs=64k --size=2m --nrfiles=2 --directory={}", folder.display())
    };
    let files = ["a.0.0", "a.0.1"].map(|file| folder.join(file).display().to_string());
    for file in &files {
        std::fs::write(file, vec![7; 1 << 20]).unwrap();
    }
    let [first, second] = &files;
    let all = format!("--destroy={first} --destroy={second}\n  {first}\n  {second}\n");
    let refused = fio(&stage, &words("a"));
    assert!(refused.code == Some(1) && refused.stderr.ends_with(&all), "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let refused = stage.fathom(&format!("run {first} {second} --rw write --time 1s"), Path::new(""));
    assert!(refused.code == Some(2) && refused.stderr.ends_with(&all), "{refused:?}");
    let made = fio(&stage, &words("b"));
    assert!(made.stdout.starts_with("b: Laying out IO files (2 files / total 2MiB)\nb: (g=0): "), "{made:?}");
    let terse = fio(&stage, &format!("{} --minimal", words("c")));
    assert!(terse.stdout.starts_with("3;fio-"), "{terse:?}");
}

#[test]
fn fadvise_hints_match_the_options() {
    let stage = Stage::shared();
    if tool(&[&"strace", &"-V"]).is_err() {
        return skip("there is no strace");
    }
    let (calls, folder) = (stage.path("calls"), stage.folder("here"));
    let reported = |words: &str| {
        let traced =
            ["strace", "-f", "-e", "trace=fadvise64", "-o", calls.to_str().unwrap()].map(str::to_owned);
        let out = wait(&mut stage.command(&traced, words, Path::new("")));
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        let calls = std::fs::read_to_string(&calls).unwrap();
        [calls.contains("POSIX_FADV_RANDOM"), calls.contains("POSIX_FADV_SEQUENTIAL")]
    };
    let run = format!(
        "run --time 50ms --warmup 0 --runs 1 --attempts 1 --size 16m --quiet --no-history {}",
        folder.display()
    );
    assert_eq!(reported(&format!("{run} --rw read --cache buffered --advice random")), [true, false]);
    assert_eq!(reported(&format!("{run} --rw read --cache buffered")), [false, false]);
    let fio = format!("fio --minimal --name=a --size=1m --directory={}", folder.display());
    assert_eq!(reported(&format!("{fio} --rw=read")), [false, true]);
    assert_eq!(reported(&format!("{fio} --rw=randread")), [true, false]);
    assert_eq!(reported(&format!("{fio} --rw=randread --fadvise_hint=0")), [false, false]);
    let direct = stage.fathom("run --rw read --advice random", &folder);
    check_outcome(&direct, 2, &["--advice random", "--cache buffered"]);
}

#[test]
fn files_are_evicted_before_each_pass_as_in_fio() {
    let stage = Stage::one_per_cpu();
    let (file, job) = (stage.file("data", 16), stage.path("mine.fio"));
    let once = "--runs 1 --format json --no-history";
    // Reads that the page cache answered are a finding (A01).
    let answered = |settings: &str| {
        let base = "size=16m\nbs=128k\ntime_based\nruntime=400ms";
        std::fs::write(&job, format!("[a]\nfilename={}\n{base}\n{settings}\n", file.display())).unwrap();
        undisturbed(|| stage.fathom(&format!("run {once}"), &job)).report().has_answer("A01", "finding")
    };
    assert!(!answered("rw=read"));
    assert!(!answered("rw=randread\nthinktime=100\nthinktime_blocks=64"));
    assert!(answered("rw=read\ninvalidate=0") && answered("rw=read\npre_read=1"));
    // Without a random map there are no passes, so fio evicts the file only once.
    assert!(answered("rw=randread\nnorandommap"));

    let words = format!("run {once} --rw read --bs 64k --time 500ms --warmup 0");
    let run = |more: &str| stage.fathom(&format!("{words} {more}"), &file);
    let each = undisturbed(|| run("--cache buffered --evict-each-pass")).report();
    assert!(!each.has_answer("A01", "finding"), "{each:?}");
    assert!(each.name().contains("evicted before each pass"), "{}", each.name());
    assert!(undisturbed(|| run("--cache buffered")).report().has_answer("A01", "finding"));
    let parts =
        undisturbed(|| run("--cache buffered --evict-each-pass --shared segmented --workers 2")).report();
    assert!(!parts.has_answer("A01", "finding"), "{parts:?}");
    check_outcome(&run("--evict-each-pass"), 2, &["--cache direct", "--cache buffered"]);
    check_outcome(&run("--cache mmap --engine mmap --evict-each-pass"), 2, &["mapped pages are not evicted"]);
    let nothing = stage.fathom("run --engine null --cache buffered --evict-each-pass", Path::new(""));
    check_outcome(&nothing, 2, &["the engine null has no files"]);
}

#[test]
fn workers_get_the_requested_priorities() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    if tool(&[&"ionice", &"--version"]).is_err() {
        return skip("there is no ionice");
    }
    let folder = stage.folder("here");
    let words = format!(
        "fio --name=a --size=1m --rw=randread --time_based --runtime=3 --prio=2 --prioclass=1 --nice=-3 --directory={}",
        folder.display()
    );
    let running = stage.start(&words, Path::new(""));
    let has_both = |task: &Path| {
        let read = |file: &str| std::fs::read_to_string(task.join(file)).unwrap_or_default();
        let stat = read("stat");
        let nice = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(16));
        let id = task.file_name().unwrap_or_default();
        // Threads start and end, even between reading their list and their priority.
        let io = tool(&[&"ionice", &"-p", &id]);
        read("comm") == "fathom-0\n" && io.is_ok_and(|io| io == "realtime: prio 2") && nice == Some("-3")
    };
    let tasks = || crate::stage::names(Path::new(&format!("/proc/{}/task", running.id())));
    let seen = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        tasks().iter().any(|task| has_both(task))
    });
    assert!(seen, "no worker had them");
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn exitall_ends_all_jobs_with_the_first() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let words = |exitall: &str| {
        format!(
            "--output-format=json --directory={} --size=1m --rw=randread --name=short --number_ios=50 {exitall} --name=long --time_based --runtime=4",
            folder.display()
        )
    };
    for (exitall, ends) in [("--exitall", true), ("", false)] {
        let out = fio(&stage, &words(exitall));
        let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
        let runtime = report["jobs"][1]["read"]["runtime"].as_u64().unwrap();
        assert_eq!(runtime < 3_000, ends, "{exitall}: {runtime} ms: {out:?}");
        assert_eq!(report["jobs"][0]["read"]["total_ios"], 50);
    }
}

#[test]
fn percent_sizes_refer_to_existing_files() {
    let stage = Stage::shared();
    let file = stage.file("data", 8);
    let read = |words: &str| {
        fio(&stage, &format!("--output-format=json --name=a --filename={} {words}", file.display()))
    };
    let out = read("--rw=read --bs=64k --size=50% --offset=25%");
    let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    assert_eq!(report["jobs"][0]["read"]["io_bytes"], 4 << 20, "{report:#}");
    let gone = fio(&stage, &format!("--name=a --filename={}.gone --size=50%", file.display()));
    assert!(gone.code == Some(1) && gone.stderr.contains("a percentage needs the length"), "{gone:?}");
}
