//! Whether reads can come from a cache because of their region or their order (A15, A16, A17).
//!
//! A15 compares the tested region with the caches of drives and controllers and, unless A01 or A09 measured the
//! page cache, with the memory of the machine. A16 computes how many reads return to blocks that the run already read,
//! from the order of offsets, the bytes read and the span. It does not apply to replays and to distributions that
//! repeat by design (Zipf, Pareto, normal, zones). A17 compares the first and the second read of the same
//! blocks, made before the runs, with a rank test: a cache below fathom or a lazily loaded volume makes the two reads differ.

use crate::checks::prelude::*;
use crate::figures::traffic::{FLOOR_BYTES, FLOOR_IOS};
use model::evidence::Probe;
use model::job::{Line, Sharing, Start};
use stats::comparison::{MIN_TIMES, TimesComparison, compare_times};

/// Returns the expected share of operations, 0 to 1, on blocks that the stream already touched in
/// the run, if it moves `bytes` in one run. Computed from the order of offsets, without a list of
/// the offsets.
///
/// # Errors
///
/// Fails if fathom cannot compute the share for this kind of workload.
pub(super) fn repeated_share(case: &Case, bytes: f64) -> Known<f64> {
    let stream = &case.stream;
    let [line] = stream.access.lines.as_slice() else {
        return Err(
            "fathom does not compute how many blocks repeat with an access specification of several lines"
                .into(),
        );
    };
    if stream.replay.is_some() {
        return Err("fathom does not compute how many blocks repeat in a replay".into());
    }
    if stream.access.strided.is_some() {
        return not_checked(
            "fathom does not compute how many blocks repeat in a workload that visits one zone at a time",
        );
    }
    let targets = &stream.targets;
    // Targets that take turns are visited as long as their sizes require.
    if targets.len() < 2 || matches!(stream.sharing, Sharing::Turns { .. }) {
        return repeated_share_of_span(stream, line, bytes, case.span_bytes() as f64);
    }
    let shares = case.shares_of_targets();
    let parts = targets.iter().zip(shares).map(|(target, share)| {
        let span = case.span_bytes_of(*target) as f64;
        Ok(share * repeated_share_of_span(stream, line, bytes * share, span)?)
    });
    parts.sum()
}

/// Returns the share of the bytes that are read or written again in a span of a stream with one line.
fn repeated_share_of_span(stream: &Stream, line: &Line, bytes: f64, span: f64) -> Known<f64> {
    if span <= 0.0 || bytes <= 0.0 {
        return Ok(0.0);
    }
    // Several operations at each offset cover the same blocks.
    let times = line.times_each() as f64;
    let passes = bytes / span / times;
    let repeated: Known<f64> = match &line.order {
        Order::Sequential(steps) if steps.stride_bytes > 0 || steps.hole_bytes > 0 => {
            Err("fathom does not compute how many blocks repeat in a sequential order with gaps".into())
        }
        // Every worker reads the same blocks.
        Order::Sequential(steps) if steps.start == Start::Same => {
            let workers = f64::from(stream.workers.max(1));
            Ok(1.0 - new_share(passes / workers) / workers)
        }
        // Workers that start at fixed distances may overlap, so repeats may begin before the first
        // pass ends.
        Order::Sequential(steps) if matches!(steps.start, Start::Every(_)) && stream.workers > 1 => {
            Err("fathom does not compute how many blocks workers with fixed starts have in common".into())
        }
        // Stretches of sequential operations that begin at random offsets overlap like random
        // operations.
        Order::Once if line.is_in_rows() => Ok(repeated_at_random(passes)),
        Order::Sequential(_) | Order::Once => Ok(1.0 - new_share(passes)),
        Order::Random | Order::Mixed(_) | Order::MixedEach(_) => Ok(repeated_at_random(passes)),
        other => Err(format!("{} repeats blocks by design", other.describe())),
    };
    Ok(1.0 - (1.0 - repeated?) / times)
}

/// Returns the share of repeats for random offsets: after c passes, 1 - e^-c of the span was touched.
fn repeated_at_random(passes: f64) -> f64 {
    (1.0 + (-passes).exp_m1() / passes).max(0.0)
}

