//! The host: kernel, CPU, memory, hypervisor and clock, and kernel text that does not change during a
//! measurement.
//!
//! The text has limits, CPU governors and sleep states, firmware names and mapped libraries. It is read
//! before fathom enters its cgroup, so that the limits are the user's. `snapshot` reads text that changes.

use crate::root::Root;
use crate::{cgroup, rights};
use model::evidence::meminfo_bytes;
use model::machine::Machine;
use model::{Known, evidence};
use std::collections::BTreeMap;

/// Vendors and products that exist only in virtual machines, in lower case, with the display name.
const HINTS: [(&str, &str); 13] = [
    ("qemu", "QEMU"),
    ("kvm", "KVM"),
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("microsoft corporation virtual", "Hyper-V"),
    ("xen", "Xen"),
    ("amazon ec2", "Amazon EC2"),
    ("google compute engine", "Google Compute Engine"),
    ("openstack", "OpenStack"),
    ("parallels", "Parallels"),
    ("bochs", "Bochs"),
    ("bhyve", "bhyve"),
];

/// Reads the host. The caller fills `cgroup` and `places`.
pub fn read_host(root: &Root) -> Machine {
    let cpuinfo = root.read("/proc/cpuinfo");
    let name = rustix::system::uname();
    let part = |p: &std::ffi::CStr| p.to_string_lossy().into_owned();
    Machine {
        host: root.word("/proc/sys/kernel/hostname").unwrap_or_else(|| part(name.nodename())),
        kernel: [name.sysname(), name.release(), name.version()].map(part).join(" "),
        cpu: cpuinfo.as_deref().map_err(Clone::clone).and_then(cpu_model),
        cpus: cpus(),
        memory_bytes: root.read("/proc/meminfo").and_then(|text| meminfo_bytes(&text, "MemTotal")),
        virtual_by: virtual_by(root, cpuinfo.as_deref().unwrap_or_default()),
        clocksource: root
            .read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .map(|text| text.trim().to_owned()),
        user_id: rustix::process::geteuid().as_raw(),
        cgroup: Err("not entered".into()),
        facts: read_host_facts(root),
        places: Vec::new(),
    }
}

/// Returns the number of CPUs this process may run on; 1 if the kernel does not report it.
fn cpus() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count().max(1))
}

fn cpu_model(cpuinfo: &str) -> Known<String> {
    let value = |key: &str| {
        let fields = cpuinfo.lines().filter_map(|l| l.split_once(':'));
        fields.filter(|(k, _)| k.trim() == key).map(|(_, v)| v.trim()).find(|v| !v.is_empty())
    };
    if let Some(model) = ["model name", "cpu model", "Model", "cpu", "uarch"].into_iter().find_map(value) {
        return Ok(model.to_owned());
    }
    // 64-bit ARM shows only numbers.
    match (value("CPU implementer"), value("CPU part")) {
        (Some(maker), Some(part)) => Ok(format!("CPU implementer {maker} part {part}")),
        _ => Err("/proc/cpuinfo does not name the CPU".into()),
    }
}

/// Returns the name of the hypervisor, as the kernel, the firmware or the drivers show it; `None` on bare metal.
fn virtual_by(root: &Root, cpuinfo: &str) -> Known<Option<String>> {
    let flags = cpuinfo.lines().find(|l| l.starts_with("flags"));
    let is_flagged = flags.is_some_and(|l| l.split_ascii_whitespace().any(|f| f == "hypervisor"));
    let reported_name = root.word("/sys/hypervisor/type").or_else(|| firmware_hint(root));
    if let Some(name) = reported_name {
        return Ok(Some(name));
    }
    let drivers = driver_hint(root);
    match (is_flagged, drivers) {
        (true, Some(hint)) => Ok(Some(format!("unknown hypervisor with {hint}"))),
        (true, None) => Ok(Some("unknown hypervisor".into())),
        (false, Some(hint)) => Ok(Some(hint)),
        // Only x86 has the hypervisor flag. Its absence on other architectures means nothing.
        (false, None) if flags.is_some() => Ok(None),
        (false, None) => {
            Err("neither the CPU, nor the firmware, nor the drivers show whether this is a virtual machine"
                .into())
        }
    }
}

