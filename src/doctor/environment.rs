//! The machine, in three groups:
//! 1. Constant facts: hypervisor, clock, frequencies, sleep states, cgroup limits, preloaded
//!    libraries.
//! 2. The rights that fathom has, and what fathom does instead if one is missing.
//! 3. The load of other processes while fathom only watched.

use crate::doctor::{Observation, fine, name_answer, problem};
use analysis::idle::{EXPENSIVE_CLOCK_PS, Idle};
use machine::processes::BusyProcess;
use model::Known;
use model::evidence::{
    BlockFlow, BlockStat, GOVERNORS, LIBRARIES, LIMITS, SLEEPS, UNREADABLE_LIMIT, hides_outer_cgroups,
    meminfo_bytes, unreadable_limits,
};
use model::finding::{CheckId, DoctorAnswer, Outcome, Severity};
use model::units::{GIB, MIB, show_bytes, show_count, show_ns, show_rate, show_share};
use sys::error_advice::advice;

/// Clock sources that are read without entering the kernel.
const GOOD_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "timebase"];
/// Longest acceptable wake-up time in us (D12): it makes a single read of a fast device, which takes about 50 us, a fifth longer.
const WAKE_US: u64 = 10;

pub(super) fn check_host(observation: &Observation) -> Vec<DoctorAnswer> {
    // The idle watch as a session without I/O, which the checks of results can judge.
    let idle = observation.idle();
    let mut answers: Vec<DoctorAnswer> = check_hypervisor(&idle).into_iter().collect();
    answers.push(name_answer("clock", Some(CheckId::D13), check_clock(observation)));
    answers.push(name_answer("governor", Some(CheckId::D12), check_governor(observation)));
    answers.push(name_answer("sleep states", Some(CheckId::D12), check_sleep_states(observation)));
    answers.extend(idle.answer("I/O limits", CheckId::D04));
    let limits = check_cgroup_limits(observation);
    answers.push(name_answer("CPU and memory limits", Some(CheckId::D11), limits));
    answers.push(name_answer("libraries", Some(CheckId::C02), check_libraries(observation)));
    answers
}

fn check_hypervisor(idle: &Idle) -> Option<DoctorAnswer> {
    let answer = idle.answer("hypervisor", CheckId::D18)?;
    let fix = "name the hypervisor with every result, and repeat the run at another time of day";
    Some(if answer.outcome == Outcome::Finding { answer.with_fix(fix) } else { answer })
}

fn check_clock(observation: &Observation) -> Known<DoctorAnswer> {
    let source = observation.machine.clocksource.as_ref().map_err(Clone::clone)?.trim();
    let clock = &observation.clock;
    let cost = show_ns(clock.cost_ps as f64 / 1000.0);
    let fix = "as root: echo tsc | tee /sys/devices/system/clocksource/clocksource0/current_clocksource";
    // Hyper-V has several clock sources with different names, all good.
    if !GOOD_CLOCKS.contains(&source) && !source.starts_with("hyperv") {
        let sentence = format!(
            "The kernel's clock source is {source}, which usually takes a system call to read; a time stamp takes {cost}."
        );
        return problem(Severity::Biases, sentence, fix);
    }
    if clock.cost_ps > EXPENSIVE_CLOCK_PS {
        let slow_tsc =
            "the hypervisor may intercept reads of the counter; measure outside of this virtual machine";
        let fix = if source == "tsc" { slow_tsc } else { fix };
        return problem(Severity::Biases, format!("A time stamp takes {cost} ({source})."), fix);
    }
    let why = clock.reason.as_ref().map_or_else(String::new, |why| format!(", since {why}"));
    fine(format!("{source}; a time stamp ({}{why}) takes {cost}.", clock.name))
}

/// Returns the values in a text that has a line `path: value` for each file.
fn values(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|l| l.rsplit_once(": ")).map(|(_, value)| value.trim())
}

fn check_governor(observation: &Observation) -> Known<DoctorAnswer> {
    let text = observation.machine.fact(GOVERNORS)?;
    match values(text).find(|g| *g != "performance") {
        Some(other) => problem(
            Severity::Note,
            format!(
                "The CPU frequency governor is '{other}': at low depth the CPUs may slow down between operations."
            ),
            "as root: cpupower frequency-set -g performance",
        ),
        None if text.is_empty() => fine("This kernel does not control the CPU frequency."),
        None => fine("performance."),
    }
}

fn check_sleep_states(observation: &Observation) -> Known<DoctorAnswer> {
    let text = observation.machine.fact(SLEEPS)?;
    match values(text).filter_map(|v| v.parse::<u64>().ok()).max() {
        Some(us) if us > WAKE_US => problem(
            Severity::Note,
            format!(
                "Waking CPU 0 from its deepest enabled sleep state takes up to {us} us, which can delay each operation \
                 at depth 1."
            ),
            format!("as root: cpupower idle-set -D {WAKE_US}"),
        ),
        Some(us) => fine(format!("Waking CPU 0 takes at most {us} us.")),
        None => fine("This kernel does not control the sleep states of the CPUs."),
    }
}

