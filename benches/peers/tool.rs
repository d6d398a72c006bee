//! fathom, fio and the bare loop: for each, the command for the same work, and the same figures of a run.

use crate::bare;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A workload for both tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Names of the engine, in fathom and in fio.
    pub(crate) engines: (&'static str, &'static str),
    /// Pattern of the operations, which both tools call the same.
    pub(crate) rw: &'static str,
    pub(crate) bs: &'static str,
    pub(crate) depth: u32,
    pub(crate) workers: u32,
    /// Operations per call, and completions that a call waits for; `None` for the tool's default.
    pub(crate) batch: Option<u32>,
    pub(crate) direct: bool,
}

impl Work {
    fn writes(self) -> bool {
        self.rw.contains("write")
    }
}

/// The figures of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) iops: f64,
    /// CPU time of the workers per operation in ns, user and kernel together; NaN if unknown.
    pub(crate) cpu_ns: f64,
}

/// A tool, or the bare loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Fathom,
    Fio,
    Bare,
}

/// Settings of a run in addition to its work.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) seconds: u32,
    /// Directory of fathom's sessions.
    pub(crate) sessions: PathBuf,
    /// Whether fio gets huge pages. fathom's buffers use huge pages without an option.
    pub(crate) huge_pages: bool,
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fathom => "fathom",
            Self::Fio => "fio",
            Self::Bare => "bare loop",
        }
    }

    /// Does the work on a target once.
    pub(crate) fn run(self, work: Work, target: Option<&Path>, setting: &Setting) -> Result<Figures, String> {
        match self {
            Self::Fathom => fathom_figures(&json_output(&mut fathom(work, target, setting))?),
            Self::Fio => fio_figures(&json_output(&mut fio(work, target, setting))?),
            Self::Bare => {
                let target = target.ok_or("the bare loop needs a file")?;
                let time = Duration::from_secs(u64::from(setting.seconds));
                let iops = bare::run(target, work.depth, work.batch.unwrap_or(1), time);
                Ok(Figures { iops: iops.map_err(|e| format!("the bare loop: {e}"))?, cpu_ns: f64::NAN })
            }
        }
    }

    /// The command line, for readers who want to repeat a run.
    pub(crate) fn command(self, work: Work, target: Option<&Path>, setting: &Setting) -> String {
        let command = match self {
            Self::Fathom => fathom(work, target, setting),
            Self::Fio => fio(work, target, setting),
            Self::Bare => {
                let batch = work.batch.unwrap_or(1);
                return format!(
                    "(in this program: benches/peers/bare.rs, depth {}, batch {batch})",
                    work.depth
                );
            }
        };
        let words = command.get_args().map(|w| w.to_string_lossy());
        std::iter::once(self.name().into()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn fathom_program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
}

fn fathom(work: Work, target: Option<&Path>, setting: &Setting) -> Command {
    let mut command = fathom_program();
    command.env("XDG_DATA_HOME", &setting.sessions);
    command.args(["run", "--rw", work.rw, "--bs", work.bs, "--warmup", "0", "--runs", "1", "--quiet"]);
    command.args(["--format", "json", "--engine", work.engines.0]);
    command.args(["--depth", &work.depth.to_string(), "--workers", &work.workers.to_string()]);
    command.args(["--time", &format!("{}s", setting.seconds)]);
    if let Some(batch) = work.batch {
        command.args(["--batch", &format!("{batch},{batch}")]);
    }
    if let Some(target) = target {
        command.args(["--cache", if work.direct { "direct" } else { "buffered" }]).arg(target);
        if work.writes() {
            command.arg("--destroy").arg(target);
        }
    }
    command
}

fn fio(work: Work, target: Option<&Path>, setting: &Setting) -> Command {
    let mut command = Command::new("fio");
    command.args(["--name=peer", "--output-format=json", "--group_reporting", "--thread"]);
    command.args([format!("--rw={}", work.rw), format!("--bs={}", work.bs)]);
    command.args(["--norandommap", "--randrepeat=0", "--time_based"]);
    command.args([format!("--runtime={}", setting.seconds), format!("--ioengine={}", work.engines.1)]);
    command.args([format!("--iodepth={}", work.depth), format!("--numjobs={}", work.workers)]);
    if work.engines.1 == "io_uring" {
        command.args(["--fixedbufs", "--registerfiles"]);
    }
    if let Some(batch) = work.batch {
        command.args([
            format!("--iodepth_batch_submit={batch}"),
            format!("--iodepth_batch_complete_min={batch}"),
        ]);
    }
    match target {
        // Without this option fio evicts the file first.
        Some(target) => command.arg("--invalidate=0").arg(format!("--filename={}", target.display())),
        None => command.arg("--size=1g"),
    };
    if work.direct {
        command.arg("--direct=1");
    }
    if setting.huge_pages {
        command.arg("--mem=mmaphuge");
    }
    command
}

/// Runs a tool and returns its output as JSON. Ignores the exit code, because fathom's also reports findings.
fn json_output(command: &mut Command) -> Result<Value, String> {
    let out = command.output().map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    let text = String::from_utf8_lossy(&out.stdout);
    // fio may write warnings before the JSON.
    let json = text.find('{').map_or("", |at| &text[at..]);
    serde_json::from_str(json).map_err(|e| {
        let why = String::from_utf8_lossy(&out.stderr);
        format!("{command:?} gave no JSON ({e}): {}", why.trim())
    })
}

fn number(value: &Value, of: &str) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("{of} is not in the JSON"))
}

fn fathom_figures(json: &Value) -> Result<Figures, String> {
    let result = &json["results"][0];
    let failed = json["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|f| f["id"] == "B12" && f["outcome"] == "finding");
    if failed {
        return Err("operations of fathom failed".into());
    }
    let cost = &result["cost"];
    Ok(Figures {
        iops: number(&result["total"]["iops"], "fathom's rate")?,
        cpu_ns: number(&cost["user_ns"], "fathom's cost")? + number(&cost["system_ns"], "fathom's cost")?,
    })
}

fn fio_figures(json: &Value) -> Result<Figures, String> {
    let job = &json["jobs"][0];
    if job["error"] != 0 {
        return Err(format!("fio ended with error {}", job["error"]));
    }
    let of = |name: &str| number(&job[name], name);
    let kind = &job[if job["write"]["total_ios"] == 0 { "read" } else { "write" }];
    // Percentages of the run time of all threads together.
    let cpu_ns = (of("usr_cpu")? + of("sys_cpu")?) / 100.0 * of("job_runtime")? * 1e6;
    Ok(Figures {
        iops: number(&kind["iops"], "fio's rate")?,
        cpu_ns: cpu_ns / number(&kind["total_ios"], "fio's operations")?.max(1.0),
    })
}
