//! Flags that several commands share: settings of jobs, output, progress, gates, targets.
//!
//! Also has the headings of `--help`, which are in the same order for every command. Headings of job settings come from the table of
//! keys.

use crate::cli::usage_error::{self, likeness, most_similar};
use crate::failure::Failure;
use crate::files::output::{self, Replace};
use crate::live::ProgressMode;
use crate::plan::engine_names;
use crate::request::{Request, Work};
use crate::show::Showing;
use crate::stderr;
use analysis::catalogue::pages;
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use engine::engines::TakesNumber;
use machine::devices;
use machine::root::Root;
use model::finding::{CheckId, CheckPage};
use model::history::SessionTable;
use model::name;
use model::plan::InjectedFault;
use model::report::{CountsAs, Report};
use model::spec::iometer::LINE_KEYS;
use model::spec::keys::{self, Group, Key};
use model::spec::number::{MAX_TIME_NS, time};
use model::spec::{JobSpec, PhaseSpec, StreamSpec, number};
use model::verdict::SlowdownLimit;
use report::{Detail, Format, ReportKind};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The flags for settings of the job: the keys of the table that the command accepts.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) job: JobSpec,
    /// The typed keys, in the order of the table of keys.
    pub(super) given: Vec<TypedKey>,
}

/// A key and its typed values.
#[derive(Clone, Debug)]
pub(super) struct TypedKey {
    pub(super) key: &'static Key,
    pub(super) values: Vec<String>,
}

/// The value of a key. The type distinguishes it from an axis of `fathom sweep` with the same name, which has several values.
#[derive(Clone, Debug)]
struct Value(String);

