//! `fathom sweep`, and `fathom iops`, which is a sweep with the preset of that name: their flags.

use super::Command::{Iops, Sweep};
use super::{Cli, insert_command};
use crate::cli::shared_flags::{
    self, BudgetArgs, FleetArgs, HOW_DEEP, HOW_LONG, Measuring, OUTPUT, ReportArgs, WHAT, check_job,
    one_named,
};
use crate::failure::Failure;
use crate::request::{Request, SweepSpec, Work};
use crate::show::Showing;
use clap::builder::TypedValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, Command, FromArgMatches, Parser};
use model::job::Line;
use model::plan::Plan;
use model::spec::Rw;
use model::spec::axes::{AXES, Axes, Axis, PRESETS, Preset, Procedure, find};
use model::spec::iometer::{Cycle, OWN_LINES, Spec, Step};
use model::spec::number::{share, size};
use model::sweep::Measure;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;

/// Find the best settings for a target: block size x depth x workers x engine x cache mode.
///
/// Each cell of the grid is a real job, with an empty page cache before each run. An adaptive search measures each cell briefly once or
/// twice, then repeats the cells that may be the best until no setting is faster by more than the tolerance (95 % confidence) or the
/// budget is spent. Then the winner, the cheapest cell that is as fast, and the access patterns of cp and dd are measured five times in
/// turns. Each direction (read, write, ...) has its own winner. The preset iops, and the presets whose names
/// begin with pts, have no winner: they measure their cells in order.
#[derive(clap::Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Args {
    /// Directories, files or block devices, all used at once [default: the current directory]
    #[arg(value_name = "TARGET", value_parser = shared_flags::target_parser())]
    typed_targets: Vec<PathBuf>,
    /// Named grid; flags of an axis replace its values
    #[arg(long, value_name = "NAME", value_parser = one_named(PRESETS, |p| (p.name, p.about)), help_heading = WHAT)]
    preset: Option<&'static Preset>,
    /// Rank the cells by this measure, and show it in maps [default: iops for random access, bandwidth for sequential access]
    #[arg(long, value_name = "MEASURE", value_parser = measure_parser(), help_heading = WHAT)]
    by: Option<Measure>,
    /// Access specifications of a configuration file of Iometer (.icf), in addition to those of --spec if it is given
    #[arg(long, value_name = "FILE", help_heading = WHAT)]
    spec_file: Option<PathBuf>,
    /// Test type of the preset iometer, in upper or lower case [default: NORMAL]
    #[arg(long, value_name = "TYPE", value_parser = Cycle::parse, long_help = describe_cycles(), help_heading = WHAT)]
    cycle: Option<Cycle>,
    /// How a test type increases workers, targets and outstanding I/Os: linear or exponential [default: linear; exponential for outstanding I/Os]
    #[arg(long, value_name = "LAW", value_parser = Step::parse, help_heading = WHAT)]
    step: Option<Step>,
    /// Order of the reads of --preset iops; with sequential, each thread reads its own part [default: random]
    #[arg(long, value_name = "ORDER", value_enum, help_heading = WHAT)]
    pattern: Option<ReadOrder>,
    /// Continue an interrupted sweep: its session file, a part of its id, or last
    #[arg(long, value_name = "SESSION", help_heading = WHAT)]
    resume: Option<String>,
    #[command(flatten)]
    axes: AxisFlags,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Measure every cell equally often instead of searching; default for the preset ccsio-classic, and
    /// without --budget for iometer and zones
    #[arg(long, conflicts_with = "budget", help_heading = HOW_LONG)]
    exhaustive: bool,
    #[command(flatten)]
    budget: BudgetArgs,
    /// End the search when no setting can be faster than the winner by more than this [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_tolerance, help_heading = HOW_LONG)]
    tolerance: Option<f64>,
    /// Skip cells whose buffers need more memory than this [default: 64m, with --preset iops half of the machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = |t: &str| size(t, 1, u64::MAX), help_heading = HOW_DEEP)]
    memory: Option<u64>,
    /// Print the cells, one per line, and stop
    #[arg(long, conflicts_with_all = ["skipped", "list_specs", "format", "output", "explain", "inconclusive"], help_heading = OUTPUT)]
    list: bool,
    /// Print the cells that would be skipped, one per line with the reason, and stop
    #[arg(long, conflicts_with_all = ["format", "output", "explain"], help_heading = OUTPUT)]
    skipped: bool,
    /// Print the access specifications of --spec with their lines, and stop
    #[arg(long, conflicts_with_all = ["format", "output", "explain"], help_heading = OUTPUT)]
    list_specs: bool,
    #[command(flatten)]
    report: ReportArgs,
}

