//! ioping's statistics: what it counts, and its sums.
//!
//! For: means over requests that count, and the load of all of them. Not for: percentiles, which ioping has none of.

/// Requests so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statistics {
    request_bytes: u64,
    began_ns: u64,
    /// All of them.
    pub(super) count: u64,
    /// Those that count.
    pub(super) valid: u64,
    pub(super) too_fast: u64,
    pub(super) too_slow: u64,
    pub(super) sum_ns: f64,
    squares: f64,
    least_ns: u64,
    pub(super) most_ns: u64,
    /// From the first to the end, with the pauses.
    pub(super) load_ns: u64,
}

impl Statistics {
    pub(super) fn new(request_bytes: u64, began_ns: u64) -> Self {
        Self {
            request_bytes,
            began_ns,
            count: 0,
            valid: 0,
            too_fast: 0,
            too_slow: 0,
            sum_ns: 0.0,
            squares: 0.0,
            least_ns: u64::MAX,
            most_ns: 0,
            load_ns: 0,
        }
    }

    pub(super) fn add_valid(&mut self, ns: u64) {
        self.valid += 1;
        self.sum_ns += ns as f64;
        self.squares += (ns as f64).powi(2);
        self.least_ns = self.least_ns.min(ns);
        self.most_ns = self.most_ns.max(ns);
    }

    /// Adds those of a part.
    pub(super) fn add(&mut self, part: &Self) {
        self.count += part.count;
        self.valid += part.valid;
        self.too_fast += part.too_fast;
        self.too_slow += part.too_slow;
        self.sum_ns += part.sum_ns;
        self.squares += part.squares;
        self.least_ns = self.least_ns.min(part.least_ns);
        self.most_ns = self.most_ns.max(part.most_ns);
    }

    pub(super) fn finish(&mut self, now_ns: u64) {
        self.load_ns = now_ns.saturating_sub(self.began_ns);
    }

    /// Zero where none counts, as there.
    pub(super) fn least_ns(&self) -> u64 {
        if self.valid == 0 { 0 } else { self.least_ns }
    }

    pub(super) fn mean_ns(&self) -> f64 {
        over(self.sum_ns, self.valid as f64)
    }

    pub(super) fn deviation_ns(&self) -> f64 {
        (over(self.squares, self.valid as f64) - self.mean_ns().powi(2)).max(0.0).sqrt()
    }

    pub(super) fn iops(&self) -> f64 {
        over(1e9 * self.valid as f64, self.sum_ns)
    }

    pub(super) fn load_iops(&self) -> f64 {
        over(1e9 * self.count as f64, self.load_ns as f64)
    }

    pub(super) fn bytes(&self) -> f64 {
        self.valid as f64 * self.request_bytes as f64
    }

    pub(super) fn load_bytes(&self) -> f64 {
        self.count as f64 * self.request_bytes as f64
    }

    pub(super) fn speed(&self) -> f64 {
        self.iops() * self.request_bytes as f64
    }

    pub(super) fn load_speed(&self) -> f64 {
        self.load_iops() * self.request_bytes as f64
    }
}

/// Zero where there is nothing to divide by, as ioping prints it.
fn over(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

#[test]
fn parts_add_up_and_none_is_zero() {
    let none = Statistics::new(4096, 5);
    assert_eq!((none.least_ns(), none.mean_ns(), none.deviation_ns(), none.iops()), (0, 0.0, 0.0, 0.0));
    let mut whole = Statistics::new(4096, 0);
    for ns in [100, 300] {
        let mut part = Statistics::new(4096, 0);
        part.add_valid(ns);
        part.count = 1;
        whole.add(&part);
    }
    whole.finish(1000);
    assert_eq!(
        (whole.least_ns(), whole.most_ns, whole.mean_ns(), whole.deviation_ns()),
        (100, 300, 200.0, 100.0)
    );
    assert_eq!((whole.count, whole.load_iops(), whole.bytes()), (2, 2e6, 8192.0));
}
