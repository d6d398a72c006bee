//! What hosts say when they have measured: a row of each, and what is alike for many of them once.
//!
//! For: what a host says of itself, out of the report on its own session, and adding that up. Not for: how it travels ([`super::tree`],
//! [`super::gather`]).

use super::merge::RunParts;
use analysis::Judging;
use model::finding::{Finding, Outcome};
use model::fleet::{CheckedOnHosts, HostResult, HostSeen, Limited};
use model::job::Kind;
use model::record::Record;
use model::report::{Figures, Limiter, Measured, Report};
use serde::{Deserialize, Serialize};

/// What some hosts say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HostReports {
    /// A row of each, in no order.
    pub(super) hosts: Vec<HostSeen>,
    pub(super) asked: Vec<CheckedOnHosts>,
    pub(super) limited: Vec<Limited>,
    /// The runs that nobody has asked for: those that were broken off.
    pub(super) rest: RunParts,
}

impl HostReports {
    /// What a host says of itself, whose session has this record and is kept in this file.
    pub(super) fn on(
        rank: u32,
        name: &str,
        (record, file): (&Record, Option<String>),
        rest: RunParts,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        let report =
            analysis::judge(record, &Judging { session: file.clone(), version, ..Judging::default() });
        let Report { verdict, verdict_reason, results, findings, .. } = report;
        let of =
            |outcome: Outcome| findings.iter().filter(|f: &&Finding| f.outcome == outcome).count() as u32;
        let (rows, limits): (Vec<HostResult>, Vec<Limiter>) = results.into_iter().map(result).unzip();
        let mut limited = Vec::new();
        for (row, limiter) in rows.iter().zip(limits) {
            let slowest = (rank, row.iops.unwrap_or(0.0));
            Limited::add(&mut limited, [Limited { result: row.name.clone(), hosts: 1, slowest, limiter }]);
        }
        let host = HostSeen {
            rank,
            name: name.to_owned(),
            session: file,
            verdict: Some(verdict),
            reason: verdict_reason,
            results: rows,
            findings: [of(Outcome::Finding), of(Outcome::NotChecked)],
            kernel: None,
            target_bytes: record.runs.last().map_or_else(Vec::new, |run| run.start.target_bytes.clone()),
        };
        Self { asked: CheckedOnHosts::on(rank, &findings), hosts: vec![host], limited, rest }
    }

    /// Adds what others say.
    pub(super) fn add(&mut self, other: Self) {
        self.hosts.extend(other.hosts);
        CheckedOnHosts::add(&mut self.asked, other.asked);
        Limited::add(&mut self.limited, other.limited);
        self.rest.add(other.rest);
    }
}

fn result(of: Measured) -> (HostResult, Limiter) {
    let parts: [(Kind, &Option<Figures>); 4] =
        [(Kind::Read, &of.read), (Kind::Write, &of.write), (Kind::Trim, &of.trim), (Kind::Sync, &of.sync)];
    let latency =
        |figures: &Figures| ["50", "99"].map(|p| figures.latency_ns.percentiles.get(p).copied().flatten());
    let latency_ns = parts.into_iter().filter_map(|(kind, f)| Some((kind, latency(f.as_ref()?)))).collect();
    let total = of.total.as_ref().filter(|_| !of.void);
    let row = HostResult {
        verdict: of.verdict,
        iops: total.map(|t| t.iops),
        mb_per_s: total.map(|t| t.mb_per_s),
        latency_ns,
        cpu_ns_per_op: of.cost.as_ref().map(|c| c.user_ns + c.system_ns),
        limiter: of.limiter.name.clone(),
        name: of.name,
        renamed: of.renamed.then_some(of.true_name),
    };
    (row, of.limiter)
}
