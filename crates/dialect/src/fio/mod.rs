//! fio: translates its job files and command lines into jobs with the same meaning. An option that
//! fathom cannot honour is refused by its name, with the reason and what to type instead.
//!
//! `job_file` reads a text as sections, and makes jobs with their defaults from the sections. `streams`, with
//! `access`, `files` and `rates`, translates a job into streams. `replay` translates a job that replays a log.
//! `phases` combines the streams into phases. `options` is the table of all options.

mod access;
mod command;
mod files;
mod job_file;
pub mod options;
mod phases;
mod rates;
mod replay;
mod streams;
mod value;
pub mod verify_state;

pub use self::command::{Ask, CommandLine};
pub(crate) use self::streams::ENGINES;
use crate::names_in_tool::format_for_tool;
use crate::trouble::{COMMAND_LINE, Diagnostic, Trouble};
use crate::{Language, Objections, Tool};
use job_file::{Environment, Fault, Location, Machine, Reader, Text};
use model::name;
use model::spec::{JobSpec, LogKind, Logs, Typed};

pub(crate) const LANGUAGE: Language = Language { tool: Tool::Fio, extension: "fio", parse };

/// A part of a command line.
#[derive(Clone, Debug)]
pub enum Piece {
    /// A job file.
    File {
        /// Name of the file in messages; included files are searched in its directory.
        name: String,
        /// Whole content of the file, unparsed. Parsing refuses more than [`crate::MAX_FILE_BYTES`].
        text: String,
    },
    /// An option of a job: `--name=value`.
    Option {
        /// Name of the option, without dashes.
        name: String,
        /// Value of the option; empty if none was typed.
        value: String,
    },
}

/// Reads a job file.
fn parse(name: &str, text: &str, also: Objections) -> Result<JobSpec, Trouble> {
    read(&CommandLine::of_file(name, text), also)
}

/// Reads the jobs of a command line.
///
/// # Errors
/// All errors, each with its place and what to type instead.
pub fn read(line: &CommandLine, also: Objections) -> Result<JobSpec, Trouble> {
    read_in(line, also, &Machine)
}

/// The jobs of a command line as one command line without job files, quoted for a shell.
///
/// # Errors
/// An error in an option, at its place.
pub fn as_one_line(line: &CommandLine) -> Result<String, Trouble> {
    let reader = read_sections(&line.pieces, &Machine)?;
    let mut words = vec!["fio".to_owned()];
    let is_named = |name: &String| line.sections.is_empty() || line.sections.contains(name);
    for section in reader.sections.iter().filter(|s| s.is_global() || is_named(&s.name)) {
        if !section.is_global() {
            words.push(word("name", &argument(&section.name)));
        }
        let is_name =
            |typed: &&job_file::Assignment| typed.option.name == "name" && typed.value == section.name;
        let rest = section.assignments.iter().filter(|typed| !is_name(typed));
        words.extend(rest.map(|typed| match typed.value.as_str() {
            // Without the equals sign the next word would be the value.
            "" if !typed.option.is_switch => format!("--{}=", typed.option.name),
            value => word(typed.option.name, &argument(value)),
        }));
    }
    Ok(words.join(" "))
}

/// A value quoted for a shell; empty if no value was typed.
fn argument(value: &str) -> String {
    if value.is_empty() { String::new() } else { name::quoted(value) }
}

