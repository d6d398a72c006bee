//! fio options about time: steady state, minimum rates, latency targets, and bandwidth over time. Compares when jobs end, their messages and exit
//! codes with fio.

use crate::fio::fio;
use crate::output::check_outcome;
use crate::stage::{Outcome, Running, Stage, skip, tool, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs fio itself.
fn real(words: &str) -> Outcome {
    wait(Command::new("fio").current_dir(std::env::temp_dir()).args(words.split_whitespace()))
}

fn job(out: &Outcome) -> Value {
    let text = out.stdout.find('{').map_or("", |at| &out.stdout[at..]);
    let json: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    json["jobs"][0].clone()
}

/// A job that is steady from the first sample.
const STEADY: &str = "--name=s --ioengine=null --size=1g --rw=randread --bs=4k --rate_iops=1000 --time_based --runtime=30 \
                      --ss=iops:20% --ss_dur=3 --ss_ramp=1 --output-format=json";

#[test]
fn steady_state_ends_a_job_as_under_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    // On a busy machine no rate is reliably steady, under fio or here.
    let stage = Stage::new();
    for (who, out) in [("fathom", fio(&stage, STEADY)), ("fio", real(STEADY))] {
        assert_eq!(out.code, Some(0), "{out:?}");
        let job = job(&out);
        let steady = &job["steadystate"];
        let of = [&steady["ss"], &steady["duration"], &steady["attained"]];
        assert_eq!(of, [&"iops:20.000000%".into(), &Value::from(3), &Value::from(1)], "{who}: {steady:#}");
        let ran = job["read"]["runtime"].as_u64().unwrap();
        assert!((3_500..12_000).contains(&ran), "{who}: {ran} ms: {steady:#}");
        for values in ["iops", "bw"] {
            assert_eq!(steady["data"][values].as_array().map(Vec::len), Some(3), "{who}: {steady:#}");
        }
        let mean = steady["data"]["iops_mean"].as_f64().unwrap();
        assert!((900.0..1100.0).contains(&mean), "{who}: {steady:#}");
    }
}

#[test]
fn unsteady_jobs_are_reported() {
    let stage = Stage::shared();
    let never = STEADY
        .replace("20%", "0.0000001%")
        .replace("--rate_iops=1000 ", "")
        .replace("--runtime=30", "--runtime=5");
    let steady = job(&fio(&stage, &never))["steadystate"].clone();
    assert_eq!(steady["attained"], 0, "{steady:#}");
    let text = fio(&stage, &never.replace("--output-format=json", ""));
    assert!(text.stdout.contains("  steadystate  : attained=no, bw="), "{text:?}");
}

/// Operations and bytes of a direction.
fn moved(job: &Value, kind: &str) -> (f64, f64) {
    let of = |key: &str| job[kind][key].as_f64().unwrap_or_else(|| panic!("{kind} {key}: {job:#}"));
    (of("total_ios"), of("io_bytes"))
}

#[test]
fn each_direction_keeps_its_own_rate_as_under_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::shared();
    let always = "--name=r --ioengine=null --size=1g --bs=4k --time_based --runtime=2 --output-format=json";
    // Operations expected in two seconds. `None` means an unlimited direction, which is much faster.
    for (words, asked) in [
        ("--rw=randrw --rate_iops=,200", [("read", None), ("write", Some(400.0))]),
        ("--rw=rw --rate_iops=150,", [("read", Some(300.0)), ("write", None)]),
        ("--rw=randrw --rwmixread=70 --rate_iops=300,100", [("read", Some(600.0)), ("write", Some(200.0))]),
        ("--rw=randrw --rate=,800k --bs=4k,8k --norandommap", [("read", None), ("write", Some(200.0))]),
        (
            "--rw=randrw --rate_iops=,100 --iodepth=8 --numjobs=2 --group_reporting",
            [("read", None), ("write", Some(400.0))],
        ),
        ("--rw=randtrimwrite --rate_iops=,200", [("trim", Some(400.0)), ("write", Some(400.0))]),
    ] {
        let words = format!("{always} {words}");
        for (who, out) in [("fathom", fio(&stage, &words)), ("fio", real(&words))] {
            assert_eq!(out.code, Some(0), "{who}: {out:?}");
            let job = job(&out);
            for (kind, asked) in asked {
                let (ops, _) = moved(&job, kind);
                let is_so = match asked {
                    // Each worker starts with one operation at time 0. On a busy machine, operations come late, and the last ones too late.
                    Some(asked) => (asked * 0.75..=asked + 4.0).contains(&ops),
                    None => ops > 20_000.0,
                };
                assert!(is_so, "{who}, {words}: {ops} of {kind}");
            }
        }
    }
    // With several sizes, the rate limits the bytes of operations of the smallest size.
    let words = format!("{always} --rw=randread --bsrange=4k-8k --norandommap --rate_iops=200");
    for (who, out) in [("fathom", fio(&stage, &words)), ("fio", real(&words))] {
        let (_, bytes) = moved(&job(&out), "read");
        assert!((1_560_000.0..=1_670_000.0).contains(&bytes), "{who}: {bytes}");
    }
}

