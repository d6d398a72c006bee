//! What dd's figure is the speed of, in sentences, from what was seen around the copy.
//!
//! For: a few lines under dd's own: where it was read from, what had reached the disk, what limited it. Not for: looking; and nothing is
//! said here that was not seen.

use crate::plain::look::{Disk, flow, read_by};
use model::Known;
use model::evidence::Pages;
use model::units::{show_block, show_bytes, show_count, show_ns, show_rate, show_share};

/// From this share of a CPU on, the copy waited for nothing else.
const CPU_BOUND: f64 = 0.9;
/// A copy that is over sooner says little of CPU time.
const LEAST_SECONDS: f64 = 0.05;
/// Block up to which a call costs more than its bytes.
const SMALL_BLOCK_BYTES: u64 = 16 << 10;
/// From this share of what was read on, it was in memory.
const MOSTLY: f64 = 0.5;

/// A side that is stored somewhere.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) shown: String,
    /// `O_DIRECT`.
    pub(super) is_direct: bool,
    /// `O_DSYNC` or `O_SYNC`: each write waits until it is stable.
    pub(super) waits: bool,
    /// What its disk did.
    pub(super) disk: Known<Disk>,
    pub(super) pages_before: Known<Pages>,
    pub(super) pages_after: Known<Pages>,
    /// Why it is memory and no disk.
    pub(super) ram: Option<String>,
}

/// What is known of a copy that is over.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// `None` for a pipe or a device that makes its bytes.
    pub(super) input: Option<Stored>,
    /// `None` for a pipe, a terminal, `/dev/null`.
    pub(super) output: Option<Stored>,
    /// Whether the input is `/dev/zero`.
    pub(super) is_zero: bool,
    pub(super) to_terminal: bool,
    /// `conv=fsync` or `conv=fdatasync`.
    pub(super) syncs: bool,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) input_block_bytes: u64,
    pub(super) output_block_bytes: u64,
    /// CPU time by time; `None` where it is not known.
    pub(super) cpu_share: Option<f64>,
    /// Bytes that the kernel fetched from storage for this process.
    pub(super) fetched: Known<u64>,
}

impl Facts {
    /// Whether dd left writes to the page cache, so that what they cost is still to be seen.
    pub(super) fn leaves_work(&self) -> bool {
        let left = |o: &Stored| !o.is_direct && !o.waits && o.ram.is_none();
        self.bytes > 0 && !self.syncs && self.output.as_ref().is_some_and(left)
    }

    /// `stable` are the seconds until all of it was, or why it could not be made so; `None` where nothing was left.
    pub(super) fn sentences(&self, stable: &Known<Option<f64>>) -> Vec<String> {
        if self.bytes == 0 && self.reads == 0 {
            return Vec::new();
        }
        let mut out = Vec::new();
        if self.to_terminal {
            out.push(
                "it went to a terminal, whose speed this is; of=/dev/null leaves the terminal out".to_owned(),
            );
        }
        out.extend(self.input.as_ref().and_then(|input| self.read(input)));
        out.extend(self.output.as_ref().map(|output| self.written(output, stable)));
        out.extend(self.limit());
        if self.is_zero && self.output.is_some() {
            out.push(
                "every byte was zero: storage that compresses, or leaves zeros out, is faster with these than with data".to_owned(),
            );
        }
        out
    }

    /// Where it was read from.
    fn read(&self, input: &Stored) -> Option<String> {
        if self.reads == 0 {
            return None;
        }
        if let Some(ram) = &input.ram {
            return Some(format!("{} is memory ({ram}): no disk was read", input.shown));
        }
        let disk = read_by(&input.disk, &self.fetched);
        if input.is_direct {
            let each = show_ns(self.seconds * 1e9 / self.reads as f64);
            let deeper = show_block(self.input_block_bytes).to_lowercase();
            return Some(format!(
                "{disk}, one at a time, {each} each; several at once: fathom run --rw read --bs {deeper} --depth 8 FILE"
            ));
        }
        let resident = input.pages_before.as_ref().map(|p| p.cached.saturating_mul(p.page_bytes));
        Some(match resident {
            Ok(bytes) if bytes as f64 >= MOSTLY * self.bytes as f64 => format!(
                "it was read from the page cache: {} of {} were resident before; {disk}. iflag=direct reads the disk",
                show_bytes(bytes),
                input.shown
            ),
            Ok(bytes) => format!(
                "{} of {} were resident before; {disk}, fetched ahead by the kernel while dd asked for {} at a time",
                show_bytes(bytes),
                input.shown,
                show_bytes(self.input_block_bytes)
            ),
            Err(why) => format!("{disk}; how much was resident before is not known: {why}"),
        })
    }

