//! `fathom doctor`: inspects a target before a measurement, and reports everything that would distort a number, with its fix.
//!
//! 1. `observe` collects all facts: two snapshots with a pause between them, the target's place in
//!    the block stack, rights, processes.
//! 2. `storage` and `environment` derive answers from the observation alone, so that they can be tested. If a check of results also works
//!    without a measurement, that check gives the answer, with its own thresholds ([`Idle`]).
//!
//! Nothing is measured or changed, except that the kernel writes back dirty bytes of the target, at most `MAX_DIRTY_BYTES`, when the extents
//! of the target are read. Fixes are commands for the user to type.

mod environment;
mod storage;

use crate::failure::Failure;
use crate::plan::settings;
use crate::{stderr, stdout};
use analysis::idle::Idle;
use machine::processes::{BusyProcess, ProcessVisibility, Processes};
use machine::rights::Rights;
use machine::root::Root;
use machine::snapshot::SnapshotReader;
use machine::{host, resolve, rights};
use model::evidence::{Moment, Snapshot, TargetState};
use model::finding::{AnswerGroup, CheckId, Diagnosis, DoctorAnswer, FORMAT, Outcome, Severity};
use model::machine::{DirectIo, Machine, Place};
use model::plan::Role;
use model::units::{show_bytes, show_ns};
use model::{Known, name, record};
use report::{Format, Style};
use std::fs::{File, Metadata, OpenOptions};
use std::io::IsTerminal;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use sys::clock::Clock;

/// The user's request.
#[derive(Debug)]
pub struct Request {
    /// Directory, file or device to inspect.
    pub target: PathBuf,
    /// The format of the answer.
    pub format: &'static Format,
}

/// Inspects the target, and prints the diagnosis.
///
/// # Errors
/// If the target cannot be read, or is not a directory, file or block device.
pub fn doctor(request: &Request) -> Result<ExitCode, Failure> {
    if std::io::stderr().is_terminal() {
        stderr::print(&format!(
            "watching other load for {} ...",
            show_ns(watch_duration().as_nanos() as f64)
        ));
    }
    let observation = observe(&request.target)?;
    stdout::print_report(request.format, &diagnose(observation), Style::default())?;
    Ok(ExitCode::SUCCESS)
}

fn diagnose(observation: Observation) -> Diagnosis {
    let group = |heading: &str, answers: Vec<DoctorAnswer>| AnswerGroup { heading: heading.into(), answers };
    let mut groups = vec![
        group("The place", storage::check_place(&observation)),
        group("The stored data", storage::check_stored_data(&observation)),
        group("The device below", storage::check_device(&observation)),
        group("The machine", environment::check_host(&observation)),
        group("Other load", environment::check_other_load(&observation)),
        group("Rights of fathom", environment::check_rights(&observation)),
    ];
    if observation.rights.sys_is_read_only {
        let answers = groups.iter_mut().flat_map(|g| &mut g.answers);
        for answer in answers.filter(|answer| answer.fix.contains("/sys/")) {
            answer.fix = format!("outside of this container (/sys is read-only here), {}", answer.fix);
        }
    }
    Diagnosis {
        format: FORMAT,
        target: observation.path.to_string_lossy().into_owned(),
        chain: observation.place().chain(),
        watched_ms: observation.watched_ns() / 1_000_000,
        groups: groups.into_iter().filter(|g| !g.answers.is_empty()).collect(),
        machine: observation.machine,
    }
}

/// Returns an answer without a problem. [`name_answer`] adds the subject.
#[allow(clippy::unnecessary_wraps, reason = "other observations may fail")]
fn fine(sentence: impl Into<String>) -> Known<DoctorAnswer> {
    Ok(DoctorAnswer::ok("", sentence))
}

/// Returns an answer with a problem, its effect on a number and its fix. [`name_answer`] adds the subject.
#[allow(clippy::unnecessary_wraps, reason = "other observations may fail")]
fn problem(severity: Severity, sentence: impl Into<String>, fix: impl Into<String>) -> Known<DoctorAnswer> {
    Ok(DoctorAnswer::finding("", severity, sentence).with_fix(fix))
}

/// Sets the subject of an answer and, unless all is well or the answer names another check, the id of the check that asks the same question
/// about a measured result. `Err` of `observed` is the reason why nothing could be observed.
fn name_answer(about: &str, check: Option<CheckId>, observed: Known<DoctorAnswer>) -> DoctorAnswer {
    let answer = observed.unwrap_or_else(|why| DoctorAnswer::unknown(about, why));
    let check = answer.check.or(check).filter(|_| answer.outcome != Outcome::Holds);
    DoctorAnswer { about: about.to_owned(), check, ..answer }
}

