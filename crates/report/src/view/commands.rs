//! Measured commands: a row for each.

use super::columns::{Columns, or_dash};
use crate::view::table::Table;
use model::command::{CommandResults, CommandRun, Moved};
use model::units::{show_bytes, show_ns, show_rate};

/// Returns a row for each run.
pub(crate) fn command_table(results: &CommandResults) -> Table {
    let seconds = |seconds: f64| show_ns(seconds * 1e9);
    let moved = |run: &CommandRun, amount: fn(&Moved) -> u64| {
        or_dash(run.moved.as_ref().map(amount).ok(), show_bytes)
    };
    let runs = results
        .commands
        .iter()
        .flat_map(|command| command.runs.iter().enumerate().map(move |(at, run)| (command, at, run)));
    Columns::new(runs)
        .label("command", |(command, at, _)| (*at == 0).then(|| command.command.clone()))
        .value("run", |(_, at, _)| at + 1)
        .value("time", |(.., run)| seconds(run.seconds))
        .value("user", |(.., run)| seconds(run.user_seconds))
        .value("system", |(.., run)| seconds(run.system_seconds))
        .value("read", |(.., run)| moved(run, |m| m.read_call_bytes))
        .value("from cache", |(.., run)| {
            or_dash(run.cached_read_bytes.as_ref().ok(), |bytes| show_bytes(*bytes))
        })
        .value("written", |(.., run)| moved(run, |m| m.dirtied_bytes))
        .value("sync", |(.., run)| or_dash(run.sync_seconds.as_ref().ok(), |s| seconds(*s)))
        .label("stable MB/s", |(.., run)| or_dash(run.stable_mb_per_s.as_ref().ok(), |rate| show_rate(*rate)))
        .table(&["user", "system", "sync", "from cache"])
}
