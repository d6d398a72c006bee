//! fio's job files: sections `[name]` of lines `option=value`, with comments, `include`, variables and keywords. The options of a command
//! line become sections too. Each section becomes a job that also has the options of the `[global]` sections before it.

use crate::fio::options;
use crate::fio::value::{DefaultUnit, Size, Units, calculate, number_triplet, percent, switch, time};
use crate::options::{Form, How, ToolOption};
use crate::trouble::MAX_SHOWN;
use model::evidence::meminfo_bytes;
use model::spec::{LogKind, values};
use model::units::MIB;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use sys::open_file;
use sys::thread::PRESENT_CPUS;

/// Maximum number of included files, which also ends circular includes.
const MAX_INCLUDED_FILES: usize = 256;
/// Maximum number of options, including those of included files.
const MAX_OPTIONS: usize = 100_000;
/// Maximum number of sections; fio itself starts no more jobs.
const MAX_SECTIONS: usize = 4096;
/// Keywords for numbers of the machine.
const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];
/// Options that request logs, and the kinds of files of each. Their value is the prefix of the files' names and may be left out.
pub(super) const LOGS: [(&str, &[LogKind]); 4] = [
    ("write_lat_log", &[LogKind::Lat, LogKind::Slat, LogKind::Clat]),
    ("write_hist_log", &[LogKind::ClatHist]),
    ("write_bw_log", &[LogKind::Bw]),
    ("write_iops_log", &[LogKind::Iops]),
];

/// A text, and its name in messages.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) name: String,
    pub(super) text: String,
}

/// A place in one of the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Location {
    /// Index of the text.
    pub(super) text: usize,
    pub(super) span: Range<usize>,
}

/// An option as it was typed.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) option: &'static ToolOption,
    /// The value; empty if none was typed.
    pub(super) value: String,
    pub(super) location: Location,
}

/// A section with its options.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) location: Location,
    pub(super) assignments: Vec<Assignment>,
    /// Whether the section waits for all sections before it. The first job of each further job file does.
    pub(super) walled: bool,
    /// Whether the section is from the command line. There `kb_base` applies only to the options after it.
    pub(super) is_from_command_line: bool,
}

/// The sections that were read, and their errors.
pub(super) struct Reader<'a> {
    environment: &'a dyn Environment,
    pub(super) texts: Vec<Text>,
    pub(super) sections: Vec<Section>,
    /// The errors in all texts.
    pub(super) faults: Vec<Fault>,
    /// Remarks, which are not errors.
    pub(super) remarks: Vec<String>,
    options: usize,
    included: usize,
}

