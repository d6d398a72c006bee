//! Compares fathom with fio and with a bare io_uring loop: `cargo bench --bench peers` prints the ratio of each pair.
//!
//! Pairs are interleaved as ABBA, so a drift of the machine affects both tools alike, and each ratio is taken within a pair.
//! docs/how-it-works/speed.md explains the rows. A busy machine makes the ratios worthless.
#![allow(clippy::print_stdout, clippy::print_stderr)] // It is a program.

mod bare;
mod targets;
mod tool;

use clap::Parser;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use targets::{Target, Targets};
use tool::{Figures, Setting, Tool, Work};

/// Compare fathom with fio and with a bare io_uring loop.
#[derive(Parser, Debug)]
#[command(name = "peers")]
struct Args {
    /// Pairs of runs per row
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    pairs: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// MiB of the file that is read; in memory and on the loop device a quarter of this
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    file_mib: u64,
    /// Directory on the disk to compare on
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Only rows whose names contain this text
    #[arg(long)]
    only: Option<String>,
    /// Added by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// A row of the table: fathom and a peer at the same work, in pairs of runs.
struct Row {
    name: &'static str,
    peer: Tool,
    work: Work,
    target: Target,
}

const RING: (&str, &str) = ("io_uring", "io_uring");
const NULL: Work = Work {
    engines: ("null", "null"),
    rw: "randread",
    bs: "4k",
    depth: 32,
    workers: 1,
    batch: None,
    direct: false,
};
const CACHED: Work = Work { engines: RING, depth: 128, batch: Some(32), ..NULL };
const SYNC: Work = Work { engines: ("sync", "psync"), depth: 1, ..NULL };
const DIRECT: Work = Work { engines: RING, direct: true, ..NULL };

/// Sequential writes. fathom writes new data each time; fio writes the same data with a few bytes of each block changed.
const WRITES: Work = Work { rw: "write", bs: "1m", ..SYNC };

const NULL_ONE: &str = "null, 1 worker";
const NULL_TWO: &str = "null, 2 workers";
const CACHED_ONE: &str = "io_uring, cached file, 1 worker";
const CACHED_TWO: &str = "io_uring, cached file, 2 workers";
const MEMORY: &str = "resident memory, 16 workers";
const START: &str = "start-up, --help";

const ROWS: &[Row] = &[
    Row { name: NULL_ONE, peer: Tool::Fio, work: NULL, target: Target::None },
    Row { name: NULL_TWO, peer: Tool::Fio, work: Work { workers: 2, ..NULL }, target: Target::None },
    Row { name: CACHED_ONE, peer: Tool::Fio, work: CACHED, target: Target::Cached },
    Row { name: CACHED_TWO, peer: Tool::Fio, work: Work { workers: 2, ..CACHED }, target: Target::Cached },
    Row { name: "io_uring, cached file, bare loop", peer: Tool::Bare, work: CACHED, target: Target::Cached },
    Row { name: "sync, cached file", peer: Tool::Fio, work: SYNC, target: Target::Cached },
    Row { name: "io_uring, tmpfs", peer: Tool::Fio, work: CACHED, target: Target::Memory },
    Row { name: "sync, tmpfs", peer: Tool::Fio, work: SYNC, target: Target::Memory },
    Row { name: "io_uring, loop device, direct", peer: Tool::Fio, work: DIRECT, target: Target::Loop },
    Row { name: "io_uring, disk, direct", peer: Tool::Fio, work: DIRECT, target: Target::Disk },
    Row { name: "sync, writes of 1 MiB, tmpfs", peer: Tool::Fio, work: WRITES, target: Target::Memory },
    Row {
        name: "io_uring, writes of 1 MiB, disk, direct",
        peer: Tool::Fio,
        work: Work { rw: "write", bs: "1m", depth: 8, ..DIRECT },
        target: Target::Disk,
    },
];

fn main() -> ExitCode {
    match compare(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("peers: {why}");
            ExitCode::FAILURE
        }
    }
}

