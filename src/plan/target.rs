//! Targets: the files and devices of the streams, each once.
//!
//! 1. Finds each path's place and identity. Links, bind mounts and device aliases lead to the same target. Workload files
//!    typed as targets are refused.
//! 2. Chooses sizes of files that will be made.
//! 3. Guards writes: the first of two checks. The second one is made when the target is opened. Both use `machine::safety`.
//! 4. Assigns files to workers and hosts, and checks that spans and block sizes fit the target's size and alignment.
//!
//! Only `crate::fleet` knows the number of hosts. Crate `machine` makes the files.

use super::{DraftJob, DraftPhase};
use crate::capture::capture_file::is_capture;
use crate::failure::Failure;
use crate::files::Small;
use crate::plan::origins::Origins;
use crate::plan::{Draft, replay, stream};
use crate::request::Request;
use crate::{capture, files};
use dialect::{MAX_FILE_BYTES, Tool, detect_tool, language_of_path};
use engine::source::own_blocks;
use machine::error::{MachineError, NotNamed};
use machine::root::Root;
use machine::{file_systems, test_file};
use model::job::{
    Clones, Create, FALLOCATE, FTRUNCATE, Filling, GROW, Job, Line, NEW, Order, Pattern, Shared, Sharing,
    Sizes, Stream, TaskNumber,
};
use model::machine::{Identity, Layer, Place};
use model::name;
use model::plan::{Common, MadeFor, Role, Target};
use model::record::{MAGIC, is_fio_result};
use model::units::{GIB, MIB, show_bytes};
use rustix::io::Errno;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The targets of a plan in progress.
pub(super) struct Targets<'a> {
    request: &'a Request,
    root: &'a Root,
    known: Vec<PlacedTarget>,
    /// The target of streams that use no file or device; `None` without such streams. It comes
    /// after all others, since it has no place.
    no_target: Option<Target>,
    /// Whether a file or device of the user is overwritten.
    is_overwriting: bool,
    /// The targets that the job would overwrite, but that `--destroy` does not name. The job is refused for all of them at once.
    not_named: Vec<RefusedTarget>,
}

/// A target that the job would overwrite, but that `--destroy` does not name.
struct RefusedTarget {
    /// Index in `Targets::known`.
    index: usize,
    /// Whether the job itself writes the target; false if only its preconditioning does.
    is_written: bool,
    why: NotNamed,
}

/// Maximum number of targets that a refusal lists. If there are more, it explains how to write the options.
const MAX_LISTED: usize = 20;
/// What to type for more than [`MAX_LISTED`] targets.
const NAME_EACH: &str = "--destroy=NAME for each one; NAME is one file or device, not a directory or a pattern. \
                         For all files in DIR, in bash: set `files=(DIR/*)` and add `\"${files[@]/#/--destroy=}\"`";

/// A target and its place.
pub(super) struct PlacedTarget {
    pub(super) target: Target,
    pub(super) place: Place,
}

/// Placeholder for the index of `no_target`, until all other targets are known.
const NO_TARGET: usize = usize::MAX;

impl<'a> Targets<'a> {
    pub(super) fn new(request: &'a Request, root: &'a Root) -> Self {
        let (known, not_named) = (Vec::new(), Vec::new());
        Self { request, root, known, no_target: None, is_overwriting: false, not_named }
    }

    /// Refuses the job if it would overwrite targets that `--destroy` does not name.
    ///
    /// # Errors
    /// [`Failure::Usage`] that lists these targets, at most [`MAX_LISTED`] of them.
    pub(super) fn refuse_not_named(&self) -> Result<(), Failure> {
        let text = match self.not_named.as_slice() {
            [] => return Ok(()),
            [only] => only.why.message.clone(),
            all => describe_not_named(all),
        };
        let refusal = Failure::Usage(text);
        let is_written = self.not_named.iter().any(|one| one.is_written);
        Err(if is_written { refusal } else { crate::plan::explain_refusal(refusal) })
    }

    /// Gives every stream of a job its targets.
    pub(super) fn assign_targets(&mut self, job: DraftJob, origins: &mut Origins) -> Result<Job, Failure> {
        let mut phases = Vec::new();
        for DraftPhase { mut phase, drafts } in job.phases {
            for draft in drafts {
                phase.streams.push(self.assign_stream_targets(&job.name, &draft, origins)?);
            }
            phases.push(phase);
        }
        Ok(Job { name: job.name, phases })
    }

    fn assign_stream_targets(
        &mut self,
        job: &str,
        draft: &Draft,
        origins: &mut Origins,
    ) -> Result<Stream, Failure> {
        let mut stream = draft.stream.clone();
        if draft.size == Some(0) {
            return Err(Failure::Usage(
                "--size 0: there is nothing to measure; type a size such as 1g, or leave --size out".into(),
            ));
        }
        let own: Vec<PathBuf> = draft.spec.target.iter().map(|p| name::path(p)).collect();
        let paths = if own.is_empty() { self.request.targets.clone() } else { own };
        if !draft.engine.touches_targets() {
            self.use_no_target(draft, &paths, origins)?;
            stream.targets = vec![NO_TARGET];
            stream.access.span_bytes = draft.size.unwrap_or(MADE_BYTES);
            stream.limit.bytes = stream::limit_bytes(draft.spec.passes, &stream, &[stream.access.span_bytes]);
            return Ok(stream);
        }
        let from = if paths.is_empty() { "default: the current directory" } else { "named" };
        if paths.is_empty() {
            refuse_destroy_without_target(self.request)?;
        }
        let paths = if paths.is_empty() { vec![PathBuf::from(".")] } else { paths };
        let mut sized_draft = draft.clone();
        for (at, typed_path) in paths.iter().enumerate() {
            if let (Some(create), Some(bytes)) =
                (&mut sized_draft.spec.create, draft.spec.create_bytes.get(at))
            {
                create.bytes = *bytes;
            }
            for file in file_owners(draft) {
                let target = self.find_or_add(typed_path, file, &sized_draft, from, origins)?;
                // A duplicate would double the operations in flight and the bytes.
                if !stream.targets.contains(&target) {
                    stream.targets.push(target);
                }
            }
        }
        assign_files(&mut stream, draft, &mut self.known)?;
        check_weights(&stream, paths.len())?;
        let target_at = |at: &usize| Some(&self.known.get(*at)?.target);
        let targets: Vec<&Target> = stream.targets.iter().filter_map(target_at).collect();
        let compares =
            stream.access.reads() && stream.verify.as_ref().is_some_and(|v| v.checks && v.back.is_none());
        if compares && targets.iter().any(|t| t.role == Role::Made) {
            return Err(Failure::Usage(
                "--verify compares reads with earlier writes of --verify, and a new test file has none; name a file that was written with --verify, or type --rw randwrite"
                    .into(),
            ));
        }
        stream.access.span_bytes = draft.size.unwrap_or(u64::MAX);
        if stream.replay.is_some() {
            replay::place_on_target(&mut stream, &targets, self.request.job.typed.is_some())?;
        } else {
            targets.iter().try_for_each(|target| check_span(job, &stream, target))?;
        }
        if let [target] = targets.as_slice() {
            let left = target.bytes.saturating_sub(stream.access.offset_bytes);
            stream.access.span_bytes = stream.access.span_bytes.min(left);
        }
        if stream.clones == Some(Clones::Own) && !targets.len().is_multiple_of(stream.workers as usize) {
            return Err(Failure::Usage(format!(
                "--clones own: {} different targets cannot be divided equally among {} workers; name an equal number for each worker",
                targets.len(),
                stream.workers
            )));
        }
        let spans: Vec<u64> = targets
            .iter()
            .map(|t| t.bytes.saturating_sub(stream.access.offset_bytes).min(stream.access.span_bytes))
            .collect();
        match (stream.shared, spans.first()) {
            (Some(shared), Some(span)) => limit_to_part(job, &mut stream, shared, *span)?,
            _ => stream.limit.bytes = stream::limit_bytes(draft.spec.passes, &stream, &spans),
        }
        Ok(stream)
    }

