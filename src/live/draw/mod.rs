//! Drawing: a state as characters on a screen of any size.
//!
//! For: what stands where, from 120 columns down to 40 and from 40 rows down to 10; less shows what fits. Not for: the state
//! ([`super::state`]), nor when it is drawn.

mod figures;
mod hosts;
mod observed;
mod table;
#[cfg(test)]
mod tests;

use super::left::Left;
use super::look::Look;
use super::state::{CountedFinding, End, State};
use figures::draw_figures;
use hosts::draw_hosts;
use model::finding::Severity;
use model::units::show_share;
use model::visible::visible;
pub(super) use observed::draw_observed;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use table::draw_results;

/// Columns below which words are shortened.
const NARROW: u16 = 60;
/// Rows from which parts are set apart by a blank one.
const AIRY: u16 = 20;
/// What help says, a line for each.
const HELP: [&str; 9] = [
    "q  end after this run; once more: at once. What was measured is kept, and the report follows",
    "p  go to the plain progress",
    "h  leave this help",
    "Ctrl-C ends at once, Ctrl-Z stops",
    "",
    "-          not known, or too few operations to say",
    "p50, p99   of all operations that completed since this was last drawn",
    "pressure   time in which a task of the machine waited for it (PSI)",
    "others     what is not charged to fathom on the disks of the targets",
];

/// Colours by what they stand for; none where there are none.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn style(self, colour: Color) -> Style {
        if self.0 { Style::new().fg(colour) } else { Style::new() }
    }

    fn title(self) -> Style {
        self.style(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    fn label(self) -> Style {
        self.style(Color::DarkGray)
    }

    fn course(self) -> Style {
        self.style(Color::Cyan)
    }

    fn bad(self, severity: Option<Severity>) -> Style {
        self.style(if severity <= Some(Severity::Rename) { Color::Red } else { Color::Yellow })
    }
}

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame, state: &State, look: Look) {
    let paint = Paint(look.colours);
    let mut rest = frame.area();
    let airy = rest.height >= AIRY;
    let top = take(&mut rest, 1);
    title(frame, top, state, paint);
    let at = take(&mut rest, 1);
    gauge(frame, at, state, look);
    if airy {
        take(&mut rest, 1);
    }
    let foot = Rect { y: rest.bottom().saturating_sub(1), height: rest.height.min(1), ..rest };
    rest.height = rest.height.saturating_sub(1);
    if state.help {
        let lines: Vec<Line> = HELP.iter().map(|l| Line::raw(*l)).collect();
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), rest);
    } else {
        draw_figures(frame, &mut rest, state, look);
        if airy {
            take(&mut rest, 1);
        }
        draw_hosts(frame, &mut rest, state, paint);
        findings(frame, &mut rest, state, paint);
        draw_results(frame, rest, state, paint);
    }
    footer(frame, foot, state, paint);
    if !look.unicode {
        only_ascii(frame);
    }
}

/// The uppermost rows of what is left, as far as there are some.
fn take(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let taken = Rect { height: rows, ..*rest };
    (rest.y, rest.height) = (rest.y + rows, rest.height - rows);
    taken
}

/// Text that does nothing to a terminal, in no more columns than there are.
fn fitting(text: &str, columns: usize) -> String {
    let shown = visible(text).replace(['\n', '\t'], " ");
    let width = Span::raw(shown.as_str()).width();
    if width <= columns {
        return shown;
    }
    let mut out = String::new();
    let mut used = 0;
    for c in shown.chars() {
        used += Span::raw(c.to_string()).width();
        if used + 2 > columns {
            break;
        }
        out.push(c);
    }
    out + &".."[..columns.min(2)]
}

fn title(frame: &mut Frame, at: Rect, state: &State, paint: Paint) {
    let left = state.left.map_or_else(|| "-".to_owned(), Left::describe);
    let room = usize::from(at.width).saturating_sub(left.len() + 2);
    let narrow = at.width < NARROW;
    let name = if narrow { "" } else { "fathom  " };
    let step = if state.step.is_empty() { "preparing" } else { &state.step };
    let words = fitting(step, room.saturating_sub(name.len()));
    frame.render_widget(Line::styled(format!("{name}{words}"), paint.title()), at);
    frame.render_widget(Line::raw(left).right_aligned(), at);
}

