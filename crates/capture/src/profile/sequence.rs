//! What follows what: sequential requests, their runs, and how many go on at once.
//!
//! For: requests of one direction in the order of their issue. Not for: offsets as such.
//!
//! A request is sequential where it starts at the end of one of the last 64 of its direction. So streams that are read side by side are
//! seen as what they are, as long as there are no more of them.

use super::figures::share;
use crate::ends::{BACK, Ends};
use crate::row::Row;
use model::captured::Sequence;
use model::histogram::Histogram;

/// Requests of a run from which it counts as a stream.
const STREAM: u64 = 3;

/// The end of a request that another one may begin at.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    requests: u64,
    bytes: u64,
    /// Whether one did.
    continued: bool,
}

/// Sequences of one direction.
#[derive(Debug)]
pub(crate) struct Following {
    last: Ends,
    ends: [End; BACK],
    requests: u64,
    bytes: u64,
    sequential: u64,
    sequential_bytes: u64,
    run_requests: Histogram,
    run_bytes: Histogram,
    alive: u64,
    alive_sum: u64,
    alive_most: u64,
}

impl Default for Following {
    fn default() -> Self {
        Self {
            last: Ends::default(),
            ends: [End::default(); BACK],
            requests: 0,
            bytes: 0,
            sequential: 0,
            sequential_bytes: 0,
            run_requests: Histogram::new(),
            run_bytes: Histogram::new(),
            alive: 0,
            alive_sum: 0,
            alive_most: 0,
        }
    }
}

/// Where a request stands in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Its number in it, from 1.
    pub(crate) number: u64,
    /// How many requests ago the one was that it follows; 0 where it follows none.
    pub(crate) back: u64,
}

impl Following {
    /// Adds a request, and says what it follows.
    pub(crate) fn add(&mut self, row: &Row) -> Followed {
        let mut back = 0;
        let mut run = End { requests: 1, bytes: row.bytes(), continued: false };
        self.requests += 1;
        self.bytes += row.bytes();
        if let Some(at) = self.last.find(row.sector) {
            back = self.last.back(at);
            let before = &mut self.ends[at];
            self.sequential += 1;
            self.sequential_bytes += row.bytes();
            run.requests += before.requests;
            run.bytes += before.bytes;
            // What is continued a second time is a stream of its own.
            let goes_on = before.requests >= STREAM && !before.continued;
            self.alive += u64::from(run.requests >= STREAM && !goes_on);
            before.continued = true;
        }
        let at = self.last.push(row.end());
        self.close(at);
        self.ends[at] = run;
        self.alive_sum += self.alive;
        self.alive_most = self.alive_most.max(self.alive);
        Followed { number: run.requests, back }
    }

    /// Forgets an end; where nothing began there a run is over.
    fn close(&mut self, at: usize) {
        let end = std::mem::take(&mut self.ends[at]);
        if end.continued || end.requests < 2 {
            return;
        }
        self.run_requests.record(end.requests);
        self.run_bytes.record(end.bytes);
        if end.requests >= STREAM {
            self.alive = self.alive.saturating_sub(1);
        }
    }

    pub(super) fn finish(mut self) -> Option<Sequence> {
        if self.requests == 0 {
            return None;
        }
        for at in 0..BACK {
            self.close(at);
        }
        let figures = |of: &Histogram| {
            let of_all = [of.mean_ns(), of.quantile_ns(0.5).map(|m| m as f64), of.max_ns().map(|m| m as f64)];
            of_all.map(|figure| figure.unwrap_or(0.0))
        };
        Some(Sequence {
            share: share(self.sequential, self.requests),
            byte_share: share(self.sequential_bytes, self.bytes),
            runs: self.run_requests.count(),
            run_requests: figures(&self.run_requests),
            run_bytes: figures(&self.run_bytes),
            streams: [share(self.alive_sum, self.requests), self.alive_most as f64],
        })
    }
}

#[test]
fn two_files_read_side_by_side_are_two_runs_and_random_requests_none() {
    let row = |sector| Row { sector, sectors: 8, ..Row::default() };
    let mut side_by_side = Following::default();
    for at in 0..100 {
        side_by_side.add(&row(at * 8));
        side_by_side.add(&row(1_000_000 + at * 8));
    }
    let told = side_by_side.finish().unwrap_or_default();
    assert_eq!((told.share, told.runs, told.run_requests), (0.99, 2, [100.0; 3]));
    assert_eq!(told.streams[1].to_bits(), 2.0_f64.to_bits());
    let mut random = Following::default();
    for at in 0..500_u64 {
        random.add(&row(at.wrapping_mul(7919) % 4096 * 16));
    }
    let told = random.finish().unwrap_or_default();
    assert_eq!((told.share, told.runs, told.streams), (0.0, 0, [0.0; 2]));
    assert_eq!(Following::default().finish(), None);
}
