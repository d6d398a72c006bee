//! Chooses how progress is displayed, from the options, the expected duration, and what standard
//! error is.

use crate::terminal;
use crate::terminal::Theme;
use model::plan::ExpectedCost;
use output::failure::Failure;
use output::stdout;
use rustix::fs::FileType;
use std::io::IsTerminal;
use std::time::Duration;

/// Minimum expected duration for which the view appears by default. A shorter measurement would end before the user could read the view.
const VIEW_TIME_MIN: Duration = Duration::from_secs(5);
/// Minimum terminal size, in columns and rows, on which the view appears by default.
const VIEW_SIZE_MIN: (u16, u16) = (40, 10);

/// The progress options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgressMode {
    /// No option: standard error and the expected duration decide.
    #[default]
    Auto,
    /// `--live`.
    View,
    /// `--no-live`.
    Plain,
    /// No output (`--quiet`).
    Quiet,
}

/// The chosen display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisplayKind {
    View(Theme),
    /// One line that changes.
    ProgressLine,
    /// A line per step.
    Lines,
    Quiet,
}

/// The properties of the environment that decide the display.
#[derive(Clone, Copy, Debug)]
struct DisplayEnvironment {
    kind: StandardError,
    /// Whether fathom is in the foreground of its controlling terminal, or has no controlling terminal.
    is_ours: bool,
    /// Whether standard output is a pipe. Its reader may use the terminal, as `less` does.
    stdout_is_pipe: bool,
    /// Whether fathom runs in continuous integration, where no user sees the terminal.
    is_ci: bool,
    /// Columns and rows.
    size: (u16, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StandardError {
    /// A file, a pipe or another stream.
    Stream,
    /// A terminal that cannot position text, according to TERM.
    Dumb,
    Terminal,
}

impl DisplayEnvironment {
    fn detect() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self {
            kind: match (std::io::stderr().is_terminal(), stdout::can_place_text()) {
                (false, _) => StandardError::Stream,
                (true, false) => StandardError::Dumb,
                (true, true) => StandardError::Terminal,
            },
            is_ours: terminal::is_ours(),
            stdout_is_pipe: rustix::fs::fstat(rustix::stdio::stdout())
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo),
            is_ci: set("CI"),
            size: terminal::size(),
        }
    }

    /// Returns why a view is impossible; `None` if it is possible.
    fn view_obstacle(self) -> Option<&'static str> {
        match self.kind {
            StandardError::Stream => Some("standard error is not a terminal"),
            StandardError::Dumb => Some("TERM is not set or is `dumb`"),
            StandardError::Terminal if !self.is_ours => {
                Some("fathom was started in the background of its terminal")
            }
            StandardError::Terminal => None,
        }
    }

    /// Whether the terminal suits a view by default. The view also requires a measurement that
    /// takes at least [`VIEW_TIME_MIN`].
    fn suits_view(self) -> bool {
        let ((columns, rows), (least_columns, least_rows)) = (self.size, VIEW_SIZE_MIN);
        let is_large = columns >= least_columns && rows >= least_rows;
        self.view_obstacle().is_none() && is_large && !self.is_ci && !self.stdout_is_pipe
    }

    fn plain(self) -> DisplayKind {
        if self.kind == StandardError::Terminal && !self.is_ci {
            DisplayKind::ProgressLine
        } else {
            DisplayKind::Lines
        }
    }

    fn choose(
        self,
        mode: ProgressMode,
        cost: &ExpectedCost,
        theme: Theme,
    ) -> Result<DisplayKind, &'static str> {
        let why = self.view_obstacle();
        Ok(match mode {
            ProgressMode::Quiet => DisplayKind::Quiet,
            ProgressMode::Plain => self.plain(),
            ProgressMode::View => why.map_or(Ok(DisplayKind::View(theme)), Err)?,
            ProgressMode::Auto => {
                let wanted = self.suits_view() && Duration::from_nanos(cost.time_ns) >= VIEW_TIME_MIN;
                if wanted { DisplayKind::View(theme) } else { self.plain() }
            }
        })
    }
}

