//! A12: a layer below the target's device that kept part of the work in a cache, such as a loop device on a
//! cached file. Compares the bytes of each layer with the bytes of the layers below it.
//!
//! 1. Compares the top devices with the lowest devices, then every layer with the layers directly below it.
//! 2. If other processes may use a disk below a loop device that caches its image, counts only the bytes that the kernel
//!    charged to fathom.
//! 3. If other streams of the phase use the chain, subtracts the bytes that they submitted and decides by bounds.
//! 4. Reads of never-written blocks of an image are named as the cause instead of a cache.
use crate::case::{MIN_CHARGED_SHARE, SAME_BYTES_WITHIN};
use crate::checks::prelude::*;
use model::evidence::TargetState;

/// Up to this share of the top devices' bytes in one direction, the traffic of a layer in that
/// direction is ignored.
const MATTERS_ABOVE: Share = Share(0.05);
/// Minimum share of the missing bytes that never-written blocks must explain, for the finding to
/// name such blocks as the cause. Random reads hit them roughly in proportion to their number.
const EXPLAINS_FROM: Share = Share(0.9);

pub(super) const LOWER_LAYER_CACHE: Check = Check {
    id: CheckId::A12,
    name: "LOWER_LAYER_CACHE",
    belief: "the disks below did all of the top device's I/O",
    reads: "The `stat` files of the top devices and of the disks below them, from start to stop of every \
            run, for the directions that the job uses. Also the bytes that the kernel charged to fathom's \
            own cgroup on the disks below.",
    formula: formula!(
        "Bytes that arrived below / bytes of the layer above. fathom compares the top device with the \
         disks, and each layer with the layers directly below it. A partition and its disk are one device.\n\
         - Relabelled if less than {ARRIVED_FROM} of the bytes in a direction of the job arrived below: a \
         cache in between served or kept the rest.\n\
         - The finding names never written blocks instead of a cache if the holes of a loop device's image \
         (FIEMAP) explain {EXPLAINS_FROM} of the missing reads. A loop device answers reads of such blocks \
         without a disk.\n\
         - A layer is ignored in a direction in which it moved at most {MATTERS_ABOVE} of the top device's \
         bytes.\n\
         - If enough bytes arrived below a loop device that may cache its image, but not the same number \
         within {same}, only the bytes that the kernel charged to fathom count, because other processes \
         may use the disk too. This applies to reads, and to writes that no sync makes durable.\n\
         - Not checked if the kernel charged less than {charged} of such reads, or less than \
         {ARRIVED_FROM} of such writes.\n\
         - If other streams use the disks below too, the bytes that they submitted are subtracted. Not \
         checked if the rest does not decide.\n\
         - RAID levels that write more than requested pass: only missing bytes point to a cache.",
        charged = Share(MIN_CHARGED_SHARE),
        same = Share(SAME_BYTES_WITHIN)
    ),
    provoke: "`losetup -f --show IMAGE` (without --direct-io=on) and `fathom run --rw randread /dev/loopN`.",
    fix: "Set the layer up without its cache (`losetup --direct-io=on`, no bcache, no dm-cache), or measure \
          the disk itself.",
    accept: "Accept it if you want to measure the stack with its cache.",
    applies: |case| case.on_device(),
    ask: Ask::After(&[CheckId::A04], check_lower_layer_cache),
    #[cfg(test)]
    fires: Some(|| Fixture { leaf_share: Some(0.02), ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest_loop() }.record(),
};

fn check_lower_layer_cache(case: &Case, earlier: &Earlier) -> Known<Answer> {
    // A partition and its disk are one device.
    let tops = case.shared_layers()?;
    let all_stored = earlier.holds(CheckId::A04);
    let leaves = match case.lowest_layers() {
        Ok(leaves) => leaves,
        Err(why) => {
            let lost = find_lossy_layer(case, all_stored, &tops);
            return lost.map_or(Err(why), |finding| Ok(Answer::Finding(finding)));
        }
    };
    if tops.iter().all(|t| leaves.iter().any(|l| l.stat_file == t.stat_file)) {
        return Ok(Answer::DoesNotApply);
    }
    let sides = Sides { upper: &tops, lower: &leaves, all_stored };
    if !case.sharers(&chain(case)).is_empty() {
        return check_shared_chain(case, sides);
    }
    let (top, leaf) = (case.layer_io(&tops)?, case.layer_io(&leaves)?);
    let whole_chain = arrived_below(case, sides, &top);
    let single_layer = || find_lossy_layer(case, all_stored, &tops);
    if let Some(finding) = whole_chain.clone().ok().and_then(Result::err).or_else(single_layer) {
        return Ok(Answer::Finding(finding));
    }
    let numbers =
        evidence([("top_bytes", top.total().bytes as f64), ("leaf_bytes", leaf.total().bytes as f64)]);
    holds(describe_arrival("", whole_chain?.unwrap_or(1.0)), numbers)
}

/// Returns the finding about a layer whose I/O did not arrive at the layers directly below it. Unknown parts of the stack are ignored.
fn find_lossy_layer(case: &Case, all_stored: bool, tops: &[&Layer]) -> Option<Detail> {
    let top = case.layer_io(tops).ok()?;
    steps(case).into_iter().find_map(|(upper, lower)| {
        arrived_below(case, Sides { upper: &[upper], lower: &lower, all_stored }, &top).ok()?.err()
    })
}

/// States which share of the top device's I/O the disks below did. `bound` precedes a share below 1.
fn describe_arrival(bound: &str, arrived: f64) -> String {
    let part = if arrived >= 1.0 { "all".to_owned() } else { format!("{bound}{}", show_part(arrived)) };
    format!("The disks below did {part} of the top device's I/O.")
}

/// The upper and the lower layers of a comparison.
#[derive(Clone, Copy)]
struct Sides<'s> {
    upper: &'s [&'s Layer],
    lower: &'s [&'s Layer],
    /// Whether every byte that the job reads is known to be stored on the target.
    all_stored: bool,
}

