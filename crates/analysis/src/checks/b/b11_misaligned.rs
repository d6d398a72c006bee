//! B11: operations that are not aligned to the physical blocks of the disk. Checks that sizes, offsets, partition
//! starts and extents are multiples of the largest physical block below the target.

use crate::checks::b::disks;
use crate::checks::prelude::*;
use model::job::{Access, Line, Sizes};

/// Unit of a partition's `start`, whatever the disk's block size.
const START_BYTES: u64 = 512;

pub(super) const CHECK: Check = Check {
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
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { block_bytes: 512, ..crate::fixture::Fixture::honest_write() }.record()
    }),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest_write().record();
        record.header.hosts[0].places[0].layers[0].queue.remove("physical_block_size");
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() || !Kind::MOVING.iter().any(|k| case.does(*k)) {
        return Ok(Answer::DoesNotApply);
    }
    let mut block = 0;
    for layer in disks(case)? {
        block = block.max(layer.queue_number("physical_block_size")?);
    }
    if block == 0 {
        return Err("the disks report a physical block size of 0".into());
    }
    let mut misfits = if case.stream.cache.is_direct() {
        misaligned_access(&case.stream.access, block)
    } else {
        Vec::new()
    };
    misfits.extend(misaligned_devices(case, block)?);
    if misfits.is_empty() {
        // The extent map is needed only if nothing else is misaligned.
        misfits.extend(misaligned_extents(case, block)?);
    }
    let numbers = evidence([("physical_block_bytes", block as f64), ("misfits", misfits.len() as f64)]);
    if misfits.is_empty() {
        return holds("Operations are aligned to the physical blocks of the disk.", numbers);
    }
    let writes = case.does(Kind::Write);
    let effect = if writes {
        "the disk reads, changes and writes whole blocks"
    } else {
        "the disk reads more than requested"
    };
    detail!(
        if writes { Severity::Biased } else { Severity::Note },
        numbers,
        "Operations are not aligned to the physical blocks of {}, so {effect}: {}.",
        show_bytes(block),
        misfits.join(", ")
    )
    .with_cure(CHECK.fix.replace("the physical block", &show_bytes(block)))
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

/// Returns the sizes of a line. For a range, returns the unit that all its sizes are multiples of.
fn sizes(line: &Line) -> Vec<u64> {
    let mut out = vec![u64::from(line.reply_bytes)];
    for sizes_of_kind in line.drawn_sizes() {
        match sizes_of_kind {
            Sizes::Fixed(size) => out.push(u64::from(*size)),
            // The sizes are multiples of the alignment, or of the smallest size without one.
            Sizes::Range(..) if line.align_bytes > 0 => out.push(line.align_bytes),
            Sizes::Range(least, _) => out.push(u64::from(*least)),
            Sizes::Split(split) => out.extend(split.iter().filter(|s| s.1 > 0).map(|s| u64::from(s.0))),
        }
    }
    out
}

/// Describes partitions and devices that do not start on a block.
fn misaligned_devices(case: &Case, block: u64) -> Known<Vec<String>> {
    let mut out = Vec::new();
    for layer in case.places().flat_map(|p| &p.layers) {
        if layer.kind == LayerKind::Partition {
            let sector = layer.device_number("start")?;
            if !sector.saturating_mul(START_BYTES).is_multiple_of(block) {
                out.push(format!("{} begins at sector {sector}", layer.name));
            }
        }
        if layer.kind == LayerKind::Loop {
            let byte = layer.device_number("loop/offset")?;
            if !byte.is_multiple_of(block) {
                out.push(format!("{} begins at byte {byte} of its file", layer.name));
            }
        }
        // Only some kinds of devices have this file.
        if let Some(shift) = layer.device.get("alignment_offset").map(|text| text.trim())
            && shift != "0"
        {
            out.push(format!("the alignment offset of {} is {shift} B", layer.name));
        }
    }
    out.dedup();
    Ok(out)
}

/// Describes a file whose extents do not start on a block.
fn misaligned_extents(case: &Case, block: u64) -> Known<Option<String>> {
    if case.on_block_devices() {
        return Ok(None);
    }
    for extents in case.extents()?.iter().filter(|e| e.count > 0 && e.inline_bytes == 0) {
        let begin =
            extents.physical_align.ok_or("the map of the file's extents does not show where they begin")?;
        if !begin.is_multiple_of(block) {
            return Ok(Some(format!("the file's extents begin at multiples of {}", show_bytes(begin))));
        }
    }
    Ok(None)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn small_direct_writes_bias_and_small_direct_reads_are_a_note() {
    let at = |fixture: Fixture| CHECK.severity(&fixture.record());
    assert_eq!(at(Fixture { block_bytes: 6144, ..Fixture::honest_write() }), Some(Severity::Biased));
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
        match CHECK.answer(&record) {
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
    });
    assert!(small_blocks.contains("multiples of 1 KiB"), "{small_blocks}");
}

#[test]
fn a_file_without_an_extent_map_is_not_checked() {
    let file = Fixture { no_fiemap: true, ..Fixture::honest_write() };
    assert!(CHECK.answer(&file.record()).is_err());
    let device = Fixture { role: model::plan::Role::Device, ..file };
    assert!(matches!(CHECK.answer(&device.record()), Ok(Answer::Holds(..))));
}