/// The values of `--pattern`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReadOrder {
    Random,
    Sequential,
}

/// What to do with a grid.
#[derive(Debug)]
pub enum Action {
    /// Measure the sweep.
    Measure(Request, Showing),
    /// Print the cells to be measured.
    List(Request),
    /// Print the cells that cannot be measured.
    Skipped(Request),
    /// Print the library of access specifications.
    Specs,
    /// Continue the named session.
    Resume(String, Showing),
}

/// Describes the test types, for help.
fn describe_cycles() -> String {
    let mut out = String::from(
        "Test type of the preset iometer, in upper or lower case [default: NORMAL]\n\nWorkers increase from 1 to the number of CPUs, \
         targets from 1 to all that are named, outstanding I/Os from 1 to 32. A single number for --workers, --targets or --depth is the \
         maximum; a list or range replaces all numbers.\n\nPossible values:",
    );
    for (word, cycle) in Cycle::ALL {
        out += &format!("\n- {word}: {}", cycle.about());
    }
    out
}

/// Makes the parser of a measure that can rank cells.
fn measure_parser() -> impl TypedValueParser<Value = Measure> {
    one_named(&Measure::WORDS, |(word, _, about)| (word, about)).map(|(_, measure, _)| *measure)
}

/// Parses a tolerance: a percentage, returned as a share.
fn parse_tolerance(text: &str) -> Result<f64, String> {
    let percent = share(text)?;
    if (0.1..=50.0).contains(&percent) {
        return Ok(percent / 100.0);
    }
    Err(format!("'{text}' is not a tolerance; type a percentage from 0.1 to 50"))
}

impl Args {
    /// Refuses options that a preset with a fixed order cannot use, `--budget` for a preset that measures each cell once, and `--pattern`
    /// without the preset `iops`.
    fn check_preset(&self, axes: &Axes) -> Result<(), Failure> {
        let refuse = |why: String| Err(Failure::Usage(why));
        let procedure = self.preset.map_or(Procedure::Sought, |p| p.procedure);
        let name = self.preset.map_or("", |p| p.name);
        let is_until_slow = matches!(procedure, Procedure::UntilSlow { .. });
        if self.pattern.is_some() && !is_until_slow {
            return refuse(
                "--pattern requires --preset iops; type --rw read or --rw randread instead".into(),
            );
        }
        if procedure == Procedure::Once && self.budget.budget.is_some() {
            return refuse(format!(
                "--budget: --preset {name} measures every cell once; leave --budget out, or type --preset ccsio"
            ));
        }
        if !self.preset.is_some_and(Preset::is_in_order) {
            return Ok(());
        }
        let flags = [
            (self.exhaustive, "--exhaustive"),
            (self.budget.budget.is_some(), "--budget"),
            (self.tolerance.is_some(), "--tolerance"),
        ];
        if let Some((_, flag)) = flags.iter().find(|(typed, _)| *typed) {
            return refuse(format!(
                "{flag}: --preset {name} measures every cell in order and does not search for the best; leave {flag} out"
            ));
        }
        if let Some(by) = self.by {
            return refuse(format!(
                "--by {}: --preset {name} measures every cell in order and ranks none; leave --by out",
                by.word()
            ));
        }
        if let Some(attempts) = self.measuring.keys.job.attempts.filter(|attempts| *attempts > 1) {
            return refuse(format!(
                "--attempts {attempts}: --preset {name} does not repeat a disturbed run; leave --attempts out"
            ));
        }
        if axes.depth.len() > 1 || (axes.workers.len() > 1 && !is_until_slow) {
            let workers = if is_until_slow { "" } else { "one number of --workers and " };
            return refuse(format!("--preset {name} takes {workers}one --depth; type a single number"));
        }
        if let Some(axis) = [("target", axes.target.len()), ("offset", axes.offset.len())]
            .iter()
            .find_map(|(axis, values)| (*values > 0).then_some(axis))
        {
            return refuse(format!(
                "--preset {name} measures one target completely; leave --{axis} out, or sweep without the preset"
            ));
        }
        if is_until_slow && self.axes.names().contains(&"rw") {
            return refuse(format!(
                "--preset {name} only reads; type --pattern random or --pattern sequential instead of --rw"
            ));
        }
        Ok(())
    }

