//! Invalid input: one message with its cause and what to type instead, the right exit code, and nothing written.

use crate::disk::{Disk, Image};
use crate::output::shell;
use crate::stage::{Outcome, Stage, is_root, names, wait};
use std::path::{Path, PathBuf};

/// Fails unless the output is one message with all these words, and the exit code is this one.
#[track_caller]
fn refused(out: &Outcome, code: i32, words: &[&str]) {
    assert_eq!(out.code, Some(code), "{out:?}");
    assert_eq!(out.stdout, "");
    let messages =
        out.stderr.lines().filter(|l| l.starts_with("fathom: ") || l.starts_with("error: ")).count();
    assert_eq!(messages, 1, "{}", out.stderr);
    for word in words {
        assert!(out.stderr.contains(word), "'{word}' is not in: {}", out.stderr);
    }
}

#[test]
fn impossible_options_are_usage_errors() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let table: [(&str, &[&str]); 54] = [
        ("bench --profile fast", &["fast", "cdm"]),
        ("bench --engine psync", &["psync", "io_uring"]),
        ("bench --cache warm", &["warm", "buffered"]),
        ("bench --format pdf", &["pdf", "json"]),
        ("bench --runs 0", &["--runs", "1"]),
        ("bench --time soon", &["soon", "3s"]),
        ("bench --time 0", &["--time", "1ms"]),
        ("bench --size much", &["much", "4k"]),
        ("bench -o report.pdf", &["report.pdf", ".json"]),
        ("bench --accept Z99", &["Z99", "A01"]),
        ("bench --accept a0l", &["--accept", "a0l", "nearest is A01"]),
        ("bench --accept E14", &["E14", "comparisons"]),
        ("bench --frobnicate", &["--frobnicate", "--help"]),
        ("run --size 0", &["--size", "1g"]),
        ("run --size 4k --bs 8k", &["--bs", "--size"]),
        ("run --depth 0", &["--depth", "1"]),
        ("run --depth 1000000", &["--depth", "1"]),
        ("run --workers 0", &["--workers", "1"]),
        ("run --bs 0", &["--bs", "1"]),
        ("run --bs 1000 --size 16m", &["1000", "1024", "buffered"]),
        ("run --bs 1g --depth 4096 --size 2g", &["memory", "--depth"]),
        ("run --batch 0", &["'0'", "32"]),
        ("run --mix 150 --rw randrw", &["150", "100"]),
        ("run --mix 70 --rw randread", &["--mix", "randrw"]),
        ("run --rw backwards", &["backwards", "randread"]),
        ("run --iodepth=32", &["fio's --iodepth is --depth; type --depth 32"]),
        // The tests add --attempts, so --quick is no advice here.
        ("bench --runtime=60", &["fio's --runtime is --time; type --time 60s"]),
        ("bench --threads 4", &["the tests of fathom bench define; type fathom run --workers 4"]),
        ("sweep --numjobs 4", &["fio's --numjobs is --workers; type --workers 4"]),
        ("layers --direct=1", &["fathom layers does not take; type fathom run --cache direct"]),
        ("api -d60", &["DISKSPD's -d is --time; type --budget 60s, which"]),
        ("limit -W5", &["DISKSPD's -W is --warmup; type --warmup 5s"]),
        ("verify -b64K", &["DISKSPD's -b is --bs; type --bs 64K"]),
        ("run -o32", &[".json", "DISKSPD's -o is --depth; type --depth 32"]),
        ("limit --precision 5%", &["fathom limit does not take --precision", "fathom run"]),
        ("run --rw read --size 4m --stride 18446744073709551615", &["--stride", "multiples of"]),
        ("run --rw read --size 4m --hole 18446744073709551615", &["--hole", "multiples of"]),
        ("run --limit-bandwidth MB/s", &["MB/s", "200MB/s"]),
        ("run --rw write --create 64m", &["--create", "directory", "--size"]),
        ("run --rw read --bs 4096.7", &["4096.7", "4k"]),
        ("run --rw read --batch 64", &["--batch", "--depth"]),
        ("bench --explain -o plan.json", &["--explain", "-o"]),
        ("limit --arrivals on-off:2ms/2ms --workers 4", &["on-off", "--workers"]),
        ("limit --arrivals on-off:2ms/2ms --engine sync", &["on-off", "io_uring"]),
        ("run --replay x.capture --ops 100", &["--ops", "captured load", "--stop-after"]),
        ("run --replay x.capture --bytes 1m", &["--bytes", "captured load", "--stop-after"]),
        ("run --replay x.capture --pace fast --speed 2", &["--speed", "--pace fast"]),
        ("run --rw read --size 64m --pin --node 99", &["99", "node"]),
        ("sweep --rw read --batch 64 --depth 4 --exhaustive --list", &["batch"]),
        ("sweep --preset iops --engine null --attempts 5", &["--attempts 5", "iops"]),
        ("api --interface pread --depth 8", &["--depth", "one operation in flight"]),
        ("sweep --engine sim --list --list-specs", &["--list", "--list-specs"]),
        ("limit --inconclusive pass", &["--inconclusive", "--fail-if"]),
        ("sweep --inconclusive pass", &["--inconclusive", "--fail-if"]),
    ];
    for (words, must) in table {
        println!("{words}");
        refused(&stage.fathom(&format!("{words} --quiet"), &folder), 2, must);
    }
    assert_eq!((names(&folder), stage.sessions()), (Vec::<PathBuf>::new(), Vec::new()));
}

