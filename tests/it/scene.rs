//! Scenes: scripts that make a number misleading on real storage. A scene names the check that must find this.
//!
//! Scenes in [`PLAYED_HERE`] are checked by the test in this file, those in [`PLAYED_ELSEWHERE`] by tests that examine the report further.

use crate::disk::{Device, Disk, Image};
use crate::group::Group;
use crate::stage::{Outcome, Report, Stage, is_root, wait};

/// Added to all command lines: one short run.
const ONCE: &str = "--time 400ms --warmup 50ms --runs 1";

/// A scene: a check, its expected answer, and how to provoke it.
#[derive(Clone, Copy)]
pub(crate) struct Scene {
    /// The check.
    pub(crate) id: &'static str,
    /// The expected answer of the check.
    pub(crate) answer: &'static str,
    storage: Storage,
    /// Settings of the disk's queue: file, value.
    switches: &'static [(&'static str, &'static str)],
    /// Limits of a cgroup: controller, file, value. `$NUMBER` is the disk's number.
    limits: &'static [(&'static str, &'static str, &'static str)],
    /// A script that runs before the measurement, on the storage of the scene.
    before: &'static str,
    /// A script that runs during the measurement. `$NUMBER` is the disk's number, `$GROUP` the directory of the limits.
    during: &'static str,
    /// A prefix of the command.
    started_by: &'static [&'static str],
    /// Arguments of `run` in addition to the common ones. `$TARGET` is the target.
    pub(crate) words: &'static str,
    /// Duration and number of runs.
    length: &'static str,
    /// The target, as seen from the storage.
    target: &'static str,
    /// Whether the scene needs the machine to itself, because other load would hide the problem, or the scene would disturb other tests.
    pub(crate) is_alone: bool,
}

