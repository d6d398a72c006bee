//! Showing intervals one behind the other: on the whole terminal or as lines on standard output, and in files that are renewed.
//!
//! For: when names of columns stand above, and that it ends where nobody reads any more. Not for: layout (crate `report`).

use super::Request;
use super::targets::Target;
use crate::failure::Failure;
use crate::live::{KeyAction, Watching};
use crate::output::{self, Outlet, Rules};
use crate::spared::Spared;
use crate::stdout;
use model::name;
use model::watch::Watched;
use report::{Format, Style, TEXT};
use std::path::Path;

/// The extension of files that are renewed.
const RENEWED: &str = "prom";

/// Where intervals are shown.
pub(super) struct Shown {
    format: &'static Format,
    /// Whether standard output gets anything: what is meant for a file alone does not stand there too.
    printed: bool,
    outlets: Vec<Outlet>,
    rules: Rules,
    /// The terminal, where it is drawn on.
    view: Option<Watching>,
    /// Lines since the names of columns stood above, and those of the last interval; `None` before the first.
    lines: Option<(usize, usize)>,
}

impl Shown {
    /// Decides where everything goes.
    ///
    /// # Errors
    /// For files that are not renewed, and as [`output::decide_all`].
    pub(super) fn new(request: &Request, targets: &[Target]) -> Result<Self, Failure> {
        if let Some(other) = request.outputs.iter().find(|path| renewed(path).is_none()) {
            return Err(Failure::Usage(format!(
                "-o {}: a file is renewed at every interval, which only .{RENEWED} is for; send other formats there by \
                 `fathom watch --format csv > FILE`",
                name::shown(other)
            )));
        }
        let rules = Rules { flag: "-o", spared: spared(targets), replace: request.replace };
        let outlets = output::decide_all(&request.outputs, &rules)?;
        let is_file_only = request.format.extension == RENEWED && !outlets.is_empty();
        Ok(Self { format: request.format, printed: !is_file_only, outlets, rules, view: None, lines: None })
    }

    /// Takes the terminal, where that is what is printed on, somebody looks at it, and it goes on until it is ended.
    ///
    /// # Errors
    /// Where signals cannot be taken.
    pub(super) fn begin(&mut self, request: &Request) -> Result<(), Failure> {
        let is_lines = self.format.name != TEXT.name || request.count.is_some() || request.plain;
        if self.printed && !is_lines {
            self.view = Watching::start(request.interval)
                .map_err(|e| Failure::Refused(format!("signals cannot be taken: {e}{}", sys::cause(&e))))?;
        }
        Ok(())
    }

    /// Does what was typed; whether that was not the end.
    pub(super) fn obey(&mut self) -> bool {
        match self.view.as_mut().map_or(KeyAction::Nothing, Watching::obey) {
            KeyAction::Nothing => true,
            KeyAction::End => false,
            KeyAction::Plain => {
                self.view = None;
                true
            }
        }
    }

    /// Shows an interval; whether anybody reads still.
    ///
    /// # Errors
    /// Where a file, or standard output, cannot be written.
    pub(super) fn show(&mut self, mut watched: Watched) -> Result<bool, Failure> {
        watched.headed = self.is_headed();
        for outlet in &self.outlets {
            let format = renewed(outlet.said()).unwrap_or(self.format);
            outlet.write(&stdout::rendered(format, &watched, Style::default())?, &self.rules)?;
        }
        if let Some(view) = &mut self.view {
            view.show(&watched);
            return Ok(true);
        }
        if !self.printed {
            return Ok(true);
        }
        let Some(lines) = stdout::part(self.format, &watched)? else { return Ok(false) };
        let since = self.lines.filter(|_| !watched.headed).map_or(0, |(since, _)| since);
        self.lines = Some((since + lines, lines));
        Ok(true)
    }

    /// Whether names of columns stand above the next interval: at the beginning, and where those before leave the screen.
    fn is_headed(&self) -> bool {
        let Some((since, last)) = self.lines else { return true };
        stdout::rows().is_some_and(|rows| since + last >= rows)
    }
}

/// The format of a file that is renewed; `None` for all others.
fn renewed(path: &Path) -> Option<&'static Format> {
    report::by_extension::<Watched>(path).filter(|format| format.extension == RENEWED)
}

/// What is watched is never written over.
fn spared(targets: &[Target]) -> Spared {
    let mut spared = Spared::default();
    for target in targets {
        spared.add(&target.said, "watched by this call");
        for layer in &target.place.layers {
            if let Some(file) = &layer.backing_file {
                spared.add(Path::new(file), &format!("the file behind {}, which is watched", layer.name));
            }
        }
    }
    spared
}
