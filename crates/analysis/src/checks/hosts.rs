//! Group F: whether several hosts measured as one. No check of the group applies to a single host.
//!
//! - F01 compares the time between the first and the last start, and the error of the clocks, with the time in which all hosts ran.
//! - F02 compares the sizes of the hosts' targets, and the common time of all hosts with the time of the longest run.
//! - F03 finds hosts that share storage, and computes the expected share of repeated blocks from the order of offsets. Repeated reads may
//!   come from a cache: another host read the blocks before, or a host wrote them.
//! - F04 compares the kernels (boot_id) and the identities of the devices: the sum over hosts may be the rate of one machine or one device.
//!   Shared file systems are no finding. Devices of one size on different kernels are only told apart by their serial numbers.
//! - F05 lists differences in kernel, CPUs, memory, file system, mount options and devices.

use crate::checks::prelude::*;
use crate::checks::storage_reached::cacheable::REPEATS_ABOVE;
use model::fleet::{Fleet, HostRecord, RunOnHosts};
use model::plan::Role;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[HOSTS_APART, UNEQUAL_WORK, ANOTHERS_CACHE, COUNTED_TWICE, HOSTS_DIFFER];

/// Returns the observations of the hosts, or `None` if a single host measured.
fn fleet<'c>(case: &Case<'c>) -> Option<&'c Fleet> {
    case.record.fleet.as_deref()
}

/// Returns the hosts that ran this job, by rank. Empty if a single host ran it.
fn hosts_of_job<'c>(case: &Case<'c>) -> &'c [HostRecord] {
    let all = fleet(case).map_or(&[][..], |f| &f.hosts);
    let participants = &all[..case.record.header.plan.hosts_in_job(case.job_index, all.len())];
    if participants.len() > 1 { participants } else { &[] }
}

/// Returns the runs of this result in which any host measured.
fn measured_runs<'c>(case: &Case<'c>) -> Vec<&'c RunOnHosts> {
    let job_and_phase = (case.job_index as u32, case.phase_index as u32);
    let all = fleet(case).into_iter().flat_map(|f| &f.runs);
    all.filter(|run| (run.index.job, run.index.phase) == job_and_phase && run.longest_ns > 0).collect()
}

/// The identity of storage: equal for two hosts that use the same storage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Storage {
    /// A device: model and serial number, or device number within one kernel.
    Device(String),
    /// A file system without a device: the mounted source.
    Mounted(String),
}

impl Storage {
    fn name(&self) -> &str {
        let (Self::Device(name) | Self::Mounted(name)) = self;
        name
    }
}

/// The storage of a host's targets.
#[derive(Default)]
struct HostStorage<'a> {
    identities: BTreeSet<Storage>,
    /// The lowest devices that are not memory.
    devices: Vec<&'a Layer>,
}

/// Returns the storage of a host's targets as far as it is known, and why a part is unknown.
fn storage_of_host<'a>(case: &Case<'a>, rank: usize) -> (HostStorage<'a>, Known<()>) {
    let mut storage = HostStorage::default();
    let Some(seen) = hosts_of_job(case).get(rank) else {
        return (storage, not_checked("the record does not name its hosts"));
    };
    let mut completeness = Ok(());
    let machine = case.record.header.hosts.get(rank);
    for (at, _) in case.targets().iter().filter(|(_, target)| target.role != Role::None) {
        let place = machine.and_then(|machine| machine.places.get(*at));
        let Some(place) = place.filter(|place| !place.layers.is_empty() || place.file_system.is_some())
        else {
            let why = format!("the record does not contain the storage of the targets of {}", seen.name);
            completeness = completeness.and(Err(why));
            continue;
        };
        for leaf in place.lowest_layers() {
            if let Some(serial) = serial_of(leaf) {
                let model = leaf.model.as_deref().unwrap_or("device").trim();
                storage.identities.insert(Storage::Device(format!("{model} {serial}")));
            }
            if let Some(kernel) = seen.kernel {
                let name = format!("{} ({}) of kernel {kernel}", leaf.name, leaf.number);
                storage.identities.insert(Storage::Device(name));
            }
            if place.ram.is_none() && leaf.ram.is_none() {
                storage.devices.push(leaf);
            }
        }
        let mounted = place.file_system.as_ref().filter(|_| place.layers.is_empty());
        // A source such as `tmpfs` is only unique within its machine.
        let names_server = mounted.is_some_and(|fs| fs.source.contains(':') || fs.source.starts_with("//"));
        if let Some(fs) = mounted {
            let kernel = seen.kernel.filter(|_| !names_server);
            let within = kernel.map_or(String::new(), |kernel| format!(" of kernel {kernel}"));
            storage.identities.insert(Storage::Mounted(format!("{}{within}", fs.source)));
        }
        if let Some(why) = &place.unresolved_reason
            && place.ram.is_none()
            && !names_server
        {
            completeness = completeness.and(Err(format!("the storage of {} is unknown: {why}", seen.name)));
        }
    }
    (storage, completeness)
}

/// Returns the serial number of a device, or `None` if it reports none.
fn serial_of(device: &Layer) -> Option<&str> {
    device.serial.as_deref().map(str::trim).filter(|serial| !serial.is_empty())
}

