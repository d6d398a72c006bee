//! What the workers of a stream have in common in one run.
//!
//! For: positions that workers advance together, the seed that they agree on, and tables that all may read. Not for: what
//! a worker has to itself ([`super::Share`]).

use super::flow::Group;
use super::zipf::Zipf;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by all workers of a stream, for one run: its positions go on where the last operation of any worker was.
#[derive(Debug)]
pub struct Common {
    seed: u64,
    heads: Mutex<Vec<Arc<Head>>>,
    zipfs: Mutex<Vec<Arc<Zipf>>>,
    /// Who they share operations with; `None` where they wait for nobody.
    group: Option<Arc<Group>>,
    /// Those of its targets, where they are evicted before each pass.
    files: Option<Arc<[File]>>,
}

impl Common {
    /// A beginning. `seed` decides which blocks are hot and in which order [`model::job::Order::Once`] visits them, so
    /// it must be the same for all runs of a plan that are to be compared.
    pub fn new(seed: u64) -> Self {
        Self { seed, heads: Mutex::default(), zipfs: Mutex::default(), group: None, files: None }
    }

    /// Puts the stream in a group, which holds those in it to shares of its operations where their stream has one.
    #[must_use]
    pub fn in_group(self, group: Option<Arc<Group>>) -> Self {
        Self { group, ..self }
    }

    /// Adds the files of the stream's targets, in their order, where it evicts them before each pass.
    #[must_use]
    pub fn with_files(self, files: Option<Arc<[File]>>) -> Self {
        Self { files, ..self }
    }

    pub(super) fn files(&self) -> Option<Arc<[File]>> {
        self.files.clone()
    }

    pub(super) fn group(&self) -> Option<&Arc<Group>> {
        self.group.as_ref()
    }

    /// A seed that all workers agree on, another for each target.
    pub(super) fn seed(&self, target: usize) -> u64 {
        model::payload::split_mix(self.seed ^ model::payload::split_mix(target as u64))
    }

    /// The position number `index`, the same for all who ask.
    pub(super) fn head(&self, index: usize) -> Arc<Head> {
        // A worker that panicked holding the lock left whole entries behind.
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        while heads.len() <= index {
            heads.push(Arc::new(Head(AtomicU64::new(Head::FRESH))));
        }
        Arc::clone(&heads[index])
    }

    /// The ranks of a distribution, built once for all lines, targets and workers that use it.
    pub(super) fn zipf(&self, theta: f64, ranks: u64) -> Result<Arc<Zipf>, String> {
        let mut zipfs = self.zipfs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = zipfs.iter().find(|z| z.is(theta, ranks)) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(Zipf::new(theta, ranks)?);
        zipfs.push(Arc::clone(&new));
        Ok(new)
    }
}

/// A position that workers advance together. On cache lines of its own, or its neighbours would slow it.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Head(AtomicU64);

impl Head {
    /// Where nothing has been done yet.
    pub(super) const FRESH: u64 = u64::MAX;

    /// Replaces the position by what `step` makes of it, as if no one else were there; returns what `step` says beside.
    #[inline]
    pub(super) fn advance(&self, mut step: impl FnMut(u64) -> (u64, u64)) -> u64 {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (next, said) = step(seen);
            // Relaxed: the number itself is all that passes between the workers.
            match self.0.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return said,
                Err(now) => seen = now,
            }
        }
    }
}
