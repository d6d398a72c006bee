//! Several hosts that an MPI launcher started measure as one.
//!
//! [`Hosts`] is the connection of one host to all others. A measurement calls it at these steps, in the same order on every host:
//!
//! 1. [`join`] connects this host to the other ranks.
//! 2. [`Hosts::settle`] turns the plans of all hosts into one plan.
//! 3. [`Hosts::common_start`] starts each phase on all hosts at the same time.
//! 4. [`Hosts::merge_run`] merges each run, so that every host decides alike what to measure next.
//! 5. [`Hosts::gather`] merges the reports of all hosts on rank 0.
//!
//! Only the network itself needs MPI (feature `mpi`). Tests use a network between threads.
#![forbid(unsafe_code)]

mod clock;
mod gather;
mod membership;
mod merge;
mod message;
#[cfg(feature = "mpi")]
mod mpi;
mod progress;
mod protocol;
mod settle;
#[cfg(test)]
mod tests;
mod transport;

pub use gather::{HostOutcome, MergedOutcome};
use output::failure::Failure;
pub use protocol::Hosts;
pub use transport::Network;

/// Joins the other hosts through a network. Fails if more than `ranks_per_host` ranks are on one
/// host.
///
/// # Errors
/// Why the hosts cannot measure together.
pub fn join(
    network: impl FnOnce() -> Result<Box<dyn Network>, String> + Send + 'static,
    ranks_per_host: u32,
) -> Result<Hosts, Failure> {
    Hosts::join(network, own_hello(), ranks_per_host)
}

/// Initialises MPI and returns its network.
///
/// # Errors
///
/// If MPI was already initialised.
#[cfg(feature = "mpi")]
pub fn mpi_network() -> Result<Box<dyn Network>, String> {
    mpi::Mpi::join().map(|net| Box::new(net) as Box<dyn Network>)
}

/// The identity of this host.
fn own_hello() -> message::Hello {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    message::Hello { host, boot: boot.trim().to_owned(), version: env!("CARGO_PKG_VERSION").into() }
}