    /// Whether options were typed that a resumed session already has, or that print something instead of continuing it.
    fn conflicts_with_resume(&self) -> bool {
        self.measuring.is_typed()
            || self.fleet.ranks_per_host.is_some()
            || self.report.explain
            || !self.typed_targets.is_empty()
            || self.preset.is_some()
            || !self.axes.given.is_empty()
            || self.by.is_some()
            || self.spec_file.is_some()
            || self.cycle.is_some()
            || self.step.is_some()
            || self.pattern.is_some()
            || self.exhaustive
            || self.budget.budget.is_some()
            || self.tolerance.is_some()
            || self.memory.is_some()
            || self.list
            || self.list_specs
            || self.skipped
    }

    /// Returns the action.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn into_action(self) -> Result<Action, Failure> {
        if let Some(word) = &self.resume {
            if self.conflicts_with_resume() {
                return Err(Failure::Usage(format!(
                    "--resume {word}: the session defines what is measured and how; leave out TARGET and all flags that do not concern the report"
                )));
            }
            return Ok(Action::Resume(word.clone(), self.report.showing()?));
        }
        if self.list_specs {
            return Ok(Action::Specs);
        }
        let mut axes = Axes::default();
        for (axis, text) in self.preset.map_or(&[][..], |p| p.settings) {
            set_axis(&mut axes, find(axis).map_err(Failure::Usage)?, text)?;
        }
        if self.spec_file.is_some() && !self.axes.names().contains(&"spec") {
            axes.spec.clear();
        }
        // The typed values replace those of the preset.
        self.axes.given.iter().try_for_each(|(axis, text)| set_axis(&mut axes, axis, text))?;
        if let Some(file) = &self.spec_file {
            axes.spec.extend(super::iometer::read_specs(file)?);
        }
        self.check_preset(&axes)?;
        if self.pattern == Some(ReadOrder::Sequential) {
            axes.rw = vec![Rw::Read];
        }
        let targets = choose_targets(&axes, self.typed_targets)?;
        let is_once = self.preset.is_some_and(|p| p.procedure == Procedure::Once);
        let each =
            self.budget.budget.is_none() && self.preset.is_some_and(|p| p.procedure == Procedure::Each);
        let exhaustive = self.exhaustive || each || is_once;
        let spec = SweepSpec {
            axes,
            flags: self.axes.names(),
            preset: self.preset,
            memory: self.memory,
            exhaustive,
            by: self.by,
            tolerance: self.tolerance,
            cycle: self.cycle,
            step: self.step,
        };
        let mut request = self.measuring.request(Work::Sweep(Box::new(spec)), targets);
        request.ranks_per_host = self.fleet.ranks_per_host;
        request.budget_ns = self.budget.budget;
        request.job.runs = request.job.runs.or(is_once.then_some(1));
        if let Some(runs) = request.job.runs.filter(|_| !exhaustive) {
            return Err(Failure::Usage(format!(
                "--runs {runs} requires --exhaustive: otherwise the search decides how often it measures a cell; type --exhaustive too, or leave --runs out"
            )));
        }
        // Whether a flag has an effect depends on the cells, which only the plan has: check the job as if it read and wrote.
        let mut widest = request.job.clone();
        widest
            .streams_mut()
            .filter(|s| s.resolved.access.lines.is_empty())
            .for_each(|s| s.rw = Some(Rw::Randrw));
        check_job(&widest)?;
        add_own_lines(&mut request);
        if self.list {
            return Ok(Action::List(request));
        }
        if self.skipped {
            return Ok(Action::Skipped(request));
        }
        Ok(Action::Measure(request, self.report.showing()?))
    }
}

