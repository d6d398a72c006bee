//! F03: reads that a cache may have answered because another host, or the host that wrote the file, brought the
//! blocks in. Finds hosts that share storage, and computes the expected share of repeated blocks from the order
//! of offsets.

use super::{host_names, hosts, shared_storage};
use crate::checks::a::a16_re_reads::REPEATS_ABOVE;
use crate::checks::prelude::*;
use model::plan::Role;

pub(super) const CHECK: Check = Check {
    id: CheckId::F03,
    name: "ANOTHERS_CACHE",
    belief: "no other host brought the blocks into a cache",
    reads: "The storage of each host's targets (devices by model and serial number, file systems by their \
            source), the host that made each file, and the bytes that all hosts read in the longest run, \
            compared with the span. No kernel file.",
    formula: formula!(
        "For a file or device that several hosts read, c = bytes read by all / span: at random, 1 - (1 - \
         e^-c) / c of the reads are of a block that was already read, and n hosts that read it in order read \
         each block n times, which is 1 - 1/n. From {REPEATS_ABOVE} on it is a note for direct I/O, where a \
         server or an array may keep blocks that it has sent, and biased through the page cache of hosts \
         that are one machine. Also a note for a file on shared storage that the reading host itself wrote: \
         the server had it in memory, and a client of a cache-coherent file system may have it. With \
         --shift-hosts, no host reads its own file. Parts of one file (--shared) that hosts of one machine \
         read through its page cache are biased, since the kernel reads ahead for all of them."
    ),
    provoke: "`mpirun -np 2 ... fathom run --rw read --size 64m --ranks-per-host 2 FILE`.",
    fix: "Use --shift-hosts 1, so that each host reads another host's file, and a --size several times the \
          memory of the storage servers.",
    accept: "Accept it if you want to measure many hosts that read the same data.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| shared(1)),
    #[cfg(test)]
    blind: || {
        let mut record = super::honest();
        record.header.hosts.truncate(1);
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    let hosts = hosts(case);
    if hosts.is_empty() || !case.does(Kind::Read) || !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let shared = shared_storage(case)?;
    let Some((what, ranks)) = shared.iter().max_by_key(|(_, ranks)| ranks.len()) else {
        return holds("No host reads from storage that another host also uses.", evidence([]));
    };
    let targets = &case.record.header.plan.targets;
    let all_made = case.stream.targets.iter().filter_map(|t| targets.get(*t)).all(|t| t.role == Role::Made);
    let numbers = evidence([("hosts", hosts.len() as f64), ("hosts_sharing", ranks.len() as f64)]);
    if all_made && !is_its_own(case) {
        return match case.stream.shared {
            Some(_) if through_one_cache(case, ranks) => parts_through_one_cache(case, ranks, numbers),
            _ => holds("Each host reads what another host wrote.", numbers),
        };
    }
    if all_made {
        // If the device is visible, other checks compare the bytes read with its counters.
        if case.grounded().is_ok() {
            return holds("Each host reads its own file.", numbers);
        }
        return finding!(
            Severity::Note,
            numbers,
            "Each host reads the {} that it wrote itself, on storage that {} share ({}): recent writes may \
             still be in the memory of the server.",
            if case.stream.shared.is_some() { "part of the file" } else { "file" },
            host_names(case, ranks),
            what.name()
        );
    }
    same_target(case, ranks, numbers)
}

/// Whether hosts read what they wrote themselves before the first run.
fn is_its_own(case: &Case) -> bool {
    let all = case.record.fleet.as_ref().map_or(1, |fleet| fleet.hosts.len());
    let among = if case.stream.shared.is_some() { hosts(case).len() } else { all };
    (case.stream.shift_hosts as usize).is_multiple_of(among.max(1))
}

/// Whether reads go through the page cache of a machine that runs several of these hosts.
fn through_one_cache(case: &Case, ranks: &[usize]) -> bool {
    let one_machine = case.record.fleet.as_ref().is_some_and(|fleet| {
        let kernel = |rank: &usize| fleet.hosts.get(*rank).and_then(|h| h.kernel);
        ranks.iter().any(|a| kernel(a).is_some() && ranks.iter().any(|b| a != b && kernel(a) == kernel(b)))
    });
    one_machine && !case.stream.cache.is_direct()
}

/// Returns the finding for parts of one file that hosts of one machine read through its page cache.
fn parts_through_one_cache(case: &Case, ranks: &[usize], numbers: Evidence) -> Known<Answer> {
    finding!(
        Severity::Biased,
        numbers,
        "{} read parts of one file through the page cache of one machine: read-ahead for one host serves the \
         others.",
        host_names(case, ranks)
    )
}

/// Returns the answer for targets that several hosts read.
fn same_target(case: &Case, ranks: &[usize], mut numbers: Evidence) -> Known<Answer> {
    let (read, span) = (case.largest_run_bytes(Kind::Read) as f64, case.span_bytes() as f64);
    if read == 0.0 || span <= 0.0 {
        return Err("no read completed".into());
    }
    let [line] = case.stream.access.lines.as_slice() else {
        return not_checked(
            "fathom does not compute how often several hosts read one block for a workload with several \
             lines",
        );
    };
    // In a shared file, each host has its own blocks.
    let (passes, hosts) = (read / span, if case.stream.shared.is_some() { 1.0 } else { ranks.len() as f64 });
    let part = match &line.order {
        // All hosts start at the first block.
        Order::Sequential(_) => 1.0 - 1.0 / hosts.max(passes),
        Order::Random | Order::Once | Order::Mixed(_) | Order::MixedEach(_) => {
            1.0 + (-passes).exp_m1() / passes
        }
        other => return Err(format!("{} repeats blocks by design", other.describe())),
    };
    numbers.insert("expected_repeat_share".into(), part);
    if part <= REPEATS_ABOVE {
        return holds("Almost every read was of a block that no host had read before.", numbers);
    }
    let is_one_cache = through_one_cache(case, ranks);
    let cache_name =
        if is_one_cache { "the page cache of their machine" } else { "a cache of the shared storage" };
    finding!(
        if is_one_cache { Severity::Biased } else { Severity::Note },
        numbers,
        "About {} of the reads were of blocks that some host had already read: {} read the same data, and \
         {cache_name} may have answered.",
        show_share(part),
        host_names(case, ranks)
    )
}

/// Two hosts that read a file on a server and together cover its blocks `passes` times.
#[cfg(test)]
fn shared(passes: u64) -> model::record::Record {
    let mut record = super::honest();
    for host in &mut record.header.hosts {
        let place = &mut host.places[0];
        place.layers.clear();
        place.blind = Some("its devices are on another machine".into());
        place.file_system.as_mut().unwrap().source = "server:/export".into();
    }
    record.header.plan.targets[0].role = Role::File;
    // 45 MB are read in a run.
    record.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = (45 << 20) / passes;
    record
}

#[test]
fn targets_read_by_several_hosts_are_a_note() {
    assert_eq!(CHECK.severity(&shared(1)), Some(Severity::Note));
    let mut large_span = shared(1);
    large_span.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = 1 << 30;
    assert_eq!(CHECK.severity(&large_span), None);
    large_span.header.plan.jobs[0].phases[0].streams[0].access.lines[0].order =
        Order::Sequential(model::job::Steps::default());
    assert_eq!(CHECK.severity(&large_span), Some(Severity::Note), "sequential reads cover the same blocks");
    let mut own = shared(1);
    own.header.plan.targets[0].role = Role::Made;
    let Ok(Answer::Finding(found)) = CHECK.answer(&own) else { panic!("silent") };
    assert!(
        found.sentence.contains("wrote itself") && found.sentence.contains("server:/export"),
        "{}",
        found.sentence
    );
}

#[test]
fn reading_what_another_host_wrote_holds_unless_they_share_a_page_cache() {
    use model::job::{Cache, Layout, Shared, Stream};
    let with = |change: fn(&mut Stream)| {
        let mut record = shared(1);
        record.header.plan.targets[0].role = Role::Made;
        change(&mut record.header.plan.jobs[0].phases[0].streams[0]);
        record
    };
    let layout = |stream: &mut Stream| stream.shared = Some(Shared { layout: Layout::Strided, passes: None });
    let severity = |change: fn(&mut Stream)| CHECK.severity(&with(change));
    assert_eq!(severity(|s| s.shift_hosts = 1), None);
    assert_eq!(severity(|s| s.shift_hosts = 2), Some(Severity::Note), "two hosts on is the host itself");
    let mut parts = with(|s| (s.shift_hosts, s.cache) = (1, Cache::Buffered));
    layout(&mut parts.header.plan.jobs[0].phases[0].streams[0]);
    assert_eq!(CHECK.severity(&parts), None);
    parts.fleet.as_mut().unwrap().hosts[1].kernel = Some(0);
    assert_eq!(CHECK.severity(&parts), Some(Severity::Biased));
    let mut own = with(|_| {});
    layout(&mut own.header.plan.jobs[0].phases[0].streams[0]);
    let Ok(Answer::Finding(found)) = CHECK.answer(&own) else { panic!("silent") };
    assert!(found.sentence.starts_with("Each host reads the part of the file"), "{}", found.sentence);
}

#[test]
fn a_page_cache_shared_by_all_hosts_biases() {
    let mut record = shared(1);
    record.header.plan.jobs[0].phases[0].streams[0].cache = model::job::Cache::Buffered;
    record.fleet.as_mut().unwrap().hosts[1].kernel = Some(0);
    assert_eq!(CHECK.severity(&record), Some(Severity::Biased));
}
