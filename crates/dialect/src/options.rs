//! Options of other tools and fields of their files, and how each is handled. The tables of fio, DISKSPD and Iometer consist of these
//! entries. Parsers check values against the tables. Help texts, messages in a tool's own names, and the tables of docs/reference are
//! made from the tables.

use model::spec::number::any_of;

/// An option of another tool, or a field of its files.
#[derive(Clone, Copy, Debug)]
pub struct ToolOption {
    /// Name in the tool's own help, for DISKSPD and fio without the leading dashes.
    pub name: &'static str,
    /// Other names of the option.
    pub aliases: &'static [&'static str],
    /// Name of the value as help shows it, such as `=FILE`; empty if the help shows none.
    pub value: &'static str,
    /// How fathom handles the option.
    pub how: How,
    /// The effect of the option in fathom, or the reason for another handling. The reason for a refusal also says what to type instead.
    pub about: &'static str,
    /// The settings of fathom that the option sets, separated by spaces. If several options set the
    /// same setting, messages name the first of these options in the table.
    pub settings: &'static str,
    /// The possible values; empty if the parser of the value checks them.
    pub(crate) words: &'static [&'static str],
    /// Other spellings of the possible values, which messages do not suggest.
    pub(crate) other_words: &'static [&'static str],
    /// Whether the option may be typed without a value.
    pub(crate) is_switch: bool,
    /// The engines of fio that have the option; empty if all have it.
    pub(crate) engines: &'static [&'static str],
    /// The form of the value.
    pub(crate) form: Form,
    /// How a replay of fio handles the option.
    pub(crate) in_replay: InReplay,
}

/// The form of an option's value. It is checked even if the job does not need the value, or if a later option overrides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Any text. The reader of the option may check more.
    Text,
    /// 1 or 0. `is_switch` defines whether the value may be left out.
    Switch,
    /// A whole number, which may have a suffix.
    Number,
    /// Whole numbers for reads, writes and trims.
    Numbers,
    /// A whole percentage.
    Percent,
    /// A number of bytes, or a percentage.
    Size,
    /// A time, in seconds if it has no unit.
    Seconds,
    /// A time, in microseconds if it has no unit.
    Microseconds,
}

/// How an option is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The option works as in the tool.
    Honoured,
    /// The option is accepted and has no effect. A remark reports the reason once.
    NoEffect,
    /// The option is accepted with these values, which have no effect. Any other value is refused.
    Only(&'static [&'static str]),
    /// The option is refused.
    Refused,
}

/// How a replay handles an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InReplay {
    /// The option has the same effect as in a job without a replay.
    AsElsewhere,
    /// The option has no effect, because the log defines the operations.
    NoEffect,
    /// The option is refused for this reason.
    Refused(&'static str),
}

const fn option(name: &'static str, how: How, about: &'static str) -> ToolOption {
    ToolOption {
        name,
        aliases: &[],
        value: "",
        how,
        about,
        settings: "",
        words: &[],
        other_words: &[],
        is_switch: false,
        engines: &[],
        form: Form::Text,
        in_replay: InReplay::AsElsewhere,
    }
}

/// An option that works as in the tool. It sets these settings of fathom; if `settings` is empty, the parser handles it in another way.
pub(crate) const fn honoured(name: &'static str, settings: &'static str, about: &'static str) -> ToolOption {
    ToolOption { settings, ..option(name, How::Honoured, about) }
}

/// An option that is accepted and has no effect, for this reason.
pub(crate) const fn no_effect(name: &'static str, why: &'static str) -> ToolOption {
    option(name, How::NoEffect, why)
}

/// An option that is refused unless it has one of these values.
pub(crate) const fn only(
    name: &'static str,
    values: &'static [&'static str],
    why: &'static str,
) -> ToolOption {
    option(name, How::Only(values), why)
}

/// An option that is refused: why, and what to type instead.
pub(crate) const fn refused(name: &'static str, why: &'static str) -> ToolOption {
    option(name, How::Refused, why)
}

impl ToolOption {
    pub(crate) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn takes(self, value: &'static str) -> Self {
        Self { value, ..self }
    }

    pub(crate) const fn one_of(
        self,
        words: &'static [&'static str],
        other_words: &'static [&'static str],
    ) -> Self {
        Self { words, other_words, ..self }
    }

    pub(crate) const fn value_optional(self) -> Self {
        Self { is_switch: true, ..self }
    }

    pub(crate) const fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    pub(crate) const fn engines(self, engines: &'static [&'static str]) -> Self {
        Self { engines, ..self }
    }

    /// Marks an option that has no effect in a replay, because the log defines the operations.
    pub(crate) const fn ignored_in_replay(self) -> Self {
        Self { in_replay: InReplay::NoEffect, ..self }
    }

    pub(crate) const fn no_replay(self, why: &'static str) -> Self {
        Self { in_replay: InReplay::Refused(why), ..self }
    }

    /// The name of the option, and its other names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Why an option of fio cannot have this value, and what to type instead; `None` if it can.
    pub(crate) fn objection(&self, value: &str) -> Option<String> {
        let is_wrong = match self.how {
            How::Refused => true,
            How::Only(values) => !values.contains(&value),
            How::NoEffect => false,
            How::Honoured => {
                let accepted = |words: &[&str]| words.contains(&value);
                if !self.words.is_empty() && !accepted(self.words) && !accepted(self.other_words) {
                    return Some(format!("fio has no such value; type {}", any_of(self.words)));
                }
                false
            }
        };
        is_wrong.then(|| self.about.into())
    }

    /// How the option is handled, in one sentence for the tool's own help.
    pub(crate) fn explained(&self) -> String {
        match self.how {
            How::Honoured => without_settings(self.about),
            How::NoEffect => format!("no effect: {}", self.about),
            How::Only(values) => format!("only {}: {}", values.join(" or "), self.about),
            How::Refused => format!("refused: {}", self.about),
        }
    }
}

/// Removes fathom's settings in parentheses, such as " (`--bs`)", which users of another tool cannot type.
fn without_settings(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some(start) = out.find(" (`--") {
        let length = out[start..].find(')').map_or(out.len() - start, |end| end + 1);
        out.replace_range(start..start + length, "");
    }
    out
}

#[test]
fn settings_in_parentheses_are_removed() {
    let text = "limit of each (`--limit-iops`, `--rate`), or 0 (off) (`--bs`)";
    assert_eq!(without_settings(text), "limit of each, or 0 (off)");
}
