//! The self test: what fathom itself can do at the shapes of the plan, before anything is measured.
//!
//! For: ceilings that results are compared with (D06, D07). Not for: results.

use super::supplies::Supplies;
use engine::engines::{self, Entry};
use engine::source::{self, Common, Share};
use engine::spec::WorkerSpec;
use engine::workers::Workers;
use model::Known;
use model::job::{Data, Options, Pace, StopRule, Stream};
use model::plan::Plan;
use model::record::{Ceiling, SelfTest};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::clock::Clock;
use sys::open_file::OpenFile;

/// How long each shape is tried at once: thousands of operations, in less than a time slice, so that beside others that need the CPU
/// one of the tries is whole.
const SELF_TEST_TIME_NS: u64 = 2_000_000;
/// How often. The fastest counts: nothing makes fathom faster than it is, and whatever else a CPU does meanwhile makes it slower.
const SELF_TEST_TRIES: usize = 5;
/// Most shapes that are tried, so that a plan of a hundred streams still begins at once.
const MAX_SHAPES: usize = 24;
/// Where the sources believe to be; nothing is touched.
const SPAN_BYTES: u64 = 1 << 30;
const COPY_BYTES: usize = 1 << 20;

/// Measures the ceilings of a plan. Equal shapes are tried once.
pub(super) fn run_self_test(plan: &Plan, supplies: &Supplies, clock: Clock) -> SelfTest {
    let mut tried: Vec<(Stream, Known<f64>, Known<f64>)> = Vec::new();
    let mut ceilings = Vec::new();
    for (job, phase, stream, shape) in streams(plan) {
        let shape = closed(shape);
        let known = tried.iter().find(|(s, ..)| *s == shape).map(|(_, a, b)| (a.clone(), b.clone()));
        let (loop_ns, interface_ns) = match known {
            Some(known) => known,
            None if tried.len() == MAX_SHAPES => continue,
            None => {
                let least = |engine: &str, options: &Options| -> Known<f64> {
                    let once = || ns_per_op(&shape, engine, options.clone(), supplies, clock);
                    (1..SELF_TEST_TRIES).try_fold(once()?, |least, _| Ok(once()?.min(least)))
                };
                let alone = least("null", &Options::new());
                let interface = if shape.engine == "io_uring" {
                    least("io_uring", &Options::from([("nop".to_owned(), None)]))
                } else {
                    Err(format!("the engine {} has no operation that does nothing", shape.engine))
                };
                tried.push((shape, alone.clone(), interface.clone()));
                (alone, interface)
            }
        };
        ceilings.push(Ceiling { job, phase, stream, loop_ns, interface_ns });
    }
    SelfTest { copy_bytes_per_s: copy_bytes_per_s(), ceilings, trials: Vec::new() }
}

fn streams(plan: &Plan) -> impl Iterator<Item = (usize, usize, usize, &Stream)> {
    plan.jobs.iter().enumerate().flat_map(|(job, j)| {
        j.phases.iter().enumerate().flat_map(move |(phase, p)| {
            p.streams.iter().enumerate().map(move |(stream, s)| (job, phase, stream, s))
        })
    })
}

/// One worker of the stream at full speed: what its pace and its limits leave of it is another question.
fn closed(stream: &Stream) -> Stream {
    let mut shape = stream.clone();
    shape.pace = Pace::Closed;
    shape.limit = StopRule::default();
    shape.workers = 1;
    shape.targets.truncate(1);
    shape.sharing = model::job::Sharing::Each;
    shape.access.lines.iter_mut().for_each(|l| l.delay_ns = 0);
    shape.turns.clear();
    shape.access.offset_bytes = 0;
    shape.access.span_bytes = SPAN_BYTES.max(u64::from(shape.access.largest_bytes()));
    shape.delay_ns = 0;
    (shape.bursts, shape.think_spin_ns) = (None, 0);
    shape.op_priorities.clear();
    shape
}

fn ns_per_op(
    shape: &Stream,
    engine: &str,
    options: Options,
    supplies: &Supplies,
    clock: Clock,
) -> Known<f64> {
    let entry = engines::find(engine).ok_or("there is no such engine")?;
    if let Some(missing) = options.keys().find(|o| entry.options.iter().all(|e| e.name != o.as_str())) {
        return Err(format!("the engine {engine} has no option {missing}"));
    }
    let spec = spec(shape, entry, options, supplies, clock)?;
    let mut workers = Workers::spawn(vec![spec])?;
    workers.open();
    while !workers.is_done() {
        std::thread::sleep(Duration::from_millis(2));
        workers.collect(|_, _| {});
    }
    let (_, outcome) = workers.finish().remove(0);
    if let Some(why) = outcome.error {
        return Err(why);
    }
    // Its totals also have what completed after the window.
    let lanes = outcome.last.iter().flat_map(|block| &block.lanes);
    let ops: u64 = lanes.flat_map(|lane| &lane.kinds).map(|tally| tally.latency.count()).sum();
    if ops == 0 { Err("nothing completed".into()) } else { Ok(outcome.window_ns as f64 / ops as f64) }
}

fn spec(
    shape: &Stream,
    engine: &'static Entry,
    options: Options,
    supplies: &Supplies,
    clock: Clock,
) -> Known<WorkerSpec> {
    let share = Share { worker: 0, workers: 1, seed: 1, common: Arc::new(Common::new(1)) };
    let span = shape.access.span_bytes;
    let files = if engine.moves_bytes {
        let file = File::open("/dev/null").map_err(|e| e.to_string())?;
        vec![OpenFile::new(file, true)]
    } else {
        Vec::new()
    };
    let sources = source::lanes_of_task(shape, &[span], &[1], (&share, (0, 1)))?;
    Ok(WorkerSpec {
        depth: shape.depth,
        slot_bytes: shape.access.largest_bytes(),
        writes: shape.access.writes(),
        options,
        cache: shape.cache,
        place: super::specs::place_of(&shape.place, 0),
        batch: shape.batch,
        maker: supplies
            .maker(&shape.data, 1)
            .or_else(|_| supplies.maker(&Data::default(), 1))
            .map_err(|_| "no data")?,
        // Without a warm-up: a worker that loses the CPU in it until the end of the test has a window of a moment.
        ..WorkerSpec::plain(engine, sources, files, SELF_TEST_TIME_NS, clock)?
    })
}

/// What one thread copies per second: the most that any buffered read or write of it could move.
fn copy_bytes_per_s() -> f64 {
    let from = vec![1_u8; COPY_BYTES];
    // Its pages are there before the clock starts.
    let mut to = from.clone();
    let mut once = || {
        let start = Instant::now();
        let mut copied = 0;
        while start.elapsed() < Duration::from_nanos(SELF_TEST_TIME_NS) {
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
            copied += COPY_BYTES;
        }
        copied as f64 / start.elapsed().as_secs_f64()
    };
    (0..SELF_TEST_TRIES).map(|_| once()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::job::{Access, Pattern};

    #[test]
    fn what_an_engine_of_known_speed_takes_is_found_exactly() {
        let (clock, _) = Clock::calibrate(true);
        let access = Access { span_bytes: SPAN_BYTES, ..Access::plain(Pattern::Random, 4096, 100) };
        for depth in [1, 4, 32] {
            let shape = closed(&Stream::plain(access.clone(), depth, 1, "sim"));
            let found = ns_per_op(&shape, "sim", Options::new(), &Supplies::default(), clock);
            assert_eq!(found, Ok(100_000.0 / f64::from(depth)), "depth {depth}");
        }
    }
}