/// The traffic of the upper and the lower layers in one direction.
#[derive(Clone, Copy)]
struct Flows {
    upper: BlockFlow,
    lower: BlockFlow,
}

impl Flows {
    /// Returns the share of the upper layers' bytes that arrived below.
    fn arrived(self) -> f64 {
        share(self.lower.bytes as f64, self.upper.bytes as f64)
    }
}

/// Returns the answer for a stream whose device chain other streams use too: compares the bytes at the disks, minus the
/// bytes that the other streams submitted.
fn check_shared_chain(case: &Case, sides: Sides) -> Known<Answer> {
    let Sides { upper, lower, all_stored } = sides;
    let (mut is_undecided, mut least_arrived, mut numbers) = (false, 1.0_f64, evidence([]));
    for kind in Kind::MOVING.into_iter().filter(|kind| case.does(*kind)) {
        let at_upper = case.at_device(kind)?;
        let done = flow_of(&case.layer_io_of_all_streams(lower)?, kind).bytes;
        let charged = if kind == Kind::Read { case.charged_reads_on(lower) } else { None };
        let done = charged.map_or(done, |charged| charged.min(done));
        let others = case.submitted_by_sharers(kind, lower);
        let most = done.saturating_sub(others.least);
        let can_tell = kind == Kind::Write || charged.is_some();
        let mut least = if can_tell { case.least_left(kind, done, others) } else { 0 };
        // If all streams use the same top device and no layer in between reads ahead, this stream cannot lack more
        // bytes than all streams together.
        let all = case.with_sharers();
        let same_top = all
            .shared_layers()
            .is_ok_and(|t| t.iter().all(|t| upper.iter().any(|own| own.stat_file == t.stat_file)));
        if same_top && can_tell && !may_be_kept(case, kind, lower) {
            let missing = flow_of(&case.layer_io_of_all_streams(upper)?, kind).bytes.saturating_sub(done);
            least = least.max(at_upper.least.saturating_sub(missing));
        }
        let flow = |bytes| BlockFlow { bytes, ..BlockFlow::default() };
        let flows = Flows { upper: flow(at_upper.least), lower: flow(most) };
        if at_upper.least > 0 && flows.arrived() < ARRIVED_FROM {
            let why = Why::from_case(case, kind, 1.0 - flows.arrived(), all_stored);
            let mut finding = layer_finding(kind, sides, flows, " for this stream", why);
            // Requests of streams that share a device are not counted separately.
            finding.evidence.retain(|key, _| !key.ends_with("_ios"));
            return Ok(Answer::Finding(finding));
        }
        is_undecided |= (least as f64) < ARRIVED_FROM.0 * at_upper.most as f64;
        if at_upper.most > 0 {
            least_arrived = least_arrived.min(least as f64 / at_upper.most as f64);
        }
        numbers
            .extend(evidence([("top_bytes", at_upper.least as f64), ("leaf_bytes_at_least", least as f64)]));
    }
    if is_undecided {
        return Err(case.not_alone(&case.sharers(&chain(case)), lower));
    }
    holds(describe_arrival("at least ", least_arrived), numbers)
}

