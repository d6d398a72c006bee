//! ioping's language: its options, as ioping 1.3 has them.
//!
//! For: requests that mean what the options mean; what is not done here is refused by its name, with what to type instead. Not for: the
//! requests, nor ioping's lines.
//!
//! Source: the manual of ioping 1.3.

mod options;
mod value;

use crate::line::Line;
use crate::trouble::Trouble;
use options::{How, Known, OPTIONS};

/// ns where times count in seconds.
const SECOND_NS: u64 = 1_000_000_000;
/// How long `-R` lasts.
const RAPID_NS: u64 = 3 * SECOND_NS;
/// Bytes of a request: at random, and one behind the other.
const RANDOM_BYTES: u64 = 4 << 10;
const LINEAR_BYTES: u64 = 256 << 10;
/// Bytes of the file that is made in a directory: usually, and for `-R`.
const WORK_BYTES: u64 = 1 << 20;
const RAPID_WORK_BYTES: u64 = 64 << 20;
/// Largest request in bytes: it is held in memory.
const MAX_REQUEST_BYTES: u64 = 1 << 30;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To print what can be typed.
    Help,
    /// To print which program this is.
    Version,
    /// To make requests.
    Ping(Box<Ping>),
}

/// Which way requests go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// `pread` alone.
    #[default]
    Read,
    /// `pwrite`, and `fdatasync` behind it unless `-C` is said.
    Write,
    /// A write, a read, and so on.
    Both,
}

/// Where requests go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Anywhere in the working set.
    #[default]
    Random,
    /// One behind the other.
    Linear,
}

/// How what was written gets to the disk, by the flag that the target is opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opened {
    /// Without a flag.
    #[default]
    Plain,
    /// `O_SYNC`.
    Sync,
    /// `O_DSYNC`.
    Dsync,
}

/// How the answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Print {
    /// A line for each request, and statistics.
    #[default]
    Lines,
    /// Statistics alone.
    Quiet,
    /// Numbers alone, at the end.
    Batch,
    /// An array of objects, one for each request and one for the statistics.
    Json,
}

/// Requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ping {
    /// Directory, file or device.
    pub target: String,
    /// Which way they go.
    pub way: Direction,
    /// How often a write was asked for: on a file or device three times.
    pub insisted: u32,
    /// Where they go.
    pub order: Order,
    /// Through the page cache as it is.
    pub cached: bool,
    /// `O_DIRECT`.
    pub direct: bool,
    /// A flag for writes.
    pub opened: Opened,
    /// The file in a directory is kept, and used again.
    pub keep: bool,
    /// Bytes of each.
    pub request_bytes: u64,
    /// Bytes that they stay in; all of a file or device where nothing was said.
    pub work_bytes: Option<u64>,
    /// Bytes of a file that is made.
    pub made_bytes: u64,
    /// First byte.
    pub offset_bytes: u64,
    /// After how many it ends.
    pub count: Option<u64>,
    /// After how long it ends.
    pub time_ns: Option<u64>,
    /// From one to the next.
    pub interval_ns: u64,
    /// So many without a pause.
    pub burst: u64,
    /// So many of the first do not count.
    pub warmup: u64,
    /// Faster ones do not count.
    pub least_ns: u64,
    /// Slower ones do not count.
    pub most_ns: Option<u64>,
    /// Numbers after so many that count.
    pub every_count: Option<u64>,
    /// Numbers every so often.
    pub every_ns: Option<u64>,
    /// Seed of offsets and data.
    pub seed: Option<u64>,
    /// What is printed.
    pub print: Print,
    /// What may be overwritten: fathom's own, `--destroy=NAME`.
    pub destroy: Vec<String>,
}

