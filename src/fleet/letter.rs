//! Letters: what hosts tell one another, as values and as packets.
//!
//! For: the words of the protocol, and putting a long one together from its packets. Not for: when which one is sent ([`super::hosts`],
//! [`super::post`]).

use super::clock::Readings;
use super::host_reports::HostReports;
use super::merge::{CommonTimes, RunParts, Times};
use model::histogram::Histogram;
use model::machine::Machine;
use model::plan::Plan;
use model::record::RunEnd;
use model::record::disturbed::Disturbed;
use model::verification::State;
use model::verified::Verified;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Largest packet in bytes. Every MPI hands packets of this size over without asking the receiver first, so that one that has begun to
/// arrive is there, and a host that stands still keeps nobody waiting.
pub(super) const PACKET_BYTES: usize = 2048;
/// Longest letter that is put together; a host that sends more is not one of ours.
const MOST_BYTES: usize = 256 << 20;

/// One message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Letter {
    /// Who a rank is: to rank 0.
    Hello(Hello),
    /// The names of all hosts: from rank 0.
    Welcome(Vec<String>),
    /// What a rank planned on its own machine: to rank 0.
    Planned(Box<Planned>),
    /// What it is to measure: from rank 0.
    Settled(Box<Plan>),
    /// A rank is at a step, with its reason against going on as planned: to rank 0; from there, that all are, with the first reason.
    Reason(Option<String>),
    /// A rank is ready for this phase of a run: index of the job, of its phase, how many times the job was measured before, and this
    /// very run; or why it cannot begin it. To rank 0.
    Ready([u32; 4], Option<String>),
    /// When to begin, in ns of the receiver's own clock: from rank 0.
    Begin(u64),
    /// A host cannot begin it, and so none does, and why: from rank 0.
    Refused(String),
    /// When the load of some hosts ran: up the tree.
    Times(Times),
    /// When that of all of them did: down the tree.
    Common(CommonTimes),
    /// What a run came to on some hosts: up the tree.
    RunParts(Box<RunParts>),
    /// What it came to on all hosts: down the tree.
    Agreed(Box<Agreed>),
    /// What hosts say when they have measured: up the tree, or where it is over before its time straight to rank 0.
    Done(Box<HostReports>),
    /// What a rank has written, when it has: to rank 0; from there, what it is to read back.
    Written(Box<State>),
    /// What came of a verification on a rank: to rank 0.
    Verified(Box<Verified>),
    /// It is over before its time.
    Over(Over),
    /// All is said, and the rank may go: from rank 0.
    Bye,
    /// A sign of life, with how far the load is; `None` where none goes on. Each way.
    Beat(Option<Far>),
    /// The clocks of all hosts below are to be read, with the number of that: down the tree.
    AskClocks(u32),
    /// What was read, with that number: up the tree.
    Clocks(u32, Readings),
    /// What a clock is asked by, with its number: down the tree.
    Ping(u32),
    /// The answer, with the ns of the clock that was asked.
    Pong(u32, u64),
}

/// How far a load is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Far {
    /// Operations that have completed.
    pub(super) operations: u64,
    /// 99th percentile of their latency so far in ns; `None` where too few support one.
    pub(super) p99_ns: Option<u64>,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) machine: Machine,
}

/// What a run came to on all hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Agreed {
    pub(super) iops: f64,
    pub(super) latency: Histogram,
    pub(super) service: Histogram,
    pub(super) disturbed: Option<Disturbed>,
    /// When its last phase ended, in ns since the start of the session of rank 0.
    pub(super) ended_ns: u64,
    /// How its last phase ended, where what comes next is decided by that: in a sweep.
    pub(super) end: Option<RunEnd>,
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
    /// Rank 0 only knows that this host was silent: another host may prove to be the lost one.
    pub(super) is_silence: bool,
}

impl Over {
    /// What came from a rank is no letter.
    pub(super) fn not_understood(rank: usize, why: &str) -> Self {
        Self { rank, why: format!("cannot be understood: {why}"), code: 3, is_silence: false }
    }
}

/// Bits of a packet's first byte: more packets of its letter follow; the letter is compressed, and for whoever measures.
const MORE: u8 = 1;
const COMPRESSED: u8 = 2;
/// Bytes of the length that stands before what is compressed.
const LENGTH_BYTES: usize = 4;