    /// Returns the index of a known or new target, and completes the target for one more stream. `from` is the origin of its path.
    fn find_or_add(
        &mut self,
        typed_path: &Path,
        file: MadeFor,
        draft: &Draft,
        from: &str,
        origins: &mut Origins,
    ) -> Result<usize, Failure> {
        let path = match typed_path.canonicalize() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                if let Some(create) = draft.spec.create {
                    return self.add_missing(typed_path, create, draft, from, origins);
                }
                if let Some(index) = self.find_unmade(typed_path) {
                    return Ok(self.use_target(index, draft));
                }
                let may_create = self.request.command.get(1).is_some_and(|command| command == "run");
                return Err(explain_missing(self.root, typed_path, may_create));
            }
            path => path.map_err(|e| explain_unreachable(typed_path, &e))?,
        };
        let index = if let Some(known) = self.find_known(typed_path, &path, file)? {
            known
        } else {
            // A file that will be made may already exist, empty, as created by mkstemp.
            let inspect = if draft.spec.create.is_some() { inspect_path } else { inspect_target };
            let PlacedTarget { target, place } = inspect(self.root, typed_path, &path)?;
            if target.role == Role::File {
                refuse_like_job_file(self.request, typed_path, &path)?;
            }
            let target = Target { made_for: file.for_role(target.role), ..target };
            self.known.push(PlacedTarget { target, place });
            origins.record("TARGET", &name::text(&path), from);
            self.known.len() - 1
        };
        let is_preconditioned = self.request.job.precondition == Some(true);
        let PlacedTarget { target, place } = &mut self.known[index];
        let offset = draft.stream.access.offset_bytes;
        let writes = changes_target(draft, typed_path, target)?;
        if target.role == Role::Made {
            target.bytes = target.bytes.max(bytes_to_make(draft, default_file_bytes(draft), &path, origins)?);
        } else if let Some(create) =
            draft.spec.create.filter(|_| target.role == Role::File && machine::mark::may_be_made(&path))
        {
            // A file that fathom made and kept, and an empty file, may be made again.
            make_again(target, create);
            check_size(typed_path, target, draft.size, offset)?;
            check_free_space(&path, target.bytes)?;
            origins.choose_from("--size", draft.size, create.bytes, "the file to make", |b| show_bytes(*b));
            if writes {
                let unseen = is_named(&self.request.unseen_users, &path);
                machine::safety::may_write_file(
                    self.root,
                    typed_path,
                    &path,
                    Some(&name::text(&path)),
                    unseen,
                )?;
            }
            inspect_opened(self.root, typed_path, &path, target, place)?;
        } else {
            check_size(typed_path, target, draft.size, offset)?;
            origins.choose_from("--size", draft.size, target.bytes, "all of the target", |b| show_bytes(*b));
            if draft.stream.renews_file() {
                return Err(Failure::Usage(format!(
                    "--engine {}: its options {NEW}, {FALLOCATE} and {GROW} remove all content of {}; name a directory, in which fathom makes a test file",
                    draft.engine.name,
                    name::shown(typed_path)
                )));
            }
            let is_whole = offset == 0 && draft.size.is_none_or(|bytes| bytes >= target.bytes);
            if draft.engine.name == FTRUNCATE && !is_whole {
                return Err(Failure::Usage(format!(
                    "--engine {FTRUNCATE} sets the length of {}, so it also removes the bytes after the region of --offset and --size; leave these out, or name a directory, in which fathom makes a test file",
                    name::shown(typed_path)
                )));
            }
            if writes || is_preconditioned {
                match guard_writing(self.request, self.root, typed_path, &path, target.role) {
                    Ok(()) => {
                        // Unless the user named the file, only fathom's mark on it permits the write.
                        let named: Vec<PathBuf> =
                            self.request.destroy.iter().map(|typed| name::path(typed)).collect();
                        target.only_by_mark |=
                            !is_named(&named, &path) && is_of_earlier_call(self.request, &path, target.role);
                        self.is_overwriting = true;
                        inspect_opened(self.root, typed_path, &path, target, place)?;
                    }
                    Err(why) => note_not_named(&mut self.not_named, index, writes, why).map_err(|why| {
                        if writes { why.into() } else { crate::plan::explain_refusal(why.into()) }
                    })?,
                }
            }
        }
        target.writable |= is_preconditioned;
        Ok(self.use_target(index, draft))
    }

    /// Finds a known target under any of its names. Returns its index, or `None` if the target is new. Links and bind mounts lead to one
    /// file, and two device nodes may be one device. A directory is one target for each owner of a test file (`file`). Adds a new name to
    /// the target's `other_names`.
    fn find_known(
        &mut self,
        typed_path: &Path,
        path: &Path,
        file: MadeFor,
    ) -> Result<Option<usize>, Failure> {
        let what = machine::identity::from_path(path).map_err(|e| explain_unreachable(typed_path, &e))?;
        let all = file_systems::identities(self.root, path);
        // A path through an overlay leads to another identity than the path to the same file below
        // it.
        let has_same_storage = |t: &Target| {
            t.role == Role::File && {
                let identities = file_systems::identities(self.root, &name::path(&t.path));
                identities.iter().any(|one| all.iter().any(|other| one.is_same(other)))
            }
        };
        let is_it = |t: &Target| {
            let is_same_target = t.identity.as_ref().is_some_and(|i| i.is_same(&what)) || has_same_storage(t);
            is_same_target && t.made_for == file.for_role(t.role)
        };
        let known = self.known.iter().position(|known| is_it(&known.target));
        if let Some(PlacedTarget { target, .. }) = known.and_then(|at| self.known.get_mut(at)) {
            let typed = name::text(typed_path);
            if name::path(&target.path) != path && !target.other_names.contains(&typed) {
                target.other_names.push(typed);
            }
        }
        Ok(known)
    }

    /// Returns the index in this plan of a target of an earlier session that `stream` uses. `then` is the target's place in that session;
    /// `None` if it is unknown.
    pub(super) fn find_or_add_earlier(
        &mut self,
        was: &Target,
        then: Option<&Place>,
        stream: &Stream,
    ) -> Result<usize, Failure> {
        if was.role == Role::None {
            let bytes = self.no_target.as_ref().map_or(was.bytes, |t| t.bytes.max(was.bytes));
            self.no_target = Some(Target { bytes, ..was.clone() });
            return Ok(NO_TARGET);
        }
        let path = &name::path(&was.path);
        if let Ok(false) = path.try_exists() {
            return Err(Failure::Usage(format!(
                "its target {} no longer exists; restore it, or name a session whose target exists (`fathom list`)",
                was.path
            )));
        }
        let PlacedTarget { target: now, place } = inspect_target(self.root, path, path)?;
        if now.role != was.role {
            return Err(Failure::Usage(format!(
                "{} is not the target of that session: it is of another kind (file, directory or device)",
                was.path
            )));
        }
        if now.role != Role::Made && now.bytes != was.bytes {
            return Err(Failure::Usage(format!(
                "{} has {}, but had {} in that session",
                was.path,
                show_bytes(now.bytes),
                show_bytes(was.bytes)
            )));
        }
        if let Some(why) = then.and_then(|then| describe_change(then, &place)) {
            return Err(Failure::Usage(format!("{} is not where it was in that session: {why}", was.path)));
        }
        let index = self.find_known(path, path, was.made_for)?.unwrap_or_else(|| {
            self.known.push(PlacedTarget { target: Target { made_for: was.made_for, ..now }, place });
            self.known.len() - 1
        });
        let writes = stream.changes_targets();
        let PlacedTarget { target, place } = &mut self.known[index];
        if target.role == Role::Made {
            target.bytes = target.bytes.max(was.bytes);
            machine::test_file::check_room(path, target.bytes)?;
        } else if writes {
            match guard_writing(self.request, self.root, path, path, target.role) {
                Ok(()) => {
                    self.is_overwriting = true;
                    inspect_opened(self.root, path, path, target, place)?;
                }
                Err(why) => note_not_named(&mut self.not_named, index, true, why)?,
            }
        }
        target.writable |= writes;
        target.block_bytes = target.block_bytes.max(was.block_bytes);
        Ok(index)
    }

    /// Finds a missing file that is made for another stream. Returns its index, or `None` if no
    /// stream makes this file.
    fn find_unmade(&self, typed_path: &Path) -> Option<usize> {
        let folder = folder_of(typed_path);
        let path = folder.canonicalize().ok()?.join(typed_path.file_name()?);
        self.known.iter().position(|PlacedTarget { target, .. }| {
            target.create.is_some() && name::path(&target.path) == path
        })
    }

    /// Lets a stream use a known target. Returns the target's index.
    fn use_target(&mut self, index: usize, draft: &Draft) -> usize {
        if let Some(PlacedTarget { target, place }) = self.known.get_mut(index) {
            target.writable |= draft.stream.changes_targets();
            if draft.stream.cache.is_direct() {
                target.block_bytes = target.block_bytes.max(direct_alignment(place));
            }
        }
        index
    }

    /// Returns the index of a missing file that is made before the first run.
    fn add_missing(
        &mut self,
        typed_path: &Path,
        create: Create,
        draft: &Draft,
        from: &str,
        origins: &mut Origins,
    ) -> Result<usize, Failure> {
        let folder = folder_of(typed_path);
        let name = typed_path.file_name().ok_or_else(|| {
            Failure::Usage(format!(
                "{} does not end in a file name; type a path that does",
                name::shown(typed_path)
            ))
        })?;
        let folder = folder.canonicalize().map_err(|e| explain_unreachable(folder, &e))?;
        machine::file_systems::refuse_synthetic_at(typed_path, &folder)?;
        let path = folder.join(name);
        let index = if let Some(known) = self.find_unmade(typed_path) {
            known
        } else {
            let place = machine::resolve::resolve(self.root, &folder)?;
            let path = name::text(&path);
            origins.record("TARGET", &format!("{path}, which is created and kept"), from);
            self.known.push(PlacedTarget { target: Target::new(path, Role::File, 0), place });
            self.known.len() - 1
        };
        let PlacedTarget { target, .. } = &mut self.known[index];
        make_again(target, create);
        check_size(typed_path, target, draft.size, draft.stream.access.offset_bytes)?;
        check_free_space(&folder, target.bytes)?;
        Ok(self.use_target(index, draft))
    }

    /// Refuses flags without effect, so that they do not appear to work. Then records the target `no_target` for the stream.
    fn use_no_target(
        &mut self,
        draft: &Draft,
        paths: &[PathBuf],
        origins: &mut Origins,
    ) -> Result<(), Failure> {
        let refuse_flag = |flag: &str| {
            Err(Failure::Usage(format!(
                "{flag} has no effect: the engine {} uses no target; leave {flag} out",
                draft.engine.name
            )))
        };
        if !paths.is_empty() {
            return refuse_flag("TARGET");
        }
        if draft.spec.cache.is_some() {
            return refuse_flag("--cache");
        }
        if draft.spec.create.is_some() {
            return refuse_flag("--create");
        }
        let bytes = origins.choose("--size", draft.size, MADE_BYTES, |b| show_bytes(*b));
        let path = format!("nothing: engine {}", draft.engine.name);
        let end = bytes.saturating_add(draft.stream.access.offset_bytes);
        let most = self.no_target.as_ref().map_or(end, |t| t.bytes.max(end));
        self.no_target = Some(Target::new(path, Role::None, most));
        Ok(())
    }

    /// Returns all targets in the order of their indices, and the places of the targets that have one. With `has_separate_jobs` (each job
    /// is prepared on its own), all streams that truncate their file share one additional file. The files of other streams remain
    /// unchanged.
    pub(super) fn finish(
        self,
        jobs: &mut [Job],
        has_separate_jobs: bool,
    ) -> Result<(Vec<Target>, Vec<Place>), Failure> {
        self.refuse_not_named()?;
        // A command line of another tool may have permission for targets that it does not use, because an environment variable may permit
        // them for many calls.
        let is_foreign = self.request.is_of_other_tool();
        if !self.request.destroy.is_empty() && !self.is_overwriting && !is_foreign {
            return Err(Failure::Usage(
                "--destroy has no effect: no file or device of yours is overwritten; leave --destroy out"
                    .into(),
            ));
        }
        refuse_storage_of_other_targets(&self.known)?;
        let (mut targets, mut places): (Vec<Target>, Vec<Place>) =
            self.known.into_iter().map(|found| (found.target, found.place)).unzip();
        if has_separate_jobs {
            give_new_files(jobs, &mut targets, &mut places);
        }
        let last = targets.len();
        targets.extend(self.no_target);
        let streams = jobs.iter_mut().flat_map(Job::streams_mut);
        for target in streams.flat_map(|s| &mut s.targets).filter(|t| **t == NO_TARGET) {
            *target = last;
        }
        Ok((targets, places))
    }
}