#[test]
fn a_rate_limit_of_one_direction_leaves_the_other_free() {
    let stage = Stage::one_per_cpu();
    let file = stage.folder("mix");
    let words = "run --rw randrw --bs 4k --limit-iops write=200 --cache buffered --size 16m --time 1s --runs 1 --attempts 1 \
                 --format json --no-history --quiet";
    let report: Value = serde_json::from_str(&stage.fathom(words, &file).stdout).unwrap();
    let result = &report["results"][0];
    let of = |kind: &str| result[kind]["ops"].as_u64().unwrap_or_else(|| panic!("{result:#}"));
    assert!((150..=203).contains(&of("write")) && of("read") > 2000, "{result:#}");
    assert!(report.to_string().contains("writes limited to 200 IOPS"), "{report:#}");
    // An unlimited direction has no requested share, so B13 must not fire.
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|f| f["id"] != "B13" || f["outcome"] != "finding"), "{report:#}");
    let printed = |words: &str| stage.fathom(&format!("run {words}"), &file);
    check_outcome(&printed("--rw randread --limit-iops write=200"), 2, &["limits writes", "--rw randread"]);
    check_outcome(
        &printed("--rw randrw --limit-iops write=200 --limit-bandwidth 1m"),
        2,
        &["--limit-bandwidth", "in one form"],
    );
    check_outcome(&printed("--rw randrw --limit-iops write=200 --think 1ms"), 2, &["--think"]);
    check_outcome(&printed("--rw randrw --limit-iops up=200"), 2, &["type write=200"]);
}

#[test]
fn rates_below_rate_min_end_with_an_error_as_under_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::shared();
    let words = |least: u32| {
        format!(
            "--name=s --ioengine=null --size=1g --rw=randrw --bs=4k --thinktime=5000 --rate_iops_min=0,{least} --time_based --runtime=5 \
             --output-format=json"
        )
    };
    for (who, out) in [("fathom", fio(&stage, &words(400))), ("fio", real(&words(400)))] {
        assert_eq!(out.code, Some(1), "{who}: {out:?}");
        let job = job(&out);
        assert_ne!(job["error"], 0, "{who}: {job:#}");
        assert!(job["write"]["runtime"].as_u64().is_some_and(|ms| ms < 4900), "{who}: {job:#}");
    }
    assert_eq!(fio(&stage, &words(20)).code, Some(0), "fast enough");
}

#[test]
fn latencies_above_max_latency_end_with_an_error_as_under_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::shared();
    let file = stage.file("data", 4);
    let words = |most: &str| {
        format!(
            "--name=s --ioengine=psync --direct=1 --filename={} --rw=randread --bs=4k --size=4m --max_latency={most} --time_based \
             --runtime=1 --output-format=json",
            file.display()
        )
    };
    // No disk reads within a microsecond, and every read takes less than a minute.
    for (most, code) in [("1", 1), ("1m", 0)] {
        for (who, out) in [("fathom", fio(&stage, &words(most))), ("fio", real(&words(most)))] {
            assert_eq!(out.code, Some(code), "{who}: {out:?}");
            let job = job(&out);
            assert_eq!(job["error"] == 0, code == 0, "{who}: {job:#}");
            let early = job["read"]["runtime"].as_u64().is_some_and(|ms| ms < 900);
            assert_eq!(early, code == 1, "{who}: {job:#}");
        }
    }
    let ours =
        stage.fathom("run --rw randread --time 1s --runs 1 --warmup 0 --quiet --max-latency 1us", &file);
    assert!(ours.stdout.contains("more than --max-latency 1.00 us"), "{ours:?}");
    // The run ends before the rule is checked for the first time.
    let short =
        stage.fathom("run --rw randread --ops 3 --runs 1 --warmup 0 --quiet --max-latency 1us", &file);
    assert!(short.stdout.contains("more than --max-latency 1.00 us"), "{short:?}");
    assert_ne!(short.code, Some(0), "{short:?}");
}

