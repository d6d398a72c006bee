//! The drives' own thermometers, out of the kernel's text.
//!
//! For: which sensors are those of drives, and what they show. Not for: whether that is too much (D15).

use crate::kernel_text::entries;
use std::collections::BTreeMap;

/// Drivers of sensors of drives, where the text names them.
const DRIVES: &[&str] = &["nvme", "drivetemp"];

/// A sensor in thousandths of a degree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sensor {
    /// Its driver, where the text names it.
    pub(crate) name: Option<String>,
    /// What it shows.
    pub(crate) now: Option<i64>,
    /// The limit that the drive itself gives.
    pub(crate) most: Option<i64>,
}

/// The sensors of drives, by their place: `hwmon3`.
pub(crate) fn sensors(text: &str) -> BTreeMap<String, Sensor> {
    let mut out: BTreeMap<String, Sensor> = BTreeMap::new();
    for (path, value) in entries(text) {
        let mut parts = path.rsplit('/');
        let (Some(file), Some(place)) = (parts.next(), parts.next()) else { continue };
        let sensor = out.entry(place.to_owned()).or_default();
        match file {
            "name" => sensor.name = Some(value.to_owned()),
            "temp1_input" => sensor.now = value.parse().ok(),
            "temp1_max" => sensor.most = value.parse().ok(),
            _ => {}
        }
    }
    // Where the text does not name its sensors, whoever read them left only drives in.
    out.retain(|_, s| s.name.as_deref().is_none_or(|n| DRIVES.contains(&n)));
    out
}

#[test]
fn drives_are_told_from_cpus_and_what_is_no_number_is_unknown() {
    let text = "/sys/class/hwmon/hwmon1/name: coretemp\n/sys/class/hwmon/hwmon1/temp1_input: 99000\n\
                /sys/class/hwmon/hwmon3/name: nvme\n/sys/class/hwmon/hwmon3/temp1_input: 41850\n\
                /sys/class/hwmon/hwmon3/temp1_max: hot\n";
    let seen = sensors(text);
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["hwmon3"]);
    assert_eq!((seen["hwmon3"].now, seen["hwmon3"].most), (Some(41_850), None));
}