fn read_in(line: &CommandLine, also: Objections, environment: &dyn Environment) -> Result<JobSpec, Trouble> {
    let mut reader = read_sections(&line.pieces, environment)?;
    let faults = |all: Vec<Fault>| trouble(&reader.texts, all);
    let fault = |fault: Fault| faults(vec![fault]);
    let jobs = job_file::jobs(&reader.sections, &line.sections);
    if line.readonly {
        access::only_reading(&jobs).map_err(fault)?;
    }
    if jobs.is_empty() && line.ask == Ask::Parse && reader.sections.iter().all(job_file::Section::is_global) {
        // `--parse-only` accepts a command line without jobs.
        return Ok(JobSpec::default());
    }
    if jobs.is_empty() {
        let why = "there is no job; type [NAME] with options below it, or --name=NAME on the command line";
        return Err(fault(Fault { location: Location::default(), message: why.into() }));
    }
    let (mut spec, from) = phases::specification(&jobs, environment).map_err(faults)?;
    let mut typed = phases::typed(&reader.sections, &jobs, &from).map_err(fault)?;
    let folder = line.aux_path.as_ref().map(|folder| format!("{folder}/")).unwrap_or_default();
    for ((from, typed), phase) in from.iter().zip(&mut typed.phases).zip(&mut spec.phases) {
        // An iolog contains the names of the files.
        for (typed, stream) in typed.iter_mut().zip(&phase.streams) {
            let has_iolog = |logs: &&mut Logs| logs.files.iter().any(|(kind, _)| *kind == LogKind::Iolog);
            if let Some(logs) = typed.logs.as_mut().filter(has_iolog) {
                logs.paths.clone_from(&stream.target);
            }
        }
        if line.ask != Ask::Parse {
            verify_state::apply(&jobs, from, typed, phase, &folder, environment).map_err(fault)?;
        }
    }
    if line.readonly {
        // Like fio, create no file with `--readonly`.
        spec.streams_mut().for_each(|stream| stream.create = None);
    }
    spec.typed = Some(Typed { idle: line.idle, ..typed });
    let problems = spec.check().into_iter().chain(also(&spec));
    let problems: Vec<Fault> = problems
        .map(|problem| {
            let job =
                from.get(problem.phase).and_then(|p| p.get(problem.stream)).and_then(|at| jobs.get(*at));
            let location = job.map(|job| job.location.clone()).unwrap_or_default();
            Fault { location, message: problem.spelled(|key, value| format_for_tool(Tool::Fio, key, value)) }
        })
        .collect();
    if !problems.is_empty() {
        return Err(faults(problems));
    }
    spec.remarks = std::mem::take(&mut reader.remarks);
    spec.remarks.extend(job_file::remarks(&jobs));
    spec.remarks.extend(phases::remarks(&jobs));
    spec.remarks.extend(access::remarks(&jobs));
    spec.remarks.extend(replay::remarks(&jobs));
    spec.remarks.extend(files::remarks(&jobs, environment));
    spec.announcements = files::layout_lines(&spec, &jobs, &from, environment);
    Ok(spec)
}

/// Reads all parts of a command line as sections, or returns the errors of the first part that has
/// any.
fn read_sections<'a>(pieces: &[Piece], environment: &'a dyn Environment) -> Result<Reader<'a>, Trouble> {
    let mut reader = Reader::new(environment);
    let line = shown_options(pieces);
    let mut at = 0;
    let mut text = None;
    for piece in pieces {
        match piece {
            Piece::File { name, text } => {
                Trouble::refuse_large(name, text, "a job file")?;
                reader.file(name, text);
            }
            Piece::Option { name, value } => {
                let index = *text.get_or_insert_with(|| {
                    reader.texts.push(Text { name: COMMAND_LINE.into(), text: line.clone() });
                    reader.texts.len() - 1
                });
                let end = at + word(name, value).len();
                let location = Location { text: index, span: at..end };
                at = end + 1;
                if name == "name" {
                    reader.add_job(value, location);
                } else {
                    // Options before the first name are defaults.
                    if reader.sections.is_empty() {
                        reader.add_section("global", location.clone(), true);
                    }
                    reader.add_option(name, value, location);
                }
            }
        }
    }
    let faults = std::mem::take(&mut reader.faults);
    if faults.is_empty() { Ok(reader) } else { Err(trouble(&reader.texts, faults)) }
}

/// An option as it is typed.
fn word(name: &str, value: &str) -> String {
    if value.is_empty() { format!("--{name}") } else { format!("--{name}={value}") }
}

/// The job options of a command line as one text. Errors show their place in this text.
fn shown_options(pieces: &[Piece]) -> String {
    let words = pieces.iter().filter_map(|piece| match piece {
        Piece::Option { name, value } => Some(word(name, value)),
        Piece::File { .. } => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The errors of the first text that has any.
fn trouble(texts: &[Text], faults: Vec<Fault>) -> Trouble {
    let first = faults.iter().map(|fault| fault.location.text).min().unwrap_or(0);
    let of_first = faults.into_iter().filter(|fault| fault.location.text == first);
    let diagnostics = of_first.map(|fault| Diagnostic::new(fault.location.span, fault.message)).collect();
    match texts.get(first) {
        Some(Text { name, text }) => Trouble::new(name, text, diagnostics),
        None => Trouble::new(COMMAND_LINE, "", diagnostics),
    }
}

#[cfg(test)]
mod tests;
