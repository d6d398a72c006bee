//! Files of all hosts: who makes which, whose one host opens, and which part of a shared one is written by whom.
//!
//! For: what the settled plans say of made files that other hosts open too. Pure. Not for: waiting until these are there
//! ([`super::made`]), making and opening them (`crate::target`), nor where blocks lie (`model::job::OwnBlocks`).

use engine::source::own_blocks;
use model::job::Stream;
use model::machine::Machine;
use model::plan::{MadeFor, Plan, Role, Target};
use model::units::show_bytes;

/// The setting of a made file's size.
const SIZE: &str = "--size";
/// Where a setting came from that nobody said.
const DEFAULT: &str = "default";

/// Says in the plans of all hosts, by rank, who makes which file and who opens it.
///
/// # Errors
/// Where a part or a file would be nobody's, or everybody's own after all.
pub(super) fn assign(plans: &mut [Plan]) -> Result<(), String> {
    one_for_all(plans);
    shift(plans)?;
    for plan in plans {
        fit_parts(plan)?;
    }
    Ok(())
}

/// A file that all share is that of the first host; where nothing was said of its size it has for each host what a file of its own has.
fn one_for_all(plans: &mut [Plan]) {
    let hosts = plans.len() as u64;
    let Some(first) = plans.first().map(|plan| plan.targets.clone()) else { return };
    let grows = |plan: &Plan| plan.origins.iter().any(|o| o.setting.ends_with(SIZE) && o.from == DEFAULT);
    for (at, one) in first.iter().enumerate().filter(|(_, one)| one.made_for == MadeFor::All) {
        for plan in plans.iter_mut() {
            let bytes = if grows(plan) { one.bytes.saturating_mul(hosts) } else { one.bytes };
            if let Some(target) = plan.targets.get_mut(at) {
                (target.common, target.bytes) = (one.common.clone(), bytes);
            }
            for stream in
                streams(plan).filter(|s| s.targets.contains(&at) && s.access.span_bytes == one.bytes)
            {
                stream.access.span_bytes = bytes;
            }
            for origin in plan.origins.iter_mut().filter(|o| o.setting.ends_with(SIZE) && o.from == DEFAULT) {
                origin.value = format!("{}, of which each host has its part", show_bytes(bytes));
                origin.from = format!("{DEFAULT}: {} for each host", show_bytes(one.bytes));
            }
        }
    }
}

/// Gives streams that work on the files of other hosts these as targets, behind those that each host makes.
fn shift(plans: &mut [Plan]) -> Result<(), String> {
    let (hosts, made) = (plans.len(), plans.iter().map(|p| p.targets.clone()).collect::<Vec<_>>());
    let (Some(first), Some(own)) = (plans.first(), made.first()) else { return Ok(()) };
    let all = first.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams);
    let mut opened: Vec<(usize, usize)> = Vec::new();
    for stream in all.filter(|s| s.shift_hosts > 0) {
        let by = stream.shift_hosts as usize % hosts;
        if by == 0 {
            return Err(format!(
                "--shift-hosts {}: of {hosts} hosts the one so far on is each host itself; use a number that is no multiple of {hosts}",
                stream.shift_hosts
            ));
        }
        if own.iter().any(|t| t.role == Role::None) {
            return Err("--shift-hosts does not go with a stream that touches nothing beside it; leave one of them out".into());
        }
        let files = stream.targets.iter().filter(|at| own.get(**at).is_some_and(is_its_hosts));
        for pair in files.map(|at| (*at, by)) {
            if !opened.contains(&pair) {
                opened.push(pair);
            }
        }
    }
    let behind = own.len();
    for (rank, plan) in plans.iter_mut().enumerate() {
        for (at, by) in &opened {
            let maker = (rank + by) % hosts;
            let (Some(theirs), Some(here)) = (made[maker].get(*at), made[rank].get(*at)) else { continue };
            let mut target =
                Target { path: here.path.clone(), identity: here.identity.clone(), ..theirs.clone() };
            if let Some(common) = &mut target.common {
                common.maker = maker as u32;
            }
            plan.targets.push(target);
        }
        for target in plan.targets.iter_mut().take(behind).filter(|t| is_its_hosts(t)) {
            if let Some(common) = &mut target.common {
                common.maker = rank as u32;
            }
        }
        for stream in streams(plan).filter(|s| s.shift_hosts > 0) {
            let by = stream.shift_hosts as usize % hosts;
            for target in &mut stream.targets {
                if let Some(at) = opened.iter().position(|pair| *pair == (*target, by)) {
                    *target = behind + at;
                }
            }
        }
    }
    Ok(())
}