/// Reads a command line: the words behind `ioping`.
///
/// # Errors
/// Everything that is wrong with it, each with its word.
pub fn read(words: &[String]) -> Result<Ask, Trouble> {
    let mut reader = Reader { line: Line::new(words), said: Options::default(), targets: Vec::new() };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1).map(String::as_str);
        if word == "--" {
            reader.targets.extend(words.iter().skip(at + 1).cloned());
            break;
        }
        if word == "-" || !word.starts_with('-') {
            reader.targets.push(word.clone());
        } else if reader.option(at, word, next) {
            at += 1;
        }
        if let Some(asked) = reader.said.instead.take() {
            return Ok(asked);
        }
        at += 1;
    }
    let ping = reader.together(words.len());
    reader.line.unless_wrong(Ask::Ping(Box::new(ping)))
}

/// What was said, option by option.
#[derive(Default)]
struct Options {
    ping: Ping,
    instead: Option<Ask>,
    rapid: bool,
    writes: u32,
    both: bool,
    interval_ns: Option<u64>,
    request_bytes: Option<u64>,
    speed_bytes: Option<u64>,
    rate: Option<f64>,
    warmup: Option<u64>,
}

struct Reader {
    line: Line,
    said: Options,
    targets: Vec<String>,
}

impl Reader {
    /// Takes a word of options; whether the next word was its value.
    fn option(&mut self, at: usize, word: &str, next: Option<&str>) -> bool {
        if let Some(name) = word.strip_prefix("--destroy=") {
            self.said.ping.destroy.push(name.into());
            return false;
        }
        match options::long(word) {
            Ok(Some((option, value))) => return self.take(at, option, value, next),
            Ok(None) => {}
            Err(why) => {
                self.line.wrong(at, why);
                return false;
            }
        }
        let letters = &word[1..];
        for (place, letter) in letters.char_indices() {
            let Some(option) = OPTIONS.iter().find(|o| o.letter == letter) else {
                self.line.wrong(at, format!("ioping has no option '{word}'; `fathom ioping -h` lists them"));
                return false;
            };
            if option.how.has_value() {
                let rest = &letters[place + letter.len_utf8()..];
                return self.take(at, option, Some(rest).filter(|rest| !rest.is_empty()), next);
            }
            self.take(at, option, None, None);
        }
        false
    }

    fn take(&mut self, at: usize, option: &'static Known, value: Option<&str>, next: Option<&str>) -> bool {
        let apply = match option.how {
            How::Refused(why) => {
                self.line.wrong(at, format!("-{} ({}) is not done here: {why}", option.letter, option.name));
                return false;
            }
            How::Flag(apply) => {
                apply(&mut self.said);
                return false;
            }
            How::Value(apply) => apply,
        };
        let (word, value, taken) = match (value, next) {
            (Some(value), _) => (at, value, false),
            (None, Some(next)) => (at + 1, next, true),
            (None, None) => {
                self.line.wrong(
                    at,
                    format!("-{} ({}) needs a value; type one behind it", option.letter, option.name),
                );
                return false;
            }
        };
        if let Err(why) = apply(&mut self.said, value) {
            self.line.wrong(word, format!("{why}; type -{} as {}", option.letter, option.example));
        }
        taken
    }

