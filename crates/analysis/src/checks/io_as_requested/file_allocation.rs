//! Whether the blocks below the operations are aligned, contiguous and allocated (B11, B15, B16, B21).
//!
//! B11 checks that sizes, offsets, partition starts and extents are multiples of the largest physical block.
//! B15 compares the mean extent of a file that is used sequentially with a limit for spinning disks and one for
//! flash. B16 measures the share of holes, unwritten and delayed bytes before each run: writes to them also
//! allocate. B21 compares the growth of the holes, from before each run to after its final sync, with the bytes
//! trimmed: a trim of a hole adds no hole, frees nothing and reaches no device. B21 needs a file that nothing else changes.

use super::layers_with_queues;
use crate::checks::prelude::*;
use model::job::{Access, Line, Sizes};
use model::units::{GIB, MIB};

/// Unit of a partition's `start`, whatever the disk's block size.
const START_BYTES: u64 = 512;

pub(super) const MISALIGNED: Check = Check {
    id: CheckId::B11,
    name: "MISALIGNED",
    belief: "operations are aligned to the physical blocks of the disk",
    reads: "`queue/physical_block_size` and `alignment_offset` of the disks, `start` of each partition and \
            `loop/offset` of each loop device in the chain, the map of the file's extents, and the sizes, \
            offsets and alignments of the plan.",
    formula: formula!(
        "Everything must be a multiple of the largest physical block below. Misaligned writes bias: the disk \
         reads the block, changes a part and writes it again. Misaligned reads are a note, since a disk only \
         reads one more block. Sizes and offsets count only for direct I/O: the page cache reads and writes \
         whole pages."
    ),
    provoke: "`fathom run --rw randwrite --bs 512 DIR` on a disk with physical blocks of 4 KiB, or any write \
              on a partition that begins at sector 63. Or `losetup -o 512 -f --show IMAGE` on a disk with \
              physical blocks of 4 KiB.",
    fix: "Use multiples of the physical block as --bs, --offset and --align, on a partition that begins at a \
          multiple of 1 MiB.",
    accept: "Accept it if the application writes such blocks, as old databases do.",
    applies: |case| case.on_device() && Kind::MOVING.iter().any(|k| case.does(*k)),
    ask: Ask::Alone(check_misaligned),
    #[cfg(test)]
    fires: Some(|| Fixture { block_bytes: 512, ..Fixture::honest_write() }.record()),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest_write().record();
        record.header.hosts[0].places[0].layers[0].queue.remove("physical_block_size");
        record
    },
};

fn check_misaligned(case: &Case) -> Known<Answer> {
    // Block sizes are powers of two: a size that is no multiple of a block is no multiple of a larger block either.
    let (layers, layers_known) = layers_with_queues(case);
    let sizes = layers.into_iter().map(|layer| layer.queue_number("physical_block_size")).collect();
    let (sizes, sizes_known) = split_known(Ok(sizes));
    let sizes_known = layers_known.and(sizes_known);
    let block = sizes.into_iter().max().unwrap_or(0);
    if block == 0 {
        return sizes_known.and(not_checked("the disks report a physical block size of 0"));
    }
    let mut misfits = Vec::new();
    if case.stream.cache.is_direct() {
        misfits.extend(misaligned_access(&case.stream.access, block));
    }
    let (misaligned, completeness) = misaligned_devices(case, block);
    misfits.extend(misaligned);
    if misfits.is_empty() {
        // The extent map is needed only if nothing else is misaligned.
        let extents = misaligned_extents(case, block);
        if let Ok(Some(misfit)) = extents {
            misfits.push(misfit);
        } else {
            sizes_known?;
            completeness?;
            extents?;
        }
    }
    let numbers = evidence([("physical_block_bytes", block as f64), ("misfits", misfits.len() as f64)]);
    if misfits.is_empty() {
        return holds("Operations are aligned to the physical blocks of the disk.", numbers);
    }
    let (severity, effect) = if case.does(Kind::Write) {
        (Severity::Biases, "the disk reads, changes and writes whole blocks")
    } else {
        (Severity::Note, "the disk reads more than requested")
    };
    detail!(
        severity,
        numbers,
        "Operations are not aligned to the physical blocks of {}, so {effect}: {}.",
        show_bytes(block),
        misfits.join(", ")
    )
    .with_fix(MISALIGNED.fix.replace("the physical block", &show_bytes(block)))
    .found()
}