#[test]
fn unsuitable_formats_are_refused_with_suitable_ones() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let table: [(&str, &[&str]); 13] = [
        ("doctor --format csv", &["'csv'", "text, json, markdown or html"]),
        ("verify --format csv", &["'csv'", "text, json, markdown or html"]),
        ("bench --format pdf", &["'pdf'", "text, json, csv, markdown, html, cdm, fio, fio-json,"]),
        ("bench --brief --verbose", &["--brief", "--verbose"]),
        ("bench --brief --explain", &["--brief", "--explain"]),
        ("bench --brief --format json", &["--brief", "json has no short form", "--format markdown"]),
        ("sweep --list --format json", &["--list", "--format"]),
        ("api --list --format csv", &["--list", "--format"]),
        ("api --list -o list.json", &["--list", "--output"]),
        ("sweep --list-specs --explain", &["--list-specs", "--explain"]),
        ("export --schema -o schema.json", &["--schema", "--output"]),
        ("bench --explain --format csv", &["--format csv cannot write a plan", "--format text"]),
        ("bench -o report.pdf", &["report.pdf", ".txt, .json, .csv, .md, .html"]),
    ];
    for (words, must) in table {
        println!("{words}");
        refused(&stage.fathom(words, &folder), 2, must);
    }
    assert_eq!((names(&folder), stage.sessions()), (Vec::<PathBuf>::new(), Vec::new()));
}

#[test]
fn impossible_targets_are_named() {
    let stage = Stage::shared();
    let empty = stage.file("empty", 0);
    let small = stage.file("small", 1);
    let missing = stage.path("missing");
    refused(&stage.fathom("run --quiet", &missing), 2, &["missing", "does not exist", "directory"]);
    refused(&stage.fathom("run --quiet", &empty), 2, &["empty", "directory"]);
    refused(&stage.fathom("run --quiet --size 2m", &small), 2, &["beyond", "1 MiB", "type a smaller"]);
    refused(&stage.fathom("run --quiet --size 1m --offset 4k", &small), 2, &["beyond", "--offset"]);
    refused(&stage.fathom("run --quiet", Path::new("/dev/null")), 2, &["/dev/null", "block device"]);
    let folder = stage.folder("here");
    refused(&stage.fathom("run --quiet --size 900t", &folder), 3, &["room for", "--size"]);
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
    assert_eq!(stage.sessions(), Vec::<PathBuf>::new());
}

#[test]
fn missing_targets_name_what_to_type() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let missing = folder.join("missing.dat");
    // The path may be a mount point, so the advice begins with that, and names the disk of the parent.
    let mount = "does not exist; if a disk should be mounted there, mount it first: `fathom devices` lists";
    let directory = format!("such as {}, which is on ", folder.display());
    refused(
        &stage.fathom("run --quiet", &missing),
        2,
        &[mount, "otherwise type --create 1g to make this file", &directory],
    );
    for command in ["bench", "sweep --rw randread", "limit", "layers", "api", "verify"] {
        refused(&stage.fathom(&format!("{command} --quiet"), &missing), 2, &[mount, &directory]);
    }
    for name in ["job.yaml", "job.YML", "job.json"] {
        let job = folder.join(name);
        refused(&stage.fathom("run --quiet", &job), 2, &["does not exist; job files end in .toml"]);
        std::fs::write(&job, "rw: randread\n").unwrap();
        refused(&stage.fathom("run --quiet", &job), 2, &["is a text file (13 B)", "job files end in .toml"]);
        // --destroy shows that the file itself is meant.
        let destroy = format!("run --quiet --rw randwrite --size 2m --destroy {}", job.display());
        refused(&stage.fathom(&destroy, &job), 2, &["beyond the end of", "which has 13 B"]);
        std::fs::remove_file(&job).unwrap();
    }
    let in_missing = folder.join("none/at/all");
    let none = format!("there is no directory {}/none; `fathom devices` lists", folder.display());
    refused(&stage.fathom("run --quiet", &in_missing), 2, &[&none]);
    refused(
        &stage.fathom("bench --quiet", Path::new("/dev/no-such-disk")),
        2,
        &["type the path of a block device"],
    );
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
}

