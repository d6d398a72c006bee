//! `fathom watch`: its flags and arguments, including those of sysstat's iostat.

use crate::cli::shared_flags::{OUTPUT, SAFETY, WHAT, formats_of, target_path};
use crate::failure::Failure;
use crate::files::output::Replace;
use crate::watch::{Request, Selection};
use clap::value_parser;
use model::name;
use model::units::parse_duration_ns;
use model::watch::{Layout, RateUnit, Watched};
use report::Format;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Shortest time between two samples. The kernel counts time in ms.
const SHORTEST: Duration = Duration::from_millis(100);
/// Longest time between two samples.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Show the current load of block devices, CPUs and processes, and compare it with earlier measurements of the same device.
///
/// For a file, a directory or a device it shows the device and every layer below it; without a target, all disks in use. It prints a report
/// every INTERVAL (1 s) until Ctrl-C, or COUNT times. The first interval begins with the call. Arguments, options and figures are those
/// of iostat -x. The load is compared with VALID results of the same device in the history; a conclusion is printed only if the figures
/// support it. Run by root, it also shows the processes of all users that move data, request latencies, and the requests of each
/// process. docs/reference/watch.md describes all columns and keys.
#[derive(clap::Args, Debug)]
#[command(override_usage = "fathom watch [FLAGS] [DEVICE|DIR|FILE|ALL]... [INTERVAL [COUNT]]")]
#[command(after_help = "Exit codes: 0 watched, also if Ctrl-C ended it; 2 usage; 3 the machine refused.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Args {
    /// Targets: kernel names (vda), devices, files, directories; ALL also shows devices that were never used. The first number is the
    /// interval in seconds (2, 0.5, 500ms), the second the number of intervals
    #[arg(value_name = "TARGET, INTERVAL, COUNT")]
    words: Vec<OsString>,
    /// Show only this process, thread by thread
    #[arg(long, help_heading = WHAT, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Record no block events. As root, fathom reads latency percentiles and the requests of each process from them, at about 1 us of
    /// CPU time per request
    #[arg(long, help_heading = WHAT)]
    no_events: bool,
    /// Count the system calls with which the shown processes move data (root). Costs these processes about 1 us per call, all others about
    /// 100 ns
    #[arg(long, help_heading = WHAT)]
    syscalls: bool,
    #[command(flatten)]
    iostat: IostatArgs,
    /// Also print the rule and the figures of each conclusion
    #[arg(long = "explain", help_heading = OUTPUT)]
    explain_conclusions: bool,
    /// Print lines even on a terminal, instead of a full-screen view
    #[arg(long, help_heading = OUTPUT)]
    no_live: bool,
    /// Format of each interval
    #[arg(long, help_heading = OUTPUT, default_value = "text", value_parser = formats_of::<Watched>())]
    format: &'static Format,
    /// Replace FILE.prom atomically at every interval, for the textfile collector of node_exporter; or write a page FILE.html with plots of
    /// the load and the head-room over time. May be repeated
    #[arg(short = 'o', long = "output", help_heading = OUTPUT, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Let -o also replace a file that is not text
    #[arg(long, help_heading = SAFETY, requires = "files")]
    force: bool,
}

impl Args {
    /// Returns the request.
    ///
    /// # Errors
    /// A usage failure that names the argument.
    pub fn request(self) -> Result<Request, Failure> {
        self.iostat.refuse_unavailable()?;
        if self.files.iter().any(|path| path.as_os_str() == "JSON") {
            return Err(Failure::Usage(
                "-o JSON of iostat is not available; type --format json, whose keys docs/reference/watch.md describes"
                    .into(),
            ));
        }
        let arguments: Vec<OsString> = self.iostat.after_p().into_iter().chain(self.words).collect();
        let Arguments { targets, is_all, interval, count } = Arguments::read(&arguments)?;
        let selection = self.iostat.selection(is_all);
        if !selection.devices && report::TEXT.name != self.format.name && self.format.name != "json" {
            return Err(Failure::Usage(format!(
                "-c shows only the CPU line, which --format {} does not have; type --format json",
                self.format.name
            )));
        }
        Ok(Request {
            targets,
            interval,
            count,
            pid: self.pid,
            events: !self.no_events,
            calls: self.syscalls,
            plain: self.no_live || self.explain_conclusions || self.iostat.is_typed(),
            layout: self.iostat.layout(self.explain_conclusions),
            selection,
            format: self.format,
            outputs: self.files,
            replace: Replace::with_force(self.force),
        })
    }
}

