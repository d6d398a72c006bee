//! Jobs: sections with the defaults that hold for them, each option by its own name.
//!
//! For: asking a job for an option, and messages that point at the place where it was said. Not for: what it becomes
//! ([`super::streams`]).

use super::options::{How, LOGS};
use super::sections::{Assignment, Location, Section, visible};
use super::value::{Bare, Size, Units, switch, time};
use std::collections::BTreeMap;

/// What is wrong, and where.
pub(super) type Fault = (Location, String);

/// A job with everything that was said of it.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The name of its section, by which its files are called.
    pub(super) section: String,
    pub(super) spot: Location,
    /// Whether all jobs before it have to be over.
    pub(super) walled: bool,
    /// By the names of the table.
    said: BTreeMap<&'static str, Said>,
    /// What stands in its own section.
    pub(super) own: Vec<Assignment>,
}

/// An option that holds for a job.
#[derive(Clone, Debug)]
struct Said {
    /// Its place in the order of saying.
    at: usize,
    assignment: Assignment,
    /// What its suffixes stand for.
    units: Units,
}

/// The jobs of sections, in their order; of all of them unless some are named.
pub(super) fn jobs(sections: &[Section], named: &[String]) -> Result<Vec<Job>, Fault> {
    let mut defaults: BTreeMap<&'static str, Said> = BTreeMap::new();
    let mut default_units = Units::USUAL;
    let mut jobs = Vec::new();
    let mut order = 0;
    for section in sections {
        let mut said = defaults.clone();
        let mut units = default_units;
        if !section.in_order {
            // A job file is sorted before it is read: its last kb_base holds for the whole section.
            for one in section.said.iter().filter(|one| one.option.name == BASE) {
                units = units_of_base(one)?;
            }
        }
        for one in &section.said {
            order += 1;
            if one.option.name == BASE {
                units = units_of_base(one)?;
            }
            let mut one = one.clone();
            // Each line adds files to those before, also to those of [global].
            if let Some(before) = said.get(one.option.name).filter(|_| one.option.name == "filename") {
                one.value = format!("{}:{}", before.assignment.value, one.value);
            }
            // A log without a name keeps the one that was said before it.
            let keeps = one.value.trim().is_empty() && LOGS.contains(&one.option.name);
            if !(keeps && said.contains_key(one.option.name)) {
                said.insert(one.option.name, Said { at: order, assignment: one, units });
            }
        }
        if section.is_global() {
            (defaults, default_units) = (said, units);
        } else if named.is_empty() || named.contains(&section.name) {
            let Section { name: section, spot, said: own, walled, .. } = section.clone();
            jobs.push(Job { section, spot, walled, said, own });
        }
    }
    Ok(jobs)
}

/// The option that decides what suffixes stand for.
const BASE: &str = "kb_base";

fn units_of_base(one: &Assignment) -> Result<Units, Fault> {
    match one.value.trim() {
        "1024" => Ok(Units::USUAL),
        "1000" => Ok(Units { base: 1000 }),
        other => {
            let why = format!("{BASE}={}: it is 1024 or 1000; type one of them", visible(other));
            Err((one.spot.clone(), why))
        }
    }
}

/// What is told of options that change nothing and of units that look like others, each once.
pub(super) fn remarks(jobs: &[Job]) -> Vec<String> {
    let mut by_reason: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
    let mut out = Vec::new();
    for Said { assignment: said, .. } in jobs.iter().flat_map(|j| j.said.values()) {
        if let How::NoEffect(why) = said.option.how {
            let names = by_reason.entry(why).or_default();
            if !names.contains(&said.option.name) {
                names.push(said.option.name);
            }
        }
    }
    for (why, names) in by_reason {
        let verb = if names.len() == 1 { "changes" } else { "change" };
        out.push(format!("{} {verb} nothing here: {why}", names.join(", ")));
    }
    for job in jobs {
        for Said { assignment: said, .. } in
            job.said.values().filter(|s| s.units.notable(&s.assignment.value))
        {
            let remark = format!(
                "{}={}: as in fio, kib, mib and gib are powers of ten; k, m and g are powers of two",
                said.option.name, said.value
            );
            if said.option.name != "description" && said.option.name != "filename" && !out.contains(&remark) {
                out.push(remark);
            }
        }
    }
    out
}

