//! What is asked for: a verification as a workload like any other, so that it is planned like one.
//!
//! For: the request out of what was said, or out of the state of what was written; and what cannot be meant. Not for: carrying it out
//! ([`super::under_way`]).

use super::{Options, Task, ToWrite};
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::request::{Request, Work};
use model::job::{PerKind, Sizes};
use model::name;
use model::plan::{Plan, Role};
use model::spec::{JobSpec, PhaseSpec, Rw, StreamSpec};
use model::verification::{State, Verification};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What is to be done, with all that is known of it.
pub(super) enum HostTask<'a> {
    /// Write and read back, and where to keep what a check has to know.
    Write(&'a ToWrite, Option<PathBuf>),
    /// Read back what the state says.
    Check(Box<State>),
}

impl<'a> HostTask<'a> {
    /// What this host is to do. Each host has a state of its own.
    ///
    /// # Errors
    /// Where the state cannot be read, or none can be kept.
    pub(super) fn from_options(asked: &'a Options, fleet: &Fleet) -> Result<Self, Failure> {
        match &asked.task {
            Task::Check(file) => {
                let (own, file) = (fleet.file_of(file, None), fleet.file_of(file, asked.shift_hosts));
                if asked.shift_hosts.is_some() && own == file {
                    return Err(Failure::Usage(
                        "--shift-hosts: the host so far on is each host itself; use a number that is no multiple of theirs"
                            .into(),
                    ));
                }
                Ok(Self::Check(Box::new(super::state::read(&file)?)))
            }
            Task::Write(to_write) => {
                let state = to_write.state.as_deref().map(|file| fleet.file_of(file, None));
                state.as_deref().map_or(Ok(()), super::state::decide)?;
                Ok(Self::Write(to_write, state))
            }
        }
    }
}

/// What is asked of hosts together, before this one knows which of them it is.
pub(super) fn of_hosts(asked: &Options) -> Request {
    let stream = StreamSpec { shared: asked.shared, shift_hosts: asked.shift_hosts, ..StreamSpec::default() };
    workload(asked, vec![stream])
}

/// The verification as a workload like any other.
pub(super) fn to_request(asked: &Options, meant: &HostTask) -> Request {
    let stream = StreamSpec {
        depth: Some(asked.depth),
        engine: asked.engine.clone(),
        cache: asked.cache,
        ..StreamSpec::default()
    };
    match meant {
        HostTask::Write(w, _) => {
            let stream = StreamSpec {
                bs: Some(PerKind::all(Sizes::Fixed(w.block_bytes))),
                offset: w.offset_bytes,
                size: w.size_bytes,
                shared: asked.shared,
                ..stream
            };
            let write = StreamSpec { rw: Some(Rw::Randwrite), ..stream.clone() };
            // What another host wrote is a target of its own.
            let read = asked.shift_hosts.map(|_| StreamSpec {
                rw: Some(Rw::Randread),
                shift_hosts: asked.shift_hosts,
                ..stream
            });
            let request = workload(asked, std::iter::once(write).chain(read).collect());
            Request {
                job: JobSpec { seed: w.seed, ..request.job },
                destroy: w.destroy.iter().cloned().collect(),
                unseen_users: w.unseen_users.clone(),
                ..request
            }
        }
        HostTask::Check(state) => {
            let v = &state.verification;
            let read = StreamSpec {
                rw: Some(Rw::Randread),
                bs: Some(PerKind::all(Sizes::Fixed(v.block_bytes))),
                offset: Some(v.offset_bytes),
                // What a target that was cut off no longer has is told as lost, not refused.
                size: Some(v.span_bytes().min(whole_blocks_of(&checked(asked, state), v))),
                ..stream
            };
            let request = workload(asked, vec![read]);
            Request { targets: vec![checked(asked, state)], ..request }
        }
    }
}

/// The target of a check.
pub(super) fn checked(asked: &Options, state: &State) -> PathBuf {
    asked.target.clone().unwrap_or_else(|| name::path(&state.target))
}

/// Bytes of the blocks of a verification that a target still has whole.
fn whole_blocks_of(path: &Path, v: &Verification) -> u64 {
    let there = end_of(path).saturating_sub(v.offset_bytes);
    there - there.checked_rem(u64::from(v.block_bytes)).unwrap_or(0)
}

/// Where a file or block device ends; nowhere if it is something else, or cannot be opened.
pub(super) fn end_of(path: &Path) -> u64 {
    let has_an_end =
        path.metadata().is_ok_and(|facts| facts.is_file() || facts.file_type().is_block_device());
    let end = || File::open(path).ok()?.seek(SeekFrom::End(0)).ok();
    if has_an_end { end().unwrap_or(u64::MAX) } else { u64::MAX }
}

/// Streams one after another.
fn workload(asked: &Options, streams: Vec<StreamSpec>) -> Request {
    let phase = |stream| PhaseSpec { streams: vec![stream], ..PhaseSpec::default() };
    Request {
        command: std::env::args_os().map(name::text).collect(),
        work: Work::Job,
        job: JobSpec { phases: streams.into_iter().map(phase).collect(), ..JobSpec::default() },
        source: None,
        flags: Vec::new(),
        targets: asked.target.iter().cloned().collect(),
        destroy: Vec::new(),
        unseen_users: Vec::new(),
        hook: None,
        against: None,
        fail_if_slower: None,
        keep: false,
        expect_device: None,
        budget_ns: None,
        ranks_per_host: asked.ranks_per_host,
        hosts: Vec::new(),
    }
}

/// Refuses what cannot be meant: a check of a file that is gone with the process that wrote it, and hosts that write over each other.
pub(super) fn refuse_impossible(plan: &Plan, meant: &HostTask, asked: &Options) -> Result<(), Failure> {
    let is_made = plan.targets.iter().any(|t| t.role == Role::Made);
    match meant {
        HostTask::Write(..) if plan.part.is_some() && !is_made && asked.shared.is_none() => Err(Failure::Usage(
            "each host would write over what the others write into one file or device; type --shared segmented, so that \
             each has a part of it, or name a directory, where each makes a file of its own"
                .into(),
        )),
        HostTask::Write(_, Some(_)) if is_made => Err(Failure::Usage(
            "--state is for what is still there after a crash, and a file that fathom makes in a directory is not; name an \
             existing file (as `fallocate -l 1g FILE` or `truncate -s 1g FILE` make one) or a block device, with --destroy"
                .into(),
        )),
        HostTask::Check(..) if is_made => Err(Failure::Usage(
            "--check reads the file or device that was written with --state, and TARGET is a directory; name that file".into(),
        )),
        _ => Ok(()),
    }
}
