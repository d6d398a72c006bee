//! DISKSPD's command line: its words into a profile.
//!
//! For: options with their values right behind them, targets behind the options, sizes in blocks of `-b` wherever that stands; an XML
//! profile with what may stand beside it. Not for: whether options go together ([`super::validate`]), nor what Linux has not
//! ([`super::here`]).

use super::letters::{
    Caching, alone, at_least_one, data, flush, order_random, order_sequential, percent, throughput,
};
use super::options::{self, ETW, EVENTS, EXPERIMENT, STATISTICS, help};
use super::source::Source;
use super::value::{affinity, bounds, number, shown, size};
use super::xml;
use crate::dashes::typed_hyphens;
use crate::trouble::{Mark, Trouble};
use model::diskspd::{BLOCK, Profile, Target, TimeSpan};

/// Letters of the options that may stand beside an XML profile.
const BESIDE_XML: &str = ":CdRvWXz";
/// What allows overwriting, which DISKSPD does not have.
const DESTROY: &str = "--destroy";
/// What is wrong with a second end.
const TWICE: &str = "where it ends is said twice; type -BBASE:LENGTH or -fSIZE, once";
/// Operations after which a thread shows progress where `-P` has no number.
const PROGRESS: u32 = 65_536;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    /// To carry it out.
    #[default]
    Measure,
    /// To print the profile: as XML, or as text.
    Profile,
    /// To print a text.
    Print(String),
}

/// What is known of the machine and the moment.
pub struct Here<'h> {
    /// The text of a file.
    pub read: &'h dyn Fn(&str) -> Result<String, String>,
    /// CPUs that may be used, in their order; empty where threads are not to be bound to any.
    pub cpus: &'h [u32],
    /// What a seed of the clock is.
    pub clock: u32,
}

/// A command line, or an XML profile.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// What is asked for.
    pub ask: Ask,
    /// What was said of it.
    pub profile: Profile,
    /// What may be overwritten though fathom did not make it.
    pub destroy: Vec<String>,
    /// Files that were read.
    pub read: Vec<String>,
    /// What is told of options that change nothing.
    pub remarks: Vec<String>,
    /// What messages are about.
    pub(super) source: Source,
}

/// Options while they are read, of all targets alike.
#[derive(Default)]
struct Options {
    span: TimeSpan,
    target: Target,
    caching: Caching,
    /// Whether the first byte and the last were said.
    base: bool,
    end: bool,
}

impl CommandLine {
    /// Reads the words behind `diskspd`.
    ///
    /// # Errors
    /// Everything that is wrong with them, each at its place with what to type instead.
    pub fn parse(words: &[String], here: &Here) -> Result<Self, Trouble> {
        let source = Source::parse(words);
        if words.iter().any(|word| word == "-?") {
            return Ok(Self { ask: Ask::Print(help()), source, ..Self::default() });
        }
        let mut said = Self { source, ..Self::default() };
        let mut marks = Vec::new();
        let targets = said.targets(&mut marks);
        if let Some(file) = words.iter().find_map(|word| word.strip_prefix("-X")) {
            said.beside_xml(&mut marks);
            if !marks.is_empty() {
                return Err(said.source.trouble(marks));
            }
            said.xml(file, &targets, here)?;
        } else {
            said.options(targets, here, &mut marks);
            if !marks.is_empty() {
                return Err(said.source.trouble(marks));
            }
        }
        said.profile.command = words.join(" ");
        Ok(said)
    }

    /// Paths, which stand behind all options; what allows overwriting may stand anywhere.
    fn targets(&mut self, marks: &mut Vec<Mark>) -> Vec<String> {
        let mut targets = Vec::new();
        for (word, place) in &self.source.words {
            if let Some(hyphens) = typed_hyphens(word) {
                marks.push(Mark::new(place.clone(), hyphens));
            } else if let Some(name) = word.strip_prefix(DESTROY) {
                match name.strip_prefix('=').filter(|name| !name.is_empty()) {
                    Some(name) => self.destroy.push(name.to_owned()),
                    None => {
                        marks.push(Mark::new(place.clone(), "--destroy has no name; type --destroy=NAME"));
                    }
                }
            } else if !word.starts_with('-') {
                targets.push(word.clone());
            } else if !targets.is_empty() {
                let why = format!("{word} stands behind a target; type options before targets");
                marks.push(Mark::new(place.clone(), why));
            }
        }
        targets
    }

