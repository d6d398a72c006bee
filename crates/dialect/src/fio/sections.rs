//! Sections: a text of fio's as lines `option=value` below `[name]`, each with its place.
//!
//! For: comments, `include`, variables and keywords, and command lines, which are sections in other words. Not for: what options
//! mean.

use super::around::Around;
use super::options::{self, FioOption, How};
use super::value::calculate;
use crate::trouble::{Mark, SHOWN};
use std::ops::Range;

/// Files that are included at most, however deep, so that some which include each other end.
const MOST_INCLUDED: usize = 256;
/// Options at most, whatever is included.
const MOST: usize = 100_000;
/// Sections at most: more jobs than fio itself starts.
const MOST_SECTIONS: usize = 4096;
/// Words that stand for numbers of the machine.
const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// A text with what messages call it.
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

/// An option as it was said.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) option: &'static FioOption,
    /// Empty where nothing was said.
    pub(super) value: String,
    pub(super) spot: Location,
}

/// `[name]` and what stands below it.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) spot: Location,
    pub(super) said: Vec<Assignment>,
    /// Whether all sections before it have to be over: it is the first of a further job file.
    pub(super) walled: bool,
    /// Whether it is of the command line, where `kb_base` counts only for the options after it.
    pub(super) in_order: bool,
}

/// Everything that was read, and what was wrong with it.
pub(super) struct Reader<'a> {
    around: &'a dyn Around,
    pub(super) texts: Vec<Text>,
    pub(super) sections: Vec<Section>,
    /// Each with the index of its text.
    pub(super) marks: Vec<(usize, Mark)>,
    /// What is told, though nothing is wrong.
    pub(super) remarks: Vec<String>,
    options: usize,
    included: usize,
}

