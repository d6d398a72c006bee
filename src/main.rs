//! The program `fathom`: the flow from command line to exit code, and nothing else.

use fathom_io::cli::{Cli, Command, SweepSaid};
use fathom_io::failure::Failure;
use fathom_io::{compare, doctor, explain, history, plan, run, session, show, verify};
use std::process::ExitCode;

fn main() -> ExitCode {
    let said = match Cli::read() {
        Ok(said) => said,
        Err(code) => return code,
    };
    let outcome = match said.command {
        Command::Bench(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Run(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Layers(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Limit(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Sweep(args) => args.said().and_then(sweep),
        Command::Api(args) => args.request().and_then(|said| match said {
            Some((request, showing)) => measure(&request, &showing),
            None => Ok(ExitCode::SUCCESS),
        }),
        Command::Show(args) => args.showing().and_then(|(file, showing)| judge(&file, &showing, None)),
        Command::Compare(args) => args.wish().and_then(|wish| compare::compare(&wish)),
        Command::List(args) => history::list(&args.wish()),
        Command::Tag(args) => history::say(&args.session, &args.change()),
        Command::Note(args) => history::say(&args.session, &args.change()),
        Command::Export(args) => args.wish().map_or_else(history::schema, |wish| history::export(&wish)),
        Command::Import(args) => history::import(&args.files),
        Command::Delete(args) => history::delete(&args.wish()),
        Command::Verify(args) => args.wish().and_then(|wish| verify::verify(&wish)),
        Command::Doctor(args) => doctor::doctor(&args.wish()),
        Command::Explain(args) => args.wish().and_then(|wish| explain::explain(&wish)),
    };
    outcome.unwrap_or_else(|failure| failure.tell())
}

fn measure(request: &fathom_io::request::Request, showing: &show::Showing) -> Result<ExitCode, Failure> {
    let meant = plan::plan(request)?;
    if showing.explain {
        return show::explain(&meant);
    }
    conclude(&run::measure(meant, request.keep, showing.quiet)?, showing)
}

fn sweep(said: SweepSaid) -> Result<ExitCode, Failure> {
    match said {
        SweepSaid::Measure(request, showing) => measure(&request, &showing),
        SweepSaid::List(request) => plan::plan(&request).and_then(|(plan, _)| show::cells(&plan)),
        SweepSaid::Skipped(request) => plan::plan(&request).and_then(|(plan, _)| show::skipped(&plan)),
        SweepSaid::Specs => show::specs(),
        SweepSaid::Resume(word, showing) => {
            let before = session::read(&history::find(&word)?)?;
            let (meant, keep) = plan::resume::again(&word, &before)?;
            conclude(&run::resume(meant, before, keep, showing.quiet)?, &showing)
        }
    }
}

fn conclude(seen: &run::Seen, showing: &show::Showing) -> Result<ExitCode, Failure> {
    let code = judge(&seen.session, showing, Some(seen))?;
    if seen.kept {
        history::remember();
    }
    Ok(code)
}

fn judge(
    file: &std::path::Path,
    showing: &show::Showing,
    seen: Option<&run::Seen>,
) -> Result<ExitCode, Failure> {
    let record = session::read(file)?;
    let kept = seen.is_none_or(|s| s.kept);
    let report = show::judge(&record, kept.then_some(file), showing);
    show::report(&report, showing)?;
    Ok(show::exit_code(&report, seen))
}
