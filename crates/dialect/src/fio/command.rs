//! fio's command line, parsed as fio's getopt does: job options, options of fio itself and job files in
//! any order. Also fio's help texts.

use super::Piece;
use super::options::{self, OPTIONS, OTHER_ENGINES, OWN};
use super::value::{DefaultUnit, time};
use crate::fio::job_file::visible;
use crate::fio::streams::ENGINES;
use crate::options::{How, ToolOption};
use crate::trouble::typed_hyphens;
use model::spec::Idle;

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    /// Run the jobs.
    #[default]
    Measure,
    /// Parse the jobs and report errors.
    Parse,
    /// Print the jobs as one command line.
    ShowCommand,
    /// Print the version of fio that this command follows.
    Version,
    /// Print a help text.
    Print(String),
}

/// A command line of fio.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// What to do.
    pub ask: Ask,
    /// Job options in their order, followed by the job files, which fio reads last.
    pub pieces: Vec<Piece>,
    /// The sections that are run; all if none is named.
    pub sections: Vec<String>,
    /// Whether jobs that write or trim are refused.
    pub readonly: bool,
    /// Targets that may be overwritten although fathom did not create them.
    pub destroy: Vec<String>,
    /// The output file; standard output if none is named.
    pub output: Option<String>,
    /// Folder of the state files of verified writes; the current one if none is named.
    pub aux_path: Option<String>,
    /// The output formats in the order in which fio prints them, as names of fathom's `--format`:
    /// `fio-terse`, `fio`.
    pub formats: Vec<&'static str>,
    /// Interval of intermediate outputs in ns; `None` for output only at the end of the run.
    pub status_interval_ns: Option<u64>,
    /// Whether the bandwidth of all jobs together is written to log files, one for each direction.
    pub bandwidth_log: bool,
    /// The report of idle CPU time, if requested.
    pub idle: Option<Idle>,
    /// Whether progress is hidden (`--eta=never`).
    pub quiet: bool,
    /// Remarks on options that have no effect.
    pub remarks: Vec<String>,
}

/// The requested output formats, and the version of terse output.
struct Formats {
    normal: bool,
    terse: bool,
    json: Option<&'static str>,
    version: &'static str,
}

impl CommandLine {
    /// A command line that names one job file with this text.
    pub(super) fn of_file(name: &str, text: &str) -> Self {
        Self { pieces: vec![Piece::File { name: name.into(), text: text.into() }], ..Self::default() }
    }

