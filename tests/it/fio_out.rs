//! fio's output formats: keys, types, columns and lines, compared with fio's output and read by fio's parsers.

use crate::stage::{Outcome, Stage, skip, tool};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Keys with depths, which fathom leaves out, as described in `docs/reference/formats.md`.
const LEFT_OUT: [&str; 2] = ["iodepth_level", "iodepth_complete"];
/// Number of empty fields with depths in a terse line of version 3.
const EMPTY: usize = 7;

/// Lines missing from the text output: the depths, and the submission latency, which fathom does not measure separately.
const MISSING: [&str; 3] = ["IO depths", "complete", "slat"];
/// The units of a figure in the text.
const UNITS: [&str; 14] =
    ["k", "K", "M", "B", "s", "KiB", "MiB", "GiB", "kB", "MB", "GB", "nsec", "usec", "msec"];

/// The output of fio for the job of [`measured`], in a format. Skips the comparison and returns `None` if fio does not run here.
fn fio(stage: &Stage, words: &str) -> Option<String> {
    let dir = stage.folder("by-fio");
    let file = format!("--filename={}", dir.join("f").display());
    let work = "--rw=randrw --rwmixread=70 --bs=4k --size=1m --iodepth=8 --ioengine=libaio --fsync=8";
    let words: Vec<&str> =
        ["fio", "--name=work", &file].into_iter().chain(work.split(' ')).chain(words.split(' ')).collect();
    let all: Vec<&dyn AsRef<std::ffi::OsStr>> =
        words.iter().map(|w| w as &dyn AsRef<std::ffi::OsStr>).collect();
    tool(&all).map_err(|why| skip(&format!("fio does not run here: {why}"))).ok()
}

/// Measures the same job with fathom on a disk. Returns its report in a format.
fn measured(stage: &Stage) -> Outcome {
    let words = "run --rw randrw --mix 70 --bs 4k --size 16m --depth 8 --fsync 8 --engine libaio --time 1200ms --warmup 0 \
                 --runs 1 --attempts 1 --quiet --format fio-json+";
    stage.fathom(words, &stage.folder("here"))
}

fn shown(stage: &Stage, format: &str) -> String {
    stage.fathom(&format!("show last --format {format}"), Path::new("")).stdout
}

