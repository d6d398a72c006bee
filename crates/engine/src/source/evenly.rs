//! So many times for so many operations, evenly spread.
//!
//! For: calls behind writes, and the lengths of turns. Not for: what is done then.

/// Counts operations, and says when it is time.
pub(super) struct Evenly {
    every: u64,
    times: u64,
    /// Times that are due, in parts of `every`.
    due: u64,
}

impl Evenly {
    /// `times` for each `every` operations; `None` where that means nothing.
    pub(super) fn new(every: u32, times: u32) -> Option<Self> {
        (every > 0 && times > 0).then(|| Self { every: every.into(), times: times.into(), due: 0 })
    }

    /// One more operation.
    #[inline]
    pub(super) fn count(&mut self) {
        self.due += self.times;
    }

    /// Whether it is time, once for each time.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        let is_due = self.due >= self.every;
        if is_due {
            self.due -= self.every;
        }
        is_due
    }

    /// Operations that may come before the next time.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.every.saturating_sub(self.due).div_ceil(self.times)
    }
}

#[test]
fn times_are_spread_evenly() {
    let mut evenly = Evenly::new(5, 2).unwrap_or_else(|| panic!("it means something"));
    let mut seen = Vec::new();
    for operation in 1..=10 {
        evenly.count();
        while evenly.take() {
            seen.push(operation);
        }
    }
    assert_eq!((seen, evenly.left()), (vec![3, 5, 8, 10], 3));
    assert!(Evenly::new(0, 1).is_none() && Evenly::new(1, 0).is_none());
}
