//! Facts: kernel text that does not change while one measures, and that a result may depend on.
//!
//! For: limits, CPU frequencies and sleep, firmware names, libraries. Not for: what changes (that is `snapshot`), nor for
//! understanding it. Read before fathom enters a cgroup of its own, so that the limits are the user's.

use crate::root::Root;
use crate::{async_io, limits};
use model::{Known, evidence as kept};
use std::collections::BTreeMap;

/// Reads all facts, each with its text or the reason why there is none.
pub(crate) fn read_host_facts(root: &Root) -> BTreeMap<String, Known<String>> {
    let facts = [
        (kept::LIMITS, limits::read_limits(root)),
        (kept::IO_URING, Ok(async_io::io_uring(root).err().map_or_else(String::new, |why| why.to_string()))),
        (kept::GOVERNORS, root.matches(kept::GOVERNORS).and_then(|paths| root.first_lines(&paths))),
        (kept::SLEEPS, sleeps(root)),
        (kept::VENDOR, root.read(kept::VENDOR)),
        (kept::PRODUCT, root.read(kept::PRODUCT)),
        (kept::LIBRARIES, libraries(root)),
        (kept::PAGE_REPORTING, root.matches(kept::PAGE_REPORTING).and_then(|paths| root.first_lines(&paths))),
        (kept::CORES, root.matches(kept::CORES).and_then(|paths| root.first_lines(&paths))),
        (kept::PACKAGES, root.matches(kept::PACKAGES).and_then(|paths| root.first_lines(&paths))),
        (kept::NODES, root.matches(kept::NODES).and_then(|paths| root.first_lines(&paths))),
    ];
    facts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

/// The depths of sleep that somebody has left on.
fn sleeps(root: &Root) -> Known<String> {
    let mut paths = root.matches(kept::SLEEPS)?;
    let state = |path: &str| path.rsplit_once('/').map(|(dir, _)| format!("{dir}/disable"));
    paths.retain(|path| state(path).and_then(|file| root.word(&file)).is_none_or(|word| word == "0"));
    root.first_lines(&paths)
}

/// What is mapped into this process, once each, in the order of addresses.
fn libraries(root: &Root) -> Known<String> {
    let maps = root.read("/proc/self/maps")?;
    let environment = root.read("/proc/self/environ").map_err(|why| format!("/proc/self/environ: {why}"))?;
    let mut lines: Vec<&str> = environment.split('\0').filter(|e| e.starts_with("LD_PRELOAD=")).collect();
    let preload = lines.pop().and_then(|e| e.split_once('=')).filter(|(_, value)| !value.is_empty());
    let mut out = preload.map_or_else(String::new, |(_, value)| format!("LD_PRELOAD: {value}\n"));
    let mut seen: Vec<&str> = Vec::new();
    for path in maps.lines().filter_map(|l| l.find('/').map(|at| &l[at..])) {
        let library = path.rsplit('/').next().is_some_and(|n| format!("{n}.").contains(".so."));
        if library && !seen.contains(&path) {
            seen.push(path);
            out += &format!("{path}\n");
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::put;

    #[test]
    fn a_laptop_tells_how_its_cpus_save_power_and_what_is_mapped() -> std::io::Result<()> {
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
        let governors = text(kept::GOVERNORS);
        assert!(governors.contains("cpu0/cpufreq/scaling_governor: powersave\n"), "{governors}");
        assert_eq!(governors.lines().count(), 2);
        let sleeps = text(kept::SLEEPS);
        assert!(sleeps.ends_with("state1/latency: 2\n") && sleeps.lines().count() == 2, "{sleeps}");
        assert_eq!(
            text(kept::LIBRARIES),
            "LD_PRELOAD: libeat my.so\n/usr/lib/libeat my.so\n/lib/libc.so.6\n"
        );
        // No firmware tables and no cgroups in this copy: reasons, not emptiness.
        assert!(facts[kept::VENDOR].is_err() && facts[kept::LIMITS].is_err());
        Ok(())
    }

    #[test]
    fn every_fact_of_this_machine_is_a_text_or_a_reason() {
        let facts = read_host_facts(&Root::real());
        println!("{facts:#?}");
        assert_eq!(facts.len(), 11);
        assert!(facts[kept::LIBRARIES].is_ok());
    }
}
