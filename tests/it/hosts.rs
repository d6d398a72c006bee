//! Measurements on several hosts: launchers whose processes do not find each other, ranks on one machine, and lost hosts.
//!
//! Hosts are network and UTS namespaces with an ssh server each ([`crate::lab`]); `./test --hosts` runs those tests.

use crate::stage::{Stage, wait};
use std::path::Path;

#[test]
fn launcher_processes_that_do_not_meet_are_refused() {
    let stage = Stage::shared();
    let mut command = stage.command(&[], "run --engine null --time 100ms --runs 1", Path::new(""));
    let out = wait(command.env("OMPI_COMM_WORLD_SIZE", "4").env("OMPI_COMM_WORLD_RANK", "0"));
    assert_eq!(out.code, Some(2), "{out:?}");
    for words in ["started 4 processes", "OMPI_COMM_WORLD_SIZE=4", "env -u OMPI_COMM_WORLD_SIZE fathom"] {
        assert!(out.stderr.contains(words), "{words}: {}", out.stderr);
    }
    // One of the processes reports a problem that all of them have.
    let other = wait(command.env("OMPI_COMM_WORLD_RANK", "1"));
    assert_eq!((other.code, other.stderr.contains("started 4 processes")), (Some(2), false), "{other:?}");
    let mut list = stage.command(&[], "list", Path::new(""));
    let listed = wait(list.env("OMPI_COMM_WORLD_SIZE", "4"));
    assert_eq!(listed.code, Some(0), "a command that measures nothing disturbs no other: {listed:?}");
}

#[test]
fn srun_steps_count_as_launchers_and_allocation_shells_do_not() {
    if cfg!(feature = "fleet") {
        // An MPI build would ask a Slurm server, which does not exist here.
        return;
    }
    let stage = Stage::shared();
    let mut command = stage.command(&[], "run --engine null --time 100ms --runs 1", Path::new(""));
    let shell = wait(command.env("SLURM_NTASKS", "3").env("SLURM_PROCID", "0"));
    assert_eq!(shell.code, Some(1), "one run has a finding of its own: {shell:?}");
    assert!(shell.stdout.contains("null engine"), "{shell:?}");
    let step = wait(command.env("SLURM_STEP_ID", "0"));
    assert_eq!(step.code, Some(2), "{step:?}");
    assert!(step.stderr.contains("srun of Slurm started 3 processes"), "{}", step.stderr);
    let mut pods = stage.command(&[], "run --engine null --time 100ms", Path::new(""));
    let pods = wait(pods.env("JOB_COMPLETIONS", "5"));
    assert!(pods.code == Some(2) && pods.stderr.contains("--features fleet"), "{pods:?}");
}

#[test]
fn ranks_per_host_is_refused_on_a_single_host() {
    let stage = Stage::shared();
    for printed in ["--ranks-per-host 2", "--hosts 1,2"] {
        let out = stage.fathom(&format!("run --engine null {printed}"), Path::new(""));
        assert!(out.code == Some(2) && out.stderr.contains("this host measures alone"), "{out:?}");
    }
    for wrong in ["2", "2,1", "1,1"] {
        let out = stage.fathom(&format!("run --engine null --hosts {wrong}"), Path::new(""));
        assert!(out.code == Some(2) && out.stderr.contains("in ascending order"), "{out:?}");
    }
}

#[cfg(feature = "fleet")]
mod together {
    use super::{Path, Stage, wait};
    use crate::disk::{Disk, Image};
    use crate::lab::{self, Lab};
    use crate::stage::{Outcome, Running, is_root, tool};
    use model::histogram::Histogram;
    use model::job::Kind;
    use model::record;
    use model::record::Record;
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// Runs the program on two ranks of this machine.
    fn two_ranks(stage: &Stage, words: &str, target: &Path) -> Outcome {
        let launcher = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2";
        let prefix: Vec<String> = launcher.split(' ').map(str::to_owned).collect();
        wait(&mut stage.command(&prefix, words, target))
    }