    /// Parses the words after `fio`. `job_file` returns the text of a job file by its path.
    ///
    /// # Errors
    /// The error in a word, with what to type instead, or why a job file cannot be read.
    pub fn parse(
        words: &[String],
        job_file: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, String> {
        let mut line = Self::default();
        let mut formats = Formats { normal: true, terse: false, json: None, version: "fio-terse" };
        let mut files: Vec<&String> = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if let Some(hyphens) = typed_hyphens(word) {
                return Err(hyphens);
            }
            let bare = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
            let Some(bare) = bare.filter(|bare| !bare.is_empty()) else {
                if word == "--" {
                    files.extend(rest.by_ref());
                } else {
                    files.push(word);
                }
                continue;
            };
            let (typed, value) =
                bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value)));
            let name = complete(typed);
            let mut value_or_next = || {
                let value = value.map(str::to_owned).or_else(|| rest.next().cloned());
                value.ok_or_else(|| format!("--{name} has no value; type --{name}=VALUE"))
            };
            let own = OWN.iter().find(|option| option.name == name);
            let needs_value = match own {
                Some(own) => !own.value.is_empty() && !own.is_switch,
                // An unknown option is reported later. Assume that no value follows it.
                None => options::find(name).is_some_and(|option| !option.is_switch),
            };
            let value = if needs_value { value_or_next()? } else { value.unwrap_or_default().to_owned() };
            match own {
                Some(own) => line.apply(own, &value, &mut formats)?,
                None => line.pieces.push(Piece::Option { name: name.to_owned(), value }),
            }
        }
        for name in files {
            let text = job_file(name)?;
            line.pieces.push(Piece::File { name: name.clone(), text });
        }
        line.formats = formats.names();
        if line.pieces.is_empty() && line.ask == Ask::Measure {
            return Err("there is no job; type a job file, or --name=NAME followed by its options (`fathom fio --help` lists more)".into());
        }
        Ok(line)
    }

    /// Applies an option of fio itself.
    fn apply(&mut self, option: &ToolOption, value: &str, formats: &mut Formats) -> Result<(), String> {
        let name = option.name;
        match option.how {
            How::Refused | How::Only(_) => {
                return Err(format!("--{name} is not supported: {}", option.about));
            }
            How::NoEffect => self.remarks.push(format!("--{name} has no effect here: {}", option.about)),
            How::Honoured => match name {
                "parse-only" => self.ask = Ask::Parse,
                "showcmd" => self.ask = Ask::ShowCommand,
                "version" => self.ask = Ask::Version,
                "help" => self.ask = Ask::Print(page()),
                "cmdhelp" => self.ask = Ask::Print(option_help(value)?),
                "enghelp" => self.ask = Ask::Print(engine_help(value)?),
                "output" => self.output = Some(value.into()),
                "aux-path" => self.aux_path = Some(value.into()),
                "minimal" => (formats.normal, formats.terse) = (false, true),
                "append-terse" => formats.terse = true,
                "output-format" => formats.parse_list(value)?,
                "terse-version" => formats.version = terse(value)?,
                // As in fio, other words are accepted and have no effect.
                "eta" => self.quiet = value == "never",
                "bandwidth-log" => self.bandwidth_log = true,
                "status-interval" => self.status_interval_ns = Some(interval(value)?),
                "idle-prof" => self.idle = idle(value)?,
                "readonly" => self.readonly = true,
                "section" => self.sections.push(value.into()),
                _ => self.destroy.push(value.into()),
            },
        }
        Ok(())
    }
}

impl Formats {
    /// Replaces the formats by the ones that a list names.
    fn parse_list(&mut self, list: &str) -> Result<(), String> {
        (self.normal, self.terse, self.json) = (false, false, None);
        for word in list.split(',') {
            match word.trim() {
                "normal" => self.normal = true,
                "terse" | "minimal" => self.terse = true,
                "json" => self.json = self.json.or(Some("fio-json")),
                "json+" => self.json = Some("fio-json+"),
                other => {
                    return Err(format!(
                        "--output-format={other}: there is no such format; type normal, terse, json or json+"
                    ));
                }
            }
        }
        Ok(())
    }

    fn names(&self) -> Vec<&'static str> {
        let terse = self.terse.then_some(self.version);
        let normal = self.normal.then_some("fio");
        [terse, self.json, normal].into_iter().flatten().collect()
    }
}

/// Parses the time between two outputs. Returns ns.
fn interval(value: &str) -> Result<u64, String> {
    let ns = time(value, DefaultUnit::Seconds).map_err(|why| format!("--status-interval={value}: {why}"))?;
    let often =
        || format!("--status-interval={value}: an interval is at least a second; type --status-interval=1");
    Some(ns).filter(|ns| *ns >= 1_000_000_000).ok_or_else(often)
}

fn idle(value: &str) -> Result<Option<Idle>, String> {
    match value {
        "none" => Ok(None),
        "system" => Ok(Some(Idle::All)),
        "percpu" => Ok(Some(Idle::Each)),
        _ => Err(format!(
            "--idle-prof={value}: fathom has no such value, since it reads idle times from the kernel; type none, system or percpu"
        )),
    }
}

