//! The stage: a directory of its own, the program, and what came of running it.
//!
//! For: tests that read as such. Not for: block devices and file systems ([`crate::disk`]).

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

/// The user that owns nothing.
const NOBODY: u32 = 65534;
/// A run that takes longer is a failure of the test; nothing here measures for more than a few seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// What `fathom` watches the idle machine for where that is not what a test is about.
const SHORT_WATCH: &str = "100ms";

/// Commands whose runs are measured again where others disturb them.
const MEASURING: [&str; 6] = ["run", "bench", "limit", "sweep", "api", "layers"];

/// Columns in which all tables fit.
const WIDE: &str = "200";

/// A directory of its own on a disk, and the machine to itself unless it was made for less.
pub(crate) struct Stage {
    dir: TempDir,
    /// Whether the idle machine is watched as long as for users, and what others disturb is measured again.
    watches: bool,
    _turn: Turn,
}

/// What came of running the program.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Exit code; `None` where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// The program while it runs.
pub(crate) struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
    since: Instant,
}

/// Says that the test of this thread could not be told, and why. `./test` prints these, and CI fails on them.
pub(crate) fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED {}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("{line}");
    if let Some(list) = std::env::var_os("FATHOM_SKIPS") {
        let mut list = File::options().append(true).create(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}

/// Whether root tells this test; says that it is skipped otherwise.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("only root can set up what it needs");
    }
    root
}

impl Stage {
    /// For a test that judges speed or counters of the whole machine, or takes something from it.
    pub(crate) fn new() -> Self {
        Self::holding(Turn::alone())
    }

    /// For a test that is about the idle watch, or about what others do to the disk.
    pub(crate) fn watching() -> Self {
        Self::new().watching_as_for_users()
    }

    /// For a test that needs a processor of its own and tells nothing of what others do to the disk: its device and its counters are
    /// its own, or its time is that of sleeping and of throttles.
    pub(crate) fn beside_few() -> Self {
        Self::holding(Turn::beside_few())
    }

    /// For a test that others of this kind cannot disturb: what is done, refused, written or counted of its own, and no speed.
    pub(crate) fn beside_others() -> Self {
        Self::holding(Turn::beside_others())
    }

    /// The same stage, where the program looks at what others do as it does for users.
    pub(crate) fn watching_as_for_users(self) -> Self {
        Self { watches: true, ..self }
    }