/// Quotes a path for a shell.
fn quote_path(path: &Path) -> String {
    name::quoted(&path.to_string_lossy())
}

/// How long to watch other load: long enough to see writes that occur once per second, short enough to wait for.
const WATCH_NS: u64 = 3_000_000_000;
/// Largest number of dirty bytes of a file whose extents are read. Reading extents makes the kernel write dirty bytes first, and fathom
/// should not cause a large load. Any disk writes 16 MiB in a tenth of a second.
const MAX_DIRTY_BYTES: u64 = 16 << 20;
/// Largest number of directory entries that are searched for a file that shows how direct I/O works.
const MAX_ENTRIES: usize = 256;
const O_NONBLOCK: i32 = 0o4000;

/// The observed facts about a target and its machine.
#[derive(Clone, Debug)]
struct Observation {
    /// The target, absolute and without links.
    path: PathBuf,
    /// How the target would be used. A directory is [`Role::Made`]: fathom would make a test file in it.
    role: Role,
    /// Bytes of a file or device; 0 for a directory.
    bytes: u64,
    /// The machine, with the target as its only place.
    machine: Machine,
    /// For a directory: a file in it that shows how direct I/O works there. `None` for other
    /// targets, or without such a file.
    witness: Option<(String, DirectIo)>,
    /// Snapshot before the pause, without extents.
    start: Snapshot,
    /// Snapshot after the pause.
    end: Snapshot,
    /// Processes that were busy during the pause.
    busy: Known<Vec<BusyProcess>>,
    /// Number of listed processes whose I/O fathom cannot read.
    hidden: usize,
    /// Which processes of the machine fathom sees.
    visibility: ProcessVisibility,
    rights: Rights,
    /// The clock that fathom would use.
    clock: record::Clock,
}

impl Observation {
    /// The target's place.
    fn place(&self) -> &Place {
        // `observe` adds exactly one place.
        &self.machine.places[0]
    }

    /// The pages, extents and free space of the target after the pause; `None` if the snapshot has
    /// no target.
    fn target(&self) -> Option<&TargetState> {
        self.end.targets.first()
    }

    /// Time between the two snapshots, in ns.
    fn watched_ns(&self) -> u64 {
        self.end.at_ns.saturating_sub(self.start.at_ns)
    }

    /// The checks that need no measurement. For a directory, the witness decides about direct I/O.
    fn idle(&self) -> Idle {
        let mut machine = self.machine.clone();
        if let Some(place) = machine.places.first_mut() {
            place.direct = place.direct.or(self.witness.as_ref().map(|(_, direct)| *direct));
        }
        Idle::new(machine, self.role, self.bytes, [&self.start, &self.end])
    }
}

/// Observes a target and its machine.
///
/// # Errors
/// If the target cannot be read, or can never be measured.
fn observe(typed: &Path) -> Result<Observation, Failure> {
    let root = Root::real();
    let mut machine = host::read_host(&root);
    machine.places.push(resolve::resolve(&root, typed)?);
    let path = typed.canonicalize().map_err(|e| Failure::Refused(format!("{}: {e}", name::shown(typed))))?;
    machine.places[0].path = path.to_string_lossy().into_owned();
    let facts =
        std::fs::metadata(&path).map_err(|e| Failure::Refused(format!("{}: {e}", name::shown(&path))))?;
    let role = role_of(typed, &facts)?;
    // Open without blocking: a device may have no medium, and a file a lease.
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(&path);
    let bytes = match role {
        Role::File => facts.len(),
        // Read the size from /sys, because the user may not be allowed to open the device.
        Role::Device => machine.places[0].layers.first().map_or(0, |l| l.bytes),
        _ => 0,
    };
    let witness = (role == Role::Made).then(|| find_witness(&root, &path, &machine.places[0])).flatten();
    let names: Vec<String> = machine.places[0].lowest_layers().map(|l| l.name.clone()).collect();
    let rights = rights::test_rights(&root, names.iter().map(String::as_str));
    let (clock, reason) = Clock::calibrate(machine.clocksource.as_deref().is_ok_and(|c| c.trim() == "tsc"));
    let clock = record::Clock { name: clock.name().into(), reason, cost_ps: clock.cost_ps() };

    let snapshots = SnapshotReader::new(root.clone(), &machine, Instant::now());
    let handle = || file.as_ref().ok().map(|file| (file, 0..u64::MAX, Vec::new()));
    let before = Processes::sample(&root);
    let start = snapshots.take(Moment::IdleStart, &[handle()], false);
    std::thread::sleep(watch_duration());
    let dirty = dirty_bytes(&start);
    let mut end = snapshots.take(Moment::IdleEnd, &[handle()], dirty <= MAX_DIRTY_BYTES);
    let after = Processes::sample(&root);
    explain_missing(&mut end, &file, &path, dirty);
    let hidden = after.as_ref().map_or(0, Processes::hidden);
    let busy = before.and_then(|before| Ok(after?.busy_since(&before)));
    let visibility = ProcessVisibility::of_this_process(&root);
    Ok(Observation {
        path,
        role,
        bytes,
        machine,
        witness,
        start,
        end,
        busy,
        hidden,
        visibility,
        rights,
        clock,
    })
}

