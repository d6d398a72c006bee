//! The messages between hosts, and their encoding as packets.
//!
//! A message is JSON, compressed unless the transport thread handles it itself. It is cut into packets of at most [`PACKET_BYTES`]; an
//! [`Inbox`] joins the packets again. An [`Envelope`] keeps a received message encoded until it is needed, so that many waiting messages
//! take little memory.

use crate::clock::Readings;
use crate::merge::{CommonTimes, HostReports, RunParts, Times};
use model::fleet::RunIndex;
use model::histogram::Histogram;
use model::plan::{Plan, Planned};
use model::record::{Disturbed, RunEnd};
use model::verification::{State, Verified};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Maximum size of a packet in bytes. Every MPI sends packets of this size without waiting for the receiver. So a packet that has begun
/// to arrive is complete, and a stalled host does not block another host.
pub(super) const PACKET_BYTES: usize = 2048;
/// Maximum size of a message in bytes. A longer one does not come from fathom.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// One message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Rank to rank 0: the identity of the rank.
    Hello(Hello),
    /// Rank 0 to all: the names of all hosts.
    Welcome(Vec<String>),
    /// Rank to rank 0: the plan that the rank made for its machine.
    Planned(Box<Planned>),
    /// Rank 0 to each rank: the settled plan.
    Settled(Box<Plan>),
    /// Rank to rank 0: the rank has reached a step, with its reason against continuing, if any. Rank 0 to all: every host has reached the
    /// step, with the reason of the lowest rank that has one.
    Reason(Option<String>),
    /// Rank to rank 0: the rank is ready for this run, or cannot begin it for this reason.
    Ready(RunIndex, Option<String>),
    /// Rank 0 to a rank: the start time in ns of the receiver's clock.
    Begin(u64),
    /// Rank 0 to all: one host cannot begin the phase for this reason, so no host begins it.
    Refused(String),
    /// Rank to rank 0: when the load of the sender's host ran.
    Times(Times),
    /// Rank 0 to all: the times in which all hosts ran.
    Common(CommonTimes),
    /// Rank to rank 0: the result of a run on the sender's host.
    RunParts(Box<RunParts>),
    /// Rank 0 to all: the result of a run on all hosts.
    Agreed(Box<Agreed>),
    /// Rank to rank 0: the final report of a host.
    Done(Box<HostReports>),
    /// Rank to rank 0: the state that the rank has written. Rank 0 to a rank: the state to read back.
    Written(Box<State>),
    /// Rank to rank 0: the outcome of the rank's verification.
    Verified(Box<Verified>),
    /// Both ways: the measurement ended early.
    EarlyEnd(EarlyEnd),
    /// Rank 0 to all: the measurement is complete, and the rank may leave.
    Bye,
    /// Both ways: a heartbeat with the progress of the load; `None` without load.
    Heartbeat(Option<LoadProgress>),
    /// Down the tree of hosts: request with this number to read the clocks of all hosts below the receiver.
    AskClocks(u32),
    /// Up the tree of hosts: the readings for the request with this number.
    Clocks(u32, Readings),
    /// Down the tree of hosts: a ping with this number.
    Ping(u32),
    /// Up the tree of hosts: the answer to the ping with this number, with the sender's clock in ns.
    Pong(u32, u64),
}

/// The progress of a load, as heartbeats report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoadProgress {
    /// Completed operations.
    pub(super) operations: u64,
    /// 99th percentile of the latency in ns; `None` with too few operations.
    pub(super) p99_ns: Option<u64>,
}

/// The identity of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Name of the host.
    pub(super) host: String,
    /// The boot id of the kernel, which all containers of a machine share.
    pub(super) boot: String,
    /// Version of fathom on the host.
    pub(super) version: String,
}

/// The result of a run on all hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Agreed {
    pub(super) iops: f64,
    pub(super) latency: Histogram,
    pub(super) service: Histogram,
    pub(super) disturbed: Option<Disturbed>,
    /// The end of the run's last phase, in ns after the start of rank 0's session.
    pub(super) ended_ns: u64,
    /// In a sweep, how the run's last phase ended, which decides what to measure next. `None` for
    /// any other plan.
    pub(super) end: Option<RunEnd>,
}

/// The reason why a measurement ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EarlyEnd {
    /// The rank that caused the end: it failed, was interrupted or fell silent.
    pub(super) rank: usize,
    /// The reason, as the rest of a sentence that begins with the name of the host.
    pub(super) why: String,
    /// The exit code of fathom.
    pub(super) code: u8,
    /// Whether the reason is only that `rank` was silent. The lost host may then be another one.
    pub(super) is_silence: bool,
}

impl EarlyEnd {
    /// Returns the early end for a rank that sent an unreadable message.
    pub(super) fn unreadable(rank: usize, why: &str) -> Self {
        Self { rank, why: format!("sent an unreadable message: {why}"), code: 3, is_silence: false }
    }
}

