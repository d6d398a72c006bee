//! Parts of a run on several hosts that are more than a sum: sentences, times, and how late each began.
//!
//! For: keeping what is needed of any number of hosts in little room. In whatever order and groups hosts are added, it comes to the same. Pure.
//! Not for: what they did ([`super::merge`]).

use model::fleet::Which;
use model::record::Disturbance;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Different sentences that are kept of a run. Those first in the alphabet are: so all hosts keep the same.
const MOST_NOTES: usize = 64;
/// Disturbances that are kept of a run, of each kind the largest.
const MOST_DISTURBANCES: usize = 8;

/// Sentences that hosts said of a run: each once, with who said it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notes {
    /// Who, and which of its sentences it was on the lowest rank.
    said: BTreeMap<String, (Which, u32)>,
    /// How many were said in all.
    count: u32,
}

impl Notes {
    /// Those of one host, in their order.
    pub(super) fn from_host(rank: u32, notes: impl Iterator<Item = String>) -> Self {
        let mut all = Self::default();
        for (note, at) in notes.zip(0..) {
            all.said.entry(note).or_insert_with(|| (Which::only(rank), at));
        }
        all.count = all.said.len() as u32;
        all.shorten();
        all
    }

    /// Adds those of others.
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        for (note, (its, at)) in other.said {
            match self.said.get_mut(&note) {
                Some((mine, first)) => {
                    if its.first < mine.first {
                        *first = at;
                    }
                    mine.add(&its);
                }
                None => drop(self.said.insert(note, (its, at))),
            }
        }
        self.shorten();
    }

    fn shorten(&mut self) {
        while self.said.len() > MOST_NOTES {
            self.said.pop_last();
        }
    }

    /// In the order of happening, with the names of the hosts where not all of so many said it.
    pub(super) fn merge_in_order(self, names: &[String], hosts: u32) -> Vec<String> {
        let kept: u32 = self.said.values().map(|(which, _)| which.count).sum();
        let mut all: Vec<(String, (Which, u32))> = self.said.into_iter().collect();
        all.sort_by(|(_, (a, at)), (_, (b, other))| (a.first.first(), at).cmp(&(b.first.first(), other)));
        let told = |(note, (which, _)): (String, (Which, u32))| {
            if which.count == hosts { note } else { format!("{}: {note}", named(&which, names)) }
        };
        let rest = self.count - kept;
        let more = (rest > 0).then(|| format!("{rest} more notes of hosts are in their own sessions"));
        all.into_iter().map(told).chain(more).collect()
    }
}

/// `a, b and 30 more`.
pub(super) fn named(which: &Which, names: &[String]) -> String {
    let name = |rank: &u32| names.get(*rank as usize).cloned().unwrap_or_else(|| format!("rank {rank}"));
    let first: Vec<String> = which.first.iter().map(name).collect();
    match which.count as usize - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// When the load of a stream ran on some hosts, in ns from the common start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "units stand at the end of names")]
pub(super) struct Window {
    /// The first of them began.
    pub(super) begun_ns: u64,
    /// The last of them began.
    pub(super) from_ns: u64,
    /// The first of them ended.
    pub(super) until_ns: u64,
    /// The last of them ended.
    pub(super) ended_ns: u64,
}

impl Window {
    /// Of one host.
    pub(super) fn of_host(from_ns: u64, until_ns: u64) -> Self {
        Self { begun_ns: from_ns, from_ns, until_ns, ended_ns: until_ns }
    }

    fn add(&mut self, other: Self) {
        self.begun_ns = self.begun_ns.min(other.begun_ns);
        self.from_ns = self.from_ns.max(other.from_ns);
        self.until_ns = self.until_ns.min(other.until_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
    }

    /// ns in which all of them ran.
    pub(super) fn together_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }

    /// ns from the first to the last.
    pub(super) fn whole_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }
}

/// When the load of each stream ran on some hosts, by the index of the stream.
pub(super) type Windows = BTreeMap<usize, Window>;

/// Adds those of other hosts.
pub(super) fn add_windows(all: &mut Windows, others: Windows) {
    for (stream, its) in others {
        all.entry(stream).and_modify(|mine| mine.add(its)).or_insert(its);
    }
}

