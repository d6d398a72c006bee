//! What ioping's times are the times of, in sentences, from what was seen around the requests.
//!
//! For: a few lines under ioping's own. Not for: looking; and nothing is said here that was not seen.

use crate::plain::look::{Disk, flow, read_by};
use dialect::ioping::{Direction, Ping};
use model::Known;
use model::units::{show_bytes, show_count, show_ns};

/// From this share of the bytes on, the disk has moved them.
const MOST: f64 = 0.9;
/// What caches of drives and of hosts hold at least.
const SMALL_WORK_BYTES: u64 = 256 << 20;
/// From this pause on, drives and CPUs may sleep.
const LONG_PAUSE_NS: u64 = 10_000_000;

/// What is known of requests that are over.
pub(super) struct Facts<'a> {
    pub(super) said: &'a Ping,
    pub(super) requests: u64,
    pub(super) work_bytes: u64,
    pub(super) disk: Known<Disk>,
    /// Bytes that the kernel fetched from storage for this process.
    pub(super) fetched: Known<u64>,
    /// Why it is memory and no disk.
    pub(super) ram: Option<String>,
}

impl Facts<'_> {
    pub(super) fn sentences(&self) -> Vec<String> {
        if self.requests == 0 {
            return Vec::new();
        }
        let mut out = vec![self.answered()];
        if self.ram.is_none() && self.work_bytes < SMALL_WORK_BYTES {
            out.push(format!(
                "they stayed in {} (-S), which a cache of the drive or of its host holds: a larger -S, a file or the device shows \
                 the medium",
                show_bytes(self.work_bytes)
            ));
        }
        if self.said.interval_ns >= LONG_PAUSE_NS {
            out.push(format!(
                "one at a time, with {} in between: drives and CPUs that sleep meanwhile wake for each. Percentiles without pauses: \
                 fathom run --rw randread --depth 1",
                show_ns(self.said.interval_ns as f64)
            ));
        }
        out
    }

    /// Who answered the requests.
    fn answered(&self) -> String {
        let requests = show_count(self.requests as f64);
        if let Some(ram) = &self.ram {
            return format!("memory answered ({ram}): no disk has seen the {requests} requests");
        }
        let size = show_bytes(self.said.request_bytes);
        let asked = self.requests.saturating_mul(self.said.request_bytes) as f64;
        let disk = match (self.said.way, &self.disk) {
            (Direction::Read, disk) => read_by(disk, &self.fetched),
            (_, Ok(disk)) => format!("the disk ({}) wrote {}", disk.name, flow(&disk.did.write)),
            (_, Err(why)) => format!("what its disk did is not known: {why}"),
        };
        // What was read for others tells nothing of these; writes have no such count.
        let reached = match self.said.way {
            Direction::Read => self.fetched.as_ref().ok().map(|bytes| *bytes as f64 / asked),
            Direction::Write | Direction::Both => {
                self.disk.as_ref().ok().map(|d| d.did.write.bytes as f64 / (asked / self.ways()))
            }
        };
        match reached {
            None => format!("{requests} requests of {size}: {disk}"),
            Some(share) if share < MOST => {
                format!(
                    "memory answered most of the {requests} requests of {size}: {disk}; -D goes past the page cache"
                )
            }
            Some(_) => {
                let stable = if self.said.way == Direction::Read || self.said.cached {
                    ""
                } else {
                    ", each write with the fdatasync behind it"
                };
                format!("the disk answered the {requests} requests of {size}{stable}: {disk}")
            }
        }
    }

    /// Of how many requests one is a write.
    fn ways(&self) -> f64 {
        if self.said.way == Direction::Both { 2.0 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::evidence::{BlockFlow, BlockStat};

    fn said(ios: u64, ping: &Ping, ram: Option<&str>) -> Vec<String> {
        let read = BlockFlow { ios, bytes: ios * 4096, ..BlockFlow::default() };
        let did = BlockStat { read, ..BlockStat::default() };
        let disk = Ok(Disk { name: "vda".into(), did });
        Facts {
            said: ping,
            requests: 10,
            work_bytes: 1 << 20,
            disk,
            fetched: Ok(ios * 4096),
            ram: ram.map(str::to_owned),
        }
        .sentences()
    }

    #[test]
    fn who_answered_is_told_by_the_disk() {
        let ping = Ping { request_bytes: 4096, interval_ns: 1_000_000_000, ..Ping::default() };
        let lines = said(10, &ping, None);
        assert_eq!(
            lines[0],
            "the disk answered the 10 requests of 4 KiB: the disk (vda) read 40 KiB in 10 requests of 4 KiB"
        );
        assert!(lines[1].contains("1 MiB (-S)") && lines[2].contains("1.00 s in between"), "{lines:?}");
        let cached = said(0, &Ping { interval_ns: 0, ..ping.clone() }, None);
        assert!(
            cached[0]
                .starts_with("memory answered most of the 10 requests of 4 KiB: the disk (vda) read nothing")
                && cached.len() == 2,
            "{cached:?}"
        );
        let memory = said(0, &ping, Some("tmpfs"));
        assert!(memory[0].starts_with("memory answered (tmpfs)") && memory.len() == 2, "{memory:?}");
    }
}
