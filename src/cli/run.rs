//! `fathom run`: its flags.

use super::common::{Measuring, Said, ShowingArgs};
use crate::failure::Failure;
use crate::input;
use crate::request::{Request, Work};
use crate::show::Showing;
use dialect::{Language, MAX_FILE_BYTES};
use model::spec::JobSpec;
use model::spec::keys::{self, Command, Set};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Measure one workload, from flags or from a job file.
///
/// Every flag is also a key of a job file, without its dashes. A job file is a TARGET that ends in .toml; beside it only
/// --runs, --precision, --until, --max-runs, --attempts, --seed, --precondition and, where it has one phase, --time say something about the workload.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directories, files or block devices, and at most one job file [default: the current directory]
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Print what would be measured, with the origin of every setting, and stop
    #[arg(long)]
    explain: bool,
    /// Measure the workloads of an earlier session again beside these, in turns, and compare: its file, its id or a part of that, or
    /// `last`
    #[arg(long, value_name = "SESSION", help_heading = "Measuring")]
    against: Option<String>,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    showing: ShowingArgs,
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// A usage failure that names the flag, or the place in the job file.
    pub fn request(self) -> Result<(Request, Showing), Failure> {
        let (files, targets): (Vec<PathBuf>, Vec<PathBuf>) =
            self.targets.into_iter().partition(|t| language(t).is_some());
        if let [first, second, ..] = files.as_slice() {
            return Err(Failure::Usage(format!(
                "{} and {} are two job files; type one",
                first.display(),
                second.display()
            )));
        }
        let said = self.measuring.said().to_vec();
        let mut request = self.measuring.request(Work::Job, targets, files.into_iter().next());
        request.against = self.against;
        if let Some((file, language)) = request.file.as_ref().and_then(|file| Some((file, language(file)?))) {
            let mut job = read(file, language)?;
            overrule(&mut job, &said, file)?;
            targets_are_used(&job, &request.targets, file)?;
            request.job = job;
        }
        // What a file says was checked where its lines are known; this is what the command line says or adds.
        let problems =
            request.job.check().into_iter().chain(request.job.check_targets(request.targets.len()));
        if let Some(problem) = problems.into_iter().next() {
            return Err(Failure::Usage(match &request.file {
                Some(file) => format!("{}: {}", file.display(), problem.in_toml()),
                None => problem.in_flags(),
            }));
        }
        Ok((request, self.showing.showing(self.explain)?))
    }
}

/// The language of a TARGET that is a job file: its name ends as those of a language do, and it is no directory or device.
fn language(path: &Path) -> Option<&'static Language> {
    dialect::of_name(path).filter(|_| std::fs::metadata(path).map_or(true, |facts| facts.is_file()))
}

fn read(path: &Path, language: &Language) -> Result<JobSpec, Failure> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    // One byte more than it may have is enough to know that it has too many.
    let most = MAX_FILE_BYTES as u64 + 1;
    input::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Failure::Usage(format!(
            "{name} does not exist, and its name is that of a job file; type the path of one, or a target's"
        )),
        _ => Failure::Refused(format!("{name} cannot be read: {e}")),
    })?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let line = e.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1;
        Failure::Usage(format!("{name} is no text from line {line} on; write it in UTF-8"))
    })?;
    (language.parse)(&name, &text, &crate::plan::problems)
        .map_err(|trouble| Failure::Pointed { plain: trouble.to_string(), coloured: trouble.coloured() })
}

/// Puts what the command line says into the job of a file, or says why it cannot stand beside it.
fn overrule(job: &mut JobSpec, said: &[Said], file: &Path) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::Usage(why));
    for Said { key, values } in said {
        let name = key.name;
        if !key.taken.contains(&Command::RunFile) {
            let allowed: Vec<String> =
                keys::taken_by(Command::RunFile).map(|key| format!("--{}", key.name)).collect();
            return refuse(format!(
                "--{name} stands beside the job file {}, which says the workload; write {name} into it (beside it go {})",
                file.display(),
                allowed.join(", ")
            ));
        }
        if matches!(key.set, Set::Phase(_)) && job.phases.len() > 1 {
            return refuse(format!(
                "--{name} stands beside {}, which has {} phases; write {name} into each of them",
                file.display(),
                job.phases.len()
            ));
        }
        key.say(job, values.iter().map(String::as_str)).or_else(|why| refuse(format!("--{name}: {why}")))?;
    }
    Ok(())
}

/// Refuses a target that no stream uses.
fn targets_are_used(job: &JobSpec, targets: &[PathBuf], file: &Path) -> Result<(), Failure> {
    let mut streams = job.phases.iter().flat_map(|p| &p.streams);
    match targets.first() {
        Some(target) if streams.all(|stream| !stream.target.is_empty()) => Err(Failure::Usage(format!(
            "{} changes nothing here: every stream of {} names its own target; leave one of them out",
            target.display(),
            file.display()
        ))),
        _ => Ok(()),
    }
}

#[test]
fn help_names_what_may_stand_beside_a_job_file() {
    let help = <Args as clap::Args>::augment_args(clap::Command::new("run"));
    let help = help.get_long_about().map(ToString::to_string).unwrap_or_default();
    for key in keys::taken_by(Command::RunFile) {
        assert!(help.contains(&format!("--{}", key.name)), "{}", key.name);
    }
}