/// Marks the targets that `--unseen-users` names.
///
/// # Errors
/// [`Failure::Usage`] if the flag names a path that this job does not write.
pub(super) fn mark_unseen_users(
    request: &Request,
    targets: &mut [Target],
    origins: &mut Origins,
) -> Result<(), Failure> {
    let is_written = |t: &Target| t.writable && matches!(t.role, Role::File | Role::Device);
    for target in targets.iter_mut().filter(|t| is_written(t)) {
        target.unseen_users = is_named(&request.unseen_users, &name::path(&target.path));
    }
    let marked = || targets.iter().filter(|t| t.unseen_users).map(|t| name::path(&t.path));
    // For other tools' commands, the environment variable may be set once for many calls.
    let is_foreign = request.is_of_other_tool();
    let needless = |path: &&PathBuf| !marked().any(|target| is_named(std::slice::from_ref(path), &target));
    if let Some(path) = request.unseen_users.iter().find(needless).filter(|_| !is_foreign) {
        return Err(Failure::Usage(format!(
            "--unseen-users {} has no effect: this job does not write to that path; leave --unseen-users out",
            name::shown(path)
        )));
    }
    let all: Vec<String> = marked().map(|path| name::shown(&path).clone()).collect();
    origins.note("--unseen-users", (!all.is_empty()).then_some(all), |all| all.join(", "));
    Ok(())
}