impl Section {
    /// Whether the options of the section are defaults for the sections after it.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(environment: &'a dyn Environment) -> Self {
        Self {
            environment,
            texts: Vec::new(),
            sections: Vec::new(),
            faults: Vec::new(),
            remarks: Vec::new(),
            options: 0,
            included: 0,
        }
    }

    /// Reads a job file. The first job of each further file waits for all jobs before it.
    pub(super) fn file(&mut self, name: &str, text: &str) {
        let from = self.sections.len();
        let had_jobs = self.sections.iter().any(|s| !s.is_global());
        self.lines(name, text, &mut false, false);
        if let Some(first) = self.sections.iter_mut().skip(from).find(|s| !s.is_global()) {
            first.walled = had_jobs;
        }
    }

    /// Opens a section for the command-line option `name`. Unless the section is global, `name` is also an
    /// option of the job.
    pub(super) fn add_job(&mut self, name: &str, location: Location) {
        let is_added = self.add_section(name, location.clone(), true);
        if let (true, Some(section)) = (is_added, self.sections.last_mut())
            && let Some(option) = options::find("name").filter(|_| !section.is_global())
        {
            section.assignments.push(Assignment { option, value: name.into(), location });
        }
    }

    /// Opens a section. Returns false if there are too many sections.
    pub(super) fn add_section(&mut self, name: &str, location: Location, is_from_command_line: bool) -> bool {
        let has_room = self.sections.len() < MAX_SECTIONS;
        if has_room {
            let name = name.to_owned();
            let assignments = Vec::new();
            self.sections.push(Section { name, location, assignments, walled: false, is_from_command_line });
        } else if self.faults.is_empty() {
            self.refuse(location, format!("there are more than {MAX_SECTIONS} sections; leave some out"));
        }
        has_room
    }

    fn lines(&mut self, name: &str, text: &str, open: &mut bool, is_included: bool) {
        let index = self.texts.len();
        self.texts.push(Text { name: name.into(), text: text.into() });
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at + (line.len() - line.trim_start().len());
            at += line.len();
            let whole = line.trim();
            if whole.is_empty() || whole.starts_with([';', '#']) {
                continue;
            }
            let cut = whole.split([';', '#']).next().unwrap_or_default().trim_end();
            let location = Location { text: index, span: start..start + cut.len() };
            if cut.len() < whole.len() && (cut.starts_with("filename") || cut.starts_with("directory")) {
                let after = &whole[cut.len()..];
                if !after.starts_with(char::is_whitespace) {
                    self.remarks.push(format!(
                        "{name}: the text after ; or # is a comment, so only '{}' is used",
                        visible(cut)
                    ));
                }
            }
            self.line(cut, location, open, is_included);
        }
    }

    fn line(&mut self, line: &str, location: Location, open: &mut bool, is_included: bool) {
        if let Some(rest) = line.strip_prefix('[') {
            match rest.split_once(']') {
                Some((name, _)) if is_included => {
                    self.refuse(
                        location,
                        format!(
                            "an included file cannot have a section such as [{}]; remove the line",
                            visible(name)
                        ),
                    );
                }
                Some((name, _)) if !name.is_empty() => {
                    *open = true;
                    self.add_section(name, location, false);
                }
                _ => self.refuse(location, "a section needs a name in brackets; type [NAME]"),
            }
        } else if let Some(file) = line.strip_prefix("include ") {
            self.include(file.trim(), location, open);
        } else if !*open {
            self.refuse(location, "this option is not in a section; type [global] or [NAME] above it");
        } else {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            self.add_option(name.trim_end(), value.trim_start(), location);
        }
    }

    fn include(&mut self, file: &str, location: Location, open: &mut bool) {
        // Beyond the maximum, no file is opened. The error is reported once.
        self.included += 1;
        if self.included > MAX_INCLUDED_FILES {
            if self.included == MAX_INCLUDED_FILES + 1 {
                let why =
                    format!("more than {MAX_INCLUDED_FILES} files are included; remove an include line");
                self.refuse(location, why);
            }
            return;
        }
        let by = self.texts.get(location.text).map(|t| t.name.clone()).unwrap_or_default();
        match self.environment.include(&by, file) {
            Err(why) => self.refuse(
                location,
                format!("'{}' cannot be included: {why}; type the path of a file", visible(file)),
            ),
            Ok(text) => {
                let folder = std::path::Path::new(&by).parent().map(|p| p.join(file));
                let name = folder.map_or_else(|| file.to_owned(), |p| p.display().to_string());
                self.lines(&name, &text, open, true);
            }
        }
    }

    /// Adds an option to the last section.
    pub(super) fn add_option(&mut self, name: &str, value: &str, location: Location) {
        self.options += 1;
        if self.options > MAX_OPTIONS {
            if self.options == MAX_OPTIONS + 1 {
                self.refuse(location, format!("there are more than {MAX_OPTIONS} options; leave some out"));
            }
            return;
        }
        let Some(option) = options::find(name) else {
            let message = unknown(name, self.faults.len() < MAX_SHOWN);
            return self.refuse(location, message);
        };
        let value = match self.substitute(option, value) {
            Ok(value) => value,
            Err(why) => return self.refuse(location, why),
        };
        if let Some(why) = option.objection(value.trim()) {
            return self.refuse(location, refusal(option, &value, &why));
        }
        if let Err(why) = check_form(option.form, value.trim()) {
            return self.refuse(location, format!("{}: {why}", typed(option.name, &value)));
        }
        if let Some(section) = self.sections.last_mut() {
            section.assignments.push(Assignment { option, value, location });
        }
    }

    /// The value with variables and keywords replaced.
    fn substitute(&self, option: &ToolOption, value: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = value;
        while let Some((before, (name, after))) =
            rest.split_once("${").and_then(|(b, r)| Some((b, r.split_once('}')?)))
        {
            let known = self.environment.variable(name).ok_or_else(|| {
                format!(
                    "{}: the environment variable {} is not set; type {}=VALUE before the command",
                    option.name,
                    visible(name),
                    visible(name)
                )
            })?;
            out += before;
            out += &known;
            rest = after;
        }
        out += rest;
        let mut replaced = false;
        for keyword in KEYWORDS.iter().filter(|k| out.contains(**k)).collect::<Vec<_>>() {
            let number = self
                .environment
                .number(keyword)
                .map_err(|why| format!("the value of {keyword} is unknown: {why}; type a number"))?;
            out = out.replace(keyword, &number.to_string());
            replaced = true;
        }
        let sum = out.contains(['+', '*', '/']).then(|| calculate(&out)).flatten();
        Ok(sum.filter(|_| replaced).unwrap_or(out))
    }

    pub(super) fn refuse(&mut self, location: Location, message: impl Into<String>) {
        self.faults.push(Fault { location, message: message.into() });
    }
}

