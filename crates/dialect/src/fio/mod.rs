//! fio's language: its job files and command lines.
//!
//! For: a specification that means what fio's text means, exactly; what cannot be said so is refused by the name of the option, with the
//! reason and what to type instead. Not for: carrying it out, nor fio's output.
//!
//! A text is read into sections (`sections`), these into jobs with their defaults (`jobs`), each job into streams (`streams` with
//! `access` and `names`), and these into phases (`phases`). What becomes of each option stands in one table (`options`).

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

pub use self::command::{Ask, CommandLine};
use crate::names_in_tool::spelled;
use crate::trouble::{Mark, Trouble};
use crate::{Language, MAX_FILE_BYTES, Objections, Tool};
use job_file::{Around, Here, Location, Reader, Text};
use model::shell;
use model::spec::JobSpec;
use model::typed::Typed;

pub(crate) const LANGUAGE: Language = Language { tool: Tool::Fio, extension: "fio", parse };
/// What messages call a command line.
const COMMAND_LINE: &str = "command line";

/// A piece of what is to be carried out, in the order of the command line.
#[derive(Clone, Debug)]
pub enum Piece {
    /// A job file.
    File {
        /// What messages call it; files that it includes are found beside it.
        name: String,
        /// What is in it.
        text: String,
    },
    /// An option of a job: `--name=value`.
    Option {
        /// Its name, without dashes.
        name: String,
        /// Its value; empty where none was typed.
        value: String,
    },
}

/// Reads a job file.
fn parse(name: &str, text: &str, also: Objections) -> Result<JobSpec, Trouble> {
    read(&CommandLine::of_file(name, text), &|job| also(job))
}

/// Reads the jobs of a command line.
///
/// # Errors
/// Everything that is wrong with them, each at its place with what to type instead.
pub fn read(line: &CommandLine, also: Objections) -> Result<JobSpec, Trouble> {
    read_around(line, also, &Here)
}

/// The jobs of a command line as one without job files, as a shell takes it.
///
/// # Errors
/// What is wrong with an option, at its place.
pub fn as_one_line(line: &CommandLine) -> Result<String, Trouble> {
    let reader = gathered(&line.pieces, &Here)?;
    let mut words = vec!["fio".to_owned()];
    let is_named = |name: &String| line.sections.is_empty() || line.sections.contains(name);
    for section in reader.sections.iter().filter(|s| s.is_global() || is_named(&s.name)) {
        if !section.is_global() {
            words.push(word("name", &argument(&section.name)));
        }
        let is_told = |said: &&job_file::Assignment| said.option.name == "name" && said.value == section.name;
        let rest = section.said.iter().filter(|said| !is_told(said));
        words.extend(rest.map(|said| word(said.option.name, &argument(&said.value))));
    }
    Ok(words.join(" "))
}

/// A value as a shell takes it; none where none was typed.
fn argument(value: &str) -> String {
    if value.is_empty() { String::new() } else { shell::quoted(value) }
}

