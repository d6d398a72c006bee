//! A look at what tells a disk from a cache: counters of the block devices, pages of a file in memory, bytes fetched for us.
//!
//! For: two looks around a loop, and what happened between them. Not for: sessions, whose snapshots hold far more
//! (`machine::snapshot`) and take as long.

use machine::pages;
use machine::root::Root;
use model::Known;
use model::evidence::{BlockFlow, BlockStat, Pages};
use model::machine::{Layer, Place};
use model::units::{show_bytes, show_count};
use std::fs::File;
use std::path::Path;

/// From so many times of what was fetched for us on, others read too; a part may be read twice or ahead.
const OTHERS: f64 = 1.25;
/// Less than that is nobody's business.
const LITTLE_BYTES: u64 = 1 << 20;

/// What is looked at: a file or a block device.
#[derive(Debug)]
pub(super) struct Subject {
    /// A descriptor of its own.
    file: File,
    place: Place,
}

/// What was seen at a moment.
#[derive(Clone, Debug)]
pub(super) struct Look {
    disks: Vec<Known<BlockStat>>,
    /// Pages of it in the page cache.
    pub(super) pages: Known<Pages>,
}

/// What a disk did between two looks; what others did there is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// Kernel name.
    pub(super) name: String,
    /// Its counters' difference.
    pub(super) did: BlockStat,
}

impl Subject {
    /// An open file or device at a path; `None` where it is neither, or cannot be looked at.
    pub(super) fn of(root: &Root, file: &File, path: &Path) -> Option<Self> {
        let facts = file.metadata().ok()?;
        let has_pages =
            facts.is_file() || std::os::unix::fs::FileTypeExt::is_block_device(&facts.file_type());
        let place = has_pages.then(|| machine::resolve::resolve_open(root, file, path).ok()).flatten()?;
        Some(Self { file: file.try_clone().ok()?, place })
    }

    /// Where it is stored.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn look(&self, root: &Root) -> Look {
        let stat = |layer: &Layer| {
            root.read(&layer.stat_file)
                .map_err(|why| format!("{}: {why}", layer.stat_file))
                .and_then(|t| BlockStat::parse(&t))
        };
        Look { disks: self.tops().map(stat).collect(), pages: pages::look(&self.file) }
    }

    /// The devices right below it.
    fn tops(&self) -> impl Iterator<Item = &Layer> {
        self.place.tops.iter().filter_map(|at| self.place.layers.get(*at))
    }

    /// What the devices right below it did between two looks, as one; why that is not known where it is not.
    pub(super) fn disk_between(&self, before: &Look, after: &Look) -> Known<Disk> {
        if let Some(ram) = &self.place.ram {
            return Err(format!("it is memory ({ram}), and no disk"));
        }
        let names: Vec<&str> = self.tops().map(|layer| layer.name.as_str()).collect();
        let mut did = BlockStat::default();
        for (before, after) in before.disks.iter().zip(&after.disks) {
            let (before, after) = (before.clone()?, after.clone()?);
            did = did.plus(&after.since(&before).ok_or("the counters of its disk went backwards")?);
        }
        if names.is_empty() {
            let why = self.place.blind.clone();
            return Err(why.unwrap_or_else(|| "no block device is seen below it".into()));
        }
        Ok(Disk { name: names.join(" and "), did })
    }
}

/// Bytes that the kernel fetched from storage for this process so far.
pub(super) fn fetched_bytes(root: &Root) -> Known<u64> {
    let text = root.read("/proc/self/io").map_err(|why| format!("/proc/self/io: {why}"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("read_bytes:"));
    value.and_then(|v| v.trim().parse().ok()).ok_or_else(|| "/proc/self/io has no read_bytes".into())
}

/// What was fetched from storage for this process between two moments.
pub(super) fn fetched_between(before: &Known<u64>, after: &Known<u64>) -> Known<u64> {
    let (before, after) = (before.clone()?, after.clone()?);
    after.checked_sub(before).ok_or_else(|| "/proc/self/io went backwards".into())
}

/// What a disk read in words, and whether that was for us, where that is known.
pub(super) fn read_by(disk: &Known<Disk>, fetched: &Known<u64>) -> String {
    let disk = match disk {
        Ok(disk) => disk,
        Err(why) => return format!("what its disk did is not known: {why}"),
    };
    let words = format!("the disk ({}) read {}", disk.name, flow(&disk.did.read));
    match fetched {
        Ok(ours)
            if disk.did.read.bytes as f64 > OTHERS * *ours as f64 && disk.did.read.bytes > LITTLE_BYTES =>
        {
            format!("{words}, of which {} for this", show_bytes(*ours))
        }
        _ => words,
    }
}

/// A flow in words: `1 GiB in 8,192 requests of 128 KiB`.
pub(super) fn flow(flow: &BlockFlow) -> String {
    match flow.bytes.checked_div(flow.ios) {
        None => "nothing".into(),
        Some(mean) => {
            let requests = if flow.ios == 1 { "request" } else { "requests" };
            format!(
                "{} in {} {requests} of {}",
                show_bytes(flow.bytes),
                show_count(flow.ios as f64),
                show_bytes(mean)
            )
        }
    }
}

#[test]
fn a_flow_has_its_mean_and_none_is_nothing() {
    let of = |ios, bytes| flow(&BlockFlow { ios, bytes, merges: 0, ms: 0 });
    assert_eq!(of(8192, 1 << 30), "1 GiB in 8,192 requests of 128 KiB");
    assert_eq!((of(1, 4096), of(0, 0)), ("4 KiB in 1 request of 4 KiB".to_owned(), "nothing".to_owned()));
}

#[test]
fn what_others_read_is_told_from_what_was_read_for_us() {
    let read = BlockFlow { ios: 64, bytes: 64 << 20, ..BlockFlow::default() };
    let disk = Ok(Disk { name: "vda".into(), did: BlockStat { read, ..BlockStat::default() } });
    assert_eq!(read_by(&disk, &Ok(64 << 20)), "the disk (vda) read 64 MiB in 64 requests of 1 MiB");
    assert!(read_by(&disk, &Ok(0)).ends_with("of which 0 B for this"));
    assert!(read_by(&disk, &Err("x".into())).ends_with("1 MiB"));
    assert_eq!(fetched_between(&Ok(1), &Ok(3)), Ok(2));
    assert!(fetched_between(&Ok(3), &Ok(1)).is_err());
}

#[test]
fn what_was_written_a_moment_ago_is_in_memory_and_a_pipe_is_no_subject() -> std::io::Result<()> {
    use std::io::Write;
    let root = Root::real();
    let mut file = tempfile::NamedTempFile::new_in(".")?;
    file.write_all(&[7; 8192])?;
    let subject = Subject::of(&root, file.as_file(), file.path());
    let pages = subject.map(|s| s.look(&root).pages);
    assert!(pages.is_some_and(|p| p.is_ok_and(|p| p.cached >= 1)));
    assert!(Subject::of(&root, &File::open("/dev/null")?, Path::new("/dev/null")).is_none());
    assert!(fetched_bytes(&root).is_ok());
    Ok(())
}
