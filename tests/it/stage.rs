//! The environment of a test: a directory, and running the program with its outcome.

use crate::turns::Turn;
use rustix::process::Signal;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A user without any files.
const UNPRIVILEGED_USER: u32 = 65534;
/// Time limit of a run. The runs of these tests take at most a few seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// The duration of the idle watch, unless the test is about it.
const SHORT_WATCH: &str = "100ms";

/// Commands that repeat disturbed runs.
const MEASURING: [&str; 6] = ["run", "bench", "limit", "sweep", "api", "layers"];

/// Number of columns in which all tables fit.
const WIDE_COLUMNS: &str = "200";

/// A directory on a disk, and a turn on the machine.
pub(crate) struct Stage {
    dir: TempDir,
    /// Whether to watch the idle machine as for users, and to repeat disturbed runs.
    watches_idle: bool,
    _turn: Turn,
}

/// The outcome of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Exit code; `None` if a signal ended the program.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// A running program.
pub(crate) struct Running {
    child: Child,
    /// Reads standard output from the start, so that a full pipe cannot stop a program whose progress the test waits for.
    stdout: std::thread::JoinHandle<String>,
    stderr: BufReader<std::process::ChildStderr>,
    printed: String,
    since: Instant,
}

/// Reports that the test of this thread is skipped, and why. `./test` prints these reports, and CI fails on them.
pub(crate) fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED {}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("{line}");
    if let Some(list) = std::env::var_os("FATHOM_SKIPS") {
        let mut list = File::options().append(true).create(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}

/// Whether the test runs as root; otherwise skips it.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("only root can set up what it needs");
    }
    root
}

impl Stage {
    /// A stage for a test that depends on speed or on counters of the whole machine, or that takes resources from other tests.
    pub(crate) fn new() -> Self {
        Self::with_turn(Turn::exclusive())
    }

    /// A stage for a test about the idle watch or about other load on the disk.
    pub(crate) fn watching() -> Self {
        Self::new().watching_as_for_users()
    }

    /// A stage for a test that needs a processor and does not depend on other disk load, because it has its own device and counters, or
    /// mostly waits for sleeps and throttles.
    pub(crate) fn one_per_cpu() -> Self {
        Self::with_turn(Turn::one_per_cpu())
    }

    /// A stage for a test that does not depend on speed, so other tests of this kind cannot disturb it.
    pub(crate) fn shared() -> Self {
        Self::with_turn(Turn::shared())
    }

    /// The same stage, with the idle watch as for users.
    pub(crate) fn watching_as_for_users(self) -> Self {
        Self { watches_idle: true, ..self }
    }