impl Args for Keys {
    fn augment_args(command: Command) -> Command {
        let named = keys::Command::named(command.get_name());
        command.args(
            named.into_iter().flat_map(|name| keys::taken_by(name).map(move |key| make_flag(key, name))),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Makes a flag for a key.
fn make_flag(key: &'static Key, command: keys::Command) -> Arg {
    let about = key.about_in(command);
    let flag = Arg::new(key.name).long(key.name).help(about.clone()).help_heading(key.group.heading());
    if key.is_switch() {
        return flag.action(ArgAction::SetTrue);
    }
    let flag = match key.name {
        "engine" => flag.long_help(format!("{about}\n\nPossible values:\n{}", list_engines())),
        keys::LINE => flag.long_help(format!("{about}\n\nKeys of a line:\n{}", list_line_keys())),
        _ => flag,
    };
    let action = if key.is_list() { ArgAction::Append } else { ArgAction::Set };
    // Parse here so that clap can name the flag in an error; the value is parsed again where it is used.
    flag.action(action).value_name(key.value).value_parser(OsStringValueParser::new().try_map(move |typed| {
        // A file may have any name.
        let text = typed.into_string().unwrap_or_else(model::name::text);
        key.parse_into_job(&mut JobSpec::default(), [text.as_str()])?;
        if key.name == "engine" {
            check_engine(&text)?;
        }
        Ok::<Value, String>(Value(text))
    }))
}

impl FromArgMatches for Keys {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let stream = StreamSpec::default();
        let phase = PhaseSpec { streams: vec![stream], ..PhaseSpec::default() };
        let mut job = JobSpec { phases: vec![phase], ..JobSpec::default() };
        let mut given = Vec::new();
        for key in keys::KEYS {
            let values = typed_values(matches, key);
            if values.is_empty() {
                continue;
            }
            // A list can be invalid although each value is valid.
            key.parse_into_job(&mut job, values.iter().map(String::as_str)).map_err(|why| {
                clap::Error::raw(ErrorKind::ValueValidation, format!("--{}: {why}\n", key.name))
            })?;
            given.push(TypedKey { key, values });
        }
        Ok(Self { job, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The typed values of a key; empty if the key was not typed, or the command does not accept it.
fn typed_values(matches: &ArgMatches, key: &Key) -> Vec<String> {
    if key.is_switch() {
        let on = matches.try_get_one::<bool>(key.name).ok().flatten();
        return on.filter(|on| **on).map(|_| "true".into()).into_iter().collect();
    }
    let typed = matches.try_get_many::<Value>(key.name).ok().flatten();
    typed.into_iter().flatten().map(|Value(text)| text.clone()).collect()
}

/// Flags for a measurement.
#[derive(Args, Debug)]
pub(super) struct Measuring {
    #[command(flatten)]
    pub(super) keys: Keys,
    /// Do not keep the session after the report is printed
    #[arg(long, help_heading = OUTPUT)]
    no_history: bool,
    /// Allow overwriting an existing file (its path) or a block device (its name or serial); may be repeated
    #[arg(long, value_name = "NAME", help_heading = SAFETY)]
    destroy: Vec<OsString>,
    #[command(flatten)]
    unseen: UnseenArgs,
    /// Withhold every number unless this block device (name, path or serial) is below each target
    #[arg(long, value_name = "NAME", help_heading = SAFETY)]
    expect_device: Option<String>,
    /// Fail on purpose, for fathom's own tests
    #[arg(long, hide = true, value_parser = one_of(&HOOKS))]
    test_hook: Option<InjectedFault>,
}

/// The time limit of commands that measure as much as the time allows.
#[derive(Args, Debug)]
#[command(next_help_heading = HOW_LONG)]
pub(super) struct BudgetArgs {
    /// Time limit from start to report [default: printed before the first run, usually less than 2m]
    #[arg(long, value_name = "DURATION", value_parser = |t: &str| time(t, 1, MAX_TIME_NS))]
    pub(super) budget: Option<u64>,
}

/// Files and devices to write even if fathom cannot see whether other processes use them.
#[derive(Args, Debug)]
pub(crate) struct UnseenArgs {
    /// Write this file or device even if fathom cannot see whether other processes use it, as in a container; may be repeated. fathom never
    /// writes a file or device that it sees in use
    #[arg(long, value_name = "PATH", help_heading = SAFETY)]
    pub(crate) unseen_users: Vec<PathBuf>,
}

/// Files that a report is written to in addition to standard output.
#[derive(Args, Debug)]
#[command(next_help_heading = OUTPUT)]
pub(crate) struct OutputArgs {
    /// Also write the report to a file, in the format of its extension; a FIFO, a terminal, /dev/fd/N or - gets the format of --format.
    /// May be repeated. An existing file is replaced only if it is empty or text
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Let -o also replace a file that is not text. A target, its storage and a session are never replaced
    #[arg(long, requires = "output")]
    force: bool,
}

/// Flags for the report.
#[derive(Args, Debug)]
#[command(next_help_heading = OUTPUT)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct ShowingArgs {
    #[command(flatten)]
    pub(super) inconclusive: InconclusiveArgs,
    /// Format of the report on standard output
    #[arg(long, default_value = "text", value_parser = formats_of::<Report>())]
    format: &'static Format,
    #[command(flatten)]
    files: OutputArgs,
    /// Accept a finding by its id, such as A01: the number is shown as accepted, the exit code ignores the finding, and conditions use the
    /// number; may be repeated
    #[arg(long, value_name = "ID,...", value_parser = parse_accepted_check, value_delimiter = ',')]
    accept: Vec<CheckId>,
    /// Show the ledger of each result: bytes that fathom issued, that the kernel charged to it, and that each layer below completed
    #[arg(long)]
    ledger: bool,
    /// Show every finding, every run, and which checks were not possible and which passed
    #[arg(long, conflicts_with = "brief")]
    verbose: bool,
    /// Show only the table; with --format markdown, one block for a forum
    #[arg(long, conflicts_with_all = ["explain", "ledger"])]
    brief: bool,
}

/// How a measurement, its progress and its report are shown.
#[derive(Args, Debug)]
#[command(next_help_heading = OUTPUT)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct ReportArgs {
    /// Print what would be measured, with the origin of every setting, and stop
    #[arg(long)]
    pub(super) explain: bool,
    #[command(flatten)]
    showing: ShowingArgs,
    /// Show the live view on the terminal [default: if the measurement takes at least 5 s, the terminal has at least 40 columns and 10
    /// rows, standard output is not a pipe, and CI is not set]
    #[arg(long, conflicts_with_all = ["no_live", "quiet"])]
    live: bool,
    /// Show one line of progress on the terminal instead of the live view
    #[arg(long)]
    no_live: bool,
    /// Print no progress on standard error
    #[arg(long)]
    quiet: bool,
}

impl ReportArgs {
    /// Returns how to show the measurement.
    pub(super) fn showing(self) -> Result<Showing, Failure> {
        let watched = self.progress();
        Ok(Showing { watched, ..self.showing.showing(self.explain)? })
    }

    /// Returns how to show the measurements of several targets in one table. `--explain` prints their plans instead.
    pub(super) fn showing_of_sessions(self) -> Result<Showing, Failure> {
        let (watched, explain) = (self.progress(), self.explain);
        Ok(Showing { watched, explain, ..self.showing.showing_of_sessions(false)? })
    }

    fn progress(&self) -> ProgressMode {
        match (self.quiet, self.live, self.no_live) {
            (true, ..) => ProgressMode::Quiet,
            (_, true, _) => ProgressMode::View,
            (.., true) => ProgressMode::Plain,
            _ => ProgressMode::Auto,
        }
    }
}

/// Refuses flags that conflict with each other.
pub(super) fn check_job(job: &JobSpec) -> Result<(), Failure> {
    job.check().into_iter().next().map_or(Ok(()), |problem| Err(Failure::Usage(problem.in_flags())))
}

/// The flag that allows several ranks of a launcher on one host.
#[derive(Args, Debug)]
pub(crate) struct FleetArgs {
    /// Under mpirun: allow this many ranks on one host, where they share devices and CPUs [default: 1]
    #[arg(long, value_name = "N", help_heading = SAFETY, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) ranks_per_host: Option<u32>,
}

/// The values of the hidden `--test-hook`.
const HOOKS: [(&str, &str, InjectedFault); 3] = [
    ("panic-worker", "", InjectedFault::PanicWorker),
    ("panic-main", "", InjectedFault::PanicMain),
    ("no-evidence", "", InjectedFault::NoEvidence),
];

impl Measuring {
    /// Whether any flag for the measurement was typed.
    pub(super) fn is_typed(&self) -> bool {
        !self.keys.given.is_empty()
            || self.no_history
            || !self.destroy.is_empty()
            || !self.unseen.unseen_users.is_empty()
            || self.expect_device.is_some()
            || self.test_hook.is_some()
    }

    /// Makes the request for the work and targets of the command.
    pub(super) fn request(self, work: Work, targets: impl IntoIterator<Item = PathBuf>) -> Request {
        Request {
            command: std::env::args_os().map(model::name::text).collect(),
            work,
            job: self.keys.job,
            flags: self.keys.given.iter().map(|given| given.key.name).collect(),
            targets: targets.into_iter().collect(),
            destroy: self.destroy.iter().map(model::name::text).collect(),
            unseen_users: self.unseen.unseen_users,
            injected_fault: self.test_hook,
            keep: !self.no_history,
            expect_device: self.expect_device,
            ..Request::default()
        }
    }
}

impl ShowingArgs {
    /// Returns how to show the report of one session.
    pub(super) fn showing(self, explain: bool) -> Result<Showing, Failure> {
        self.files.check::<Report>()?;
        check_brief(self.brief, self.format, self.files.formats::<Report>(self.format))?;
        Ok(self.into_showing(explain))
    }

    /// How to show several sessions in one table. Flags and formats for a single report are errors.
    pub(super) fn showing_of_sessions(self, explain: bool) -> Result<Showing, Failure> {
        let flags_of_one = [
            (explain, "--explain"),
            (self.ledger, "--ledger"),
            (self.verbose, "--verbose"),
            (self.brief, "--brief"),
        ];
        if let Some((_, flag)) = flags_of_one.iter().find(|(is_typed, _)| *is_typed) {
            return Err(Failure::Usage(format!(
                "{flag} applies to the report of one session, and several sessions are shown as a table; name only one, or leave {flag} out"
            )));
        }
        report::require_writer::<SessionTable>(self.format).map_err(Failure::Usage)?;
        self.files.check::<SessionTable>()?;
        Ok(self.into_showing(explain))
    }

    /// Returns the format of a capture, its output files, and what they may replace. Refuses flags
    /// about judging: a capture is not judged.
    pub(super) fn showing_of_capture(self) -> Result<(&'static Format, Vec<PathBuf>, Replace), Failure> {
        let flags_of_reports = [
            ("--accept", !self.accept.is_empty()),
            ("--ledger", self.ledger),
            ("--verbose", self.verbose),
            ("--brief", self.brief),
        ];
        match flags_of_reports.into_iter().find(|(_, is_typed)| *is_typed) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} applies to the report of a measurement, and this is a capture; leave {flag} out"
            ))),
            None => Ok((self.format, self.files.output, Replace::with_force(self.files.force))),
        }
    }

    /// How to show a report, without checks of the flags.
    fn into_showing(self, explain: bool) -> Showing {
        Showing {
            format: self.format,
            replace: self.files.replace(),
            outputs: self.files.output,
            accept: self.accept,
            ledger: self.ledger,
            detail: detail(self.brief, self.verbose),
            watched: ProgressMode::Auto,
            explain,
            inconclusive: self.inconclusive.inconclusive,
        }
    }
}

