//! Who else is here: what the device, the CPUs and memory did while fathom only watched.
//!
//! For: load that is not ours, and names beside it where they can be seen. Not for: limits that are set.

use super::observation::Observation;
use machine::others::Busy;
use model::Known;
use model::check_id::CheckId;
use model::diagnosis::Look;
use model::evidence::{BlockFlow, BlockStat, meminfo_bytes};
use model::finding::Severity;
use model::kernel_files::HOUSEKEEPERS;
use model::units::{show_bytes, show_rate, show_share};

/// Requests of others in flight on average from which a measurement is not alone: a twentieth of the time of a depth of one
/// (D01). By the time that requests took, so that it means the same on a spinning disk and on flash.
const FOREIGN_FROM: f64 = 0.05;
/// Share of all CPUs from which workers will have to wait for one (D08).
const CPU_FROM: f64 = 0.1;
/// Share of CPU time that the hypervisor kept for others, from which it is said, and from which no time can be trusted (D10).
const STEAL_FROM: f64 = 0.01;
const STEAL_VOID_FROM: f64 = 0.1;
/// Bytes dirty or in write-back from which they will be written during a run; an idle machine always has some (D02).
const DIRTY_FROM: u64 = 64 << 20;
/// Share of the time in which somebody waited for memory (D14), in percent as the kernel gives it.
const PRESSURE_FROM: f64 = 1.0;
/// Share of memory that should be available.
const AVAILABLE_FROM: f64 = 0.05;
/// Names of kernel threads that exist only while they work, or parts of them.
const AT_WORK: [&str; 5] = ["ext4lazyinit", "btrfs-balance", "_resync", "_recovery", "_reshape"];
/// Names told.
const MOST_NAMES: usize = 3;

pub(super) fn check_other_load(seen: &Observation) -> Vec<Look> {
    let mut looks = Vec::new();
    if !seen.place().layers.is_empty() {
        looks.push(requests(seen));
    }
    looks.extend([cpu(seen), steal(seen), dirty(seen), housekeeping(seen), memory(seen)]);
    looks
}

/// Traffic of all leaves together.
fn requests(seen: &Observation) -> Look {
    const ABOUT: &str = "requests of others";
    let flow = match traffic(seen) {
        Ok(flow) => flow,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D01),
    };
    let seconds = seconds(seen);
    let in_flight = flow.ms as f64 / 1000.0 / seconds;
    let sentence = format!(
        "{} a second, {} a second, in {} s of watching.",
        show_rate(flow.ios as f64 / seconds),
        show_bytes((flow.bytes as f64 / seconds) as u64),
        show_rate(seconds)
    );
    if in_flight < FOREIGN_FROM {
        return Look::ok(ABOUT, sentence);
    }
    let sentence = format!("{sentence} {}", who(seen, "moved", |b| b.io_bytes.unwrap_or(0), show_bytes));
    Look::finding(ABOUT, Severity::Biased, sentence.trim())
        .cure("stop them or wait for them; `iotop -oP` watches on")
        .check(CheckId::D01)
}

fn traffic(seen: &Observation) -> Known<BlockFlow> {
    let mut sum = BlockFlow::default();
    for leaf in seen.place().leaves() {
        if let Some(why) = leaf.blind() {
            return Err(why);
        }
        sum = sum.plus(&BlockStat::between(&seen.start, &seen.end, &leaf.stat_file)?.total());
    }
    Ok(sum)
}

fn seconds(seen: &Observation) -> f64 {
    (seen.watched_ns() as f64 / 1e9).max(1e-9)
}

