//! The hardware of the devices at the bottom: their link and their temperature.
//!
//! For: what slows a drive down from outside. Not for: settings of its queue.

use super::observation::Observation;
use model::check_id::CheckId;
use model::diagnosis::Look;
use model::finding::Severity;
use model::kernel_files::TEMPERATURES;
use model::machine::Layer;

/// Thousandths of a degree below a drive's own limit from which it may slow itself down (D15).
const HOT_WITHIN: i64 = 2000;

pub(super) fn check_device_health(seen: &Observation) -> Vec<Look> {
    let leaves = seen.leaves();
    if leaves.is_empty() || seen.place().ram.is_some() {
        return Vec::new();
    }
    let mut looks: Vec<Look> = leaves.into_iter().filter_map(link).collect();
    looks.push(temperature(seen));
    looks
}

/// Speed and width of the link against what it could do; nothing where the device hangs on none.
fn link(layer: &Layer) -> Option<Look> {
    let about = format!("link of {}", layer.name);
    let file = |name: &str| layer.device.get(name).map(|v| v.trim()).filter(|v| !v.is_empty());
    let pairs = [("current_link_speed", "max_link_speed"), ("current_link_width", "max_link_width")];
    let known: Vec<(&str, &str)> = pairs.iter().filter_map(|(now, most)| file(now).zip(file(most))).collect();
    if known.is_empty() {
        return None;
    }
    if let Some((now, most)) = known.iter().find(|(now, most)| amount(now) < amount(most)) {
        let slow = Look::finding(&about, Severity::Biased, format!("It runs at {now} of {most}."));
        let cure = "reseat the card or move it to another slot; `lspci -vv` shows what each end can do";
        return Some(slow.cure(cure).check(CheckId::D16));
    }
    let words: Vec<&str> = known.iter().map(|(now, _)| *now).collect();
    Some(Look::ok(&about, format!("At its best ({}).", words.join(", width "))))
}

/// The number that a text such as `8.0 GT/s PCIe` begins with.
fn amount(text: &str) -> f64 {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().unwrap_or(0.0)
}

fn temperature(seen: &Observation) -> Look {
    const ABOUT: &str = "temperature";
    let text = match seen.end.text(TEMPERATURES) {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D15),
    };
    let lines = || text.lines().filter_map(|l| l.rsplit_once(": "));
    let value =
        |path: &str| lines().find(|(p, _)| *p == path).and_then(|(_, v)| v.trim().parse::<i64>().ok());
    let sensors: Vec<(&str, i64)> = lines()
        .filter_map(|(path, now)| Some((path.strip_suffix("_input")?, now.trim().parse::<i64>().ok()?)))
        .collect();
    let limit = |sensor: &str| value(&format!("{sensor}_max")).or_else(|| value(&format!("{sensor}_crit")));
    let known: Vec<(i64, i64)> = sensors.iter().filter_map(|(s, now)| Some((*now, limit(s)?))).collect();
    let hot = known.iter().find(|(now, most)| *now >= most.saturating_sub(HOT_WITHIN));
    match hot {
        _ if known.is_empty() => {
            Look::unknown(ABOUT, "no drive here tells its own and its limit").check(CheckId::D15)
        }
        Some((now, most)) => Look::finding(
            ABOUT,
            Severity::Biased,
            format!(
                "{} of at most {} degrees: a drive slows itself down at its limit.",
                now / 1000,
                most / 1000
            ),
        )
        .cure("let it cool down, and look after its air")
        .check(CheckId::D15),
        None => Look::ok(ABOUT, "Every drive that tells is below its limit."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation::tests::in_order;
    use model::finding::Outcome;

    fn answer(seen: &Observation, about: &str) -> Look {
        let look = check_device_health(seen).into_iter().find(|l| l.about == about);
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    #[test]
    fn a_slow_link_is_found_and_no_link_is_no_question() {
        let mut seen = in_order();
        assert!(check_device_health(&seen).iter().all(|l| l.outcome == Outcome::Holds && !l.about.starts_with("link")));
        let disk = &mut seen.machine.places[0].layers[1];
        for (file, value) in [("current_link_speed", "8.0 GT/s PCIe"), ("max_link_speed", "16.0 GT/s PCIe")] {
            disk.device.insert(file.into(), value.into());
        }
        assert_eq!(answer(&seen, "link of sda").check, Some(CheckId::D16));
        seen.machine.places[0].layers[1].device.insert("current_link_speed".into(), "16.0 GT/s PCIe".into());
        assert_eq!(answer(&seen, "link of sda").outcome, Outcome::Holds);
    }

    #[test]
    fn a_hot_drive_is_found_and_no_sensor_is_no_pass() {
        let mut seen = in_order();
        let mut at = |text: &str| {
            seen.end.files.insert(TEMPERATURES.into(), Ok(text.into()));
            answer(&seen, "temperature").outcome
        };
        assert_eq!(at("/h/temp1_input: 78000\n/h/temp1_max: 80000\n"), Outcome::Finding);
        assert_eq!(at("/h/temp1_input: 77999\n/h/temp1_max: 80000\n"), Outcome::Holds);
        assert_eq!(at("/h/temp1_input: 78000\n"), Outcome::NotChecked);
        assert_eq!(
            at("/h/temp1_input: -9223372036854775808\n/h/temp1_max: -9223372036854775808\n"),
            Outcome::Finding
        );
    }
}