/// Checks that fathom would notice if hosts on different kernels used one device. Devices of different sizes are different devices.
/// `storage` has the storage of each host.
///
/// # Errors
/// Fails if hosts on different or unknown kernels use devices of the same size, and one of these devices has no serial number.
fn need_serial_numbers(hosts: &[HostRecord], storage: &[HostStorage]) -> Known<()> {
    let mut by_size: BTreeMap<u64, Vec<(usize, &Layer)>> = BTreeMap::new();
    for (rank, host) in storage.iter().enumerate() {
        for device in &host.devices {
            by_size.entry(device.bytes).or_default().push((rank, *device));
        }
    }
    for devices in by_size.values() {
        let unnamed = devices.iter().find(|(_, device)| serial_of(device).is_none());
        let Some((rank, device)) = unnamed else { continue };
        let host = &hosts[*rank];
        // Within one kernel, device numbers tell devices apart.
        let is_elsewhere =
            |other: usize| other != *rank && (host.kernel.is_none() || hosts[other].kernel != host.kernel);
        if let Some((other, _)) = devices.iter().find(|(other, _)| is_elsewhere(*other)) {
            return Err(format!(
                "{} of {} reports no serial number, so fathom cannot tell whether {} uses the same device",
                device.name, host.name, hosts[*other].name
            ));
        }
    }
    Ok(())
}

/// Returns the storage that several hosts share, with the ranks of these hosts, and why other hosts may share storage too.
fn shared_storage(case: &Case) -> (Vec<(Storage, Vec<usize>)>, Known<()>) {
    let hosts = hosts_of_job(case);
    let (storage, completeness): (Vec<HostStorage>, Vec<Known<()>>) =
        (0..hosts.len()).map(|rank| storage_of_host(case, rank)).unzip();
    let completeness = completeness.into_iter().collect::<Known<()>>();
    let all: BTreeSet<&Storage> = storage.iter().flat_map(|host| &host.identities).collect();
    let ranks_with =
        |one: &Storage| (0..hosts.len()).filter(|rank| storage[*rank].identities.contains(one)).collect();
    let shared = all.into_iter().map(|one| (one.clone(), ranks_with(one)));
    let shared = shared.filter(|(_, ranks): &(_, Vec<usize>)| ranks.len() > 1).collect();
    (shared, completeness.and_then(|()| need_serial_numbers(hosts, &storage)))
}

/// Lists the names of the hosts with these ranks, as in `a, b and c`.
fn host_names(case: &Case, ranks: &[usize]) -> String {
    let name = |rank: &usize| Some(hosts_of_job(case).get(*rank)?.name.as_str());
    let names: Vec<&str> = ranks.iter().filter_map(name).collect();
    list_hosts(&names, names.len())
}

/// Maximum number of host names in a sentence.
const MOST_NAMES: usize = 3;

/// Lists `count` names: `a`, `a and b`, or `a, b, c and 4 more`. `first` has the first of
/// these names.
pub(crate) fn list_hosts(first: &[&str], count: usize) -> String {
    match first {
        [] => String::new(),
        [one] if count == 1 => (*one).to_owned(),
        [rest @ .., last] if count <= MOST_NAMES && count == first.len() => {
            format!("{} and {last}", rest.join(", "))
        }
        _ => {
            let shown = &first[..first.len().min(MOST_NAMES)];
            format!("{} and {} more", shown.join(", "), count.saturating_sub(shown.len()))
        }
    }
}

/// Maximum difference between the starts of hosts, as a share of the time in which all hosts ran. The effect of a
/// smaller difference is less than the variation between runs.
const APART_ABOVE: Share = Share(0.01);

const HOSTS_APART: Check = Check {
    id: CheckId::F01,
    name: "HOSTS_APART",
    belief: "all hosts began at the same time",
    reads: "For each run, the first operation of every host by its own clock (CLOCK_MONOTONIC), and the \
            offset of that clock from rank 0's before and after the run. Offsets come from round trips over \
            the network, of which the shortest counts.",
    formula: formula!(
        "Compares the time between the first operations of the first and of the last host with the time in \
         which all hosts ran.\n\
         - Biased if, in most runs, this difference or the error of the clocks is more than {APART_ABOVE} \
         of the time in which all hosts ran. The number then includes the load of only some hosts.\n\
         - Not checked otherwise if the clocks of a run were not read.\n\
         - A clock may be off by half of the shortest round trip, or by its drift between the two \
         readings, whichever is more."
    ),
    provoke: "`mpirun -np 2 --bind-to none taskset -c 0 fathom run --rw randread --time 20ms \
              --ranks-per-host 2 DIR`: ranks that wait for one CPU begin one after the other.",
    fix: "Use a longer --time, leave a CPU free for fathom on each host, and use a network with less load \
          for MPI (`--mca btl_tcp_if_include`).",
    accept: "Accept it if your hosts also start one after the other in production.",
    applies: |case| !hosts_of_job(case).is_empty(),
    ask: Ask::Alone(check_hosts_apart),
    #[cfg(test)]
    fires: Some(|| with(|f| f.runs.iter_mut().for_each(|r| r.spread_ns = Some(30_000_000)))),
    #[cfg(test)]
    blind: || with(|f| f.runs.iter_mut().for_each(|r| r.clock_error_ns = None)),
};

