//! Streams: from what was said about a workload to one with nothing left open but its target.
//!
//! For: defaults, and refusing what no engine or nobody could do. Not for: looking at the machine.

use super::origins::Origins;
use crate::failure::Failure;
use engine::engines::{ENGINES, Entry};
use model::job::{
    Access, Arrivals, Batch, Cache, Data, Flush, Kind, Line, Mix, Order, Pace, PerKind, Placement, Sharing,
    Sizes, Steps, Stream, SyncCall,
};
use model::units::{show_bytes, show_ns};
use model::wish::{LineWish, Rw, StreamWish, words};

/// Places for operations of an open loop: enough that a stall of some 100 ms at 1000 a second does not make it late.
const OPEN_DEPTH: u32 = 128;

/// A stream before its targets are known.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) stream: Stream,
    pub(super) engine: &'static Entry,
    /// Whether an open mode was asked for.
    pub(super) cache_said: bool,
    /// What was said of the span.
    pub(super) size: Option<u64>,
    /// Paths as they were typed; none where nothing was said.
    pub(super) paths: Vec<String>,
}

/// Fills a stream.
pub(super) fn draft(wish: &StreamWish, origins: &mut Origins) -> Result<Draft, Failure> {
    let engine = engine(wish, origins)?;
    let cache = cache(wish, engine, origins);
    let rw = origins.choose("--rw", wish.rw, Rw::Randread, |rw| rw.word().into());
    let access = access(wish, rw, origins);
    let sequential = access.pattern() == Some(model::job::Pattern::Sequential);
    let pace = pace(wish, origins);
    let depth = match (&pace, sequential) {
        (Pace::Open { .. }, _) => OPEN_DEPTH,
        (_, true) => 8,
        (_, false) => 32,
    };
    let depth = origins.choose("--depth", wish.depth, depth.min(engine.max_depth), u32::to_string);
    let workers = origins.choose("--workers", wish.workers, 1, u32::to_string);
    let batch = batch(wish, engine, depth, origins)?;
    let flush = flush(wish, &access, origins);
    let data = data(wish);
    origins.note("data", (data != Data::default()).then_some(&data), |d| data_words(d));
    origins.note("--sharing", wish.sharing.as_ref(), |s| words::of_sharing(s));
    origins.note("--delay", wish.delay, |ns| show_ns(*ns as f64));
    let place = Placement {
        cpus: wish.cpus.clone().unwrap_or_default(),
        split: wish.pin.unwrap_or(false),
        node: wish.node,
    };
    origins.note("--cpus", wish.cpus.as_ref(), |c| words::of_cpus(c));
    let stream = Stream {
        name: wish.name.clone().unwrap_or_default(),
        access,
        targets: Vec::new(),
        sharing: wish.sharing.clone().unwrap_or(Sharing::Each),
        workers,
        depth,
        engine: engine.name.into(),
        options: wish.engine.as_ref().map(|e| e.options.clone()).unwrap_or_default(),
        cache,
        batch,
        pace,
        flush,
        data,
        limit: wish.limit,
        delay_ns: wish.delay.unwrap_or(0),
        place,
    };
    if let Some(kind) = stream.kinds().find(|k| !engine.kinds.contains(k)) {
        return Err(unable(engine, kind));
    }
    Ok(Draft {
        stream,
        engine,
        cache_said: wish.cache.is_some(),
        size: wish.size,
        paths: wish.target.clone(),
    })
}

fn engine(wish: &StreamWish, origins: &mut Origins) -> Result<&'static Entry, Failure> {
    let entry = super::engine::find(wish).map_err(|problem| Failure::Usage(problem.in_flags()))?;
    let said = wish.engine.as_ref().map(|e| e.name.clone());
    origins.choose("--engine", said, super::engine::default_of(wish).into(), Clone::clone);
    let options = wish.engine.as_ref().map(|e| &e.options).filter(|o| !o.is_empty());
    origins.note("engine options", options, |o| words::options(o));
    Ok(entry)
}

fn cache(wish: &StreamWish, engine: &Entry, origins: &mut Origins) -> Cache {
    let default = engine.caches.first().copied().unwrap_or(Cache::Direct);
    origins.choose("--cache", wish.cache, default, |c| c.word().into())
}

fn unable(engine: &Entry, kind: Kind) -> Failure {
    let able: Vec<&str> = ENGINES.iter().filter(|e| e.kinds.contains(&kind)).map(|e| e.name).collect();
    Failure::Usage(format!(
        "the engine {} cannot {}; type --engine with one of {}",
        engine.name,
        kind.word(),
        able.join(", ")
    ))
}

fn access(wish: &StreamWish, rw: Rw, origins: &mut Origins) -> Access {
    let offset_bytes = wish.offset.unwrap_or(0);
    origins.note("--offset", wish.offset, |o| show_bytes(*o));
    let lines = if wish.lines.is_empty() {
        vec![plain_line(wish, rw, origins)]
    } else {
        origins.note("--line", Some(wish.lines.len()), |n| format!("{n} lines"));
        wish.lines.iter().map(line).collect()
    };
    Access { offset_bytes, span_bytes: u64::MAX, lines }
}

