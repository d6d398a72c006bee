//! A command line as it is typed.
//!
//! For: telling how a report was made, and how to see all of it. Not for: running anything.

use model::report::Report;
use std::path::Path;

/// The words in one line, the program by its name and what a shell would read otherwise in quotes.
pub(crate) fn line(words: &[String]) -> String {
    let program = words.first().map(|path| path.rsplit('/').next().unwrap_or_default());
    let rest = words.iter().skip(1).map(|word| quoted(word));
    program.map(quoted).into_iter().chain(rest).collect::<Vec<_>>().join(" ")
}

/// The command that shows what is left out.
pub(crate) fn how_to_see_all(report: &Report) -> String {
    id(report).map_or_else(|| "--verbose shows them".into(), |id| format!("fathom show {id} --verbose"))
}

/// The id of its session.
pub(crate) fn id(report: &Report) -> Option<String> {
    let session = report.session.as_deref()?;
    Some(Path::new(session).file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[test]
fn a_shell_reads_the_same_words_again() {
    let words = ["/usr/bin/fathom", "run", "--mix", "70%", "it's a disk", "", "$HOME"].map(str::to_owned);
    assert_eq!(line(&words), r"fathom run --mix 70% 'it'\''s a disk' '' '$HOME'");
    assert_eq!(line(&[]), "");
}