/// The message about an unknown option, or about an option of an unsupported engine. Similar names are searched only if the message is
/// shown, because the search would take long in a file full of unknown options.
fn unknown(name: &str, is_shown: bool) -> String {
    if let Some(engine) = options::engine_of(name) {
        return format!(
            "{name} belongs to ioengine={engine}, which fathom does not support; leave the job out"
        );
    }
    match is_shown.then(|| options::nearest(name)).flatten() {
        Some(near) => format!("fio has no option '{}'; type {near}", visible(name)),
        None => {
            format!("fio has no option '{}'; `fathom help reference/fio` lists all", visible(name))
        }
    }
}

/// Checks the form of a value. Accepts a time in parentheses: [`Job::time`] refuses it with its own error.
fn check_form(form: Form, value: &str) -> Result<(), String> {
    let units = Units::USUAL;
    match form {
        Form::Text => Ok(()),
        Form::Switch => switch(value).map(drop),
        Form::Number => units.whole(value).map(drop),
        Form::Numbers => {
            number_triplet(value)?.into_iter().flatten().try_for_each(|number| units.whole(number).map(drop))
        }
        Form::Percent => units.whole(value).and_then(percent).map(drop),
        Form::Size => units.size(value).map(drop),
        Form::Seconds | Form::Microseconds if value.starts_with('(') => Ok(()),
        Form::Seconds => time(value, DefaultUnit::Seconds).map(drop),
        Form::Microseconds => time(value, DefaultUnit::Microseconds).map(drop),
    }
}

/// An option with its value, for a message.
fn typed(option: &str, value: &str) -> String {
    if value.is_empty() { option.to_owned() } else { format!("{option}={}", visible(value)) }
}

fn refusal(option: &ToolOption, value: &str, why: &str) -> String {
    // A reason without `; ` consists only of what to type.
    let link = if why.contains("; ") { ":" } else { " is not supported;" };
    format!("{}{link} {why}", typed(option.name, value))
}

/// A text for a message, shortened and without control characters.
pub(super) fn visible(text: &str) -> String {
    text.chars().take(60).flat_map(char::escape_debug).collect()
}

/// An error with its place.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) location: Location,
    pub(super) message: String,
}

/// A job with all options that apply to it.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The name of the job's section, which names the job's files.
    pub(super) section: String,
    pub(super) location: Location,
    /// Whether the job waits for all earlier jobs.
    pub(super) walled: bool,
    /// Options by their names in the table.
    options: BTreeMap<&'static str, JobOption>,
    /// Options in the job's own section, without those of `[global]`.
    pub(super) own: Vec<Assignment>,
    /// Number of clones of all earlier jobs.
    pub(super) threads_before: u32,
}

