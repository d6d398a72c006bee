//! `fathom ioping`: ioping's options as requests.
//!
//! For: the words, and what is printed instead of requests. Not for: the language (crate `dialect`), nor the requests
//! ([`crate::plain::ioping`]).

use super::tool_words::{ToolWords, print, refuse};
use crate::plain::may_write::Allowed;
use crate::{allowed, plain};
use dialect::ioping::{self, Ask};
use std::process::ExitCode;

/// What `-h` prints.
const HELP: &str = "\
Usage: fathom ioping [OPTIONS] DIRECTORY|FILE|DEVICE

Makes requests as ioping does, one at a time, prints ioping's lines, and under them who answered: the disk, or memory. fathom called
by the name ioping is this command.

  -C -D -L           through the page cache as it is; O_DIRECT; one behind the other (256k)
  -W -G -Y -y        writes; a write and a read in turn; O_SYNC; O_DSYNC
  -R                 three seconds without pauses (-q -i 0 -w 3), in 64m
  -k                 keep and reuse ioping.tmp in the directory
  -c -w              stop after so many; after this time
  -i -b -l -r        interval (1s); so many without a pause; at most so many bytes, or requests, a second
  -s -S -o           bytes of a request (4k); bytes that they stay in (1m of a directory, else all); the first of them
  -a -t -T           so many of the first do not count (1); nor do faster ones; nor slower ones
  -e                 seed of offsets and data, which are others than ioping's
  -q -B -J -p -P     statistics alone; raw numbers; JSON; raw numbers after so many, or so often
  --destroy=NAME     what -WWW may overwrite: a device, or a file with content that fathom did not make; or FATHOM_DESTROY=NAME
  -v, -h             the version; this

-A, -U, -N, -H, -I and -E are refused, each with what to type instead.
Exit codes: 1 usage, 2 before the first request, 3 at one of them.
";

/// Measure latency one request at a time as ioping does, with its options and lines, and say who answered.
///
/// `fathom ioping -h` lists the options. fathom called by the name ioping is this command.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[command(flatten)]
    words: ToolWords,
}

impl Args {
    /// Carries it out; exit codes are ioping's.
    pub fn run(self) -> ExitCode {
        match ioping::read(&self.words.text()) {
            Ok(Ask::Help) => print(HELP),
            Ok(Ask::Version) => print(&format!("{}\n", plain::ioping::VERSION)),
            Ok(Ask::Ping(ping)) => {
                let allowed = Allowed { here: ping.destroy.clone(), always: allowed::paths() };
                plain::ioping::ioping(&ping, &allowed)
            }
            Err(trouble) => refuse("ioping", &trouble, ExitCode::FAILURE),
        }
    }
}
