//! Standard error: messages about progress and failures. Control characters that fathom did not
//! write itself are replaced, and a failed write never ends the program.

use crate::stream::{self, is_disk};
use model::name::visible;
use std::borrow::Cow;
use std::fs::File;

/// Redirects standard error to standard output, or to `/dev/null` if standard output is a block
/// device. Call this if standard error leads to a device or file that must not be written.
pub fn redirect() {
    let sent = if is_disk(rustix::stdio::stdout()) {
        let null = File::options().write(true).open("/dev/null");
        null.and_then(|null| Ok(rustix::stdio::dup2_stderr(&null)?))
    } else {
        rustix::stdio::dup2_stderr(rustix::stdio::stdout()).map_err(Into::into)
    };
    // Without either stream there is nowhere to report an error.
    let _ = sent;
}

/// If standard error is a block device, for example after a mistaken redirection in a shell,
/// redirects it as [`redirect`] does and prints a message about the redirection.
pub fn avoid_block_devices() {
    if is_disk(rustix::stdio::stderr()) {
        redirect();
        print("fathom: standard error is a block device, which fathom never writes to; messages follow here");
    }
}

/// Prints a message and a line feed. Replaces control characters. Ignores write errors.
pub fn print(message: &str) {
    let _ = stream::write(rustix::stdio::stderr(), format!("{}\n", visible(message)).as_bytes());
}

/// Prints bytes unchanged. Ignores write errors.
pub fn write(bytes: &[u8]) {
    let _ = stream::write(rustix::stdio::stderr(), bytes);
}

/// Prints a message: `coloured` on a terminal with colours, otherwise `plain`. The two texts differ
/// only in escape sequences.
pub fn print_coloured(plain: &str, coloured: &str) {
    // Without control characters in `plain`, every escape sequence in `coloured` is fathom's own.
    let harmless = matches!(visible(plain), Cow::Borrowed(_));
    if harmless && stream::has_colours(&std::io::stderr()) {
        let _ = stream::write(rustix::stdio::stderr(), format!("{coloured}\n").as_bytes());
    } else {
        print(plain);
    }
}