/// An option that applies to a job.
#[derive(Clone, Debug)]
struct JobOption {
    /// Position among all typed options.
    at: usize,
    assignment: Assignment,
    /// Units of the suffixes in the value.
    units: Units,
}

/// The jobs of sections in their order; only the named ones if any are named.
pub(super) fn jobs(sections: &[Section], named: &[String]) -> Vec<Job> {
    let mut defaults: BTreeMap<&'static str, JobOption> = BTreeMap::new();
    let mut default_units = Units::USUAL;
    let mut jobs = Vec::new();
    let mut order = 0;
    for section in sections {
        let mut options = defaults.clone();
        let mut units = default_units;
        if !section.is_from_command_line {
            // fio sorts the options of a job file first, so the last kb_base applies to the whole section.
            for assignment in section.assignments.iter().filter(|a| a.option.name == BASE) {
                units = units_of_base(assignment);
            }
        }
        for assignment in &section.assignments {
            order += 1;
            let mut assignment = assignment.clone();
            let option = assignment.option.name;
            if section.is_from_command_line && option == BASE {
                units = units_of_base(&assignment);
            }
            // Each line adds files to those of earlier lines, including lines in [global].
            if let Some(before) = options.get(option).filter(|_| option == "filename") {
                assignment.value = format!("{}:{}", before.assignment.value, assignment.value);
            }
            // A log option without a name keeps the earlier name.
            let keeps = assignment.value.trim().is_empty() && LOGS.iter().any(|(log, _)| *log == option);
            if !(keeps && options.contains_key(option)) {
                options.insert(option, JobOption { at: order, assignment, units });
            }
        }
        if section.is_global() {
            (defaults, default_units) = (options, units);
        } else if named.is_empty() || named.contains(&section.name) {
            let Section { name: section, location, assignments: own, walled, .. } = section.clone();
            let threads_before = jobs.last().map_or(0, Job::threads);
            jobs.push(Job { section, location, walled, options, own, threads_before });
        }
    }
    jobs
}

/// The option that sets the units of suffixes.
const BASE: &str = "kb_base";

fn units_of_base(one: &Assignment) -> Units {
    Units { base: if one.value.trim() == "1000" { 1000 } else { 1024 } }
}

/// Remarks on options without effect and on misleading units, without duplicates.
pub(super) fn remarks(jobs: &[Job]) -> Vec<String> {
    let mut by_reason: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
    let mut misleading = Vec::new();
    for JobOption { assignment, units, .. } in jobs.iter().flat_map(|j| j.options.values()) {
        let Assignment { option, value, .. } = assignment;
        if option.how == How::NoEffect {
            by_reason.entry(option.about).or_default().push(option.name);
        }
        if units.is_misleading(value) && !["description", "filename"].contains(&option.name) {
            misleading.push(format!(
                "{}={value}: as in fio, kib, mib and gib are powers of ten; k, m and g are powers of two",
                option.name
            ));
        }
    }
    let without_effect = by_reason.into_iter().map(|(why, names)| {
        let names = model::distinct(names);
        let verb = if names.len() == 1 { "has" } else { "have" };
        format!("{} {verb} no effect here: {why}", names.join(", "))
    });
    model::distinct(without_effect.chain(misleading))
}

impl Job {
    /// The units of suffixes in the value of an option.
    pub(super) fn units(&self, option: &str) -> Units {
        self.options.get(option).map_or(Units::USUAL, |typed| typed.units)
    }

    /// The value of an option of the table; empty if it was typed without one, `None` if it was not
    /// typed.
    pub(super) fn text(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(|typed| typed.assignment.value.trim())
    }

    /// The name of the engine. As in fio, names that begin with `aio` or `linuxaio` mean libaio.
    pub(super) fn engine(&self) -> Option<&str> {
        let is_libaio = |name: &&str| name.starts_with("aio") || name.starts_with("linuxaio");
        let name = self.text("ioengine")?;
        Some(Some(name).filter(is_libaio).map_or(name, |_| "libaio"))
    }

