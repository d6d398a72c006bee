//! The tables of fio's options and how each is handled. Job files, command lines, `--cmdhelp` and
//! docs/reference/fio.md use them. Honoured options are translated by `access.rs`
//! (directions, sizes, distributions), `files.rs`, `rates.rs`, `streams.rs` (engine, data,
//! threads, logs), `phases.rs` and `replay.rs`.

use crate::options::Form::{Microseconds, Number, Numbers, Percent, Seconds, Size, Switch};
use crate::options::{ToolOption, honoured, no_effect, only, refused};

/// Values of a switch that is off.
const OFF: &[&str] = &["0", "false"];
const MERGE: &str = "fathom does not merge traces; type one job with read_iolog for each trace instead";
const ALWAYS_MEASURED: &str = "fathom always measures every latency and every rate";
pub(super) const ZONED: &str = "fathom does not support zoned devices; remove the option";
const SPRANDOM: &str = "fathom does not precondition within a job; first fill the device with a job of rw=write and loops=2, and remove the option";
const PLACEMENT: &str = "data placement needs NVMe commands, which fathom does not send; remove the option";
const CGROUP: &str =
    "fathom has no cgroup settings; start fathom inside the cgroup that you need, and remove the option";
const USER: &str = "fathom does not change its user; start fathom with `sudo -u USER`, and remove the option";
const PACED: &str =
    "the log defines the times; type replay_time_scale=50 or replay_no_stall=1, or remove the option";

