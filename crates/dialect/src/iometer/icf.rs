//! Iometer's configuration files. Lines that begin with an apostrophe are headings. Other lines are values of the heading before them.
//!
//! Source: Iometer 1.1.0, User's Guide, and the files that it writes. Files of 2004 and 2006 have fewer fields and are read too.

use crate::trouble::{Diagnostic, Trouble, quoted};
use model::job::{Line, Mix, PerKind, Sizes};
use model::spec::iometer::{Cycle, Step, order};
use model::spec::number::{MAX_BLOCK_BYTES, MAX_LINES};
use std::ops::Range;

/// The numbers of workers, targets or outstanding operations from test to test, in linear or exponential steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progression {
    pub(super) start: u32,
    /// The last number. `None` means the number of existing targets or workers.
    pub(super) end: Option<u32>,
    pub(super) by: u32,
    pub(super) law: Step,
}

/// An access specification.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) name: String,
    /// Default assignment: NONE, ALL, DISK or NET.
    pub(super) default: String,
    pub(super) lines: Vec<Line>,
    pub(super) place: Range<usize>,
}

impl Spec {
    /// Returns the lines that have operations. Iometer also accepts lines with a share of 0.
    pub(super) fn used_lines(&self) -> Vec<Line> {
        self.lines.iter().filter(|line| line.weight > 0).cloned().collect()
    }
}

/// A worker with its targets.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) outstanding: u32,
    /// Seed, if the file fixes one.
    pub(super) seed: Option<u64>,
    /// Number of sectors of each target that are used at most; 0 means the whole target.
    pub(super) sectors: u64,
    pub(super) first_sector: u64,
    /// Data of writes: 0 repeating bytes, 1 one buffer for all writes, 2 random.
    pub(super) pattern: u32,
    /// Names of access specifications with their places.
    pub(super) specs: Vec<(String, Range<usize>)>,
    /// Names of targets with their places.
    pub(super) targets: Vec<(String, Range<usize>)>,
    pub(super) place: Range<usize>,
}

/// A computer with its workers.
#[derive(Clone, Debug)]
pub(super) struct Manager {
    pub(super) name: String,
    /// Network address of the computer; empty for the computer of Iometer itself.
    pub(super) address: String,
    pub(super) workers: Vec<Worker>,
    pub(super) place: Range<usize>,
}

/// A whole file.
#[derive(Clone, Debug)]
pub(super) struct Icf {
    pub(super) description: String,
    pub(super) seconds: u64,
    pub(super) ramp_seconds: u64,
    /// Recorded results: ALL, NO_TARGETS, NO_WORKERS, NO_MANAGERS or NONE.
    pub(super) record: String,
    pub(super) workers: Progression,
    pub(super) targets: Progression,
    pub(super) outstanding: Progression,
    pub(super) cycle: Cycle,
    pub(super) specs: Vec<Spec>,
    pub(super) managers: Vec<Manager>,
}

/// Values of the heading `'Record Results`, by their numbers in old files.
const RECORDED: [&str; 5] = ["ALL", "NO_TARGETS", "NO_WORKERS", "NO_MANAGERS", "NONE"];
/// Values of an access specification's default assignment, by their numbers in old files.
const DEFAULTS: [&str; 4] = ["NONE", "ALL", "DISK", "NET"];

impl Default for Icf {
    /// The values of a new file in Iometer's editor.
    fn default() -> Self {
        let progression = |end, by, law| Progression { start: 1, end, by, law };
        Self {
            description: String::new(),
            seconds: 0,
            ramp_seconds: 0,
            record: RECORDED[0].into(),
            workers: progression(None, 1, Step::Linear),
            targets: progression(None, 1, Step::Linear),
            outstanding: progression(Some(32), 2, Step::Exponential),
            cycle: Cycle::Normal,
            specs: Vec::new(),
            managers: Vec::new(),
        }
    }
}