#[test]
fn fathom_streams_end_at_the_same_limits_and_report_it() {
    let stage = Stage::shared();
    // Do not use the simulated device: its simulated time passes too fast for rules that are checked while the job runs.
    let run =
        "run --engine null --bs 4k --size 1g --limit-iops 1000 --runs 1 --warmup 0 --quiet --format json";
    let steady = stage.fathom(&format!("{run} --time 40s --steady-state iops:30%:2s"), Path::new(""));
    assert!(steady.code == Some(0) && (2..20).contains(&steady.took.as_secs()), "{steady:?}");
    // Without a rate limit, because seconds at a constant rate would be equal.
    let free = run.replace("--limit-iops 1000 ", "");
    let never = stage.fathom(&format!("{free} --time 3s --steady-state iops:0.0001%:2s"), Path::new(""));
    assert!(never.stdout.contains("did not become steady (--steady-state iops:0.0001%:2s)"), "{never:?}");
    let short = stage.fathom(&format!("{run} --time 1s --steady-state lat:10%:2s"), Path::new(""));
    assert!(
        short.stdout.contains("it is unknown whether the stream is steady")
            && short.stdout.contains("ended before 2.00 s were measured"),
        "{short:?}"
    );
    let slow = stage.fathom(&format!("{run} --time 8s --min-rate iops:2000"), Path::new(""));
    assert!(slow.stdout.contains("less than --min-rate 2,000 IOPS"), "{slow:?}");
    assert_ne!(slow.code, Some(0), "{slow:?}");
    // A minimum rate that is met is not mentioned. A rule that was never checked is reported as such, not as met.
    let fast = stage.fathom(&format!("{run} --time 4s --min-rate iops:500"), Path::new(""));
    assert!(fast.code == Some(0) && !fast.stdout.contains("never checked"), "{fast:?}");
    let brief = stage.fathom(&format!("{run} --time 2s --min-rate iops:9999999"), Path::new(""));
    assert!(brief.stdout.contains("was never checked: after the first"), "{brief:?}");
    check_outcome(
        &stage.fathom("run --engine null --size 1g --rw randread --min-rate iops:write=500", Path::new("")),
        2,
        &["--min-rate", "writes", "--rw"],
    );
    check_outcome(
        &stage.fathom("run --engine null --size 1g --min-rate lat:1ms", Path::new("")),
        2,
        &["iops:1000, bw:10m"],
    );
    check_outcome(
        &stage.fathom("run --engine sim --min-rate iops:9", Path::new("")),
        2,
        &["--min-rate", "null"],
    );
    for (words, says_so) in [("iops:10%", "iops:10%:60s"), ("iops:10%:5s", "--time")] {
        let run = format!("run --engine null --size 1g --steady-state {words}");
        check_outcome(&stage.fathom(&run, Path::new("")), 2, &[says_so]);
    }
}