/// The busiest by one measure, in words; empty where nobody stands out.
fn who(seen: &Observation, did: &str, by: fn(&Busy) -> u64, show: fn(u64) -> String) -> String {
    let Ok(busy) = &seen.busy else { return String::new() };
    let mut most: Vec<&Busy> = busy.iter().filter(|b| by(b) > 0).collect();
    most.sort_by_key(|b| std::cmp::Reverse(by(b)));
    let names: Vec<String> =
        most.iter().take(MOST_NAMES).map(|b| format!("{} ({}) {}", b.name, b.pid, show(by(b)))).collect();
    // Some are hidden even from root, by a security module; saying so to root helps nobody.
    let hidden = seen.hidden > 0 && did == "moved" && seen.machine.user_id != 0;
    match (names.is_empty(), hidden) {
        (false, false) => format!("Most {did}: {}.", names.join(", ")),
        (false, true) => {
            format!("Of those that can be seen most {did}: {}; root sees all.", names.join(", "))
        }
        (true, true) => "Who it is only root can see.".into(),
        (true, false) => String::new(),
    }
}

/// CPU time of the whole machine between the snapshots, ticks: total, idle, stolen.
fn cpu_ticks(seen: &Observation) -> Known<[u64; 3]> {
    let parse = |text: &str| -> Known<[u64; 3]> {
        let line = text.lines().find_map(|l| l.strip_prefix("cpu "));
        let line = line.ok_or("/proc/stat has no line of all CPUs")?;
        // user nice system idle iowait irq softirq steal; guests are in user already.
        let numbers: Vec<u64> = line.split_ascii_whitespace().take(8).map_while(|w| w.parse().ok()).collect();
        let [.., _, _, _, idle, iowait, _, _, steal] = numbers.as_slice() else {
            return Err("the line of all CPUs in /proc/stat is short".into());
        };
        let total = numbers.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
        Ok([total, idle.saturating_add(*iowait), *steal])
    };
    let (a, b) = (parse(seen.start.text("/proc/stat")?)?, parse(seen.end.text("/proc/stat")?)?);
    let since = |i: usize| b[i].saturating_sub(a[i]);
    if since(0) == 0 {
        return Err("/proc/stat did not move".into());
    }
    Ok([since(0), since(1), since(2)])
}

fn cpu(seen: &Observation) -> Look {
    const ABOUT: &str = "CPU";
    let [total, idle, steal] = match cpu_ticks(seen) {
        Ok(ticks) => ticks,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D08),
    };
    let busy = total.saturating_sub(idle).saturating_sub(steal) as f64 / total as f64;
    let sentence = format!("{} of all CPU time was used.", show_share(busy));
    if busy < CPU_FROM {
        return Look::ok(ABOUT, sentence);
    }
    let sentence = format!("{sentence} {}", who(seen, "used", |b| b.cpu_ms, |ms| format!("{ms} ms")));
    Look::finding(ABOUT, Severity::Biased, sentence.trim())
        .cure("stop them or wait for them; `top` watches on")
        .check(CheckId::D08)
}

fn steal(seen: &Observation) -> Look {
    const ABOUT: &str = "stolen CPU time";
    let [total, _, steal] = match cpu_ticks(seen) {
        Ok(ticks) => ticks,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D10),
    };
    let share = steal as f64 / total as f64;
    let sentence = format!("The hypervisor kept {} for others.", show_share(share));
    if share < STEAL_FROM {
        return Look::ok(ABOUT, sentence);
    }
    let severity = if share < STEAL_VOID_FROM { Severity::Biased } else { Severity::Void };
    Look::finding(ABOUT, severity, sentence)
        .cure("measure when the host is less busy, or on CPUs that are not shared")
        .check(CheckId::D10)
}

fn dirty(seen: &Observation) -> Look {
    const ABOUT: &str = "waiting to be written";
    let bytes = || -> Known<u64> {
        let text = seen.end.text("/proc/meminfo")?;
        Ok(meminfo_bytes(text, "Dirty")?.saturating_add(meminfo_bytes(text, "Writeback")?))
    };
    match bytes() {
        Err(why) => Look::unknown(ABOUT, why).check(CheckId::D02),
        Ok(bytes) if bytes < DIRTY_FROM => {
            Look::ok(ABOUT, format!("{} on the whole machine.", show_bytes(bytes)))
        }
        Ok(bytes) => Look::finding(
            ABOUT,
            Severity::Biased,
            format!("{} on the whole machine will be written while you measure.", show_bytes(bytes)),
        )
        .cure("sync")
        .check(CheckId::D02),
    }
}