fn check_hosts_apart(case: &Case) -> Known<Answer> {
    let measured = measured_runs(case);
    let starts: Vec<Start> = measured.iter().filter_map(|run| Start::of_run(run)).collect();
    let apart = starts.iter().filter(|start| start.share_apart() > APART_ABOVE).count();
    let worst = starts.iter().max_by(|a, b| a.share_apart().total_cmp(&b.share_apart()));
    let worst = worst.ok_or_else(|| {
        format!("no run recorded the first operation and the clock of all {} hosts", hosts_of_job(case).len())
    })?;
    let numbers = evidence([
        ("apart_ns", worst.spread_ns),
        ("clock_error_ns", worst.clock_error_ns),
        ("worst_share", worst.share_apart()),
        ("runs", measured.len() as f64),
        ("runs_apart", apart as f64),
    ]);
    let runs = measured.len();
    if 2 * apart <= runs {
        if starts.len() < runs {
            let of_those = match apart {
                0 => String::new(),
                _ => format!(
                    "; in {apart} of these, hosts began apart, or the clocks were not accurate enough"
                ),
            };
            return Err(format!(
                "only {} of {runs} runs recorded the first operation and the clock of all {} hosts{of_those}",
                starts.len(),
                hosts_of_job(case).len()
            ));
        }
        let sentence = match apart {
            0 => "All hosts began at nearly the same time in every run.".to_owned(),
            _ => format!("All hosts began at the same time in all but {apart} of {runs} runs."),
        };
        return holds(sentence, numbers);
    }
    let (share, all) = (show_share(worst.share_apart()), show_counted(runs as u64, "run"));
    if worst.clock_error_ns > worst.spread_ns {
        return finding!(
            Severity::Biases,
            numbers,
            "In {apart} of {all}, fathom cannot tell whether hosts began together: at worst their clocks are \
             accurate to {}, which is {share} of the time in which all ran.",
            show_ns(worst.clock_error_ns)
        );
    }
    finding!(
        Severity::Biases,
        numbers,
        "In {apart} of {all}, hosts did not begin together: at worst the last one ({}) began {} after \
         the first, which is {share} of the time in which all ran.",
        host_names(case, &[worst.last_rank]),
        show_ns(worst.spread_ns)
    )
}

/// How far apart the hosts started in a run.
struct Start {
    /// Time between the first operations of the first and of the last host.
    spread_ns: f64,
    clock_error_ns: f64,
    /// Time in which all hosts ran.
    common_ns: f64,
    last_rank: usize,
}

impl Start {
    /// Returns how far apart the hosts started in a run, or `None` if a host's clock or first operation was not recorded.
    fn of_run(run: &RunOnHosts) -> Option<Self> {
        Some(Self {
            spread_ns: run.spread_ns? as f64,
            clock_error_ns: run.clock_error_ns? as f64,
            common_ns: run.common_ns.max(1) as f64,
            last_rank: run.last? as usize,
        })
    }

    fn share_apart(&self) -> f64 {
        self.spread_ns.max(self.clock_error_ns) / self.common_ns
    }
}

/// Minimum share of a run in which all hosts run. Below it, the percentiles of the run do not describe the load of all
/// hosts.
const TOGETHER_FROM: Share = Share(0.9);

const UNEQUAL_WORK: Check = Check {
    id: CheckId::F02,
    name: "UNEQUAL_WORK",
    belief: "all hosts did the same work for the same time",
    reads: "The sizes of the targets on each host, and for each run the time in which all hosts ran and the \
            time in which any host ran.",
    formula: formula!(
        "Biased if a target has another size on one host than on another: fewer blocks are easier to cache. \
         Also biased if, in most runs, all hosts ran together for less than {TOGETHER_FROM} of the time: the \
         rate covers only the time in which all ran, but the percentiles include operations of hosts that \
         had the storage to themselves. Otherwise not checked if a host reported no sizes."
    ),
    provoke: "`mpirun ... fathom run --rw randread --ops 20k DIR` with one host throttled to a third: the \
              others end earlier.",
    fix: "Give all hosts the same --size and the same free space. Use --time instead of --ops or --bytes, so \
          that all hosts run for the same time.",
    accept: "Accept it if you want the time that a fixed amount of work takes.",
    applies: |case| !hosts_of_job(case).is_empty(),
    ask: Ask::Alone(check_unequal_work),
    #[cfg(test)]
    fires: Some(|| with(|f| f.hosts[1].target_bytes = vec![1 << 29])),
    #[cfg(test)]
    blind: || with(|f| f.runs.clear()),
};

fn check_unequal_work(case: &Case) -> Known<Answer> {
    let hosts = hosts_of_job(case);
    let runs = measured_runs(case);
    if runs.is_empty() {
        return Err("no host measured operations in any run".into());
    }
    let sizes = |rank: usize| -> Vec<Option<u64>> {
        let on_host = hosts.get(rank).map(|h| h.target_bytes.as_slice()).unwrap_or_default();
        case.stream.targets.iter().map(|target| on_host.get(*target).copied()).collect()
    };
    // A lost host reports no targets.
    let has_targets = |rank: &usize| !hosts[*rank].target_bytes.is_empty();
    let first = (0..hosts.len()).find(has_targets).unwrap_or(0);
    let shares: Vec<f64> = runs.iter().map(|r| r.common_ns as f64 / r.longest_ns as f64).collect();
    let apart = shares.iter().filter(|share| **share < TOGETHER_FROM).count();
    let least_together = shares.iter().copied().fold(1.0, f64::min);
    let numbers = evidence([
        ("least_share_together", least_together),
        ("runs", runs.len() as f64),
        ("runs_apart", apart as f64),
    ]);
    if let Some(rank) = (0..hosts.len()).filter(has_targets).find(|rank| sizes(*rank) != sizes(first)) {
        let describe = |rank: usize| -> String {
            let sum = sizes(rank).into_iter().flatten().fold(0, u64::saturating_add);
            format!("{} on {}", show_bytes(sum), hosts[rank].name)
        };
        return finding!(
            Severity::Biases,
            numbers,
            "The work was unequal: the sizes of the targets differ, and add up to {} and {}.",
            describe(first),
            describe(rank)
        );
    }
    if 2 * apart > runs.len() {
        return finding!(
            Severity::Biases,
            numbers,
            "In {apart} of {}, hosts did not run for the same time; in the worst run all ran together \
             for {} of the time. The rate covers only the time in which all ran; the percentiles cover all \
             operations.",
            show_counted(runs.len() as u64, "run"),
            show_share(least_together)
        );
    }
    if let Some(rank) = (0..hosts.len()).find(|rank| !has_targets(rank) && !case.stream.targets.is_empty()) {
        return Err(format!("the sizes of the targets on {} are not known", hosts[rank].name));
    }
    if least_together < 1.0 {
        let part = show_part(least_together);
        return holds(
            format!(
                "All hosts did the same work, and in the worst run all ran together for {part} of the time."
            ),
            numbers,
        );
    }
    holds("All hosts did the same work for the same time.", numbers)
}

