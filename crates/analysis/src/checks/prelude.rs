//! The imports that nearly every check needs.

pub(super) use super::{
    ARRIVED_FROM, VMSTAT, VMSTAT_PAGE_BYTES, ask_each_turn, issued_bytes, layer_names, least_median_ns,
    service_latency, sum_over_runs,
};
pub(crate) use crate::case::{
    Amount, Case, CaseRun, cgroup_slot, flow_of, no_run, requested_depth, share, split_known,
};
pub(crate) use crate::checks::{
    Answer, Ask, Check, Detail, Earlier, Evidence, Rename, detail, evidence, finding, formula, holds,
    not_checked, show_part, undecided, undecided_by_sharing, undecided_by_workers,
};
pub(crate) use crate::threshold::{Ns, Share};
pub(crate) use model::Known;
pub(crate) use model::evidence::{BlockFlow, BlockStat, Extents, Moment, Snapshot};
pub(crate) use model::finding::{CheckId, Severity};
pub(crate) use model::histogram::Histogram;
pub(crate) use model::job::{Kind, Order, Pace, Pattern, Stream};
pub(crate) use model::machine::{Layer, LayerKind, Place};
pub(crate) use model::units::{
    show_bytes, show_count, show_counted, show_ns, show_rate, show_seconds, show_share,
};
pub(crate) use std::collections::{BTreeMap, BTreeSet};