fn check_cgroup_limits(observation: &Observation) -> Known<DoctorAnswer> {
    let text = observation.machine.fact(LIMITS)?;
    let limits_in = |part: &str| -> Option<String> {
        let is_limit = |line: &&str| line.contains(part) && !line.starts_with(UNREADABLE_LIMIT);
        let lines: Vec<&str> = text.lines().filter(is_limit).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    };
    let unreadable = unreadable_limits(text, &["cpu", "memory"]);
    let cpu = limits_in("/cpu.").map(|limits| format!("A cgroup limits fathom's CPU time: {limits}."));
    let memory = limits_in("/memory.")
        .map(|limits| format!("A cgroup limits memory, including the page cache: {limits}."));
    let (severity, check, sentence, with) = match (cpu, memory) {
        (None, None) => match unreadable {
            Some(why) => return Err(why),
            None if hides_outer_cgroups(text) => {
                let why = "no visible cgroup sets a limit, but the cgroups above the visible ones are hidden, as in a container";
                return Err(why.into());
            }
            None => return fine("No cgroup limits CPU time or memory."),
        },
        (None, Some(memory)) => (Severity::Note, CheckId::D14, memory, "--cache direct"),
        (Some(cpu), None) => (Severity::Biases, CheckId::D11, cpu, "fewer --workers"),
        (Some(cpu), Some(memory)) => {
            (Severity::Biases, CheckId::D11, format!("{cpu} {memory}"), "fewer --workers and --cache direct")
        }
    };
    let fix = format!("measure outside of this cgroup, or with {with}");
    let other = unreadable.map_or_else(String::new, |why| format!(" Other {why}."));
    problem(severity, sentence + &other, fix).map(|answer| answer.check(check))
}

fn check_libraries(observation: &Observation) -> Known<DoctorAnswer> {
    let text = observation.machine.fact(LIBRARIES)?;
    if text.contains("libeatmydata") {
        let sentence = "libeatmydata is loaded: it turns syncs into no-ops.";
        let fix = "start fathom without the library: env -u LD_PRELOAD fathom ..., and no line about it in /etc/ld.so.preload";
        return problem(Severity::Relabels, sentence, fix);
    }
    match text.lines().next().and_then(|l| l.strip_prefix("LD_PRELOAD:")) {
        Some(named) => problem(
            Severity::Note,
            format!("LD_PRELOAD loads a library between fathom and the kernel:{named}."),
            "start fathom without it: env -u LD_PRELOAD fathom ...",
        ),
        None => fine("LD_PRELOAD is not set, and libeatmydata is not loaded."),
    }
}

/// A limit of this many open files is enough for a run: one per worker and target, counters, sessions. 64 workers on a few targets need far
/// fewer.
const FILES_FROM: u64 = 512;
/// Memory that io_uring locks for the registered buffers of 32 operations of 1 MiB in flight.
const LOCKED_FROM: u64 = 32 * MIB;
/// From this size on, a limit on bytes or on open files counts as no limit.
const UNLIMITED_FROM: u64 = 1024 * GIB;

pub(super) fn check_rights(observation: &Observation) -> Vec<DoctorAnswer> {
    let mut answers = vec![
        name_answer("io_uring", None, check_io_uring(observation)),
        name_answer("own cgroup", Some(CheckId::D01), check_own_cgroup(observation)),
    ];
    answers.extend(check_raw_devices(observation));
    answers.push(name_answer("tracing", None, check_tracing(observation)));
    answers.push(name_answer("open files", None, check_open_files(observation)));
    answers.push(name_answer("locked memory", None, check_locked_memory(observation)));
    answers
}

fn check_io_uring(observation: &Observation) -> Known<DoctorAnswer> {
    let Err(denied) = &observation.rights.io_uring else { return fine("Allowed.") };
    let advice = observation.rights.io_uring_advice;
    let allow = advice.map_or_else(String::new, |advice| format!("to allow it: {advice}; "));
    match &observation.rights.libaio {
        Ok(()) => problem(
            Severity::Note,
            format!(
                "io_uring cannot be used: {denied}. fathom uses libaio instead, at the same queue depth. libaio has no \
                 trims, and buffered operations run one at a time."
            ),
            format!("{allow}to measure the same everywhere: --engine libaio"),
        ),
        Err(why) => problem(
            Severity::Invalidates,
            format!(
                "io_uring cannot be used: {denied}. libaio, which could replace it, cannot be used either: {why}."
            ),
            format!("{allow}to measure without io_uring: --engine sync --depth 1, with more --workers"),
        ),
    }
}