impl OutputArgs {
    /// Refuses files whose extension has no format for this kind of report.
    pub(super) fn check<K: ReportKind + ?Sized>(&self) -> Result<(), Failure> {
        let is_known =
            |path: &Path| report::format_by_extension::<K>(path).is_some() || output::is_stream(path);
        let Some(path) = self.output.iter().find(|path| !is_known(path)) else { return Ok(()) };
        let tip = usage_error::explain_diskspd_option(&format!("-o{}", path.display()));
        let why = tip.map_or_else(
            || "no format has this extension; type".to_owned(),
            |tip| format!("{tip}, or for a report a name with the extension"),
        );
        Err(Failure::Usage(format!("-o {}: {why} {}", path.display(), report::file_extensions::<K>())))
    }

    /// Returns the formats of the output files.
    pub(super) fn formats<K: ReportKind + ?Sized>(
        &self,
        printed: &'static Format,
    ) -> impl Iterator<Item = &'static Format> {
        self.output.iter().filter_map(move |path| report::format_of_file::<K>(path, printed))
    }

    /// Which existing files may be replaced.
    pub(crate) fn replace(&self) -> Replace {
        Replace::with_force(self.force)
    }
}

/// How much of a report to show.
pub(super) fn detail(brief: bool, verbose: bool) -> Detail {
    match (brief, verbose) {
        (true, _) => Detail::Brief,
        (_, true) => Detail::All,
        _ => Detail::Usual,
    }
}