/// Returns the share of operations on blocks that were not touched before, in `passes` passes. A pass visits each block
/// once.
fn new_share(passes: f64) -> f64 {
    if passes > 1.0 { 1.0 / passes } else { 1.0 }
}

/// If the region is this many times as large as the memory, the page cache answers at most half of the reads, even after a
/// long warm-up.
const TIMES_MEMORY: f64 = 2.0;
/// Largest cache of a drive or a small controller: hard disks have up to 512 MiB, and cheap RAID controllers up to 1
/// GiB.
const DRIVE_CACHE_BYTES: u64 = 1 << 30;

pub(super) const SPAN_FITS_CACHE: Check = Check {
    id: CheckId::A15,
    name: "SPAN_FITS_CACHE",
    belief: "the span is larger than the caches below",
    reads: "The span of the workload over all its targets, MemTotal, and the answers of A01 and A09.",
    formula: formula!(
        "Compares the span with the caches that could hold it.\n\
         - Biased if the job uses the page cache, the span is below {TIMES_MEMORY} times MemTotal, and no \
         check counted the bytes that the page cache served.\n\
         - A note if the span is below {drive} and the page cache served nothing, as with direct I/O. Hard \
         disks have caches of up to 512 MiB, and small RAID controllers of twice that.\n\
         - Does not apply if A01 or A09 reports the bytes that the page cache served, or if A02 reports \
         direct I/O through it.\n\
         - Larger caches of arrays and of the hosts of virtual machines are invisible from here (D18).",
        drive = show_bytes(DRIVE_CACHE_BYTES)
    ),
    provoke: "`fathom run --rw randread --size 64m DIR`.",
    fix: "Use a --size well above all caches: at least 4g for one drive, twice the cache of an array.",
    accept: "Accept it if your real data are that small.",
    applies: |case| case.on_device(),
    ask: Ask::After(&[CheckId::A01, CheckId::A02, CheckId::A09], check_span_fits_cache),
    #[cfg(test)]
    fires: Some(|| spanning(64 << 20, &Fixture::honest())),
    #[cfg(test)]
    blind: || {
        let buffered = Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() };
        let mut record = buffered.record();
        record.header.hosts[0].memory_bytes = Err("unreadable".into());
        record
    },
};

fn check_span_fits_cache(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let span = case.span_bytes();
    let mut numbers = evidence([("span_bytes", span as f64)]);
    if !case.stream.cache.is_direct() {
        let memory = case.machine.ok_or("the record names no host")?.memory_bytes.clone()?;
        numbers.insert("memory_bytes".into(), memory as f64);
        if (span as f64) < TIMES_MEMORY * memory as f64 {
            match served_by_page_cache(case, earlier) {
                ServedByPageCache::Part => return Ok(Answer::DoesNotApply),
                ServedByPageCache::Unknown => {
                    return detail!(
                        Severity::Biases,
                        numbers,
                        "The tested region of {} was accessed through the page cache of a machine with {} of \
                         memory, which could hold all or most of it. The bytes served from memory were not \
                         counted.",
                        show_bytes(span),
                        show_bytes(memory)
                    )
                    .with_fix("Use --cache direct, or a --size of more than twice the memory.".to_owned())
                    .found();
                }
                ServedByPageCache::Nothing => {}
            }
        }
    } else if earlier.finds(CheckId::A02) {
        // A02 already reports that direct I/O used the page cache.
        return Ok(Answer::DoesNotApply);
    }
    if span >= DRIVE_CACHE_BYTES {
        return holds("The span is larger than the caches of drives.", numbers);
    }
    finding!(
        Severity::Note,
        numbers,
        "The tested region is only {}: the cache of a drive or of a controller could hold it.",
        show_bytes(span)
    )
}

/// How much of the work the page cache served in place of the device.
enum ServedByPageCache {
    /// So large a part that another check reports it.
    Part,
    Nothing,
    /// The part is unknown, because it was not counted.
    Unknown,
}