/// Returns all layers below the targets.
fn chain<'a>(case: &Case<'a>) -> Vec<&'a Layer> {
    case.places().flat_map(|p| &p.layers).collect()
}

/// Returns each layer that has layers below it, except partitions, with the layers directly below it.
fn steps<'a>(case: &Case<'a>) -> Vec<(&'a Layer, Vec<&'a Layer>)> {
    let steps_in_place = |place: &'a Place| {
        let layers = place.layers.iter().filter(|l| !l.below.is_empty() && l.kind != LayerKind::Partition);
        layers.map(|l| (l, l.below.iter().filter_map(|i| place.layers.get(*i)).collect()))
    };
    case.places().flat_map(steps_in_place).collect()
}

/// Returns the share of the upper layers' bytes that the lower layers moved, or a finding if it is too small. Of the
/// two directions, returns the smaller share. Ignores a direction in which the upper layers carried at most
/// [`MATTERS_ABOVE`] of the bytes in `all`.
fn arrived_below(case: &Case, sides: Sides, all: &BlockStat) -> Known<Result<f64, Detail>> {
    let (upper_stat, lower_stat) = (case.layer_io(sides.upper)?, case.layer_io(sides.lower)?);
    let (mut least_arrived, mut completeness) = (1.0_f64, Ok(()));
    for kind in Kind::MOVING.into_iter().filter(|kind| case.does(*kind)) {
        let mut flows = Flows { upper: flow_of(&upper_stat, kind), lower: flow_of(&lower_stat, kind) };
        if flows.upper.bytes as f64 <= MATTERS_ABOVE.0 * flow_of(all, kind).bytes as f64 {
            continue;
        }
        if flows.arrived() >= ARRIVED_FROM && may_be_kept(case, kind, sides.lower) {
            match own_flows(case, kind, sides, flows) {
                Ok(own) => flows = own,
                Err(why) => completeness = completeness.and(Err(why)),
            }
        }
        if flows.arrived() < ARRIVED_FROM {
            let why = Why::from_case(case, kind, 1.0 - flows.arrived(), sides.all_stored);
            let whose = if flows.lower == flow_of(&lower_stat, kind) { "" } else { " for fathom" };
            return Ok(Err(layer_finding(kind, sides, flows, whose, why)));
        }
        least_arrived = least_arrived.min(flows.arrived());
    }
    completeness.map(|()| Ok(least_arrived))
}

/// Whether the page cache of a loop device's image may answer for one of these disks. False for
/// writes that the stream itself makes stable: C01 and C03 check those.
fn may_be_kept(case: &Case, kind: Kind, lower: &[&Layer]) -> bool {
    let makes_all_stable = case.syncs_within_window() && case.stream.replay.is_none();
    let may_stay = kind == Kind::Read || !makes_all_stable;
    may_stay && lower.iter().any(|disk| is_below_cached_image(case, disk))
}

