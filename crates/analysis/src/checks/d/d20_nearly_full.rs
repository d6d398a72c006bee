//! D20: a file system with little free space. Checks the free share of the targets' file systems at the start of
//! the runs. How full a drive is inside is unknown.

use crate::checks::prelude::*;
use model::evidence::Room;

/// Free share below which allocators search long and scatter new blocks. Space reserved for root (up to 5 %) does
/// not count as free.
const FREE_BELOW: Share = Share(0.1);

pub(super) const CHECK: Check = Check {
    id: CheckId::D20,
    name: "NEARLY_FULL",
    belief: "the file system had enough free space",
    reads: "`statvfs` of the targets' file systems at the start of each run: their size, and the space that \
            users other than root may still use.",
    formula: formula!(
        "If less than {FREE_BELOW} is free: biased for writes, because the allocator scatters them; a note \
         for reads, which depend only on the layout of the file. The fill level inside a drive is invisible."
    ),
    provoke: "`fallocate -l $(($(df --output=avail -B1 DIR | tail -1) * 95 / 100)) DIR/fill && fathom run \
              --rw randwrite --size 64m DIR; rm DIR/fill`.",
    fix: "Free some space, run `fstrim` on flash, and measure again.",
    accept: "Accept it if the disk will be as full in use.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| with_free(&crate::fixture::Fixture::honest_write(), 5)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest_write().record();
        let states = record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets);
        states.for_each(|t| t.room = Some(Err("Permission denied (os error 13)".into())));
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let states = case.states(Moment::Start)?;
    let rooms = states.iter().flatten().filter_map(|s| s.room.clone());
    let rooms: Vec<Room> = rooms.collect::<Known<_>>()?;
    let free = |room: &Room| share(room.free_bytes as f64, room.total_bytes as f64);
    // Some network file systems report a size of 0.
    let known = rooms.iter().filter(|r| r.total_bytes > 0);
    let fullest = known.min_by(|a, b| free(a).total_cmp(&free(b)));
    let fullest = fullest.ok_or("the free space of the file system was not recorded")?;
    let part = free(fullest);
    let numbers = evidence([("free_share", part), ("free_bytes", fullest.free_bytes as f64)]);
    if part >= FREE_BELOW {
        return holds("The file system had enough free space.", numbers);
    }
    let writes = case.does(Kind::Write);
    let effect =
        if writes { "the allocator scatters writes over the rest" } else { "the file is probably scattered" };
    finding!(
        if writes { Severity::Biased } else { Severity::Note },
        numbers,
        "Only {} of the file system is free ({} of {}): {effect}.",
        show_share(part),
        show_bytes(fullest.free_bytes),
        show_bytes(fullest.total_bytes)
    )
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record whose file system has `percent` percent of free space.
#[cfg(test)]
fn with_free(fixture: &Fixture, percent: u64) -> model::record::Record {
    let mut record = fixture.record();
    let states = record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets);
    states.for_each(|t| t.room = Some(Ok(Room { total_bytes: 100 << 30, free_bytes: percent << 30 })));
    record
}

#[test]
fn below_ten_percent_writes_bias_and_reads_are_a_note() {
    assert_eq!(CHECK.severity(&with_free(&Fixture::honest_write(), 9)), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&with_free(&Fixture::honest(), 9)), Some(Severity::Note));
    assert!(matches!(CHECK.answer(&with_free(&Fixture::honest_write(), 10)), Ok(Answer::Holds(..))));
}

#[test]
fn devices_do_not_apply_and_a_size_of_zero_is_not_checked() {
    let device = Fixture { role: model::plan::Role::Device, ..Fixture::honest_write() };
    assert_eq!(CHECK.answer(&with_free(&device, 1)), Ok(Answer::DoesNotApply));
    let mut network = with_free(&Fixture::honest(), 0);
    let states = network.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets);
    states.for_each(|t| t.room = Some(Ok(Room::default())));
    assert!(CHECK.answer(&network).is_err());
    let mut old = Fixture::honest().record();
    old.runs
        .iter_mut()
        .flat_map(|r| &mut r.evidence)
        .flat_map(|s| &mut s.targets)
        .for_each(|t| t.room = None);
    assert!(CHECK.answer(&old).is_err());
}
