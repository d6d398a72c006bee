//! `fathom fio`: makes a request from a fio command line. Crate `dialect` parses the options; [`super::other_tools`] measures and
//! prints the output of fio.

use crate::cli::other_tools::{ToolOutput, ToolWords, make_request};
use crate::cli::run;
use crate::failure::Failure;
use crate::request::Request;
use crate::stdout;
use dialect::Tool;
use dialect::fio::{self, Ask, CommandLine};
use model::job::Mix;
use model::name;
use model::spec::{JobSpec, Rw, StreamSpec};
use std::io::IsTerminal;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// Name of a job file on standard input.
const STANDARD_INPUT: &str = "-";

/// Run job files and command lines of fio, with the same options, output, files and exit codes.
///
/// `fathom fio --help` lists the options; `fathom help reference/fio` has the effect of each option of a job. If fathom is called by the
/// name fio, it runs this command.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[command(flatten)]
    words: ToolWords,
}

impl Args {
    /// Returns the request; `None` after printing help or a version.
    ///
    /// # Errors
    /// A usage failure that names the option, or the place in a job file.
    pub fn request(self) -> Result<Option<(Request, ToolOutput)>, Failure> {
        let args = self.words.text();
        let line = CommandLine::parse(&args, &read_job_file).map_err(Failure::Usage)?;
        match &line.ask {
            Ask::Print(text) => stdout::print_text(text).map(|()| None),
            Ask::Version => stdout::print_text(&format!("{}\n", report::FIO_VERSION)).map(|()| None),
            Ask::ShowCommand => stdout::print_text(&format!(
                "{}\n",
                fio::as_one_line(&line).map_err(run::failure_with_location)?
            ))
            .map(|()| None),
            Ask::Parse => fio::read(&line, &crate::plan::find_problems)
                .map(|_| None)
                .map_err(run::failure_with_location),
            Ask::Measure => {
                let mut job =
                    fio::read(&line, &crate::plan::find_problems).map_err(run::failure_with_location)?;
                refuse_trims_of_files(&job)?;
                make_directories(&job)?;
                if let Some(typed) = &mut job.typed {
                    typed.counts_depth = true;
                }
                let tool_output = tool_output(&line, &job);
                Ok(Some((make_request(Tool::Fio, job, line.destroy, tool_output.measures), tool_output)))
            }
        }
    }
}

/// Refuses trims of regular files, with fio's error. fathom itself would punch a hole.
fn refuse_trims_of_files(job: &JobSpec) -> Result<(), Failure> {
    let trims = |stream: &&StreamSpec| {
        // With these engines fio itself can trim a regular file.
        let is_able =
            stream.engine.as_ref().is_some_and(|e| ["null", "fallocate"].contains(&e.name.as_str()));
        stream.rw.and_then(Rw::fixed_mix) == Some(Mix::from_percents(0, 100)) && !is_able
    };
    let is_device = |path: &String| {
        std::fs::metadata(name::path(path)).is_ok_and(|facts| facts.file_type().is_block_device())
    };
    match job.streams().filter(trims).flat_map(|stream| &stream.target).find(|path| !is_device(path)) {
        Some(path) => Err(Failure::Usage(format!(
            "{path}: Inappropriate ioctl for device (error 25): as under fio, a trim needs a block device; name one with filename"
        ))),
        None => Ok(()),
    }
}

/// Makes the directories in file names, as fio does. Makes none if a typed `directory` does not
/// exist.
fn make_directories(job: &JobSpec) -> Result<(), Failure> {
    let typed = job.typed.iter();
    let of_streams = typed.clone().flat_map(|t| &t.phases).flatten().flat_map(|stream| &stream.options);
    let mut options = typed.flat_map(|t| &t.defaults).chain(of_streams);
    if options
        .any(|(name, value)| name == "directory" && !value.split(':').all(|dir| Path::new(dir).is_dir()))
    {
        return Ok(());
    }
    let streams = job.streams().filter(|stream| stream.create.is_some());
    for path in streams.flat_map(|stream| &stream.target).map(|target| name::path(target)) {
        let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { continue };
        std::fs::create_dir_all(folder).map_err(|e| {
            Failure::Refused(format!("the directory {} cannot be made: {e}", name::shown(folder)))
        })?;
    }
    Ok(())
}

/// Reads a job file, or standard input.
fn read_job_file(path: &str) -> Result<String, String> {
    let text =
        if path == STANDARD_INPUT { run::read_standard_input() } else { run::read_text(&name::path(path)) };
    text.map_err(|failure| failure.message().to_owned())
}

fn tool_output(line: &CommandLine, job: &JobSpec) -> ToolOutput {
    let files = line.pieces.iter().filter_map(|piece| match piece {
        fio::Piece::File { name, .. } => Some(name::path(name)),
        fio::Piece::Option { .. } => None,
    });
    ToolOutput {
        measures: job.streams().any(|stream| stream.resolved.limit.operations != Some(0)),
        output: line.output.as_deref().map(name::path),
        bandwidth_log: line.bandwidth_log,
        status_interval: line.status_interval_ns.map(Duration::from_nanos),
        status_on_signal: true,
        remarks: line.remarks.iter().chain(&job.remarks).cloned().collect(),
        // fio shows progress on a terminal, but not with JSON alone.
        quiet: line.quiet || !line.formats.contains(&report::FIO) || !std::io::stderr().is_terminal(),
        ..ToolOutput::new(Tool::Fio, &line.formats, files.collect(), job)
    }
}
