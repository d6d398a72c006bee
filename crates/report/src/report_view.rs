//! What text, Markdown, HTML and JSON print alike: command lines, and sentences about a verification.

use model::job::Kind;
use model::report::Report;
use model::shell;
use model::units::show_count;
use model::verified::{Failed, ReadBack, Verified};
use std::path::Path;

/// Joins the words of a command into one line, with the program's base name and shell quotes.
pub(crate) fn command_line(words: &[String]) -> String {
    let program = words.first().map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
    shell::line(&program.into_iter().chain(words.iter().skip(1).cloned()).collect::<Vec<_>>())
}

/// Returns the command that shows the full report.
pub(crate) fn how_to_see_all(report: &Report) -> String {
    session_id(report)
        .map_or_else(|| "--verbose shows them".into(), |id| format!("fathom show {id} --verbose"))
}

/// Returns the id of the session.
pub(crate) fn session_id(report: &Report) -> Option<String> {
    let session = report.session.as_deref()?;
    Some(Path::new(session).file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

/// Describes a failure in a sentence.
pub(crate) fn describe_failure(of: &Verified, failed: &Failed) -> String {
    let Failed { kind, at, result } = *failed;
    let what = match kind {
        Kind::Sync => format!("sync after write {at}"),
        _ => format!("offset {at}: {}", kind.word()),
    };
    if result < 0 {
        let error = std::io::Error::from_raw_os_error(result.saturating_neg());
        return format!("{what} failed: {error}");
    }
    format!("{what} moved {result} of {} bytes", of.verification.block_bytes)
}

/// Returns the notes that qualify the numbers of a verification.
pub(crate) fn verification_notes(of: &Verified) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((read, _)) = &of.read {
        let whose = of.read_of.as_ref().map_or(String::new(), |host| format!("what {host} wrote was "));
        notes.push(format!("{whose}read back from {}", of.source));
        notes.extend(read_notes(read));
    }
    if let Some(state) = &of.state {
        let target = &of.target;
        notes.push(format!(
            "what must be there is kept in {state}; `fathom verify --check {state} {target}` asks for it again"
        ));
    }
    notes.extend(of.notes.iter().map(|n| n.trim_end_matches('.').to_owned()));
    notes
}

fn read_notes(read: &ReadBack) -> Vec<String> {
    let mut notes = Vec::new();
    let count = |n: u64| show_count(n as f64);
    if read.unwritten > 0 {
        notes.push(format!("blocks never written, and so not read: {}", count(read.unwritten)));
    }
    if read.newer > 0 {
        notes.push(format!(
            "blocks that hold a write from after the last known sync, which is allowed and not guaranteed: {}",
            count(read.newer)
        ));
    }
    if read.partials > 0 {
        let places: Vec<String> = read.partial.iter().map(u64::to_string).collect();
        let more = if read.partials > places.len() as u64 { " and more" } else { "" };
        notes.push(format!(
            "blocks torn between the stable data and a write that was in flight after the last known sync, \
             which is allowed to be incomplete: {}, at offsets {}{more}",
            count(read.partials),
            places.join(" ")
        ));
    }
    notes
}

#[test]
fn the_command_uses_the_name_of_the_program() {
    let words = ["/usr/bin/fathom", "run", "it's a disk"].map(str::to_owned);
    assert_eq!(command_line(&words), r"fathom run 'it'\''s a disk'");
    assert_eq!(command_line(&[]), "");
}