fn housekeeping(seen: &Observation) -> Look {
    const ABOUT: &str = "housekeeping";
    let text = match seen.end.text(HOUSEKEEPERS) {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D03),
    };
    let names = text.lines().filter_map(|l| l.split_once(": ")).map(|(_, name)| name.trim());
    match names.into_iter().find(|name| AT_WORK.iter().any(|w| name.contains(w))) {
        Some(name) => Look::finding(ABOUT, Severity::Biased, format!("The kernel's thread {name} is at work."))
            .cure("wait until it is gone: `ps -e | grep ...`; a new ext4 is done at once with mkfs.ext4 -E lazy_itable_init=0,lazy_journal_init=0".replace("...", name))
            .check(CheckId::D03),
        None => Look::ok(ABOUT, "No thread of the kernel is initialising, balancing or rebuilding."),
    }
}

fn memory(seen: &Observation) -> Look {
    const ABOUT: &str = "memory";
    let swapped = || -> Known<u64> {
        let count = |text: &str, key: &str| -> Known<u64> {
            let value = text.lines().find_map(|l| l.strip_prefix(key)?.trim().parse::<u64>().ok());
            value.ok_or_else(|| format!("/proc/vmstat has no {key}"))
        };
        let sum =
            |text: &str| Ok::<_, String>(count(text, "pswpin ")?.saturating_add(count(text, "pswpout ")?));
        Ok(sum(seen.end.text("/proc/vmstat")?)?.saturating_sub(sum(seen.start.text("/proc/vmstat")?)?))
    };
    let available = || -> Known<f64> {
        let text = seen.end.text("/proc/meminfo")?;
        Ok(meminfo_bytes(text, "MemAvailable")? as f64 / meminfo_bytes(text, "MemTotal")?.max(1) as f64)
    };
    let finding = |sentence: String| {
        Look::finding(ABOUT, Severity::Biased, sentence)
            .cure("stop what needs it; `ps aux --sort -rss | head` lists")
            .check(CheckId::D14)
    };
    match (swapped(), available()) {
        (Ok(pages), _) if pages > 0 => {
            finding(format!("{pages} pages were swapped in {} s.", show_rate(seconds(seen))))
        }
        (_, Ok(share)) if share < AVAILABLE_FROM => {
            finding(format!("Only {} of it is available.", show_share(share)))
        }
        (swapped, available) => match (pressure(seen), swapped, available) {
            (Ok(percent), ..) if percent > PRESSURE_FROM => finding(format!(
                "In the last 10 s somebody waited for it {} of the time.",
                show_share(percent / 100.0)
            )),
            (Ok(_), Ok(_), Ok(share)) => {
                Look::ok(ABOUT, format!("{} of it is available, and nobody waits for it.", show_share(share)))
            }
            (Err(why), ..) | (_, Err(why), _) | (_, _, Err(why)) => {
                Look::unknown(ABOUT, why).check(CheckId::D14)
            }
        },
    }
}

