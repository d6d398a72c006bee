//! Looks: what characters and colours a terminal is given.
//!
//! For: what the locale and the environment say of it. Not for: where anything stands ([`super::draw`]).

use crate::stdout;
use ratatui::symbols::bar;

/// How a view looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Characters beyond ASCII.
    pub(super) unicode: bool,
    /// Whether anything is painted in another colour than the terminal's own.
    pub(super) colours: bool,
}

/// Heights in characters that every terminal has.
const PLAIN_BARS: bar::Set<'_> = bar::Set {
    full: "#",
    seven_eighths: "%",
    three_quarters: "*",
    five_eighths: "+",
    half: "=",
    three_eighths: "-",
    one_quarter: ":",
    one_eighth: ".",
    empty: "_",
};

impl Look {
    /// That of standard error, by the environment.
    pub(super) fn here() -> Self {
        let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(said);
        Self {
            unicode: locale.is_some_and(|l| is_utf8(&l)),
            colours: stdout::has_colours(&std::io::stderr()),
        }
    }

    /// Heights; that of zero is a line, since a blank is what is not known.
    pub(super) fn bars(self) -> bar::Set<'static> {
        if self.unicode { bar::Set { empty: PLAIN_BARS.empty, ..bar::NINE_LEVELS } } else { PLAIN_BARS }
    }

    /// What stands for a part that is done and for one that is not.
    pub(super) fn gauge(self) -> [&'static str; 2] {
        if self.unicode { ["█", "░"] } else { ["#", "-"] }
    }
}

/// Whether the characters of a locale are those of UTF-8: `C.UTF-8`, `de_DE.utf8`.
fn is_utf8(locale: &str) -> bool {
    let lower = locale.to_ascii_lowercase();
    lower.contains("utf-8") || lower.contains("utf8")
}

#[test]
fn only_locales_of_utf8_have_more_than_ascii() {
    assert!(["C.UTF-8", "de_DE.utf8", "en_US.UTF-8@euro"].iter().all(|l| is_utf8(l)));
    assert!(["C", "POSIX", "de_DE.ISO-8859-15", ""].iter().all(|l| !is_utf8(l)));
    let plain = Look { unicode: false, colours: false };
    let bars = plain.bars();
    let all = [bars.full, bars.half, bars.empty, plain.gauge()[0], plain.gauge()[1]];
    assert!(all.iter().all(|symbol| symbol.is_ascii()));
}