    /// Refuses what an XML profile says by itself.
    fn beside_xml(&self, marks: &mut Vec<Mark>) {
        let mut profiles = 0;
        for (word, place) in &self.source.words {
            let Some(letter) = word.strip_prefix('-').and_then(|w| w.chars().next()) else { continue };
            profiles += usize::from(letter == 'X');
            let why = if profiles > 1 && letter == 'X' {
                "there is a second XML profile; type one -X".into()
            } else if BESIDE_XML.contains(letter) || word.starts_with(DESTROY) {
                continue;
            } else {
                format!("{word} does not go with -X; write it into the profile, or leave it out")
            };
            marks.push(Mark::new(place.clone(), why));
        }
    }

    /// An XML profile, with what was typed beside it.
    fn xml(&mut self, file: &str, targets: &[String], here: &Here) -> Result<(), Trouble> {
        let mut beside = Self { source: self.source.clone(), ..Self::default() };
        let mut marks = Vec::new();
        let said = |letter: &str| self.source.words.iter().any(|(w, _)| w.starts_with(letter));
        beside.options(Vec::new(), here, &mut marks);
        let text = (here.read)(file).map_err(|why| {
            self.source.trouble(vec![Mark::new(self.source.place(0, 0, "X"), format!("-X{file}: {why}"))])
        });
        if !marks.is_empty() {
            return Err(self.source.trouble(marks));
        }
        let (mut profile, source) = xml::read(file, &text?, targets)?;
        let typed = &beside.profile;
        let own = typed.spans.first().cloned().unwrap_or_default();
        for span in &mut profile.spans {
            for (letter, to, from) in [
                ("-d", &mut span.duration_s, own.duration_s),
                ("-W", &mut span.warmup_s, own.warmup_s),
                ("-C", &mut span.cooldown_s, own.cooldown_s),
                ("-z", &mut span.seed, own.seed),
            ] {
                if said(letter) {
                    *to = from;
                }
            }
        }
        if self
            .source
            .words
            .iter()
            .any(|(w, _)| matches!(w.as_str(), "-Rtext" | "-Rxml" | "-Rptext" | "-Rpxml"))
        {
            profile.xml = typed.xml;
        }
        profile.verbose |= typed.verbose;
        (self.ask, self.profile, self.source) = (beside.ask, profile, source);
        self.read.push(file.to_owned());
        Ok(())
    }

    /// Options of a profile of one time span.
    fn options(&mut self, targets: Vec<String>, here: &Here, marks: &mut Vec<Mark>) {
        let block = self.block(marks);
        let mut all = Options { target: Target { block, ..Target::default() }, ..Options::default() };
        let words = self.source.words.clone();
        for (word, place) in words.iter().filter(|(w, _)| w.starts_with('-') && !w.starts_with("--")) {
            if let Err(why) = self.option(word, &mut all, here) {
                marks.push(Mark::new(place.clone(), format!("incorrectly provided option: {word}: {why}")));
            }
        }
        for (word, place) in words.iter().filter(|(w, _)| w.starts_with("--") && !w.starts_with(DESTROY)) {
            let why = format!("{} is no option; `fathom diskspd -?` lists them", shown(word));
            marks.push(Mark::new(place.clone(), why));
        }
        let Options { mut span, mut target, caching, .. } = all;
        target.cache = caching.cache.unwrap_or_default();
        (target.write_through, target.mapped) = (caching.write_through, caching.mapped);
        span.targets = targets.into_iter().map(|path| Target { path, ..target.clone() }).collect();
        self.profile.spans.push(span);
    }

    /// The block, which sizes before it may be in too.
    fn block(&self, marks: &mut Vec<Mark>) -> u32 {
        let mut block = BLOCK;
        for (word, place) in &self.source.words {
            let Some(value) = word.strip_prefix("-b") else { continue };
            let bytes = size(value, block).and_then(|bytes| {
                let fits = u32::try_from(bytes).ok().filter(|b| (1..u32::MAX).contains(b));
                fits.ok_or_else(|| {
                    format!("{} is no block; type a size from 1 byte to below 4G", shown(value))
                })
            });
            match bytes {
                Ok(bytes) => block = bytes,
                Err(why) => {
                    let why = format!("incorrectly provided option: {word}: {why}");
                    marks.push(Mark::new(place.clone(), why));
                }
            }
        }
        block
    }