fn firmware_hint(root: &Root) -> Option<String> {
    let files = ["sys_vendor", "product_name", "bios_vendor", "board_vendor"];
    let names: Vec<String> =
        files.iter().filter_map(|f| root.word(&format!("/sys/class/dmi/id/{f}"))).collect();
    let all = names.join(" ").to_lowercase();
    let (_, name) = HINTS.iter().find(|(hint, _)| all.contains(hint))?;
    Some((*name).to_owned())
}

fn driver_hint(root: &Root) -> Option<String> {
    let buses = [("virtio", "virtio devices"), ("vmbus", "Hyper-V devices"), ("xen", "Xen devices")];
    let has_devices = |bus: &str| root.list(&format!("/sys/bus/{bus}/devices")).is_ok_and(|l| !l.is_empty());
    buses.into_iter().find(|(bus, _)| has_devices(bus)).map(|(_, name)| name.to_owned())
}

/// Reads all facts, each as text or the reason why it is missing.
pub(crate) fn read_host_facts(root: &Root) -> BTreeMap<String, Known<String>> {
    let first_lines = |pattern: &str| root.matches(pattern).and_then(|paths| root.first_lines(&paths));
    let facts = [
        (evidence::LIMITS, cgroup::read_limits(root)),
        (
            evidence::IO_URING,
            Ok(rights::io_uring(root).err().map_or_else(String::new, |why| why.to_string())),
        ),
        (evidence::GOVERNORS, first_lines(evidence::GOVERNORS)),
        (evidence::SLEEPS, enabled_sleep_states(root)),
        (evidence::VENDOR, root.read(evidence::VENDOR)),
        (evidence::PRODUCT, root.read(evidence::PRODUCT)),
        (evidence::LIBRARIES, mapped_libraries(root)),
        (evidence::PAGE_REPORTING, first_lines(&evidence::PAGE_REPORTING.replace('*', "page_reporting*"))),
        (evidence::CORES, first_lines(evidence::CORES)),
        (evidence::PACKAGES, first_lines(evidence::PACKAGES)),
        (evidence::NODES, first_lines(evidence::NODES)),
    ];
    facts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

/// Returns the enabled sleep states of the first CPU, one line `PATH: LATENCY` for each, with the wake-up latency in us.
fn enabled_sleep_states(root: &Root) -> Known<String> {
    let mut paths = root.matches(evidence::SLEEPS)?;
    let state = |path: &str| path.rsplit_once('/').map(|(dir, _)| format!("{dir}/disable"));
    paths.retain(|path| state(path).and_then(|file| root.word(&file)).is_none_or(|word| word == "0"));
    root.first_lines(&paths)
}

/// Returns `LD_PRELOAD` if it is set, and the libraries mapped into this process, once each, in the
/// order of addresses.
fn mapped_libraries(root: &Root) -> Known<String> {
    let maps = root.read("/proc/self/maps")?;
    let environment = root.read("/proc/self/environ").map_err(|why| format!("/proc/self/environ: {why}"))?;
    let mut lines: Vec<&str> = environment.split('\0').filter(|e| e.starts_with("LD_PRELOAD=")).collect();
    let preload = lines.pop().and_then(|e| e.split_once('=')).filter(|(_, value)| !value.is_empty());
    let mut out = preload.map_or_else(String::new, |(_, value)| format!("LD_PRELOAD: {value}\n"));
    let mut libraries: Vec<&str> = Vec::new();
    for path in maps.lines().filter_map(|l| l.find('/').map(|at| &l[at..])) {
        let is_library = path.rsplit('/').next().is_some_and(|n| format!("{n}.").contains(".so."));
        if is_library && !libraries.contains(&path) {
            libraries.push(path);
            out += &format!("{path}\n");
        }
    }
    Ok(out)
}

#[test]
fn cpus_of_three_architectures_are_named() {
    assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Fast 9000\n"), Ok("Fast 9000".to_owned()));
    let arm = cpu_model("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n");
    assert_eq!(arm, Ok("CPU implementer 0x41 part 0xd0c".to_owned()));
    assert!(cpu_model("").is_err());
}

#[test]
fn a_machine_without_hints_is_bare_metal_only_on_x86() {
    let root = Root::at("/nonexistent-prefix".into());
    assert_eq!(virtual_by(&root, "flags : fpu hypervisor\n"), Ok(Some("unknown hypervisor".to_owned())));
    assert_eq!(virtual_by(&root, "flags : fpu sse\n"), Ok(None));
    assert!(virtual_by(&root, "Features : fp asimd\n").is_err());
}

#[test]
fn this_host_is_read() {
    let machine = read_host(&Root::real());
    println!("{machine:?}");
    assert!(machine.cpus > 0 && machine.kernel.starts_with("Linux") && machine.memory_bytes.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::put;

    #[test]
    fn power_saving_and_mapped_libraries_are_read() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let cpu = "sys/devices/system/cpu";
        put(dir.path(), &format!("{cpu}/cpu0/cpufreq/scaling_governor"), "powersave\n");
        put(dir.path(), &format!("{cpu}/cpu1/cpufreq/scaling_governor"), "performance\n");
        for (state, latency, off) in [(0, 0, 0), (1, 2, 0), (2, 200, 1)] {
            put(dir.path(), &format!("{cpu}/cpu0/cpuidle/state{state}/latency"), &format!("{latency}\n"));
            put(dir.path(), &format!("{cpu}/cpu0/cpuidle/state{state}/disable"), &format!("{off}\n"));
        }
        put(
            dir.path(),
            "proc/self/maps",
            "1000-2000 r-xp 0 08:01 7    /usr/lib/libeat my.so\n2000-3000 rw-p 0 08:01 7    /usr/lib/libeat my.so\n\
             3000-4000 r-xp 0 08:01 8    /lib/libc.so.6\n4000-5000 rw-p 0 00:00 0 [heap]\n5-6 r 0 0 9 /usr/bin/fathom\n",
        );
        put(dir.path(), "proc/self/environ", "HOME=/\0LD_PRELOAD=libeat my.so\0");
        let facts = read_host_facts(&Root::at(dir.path().to_owned()));
        let text = |name: &str| facts[name].clone().unwrap_or_else(|why| format!("! {why}"));
        let governors = text(evidence::GOVERNORS);
        assert!(governors.contains("cpu0/cpufreq/scaling_governor: powersave\n"), "{governors}");
        assert_eq!(governors.lines().count(), 2);
        let enabled_sleep_states = text(evidence::SLEEPS);
        assert!(
            enabled_sleep_states.ends_with("state1/latency: 2\n")
                && enabled_sleep_states.lines().count() == 2,
            "{enabled_sleep_states}"
        );
        assert_eq!(
            text(evidence::LIBRARIES),
            "LD_PRELOAD: libeat my.so\n/usr/lib/libeat my.so\n/lib/libc.so.6\n"
        );
        // This copy has no firmware tables and no cgroups, so there must be reasons instead of empty texts.
        assert!(facts[evidence::VENDOR].is_err() && facts[evidence::LIMITS].is_err());
        Ok(())
    }

    #[test]
    fn every_fact_is_a_text_or_a_reason() {
        let facts = read_host_facts(&Root::real());
        println!("{facts:#?}");
        assert_eq!(facts.len(), 11);
        assert!(facts[evidence::LIBRARIES].is_ok());
    }
}