    /// Two ranks of this machine with a target each.
    fn two_targets(stage: &Stage, prefix: &[String], words: &str, [first, second]: [&PathBuf; 2]) -> Command {
        let launcher = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 1";
        let prefix: Vec<String> =
            prefix.iter().cloned().chain(launcher.split(' ').map(str::to_owned)).collect();
        let mut command = stage.command(&prefix, words, first);
        command.args([":", "-np", "1", env!("CARGO_BIN_EXE_fathom")]).args(words.split(' ')).arg(second);
        command
    }

    /// Runs the program on two ranks of this machine, and repeats a measurement without a number. Also returns the stage.
    fn undisturbed(words: &str) -> (Stage, Outcome) {
        let reported = || {
            let stage = Stage::new();
            let out = two_ranks(&stage, words, &stage.folder("target"));
            (stage, out)
        };
        (0..4).map(|_| reported()).find(|(_, out)| !out.report().is_disturbed()).unwrap_or_else(reported)
    }

    /// Returns the sessions of the single ranks, and the merged session.
    fn sessions(of: &[PathBuf]) -> (Vec<Record>, Record) {
        let read = |path: &PathBuf| record::decode(&std::fs::read(path).unwrap()).unwrap().record;
        let (all, own): (Vec<Record>, Vec<Record>) = of.iter().map(read).partition(|r| r.fleet.is_some());
        let [all] = <[Record; 1]>::try_from(all).unwrap();
        (own, all)
    }

    /// Latencies of reads of all runs.
    fn reads(record: &Record) -> Histogram {
        let mut sum = Histogram::new();
        let ends = record.runs.iter().filter_map(|r| r.end.as_ref()).flat_map(|e| &e.streams);
        ends.filter_map(|s| s.kinds.get(&Kind::Read)).for_each(|k| sum.merge(&k.latency));
        sum
    }

    #[test]
    fn two_ranks_merge_without_losing_operations() {
        let words = "run --rw randread --engine sync --size 16m --time 300ms --runs 3 --format json --ranks-per-host 2";
        let (stage, out) = undisturbed(words);
        let report = out.report();
        let one = report.expect_answer("F04", "finding");
        assert!(one["sentence"].as_str().unwrap().contains("run on one kernel"), "{one:#}");
        assert!(
            report.has_answer("F02", "holds") && report.has_answer("F05", "holds"),
            "{:#}",
            report.0["findings"]
        );
        let report = report.0;
        assert_eq!(report["hosts"].as_array().map(Vec::len), Some(2), "{report}");
        let hosts = report["fleet"]["hosts"].as_array().unwrap();
        let share = |host: &serde_json::Value| host["results"][0]["share"].as_f64().unwrap();
        assert!((hosts.iter().map(share).sum::<f64>() - 1.0).abs() < 1e-9, "{hosts:?}");
        assert!(report["fleet"]["start"]["runs"] == 3, "{report}");
        let (own, all) = sessions(&stage.sessions());
        let mut sum = Histogram::new();
        for record in &own {
            sum.merge(&reads(record));
        }
        assert!(sum.count() > 0 && reads(&all) == sum, "{} of {}", reads(&all).count(), sum.count());
        // The ranks have different seeds, so they read different offsets.
        let parts: Vec<_> = own.iter().map(|r| r.header.plan.fleet_rank.unwrap().rank).collect();
        assert!(parts.contains(&0) && parts.contains(&1));
        assert_ne!(own[0].header.plan.host_seed(), own[1].header.plan.host_seed());
        assert!(own.iter().all(|r| r.header.plan.jobs == all.header.plan.jobs));
    }

    #[test]
    fn sparse_file_on_one_host_stops_all_before_the_first_run() {
        let stage = Stage::new();
        let file = stage.path("sparse");
        std::fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
        let words = "run --rw randread --engine sync --time 20s --runs 5 --ranks-per-host 2";
        let since = Instant::now();
        let out = two_ranks(&stage, words, &file);
        assert!(since.elapsed() < Duration::from_secs(20), "{out:?}");
        assert_eq!(out.code, Some(1), "{out:?}");
        for words in ["INVALID", "A04", "Nothing was measured"] {
            assert!(out.stdout.contains(words), "{words}: {out:?}");
        }
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy();
        assert!(out.stdout.contains(&*host), "{out:?}");
        // The file of the second rank alone is sparse.
        let out = wait(&mut two_targets(&stage, &[], words, [&stage.file("full", 64), &file]));
        assert_eq!(out.code, Some(1), "{out:?}");
        assert!(
            out.stdout.contains(" rank 1: 100 % of the region to read")
                && out.stdout.contains("Nothing was measured"),
            "{out:?}"
        );
    }