/// Describes the sizes and offsets of the plan that are not multiples of the block.
fn misaligned_access(access: &Access, block: u64) -> Vec<String> {
    let mut out = Vec::new();
    let mut check = |what: &str, bytes: u64| {
        if !bytes.is_multiple_of(block) {
            let misfit = format!("{what} {}", show_bytes(bytes));
            if !out.contains(&misfit) {
                out.push(misfit);
            }
        }
    };
    check("they begin at", access.offset_bytes);
    check("the distance between zones is", access.strided.map_or(0, |zones| zones.step_bytes()));
    for line in access.lines.iter().filter(|l| l.weight > 0) {
        for bytes in sizes(line) {
            check("a size is", bytes);
        }
        check("offsets are multiples of", line.align_bytes);
        if let Order::Sequential(steps) = &line.order {
            check("the stride is", steps.stride_bytes);
            check("the gaps between them are", steps.hole_bytes);
        }
    }
    out
}

/// Returns the sizes of a line of the access specification. For a range, returns the unit that all its sizes are
/// multiples of.
fn sizes(line: &Line) -> Vec<u64> {
    let mut out = vec![u64::from(line.reply_bytes)];
    for sizes_of_kind in line.drawn_sizes() {
        match sizes_of_kind {
            Sizes::Fixed(size) => out.push(u64::from(*size)),
            // The sizes are multiples of the alignment, or of the smallest size if there is no alignment.
            Sizes::Range(..) if line.align_bytes > 0 => out.push(line.align_bytes),
            Sizes::Range(least, _) => out.push(u64::from(*least)),
            Sizes::Split(split) => out.extend(split.iter().filter(|s| s.1 > 0).map(|s| u64::from(s.0))),
        }
    }
    out
}

/// Describes each partition and loop device that does not begin at a multiple of `block` bytes, and each device with an
/// alignment offset. The second value is `Err` with the reason if it is unknown where one of them begins.
fn misaligned_devices(case: &Case, block: u64) -> (Vec<String>, Known<()>) {
    let (mut out, mut completeness) = (Vec::new(), Ok(()));
    for layer in case.places().flat_map(|p| &p.layers) {
        let start = match layer.kind {
            LayerKind::Partition => layer.device_number("start").map(|sector| {
                (sector.saturating_mul(START_BYTES), format!("{} begins at sector {sector}", layer.name))
            }),
            LayerKind::Loop => layer
                .device_number("loop/offset")
                .map(|byte| (byte, format!("{} begins at byte {byte} of its file", layer.name))),
            _ => Ok((0, String::new())),
        };
        match start {
            Ok((bytes, misfit)) => out.extend((!bytes.is_multiple_of(block)).then_some(misfit)),
            Err(why) => completeness = completeness.and(Err(why)),
        }
        // Only some kinds of devices have this file.
        if let Some(shift) = layer.device.get("alignment_offset").map(|text| text.trim())
            && shift != "0"
        {
            out.push(format!("the alignment offset of {} is {shift} B", layer.name));
        }
    }
    out.dedup();
    (out, completeness)
}

/// Describes a file whose extents do not begin at multiples of `block` bytes. `None` if there is no such file.
fn misaligned_extents(case: &Case, block: u64) -> Known<Option<String>> {
    if case.on_block_devices() {
        return Ok(None);
    }
    let (extents, mut completeness) = split_known(case.extents());
    for extents in extents.iter().filter(|e| e.count > 0 && e.inline_bytes == 0) {
        match extents.physical_align {
            Some(begin) if !begin.is_multiple_of(block) => {
                return Ok(Some(format!("the file's extents begin at multiples of {}", show_bytes(begin))));
            }
            Some(_) => {}
            None => {
                let why = "the map of the file's extents does not show where they begin";
                completeness = completeness.and(not_checked(why));
            }
        }
    }
    completeness.map(|()| None)
}