/// Refuses `--brief` if no requested format has a short form.
pub(super) fn check_brief(
    brief: bool,
    printed: &'static Format,
    mut of_files: impl Iterator<Item = &'static Format>,
) -> Result<(), Failure> {
    if !brief || printed.has_brief || of_files.any(|format| format.has_brief) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--brief: {} has no short form; type --format text or --format markdown, or leave --brief out",
        printed.name
    )))
}

/// Parses the id of a check of results, which `--accept` may name.
pub(super) fn parse_accepted_check(text: &str) -> Result<CheckId, String> {
    let id: CheckId = text.parse()?;
    if analysis::checks::all().any(|c| c.id == id) {
        return Ok(id);
    }
    Err(format!("{id} checks comparisons, not results; `fathom explain {id}` explains it"))
}

/// Refuses an unknown engine.
fn check_engine(text: &str) -> Result<(), String> {
    let name = text.trim().split(':').next().unwrap_or_default();
    if engine::engines::find(name).is_some() {
        return Ok(());
    }
    Err(format!("there is no engine '{name}'; type one of {}", engine_names(|_| true)))
}

/// Lists the engines with their options, for help.
pub(super) fn list_engines() -> String {
    let mut lines = Vec::new();
    for engine in engine::engines::ENGINES {
        lines.push(format!("- {}: {}", engine.name, engine.about));
        for option in engine.options {
            let number = match option.number {
                TakesNumber::No => "",
                TakesNumber::Optional => "[=N]",
                TakesNumber::Required => "=N",
            };
            lines.push(format!("  - {}:{}{number}: {}", engine.name, option.name, option.about));
        }
    }
    lines.join("\n")
}

/// Lists the keys of a `--line`, for help.
fn list_line_keys() -> String {
    let lines = LINE_KEYS.iter().map(|k| format!("- {}={}: {}", k.name, k.value, k.about));
    lines.collect::<Vec<_>>().join("\n")
}

/// Makes the parser for the name of a format of this kind of report. Its error lists these formats.
pub(super) fn formats_of<K: ReportKind + ?Sized>() -> impl TypedValueParser<Value = &'static Format> {
    let found = |name: String| report::find_format::<K>(&name).ok_or("there is no such format");
    PossibleValuesParser::new(format_names::<K>()).try_map(found)
}