/// Whether one of the paths in `all` leads to the same file or device as `path`.
fn is_named(all: &[PathBuf], path: &Path) -> bool {
    all.iter().any(|named| named == path || machine::safety::is_same(named, path))
}

/// Refuses weights unless there is one per target. `typed_targets` also counts targets that are named twice.
fn check_weights(stream: &Stream, typed_targets: usize) -> Result<(), Failure> {
    match &stream.sharing {
        Sharing::Weighted(weights) if weights.len() != stream.targets.len() => {
            let once = if typed_targets > stream.targets.len() {
                " (a target that is named twice counts once)"
            } else {
                ""
            };
            Err(Failure::Usage(format!(
                "--sharing needs one weight for each target; weights: {}, targets: {}{once}",
                weights.len(),
                stream.targets.len()
            )))
        }
        _ => Ok(()),
    }
}

/// Whether a stream changes a target. Refuses a device if the change needs a file.
fn changes_target(draft: &Draft, typed_path: &Path, target: &Target) -> Result<bool, Failure> {
    if !draft.stream.moves_no_data() || target.role != Role::Device {
        return Ok(draft.stream.changes_targets());
    }
    Err(Failure::Usage(format!(
        "--engine {}: it changes the lengths and blocks of files, and {} is a device; name a file or a directory",
        draft.engine.name,
        name::shown(typed_path)
    )))
}

/// Facts of a target that the jobs of a sweep or a profile depend on.
pub(super) struct TargetFacts {
    pub(super) role: Role,
    pub(super) path: PathBuf,
    /// Usable bytes; 0 for a file that will be made.
    pub(super) bytes: u64,
    /// Alignment of direct I/O; `None` if unsupported.
    pub(super) align: Option<u32>,
    /// Whether direct I/O bypasses the page cache, as far as known.
    pub(super) is_direct: bool,
    /// The kind of the target's file system if another machine or a program (FUSE) has the data;
    /// `None` for a local file system.
    pub(super) remote: Option<String>,
}

impl TargetFacts {
    /// Usable bytes; `None` for a file that will be made.
    pub(super) fn known_bytes(&self) -> Option<u64> {
        (self.role != Role::Made).then_some(self.bytes)
    }
}

/// Refuses `--destroy NAME` if neither the request nor a stream names a target. The current directory would be measured, and the
/// user probably means NAME.
pub(super) fn refuse_destroy_without_target(request: &Request) -> Result<(), Failure> {
    let mut streams = request.job.phases.iter().flat_map(|phase| &phase.streams);
    if request.destroy.is_empty()
        || !request.targets.is_empty()
        || streams.any(|stream| !stream.target.is_empty())
        || request.against.is_some()
        || request.is_of_other_tool()
    {
        return Ok(());
    }
    let typed = request.command.iter().skip(1).chain(&request.destroy);
    let line: Vec<String> = std::iter::once("fathom").map(str::to_owned).chain(typed.cloned()).collect();
    Err(Failure::Usage(format!(
        "no target given: --destroy only permits overwriting; type {}",
        name::line(&line)
    )))
}

/// Inspects every named target, or the current directory if none is named. Refuses a target that is named twice.
pub(super) fn target_facts(request: &Request, root: &Root) -> Result<Vec<TargetFacts>, Failure> {
    refuse_destroy_without_target(request)?;
    let here = [PathBuf::from(".")];
    let named = if request.targets.is_empty() { &here[..] } else { &request.targets };
    let mut all: Vec<TargetFacts> = Vec::new();
    for typed_path in named {
        let path = typed_path.canonicalize().map_err(|e| explain_unreachable(typed_path, &e))?;
        if all.iter().any(|known| known.path == path) {
            return Err(Failure::Usage(format!(
                "TARGET {} is named twice; name each target once",
                name::shown(typed_path)
            )));
        }
        let PlacedTarget { target, place } = inspect_target(root, typed_path, &path)?;
        let is_direct = place.without_direct().is_none();
        all.push(TargetFacts {
            role: target.role,
            bytes: target.bytes,
            align: supported_alignment(&place),
            is_direct,
            remote: place.file_system.map(|f| f.kind).filter(|kind| analysis::is_remote(kind)),
            path,
        });
    }
    Ok(all)
}

/// Inspects a path; refuses an empty file.
pub(super) fn inspect_target(root: &Root, typed_path: &Path, path: &Path) -> Result<PlacedTarget, Failure> {
    let found = inspect_path(root, typed_path, path)?;
    if found.target.bytes > 0 || found.target.role != Role::File {
        return Ok(found);
    }
    Err(Failure::Usage(format!(
        "{} is empty, so there is nothing to read or overwrite; name its directory, in which fathom makes a test file",
        name::shown(typed_path)
    )))
}

