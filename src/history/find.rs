//! Finding: from a word that a person can type to the session that it means.
//!
//! A word is a path, an id, `last` or `last~N`, a tag, or a part of an id, in this order. `last` counts back from the newest session that
//! has ended: a session that is still measured is left out, and named on standard error.

use super::files::Files;
use super::filter::Filter;
use super::index;
use crate::failure::Failure;
use crate::{session, stderr};
use model::record::Record;
use std::path::{Path, PathBuf};

/// Ids that are named where a word means several.
const NAMED: usize = 5;

/// The session file that a word means: a path; an id; `last`, or `last~2` for the second before; a tag that only one session
/// has; or any part of an id that only one has.
///
/// # Errors
/// [`Failure::Usage`] where there is none or several, with what could be typed instead.
pub fn find(word: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(word);
    if path.is_file() || word.contains('/') {
        return Ok(path.to_owned());
    }
    if let Some(path) = Files::find_file(word) {
        return Ok(path);
    }
    let files = Files::scan();
    find_in(&files, word).map(|id| files.by_id[&id].path.clone())
}

/// Id and record of the newest session that measured exactly this path; `None` where none did.
///
/// # Errors
/// Why the history, or that session, cannot be read.
pub fn last_on(path: &str) -> Result<Option<(String, Record)>, Failure> {
    let files = Files::scan();
    let named = Filter { target: Some(path.into()), ..Filter::default() };
    let entries = index::with(&files, |index| index.entries(&named, None))?;
    let Some(entry) = entries.into_iter().find(|e| e.targets.iter().any(|t| t == path)) else {
        return Ok(None);
    };
    let record = session::load(&files.by_id[&entry.id].path)
        .map_err(|why| Failure::Refused(format!("session {}: {why}", entry.id)))?;
    Ok(Some((entry.id, record)))
}

/// The id of the session that a word means; it is among the files.
pub(super) fn find_in(files: &Files, word: &str) -> Result<String, Failure> {
    if files.by_id.contains_key(word) {
        return Ok(word.to_owned());
    }
    if let Some(back) = back_from_last(word)? {
        let newest_first = index::with(files, |index| index.ids(&Filter::default()))?;
        return ended(files, newest_first, (word, back));
    }
    let tagged =
        index::with(files, |index| index.ids(&Filter { tag: Some(word.into()), ..Filter::default() }))?;
    if !tagged.is_empty() {
        return only(word, "that tag", tagged);
    }
    let parts: Vec<String> =
        files.by_id.keys().filter(|id| !word.is_empty() && id.contains(word)).cloned().collect();
    if parts.is_empty() {
        let similar = nearest(files, word).map_or_else(String::new, |id| format!("type {id}, or "));
        let why = format!("no file, tag or session has this name; {similar}type `fathom list` to see all");
        return Err(usage(word, &why));
    }
    only(word, "that in their id", parts)
}

/// The id most similar to a misspelt one; `last` is one of them.
fn nearest<'f>(files: &'f Files, word: &'f str) -> Option<&'f str> {
    const LIKENESS: f64 = 0.75;
    let ids = files.by_id.keys().map(String::as_str).chain(["last"]);
    let alike = ids.map(|id| (strsim::normalized_damerau_levenshtein(word, id), id));
    alike.filter(|(likeness, _)| *likeness >= LIKENESS).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, id)| id)
}

/// The session `back` before the newest one that has ended.
fn ended(files: &Files, newest_first: Vec<String>, (word, back): (&str, u32)) -> Result<String, Failure> {
    let mut running = Vec::new();
    let mut left = back;
    for id in newest_first {
        let Some(found) = files.by_id.get(&id) else { continue };
        if let Some(words) = session::running(&found.path) {
            running.push(format!("{id} is {words}"));
        } else if left > 0 {
            left -= 1;
        } else {
            for words in &running {
                stderr::say(&format!(
                    "fathom: {words}; {word} is {id}, since only sessions that have ended count"
                ));
            }
            return Ok(id);
        }
    }
    match running.first() {
        Some(words) if running.len() == files.by_id.len() => {
            Err(Failure::Refused(format!("{word}: {words}, and no other session is there")))
        }
        Some(words) => {
            let ended = how_many(files.by_id.len() - running.len());
            Err(usage(word, &format!("{words}, and of those that have ended {ended}")))
        }
        None => Err(usage(word, &how_many(files.by_id.len()))),
    }
}

/// How many sessions before the newest is meant; `None` where the word is no such one.
fn back_from_last(word: &str) -> Result<Option<u32>, Failure> {
    match word.split_once('~') {
        None if word == "last" => Ok(Some(0)),
        Some(("last", back)) => {
            let why = "a number must follow last~; type last~1, or another number";
            back.parse().map(Some).map_err(|_| usage(word, why))
        }
        _ => Ok(None),
    }
}

/// The only one of them.
fn only(word: &str, what: &str, mut ids: Vec<String>) -> Result<String, Failure> {
    match ids.len() {
        1 => Ok(ids.remove(0)),
        n => {
            let more = if n > NAMED { ", ..." } else { "" };
            ids.truncate(NAMED);
            Err(usage(
                word,
                &format!("{n} sessions have {what}; type the id of one: {}{more}", ids.join(", ")),
            ))
        }
    }
}

fn how_many(sessions: usize) -> String {
    match sessions {
        0 => "there are no sessions yet; `fathom bench` makes one".into(),
        1 => "there is one session".into(),
        n => format!("there are {n} sessions"),
    }
}

fn usage(word: &str, why: &str) -> Failure {
    Failure::Usage(format!("{word}: {why}"))
}
