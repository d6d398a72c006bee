//! The table of DISKSPD's options and how each is handled. The help of `fathom diskspd` and
//! docs/reference/diskspd.md are made from it.

use crate::options::{ToolOption, honoured, no_effect, refused};

pub(super) const ETW: &str = "Linux has no ETW; remove the option, and record the requests by `fathom capture DEVICE` at the same time";
pub(super) const EVENTS: &str = "Linux has no named events; remove the option, and start both programs from a script (`diskspd ... & wait`)";
pub(super) const ROUTINES: &str = "Linux has no completion routines; remove the option";
pub(super) const REMOTE: &str = "Linux cannot bypass its own cache and use the cache of a file server; type -Su to bypass both, or -Sb to use both";
pub(super) const TEMPORARY: &str =
    "Linux has no attribute for temporary files; leave the t out, or put the file on tmpfs";
pub(super) const NON_VOLATILE: &str =
    "Linux only flushes a mapping by msync; type -Nv, which waits for each write";
pub(super) const STATISTICS: &str = "fathom has no such statistics; leave the s out";
pub(super) const EXPERIMENT: &str = "fathom has no experimental flags; remove the option";

/// Every option of DISKSPD 2.2 in the order of its help, without the dash, and `--destroy`, which only fathom has. A letter with several
/// meanings has several entries.
#[rustfmt::skip] // One line for each option.
pub const OPTIONS: &[ToolOption] = &[
    honoured("?", "", "this page"),
    refused(":", EXPERIMENT).takes("FLAGS"),
    honoured("ag", "", "binds threads to the usable CPUs in turn (`sched_setaffinity`); the default without -n"),
    honoured("a", "cpus pin", "binds threads to these CPUs in turn, in this order; Linux has one processor group, g0").takes("[gN,]CPU,..."),
    honoured("b", "bs", "bytes of each operation, and the unit `b` of a size [default: 64K]").takes("SIZE"),
    honoured("B", "offset", "first byte of the region, and its length").takes("BASE[:LENGTH]"),
    honoured("c", "create", "creates missing files of this size, fills them with incompressible data, and keeps them; a file from an earlier invocation is used again, and enlarged if it is too small").takes("SIZE"),
    honoured("C", "cooldown", "time after the measured window in which operations continue [default: 0]").takes("SECONDS"),
    honoured("D", "", "IOPS of each thread on each target by interval: the standard deviation in text, all values in XML [default: 1000]").takes("MS"),
    honoured("d", "time", "length of the measured window [default: 10]").takes("SECONDS"),
    honoured("f", "size", "end of the region [default: the end of the target]").takes("SIZE"),
    honoured("fr", "advice", "`posix_fadvise(POSIX_FADV_RANDOM)`: no read-ahead"),
    honoured("fs", "advice", "`posix_fadvise(POSIX_FADV_SEQUENTIAL)`: more read-ahead"),
    refused("ft", TEMPORARY),
    honoured("F", "", "number of threads, each of which uses all targets (`--workers`, `--sharing each`)").takes("N"),
    honoured("g", "limit-iops limit-bandwidth", "limit for each thread on each target: bytes per millisecond, or IOPS with i; a thread does not catch up after a pause").takes("N[i]"),
    honoured("h", "", "the same as -Sh"),
    honoured("i", "burst", "operations of a burst, divided by the threads of the target; needs -j").takes("N"),
    honoured("j", "think", "pause between bursts, from the last completion of a burst").takes("MS"),
    honoured("I", "io-priority", "I/O priority (`ioprio_set`): 1 is idle, 2 is be:7, 3 is normal [default: 3]").takes("1|2|3"),
    no_effect("l", "buffers are on huge pages if available"),
    honoured("L", "", "latencies in the output; fathom always measures them"),
    honoured("n", "", "threads may run on any CPU"),
    honoured("Nv", "fsync", "`msync(MS_SYNC)` after each write to a mapping"),
    refused("Nn", NON_VOLATILE),
    refused("Ni", NON_VOLATILE),
    honoured("o", "depth", "queue depth of each thread on each target: a thread with a single operation in flight uses `pread` and `pwrite`, others use io_uring, or libaio if io_uring is denied; a mapping (-Sm) always has 1 [default: 2]").takes("N"),
    honoured("O", "sharing", "queue depth of each thread of -F on all its targets together; weights choose the target of each operation (`--sharing weighted:`)").takes("N"),
    honoured("p", "times", "all operations in flight of a thread have the same offset: each offset is used -o times in a row"),
    honoured("P", "", "progress as lines on standard error instead of dots").takes("N"),
    honoured("r", "random align", "random offsets: multiples of ALIGN, counted from the base of -B [default: the block size]").takes("[ALIGN]"),
    honoured("rdpct", "", "percentage of random operations for each part of the target (`--random zones:`); the remaining operations go to the rest of the target, and a part with 0/ gets none; with -rs, each sequential stretch starts in one of these parts").takes("IO%/TARGET%:..."),
    honoured("rdabs", "", "like -rdpct, with sizes; parts beyond the end are left out, and their operations go to the other parts").takes("IO%/SIZE:..."),
    honoured("rs", "run-length mix-by-run", "percentage of random operations; all remaining operations begin where the previous one ended (`--random mixed:`). In a mix, all operations of one sequential stretch are reads or all are writes").takes("PERCENT"),
    honoured("R", "", "format of the results; -Rptext and -Rpxml print the profile and measure nothing [default: text]").takes("text|xml"),
    honoured("s", "stride", "sequential, with this distance between the starts of operations [default: the block size]").takes("[STRIDE]"),
    honoured("si", "", "like -s, with one position for all threads (`--start interlocked`)").takes("[STRIDE]"),
    honoured("S", "cache", "the same as -Su"),
    honoured("Sb", "", "through the page cache [default]"),
    honoured("Sh", "", "the same as -Suw"),
    honoured("Sm", "", "loads and stores to a mapping (`--cache mmap`)"),
    refused("Sr", REMOTE),
    honoured("Su", "", "O_DIRECT: bypasses the page cache"),
    honoured("Sw", "", "O_DSYNC: each write is stable before it completes; can be combined with b and u"),
    honoured("t", "workers", "threads of each target [default: 1]").takes("N"),
    honoured("T", "start", "distance between the starts of sequential threads (`--start every:`)").takes("OFFSET"),
    honoured("v", "", "progress as lines on standard error, as with -P"),
    refused("vs", STATISTICS),
    honoured("w", "rw mix", "percentage of writes [default: 0]").takes("PERCENT"),
    honoured("W", "warmup", "time before the measured window in which operations run [default: 5]").takes("SECONDS"),
    refused("x", ROUTINES),
    honoured("X", "", "runs an XML profile; -C, -d, -R, -v, -W and -z may follow, and targets for *1, *2 ... in it").takes("FILE"),
    refused("ye", EVENTS).takes("EVENT"),
    refused("yf", EVENTS).takes("EVENT"),
    refused("yp", EVENTS).takes("EVENT"),
    refused("yr", EVENTS).takes("EVENT"),
    refused("ys", EVENTS).takes("EVENT"),
    refused("e", ETW).takes("WORD"),
    honoured("z", "seed", "seed of all random numbers; without a number, from the clock [default: 0]").takes("[SEED]"),
    honoured("Z", "zeros counting", "writes are zeros"),
    honoured("Zr", "", "every write has new random data"),
    honoured("Z", "dedup dedup-set data", "writes repeat random data of this size, or the bytes of a file of at most this size").takes("SIZE[,FILE]"),
    honoured("-destroy", "", "allows overwriting a file that fathom did not create (its path) or a block device (its name or serial number); may be repeated. DISKSPD has no such option: if a command line cannot be changed, set FATHOM_DESTROY to the paths, separated by :").takes("=NAME"),
];

/// The help: the form of a command line, and how each option is handled.
pub(super) fn help() -> String {
    let mut out = String::from(
        "Usage: diskspd [options] target1 [target2 ...]\n\nA target is a file or a block device. Sizes are in bytes, with K, M, G or T in powers of 1024, with b in blocks (-b).\nA value directly follows its option. Options come before targets.\n\n",
    );
    for option in OPTIONS {
        let (name, about) = (format!("{}{}", option.name, option.value), option.explained().replace('`', ""));
        out += &format!("  -{name:<16} {about}\n");
    }
    out + "\nOptions are those of DISKSPD 2.2; `fathom help reference/diskspd` explains them. Without -Z or -Zr, writes repeat the bytes 0 to 255,\nas in DISKSPD. Storage that compresses data stores almost nothing of them.\n"
}
