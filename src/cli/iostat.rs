//! The options of sysstat's iostat that `fathom watch` takes, and what each does here.

use super::headings::OUTPUT;
use crate::failure::Failure;
use crate::watch::Selection;
use model::watch::{Layout, RateUnit};
use std::ffi::OsString;

/// Selects all devices, where iostat expects a device.
pub(super) const ALL: &str = "ALL";

/// Options of iostat. Options without a field in [`Selection`] or [`Layout`] describe what `fathom watch` does anyway.
#[derive(clap::Args, Debug, Default)]
#[command(next_help_heading = OUTPUT)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct IostatArgs {
    /// Only the CPU line; with -d both
    #[arg(short = 'c')]
    cpu: bool,
    /// Only devices, without the CPU line and processes
    #[arg(short = 'd')]
    devices: bool,
    /// All columns, in several tables if the width is too small for one
    #[arg(short = 'x')]
    extended: bool,
    /// Throughput in KiB/s, which iostat calls kB/s
    #[arg(short = 'k', conflicts_with = "mebibytes")]
    kibibytes: bool,
    /// Throughput in MiB/s, which iostat calls MB/s
    #[arg(short = 'm')]
    mebibytes: bool,
    /// The time above each interval
    #[arg(short = 't')]
    timestamp: bool,
    /// The names of device mapper volumes instead of dm-0
    #[arg(short = 'N')]
    names: bool,
    /// Partitions too: of these devices (with commas), or of all [default: ALL]
    #[arg(short = 'p', value_name = "DEVICE,...", num_args = 0..=1, default_missing_value = ALL)]
    partitions: Option<OsString>,
    /// Leave out devices that completed no request in the interval
    #[arg(short = 'z')]
    active_only: bool,
    /// As few columns as the width allows, also with -x
    #[arg(short = 's')]
    short: bool,
    /// Changes nothing: since boot nothing is shown anyway
    #[arg(short = 'y', hide = true)]
    omit_first: bool,
    /// Changes nothing: a device has one row anyway
    #[arg(long = "compact", hide = true)]
    compact: bool,
    /// Changes nothing: figures are in units for people anyway
    #[arg(long = "human", hide = true)]
    human: bool,
    /// Changes nothing: the text is for people anyway
    #[arg(long = "pretty", hide = true)]
    pretty: bool,
    /// Refused
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    dec: Option<OsString>,
    /// Refused
    #[arg(short = 'j', hide = true, num_args = 0..=1, default_missing_value = "")]
    identifiers: Option<OsString>,
    /// Refused
    #[arg(short = 'g', hide = true, num_args = 0..=1, default_missing_value = "")]
    group: Option<OsString>,
    /// Refused
    #[arg(short = 'H', hide = true)]
    group_only: bool,
    /// Refused
    #[arg(short = 'f', hide = true, num_args = 0..=1, default_missing_value = "")]
    directory: Option<OsString>,
}

impl IostatArgs {
    /// Returns the devices and numbers that follow `-p`, which are arguments of the command like all others.
    pub(super) fn after_p(&self) -> Vec<OsString> {
        let Some(value) = &self.partitions else { return Vec::new() };
        match value.to_str() {
            Some(text) => text.split(',').filter(|name| !name.is_empty()).map(OsString::from).collect(),
            None => vec![value.clone()],
        }
    }

    /// Whether any of them was typed: the output is lines then, as that of iostat, and not a screen.
    pub(super) fn is_typed(&self) -> bool {
        let Self {
            cpu, devices, extended, kibibytes, mebibytes, timestamp, names, active_only, short, ..
        } = *self;
        let shown = [cpu, devices, extended, kibibytes, mebibytes, timestamp, names, active_only, short];
        shown.contains(&true)
            || self.partitions.is_some()
            || self.omit_first
            || self.compact
            || self.human
            || self.pretty
    }

    pub(super) fn layout(&self, explain: bool) -> Layout {
        let unit = match (self.kibibytes, self.mebibytes) {
            (true, _) => RateUnit::Kib,
            (_, true) => RateUnit::Mib,
            _ => RateUnit::Mb,
        };
        Layout {
            all_columns: self.extended && !self.short,
            time: self.timestamp,
            volume_names: self.names,
            active_only: self.active_only,
            unit,
            explain,
        }
    }

    pub(super) fn selection(&self, unused: bool) -> Selection {
        let is_part = self.cpu || self.devices;
        Selection {
            cpu: self.cpu || !self.devices,
            devices: self.devices || !self.cpu,
            processes: !is_part,
            partitions: self.partitions.is_some(),
            unused,
        }
    }

    /// Refuses the options of iostat that would change the output and have no counterpart.
    ///
    /// # Errors
    /// The option, with what to type instead.
    pub(super) fn refuse_others(&self) -> Result<(), Failure> {
        let refused = [
            (
                self.dec.is_some(),
                "--dec",
                "figures have as many digits as their column has room for; --format json has all digits",
            ),
            (
                self.identifiers.is_some(),
                "-j",
                "devices are named by their kernel name; -N shows the names of volumes, and `fathom devices` models and serial numbers",
            ),
            (
                self.group.is_some(),
                "-g",
                "fathom shows no sums of groups; name the devices, or the volume or RAID that they form",
            ),
            (
                self.group_only,
                "-H",
                "fathom shows no sums of groups; name the devices, or the volume or RAID that they form",
            ),
            (self.directory.is_some(), "-f", "statistics come from /proc/diskstats only; name the devices"),
        ];
        match refused.into_iter().find(|(is_typed, ..)| *is_typed) {
            Some((_, option, instead)) => {
                Err(Failure::Usage(format!("{option} of iostat is not available: {instead}")))
            }
            None => Ok(()),
        }
    }
}
