//! `fathom iops`: the options of the program iops, as a sweep with the preset of that name.

use super::{Cli, Command, sweep};
use crate::cli::shared_flags::{HOW_DEEP, HOW_LONG, OUTPUT, WHAT};
use crate::failure::Failure;
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;

/// Reads of doubling sizes by 32 threads as the program iops makes them, with its lines, past the page cache.
///
/// `fathom sweep --preset iops` measures the same, and has more options. fathom called by the name iops is this command.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Block device, file or directory
    #[arg(value_name = "DEVICE", required = true)]
    device: PathBuf,
    /// One size instead of all from 512 bytes on
    #[arg(short = 'b', long = "block-size", value_name = "SIZE", help_heading = WHAT)]
    block: Option<String>,
    /// random or sequential [default: random]
    #[arg(short = 'p', long, value_name = "ORDER", help_heading = WHAT)]
    pattern: Option<String>,
    /// Seconds for each size [default: 2]
    #[arg(short = 't', long = "time", value_name = "SECONDS", help_heading = HOW_LONG)]
    seconds: Option<u32>,
    /// Threads [default: 32]
    #[arg(short = 'n', long = "num-threads", value_name = "N", help_heading = HOW_DEEP)]
    threads: Option<u32>,
    /// Refused: type fathom sweep --preset iops --format csv DEVICE, which converts no units
    #[arg(short = 'm', long, help_heading = OUTPUT)]
    machine_readable: bool,
}

impl Args {
    /// Returns the sweep.
    ///
    /// # Errors
    /// A usage failure.
    pub fn into_sweep_action(self) -> Result<sweep::Action, Failure> {
        if self.machine_readable {
            let why = "-m: iops prints its own lines without units; type fathom sweep --preset iops --format csv DEVICE, whose columns are named";
            return Err(Failure::Usage(why.into()));
        }
        let mut words: Vec<OsString> = ["fathom", "sweep", "--preset", "iops"].map(OsString::from).to_vec();
        let mut say = |flag: &str, value: Option<String>| {
            words.extend(value.map(|value| OsString::from(format!("{flag}={value}"))));
        };
        say("--workers", self.threads.map(|n| n.to_string()));
        say("--time", self.seconds.map(|s| format!("{s}s")));
        say("--bs", self.block);
        say("--pattern", self.pattern);
        words.extend(["--".into(), self.device.into_os_string()]);
        let read = Cli::try_parse_from(words).map_err(|wrong| in_terms_of_iops(&wrong))?;
        match read.command {
            Command::Sweep(args) => args.into_action(),
            _ => Err(Failure::Usage("fathom iops is a sweep; type fathom sweep --preset iops DEVICE".into())),
        }
    }
}

/// Describes an invalid value by the typed flag, not by the flag it stands for.
fn in_terms_of_iops(wrong: &clap::Error) -> Failure {
    let given = |kind: ContextKind| match wrong.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let flag = given(ContextKind::InvalidArg);
    let own = [("--workers", "-n"), ("--time", "-t"), ("--bs", "-b"), ("--pattern", "-p")];
    let own = own.iter().find(|(of_sweep, _)| flag.starts_with(of_sweep)).map_or(flag, |(_, own)| own);
    let why = match (wrong.source(), wrong.get(ContextKind::ValidValue)) {
        (Some(why), _) => why.to_string(),
        (None, Some(ContextValue::Strings(known))) => format!("type {}", known.join(" or ")),
        (None, _) => wrong.kind().to_string(),
    };
    Failure::Usage(format!("{own} {}: {why}", given(ContextKind::InvalidValue)))
}