fn check_own_cgroup(observation: &Observation) -> Known<DoctorAnswer> {
    let why = match &observation.rights.cgroup {
        Ok(v) => {
            return fine(format!(
                "Can be created (cgroup version {v}): the kernel will count fathom's I/O separately."
            ));
        }
        Err(why) => why,
    };
    let user = observation.machine.user_id;
    let delegated = ", or use a delegated cgroup: systemd-run --user --scope -p Delegate=yes fathom ...";
    let sentence = format!(
        "Cannot be created: {why}. fathom then counts all traffic of a device that is not fathom's own as that of others."
    );
    problem(Severity::Note, sentence, format!("{}{}", advice(user), if user == 0 { "" } else { delegated }))
}

fn check_raw_devices(observation: &Observation) -> impl Iterator<Item = DoctorAnswer> {
    let describe_answer = |answer: &Known<()>| match answer {
        Ok(()) => fine("Can be opened, so `fathom layers` can measure it too."),
        Err(why) => problem(
            Severity::Note,
            format!("Cannot be opened ({why}), so `fathom layers` cannot measure it."),
            advice(observation.machine.user_id),
        ),
    };
    let devices = observation.rights.devices.iter();
    devices.map(move |(name, answer)| name_answer(&format!("raw {name}"), None, describe_answer(answer)))
}

fn check_tracing(observation: &Observation) -> Known<DoctorAnswer> {
    match &observation.rights.tracing {
        Ok(()) => fine("Block requests can be traced, each with the process that issued it."),
        Err(why) => problem(
            Severity::Note,
            format!(
                "Block requests cannot be traced ({why}). fathom measures without a trace, but cannot name the \
                 process that issued a request of another program."
            ),
            advice(observation.machine.user_id),
        ),
    }
}

fn check_open_files(observation: &Observation) -> Known<DoctorAnswer> {
    match observation.rights.open_files {
        Some(most) if most < FILES_FROM => problem(
            Severity::Note,
            format!("At most {}: many workers on many targets need more.", show_count(most as f64)),
            format!("ulimit -n {FILES_FROM}"),
        ),
        Some(most) if most < UNLIMITED_FROM => fine(format!("Up to {}.", show_count(most as f64))),
        _ => fine("Unlimited."),
    }
}

fn check_locked_memory(observation: &Observation) -> Known<DoctorAnswer> {
    match observation.rights.locked_bytes {
        Some(most) if most < LOCKED_FROM && observation.rights.io_uring.is_ok() => problem(
            Severity::Note,
            format!(
                "At most {}: io_uring cannot register buffers of {} and uses unregistered ones, which cost more \
                 CPU time.",
                show_bytes(most),
                show_bytes(LOCKED_FROM)
            ),
            "as root: prlimit --memlock=unlimited --pid $$",
        ),
        Some(most) if most < UNLIMITED_FROM => fine(format!("Up to {}.", show_bytes(most))),
        _ => fine("Unlimited."),
    }
}

/// Other load disturbs a measurement (D01) if other processes have on average at least this many requests in flight: a twentieth of what
/// depth 1 has. The average is the summed time of the requests divided by the time watched, so it means the same for a spinning disk and
/// for flash.
const FOREIGN_FROM: f64 = 0.05;
/// If other processes use at least this share of the CPU time, workers will wait for a CPU (D08).
const CPU_FROM: f64 = 0.1;
/// Minimum share of memory that should be available.
const AVAILABLE_FROM: f64 = 0.05;
/// Largest number of process names shown.
const MAX_NAMES: usize = 3;
/// The answer names a process only if the process causes at least this share of the load.
const NAMED_FROM: f64 = 0.1;
/// If the visible processes cause less than this share of a load, the answer names other causes.
const EXPLAINED_FROM: f64 = 0.5;

pub(super) fn check_other_load(observation: &Observation) -> Vec<DoctorAnswer> {
    let idle = observation.idle();
    let mut answers = Vec::new();
    if !observation.place().layers.is_empty() {
        answers.push(name_answer("requests of others", Some(CheckId::D01), check_requests(observation)));
    }
    answers.push(name_answer("CPU", Some(CheckId::D08), check_cpu(observation)));
    answers.extend(idle.answer("stolen CPU time", CheckId::D10));
    answers.extend(idle.answer("waiting to be written", CheckId::D02));
    answers.extend(idle.answer("housekeeping", CheckId::D03));
    answers.extend(idle.answer("memory", CheckId::D14).map(|answer| add_available(observation, answer)));
    answers
}

