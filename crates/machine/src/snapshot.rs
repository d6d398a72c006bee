//! Snapshots: kernel text at one moment, always the same files in the same order.
//!
//! [`SnapshotReader`] decides once which files are read: device counters, cgroup, memory, CPUs, pressure,
//! temperatures, target states. `model::evidence` parses the text and the crate `analysis` interprets it.

use crate::error::describe;
use crate::root::Root;
use crate::threads::{self, Ours};
use crate::{cgroup, extents, file_systems, page_cache};
use model::evidence::{Extents, FileState, Moment, RegionState, Room, SECTOR_BYTES, Snapshot, TargetState};
use model::machine::{Layer, Machine};
use model::{Known, evidence};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

/// Files of the whole machine. A snapshot reads them after the files of the devices.
const MACHINE_FILES: [&str; 3] = ["/proc/meminfo", "/proc/vmstat", "/proc/stat"];
/// Files that are read for a run of fathom, but not for a user's command.
const RUN_FILES: [&str; 2] = ["/proc/self/io", evidence::RAID];
/// Pressure files of the whole machine. A snapshot reads them after [`MACHINE_FILES`]. Of the files of the whole machine, the live view
/// reads only these.
const PRESSURE_FILES: [&str; 3] = ["/proc/pressure/io", "/proc/pressure/cpu", "/proc/pressure/memory"];
/// Temperature files of a drive's hardware monitor.
const TEMPERATURE_FILES: [&str; 4] = ["temp1_input", "temp1_max", "temp1_crit", "temp1_alarm"];
/// File systems whose client keeps statistics for each mount.
const STATISTICS_KINDS: [&str; 2] = ["nfs", "nfs4"];
/// Number of times that two clocks are read one after the other. The smallest difference counts, because this thread may lose its CPU
/// between the two readings.
const CLOCK_READINGS: usize = 4;

/// An open target, its measured region, and the parts of the region that have a state of their own. All ranges are in
/// bytes and may reach beyond the end of the target.
pub type MeasuredRegion<'f> = (&'f File, Range<u64>, Vec<Range<u64>>);

/// The files to read for each snapshot, selected once.
#[derive(Clone, Debug)]
pub struct SnapshotReader {
    root: Root,
    /// `stat` files of all layers, top layers first, and the files that show whether the kernel
    /// counts the I/O of a layer.
    devices: Vec<String>,
    /// Files of the cgroup.
    cgroup: Vec<String>,
    /// Directories of the hardware monitors (`hwmon`) of the drives below the targets.
    monitors: Vec<String>,
    /// Mount points of targets with client statistics, such as NFS.
    mount_statistics: Vec<String>,
    /// The file that counts fathom's throttled CPU time.
    cpu_stat: Known<String>,
    ours: Ours,
    epoch: Instant,
}

impl SnapshotReader {
    /// Selects the files for the devices and the cgroup of a machine. Times are relative to `epoch`.
    pub fn new(root: Root, machine: &Machine, epoch: Instant) -> Self {
        let layers = || machine.places.iter().flat_map(|p| &p.layers);
        let systems = machine.places.iter().filter_map(|p| p.file_system.as_ref());
        let with_statistics = systems.filter(|f| STATISTICS_KINDS.contains(&f.kind.as_str()));
        let cgroup = machine.cgroup.as_ref().map_or_else(|_| Vec::new(), |c| c.files.clone());
        Self {
            devices: {
                let switches: Vec<String> = layers().filter_map(Layer::iostats_file).collect();
                unique(layers().map(|l| &l.stat_file).chain(&switches))
            },
            cgroup,
            monitors: unique(layers().filter_map(|l| l.device.get("hwmon"))),
            mount_statistics: unique(with_statistics.map(|f| &f.mount_point)),
            cpu_stat: cgroup::cpu_stat(&root),
            ours: Ours::default(),
            root,
            epoch,
        }
    }

    /// Reads all selected files. `targets` are in the order of the plan, each with the regions whose extents are read. A target that is
    /// `None` gets a reason instead of a state. `with_extents` adds the extents and the free space.
    pub fn take(&self, moment: Moment, targets: &[Option<MeasuredRegion>], with_extents: bool) -> Snapshot {
        let at_ns = self.now_ns();
        let mut files = self.counters(MACHINE_FILES.iter().chain(&PRESSURE_FILES).chain(&RUN_FILES));
        files.extend(self.combined_texts().into_iter().map(|(name, text)| (name.to_owned(), text)));
        let targets = targets.iter().map(|t| state(&self.root, t.as_ref(), with_extents)).collect();
        Snapshot { moment, at_ns, files, targets }
    }

