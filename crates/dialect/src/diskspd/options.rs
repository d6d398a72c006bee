//! The table of DISKSPD's options and how each is handled. Its command line, its help and
//! docs/reference/diskspd.md are made from it.

use crate::names_in_tool::without_settings;
use How::{Honoured, NoEffect, Refused};

/// An entry of the table: an option, or one of the meanings of its letter.
#[derive(Debug)]
pub struct DiskspdOption {
    /// The prefix after the dash: a letter, with more characters if the letter has several meanings.
    pub name: &'static str,
    /// The attached value; empty if there is none.
    pub value: &'static str,
    /// How it is handled.
    pub how: How,
}

/// How an option is handled.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// It works: its effect on Linux.
    Honoured(&'static str),
    /// It is accepted and has no effect, for this reason. A remark reports the reason once.
    NoEffect(&'static str),
    /// It is refused: why, and what to type instead.
    Refused(&'static str),
}

const fn option(name: &'static str, value: &'static str, how: How) -> DiskspdOption {
    DiskspdOption { name, value, how }
}

pub(super) const ETW: &str =
    "Linux has no ETW; leave it out, and record the requests by `fathom capture DEVICE` at the same time";
pub(super) const EVENTS: &str =
    "Linux has no named events; leave it out, and start both programs from a script (`diskspd ... & wait`)";
pub(super) const ROUTINES: &str = "Linux has no completion routines; leave it out";
pub(super) const REMOTE: &str = "Linux cannot bypass its own cache and use that of a file server; type -Su to bypass both, or -Sb to use both";
pub(super) const TEMPORARY: &str =
    "Linux has no attribute for temporary files; leave the t out, or put the file on tmpfs";
pub(super) const NON_VOLATILE: &str =
    "Linux only flushes a mapping by msync; type -Nv, which waits for each write";
pub(super) const STATISTICS: &str = "fathom has no such statistics; leave the s out";
pub(super) const EXPERIMENT: &str = "fathom has no experimental flags; leave it out";

/// Every option of DISKSPD 2.2 in the order of its help, and `--destroy`, which only fathom has.
pub const OPTIONS: &[DiskspdOption] = &[
    option("?", "", Honoured("this page")),
    option(":", "FLAGS", Refused(EXPERIMENT)),
    option(
        "ag",
        "",
        Honoured("binds threads to the usable CPUs in turn (`sched_setaffinity`); the default without -n"),
    ),
    option(
        "a",
        "[gN,]CPU,...",
        Honoured("the same for these CPUs in this order; Linux has one processor group, g0"),
    ),
    option("b", "SIZE", Honoured("bytes of each operation, and the unit `b` of a size [default: 64K]")),
    option("B", "BASE[:LENGTH]", Honoured("first byte of the region, and its length (`--offset`, `--size`)")),
    option(
        "c",
        "SIZE",
        Honoured(
            "creates missing files of this size, fills them with incompressible data, and keeps them; a file from an earlier call is used again, and enlarged if it is too small",
        ),
    ),
    option(
        "C",
        "SECONDS",
        Honoured("time after the measured window in which operations continue (`--cooldown`) [default: 0]"),
    ),
    option(
        "D",
        "MS",
        Honoured(
            "IOPS of each thread on each target by interval: the standard deviation in text, all values in XML [default: 1000]",
        ),
    ),
    option("d", "SECONDS", Honoured("length of the measured window (`--time`) [default: 10]")),
    option("f", "SIZE", Honoured("end of the region (`--size`) [default: the end of the target]")),
    option("fr", "", Honoured("`posix_fadvise(POSIX_FADV_RANDOM)`: no read-ahead (`--advice random`)")),
    option(
        "fs",
        "",
        Honoured("`posix_fadvise(POSIX_FADV_SEQUENTIAL)`: more read-ahead (`--advice sequential`)"),
    ),
    option("ft", "", Refused(TEMPORARY)),
    option(
        "F",
        "N",
        Honoured("number of threads, each of which uses all targets (`--workers`, `--sharing each`)"),
    ),
    option(
        "g",
        "N[i]",
        Honoured(
            "limit for each thread on each target: bytes per millisecond, or IOPS with i (`--limit-bandwidth`, `--limit-iops`); pauses are not made up for",
        ),
    ),
    option("h", "", Honoured("the same as -Sh")),
    option(
        "i",
        "N",
        Honoured("operations of a burst, divided by the threads of the target; needs -j (`--burst`)"),
    ),
    option("j", "MS", Honoured("pause between bursts, from the last completion of a burst (`--think`)")),
    option(
        "I",
        "1|2|3",
        Honoured("I/O priority (`ioprio_set`): 1 is idle, 2 is be:7, 3 is the normal one [default: 3]"),
    ),
    option("l", "", NoEffect("buffers are on huge pages if available")),
    option("L", "", Honoured("latencies in the output; they are always measured")),
    option("n", "", Honoured("threads may run on any CPU")),
    option("Nv", "", Honoured("`msync(MS_SYNC)` after each write to a mapping (`--fsync 1`)")),
    option("Nn", "", Refused(NON_VOLATILE)),
    option("Ni", "", Refused(NON_VOLATILE)),
    option(
        "o",
        "N",
        Honoured(
            "queue depth of each thread on each target (`--depth`): 1 uses `pread` and `pwrite`, more use io_uring, or libaio if io_uring is denied; a mapping has 1 [default: 2]",
        ),
    ),
    option(
        "O",
        "N",
        Honoured(
            "queue depth of each thread of -F on all its targets together; weights choose the target of each operation (`--sharing weighted:`)",
        ),
    ),
    option(
        "p",
        "",
        Honoured(
            "all operations in flight of a thread have the same offset: each offset is used -o times in a row (`--times`)",
        ),
    ),
    option("P", "N", Honoured("progress as lines on standard error instead of dots")),
    option(
        "r",
        "[ALIGN]",
        Honoured("random offsets, in multiples of this from -B (`--align`) [default: the block size]"),
    ),
    option(
        "rdpct",
        "IO%/TARGET%:...",
        Honoured(
            "percentage of random operations for each part of the target (`--random zones:`); the remaining operations go to the rest of the target, and a part with 0/ gets none; with -rs, runs start there (`--run-length`)",
        ),
    ),
    option(
        "rdabs",
        "IO%/SIZE:...",
        Honoured(
            "the same with sizes; parts beyond the end are left out, and their operations go to the other parts",
        ),
    ),
    option(
        "rs",
        "PERCENT",
        Honoured(
            "percentage of random operations; the others continue after the last one (`--random mixed:`). In a mix of reads and writes each run has one direction (`--mix-by-run`)",
        ),
    ),
    option(
        "R",
        "text|xml",
        Honoured(
            "format of the results; -Rptext and -Rpxml print the profile and measure nothing [default: text]",
        ),
    ),
    option(
        "s",
        "[STRIDE]",
        Honoured(
            "sequential, with this distance between the starts of operations (`--stride`) [default: the block size]",
        ),
    ),
    option("si", "[STRIDE]", Honoured("the same, with one position for all threads (`--start interlocked`)")),
    option("S", "", Honoured("the same as -Su")),
    option("Sb", "", Honoured("through the page cache [default]")),
    option("Sh", "", Honoured("the same as -Suw")),
    option("Sm", "", Honoured("loads and stores to a mapping (`--cache mmap`)")),
    option("Sr", "", Refused(REMOTE)),
    option("Su", "", Honoured("O_DIRECT: bypasses the page cache")),
    option(
        "Sw",
        "",
        Honoured("O_DSYNC: each write is stable before it completes; can be combined with b and u"),
    ),
    option("t", "N", Honoured("threads of each target (`--workers`) [default: 1]")),
    option("T", "OFFSET", Honoured("distance between the starts of sequential threads (`--start every:`)")),
    option("v", "", Honoured("progress as lines on standard error, as with -P")),
    option("vs", "", Refused(STATISTICS)),
    option("w", "PERCENT", Honoured("percentage of writes (`--mix`) [default: 0]")),
    option(
        "W",
        "SECONDS",
        Honoured("time before the measured window in which operations run (`--warmup`) [default: 5]"),
    ),
    option("x", "", Refused(ROUTINES)),
    option(
        "X",
        "FILE",
        Honoured(
            "runs an XML profile; -C, -d, -R, -v, -W and -z may follow, and targets for *1, *2 ... in it",
        ),
    ),
    option("ye", "EVENT", Refused(EVENTS)),
    option("yf", "EVENT", Refused(EVENTS)),
    option("yp", "EVENT", Refused(EVENTS)),
    option("yr", "EVENT", Refused(EVENTS)),
    option("ys", "EVENT", Refused(EVENTS)),
    option("e", "WORD", Refused(ETW)),
    option(
        "z",
        "[SEED]",
        Honoured("seed of all random numbers; without a number, from the clock (`--seed`) [default: 0]"),
    ),
    option("Z", "", Honoured("writes are zeros (`--zeros`)")),
    option("Zr", "", Honoured("every write has new random data")),
    option(
        "Z",
        "SIZE[,FILE]",
        Honoured(
            "writes repeat random data of this size (`--dedup 100 --dedup-set`), or the bytes of a file of at most this size (`--data`)",
        ),
    ),
    option(
        "-destroy",
        "=NAME",
        Honoured(
            "allows overwriting a file that fathom did not create (its path) or a block device (its name or serial number); may be repeated. DISKSPD has no such option: if a command line cannot be changed, set FATHOM_DESTROY to the paths, separated by :",
        ),
    ),
];

/// The help: the form of a command line, and how each option is handled.
pub fn help() -> String {
    let mut out = String::from(
        "Usage: diskspd [options] target1 [target2 ...]\n\nA target is a file or a block device. Sizes are in bytes, with K, M, G or T in powers of 1024, with b in blocks (-b).\nA value directly follows its option. Options come before targets.\n\n",
    );
    for DiskspdOption { name, value, how } in OPTIONS {
        let about = match how {
            Honoured(about) => without_settings(about),
            NoEffect(why) => format!("no effect: {why}"),
            Refused(why) => format!("refused: {why}"),
        };
        out += &format!("  -{:<16} {}\n", format!("{name}{value}"), about.replace('`', ""));
    }
    out + "\nOptions are those of DISKSPD 2.2; `fathom help reference/diskspd` explains them. Without -Z or -Zr, writes repeat the bytes 0 to 255\nas in DISKSPD, of which storage that compresses keeps almost nothing.\n"
}
