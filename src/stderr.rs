//! Standard error: words about what is going on, beside the answer.
//!
//! For: messages that do nothing to a terminal and never end the program. Not for: answers ([`crate::stdout`]), nor progress
//! ([`crate::live`]), which uses this where nobody watches.

use crate::stream;
use model::visible::visible;
use std::borrow::Cow;

/// Says something, with a line feed behind it. Where it cannot be said there is nobody to tell.
pub fn say(words: &str) {
    let _ = stream::write(rustix::stdio::stderr(), format!("{}\n", visible(words)).as_bytes());
}

/// Says something in the place of what was said so before, with no line feed behind it.
pub fn say_in_place(words: &str) {
    let _ = stream::write(rustix::stdio::stderr(), format!("\r{}", visible(words)).as_bytes());
}

/// Says something that has a form with colours too, which differs from the plain one in nothing else.
pub fn say_coloured(plain: &str, coloured: &str) {
    // Escape sequences are let through only where every one of them is ours.
    let harmless = matches!(visible(plain), Cow::Borrowed(_));
    if harmless && stream::has_colours(&std::io::stderr()) {
        let _ = stream::write(rustix::stdio::stderr(), format!("{coloured}\n").as_bytes());
    } else {
        say(plain);
    }
}