/// Returns fathom's own flows through the upper and the lower layers. If the bytes of both sides agree, returns the flows unchanged.
/// Otherwise counts only the bytes that the kernel charged to fathom, because other processes may use the same layers: on disks below a
/// cached image, and on upper layers whose charge is known and large enough.
///
/// # Errors
/// Fails if the kernel charged fathom for too few of such a disk's bytes (see [`charged`]): other
/// processes may have used the disk while the page cache served fathom.
fn own_flows(case: &Case, kind: Kind, sides: Sides, flows: Flows) -> Known<Flows> {
    let upper_bytes = flows.upper.bytes;
    if (flows.lower.bytes as f64 - upper_bytes as f64).abs() <= SAME_BYTES_WITHIN * upper_bytes as f64 {
        return Ok(flows);
    }
    let (mut upper, mut lower) = (BlockFlow::default(), BlockFlow::default());
    for layer in sides.upper {
        let done = flow_of(&case.layer_io(&[layer])?, kind);
        let own = charged(case, kind, layer, done.bytes).unwrap_or(done.bytes);
        upper = upper.plus(&at_most(done, own));
    }
    for layer in sides.lower {
        let done = flow_of(&case.layer_io(&[layer])?, kind);
        let own = if is_below_cached_image(case, layer) {
            charged(case, kind, layer, done.bytes.min(upper_bytes)).map_err(|why| {
                format!(
                    "{} did {} of {}s, perhaps for other processes, while the page cache of a loop device's \
                     image may have served fathom: {why}",
                    layer.name,
                    show_bytes(done.bytes),
                    kind.word()
                )
            })?
        } else {
            done.bytes
        };
        lower = lower.plus(&at_most(done, own));
    }
    // The kernel charges split operations twice, so the bytes issued are the upper limit.
    let issued = Some(case.issued(kind).bytes).filter(|bytes| *bytes > 0);
    Ok(Flows { upper: at_most(upper, issued.unwrap_or(upper.bytes)), lower })
}

/// Limits a flow to `bytes` and scales its request count in proportion.
fn at_most(done: BlockFlow, bytes: u64) -> BlockFlow {
    let part = share(bytes as f64, done.bytes as f64).min(1.0);
    BlockFlow { bytes: done.bytes.min(bytes), ios: (done.ios as f64 * part) as u64, ..done }
}

/// Returns the bytes that the kernel charged to fathom on a layer, of the `possible` bytes that can be fathom's.
///
/// # Errors
///
/// Fails if almost nothing was charged, or if only a part of the writes was: some are written back
/// later and charged to no process.
fn charged(case: &Case, kind: Kind, layer: &Layer, possible: u64) -> Known<u64> {
    let own = case.charged_on(&[layer])?.bytes[cgroup_slot(kind)];
    let least = if kind == Kind::Write { ARRIVED_FROM.0 } else { MIN_CHARGED_SHARE };
    if (own as f64) < least * possible as f64 {
        let (own, possible) = (show_bytes(own), show_bytes(possible));
        return Err(format!("only {own} of {possible} were charged to fathom's cgroup"));
    }
    Ok(own)
}

/// Whether a loop device above this disk uses, or may use, the page cache for its image.
fn is_below_cached_image(case: &Case, disk: &Layer) -> bool {
    let in_place = |place: &Place| {
        let mut over = BTreeSet::new();
        // Layers come before the layers below them, so the reverse order starts at the disks.
        place.layers.iter().enumerate().rev().any(|(i, layer)| {
            let is_over = layer.below.iter().any(|below| over.contains(below));
            if is_over || layer.stat_file == disk.stat_file {
                over.insert(i);
            }
            is_over && layer.kind == LayerKind::Loop && layer.backing_direct != Some(true)
        })
    };
    case.places().any(in_place)
}

/// The reason why the disks moved fewer bytes than the device above them.
#[derive(Clone, Copy)]
enum Why {
    Cache,
    /// This share of the device was never written, so a layer answers without the disk.
    NeverWritten(f64),
    NotKnown,
}