#[test]
fn latency_target_finds_the_largest_depth_as_under_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::shared();
    // Four servers with 100 us each: with five operations in flight, each takes 125 us on average, and more at larger depths.
    let run = "run --engine sim:servers=4 --depth 64 --latency-target 260us:90%:200ms --time 20s --runs 1 --warmup 0 --quiet --format json";
    let report = stage.fathom(run, Path::new("")).report().0;
    let result = &report["results"][0];
    let name = result["true_name"].as_str().unwrap();
    assert!(name.contains("as the latency target allows"), "{name}");
    let depth: u32 = name.split("depth ").nth(1).unwrap().split([',', ' ']).next().unwrap().parse().unwrap();
    assert!((4..=12).contains(&depth), "{name}");
    let (ops, iops) = (result["read"]["ops"].as_f64().unwrap(), result["runs"][0]["iops"].as_f64().unwrap());
    assert!((0.19..0.4).contains(&(ops / iops)), "{ops} operations: the last window alone");
    let file = stage.file("data", 4);
    let words = format!(
        "--name=s --ioengine=libaio --direct=1 --filename={} --rw=randread --iodepth=16 --latency_target=5s --latency_window=100ms \
         --time_based --runtime=20 --output-format=json",
        file.display()
    );
    for (who, out) in [("fathom", fio(&stage, &words)), ("fio", real(&words))] {
        let job = job(&out);
        let of = ["latency_depth", "latency_target", "latency_window"].map(|key| job[key].as_u64());
        assert_eq!(of, [Some(16), Some(5_000_000_000), Some(100_000)], "{who}: {job:#}");
        assert!(
            job["read"]["runtime"].as_u64().is_some_and(|ms| ms < 1000),
            "{who}: the last window: {job:#}"
        );
    }
}

#[test]
fn aggregate_bandwidth_log_has_a_line_per_half_second() {
    let stage = Stage::shared();
    let folder = stage.folder("logs");
    let words = "--name=a --ioengine=null --size=1g --rw=randrw --bs=4k --rate_iops=500,500 --time_based --runtime=3 --bandwidth-log \
                 --output-format=json --name=b --ioengine=null --size=1g --rw=read --bs=4k --rate_iops=1000 --time_based --runtime=3";
    let by_name = ["bash", "-c", "exec -a /usr/bin/fio \"$0\" \"$@\""].map(str::to_owned);
    let out = wait(stage.command(&by_name, words, Path::new("")).current_dir(&folder));
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    for (name, direction, kib) in [("read", "0", 6000.0), ("write", "1", 2000.0), ("trim", "2", 0.0)] {
        let text = std::fs::read_to_string(folder.join(format!("agg-{name}_bw.log"))).unwrap();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(", ").collect()).collect();
        assert!(rows.iter().all(|row| row[2..] == [direction, "0", "0"]), "{text}");
        let rates: Vec<f64> = rows.iter().map(|row| row[1].parse().unwrap()).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!((mean - kib).abs() <= 0.15 * kib, "{name}: {text}");
        assert!(name == "trim" || (4..=6).contains(&rows.len()), "{text}");
    }
}

#[test]
fn status_interval_prints_the_output_so_far() {
    let stage = Stage::shared();
    let words = "--name=a --ioengine=null --size=1g --rw=randread --bs=4k --rate_iops=1000 --time_based --runtime=2 \
                 --name=b --stonewall --ioengine=null --size=1g --rw=read --bs=4k --rate_iops=500 --time_based --runtime=2 \
                 --status-interval=1 --output-format=json";
    let documents = |text: &str| -> Vec<Value> {
        serde_json::Deserializer::from_str(text)
            .into_iter()
            .collect::<Result<_, _>>()
            .expect("JSON documents, one after the other")
    };
    let printed = fio(&stage, words);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""), "{printed:?}");
    let written = fio(&stage, &format!("{words} --output={}", stage.path("out").display()));
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{written:?}");
    for all in
        [printed.stdout, std::fs::read_to_string(stage.path("out")).unwrap()].map(|text| documents(&text))
    {
        let (last, before) = all.split_last().expect("the output at the end");
        // A status is skipped if the reader is too slow. If a job ends exactly at an interval, there may be one status more.
        assert!((2..=4).contains(&before.len()), "{} of them", before.len());
        let mut so_far = 0;
        for document in before.iter().chain([last]) {
            let done = |job: usize| document["jobs"][job]["read"]["total_ios"].as_u64().unwrap();
            let ms = |job: usize| document["jobs"][job]["read"]["runtime"].as_u64().unwrap();
            assert!(
                document["jobs"]
                    .as_array()
                    .is_some_and(|jobs| jobs.len() == 2 && jobs.iter().all(|j| j["error"] == 0))
            );
            assert!(done(0) + done(1) >= so_far, "{document:#}");
            so_far = done(0) + done(1);
            assert!(done(0).abs_diff(ms(0)) <= 100, "{} operations in {} ms", done(0), ms(0));
            assert!(done(1).abs_diff(ms(1) / 2) <= 50, "{} operations in {} ms", done(1), ms(1));
        }
        let cpu = |document: &Value, job: usize| document["jobs"][job].get("usr_cpu").is_some();
        assert!(!cpu(&before[0], 0) && cpu(last, 0) && cpu(last, 1), "known when a job has ended");
        assert!(before[0]["jobs"][1]["read"]["total_ios"] == 0);
        assert!(so_far > 2500, "{so_far}");
    }
    let refused = fio(&stage, "--status-interval=0.1 --name=a --ioengine=null --size=1m");
    check_outcome(&refused, 1, &["--status-interval=1"]);
}