impl Letter {
    /// Whether the post itself answers it. Those come often or soon, and are not compressed.
    fn is_of_post(&self) -> bool {
        matches!(
            self,
            Self::Over(_)
                | Self::Bye
                | Self::Beat(_)
                | Self::Ping(_)
                | Self::Pong(..)
                | Self::AskClocks(_)
                | Self::Clocks(..)
        )
    }

    /// As packets, to be sent in this order.
    pub(super) fn packets(&self) -> Vec<Vec<u8>> {
        // Every type of it has a JSON form; one that had none would arrive as damage and be told there.
        let plain = serde_json::to_vec(self).unwrap_or_default();
        let (bytes, kind) = if self.is_of_post() { (plain, 0) } else { (compressed(&plain), COMPRESSED) };
        let parts: Vec<&[u8]> = bytes.chunks(PACKET_BYTES - 1).collect();
        let last = parts.len().saturating_sub(1);
        let packet = |(at, part): (usize, &[u8])| [&[kind | if at < last { MORE } else { 0 }], part].concat();
        parts.into_iter().enumerate().map(packet).collect()
    }
}

fn compressed(plain: &[u8]) -> Vec<u8> {
    let length = u32::try_from(plain.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&length[..], &lz4_flex::block::compress(plain)].concat()
}

fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let plain = (length <= MOST_BYTES).then(|| lz4_flex::block::decompress(rest, length).ok())??;
    (plain.len() == length).then_some(plain)
}

/// A letter that has arrived and was not opened. Whoever measures opens what is for it: many that wait need little room so.
#[derive(Debug)]
pub(super) struct Envelope {
    bytes: Vec<u8>,
    is_compressed: bool,
}

impl Envelope {
    /// Whether the post itself answers it.
    pub(super) fn is_of_post(&self) -> bool {
        !self.is_compressed
    }

    /// The letter.
    ///
    /// # Errors
    /// What came is no letter.
    pub(super) fn open(&self) -> Result<Letter, String> {
        let plain = if self.is_compressed {
            Cow::Owned(decompressed(&self.bytes).ok_or("damage came: it cannot be decompressed")?)
        } else {
            Cow::Borrowed(&self.bytes)
        };
        // From text, as sessions are read: the code that reads every type of a plan is compiled once for both.
        let text = std::str::from_utf8(&plain).map_err(|e| format!("damage came: {e}"))?;
        serde_json::from_str(text).map_err(|e| format!("damage came: {e}"))
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
    pub(super) fn take(&mut self, packet: &[u8]) -> Result<Option<Envelope>, String> {
        let (first, rest) = packet.split_first().ok_or("an empty packet came")?;
        if self.0.len() + rest.len() > MOST_BYTES {
            return Err("a message without end came".into());
        }
        self.0.extend_from_slice(rest);
        if *first & MORE > 0 {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut self.0);
        Ok(Some(Envelope { bytes, is_compressed: *first & COMPRESSED > 0 }))
    }
}

/// The letter that packets are.
#[cfg(test)]
pub(super) fn read(packets: &[Vec<u8>]) -> Option<Letter> {
    let mut inbox = Inbox::default();
    packets.iter().find_map(|p| inbox.take(p).ok().flatten())?.open().ok()
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
        let Ok(Some(came)) = inbox.take(last) else { panic!("it did not arrive") };
        let Ok(Letter::Welcome(all)) = came.open() else { panic!("it cannot be read") };
        assert_eq!((all.len(), came.is_of_post()), (names, false));
    }
    let Ok(Some(bye)) = Inbox::default().take(&Letter::Bye.packets()[0]) else { panic!("no letter") };
    assert!(bye.is_of_post() && matches!(bye.open(), Ok(Letter::Bye)));
}

#[test]
fn what_is_no_letter_is_told_and_takes_no_room() {
    assert!(Inbox::default().take(&[]).is_err());
    for damage in
        [&[0, b'{'][..], &[COMPRESSED], &[COMPRESSED, 9, 0, 0, 0, 1], &[COMPRESSED, 255, 255, 255, 255, 0]]
    {
        let came = Inbox::default().take(damage).ok().flatten();
        assert!(came.is_some_and(|came| came.open().is_err()), "{damage:?}");
    }
}
