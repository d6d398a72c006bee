//! Tests of fio's options that correspond to one setting of fathom.

use super::{job, refused, stream};
use model::job::{Arrivals, Batch, Content, Create, Filling, IoPriority, MemoryNodes, Mix, Sharing};
use model::spec::conditions::RateLimit;
use model::spec::{LogKind, LogValue, Logs};

/// The logs of a job with these options.
#[track_caller]
fn logs(options: &str) -> Logs {
    let job = job(&format!("[j]\nsize=1m\n{}\n", options.replace(' ', "\n")));
    job.typed.and_then(|typed| typed.phases[0][0].logs.clone()).unwrap_or_default()
}

#[test]
fn file_options_become_settings() {
    let each = stream("nrfiles=2 filesize=64k");
    assert_eq!(
        (each.size, each.resolved.limit.bytes),
        (Some(64 << 10), Some(128 << 10)),
        "no more than the files have"
    );
    assert_eq!(stream("filesize=4m size=3m loops=2").resolved.limit.bytes, Some(6 << 20), "of all loops");
    assert_eq!(stream("nrfiles=2 file_service_type=random").resolved.sharing, Sharing::Random);
    let filling = |options: &str| stream(options).create.map(|create: Create| create.filling);
    assert_eq!(filling("rw=write fallocate=none"), Some(Filling::Nothing));
    assert_eq!(filling("rw=write fallocate=posix"), Some(Filling::Blocks));
    assert_eq!(filling("rw=write fallocate=truncate"), Some(Filling::Hole));
    assert_eq!(filling("rw=write fallocate=keep"), Some(Filling::Reserved));
    assert_eq!(filling("rw=write overwrite=1"), Some(Filling::Data));
    assert_eq!(filling("filename=f allow_file_create=0"), None);
    assert_eq!(filling("rw=write create_on_open=1 overwrite=1"), Some(Filling::Nothing));
    refused("rw=read create_on_open=1", &["an empty file", "leave create_on_open out"]);
    assert_eq!(
        (stream("rw=write ba=64k").line.align_bytes, stream("rw=randwrite ba=64k").line.align_bytes),
        (0, 64 << 10),
        "only random offsets are aligned"
    );
    let thousands = job("[j]\nkb_base=1000\nsize=1m\n");
    assert_eq!(thousands.phases[0].streams[0].size, Some(1_000_000));
}

#[test]
fn times_batches_and_seeds_become_settings() {
    assert_eq!(job("[j]\nsize=1m\nrandseed=7\n").seed, Some(7));
    let pauses = stream("thinktime=500 thinktime_blocks=8");
    assert_eq!((pauses.think.clone(), pauses.burst), (Some(model::job::Think::fixed(500_000)), Some(8)));
    let deep = stream("ioengine=libaio iodepth=16 iodepth_batch=8 iodepth_batch_complete_min=4");
    assert_eq!((deep.depth, deep.batch), (Some(16), Some(Batch { submit: 8, complete: 4 })));
    assert_eq!(stream("startdelay=2 time_based runtime=5").resolved.delay_ns, 2_000_000_000);
    assert_eq!(job("[j]\nsize=1m\ninvalidate=0\n").cold, Some(false));
    let read_before = job("[j]\nsize=1m\npre_read=1\n");
    assert_eq!(read_before.cold, Some(false));
    assert!(read_before.typed.is_some_and(|typed| typed.phases[0][0].pre_reads));
}

#[test]
fn files_are_evicted_before_each_further_pass() {
    let evicted = |options: &str| stream(options).has("evict-each-pass");
    let timed = "time_based runtime=1";
    for options in ["rw=read", "rw=rw", "rw=write", "rw=randread", "rw=read ioengine=io_uring iodepth=8"] {
        assert!(evicted(&format!("{options} {timed}")), "{options}");
        assert!(!evicted(options), "{options}");
    }
    assert!(evicted("rw=read loops=2") && evicted("rw=write io_size=3m") && !evicted("rw=read io_size=512k"));
    assert!(
        !evicted("rw=read io_size=768k numjobs=4 group_reporting"),
        "each of them reads less than its file"
    );
    for options in [
        "rw=read invalidate=0",
        "rw=read direct=1",
        "rw=read ioengine=mmap",
        "rw=read:4k",
        "rw=randread norandommap",
        "rw=randread random_distribution=zipf:1.1",
        "rw=read ioengine=null",
    ] {
        assert!(!evicted(&format!("{options} {timed}")), "{options}");
    }
}

