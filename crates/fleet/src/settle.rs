//! Turns the plans that the hosts made on their own machines into one plan for all.
//!
//! 1. Refuses options that only work on one host, and plans that differ in targets, jobs or cache mode.
//! 2. Narrows the jobs to what every host can do: the smallest target, an engine that all hosts have.
//! 3. Lists the differences between hosts, such as kernels and devices.
//! 4. Assigns files: which host makes each shared file, which hosts open it, and which part of it each worker has.

use engine::source::own_blocks;
use model::fleet::FleetRank;
use model::job::{Job, Stream};
use model::machine::Machine;
use model::plan::{MadeFor, Origin, Plan, Planned, Role, Target};
use model::units::show_bytes;
use std::collections::BTreeMap;

/// The origin `fleet`: another host decided the setting.
const FLEET: &str = "fleet";
/// Name of the setting that each host decides for itself.
const TARGET: &str = "TARGET";

/// The plans of all hosts.
#[derive(Debug)]
pub(super) struct Settled {
    /// Plans by rank.
    pub(super) plans: Vec<Plan>,
    /// The differences between the hosts, in sentences.
    pub(super) differences: Vec<String>,
}

/// Settles one plan for all hosts. All arguments are by rank; `neighbours` is the number of other ranks on the same kernel.
///
/// # Errors
/// Why the hosts cannot measure together.
pub(super) fn settle(names: &[String], neighbours: &[u32], planned: &[Planned]) -> Result<Settled, String> {
    let Some(first) = planned.first() else { return Err("no host has sent a plan".into()) };
    let mut streams = first.plan.jobs.iter().flat_map(|job| &job.phases).flat_map(|phase| &phase.streams);
    if let Some(what) = streams.find_map(single_host_feature) {
        return Err(format!(
            "{what}, and the launcher started several processes; remove that setting, or start fathom on one host without the launcher"
        ));
    }
    if let Some(steps) = first.plan.study.hosts()
        && let Some(most) = steps.hosts.last().filter(|most| **most as usize > planned.len())
    {
        return Err(format!(
            "--hosts {most}: only {} hosts were started; start {most} hosts, or remove {most} from --hosts",
            planned.len()
        ));
    }
    let mut differences = Vec::new();
    let mut jobs = first.plan.jobs.clone();
    for (name, other) in names.iter().zip(planned).skip(1) {
        same_targets(&names[0], &first.plan, name, &other.plan)?;
        narrow(&mut jobs, &other.plan.jobs, &names[0], name, &mut differences)?;
    }
    let least: Vec<u64> = (0..first.plan.targets.len()).map(|at| least_bytes(planned, at)).collect();
    differences.extend(host_differences(names, planned));
    let hosts = planned.len() as u32;
    let plans = planned.iter().zip(0..).map(|(own, rank)| Plan {
        targets: own
            .plan
            .targets
            .iter()
            .zip(&least)
            .map(|(target, bytes)| {
                let mut target = target.clone();
                if target.role == Role::Made {
                    target.bytes = *bytes;
                }
                target
            })
            .collect(),
        jobs: jobs.clone(),
        origins: origins(&first.plan, &own.plan, rank, hosts, &names[rank as usize]),
        fleet_rank: Some(FleetRank {
            rank,
            hosts,
            neighbours: neighbours.get(rank as usize).copied().unwrap_or(0),
        }),
        ..first.plan.clone()
    });
    let mut plans: Vec<Plan> = plans.collect();
    assign_files(&mut plans)?;
    Ok(Settled { plans, differences })
}

/// Returns a text about the first setting of the stream that works only on one host; `None` if all
/// settings work on several hosts.
fn single_host_feature(stream: &Stream) -> Option<&'static str> {
    let all = [
        (stream.replay.is_some(), "a capture can be replayed only on one host"),
        (stream.latency_target.is_some(), "latency-target works on one host only"),
        (stream.steady.is_some(), "steady-state works on one host only"),
    ];
    all.into_iter().find_map(|(is_given, what)| is_given.then_some(what))
}

