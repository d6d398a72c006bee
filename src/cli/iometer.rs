//! `fathom iometer`: makes a request from a configuration file and a command line of Iometer. Also reads access specifications for
//! `fathom sweep`. Crate `dialect` parses the file.

use crate::cli::other_tools::{ToolOutput, ToolWords, make_request};
use crate::cli::run;
use crate::failure::Failure;
use crate::request::Request;
use crate::stdout;
use dialect::Tool;
use dialect::iometer::{self, Overrides};
use model::name;
use model::spec::iometer::Spec;
use std::io::IsTerminal;
use std::path::Path;

/// Run the tests of a configuration file of Iometer one after another, and write its result file.
///
/// `fathom iometer /?` lists the options; `fathom help reference/iometer` describes which parts of a file have an effect.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[command(flatten)]
    words: ToolWords,
}

/// The arguments as typed.
#[derive(Debug, Default, PartialEq, Eq)]
struct CommandLine {
    configuration: Option<String>,
    results: Option<String>,
    seconds: Option<u64>,
    destroy: Vec<String>,
    targets: Vec<String>,
    asks_for_explanation: bool,
    asks_for_help: bool,
}

impl Args {
    /// Returns the request; `None` after printing help, or the tests for `--explain`.
    ///
    /// # Errors
    /// A usage failure that names the argument, or the place in the file.
    pub fn request(self) -> Result<Option<(Request, ToolOutput)>, Failure> {
        let args = self.words.text();
        let command_line = parse(&args).map_err(Failure::Usage)?;
        if command_line.asks_for_help {
            return stdout::print_text(&iometer::options::help()).map(|()| None);
        }
        let Some(file) = command_line.configuration.as_deref() else {
            return Err(Failure::Usage("no configuration file was typed; type /c FILE".into()));
        };
        let text = run::read_text(&name::path(file))?;
        let overrides = Overrides { targets: command_line.targets.clone(), seconds: command_line.seconds };
        if command_line.asks_for_explanation {
            let text = iometer::explain(file, &text, &overrides).map_err(run::failure_with_location)?;
            return stdout::print_text(&text).map(|()| None);
        }
        let job = iometer::read(file, &text, &overrides, &crate::plan::find_problems)
            .map_err(run::failure_with_location)?;
        let tool_output = ToolOutput {
            output: command_line.results.as_deref().map(name::path),
            quiet: !std::io::stderr().is_terminal(),
            ..ToolOutput::new(Tool::Iometer, &[report::IOMETER], vec![name::path(file)], &job)
        };
        Ok(Some((make_request(Tool::Iometer, job, command_line.destroy, true), tool_output)))
    }
}

/// Parses the arguments after `iometer`.
fn parse(words: &[String]) -> Result<CommandLine, String> {
    let mut command_line = CommandLine::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if let Some(hyphens) = dialect::typed_hyphens(word) {
            return Err(hyphens);
        }
        let mut value =
            || rest.next().cloned().ok_or_else(|| format!("{word} has no value; type one after it"));
        match word.as_str() {
            "/c" | "-c" => command_line.configuration = Some(value()?),
            "/r" | "-r" => command_line.results = Some(value()?),
            "/t" | "-t" => {
                let text = value()?;
                let seconds = text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
                command_line.seconds = Some(
                    seconds
                        .ok_or_else(|| format!("/t {text} is not a valid time; type 1 to 86400 seconds"))?,
                );
            }
            "/?" | "-?" | "--help" => command_line.asks_for_help = true,
            "--explain" => command_line.asks_for_explanation = true,
            _ if word.starts_with("--destroy=") => {
                command_line.destroy.push(word["--destroy=".len()..].to_owned());
            }
            _ if word.starts_with('-') => {
                return Err(format!("{word} is not an option; `fathom iometer /?` lists all"));
            }
            _ => command_line.targets.push(word.clone()),
        }
    }
    Ok(command_line)
}

/// Reads the access specifications of a configuration file.
///
/// # Errors
/// A usage failure that names the place in the file.
pub(super) fn read_specs(file: &Path) -> Result<Vec<Spec>, Failure> {
    let text = run::read_text(file)?;
    iometer::specs(&name::shown(file), &text).map_err(run::failure_with_location)
}

#[test]
fn iometer_arguments_are_parsed() {
    let parsed = |line: &str| parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let all = parsed("/c a.icf -r out.csv /t 5 --destroy=/dev/sdx /data b");
    let expected = CommandLine {
        configuration: Some("a.icf".into()),
        results: Some("out.csv".into()),
        seconds: Some(5),
        destroy: vec!["/dev/sdx".into()],
        targets: vec!["/data".into(), "b".into()],
        asks_for_explanation: false,
        asks_for_help: false,
    };
    assert_eq!(all, Ok(expected));
    for bad in ["/c", "/t 0", "/t x", "-x", "/r"] {
        assert!(parsed(bad).is_err_and(|e| e.contains("; type") || e.contains("lists all")), "{bad}");
    }
    assert!(parsed("–c a.icf").is_err_and(|e| e.ends_with("; type -c")));
}
