//! `fathom run`: its flags.

use super::common::{FleetArgs, LiveArgs, Measuring, ShowingArgs, TypedKey};
use super::gates::{InconclusiveArgs, SlowerArgs};
use super::headings::{OUTPUT, WHAT};
use super::job_file;
use super::target;
use crate::capture_file::is_capture;
use crate::failure::Failure;
use crate::input::{self, Small};
use crate::request::{JobSource, Request, Work};
use crate::show::Showing;
use crate::stderr;
use dialect::{Language, MAX_FILE_BYTES, Tool};
use model::name;
use model::spec::JobSpec;
use model::spec::keys::{self, Command};
use std::path::{Path, PathBuf};

/// Measure one workload, from flags or from a job file, or replay a capture.
///
/// Every flag is also a key of a job file, without its dashes. A job file (fathom's own in TOML, or one of fio, DISKSPD or
/// Iometer) is given as a TARGET and recognised by its content, or by .toml, .fio, .xml or .icf at its end; with it, only --runs, --precision, --until, --settle,
/// --max-runs, --attempts, --fail-if, --seed, --precondition and, for a job of one phase, --time may describe the workload.
///
/// A file that `fathom capture` wrote is told by its content too: its requests are submitted again to the TARGET, and the report compares
/// both. A directory gets a test file of what they touch.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directories, files or block devices, and at most one job file or capture [default: the current directory]
    #[arg(value_name = "TARGET", value_parser = target::parser())]
    targets: Vec<PathBuf>,
    /// Repeat the workloads of an earlier session, alternating with these, and compare: its file, its id or a part of that, or
    /// `last`
    #[arg(long, value_name = "SESSION", help_heading = WHAT)]
    against: Option<String>,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Under mpirun: measure with the first N hosts, for several N (`1,2,4`), and show how much each further host adds
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = WHAT)]
    hosts: Vec<u32>,
    /// Print what would be measured, with the origin of every setting, and stop
    #[arg(long, help_heading = OUTPUT)]
    explain: bool,
    #[command(flatten)]
    slower: SlowerArgs,
    #[command(flatten)]
    inconclusive: InconclusiveArgs,
    #[command(flatten)]
    showing: ShowingArgs,
    #[command(flatten)]
    live: LiveArgs,
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// A usage failure that names the flag, or the place in the job file.
    pub fn request(self) -> Result<(Request, Showing), Failure> {
        let (captures, others): (Vec<PathBuf>, Vec<PathBuf>) =
            self.targets.iter().cloned().partition(|t| is_capture(t));
        if !captures.is_empty() {
            return self.replay(captures, others);
        }
        let (files, targets): (Vec<PathBuf>, Vec<PathBuf>) =
            others.into_iter().partition(|t| language(t).is_some());
        if let [first, second, ..] = files.as_slice() {
            return Err(Failure::Usage(format!(
                "{} and {} are two job files; type one",
                first.display(),
                second.display()
            )));
        }
        let said = self.measuring.typed_keys().to_vec();
        let mut request = self.measuring.request(Work::Job, targets);
        request.against = self.against;
        request.ranks_per_host = self.fleet.ranks_per_host;
        request.hosts = steps(self.hosts)?;
        request.fail_if_slower = self.slower.slower();
        let file = files.into_iter().find_map(|file| Some((language(&file)?, file)));
        if let Some((language, file)) = file {
            let job = read(&file, language)?;
            for remark in &job.remarks {
                stderr::say(&format!("fathom: {}: {remark}", file.display()));
            }
            job_file::take(&mut request, &said, JobSource::File(file), job)?;
        } else {
            let problems =
                request.job.check().into_iter().chain(request.job.check_targets(request.targets.len()));
            if let Some(problem) = problems.into_iter().next() {
                return Err(Failure::Usage(problem.in_flags()));
            }
        }
        Ok((request, self.live.with(self.showing.gated(self.explain, &self.inconclusive)?)))
    }

    /// What was said of a capture.
    fn replay(self, captures: Vec<PathBuf>, targets: Vec<PathBuf>) -> Result<(Request, Showing), Failure> {
        if !self.hosts.is_empty() {
            return Err(Failure::Usage("--hosts: a capture is replayed on one host; leave it out".into()));
        }
        let [file] = <[PathBuf; 1]>::try_from(captures).map_err(|_| {
            Failure::Usage("several captures are replayed one after another; name one".into())
        })?;
        if let Some(job) = targets.iter().find(|target| language(target).is_some()) {
            return Err(Failure::Usage(format!(
                "{} is a job file and {} a capture; type one of them",
                name::shown(job),
                name::shown(&file)
            )));
        }
        let not_its: Option<&TypedKey> =
            self.measuring.typed_keys().iter().find(|s| !s.key.taken.contains(&Command::RunCapture));
        if let Some(said) = not_its {
            let allowed: Vec<String> =
                keys::taken_by(Command::RunCapture).map(|key| format!("--{}", key.name)).collect();
            return Err(Failure::Usage(format!(
                "--{} cannot be combined with the capture {}, which is the workload (flags that may be combined with it: {})",
                said.key.name,
                name::shown(&file),
                allowed.join(", ")
            )));
        }
        let mut request = self.measuring.request(Work::Job, targets);
        for stream in request.job.phases.iter_mut().flat_map(|phase| &mut phase.streams) {
            stream.replay.get_or_insert_default().file = name::text(&file);
        }
        if let Some(problem) = request.job.check().into_iter().next() {
            return Err(Failure::Usage(problem.in_flags()));
        }
        request.source = Some(JobSource::File(file));
        request.against = self.against;
        request.ranks_per_host = self.fleet.ranks_per_host;
        request.fail_if_slower = self.slower.slower();
        Ok((request, self.live.with(self.showing.gated(self.explain, &self.inconclusive)?)))
    }
}

/// Numbers of hosts that were typed, which grow.
fn steps(hosts: Vec<u32>) -> Result<Vec<u32>, Failure> {
    if hosts.len() == 1 || !hosts.is_sorted_by(|a, b| a < b) {
        return Err(Failure::Usage(
            "--hosts: type two numbers of hosts or more, each larger than the one before it, such as --hosts 1,2,4".into(),
        ));
    }
    Ok(hosts)
}

/// The language of a TARGET that is a job file: told by what stands in it, or by its name where that is no more than a text.
fn language(path: &Path) -> Option<&'static Language> {
    let named = dialect::of_name(path);
    match input::small(path, MAX_FILE_BYTES as u64) {
        Small::Read(content) => match dialect::what_language(&content) {
            Some(tool) => dialect::of_tool(tool),
            None => named.filter(|_| !content.contains(&0)),
        },
        // One of ours that is too large is told so, and whoever names one that is not there hears that.
        Small::Large => named.filter(|language| language.tool == Tool::Fathom),
        Small::Unread => named,
        Small::NoFile => None,
    }
}

/// What a job file says.
fn read(path: &Path, language: &Language) -> Result<JobSpec, Failure> {
    let text = job_file::text(path)?;
    (language.parse)(&path.display().to_string(), &text, &crate::plan::problems)
        .map_err(|trouble| job_file::pointed(&trouble))
}

#[test]
fn help_names_what_may_stand_beside_a_job_file() {
    let help = <Args as clap::Args>::augment_args(clap::Command::new("run"));
    let help = help.get_long_about().map(ToString::to_string).unwrap_or_default();
    for key in keys::taken_by(Command::RunFile) {
        assert!(help.contains(&format!("--{}", key.name)), "{}", key.name);
    }
}
