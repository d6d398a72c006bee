//! Targets: which files and devices streams touch, each once, with what may be done to them.
//!
//! For: finding places, choosing sizes, the first lock before writing. Not for: making or opening anything, nor
//! whether operations fit ([`super::span`]).

pub(super) use super::files::MADE_BYTES;
use super::origins::Origins;
use super::span::{check_size, check_span, direct_alignment, made_bytes};
use super::stream::Draft;
use super::{DraftJob, ends, files, kept, precondition, replay, shown};
use crate::failure::Failure;
use crate::request::{JobSource, Request};
use machine::root::Root;
use machine::{kept_mark, overlays};
use model::identity::Identity;
use model::job::{Clones, FALLOCATE, GROW, Job, NEW, Sharing, Stream};
use model::machine::{Layer, Place};
use model::name;
use model::plan::{MadeFor, Role, Target};
use model::units::show_bytes;
use rustix::io::Errno;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The targets of a plan while it grows.
pub(super) struct Targets<'a> {
    request: &'a Request,
    pub(super) root: &'a Root,
    pub(super) found: Vec<(Target, Place)>,
    /// Streams that touch nothing: their one target comes behind all others, since it has no place.
    pub(super) nothing: Option<Target>,
    overwritten: bool,
}

/// Index of the target of streams that touch nothing, until all others are known.
const NOTHING: usize = usize::MAX;

impl<'a> Targets<'a> {
    pub(super) fn new(request: &'a Request, root: &'a Root) -> Self {
        Self { request, root, found: Vec::new(), nothing: None, overwritten: false }
    }

    /// Gives every stream of a job its targets.
    pub(super) fn settle(&mut self, job: DraftJob, origins: &mut Origins) -> Result<Job, Failure> {
        let mut phases = Vec::new();
        for (mut phase, drafts) in job.phases {
            for draft in drafts {
                phase.streams.push(self.stream(&job.name, &draft, origins)?);
            }
            phases.push(phase);
        }
        Ok(Job { name: job.name, phases })
    }

    fn stream(&mut self, job: &str, draft: &Draft, origins: &mut Origins) -> Result<Stream, Failure> {
        let mut stream = draft.stream.clone();
        if draft.size == Some(0) {
            return Err(Failure::Usage(
                "--size 0: there is nothing to measure; type a size such as 1g, or leave it out".into(),
            ));
        }
        let own: Vec<PathBuf> = draft.paths.iter().map(|p| name::path(p)).collect();
        let paths = if own.is_empty() { self.request.targets.clone() } else { own };
        if !draft.engine.touches_targets() {
            self.touch_nothing(draft, &paths, origins)?;
            stream.targets = vec![NOTHING];
            stream.access.span_bytes = draft.size.unwrap_or(MADE_BYTES);
            stream.limit.bytes = ends::bytes(draft.passes, &stream, &[stream.access.span_bytes]);
            return Ok(stream);
        }
        let from = if paths.is_empty() { "default: the current directory" } else { "named" };
        let paths = if paths.is_empty() { vec![PathBuf::from(".")] } else { paths };
        for (said, file) in
            paths.iter().flat_map(|said| files::made_for(draft).into_iter().map(move |f| (said, f)))
        {
            let target = self.find((said, file), draft, from, origins)?;
            // Used twice it would have twice as much in flight, and its bytes would count twice.
            if !stream.targets.contains(&target) {
                stream.targets.push(target);
            }
        }
        files::divide(&mut stream, draft, &mut self.found)?;
        check_weights(&stream, paths.len())?;
        let found = |at: &usize| Some(&self.found.get(*at)?.0);
        let targets: Vec<&Target> = stream.targets.iter().filter_map(found).collect();
        let compares =
            stream.access.reads() && stream.verify.as_ref().is_some_and(|v| v.checks && v.back.is_none());
        if compares && targets.iter().any(|t| t.role == Role::Made) {
            return Err(Failure::Usage(
                "--verify compares reads with what was written before, and a file that fathom makes has other data; name a file that was written with --verify, or type --rw randwrite"
                    .into(),
            ));
        }
        stream.access.span_bytes = draft.size.unwrap_or(u64::MAX);
        if stream.replay.is_some() {
            replay::fit(&mut stream, &targets, self.request.job.typed.is_some())?;
        } else {
            targets.iter().try_for_each(|target| check_span(job, &stream, target))?;
        }
        if let [target] = targets.as_slice() {
            let left = target.bytes.saturating_sub(stream.access.offset_bytes);
            stream.access.span_bytes = stream.access.span_bytes.min(left);
        }
        if stream.clones == Some(Clones::Own) && !targets.len().is_multiple_of(stream.workers as usize) {
            return Err(Failure::Usage(format!(
                "--clones own: {} targets (one named twice is one) cannot be divided among {} workers; name as many for each",
                targets.len(),
                stream.workers
            )));
        }
        let spans: Vec<u64> = targets
            .iter()
            .map(|t| t.bytes.saturating_sub(stream.access.offset_bytes).min(stream.access.span_bytes))
            .collect();
        match (stream.shared, spans.first()) {
            (Some(shared), Some(span)) => files::part(job, &mut stream, shared, *span)?,
            _ => stream.limit.bytes = ends::bytes(draft.passes, &stream, &spans),
        }
        Ok(stream)
    }