impl Section {
    /// Whether it says defaults for those behind it.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(around: &'a dyn Around) -> Self {
        Self {
            around,
            texts: Vec::new(),
            sections: Vec::new(),
            marks: Vec::new(),
            remarks: Vec::new(),
            options: 0,
            included: 0,
        }
    }

    /// Reads a job file. Sections of one that is not the first wait for those before.
    pub(super) fn file(&mut self, name: &str, text: &str) {
        let from = self.sections.len();
        let had_jobs = self.sections.iter().any(|s| !s.is_global());
        self.lines(name, text, &mut false, false);
        if let Some(first) = self.sections.iter_mut().skip(from).find(|s| !s.is_global()) {
            first.walled = had_jobs;
        }
    }

    /// Opens a section.
    pub(super) fn section(&mut self, name: &str, spot: Location) {
        self.open(Section { name: name.into(), spot, said: Vec::new(), walled: false, in_order: false });
    }

    /// Opens the section of options that precede the first name on the command line.
    pub(super) fn defaults(&mut self, spot: Location) {
        let name = "global".to_owned();
        self.open(Section { name, spot, said: Vec::new(), walled: false, in_order: true });
    }

    /// Opens a section by the option `name`, which is one of the job too.
    pub(super) fn named(&mut self, name: &str, spot: Location) {
        let mut section = Section {
            name: name.into(),
            spot: spot.clone(),
            said: Vec::new(),
            walled: false,
            in_order: true,
        };
        if let Some(option) = options::find("name").filter(|_| !section.is_global()) {
            section.said.push(Assignment { option, value: name.into(), spot });
        }
        self.open(section);
    }

    fn open(&mut self, section: Section) {
        if self.sections.len() < MOST_SECTIONS {
            self.sections.push(section);
        } else if self.marks.is_empty() {
            let why = format!("there are more than {MOST_SECTIONS} sections; leave some out");
            self.mark(section.spot, why);
        }
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
            let spot = Location { text: index, span: start..start + cut.len() };
            if cut.len() < whole.len() && (cut.starts_with("filename") || cut.starts_with("directory")) {
                let behind = &whole[cut.len()..];
                if !behind.starts_with(char::is_whitespace) {
                    self.remarks.push(format!(
                        "{name}: what stands behind ; or # is a comment, so '{}' is all of it",
                        visible(cut)
                    ));
                }
            }
            self.line(cut, spot, open, is_included);
        }
    }

    fn line(&mut self, line: &str, spot: Location, open: &mut bool, is_included: bool) {
        if let Some(rest) = line.strip_prefix('[') {
            match rest.split_once(']') {
                Some((name, _)) if is_included => {
                    self.mark(
                        spot,
                        format!(
                            "an included file has no sections, so not [{}] either; take the line out",
                            visible(name)
                        ),
                    );
                }
                Some((name, _)) if !name.is_empty() => {
                    *open = true;
                    self.section(name, spot);
                }
                _ => self.mark(spot, "a section has a name in brackets; type [NAME]"),
            }
        } else if let Some(file) = line.strip_prefix("include ") {
            self.include(file.trim(), spot, open);
        } else if !*open {
            self.mark(spot, "an option stands in a section; type [global] or [NAME] above it");
        } else {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            self.say(name.trim_end(), value.trim_start(), spot);
        }
    }

    fn include(&mut self, file: &str, spot: Location, open: &mut bool) {
        // Beyond the most nothing is opened any more, and it is said once.
        self.included += 1;
        if self.included > MOST_INCLUDED {
            if self.included == MOST_INCLUDED + 1 {
                let why =
                    format!("more than {MOST_INCLUDED} files are included, one in another; take a line out");
                self.mark(spot, why);
            }
            return;
        }
        let by = self.texts.get(spot.text).map(|t| t.name.clone()).unwrap_or_default();
        match self.around.include(&by, file) {
            Err(why) => self.mark(
                spot,
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
    pub(super) fn say(&mut self, name: &str, value: &str, spot: Location) {
        self.options += 1;
        if self.options > MOST {
            if self.options == MOST + 1 {
                self.mark(spot, format!("there are more than {MOST} options; leave some out"));
            }
            return;
        }
        let Some(option) = options::find(name) else {
            let message = unknown(name, self.marks.len() < SHOWN);
            return self.mark(spot, message);
        };
        let value = match self.substituted(option, value) {
            Ok(value) => value,
            Err(why) => return self.mark(spot, why),
        };
        match option.how {
            How::Refused(why) => return self.mark(spot, refusal(option, &value, why)),
            How::Only(values, why) if !values.contains(&value.trim()) => {
                return self.mark(spot, refusal(option, &value, why));
            }
            _ => {}
        }
        if let Some(section) = self.sections.last_mut() {
            section.said.push(Assignment { option, value, spot });
        }
    }

    /// The value with variables and keywords put in.
    fn substituted(&self, option: &FioOption, value: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = value;
        while let Some((before, (name, after))) =
            rest.split_once("${").and_then(|(b, r)| Some((b, r.split_once('}')?)))
        {
            let known = self.around.variable(name).ok_or_else(|| {
                format!(
                    "{}: the variable {} is not set; type {}=VALUE before the command",
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
                .around
                .number(keyword)
                .map_err(|why| format!("{keyword} is not known: {why}; type a number"))?;
            out = out.replace(keyword, &number.to_string());
            replaced = true;
        }
        let sum = out.contains(['+', '*', '/']).then(|| calculate(&out)).flatten();
        Ok(sum.filter(|_| replaced).unwrap_or(out))
    }

    pub(super) fn mark(&mut self, spot: Location, message: impl Into<String>) {
        self.marks.push((spot.text, Mark::new(spot.span, message)));
    }
}

/// What to do about an option that nobody knows, or that is another engine's. One like it is looked for where that is shown: in a file
/// of nothing but such options it would take long.
fn unknown(name: &str, is_shown: bool) -> String {
    if let Some(engine) = options::engine_of(name) {
        return format!("{name} belongs to fio's engine {engine}, which fathom has not; leave the job out");
    }
    match is_shown.then(|| options::nearest(name)).flatten() {
        Some(near) => format!("fio has no option '{}'; type {near}", visible(name)),
        None => {
            format!(
                "fio has no option '{}'; `fathom help reference/fio` lists those that it has",
                visible(name)
            )
        }
    }
}

fn refusal(option: &FioOption, value: &str, why: &str) -> String {
    let said = if value.is_empty() { String::new() } else { format!("={}", visible(value)) };
    let (why, advice) = why.split_once("; ").map_or((why, None), |(w, a)| (w, Some(a)));
    match advice {
        Some(advice) => format!("{}{said}: {why}; {advice}", option.name),
        // The whole reason is what to type.
        None => format!("{}{said} cannot be carried out; {why}", option.name),
    }
}

/// A piece of a text, short and harmless.
pub(super) fn visible(text: &str) -> String {
    text.chars().take(60).flat_map(char::escape_debug).collect()
}