    /// Number of clones of this and all earlier jobs.
    fn threads(&self) -> u32 {
        let own = self.count("numjobs", 1).ok().flatten().unwrap_or(1);
        self.threads_before.saturating_add(own)
    }

    /// Whether the job replays a log.
    pub(super) fn is_replay(&self) -> bool {
        self.text("read_iolog").is_some_and(|file| !file.is_empty())
    }

    /// Returns which of two equivalent options was typed last; `None` if neither was typed.
    pub(super) fn last<'o>(&self, first: &'o str, second: &'o str) -> Option<&'o str> {
        let at = |option| self.options.get(option).map(|typed| typed.at);
        let last = if at(first) >= at(second) { first } else { second };
        at(last).map(|_| last)
    }

    /// The name of the job.
    pub(super) fn name(&self) -> &str {
        // A name from [global] is not the name of a single job.
        let is_name = |typed: &&Assignment| typed.option.name == "name" && !typed.value.trim().is_empty();
        self.own.iter().rfind(is_name).map_or(&self.section, |typed| typed.value.trim())
    }

    /// An error at the place of an option, or of the job if the option was not typed.
    pub(super) fn fault(&self, option: &str, why: impl AsRef<str>) -> Fault {
        let assignment = self.options.get(option).map(|known| &known.assignment);
        let location = assignment.map_or(&self.location, |assignment| &assignment.location).clone();
        let value = assignment.map_or("", |assignment| assignment.value.as_str());
        Fault { location, message: format!("{}: {}", typed(option, value), why.as_ref()) }
    }

    /// Refuses the job because of an option if `is_wrong`.
    pub(super) fn refuse_if(&self, is_wrong: bool, option: &str, why: impl AsRef<str>) -> Result<(), Fault> {
        if is_wrong { Err(self.fault(option, why)) } else { Ok(()) }
    }

    pub(super) fn parse<T>(
        &self,
        option: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Fault> {
        self.text(option).map(parse).transpose().map_err(|why| self.fault(option, why))
    }

    /// The value of an option as a whole number.
    pub(super) fn number(&self, option: &str) -> Result<Option<u64>, Fault> {
        self.parse(option, |text| self.units(option).whole(text))
    }

    /// Parses a whole percentage.
    pub(super) fn percent(&self, option: &str) -> Result<Option<u8>, Fault> {
        self.number(option)?.map(percent).transpose().map_err(|why| self.fault(option, why))
    }

    /// A whole number of 32 bits that is at least `least`.
    pub(super) fn count(&self, option: &str, least: u32) -> Result<Option<u32>, Fault> {
        let count = |n: u64| {
            u32::try_from(n).ok().filter(|n| *n >= least).ok_or_else(|| {
                self.fault(option, format!("out of range; type a number from {least} to {}", u32::MAX))
            })
        };
        self.number(option)?.map(count).transpose()
    }

    /// A number of bytes, or a percentage of the file.
    pub(super) fn size(&self, option: &str) -> Result<Option<Size>, Fault> {
        self.parse(option, |text| self.units(option).size(text))
    }

    /// A number of bytes; percentages are refused.
    pub(super) fn bytes(&self, option: &str) -> Result<Option<u64>, Fault> {
        match self.size(option)? {
            Some(Size::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Size::Percent(_)) => Err(self.fault(option, "fathom takes no percentage here; type a size")),
            None => Ok(None),
        }
    }

    /// The value of an option as a time in ns.
    pub(super) fn time(&self, option: &str, default_unit: DefaultUnit) -> Result<Option<u64>, Fault> {
        let is_sum = self.text(option).is_some_and(|text| text.starts_with('('));
        let why = "fio reads numbers in parentheses as microseconds; type the time without them";
        self.refuse_if(is_sum, option, why)?;
        self.parse(option, |text| time(text, default_unit))
    }

    /// Whether a switch is on.
    pub(super) fn on(&self, option: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.parse(option, switch)?.unwrap_or(default))
    }

