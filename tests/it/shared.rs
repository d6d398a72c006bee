//! Files on several hosts: one that all hosts share, one for each worker, and files that another host wrote. Checks which worker touches which
//! bytes, and that no file is left.

use crate::stage::{Stage, tool, wait};
use std::collections::BTreeMap;
use std::path::Path;

/// The I/O system calls of a run: offsets and lengths by file and call.
fn calls(trace: &Path) -> BTreeMap<(String, String), Vec<(u64, u64)>> {
    let mut all: BTreeMap<(String, String), Vec<(u64, u64)>> = BTreeMap::new();
    // With `-ff`, strace writes a file for each thread.
    let (dir, name) = (trace.parent().unwrap(), trace.file_name().unwrap().to_str().unwrap());
    let of_threads = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    let of_threads = of_threads.filter(|p| p.file_stem().is_some_and(|stem| stem == name));
    let text: Vec<String> = of_threads.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for line in text.iter().flat_map(|text| text.lines()) {
        let Some((call, rest)) = ["pread64(", "pwrite64("]
            .iter()
            .find_map(|c| Some((c.trim_end_matches("64("), line.split_once(c)?.1)))
        else {
            continue;
        };
        // Parse a line such as `pwrite64(8</dir/file>, ""..., 47008, 94016) = 47008`.
        let Some((inside, moved)) = rest.rsplit_once(") = ") else { continue };
        let file = inside.split_once('<').and_then(|(_, f)| f.split_once('>')).map_or("", |(f, _)| f);
        let mut numbers = inside.rsplit(", ");
        let offset = numbers.next().and_then(|n| n.parse().ok());
        if let (Some(offset), Ok(moved)) = (offset, moved.trim().parse()) {
            all.entry((file.to_owned(), call.to_owned())).or_default().push((offset, moved));
        }
    }
    all
}

/// Offsets of the calls on the only test file, for operations of this size.
fn of_size(all: &BTreeMap<(String, String), Vec<(u64, u64)>>, call: &str, size: u64) -> Vec<u64> {
    let touched = all.iter().filter(|((file, c), _)| c == call && file.contains("/target/"));
    touched.flat_map(|(_, ops)| ops).filter(|(_, moved)| *moved == size).map(|(at, _)| *at).collect()
}

fn strace(trace: &Path) -> Vec<String> {
    let words = format!("strace -ff -y -s 0 -e trace=pread64,pwrite64 -o {}", trace.display());
    words.split(' ').map(str::to_owned).collect()
}

