//! What connects a worker with the thread that started it.
//!
//! For: blocks, start, stop, failure and heartbeat, each shared without a lock in the hot loop. Not for: what the worker is told
//! ([`crate::spec`]).

use crate::barrier::StartBarrier;
use crate::spec::WorkerSpec;
use crate::tally::Port;
use model::figures::Operation;
use rtrb::Producer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A worker's connections to the rest of the program.
pub(crate) struct Link {
    pub(crate) port: Port,
    /// Where its operations go, if they are logged.
    pub(crate) log: Option<Producer<Operation>>,
    pub(crate) barrier: Arc<StartBarrier>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) failed: Arc<AtomicBool>,
    pub(crate) heartbeat: Arc<AtomicU64>,
}

/// A worker about to start.
pub(crate) struct Task {
    pub(crate) spec: WorkerSpec,
    pub(crate) link: Link,
}