impl Why {
    /// Determines why the share `missing` of the work did not arrive. For `all_stored`, see [`Sides`].
    fn from_case(case: &Case, kind: Kind, missing: f64, all_stored: bool) -> Self {
        if kind != Kind::Read {
            return Self::Cache;
        }
        // For a file, its own extents decide.
        if !case.on_block_devices() {
            return if all_stored { Self::Cache } else { Self::NotKnown };
        }
        match never_written(case) {
            Some(0.0) => Self::Cache,
            Some(unwritten) if unwritten >= EXPLAINS_FROM.0 * missing => Self::NeverWritten(unwritten),
            _ => Self::NotKnown,
        }
    }
}

/// Returns the share of a loop device's image that had never been written at the start of the runs, from the image with
/// the highest share. `None` if unknown.
fn never_written(case: &Case) -> Option<f64> {
    let states = case.states(Moment::Start).ok()?;
    let unwritten_share = |state: &TargetState| {
        let extents = state.backing.as_ref()?.as_ref().ok()?;
        Some(share((extents.hole_bytes + extents.unwritten_bytes) as f64, extents.span_bytes as f64))
    };
    states.into_iter().flatten().map(unwritten_share).try_fold(0.0, |most: f64, share| Some(most.max(share?)))
}

fn layer_finding(kind: Kind, sides: Sides, flows: Flows, whose: &str, why: Why) -> Detail {
    let Flows { upper, lower } = flows;
    let (word, top, leaf) = (kind.word(), layer_names(sides.upper), layer_names(sides.lower));
    let (meaning, fix, medium) = match why {
        Why::Cache => (
            if kind == Kind::Read {
                "a cache between them served the rest".to_owned()
            } else {
                "a cache between them kept the rest, or a layer between them compressed the data".to_owned()
            },
            None,
            format!("cache below {top}"),
        ),
        Why::NeverWritten(unwritten) => (
            format!(
                "{} of {top} was never written, and reads of that part need no disk",
                show_share(unwritten)
            ),
            Some(format!("Write {top} once from end to end, or measure only a part that was written.")),
            format!("never written blocks of {top}"),
        ),
        Why::NotKnown => (
            "a cache between them served the rest, or these blocks were never written (fathom cannot tell \
             which)"
                .to_owned(),
            Some(format!(
                "Measure {leaf} itself, or write {top} once and set it up without a cache (losetup \
                 --direct-io=on)."
            )),
            format!("a layer between {top} and {leaf}"),
        ),
    };
    detail!(
        Severity::Relabels,
        evidence([
            ("top_bytes", upper.bytes as f64),
            ("leaf_bytes", lower.bytes as f64),
            ("top_ios", upper.ios as f64),
            ("leaf_ios", lower.ios as f64),
        ]),
        "{top} did {} of {word}s{whose}, and {leaf} below it only {} ({}): {meaning}.",
        show_bytes(upper.bytes),
        show_bytes(lower.bytes),
        show_share(flows.arrived())
    )
    .with_fix(fix)
    .relabelled(Rename::Medium(medium))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn never_written_blocks_are_named_instead_of_a_cache() {
    let fixture = Fixture {
        leaf_share: Some(0.0),
        role: model::plan::Role::Device,
        no_fiemap: true,
        ..Fixture::honest()
    };
    let sentence = |holes: Option<u64>| {
        let mut record = fixture.record();
        super::change_snapshots(&mut record, |s| {
            for state in &mut s.targets {
                let extents = |hole_bytes| model::evidence::Extents {
                    span_bytes: 100,
                    hole_bytes,
                    ..Default::default()
                };
                state.backing = holes.map(|h| Ok(extents(h)));
            }
        });
        match LOWER_LAYER_CACHE.answer(&record) {
            Ok(Answer::Finding(f)) => f.sentence,
            other => panic!("{other:?}"),
        }
    };
    assert!(
        sentence(Some(100)).contains("100 % of loop0 was never written")
            && !sentence(Some(100)).contains("cache")
    );
    assert!(sentence(Some(0)).contains("a cache between them served the rest."));
    assert!(
        sentence(Some(30)).contains("cannot tell which") && sentence(None).contains("cannot tell which"),
        "{}",
        sentence(None)
    );
}

#[test]
fn a_stack_without_a_cache_holds_and_a_single_disk_does_not_apply() {
    assert!(matches!(LOWER_LAYER_CACHE.answer(&Fixture::honest_loop().record()), Ok(Answer::Holds(..))));
    assert_eq!(LOWER_LAYER_CACHE.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}

#[test]
fn only_a_complete_arrival_is_called_all() {
    let arrived = |leaf_share| {
        LOWER_LAYER_CACHE.sentence(&Fixture { leaf_share: Some(leaf_share), ..Fixture::honest() }.record())
    };
    assert!(arrived(1.0).starts_with("The disks below did all of the"), "{}", arrived(1.0));
    assert!(arrived(0.97).starts_with("The disks below did 97.0 % of the"), "{}", arrived(0.97));
    assert!(arrived(0.9999).starts_with("The disks below did 99.9 % of the"), "{}", arrived(0.9999));
}

/// A second disk `vdb` next to a loop device that passes on half of its bytes. `vdb` moves `times` times as many bytes
/// as the loop device.
#[cfg(test)]
fn next_to_a_disk(times: u64) -> model::record::Record {
    let mut record = Fixture { leaf_share: Some(0.5), ..Fixture::honest() }.record();
    let place = &mut record.header.hosts[0].places[0];
    let mut disk = place.layers[1].clone();
    (disk.name, disk.number, disk.stat_file) = ("vdb".into(), "254:16".into(), "/sys/block/vdb/stat".into());
    place.layers.push(disk);
    place.tops.push(2);
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = snapshot.files["/sys/block/loop0/stat"].clone().unwrap();
        let more = text.split_whitespace().map(|w| (w.parse::<u64>().unwrap() * times).to_string());
        snapshot.files.insert("/sys/block/vdb/stat".into(), Ok(more.collect::<Vec<_>>().join(" ")));
    }
    record
}

#[test]
fn a_single_caching_layer_is_found_even_if_the_sum_of_the_chain_hides_it() {
    let Ok(Answer::Finding(f)) = LOWER_LAYER_CACHE.answer(&next_to_a_disk(12)) else { panic!("silent") };
    assert!(f.sentence.starts_with("loop0 did") && f.sentence.contains("vda below it"), "{}", f.sentence);
    assert!(
        matches!(LOWER_LAYER_CACHE.answer(&next_to_a_disk(40)), Ok(Answer::Holds(..))),
        "its share of the bytes is too small to matter"
    );
}

#[test]
fn reads_by_other_processes_below_do_not_hide_a_cache() {
    let with_other_reads =
        |fixture: &Fixture| crate::figures::traffic::with_foreign_requests(fixture, 0, 100_000);
    let cached = Fixture { leaf_share: Some(0.3), ..Fixture::honest() };
    let Ok(Answer::Finding(f)) = LOWER_LAYER_CACHE.answer(&with_other_reads(&cached)) else {
        panic!("silent")
    };
    assert!(
        f.sentence.contains("reads for fathom") && f.sentence.contains("(30 %): a cache"),
        "{}",
        f.sentence
    );
    assert!(matches!(
        LOWER_LAYER_CACHE.answer(&with_other_reads(&Fixture::honest_loop())),
        Ok(Answer::Holds(..))
    ));
    // It is unknown whether nothing arrived at the disk, or whether the kernel charges nothing there.
    let all_cached = with_other_reads(&Fixture { leaf_share: Some(0.0), ..Fixture::honest() });
    assert!(LOWER_LAYER_CACHE.answer(&all_cached).is_err_and(|why| why.contains("0 B of ")));
    let mut volume = all_cached;
    volume.header.hosts[0].places[0].layers[0].kind = LayerKind::DeviceMapper;
    assert!(
        matches!(LOWER_LAYER_CACHE.answer(&volume), Ok(Answer::Holds(..))),
        "requests are passed on as they are"
    );
    // Reads that other processes make from the loop device itself do not count either, above or below.
    let mut above = with_other_reads(&Fixture::honest_loop());
    for snapshot in above.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let more = snapshot.files["/sys/block/vda/stat"].clone();
        let Ok(more) =
            more.map(|text| text.split_whitespace().map(|w| w.parse::<u64>().unwrap()).collect::<Vec<_>>())
        else {
            continue;
        };
        let text = more.iter().map(|n| (n / 2).to_string()).collect::<Vec<_>>().join(" ");
        snapshot.files.insert("/sys/block/loop0/stat".into(), Ok(text));
    }
    assert!(
        matches!(LOWER_LAYER_CACHE.answer(&above), Ok(Answer::Holds(..))),
        "{:?}",
        LOWER_LAYER_CACHE.answer(&above)
    );
    // If other processes read less than the missing amount, the result is unchanged.
    let few = crate::figures::traffic::with_foreign_requests(&cached, 0, 10);
    assert!(matches!(LOWER_LAYER_CACHE.answer(&few), Ok(Answer::Finding(_))));
}

