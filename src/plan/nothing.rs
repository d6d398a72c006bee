//! What an engine has for a target that touches none.
//!
//! For: refusing flags that would change nothing there. Not for: targets that there are ([`super::target`]).

use super::origins::Origins;
use super::stream::Draft;
use super::target::{MADE_BYTES, Targets};
use crate::failure::Failure;
use model::plan::{MadeFor, Role, Target};
use model::units::show_bytes;
use std::path::PathBuf;

impl Targets<'_> {
    /// A flag that would change nothing is a slip: it must not be taken for one that did.
    pub(super) fn touch_nothing(
        &mut self,
        draft: &Draft,
        paths: &[PathBuf],
        origins: &mut Origins,
    ) -> Result<(), Failure> {
        let idle = |flag: &str| {
            Err(Failure::Usage(format!(
                "{flag} changes nothing here: the engine {} touches no target; leave it out",
                draft.engine.name
            )))
        };
        if !paths.is_empty() {
            return idle("TARGET");
        }
        if draft.cache_said {
            return idle("--cache");
        }
        if draft.create.is_some() {
            return idle("--create");
        }
        let bytes = origins.choose("--size", draft.size, MADE_BYTES, |b| show_bytes(*b));
        let path = format!("nothing: engine {}", draft.engine.name);
        let end = bytes.saturating_add(draft.stream.access.offset_bytes);
        let most = self.nothing.as_ref().map_or(end, |t| t.bytes.max(end));
        self.nothing = Some(Target {
            path,
            role: Role::None,
            bytes: most,
            block_bytes: 1,
            writable: false,
            identity: None,
            unseen_users: false,
            only_by_mark: false,
            other_names: Vec::new(),
            create: None,
            made_for: MadeFor::Host,
            common: None,
        });
        Ok(())
    }
}
