//! Traces of block requests, by the kernel's own events, for tests that compare operations with requests one by one. Needs root.
//!
//! `block_rq_issue` is the event for a request that the device gets; `block_bio_queue` comes before splitting and merging. Together with
//! `block_rq_complete` it gives the requests in flight. The events go to a private instance of the tracer
//! (Documentation/trace/ftrace.rst), so other tracing is not disturbed. The process that keeps the mount removes the instance when its standard
//! input ends, so even a killed test leaves none.

use crate::disk::Room;
use crate::stage::Stage;
use std::path::PathBuf;
use std::process::Command;

/// Size of each CPU's buffer: some 400,000 events.
const BUFFER_KIB: u32 = 32 * 1024;
/// Size of a kernel sector, whatever the device's own sector size.
const SECTOR: u64 = 512;

/// An event of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Time in ns of `CLOCK_MONOTONIC`, with a resolution of 1 us.
    pub(crate) at_ns: u64,
    /// Major and minor number.
    pub(crate) device: (u32, u32),
    pub(crate) step: Step,
    pub(crate) direction: Direction,
    /// First sector of 512 bytes.
    pub(crate) sector: u64,
    /// Number of bytes from that sector on.
    pub(crate) bytes: u64,
    /// The thread that issued the request; empty for a completion.
    pub(crate) by: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Issued,
    Completed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    Discard,
    /// Zeroes without data (`REQ_OP_WRITE_ZEROES`), which the kernel prints as `N`.
    Zeroes,
    Flush,
}

/// A trace of some devices.
pub(crate) struct Trace {
    instance: PathBuf,
    _room: Room,
}

impl Trace {
    /// Traces devices by kernel name. Skips the test and returns `None` if the kernel cannot trace.
    pub(crate) fn start(stage: &Stage, devices: &[&str]) -> Option<Self> {
        // Named like the stage, which is unique.
        let (dir, name) = (stage.folder("tracing"), stage.name());
        let script = "trap '' INT TERM; mount -t tracefs none \"$1\" && cd \"$1/instances\" && mkdir \"$2\" || exit; \
            echo ready; cat; echo 0 >\"$2/tracing_on\"; rmdir \"$2\"";
        let room = Room::keep(Command::new("sh").args(["-c", script, "sh"]).arg(&dir).arg(&name))?;
        let keeper = room.enter().pop().unwrap();
        let inside = PathBuf::from("/proc").join(keeper).join("root").join(dir.strip_prefix("/").unwrap());
        let trace = Self { instance: inside.join("instances").join(name), _room: room };
        trace.set("buffer_size_kb", &BUFFER_KIB.to_string());
        trace.set("trace_clock", "mono");
        // The kernel's own format of a device number: 12 and 20 bits.
        let filter: Vec<String> = devices
            .iter()
            .map(|d| number(d))
            .map(|(major, minor)| format!("dev == {}", major << 20 | minor))
            .collect();
        for event in ["block_rq_issue", "block_rq_complete"] {
            trace.set(&format!("events/block/{event}/filter"), &filter.join(" || "));
            trace.set(&format!("events/block/{event}/enable"), "1");
        }
        Some(trace)
    }

    /// The events since the start or the last call, in order. Fails if the kernel lost an event.
    pub(crate) fn take(&self) -> Vec<Event> {
        self.set("tracing_on", "0");
        for entry in std::fs::read_dir(self.instance.join("per_cpu")).unwrap() {
            let stats = std::fs::read_to_string(entry.unwrap().path().join("stats")).unwrap();
            let lost =
                |name: &str| stats.lines().any(|l| l.strip_prefix(name).is_some_and(|n| n.trim() != "0"));
            assert!(!lost("overrun:") && !lost("dropped events:"), "events were lost: {stats}");
        }
        let text = std::fs::read_to_string(self.instance.join("trace")).unwrap();
        self.set("trace", "");
        self.set("tracing_on", "1");
        events(&text).unwrap_or_else(|line| panic!("this line of the trace has an unknown format: {line}"))
    }