#[test]
fn reads_that_cannot_be_attributed_do_not_hide_missing_writes() {
    let answer = |written_below: u64| {
        // Reads of other processes at the disk, none of which was charged to fathom.
        let fixture = Fixture { leaf_share: Some(0.0), read_percent: 50, ..Fixture::honest() };
        let mut record = crate::figures::traffic::with_foreign_requests(&fixture, 0, 100_000);
        super::change_snapshots(&mut record, |s| {
            let written = |sectors: u64| if s.moment == Moment::Start { 0 } else { sectors };
            for (disk, sectors) in [("loop0", 80_000), ("vda", written_below)] {
                let file = format!("/sys/block/{disk}/stat");
                let text = s.files[&file].clone().unwrap();
                let mut fields: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
                (fields[4], fields[6]) = (written(10_000).to_string(), written(sectors).to_string());
                s.files.insert(file, Ok(fields.join(" ")));
            }
        });
        record.runs.truncate(1);
        LOWER_LAYER_CACHE.answer(&record)
    };
    let missing = answer(40_000);
    let names_both = |sentence: &str| sentence.contains("writes") && sentence.contains("compressed the data");
    assert!(matches!(&missing, Ok(Answer::Finding(f)) if names_both(&f.sentence)), "{missing:?}");
    assert!(answer(80_000).is_err_and(|why| why.contains("of reads, perhaps for other processes")));
}

