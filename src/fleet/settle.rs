//! Settling: what each host planned on its own machine, made one plan.
//!
//! For: what must agree, decided once and told with its origin; what cannot be measured together, refused; what differs, said. Pure. Not
//! for: planning (`crate::plan`), nor sending.

use super::files;
use super::letter::Planned;
use model::fleet::Part;
use model::job::{Job, Stream};
use model::machine::Machine;
use model::plan::{Origin, Plan, Role};
use model::study::Study;
use model::units::show_bytes;
use std::collections::BTreeMap;

/// Where a setting came from that all hosts have alike because one of them said so.
const FLEET: &str = "fleet";
/// The setting that is each host's own.
const TARGET: &str = "TARGET";

/// What all hosts are to do.
#[derive(Debug)]
pub(super) struct Settled {
    /// By rank.
    pub(super) plans: Vec<Plan>,
    /// What differs between the hosts, in sentences.
    pub(super) differences: Vec<String>,
}

/// Makes one plan of all. Names, how many others are on the same kernel, and plans are by rank.
///
/// # Errors
/// What cannot be measured together.
pub(super) fn settle(names: &[String], neighbours: &[u32], planned: &[Planned]) -> Result<Settled, String> {
    let Some(first) = planned.first() else { return Err("no host has planned anything".into()) };
    let mut streams = first.plan.jobs.iter().flat_map(|job| &job.phases).flat_map(|phase| &phase.streams);
    if let Some(what) = streams.find_map(of_one_host) {
        return Err(format!(
            "{what}, and several were started; leave it out, or start fathom on one host without the launcher"
        ));
    }
    if let Study::Hosts(steps) = &first.plan.study
        && let Some(most) = steps.hosts.last().filter(|most| **most as usize > planned.len())
    {
        return Err(format!(
            "--hosts {most}: {} hosts were started; start as many, or leave that number out",
            planned.len()
        ));
    }
    let mut differences = Vec::new();
    let mut jobs = first.plan.jobs.clone();
    for (name, other) in names.iter().zip(planned).skip(1) {
        same_targets((&names[0], &first.plan), (name, &other.plan))?;
        narrow(&mut jobs, &other.plan.jobs, (&names[0], name), &mut differences)?;
    }
    let made: Vec<u64> = (0..first.plan.targets.len()).map(|at| least_bytes(planned, at)).collect();
    differences.extend(unlike(names, planned));
    let hosts = planned.len() as u32;
    let plans = planned.iter().zip(0..).map(|(own, rank)| Plan {
        targets: own
            .plan
            .targets
            .iter()
            .zip(&made)
            .map(|(target, bytes)| {
                let mut target = target.clone();
                if target.role == Role::Made {
                    target.bytes = *bytes;
                }
                target
            })
            .collect(),
        jobs: jobs.clone(),
        origins: origins(&first.plan, &own.plan, (rank, hosts), &names[rank as usize]),
        part: Some(Part { rank, hosts, neighbours: neighbours.get(rank as usize).copied().unwrap_or(0) }),
        ..first.plan.clone()
    });
    let mut plans: Vec<Plan> = plans.collect();
    files::assign(&mut plans)?;
    Ok(Settled { plans, differences })
}

/// What each host would do for itself, so that what all of them do is not one load; `None` where there is nothing such.
fn of_one_host(stream: &Stream) -> Option<&'static str> {
    let all = [
        (stream.replay.is_some(), "the replay of a capture is of one host"),
        (stream.latency_target.is_some(), "latency-target finds the depth of one host"),
        (stream.steady.is_some(), "steady-state ends one host when its own rate is steady"),
    ];
    all.into_iter().find_map(|(is_said, what)| is_said.then_some(what))
}

/// The least that a target has on any host.
fn least_bytes(planned: &[Planned], at: usize) -> u64 {
    planned.iter().filter_map(|p| p.plan.targets.get(at)).map(|t| t.bytes).min().unwrap_or(0)
}

/// Refuses hosts that have other kinds of targets.
fn same_targets((a, one): (&str, &Plan), (b, other): (&str, &Plan)) -> Result<(), String> {
    if one.targets.len() != other.targets.len() {
        return Err(format!(
            "{a} has {} targets and {b} has {}: names that lead to one file on one host lead to several on the other; name targets that are alike on all hosts",
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
                "{} is {} on {a} and {} is {} on {b}; name targets that are alike on all hosts",
                here.path,
                word(here.role),
                there.path,
                word(there.role)
            ));
        }
    }
    Ok(())
}

/// Takes back what another host cannot do: the size of its targets, and an engine that it does not have.
fn narrow(
    jobs: &mut [Job],
    others: &[Job],
    (a, b): (&str, &str),
    differences: &mut Vec<String>,
) -> Result<(), String> {
    let shape = |jobs: &[Job]| -> Vec<Vec<usize>> {
        jobs.iter().map(|j| j.phases.iter().map(|p| p.streams.len()).collect()).collect()
    };
    if shape(jobs) != shape(others) {
        return Err(format!(
            "{a} and {b} would measure other jobs; give all hosts the same job file, and of a grid name only what all of them can do (--list shows the cells)"
        ));
    }
    let theirs = others.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams);
    let ours = jobs.iter_mut().flat_map(|j| &mut j.phases).flat_map(|p| &mut p.streams);
    for (mine, its) in ours.zip(theirs) {
        if mine.cache != its.cache {
            return Err(format!(
                "{a} would measure with --cache {} and {b} with --cache {}, which is not the same; type --cache",
                mine.cache.word(),
                its.cache.word()
            ));
        }
        if mine.engine != its.engine {
            // An engine that replaces a denied one works on all hosts, and the denied one does not.
            let is_mine = mine.engine_fallback.is_some();
            let on_all = if is_mine { &mine.engine } else { &its.engine };
            tell(
                differences,
                format!("{a} would use the engine {}, and {b} {}; all use {on_all}", mine.engine, its.engine),
            );
            if !is_mine {
                (mine.engine, mine.options, mine.batch) =
                    (its.engine.clone(), its.options.clone(), its.batch);
                mine.engine_fallback.clone_from(&its.engine_fallback);
            }
        }
        narrow_span(mine, its, (a, b), differences);
    }
    Ok(())
}