#[test]
fn workers_share_a_file_by_interleaved_blocks() {
    if tool(&[&"strace", &"-V"]).is_err() {
        return crate::stage::skip("strace is not here");
    }
    let stage = Stage::shared();
    let (target, trace) = (stage.folder("target"), stage.path("trace"));
    let words = "run --rw read --engine sync --cache buffered --bs 47008 --depth 1 --workers 4 --shared strided --passes 1 --size 16m --runs 1 --attempts 1 --format json";
    let out = wait(&mut stage.command(&strace(&trace), words, &target));
    let mut read = of_size(&calls(&trace), "pread", 47_008);
    read.sort_unstable();
    let groups = (16 << 20) / (4 * 47_008);
    assert_eq!(read, (0..4 * groups).map(|n| n * 47_008).collect::<Vec<u64>>(), "{out:?}");
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn sharing_that_needs_several_hosts_is_refused() {
    let stage = Stage::shared();
    let (target, file) = (stage.folder("target"), stage.path("file"));
    std::fs::write(&file, vec![7; 16 << 20]).unwrap();
    let refused = |words: &str, target: &Path, why: &str| {
        let out = stage.fathom(words, target);
        assert!(out.code == Some(2) && out.stderr.contains(why), "{words}: {out:?}");
    };
    refused(
        "run --rw read --shared strided",
        &target,
        "there is only one (--workers 2 makes two): this host measures alone",
    );
    refused("run --rw read --shift-hosts 1", &target, "needs the files of other hosts");
    refused("run --rw read --shared 6000 --workers 2", &target, "a whole number of operations");
    refused(
        "run --rw read --shared segmented --workers 32 --size 16m",
        &target,
        "cannot give each of 32 workers a block",
    );
    refused("run --rw read --own", &file, "name a directory");
    refused("run --rw read --own --shared strided --workers 2", &target, "type one of them");
    refused("bench --workers 4", &target, "its own number of threads; type `fathom run --workers N`");
    refused("bench --profile ior-easy", &file, "name a directory");
    refused("bench --profile ior-hard --cache direct", &target, "direct I/O");
}

#[test]
fn ior_profiles_work_with_workers_of_one_host() {
    let stage = Stage::shared();
    let target = stage.folder("target");
    let words =
        "bench --time 50ms --warmup 0 --runs 1 --size 16m --workers 2 --quiet --format json --profile";
    for (profile, name) in [("ior-easy", "2M sequential"), ("ior-hard", "47008 B sequential")] {
        let out = stage.fathom(&format!("{words} {profile}"), &target);
        let report = out.report().0;
        let results = report["results"].as_array().unwrap_or_else(|| panic!("{out:?}"));
        let names: Vec<&str> = results.iter().map(|r| r["name"].as_str().unwrap()).collect();
        assert_eq!(names, [format!("{profile} read"), format!("{profile} write")], "{out:?}");
        let meant = stage.fathom(&format!("bench --profile {profile} --workers 2 --explain"), &target);
        assert!(meant.stdout.contains(name), "{meant:?}");
        assert!(meant.stdout.contains(&format!("profile {profile}")), "{meant:?}");
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    }
}

#[cfg(feature = "fleet")]
mod together {
    use super::*;
    use crate::lab::{self, Lab};
    use crate::stage::{Outcome, Running, is_root};
    use std::time::{Duration, Instant};

    /// Offsets and bytes of calls, by their name and file.
    type Calls = BTreeMap<(String, String), Vec<(u64, u64)>>;

    /// Runs the program on two ranks of this machine. Returns the calls of each rank.
    fn two_ranks(stage: &Stage, words: &str, target: &Path) -> (Outcome, Vec<Calls>) {
        let traces = [0, 1].map(|rank| stage.path(&format!("trace{rank}")));
        let launcher = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 1";
        let mut prefix: Vec<String> = launcher.split(' ').map(str::to_owned).collect();
        prefix.extend(strace(&traces[0]));
        let words = format!("{words} --ranks-per-host 2");
        let mut command = stage.command(&prefix, &words, target);
        command.args([":", "-np", "1"]).args(strace(&traces[1]));
        command.arg(env!("CARGO_BIN_EXE_fathom")).args(words.split(' ')).arg(target);
        let out = wait(&mut command);
        (out, traces.iter().map(|trace| calls(trace)).collect())
    }

    #[test]
    fn two_hosts_share_a_file_and_read_each_others_data() {
        const BLOCK: u64 = 64 << 10;
        if tool(&[&"strace", &"-V"]).is_err() {
            return crate::stage::skip("strace is not here");
        }
        let blocks = (32 << 20) / BLOCK;
        let words = "run --rw read --engine sync --bs 64k --depth 1 --passes 1 --size 32m --runs 1 --attempts 1 --shift-hosts 1 --format json --shared";
        for layout in ["strided", "segmented"] {
            let stage = Stage::shared();
            let target = stage.folder("target");
            let (out, by_rank) = two_ranks(&stage, &format!("{words} {layout}"), &target);
            assert!(out.report().0["fleet"]["hosts"].as_array().is_some_and(|h| h.len() == 2), "{out:?}");
            for (rank, calls) in (0..).zip(&by_rank) {
                let own = |rank: u64| -> Vec<u64> {
                    let mine =
                        |n: &u64| if layout == "strided" { n % 2 == rank } else { n / (blocks / 2) == rank };
                    (0..blocks).filter(mine).map(|n| n * BLOCK).collect()
                };
                // Each block is read once, except the first read of a run, which checks for stored data.
                assert_eq!(
                    of_size(calls, "pread", BLOCK),
                    own(1 - rank),
                    "rank {rank} reads, {layout}: {out:?}"
                );
                let size = if layout == "strided" { BLOCK } else { 1 << 20 };
                let step = (size / BLOCK) as usize;
                let written: Vec<u64> = own(rank).into_iter().step_by(step).collect();
                assert_eq!(of_size(calls, "pwrite", size), written, "rank {rank} writes, {layout}");
            }
            assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "no test file is left");
        }
    }

    #[test]
    fn file_per_worker_reads_the_file_of_the_next_host() {
        let stage = Stage::shared();
        let target = stage.folder("target");
        let words = "run --rw read --engine sync --bs 64k --depth 1 --workers 2 --own --passes 1 --size 16m --runs 1 --attempts 1 --shift-hosts 1 --format json";
        let (out, by_rank) = two_ranks(&stage, words, &target);
        let files = |rank: usize, call: &str, size: u64| -> Vec<String> {
            let touched = by_rank[rank].iter().filter(|((file, c), ops)| {
                c == call && file.contains("/target/") && ops.iter().any(|(_, moved)| *moved == size)
            });
            touched.map(|((file, _), _)| file.clone()).collect()
        };
        assert_eq!(files(0, "pread", 64 << 10).len(), 2, "{out:?}");
        assert_eq!(files(0, "pread", 64 << 10), files(1, "pwrite", 1 << 20), "{out:?}");
        assert_eq!(files(1, "pread", 64 << 10), files(0, "pwrite", 1 << 20));
        assert_ne!(files(0, "pread", 64 << 10), files(1, "pread", 64 << 10));
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "no test file is left");
    }

    #[test]
    fn ior_profiles_work_with_two_ranks() {
        let stage = Stage::shared();
        let target = stage.folder("target");
        for profile in ["ior-easy", "ior-hard"] {
            let launcher = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2";
            let prefix: Vec<String> = launcher.split(' ').map(str::to_owned).collect();
            let words = format!(
                "bench --profile {profile} --time 100ms --warmup 0 --runs 2 --size 16m --ranks-per-host 2 --format json"
            );
            let out = wait(&mut stage.command(&prefix, &words, &target));
            let report = out.report().0;
            assert_eq!(report["results"].as_array().map(Vec::len), Some(2), "{out:?}");
            assert_eq!(report["fleet"]["hosts"].as_array().map(Vec::len), Some(2), "{report}");
            assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "no test file is left");
        }
    }

    #[test]
    fn unshared_directory_is_named() {
        let stage = Stage::shared();
        let (here, there) = (stage.folder("here"), stage.folder("there"));
        let launcher = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 1";
        let prefix: Vec<String> = launcher.split(' ').map(str::to_owned).collect();
        let words = "run --rw read --shared segmented --size 16m --time 100ms --ranks-per-host 2";
        let mut command = stage.command(&prefix, words, &here);
        command.args([":", "-np", "1", env!("CARGO_BIN_EXE_fathom")]).args(words.split(' ')).arg(&there);
        let out = wait(&mut command);
        assert!(out.code != Some(0) && out.stderr.contains("there seems not to be shared with"), "{out:?}");
        for folder in [here, there] {
            assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "no test file is left");
        }
    }

    /// The remaining files in the directory of a shared file after the program on one host was killed.
    fn left_without(host: u32) {
        if !is_root() {
            return;
        }
        let (stage, lab) = (Stage::new(), Lab::up());
        let target = stage.folder("target");
        let words =
            "run --rw randread --engine sync --rate 200 --shared segmented --size 16m --time 10s --runs 1";
        let mut running = Running::start(&mut lab.command(&stage, words, &target));
        running.wait_for_output("run 1 of 1");
        std::thread::sleep(Duration::from_secs(2));
        let files = || std::fs::read_dir(&target).unwrap().count();
        assert_eq!(files(), 1, "one file for all");
        lab::signal(host, "KILL");
        let until = Instant::now() + Duration::from_secs(10);
        while files() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        let left = files();
        lab::wait_for_launcher_exit(Duration::from_secs(15));
        lab::end();
        let out = running.end_within(Duration::from_secs(60));
        assert_eq!(left, 0, "{out:?}");
    }

    #[test]
    #[ignore = "of ./test --hosts: needs servers of ssh in namespaces"]
    fn shared_file_of_a_killed_maker_is_removed_by_the_others() {
        left_without(1);
    }

    #[test]
    #[ignore = "of ./test --hosts: needs servers of ssh in namespaces"]
    fn shared_file_is_removed_by_its_maker_when_another_host_is_killed() {
        left_without(3);
    }
}
