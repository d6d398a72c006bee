//! The program `fathom`: the flow from command line to exit code, and nothing else.

use clap::Parser;
use fathom_io::cli::{Cli, Command};
use fathom_io::failure::Failure;
use fathom_io::{doctor, explain, plan, run, session, show, verify};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Bench(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Run(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Layers(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Api(args) => args.request().and_then(|said| match said {
            Some((request, showing)) => measure(&request, &showing),
            None => Ok(ExitCode::SUCCESS),
        }),
        Command::Show(args) => args.showing().and_then(|(file, showing)| judge(&file, &showing, None)),
        Command::Verify(args) => args.wish().and_then(|wish| verify::verify(&wish)),
        Command::Doctor(args) => doctor::doctor(&args.wish()),
        Command::Explain(args) => args.wish().map(|wish| explain::explain(&wish)),
    };
    outcome.unwrap_or_else(|failure| failure.tell())
}

fn measure(request: &fathom_io::request::Request, showing: &show::Showing) -> Result<ExitCode, Failure> {
    let meant = plan::plan(request)?;
    if showing.explain {
        return show::explain(&meant);
    }
    let seen = run::measure(meant, showing.quiet)?;
    judge(&seen.session, showing, Some(&seen))
}

fn judge(
    file: &std::path::Path,
    showing: &show::Showing,
    seen: Option<&run::Seen>,
) -> Result<ExitCode, Failure> {
    let record = session::read(file)?;
    let report = show::judge(&record, file, showing);
    show::report(&report, showing)?;
    Ok(show::exit_code(&report, seen))
}