fn terse(value: &str) -> Result<&'static str, String> {
    match value {
        "2" => Ok("fio-terse-2"),
        "3" => Ok("fio-terse"),
        "4" => Ok("fio-terse-4"),
        "5" => Ok("fio-terse-5"),
        _ => Err(format!("--terse-version={value}: there is no such version; type 2, 3, 4 or 5")),
    }
}

/// Completes an unambiguous prefix of an option, like getopt. Returns the word itself if it is not such a prefix.
fn complete(word: &str) -> &str {
    if word == "h" {
        return "help";
    }
    let own = OWN.iter().map(|option| option.name);
    let of_jobs = OPTIONS.iter().flat_map(ToolOption::names);
    let mut begun = own.chain(of_jobs).filter(|name| name.starts_with(word));
    match (begun.clone().any(|name| name == word), begun.next(), begun.next()) {
        (false, Some(only), None) => only,
        _ => word,
    }
}

/// The page of `--help`.
pub(super) fn page() -> String {
    let mut out = String::from(
        "fathom fio [OPTIONS] [JOB OPTIONS] [JOB FILES]\n\n\
         Runs job files and command lines of fio 3.33 once, with fio's output, exit codes and file names.\n\
         fathom's verdict is in the key \"fathom\" of JSON, on standard error with text, and in `fathom show last`.\n\
         A link to fathom with the name fio is the same command.\n\n",
    );
    for option in OWN.iter().filter(|option| option.how == How::Honoured) {
        out += &format!("  --{}{}\n          {}\n", option.name, option.value, option.about);
    }
    out + "\nJob options: --cmdhelp lists them, --cmdhelp=OPTION explains one, `fathom help reference/fio` prints them all.\n"
}

/// Describes how a job option is handled, or all job options if `name` is empty or `all`.
pub(super) fn option_help(name: &str) -> Result<String, String> {
    if name.is_empty() || name == "all" {
        return Ok(option_lines(OPTIONS.iter()));
    }
    let option = options::find(name).ok_or_else(|| {
        let near = options::nearest(name).map_or("all", |near| near);
        format!("--cmdhelp={}: there is no such option; type --cmdhelp={near}", visible(name))
    })?;
    let alias =
        option.aliases.iter().fold(String::new(), |all, alias| all + &format!("{:>20}: {alias}\n", "alias"));
    Ok(format!("{:>20}: {}\n{alias}", option.name, option.explained()))
}

/// Lists the engines if `name` is empty, otherwise the options of that engine.
pub(super) fn engine_help(name: &str) -> Result<String, String> {
    if name.is_empty() {
        let names = ENGINES.iter().map(|(engine, here)| format!("\t{engine:12}{here}\n"));
        return Ok(format!("IO engines, and their names in fathom:\n{}", names.collect::<String>()));
    }
    if ENGINES.iter().any(|(engine, _)| *engine == name) {
        let lines = option_lines(OPTIONS.iter().filter(|option| option.engines.contains(&name)));
        return Ok(if lines.is_empty() { format!("{name} has no options of its own\n") } else { lines });
    }
    let other = OTHER_ENGINES.iter().find(|engine| engine.name == name);
    let why = other.map_or("fio has no such engine; type --enghelp", |engine| engine.why);
    Err(format!("--enghelp={}: {why}", visible(name)))
}

/// Returns a line of help for each option.
fn option_lines<'o>(options: impl Iterator<Item = &'o ToolOption>) -> String {
    options.fold(String::new(), |all, option| all + &format!("{:24}: {}\n", option.name, option.explained()))
}

#[cfg(test)]
fn line(words: &str) -> Result<CommandLine, String> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    CommandLine::parse(&words, &|name| {
        if name == "no.fio" { Err("it is not there".into()) } else { Ok(name.into()) }
    })
}

#[cfg(test)]
fn parse_words(words: &str) -> Vec<String> {
    let pieces = line(words).unwrap_or_else(|why| panic!("{words}: {why}")).pieces;
    let shown = pieces.into_iter().map(|piece| match piece {
        Piece::File { name, .. } => name,
        Piece::Option { name, value } => format!("{name}={value}"),
    });
    shown.collect()
}