/// How late the last workers of hosts began, in ns behind the common start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Late {
    /// Of how many that is known.
    pub(super) hosts: u32,
    /// The least.
    pub(super) first_ns: u64,
    /// The most, and which rank that was.
    pub(super) last: (u64, u32),
}

impl Late {
    pub(super) fn of_host(rank: u32, ns: u64) -> Self {
        Self { hosts: 1, first_ns: ns, last: (ns, rank) }
    }

    pub(super) fn add(&mut self, other: Self) {
        if self.hosts == 0 || other.hosts == 0 {
            *self = if self.hosts == 0 { other } else { *self };
            return;
        }
        self.hosts += other.hosts;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last = self.last.max(other.last);
    }
}

/// Adds what others did on other hosts: each once, and of many the largest.
pub(super) fn add_disturbances(all: &mut Vec<Disturbance>, others: Vec<Disturbance>) {
    for one in others {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    let size = |one: &Disturbance| match one {
        Disturbance::ForeignIo { bytes_per_s, .. } => (0, *bytes_per_s),
        Disturbance::StolenCpu { share } => (1, *share),
        Disturbance::LimitChanged { .. } => (2, 0.0),
    };
    all.sort_by(|a, b| {
        let ((kind, mine), (other, its)) = (size(a), size(b));
        kind.cmp(&other).then(its.total_cmp(&mine)).then_with(|| a.describe().cmp(&b.describe()))
    });
    for kind in 0..3 {
        let mut kept = 0;
        all.retain(|one| {
            let is_it = size(one).0 == kind;
            kept += usize::from(is_it);
            !is_it || kept <= MOST_DISTURBANCES
        });
    }
}

#[test]
fn what_all_say_has_no_names_and_what_many_say_has_few() {
    let names: Vec<String> = (0..100).map(|rank| format!("h{rank}")).collect();
    let of = |rank: u32| {
        let own = (rank == 7).then(|| "its own".to_owned());
        let most = (rank != 7).then(|| "most of them".to_owned());
        Notes::from_host(rank, ["said by all".to_owned()].into_iter().chain(own).chain(most))
    };
    let sum = |ranks: &mut dyn Iterator<Item = u32>| {
        let mut all = Notes::default();
        ranks.for_each(|rank| all.add(of(rank)));
        all
    };
    let all = sum(&mut (0..100));
    assert_eq!(sum(&mut (0..100).rev()), all);
    let told = all.merge_in_order(&names, 100);
    assert_eq!(
        told,
        ["said by all", "h0, h1, h2, h3, h4, h5, h6, h8 and 91 more: most of them", "h7: its own"]
    );
}

#[test]
fn many_different_sentences_are_counted() {
    let of = |rank: u32| Notes::from_host(rank, [format!("{rank:03} pages stayed")].into_iter());
    let (mut all, mut other) = (Notes::default(), Notes::default());
    (0..300).for_each(|rank| all.add(of(rank)));
    (150..300).rev().for_each(|rank| other.add(of(rank)));
    (0..150).for_each(|rank| other.add(of(rank)));
    assert_eq!(all, other);
    let told = all.merge_in_order(&[], 300);
    assert_eq!((told.len(), told[0].as_str()), (MOST_NOTES + 1, "rank 0: 000 pages stayed"));
    assert!(told.last().is_some_and(|last| last.starts_with("236 more notes")), "{told:?}");
}

#[test]
fn of_disturbances_the_largest_stay() {
    let foreign = |mb: u64| Disturbance::ForeignIo {
        device: "vda".into(),
        bytes_per_s: mb as f64 * 1e6,
        ios_per_s: Some(1.0),
    };
    let stolen = Disturbance::StolenCpu { share: 0.1 };
    let (mut up, mut down) = (Vec::new(), Vec::new());
    (0..50).for_each(|mb| add_disturbances(&mut up, vec![foreign(mb), stolen.clone()]));
    (0..50).rev().for_each(|mb| add_disturbances(&mut down, vec![stolen.clone(), foreign(mb)]));
    assert_eq!(up, down);
    assert_eq!((up.len(), &up[0], up.last()), (MOST_DISTURBANCES + 1, &foreign(49), Some(&stolen)));
}