/// Checks the requests of other processes to the devices at the bottom of the stack.
fn check_requests(observation: &Observation) -> Known<DoctorAnswer> {
    let flow = sum_traffic(observation)?;
    let seconds = (observation.watched_ns() as f64 / 1e9).max(1e-9);
    let in_flight = flow.ms as f64 / 1000.0 / seconds;
    let sentence = format!(
        "{} requests a second, {} a second, over {} s.",
        show_rate(flow.ios as f64 / seconds),
        show_bytes((flow.bytes as f64 / seconds) as u64),
        show_rate(seconds)
    );
    if in_flight < FOREIGN_FROM {
        return fine(sentence);
    }
    let busiest = describe_busiest(
        observation,
        &Load {
            total: flow.bytes,
            did: "moved",
            by: |b| b.io_bytes.unwrap_or(0),
            show: show_bytes,
            hidden: observation.hidden,
            other_cause: "data that was written to memory earlier, or processes that have ended",
        },
    );
    let fix = "stop these processes or wait for them; `iotop -oP` shows them";
    problem(Severity::Biases, format!("{sentence} {busiest}").trim(), fix)
}

fn sum_traffic(observation: &Observation) -> Known<BlockFlow> {
    let mut sum = BlockFlow::default();
    for leaf in observation.place().lowest_layers() {
        if let Some(why) = leaf.counters_off_reason() {
            return Err(why);
        }
        sum = sum.plus(&BlockStat::between(&observation.start, &observation.end, &leaf.stat_file)?.total());
    }
    Ok(sum)
}

/// A load, to find the processes that cause it.
struct Load {
    /// The whole load, in the unit in which `by` returns a part of it.
    total: u64,
    /// What the processes did, as a verb.
    did: &'static str,
    /// The part that a process caused.
    by: fn(&BusyProcess) -> u64,
    show: fn(u64) -> String,
    /// Number of listed processes whose part fathom cannot read.
    hidden: usize,
    /// What may cause the load without showing as a process.
    other_cause: &'static str,
}

/// Names the processes that cause at least [`NAMED_FROM`] of a load, or explains why no process does.
fn describe_busiest(observation: &Observation, load: &Load) -> String {
    let Load { total, did, by, show, hidden, other_cause } = *load;
    let busy = match &observation.busy {
        Ok(busy) => busy,
        Err(why) => return format!("The processes that cause this load are unknown: {why}."),
    };
    let is_relevant = |b: &&BusyProcess| by(b) > 0 && by(b) as f64 >= NAMED_FROM * total as f64;
    let mut most: Vec<&BusyProcess> = busy.iter().filter(is_relevant).collect();
    most.sort_by_key(|b| std::cmp::Reverse(by(b)));
    let names: Vec<String> = most
        .iter()
        .take(MAX_NAMES)
        .map(|b| format!("{} ({}) {did} {}", b.name, b.pid, show(by(b))))
        .collect();
    let names = names.join(", ");
    let explained: u64 = busy.iter().map(by).sum();
    let is_explained = explained > 0 && explained as f64 >= EXPLAINED_FROM * total as f64;
    match (names.is_empty(), observation.visibility.explain(hidden)) {
        (false, Some(why)) => format!("Busiest among the visible processes: {names}; {why}."),
        (false, None) if is_explained => format!("Busiest: {names}."),
        (false, None) => {
            format!("Busiest: {names}. Most of this load seems to have another cause, such as {other_cause}.")
        }
        (true, None) if is_explained => {
            "Many processes cause this load, each less than a tenth of it.".into()
        }
        (true, Some(why)) => format!("No visible process explains this load: {why}."),
        (true, None) => format!("No process explains this load. Likely causes are {other_cause}."),
    }
}

fn check_cpu(observation: &Observation) -> Known<DoctorAnswer> {
    let busy = observation.idle().used_cpu_share()?;
    let sentence = format!("{} of all CPU time was used.", show_share(busy));
    if busy < CPU_FROM {
        return fine(sentence);
    }
    // A line for each CPU follows the line of all CPUs.
    let stat = observation.end.text("/proc/stat")?;
    let is_cpu = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    let cpus = stat.lines().filter(is_cpu).count().max(1);
    let busiest = describe_busiest(
        observation,
        &Load {
            total: (busy * cpus as f64 * observation.watched_ns() as f64 / 1e6) as u64,
            did: "used",
            by: |b| b.cpu_ms,
            show: |ms| format!("{ms} ms of CPU time"),
            // The CPU time of listed processes is never hidden.
            hidden: 0,
            other_cause: "interrupts, or processes that started or ended meanwhile",
        },
    );
    let fix =
        "stop this load or wait until it has ended; `top` shows the processes, and interrupts as hi and si";
    problem(Severity::Biases, format!("{sentence} {busiest}").trim(), fix)
}

