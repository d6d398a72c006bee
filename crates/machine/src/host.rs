//! The host: kernel, CPU, memory, clock source, and whether it is virtual.
//!
//! For: facts that a result depends on, whatever the target. Not for: the target.

use crate::root::Root;
use model::Known;
use model::evidence::meminfo_bytes;
use model::machine::Machine;

/// Looks at the host. The cgroup and the places are left for the caller to fill.
pub fn look(root: &Root) -> Machine {
    let uname = rustix::system::uname();
    let words = [uname.sysname(), uname.release(), uname.version()].map(|w| w.to_string_lossy().into_owned());
    Machine {
        host: uname.nodename().to_string_lossy().into_owned(),
        kernel: words.join(" "),
        cpu: cpu(root),
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: root.read("/proc/meminfo").and_then(|t| meminfo_bytes(&t, "MemTotal")),
        virtual_by: virtual_by(root),
        clocksource: root
            .read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .map(|t| t.trim().to_owned()),
        user_id: rustix::process::geteuid().as_raw(),
        cgroup: Err("not entered".into()),
        places: Vec::new(),
    }
}

fn cpu(root: &Root) -> Known<String> {
    let text = root.read("/proc/cpuinfo")?;
    let line = text.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split_once(':'));
    line.map(|(_, name)| name.trim().to_owned()).ok_or_else(|| "/proc/cpuinfo names no model".into())
}

/// The firmware's own name where it is a hypervisor's, or the CPU's hypervisor flag.
fn virtual_by(root: &Root) -> Known<Option<String>> {
    /// Words that makers of virtual machines put where a board's maker stands.
    const MAKERS: [&str; 12] = [
        "QEMU",
        "KVM",
        "VMware",
        "VirtualBox",
        "Xen",
        "Microsoft Corporation",
        "Amazon EC2",
        "Google",
        "Parallels",
        "Bochs",
        "OpenStack",
        "Firecracker",
    ];
    let dmi = |file: &str| root.word(format!("/sys/class/dmi/id/{file}"));
    let firmware: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(dmi).collect();
    let flags = root.read("/proc/cpuinfo");
    let flagged =
        flags.as_ref().is_ok_and(|t| t.lines().any(|l| l.starts_with("flags") && l.contains(" hypervisor")));
    let named = firmware.iter().any(|f| MAKERS.iter().any(|m| f.contains(m)));
    // Real Microsoft and Google boards exist; there the CPU has no such flag.
    if flagged && named {
        return Ok(Some(firmware.join(" ")));
    }
    if flagged {
        return Ok(Some("a hypervisor (the CPU says so)".into()));
    }
    if let Some(kind) = root.word("/sys/hypervisor/type") {
        return Ok(Some(kind));
    }
    flags.map(|_| None)
}

#[test]
fn this_host_is_described() {
    let machine = look(&Root::real());
    assert!(machine.kernel.starts_with("Linux"));
    assert!(machine.memory_bytes.is_ok_and(|b| b > 1 << 20));
}

#[test]
fn a_host_that_shows_nothing_gives_reasons() {
    let machine = look(&Root::at("/nonexistent"));
    assert!(machine.cpu.is_err() && machine.memory_bytes.is_err() && machine.virtual_by.is_err());
}
