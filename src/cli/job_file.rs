//! Job files as commands take them: what they say, and what the command line says beside it.
//!
//! For: `fathom run JOB.toml` and `fathom recipe`. Not for: reading the language (crate `dialect`), nor for finding out which TARGET is a
//! job file.

use super::common::TypedKey;
use crate::failure::Failure;
use crate::input;
use crate::request::{JobSource, Request};
use dialect::{MAX_FILE_BYTES, Trouble};
use model::spec::JobSpec;
use model::spec::keys::{self, Command, Set};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What is wrong with a job file, with its place.
pub(super) fn pointed(trouble: &Trouble) -> Failure {
    Failure::Pointed { plain: trouble.to_string(), coloured: trouble.coloured() }
}

/// The text of a job file.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    // A shell's <(...) is a pipe.
    let is_pipe = std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo());
    let opened = if is_pipe { std::fs::File::open(path) } else { input::open(path) };
    let file = opened.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Failure::Usage(format!(
            "{name} does not exist, and it looks like the name of a job file; type the path of an existing \
             job file or target"
        )),
        _ => Failure::Refused(format!("{name} cannot be read: {e}")),
    })?;
    all_of(file, &name)
}

/// The text of a job file that comes through standard input.
pub(super) fn typed() -> Result<String, Failure> {
    all_of(io::stdin(), "standard input")
}

fn all_of(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One byte more than it may have is enough to know that it has too many.
    let most = MAX_FILE_BYTES as u64 + 1;
    from.take(most)
        .read_to_end(&mut bytes)
        .map_err(|e| Failure::Refused(format!("{name} cannot be read: {e}")))?;
    decoded(bytes).map_err(|line| {
        Failure::Usage(format!("{name} is not UTF-8 text from line {line} on; save it as UTF-8"))
    })
}

/// A text in UTF-8, or as Windows writes what is redirected there into a file: in UTF-16 behind a mark of its order of bytes. Else the line
/// that has something else.
fn decoded(bytes: Vec<u8>) -> Result<String, usize> {
    let units = |rest: &[u8], of: fn([u8; 2]) -> u16| -> Result<String, usize> {
        let mut line = 1;
        let mut text = String::with_capacity(rest.len());
        for unit in char::decode_utf16(rest.chunks_exact(2).map(|pair| of([pair[0], pair[1]]))) {
            let unit = unit.map_err(|_| line)?;
            line += usize::from(unit == '\n');
            text.push(unit);
        }
        if rest.len().is_multiple_of(2) { Ok(text) } else { Err(line) }
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            e.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1
        }),
    }
}

/// Puts the job of a file into the request, and into that what the command line said.
///
/// # Errors
/// A usage failure that names the flag.
pub(super) fn take(
    request: &mut Request,
    said: &[TypedKey],
    source: JobSource,
    mut job: JobSpec,
) -> Result<(), Failure> {
    let name = source.name();
    overrule(&mut job, said, &name)?;
    targets_are_used(&job, &request.targets, &name)?;
    // What the text says was checked where its lines are known; this is what the command line says or adds.
    let problems = job.check().into_iter().chain(job.check_targets(request.targets.len()));
    if let Some(problem) = problems.into_iter().next() {
        return Err(Failure::Usage(format!("{name}: {}", problem.in_toml())));
    }
    request.job = job;
    request.source = Some(source);
    Ok(())
}

/// Puts what the command line says into the job of a file, or says why it cannot stand beside it.
fn overrule(job: &mut JobSpec, said: &[TypedKey], file: &str) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::Usage(why));
    for TypedKey { key, values } in said {
        let name = key.name;
        if !key.taken.contains(&Command::RunFile) {
            let allowed: Vec<String> =
                keys::taken_by(Command::RunFile).map(|key| format!("--{}", key.name)).collect();
            return refuse(format!(
                "--{name} cannot be combined with the job file {file}, which describes the workload; write \
                 {name} into it (flags that may be combined with it: {})",
                allowed.join(", ")
            ));
        }
        if matches!(key.set, Set::Phase(_)) && job.phases.len() > 1 {
            return refuse(format!(
                "--{name} stands beside {file}, which has {} phases; write {name} into each of them",
                job.phases.len()
            ));
        }
        key.say(job, values.iter().map(String::as_str)).or_else(|why| refuse(format!("--{name}: {why}")))?;
    }
    Ok(())
}

/// Refuses a target that no stream uses.
fn targets_are_used(job: &JobSpec, targets: &[PathBuf], file: &str) -> Result<(), Failure> {
    let mut streams = job.phases.iter().flat_map(|p| &p.streams);
    match targets.first() {
        Some(target) if streams.all(|stream| !stream.target.is_empty()) => Err(Failure::Usage(format!(
            "{} changes nothing here: every stream of {file} names its own target; leave one of them out",
            target.display()
        ))),
        _ => Ok(()),
    }
}

#[test]
fn a_text_of_windows_is_read_as_any_other() {
    let text = "<a>\n  ä 😀\n</a>\n";
    let units = |of: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(of).collect() };
    let little = [vec![0xff, 0xfe], units(u16::to_le_bytes)].concat();
    let big = [vec![0xfe, 0xff], units(u16::to_be_bytes)].concat();
    assert_eq!([little.clone(), big, text.into()].map(|bytes| decoded(bytes).unwrap_or_default()), [text; 3]);
    // Half a character at the end, half a pair, and bytes that are no UTF-8: with their line.
    let cut = little[..little.len() - 1].to_vec();
    let lone = [vec![0xff, 0xfe, b'a', 0, b'\n', 0], vec![0x00, 0xd8, b'x', 0]].concat();
    assert_eq!(
        [cut, lone, b"a\nb\n\xff".to_vec()].map(|bytes| decoded(bytes).err()),
        [Some(3), Some(2), Some(3)]
    );
}