#[test]
fn writes_by_other_processes_below_a_loop_device_do_not_count() {
    let cached = Fixture { leaf_share: Some(0.3), ..Fixture::honest_write() };
    assert!(
        LOWER_LAYER_CACHE
            .answer(&crate::figures::traffic::with_foreign_requests(&cached, 4, 100_000))
            .is_err()
    );
    assert!(matches!(
        LOWER_LAYER_CACHE.answer(&crate::figures::traffic::with_foreign_requests(&cached, 4, 10)),
        Ok(Answer::Finding(_))
    ));
    let stable =
        Fixture { cache: model::job::Cache::DirectDsync, leaf_share: Some(1.0), ..Fixture::honest_write() };
    assert!(matches!(
        LOWER_LAYER_CACHE.answer(&crate::figures::traffic::with_foreign_requests(&stable, 4, 3_000)),
        Ok(Answer::Holds(..))
    ));
    // The bytes that arrived were charged, the journal was not.
    let honest = Fixture { leaf_share: Some(1.0), ..Fixture::honest_write() };
    assert!(matches!(
        LOWER_LAYER_CACHE.answer(&crate::figures::traffic::with_foreign_requests(&honest, 4, 3_000)),
        Ok(Answer::Holds(..))
    ));
}

#[test]
fn an_unknown_disk_hides_no_cache_of_a_known_layer() {
    let with_unknown_disk = |leaf_share| {
        let mut record = Fixture { leaf_share: Some(leaf_share), ..Fixture::honest() }.record();
        record.header.hosts[0].places[0].unresolved_reason = Some("the other disks are hidden".into());
        LOWER_LAYER_CACHE.answer(&record)
    };
    assert!(matches!(with_unknown_disk(0.02), Ok(Answer::Finding(_))), "{:?}", with_unknown_disk(0.02));
    assert!(with_unknown_disk(1.0).is_err_and(|why| why.contains("hidden")));
}