/// Returns how long to watch other load.
fn watch_duration() -> Duration {
    Duration::from_nanos(settings::shorten_idle_watch(WATCH_NS))
}

fn role_of(typed: &Path, facts: &Metadata) -> Result<Role, Failure> {
    let kind = facts.file_type();
    if kind.is_dir() {
        Ok(Role::Made)
    } else if kind.is_file() {
        Ok(Role::File)
    } else if kind.is_block_device() {
        Ok(Role::Device)
    } else {
        Err(Failure::Usage(format!(
            "{} cannot be measured; name a directory, a file or a block device",
            name::shown(typed)
        )))
    }
}

/// Finds a file of the directory that shows how direct I/O works there, because the kernel reports that only for files.
fn find_witness(root: &Root, dir: &Path, place: &Place) -> Option<(String, DirectIo)> {
    let entries = std::fs::read_dir(dir).ok()?.take(MAX_ENTRIES).flatten();
    let mut files = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_file()));
    files.find_map(|entry| {
        let file_place = resolve::resolve(root, &entry.path()).ok()?;
        // Skip a file on which another file is mounted.
        let mount = |p: &Place| p.file_system.as_ref().map(|f| f.mount_point.clone());
        (mount(&file_place) == mount(place)).then_some(())?;
        Some((entry.file_name().to_string_lossy().into_owned(), file_place.direct?))
    })
}

fn dirty_bytes(snapshot: &Snapshot) -> u64 {
    let pages = snapshot.targets.first().and_then(|t| t.pages.as_ref().ok());
    pages.map_or(0, |p| p.dirty.unwrap_or(0).saturating_mul(p.page_bytes))
}

/// Explains why the state of the target is unknown, if fathom could not open it or did not read it.
fn explain_missing(end: &mut Snapshot, file: &std::io::Result<File>, path: &Path, dirty: u64) {
    let Some(target) = end.targets.first_mut() else { return };
    if let Err(e) = file {
        let is_denied = e.kind() == std::io::ErrorKind::PermissionDenied;
        let cause = if is_denied { "permission denied".to_owned() } else { e.to_string() };
        let why = format!("the target cannot be opened: {cause}");
        target.pages = Err(why.clone());
        target.extents = Some(Err(why.clone()));
        target.room = Some(Err(why));
    } else if dirty > MAX_DIRTY_BYTES {
        target.extents = Some(Err(format!(
            "{} of the target are not written yet, so their place on the device may be undecided; first type `sync {}`",
            show_bytes(dirty),
            quote_path(path)
        )));
    }
}

#[cfg(test)]
mod tests {
    use super::observation_tests::in_order;
    use super::*;
    use report::TEXT;

    /// Width of the printed diagnosis in columns.
    const WIDE: usize = 110;

    fn text(diagnosis: &Diagnosis, colour: bool) -> String {
        let shown =
            TEXT.bytes(diagnosis, Style { colour, width: WIDE, ..Style::default() }).unwrap_or_default();
        String::from_utf8(shown).unwrap_or_default()
    }

    #[test]
    fn paths_can_be_pasted_into_a_shell() {
        assert_eq!(quote_path(Path::new("/data/a-b_c.1")), "/data/a-b_c.1");
        assert_eq!(quote_path(Path::new("/it's here")), r"'/it'\''s here'");
    }

