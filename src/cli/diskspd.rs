//! `fathom diskspd`: makes a request from a DISKSPD command line, fitted to the existing files. Crate `dialect` parses the options;
//! [`super::other_tools`] measures and prints the output of DISKSPD.

use crate::cli::other_tools::{ToolOutput, ToolWords, make_request};
use crate::cli::run;
use crate::failure::Failure;
use crate::request::Request;
use crate::stdout;
use dialect::Tool;
use dialect::diskspd::{self, Ask, CommandLine, Environment};
use model::diskspd::Target;
use model::name;
use model::spec::JobSpec;
use model::units::show_bytes;
use rustix::thread::CpuSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Run command lines and XML profiles of DISKSPD, with the same options, output and exit codes.
///
/// `fathom diskspd -?` lists the options; `fathom help reference/diskspd` has their meaning on Linux. If fathom is called by the name
/// diskspd, it runs this command.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[command(flatten)]
    words: ToolWords,
}

impl Args {
    /// Returns the request; `None` after printing help or a profile.
    ///
    /// # Errors
    /// A usage failure that names the option, or the place in a profile.
    pub fn request(self) -> Result<Option<(Request, ToolOutput)>, Failure> {
        let args = self.words.text();
        let read = |path: &str| run::read_text(&name::path(path)).map_err(|why| why.message().to_owned());
        let cpus = allowed_cpus();
        let environment = Environment { read: &read, clock: seed_from_clock() };
        let command_line = CommandLine::parse(&args, &environment).map_err(run::failure_with_location)?;
        if let Ask::Print(text) = &command_line.ask {
            return stdout::print_text(text).map(|()| None);
        }
        let Some(mut job) = diskspd::job(&command_line, &cpus, &crate::plan::find_problems)
            .map_err(run::failure_with_location)?
        else {
            return stdout::print_text(&report::diskspd_profile(&command_line.profile)).map(|()| None);
        };
        fit_to_files(&command_line, &mut job)?;
        let tool_output = tool_output(&command_line, &job);
        Ok(Some((make_request(Tool::Diskspd, job, command_line.destroy, true), tool_output)))
    }
}

/// Returns the CPUs that this process may use.
fn allowed_cpus() -> Vec<u32> {
    let set = rustix::thread::sched_getaffinity(None);
    set.map(|set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
        .unwrap_or_default()
}

/// Returns a seed from the clock.
fn seed_from_clock() -> u32 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos() ^ since.as_secs() as u32)
}

/// Shortens each region that reaches beyond the end of an existing file. Refuses a directory, a
/// missing target without -c, and a file of -Z that is larger than its buffer. Also refuses a -c whose
/// size differs from that of an existing file, unless fathom made the file.
fn fit_to_files(command_line: &CommandLine, job: &mut JobSpec) -> Result<(), Failure> {
    for target in command_line.profile.spans.iter().flat_map(|span| &span.targets) {
        check_target(target)?;
    }
    for stream in job.streams_mut().filter(|s| s.create.is_none()) {
        let lengths = stream.target.iter().filter_map(|path| length(&name::path(path)));
        let (Some(size), Some(shortest)) = (stream.size, lengths.min()) else { continue };
        let left = shortest.saturating_sub(stream.resolved.access.offset_bytes);
        stream.size = Some(size.min(left.max(1)));
    }
    Ok(())
}

/// Returns the length of a regular file in bytes; `None` if there is no such file.
fn length(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
}

fn check_target(target: &Target) -> Result<(), Failure> {
    let path = name::path(&target.path);
    let shown = name::shown(&path);
    if path.is_dir() {
        return Err(Failure::Usage(format!(
            "{shown} is a directory; type a file in it, with -c1G to make the file if it does not exist"
        )));
    }
    let file_bytes = length(&path);
    if target.create.is_none() && !path.exists() {
        return Err(Failure::Usage(format!(
            "{shown} does not exist; type -c1G too, which makes a file of that size"
        )));
    }
    if let (Some(bytes), Some(file_bytes)) = (target.create, file_bytes)
        && file_bytes != bytes
        && !machine::mark::is_ours(&path)
    {
        let whose = machine::mark::void_because(&path);
        let whose = whose.as_deref().unwrap_or("fathom did not make it");
        return Err(Failure::Usage(format!(
            "-c{bytes}: {shown} exists with another size ({}), and fathom does not replace it because {whose}; remove it, or leave -c out",
            show_bytes(file_bytes)
        )));
    }
    let Some(file) = target.buffer_file.as_deref().filter(|_| target.write_percent > 0) else {
        return Ok(());
    };
    match length(&name::path(file)) {
        Some(bytes) if bytes > target.buffer => Err(Failure::Usage(format!(
            "-Z{},{file}: the file is larger than this, and fathom writes all {} of it; type -Z{bytes},{file}, or name a smaller file",
            target.buffer,
            show_bytes(bytes)
        ))),
        _ => Ok(()),
    }
}

fn tool_output(command_line: &CommandLine, job: &JobSpec) -> ToolOutput {
    let format = if command_line.profile.xml { report::DISKSPD_XML } else { report::DISKSPD };
    let files = command_line.read.iter().map(|path| name::path(path)).collect();
    let quiet = command_line.profile.progress == 0 && !command_line.profile.verbose;
    ToolOutput { quiet, ..ToolOutput::new(Tool::Diskspd, &[format], files, job) }
}
