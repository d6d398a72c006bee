//! DISKSPD's command line: options with their values attached, followed by the targets. Sizes may be in
//! blocks of `-b`, wherever that option is. [`super::validate`] checks whether options go together.

use super::options::{ETW, EVENTS, EXPERIMENT, OPTIONS, STATISTICS, help};
use super::xml;
use crate::diskspd::Source;
use crate::trouble::{Diagnostic, Trouble, quoted, typed_hyphens};
use model::diskspd::{BLOCK, Cache, Distribution, Flush, Profile, Range, Target, Throughput, TimeSpan};

/// Letters of the options that are allowed together with an XML profile.
const XML_LETTERS: &str = ":CdRvWXz";
/// The option of fathom that allows overwriting.
const DESTROY: &str = "--destroy";
/// The error if the end of the region is given twice.
const TWICE: &str = "the end of the region is given twice; type either -BBASE:LENGTH or -fSIZE";
/// Operations between two progress messages of a thread if `-P` has no number.
const PROGRESS: u32 = 65_536;

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    /// Run the profile.
    #[default]
    Measure,
    /// Print the profile as XML or as text.
    Profile,
    /// Print this text, such as the help.
    Print(String),
}

/// What parsing needs to know about the machine.
pub struct Environment<'e> {
    /// Reads a file as text.
    pub read: &'e dyn Fn(&str) -> Result<String, String>,
    /// The seed if `-z` has no number.
    pub clock: u32,
}

/// A command line, or an XML profile.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// What to do.
    pub ask: Ask,
    /// Time spans and output settings, from the options or from the file of `-X`.
    pub profile: Profile,
    /// Targets that may be overwritten although fathom did not create them.
    pub destroy: Vec<String>,
    /// Files that were read.
    pub read: Vec<String>,
    /// Remarks on options that have no effect.
    pub remarks: Vec<String>,
    /// The text and the places of its options, for error messages.
    pub(super) source: Source,
}

/// The options read so far. They apply to all targets.
#[derive(Default)]
struct Options {
    span: TimeSpan,
    target: Target,
    /// Whether `-S` or `-h` set the use of the page cache.
    has_cache: bool,
    /// Whether the first byte of the region was given.
    has_base: bool,
    /// Whether the end of the region was given.
    has_end: bool,
}

impl CommandLine {
    /// Reads the words after `diskspd`.
    ///
    /// # Errors
    /// All errors, each with its place and what to type instead.
    pub fn parse(words: &[String], environment: &Environment) -> Result<Self, Trouble> {
        let source = Source::parse(words);
        // `-h` with a target turns caches off. Alone it asks for help.
        let asks_for_help = matches!(words, [word] if word == "-h" || word == "--help");
        if asks_for_help || words.iter().any(|word| word == "-?") {
            return Ok(Self { ask: Ask::Print(help()), source, ..Self::default() });
        }
        let mut line = Self { source, ..Self::default() };
        let mut diagnostics = Vec::new();
        let targets = line.targets(&mut diagnostics);
        let xml_file = words.iter().find_map(|word| word.strip_prefix("-X"));
        match xml_file {
            Some(_) => line.refuse_xml_options(&mut diagnostics),
            None => line.options(&targets, environment, &mut diagnostics),
        }
        line.source.refuse_errors(diagnostics)?;
        if let Some(file) = xml_file {
            line.xml(file, &targets, environment)?;
        }
        line.profile.command = words.join(" ");
        Ok(line)
    }

    /// Collects the targets, which follow all options. Only `--destroy` may be anywhere.
    fn targets(&mut self, diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
        let mut targets = Vec::new();
        for (word, place) in &self.source.words {
            if let Some(hyphens) = typed_hyphens(word) {
                diagnostics.push(Diagnostic::new(place.clone(), hyphens));
            } else if let Some(name) = word.strip_prefix(DESTROY) {
                match name.strip_prefix('=').filter(|name| !name.is_empty()) {
                    Some(name) => self.destroy.push(name.to_owned()),
                    None => {
                        diagnostics.push(Diagnostic::new(
                            place.clone(),
                            "--destroy has no name; type --destroy=NAME",
                        ));
                    }
                }
            } else if !word.starts_with('-') {
                targets.push(word.clone());
            } else if !targets.is_empty() {
                let why = format!("{word} follows a target; type options before targets");
                diagnostics.push(Diagnostic::new(place.clone(), why));
            }
        }
        targets
    }

