//! A06: files so small that their bytes are stored in the inode or share a block with other files. Decides by the
//! extent map (FIEMAP) at the start of the runs.

use crate::checks::prelude::*;

/// Inline share that is harmless: the packed tail of a file of some hundred blocks.
const RENAMED_ABOVE: Share = Share(0.01);

pub(super) const CHECK: Check = Check {
    id: CheckId::A06,
    name: "INLINE_OR_TAIL",
    belief: "the file has data blocks of its own",
    reads: "The extents of the file at the start of each run (FIEMAP): those marked as stored in the inode \
            or packed with other files.",
    formula: formula!(
        "Bytes in such extents / bytes of the file > {RENAMED_ABOVE}. The packed tail of a file of some \
         hundred blocks stays below. For a file in its inode, the share is 100 %."
    ),
    provoke: "`mkfs.ext4 -O inline_data IMAGE`, mount it, `head -c 100 /dev/urandom > FILE`, and `fathom run \
              --rw randread --bs 50 --cache buffered FILE`.",
    fix: "Measure a file of at least a few mebibytes, or name the directory and let fathom make its own \
          file.",
    accept: "Accept it if you want to measure tiny files.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| with_inline(1 << 30)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { no_fiemap: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let extents = case.extents()?;
    let part = extents.iter().map(|e| share(e.inline_bytes as f64, e.span_bytes as f64)).fold(0.0, f64::max);
    let numbers = evidence([("inline_share", part)]);
    if part <= RENAMED_ABOVE {
        return holds("The file has data blocks of its own.", numbers);
    }
    detail!(
        Severity::Rename,
        numbers,
        "{} of the file is stored in its inode or in a block shared with other files, not in data blocks of \
         its own.",
        show_share(part)
    )
    .relabelled(Rename::Medium("inside the inode".into()))
    .found()
}

#[cfg(test)]
fn with_inline(bytes: u64) -> model::record::Record {
    super::extents(&crate::fixture::Fixture::honest(), |_, e| e.inline_bytes = bytes)
}

#[test]
fn a_packed_tail_is_accepted_and_an_inline_file_is_relabelled() {
    assert_eq!(CHECK.severity(&with_inline(1 << 23)), None, "0.8 %");
    assert_eq!(CHECK.severity(&with_inline(1 << 24)), Some(Severity::Rename));
}

#[test]
fn block_devices_are_not_checked() {
    let device = crate::fixture::Fixture {
        role: model::plan::Role::Device,
        no_fiemap: true,
        ..crate::fixture::Fixture::honest()
    };
    assert_eq!(CHECK.answer(&device.record()), Ok(Answer::DoesNotApply));
}
