//! Filters: which entries of the history are wanted.
//!
//! For: what may be asked of an entry, and how the index is asked for it. Not for: order and number ([`super::index`]).

use model::report::Verdict;
use rusqlite::ToSql;

/// What an entry must be like.
pub(super) const MATCHES: &str = "
    (:target IS NULL OR EXISTS (SELECT 1 FROM json_each(entry, '$.targets') WHERE instr(value, :target) > 0))
    AND (:device IS NULL OR EXISTS (SELECT 1 FROM json_each(entry, '$.devices') WHERE
        instr(value ->> 'name', :device) > 0 OR instr(coalesce(value ->> 'model', ''), :device) > 0
        OR instr(coalesce(value ->> 'serial', ''), :device) > 0))
    AND (:job IS NULL OR instr(coalesce(entry ->> 'title', ''), :job) > 0
        OR EXISTS (SELECT 1 FROM json_each(entry, '$.jobs') WHERE instr(value, :job) > 0))
    AND (:verdict IS NULL OR entry ->> 'verdict' = :verdict)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(entry, '$.words.tags') WHERE value = :tag))
    AND (:since IS NULL OR started_ns >= :since)
    AND (:until IS NULL OR started_ns < :until)
";

/// Which entries are wanted; `None` for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// A part of the path of one of its targets.
    pub target: Option<String>,
    /// A part of the name, model or serial number of a device below.
    pub device: Option<String>,
    /// A part of its title or of the name of one of its jobs.
    pub job: Option<String>,
    /// The first word of its report.
    pub verdict: Option<Verdict>,
    /// A tag of it.
    pub tag: Option<String>,
    /// The first ns since 1970.
    pub since: Option<i64>,
    /// The first ns that is too late.
    pub until: Option<i64>,
}

impl Filter {
    /// The verdict as entries spell it.
    pub(super) fn verdict_word(&self) -> Option<String> {
        let word = self.verdict.and_then(|v| serde_json::to_value(v).ok());
        word.and_then(|w| w.as_str().map(str::to_owned))
    }

    /// The values of [`MATCHES`], that of the verdict from [`Self::verdict_word`].
    pub(super) fn bound<'a>(&'a self, verdict: &'a dyn ToSql) -> [(&'static str, &'a dyn ToSql); 7] {
        [
            (":target", &self.target),
            (":device", &self.device),
            (":job", &self.job),
            (":verdict", verdict),
            (":tag", &self.tag),
            (":since", &self.since),
            (":until", &self.until),
        ]
    }
}
