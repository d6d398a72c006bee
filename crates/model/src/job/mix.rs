//! Mix: shares of directions.
//!
//! For: how much of the operations reads, writes and trims. Not for: weights of lines or of sizes, which are weights of their own.

use super::kind::Kind;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Shares of directions in percent; what is left are writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mix {
    /// Of operations that read.
    pub read_percent: Percent,
    /// Of operations that give blocks back.
    #[serde(default)]
    pub trim_percent: Percent,
}

/// A share from 0 to 100 %, kept in millionths of a percent, so that equal shares are equal and three thirds are told from all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

/// Parts of a percent.
const PARTS: u32 = 1_000_000;

impl Percent {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// All.
    pub const ALL: Self = Self(100 * PARTS);

    /// Whole percents; above 100 they are all.
    pub const fn whole(percent: u8) -> Self {
        if percent >= 100 { Self::ALL } else { Self(percent as u32 * PARTS) }
    }

    /// The nearest share; `None` where it is below 0, above 100 or no number.
    pub fn nearest(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then(|| Self((percent * f64::from(PARTS)).round() as u32))
    }

    /// As a number from 0 to 100.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(PARTS)
    }

    /// What this and another share leave of all; nothing where they are more than all.
    #[must_use]
    pub fn rest(self, other: Self) -> Self {
        Self(Self::ALL.0.saturating_sub(self.0).saturating_sub(other.0))
    }
}

/// `70`, `76.923077`: as few digits as there are.
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Whole percents as whole numbers, which is what was written before there were others.
impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(PARTS) {
            return serializer.serialize_u32(self.0 / PARTS);
        }
        serializer.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        Self::nearest(number).ok_or_else(|| D::Error::custom(format!("{number} is no share of 0 to 100 %")))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Percent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "A share in percent.", "type": "number", "minimum": 0, "maximum": 100 })
    }
}

impl Mix {
    /// As many reads as writes: what a mix is that says no more.
    pub const EVEN: Self = Self::of_percents(50, 0);

    /// Whole percents of reads and of trims.
    pub const fn of_percents(reads: u8, trims: u8) -> Self {
        Self { read_percent: Percent::whole(reads), trim_percent: Percent::whole(trims) }
    }

    /// The share of a direction; of syncs, which are not drawn, nothing.
    pub fn share(self, kind: Kind) -> Percent {
        match kind {
            Kind::Read => self.read_percent,
            Kind::Write => self.read_percent.rest(self.trim_percent),
            Kind::Trim => self.trim_percent,
            Kind::Sync => Percent::NONE,
        }
    }

    /// Whether operations of a direction come up at all.
    pub fn does(self, kind: Kind) -> bool {
        self.share(kind) > Percent::NONE
    }

    /// `read`, `write`, `trim`, `70/30`, `60/30/10`.
    pub fn describe(self) -> String {
        let [read, write, trim] = [Kind::Read, Kind::Write, Kind::Trim].map(|kind| self.share(kind));
        match (read, trim) {
            (Percent::ALL, _) => "read".into(),
            (Percent::NONE, Percent::NONE) => "write".into(),
            (_, Percent::ALL) => "trim".into(),
            (_, Percent::NONE) => format!("{read}/{write}"),
            _ => format!("{read}/{write}/{trim}"),
        }
    }
}

#[test]
fn shares_are_what_was_said_whole_or_not() {
    assert_eq!(
        [Mix::of_percents(100, 0), Mix::of_percents(0, 0), Mix::of_percents(0, 100)].map(Mix::describe),
        ["read", "write", "trim"]
    );
    assert_eq!([Mix::of_percents(70, 0), Mix::of_percents(60, 10)].map(Mix::describe), ["70/30", "60/30/10"]);
    let ratio = |reads: f64, writes: f64| Mix {
        read_percent: Percent::nearest(100.0 * reads / (reads + writes)).unwrap_or_default(),
        trim_percent: Percent::NONE,
    };
    assert_eq!(ratio(1000.0, 300.0).describe(), "76.923077/23.076923");
    assert_eq!(ratio(2.0, 1.0).share(Kind::Write), Percent::nearest(33.333_333).unwrap_or_default());
    assert!([f64::NAN, -1e-9, 100.1].map(Percent::nearest).iter().all(Option::is_none));
    assert_eq!(Percent::whole(200), Percent::ALL);
}

#[test]
fn what_was_written_as_a_whole_number_is_read_and_written_so() {
    let json = |mix: Mix| serde_json::to_string(&mix).unwrap_or_default();
    assert_eq!(json(Mix::of_percents(70, 0)), r#"{"read_percent":70,"trim_percent":0}"#);
    for text in [r#"{"read_percent":70}"#, r#"{"read_percent":70.0,"trim_percent":0}"#] {
        assert_eq!(serde_json::from_str::<Mix>(text).ok(), Some(Mix::of_percents(70, 0)), "{text}");
    }
    let part = r#"{"read_percent":76.923077,"trim_percent":0}"#;
    assert_eq!(serde_json::from_str::<Mix>(part).map(json).unwrap_or_default(), part);
    assert!(serde_json::from_str::<Mix>(r#"{"read_percent":101}"#).is_err());
}
