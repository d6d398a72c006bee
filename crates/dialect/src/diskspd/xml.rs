//! DISKSPD's XML profiles, and results that contain their profile. An unknown element is an error at its
//! place. [`super::validate`] checks whether settings go together.
//!
//! Source of names and values: DISKSPD 2.2, `XmlProfileParser/diskspd.xsd` (MIT licence).

use super::options::{ETW, EXPERIMENT, STATISTICS};
use crate::diskspd::Source;
use crate::trouble::{Diagnostic, Trouble, quoted};
use model::diskspd::{Cache, Distribution, Flush, Profile, Range, Target, Throughput, TimeSpan};
use roxmltree::{Document, Node, ParsingOptions};
use std::fmt::Display;
use std::str::FromStr;

/// Maximum number of XML nodes of a profile. A hundred targets in a hundred time spans have fewer.
const MAX_NODES: u32 = 500_000;

/// Reads a profile. `targets` replace the paths `*1`, `*2` and so on.
///
/// # Errors
/// All errors, each with its place.
pub(super) fn read(name: &str, text: &str, targets: &[String]) -> Result<(Profile, Source), Trouble> {
    Trouble::refuse_large(name, text, "a profile")?;
    // A byte order mark is skipped.
    let text = text.trim_start_matches('\u{feff}');
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|why| {
        let at = why.pos();
        // The parser reports a missing end tag one line after the last.
        let line = text.lines().nth((at.row as usize).saturating_sub(1)).unwrap_or(&text[text.len()..]);
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let column =
            line.char_indices().nth((at.col as usize).saturating_sub(1)).map_or(line.len(), |(i, _)| i);
        let place = if line.is_empty() { text.len()..text.len() } else { start + column..start + column };
        Trouble::new(name, text, vec![Diagnostic::new(place, format!("this is not XML: {why}"))])
    })?;
    let mut reader = Reader { diagnostics: Vec::new(), places: Vec::new(), targets };
    let profile = reader.root(document.root_element());
    Trouble::refuse_errors(name, text, reader.diagnostics)?;
    let source = Source { name: name.into(), text: text.into(), words: Vec::new(), targets: reader.places };
    Ok((profile, source))
}

/// The trimmed text in an element; empty if the element has no text.
fn element_text<'a>(node: Node<'a, '_>) -> &'a str {
    node.text().unwrap_or_default().trim()
}

struct Reader<'r> {
    diagnostics: Vec<Diagnostic>,
    /// Places of the targets of each time span.
    places: Vec<Vec<std::ops::Range<usize>>>,
    targets: &'r [String],
}

/// The elements in a node, without comments and text.
fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