/// Below this mean extent, seeks matter on a spinning disk: reading 16 MiB takes 100 ms, a seek 10 ms.
const SPINNING_BELOW: u64 = 16 * MIB;
/// Below this mean extent, requests are cut even without seeks: a usual request is 1 MiB.
const FLASH_BELOW: u64 = MIB;
/// Harmless number of extents: any file system may need this many for a file.
const FEW_EXTENTS: u64 = 8;

pub(super) const FRAGMENTED: Check = Check {
    id: CheckId::B15,
    name: "FRAGMENTED",
    belief: "the file is contiguous, so sequential access is sequential on the disk",
    reads: "The map of the file's extents before each run (FIEMAP), `queue/rotational` of the disks, and \
            whether the machine is virtual.",
    formula: formula!(
        "Bytes of the file / extents. On a hard disk biased below {spinning} ({seeks} extents per GiB): a \
         seek of 10 ms is then a tenth of the time. On flash, and on virtual disks, whose `rotational` means \
         nothing, a note below {flash} ({cuts} per GiB), where requests are cut. Up to {FEW_EXTENTS} extents \
         are allowed. Only sequential orders. Not checked if the file is stored compressed or encrypted.",
        spinning = show_bytes(SPINNING_BELOW),
        seeks = GIB / SPINNING_BELOW,
        flash = show_bytes(FLASH_BELOW),
        cuts = show_count((GIB / FLASH_BELOW) as f64)
    ),
    provoke: "On xfs or btrfs: `cp --reflink=always FILE COPY`, `fathom run --rw randwrite --bs 4k --time 1s \
              --destroy COPY COPY`, then `fathom run --rw read COPY`. `filefrag COPY` shows the extents.",
    fix: "Name a directory with contiguous free space and let fathom make its own file. `e4defrag` or \
          `xfs_fsr` defragment a file.",
    accept: "Accept it if your real file is as fragmented.",
    applies: |case| {
        let is_sequential = case.stream.access.pattern() == Some(Pattern::Sequential);
        is_sequential && case.on_device() && !case.on_block_devices()
    },
    ask: Ask::Alone(check_fragmented),
    #[cfg(test)]
    fires: Some(|| pieces(2_000, "0")),
    #[cfg(test)]
    blind: || Fixture { no_fiemap: true, ..Fixture::honest_sequential() }.record(),
};

fn check_fragmented(case: &Case) -> Known<Answer> {
    let (extents, completeness) = split_known(case.extents());
    // Compressed extents are at most 128 KiB long, even if they are contiguous on the disk.
    let (encoded, plain): (Vec<_>, Vec<_>) = extents.into_iter().partition(|e| e.encoded_bytes > 0);
    let completeness = completeness.and(if encoded.is_empty() {
        Ok(())
    } else {
        not_checked("the file is stored compressed or encrypted, so the number of its extents means nothing")
    });
    let worst = plain.iter().filter(|e| e.count > 0).min_by_key(|e| mean_extent_bytes(e));
    let Some(worst) = worst else {
        return completeness.and(not_checked("the map of the file's extents is empty"));
    };
    let is_spinning = is_spinning(case)?;
    let limit = if is_spinning { SPINNING_BELOW } else { FLASH_BELOW };
    let numbers =
        evidence([("extents", worst.count as f64), ("extent_bytes_mean", mean_extent_bytes(worst) as f64)]);
    if worst.count <= FEW_EXTENTS || mean_extent_bytes(worst) >= limit {
        completeness?;
        return holds(
            "The file has few or long extents, so sequential access is sequential on the disk.",
            numbers,
        );
    }
    finding!(
        if is_spinning { Severity::Biases } else { Severity::Note },
        numbers,
        "The file has {} extents of {} on average, so sequential access {} on the disk.",
        show_count(worst.count as f64),
        show_bytes(mean_extent_bytes(worst)),
        if is_spinning { "needs seeks" } else { "is cut into smaller requests" }
    )
}

/// Returns the mean bytes per extent.
fn mean_extent_bytes(extents: &Extents) -> u64 {
    let stored = extents.span_bytes.saturating_sub(extents.hole_bytes);
    stored.checked_div(extents.count).unwrap_or(u64::MAX)
}