/// Every option of fio 3.33 for files and block devices, mostly in the order of its help, followed
/// by newer options, up to 3.42. The arguments of `honoured` are the name, fathom's settings, and the effect.
#[rustfmt::skip] // One line for each option.
pub const OPTIONS: &[ToolOption] = &[
    honoured("description", "", "printed in text and terse output, and as `desc` in JSON"),
    honoured("name", "", "the name of the result"),
    honoured("wait_for", "", "starts after the named job; refused if other jobs run at the same time as that job"),
    honoured("filename", "target", "files or devices, separated by `:`").ignored_in_replay(),
    only("lockfile", &["none"], "fathom does not lock files; remove the option"),
    honoured("directory", "", "directory of the files; of several, separated by `:`, each clone uses the next one"),
    honoured("filename_format", "", "file names with $jobname, $jobnum and $filenum; missing directories are created").ignored_in_replay(),
    no_effect("unique_filename", "only matters for fio's network clients"),
    refused("opendir", "fathom does not pick files from a directory; name the files with filename"),
    honoured("rw", "rw stride hole backwards positions consecutive", "access pattern; a number after the pattern is a hole, a step back, or operations per random offset; in trimwrite each write waits for its trim, and limits count pairs").also(&["readwrite"]).ignored_in_replay(),
    honoured("bs", "bs", "block size").also(&["blocksize"]).ignored_in_replay().form(Numbers),
    honoured("ba", "align", "alignment of random offsets; blocks may repeat unless the alignment is the block size").also(&["blockalign"]).ignored_in_replay().form(Numbers),
    honoured("bsrange", "bs", "range of block sizes").also(&["blocksize_range"]).ignored_in_replay(),
    honoured("bssplit", "bs", "block sizes with percentages").ignored_in_replay(),
    honoured("bs_unaligned", "", "keeps the sizes of bssplit exact; without this option they are multiples of the smallest size").also(&["blocksize_unaligned"]).value_optional().form(Switch),
    only("bs_is_seq_rand", OFF, "fathom has block sizes for directions, not for random and sequential operations; remove the option"),
    honoured("randrepeat", "", "each invocation uses the same offsets, unless the value is 0 (`--seed`)").form(Switch),
    honoured("randseed", "seed", "seed of all random numbers").form(Number),
    honoured("norandommap", "", "blocks may repeat (`--random uniform`); without this option each block comes once per pass (`--random once`)").value_optional().ignored_in_replay().form(Switch),
    no_effect("softrandommap", "fathom needs no memory for a random map"),
    honoured("ignore_error", "ignore-errors", "errors that do not end the job; fathom counts and reports them"),
    honoured("rw_sequencer", "times", "with rw=randread:8, the value `identical` uses each random offset eight times").one_of(&["sequential", "identical"], &[]).ignored_in_replay(),
    honoured("ioengine", "engine", "I/O engine"),
    honoured("iodepth", "depth", "queue depth; 1 with a synchronous engine, as in fio").form(Number),
    honoured("iodepth_batch", "batch", "operations per submission call").also(&["iodepth_batch_submit"]).form(Number),
    honoured("iodepth_batch_complete_min", "batch", "number of completions that one call waits for").also(&["iodepth_batch_complete"]).form(Number),
    no_effect("iodepth_batch_complete_max", "fathom takes all finished operations at once"),
    honoured("iodepth_low", "batch", "depth to which a full queue drains before it is refilled").form(Number),
    honoured("serialize_overlap", "serialize-overlap", "a write or trim waits for operations in flight on the same blocks; no effect in a job that only reads, as in fio").ignored_in_replay().form(Switch),
    honoured("io_submit_mode", "", "offload with a rate is an open loop (`--rate`): latency counts from the intended arrival; offload without a rate has no effect").one_of(&["inline", "offload"], &[]),
    honoured("size", "size", "size of the region and bytes to move (`--passes`, `--bytes`)").ignored_in_replay(),
    honoured("io_size", "bytes", "bytes to move").also(&["io_limit"]).ignored_in_replay().form(Size),
    honoured("fill_device", "", "uses a whole block device, or ends at the typed size; refused for files without a size, since fathom never fills a file system").also(&["fill_fs"]).form(Switch),
    honoured("filesize", "", "size of each file, or a range from which each size is drawn like in fio").ignored_in_replay(),
    honoured("file_append", "", "has no effect on block devices, as in fio; refused for files, since fathom does not append to them").form(Switch),
    honoured("offset", "offset", "first byte; a percentage of a missing file is 0, as in fio").also(&["fileoffset"]).ignored_in_replay().form(Size),
    honoured("offset_increment", "start offset", "distance between the offsets of clones").ignored_in_replay().form(Size),
    honoured("offset_align", "", "alignment of an offset that is typed in percent").ignored_in_replay().form(Number),
    honoured("number_ios", "ops", "number of operations; no effect with time_based, as in fio").no_replay("a replay ends with its log; type runtime=10, or remove the option").form(Number),
    honoured("random_generator", "", "lfsr accesses each block once even with norandommap; otherwise fathom uses its own generator").ignored_in_replay(),
    honoured("random_distribution", "random", "distribution of random offsets").ignored_in_replay(),
    honoured("percentage_random", "", "percentage of random operations (`--random mixed`), which may repeat blocks").ignored_in_replay(),
    no_effect("allrandrepeat", "one seed determines all random numbers"),
    honoured("nrfiles", "", "number of files of each clone").also(&["nr_files"]).ignored_in_replay().form(Number),
    honoured("file_service_type", "sharing", "which file is next, after N operations: roundrobin, random or sequential").ignored_in_replay(),
    honoured("openfiles", "", "number of files that are used at the same time, before the next ones are used; fathom keeps all files open").form(Number),
    honoured("fallocate", "create", "how a file that is only written is allocated: to its length, beyond its end (keep), as a hole (truncate), or not at all (none)").one_of(&["native", "posix", "keep", "truncate", "none"], &["0", "1"]).ignored_in_replay(),
    honoured("fadvise_hint", "advice", "advice to the page cache [default: 1]").one_of(&["0", "1", "random", "sequential"], &["", "true", "false", "none"]),
    honoured("fsync", "fsync", "fsync after every N writes").ignored_in_replay().form(Number),
    honoured("fdatasync", "fdatasync", "fdatasync after every N writes; if fsync is typed too, N must be a multiple of the N of fsync, and then only fsync runs, as in fio").ignored_in_replay().form(Number),
    only("write_barrier", OFF, "fathom has no barrier writes; type fsync=N or fdatasync=N"),
    refused("sync_file_range", "fathom does not flush ranges by fio's rules; type fsync=N or fdatasync=N"),
    honoured("direct", "cache", "O_DIRECT").form(Switch),
    honoured("atomic", "", "atomic writes (RWF_ATOMIC) with ioengine=io_uring, libaio or pvsync2").engines(&["libaio", "io_uring", "pvsync2"]).form(Switch),
    honoured("buffered", "cache", "through the page cache").form(Switch),
    honoured("overwrite", "", "fills new files with data before the first write").ignored_in_replay().form(Switch),
    honoured("loops", "passes", "number of passes; if the job ends after a number of bytes, multiplies that number").ignored_in_replay().form(Number),
    honoured("numjobs", "workers clones", "number of clones").also(&["thread_number"]).form(Number),
    honoured("startdelay", "delay", "time before the job starts"),
    honoured("runtime", "time", "run time").also(&["timeout"]).form(Seconds),
    honoured("time_based", "", "ends only by runtime; no effect without runtime, as in fio").value_optional().ignored_in_replay().form(Switch),
    honoured("verify_only", "", "reads and compares the blocks instead of writing them").value_optional().no_replay("fathom does not verify a replay; remove the option").form(Switch),
    honoured("ramp_time", "warmup", "time before the measured window").no_replay("every operation of a replay counts; remove the option").form(Seconds),
    no_effect("clocksource", "fathom chooses the best clock of the machine, and tests it"),
    no_effect("mem", "buffers are always aligned pages, huge ones if available").also(&["iomem"]),
    no_effect("mem_align", "buffers are aligned to pages").also(&["iomem_align", "iomemalign"]),
    honoured("verify", "verify", "compares every byte whatever the method; fio cannot verify these blocks, except with verify=pattern").no_replay("fathom does not verify a replay; remove the option"),
    honoured("do_verify", "", "reads the written blocks back after the job").form(Switch),
    no_effect("verify_interval", "fathom compares every byte"),
    no_effect("verify_offset", "blocks have no header"),
    honoured("verify_pattern", "", "pattern of the blocks (`--verify pattern`); %o is the offset of the operation"),
    honoured("verify_fatal", "", "the first difference ends the job; otherwise differences are counted, up to 1000").form(Switch),
    no_effect("verify_dump", "fathom reports the file, offset and byte of the first difference"),
    no_effect("verify_async", "workers take the timestamp of a completion before they compare its data"),
    no_effect("verify_async_cpus", "workers take the timestamp of a completion before they compare its data"),
    no_effect("verify_backlog", "fathom reads back after all writes"),
    no_effect("verify_backlog_batch", "fathom reads back after all writes"),
    no_effect("experimental_verify", "fathom generates the expected data again"),
    no_effect("verifysort", "ignored by fio since 3.7"),
    no_effect("verifysort_nr", "ignored by fio since 3.7"),
    honoured("verify_state_load", "", "reads back as many operations as the state file counts, in a job that only verifies").form(Switch),
    honoured("verify_state_save", "", "writes the state file local-NAME-N-verify.state [default: 1]").form(Switch),
    only("trim_percentage", OFF, "fathom does not trim after writes of a fio job; type rw=randtrim or randtrimwrite"),
    no_effect("trim_verify_zero", "used only with trim_percentage, which is refused"),
    no_effect("trim_backlog", "used only with trim_percentage, which is refused"),
    no_effect("trim_backlog_batch", "used only with trim_percentage, which is refused"),
    honoured("write_iolog", "", "writes the operations as an iolog of version 3, with the file names as typed").ignored_in_replay(),
    honoured("read_iolog", "replay", "replays an iolog of version 2 or 3, or a blktrace file; of several, separated by `:`, each clone uses the next one"),
    no_effect("read_iolog_chunked", "fathom reads the log during the replay"),
    honoured("replay_no_stall", "pace", "as fast as possible (`--pace fast`); otherwise an open loop whose latency counts from the times in the log").form(Switch),
    honoured("replay_redirect", "", "target of the replay; otherwise the file named in the log"),
    honoured("replay_scale", "replay-scale", "divisor of offsets, in whole sectors").form(Number),
    honoured("replay_align", "replay-align", "alignment of offsets; sizes of a trace are rounded up too, as in fio").form(Number),
    honoured("replay_time_scale", "speed", "factor of times in percent").form(Number),
    honoured("replay_skip", "replay-skip", "operations to leave out; works for iologs too, unlike in fio"),
    refused("merge_blktrace_file", MERGE),
    refused("merge_blktrace_scalars", MERGE),
    refused("merge_blktrace_iters", MERGE),
    refused("exec_prerun", "fathom runs no other programs; run the program before the job, and remove the option"),
    refused("exec_postrun", "fathom runs no other programs; run the program after the job, and remove the option"),
    refused("ioscheduler", "fathom changes no device settings; write the scheduler into /sys/block/DEVICE/queue/scheduler, and remove the option"),
    honoured("zonemode", "", "zones of a region (`--strided`); zbd is refused").one_of(&["none", "strided"], &["zbd"]).no_replay("the log defines the offsets; remove the option"),
    honoured("zonesize", "strided", "bytes to move in each zone").form(Number),
    refused("zonecapacity", ZONED),
    honoured("zonerange", "strided", "size of each zone").form(Number),
    honoured("zoneskip", "strided", "bytes to skip after each zone").form(Number),
    only("read_beyond_wp", OFF, ZONED),
    only("max_open_zones", OFF, ZONED),
    only("job_max_open_zones", OFF, ZONED),
    only("ignore_zone_limits", OFF, ZONED),
    refused("zone_reset_threshold", ZONED),
    refused("zone_reset_frequency", ZONED),
    honoured("lockmem", "", "accepted with direct=1: locked memory only shrinks the page cache, which direct I/O does not use").form(Number),
    honoured("rwmixread", "mix", "percentage of reads in a mix").ignored_in_replay().form(Percent),
    honoured("rwmixwrite", "mix", "percentage of writes in a mix").ignored_in_replay().form(Percent),
    honoured("nice", "nice", "niceness of the workers"),
    honoured("prio", "io-priority", "I/O priority").form(Number),
    honoured("prioclass", "io-priority", "I/O priority").form(Number),
    honoured("thinktime", "think", "pause between operations").no_replay(PACED).form(Microseconds),
    honoured("thinktime_spin", "think-spin", "part of the pause that keeps the CPU busy").form(Microseconds),
    honoured("thinktime_blocks", "burst", "operations between two pauses").form(Number),
    honoured("thinktime_blocks_type", "", "complete and issue both count submissions; a pause starts after the last completion").one_of(&["complete", "issue"], &[]),
    honoured("thinktime_iotime", "burst-time", "time from the end of a pause to the start of the next").form(Seconds),
    honoured("rate", "limit-bandwidth", "bandwidth limit of each direction; an empty value is no limit, as for reads in `rate=,1m`").no_replay(PACED).form(Numbers),
    honoured("rate_min", "min-rate", "minimum bandwidth; a slower job ends the run with an error").also(&["ratemin"]).form(Numbers),
    honoured("rate_process", "arrivals", "poisson is an open loop (`--rate`, `--arrivals poisson`): latency counts from the intended arrival").one_of(&["linear", "poisson"], &[]).no_replay(PACED),
    honoured("rate_cycle", "min-rate", "period of rate_min and rate_iops_min").also(&["ratecycle"]).form(Number),
    only("rate_ignore_thinktime", OFF, "fathom does not combine thinktime and rate; type only one of them"),
    honoured("rate_iops", "rate limit-iops", "IOPS limit of each direction; with varying sizes, limits bytes: this many operations of the smallest size, as in fio").no_replay(PACED).form(Numbers),
    honoured("rate_iops_min", "min-rate", "minimum IOPS; a slower job ends the run with an error").form(Numbers),
    honoured("max_latency", "max-latency", "a slower read, write or trim ends the run with an error"),
    honoured("latency_target", "latency-target", "searches the depth that meets a latency; the results are those of the last window").no_replay(PACED).form(Microseconds),
    honoured("latency_window", "", "window of latency_target").form(Microseconds),
    honoured("latency_percentile", "", "percentage of operations that must meet latency_target"),
    honoured("latency_run", "", "keeps changing the depth for the whole run; the results include all windows").form(Switch),
    honoured("invalidate", "cold evict-each-pass", "evicts the file before the run and before each further pass").form(Switch),
    honoured("sync", "cache", "O_SYNC or O_DSYNC").one_of(&["none", "sync", "dsync"], &["", "0", "1"]),
    no_effect("write_hint", "fathom gives writes no lifetime hint"),
    no_effect("create_serialize", "fathom creates files one after another"),
    no_effect("create_fsync", "fathom syncs files after creating them"),
    honoured("create_on_open", "", "a file that is only written starts without allocated blocks; refused for reads of a missing file, which fio would create empty").form(Switch),
    honoured("create_only", "", "creates the files and measures nothing").no_replay("a replay has no files to create; remove the option").form(Switch),
    honoured("allow_file_create", "", "whether missing files are created").form(Switch),
    no_effect("allow_mounted_write", "fathom never writes a mounted device"),
    honoured("pre_read", "", "reads the blocks of the job into the page cache before the run, and turns invalidate off").form(Switch),
    honoured("cpumask", "", "CPUs of the workers (`--cpus`)").form(Number),
    honoured("cpus_allowed", "cpus", "CPUs of the workers"),
    honoured("cpus_allowed_policy", "pin", "split gives each worker its own CPU").one_of(&["shared", "split"], &[]),
    honoured("numa_cpu_nodes", "cpus", "CPUs of these NUMA nodes"),
    honoured("numa_mem_policy", "memory-nodes", "NUMA nodes of the buffers"),
    honoured("end_fsync", "", "flushes at the end of the run and times the flush separately; an error of the flush fails the job").ignored_in_replay().form(Switch),
    honoured("fsync_on_close", "", "flushes at the end of the run and times the flush separately; an error of the flush fails the job").ignored_in_replay().form(Switch),
    honoured("unlink", "", "at the end, removes the files that fathom created").form(Switch),
    honoured("unlink_each_loop", "", "has no effect with a single pass or on block devices, as in fio; refused otherwise, since fathom keeps files between passes").form(Switch),
    honoured("exitall", "ends-others", "the end of this job ends others").value_optional().form(Switch),
    honoured("exit_what", "", "jobs that exitall ends: those of the same group, those that run at the same time, or all").one_of(&["group", "stonewall", "all"], &[]),
    no_effect("exitall_on_error", "the failure of one worker ends all workers").value_optional(),
    honoured("stonewall", "", "waits for all earlier jobs").also(&["wait_for_previous"]).value_optional().form(Switch),
    honoured("new_group", "", "starts a new group in the output").value_optional().form(Switch),
    no_effect("thread", "workers are threads").value_optional(),
    no_effect("threads", "workers are threads").value_optional(),
    honoured("per_job_logs", "", "if 0, all jobs share one log file").form(Switch),
    honoured("write_bw_log", "", "bandwidth log PREFIX_bw.N.log of each job"),
    honoured("bwavgtime", "", "interval of the bandwidth log, if shorter than log_avg_msec").form(Number),
    honoured("write_lat_log", "op-log", "latency logs PREFIX_lat.N.log and PREFIX_clat.N.log; PREFIX_slat.N.log is empty, since submission is not timed separately"),
    honoured("write_iops_log", "", "IOPS log PREFIX_iops.N.log of each job"),
    honoured("iopsavgtime", "", "interval of the IOPS log, if shorter than log_avg_msec").form(Number),
    no_effect("log_entries", "logs have no size limit"),
    honoured("log_avg_msec", "op-log-interval", "interval of the logs").form(Number),
    honoured("log_hist_msec", "", "interval of the histogram log").form(Number),
    honoured("log_hist_coarseness", "", "fewer columns in the histogram log").form(Number),
    honoured("write_hist_log", "", "histogram log PREFIX_clat_hist.N.log; its last line has the remaining operations"),
    honoured("log_max_value", "", "logs the maximum latency of each interval instead of the mean").form(Switch),
    honoured("log_window_value", "", "logs the mean latency of each interval, the maximum, or both (fio 3.38 and newer)").one_of(&["avg", "max", "both"], &[]),
    honoured("log_issue_time", "", "adds a column with the submission time (fio 3.38 and newer)").form(Switch),
    honoured("log_offset", "", "adds a column with the offset").form(Switch),
    honoured("log_prio", "", "logs the full priority").form(Switch),
    no_effect("log_compression", "fathom does not compress logs"),
    no_effect("log_compression_cpus", "fathom does not compress logs"),
    only("log_store_compressed", OFF, "fathom writes logs as text; remove the option, and run `gzip` afterwards"),
    honoured("log_unix_epoch", "", "times in logs count from 1970").form(Switch),
    honoured("log_alternate_epoch", "", "times in logs count from 1970").form(Switch),
    only("log_alternate_epoch_clock_id", &["0"], "times in logs count from the start of the job or from 1970 (clock 0); remove the option"),
    only("block_error_percentiles", OFF, "fathom only counts trim errors; remove the option"),
    honoured("group_reporting", "", "reports clones, and all jobs of a group, as one result").value_optional().form(Switch),
    honoured("stats", "", "0 leaves the job out of the output").form(Switch),
    honoured("zero_buffers", "zeros", "writes zeros").value_optional().form(Switch),
    no_effect("refill_buffers", "random data are new in every write").value_optional(),
    no_effect("scramble_buffers", "random data are new in every write"),
    honoured("buffer_pattern", "data", "pattern of writes; never compared").no_replay("fathom writes no pattern in a replay; remove the option"),
    honoured("buffer_compress_percentage", "compress", "compressible percentage of writes").form(Percent),
    no_effect("buffer_compress_chunk", "every 4 KiB has the requested compressibility, and so has every larger chunk"),
    honoured("dedupe_percentage", "dedup", "percentage of duplicate blocks").form(Percent),
    honoured("dedupe_mode", "", "working_set copies a fixed set of blocks (`--dedup-set`)").one_of(&["repeat", "working_set"], &[]),
    honoured("dedupe_working_set_percentage", "dedup-set", "size of the set, in percent of size").form(Percent),
    honoured("dedupe_global", "dedup-shared", "jobs that run at the same time share the set").form(Switch),
    honoured("clat_percentiles", "", "whether clat_ns has percentiles [default: 1]").form(Switch),
    honoured("lat_percentiles", "", "whether lat_ns has percentiles; terse lines then have the percentiles of lat instead of clat").form(Switch),
    no_effect("slat_percentiles", "submission is not timed separately, so slat_ns has no samples"),
    honoured("percentile_list", "", "percentiles in the output, up to 20"),
    no_effect("significant_figures", "fathom rounds results to their precision"),
    no_effect("disk_util", "fathom always reads the counters of all disks below the target"),
    honoured("gtod_reduce", "", "prints no percentiles; results still include every latency and rate").form(Switch),
    honoured("disable_lat", "", "writes no log and prints no percentiles of this latency; results still include every latency").form(Switch),
    honoured("disable_clat", "", "writes no log and prints no percentiles of this latency; results still include every latency").form(Switch),
    honoured("disable_slat", "", "writes no log of this latency").form(Switch),
    no_effect("disable_bw_measurement", ALWAYS_MEASURED).also(&["disable_bw"]),
    no_effect("gtod_cpu", ALWAYS_MEASURED),
    honoured("unified_rw_reporting", "", "mixed reports one result for all directions; both adds it to the result of each direction").one_of(&["none", "mixed", "both"], &["0", "1", "2"]),
    honoured("continue_on_error", "max-errors", "continues after errors of reads, writes or both; the exit code is 0"),
    no_effect("error_dump", "fathom counts errors by kind"),
    refused("profile", "fathom has no built-in fio profiles; type the options of the job itself"),
    refused("cgroup", CGROUP),
    refused("cgroup_nodelete", CGROUP),
    refused("cgroup_weight", CGROUP),
    refused("uid", USER),
    refused("gid", USER),
    honoured("kb_base", "", "whether k, m and g are powers of 1024 or 1000, for the whole section of a job file, or for the later options of a command line; with 1000 the text prints decimal units first").one_of(&["1024", "1000"], &[]),
    honoured("unit_base", "", "1 prints rates in bits"),
    no_effect("hugepage-size", "buffers are on huge pages of the kernel's default size if available"),
    honoured("flow_id", "", "group of flow (`--flow`)").form(Number),
    honoured("flow", "flow", "a job that is ahead of its share of the operations waits for the others").no_replay(PACED).form(Number),
    no_effect("flow_watermark", "ignored by fio since 3.23"),
    honoured("flow_sleep", "flow", "how long a job that is ahead of its share waits").form(Number),
    honoured("steadystate", "steady-state", "ends the job when its rate is steady; checks each clone, or with group_reporting all clones together").also(&["ss"]),
    honoured("steadystate_duration", "", "window of steadystate").also(&["ss_dur"]).form(Seconds),
    honoured("steadystate_ramp_time", "", "time before the window of steadystate").also(&["ss_ramp"]).form(Seconds),
    honoured("steadystate_check_interval", "", "interval of each value of steadystate (fio 3.37 and newer)").also(&["ss_interval"]).form(Seconds),
    honoured("hipri", "", "polls for completions").value_optional().engines(&["io_uring", "pvsync2"]).form(Switch),
    only("hipri_percentage", &["100"], "fathom polls for all operations or none; remove the option"),
    honoured("uncached", "", "uncached I/O (RWF_DONTCACHE)").engines(&["io_uring", "pvsync2"]).form(Switch),
    honoured("nowait", "", "RWF_NOWAIT with ioengine=pvsync2").engines(&["pvsync2"]).form(Switch),
    honoured("fixedbufs", "", "registers the buffers with io_uring").value_optional().engines(&["io_uring"]).form(Switch),
    honoured("registerfiles", "", "registers the files with io_uring").value_optional().engines(&["io_uring"]).form(Switch),
    honoured("sqthread_poll", "", "a kernel thread submits (SQPOLL)").value_optional().engines(&["io_uring"]).form(Switch),
    honoured("sqthread_poll_cpu", "", "CPU of the thread of sqthread_poll").form(Number),
    no_effect("nonvectored", "an operation has one buffer"),
    only("force_async", OFF, "fathom does not force operations into kernel threads; remove the option"),
    no_effect("userspace_reap", "fathom takes completions with io_getevents").value_optional(),
    honoured("cmdprio_percentage", "op-priority", "percentage of reads and writes with another priority; the output lists latencies by priority, as in fio").form(Numbers),
    honoured("cmdprio_class", "op-priority", "class of the priority that cmdprio_percentage gives [default: real-time]").form(Numbers),
    honoured("cmdprio", "op-priority", "level of the priority that cmdprio_percentage gives").form(Numbers),
    honoured("cmdprio_bssplit", "op-priority", "percentage and priority for each block size"),
    // Newer than fio 3.33, from the source of 3.42.
    honoured("end_syncfs", "", "like end_fsync: flushes the files of the job, not the whole file system").form(Switch),
    no_effect("filetype", "fathom asks the kernel for the file type"),
    no_effect("comm", "sets the name of a process, but fathom's workers are threads"),
    no_effect("libaio_vectored", "an operation has one buffer"),
    no_effect("percentage_sequential", "ignored by fio too"),
    no_effect("rwmixcycle", "ignored by fio too"),
    no_effect("verify_header_seed", "blocks have no header, and fathom compares every byte"),
    no_effect("verify_write_sequence", "blocks have no header, and fathom compares every byte"),
    only("verify_policy", &["completed"], "fathom compares every completed write; remove the option"),
    only("verify_pattern_interval", OFF, "the pattern starts again with each operation; remove the option"),
    only("ramp_size", OFF, "fathom only ends a ramp by time; type ramp_time"),
    only("priohint", OFF, "fathom passes no priority hints; remove the option"),
    only("thinkcycles", OFF, "fathom's pauses are times, not CPU cycles; type thinktime and thinktime_spin"),
    only("random_sequence_stride", OFF, "fathom does not stride random offsets; remove the option"),
    only("num_range", &["1"], "fathom trims one range per operation; remove the option"),
    only("job_start_clock_id", OFF, "fathom reports the start of a job as wall-clock time; remove the option"),
    only("sprandom", OFF, SPRANDOM),
    no_effect("spr_num_regions", "used only with sprandom, which is refused"),
    no_effect("spr_op", "used only with sprandom, which is refused"),
    no_effect("spr_cs", "used only with sprandom, which is refused"),
    only("thp", OFF, "fathom maps files without huge pages; remove the option"),
    only("recover_zbd_write_error", OFF, ZONED),
    only("write_zone_remainder", OFF, ZONED),
    only("fdp", OFF, PLACEMENT),
    only("dataplacement", &["none"], PLACEMENT).also(&["data_placement"]),
    no_effect("plid_select", "used only with dataplacement, which is refused").also(&["fdp_pli_select"]),
    no_effect("plids", "used only with dataplacement, which is refused").also(&["fdp_pli"]),
    no_effect("dp_scheme", "used only with dataplacement, which is refused"),
];