/// Returns the size in bytes of the target with the index `at`, on the host where it is the smallest.
fn least_bytes(planned: &[Planned], at: usize) -> u64 {
    planned.iter().filter_map(|p| p.plan.targets.get(at)).map(|t| t.bytes).min().unwrap_or(0)
}

/// Refuses plans that differ in the number of targets or in their kinds.
fn same_targets(our_name: &str, one: &Plan, their_name: &str, other: &Plan) -> Result<(), String> {
    if one.targets.len() != other.targets.len() {
        return Err(format!(
            "{our_name} and {their_name} have different numbers of targets ({} and {}), perhaps because two names lead to the same file on one of the hosts; name the same number of targets on all hosts",
            one.targets.len(),
            other.targets.len()
        ));
    }
    for (here, there) in one.targets.iter().zip(&other.targets) {
        if here.role != there.role {
            let word = |role| match role {
                Role::Made => "a directory",
                Role::File => "a file",
                Role::Device => "a block device",
                Role::None => "nothing",
            };
            return Err(format!(
                "{} is {} on {our_name} and {} is {} on {their_name}; name the same kind of target on all hosts",
                here.path,
                word(here.role),
                there.path,
                word(there.role)
            ));
        }
    }
    Ok(())
}

/// Limits the jobs to what another host can do: to the spans of the other host's jobs, and to an engine that it has. Fails if that host
/// would measure other jobs, or with another cache mode.
fn narrow(
    jobs: &mut [Job],
    others: &[Job],
    our_name: &str,
    their_name: &str,
    differences: &mut Vec<String>,
) -> Result<(), String> {
    let shape = |jobs: &[Job]| -> Vec<Vec<usize>> {
        jobs.iter().map(|j| j.phases.iter().map(|p| p.streams.len()).collect()).collect()
    };
    if shape(jobs) != shape(others) {
        return Err(format!(
            "{our_name} and {their_name} would measure different jobs; give all hosts the same job file, and limit a grid to cells that all hosts can measure (--list shows the cells)"
        ));
    }
    let theirs = others.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams);
    let ours = jobs.iter_mut().flat_map(|j| &mut j.phases).flat_map(|p| &mut p.streams);
    for (mine, its) in ours.zip(theirs) {
        if mine.cache != its.cache {
            return Err(format!(
                "{our_name} would measure with --cache {} and {their_name} with --cache {}; type --cache to choose one",
                mine.cache.word(),
                its.cache.word()
            ));
        }
        if mine.engine != its.engine {
            // The engine that replaces a denied engine works on all hosts, but the denied engine does not.
            let is_mine = mine.engine_fallback.is_some();
            let on_all = if is_mine { &mine.engine } else { &its.engine };
            note_difference(
                differences,
                format!(
                    "{our_name} would use the engine {}, and {their_name} {}; all use {on_all}",
                    mine.engine, its.engine
                ),
            );
            if !is_mine {
                (mine.engine, mine.options, mine.batch) =
                    (its.engine.clone(), its.options.clone(), its.batch);
                mine.engine_fallback.clone_from(&its.engine_fallback);
            }
        }
        let (here, there) = (mine.access.span_bytes, its.access.span_bytes);
        if here != there {
            let least = show_bytes(here.min(there));
            note_difference(
                differences,
                format!(
                    "{our_name} could use a span of {} and {their_name} one of {}: all use {least}",
                    show_bytes(here),
                    show_bytes(there)
                ),
            );
            mine.access.span_bytes = here.min(there);
        }
    }
    Ok(())
}

/// Adds a difference, unless the list already has it.
fn note_difference(differences: &mut Vec<String>, sentence: String) {
    if !differences.contains(&sentence) {
        differences.push(sentence);
    }
}