/// The storage of a scene.
#[derive(Clone, Copy)]
enum Storage {
    /// A directory on the machine's own disk.
    Folder,
    /// A file system with mount options on a loop device.
    Disk(&'static str, &'static str),
    /// A file system on a loop device that uses the page cache.
    Cached(&'static str),
    /// A loop device of this many MiB without a file system.
    Raw(usize),
    /// A loop device with slow reads in a manner of `slow_reads.py`.
    Slow(&'static str),
}

const EXT4: Storage = Storage::Disk("ext4", "defaults");

/// Random reads on ext4 without a provocation.
const PLAIN: Scene = Scene {
    id: "",
    answer: "finding",
    storage: EXT4,
    switches: &[],
    limits: &[],
    before: "true",
    during: "",
    started_by: &[],
    words: "--rw randread --depth 4 --size 32m",
    length: ONCE,
    target: "",
    is_alone: false,
};

/// Makes a file of 64 MiB without holes.
macro_rules! data {
    ($then:literal) => {
        concat!("head -c 64M /dev/urandom > data && sync data", $then)
    };
}

/// Reads a cached file through the page cache.
pub(crate) const CACHED_FILE: Scene = Scene {
    id: "A01",
    before: data!(" && cat data > /dev/null"),
    words: "--rw randread --cache buffered --depth 1",
    target: "data",
    ..PLAIN
};
/// Reads a cached file through the page cache, which the user accepts.
pub(crate) const CACHED_FILE_ACCEPTED: Scene =
    Scene { words: "--rw randread --cache buffered --depth 1 --accept a01", ..CACHED_FILE };
/// Direct writes to files whose data are journaled.
pub(crate) const JOURNALLED: Scene = Scene {
    id: "A03",
    storage: Storage::Disk("ext4", "data=journal"),
    words: "--rw randwrite --depth 4 --size 32m",
    ..PLAIN
};
/// Direct writes to files with checksums.
pub(crate) const CHECKSUMMED: Scene = Scene {
    id: "A02",
    storage: Storage::Disk("btrfs", "defaults"),
    words: "--rw randwrite --depth 4 --size 32m",
    ..PLAIN
};
/// Compressible data on a compressing file system.
pub(crate) const COMPRESSED: Scene = Scene {
    id: "A08",
    storage: Storage::Disk("btrfs", "compress-force=zstd"),
    words: "--rw randrw --mix 70 --depth 4 --size 32m --compress 60",
    ..PLAIN
};
/// Reads of a file that was never written.
pub(crate) const TRUNCATED: Scene =
    Scene { id: "A04", before: "truncate -s 64m hollow && sync", target: "hollow", ..PLAIN };
/// Reads of a file that was allocated and never written.
pub(crate) const ALLOCATED: Scene =
    Scene { id: "A04", before: "fallocate -l 64m hollow && sync", target: "hollow", ..PLAIN };
/// Reads of a file in memory.
pub(crate) const MEMORY: Scene =
    Scene { id: "A11", before: "mkdir memory && mount -t tmpfs none memory", target: "memory", ..PLAIN };
/// Reads of a loop device whose image is in the page cache.
pub(crate) const CACHED_IMAGE: Scene = Scene { id: "A12", storage: Storage::Cached("ext4"), ..PLAIN };
/// Reads of a device with disabled counters.
pub(crate) const UNCOUNTED: Scene =
    Scene { id: "A13", answer: "not_checked", switches: &[("iostats", "0")], ..PLAIN };
/// Reads while another process reads from the same disk.
pub(crate) const OTHER_LOAD: Scene = Scene {
    id: "D01",
    before: data!(""),
    during: "while :; do dd if=data of=/dev/null bs=64k iflag=direct status=none; done",
    words: "--rw randread --depth 1 --size 64m",
    ..PLAIN
};
/// A queue depth with a synchronous engine.
pub(crate) const WITHOUT_DEPTH: Scene =
    Scene { id: "B05", words: "--rw randread --engine sync --depth 16 --size 64m", ..PLAIN };
/// Syncs without a provocation. The host performs them, maybe only in its memory.
pub(crate) const SYNCED: Scene =
    Scene { id: "C03", words: "--rw randwrite --depth 1 --fsync 1 --size 32m", ..PLAIN };
/// Syncs on a device that claims to have no cache.
pub(crate) const WRITE_THROUGH: Scene =
    Scene { id: "C01", switches: &[("write_cache", "write through")], ..SYNCED };
/// Syncs on a mount that does not flush.
pub(crate) const WITHOUT_BARRIERS: Scene =
    Scene { id: "C02", storage: Storage::Disk("ext4", "nobarrier"), ..SYNCED };
/// Reads in a cgroup limited to 250 per second. The wait is far longer than the disk's own time, and the reads are so large that other
/// traffic is small in comparison.
pub(crate) const THROTTLED: Scene = Scene {
    id: "D04",
    limits: &[("blkio", "blkio.throttle.read_iops_device", "$NUMBER 250")],
    words: "--rw randread --bs 64k --depth 4 --size 32m",
    length: "--time 3s --warmup 500ms --runs 1",
    ..PLAIN
};
/// Reads in a cgroup that is limited during the run: after 20,000 counted reads the measured window is open.
pub(crate) const THROTTLED_MEANWHILE: Scene = Scene {
    id: "E02",
    limits: &[("blkio", "blkio.throttle.read_iops_device", "$NUMBER 1000000")],
    during: r#"while sleep 0.05; do for group in "$GROUP"/*/; do
        [ -d "$group" ] || continue
        reads=$(awk -v d="$NUMBER" '$1 == d && $2 == "Read" { n = $3 } END { print n + 0 }' "$group/blkio.throttle.io_serviced")
        [ "$reads" -gt 20000 ] && sleep 1.5 && echo "$NUMBER 500" > "$group/blkio.throttle.read_iops_device" && exit
        done; done"#,
    length: "--time 6s --warmup 200ms --runs 1",
    ..PLAIN
};
/// Reads of an overlay of two directories.
pub(crate) const OVERLAY: Scene = Scene {
    id: "D25",
    before: "mkdir lower upper work shown && \
             mount -t overlay overlay -o lowerdir=$PWD/lower,upperdir=$PWD/upper,workdir=$PWD/work shown",
    target: "shown",
    ..PLAIN
};

/// Scenes of other tests, which check the report further.
pub(crate) const PLAYED_ELSEWHERE: &[Scene] = &[
    CACHED_FILE,
    JOURNALLED,
    TRUNCATED,
    ALLOCATED,
    COMPRESSED,
    MEMORY,
    CACHED_IMAGE,
    UNCOUNTED,
    WITHOUT_DEPTH,
    WRITE_THROUGH,
    WITHOUT_BARRIERS,
    SYNCED,
    OTHER_LOAD,
    THROTTLED,
    OVERLAY,
    THROTTLED_MEANWHILE,
];

/// Scenes of the test in this file.
pub(crate) const PLAYED_HERE: &[Scene] = &[
    CHECKSUMMED,
    Scene { id: "A05", before: "head -c 64M /dev/zero > zeros && sync", target: "zeros", ..PLAIN },
    Scene {
        id: "A06",
        storage: Storage::Disk("ext4 inline", "defaults"),
        before: "head -c 100 /dev/urandom > tiny && sync",
        words: "--rw randread --bs 50 --cache buffered --depth 1",
        target: "tiny",
        ..PLAIN
    },
    Scene {
        id: "A07",
        storage: Storage::Disk("btrfs", "defaults"),
        before: "mkdir d && btrfs property set d compression zstd && yes fathom | head -c 32M > d/text && sync",
        words: "--rw randread --cache buffered --depth 1",
        target: "d/text",
        ..PLAIN
    },
    Scene { id: "A08", words: "--rw randwrite --depth 4 --size 32m --zeros", ..PLAIN },
    Scene { id: "A09", words: "--rw randwrite --cache buffered --depth 1 --size 32m", ..PLAIN },
    Scene {
        id: "A10",
        before: data!(""),
        // Wait until fathom has opened the target: fathom refuses a file that another program writes.
        during: "sleep 1; while :; do fallocate --punch-hole --offset 0 --length 64m data; sleep 0.05; done",
        words: "--rw randwrite --cache buffered --destroy $TARGET",
        target: "data",
        is_alone: true,
        ..PLAIN
    },
    Scene { id: "A14", words: "--rw randread --depth 4 --size 32m --expect-device nosuchdisk", ..PLAIN },
    Scene { id: "A15", words: "--rw randread --depth 4 --size 32m", ..PLAIN },
    Scene { id: "A16", words: "--rw randread --depth 4 --size 16m", ..PLAIN },
    Scene { id: "A18", words: "--rw randread --depth 1 --accept a04", ..TRUNCATED },
    Scene {
        id: "A20",
        storage: Storage::Raw(2048),
        switches: &[("rotational", "1")],
        // Holes of the image are read at once. Blocks of this size take longer than memory would need (A18).
        words: "--rw randread --bs 256k --depth 1 --accept a05",
        ..PLAIN
    },
    Scene {
        id: "A21",
        storage: Storage::Disk("xfs", "defaults"),
        before: data!(" && cp --reflink=always data copy && sync copy"),
        words: "--rw randwrite --depth 4 --destroy $TARGET",
        target: "data",
        ..PLAIN
    },
    Scene {
        id: "A23",
        before: data!(""),
        during: "while :; do printf x >> data; sleep 0.05; done",
        words: "--rw randread --depth 4",
        target: "data",
        ..PLAIN
    },
    Scene {
        id: "B20",
        words: "--rw write --bs 512 --engine sync --depth 1 --cache buffered --size 32m",
        ..PLAIN
    },
    Scene { id: "B01", words: "--rw read --bs 4k --depth 32 --batch 16 --size 32m", ..PLAIN },
    Scene {
        id: "B02",
        switches: &[("max_sectors_kb", "256")],
        words: "--rw read --bs 1m --depth 4 --size 64m",
        ..PLAIN
    },
    Scene {
        id: "B03",
        words: "--rw randread --bs 4k --depth 1 --engine mmap --size 128m",
        length: "--warmup 0s --ops 200 --runs 1",
        ..PLAIN
    },
    Scene {
        id: "B04",
        words: "--rw randwrite --bs 4k --depth 1 --cache direct-dsync --destroy $TARGET",
        length: "--time 2s --warmup 0s --runs 1",
        ..ALLOCATED
    },
    Scene {
        id: "B06",
        words: "--rw randread --depth 16 --cache buffered --engine libaio --size 128m",
        ..PLAIN
    },
    Scene {
        id: "B07",
        before: "truncate -s 256m hollow",
        words: "--rw randwrite --depth 32 --destroy $TARGET",
        length: "--time 2s --warmup 0s --runs 1",
        target: "hollow",
        ..PLAIN
    },
    Scene {
        id: "B08",
        storage: Storage::Disk("btrfs", "defaults"),
        words: "--rw randread --engine vsync:hipri --depth 1 --size 32m",
        ..PLAIN
    },
    Scene {
        id: "B09",
        switches: &[("nr_requests", "4")],
        words: "--rw randread --depth 32 --size 32m",
        ..PLAIN
    },
    // Reads of holes need no disk, so the CPU is the limit.
    Scene {
        id: "B10",
        storage: Storage::Raw(512),
        words: "--rw randread --depth 32 --batch 32 --workers 4 --accept a05",
        is_alone: true,
        ..PLAIN
    },
    Scene {
        id: "B11",
        storage: Storage::Folder,
        words: "--rw randwrite --bs 512 --depth 4 --size 32m",
        ..PLAIN
    },
    Scene {
        id: "B12",
        storage: Storage::Raw(64),
        before: "truncate -s 32m $IMAGE",
        words: "--rw randread --depth 4 --accept a05",
        ..PLAIN
    },
    Scene {
        id: "B15",
        storage: Storage::Disk("xfs", "defaults"),
        before: data!(
            " && cp --reflink=always data copy && python3 -c '
import os
file = os.open(\"copy\", os.O_WRONLY)
for piece in range(0, 64 << 20, 64 << 10):
    os.pwrite(file, os.urandom(4096), piece)
os.fsync(file)'"
        ),
        words: "--rw read --bs 4k --depth 1",
        target: "copy",
        ..PLAIN
    },
    Scene {
        id: "B16",
        before: "fallocate -l 64m hollow && sync",
        words: "--rw randwrite --depth 4 --destroy $TARGET",
        target: "hollow",
        ..PLAIN
    },
    Scene { id: "B21", words: "--rw randtrim --bs 64k --engine sync --depth 1 --size 16m", ..PLAIN },
    Scene {
        id: "B17",
        words: "--rw randread --depth 1 --workers 3 --engine sync --cache buffered --cpus 0-1 --pin --size 32m",
        length: "--time 2s --warmup 500ms --runs 1",
        is_alone: true,
        ..PLAIN
    },
    Scene {
        id: "B19",
        before: data!(""),
        during: "while :; do dd if=/dev/zero of=data bs=4k count=64 conv=notrunc status=none; done",
        target: "data",
        ..PLAIN
    },
    // A cached image accepts writes like the cache of a drive, and a sync has to wait for them.
    Scene {
        id: "C06",
        storage: Storage::Cached("ext4"),
        words: "--rw write --bs 1m --depth 4 --size 240m",
        is_alone: true,
        ..PLAIN
    },
    Scene { id: "C04", words: "--rw randwrite --depth 4 --size 32m", ..PLAIN },
    Scene { id: "D02", before: "head -c 256M /dev/zero > $IMAGE.dirt", is_alone: true, ..PLAIN },
    Scene { id: "D03", storage: Storage::Disk("ext4 lazy", "init_itable=10000"), is_alone: true, ..PLAIN },
    Scene { id: "D05", ..THROTTLED },
    Scene { id: "D06", ..CACHED_FILE },
    Scene { id: "D07", words: "--rw randread --bs 512 --engine mmap --size 16m", ..PLAIN },
    Scene {
        id: "D08",
        during: "for i in 1 2 3 4 5 6; do while :; do :; done & done; wait",
        length: "--time 1s --warmup 100ms --runs 1",
        is_alone: true,
        ..CACHED_FILE
    },
    Scene {
        id: "D09",
        storage: Storage::Folder,
        words: "--rw randwrite --cache direct-dsync --depth 1 --size 32m",
        during: "for i in $(seq 0 $(($(nproc) - 1))); do taskset -c $i sh -c 'while :; do :; done' & done; wait",
        // Run fathom with a lower priority than the other load, which then usually keeps the CPU until the next tick.
        started_by: &["nice", "-n", "5"],
        length: "--time 1s --warmup 100ms --runs 5",
        is_alone: true,
        ..PLAIN
    },
    Scene {
        id: "D11",
        limits: &[("cpu", "cpu.cfs_quota_us", "20000")],
        length: "--time 2s --warmup 100ms --runs 1",
        ..CACHED_FILE
    },
    Scene {
        id: "D14",
        limits: &[("memory", "memory.limit_in_bytes", "64M")],
        words: "--rw randread --engine mmap --cache mmap --depth 1 --size 192m",
        length: "--time 1s --warmup 100ms --runs 1",
        ..PLAIN
    },
    Scene {
        id: "D17",
        storage: Storage::Slow("wakes 0.03 1.2"),
        words: "--rw randread --depth 1",
        length: "--time 2s --warmup 0 --runs 1",
        ..PLAIN
    },
    Scene {
        id: "D20",
        before: "fallocate -l $(($(df --output=avail -B1 . | tail -1) - (40 << 20))) fill",
        words: "--rw randwrite --depth 4 --size 16m",
        ..PLAIN
    },
    Scene { id: "D22", switches: &[("nomerges", "2")], ..PLAIN },
    Scene { id: "E05", ..PLAIN },
    // A limit that rises and falls every few seconds.
    Scene {
        id: "E06",
        limits: &[("blkio", "blkio.throttle.read_iops_device", "$NUMBER 1000000")],
        during: r#"while :; do for rate in 4000 1000; do sleep 1; for group in "$GROUP"/*/; do
            [ -d "$group" ] && echo "$NUMBER $rate" > "$group/blkio.throttle.read_iops_device"; done; done; done"#,
        length: "--time 500ms --warmup 50ms --runs 5",
        is_alone: true,
        ..PLAIN
    },
    Scene {
        id: "E07",
        before: data!(
            " && dd if=data of=data oflag=nocache conv=notrunc,fdatasync count=0 status=none && \
                       head -c 32M data > /dev/null"
        ),
        words: "--rw randread --cache buffered --depth 1 --ops 2000",
        length: "--warmup 0s --runs 1",
        target: "data",
        is_alone: true,
        ..PLAIN
    },
    Scene { id: "E08", length: "--warmup 0s --ops 40 --runs 1", ..PLAIN },
    Scene { id: "E10", words: "--rw randread --depth 1 --rate 1000000 --size 32m", ..PLAIN },
    Scene { id: "E12", ..PLAIN },
];

impl Scene {
    /// Plays the scene. Skips the test and returns `None` if the machine cannot do it.
    pub(crate) fn play(&self, stage: &Stage) -> Option<Outcome> {
        if !is_root() {
            return None;
        }
        let disk = match self.storage {
            Storage::Folder => Disk::bare(stage, None)?,
            Storage::Slow(manner) => Disk::slow_device(stage, manner)?,
            Storage::Raw(mib) => Disk::bare(stage, Some(Device::new(stage, mib, Image::Direct)?))?,
            Storage::Disk(kind, options) => Disk::mounted(stage, kind, Image::Direct, options)?,
            Storage::Cached(kind) => Disk::new(stage, kind, Image::Buffered)?,
        };
        let _switched: Vec<_> = self.switches.iter().map(|(file, value)| disk.switch(file, value)).collect();
        let groups: Option<Vec<Group>> =
            self.limits.iter().map(|limit| Group::limited(&disk, limit)).collect();
        let groups = groups?;
        let named = |script: &str| {
            let group = groups.first().map_or(String::new(), |g| g.dir().display().to_string());
            let number = if matches!(self.storage, Storage::Folder) { String::new() } else { disk.number() };
            format!("GROUP={group} NUMBER={number} IMAGE={} && {script}", stage.path("image").display())
        };
        disk.sh(&named(self.before));
        let _during = (!self.during.is_empty()).then(|| disk.spawn_sh(&named(self.during)));
        let target = if matches!(self.storage, Storage::Raw(_) | Storage::Slow(_)) {
            disk.device.clone()
        } else {
            disk.dir.join(self.target)
        };
        let words = self.words.replace("$TARGET", &target.display().to_string());
        let groups = groups.iter().flat_map(Group::enter);
        let before: Vec<String> =
            groups.chain(self.started_by.iter().map(|word| (*word).to_owned())).collect();
        // Each run is played once: the background load of a scene would disturb a repeated run too.
        let words = format!("run {words} {} --attempts 1 --quiet --format json", self.length);
        Some(wait(&mut stage.command(&[disk.enter(), before].concat(), &words, &target)))
    }

    /// Whether the check answers as expected. Also true, with a message, if the machine cannot play the scene.
    fn is_found(&self, stage: &Stage) -> bool {
        let since = std::time::Instant::now();
        let Some(out) = self.play(stage) else { return true };
        let report = out.report();
        let seen = report.has_answer(self.id, self.answer);
        println!("{} {} {seen} {:?}", self.id, self.words, since.elapsed());
        if !seen {
            println!("{:#?}", report.answers(self.id));
        }
        seen
    }

    /// The report; fails if the check does not answer as expected.
    #[track_caller]
    pub(crate) fn assert_found(&self, stage: &Stage) -> Option<Report> {
        let report = self.play(stage)?.report();
        report.expect_answer(self.id, self.answer);
        Some(report)
    }
}

/// Whether a scene is selected: `FATHOM_SCENES="B04 C06"` selects scenes, without it all are.
pub(crate) fn wanted(scene: &Scene) -> bool {
    std::env::var("FATHOM_SCENES").map_or(true, |only| only.contains(scene.id))
}

/// Returns the scenes whose checks do not answer as expected. All scenes play at the same time first. Those that fail play again, alone.
fn missed<'s>(scenes: impl Iterator<Item = &'s Scene>) -> Vec<&'s Scene> {
    let (mut left, together): (Vec<&Scene>, Vec<&Scene>) = scenes.partition(|s| s.is_alone);
    let test = std::thread::current();
    std::thread::scope(|threads| {
        let play = |scene: &'s Scene| {
            // Skipped scenes are reported under the name of the test.
            let thread = std::thread::Builder::new().name(test.name().unwrap_or_default().to_owned());
            let play = move || !scene.is_found(&Stage::shared());
            (scene, thread.spawn_scoped(threads, play).unwrap())
        };
        // Each scene waits for its turn.
        let playing: Vec<_> = together.into_iter().map(play).collect();
        left.extend(
            playing.into_iter().filter_map(|(scene, missed)| missed.join().unwrap().then_some(scene)),
        );
    });
    left.retain(|scene| !(0..5).any(|_| scene.is_found(&Stage::watching())));
    left
}

#[test]
fn provoked_problems_are_found() {
    let missed = missed(PLAYED_HERE.iter().filter(|s| wanted(s)));
    let named: Vec<String> = missed.iter().map(|s| format!("{} by {}", s.id, s.words)).collect();
    assert!(named.is_empty(), "{named:#?}");
}