    /// What had reached the disk, and how fast it really was.
    fn written(&self, output: &Stored, stable: &Known<Option<f64>>) -> String {
        if let Some(ram) = &output.ram {
            return format!("{} is memory ({ram}): no disk was written", output.shown);
        }
        let disk = match &output.disk {
            Ok(disk) => format!("the disk ({}) wrote {}", disk.name, flow(&disk.did.write)),
            Err(why) => format!("what its disk did is not known: {why}"),
        };
        if output.is_direct || output.waits {
            let each = show_ns(self.seconds * 1e9 / self.writes.max(1) as f64);
            let stays = if output.waits {
                "stable when it returned"
            } else {
                "which the disk may hold in a cache of its own: conv=fsync waits for that too"
            };
            return format!("{disk}, one at a time, {each} each, {stays}");
        }
        if self.syncs {
            return format!("all of it was stable when dd ended: {disk}");
        }
        let dirty = output.pages_after.as_ref().map_err(Clone::clone).and_then(|pages| {
            let dirty = pages.dirty.ok_or("this kernel does not tell which pages of a file are dirty")?;
            Ok(dirty.saturating_mul(pages.page_bytes))
        });
        let reached = match dirty {
            Ok(dirty) => format!(
                "the page cache took it: {} of {} had reached the disk when dd ended",
                show_bytes(self.bytes.saturating_sub(dirty)),
                show_bytes(self.bytes)
            ),
            Err(why) => format!(
                "it went through the page cache; {disk} until dd ended (of its pages nothing is known: {why})"
            ),
        };
        match stable {
            Ok(Some(seconds)) => {
                let rate = show_rate(self.bytes as f64 / 1e6 / seconds);
                format!(
                    "{reached}; with conv=fsync {rate} MB/s: all of it was stable after {}",
                    show_ns(seconds * 1e9)
                )
            }
            Ok(None) => reached,
            Err(why) => format!("{reached}; it could not be made stable: {why}"),
        }
    }

