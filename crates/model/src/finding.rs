//! Checks: their ids, their pages, their answers, and the diagnosis that `fathom doctor`
//! prints.

use crate::machine::Machine;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A check and its answer about one or more results. A check tests an assumption of the user about what a number means.
/// The answer is a finding, or that the assumption holds, or the reason why the check could not be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Finding"))]
pub struct Checked {
    /// Id in the catalogue of checks, such as `A01`.
    pub id: CheckId,
    /// Name of the check, such as `CACHE_SERVED`.
    pub name: String,
    /// Whether there is a finding, the assumption holds, or the check could not be done.
    pub outcome: Outcome,
    /// The effect on the number; `None` if the answer is not a finding.
    pub severity: Option<Severity>,
    /// Names of the results that the answer is about.
    pub about: Vec<String>,
    /// The answer as a sentence; for `NotChecked` the reason.
    pub sentence: String,
    /// How to fix the cause; empty if nothing needs to be fixed.
    #[serde(rename = "cure")]
    pub fix: String,
    /// The numbers that support the sentence.
    pub evidence: BTreeMap<String, f64>,
    /// Whether the finding is accepted: by the user with `--accept`, or because the study expects it.
    pub accepted: bool,
}

/// The three outcomes of a check. A check that could not run is never a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The check found something. The severity states whether this affects the number.
    Finding,
    /// The check could not be done.
    NotChecked,
    /// The number means what the user believes.
    Holds,
}

enum_of_words! {
    /// How much a finding affects a number, worst first.
    #[derive(PartialOrd, Ord)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    Severity {
        /// The number is invalid, so reports leave it out.
        Invalidates = "void",
        /// The number measures something else, so reports relabel it.
        Relabels = "rename",
        /// The number is wrong in a known direction or by a known size.
        Biases = "biased",
        /// The number is unaffected; the finding is information.
        Note = "note",
    }
}

impl Severity {
    /// Returns the effect of a finding on a number, as printed in reports for people.
    pub fn effect(self) -> &'static str {
        match self {
            Self::Invalidates => "invalidates",
            Self::Relabels => "relabels",
            Self::Biases => "biases",
            Self::Note => "note",
        }
    }
}

macro_rules! ids {
    ($($id:ident)*) => {
        /// Id of a check: a letter for its group, and two digits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the page of each check documents its id")]
        pub enum CheckId { $($id,)* Newer(Newer) }

        impl CheckId {
            /// Every id of this version, in the order of the catalogue.
            pub const ALL: &[Self] = &[$(Self::$id),*];

            fn text(&self) -> &str {
                match self {
                    $(Self::$id => stringify!($id),)*
                    Self::Newer(id) => id.text(),
                }
            }
        }
    };
}

ids! {
    A01 A02 A03 A04 A05 A06 A07 A08 A09 A10 A11 A12 A13 A14 A15 A16 A17 A18 A19 A20 A21 A22 A23 A24
    B01 B02 B03 B04 B05 B06 B07 B08 B09 B10 B11 B12 B13 B14 B15 B16 B17 B18 B19 B20 B21
    C01 C02 C03 C04 C05 C06
    D01 D02 D03 D04 D05 D06 D07 D08 D09 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21 D22 D23 D24 D25 D26 D27 D28
    E01 E02 E03 E04 E05 E06 E07 E08 E09 E10 E11 E12 E13 E14 E15 E16 E17 E18
    F01 F02 F03 F04 F05
}

/// The id of a check that this version does not have, from a file of a newer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Newer([u8; 3]);

impl Newer {
    /// Parses a capital letter and two digits; `None` for any other text, which is not an id.
    fn read(text: &str) -> Option<Self> {
        let bytes: [u8; 3] = text.as_bytes().try_into().ok()?;
        let [group, number @ ..] = bytes;
        (group.is_ascii_uppercase() && number.iter().all(u8::is_ascii_digit)).then_some(Self(bytes))
    }

    fn text(&self) -> &str {
        // `read` is the only constructor and accepts only ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl CheckId {
    /// Returns the letter of the check's group, such as `A`.
    pub fn group(self) -> char {
        self.text().chars().next().unwrap_or_default()
    }

    /// Formats ids with `between` as separator: `A01, B05`.
    pub fn list(ids: &[Self], between: &str) -> String {
        ids.iter().map(Self::to_string).collect::<Vec<_>>().join(between)
    }

    fn parse_known(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.text() == text)
    }

    /// Returns suggestions for a mistyped id, as the end of a sentence: `B05` for `BO5` (a letter in
    /// place of a digit) and for `B5`; otherwise the ids of the same group, or all ids if there is no
    /// such group.
    fn suggest_ids(typed: &str) -> String {
        let mut repaired = typed.replace('O', "0").replace(['I', 'L'], "1");
        // `B5`: the ids have two digits.
        if repaired.len() == 2 && repaired.is_char_boundary(1) {
            repaired.insert(1, '0');
        }
        if let Some(id) = Self::parse_known(&repaired) {
            return format!("the nearest is {id}");
        }
        let group = |id: &&Self| typed.starts_with(id.group());
        let same: Vec<Self> = Self::ALL.iter().filter(group).copied().collect();
        let ids = if same.is_empty() { Self::ALL } else { &same };
        let ranges = ids.chunk_by(|a, b| a.group() == b.group());
        let ranges: Vec<String> =
            ranges.filter_map(|g| Some(format!("{} to {}", g.first()?, g.last()?))).collect();
        format!("there are {}", ranges.join(", "))
    }
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.text())
    }
}