/// Whether a disk below the target is rotational. False in a virtual machine, where the flag means
/// nothing.
fn is_spinning(case: &Case) -> Known<bool> {
    let mut is_rotational = false;
    for layer in case.lowest_layers()? {
        is_rotational |= layer.queue_number("rotational")? == 1;
    }
    if !is_rotational {
        return Ok(false);
    }
    // Virtual disks report 1 whatever their host uses.
    let machine = case.machine.ok_or("the record names no host")?;
    Ok(machine.virtual_by.as_ref().map_err(Clone::clone)?.is_none())
}

/// If more than this share of the file has no written blocks, the job allocates blocks instead of overwriting them. An
/// unwritten last block stays below this share.
const ALLOCATED_ABOVE: f64 = 0.01;

pub(super) const WRITES_ALLOCATE: Check = Check {
    id: CheckId::B16,
    name: "WRITES_ALLOCATE",
    belief: "writes overwrote existing blocks",
    reads: "The map of the file's extents before each run and after its final sync (FIEMAP): holes, and \
            extents that were allocated but never written.",
    formula: formula!(
        "(Holes + unwritten bytes + bytes not allocated yet) / bytes of the file at the start of a run: \
         relabelled `allocating` above {ALLOCATED_ABOVE} in the worst run. Such a write takes a block, marks \
         it written and puts both into the journal. A note if the job itself requests a new file (`--engine \
         sync:new`, `sync:fallocate`, `sync:grow`). Each turn is judged by its own region. Does not apply if the job also \
         reads and A04 finds holes."
    ),
    provoke: "`truncate -s 1g FILE` or `fallocate -l 1g FILE`, then `fathom run --rw randwrite --destroy \
              FILE FILE`.",
    fix: "Name the directory and let fathom make its own test file, or fill the file with data first.",
    accept: "Accept it if the application writes new files.",
    applies: |case| case.does(Kind::Write) && case.on_device() && !case.on_block_devices(),
    ask: Ask::After(&[CheckId::A04], |case, earlier| {
        ask_each_turn(case, Kind::Write, |turn| check_writes_allocate(turn, earlier))
    }),
    #[cfg(test)]
    fires: Some(|| Fixture { hole_share: 0.5, ..Fixture::honest_write() }.record()),
    #[cfg(test)]
    blind: || Fixture { no_fiemap: true, ..Fixture::honest_write() }.record(),
};

fn check_writes_allocate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    // If the job also reads the holes, A04 already voids the result.
    if case.does(Kind::Read) && earlier.finds(CheckId::A04) {
        return Ok(Answer::DoesNotApply);
    }
    if case.stream.renews_file() {
        let sentence = "The job requests a new file in each run, so its writes also allocate blocks.";
        return finding!(Severity::Note, evidence([]), "{sentence}");
    }
    let (extents, completeness) = split_known(case.extents());
    let worst = extents.iter().filter(|e| e.span_bytes > 0).map(share_without_blocks).max_by(f64::total_cmp);
    let Some(worst) = worst else {
        return completeness.and(not_checked("the map of the file's extents is empty"));
    };
    let most_extents = |all: &[Extents]| all.iter().map(|e| e.count as f64).fold(0.0, f64::max);
    let numbers = evidence([
        ("without_blocks_share", worst),
        ("extents_before", most_extents(&extents)),
        ("extents_after", extents_after_syncs(case).map_or(f64::NAN, |all| most_extents(&all))),
    ]);
    if worst <= ALLOCATED_ABOVE {
        completeness?;
        return holds("Writes overwrote existing blocks.", numbers);
    }
    detail!(
        Severity::Relabels,
        numbers,
        "{} of the region had no written blocks before the run, so writes also allocated blocks. Overwriting a \
         file is a different test.",
        show_share(worst)
    )
    .relabelled(Rename::Condition("allocating".into()))
    .found()
}

fn share_without_blocks(e: &Extents) -> f64 {
    let bytes = e.hole_bytes as f64 + e.unwritten_bytes as f64 + e.delayed_bytes as f64;
    share(bytes, e.span_bytes as f64)
}

/// Returns the extent maps after the final syncs, or `None` if they were not read.
fn extents_after_syncs(case: &Case) -> Option<Vec<Extents>> {
    case.extents_at(Moment::Synced).ok()?.into_iter().collect::<Known<_>>().ok()
}

