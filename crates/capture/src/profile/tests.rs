//! A known load and its profile.

use super::*;
use model::captured::Partition;
use trace::row::{Flags, Task};

/// The profile of a load with a request every 100 us. One request in three is a write of 16 KiB, the others are reads of 4 KiB. Each
/// request takes 50 us.
fn profile_of_load(filter: &RequestFilter) -> Profile {
    let mut names = Names::default();
    let [read, write] = ["RS", "WFS"].map(|rwbs| names.flags(&Flags::parse(rwbs)));
    let asked = names.flags(&Flags { kind: RowKind::RequestedFlush, ..Flags::parse("FWS") });
    let flush = names.flags(&Flags::parse("FF"));
    let task = |name: &str, tid| Task { tid, pid: Some(tid), name: name.into(), ..Task::default() };
    let [reader, writer] = [task("reader", 1), task("kworker/0:1", 2)].map(|task| names.task(&task));
    let mut rows = Vec::new();
    for at in 0..3000_u64 {
        let (flags, task, sectors) = if at % 3 == 2 { (write, writer, 32) } else { (read, reader, 8) };
        let row = Row { issue_ns: at * 100_000, latency_ns: Some(50_000), queued_ns: None, ..Row::default() };
        rows.push(Row { sector: at * 1024, sectors, flags, task, ..row });
        if at % 1000 == 0 {
            rows.push(Row { flags: asked, task: writer, ..row });
            rows.push(Row { flags: flush, task: writer, ..row });
        }
    }
    let partition = Some(Partition { sectors: 3000 * 1024, ..Partition::default() });
    let mut profiler = Profiler::new(&Origin { partition, ..Origin::default() }, filter);
    profiler.add(&rows, &names);
    profiler.finish(Some(300_000_000), &names)
}

#[test]
fn a_known_load_has_its_figures() {
    let profile = profile_of_load(&RequestFilter::default());
    assert_eq!((profile.requests, profile.duration_ns, profile.late), (3003, 300_000_000, 0));
    let [read, write, flush] = &profile.operations[..] else { panic!("{profile:?}") };
    assert_eq!((read.op, read.requests, read.bytes), (Op::Read, 2000, 2000 * 4096));
    assert_eq!((write.fua, write.synchronous, flush.requests), (1000, 1000, 3));
    let sizes = write.sizes.clone().unwrap_or_default();
    assert_eq!((sizes.min, sizes.max, sizes.frequent.len()), (16_384, 16_384, 1));
    assert_eq!(flush.sizes, None);
    assert!((read.iops - 2000.0 / 0.3).abs() < 1e-6);
    let p50 = read.latency_ns.as_ref().and_then(|latency| latency.percentiles["50"]);
    assert_eq!(p50, Some(50_000));
    assert_eq!(profile.footprint.bytes, 2000 * 4096 + 1000 * 16_384);
    assert!((0.45..0.55).contains(&profile.footprint.half_of_requests_in.unwrap_or(0.0)));
    let depth = profile.depth.unwrap_or_default();
    assert!((depth.mean - 0.5).abs() < 0.01 && depth.max == 2, "{depth:?}");
    assert_eq!(profile.of_kernel_workers, 1003);
    assert_eq!((profile.flushes.at_device, profile.flushes.requested), (3, 3));
    assert!((profile.flushes.tasks[0].writes_per_flush - 1000.0 / 3.0).abs() < 1e-6);
    let think = profile.tasks[0].think_ns.as_ref().map(|think| (think.min, think.max));
    assert_eq!((profile.tasks[0].name.as_str(), think), ("reader", Some((50_000, 150_000))));
    assert_eq!(profile.tasks[1].think_ns, None, "a kernel worker waits for other tasks");
}

#[test]
fn a_filter_applies_to_all_figures() {
    let half =
        RequestFilter { from_ns: Some(150_000_000), task: Some("reader".into()), ..RequestFilter::default() };
    let profile = profile_of_load(&half);
    assert_eq!((profile.requests, profile.duration_ns, profile.operations.len()), (1000, 150_000_000, 1));
    assert_eq!((profile.tasks.len(), profile.flushes.at_device), (1, 0));
    let unknown =
        profile_of_load(&RequestFilter { task: Some("unknown".into()), ..RequestFilter::default() });
    assert_eq!((unknown.requests, unknown.operations.len()), (0, 0));
}

#[test]
fn a_flush_of_a_device_without_requests_is_its_owners() {
    let mut names = Names::default();
    let [flush, commit, fua, plain] =
        ["FWS", "FWFS", "WFS", "WS"].map(|rwbs| names.flags(&Flags::parse(rwbs)));
    let task = names.task(&Task { tid: 7, name: "postgres".into(), ..Task::default() });
    let mut profiler =
        Profiler::new(&Origin { unit: RowUnit::Bios, ..Origin::default() }, &RequestFilter::default());
    let row = |flags, sectors| Row { flags, task, sectors, latency_ns: Some(5), ..Row::default() };
    profiler.add(&[row(flush, 0), row(commit, 8), row(fua, 8), row(plain, 8)], &names);
    let profile = profiler.finish(None, &names).flushes;
    assert_eq!((profile.at_device, profile.requested, profile.with_data), (1, 1, 2));
    assert_eq!((profile.tasks[0].name.as_str(), profile.tasks[0].requested), ("postgres", 3));
}