    fn with_turn(turn: Turn) -> Self {
        // Not in /tmp, which is in memory on many machines, nor in the build directory, which other users may not enter.
        let dir = tempfile::Builder::new().prefix("fathom-it-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Self { dir, watches_idle: false, _turn: turn }
    }

    /// Adds the arguments. Shortens the idle watch and forbids repeated runs, unless the test is about those: the number of runs must not
    /// depend on other load.
    fn add_arguments(&self, command: &mut Command, arguments: &str) {
        let mut split = arguments.split_whitespace();
        let first = split.next();
        command.args(first);
        if !self.watches_idle {
            command.env("FATHOM_TEST_IDLE", SHORT_WATCH);
            let chooses_repeats = ["--attempts", "--until", "--quick", "--explain", "--resume"]
                .iter()
                .any(|flag| arguments.contains(flag));
            if first.is_some_and(|first| MEASURING.contains(&first)) && !chooses_repeats {
                command.args(["--attempts", "1"]);
            }
        }
        command.args(split);
    }

    /// A path below the stage's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The unique name of the stage's directory.
    pub(crate) fn name(&self) -> String {
        self.dir.path().file_name().unwrap().to_string_lossy().into_owned()
    }

    /// An empty directory.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// An empty directory of the unprivileged user.
    pub(crate) fn unprivileged_folder(&self, name: &str) -> PathBuf {
        let path = self.folder(name);
        chown(&path, Some(UNPRIVILEGED_USER), Some(UNPRIVILEGED_USER)).unwrap();
        path
    }

    /// A file of random bytes, on the disk.
    pub(crate) fn file(&self, name: &str, mib: usize) -> PathBuf {
        let path = self.path(name);
        fill(&path, mib);
        path
    }

    /// Runs the program with space-separated arguments and a target.
    pub(crate) fn fathom(&self, arguments: &str, target: &Path) -> Outcome {
        wait(&mut self.command(&[], arguments, target))
    }

    /// Runs the program as the unprivileged user, without a home.
    pub(crate) fn fathom_unprivileged(&self, arguments: &str, target: &Path) -> Outcome {
        // If the build directory belongs to root, that user cannot reach the program in it.
        let program = self.path("fathom");
        // Use another process to copy the program. Otherwise a process of a concurrent test could inherit the descriptor that is open for
        // writing, and the copy could not be executed.
        tool(&[&"cp", &env!("CARGO_BIN_EXE_fathom"), &program]).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let user = UNPRIVILEGED_USER.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(program);
        self.add_arguments(&mut command, arguments);
        if target != Path::new("") {
            command.arg(target);
        }
        command
            .env("COLUMNS", WIDE_COLUMNS)
            .env_remove("HOME")
            .env("XDG_DATA_HOME", self.unprivileged_folder("xdg-unprivileged"));
        command.env("TMPDIR", self.unprivileged_folder("tmp-unprivileged"));
        wait(&mut command)
    }

    /// Starts the program without waiting.
    pub(crate) fn start(&self, arguments: &str, target: &Path) -> Running {
        Running::start(&mut self.command(&[], arguments, target))
    }

    /// The program with a prefix such as `nsenter ...`.
    pub(crate) fn command(&self, prefix: &[String], arguments: &str, target: &Path) -> Command {
        let program = [env!("CARGO_BIN_EXE_fathom").to_owned()];
        let mut all = prefix.iter().chain(&program);
        let mut command = Command::new(all.next().unwrap());
        command.args(all);
        self.add_arguments(&mut command, arguments);
        if target != Path::new("") {
            command.arg(target);
        }
        command.env("XDG_DATA_HOME", self.folder("xdg")).env("TMPDIR", self.folder("tmp"));
        // Relative names must not end up in the source directory.
        command.current_dir(self.folder("cwd"));
        // Tables get enough columns, unless the test is about widths.
        command.env("COLUMNS", WIDE_COLUMNS);
        command
    }

    /// The session files, oldest first.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        names(&self.path("xdg/fathom/sessions"))
    }

    /// `fathom show` of the only session.
    pub(crate) fn show(&self) -> Outcome {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        self.fathom("show --format json", &sessions[0])
    }
}

/// Fills a file with bytes that no layer can compress.
pub(crate) fn fill(path: &Path, mib: usize) {
    let mut random = File::open("/dev/urandom").unwrap();
    let mut file = File::create(path).unwrap();
    std::io::copy(&mut std::io::Read::take(&mut random, (mib as u64) << 20), &mut file).unwrap();
    file.sync_all().unwrap();
}

