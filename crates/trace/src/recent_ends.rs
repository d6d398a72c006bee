//! Where recent requests ended. A request that begins at such a sector is sequential.

/// Number of recent requests that a sequential one may follow, and so of interleaved streams that are recognised.
pub const RECENT_ENDS: usize = 64;

/// Sectors at which recent requests ended, and the index of the oldest.
#[derive(Debug)]
pub struct Ends {
    sectors: [u64; RECENT_ENDS],
    oldest: usize,
}

impl Default for Ends {
    fn default() -> Self {
        // No request begins at this sector.
        Self { sectors: [u64::MAX; RECENT_ENDS], oldest: 0 }
    }
}

impl Ends {
    /// Returns the index of a recent request that ended at this sector.
    #[inline]
    pub fn find(&self, sector: u64) -> Option<usize> {
        // Usually none matches, so all are compared first, several at once.
        let found: u64 = self.sectors.iter().map(|end| u64::from(*end == sector)).sum();
        if found > 0 { self.sectors.iter().position(|end| *end == sector) } else { None }
    }

    /// Returns how many requests ago the request at this index ended: 1 for the last one.
    #[inline]
    pub fn requests_ago(&self, at: usize) -> u64 {
        ((self.oldest + RECENT_ENDS - at - 1) % RECENT_ENDS) as u64 + 1
    }

    /// Replaces the oldest end, and returns its index.
    #[inline]
    pub fn push(&mut self, end: u64) -> usize {
        let at = self.oldest;
        self.sectors[at] = end;
        self.oldest = (at + 1) % RECENT_ENDS;
        at
    }
}

#[test]
fn an_end_is_known_until_it_is_replaced() {
    let mut ends = Ends::default();
    assert_eq!(ends.find(8), None);
    assert_eq!(ends.push(8), 0);
    for end in 100..100 + RECENT_ENDS as u64 - 1 {
        ends.push(end);
    }
    assert_eq!((ends.find(8), ends.find(100)), (Some(0), Some(1)));
    assert_eq!((ends.requests_ago(0), ends.requests_ago(RECENT_ENDS - 1)), (RECENT_ENDS as u64, 1));
    assert_eq!(ends.push(7), 0);
    assert_eq!(ends.find(8), None);
}
