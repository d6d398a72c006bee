//! Tells signals to fathom alone from signals to its whole process group, which reach the command too.
//!
//! 1. Nothing in a signal says to whom else it was sent. So fathom starts itself as a witness: a process of the group that blocks all
//!    signals, and waits until fathom ends.
//! 2. When fathom receives a signal, `/proc` shows whether it is pending in the witness too.
//! 3. If so, fathom writes the number to the witness, which takes the signal back to be ready for the next one.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The hidden flag with which fathom calls itself.
const FLAG: &str = "--witness";
/// The kernel signals the processes of a group one after the other. So do service managers that end all processes of a cgroup.
const NEXT_PROCESS: Duration = Duration::from_millis(10);
/// Longest wait until the witness has taken a signal back, and how often that is checked.
const TAKEN_BACK: Duration = Duration::from_secs(1);
const CHECK_EVERY: Duration = Duration::from_millis(1);
/// The byte that the witness writes when it is ready.
const READY: u8 = b'\n';

/// A process that receives the signals to the process group.
#[derive(Debug)]
pub(super) struct Witness(Child);

impl Witness {
    /// Starts the witness; `None` if that is impossible.
    pub(super) fn start() -> Option<Self> {
        let mut fathom = Command::new("/proc/self/exe");
        fathom.args(["time", FLAG]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        sys::process::block_all_signals(&mut fathom);
        fathom.spawn().ok().map(Self)
    }

    /// Waits until the witness has started all its threads: the kernel counts those of the whole machine during a run.
    pub(super) fn ready(mut self) -> Option<Self> {
        let mut byte = [0];
        self.0.stdout.take()?.read_exact(&mut byte).ok()?;
        Some(self)
    }

    /// Whether the witness has received the signal too. Takes it back.
    pub(super) fn has_received(&mut self, signal: i32) -> bool {
        sleep(NEXT_PROCESS);
        if !self.is_pending(signal) {
            return false;
        }
        let number = u8::try_from(signal).ok().zip(self.0.stdin.as_mut());
        let asked = number.is_some_and(|(number, input)| input.write_all(&[number]).is_ok());
        let since = Instant::now();
        while asked && self.is_pending(signal) && since.elapsed() < TAKEN_BACK {
            sleep(CHECK_EVERY);
        }
        true
    }

    fn is_pending(&self, signal: i32) -> bool {
        fs::read_to_string(format!("/proc/{}/status", self.0.id()))
            .is_ok_and(|status| is_pending(&status, signal))
    }
}

/// Whether a signal to the whole process is pending, in a file `status` of `/proc`.
fn is_pending(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(signal).ok().and_then(|signal| signal.checked_sub(1));
    mask.zip(bit).and_then(|(mask, bit)| mask.checked_shr(bit)).is_some_and(|mask| mask & 1 == 1)
}

/// Acts as the witness until fathom ends. The hidden flag of `fathom time` calls this.
pub fn witness() -> ExitCode {
    let mut input = std::io::stdin();
    let mut signal = [READY];
    let told = std::io::stdout().write_all(&signal).and_then(|()| std::io::stdout().flush());
    while told.is_ok() && input.read_exact(&mut signal).is_ok() {
        sys::process::discard(signal[0].into());
    }
    ExitCode::SUCCESS
}

#[test]
fn pending_signals_are_bits_of_the_mask() {
    let status = "Name:\tfathom\nSigPnd:\t0000000000000001\nShdPnd:\t8000000000000202\nSigBlk:\tffff\n";
    let pending: Vec<i32> = (-1..70).filter(|signal| is_pending(status, *signal)).collect();
    assert_eq!(pending, [2, 10, 64]);
    assert!(!is_pending("", 1));
}
