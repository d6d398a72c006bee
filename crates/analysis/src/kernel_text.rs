//! Numbers out of kernel text that several checks read.
//!
//! For: lines of a key and a number, pressure files, and lines `path: value` of a name with a `*`. Not for: thresholds, nor
//! text that only one check reads.

use crate::case::CaseRun;
use model::Known;
use model::evidence::{CPU_STAT, Moment, Snapshot};
use model::figures::ObservedCpu;

/// Fields of the first line that add up to all time: user, nice, system, idle, iowait, irq, softirq, steal. Those behind them
/// are part of the first two.
const FIELDS: usize = 8;
/// Which of them CPUs spend without work.
const IDLE: usize = 3;
const WAITING: usize = 4;

/// The number behind a key, in text with one key a line (`/proc/vmstat`, `cpu.stat`).
///
/// # Errors
/// That the key is not there, or has no number.
pub(crate) fn keyed(text: &str, key: &str) -> Known<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let value = lines.find_map(|mut words| (words.next() == Some(key)).then(|| words.next()));
    let value = value.flatten().ok_or_else(|| format!("the kernel shows no {key}"))?;
    value.parse().map_err(|_| format!("{key} is no number: '{value}'"))
}

/// The total of a line (`some`, `full`) of a pressure file, in us.
///
/// # Errors
/// That there is no such line, or no number in it.
pub(crate) fn pressure_us(text: &str, line: &str) -> Known<u64> {
    let words = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '));
    let total = words.and_then(|w| w.split_ascii_whitespace().find_map(|w| w.strip_prefix("total=")));
    total.and_then(|t| t.parse().ok()).ok_or_else(|| format!("a pressure file has no total of '{line}'"))
}

/// Paths and values of text that has a line `path: value` for each file.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|l| l.split_once(": ")).map(|(path, value)| (path.trim(), value.trim()))
}

/// Stolen ticks and all ticks of all CPUs since the machine started.
///
/// # Errors
/// That the kernel does not say.
pub(crate) fn stolen_ticks(snapshot: &Snapshot) -> Known<[u64; 2]> {
    let fields = cpu_ticks(snapshot.text("/proc/stat")?)?;
    let steal = fields.get(FIELDS - 1).ok_or("/proc/stat has no stolen time")?;
    Ok([*steal, fields.iter().fold(0, |sum, n| sum.saturating_add(*n))])
}

/// Ticks in which CPUs worked, neither idle nor waiting for I/O, and all ticks of all CPUs since the machine started.
///
/// # Errors
/// That the kernel does not say.
pub(crate) fn busy_ticks(snapshot: &Snapshot) -> Known<[u64; 2]> {
    let fields = cpu_ticks(snapshot.text("/proc/stat")?)?;
    let all = fields.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    let [idle, waiting] = [IDLE, WAITING].map(|at| fields.get(at).copied());
    let idle = idle.zip(waiting).ok_or("/proc/stat has no idle time")?;
    Ok([all.saturating_sub(idle.0.saturating_add(idle.1)), all])
}

/// The first line of `/proc/stat`.
pub(crate) fn cpu_ticks(text: &str) -> Known<Vec<u64>> {
    let line = text.lines().find_map(|l| l.strip_prefix("cpu "));
    let words = line.ok_or("/proc/stat has no line of all CPUs")?.split_ascii_whitespace();
    Ok(words.take(FIELDS).filter_map(|w| w.parse().ok()).collect())
}

/// The times of each CPU since the machine started; none where the kernel does not say.
pub(crate) fn each_cpu(snapshot: &Snapshot) -> Vec<ObservedCpu> {
    let text = snapshot.text("/proc/stat").unwrap_or_default();
    let cpu = |line: &str| {
        let (number, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let ticks: Vec<u64> =
            rest.split_ascii_whitespace().take(FIELDS).map_while(|w| w.parse().ok()).collect();
        // Guests' time is in that of programs already, and stolen time is nobody's here.
        let [user, nice, system, idle, waiting, irq, softirq, ..] = ticks[..] else { return None };
        let sum = |all: &[u64]| all.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let (user, kernel, idle) = (sum(&[user, nice]), sum(&[system, irq, softirq]), sum(&[idle, waiting]));
        Some(ObservedCpu { cpu: number.parse().ok()?, user, kernel, idle })
    };
    text.lines().filter_map(cpu).collect()
}

/// How often a quota paused our cgroup, and for how long in ns, all threads together, since it was made.
///
/// # Errors
/// That the kernel does not count it.
pub(crate) fn pauses(snapshot: &Snapshot) -> Known<(u64, u64)> {
    let text = snapshot.text(CPU_STAT)?;
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|l| l.trim().rsplit_once(' '));
        // A line may begin with the path of its file.
        lines.find(|(name, _)| name.split_ascii_whitespace().next_back() == Some(key))?.1.parse::<u64>().ok()
    };
    let missing = || format!("{CPU_STAT} counts no pauses");
    let ns = value("throttled_usec").map(|us| us.saturating_mul(1000)).or_else(|| value("throttled_time"));
    Ok((value("nr_throttled").ok_or_else(missing)?, ns.ok_or_else(missing)?))
}

/// How far a counter went from the start to the stop of a run.
///
/// # Errors
/// Why it could not be read at one of the two, or that it went backwards.
pub(crate) fn grown(ran: &CaseRun, file: &str, read: impl Fn(&str) -> Known<u64>) -> Known<u64> {
    let at = |moment| read(ran.at(moment)?.text(file)?);
    let (before, after) = (at(Moment::Start)?, at(Moment::Stop)?);
    after.checked_sub(before).ok_or_else(|| format!("{file}: a counter went backwards"))
}

#[test]
fn keys_pressures_and_entries_are_read_and_what_is_missing_is_no_zero() {
    assert_eq!(keyed("pswpin 7\npswpout 12\n", "pswpout"), Ok(12));
    assert!(keyed("pswpin 7\n", "pswp").is_err() && keyed("pswpin x\n", "pswpin").is_err());
    let psi =
        "some avg10=0.00 avg60=0.10 avg300=0.00 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
    assert_eq!((pressure_us(psi, "some"), pressure_us(psi, "full")), (Ok(4711), Ok(9)));
    assert!(pressure_us("", "some").is_err() && pressure_us("some total=x", "some").is_err());
    let lines: Vec<_> = entries("/sys/a: 1\nnothing\n/sys/b: two words\n").collect();
    assert_eq!(lines, [("/sys/a", "1"), ("/sys/b", "two words")]);
}

#[test]
fn each_cpu_has_its_times_and_lines_of_other_things_none() {
    let (files, targets) = (std::collections::BTreeMap::new(), Vec::new());
    let mut snapshot = Snapshot { moment: Moment::Start, at_ns: 0, files, targets };
    let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu11 1 0 0 1 0 0 0\ncpu2 x\nctxt 5\n";
    snapshot.files.insert("/proc/stat".into(), Ok(stat.into()));
    let all = each_cpu(&snapshot);
    let of = |cpu, user, kernel, idle| ObservedCpu { cpu, user, kernel, idle };
    assert_eq!(all, [of(0, 3, 16, 9), of(11, 1, 0, 1)]);
}
