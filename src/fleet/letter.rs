//! Letters: what hosts tell one another, as values and as packets.
//!
//! For: the words of the protocol, and putting a long one together from its packets. Not for: when which one is sent ([`super::hosts`],
//! [`super::post`]).

use super::net::PACKET_BYTES;
use model::fleet::HostSeen;
use model::histogram::Histogram;
use model::machine::Machine;
use model::plan::Plan;
use model::record::disturbed::{Disturbance, Disturbed};
use model::record::{Interval, RunEnd, RunStart};
use serde::{Deserialize, Serialize};

/// Longest letter that is put together; a host that sends more is not one of ours.
const MOST_BYTES: usize = 256 << 20;

/// One message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Letter {
    /// Who a rank is: to rank 0.
    Hello(Hello),
    /// The names of all hosts: from rank 0.
    Welcome(Vec<String>),
    /// What a rank planned on its own machine: to rank 0.
    Planned(Box<Planned>),
    /// What it is to measure: from rank 0.
    Settled(Box<Plan>),
    /// A rank has made the test files that others open: to rank 0; from there, that all have.
    Made,
    /// A rank is ready for this phase of a run: index of the job, of its phase, how many times the job was measured before, and this
    /// very run. To rank 0.
    Ready([u32; 4]),
    /// When to begin, in ns of the receiver's own clock: from rank 0.
    Begin(u64),
    /// What a run came to: to rank 0.
    Ran(Box<Ran>),
    /// What it came to on all hosts: from rank 0.
    Agreed(Box<Agreed>),
    /// What a rank says when it has measured, with the runs that nobody has asked for yet: to rank 0.
    Done(Box<HostSeen>, Box<Ran>),
    /// It is over before its time.
    Over(Over),
    /// All is said, and the rank may go: from rank 0.
    Bye,
    /// A sign of life, with the operations of the load so far; `None` where none goes on. Each way.
    Beat(Option<u64>),
    /// What a clock is asked by, with its number: from rank 0.
    Ping(u32),
    /// The answer, with the ns of the clock that was asked.
    Pong(u32, u64),
}

/// Who a rank is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Name of its host.
    pub(super) host: String,
    /// What the kernel calls this start of itself: the same for all containers of a machine.
    pub(super) boot: String,
    /// Version of its fathom.
    pub(super) version: String,
}

/// What a rank planned.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) machine: Machine,
}

/// What the phases of a run came to on one host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ran {
    pub(super) phases: Vec<Phase>,
    /// What others did there.
    pub(super) disturbed: Vec<Disturbance>,
}

/// What one phase came to on one host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Phase {
    pub(super) start: RunStart,
    pub(super) end: RunEnd,
    /// Its course, by which what completed while all ran is told from the rest.
    pub(super) course: Vec<Interval>,
    /// ns behind the common start at which its last worker began; `None` where it did not.
    pub(super) late_ns: Option<u64>,
}

/// What a run came to on all hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Agreed {
    pub(super) iops: f64,
    pub(super) latency: Histogram,
    pub(super) disturbed: Option<Disturbed>,
}

/// Why it is over before its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Over {
    /// Where.
    pub(super) rank: usize,
    /// What, in words that follow the name of the host.
    pub(super) why: String,
    /// Exit code that it asks for.
    pub(super) code: u8,
}

/// A packet's first byte: whether more of its letter follow.
const MORE: u8 = 1;
const LAST: u8 = 0;

impl Letter {
    /// As packets, to be sent in this order.
    pub(super) fn packets(&self) -> Vec<Vec<u8>> {
        // Every type of it has a JSON form; one that had none would arrive as damage and be told there.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let parts: Vec<&[u8]> = bytes.chunks(PACKET_BYTES - 1).collect();
        let last = parts.len().saturating_sub(1);
        let packet = |(at, part): (usize, &[u8])| [&[if at < last { MORE } else { LAST }], part].concat();
        parts.into_iter().enumerate().map(packet).collect()
    }
}

/// What has arrived of a letter.
#[derive(Debug, Default)]
pub(super) struct Inbox(Vec<u8>);

impl Inbox {
    /// Takes the next packet; gives the letter that it completes.
    ///
    /// # Errors
    /// What came is no letter.
    pub(super) fn take(&mut self, packet: &[u8]) -> Result<Option<Letter>, String> {
        let (first, rest) = packet.split_first().ok_or("an empty packet came")?;
        if self.0.len() + rest.len() > MOST_BYTES {
            return Err("a message without end came".into());
        }
        self.0.extend_from_slice(rest);
        if *first == MORE {
            return Ok(None);
        }
        serde_json::from_slice(&std::mem::take(&mut self.0))
            .map(Some)
            .map_err(|e| format!("damage came: {e}"))
    }
}

#[test]
fn a_letter_of_any_length_arrives_as_it_was_sent() {
    for names in [1, 5_000] {
        let sent = Letter::Welcome((0..names).map(|n| format!("host {n}")).collect());
        let packets = sent.packets();
        assert!(packets.iter().all(|p| p.len() <= PACKET_BYTES) && (packets.len() == 1) == (names == 1));
        let mut inbox = Inbox::default();
        let (last, first) = packets.split_last().unwrap_or_else(|| panic!("no packet"));
        assert!(first.iter().all(|p| matches!(inbox.take(p), Ok(None))));
        let Ok(Some(Letter::Welcome(all))) = inbox.take(last) else { panic!("it did not arrive") };
        assert_eq!(all.len(), names);
    }
    let mut inbox = Inbox::default();
    assert!(inbox.take(&[]).is_err() && inbox.take(&[LAST, b'{']).is_err());
    assert!(matches!(inbox.take(&Letter::Bye.packets()[0]), Ok(Some(Letter::Bye))));
}
