//! Fidelity: the device receives exactly the requested operations. Direct I/O on a block device and on ext4, compared with the kernel's events
//! ([`crate::trace`]).
//!
//! A share may deviate by five standard deviations, a distribution by what chance exceeds once in 10^5 cases. So a test fails without a
//! cause about once in a hundred thousand runs.

mod orders;
mod queues;
mod times;

use crate::disk::{Device, Disk, Image};
use crate::stage::{Outcome, Stage, fill, is_root};
use crate::trace::{Direction, Event, Step, Trace};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::collections::BTreeMap;
use std::path::PathBuf;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const BLOCK: u64 = 4 * KIB;
const MS: u64 = 1_000_000;
/// The targets: a device and a file.
const TARGET_MIB: usize = 64;
/// One run whose stop rule ends it, on a machine of any speed.
const COUNTED: &str = "--warmup 0 --time 50s --runs 1 --attempts 1 --quiet --format json";
/// One run with the duration in `words`.
const TIMED: &str = "--warmup 0 --runs 1 --attempts 1 --quiet --format json";

/// A target whose device is traced.
enum Storage {
    Device(Device),
    Ext4 { disk: Disk, file: PathBuf, extents: Vec<Extent> },
}

/// The position of a file's bytes on its device.
struct Extent {
    file: u64,
    device: u64,
    bytes: u64,
}

/// A request that the device got, with its offset in the target.
#[derive(Clone, Debug)]
struct Request {
    at_ns: u64,
    offset: u64,
    bytes: u64,
    direction: Direction,
    /// The name of the worker's thread.
    by: String,
}

impl Storage {
    /// A device on a sparse image: reads are fast, and only their order matters.
    fn device(stage: &Stage) -> Option<Self> {
        Device::new(stage, TARGET_MIB, Image::Direct).map(Self::Device)
    }

    /// A device on a fully written image.
    fn full_device(stage: &Stage) -> Option<Self> {
        let image = stage.path("image");
        fill(&image, TARGET_MIB);
        Device::on(&image, Image::Direct).map(Self::Device)
    }

    /// A file on ext4.
    fn ext4(stage: &Stage) -> Option<Self> {
        let disk = Disk::new(stage, "ext4", Image::Direct)?;
        let file = disk.file("data", TARGET_MIB);
        let extents = extents(&disk.sh("filefrag -b1 -e data"));
        Some(Self::Ext4 { disk, file, extents })
    }

    fn name(&self) -> &str {
        match self {
            Self::Device(device) => device.name(),
            Self::Ext4 { disk, .. } => disk.name(),
        }
    }

    /// Runs the program, with `TARGET` in its arguments replaced by the target, and returns the requests of its workers in order.
    fn requests(&self, stage: &Stage, trace: &Trace, words: &str) -> Vec<Request> {
        let (target, name) = match self {
            Self::Device(device) => (&device.path, device.name()),
            Self::Ext4 { file, .. } => (file, file.to_str().unwrap()),
        };
        let words = format!("{} {NEVER_WRITTEN}", words.replace("TARGET", name));
        let out = match self {
            Self::Device(_) => stage.fathom(&words, target),
            Self::Ext4 { disk, .. } => disk.fathom(stage, &words, target),
        };
        assert_success(&out);
        let issued = trace.take().into_iter().filter(is_of_a_worker);
        let requests: Vec<Request> = issued
            .filter_map(|e| {
                let (offset, by) = (self.offset(e.sector * 512)?, e.by);
                Some(Request { at_ns: e.at_ns, offset, bytes: e.bytes, direction: e.direction, by })
            })
            .collect();
        assert!(!requests.is_empty(), "the device got nothing: {out:?}");
        requests
    }

    /// The byte of the target at a byte of the device; `None` if the file system has something else there.
    fn offset(&self, byte: u64) -> Option<u64> {
        let Self::Ext4 { extents, .. } = self else { return Some(byte) };
        let extent = extents.iter().find(|e| (e.device..e.device + e.bytes).contains(&byte))?;
        Some(extent.file + byte - extent.device)
    }
}

