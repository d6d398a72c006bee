//! `fathom completions`: prints a shell's completion script for commands, flags and values, made from the tables of
//! `--help`. The packager installs it.

use super::Cli;
use crate::failure::Failure;
use crate::stdout;
use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::process::ExitCode;

/// Print the script with which a shell completes commands, flags and their values.
///
/// For bash: `fathom completions bash > /usr/share/bash-completion/completions/fathom`, or `source <(fathom completions bash)`. For
/// zsh: `fathom completions zsh > _fathom` in a directory of $fpath. For fish: `fathom completions fish >
/// ~/.config/fish/completions/fathom.fish`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Which shell
    #[arg(value_enum)]
    shell: ShellWord,
}

/// Shells that scripts are made for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShellWord {
    Bash,
    Zsh,
    Fish,
}

impl Args {
    /// Prints the script.
    ///
    /// # Errors
    /// If it cannot be printed.
    pub fn print(self) -> Result<ExitCode, Failure> {
        let shell = match self.shell {
            ShellWord::Bash => Shell::Bash,
            ShellWord::Zsh => Shell::Zsh,
            ShellWord::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        let mut cli = Cli::command();
        let name = cli.get_name().to_owned();
        clap_complete::generate(shell, &mut cli, name, &mut script);
        stdout::bytes(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