fn kept(stage: &Stage, name: &str, text: &str) -> PathBuf {
    let path = stage.path(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The JSON types that a typed parser distinguishes.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Every key of fio is among ours, with the same type. Keys that are numbers or options match any.
fn covers(path: &str, theirs: &Value, ours: &Value, wrong: &mut Vec<String>) {
    if kind(theirs) != kind(ours) {
        wrong.push(format!("{path}: fio has {}, and here is {}", kind(theirs), kind(ours)));
    }
    match (theirs, ours) {
        (Value::Object(_), Value::Object(ours))
            if path.ends_with("job options") || path.ends_with("bins") =>
        {
            let kinds: Vec<&str> = ours.values().map(kind).collect();
            let wanted = if path.ends_with("bins") { "int" } else { "string" };
            if kinds.is_empty() || kinds.iter().any(|k| *k != wanted) {
                wrong.push(format!("{path}: {kinds:?}"));
            }
        }
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str())) {
                match ours.get(key) {
                    Some(own) => covers(&format!("{path}/{key}"), value, own, wrong),
                    None => wrong.push(format!("{path}/{key} is not there")),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => match (theirs.first(), ours.first()) {
            (Some(value), Some(own)) => covers(&format!("{path}/0"), value, own, wrong),
            (Some(_), None) => wrong.push(format!("{path} is empty")),
            (None, _) => {}
        },
        _ => {}
    }
}

#[test]
fn json_has_every_key_of_fio_with_its_type() {
    let stage = Stage::shared();
    let Some(theirs) = fio(&stage, "--output-format=json+") else { return };
    let out = measured(&stage);
    let (theirs, ours): (Value, Value) =
        (serde_json::from_str(&theirs).unwrap(), serde_json::from_str(&out.stdout).unwrap());
    let mut wrong = Vec::new();
    covers("", &theirs, &ours, &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", out.stdout);
    // Also check that the figures agree with each other.
    let job = &ours["jobs"][0];
    assert!(LEFT_OUT.iter().all(|key| job.get(key).is_none()), "the list is too long");
    for direction in ["read", "write"] {
        let of = &job[direction];
        let number = |key: &str| of[key].as_f64().unwrap();
        let ops = of["total_ios"].as_u64().filter(|ops| *ops > 0);
        assert!(ops.is_some() && ops.map(|ops| 4096 * ops) == of["io_bytes"].as_u64(), "{of}");
        let rate = 1000.0 * number("io_bytes") / number("runtime");
        assert!((number("bw_bytes") / rate - 1.0).abs() < 0.01, "{of}");
        let bins: u64 = of["clat_ns"]["bins"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(Some(bins), of["clat_ns"]["N"].as_u64());
        assert!(of["bw_samples"].as_u64() >= Some(1), "{of}");
    }
    let shares = ["latency_ns", "latency_us", "latency_ms"].map(|unit| job[unit].as_object().unwrap());
    let sum: f64 = shares.iter().flat_map(|s| s.values()).filter_map(Value::as_f64).sum();
    assert!((sum - 100.0).abs() < 0.5, "{sum}");
    assert_eq!(ours["fathom"]["verdict"], job["fathom"]["verdict"]);
    assert!(out.stdout.contains("\"iops\" : "), "as text tools look for it");
}

/// The text between two semicolons, as far as a parser by position depends on it.
fn shape(field: &str) -> String {
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    match field.split_once('=') {
        Some((rank, value)) if digits(value) => format!("{rank}=N"),
        _ if field.is_empty() => String::new(),
        _ if digits(field) => "N".into(),
        _ if field.ends_with('%') && field.trim_end_matches('%').parse::<f64>().is_ok() => "N%".into(),
        _ if field.parse::<f64>().is_ok() => "N.N".into(),
        _ => "word".into(),
    }
}

#[test]
fn terse_output_has_the_columns_of_fio_in_each_version() {
    let stage = Stage::shared();
    if fio(&stage, "--output-format=terse").is_none() {
        return;
    }
    measured(&stage);
    for (version, format) in [(2, "fio-terse-2"), (3, "fio-terse"), (4, "fio-terse-4"), (5, "fio-terse-5")] {
        let theirs = fio(&stage, &format!("--output-format=terse --terse-version={version}")).unwrap();
        let ours = shown(&stage, format);
        let of = |text: &str| text.trim_end().split(';').map(shape).collect::<Vec<_>>();
        let (theirs, ours) = (of(theirs.lines().last().unwrap()), of(&ours));
        assert_eq!(theirs.len(), ours.len(), "version {version}: {theirs:?}\n{ours:?}");
        let differ = theirs.iter().zip(&ours).filter(|(a, b)| a != b);
        let (empty, other): (Vec<_>, Vec<_>) = differ.partition(|(_, b)| b.is_empty());
        assert_eq!((empty.len(), other), (EMPTY, Vec::new()), "version {version}");
    }
}

#[test]
fn text_lines_match_fio() {
    let stage = Stage::shared();
    let Some(theirs) = fio(&stage, "--output-format=normal --time_based --runtime=1200ms") else { return };
    measured(&stage);
    let ours = shown(&stage, "fio");
    // The words of a line, without figures and units. The unit of a figure depends on its size.
    let bare = |line: &str| -> String {
        let words =
            line.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty() && !UNITS.contains(w));
        words.collect::<Vec<_>>().join(" ")
    };
    let lines = |text: &str| {
        text.lines().skip_while(|l| !l.contains("groupid=")).skip(1).map(bare).collect::<Vec<_>>()
    };
    let (ours_bare, theirs) = (lines(&ours), lines(&theirs));
    let known = theirs.iter().filter(|line| !MISSING.iter().any(|word| line.starts_with(word)));
    for line in known.clone() {
        assert!(ours_bare.contains(line), "'{line}' is not in\n{ours}");
    }
    assert!(known.count() > 25, "{theirs:#?}");
    assert!(ours.trim_end().lines().any(|line| line.starts_with("fathom: ")), "{ours}");
}

/// The expressions with which widely used programs parse fio's output.
const READERS: &str = include_str!("fio_readers.py");

#[test]
fn parsers_of_fio_read_our_output() {
    let stage = Stage::shared();
    let out = measured(&stage);
    let files = [("json", out.stdout), ("text", shown(&stage, "fio")), ("terse", shown(&stage, "fio-terse"))];
    let [json, text, terse] = files.map(|(name, content)| kept(&stage, name, &content));
    if let Err(why) = tool(&[&"python3", &"--version"]) {
        return skip(&format!("there is no Python: {why}"));
    }
    let script = kept(&stage, "readers.py", READERS);
    let read = tool(&[&"python3", &script, &json, &text, &terse]);
    assert_eq!(read.as_deref().map(str::trim), Ok("all read"));
    if tool(&[&"fio_jsonplus_clat2csv", &"--help"]).is_err() {
        return skip("there is no fio_jsonplus_clat2csv");
    }
    let csv = stage.path("latencies.csv");
    tool(&[&"fio_jsonplus_clat2csv", &json, &csv]).unwrap();
    let printed = tool(&[&"fio_jsonplus_clat2csv", &"--validate", &json, &csv]).unwrap();
    assert!(printed.contains("latencies_job0.csv validated"), "{printed}");
}

#[test]
fn output_files_use_the_requested_format_and_keep_verdicts() {
    let stage = Stage::shared();
    let file = stage.path("out.json");
    let words = format!(
        "run --engine sim --depth 4 --time 20ms --warmup 0 --runs 2 --quiet --format fio-json -o {}",
        file.display()
    );
    let out = stage.fathom(&words, Path::new(""));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), out.stdout, "{out:?}");
    let ours: Value = serde_json::from_str(&out.stdout).unwrap();
    let job = &ours["jobs"][0];
    assert_eq!((job["groupid"].as_u64(), job["error"].as_i64()), (Some(0), Some(0)));
    assert_eq!(job["fathom"]["true_name"].as_str().map(str::is_empty), Some(false));
    assert!(ours.get("disk_util").is_none(), "there is no disk");
    assert_eq!(job["write"]["clat_ns"]["N"], 0);
    assert!(job["write"]["clat_ns"].get("percentile").is_none());
    // Two runs appear as one job of twice the time.
    let read = &job["read"];
    assert_eq!(read["runtime"], 40);
    let refused = stage.fathom("list --format fio-json", Path::new(""));
    assert!(refused.code == Some(2) && refused.stderr.contains("fio-json"), "{refused:?}");
}

/// Jobs whose counts are exact, because they end after a number of operations; some of them are in groups.
const GROUPED: &str = "[global]\nioengine=null\nsize=1m\nblocksize=4k\n[a]\nrw=read\niodepth=4\ngroup_reporting\n[b]\nrw=write\nbs=8k\n\
                       numjobs=2\ngroup_reporting=1\n[c]\nnew_group\nrw=trim\n[d]\nstonewall\nrw=randrw\nunified_rw_reporting=1\nbs=16k\n\
                       [e]\nstonewall\nrw=write\nunified_rw_reporting=both\n";

/// The part that must be equal: names, groups, options, and operations per direction.
fn comparable_parts(json: &str) -> Vec<Value> {
    let json: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {json}"));
    let job = |job: &Value| {
        let mut reported = serde_json::json!({ "global": json["global options"] });
        for key in ["jobname", "groupid", "error", "job options", "latency_depth"] {
            reported[key] = job[key].clone();
        }
        for key in ["read", "write", "trim", "mixed"].into_iter().filter(|key| job.get(key).is_some()) {
            reported[key] =
                serde_json::json!([job[key]["total_ios"], job[key]["io_bytes"], job[key]["clat_ns"]["N"]]);
        }
        reported
    };
    json["jobs"].as_array().unwrap().iter().map(job).collect()
}

#[test]
fn groups_and_options_are_reported_as_in_fio() {
    let stage = Stage::shared();
    let file = kept(&stage, "grouped.fio", GROUPED);
    let theirs = match tool(&[&"fio", &"--output-format=json", &file]) {
        Ok(theirs) => theirs,
        Err(why) => return skip(&format!("fio does not run here: {why}")),
    };
    let ours = stage.fathom("fio --output-format=json,normal,terse", &file);
    assert_eq!(ours.code, Some(0), "{ours:?}");
    let (begin, end) = (ours.stdout.find('{').unwrap(), ours.stdout.rfind("\n}\n").unwrap() + 3);
    let json = &ours.stdout[begin..end];
    let (ours_told, theirs) = (comparable_parts(json), comparable_parts(&theirs));
    assert_eq!(ours_told.len(), 4, "{ours_told:#?}");
    for (ours, theirs) in ours_told.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours_told.len(), theirs.len());
    // The text and the terse output show the same groups: a group has all its threads, and a mix has its own line.
    let lines: Vec<&str> = ours.stdout.lines().collect();
    assert!(lines.iter().any(|line| line.starts_with("a: (groupid=0, jobs=3): err= 0")), "{}", ours.stdout);
    assert!(lines.iter().any(|line| line.starts_with("  MIXED: bw=")), "{}", ours.stdout);
    let terse: Vec<usize> =
        lines.iter().filter(|line| line.starts_with("3;")).map(|line| line.split(';').count()).collect();
    assert_eq!(terse, [121, 121, 80, 162], "{}", ours.stdout);
    // The session keeps groups and options.
    let again = comparable_parts(&shown(&stage, "fio-json"));
    assert_eq!(again, ours_told);
}
