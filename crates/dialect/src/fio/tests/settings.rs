//! Settings that are one of ours by another name, each typed as job files type it.
//!
//! For: what becomes of them. Not for: what goes together, and what is refused ([`super`]).

use super::{job, refused, stream};
use model::job::{Batch, Content, Create, Filling, MemoryNodes, Sharing};
use model::typed::{LogKind, LogValue, Logs};

/// The logs of a job with these options.
#[track_caller]
fn logs(options: &str) -> Logs {
    let job = job(&format!("[j]\nsize=1m\n{}\n", options.replace(' ', "\n")));
    job.typed.and_then(|typed| typed.phases[0][0].logs.clone()).unwrap_or_default()
}

#[test]
fn files_and_what_is_made_of_them() {
    let each = stream("nrfiles=2 filesize=64k");
    assert_eq!((each.size, each.limit.bytes), (Some(64 << 10), Some(1 << 20)), "the size is what is moved");
    assert_eq!(stream("nrfiles=2 file_service_type=random").sharing, Some(Sharing::Random));
    let filling = |options: &str| stream(options).create.map(|create: Create| create.filling);
    assert_eq!(filling("rw=write fallocate=none"), Some(Filling::Nothing));
    assert_eq!(filling("rw=write fallocate=posix"), Some(Filling::Blocks));
    assert_eq!(filling("rw=write overwrite=1"), Some(Filling::Data));
    assert_eq!(filling("filename=f allow_file_create=0"), None);
    let thousands = job("[j]\nkb_base=1000\nsize=1m\n");
    assert_eq!(thousands.phases[0].streams[0].size, Some(1_000_000));
}

#[test]
fn times_batches_and_seeds() {
    assert_eq!(job("[j]\nsize=1m\nrandseed=7\n").seed, Some(7));
    let pauses = stream("thinktime=500 thinktime_blocks=8");
    assert_eq!((pauses.think, pauses.burst), (Some(500_000), Some(8)));
    let deep = stream("ioengine=libaio iodepth=16 iodepth_batch=8 iodepth_batch_complete_min=4");
    assert_eq!((deep.depth, deep.batch), (Some(16), Some(Batch { submit: 8, complete: 4 })));
    assert_eq!(stream("startdelay=2 time_based runtime=5").delay, Some(2_000_000_000));
    assert_eq!(job("[j]\nsize=1m\ninvalidate=0\n").cold, Some(false));
}

#[test]
fn places_and_engines() {
    let split = stream("cpus_allowed=0-2 cpus_allowed_policy=split").place;
    assert_eq!((split.cpus.as_slice(), split.split), ([0, 1, 2].as_slice(), true));
    assert_eq!(stream("cpumask=5").place.cpus, [0, 2]);
    let options = |words: &str| stream(words).engine.map(|engine| engine.options).unwrap_or_default();
    let uring = options("ioengine=io_uring fixedbufs=1 registerfiles=1 sqthread_poll=1 sqthread_poll_cpu=1");
    assert_eq!(uring.into_iter().collect::<Vec<_>>(), [("sqpoll".to_owned(), Some(1))]);
    let plain = options("ioengine=io_uring uncached=1");
    assert!(["plain-buffers", "plain-files", "dontcache"].iter().all(|name| plain.contains_key(*name)));
    assert!(options("ioengine=pvsync2 nowait=1").contains_key("nowait"));
    refused("ioengine=libaio nowait=1", &["pvsync2"]);
}

#[test]
fn numa_nodes_of_threads_and_of_memory() {
    let cpus = |words: &str| stream(words).place.cpus;
    assert_eq!(cpus("numa_cpu_nodes=1"), [2, 3]);
    assert_eq!(cpus("cpus_allowed=7 numa_cpu_nodes=0-2"), [0, 1, 4, 2, 3], "as in fio, nodes go before CPUs");
    assert_eq!(cpus("numa_cpu_nodes=all"), [0, 1, 4, 2, 3]);
    refused("numa_cpu_nodes=7", &["there is no such NUMA node", "type one of 0-2"]);
    refused("numa_cpu_nodes=2", &["no CPUs"]);
    refused("numa_cpu_nodes=!0", &["!0", "such as 0-1"]);
    let memory = |words: &str| stream(words).place.memory;
    assert_eq!(memory("numa_cpu_nodes=1 numa_mem_policy=bind:0"), Some(MemoryNodes::Bind(vec![0])));
    assert_eq!(memory("numa_mem_policy=prefer:1"), Some(MemoryNodes::Prefer(1)));
    assert_eq!(memory("numa_mem_policy=local"), Some(MemoryNodes::Local));
    for words in ["interleave", "interleave:all", "interleave:0-2"] {
        let policy = memory(&format!("numa_mem_policy={words}"));
        assert_eq!(policy, Some(MemoryNodes::Interleave(vec![0, 1, 2])), "{words}");
    }
    assert_eq!((memory("numa_mem_policy=default"), memory("numa_cpu_nodes=1")), (None, None));
    refused("numa_mem_policy=prefer", &["type bind:0-1, prefer:0"]);
    refused("numa_mem_policy=local:0", &["local:0"]);
}

