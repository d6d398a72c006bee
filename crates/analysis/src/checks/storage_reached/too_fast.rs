//! Results that are faster than the hardware can be (A18, A19, A20).
//!
//! A18 fires if the median latency of direct reads is below that of the fastest media and no
//! earlier check (A01, A02) explains it. If holes (A04) explain it, the result is only biased. A19 compares the best run
//! with the PCI Express or SATA link of the drives, or with the memory copy rate of the self test
//! if the target is memory. A20 compares random direct reads of a rotational disk with the time of
//! half a turn, and with the shortest time per operation that such disks reach at high depth.

use crate::checks::prelude::*;
use crate::figures::kernel_text::read_link;

/// Below this median latency, no medium answered: the fastest (Optane) take 8 us or more, including the kernel path,
/// and flash takes 25 us.
const FASTEST_MEDIA_NS: u64 = 5_000;
/// At this share of holes or above, reads of holes explain a median that is too short.
const HOLES_EXPLAIN_FROM: Share = Share(0.5);

pub(super) const FASTER_THAN_PHYSICS: Check = Check {
    id: CheckId::A18,
    name: "FASTER_THAN_PHYSICS",
    belief: "a storage device can be this fast",
    reads: "The latencies of direct reads that fathom measured. No kernel file.",
    formula: formula!(
        "Invalid if half of the reads took less than {floor} on a target that is not memory and that A01 and \
         A02 did not relabel. Biased if A04 found that at least {HOLES_EXPLAIN_FROM} of the target are \
         holes, which explains it. The fastest media (Optane) answer in 8 us including the kernel; flash \
         takes 25 us or more.",
        floor = Ns(FASTEST_MEDIA_NS as f64)
    ),
    provoke: "`truncate -s 1g FILE` and `fathom run --rw randread --depth 1 --accept A04 FILE`: the kernel \
              answers reads of holes.",
    fix: "Find out what answers from memory: holes (A04), a cache below (A12), a FUSE program. Name the disk \
          itself.",
    accept: "Accept it only if the medium is known to be that fast, such as persistent memory.",
    applies: |case| case.does(Kind::Read) && case.stream.cache.is_direct() && case.on_device(),
    ask: Ask::After(&[CheckId::A01, CheckId::A02, CheckId::A04], check_faster_than_physics),
    #[cfg(test)]
    fires: Some(|| {
        Fixture { latency_ns: Some(900), depth: 1, depth_seen: 0.9, ..Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || Fixture { ops: 0, ..Fixture::honest() }.record(),
};

fn check_faster_than_physics(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if earlier.relabels(CheckId::A01) || earlier.finds(CheckId::A02) {
        return Ok(Answer::DoesNotApply);
    }
    let median = median_of_reads_ns(case)?;
    let numbers = evidence([("read_p50_ns", median as f64), ("floor_ns", FASTEST_MEDIA_NS as f64)]);
    if median >= FASTEST_MEDIA_NS {
        return holds("The reads took as long as a storage device needs.", numbers);
    }
    let start_of_sentence = format!("Half of the reads took {} or less", show_ns(median as f64));
    let (severity, sentence) = if holes_explain(earlier) {
        (
            Severity::Biases,
            format!(
                "{start_of_sentence}: the kernel answered them from holes (A04), without a storage device."
            ),
        )
    } else {
        (Severity::Invalidates, format!("{start_of_sentence}: no drive is that fast."))
    };
    Detail::new(severity, sentence, numbers).found()
}

fn median_of_reads_ns(case: &Case) -> Known<u64> {
    let median = case.latency(Kind::Read).and_then(|latency| latency.quantile_ns(0.5));
    median.ok_or_else(|| "no read completed within a window".into())
}

/// Whether holes (A04) explain the median. The kernel answers reads of holes without a device.
fn holes_explain(earlier: &Earlier) -> bool {
    let Some(Ok(Answer::Finding(holes))) = earlier.answer(CheckId::A04) else { return false };
    holes.evidence.get("never_written_share").is_some_and(|share| *share >= HOLES_EXPLAIN_FROM)
}

/// Factor by which small blocks may be copied faster than the 1 MiB blocks of the self test: small
/// blocks stay in the nearest CPU cache.
const NEAREST_CACHE: f64 = 4.0;
/// Engines that pass pages on without copying them.
const WITHOUT_COPY: &[&str] = &["mmap", "splice"];

pub(super) const ABOVE_CEILING: Check = Check {
    id: CheckId::A19,
    name: "ABOVE_CEILING",
    belief: "the link to the storage, or the memory of the target, can carry this rate",
    reads: "For every drive below: `current_link_speed` and `current_link_width` of its PCI function, or \
            `sata_spd`. For a target in memory: the copy rate of fathom's self test. Also the rate of the \
            best run.",
    formula: formula!(
        "Compares the rate of the best run with the highest rate that the links of the drives, or the \
         memory of the target, can carry.\n\
         - Invalid if the rate is above this limit.\n\
         - The limit of drives is the sum of their links. A PCI Express lane carries 8 of 10 bits up to 5 \
         GT/s, and 128 of 130 bits at higher speeds, in each direction. A SATA link carries 8 of 10 bits, \
         both directions together. Packet headers take some more percent, so no drive comes near its \
         limit.\n\
         - The limit of a target in memory is workers times the copy rate times {NEAREST_CACHE}, both \
         directions together. Blocks smaller than the self test's stay in the nearest CPU cache.\n\
         - Not checked if the kernel does not report the link of a drive.\n\
         - Does not apply to virtual disks without a link, to mmap and splice on memory (which copy \
         nothing), or if A02, A09 or A12 has a finding or A01 relabels the result."
    ),
    provoke: "No command is known on real hardware: a rate above the link comes from a cache, and other \
              checks report that first. The check's tests use recorded link files.",
    fix: "Find out what answers instead of the drive: use --cache direct and a larger --size, and check the \
          cache settings of the controller.",
    accept: "Accept it only if the kernel reports a wrong link (compare `lspci -vv`).",
    applies: |case| case.has_storage(),
    ask: Ask::After(&[CheckId::A01, CheckId::A02, CheckId::A09, CheckId::A12], check_above_ceiling),
    #[cfg(test)]
    fires: Some(|| linked(1 << 20, &[("current_link_speed", "8.0 GT/s PCIe"), ("current_link_width", "4")])),
    #[cfg(test)]
    blind: || linked(4096, &[("current_link_speed", "Unknown"), ("current_link_width", "255")]),
};

/// The bandwidth limit of a link or of memory.
struct Ceiling {
    /// Bytes per second: of each direction, or of both directions together if `is_shared`.
    bytes_per_s: f64,
    /// Whether both directions share the bandwidth.
    is_shared: bool,
    /// The link or memory, for the sentence.
    name: String,
}

fn check_above_ceiling(case: &Case, earlier: &Earlier) -> Known<Answer> {
    // If A01 only biases the result, the page cache served too few bytes to explain the rate.
    let explaining = [CheckId::A02, CheckId::A09, CheckId::A12];
    if earlier.relabels(CheckId::A01) || explaining.into_iter().any(|id| earlier.finds(id)) {
        return Ok(Answer::DoesNotApply);
    }
    let Some(ceiling) = find_ceiling(case)? else { return Ok(Answer::DoesNotApply) };
    let rate = if ceiling.is_shared {
        best_rate(case, &Kind::MOVING)
    } else {
        Kind::MOVING.iter().map(|kind| best_rate(case, &[*kind])).fold(0.0, f64::max)
    };
    let numbers = evidence([("bytes_per_s", rate), ("ceiling_bytes_per_s", ceiling.bytes_per_s)]);
    if rate <= ceiling.bytes_per_s {
        let sentence = if case.is_in_memory() {
            "Memory can be copied at this rate."
        } else {
            "The link to the storage can carry this rate."
        };
        return holds(sentence, numbers);
    }
    finding!(
        Severity::Invalidates,
        numbers,
        "{} MB/s is more than {} can carry ({} MB/s at most): something else answered.",
        show_rate(rate / 1e6),
        ceiling.name,
        show_rate(ceiling.bytes_per_s / 1e6)
    )
}

/// Returns the bandwidth limit of the targets, or `None` if there is no known limit.
fn find_ceiling(case: &Case) -> Known<Option<Ceiling>> {
    if case.is_in_memory() {
        if WITHOUT_COPY.contains(&case.stream.engine.as_str()) {
            return Ok(None);
        }
        let copied = case.record.header.self_test.copy_bytes_per_s;
        if !(copied.is_finite() && copied > 0.0) {
            return Err("the self test did not measure the copy rate of memory".into());
        }
        let workers = f64::from(case.stream.workers.max(1));
        let name = "memory copies".to_owned();
        return Ok(Some(Ceiling { bytes_per_s: copied * workers * NEAREST_CACHE, is_shared: true, name }));
    }
    let leaves = case.lowest_layers()?;
    let links: Known<Vec<Ceiling>> = leaves.iter().map(|leaf| link_ceiling(leaf)).collect();
    let links = match links {
        // A passed-through device has a link. A simulated device has none.
        Err(_) if leaves.iter().all(|l| case.is_virtual(l)) => return Ok(None),
        links => links?,
    };
    Ok(Some(Ceiling {
        bytes_per_s: links.iter().map(|l| l.bytes_per_s).sum(),
        is_shared: links.iter().all(|l| l.is_shared),
        name: links.into_iter().map(|l| l.name).collect::<Vec<_>>().join(" and "),
    }))
}

/// Returns the bandwidth limit of a drive's link.
fn link_ceiling(layer: &Layer) -> Known<Ceiling> {
    let link = read_link(layer)?;
    let name = format!("{} to {}", link.description, layer.name);
    Ok(Ceiling { bytes_per_s: link.bytes_per_s, is_shared: link.is_shared, name })
}

/// Returns the bytes per second of these kinds together in the window of the best run.
fn best_rate(case: &Case, kinds: &[Kind]) -> f64 {
    let rate_of_run = |ran: &CaseRun| {
        let bytes: u64 = kinds.iter().map(|kind| ran.in_window(*kind).bytes).sum();
        share(bytes as f64, ran.stream.window_ns as f64) * 1e9
    };
    case.runs.iter().map(rate_of_run).fold(0.0, f64::max)
}

/// Below this median latency, no platter turned: half a turn takes 4.17 ms at 7,200 rpm and 2 ms at 15,000 rpm, without
/// the seek.
const HALF_TURN_NS: u64 = 2_000_000;
/// Below this time per operation and disk, no platter turned at any depth. With 32 operations to
/// choose from, disks of 15,000 rpm reach some 600 operations per second, 1.6 ms each.
const DEEP_QUEUE_NS: f64 = 500_000.0;
/// In spans below this size, the cache of the disk may answer all reads.
const SPAN_FROM_BYTES: u64 = 1 << 30;

pub(super) const HDD_TOO_FAST: Check = Check {
    id: CheckId::A20,
    name: "HDD_TOO_FAST",
    belief: "disks that the kernel calls rotational are hard disks",
    reads: "queue/rotational of every disk below, the median of random direct reads, and whether the machine \
            is virtual.",
    formula: formula!(
        "Compares the median time of random direct reads with what a hard disk needs, if all disks report \
         rotational = 1. The reads are too fast if half of them took less than {floor}, or less than \
         {each} times the operations in flight per disk.\n\
         - Biased if the reads are too fast on real hardware: a cache answered, or the disk is no hard \
         disk.\n\
         - A note if they are too fast on a virtual disk, whose driver often leaves the flag at its \
         default.\n\
         - Not checked, instead of biased, if the span is below {span}, which fits the cache of a hard \
         disk.\n\
         - The fastest disks need {floor} for half a turn at 15,000 rpm, without the seek. From a full \
         queue they reach 600 operations per second, 1.6 ms each.\n\
         - Does not apply if A02, A04 or A18 has a finding or A01 relabels the result.",
        floor = Ns(HALF_TURN_NS as f64),
        each = Ns(DEEP_QUEUE_NS),
        span = show_bytes(SPAN_FROM_BYTES)
    ),
    provoke: "`echo 1 > /sys/block/vda/queue/rotational` and `fathom run --rw randread DIR`.",
    fix: "If it is not a hard disk, `echo 0 > /sys/block/X/queue/rotational`. If it is one, find the cache \
          that answers: a RAID controller's, or a host's.",
    accept: "Accept it if you know the kind of disk and the cache that answers.",
    applies: |case| {
        let is_random = case.stream.access.pattern() == Some(Pattern::Random);
        is_random && case.does(Kind::Read) && case.stream.cache.is_direct() && case.on_device()
    },
    ask: Ask::After(&[CheckId::A01, CheckId::A02, CheckId::A04, CheckId::A18], check_hdd_too_fast),
    #[cfg(test)]
    fires: Some(|| spinning(&Fixture::honest())),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].places[0].layers[0].queue.remove("rotational");
        record
    },
};

fn check_hdd_too_fast(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let explaining = [CheckId::A02, CheckId::A04, CheckId::A18];
    if earlier.relabels(CheckId::A01) || explaining.into_iter().any(|id| earlier.finds(id)) {
        return Ok(Answer::DoesNotApply);
    }
    let leaves = case.lowest_layers()?;
    let spinning: Known<Vec<u64>> = leaves.iter().map(|l| l.queue_number("rotational")).collect();
    if spinning?.contains(&0) {
        return holds("At least one disk below is not rotational.", evidence([]));
    }
    let median = median_of_reads_ns(case)?;
    let span = case.span_bytes();
    let depth_per_disk = (case.depth_mean()? / leaves.len().max(1) as f64).max(1.0);
    let numbers = evidence([
        ("read_p50_ns", median as f64),
        ("depth_per_disk", depth_per_disk),
        ("span_bytes", span as f64),
    ]);
    if median >= HALF_TURN_NS && median as f64 >= DEEP_QUEUE_NS * depth_per_disk {
        return holds("The reads took as long as a hard disk needs.", numbers);
    }
    // The flag of a virtual disk proves nothing, so one virtual disk among the disks is enough for a note.
    let is_virtual = leaves.iter().any(|l| case.is_virtual(l));
    if span < SPAN_FROM_BYTES && !is_virtual {
        return Err(format!("a span of {} fits the cache of a hard disk", show_bytes(span)));
    }
    let (severity, cause) = if is_virtual {
        (Severity::Note, "it is a virtual disk, whose flag means nothing for the disks of the host")
    } else {
        (Severity::Biases, "a cache answered, or it is not a hard disk")
    };
    finding!(
        severity,
        numbers,
        "The kernel calls {} rotational, but half of the random reads took {} or less at depth {}: {cause}.",
        layer_names(&leaves),
        show_ns(median as f64),
        show_rate(depth_per_disk)
    )
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn a18_does_not_apply_to_relabelled_results_and_memory() {
    let fast = || Fixture { latency_ns: Some(900), ..Fixture::honest() };
    let cached = Fixture { delivered: 0.0, cached_share: 0.9, ..fast() };
    assert_eq!(FASTER_THAN_PHYSICS.answer(&cached.record()), Ok(Answer::DoesNotApply));
    let zram = Fixture { ram: Some("zram0"), ..fast() };
    assert_eq!(FASTER_THAN_PHYSICS.answer(&zram.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn holes_explain_the_median_only_if_half_of_the_reads_hit_them() {
    let holes =
        |share| Fixture { latency_ns: Some(900), delivered: 0.0, hole_share: share, ..Fixture::honest() };
    assert_eq!(FASTER_THAN_PHYSICS.severity(&holes(1.0).record()), Some(Severity::Biases));
    assert_eq!(FASTER_THAN_PHYSICS.severity(&holes(0.3).record()), Some(Severity::Invalidates));
}

/// A record of 10,000 operations per second over a link described by `files`.
#[cfg(test)]
fn linked(block_bytes: u32, files: &[(&str, &str)]) -> model::record::Record {
    let mut record = Fixture { block_bytes, ..Fixture::honest() }.record();
    let device = &mut record.header.hosts[0].places[0].layers[0].device;
    device.extend(files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    record
}

#[test]
fn a_lane_carries_its_specified_bandwidth() {
    let per_lane = |speed| {
        let record = linked(4096, &[("current_link_speed", speed), ("current_link_width", "1")]);
        let rate = read_link(&record.header.hosts[0].places[0].layers[0]).unwrap().bytes_per_s;
        (rate / 1e6).round() as u64
    };
    assert_eq!(
        [per_lane("2.5 GT/s PCIe"), per_lane("5.0 GT/s PCIe\n"), per_lane("8.0 GT/s PCIe")],
        [250, 500, 985]
    );
    assert_eq!(per_lane("16.0 GT/s PCIe"), 1969);
}

#[test]
fn a_rate_above_the_ceiling_is_void() {
    // 384 KiB at 10,000/s are 3,932 MB/s; four lanes of the third generation carry 3,938.
    let x4 = [("current_link_speed", "8.0 GT/s PCIe\n"), ("current_link_width", "4\n")];
    assert!(matches!(ABOVE_CEILING.answer(&linked(384 << 10, &x4)), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = ABOVE_CEILING.answer(&linked(385 << 10, &x4)) else { panic!("silent") };
    assert!(
        f.severity == Severity::Invalidates && f.sentence.contains("4 lanes at 8 GT/s to vda"),
        "{}",
        f.sentence
    );
}

#[test]
fn the_sata_link_limits_more_than_the_controller() {
    // A drive reads 560 MB/s over a SATA link that carries 600. The controller's PCI Express lane would carry 985.
    let sata =
        [("sata_spd", "6.0 Gbps\n"), ("current_link_speed", "8.0 GT/s PCIe"), ("current_link_width", "1")];
    assert_eq!(ABOVE_CEILING.severity(&linked(56_000, &sata)), None);
    assert_eq!(ABOVE_CEILING.severity(&linked(61_440, &sata)), Some(Severity::Invalidates));
    // Both directions share the link, but a run that only writes adds nothing to one that only reads.
    let mut in_turns = linked(56_000, &sata);
    let kinds = &mut in_turns.runs[0].end.as_mut().unwrap().streams[0].kinds;
    let reads = kinds.remove(&Kind::Read).unwrap();
    kinds.insert(Kind::Write, reads);
    assert_eq!(ABOVE_CEILING.severity(&in_turns), None);
}

#[test]
fn memory_is_compared_with_copying_and_virtual_disks_do_not_apply() {
    let tmpfs = |block_bytes| Fixture { block_bytes, ram: Some("tmpfs"), ..Fixture::honest() };
    // The self test of the fixture copies 10 GB/s.
    assert!(matches!(ABOVE_CEILING.answer(&tmpfs(3 << 20).record()), Ok(Answer::Holds(..))));
    assert_eq!(ABOVE_CEILING.severity(&tmpfs(4 << 20).record()), Some(Severity::Invalidates));
    let mapped = Fixture { engine: "mmap", ..tmpfs(4 << 20) };
    assert_eq!(ABOVE_CEILING.answer(&mapped.record()), Ok(Answer::DoesNotApply));
    let guest = Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() };
    assert_eq!(ABOVE_CEILING.answer(&guest.record()), Ok(Answer::DoesNotApply));
}

#[cfg(test)]
fn spinning(fixture: &Fixture) -> model::record::Record {
    let mut record = fixture.record();
    for layer in &mut record.header.hosts[0].places[0].layers {
        layer.queue.insert("rotational".into(), "1\n".into());
    }
    record
}

#[test]
fn reads_faster_than_half_a_turn_bias_and_are_a_note_on_a_virtual_disk() {
    let at = |depth: u32, ns| {
        let depth_seen = f64::from(depth);
        let fixture = Fixture { depth, depth_seen, latency_ns: Some(ns), ..Fixture::honest() };
        HDD_TOO_FAST.severity(&spinning(&fixture))
    };
    assert_eq!(at(1, 2_100_000), None);
    assert_eq!(at(1, 1_900_000), Some(Severity::Biases));
    assert_eq!(at(32, 17_000_000), None);
    assert_eq!(at(32, 15_000_000), Some(Severity::Biases));
    let guest = Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() };
    assert_eq!(HDD_TOO_FAST.severity(&spinning(&guest)), Some(Severity::Note));
}

#[test]
fn small_spans_are_not_checked_and_sequential_reads_do_not_apply() {
    let mut small = spinning(&Fixture::honest());
    small.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = 256 << 20;
    assert!(HDD_TOO_FAST.answer(&small).is_err());
    assert!(matches!(HDD_TOO_FAST.answer(&Fixture::honest().record()), Ok(Answer::Holds(..))));
    let sequential = Fixture { pattern: Pattern::Sequential, ..Fixture::honest() };
    assert_eq!(HDD_TOO_FAST.answer(&spinning(&sequential)), Ok(Answer::DoesNotApply));
}
