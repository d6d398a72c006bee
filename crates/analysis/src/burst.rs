//! Bursts: what storage takes fast before it falls to the rate that lasts.
//!
//! For: bytes written until the cliff and the rates on both sides of it, with what else is known of the drive's state. Not for:
//! whether there is a cliff (`change`), nor on which side of the device its cause is (E02).

use crate::case::{Case, CaseRun};
use crate::checks::{Evidence, evidence};
use crate::findings::CaseAnswers;
use crate::run_series::{courses, rows_of};
use crate::steadiness::steps;
use crate::thermometers::sensors;
use model::evidence::{BlockStat, Moment};
use model::job::Kind;
use model::kernel_files::TEMPERATURES;
use model::machine::{Layer, LayerKind};
use model::record::Interval;
use model::report::Deduction;
use model::units::{show_bytes, show_rate};
use stats::change::Step;
use stats::series::Series;

/// What a run wrote before and after its cliff.
struct Burst<'a> {
    ran: &'a CaseRun<'a>,
    /// Bytes from the run's first operation on, its warm-up included: the device makes no difference.
    bytes: f64,
    /// Seconds of the measured window until the cliff.
    until_s: f64,
    /// Bytes per second right before it.
    before: f64,
    /// Bytes per second on each level behind the cliff, in order.
    after: Vec<f64>,
}

/// The burst of every result that has one.
pub(crate) fn bursts(answered: &[CaseAnswers]) -> Vec<Deduction> {
    answered.iter().filter(|a| !a.is_void()).filter_map(|a| of_case(&a.case)).collect()
}

fn of_case(case: &Case) -> Option<Deduction> {
    let streams = &case.job.phases.get(case.phase)?.streams;
    // A device does not know streams: what others wrote meanwhile filled it too.
    if streams.len() > 1 || case.stream.load_changes() || !case.does(Kind::Write) || !case.has_storage() {
        return None;
    }
    let courses = courses(case).ok()?;
    let of_run = |(ran, course)| burst(case, ran, course, steps(course).steps());
    let all: Vec<Burst> = case.runs.iter().zip(&courses).filter_map(of_run).collect();
    // The first began with the most room: later runs find what earlier ones left.
    let first = all.first()?;
    let mb = |rate: &f64| rate / 1e6;
    let then: Vec<String> = first.after.iter().map(|r| format!("then {} MB/s", show_rate(mb(r)))).collect();
    let through = if case.stream.cache.is_direct() { "" } else { ", through the page cache" };
    let numbers = evidence([
        ("burst_bytes", first.bytes),
        ("until_s", first.until_s),
        ("before_mb_per_s", mb(&first.before)),
        ("after_mb_per_s", first.after.last().map_or(f64::NAN, mb)),
        ("runs_with_a_burst", all.len() as f64),
    ]);
    let (context, more) = context(case, first);
    let sentence = format!(
        "{}: {} at {} MB/s, {}{through}{}. {context}",
        case.name,
        show_bytes(first.bytes as u64),
        show_rate(mb(&first.before)),
        then.join(", "),
        others(case, &all),
    );
    Some(Deduction { name: "burst".into(), sentence, evidence: numbers.into_iter().chain(more).collect() })
}

/// What a run wrote until it first fell, and on each level behind that. `None` where it did not fall, or ended no lower.
fn burst<'a>(case: &Case, ran: &'a CaseRun, course: &Series, steps: &[Step]) -> Option<Burst<'a>> {
    let fall = steps.iter().position(|s| s.after < s.before)?;
    let edge = |at: usize| course.from_ns + course.step_ns * at as f64;
    let mut edges = vec![edge(0)];
    edges.extend(steps.iter().map(|s| edge(s.at)));
    edges.push(edge(course.rates.len()));
    let levels: Vec<[f64; 2]> =
        edges.windows(2).map(|e| [written(ran, e[0], e[1]), (e[1] - e[0]) / 1e9]).collect();
    let (head, tail) = levels.split_at(fall + 1);
    let rate = |[bytes, seconds]: &[f64; 2]| bytes / seconds;
    let (before, after) = (rate(head.last()?), tail.iter().map(rate).collect::<Vec<_>>());
    let last = *after.last()?;
    // All that was handed over outside the window was warm-up, but for what the time behind it took.
    let inside: f64 = levels.iter().map(|l| l[0]).sum();
    let behind = last * case.job.phases.get(case.phase)?.cooldown_ns as f64 / 1e9;
    let issued = ran.stream.issued.get(&Kind::Write).map_or(0.0, |i| i.bytes as f64);
    let warm_up = (issued - inside - behind).max(0.0);
    let bytes = warm_up + head.iter().map(|l| l[0]).sum::<f64>();
    let until_s = head.iter().map(|l| l[1]).sum();
    (last < before).then_some(Burst { ran, bytes, until_s, before, after })
}