/// Bit of a packet's first byte: more packets of the message follow.
const MORE: u8 = 1;
/// Bit of a packet's first byte: the message is compressed.
const COMPRESSED: u8 = 2;
/// Size in bytes of the field before compressed data, which has the uncompressed length.
const LENGTH_BYTES: usize = 4;

impl Message {
    /// Whether the transport thread handles the message, because the message is frequent or urgent. Such a message is not compressed.
    fn is_for_transport(&self) -> bool {
        matches!(
            self,
            Self::EarlyEnd(_)
                | Self::Bye
                | Self::Heartbeat(_)
                | Self::Ping(_)
                | Self::Pong(..)
                | Self::AskClocks(_)
                | Self::Clocks(..)
        )
    }

    /// Encodes the message as packets, to be sent in this order.
    pub(super) fn packets(&self) -> Vec<Vec<u8>> {
        // Every message can be written as JSON. If one could not, the receiver would report a damaged message.
        let plain = serde_json::to_vec(self).unwrap_or_default();
        let (bytes, kind) =
            if self.is_for_transport() { (plain, 0) } else { (compressed(&plain), COMPRESSED) };
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
    let plain = (length <= MESSAGE_BYTES_MAX).then(|| lz4_flex::block::decompress(rest, length).ok())??;
    (plain.len() == length).then_some(plain)
}

/// A received message, still encoded. The measuring thread decodes it when needed, so that many waiting messages take little memory.
#[derive(Debug)]
pub(super) struct Envelope {
    bytes: Vec<u8>,
    is_compressed: bool,
}

impl Envelope {
    /// Returns whether the transport thread handles the message.
    pub(super) fn is_for_transport(&self) -> bool {
        !self.is_compressed
    }

    /// Decodes the message.
    ///
    /// # Errors
    /// Why the bytes are not a message.
    pub(super) fn open(&self) -> Result<Message, String> {
        let plain = if self.is_compressed {
            Cow::Owned(decompressed(&self.bytes).ok_or("the data cannot be decompressed")?)
        } else {
            Cow::Borrowed(&self.bytes)
        };
        // Messages are decoded from text, as sessions are, so that the code that parses a plan is compiled only once.
        let text = std::str::from_utf8(&plain).map_err(|e| e.to_string())?;
        serde_json::from_str(text).map_err(|e| e.to_string())
    }
}

/// The packets of an incomplete message.
#[derive(Debug, Default)]
pub(super) struct Inbox(Vec<u8>);

impl Inbox {
    /// Adds the next packet, and returns the message that it completes.
    ///
    /// # Errors
    /// Why the packets are not a message.
    pub(super) fn take(&mut self, packet: &[u8]) -> Result<Option<Envelope>, String> {
        let (first, rest) = packet.split_first().ok_or("a packet is empty")?;
        if self.0.len() + rest.len() > MESSAGE_BYTES_MAX {
            return Err("too long for a message of fathom".into());
        }
        self.0.extend_from_slice(rest);
        if *first & MORE > 0 {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut self.0);
        Ok(Some(Envelope { bytes, is_compressed: *first & COMPRESSED > 0 }))
    }
}

/// Decodes the message of these packets.
#[cfg(test)]
pub(super) fn read(packets: &[Vec<u8>]) -> Option<Message> {
    let mut inbox = Inbox::default();
    packets.iter().find_map(|p| inbox.take(p).ok().flatten())?.open().ok()
}

#[test]
fn messages_of_any_length_survive_encoding() {
    for names in [1, 5_000] {
        let sent = Message::Welcome((0..names).map(|n| format!("host {n}")).collect());
        let packets = sent.packets();
        assert!(packets.iter().all(|p| p.len() <= PACKET_BYTES) && (packets.len() == 1) == (names == 1));
        let mut inbox = Inbox::default();
        let (last, first) = packets.split_last().unwrap_or_else(|| panic!("no packet"));
        assert!(first.iter().all(|p| matches!(inbox.take(p), Ok(None))));
        let Ok(Some(came)) = inbox.take(last) else { panic!("it did not arrive") };
        let Ok(Message::Welcome(all)) = came.open() else { panic!("it cannot be read") };
        assert_eq!((all.len(), came.is_for_transport()), (names, false));
    }
    let Ok(Some(bye)) = Inbox::default().take(&Message::Bye.packets()[0]) else { panic!("no message") };
    assert!(bye.is_for_transport() && matches!(bye.open(), Ok(Message::Bye)));
}

#[test]
fn damaged_messages_are_rejected_without_allocating() {
    assert!(Inbox::default().take(&[]).is_err());
    for damage in
        [&[0, b'{'][..], &[COMPRESSED], &[COMPRESSED, 9, 0, 0, 0, 1], &[COMPRESSED, 255, 255, 255, 255, 0]]
    {
        let came = Inbox::default().take(damage).ok().flatten();
        assert!(came.is_some_and(|came| came.open().is_err()), "{damage:?}");
    }
}