fn inspect_path(root: &Root, typed_path: &Path, path: &Path) -> Result<PlacedTarget, Failure> {
    let facts = std::fs::metadata(path).map_err(|e| explain_unreachable(typed_path, &e))?;
    let kind = facts.file_type();
    if kind.is_dir() || kind.is_file() {
        machine::file_systems::refuse_synthetic_at(typed_path, path)?;
    }
    let place = machine::resolve::resolve(root, path)?;
    let (role, bytes) = if kind.is_dir() {
        machine::file_systems::refuse_unwritable(typed_path, path)?;
        (Role::Made, 0)
    } else if kind.is_file() {
        (Role::File, facts.len())
    } else if kind.is_block_device() {
        let bytes_in_sysfs = place.tops.first().and_then(|t| place.layers.get(*t)).map_or(0, |l| l.bytes);
        let end = || std::fs::File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0)));
        (Role::Device, if bytes_in_sysfs > 0 { bytes_in_sysfs } else { end().unwrap_or(0) })
    } else {
        return Err(Failure::Usage(format!(
            "{} is neither a directory, a file nor a block device; type a directory such as ., a file, or a block device of `fathom devices`",
            name::shown(typed_path)
        )));
    };
    if bytes == 0 && role == Role::Device {
        return Err(Failure::Refused(format!(
            "{} shows no capacity: perhaps it is not set up, or has no medium; `fathom devices` lists the disks",
            name::shown(typed_path)
        )));
    }
    if role == Role::File {
        refuse_workload_file(typed_path)?;
    }
    let target = Target {
        writable: role == Role::Made,
        identity: Some(machine::stack::with_identifiers(root, machine::identity::from_metadata(&facts))),
        ..Target::new(name::text(path), role, bytes)
    };
    Ok(PlacedTarget { target, place })
}

/// Reads identity and place of a target again after it was opened for writing. An overlay then copies the file to its
/// upper directory, with another inode and possibly on another device.
fn inspect_opened(
    root: &Root,
    typed_path: &Path,
    path: &Path,
    target: &mut Target,
    place: &mut Place,
) -> Result<(), Failure> {
    let what = machine::identity::from_path(path).map_err(|e| explain_unreachable(typed_path, &e))?;
    target.identity = Some(machine::stack::with_identifiers(root, what));
    *place = machine::resolve::resolve(root, path)?;
    Ok(())
}

/// Refuses to write a device that stores another target: a partition, a volume or a file on it.
fn refuse_storage_of_other_targets(found: &[PlacedTarget]) -> Result<(), Failure> {
    let number = |t: &Target| match &t.identity {
        Some(Identity::Device { number, .. }) => Some(number.clone()),
        _ => None,
    };
    for disk in found.iter().map(|found| &found.target).filter(|target| target.writable) {
        let Some(number) = number(disk) else { continue };
        let is_on_disk = |other: &&PlacedTarget| {
            other.target.path != disk.path && other.place.layers.iter().any(|l| l.number == number)
        };
        if let Some(PlacedTarget { target: other, .. }) = found.iter().find(is_on_disk) {
            return Err(Failure::Usage(format!(
                "{} is stored on {}, so writing to one would change the other; name one of them",
                other.path, disk.path
            )));
        }
    }
    Ok(())
}

/// Describes how a place differs from `then`; `None` if it does not. Compares the kind, and the
/// topmost layers or, if there are none, the source of the file system.
fn describe_change(then: &Place, now: &Place) -> Option<String> {
    let below = |place: &Place| -> Vec<String> {
        let tops = place.tops.iter().filter_map(|t| place.layers.get(*t));
        // A device name may change when the machine starts; a serial number does not.
        let name = |l: &Layer| l.serial.clone().or(l.backing_file.clone()).unwrap_or_else(|| l.name.clone());
        let mut all: Vec<String> = tops.map(|l| format!("{} of {}", name(l), show_bytes(l.bytes))).collect();
        if all.is_empty() {
            all.extend(place.file_system.as_ref().map(|f| f.source.clone()));
        }
        all
    };
    let (was, is) = (below(then), below(now));
    if then.kind() != now.kind() {
        return Some(format!("it was {}, and now it is {}", then.kind(), now.kind()));
    }
    (was != is).then(|| format!("it was on {}, and now it is on {}", was.join(" and "), is.join(" and ")))
}

/// Whether another tool's command line names a file that fathom made in an earlier invocation and
/// that nothing else has written since. Such tools overwrite their own files without asking.
fn is_of_earlier_call(request: &Request, path: &Path, role: Role) -> bool {
    request.is_of_other_tool() && role == Role::File && machine::mark::is_ours(path)
}

/// Notes a target that `--destroy` does not name, once. Returns any other refusal.
fn note_not_named(
    all: &mut Vec<RefusedTarget>,
    index: usize,
    is_written: bool,
    why: MachineError,
) -> Result<(), MachineError> {
    let why = match why {
        MachineError::NotNamed(why) => why,
        other => return Err(other),
    };
    match all.iter_mut().find(|known| known.index == index) {
        Some(known) => known.is_written |= is_written,
        None => all.push(RefusedTarget { index, is_written, why }),
    }
    Ok(())
}

/// Describes several targets that `--destroy` does not name: what to type for all of them, then the first [`MAX_LISTED`] targets.
fn describe_not_named(all: &[RefusedTarget]) -> String {
    let flag = |one: &RefusedTarget| format!("--destroy={}", name::quoted(&one.why.name));
    let listed = all.iter().take(MAX_LISTED).map(|one| format!("\n  {}", one.why.target));
    let (flags, rest) = match all.len().saturating_sub(MAX_LISTED) {
        0 => (all.iter().map(flag).collect::<Vec<_>>().join(" "), String::new()),
        more => (NAME_EACH.to_owned(), format!("\n  and {more} more")),
    };
    format!(
        "writing would overwrite the content of {} targets; if you want that, add {flags}{}{rest}",
        all.len(),
        listed.collect::<String>()
    )
}

/// First check of write permission. The second one is made when the target is opened. Both use `machine::safety`.
pub(super) fn guard_writing(
    request: &Request,
    root: &Root,
    typed_path: &Path,
    path: &Path,
    role: Role,
) -> Result<(), MachineError> {
    let unseen = is_named(&request.unseen_users, path);
    let allowed = |destroy: Option<&str>| match role {
        Role::File => machine::safety::may_write_file(root, typed_path, path, destroy, unseen),
        Role::Device => machine::safety::may_write_device(root, path, destroy, unseen),
        Role::Made | Role::None => Ok(()),
    };
    if is_of_earlier_call(request, path, role) {
        return allowed(Some(&name::text(path)));
    }
    if role == Role::File {
        // Check permission for one name only, because each check searches all mounts and processes for users of the file.
        let names_file = |typed: &&String| is_named(&[name::path(typed)], path);
        let named = request.destroy.iter().find(names_file).or(request.destroy.first());
        return allowed(named.map(String::as_str));
    }
    let mut refusal = None;
    for name in &request.destroy {
        match allowed(Some(name)) {
            Ok(()) => return Ok(()),
            Err(e) => refusal = refusal.or(Some(e)),
        }
    }
    refusal.map_or_else(|| allowed(None), Err)
}

/// The directory of a path; the current directory if the path is only a name.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Extensions of other tools' job files, which users may mistake for job files of fathom.
const NO_JOB_FILES: [&str; 3] = ["yaml", "yml", "json"];

