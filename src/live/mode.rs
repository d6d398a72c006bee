//! How progress is shown: what was asked for, and what standard error is.
//!
//! For: the choice between the view, one line that changes, plain lines and nothing. Not for: what any of them shows.

use super::look::Look;
use super::terminal;
use crate::failure::Failure;
use crate::stdout;
use model::cost::Cost;
use rustix::fs::FileType;
use std::io::IsTerminal;
use std::time::Duration;

/// Shortest measurement that the view comes up for by itself: it would be gone before anybody has read it.
const WORTH_A_VIEW: Duration = Duration::from_secs(5);
/// Columns and rows from which it does.
const LARGE_ENOUGH: (u16, u16) = (40, 10);

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: what suits standard error and the length of the measurement.
    #[default]
    Auto,
    /// `--live`.
    View,
    /// `--no-live`.
    Plain,
    /// That nobody watches (`--quiet`).
    Quiet,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    View(Look),
    /// One line that changes.
    Bar,
    /// A line per step.
    Lines,
    Quiet,
}

/// What standard error is, as far as it matters here.
#[derive(Clone, Copy, Debug)]
struct Place {
    kind: StandardError,
    /// Keys are typed to us, and not to whoever started us in the background.
    is_ours: bool,
    /// Somebody reads standard output as it comes, who may want the terminal for himself, as `less` does.
    is_read: bool,
    /// Continuous integration: a terminal that nobody sees.
    is_ci: bool,
    /// Columns and rows.
    size: (u16, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StandardError {
    /// A file, a pipe, or anything else that nobody looks at as it is written.
    Stream,
    /// A terminal that cannot place text, as far as its name says.
    Dumb,
    Terminal,
}

impl Place {
    fn detect() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self {
            kind: match (std::io::stderr().is_terminal(), stdout::places_text()) {
                (false, _) => StandardError::Stream,
                (true, false) => StandardError::Dumb,
                (true, true) => StandardError::Terminal,
            },
            is_ours: terminal::is_ours(),
            is_read: rustix::fs::fstat(rustix::stdio::stdout())
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo),
            is_ci: set("CI"),
            size: terminal::size(),
        }
    }

    /// Why there can be no view.
    fn without_view(self) -> Option<&'static str> {
        match self.kind {
            StandardError::Stream => Some("standard error is not a terminal"),
            StandardError::Dumb => Some("TERM is not set, or says that the terminal is a dumb one"),
            StandardError::Terminal if !self.is_ours => {
                Some("fathom was started in the background of its terminal")
            }
            StandardError::Terminal => None,
        }
    }

    /// Whether somebody sees it, and reads nothing else of us.
    fn is_watched(self) -> bool {
        let large = self.size.0 >= LARGE_ENOUGH.0 && self.size.1 >= LARGE_ENOUGH.1;
        self.without_view().is_none() && large && !self.is_ci && !self.is_read
    }

    fn plain(self) -> Manner {
        if self.kind == StandardError::Terminal && !self.is_ci { Manner::Bar } else { Manner::Lines }
    }

    fn choose(self, mode: Progress, cost: &Cost, look: Look) -> Result<Manner, &'static str> {
        let why = self.without_view();
        Ok(match mode {
            Progress::Quiet => Manner::Quiet,
            Progress::Plain => self.plain(),
            Progress::View => why.map_or(Ok(Manner::View(look)), Err)?,
            Progress::Auto => {
                let wanted = self.is_watched() && takes(cost) >= WORTH_A_VIEW;
                if wanted { Manner::View(look) } else { self.plain() }
            }
        })
    }
}

/// What is chosen for a measurement that takes so much.
pub(super) fn choose(mode: Progress, cost: &Cost) -> Result<Manner, Failure> {
    Place::detect().choose(mode, cost, Look::here()).map_err(|why| {
        Failure::Usage(format!("--live: {why}; leave it out, and progress is printed in plain lines"))
    })
}

/// How the view of what goes on on the machine looks; `None` where nobody looks at standard output and error as one terminal.
pub(super) fn of_watching() -> Option<Look> {
    let place = Place::detect();
    (std::io::stdout().is_terminal() && place.is_watched()).then(Look::here)
}

/// How progress is shown where there is no view: not at all where `quiet`, else in one line that changes or a line per step.
pub(super) fn plain(quiet: bool) -> Manner {
    if quiet { Manner::Quiet } else { Place::detect().plain() }
}

/// How long it takes at least, as far as anybody knows before.
fn takes(cost: &Cost) -> Duration {
    Duration::from_nanos(cost.time_ns)
}

#[cfg(test)]
const TERMINAL: Place =
    Place { kind: StandardError::Terminal, is_ours: true, is_read: false, is_ci: false, size: (80, 24) };
#[cfg(test)]
const LOOK: Look = Look { unicode: true, colours: true };

#[test]
fn the_view_comes_by_itself_where_somebody_can_read_it() {
    let minute = Cost { time_ns: 60_000_000_000, ..Cost::default() };
    let of = |place: Place| place.choose(Progress::Auto, &minute, LOOK);
    assert_eq!(of(TERMINAL), Ok(Manner::View(LOOK)));
    assert_eq!(of(Place { is_ci: true, ..TERMINAL }), Ok(Manner::Lines));
    for other in [
        Place { size: (39, 24), ..TERMINAL },
        Place { size: (80, 9), ..TERMINAL },
        Place { is_ours: false, ..TERMINAL },
        Place { is_read: true, ..TERMINAL },
    ] {
        assert_eq!(of(other), Ok(Manner::Bar), "{other:?}");
    }
    for other in
        [Place { kind: StandardError::Stream, ..TERMINAL }, Place { kind: StandardError::Dumb, ..TERMINAL }]
    {
        assert_eq!(of(other), Ok(Manner::Lines), "{other:?}");
    }
    let short = Cost { time_ns: 3_000_000_000, ..Cost::default() };
    assert_eq!(TERMINAL.choose(Progress::Auto, &short, LOOK), Ok(Manner::Bar));
}

#[test]
fn what_was_said_is_done_or_refused() {
    let short = Cost::default();
    let of = |place: Place, mode| place.choose(mode, &short, LOOK);
    assert_eq!(of(TERMINAL, Progress::View), Ok(Manner::View(LOOK)));
    assert_eq!(of(Place { is_ci: true, size: (20, 5), ..TERMINAL }, Progress::View), Ok(Manner::View(LOOK)));
    assert!(of(Place { kind: StandardError::Stream, ..TERMINAL }, Progress::View).is_err());
    assert!(of(Place { kind: StandardError::Dumb, ..TERMINAL }, Progress::View).is_err());
    assert_eq!(of(TERMINAL, Progress::Plain), Ok(Manner::Bar));
    assert_eq!(of(TERMINAL, Progress::Quiet), Ok(Manner::Quiet));
}
