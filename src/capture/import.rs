//! Traces of other tools as captures.
//!
//! For: writing the capture. Not for: finding the files of a trace (`trace`), nor what stands in them (crate `capture`).

use super::{Place, Request, cannot_write};
use crate::failure::{Failure, cause};
use crate::trace::{self, Trace};
use capture::file::Writer;
use capture::foreign::Trouble;
use capture::names::Names;
use model::captured::{Ending, Origin};
use model::name;
use std::cell::RefCell;
use std::io::BufWriter;
use std::path::Path;

/// Converts it; gives the language, header and trailer.
pub(super) fn convert(from: &Path, request: &Request, place: &Place) -> Result<(Origin, Ending), Failure> {
    let Trace { language, files, origin } = trace::open_trace(from)?;
    let refuse = |e: &std::io::Error| cannot_write(&request.output, e);
    // What is half converted is nothing, and takes the place of nothing.
    let growing = place.outlet.grow(&place.rules)?;
    let to = growing.file().map_err(|e| refuse(&e))?;
    let writer = RefCell::new(Writer::new(BufWriter::new(to), &origin).map_err(|e| refuse(&e))?);
    let files = Trace::readers(files);
    let converted = language.convert(files, &mut |row, names: &Names| writer.borrow_mut().push(row, names));
    let (names, ending) = match converted {
        Ok(done) => done,
        Err(why) => {
            return Err(match why {
                Trouble::Foreign(why) => Failure::Usage(format!("{}: {why}", name::shown(from))),
                Trouble::Io(e) => {
                    Failure::Refused(format!("{} cannot be converted: {e}{}", name::shown(from), cause(&e)))
                }
            });
        }
    };
    writer.into_inner().finish(&names, &ending).map_err(|e| refuse(&e))?;
    growing.finish(&place.rules)?;
    Ok((origin, ending))
}