#[test]
fn cpus_and_engines_become_settings() {
    let split = stream("cpus_allowed=0-2 cpus_allowed_policy=split").resolved.place;
    assert_eq!((split.cpus.as_slice(), split.split), ([0, 1, 2].as_slice(), true));
    assert_eq!(stream("cpumask=5").resolved.place.cpus, [0, 2]);
    let options = |options: &str| stream(options).engine.map(|engine| engine.options).unwrap_or_default();
    let uring = options("ioengine=io_uring fixedbufs=1 registerfiles=1 sqthread_poll=1 sqthread_poll_cpu=1");
    assert_eq!(uring.into_iter().collect::<Vec<_>>(), [("sqpoll".to_owned(), Some(1))]);
    let plain = options("ioengine=io_uring uncached=1");
    assert!(["plain-buffers", "plain-files", "dontcache"].iter().all(|name| plain.contains_key(*name)));
    assert!(options("ioengine=pvsync2 nowait=1").contains_key("nowait"));
    refused("ioengine=libaio nowait=1", &["pvsync2"]);
    for options in
        ["cpus_allowed=0,16", "cpumask=0x10001", "ioengine=io_uring sqthread_poll=1 sqthread_poll_cpu=16"]
    {
        refused(options, &["there is no CPU 16", "type some of 0-15"]);
    }
}

#[test]
fn files_of_a_range_have_the_sizes_that_fio_draws() {
    let kib = |stream: &model::spec::StreamSpec| {
        stream.create_bytes.iter().map(|bytes| bytes >> 10).collect::<Vec<_>>()
    };
    let five = stream("nrfiles=5 filesize=4k-64k");
    assert_eq!((kib(&five), five.passes), (vec![12, 20, 20, 56, 48], Some(1)));
    let limited = stream("nrfiles=3 filesize=64k-256k size=200k");
    assert_eq!((kib(&limited), limited.resolved.limit.bytes), (vec![88, 120, 120], Some(200 << 10)));
    let two = job("[j]\nnrfiles=3\nfilesize=64k-128k\nnumjobs=2\n");
    let two: Vec<_> = two.phases[0].streams.iter().map(kib).collect();
    assert_eq!(two, [[72, 80, 80], [80, 116, 72]]);
    refused("filename=f filesize=4k-64k", &["the size of f is not in this range"]);
    refused("filesize=4k-64k size=50%", &["instead of a percentage"]);
}

#[test]
fn a_sync_that_is_always_due_with_an_fsync_is_left_out() {
    let syncs = |options: &str| {
        let stream = stream(&format!("rw=write {options}"));
        (stream.fsync.map(|every| every.writes), stream.fdatasync.map(|every| every.writes))
    };
    assert_eq!((syncs("fsync=2 fdatasync=4"), syncs("fdatasync=4")), ((Some(2), None), (None, Some(4))));
}

#[test]
fn numa_nodes_of_threads_and_memory_become_settings() {
    let cpus = |options: &str| stream(options).resolved.place.cpus;
    assert_eq!(cpus("numa_cpu_nodes=1"), [2, 3]);
    assert_eq!(cpus("cpus_allowed=7 numa_cpu_nodes=0-2"), [0, 1, 4, 2, 3], "as in fio, nodes go before CPUs");
    assert_eq!(cpus("numa_cpu_nodes=all"), [0, 1, 4, 2, 3]);
    refused("numa_cpu_nodes=7", &["there is no such NUMA node", "the nodes are: 0-2"]);
    refused("numa_cpu_nodes=2", &["no CPUs"]);
    refused("numa_cpu_nodes=!0", &["!0", "such as 0-1"]);
    let memory = |options: &str| stream(options).resolved.place.memory;
    assert_eq!(memory("numa_cpu_nodes=1 numa_mem_policy=bind:0"), Some(MemoryNodes::Bind(vec![0])));
    assert_eq!(memory("numa_mem_policy=prefer:1"), Some(MemoryNodes::Prefer(1)));
    assert_eq!(memory("numa_mem_policy=local"), Some(MemoryNodes::Local));
    for options in ["interleave", "interleave:all", "interleave:0-2"] {
        let policy = memory(&format!("numa_mem_policy={options}"));
        assert_eq!(policy, Some(MemoryNodes::Interleave(vec![0, 1, 2])), "{options}");
    }
    assert_eq!((memory("numa_mem_policy=default"), memory("numa_cpu_nodes=1")), (None, None));
    refused("numa_mem_policy=prefer", &["type bind:0-1, prefer:0"]);
    refused("numa_mem_policy=local:0", &["local:0"]);
}

