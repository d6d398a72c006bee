//! `fathom watch`: what block devices, CPUs and processes do now, interval after interval.
//!
//! The loop: wait for the end of the interval, sample the counters, compute figures and conclusions, show them. The crate `machine` takes
//! the samples, `analysis::watch` has the formulas, and the crate `report` the layout.

mod calls;
mod devices;
mod events;
mod processes;
mod selection;
mod show;
mod targets;

use crate::failure::Failure;
use crate::output::Replace;
use crate::{history, live, signals};
use calls::Calls;
use devices::Devices;
use events::Events;
use machine::processes::Whose;
use machine::root::Root;
use model::watch::{CpuShares, Layout, Watched};
use processes::Busiest;
use report::Format;
pub use selection::Selection;
use show::Shown;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long an end that was asked for may have to wait, and how often the buffers of events are emptied.
const PIECE: Duration = Duration::from_millis(50);

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    /// Devices by kernel name or path, files and directories; none for all disks in use.
    pub targets: Vec<PathBuf>,
    /// Time between two looks.
    pub interval: Duration,
    /// How many intervals; `None` until a signal.
    pub count: Option<u64>,
    /// The only process that is watched.
    pub pid: Option<u32>,
    /// Whether the kernel's block events are recorded, where this user may.
    pub events: bool,
    /// Whether the calls of processes are counted.
    pub calls: bool,
    /// Whether lines are printed on a terminal too.
    pub plain: bool,
    /// Which parts of an interval are shown, and of which devices.
    pub selection: Selection,
    /// What the text shows.
    pub layout: Layout,
    /// The format on standard output.
    pub format: &'static Format,
    /// Files that are renewed at every interval.
    pub outputs: Vec<PathBuf>,
    /// What they may replace.
    pub replace: Replace,
}

/// Watches until the last interval, a signal, or until nobody reads any more.
///
/// # Errors
/// What cannot be watched, and where it cannot be shown.
pub fn watch(request: &Request) -> Result<ExitCode, Failure> {
    let root = Root::real();
    let whose = whose(&root, request.pid)?;
    let targets = targets::resolve(&root, &request.targets)?;
    let mut shown = Shown::new(request, &targets)?;
    let (measured, unread) = match history::capacities() {
        Ok(measured) => (measured, None),
        Err(why) => (Vec::new(), Some(format!("the history cannot be read: {}", why.message()))),
    };
    let gone = Arc::new(AtomicBool::new(false));
    let stop = signals::watch_until_gone(&gone, live::give_back_now)
        .map_err(|e| Failure::Refused(format!("signals cannot be taken: {e}{}", sys::cause(&e))))?;
    let devices = Devices::new(&root, targets, measured, request.selection)?;
    let unread = unread.into_iter().collect();
    let watched = run(request, &root, (devices, whose), &mut shown, unread, &stop);
    gone.store(true, Ordering::Relaxed);
    watched
}

/// Shows interval after interval.
fn run(
    request: &Request,
    root: &Root,
    (mut devices, whose): (Devices, Whose),
    shown: &mut Shown,
    mut remarks: Vec<String>,
    stop: &AtomicBool,
) -> Result<ExitCode, Failure> {
    let Selection { cpu: with_cpu, devices: with_devices, processes: with_processes, .. } = request.selection;
    let mut busiest = Busiest::new(root, whose, request.interval, &devices.tops());
    let with_events = request.events && (with_devices || with_processes);
    let mut events = if with_events { Events::new(whose) } else { Events::none() };
    let mut cpu_times = CpuTimes::new(root);
    if with_devices {
        remarks.splice(0..0, devices.begin());
    }
    if with_processes {
        remarks.push(processes::remark());
    }
    remarks.extend(events.follow(&devices.traced()));
    let mut calls = request.calls.then(|| Calls::new(root, request.pid)).transpose()?;
    remarks.extend(calls.as_ref().map(|_| calls::REMARK.to_owned()));
    shown.begin(request)?;
    let mut deadline = Instant::now();
    for number in 0.. {
        deadline = following(deadline, request.interval);
        if request.count == Some(number)
            || !wait_until(deadline, stop, &mut || drain(&mut events, calls.as_mut(), shown))
        {
            break;
        }
        let mut seen = devices.sample()?;
        if with_devices {
            remarks.extend(seen.remarks);
        } else {
            seen.devices.clear();
        }
        let cpu = cpu_times.shares(root).filter(|_| with_cpu);
        events.tell(&mut seen.devices);
        let mut processes =
            if with_processes { busiest.sample(&devices.tops(), &mut events) } else { Ok(None) };
        if let (Some(calls), Ok(Some(processes))) = (&mut calls, &mut processes) {
            calls.tell(processes);
        }
        remarks.extend(events.follow(&devices.traced()));
        let unseen = processes.as_ref().err().cloned();
        // The one process that was asked for has ended; without any of them devices are watched all the same.
        let ended = request.pid.is_some() && unseen.is_some();
        remarks.extend(unseen.filter(|_| ended || number == 0));
        let watched = Watched {
            first: number == 0,
            headed: false,
            time: jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string(),
            devices: seen.devices,
            cpu,
            processes: processes.ok().flatten(),
            remarks: std::mem::take(&mut remarks),
            layout: request.layout,
        };
        if !shown.show(watched)? || ended {
            break;
        }
    }
    shown.write_pages()?;
    Ok(ExitCode::SUCCESS)
}

/// The text of `/proc/stat` at the start of an interval; `None` if it could not be read.
struct CpuTimes(Option<String>);

impl CpuTimes {
    fn new(root: &Root) -> Self {
        Self(root.read("/proc/stat").ok())
    }

    /// Returns how the CPUs spent the interval that ends now; `None` if the kernel does not say.
    fn shares(&mut self, root: &Root) -> Option<CpuShares> {
        let before = self.0.take();
        self.0 = root.read("/proc/stat").ok();
        analysis::watch::cpu::shares(&before?, self.0.as_ref()?).ok()?
    }
}

fn whose(root: &Root, pid: Option<u32>) -> Result<Whose, Failure> {
    let Some(pid) = pid else { return Ok(Whose::Processes) };
    if root.has(&format!("/proc/{pid}/task")) {
        return Ok(Whose::ThreadsOf(pid));
    }
    Err(Failure::Usage(format!("--pid {pid}: there is no such process; `ps -e` lists those that there are")))
}

/// The next end of an interval; what took longer than one leaves ends out.
fn following(deadline: Instant, interval: Duration) -> Instant {
    let next = deadline + interval;
    let now = Instant::now();
    if next > now { next } else { now + interval }
}

/// Takes what the kernel recorded and what was typed; whether that was not the end.
fn drain(events: &mut Events, calls: Option<&mut Calls>, shown: &mut Shown) -> bool {
    events.drain();
    if let Some(calls) = calls {
        calls.drain();
    }
    shown.obey()
}

/// Waits, and does what is to be done often meanwhile; whether nobody asked for the end.
fn wait_until(deadline: Instant, stop: &AtomicBool, often: &mut dyn FnMut() -> bool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) || !often() {
            return false;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(PIECE));
    }
}

#[test]
fn an_interval_that_was_missed_is_left_out() {
    let now = Instant::now();
    let second = Duration::from_secs(1);
    assert_eq!(following(now, second), now + second);
    let Some(long_ago) = now.checked_sub(10 * second) else { return };
    assert!(following(long_ago, second) >= now + second);
}