/// An engine of fio that is not supported.
pub(super) struct OtherEngine {
    pub(super) name: &'static str,
    /// Why the engine is refused, and what to type instead.
    pub(super) why: &'static str,
    /// The engine's own options, separated by spaces.
    options: &'static str,
}

const fn other(name: &'static str, why: &'static str, options: &'static str) -> OtherEngine {
    OtherEngine { name, why, options }
}

/// Every engine of fio that is not supported.
#[rustfmt::skip] // One line for each engine.
pub(super) const OTHER_ENGINES: &[OtherEngine] = &[
    other("io_uring_cmd", "fathom sends no NVMe commands; type ioengine=io_uring on the block device", "cmd_type write_mode verify_mode md_per_io_size pi_act pi_chk apptag apptag_mask deac cdb_len read_mode verify_bytchk"),
    other("sg", "fathom sends no SCSI commands; type ioengine=psync on the block device", "sg_write_mode readfua writefua stream_id"),
    other("cpuio", "the engine does no I/O; leave the job out", "cpuload cpuchunks cpumode exit_on_io_done"),
    other("net", NETWORK, "hostname port protocol proto listen pingpong interface ttl nodelay window_size mss"),
    other("netsplice", NETWORK, ""),
    other("rdma", NETWORK, "verb bindname"),
    other("librpma_apm_client", NETWORK, "serverip direct_write_to_pmem"),
    other("librpma_apm_server", NETWORK, "busy_wait_polling"),
    other("librpma_gpspm_client", NETWORK, ""),
    other("librpma_gpspm_server", NETWORK, ""),
    other("rados", CLUSTER, "clustername rbdname clientname conf pool busy_poll touch_objects"),
    other("rbd", CLUSTER, "rbd_encryption_format rbd_encryption_passphrase"),
    other("http", "fathom has no client for object stores; mount the store, and name a file of the mount", "http_host http_user http_pass https http_mode http_s3_region http_s3_key http_s3_keyid http_s3_sse_customer_key http_s3_sse_customer_algorithm http_s3_storage_class http_swift_auth_token http_verbose http_object_mode http_s3_security_token"),
    other("gfapi", CLUSTER, "volume brick single-instance"),
    other("gfapi_async", CLUSTER, ""),
    other("libhdfs", CLUSTER, "namenode hdfsdirectory chunk_size chunck_size hdfs_use_direct single_instance"),
    other("dfs", CLUSTER, "cont object_class svcl"),
    other("nfs", "fathom has no NFS client; mount the share, and name a file of the mount", "nfs_url"),
    other("nbd", "fathom has no NBD client; attach the device with nbd-client, and name it", "uri"),
    other("libiscsi", "fathom has no iSCSI client; attach the device with iscsiadm, and name it", "initiator"),
    other("ime_psync", CLUSTER, ""),
    other("ime_psyncv", CLUSTER, ""),
    other("ime_aio", CLUSTER, ""),
    other("mtd", "fathom does not measure raw flash; leave the job out", "skip_bad"),
    other("dev-dax", MEMORY, ""),
    other("pmemblk", MEMORY, ""),
    other("libpmem", MEMORY, ""),
    other("libcufile", "fathom does not use GPU memory; type ioengine=psync", "gpu_dev_ids cuda_io gpu_dev_id"),
    other("libhipfile", "fathom does not use GPU memory; type ioengine=psync", "rocm_io"),
    other("page_fault", "the engine measures page faults, not storage; leave the job out", ""),
    other("libzbc", "fathom does not support zoned devices; leave the job out", ""),
    other("libblkio", "fathom has no user-space drivers; type ioengine=io_uring on the block device", "libblkio_driver libblkio_path libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim libblkio_wait_mode libblkio_force_enable_completion_eventfd"),
    other("xnvme", "fathom has no user-space drivers; type ioengine=io_uring on the block device", "xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_iovec xnvme_be xnvme_dev_subnqn"),
    other("e4defrag", "the engine defragments files instead of measuring I/O; leave the job out", "donorname inplace"),
    other("filecreate", FILES, ""),
    other("dircreate", FILES, ""),
    other("dirstat", FILES, ""),
    other("dirdelete", FILES, ""),
    other("filestat", FILES, "stat_type"),
    other("filedelete", FILES, ""),
    other("exec", "fathom runs no other programs; leave the job out", "program arguments grace_time std_redirect"),
    other("external", "fathom loads no external engines; leave the job out", ""),
    other("cpp_null", "fathom loads no external engines; type ioengine=null", ""),
    other("solarisaio", "the engine exists only on another operating system; type ioengine=libaio", ""),
    other("windowsaio", "the engine exists only on another operating system; type ioengine=libaio", "no_completion_thread"),
];

