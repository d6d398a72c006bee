//! A profile as DISKSPD's text repeats it.
//!
//! For: its lines under "Input parameters". Not for: results ([`super::text`]).

use model::diskspd::{Cache, Distribution, Profile, Target, Throughput, TimeSpan};

/// Units of sizes, from the largest on.
const SIZE_UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];

/// The whole of it.
pub(super) fn profile_text(profile: &Profile) -> String {
    let mut out = format!("\nCommand Line: {}\n\nInput parameters:\n\n", profile.command);
    if profile.verbose {
        out += "\tusing verbose mode\n";
    }
    for (number, span) in (1..).zip(&profile.spans) {
        out += &format!("\ttimespan: {number:3}\n\t-------------\n");
        out += &span_text(span);
        out += "\n";
    }
    out
}

/// A size in the largest unit that it reaches.
pub(super) fn size(bytes: u64) -> String {
    let unit = SIZE_UNITS.iter().find(|(shift, _)| bytes >= 1 << shift);
    match unit {
        None => bytes.to_string(),
        Some((shift, name)) if bytes.is_multiple_of(1 << shift) => format!("{}{name}", bytes >> shift),
        Some((shift, name)) => format!("{:.2}{name}", bytes as f64 / (1_u64 << shift) as f64),
    }
}

/// A size in the largest unit that it reaches, its number aligned to the right of so many columns; plain bytes are not.
fn size_in(bytes: u64, width: usize) -> String {
    let unit = SIZE_UNITS.iter().find(|(shift, _)| bytes >= 1 << shift);
    match unit {
        None => bytes.to_string(),
        Some((shift, name)) if bytes.is_multiple_of(1 << shift) => format!("{:width$}{name}", bytes >> shift),
        Some((shift, name)) => format!("{:width$.2}{name}", bytes as f64 / (1_u64 << shift) as f64),
    }
}

fn span_text(span: &TimeSpan) -> String {
    let mut out = format!(
        "\tduration: {}s\n\twarm up time: {}s\n\tcool down time: {}s\n",
        span.duration_s, span.warmup_s, span.cooldown_s
    );
    let pooled = span.threads > 0;
    let own = !pooled || span.requests == 0;
    let lines = [
        (span.disable_affinity, "\taffinity disabled\n".to_owned()),
        (span.latency, "\tmeasuring latency\n".into()),
        (span.iops, format!("\tgathering IOPS at intervals of {}ms\n", span.bucket_ms)),
        (true, format!("\trandom seed: {}\n", span.seed)),
        (
            pooled,
            format!(
                "\tthread pool with {} threads\n\tnumber of outstanding I/O operations per thread: {}\n",
                span.threads, span.requests
            ),
        ),
        (!span.affinity.is_empty(), {
            let cpus: Vec<String> = span.affinity.iter().map(|(group, cpu)| format!("{group}/{cpu}")).collect();
            format!("\tadvanced affinity round robin (group/core): {}\n", cpus.join(", "))
        }),
        (
            span.random_writes,
            "\tgenerating random data for each write IO\n\t  WARNING: this increases the CPU cost of issuing writes and should only\n\t           be compared to other results using the -Zr flag\n"
                .into(),
        ),
    ];
    out.extend(lines.into_iter().filter(|(is_so, _)| *is_so).map(|(_, line)| line));
    out.extend(span.targets.iter().map(|target| target_text(target, !pooled, own, span.completion_routines)));
    out
}

