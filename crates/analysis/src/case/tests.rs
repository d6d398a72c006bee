//! Tests of cases from forged records: partitions, both cgroup versions, loads, and the names of results.

use super::*;

use crate::fixture::Fixture;
use model::evidence::RegionState;
use model::job::{Access, Arrivals, Pace};
use model::machine::Cgroup;

/// Returns the honest record on a partition of its disk. The cgroup still charges the disk.
fn on_a_partition() -> Record {
    let mut record = Fixture::honest().record();
    let place = &mut record.header.hosts[0].places[0];
    let disk = place.layers[0].clone();
    let part = Layer {
        name: "vda1".into(),
        number: "254:1".into(),
        kind: LayerKind::Partition,
        stat_file: "/sys/block/vda/vda1/stat".into(),
        queue: std::collections::BTreeMap::new(),
        below: vec![1],
        ..disk.clone()
    };
    place.layers = vec![part, disk];
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = snapshot.files["/sys/block/vda/stat"].clone();
        snapshot.files.insert("/sys/block/vda/vda1/stat".into(), text);
    }
    record
}

#[test]
fn a_partition_has_the_charges_and_the_counter_switch_of_its_disk() {
    let mut record = on_a_partition();
    let case = &cases(&record)[0];
    assert_eq!(case.own_io().map(|o| o.ios[0]), Ok(55_000));
    assert_eq!(case.device_io().map(|d| d.read.ios), Ok(55_000));
    assert_eq!(case.shared_layers().map(|l| l[0].name.clone()), Ok("vda".into()));
    record.header.hosts[0].places[0].layers[1].queue.insert("iostats".into(), "0".into());
    assert!(cases(&record)[0].device_io().is_err_and(|why| why.contains("vda/queue/iostats")));
}

#[test]
fn charges_are_read_from_version_two_as_well() {
    let own = |bytes_per_io: u64| {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].cgroup =
            Ok(Cgroup { version: 2, dir: "/c".into(), files: vec!["/c/io.stat".into()] });
        let mut ios = 0;
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let line = format!("254:0 rbytes={} wbytes=0 rios={ios} wios=0\n", ios * bytes_per_io);
            snapshot.files.insert("/c/io.stat".into(), Ok(line));
            ios += 11_000;
        }
        cases(&record)[0].own_io()
    };
    assert_eq!(own(4096).map(|o| (o.ios, o.bytes)), Ok(([55_000, 0], [55_000 * 4096, 0])));
    assert!(own(0).is_err_and(|why| why.contains("charges nothing to")));
    assert!(own(40).is_err_and(|why| why.contains("charges hardly anything to")));
}

#[test]
fn a_cgroup_without_devices_is_an_error_not_zero() {
    let record = Fixture { cgroup_counts_nothing: true, ..Fixture::honest() }.record();
    assert!(cases(&record)[0].own_io().is_err());
}

#[test]
fn each_load_is_a_case_with_its_pace_and_name() {
    let record = crate::fixture::curve(
        &Fixture::honest(),
        &[(3_000, Fixture::honest_open()), (9_000, Fixture::honest_open())],
    );
    let cases = cases(&record);
    let names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["RND4K Q32T1 read", "30 % of capacity: 3,000/s", "90 % of capacity: 9,000/s"]);
    for (case, iops) in cases[1..].iter().zip([3_000.0, 9_000.0]) {
        assert_eq!(case.stream.pace, Pace::Open { iops, arrivals: Arrivals::Poisson });
        assert_eq!(*case.stream, case.job.phases[0].streams[0]);
        assert_eq!((case.runs.len(), case.job_index, case.ends.len()), (3, 1, 3));
    }
    let mut unmeasured = record.clone();
    unmeasured.runs.truncate(3);
    assert_eq!(super::cases(&unmeasured).len(), 1, "no load was offered yet");
}

#[test]
fn extents_that_were_not_read_at_the_start_are_not_those_after_the_final_sync() {
    let why_without = |moment: Moment| {
        let mut record = Fixture::honest_write().record();
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let is_lost = snapshot.moment == moment;
            snapshot.targets.iter_mut().filter(|_| is_lost).for_each(|target| target.extents = None);
        }
        split_known(cases(&record)[0].extents_over_runs()).1.unwrap_err()
    };
    assert_eq!(why_without(Moment::Start), "the extents of the file were not read");
    assert_eq!(why_without(Moment::Synced), "the extents of the file were not read after the final sync");
}

type Change = fn(&mut RegionState);

/// A record in which the first stream touches 8 MiB of the target and another stream all bytes after them. `own` changes
/// the state of these 8 MiB from that of the whole target; with `None`, the record has no state of regions.
fn with_another_region(fixture: &Fixture, own: Option<Change>) -> Record {
    let mut record = fixture.record();
    let streams = &mut record.header.plan.jobs[0].phases[0].streams;
    streams.push(streams[0].clone());
    (streams[0].access.span_bytes, streams[1].access.offset_bytes) = (8 << 20, 8 << 20);
    let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence).chain(&mut record.evidence);
    for state in snapshots.flat_map(|s| &mut s.targets) {
        let (Some(own), Some(extents)) = (own, state.extents.clone()) else { continue };
        let probe = state.probe.clone();
        let mut region = RegionState { first_byte: 0, end_byte: 8 << 20, extents, probe };
        own(&mut region);
        state.regions.push(region);
    }
    record
}

fn answer(record: &Record, id: model::finding::CheckId) -> Known<crate::checks::Answer> {
    let answers = crate::findings::ask_all(&cases(record)[0]);
    answers.into_iter().find(|(check, _)| check.id == id).unwrap().1
}