    #[test]
    fn a_good_place_has_nothing_to_fix() {
        let mut observation = in_order();
        // Without this line, the simulated machine has used no CPU time between its two snapshots.
        observation.start.files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0\n".into()));
        let text = text(&diagnose(observation), false);
        assert!(!text.contains("  - ") && !text.contains("not be checked"), "{text}");
        let found =
            "This machine is fit to measure: nothing was found that would change what a number means.\n";
        assert!(text.starts_with(found) && text.contains("\n\nOK  The place: "), "{text}");
        assert!(text.lines().count() <= 16, "{text}");
    }

    #[test]
    fn fixes_in_read_only_sys_are_for_outside_the_container() {
        let fixes = |sys_is_read_only: bool| -> Vec<String> {
            let mut observation = in_order();
            observation.rights.sys_is_read_only = sys_is_read_only;
            observation.machine.places[0].layers[1].queue.insert("iostats".into(), "0".into());
            let answers = diagnose(observation).groups.into_iter().flat_map(|g| g.answers);
            answers.map(|answer| answer.fix).filter(|fix| fix.contains("/sys/")).collect()
        };
        assert!(fixes(false).iter().all(|fix| fix.starts_with("as root: ")), "{:?}", fixes(false));
        assert!(!fixes(true).is_empty());
        assert!(
            fixes(true).iter().all(|fix| fix.starts_with("outside of this container")),
            "{:?}",
            fixes(true)
        );
    }

    #[test]
    fn findings_are_listed_worst_first() {
        let mut observation = in_order();
        observation.machine.virtual_by = Ok(Some("KVM".into()));
        observation.machine.places[0].layers[1].queue.insert("iostats".into(), "0".into());
        observation.end.targets[0].room = None;
        if let Some(Ok(extents)) = &mut observation.end.targets[0].extents {
            extents.hole_bytes = extents.span_bytes;
        }
        let diagnosis = diagnose(observation);
        let plain = text(&diagnosis, false);
        let first = "2 things would change what a number means: holes, counters of sda.\n";
        assert!(plain.starts_with(first), "{plain}");
        let (_, found) = plain.split_once("Before you measure:\n").unwrap_or_default();
        assert!(found.starts_with("  1. holes (invalidates a number, A04): "), "{found}");
        let fix = "\n  2. counters of sda (biases a number, A13): ";
        assert!(found.contains(fix) && found.contains("\n     -> as root: echo 1"), "{found}");
        assert!(found.contains("\n  - hypervisor (note, D18): "), "{found}");
        // Answers are missing for free space, the disk's counters, and CPU time, because the simulated clock did not advance.
        let unchecked = "\n6 things could not be checked and do not count as passed:\n  - ";
        assert!(found.contains(unchecked), "{found}");
        assert!(text(&diagnosis, true).contains("  1. \x1b[33mholes (invalidates a number, A04)\x1b[0m: "));
        assert!(plain.lines().all(|l| l.chars().count() <= WIDE), "{plain}");
    }
}

#[cfg(test)]
mod observation_tests {
    use super::*;
    use model::evidence::{Extents, Pages, Room};
    use model::machine::{FileSystem, Layer, LayerKind};
    use std::collections::BTreeMap;

    /// Counters of the disk before the pause.
    const QUIET: &str = "1000 0 8000 40 500 0 4000 20 0 44 60 0 0 0 0 9 11";