#[test]
fn a_status_is_printed_on_sigusr1_and_the_run_continues() {
    let stage = Stage::shared();
    let words = "fio --name=a --filename=x --size=16m --rw=randread --ioengine=psync --time_based --runtime=2 --output-format=json";
    let running = Running::start(stage.command(&[], words, Path::new("")).current_dir(stage.folder("here")));
    let threads = format!("cat /proc/{}/task/*/comm", running.id());
    // If a thread ends meanwhile, cat reports an error.
    while !tool(&[&"sh", &"-c", &threads]).is_ok_and(|names| names.lines().any(|name| name == "fathom-0")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::USR1);
    let out = running.end();
    assert_eq!(out.code, Some(0), "{out:?}");
    let documents = serde_json::Deserializer::from_str(&out.stdout).into_iter::<Value>();
    let documents: Vec<Value> = documents.map(|d| d.unwrap_or_else(|e| panic!("{e}: {out:?}"))).collect();
    let reads: Vec<u64> =
        documents.iter().map(|d| d["jobs"][0]["read"]["total_ios"].as_u64().unwrap()).collect();
    assert!(reads.len() == 2 && reads[0] < reads[1], "{reads:?}");
}

#[test]
fn a_signal_prints_the_results_so_far_as_under_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::shared();
    for (who, signal) in [("fathom", Signal::INT), ("fathom", Signal::TERM), ("fio", Signal::INT)] {
        let to = stage.path("out");
        let words = format!(
            "--name=a --ioengine=null --size=1g --rw=randread --bs=4k --rate_iops=1000 --time_based --runtime=60 --name=b \
             --stonewall --ioengine=null --size=1g --rw=read --bs=4k --output-format=json --output={}",
            to.display()
        );
        let mut command = match who {
            "fio" => Command::new("fio"),
            _ => stage.command(&[], "fio", Path::new("")),
        };
        let running =
            Running::start(command.current_dir(std::env::temp_dir()).args(words.split_whitespace()));
        std::thread::sleep(Duration::from_millis(2500));
        running.signal(signal);
        let out = running.end();
        assert_eq!(out.code, Some(128), "{who}: {out:?}");
        let text = std::fs::read_to_string(&to).unwrap();
        // fio writes a line about the signal before its JSON.
        let begin = if who == "fio" { text.find('{').unwrap_or(0) } else { 0 };
        let all: Value = serde_json::from_str(&text[begin..]).unwrap();
        let [a, b] = [0, 1].map(|at| all["jobs"][at].clone());
        let (done, bytes) = moved(&a, "read");
        let ms = a["read"]["runtime"].as_f64().unwrap();
        assert!((500.0..5000.0).contains(&ms) && (done - ms).abs() <= 100.0, "{who}: {a:#}");
        assert!((bytes - 4096.0 * done).abs() < 1.0 && a["error"] == 0, "{who}: {a:#}");
        assert!(a["read"]["clat_ns"]["percentile"]["99.000000"].as_u64() > Some(0), "{who}: {a:#}");
        assert_eq!((moved(&b, "read"), &b["error"]), ((0.0, 0.0), &0.into()), "{who}: {b:#}");
        if who == "fathom" {
            // The interrupted job has no valid result.
            let printed = &all["fathom"];
            assert_eq!(
                (&printed["verdict"], &printed["ending"]["how"]),
                (&"INVALID".into(), &"interrupted".into())
            );
            let value = &printed["headline"]["value"];
            assert!(value.is_null(), "{printed:#}");
        }
    }
}

/// The effects of a call of fio, or of fathom under that name.
#[derive(Debug, PartialEq)]
struct Moved {
    code: Option<i32>,
    /// Operations and bytes of the reads, writes and trims of each job.
    jobs: Vec<[u64; 6]>,
    /// Names and sizes of the files that the command left.
    files: Vec<(String, u64)>,
}

