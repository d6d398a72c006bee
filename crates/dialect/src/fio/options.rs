//! The tables of fio's options and how each is handled. Job files, command lines and docs/reference/fio.md
//! use them.

use How::{Held, NoEffect, Only, Refused};

/// An option of a job, and how it is handled.
#[derive(Debug)]
pub struct FioOption {
    /// Its name in fio's own help.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// What becomes of it.
    pub how: How,
}

/// How an option is handled.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// It is carried out, in this way.
    Held(&'static str),
    /// It has no effect, for this reason, which is reported once.
    NoEffect(&'static str),
    /// It is accepted with these values, which have no effect, and refused with any other, for this reason.
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
const MERGE: &str = "traces are not merged; type a job with read_iolog for each, and leave it out";
const TRACE: &str = "no latency is left out of a measurement; there is nothing to save";
pub(super) const ZONED: &str = "zones of a device are not told apart; leave it out, or give zones of random offsets by random_distribution=zoned:";
const STATE: &str = "fathom steps between no states of verification; type `fathom verify`";
const SPRANDOM: &str =
    "preconditioning writes the whole device twice here; type `fathom run --precondition`, and leave it out";
const PLACEMENT: &str =
    "places of data are named by NVMe commands, which only the engine io_uring_cmd passes on; leave it out";
const CGROUP: &str =
    "fathom enters a cgroup of its own; begin it inside the one that you mean, and leave this out";
const ROOTS: &str = "type `sudo -u USER fathom`, and leave it out";

/// Every option of fio 3.33 for files and block devices in the order of its help, followed by those of 3.42.
pub const OPTIONS: &[FioOption] = &[
    option(
        "description",
        &[],
        Held("a line of the text, a field at the end of terse lines, and the key desc of the JSON"),
    ),
    option("name", &[], Held("the name of the result")),
    option("wait_for", &[], Held("a new phase, where the job named is all that runs before")),
    option("filename", &[], Held("the targets, with `:` between them")),
    option("lockfile", &[], Only(&["none"], "files are not locked; leave it out")),
    option("directory", &[], Held("where files are made; several are given to clones in turn")),
    option(
        "filename_format",
        &[],
        Held("names of files: $jobname, $jobnum and $filenum; directories in it are made"),
    ),
    option("unique_filename", &[], NoEffect("it is for clients over a network")),
    option(
        "opendir",
        &[],
        Refused("fathom takes no files out of a directory by itself; name them by filename"),
    ),
    option(
        "rw",
        &["readwrite"],
        Held(
            "--rw; a number behind it leaves holes or goes backwards, and of random offsets is --consecutive; of trimwrite a write waits for its trim, and ends and rates count pairs",
        ),
    ),
    option("bs", &["blocksize"], Held("--bs")),
    option("ba", &["blockalign"], Held("--align, and no block is kept from coming again")),
    option("bsrange", &["blocksize_range"], Held("--bs as a range")),
    option("bssplit", &[], Held("--bs as sizes with shares")),
    option(
        "bs_unaligned",
        &["blocksize_unaligned"],
        Held("of sizes with shares, which are multiples of the smallest else"),
    ),
    option("bs_is_seq_rand", &[], Only(OFF, "sizes go by direction here; leave it out")),
    option("randrepeat", &[], Held("--seed: the same in every call unless 0")),
    option("randseed", &[], Held("--seed")),
    option("norandommap", &[], Held("--random uniform: blocks may come again; without it --random once")),
    option("softrandommap", &[], NoEffect("the order in which each block comes once takes no memory here")),
    option("ignore_error", &[], Held("--ignore-errors; they are counted and told all the same")),
    option(
        "rw_sequencer",
        &[],
        Held("identical with rw=randread:8 is --times: so many operations on each offset"),
    ),
    option("ioengine", &[], Held("--engine")),
    option("iodepth", &[], Held("--depth; 1 where the engine does one operation at a time, as in fio")),
    option("iodepth_batch", &["iodepth_batch_submit"], Held("--batch SUBMIT")),
    option("iodepth_batch_complete_min", &["iodepth_batch_complete"], Held("--batch ,COMPLETE")),
    option("iodepth_batch_complete_max", &[], NoEffect("all that has completed is taken at once")),
    option(
        "iodepth_low",
        &[],
        Held("how far a full queue is emptied before it is filled again: completions of --batch"),
    ),
    option("serialize_overlap", &[], Held("--serialize-overlap")),
    option(
        "io_submit_mode",
        &[],
        Held(
            "offload with a rate is --rate: an open loop, whose latency counts from the arrival; without one the worker submits by itself as soon as there is room",
        ),
    ),
    option("size", &[], Held("--size of each file, and --passes or --bytes")),
    option("io_size", &["io_limit"], Held("--bytes")),
    option(
        "fill_device",
        &["fill_fs"],
        Held("of a block device all of it; refused for files: fathom never fills a file system"),
    ),
    option("filesize", &[], Held("the size of each file")),
    option("file_append", &[], Only(OFF, "files are not appended to; leave it out")),
    option("offset", &[], Held("--offset; a share of a file that is not there yet is 0, as in fio")),
    option("offset_increment", &[], Held("--offset of each clone")),
    option("offset_align", &[], Held("what an offset in percent is a multiple of")),
    option("number_ios", &[], Held("--ops")),
    option(
        "random_generator",
        &[],
        Held("fathom draws with its own; lfsr touches each block once, whatever norandommap says"),
    ),
    option("random_distribution", &[], Held("--random zipf, pareto, normal or zones")),
    option("percentage_random", &[], Held("--random mixed; random operations may touch a block again")),
    option("allrandrepeat", &[], NoEffect("one seed decides all that is random")),
    option("nrfiles", &["nr_files"], Held("that many targets")),
    option(
        "file_service_type",
        &[],
        Held(
            "--sharing round-robin or random, with N operations in a row; sequential is one file after another",
        ),
    ),
    option(
        "openfiles",
        &[],
        Held("files in groups of that size, one group after another; all are open at once"),
    ),
    option(
        "fallocate",
        &[],
        Held(
            "whether a file that is only written is allocated before: with its length, beyond its end (keep), or as a hole (truncate)",
        ),
    ),
    option("fadvise_hint", &[], Held("--advice where the page cache is used; 1 unless it is said otherwise")),
    option("fsync", &[], Held("--fsync")),
    option("fdatasync", &[], Held("--fdatasync")),
    option("write_barrier", &[], Only(OFF, "no write is a barrier; type fsync=N or fdatasync=N")),
    option(
        "sync_file_range",
        &[],
        Refused("ranges are not flushed by these rules; type fsync=N or fdatasync=N"),
    ),
    option("direct", &[], Held("--cache direct or buffered")),
    option("atomic", &[], Held("the option atomic of the engines io_uring, libaio and vsync")),
    option("buffered", &[], Held("--cache buffered or direct")),
    option("overwrite", &[], Held("files that are only written are laid out before")),
    option("loops", &[], Held("--passes, or so many times the bytes")),
    option("numjobs", &["thread_number"], Held("--clones, or a stream for each clone")),
    option("startdelay", &[], Held("--delay")),
    option("runtime", &["timeout"], Held("--time")),
    option("time_based", &[], Held("no end by --passes or --bytes; nothing without runtime, as in fio")),
    option("verify_only", &[], Held("what would be written is read and compared")),
    option("ramp_time", &[], Held("--warmup")),
    option("clocksource", &[], NoEffect("fathom uses the best clock that the machine has, and tests it")),
    option("mem", &["iomem"], NoEffect("buffers are aligned pages of memory")),
    option("mem_align", &["iomem_align", "iomemalign"], NoEffect("buffers are aligned to pages")),
    option(
        "verify",
        &[],
        Held(
            "--verify: each byte is compared with what was written at its place, which all methods come to; blocks are not readable by fio",
        ),
    ),
    option("do_verify", &[], Held("what was written is read back in a phase of its own")),
    option("verify_interval", &[], NoEffect("every byte is compared")),
    option("verify_offset", &[], NoEffect("blocks have no header")),
    option("verify_pattern", &[], Held("--verify pattern; %o is the offset of the operation")),
    option("verify_fatal", &[], Held("the first difference ends it; else they are counted, 1000 at most")),
    option("verify_dump", &[], NoEffect("the first difference is told with its file, offset and byte")),
    option(
        "verify_async",
        &[],
        NoEffect("workers compare by themselves, behind the stamp of the completion"),
    ),
    option(
        "verify_async_cpus",
        &[],
        NoEffect("workers compare by themselves, behind the stamp of the completion"),
    ),
    option("verify_backlog", &[], NoEffect("all is read back when all is written")),
    option("verify_backlog_batch", &[], NoEffect("all is read back when all is written")),
    option("experimental_verify", &[], NoEffect("what is read back is drawn again, as it was written")),
    option("verifysort", &[], NoEffect("fio has taken it without using it since 3.7")),
    option("verifysort_nr", &[], NoEffect("fio has taken it without using it since 3.7")),
    option("verify_state_load", &[], Only(OFF, STATE)),
    option("verify_state_save", &[], NoEffect("blocks can be checked by any later call with verify_only")),
    option(
        "trim_percentage",
        &[],
        Only(
            OFF,
            "trims do not follow writes here; type rw=randtrim or randtrimwrite, or `fathom run --rw randrw --mix 60/30/10`",
        ),
    ),
    option("trim_verify_zero", &[], NoEffect("it goes with trim_percentage")),
    option("trim_backlog", &[], NoEffect("it goes with trim_percentage")),
    option("trim_backlog_batch", &[], NoEffect("it goes with trim_percentage")),
    option("write_iolog", &[], Held("what was read, written and trimmed, as fio's iolog of version 3")),
    option(
        "read_iolog",
        &[],
        Held(
            "--replay: an iolog of version 2 or 3, or a file of blktrace; clones take several with `:` between them in turn",
        ),
    ),
    option("read_iolog_chunked", &[], NoEffect("a log is read while it is carried out")),
    option(
        "replay_no_stall",
        &[],
        Held("--pace fast; else timed: an open loop, whose latency counts from the times of the log"),
    ),
    option("replay_redirect", &[], Held("the target; else the file that the log names")),
    option("replay_scale", &[], Held("--replay-scale, in whole sectors")),
    option("replay_align", &[], Held("--replay-align; sizes of a trace are rounded up to it too, as in fio")),
    option("replay_time_scale", &[], Held("--speed, in percent")),
    option("replay_skip", &[], Held("--replay-skip; of an iolog too, of which fio leaves nothing out")),
    option("merge_blktrace_file", &[], Refused(MERGE)),
    option("merge_blktrace_scalars", &[], Refused(MERGE)),
    option("merge_blktrace_iters", &[], Refused(MERGE)),
    option(
        "exec_prerun",
        &[],
        Refused("fathom runs no other programs; run it before by yourself, and leave this out"),
    ),
    option(
        "exec_postrun",
        &[],
        Refused("fathom runs no other programs; run it afterwards by yourself, and leave this out"),
    ),
    option(
        "ioscheduler",
        &[],
        Refused("fathom changes no setting of a device; set it in /sys/block, and leave this out"),
    ),
    option(
        "zonemode",
        &[],
        Held("strided is --strided; zbd is refused: zones of a device are not told apart"),
    ),
    option("zonesize", &[], Held("--strided SIZE: bytes that are moved in a zone")),
    option("zonecapacity", &[], Refused(ZONED)),
    option("zonerange", &[], Held("--strided ,RANGE: bytes of a zone")),
    option("zoneskip", &[], Held("--strided ,,SKIP: bytes left out behind a zone")),
    option("read_beyond_wp", &[], Only(OFF, ZONED)),
    option("max_open_zones", &[], Only(OFF, ZONED)),
    option("job_max_open_zones", &[], Only(OFF, ZONED)),
    option("ignore_zone_limits", &[], Only(OFF, ZONED)),
    option("zone_reset_threshold", &[], Refused(ZONED)),
    option("zone_reset_frequency", &[], Refused(ZONED)),
    option("lockmem", &[], Refused("fathom locks no memory; leave it out")),
    option("rwmixread", &[], Held("--mix")),
    option("rwmixwrite", &[], Held("--mix")),
    option("nice", &[], Held("--nice")),
    option("prio", &[], Held("--io-priority")),
    option("prioclass", &[], Held("--io-priority")),
    option("thinktime", &[], Held("--think")),
    option("thinktime_spin", &[], Held("--think-spin")),
    option("thinktime_blocks", &[], Held("--burst")),
    option(
        "thinktime_blocks_type",
        &[],
        Held(
            "either way a burst has so many operations as it is submitted, of which none follows before all have completed",
        ),
    ),
    option("thinktime_iotime", &[], Held("--burst-time, from the end of a pause on")),
    option(
        "rate",
        &[],
        Held("--limit-bandwidth; of a mix that of each direction, of which one may have none"),
    ),
    option(
        "rate_min",
        &["ratemin"],
        Held("--min-rate bw; the run ends with an error as soon as one job is slower"),
    ),
    option(
        "rate_process",
        &[],
        Held(
            "poisson is --rate with --arrivals poisson: an open loop, whose latency counts from the arrival",
        ),
    ),
    option("rate_cycle", &["ratecycle"], Held("the time over which --min-rate is taken")),
    option("rate_ignore_thinktime", &[], Only(OFF, "pauses and rates do not go together; type one of them")),
    option(
        "rate_iops",
        &[],
        Held(
            "--limit-iops, of a mix as rate; where sizes vary as many bytes as that many of the smallest have, as in fio",
        ),
    ),
    option(
        "rate_iops_min",
        &[],
        Held("--min-rate iops; the run ends with an error as soon as one job is slower"),
    ),
    option(
        "max_latency",
        &[],
        Held("--max-latency; the run ends with an error as soon as a read, a write or a trim took longer"),
    ),
    option("latency_target", &[], Held("--latency-target; the figures are of the last window")),
    option("latency_window", &[], Held("the window of --latency-target")),
    option("latency_percentile", &[], Held("the share of --latency-target")),
    option("latency_run", &[], Held("--latency-target with :run behind it")),
    option("invalidate", &[], Held("--cold, and --evict-each-pass where there are several")),
    option("sync", &[], Held("--cache sync, dsync and the like")),
    option("write_hint", &[], NoEffect("it is a label of the data's lifetime, and fathom gives writes none")),
    option("create_serialize", &[], NoEffect("files are made one after another")),
    option("create_fsync", &[], NoEffect("files are made stable before the first run")),
    option("create_on_open", &[], NoEffect("files are made before the first run")),
    option("create_only", &[], Held("the files are made, and nothing is done in them")),
    option("allow_file_create", &[], Held("whether a file that is missing is made")),
    option("allow_mounted_write", &[], NoEffect("what is mounted is never written")),
    option("pre_read", &[], Only(OFF, "files are not read before; type invalidate=0 and run it twice")),
    option("cpumask", &[], Held("--cpus")),
    option("cpus_allowed", &[], Held("--cpus")),
    option("cpus_allowed_policy", &[], Held("--pin where it is split")),
    option("numa_cpu_nodes", &[], Held("--cpus, those of the nodes")),
    option("numa_mem_policy", &[], Held("--memory-nodes")),
    option(
        "end_fsync",
        &[],
        Held(
            "what was written is flushed at the end of every run, timed apart from the operations; its error is the error of the job",
        ),
    ),
    option(
        "fsync_on_close",
        &[],
        Held(
            "what was written is flushed at the end of every run, timed apart from the operations; its error is the error of the job",
        ),
    ),
    option("unlink", &[], Held("files that fathom made are removed at the end")),
    option(
        "unlink_each_loop",
        &[],
        Only(OFF, "files stay for the next call; leave it out and remove them by yourself"),
    ),
    option("exitall", &[], Held("--ends-others")),
    option(
        "exit_what",
        &[],
        Held("which jobs end with one that has exitall: its group, those that run beside it, or all"),
    ),
    option("exitall_on_error", &[], NoEffect("where a worker fails all of them end")),
    option("stonewall", &["wait_for_previous"], Held("a new phase")),
    option("new_group", &[], Held("another group in fio's formats")),
    option("thread", &["threads"], NoEffect("workers are threads")),
    option("per_job_logs", &[], Held("0 for one file of all jobs")),
    option("write_bw_log", &[], Held("files PREFIX_bw.N.log of bandwidth, one for each job")),
    option("bwavgtime", &[], Held("interval of the bandwidth log, where it is shorter than log_avg_msec")),
    option(
        "write_lat_log",
        &[],
        Held(
            "files PREFIX_lat.N.log and PREFIX_clat.N.log of latencies; PREFIX_slat.N.log is empty, since no time passes before the submission that is not in the others",
        ),
    ),
    option("write_iops_log", &[], Held("files PREFIX_iops.N.log of operations per second")),
    option(
        "iopsavgtime",
        &[],
        Held("interval of the log of operations per second, where it is shorter than log_avg_msec"),
    ),
    option("log_entries", &[], NoEffect("logs grow as they need")),
    option("log_avg_msec", &[], Held("--op-log-interval")),
    option("log_hist_msec", &[], Held("interval of histograms")),
    option("log_hist_coarseness", &[], Held("fewer columns of histograms")),
    option(
        "write_hist_log",
        &[],
        Held("files PREFIX_clat_hist.N.log of histograms; what is left at the end is a line of its own"),
    ),
    option("log_max_value", &[], Held("largest instead of mean latencies")),
    option(
        "log_window_value",
        &[],
        Held("mean, largest or both latencies of an interval (fio 3.38 and newer)"),
    ),
    option("log_issue_time", &[], Held("a column with the time of the submission (fio 3.38 and newer)")),
    option("log_offset", &[], Held("a column with the offset")),
    option("log_prio", &[], Held("the priority in full")),
    option("log_compression", &[], NoEffect("logs are kept as they are")),
    option("log_compression_cpus", &[], NoEffect("logs are kept as they are")),
    option(
        "log_store_compressed",
        &[],
        Only(OFF, "logs are written as text, which `gzip` makes smaller afterwards; leave it out"),
    ),
    option("log_unix_epoch", &[], Held("times count from 1970")),
    option("log_alternate_epoch", &[], Held("times count from 1970")),
    option(
        "log_alternate_epoch_clock_id",
        &[],
        Only(&["0"], "times count from the beginning, or from 1970 (clock 0); leave it out"),
    ),
    option(
        "block_error_percentiles",
        &[],
        Only(OFF, "errors of trims are counted, not ranked; leave it out"),
    ),
    option("group_reporting", &[], Held("clones are one result, and in fio's formats all jobs of a group")),
    option("stats", &[], NoEffect("every job is measured")),
    option("zero_buffers", &[], Held("--zeros")),
    option("refill_buffers", &[], NoEffect("every write has data of its own")),
    option("scramble_buffers", &[], NoEffect("every write has data of its own")),
    option("buffer_pattern", &[], Held("what is written; never compared")),
    option("buffer_compress_percentage", &[], Held("--compress")),
    option(
        "buffer_compress_chunk",
        &[],
        NoEffect("each 4 KiB are as compressible as asked for, and so is every larger chunk"),
    ),
    option("dedupe_percentage", &[], Held("--dedup")),
    option("dedupe_mode", &[], Held("--dedup-set where it is working_set")),
    option("dedupe_working_set_percentage", &[], Held("--dedup-set, of the size")),
    option("dedupe_global", &[], Held("--dedup-shared, among jobs that run at once")),
    option(
        "clat_percentiles",
        &[],
        Held("whether clat_ns has percentiles in fio's formats; 1 unless it is said otherwise"),
    ),
    option(
        "lat_percentiles",
        &[],
        Held("whether lat_ns has percentiles; terse lines have these instead of those of clat"),
    ),
    option(
        "slat_percentiles",
        &[],
        NoEffect("the time of the submission is part of clat, so slat_ns has no samples"),
    ),
    option("percentile_list", &[], Held("the percentiles of fio's formats, 20 at most")),
    option("significant_figures", &[], NoEffect("figures are shown as far as they are certain")),
    option("disk_util", &[], NoEffect("the counters of every disk below are always read")),
    option("gtod_reduce", &[], NoEffect(TRACE)),
    option("disable_lat", &[], Held("no log of it; figures have every latency")),
    option("disable_clat", &[], Held("no log of it; figures have every latency")),
    option("disable_slat", &[], Held("no log of it")),
    option("disable_bw_measurement", &["disable_bw"], NoEffect(TRACE)),
    option("gtod_cpu", &[], NoEffect(TRACE)),
    option("unified_rw_reporting", &[], Held("directions as one in fio's formats")),
    option("continue_on_error", &[], Held("--max-errors all, for reads, writes or both; the exit code is 0")),
    option("error_dump", &[], NoEffect("errors are counted by their kind")),
    option("profile", &[], Refused("type `fathom bench --profile`, or `fathom recipe`")),
    option("cgroup", &[], Refused(CGROUP)),
    option("cgroup_nodelete", &[], Refused(CGROUP)),
    option("cgroup_weight", &[], Refused(CGROUP)),
    option("uid", &[], Refused(ROOTS)),
    option("gid", &[], Refused(ROOTS)),
    option(
        "kb_base",
        &[],
        Held(
            "what k, m and g stand for: in the whole section of a job file, on the command line in the options after it; with 1000 the text has units of 1000 first",
        ),
    ),
    option("unit_base", &[], Held("rates of the text in bits where it is 1")),
    option("hugepage-size", &[], NoEffect("buffers are aligned pages of memory")),
    option("flow_id", &[], Held("group of --flow")),
    option(
        "flow",
        &[],
        Held(
            "--flow: a job that is ahead of its share of the operations waits, from its first one to its end",
        ),
    ),
    option("flow_watermark", &[], NoEffect("fio has taken it without using it since 3.23")),
    option("flow_sleep", &[], Held("pause of --flow, while operations in flight go on")),
    option("steadystate", &["ss"], Held("--steady-state, for each clone unless they are one group")),
    option("steadystate_duration", &["ss_dur"], Held("the window of --steady-state")),
    option("steadystate_ramp_time", &["ss_ramp"], Held("the time before the window of --steady-state")),
    option(
        "steadystate_check_interval",
        &["ss_interval"],
        Held("time of each value of --steady-state (fio 3.37 and newer)"),
    ),
    option("hipri", &[], Held("the engine's option iopoll or hipri")),
    option("hipri_percentage", &[], Only(&["100"], "all operations are polled for, or none; leave it out")),
    option("uncached", &[], Held("the engine's option dontcache")),
    option("nowait", &[], Held("the option nowait of the engine vsync")),
    option("fixedbufs", &[], Held("io_uring registers its buffers unless it is left out")),
    option("registerfiles", &[], Held("io_uring registers its files unless it is left out")),
    option("sqthread_poll", &[], Held("io_uring:sqpoll")),
    option("sqthread_poll_cpu", &[], Held("io_uring:sqpoll=N")),
    option("nonvectored", &[], NoEffect("io_uring has one buffer for each operation")),
    option(
        "force_async",
        &[],
        Only(OFF, "operations are not forced into threads of the kernel; leave it out"),
    ),
    option("userspace_reap", &[], NoEffect("completions are taken by io_getevents")),
    option(
        "cmdprio_percentage",
        &[],
        Held(
            "--op-priority, of reads and writes; latencies of each priority stand apart in the output, as in fio",
        ),
    ),
    option(
        "cmdprio_class",
        &[],
        Held("the class of --op-priority; real-time where nothing is said, as in fio"),
    ),
    option("cmdprio", &[], Held("the level of --op-priority")),
    option("cmdprio_bssplit", &[], Held("--op-priority for each size")),
    // Newer than fio 3.33, from the source of 3.42.
    option(
        "end_syncfs",
        &[],
        Held("as end_fsync: what the job wrote is flushed at the end of every run; what others wrote is not"),
    ),
    option("filetype", &[], NoEffect("the kernel says what a file is")),
    option("comm", &[], NoEffect("it is the name of a process, and workers are threads")),
    option("libaio_vectored", &[], NoEffect("an operation has one buffer")),
    option("percentage_sequential", &[], NoEffect("fio takes it without using it")),
    option("rwmixcycle", &[], NoEffect("fio takes it without using it")),
    option("verify_header_seed", &[], NoEffect("blocks have no header, and every byte is compared")),
    option("verify_write_sequence", &[], NoEffect("blocks have no header, and every byte is compared")),
    option("verify_policy", &[], Only(&["completed"], "every completed write is compared; leave it out")),
    option("verify_pattern_interval", &[], Only(OFF, "a pattern begins with each operation; leave it out")),
    option("ramp_size", &[], Only(OFF, "a ramp ends after a time; type ramp_time")),
    option("priohint", &[], Only(OFF, "operations have a class and a level; leave it out")),
    option("thinkcycles", &[], Only(OFF, "a pause has a time; type thinktime and thinktime_spin")),
    option(
        "random_sequence_stride",
        &[],
        Only(OFF, "random offsets are uniform or follow a law; leave it out"),
    ),
    option("num_range", &[], Only(&["1"], "a trim has one range; leave it out")),
    option("job_start_clock_id", &[], Only(OFF, "the start is a time of the clock of the day; leave it out")),
    option("sprandom", &[], Only(OFF, SPRANDOM)),
    option("spr_num_regions", &[], NoEffect("it goes with sprandom")),
    option("spr_op", &[], NoEffect("it goes with sprandom")),
    option("spr_cs", &[], NoEffect("it goes with sprandom")),
    option("recover_zbd_write_error", &[], Only(OFF, ZONED)),
    option("write_zone_remainder", &[], Only(OFF, ZONED)),
    option("fdp", &[], Only(OFF, PLACEMENT)),
    option("dataplacement", &["data_placement"], Only(&["none"], PLACEMENT)),
    option("plid_select", &["fdp_pli_select"], NoEffect("it goes with dataplacement")),
    option("plids", &["fdp_pli"], NoEffect("it goes with dataplacement")),
    option("dp_scheme", &[], NoEffect("it goes with dataplacement")),
];

/// Engines of fio that are not supported, with the reason and their own options.
pub(super) const OTHER_ENGINES: &[(&str, &str, &[&str])] = &[
    (
        "io_uring_cmd",
        "it passes commands through to an NVMe device; type ioengine=io_uring on the block device",
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
        "it passes SCSI commands through; type ioengine=psync on the block device",
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
        "it speaks to object stores; mount the store, and name a file there",
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
    ("nfs", "it has a client of its own; mount the share, and name a file there", &["nfs_url"]),
    ("nbd", "it has a client of its own; attach the device by nbd-client, and name it", &["uri"]),
    ("libiscsi", "it has a client of its own; attach the device by iscsiadm, and name it", &[]),
    ("ime_psync", CLUSTER, &[]),
    ("ime_psyncv", CLUSTER, &[]),
    ("ime_aio", CLUSTER, &[]),
    ("mtd", "raw flash is not measured; leave the job out", &["skip_bad"]),
    ("dev-dax", MEMORY, &[]),
    ("pmemblk", MEMORY, &[]),
    ("libpmem", MEMORY, &[]),
    ("libcufile", "memory of graphics cards is not used; type ioengine=psync", &["gpu_dev_ids", "cuda_io"]),
    ("libzbc", "zoned devices have no interface of their own here; leave the job out", &[]),
    ("libblkio", "it is a library of drivers; type ioengine=io_uring on the block device", &[]),
    (
        "xnvme",
        "it is a library of drivers; type ioengine=io_uring on the block device",
        &["xnvme_async", "xnvme_sync", "xnvme_admin", "xnvme_dev_nsid", "xnvme_iovec"],
    ),
    ("e4defrag", "it defragments files; leave the job out", &["donorname", "inplace"]),
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
    ("external", "fathom loads no engines; leave the job out", &[]),
    ("cpp_null", "fathom loads no engines; type ioengine=null", &[]),
    ("solarisaio", "it is of another operating system; type ioengine=libaio", &[]),
    ("windowsaio", "it is of another operating system; type ioengine=libaio", &[]),
];

const NETWORK: &str = "it measures a network, not storage; leave the job out";
const CLUSTER: &str =
    "it has a client of its own; mount the file system or map the device, and name a file or device there";
const MEMORY: &str =
    "persistent memory is measured as a block device or file system on it; type ioengine=mmap or libaio";
const FILES: &str = "it measures the making of files, not I/O in them; leave the job out";

/// An option of fio itself.
#[derive(Debug)]
pub struct OwnOption {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Name of its value; `None` if it takes none.
    pub value: Option<&'static str>,
    /// What becomes of it.
    pub how: How,
}

const fn own(name: &'static str, value: Option<&'static str>, how: How) -> OwnOption {
    OwnOption { name, value, how }
}

const REMOTE: &str =
    "fathom measures the machine that it runs on; type `ssh HOST fathom fio ...`, and leave it out";
const TRIGGER: &str = "fathom runs no other programs; leave it out";
const LINE: &str = "progress is one line on standard error, where that is a terminal";

/// Every option of fio 3.33 itself in the order of its help, and one of fathom.
pub const OWN: &[OwnOption] = &[
    own("debug", Some("WORDS"), NoEffect("`fathom show last --verbose` prints what happened")),
    own("parse-only", None, Held("Read the jobs, say what is wrong with them, and stop")),
    own(
        "merge-blktrace-only",
        None,
        Refused(
            "fathom merges no traces; replay each by `fathom capture --import` and `fathom run`, and leave it out",
        ),
    ),
    own("output", Some("FILE"), Held("Write the output to a file")),
    own(
        "bandwidth-log",
        None,
        Held(
            "Write the bandwidth of all jobs together, by half seconds, to agg-read_bw.log, agg-write_bw.log and agg-trim_bw.log",
        ),
    ),
    own("minimal", None, Held("Write terse output")),
    own("append-terse", None, Held("Write terse output too")),
    own(
        "output-format",
        Some("TYPE"),
        Held("Write normal, terse, json or json+; several with commas between them"),
    ),
    own("terse-version", Some("2|3|4|5"), Held("Version of the terse output [default: 3]")),
    own("version", None, Held("Print the version of fio whose language and output these are")),
    own("help", None, Held("Print this page")),
    own("cpuclock-test", None, Refused("the clock is tested in every measurement; leave it out")),
    own("crctest", Some("TYPE"), Refused("fathom has none of fio's checksums; leave it out")),
    own("cmdhelp", Some("OPTION|all"), Held("Print what becomes of an option of a job")),
    own("enghelp", Some("ENGINE"), Held("Print the engines, or the options of one")),
    own("showcmd", None, Held("Write the jobs as one command line, and stop")),
    own(
        "eta",
        Some("always|never|auto"),
        Held(
            "Whether progress is shown: on standard error, and only where that is a terminal; any other word is auto",
        ),
    ),
    own("eta-newline", Some("TIME"), NoEffect(LINE)),
    own("eta-interval", Some("TIME"), NoEffect(LINE)),
    own(
        "status-interval",
        Some("TIME"),
        Held("Write the output so far each time so many seconds have passed, and all of it at the end"),
    ),
    own("readonly", None, Held("Refuse jobs that write")),
    own("section", Some("NAME"), Held("Carry this section of a job file out; may be repeated")),
    own("alloc-size", Some("KB"), NoEffect("memory is taken as it is needed")),
    own("warnings-fatal", None, NoEffect("what is wrong is never a warning")),
    own("max-jobs", Some("NUMBER"), NoEffect("memory is taken as it is needed")),
    own("server", Some("ARGUMENTS"), Refused(REMOTE)),
    own("daemonize", Some("FILE"), Refused(REMOTE)),
    own("client", Some("HOST"), Refused(REMOTE)),
    own("remote-config", Some("FILE"), Refused(REMOTE)),
    own(
        "idle-prof",
        Some("none|system|percpu"),
        Held("Tell the time without work of all CPUs, or of each, as the kernel counts it"),
    ),
    own(
        "inflate-log",
        Some("FILE"),
        Refused("fathom writes no logs of fio's; type `zcat`, and leave it out"),
    ),
    own("trigger-file", Some("FILE"), Refused(TRIGGER)),
    own("trigger-timeout", Some("TIME"), Refused(TRIGGER)),
    own("trigger", Some("COMMAND"), Refused(TRIGGER)),
    own("trigger-remote", Some("COMMAND"), Refused(TRIGGER)),
    own("aux-path", Some("DIRECTORY"), NoEffect("sessions are kept where `fathom list` finds them")),
    own(
        "destroy",
        Some("NAME"),
        Held(
            "Allow overwriting a file that fathom did not make (its path) or a block device (its name or serial); may be repeated. fio has no such option: where its command line cannot be changed, set FATHOM_DESTROY to its path, with : between several",
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
    const LIKENESS: f64 = 0.6;
    crate::trouble::nearest(
        word,
        OPTIONS.iter().flat_map(|o| o.aliases.iter().chain([&o.name]).copied()),
        LIKENESS,
    )
}

#[test]
fn names_are_unique_and_every_reason_has_a_suggestion() {
    let mut names: Vec<&str> =
        OPTIONS.iter().flat_map(|o| o.aliases.iter().chain([&o.name]).copied()).collect();
    names.extend(OTHER_ENGINES.iter().flat_map(|(_, _, options)| options.iter().copied()));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    for option in OPTIONS {
        let (Refused(why) | Only(_, why)) = option.how else { continue };
        let says = [";", "type "].iter().any(|mark| why.contains(mark));
        assert!(says, "{}: {why}", option.name);
    }
    assert_eq!((nearest("iodepht"), nearest("readwrit")), (Some("iodepth"), Some("readwrite")));
    assert_eq!((nearest("xyzzyqq"), engine_of("http_host")), (None, Some("http")));
}