impl FromStr for CheckId {
    type Err = String;

    /// Parses an id of this version, in upper or lower case.
    fn from_str(typed: &str) -> Result<Self, String> {
        let upper = typed.trim().to_ascii_uppercase();
        Self::parse_known(&upper)
            .ok_or_else(|| format!("there is no check '{typed}'; {}", Self::suggest_ids(&upper)))
    }
}

impl Serialize for CheckId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for CheckId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        let newer = || Newer::read(&text).map(Self::Newer);
        Self::parse_known(&text).or_else(newer).ok_or_else(|| {
            de::Error::custom(format!(
                "'{text}' is not the id of a check: a letter and two digits, such as A01"
            ))
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CheckId {
    fn schema_name() -> Cow<'static, str> {
        "CheckId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[A-Z][0-9]{2}$" })
    }
}

/// The documentation of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckPage {
    /// Id in the catalogue of checks, such as `A01`.
    pub id: CheckId,
    /// Name of the check, such as `CACHE_SERVED`.
    pub name: &'static str,
    /// The title of the check's group.
    pub group: &'static str,
    /// The assumption of the user that the check tests.
    pub belief: &'static str,
    /// The evidence that the check reads.
    pub reads: &'static str,
    /// The formula that decides whether there is a finding.
    pub formula: String,
    /// How to trigger the finding, usually with commands.
    pub provoke: &'static str,
    /// How to fix the cause, and when to accept the finding.
    #[serde(rename = "repair")]
    pub advice: String,
    /// The flag that accepts the finding for the exit code; `None` if no flag does.
    pub accept: Option<String>,
}

/// Pages of checks. Their JSON is a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The requested pages in the order of the request, or all pages in the order of their ids.
    pub pages: Vec<CheckPage>,
    /// Whether these are all pages. A format may then print an overview.
    pub all: bool,
}

impl Pages {
    /// Splits the pages wherever the group of the checks changes.
    pub fn groups(&self) -> impl Iterator<Item = &[CheckPage]> {
        self.pages.chunk_by(|a, b| a.group == b.group)
    }
}

impl Serialize for Pages {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.pages.serialize(to)
    }
}

/// Version of the JSON of `fathom doctor`.
pub const FORMAT: u32 = 1;

/// The observations of `fathom doctor` about a target and its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Version of this JSON: [`FORMAT`].
    pub format: u32,
    /// Path of the target, as typed.
    pub target: String,
    /// File system and block stack of the target in one line.
    pub chain: String,
    /// Time in ms during which doctor watched for other load.
    pub watched_ms: u64,
    /// The answers, under headings.
    pub groups: Vec<AnswerGroup>,
    /// The machine and the block stack, with everything that was read about them.
    pub machine: Machine,
}

/// Answers about one subject, such as the device or the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerGroup {
    /// Title of the group in the output of `doctor`.
    pub heading: String,
    /// The answers, in a fixed order.
    #[serde(rename = "looks")]
    pub answers: Vec<DoctorAnswer>,
}

/// The answer to one of the questions that `fathom doctor` asks before a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorAnswer {
    /// The subject in one to three words.
    pub about: String,
    /// Whether there is a finding or no problem, or the question could not be checked.
    pub outcome: Outcome,
    /// The effect of a finding on a number; `None` for other outcomes.
    pub severity: Option<Severity>,
    /// The answer as a sentence; for [`Outcome::NotChecked`] the reason.
    pub sentence: String,
    /// How to fix the problem, with the command if one exists; empty if there is no problem or no
    /// fix.
    #[serde(rename = "cure")]
    pub fix: String,
    /// The id of the check that tests the same on a measurement; `None`, and in JSON an empty text,
    /// if there is none.
    #[serde(serialize_with = "id_or_empty")]
    pub check: Option<CheckId>,
}

impl DoctorAnswer {
    /// Creates an answer without a problem.
    pub fn ok(about: &str, sentence: impl Into<String>) -> Self {
        Self {
            about: about.to_owned(),
            outcome: Outcome::Holds,
            severity: None,
            sentence: sentence.into(),
            fix: String::new(),
            check: None,
        }
    }

    /// Creates the answer to a question that could not be checked, with the reason.
    pub fn unknown(about: &str, why: impl Into<String>) -> Self {
        Self { outcome: Outcome::NotChecked, ..Self::ok(about, why) }
    }

    /// Creates an answer with a problem.
    pub fn finding(about: &str, severity: Severity, sentence: impl Into<String>) -> Self {
        Self { outcome: Outcome::Finding, severity: Some(severity), ..Self::ok(about, sentence) }
    }