    /// Reads the counters before or after a user's command: devices, fathom's cgroup, memory, CPUs, pressure, and
    /// at the start also the limits that cgroups set. Reads no more, because a command may end within 1 ms.
    pub fn take_for_command(&self, moment: Moment) -> Snapshot {
        let at_ns = self.now_ns();
        let mut files = self.counters(MACHINE_FILES.iter().chain(&PRESSURE_FILES));
        if moment == Moment::Start {
            files.insert(evidence::LIMITS.to_owned(), cgroup::read_limits(&self.root));
        }
        Snapshot { moment, at_ns, files, targets: Vec::new() }
    }

    /// Reads the devices and the names of all threads of fathom. Keeps only the device values that
    /// differ from `last`.
    pub fn take_changes(&mut self, last: &Snapshot) -> Snapshot {
        let at_ns = self.now_ns();
        let now = self.devices.iter().map(|path| self.read(path.clone()));
        let mut files: BTreeMap<_, _> =
            now.filter(|(path, text)| last.files.get(path) != Some(text)).collect();
        files.extend(self.ours.list_threads(&self.root).map(|text| (evidence::THREADS.to_owned(), text)));
        Snapshot { moment: Moment::During, at_ns, files, targets: Vec::new() }
    }

    /// Reads the counters of a run for the live view: devices, fathom's cgroup, pressure. Does not list
    /// processes.
    pub fn take_for_view(&self) -> Snapshot {
        let at_ns = self.now_ns();
        let files = self.counters(PRESSURE_FILES.iter());
        Snapshot { moment: Moment::During, at_ns, files, targets: Vec::new() }
    }

    /// Reads the counters of the devices and of fathom's cgroup, and also `files`.
    fn counters<'f>(&self, files: impl Iterator<Item = &'f &'static str>) -> BTreeMap<String, Known<String>> {
        let files = files.map(|file| (*file).to_owned());
        let paths = self.devices.iter().cloned().chain(self.cgroup.iter().cloned()).chain(files);
        paths.map(|path| self.read(path)).collect()
    }

    /// Reads the texts that combine several files, or are a part of one.
    fn combined_texts(&self) -> Vec<(&'static str, Known<String>)> {
        let stat = self.cpu_stat.as_ref().map_err(Clone::clone);
        let mut out = vec![
            (evidence::HOUSEKEEPERS, threads::housekeepers(&self.root)),
            (evidence::TEMPERATURES, self.temperatures()),
            (evidence::CPU_STAT, stat.and_then(|path| self.root.read(path))),
            (evidence::SUSPENDED, Ok(suspended_ns().to_string())),
            (evidence::LIMITS, cgroup::read_limits(&self.root)),
        ];
        if !self.mount_statistics.is_empty() {
            let text = self.root.read(evidence::MOUNT_STATS);
            out.push((evidence::MOUNT_STATS, text.map(|t| mount_statistics(&t, &self.mount_statistics))));
        }
        out
    }

    fn temperatures(&self) -> Known<String> {
        if self.monitors.is_empty() {
            return self.root.list("/sys/class/hwmon").map(|_| String::new());
        }
        let paths =
            self.monitors.iter().flat_map(|dir| TEMPERATURE_FILES.iter().map(move |f| format!("{dir}/{f}")));
        let there: Vec<String> = paths.filter(|path| self.root.has(path)).collect();
        self.root.first_lines(&there)
    }

    fn read(&self, path: String) -> (String, Known<String>) {
        let text = self.root.read(&path);
        let text = if path == "/proc/stat" { text.map(|t| cpu_lines(&t)) } else { text };
        (path, text)
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

/// Returns the CPU lines of `/proc/stat`, unchanged. The other lines are left out, because the line of interrupts alone can be as long as
/// all the rest.
fn cpu_lines(text: &str) -> String {
    text.split_inclusive('\n').filter(|l| l.starts_with("cpu")).collect()
}

fn state(root: &Root, part: Option<&MeasuredRegion>, with_extents: bool) -> TargetState {
    let open = || part.ok_or_else(|| "the target is not open in this process".to_owned());
    let target = part.map(|(file, ..)| *file);
    // Count the pages first: reading the extents writes dirty pages back.
    let pages = open().and_then(|(file, ..)| page_cache::count_cached_pages(file));
    let stored = with_extents.then(|| {
        open().and_then(|(file, region, parts)| extents::map_region_extents(file, region.clone(), parts))
    });
    let part_state =
        |(at, bytes): (usize, &Range<u64>), stored: &Known<(Extents, Vec<Extents>)>| RegionState {
            first_byte: bytes.start,
            end_byte: bytes.end,
            extents: stored.as_ref().map(|(_, parts)| parts[at]).map_err(Clone::clone),
            probe: None,
        };
    let parts = part.iter().flat_map(|(_, _, parts)| parts).enumerate();
    TargetState {
        pages,
        regions: stored
            .iter()
            .flat_map(|stored| parts.clone().map(|part| part_state(part, stored)))
            .collect(),
        extents: stored.map(|stored| stored.map(|(extents, _)| extents)),
        backing: target.filter(|_| with_extents).and_then(|t| extents::map_backing_file(root, t)),
        file: target.map(file_state),
        room: with_extents.then(|| open().and_then(|(file, ..)| room(file))),
        probe: None,
    }
}

/// Returns the identity, length and times of a file.
fn file_state(file: &File) -> Known<FileState> {
    let metadata = file.metadata().map_err(|e| describe(&e))?;
    if !metadata.is_file() {
        return Err("the target is a device, not a file in a file system".into());
    }
    Ok(FileState {
        device: metadata.dev(),
        inode: metadata.ino(),
        links: metadata.nlink(),
        bytes: metadata.len(),
        allocated_bytes: metadata.blocks().saturating_mul(SECTOR_BYTES),
        modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
        changed_ns: Some(
            metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec()),
        ),
    })
}

