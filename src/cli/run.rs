//! `fathom run`: its flags.
//!
//! Also reads job files in any language (crate `dialect` parses them), and applies flags to the
//! jobs in them. `fathom recipe` and the commands of other tools use this too.

use crate::capture::capture_file::is_capture;
use crate::cli::shared_flags::{
    FleetArgs, Measuring, ReportArgs, SlowerArgs, TypedKey, WHAT, check_job, target_parser,
};
use crate::failure::Failure;
use crate::files::Small;
use crate::request::{JobSource, Request, Work};
use crate::show::Showing;
use crate::{files, stderr};
use dialect::{Language, MAX_FILE_BYTES, Tool, Trouble};
use model::name;
use model::spec::JobSpec;
use model::spec::keys::{self, Command, Set};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Measure one workload, from flags or from a job file, or replay a capture.
///
/// Every flag of the workload, without its dashes, is also a key of a job file. A job file (TOML,
/// or one of fio, DISKSPD or Iometer) is typed as a TARGET and recognised by its content, or by its
/// extension .toml, .fio, .xml or .icf. Of the workload's flags, only --runs, --precision, --until,
/// --settle, --max-runs, --attempts, --fail-if, --seed, --precondition and, for a job of one phase,
/// --time can be combined with a job file.
///
/// A capture from `fathom capture` is typed as a TARGET too: its requests are submitted again to the other TARGET, and the report compares
/// both loads. In a directory, fathom makes a test file for them.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directories, files or block devices, and at most one job file or capture [default: the current directory]
    #[arg(value_name = "TARGET", value_parser = target_parser())]
    targets: Vec<PathBuf>,
    /// Repeat the workloads of an earlier session, in turns with the new ones, and compare. SESSION
    /// is its file, its id or a part of its id, a tag, or `last`
    #[arg(long, value_name = "SESSION", help_heading = WHAT)]
    against: Option<String>,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Under mpirun: measure with the first N hosts, for several N (`1,2,4`), and show how much each further host adds
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = WHAT)]
    hosts: Vec<u32>,
    #[command(flatten)]
    slower: SlowerArgs,
    #[command(flatten)]
    report: ReportArgs,
}

impl Args {
    /// Returns the request.
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
            others.into_iter().partition(|t| detect_language(t).is_some());
        if let [first, second, ..] = files.as_slice() {
            return Err(Failure::Usage(format!(
                "{} and {} are both job files; type one of them",
                first.display(),
                second.display()
            )));
        }
        let given = self.measuring.keys.given.clone();
        let mut request = self.measuring.request(Work::Job, targets);
        request.against = self.against;
        request.ranks_per_host = self.fleet.ranks_per_host;
        request.hosts = check_host_counts(self.hosts)?;
        request.fail_if_slower = self.slower.slower();
        let file = files.into_iter().find_map(|file| Some((detect_language(&file)?, file)));
        if let Some((language, file)) = file {
            let job = read(&file, language)?;
            for remark in &job.remarks {
                stderr::print(&format!("fathom: {}: {remark}", file.display()));
            }
            use_job(&mut request, &given, JobSource::File(file, language.tool), job)?;
        } else {
            let problems =
                request.job.check().into_iter().chain(request.job.check_targets(request.targets.len()));
            if let Some(problem) = problems.into_iter().next() {
                return Err(Failure::Usage(problem.in_flags()));
            }
        }
        Ok((request, self.report.showing()?))
    }

    /// Returns the request to replay a capture.
    fn replay(self, captures: Vec<PathBuf>, targets: Vec<PathBuf>) -> Result<(Request, Showing), Failure> {
        if !self.hosts.is_empty() {
            return Err(Failure::Usage(
                "--hosts: a capture is replayed on one host; leave --hosts out".into(),
            ));
        }
        let [file] = <[PathBuf; 1]>::try_from(captures)
            .map_err(|_| Failure::Usage("one run replays one capture; type one of them".into()))?;
        if let Some(job) = targets.iter().find(|target| detect_language(target).is_some()) {
            return Err(Failure::Usage(format!(
                "{} is a job file and {} is a capture; type one of them",
                name::shown(job),
                name::shown(&file)
            )));
        }
        let mut typed_keys = self.measuring.keys.given.iter();
        if let Some(given) = typed_keys.find(|typed| !typed.key.taken.contains(&Command::RunCapture)) {
            return Err(Failure::Usage(format!(
                "--{} cannot be combined with the capture {}, which is the workload (flags that may be combined with it: {})",
                given.key.name,
                name::shown(&file),
                list_flags_taken_by(Command::RunCapture)
            )));
        }
        let mut request = self.measuring.request(Work::Job, targets);
        for stream in request.job.streams_mut() {
            stream.replay.get_or_insert_default().file = name::text(&file);
        }
        check_job(&request.job)?;
        request.source = Some(JobSource::Capture(file));
        request.against = self.against;
        request.ranks_per_host = self.fleet.ranks_per_host;
        request.fail_if_slower = self.slower.slower();
        Ok((request, self.report.showing()?))
    }
}