    fn holding(turn: Turn) -> Self {
        // Not /tmp, which is memory on many machines; not the build directory, which others may not enter.
        let dir = tempfile::Builder::new().prefix("fathom-it-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Self { dir, watches: false, _turn: turn }
    }

    /// Gives the program its words, and has it look at what others do no more than a test needs that is about something else: how
    /// many runs there are, and how long they take, must not depend on who else uses this machine.
    fn give_words(&self, command: &mut Command, words: &str) {
        let mut split = words.split_whitespace();
        let first = split.next();
        command.args(first);
        if !self.watches {
            command.env("FATHOM_TEST_IDLE", SHORT_WATCH);
            let says_itself = ["--attempts", "--until", "--quick", "--explain", "--resume"]
                .iter()
                .any(|flag| words.contains(flag));
            if first.is_some_and(|first| MEASURING.contains(&first)) && !says_itself {
                command.args(["--attempts", "1"]);
            }
        }
        command.args(split);
    }

    /// A path below the stage's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What its directory is called, as no other stage is.
    pub(crate) fn name(&self) -> String {
        self.dir.path().file_name().unwrap().to_string_lossy().into_owned()
    }

    /// An empty directory.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// An empty directory that belongs to nobody.
    pub(crate) fn folder_of_nobody(&self, name: &str) -> PathBuf {
        let path = self.folder(name);
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        path
    }

    /// A file full of bytes, on the disk.
    pub(crate) fn file(&self, name: &str, mib: usize) -> PathBuf {
        let path = self.path(name);
        fill(&path, mib);
        path
    }

    /// Runs the program with words split at spaces, and a target.
    pub(crate) fn fathom(&self, words: &str, target: &Path) -> Outcome {
        wait(&mut self.command(&[], words, target))
    }

    /// Runs the program as the user who owns nothing, without a home.
    pub(crate) fn fathom_as_nobody(&self, words: &str, target: &Path) -> Outcome {
        // Where the build directory is root's, the program in it is out of reach.
        let program = self.path("fathom");
        // By another process: one that a test beside this starts would hold the copy open for writing, and it could not run.
        tool(&[&"cp", &env!("CARGO_BIN_EXE_fathom"), &program]).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let who = NOBODY.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &who, "--regid", &who, "--clear-groups"]).arg(program);
        self.give_words(&mut command, words);
        if target != Path::new("") {
            command.arg(target);
        }
        command
            .env("COLUMNS", WIDE)
            .env_remove("HOME")
            .env("XDG_DATA_HOME", self.folder_of_nobody("xdg-of-nobody"));
        command.env("TMPDIR", self.folder_of_nobody("tmp-of-nobody"));
        wait(&mut command)
    }

    /// Starts the program and goes on.
    pub(crate) fn start(&self, words: &str, target: &Path) -> Running {
        Running::start(&mut self.command(&[], words, target))
    }

    /// The program behind a prefix such as `nsenter ...`.
    pub(crate) fn command(&self, prefix: &[String], words: &str, target: &Path) -> Command {
        let program = [env!("CARGO_BIN_EXE_fathom").to_owned()];
        let mut all = prefix.iter().chain(&program);
        let mut command = Command::new(all.next().unwrap());
        command.args(all);
        self.give_words(&mut command, words);
        if target != Path::new("") {
            command.arg(target);
        }
        command.env("XDG_DATA_HOME", self.folder("xdg")).env("TMPDIR", self.folder("tmp"));
        // What is named without a folder must not lie in the source.
        command.current_dir(self.folder("cwd"));
        // Tests that look for words in tables have room for them; those about widths say their own.
        command.env("COLUMNS", WIDE);
        command
    }

    /// The session files that were written, oldest first.
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

/// Fills a file with bytes that no layer can make smaller, down to the disk.
pub(crate) fn fill(path: &Path, mib: usize) {
    let mut random = File::open("/dev/urandom").unwrap();
    let mut file = File::create(path).unwrap();
    std::io::copy(&mut std::io::Read::take(&mut random, (mib as u64) << 20), &mut file).unwrap();
    file.sync_all().unwrap();
}

