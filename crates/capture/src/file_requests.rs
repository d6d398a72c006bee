//! Selects the requests of files: those within the byte ranges of the files. A file's byte ranges on the device are read when a capture
//! begins and when it ends.
//!
//! The crate `machine` finds the ranges. A request without sectors belongs to no file.

use model::captured::OfFiles;
use trace::SECTOR;
use trace::row::Row;

/// Selects requests by the byte ranges that the files had at the beginning and at the end of the capture. In each list the ranges are
/// ordered and do not touch.
#[derive(Debug)]
pub struct FileRequestSelector {
    /// Ranges that the files had at the beginning or at the end of the capture.
    at_either_time: Vec<(u64, u64)>,
    /// Ranges that the files had at both times.
    at_both_times: Vec<(u64, u64)>,
    /// The counts so far.
    pub counts: OfFiles,
}

impl FileRequestSelector {
    /// Combines the ranges at the beginning and at the end of the capture.
    pub fn new(begin: &[(u64, u64)], end: &[(u64, u64)], counts: OfFiles) -> Self {
        Self {
            at_either_time: merge_ranges([begin, end].concat()),
            at_both_times: intersection(begin, end),
            counts,
        }
    }

    /// Counts a request, and returns whether it belongs to the files.
    pub fn selects(&mut self, row: &Row) -> bool {
        if row.sectors == 0 {
            self.counts.without_place += 1;
            return false;
        }
        let (begin, end) = (row.sector.saturating_mul(SECTOR), row.end().saturating_mul(SECTOR));
        match overlap(&self.at_either_time, begin, end) {
            Overlap::None => self.counts.elsewhere += 1,
            Overlap::Part => self.counts.partly += 1,
            Overlap::All => {
                self.counts.moved += u64::from(overlap(&self.at_both_times, begin, end) != Overlap::All);
                return true;
            }
        }
        false
    }
}

/// How much of a range is within other ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overlap {
    None,
    Part,
    All,
}

fn overlap(ranges: &[(u64, u64)], begin: u64, end: u64) -> Overlap {
    let at = ranges.partition_point(|(_, range_end)| *range_end <= begin);
    match ranges.get(at) {
        Some((from, to)) if *from <= begin && end <= *to => Overlap::All,
        Some((from, _)) if *from < end => Overlap::Part,
        _ => Overlap::None,
    }
}

/// Orders ranges, and merges those that touch.
pub(crate) fn merge_ranges(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in ranges {
        match out.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => out.push((begin, end)),
        }
    }
    out
}

/// Returns the intersection of two lists of ranges. In each list the ranges are ordered and do not overlap.
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
fn requests_within_the_files_at_either_time_are_kept() {
    let in_bytes = |all: &[(u64, u64)]| all.iter().map(|(a, b)| (a * SECTOR, b * SECTOR)).collect::<Vec<_>>();
    let mut selector = FileRequestSelector::new(
        &in_bytes(&[(10, 20), (40, 50)]),
        &in_bytes(&[(15, 30), (40, 50)]),
        OfFiles::default(),
    );
    let mut selects = |sector, sectors| selector.selects(&Row { sector, sectors, ..Row::default() });
    assert!(selects(15, 5) && selects(40, 10), "in the files all the time");
    assert!(selects(10, 10) && selects(20, 8) && selects(10, 20), "in the files at one of the times");
    assert!(!selects(0, 10) && !selects(30, 10) && !selects(50, 1), "next to the files");
    assert!(!selects(5, 10) && !selects(29, 2) && !selects(0, 100), "across an edge");
    assert!(!selects(0, 0) && !selects(15, 0), "without sectors");
    assert!(!selects(u64::MAX, u32::MAX));
    let OfFiles { moved, elsewhere, partly, without_place, .. } = selector.counts;
    assert_eq!((moved, elsewhere, partly, without_place), (3, 4, 3, 2));
}