impl Job {
    /// What suffixes stand for in the value of an option.
    pub(super) fn units(&self, option: &str) -> Units {
        self.said.get(option).map_or(Units::USUAL, |said| said.units)
    }

    /// The value of an option of the table; empty where it was said without one.
    pub(super) fn text(&self, option: &str) -> Option<&str> {
        self.said.get(option).map(|said| said.assignment.value.trim())
    }

    /// Whether it is what stands in a log.
    pub(super) fn is_replay(&self) -> bool {
        self.text("read_iolog").is_some_and(|file| !file.is_empty())
    }

    /// Of two options that say the same, the one that was said last.
    pub(super) fn last<'o>(&self, first: &'o str, second: &'o str) -> Option<&'o str> {
        let at = |option| self.said.get(option).map(|said| said.at);
        let last = if at(first) >= at(second) { first } else { second };
        at(last).map(|_| last)
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        // A name that is said for all of them is none of its own.
        let own = self.own.iter().rfind(|said| said.option.name == "name" && !said.value.trim().is_empty());
        own.map_or(&self.section, |said| said.value.trim())
    }

    /// Why an option cannot be, at its place; at the job's where it was not said.
    pub(super) fn fault(&self, option: &str, why: impl AsRef<str>) -> Fault {
        let said = self.said.get(option).map(|said| &said.assignment);
        let spot = said.map_or(&self.spot, |said| &said.spot).clone();
        match said {
            Some(said) if said.value.is_empty() => (spot, format!("{option}: {}", why.as_ref())),
            Some(said) => (spot, format!("{option}={}: {}", visible(&said.value), why.as_ref())),
            None => (spot, format!("{option}: {}", why.as_ref())),
        }
    }

    fn read<T>(
        &self,
        option: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Fault> {
        self.text(option).map(read).transpose().map_err(|why| self.fault(option, why))
    }

    /// A whole number.
    pub(super) fn number(&self, option: &str) -> Result<Option<u64>, Fault> {
        self.read(option, |text| self.units(option).whole(text))
    }

    /// A whole number that fits 32 bits and is no less than this.
    pub(super) fn count(&self, option: &str, least: u32) -> Result<Option<u32>, Fault> {
        let count = |n: u64| {
            u32::try_from(n).ok().filter(|n| *n >= least).ok_or_else(|| {
                self.fault(option, format!("it is out of range; type a number from {least} to {}", u32::MAX))
            })
        };
        self.number(option)?.map(count).transpose()
    }

    /// Bytes, or a share of what is there.
    pub(super) fn size(&self, option: &str) -> Result<Option<Size>, Fault> {
        self.read(option, |text| self.units(option).size(text))
    }

    /// Bytes alone.
    pub(super) fn bytes(&self, option: &str) -> Result<Option<u64>, Fault> {
        match self.size(option)? {
            Some(Size::Bytes(bytes)) => Ok(Some(bytes)),
            // All that is there, which it is anyway.
            Some(Size::Percent(100.0)) if option == "io_size" => Ok(None),
            Some(Size::Percent(_)) => Err(self.fault(option, "it is no share of a file here; type a size")),
            None => Ok(None),
        }
    }

    /// A time in ns.
    pub(super) fn time(&self, option: &str, bare: Bare) -> Result<Option<u64>, Fault> {
        if self.text(option).is_some_and(|text| text.starts_with('(')) {
            let why = "in parentheses fio takes each number for microseconds; type the time without them";
            return Err(self.fault(option, why));
        }
        self.read(option, |text| time(text, bare))
    }

    /// A switch.
    pub(super) fn on(&self, option: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.read(option, switch)?.unwrap_or(default))
    }

    /// A value for each of the directions that a job has: the same for all of them, or none.
    pub(super) fn same_for<T: PartialEq>(
        &self,
        option: &str,
        directions: &[usize],
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(option) else { return Ok(None) };
        let said = super::value::triplet(text).map_err(|why| self.fault(option, why))?;
        let mut values = Vec::new();
        for value in directions.iter().filter_map(|at| said.get(*at)) {
            values.push(value.map(&read).transpose().map_err(|why| self.fault(option, why))?);
        }
        let first = values.pop().flatten();
        if values.iter().all(|v| *v == first) {
            return Ok(first);
        }
        Err(self.fault(option, "directions differ in it, which one stream cannot; type one value for all"))
    }
}
