//! Files of workers and hosts: which made file of a directory is whose, and which part of a shared one.
//!
//! For: one file for a host, one for each worker or one for all hosts, and what is refused of these. Not for: finding targets
//! ([`super::target`]), nor for what depends on how many hosts there are, which only they know together (`crate::fleet`).

use super::stream::Draft;
use crate::failure::Failure;
use engine::source::own_blocks;
use machine::test_file;
use model::job::{Clones, Job, Pattern, Shared, Stream};
use model::machine::Place;
use model::plan::{Common, MadeFor, Role, Target};
use model::units::{GIB, MIB};

/// Size of a made test file: beyond most device caches' reach and written in seconds.
pub(super) const MADE_BYTES: u64 = GIB;

/// Whose files a stream works on where it is given a directory.
pub(super) fn made_for(draft: &Draft) -> Vec<MadeFor> {
    match draft.stream.shared {
        Some(_) => vec![MadeFor::All],
        None if draft.own => (0..draft.stream.workers).map(MadeFor::Worker).collect(),
        None => vec![MadeFor::Host],
    }
}

/// Bytes of a made file where nothing was said: the files of all workers of a host have as many together as one file has.
pub(super) fn usual_bytes(draft: &Draft) -> u64 {
    let files = if draft.own { u64::from(draft.stream.workers.max(1)) } else { 1 };
    (MADE_BYTES / files / MIB * MIB).max(test_file::LEAST_BYTES)
}

/// Gives files to workers, and names by which other hosts find them.
///
/// # Errors
/// Where what was said of files means nothing for these targets.
pub(super) fn divide(
    stream: &mut Stream,
    draft: &Draft,
    found: &mut [(Target, Place)],
) -> Result<(), Failure> {
    let of = |found: &[(Target, Place)], role: fn(Role) -> bool| {
        let targets = stream.targets.iter().filter_map(|at| found.get(*at));
        targets.map(|(target, _)| target).find(|target| role(target.role)).map(|target| target.path.clone())
    };
    let not_made = of(found, |role| role != Role::Made);
    if let Some(path) = not_made.as_ref().filter(|_| draft.own) {
        return Err(Failure::Usage(format!(
            "--own is a test file for each worker, and {path} is one for all of them; name a directory, or leave --own out"
        )));
    }
    if let Some(path) = not_made.filter(|_| stream.shift_hosts > 0 && stream.shared.is_none()) {
        return Err(Failure::Usage(format!(
            "--shift-hosts: all hosts work on all of {path}; name a directory, where each has a file of its own, or type --shared too"
        )));
    }
    if stream.shared.is_some() && stream.targets.len() > 1 {
        return Err(Failure::Usage("--shared is about one file; name one target".into()));
    }
    if draft.own && stream.workers > 1 {
        stream.clones = Some(Clones::Own);
    }
    if stream.shared.is_some() || stream.shift_hosts > 0 {
        for at in &stream.targets {
            let made = found.get_mut(*at).map(|(target, _)| target).filter(|t| t.role == Role::Made);
            if let Some(target) = made {
                target.common.get_or_insert_with(|| Common { name: test_file::common_name(), maker: 0 });
            }
        }
    }
    Ok(())
}

/// Fits a stream that shares a file to its part, as far as this host alone goes: others make parts smaller.
///
/// # Errors
/// Where no part is left for each worker.
pub(super) fn part(job: &str, stream: &mut Stream, shared: Shared, span_bytes: u64) -> Result<(), Failure> {
    let workers = u64::from(stream.workers);
    let own = own_blocks((stream, shared), span_bytes, (0, workers))
        .map_err(|why| Failure::Usage(format!("{job}: {why}")))?;
    stream.limit.bytes = stream.limit_of_parts(own.bytes());
    Ok(())
}

/// Gives streams that drop a file's blocks one of their own, as large as the largest needs: random offsets go everywhere.
pub(super) fn give_new_files(jobs: &mut [Job], targets: &mut Vec<Target>, places: &mut Vec<Place>) {
    let own = targets.len();
    let streams = jobs.iter_mut().flat_map(|j| &mut j.phases).flat_map(|p| &mut p.streams);
    let mut most = None;
    for stream in streams.filter(|s| s.renews_file()) {
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
