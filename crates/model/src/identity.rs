//! Identity: what a file or device is, whatever it is called.
//!
//! For: telling that two names are one thing, and that one name has become another thing. Not for: asking a kernel (that is
//! `machine::identity`), nor for what is stored there.

use serde::{Deserialize, Serialize};

/// What a file or device is. Names do not count: hard links, symbolic links, bind mounts and device nodes are many for one
/// thing, and one name may stand for another thing a moment later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// Anything that is stored in a file system: a file, a directory, a FIFO.
    File {
        /// `major:minor` of its file system, as `stat` shows it.
        device: String,
        /// Its number there.
        inode: u64,
    },
    /// A block device, through whichever node.
    Device {
        /// `major:minor`.
        number: String,
        /// What tells this device from another one that has had its number: serial number, sequence number of its disk, the
        /// file behind a loop device. Each in words, as it is shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        marks: Vec<String>,
    },
}

impl Identity {
    /// Whether both are the same file or the same device at this moment.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Device { number: a, .. }, Self::Device { number: b, .. }) => a == b,
            _ => self == other,
        }
    }

    /// `inode 42 of 8:1`, `device 8:1`.
    pub fn describe(&self) -> String {
        match self {
            Self::Device { number, .. } => format!("device {number}"),
            Self::File { device, inode } => format!("inode {inode} of {device}"),
        }
    }

    /// How this differs from what was there before, in words; `None` where it is the same thing still.
    pub fn change_from(&self, before: &Self) -> Option<String> {
        if self == before {
            return None;
        }
        let of = |me: &Self, other: &Self| match (me, other) {
            (Self::Device { number, marks }, Self::Device { number: their, marks: theirs }) => {
                let own = marks.iter().filter(|m| !theirs.contains(m)).cloned();
                let all: Vec<String> =
                    (number != their).then(|| format!("device {number}")).into_iter().chain(own).collect();
                if all.is_empty() { format!("device {number}") } else { all.join(", ") }
            }
            (me, _) => me.describe(),
        };
        Some(format!("it was {} and is {}", of(before, self), of(self, before)))
    }
}

#[test]
fn a_device_is_the_same_by_its_number_and_unchanged_only_with_all_its_marks() {
    let device = |number: &str, marks: &[&str]| Identity::Device {
        number: number.into(),
        marks: marks.iter().map(|m| (*m).to_owned()).collect(),
    };
    let file = |inode| Identity::File { device: "8:1".into(), inode };
    assert!(device("7:0", &["sequence 3"]).is_same(&device("7:0", &[])));
    assert!(!device("7:0", &[]).is_same(&device("7:1", &[])) && !file(7).is_same(&device("8:1", &[])));
    assert!(file(7).is_same(&file(7)) && !file(7).is_same(&file(8)));
    assert_eq!(file(7).change_from(&file(7)), None);
    assert_eq!(file(8).change_from(&file(7)).as_deref(), Some("it was inode 7 of 8:1 and is inode 8 of 8:1"));
    let bound_again =
        device("7:0", &["serial A", "sequence 4"]).change_from(&device("7:0", &["serial A", "sequence 3"]));
    assert_eq!(bound_again.as_deref(), Some("it was sequence 3 and is sequence 4"));
    let gone = device("7:0", &[]).change_from(&device("7:0", &["serial A"]));
    assert_eq!(gone.as_deref(), Some("it was serial A and is device 7:0"));
}