/// Returns the typed numbers of hosts: none, or at least two that increase.
fn check_host_counts(hosts: Vec<u32>) -> Result<Vec<u32>, Failure> {
    if hosts.len() == 1 || !hosts.is_sorted_by(|a, b| a < b) {
        return Err(Failure::Usage(
            "--hosts: type at least two numbers in ascending order, such as --hosts 1,2,4".into(),
        ));
    }
    Ok(hosts)
}

/// Detects the language of a job file by its content or, if it is plain text, by its name. `None` if it is not a job file.
fn detect_language(path: &Path) -> Option<&'static Language> {
    let named = dialect::language_of_path(path);
    match files::read_if_small(path, MAX_FILE_BYTES as u64) {
        Small::Read(content) => match dialect::detect_tool(&content) {
            Some(tool) => dialect::language_of_tool(tool),
            None => named.filter(|_| !content.contains(&0)),
        },
        // Return the language of the name if the file cannot be read, or is too large for a job file of fathom: reading the file later
        // reports the error.
        Small::Large => named.filter(|language| language.tool == Tool::Fathom),
        Small::Unreadable => named,
        Small::NotRegular => None,
    }
}

/// Reads a job file.
fn read(path: &Path, language: &Language) -> Result<JobSpec, Failure> {
    let text = read_text(path)?;
    (language.parse)(&path.display().to_string(), &text, &crate::plan::find_problems)
        .map_err(failure_with_location)
}

/// Makes the failure of an invalid job file. It shows the location of the error.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
pub(super) fn failure_with_location(trouble: Trouble) -> Failure {
    Failure::Pointed { plain: trouble.to_string(), coloured: trouble.coloured() }
}

/// Reads the text of a job file.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    // The shell's <(...) is a pipe.
    let is_pipe = std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo());
    let opened = if is_pipe { std::fs::File::open(path) } else { files::open(path) };
    let file = opened.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            Failure::Usage(format!("{name} does not exist; type the path of an existing job file or target"))
        }
        _ => Failure::Refused(format!("{name} cannot be read: {e}")),
    })?;
    read_all(file, &name)
}

/// Reads the text of a job file from standard input.
pub(super) fn read_standard_input() -> Result<String, Failure> {
    read_all(io::stdin(), "standard input")
}

fn read_all(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // Read one byte more than the limit, to notice a longer text.
    let most = MAX_FILE_BYTES as u64 + 1;
    from.take(most)
        .read_to_end(&mut bytes)
        .map_err(|e| Failure::Refused(format!("{name} cannot be read: {e}")))?;
    decode(bytes).map_err(|line| {
        Failure::Usage(format!("{name} is not UTF-8 text: line {line} is invalid; save it as UTF-8"))
    })
}

/// Decodes UTF-8, or UTF-16 with a byte order mark, which Windows writes when it redirects output.
///
/// # Errors
/// The number of the first invalid line.
fn decode(bytes: Vec<u8>) -> Result<String, usize> {
    let decode_units = |rest: &[u8], from_bytes: fn([u8; 2]) -> u16| -> Result<String, usize> {
        let mut line = 1;
        let mut text = String::with_capacity(rest.len());
        for unit in char::decode_utf16(rest.chunks_exact(2).map(|pair| from_bytes([pair[0], pair[1]]))) {
            let unit = unit.map_err(|_| line)?;
            line += usize::from(unit == '\n');
            text.push(unit);
        }
        if rest.len().is_multiple_of(2) { Ok(text) } else { Err(line) }
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => decode_units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decode_units(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            e.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1
        }),
    }
}

