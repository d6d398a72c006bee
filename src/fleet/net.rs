//! The net between hosts: packets from one rank to another, in order, and never a call that waits for the other side.
//!
//! For: what MPI has to give ([`super::mpi`]), and the same between threads for tests. Not for: what packets mean ([`super::letter`]).

#[cfg(test)]
use super::letter::PACKET_BYTES;

/// Packets between ranks.
pub(super) trait Net {
    /// Which one this is, from 0.
    fn rank(&self) -> usize;
    /// How many there are.
    fn size(&self) -> usize;
    /// Sends a packet of at most [`PACKET_BYTES`], and does not wait until anybody takes it.
    fn send(&mut self, to: usize, packet: &[u8]);
    /// The next packet that is there, with the rank that sent it.
    fn receive(&mut self) -> Option<(usize, Vec<u8>)>;
    /// Leaves together with all others. Not called where one of them is lost.
    fn leave(self: Box<Self>);
}

/// A net between threads of one process.
#[cfg(test)]
pub(super) struct Threads {
    /// A send to one that has ended does not come back, as with Open MPI 4.
    pub(super) stands_still: bool,
    /// From when to when nothing is sent and nothing is received, as if MPI did not return from a call.
    pub(super) pause: Option<[std::time::Instant; 2]>,
    rank: usize,
    to: Vec<std::sync::mpsc::Sender<(usize, Vec<u8>)>>,
    from: std::sync::mpsc::Receiver<(usize, Vec<u8>)>,
}

#[cfg(test)]
impl Threads {
    /// So many ranks.
    pub(super) fn connect(size: usize) -> Vec<Self> {
        let (to, from): (Vec<_>, Vec<_>) = (0..size).map(|_| std::sync::mpsc::channel()).unzip();
        from.into_iter()
            .enumerate()
            .map(|(rank, from)| Self { stands_still: false, pause: None, rank, to: to.clone(), from })
            .collect()
    }
}

#[cfg(test)]
impl Net for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn send(&mut self, to: usize, packet: &[u8]) {
        assert!(packet.len() <= PACKET_BYTES);
        // One that has ended takes nothing any more.
        while self.to[to].send((self.rank, packet.to_vec())).is_err() && self.stands_still {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        let now = std::time::Instant::now();
        if let Some([_, end]) = self.pause.filter(|[begin, end]| (*begin..*end).contains(&now)) {
            std::thread::sleep(end - now);
        }
        self.from.try_recv().ok()
    }

    fn leave(self: Box<Self>) {}
}
