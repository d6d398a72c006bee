//! Instructions per operation of the hot loop, per engine, counted by valgrind's callgrind: `cargo bench -p fathom-io-engine --bench
//! instructions`.
//!
//! Callgrind counts inside `engine::worker::run` for two numbers of operations. The difference of the two counts excludes the set-up. The
//! benchmark detects a growing loop on any machine and under any load. It measures neither time nor the kernel's part, which `cargo bench
//! --bench peers` includes.
//!
//! `instructions.txt` contains the expected counts with their compiler. After an intended change run `FATHOM_BLESS=1 cargo bench -p
//! fathom-io-engine --bench instructions` and check `git diff`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // It is a program.

use engine::engines::find;
use engine::source::{StreamState, WorkerContext, lanes};
use engine::spec::WorkerSpec;
use engine::workers::Workers;
use model::job::{Access, Batch, Cache, Options, Pattern, StopRule, Stream};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;
use sys::open_file::OpenFile;

/// Numbers of operations of the short and the long run. The counts of the two runs are subtracted.
const FEW: u64 = 50_000;
const MANY: u64 = 150_000;
const BLOCK_BYTES: u32 = 4096;
const TARGET_BYTES: u64 = 16 << 20;
/// Allowed growth in percent. A larger growth must be accepted with FATHOM_BLESS=1.
const ALLOWED_PERCENT: f64 = 3.0;
/// Run time, longer than valgrind takes for any count here. Only the number of operations ends a run or an interval.
const TIME_NS: u64 = 600_000_000_000;
/// Function in which callgrind counts.
const COUNTED: &str = "engine::worker::run*";

/// A measured configuration.
struct Case {
    name: &'static str,
    engine: &'static str,
    option: Option<&'static str>,
    depth: u32,
    batch: u32,
    /// Percentage of reads. The other operations are writes, whose data is generated.
    reads: u8,
}

