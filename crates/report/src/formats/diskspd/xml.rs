//! DISKSPD's XML: the profile, which DISKSPD accepts with `-X`, then the results, followed by fathom's element.

use super::text::cpu_percents;
use super::{DirectionFilter, Figures, Lane, Span, Topology, measured_spans, requested_profile};
use crate::formats::diskspd;
use crate::view::findings::{MAX_SHOWN, rest_summary, shown_checks, worst_findings};
use model::diskspd::{Cache, Profile, Target, Throughput, TimeSpan};
use model::figures::ObservedCpu;
use model::finding::Severity;
use model::record::Bucket;
use model::report::Report;
use std::fmt::Display;
use std::io::{self, Write};

/// Percentiles above 99, each with its text in the XML.
const NINES: [(f64, &str); 7] = [
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
    (0.999_999, "99.9999"),
    (0.999_999_9, "99.99999"),
    (0.999_999_99, "99.999999"),
    (0.999_999_999, "99.9999999"),
];

/// Writes DISKSPD's XML.
pub(super) fn write_xml(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let profile = requested_profile(report);
    let spans = measured_spans(report, &profile);
    let topology = Topology::from_report(report);
    let mut lines = Lines::new(0);
    lines.within("Results", |lines| {
        let cpus = spans.first().map(|s| s.cpus.as_slice()).unwrap_or_default();
        diskspd::system_xml(report, &topology, cpus, lines);
        lines.text += &profile_xml(&profile, 2);
        for span in &spans {
            lines.within("TimeSpan", |lines| write_span(span, report, &topology, lines));
        }
        lines.within("Fathom", |lines| write_fathom(report, lines));
    });
    to.write_all(lines.text.as_bytes())
}

/// Adds fathom's verdict.
fn write_fathom(report: &Report, lines: &mut Lines) {
    lines.value("Verdict", report.verdict.word());
    lines.value("Reason", &report.verdict_reason);
    lines.optional("Session", report.session.as_ref());
    for finding in worst_findings(report) {
        let severity = finding.severity.map_or("", Severity::word);
        lines.line(format_args!(
            "<Finding Id=\"{}\" Name=\"{}\" Severity=\"{severity}\">{}</Finding>",
            finding.id,
            finding.name,
            escape(&finding.sentence)
        ));
    }
    lines.optional("Rest", rest_summary(&shown_checks(report), MAX_SHOWN));
}

fn write_span(span: &Span, report: &Report, topology: &Topology, lines: &mut Lines) {
    if span.seconds <= 0.0 {
        lines.value(
            "Error",
            "The test was interrupted before the measurements began. No results are displayed.",
        );
        return;
    }
    lines.value("TestTimeSeconds", format_args!("{:.2}", span.seconds));
    lines.value("ThreadCount", span.thread_count());
    lines.value("RequestCount", span.requested.requests);
    lines.value("ProcCount", diskspd::cpu_count(report, &span.cpus));
    if !span.cpus.is_empty() {
        lines.within("CpuUtilization", |lines| write_cpus(&span.cpus, topology, lines));
    }
    if span.requested.latency {
        write_latencies(span, lines);
    }
    if span.requested.iops {
        write_iops(span, &span.lanes.iter().collect::<Vec<_>>(), lines);
    }
    let mut threads: Vec<u32> = span.lanes.iter().map(|lane| lane.thread).collect();
    threads.dedup();
    for thread in threads {
        lines.within("Thread", |lines| {
            lines.value("Id", thread);
            for lane in span.lanes.iter().filter(|lane| lane.thread == thread) {
                lines.within("Target", |lines| write_target(lane, span, lines));
            }
        });
    }
}

fn write_cpus(cpus: &[ObservedCpu], topology: &Topology, lines: &mut Lines) {
    const NAMES: [&str; 4] = ["UsagePercent", "UserPercent", "KernelPercent", "IdlePercent"];
    let mut sums = [0.0; 4];
    let write = |shares: [f64; 4], lines: &mut Lines| {
        for (name, share) in NAMES.into_iter().zip(shares) {
            lines.value(name, format_args!("{share:.2}"));
        }
    };
    for cpu in cpus {
        let shares = cpu_percents(cpu);
        sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        lines.within("CPU", |lines| {
            for (groups, name) in [(&topology.sockets, "Socket"), (&topology.nodes, "Node")] {
                if let Some(number) = groups.get(&cpu.cpu) {
                    lines.value(name, number);
                }
            }
            lines.value("Group", 0);
            lines.optional("Core", topology.cores.get(&cpu.cpu));
            lines.value("Id", cpu.cpu);
            write(shares, lines);
        });
    }
    lines.within("Average", |lines| write(sums.map(|sum| sum / cpus.len() as f64), lines));
}