/// If more than this share of the trimmed bytes was already holes, the rate does not show how fast blocks are freed.
/// Blocks at both ends of a file that are trimmed only in part are less than this share.
const HOLES_TRIMMED_ABOVE: Share = Share(0.05);
/// If at least this share of the trimmed bytes was already holes, the result is relabelled.
const HOLES_RELABELLED_FROM: Share = Share(0.5);
/// Block size of nearly every file system. A trim of a part of a block zeroes it and frees nothing.
const BLOCK_BYTES: u64 = 4096;

pub(super) const TRIMS_MET_HOLES: Check = Check {
    id: CheckId::B21,
    name: "TRIMS_MET_HOLES",
    belief: "trims freed blocks",
    reads: "The map of the file's extents before each run and after its final sync (FIEMAP), and the bytes \
            that fathom trimmed.",
    formula: formula!(
        "Share of trims that met holes = 1 - (bytes of holes after - before) / bytes trimmed, over all \
         runs. A trim of a hole frees nothing and reaches no device.\n\
         - Relabelled from {HOLES_RELABELLED_FROM}.\n\
         - Biased above {HOLES_TRIMMED_ABOVE}.\n\
         - Not checked if the stream also writes, or if several streams or hosts change the file.\n\
         - Not checked if trims are not multiples of {BLOCK_BYTES} bytes: the file system only zeroes \
         parts of blocks.\n\
         - Does not apply to block devices, which do not show which blocks hold data."
    ),
    provoke: "`fathom run --rw randtrim --size 16m --bs 64k --engine sync --time 3s DIR`: after the first \
              256 trims most blocks are holes.",
    fix: "Trim less than the file holds (`--passes 1 --rw trim`, one run), or use a larger --size.",
    accept: "Accept it if trims of free blocks are part of your workload.",
    applies: |case| case.does(Kind::Trim) && case.has_storage() && !case.on_block_devices(),
    ask: Ask::Alone(check_trims_met_holes),
    #[cfg(test)]
    fires: Some(|| trimming(0, 10_000)),
    #[cfg(test)]
    blind: || {
        let mut record = trimming(0, 10_000);
        for state in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
            state.extents = Some(Err("not supported".into()));
        }
        record
    },
};