    /// Refuses options that cannot be combined with an XML profile.
    fn refuse_xml_options(&self, diagnostics: &mut Vec<Diagnostic>) {
        let mut profiles = 0;
        for (word, place) in &self.source.words {
            let Some(letter) = word.strip_prefix('-').and_then(|w| w.chars().next()) else { continue };
            profiles += usize::from(letter == 'X');
            let why = if profiles > 1 && letter == 'X' {
                "there is a second XML profile; type one -X".into()
            } else if XML_LETTERS.contains(letter) || word.starts_with(DESTROY) {
                continue;
            } else {
                format!("{word} cannot be combined with -X; write it into the profile, or remove {word}")
            };
            diagnostics.push(Diagnostic::new(place.clone(), why));
        }
    }

    /// Reads an XML profile, and applies the options of the command line to it.
    fn xml(&mut self, file: &str, targets: &[String], environment: &Environment) -> Result<(), Trouble> {
        let mut line = Self { source: self.source.clone(), ..Self::default() };
        let mut diagnostics = Vec::new();
        let is_typed = |letter: &str| self.source.words.iter().any(|(w, _)| w.starts_with(letter));
        line.options(&[], environment, &mut diagnostics);
        let text = (environment.read)(file);
        self.source.refuse_errors(diagnostics)?;
        let text = text.map_err(|why| {
            let unread = Diagnostic::new(self.source.place(0, 0, "X"), format!("-X{file}: {why}"));
            Trouble::new(&self.source.name, &self.source.text, vec![unread])
        });
        let (mut profile, source) = xml::read(file, &text?, targets)?;
        let typed = &line.profile;
        let typed_span = typed.spans.first().cloned().unwrap_or_default();
        for span in &mut profile.spans {
            for (letter, to, from) in [
                ("-d", &mut span.duration_s, typed_span.duration_s),
                ("-W", &mut span.warmup_s, typed_span.warmup_s),
                ("-C", &mut span.cooldown_s, typed_span.cooldown_s),
                ("-z", &mut span.seed, typed_span.seed),
            ] {
                if is_typed(letter) {
                    *to = from;
                }
            }
        }
        let formats = ["-Rtext", "-Rxml", "-Rptext", "-Rpxml"];
        if self.source.words.iter().any(|(word, _)| formats.contains(&word.as_str())) {
            profile.xml = typed.xml;
        }
        profile.verbose |= typed.verbose;
        (self.ask, self.profile, self.source) = (line.ask, profile, source);
        self.read.push(file.to_owned());
        Ok(())
    }

    /// Reads the options as a profile with one time span.
    fn options(&mut self, targets: &[String], environment: &Environment, diagnostics: &mut Vec<Diagnostic>) {
        let block = self.block(diagnostics);
        let mut all = Options { target: Target { block, ..Target::default() }, ..Options::default() };
        let words = self.source.words.clone();
        for (word, place) in words.iter().filter(|(w, _)| w.starts_with('-') && !w.starts_with("--")) {
            if let Err(why) = self.option(word, &mut all, environment) {
                diagnostics.push(Diagnostic::new(
                    place.clone(),
                    format!("incorrectly provided option: {word}: {why}"),
                ));
            }
        }
        for (word, place) in words.iter().filter(|(w, _)| w.starts_with("--") && !w.starts_with(DESTROY)) {
            let why = format!("{} is not an option; `fathom diskspd -?` lists all", quoted(word));
            diagnostics.push(Diagnostic::new(place.clone(), why));
        }
        let Options { mut span, target, .. } = all;
        span.targets = targets.iter().map(|path| Target { path: path.clone(), ..target.clone() }).collect();
        self.profile.spans.push(span);
    }

    /// The block size. It is read before the other options, because their sizes may be in blocks.
    fn block(&self, diagnostics: &mut Vec<Diagnostic>) -> u32 {
        let mut block = BLOCK;
        for (word, place) in &self.source.words {
            let Some(value) = word.strip_prefix("-b") else { continue };
            let bytes = size(value, block).and_then(|bytes| {
                let fits = u32::try_from(bytes).ok().filter(|b| (1..u32::MAX).contains(b));
                fits.ok_or_else(|| {
                    format!("{} is not a block size; type a size from 1 byte to less than 4G", quoted(value))
                })
            });
            match bytes {
                Ok(bytes) => block = bytes,
                Err(why) => {
                    let why = format!("incorrectly provided option: {word}: {why}");
                    diagnostics.push(Diagnostic::new(place.clone(), why));
                }
            }
        }
        block
    }