/// Whether a path has one of the extensions [`NO_JOB_FILES`].
fn is_like_job_file(path: &Path) -> bool {
    path.extension().is_some_and(|typed| NO_JOB_FILES.iter().any(|known| typed.eq_ignore_ascii_case(known)))
}

/// Describes where a directory is stored: `vda1 (ext4)`, or `tmpfs` without a device. `None` if this is unknown.
fn describe_storage(root: &Root, folder: &Path) -> Option<String> {
    let place = machine::resolve::resolve(root, &folder.canonicalize().ok()?).ok()?;
    let devices = place.tops.iter().filter_map(|top| Some(place.layers.get(*top)?.name.clone()));
    let devices = devices.collect::<Vec<_>>().join(", ");
    let kind = place.file_system.map(|file_system| file_system.kind)?;
    Some(if devices.is_empty() { kind } else { format!("{devices} ({kind})") })
}

/// Explains a target that does not exist. It may be the mount point of a disk that is not mounted, and then its parent directory is
/// on another disk, so the advice names that disk. With `may_create`, which is set only for `fathom run`, the advice may name
/// `--create`.
fn explain_missing(root: &Root, typed_path: &Path, may_create: bool) -> Failure {
    if typed_path.as_os_str().is_empty() {
        return Failure::Usage(
            "the target has no name; type a directory, such as ., a file or a block device".into(),
        );
    }
    let path = name::shown(typed_path);
    let folder = folder_of(typed_path);
    let missing = folder.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists()).last();
    let is_device = folder.starts_with("/dev") && !folder.starts_with("/dev/shm");
    let dir = name::quoted(&name::shown(folder));
    let parent =
        describe_storage(root, folder).map_or_else(|| dir.clone(), |on| format!("{dir}, which is on {on}"));
    Failure::Usage(match missing {
        _ if may_create && is_like_job_file(typed_path) => {
            format!("{path} does not exist; job files end in .toml: `fathom help job-files` has an example")
        }
        Some(missing) => format!(
            "{path} does not exist: there is no directory {}; `fathom devices` lists the disks and where they are mounted; type the path of \
             an existing directory, file or block device",
            name::shown(missing)
        ),
        None if is_device => {
            format!("{path} does not exist; type the path of a block device: `fathom devices` lists them")
        }
        None if may_create => format!(
            "{path} does not exist; if a disk should be mounted there, mount it first: `fathom devices` lists the disks and where they \
             are mounted; otherwise type --create 1g to make this file and keep it, or a directory, such as {parent}"
        ),
        None => format!(
            "{path} does not exist; if a disk should be mounted there, mount it first: `fathom devices` lists the disks and where they \
             are mounted; otherwise type an existing file or directory, such as {parent}"
        ),
    })
}

pub(super) fn explain_unreachable(typed_path: &Path, error: &std::io::Error) -> Failure {
    let path = name::shown(typed_path);
    match error.kind() {
        std::io::ErrorKind::NotFound => explain_missing(&Root::real(), typed_path, false),
        std::io::ErrorKind::PermissionDenied => Failure::Refused(format!(
            "this user is not allowed to access {path} ({error}); {}",
            sys::error_advice::other_owner_advice()
        )),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Failure::Usage(format!(
            "{path} is a symbolic link in a loop; name the file, directory or device itself"
        )),
        _ if error.raw_os_error() == Some(Errno::NAMETOOLONG.raw_os_error()) => Failure::Usage(format!(
            "a name in this path is longer than its file system allows (usually 255 bytes); type a shorter path than {path}"
        )),
        _ => Failure::Refused(format!("{path}: {error}")),
    }
}

/// Default size of a test file: larger than most device caches, and written in seconds.
pub(super) const MADE_BYTES: u64 = GIB;

/// The owners of the files that a stream uses in a directory.
fn file_owners(draft: &Draft) -> Vec<MadeFor> {
    match draft.stream.shared {
        Some(_) => vec![MadeFor::All],
        None if draft.spec.own => (0..draft.stream.workers).map(MadeFor::Worker).collect(),
        None => vec![MadeFor::Host],
    }
}

/// Default bytes of a made file: all workers' files of a host together are as large as a single file, but each has at least
/// [`test_file::MIN_BYTES`].
fn default_file_bytes(draft: &Draft) -> u64 {
    let files = if draft.spec.own { u64::from(draft.stream.workers.max(1)) } else { 1 };
    (MADE_BYTES / files / MIB * MIB).max(test_file::MIN_BYTES)
}

/// Assigns files to workers. Names each file that several hosts use, so that the other hosts find
/// it.
///
/// # Errors
/// If the file settings do not fit these targets.
fn assign_files(stream: &mut Stream, draft: &Draft, found: &mut [PlacedTarget]) -> Result<(), Failure> {
    let mut targets = stream.targets.iter().filter_map(|at| Some(&found.get(*at)?.target));
    let not_made = targets.find(|target| target.role != Role::Made).map(|target| target.path.clone());
    if let Some(path) = not_made.as_ref().filter(|_| draft.spec.own) {
        return Err(Failure::Usage(format!(
            "--own makes a test file for each worker, and {path} is a single one; name a directory, or leave --own out"
        )));
    }
    if let Some(path) = not_made.filter(|_| stream.shift_hosts > 0 && stream.shared.is_none()) {
        return Err(Failure::Usage(format!(
            "--shift-hosts: all hosts use all of {path}; name a directory, where each host has its own file, or type --shared too"
        )));
    }
    if stream.shared.is_some() && stream.targets.len() > 1 {
        return Err(Failure::Usage("--shared requires a single file; name one target".into()));
    }
    if draft.spec.own && stream.workers > 1 {
        stream.clones = Some(Clones::Own);
    }
    if stream.shared.is_some() || stream.shift_hosts > 0 {
        for at in &stream.targets {
            if let Some(PlacedTarget { target, .. }) =
                found.get_mut(*at).filter(|found| found.target.role == Role::Made)
            {
                target.common.get_or_insert_with(|| Common { name: test_file::unique_name(), maker: 0 });
            }
        }
    }
    Ok(())
}

/// Sets the byte limit of a stream whose workers share a file, as if a single host measured. Crate `fleet` sets the limit again for several
/// hosts.
///
/// # Errors
/// If no part is left for each worker.
fn limit_to_part(job: &str, stream: &mut Stream, shared: Shared, span_bytes: u64) -> Result<(), Failure> {
    let workers = u64::from(stream.workers);
    let own = own_blocks(stream, shared, span_bytes, TaskNumber { index: 0, count: workers })
        .map_err(|why| Failure::Usage(format!("{job}: {why}")))?;
    stream.limit.bytes = stream.limit_of_parts(own.bytes());
    Ok(())
}

