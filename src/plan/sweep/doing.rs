//! What the cells of a sweep do: orders and directions, or access specifications.
//!
//! For: which of them were asked for, and refusing what would change none. Not for: the settings that they are done with.

use super::target_facts::TargetFacts;
use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::request::{Request, SweepSpec};
use model::job::{Kind, Mix};
use model::plan::Role;
use model::spec::axes::Preset;
use model::spec::iometer::Spec;
use model::spec::{LineSpec, Rw};
use model::sweep::Measure;
use std::collections::BTreeMap;

/// What is done.
pub(super) enum Doing {
    /// One order and direction.
    Plain(Rw, Option<Mix>),
    /// What an access specification says.
    Named(Spec),
}

/// What is done. Writes to a file or device of the user's have to be asked for by its name.
pub(super) fn works(
    request: &Request,
    said: &SweepSpec,
    targets: &[TargetFacts],
    origins: &mut Origins,
) -> Result<Vec<Doing>, Failure> {
    let mut all = if said.axes.spec.is_empty() { plain_works(said)? } else { named_works(request, said)? };
    let theirs = targets.iter().any(|t| t.role != Role::Made);
    let asked = said.flags.iter().any(|f| ["rw", "spec"].contains(f)) || request.flags.contains(&"line");
    if theirs && !asked && request.destroy.is_empty() {
        if let Some(preset) = said.preset.filter(|p| p.rounds().is_some()) {
            let path = targets.first().map(|t| model::name::shown(&t.path)).unwrap_or_default();
            return Err(Failure::Refused(format!(
                "--preset {} writes over all of {path}; type --destroy {path} if nothing on it is needed, or name a \
                 directory to have a test file made there",
                preset.name
            )));
        }
        all.retain(|doing| !doing.writes());
        origins.fixed(
            "directions",
            "reads only",
            "TARGET exists already; --destroy with its name adds writes",
        );
    }
    idle(request, "random", all.iter().any(Doing::is_random), "--rw randread")?;
    for key in ["compress", "dedup"] {
        idle(request, key, all.iter().any(Doing::writes), "--rw write")?;
    }
    Ok(all)
}

fn plain_works(said: &SweepSpec) -> Result<Vec<Doing>, Failure> {
    let axes = &said.axes;
    let all = if axes.rw.is_empty() { vec![Rw::Read, Rw::Write] } else { axes.rw.clone() };
    if !axes.mix.is_empty() && !all.iter().any(|rw| rw.is_mixed()) {
        return Err(Failure::Usage(
            "--mix changes nothing here: no --rw leaves the directions open; type --rw rw or --rw randrw"
                .into(),
        ));
    }
    let mixes = if axes.mix.is_empty() { vec![Mix::EVEN] } else { axes.mix.clone() };
    let of = |rw: Rw| -> Vec<Doing> {
        if rw.is_mixed() {
            mixes.iter().map(|m| Doing::Plain(rw, Some(*m))).collect()
        } else {
            vec![Doing::Plain(rw, None)]
        }
    };
    Ok(all.into_iter().flat_map(of).collect())
}

/// Access specifications say order, direction and size themselves.
fn named_works(request: &Request, said: &SweepSpec) -> Result<Vec<Doing>, Failure> {
    let flags = || said.flags.iter().chain(&request.flags);
    if let Some(flag) = ["rw", "mix", "bs", "random", "align"].iter().find(|f| flags().any(|said| said == *f))
    {
        return Err(Failure::Usage(format!(
            "--{flag} does not go with access specifications, which say it themselves; leave it out, or sweep without --spec and --line"
        )));
    }
    Ok(said.axes.spec.iter().cloned().map(Doing::Named).collect())
}

/// A flag that would change no cell is a slip: it must not be taken for one that did.
fn idle(request: &Request, key: &str, used: bool, cure: &str) -> Result<(), Failure> {
    if used || !request.flags.contains(&key) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--{key} changes nothing here: no cell does such a thing; leave it out, or type {cure}"
    )))
}

/// What the cells of each work are ranked by. Cells in order are not ranked.
pub(super) fn measures(
    said: &SweepSpec,
    works: &[Doing],
    origins: &mut Origins,
) -> BTreeMap<String, Measure> {
    if said.preset.is_some_and(Preset::is_in_order) {
        return BTreeMap::new();
    }
    let all: BTreeMap<String, Measure> =
        works.iter().map(|doing| (doing.name(), said.by.unwrap_or(doing.measure()))).collect();
    let mut words: Vec<&str> = Vec::new();
    for measure in all.values().map(|m| m.word()) {
        if !words.contains(&measure) {
            words.push(measure);
        }
    }
    origins.fixed("--by", &words.join(", "), if said.by.is_some() { "command line" } else { "default" });
    all
}

impl Doing {
    /// What it is called, as [`Setting::work`](model::sweep::Setting::work) says it.
    fn name(&self) -> String {
        match self {
            Self::Plain(rw, Some(mix)) => format!("{} {}", rw.word(), mix.describe()),
            Self::Plain(rw, None) => rw.word().into(),
            Self::Named(spec) => spec.name.clone(),
        }
    }

    /// What it is about: operations where offsets are random, bytes where they are in order.
    fn measure(&self) -> Measure {
        let random = match self {
            Self::Plain(rw, _) => rw.is_random(),
            Self::Named(spec) => spec.lines.iter().any(|line| line.random > 0.0),
        };
        if random { Measure::Iops } else { Measure::Bandwidth }
    }

    /// Whether anything may be changed.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Plain(rw, _) => rw.fixed_mix().is_none_or(|m| !m.does(Kind::Read)),
            Self::Named(spec) => spec.writes(),
        }
    }

    /// Whether a law of random offsets would be obeyed.
    pub(super) fn is_random(&self) -> bool {
        matches!(self, Self::Plain(rw, _) if rw.is_random())
    }

    /// Kinds of operation that are done.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let mut all = match self {
            Self::Plain(rw, mix) => {
                let mut kinds = kinds_of(mix.or_else(|| rw.fixed_mix()).unwrap_or(Mix::EVEN));
                kinds.extend(rw.writes_after_trims().then_some(Kind::Write));
                kinds
            }
            Self::Named(spec) => spec.lines.iter().flat_map(|l: &LineSpec| kinds_of(l.mix)).collect(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn kinds_of(mix: Mix) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| mix.does(*kind)).collect()
}
