//! Facts of a target that decide which cells can be measured there.
//!
//! For: looking at every named target, each once. Not for: what a cell makes of them.

use crate::failure::Failure;
use crate::plan::{span, target};
use crate::request::Request;
use machine::root::Root;
use model::name;
use model::plan::Role;
use std::path::PathBuf;

/// Where it is measured, as far as cells depend on it.
pub(super) struct TargetFacts {
    pub(super) role: Role,
    pub(super) path: PathBuf,
    /// Bytes that may be touched.
    pub(super) bytes: u64,
    /// Alignment of direct I/O; `None` where there is none.
    pub(super) align: Option<u32>,
    /// Whether direct I/O goes past the page cache, as far as anybody says.
    pub(super) direct: bool,
}

/// Every named target, each once.
pub(super) fn target_facts(request: &Request, root: &Root) -> Result<Vec<TargetFacts>, Failure> {
    let here = [PathBuf::from(".")];
    let named = if request.targets.is_empty() { &here[..] } else { &request.targets };
    let mut all: Vec<TargetFacts> = Vec::new();
    for said in named {
        let path = said.canonicalize().map_err(|e| target::unreachable_path(said, &e))?;
        if all.iter().any(|known| known.path == path) {
            return Err(Failure::Usage(format!(
                "TARGET {} is there twice; name each target once",
                name::shown(said)
            )));
        }
        let (found, place) = target::inspect_target(root, said, &path)?;
        let direct = place.without_direct().is_none();
        all.push(TargetFacts {
            role: found.role,
            bytes: found.bytes,
            align: span::whole_alignment(&place),
            direct,
            path,
        });
    }
    Ok(all)
}