/// Gives the streams that truncate their file one additional file, which they share. It is as large as the largest need of these streams,
/// but at most as large as the first target.
fn give_new_files(jobs: &mut [Job], targets: &mut Vec<Target>, places: &mut Vec<Place>) {
    let own = targets.len();
    let mut most = None;
    for stream in jobs.iter_mut().flat_map(Job::streams_mut).filter(|s| s.renews_file()) {
        stream.targets = vec![own];
        let limit = stream.limit.operations.filter(|_| stream.access.pattern() == Some(Pattern::Sequential));
        let written = limit.map_or(u64::MAX, |n| n.saturating_mul(stream.access.largest_bytes().into()));
        most =
            most.max(Some(stream.access.offset_bytes.saturating_add(written.min(stream.access.span_bytes))));
    }
    if let (Some(most), Some(target), Some(place)) = (most, targets.first().cloned(), places.first().cloned())
    {
        targets.push(Target { bytes: target.bytes.min(most), writable: true, ..target });
        places.push(place);
    }
}

/// Plans to make a file, or to make it again, as large and as complete as this stream and the earlier ones need.
fn make_again(target: &mut Target, create: Create) {
    let before = target.create.unwrap_or(Create { bytes: 0, filling: Filling::Nothing, unlink: false });
    let create = Create {
        bytes: before.bytes.max(create.bytes),
        filling: before.filling.max(create.filling),
        unlink: before.unlink || create.unlink,
    };
    target.bytes = target.bytes.max(create.bytes);
    target.create = Some(create);
}

/// Refuses a file that would leave too little free space. The bytes of an existing file at the path count as free.
fn check_free_space(path: &Path, bytes: u64) -> Result<(), Failure> {
    let existing_bytes =
        std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map_or(0, |f| f.len());
    Ok(machine::test_file::check_room(path, bytes.saturating_sub(existing_bytes))?)
}

/// Refuses a span beyond the end of the target.
fn check_size(typed_path: &Path, target: &Target, size: Option<u64>, offset: u64) -> Result<(), Failure> {
    let end = offset.checked_add(size.unwrap_or(0));
    if size.is_some_and(|s| s > target.bytes) || end.is_none_or(|e| e > target.bytes) {
        return Err(Failure::Usage(format!(
            "{} beyond the end of {}, which has {}; type a smaller --size or --offset",
            size.map_or_else(
                || format!("--offset {} is", show_bytes(offset)),
                |size| format!("--size {} from --offset {} reaches", show_bytes(size), show_bytes(offset))
            ),
            name::shown(typed_path),
            show_bytes(target.bytes)
        )));
    }
    Ok(())
}

/// Bytes of a file to make: `--size` plus the offset, or `usual` without `--size`.
fn bytes_to_make(draft: &Draft, usual: u64, path: &Path, origins: &mut Origins) -> Result<u64, Failure> {
    if draft.spec.create.is_some() {
        return Err(Failure::Usage(format!(
            "--create makes the named file, and {} is a directory; name a file in it, or type --size alone",
            name::shown(path)
        )));
    }
    let region = origins.choose("--size", draft.size, usual, |b| show_bytes(*b));
    let before = draft.size.map_or(0, |_| draft.stream.access.offset_bytes);
    let bytes = region.saturating_add(before);
    draft.size.map_or(Ok(()), |_| machine::test_file::check_room(path, bytes))?;
    Ok(bytes)
}

/// Refuses operations that do not fit a target or its alignment.
fn check_span(job: &str, stream: &Stream, target: &Target) -> Result<(), Failure> {
    if !stream.turns.is_empty() {
        return stream.turns.iter().try_for_each(|turn| check_span(job, &stream.with_turn(turn), target));
    }
    let access = &stream.access;
    let largest = u64::from(access.largest_bytes());
    let left = target.bytes.saturating_sub(access.offset_bytes).min(access.span_bytes);
    if left < largest {
        return Err(Failure::Usage(format!(
            "{job}: no block of {} fits after offset {} of {} ({}); use a smaller --bs or --offset, or a larger --size",
            show_bytes(largest),
            show_bytes(access.offset_bytes),
            target.path,
            show_bytes(target.bytes.min(access.span_bytes)),
        )));
    }
    if let Some(zones) = access.strided.filter(|z| z.whole(left) == 0 || z.range_bytes < largest) {
        return Err(Failure::Usage(format!(
            "{job}: --strided: a zone of {} must fit in {} of {} and hold a block of {}; use other zones, or a larger --size",
            show_bytes(zones.range_bytes),
            show_bytes(left),
            target.path,
            show_bytes(largest)
        )));
    }
    if !stream.cache.is_direct() {
        return Ok(());
    }
    let align = u64::from(target.block_bytes.max(1));
    let check_aligned = |what: &str, value: u64| {
        if value.is_multiple_of(align) {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--{what} {value}: direct I/O to {} needs multiples of {align} bytes; type --{what} {} or --cache buffered",
            target.path,
            value.checked_next_multiple_of(align).unwrap_or(value - value % align)
        )))
    };
    check_aligned("offset", access.offset_bytes)?;
    check_aligned("strided", access.strided.map_or(0, |zones| zones.step_bytes()))?;
    for line in &access.lines {
        for size in list_line_sizes(line) {
            check_aligned("bs", u64::from(size))?;
        }
        check_aligned("align", line.align_bytes)?;
        if let Order::Sequential(steps) = &line.order {
            check_aligned("stride", steps.stride_bytes)?;
            check_aligned("hole", steps.hole_bytes)?;
        }
    }
    Ok(())
}

/// Lists the sizes of an access line's operations and of its reply. Of a range it lists the
/// smallest and the largest.
fn list_line_sizes(line: &Line) -> Vec<u32> {
    let list_sizes = |sizes: &Sizes| match sizes {
        Sizes::Fixed(size) => vec![*size],
        Sizes::Range(least, most) => vec![*least, *most],
        Sizes::Split(split) => split.iter().map(|s| s.0).collect(),
    };
    let mut all: Vec<u32> = line.drawn_sizes().flat_map(list_sizes).collect();
    all.extend((line.reply_bytes > 0).then_some(line.reply_bytes));
    all
}

/// Alignment of direct I/O at a place, in bytes; `None` if unsupported.
fn supported_alignment(place: &Place) -> Option<u32> {
    if place.direct.is_some_and(|d| d.offset_align == 0) {
        return None;
    }
    Some(direct_alignment(place).max(1))
}

/// Alignment of offsets for direct I/O, in bytes, as statx reports it. If statx reports none: the
/// largest logical block of the topmost layers, or 512, the smallest common size.
pub(super) fn direct_alignment(place: &Place) -> u32 {
    if let Some(direct) = place.direct.filter(|d| d.offset_align > 0) {
        return direct.offset_align;
    }
    let blocks = place.tops.iter().filter_map(|t| place.layers.get(*t)?.queue.get("logical_block_size"));
    blocks.filter_map(|b| b.trim().parse().ok()).max().unwrap_or(512)
}

/// Extension of fio's job files in addition to `.fio`.
const OTHER_FIO_EXTENSION: &str = "job";