/// Returns the targets: either the typed targets, which are used together, or the values of `--target`, which are measured one at a time.
fn choose_targets(axes: &Axes, typed_targets: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    match typed_targets.first() {
        Some(place) if !axes.target.is_empty() => Err(Failure::Usage(format!(
            "--target measures its targets one at a time, but {} was typed without a flag; type all targets after --target, or \
             all without --target to use them at once",
            model::name::shown(place)
        ))),
        Some(_) => Ok(typed_targets),
        None => Ok(axes.target.iter().map(|path| model::name::path(path)).collect()),
    }
}

/// Returns the request of an earlier sweep's command line, for `--resume`.
///
/// # Errors
/// A usage failure if it was not a sweep, or this version does not understand it.
pub fn repeat_request(word: &str, before: &Plan) -> Result<Request, Failure> {
    let refuse = |why: &str| Failure::Usage(format!("--resume {word}: {why}"));
    if before.study.grid().is_none() {
        return Err(refuse("that session is not a sweep; name a session of `fathom sweep`"));
    }
    let words = insert_command(before.command.iter().map(|word| model::name::from_text(word)).collect());
    let cli = Cli::try_parse_from(words).map_err(|_| {
        refuse("this version does not understand the session's command line; start a new sweep")
    })?;
    let given = match cli.command {
        Sweep(args) => args.into_action()?,
        Iops(args) => args.into_sweep_action()?,
        _ => return Err(refuse("the session's command line is not a sweep")),
    };
    let Action::Measure(request, _) = given else {
        return Err(refuse("the session's command line measures nothing"));
    };
    Ok(Request { command: before.command.clone(), ..request })
}

/// Turns the lines of `--line` into an access specification. It is added to those of `--spec`, or
/// replaces those of the preset.
fn add_own_lines(request: &mut Request) {
    let lines: Vec<Line> =
        request.job.streams_mut().flat_map(|s| std::mem::take(&mut s.resolved.access.lines)).collect();
    if let Work::Sweep(spec) = &mut request.work
        && !lines.is_empty()
    {
        if !spec.flags.contains(&"spec") {
            spec.axes.spec.clear();
        }
        spec.axes.spec.push(Spec { name: OWN_LINES.into(), lines });
    }
}

/// The axes as flags, from their table.
#[derive(Debug)]
struct AxisFlags {
    /// The typed axes and their values.
    given: Vec<(&'static Axis, String)>,
}

impl AxisFlags {
    fn names(&self) -> Vec<&'static str> {
        self.given.iter().map(|(axis, _)| axis.name).collect()
    }
}

fn set_axis(axes: &mut Axes, axis: &Axis, text: &str) -> Result<(), Failure> {
    axis.parse_into(axes, text, is_engine).map_err(|why| Failure::Usage(format!("--{}: {why}", axis.name)))
}