#[test]
fn engines_without_data_and_vsync_become_settings() {
    let engine = |options: &str| stream(options).engine.map(|engine| engine.name).unwrap_or_default();
    assert_eq!(engine("ioengine=ftruncate rw=randwrite"), "ftruncate");
    assert_eq!(engine("ioengine=falloc rw=randtrim"), "fallocate");
    refused("ioengine=ftruncate rw=read", &["rw=read", "rw=write or randwrite"]);
    let joined = stream("ioengine=vsync iodepth=8 iodepth_batch=4");
    assert_eq!((joined.depth, joined.batch), (Some(8), Some(Batch { submit: 4, complete: 1 })));
    assert_eq!(joined.engine.map(|engine| engine.name).as_deref(), Some("preadv"));
}

#[test]
fn data_options_become_settings() {
    assert!(stream("rw=write zero_buffers=1").zeros);
    let data = stream("rw=write buffer_compress_percentage=60 dedupe_percentage=30");
    assert_eq!((data.compress, data.dedup), (Some(60), Some(30)));
    assert_eq!(stream("rw=read buffer_compress_percentage=60").compress, None, "nothing is written");
    let set = |options: &str| stream(&format!("rw=write dedupe_percentage=30 {options}")).dedup_set;
    let half = "dedupe_mode=working_set dedupe_working_set_percentage=50";
    assert_eq!(
        (set(half), set("dedupe_mode=working_set")),
        (Some(1 << 19), Some(49152)),
        "of 1 MiB; 5 % by default"
    );
    assert_eq!((set("dedupe_mode=repeat"), stream(half).dedup_set), (None, None));
    refused(&format!("rw=write dedupe_percentage=60 {half}"), &["exceeds 100"]);
    refused("rw=write dedupe_percentage=60 dedupe_mode=other", &["repeat or working_set"]);
    let pattern = stream("rw=write buffer_pattern=0xff").resolved.verify.map(|verify| verify.content);
    assert!(matches!(pattern, Some(Content::Pattern { .. })), "{pattern:?}");
}

#[test]
fn log_options_become_settings() {
    let kinds = |logs: &Logs| logs.files.iter().map(|(kind, _)| *kind).collect::<Vec<_>>();
    let clat = logs("write_lat_log=x disable_lat=1 disable_slat=1");
    assert_eq!((kinds(&clat), clat.together), (vec![LogKind::Clat], false));
    assert_eq!(kinds(&logs("write_lat_log=x disable_clat=1 disable_slat=1")), [LogKind::Lat]);
    assert!(logs("write_bw_log=x per_job_logs=0").together);
    let names = |options: &str| logs(options).files.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(names("write_bw_log=x write_bw_log"), ["x"], "a log without a name keeps the earlier name");
    assert_eq!(names("write_bw_log write_bw_log=x write_iops_log"), ["x", "j"]);
    let averaged = logs("write_bw_log=x write_iops_log=x log_avg_msec=1000 bwavgtime=250 iopsavgtime=500");
    assert_eq!((averaged.latency_ms, averaged.bandwidth_ms, averaged.iops_ms), (1000, 250, 500));
    let coarse = logs("write_hist_log=x log_hist_msec=100 log_hist_coarseness=3");
    assert_eq!((coarse.histogram_ms, coarse.coarseness), (100, 3));
    refused("write_hist_log=x log_hist_msec=100 log_hist_coarseness=7", &["0 to 6"]);
    for (options, value) in [
        ("log_max_value=1", LogValue::Largest),
        ("log_window_value=both", LogValue::Both),
        ("log_window_value=avg", LogValue::Mean),
    ] {
        assert_eq!(logs(&format!("write_lat_log=x log_avg_msec=100 {options}")).value, value, "{options}");
    }
    assert!(logs("write_lat_log=x log_offset=1 log_issue_time=1").issue_time);
    refused("write_lat_log=x log_issue_time=1", &["log_offset=1"]);
    assert!(logs("write_lat_log=x log_unix_epoch=1").unix_epoch);
    assert!(logs("write_lat_log=x log_alternate_epoch=1").unix_epoch);
}