impl Reader<'_> {
    fn wrong(&mut self, node: Node, why: impl Into<String>) {
        self.diagnostics.push(Diagnostic::new(node.range(), why));
    }

    fn unknown(&mut self, node: Node) {
        let name = node.tag_name().name();
        self.wrong(node, format!("DISKSPD has no element {name}; remove it"));
    }

    /// The elements with this name in a node. Any other element is an error.
    fn named<'a, 'i>(&mut self, node: Node<'a, 'i>, name: &str) -> Vec<Node<'a, 'i>> {
        let (named, others): (Vec<_>, Vec<_>) = elements(node).partition(|n| n.tag_name().name() == name);
        for other in others {
            self.unknown(other);
        }
        named
    }

    fn number<N: FromStr + Display + Default + PartialOrd + Copy>(&mut self, node: Node, least: N) -> N {
        let text = element_text(node);
        let number = text.parse::<N>().ok().filter(|n| *n >= least);
        number.unwrap_or_else(|| {
            let why = format!(
                "{} is not a valid number here; write a whole number of at least {least}",
                quoted(text)
            );
            self.wrong(node, why);
            N::default()
        })
    }

    fn percent(&mut self, node: Node, least: u32) -> u32 {
        let percent = self.number(node, least);
        if percent > 100 {
            self.wrong(
                node,
                format!("the percentage is above 100 %; write a percentage from {least} to 100"),
            );
        }
        percent.min(100)
    }

    fn boolean(&mut self, node: Node) -> bool {
        match element_text(node) {
            "true" | "1" => true,
            "false" | "0" => false,
            other => {
                let why = format!("{} is not true or false; write true or false", quoted(other));
                self.wrong(node, why);
                false
            }
        }
    }

    /// Refuses a known element unless its value switches it off.
    fn must_be_off(&mut self, node: Node, why: &str) {
        if !matches!(element_text(node), "false" | "0") {
            self.wrong(node, why);
        }
    }

    fn root(&mut self, root: Node) -> Profile {
        match root.tag_name().name() {
            "Profile" => return self.profile(root),
            "Results" => {
                if let Some(profile) = elements(root).find(|n| n.tag_name().name() == "Profile") {
                    return self.profile(profile);
                }
                self.wrong(root, "these results contain no profile; type the name of the profile itself");
            }
            _ => self.wrong(root, "this is not a DISKSPD profile; write Profile as the first element"),
        }
        Profile::default()
    }

    fn profile(&mut self, node: Node) -> Profile {
        let mut profile = Profile::default();
        for child in elements(node) {
            match child.tag_name().name() {
                "Progress" => profile.progress = self.number(child, 0),
                "Verbose" => profile.verbose = self.boolean(child),
                "VerboseStats" => self.must_be_off(child, STATISTICS),
                "ExperimentFlags" => self.must_be_off(child, EXPERIMENT),
                "ETW" => self.wrong(child, ETW),
                "ResultFormat" => match element_text(child) {
                    "xml" => profile.xml = true,
                    "text" => profile.xml = false,
                    _ => self.wrong(child, "there is no such format; write text or xml"),
                },
                "PrecreateFiles" => {
                    let rule = element_text(child);
                    let known = [
                        "UseMaxSize",
                        "CreateOnlyFilesWithConstantSizes",
                        "CreateOnlyFilesWithConstantOrZeroSizes",
                    ];
                    if !known.contains(&rule) {
                        self.wrong(child, "there is no such precreation rule; write UseMaxSize");
                    }
                    profile.precreate = Some(rule.to_owned());
                }
                "TimeSpans" => {
                    for span in self.named(child, "TimeSpan") {
                        profile.spans.push(self.span(span));
                    }
                }
                _ => self.unknown(child),
            }
        }
        profile
    }

    fn span(&mut self, node: Node) -> TimeSpan {
        let (mut span, mut places) = (TimeSpan::default(), Vec::new());
        for child in elements(node) {
            match child.tag_name().name() {
                "CompletionRoutines" => span.completion_routines = self.boolean(child),
                "MeasureLatency" => span.latency = self.boolean(child),
                "CalculateIopsStdDev" => span.iops = self.boolean(child),
                "DisableAffinity" => span.disable_affinity = self.boolean(child),
                "RandomWriteData" => span.random_writes = self.boolean(child),
                "Duration" => span.duration_s = self.number(child, 0),
                "Warmup" => span.warmup_s = self.number(child, 0),
                "Cooldown" => span.cooldown_s = self.number(child, 0),
                "ThreadCount" => span.threads = self.number(child, 0),
                "RequestCount" => span.requests = self.number(child, 0),
                "IoBucketDuration" => span.bucket_ms = self.number(child, 1),
                "RandSeed" => span.seed = self.number(child, 0),
                "Affinity" => self.affinity(child, &mut span),
                "Targets" => {
                    for target in self.named(child, "Target") {
                        places.push(target.range());
                        span.targets.push(self.target(target));
                    }
                }
                _ => self.unknown(child),
            }
        }
        self.places.push(places);
        span
    }

    fn affinity(&mut self, node: Node, span: &mut TimeSpan) {
        for child in elements(node) {
            let name = child.tag_name().name();
            if name == "AffinityAssignment" {
                // Older versions of DISKSPD write the affinity in this form.
                span.affinity.push((0, self.number(child, 0)));
                continue;
            }
            let attribute = |name| child.attribute(name).and_then(|text| text.trim().parse::<u32>().ok());
            match (name, attribute("Group"), attribute("Processor")) {
                ("AffinityGroupAssignment", Some(group), Some(cpu)) => span.affinity.push((group, cpu)),
                ("AffinityGroupAssignment", ..) => {
                    self.wrong(child, "the element names no CPU; write Group=\"0\" Processor=\"1\"");
                }
                _ => self.unknown(child),
            }
        }
    }

    fn target(&mut self, node: Node) -> Target {
        let mut target = Target::default();
        let (mut stride, mut random) = (None, None);
        for child in elements(node) {
            match child.tag_name().name() {
                "Path" => target.path = self.path(child),
                "BlockSize" => target.block = self.number(child, 1),
                "StrideSize" => stride = Some(self.number(child, 0)),
                "Random" => random = Some(self.number(child, 1)),
                "RandomRatio" => target.random_percent = self.percent(child, 1),
                "Distribution" => target.distribution = self.distribution(child),
                "InterlockedSequential" => target.interlocked = self.boolean(child),
                "ParallelAsyncIO" => target.parallel = self.boolean(child),
                "ThreadStride" => target.thread_stride = self.number(child, 0),
                "BaseFileOffset" => target.base = self.number(child, 0),
                "MaxFileSize" => target.end = self.number(child, 0),
                "FileSize" => target.create = Some(self.number(child, 0)),
                "RequestCount" => target.requests = self.number(child, 1),
                "WriteRatio" => target.write_percent = self.percent(child, 0),
                "ThreadsPerFile" => target.threads = self.number(child, 1),
                "BurstSize" => target.burst = Some(self.number(child, 0)).filter(|n| *n > 0),
                "ThinkTime" => target.think_ms = Some(self.number(child, 0)).filter(|n| *n > 0),
                "Throughput" => target.throughput = self.throughput(child),
                "IOPriority" => {
                    target.priority = self.number(child, 1);
                    if target.priority > 3 {
                        self.wrong(child, "there are three priorities; write 1, 2 or 3");
                    }
                }
                "Weight" => target.weight = self.number(child, 0),
                "ThreadTargets" => self.thread_targets(child, &mut target),
                name => self.open_mode(child, name, &mut target),
            }
        }
        if let Some(align) = random {
            // If both Random and StrideSize are present, accesses are random.
            target.alignment = Some(align);
            target.random_percent = if target.random_percent == 0 { 100 } else { target.random_percent };
        } else {
            if target.random_percent > 0 {
                self.wrong(node, "RandomRatio needs a Random; write both");
            }
            target.alignment = stride;
        }
        target
    }

    /// Reads how a target is opened and what is written to it.
    fn open_mode(&mut self, child: Node, name: &str, target: &mut Target) {
        match name {
            "SequentialScan" => target.sequential_hint = self.boolean(child),
            "RandomAccess" => target.random_hint = self.boolean(child),
            "TemporaryFile" => target.temporary_hint = self.boolean(child),
            "UseLargePages" => target.large_pages = self.boolean(child),
            "DisableAllCache" => {
                if self.boolean(child) {
                    (target.cache, target.write_through) = (Cache::Off, true);
                }
            }
            "DisableOSCache" => {
                target.cache = if self.boolean(child) { Cache::Off } else { target.cache };
            }
            "DisableLocalCache" => {
                target.cache = if self.boolean(child) { Cache::Remote } else { target.cache };
            }
            "WriteThrough" => target.write_through |= self.boolean(child),
            "MemoryMappedIo" => target.mapped = self.boolean(child),
            "FlushType" => {
                let typed = element_text(child);
                target.flush = Flush::ALL.iter().find(|(word, ..)| *word == typed).map(|(.., flush)| *flush);
                if target.flush.is_none() {
                    self.wrong(child, "there is no such flush mode; write ViewOfFile");
                }
            }
            "WriteBufferContent" => self.content(child, target),
            _ => self.unknown(child),
        }
    }

    /// The path of a target. `*2` means the second target of the command line. If there is no
    /// such target, returns `*2`, which the validation refuses.
    fn path(&mut self, node: Node) -> String {
        let path = element_text(node);
        let number = path.strip_prefix('*').map(|n| n.parse::<usize>().ok().filter(|n| *n > 0));
        match number {
            Some(Some(number)) => self.targets.get(number - 1).cloned().unwrap_or_else(|| path.to_owned()),
            Some(None) => {
                self.wrong(
                    node,
                    "* needs the number of a target of the command line; write *1 for the first one",
                );
                String::new()
            }
            None => path.to_owned(),
        }
    }

    fn distribution(&mut self, node: Node) -> Option<Distribution> {
        let mut kinds = elements(node);
        let (kind, more) = (kinds.next(), kinds.next());
        let percent = match kind.map(|k| k.tag_name().name()) {
            Some("Percent") if more.is_none() => true,
            Some("Absolute") if more.is_none() => false,
            _ => {
                self.wrong(node, "a distribution needs exactly one kind; write Percent or Absolute into it");
                return None;
            }
        };
        let mut ranges = Vec::new();
        for range in kind.into_iter().flat_map(elements) {
            let io =
                range.attribute("IO").and_then(|io| io.trim().parse::<u32>().ok()).filter(|io| *io <= 100);
            match (range.tag_name().name(), io) {
                ("Range", Some(io)) => {
                    // 0 bytes mean the rest of the target.
                    let length: u64 = self.number(range, u64::from(percent));
                    if percent && length > 100 {
                        self.wrong(range, "above 100 % of the target; write a percentage up to 100");
                    }
                    ranges.push(Range { io, length });
                }
                ("Range", None) => self.wrong(range, "there is no percentage of operations; write IO=\"10\""),
                _ => self.unknown(range),
            }
        }
        if ranges.is_empty() {
            self.wrong(node, "a distribution has no range; write at least one");
            return None;
        }
        Some(Distribution::from_ranges(percent, ranges))
    }

    fn throughput(&mut self, node: Node) -> Option<Throughput> {
        let number = self.number(node, 0);
        let throughput = match node.attribute("unit") {
            None | Some("BPMS") => Throughput::BytesPerMs(number),
            Some("IOPS") => Throughput::Iops(number),
            Some(_) => {
                self.wrong(node, "there is no such unit; write BPMS or IOPS");
                return None;
            }
        };
        (number > 0).then_some(throughput)
    }

    fn thread_targets(&mut self, node: Node, target: &mut Target) {
        for one in self.named(node, "ThreadTarget") {
            let (mut thread, mut weight) = (0, 0);
            for child in elements(one) {
                match child.tag_name().name() {
                    "Thread" => thread = self.number(child, 0),
                    "Weight" => weight = self.number(child, 0),
                    _ => self.unknown(child),
                }
            }
            target.thread_targets.push((thread, weight));
        }
    }

    fn content(&mut self, node: Node, target: &mut Target) {
        let mut random = false;
        for child in elements(node) {
            match (child.tag_name().name(), element_text(child)) {
                ("Pattern", "sequential") => {}
                ("Pattern", "zero") => target.zeros = true,
                ("Pattern", "random") => random = true,
                ("Pattern", _) => {
                    self.wrong(child, "there is no such pattern; write sequential, zero or random");
                }
                ("RandomDataSource", _) => {
                    for source in elements(child) {
                        match source.tag_name().name() {
                            "SizeInBytes" => target.buffer = self.number(source, 1),
                            "FilePath" => target.buffer_file = Some(element_text(source).to_owned()),
                            _ => self.unknown(source),
                        }
                    }
                }
                _ => self.unknown(child),
            }
        }
        if random != (target.buffer > 0) {
            self.wrong(
                node,
                "a RandomDataSource and the pattern random belong together; write both or neither",
            );
        }
    }
}