/// Whether a target is a file that its host makes, and that others find by its name.
fn is_its_hosts(target: &Target) -> bool {
    target.role == Role::Made && target.made_for != MadeFor::All && target.common.is_some()
}

/// Ends streams that share a file by passes over the part that each of so many workers has.
fn fit_parts(plan: &mut Plan) -> Result<(), String> {
    let tasks: Vec<(usize, Option<u64>)> = (0..plan.jobs.len())
        .flat_map(|job| {
            let of_job = plan.jobs[job].phases.iter().flat_map(|p| &p.streams);
            of_job.map(move |stream| (job, stream)).collect::<Vec<_>>()
        })
        .map(|(job, stream)| {
            let Some(shared) = stream.shared else { return Ok((job, stream.limit.bytes)) };
            let there = stream.targets.first().and_then(|t| plan.targets.get(*t)).map_or(0, |t| t.bytes);
            let span = there.saturating_sub(stream.access.offset_bytes).min(stream.access.span_bytes);
            let own = own_blocks((stream, shared), span, plan.tasks(job, stream))?;
            Ok((job, stream.limit_of_parts(own.bytes())))
        })
        .collect::<Result<_, String>>()?;
    for (stream, (_, bytes)) in streams(plan).zip(tasks) {
        stream.limit.bytes = bytes;
    }
    Ok(())
}

fn streams(plan: &mut Plan) -> impl Iterator<Item = &mut Stream> {
    plan.jobs.iter_mut().flat_map(|j| &mut j.phases).flat_map(|p| &mut p.streams)
}