fn check_trims_met_holes(case: &Case) -> Known<Answer> {
    let issued = case.issued(Kind::Trim);
    if issued.ops == 0 {
        return Err("no trim completed".into());
    }
    if case.does(Kind::Write) {
        return Err("the stream also writes, which fills trimmed blocks again".into());
    }
    let changes_file = |stream: &Stream| {
        let changes = stream.kinds().any(|kind| kind != Kind::Read);
        changes && stream.targets.iter().any(|target| case.stream.targets.contains(target))
    };
    let others = case.phase_streams().iter().enumerate().filter(|(at, _)| *at != case.stream_index);
    if others.into_iter().any(|(_, stream)| changes_file(stream))
        || case.record.header.plan.fleet_rank.is_some()
        || case.record.fleet.is_some()
    {
        return not_checked(
            "several streams or hosts change the file, and its holes are counted for all of them together",
        );
    }
    let sizes = [case.stream.access.smallest_bytes(), case.stream.access.largest_bytes()].map(u64::from);
    let in_blocks = |bytes: &u64| bytes.is_multiple_of(BLOCK_BYTES);
    if !sizes.iter().chain([&case.stream.access.offset_bytes]).all(in_blocks) {
        return Err("trims of parts of blocks write zeros and make no holes".into());
    }
    let maps = case.extents_over_runs()?.into_iter().collect::<Known<Vec<_>>>()?;
    let freed_bytes: u64 =
        maps.iter().map(|(before, after)| after.hole_bytes.saturating_sub(before.hole_bytes)).sum();
    let (freed_bytes, trimmed) = (freed_bytes as f64, issued.bytes as f64);
    let in_holes = (1.0 - share(freed_bytes, trimmed)).max(0.0);
    let numbers =
        evidence([("trimmed_bytes", trimmed), ("freed_bytes", freed_bytes), ("in_holes_share", in_holes)]);
    if in_holes <= HOLES_TRIMMED_ABOVE {
        return holds("The trims freed blocks.", numbers);
    }
    let is_relabelled = in_holes >= HOLES_RELABELLED_FROM;
    detail!(
        if is_relabelled { Severity::Relabels } else { Severity::Biases },
        numbers,
        "{} of the trimmed bytes were already holes: {} of {} in total freed {}. A trim of a hole \
         frees nothing and reaches no device.",
        show_share(in_holes),
        show_counted(issued.ops, "trim"),
        show_bytes(issued.bytes),
        show_bytes(freed_bytes as u64)
    )
    .relabelled(is_relabelled.then(|| Rename::Condition(format!("{} in holes", show_share(in_holes)))))
    .found()
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::evidence::TargetState;

#[test]
fn small_direct_writes_bias_and_small_direct_reads_are_a_note() {
    let at = |fixture: Fixture| MISALIGNED.severity(&fixture.record());
    assert_eq!(at(Fixture { block_bytes: 6144, ..Fixture::honest_write() }), Some(Severity::Biases));
    assert_eq!(at(Fixture { block_bytes: 512, ..Fixture::honest() }), Some(Severity::Note));
    assert_eq!(at(Fixture { block_bytes: 8192, ..Fixture::honest_write() }), None);
    assert_eq!(
        at(Fixture { block_bytes: 512, cache: model::job::Cache::Buffered, ..Fixture::honest_write() }),
        None
    );
}

#[test]
fn offsets_partitions_loop_devices_and_extents_are_checked() {
    let with = |change: fn(&mut model::record::Record)| {
        let mut record = Fixture::honest_write().record();
        change(&mut record);
        match MISALIGNED.answer(&record) {
            Ok(Answer::Finding(f)) => f.sentence,
            other => format!("{other:?}"),
        }
    };
    let offset = with(|r| r.header.plan.jobs[0].phases[0].streams[0].access.offset_bytes = 512);
    assert!(offset.contains("begin at 512 B"), "{offset}");
    let at_63 = with(|r| {
        let place = &mut r.header.hosts[0].places[0];
        let mut part = place.layers[0].clone();
        (part.name, part.kind, part.below) = ("vda1".into(), LayerKind::Partition, vec![1]);
        part.device.insert("start".into(), "63\n".into());
        place.layers.insert(0, part);
    });
    assert!(at_63.contains("vda1 begins at sector 63"), "{at_63}");
    let unknown_start = |offset: u64| {
        let mut record = Fixture::honest_write().record();
        record.header.plan.jobs[0].phases[0].streams[0].access.offset_bytes = offset;
        let place = &mut record.header.hosts[0].places[0];
        let mut part = place.layers[0].clone();
        (part.kind, part.below) = (LayerKind::Partition, vec![1]);
        place.layers.insert(0, part);
        MISALIGNED.answer(&record)
    };
    assert!(matches!(unknown_start(512), Ok(Answer::Finding(_))), "{:?}", unknown_start(512));
    assert!(unknown_start(0).is_err());
    let shifted = with(|r| {
        let place = &mut r.header.hosts[0].places[0];
        let mut shifted = place.layers[0].clone();
        (shifted.name, shifted.kind, shifted.below) = ("loop0".into(), LayerKind::Loop, vec![1]);
        shifted.device.insert("loop/offset".into(), "512".into());
        place.layers.insert(0, shifted);
    });
    assert!(shifted.contains("loop0 begins at byte 512 of its file"), "{shifted}");
    let small_blocks = with(|r| {
        for state in r.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
            if let Some(Ok(extents)) = &mut state.extents {
                extents.physical_align = Some(1024);
            }
        }
        let first = &mut r.runs[0].evidence[0].targets[0];
        first.extents = Some(Err("Permission denied (os error 13)".into()));
    });
    assert!(small_blocks.contains("multiples of 1 KiB"), "{small_blocks}");
}

#[test]
fn a_file_without_an_extent_map_is_not_checked() {
    let file = Fixture { no_fiemap: true, ..Fixture::honest_write() };
    assert!(MISALIGNED.answer(&file.record()).is_err());
    let device = Fixture { role: model::plan::Role::Device, ..file };
    assert!(matches!(MISALIGNED.answer(&device.record()), Ok(Answer::Holds(..))));
}