#[test]
fn values_follow_an_equals_sign_or_a_space_and_files_are_last() {
    assert_eq!(
        parse_words("a.fio --name x --rw=randread -bs 4k --time_based --runtime=3 - --direct 1"),
        ["name=x", "rw=randread", "bs=4k", "time_based=", "runtime=3", "direct=1", "a.fio", "-"]
    );
    // A switch does not take the next word, but may have an attached value.
    assert_eq!(
        parse_words("--group_reporting --stonewall=0 b.fio"),
        ["group_reporting=", "stonewall=0", "b.fio"]
    );
    assert_eq!(parse_words("--hipri --fixedbufs c.fio"), ["hipri=", "fixedbufs=", "c.fio"]);
    assert_eq!(parse_words("-- --x.fio"), ["--x.fio"]);
    // An unknown word is reported at its place and takes no value.
    assert_eq!(parse_words("--iodepht x.fio"), ["iodepht=", "x.fio"]);
}

#[test]
fn unambiguous_prefixes_of_options_are_completed() {
    assert_eq!(complete("ioeng"), "ioengine");
    assert_eq!(complete("rw"), "rw", "an exact name");
    assert_eq!(complete("iodep"), "iodep", "an ambiguous prefix");
    assert_eq!(complete("xyzzy"), "xyzzy");
    assert_eq!(line("-h").map(|l| l.ask), Ok(Ask::Print(page())));
}

#[test]
fn formats_are_in_the_order_of_fio() {
    let formats = |words: &str| line(&format!("{words} --name=x")).map(|l| l.formats);
    assert_eq!(formats(""), Ok(vec!["fio"]));
    assert_eq!(formats("--minimal --terse-version=5"), Ok(vec!["fio-terse-5"]));
    assert_eq!(formats("--output-format=normal,json+,json,terse"), Ok(vec!["fio-terse", "fio-json+", "fio"]));
    assert_eq!(formats("--append-terse --terse-version 2"), Ok(vec!["fio-terse-2", "fio"]));
    for (words, advice) in [
        ("--output-format=xml", "type normal, terse, json or json+"),
        ("--terse-version=1", "type 2, 3, 4 or 5"),
        ("--idle-prof=calibrate", "type none, system or percpu"),
        ("--client=host", "remove the option"),
        ("--output", "type --output=VALUE"),
        ("--rw", "type --rw=VALUE"),
        ("no.fio", "not there"),
    ] {
        let why = line(words).map_or_else(|why| why, |line| panic!("{words}: {line:?}"));
        assert!(why.contains(advice), "{words}: {why}");
    }
    assert!(line("").is_err());
}

#[test]
fn options_of_fio_itself_are_no_job_options() {
    for option in OWN {
        assert!(options::find(option.name).is_none(), "{}", option.name);
    }
}

#[test]
fn every_option_and_every_engine_has_help() {
    for name in OPTIONS.iter().map(|option| option.name) {
        assert!(option_help(name).is_ok_and(|text| text.contains(name)), "{name}");
        assert!(option_help("all").is_ok_and(|text| text.contains(name)), "{name}");
    }
    for (engine, _) in ENGINES {
        assert!(
            engine_help(engine).is_ok() && engine_help("").is_ok_and(|text| text.contains(engine)),
            "{engine}"
        );
    }
    for option in OPTIONS {
        let is_listed = |engine: &&str| engine_help(engine).is_ok_and(|text| text.contains(option.name));
        assert!(option.engines.iter().all(is_listed), "{}", option.name);
    }
    assert_eq!(
        option_help("iodepht"),
        Err("--cmdhelp=iodepht: there is no such option; type --cmdhelp=iodepth".into())
    );
    assert!(engine_help("rbd").is_err_and(|why| why.contains("no client for this engine")));
}
