//! `fathom hdparm`: hdparm's options as timings.
//!
//! For: the words, and what is printed instead of timing. Not for: the language (crate `dialect`), nor the timings
//! ([`crate::plain::hdparm`]).

use super::tool_words::{ToolWords, print, refuse};
use crate::plain;
use dialect::hdparm::{self, Ask};
use std::process::ExitCode;

/// What hdparm gives for words that it does not know: EINVAL.
const USAGE: u8 = 22;
/// What `-h` prints.
const HELP: &str = "\
Usage: fathom hdparm [-t] [-T] [--direct] [--offset GiB] DEVICE...

Times reads as hdparm does, prints hdparm's lines, and under them what they really measured. Devices are only read. fathom called
by the name hdparm is this command.

  -T             the same 2 MiB for two seconds: memory, and no disk
  -t             one 2 MiB behind the other for three seconds, from a device that nothing is cached of
  --direct       past the page cache
  --offset GiB   where -t begins
  -V, -h         the version; this

Everything else that hdparm does asks or tells a drive something, and is refused by its name.
";

/// Time reads of a device as `hdparm -tT` does, with its lines, and say what they really measured.
///
/// `fathom hdparm -h` lists the options. fathom called by the name hdparm is this command.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[command(flatten)]
    words: ToolWords,
}

impl Args {
    /// Carries it out; exit codes are hdparm's, which are numbers of errors.
    pub fn run(self) -> ExitCode {
        match hdparm::read(&self.words.text()) {
            Ok(Ask::Help) => print(HELP),
            Ok(Ask::Version) => print(&format!("{}\n", plain::hdparm::VERSION)),
            Ok(Ask::Time(timings)) => plain::hdparm::hdparm(&timings),
            Err(trouble) => refuse("hdparm", &trouble, ExitCode::from(USAGE)),
        }
    }
}