    /// The index of a target, found before or new.
    fn find(
        &mut self,
        (said, file): (&Path, MadeFor),
        draft: &Draft,
        from: &str,
        origins: &mut Origins,
    ) -> Result<usize, Failure> {
        let path = match said.canonicalize() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => match self.to_be_made(said) {
                Some(index) if draft.create.is_none() => return Ok(self.shares(index, draft)),
                _ if draft.create.is_some() => return self.missing(said, draft, from, origins),
                _ => return Err(unreachable_path(said, &e)),
            },
            path => path.map_err(|e| unreachable_path(said, &e))?,
        };
        let index = if let Some(known) = self.known(said, &path, file)? {
            known
        } else {
            let (target, place) = look_for(draft, self.root, said, &path)?;
            self.found.push((Target { made_for: file.where_made(target.role), ..target }, place));
            origins.fixed("TARGET", &shown(&path), from);
            self.found.len() - 1
        };
        let conditioned = self.request.job.precondition == Some(true);
        let (target, place) = &mut self.found[index];
        let offset = draft.stream.access.offset_bytes;
        let writes = changes(draft, said, target)?;
        if target.role == Role::Made {
            target.bytes = target.bytes.max(made_bytes(draft, files::usual_bytes(draft), &path, origins)?);
        } else if let Some(create) =
            draft.create.filter(|_| target.role == Role::File && kept_mark::may_be_made(&path))
        {
            // What fathom made and kept may be made again.
            kept::make_again(target, create);
            check_size(said, target, draft.size, offset)?;
            kept::fits_beside(&path, target.bytes)?;
            origins.fixed("--size", &show_bytes(draft.size.unwrap_or(create.bytes)), "said");
            if writes {
                let unseen = is_named(&self.request.unseen_users, &path);
                machine::safety::may_write_file(self.root, said, &path, Some(&name::text(&path)), unseen)?;
            }
            look_once_opened(self.root, said, &path, target, place)?;
        } else {
            check_size(said, target, draft.size, offset)?;
            let (bytes, from) = match draft.size {
                Some(size) => (size, "said"),
                None => (target.bytes, "all of the target"),
            };
            origins.fixed("--size", &show_bytes(bytes), from);
            if draft.stream.renews_file() {
                return Err(Failure::Usage(format!(
                    "--engine {}: its options {NEW}, {FALLOCATE} and {GROW} drop the whole of {}; name a directory, and fathom makes a test file there",
                    draft.engine.name,
                    name::shown(said)
                )));
            }
            if writes || conditioned {
                guard_writing(self.request, self.root, said, &path, target.role)
                    .map_err(|why| if writes { why } else { precondition::explain_refusal(why) })?;
                target.only_by_mark |=
                    self.request.destroy.is_empty() && is_of_earlier_call(self.request, &path, target.role);
                self.overwritten = true;
                look_once_opened(self.root, said, &path, target, place)?;
            }
        }
        target.writable |= writes || conditioned;
        if draft.stream.cache.is_direct() {
            target.block_bytes = target.block_bytes.max(direct_alignment(place));
        }
        Ok(index)
    }

    /// The index of a target that was found before, under whichever name: links and bind mounts lead to one file, and two device
    /// nodes may be one device. In a directory that is one file of whoever it is made for.
    fn known(&mut self, said: &Path, path: &Path, file: MadeFor) -> Result<Option<usize>, Failure> {
        let what = machine::identity::of_path(path).map_err(|e| unreachable_path(said, &e))?;
        let all = overlays::identities(self.root, path);
        // An overlay gives a file an identity of its own; what holds its bytes is the same by both names.
        let below = |t: &Target| {
            t.role == Role::File && {
                let its = overlays::identities(self.root, &name::path(&t.path));
                its.iter().any(|one| all.iter().any(|other| one.is_same(other)))
            }
        };
        let is_it = |t: &Target| {
            let same = t.identity.as_ref().is_some_and(|i| i.is_same(&what)) || below(t);
            same && t.made_for == file.where_made(t.role)
        };
        let known = self.found.iter().position(|(t, _)| is_it(t));
        if let Some(target) = known.and_then(|at| Some(&mut self.found.get_mut(at)?.0)) {
            let typed = shown(said).into_owned();
            if name::path(&target.path) != path && !target.other_names.contains(&typed) {
                target.other_names.push(typed);
            }
        }
        Ok(known)
    }

    /// The index of a target as an earlier session had it, for a stream of that session. `then` is what was below it.
    pub(super) fn once_more(
        &mut self,
        was: &Target,
        then: Option<&Place>,
        stream: &Stream,
    ) -> Result<usize, Failure> {
        if was.role == Role::None {
            let bytes = self.nothing.as_ref().map_or(was.bytes, |t| t.bytes.max(was.bytes));
            self.nothing = Some(Target { bytes, ..was.clone() });
            return Ok(NOTHING);
        }
        let path = &name::path(&was.path);
        let (now, place) = inspect_target(self.root, path, path)?;
        if now.role != was.role {
            return Err(Failure::Usage(format!(
                "{} is not what that session measured: it is of another kind",
                was.path
            )));
        }
        if now.role != Role::Made && now.bytes != was.bytes {
            return Err(Failure::Usage(format!(
                "{} has {}, and that session measured {} of it",
                was.path,
                show_bytes(now.bytes),
                show_bytes(was.bytes)
            )));
        }
        if let Some(why) = then.and_then(|then| moved(then, &place)) {
            return Err(Failure::Usage(format!("{} is not where that session measured it: {why}", was.path)));
        }
        let index = self.known(path, path, was.made_for)?.unwrap_or_else(|| {
            self.found.push((Target { made_for: was.made_for, ..now }, place));
            self.found.len() - 1
        });
        let writes = stream.changes_targets();
        let (target, place) = &mut self.found[index];
        if target.role == Role::Made {
            target.bytes = target.bytes.max(was.bytes);
            machine::test_file::fits(path, target.bytes)?;
        } else if writes {
            guard_writing(self.request, self.root, path, path, target.role)?;
            self.overwritten = true;
            look_once_opened(self.root, path, path, target, place)?;
        }
        target.writable |= writes;
        target.block_bytes = target.block_bytes.max(was.block_bytes);
        Ok(index)
    }

    /// All targets in the order of their indices, and the places of those that have one. Where `apart`, streams that drop a
    /// file's blocks get one of their own, so that the others find theirs as it was.
    pub(super) fn finish(self, jobs: &mut [Job], apart: bool) -> Result<(Vec<Target>, Vec<Place>), Failure> {
        // With the command of another tool it may be set once, for many calls.
        let is_foreign = matches!(self.request.source, Some(JobSource::CommandOf(_)));
        if !self.request.destroy.is_empty() && !self.overwritten && !is_foreign {
            return Err(Failure::Usage(
                "--destroy changes nothing here: nothing of anybody's is overwritten; leave it out".into(),
            ));
        }
        refuse_what_others_are_stored_on(&self.found)?;
        let (mut targets, mut places): (Vec<Target>, Vec<Place>) = self.found.into_iter().unzip();
        if apart {
            files::give_new_files(jobs, &mut targets, &mut places);
        }
        let last = targets.len();
        targets.extend(self.nothing);
        let streams = jobs.iter_mut().flat_map(|j| &mut j.phases).flat_map(|p| &mut p.streams);
        for target in streams.flat_map(|s| &mut s.targets).filter(|t| **t == NOTHING) {
            *target = last;
        }
        Ok((targets, places))
    }
}