/// Returns the size and the free space of a file's file system.
fn room(file: &File) -> Known<Room> {
    let metadata = file.metadata().map_err(|e| describe(&e))?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err("the target is a device, not a file in a file system".into());
    }
    let seen = rustix::fs::fstatvfs(file).map_err(|e| describe(&e.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(seen.f_frsize);
    Ok(Room { total_bytes: bytes(seen.f_blocks), free_bytes: bytes(seen.f_bavail) })
}

/// Returns how long the machine was suspended since it was booted, in ns.
fn suspended_ns() -> u64 {
    let ns = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let one = |_| {
        let awake = ns(ClockId::Monotonic);
        ns(ClockId::Boottime).saturating_sub(awake)
    };
    (0..CLOCK_READINGS).map(one).min().unwrap_or(0)
}

/// Returns the sections of `/proc/self/mountstats` about these mount points.
fn mount_statistics(text: &str, points: &[String]) -> String {
    let mut ours = false;
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with("device ") {
            ours = mount_point(line).is_some_and(|point| points.contains(&point));
        }
        if ours {
            out += line;
        }
    }
    out
}

/// Parses the mount point of a line `device SOURCE mounted on POINT with fstype ...`.
fn mount_point(line: &str) -> Option<String> {
    let point = line.split_once(" mounted on ")?.1.split_once(" with fstype ")?.0;
    Some(file_systems::unescape(point))
}