/// Bytes written between two times in ns since the workers began.
fn written(ran: &CaseRun, from_ns: f64, to_ns: f64) -> f64 {
    let of = |row: &Interval| {
        let (a, b) = (row.start_ns as f64, row.end_ns as f64);
        let inside = (b.min(to_ns) - a.max(from_ns)).max(0.0) / (b - a);
        row.cells.get(&Kind::Write).map_or(0.0, |c| c.1 as f64 * inside)
    };
    rows_of(ran).map(of).sum()
}

/// ` (run 1; 3 of 5 runs fell so, after 5.10 GiB to 5.80 GiB)`; nothing where there is one run.
fn others(case: &Case, all: &[Burst]) -> String {
    let (runs, Some(first)) = (case.runs.len(), all.first()) else { return String::new() };
    if runs == 1 {
        return String::new();
    }
    let number = first.ran.run.start.repeat.saturating_add(1);
    let (least, most) = all.iter().fold((f64::MAX, 0.0_f64), |(l, m), b| (l.min(b.bytes), m.max(b.bytes)));
    let span = match all.len() {
        1 => String::new(),
        _ => format!(", after {} to {}", show_bytes(least as u64), show_bytes(most as u64)),
    };
    format!(" (run {number}; {} of {runs} runs fell so{span})", all.len())
}

/// What else is known of the drive's state in that run: heat, and what had been written to it.
fn context(case: &Case, burst: &Burst) -> (String, Evidence) {
    let mut numbers = Evidence::new();
    let heat = match heat(burst.ran) {
        Some([start, stop]) => {
            numbers.extend(evidence([("degrees_at_start", start), ("degrees_at_stop", stop)]));
            format!("The drive had {start:.0} degrees at the start of the run and {stop:.0} at its end")
        }
        None => "No drive here shows its temperature".to_owned(),
    };
    let wear = match written_before(case, burst.ran) {
        Some((bytes, names, since)) => {
            numbers.insert("device_written_before_bytes".into(), bytes as f64);
            format!("{} had been written to {names} since {since}", show_bytes(bytes))
        }
        None => "what had been written to the device is not known".to_owned(),
    };
    (
        format!("{heat}; {wear}; how worn it is the kernel does not show (smartctl -a asks the drive)."),
        numbers,
    )
}

/// Degrees of the drive that was hottest in the end, at start and stop of a run.
fn heat(ran: &CaseRun) -> Option<[f64; 2]> {
    let at = |moment| Some(sensors(ran.at(moment).ok()?.text(TEMPERATURES).ok()?));
    let (start, stop) = (at(Moment::Start)?, at(Moment::Stop)?);
    let both = stop.iter().filter_map(|(place, sensor)| Some([start.get(place)?.now?, sensor.now?]));
    both.max_by_key(|[_, stop]| *stop).map(|pair| pair.map(|t| t as f64 / 1e3))
}

/// Bytes that the target's own devices had been given when the run began, with their names and since when they are counted. Not those of a
/// disk below a loop device, which holds much else.
fn written_before(case: &Case, ran: &CaseRun) -> Option<(u64, String, &'static str)> {
    let start = ran.at(Moment::Start).ok()?;
    let of = |layer: &&Layer| Some(BlockStat::parse(start.text(&layer.stat_file).ok()?).ok()?.write.bytes);
    let devices = case.shared().ok()?;
    let bytes = devices.iter().map(of).try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)))?;
    let names: Vec<&str> = devices.iter().map(|l| l.name.as_str()).collect();
    let from_start = devices.iter().all(|l| l.kind == LayerKind::Disk);
    Some((bytes, names.join(" and "), if from_start { "the machine started" } else { "it was set up" }))
}

#[cfg(test)]
use crate::checks::shaped;
#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

/// Ten seconds of 4 KiB writes at 20,000 a second until 60 % of the time, then at 5,000, after a warm-up of 2,000.
#[cfg(test)]
fn falling(runs: u32) -> Record {
    let fixture = Fixture { runs, ops: 10_000, ..Fixture::honest_write() };
    let mut record = shaped(&fixture, (100, 10), |_, t| if t < 0.6 { 20_000.0 } else { 5_000.0 });
    for issued in record.runs.iter_mut().flat_map(|r| &mut r.end.as_mut().unwrap().streams) {
        let window = issued.kinds[&Kind::Write].bytes;
        issued.issued.get_mut(&Kind::Write).unwrap().bytes = window + 2_000 * 4096;
    }
    record
}

#[cfg(test)]
fn deductions(record: &Record) -> Vec<Deduction> {
    crate::case::cases(record).iter().filter_map(of_case).collect()
}