fn narrow_span(mine: &mut Stream, its: &Stream, (a, b): (&str, &str), differences: &mut Vec<String>) {
    let (here, there) = (mine.access.span_bytes, its.access.span_bytes);
    if here != there {
        let least = show_bytes(here.min(there));
        tell(
            differences,
            format!("{a} could use {} and {b} {}: all use {least}", show_bytes(here), show_bytes(there)),
        );
        mine.access.span_bytes = here.min(there);
    }
}

/// Each difference is told once.
fn tell(differences: &mut Vec<String>, words: String) {
    if !differences.contains(&words) {
        differences.push(words);
    }
}

/// The settings of rank 0, with the host's own targets; those that the host would have chosen otherwise are the fleet's.
fn origins(first: &Plan, own: &Plan, (rank, hosts): (u32, u32), name: &str) -> Vec<Origin> {
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

/// What a host has of something, by its name.
type Fact = (&'static str, fn(&Machine) -> Vec<String>);

/// What differs between hosts that measure the same: each thing with who has what.
fn unlike(names: &[String], planned: &[Planned]) -> Vec<String> {
    let facts: [Fact; 6] = [
        ("the kernel", |m| vec![m.kernel.clone()]),
        ("the number of CPUs", |m| vec![m.cpus.to_string()]),
        ("memory", |m| m.memory_bytes.iter().map(|b| show_bytes(b >> 20 << 20)).collect()),
        ("the file system", |m| {
            m.places.iter().filter_map(|p| Some(p.file_system.as_ref()?.kind.clone())).collect()
        }),
        ("the mount options", |m| {
            m.places.iter().filter_map(|p| Some(p.file_system.as_ref()?.options.clone())).collect()
        }),
        ("the device", |m| {
            m.places
                .iter()
                .flat_map(|p| {
                    p.leaves().map(|l| {
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
        .filter_map(|(what, of)| {
            let mut who: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for (name, own) in names.iter().zip(planned) {
                who.entry(of(&own.machine).join("; ")).or_default().push(name);
            }
            let each = |(value, names): (String, Vec<&str>)| {
                let value = if value.is_empty() { "unknown".to_owned() } else { value };
                format!("{value} ({})", names.join(", "))
            };
            (who.len() > 1).then(|| {
                let all: Vec<String> = who.into_iter().map(each).collect();
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

#[test]
fn all_get_one_plan_narrowed_to_what_each_can_do() {
    let names = ["a".to_owned(), "b".to_owned()];
    let all = [planned("io_uring", 2 << 30, "6.1"), planned("sync", 1 << 30, "5.4")];
    let Settled { plans, differences } = settle(&names, &[0, 0], &all).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(plans[0].jobs, plans[1].jobs);
    let stream = &plans[1].jobs[0].phases[0].streams[0];
    assert_eq!((stream.engine.as_str(), stream.access.span_bytes), ("sync", 1 << 30));
    assert!(plans.iter().all(|p| p.targets[0].bytes == 1 << 30 && p.seed == 7));
    assert!(plans[0].drawn_by() == 7 && plans[1].drawn_by() != 7, "no host reads what another one reads");
    assert_eq!(plans[1].targets[0].path, "/data of 5.4", "targets are each host's own");
    let from = |plan: &Plan, setting: &str| {
        plan.origins.iter().find(|o| o.setting == setting).map(|o| o.from.clone())
    };
    assert_eq!(from(&plans[1], "--engine").as_deref(), Some(FLEET));
    assert_eq!(from(&plans[1], "--bs").as_deref(), Some("default"));
    assert_eq!(from(&plans[0], "--engine").as_deref(), Some("default"));
    let told = |words: &str| differences.iter().any(|d| d.contains(words));
    assert!(
        told("the engine io_uring, and b sync; all use sync")
            && told("all use 1 GiB")
            && told("the kernel differs"),
        "{differences:?}"
    );
}

#[test]
fn an_engine_that_is_denied_on_one_host_is_used_on_none() {
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
fn what_is_not_the_same_is_refused() {
    let names = ["a".to_owned(), "b".to_owned()];
    let of = |change: fn(&mut Plan)| {
        let mut all = [planned("sync", 1 << 30, "6.1"), planned("sync", 1 << 30, "6.1")];
        change(&mut all[1].plan);
        settle(&names, &[0, 0], &all).err().unwrap_or_default()
    };
    assert_eq!(of(|_| {}), "");
    assert!(of(|p| p.targets[0].role = Role::File).contains("is a directory on a"));
    assert!(of(|p| p.targets.clear()).contains("a has 1 targets and b has 0"));
    assert!(of(|p| p.jobs.clear()).contains("other jobs"));
    let cached = of(|p| p.jobs[0].phases[0].streams[0].cache = model::job::Cache::Buffered);
    assert!(cached.contains("type --cache"), "{cached}");
}

#[test]
fn what_each_host_would_do_for_itself_is_refused() {
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
    assert!(refused.starts_with("steady-state ends one host"), "{refused}");
}