/// Adds the share of available memory to an answer of D14, which only checks waiting and swapping. Too small a share becomes a finding. A
/// finding of D14 remains unchanged.
fn add_available(observation: &Observation, answer: DoctorAnswer) -> DoctorAnswer {
    let available_share = || -> Known<f64> {
        let text = observation.end.text("/proc/meminfo")?;
        Ok(meminfo_bytes(text, "MemAvailable")? as f64 / meminfo_bytes(text, "MemTotal")?.max(1) as f64)
    };
    let available = available_share().map(|share| (share < AVAILABLE_FROM, show_share(share)));
    match (available, answer.outcome) {
        (_, Outcome::Finding) => answer,
        (Ok((true, share)), _) => {
            let sentence = format!("Only {share} of the memory is available.");
            DoctorAnswer::finding("memory", Severity::Biases, sentence)
                .with_fix("stop the processes that use most memory; `ps aux --sort -rss | head` lists them")
                .check(CheckId::D14)
        }
        (_, Outcome::NotChecked) => answer,
        (Ok((false, share)), Outcome::Holds) => DoctorAnswer::ok(
            "memory",
            format!("{share} of the memory is available, and hardly any time was spent waiting for memory."),
        ),
        (Err(why), Outcome::Holds) => DoctorAnswer::unknown("memory", why).check(CheckId::D14),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation_tests::{find_answer, in_order};
    use model::finding::Outcome;

    fn with_fact(fact: &str, text: &str, about: &str) -> DoctorAnswer {
        let mut observation = in_order();
        observation.machine.facts.insert(fact.into(), Ok(text.into()));
        answer_about(&observation, about)
    }

    fn answer_about(observation: &Observation, about: &str) -> DoctorAnswer {
        find_answer(check_host(observation), about)
    }

    #[test]
    fn a_good_machine_has_no_finding() {
        let mut observation = in_order();
        let answers = check_host(&observation);
        assert!(answers.iter().all(|a| a.outcome == Outcome::Holds), "{answers:#?}");
        observation.machine.facts.clear();
        observation.machine.virtual_by = Err("hidden".into());
        observation.machine.clocksource = Err("hidden".into());
        let answers = check_host(&observation);
        assert!(answers.iter().all(|a| a.outcome == Outcome::NotChecked), "{answers:#?}");
    }

    #[test]
    fn frequencies_and_sleep_are_found_beyond_their_thresholds() {
        assert_eq!(
            with_fact(GOVERNORS, "/c0/g: performance\n/c1/g: powersave\n", "governor").check,
            Some(CheckId::D12)
        );
        assert_eq!(with_fact(GOVERNORS, "", "governor").outcome, Outcome::Holds);
        assert_eq!(with_fact(SLEEPS, "/s0: 2\n/s1: 11\n", "sleep states").outcome, Outcome::Finding);
        assert_eq!(with_fact(SLEEPS, "/s0: 2\n/s1: 10\n", "sleep states").outcome, Outcome::Holds);
    }

    #[test]
    fn a_cgroup_limit_counts_for_this_device_or_all() {
        let limit = |line: &str| with_fact(LIMITS, line, "I/O limits").outcome;
        assert_eq!(limit("/sys/fs/cgroup/a/io.max: 8:0 rbps=1048576 wbps=max"), Outcome::Finding);
        assert_eq!(limit("/sys/fs/cgroup/a/io.max: 8:16 rbps=1048576 wbps=max"), Outcome::Holds);
        assert_eq!(limit("/sys/fs/cgroup/a/io.weight: default 50"), Outcome::Finding);
        assert_eq!(limit("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us: 5000"), Outcome::Holds);
        let other = |line: &str| with_fact(LIMITS, line, "CPU and memory limits").check;
        assert_eq!(other("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us: 5000"), Some(CheckId::D11));
        assert_eq!(other("/sys/fs/cgroup/a/memory.max: 5000"), Some(CheckId::D14));
        let all = "/g/a/io.max: 8:0 rbps=1 wbps=max\n/g/io.max: 8:16 rbps=2 wbps=max\n/g/io.max: 8:0 riops=3\n\
                   /g/cpu.max: 100 200\n/g/a/cpu.max: 300 400\n/g/memory.max: 5000\n/g/a/memory.high: 6000";
        let io = with_fact(LIMITS, all, "I/O limits").sentence;
        assert!(
            io.contains("reads limited to 1 B/s (/g/a/io.max); reads limited to 3 IOPS (/g/io.max)")
                && !io.contains("2 B/s"),
            "{io}"
        );
        let both = with_fact(LIMITS, all, "CPU and memory limits").sentence;
        for part in ["100 200", "300 400", "memory.max: 5000", "memory.high: 6000"] {
            assert!(both.contains(part), "{both}");
        }
    }

    #[test]
    fn a_container_may_hide_cgroup_limits() {
        let mut observation = in_order();
        observation.machine.facts.insert(LIMITS.into(), Err("not visible".into()));
        let hidden = answer_about(&observation, "I/O limits");
        assert_eq!((hidden.outcome, hidden.check), (Outcome::NotChecked, Some(CheckId::D04)), "{hidden:?}");
        // The topmost visible cgroup is not the root, and has a limit of another kind or none.
        observation
            .machine
            .facts
            .insert(LIMITS.into(), Ok("/g/memory.max: 9000\n/g/cgroup.type: domain".into()));
        assert_eq!(answer_about(&observation, "I/O limits").outcome, Outcome::NotChecked);
        observation.machine.facts.insert(LIMITS.into(), Ok("/g/cgroup.type: domain".into()));
        assert_eq!(answer_about(&observation, "CPU and memory limits").outcome, Outcome::NotChecked);
        observation.machine.facts.insert(LIMITS.into(), Ok("/g/io.max: 8:0 rbps=1048576".into()));
        assert_eq!(answer_about(&observation, "I/O limits").outcome, Outcome::Finding);
    }

    #[test]
    fn unreadable_limits_are_not_checked_and_are_named_next_to_a_finding() {
        const UNREADABLE: &str = "unreadable: /g/cpu.max (permission denied)\n";
        let about = "CPU and memory limits";
        let unknown = with_fact(LIMITS, &format!("/g/io.max: 8:0 rbps=1\n{UNREADABLE}"), about);
        assert_eq!(
            (unknown.outcome, unknown.check),
            (Outcome::NotChecked, Some(CheckId::D11)),
            "{unknown:?}"
        );
        let found = with_fact(LIMITS, &format!("/g/memory.max: 9000\n{UNREADABLE}"), about);
        assert_eq!((found.outcome, found.check), (Outcome::Finding, Some(CheckId::D14)), "{found:?}");
        assert!(found.sentence.contains("9000") && found.sentence.contains("/g/cpu.max (permission denied)"));
        let io = with_fact(LIMITS, &format!("/g/memory.max: 9000\n{UNREADABLE}"), "I/O limits");
        assert_eq!(io.outcome, Outcome::Holds, "{io:?}");
    }

    #[test]
    fn slow_clocks_and_preloaded_libraries_are_found() {
        let mut observation = in_order();
        observation.machine.clocksource = Ok("acpi_pm\n".into());
        assert_eq!(answer_about(&observation, "clock").check, Some(CheckId::D13));
        let mut observation = in_order();
        observation.clock.cost_ps = 1_001_000;
        assert_eq!(answer_about(&observation, "clock").check, Some(CheckId::D13));
        let eat = "LD_PRELOAD: /lib/libeatmydata.so\n/lib/libeatmydata.so\n";
        assert_eq!(with_fact(LIBRARIES, eat, "libraries").severity, Some(Severity::Relabels));
        assert_eq!(with_fact(LIBRARIES, "LD_PRELOAD: x.so\n", "libraries").severity, Some(Severity::Note));
    }
}

#[cfg(test)]
mod rights_tests {
    use super::*;
    use crate::doctor::observation_tests::in_order;
    use machine::rights::IoUringDenied;
    use model::finding::Outcome;

    #[test]
    fn missing_rights_are_reported_with_a_reason() {
        let mut observation = in_order();
        let answers = check_rights(&observation);
        assert!(answers.iter().all(|a| a.outcome == Outcome::Holds), "{answers:#?}");
        let rights = &mut observation.rights;
        rights.io_uring = Err(IoUringDenied::Other("reason 1".into()));
        (rights.libaio, rights.cgroup) = (Err("no libaio".into()), Err("reason 2".into()));
        (rights.tracing, rights.devices[0].1) = (Err("reason 3".into()), Err("reason 4".into()));
        (rights.open_files, rights.locked_bytes) = (Some(FILES_FROM - 1), Some(LOCKED_FROM - 1));
        let answers = check_rights(&observation);
        // Only io_uring would lock the memory.
        let (locked, answers): (Vec<DoctorAnswer>, Vec<DoctorAnswer>) =
            answers.into_iter().partition(|a| a.about == "locked memory");
        assert!(locked.iter().all(|a| a.outcome == Outcome::Holds), "{locked:#?}");
        assert!(answers.iter().all(|a| a.outcome == Outcome::Finding && !a.fix.is_empty()), "{answers:#?}");
        for reason in ["reason 1", "reason 2", "reason 3", "reason 4"] {
            assert!(answers.iter().any(|a| a.sentence.contains(reason)), "{reason}");
        }
        let worst = answers.iter().map(|a| a.severity).min().flatten();
        assert_eq!(worst, Some(Severity::Invalidates));
    }

    #[test]
    fn advice_about_io_uring_names_only_what_helps_here() {
        let io_uring_answer = |denied: IoUringDenied, advice: Option<&'static str>| {
            let mut observation = in_order();
            (observation.rights.io_uring, observation.rights.io_uring_advice) = (Err(denied), advice);
            super::name_answer("io_uring", None, check_io_uring(&observation))
        };
        let old = io_uring_answer(IoUringDenied::OldKernel("4.19.0".into()), None);
        assert_eq!(old.severity, Some(Severity::Note));
        assert!(!old.fix.contains("sysctl") && old.fix.contains("--engine libaio"), "{old:?}");
        let sysctl =
            io_uring_answer(IoUringDenied::Sysctl("2".into()), Some("sysctl kernel.io_uring_disabled=0"));
        assert!(sysctl.fix.contains("sysctl kernel.io_uring_disabled=0"), "{sysctl:?}");
        // A low limit of locked memory is a finding.
        let mut observation = in_order();
        observation.rights.locked_bytes = Some(LOCKED_FROM - 1);
        assert!(matches!(
            check_locked_memory(&observation),
            Ok(DoctorAnswer { outcome: Outcome::Finding, .. })
        ));
    }
}