#[test]
fn engines_that_move_no_data_and_one_that_joins_neighbours() {
    let engine = |words: &str| stream(words).engine.map(|engine| engine.name).unwrap_or_default();
    assert_eq!(engine("ioengine=ftruncate rw=randwrite"), "ftruncate");
    assert_eq!(engine("ioengine=falloc rw=randtrim"), "fallocate");
    refused("ioengine=ftruncate rw=read", &["rw=read", "rw=write or randwrite"]);
    let joined = stream("ioengine=vsync iodepth=8 iodepth_batch=4");
    assert_eq!((joined.depth, joined.batch), (Some(8), Some(Batch { submit: 4, complete: 1 })));
    assert_eq!(joined.engine.map(|engine| engine.name).as_deref(), Some("preadv"));
}

#[test]
fn data_that_are_written() {
    assert_eq!(stream("rw=write zero_buffers=1").zeros, Some(true));
    let data = stream("rw=write buffer_compress_percentage=60 dedupe_percentage=30");
    assert_eq!((data.compress, data.dedup), (Some(60), Some(30)));
    assert_eq!(stream("rw=read buffer_compress_percentage=60").compress, None, "nothing is written");
    let set = |words: &str| stream(&format!("rw=write dedupe_percentage=30 {words}")).dedup_set;
    let half = "dedupe_mode=working_set dedupe_working_set_percentage=50";
    assert_eq!(
        (set(half), set("dedupe_mode=working_set")),
        (Some(1 << 19), Some(49152)),
        "of 1 MiB; 5 % if unsaid"
    );
    assert_eq!((set("dedupe_mode=repeat"), stream(half).dedup_set), (None, None));
    refused(&format!("rw=write dedupe_percentage=60 {half}"), &["100 together"]);
    refused("rw=write dedupe_percentage=60 dedupe_mode=other", &["repeat or working_set"]);
    let pattern = stream("rw=write buffer_pattern=0xff").verify.map(|verify| verify.content);
    assert!(matches!(pattern, Some(Content::Pattern { .. })), "{pattern:?}");
}

#[test]
fn logs_and_what_stands_in_them() {
    let kinds = |logs: &Logs| logs.files.iter().map(|(kind, _)| *kind).collect::<Vec<_>>();
    let clat = logs("write_lat_log=x disable_lat=1 disable_slat=1");
    assert_eq!((kinds(&clat), clat.together), (vec![LogKind::Clat], false));
    assert_eq!(kinds(&logs("write_lat_log=x disable_clat=1 disable_slat=1")), [LogKind::Lat]);
    assert!(logs("write_bw_log=x per_job_logs=0").together);
    let averaged = logs("write_bw_log=x write_iops_log=x log_avg_msec=1000 bwavgtime=250 iopsavgtime=500");
    assert_eq!((averaged.latency_ms, averaged.bandwidth_ms, averaged.iops_ms), (1000, 250, 500));
    let coarse = logs("write_hist_log=x log_hist_msec=100 log_hist_coarseness=3");
    assert_eq!((coarse.histogram_ms, coarse.coarseness), (100, 3));
    refused("write_hist_log=x log_hist_msec=100 log_hist_coarseness=7", &["0 to 6"]);
    for (said, value) in [
        ("log_max_value=1", LogValue::Largest),
        ("log_window_value=both", LogValue::Both),
        ("log_window_value=avg", LogValue::Mean),
    ] {
        assert_eq!(logs(&format!("write_lat_log=x log_avg_msec=100 {said}")).value, value, "{said}");
    }
    assert!(logs("write_lat_log=x log_offset=1 log_issue_time=1").issue_time);
    refused("write_lat_log=x log_issue_time=1", &["log_offset=1"]);
    assert!(logs("write_lat_log=x log_unix_epoch=1").unix_epoch);
    assert!(logs("write_lat_log=x log_alternate_epoch=1").unix_epoch);
}