/// A file of 1 GiB in `count` extents on a disk with this `rotational` flag.
#[cfg(test)]
fn pieces(count: u64, rotational: &str) -> model::record::Record {
    let mut record = Fixture::honest_sequential().record();
    record.header.hosts[0].places[0].layers[0].queue.insert("rotational".into(), rotational.into());
    for state in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
        if let Some(Ok(extents)) = &mut state.extents {
            extents.count = count;
        }
    }
    record
}

#[test]
fn the_limit_is_stricter_on_a_spinning_disk() {
    let at = |count, rotational| FRAGMENTED.severity(&pieces(count, rotational));
    assert_eq!(at(1_100, "0"), Some(Severity::Note));
    assert_eq!(at(1_000, "0"), None);
    assert_eq!(at(70, "1"), Some(Severity::Biases));
    assert_eq!(at(60, "1"), None);
}

#[test]
fn a_virtual_disk_does_not_spin_and_random_access_does_not_apply() {
    let mut record = pieces(70, "1");
    record.header.hosts[0].virtual_by = Ok(Some("kvm".into()));
    assert_eq!(FRAGMENTED.severity(&record), None);
    record.header.hosts[0].virtual_by = Err("not known".into());
    assert!(FRAGMENTED.answer(&record).is_err());
    assert_eq!(FRAGMENTED.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}

#[test]
fn two_percent_of_holes_relabel_and_half_a_percent_is_silent() {
    let at =
        |hole_share| WRITES_ALLOCATE.severity(&Fixture { hole_share, ..Fixture::honest_write() }.record());
    assert_eq!(at(0.02), Some(Severity::Relabels));
    assert_eq!(at(0.005), None);
}

#[test]
fn a_job_that_requests_a_new_file_gets_a_note() {
    use model::job::{FALLOCATE, GROW, NEW};
    for option in [NEW, FALLOCATE, GROW] {
        let mut record = Fixture { hole_share: 1.0, ..Fixture::honest_write() }.record();
        record.header.plan.jobs[0].phases[0].streams[0].options.insert(option.into(), None);
        assert_eq!(WRITES_ALLOCATE.severity(&record), Some(Severity::Note), "{option}");
    }
}

#[test]
fn unwritten_extents_count_and_reads_do_not_apply() {
    let mut record = Fixture::honest_write().record();
    for state in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
        if let Some(Ok(extents)) = &mut state.extents {
            extents.unwritten_bytes = extents.span_bytes;
        }
    }
    let Ok(Answer::Finding(f)) = WRITES_ALLOCATE.answer(&record) else { panic!("silent") };
    assert_eq!(f.renames, Some(Rename::Condition("allocating".into())));
    let read = Fixture { hole_share: 1.0, ..Fixture::honest() };
    assert_eq!(WRITES_ALLOCATE.answer(&read.record()), Ok(Answer::DoesNotApply));
}

/// Runs of 11,000 trims of 4 KiB; `before` blocks are holes at the start of each run and `after` at its end.
#[cfg(test)]
fn trimming(before: u64, after: u64) -> model::record::Record {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    stream.access.lines[0].mix = model::job::Mix::from_percents(0, 100);
    for run in &mut record.runs {
        for stream in run.end.iter_mut().flat_map(|e| &mut e.streams) {
            let (done, issued) = (stream.kinds.remove(&Kind::Read), stream.issued.remove(&Kind::Read));
            stream.kinds.extend(done.map(|d| (Kind::Trim, d)));
            stream.issued.extend(issued.map(|i| (Kind::Trim, i)));
        }
        let synced = run.evidence.iter().find(|s| s.moment == Moment::Stop).cloned();
        run.evidence.extend(synced.map(|s| model::evidence::Snapshot { moment: Moment::Synced, ..s }));
        let map = run.evidence.iter().find_map(|s| s.targets.first()?.extents.clone());
        for snapshot in &mut run.evidence {
            let holes = if snapshot.moment == Moment::Start { before } else { after };
            for state in &mut snapshot.targets {
                state.extents = map
                    .clone()
                    .map(|map| map.map(|e| model::evidence::Extents { hole_bytes: holes * 4096, ..e }));
            }
        }
    }
    record
}