#[cfg(test)]
mod neighbours_tests {
    use super::*;
    use crate::doctor::observation_tests::{find_answer, in_order};
    use machine::processes::ProcessVisibility;
    use model::evidence::HOUSEKEEPERS;
    use model::finding::Outcome;

    fn answer_about(observation: &Observation, about: &str) -> DoctorAnswer {
        find_answer(check_other_load(observation), about)
    }

    /// The answer about a subject if a file has this content after the pause. Before the pause, no CPU time was used, and `/proc/meminfo`
    /// is the same.
    fn with(file: &str, text: &str, about: &str) -> DoctorAnswer {
        let mut observation = in_order();
        observation.start.files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0 0 0\n".into()));
        if file == "/proc/meminfo" {
            observation.start.files.insert(file.into(), Ok(text.into()));
        }
        observation.end.files.insert(file.into(), Ok(text.into()));
        answer_about(&observation, about)
    }

    #[test]
    fn an_idle_machine_has_no_finding() {
        let mut observation = in_order();
        observation.start.files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0 0 0\n".into()));
        let answers = check_other_load(&observation);
        assert!(answers.iter().all(|a| a.outcome == Outcome::Holds), "{answers:#?}");
        (observation.start.files, observation.end.files) = Default::default();
        let answers = check_other_load(&observation);
        assert!(answers.iter().all(|a| a.outcome == Outcome::NotChecked), "{answers:#?}");
    }