fn results(stage: &Stage, program: &str, words: &str) -> Moved {
    let folder = stage.folder(program);
    let all = format!("--name=x {words} --output-format=json --output=out");
    let out = if program == "fio" {
        wait(Command::new("fio").current_dir(&folder).args(all.split_whitespace()))
    } else {
        wait(stage.command(&[], &format!("fio {all}"), Path::new("")).current_dir(&folder))
    };
    let text = std::fs::read_to_string(folder.join("out")).unwrap_or_default();
    let json: Value =
        text.find('{').map_or(Value::Null, |at| serde_json::from_str(&text[at..]).unwrap_or_default());
    let figures = |job: &Value| {
        let figure_of = |kind: &str, figure: &str| job[kind][figure].as_u64().unwrap_or(0);
        let [read, write, trim] =
            ["read", "write", "trim"].map(|kind| [figure_of(kind, "total_ios"), figure_of(kind, "io_bytes")]);
        [read[0], read[1], write[0], write[1], trim[0], trim[1]]
    };
    let jobs = json["jobs"].as_array().map(|jobs| jobs.iter().map(figures).collect()).unwrap_or_default();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("x.") {
            files.push((name, entry.metadata().unwrap().len()));
        }
    }
    files.sort();
    std::fs::remove_dir_all(&folder).unwrap();
    Moved { code: out.code, jobs, files }
}

#[test]
fn accepted_fio_options_move_the_same_bytes() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::shared();
    for words in [
        "--rw=read --filesize=1m --size=100%%",
        "--rw=read --size=1m --time_based",
        "--rw=write --size=1m --io_size=512k --fallocate=truncate",
        "--rw=write --size=1m --io_size=512k --fallocate=keep",
        "--rw=read --size=1m --nrfiles=4 --openfiles=2",
        "--rw=read --size=1m --nrfiles=2 --file_service_type=sequential:8",
        "--rw=read --size=1m --nrfiles=3 --file_service_type=random:8",
        "--rw=read --filesize=1m --size=256k --offset=50%",
        "--rw=read --filesize=1m --offset=25% --size=50%",
        "--rw=read --nrfiles=2 --filesize=512k --size=512k",
        "--rw=write:128k --nrfiles=3 --size=2m",
        "--rw=read:64k --bs=64k --size=1500k",
        "--rw=read:64k --bs=64k --size=1500k --loops=2",
        "--rw=read:64k --bs=64k --size=1540k",
        "--rw=read:64k --size=1m --numjobs=2 --offset_increment=256k",
        "--rw=write:64k --filesize=2m --size=1m --offset=256k --loops=2",
        "--rw=read --size=1m --numjobs=3 --offset_increment=10%",
        "--rw=read --size=1m --bs=64k --io_size=30%",
        "--rw=read --size=1m --bs=64k --io_size=500k",
        "--rw=randread --size=1m --percentage_random=20%",
        "--rw=randread --size=1m --random_distribution=zoned:50/:50/",
        "--rw=randread --size=1m --iodepth_batch_complete_min=0 --ioengine=libaio --iodepth=4",
        "--rw=randrw --rwmixread=100 --size=1m --rate=50m,50m",
        "--rw=read --size=1m --runtime=90000",
        "--rw=read --size=4k --numjobs=101",
        "--rw=read --size=4k --numjobs=101 --group_reporting",
        "--rw=write --size=1m-2m",
        "--rw=write --size=1m --buffer_compress_percentage=50 --buffer_compress_chunk=8k",
        "--rw=write --size=1m --eta=soon --write_hint=short",
        "--rw=read --size=1m --eta=0",
        "--rw=write --size=64k --fill_device=1",
        "--rw=write --size=64k --unlink_each_loop=1",
        "--rw=write --nrfiles=5 --filesize=4k-64k",
        "--rw=randread --nrfiles=3 --filesize=64k-256k --size=200k",
        "--rw=write --nrfiles=3 --filesize=64k-128k --offset=16k --loops=2",
        "--rw=read --nrfiles=2 --filesize=64k-128k --bs=8k --randseed=5",
        "--rw=write --nrfiles=3 --filesize=64k-128k --numjobs=2 --group_reporting",
        "--rw=write --size=96k --fsync=2 --fdatasync=4",
        "--rw=read --size=64k --cpus_allowed=0,4000",
    ] {
        assert_eq!(results(&stage, "fathom", words), results(&stage, "fio", words), "{words}");
    }
    for words in [
        "--rw=rw --size=1m --loops=2",
        "--rw=rw --size=1m --io_size=3m",
        "--rw=randrw --size=1m --percentage_random=100,50",
    ] {
        // Directions are drawn at random, so only their sum is equal.
        let both = |who: &str| {
            results(&stage, who, words)
                .jobs
                .iter()
                .map(|job| (job[0] + job[2], job[1] + job[3]))
                .collect::<Vec<_>>()
        };
        assert_eq!(both("fathom"), both("fio"), "{words}");
    }
}

