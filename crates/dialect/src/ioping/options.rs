//! The table of ioping's options: letter, name, what becomes of it.
//!
//! For: one line per option. Not for: what several mean together.

use super::{Ask, Opened, Options, Order, Print, value};

/// What becomes of an option.
pub(super) enum How {
    /// It has no value.
    Flag(fn(&mut Options)),
    /// It has one.
    Value(fn(&mut Options, &str) -> Result<(), String>),
    /// It is not done, for this reason, with what to type instead behind a semicolon.
    Refused(&'static str),
}

/// A line of the table.
pub(super) struct Known {
    pub(super) letter: char,
    pub(super) name: &'static str,
    /// A value that it takes.
    pub(super) example: &'static str,
    pub(super) how: How,
}

impl How {
    pub(super) fn has_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }
}

const fn flag(letter: char, name: &'static str, apply: fn(&mut Options)) -> Known {
    Known { letter, name, example: "", how: How::Flag(apply) }
}

const fn valued(
    letter: char,
    name: &'static str,
    example: &'static str,
    apply: fn(&mut Options, &str) -> Result<(), String>,
) -> Known {
    Known { letter, name, example, how: How::Value(apply) }
}

const fn refused(letter: char, name: &'static str, why: &'static str) -> Known {
    Known { letter, name, example: "", how: How::Refused(why) }
}

/// Every option of ioping 1.3, and those that came after it.
pub(super) const OPTIONS: &[Known] = &[
    flag('h', "help", |s| s.instead = Some(Ask::Help)),
    flag('v', "version", |s| s.instead = Some(Ask::Version)),
    refused(
        'A',
        "async",
        "one request is in flight either way; type fathom run --engine libaio --depth 1 --rw randread",
    ),
    refused(
        'U',
        "uring",
        "one request is in flight either way; type fathom run --engine io_uring --depth 1 --rw randread",
    ),
    refused(
        'N',
        "nowait",
        "what would wait is refused by the kernel and not measured; type fathom run --engine vsync:nowait",
    ),
    refused('H', "hipri", "the device is polled; type fathom run --engine vsync:hipri --cache direct"),
    refused('E', "ignore-error", "what fails is the answer; leave it out"),
    refused('I', "time", "the time of each request is in JSON; type -J"),
    flag('C', "cached", |s| s.ping.cached = true),
    flag('D', "direct", |s| s.ping.direct = true),
    flag('G', "read-write", |s| {
        s.both = true;
        s.writes += 1;
    }),
    flag('L', "linear", |s| s.ping.order = Order::Linear),
    flag('W', "write", |s| s.writes += 1),
    flag('Y', "sync", |s| s.ping.opened = Opened::Sync),
    flag('y', "dsync", |s| s.ping.opened = Opened::Dsync),
    flag('R', "rapid", |s| s.rapid = true),
    flag('k', "keep", |s| s.ping.keep = true),
    flag('q', "quiet", |s| print(s, Print::Quiet)),
    flag('B', "batch", |s| print(s, Print::Batch)),
    flag('J', "json", |s| print(s, Print::Json)),
    valued('a', "warmup", "-a 1", |s, v| value::count(v).map(|n| s.warmup = Some(n))),
    valued('b', "burst", "-b 10", |s, v| value::count(v).map(|n| s.ping.burst = n)),
    valued('c', "count", "-c 10", |s, v| value::count(v).map(|n| s.ping.count = Some(n).filter(|n| *n > 0))),
    valued('e', "entropy", "-e 7", |s, v| value::count(v).map(|n| s.ping.seed = Some(n).filter(|n| *n > 0))),
    valued('i', "interval", "-i 200ms", |s, v| value::time_ns(v).map(|ns| s.interval_ns = Some(ns))),
    valued('l', "speed-limit", "-l 1m", |s, v| {
        value::bytes(v).map(|n| s.speed_bytes = Some(n).filter(|n| *n > 0))
    }),
    valued('r', "rate-limit", "-r 100", |s, v| value::rate(v).map(|n| s.rate = Some(n))),
    valued('s', "size", "-s 4k", |s, v| value::bytes(v).map(|n| s.request_bytes = Some(n))),
    valued('S', "work-size", "-S 64m", |s, v| {
        value::bytes(v).map(|n| s.ping.work_bytes = Some(n).filter(|n| *n > 0))
    }),
    valued('o', "work-offset", "-o 1g", |s, v| value::bytes(v).map(|n| s.ping.offset_bytes = n)),
    valued('w', "work-time", "-w 10s", |s, v| {
        value::time_ns(v).map(|ns| s.ping.time_ns = Some(ns).filter(|n| *n > 0))
    }),
    valued('t', "min-time", "-t 10us", |s, v| value::time_ns(v).map(|ns| s.ping.least_ns = ns)),
    valued('T', "max-time", "-T 100ms", |s, v| value::time_ns(v).map(|ns| s.ping.most_ns = Some(ns))),
    valued('p', "print-count", "-p 100", |s, v| {
        value::count(v).map(|n| s.ping.every_count = Some(n).filter(|n| *n > 0))
    }),
    valued('P', "print-interval", "-P 10s", |s, v| {
        value::time_ns(v).map(|ns| s.ping.every_ns = Some(ns).filter(|n| *n > 0))
    }),
];

/// Of several ways to print the one counts that leaves most of ioping's lines out.
fn print(said: &mut Options, wanted: Print) {
    said.ping.print = said.ping.print.max(wanted);
}

/// An option by its long name or a beginning of it, behind one dash or two, with its value behind `=`; `None` where letters are meant.
pub(super) fn long(word: &str) -> Result<Option<(&'static Known, Option<&str>)>, String> {
    let with_two = word.strip_prefix("--");
    let text = with_two.unwrap_or(&word[1..]);
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    // One letter behind one dash is that letter.
    if with_two.is_none() && name.chars().count() <= 1 {
        return Ok(None);
    }
    let exact = OPTIONS.iter().find(|o| o.name == name);
    let like: Vec<&'static Known> =
        OPTIONS.iter().filter(|o| !name.is_empty() && o.name.starts_with(name)).collect();
    let only = match like.as_slice() {
        [option] => Some(*option),
        _ => None,
    };
    match (exact.or(only), like.as_slice()) {
        (Some(option), _) => {
            if value.is_some() && !option.how.has_value() {
                return Err(format!("'{word}' has no value; type -{}", option.letter));
            }
            Ok(Some((option, value)))
        }
        (None, []) if with_two.is_some() => {
            Err(format!("ioping has no option '{word}'; `fathom ioping -h` lists them"))
        }
        (None, []) => Ok(None),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|o| o.name).collect();
            Err(format!("'{word}' may be -{}; type one of them", names.join(" or -")))
        }
    }
}

#[test]
fn every_option_has_its_own_letter_and_name() {
    for (at, one) in OPTIONS.iter().enumerate() {
        assert!(OPTIONS[..at].iter().all(|o| o.letter != one.letter && o.name != one.name), "{}", one.name);
        assert!(one.how.has_value() != one.example.is_empty(), "{}", one.name);
        if let How::Refused(why) = one.how {
            assert!(why.contains("; "), "{}: no cure", one.name);
        }
    }
}