#[test]
fn trims_of_holes_bias_or_relabel() {
    assert!(
        matches!(TRIMS_MET_HOLES.answer(&trimming(0, 11_000)), Ok(Answer::Holds(..))),
        "{:?}",
        TRIMS_MET_HOLES.answer(&trimming(0, 11_000))
    );
    assert_eq!(TRIMS_MET_HOLES.severity(&trimming(500, 11_000)), None);
    assert_eq!(TRIMS_MET_HOLES.severity(&trimming(2_000, 11_000)), Some(Severity::Biases));
    // All blocks were free before.
    let Ok(Answer::Finding(f)) = TRIMS_MET_HOLES.answer(&trimming(20_000, 20_000)) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Relabels);
    assert!(
        f.sentence.starts_with("100 % of the trimmed bytes") && f.sentence.contains("freed 0 B"),
        "{}",
        f.sentence
    );
}

#[test]
fn jobs_with_writes_or_partial_blocks_are_not_checked_and_devices_do_not_apply() {
    let change = |by: &dyn Fn(&mut model::record::Record)| {
        let mut record = trimming(0, 11_000);
        by(&mut record);
        TRIMS_MET_HOLES.answer(&record)
    };
    let writes = change(&|r| {
        r.header.plan.jobs[0].phases[0].streams[0].access.lines[0].mix =
            model::job::Mix::from_percents(0, 50);
    });
    assert!(writes.is_err_and(|why| why.contains("also writes")));
    let parts = change(&|r| r.header.plan.jobs[0].phases[0].streams[0].access.offset_bytes = 512);
    assert!(parts.is_err_and(|why| why.contains("parts of blocks")));
    let device = change(&|r| r.header.plan.targets[0].role = model::plan::Role::Device);
    assert_eq!(device, Ok(Answer::DoesNotApply));
    let writer_of = |target: usize| {
        change(&move |r| {
            let streams = &mut r.header.plan.jobs[0].phases[0].streams;
            let mut writer = streams[0].clone();
            writer.access.lines[0].mix = model::job::Mix::from_percents(0, 0);
            writer.targets = vec![target];
            streams.push(writer);
        })
    };
    assert!(writer_of(0).is_err_and(|why| why.contains("several streams")));
    assert!(matches!(writer_of(1), Ok(Answer::Holds(..))), "a stream on another file changes nothing here");
}

#[test]
fn an_unknown_disk_hides_no_misfit_and_does_not_pass() {
    let next_to_unknown = |block_bytes| {
        let mut record = Fixture { block_bytes, ..Fixture::honest_write() }.record();
        let place = &mut record.header.hosts[0].places[0];
        let mut unknown = place.layers[0].clone();
        unknown.stat_file = "/sys/block/vdb/stat".into();
        unknown.queue.remove("physical_block_size");
        place.layers.push(unknown);
        MISALIGNED.answer(&record)
    };
    assert!(matches!(next_to_unknown(6144), Ok(Answer::Finding(_))), "{:?}", next_to_unknown(6144));
    assert!(next_to_unknown(8192).is_err_and(|why| why.contains("physical_block_size")));
}

#[test]
fn a_compressed_file_hides_no_other_file_in_pieces() {
    let pieces = |count| Extents { count, span_bytes: 1 << 30, ..Extents::default() };
    let answer = |second: Extents| {
        let mut record = Fixture::honest_sequential().record();
        let plan = &mut record.header.plan;
        plan.targets.push(plan.targets[0].clone());
        plan.jobs[0].phases[0].streams[0].targets = vec![0, 1];
        let places = &mut record.header.hosts[0].places;
        places.push(places[0].clone());
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let mut first = snapshot.targets[0].clone();
            first.extents = first.extents.map(|_| Ok(Extents { encoded_bytes: 1 << 30, ..pieces(8192) }));
            let second = TargetState { extents: first.extents.clone().map(|_| Ok(second)), ..first.clone() };
            snapshot.targets = vec![first, second];
        }
        FRAGMENTED.answer(&record)
    };
    assert!(matches!(answer(pieces(100_000)), Ok(Answer::Finding(_))), "{:?}", answer(pieces(100_000)));
    assert!(answer(pieces(1)).is_err_and(|why| why.contains("compressed")));
}
