//! ioping's own lines, to the letter: requests, statistics, raw numbers, JSON.
//!
//! For: text that whoever reads ioping's reads too. Not for: when it is printed, nor what fathom adds.
//!
//! Source: the manual of ioping 1.3, and what it prints.

use super::statistics::Statistics;
use serde_json::Value;

/// A unit, from the largest.
type Unit = (&'static str, u64);

const COUNTS: &[Unit] =
    &[("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("k", 1000), ("", 1)];
const SIZES: &[Unit] =
    &[("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const TIMES: &[Unit] = &[
    ("hour", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// A value in the largest unit that it has one of: whole where it divides it, else with two places, with one from ten on.
fn shown(value: u64, units: &[Unit]) -> String {
    let Some((name, unit)) = units.iter().find(|(_, unit)| value >= *unit).or(units.last()) else {
        return value.to_string();
    };
    let places = match () {
        () if value.is_multiple_of(*unit) => 0,
        () if value >= unit.saturating_mul(10) => 1,
        () => 2,
    };
    let number = format!("{:.places$}", value as f64 / *unit as f64);
    if name.is_empty() { number } else { format!("{number} {name}") }
}

pub(super) fn count(value: f64) -> String {
    shown(value as u64, COUNTS)
}

pub(super) fn size(value: f64) -> String {
    shown(value as u64, SIZES)
}

pub(super) fn time(ns: f64) -> String {
    shown(ns as u64, TIMES)
}

/// What a target is, as it stands in every line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) path: String,
    /// Type of its file system; `block` of a device.
    pub(super) kind: String,
    /// What that is mounted from; `device` of one.
    pub(super) device: String,
    /// Bytes of that.
    pub(super) bytes: u64,
}

impl Target {
    /// `/data (ext4 /dev/sda1 252.0 GiB`, which more may follow.
    fn words(&self) -> String {
        format!("{} ({} {} {}", self.path, self.kind, self.device, size(self.bytes as f64))
    }

    fn json(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        format!(
            "  \"target\": {{\n    \"path\": {},\n    \"fstype\": {},\n    \"device\": {},\n    \"device_size\": {}\n  }},\n",
            quoted(&self.path),
            quoted(&self.kind),
            quoted(&self.device),
            self.bytes
        )
    }
}

/// A request that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// From 1.
    pub(super) number: u64,
    pub(super) is_write: bool,
    pub(super) bytes: u64,
    pub(super) ns: u64,
    /// Whether it counts.
    pub(super) counts: bool,
    /// What is said of it: warmup, too fast, slow ...
    pub(super) notice: Option<&'static str>,
}

/// The line of a request.
pub(super) fn request(target: &Target, request: &Request) -> String {
    let arrows = if request.is_write { ">>>" } else { "<<<" };
    let notice = request.notice.map_or_else(String::new, |notice| format!(" ({notice})"));
    format!(
        "{} {arrows} {}): request={} time={}{notice}\n",
        size(request.bytes as f64),
        target.words(),
        request.number,
        time(request.ns as f64)
    )
}

/// Statistics at the end; `way` is ` read`, ` written`, or nothing where both were done.
pub(super) fn statistics(target: &Target, s: &Statistics, way: &str) -> String {
    let mut out = format!("\n--- {}) ioping statistics ---\n", target.words());
    out += &format!(
        "{} requests completed in {}, {}{way}, {} iops, {}/s\n",
        count(s.valid as f64),
        time(s.sum_ns),
        size(s.bytes()),
        count(s.iops()),
        size(s.speed())
    );
    for (number, name) in [(s.too_fast, "too fast"), (s.too_slow, "too slow")] {
        if number > 0 {
            out += &format!("{} {name}, ", count(number as f64));
        }
    }
    out += &format!(
        "generated {} requests in {}, {}, {} iops, {}/s\n",
        count(s.count as f64),
        time(s.load_ns as f64),
        size(s.load_bytes()),
        count(s.load_iops()),
        size(s.load_speed())
    );
    out + &format!(
        "min/avg/max/mdev = {} / {} / {} / {}\n",
        time(s.least_ns() as f64),
        time(s.mean_ns()),
        time(s.most_ns as f64),
        time(s.deviation_ns())
    )
}

/// Statistics as numbers alone.
pub(super) fn raw(s: &Statistics) -> String {
    format!(
        "{} {:.0} {:.0} {:.0} {} {:.0} {} {:.0} {} {}\n",
        s.valid,
        s.sum_ns,
        s.iops(),
        s.speed(),
        s.least_ns(),
        s.mean_ns(),
        s.most_ns,
        s.deviation_ns(),
        s.count,
        s.load_ns
    )
}

/// When something was printed: seconds since 1970, and the time of the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) seconds: String,
    pub(super) local: String,
}

fn json(moment: &Moment, target: &Target, rest: &str) -> String {
    format!(
        "{{\n  \"timestamp\": {},\n  \"localtime\": \"{}\",\n{}{rest}}}",
        moment.seconds,
        moment.local,
        target.json()
    )
}

/// A request as an object of JSON.
pub(super) fn json_request(moment: &Moment, target: &Target, request: &Request) -> String {
    let rest = format!(
        "  \"io\": {{\n    \"request\": {},\n    \"operation\": \"{}\",\n    \"size\": {},\n    \"time\": {},\n    \"ignored\": {}\n  }}\n",
        request.number,
        if request.is_write { "write" } else { "read" },
        request.bytes,
        request.ns,
        !request.counts
    );
    json(moment, target, &rest)
}

/// Statistics as an object of JSON.
pub(super) fn json_statistics(moment: &Moment, target: &Target, s: &Statistics) -> String {
    let rest = format!(
        "  \"stat\": {{\n    \"count\": {},\n    \"size\": {:.0},\n    \"time\": {:.0},\n    \"iops\": {:.6},\n    \"bps\": {:.0},\n    \"min\": {},\n    \"avg\": {:.0},\n    \"max\": {},\n    \"mdev\": {:.0}\n  }},\n  \"load\": {{\n    \"count\": {},\n    \"size\": {:.0},\n    \"time\": {},\n    \"iops\": {:.6},\n    \"bps\": {:.0}\n  }}\n",
        s.valid,
        s.bytes(),
        s.sum_ns,
        s.iops(),
        s.speed(),
        s.least_ns(),
        s.mean_ns(),
        s.most_ns,
        s.deviation_ns(),
        s.count,
        s.load_bytes(),
        s.load_ns,
        s.load_iops(),
        s.load_speed()
    );
    json(moment, target, &rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        let (path, kind, device) = ("/var/tmp".into(), "ext4".into(), "/dev/vda".into());
        Target { path, kind, device, bytes: 270_553_174_016 }
    }

    /// As ioping 1.3 printed them.
    #[test]
    fn the_lines_are_those_of_ioping() {
        let one = Request {
            number: 1,
            is_write: false,
            bytes: 4096,
            ns: 100_600,
            counts: false,
            notice: Some("warmup"),
        };
        assert_eq!(
            request(&target(), &one),
            "4 KiB <<< /var/tmp (ext4 /dev/vda 252.0 GiB): request=1 time=100.6 us (warmup)\n"
        );
        let mut two = Statistics::new(4096, 0);
        two.count = 1;
        for ns in [180_400, 217_800] {
            two.add_valid(ns);
            two.count += 1;
        }
        two.finish(200_400_000);
        assert_eq!(
            statistics(&target(), &two, " read"),
            "\n--- /var/tmp (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n\
             2 requests completed in 398.2 us, 8 KiB read, 5.02 k iops, 19.6 MiB/s\n\
             generated 3 requests in 200.4 ms, 12 KiB, 14 iops, 59.9 KiB/s\n\
             min/avg/max/mdev = 180.4 us / 199.1 us / 217.8 us / 18.7 us\n"
        );
        assert_eq!(raw(&two), "2 398200 5023 20572577 180400 199100 217800 18700 3 200400000\n");
        assert_eq!(
            (time(2040.0), time(381.0), time(0.0), size(0.0)),
            ("2.04 us".into(), "381 ns".into(), "0 ns".into(), "0 B".into())
        );
    }

    #[test]
    fn json_is_json() {
        let moment = Moment { seconds: "1795458376.421568".into(), local: "2026-11-23T18:26:16+0000".into() };
        let odd = Target { path: "/a\"b".into(), ..target() };
        let one = Request { number: 2, is_write: true, bytes: 4096, ns: 218_986, counts: true, notice: None };
        let text = format!(
            "[{},{}]",
            json_request(&moment, &odd, &one),
            json_statistics(&moment, &odd, &Statistics::new(4096, 0))
        );
        let read: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!(
            (read[0]["io"]["time"].as_u64(), read[0]["target"]["path"].as_str()),
            (Some(218_986), Some("/a\"b"))
        );
        assert_eq!(
            (read[1]["stat"]["count"].as_u64(), read[1]["load"]["iops"].as_f64()),
            (Some(0), Some(0.0))
        );
    }
}