    fn option(&mut self, word: &str, all: &mut Options, environment: &Environment) -> Result<(), String> {
        let mut chars = word.strip_prefix('-').unwrap_or(word).chars();
        let (letter, value) = (chars.next().unwrap_or('\0'), chars.as_str());
        if matches!(letter, 'B' | 'f') {
            return all.region(letter, value);
        }
        if "lnLxph".contains(letter) {
            alone(value)?;
        }
        let Options { span, target, has_cache, .. } = all;
        let block = target.block;
        match letter {
            // `-b` and `-X` were read before the other options.
            'b' | 'X' => {}
            'C' => span.cooldown_s = number(value, 0)?,
            'd' => span.duration_s = number(value, 0)?,
            'W' => span.warmup_s = number(value, 0)?,
            'z' => span.seed = if value.is_empty() { environment.clock } else { number(value, 0)? },
            'R' => self.format(value)?,
            'v' => match value {
                "" => self.profile.verbose = true,
                "s" => return Err(STATISTICS.into()),
                _ => return Err("-v takes no value; type -v".into()),
            },
            'P' => self.profile.progress = if value.is_empty() { PROGRESS } else { number(value, 1)? },
            'l' => {
                let why = OPTIONS.iter().find(|o| o.name == "l").map_or("", |option| option.about);
                self.remarks.push(format!("-l has no effect here: {why}"));
                target.large_pages = true;
            }
            'a' if matches!(value, "" | "g") => {}
            'a' => span.affinity.extend(affinity(value)?),
            'n' => span.disable_affinity = true,
            'L' => span.latency = true,
            'x' => span.completion_routines = true,
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
            'p' => target.parallel = true,
            'N' => target.flush = Some(flush(value)?),
            // `-S` without a letter is the same as `-Su`.
            'S' if value.is_empty() => add_caching('u', target, has_cache)?,
            'S' => value.chars().try_for_each(|c| add_caching(c, target, has_cache))?,
            'h' => add_caching('h', target, has_cache)?,
            'Z' => data(value, span, target)?,
            'r' => order_random(value, target)?,
            's' => order_sequential(value, target)?,
            'e' => return Err(ETW.into()),
            'y' => return Err(EVENTS.into()),
            ':' => return Err(EXPERIMENT.into()),
            _ => return Err("DISKSPD has no such option; `fathom diskspd -?` lists all".into()),
        }
        if target.priority > 3 {
            return Err("there are three priorities; type -I1, -I2 or -I3".into());
        }
        Ok(())
    }

    /// Parses the value of `-R`: `[p]text`, `[p]xml`, or `p` alone.
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
                    "there is no such format; type -Rtext or -Rxml, or -Rptext or -Rpxml to print the profile"
                        .into(),
                );
            }
        }
        Ok(())
    }
}

impl Options {
    /// Parses the values of `-B` and `-f`: the first byte and the end of the region, and open hints.
    fn region(&mut self, letter: char, value: &str) -> Result<(), String> {
        let Self { target, has_base, has_end, .. } = self;
        match letter {
            'B' => {
                if *has_base {
                    return Err("the start of the region is given twice; type -B once".into());
                }
                let (base, end) = bounds(value, target.block)?;
                if end.is_some() && *has_end {
                    return Err(TWICE.into());
                }
                (target.base, *has_base) = (base, true);
                (target.end, *has_end) = (end.unwrap_or(target.end), *has_end || end.is_some());
            }
            _ if value.starts_with(|c: char| c.is_ascii_digit()) => {
                if *has_end {
                    return Err(TWICE.into());
                }
                (target.end, *has_end) = (size(value, target.block)?, true);
            }
            _ if value.is_empty() => return Err("no value; type a size, or r or s".into()),
            _ => {
                for hint in value.chars() {
                    match hint {
                        'r' => target.random_hint = true,
                        's' => target.sequential_hint = true,
                        't' => target.temporary_hint = true,
                        _ => return Err(format!("{hint} is not a hint; type r or s, or a size")),
                    }
                }
            }
        }
        Ok(())
    }
}

/// A whole number at the beginning of a text, and the rest.
fn leading(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok().map(|number| (number, &text[end..]))
}

