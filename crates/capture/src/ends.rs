//! Where the last requests ended, so that one that begins there is told as sequential.
//!
//! For: requests of one direction in the order of their issue. Not for: runs of them ([`crate::profile`]).

/// Requests that are looked back at: streams that are read side by side are seen as what they are, as long as there are no more of them.
pub(crate) const BACK: usize = 64;

/// The ends, in sectors, and which is the oldest.
#[derive(Debug)]
pub(crate) struct Ends {
    sectors: [u64; BACK],
    oldest: usize,
}

impl Default for Ends {
    fn default() -> Self {
        // Nothing starts there.
        Self { sectors: [u64::MAX; BACK], oldest: 0 }
    }
}

impl Ends {
    /// Which of the last requests ended there.
    pub(crate) fn find(&self, sector: u64) -> Option<usize> {
        // Mostly none did: all are compared first, several at once.
        let found: u64 = self.sectors.iter().map(|end| u64::from(*end == sector)).sum();
        if found > 0 { self.sectors.iter().position(|end| *end == sector) } else { None }
    }

    /// How many requests ago one ended that stands at this place: 1 for the last.
    pub(crate) fn back(&self, at: usize) -> u64 {
        ((self.oldest + BACK - at - 1) % BACK) as u64 + 1
    }

    /// Puts an end in the place of the oldest one, and gives that place.
    pub(crate) fn push(&mut self, end: u64) -> usize {
        let at = self.oldest;
        self.sectors[at] = end;
        self.oldest = (at + 1) % BACK;
        at
    }
}

#[test]
fn an_end_is_known_until_as_many_others_came_behind_it() {
    let mut ends = Ends::default();
    assert_eq!(ends.find(8), None);
    assert_eq!(ends.push(8), 0);
    for end in 100..100 + BACK as u64 - 1 {
        ends.push(end);
    }
    assert_eq!((ends.find(8), ends.find(100)), (Some(0), Some(1)));
    assert_eq!((ends.back(0), ends.back(BACK - 1)), (BACK as u64, 1));
    assert_eq!(ends.push(7), 0);
    assert_eq!(ends.find(8), None);
}
