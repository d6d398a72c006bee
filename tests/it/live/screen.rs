//! A shell in a terminal of a given size, controlled by tmux.

use crate::stage::{Stage, skip, tool};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for anything on the screen.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the screen is read.
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// The prompt of the shell.
const PROMPT: &str = "ready:";

/// A terminal with a shell, ended on drop.
pub(crate) struct Screen {
    socket: PathBuf,
    /// The terminal modes before the first command.
    modes: String,
}

impl Screen {
    /// A terminal of this size. Skips the test without tmux.
    pub(crate) fn new(stage: &Stage, name: &str, (columns, rows): (u16, u16)) -> Option<Self> {
        let socket = stage.path(name);
        let line = format!(
            "exec tmux -u -S '{}' -f /dev/null new-session -d -x {columns} -y {rows} 'env PS1={PROMPT} bash --norc \
             --noprofile'",
            socket.display()
        );
        let mut command = stage.command(&["bash".into(), "-c".into(), line], "", Path::new(""));
        command.env("F", env!("CARGO_BIN_EXE_fathom")).current_dir(stage.folder("cwd"));
        command.env("LANG", "C.UTF-8");
        for name in ["CI", "NO_COLOR", "LC_ALL", "LC_CTYPE", "COLUMNS", "TMUX"] {
            command.env_remove(name);
        }
        if tool(&[&"tmux", &"-V"]).is_err() {
            skip("there is no tmux");
            return None;
        }
        let out = command.output().unwrap();
        assert!(out.status.success(), "{out:?}");
        let mut screen = Self { socket, modes: String::new() };
        screen.until(PROMPT);
        // The shell sets COLUMNS, which would fix the width of reports.
        screen.enter("export -n COLUMNS LINES; unset COLUMNS");
        screen.modes = screen.modes();
        Some(screen)
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"tmux", &"-u", &"-S", &self.socket];
        all.extend(words.iter().map(|w| w as &dyn AsRef<std::ffi::OsStr>));
        tool(&all).unwrap()
    }

    /// The text on the screen.
    pub(crate) fn shown(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The normal screen with its scrollback.
    pub(crate) fn history(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Types keys by name.
    pub(crate) fn keys(&self, keys: &str) {
        self.tmux(&["send-keys", keys]);
    }

    /// Types a line.
    pub(crate) fn enter(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.keys("Enter");
    }

    /// Waits until the screen shows these words.
    #[track_caller]
    pub(crate) fn until(&self, words: &str) -> String {
        self.wait_until(words, |shown| shown.contains(words))
    }

    /// Waits until the screen satisfies a condition.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let shown = self.shown();
            if is(&shown) {
                return shown;
            }
            assert!(since.elapsed() < PATIENCE, "it never showed '{what}':\n{shown}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether the alternate screen is shown, and whether the cursor is visible.
    pub(crate) fn alternate_screen_and_cursor(&self) -> (bool, bool) {
        let printed = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        (printed.starts_with('1'), printed.ends_with('1'))
    }

    /// The terminal modes while a command runs, without the size.
    fn modes(&self) -> String {
        let file = self.socket.with_extension("tty");
        self.enter(&format!("stty -a | tail -n +2 > '{}'; sync '{0}'; echo mode''s", file.display()));
        self.until("modes");
        std::fs::read_to_string(file).unwrap()
    }

    /// Waits for the end of a command started as `line; echo code=$?`, and returns the normal screen. Fails unless the terminal is
    /// restored.
    #[track_caller]
    pub(crate) fn end(&self) -> String {
        let shown = self.wait_until("code=N", |shown| {
            shown.lines().any(|l| l.strip_prefix("code=").is_some_and(|rest| rest.parse::<u8>().is_ok()))
        });
        assert_eq!(self.alternate_screen_and_cursor(), (false, true), "{shown}");
        let history = self.history();
        assert_eq!(self.modes(), self.modes, "{shown}");
        history
    }

    /// Starts the program, and prints its exit code at the end.
    pub(crate) fn fathom(&self, words: &str) {
        self.begin(&format!("$F {words}"));
    }

    /// Types a command on an empty screen, and prints its exit code at the end.
    pub(crate) fn begin(&self, line: &str) {
        self.enter("clear");
        self.wait_until("an empty screen", |shown| shown.trim() == PROMPT);
        self.tmux(&["clear-history"]);
        self.enter(&format!("{line}; echo code=$?"));
    }

    /// Process id of the program.
    pub(crate) fn id(&self) -> u32 {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Also writes all terminal output to a file.
    pub(crate) fn record(&self, file: &Path) {
        self.tmux(&["pipe-pane", "-o", &format!("cat >> '{}'", file.display())]);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = tool(&[&"tmux", &"-S", &self.socket, &"kill-server"]);
    }
}