/// Chooses the display for a measurement of this cost.
pub(super) fn choose(mode: ProgressMode, cost: &ExpectedCost) -> Result<DisplayKind, Failure> {
    DisplayEnvironment::detect().choose(mode, cost, Theme::from_environment()).map_err(|why| {
        Failure::Usage(format!("--live: {why}; without --live progress is printed in plain lines"))
    })
}

/// Returns the theme for the view of `fathom watch`; `None` if standard output is not a terminal,
/// or standard error does not suit a view by default.
pub(super) fn watch_theme() -> Option<Theme> {
    let environment = DisplayEnvironment::detect();
    (std::io::stdout().is_terminal() && environment.suits_view()).then(Theme::from_environment)
}

/// Returns the display without a view: nothing if `quiet`, otherwise a progress line or one line per step.
pub(super) fn plain(quiet: bool) -> DisplayKind {
    if quiet { DisplayKind::Quiet } else { DisplayEnvironment::detect().plain() }
}

#[cfg(test)]
const TERMINAL: DisplayEnvironment = DisplayEnvironment {
    kind: StandardError::Terminal,
    is_ours: true,
    stdout_is_pipe: false,
    is_ci: false,
    size: (80, 24),
};
#[cfg(test)]
const THEME: Theme = Theme { unicode: true, colours: true };

#[test]
fn view_appears_by_default_on_a_suitable_terminal() {
    let minute = ExpectedCost { time_ns: 60_000_000_000, ..ExpectedCost::default() };
    let choose = |environment: DisplayEnvironment| environment.choose(ProgressMode::Auto, &minute, THEME);
    assert_eq!(choose(TERMINAL), Ok(DisplayKind::View(THEME)));
    assert_eq!(choose(DisplayEnvironment { is_ci: true, ..TERMINAL }), Ok(DisplayKind::Lines));
    for other in [
        DisplayEnvironment { size: (39, 24), ..TERMINAL },
        DisplayEnvironment { size: (80, 9), ..TERMINAL },
        DisplayEnvironment { is_ours: false, ..TERMINAL },
        DisplayEnvironment { stdout_is_pipe: true, ..TERMINAL },
    ] {
        assert_eq!(choose(other), Ok(DisplayKind::ProgressLine), "{other:?}");
    }
    for other in [
        DisplayEnvironment { kind: StandardError::Stream, ..TERMINAL },
        DisplayEnvironment { kind: StandardError::Dumb, ..TERMINAL },
    ] {
        assert_eq!(choose(other), Ok(DisplayKind::Lines), "{other:?}");
    }
    let short = ExpectedCost { time_ns: 3_000_000_000, ..ExpectedCost::default() };
    assert_eq!(TERMINAL.choose(ProgressMode::Auto, &short, THEME), Ok(DisplayKind::ProgressLine));
}

#[test]
fn progress_options_are_obeyed_or_refused() {
    let short = ExpectedCost::default();
    let choose = |environment: DisplayEnvironment, mode| environment.choose(mode, &short, THEME);
    assert_eq!(choose(TERMINAL, ProgressMode::View), Ok(DisplayKind::View(THEME)));
    assert_eq!(
        choose(DisplayEnvironment { is_ci: true, size: (20, 5), ..TERMINAL }, ProgressMode::View),
        Ok(DisplayKind::View(THEME))
    );
    assert!(
        choose(DisplayEnvironment { kind: StandardError::Stream, ..TERMINAL }, ProgressMode::View).is_err()
    );
    assert!(
        choose(DisplayEnvironment { kind: StandardError::Dumb, ..TERMINAL }, ProgressMode::View).is_err()
    );
    assert_eq!(choose(TERMINAL, ProgressMode::Plain), Ok(DisplayKind::ProgressLine));
    assert_eq!(choose(TERMINAL, ProgressMode::Quiet), Ok(DisplayKind::Quiet));
}