/// Marks the targets that `--unseen-users` names.
///
/// # Errors
/// [`Failure::Usage`] if it names a path that this job does not write.
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
    // For another tool's commands it may be set once, for many calls.
    let is_foreign = matches!(request.source, Some(JobSource::CommandOf(_)));
    let needless = |path: &&PathBuf| !marked().any(|target| is_named(std::slice::from_ref(path), &target));
    if let Some(path) = request.unseen_users.iter().find(needless).filter(|_| !is_foreign) {
        return Err(Failure::Usage(format!(
            "--unseen-users {} changes nothing here: this job does not write it; leave it out",
            name::shown(path)
        )));
    }
    let all: Vec<String> = marked().map(|path| name::shown(&path).clone()).collect();
    origins.note("--unseen-users", (!all.is_empty()).then_some(all), |all| all.join(", "));
    Ok(())
}

/// Whether one of these paths is that of a file or device, under any of its names.
fn is_named(all: &[PathBuf], path: &Path) -> bool {
    all.iter().any(|named| named == path || machine::safety::is_same(named, path))
}

/// Refuses weights that are not one for each target.
fn check_weights(stream: &Stream, named: usize) -> Result<(), Failure> {
    match &stream.sharing {
        Sharing::Weighted(weights) if weights.len() != stream.targets.len() => {
            let once = if named > stream.targets.len() { " (one named twice is one)" } else { "" };
            Err(Failure::Usage(format!(
                "--sharing has {} weights for {} targets{once}; type one for each",
                weights.len(),
                stream.targets.len()
            )))
        }
        _ => Ok(()),
    }
}