#[test]
fn rules_about_speed_become_settings() {
    let steady = |options: &str| stream(options).resolved.steady.map(|rule| rule.to_flag());
    assert_eq!(steady("ss=iops:10% ss_dur=30s ss_ramp=10").as_deref(), Some("iops:10%:30s:10s"));
    assert_eq!(steady("ss=iops:10%% ss_dur=30s").as_deref(), Some("iops:10%:30s"));
    assert_eq!(
        steady("steadystate_duration=1m").as_deref(),
        Some("iops_slope:0.01%:60s"),
        "as fio's default"
    );
    assert_eq!(steady("ss=bw:2m ss_dur=10").as_deref(), Some("bw:2097152:10s"));
    let rule = stream("ss=lat_slope:50 steadystate_duration=60 ss_interval=5")
        .resolved
        .steady
        .map(|s| (s.limit, s.count()));
    assert_eq!(rule, Some((50_000.0, 12)));
    refused("ss=iops:10%", &["ss_dur=60s"]);
    refused("ss=p99:10% ss_dur=30", &["iops, bw or lat"]);
    refused("ss=iops:0% ss_dur=30", &["iops:10%"]);
    refused("ss=iops:1% ss_dur=1", &["two values"]);
    let clones = "[j]\nsize=1m\nss=iops:10%\nss_dur=30\ngroup_reporting\nnumjobs=2\n";
    let group = job(clones);
    assert_eq!(group.phases[0].streams.len(), 1, "a group becomes steady as one");
    super::refused_file(
        &format!("{clones}[k]\nsize=1m\nss=iops:1%\nss_dur=9\ngroup_reporting\n"),
        &["new_group"],
    );
    let latency = |options: &str| stream(options).shown("max-latency");
    assert_eq!(latency("max_latency=10ms").as_deref(), Some("10.0 ms"));
    assert_eq!(latency("rw=randrw max_latency=500,500").as_deref(), Some("500 us"), "microseconds");
    assert_eq!(latency("max_latency=0"), None);
    refused("rw=randrw max_latency=500,900", &["one value for all directions"]);
    let least = |options: &str| stream(options).resolved.min_rate.map(|rule| rule.to_flag());
    assert_eq!(least("rate_min=1024").as_deref(), Some("bw:read=1024:1s"));
    assert_eq!(
        least("rw=randrw ratemin=1m,512k ratecycle=500").as_deref(),
        Some("bw:read=1048576,write=524288:0.5s")
    );
    assert_eq!(least("rw=write rate_iops_min=100").as_deref(), Some("iops:write=100:1s"));
    assert_eq!(least("rate_cycle=100 rate_min=0"), None);
    refused("rate_min=1 rate_iops_min=1", &["type rate_min or rate_iops_min"]);
    refused("rate_min=1 rate_cycle=0", &["rate_cycle"]);
    refused("rate_iops=100 rate_iops_min=101", &["limit of the rate"]);
}

#[test]
fn each_direction_has_its_own_rate() {
    let limits = |options: &str| {
        let stream = stream(options);
        let flag = |limit: Option<RateLimit>| limit.map_or(String::new(), |l| l.to_flag(|n| n.to_string()));
        [flag(stream.limit_iops), flag(stream.limit_bandwidth)]
    };
    for (options, iops, bandwidth) in [
        ("rw=randrw rate_iops=,200", "write=200", ""),
        ("rw=randrw rate_iops=0,200", "write=200", ""),
        ("rw=randrw rate_iops=200,", "read=200", ""),
        ("rw=randrw rwmixread=70 rate_iops=300,100", "read=300,write=100", ""),
        ("rw=rw bs=8k,4k rate=8m,4m", "", "read=8388608,write=4194304"),
        ("rw=randrw rate=1m bssplit=4k/50:8k/50 norandommap", "", "read=1048576,write=1048576"),
        ("rw=randread rate_iops=100,200", "100", ""),
        ("rw=randread rate_iops=,200", "", ""),
        ("rw=randwrite rate_iops=,200", "200", ""),
        // As in fio, the limit counts operations of the smallest size.
        ("rw=randread bsrange=4k-8k norandommap rate_iops=10", "", "40960"),
        ("rw=randrw bs=4k,4k bsrange=4k-4k,4k-8k norandommap rate_iops=10", "read=10", "write=40960"),
    ] {
        assert_eq!(limits(options), [iops.to_owned(), bandwidth.to_owned()], "{options}");
    }
    let mix = stream("rw=randrw rwmixread=70 rate_iops=300,100").mix;
    assert_eq!(mix, Some(Mix::from_percents(70, 0)), "the mix determines the directions");
    refused("rate=1m rate_iops=100", &["either bytes or operations"]);
    refused("rw=randrw rate_iops=,200 rate_process=poisson", &["a job for each direction"]);
    refused("rw=randrw rate_iops=,200 io_submit_mode=offload", &["a job for each direction"]);
    refused("rw=randrw rate_iops=,200 flow=2", &["a job for each direction"]);
    let overlapping = "rw=randrw rate_iops=,200 ioengine=libaio direct=1 iodepth=4 serialize_overlap=1";
    refused(overlapping, &["serialize_overlap=1", "a job for each direction"]);
    refused("rw=randrw rate_iops=200 verify=md5", &["verify=md5", "type do_verify=0"]);
    assert!(stream("rw=randrw rate_iops=200 verify=md5 do_verify=0").resolved.verify.is_some());
    assert_eq!(job("[j]\nsize=1m\nrw=randwrite\nrate_iops=200\nverify=md5\n").phases.len(), 2);
    let arrivals = stream("rw=randrw rate_iops=1000,300 rate_process=poisson");
    assert_eq!(
        (arrivals.rate, arrivals.mix.map(Mix::describe)),
        (Some(1300.0), Some("76.923077/23.076923".into()))
    );
}