    /// What limited it, where that was no disk.
    fn limit(&self) -> Option<String> {
        let share = self.cpu_share.filter(|share| *share >= CPU_BOUND && self.seconds >= LEAST_SECONDS)?;
        let calls = self.reads + self.writes;
        let block = self.input_block_bytes.min(self.output_block_bytes);
        let cure = if block <= SMALL_BLOCK_BYTES { "; bs=1M leaves most of that out" } else { "" };
        Some(format!(
            "dd kept a CPU busy for {} of the time: this is the speed of {} calls and of copying memory, not of a disk{cure}",
            show_share(share.min(1.0)),
            show_count(calls as f64)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::evidence::{BlockFlow, BlockStat};

    fn pages(cached: u64, dirty: u64) -> Pages {
        Pages { page_bytes: 4096, cached, dirty: Some(dirty) }
    }

    fn stored(read: u64, write: u64) -> Stored {
        let flow = |bytes: u64| BlockFlow { ios: bytes / (128 << 10), bytes, ..BlockFlow::default() };
        let did = BlockStat { read: flow(read), write: flow(write), ..BlockStat::default() };
        Stored {
            shown: "'file'".into(),
            is_direct: false,
            waits: false,
            disk: Ok(Disk { name: "vda".into(), did }),
            pages_before: Ok(pages(0, 0)),
            pages_after: Ok(pages(0, 0)),
            ram: None,
        }
    }

    fn copy() -> Facts {
        Facts {
            input: None,
            output: None,
            is_zero: false,
            to_terminal: false,
            syncs: false,
            seconds: 1.0,
            bytes: 1 << 30,
            reads: 1024,
            writes: 1024,
            input_block_bytes: 1 << 20,
            output_block_bytes: 1 << 20,
            cpu_share: Some(0.2),
            fetched: Ok(1 << 30),
        }
    }

    #[test]
    fn what_had_not_reached_the_disk_is_counted_and_the_rate_with_it_is_measured() {
        let output = Stored { pages_after: Ok(pages(1 << 18, (1 << 18) - 3072)), ..stored(0, 12 << 20) };
        let facts = Facts { output: Some(output), is_zero: true, ..copy() };
        assert!(facts.leaves_work());
        let said = facts.sentences(&Ok(Some(2.8)));
        assert_eq!(
            said[0],
            "the page cache took it: 12 MiB of 1 GiB had reached the disk when dd ended; with conv=fsync 383 MB/s: all of it was \
             stable after 2.80 s"
        );
        assert!(said[1].starts_with("every byte was zero"), "{said:?}");
        let unknown = Stored { pages_after: Err("it is on a network".into()), ..stored(0, 12 << 20) };
        let said = Facts { output: Some(unknown), ..copy() }.sentences(&Err("Input/output error".into()));
        assert!(
            said[0].contains("nothing is known: it is on a network")
                && said[0].contains("Input/output error"),
            "{said:?}"
        );
        assert!(!said[0].contains("MB/s"), "nothing is made up: {said:?}");
    }

    #[test]
    fn a_read_is_told_by_where_it_came_from() {
        let cached = Stored { pages_before: Ok(pages(1 << 18, 0)), ..stored(0, 0) };
        let said = Facts { input: Some(cached), ..copy() }.sentences(&Ok(None));
        assert_eq!(
            said,
            [
                "it was read from the page cache: 1 GiB of 'file' were resident before; the disk (vda) read nothing. iflag=direct \
              reads the disk"
            ]
        );
        let cold = Facts { input: Some(stored(1 << 30, 0)), ..copy() }.sentences(&Ok(None));
        assert!(
            cold[0].contains("0 B of 'file' were resident") && cold[0].contains("8,192 requests of 128 KiB"),
            "{cold:?}"
        );
        let direct = Stored { is_direct: true, ..stored(1 << 30, 0) };
        let said = Facts { input: Some(direct), ..copy() }.sentences(&Ok(None));
        assert!(said[0].contains("977 us each") && said[0].contains("--bs 1m --depth 8"), "{said:?}");
        let memory = Stored { ram: Some("tmpfs".into()), ..stored(0, 0) };
        assert!(Facts { input: Some(memory), ..copy() }.sentences(&Ok(None))[0].contains("no disk was read"));
    }

    #[test]
    fn calls_that_keep_a_cpu_busy_are_named_and_synced_writes_are_not_written_off() {
        let said = Facts { cpu_share: Some(0.98), input_block_bytes: 512, reads: 1 << 21, ..copy() }
            .sentences(&Ok(None));
        assert!(
            said[0].contains("98 %") && said[0].contains("2,098,176 calls") && said[0].contains("bs=1M"),
            "{said:?}"
        );
        let synced = Facts { output: Some(stored(0, 1 << 30)), syncs: true, ..copy() };
        assert!(!synced.leaves_work());
        assert!(
            synced.sentences(&Ok(None))[0]
                .starts_with("all of it was stable when dd ended: the disk (vda) wrote 1 GiB")
        );
        let direct = Stored { is_direct: true, ..stored(0, 1 << 30) };
        let said = Facts { output: Some(direct), ..copy() }.sentences(&Ok(None));
        assert!(said[0].contains("one at a time") && said[0].contains("cache of its own"), "{said:?}");
    }

    #[test]
    fn nothing_copied_says_nothing() {
        assert_eq!(Facts { bytes: 0, reads: 0, ..copy() }.sentences(&Ok(None)), Vec::<String>::new());
    }
}