    #[test]
    fn busy_neighbour_on_one_host_is_named_without_repeats() {
        if !is_root() {
            return;
        }
        let stage = Stage::watching();
        let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
        disk.file("data", 32);
        disk.sh("sync");
        let _neighbour =
            disk.spawn_sh("while :; do dd if=data of=/dev/null bs=64k iflag=direct status=none; done");
        let words = "run --rw randread --engine sync --size 16m --time 300ms --warmup 0 --runs 3 --ranks-per-host 2 --format json";
        let targets = [&stage.folder("target"), &disk.dir];
        let out = wait(&mut two_targets(&stage, &disk.enter(), words, targets));
        // The first rank's disk is below the loop device of the second rank, and may be reported as busy too.
        let busy = ": the machine was busy before the first run: ";
        assert!(out.stderr.contains(busy), "{out:?}");
        let report = out.report();
        let notes = report.0["notes"].as_array().unwrap().iter();
        let note = notes.filter_map(|note| note.as_str()).find(|note| note.contains(busy));
        let is_complete =
            |note: &str| note.contains(" rank ") && note.contains("disturbed runs are not repeated");
        assert!(note.is_some_and(is_complete), "{report:#?}");
        let (own, all) = sessions(&stage.sessions());
        for record in own.iter().chain([&all]) {
            let attempts: Vec<u32> = record.runs.iter().map(|run| run.start.attempt).collect();
            assert_eq!(attempts, [0, 0, 0]);
        }
    }

    #[test]
    fn cached_stream_is_not_valid_on_two_ranks_of_one_kernel() {
        let stage = Stage::new();
        let (direct, cached) = (stage.file("direct", 16), stage.file("cached", 4));
        assert_eq!(std::fs::read(&cached).unwrap().len(), 4 << 20);
        let job = stage.path("two.toml");
        let (first, second) = (direct.display(), cached.display());
        let text = format!(
            "name = \"two\"\nrw = \"randread\"\ntime = \"200ms\"\nwarmup = \"0s\"\nruns = 1\n\
             [[stream]]\nname = \"direct\"\ndepth = 4\ntarget = \"{first}\"\n\
             [[stream]]\nname = \"cached\"\ncache = \"buffered\"\nengine = \"sync\"\nlimit-iops = 300\ntarget = \"{second}\"\n"
        );
        std::fs::write(&job, text).unwrap();
        let report = two_ranks(&stage, "run --quiet --ranks-per-host 2 --format json", &job).report();
        // With one kernel for both ranks, its counters do not show which rank caused the device's reads.
        let answer = report.expect_answer("A01", "not_checked");
        assert!(answer["about"].as_array().unwrap().contains(&"two, cached".into()), "{answer:#}");
        for result in report.0["results"].as_array().unwrap() {
            assert_ne!(result["verdict"], "VALID", "{result:#}");
        }
    }

    #[test]
    fn scaling_steps_report_the_gain_of_each_host() {
        let words = "run --rw randread --engine sync --size 16m --time 200ms --runs 3 --ranks-per-host 2 --format json --hosts";
        let (stage, out) = undisturbed(&format!("{words} 1,2"));
        let report = out.report().0;
        let rows = report["scaling"]["rows"].as_array().unwrap();
        let of = |row: &serde_json::Value, key: &str| {
            row[key].as_f64().unwrap_or_else(|| panic!("no {key}: {row}"))
        };
        assert_eq!((of(&rows[0], "hosts"), of(&rows[1], "hosts")), (1.0, 2.0), "{report}");
        assert!((of(&rows[0], "efficiency") - 1.0).abs() < 1e-9, "{rows:?}");
        assert!((of(&rows[1], "efficiency") - of(&rows[1], "speed_up") / 2.0).abs() < 1e-9, "{rows:?}");
        assert!(rows[1]["efficiency_interval"].is_array(), "{rows:?}");
        let word = report["answer"]["word"].as_str().unwrap();
        assert!(["KNEE", "SCALES", "CANNOT TELL"].contains(&word), "{word}");
        let of_hosts = report["fleet"]["hosts"].as_array().unwrap();
        let results = |at: usize| of_hosts[at]["results"].as_array().map(Vec::len);
        assert_eq!(
            (results(0), results(1)),
            (Some(2), Some(1)),
            "the second was idle while the first measured alone"
        );
        let (own, all) = sessions(&stage.sessions());
        let mut runs: Vec<usize> = own.iter().map(|r| r.runs.len()).collect();
        runs.sort_unstable();
        assert_eq!((runs, all.runs.len()), (vec![3, 6], 6));
        let many = two_ranks(&stage, &format!("{words} 1,3"), &stage.folder("target"));
        assert!(many.code != Some(0) && many.stderr.contains("2 hosts were started"), "{many:?}");
    }