    fn option(&mut self, word: &str, all: &mut Options, here: &Here) -> Result<(), String> {
        let said = word.strip_prefix('-').unwrap_or(word);
        let mut chars = said.chars();
        let (letter, value) = (chars.next().unwrap_or('\0'), chars.as_str());
        if matches!(letter, 'B' | 'f') {
            return all.region(letter, value);
        }
        let Options { span, target, caching, .. } = all;
        let block = target.block;
        match letter {
            // Read before all others.
            'b' | 'X' => {}
            'C' => span.cooldown_s = number(value, 0)?,
            'd' => span.duration_s = number(value, 0)?,
            'W' => span.warmup_s = number(value, 0)?,
            'z' => span.seed = if value.is_empty() { here.clock } else { number(value, 0)? },
            'R' => self.format(value)?,
            'v' => match value {
                "" => self.profile.verbose = true,
                "s" => return Err(STATISTICS.into()),
                _ => return Err("it has no value; type -v".into()),
            },
            'P' => self.profile.progress = if value.is_empty() { PROGRESS } else { number(value, 1)? },
            'l' => {
                alone(value)?;
                let large = options::OPTIONS.iter().find(|o| o.name == "l");
                if let Some(options::How::NoEffect(why)) = large.map(|o| o.how) {
                    self.remarks.push(format!("-l changes nothing here: {why}"));
                }
                target.large_pages = true;
            }
            'a' if matches!(value, "" | "g") => {}
            'a' => span.affinity.extend(affinity(value)?),
            'n' => (span.disable_affinity, ()) = (true, alone(value)?),
            'L' => (span.latency, ()) = (true, alone(value)?),
            'x' => (span.completion_routines, ()) = (true, alone(value)?),
            'D' => {
                span.iops = true;
                span.bucket_ms = if value.is_empty() { span.bucket_ms } else { number(value, 1)? };
            }
            'F' => span.threads = number(value, 1)?,
            'O' => span.requests = number(value, 1)?,
            'o' => target.requests = number(value, 1)?,
            't' => target.threads = number(value, 1)?,
            'T' => target.thread_stride = at_least_one(size(value, block)?)?,
            'c' => target.create = Some(size(value, block)?),
            'w' => target.write_percent = percent(value, 0)?,
            'I' => target.priority = number(value, 1)?.min(4),
            'i' => target.burst = Some(number(value, 1)?),
            'j' => target.think_ms = Some(number(value, 1)?),
            'g' => target.throughput = Some(throughput(value)?),
            'p' => (target.parallel, ()) = (true, alone(value)?),
            'N' => target.flush = Some(flush(value)?),
            'S' => value.chars().try_for_each(|c| caching.say(c)).and_then(|()| caching.bare(value))?,
            'h' => alone(value).and_then(|()| caching.say('h'))?,
            'Z' => data(value, span, target)?,
            'r' => order_random(value, target)?,
            's' => order_sequential(value, target)?,
            'e' => return Err(ETW.into()),
            'y' => return Err(EVENTS.into()),
            ':' => return Err(EXPERIMENT.into()),
            _ => return Err("there is no such option; `fathom diskspd -?` lists them".into()),
        }
        if target.priority > 3 {
            return Err("there are three priorities; type -I1, -I2 or -I3".into());
        }
        Ok(())
    }

    /// `[p]text`, `[p]xml`, or `p` alone.
    fn format(&mut self, value: &str) -> Result<(), String> {
        let format = match value.strip_prefix('p') {
            Some(format) => {
                self.ask = Ask::Profile;
                format
            }
            None => value,
        };
        match format {
            "xml" => self.profile.xml = true,
            "text" => self.profile.xml = false,
            "" if value == "p" => {}
            _ => {
                return Err(
                    "there is no such format; type -Rtext or -Rxml, with p behind the R to print the profile"
                        .into(),
                );
            }
        }
        Ok(())
    }
}

impl Options {
    /// `-B` and `-f`: first and last byte, and hints.
    fn region(&mut self, letter: char, value: &str) -> Result<(), String> {
        let Self { target, base, end, .. } = self;
        match letter {
            'B' => {
                if *base {
                    return Err("where it begins is said twice; type -B once".into());
                }
                let (first, last) = bounds(value, target.block)?;
                if last.is_some() && *end {
                    return Err(TWICE.into());
                }
                (target.base, *base) = (first, true);
                (target.end, *end) = (last.unwrap_or(target.end), *end || last.is_some());
            }
            _ if value.starts_with(|c: char| c.is_ascii_digit()) => {
                if *end {
                    return Err(TWICE.into());
                }
                (target.end, *end) = (size(value, target.block)?, true);
            }
            _ if value.is_empty() => return Err("it has no value; type a size, or the letters r, s".into()),
            _ => {
                for hint in value.chars() {
                    match hint {
                        'r' => target.random_hint = true,
                        's' => target.sequential_hint = true,
                        't' => target.temporary_hint = true,
                        _ => return Err(format!("{hint} is no hint; type r or s, or a size")),
                    }
                }
            }
        }
        Ok(())
    }
}
