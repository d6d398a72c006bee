//! A profile as DISKSPD's XML has it.
//!
//! For: the element Profile, which its command line takes back with -X. Not for: reading one (crate `dialect`).

use model::diskspd::{Cache, Profile, Target, Throughput, TimeSpan};
use std::fmt::Display;

/// Lines of XML, two blanks further in for each element around them.
pub(super) struct Lines {
    pub(super) text: String,
    indent: usize,
}

impl Lines {
    pub(super) fn new(indent: usize) -> Self {
        Self { text: String::new(), indent }
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: impl Display) {
        self.text += &format!("{:indent$}{line}\n", "", indent = self.indent);
    }

    /// An element with a value.
    pub(super) fn value(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("<{name}>{}</{name}>", escaped(&value.to_string())));
    }

    /// An element around others.
    pub(super) fn within(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.with(name, "", write);
    }

    /// An element around others, with attributes, which begin with a blank.
    pub(super) fn with(&mut self, name: &str, attributes: &str, write: impl FnOnce(&mut Self)) {
        self.line(format_args!("<{name}{attributes}>"));
        self.indent += 2;
        write(self);
        self.indent -= 2;
        self.line(format_args!("</{name}>"));
    }
}

/// A text inside XML. Control characters but for white space have no form there, and are shown by their number elsewhere; here they are
/// question marks.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// The whole of it, so many blanks in.
pub(super) fn profile_xml(profile: &Profile, indent: usize) -> String {
    let mut lines = Lines::new(indent);
    lines.within("Profile", |lines| {
        lines.value("Progress", profile.progress);
        lines.value("ResultFormat", if profile.xml { "xml" } else { "text" });
        lines.value("Verbose", profile.verbose);
        if let Some(rule) = &profile.precreate {
            lines.value("PrecreateFiles", rule);
        }
        lines.within("TimeSpans", |lines| profile.spans.iter().for_each(|span| profile_span(span, lines)));
    });
    lines.text
}

fn profile_span(span: &TimeSpan, lines: &mut Lines) {
    lines.within("TimeSpan", |lines| {
        lines.value("CompletionRoutines", span.completion_routines);
        lines.value("MeasureLatency", span.latency);
        lines.value("CalculateIopsStdDev", span.iops);
        lines.value("DisableAffinity", span.disable_affinity);
        if span.random_writes {
            lines.value("RandomWriteData", true);
        }
        lines.value("Duration", span.duration_s);
        lines.value("Warmup", span.warmup_s);
        lines.value("Cooldown", span.cooldown_s);
        lines.value("ThreadCount", span.threads);
        lines.value("RequestCount", span.requests);
        lines.value("IoBucketDuration", span.bucket_ms);
        lines.value("RandSeed", span.seed);
        if !span.affinity.is_empty() {
            lines.within("Affinity", |lines| {
                for (group, cpu) in &span.affinity {
                    lines.line(format_args!(
                        "<AffinityGroupAssignment Group=\"{group}\" Processor=\"{cpu}\"/>"
                    ));
                }
            });
        }
        lines.within("Targets", |lines| span.targets.iter().for_each(|target| profile_target(target, lines)));
    });
}

/// One target.
pub(super) fn profile_target(target: &Target, lines: &mut Lines) {
    lines.within("Target", |lines| {
        lines.value("Path", &target.path);
        lines.value("BlockSize", target.block);
        lines.value("BaseFileOffset", target.base);
        lines.value("SequentialScan", target.sequential_hint);
        lines.value("RandomAccess", target.random_hint);
        lines.value("TemporaryFile", target.temporary_hint);
        lines.value("UseLargePages", target.large_pages);
        profile_caching(target, lines);
        profile_data(target, lines);
        lines.value("ParallelAsyncIO", target.parallel);
        if let Some(burst) = target.burst {
            lines.value("BurstSize", burst);
        }
        if let Some(ms) = target.think_ms {
            lines.value("ThinkTime", ms);
        }
        if let Some(bytes) = target.create {
            lines.value("FileSize", bytes);
        }
        profile_order(target, lines);
        lines.value("ThreadStride", target.thread_stride);
        lines.value("MaxFileSize", target.end);
        lines.value("RequestCount", target.requests);
        lines.value("WriteRatio", target.write_percent);
        match target.throughput {
            Some(Throughput::Iops(iops)) => {
                lines.line(format_args!("<Throughput unit=\"IOPS\">{iops}</Throughput>"));
            }
            Some(Throughput::BytesPerMs(bytes)) => lines.value("Throughput", bytes),
            None => lines.value("Throughput", 0),
        }
        lines.value("ThreadsPerFile", target.threads);
        lines.value("IOPriority", target.priority);
        lines.value("Weight", target.weight);
        if !target.thread_targets.is_empty() {
            lines.within("ThreadTargets", |lines| {
                for (thread, weight) in &target.thread_targets {
                    lines.within("ThreadTarget", |lines| {
                        lines.value("Thread", thread);
                        if *weight > 0 {
                            lines.value("Weight", weight);
                        }
                    });
                }
            });
        }
    });
}

/// What is the default is left out.
fn profile_caching(target: &Target, lines: &mut Lines) {
    match target.cache {
        Cache::Cached => {}
        Cache::Remote => lines.value("DisableLocalCache", true),
        Cache::Off => lines.value("DisableOSCache", true),
    }
    if target.write_through {
        lines.value("WriteThrough", true);
    }
    if target.mapped {
        lines.value("MemoryMappedIo", true);
    }
    if let Some(flush) = target.flush {
        lines.value("FlushType", flush.names().0);
    }
}

fn profile_data(target: &Target, lines: &mut Lines) {
    lines.within("WriteBufferContent", |lines| {
        if target.zeros {
            lines.value("Pattern", "zero");
        } else if target.buffer == 0 {
            lines.value("Pattern", "sequential");
        } else {
            lines.value("Pattern", "random");
            lines.within("RandomDataSource", |lines| {
                lines.value("SizeInBytes", target.buffer);
                if let Some(file) = &target.buffer_file {
                    lines.value("FilePath", file);
                }
            });
        }
    });
}

fn profile_order(target: &Target, lines: &mut Lines) {
    if target.random_percent == 0 {
        lines.value("StrideSize", target.step());
        lines.value("InterlockedSequential", target.interlocked);
        return;
    }
    lines.value("Random", target.step());
    if target.random_percent != 100 {
        lines.value("RandomRatio", target.random_percent);
    }
    if let Some(parts) = &target.distribution {
        lines.within("Distribution", |lines| {
            lines.within(if parts.percent { "Percent" } else { "Absolute" }, |lines| {
                for part in &parts.ranges {
                    lines.line(format_args!("<Range IO=\"{}\">{}</Range>", part.io, part.length));
                }
            });
        });
    }
}