    /// Files of /sys with their content.
    fn to_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), format!("{v}\n"))).collect()
    }

    /// A partition of a good disk, and the disk.
    fn layers() -> Vec<Layer> {
        let queue = to_map(&[
            ("iostats", "1"),
            ("scheduler", "[none] mq-deadline"),
            ("read_ahead_kb", "128"),
            ("max_sectors_kb", "1280"),
            ("max_hw_sectors_kb", "2048"),
            ("nr_requests", "256"),
            ("write_cache", "write back"),
            ("physical_block_size", "4096"),
            ("rotational", "0"),
        ]);
        let disk = Layer {
            name: "sda".into(),
            number: "8:0".into(),
            driver: Some("sd".into()),
            stat_file: "/sys/class/block/sda/stat".into(),
            queue: queue.clone(),
            device: to_map(&[
                ("mq", "4"),
                ("irq_cpus", "0-3"),
                ("alignment_offset", "0"),
                ("current_link_speed", "16.0 GT/s PCIe"),
                ("max_link_speed", "16.0 GT/s PCIe"),
                ("current_link_width", "4"),
                ("max_link_width", "4"),
            ]),
            ..Layer::default()
        };
        let part = Layer {
            name: "sda1".into(),
            number: "8:1".into(),
            kind: LayerKind::Partition,
            stat_file: "/sys/class/block/sda1/stat".into(),
            queue,
            device: to_map(&[("start", "2048"), ("alignment_offset", "0")]),
            below: vec![1],
            ..Layer::default()
        };
        vec![part, disk]
    }

    /// A file on ext4 on the partition of [`layers`].
    fn place() -> Place {
        Place {
            path: "/data/file".into(),
            file_system: Some(FileSystem {
                kind: "ext4".into(),
                source: "/dev/sda1".into(),
                mount_point: "/data".into(),
                options: "rw,relatime".into(),
                attributes: Vec::new(),
                root: "/".into(),
            }),
            layers: layers(),
            tops: vec![0],
            direct: Some(DirectIo { memory_align: 512, offset_align: 512 }),
            ..Place::default()
        }
    }

    /// A good machine with the file of [`place`].
    fn machine() -> Machine {
        let mut machine = host::read_host(&Root::at("/nonexistent-prefix".into()));
        machine.virtual_by = Ok(None);
        machine.clocksource = Ok("tsc".into());
        machine.memory_bytes = Ok(64 << 30);
        machine.facts = [
            (model::evidence::LIMITS, ""),
            (model::evidence::GOVERNORS, "/sys/x/scaling_governor: performance\n"),
            (model::evidence::SLEEPS, "/sys/x/state0/latency: 0\n/sys/x/state1/latency: 2\n"),
            (model::evidence::LIBRARIES, "/lib/libc.so.6\n"),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), Ok(v.to_owned())))
        .collect();
        machine.places = vec![place()];
        machine
    }

    /// A file of 1 GiB on ext4 on a partition of a good disk, on a quiet machine.
    pub(crate) fn in_order() -> Observation {
        let map = Extents { span_bytes: 1 << 30, count: 8, physical_align: Some(4096), ..Extents::default() };
        let target = TargetState {
            file: None,
            pages: Ok(Pages { page_bytes: 4096, cached: 0, dirty: Some(0) }),
            extents: Some(Ok(map)),
            backing: None,
            room: Some(Ok(Room { total_bytes: 100 << 30, free_bytes: 50 << 30 })),
            probe: None,
            regions: Vec::new(),
        };
        let end =
            Snapshot { moment: Moment::IdleEnd, at_ns: 3_000_000_000, files: files(), targets: vec![target] };
        let rights = Rights {
            io_uring: Ok(()),
            io_uring_advice: None,
            libaio: Ok(()),
            sys_is_read_only: false,
            cgroup: Ok(2),
            tracing: Ok(()),
            devices: vec![("sda".into(), Ok(()))],
            open_files: Some(1024),
            locked_bytes: None,
        };
        Observation {
            path: "/data/file".into(),
            role: Role::File,
            bytes: 1 << 30,
            machine: machine(),
            witness: None,
            start: Snapshot { moment: Moment::IdleStart, at_ns: 0, targets: Vec::new(), ..end.clone() },
            end,
            busy: Ok(Vec::new()),
            hidden: 0,
            visibility: ProcessVisibility { in_namespace: false, is_root: true },
            rights,
            clock: record::Clock { name: "tsc".into(), reason: None, cost_ps: 9000 },
        }
    }

    /// Returns the first answer whose subject begins with these words.
    pub(crate) fn find_answer(answers: Vec<DoctorAnswer>, about: &str) -> DoctorAnswer {
        let answer = answers.into_iter().find(|a| a.about.starts_with(about));
        answer.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    fn files() -> BTreeMap<String, Known<String>> {
        let texts = [
            ("/sys/class/block/sda/stat", QUIET),
            ("/sys/class/block/sda1/stat", QUIET),
            ("/proc/stat", "cpu  100 0 100 10000 0 0 0 0 0 0\n"),
            ("/proc/vmstat", "pswpin 5\npswpout 7\n"),
            ("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\nDirty: 12 kB\nWriteback: 0 kB\n"),
            ("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
            (model::evidence::HOUSEKEEPERS, "12: btrfs-cleaner\n"),
            (
                model::evidence::TEMPERATURES,
                "/sys/h/hwmon0/temp1_input: 40000\n/sys/h/hwmon0/temp1_max: 80000\n",
            ),
        ];
        texts.into_iter().map(|(k, v)| (k.to_owned(), Ok(v.to_owned()))).collect()
    }
}