    /// Whether the answer is a finding that changes what a measurement shows. The limit of a cgroup counts as such a
    /// finding: a fast enough load would measure this limit instead of the device.
    pub fn affects_measurement(&self) -> bool {
        self.outcome == Outcome::Finding && (self.severity != Some(Severity::Note) || self.is_cgroup_limit())
    }

    /// Whether a cgroup limits the I/O of the target.
    pub fn is_cgroup_limit(&self) -> bool {
        self.outcome == Outcome::Finding && self.check == Some(CheckId::D04)
    }

    /// Adds how to fix the problem.
    #[must_use]
    pub fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    /// Adds the check that tests the same on a measurement.
    #[must_use]
    pub fn check(self, id: CheckId) -> Self {
        Self { check: Some(id), ..self }
    }
}

impl Diagnosis {
    /// Returns all findings, worst first. Findings of equal severity keep their order. The limit of a cgroup counts as a
    /// finding that biases a number.
    pub fn worst_first(&self) -> Vec<&DoctorAnswer> {
        let answers = self.groups.iter().flat_map(|group| &group.answers);
        let mut findings: Vec<&DoctorAnswer> = answers.filter(|a| a.outcome == Outcome::Finding).collect();
        findings.sort_by_key(|f| if f.is_cgroup_limit() { Some(Severity::Biases) } else { f.severity });
        findings
    }
}

/// Writes [`DoctorAnswer::check`] to JSON: its id, or an empty text.
#[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn id_or_empty<S: Serializer>(id: &Option<CheckId>, to: S) -> Result<S::Ok, S::Error> {
    id.map_or_else(String::new, |id| id.to_string()).serialize(to)
}

#[test]
fn check_ids_are_sorted_and_parsed_in_any_case() {
    assert!(CheckId::ALL.windows(2).all(|w| w[0] < w[1] && w[0].to_string() < w[1].to_string()));
    for id in CheckId::ALL {
        assert_eq!(id.to_string().parse(), Ok(*id));
        assert_eq!(id.to_string().to_lowercase().parse(), Ok(*id));
        let json = serde_json::to_string(id).unwrap_or_default();
        assert_eq!((json.clone(), serde_json::from_str(&json).ok()), (format!("\"{id}\""), Some(*id)));
    }
    assert_eq!((CheckId::D01.group(), format!("{:<4}|", CheckId::D01)), ('D', "D01 |".to_owned()));
}

#[test]
fn ids_of_newer_versions_are_kept_and_invalid_ids_rejected() {
    let known = CheckId::ALL.last().copied();
    for newer in ["A99", "G01"] {
        let read: Option<CheckId> = serde_json::from_str(&format!("\"{newer}\"")).ok();
        assert_eq!(
            read.map(|id| (id.to_string(), id.group())),
            Some((newer.to_owned(), newer.as_bytes()[0] as char))
        );
        assert!(read > known, "newer ids sort after all known ones");
        assert_eq!(serde_json::to_value(read).ok(), Some(newer.into()));
    }
    for foreign in ["", "A1", "a01", "A001", "01A", "CACHE_SERVED", "\u{e9}1", "A0\u{661}"] {
        let why = serde_json::from_value::<CheckId>(foreign.into()).err().map(|e| e.to_string());
        assert!(why.is_some_and(|why| why.contains("a letter and two digits")), "{foreign}");
    }
}

#[test]
fn mistyped_ids_get_suggestions() {
    let why = |typed: &str| typed.parse::<CheckId>().err().unwrap_or_default();
    assert_eq!(why("a0l"), "there is no check 'a0l'; the nearest is A01");
    assert_eq!(why("E1O"), "there is no check 'E1O'; the nearest is E10");
    assert_eq!(why("b5"), "there is no check 'b5'; the nearest is B05");
    let range = |group| {
        let all: Vec<&CheckId> = CheckId::ALL.iter().filter(|id| id.group() == group).collect();
        format!("{} to {}", all[0], all[all.len() - 1])
    };
    assert_eq!(why("C99"), format!("there is no check 'C99'; there are {}", range('C')));
    for elsewhere in ["G01", "", "\u{e9}"] {
        let groups = ['A', 'B', 'C', 'D', 'E', 'F'].map(range).join(", ");
        assert!(why(elsewhere).ends_with(&format!("there are {groups}")), "{}", why(elsewhere));
    }
}

#[test]
fn findings_are_sorted_by_severity_stably() {
    let finding = |about: &str, severity| DoctorAnswer::finding(about, severity, "");
    let groups = vec![
        AnswerGroup {
            heading: "a".into(),
            answers: vec![finding("1", Severity::Note), DoctorAnswer::ok("2", "")],
        },
        AnswerGroup {
            heading: "b".into(),
            answers: vec![
                DoctorAnswer::unknown("3", ""),
                finding("4", Severity::Invalidates),
                finding("5", Severity::Note),
                finding("6", Severity::Note).check(CheckId::D04),
            ],
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
    assert_eq!(order, ["4", "6", "1", "5"]);
    let acting = diagnosis.worst_first().into_iter().filter(|l| l.affects_measurement()).count();
    assert_eq!(acting, 2, "the limit of a cgroup is no mere note");
}