fn read_around(line: &CommandLine, also: Objections, around: &dyn Around) -> Result<JobSpec, Trouble> {
    let mut reader = gathered(&line.pieces, around)?;
    let at = |fault: job_file::Fault| (fault.0.text, Mark::new(fault.0.span, fault.1));
    let jobs = job_file::jobs(&reader.sections, &line.sections)
        .and_then(|jobs| if line.readonly { access::only_reading(jobs) } else { Ok(jobs) })
        .map_err(|fault| trouble(&reader.texts, vec![at(fault)]))?;
    if jobs.is_empty() && line.ask == Ask::Parse && reader.sections.iter().all(job_file::Section::is_global) {
        // There is nothing that could be wrong.
        return Ok(JobSpec::default());
    }
    if jobs.is_empty() {
        let why = "there is no job; type [NAME] with options below it, or --name=NAME on the command line";
        return Err(trouble(&reader.texts, vec![(0, Mark::new(0..0, why))]));
    }
    let faults = |all: Vec<job_file::Fault>| trouble(&reader.texts, all.into_iter().map(at).collect());
    let (mut spec, from) = phases::specification(&jobs, around).map_err(faults)?;
    let typed = phases::typed(&reader.sections, &jobs, &from);
    let typed = typed.map_err(|fault| faults(vec![fault]))?;
    if line.readonly {
        // As in fio, which then makes no file either.
        spec.phases.iter_mut().flat_map(|phase| &mut phase.streams).for_each(|stream| stream.create = None);
    }
    spec.typed = Some(Typed { idle: line.idle, ..typed });
    let problems = spec.check().into_iter().chain(also(&spec));
    let marks: Vec<(usize, Mark)> = problems
        .map(|problem| {
            let job =
                from.get(problem.phase).and_then(|p| p.get(problem.stream)).and_then(|at| jobs.get(*at));
            let spot = job.map(|job| job.spot.clone()).unwrap_or_default();
            (spot.text, Mark::new(spot.span, problem.spelled(|key, value| spelled(Tool::Fio, key, value))))
        })
        .collect();
    if !marks.is_empty() {
        return Err(trouble(&reader.texts, marks));
    }
    spec.remarks = std::mem::take(&mut reader.remarks);
    spec.remarks.extend(job_file::remarks(&jobs));
    spec.remarks.extend(phases::remarks(&jobs));
    spec.remarks.extend(access::remarks(&jobs));
    spec.remarks.extend(replay::remarks(&jobs));
    Ok(spec)
}

/// All pieces as sections, of which nothing is wrong by itself.
fn gathered<'a>(pieces: &[Piece], around: &'a dyn Around) -> Result<Reader<'a>, Trouble> {
    let mut reader = Reader::new(around);
    gather(pieces, &mut reader)?;
    let marks = std::mem::take(&mut reader.marks);
    if marks.is_empty() { Ok(reader) } else { Err(trouble(&reader.texts, marks)) }
}

/// Puts all pieces into sections.
fn gather(pieces: &[Piece], reader: &mut Reader) -> Result<(), Trouble> {
    let line = shown(pieces);
    let mut at = 0;
    let mut text = None;
    for piece in pieces {
        match piece {
            Piece::File { name, text } => {
                if text.len() > MAX_FILE_BYTES {
                    // Only its beginning is shown: no terminal wants a megabyte.
                    let start: String = text.lines().next().unwrap_or_default().chars().take(80).collect();
                    let message =
                        format!("the file has {} bytes; a job file has {MAX_FILE_BYTES} at most", text.len());
                    return Err(Trouble::new(name, &start, vec![Mark::new(0..start.len(), message)]));
                }
                reader.file(name, text);
            }
            Piece::Option { name, value } => {
                let index = *text.get_or_insert_with(|| {
                    reader.texts.push(Text { name: COMMAND_LINE.into(), text: line.clone() });
                    reader.texts.len() - 1
                });
                let end = at + word(name, value).len();
                let spot = Location { text: index, span: at..end };
                at = end + 1;
                if name == "name" {
                    reader.named(value, spot);
                } else {
                    // Before the first name they are defaults.
                    if reader.sections.is_empty() {
                        reader.defaults(spot.clone());
                    }
                    reader.say(name, value, spot);
                }
            }
        }
    }
    Ok(())
}

/// An option as it is typed.
fn word(name: &str, value: &str) -> String {
    if value.is_empty() { format!("--{name}") } else { format!("--{name}={value}") }
}

/// The options of a command line, one after another.
fn shown(pieces: &[Piece]) -> String {
    let words = pieces.iter().filter_map(|piece| match piece {
        Piece::Option { name, value } => Some(word(name, value)),
        Piece::File { .. } => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The messages of the first text that has any.
fn trouble(texts: &[Text], marks: Vec<(usize, Mark)>) -> Trouble {
    let first = marks.iter().map(|(text, _)| *text).min().unwrap_or(0);
    let marks = marks.into_iter().filter(|(text, _)| *text == first).map(|(_, mark)| mark).collect();
    match texts.get(first) {
        Some(Text { name, text }) => Trouble::new(name, text, marks),
        None => Trouble::new(COMMAND_LINE, "", marks),
    }
}

#[cfg(test)]
mod tests;