/// The names of the formats that write this kind of report, for help.
pub(super) fn format_names<K: ReportKind + ?Sized>() -> impl Iterator<Item = PossibleValue> {
    report::formats_that_write::<K>()
        .map(|(format, writer)| PossibleValue::new(format.name).help(writer.about))
}

/// Heading of flags about what to do.
pub(super) const WHAT: &str = Group::What.heading();
/// Heading of flags about the target and its bytes.
pub(super) const WHERE: &str = Group::Where.heading();
/// Heading of flags about time and repetitions.
pub(super) const HOW_LONG: &str = Group::HowLong.heading();
/// Heading of flags about concurrency.
pub(super) const HOW_DEEP: &str = Group::HowDeep.heading();
/// Heading of flags about output and exit code.
pub(super) const OUTPUT: &str = Group::Output.heading();
/// Heading of flags that permit overwriting.
pub(super) const SAFETY: &str = Group::Safety.heading();
/// Heading of the settings of a sweep that take several values.
pub(super) const AXES: &str = "Axes";

/// The gate on a comparison: how much slower B may be than A.
#[derive(clap::Args, Debug)]
pub(super) struct SlowerArgs {
    /// Decide whether B is slower than A by more than this percentage (with --against, A is the earlier session): PASS, FAIL or
    /// INCONCLUSIVE, exit code 0, 1 or 4; INVALID, exit code 1, if a side has no number
    #[arg(long, value_name = "PERCENT", help_heading = OUTPUT, value_parser = parse_share)]
    fail_if_slower: Option<f64>,
    /// Numbers that --fail-if-slower checks
    #[arg(long, value_parser = one_of(&FAIL_ON), help_heading = OUTPUT, default_value = "headline", requires = "fail_if_slower", value_name = "FAIL_ON", action = ArgAction::Set)]
    fail_on: bool,
}

/// The values of `--fail-on` with their help. `true` means every number, `false` only the headline.
const FAIL_ON: [(&str, &str, bool); 2] =
    [("headline", "The number in the first line of the answer", false), ("all", "Every number", true)];

impl SlowerArgs {
    /// The limit of `--fail-if-slower`, if typed.
    pub(super) fn slower(&self) -> Option<SlowdownLimit> {
        self.fail_if_slower.map(|share| SlowdownLimit { share, all_numbers: self.fail_on })
    }
}

/// The exit code of an inconclusive gate.
#[derive(clap::Args, Debug)]
pub(super) struct InconclusiveArgs {
    /// Exit with 0 (pass) or 1 (fail) instead of 4 if the answer is INCONCLUSIVE; INVALID remains 1
    #[arg(long, value_name = "WORD", help_heading = OUTPUT, value_parser = one_of(&COUNTS_AS))]
    pub(super) inconclusive: Option<CountsAs>,
}

const COUNTS_AS: [(&str, &str, CountsAs); 2] = [("pass", "", CountsAs::Pass), ("fail", "", CountsAs::Fail)];

/// Makes the parser for the name of a row of a table. `describe` returns the name of a row and its help, which may be empty. The parser
/// ignores case if the flag is declared to do so.
pub(super) fn one_named<T: Sync>(
    rows: &'static [T],
    describe: fn(&T) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = &'static T> {
    let names = rows.iter().map(move |row| match describe(row) {
        (name, "") => PossibleValue::new(name),
        (name, help) => PossibleValue::new(name).help(help),
    });
    PossibleValuesParser::new(names).try_map(move |typed| {
        let is_typed = |row: &&T| typed.eq_ignore_ascii_case(describe(row).0);
        rows.iter().find(is_typed).ok_or("there is no such value")
    })
}

/// Makes the parser for words with a value. Each row has a word, its help (which may be empty), and the value.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    rows: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    one_named(rows, |(word, help, _)| (word, help)).map(|(.., value)| *value)
}

/// Parses a percentage below 100 % as a share: 100 % would be no limit.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    match number::share(text)? {
        percent if percent < 100.0 => Ok(percent / 100.0),
        _ => Err(format!("'{text}' is not below 100 %; type a percentage such as 5%")),
    }
}

