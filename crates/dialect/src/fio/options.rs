//! The tables of fio's options and how each is handled. Job files, command lines, `--cmdhelp` and
//! docs/reference/fio.md use them.

use How::{Honoured, NoEffect, Only, Refused};

/// An option of a job, and how it is handled.
#[derive(Debug)]
pub struct FioOption {
    /// Its name in fio's own help.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// How it is handled.
    pub how: How,
}

/// How an option is handled.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// It works as in fio: its effect here.
    Honoured(&'static str),
    /// It is accepted and has no effect, for this reason. A remark reports the reason once.
    NoEffect(&'static str),
    /// It is accepted with these values, which have no effect. Any other value is refused for this reason.
    Only(&'static [&'static str], &'static str),
    /// It is refused: why, and what to type instead.
    Refused(&'static str),
}

const fn option(name: &'static str, aliases: &'static [&'static str], how: How) -> FioOption {
    FioOption { name, aliases, how }
}

/// Options that request a log, with or without the beginning of its name.
pub(super) const LOGS: [&str; 4] = ["write_bw_log", "write_hist_log", "write_iops_log", "write_lat_log"];
/// Values of a switch that is off.
const OFF: &[&str] = &["0", "false"];
const MERGE: &str = "fathom does not merge traces; type one job with read_iolog for each trace instead";
const TRACE: &str = "fathom always measures every latency and every rate";
pub(super) const ZONED: &str = "fathom does not support zoned devices; leave it out";
const STATE: &str = "fathom does not resume a verification from fio's state file; leave it out";
const SPRANDOM: &str = "fathom does not precondition within a job; fill the device by a job with rw=write and loops=2 before, and leave it out";
const PLACEMENT: &str = "data placement needs NVMe commands, which fathom does not send; leave it out";
const CGROUP: &str =
    "fathom runs in a cgroup of its own; start it inside the cgroup that you need, and leave it out";
const ROOTS: &str = "fathom does not change its user; start it with `sudo -u USER`, and leave it out";

/// Every option of fio 3.33 for files and block devices in the order of its help, followed by those of 3.42.
pub const OPTIONS: &[FioOption] = &[
    option("description", &[], Honoured("printed in text and terse output, and as `desc` in JSON")),
    option("name", &[], Honoured("the name of the result")),
    option(
        "wait_for",
        &[],
        Honoured("starts after the named job; refused if other jobs run at the same time as that job"),
    ),
    option("filename", &[], Honoured("files or devices, separated by `:` (`--target`)")),
    option("lockfile", &[], Only(&["none"], "fathom does not lock files; leave it out")),
    option("directory", &[], Honoured("directory of the files; clones take several directories in turn")),
    option(
        "filename_format",
        &[],
        Honoured("file names with $jobname, $jobnum and $filenum; missing directories are created"),
    ),
    option("unique_filename", &[], NoEffect("it only matters for fio's network clients")),
    option("opendir", &[], Refused("fathom does not pick files from a directory; name them with filename")),
    option(
        "rw",
        &["readwrite"],
        Honoured(
            "access pattern (`--rw`); a number after it is a hole, a step back, or operations per random offset (`--hole`, `--backwards`, `--consecutive`); in trimwrite each write waits for its trim, and limits count pairs",
        ),
    ),
    option("bs", &["blocksize"], Honoured("block size (`--bs`)")),
    option("ba", &["blockalign"], Honoured("alignment of random offsets (`--align`); blocks may repeat")),
    option("bsrange", &["blocksize_range"], Honoured("range of block sizes (`--bs`)")),
    option("bssplit", &[], Honoured("block sizes with percentages (`--bs`)")),
    option(
        "bs_unaligned",
        &["blocksize_unaligned"],
        Honoured("keeps the sizes of bssplit exact; without it they are multiples of the smallest one"),
    ),
    option("bs_is_seq_rand", &[], Only(OFF, "block sizes depend on the direction here; leave it out")),
    option("randrepeat", &[], Honoured("the same offsets in every call unless 0 (`--seed`)")),
    option("randseed", &[], Honoured("seed of all random numbers (`--seed`)")),
    option(
        "norandommap",
        &[],
        Honoured(
            "blocks may repeat (`--random uniform`); without it each block comes once per pass (`--random once`)",
        ),
    ),
    option("softrandommap", &[], NoEffect("fathom needs no memory for a random map")),
    option(
        "ignore_error",
        &[],
        Honoured("errors that do not end the job (`--ignore-errors`); they are counted and reported"),
    ),
    option(
        "rw_sequencer",
        &[],
        Honoured("with rw=randread:8, identical repeats each random offset eight times (`--times`)"),
    ),
    option("ioengine", &[], Honoured("I/O engine (`--engine`)")),
    option("iodepth", &[], Honoured("queue depth (`--depth`); 1 with a synchronous engine, as in fio")),
    option(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        Honoured("operations per submission call (`--batch`)"),
    ),
    option(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        Honoured("completions that one call waits for (`--batch`)"),
    ),
    option("iodepth_batch_complete_max", &[], NoEffect("fathom takes all finished operations at once")),
    option(
        "iodepth_low",
        &[],
        Honoured("depth to which a full queue drains before it is refilled (`--batch`)"),
    ),
    option(
        "serialize_overlap",
        &[],
        Honoured("an operation waits for those in flight on the same blocks (`--serialize-overlap`)"),
    ),
    option(
        "io_submit_mode",
        &[],
        Honoured(
            "offload with a rate is an open loop (`--rate`): latency counts from the intended arrival; without a rate it has no effect",
        ),
    ),
    option("size", &[], Honoured("size of the region and bytes to move (`--size`, `--passes`, `--bytes`)")),
    option("io_size", &["io_limit"], Honoured("bytes to move (`--bytes`)")),
    option(
        "fill_device",
        &["fill_fs"],
        Honoured("uses a whole block device; refused for files, since fathom never fills a file system"),
    ),
    option("filesize", &[], Honoured("size of each file")),
    option("file_append", &[], Only(OFF, "fathom does not append to files; leave it out")),
    option(
        "offset",
        &[],
        Honoured("first byte (`--offset`); a percentage of a missing file is 0, as in fio"),
    ),
    option("offset_increment", &[], Honoured("distance between the offsets of clones (`--offset`)")),
    option("offset_align", &[], Honoured("alignment of an offset in percent")),
    option("number_ios", &[], Honoured("number of operations (`--ops`)")),
    option(
        "random_generator",
        &[],
        Honoured(
            "lfsr touches each block once even with norandommap; otherwise fathom uses its own generator",
        ),
    ),
    option("random_distribution", &[], Honoured("distribution of random offsets (`--random`)")),
    option(
        "percentage_random",
        &[],
        Honoured("percentage of random operations (`--random mixed`); they may repeat blocks"),
    ),
    option("allrandrepeat", &[], NoEffect("one seed determines all random numbers")),
    option("nrfiles", &["nr_files"], Honoured("number of files of each clone")),
    option(
        "file_service_type",
        &[],
        Honoured("which file is next, after N operations (`--sharing`): roundrobin, random or sequential"),
    ),
    option(
        "openfiles",
        &[],
        Honoured("number of files used at a time, one group after another; all are open"),
    ),
    option(
        "fallocate",
        &[],
        Honoured(
            "how a file that is only written is allocated: to its length, beyond its end (keep), as a hole (truncate), or not at all (none) (`--create`)",
        ),
    ),
    option("fadvise_hint", &[], Honoured("advice to the page cache (`--advice`) [default: 1]")),
    option("fsync", &[], Honoured("fsync after every N writes (`--fsync`)")),
    option("fdatasync", &[], Honoured("fdatasync after every N writes (`--fdatasync`)")),
    option("write_barrier", &[], Only(OFF, "fathom has no barrier writes; type fsync=N or fdatasync=N")),
    option(
        "sync_file_range",
        &[],
        Refused("fathom does not flush ranges by fio's rules; type fsync=N or fdatasync=N"),
    ),
    option("direct", &[], Honoured("O_DIRECT (`--cache`)")),
    option("atomic", &[], Honoured("atomic writes (RWF_ATOMIC) with ioengine=io_uring, libaio or pvsync2")),
    option("buffered", &[], Honoured("through the page cache (`--cache`)")),
    option("overwrite", &[], Honoured("fills new files with data before the first write")),
    option("loops", &[], Honoured("number of passes (`--passes`), or a multiple of the bytes")),
    option("numjobs", &["thread_number"], Honoured("number of clones (`--clones`)")),
    option("startdelay", &[], Honoured("time before the job starts (`--delay`)")),
    option("runtime", &["timeout"], Honoured("run time (`--time`)")),
    option("time_based", &[], Honoured("ends by runtime alone; no effect without runtime, as in fio")),
    option("verify_only", &[], Honoured("reads and compares the blocks instead of writing them")),
    option("ramp_time", &[], Honoured("time before the measured window (`--warmup`)")),
    option("clocksource", &[], NoEffect("fathom chooses the best clock of the machine, and tests it")),
    option("mem", &["iomem"], NoEffect("buffers are aligned pages of memory")),
    option("mem_align", &["iomem_align", "iomemalign"], NoEffect("buffers are aligned to pages")),
    option(
        "verify",
        &[],
        Honoured(
            "compares every byte whatever the method (`--verify`); fio cannot verify these blocks, except with verify=pattern",
        ),
    ),
    option("do_verify", &[], Honoured("reads the written blocks back after the job")),
    option("verify_interval", &[], NoEffect("fathom compares every byte")),
    option("verify_offset", &[], NoEffect("blocks have no header")),
    option(
        "verify_pattern",
        &[],
        Honoured("pattern of the blocks (`--verify pattern`); %o is the offset of the operation"),
    ),
    option(
        "verify_fatal",
        &[],
        Honoured("the first difference ends the job; otherwise differences are counted, up to 1000"),
    ),
    option("verify_dump", &[], NoEffect("fathom reports the file, offset and byte of the first difference")),
    option("verify_async", &[], NoEffect("workers compare after the timestamp of the completion")),
    option("verify_async_cpus", &[], NoEffect("workers compare after the timestamp of the completion")),
    option("verify_backlog", &[], NoEffect("fathom reads back after all writes")),
    option("verify_backlog_batch", &[], NoEffect("fathom reads back after all writes")),
    option("experimental_verify", &[], NoEffect("fathom generates the expected data again")),
    option("verifysort", &[], NoEffect("fio has ignored it since 3.7")),
    option("verifysort_nr", &[], NoEffect("fio has ignored it since 3.7")),
    option("verify_state_load", &[], Only(OFF, STATE)),
    option("verify_state_save", &[], NoEffect("a later call with verify_only needs no state")),
    option(
        "trim_percentage",
        &[],
        Only(OFF, "fathom does not trim after writes of a fio job; type rw=randtrim or randtrimwrite"),
    ),
    option("trim_verify_zero", &[], NoEffect("it needs trim_percentage, which is refused")),
    option("trim_backlog", &[], NoEffect("it needs trim_percentage, which is refused")),
    option("trim_backlog_batch", &[], NoEffect("it needs trim_percentage, which is refused")),
    option("write_iolog", &[], Honoured("writes the operations as an iolog of version 3")),
    option(
        "read_iolog",
        &[],
        Honoured(
            "replays an iolog of version 2 or 3, or a blktrace file (`--replay`); clones take several, separated by `:`, in turn",
        ),
    ),
    option("read_iolog_chunked", &[], NoEffect("fathom reads the log while it replays it")),
    option(
        "replay_no_stall",
        &[],
        Honoured(
            "as fast as possible (`--pace fast`); otherwise an open loop whose latency counts from the times in the log",
        ),
    ),
    option("replay_redirect", &[], Honoured("target of the replay; otherwise the file named in the log")),
    option("replay_scale", &[], Honoured("divisor of offsets, in whole sectors (`--replay-scale`)")),
    option(
        "replay_align",
        &[],
        Honoured("alignment of offsets (`--replay-align`); sizes of a trace are rounded up too, as in fio"),
    ),
    option("replay_time_scale", &[], Honoured("factor of times in percent (`--speed`)")),
    option(
        "replay_skip",
        &[],
        Honoured("operations to leave out (`--replay-skip`); works for iologs too, unlike in fio"),
    ),
    option("merge_blktrace_file", &[], Refused(MERGE)),
    option("merge_blktrace_scalars", &[], Refused(MERGE)),
    option("merge_blktrace_iters", &[], Refused(MERGE)),
    option(
        "exec_prerun",
        &[],
        Refused("fathom runs no other programs; run the program before the job, and leave it out"),
    ),
    option(
        "exec_postrun",
        &[],
        Refused("fathom runs no other programs; run the program after the job, and leave it out"),
    ),
    option(
        "ioscheduler",
        &[],
        Refused(
            "fathom changes no device settings; write the scheduler into /sys/block/DEVICE/queue/scheduler, and leave it out",
        ),
    ),
    option("zonemode", &[], Honoured("zones of a region (`--strided`); zbd is refused")),
    option("zonesize", &[], Honoured("bytes to move in each zone (`--strided`)")),
    option("zonecapacity", &[], Refused(ZONED)),
    option("zonerange", &[], Honoured("size of each zone (`--strided`)")),
    option("zoneskip", &[], Honoured("bytes to skip after each zone (`--strided`)")),
    option("read_beyond_wp", &[], Only(OFF, ZONED)),
    option("max_open_zones", &[], Only(OFF, ZONED)),
    option("job_max_open_zones", &[], Only(OFF, ZONED)),
    option("ignore_zone_limits", &[], Only(OFF, ZONED)),
    option("zone_reset_threshold", &[], Refused(ZONED)),
    option("zone_reset_frequency", &[], Refused(ZONED)),
    option("lockmem", &[], Refused("fathom locks no memory; leave it out")),
    option("rwmixread", &[], Honoured("percentage of a mix (`--mix`)")),
    option("rwmixwrite", &[], Honoured("percentage of a mix (`--mix`)")),
    option("nice", &[], Honoured("niceness of the workers (`--nice`)")),
    option("prio", &[], Honoured("I/O priority (`--io-priority`)")),
    option("prioclass", &[], Honoured("I/O priority (`--io-priority`)")),
    option("thinktime", &[], Honoured("pause between operations (`--think`)")),
    option("thinktime_spin", &[], Honoured("part of the pause that keeps the CPU busy (`--think-spin`)")),
    option("thinktime_blocks", &[], Honoured("operations between two pauses (`--burst`)")),
    option(
        "thinktime_blocks_type",
        &[],
        Honoured("both values count submissions, and a pause starts after the last completion"),
    ),
    option(
        "thinktime_iotime",
        &[],
        Honoured("time between two pauses, from the end of a pause (`--burst-time`)"),
    ),
    option(
        "rate",
        &[],
        Honoured("bandwidth limit of each direction, which may be empty for one (`--limit-bandwidth`)"),
    ),
    option(
        "rate_min",
        &["ratemin"],
        Honoured("minimum bandwidth (`--min-rate`); a slower job ends the run with an error"),
    ),
    option(
        "rate_process",
        &[],
        Honoured(
            "poisson is an open loop (`--rate`, `--arrivals poisson`): latency counts from the intended arrival",
        ),
    ),
    option("rate_cycle", &["ratecycle"], Honoured("period of rate_min and rate_iops_min (`--min-rate`)")),
    option(
        "rate_ignore_thinktime",
        &[],
        Only(OFF, "fathom does not combine thinktime and rate; type only one of them"),
    ),
    option(
        "rate_iops",
        &[],
        Honoured(
            "IOPS limit of each direction (`--limit-iops`); with varying sizes it limits the bytes of that many of the smallest size, as in fio",
        ),
    ),
    option(
        "rate_iops_min",
        &[],
        Honoured("minimum IOPS (`--min-rate`); a slower job ends the run with an error"),
    ),
    option(
        "max_latency",
        &[],
        Honoured("a slower read, write or trim ends the run with an error (`--max-latency`)"),
    ),
    option(
        "latency_target",
        &[],
        Honoured(
            "searches the depth that meets a latency (`--latency-target`); the results are those of the last window",
        ),
    ),
    option("latency_window", &[], Honoured("window of latency_target")),
    option("latency_percentile", &[], Honoured("percentage of operations that must meet latency_target")),
    option("latency_run", &[], Honoured("continues after the search; all windows count")),
    option(
        "invalidate",
        &[],
        Honoured(
            "evicts the file before the run and before each further pass (`--cold`, `--evict-each-pass`)",
        ),
    ),
    option("sync", &[], Honoured("O_SYNC or O_DSYNC (`--cache`)")),
    option("write_hint", &[], NoEffect("fathom gives writes no lifetime hint")),
    option("create_serialize", &[], NoEffect("fathom creates files one after another")),
    option("create_fsync", &[], NoEffect("fathom syncs files after creating them")),
    option("create_on_open", &[], NoEffect("fathom creates files before the first run")),
    option("create_only", &[], Honoured("creates the files and measures nothing")),
    option("allow_file_create", &[], Honoured("whether missing files are created")),
    option("allow_mounted_write", &[], NoEffect("fathom never writes a mounted device")),
    option(
        "pre_read",
        &[],
        Only(OFF, "fathom does not read files into the cache; type invalidate=0, and run the job twice"),
    ),
    option("cpumask", &[], Honoured("CPUs of the workers (`--cpus`)")),
    option("cpus_allowed", &[], Honoured("CPUs of the workers (`--cpus`)")),
    option("cpus_allowed_policy", &[], Honoured("split gives each worker its own CPU (`--pin`)")),
    option("numa_cpu_nodes", &[], Honoured("CPUs of these NUMA nodes (`--cpus`)")),
    option("numa_mem_policy", &[], Honoured("NUMA nodes of the buffers (`--memory-nodes`)")),
    option(
        "end_fsync",
        &[],
        Honoured(
            "flushes at the end of the run and times it separately; an error of the flush fails the job",
        ),
    ),
    option(
        "fsync_on_close",
        &[],
        Honoured(
            "flushes at the end of the run and times it separately; an error of the flush fails the job",
        ),
    ),
    option("unlink", &[], Honoured("removes files that fathom created at the end")),
    option("unlink_each_loop", &[], Only(OFF, "fathom keeps files between passes; leave it out")),
    option("exitall", &[], Honoured("the end of this job ends others (`--ends-others`)")),
    option(
        "exit_what",
        &[],
        Honoured("jobs that exitall ends: the same group, those running at the same time, or all"),
    ),
    option("exitall_on_error", &[], NoEffect("the failure of one worker ends all")),
    option("stonewall", &["wait_for_previous"], Honoured("waits for all jobs before it")),
    option("new_group", &[], Honoured("starts a new group in the output")),
    option("thread", &["threads"], NoEffect("workers are threads")),
    option("per_job_logs", &[], Honoured("0 writes one file for all jobs")),
    option("write_bw_log", &[], Honoured("bandwidth log PREFIX_bw.N.log of each job")),
    option("bwavgtime", &[], Honoured("interval of the bandwidth log, if shorter than log_avg_msec")),
    option(
        "write_lat_log",
        &[],
        Honoured(
            "latency logs PREFIX_lat.N.log and PREFIX_clat.N.log; PREFIX_slat.N.log is empty, since submission is not timed separately",
        ),
    ),
    option("write_iops_log", &[], Honoured("IOPS log PREFIX_iops.N.log of each job")),
    option("iopsavgtime", &[], Honoured("interval of the IOPS log, if shorter than log_avg_msec")),
    option("log_entries", &[], NoEffect("logs have no size limit")),
    option("log_avg_msec", &[], Honoured("interval of the logs (`--op-log-interval`)")),
    option("log_hist_msec", &[], Honoured("interval of the histogram log")),
    option("log_hist_coarseness", &[], Honoured("fewer columns in the histogram log")),
    option(
        "write_hist_log",
        &[],
        Honoured("histogram log PREFIX_clat_hist.N.log; its last line has the rest"),
    ),
    option("log_max_value", &[], Honoured("logs the maximum latency of each interval instead of the mean")),
    option(
        "log_window_value",
        &[],
        Honoured("logs the mean latency of each interval, the maximum, or both (fio 3.38 and newer)"),
    ),
    option("log_issue_time", &[], Honoured("adds a column with the submission time (fio 3.38 and newer)")),
    option("log_offset", &[], Honoured("adds a column with the offset")),
    option("log_prio", &[], Honoured("logs the full priority")),
    option("log_compression", &[], NoEffect("fathom does not compress logs")),
    option("log_compression_cpus", &[], NoEffect("fathom does not compress logs")),
    option(
        "log_store_compressed",
        &[],
        Only(OFF, "fathom writes logs as text; leave it out, and run `gzip` afterwards"),
    ),
    option("log_unix_epoch", &[], Honoured("times in logs count from 1970")),
    option("log_alternate_epoch", &[], Honoured("times in logs count from 1970")),
    option(
        "log_alternate_epoch_clock_id",
        &[],
        Only(&["0"], "times in logs count from the start of the job or from 1970 (clock 0); leave it out"),
    ),
    option("block_error_percentiles", &[], Only(OFF, "fathom only counts trim errors; leave it out")),
    option("group_reporting", &[], Honoured("reports clones, and all jobs of a group, as one result")),
    option("stats", &[], NoEffect("fathom measures every job")),
    option("zero_buffers", &[], Honoured("writes zeros (`--zeros`)")),
    option("refill_buffers", &[], NoEffect("every write has new data")),
    option("scramble_buffers", &[], NoEffect("every write has new data")),
    option("buffer_pattern", &[], Honoured("pattern of writes; never compared")),
    option("buffer_compress_percentage", &[], Honoured("compressible percentage of writes (`--compress`)")),
    option(
        "buffer_compress_chunk",
        &[],
        NoEffect("every 4 KiB has the requested compressibility, and so has every larger chunk"),
    ),
    option("dedupe_percentage", &[], Honoured("percentage of duplicate blocks (`--dedup`)")),
    option("dedupe_mode", &[], Honoured("working_set copies a fixed set of blocks (`--dedup-set`)")),
    option(
        "dedupe_working_set_percentage",
        &[],
        Honoured("size of the set, in percent of size (`--dedup-set`)"),
    ),
    option("dedupe_global", &[], Honoured("jobs that run at the same time share the set (`--dedup-shared`)")),
    option("clat_percentiles", &[], Honoured("whether clat_ns has percentiles [default: 1]")),
    option(
        "lat_percentiles",
        &[],
        Honoured("whether lat_ns has percentiles; terse lines then have these instead of those of clat"),
    ),
    option(
        "slat_percentiles",
        &[],
        NoEffect("submission is not timed separately, so slat_ns has no samples"),
    ),
    option("percentile_list", &[], Honoured("percentiles in the output, up to 20")),
    option("significant_figures", &[], NoEffect("fathom rounds results to their precision")),
    option("disk_util", &[], NoEffect("fathom always reads the counters of all disks below the target")),
    option("gtod_reduce", &[], NoEffect(TRACE)),
    option("disable_lat", &[], Honoured("writes no log of it; results still include every latency")),
    option("disable_clat", &[], Honoured("writes no log of it; results still include every latency")),
    option("disable_slat", &[], Honoured("writes no log of it")),
    option("disable_bw_measurement", &["disable_bw"], NoEffect(TRACE)),
    option("gtod_cpu", &[], NoEffect(TRACE)),
    option("unified_rw_reporting", &[], Honoured("mixed reports all directions as one")),
    option(
        "continue_on_error",
        &[],
        Honoured("continues after errors of reads, writes or both (`--max-errors`); the exit code is 0"),
    ),
    option("error_dump", &[], NoEffect("fathom counts errors by kind")),
    option(
        "profile",
        &[],
        Refused("fathom has no built-in fio profiles; type the options of the job itself"),
    ),
    option("cgroup", &[], Refused(CGROUP)),
    option("cgroup_nodelete", &[], Refused(CGROUP)),
    option("cgroup_weight", &[], Refused(CGROUP)),
    option("uid", &[], Refused(ROOTS)),
    option("gid", &[], Refused(ROOTS)),
    option(
        "kb_base",
        &[],
        Honoured(
            "meaning of k, m and g, in a whole section of a job file or in later options of a command line; with 1000 the text prints decimal units first",
        ),
    ),
    option("unit_base", &[], Honoured("1 prints rates in bits")),
    option("hugepage-size", &[], NoEffect("buffers are aligned pages of memory")),
    option("flow_id", &[], Honoured("group of flow (`--flow`)")),
    option(
        "flow",
        &[],
        Honoured("a job that is ahead of its share of the operations waits for the others (`--flow`)"),
    ),
    option("flow_watermark", &[], NoEffect("fio has ignored it since 3.23")),
    option("flow_sleep", &[], Honoured("how long a job waits that is ahead of its share (`--flow`)")),
    option(
        "steadystate",
        &["ss"],
        Honoured("ends the job when it is steady (`--steady-state`): each clone, or all of a group"),
    ),
    option("steadystate_duration", &["ss_dur"], Honoured("window of steadystate")),
    option("steadystate_ramp_time", &["ss_ramp"], Honoured("time before the window of steadystate")),
    option(
        "steadystate_check_interval",
        &["ss_interval"],
        Honoured("interval of each value of steadystate (fio 3.37 and newer)"),
    ),
    option("hipri", &[], Honoured("polls for completions")),
    option("hipri_percentage", &[], Only(&["100"], "fathom polls for all operations or none; leave it out")),
    option("uncached", &[], Honoured("uncached I/O (RWF_DONTCACHE)")),
    option("nowait", &[], Honoured("RWF_NOWAIT with ioengine=pvsync2")),
    option("fixedbufs", &[], Honoured("registers the buffers with io_uring")),
    option("registerfiles", &[], Honoured("registers the files with io_uring")),
    option("sqthread_poll", &[], Honoured("a kernel thread submits (SQPOLL)")),
    option("sqthread_poll_cpu", &[], Honoured("CPU of the thread of sqthread_poll")),
    option("nonvectored", &[], NoEffect("an operation has one buffer")),
    option(
        "force_async",
        &[],
        Only(OFF, "fathom does not force operations into kernel threads; leave it out"),
    ),
    option("userspace_reap", &[], NoEffect("fathom takes completions with io_getevents")),
    option(
        "cmdprio_percentage",
        &[],
        Honoured(
            "percentage of reads and writes with another priority (`--op-priority`); the output lists latencies by priority, as in fio",
        ),
    ),
    option("cmdprio_class", &[], Honoured("class of that priority (`--op-priority`) [default: real-time]")),
    option("cmdprio", &[], Honoured("level of that priority (`--op-priority`)")),
    option("cmdprio_bssplit", &[], Honoured("percentage and priority for each block size (`--op-priority`)")),
    // Newer than fio 3.33, from the source of 3.42.
    option(
        "end_syncfs",
        &[],
        Honoured("as end_fsync: flushes the files of the job, not the whole file system"),
    ),
    option("filetype", &[], NoEffect("fathom asks the kernel for the file type")),
    option("comm", &[], NoEffect("it names a process, and workers are threads")),
    option("libaio_vectored", &[], NoEffect("an operation has one buffer")),
    option("percentage_sequential", &[], NoEffect("fio ignores it")),
    option("rwmixcycle", &[], NoEffect("fio ignores it")),
    option("verify_header_seed", &[], NoEffect("blocks have no header, and fathom compares every byte")),
    option("verify_write_sequence", &[], NoEffect("blocks have no header, and fathom compares every byte")),
    option("verify_policy", &[], Only(&["completed"], "fathom compares every completed write; leave it out")),
    option(
        "verify_pattern_interval",
        &[],
        Only(OFF, "the pattern starts again with each operation; leave it out"),
    ),
    option("ramp_size", &[], Only(OFF, "fathom only ends a ramp by time; type ramp_time")),
    option("priohint", &[], Only(OFF, "fathom passes no priority hints; leave it out")),
    option(
        "thinkcycles",
        &[],
        Only(OFF, "fathom only measures pauses in time; type thinktime and thinktime_spin"),
    ),
    option("random_sequence_stride", &[], Only(OFF, "fathom does not stride random offsets; leave it out")),
    option("num_range", &[], Only(&["1"], "fathom trims one range per operation; leave it out")),
    option("job_start_clock_id", &[], Only(OFF, "fathom reports the start as wall-clock time; leave it out")),
    option("sprandom", &[], Only(OFF, SPRANDOM)),
    option("spr_num_regions", &[], NoEffect("it needs sprandom, which is refused")),
    option("spr_op", &[], NoEffect("it needs sprandom, which is refused")),
    option("spr_cs", &[], NoEffect("it needs sprandom, which is refused")),
    option("recover_zbd_write_error", &[], Only(OFF, ZONED)),
    option("write_zone_remainder", &[], Only(OFF, ZONED)),
    option("fdp", &[], Only(OFF, PLACEMENT)),
    option("dataplacement", &["data_placement"], Only(&["none"], PLACEMENT)),
    option("plid_select", &["fdp_pli_select"], NoEffect("it needs dataplacement, which is refused")),
    option("plids", &["fdp_pli"], NoEffect("it needs dataplacement, which is refused")),
    option("dp_scheme", &[], NoEffect("it needs dataplacement, which is refused")),
];

/// Engines of fio that are not supported, with the reason and their own options.
pub(super) const OTHER_ENGINES: &[(&str, &str, &[&str])] = &[
    (
        "io_uring_cmd",
        "fathom sends no NVMe commands; type ioengine=io_uring on the block device",
        &[
            "cmd_type",
            "write_mode",
            "verify_mode",
            "md_per_io_size",
            "pi_act",
            "pi_chk",
            "apptag",
            "apptag_mask",
            "deac",
            "cdb_len",
        ],
    ),
    (
        "sg",
        "fathom sends no SCSI commands; type ioengine=psync on the block device",
        &["sg_write_mode", "readfua", "writefua", "stream_id"],
    ),
    ("cpuio", "it does no I/O; leave the job out", &["cpuload", "cpuchunks", "cpumode", "exit_on_io_done"]),
    (
        "net",
        NETWORK,
        &[
            "hostname",
            "port",
            "protocol",
            "proto",
            "listen",
            "pingpong",
            "interface",
            "ttl",
            "nodelay",
            "window_size",
            "mss",
        ],
    ),
    ("netsplice", NETWORK, &[]),
    ("rdma", NETWORK, &["verb", "bindname"]),
    ("librpma_apm_client", NETWORK, &["serverip", "direct_write_to_pmem"]),
    ("librpma_apm_server", NETWORK, &["busy_wait_polling"]),
    ("librpma_gpspm_client", NETWORK, &[]),
    ("librpma_gpspm_server", NETWORK, &[]),
    (
        "rados",
        CLUSTER,
        &["clustername", "rbdname", "clientname", "conf", "pool", "busy_poll", "touch_objects"],
    ),
    ("rbd", CLUSTER, &[]),
    (
        "http",
        "fathom has no client for object stores; mount the store, and name a file in it",
        &[
            "http_host",
            "http_user",
            "http_pass",
            "https",
            "http_mode",
            "http_s3_region",
            "http_s3_key",
            "http_s3_keyid",
            "http_s3_sse_customer_key",
            "http_s3_sse_customer_algorithm",
            "http_s3_storage_class",
            "http_swift_auth_token",
            "http_verbose",
        ],
    ),
    ("gfapi", CLUSTER, &["volume", "brick"]),
    ("gfapi_async", CLUSTER, &[]),
    ("libhdfs", CLUSTER, &["namenode", "hdfsdirectory", "chunk_size"]),
    ("dfs", CLUSTER, &["cont", "object_class"]),
    ("nfs", "fathom has no NFS client; mount the share, and name a file in it", &["nfs_url"]),
    ("nbd", "fathom has no NBD client; attach the device with nbd-client, and name it", &["uri"]),
    ("libiscsi", "fathom has no iSCSI client; attach the device with iscsiadm, and name it", &[]),
    ("ime_psync", CLUSTER, &[]),
    ("ime_psyncv", CLUSTER, &[]),
    ("ime_aio", CLUSTER, &[]),
    ("mtd", "fathom does not measure raw flash; leave the job out", &["skip_bad"]),
    ("dev-dax", MEMORY, &[]),
    ("pmemblk", MEMORY, &[]),
    ("libpmem", MEMORY, &[]),
    ("libcufile", "fathom does not use GPU memory; type ioengine=psync", &["gpu_dev_ids", "cuda_io"]),
    ("libzbc", "fathom does not support zoned devices; leave the job out", &[]),
    ("libblkio", "fathom has no user-space drivers; type ioengine=io_uring on the block device", &[]),
    (
        "xnvme",
        "fathom has no user-space drivers; type ioengine=io_uring on the block device",
        &["xnvme_async", "xnvme_sync", "xnvme_admin", "xnvme_dev_nsid", "xnvme_iovec"],
    ),
    (
        "e4defrag",
        "it defragments files instead of measuring I/O; leave the job out",
        &["donorname", "inplace"],
    ),
    ("filecreate", FILES, &[]),
    ("dircreate", FILES, &[]),
    ("dirstat", FILES, &[]),
    ("dirdelete", FILES, &[]),
    ("filestat", FILES, &["stat_type"]),
    ("filedelete", FILES, &[]),
    (
        "exec",
        "fathom runs no other programs; leave the job out",
        &["program", "arguments", "grace_time", "std_redirect"],
    ),
    ("external", "fathom loads no external engines; leave the job out", &[]),
    ("cpp_null", "fathom loads no external engines; type ioengine=null", &[]),
    ("solarisaio", "it exists only on another operating system; type ioengine=libaio", &[]),
    ("windowsaio", "it exists only on another operating system; type ioengine=libaio", &[]),
];

const NETWORK: &str = "it measures a network, not storage; leave the job out";
const CLUSTER: &str =
    "fathom has no client for it; mount the file system or map the device, and name a file or the device";
const MEMORY: &str =
    "fathom measures persistent memory through a block device or file system; type ioengine=mmap or libaio";
const FILES: &str = "it measures operations on directories, not I/O; leave the job out";

/// An option of fio itself.
#[derive(Debug)]
pub struct OwnOption {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Name of its value; `None` if it takes none.
    pub value: Option<&'static str>,
    /// How it is handled.
    pub how: How,
}

const fn own(name: &'static str, value: Option<&'static str>, how: How) -> OwnOption {
    OwnOption { name, value, how }
}

const REMOTE: &str = "fathom measures only its own machine; type `ssh HOST fathom fio ...`, and leave it out";
const TRIGGER: &str = "fathom runs no other programs; leave it out";
const LINE: &str = "progress is one line on standard error, if that is a terminal";

/// Every option of fio 3.33 itself in the order of its help, and `destroy`, which only fathom has.
pub const OWN: &[OwnOption] = &[
    own("debug", Some("WORDS"), NoEffect("`fathom show last --verbose` prints the details of the run")),
    own("parse-only", None, Honoured("Check the jobs without running them")),
    own(
        "merge-blktrace-only",
        None,
        Refused("fathom does not merge traces; type one job with read_iolog for each trace instead"),
    ),
    own("output", Some("FILE"), Honoured("Write the output to a file")),
    own(
        "bandwidth-log",
        None,
        Honoured(
            "Write the total bandwidth of all jobs every 500 ms to agg-read_bw.log, agg-write_bw.log and agg-trim_bw.log",
        ),
    ),
    own("minimal", None, Honoured("Write terse output")),
    own("append-terse", None, Honoured("Write terse output in addition")),
    own(
        "output-format",
        Some("TYPE"),
        Honoured("Write normal, terse, json or json+; several separated by commas"),
    ),
    own("terse-version", Some("2|3|4|5"), Honoured("Version of the terse output [default: 3]")),
    own("version", None, Honoured("Print the version of fio that this command follows")),
    own("help", None, Honoured("Print this page")),
    own("cpuclock-test", None, Refused("fathom tests the clock in every measurement; leave it out")),
    own("crctest", Some("TYPE"), Refused("fathom does not use fio's checksums; leave it out")),
    own("cmdhelp", Some("OPTION|all"), Honoured("Print how a job option is handled")),
    own("enghelp", Some("ENGINE"), Honoured("Print the engines, or the options of one")),
    own("showcmd", None, Honoured("Write the jobs as one command line, and stop")),
    own(
        "eta",
        Some("always|never|auto"),
        Honoured("Whether to show progress on standard error if that is a terminal"),
    ),
    own("eta-newline", Some("TIME"), NoEffect(LINE)),
    own("eta-interval", Some("TIME"), NoEffect(LINE)),
    own(
        "status-interval",
        Some("TIME"),
        Honoured("Write the results so far at this interval, and all of them at the end"),
    ),
    own("readonly", None, Honoured("Refuse jobs that write")),
    own("section", Some("NAME"), Honoured("Run only this section of the job file; may be repeated")),
    own("alloc-size", Some("KB"), NoEffect("fathom allocates memory as needed")),
    own("warnings-fatal", None, NoEffect("every mistake in a job is an error")),
    own("max-jobs", Some("NUMBER"), NoEffect("fathom allocates memory as needed")),
    own("server", Some("ARGUMENTS"), Refused(REMOTE)),
    own("daemonize", Some("FILE"), Refused(REMOTE)),
    own("client", Some("HOST"), Refused(REMOTE)),
    own("remote-config", Some("FILE"), Refused(REMOTE)),
    own(
        "idle-prof",
        Some("none|system|percpu"),
        Honoured("Report the idle time of all CPUs together, or of each CPU, by the kernel's count"),
    ),
    own("inflate-log", Some("FILE"), Refused("fathom does not read compressed fio logs; leave it out")),
    own("trigger-file", Some("FILE"), Refused(TRIGGER)),
    own("trigger-timeout", Some("TIME"), Refused(TRIGGER)),
    own("trigger", Some("COMMAND"), Refused(TRIGGER)),
    own("trigger-remote", Some("COMMAND"), Refused(TRIGGER)),
    own("aux-path", Some("DIRECTORY"), NoEffect("fathom keeps its files in its history (`fathom list`)")),
    own(
        "destroy",
        Some("NAME"),
        Honoured(
            "Allow overwriting a file that fathom did not create (its path) or a block device (its name or serial number); may be repeated. fio has no such option: if a command line cannot be changed, set FATHOM_DESTROY to the paths, separated by :",
        ),
    ),
];

/// The option with this name or other name.
pub fn find(name: &str) -> Option<&'static FioOption> {
    OPTIONS.iter().find(|o| o.name == name || o.aliases.contains(&name))
}

/// The unsupported engine that an option belongs to.
pub(super) fn engine_of(name: &str) -> Option<&'static str> {
    OTHER_ENGINES.iter().find(|(_, _, options)| options.contains(&name)).map(|(engine, ..)| *engine)
}

/// The most similar name, if any is similar.
pub(super) fn nearest(word: &str) -> Option<&'static str> {
    const MIN_SIMILARITY: f64 = 0.6;
    crate::trouble::nearest(
        word,
        OPTIONS.iter().flat_map(|o| o.aliases.iter().chain([&o.name]).copied()),
        MIN_SIMILARITY,
    )
}

#[test]
fn names_are_unique_and_each_refusal_has_a_suggestion() {
    let mut names: Vec<&str> =
        OPTIONS.iter().flat_map(|o| o.aliases.iter().chain([&o.name]).copied()).collect();
    names.extend(OTHER_ENGINES.iter().flat_map(|(_, _, options)| options.iter().copied()));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    for option in OPTIONS {
        let (Refused(why) | Only(_, why)) = option.how else { continue };
        let has_suggestion = [";", "type "].iter().any(|mark| why.contains(mark));
        assert!(has_suggestion, "{}: {why}", option.name);
    }
    assert_eq!((nearest("iodepht"), nearest("readwrit")), (Some("iodepth"), Some("readwrite")));
    assert_eq!((nearest("xyzzyqq"), engine_of("http_host")), (None, Some("http")));
}