/// A whole number of at least `least`.
pub(super) fn number(text: &str, least: u32) -> Result<u32, String> {
    let number = text.parse::<u32>().ok().filter(|n| *n >= least);
    // DISKSPD does not accept a sign.
    let number = number.filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    number.ok_or_else(|| {
        format!("{} is not a valid number; type a whole number of at least {least}", quoted(text))
    })
}

/// A size at the beginning of a text, and the rest.
fn size_before(text: &str, block: u32) -> Result<(u64, &str), String> {
    let wrong = || {
        format!(
            "{} is not a size; type a whole number of bytes, or a number with K, M, G, T or b",
            quoted(text)
        )
    };
    let (number, rest) = leading(text).ok_or_else(wrong)?;
    let factor = match rest.bytes().next().map(|b| b.to_ascii_uppercase()) {
        Some(b'K') => 1 << 10,
        Some(b'M') => 1 << 20,
        Some(b'G') => 1 << 30,
        Some(b'T') => 1 << 40,
        Some(b'B') => u64::from(block),
        _ => return Ok((number, rest)),
    };
    let bytes = number.checked_mul(factor);
    let bytes = bytes.ok_or_else(|| format!("{} is too large; type a smaller size", quoted(text)))?;
    Ok((bytes, &rest[1..]))
}

/// A size: bytes, K, M, G, T as powers of 1024, or blocks.
pub(super) fn size(text: &str, block: u32) -> Result<u64, String> {
    match size_before(text, block)? {
        (bytes, "") => Ok(bytes),
        (_, rest) => Err(format!(
            "{} follows a size; type a whole number of bytes, or a number with K, M, G, T or b",
            quoted(rest)
        )),
    }
}

/// `BASE[:LENGTH]`: the first byte, and the end if a length is given.
pub(super) fn bounds(text: &str, block: u32) -> Result<(u64, Option<u64>), String> {
    let (base, rest) = size_before(text, block)?;
    if rest.is_empty() {
        return Ok((base, None));
    }
    let length = rest
        .strip_prefix(':')
        .ok_or_else(|| format!("{} follows the base; type a colon between base and length", quoted(rest)))?;
    let end = base.checked_add(size(length, block)?);
    end.map(|end| (base, Some(end)))
        .ok_or_else(|| "base and length are too large; type smaller values".into())
}

/// Parses CPUs: `1,4,g1,2`. Returns the processor group and the number of each CPU. The group is 0
/// unless another one precedes the CPU.
pub(super) fn affinity(text: &str) -> Result<Vec<(u32, u32)>, String> {
    let mut group = 0;
    let mut cpus = Vec::new();
    for piece in text.split(',') {
        let within = |text: &str, most: u32, what: &str| {
            let number = number(text, 0)?;
            let range = format!("{what} {number} is out of range; type a number from 0 to {most}");
            Some(number).filter(|n| *n <= most).ok_or(range)
        };
        match piece.strip_prefix('g') {
            Some(number) => group = within(number, u16::MAX.into(), "group")?,
            None => cpus.push((group, within(piece, u8::MAX.into(), "CPU")?)),
        }
    }
    let ends_in_group = text.rsplit(',').next().is_some_and(|last| last.starts_with('g'));
    if cpus.is_empty() || ends_in_group {
        return Err("a group has no CPUs; type their numbers after it, such as g0,0,1".into());
    }
    Ok(cpus)
}

/// Parses the shares of operations by parts of the target: `pct90/10:5/20`, `abs90/10G:0/10G`.
pub(super) fn distribution(text: &str, block: u32) -> Result<Distribution, String> {
    let (percent, mut rest) = match (text.strip_prefix("pct"), text.strip_prefix("abs")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return Err(format!("{} is not a distribution; type -rdpct90/10 or -rdabs90/10G", quoted(text))),
    };
    let mut ranges = Vec::new();
    loop {
        let io = leading(rest).and_then(|(io, after)| Some((u32::try_from(io).ok()?, after)));
        let (io, after) = io.filter(|(io, _)| *io <= 100).ok_or_else(|| {
            format!(
                "{} does not begin with the percentage of operations; type a number from 0 to 100",
                quoted(rest)
            )
        })?;
        let after = after.strip_prefix('/').ok_or_else(|| {
            format!("the part of the target for {io} % of the operations is missing; type it after a slash, such as {io}/10")
        })?;
        let (length, after) = if percent { part(after)? } else { size_before(after, block)? };
        if length == 0 {
            return Err("a part of the target is empty; type a larger part, or remove the option".into());
        }
        ranges.push(Range { io, length });
        match after.strip_prefix(':') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(Distribution::from_ranges(percent, ranges)),
            None => {
                return Err(format!("{} follows a part; type a colon between parts", quoted(after)));
            }
        }
    }
}

