//! The table of Iometer's options and of the headings of its configuration files, and how each is handled. The help of
//! `fathom iometer` and docs/reference/iometer.md are made from it.

use crate::options::{ToolOption, honoured, no_effect, refused};

/// Options of the command line.
#[rustfmt::skip] // One line for each option.
pub const OPTIONS: &[ToolOption] = &[
    honoured("/c", "", "configuration file of Iometer (.icf) to run").takes(" FILE"),
    honoured("/r", "", "file for the results, as Iometer's CSV [default: standard output]").takes(" FILE"),
    honoured("/t", "time", "run time of each test [default: that of the configuration file]").takes(" SECONDS"),
    honoured("--explain", "", "print the tests of the file with their workers and targets, and measure nothing"),
    honoured("--destroy", "", "allow overwriting a file that fathom did not make (its path) or a device (its name or serial); may be repeated. FATHOM_DESTROY does the same, with paths separated by colons. FATHOM_UNSEEN_USERS lists, in the same way, files and devices to write even if fathom cannot see whether another program uses them").takes("=NAME"),
    honoured("TARGET", "", "files, directories or devices that replace the targets of the file, in the order in which the file first names them; not needed if the file already names paths"),
];

/// Headings of a configuration file, and the columns of its value lines.
#[rustfmt::skip] // One line for each heading.
pub const HEADINGS: &[ToolOption] = &[
    honoured("'Test Description", "", "repeated in the result file"),
    honoured("'Run Time", "time", "with 0, Iometer runs until stopped by hand; fathom refuses 0 unless `/t` sets a time"),
    honoured("'Ramp Up Time", "warmup", "time before each measured window"),
    no_effect("'Default Disk Workers to Spawn", "the list of managers defines the workers").also(&["'Default Network Workers to Spawn"]),
    honoured("'Record Results", "", "which rows the result file has"),
    honoured("'Test Type", "", "one test after another for each access specification: all steps with the first specification of each worker, then all steps with the second. The last step has all workers or targets. Steps that differ only in idle workers run once").also(&["'Worker Cycling", "'Disk Cycling", "'Queue Depth Cycling"]),
    honoured("'size,% of size,% reads,% random,delay,burst,align,reply", "line bs mix random align", "a line of an access specification ([Job files](job-files.md#keys-of-a-line)). Lines of six numbers, before version 1998.05.21, have no name, are aligned to 2 KiB, and are for all workers"),
    honoured("'Manager ID, manager name", "", "a group of workers. Each step of a worker cycle runs the same number of workers of each manager. Each step of INCREMENT_TARGETS_PARALLEL uses the same number of targets of each manager; INCREMENT_TARGETS_SERIAL adds the targets of one manager after another. The result file has a row for each manager, followed by its workers"),
    honoured("'Manager network address", "", "managers with another address than the first belong to other hosts, and are refused by name ([Many hosts](../how-to/many-hosts.md))"),
    honoured("'Worker", "workers", "a thread"),
    refused("'Worker type", "network workers are refused; fathom measures disks"),
    honoured("'Number of outstanding IOs", "depth", "operations in flight on each target of the worker"),
    refused("test connection rate", "fathom measures disks, which have no connections; write DISABLED"),
    honoured("use fixed seed", "seed", "the same for all workers").also(&["fixed seed value"]),
    honoured("'Disk maximum size", "size offset", "in sectors of 512 bytes").also(&["starting sector"]),
    honoured("Data pattern", "compress dedup", "0, 1, 2: `--compress 100`; copies of one buffer (`--dedup 100`); random and unique. A file without a pattern means 1"),
    honoured("'Assigned access specs", "", "the access specification of the worker in each test. A worker is idle in a test if it has fewer specifications than others, or the specification Idle. A worker without any has those with the default assignment ALL or DISK"),
    honoured("'Target", "target", "a target of the worker; a TARGET of the command line takes its place"),
    no_effect("'Results Display", "fathom draws no bars"),
];

/// The help of `fathom iometer`.
pub fn help() -> String {
    let mut out =
        String::from("Usage: fathom iometer /c FILE [/r FILE] [/t SECONDS] [--explain] [TARGET...]\n\n");
    for option in OPTIONS {
        out += &format!("  {:<14} {}\n", format!("{}{}", option.name, option.value), option.about);
    }
    out + "\nOptions may begin with - too. Which parts of a file have an effect: `fathom help reference/iometer`.\n"
}
