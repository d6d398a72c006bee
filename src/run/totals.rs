//! Totals: what a worker brings home, as the record keeps it.
//!
//! For: adding workers up to streams, and what each cost. Not for: their course over time ([`crate::collector`]).

use engine::outcome::Outcome;
use engine::workers::Who;
use model::job::Kind;
use model::record::{Issued, StreamEnd, WorkerEnd};

/// Adds a worker's totals to its stream's.
pub(super) fn add_totals(stream: &mut StreamEnd, outcome: &Outcome) {
    stream.window_ns = stream.window_ns.max(outcome.window_ns);
    for (kind, of_worker) in Kind::ALL.into_iter().zip(&outcome.totals) {
        if *of_worker == Issued::default() {
            continue;
        }
        let sum: &mut Issued = stream.issued.entry(kind).or_default();
        sum.ops += of_worker.ops;
        sum.bytes += of_worker.bytes;
        sum.short += of_worker.short;
        sum.max_ns = sum.max_ns.max(of_worker.max_ns);
        for (errno, count) in &of_worker.errors {
            *sum.errors.entry(*errno).or_default() += count;
        }
    }
}

/// What a worker cost, and how it ended.
pub(super) fn worker_end(who: Who, outcome: Outcome) -> WorkerEnd {
    WorkerEnd {
        worker: who.worker,
        stream: who.stream,
        wall_ns: outcome.wall_ns,
        user_ns: outcome.usage.user_ns,
        system_ns: outcome.usage.system_ns,
        counted: outcome.counted.map_or_else(
            || Err("the worker did not begin".into()),
            |c| c.map(|c| [c.cycles, c.instructions]),
        ),
        faults: Some([outcome.usage.minor_faults, outcome.usage.major_faults]),
        switches: [outcome.usage.voluntary_switches, outcome.usage.forced_switches],
        turns: outcome.turns,
        ops: outcome.totals.iter().map(|t| t.ops).sum(),
        ready_ns: outcome.ready_ns.unwrap_or_else(|| Err("the worker did not begin".into())),
        used: outcome.granted.used,
        fallbacks: outcome.granted.fallbacks,
        error: outcome.error,
    }
}