/// The devices have never been written, which does not matter: only the requests count.
const NEVER_WRITTEN: &str = "--accept A04 --accept A05";

fn assert_success(out: &Outcome) {
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    out.report().expect_answer("B12", "holds");
}

/// Whether the event belongs to a worker. Requests of the main thread and of other programs do not count. Kernel threads of the ring
/// issue requests that must be split or may sleep.
fn is_of_a_worker(event: &Event) -> bool {
    let is_one = ["fathom-", "iou-wrk-", "kworker/"].iter().any(|name| event.by.starts_with(name));
    event.step == Step::Issued && event.direction != Direction::Flush && is_one
}

/// The lines of `filefrag -b1 -e`: `0: 0.. 1048575: 139460608.. 140509183: 1048576: last,eof`.
fn extents(text: &str) -> Vec<Extent> {
    let extent = |line: &str| {
        let numbers = line.split(|c: char| !c.is_ascii_digit()).filter(|w| !w.is_empty());
        let numbers: Vec<u64> = numbers.map_while(|n| n.parse().ok()).collect();
        let is_extent = line.contains("..") && numbers.len() >= 6;
        is_extent.then(|| Extent { file: numbers[1], device: numbers[3], bytes: numbers[5] })
    };
    let all: Vec<Extent> = text.lines().filter_map(extent).collect();
    assert_eq!(all.iter().map(|e| e.bytes).sum::<u64>(), TARGET_MIB as u64 * MIB, "{text}");
    all
}

/// Runs a test on a bare device, and on a file on ext4.
fn on_both(words: &str, test: impl Fn(&[Request])) {
    on(&[Storage::device, Storage::ext4], Stage::shared, words, test);
}

/// Runs a test on a bare device. A file system would only move the offsets, and split requests that cross two extents.
fn on_device(words: &str, test: impl Fn(&[Request])) {
    on(&[Storage::device], Stage::shared, words, test);
}

/// Runs a test on a bare device, with a processor for itself.
fn on_device_one_per_cpu(words: &str, test: impl Fn(&[Request])) {
    on(&[Storage::device], Stage::one_per_cpu, words, test);
}

fn on(
    storages: &[fn(&Stage) -> Option<Storage>],
    stage: fn() -> Stage,
    words: &str,
    test: impl Fn(&[Request]),
) {
    if !is_root() {
        return;
    }
    for storage in storages {
        let stage = stage();
        let Some(storage) = storage(&stage) else { return };
        let Some(trace) = Trace::start(&stage, &[storage.name()]) else { return };
        test(&storage.requests(&stage, &trace, &format!("run {words}")));
    }
}

fn offsets(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|r| r.offset).collect()
}

/// The requests of each worker, by its name.
fn by_worker(requests: &[Request]) -> BTreeMap<&str, Vec<&Request>> {
    let mut all: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for r in requests {
        all.entry(&r.by).or_default().push(r);
    }
    all
}

/// How often each block of a span began a request.
fn per_block(requests: &[Request], span: std::ops::Range<u64>) -> Vec<u64> {
    let mut counts = vec![0; ((span.end - span.start) / BLOCK) as usize];
    for r in requests {
        assert!(span.contains(&r.offset) && r.offset + r.bytes <= span.end, "{r:?} is not inside {span:?}");
        assert!(r.offset.is_multiple_of(BLOCK), "{r:?}");
        counts[((r.offset - span.start) / BLOCK) as usize] += 1;
    }
    counts
}

/// Fails if a share of draws deviates from the request.
#[track_caller]
fn assert_share(hits: usize, draws: usize, expected: f64) {
    let deviation = (expected * (1.0 - expected) * draws as f64).sqrt();
    let off = hits as f64 - expected * draws as f64;
    assert!(off.abs() <= 5.0 * deviation, "{hits} of {draws}, where a share of {expected} was asked for");
}