#[test]
fn a_cliff_of_writes_is_a_burst_of_so_many_bytes_and_two_rates() {
    let all = deductions(&falling(1));
    let [burst] = all.as_slice() else { panic!("{all:?}") };
    let known = 4096.0 * (2_000.0 + 20_000.0 * 6.0);
    assert!((burst.evidence["burst_bytes"] / known - 1.0).abs() < 0.01, "{burst:?}");
    assert!((burst.evidence["before_mb_per_s"] - 81.92).abs() < 0.1, "{burst:?}");
    assert!((burst.evidence["after_mb_per_s"] - 20.48).abs() < 0.1, "{burst:?}");
    assert!(
        burst.sentence.starts_with("RND4K Q32T1 write: 476.56 MiB at 81.9 MB/s, then 20.5 MB/s. "),
        "{}",
        burst.sentence
    );
    assert!(
        burst.sentence.contains(
            "No drive here shows its temperature; 48 GiB had been written to vda since the machine started"
        ),
        "{}",
        burst.sentence
    );
}

#[test]
fn the_first_run_is_told_and_how_many_others_fell() {
    let mut record = falling(3);
    // The second stayed on its level.
    let flat = shaped(&Fixture { runs: 3, ..Fixture::honest_write() }, (100, 10), |_, _| 20_000.0);
    record.runs[1].intervals.clone_from(&flat.runs[1].intervals);
    let all = deductions(&record);
    assert!(
        all[0].sentence.contains("(run 1; 2 of 3 runs fell so, after 476.56 MiB to 476.56 MiB)"),
        "{all:?}"
    );
}

#[test]
fn a_second_cliff_is_a_third_rate_and_a_recovery_is_no_burst() {
    let shape = |rate: fn(f64) -> f64| {
        deductions(&shaped(&Fixture { runs: 1, ..Fixture::honest_write() }, (100, 10), |_, t| rate(t)))
    };
    let twice = shape(|t| {
        if t < 0.4 {
            20_000.0
        } else if t < 0.7 {
            8_000.0
        } else {
            2_000.0
        }
    });
    assert!(twice[0].sentence.contains("at 81.9 MB/s, then 32.8 MB/s, then 8.19 MB/s. "), "{twice:?}");
    assert!((twice[0].evidence["until_s"] - 4.0).abs() < 1e-6, "{twice:?}");
    assert!((twice[0].evidence["after_mb_per_s"] - 8.192).abs() < 0.1, "{twice:?}");
    let back = shape(|t| if (0.4..0.7).contains(&t) { 2_000.0 } else { 20_000.0 });
    assert_eq!(back, []);
}

#[test]
fn on_a_loop_device_its_own_bytes_are_quoted_and_not_those_of_the_disk_below() {
    let mut record =
        shaped(&Fixture { runs: 1, leaf_share: Some(1.0), ..Fixture::honest_write() }, (100, 10), |_, t| {
            if t < 0.6 { 20_000.0 } else { 5_000.0 }
        });
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = snapshot.files["/sys/block/loop0/stat"].clone().unwrap();
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        // 1 GiB in sectors.
        words[6] = (words[6].parse::<u64>().unwrap() % 1_000 + (1 << 21)).to_string();
        snapshot.files.insert("/sys/block/loop0/stat".into(), Ok(words.join(" ")));
    }
    let all = deductions(&record);
    assert!(all[0].sentence.contains("1.00 GiB had been written to loop0 since it was set up"), "{all:?}");
}

#[test]
fn heat_is_told_where_the_drive_shows_it() {
    let mut record = falling(1);
    for (snapshot, degrees) in record.runs[0].evidence.iter_mut().zip([38_000, 71_000]) {
        let text =
            format!("/sys/class/hwmon/hwmon3/name: nvme\n/sys/class/hwmon/hwmon3/temp1_input: {degrees}\n");
        snapshot.files.insert(TEMPERATURES.into(), Ok(text));
    }
    let all = deductions(&record);
    assert!(all[0].sentence.contains("38 degrees at the start of the run and 71 at its end"), "{all:?}");
}

#[test]
fn reads_a_rise_and_a_level_are_no_burst() {
    let shape =
        |fixture: &Fixture, rate: fn(f64) -> f64| deductions(&shaped(fixture, (100, 10), |_, t| rate(t)));
    let fall = |t| if t < 0.6 { 20_000.0 } else { 5_000.0 };
    let rise = |t| if t < 0.6 { 5_000.0 } else { 20_000.0 };
    let write = Fixture { runs: 1, ..Fixture::honest_write() };
    assert_eq!(shape(&Fixture { runs: 1, ..Fixture::honest() }, fall), []);
    assert_eq!(shape(&write, rise), []);
    assert_eq!(shape(&write, |_| 20_000.0), []);
    assert_eq!(shape(&write, fall).len(), 1);
}
