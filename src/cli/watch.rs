//! `fathom watch`: its flags, and the order of words that iostat takes.

use super::common::formats_of;
use super::headings::{OUTPUT, SAFETY, WHAT};
use crate::failure::Failure;
use crate::output::Replace;
use crate::watch::Request;
use clap::value_parser;
use model::name;
use model::units::parse_duration_ns;
use model::watch::Watched;
use report::Format;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two looks where nothing is said.
const INTERVAL: Duration = Duration::from_secs(1);
/// Shortest and longest time between two looks: the kernel counts time in ms, and nobody waits for more than a day.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Show what block devices and processes do now, and how that compares with what was measured on the same device.
///
/// For a file, a directory or a device: the device and every layer below it; without one all disks that are in use. Every INTERVAL (1 s) until
/// Ctrl-C, or COUNT times; the first interval begins with the call. The figures are those of iostat -x, from /proc/diskstats. The
/// load is compared with VALID results of this device in the history. Which processes move data root sees of all users, and by the kernel's block
/// events how long requests took and what each process asked for. docs/reference/watch.md tells of
/// all columns and keys.
#[derive(clap::Args, Debug)]
#[command(override_usage = "fathom watch [FLAGS] [DEVICE|DIR|FILE]... [INTERVAL [COUNT]]")]
#[command(after_help = "Exit codes: 0 watched, also where Ctrl-C ended it; 2 usage; 3 the machine refused.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Args {
    /// What is watched: kernel names (vda), devices, files, directories; behind them seconds between two looks (2, 0.5, 500ms), and how
    /// many times
    #[arg(value_name = "TARGET, INTERVAL, COUNT")]
    words: Vec<OsString>,
    /// Only this process, thread by thread
    #[arg(long, help_heading = WHAT, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Record no block events: they tell root the percentiles of latencies and the requests of each process, and cost about 1 us of a
    /// CPU per request
    #[arg(long, help_heading = WHAT)]
    no_events: bool,
    /// Count the system calls of shown processes that move data (root). Costs them about 1 us a call, and all others some 100 ns
    #[arg(long, help_heading = WHAT)]
    syscalls: bool,
    /// Print lines on a terminal too, which is drawn on where there is no COUNT
    #[arg(long, help_heading = OUTPUT)]
    no_live: bool,
    /// Form of each interval
    #[arg(long, help_heading = OUTPUT, default_value = "text", value_parser = formats_of::<Watched>())]
    format: &'static Format,
    /// Renew FILE.prom at every interval, whole or not at all, for the textfile collector of node_exporter. May be repeated
    #[arg(short, long, help_heading = OUTPUT, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Let -o also replace a file that is no text
    #[arg(long, help_heading = SAFETY, requires = "output")]
    force: bool,
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// A usage failure that names the word.
    pub fn request(self) -> Result<Request, Failure> {
        let Words { targets, interval, count } = Words::read(&self.words)?;
        Ok(Request {
            targets,
            interval,
            count,
            pid: self.pid,
            events: !self.no_events,
            calls: self.syscalls,
            plain: self.no_live,
            format: self.format,
            outputs: self.output,
            replace: Replace::by(self.force),
        })
    }
}

/// The words without a flag, told apart.
#[derive(Debug, PartialEq, Eq)]
struct Words {
    targets: Vec<PathBuf>,
    interval: Duration,
    count: Option<u64>,
}

impl Words {
    fn read(words: &[OsString]) -> Result<Self, Failure> {
        // The first word that is a number ends the targets.
        let numbers = words.iter().position(|w| is_number(w)).unwrap_or(words.len());
        let (targets, numbers) = words.split_at(numbers);
        if let Some(odd) = targets.iter().find(|w| begins_as_number(w) && !Path::new(w).exists()) {
            return Err(usage(odd, "is no interval and no file; type seconds such as 2 or 0.5, or 500ms"));
        }
        if let Some(more) = numbers.get(2) {
            return Err(usage(more, "comes behind INTERVAL and COUNT; type targets before them"));
        }
        let interval = numbers.first().map_or(Ok(INTERVAL), |word| interval(word))?;
        let count = numbers.get(1).map(|word| count(word)).transpose()?;
        Ok(Self { targets: targets.iter().map(PathBuf::from).collect(), interval, count })
    }
}

fn begins_as_number(word: &OsStr) -> bool {
    word.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// Whether a word is a time; a file of such a name is typed with its directory.
fn is_number(word: &OsStr) -> bool {
    let begins = begins_as_number(word) || word.as_encoded_bytes().starts_with(b".");
    begins && word.to_str().is_some_and(|text| parse_duration_ns(text).is_ok())
}

fn interval(word: &OsStr) -> Result<Duration, Failure> {
    let ns = word.to_str().and_then(|text| parse_duration_ns(text).ok());
    let interval = ns.map(Duration::from_nanos).filter(|i| (SHORTEST..=LONGEST).contains(i));
    interval.ok_or_else(|| {
        usage(word, "is no interval: type 100ms or more, and a day at most, such as 2 or 500ms")
    })
}

fn count(word: &OsStr) -> Result<u64, Failure> {
    let count = word.to_str().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
    count.ok_or_else(|| usage(word, "is no COUNT: type a whole number of intervals, 1 or more"))
}

fn usage(word: &OsStr, why: &str) -> Failure {
    Failure::Usage(format!("{} {why}", name::shown(Path::new(word))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Words, Failure> {
        Words::read(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_typed_as_iostat_takes_them() {
        let words = |targets: &[&str], ms, count| Words {
            targets: targets.iter().map(PathBuf::from).collect(),
            interval: Duration::from_millis(ms),
            count,
        };
        for (typed, meant) in [
            ("", words(&[], 1000, None)),
            ("2", words(&[], 2000, None)),
            ("vda /data 0.5 10", words(&["vda", "/data"], 500, Some(10))),
            ("./5 .25", words(&["./5"], 250, None)),
            (". .. 500ms 1", words(&[".", ".."], 500, Some(1))),
        ] {
            assert_eq!(read(typed).unwrap_or_else(|e| panic!("{typed}: {e:?}")), meant, "{typed}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_type() {
        for (typed, word) in [
            ("0", "100ms or more"),
            ("vda 1ms", "100ms or more"),
            ("99999h", "a day at most"),
            ("1 0", "COUNT"),
            ("1 2.5", "COUNT"),
            ("1 2 vda", "targets before them"),
            ("1 2 3", "targets before them"),
            ("1 vda", "COUNT"),
            ("5x", "no interval and no file"),
        ] {
            match read(typed) {
                Err(Failure::Usage(why)) => assert!(why.contains(word), "{typed}: {why}"),
                other => panic!("{typed}: {other:?}"),
            }
        }
    }
}
