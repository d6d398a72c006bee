//! Requests within stretches of a device.
//!
//! For: which requests are those of files that lay there when a capture began and when it ended. Not for: where files lie (crate
//! `machine`), nor for whose a request is that has no place.

use crate::SECTOR;
use crate::row::Row;
use model::captured::OfFiles;

/// Stretches at both times, in bytes: each list in order, none touching another.
#[derive(Debug)]
pub struct Within {
    /// What was theirs at any of both times, and at both.
    ever: Vec<(u64, u64)>,
    always: Vec<(u64, u64)>,
    /// What was seen so far.
    pub seen: OfFiles,
}

impl Within {
    /// Stretches when the capture began and when it ended.
    pub fn new(begin: &[(u64, u64)], end: &[(u64, u64)], of: OfFiles) -> Self {
        Self { ever: union(begin, end), always: intersection(begin, end), seen: of }
    }

    /// Whether a request is theirs and to be kept; it is counted either way.
    pub fn keeps(&mut self, row: &Row) -> bool {
        if row.sectors == 0 {
            self.seen.without_place += 1;
            return false;
        }
        let (begin, end) = (row.sector.saturating_mul(SECTOR), row.end().saturating_mul(SECTOR));
        match shared(&self.ever, begin, end) {
            Shared::None => self.seen.elsewhere += 1,
            Shared::Part => self.seen.partly += 1,
            Shared::All => {
                self.seen.moved += u64::from(shared(&self.always, begin, end) != Shared::All);
                return true;
            }
        }
        false
    }
}

/// How much of a stretch lies in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shared {
    None,
    Part,
    All,
}

fn shared(stretches: &[(u64, u64)], begin: u64, end: u64) -> Shared {
    let at = stretches.partition_point(|(_, behind)| *behind <= begin);
    match stretches.get(at) {
        Some((from, to)) if *from <= begin && end <= *to => Shared::All,
        Some((from, _)) if *from < end => Shared::Part,
        _ => Shared::None,
    }
}

/// What is in any of them.
fn union(a: &[(u64, u64)], b: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(all.len());
    for (begin, end) in all {
        match out.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => out.push((begin, end)),
        }
    }
    out
}

/// What is in both.
fn intersection(a: &[(u64, u64)], b: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut out, mut i, mut j) = (Vec::new(), 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (begin, end) = (x.0.max(y.0), x.1.min(y.1));
        if begin < end {
            out.push((begin, end));
        }
        if x.1 <= y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

#[test]
fn requests_are_told_by_where_they_are_at_both_times() {
    let of = |all: &[(u64, u64)]| all.iter().map(|(a, b)| (a * SECTOR, b * SECTOR)).collect::<Vec<_>>();
    let mut within = Within::new(&of(&[(10, 20), (40, 50)]), &of(&[(15, 30), (40, 50)]), OfFiles::default());
    let mut keeps = |sector, sectors| within.keeps(&Row { sector, sectors, ..Row::default() });
    assert!(keeps(15, 5) && keeps(40, 10), "theirs all the time");
    assert!(keeps(10, 10) && keeps(20, 8) && keeps(10, 20), "theirs at one of the times");
    assert!(!keeps(0, 10) && !keeps(30, 10) && !keeps(50, 1), "beside them");
    assert!(!keeps(5, 10) && !keeps(29, 2) && !keeps(0, 100), "over the edge");
    assert!(!keeps(0, 0) && !keeps(15, 0), "nowhere");
    assert!(!keeps(u64::MAX, u32::MAX));
    let OfFiles { moved, elsewhere, partly, without_place, .. } = within.seen;
    assert_eq!((moved, elsewhere, partly, without_place), (3, 4, 3, 2));
}