/// Arguments that are not options.
#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    targets: Vec<PathBuf>,
    /// Whether ALL is among the targets.
    is_all: bool,
    interval: Duration,
    count: Option<u64>,
}

impl Arguments {
    /// Sorts the arguments as iostat does: numbers are the interval and the count, wherever they are, and all others are targets.
    fn read(words: &[OsString]) -> Result<Self, Failure> {
        let (numbers, targets): (Vec<&OsString>, Vec<&OsString>) = words.iter().partition(|w| is_number(w));
        if let Some(mistyped) = targets.iter().find(|w| begins_as_number(w) && !Path::new(w).exists()) {
            return Err(usage(
                mistyped,
                "is neither an interval nor a file; type seconds such as 2 or 0.5, or 500ms",
            ));
        }
        if let Some(more) = numbers.get(2) {
            return Err(usage(more, "is a third number, after INTERVAL and COUNT; type at most two"));
        }
        let interval = numbers.first().map_or(Ok(INTERVAL), |word| parse_interval(word))?;
        let count = numbers.get(1).map(|word| parse_count(word)).transpose()?;
        let is_all = |word: &OsString| word == ALL && !Path::new(word).exists();
        let (all, targets): (Vec<&OsString>, Vec<&OsString>) = targets.into_iter().partition(|w| is_all(w));
        let targets = targets.into_iter().map(|word| target_path(word)).collect();
        Ok(Self { targets, is_all: !all.is_empty(), interval, count })
    }
}

fn begins_as_number(word: &OsStr) -> bool {
    word.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// Whether a word is a number. A file with such a name is typed with its directory, such as `./5`.
fn is_number(word: &OsStr) -> bool {
    let begins = begins_as_number(word) || word.as_encoded_bytes().starts_with(b".");
    begins && word.to_str().is_some_and(|text| parse_duration_ns(text).is_ok())
}

fn parse_interval(word: &OsStr) -> Result<Duration, Failure> {
    let ns = word.to_str().and_then(|text| parse_duration_ns(text).ok());
    let interval = ns.map(Duration::from_nanos).filter(|i| (SHORTEST..=LONGEST).contains(i));
    interval.ok_or_else(|| usage(word, "is not a valid interval; type 100ms to 24h, such as 2 or 500ms"))
}

fn parse_count(word: &OsStr) -> Result<u64, Failure> {
    let count = word.to_str().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
    count.ok_or_else(|| usage(word, "is not a valid COUNT; type a whole number of intervals, 1 or more"))
}

fn usage(word: &OsStr, why: &str) -> Failure {
    Failure::Usage(format!("{} {why}", name::shown(Path::new(word))))
}

/// The word for all devices, as in iostat.
pub(super) const ALL: &str = "ALL";

/// Options of iostat. Hidden options are refused, or change nothing because `fathom watch` always does what they request.
#[derive(clap::Args, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = OUTPUT)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct IostatArgs {
    /// Show only the CPU line; with -d also the devices
    #[arg(short = 'c')]
    cpu: bool,
    /// Show only devices, without the CPU line and processes
    #[arg(short = 'd')]
    devices: bool,
    /// Show all columns, in several tables if the width is too small for one
    #[arg(short = 'x')]
    extended: bool,
    /// Throughput in KiB/s, which iostat calls kB/s
    #[arg(short = 'k', conflicts_with = "mebibytes")]
    kibibytes: bool,
    /// Throughput in MiB/s, which iostat calls MB/s
    #[arg(short = 'm')]
    mebibytes: bool,
    /// Print the time above each interval
    #[arg(short = 't')]
    timestamp: bool,
    /// Show the names of device mapper volumes instead of dm-0
    #[arg(short = 'N')]
    names: bool,
    /// Show partitions too: of these devices (with commas), or of all [default: ALL]
    #[arg(short = 'p', value_name = "DEVICE,...", num_args = 0..=1, default_missing_value = ALL)]
    partitions: Option<OsString>,
    /// Omit devices that completed no request in the interval
    #[arg(short = 'z')]
    active_only: bool,
    /// Show only the columns that fit the width, even with -x
    #[arg(short = 's')]
    short: bool,
    /// Changes nothing: fathom shows no averages since boot
    #[arg(short = 'y', hide = true)]
    omit_first: bool,
    /// Changes nothing: each device has one row
    #[arg(long = "compact", hide = true)]
    compact: bool,
    /// Changes nothing: figures always have readable units
    #[arg(long = "human", hide = true)]
    human: bool,
    /// Changes nothing: the text is always readable
    #[arg(long = "pretty", hide = true)]
    pretty: bool,
    /// Refused
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    dec: Option<OsString>,
    /// Refused
    #[arg(short = 'j', hide = true, num_args = 0..=1, default_missing_value = "")]
    identifiers: Option<OsString>,
    /// Refused
    #[arg(short = 'g', hide = true, num_args = 0..=1, default_missing_value = "")]
    group: Option<OsString>,
    /// Refused
    #[arg(short = 'H', hide = true)]
    group_only: bool,
    /// Refused
    #[arg(short = 'f', hide = true, num_args = 0..=1, default_missing_value = "")]
    directory: Option<OsString>,
}

