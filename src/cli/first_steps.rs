//! First steps: what `fathom -h` says, on one screen.
//!
//! For: the commands that most people type, ready to be typed. Not for: what each command does and takes, which `--help` says.

use super::Cli;
use clap::CommandFactory;

/// What to type, and what it does.
const STEPS: [(&str, &str); 5] = [
    ("fathom bench", "the standard benchmarks, in a minute and a half"),
    ("fathom run --rw randread --bs 4k --depth 32", "one workload"),
    ("fathom recipe etcd", "is this fast enough for etcd? `fathom recipe` lists more"),
    ("fathom doctor", "what would distort a result here"),
    ("fathom limit --p99 1ms", "the highest rate that meets a latency target"),
];
/// Columns of a line.
const WIDTH: usize = 80;

/// The screen.
pub(super) fn text() -> String {
    let mut out = String::from(
        "Measures storage, and says whether the number means what you think it means.\n\n\
         Usage: fathom COMMAND [FLAGS] [TARGET]\n\n\
         TARGET is a directory, a file or a block device; default: current directory.\n\
         Existing files and devices are only read, unless --destroy names them. Try:\n\n",
    );
    for (typed, does) in STEPS {
        out += &format!("  {typed}\n      {does}\n");
    }
    out += "\nOther commands:\n";
    out += &others();
    out += "`fathom COMMAND --help` lists the flags, `fathom help` all commands and a guide.\n";
    out
}

/// The commands that no step names, in lines.
fn others() -> String {
    let cli = Cli::command();
    let named = |name: &str| STEPS.iter().any(|(typed, _)| typed.split(' ').nth(1) == Some(name));
    let (mut out, mut line) = (String::new(), String::from(" "));
    for name in cli.get_subcommands().map(clap::Command::get_name).filter(|name| !named(name)) {
        if line.len() + 1 + name.len() > WIDTH {
            out += &format!("{line}\n");
            line = " ".into();
        }
        line += &format!(" {name}");
    }
    out + &line + "\n"
}

#[test]
fn it_fits_a_screen_and_names_every_command() {
    let text = text();
    assert!(text.lines().count() <= 24, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    for command in Cli::command().get_subcommands() {
        assert!(text.contains(&format!(" {}", command.get_name())), "{}: {text}", command.get_name());
    }
}

#[test]
fn every_step_can_be_typed() {
    use clap::Parser;
    for (typed, _) in STEPS {
        assert!(Cli::try_parse_from(typed.split(' ')).is_ok(), "{typed}");
    }
}
