//! Tests of fio's trims with writes, strided zones, flow shares, and block sizes by `bssplit` and `bsrange`.

use super::{job, refused, stream};
use model::job::{Flow, Order, PerKind, Sizes, Strided};
use model::spec::Rw;
use model::spec::conditions::RateLimit;

#[test]
fn a_write_follows_each_trim_and_limits_count_both() {
    let pairs = stream("rw=trimwrite:8k bs=4k");
    assert_eq!((pairs.rw, pairs.steps.hole_bytes, pairs.passes), (Some(Rw::Trimwrite), 8192, Some(1)));
    let random = stream("rw=randtrimwrite bs=4k,4k,8k");
    assert_eq!((random.rw, random.random), (Some(Rw::Randtrimwrite), Some(Order::Once)));
    assert_eq!(random.bs, Some(PerKind::all(Sizes::Fixed(8192))), "a write has the size of its trim");
    let ends = stream("rw=trimwrite io_size=64k number_ios=3").resolved.limit;
    assert_eq!((ends.bytes, ends.operations), (Some(128 << 10), Some(6)));
    let rates = stream("rw=randtrimwrite rate_iops=10");
    assert_eq!(
        (rates.limit_iops, stream("rw=trimwrite rate=1m").limit_bandwidth),
        (Some(RateLimit::All(20.0)), Some(RateLimit::All(2_097_152.0)))
    );
    let pauses = stream("rw=trimwrite thinktime=5 thinktime_blocks=4");
    assert_eq!(pauses.burst, Some(2), "bursts are of pairs");
    let checked = job("[j]\nsize=1m\nrw=randtrimwrite\nverify=crc32c\n");
    assert_eq!((checked.phases.len(), checked.phases[1].streams[0].read_back), (2, Some(1)));
    assert_eq!(stream("rw=randtrimwrite verify=md5 verify_only").rw, Some(Rw::Randread));
    refused("rw=trimwrite bs=4k,4k,8k", &["the size of its trim"]);
    refused("rw=randtrimwrite:8", &["leave the number out"]);
    refused("rw=trimwrite io_size=2m", &["io_size=2m", "type loops"]);
    assert_eq!(stream("rw=trimwrite rate_iops=,10,20").limit_iops, Some(RateLimit::All(20.0)));
    refused("rw=trimwrite rate_iops=,20,10", &["rate_iops=,20,10", "ignores the rate of trims"]);
    refused("rw=trimwrite rate_iops=0,0,10", &["type the same rate"]);
    refused("rw=trimwrite thinktime=5", &["even thinktime_blocks"]);
}

#[test]
fn zones_are_used_one_after_another() {
    let zones = |options: &str| {
        stream(options).resolved.access.strided.map(|z| (z.bytes, z.range_bytes, z.skip_bytes))
    };
    assert_eq!(zones("zonemode=strided zonesize=64k"), Some((65_536, 65_536, 0)));
    assert_eq!(zones("zonesize=64k zonerange=128k zoneskip=4k"), Some((65_536, 131_072, 4096)));
    assert_eq!((zones("zonemode=none"), zones("zonemode=strided zonesize=64k").is_some()), (None, true));
    let moved = |options: &str| (stream(options).resolved.limit.bytes, stream(options).passes);
    // As in fio, the job moves as many bytes as the region has, in several rounds over the zones.
    assert_eq!(moved("zonesize=64k zoneskip=64k"), (Some(1 << 20), None));
    assert_eq!(moved("rw=trimwrite zonesize=64k"), (Some(2 << 20), None));
    assert_eq!(moved("zonesize=64k zoneskip=64k io_size=256k"), (Some(256 << 10), None));
    // If the end of the region cuts off a zone, the job ends there: 124 KiB after 900 KiB, and 24 KiB after 1000 KiB.
    assert_eq!(moved("zonesize=200k zoneskip=100k"), (Some(724 << 10), None));
    assert_eq!(moved("zonesize=400k zoneskip=100k"), (Some(824 << 10), None));
    assert_eq!(moved("zonesize=20k zonerange=400k zoneskip=100k bs=20k"), (Some(1020 << 10), None));
    assert_eq!(
        moved("zonesize=400k zoneskip=100k rw=randread"),
        (Some(800 << 10), None),
        "no draw is beyond"
    );
    assert_eq!(moved("zonesize=64k time_based runtime=1"), (None, None));
    // The last five bytes of the existing file would start a new zone.
    let there = job("[j]\nfilename=f\nzonesize=64k\nzoneskip=64k\n").phases.remove(0).streams.remove(0);
    assert_eq!((there.size, there.resolved.limit.bytes), (None, Some(512 << 10)));
    // The size of the file includes the bytes before the offset.
    let rest = stream("filesize=1m offset=256k zonesize=64k");
    assert_eq!(
        (rest.size, rest.resolved.access.offset_bytes, rest.create.map(|c| c.bytes)),
        (Some(768 << 10), 256 << 10, Some(1 << 20))
    );
    assert_eq!(stream("ioengine=null offset=64k").resolved.access.offset_bytes, 64 << 10);
    assert_eq!(
        stream("zonesize=64k").resolved.access.strided,
        Some(Strided { bytes: 65_536, range_bytes: 65_536, skip_bytes: 0 })
    );
    for (options, words) in [
        ("zonemode=zbd", "zoned devices"),
        ("zonemode=zbd zonesize=1m", "zoned devices"),
        ("zonemode=foo zonesize=1m", "type none or strided"),
        ("zonemode=strided", "zonesize=256m"),
        ("zonemode=none zonesize=1m", "zonemode=strided"),
        ("zonerange=1m", "type zonemode=strided and zonesize"),
        ("zoneskip=1m", "type zonemode=strided and zonesize"),
        ("zonesize=64k nrfiles=2", "a single file"),
        ("zonesize=64k rw=read:4k", "number out"),
        ("zonesize=64k rw=randread random_distribution=zipf:1.1", "uniform"),
        ("zonesize=6k", "the end of a zone"),
        ("rw=trimwrite zonesize=64k zonerange=32k", "both directions"),
        ("rw=rw zonesize=64k zonerange=32k", "both directions"),
        ("zonesize=64k zonerange=6k", "the end of a zone"),
        ("zonesize=64k loops=2", "type io_size"),
        ("filesize=64k offset=64k", "not below filesize"),
    ] {
        refused(options, &[words]);
    }
}