const NETWORK: &str = "the engine measures a network, not storage; leave the job out";
const CLUSTER: &str = "fathom has no client for this engine; mount the file system or map the device, and name a file or the device";
const MEMORY: &str =
    "fathom measures persistent memory through a block device or file system; type ioengine=mmap or libaio";
const FILES: &str = "the engine measures operations on directories, not I/O; leave the job out";

const REMOTE: &str =
    "fathom measures only its own machine; type `ssh HOST fathom fio ...`, and remove the option";
const TRIGGER: &str = "fathom runs no other programs; remove the option";
const LINE: &str = "progress is one line on standard error, if that is a terminal";

/// Every option of fio itself in 3.33 in the order of its help, and `destroy`, which only fathom has.
#[rustfmt::skip] // One line for each option.
pub const OWN: &[ToolOption] = &[
    no_effect("debug", "`fathom show last --verbose` prints the details of the run").takes("=WORDS"),
    honoured("parse-only", "", "Check the jobs without running them"),
    refused("merge-blktrace-only", "fathom does not merge traces; type one job with read_iolog for each trace instead"),
    honoured("output", "", "Write the output to a file").takes("=FILE"),
    honoured("bandwidth-log", "", "Write the total bandwidth of all jobs every 500 ms to agg-read_bw.log, agg-write_bw.log and agg-trim_bw.log"),
    honoured("minimal", "", "Write terse output"),
    honoured("append-terse", "", "Write terse output in addition"),
    honoured("output-format", "", "Write normal, terse, json or json+; several separated by commas").takes("=TYPE"),
    honoured("terse-version", "", "Version of the terse output [default: 3]").takes("=2|3|4|5"),
    honoured("version", "", "Print the version of fio that this command follows"),
    honoured("help", "", "Print this page"),
    refused("cpuclock-test", "fathom tests the clock in every measurement; remove the option"),
    refused("latency-log", "fio also refuses this option, since logs belong to jobs; type write_lat_log").takes("=FILE"),
    refused("crctest", "fathom does not use fio's checksums; remove the option").takes("=TYPE").value_optional(),
    refused("memcpytest", "fathom does not measure memory; remove the option").takes("=TYPE").value_optional(),
    honoured("cmdhelp", "", "Print how a job option is handled").takes("=OPTION|all").value_optional(),
    honoured("enghelp", "", "Print the engines, or the options of one").takes("=ENGINE").value_optional(),
    honoured("showcmd", "", "Write the jobs as one command line, and stop"),
    honoured("eta", "", "Whether to show progress on standard error if that is a terminal").takes("=always|never|auto"),
    no_effect("eta-newline", LINE).takes("=TIME"),
    no_effect("eta-interval", LINE).takes("=TIME"),
    honoured("status-interval", "", "Write the results so far at this interval, and all of them at the end").takes("=TIME"),
    honoured("readonly", "", "Refuse jobs that write"),
    honoured("section", "", "Run only this section of the job file; type the option again for each further section").takes("=NAME"),
    no_effect("alloc-size", "fathom allocates memory as needed").takes("=KB"),
    no_effect("warnings-fatal", "every mistake in a job is an error"),
    no_effect("max-jobs", "fathom allocates memory as needed").takes("=NUMBER"),
    refused("server", REMOTE).takes("=ARGUMENTS"),
    refused("daemonize", REMOTE).takes("=FILE"),
    refused("client", REMOTE).takes("=HOST"),
    refused("remote-config", REMOTE).takes("=FILE"),
    honoured("idle-prof", "", "Report the idle time of all CPUs together, or of each CPU, by the kernel's count").takes("=none|system|percpu"),
    refused("inflate-log", "fathom does not read compressed fio logs; remove the option").takes("=FILE"),
    refused("trigger-file", TRIGGER).takes("=FILE"),
    refused("trigger-timeout", TRIGGER).takes("=TIME"),
    refused("trigger", TRIGGER).takes("=COMMAND"),
    refused("trigger-remote", TRIGGER).takes("=COMMAND"),
    honoured("aux-path", "", "Directory of the state files of verify").takes("=DIRECTORY"),
    honoured("destroy", "", "Allow overwriting a file that fathom did not create (its path) or a block device (its name or serial number); may be repeated. fio has no such option: if a command line cannot be changed, set FATHOM_DESTROY to the paths, separated by :").takes("=NAME"),
];