#[test]
fn stored_data_are_those_of_the_streams_own_region() {
    use crate::checks::Answer;
    use model::finding::CheckId;
    let (read, write) = (Fixture::honest(), Fixture::honest_write());
    let holes = |r: &mut RegionState| r.extents.as_mut().unwrap().hole_bytes = 1 << 30;
    let unwritten = |r: &mut RegionState| r.extents.as_mut().unwrap().unwritten_bytes = 1 << 30;
    let encoded = |r: &mut RegionState| r.extents.as_mut().unwrap().encoded_bytes = 1 << 30;
    let shared = |r: &mut RegionState| r.extents.as_mut().unwrap().shared_bytes = 1 << 30;
    let inline = |r: &mut RegionState| r.extents.as_mut().unwrap().inline_bytes = 1 << 30;
    let zeros = |r: &mut RegionState| {
        r.probe.iter_mut().flatten().for_each(|p| p.zero_blocks = p.first_ns.len() as u64);
    };
    let slow = |r: &mut RegionState| {
        r.probe.iter_mut().flatten().for_each(|p| p.first_ns.iter_mut().for_each(|ns| *ns *= 9));
    };
    let changes: [(CheckId, &Fixture, Change); 8] = [
        (CheckId::A04, &read, holes),
        (CheckId::A04, &read, unwritten),
        (CheckId::A05, &read, zeros),
        (CheckId::A06, &read, inline),
        (CheckId::A07, &read, encoded),
        (CheckId::A17, &read, slow),
        (CheckId::A21, &write, shared),
        (CheckId::B16, &write, unwritten),
    ];
    for (id, fixture, change) in changes {
        let found = answer(&with_another_region(fixture, Some(change)), id);
        assert!(matches!(found, Ok(Answer::Finding(_))), "{id}: {found:?}");
        let found = answer(&with_another_region(fixture, Some(|_| ())), id);
        assert!(matches!(found, Ok(Answer::Holds(..))), "{id}: {found:?}");
        // As in sessions of earlier versions, and beyond the maximum number of regions.
        let found = answer(&with_another_region(fixture, None), id);
        assert!(
            found.as_ref().is_err_and(|why| why.contains("the regions of all streams")),
            "{id}: {found:?}"
        );
    }
    // The first stream's region as a turn of one stream, next to a turn in the other bytes.
    let turns = |fixture: &Fixture, own: Option<Change>| {
        let mut record = with_another_region(fixture, own);
        let streams = &mut record.header.plan.jobs[0].phases[0].streams;
        let other = streams.pop().unwrap();
        let turn = |access: &model::job::Access| model::job::Turn {
            operations: 400,
            turns: 1,
            access: access.clone(),
            flush: None,
        };
        streams[0].turns = vec![turn(&other.access), turn(&streams[0].access)];
        (streams[0].access, _) = model::job::Turn::summarize(&streams[0].turns);
        record
    };
    for (id, fixture) in [(CheckId::A04, &read), (CheckId::B16, &write)] {
        let found = answer(&turns(fixture, Some(unwritten)), id);
        assert!(matches!(found, Ok(Answer::Finding(_))), "{id}: {found:?}");
        let found = answer(&turns(fixture, None), id);
        assert!(found.as_ref().is_err_and(|why| why.contains("the regions of all")), "{id}: {found:?}");
    }

    let mut before_runs = with_another_region(&read, Some(holes));
    before_runs.runs.clear();
    assert!(matches!(answer(&before_runs, CheckId::A04), Ok(Answer::Finding(_))));

    // The whole target is the region of the first stream.
    let mut record = with_another_region(&read, None);
    let access = &mut record.header.plan.jobs[0].phases[0].streams[0].access;
    access.span_bytes = record.header.plan.targets[0].bytes;
    for id in [CheckId::A04, CheckId::A05] {
        assert!(matches!(answer(&record, id), Ok(Answer::Holds(..))), "{id}");
    }
    // Only the first stream reads, so the probe is of its region.
    let mut record = with_another_region(&read, None);
    let write =
        Fixture::honest_write().record().header.plan.jobs.remove(0).phases.remove(0).streams.remove(0);
    let other = &mut record.header.plan.jobs[0].phases[0].streams[1];
    *other = Stream { access: Access { offset_bytes: 8 << 20, ..write.access }, ..other.clone() };
    assert!(matches!(answer(&record, CheckId::A05), Ok(Answer::Holds(..))));
    assert!(answer(&record, CheckId::A04).is_err());
}

#[test]
fn counters_that_were_switched_off_during_a_run_are_invalid() {
    use model::evidence::Moment;
    for (moment, text, counts) in
        [(Moment::Stop, "0\n", false), (Moment::During, "0\n", false), (Moment::Start, "1\n", true)]
    {
        let mut record = Fixture::honest_loop().record();
        let evidence = &mut record.runs[1].evidence;
        let mut snapshot = evidence.iter().find(|s| s.moment == Moment::Start).unwrap().clone();
        snapshot.moment = moment;
        snapshot.files.insert("/sys/block/loop0/queue/iostats".into(), Ok(text.into()));
        evidence.retain(|s| s.moment != moment);
        evidence.push(snapshot);
        let device = cases(&record)[0].device_io();
        assert_eq!(device.is_ok(), counts, "{moment:?}: {device:?}");
        assert!(counts || device.is_err_and(|why| why.contains("loop0/queue/iostats was 0 during run 2")));
    }
    // Without counters, nothing shows that buffered writes stayed in memory.
    let fixture = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..Fixture::honest_write() };
    let mut record = fixture.record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert("/sys/block/vda/queue/iostats".into(), Ok("0\n".into()));
    }
    let answered = crate::findings::ask(cases(&record).remove(0));
    let found = answered.finding(model::finding::CheckId::A09);
    assert!(found.is_none(), "{found:?}");
}
