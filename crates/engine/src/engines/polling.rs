//! Whether a device really polls.
//!
//! For: refusing to poll where the kernel would quietly wait for an interrupt instead. Not for: switching polling on.

use crate::interface::Granted;
use crate::refusal::{LEAVE_OUT, refusal};
use crate::spec::WorkerSpec;
use std::fs::{File, read_to_string};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Makes sure that polling for completions means something for the files of a spec; `option` is what asked for it. Where
/// nobody says whether a device polls, that is noted as a fall back.
///
/// # Errors
/// A refusal that names the option.
pub(super) fn check_polling(spec: &WorkerSpec, option: &str) -> io::Result<Granted> {
    let refuse = |why: String, instead: &str| {
        Err(refusal(io::ErrorKind::Unsupported, format!("option {option}: {why}"), instead))
    };
    if !spec.cache.is_direct() {
        let cache = spec.cache.word();
        let why = format!("with --cache {cache} it is the page cache that answers, which nobody polls");
        return refuse(why, "type --cache direct");
    }
    let mut granted = Granted::default();
    for target in &spec.files {
        match polling_setting(&target.file)? {
            Some((device, said)) if said == "0" => {
                let why = format!(
                    "device {device} completes by interrupt (its queue/io_poll says 0); a driver polls where it was given \
                     queues for that, as with the kernel parameter nvme.poll_queues=2"
                );
                return refuse(why, LEAVE_OUT);
            }
            Some(_) => {}
            None => granted
                .fallbacks
                .push(format!("{option}: nothing says whether the device below the file polls")),
        }
    }
    granted.fallbacks.dedup();
    Ok(granted)
}

/// The device below a file with what its `queue/io_poll` says; `None` where there is no such device or it does not say.
fn polling_setting(file: &File) -> io::Result<Option<(String, String)>> {
    let about = file.metadata()?;
    let number = if about.file_type().is_block_device() { about.rdev() } else { about.dev() };
    let device = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    // A partition has no queue of its own; the disk is the directory above it.
    let said = ["queue", "../queue"]
        .iter()
        .find_map(|queue| read_to_string(format!("/sys/dev/block/{device}/{queue}/io_poll")).ok());
    Ok(said.map(|s| (device, s.trim().to_owned())))
}