    #[test]
    fn offered_load_is_split_over_all_hosts() {
        let stage = Stage::new();
        let words = "limit --rw randread --engine sync --size 16m --time 200ms --warmup 20ms --runs 1 --p99 1s --curve --budget 40s --ranks-per-host 2 --format json";
        let out = two_ranks(&stage, words, &stage.folder("target"));
        let report = out.report().0;
        let points = report["limit"]["points"].as_array().unwrap();
        assert!(points.len() >= 7, "{points:#?}");
        let (own, all) = sessions(&stage.sessions());
        let lowest = points.iter().filter_map(|p| p["offered_iops"].as_u64()).min().unwrap();
        // If other processes take CPU time, the load is measured repeatedly, so take the mean.
        let done = |record: &Record| -> u64 {
            let runs: Vec<_> = record.runs.iter().filter(|r| r.start.offered_iops == Some(lowest)).collect();
            let ends = runs.iter().filter_map(|r| r.end.as_ref()).flat_map(|e| &e.streams);
            let all: u64 = ends.filter_map(|s| s.kinds.get(&Kind::Read)).map(|k| k.latency.count()).sum();
            all / runs.len().max(1) as u64
        };
        let expected = lowest as f64 * 0.2;
        assert!((done(&all) as f64 / expected - 1.0).abs() < 0.3, "{} for {expected}", done(&all));
        for record in &own {
            assert!(
                (done(record) as f64 / (expected / 2.0) - 1.0).abs() < 0.4,
                "{} for half of {expected}",
                done(record)
            );
        }
    }

    /// Both ranks measure the same cells at the same time, and the rate of a cell is the sum.
    #[test]
    fn hosts_of_a_sweep_measure_each_cell_together() {
        for way in ["--exhaustive --runs 2", "--budget 3s"] {
            let stage = Stage::new();
            let words = format!(
                "sweep --rw randread --bs 4k,64k --depth 1,4 --engine sync --size 16m --time 100ms {way} --attempts 1 --seed 7 --ranks-per-host 2 --format json"
            );
            let words = words.replace("--depth 1,4 --engine sync", "--workers 1,2 --depth 1 --engine sync");
            let out = two_ranks(&stage, &words, &stage.folder("target"));
            let report = out.report().0;
            assert_eq!(report["sweep"]["cells"].as_array().map(Vec::len), Some(4), "{report:#}");
            assert_eq!(report["fleet"]["hosts"].as_array().map(Vec::len), Some(2), "{report:#}");
            let (own, all) = sessions(&stage.sessions());
            let cells = |record: &Record| -> Vec<(usize, u32)> {
                record.runs.iter().map(|r| (r.start.job, r.start.repeat)).collect()
            };
            assert!(
                own.iter().all(|one| cells(one) == cells(&all)) && cells(&all).len() >= 8,
                "{way}: {:?}",
                cells(&all)
            );
            let reads = |record: &Record| -> Vec<u64> {
                let ends = record.runs.iter().filter_map(|r| r.end.as_ref());
                ends.map(|end| end.streams[0].issued[&Kind::Read].ops).collect()
            };
            let both: Vec<u64> = reads(&own[0]).iter().zip(reads(&own[1])).map(|(a, b)| a + b).collect();
            assert_eq!(reads(&all), both, "{way}");
            let again = stage.fathom("sweep --resume last", Path::new(""));
            assert!(again.code == Some(2) && again.stderr.contains("on 2 hosts"), "{again:?}");
        }
    }