#[test]
fn poisson_and_offload_are_open_loops() {
    let open = |options: &str| {
        let stream = stream(options);
        (stream.rate, stream.arrivals, stream.limit_iops.is_some() || stream.limit_bandwidth.is_some())
    };
    let poisson = Some(Arrivals::Poisson);
    assert_eq!(open("rate_iops=50 rate_process=poisson"), (Some(50.0), poisson, false));
    assert_eq!(open("rate=1m bs=4k rate_process=poisson"), (Some(256.0), poisson, false));
    let submitted = "ioengine=libaio iodepth=32 io_submit_mode=offload";
    assert_eq!(open(&format!("{submitted} rate_iops=1000")), (Some(1000.0), Some(Arrivals::Constant), false));
    assert_eq!(open(submitted), (None, None, false), "without a rate");
    assert_eq!(open("rate_iops=50"), (None, None, true));
    let both = job("[j]\nsize=1m\nrate_iops=50\nrate_process=poisson\nnumjobs=4\ngroup_reporting\n");
    assert_eq!(both.phases[0].streams[0].rate, Some(200.0), "multiplied by the clones");
    assert_eq!(open("rate=1m bsrange=4k-8k rate_process=poisson"), (Some(256.0), poisson, false));
    refused("rate=1m bsrange=4k-8k io_submit_mode=offload", &["type rate_iops"]);
    refused("iodepth=32 io_submit_mode=offload", &["type ioengine=libaio"]);
    refused("rate_iops=50 rate_process=uniform", &["linear or poisson"]);
    refused("rate_iops=50 rate_process=poisson thinktime=1", &["does not combine pauses and rates"]);
}

#[test]
fn a_latency_target_chooses_the_depth() {
    let target = |options: &str| stream(options).resolved.latency_target.map(|target| target.to_flag());
    let example =
        "ioengine=libaio iodepth=128 latency_target=500000 latency_window=5000000 latency_percentile=99.9";
    assert_eq!(target(example).as_deref(), Some("500000us:99.9%:5s"));
    assert_eq!(
        target("latency_target=10ms latency_window=1s latency_run=1").as_deref(),
        Some("10000us:100%:1s:run")
    );
    assert_eq!(target("latency_target=0 latency_window=1s"), None);
    refused("latency_target=500", &["latency_window=5s"]);
    refused("latency_target=500 latency_window=1s latency_percentile=101", &["latency_percentile"]);
    refused("latency_target=500 latency_window=1s rate_iops=9 rate_process=poisson", &["rate_process"]);
}

