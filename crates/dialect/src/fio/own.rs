//! The options of fio itself, which say how jobs are carried out and what is written: each with what becomes of it here.
//!
//! For: reading command lines, and their help. Not for: options of jobs ([`super::options`]).

use super::options::How::{self, Held, NoEffect, Refused};

/// An option of fio itself.
#[derive(Debug)]
pub struct OwnOption {
    /// Its name, without dashes.
    pub name: &'static str,
    /// What its value is called; `None` where it takes none.
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

/// Every option of fio 3.33 itself, in the order of its help, and one of ours.
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