    /// If one host cannot begin a cell, no host measures it, and the reason names this host.
    #[test]
    fn no_host_measures_a_cell_that_one_cannot_begin() {
        let stage = Stage::new();
        let words = "sweep --rw randread --bs 4k --depth 1 --workers 1,60 --engine sync --size 16m --time 50ms --exhaustive --runs 1 --attempts 1 --ranks-per-host 2 --format json";
        let target = stage.folder("target");
        let prefix = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 1";
        let prefix: Vec<String> = prefix.split(' ').map(str::to_owned).collect();
        let mut command = stage.command(&prefix, words, &target);
        // The second rank may not open as many files as sixty workers need.
        let other =
            format!("ulimit -n 64; exec {} {words} {}", env!("CARGO_BIN_EXE_fathom"), target.display());
        command.args([":", "-np", "1", "sh", "-c", &other]);
        let out = wait(&mut command);
        let report = out.report().0;
        let notes = format!("{:#}", report["notes"]);
        assert!(notes.contains("rank 1: "), "{report:#}");
        let (own, all) = sessions(&stage.sessions());
        let began = |record: &Record| -> (usize, usize) {
            let ends = record.runs.iter().filter_map(|r| r.end.as_ref());
            let (began, refused): (Vec<_>, Vec<_>) = ends.partition(|end| !end.workers.is_empty());
            (began.len(), refused.len())
        };
        assert!(began(&all).0 > 0 && began(&all).1 == 1, "{:?}", began(&all));
        assert_eq!((began(&own[0]), began(&own[1])), (began(&all), began(&all)));
    }

    /// The file system of one rank hangs while its program, its host and its heartbeats continue.
    #[test]
    fn hung_storage_on_one_host_is_named_within_five_seconds() {
        if !is_root() {
            return;
        }
        let stage = Stage::new();
        let Some(disk) = Disk::new(&stage, "ext4", Image::Buffered) else { return };
        let file = stage.path("report.json");
        let words = "run --rw randwrite --engine sync --size 16m --time 12s --runs 1 --ranks-per-host 2 -o";
        let words = format!("{words} {}", file.display());
        let targets = [&stage.folder("target"), &disk.dir];
        let mut command = two_targets(&stage, &disk.enter(), &words, targets);
        let mut running = Running::start(&mut command);
        running.wait_for_output("run 1 of 1");
        std::thread::sleep(Duration::from_secs(3));
        disk.sh("fsfreeze -f .");
        let frozen = Instant::now();
        running.wait_for_output("does not answer");
        let named = frozen.elapsed();
        disk.sh("fsfreeze -u .");
        let out = running.end();
        assert!(named < Duration::from_secs(5), "{named:?}: {out:?}");
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let notes: Vec<&str> =
            report["notes"].as_array().unwrap().iter().filter_map(|n| n.as_str()).collect();
        assert!(notes.iter().any(|n| n.contains("rank 1 does not answer")), "{notes:?}");
    }

    #[test]
    fn two_ranks_on_one_host_and_single_host_commands_are_refused() {
        let stage = Stage::shared();
        let out = two_ranks(&stage, "run --engine null --time 100ms", Path::new(""));
        assert!(out.code == Some(2) && out.stderr.contains("--ranks-per-host 2"), "{out:?}");
        let layers = two_ranks(&stage, "layers --engine null", Path::new(""));
        assert!(layers.code == Some(2), "{layers:?}");
        let nowhere = two_ranks(&stage, "run --ranks-per-host 2", &stage.path("nowhere"));
        // Open MPI 4.1.4 itself may crash while it cleans up after a failed job (in PMIx_Finalize).
        let is_refused = matches!(nowhere.code, Some(2) | None);
        assert!(is_refused && nowhere.stderr.contains("does not exist"), "{nowhere:?}");
    }

