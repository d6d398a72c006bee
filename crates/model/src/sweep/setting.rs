//! A setting of a grid: everything that one of its cells says for itself.
//!
//! For: its words, and what its buffers take. Not for: which settings a grid has ([`super::Grid`]).

use crate::job::{Cache, Sizes};
use crate::units::show_bytes;
use serde::{Deserialize, Serialize};

/// One setting of a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Bytes per operation; of the largest where `spec` names the work.
    pub block_bytes: u32,
    /// Operations in flight per worker, and on each target.
    pub depth: u32,
    /// Threads.
    pub workers: u32,
    /// Engine with its options, as typed: `io_uring:sqpoll=1`.
    pub engine: String,
    /// What the target is opened with.
    pub cache: Cache,
    /// Order and direction: `read`, `randwrite`; empty where `spec` names the work.
    pub rw: String,
    /// Shares of directions where `rw` leaves them open: `70/30`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<String>,
    /// Operations submitted per call, where the grid says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// What the preset calls its way through the page cache: `unbuffered-sequential`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Name of the access specification that is done: `File Server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// How many of the named targets each worker uses, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<u32>,
    /// How many the last worker uses, where that is fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets_of_last: Option<u32>,
    /// The one target that is used, where the grid goes through them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// First byte that may be touched, where the grid says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_bytes: Option<u64>,
    /// First byte that may be touched, in percent of what is there, where the grid says it in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_percent: Option<u32>,
}

impl Setting {
    /// One worker with io_uring past the page cache, on one target.
    pub fn plain(rw: &str, block_bytes: u32, depth: u32) -> Self {
        Self {
            block_bytes,
            depth,
            workers: 1,
            engine: "io_uring".into(),
            cache: Cache::Direct,
            rw: rw.into(),
            mix: None,
            batch: None,
            mode: None,
            spec: None,
            targets: None,
            targets_of_last: None,
            target: None,
            offset_bytes: None,
            offset_percent: None,
        }
    }

    /// What is done, whatever the setting: cells of one work compete. `read`, `randrw 70/30`, `File Server`.
    pub fn work(&self) -> String {
        match (&self.spec, &self.mix) {
            (Some(spec), _) => spec.clone(),
            (None, Some(mix)) => format!("{} {mix}", self.rw),
            (None, None) => self.rw.clone(),
        }
    }

    /// Whether offsets are random; of an access specification, which has lines of its own, that is not said.
    pub fn is_random(&self) -> bool {
        self.spec.is_none() && self.rw.starts_with("rand")
    }

    /// Whether it writes and does nothing else.
    pub fn only_writes(&self) -> bool {
        let word = self.mix.as_ref().unwrap_or(&self.rw);
        self.spec.is_none() && matches!(word.as_str(), "write" | "randwrite")
    }

    /// Queues of `depth` operations: one for each target of each worker.
    pub fn queues(&self) -> u64 {
        let each = u64::from(self.targets.unwrap_or(1));
        let last = self.targets_of_last.map_or(each, u64::from);
        u64::from(self.workers.saturating_sub(1)).saturating_mul(each).saturating_add(last)
    }

    /// Bytes of its buffers.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.block_bytes).saturating_mul(u64::from(self.depth)).saturating_mul(self.queues())
    }

    /// `8 x 512K`: operations in flight and their size, as the field writes it; `depth 8` where they have several.
    pub fn shape(&self) -> String {
        if self.spec.is_some() {
            return format!("depth {}", self.depth);
        }
        format!("{} x {}", self.depth, Sizes::Fixed(self.block_bytes).in_a_name())
    }

    /// The rest of it: `direct, io_uring, 4 workers`.
    pub fn way(&self) -> String {
        let mut words =
            vec![self.mode.clone().unwrap_or_else(|| self.cache.word().into()), self.engine.clone()];
        words.extend((self.workers > 1).then(|| format!("{} workers", self.workers)));
        words.extend(self.targets.map(|t| if t == 1 { "1 target".into() } else { format!("{t} targets") }));
        words.extend(self.targets_of_last.map(|t| format!("the last worker on {t}")));
        words.extend(self.batch.map(|b| format!("batch {b}")));
        words.extend(self.target.clone());
        words.extend(self.position().map(|at| format!("at {at}")));
        words.join(", ")
    }

    /// Where it begins on the target, as it was said: `25 %`, `4 GiB`.
    pub fn position(&self) -> Option<String> {
        let percent = self.offset_percent.map(|p| format!("{p} %"));
        percent.or_else(|| self.offset_bytes.map(show_bytes))
    }

    /// The setting without a position on the target.
    #[must_use]
    pub fn at_no_position(&self) -> Self {
        Self { offset_bytes: None, offset_percent: None, ..self.clone() }
    }

    /// All of it in a line: `read 8 x 512K direct, io_uring`.
    pub fn describe(&self) -> String {
        format!("{} {} {}", self.work(), self.shape(), self.way())
    }
}

#[test]
fn a_setting_reads_as_the_field_writes_it() {
    let setting = Setting::plain("read", 512 << 10, 8);
    assert_eq!(setting.describe(), "read 8 x 512K direct, io_uring");
    assert_eq!(setting.memory_bytes(), 4 << 20);
    let spec = Setting {
        spec: Some("File Server".into()),
        rw: String::new(),
        targets: Some(3),
        targets_of_last: Some(1),
        workers: 2,
        ..setting.clone()
    };
    assert_eq!(
        spec.describe(),
        "File Server depth 8 direct, io_uring, 2 workers, 3 targets, the last worker on 1"
    );
    assert_eq!(spec.memory_bytes(), 4 * (4 << 20));
    let there = Setting {
        target: Some("/mnt/a".into()),
        offset_bytes: Some(1 << 30),
        ..Setting::plain("read", 512, 1)
    };
    assert_eq!(there.describe(), "read 1 x 512 B direct, io_uring, /mnt/a, at 1 GiB");
    let share = Setting { offset_percent: Some(25), ..there };
    assert_eq!(share.position(), Some("25 %".into()));
    let mixed = Setting { rw: "randrw".into(), mix: Some("70/30".into()), workers: 4, ..setting };
    assert_eq!((mixed.work(), mixed.way()), ("randrw 70/30".into(), "direct, io_uring, 4 workers".into()));
    let only_writes = |rw: &str, mix: Option<&str>, spec: Option<&str>| {
        let [mix, spec] = [mix, spec].map(|text| text.map(Into::into));
        Setting { mix, spec, ..Setting::plain(rw, 4096, 1) }.only_writes()
    };
    assert!(only_writes("write", None, None) && only_writes("randwrite", None, None));
    assert!(only_writes("randrw", Some("write"), None), "a mix of nothing else");
    assert!(!only_writes("randrw", Some("70/30"), None) && !only_writes("randrw", Some("read"), None));
    assert!(!only_writes("read", None, None) && !only_writes("randrw", None, None));
    assert!(!only_writes("", None, Some("write")), "a name says nothing");
}