/// Returns the figures of reads, of writes and of both together, each with its name in the XML.
/// Includes the first `buckets` buckets of each lane.
fn figures_by_direction(lanes: &[&Lane], buckets: usize) -> [(&'static str, Figures); 3] {
    [("Read", DirectionFilter::Read), ("Write", DirectionFilter::Write), ("Total", DirectionFilter::Total)]
        .map(|(name, which)| (name, Figures::from_lanes(which, lanes.iter().copied(), buckets)))
}

fn write_latencies(span: &Span, lines: &mut Lines) {
    let all = figures_by_direction(&span.lanes.iter().collect::<Vec<_>>(), 0);
    let buckets =
        all.each_ref().map(|(name, f)| format!(" {name}HistoBuckets=\"{}\"", f.latency.bins.len())).concat();
    lines.with("Latency", &buckets, |lines| {
        for (name, figures) in all.iter().filter(|(_, f)| f.count() > 0) {
            lines.value(&format!("Average{name}Milliseconds"), format_args!("{:.3}", figures.mean_ms()));
            let stdev =
                if *name == "Total" { "LatencyStdev".to_owned() } else { format!("{name}LatencyStdev") };
            lines.value(&stdev, format_args!("{:.3}", figures.deviation_ms()));
        }
        let mut bucket = |rank: &str, value: &dyn Fn(&Figures) -> Option<f64>| {
            lines.within("Bucket", |lines| {
                lines.value("Percentile", rank);
                for (name, figures) in &all {
                    if let Some(ms) = value(figures) {
                        lines.value(&format!("{name}Milliseconds"), format_args!("{ms:.3}"));
                    }
                }
            });
        };
        bucket("0", &Figures::min_ms);
        for percent in 1..100_u32 {
            bucket(&percent.to_string(), &|f| f.percentile_ms(f64::from(percent) / 100.0));
        }
        for (share, rank) in NINES {
            bucket(rank, &|f| f.percentile_ms(share));
        }
        bucket("100", &Figures::max_ms);
    });
}

/// Adds the rate in buckets of equal length.
fn write_iops(span: &Span, lanes: &[&Lane], lines: &mut Lines) {
    let [(_, read), (_, write), (_, total)] = figures_by_direction(lanes, span.buckets());
    let bucket_ms = span.requested.bucket_ms;
    lines.within("Iops", |lines| {
        for (name, figures) in
            [("ReadIopsStdDev", &read), ("WriteIopsStdDev", &write), ("IopsStdDev", &total)]
        {
            lines
                .optional(name, figures.iops_deviation(bucket_ms).map(|deviation| format!("{deviation:.3}")));
        }
        for at in 0..read.time_series.len().max(write.time_series.len()) {
            let bucket_of = |figures: &Figures| figures.time_series.get(at).copied().unwrap_or_default();
            lines.line(bucket_element(at, bucket_ms, bucket_of(&read), bucket_of(&write)));
        }
    });
}

fn bucket_element(at: usize, bucket_ms: u32, read: Bucket, write: Bucket) -> String {
    let rate = |bucket: Bucket| bucket.count as f64 / (f64::from(bucket_ms) / 1000.0);
    let latencies = |name: &str, bucket: Bucket| {
        let [min, max] = [bucket.min_ns, bucket.max_ns].map(|ns| ns as f64 / 1e6);
        let [mean, deviation] = [bucket.mean_ns(), bucket.deviation_ns()].map(|ns| ns / 1e6);
        format!(
            "{name}MinLatencyMilliseconds=\"{min:.3}\" {name}MaxLatencyMilliseconds=\"{max:.3}\" {name}AvgLatencyMilliseconds=\"{mean:.3}\" {name}LatencyStdDev=\"{deviation:.3}\""
        )
    };
    let (reads, writes) = (rate(read), rate(write));
    format!(
        "<Bucket SampleMillisecond=\"{}\" Read=\"{reads:.0}\" Write=\"{writes:.0}\" Total=\"{:.0}\" {} {}/>",
        u64::from(bucket_ms) * (at as u64 + 1),
        reads + writes,
        latencies("Read", read),
        latencies("Write", write)
    )
}

fn write_target(lane: &Lane, span: &Span, lines: &mut Lines) {
    let [(_, read), (_, write), (_, total)] = figures_by_direction(&[lane], 0);
    lines.value("Path", &lane.path);
    lines.value("BytesCount", total.bytes);
    lines.value("FileSize", lane.bytes);
    lines.value("IOCount", total.count());
    lines.value("ReadBytes", read.bytes);
    lines.value("ReadCount", read.count());
    lines.value("WriteBytes", write.bytes);
    lines.value("WriteCount", write.count());
    if span.requested.latency {
        for (name, figures) in [("Read", &read), ("Write", &write), ("", &total)] {
            if figures.count() > 0 {
                lines.value(
                    &format!("Average{name}LatencyMilliseconds"),
                    format_args!("{:.3}", figures.mean_ms()),
                );
                lines.value(&format!("{name}LatencyStdev"), format_args!("{:.3}", figures.deviation_ms()));
            }
        }
    }
    if span.requested.iops {
        write_iops(span, &[lane], lines);
    }
}

/// Lines of XML, indented by two spaces for each level.
pub(super) struct Lines {
    pub(super) text: String,
    indent: usize,
}

impl Lines {
    pub(super) fn new(indent: usize) -> Self {
        Self { text: String::new(), indent }
    }

    /// Adds a line unchanged.
    pub(super) fn line(&mut self, line: impl Display) {
        self.text += &format!("{:indent$}{line}\n", "", indent = self.indent);
    }

    /// Adds an element with a value.
    pub(super) fn value(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("<{name}>{}</{name}>", escape(&value.to_string())));
    }

    /// Adds an element, unless its value is missing.
    fn optional(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }

    /// Adds an element with the child elements that `write` adds.
    pub(super) fn within(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.with(name, "", write);
    }

    /// Adds an element with attributes and the child elements that `write` adds. `attributes` begins with a space.
    pub(super) fn with(&mut self, name: &str, attributes: &str, write: impl FnOnce(&mut Self)) {
        self.line(format_args!("<{name}{attributes}>"));
        self.indent += 2;
        write(self);
        self.indent -= 2;
        self.line(format_args!("</{name}>"));
    }
}

