//! The engine that was asked for: whether it is there, and has what was asked of it.
//!
//! For: the same refusals for a flag and for a job file, where they point at the place. Not for: what the machine grants.

use engine::engines::{self, ENGINES, Entry, Number};
use model::job::Cache;

use model::spec::{EngineSpec, JobSpec, Problem, StreamSpec};

/// The engine where nobody asks for one.
pub(super) fn default_of(spec: &StreamSpec) -> &'static str {
    if spec.cache == Some(Cache::Mmap) { "mmap" } else { "io_uring" }
}

/// What is asked of engines that they do not have.
pub(crate) fn problems(job: &JobSpec) -> Vec<Problem> {
    let streams = job.phases.iter().enumerate().flat_map(|(phase, spec)| {
        spec.streams.iter().enumerate().map(move |(stream, said)| (phase, stream, said))
    });
    let wrong = streams.filter_map(|(phase, stream, said)| {
        let problem = find(said).err()?;
        Some(Problem { phase, stream, ..problem })
    });
    wrong.collect()
}

/// The engine of a stream, which has all that is asked of it.
pub(super) fn find(said: &StreamSpec) -> Result<&'static Entry, Problem> {
    let problem =
        |keys: &[&'static str], message| Problem { keys: keys.to_vec(), phase: 0, stream: 0, message };
    let name = said.engine.as_ref().map_or(default_of(said), |e| &e.name);
    let entry = engines::find(name).ok_or_else(|| {
        let known: Vec<&str> = ENGINES.iter().map(|e| e.name).collect();
        let known = known.join(", ");
        problem(&["engine"], format!("{{engine {name}}}: there is no such engine; type one of {known}"))
    })?;
    if let Some(asked) = &said.engine {
        options(entry, asked).map_err(|why| problem(&["engine"], format!("{{engine {name}}}: {why}")))?;
    }
    if let Some(cache) = said.cache.filter(|c| !entry.caches.contains(c)) {
        let known: Vec<&str> = entry.caches.iter().map(|c| c.word()).collect();
        let message = format!(
            "{{cache {}}}: the engine {name} works with {} only; type one of these, or another {{engine}}",
            cache.word(),
            known.join(", ")
        );
        return Err(problem(&["cache", "engine"], message));
    }
    Ok(entry)
}

/// An option that an engine does not have must not be taken for one that did something.
fn options(entry: &Entry, asked: &EngineSpec) -> Result<(), String> {
    for (name, value) in &asked.options {
        let Some(option) = entry.options.iter().find(|o| o.name == name) else {
            let known: Vec<&str> = entry.options.iter().map(|o| o.name).collect();
            return Err(match known.as_slice() {
                [] => format!("it has no options, so not '{name}' either; leave it out"),
                known => format!("it has no option '{name}'; it has {}", known.join(", ")),
            });
        };
        match (option.number, value) {
            (Number::No, Some(_)) => {
                return Err(format!("option '{name}' takes no number; type {name} alone"));
            }
            (Number::Must, None) => return Err(format!("option '{name}' needs a number; type {name}=N")),
            _ => {}
        }
    }
    Ok(())
}