/// The one line that the plain settings say.
fn plain_line(wish: &StreamWish, rw: Rw, origins: &mut Origins) -> Line {
    let order = if rw.is_random() {
        origins.note("--random", wish.random.as_ref(), |o| o.words());
        wish.random.clone().unwrap_or(Order::Random)
    } else {
        Order::Sequential(Steps {
            stride_bytes: wish.stride.unwrap_or(0),
            hole_bytes: wish.hole.unwrap_or(0),
            backwards: wish.backwards.unwrap_or(false),
            start: wish.start.unwrap_or_default(),
        })
    };
    let mix = match rw.fixed_mix() {
        Some(mix) => mix,
        None => origins.choose("--mix", wish.mix, Mix { read_percent: 50, trim_percent: 0 }, |m| m.words()),
    };
    let default = Sizes::Fixed(if rw.is_random() { 4096 } else { 1 << 20 });
    let default = PerKind::all(default);
    let sizes = origins.choose("--bs", wish.bs.clone(), default, size_words);
    origins.note("--align", wish.align, |a| show_bytes(*a));
    origins.note("--think", wish.think, |t| show_ns(*t as f64));
    Line {
        weight: 100,
        order,
        mix,
        sizes,
        align_bytes: wish.align.unwrap_or(0),
        burst: wish.burst.unwrap_or(1),
        delay_ns: wish.think.unwrap_or(0),
        reply_bytes: 0,
    }
}

fn line(wish: &LineWish) -> Line {
    let order = match wish.random {
        r if r >= 100.0 => Order::Random,
        r if r <= 0.0 => Order::Sequential(Steps::default()),
        r => Order::Mixed(r),
    };
    let sizes = PerKind::all(wish.bs.clone());
    Line {
        weight: wish.share,
        order,
        mix: wish.mix,
        sizes,
        align_bytes: wish.align,
        burst: wish.burst.max(1),
        delay_ns: wish.delay,
        reply_bytes: wish.reply,
    }
}

pub(super) fn size_words(sizes: &PerKind<Sizes>) -> String {
    let PerKind { read, write, trim } = sizes;
    if read == write && write == trim {
        return read.words();
    }
    format!("read {}, write {}, trim {}", read.words(), write.words(), trim.words())
}

fn pace(wish: &StreamWish, origins: &mut Origins) -> Pace {
    origins.note("--rate", wish.rate, |r| format!("{r} per second, open loop"));
    origins.note("--limit-iops", wish.limit_iops, f64::to_string);
    origins.note("--limit-bandwidth", wish.limit_bandwidth, |b| format!("{} per second", show_bytes(*b)));
    if let Some(iops) = wish.rate {
        let arrivals = origins
            .choose("--arrivals", wish.arrivals, Arrivals::default(), |a| words::of_arrivals(*a).into());
        return Pace::Open { iops, arrivals };
    }
    match (wish.limit_iops, wish.limit_bandwidth) {
        (None, None) => Pace::Closed,
        (iops, bytes) => Pace::Limited { iops: iops.unwrap_or(0.0), bytes_per_s: bytes.unwrap_or(0) as f64 },
    }
}

/// How operations are handed over: each at once, unless the engine or the user would rather have many in one call.
fn batch(wish: &StreamWish, engine: &Entry, depth: u32, origins: &mut Origins) -> Result<Batch, Failure> {
    if let Some(said) = wish.batch.filter(|b| b.submit > engine.max_depth) {
        return Err(Failure::Usage(format!(
            "--batch {}: the engine {} takes {} operation at a time; leave --batch out, or type --engine io_uring",
            said.submit, engine.name, engine.max_depth
        )));
    }
    let submit = if engine.default_batch == 0 { depth } else { engine.default_batch };
    let words = |b: &Batch| format!("{},{}", b.submit, b.complete);
    let from = format!("engine {}", engine.name);
    Ok(origins.choose_from("--batch", wish.batch, Batch { submit, complete: 1 }, &from, words))
}

fn flush(wish: &StreamWish, access: &Access, origins: &mut Origins) -> Option<Flush> {
    let said = [
        (SyncCall::Fsync, wish.fsync),
        (SyncCall::Fdatasync, wish.fdatasync),
        (SyncCall::SyncFileRange, wish.sync_file_range),
    ];
    let (call, every) = said.into_iter().find_map(|(call, every)| Some((call, every.filter(|n| *n > 0)?)))?;
    let drain = wish.drain.unwrap_or(false);
    let how = if drain { ", drained" } else { "" };
    origins.note(call.word(), Some(every), |n| format!("after every {n} writes{how}"));
    access.writes().then_some(Flush { call, every, drain })
}

fn data(wish: &StreamWish) -> Data {
    match (&wish.data, wish.zeros) {
        (Some(file), _) => Data::File(file.clone()),
        (None, Some(true)) => Data::Zeros,
        _ => Data::Random {
            compress_percent: wish.compress.unwrap_or(0),
            dedup_percent: wish.dedup.unwrap_or(0),
        },
    }
}

fn data_words(data: &Data) -> String {
    match data {
        Data::Random { compress_percent, dedup_percent } => {
            format!("random, {compress_percent} % compressible, {dedup_percent} % copies")
        }
        Data::Zeros => "zeros".into(),
        Data::File(path) => format!("the bytes of {path}"),
    }
}
