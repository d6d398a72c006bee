//! `fathom api`: its flags.

use crate::cli::shared_flags::{BudgetArgs, Measuring, OUTPUT, ReportArgs, WHAT, check_job, target_parser};
use crate::cli::usage_error::{likeness, most_similar};
use crate::failure::Failure;
use crate::interfaces::{self, INTERFACES, Interface};
use crate::request::{ApiSpec, Request, Work};
use crate::show::Showing;
use crate::stdout;
use model::units::{MIB, parse_bytes};
use std::path::PathBuf;

/// Largest operation. Larger ones only measure the copying of memory.
const MAX_BYTES: u64 = 8 * MIB;
/// Smallest operation: a sector.
const MIN_BYTES: u64 = 512;

/// Move the same bytes through several programming interfaces, and recommend one for each pattern.
///
/// Reads and writes a file sequentially and at random, each time with an empty page cache, through six common interfaces: pread,
/// BufReader, mmap, io_uring, and pread and io_uring with O_DIRECT (libaio if io_uring is denied). --all adds read, readv, preadv2
/// with its flags, stdio, POSIX aio, libaio, threads, readahead, splice, sendfile, copy_file_range, fallocate and more. The table shows
/// the rate, latency, CPU time per byte, system calls and page faults per MiB, the bytes that the device moved, and the rate including the
/// final sync. Interfaces without a measurable difference form a group, with a bound on their differences.
///
/// An existing file or device is only read, unless --destroy names it.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory, file or block device [default: the current directory]
    #[arg(value_parser = target_parser())]
    target: Option<PathBuf>,
    /// Bytes per operation, 512 to 8m; several with commas [default: 4k,128k sequential, 4k random]
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = parse_size, help_heading = WHAT)]
    bs: Vec<u32>,
    /// Only these interfaces, several with commas; --list prints the names [default: the six common ones]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = parse_interface, help_heading = WHAT)]
    interface: Vec<&'static Interface>,
    /// Compare all interfaces of --list
    #[arg(long, conflicts_with = "interface", help_heading = WHAT)]
    all: bool,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Print all interfaces, one per line, and stop
    #[arg(long, conflicts_with_all = ["format", "output", "explain"], help_heading = OUTPUT)]
    list: bool,
    #[command(flatten)]
    report: ReportArgs,
}

impl Args {
    /// Returns the request; `None` after printing the list.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn request(self) -> Result<Option<(Request, Showing)>, Failure> {
        if self.list {
            stdout::print_text(&list_interfaces())?;
            return Ok(None);
        }
        let work = Work::Api(ApiSpec { sizes: self.bs, interfaces: self.interface, all: self.all });
        let mut request = self.measuring.request(work, self.target);
        request.budget_ns = self.budget.budget;
        check_job(&request.job)?;
        Ok(Some((request, self.report.showing()?)))
    }
}

fn list_interfaces() -> String {
    let width = INTERFACES.iter().map(|i| i.name.len()).max().unwrap_or(0);
    let lines: Vec<String> = INTERFACES.iter().map(|i| format!("{:width$}  {}", i.name, i.about)).collect();
    lines.join("\n") + "\n"
}

fn parse_size(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text)?;
    if (MIN_BYTES..=MAX_BYTES).contains(&bytes) {
        return Ok(bytes as u32);
    }
    Err(format!("'{text}' is not between 512 and 8m; type sizes such as 4k,128k"))
}

fn parse_interface(text: &str) -> Result<&'static Interface, String> {
    interfaces::find(text.trim()).ok_or_else(|| {
        let names = INTERFACES.iter().map(|interface| interface.name);
        let nearest = most_similar(names, |name| likeness(name, text));
        let similar = nearest.map_or_else(|| ";".into(), |name| format!("; did you mean '{name}'?"));
        format!("there is no interface '{text}'{similar} `fathom api --list` prints all")
    })
}

#[test]
fn only_a_similar_interface_is_suggested() {
    let why = |text: &str| parse_interface(text).err().unwrap_or_default();
    assert_eq!(
        why("preda"),
        "there is no interface 'preda'; did you mean 'pread'? `fathom api --list` prints all"
    );
    assert_eq!(why("nosuch"), "there is no interface 'nosuch'; `fathom api --list` prints all");
}