#[test]
fn concurrent_jobs_have_shares_of_the_operations() {
    let flows = |text: &str| -> Vec<Option<Flow>> {
        job(text).phases.iter().flat_map(|p| &p.streams).map(|s| s.resolved.flow).collect()
    };
    let flow = |weight, group, pause_ns| Some(Flow { weight, group, pause_ns });
    let three =
        "[global]\nsize=1m\nflow_id=1\nflow_sleep=100\n[a]\nflow=1\n[b]\nflow=5\nflow_watermark=9\n[c]\n";
    assert_eq!(flows(three), [flow(1, 1, 100_000), flow(5, 1, 100_000), None]);
    assert_eq!(flows("[a]\nsize=1m\nflow=2\n"), [None], "there is no other job");
    assert_eq!(flows("[a]\nsize=1m\nflow=2\n[b]\nstonewall\nsize=1m\nflow=2\n"), [None, None]);
    assert_eq!(flows("[a]\nsize=1m\nflow=2\n[b]\nsize=1m\nflow=2\nflow_id=3\n"), [None, None]);
    assert_eq!(flows("[a]\nsize=1m\nflow=2\nnumjobs=2\ngroup_reporting\n"), [flow(2, 0, 0)]);
    refused("flow=1001", &["0 to 1000"]);
}

#[test]
fn block_sizes_have_the_percentages_of_fio() {
    let sizes = |options: &str| stream(&format!("rw=randread norandommap {options}")).bs.map(|b| b.read);
    let split = |sizes: &[(u32, u32)]| Some(Sizes::Split(sizes.to_vec()));
    assert_eq!(
        sizes("bssplit=64k/10:4k/20:8k/0"),
        split(&[(65_536, 10), (4096, 20), (8192, 70)]),
        "0 means no percentage"
    );
    assert_eq!(sizes("bssplit=4k/10:8k/30"), split(&[(4096, 10), (8192, 90)]), "the largest has the rest");
    assert_eq!(sizes("bssplit=8k/30:4k/10"), split(&[(8192, 90), (4096, 10)]), "in any position");
    assert_eq!(sizes("bssplit=4k/33.3:8k/66.7"), split(&[(4096, 33), (8192, 67)]), "whole percent");
    assert_eq!(sizes("bssplit=4k-8k/40:16k/60"), split(&[(4096, 40), (16_384, 60)]), "the first of a range");
    assert_eq!(sizes("bssplit=4k/50:8k/70"), split(&[(4096, 50), (8192, 50)]), "no more than 100");
    assert_eq!(sizes("bssplit=64k/1"), Some(Sizes::Fixed(65_536)));
    assert_eq!(sizes("bssplit=4k/50:5k/20:9k/30"), split(&[(4096, 70), (8192, 30)]));
    refused("bssplit=4k/x:8k/70", &["is not a number"]);
    assert_eq!(sizes("bssplit=4k/50:5k/50 bs_unaligned"), split(&[(4096, 50), (5120, 50)]));
    assert_eq!(sizes("bsrange=4k-10k"), split(&[(4096, 4096), (8192, 4096), (10_240, 2048)]));
    assert_eq!(sizes("bsrange=4k-64k"), Some(Sizes::Range(4096, 65_536)));
    refused("bssplit=4k/50:8k/70:16k", &["more than 100"]);
    refused("rw=randread bsrange=4k-64k bs_unaligned", &["bsrange=4k-64k", "leave bs_unaligned out"]);
    refused("rw=randread bsrange=512-65000", &["not a multiple"]);
    refused("rw=randread bssplit=4k/50:5k/50 bs_unaligned", &["bssplit=", "type norandommap"]);
    refused("rw=randrw bsrange=4k-10k", &["bsrange=4k-10k", "type norandommap"]);
}
