//! The table of DISKSPD's options and how each is handled. Its command line, its help and
//! docs/reference/diskspd.md are made from it.

use How::{Held, NoEffect, Refused};

/// An entry of the table: options with the same prefix and meaning.
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
    /// It is carried out, in this way.
    Held(&'static str),
    /// It has no effect, for this reason, which is reported once.
    NoEffect(&'static str),
    /// It is refused: why, and what to type instead.
    Refused(&'static str),
}

const fn option(name: &'static str, value: &'static str, how: How) -> DiskspdOption {
    DiskspdOption { name, value, how }
}

pub(super) const ETW: &str = "Linux has no ETW; type `fathom capture DEVICE` at the same time, which records every request, and leave it out";
pub(super) const EVENTS: &str =
    "Linux has no named events; begin it from a script (`diskspd ... & wait`), and leave it out";
pub(super) const ROUTINES: &str = "Linux has no completion routines; leave it out";
pub(super) const REMOTE: &str = "Linux cannot leave its own cache out and use that of a file server; type -Su for neither, or -Sb for both";
pub(super) const TEMPORARY: &str = "Linux has no such attribute; make the file on tmpfs where it should not reach a disk, and leave the t out";
pub(super) const NON_VOLATILE: &str =
    "Linux flushes a mapping by msync alone; type -Nv, which waits for each write";
pub(super) const STATISTICS: &str =
    "the loop here has no such waits; type `fathom show last --verbose` afterwards, and leave the s out";
pub(super) const EXPERIMENT: &str =
    "limits of throughput are kept to the microsecond here, without an experiment; leave it out";

/// Every option of DISKSPD 2.2 in the order of its help, and one of fathom.
pub const OPTIONS: &[DiskspdOption] = &[
    option("?", "", Held("this page")),
    option(":", "FLAGS", Refused(EXPERIMENT)),
    option(
        "ag",
        "",
        Held(
            "each thread on a CPU of its own in turn (`sched_setaffinity`), on all that may be used; this is what happens unless -n",
        ),
    ),
    option(
        "a",
        "[gN,]CPU,...",
        Held("the same on these CPUs, in this order; Linux has one processor group, g0"),
    ),
    option("b", "SIZE", Held("bytes of each operation, and the unit `b` of a size [default: 64K]")),
    option(
        "B",
        "BASE[:LENGTH]",
        Held("first byte that is touched, and how many from there (`--offset`, `--size`)"),
    ),
    option(
        "c",
        "SIZE",
        Held(
            "files of this size are made where they are missing, filled with data that cannot be compressed, and kept; one that an earlier call made is used again, and made larger where it is too small",
        ),
    ),
    option(
        "C",
        "SECONDS",
        Held("time after the measured window in which operations still run (`--cooldown`) [default: 0]"),
    ),
    option(
        "D",
        "MS",
        Held(
            "operations per second of each thread on each target by intervals: their standard deviation in the text, all of them in the XML [default: 1000]",
        ),
    ),
    option("d", "SECONDS", Held("length of the measured window (`--time`) [default: 10]")),
    option("f", "SIZE", Held("first byte that is not touched any more (`--size`) [default: the end]")),
    option(
        "fr",
        "",
        Held("`posix_fadvise(POSIX_FADV_RANDOM)`: the kernel reads nothing ahead (`--advice random`)"),
    ),
    option(
        "fs",
        "",
        Held("`posix_fadvise(POSIX_FADV_SEQUENTIAL)`: it reads further ahead (`--advice sequential`)"),
    ),
    option("ft", "", Refused(TEMPORARY)),
    option("F", "N", Held("threads, each of which works on all targets (`--workers`, `--sharing each`)")),
    option(
        "g",
        "N[i]",
        Held(
            "the most of each thread on each target: bytes per millisecond, or with i operations per second (`--limit-bandwidth`, `--limit-iops`); never two at once to make up for a pause",
        ),
    ),
    option("h", "", Held("the same as -Sh")),
    option(
        "i",
        "N",
        Held("operations of a burst, divided by the threads of the target; goes with -j (`--burst`)"),
    ),
    option(
        "j",
        "MS",
        Held("pause between bursts, from the completion of the last operation of a burst (`--think`)"),
    ),
    option(
        "I",
        "1|2|3",
        Held(
            "priority of the operations (`ioprio_set`): 1 is idle, 2 is be:7, 3 is what everybody has [default: 3]",
        ),
    ),
    option("l", "", NoEffect("buffers lie on huge pages wherever the kernel gives them")),
    option("L", "", Held("latencies in the output; they are always measured")),
    option("n", "", Held("threads may run on any CPU")),
    option("Nv", "", Held("`msync(MS_SYNC)` after each write to a mapping (`--fsync 1`)")),
    option("Nn", "", Refused(NON_VOLATILE)),
    option("Ni", "", Refused(NON_VOLATILE)),
    option(
        "o",
        "N",
        Held(
            "operations in flight of each thread on each target (`--depth`): 1 is `pread` and `pwrite` (engine sync), more are io_uring, or libaio where io_uring is denied; a mapping has 1 [default: 2]",
        ),
    ),
    option(
        "O",
        "N",
        Held(
            "the same with -F, of each thread on all of its targets together: each operation goes to one that is drawn by weight (`--sharing weighted:`)",
        ),
    ),
    option(
        "p",
        "",
        Held(
            "all operations in flight of a thread begin at the same place: each place is touched -o times in a row (`--times`)",
        ),
    ),
    option("P", "N", Held("progress in lines on standard error instead of dots")),
    option(
        "r",
        "[ALIGN]",
        Held("random, offsets counted from -B on in multiples of this (`--align`) [default: those of -b]"),
    ),
    option(
        "rdpct",
        "IO%/TARGET%:...",
        Held(
            "shares of random operations by parts of the target (`--random zones:`); the remaining operations go to the rest of the target, and a part with 0/ gets none; with -rs runs begin there (`--run-length`)",
        ),
    ),
    option(
        "rdabs",
        "IO%/SIZE:...",
        Held("the same by sizes; parts beyond the end are left out, and the others share what was theirs"),
    ),
    option(
        "rs",
        "PERCENT",
        Held(
            "this share of the operations is random, and the others continue after the last one (`--random mixed:`); in a mix of reads and writes each run has one direction (`--mix-by-run`)",
        ),
    ),
    option(
        "R",
        "text|xml",
        Held(
            "format of the results; -Rptext and -Rpxml print what was asked for and measure nothing [default: text]",
        ),
    ),
    option(
        "s",
        "[STRIDE]",
        Held(
            "sequential, with this from the start of one operation to that of the next (`--stride`) [default: those of -b]",
        ),
    ),
    option(
        "si",
        "[STRIDE]",
        Held("the same from one position that all threads share (`--start interlocked`)"),
    ),
    option("S", "", Held("the same as -Su")),
    option("Sb", "", Held("through the page cache [default]")),
    option("Sh", "", Held("the same as -Suw")),
    option("Sm", "", Held("loads and stores to a mapping (`--cache mmap`)")),
    option("Sr", "", Refused(REMOTE)),
    option("Su", "", Held("O_DIRECT: past the page cache")),
    option("Sw", "", Held("O_DSYNC: each write is stable before it completes; goes with b and u")),
    option("t", "N", Held("threads of each target (`--workers`) [default: 1]")),
    option(
        "T",
        "OFFSET",
        Held("each sequential thread begins this many bytes after the one before it (`--start every:`)"),
    ),
    option("v", "", Held("progress in lines on standard error, as with -P")),
    option("vs", "", Refused(STATISTICS)),
    option("w", "PERCENT", Held("share of writes (`--mix`) [default: 0]")),
    option(
        "W",
        "SECONDS",
        Held("time before the measured window in which operations run (`--warmup`) [default: 5]"),
    ),
    option("x", "", Refused(ROUTINES)),
    option(
        "X",
        "FILE",
        Held(
            "an XML profile; may be followed by -C, -d, -R, -v, -W and -z, and by targets for *1, *2 ... in it",
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
        Held("seed of everything random; without a number it is of the clock (`--seed`) [default: 0]"),
    ),
    option("Z", "", Held("writes are zeros (`--zeros`)")),
    option("Zr", "", Held("writes are random and unique, each of them (what fathom writes by itself)")),
    option(
        "Z",
        "SIZE[,FILE]",
        Held(
            "writes are copies of random data of this size (`--dedup 100 --dedup-set`), or the bytes of a file no larger than it (`--data`)",
        ),
    ),
    option(
        "-destroy",
        "=NAME",
        Held(
            "allows overwriting a file that fathom did not make (its path) or a block device (its name or serial); may be repeated. DISKSPD has no such option: where its command line cannot be changed, set FATHOM_DESTROY to its path, with : between several",
        ),
    ),
];

/// The help: the form of a command line, and how each option is handled.
pub fn help() -> String {
    let mut out = String::from(
        "Usage: diskspd [options] target1 [target2 ...]\n\nA target is a file or a block device. Sizes are whole numbers of bytes, or with K, M, G or T of 1024 to its power,\nor with b of blocks (-b). Values directly follow their option. Options come before targets.\n\n",
    );
    for DiskspdOption { name, value, how } in OPTIONS {
        let about = match how {
            Held(about) => (*about).to_owned(),
            NoEffect(why) => format!("changes nothing here: {why}"),
            Refused(why) => format!("refused: {why}"),
        };
        out += &format!("  -{:<16} {}\n", format!("{name}{value}"), about.replace('`', ""));
    }
    out + "\nOptions as in DISKSPD 2.2, and what each is on Linux: `fathom help reference/diskspd`. Without -Z or -Zr writes are the bytes 0 to 255,\nover and over, as there: storage that compresses may keep none of them.\n"
}
