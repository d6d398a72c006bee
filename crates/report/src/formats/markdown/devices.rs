//! The block devices of a machine in Markdown: a table of what is here.
//!
//! For: documents and comments. Not for: all that is known of each; that is `json`.

use crate::format::Style;
use crate::formats::text::devices::{heading, mounts, queue, used};
use crate::table::{Table, escaped};
use model::devices::{BlockDevice, Devices};
use std::io::{self, Write};

pub(super) fn write_devices(devices: &Devices, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&["device", "what it is", "queue", "who uses it"], &[])
        .aligned(1, true)
        .aligned(2, true)
        .aligned(3, true);
    table.add_all(devices.devices.iter().map(device_row));
    let mut out = table.markdown();
    if !devices.empty.is_empty() {
        out += &format!("\n{}\n", escaped(&format!("Without a size: {}", devices.empty.join(", "))));
    }
    to.write_all(out.as_bytes())
}

fn device_row(device: &BlockDevice) -> [String; 4] {
    let mounted = mounts(&device.mounts).map(|mounts| format!("mounted on {mounts}"));
    let users = [mounted, used(device)].into_iter().flatten().collect::<Vec<_>>().join("; ");
    [device.name.clone(), heading(device), queue(&device.queue), users]
}
