//! `fathom man`: its manual pages.
//!
//! For: a page per command, made from the same tables as `--help`. Not for: showing them, which `man` does.

use super::Cli;
use crate::failure::Failure;
use crate::output::{self, Replace, Rules};
use crate::spared::Spared;
use crate::stdout;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the manual pages of all commands into a directory.
///
/// Without a DIR the page of fathom itself is printed: `fathom man | man -l -`. With one there is a page for each command in it:
/// `fathom man /usr/local/share/man/man1`, then `man fathom-bench`. Older pages are replaced; a file that is no text is not, and
/// neither is a link to a device followed.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Existing directory [default: print the page of fathom]
    dir: Option<PathBuf>,
}

impl Args {
    /// Prints the first page, or writes all of them.
    ///
    /// # Errors
    /// Where one may not or cannot be written. If one may not, none is.
    pub fn write(self) -> Result<ExitCode, Failure> {
        let pages = pages().map_err(|e| Failure::Refused(format!("a manual page cannot be made: {e}")))?;
        let Some(dir) = self.dir else {
            // It is a page of roff, in which nothing of ours is to be shown otherwise.
            stdout::bytes(pages.first().map_or(&[], |(_, page)| page.as_slice()))?;
            return Ok(ExitCode::SUCCESS);
        };
        if !dir.is_dir() {
            let shown = model::name::shown(&dir);
            return Err(Failure::Usage(format!(
                "{shown} is no directory; type one that is there, or `mkdir -p {shown}`"
            )));
        }
        let rules = Rules { flag: "man", spared: Spared::default(), replace: Replace::TextAlone };
        let places: Vec<PathBuf> = pages.iter().map(|(name, _)| dir.join(name)).collect();
        // All of them may be written, or none is.
        let outlets = output::decide_all(&places, &rules)?;
        for (outlet, (_, page)) in outlets.iter().zip(&pages) {
            outlet.write(page, &rules)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Each page with the name of its file, that of fathom itself first.
fn pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    // Names of commands are whole only in a command that was built: fathom-bench.
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let commands = std::iter::once(&cli).chain(cli.get_subcommands().filter(|c| !c.is_hide_set()));
    commands.map(page).collect()
}

fn page(command: &Command) -> std::io::Result<(String, Vec<u8>)> {
    let page = Man::new(command.clone());
    let mut bytes = Vec::new();
    page.render(&mut bytes)?;
    Ok((page.get_filename(), bytes))
}

#[test]
fn every_command_has_a_page_that_names_its_flags() {
    let pages = pages().unwrap_or_default();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.first(), Some(&"fathom.1"));
    for command in Cli::command().get_subcommands() {
        let name = format!("fathom-{}.1", command.get_name());
        let page = pages.iter().find(|(of, _)| *of == name);
        let page = page.unwrap_or_else(|| panic!("no {name} in {names:?}"));
        let text = String::from_utf8_lossy(&page.1).replace('\\', "");
        for flag in command.get_arguments().filter(|a| !a.is_hide_set()).filter_map(clap::Arg::get_long) {
            assert!(text.contains(&format!("--{flag}")), "{name}: {flag}");
        }
    }
}