    /// What the options mean together.
    fn together(&mut self, end: usize) -> Ping {
        let said = std::mem::take(&mut self.said);
        let mut ping = said.ping;
        match self.targets.as_slice() {
            [target] => ping.target.clone_from(target),
            [] => self.line.wrong(end, "no destination is named; name a directory, a file or a device"),
            _ => self.line.wrong(end, "more than one destination is named; name one"),
        }
        let usual = if ping.order == Order::Linear { LINEAR_BYTES } else { RANDOM_BYTES };
        ping.request_bytes = said.request_bytes.unwrap_or(usual);
        if !(1..=MAX_REQUEST_BYTES).contains(&ping.request_bytes) {
            self.line.wrong(
                end,
                format!(
                    "a request has 1 byte at least and {MAX_REQUEST_BYTES} at most; type -s with that many"
                ),
            );
        }
        let made = if said.rapid { RAPID_WORK_BYTES } else { WORK_BYTES };
        // The first request wakes what sleeps.
        ping.warmup = said.warmup.unwrap_or(1);
        ping.made_bytes = ping.work_bytes.unwrap_or(made.max(ping.request_bytes));
        let is_limited = said.rapid || said.speed_bytes.is_some() || said.rate.is_some();
        ping.interval_ns = said.interval_ns.unwrap_or(if is_limited { 0 } else { SECOND_NS });
        let each = ping.burst.max(1) as f64 * SECOND_NS as f64;
        let by_speed = said.speed_bytes.map(|speed| ping.request_bytes as f64 / speed as f64 * each);
        let by_rate = said.rate.map(|rate| each / rate);
        for limit in [by_speed, by_rate].into_iter().flatten().filter(|ns| ns.is_finite()) {
            ping.interval_ns = ping.interval_ns.max(limit as u64);
        }
        if said.rapid {
            ping.time_ns = ping.time_ns.or(Some(RAPID_NS));
        }
        (ping.insisted, ping.way) = (
            said.writes,
            match (said.both, said.writes) {
                (true, _) => Direction::Both,
                (false, 0) => Direction::Read,
                (false, _) => Direction::Write,
            },
        );
        if said.rapid && ping.print == Print::Lines {
            ping.print = Print::Quiet;
        }
        ping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> Result<Ask, Trouble> {
        read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn ping(line: &str) -> Ping {
        match ask(line) {
            Ok(Ask::Ping(ping)) => *ping,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_mean_what_the_manual_says() {
        let plain = ping(".");
        assert_eq!((plain.request_bytes, plain.made_bytes, plain.interval_ns), (4096, 1 << 20, SECOND_NS));
        assert_eq!((plain.way, plain.count, plain.warmup), (Direction::Read, None, 1));
        let rapid = ping("-RL /dev/sda");
        assert_eq!((rapid.request_bytes, rapid.time_ns, rapid.interval_ns), (256 << 10, Some(RAPID_NS), 0));
        assert_eq!((rapid.print, rapid.made_bytes), (Print::Quiet, 64 << 20));
        let long =
            ping("-c 10 -size=1m --interval 200ms -S16m -WWW -q -work-time 1/2 -T 5ms -r 100 -b 2 /tmp");
        assert_eq!((long.count, long.request_bytes, long.interval_ns), (Some(10), 1 << 20, 200_000_000));
        assert_eq!((long.work_bytes, long.insisted, long.way), (Some(16 << 20), 3, Direction::Write));
        assert_eq!((long.time_ns, long.most_ns, long.burst), (Some(500_000_000), Some(5_000_000), 2));
        assert_eq!(ping("-r 100 -b 2 .").interval_ns, 20_000_000);
        assert_eq!(ping("-l 1m -s 64k .").interval_ns, 62_500_000);
        assert_eq!(
            (ping("-G .").way, ping("-B .").print, ping("-J .").print),
            (Direction::Both, Print::Batch, Print::Json)
        );
        assert_eq!((ask("-v").ok(), ask("-help").ok()), (Some(Ask::Version), Some(Ask::Help)));
    }

    #[test]
    fn what_is_not_done_is_refused_by_its_name_with_a_cure() {
        for (line, words) in [
            ("-A .", ["-A (async)", "--engine libaio"]),
            ("-N .", ["-N (nowait)", "vsync:nowait"]),
            ("-I .", ["-I (time)", "-J"]),
            ("", ["no destination", "name a directory"]),
            (". /tmp", ["more than one", "name one"]),
            ("-c x .", ["'x'", "-c as"]),
            ("-s 0 .", ["1 byte at least", "-s"]),
            ("-Z .", ["'-Z'", "ioping -h"]),
            ("-work 3 .", ["-work", "work-size"]),
            ("-i", ["-i (interval)", "type one"]),
            ("-w 99999999999999999999h .", ["too large", "-w as"]),
        ] {
            let said = ask(line).map(|_| ()).map_err(|trouble| trouble.to_string());
            assert!(said.as_ref().is_err_and(|t| words.iter().all(|w| t.contains(w))), "{line}: {said:?}");
        }
    }
}