const ANOTHERS_CACHE: Check = Check {
    id: CheckId::F03,
    name: "ANOTHERS_CACHE",
    belief: "no other host brought the blocks into a cache",
    reads: "The storage of each host's targets (devices by model and serial number, file systems by their \
            source), the host that made each file, and the bytes that all hosts read in the run that read most, \
            compared with the span. No kernel file.",
    formula: formula!(
        "Expected share of repeated reads of a file or device that several hosts read. With c = bytes read \
         by all / span, it is 1 - (1 - e^-c) / c at random. If n hosts read in order, each block is read n \
         times, so it is 1 - 1/n, or 1 - 1/c if c is more than n.\n\
         - Biased if the share is above {REPEATS_ABOVE} and hosts read through the page cache of one \
         machine.\n\
         - Biased if hosts of one machine read through its page cache the parts of one file (--shared) \
         that other hosts wrote: the kernel reads ahead for all of them.\n\
         - A note if the share is above {REPEATS_ABOVE} otherwise: a server or an array may keep blocks \
         that it has sent.\n\
         - A note if each host reads a file on shared storage that it wrote itself: the server may still \
         have it in memory, as may a client of a cache-coherent file system. With --shift-hosts N, this is \
         so only if N is a multiple of the number of hosts. Holds instead if the devices below are known, \
         because other checks then compare the reads with the devices' counters.\n\
         - Not checked if fathom cannot compute the share, as for an access specification of several lines \
         or an order that repeats blocks by design.\n\
         - Not checked, without a finding, if hosts may share storage that fathom cannot tell apart (see \
         F04)."
    ),
    provoke: "`mpirun -np 2 ... fathom run --rw read --size 64m --ranks-per-host 2 FILE`.",
    fix: "Use --shift-hosts 1, so that each host reads another host's file, and a --size several times the \
          memory of the storage servers.",
    accept: "Accept it if you want to measure many hosts that read the same data.",
    applies: |case| !hosts_of_job(case).is_empty() && case.does(Kind::Read) && case.on_device(),
    ask: Ask::Alone(check_anothers_cache),
    #[cfg(test)]
    fires: Some(shared),
    #[cfg(test)]
    blind: || {
        let mut record = honest();
        record.header.hosts.truncate(1);
        record
    },
};

fn check_anothers_cache(case: &Case) -> Known<Answer> {
    let (shared, completeness) = shared_storage(case);
    let Some((storage, ranks)) = shared.iter().max_by_key(|(_, ranks)| ranks.len()) else {
        completeness?;
        return holds("No host reads from storage that another host also uses.", evidence([]));
    };
    let answer = decide_shared_storage(case, storage, ranks)?;
    if !matches!(answer, Answer::Finding(_)) {
        completeness?;
    }
    Ok(answer)
}

/// Returns the answer for storage that the hosts with these ranks share.
fn decide_shared_storage(case: &Case, storage: &Storage, ranks: &[usize]) -> Known<Answer> {
    let hosts = hosts_of_job(case);
    let targets = &case.record.header.plan.targets;
    let all_made = case.stream.targets.iter().filter_map(|t| targets.get(*t)).all(|t| t.role == Role::Made);
    let numbers = evidence([("hosts", hosts.len() as f64), ("hosts_sharing", ranks.len() as f64)]);
    if all_made && !reads_own_writes(case) {
        return match case.stream.shared {
            Some(_) if through_one_cache(case, ranks) => finding!(
                Severity::Biases,
                numbers,
                "{} read parts of one file, and hosts on one machine share its page cache: read-ahead for \
                 one host may serve another.",
                host_names(case, ranks)
            ),
            _ => holds("Each host reads what another host wrote.", numbers),
        };
    }
    if all_made {
        // If the device is visible, other checks compare the bytes read with its counters.
        if case.need_resolved_stack().is_ok() {
            return holds("Each host reads its own file.", numbers);
        }
        return finding!(
            Severity::Note,
            numbers,
            "Each host reads the {} that it wrote itself, on storage that {} share ({}): recent writes may \
             still be in the memory of the server.",
            if case.stream.shared.is_some() { "part of the file" } else { "file" },
            host_names(case, ranks),
            storage.name()
        );
    }
    decide_same_target(case, ranks, numbers)
}

/// Whether each host reads what it wrote itself before the first run.
fn reads_own_writes(case: &Case) -> bool {
    let all = case.record.fleet.as_ref().map_or(1, |fleet| fleet.hosts.len());
    let among = if case.stream.shared.is_some() { hosts_of_job(case).len() } else { all };
    (case.stream.shift_hosts as usize).is_multiple_of(among.max(1))
}

/// Whether reads go through the page cache of a machine that runs several of these hosts.
fn through_one_cache(case: &Case, ranks: &[usize]) -> bool {
    let one_machine = case.record.fleet.as_ref().is_some_and(|fleet| {
        let kernel = |rank: &usize| fleet.hosts.get(*rank).and_then(|h| h.kernel);
        ranks.iter().any(|a| kernel(a).is_some() && ranks.iter().any(|b| a != b && kernel(a) == kernel(b)))
    });
    one_machine && !case.stream.cache.is_direct()
}