/// Escapes text for XML. Line feeds and tabs become blanks. Other control characters, most of which XML does not allow,
/// become question marks.
pub(super) fn escape(text: &str) -> String {
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

/// Returns the element Profile, indented by `indent` spaces.
pub(super) fn profile_xml(profile: &Profile, indent: usize) -> String {
    let mut lines = Lines::new(indent);
    lines.within("Profile", |lines| {
        lines.value("Progress", profile.progress);
        lines.value("ResultFormat", if profile.xml { "xml" } else { "text" });
        lines.value("Verbose", profile.verbose);
        lines.optional("PrecreateFiles", profile.precreate.as_ref());
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
        lines.optional("RandomWriteData", span.random_writes.then_some(true));
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

/// Adds a target.
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
        lines.optional("BurstSize", target.burst);
        lines.optional("ThinkTime", target.think_ms);
        lines.optional("FileSize", target.create);
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

/// Adds the cache settings; defaults are left out.
fn profile_caching(target: &Target, lines: &mut Lines) {
    match target.cache {
        Cache::Cached => {}
        Cache::Remote => lines.value("DisableLocalCache", true),
        Cache::Off => lines.value("DisableOSCache", true),
    }
    lines.optional("WriteThrough", target.write_through.then_some(true));
    lines.optional("MemoryMappedIo", target.mapped.then_some(true));
    lines.optional("FlushType", target.flush.map(model::diskspd::Flush::in_xml));
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
                lines.optional("FilePath", target.buffer_file.as_ref());
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
