//! Programs that call fio: their real command lines with smaller sizes and times, and what they parse from the output.

use crate::fio::fio;
use crate::stage::{Outcome, Stage, skip, tool, wait_long};
use serde_json::Value;

/// The output that a calling program reads: no errors, and nothing else.
#[track_caller]
fn read(out: Outcome) -> String {
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    out.stdout
}

fn jobs(out: Outcome) -> Value {
    let text = read(out);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Jobs that run at the same time, in a directory named on the command line.
const KUBESTR: &str = "[global]\nrandrepeat=0\nverify=0\nioengine=libaio\ndirect=1\ngtod_reduce=1\n\
    [job1]\nname=read_iops\nbs=4K\niodepth=64\nsize=4M\nreadwrite=randread\ntime_based\nramp_time=50ms\nruntime=200ms\n\
    [job2]\nname=write_bw\nbs=128K\niodepth=64\nsize=4M\nreadwrite=randwrite\ntime_based\nramp_time=50ms\nruntime=200ms\n";

#[test]
fn kubestr_reads_jobs_with_names_and_options() {
    let stage = Stage::shared();
    let (file, folder) = (stage.path("job"), stage.folder("dataset"));
    std::fs::write(&file, KUBESTR).unwrap();
    let out = jobs(fio(
        &stage,
        &format!("--directory {} {} --output-format=json", folder.display(), file.display()),
    ));
    let both = out["jobs"].as_array().unwrap();
    let names: Vec<&str> = both.iter().filter_map(|job| job["jobname"].as_str()).collect();
    assert_eq!(names, ["read_iops", "write_bw"]);
    assert_eq!(both[0]["job options"]["rw"], "randread");
    assert_eq!(both[1]["job options"]["bs"], "128K");
    assert_eq!(out["global options"]["ioengine"], "libaio");
    for (job, direction) in both.iter().zip(["read", "write"]) {
        assert!(
            job[direction]["iops"].as_f64() > Some(0.0) && job[direction]["bw"].as_u64() > Some(0),
            "{job:#}"
        );
        assert_eq!((job["error"].as_i64(), job["groupid"].as_u64()), (Some(0), Some(0)));
    }
    let files = ["job1.0.0", "job2.0.0"].map(|name| std::fs::metadata(folder.join(name)).unwrap().len());
    assert_eq!(files, [4 << 20; 2]);
}

#[test]
fn perfkit_reads_one_result_per_section() {
    let stage = Stage::shared();
    let (file, data) = (stage.path("job"), stage.path("data"));
    let text = format!(
        "[global]\nioengine=libaio\ninvalidate=1\ndirect=1\nruntime=200ms\nramp_time=50ms\ntime_based\nfilename={}\ndo_verify=0\n\
         verify_fatal=0\ngroup_reporting=1\npercentile_list=1:5:10:20:25:30:40:50:60:70:75:80:90:95:99:99.5:99.9:99.95:99.99\nsize=4m\n\n\
         [sequential_write-io-depth-1-num-jobs-1]\nstonewall\nrw=write\nblocksize=512k\niodepth=1\nnumjobs=1\n\n\
         [random_read-io-depth-4-num-jobs-4]\nstonewall\nrw=randread\nblocksize=4k\niodepth=4\nnumjobs=4\n",
        data.display()
    );
    std::fs::write(&file, text).unwrap();
    let words = format!("--output-format=json --random_generator=tausworthe64 {}", file.display());
    let out = jobs(fio(&stage, &words));
    assert_eq!(out["global options"]["group_reporting"], "1");
    let reported: Vec<(&str, u64)> = out["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["jobname"].as_str().unwrap(), job["groupid"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        reported,
        [("sequential_write-io-depth-1-num-jobs-1", 0), ("random_read-io-depth-4-num-jobs-4", 1)]
    );
    for (job, direction) in out["jobs"].as_array().unwrap().iter().zip(["write", "read"]) {
        let of = &job[direction];
        assert!(
            of["bw_mean"].is_f64() && of["clat_ns"]["percentile"]["99.000000"].as_u64() > Some(0),
            "{of:#}"
        );
    }
}

#[test]
fn yabs_reads_rates_from_terse_output() {
    let stage = Stage::shared();
    let data = stage.path("test.fio");
    let words = format!(
        "--name=rand_rw_4k --ioengine=libaio --rw=randrw --rwmixread=50 --bs=4k --iodepth=64 --numjobs=2 --size=4M --runtime=30 \
         --gtod_reduce=1 --direct=1 --filename={} --group_reporting --minimal",
        data.display()
    );
    let line = read(fio(&stage, &words));
    let fields: Vec<&str> = line.trim_end().split(';').collect();
    let number = |at: usize| fields[at - 1].parse::<u64>().unwrap();
    let [read_bw, read_iops, write_bw, write_iops] = [7, 8, 48, 49].map(number);
    assert!(read_bw.abs_diff(4 * read_iops) <= 4 && write_bw.abs_diff(4 * write_iops) <= 4, "{line}");
    // Two clones of 1024 blocks. The result has 121 fields, and nine more for each disk.
    assert_eq!(number(6) + number(47), 2 * 4096, "{line}");
    assert_eq!((fields.len() - 121) % 9, 0, "{line}");
}

#[test]
fn kbench_reads_rates_and_cpu_idleness() {
    let stage = Stage::shared();
    let (file, common, data) = (stage.path("iops.fio"), stage.path("common.fio"), stage.path("data"));
    std::fs::write(
        &common,
        "direct=1\nioengine=libaio\nrandrepeat=0\nverify=0\nruntime=1200ms\ntime_based=1\n",
    )
    .unwrap();
    let section =
        |name, rw| format!("[{name}]\nreadwrite={rw}\nbs=4k\niodepth=8\nstonewall=1\ninclude common.fio\n\n");
    std::fs::write(&file, section("rand-read-iops", "randread") + &section("seq-write-iops", "write"))
        .unwrap();
    let call = |prof: &str, form: &str| {
        let words = format!(
            "{} --idle-prof={prof} --filename={} --size=4m --output-format={form}",
            file.display(),
            data.display()
        );
        fio(&stage, &words)
    };
    let percent =
        |value: &Value| value.as_f64().filter(|percent| (0.0..=100.0).contains(percent)).expect("percent");
    let out = jobs(call("percpu", "json"));
    assert!(out["jobs"][0]["read"]["iops_mean"].as_f64() > Some(0.0), "{out:#}");
    assert!(out["jobs"][1]["write"]["lat_ns"]["mean"].as_f64() > Some(0.0), "{out:#}");
    let idle = out["cpu_idleness"].as_object().unwrap();
    let cpus: Vec<f64> =
        idle.iter().filter(|(key, _)| *key != "system").map(|(_, value)| percent(value)).collect();
    let mean = cpus.iter().sum::<f64>() / cpus.len() as f64;
    assert!(idle.contains_key("cpu-0") && (percent(&idle["system"]) - mean).abs() < 0.01, "{idle:?}");
    assert_eq!(jobs(call("system", "json"))["cpu_idleness"].as_object().unwrap().len(), 1);
    assert!(jobs(call("none", "json"))["cpu_idleness"].is_null());
    let text = call("percpu", "normal").stdout;
    assert!(text.contains("\nCPU idleness:\n  system: ") && text.contains("\n  percpu: "), "{text}");
}

/// Runs fio-plot's benchmark of a directory, which calls fio, and draws the results.
#[test]
#[ignore = "long"]
fn bench_fio_and_fio_plot_work_with_fathom_in_path() {
    let stage = Stage::shared();
    let (place, results, data) = (stage.path("python"), stage.path("results"), stage.folder("data"));
    let venv = tool(&[&"python3", &"-m", &"venv", &place]);
    if let Err(why) =
        venv.and_then(|_| tool(&[&place.join("bin/pip"), &"install", &"-q", &"fio-plot==1.1.21"]))
    {
        return skip(&format!("fio-plot cannot be installed: {why}"));
    }
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fathom"), place.join("bin/fio")).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.join("bin").display());
    let here = stage.folder("here");
    let call = |program: &str, words: &str| {
        let mut command = std::process::Command::new(place.join("bin").join(program));
        wait_long(command.args(words.split_whitespace()).env("PATH", &path).current_dir(&here))
    };
    let bench = format!(
        "--target {} --type directory --size 16m --mode randread randwrite --iodepth 1 4 --numjobs 1 2 --runtime 3 --time-based \
         --loginterval 200 --output {} --destructive --quiet --ss iops:50% --ss-dur 2",
        data.display(),
        results.display()
    );
    let out = call("bench-fio", &bench);
    assert_eq!(out.code, Some(0), "{out:?}");
    let folder = results.join("data/4k");
    for name in ["randread-1-1", "randread-4-2", "randwrite-4-1"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let direction = if name.starts_with("randread") { "read" } else { "write" };
        assert!(json["jobs"][0][direction]["iops"].as_f64() > Some(0.0), "{name}: {text}");
        assert!(json["jobs"][0]["steadystate"]["attained"].is_u64(), "{name}: {text}");
    }
    let draw = |words: &str| {
        let picture = stage.path("picture.png");
        let words = format!("-i {} -T title {words} -r randread -o {}", folder.display(), picture.display());
        let out = call("fio-plot", &words);
        assert_eq!(out.code, Some(0), "{words}: {out:?}");
        let bytes = std::fs::read(&picture).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000, "{words}: {} bytes", bytes.len());
    };
    ["-l", "-L -t iops", "-g -t iops lat bw -d 1 4 -n 1", "-H -d 4 -n 1"].into_iter().for_each(draw);
}
