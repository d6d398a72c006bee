//! Jobs that end by how they go: steady state, least rates and arrivals that wait for nobody, under fio and under fathom.
//!
//! For: when they end, what is said of it, and exit codes. Not for: the rules, which have unit tests.

use crate::fio::fio;
use crate::output::says;
use crate::stage::{Outcome, Stage, skip, tool, wait};
use serde_json::Value;
use std::path::Path;

/// Under fio itself.
fn real(words: &str) -> Outcome {
    wait(std::process::Command::new("fio").args(words.split_whitespace()))
}

fn job(out: &Outcome) -> Value {
    let text = out.stdout.find('{').map_or("", |at| &out.stdout[at..]);
    let json: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    json["jobs"][0].clone()
}

#[test]
fn a_job_ends_as_soon_as_it_is_steady_as_under_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::beside_others();
    let words = "--name=s --ioengine=null --size=1g --rw=randread --bs=4k --rate_iops=1000 --time_based --runtime=30 --ss=iops:20% \
                 --ss_dur=3 --ss_ramp=1 --output-format=json";
    for (who, out) in [("fathom", fio(&stage, words)), ("fio", real(words))] {
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
    let never = words.replace("20%", "0.0000001%").replace("--runtime=30", "--runtime=5");
    let steady = job(&fio(&stage, &never))["steadystate"].clone();
    assert_eq!(steady["attained"], 0, "{steady:#}");
    let text = fio(&stage, &never.replace("--output-format=json", ""));
    assert!(text.stdout.contains("  steadystate  : attained=no, bw="), "{text:?}");
}

#[test]
fn what_is_slower_than_it_must_be_ends_with_an_error_as_under_fio() {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        return skip(&why);
    }
    let stage = Stage::beside_others();
    let words = |least: u32| {
        format!(
            "--name=s --ioengine=null --size=1g --rw=randrw --bs=4k --rate_iops=500,500 --rate_iops_min=0,{least} --time_based --runtime=5 \
             --output-format=json"
        )
    };
    for (who, out) in [("fathom", fio(&stage, &words(800))), ("fio", real(&words(800)))] {
        assert_eq!(out.code, Some(1), "{who}: {out:?}");
        let job = job(&out);
        assert_ne!(job["error"], 0, "{who}: {job:#}");
        assert!(job["write"]["runtime"].as_u64().is_some_and(|ms| ms < 4900), "{who}: {job:#}");
    }
    assert_eq!(fio(&stage, &words(100)).code, Some(0), "fast enough");
}

#[test]
fn a_stream_of_ours_ends_so_too_and_says_what_became_of_it() {
    let stage = Stage::beside_others();
    let run = "run --engine sim --limit-iops 1000 --runs 1 --warmup 0 --quiet --format json";
    let steady = stage.fathom(&format!("{run} --time 30s --steady-state iops:30%:2s"), Path::new(""));
    let report = steady.report().0;
    let ns = report["results"][0]["runs"][0]["window_ns"].as_u64().unwrap_or_else(|| panic!("{report:#}"));
    assert!((1_900_000_000..15_000_000_000).contains(&ns), "{ns}");
    let never = stage.fathom(&format!("{run} --time 3s --steady-state iops:0.0001%:2s"), Path::new(""));
    assert!(never.stdout.contains("did not become steady (--steady-state iops:0.0001%:2s)"), "{never:?}");
    let short = stage.fathom(&format!("{run} --time 1s --steady-state lat:10%:2s"), Path::new(""));
    assert!(short.stdout.contains("ended before there were 2.00 s by which it could be steady"), "{short:?}");
    let slow = stage.fathom(&format!("{run} --time 8s --min-rate iops:2000"), Path::new(""));
    assert!(slow.stdout.contains("where at least 2000 IOPS was asked for (--min-rate)"), "{slow:?}");
    assert_ne!(slow.code, Some(0), "{slow:?}");
    says(&stage.fathom("run --engine sim --min-rate lat:1ms", Path::new("")), 2, &["iops:1000, bw:10m"]);
    says(&stage.fathom("run --engine sim --steady-state iops:10%", Path::new("")), 2, &["iops:10%:60s"]);
}