/// Everything in a directory, sorted; nothing where there is none.
pub(crate) fn names(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

/// Runs a tool that must succeed, and gives what it printed.
pub(crate) fn tool(words: &[&dyn AsRef<OsStr>]) -> Result<String, String> {
    let mut words = words.iter().map(AsRef::as_ref);
    let mut command = Command::new(words.next().unwrap());
    // Where a tool may leave what it makes beside its output: fio, states of verification.
    command.args(words).stdin(Stdio::null()).current_dir(std::env::temp_dir());
    let out = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&out.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// What a measurement says, made again as a whole while others had the disk or the CPUs of this machine for so much of it that there is
/// no number; the fifth as it is.
pub(crate) fn undisturbed(measure: impl Fn() -> Outcome) -> Outcome {
    (0..4).map(|_| measure()).find(|out| !out.report().is_withheld_by_others()).unwrap_or_else(measure)
}

/// Runs something that goes through many loads to the end, within five times the limit.
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
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, said: String::new(), since }
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until progress says these words. Fails where the program ends before.
    pub(crate) fn until_it_says(&mut self, words: &str) {
        while !self.said.contains(words) {
            let read = self.stderr.read_line(&mut self.said).unwrap();
            assert_ne!(read, 0, "it ended and never said '{words}': {}", self.said);
        }
    }

    /// Waits until this many runs have begun; repeated runs count. Fails if the program ends before.
    pub(crate) fn until_runs(&mut self, count: usize) {
        while self.said.lines().filter(|line| line.starts_with("run ")).count() < count {
            let read = self.stderr.read_line(&mut self.said).unwrap();
            assert_ne!(read, 0, "it ended before run {count}: {}", self.said);
        }
    }

    /// Waits until its first run has a worker. It is announced before the syncs that come before a run, and those may take a while.
    pub(crate) fn until_it_loads(&mut self) {
        self.until_it_says("run 1 of");
        let is_worker = |task: std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == "fathom-0")
        };
        let tasks = format!("/proc/{}/task", self.id());
        while !std::fs::read_dir(&tasks).into_iter().flatten().flatten().any(is_worker) {
            assert!(self.since.elapsed() < LIMIT && Path::new(&tasks).exists(), "no worker: {}", self.said);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Has it stand still while something is done, however long that takes on a machine in use.
    pub(crate) fn held<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        /// Lets it go on, also where the test fails.
        struct GoesOn<'r>(&'r Running);
        impl Drop for GoesOn<'_> {
            fn drop(&mut self) {
                self.0.signal(Signal::CONT);
            }
        }
        self.signal(Signal::STOP);
        let _goes_on = GoesOn(self);
        meanwhile()
    }

    /// Waits for the end. A program that outlasts the limit is killed, and the test fails.
    pub(crate) fn end(self) -> Outcome {
        self.end_within(LIMIT)
    }

    /// Waits for the end. A program that outlasts this limit is killed, and the test fails.
    pub(crate) fn end_within(mut self, limit: Duration) -> Outcome {
        let out = self.child.stdout.take().unwrap();
        let reading = std::thread::spawn(move || std::io::read_to_string(out).unwrap_or_default());
        let mut stderr = self.stderr;
        let hearing = std::thread::spawn(move || std::io::read_to_string(&mut stderr).unwrap_or_default());
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.since.elapsed() > limit {
                self.child.kill().unwrap();
                panic!("it did not end within {limit:?}; it said: {}", self.said);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Outcome {
            code: status.code(),
            stdout: reading.join().unwrap(),
            stderr: self.said + &hearing.join().unwrap(),
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

/// A JSON report, read by the names of its contract.
#[derive(Debug)]
pub(crate) struct Report(pub(crate) Value);

impl Report {
    /// Name of the headline.
    pub(crate) fn name(&self) -> &str {
        self.0["headline"]["name"].as_str().unwrap()
    }

    /// First word.
    pub(crate) fn verdict(&self) -> &str {
        self.0["verdict"].as_str().unwrap()
    }

    /// Answers of a check.
    pub(crate) fn answers(&self, id: &str) -> Vec<&Value> {
        self.0["findings"].as_array().unwrap().iter().filter(|f| f["id"] == id).collect()
    }

    /// Whether a check answered so.
    pub(crate) fn says(&self, id: &str, outcome: &str) -> bool {
        self.answers(id).iter().any(|f| f["outcome"] == outcome)
    }

    /// Fails unless a check answered so.
    #[track_caller]
    pub(crate) fn must_say(&self, id: &str, outcome: &str) -> &Value {
        let all = self.answers(id);
        let answer = all.iter().find(|f| f["outcome"] == outcome);
        answer.unwrap_or_else(|| panic!("{id} does not say '{outcome}': {all:#?}"))
    }

    /// Whether there is no number because of the machine (the checks D), such as others who had its disk or CPUs.
    pub(crate) fn is_withheld_by_others(&self) -> bool {
        let findings = self.0["findings"].as_array().unwrap();
        findings.iter().any(|f| f["severity"] == "void" && f["id"].as_str().unwrap().starts_with('D'))
    }

    /// What the topmost device saw of each run.
    pub(crate) fn devices(&self) -> Vec<&Value> {
        let runs = self.0["results"][0]["runs"].as_array().unwrap();
        runs.iter().map(|r| &r["device"]).collect()
    }
}
