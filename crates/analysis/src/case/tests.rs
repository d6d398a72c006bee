//! Tests of cases from forged records: partitions, both cgroup versions, loads, and the names of results.

use super::*;

use crate::fixture::Fixture;
use model::job::{Arrivals, Pace};
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
