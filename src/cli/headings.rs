//! The headings under which `--help` has flags: the same six for every command, in one order.
//!
//! For: flags that no table says the heading of. Not for: settings of workloads, whose heading is their group's in the table of keys.

use model::spec::keys::Group;

/// What is done, or which sessions are meant.
pub(super) const WHAT: &str = Group::What.heading();
/// On which bytes.
pub(super) const WHERE: &str = Group::Where.heading();
/// For how long and how often.
pub(super) const HOW_LONG: &str = Group::HowLong.heading();
/// How much at once.
pub(super) const HOW_DEEP: &str = Group::HowDeep.heading();
/// What is shown, where to, and what the exit code says.
pub(super) const OUTPUT: &str = Group::Output.heading();
/// What may be written over.
pub(super) const SAFETY: &str = Group::Safety.heading();
/// Settings of a sweep that have several values.
pub(super) const AXES: &str = "Axes";

#[test]
fn every_flag_of_every_command_stands_under_a_heading_and_these_have_one_order() {
    use clap::CommandFactory;
    let order = [WHAT, AXES, WHERE, HOW_LONG, HOW_DEEP, OUTPUT, SAFETY];
    for command in super::Cli::command().get_subcommands() {
        let flags = command.get_arguments().filter(|a| !a.is_positional() && !a.is_hide_set());
        let mut last = 0;
        let mut seen = Vec::new();
        for flag in flags {
            let (of, name) = (command.get_name(), flag.get_id());
            let heading = flag.get_help_heading();
            let at = order.iter().position(|known| Some(*known) == heading);
            let at = at.unwrap_or_else(|| panic!("{of} --{name} stands under {heading:?}"));
            assert!(seen.contains(&at) || at >= last, "{of} --{name}: {heading:?} comes too late");
            seen.push(at);
            last = last.max(at);
        }
    }
}