/// Whether a stream changes a target; refuses a device where what only a file has is to change.
fn changes(draft: &Draft, said: &Path, target: &Target) -> Result<bool, Failure> {
    if !draft.stream.moves_no_data() || target.role != Role::Device {
        return Ok(draft.stream.changes_targets());
    }
    Err(Failure::Usage(format!(
        "--engine {}: it changes lengths and blocks of files, and {} is a device, which has its own for good; name a file or a directory",
        draft.engine.name,
        name::shown(said)
    )))
}

/// Bytes of a device as it says itself, where `/sys` does not.
fn device_bytes(path: &Path) -> std::io::Result<u64> {
    std::fs::File::open(path)?.seek(SeekFrom::End(0))
}

/// What a path is. What is made may be there already with nothing in it, as programs that call mkstemp have it.
fn look_for(draft: &Draft, root: &Root, said: &Path, path: &Path) -> Result<(Target, Place), Failure> {
    if draft.create.is_some() { look_also_empty(root, said, path) } else { inspect_target(root, said, path) }
}

/// What a path is; refuses a file in which there is nothing.
pub(super) fn inspect_target(root: &Root, said: &Path, path: &Path) -> Result<(Target, Place), Failure> {
    let found = look_also_empty(root, said, path)?;
    if found.0.bytes > 0 || found.0.role != Role::File {
        return Ok(found);
    }
    Err(Failure::Usage(format!(
        "{} is empty, so there is nothing to read or overwrite; name its directory, and fathom makes a test file there",
        name::shown(said)
    )))
}

fn look_also_empty(root: &Root, said: &Path, path: &Path) -> Result<(Target, Place), Failure> {
    let facts = std::fs::metadata(path).map_err(|e| unreachable_path(said, &e))?;
    let kind = facts.file_type();
    if kind.is_dir() || kind.is_file() {
        machine::file_systems::refuse_synthetic_at(said, path)?;
    }
    let place = machine::resolve::resolve(root, path)?;
    let (role, bytes) = if kind.is_dir() {
        (Role::Made, 0)
    } else if kind.is_file() {
        (Role::File, facts.len())
    } else if kind.is_block_device() {
        let told = place.tops.first().and_then(|t| place.layers.get(*t)).map_or(0, |l| l.bytes);
        (Role::Device, if told > 0 { told } else { device_bytes(path).unwrap_or(0) })
    } else {
        let what = "neither a directory, a file nor a block device";
        return Err(Failure::Usage(format!("{} is {what}; name one of these", name::shown(said))));
    };
    if bytes == 0 && role == Role::Device {
        return Err(Failure::Refused(format!("{} has no capacity: it is not set up", name::shown(said))));
    }
    if role == Role::File {
        super::job_file::refuse(said)?;
    }
    let target = Target {
        path: shown(path).into_owned(),
        role,
        bytes,
        block_bytes: 1,
        writable: role == Role::Made,
        identity: Some(machine::marks::marked(root, machine::identity::of_facts(&facts))),
        unseen_users: false,
        only_by_mark: false,
        other_names: Vec::new(),
        create: None,
        made_for: MadeFor::Host,
        common: None,
    };
    Ok((target, place))
}

/// Takes identity and place of a target again once it was opened for writing. An overlay then copies the file to its upper directory, which
/// gives it another inode and may be on another device.
fn look_once_opened(
    root: &Root,
    said: &Path,
    path: &Path,
    target: &mut Target,
    place: &mut Place,
) -> Result<(), Failure> {
    let what = machine::identity::of_path(path).map_err(|e| unreachable_path(said, &e))?;
    target.identity = Some(machine::marks::marked(root, what));
    *place = machine::resolve::resolve(root, path)?;
    Ok(())
}