    #[test]
    fn requests_of_others_count_by_their_time() {
        let stat = "/sys/class/block/sda/stat";
        // 149 ms of 3 s are less than a twentieth, 151 ms more.
        let at = |ms: u64| format!("1090 0 8720 {} 500 0 4000 20 0 44 60 0 0 0 0 9 11", 40 + ms);
        assert_eq!(with(stat, &at(149), "requests of others").outcome, Outcome::Holds);
        let answer = with(stat, &at(151), "requests of others");
        assert_eq!(answer.outcome, Outcome::Finding);
        assert!(answer.sentence.starts_with("30.0 requests a second"), "{}", answer.sentence);
        let mut observation = in_order();
        observation.end.files.insert(stat.into(), Ok(at(3000)));
        let busy = |name: &str, io_bytes| BusyProcess { pid: 7, name: name.into(), cpu_ms: 1, io_bytes };
        // The disk moved 360 KiB.
        let kib = |n: u64| Some(n << 10);
        observation.busy = Ok(vec![busy("cp", kib(90)), busy("dd", kib(180)), busy("log", kib(30))]);
        let named = answer_about(&observation, "requests of others").sentence;
        assert!(named.ends_with("Busiest: dd (7) moved 180 KiB, cp (7) moved 90 KiB."), "{named}");
        observation.busy = Ok(vec![busy("log", kib(30))]);
        let unnamed = answer_about(&observation, "requests of others").sentence;
        assert!(!unnamed.contains("log") && unnamed.contains("written to memory earlier"), "{unnamed}");
        observation.busy = Ok(vec![busy("dd", None)]);
        let mut explained = |hidden, in_namespace, is_root| {
            (observation.hidden, observation.visibility) =
                (hidden, ProcessVisibility { in_namespace, is_root });
            answer_about(&observation, "requests of others").sentence
        };
        assert!(explained(3, false, false).contains("only root sees the I/O of other users' processes"));
        assert!(explained(3, false, true).contains("even from root"));
        for (hidden, is_root) in [(0, true), (3, true), (3, false)] {
            let sentence = explained(hidden, true, is_root);
            assert!(sentence.contains("this PID namespace shows only its own processes"), "{sentence}");
            assert!(!sentence.contains("root"), "root of a container sees no more: {sentence}");
        }
        assert!(!explained(0, false, true).contains("visible"));
        observation.machine.places[0].layers[1].queue.insert("iostats".into(), "0".into());
        assert_eq!(answer_about(&observation, "requests of others").outcome, Outcome::NotChecked);
    }