/// The entries of a directory, sorted; none without a directory.
pub(crate) fn names(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

/// Runs a tool that must succeed, and returns its output.
pub(crate) fn tool(words: &[&dyn AsRef<OsStr>]) -> Result<String, String> {
    let mut words = words.iter().map(AsRef::as_ref);
    let mut command = Command::new(words.next().unwrap());
    // A directory for files that the tool leaves: fio writes verification states.
    command.args(words).stdin(Stdio::null()).current_dir(std::env::temp_dir());
    let out = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&out.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Repeats a measurement up to five times while other load on the machine withholds its number.
pub(crate) fn undisturbed(measure: impl Fn() -> Outcome) -> Outcome {
    (0..4).map(|_| measure()).find(|out| !out.report().is_disturbed()).unwrap_or_else(measure)
}

/// Runs to the end, within five times the limit.
pub(crate) fn wait_long(command: &mut Command) -> Outcome {
    Running::start(command).end_within(5 * LIMIT)
}

/// Runs to the end, within the limit.
pub(crate) fn wait(command: &mut Command) -> Outcome {
    Running::start(command).end()
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let since = Instant::now();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || std::io::read_to_string(out).unwrap_or_default());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stdout, stderr, printed: String::new(), since }
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the progress output contains these words. Fails if the program ends before.
    pub(crate) fn wait_for_output(&mut self, words: &str) {
        while !self.printed.contains(words) {
            let read = self.stderr.read_line(&mut self.printed).unwrap();
            assert_ne!(read, 0, "it ended and never said '{words}': {}", self.printed);
        }
    }

    /// Waits until this many runs have begun, including repeats. Fails if the program ends before.
    pub(crate) fn wait_for_runs(&mut self, count: usize) {
        while self.printed.lines().filter(|line| line.starts_with("run ")).count() < count {
            let read = self.stderr.read_line(&mut self.printed).unwrap();
            assert_ne!(read, 0, "it ended before run {count}: {}", self.printed);
        }
    }

    /// Waits until the first run has a worker. The run is announced before its initial syncs, which may take a while.
    pub(crate) fn wait_for_load(&mut self) {
        self.wait_for_output("run 1 of");
        let is_worker = |task: std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == "fathom-0")
        };
        let tasks = format!("/proc/{}/task", self.id());
        while !std::fs::read_dir(&tasks).into_iter().flatten().flatten().any(is_worker) {
            assert!(
                self.since.elapsed() < LIMIT && Path::new(&tasks).exists(),
                "no worker: {}",
                self.printed
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Stops the program while `meanwhile` runs.
    pub(crate) fn while_stopped<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        /// Continues the program, even if the test fails.
        struct Continue<'r>(&'r Running);
        impl Drop for Continue<'_> {
            fn drop(&mut self) {
                self.0.signal(Signal::CONT);
            }
        }
        self.signal(Signal::STOP);
        let _continue = Continue(self);
        meanwhile()
    }

    /// Waits for the end. A program that outlasts the limit is killed, and the test fails.
    pub(crate) fn end(self) -> Outcome {
        self.end_within(LIMIT)
    }

    /// Waits for the end. A program that outlasts this limit is killed, and the test fails.
    pub(crate) fn end_within(mut self, limit: Duration) -> Outcome {
        let mut stderr = self.stderr;
        let stderr_reader =
            std::thread::spawn(move || std::io::read_to_string(&mut stderr).unwrap_or_default());
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.since.elapsed() > limit {
                self.child.kill().unwrap();
                panic!("it did not end within {limit:?}; it said: {}", self.printed);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Outcome {
            code: status.code(),
            stdout: self.stdout.join().unwrap(),
            stderr: self.printed + &stderr_reader.join().unwrap(),
            took: self.since.elapsed(),
        }
    }
}

impl Outcome {
    /// The JSON report on standard output.
    pub(crate) fn report(&self) -> Report {
        let value = serde_json::from_str(&self.stdout);
        Report(value.unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}")))
    }
}

/// A JSON report.
#[derive(Debug)]
pub(crate) struct Report(pub(crate) Value);

impl Report {
    /// Name of the headline.
    pub(crate) fn name(&self) -> &str {
        self.0["headline"]["name"].as_str().unwrap()
    }

    /// The first word of a report.
    pub(crate) fn verdict(&self) -> &str {
        self.0["verdict"].as_str().unwrap()
    }

    /// Answers of a check.
    pub(crate) fn answers(&self, id: &str) -> Vec<&Value> {
        self.0["findings"].as_array().unwrap().iter().filter(|f| f["id"] == id).collect()
    }

    /// Whether a check has this answer.
    pub(crate) fn has_answer(&self, id: &str, outcome: &str) -> bool {
        self.answers(id).iter().any(|f| f["outcome"] == outcome)
    }

    /// Fails unless a check has this answer.
    #[track_caller]
    pub(crate) fn expect_answer(&self, id: &str, outcome: &str) -> &Value {
        let all = self.answers(id);
        let answer = all.iter().find(|f| f["outcome"] == outcome);
        answer.unwrap_or_else(|| panic!("{id} does not say '{outcome}': {all:#?}"))
    }

    /// Whether the number is withheld because of the machine (the D checks), such as other load on the disk or the CPUs.
    pub(crate) fn is_disturbed(&self) -> bool {
        let findings = self.0["findings"].as_array().unwrap();
        findings.iter().any(|f| f["severity"] == "void" && f["id"].as_str().unwrap().starts_with('D'))
    }

    /// The counters of the topmost device for each run.
    pub(crate) fn devices(&self) -> Vec<&Value> {
        let runs = self.0["results"][0]["runs"].as_array().unwrap();
        runs.iter().map(|r| &r["device"]).collect()
    }
}