#[test]
fn destroy_without_a_target_is_no_measurement_of_the_current_directory() {
    let stage = Stage::shared();
    for command in
        ["recipe etcd", "run --rw randwrite", "bench --quick", "sweep --rw write", "limit", "layers", "api"]
    {
        let out = stage.fathom(&format!("{command} --destroy /dev/loop6"), Path::new(""));
        let instead = "--destroy /dev/loop6 /dev/loop6\n";
        refused(&out, 2, &["no target given: --destroy only permits overwriting; type fathom ", instead]);
    }
    // A stream of the job file names a target.
    let job = stage.path("job.toml");
    let data = stage.file("data", 1);
    let streams = format!(
        "[[stream]]\nrw = \"randread\"\ntarget = \"{}\"\n[[stream]]\nrw = \"randread\"\n",
        data.display()
    );
    std::fs::write(&job, streams).unwrap();
    refused(&stage.fathom("run --destroy /dev/loop6", &job), 2, &["--destroy has no effect"]);
    // The null engine uses no target, so there is none that --destroy could name.
    let idle = stage.fathom("run --rw randread --engine null --destroy sda", Path::new(""));
    refused(&idle, 2, &["--destroy has no effect"]);
    assert_eq!(stage.sessions(), Vec::<PathBuf>::new());
}

#[test]
fn directories_in_place_of_sessions_are_named() {
    let stage = Stage::shared();
    let (ext4, xfs) = (stage.folder("ext4"), stage.folder("xfs"));
    let [a, b] = [ext4.display(), xfs.display()];
    let both =
        format!("{a} is a directory, not a measurement; to measure both: fathom bench --compare {a} {b}");
    refused(&stage.fathom(&format!("compare {a}"), &xfs), 2, &[&both]);
    let alone = format!("{b} is a directory, not a measurement; type fathom bench {b} to measure it");
    for words in ["show", "export", "run --against"] {
        refused(&stage.fathom(words, &xfs), 2, &[&alone]);
    }
    // A name without a slash may also be a tag or a part of an id.
    let mut relative = stage.command(&[], "compare ext4 xfs", Path::new(""));
    let out = wait(relative.current_dir(ext4.parent().unwrap()));
    let both = "ext4 is a directory, not a measurement; to measure both: fathom bench --compare ext4 xfs";
    refused(&out, 2, &[both]);
}

#[test]
fn results_of_fio_are_named_with_what_to_type() {
    let stage = Stage::shared();
    let results = [
        ("json", "{\n  \"fio version\" : \"fio-3.33\",\n  \"jobs\" : []\n}\n"),
        ("json+", "fio: a message\n{\n  \"fio version\" : \"fio-3.33\"\n}\n"),
        ("terse", "3;fio-3.33;a;0;0;4096;372363\n"),
        ("text", "a: (g=0): rw=read, bs=(R) 4096B-4096B, iodepth=1\nfio-3.33\nStarting 1 process\n"),
    ];
    for (name, text) in results {
        let file = stage.path(name);
        std::fs::write(&file, text).unwrap();
        let other = stage.path(&format!("other-{name}"));
        std::fs::write(&other, text).unwrap();
        for words in ["show", "export", &format!("compare {}", other.display()), "run --against"] {
            println!("{words} {name}");
            refused(&stage.fathom(words, &file), 2, &["a result of fio", "type `fathom fio`"]);
        }
        refused(&stage.fathom("import", &file), 2, &["type one that `fathom export` wrote"]);
        for words in ["bench --quiet", "run --quiet", "layers --quiet"] {
            refused(
                &stage.fathom(words, &file),
                2,
                &["is a result of fio, not a disk to measure; name a directory"],
            );
        }
    }
    let report = stage.path("report.json");
    std::fs::write(&report, "{\"fathom\": {\"format\": 1}}\n").unwrap();
    refused(
        &stage.fathom("show", &report),
        2,
        &["begins like JSON, but is not the JSON report of a measurement (missing field"],
    );
    let reads = "a JSON report of fathom, which only `fathom show` and `fathom compare` read";
    refused(&stage.fathom("export", &report), 2, &[reads]);
    refused(&stage.fathom("run --quiet", &report), 2, &["is a JSON report of fathom, not a disk to measure"]);
    assert_eq!(stage.sessions(), Vec::<PathBuf>::new());
}