fn unique<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names {
        if !out.contains(name) {
            out.push(name.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use model::machine::{Layer, Place};
    use std::fs;

    fn machine(stat_file: &str) -> Machine {
        let layer = Layer { stat_file: stat_file.into(), ..Layer::default() };
        let place = Place { layers: vec![layer.clone(), layer], tops: vec![0], ..Place::default() };
        let places = vec![place];
        Machine { places, ..crate::host::read_host(&Root::real()) }
    }

    #[test]
    fn a_snapshot_holds_every_file_or_the_reason_why_not() {
        let reader =
            SnapshotReader::new(Root::real(), &machine("/sys/class/block/none/stat"), Instant::now());
        let file = tempfile::tempfile().unwrap_or_else(|e| panic!("{e}"));
        let seen = reader.take(Moment::Start, &[Some((&file, 0..u64::MAX, Vec::new())), None], true);
        println!("{seen:#?}");
        let combined_texts = [
            evidence::HOUSEKEEPERS,
            evidence::TEMPERATURES,
            evidence::CPU_STAT,
            evidence::SUSPENDED,
            evidence::LIMITS,
        ];
        assert!(combined_texts.iter().all(|name| seen.files.contains_key(*name)));
        // `+ 2` below: the counters of the device, and the file that enables them.
        let machine_files = MACHINE_FILES.len() + PRESSURE_FILES.len() + RUN_FILES.len();
        assert_eq!(seen.files.len(), machine_files + combined_texts.len() + 2);
        assert!(seen.text(evidence::SUSPENDED).is_ok_and(|t| t.parse::<u64>().is_ok()));
        assert_eq!(seen.files["/sys/class/block/none/stat"], Err("no such file".to_owned()));
        assert!(seen.text("/proc/meminfo").is_ok());
        assert!(seen.text("/proc/stat").is_ok_and(|t| t.starts_with("cpu ") && !t.contains("intr")));
        assert_eq!(seen.targets.len(), 2);
        assert!(seen.targets[1].pages.is_err() && seen.targets[0].extents.is_some());
        assert!(seen.targets[0].regions.is_empty());
        let parts = || [Some((&file, 0..u64::MAX, vec![0..4096, 4096..8192]))];
        let in_parts = reader.take(Moment::Start, &parts(), true).targets.remove(0);
        assert_eq!(in_parts.extents, seen.targets[0].extents);
        let part = in_parts.region(&(4096..8192));
        // An empty file has no bytes in either part.
        assert_eq!(part.map(|part| part.extents.clone()), in_parts.extents);
        assert!(reader.take(Moment::Stop, &parts(), false).targets[0].regions.is_empty());
        let room = seen.targets[0].room.clone();
        assert!(room.is_some_and(|r| r.is_ok_and(|r| r.free_bytes <= r.total_bytes && r.total_bytes > 0)));
        assert_eq!(
            reader.take(Moment::Stop, &[Some((&file, 0..u64::MAX, Vec::new()))], false).targets[0].room,
            None
        );
        let snapshot = reader.take_for_view();
        assert!(snapshot.files.len() == 5 && snapshot.files.keys().all(|name| seen.files.contains_key(name)));
    }

    #[test]
    fn during_a_run_only_changed_files_are_kept() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        fs::write(dir.path().join("stat"), "1 2 3").unwrap_or_else(|e| panic!("{e}"));
        let mut reader =
            SnapshotReader::new(Root::at(dir.path().to_owned()), &machine("/stat"), Instant::now());
        let first = reader.take(Moment::Start, &[], false);
        let mut during = |name: &str| reader.take_changes(&first).files.get(name).cloned();
        assert_eq!(during("/stat"), None);
        assert_eq!(during(evidence::THREADS), Some(Err("no such file".to_owned())));
        fs::write(dir.path().join("stat"), "1 2 4").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(during("/stat"), Some(Ok("1 2 4".to_owned())));
        fs::create_dir_all(dir.path().join("proc/self/task/7")).unwrap_or_else(|e| panic!("{e}"));
        fs::write(dir.path().join("proc/self/task/7/comm"), "me\n").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(during(evidence::THREADS), Some(Ok("7: me\n".to_owned())));
    }

    #[test]
    fn only_the_drives_below_the_targets_are_asked_how_warm_they_are() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| fixture::put(dir.path(), path, text);
        let root = || Root::at(dir.path().to_owned());
        let mut machine = machine("/stat");
        let seen = |machine: &Machine| {
            let seen = SnapshotReader::new(root(), machine, Instant::now()).take(Moment::Start, &[], false);
            seen.files[evidence::TEMPERATURES].clone()
        };
        assert_eq!(seen(&machine), Err("no such file".to_owned()));
        put("sys/class/hwmon/hwmon0/temp1_input", "99000\n");
        assert_eq!(seen(&machine), Ok(String::new()));
        put("sys/class/hwmon/hwmon1/temp1_input", "45850\n");
        put("sys/class/hwmon/hwmon1/temp1_crit", "84850\n");
        machine.places[0].layers[0].device.insert("hwmon".into(), "/sys/class/hwmon/hwmon1".into());
        let lines = "/sys/class/hwmon/hwmon1/temp1_input: 45850\n/sys/class/hwmon/hwmon1/temp1_crit: 84850\n";
        assert_eq!(seen(&machine), Ok(lines.to_owned()));
    }

    #[test]
    fn only_statistics_of_mounts_of_targets_are_kept() {
        let text = "device proc mounted on /proc with fstype proc\n\
                    device server:/a mounted on /mnt/my\\040data with fstype nfs4 statvers=1.1\n\
                    \tbytes:\t1 2 3 4 5 6 7 8\n\
                    device server:/b mounted on /mnt with fstype nfs4 statvers=1.1\n\tage:\t9\n";
        let kept = mount_statistics(text, &["/mnt/my data".to_owned()]);
        assert!(kept.starts_with("device server:/a") && kept.ends_with("7 8\n"), "{kept}");
        assert_eq!(kept.lines().count(), 2);
        assert_eq!(mount_statistics(text, &["/mnt/other".to_owned()]), "");
    }
}