impl Icf {
    /// Adds a line to the last specification, or to a new one if the shares of its lines sum to 100 already. As in Iometer, every worker
    /// runs this specification.
    fn add_unnamed(&mut self, line: Line, place: Range<usize>) {
        let sum = |spec: &Spec| spec.lines.iter().map(|line| line.weight).sum::<u32>();
        let number = self.specs.len();
        if let Some(spec) = self.specs.last_mut().filter(|spec| sum(spec) < 100) {
            spec.lines.push(line);
            spec.name = format!("Untitled {number}");
            return;
        }
        let (size, reads) =
            (model::units::show_bytes(line.sizes.read.most().into()), line.mix.read_percent.get());
        let base = format!("{size}; {reads}% Read; {}% random", line.random_percent());
        let taken = self.specs.iter().filter(|spec| spec.name.starts_with(&base)).count();
        let name = if taken == 0 { base } else { format!("{base} {}", taken + 1) };
        self.specs.push(Spec { name, default: "ALL".into(), lines: vec![line], place });
    }

    /// The access specifications of a worker in their order; those for all disks if the worker has none. `None` means Idle.
    pub(super) fn assigned(&self, worker: &Worker) -> Vec<Option<&Spec>> {
        if worker.specs.is_empty() {
            return self
                .specs
                .iter()
                .filter(|s| matches!(s.default.as_str(), "ALL" | "DISK"))
                .map(Some)
                .collect();
        }
        worker.specs.iter().map(|(name, _)| self.spec(name)).collect()
    }

    /// The access specification with this name. The case of letters does not matter.
    fn spec(&self, name: &str) -> Option<&Spec> {
        let name = name.to_lowercase();
        self.specs.iter().find(|spec| spec.name.to_lowercase() == name)
    }
}

/// Reads a file.
///
/// # Errors
/// All errors, each with its place.
pub(super) fn read(name: &str, text: &str) -> Result<Icf, Trouble> {
    Trouble::refuse_large(name, text, "a configuration")?;
    let mut reader =
        Reader { icf: Icf::default(), diagnostics: Vec::new(), heading: String::new(), skips: false };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let value = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        let start = at + line.find(value).unwrap_or(0);
        reader.line(value, start..start + value.len());
        at += line.len();
    }
    reader.check();
    Trouble::refuse_errors(name, text, reader.diagnostics)?;
    Ok(reader.icf)
}

struct Reader {
    icf: Icf,
    diagnostics: Vec<Diagnostic>,
    /// The last heading, in lower case.
    heading: String,
    /// Whether the current section has no effect on measurements.
    skips: bool,
}

impl Reader {
    fn line(&mut self, line: &str, place: Range<usize>) {
        let lower = line.to_ascii_lowercase();
        let heading = lower.strip_prefix('\'').map(str::trim);
        // The version line is before the first section and after the last one. Below a heading, such a line is an ordinary value.
        if lower.trim_start_matches('\'').starts_with("version ")
            && (heading.is_some() || self.heading.is_empty())
        {
            return;
        }
        match heading {
            Some(end) if end.starts_with("end") => {
                self.heading.clear();
                self.skips = false;
            }
            Some(begins) if begins.starts_with("results display") => self.skips = true,
            // A second heading line names the columns of the values.
            Some(columns)
                if columns.starts_with("hours")
                    || columns.starts_with("start ")
                    || columns.starts_with("start\t") => {}
            Some(heading) => heading.clone_into(&mut self.heading),
            None if self.skips || (line.is_empty() && !self.heading.starts_with("test description")) => {}
            None => {
                if let Err(why) = self.value(line, place.clone()) {
                    self.diagnostics.push(Diagnostic::new(place, why));
                }
            }
        }
    }

