//! Supplies: the contents of files that streams write, and what written data are like.
//!
//! For: reading such files once, before anything is measured. Not for: making data (crate `model`) nor targets.

use crate::failure::Failure;
use crate::input;
use model::job::{Content, Data, Stream};
use model::payload::{self, Maker};
use model::plan::Plan;
use model::record::Written;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// Most that is read of such a file: far beyond any compressor's window, and small beside memory.
const MAX_BYTES: u64 = 256 << 20;

/// Contents of files by the paths of the plan.
#[derive(Default)]
pub(super) struct Supplies {
    files: BTreeMap<String, Arc<[u8]>>,
    measured: Vec<(Data, Written)>,
}

impl Supplies {
    /// Reads all files that the plan names.
    ///
    /// # Errors
    /// A file that cannot be read or is empty, by its name.
    pub(super) fn load(plan: &Plan) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        for stream in plan.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams) {
            if let Data::File(path) = &stream.data
                && !files.contains_key(path)
            {
                files.insert(path.clone(), read(path)?);
            }
        }
        Ok(Self { files, measured: Vec::new() })
    }

    /// What makes the data of a stream; no other worker of the session may have this seed.
    pub(super) fn maker(&self, data: &Data, seed: u64) -> Result<Maker, Failure> {
        Maker::new(data, self.file(data), seed).map_err(Failure::Usage)
    }

    /// What the data of a stream are like, where it moves any.
    pub(super) fn written(&mut self, stream: &Stream, seed: u64) -> Option<Written> {
        if stream.moves_no_data() {
            return None;
        }
        match stream.verify.as_ref().map(|verify| &verify.content) {
            // The same bytes over and over, as those of a file.
            Some(Content::Pattern { bytes, .. }) => {
                let over_and_over = Data::File(String::new());
                payload::measure(&over_and_over, Some(bytes.as_slice().into()), seed).ok()
            }
            _ => self.measured(&stream.data, seed),
        }
    }

    /// What data are like: measured once for each kind.
    pub(super) fn measured(&mut self, data: &Data, seed: u64) -> Option<Written> {
        if let Some((_, known)) = self.measured.iter().find(|(d, _)| d == data) {
            return Some(*known);
        }
        let written = payload::measure(data, self.file(data), seed).ok()?;
        self.measured.push((data.clone(), written));
        Some(written)
    }

    fn file(&self, data: &Data) -> Option<Arc<[u8]>> {
        if let Data::File(path) = data { self.files.get(path).cloned() } else { None }
    }
}

fn read(path: &str) -> Result<Arc<[u8]>, Failure> {
    let fail = |e: &dyn std::fmt::Display| {
        Failure::Usage(format!("--data {path}: {e}; name a file that can be read"))
    };
    let mut bytes = Vec::new();
    input::open(path.as_ref())
        .and_then(|f| f.take(MAX_BYTES).read_to_end(&mut bytes))
        .map_err(|e| fail(&e))?;
    if bytes.is_empty() { Err(fail(&"it is empty")) } else { Ok(bytes.into()) }
}