/// The places of files that other hosts make: they are where those are that this host makes in the same directory.
pub(super) fn places(plan: &Plan, machine: &mut Machine) {
    for target in plan.targets.iter().skip(machine.places.len()).filter(|t| t.role != Role::None) {
        let same = plan.targets.iter().position(|t| t.path == target.path);
        machine.places.extend(same.and_then(|at| machine.places.get(at)).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::fleet::Part;
    use model::job::{Access, Job, Layout, Pattern, Phase, Shared};
    use model::plan::Origin;

    const MIB: u64 = 1 << 20;

    /// The plans of so many hosts, each with files of its own and one for all, before anything is assigned.
    fn plans(hosts: u32, streams: &[Stream]) -> Vec<Plan> {
        let plan = |rank: u32| -> Plan {
            let target = |made_for: &str, n: u32| {
                serde_json::json!({
                    "path": "/d", "role": "made", "bytes": 64 * MIB, "block_bytes": 512, "writable": true, "made_for": made_for,
                    "common": {"name": format!("of {rank}, {n}"), "maker": 0}
                })
            };
            let plan = serde_json::json!({
                "command": [], "title": "run", "targets": [target("host", 0), target("all", 1)], "jobs": [], "headline": 0,
                "runs": 1, "seed": 1, "cold": true, "baseline_ns": 0, "origins": []
            });
            let mut plan: Plan = serde_json::from_str(&plan.to_string()).unwrap_or_else(|e| panic!("{e}"));
            let phase = Phase { warmup_ns: 0, time_ns: 1, cooldown_ns: 0, streams: streams.to_vec() };
            plan.jobs = vec![Job { name: "j".into(), phases: vec![phase] }];
            plan.part = Some(Part { rank, hosts, neighbours: 0 });
            plan
        };
        (0..hosts).map(plan).collect()
    }

    fn stream(target: usize) -> Stream {
        let access = Access { span_bytes: 64 * MIB, ..Access::plain(Pattern::Sequential, 1 << 20, 100) };
        Stream { targets: vec![target], ..Stream::plain(access, 1, 2, "sync") }
    }

    fn assigned(hosts: u32, streams: &[Stream]) -> Result<Vec<Plan>, String> {
        let mut plans = plans(hosts, streams);
        assign(&mut plans).map(|()| plans)
    }

    fn file_of(plan: &Plan, at: usize) -> (&str, u32) {
        plan.common(at).map_or(("", 0), |common| (common.name.as_str(), common.maker))
    }

    #[test]
    fn one_file_for_all_is_that_of_the_first_host() {
        let shared =
            Stream { shared: Some(Shared { layout: Layout::Strided, passes: Some(2) }), ..stream(1) };
        let plans = assigned(3, std::slice::from_ref(&shared)).unwrap_or_else(|why| panic!("{why}"));
        for (rank, plan) in (0..).zip(&plans) {
            assert_eq!((file_of(plan, 0).1, file_of(plan, 1)), (rank, ("of 0, 1", 0)));
            // Of 64 blocks each of six workers has ten.
            assert_eq!(plan.jobs[0].phases[0].streams[0].limit.bytes, Some(2 * 2 * 10 * MIB));
            assert_eq!(plan.targets[1].bytes, 64 * MIB, "its size was said");
        }
        let tasks: Vec<(u64, u64)> = plans.iter().map(|p| p.tasks(0, &shared)).collect();
        assert_eq!(tasks, [(0, 6), (2, 6), (4, 6)]);
        let shifted = Stream { shift_hosts: 1, ..shared };
        let tasks: Vec<(u64, u64)> = plans.iter().map(|p| p.tasks(0, &shifted)).collect();
        assert_eq!(tasks, [(2, 6), (4, 6), (0, 6)]);
    }

    #[test]
    fn a_file_for_all_has_for_each_host_what_nobody_said_otherwise() {
        let shared = Stream { shared: Some(Shared { layout: Layout::Segmented, passes: None }), ..stream(1) };
        let mut plans = plans(3, &[shared, stream(0)]);
        for plan in &mut plans {
            plan.origins.push(Origin {
                setting: "--size".into(),
                value: "64 MiB".into(),
                from: "default".into(),
            });
        }
        assign(&mut plans).unwrap_or_else(|why| panic!("{why}"));
        let streams = &plans[2].jobs[0].phases[0].streams;
        assert_eq!((plans[2].targets[1].bytes, streams[0].access.span_bytes), (192 * MIB, 192 * MIB));
        assert_eq!((plans[2].targets[0].bytes, streams[1].access.span_bytes), (64 * MIB, 64 * MIB));
        assert!(plans[0].origins[0].value.starts_with("192 MiB"), "{:?}", plans[0].origins);
    }

    #[test]
    fn what_is_read_of_another_host_is_that_hosts_file() {
        let streams =
            [stream(0), Stream { shift_hosts: 1, ..stream(0) }, Stream { shift_hosts: 4, ..stream(0) }];
        let plans = assigned(3, &streams).unwrap_or_else(|why| panic!("{why}"));
        for (rank, plan) in (0..3).zip(&plans) {
            let next = (rank + 1) % 3;
            assert_eq!(file_of(plan, 0), (format!("of {rank}, 0").as_str(), rank));
            assert_eq!(file_of(plan, 2), (format!("of {next}, 0").as_str(), next), "opened, not made");
            assert_eq!(plan.targets.len(), 3, "four hosts on and one are the same of three");
            let targets: Vec<usize> = plan.jobs[0].phases[0].streams.iter().map(|s| s.targets[0]).collect();
            assert_eq!(targets, [0, 2, 2]);
        }
        let own = assigned(2, &[Stream { shift_hosts: 2, ..stream(0) }]).err().unwrap_or_default();
        assert!(own.contains("no multiple of 2"), "{own}");
    }

    #[test]
    fn a_file_too_small_for_a_block_of_each_worker_is_refused() {
        let shared = Stream { shared: Some(Shared { layout: Layout::Segmented, passes: None }), ..stream(1) };
        let refused = assigned(33, &[shared]).err().unwrap_or_default();
        assert!(refused.contains("no block for each of 66 workers"), "{refused}");
    }
}