/// Percent of the last 10 s in which some task waited for memory.
fn pressure(seen: &Observation) -> Known<f64> {
    const FILE: &str = "/proc/pressure/memory";
    let text = seen.end.text(FILE)?;
    let some = text.lines().find_map(|l| l.strip_prefix("some avg10="));
    let value = some.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<f64>().ok());
    value.ok_or_else(|| format!("{FILE} has no average of 10 s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation::tests::in_order;
    use model::finding::Outcome;

    fn answer(seen: &Observation, about: &str) -> Look {
        let look = check_other_load(seen).into_iter().find(|l| l.about == about);
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    /// The answer where a file says this after the pause; `/proc/stat` says `cpu  100 0 100 10000 0 0 0 0` before it.
    fn with(file: &str, text: &str, about: &str) -> Look {
        let mut seen = in_order();
        seen.start.files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0 0 0\n".into()));
        seen.end.files.insert(file.into(), Ok(text.into()));
        answer(&seen, about)
    }

    #[test]
    fn nobody_here_is_in_order_and_nothing_to_see_is_not_checked() {
        let mut seen = in_order();
        seen.start.files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0 0 0\n".into()));
        assert!(check_other_load(&seen).iter().all(|l| l.outcome == Outcome::Holds), "{:#?}", check_other_load(&seen));
        (seen.start.files, seen.end.files) = Default::default();
        assert!(check_other_load(&seen).iter().all(|l| l.outcome == Outcome::NotChecked), "{:#?}", check_other_load(&seen));
    }

    #[test]
    fn requests_count_by_their_time_and_are_named_where_that_can_be_seen() {
        let stat = "/sys/class/block/sda/stat";
        // 149 ms of 3 s are below a twentieth, 151 above.
        let at = |ms: u64| format!("1090 0 8720 {} 500 0 4000 20 0 44 60 0 0 0 0 9 11", 40 + ms);
        assert_eq!(with(stat, &at(149), "requests of others").outcome, Outcome::Holds);
        let look = with(stat, &at(151), "requests of others");
        assert_eq!(look.outcome, Outcome::Finding);
        assert!(look.sentence.starts_with("30.0 a second"), "{}", look.sentence);
        let mut seen = in_order();
        seen.end.files.insert(stat.into(), Ok(at(3000)));
        let busy = |name: &str, io_bytes| Busy { pid: 7, name: name.into(), cpu_ms: 1, io_bytes };
        seen.busy = Ok(vec![busy("cp", Some(4096)), busy("dd", Some(8192)), busy("top", Some(0))]);
        let named = answer(&seen, "requests of others").sentence;
        assert!(named.ends_with("Most moved: dd (7) 8 KiB, cp (7) 4 KiB."), "{named}");
        (seen.busy, seen.hidden, seen.machine.user_id) = (Ok(vec![busy("dd", None)]), 3, 1000);
        assert!(answer(&seen, "requests of others").sentence.contains("only root"));
        seen.machine.places[0].layers[1].queue.insert("iostats".into(), "0".into());
        assert_eq!(answer(&seen, "requests of others").outcome, Outcome::NotChecked);
    }

    #[test]
    fn cpu_time_and_stolen_time_are_found_from_their_threshold_on() {
        let stat = "/proc/stat";
        assert_eq!(with(stat, "cpu  50 0 49 901 0 0 0 0\n", "CPU").outcome, Outcome::Holds);
        assert_eq!(with(stat, "cpu  50 0 50 900 0 0 0 0\n", "CPU").outcome, Outcome::Finding);
        let steal =
            |n: u64| with(stat, &format!("cpu  0 0 0 {} 0 0 0 {n}\n", 1000 - n), "stolen CPU time").severity;
        assert_eq!((steal(9), steal(10), steal(100)), (None, Some(Severity::Biased), Some(Severity::Void)));
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
    fn dirty_memory_housekeepers_and_want_of_memory_are_found() {
        let dirty =
            |kib: u64| format!("MemTotal: 1000 kB\nMemAvailable: 900 kB\nDirty: {kib} kB\nWriteback: 0 kB\n");
        assert_eq!(with("/proc/meminfo", &dirty(65_535), "waiting to be written").outcome, Outcome::Holds);
        assert_eq!(with("/proc/meminfo", &dirty(65_536), "waiting to be written").check, Some(CheckId::D02));
        assert_eq!(with(HOUSEKEEPERS, "9: ext4lazyinit\n", "housekeeping").check, Some(CheckId::D03));
        assert_eq!(with(HOUSEKEEPERS, "9: md3_resync\n", "housekeeping").check, Some(CheckId::D03));
        assert_eq!(with(HOUSEKEEPERS, "", "housekeeping").outcome, Outcome::Holds);
        assert_eq!(with("/proc/vmstat", "pswpin 6\npswpout 7\n", "memory").outcome, Outcome::Finding);
        let psi = |avg: &str| {
            with("/proc/pressure/memory", &format!("some avg10={avg} avg60=0\n"), "memory").outcome
        };
        assert_eq!(
            (psi("1.00"), psi("1.01"), psi("x")),
            (Outcome::Holds, Outcome::Finding, Outcome::NotChecked)
        );
    }
}