#[test]
fn tolerated_errors_overlaps_and_queues_become_settings() {
    let deep = |options: &str| {
        let stream = stream(&format!("rw=write ioengine=libaio iodepth=16 {options}"));
        (stream.has("serialize-overlap"), stream.batch.map(|batch| batch.complete))
    };
    assert_eq!(deep(""), (false, Some(1)));
    assert_eq!(deep("serialize_overlap=1 iodepth_low=4"), (true, Some(12)));
    assert_eq!(deep("iodepth_low=12 iodepth_batch_complete_min=8"), (false, Some(8)));
    assert_eq!(deep("iodepth_low=99"), (false, Some(1)));
    let serial = |options: &str| stream(&format!("{options} serialize_overlap=1")).has("serialize-overlap");
    assert!(!serial("rw=write"), "one operation overlaps none");
    assert!(!serial("rw=randread ioengine=libaio iodepth=16"), "reads do not wait for each other");
    assert!(serial("rw=randrw ioengine=libaio iodepth=16") && serial("rw=trim ioengine=io_uring iodepth=4"));
    let errors = |options: &str| stream(options).shown("max-errors");
    assert_eq!((errors(""), errors("continue_on_error=none")), (None, None));
    for options in [
        "continue_on_error=all rw=randrw",
        "continue_on_error=io",
        "continue_on_error=read",
        "continue_on_error=write rw=write",
        "continue_on_error=write rw=trim",
        "continue_on_error=write rw=trimwrite",
        "continue_on_error=verify rw=read verify=crc32c",
    ] {
        assert_eq!(errors(options).as_deref(), Some("all"), "{options}");
    }
    let ignored = |options: &str| {
        let stream = stream(options);
        assert!(!stream.has("max-errors"), "{options}");
        stream.shown("ignore-errors")
    };
    assert_eq!(ignored("continue_on_error=write rw=rw").as_deref(), Some("write:all,trim:all,sync:all"));
    assert_eq!(ignored("ignore_error=EIO:ENOSPC,28").as_deref(), Some("read:EIO,read:ENOSPC,write:ENOSPC"));
    assert_eq!((ignored("ignore_error=,,"), ignored("")), (None, None));
    refused("ignore_error=EOI", &["an error is unknown", "EIO:ENOSPC,28"]);
    refused("continue_on_error=verify", &["nothing is verified"]);
    refused("continue_on_error=some", &["type none, read"]);
}

#[test]
fn create_only_and_offset_alignment_become_settings() {
    let created = stream("create_only=1 rw=write");
    assert_eq!(
        (created.resolved.limit.operations, created.create.map(|c| c.bytes)),
        (Some(0), Some(1 << 20))
    );
    assert_eq!(stream("create_only=0").resolved.limit.operations, None);
    let offset = |options: &str| stream(&format!("filename=f size=0 {options}")).resolved.access.offset_bytes;
    assert_eq!(offset("offset=50%"), (1 << 19) + 4096);
    assert_eq!(offset("offset=10% offset_align=64k"), 128 << 10);
    assert_eq!(offset("offset=4k offset_align=64k"), 4096, "an offset in bytes is taken as it is");
}

#[test]
fn exitall_ends_other_jobs() {
    let ends = |what: &str, second: &str| {
        let spec = job(&format!(
            "[global]\nsize=1m\n[a]\nexitall\n{what}\n[b]\n{second}\n[c]\nstonewall\n[d]\nstonewall\n"
        ));
        let state = |at: usize| {
            (
                spec.phases[at].streams[0].has("ends-others"),
                spec.phases[at].streams[0].resolved.limit.operations,
            )
        };
        (state(0).0, state(1).1, state(2).1)
    };
    assert_eq!(ends("", ""), (true, None, None));
    assert_eq!(ends("exit_what=stonewall", "new_group"), (true, None, None));
    assert_eq!(ends("exit_what=group", "new_group"), (false, None, None), "it is alone in its group");
    assert_eq!(ends("exit_what=all", "new_group"), (true, Some(0), Some(0)));
    let three = "[global]\nsize=1m\n[a]\nexitall\n[b]\n[c]\nnew_group\n";
    super::refused_file(three, &["exit_what=stonewall"]);
    refused("exitall exit_what=job", &["group, stonewall or all"]);
    refused("exit_what=job", &["group, stonewall or all"]);
}

#[test]
fn a_device_is_filled_and_a_file_system_is_not() {
    let job = job("[j]\nfilename=/dev/sdx\nfill_device=1\nrw=write\n");
    let whole = &job.phases[0].streams[0];
    assert_eq!((whole.size, whole.passes, whole.create.is_none()), (None, Some(1), true));
    assert_eq!(stream("filename=missing fill_device=1 rw=write").size, Some(1 << 20), "ends at the size");
    super::refused_file("[j]\nfilename=f\nfill_device=1\nrw=write\n", &["type a size", "block device"]);
    super::refused_file(
        "[j]\nfilename=/dev/sdx:f\nfill_device=1\nrw=write\n",
        &["never fills a file system"],
    );
}

