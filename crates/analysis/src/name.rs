//! True names: what a result is about, after the findings.
//!
//! For: `4K random read, depth 32, direct` and what becomes of it. Not for: deciding that a name is wrong (the checks).

use crate::case::Case;
use crate::checks::Rename;
use model::units::show_rate;

/// The name of a case with all renamings applied.
pub(crate) fn true_name(case: &Case, renames: &[&Rename]) -> String {
    let stream = &case.stream;
    let mut parts = vec![stream.describe()];
    // How much is in flight is the capture's.
    parts.extend(stream.replay.is_none().then(|| depth(case, renames)));
    if stream.workers > 1 {
        parts.push(format!("{} workers", stream.workers));
    }
    parts.push(medium(case, renames));
    parts.extend(stream.conditions());
    parts.extend(conditions(renames));
    parts.join(", ")
}

/// Whether the true name says something else than what was asked for.
pub(crate) fn is_another(case: &Case, renames: &[&Rename]) -> bool {
    !renames.is_empty() || moves_nothing(case).is_some()
}

/// What is done and to what, whatever the load: `4K random read, direct`.
pub(crate) fn work(case: &Case, renames: &[&Rename]) -> String {
    let parts = [case.stream.describe(), medium(case, renames)].into_iter();
    parts.chain(conditions(renames)).collect::<Vec<_>>().join(", ")
}

/// Conditions that findings add, each once.
fn conditions(renames: &[&Rename]) -> Vec<String> {
    let mut conditions: Vec<&String> = Vec::new();
    for rename in renames {
        if let Rename::Condition(words) = rename
            && !conditions.contains(&words)
        {
            conditions.push(words);
        }
    }
    conditions.into_iter().cloned().collect()
}

/// The depth per worker as asked, or about what was reached by all workers together.
fn depth(case: &Case, renames: &[&Rename]) -> String {
    let reached = renames.iter().find_map(|r| if let Rename::Depth(d) = r { Some(*d) } else { None });
    match reached {
        // A whole number reads better and claims less: this is a mean.
        Some(d) if d >= 0.95 => format!("depth ~{d:.0}"),
        Some(d) => format!("depth ~{}", show_rate(d)),
        None => match (case.stream.latency_target, found(case)) {
            (None, _) => format!("depth {}", case.stream.depth),
            (Some(_), Some((least, most))) if least == most => {
                format!("depth {least}, as the latency target allows")
            }
            (Some(_), Some((least, most))) => {
                format!("depth {least} to {most}, as the latency target allows")
            }
            (Some(_), None) => format!("depth up to {}, as the latency target allows", case.stream.depth),
        },
    }
}

/// The least and the largest depth that a worker found in any run.
fn found(case: &Case) -> Option<(u32, u32)> {
    let workers = case.runs.iter().flat_map(|r| &r.end.workers).filter(|w| w.stream == case.index);
    let depths: Vec<u32> = workers.filter_map(|w| Some(w.depth?.depth)).collect();
    Some((*depths.iter().min()?, *depths.iter().max()?))
}

fn medium(case: &Case, renames: &[&Rename]) -> String {
    if let Some(words) = moves_nothing(case) {
        return words.to_owned();
    }
    let memory = renames.iter().find_map(|r| if let Rename::Memory(m) = r { Some(m) } else { None });
    let other = renames.iter().find_map(|r| if let Rename::Medium(m) = r { Some(m) } else { None });
    memory.or(other).cloned().unwrap_or_else(|| case.stream.cache.word().to_owned())
}

/// What to call a result without storage, or without data.
pub(crate) fn moves_nothing(case: &Case) -> Option<&'static str> {
    match case.stream.engine.as_str() {
        "sim" => Some("simulated"),
        "null" => Some("null engine, no storage"),
        "ftruncate" => Some("lengths of files alone, no data moved"),
        "fallocate" => Some("blocks of files alone, no data moved"),
        _ if case.stream.does_nothing() => Some("operations that do nothing, no storage"),
        _ if !case.has_storage() => Some("no storage"),
        _ => None,
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn named(fixture: &Fixture, renames: &[&Rename]) -> String {
    let record = fixture.record();
    true_name(&crate::case::cases(&record)[0], renames)
}

#[test]
fn an_honest_name_says_access_depth_and_cache_mode() {
    assert_eq!(named(&Fixture::honest(), &[]), "4K random read, depth 32, direct");
    let many = Fixture { workers: 4, ..Fixture::honest_write() };
    assert_eq!(named(&many, &[]), "4K random write, depth 32, 4 workers, direct");
    let null = Fixture { role: model::plan::Role::None, engine: "null", ..Fixture::honest() };
    assert_eq!(named(&null, &[]), "4K random read, depth 32, null engine, no storage");
    let cut = Fixture { engine: "ftruncate", ..Fixture::honest_write() };
    assert_eq!(named(&cut, &[]), "4K random write, depth 32, lengths of files alone, no data moved");
}

#[test]
fn a_name_is_another_where_findings_or_the_engine_say_so_and_not_for_its_conditions() {
    let another = |fixture: &Fixture, renames: &[&Rename]| {
        let record = fixture.record();
        is_another(&crate::case::cases(&record)[0], renames)
    };
    // Its name ends in the rate of its open loop, which was asked for.
    assert!(!another(&Fixture::honest(), &[]) && !another(&Fixture::honest_open(), &[]));
    let renames =
        [Rename::Depth(1.0), Rename::Medium("page cache".into()), Rename::Condition("limited by CPU".into())];
    assert!(renames.iter().all(|r| another(&Fixture::honest(), &[r])));
    assert!(another(&Fixture { engine: "null", ..Fixture::honest() }, &[]));
    assert!(
        model::job::WITHOUT_DATA.iter().all(|engine| another(&Fixture { engine, ..Fixture::honest() }, &[]))
    );
}

#[test]
fn renamings_replace_what_was_wrong_and_memory_is_strongest() {
    let cache = Rename::Medium("page cache".into());
    let memory = Rename::Memory("memory (tmpfs)".into());
    let cpu = Rename::Condition("limited by CPU".into());
    assert_eq!(
        named(&Fixture::honest(), &[&cache, &Rename::Depth(0.98), &cpu, &cpu]),
        "4K random read, depth ~1, page cache, limited by CPU"
    );
    assert_eq!(named(&Fixture::honest(), &[&cache, &memory]), "4K random read, depth 32, memory (tmpfs)");
}