/// Fails if counts do not fit weights (Pearson's chi-squared test).
#[track_caller]
fn assert_proportions(seen: &[u64], weights: &[f64]) {
    let (draws, sum) = (seen.iter().sum::<u64>() as f64, weights.iter().sum::<f64>());
    // Adjacent classes are joined until ten or more counts are expected of each; the rest joins the last class.
    let mut classes = vec![(0.0, 0.0)];
    for (s, w) in seen.iter().zip(weights) {
        if classes.last().is_some_and(|c: &(f64, f64)| c.1 >= 10.0) {
            classes.push((0.0, 0.0));
        }
        let class = classes.last_mut().unwrap();
        *class = (class.0 + *s as f64, class.1 + w / sum * draws);
    }
    if classes.len() > 1 && classes.last().unwrap().1 < 10.0 {
        let (s, e) = classes.pop().unwrap();
        let class = classes.last_mut().unwrap();
        *class = (class.0 + s, class.1 + e);
    }
    assert!(classes.len() > 1, "{draws} draws are too few to judge");
    let chi: f64 = classes.iter().map(|(s, e)| (s - e).powi(2) / e).sum();
    let limit = ChiSquared::new((classes.len() - 1) as f64).unwrap().inverse_cdf(1.0 - 1e-5);
    assert!(chi <= limit, "chi-squared is {chi:.1} in {} classes, more than {limit:.1}", classes.len());
}

#[track_caller]
fn assert_even(seen: &[u64]) {
    assert_proportions(seen, &vec![1.0; seen.len()]);
}

/// Fails if sorted counts do not fit `draws` draws by these weights. It is unknown which block has which weight, and the block with the
/// highest weight need not have the highest count. So the counts are compared with fifty simulated draws, sorted in the same way.
#[track_caller]
fn assert_sorted_proportions(seen: &[u64], weights: &[f64]) {
    let draws: u64 = seen.iter().sum();
    let sum: f64 = weights.iter().sum();
    let ends: Vec<f64> = weights
        .iter()
        .scan(0.0, |to, w| {
            *to += w / sum;
            Some(*to)
        })
        .collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut expected = vec![Vec::new(); shells(seen).len()];
    for _ in 0..50 {
        let mut counts = vec![0_u64; weights.len()];
        for _ in 0..draws {
            let draw: f64 = rng.random();
            counts[ends.partition_point(|end| *end <= draw).min(weights.len() - 1)] += 1;
        }
        shells(&counts).into_iter().zip(&mut expected).for_each(|(shell, all)| all.push(shell as f64));
    }
    for (shell, (seen, all)) in shells(seen).into_iter().zip(&expected).enumerate() {
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (all.len() - 1) as f64;
        // Allow six deviations, because fifty simulated draws give the deviation only to a tenth, and one more, because a count is a whole
        // number.
        let limit = 6.0 * variance.sqrt() + 1.0;
        let off = (seen as f64 - mean).abs();
        assert!(off <= limit, "shell {shell} of the hottest got {seen}, not {mean:.0} to within {limit:.0}");
    }
}

/// Draws of the hottest block, of the next two, of the next four, and so on.
fn shells(counts: &[u64]) -> Vec<u64> {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut sums = Vec::new();
    let mut rest = sorted.as_slice();
    while !rest.is_empty() {
        let (shell, after) = rest.split_at(rest.len().min(1 << sums.len()));
        sums.push(shell.iter().sum());
        rest = after;
    }
    sums
}

/// Runs a test about times up to three times. Another process may take a CPU for a moment and delay requests, but a defect of fathom
/// occurs each time.
fn undisturbed(test: impl Fn() + std::panic::RefUnwindSafe) {
    for _ in 0..2 {
        if std::panic::catch_unwind(&test).is_ok() {
            return;
        }
        println!("disturbed perhaps; once more");
    }
    test();
}
