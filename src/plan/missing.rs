//! Targets that are not there yet: files that are made before the first run, for one stream or for several.
//!
//! For: one target for each, whoever names it. Not for: making it (crate `machine`), nor what is there ([`super::target`]).

use super::origins::Origins;
use super::span::{check_size, direct_alignment};
use super::stream::Draft;
use super::target::{MADE_BYTES, Targets, unreachable_path};
use super::{kept, shown};
use crate::failure::Failure;
use model::job::{Create, Filling};
use model::name;
use model::plan::{MadeFor, Role, Target};
use std::path::Path;

impl Targets<'_> {
    /// The index of a file that is not there yet, and is made for another stream.
    pub(super) fn to_be_made(&self, said: &Path) -> Option<usize> {
        let folder = said.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let path = folder.canonicalize().ok()?.join(said.file_name()?);
        self.found.iter().position(|(t, _)| t.create.is_some() && name::path(&t.path) == path)
    }

    /// A target that is made for another stream is this one's too.
    pub(super) fn shares(&mut self, index: usize, draft: &Draft) -> usize {
        if let Some((target, place)) = self.found.get_mut(index) {
            target.writable |= draft.stream.changes_targets();
            if draft.stream.cache.is_direct() {
                target.block_bytes = target.block_bytes.max(direct_alignment(place));
            }
        }
        index
    }

    /// The index of a file that is not there yet, and is made before the first run.
    pub(super) fn missing(
        &mut self,
        said: &Path,
        draft: &Draft,
        from: &str,
        origins: &mut Origins,
    ) -> Result<usize, Failure> {
        let create =
            draft.create.unwrap_or(Create { bytes: MADE_BYTES, filling: Filling::Data, unlink: false });
        let folder = said.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = said.file_name().ok_or_else(|| {
            Failure::Usage(format!("{} has no name for a file; type one", name::shown(said)))
        })?;
        let folder = folder.canonicalize().map_err(|e| unreachable_path(folder, &e))?;
        machine::file_systems::refuse_synthetic_at(said, &folder)?;
        let path = folder.join(name);
        let index = if let Some(known) = self.to_be_made(said) {
            known
        } else {
            let place = machine::resolve::resolve(self.root, &folder)?;
            let target = Target {
                path: shown(&path).into_owned(),
                role: Role::File,
                bytes: 0,
                block_bytes: 1,
                writable: false,
                identity: None,
                unseen_users: false,
                only_by_mark: false,
                other_names: Vec::new(),
                create: None,
                made_for: MadeFor::Host,
                common: None,
            };
            self.found.push((target, place));
            origins.fixed("TARGET", &format!("{}, which is made and kept", shown(&path)), from);
            self.found.len() - 1
        };
        let (target, _) = &mut self.found[index];
        kept::make_again(target, create);
        check_size(said, target, draft.size, draft.stream.access.offset_bytes)?;
        kept::fits_beside(&folder, target.bytes)?;
        Ok(self.shares(index, draft))
    }
}