impl IostatArgs {
    /// Returns the devices and numbers after `-p`, which are ordinary arguments of the command.
    pub(super) fn after_p(&self) -> Vec<OsString> {
        let Some(value) = &self.partitions else { return Vec::new() };
        match value.to_str() {
            Some(text) => text.split(',').filter(|name| !name.is_empty()).map(OsString::from).collect(),
            None => vec![value.clone()],
        }
    }

    /// Whether any of these options was typed. The output is then lines as in iostat, not a full-screen view.
    pub(super) fn is_typed(&self) -> bool {
        *self != Self::default()
    }

    pub(super) fn layout(&self, explain: bool) -> Layout {
        let unit = match (self.kibibytes, self.mebibytes) {
            (true, _) => RateUnit::Kib,
            (_, true) => RateUnit::Mib,
            _ => RateUnit::Mb,
        };
        Layout {
            all_columns: self.extended && !self.short,
            time: self.timestamp,
            volume_names: self.names,
            active_only: self.active_only,
            unit,
            explain,
        }
    }

    pub(super) fn selection(&self, unused: bool) -> Selection {
        let is_part = self.cpu || self.devices;
        Selection {
            cpu: self.cpu || !self.devices,
            devices: self.devices || !self.cpu,
            processes: !is_part,
            partitions: self.partitions.is_some(),
            unused,
        }
    }

