//! Names of files as fio makes them.
//!
//! For: `filename`, `directory`, `filename_format`, and the name that a file has where none is said. Not for: looking at files.

use super::around::Around;
use super::jobs::{Fault, Job};
use super::sections::visible;

/// What a file is called where nothing is said.
const FORMAT: &str = "$jobname.$jobnum.$filenum";

/// The paths of a clone's files.
pub(super) fn paths(job: &Job, clone: u32, files: u32) -> Vec<String> {
    let folder = job.text("directory").map(|text| {
        let folders = split(text);
        folders.get(clone as usize % folders.len().max(1)).cloned().unwrap_or_default()
    });
    let within = |name: String| match &folder {
        Some(folder) if !folder.is_empty() => format!("{}/{name}", folder.trim_end_matches('/')),
        _ => name,
    };
    if let Some(names) = job.text("filename") {
        return split(names).into_iter().map(within).collect();
    }
    // A job that bears the name of a device is about that device.
    if job.section.starts_with("/dev/") {
        return vec![job.section.clone()];
    }
    let format = job.text("filename_format").filter(|f| !f.is_empty()).unwrap_or(FORMAT);
    let name = |file: u32| {
        let name = format.replace("$clientuid", "localhost").replace("$jobname", &job.section);
        name.replace("$jobnum", &clone.to_string()).replace("$filenum", &file.to_string())
    };
    (0..files).map(|file| within(name(file))).collect()
}

/// Refuses a directory as `filename`: a new file in it would not be what was typed.
pub(super) fn refuse_directories(job: &Job, around: &dyn Around) -> Result<(), Fault> {
    if job.text("filename").is_none() || job.text("ioengine") == Some("null") {
        return Ok(());
    }
    match paths(job, 0, 1).into_iter().find(|path| around.is_directory(path)) {
        Some(path) => {
            let path = visible(&path);
            let why = format!("{path} is a directory; type directory={path}, or the name of a file");
            Err(job.fault("filename", why))
        }
        None => Ok(()),
    }
}

/// How many files each clone has.
pub(super) fn files(job: &Job) -> Result<u32, Fault> {
    let asked = job.count("nrfiles", 1)?;
    if let Some(names) = job.text("filename") {
        let named = split(names);
        if named.iter().any(|n| n.is_empty() || n == "-") {
            return Err(job.fault(
                "filename",
                "a name is missing, or it is standard input; type names with : between them",
            ));
        }
        return Ok(u32::try_from(named.len()).unwrap_or(u32::MAX));
    }
    if job.section.starts_with("/dev/") {
        return Ok(1);
    }
    let files = asked.unwrap_or(1);
    if files as usize > model::spec::number::MAX_TARGETS {
        let most = model::spec::number::MAX_TARGETS;
        return Err(job.fault("nrfiles", format!("a stream has {most} targets at most; type less")));
    }
    let format = job.text("filename_format").unwrap_or(FORMAT);
    if files > 1 && !format.contains("$filenum") {
        return Err(job.fault("filename_format", "all files would have one name; type $filenum in it"));
    }
    Ok(files)
}

/// Whether each clone has files of its own.
pub(super) fn own_files(job: &Job) -> bool {
    paths(job, 0, 1) != paths(job, 1, 1)
}

/// Names between colons; a colon of a name has a backslash before it.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = c == '\\' && chars.peek() == Some(&':');
        match names.last_mut() {
            Some(name) if c != ':' => name.extend(if escaped { chars.next() } else { Some(c) }),
            _ => names.push(String::new()),
        }
    }
    names
}