/// A target; whether it has threads of its own, whether it has operations in flight of its own, and whether these call back.
pub(super) fn target_text(target: &Target, threads: bool, requests: bool, routines: bool) -> String {
    let mut out = match target.path.strip_prefix('*') {
        Some(number) => format!("\tpath: template target '{number}'\n"),
        None => format!("\tpath: '{}'\n", target.path),
    };
    let mut say = |line: String| out += &format!("\t\t{line}\n");
    say(format!("think time: {}ms", target.think_ms.unwrap_or(0)));
    say(format!("burst size: {}", target.burst.unwrap_or(0)));
    caching_text(target, &mut say);
    data_text(target, &mut say);
    if target.parallel {
        say("using parallel async I/O".into());
    }
    say(match target.write_percent {
        0 => "performing read test".into(),
        100 => "performing write test".into(),
        percent => format!("performing mix test (read/write ratio: {}/{percent})", 100 - percent.min(100)),
    });
    say(format!("block size: {}", size(target.block.into())));
    say(order_text(target));
    if requests {
        say(format!("number of outstanding I/O operations per thread: {}", target.requests));
    } else {
        say(format!("relative IO weight in thread pool: {}", target.weight));
    }
    region_text(target, &mut say);
    if threads {
        say(format!("threads per file: {}", target.threads));
        if target.requests > 1 {
            let how = if routines {
                "completion routines (ReadFileEx/WriteFileEx)"
            } else {
                "I/O Completion Ports"
            };
            say(format!("using {how}"));
        }
    }
    say(format!(
        "IO priority: {}",
        match target.priority {
            1 => "very low",
            2 => "low",
            3 => "normal",
            _ => "unknown",
        }
    ));
    match target.throughput {
        Some(Throughput::Iops(iops)) => say(format!("throughput rate-limited to {iops} IOPS")),
        Some(Throughput::BytesPerMs(bytes)) => say(format!("throughput rate-limited to {bytes} B/ms")),
        None => {}
    }
    if let Some(parts) = &target.distribution {
        say("IO Distribution:".into());
        out += &distribution_text(parts, "\t\t");
    }
    out
}

/// Where it begins and ends, and what is told of the order of accesses.
fn region_text(target: &Target, say: &mut dyn FnMut(String)) {
    for (bytes, what) in [
        (target.base, "base file offset"),
        (target.end, "max file size"),
        (target.thread_stride, "thread stride size"),
    ] {
        if bytes > 0 {
            say(format!("{what}: {}", size(bytes)));
        }
    }
    for (hint, name) in [
        (target.sequential_hint, "FILE_FLAG_SEQUENTIAL_SCAN"),
        (target.random_hint, "FILE_FLAG_RANDOM_ACCESS"),
        (target.temporary_hint, "FILE_ATTRIBUTE_TEMPORARY"),
    ] {
        if hint {
            say(format!("using {name} hint"));
        }
    }
}

fn caching_text(target: &Target, say: &mut dyn FnMut(String)) {
    say(match target.cache {
        Cache::Cached => "using software cache",
        Cache::Remote => "local software cache disabled, remote cache enabled",
        Cache::Off => "software cache disabled",
    }
    .into());
    say(match (target.write_through, target.cache) {
        (false, _) => "using hardware write cache, writethrough off",
        (true, Cache::Off) => "hardware write cache disabled, writethrough on",
        (true, _) => "hardware and software write caches disabled, writethrough on",
    }
    .into());
    if target.mapped {
        let flush =
            target.flush.map_or_else(String::new, |flush| format!(", flush mode: {}", flush.names().1));
        say(format!("memory mapped I/O enabled{flush}"));
    }
}

fn data_text(target: &Target, say: &mut dyn FnMut(String)) {
    if target.zeros {
        say("zeroing write buffers".into());
    }
    if target.buffer > 0 {
        say(format!("write buffer size: {}", size(target.buffer)));
        say(match &target.buffer_file {
            Some(file) => format!("write buffer source: '{file}'"),
            None => "write buffer source: random fill".into(),
        });
    }
}

fn order_text(target: &Target) -> String {
    let step = size(target.step());
    match target.random_percent {
        100 => format!("using random I/O (alignment: {step})"),
        0 if target.interlocked => format!("using interlocked sequential I/O (stride: {step})"),
        0 => format!("using sequential I/O (stride: {step})"),
        percent => {
            format!("using mixed random/sequential I/O ({percent}% random) (alignment/stride: {step})")
        }
    }
}

/// Shares of operations by parts of the target, a line each.
fn distribution_text(parts: &Distribution, indent: &str) -> String {
    let (mut out, mut at) = (String::new(), 0_u64);
    for part in &parts.ranges {
        let end = at.saturating_add(part.length);
        out += indent;
        if parts.percent {
            out += &format!("   {:3}% of IO => [{at:2}% - {end:3}%) of target\n", part.io);
        } else {
            let from = if at == 0 { "     0   ".to_owned() } else { size_in(at, 6) };
            let to = if part.length == 0 { "      end".to_owned() } else { size_in(end, 6) };
            out += &format!("   {:3}% of IO => [{from} - {to})\n", part.io);
        }
        at = end;
    }
    out
}
