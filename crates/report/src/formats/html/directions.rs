//! Directions of operations: what each is called, and how it looks in every plot.
//!
//! For: one colour for one thing on the whole page. Not for: figures.

use model::report::{Figures, Measured};

/// Reads, writes, trims or syncs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    /// Its key in the report.
    pub(super) word: &'static str,
    /// Several of them.
    pub(super) words: &'static str,
    /// Looks of its line, of an area below it, of a band, and of words about it.
    pub(super) line: &'static str,
    pub(super) area: &'static str,
    pub(super) band: &'static str,
    pub(super) ink: &'static str,
}

const FIRST: Direction =
    Direction { word: "", words: "", line: "ours", area: "area", band: "band", ink: "of-ours" };
const SECOND: Direction =
    Direction { line: "third", area: "area of-third", band: "band of-third", ink: "of-third", ..FIRST };
const THIRD: Direction =
    Direction { line: "fourth", area: "area of-none", band: "band of-none", ink: "of-fourth", ..FIRST };
const FOURTH: Direction = Direction { line: "mean", ink: "", ..THIRD };

/// Those that a result has; the first one has our colour, whichever it is.
pub(super) fn result_directions(result: &Measured) -> impl Iterator<Item = Direction> {
    let all = [("read", "reads"), ("write", "writes"), ("trim", "trims"), ("sync", "syncs")];
    let has = all.into_iter().filter(|(word, _)| direction_figures(result, word).is_some());
    let looks = [FIRST, SECOND, THIRD, FOURTH];
    has.zip(looks)
        .map(|((word, words), looks)| Direction { word, words, ..looks })
        .collect::<Vec<_>>()
        .into_iter()
}

fn direction_figures<'r>(result: &'r Measured, word: &str) -> Option<&'r Figures> {
    match word {
        "read" => result.read.as_ref(),
        "write" => result.write.as_ref(),
        "trim" => result.trim.as_ref(),
        "sync" => result.sync.as_ref(),
        _ => None,
    }
}

impl Direction {
    /// What a result came to in it.
    pub(super) fn figures<'r>(&self, result: &'r Measured) -> Option<&'r Figures> {
        direction_figures(result, self.word)
    }

    /// Whether it has our colour.
    pub(super) fn is_first(&self) -> bool {
        self.line == FIRST.line
    }
}