/// Returns the settings of rank 0, with the targets of this host. A setting that this host would have decided differently gets the origin
/// `fleet`.
fn origins(first: &Plan, own: &Plan, rank: u32, hosts: u32, name: &str) -> Vec<Origin> {
    let part = Origin {
        setting: "host".into(),
        value: format!("{name}, {} of {hosts}", rank + 1),
        from: "launcher".into(),
    };
    let targets = own.origins.iter().filter(|o| o.setting == TARGET).cloned();
    let settled = first.origins.iter().filter(|o| o.setting != TARGET).map(|o| {
        let is_own = own.origins.iter().any(|mine| (&mine.setting, &mine.value) == (&o.setting, &o.value));
        if is_own { o.clone() } else { Origin { from: FLEET.into(), ..o.clone() } }
    });
    std::iter::once(part).chain(targets).chain(settled).collect()
}

/// The name of a property of a machine, and the function that returns the property's values.
type Fact = (&'static str, fn(&Machine) -> Vec<String>);

/// Returns the differences between the hosts: for each property that differs, every value with the hosts that have it.
fn host_differences(names: &[String], planned: &[Planned]) -> Vec<String> {
    let facts: [Fact; 6] = [
        ("the kernel", |m| vec![m.kernel.clone()]),
        ("the number of CPUs", |m| vec![m.cpus.to_string()]),
        ("memory", |m| m.memory_bytes.iter().map(|b| show_bytes(b >> 20 << 20)).collect()),
        ("the file system", |m| {
            m.places.iter().filter_map(|p| Some(p.file_system.as_ref()?.kind.clone())).collect()
        }),
        ("the list of mount options", |m| {
            m.places.iter().filter_map(|p| Some(p.file_system.as_ref()?.options.clone())).collect()
        }),
        ("the device", |m| {
            m.places
                .iter()
                .flat_map(|p| {
                    p.lowest_layers().map(|l| {
                        format!(
                            "{} of {}",
                            l.model.clone().unwrap_or_else(|| l.name.clone()),
                            show_bytes(l.bytes)
                        )
                    })
                })
                .collect()
        }),
    ];
    facts
        .into_iter()
        .filter_map(|(what, read)| {
            let mut hosts_by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for (name, own) in names.iter().zip(planned) {
                hosts_by_value.entry(read(&own.machine).join("; ")).or_default().push(name);
            }
            let each = |(value, names): (String, Vec<&str>)| {
                let value = if value.is_empty() { "unknown".to_owned() } else { value };
                format!("{value} ({})", names.join(", "))
            };
            (hosts_by_value.len() > 1).then(|| {
                let all: Vec<String> = hosts_by_value.into_iter().map(each).collect();
                format!("{what} differs between hosts: {}", all.join("; "))
            })
        })
        .collect()
}

#[cfg(test)]
pub(super) fn planned(engine: &str, span_bytes: u64, kernel: &str) -> Planned {
    use model::job::{Access, Pattern, Phase};
    let target = serde_json::json!({"path": format!("/data of {kernel}"), "role": "made", "bytes": span_bytes, "block_bytes": 512, "writable": true});
    let origin = |setting: &str, value: String| serde_json::json!({"setting": setting, "value": value, "from": "default"});
    let plan = serde_json::json!({
        "command": ["fathom"], "title": "run", "targets": [target], "jobs": [], "headline": 0, "runs": 3, "seed": 7, "cold": true, "baseline_ns": 0,
        "origins": [origin("TARGET", kernel.into()), origin("--engine", engine.into()), origin("--bs", "4 KiB".into())]
    });
    let mut plan: Plan = serde_json::from_str(&plan.to_string()).unwrap_or_else(|e| panic!("{e}"));
    let mut stream = Stream::plain(Access::plain(Pattern::Random, 4096, 100), 4, 1, engine);
    stream.access.span_bytes = span_bytes;
    let phase = Phase { warmup_ns: 0, time_ns: 1, cooldown_ns: 0, streams: vec![stream] };
    plan.jobs = vec![Job { name: "read".into(), phases: vec![phase] }];
    let no = || "not asked".to_owned();
    let machine = Machine {
        host: kernel.into(),
        kernel: kernel.into(),
        cpu: Err(no()),
        cpus: 2,
        memory_bytes: Err(no()),
        virtual_by: Err(no()),
        clocksource: Err(no()),
        user_id: 0,
        cgroup: Err(no()),
        facts: BTreeMap::new(),
        places: Vec::new(),
    };
    Planned { plan, machine }
}

/// Option for the size of files that fathom makes.
const SIZE: &str = "--size";
/// Origin of a setting that has its default.
const DEFAULT: &str = "default";

/// Assigns in the plans of all hosts which host makes each file and which hosts open it. The plans are by rank.
///
/// # Errors
///
/// If a worker would have no part of a file, or a host would read its own files despite `--shift-hosts`.
pub(super) fn assign_files(plans: &mut [Plan]) -> Result<(), String> {
    size_common_files(plans);
    shift_targets(plans)?;
    for plan in plans {
        fit_parts(plan)?;
    }
    Ok(())
}

/// Makes the first host create the files that all hosts share. Multiplies a default size by the number of hosts.
fn size_common_files(plans: &mut [Plan]) {
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
                origin.value = format!("{}, divided among the hosts", show_bytes(bytes));
                origin.from = format!("{DEFAULT}: {} for each host", show_bytes(one.bytes));
            }
        }
    }
}