/// How far the step is.
fn gauge(frame: &mut Frame, at: Rect, state: &State, look: Look) {
    let (done, total) = state.done;
    let share = (total > 0).then(|| done.min(total) as f64 / total as f64);
    let words = share.map_or_else(|| "-".to_owned(), show_share);
    let width = usize::from(at.width).saturating_sub(8);
    let filled = (share.unwrap_or(0.0) * width as f64) as usize;
    let [full, empty] = look.gauge();
    let line = format!("{}{} {words:>6}", full.repeat(filled), empty.repeat(width - filled));
    frame.render_widget(Line::styled(line, Paint(look.colours).style(Color::Green)), at);
}

/// What is certain by now, worst first, and below it what was said beside it, in no more than a third of what is left.
fn findings(frame: &mut Frame, rest: &mut Rect, state: &State, paint: Paint) {
    let rows = rest.height;
    let most = if rows < 4 { 1 } else { rows.div_ceil(3) };
    let width = usize::from(rest.width);
    let mut lines: Vec<Line> = Vec::new();
    for found in &state.findings {
        let parts = wrapped(&finding_words(found), width);
        let room = usize::from(most) - lines.len().min(usize::from(most));
        // A sentence is told whole where it fits, and its beginning where it does not.
        let parts = if parts.len() > room { vec![fitting(&finding_words(found), width)] } else { parts };
        lines.extend(parts.into_iter().map(|l| Line::styled(l, paint.bad(found.finding.severity))));
    }
    let more = lines.len().saturating_sub(usize::from(most));
    lines.truncate(usize::from(most));
    if more > 0 && most > 1 {
        lines.pop();
        lines.push(Line::raw(format!("and {} more findings, in the report", more + 1)));
    }
    if rows >= AIRY / 2 {
        for note in &state.notes {
            let parts = wrapped(note, width);
            if lines.len() + parts.len() <= usize::from(most) {
                lines.extend(parts.into_iter().map(|l| Line::styled(l, paint.label())));
            }
        }
    }
    if lines.is_empty() {
        return;
    }
    let at = take(rest, lines.len() as u16);
    frame.render_widget(Paragraph::new(lines), at);
    if rows >= AIRY / 2 {
        take(rest, 1);
    }
}

/// `A04 HOLES_READ, 4K random read (2 runs): ...`.
fn finding_words(found: &CountedFinding) -> String {
    let finding = &found.finding;
    let runs = if found.runs > 1 { format!(" ({} runs)", found.runs) } else { String::new() };
    let (id, name, about) = (finding.id, &finding.name, finding.about.join(", "));
    format!("{id} {name}, {about}{runs}: {}", finding.sentence)
}

/// Text in lines of no more columns than there are, broken between words.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in visible(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if Span::raw(format!("{line} {word}")).width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {}", fitting(word, columns.saturating_sub(2)))),
            None => lines.push(fitting(word, columns)),
        }
    }
    lines
}

fn footer(frame: &mut Frame, at: Rect, state: &State, paint: Paint) {
    let words = match (state.end, at.width < NARROW) {
        (End::Now, _) => "ending",
        (End::AfterRun, true) => "ends after this run; q: at once",
        (End::AfterRun, false) => "ends after this run, with a report of what was measured; q again: at once",
        (End::No, true) => "q end  p plain  h help",
        (End::No, false) => "q end after this run   p plain progress   h help",
    };
    frame.render_widget(Line::styled(fitting(words, at.width.into()), paint.label()), at);
}

/// Leaves nothing but ASCII on the screen: names of users' files may hold anything.
fn only_ascii(frame: &mut Frame) {
    for cell in &mut frame.buffer_mut().content {
        if !cell.symbol().is_ascii() {
            cell.set_symbol("?");
        }
    }
}