/// Returns the answer for targets that several hosts read.
fn decide_same_target(case: &Case, ranks: &[usize], mut numbers: Evidence) -> Known<Answer> {
    let (read, span) = (case.largest_run_read_bytes() as f64, case.span_bytes() as f64);
    if read == 0.0 || span <= 0.0 {
        return Err("no read completed".into());
    }
    let [line] = case.stream.access.lines.as_slice() else {
        return not_checked(
            "fathom does not compute how often hosts read the same blocks with an access specification \
             of several lines",
        );
    };
    // In a shared file, each host has its own blocks.
    let (passes, hosts) = (read / span, if case.stream.shared.is_some() { 1.0 } else { ranks.len() as f64 });
    let part = match &line.order {
        // All hosts start at the first block.
        Order::Sequential(_) => 1.0 - 1.0 / hosts.max(passes),
        Order::Random | Order::Once | Order::Mixed(_) | Order::MixedEach(_) => {
            1.0 + (-passes).exp_m1() / passes
        }
        other => return Err(format!("{} repeats blocks by design", other.describe())),
    };
    numbers.insert("expected_repeat_share".into(), part);
    if part <= REPEATS_ABOVE {
        return holds("Almost every read was of a block that no host had read before.", numbers);
    }
    let (severity, cache_name) = if through_one_cache(case, ranks) {
        (Severity::Biases, "the page cache of their machine")
    } else {
        (Severity::Note, "a cache of the shared storage")
    };
    finding!(
        severity,
        numbers,
        "About {} of the reads were of blocks that some host had already read: {} read the same data, and \
         {cache_name} may have answered.",
        show_share(part),
        host_names(case, ranks)
    )
}

const COUNTED_TWICE: Check = Check {
    id: CheckId::F04,
    name: "COUNTED_TWICE",
    belief: "every host has its own CPUs and device",
    reads: "`/proc/sys/kernel/random/boot_id` of each host, which is the same for all that run on one \
            kernel, and model, serial number and size of the devices below its targets.",
    formula: formula!(
        "Looks for hosts that run on one machine, and for devices that several hosts share.\n\
         - A note if hosts have the same `boot_id`. They are one machine (ranks of a host, or containers) \
         and share its CPUs, memory and clock.\n\
         - A note if devices have the same model and serial number, or the same number within one kernel. \
         They are one device: the hosts share its rate, and the sum is not that of one device per host.\n\
         - Both are only notes, since the sum is what was measured. A file system on a server is no \
         finding.\n\
         - Not checked, without a finding, if a `boot_id` or the devices of a target are unknown.\n\
         - Not checked, without a finding, if two kernels have devices of the same size and one reports no \
         serial number: they may be one device."
    ),
    provoke: "`mpirun -np 2 --bind-to none fathom run --rw randread --ranks-per-host 2 DIR`.",
    fix: "Start one rank per host (`mpirun --map-by ppr:1:node`), on hosts that are not containers of one \
          machine.",
    accept: "Accept it if you want to measure one array or machine that all hosts share. Some hypervisors \
             give the disks of all guests the same serial number: those only look like one device.",
    applies: |case| !hosts_of_job(case).is_empty(),
    ask: Ask::Alone(check_counted_twice),
    #[cfg(test)]
    fires: Some(|| with(|f| f.hosts[1].kernel = Some(0))),
    #[cfg(test)]
    blind: || with(|f| f.hosts.iter_mut().for_each(|h| h.kernel = None)),
};

fn check_counted_twice(case: &Case) -> Known<Answer> {
    let hosts = hosts_of_job(case);
    let (mut kernels, mut completeness): (BTreeMap<u32, Vec<usize>>, _) = (BTreeMap::new(), Ok(()));
    for (rank, host) in hosts.iter().enumerate() {
        match host.kernel {
            Some(kernel) => kernels.entry(kernel).or_default().push(rank),
            None => completeness = completeness.and(Err(format!("the kernel of {} is unknown", host.name))),
        }
    }
    let groups: Vec<&Vec<usize>> = kernels.values().filter(|ranks| ranks.len() > 1).collect();
    let (shared, storage_known) =
        if case.has_storage() { shared_storage(case) } else { (Vec::new(), Ok(())) };
    // A file system mounted by several hosts is not a device counted twice.
    let devices: Vec<&(Storage, Vec<usize>)> =
        shared.iter().filter(|(storage, _)| matches!(storage, Storage::Device(_))).collect();
    let numbers = evidence([("hosts", hosts.len() as f64), ("kernels", kernels.len() as f64)]);
    let mut sentences = Vec::new();
    if let Some(ranks) = groups.iter().rev().max_by_key(|ranks| ranks.len()) {
        sentences.push(format!(
            "{} run on one kernel: they share its CPUs, memory and clock.{}",
            host_names(case, ranks),
            count_other_groups(ranks, groups.iter().copied())
        ));
    }
    if let Some((device, ranks)) = devices.iter().rev().max_by_key(|(_, ranks)| ranks.len()) {
        sentences.push(format!(
            "{} seem to use one device ({}): the sum over these hosts is then the rate of that device.{}",
            host_names(case, ranks),
            device.name(),
            count_other_groups(ranks, devices.iter().map(|(_, ranks)| ranks))
        ));
    }
    if sentences.is_empty() {
        completeness?;
        storage_known?;
        return holds("Every host has its own kernel, and no two hosts share a block device.", numbers);
    }
    Detail::new(Severity::Note, sentences.join(" "), numbers).found()
}

/// Returns a sentence with the number of groups that have hosts outside of the named group. Empty without such a group.
fn count_other_groups<'a>(named: &[usize], groups: impl Iterator<Item = &'a Vec<usize>>) -> String {
    let others: BTreeSet<&Vec<usize>> =
        groups.filter(|group| group.iter().any(|rank| !named.contains(rank))).collect();
    match others.len() as u64 {
        0 => String::new(),
        n => format!(" The same is true of {} of hosts.", show_counted(n, "other group")),
    }
}