    fn value(&mut self, value: &str, place: Range<usize>) -> Result<(), String> {
        let heading = self.heading.clone();
        let icf = &mut self.icf;
        match heading.as_str() {
            "test description" => icf.description = value.replace(',', " "),
            "run time" => {
                let [hours, minutes, seconds] = numbers::<3>(value)?;
                icf.seconds = hours
                    .saturating_mul(3600)
                    .saturating_add(minutes.saturating_mul(60))
                    .saturating_add(seconds);
            }
            h if h.starts_with("ramp up time") => icf.ramp_seconds = number(value)?,
            // Ignore this heading: the list of managers decides which workers exist.
            h if h.starts_with("default ") && h.contains("workers to spawn") => {}
            h if h.starts_with("manager network address") => {
                let manager = icf.managers.last_mut();
                let manager =
                    manager.ok_or("an address has no manager; write 'Manager ID, manager name before it")?;
                value.clone_into(&mut manager.address);
            }
            "record results" => icf.record = one_of(value, &RECORDED)?,
            "worker cycling" => icf.workers = parse_progression(value, false)?,
            "disk cycling" | "target cycling" => icf.targets = parse_progression(value, false)?,
            "queue depth cycling" => icf.outstanding = parse_progression(value, true)?,
            "test type" => {
                icf.cycle = match entry_at(value, &Cycle::ALL) {
                    Some((_, cycle)) => *cycle,
                    None => Cycle::parse(value)?,
                }
            }
            h if h.starts_with("access specification name") => {
                let (name, default) = value.rsplit_once(',').unwrap_or((value, "NONE"));
                let default = one_of(default, &DEFAULTS)?;
                icf.specs.push(Spec { name: name.trim().to_owned(), default, lines: Vec::new(), place });
            }
            // Before 1998.05.21 a line had only the first six of today's eight numbers, and specifications
            // had no names.
            h if (h.starts_with("size") || h.starts_with("access specifications"))
                && fields(value).len() == 6 =>
            {
                // These lines are aligned to 2 KiB and have no reply.
                icf.add_unnamed(line(&format!("{value} 2048 0"))?, place);
            }
            h if h.starts_with("size,") => {
                let spec = icf
                    .specs
                    .last_mut()
                    .ok_or("a line has no access specification; write its name before it")?;
                if spec.lines.len() == MAX_LINES {
                    return Err(format!("there are too many lines; write {MAX_LINES} at most"));
                }
                spec.lines.push(line(value)?);
            }
            h if h.starts_with("manager id") => {
                let name = value.split_once(',').map_or(value, |(_, name)| name).trim().to_owned();
                icf.managers.push(Manager { name, address: String::new(), workers: Vec::new(), place });
            }
            _ => return self.worker_value(&heading, value, place),
        }
        Ok(())
    }

    fn worker_value(&mut self, heading: &str, value: &str, place: Range<usize>) -> Result<(), String> {
        let manager = self.icf.managers.last_mut();
        if heading == "worker" {
            let manager =
                manager.ok_or("a worker has no manager; write 'Manager ID, manager name before it")?;
            manager.workers.push(Worker {
                name: value.to_owned(),
                outstanding: 1,
                seed: None,
                sectors: 0,
                first_sector: 0,
                pattern: 1,
                specs: Vec::new(),
                targets: Vec::new(),
                place,
            });
            return Ok(());
        }
        let known =
            ["worker type", "number of outstanding", "disk maximum size", "assigned access specs", "target"];
        if !known.iter().any(|k| heading.starts_with(k)) {
            return Err(format!(
                "Iometer has no heading {}; write one of its headings before this",
                quoted(heading)
            ));
        }
        let worker = manager
            .and_then(|m| m.workers.last_mut())
            .ok_or("this belongs to a worker; write 'Worker before it")?;
        let fields: Vec<&str> = value.split(',').map(str::trim).collect();
        match heading {
            "worker type" | "target type" if !value.eq_ignore_ascii_case("disk") => {
                return Err(format!(
                    "{} is not a disk, and fathom only measures disks; remove this worker",
                    quoted(value)
                ));
            }
            h if h.starts_with("number of outstanding") => {
                let outstanding = u32::try_from(number(fields[0])?).ok().filter(|number| *number > 0);
                worker.outstanding =
                    outstanding.ok_or("a target has 1 or more outstanding I/Os; write 1 or more")?;
                if fields.get(1).is_some_and(|rate| rate.eq_ignore_ascii_case("enabled")) {
                    return Err("disks have no connections to open and close; write DISABLED".into());
                }
                let is_fixed = fields.get(3).is_some_and(|fixed| fixed.eq_ignore_ascii_case("enabled"));
                worker.seed =
                    if is_fixed { Some(number(fields.get(4).copied().unwrap_or(""))?) } else { None };
            }
            h if h.starts_with("disk maximum size") => {
                worker.sectors = number(fields[0])?;
                worker.first_sector = number(fields.get(1).copied().unwrap_or("0"))?;
                let pattern = number(fields.get(2).copied().unwrap_or("1"))?;
                let known = u32::try_from(pattern).ok().filter(|pattern| *pattern <= 2);
                worker.pattern = known.ok_or("there are three patterns of data; write 0, 1 or 2")?;
            }
            "assigned access specs" => worker.specs.push((value.to_owned(), place)),
            "target" => worker.targets.push((value.to_owned(), place)),
            _ => {}
        }
        Ok(())
    }

