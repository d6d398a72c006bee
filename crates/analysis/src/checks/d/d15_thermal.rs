//! D15: a drive at the temperature at which it slows down. Compares the sensors of the drives with the limits
//! that the drives report.

use crate::checks::d::d18_virtual::is_virtual;
use crate::checks::prelude::*;
use crate::figures::kernel_text::sensors;
use model::evidence::TEMPERATURES;

/// Distance from the limit at which a drive is hot, in thousandths of a degree. Sensors show whole degrees with a
/// delay, and drives begin to slow down just below their maximum.
const NEAR_MILLIDEGREES: i64 = 2_000;

pub(super) const CHECK: Check = Check {
    id: CheckId::D15,
    name: "THERMAL",
    belief: "the drive was cool enough to sustain this rate",
    reads: "`temp1_input` and `temp1_max` of the drives' sensors in `/sys/class/hwmon/` (drivers `nvme` and \
            `drivetemp`), at start and stop of each run.",
    formula: formula!(
        "Biased if a sensor comes within {near} degrees of `temp1_max`, the limit that the drive itself \
         reports. A virtual disk has no temperature and is not checked.",
        near = NEAR_MILLIDEGREES / 1000
    ),
    provoke: "A drive without heat sink, `fathom run --rw write --bs 1m --depth 32 --time 10m --size 64g \
              DIR`, and `watch sensors` in another terminal. Drives without a sensor driver need `modprobe \
              drivetemp` (SATA).",
    fix: "Cool the drive (air, a heat sink), rest between runs, and measure again.",
    accept: "Accept it if the drive will be as warm in use: then this is its sustained speed.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| heated(NVME, 83_850)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture::honest().record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let hottest = match hottest(case) {
        // A passed-through drive has a sensor. A simulated drive has none.
        Ok(None) | Err(_) if is_virtual(case) => return Ok(Answer::DoesNotApply),
        hottest => hottest?,
    };
    let Sensor { name, reading, limit, run, at_s } =
        hottest.ok_or("no drive reports both its temperature and its limit")?;
    let numbers = evidence([
        ("degrees", reading as f64 / 1e3),
        ("degrees_max", limit as f64 / 1e3),
        ("run", f64::from(run)),
        ("at_s", at_s),
    ]);
    if limit.saturating_sub(reading) > NEAR_MILLIDEGREES {
        return holds("The drives stayed below the temperature at which they throttle.", numbers);
    }
    finding!(
        Severity::Biased,
        numbers,
        "The drive's sensor {name} reached {:.0} degrees of its limit of {:.0}: near this limit the drive \
         throttles.",
        reading as f64 / 1e3,
        limit as f64 / 1e3
    )
}

/// The sensor closest to its limit.
struct Sensor {
    /// Directory and driver.
    name: String,
    /// Reading and limit, in thousandths of a degree.
    reading: i64,
    limit: i64,
    /// Index of the run and second of its window at which the sensor was read. Drives are only read at the start
    /// and stop.
    run: u32,
    at_s: f64,
}

/// Returns the sensor closest to its limit, or `None` if no sensor has a limit.
fn hottest(case: &Case) -> Known<Option<Sensor>> {
    case.need_run()?;
    let mut hottest: Option<Sensor> = None;
    let samples = case.runs.iter().flat_map(|r| [(r, Moment::Start), (r, Moment::Stop)]);
    for (ran, moment) in samples {
        for (place, sensor) in sensors(ran.at(moment)?.text(TEMPERATURES)?) {
            let (Some(reading), Some(limit)) = (sensor.now, sensor.most.filter(|m| *m > 0)) else { continue };
            let headroom = |h: &Sensor| h.limit.saturating_sub(h.reading);
            if hottest.as_ref().is_none_or(|h| limit.saturating_sub(reading) < headroom(h)) {
                let kind = sensor.name.map_or_else(String::new, |n| format!(" ({n})"));
                let window_s = ran.stream.window_ns as f64 / 1e9;
                let at_s = if moment == Moment::Start { 0.0 } else { window_s };
                let name = format!("{place}{kind}");
                hottest = Some(Sensor { name, reading, limit, run: ran.run.start.repeat, at_s });
            }
        }
    }
    Ok(hottest)
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A Samsung 970 EVO Plus, as the driver `nvme` shows it, and a CPU that is no drive.
#[cfg(test)]
const NVME: &str = "/sys/class/hwmon/hwmon1/name: coretemp
/sys/class/hwmon/hwmon1/temp1_crit: 100000
/sys/class/hwmon/hwmon1/temp1_input: 99000
/sys/class/hwmon/hwmon1/temp1_max: 100000
/sys/class/hwmon/hwmon3/name: nvme
/sys/class/hwmon/hwmon3/temp1_alarm: 0
/sys/class/hwmon/hwmon3/temp1_crit: 84850
/sys/class/hwmon/hwmon3/temp1_input: NOW
/sys/class/hwmon/hwmon3/temp1_max: 84850
/sys/class/hwmon/hwmon3/temp1_min: -273150
";
/// A SATA drive as `drivetemp` shows it, without names.
#[cfg(test)]
const SATA: &str = "/sys/class/hwmon/hwmon0/temp1_crit: 70000
/sys/class/hwmon/hwmon0/temp1_input: NOW
/sys/class/hwmon/hwmon0/temp1_lcrit: 0
/sys/class/hwmon/hwmon0/temp1_max: 60000
";

/// A record whose last stop has this temperature.
#[cfg(test)]
fn heated(text: &str, millidegrees: i64) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert(TEMPERATURES.into(), Ok(text.replace("NOW", "41850")));
    }
    let last = record.runs.last_mut().and_then(|r| r.evidence.last_mut()).unwrap();
    last.files.insert(TEMPERATURES.into(), Ok(text.replace("NOW", &millidegrees.to_string())));
    record
}

#[test]
fn a_drive_near_its_limit_biases() {
    assert_eq!(CHECK.severity(&heated(NVME, 82_850)), Some(Severity::Biased));
    let Ok(Answer::Finding(found)) = CHECK.answer(&heated(NVME, 82_850)) else { panic!("nothing was found") };
    assert_eq!((found.evidence["run"], found.evidence["at_s"]), (4.0, 1.0), "the end of the last run");
    assert!(matches!(CHECK.answer(&heated(NVME, 81_850)), Ok(Answer::Holds(..))));
    assert_eq!(CHECK.severity(&heated(SATA, 61_000)), Some(Severity::Biased));
    assert!(matches!(CHECK.answer(&heated(SATA, 55_000)), Ok(Answer::Holds(..))));
}

#[test]
fn missing_sensors_are_not_checked_and_virtual_disks_do_not_apply() {
    assert!(CHECK.answer(&Fixture::honest().record()).is_err());
    assert!(CHECK.answer(&heated("/sys/class/hwmon/hwmon0/temp1_input: NOW\n", 99_000)).is_err());
    let guest = Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() };
    assert_eq!(CHECK.answer(&guest.record()), Ok(Answer::DoesNotApply));
    let mut through = heated(NVME, 84_000);
    through.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!(CHECK.severity(&through), Some(Severity::Biased), "a passed-through drive");
}
