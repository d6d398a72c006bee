//! The diagnosis of a place before anything is measured there: what `fathom doctor` saw.
//!
//! For: looks with their answers, as data and as JSON. Not for: looking, nor for results; a look judges no number, it says
//! what would become of one.

use crate::check_id::CheckId;
use crate::finding::{Outcome, Severity};
use crate::machine::Machine;
use serde::{Serialize, Serializer};

/// Version of this form.
pub const FORMAT: u32 = 1;

/// What was seen of a target and its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// [`FORMAT`].
    pub format: u32,
    /// The target as it was found: an absolute path without links.
    pub target: String,
    /// Its file system and block stack in one line.
    pub chain: String,
    /// How long it was watched what others do, ms.
    pub watched_ms: u64,
    /// The looks, under headings.
    pub groups: Vec<Group>,
    /// The machine and the block stack, with all that was read of them.
    pub machine: Machine,
}

/// Looks at one kind of thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// What they are about.
    pub heading: String,
    /// Each look, in a fixed order.
    pub looks: Vec<Look>,
}

/// One look and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Look {
    /// What was looked at, in a word or three.
    pub about: String,
    /// The answer: in order, a finding, or not looked at.
    pub outcome: Outcome,
    /// What a finding would do to a number; `None` unless it is one.
    pub severity: Option<Severity>,
    /// What was seen; for [`Outcome::NotChecked`] why nothing could be.
    pub sentence: String,
    /// What to do about it, with the command where one exists; empty where nothing can be done.
    pub cure: String,
    /// The check that asks the same of a measurement, where one does; in JSON its id, or an empty text.
    #[serde(serialize_with = "id_or_empty")]
    pub check: Option<CheckId>,
}

impl Look {
    /// It is in order.
    pub fn ok(about: &str, sentence: impl Into<String>) -> Self {
        Self {
            about: about.to_owned(),
            outcome: Outcome::Holds,
            severity: None,
            sentence: sentence.into(),
            cure: String::new(),
            check: None,
        }
    }

    /// It could not be looked at, and why.
    pub fn unknown(about: &str, why: impl Into<String>) -> Self {
        Self { outcome: Outcome::NotChecked, ..Self::ok(about, why) }
    }

    /// It is not in order.
    pub fn finding(about: &str, severity: Severity, sentence: impl Into<String>) -> Self {
        Self { outcome: Outcome::Finding, severity: Some(severity), ..Self::ok(about, sentence) }
    }

    /// With what to do about it.
    #[must_use]
    pub fn cure(self, cure: impl Into<String>) -> Self {
        Self { cure: cure.into(), ..self }
    }

    /// With the check that asks the same of a measurement.
    #[must_use]
    pub fn check(self, id: CheckId) -> Self {
        Self { check: Some(id), ..self }
    }
}

impl Diagnosis {
    /// Every finding, worst first; equals stay in their order.
    pub fn worst_first(&self) -> Vec<&Look> {
        let looks = self.groups.iter().flat_map(|g| &g.looks);
        let mut found: Vec<&Look> = looks.filter(|l| l.outcome == Outcome::Finding).collect();
        found.sort_by_key(|l| l.severity);
        found
    }
}

/// The form of [`Look::check`] in JSON.
#[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn id_or_empty<S: Serializer>(id: &Option<CheckId>, to: S) -> Result<S::Ok, S::Error> {
    id.map_or_else(String::new, |id| id.to_string()).serialize(to)
}

#[test]
fn findings_come_worst_first_and_equals_keep_their_order() {
    let finding = |about: &str, severity| Look::finding(about, severity, "");
    let groups = vec![
        Group { heading: "a".into(), looks: vec![finding("1", Severity::Note), Look::ok("2", "")] },
        Group {
            heading: "b".into(),
            looks: vec![Look::unknown("3", ""), finding("4", Severity::Void), finding("5", Severity::Note)],
        },
    ];
    let machine = Machine {
        host: String::new(),
        kernel: String::new(),
        cpu: Err(String::new()),
        cpus: 1,
        memory_bytes: Err(String::new()),
        virtual_by: Ok(None),
        clocksource: Err(String::new()),
        user_id: 0,
        cgroup: Err(String::new()),
        facts: std::collections::BTreeMap::new(),
        places: Vec::new(),
    };
    let diagnosis = Diagnosis {
        format: FORMAT,
        target: String::new(),
        chain: String::new(),
        watched_ms: 0,
        groups,
        machine,
    };
    let order: Vec<&str> = diagnosis.worst_first().iter().map(|l| l.about.as_str()).collect();
    assert_eq!(order, ["4", "1", "5"]);
}
