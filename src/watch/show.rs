//! Shows intervals one after another: on the whole terminal or as lines on standard output, in files that are renewed at every interval
//! (`.prom`), and on pages of the load over time (`.html`), which are written again every few seconds and at the end.

use super::Request;
use super::targets::Target;
use crate::failure::Failure;
use crate::live::{KeyAction, Watching};
use crate::output::{self, Outlet, Rules};
use crate::spared::Spared;
use crate::stdout;
use analysis::watch::over_time;
use model::name;
use model::watch::{LoadOverTime, Watched};
use report::{Format, Style, TEXT};
use std::path::Path;
use std::time::{Duration, Instant};

/// The extension of files that are renewed.
const RENEWED: &str = "prom";

/// Time between two versions of a page: writing one at every interval would be a load itself.
const PAGE_EVERY: Duration = Duration::from_secs(10);

/// The pages of the load over time.
struct Pages {
    outlets: Vec<Outlet>,
    load: LoadOverTime,
    begun: Instant,
    /// The end of the last interval in s since watching began.
    last_end_s: f64,
    written: Instant,
}

/// Where intervals are shown.
pub(super) struct Shown {
    format: &'static Format,
    /// Whether standard output gets anything: what is meant for a file alone does not stand there too.
    printed: bool,
    outlets: Vec<Outlet>,
    pages: Pages,
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
        let is_file = |path: &Path| renewed(path).is_some() || page(path).is_some();
        if let Some(other) = request.outputs.iter().find(|path| !is_file(path)) {
            return Err(Failure::Usage(format!(
                "-o {}: -o writes FILE.{RENEWED}, renewed at every interval, or FILE.html, a page of the load over time; send other \
                 formats to a file by `fathom watch --format csv > FILE`",
                name::shown(other)
            )));
        }
        let rules = Rules { flag: "-o", spared: spared(targets), replace: request.replace };
        let outlets = output::decide_all(&request.outputs, &rules)?;
        let (pages, outlets): (Vec<Outlet>, Vec<Outlet>) =
            outlets.into_iter().partition(|outlet| page(outlet.path_as_typed()).is_some());
        let targets = request.targets.iter().map(name::text).collect();
        let now = Instant::now();
        let pages = Pages {
            outlets: pages,
            load: LoadOverTime { targets, ..LoadOverTime::default() },
            begun: now,
            last_end_s: 0.0,
            written: now,
        };
        let is_file_only = request.format.extension == RENEWED && !outlets.is_empty();
        let printed = !is_file_only;
        Ok(Self { format: request.format, printed, outlets, pages, rules, view: None, lines: None })
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
            let format = renewed(outlet.path_as_typed()).unwrap_or(self.format);
            outlet.write(&stdout::rendered(format, &watched, Style::default())?, &self.rules)?;
        }
        self.pages.add(&watched);
        if self.pages.written.elapsed() >= PAGE_EVERY {
            self.write_pages()?;
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

    /// Writes the pages of the load so far.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn write_pages(&mut self) -> Result<(), Failure> {
        for outlet in &self.pages.outlets {
            let Some(format) = page(outlet.path_as_typed()) else { continue };
            outlet.write(&stdout::rendered(format, &self.pages.load, Style::default())?, &self.rules)?;
        }
        self.pages.written = Instant::now();
        Ok(())
    }

    /// Whether names of columns stand above the next interval: at the beginning, and where those before leave the screen.
    fn is_headed(&self) -> bool {
        let Some((since, last)) = self.lines else { return true };
        stdout::screen_rows().is_some_and(|rows| since + last >= rows)
    }
}

impl Pages {
    fn add(&mut self, watched: &Watched) {
        if self.outlets.is_empty() {
            return;
        }
        let end_s = self.begun.elapsed().as_secs_f64();
        over_time::add(&mut self.load, watched, [self.last_end_s, end_s]);
        self.last_end_s = end_s;
    }
}

/// The format of a page of the load over time; `None` for all other files.
fn page(path: &Path) -> Option<&'static Format> {
    report::by_extension::<LoadOverTime>(path)
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