/// Makes the parser of a target.
pub(super) fn target_parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(|typed: OsString| target_path(&typed))
}

/// Returns the path of a target: as typed, or of the block device with that name. If both exist, takes the file and prints both paths.
pub(super) fn target_path(typed: &OsStr) -> PathBuf {
    let path = Path::new(typed);
    let Some(node) = devices::node(&Root::real(), path) else { return path.to_owned() };
    if std::fs::symlink_metadata(path).is_err() {
        return node;
    }
    stderr::print(&format!(
        "fathom: {typed} means the file in the current directory; for the block device type {}",
        name::shown(&node),
        typed = name::shown(path)
    ));
    path.to_owned()
}

/// Finds a check by id or name, in upper or lower case.
///
/// # Errors
/// A message that names the checks with this word in their name. If there are none, it names a
/// similar check, if any.
pub(super) fn find_check(typed: &str) -> Result<CheckPage, String> {
    let mut word = typed.to_ascii_uppercase();
    // Ids have two digits, so read `B5` as `B05`.
    if word.len() == 2 && word.is_char_boundary(1) {
        word.insert(1, '0');
    }
    let id = word.parse::<CheckId>().ok();
    if let Some(check) = pages().find(|c| Some(c.id) == id || c.name == word) {
        return Ok(check);
    }
    // A typed `O`, `I` or `L` in an id is probably a digit.
    let figures = word.replace('O', "0").replace(['I', 'L'], "1");
    let named: Vec<String> = pages()
        .filter(|c| c.name.split('_').any(|part| part == word))
        .map(|c| format!("{} {}", c.id, c.name))
        .collect();
    let nearest =
        most_similar(pages(), |c| likeness(&figures, &c.id.to_string()).max(likeness(&word, c.name)));
    let similar = match nearest {
        _ if !named.is_empty() => format!("; this word is in {}", named.join(", ")),
        Some(c) => format!("; the nearest is {} {}", c.id, c.name),
        None => String::new(),
    };
    Err(format!(
        "there is no check or term '{typed}'{similar}; `fathom explain` lists the checks, `fathom help glossary` the terms"
    ))
}

#[test]
fn every_flag_has_a_heading_in_the_common_order() {
    use clap::CommandFactory;
    let order = [WHAT, AXES, WHERE, HOW_LONG, HOW_DEEP, OUTPUT, SAFETY];
    for command in crate::cli::Cli::command().get_subcommands() {
        // Under a heading, an argument would be among the flags.
        for argument in command.get_positionals() {
            assert_eq!(argument.get_help_heading(), None, "{} {}", command.get_name(), argument.get_id());
        }
        let flags = command.get_arguments().filter(|a| !a.is_positional() && !a.is_hide_set());
        let mut last = 0;
        let mut seen = Vec::new();
        for flag in flags {
            let (command, name) = (command.get_name(), flag.get_id());
            let heading = flag.get_help_heading();
            let at = order.iter().position(|known| Some(*known) == heading);
            let at = at.unwrap_or_else(|| panic!("{command} --{name} has the heading {heading:?}"));
            assert!(seen.contains(&at) || at >= last, "{command} --{name}: {heading:?} is too late");
            seen.push(at);
            last = last.max(at);
        }
    }
}

#[test]
fn checks_are_found_by_id_and_name_in_any_case() {
    for typed in ["A01", "a01", "cache_served", "CACHE_SERVED"] {
        assert_eq!(find_check(typed).map(|c| c.id), Ok(CheckId::A01), "{typed}");
    }
    let slips = [("CACHE_SERVE", "A01"), ("LITTLES_VIOLATED", "B18"), ("e1O", "E10")];
    for (typed, expected) in slips {
        let why = find_check(typed).err().unwrap_or_default();
        assert!(why.contains(typed) && why.contains(expected), "{typed}: {why}");
    }
    assert!(find_check("").is_err());
    let why = |typed: &str| find_check(typed).err().unwrap_or_default();
    let cpu = why("CPU");
    assert!(
        cpu.contains("this word is in ") && cpu.contains(" CPU_BOUND") && cpu.contains(" CPU_QUOTA"),
        "{cpu}"
    );
    assert_eq!(
        why("nosuch"),
        "there is no check or term 'nosuch'; `fathom explain` lists the checks, `fathom help glossary` the terms"
    );
}
