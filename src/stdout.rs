//! Standard output: the one way to it.
//!
//! For: bytes that arrive whole or an error that says why not, and text that does nothing to a terminal. Not for: files
//! ([`crate::output`]), nor words about what is going on ([`crate::stderr`]).

use crate::failure::{Failure, cause};
use model::visible::{visible, visible_json};
use report::{Content, Format, ReportKind, Style, TEXT};
use rows as rows_of;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

/// The end of a line in CSV.
const LINE_END: &str = "\r\n";
/// The descriptor of standard output.
const NUMBER: i32 = 1;

/// Prints text in which nothing is coloured.
///
/// # Errors
/// [`Failure::Refused`] where it cannot be written. A pipe that nobody reads any more is nobody's error.
pub fn text(text: &str) -> Result<(), Failure> {
    bytes(&harmless(text.as_bytes(), Content::Text))
}

/// Prints a report of any kind in a format, as wide as the terminal and with its colours.
///
/// # Errors
/// As [`text`], and where the format has no way to write it.
pub fn report<K: ReportKind + ?Sized>(format: &Format, report: &K, style: Style) -> Result<(), Failure> {
    bytes(&fitted(format, report, style, &io::stdout())?)
}

/// A report of any kind in a format, as wide as this stream and with its colours.
///
/// # Errors
/// Returns a failure if the format has no way to write it.
pub(crate) fn fitted<K: ReportKind + ?Sized>(
    format: &Format,
    report: &K,
    style: Style,
    stream: &(impl IsTerminal + AsFd),
) -> Result<Vec<u8>, Failure> {
    let style = Style { width: columns(Some(stream.as_fd())), ..style };
    let plain = render(format, report, style)?;
    let shown = harmless(&plain, format.content);
    let may_colour = format.content == Content::Text && shown == plain;
    if may_colour && has_colours(stream) {
        return render(format, report, Style { colour: true, ..style });
    }
    Ok(shown)
}

/// A report of any kind as [`report`] prints it where there are no colours: for files.
///
/// # Errors
/// Where the format has no way to write it.
pub(crate) fn rendered<K: ReportKind + ?Sized>(
    format: &Format,
    report: &K,
    style: Style,
) -> Result<Vec<u8>, Failure> {
    let style = Style { width: columns(None), ..style };
    Ok(harmless(&render(format, report, style)?, format.content))
}

/// A report of any kind for a message, where it cannot be printed: in this format where that is text.
pub(crate) fn in_words<K: ReportKind + ?Sized>(format: &Format, report: &K, style: Style) -> String {
    let format = if format.content == Content::Bytes { TEXT } else { format };
    let bytes = render(format, report, style).unwrap_or_else(|why| why.message().as_bytes().to_vec());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn render<K: ReportKind + ?Sized>(format: &Format, report: &K, style: Style) -> Result<Vec<u8>, Failure> {
    let refuse = |e| Failure::Refused(format!("--format {}: {e}", format.name));
    format.bytes(report, style).map_err(refuse)
}

/// Prints text, which is there twice, with colours on a terminal.
///
/// # Errors
/// As [`text`].
pub fn coloured(plain: &str, coloured: &str) -> Result<(), Failure> {
    // Escape sequences are let through only where every one of them is ours.
    let ours = harmless(plain.as_bytes(), Content::Text) == plain.as_bytes();
    if ours && has_colours(&io::stdout()) { bytes(coloured.as_bytes()) } else { text(plain) }
}

/// Prints JSON.
///
/// # Errors
/// As [`text`].
pub fn json(json: impl AsRef<[u8]>) -> Result<(), Failure> {
    bytes(&harmless(json.as_ref(), Content::Json))
}

/// Prints bytes as they are.
///
/// # Errors
/// As [`text`].
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    piece(bytes).map(|_| ())
}

/// Prints one part of what goes on, in which nothing is coloured; its lines, or `None` where nobody reads any more.
///
/// # Errors
/// As [`report`].
pub(crate) fn part<K: ReportKind + ?Sized>(format: &Format, part: &K) -> Result<Option<usize>, Failure> {
    let style = Style { width: columns(Some(rustix::stdio::stdout())), ..Style::default() };
    let shown = harmless(&render(format, part, style)?, format.content);
    let lines = shown.split(|byte| *byte == b'\n').count().saturating_sub(1);
    Ok(piece(&shown)?.then_some(lines))
}