    /// The values for reads, writes and trims; `None` for directions without a typed value.
    pub(super) fn by_direction<T>(
        &self,
        option: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<[Option<T>; 3], Fault> {
        let read_all = |text: &str| {
            let [a, b, c] = number_triplet(text)?.map(|text| text.map(&read).transpose());
            Ok([a?, b?, c?])
        };
        Ok(self.parse(option, read_all)?.unwrap_or([None, None, None]))
    }

    /// Whole numbers for reads, writes and trims; 0 for directions without a typed number.
    pub(super) fn numbers(&self, option: &str) -> Result<[u64; 3], Fault> {
        let all = self.by_direction(option, |text| self.units(option).whole(text))?;
        Ok(all.map(|number| number.unwrap_or(0)))
    }

    /// The value that all `directions` of a job have. Different values are refused.
    pub(super) fn same_for<T: PartialEq>(
        &self,
        option: &str,
        directions: &[usize],
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Fault> {
        let mut all = self.by_direction(option, read)?;
        let first = directions.first().and_then(|at| all[*at].take());
        let is_same = directions.iter().skip(1).all(|at| all[*at] == first);
        self.refuse_if(!is_same, option, "fathom uses one value for all directions; type only one")?;
        Ok(first)
    }
}

/// Largest included file in bytes.
const MAX_INCLUDED_BYTES: u64 = crate::MAX_FILE_BYTES as u64;

/// What parsing needs to know about the machine.
pub(super) trait Environment {
    /// The value of an environment variable; `None` if it is unset or not UTF-8.
    fn variable(&self, name: &str) -> Option<String>;
    /// The value of `$ncpus`, `$pagesize` or `$mb_memory`.
    fn number(&self, keyword: &str) -> Result<u64, String>;
    /// The first bytes of a file, at most `most`.
    fn bytes(&self, name: &str, most: usize) -> Result<Vec<u8>, String>;
    /// Length of a file or block device in bytes.
    fn length(&self, name: &str) -> Result<u64, String>;
    /// Whether the path is a block device.
    fn is_device(&self, name: &str) -> bool;
    /// Whether the path is a directory.
    fn is_directory(&self, name: &str) -> bool;
    /// The text of a file that the file `by` includes.
    fn include(&self, by: &str, name: &str) -> Result<String, String>;
    /// The CPUs of the machine, such as `0-7`; empty if unknown.
    fn present_cpus(&self) -> String;
    /// The NUMA nodes that have memory, such as `0-1`.
    fn nodes(&self) -> Result<String, String>;
    /// The CPUs of a NUMA node, such as `0-3,8`; empty if the node has none.
    fn cpus_of_node(&self, node: u32) -> Result<String, String>;
}

/// The running system: its environment, `/proc`, `/sys` and files.
pub(super) struct Machine;

impl Environment for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn number(&self, keyword: &str) -> Result<u64, String> {
        match keyword {
            "$pagesize" => Ok(rustix::param::page_size() as u64),
            "$ncpus" => read("/sys/devices/system/cpu/online").and_then(|text| cpus(&text)),
            _ => read("/proc/meminfo").and_then(|text| memory_mib(&text)),
        }
    }

    fn bytes(&self, name: &str, most: usize) -> Result<Vec<u8>, String> {
        let file = open_file::open(Path::new(name)).map_err(|e| e.to_string())?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    fn length(&self, name: &str) -> Result<u64, String> {
        let facts = std::fs::metadata(name).map_err(|e| e.to_string())?;
        if facts.is_file() {
            return Ok(facts.len());
        }
        if !facts.file_type().is_block_device() {
            return Err("this is neither a file nor a block device".into());
        }
        let device = std::fs::File::open(name).and_then(|mut device| device.seek(SeekFrom::End(0)));
        device.map_err(|e| e.to_string())
    }

    fn is_device(&self, name: &str) -> bool {
        std::fs::metadata(name).is_ok_and(|facts| facts.file_type().is_block_device())
    }

    fn is_directory(&self, name: &str) -> bool {
        Path::new(name).is_dir()
    }

    fn include(&self, by: &str, name: &str) -> Result<String, String> {
        let path = Path::new(by).parent().unwrap_or(Path::new("")).join(name);
        let mut text = String::new();
        let file = open_file::open(&path).map_err(|e| e.to_string())?;
        file.take(MAX_INCLUDED_BYTES + 1).read_to_string(&mut text).map_err(|e| e.to_string())?;
        if text.len() as u64 > MAX_INCLUDED_BYTES {
            return Err(format!("the file has more than {MAX_INCLUDED_BYTES} bytes"));
        }
        Ok(text)
    }

    fn present_cpus(&self) -> String {
        std::fs::read_to_string(PRESENT_CPUS).unwrap_or_default()
    }

    fn nodes(&self) -> Result<String, String> {
        read(&format!("{NODES}/has_memory")).map(|list| list.trim().into())
    }

    fn cpus_of_node(&self, node: u32) -> Result<String, String> {
        match read(&format!("{NODES}/node{node}/cpulist")) {
            Ok(list) => Ok(list.trim().into()),
            Err(_) => {
                Err(format!("there is no NUMA node {node}; the nodes with memory are: {}", self.nodes()?))
            }
        }
    }
}

/// Directory of the kernel's NUMA nodes.
const NODES: &str = "/sys/devices/system/node";

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))
}

