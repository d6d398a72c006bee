//! Files of all hosts before the first run: those that other hosts made are opened, and this host's parts of shared ones are written.
//!
//! For: the order in which hosts do that, so that none looks at what another one has not done. Not for: who makes which file
//! (`crate::fleet`), nor making and opening one (`crate::target`).

use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live::{Left, Live};
use crate::target::Ready;
use engine::source::own_blocks;
use model::fleet::Part;
use model::job::{OwnBlocks, Shared, Stream};
use model::plan::{Common, MadeFor, Plan};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Opens the files of other hosts, and writes what this one has to write of those of all. `left` is told meanwhile, where it is known.
pub(super) fn open_others(
    plan: &Plan,
    targets: &mut [Ready],
    fleet: &Fleet,
    (stop, live, left): (&Arc<AtomicBool>, &Live, Option<Left>),
) -> Result<(), Failure> {
    let named = |at: usize| Some((at, plan.common(at)?));
    let common: Vec<(usize, &Common)> = (0..plan.targets.len()).filter_map(named).collect();
    if common.is_empty() {
        return Ok(());
    }
    let interrupted = |why: Failure| if stop.load(Ordering::Relaxed) { Failure::Interrupted } else { why };
    live.step_of("waiting for the test files of the other hosts", left);
    fleet.all_made()?;
    for (at, file) in common.iter().filter(|(_, file)| !plan.is_rank(file.maker)) {
        targets[*at].find(file, &fleet.name(file.maker), stop).map_err(interrupted)?;
    }
    let shared: Vec<usize> =
        common.iter().map(|c| c.0).filter(|at| plan.targets[*at].made_for == MadeFor::All).collect();
    for at in &shared {
        let parts = parts(plan, *at)?;
        let total = parts.iter().map(Parts::bytes).sum();
        live.step_of(&format!("writing this host's part of {}", plan.targets[*at].path), left);
        let since = Instant::now();
        let mut progress = |done: u64, total: u64| match left {
            Some(left) => live.tick(left),
            None => live.tick_step(done, total, Left::by(since, done, total)),
        };
        let places = parts.into_iter().flat_map(Parts::places);
        targets[*at]
            .fill_parts(places, (total, plan.drawn_by()), stop, &mut progress)
            .map_err(interrupted)?;
    }
    if shared.is_empty() {
        return Ok(());
    }
    // What is not written yet would be a hole.
    live.step_of("waiting for the other hosts' parts of the test file", left);
    fleet.all_made()?;
    for at in shared {
        targets[at].prove();
    }
    Ok(())
}

/// Bytes of a file that this host writes.
enum Parts {
    /// The blocks of a worker, behind an offset.
    Blocks(OwnBlocks, u64),
    /// What is nobody's.
    Rest(Range<u64>),
}

impl Parts {
    fn bytes(&self) -> u64 {
        match self {
            Self::Blocks(blocks, _) => blocks.bytes(),
            Self::Rest(rest) => rest.end - rest.start,
        }
    }

    fn places(self) -> Box<dyn Iterator<Item = Range<u64>>> {
        match self {
            Self::Blocks(blocks, base) => {
                Box::new(blocks.places().map(move |place| base + place.start..base + place.end))
            }
            Self::Rest(rest) => Box::new(std::iter::once(rest)),
        }
    }
}

/// What this host writes of a file for all: what its workers have of it by the first stream that shares it. The first host also writes
/// what is before and behind the parts of all.
fn parts(plan: &Plan, target: usize) -> Result<Vec<Parts>, Failure> {
    let mut all = plan.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams);
    let sharing = |s: &&Stream| s.shared.is_some() && s.targets.contains(&target);
    let bytes = plan.targets[target].bytes;
    let Some((stream, shared)) = all.find(sharing).and_then(|s| Some((s, s.shared?))) else {
        return Ok(vec![Parts::Rest(0..bytes)]);
    };
    of_stream((stream, shared), bytes, plan.part.unwrap_or(Part { rank: 0, hosts: 1, neighbours: 0 }))
        .map_err(Failure::Usage)
}

fn of_stream((stream, shared): (&Stream, Shared), bytes: u64, part: Part) -> Result<Vec<Parts>, String> {
    let (workers, base) = (u64::from(stream.workers), stream.access.offset_bytes.min(bytes));
    let tasks = u64::from(part.hosts) * workers;
    let span = (bytes - base).min(stream.access.span_bytes);
    let mut parts = Vec::new();
    let mut whole = 0;
    for worker in 0..workers {
        let own = own_blocks((stream, shared), span, (u64::from(part.rank) * workers + worker, tasks))?;
        whole = own.bytes() * tasks;
        parts.push(Parts::Blocks(own, base));
    }
    if part.rank == 0 {
        parts.extend([Parts::Rest(0..base), Parts::Rest(base + whole..bytes)]);
    }
    Ok(parts)
}

#[test]
fn all_hosts_write_each_byte_of_the_file_once() {
    use model::job::{Access, Layout, Pattern};
    let bytes = 1 << 20;
    for layout in [Layout::Segmented, Layout::Strided, Layout::Blocks(20_000)] {
        let mut stream = Stream::plain(Access::plain(Pattern::Sequential, 10_000, 100), 1, 3, "sync");
        (stream.access.offset_bytes, stream.access.span_bytes) = (70_000, u64::MAX);
        let mut written = vec![0_u8; bytes as usize];
        for rank in 0..2 {
            let part = Part { rank, hosts: 2, neighbours: 0 };
            let parts = of_stream((&stream, Shared { layout, passes: None }), bytes, part)
                .unwrap_or_else(|why| panic!("{why}"));
            for byte in parts.into_iter().flat_map(Parts::places).flatten() {
                written[byte as usize] += 1;
            }
        }
        assert!(written.iter().all(|times| *times == 1), "{layout:?}");
    }
}
