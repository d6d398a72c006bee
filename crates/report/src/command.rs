//! A command line as it is typed.
//!
//! For: telling how a report was made, and how to see all of it. Not for: running anything.

use model::report::Report;
use model::shell;
use std::path::Path;

/// The words in one line, the program by its name and what a shell would read otherwise in quotes.
pub(crate) fn command_line(words: &[String]) -> String {
    let program = words.first().map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
    shell::line(&program.into_iter().chain(words.iter().skip(1).cloned()).collect::<Vec<_>>())
}

/// The command that shows what is left out.
pub(crate) fn how_to_see_all(report: &Report) -> String {
    session_id(report)
        .map_or_else(|| "--verbose shows them".into(), |id| format!("fathom show {id} --verbose"))
}

/// The id of its session.
pub(crate) fn session_id(report: &Report) -> Option<String> {
    let session = report.session.as_deref()?;
    Some(Path::new(session).file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

#[test]
fn the_program_is_called_by_its_name() {
    let words = ["/usr/bin/fathom", "run", "it's a disk"].map(str::to_owned);
    assert_eq!(command_line(&words), r"fathom run 'it'\''s a disk'");
    assert_eq!(command_line(&[]), "");
}