const HOSTS_DIFFER: Check = Check {
    id: CheckId::F05,
    name: "HOSTS_DIFFER",
    belief: "all hosts are alike, so one represents the others",
    reads: "What each host found when it planned: kernel, CPUs, memory; file system, mount options, \
            device model and size of the targets; the engine and span that it would have chosen.",
    formula: formula!(
        "A note that lists each property that differs between hosts, with the value of each host. The number \
         remains the result of these hosts."
    ),
    provoke: "`mpirun ...` on hosts with different kernels.",
    fix: "Use hosts that are alike, or measure each kind separately.",
    accept: "Accept it if your cluster is such a mixture.",
    applies: |case| !hosts_of_job(case).is_empty(),
    ask: Ask::Alone(check_hosts_differ),
    #[cfg(test)]
    fires: Some(|| with(|f| f.differences.push("the kernel differs between hosts: 6.1 (a); 5.4 (b)".into()))),
    #[cfg(test)]
    blind: || {
        let mut record = honest();
        record.header.hosts.clear();
        record
    },
};

fn check_hosts_differ(case: &Case) -> Known<Answer> {
    let hosts = hosts_of_job(case);
    let Some(fleet) = fleet(case) else { return Ok(Answer::DoesNotApply) };
    let numbers = evidence([("hosts", hosts.len() as f64), ("differences", fleet.differences.len() as f64)]);
    if fleet.differences.is_empty() {
        if case.record.header.hosts.len() < hosts.len() {
            return Err("the record does not contain the properties of each host".into());
        }
        let sentence = "Kernel, CPUs, memory, file system, mount options and device are alike on all hosts.";
        return holds(sentence, numbers);
    }
    finding!(Severity::Note, numbers, "Hosts are not alike: {}.", fleet.differences.join(". "))
}

/// An honest record of two hosts, each with its own disk.
#[cfg(test)]
pub(super) fn honest() -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    let mut other = record.header.hosts[0].clone();
    other.host = "b".into();
    record.header.hosts[0].places[0].layers[0].serial = Some("S1".into());
    other.places[0].layers[0].serial = Some("S2".into());
    record.header.hosts.push(other);
    let host = |(name, kernel): (&str, u32)| HostRecord {
        name: name.into(),
        kernel: Some(kernel),
        target_bytes: vec![1 << 30],
        ..HostRecord::default()
    };
    let run = |repeat| RunOnHosts {
        index: model::fleet::RunIndex { repeat, ..Default::default() },
        offered_iops: None,
        spread_ns: Some(20_000),
        clock_error_ns: Some(5_000),
        last: Some(1),
        common_ns: 999_000_000,
        longest_ns: 1_000_000_000,
    };
    let hosts = [("a", 0), ("b", 1)].map(host).into();
    record.fleet = Some(Box::new(Fleet { hosts, runs: (0..5).map(run).collect(), ..Fleet::default() }));
    record
}

/// An honest record of two hosts whose observations were changed by `change`.
#[cfg(test)]
fn with(change: impl FnOnce(&mut Fleet)) -> model::record::Record {
    let mut record = honest();
    change(record.fleet.as_mut().unwrap());
    record
}

#[test]
fn the_group_does_not_apply_to_a_single_host() {
    let record = crate::fixture::Fixture::honest().record();
    assert!(CHECKS.iter().all(|c| matches!(c.answer(&record), Ok(super::Answer::DoesNotApply))));
}

#[test]
fn all_checks_hold_on_honest_hosts() {
    for check in CHECKS {
        let answer = check.answer(&honest());
        assert!(matches!(answer, Ok(super::Answer::Holds(..))), "{}: {answer:?}", check.id);
    }
}

#[test]
fn starts_that_differ_in_most_runs_bias() {
    let severity = |spread, error, common| {
        HOSTS_APART.severity(&with(|f| {
            for run in &mut f.runs {
                (run.spread_ns, run.clock_error_ns, run.common_ns) = (Some(spread), Some(error), common);
            }
        }))
    };
    assert_eq!(severity(9_000_000, 1_000, 1_000_000_000), None);
    assert_eq!(severity(11_000_000, 1_000, 1_000_000_000), Some(Severity::Biases));
    assert_eq!(severity(1_000, 11_000_000, 1_000_000_000), Some(Severity::Biases));
    assert_eq!(severity(11_000_000, 1_000, 10_000_000_000), None, "a longer run tolerates more");
    let unknown = with(|f| f.runs.iter_mut().for_each(|r| r.clock_error_ns = Some(90_000_000)));
    let Ok(Answer::Finding(found)) = HOSTS_APART.answer(&unknown) else { panic!("silent") };
    assert!(found.sentence.contains("cannot tell"), "{}", found.sentence);
    assert_eq!(
        HOSTS_APART.sentence(&with(|f| f.runs[0].spread_ns = Some(90_000_000))),
        "All hosts began at the same time in all but 1 of 5 runs."
    );
    let only_run = with(|f| {
        f.runs.truncate(1);
        f.runs[0].spread_ns = Some(90_000_000);
    });
    let Ok(Answer::Finding(found)) = HOSTS_APART.answer(&only_run) else { panic!("silent") };
    assert!(found.sentence.starts_with("In 1 of 1 run, hosts did not begin together"), "{}", found.sentence);
    // The clocks of two runs were not read.
    let with_unread = |apart: usize| {
        HOSTS_APART.answer(&with(|f| {
            f.runs.iter_mut().take(apart).for_each(|run| run.spread_ns = Some(90_000_000));
            f.runs.iter_mut().skip(3).for_each(|run| run.clock_error_ns = None);
        }))
    };
    for (apart, part) in [(0, "all 2 hosts"), (1, "in 1 of these, hosts"), (2, "in 2 of these, hosts")] {
        let is_reason = |why: String| {
            why.starts_with("only 3 of 5 runs") && why.contains(part) && why.contains("apart") == (apart > 0)
        };
        assert!(with_unread(apart).is_err_and(is_reason), "{:?}", with_unread(apart));
    }
    let Ok(Answer::Finding(found)) = with_unread(3) else { panic!("silent") };
    assert!(found.sentence.starts_with("In 3 of 5 runs, hosts did not begin together"), "{}", found.sentence);
}