    fn set(&self, file: &str, text: &str) {
        let path = self.instance.join(file);
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

/// Major and minor number of a block device by its kernel name.
pub(crate) fn number(name: &str) -> (u32, u32) {
    let text = std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
    pair(text.trim(), ':').unwrap()
}

fn pair(text: &str, by: char) -> Option<(u32, u32)> {
    let (a, b) = text.split_once(by)?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

/// Parses the events of a trace; an unparsable line is the error.
fn events(text: &str) -> Result<Vec<Event>, String> {
    let lines = text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#'));
    lines.map(|line| event(line).ok_or_else(|| line.to_owned())).collect()
}

/// `TASK-PID [CPU] FLAGS SECONDS: block_rq_issue: 7,0 R 4096 () 96864 + 8 be,0,4 [fathom-0]`. A completion has no bytes, and its error in
/// the last brackets. A task name may contain any character, so the line is parsed from its end.
fn event(line: &str) -> Option<Event> {
    let (head, rest, step) =
        [(": block_rq_issue: ", Step::Issued), (": block_rq_complete: ", Step::Completed)]
            .into_iter()
            .find_map(|(name, step)| line.split_once(name).map(|(head, rest)| (head, rest, step)))?;
    let (seconds, fraction) = head.rsplit(' ').next()?.split_once('.')?;
    let micros = fraction.parse::<u64>().ok().filter(|_| fraction.len() == 6)?;
    let (place, last) = rest.rsplit_once(" [")?;
    let (place, count) = place.rsplit_once(" + ")?;
    let sectors: u64 = count.split(' ').next()?.parse().ok()?;
    let mut words = place.split(' ');
    let device = pair(words.next()?, ',')?;
    let flags = words.next()?;
    let direction = match flags.strip_prefix('F').map_or(flags, |f| if f.is_empty() { "F" } else { f }) {
        f if f.starts_with('R') => Direction::Read,
        f if f.starts_with('W') && sectors > 0 => Direction::Write,
        f if f.starts_with('D') => Direction::Discard,
        f if f.starts_with('N') => Direction::Zeroes,
        f if f.starts_with(['F', 'W']) => Direction::Flush,
        _ => return None,
    };
    let by = last.strip_suffix(']')?;
    Some(Event {
        at_ns: (seconds.parse::<u64>().ok()? * 1_000_000 + micros) * 1000,
        device,
        step,
        direction,
        sector: words.next_back()?.parse().ok()?,
        bytes: sectors * SECTOR,
        by: if step == Step::Issued { by.to_owned() } else { String::new() },
    })
}

#[test]
fn trace_text_is_parsed() {
    let text = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 6/6   #P:2
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
    kworker/1:1H-78      [001] ..... 18225.704753: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kworker/1:1H]
     ksoftirqd/1-22      [001] ..s.. 18225.705423: block_rq_complete: 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]
     ksoftirqd/1-22      [001] d.s1. 18225.705425: block_rq_complete: 7,0 WS () 0 + 0 be,0,4 [0]
        fathom-0-9133    [000] ..... 18227.612863: block_rq_issue: 7,1 R 4096 () 96864 + 8 be,0,4 [fathom-0]
 lto cgu.0.rcgu.-9135    [001] ..s.. 18227.761166: block_rq_complete: 7,1 R () 96864 + 8 be,0,4 [0]
        fathom 1-9133    [000] ..... 18227.800000: block_rq_issue: 7,1 DS 8192 () 16 + 16 be,0,4 [fathom 1]
";
    let seen = events(text).unwrap();
    let steps: Vec<(Step, Direction)> = seen.iter().map(|e| (e.step, e.direction)).collect();
    assert_eq!(
        steps,
        [
            (Step::Issued, Direction::Flush),
            (Step::Completed, Direction::Flush),
            (Step::Completed, Direction::Flush),
            (Step::Issued, Direction::Read),
            (Step::Completed, Direction::Read),
            (Step::Issued, Direction::Discard),
        ]
    );
    let read = Event {
        at_ns: 18_227_612_863_000,
        device: (7, 1),
        step: Step::Issued,
        direction: Direction::Read,
        sector: 96_864,
        bytes: 4096,
        by: "fathom-0".into(),
    };
    assert_eq!(seen[3], read);
    assert_eq!((seen[5].sector, seen[5].bytes, seen[5].by.as_str()), (16, 8192, "fathom 1"));
    assert_eq!(events("CPU:1 [LOST 3 EVENTS]"), Err("CPU:1 [LOST 3 EVENTS]".into()));
}