#[test]
fn missing_programs_are_named_before_the_first_run() {
    let stage = Stage::shared();
    let out = shell(&stage, "\"$F\" time --compare true 'no-such-program --flag'");
    refused(&out, 127, &["--compare 'no-such-program --flag': there is no program 'no-such-program'"]);
    // --compare also accepts shell builtins, and programs that --prepare makes.
    assert_eq!(shell(&stage, "\"$F\" time --runs 1 --compare ': a' true").code, Some(0));
    let made = shell(&stage, "\"$F\" time --runs 1 --prepare : --compare 'no-such-program' true");
    assert_eq!(made.code, Some(127), "{made:?}");
    assert!(!made.stderr.contains("there is no program"), "{made:?}");
    assert_eq!(stage.sessions().len(), 2);
}

#[test]
fn non_sessions_are_not_shown() {
    let stage = Stage::shared();
    let text = stage.path("text");
    std::fs::write(&text, "hello\n").unwrap();
    refused(&stage.fathom("show", &text), 2, &["not a session file", "text"]);
    refused(&stage.fathom("show", &stage.path("missing")), 2, &["missing"]);
    refused(&stage.fathom("show", Path::new("/dev/zero")), 2, &["/dev/zero", "character device"]);

    let words = "run --engine sim --depth 4 --time 20ms --warmup 0 --runs 1 --quiet";
    assert_eq!(stage.fathom(words, Path::new("")).code, Some(0));
    let session = stage.sessions().remove(0);
    let whole = std::fs::read(&session).unwrap();
    let torn = stage.path("torn");
    std::fs::write(&torn, &whole[..whole.len() - 5]).unwrap();
    let shown = stage.fathom("show --format json", &torn);
    assert!(shown.report().0["ending"]["how"] == "cut", "{shown:?}");
    let mut damaged = whole.clone();
    damaged[200] ^= 1;
    std::fs::write(&torn, damaged).unwrap();
    refused(&stage.fathom("show", &torn), 2, &["line 2", "damaged"]);
}

#[test]
fn unwritable_reports_are_refused_before_measuring() {
    let stage = Stage::shared();
    let report = stage.path("missing/report.json").display().to_string();
    let words = format!("run --engine sim --depth 4 --time 20ms --warmup 0 --runs 1 --quiet -o {report}");
    let out = stage.fathom(&words, Path::new(""));
    refused(&out, 2, &[&report, "another name"]);
    assert_eq!(stage.sessions(), Vec::<PathBuf>::new());
}

#[test]
fn missing_permission_is_refused_with_a_fix() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let folder = stage.folder("of-root");
    let out = stage.fathom_unprivileged("run --size 16m --quiet", &folder);
    refused(&out, 3, &["of-root", "that you own"]);
    let file = stage.file("of-root/secret", 1);
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let out = stage.fathom_unprivileged("run --quiet", &file);
    refused(&out, 3, &["secret", "that you own"]);
    let out = stage.fathom_unprivileged("bench", &file);
    refused(&out, 3, &["secret", "that you own"]);
    assert!(!out.stderr.contains("It takes"), "{out:?}");
    assert_eq!(names(&folder), [file]);
}

#[test]
fn full_and_read_only_mounts_are_refused_with_a_fix() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh("cat /dev/zero > full || true");
    let out = disk.fathom(&stage, "bench", &disk.dir);
    refused(&out, 3, &["has room for only", "make room"]);
    assert!(!out.stderr.contains("It takes"), "{out:?}");
    disk.sh("mount -o remount,ro .");
    let out = disk.fathom(&stage, "run --size 16m --quiet", &disk.dir);
    refused(&out, 3, &["read-only", "name"]);
}

#[test]
fn unknown_check_ids_are_answered_with_the_nearest() {
    let stage = Stage::shared();
    refused(&stage.fathom("explain cache_servd", Path::new("")), 2, &["cache_servd", "A01 CACHE_SERVED"]);
    let page = stage.fathom("explain cache_served", Path::new(""));
    assert_eq!(page.code, Some(0), "{page:?}");
    assert!(page.stdout.contains("A01 CACHE_SERVED") && page.stdout.contains("--accept A01"), "{page:?}");
}