/// A percentage of the target at the beginning of a text.
fn part(text: &str) -> Result<(u64, &str), String> {
    leading(text).filter(|(percent, _)| *percent <= 100).ok_or_else(|| {
        format!(
            "{} does not begin with a percentage of the target; type a number from 1 to 100",
            quoted(text)
        )
    })
}

/// Adds a caching mode of `-S` or `-h`. Refuses a mode that conflicts with an earlier one.
fn add_caching(letter: char, target: &mut Target, has_cache: &mut bool) -> Result<(), String> {
    let is_conflict = match letter {
        'b' | 'r' => *has_cache,
        'h' => *has_cache || target.write_through || target.mapped,
        'm' => target.mapped || target.cache == Cache::Off,
        'u' => *has_cache || target.mapped,
        'w' => target.write_through,
        _ => return Err(format!("{letter} is not a caching mode; type one or more of b, h, m, u and w")),
    };
    if is_conflict {
        return Err(format!("{letter} conflicts with an earlier caching mode; type only one of them"));
    }
    match letter {
        'b' => target.cache = Cache::Cached,
        'r' => target.cache = Cache::Remote,
        'u' => target.cache = Cache::Off,
        'm' => target.mapped = true,
        'w' => target.write_through = true,
        _ => (target.cache, target.write_through) = (Cache::Off, true),
    }
    *has_cache |= !matches!(letter, 'm' | 'w');
    Ok(())
}

pub(super) fn alone(value: &str) -> Result<(), String> {
    if value.is_empty() { Ok(()) } else { Err(format!("it takes no value; leave {} out", quoted(value))) }
}

pub(super) fn at_least_one(bytes: u64) -> Result<u64, String> {
    if bytes > 0 { Ok(bytes) } else { Err("the size is 0; type a size of at least 1".into()) }
}

pub(super) fn percent(value: &str, least: u32) -> Result<u32, String> {
    let percent = number(value, least).ok().filter(|p| *p <= 100);
    percent
        .ok_or_else(|| format!("{} is not a valid percentage; type one from {least} to 100", quoted(value)))
}

pub(super) fn throughput(value: &str) -> Result<Throughput, String> {
    match value.strip_suffix('i') {
        Some(iops) => number(iops, 1).map(Throughput::Iops),
        None => number(value, 1).map(Throughput::BytesPerMs),
    }
}

pub(super) fn flush(value: &str) -> Result<Flush, String> {
    match value {
        "v" | "V" => Ok(Flush::View),
        "n" | "N" => Ok(Flush::NonVolatile),
        "i" | "I" => Ok(Flush::NonVolatileNoDrain),
        _ => Err(format!("{} is not a flush mode; type -Nv", quoted(value))),
    }
}

/// Parses the value of `-Z`: zeros, random data, or a buffer.
pub(super) fn data(value: &str, span: &mut TimeSpan, target: &mut Target) -> Result<(), String> {
    match value {
        "" => target.zeros = true,
        "r" => span.random_writes = true,
        _ => {
            let (bytes, file) = value.split_once(',').map_or((value, None), |(b, f)| (b, Some(f)));
            target.buffer = at_least_one(size(bytes, target.block)?)?;
            target.buffer_file = file.filter(|f| !f.is_empty()).map(str::to_owned);
        }
    }
    Ok(())
}

/// Parses the values of `-r`, `-rs` and `-rd`.
pub(super) fn order_random(value: &str, target: &mut Target) -> Result<(), String> {
    if let Some(parts) = value.strip_prefix('d') {
        target.distribution = Some(distribution(parts, target.block)?);
        return Ok(());
    }
    if let Some(share) = value.strip_prefix('s') {
        let share = percent(share, 1)?;
        if target.random_percent == 0 && target.alignment.is_some() {
            return Err("-s is given too; use -r to specify IO alignment with -rs, and leave -s out".into());
        }
        if !matches!(target.random_percent, 0 | 100) {
            return Err("mixed random/sequential IO is specified multiple times; type -rs once".into());
        }
        target.random_percent = share;
        return Ok(());
    }
    let align =
        if value.is_empty() { target.block.into() } else { at_least_one(size(value, target.block)?)? };
    match (target.random_percent, target.alignment) {
        (0, Some(_)) => Err("sequential IO (-s) conflicts with random IO (-r, -rs); type one of them".into()),
        (_, Some(_)) => Err("random IO is specified multiple times; type -r once".into()),
        (random, None) => {
            target.random_percent = if random == 0 { 100 } else { random };
            target.alignment = Some(align);
            Ok(())
        }
    }
}