fn served_by_page_cache(case: &Case, earlier: &Earlier) -> ServedByPageCache {
    let counting_checks = [(Kind::Read, CheckId::A01), (Kind::Write, CheckId::A09)];
    let mut all = ServedByPageCache::Nothing;
    for (_, id) in counting_checks.into_iter().filter(|(kind, _)| case.does(*kind)) {
        match earlier.answer(id) {
            Some(Ok(Answer::Finding(_))) => return ServedByPageCache::Part,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => all = ServedByPageCache::Unknown,
        }
    }
    all
}

/// Harmless share of repeated reads: that of random reads after half a pass over the span.
pub(crate) const REPEATS_ABOVE: Share = Share(0.2);

pub(super) const RE_READS: Check = Check {
    id: CheckId::A16,
    name: "RE_READS",
    belief: "each read is of a block that the run has not read yet",
    reads: "The bytes that the stream read in the run that read most, its span and its order of offsets. No \
            kernel file.",
    formula: formula!(
        "Computes the expected share of repeated reads from c = bytes read / span in the run that read \
         most. Uniform random offsets repeat in 1 - (1 - e^-c) / c of the reads. An order that visits each \
         block once repeats only after the first pass, in 1 - 1/c.\n\
         - Biased if the share is more than {REPEATS_ABOVE} (about half a random pass) and the reads go \
         through the page cache, which keeps every block that was read.\n\
         - A note if the share is as large and the I/O is direct: only invisible caches gain from repeated \
         reads.\n\
         - Not checked if fathom cannot compute the share, as for an access specification of several \
         lines, zones visited one at a time, or a sequential order with gaps.\n\
         - Does not apply to Zipf, Pareto, normal and zoned offsets and to replays, which repeat by \
         design, or if A01 has a finding, which then gives the share."
    ),
    provoke: "`fathom run --rw randread --size 16m DIR`.",
    fix: "Use a larger --size, a shorter --time, or --random once, which visits every block once per pass.",
    accept: "Accept it if your application reads its data over and over.",
    applies: |case| case.does(Kind::Read) && case.on_device() && !repeats_by_design(case),
    ask: Ask::Unless(&[CheckId::A01], check_re_reads),
    #[cfg(test)]
    fires: Some(|| spanning(16 << 20, &Fixture::honest())),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        let access = &mut record.header.plan.jobs[0].phases[0].streams[0].access;
        access.lines.push(access.lines[0].clone());
        record
    },
};

/// Whether the job repeats blocks on purpose. A replay repeats the blocks that its capture repeated.
fn repeats_by_design(case: &Case) -> bool {
    let by_order =
        |o: &Order| matches!(o, Order::Zipf(_) | Order::Pareto(_) | Order::Normal(_) | Order::Zones(_));
    case.stream.replay.is_some() || case.stream.access.lines.iter().any(|l| by_order(&l.order))
}

fn check_re_reads(case: &Case) -> Known<Answer> {
    let read = case.largest_run_read_bytes();
    if read == 0 {
        return Err("no read completed".into());
    }
    let part = repeated_share(case, read as f64)?;
    let span = case.span_bytes();
    let numbers = evidence([
        ("read_bytes_of_a_run", read as f64),
        ("span_bytes", span as f64),
        ("expected_repeat_share", part),
    ]);
    if part <= REPEATS_ABOVE {
        return holds("Most reads were of blocks that the run had not read before.", numbers);
    }
    // The page cache keeps blocks after the first read, and read-ahead may hide from A01 that the page cache served reads.
    let severity = if case.stream.cache.is_direct() { Severity::Note } else { Severity::Biases };
    finding!(
        severity,
        numbers,
        "About {} of the reads returned to blocks that the run had already read: {} were read from a span of \
         {}.",
        show_share(part),
        show_bytes(read),
        show_bytes(span)
    )
}

/// Above this factor between first and second reads, the difference is not noise. Other threads on the CPU may slow
/// only the first or only the second reads: in 13 of 200 measurements of a quiet virtual disk, the two differed by a
/// factor of at least 1.2 with p below 0.01. The largest factor was 1.7. Lazily loaded volumes and caches cause a
/// factor of 3 to 30.
const FACTOR: f64 = 2.0;
/// A factor counts only if its p-value is below this.
const CHANCE_BELOW: Share = Share(0.01);

