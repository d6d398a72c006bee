//! Languages in which workloads are written down: a text in, a [`model::spec::JobSpec`] out.
//!
//! For: reading them, and messages that point at the place. Not for: defaults (the plan) nor for finding files.
#![forbid(unsafe_code)]

mod content;
mod dashes;
pub mod diskspd;
pub mod fio;
pub mod iometer;
pub mod job;
mod language;
mod names_in_tool;
mod nearest;
pub mod trouble;

pub use self::content::what_language;
pub use self::dashes::LONG_DASHES;
pub use self::language::{Language, MAX_FILE_BYTES, Tool};
pub use self::names_in_tool::in_names_of;
pub use self::trouble::Trouble;

use std::path::Path;

/// Every language there is.
pub const LANGUAGES: &[Language] = &[self::job::LANGUAGE, self::fio::LANGUAGE, self::diskspd::LANGUAGE, self::iometer::LANGUAGE];

/// Tools whose command lines are read, by the names that people and programs call them by.
pub const COMMANDS: &[&str] = &["fio", "diskspd", "iometer", "iops"];

/// The language of a file, by the end of its name in whichever case; `None` where that is not one's.
pub fn of_name(path: &Path) -> Option<&'static Language> {
    let extension = path.extension()?;
    LANGUAGES.iter().find(|language| extension.eq_ignore_ascii_case(language.extension))
}

/// The language of a tool; `None` where its files are known and not read.
pub fn of_tool(tool: Tool) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.tool == tool)
}
