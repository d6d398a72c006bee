//! The network between hosts over MPI. No other file calls MPI.
//!
//! No call waits for another rank: sends are buffered, a receive takes a message that a probe has matched, and each packet is small
//! enough to be complete when it is probed. Collective operations are not used: they wait, and do not report for which rank.

use crate::message::PACKET_BYTES;
use crate::transport::Network;
use mpi::Threading;
use mpi::datatype::Equivalence;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
use mpi::topology::{Communicator, SimpleCommunicator};
use std::time::Duration;

/// Size of the buffer for packets that were sent but not received yet. Unused memory costs nothing.
const BUFFER_BYTES: usize = 256 << 20;
/// Interval at which a pending send is tested.
const SEND_TEST_INTERVAL: Duration = Duration::from_micros(50);

/// MPI, initialised and finalised on one thread.
pub(super) struct Mpi {
    universe: Universe,
    world: SimpleCommunicator,
}

impl Mpi {
    /// Joins the other ranks. The calling thread must make all later calls.
    ///
    /// # Errors
    /// If MPI was already initialised.
    pub(super) fn join() -> Result<Self, String> {
        let (mut universe, _) = mpi::initialize_with_threading(Threading::Funneled)
            .ok_or_else(|| "MPI was already initialised".to_owned())?;
        universe.set_buffer_size(BUFFER_BYTES);
        let world = universe.world();
        Ok(Self { universe, world })
    }
}

impl Network for Mpi {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn send(&mut self, to: usize, packet: &[u8]) {
        let process = self.world.process_at_rank(to as i32);
        mpi::request::scope(|scope| {
            let mut request = process.immediate_buffered_send(scope, packet);
            // A buffered send completes as soon as the packet is copied, whether or not it was received.
            while let Err(not_yet) = request.test() {
                request = not_yet;
                std::thread::sleep(SEND_TEST_INTERVAL);
            }
        });
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        let (message, status) = self.world.any_process().immediate_matched_probe()?;
        let mut packet = [0_u8; PACKET_BYTES];
        let length = (status.count(u8::equivalent_datatype()) as usize).min(PACKET_BYTES);
        mpi::request::scope(|scope| {
            let mut request = message.immediate_matched_receive_into(scope, &mut packet[..length]);
            while let Err(not_yet) = request.test() {
                request = not_yet;
                std::hint::spin_loop();
            }
        });
        Some((status.source_rank() as usize, packet[..length].to_vec()))
    }

    fn leave(self: Box<Self>) {
        drop(self.universe);
    }
}
