//! hdparm's language: its two timings, as hdparm 9.65 has them.
//!
//! For: which devices are timed and how; what hdparm asks or tells a drive is refused by name. Not for: timing.
//!
//! Source: the manual of hdparm 9.65, and what it prints.

use crate::line::Line;
use crate::trouble::Trouble;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To print what can be typed.
    Help,
    /// To print which program this is.
    Version,
    /// To time reads.
    Time(Timings),
}

/// What is timed, of which devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// `-T`: the same 2 MiB over and over.
    pub cached: bool,
    /// `-t`: one 2 MiB after another.
    pub reads: bool,
    /// `--direct`: past the page cache.
    pub direct: bool,
    /// `--offset`: where `-t` begins, in GiB; `None` where it was not said.
    pub offset_gib: Option<u64>,
    /// In the order in which they were named.
    pub devices: Vec<String>,
}

/// Most bytes of an offset: GiB that a file offset can be.
const MAX_OFFSET_GIB: u64 = i64::MAX as u64 >> 30;

/// Reads a command line: the words behind `hdparm`.
///
/// # Errors
/// Everything that is wrong with it, each with its word.
pub fn read(words: &[String]) -> Result<Ask, Trouble> {
    let mut line = Line::new(words);
    let mut timings = Timings::default();
    let mut all = words.iter().enumerate();
    let (mut only_devices, mut is_refused) = (false, false);
    while let Some((at, word)) = all.next() {
        match word.as_str() {
            word if only_devices || !word.starts_with('-') || word == "-" => {
                timings.devices.push(word.into());
            }
            "--" => only_devices = true,
            "--help" => return Ok(Ask::Help),
            "--direct" => timings.direct = true,
            "--offset" => match all.next() {
                Some((at, value)) => timings.offset_gib = offset(&mut line, at, value),
                None => line.wrong(at, "--offset needs a number of GiB; type --offset 10"),
            },
            word if word.starts_with("--offset=") => {
                timings.offset_gib = offset(&mut line, at, &word["--offset=".len()..]);
            }
            word if word.starts_with("--") => {
                is_refused = true;
                line.wrong(at, refusal(word));
            }
            word if word.contains('/') => {
                let (letters, device) = word.split_at(word.find('/').unwrap_or(0));
                line.wrong(at, format!("'{word}' is no option; type {letters} {device}"));
                is_refused = true;
            }
            word => {
                for letter in word.chars().skip(1) {
                    match letter {
                        't' => timings.reads = true,
                        'T' => timings.cached = true,
                        'h' => return Ok(Ask::Help),
                        'V' => return Ok(Ask::Version),
                        letter => {
                            is_refused = true;
                            line.wrong(at, refusal(&format!("-{letter}")));
                            // What is behind it is its value.
                            break;
                        }
                    }
                }
            }
        }
    }
    if is_refused {
        return line.unless_wrong(Ask::Time(timings));
    }
    if !timings.reads && !timings.cached {
        line.wrong(
            words.len(),
            "nothing is to be timed; type -t for the device, -T for memory, or -tT for both",
        );
    }
    if timings.devices.is_empty() {
        line.wrong(
            words.len(),
            "no device is named; type one, such as /dev/sda (`fathom devices` lists them)",
        );
    }
    line.unless_wrong(Ask::Time(timings))
}

fn offset(line: &mut Line, at: usize, value: &str) -> Option<u64> {
    let gib = value.parse().ok().filter(|gib| *gib <= MAX_OFFSET_GIB);
    if gib.is_none() {
        line.wrong(
            at,
            format!("--offset {value} is no number of GiB; type a whole one, such as --offset 10"),
        );
    }
    gib
}

/// Why an option is not done, and what to type instead.
fn refusal(option: &str) -> String {
    let instead = match option {
        "-i" | "-I" | "-g" | "-W" | "-A" | "-a" | "-r" => {
            "`fathom doctor DEVICE` shows what the kernel knows of the drive, its caches and read-ahead"
        }
        "-f" | "-F" => "`fathom run --fsync 1 --rw write FILE` measures what flushing costs",
        "--fibmap" => "`fathom doctor FILE` shows its extents",
        "--fallocate" => "use fallocate(1)",
        _ => "use hdparm itself",
    };
    format!(
        "{option} asks or tells a drive something, which fathom never does: it has -t, -T, --direct and --offset; {instead}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> Result<Ask, Trouble> {
        read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn timings_are_those_that_were_typed_in_any_order() {
        let of = |line: &str| match ask(line) {
            Ok(Ask::Time(timings)) => timings,
            other => panic!("{line}: {other:?}"),
        };
        let both = of("-tT /dev/sda");
        assert_eq!((both.cached, both.reads, both.direct, both.offset_gib), (true, true, false, None));
        let far = of("/dev/sda --offset 500 -t --direct /dev/sdb");
        assert_eq!((far.direct, far.offset_gib, far.devices.len()), (true, Some(500), 2));
        assert_eq!(of("-T -- -odd").devices, ["-odd"]);
        assert_eq!((ask("-V").ok(), ask("-h").ok()), (Some(Ask::Version), Some(Ask::Help)));
    }

    #[test]
    fn what_changes_a_drive_is_refused_by_its_name() {
        for (line, words) in [
            ("-W0 /dev/sda", ["-W", "fathom doctor"]),
            ("-y /dev/sda", ["-y", "hdparm itself"]),
            ("--security-erase NULL /dev/sda", ["--security-erase", "hdparm itself"]),
            ("-tT/dev/sda", ["-tT /dev/sda", "no option"]),
            ("-t", ["no device", "/dev/sda"]),
            ("/dev/sda", ["nothing is to be timed", "-tT"]),
            ("-t --offset", ["--offset", "GiB"]),
            ("-t --offset=x /dev/sda", ["--offset x", "whole"]),
        ] {
            let said = ask(line).map(|_| ()).map_err(|trouble| trouble.to_string());
            assert!(said.as_ref().is_err_and(|t| words.iter().all(|w| t.contains(w))), "{line}: {said:?}");
        }
    }
}