    #[test]
    #[ignore = "of ./test --hosts: needs servers of ssh in namespaces"]
    fn three_hosts_start_together_and_have_one_row_each() {
        if !is_root() {
            return;
        }
        let (stage, lab) = (Stage::new(), Lab::up());
        let target = stage.folder("target");
        let words = "run --rw randread --engine sync --size 16m --time 500ms --runs 3 --format json";
        let out = wait(&mut lab.command(&stage, words, &target));
        let report = out.report().0;
        assert_eq!(report["hosts"], serde_json::json!(lab::names()), "{report}");
        let start = &report["fleet"]["start"];
        assert!(start["runs"] == 3 && start["common_share"].as_f64().unwrap() > 0.9, "{start}");
        assert_eq!(stage.sessions().len(), 4, "one of each host, and that of all");
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "no test file is left");
    }

    /// Causes a fault after four of ten seconds of measurement. Expects a report that names this host.
    fn lost(fault: impl Fn(), who: &str) {
        if !is_root() {
            return;
        }
        let (stage, lab) = (Stage::new(), Lab::up());
        let target = stage.folder("target");
        // mpirun may not forward all output when it ends. A file is complete.
        let file = stage.path("report.json");
        let words = "run --rw randread --engine sync --rate 200 --size 16m --time 10s --runs 1 -o";
        let words = format!("{words} {}", file.display());
        let mut running = Running::start(&mut lab.command(&stage, &words, &target));
        running.wait_for_output("run 1 of 1");
        std::thread::sleep(Duration::from_secs(4));
        let before = Instant::now();
        fault();
        let others_ended = lab::wait_until_idle(Duration::from_secs(8), &[who]);
        lab::wait_for_launcher_exit(Duration::from_secs(15));
        lab::end();
        let out = running.end_within(Duration::from_secs(60));
        assert!(out.code.is_none_or(|code| code != 0), "{out:?}");
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(report["verdict"], "INVALID", "{report}");
        assert_eq!(report["fleet"]["lost"]["host"], who, "{report}");
        let why = report["fleet"]["lost"]["why"].as_str().unwrap_or_default();
        assert!(!why.contains("fathom-lab"), "that one alone was silent: {why}");
        let hosts = report["fleet"]["hosts"].as_array().unwrap().iter();
        let silent = hosts.filter(|host| host["reason"] == "the host sent no results");
        assert_eq!(silent.map(|host| host["name"].as_str().unwrap()).collect::<Vec<_>>(), [who], "{report}");
        assert!(others_ended.is_some_and(|took| took < Duration::from_secs(8)), "{:?}", before.elapsed());
    }

    #[test]
    #[ignore = "of ./test --hosts: needs servers of ssh in namespaces"]
    fn killed_host_is_named() {
        for n in [2, 3] {
            lost(|| lab::signal(n, "KILL"), &format!("fathom-lab-{n}"));
        }
    }

    #[test]
    #[ignore = "of ./test --hosts: needs servers of ssh in namespaces"]
    fn stopped_host_is_named() {
        lost(|| lab::signal(2, "STOP"), "fathom-lab-2");
    }

    #[test]
    #[ignore = "of ./test --hosts: needs servers of ssh in namespaces"]
    fn disconnected_host_is_named() {
        let down = || {
            tool(&[&"ip", &"netns", &"exec", &lab::SWITCH, &"ip", &"link", &"set", &"p2", &"down"]).unwrap();
        };
        lost(down, "fathom-lab-2");
    }

    #[test]
    #[ignore = "of ./test --hosts: needs servers of ssh in namespaces"]
    fn losing_rank_0_stops_the_load_of_the_others() {
        if !is_root() {
            return;
        }
        let (stage, lab) = (Stage::new(), Lab::up());
        let words = "run --rw randread --engine sync --rate 200 --size 16m --time 20s --runs 1";
        let mut running = Running::start(&mut lab.command(&stage, words, &stage.folder("target")));
        running.wait_for_output("run 1 of 1");
        std::thread::sleep(Duration::from_secs(4));
        lab::signal(1, "STOP");
        let ended = lab::wait_until_idle(Duration::from_secs(6), &["fathom-lab-1"]);
        assert!(ended.is_some_and(|took| took < Duration::from_secs(4)), "{ended:?}");
        lab::end();
        drop(running.end_within(Duration::from_secs(40)));
    }
}