#[test]
fn options_that_change_files_have_no_effect_on_devices() {
    for options in [
        "file_append=1",
        "unlink_each_loop=1\nloops=2",
        "unlink_each_loop=1\ntime_based\nruntime=1",
        "unlink_each_loop=1\nio_size=2m",
    ] {
        let lines =
            |path: &str, options: &str| format!("[j]\nfilename={path}\n{options}\nrw=write\nsize=1m\n");
        assert_eq!(job(&lines("/dev/sdx", options)).phases.len(), 1, "{options}");
        let name = options.split('=').next().unwrap_or_default();
        super::refused_file(&lines("f", options), &[name, "remove the option"]);
        super::refused_file(&lines("/dev/sdx:f", options), &[name]);
        assert_eq!(job(&lines("f", &options.replacen("=1", "=0", 1))).phases.len(), 1, "{options}");
    }
    assert_eq!(stream("unlink_each_loop=1 loops=1 rw=write").passes, Some(1));
}

#[test]
fn single_operations_have_their_own_priorities() {
    use model::job::OpPriority;
    let priorities = |options: &str| stream(&format!("ioengine=libaio {options}")).resolved.op_priorities;
    let share = |kind, bytes, percent, priority| OpPriority { kind: Some(kind), bytes, percent, priority };
    let (read, write) = (model::job::Kind::Read, model::job::Kind::Write);
    // As in fio, real-time is the default class, and only the directions of the job have priorities.
    assert_eq!(
        priorities("rw=randread cmdprio_percentage=20"),
        [share(read, None, 20, IoPriority::Realtime(0))]
    );
    assert_eq!(
        priorities("rw=randrw cmdprio_percentage=20,30 cmdprio_class=2,1 cmdprio=3,4"),
        [share(read, None, 20, IoPriority::BestEffort(3)), share(write, None, 30, IoPriority::Realtime(4))]
    );
    assert_eq!(
        priorities("rw=randwrite cmdprio_bssplit=4k/10:64k/50/2/7:8k/0 cmdprio=1"),
        [
            share(write, Some(4096), 10, IoPriority::Realtime(1)),
            share(write, Some(65536), 50, IoPriority::BestEffort(7))
        ]
    );
    assert_eq!(priorities("rw=randread cmdprio_percentage=0"), []);
    assert_eq!(
        priorities("rw=randrw rwmixread=100 cmdprio_percentage=20"),
        [share(read, None, 20, IoPriority::Realtime(0))]
    );
    for (options, part) in [
        ("ioengine=psync cmdprio_percentage=20", "ioengine=io_uring or libaio"),
        ("ioengine=libaio cmdprio_percentage=120", "0 to 100"),
        ("ioengine=libaio cmdprio_percentage=20 cmdprio=8", "from 0 (highest) to 7"),
        ("ioengine=libaio cmdprio_percentage=20 cmdprio_class=4", "no such class"),
        ("ioengine=libaio cmdprio_percentage=20 cmdprio_bssplit=4k/10", "cannot be combined"),
        ("ioengine=libaio cmdprio_bssplit=4k/60/1/0:4k/50/1/1", "100 %"),
        ("ioengine=libaio cmdprio_bssplit=4k", "4k/20/1/0"),
        ("ioengine=libaio cmdprio_bssplit=4k/60/1/8", "from 0 (highest) to 7"),
        ("ioengine=libaio cmdprio_bssplit=4k/60/4/0", "no such class"),
    ] {
        refused(options, &[part]);
    }
}

#[test]
fn pauses_follow_times_or_operations_and_may_spin() {
    let pauses = stream(
        "thinktime=1ms thinktime_iotime=9 thinktime_spin=100 thinktime_blocks=4 thinktime_blocks_type=issue",
    );
    assert_eq!((pauses.think.clone(), pauses.burst), (Some(model::job::Think::fixed(1_000_000)), Some(4)));
    assert_eq!((pauses.burst_time, pauses.shown("think-spin")), (Some(9_000_000_000), Some("100 us".into())));
    refused("thinktime=1ms thinktime_spin=2ms", &["longer than thinktime"]);
    refused("thinktime=1ms thinktime_iotime=1 flow=1", &["type thinktime_blocks"]);
    refused("thinktime=1ms thinktime_blocks_type=each", &["complete or issue"]);
}

#[test]
fn an_identical_sequence_repeats_each_offset() {
    let repeated = stream("rw=randread:8 rw_sequencer=identical");
    assert_eq!((repeated.line.times, repeated.line.consecutive), (8, 1));
    // fio moves the size, which is an eighth of a pass.
    assert_eq!((repeated.resolved.limit.bytes, repeated.passes), (Some(1 << 20), None));
    // The option has no effect without a number in rw, or in sequential order.
    assert_eq!(stream("rw=randread rw_sequencer=identical").line.times, 1);
    assert_eq!(stream("rw=read rw_sequencer=identical").line.times, 1);
    refused("rw=randrw:8 rw_sequencer=identical", &["single direction"]);
    refused("rw=randread:8 bsrange=4k-8k rw_sequencer=identical", &["a single block size"]);
    refused("rw=randread:8 rw_sequencer=both", &["sequential or identical"]);
}