    #[test]
    fn busy_and_stolen_cpu_time_are_found() {
        let stat = "/proc/stat";
        assert_eq!(with(stat, "cpu  50 0 49 901 0 0 0 0\n", "CPU").outcome, Outcome::Holds);
        assert_eq!(with(stat, "cpu  50 0 50 900 0 0 0 0\n", "CPU").outcome, Outcome::Finding);
        let steal =
            |n: u64| with(stat, &format!("cpu  0 0 0 {} 0 0 0 {n}\n", 1000 - n), "stolen CPU time").severity;
        assert_eq!(
            (steal(11), steal(12), steal(102)),
            (None, Some(Severity::Biases), Some(Severity::Invalidates))
        );
        for junk in ["", "cpu ", "cpu  1 2 3", "cpu  a b c d e f g h", "cpu  0 0 0 0 0 0 0 0"] {
            assert_eq!(with(stat, junk, "CPU").outcome, Outcome::NotChecked, "{junk}");
        }
        let most = u64::MAX;
        assert_eq!(
            with(stat, &format!("cpu  {most} 0 0 {most} {most} 0 0 0\n"), "CPU").outcome,
            Outcome::Holds
        );
    }

    #[test]
    fn only_processes_that_explain_the_cpu_time_are_named() {
        let mut observation = in_order();
        // Two CPUs were busy for 30 % of 3 s: 1800 ms.
        observation.start.files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0\n".into()));
        let stat = "cpu  180 0 0 420 0 0 0 0\ncpu0 90 0 0 210 0 0 0 0\ncpu1 90 0 0 210 0 0 0 0\n";
        observation.end.files.insert("/proc/stat".into(), Ok(stat.into()));
        let mut sentence = |busy: &[(&str, u64)]| {
            let process = |(name, cpu_ms): &(&str, u64)| BusyProcess {
                pid: 7,
                name: (*name).into(),
                cpu_ms: *cpu_ms,
                io_bytes: None,
            };
            observation.busy = Ok(busy.iter().map(process).collect());
            answer_about(&observation, "CPU").sentence
        };
        assert_eq!(
            sentence(&[("init", 30)]),
            "30 % of all CPU time was used. No process explains this load. Likely causes are interrupts, or \
             processes that started or ended meanwhile."
        );
        assert!(
            sentence(&[("cc", 1700), ("init", 30)]).ends_with("Busiest: cc (7) used 1700 ms of CPU time.")
        );
        let partly = sentence(&[("cc", 300), ("init", 30)]);
        assert!(
            partly.contains(
                "Busiest: cc (7) used 300 ms of CPU time. Most of this load seems to have another cause"
            ),
            "{partly}"
        );
        let many: Vec<(&str, u64)> = vec![("cc", 100); 17];
        assert!(sentence(&many).ends_with("Many processes cause this load, each less than a tenth of it."));
    }

    #[test]
    fn dirty_memory_and_memory_pressure_are_found() {
        let dirty =
            |kib: u64| format!("MemTotal: 1000 kB\nMemAvailable: 900 kB\nDirty: {kib} kB\nWriteback: 0 kB\n");
        assert_eq!(with("/proc/meminfo", &dirty(65_536), "waiting to be written").outcome, Outcome::Holds);
        assert_eq!(with("/proc/meminfo", &dirty(65_537), "waiting to be written").check, Some(CheckId::D02));
        assert_eq!(with(HOUSEKEEPERS, "9: ext4lazyinit\n", "housekeeping").check, Some(CheckId::D03));
        assert_eq!(with(HOUSEKEEPERS, "", "housekeeping").outcome, Outcome::Holds);
        let swapped =
            |pages: u64| with("/proc/vmstat", &format!("pswpin {pages}\npswpout 7\n"), "memory").outcome;
        assert_eq!((swapped(6), swapped(5000)), (Outcome::Holds, Outcome::Finding));
        // The pause takes 3 s.
        let psi =
            |us: &str| with("/proc/pressure/memory", &format!("some avg10=0 total={us}\n"), "memory").outcome;
        assert_eq!(
            (psi("29000"), psi("31000"), psi("x")),
            (Outcome::Holds, Outcome::Finding, Outcome::NotChecked)
        );
        let scarce = dirty(0).replace("MemAvailable: 900", "MemAvailable: 49");
        assert_eq!(
            with("/proc/meminfo", &scarce, "memory").sentence,
            "Only 4.9 % of the memory is available."
        );
    }
}