fn compare(args: &Args) -> Result<(), String> {
    let mut targets = Targets::new(&args.dir, args.file_mib)?;
    let huge_pages = has_huge_pages();
    let sessions = targets.scratch().join("sessions");
    let setting = Setting { seconds: args.seconds, sessions, huge_pages };
    let has_fio = Command::new("fio").arg("--version").output().is_ok();
    let chosen = |name: &str| args.only.as_deref().is_none_or(|part| name.contains(part));
    machine(args, huge_pages);
    println!(
        "| work | fathom IOPS | peer | its IOPS | IOPS, fathom / peer | CPU per operation, fathom / peer |"
    );
    println!("|---|---|---|---|---|---|");
    let (mut commands, mut notes, mut medians) = (Vec::new(), Vec::new(), Vec::new());
    for row in ROWS.iter().filter(|r| chosen(r.name)) {
        if row.peer == Tool::Fio && !has_fio {
            notes.push(format!("{}: fio is not installed; type apt-get install fio", row.name));
            continue;
        }
        let measured = targets.ready(row.target).and_then(|target| {
            let both = [Tool::Fathom, row.peer].map(|t| t.command(row.work, target.as_deref(), &setting));
            commands.push((row.name, both));
            pairs(row, target.as_deref(), args.pairs, &setting)
        });
        match measured {
            Ok(pairs) => {
                println!("{}", line(row, &pairs));
                let of = |pick: fn(&[Figures; 2]) -> f64| median(pairs.iter().map(pick).collect());
                medians.push((row.name, [of(|p| p[0].iops), of(|p| p[1].iops)]));
            }
            Err(why) => notes.push(format!("{}: {why}", row.name)),
        }
    }
    scaling(&medians);
    if chosen(MEMORY) {
        match memory(args, &setting) {
            Ok(mib) => {
                println!("\n{MEMORY}: {mib:.1} MiB at most, without 2 MiB of buffers (16 x 32 x 4 KiB).");
            }
            Err(why) => notes.push(format!("{MEMORY}: {why}")),
        }
    }
    if chosen(START) {
        println!("\n{START}: {:.1} ms from start to end, the median of 21.", start_up()? * 1e3);
    }
    for note in &notes {
        println!("\nNot measured: {note}.");
    }
    println!("\n```");
    for (name, [ours, theirs]) in &commands {
        println!("# {name}\n{ours}\n{theirs}");
    }
    println!("```");
    Ok(())
}

/// Prints what is compared, and on which machine.
fn machine(args: &Args, huge_pages: bool) {
    let first = |text: &str, key: &str| {
        let line = text.lines().find(|l| l.starts_with(key));
        line.and_then(|l| l.split_once(':')).map_or("unknown".to_owned(), |(_, v)| v.trim().to_owned())
    };
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let version = |program: &mut Command| {
        let out = program.arg("--version").output().ok();
        out.map_or("missing".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
    };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{cpus} CPUs, {}, {} of memory, Linux {}; load {} at the beginning",
        first(&read("/proc/cpuinfo"), "model name"),
        first(&read("/proc/meminfo"), "MemTotal"),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or("unknown"),
    );
    println!(
        "{}, {}; {} pairs of {} s each in the order ABBA; ratios are medians with least and most",
        version(&mut tool::fathom_program()),
        version(&mut Command::new("fio")),
        args.pairs,
        args.seconds,
    );
    println!(
        "4 KiB random reads where no row says otherwise, file of {} MiB below {}; fio's buffers on {}\n",
        args.file_mib,
        args.dir.display(),
        if huge_pages { "huge pages, as fathom's" } else { "small pages: no huge ones are set aside here" }
    );
}

/// Whether at least 64 reserved huge pages are free. fio can use only reserved ones.
fn has_huge_pages() -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = text.lines().find_map(|l| l.strip_prefix("HugePages_Free:"));
    free.and_then(|n| n.trim().parse::<u64>().ok()).is_some_and(|n| n >= 64)
}

/// Runs fathom and its peer in turns: AB BA AB ...
fn pairs(
    row: &Row,
    target: Option<&std::path::Path>,
    count: u32,
    setting: &Setting,
) -> Result<Vec<[Figures; 2]>, String> {
    let run = |tool: Tool| tool.run(row.work, target, setting);
    (0..count)
        .map(|pair| {
            if pair % 2 == 0 {
                let ours = run(Tool::Fathom)?;
                Ok([ours, run(row.peer)?])
            } else {
                let theirs = run(row.peer)?;
                Ok([run(Tool::Fathom)?, theirs])
            }
        })
        .collect()
}