const NULL: Case = Case { name: "null", engine: "null", option: None, depth: 32, batch: 32, reads: 100 };
const CASES: &[Case] = &[
    NULL,
    Case { name: "null-write", reads: 0, ..NULL },
    Case { name: "sim", engine: "sim", batch: 1, ..NULL },
    Case { name: "sync", engine: "sync", depth: 1, batch: 1, ..NULL },
    Case { name: "io_uring", engine: "io_uring", option: Some("nop"), batch: 1, ..NULL },
    Case { name: "io_uring-batch", engine: "io_uring", option: Some("nop"), depth: 128, ..NULL },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|w| w != "--bench").collect();
    let outcome = match args.as_slice() {
        [drive, name, count, file] if drive == "drive" => self::drive(name, count, Path::new(file)),
        [] => compare(),
        _ => Err("this benchmark takes no options; set FATHOM_BLESS=1 to accept the new counts".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("instructions: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs this number of operations. This is the part of the program that runs in valgrind.
fn drive(name: &str, count: &str, file: &Path) -> Result<(), String> {
    let case = CASES.iter().find(|c| c.name == name).ok_or_else(|| format!("there is no case {name}"))?;
    let count: u64 = count.parse().map_err(|e| format!("{count}: {e}"))?;
    let entry = find(case.engine).ok_or_else(|| format!("there is no engine {}", case.engine))?;
    let mut stream =
        Stream::plain(Access::plain(Pattern::Random, BLOCK_BYTES, case.reads), case.depth, 1, case.engine);
    stream.cache = Cache::Buffered;
    let context =
        WorkerContext { worker: 0, workers: 1, seed: 1, stream_state: Arc::new(StreamState::new(1)) };
    let files = if entry.moves_bytes {
        let file = File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
        vec![OpenFile::new(file, false)]
    } else {
        Vec::new()
    };
    let sources = lanes(&stream, &[TARGET_BYTES], &[1], &context)?;
    let clock = sys::clock::Clock::calibrate(true).0;
    let spec = WorkerSpec {
        depth: case.depth,
        slot_bytes: BLOCK_BYTES,
        writes: stream.access.writes(),
        options: case.option.map(|o| (o.to_owned(), None)).into_iter().collect::<Options>(),
        limit: StopRule { operations: Some(count), ..StopRule::default() },
        batch: Batch { submit: case.batch, complete: case.batch },
        ..WorkerSpec::plain(entry, sources, files, TIME_NS, clock)?
    };
    let mut workers = Workers::spawn(vec![spec])?;
    workers.open();
    while !workers.is_done() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let outcomes = workers.finish();
    let done: u64 = outcomes.iter().flat_map(|(_, o)| &o.totals).map(|t| t.ops).sum();
    match outcomes.into_iter().find_map(|(_, o)| o.error) {
        Some(error) => Err(error),
        None if done != count => Err(format!("{done} of {count} operations were done")),
        None => Ok(()),
    }
}

/// Counts every case and compares the counts with the expected ones.
fn compare() -> Result<(), String> {
    if let Err(e) = Command::new("valgrind").arg("--version").output() {
        return skip(&format!("valgrind cannot be run ({e}); install it, as in apt-get install valgrind"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    let expected = Expected::read(&path)?;
    let compiler = compiler()?;
    let bless = std::env::var_os("FATHOM_BLESS").is_some();
    let scratch = tempfile::tempdir().map_err(|e| format!("no directory for temporary files: {e}"))?;
    let file = scratch.path().join("data");
    let full = vec![0x5a; TARGET_BYTES as usize];
    std::fs::write(&file, full).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut seen = Vec::new();
    for case in CASES {
        match per_operation(case, &file, scratch.path()) {
            Ok(count) => seen.push((case.name, count)),
            Err(why) => skip(&format!("{}: {why}", case.name))?,
        }
    }
    if bless {
        return std::fs::write(&path, text(&compiler, &seen)).map_err(|e| format!("{}: {e}", path.display()));
    }
    for (name, count) in &seen {
        println!("{name:16} {count:8.1} instructions per operation");
    }
    if expected.compiler != compiler {
        return skip(&format!(
            "the expected counts are those of {}, and this is {compiler}; to change the compiler, set FATHOM_BLESS=1",
            expected.compiler
        ));
    }
    let grown: Vec<String> = seen.iter().filter_map(|(name, count)| expected.grown(name, *count)).collect();
    if grown.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the hot loop has grown by more than {ALLOWED_PERCENT} %: {}. Check what was added to it. If the growth is intended, set \
         FATHOM_BLESS=1, run this again and commit {}",
        grown.join(", "),
        path.display()
    ))
}

/// Reports that the comparison is skipped, and why. `./test` prints these reports.
fn skip(reason: &str) -> Result<(), String> {
    let line = format!("SKIPPED instructions: {reason}\n");
    eprint!("{line}");
    let Some(list) = std::env::var_os("FATHOM_SKIPS") else { return Ok(()) };
    let list = File::options().append(true).create(true).open(list);
    list.and_then(|mut l| l.write_all(line.as_bytes())).map_err(|e| format!("the list of skips: {e}"))
}

/// Instructions per operation of a case.
fn per_operation(case: &Case, file: &Path, scratch: &Path) -> Result<f64, String> {
    let (few, many) = (counted(case, FEW, file, scratch)?, counted(case, MANY, file, scratch)?);
    Ok(many.saturating_sub(few) as f64 / (MANY - FEW) as f64)
}

/// Returns the instructions that callgrind counts for a number of operations.
fn counted(case: &Case, operations: u64, file: &Path, scratch: &Path) -> Result<u64, String> {
    let us = std::env::current_exe().map_err(|e| format!("our own program: {e}"))?;
    let out: PathBuf = scratch.join("callgrind.out");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(us)
        .args(["drive", case.name, &operations.to_string()])
        .arg(file)
        .output()
        .map_err(|e| format!("valgrind: {e}"))?;
    if !run.status.success() {
        let errors = String::from_utf8_lossy(&run.stderr);
        let own_message = errors.lines().find_map(|l| l.strip_prefix("instructions: "));
        return Err(own_message
            .unwrap_or_else(|| errors.lines().last().unwrap_or("valgrind failed"))
            .to_owned());
    }
    let text = std::fs::read_to_string(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let total = text.lines().filter_map(|l| l.strip_prefix("totals: ")).find_map(|n| n.trim().parse().ok());
    total
        .filter(|n| *n > operations)
        .ok_or_else(|| format!("callgrind counted nothing inside {COUNTED}; was it renamed or inlined?"))
}

/// Returns the compiler, as in `rustc 1.95.0 (59807616e 2026-04-14) x86_64`.
fn compiler() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out =
        Command::new(&rustc).arg("--version").output().map_err(|e| format!("{}: {e}", rustc.display()))?;
    Ok(format!("{} {}", String::from_utf8_lossy(&out.stdout).trim(), std::env::consts::ARCH))
}

/// The expected counts, and their compiler.
struct Expected {
    compiler: String,
    counts: Vec<(String, f64)>,
}

impl Expected {
    fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut lines = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
        let compiler = lines.next().unwrap_or_default().to_owned();
        let counts = lines
            .map(|line| {
                let (name, count) = line.split_once(' ').unwrap_or((line, ""));
                let count = count.trim().parse().map_err(|e| format!("{}: '{line}': {e}", path.display()))?;
                Ok((name.to_owned(), count))
            })
            .collect::<Result<_, String>>()?;
        Ok(Self { compiler, counts })
    }

    /// Describes the growth of a case if it is too large or the expected count is unknown.
    fn grown(&self, name: &str, count: f64) -> Option<String> {
        let Some((_, before)) = self.counts.iter().find(|(n, _)| n == name) else {
            return Some(format!("{name} is not in the list"));
        };
        let percent = (count / before - 1.0) * 100.0;
        (percent > ALLOWED_PERCENT)
            .then(|| format!("{name} from {before:.1} to {count:.1} (+{percent:.1} %)"))
    }
}

fn text(compiler: &str, counts: &[(&str, f64)]) -> String {
    let mut text = String::from(
        "# Instructions per operation of the hot loop in user space, by callgrind, for 4 KiB random reads, and writes where it says so.\n\
         # Made by: FATHOM_BLESS=1 cargo bench -p fathom-io-engine --bench instructions\n",
    );
    let _ = writeln!(text, "{compiler}");
    for (name, count) in counts {
        let _ = writeln!(text, "{name} {count:.1}");
    }
    text
}