    /// Refuses iostat options that would change the output and have no equivalent.
    ///
    /// # Errors
    /// The option, with what to type instead.
    pub(super) fn refuse_unavailable(&self) -> Result<(), Failure> {
        const NO_GROUPS: &str =
            "fathom shows no sums of groups; type the devices, or the volume or RAID that they form";
        let refused = [
            (
                self.dec.is_some(),
                "--dec",
                "the width of a column decides its digits; --format json has all digits",
            ),
            (
                self.identifiers.is_some(),
                "-j",
                "fathom shows kernel names; type -N for the names of volumes, or `fathom devices` for models and serial numbers",
            ),
            (self.group.is_some(), "-g", NO_GROUPS),
            (self.group_only, "-H", NO_GROUPS),
            (self.directory.is_some(), "-f", "fathom reads only /proc/diskstats; type the devices instead"),
        ];
        match refused.into_iter().find(|(is_typed, ..)| *is_typed) {
            Some((_, option, instead)) => {
                Err(Failure::Usage(format!("iostat's {option} is not available: {instead}")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use model::watch::{Layout, RateUnit};

    fn read(text: &str) -> Result<Arguments, Failure> {
        Arguments::read(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_in_any_order_as_for_iostat() {
        let arguments = |targets: &[&str], ms, count| Arguments {
            targets: targets.iter().map(PathBuf::from).collect(),
            is_all: false,
            interval: Duration::from_millis(ms),
            count,
        };
        for (typed, resolved) in [
            ("", arguments(&[], 1000, None)),
            ("2", arguments(&[], 2000, None)),
            ("no-disk /data 0.5 10", arguments(&["no-disk", "/data"], 500, Some(10))),
            ("1 no-disk", arguments(&["no-disk"], 1000, None)),
            ("1 no-disk 5 /data", arguments(&["no-disk", "/data"], 1000, Some(5))),
            ("./5 .25", arguments(&["./5"], 250, None)),
            (". .. 500ms 1", arguments(&[".", ".."], 500, Some(1))),
            ("ALL 1", Arguments { is_all: true, ..arguments(&[], 1000, None) }),
        ] {
            assert_eq!(read(typed).unwrap_or_else(|e| panic!("{typed}: {e:?}")), resolved, "{typed}");
        }
    }

    #[test]
    fn a_wrong_argument_is_named_with_what_to_type() {
        for (typed, word) in [
            ("0", "100ms to 24h"),
            ("vda 1ms", "100ms to 24h"),
            ("99999h", "100ms to 24h"),
            ("1 0", "COUNT"),
            ("1 2.5", "COUNT"),
            ("1 2 3", "third number"),
            ("1 vda 2 3", "third number"),
            ("5x", "neither an interval nor a file"),
        ] {
            match read(typed) {
                Err(Failure::Usage(why)) => assert!(why.contains(word), "{typed}: {why}"),
                other => panic!("{typed}: {other:?}"),
            }
        }
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn request(line: &str) -> Result<Request, String> {
        let typed = std::iter::once("watch").chain(line.split_whitespace());
        let line = Line::try_parse_from(typed).map_err(|e| e.to_string())?;
        line.args.request().map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn options_of_iostat_select_parts_and_columns() {
        let parsed = |line: &str| request(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let listing = parsed("-xmt 1 /no/disk");
        let layout = Layout { all_columns: true, time: true, unit: RateUnit::Mib, ..Layout::default() };
        assert_eq!((listing.layout, listing.plain, listing.targets.len()), (layout, true, 1));
        let selected = |line: &str| {
            let s = parsed(line).selection;
            [s.cpu, s.devices, s.processes, s.partitions, s.unused]
        };
        for (line, parts) in [
            ("", [true, true, true, false, false]),
            ("-x", [true, true, true, false, false]),
            ("-d -k", [false, true, false, false, false]),
            ("-c 1 1", [true, false, false, false, false]),
            ("-cd", [true, true, false, false, false]),
            ("-p ALL 1", [true, true, true, true, true]),
            ("-dp", [false, true, false, true, true]),
            ("-p no-disk 1 2", [true, true, true, true, false]),
            ("ALL -xz", [true, true, true, false, true]),
        ] {
            assert_eq!(selected(line), parts, "{line}");
        }
        // A number after -p is the interval, as with iostat.
        let numbered = parsed("-p 2 3");
        assert_eq!((numbered.interval.as_secs(), numbered.count, numbered.targets.len()), (2, Some(3), 0));
        assert!(parsed("-y --compact --human --pretty").plain);
        assert!(!parsed("1").plain);
        assert!(!parsed("-xs").layout.all_columns);
        for (line, why) in [
            ("-k -m", "cannot be used with"),
            ("-o JSON", "--format json"),
            ("--dec=1", "--dec"),
            ("-j ID no-disk", "-j"),
            ("-g all no-disk", "-g"),
            ("-c --format csv", "--format json"),
        ] {
            let refused = request(line).err().unwrap_or_default();
            assert!(refused.contains(why), "{line}: {refused}");
        }
    }
}
