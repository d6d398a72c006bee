//! Measured commands: a row for each.

use crate::page::Table;
use model::Known;
use model::command::{CommandResults, CommandRun};
use model::units::{show_bytes, show_ns, show_rate};

const HEADINGS: [&str; 10] =
    ["command", "run", "time", "user", "system", "read", "from cache", "written", "sync", "stable MB/s"];

/// Columns to drop if the width is too small, in this order.
const DROP_ORDER: [usize; 4] = [3, 4, 8, 6];

/// A row for each run.
pub(crate) fn table(results: &CommandResults) -> Table {
    let mut table = Table::new(&HEADINGS, &DROP_ORDER);
    for command in &results.commands {
        for (at, run) in command.runs.iter().enumerate() {
            let name = if at == 0 { command.command.clone() } else { String::new() };
            table.add(row(name, at, run));
        }
    }
    table
}

fn row(name: String, at: usize, run: &CommandRun) -> [String; HEADINGS.len()] {
    let bytes = |known: &Known<u64>| known.as_ref().map_or_else(|_| "-".into(), |bytes| show_bytes(*bytes));
    let seconds = |seconds: f64| show_ns(seconds * 1e9);
    let moved =
        |amount: fn(&model::command::Moved) -> u64| run.moved.as_ref().map(amount).map_err(Clone::clone);
    [
        name,
        (at + 1).to_string(),
        seconds(run.seconds),
        seconds(run.user_seconds),
        seconds(run.system_seconds),
        bytes(&moved(|m| m.read_call_bytes)),
        bytes(&run.cached_read_bytes),
        bytes(&moved(|m| m.dirtied_bytes)),
        run.sync_seconds.as_ref().map_or_else(|_| "-".into(), |s| seconds(*s)),
        run.stable_mb_per_s.as_ref().map_or_else(|_| "-".into(), |rate| show_rate(*rate)),
    ]
}