    /// Checks the file as a whole.
    fn check(&mut self) {
        for spec in &self.icf.specs {
            let sum: u32 = spec.lines.iter().map(|line| line.weight).sum();
            if sum != 100 {
                let why =
                    format!("the percentages of the lines add up to {sum}; write lines that add up to 100");
                self.diagnostics.push(Diagnostic::new(spec.place.clone(), why));
            }
        }
        let workers = self.icf.managers.iter().flat_map(|m| &m.workers);
        for (name, place) in workers.flat_map(|w| &w.specs) {
            if self.icf.spec(name).is_none() && !name.eq_ignore_ascii_case("idle") {
                let why = format!(
                    "there is no access specification {}; define it, or assign another specification",
                    quoted(name)
                );
                self.diagnostics.push(Diagnostic::new(place.clone(), why));
            }
        }
    }
}

/// Parses `size,% of size,% reads,% random,delay,burst,align,reply`.
fn line(value: &str) -> Result<Line, String> {
    let [size, share, reads, random, delay, burst, align, reply] = numbers::<8>(value)?;
    let percent = |n: u64, what: &str| {
        u8::try_from(n)
            .ok()
            .filter(|n| *n <= 100)
            .ok_or_else(|| format!("{n} {what} is not a percentage; write 0 to 100"))
    };
    if size == 0 || size.max(align).max(reply) > MAX_BLOCK_BYTES {
        return Err(format!("an operation has 1 to {MAX_BLOCK_BYTES} bytes; write another size"));
    }
    Ok(Line {
        weight: percent(share, "% of size")?.into(),
        sizes: PerKind::all(Sizes::Fixed(size as u32)),
        mix: Mix::from_percents(percent(reads, "% reads")?, 0),
        order: order(percent(random, "% random")?.into()),
        delay_ns: delay.checked_mul(1_000_000).ok_or("the delay is too long; write a shorter delay in ms")?,
        burst: u32::try_from(burst).map_err(|_| "the burst is too long; write fewer operations")?.max(1),
        align_bytes: align,
        reply_bytes: reply as u32,
        ..Line::default()
    })
}

/// The values of a line.
fn fields(value: &str) -> Vec<&str> {
    value.split([' ', '\t', ',']).filter(|field| !field.is_empty()).collect()
}

/// The entry of a list that an old file selects by its number.
fn entry_at<'t, T>(text: &str, all: &'t [T]) -> Option<&'t T> {
    all.get(text.trim().parse::<usize>().ok()?)
}

/// Parses `start step LAW`, or `start end step LAW` if `has_end`.
fn parse_progression(value: &str, has_end: bool) -> Result<Progression, String> {
    let fields = fields(value);
    let (end, by, law) = match (fields.as_slice(), has_end) {
        ([_, end, by, law], true) => (Some(*end), *by, *law),
        ([_, by, law], false) => (None, *by, *law),
        _ => {
            let end = if has_end { "end, " } else { "" };
            return Err(format!(
                "the line needs start, {end}step and LINEAR or EXPONENTIAL; write all of them"
            ));
        }
    };
    let least = |text: &str| {
        let number = number(text)?;
        u32::try_from(number)
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| format!("{number} is out of range; write at least 1"))
    };
    Ok(Progression {
        start: least(fields[0])?,
        end: end.map(least).transpose()?,
        by: least(by)?,
        law: match law {
            "0" => Step::Linear,
            "1" => Step::Exponential,
            law => Step::parse(law)?,
        },
    })
}

fn numbers<const N: usize>(value: &str) -> Result<[u64; N], String> {
    let all: Vec<u64> = fields(value).into_iter().map(number).collect::<Result<_, _>>()?;
    let count = all.len();
    all.try_into().map_err(|_| format!("the line has {count} of {N} numbers; write {N}"))
}

fn number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{} is not a whole number; write a whole number", quoted(text)))
}

fn one_of(text: &str, words: &[&str]) -> Result<String, String> {
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(text.trim()));
    found
        .or_else(|| entry_at(text, words))
        .map(|word| (*word).to_owned())
        .ok_or_else(|| format!("{} is not valid here; write {}", quoted(text), words.join(", ")))
}