/// Number of CPUs in a list such as `0-3,8`.
fn cpus(list: &str) -> Result<u64, String> {
    let mut all = Vec::new();
    values::cpus(&mut all, list.trim()).map_err(|_| format!("'{list}' is not a list of CPUs"))?;
    Ok(all.len() as u64)
}

fn memory_mib(text: &str) -> Result<u64, String> {
    let bytes = meminfo_bytes(text, "MemTotal").map_err(|_| "/proc/meminfo has no MemTotal".to_owned())?;
    Ok(bytes / MIB)
}

/// Longest time of a job in ns: a year. Soak tests run for weeks, so a longer time is a typing error.
const MAX_JOB_TIME_NS: u64 = 365 * 86_400 * 1_000_000_000;

/// Times of a job in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) ramp: u64,
    pub(super) delay: u64,
    /// Run time; `None` if the job ends after a number of bytes.
    pub(super) runtime: Option<u64>,
}

/// The times of a job.
pub(super) fn times(job: &Job) -> Result<Times, Fault> {
    let is_drawn = job.text("startdelay").is_some_and(|text| text.contains('-'));
    job.refuse_if(
        is_drawn,
        "startdelay",
        "fathom does not draw a random delay; type a single delay, such as startdelay=5s",
    )?;
    let runtime = job.time("runtime", DefaultUnit::Seconds)?.filter(|t| *t > 0);
    let times = Times {
        ramp: job.time("ramp_time", DefaultUnit::Seconds)?.unwrap_or(0),
        delay: job.time("startdelay", DefaultUnit::Seconds)?.unwrap_or(0),
        runtime,
    };
    for (option, time) in
        [("runtime", runtime.unwrap_or(0)), ("ramp_time", times.ramp), ("startdelay", times.delay)]
    {
        job.refuse_if(time > MAX_JOB_TIME_NS, option, "the time is more than a year; type a shorter time")?;
    }
    Ok(times)
}

/// Whether a job ends only by its time. As in fio, a job without a run time ends by its size even if it is
/// `time_based`.
pub(super) fn is_time_based(job: &Job) -> Result<bool, Fault> {
    Ok(job.on("time_based", false)?
        && job.time("runtime", DefaultUnit::Seconds)?.is_some_and(|time| time > 0))
}

#[test]
fn kernel_text_is_counted() {
    assert_eq!((cpus("0-3,8\n"), cpus("0")), (Ok(5), Ok(1)));
    assert!(cpus("").is_err() && cpus("3-1").is_err() && cpus("0-18446744073709551615").is_err());
    assert_eq!(memory_mib("MemTotal:       2048 kB\n"), Ok(2));
    assert!(memory_mib("").is_err());
}