#[test]
fn a_mapping_gets_the_advice_of_fio() {
    let advice = |options: &str| {
        let engine =
            stream(&format!("ioengine=mmap {options}")).engine.unwrap_or_else(|| panic!("{options}"));
        engine.options.keys().cloned().collect::<Vec<_>>().join(" ")
    };
    let jobs =
        ["rw=read", "rw=randread", "rw=randwrite fadvise_hint=sequential", "rw=randread fadvise_hint=0"];
    assert_eq!(jobs.map(advice), ["sequential", "random", "random", ""]);
}

#[test]
fn a_mix_of_one_direction_has_the_rate_of_that_direction() {
    let limit = |options: &str| stream(options).limit_bandwidth;
    assert_eq!(limit("rw=randrw rwmixread=100 rate=1m,2m"), Some(RateLimit::All(1_048_576.0)));
    assert_eq!(limit("rw=randrw rwmixread=0 rate=1m,2m"), Some(RateLimit::All(2_097_152.0)));
    assert_eq!(limit("rw=randrw rwmixread=0 rate=1m,"), None, "the writes have none");
}

#[test]
fn messages_name_no_flags_of_fathom() {
    // Each of these options fails a check of the whole job, whose messages name settings of fathom.
    for options in
        ["rw=randread rate=1m,1m rw_sequencer=identical", "rw=read loops=2 file_service_type=random"]
    {
        let trouble = super::parsed(&format!("[j]\nsize=1m\n{}\n", options.replace(' ', "\n")));
        assert!(
            !trouble.map_or_else(|e| e.to_string(), |job| job.remarks.concat()).contains("--"),
            "{options}"
        );
    }
}

#[test]
fn files_to_make_are_announced_as_by_fio() {
    let lines = |text: &str| job(text).announcements;
    assert_eq!(lines("[a]\nsize=1500k\n"), ["a: Laying out IO file (1 file / 1MiB)"]);
    let several = "a: Laying out IO files (3 files / total 3MiB)";
    assert_eq!(lines("[a]\nsize=4m\nnrfiles=3\n"), [several]);
    let clones = "[a]\nsize=4m\nnrfiles=2\nnumjobs=2\n";
    let each = "a: Laying out IO files (2 files / total 4MiB)";
    assert_eq!(lines(clones), [each, each]);
    assert_eq!(lines(&format!("{clones}group_reporting\n")), [each, each]);
    // Clones and jobs of one file: only a larger file is announced again.
    let one = "a: Laying out IO file (1 file / 4MiB)";
    assert_eq!(lines("[a]\nfilename=t\nsize=4m\nnumjobs=3\n"), [one]);
    let both = "[a]\nfilename=t\nsize=4m\n[b]\nfilename=t\nsize=8m\n[c]\nfilename=t\nsize=8m\n";
    assert_eq!(lines(both), [one, "b: Laying out IO file (1 file / 8MiB)"]);
    assert_eq!(lines("[a]\nsize=4m\noffset=1m\n"), ["a: Laying out IO file (1 file / 5MiB)"]);
    for none in ["filename=f", "ioengine=null", "rw=write\ncreate_on_open", "filename=/dev/sdx"] {
        assert!(lines(&format!("[a]\nsize=1m\n{none}\n")).is_empty(), "{none}");
    }
}

#[test]
fn an_offset_in_percent_of_a_missing_file_that_is_used_again_is_remarked() {
    let is_remarked =
        |text: &str| job(text).remarks.iter().any(|remark| remark.contains("percentage of a missing file"));
    let one = "filesize=4m\noffset=25%\n";
    assert!(is_remarked(&format!("[a]\n{one}loops=2\n")));
    assert!(is_remarked(&format!("[a]\nfilename=t\n{one}numjobs=2\n")));
    assert!(is_remarked(&format!("[a]\nfilename=t\nsize=4m\n[b]\nfilename=t\n{one}")));
    assert!(!is_remarked(&format!("[a]\n{one}[b]\n{one}numjobs=2\n")), "own files, one pass");
    assert!(!is_remarked("[a]\nfilename=f\nsize=512k\noffset=25%\nloops=2\n"), "the file exists");
    assert!(!is_remarked("[a]\nfilesize=4m\noffset=1m\nloops=2\n"), "in bytes");
}
