//! The example workflows: runs their shell steps as a CI server does, and checks exit codes, the summary, and how the baseline passes from one
//! run to the next. The servers' tools (`gh`, `curl`) are scripts that return what the main branch kept.

use crate::stage::{Outcome, Stage, skip, tool, wait};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Four operations in flight on this many servers, each with 100 us.
fn job(servers: u32, fail_if: &str) -> String {
    format!(
        "name = \"mixed\"\nengine = \"sim:servers={servers}\"\ndepth = 4\ntime = \"50ms\"\nwarmup = 0\nruns = 8\nfail-if = \"{fail_if}\"\n"
    )
}

fn example(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci").join(name)).unwrap()
}

/// The shell steps of a workflow, in order: blocks after a line that ends with `|`.
fn steps(workflow: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = workflow.lines().collect();
    let begins = (0..lines.len()).filter(|at| lines[*at].ends_with(" |"));
    let block = |at: usize| {
        let inside = indent(lines[at + 1]);
        let all = lines[at + 1..].iter().take_while(|line| indent(line) >= inside && !line.is_empty());
        all.map(|line| &line[inside..]).collect::<Vec<&str>>().join("\n")
    };
    begins.map(block).collect()
}

/// A checkout with the job, and the tools of the server.
struct Pipeline {
    stage: Stage,
    checkout: PathBuf,
}

impl Pipeline {
    fn new() -> Self {
        let stage = Stage::shared();
        let (checkout, tools) = (stage.folder("checkout"), stage.folder("tools"));
        stage.folder("kept");
        // The last argument is the file to write, or for `gh run download` the directory.
        let scripts = [
            ("gh", "[ \"$2\" = list ] && echo 17 && exit; mkdir -p \"$7\" && cp ../kept/storage.json \"$7\""),
            (
                "curl",
                "while [ $# -gt 1 ]; do [ \"$1\" = --output ] && to=$2; shift; done; cp ../kept/storage.json \"$to\"",
            ),
        ];
        for (name, script) in scripts {
            let path = tools.join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Self { stage, checkout }
    }

    /// Runs a step of the workflow with this job in the checkout.
    fn step(&self, script: &str, job: &str) -> Outcome {
        fs::write(self.checkout.join("storage.toml"), job).unwrap();
        let shell = ["bash", "-e", "-o", "pipefail", "-c", script].map(str::to_owned);
        let mut command = self.stage.command(&shell, "", Path::new(""));
        let program = Path::new(env!("CARGO_BIN_EXE_fathom")).parent().unwrap().display();
        let path = format!("{}:{program}:/usr/bin:/bin", self.stage.path("tools").display());
        command.current_dir(&self.checkout).env("PATH", path).env("JOB", "storage.toml");
        command.env("GITHUB_STEP_SUMMARY", self.stage.path("summary.md"));
        wait(&mut command)
    }

    /// Replaces the artifact of the main branch.
    fn keep(&self) {
        fs::copy(self.checkout.join("storage.json"), self.stage.path("kept/storage.json")).unwrap();
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.checkout.join(file)).unwrap()
    }
}

#[test]
fn github_workflow_measures_stores_and_compares() {
    let pipeline = Pipeline::new();
    let steps = steps(&example("github.yml"));
    let [measure, fetch, compare] = steps.as_slice() else { panic!("{steps:#?}") };
    assert!(steps.iter().all(|step| !step.contains("${{")), "what the server fills in is in the environment");
    let code = |step: &str, job: &str| {
        let out = pipeline.step(step, job);
        assert!(out.stderr.is_empty(), "{out:?}");
        out.code
    };
    let summary = || fs::read_to_string(pipeline.stage.path("summary.md")).unwrap();
    let fast = job(4, "p99>1ms");
    assert_eq!(code(measure, &fast), Some(0));
    assert!(summary().starts_with("**PASS** read p99 of mixed"), "{}", summary());
    pipeline.keep();
    assert_eq!([code(measure, &fast), code(fetch, &fast), code(compare, &fast)], [Some(0); 3]);
    assert!(summary().contains("\n**PASS** Not slower by more than 5.0 %"), "{}", summary());
    // Half the rate: the job's own condition still holds, but the comparison fails.
    let slow = job(2, "p99>1ms");
    assert_eq!([code(measure, &slow), code(fetch, &slow), code(compare, &slow)], [Some(0), Some(0), Some(1)]);
    assert!(summary().contains("\n**FAIL** Slower by more than 5.0 %"), "{}", summary());
    assert_eq!(code(measure, &job(4, "p99>10us")), Some(1));
}

