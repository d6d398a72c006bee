//! The machine around: hypervisor, clock, frequencies, sleep states, limits of cgroups, libraries that meddle.
//!
//! For: what does not change while one measures. Not for: load (that is `neighbours`).

use super::observation::Observation;
use model::check_id::CheckId;
use model::diagnosis::Look;
use model::finding::Severity;
use model::kernel_files::{GOVERNORS, LIBRARIES, LIMITS, SLEEPS};
use model::units::show_ns;

/// Clock sources that are read without entering the kernel.
const GOOD_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "timebase"];
/// CPU time of a stamp from which two of them are a part of a fast operation that cannot be overlooked (D13).
const STAMP_NS: f64 = 1000.0;
/// Time to wake up from which a single read of a fast device, some 50 us, is a fifth longer (D12).
const WAKE_US: u64 = 10;

pub(super) fn check_host(seen: &Observation) -> Vec<Look> {
    vec![
        hypervisor(seen),
        clock(seen),
        governor(seen),
        sleep(seen),
        io_limits(seen),
        cpu_limits(seen),
        libraries(seen),
    ]
}

fn hypervisor(seen: &Observation) -> Look {
    const ABOUT: &str = "hypervisor";
    match &seen.machine.virtual_by {
        Ok(None) => Look::ok(ABOUT, "None: bare metal."),
        Ok(Some(name)) => Look::finding(
            ABOUT,
            Severity::Note,
            format!("{name}: the host's cache, its limits and its other guests cannot be seen from here."),
        )
        .cure("state this with every result, and repeat the run at another time of day")
        .check(CheckId::D18),
        Err(why) => Look::unknown(ABOUT, why).check(CheckId::D18),
    }
}

fn clock(seen: &Observation) -> Look {
    const ABOUT: &str = "clock";
    let source = match &seen.machine.clocksource {
        Ok(source) => source.trim(),
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D13),
    };
    let timing = &seen.timing;
    let cost = show_ns(timing.cost_ns);
    let cure = "as root: echo tsc | tee /sys/devices/system/clocksource/clocksource0/current_clocksource";
    // Hyper-V has several, all good.
    if !GOOD_CLOCKS.contains(&source) && !source.starts_with("hyperv") {
        let sentence = format!(
            "The kernel's clock source is {source}, which is slow to read; a stamp of fathom's takes {cost}."
        );
        return Look::finding(ABOUT, Severity::Biased, sentence).cure(cure).check(CheckId::D13);
    }
    if timing.cost_ns > STAMP_NS {
        return Look::finding(ABOUT, Severity::Biased, format!("A stamp takes {cost} ({source})."))
            .cure(cure)
            .check(CheckId::D13);
    }
    let why = timing.why.as_ref().map_or_else(String::new, |why| format!(", since {why}"));
    Look::ok(ABOUT, format!("{source}; fathom stamps with {} in {cost}{why}.", timing.clock))
}

/// Values of a fact with a line per file, `path: value`.
fn values(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|l| l.rsplit_once(": ")).map(|(_, value)| value.trim())
}

fn governor(seen: &Observation) -> Look {
    const ABOUT: &str = "governor";
    let text = match seen.machine.fact(GOVERNORS) {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D12),
    };
    match values(text).find(|g| *g != "performance") {
        Some(other) => Look::finding(
            ABOUT,
            Severity::Note,
            format!(
                "CPUs choose their frequency by '{other}': at low depth they slow down between operations."
            ),
        )
        .cure("as root: cpupower frequency-set -g performance")
        .check(CheckId::D12),
        None if text.is_empty() => Look::ok(ABOUT, "This kernel does not choose the CPUs' frequency."),
        None => Look::ok(ABOUT, "performance."),
    }
}

fn sleep(seen: &Observation) -> Look {
    const ABOUT: &str = "sleep states";
    let text = match seen.machine.fact(SLEEPS) {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D12),
    };
    match values(text).filter_map(|v| v.parse::<u64>().ok()).max() {
        Some(us) if us > WAKE_US => Look::finding(
            ABOUT,
            Severity::Note,
            format!("An idle CPU sleeps so deep that waking it takes {us} us, which a single operation in flight pays each time."),
        )
        .cure(format!("as root: cpupower idle-set -D {WAKE_US}"))
        .check(CheckId::D12),
        Some(us) => Look::ok(ABOUT, format!("Waking a CPU takes {us} us at most.")),
        None => Look::ok(ABOUT, "This kernel puts no CPU to sleep by itself."),
    }
}

fn io_limits(seen: &Observation) -> Look {
    const ABOUT: &str = "I/O limits";
    let text = match seen.machine.fact(LIMITS) {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D04),
    };
    let layers = &seen.place().layers;
    let about_us = |line: &&str| {
        let mut devices = line.split_ascii_whitespace().filter(|w| is_device(w)).peekable();
        // A limit that names no device is one on all.
        devices.peek().is_none() || devices.any(|d| layers.iter().any(|l| l.number == d))
    };
    let io = |line: &&str| ["/io.", "/blkio."].iter().any(|f| line.contains(f));
    let limits: Vec<&str> = text.lines().filter(|l| io(l) && about_us(l)).collect();
    if limits.is_empty() {
        return Look::ok(ABOUT, "No cgroup above limits this device.");
    }
    Look::finding(
        ABOUT,
        Severity::Biased,
        format!("A cgroup above limits this device: {}.", limits.join("; ")),
    )
    .cure("measure from outside of it, or know that the limit is what you measure")
    .check(CheckId::D04)
}