/// Lines of the terminal; `None` where it is none.
pub(crate) fn screen_rows() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    rows_of(rustix::stdio::stdout())
}

/// Prints a piece of something long, as it is; whether anybody still reads.
///
/// # Errors
/// As [`text`].
pub(crate) fn piece(bytes: &[u8]) -> Result<bool, Failure> {
    let written = match () {
        () if sys::standard::was_closed(NUMBER) => Err(closed()),
        // What a shell sends there by a slip destroys what is stored.
        () if is_block_device() => Err(io::Error::other("it is a block device, which is never written to")),
        () => write(rustix::stdio::stdout(), bytes),
    };
    match written {
        Ok(()) => Ok(true),
        // `fathom ... | head` closes the pipe early; there is nobody left to tell.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure::Refused(format!("standard output cannot be written: {e}{}", cause(&e)))),
    }
}

/// A document as it may reach a terminal, which whoever reads a file of it does: text, or JSON that says the same. What is neither
/// stays as it is.
pub(crate) fn harmless(document: &[u8], content: Content) -> Vec<u8> {
    let text = String::from_utf8_lossy(document);
    match content {
        Content::Bytes => document.to_vec(),
        Content::Json => visible_json(&text).into_owned().into_bytes(),
        // The ends of lines in CSV are two characters, which together do no more than end a line.
        Content::Text => {
            let lines: Vec<_> = text.split(LINE_END).map(visible).collect();
            lines.join(LINE_END).into_bytes()
        }
    }
}

fn is_block_device() -> bool {
    let facts = rustix::fs::fstat(rustix::stdio::stdout());
    facts.is_ok_and(|f| FileType::from_raw_mode(f.st_mode) == FileType::BlockDevice)
}

fn closed() -> io::Error {
    io::Error::other("it was closed when fathom was started")
}

/// Fewest columns that text is laid out for.
const NARROWEST: usize = 20;

/// Whether a terminal can place text, as far as its name says; one without a name is not known to.
pub(crate) fn places_text() -> bool {
    std::env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb")
}

/// Whether colours are wanted on a stream: on a terminal that has some, and not where `NO_COLOR` is set.
pub(crate) fn has_colours(stream: &impl IsTerminal) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    stream.is_terminal() && !is_dumb && std::env::var_os("NO_COLOR").is_none()
}

/// Columns of a stream: as many as `COLUMNS` says, else as the terminal has; of anything else as many as fit one that says nothing.
pub(crate) fn columns(stream: Option<BorrowedFd<'_>>) -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let of_terminal = || Some(usize::from(tcgetwinsize(stream?).ok()?.ws_col));
    let known = said.filter(|columns| *columns > 0).or_else(of_terminal).filter(|columns| *columns > 0);
    known.unwrap_or(report::WIDTH).max(NARROWEST)
}

/// Lines of a terminal, as far as it says.
pub(crate) fn rows(terminal: BorrowedFd<'_>) -> Option<usize> {
    tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Writes all of it to a file of any kind, waiting where it was opened without.
pub(crate) fn write(file: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    let file: BorrowedFd<'_> = file.as_fd();
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut room = [PollFd::from_borrowed_fd(file, PollFlags::OUT)];
                rustix::io::retry_on_intr(|| poll(&mut room, None))?;
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

#[test]
fn ends_of_lines_stay_and_what_acts_on_a_terminal_does_not() {
    let shown = |text: &str| String::from_utf8(harmless(text.as_bytes(), Content::Text)).unwrap_or_default();
    assert_eq!(shown("a,b\r\n1,\"x\ry\"\r\n"), "a,b\r\n1,\"x\\u{d}y\"\r\n");
    assert_eq!(shown("a\u{1b}[1m\n"), "a\\u{1b}[1m\n");
}

#[test]
fn what_is_no_text_is_not_touched() {
    let picture = b"\x89PNG\r\n\x1a\n\x00\xff";
    assert_eq!(harmless(picture, Content::Bytes), picture);
    assert_ne!(harmless(picture, Content::Text), picture);
}