impl clap::Args for AxisFlags {
    fn augment_args(command: Command) -> Command {
        command.args(AXES.iter().map(|axis| {
            // Parse here so that clap can name the flag in an error; the value is parsed again where it is used.
            let parse =
                |text: &str| axis.parse_into(&mut Axes::default(), text, is_engine).map(|()| text.to_owned());
            Arg::new(axis.name)
                .long(axis.name)
                .value_name(axis.value)
                .help(axis.about)
                .help_heading(shared_flags::AXES)
                .value_parser(parse)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for AxisFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |axis: &'static Axis| Some((axis, matches.get_one::<String>(axis.name)?.clone()));
        Ok(Self { given: AXES.iter().filter_map(given).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn is_engine(name: &str) -> bool {
    engine::engines::find(name).is_some()
}

/// Read blocks of doubling sizes with 32 threads past the page cache, as the program iops does, and print its lines.
///
/// `fathom sweep --preset iops` measures the same and has more options. If fathom is called by the name iops, it runs this command.
#[derive(clap::Args, Debug)]
pub struct IopsArgs {
    /// Block device, file or directory
    #[arg(value_name = "DEVICE", required = true)]
    device: PathBuf,
    /// A single block size [default: all from 512 bytes on]
    #[arg(short = 'b', long = "block-size", value_name = "SIZE", help_heading = WHAT)]
    block: Option<String>,
    /// Order of the reads: random or sequential [default: random]
    #[arg(short = 'p', long, value_name = "ORDER", help_heading = WHAT)]
    pattern: Option<String>,
    /// Seconds for each size [default: 2]
    #[arg(short = 't', long = "time", value_name = "SECONDS", help_heading = HOW_LONG)]
    seconds: Option<u32>,
    /// Number of threads [default: 32]
    #[arg(short = 'n', long = "num-threads", value_name = "N", help_heading = HOW_DEEP)]
    threads: Option<u32>,
    /// Also write the report to a file, in the format of its extension; .html has charts of operations and throughput by block size
    #[arg(short = 'o', long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Refused: type fathom sweep --preset iops --format csv DEVICE instead
    #[arg(short = 'm', long, help_heading = OUTPUT)]
    machine_readable: bool,
}

impl IopsArgs {
    /// Returns the action of the equivalent sweep.
    ///
    /// # Errors
    /// A usage failure for an invalid value, and for `-m`.
    pub fn into_sweep_action(self) -> Result<Action, Failure> {
        if self.machine_readable {
            let why = "-m of iops prints lines without units; type fathom sweep --preset iops --format csv DEVICE instead, whose columns have names";
            return Err(Failure::Usage(why.into()));
        }
        let mut words: Vec<OsString> = ["fathom", "sweep", "--preset", "iops"].map(OsString::from).to_vec();
        let mut add = |flag: &str, value: Option<String>| {
            words.extend(value.map(|value| OsString::from(format!("{flag}={value}"))));
        };
        add("--workers", self.threads.map(|n| n.to_string()));
        add("--time", self.seconds.map(|s| format!("{s}s")));
        add("--bs", self.block);
        add("--pattern", self.pattern);
        words.extend(self.output.into_iter().flat_map(|path| ["--output".into(), path.into_os_string()]));
        words.extend(["--".into(), self.device.into_os_string()]);
        let read = Cli::try_parse_from(words).map_err(|wrong| in_terms_of_iops(&wrong))?;
        match read.command {
            Sweep(args) => args.into_action(),
            _ => Err(Failure::Usage("fathom iops is a sweep; type fathom sweep --preset iops DEVICE".into())),
        }
    }
}

/// Describes an invalid value by the flag of iops that was typed, not by the equivalent flag of `fathom sweep`.
fn in_terms_of_iops(wrong: &clap::Error) -> Failure {
    let given = |kind: ContextKind| match wrong.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let flag = given(ContextKind::InvalidArg);
    let own = [("--workers", "-n"), ("--time", "-t"), ("--bs", "-b"), ("--pattern", "-p")];
    let own = own.iter().find(|(of_sweep, _)| flag.starts_with(of_sweep)).map_or(flag, |(_, own)| own);
    let why = match (wrong.source(), wrong.get(ContextKind::ValidValue)) {
        (Some(why), _) => why.to_string(),
        (None, Some(ContextValue::Strings(known))) => format!("type {}", known.join(" or ")),
        (None, _) => wrong.kind().to_string(),
    };
    Failure::Usage(format!("{own} {}: {why}", given(ContextKind::InvalidValue)))
}