pub(super) const FIRST_TOUCH: Check = Check {
    id: CheckId::A17,
    name: "FIRST_TOUCH",
    belief: "the first read of a block takes as long as later ones",
    reads: "Single direct reads of 64 random blocks of each target before the first run, each block twice: \
            eight blocks, then the same eight again, and so on.",
    formula: formula!(
        "Compares the times of the first and the second reads of the same blocks. The factor between them \
         is the median over all pairs (Hodges-Lehmann, on logarithms). The probability of chance comes \
         from the Mann-Whitney rank test.\n\
         - Biased if the factor is above {FACTOR} or below 1/{FACTOR} for a target, and the probability is \
         below {CHANCE_BELOW}. Smaller factors mostly come from other threads on the CPU: in 200 \
         measurements of a quiet virtual disk the largest was 1.7.\n\
         - Not checked, instead of biased, if the disk did more than {FLOOR_IOS} requests or {bytes} for \
         other processes in that time.\n\
         - Not checked with fewer than {MIN_TIMES} blocks.\n\
         - Does not apply if A04 found holes.",
        bytes = show_bytes(FLOOR_BYTES)
    ),
    provoke: "`fathom run --rw randread /dev/nvme1n1` on a volume that was just restored from a cloud \
              snapshot. Or a loop device with a buffered backing file that was evicted: `losetup \
              --direct-io=off -f --show FILE`.",
    fix: "Read the whole target once first (`fathom run --rw read --bs 1m --runs 1 --passes 1 TARGET`, or the cloud \
          provider's own initialisation), or measure a span that no cache below can hold.",
    accept: "Accept it if you want to measure first reads.",
    applies: |case| case.does(Kind::Read) && case.on_device(),
    ask: Ask::Unless(&[CheckId::A04], check_first_touch),
    #[cfg(test)]
    fires: Some(|| with_second_reads(&Fixture::honest(), 20_000)),
    #[cfg(test)]
    blind: || super::with_probe(&Fixture::honest(), |p| *p = Err("EINVAL".into())),
};

fn check_first_touch<'a>(case: &Case<'a>) -> Known<Answer> {
    let compare_reads = |probe: Known<(usize, &'a Probe)>| {
        let (_, probe) = probe?;
        let comparison = compare_times(&probe.first_ns, &probe.again_ns);
        let few = || format!("fewer than {MIN_TIMES} blocks were read twice before the runs");
        comparison.map(|comparison| (comparison, probe)).ok_or_else(few)
    };
    let (compared, completeness) =
        split_known(case.probes().map(|probes| probes.into_iter().map(compare_reads).collect()));
    let worst = compared.into_iter().reduce(|a, b| if distance(b.0) > distance(a.0) { b } else { a });
    let Some((comparison, probe)) = worst else {
        return completeness.and(not_checked("no target was read before the runs"));
    };
    let (first, again) = (median(&probe.first_ns), median(&probe.again_ns));
    let numbers = evidence([
        ("first_p50_ns", first),
        ("again_p50_ns", again),
        ("again_by_first", comparison.ratio),
        ("chance", comparison.p),
    ]);
    if distance(comparison) <= FACTOR.ln() {
        completeness?;
        return holds("The first read of a block took about as long as the second.", numbers);
    }
    // A burst of another process may slow only the first or only the second reads.
    if let Some(others) =
        case.foreign_amount_during_probes().filter(|o| o.ops > FLOOR_IOS || o.bytes > FLOOR_BYTES)
    {
        return Err(format!(
            "other processes made {} ({}) on the disk during the sample reads before the runs",
            show_counted(others.ops, "request"),
            show_bytes(others.bytes)
        ));
    }
    let (factor, why) = if comparison.ratio < 1.0 {
        (1.0 / comparison.ratio, "shorter: some lower layer has a cache, or loads blocks on first access")
    } else {
        (comparison.ratio, "longer: the storage was busy, or a cache answered the first reads")
    };
    finding!(
        Severity::Biases,
        numbers,
        "The first read of a block took {}, the second {}, {} times {why}.",
        show_ns(first),
        show_ns(again),
        show_rate(factor)
    )
}