#[test]
fn file_service_order_matches_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::shared();
    for words in [
        "--openfiles=1",
        "--openfiles=3",
        "--file_service_type=roundrobin:3",
        "--file_service_type=sequential --loops=2",
    ] {
        let log = |program: &str| {
            let folder = stage.folder(program);
            let all =
                format!("--name=x --rw=read --size=96k --nrfiles=4 --write_iolog=log --minimal {words}");
            let out = if program == "fio" {
                wait(Command::new("fio").current_dir(&folder).args(all.split_whitespace()))
            } else {
                wait(stage.command(&[], &format!("fio {all}"), Path::new("")).current_dir(&folder))
            };
            assert_eq!(out.code, Some(0), "{out:?}");
            let text = std::fs::read_to_string(folder.join("log")).unwrap();
            std::fs::remove_dir_all(&folder).unwrap();
            let reads = text.lines().filter(|line| line.contains(" read "));
            // Compare the file name as typed and the rest, without the time.
            let read = |line: &str| line.split_once(' ').unwrap().1.to_owned();
            reads.map(read).collect::<Vec<_>>()
        };
        let (here, there) = (log("fathom"), log("fio"));
        assert_eq!((here.len(), &here), (there.len(), &there), "{words}");
    }
}

#[test]
fn directory_names_pipes_and_calls_without_a_job_are_accepted() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let run = |words: &str| {
        let words = format!("fio {words}");
        wait(stage.command(&[], &words, Path::new("")).current_dir(&folder))
    };
    let out =
        run("--name=x --rw=write --size=64k --filename_format=d.$jobnum/f.$filenum --numjobs=2 --minimal");
    assert_eq!(out.code, Some(0), "{out:?}");
    for name in ["d.0/f.0", "d.1/f.0"] {
        assert_eq!(std::fs::metadata(folder.join(name)).unwrap().len(), 64 << 10, "{name}");
    }
    let out = run("--name=x --rw=write --size=64k --directory=none --minimal");
    assert!(out.code == Some(1) && !folder.join("none").exists(), "{out:?}");
    assert_eq!(run("--parse-only").code, Some(0));
    std::fs::write(folder.join("job"), "[a]\nrw=read\nsize=64k\n").unwrap();
    let script = "exec \"$0\" fio --minimal <(cat job)".to_owned();
    let out =
        wait(stage.command(&["bash".into(), "-c".into(), script], "", Path::new("")).current_dir(&folder));
    assert!(out.code == Some(0) && out.stdout.contains(";a;0;0;64;"), "{out:?}");
}

#[test]
fn messages_use_the_options_of_the_typed_tool() {
    let stage = Stage::shared();
    let out = fio(&stage, "--name=x --rw=read --size=1m --direct=1 --bs=1000 --ioengine=psync");
    assert!(out.code == Some(1) && out.stderr.contains("bs"), "{out:?}");
    for flag in ["--engine", "--bs", "--cache", "--limit-bandwidth", "--depth"] {
        assert!(!out.stderr.contains(flag), "{out:?}");
    }
    let out = fio(&stage, "\u{2014}name=x");
    assert!(out.code == Some(1) && out.stderr.contains("type --name=x"), "{out:?}");
    let out = stage.fathom("run \u{2013}-rw", Path::new("randread"));
    check_outcome(&out, 2, &["long dash", "type fathom run", "--rw randread"]);
}