/// For streams that work on files of other hosts, adds these files as targets after the targets of the host itself.
fn shift_targets(plans: &mut [Plan]) -> Result<(), String> {
    let (hosts, made) = (plans.len(), plans.iter().map(|p| p.targets.clone()).collect::<Vec<_>>());
    let (Some(first), Some(own)) = (plans.first(), made.first()) else { return Ok(()) };
    let all = first.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams);
    let mut opened: Vec<(usize, usize)> = Vec::new();
    for stream in all.filter(|s| s.shift_hosts > 0) {
        let by = stream.shift_hosts as usize % hosts;
        if by == 0 {
            return Err(format!(
                "--shift-hosts {}: with {hosts} hosts, each would get its own file; use a number that is not a multiple of {hosts}",
                stream.shift_hosts
            ));
        }
        if own.iter().any(|t| t.role == Role::None) {
            return Err(
                "--shift-hosts cannot be combined with a stream that has no target; give every stream a target, or remove --shift-hosts"
                    .into(),
            );
        }
        let files = stream.targets.iter().filter(|at| own.get(**at).is_some_and(is_own_file));
        for pair in files.map(|at| (*at, by)) {
            if !opened.contains(&pair) {
                opened.push(pair);
            }
        }
    }
    let first_shifted = own.len();
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
        for target in plan.targets.iter_mut().take(first_shifted).filter(|t| is_own_file(t)) {
            if let Some(common) = &mut target.common {
                common.maker = rank as u32;
            }
        }
        for stream in streams(plan).filter(|s| s.shift_hosts > 0) {
            let by = stream.shift_hosts as usize % hosts;
            for target in &mut stream.targets {
                if let Some(at) = opened.iter().position(|pair| *pair == (*target, by)) {
                    *target = first_shifted + at;
                }
            }
        }
    }
    Ok(())
}

/// Returns whether a target is a file that its host makes and that other hosts open by name.
fn is_own_file(target: &Target) -> bool {
    target.role == Role::Made && target.made_for != MadeFor::All && target.common.is_some()
}

/// Sets the byte limit of each stream whose workers share a file: the bytes of the workers' blocks
/// in all passes, or the stream's own limit if that is smaller.
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
            let own = own_blocks(stream, shared, span, plan.first_task(job, stream))?;
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

/// Adds the devices and locations of files that other hosts make, copied from this host's target with the same path.
pub(super) fn add_places(plan: &Plan, machine: &mut Machine) {
    for target in plan.targets.iter().skip(machine.places.len()).filter(|t| t.role != Role::None) {
        let same = plan.targets.iter().position(|t| t.path == target.path);
        machine.places.extend(same.and_then(|at| machine.places.get(at)).cloned());
    }
}