/// Whether a word is `major:minor`.
fn is_device(word: &str) -> bool {
    let number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    word.split_once(':').is_some_and(|(a, b)| number(a) && number(b))
}

fn cpu_limits(seen: &Observation) -> Look {
    const ABOUT: &str = "CPU and memory limits";
    let text = match seen.machine.fact(LIMITS) {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D11),
    };
    let named = |part: &str| -> Vec<&str> { text.lines().filter(|l| l.contains(part)).collect() };
    let (cpu, memory) = (named("/cpu."), named("/memory."));
    let cpu_words = || format!("A parent cgroup throttles fathom by a CPU quota: {}.", cpu.join("; "));
    let memory_words =
        || format!("A cgroup above limits memory, and with it the page cache: {}.", memory.join("; "));
    match (cpu.is_empty(), memory.is_empty()) {
        (true, true) => Look::ok(ABOUT, "No cgroup above sets one."),
        (true, false) => Look::finding(ABOUT, Severity::Note, memory_words())
            .cure("measure from outside of it, or with --cache direct")
            .check(CheckId::D14),
        (false, true) => Look::finding(ABOUT, Severity::Biased, cpu_words())
            .cure("measure from outside of it, or with fewer --workers")
            .check(CheckId::D11),
        (false, false) => {
            Look::finding(ABOUT, Severity::Biased, format!("{} {}", cpu_words(), memory_words()))
                .cure("measure from outside of it, or with fewer --workers and --cache direct")
                .check(CheckId::D11)
        }
    }
}

fn libraries(seen: &Observation) -> Look {
    const ABOUT: &str = "libraries";
    let text = match seen.machine.fact(LIBRARIES) {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::C02),
    };
    if text.contains("libeatmydata") {
        return Look::finding(ABOUT, Severity::Rename, "libeatmydata is loaded: a sync does nothing.")
            .cure("start fathom without LD_PRELOAD: env -u LD_PRELOAD fathom ...")
            .check(CheckId::C02);
    }
    match text.lines().next().and_then(|l| l.strip_prefix("LD_PRELOAD:")) {
        Some(named) => Look::finding(
            ABOUT,
            Severity::Note,
            format!("LD_PRELOAD puts itself between fathom and the kernel:{named}."),
        )
        .cure("start fathom without it: env -u LD_PRELOAD fathom ...")
        .check(CheckId::C02),
        None => Look::ok(ABOUT, "No library is preloaded."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation::tests::in_order;
    use model::finding::Outcome;

    fn with_fact(fact: &str, text: &str, about: &str) -> Look {
        let mut seen = in_order();
        seen.machine.facts.insert(fact.into(), Ok(text.into()));
        answer(&seen, about)
    }

    fn answer(seen: &Observation, about: &str) -> Look {
        let look = check_host(seen).into_iter().find(|l| l.about == about);
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    #[test]
    fn a_machine_in_order_has_no_finding_and_one_without_facts_is_not_checked() {
        let mut seen = in_order();
        assert!(check_host(&seen).iter().all(|l| l.outcome == Outcome::Holds), "{:#?}", check_host(&seen));
        seen.machine.facts.clear();
        seen.machine.virtual_by = Err("hidden".into());
        seen.machine.clocksource = Err("hidden".into());
        assert!(check_host(&seen).iter().all(|l| l.outcome == Outcome::NotChecked), "{:#?}", check_host(&seen));
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
    fn a_limit_counts_where_it_names_this_device_or_none() {
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
        assert!(io.contains("rbps=1 wbps=max; /g/io.max: 8:0 riops=3.") && !io.contains("8:16"), "{io}");
        let both = with_fact(LIMITS, all, "CPU and memory limits").sentence;
        for part in ["100 200", "300 400", "memory.max: 5000", "memory.high: 6000"] {
            assert!(both.contains(part), "{both}");
        }
    }

    #[test]
    fn slow_clocks_and_preloaded_libraries_are_found() {
        let mut seen = in_order();
        seen.machine.clocksource = Ok("acpi_pm\n".into());
        assert_eq!(answer(&seen, "clock").check, Some(CheckId::D13));
        let mut seen = in_order();
        seen.timing.cost_ns = 1001.0;
        assert_eq!(answer(&seen, "clock").check, Some(CheckId::D13));
        let eat = "LD_PRELOAD: /lib/libeatmydata.so\n/lib/libeatmydata.so\n";
        assert_eq!(with_fact(LIBRARIES, eat, "libraries").severity, Some(Severity::Rename));
        assert_eq!(with_fact(LIBRARIES, "LD_PRELOAD: x.so\n", "libraries").severity, Some(Severity::Note));
    }
}