/// Returns how far the factor between first and second reads is from 1, as the absolute value of its logarithm; 0 if
/// chance may explain the factor.
fn distance(comparison: TimesComparison) -> f64 {
    if comparison.p < CHANCE_BELOW { comparison.ratio.ln().abs() } else { 0.0 }
}

fn median(times: &[u64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).map_or(0.0, |ns| *ns as f64)
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

/// A record whose stream has a span of `span` bytes.
#[cfg(test)]
fn spanning(span: u64, fixture: &Fixture) -> Record {
    let mut record = fixture.record();
    record.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = span;
    for target in &mut record.header.plan.targets {
        target.bytes = target.bytes.max(span);
    }
    record
}

#[cfg(test)]
fn repeated_share_of(order: Order, workers: u32, passes: f64) -> Known<f64> {
    let mut record = Fixture::honest().record();
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    (stream.access.lines[0].order, stream.workers) = (order, workers);
    let cases = crate::case::cases(&record);
    repeated_share(&cases[0], passes * (1_u64 << 30) as f64)
}

#[test]
fn the_share_of_repeats_follows_from_the_order() {
    use model::job::Steps;
    let assert_near =
        |got: Known<f64>, expected: f64| assert!((got.clone().unwrap() - expected).abs() < 1e-3, "{got:?}");
    let plain = || Order::Sequential(Steps::default());
    assert_near(repeated_share_of(plain(), 1, 1.0), 0.0);
    assert_near(repeated_share_of(plain(), 1, 4.0), 0.75);
    assert_near(repeated_share_of(Order::Once, 1, 0.5), 0.0);
    assert_near(repeated_share_of(Order::Once, 1, 2.0), 0.5);
    assert_near(repeated_share_of(Order::Random, 1, 1.0), 0.3679);
    assert_near(repeated_share_of(Order::Random, 1, 0.01), 0.005);
    assert_near(repeated_share_of(Order::Random, 1, 0.0), 0.0);
    let same = || Order::Sequential(Steps { start: Start::Same, ..Steps::default() });
    assert_near(repeated_share_of(same(), 4, 1.0), 0.75);
    assert_near(repeated_share_of(same(), 4, 8.0), 0.875);
    assert!(repeated_share_of(Order::Zipf(1.1), 1, 1.0).is_err_and(|why| why.contains("zipf")));
    let gaps = Order::Sequential(Steps { hole_bytes: 4096, ..Steps::default() });
    assert!(repeated_share_of(gaps, 1, 1.0).is_err());
    let mut repeated = Fixture::honest().record();
    let access = &mut repeated.header.plan.jobs[0].phases[0].streams[0].access;
    (access.lines[0].order, access.lines[0].times) = (Order::Once, 4);
    let bytes = 2.0 * (1_u64 << 30) as f64;
    assert_near(repeated_share(&crate::case::cases(&repeated)[0], bytes), 0.75);
    assert_near(repeated_share(&crate::case::cases(&repeated)[0], 4.0 * bytes), 0.875);
    let mut zones = Fixture::honest().record();
    zones.header.plan.jobs[0].phases[0].streams[0].access.strided =
        Some(model::job::Strided { bytes: 4096, range_bytes: 4096, skip_bytes: 0 });
    assert!(
        repeated_share(&crate::case::cases(&zones)[0], 4096.0).is_err_and(|why| why.contains("one zone"))
    );
}

#[test]
fn regions_below_one_gibibyte_are_a_note() {
    let at = |span| SPAN_FITS_CACHE.severity(&spanning(span, &Fixture::honest()));
    assert_eq!(at(1 << 30), None);
    assert_eq!(at((1 << 30) - 4096), Some(Severity::Note));
}

#[test]
fn buffered_io_biases_only_if_the_page_cache_was_not_counted() {
    let buffered = || Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() };
    // The span of 1 GiB fits into the memory of 8 GiB, but the device delivered all reads.
    assert!(matches!(SPAN_FITS_CACHE.answer(&buffered().record()), Ok(Answer::Holds(..))));
    let uncounted = Fixture { stat_unreadable: true, ..buffered() };
    assert_eq!(SPAN_FITS_CACHE.severity(&uncounted.record()), Some(Severity::Biases));
    assert_eq!(SPAN_FITS_CACHE.severity(&spanning(17 << 30, &uncounted)), None);
    let cached = Fixture { delivered: 0.3, ..buffered() };
    assert_eq!(SPAN_FITS_CACHE.answer(&cached.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn more_than_half_a_random_pass_is_a_note() {
    // 45 MB are read in a run.
    let at = |span| RE_READS.severity(&spanning(span, &Fixture::honest()));
    assert_eq!(at(100 << 20), None, "19 %");
    assert_eq!(at(90 << 20), Some(Severity::Note), "21 %");
}

#[test]
fn repeats_through_the_page_cache_bias_unless_a01_fires() {
    let buffered = |delivered| {
        let cache = model::job::Cache::Buffered;
        let fixture = Fixture { cache, delivered, ..Fixture::honest() };
        RE_READS.answer(&spanning(16 << 20, &fixture))
    };
    assert!(matches!(buffered(1.0), Ok(Answer::Finding(f)) if f.severity == Severity::Biases));
    assert_eq!(buffered(0.2), Ok(Answer::DoesNotApply));
}

#[test]
fn an_order_without_repeats_holds_and_zipf_does_not_apply() {
    let ordered = |order, span| {
        let mut record = spanning(span, &Fixture::honest());
        record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].order = order;
        RE_READS.answer(&record)
    };
    assert!(matches!(ordered(Order::Once, 46 << 20), Ok(Answer::Holds(..))));
    assert!(matches!(ordered(Order::Once, 16 << 20), Ok(Answer::Finding(_))));
    assert_eq!(ordered(Order::Zipf(1.1), 16 << 20), Ok(Answer::DoesNotApply));
}

/// A record whose second reads take about `ns`, and whose first take 80 us.
#[cfg(test)]
fn with_second_reads(fixture: &Fixture, ns: u64) -> Record {
    super::with_probe(fixture, |p| {
        for (i, again) in p.as_mut().unwrap().again_ns.iter_mut().enumerate() {
            *again = ns + 10 * (i as u64 % 5);
        }
    })
}

#[test]
fn a_factor_of_two_in_either_direction_biases() {
    let at = |ns| FIRST_TOUCH.severity(&with_second_reads(&Fixture::honest(), ns));
    assert_eq!(at(41_000), None, "1.95 times");
    assert_eq!(at(39_000), Some(Severity::Biases));
    assert_eq!(at(155_000), None);
    assert_eq!(at(165_000), Some(Severity::Biases));
}

#[test]
fn a_burst_by_another_process_is_not_checked() {
    use model::evidence::Moment;
    let with_foreign_reads = |ios: u64| {
        let mut record = with_second_reads(&Fixture::honest(), 20_000);
        let mut idle = record.evidence[0].clone();
        idle.moment = Moment::IdleStart;
        // By this moment, the disk did 128 sample reads, and `ios` reads of other processes.
        let text = idle.files["/sys/block/vda/stat"].clone().unwrap();
        let written: Vec<&str> = text.split_ascii_whitespace().skip(4).collect();
        let (requests, sectors) = (128 + ios, (128 + ios) * 8);
        let stat = format!("{requests} 0 {sectors} 40 {}\n", written.join(" "));
        idle.files.insert("/sys/block/vda/stat".into(), Ok(stat));
        record.evidence.push(idle);
        FIRST_TOUCH.answer(&record)
    };
    assert!(matches!(with_foreign_reads(48), Ok(Answer::Finding(_))));
    assert!(with_foreign_reads(49).is_err_and(|why| why.contains("49 requests (196 KiB)")));
}

#[test]
fn a_large_factor_of_few_blocks_may_be_chance() {
    let record_with = |count: usize, slow: usize| {
        super::with_probe(&Fixture::honest(), move |p| {
            let p = p.as_mut().unwrap();
            p.first_ns = (0..count).map(|i| if i < slow { 900_000 } else { 80_000 }).collect();
            p.again_ns = (0..count).map(|i| 30_000 + i as u64 * 20_000).collect();
        })
    };
    assert_eq!(FIRST_TOUCH.severity(&record_with(8, 5)), None);
    assert!(FIRST_TOUCH.answer(&record_with(7, 7)).is_err_and(|why| why.contains("fewer than 8")));
}