#[test]
fn plan_is_narrowed_to_what_each_host_can_do() {
    let names = ["a".to_owned(), "b".to_owned()];
    let all = [planned("io_uring", 2 << 30, "6.1"), planned("sync", 1 << 30, "5.4")];
    let Settled { plans, differences } = settle(&names, &[0, 0], &all).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(plans[0].jobs, plans[1].jobs);
    let stream = &plans[1].jobs[0].phases[0].streams[0];
    assert_eq!((stream.engine.as_str(), stream.access.span_bytes), ("sync", 1 << 30));
    assert!(plans.iter().all(|p| p.targets[0].bytes == 1 << 30 && p.seed == 7));
    assert!(plans[0].host_seed() == 7 && plans[1].host_seed() != 7, "the hosts read different blocks");
    assert_eq!(plans[1].targets[0].path, "/data of 5.4", "each host has its own targets");
    let from = |plan: &Plan, setting: &str| {
        plan.origins.iter().find(|o| o.setting == setting).map(|o| o.from.clone())
    };
    assert_eq!(from(&plans[1], "--engine").as_deref(), Some(FLEET));
    assert_eq!(from(&plans[1], "--bs").as_deref(), Some("default"));
    assert_eq!(from(&plans[0], "--engine").as_deref(), Some("default"));
    let mentions = |words: &str| differences.iter().any(|d| d.contains(words));
    assert!(
        mentions("the engine io_uring, and b sync; all use sync")
            && mentions("all use 1 GiB")
            && mentions("the kernel differs"),
        "{differences:?}"
    );
}

#[test]
fn an_engine_denied_on_one_host_is_used_on_none() {
    let names = ["a".to_owned(), "b".to_owned()];
    let denied = || {
        let mut own = planned("libaio", 1 << 30, "6.1");
        own.plan.jobs[0].phases[0].streams[0].engine_fallback =
            Some(model::job::EngineFallback { wanted: "io_uring".into(), cause: "a filter".into() });
        own
    };
    for all in
        [[planned("io_uring", 1 << 30, "6.1"), denied()], [denied(), planned("io_uring", 1 << 30, "6.1")]]
    {
        let Settled { plans, .. } = settle(&names, &[0, 0], &all).unwrap_or_else(|why| panic!("{why}"));
        for plan in plans {
            let stream = &plan.jobs[0].phases[0].streams[0];
            assert!(stream.engine == "libaio" && stream.engine_fallback.is_some(), "{stream:?}");
        }
    }
}

#[test]
fn different_plans_are_refused() {
    let names = ["a".to_owned(), "b".to_owned()];
    let refusal = |change: fn(&mut Plan)| {
        let mut all = [planned("sync", 1 << 30, "6.1"), planned("sync", 1 << 30, "6.1")];
        change(&mut all[1].plan);
        settle(&names, &[0, 0], &all).err().unwrap_or_default()
    };
    assert_eq!(refusal(|_| {}), "");
    assert!(refusal(|p| p.targets[0].role = Role::File).contains("is a directory on a"));
    assert!(refusal(|p| p.targets.clear()).contains("different numbers of targets (1 and 0)"));
    assert!(refusal(|p| p.jobs.clear()).contains("different jobs"));
    let cached = refusal(|p| p.jobs[0].phases[0].streams[0].cache = model::job::Cache::Buffered);
    assert!(cached.contains("type --cache"), "{cached}");
}