#[test]
fn uneven_ends_in_most_runs_bias() {
    let severity = |common, runs| {
        UNEQUAL_WORK.severity(&with(|f| f.runs.iter_mut().take(runs).for_each(|r| r.common_ns = common)))
    };
    let mostly = UNEQUAL_WORK.sentence(&with(|f| f.runs[0].common_ns = 910_000_000));
    assert!(mostly.ends_with("all ran together for 91.0 % of the time."), "{mostly}");
    assert_eq!(severity(910_000_000, 5), None);
    assert_eq!(severity(890_000_000, 5), Some(Severity::Biases));
    assert_eq!(severity(890_000_000, 2), None, "two runs of five");
    let lost = with(|f| f.hosts[1].target_bytes.clear());
    assert!(UNEQUAL_WORK.answer(&lost).is_err_and(|why| why.ends_with("targets on b are not known")));
}

/// Two hosts that read a file on a server. Together they read about one span.
#[cfg(test)]
fn shared() -> model::record::Record {
    let mut record = honest();
    for host in &mut record.header.hosts {
        let place = &mut host.places[0];
        place.layers.clear();
        place.unresolved_reason = Some("its devices are on another machine".into());
        place.file_system.as_mut().unwrap().source = "server:/export".into();
    }
    record.header.plan.targets[0].role = Role::File;
    record.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = 45 << 20;
    record
}

#[test]
fn targets_read_by_several_hosts_are_a_note() {
    assert_eq!(ANOTHERS_CACHE.severity(&shared()), Some(Severity::Note));
    let mut large_span = shared();
    large_span.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = 1 << 30;
    assert_eq!(ANOTHERS_CACHE.severity(&large_span), None);
    large_span.header.plan.jobs[0].phases[0].streams[0].access.lines[0].order =
        Order::Sequential(model::job::Steps::default());
    assert_eq!(
        ANOTHERS_CACHE.severity(&large_span),
        Some(Severity::Note),
        "sequential reads cover the same blocks"
    );
    let mut own = shared();
    own.header.plan.targets[0].role = Role::Made;
    let Ok(Answer::Finding(found)) = ANOTHERS_CACHE.answer(&own) else { panic!("silent") };
    assert!(
        found.sentence.contains("wrote itself") && found.sentence.contains("server:/export"),
        "{}",
        found.sentence
    );
}

#[test]
fn reading_what_another_host_wrote_holds_unless_they_share_a_page_cache() {
    use model::job::{Cache, Layout, Shared, Stream};
    let with = |change: fn(&mut Stream)| {
        let mut record = shared();
        record.header.plan.targets[0].role = Role::Made;
        change(&mut record.header.plan.jobs[0].phases[0].streams[0]);
        record
    };
    let layout = |stream: &mut Stream| stream.shared = Some(Shared { layout: Layout::Strided, passes: None });
    let severity = |change: fn(&mut Stream)| ANOTHERS_CACHE.severity(&with(change));
    assert_eq!(severity(|s| s.shift_hosts = 1), None);
    assert_eq!(
        severity(|s| s.shift_hosts = 2),
        Some(Severity::Note),
        "a shift by all hosts leads back to the host itself"
    );
    let mut parts = with(|s| (s.shift_hosts, s.cache) = (1, Cache::Buffered));
    layout(&mut parts.header.plan.jobs[0].phases[0].streams[0]);
    assert_eq!(ANOTHERS_CACHE.severity(&parts), None);
    parts.fleet.as_mut().unwrap().hosts[1].kernel = Some(0);
    assert_eq!(ANOTHERS_CACHE.severity(&parts), Some(Severity::Biases));
    let mut own = with(|_| {});
    layout(&mut own.header.plan.jobs[0].phases[0].streams[0]);
    let Ok(Answer::Finding(found)) = ANOTHERS_CACHE.answer(&own) else { panic!("silent") };
    assert!(found.sentence.starts_with("Each host reads the part of the file"), "{}", found.sentence);
}

#[test]
fn a_page_cache_shared_by_all_hosts_biases() {
    let mut record = shared();
    record.header.plan.jobs[0].phases[0].streams[0].cache = model::job::Cache::Buffered;
    record.fleet.as_mut().unwrap().hosts[1].kernel = Some(0);
    assert_eq!(ANOTHERS_CACHE.severity(&record), Some(Severity::Biases));
}

#[test]
fn one_serial_number_is_one_device_and_a_server_is_no_finding() {
    let mut record = honest();
    record.header.hosts[1].places[0].layers[0].serial = Some("S1".into());
    let Ok(Answer::Finding(found)) = COUNTED_TWICE.answer(&record) else { panic!("silent") };
    assert!(
        found.sentence.starts_with("a and b seem to use one device (") && found.sentence.contains("S1"),
        "{}",
        found.sentence
    );
    for host in &mut record.header.hosts {
        host.places[0].layers.clear();
        host.places[0].file_system.as_mut().unwrap().source = "server:/export".into();
    }
    assert_eq!(COUNTED_TWICE.severity(&record), None);
}

