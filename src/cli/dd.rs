//! `fathom dd`: dd's operands as a copy.
//!
//! For: the words, and what is printed instead of copying. Not for: the language (crate `dialect`), nor the copy
//! ([`crate::plain::dd`]).

use super::tool_words::{ToolWords, print, refuse};
use crate::plain::may_write::Allowed;
use crate::{allowed, plain};
use dialect::dd::{self, Ask};
use std::process::ExitCode;

/// What `--help` prints.
const HELP: &str = "\
Usage: fathom dd [OPERAND]...

Copies as dd does, prints dd's lines, and under them what the disk did meanwhile: how much had reached it, what came from the page
cache, and how fast it was until everything was stable. fathom called by the name dd is this command.

  if=FILE of=FILE     read from and write to these; else standard input and output
  bs=N ibs=N obs=N    bytes of a block (512)
  count=N skip=N seek=N
                      blocks to copy, to pass over of the input, of the output; with B behind N, bytes
  iflag=LIST          direct, directory, dsync, sync, fullblock, nonblock, noatime, nocache, noctty, nofollow, count_bytes,
                      skip_bytes
  oflag=LIST          append, direct, directory, dsync, sync, nonblock, noatime, nocache, noctty, nofollow, seek_bytes
  conv=LIST           sparse, sync, excl, nocreat, notrunc, noerror, fdatasync, fsync
  status=none|noxfer|progress
                      none: failures alone, and nothing of fathom's
  --destroy=NAME      what may be overwritten: a device, or a file with content that fathom did not make; or FATHOM_DESTROY=NAME

N may end with c=1, w=2, b=512, kB=1000, k=1024, MB=1000000, M=1048576, and so on, and be a product: 2x80x18b.
SIGUSR1 has it print how far it is. Exit codes: 0 copied, 1 anything else.
";

/// Copy as dd does, with dd's operands, lines and exit codes, and say what the disk did meanwhile.
///
/// `fathom dd --help` lists the operands. fathom called by the name dd is this command.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[command(flatten)]
    words: ToolWords,
}

impl Args {
    /// Carries it out; whatever goes wrong is exit code 1, as in dd.
    pub fn run(self) -> ExitCode {
        match dd::read(&self.words.text()) {
            Ok(Ask::Help) => print(HELP),
            Ok(Ask::Version) => print(&format!("{}\n", plain::dd::VERSION)),
            Ok(Ask::Copy(copy)) => {
                let allowed = Allowed { here: copy.destroy.clone(), always: allowed::paths() };
                plain::dd::dd(&copy, &allowed)
            }
            Err(trouble) => refuse("dd", &trouble, ExitCode::FAILURE),
        }
    }
}