/// The option with this name, or with this alias.
pub fn find(name: &str) -> Option<&'static ToolOption> {
    OPTIONS.iter().find(|option| option.name == name || option.aliases.contains(&name))
}

/// The unsupported engine that an option belongs to; `None` if it belongs to none.
pub(super) fn engine_of(name: &str) -> Option<&'static str> {
    let has = |options: &str| options.split(' ').any(|option| option == name);
    OTHER_ENGINES.iter().find(|engine| has(engine.options)).map(|engine| engine.name)
}

/// The name or other name of an option that is most similar to a word; `None` if none is similar.
pub(super) fn nearest(word: &str) -> Option<&'static str> {
    const MIN_SIMILARITY: f64 = 0.6;
    crate::trouble::nearest(word, OPTIONS.iter().flat_map(ToolOption::names), MIN_SIMILARITY)
}

#[test]
fn names_are_unique_and_each_refusal_has_a_suggestion() {
    use crate::options::How;
    let mut names: Vec<&str> = OPTIONS.iter().flat_map(ToolOption::names).collect();
    names.extend(OTHER_ENGINES.iter().flat_map(|engine| engine.options.split_terminator(' ')));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    for option in OPTIONS.iter().filter(|o| matches!(o.how, How::Refused | How::Only(_))) {
        let has_suggestion = [";", "type "].iter().any(|mark| option.about.contains(mark));
        assert!(has_suggestion, "{}: {}", option.name, option.about);
    }
    assert_eq!((nearest("iodepht"), nearest("readwrit")), (Some("iodepth"), Some("readwrite")));
    assert_eq!((nearest("xyzzyqq"), engine_of("http_host")), (None, Some("http")));
}
