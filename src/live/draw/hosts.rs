//! Hosts: a row for each of several that measure.
//!
//! For: how far each is, those that need a look where not all have room. Not for: which those are (`crate::fleet`).

use super::table::table_row;
use super::{NARROW, Paint, take};
use crate::live::state::{HostRow, HostState, State};
use model::finding::Severity;
use model::units::{show_count, show_ns, show_rate};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

/// Columns, on a wide screen and on a narrow one.
const WIDE_HOST_HEADINGS: &[&str] = &["IOPS", "p99", "state"];
const NARROW_HOST_HEADINGS: &[&str] = &["IOPS", "state"];
/// Rows of what is left of the screen from which they have a title, and a blank row behind them.
const HOST_TITLE_ROWS: u16 = 6;

/// Draws them on the uppermost rows of what is left, half of it at most.
pub(super) fn draw_hosts(frame: &mut Frame, rest: &mut Rect, state: &State, paint: Paint) {
    let roomy = rest.height >= HOST_TITLE_ROWS;
    let room = usize::from(rest.height.div_ceil(2)).saturating_sub(if roomy { 2 } else { 0 });
    let shown = state.hosts.len().min(room);
    if shown == 0 {
        return;
    }
    let columns = if rest.width < NARROW { NARROW_HOST_HEADINGS } else { WIDE_HOST_HEADINGS };
    if roomy {
        let all = show_count(state.hosts_in_all as f64);
        let title = if shown < state.hosts_in_all {
            format!("hosts: {shown} of {all}, slowest first")
        } else {
            format!("hosts: {all}")
        };
        let at = take(rest, 1);
        let headings = columns.iter().map(|name| (*name).to_owned());
        frame.render_widget(Line::styled(table_row(&title, headings, at.width), paint.label()), at);
    }
    let mut rows: Vec<&HostRow> = state.hosts.iter().take(shown).collect();
    if shown == state.hosts_in_all {
        rows.sort_by_key(|host| host.rank);
    }
    for host in rows {
        let at = take(rest, 1);
        let style = match host.state {
            HostState::Lost | HostState::Hung => paint.bad(Some(Severity::Void)),
            HostState::Waiting => paint.label(),
            HostState::Measuring => Style::new(),
        };
        let cells = columns.iter().map(|name| host_cell(host, name));
        frame.render_widget(Line::styled(table_row(&host.name, cells, at.width), style), at);
    }
    if roomy {
        take(rest, 1);
    }
}

/// A figure of a table_row; what is not known is no zero.
fn host_cell(host: &HostRow, column: &str) -> String {
    let words = match column {
        "IOPS" => host.iops.map(show_rate),
        "p99" => host.p99_ns.map(|ns| show_ns(ns as f64)),
        _ => Some(host.state.word().into()),
    };
    words.unwrap_or_else(|| "-".into())
}