#[test]
fn options_of_a_single_host_are_refused() {
    use model::job::{Quantity, Steady};
    let mut all = [planned("sync", 1 << 30, "6.1"), planned("sync", 1 << 30, "6.1")];
    let steady = Steady {
        quantity: Quantity::Iops,
        slope: false,
        limit: 10.0,
        percent: true,
        window_ns: 60_000_000_000,
        after_ns: 0,
        every_ns: 1_000_000_000,
    };
    for own in &mut all {
        own.plan.jobs[0].phases[0].streams[0].steady = Some(steady);
    }
    let refused = settle(&["a".to_owned(), "b".to_owned()], &[0, 0], &all).err().unwrap_or_default();
    assert!(refused.starts_with("steady-state works on one host"), "{refused}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::fleet::FleetRank;
    use model::job::{Access, Job, Layout, Pattern, Phase, Shared};
    use model::plan::Origin;

    const MIB: u64 = 1 << 20;

    /// The plans of several hosts, each with its own files and one common file, before assignment.
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
            plan.fleet_rank = Some(FleetRank { rank, hosts, neighbours: 0 });
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
        assign_files(&mut plans).map(|()| plans)
    }

    fn file_of(plan: &Plan, at: usize) -> (&str, u32) {
        plan.common(at).map_or(("", 0), |common| (common.name.as_str(), common.maker))
    }

    #[test]
    fn shared_file_belongs_to_the_first_host() {
        let shared =
            Stream { shared: Some(Shared { layout: Layout::Strided, passes: Some(2) }), ..stream(1) };
        let plans = assigned(3, std::slice::from_ref(&shared)).unwrap_or_else(|why| panic!("{why}"));
        for (rank, plan) in (0..).zip(&plans) {
            assert_eq!((file_of(plan, 0).1, file_of(plan, 1)), (rank, ("of 0, 1", 0)));
            // Each of six workers gets ten of the 64 blocks.
            assert_eq!(plan.jobs[0].phases[0].streams[0].limit.bytes, Some(2 * 2 * 10 * MIB));
            assert_eq!(plan.targets[1].bytes, 64 * MIB, "the user gave the size");
        }
        let tasks = |stream: &Stream| -> Vec<(u64, u64)> {
            plans.iter().map(|p| p.first_task(0, stream)).map(|task| (task.index, task.count)).collect()
        };
        assert_eq!(tasks(&shared), [(0, 6), (2, 6), (4, 6)]);
        let shifted = Stream { shift_hosts: 1, ..shared };
        assert_eq!(tasks(&shifted), [(2, 6), (4, 6), (0, 6)]);
    }

    #[test]
    fn default_size_of_a_shared_file_grows_with_the_hosts() {
        let shared = Stream { shared: Some(Shared { layout: Layout::Segmented, passes: None }), ..stream(1) };
        let mut plans = plans(3, &[shared, stream(0)]);
        for plan in &mut plans {
            plan.origins.push(Origin {
                setting: "--size".into(),
                value: "64 MiB".into(),
                from: "default".into(),
            });
        }
        assign_files(&mut plans).unwrap_or_else(|why| panic!("{why}"));
        let streams = &plans[2].jobs[0].phases[0].streams;
        assert_eq!((plans[2].targets[1].bytes, streams[0].access.span_bytes), (192 * MIB, 192 * MIB));
        assert_eq!((plans[2].targets[0].bytes, streams[1].access.span_bytes), (64 * MIB, 64 * MIB));
        assert!(plans[0].origins[0].value.starts_with("192 MiB"), "{:?}", plans[0].origins);
    }

    #[test]
    fn shifted_streams_read_the_file_of_another_host() {
        let streams =
            [stream(0), Stream { shift_hosts: 1, ..stream(0) }, Stream { shift_hosts: 4, ..stream(0) }];
        let plans = assigned(3, &streams).unwrap_or_else(|why| panic!("{why}"));
        for (rank, plan) in (0..3).zip(&plans) {
            let next = (rank + 1) % 3;
            assert_eq!(file_of(plan, 0), (format!("of {rank}, 0").as_str(), rank));
            assert_eq!(file_of(plan, 2), (format!("of {next}, 0").as_str(), next), "opened, not made");
            assert_eq!(plan.targets.len(), 3, "with three hosts, shifts of 4 and of 1 lead to the same host");
            let targets: Vec<usize> = plan.jobs[0].phases[0].streams.iter().map(|s| s.targets[0]).collect();
            assert_eq!(targets, [0, 2, 2]);
        }
        let own = assigned(2, &[Stream { shift_hosts: 2, ..stream(0) }]).err().unwrap_or_default();
        assert!(own.contains("not a multiple of 2"), "{own}");
    }

    #[test]
    fn a_shared_file_without_a_block_per_worker_is_refused() {
        let shared = Stream { shared: Some(Shared { layout: Layout::Segmented, passes: None }), ..stream(1) };
        let refused = assigned(33, &[shared]).err().unwrap_or_default();
        assert!(refused.contains("cannot give each of 66 workers a block"), "{refused}");
    }
}