/// Refuses a capture, a trace, a result of fio, a session or a job file as a target, because the user does not mean to measure the few
/// bytes of such a file. Recognises the file by its content or, if it is text, by the extension of a job file.
fn refuse_workload_file(typed_path: &Path) -> Result<(), Failure> {
    let name = name::shown(typed_path);
    let not_a_disk =
        |what: String, then: &str| Failure::Usage(format!("{name} is {what}, not a disk to measure; {then}"));
    if is_capture(typed_path) {
        let then = format!("`fathom run {name} TARGET` replays it, `fathom show {name}` prints its profile");
        return Err(not_a_disk("a capture".into(), &then));
    }
    if let Some(language) = capture::trace_language(typed_path) {
        let then = format!(
            "`fathom capture --import {name} -o x.capture` converts it to a capture, which can be replayed"
        );
        return Err(not_a_disk(format!("a trace ({})", language.name()), &then));
    }
    let Small::Read(content) = files::read_if_small(typed_path, MAX_FILE_BYTES as u64) else { return Ok(()) };
    if is_fio_result(&content) {
        return Err(not_a_disk("a result of fio".into(), "name a directory, another file or a block device"));
    }
    if content.starts_with(MAGIC.as_bytes()) {
        return Err(not_a_disk(
            "a session of fathom".into(),
            &format!("`fathom show {name}` prints its report"),
        ));
    }
    let is_text = std::str::from_utf8(&content).is_ok_and(|text| !text.contains('\0'));
    let Some(tool) = detect_tool(&content).or_else(|| tool_of_extension(typed_path).filter(|_| is_text))
    else {
        return Ok(());
    };
    let what = format!("a job file of {} ({})", tool.word(), show_bytes(content.len() as u64));
    Err(not_a_disk(what, &format!("`fathom run {name}` runs it")))
}

/// Refuses a text file as a target of `fathom run` if its extension is one of [`NO_JOB_FILES`], unless `--destroy` names it.
fn refuse_like_job_file(request: &Request, typed_path: &Path, path: &Path) -> Result<(), Failure> {
    let is_run = request.command.get(1).is_some_and(|command| command == "run");
    let destroyed: Vec<PathBuf> = request.destroy.iter().map(|typed| name::path(typed)).collect();
    if !is_run || !is_like_job_file(typed_path) || is_named(&destroyed, path) {
        return Ok(());
    }
    let Small::Read(content) = files::read_if_small(typed_path, MAX_FILE_BYTES as u64) else { return Ok(()) };
    let Ok(text) = std::str::from_utf8(&content) else { return Ok(()) };
    if text.is_empty() || text.contains('\0') {
        return Ok(());
    }
    let name = name::shown(typed_path);
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    Err(Failure::Usage(if json.get("fathom").is_some() {
        format!(
            "{name} is a JSON report of fathom, not a disk to measure; `fathom compare {name} OTHER` compares it with another report"
        )
    } else {
        format!(
            "{name} is a text file ({}), not a disk to measure; job files end in .toml: `fathom help job-files` has an example",
            show_bytes(content.len() as u64)
        )
    }))
}

/// The tool whose job files have this extension; `None` for other extensions.
fn tool_of_extension(typed_path: &Path) -> Option<Tool> {
    let extension = typed_path.extension()?;
    let of_fio = extension.eq_ignore_ascii_case(OTHER_FIO_EXTENSION).then_some(Tool::Fio);
    language_of_path(typed_path).map(|language| language.tool).or(of_fio)
}

#[test]
fn a_refusal_lists_each_target_that_destroy_does_not_name() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let (request, mut all) = (Request::default(), Vec::new());
    let mut add = |index: usize, file: &str| {
        let path = dir.path().join(file);
        std::fs::write(&path, "of another program").unwrap_or_else(|e| panic!("{e}"));
        let Err(why) = guard_writing(&request, &Root::real(), &path, &path, Role::File) else {
            panic!("{file} may be written")
        };
        note_not_named(&mut all, index, true, why).unwrap_or_else(|e| panic!("{e}"));
        describe_not_named(&all)
    };
    add(0, "a b");
    // Another stream uses the same file.
    add(0, "a b");
    let text = add(1, "c\n");
    let shown = name::shown(dir.path());
    assert_eq!(
        text,
        format!(
            "writing would overwrite the content of 2 targets; if you want that, add --destroy='{shown}/a b' \
             --destroy=$'{shown}/c\\x0a'\n  {shown}/a b\n  {shown}/c\\x0a"
        )
    );
    let mut text = String::new();
    for index in 2..20 {
        text = add(index, &format!("f{index}"));
    }
    let (first, list) = text.split_once('\n').unwrap_or_default();
    assert!(first.matches("--destroy=").count() == 20 && first.ends_with("/f19"), "{text}");
    assert!(list.lines().count() == 20 && list.ends_with("/f19"), "{text}");
    for index in 20..1200 {
        let (name, target) = ("SERIAL".into(), format!("/dev/d{index}"));
        let why = NotNamed { message: String::new(), name, target };
        note_not_named(&mut all, index, true, MachineError::NotNamed(why)).unwrap_or_else(|e| panic!("{e}"));
    }
    let text = describe_not_named(&all);
    let (first, list) = text.split_once('\n').unwrap_or_default();
    assert!(first.ends_with(&format!(" of 1200 targets; if you want that, add {NAME_EACH}")), "{text}");
    assert!(list.lines().count() == 21 && list.ends_with("/f19\n  and 1180 more"), "{text}");
    let mut none = Vec::new();
    let missing = guard_writing(&request, &Root::real(), dir.path(), dir.path(), Role::File);
    assert!(missing.is_err_and(|why| note_not_named(&mut none, 0, true, why).is_err() && none.is_empty()));
}

#[test]
fn each_name_may_permit_writing_a_file() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let [file, other, link] = ["file", "other", "link"].map(|name| dir.path().join(name));
    for path in [&file, &other] {
        std::fs::write(path, "of another program").unwrap_or_else(|e| panic!("{e}"));
    }
    std::os::unix::fs::symlink(&file, &link).unwrap_or_else(|e| panic!("{e}"));
    let guard = |names: &[&Path]| {
        let destroy = names.iter().map(name::text).collect();
        let request = Request { destroy, ..Request::default() };
        guard_writing(&request, &Root::real(), &file, &file, Role::File).map_err(|why| why.to_string())
    };
    assert_eq!(guard(&[&other, dir.path(), &file]), Ok(()));
    assert_eq!(guard(&[&other, &link]), Ok(()));
    // `--destroy` with a directory or a pattern permits writing no file.
    let pattern = dir.path().join("*");
    for names in [[&other, &pattern], [&pattern, &other]] {
        let refused = guard(&names.map(PathBuf::as_path));
        let expected = format!("--destroy '{}' names another file; ", name::text(names[0]));
        assert!(refused.as_ref().is_err_and(|why| why.starts_with(&expected)), "{refused:?}");
    }
    assert!(guard(&[dir.path()]).is_err());
}