/// A record of four hosts with these kernels and serial numbers.
#[cfg(test)]
fn four_hosts(kernels: [u32; 4], serials: [&str; 4]) -> model::record::Record {
    let mut record = honest();
    let host = record.fleet.as_ref().unwrap().hosts[0].clone();
    let machine = record.header.hosts[0].clone();
    record.header.hosts = vec![machine; 4];
    for (machine, serial) in record.header.hosts.iter_mut().zip(serials) {
        machine.places[0].layers[0].serial = (!serial.is_empty()).then(|| serial.into());
    }
    let named =
        |(name, kernel): (&str, u32)| HostRecord { name: name.into(), kernel: Some(kernel), ..host.clone() };
    record.fleet.as_mut().unwrap().hosts = ["a", "b", "c", "d"].into_iter().zip(kernels).map(named).collect();
    record
}

#[test]
fn hosts_on_one_kernel_and_hosts_with_one_device_are_named_separately() {
    let sentence = |kernels, serials| match COUNTED_TWICE.answer(&four_hosts(kernels, serials)) {
        Ok(Answer::Finding(f)) => f.sentence,
        other => panic!("{other:?}"),
    };
    let device = sentence([0, 1, 2, 3], ["S1", "S2", "S3", "S3"]);
    assert!(device.starts_with("c and d seem to use one device (device S3): "), "{device}");
    let mut both = four_hosts([0, 0, 1, 2], ["S1", "S2", "S3", "S3"]);
    // The two hosts on one kernel use different devices.
    let layer = &mut both.header.hosts[1].places[0].layers[0];
    (layer.name, layer.number) = ("vdb".into(), "254:16".into());
    let Ok(Answer::Finding(both)) = COUNTED_TWICE.answer(&both) else { panic!("silent") };
    assert!(both.sentence.starts_with("a and b run on one kernel: "), "{}", both.sentence);
    assert!(both.sentence.contains(" c and d seem to use one device (device S3): "), "{}", both.sentence);
    assert!(!both.sentence.contains("other group"), "{}", both.sentence);
    let pairs = sentence([0, 0, 1, 1], ["S1", "S1", "S2", "S2"]);
    assert_eq!(pairs.matches(" The same is true of 1 other group of hosts.").count(), 2, "{pairs}");
}

#[test]
fn devices_that_nothing_tells_apart_are_not_checked() {
    let why = |record: &model::record::Record| COUNTED_TWICE.answer(record).err();
    let apart = ["S1", "S2", "S3", "S4"];
    assert_eq!(why(&four_hosts([0, 1, 2, 3], apart)), None);
    let unnamed = four_hosts([0, 1, 2, 3], ["S1", "S2", "", "S4"]);
    let reason = why(&unnamed).unwrap();
    assert!(
        reason.starts_with("vda of c reports no serial number") && reason.contains("whether a uses"),
        "{reason}"
    );
    assert!(ANOTHERS_CACHE.answer(&unnamed).is_err());
    // A device of another size is another device.
    let mut sizes = unnamed;
    sizes.header.hosts[2].places[0].layers[0].bytes += 512;
    assert_eq!(why(&sizes), None);
    // No other machine can use a host's memory, so no serial number is needed.
    let mut memory = four_hosts([0, 1, 2, 3], ["", "", "", ""]);
    memory.header.hosts.iter_mut().for_each(|host| host.places[0].layers[0].ram = Some("zram0".into()));
    assert_eq!(why(&memory), None);
    let mut hidden = four_hosts([0, 1, 2, 3], apart);
    hidden.header.hosts[1].places[0].unresolved_reason = Some("the devices below vda are unknown".into());
    assert!(
        why(&hidden).is_some_and(|why| why.starts_with("the storage of b is unknown: the devices below"))
    );
    let mut missing = four_hosts([0, 1, 2, 3], apart);
    missing.header.hosts[3].places.clear();
    assert!(why(&missing).is_some_and(|why| why.ends_with("targets of d")));
}

#[test]
fn an_unknown_host_hides_no_finding_about_the_others() {
    let with_unknown = |mut record: model::record::Record| {
        record.fleet.as_mut().unwrap().hosts[0].kernel = None;
        record
    };
    let mut one_device = honest();
    for host in &mut one_device.header.hosts {
        host.places[0].layers[0].serial = Some("S1".into());
    }
    assert_eq!(COUNTED_TWICE.severity(&with_unknown(one_device)), Some(Severity::Note));
    assert!(COUNTED_TWICE.answer(&with_unknown(honest())).is_err_and(|why| why.contains("kernel of a")));
    // The third host was lost before it named its storage.
    let with_lost = |mut record: model::record::Record| {
        let hosts = &mut record.fleet.as_mut().unwrap().hosts;
        let lost = hosts[0].clone();
        hosts.push(lost);
        record
    };
    assert_eq!(ANOTHERS_CACHE.severity(&with_lost(shared())), Some(Severity::Note));
    assert!(ANOTHERS_CACHE.answer(&with_lost(honest())).is_err());
    let mut differs = with(|f| f.differences.push("the kernel differs".into()));
    differs.header.hosts.clear();
    assert_eq!(HOSTS_DIFFER.severity(&differs), Some(Severity::Note));
}

#[test]
fn every_difference_is_named() {
    let two = with(|f| f.differences = vec!["the kernel differs".into(), "memory differs".into()]);
    let Ok(Answer::Finding(found)) = HOSTS_DIFFER.answer(&two) else { panic!("silent") };
    assert_eq!(found.sentence, "Hosts are not alike: the kernel differs. memory differs.");
}

#[test]
fn long_lists_of_hosts_are_shortened() {
    let list = |names: &[&str]| list_hosts(names, names.len());
    assert_eq!((list(&["a"]), list(&["a", "b", "c"])), ("a".into(), "a, b and c".into()));
    assert_eq!(list(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    assert_eq!(list_hosts(&["a", "b", "c", "d"], 4_000), "a, b, c and 3997 more");
}