/// Puts the job of a file into the request, and applies the flags of the command line to it.
///
/// # Errors
/// A usage failure that names the flag.
pub(super) fn use_job(
    request: &mut Request,
    given: &[TypedKey],
    source: JobSource,
    mut job: JobSpec,
) -> Result<(), Failure> {
    let name = source.name();
    apply_flags(&mut job, given, &name)?;
    refuse_unused_target(&job, &request.targets, &name)?;
    // The parser has checked the file, and named the line of an error. This check includes the
    // flags.
    let problems = job.check().into_iter().chain(job.check_targets(request.targets.len()));
    if let Some(problem) = problems.into_iter().next() {
        return Err(Failure::Usage(format!("{name}: {}", problem.in_toml())));
    }
    request.job = job;
    request.source = Some(source);
    Ok(())
}

/// Lists the flags that can be combined with a job file or a capture.
fn list_flags_taken_by(command: Command) -> String {
    keys::taken_by(command).map(|key| format!("--{}", key.name)).collect::<Vec<_>>().join(", ")
}

/// Applies the flags of the command line to the job of a file, or explains why they conflict.
fn apply_flags(job: &mut JobSpec, given: &[TypedKey], file: &str) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::Usage(why));
    for TypedKey { key, values } in given {
        let name = key.name;
        if !key.taken.contains(&Command::RunFile) {
            return refuse(format!(
                "--{name} cannot be combined with the job file {file}, which describes the workload; write \
                 {name} into it (flags that may be combined with it: {})",
                list_flags_taken_by(Command::RunFile)
            ));
        }
        if matches!(key.set, Set::Phase(_)) && job.phases.len() > 1 {
            return refuse(format!(
                "--{name} cannot be combined with {file}, which has {} phases; write {name} into each phase",
                job.phases.len()
            ));
        }
        key.parse_into_job(job, values.iter().map(String::as_str))
            .or_else(|why| refuse(format!("--{name}: {why}")))?;
    }
    Ok(())
}

/// Refuses a target that no stream uses.
fn refuse_unused_target(job: &JobSpec, targets: &[PathBuf], file: &str) -> Result<(), Failure> {
    match targets.first() {
        Some(target) if job.streams().all(|stream| !stream.target.is_empty()) => {
            Err(Failure::Usage(format!(
                "{} would not be measured: every stream of {file} names its own target; leave {0} out",
                target.display()
            )))
        }
        _ => Ok(()),
    }
}

#[test]
fn help_lists_the_flags_that_go_with_a_job_file() {
    let help = <Args as clap::Args>::augment_args(clap::Command::new("run"));
    let help = help.get_long_about().map(ToString::to_string).unwrap_or_default();
    for key in keys::taken_by(Command::RunFile) {
        assert!(help.contains(&format!("--{}", key.name)), "{}", key.name);
    }
}

#[test]
fn utf_16_text_is_decoded() {
    let text = "<a>\n  ä 😀\n</a>\n";
    let encode =
        |to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(to_bytes).collect() };
    let little = [vec![0xff, 0xfe], encode(u16::to_le_bytes)].concat();
    let big = [vec![0xfe, 0xff], encode(u16::to_be_bytes)].concat();
    assert_eq!([little.clone(), big, text.into()].map(|bytes| decode(bytes).unwrap_or_default()), [text; 3]);
    // Errors with their lines: half a character at the end, half a surrogate pair, and invalid UTF-8.
    let cut = little[..little.len() - 1].to_vec();
    let lone = [vec![0xff, 0xfe, b'a', 0, b'\n', 0], vec![0x00, 0xd8, b'x', 0]].concat();
    assert_eq!(
        [cut, lone, b"a\nb\n\xff".to_vec()].map(|bytes| decode(bytes).err()),
        [Some(3), Some(2), Some(3)]
    );
}