/// Formats a row of the table.
fn line(row: &Row, pairs: &[[Figures; 2]]) -> String {
    let iops = |tool: usize| count(median(pairs.iter().map(|p| p[tool].iops).collect()));
    let ratio = |of: fn(&Figures) -> f64| {
        let all: Vec<f64> = pairs.iter().map(|p| of(&p[0]) / of(&p[1])).collect();
        if all.iter().any(|r| !r.is_finite()) {
            return "-".to_owned();
        }
        let (least, most) = all.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), r| (l.min(*r), m.max(*r)));
        format!("{:.2} ({least:.2} to {most:.2})", median(all))
    };
    format!(
        "| {} | {} | {} | {} | {} | {} |",
        row.name,
        iops(0),
        row.peer.name(),
        iops(1),
        ratio(|f| f.iops),
        ratio(|f| f.cpu_ns)
    )
}

/// Formats a number like `1,234,567`.
fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|g| str::from_utf8(g).ok()).collect();
    groups.join(",")
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    match all.len() {
        0 => f64::NAN,
        n if n % 2 == 0 => f64::midpoint(all[middle - 1], all[middle]),
        _ => all[middle],
    }
}

/// Prints how much faster two workers are than one, for the rows that were measured.
fn scaling(medians: &[(&str, [f64; 2])]) {
    let of = |name: &str| medians.iter().find(|(n, _)| *n == name).map(|(_, m)| m);
    for (what, one, two) in [("null", NULL_ONE, NULL_TWO), ("cached file", CACHED_ONE, CACHED_TWO)] {
        if let (Some(one), Some(two)) = (of(one), of(two)) {
            let [ours, theirs] = [two[0] / one[0], two[1] / one[1]];
            println!(
                "\nScaling, {what}: 2 workers do {ours:.2} times what 1 does; with fio {theirs:.2} times."
            );
        }
    }
}

/// Largest resident memory with 16 workers, in MiB, without their buffers.
fn memory(args: &Args, setting: &Setting) -> Result<f64, String> {
    const WORKERS: u32 = 16;
    const BUFFERS_MIB: f64 = 2.0;
    let mut child = tool::fathom_program()
        .env("XDG_DATA_HOME", &setting.sessions)
        .args(["run", "--warmup", "0", "--runs", "1", "--quiet", "--depth", "32"])
        .args(["--size", "64m", "--workers", &WORKERS.to_string(), "--time", &format!("{}s", args.seconds)])
        .arg(&args.dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("fathom: {e}"))?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut most_kib = 0_u64;
    // The kernel's high-water mark. It disappears with the process, so keep the last value.
    let status = loop {
        let text = std::fs::read_to_string(&status_file).unwrap_or_default();
        let mark =
            text.lines().find_map(|l| l.strip_prefix("VmHWM:")).and_then(|l| l.trim().strip_suffix(" kB"));
        most_kib = most_kib.max(mark.and_then(|n| n.trim().parse().ok()).unwrap_or(0));
        match child.try_wait().map_err(|e| format!("fathom: {e}"))? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if !matches!(status.code(), Some(0 | 1)) {
        let mut said = String::new();
        let _ = child.stderr.take().map(|mut e| e.read_to_string(&mut said));
        return Err(format!("fathom ended with {status}: {}", said.trim()));
    }
    Ok(most_kib as f64 / 1024.0 - BUFFERS_MIB)
}

/// Seconds that `fathom --help` takes.
fn start_up() -> Result<f64, String> {
    let once = || {
        let start = Instant::now();
        let out = tool::fathom_program().arg("--help").output().map_err(|e| format!("fathom: {e}"))?;
        if out.status.success() {
            Ok(start.elapsed().as_secs_f64())
        } else {
            Err("fathom --help failed".into())
        }
    };
    Ok(median((0..21).map(|_| once()).collect::<Result<_, String>>()?))
}