/// Parses the values of `-s` and `-si`.
pub(super) fn order_sequential(value: &str, target: &mut Target) -> Result<(), String> {
    let (interlocked, stride) = value.strip_prefix('i').map_or((false, value), |stride| (true, stride));
    if target.random_percent > 0 {
        return Err("sequential IO (-s) conflicts with random IO (-r, -rs); remove -s, or use -r to specify IO alignment".into());
    }
    if target.alignment.is_some() {
        return Err("sequential IO is specified multiple times; type -s once".into());
    }
    target.interlocked |= interlocked;
    target.alignment =
        Some(if stride.is_empty() { target.block.into() } else { size(stride, target.block)? });
    Ok(())
}

#[test]
fn sizes_are_whole_numbers_of_bytes_or_blocks() {
    let all: Vec<_> = ["23", "4k", "4K", "1m", "2G", "1T", "8b"].map(|t| size(t, 4096)).to_vec();
    let expected = [23, 4096, 4096, 1 << 20, 2 << 30, 1 << 40, 32768].map(Ok);
    assert_eq!(all, expected);
    for bad in ["", "x", "-1", "4kx", "4kk", "1.5k", "99999999999999999999", "99999999999T", "k"] {
        assert!(size(bad, 4096).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}

#[test]
fn bounds_have_a_base_and_a_length() {
    let parse = |text| bounds(text, 1 << 16);
    assert_eq!((parse("5m"), parse("5m:1m")), (Ok((5 << 20, None)), Ok((5 << 20, Some(6 << 20)))));
    for bad in ["5mx", "5m:", "5m:j", "5m:1x", "5m:1mx", "", "1:18446744073709551615"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn cpus_follow_their_group() {
    let parse = |text| affinity(text).map_err(|e| e.contains("; type"));
    assert_eq!(parse("1,4,6"), Ok(vec![(0, 1), (0, 4), (0, 6)]));
    assert_eq!(parse("g0,1,4,6,g1,2,5,7"), Ok(vec![(0, 1), (0, 4), (0, 6), (1, 2), (1, 5), (1, 7)]));
    for bad in ["g0", "gg", "g,0,1,2", "1,", "g1,0,", "g1,0,g", "g1,0,g2", "x", "g0,300", "g70000,1", "1,,2"]
    {
        assert_eq!(parse(bad), Err(true), "{bad}");
    }
}

#[test]
fn the_rest_of_the_target_gets_the_rest_of_the_operations() {
    let parse = |text: &str| {
        let found = distribution(text, 1 << 16).map_err(|e| e.contains("; type"))?;
        Ok((found.percent, found.ranges.iter().map(|r| (r.io, r.length)).collect::<Vec<_>>()))
    };
    assert_eq!(parse("pct10/10:10/10:0/10"), Ok((true, vec![(10, 10), (10, 10), (0, 10), (80, 70)])));
    let giga = 1 << 30;
    assert_eq!(
        parse("abs10/1G:10/1G:0/100G"),
        Ok((false, vec![(10, giga), (10, giga), (0, 100 * giga), (80, 0)]))
    );
    for bad in [
        "",
        "foo",
        "foo10/1G:10/1G:0/100G",
        "pctBAD",
        "absBAD",
        "pct10",
        "abs10",
        "pct10[",
        "abs10[",
        "pct10/",
        "abs10/",
        "pct10/BAD",
        "abs10/BAD",
        "pct10/10[",
        "abs10/10g[",
        "pct10/10:",
        "abs10/10g:",
        "pct10/10:BAD",
        "abs10/10g:BAD",
        "pct101/10",
        "abs101/10g",
        "pct10/0",
        "pct60/10:10/0",
        "abs10/0",
        "abs60/10g:10/0",
    ] {
        assert_eq!(parse(bad), Err(true), "{bad}");
    }
}