/// Refuses to write a device that another target is stored on: a partition of it, a volume or a file on it.
fn refuse_what_others_are_stored_on(found: &[(Target, Place)]) -> Result<(), Failure> {
    let number = |t: &Target| match &t.identity {
        Some(Identity::Device { number, .. }) => Some(number.clone()),
        _ => None,
    };
    for (disk, _) in found.iter().filter(|(t, _)| t.writable) {
        let Some(number) = number(disk) else { continue };
        let on = |(t, place): &&(Target, Place)| {
            t.path != disk.path && place.layers.iter().any(|l| l.number == number)
        };
        if let Some((other, _)) = found.iter().find(on) {
            return Err(Failure::Usage(format!(
                "{} is stored on {}, and writing one would change the other; name one of them",
                other.path, disk.path
            )));
        }
    }
    Ok(())
}

/// What is below a place now and was not then, in words; `None` where it is the same.
fn moved(then: &Place, now: &Place) -> Option<String> {
    let below = |place: &Place| -> Vec<String> {
        let tops = place.tops.iter().filter_map(|t| place.layers.get(*t));
        // A name may go to another disk when the machine starts; a serial number does not.
        let name = |l: &Layer| l.serial.clone().or(l.backing_file.clone()).unwrap_or_else(|| l.name.clone());
        let mut all: Vec<String> = tops.map(|l| format!("{} of {}", name(l), show_bytes(l.bytes))).collect();
        if all.is_empty() {
            all.extend(place.file_system.as_ref().map(|f| f.source.clone()));
        }
        all
    };
    let (was, is) = (below(then), below(now));
    if then.kind() != now.kind() {
        return Some(format!("{} was there, and {} is", then.kind(), now.kind()));
    }
    (was != is).then(|| format!("{} was below it, and {} is", was.join(" and "), is.join(" and ")))
}

/// Whether another tool's command line names a file that fathom made in an earlier call and that nothing else has written since. Such tools
/// write their own files again without asking.
fn is_of_earlier_call(request: &Request, path: &Path, role: Role) -> bool {
    let is_of_tool = matches!(request.source, Some(JobSource::CommandOf(_)));
    is_of_tool && role == Role::File && kept_mark::is_ours(path)
}

/// The second look, right before a file or device is opened for writing, is in `machine::safety`.
pub(super) fn guard_writing(
    request: &Request,
    root: &Root,
    said: &Path,
    path: &Path,
    role: Role,
) -> Result<(), Failure> {
    let unseen = is_named(&request.unseen_users, path);
    let allowed = |destroy: Option<&str>| match role {
        Role::File => machine::safety::may_write_file(root, said, path, destroy, unseen),
        Role::Device => machine::safety::may_write_device(root, path, destroy, unseen),
        Role::Made | Role::None => Ok(()),
    };
    if is_of_earlier_call(request, path, role) {
        return Ok(allowed(Some(&name::text(path)))?);
    }
    let mut refusal = None;
    for name in &request.destroy {
        match allowed(Some(name)) {
            Ok(()) => return Ok(()),
            Err(e) => refusal = refusal.or(Some(e)),
        }
    }
    match refusal {
        Some(e) => Err(e.into()),
        None => Ok(allowed(None)?),
    }
}

pub(super) fn unreachable_path(said: &Path, error: &std::io::Error) -> Failure {
    let path = name::shown(said);
    match error.kind() {
        std::io::ErrorKind::NotFound if said.components().count() == 1 => Failure::Usage(format!(
            "{path} does not exist, and no block device has this name; name a directory (a test file is made in it), an existing file or a \
             block device (`fathom devices` lists them)"
        )),
        std::io::ErrorKind::NotFound => Failure::Usage(format!(
            "{path} does not exist; name a directory (a test file is made in it), an existing file or a block device"
        )),
        std::io::ErrorKind::PermissionDenied => Failure::Refused(format!(
            "{path} may not be looked at by this user ({error}); {}",
            sys::user::of_others()
        )),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Failure::Usage(format!(
            "{path} is a symbolic link that leads back to itself; name the file, directory or device itself"
        )),
        _ if error.raw_os_error() == Some(Errno::NAMETOOLONG.raw_os_error()) => Failure::Usage(format!(
            "a name in this path is longer than its file system allows (usually 255 bytes); type a shorter path than {path}"
        )),
        _ => Failure::Refused(format!("{path}: {error}")),
    }
}