#[test]
fn in_the_guide_compare_decides_even_if_the_measurement_has_exit_code_1() {
    let pipeline = Pipeline::new();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/ci.md");
    let guide = fs::read_to_string(guide).unwrap();
    let step = guide.split("```sh\n").find_map(|block| block.strip_prefix("set -e\n")).unwrap();
    let step = step.split("```").next().unwrap().replace("job.toml", "storage.toml");
    let baseline = pipeline.step("fathom run storage.toml --quiet -o baseline.json", &job(4, "p99>1ms"));
    assert_eq!(baseline.code, Some(0), "{baseline:?}");
    // The condition of the job fails: `run` has exit code 1, and `compare` passes.
    let out = pipeline.step(&step, &job(4, "p99>10us"));
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.contains("FAIL ") && out.stdout.contains("PASS  Not slower"), "{out:?}");
    let slower = pipeline.step(&step, &job(2, "p99>1ms"));
    assert!(slower.code == Some(1) && slower.stdout.contains("FAIL  Slower"), "{slower:?}");
    // A wrong job file stops the step before `compare`.
    let wrong = pipeline.step(&step, "depth = \"no number\"\n");
    assert!(wrong.code == Some(1) && wrong.stdout.is_empty(), "{wrong:?}");
}

#[test]
fn gitlab_workflow_measures_stores_and_compares() {
    let pipeline = Pipeline::new();
    let steps = steps(&example("gitlab.yml"));
    let [measure, compare] = steps.as_slice() else { panic!("{steps:#?}") };
    let (fast, slow) = (job(4, "p99>1ms"), job(2, "p99>1ms"));
    assert_eq!(pipeline.step(measure, &fast).code, Some(0));
    assert!(pipeline.text("storage.md").starts_with("**PASS** "), "{}", pipeline.text("storage.md"));
    pipeline.keep();
    for (job, code, word) in [(&fast, 0, "PASS"), (&slow, 1, "FAIL")] {
        assert_eq!(pipeline.step(measure, job).code, Some(0));
        let out = pipeline.step(compare, job);
        assert!(out.code == Some(code) && out.stdout.starts_with(&format!("**{word}** ")), "{out:?}");
        assert_eq!(out.stdout, pipeline.text("compare.md"));
    }
}

#[test]
fn workflows_share_one_job() {
    let stage = Stage::shared();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci/storage.toml");
    let out = stage.fathom(&format!("run {} --explain", file.display()), &stage.folder("place"));
    assert!(out.code == Some(0) && out.stdout.contains("read.p99>50ms"), "{out:?}");
}

#[test]
fn benchmark_service_filters_use_stable_names() {
    if tool(&[&"jq", &"--version"]).is_err() {
        return skip("jq is not installed");
    }
    let stage = Stage::shared();
    let report = stage.path("storage.json");
    let run = "run --engine sim --rw randrw --mix 70 --depth 4 --time 100ms --warmup 0 --runs 3 --quiet -o";
    let out = stage.fathom(&format!("{run} {}", report.display()), Path::new(""));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci");
    let filtered = |filter: &str, report: &Path| -> Value {
        serde_json::from_str(&tool(&[&"jq", &"-f", &folder.join(filter), &report]).unwrap()).unwrap()
    };
    let text = fs::read_to_string(&report).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let result = &value["results"][0];
    let (name, read) = (result["name"].as_str().unwrap(), &result["read"]);
    let p99 = read["latency_ns"]["percentiles"]["99"].as_f64().unwrap();

    // jq prints 100 instead of 100.0, so compare numbers by value.
    let same = |a: &Value, b: &Value| a.is_number() && a.as_f64() == b.as_f64();
    let bencher = filtered("bencher.jq", &report);
    let measures = &bencher[format!("{name} read")];
    assert!(same(&measures["throughput"]["value"], &read["iops"]), "{bencher:#}");
    assert!(same(&measures["throughput"]["upper_value"], &read["iops_interval"][1]), "{bencher:#}");
    assert_eq!(measures["latency-p99"]["value"].as_f64(), Some(p99));
    assert!(same(&bencher[format!("{name} write")]["throughput"]["value"], &result["write"]["iops"]));

    let rates = filtered("bigger_is_better.jq", &report);
    let rate = rates.as_array().unwrap().iter().find(|rate| rate["name"] == format!("{name} read IOPS"));
    assert!(same(&rate.unwrap()["value"], &read["iops"]), "{rates:#}");
    let latencies = filtered("smaller_is_better.jq", &report);
    let times = latencies.as_array().unwrap();
    let time = times.iter().find(|time| time["name"] == format!("{name} read p99")).unwrap();
    assert_eq!(
        (time["unit"].as_str(), time["value"].as_f64()),
        (Some("us"), Some(p99 / 1000.0)),
        "{latencies:#}"
    );

    // If a name already ends with the direction, the direction is not added again. A result that a finding invalidates is not plotted.
    let mut bent = value.clone();
    bent["results"][0]["name"] = "a read".into();
    let bent_file = stage.path("bent.json");
    fs::write(&bent_file, bent.to_string()).unwrap();
    assert!(filtered("bencher.jq", &bent_file)["a read"].is_object());
    bent["results"][0]["void"] = true.into();
    fs::write(&bent_file, bent.to_string()).unwrap();
    assert_eq!(filtered("bencher.jq", &bent_file), json!({}));
    assert_eq!(filtered("bigger_is_better.jq", &bent_file), json!([]));
    assert_eq!(filtered("smaller_is_better.jq", &bent_file), json!([]));
}