#[test]
fn defaults_in_help_are_the_real_defaults() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    for command in [
        "run",
        "run --rw read",
        "bench",
        "sweep",
        "sweep --exhaustive",
        "sweep --preset iops",
        "sweep --preset iometer",
        "api",
        "layers",
        "limit --p99 1ms",
        "bench --profile cdm",
        "recipe etcd",
    ] {
        let help = stage.fathom(&format!("{command} --help"), Path::new("")).stdout;
        let out = stage.fathom(&format!("{command} --explain"), &folder);
        assert_eq!(out.code, Some(0), "{command}: {out:?}");
        let mut compared = 0;
        for row in out.stdout.lines().filter(|l| l.starts_with("--") && l.trim_end().ends_with(" default")) {
            let mut columns = row.split("  ").map(str::trim).filter(|c| !c.is_empty());
            let (Some(flag), Some(value)) = (columns.next(), columns.next()) else {
                panic!("{command}: {row}")
            };
            let Some(default) = default_in(&help, flag) else { continue };
            let plain = |words: &str| {
                let words =
                    words.to_lowercase().replace(" gib", "g").replace(" mib", "m").replace(" kib", "k");
                words
                    .split([' ', ',', ';', ':'])
                    .filter(|w| !w.is_empty())
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            // In the help, an explanation of the value follows the colon.
            let value = value.split(": ").next().unwrap_or(value);
            let (printed, taken) = (plain(&default), plain(value));
            assert!(
                taken.iter().all(|t| printed.contains(t)),
                "{command}: help of {flag} says {default}, and it is {value}"
            );
            compared += 1;
        }
        // These commands set everything that their flags could set, so the plan has no default value.
        let says_all = command.starts_with("recipe") || command.ends_with("--preset iops");
        assert!(compared > 0 || says_all, "{command}: {}", out.stdout);
    }
    let samples = ["mixed:50%", "zipf:1.1", "pareto:0.2", "normal:10%", "zones:60%/10%,40%/90%"];
    for order in samples {
        let out = stage.fathom(&format!("run --random {order} --explain"), &folder);
        assert_eq!(out.code, Some(0), "what help writes is taken: {order}: {out:?}");
    }
}

/// The default of an option in the help.
fn default_in(help: &str, flag: &str) -> Option<String> {
    let from = help.split('\n').skip_while(|l| !l.trim().starts_with(&format!("{flag} ")));
    let mut lines = from.map(str::trim);
    let first = lines.next()?;
    let text: Vec<&str> = std::iter::once(first).chain(lines.take_while(|l| !l.starts_with('-'))).collect();
    let (_, default) = text.join(" ").split_once("[default: ").map(|(a, b)| (a.to_owned(), b.to_owned()))?;
    Some(default.split(']').next()?.to_owned())
}

#[test]
fn explain_touches_nothing() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let out = stage.fathom("bench --explain", &folder);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.contains("--size") && out.stdout.contains("default"), "{}", out.stdout);
    assert_eq!((names(&folder), stage.sessions()), (Vec::<PathBuf>::new(), Vec::new()));
}

#[test]
fn explain_prints_settings_as_typed() {
    let stage = Stage::shared();
    let (one, other) = (stage.folder("one"), stage.folder("other"));
    let typed = "--sharing weighted:3,1 --cpus 0-1 --rate 100 --arrivals constant --engine io_uring:sqpoll=1";
    for typed in [typed, "--sharing round-robin"] {
        let out = stage.fathom(&format!("run --explain {typed} {}", other.display()), &one);
        assert_eq!(out.code, Some(0), "{out:?}");
        for value in typed.split(' ').filter(|w| !w.starts_with("--")).flat_map(|w| w.split("io_uring:")) {
            let reported = |line: &str| line.split("  ").any(|column| column.trim().starts_with(value));
            assert!(out.stdout.lines().any(reported), "{value} is not in {}", out.stdout);
        }
    }
}

#[test]
fn user_input_is_quoted_in_one_line() {
    let stage = Stage::shared();
    for line in [
        "'ru\nn'",
        "run '--no\nde'",
        "run --rw 'wr\nite'",
        "run --format 'js\non' .",
        "run --fail-if 'a\nb' .",
    ] {
        let out = shell(&stage, &format!("\"$F\" {line}"));
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(out.stderr.contains(r"\x0a") || out.stderr.contains(r"\n"), "{line:?}: {out:?}");
    }
}
