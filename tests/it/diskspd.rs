//! `fathom diskspd`, also under the program name diskspd: effects on files, threads and rates, compared with the ledger.

use crate::output::check_outcome;
use crate::stage::{Outcome, Stage, fill, wait};
use serde_json::Value;
use std::path::Path;

const MIB: usize = 1 << 20;

/// fathom by the name of diskspd, in the folder of the test.
fn diskspd(stage: &Stage, words: &str) -> Outcome {
    diskspd_with(stage, words, &[])
}

fn diskspd_with(stage: &Stage, words: &str, set: &[(&str, &str)]) -> Outcome {
    let by_name = ["bash", "-c", "exec -a /usr/bin/diskspd \"$0\" \"$@\""].map(str::to_owned);
    let mut command = stage.command(&by_name, words, Path::new(""));
    wait(command.current_dir(stage.folder("here")).envs(set.iter().copied()))
}

/// Runs a short measurement, which must succeed.
#[track_caller]
fn done(stage: &Stage, words: &str) -> Outcome {
    let out = diskspd(stage, &format!("-d1 -W0 {words}"));
    assert_eq!(out.code, Some(0), "{words}: {out:?}");
    out
}

/// The results of the last session, in fathom's own report.
fn last(stage: &Stage) -> Vec<Value> {
    let report = stage.fathom("show last --format json", Path::new("")).report();
    report.0["results"].as_array().cloned().unwrap_or_default()
}

fn stream(result: &Value) -> &Value {
    &result["job"]["phases"][result["phase"].as_u64().unwrap() as usize]["streams"]
        [result["stream"].as_u64().unwrap() as usize]
}

fn here(stage: &Stage, name: &str) -> Vec<u8> {
    std::fs::read(stage.folder("here").join(name)).unwrap()
}

/// Whether bytes count from 0 to 255, over and over.
fn counts(bytes: &[u8]) -> bool {
    bytes.iter().zip((0..=u8::MAX).cycle()).all(|(byte, counted)| *byte == counted)
}

#[test]
fn caching_options_match_the_ledger() {
    let stage = Stage::shared();
    for (words, cache, engine) in [
        ("-Su -o1", "direct", "sync"),
        ("-Sh -o4 -w50", "direct-dsync", "io_uring"),
        ("-Sb -fr", "buffered", "io_uring"),
        ("-Sw -w100 -o1", "dsync", "sync"),
        ("-Sm -Nv -w10", "mmap", "mmap"),
    ] {
        done(&stage, &format!("-c8M -b4K -r {words} data"));
        let result = last(&stage).remove(0);
        let stream = stream(&result);
        assert_eq!(
            (stream["cache"].as_str(), stream["engine"].as_str()),
            (Some(cache), Some(engine)),
            "{words}"
        );
        let ledger = &result["ledger"];
        if cache.starts_with("direct") {
            let read = &ledger["read"];
            assert!(read["issued"]["ios"].as_u64() > Some(0), "{words}: {ledger:#}");
            // If the kernel charges reads to fathom, the charge must match the issued reads.
            let word = read["charged"]["word"].as_str();
            assert!(matches!(word, Some("agrees") | None), "{words}: {ledger:#}");
        }
        if words.contains("-Nv") {
            assert!(result["sync"]["ops"].as_u64() >= Some(1), "each write is flushed: {:#}", result["sync"]);
        }
    }
}

#[test]
fn writes_follow_base_stride_and_thread_ranges() {
    let stage = Stage::shared();
    for (words, is_touched) in [
        ("-B1M:1M -r -b64K", (|at: usize| (16..32).contains(&at)) as fn(usize) -> bool),
        ("-f1M -s -b64K", |at| at < 16),
        ("-s128K -b64K", |at| at % 2 == 0),
        ("-r128K -b64K", |at| at % 2 == 0),
        ("-r -b64K -rdpct100/25:0/75", |at| at < 16),
        ("-r -b64K -rdabs0/1M:100/1M", |at| (16..32).contains(&at)),
        ("-p -s -b64K -o3 -f2M", |at| at < 32),
        ("-s0 -B512K -b64K", |at| at == 8),
    ] {
        let name = "region";
        let _ = std::fs::remove_file(stage.folder("here").join(name));
        done(&stage, &format!("-c4M -w100 -Su {words} {name}"));
        let data = here(&stage, name);
        let touched: Vec<bool> = data.chunks(64 << 10).map(counts).collect();
        let expected: Vec<bool> = (0..64).map(is_touched).collect();
        assert_eq!(touched, expected, "{words}");
    }
}

#[test]
fn write_source_follows_z() {
    let stage = Stage::shared();
    let source = stage.folder("here").join("source");
    std::fs::write(&source, b"seven b").unwrap();
    let written = |z: &str| {
        done(&stage, &format!("-c1M -b4K -w100 -Su -s {z} written"));
        here(&stage, "written")
    };
    assert!(counts(&written("")));
    assert!(written("-Z").iter().all(|byte| *byte == 0));
    let unique = written("-Zr");
    let blocks: std::collections::HashSet<&[u8]> = unique.chunks(4096).collect();
    assert_eq!(blocks.len(), 256, "each block is another");
    let of_file = written("-Z8K,source");
    assert!(of_file.windows(7).any(|w| w == b"seven b") && of_file.iter().all(|b| b"seven b".contains(b)));
    let copies = written("-Z64K");
    let blocks: std::collections::HashSet<&[u8]> = copies.chunks(4096).collect();
    assert!((1..=16).contains(&blocks.len()), "{} blocks of a buffer of sixteen", blocks.len());
    fill(&source, 1);
    check_outcome(
        &diskspd(&stage, "-d1 -w100 -c1M -Z64K,source written"),
        1,
        &["fathom writes all", "-Z1048576,source"],
    );
}

#[test]
fn threads_are_listed_per_target_with_their_cpus() {
    let stage = Stage::shared();
    let rows = |out: &Outcome| {
        let (_, total) = out.stdout.split_once("Total IO\n").unwrap();
        let (total, _) = total.split_once("\nRead IO").unwrap();
        let row = |line: &str| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let thread = cells.first()?.parse::<u32>().ok()?;
            let ios: u64 = cells.get(2)?.parse().ok()?;
            assert!(ios > 0, "{line}");
            Some((thread, cells.last()?.to_string()))
        };
        total.lines().filter_map(row).collect::<Vec<_>>()
    };
    let own = done(&stage, "-c4M -b64K -t2 -r -Su -a0 one two");
    let [one, two] = ["one (4MiB)", "two (4MiB)"].map(str::to_owned);
    assert_eq!(rows(&own), [(0, one.clone()), (1, one.clone()), (2, two.clone()), (3, two.clone())]);
    assert!(own.stdout.contains("thread count:\t\t4\n"), "{own:?}");
    let pooled = done(&stage, "-c4M -b64K -F2 -o2 -r -Su one two");
    assert_eq!(rows(&pooled), [(0, one.clone()), (0, two.clone()), (1, one.clone()), (1, two)]);
    assert!(pooled.stdout.contains("\tthread pool with 2 threads\n"), "{pooled:?}");
    // Reads from the page cache complete at once, so one target could starve the others.
    done(&stage, "-c4M -b64K -F1 -o2 -r one two");
    let xml = done(&stage, "-c4M -b64K -F1 -o2 -r -Rxml one two").stdout;
    let counts: Vec<u64> =
        xml.split("<IOCount>").skip(1).map(|rest| rest.split('<').next().unwrap().parse().unwrap()).collect();
    assert!(counts.len() == 2 && counts[0].abs_diff(counts[1]) < counts[0] / 4, "{counts:?}");
    done(&stage, "-c4M -b64K -F2 -O3 -r -Su one");
    assert_eq!(stream(&last(&stage)[0])["depth"], 3);
    // Start offsets of workers: different, equal, or from one position.
    for (words, start) in [("-T1M", "every"), ("-si", "interlocked"), ("", "same")] {
        done(&stage, &format!("-c4M -b64K -t2 {words} -Su one"));
        let result = last(&stage).remove(0);
        let order = stream(&result)["access"]["lines"][0]["order"].to_string();
        assert!(order.contains(start), "{words}: {order}");
    }
    done(&stage, "-c4M -b64K -t2 -n -r -rs50 -w40 -I2 -l -Su one");
    let result = last(&stage).remove(0);
    let (line, place) = (&stream(&result)["access"]["lines"][0], &stream(&result)["place"]);
    assert_eq!((line["mix_by_run"].as_bool(), place["cpus"].as_array().map(Vec::len)), (Some(true), Some(0)));
}

/// Operations of both directions.
fn operations(result: &Value) -> u64 {
    ["read", "write"].iter().filter_map(|kind| result[kind]["ops"].as_u64()).sum()
}

/// Operations of each thread on each target, by the XML.
fn of_each(xml: &str) -> Vec<(u32, String, u64)> {
    let value = |text: &str, name: &str| {
        let rest = text.split_once(&format!("<{name}>")).unwrap().1;
        rest.split('<').next().unwrap().to_owned()
    };
    // The profile before the results has threads too.
    let threads = xml.split("</Profile>").nth(1).unwrap_or_default().split("<Thread>").skip(1);
    threads
        .flat_map(|thread| {
            let id: u32 = value(thread, "Id").parse().unwrap();
            let of = |target: &str| (id, value(target, "Path"), value(target, "IOCount").parse().unwrap());
            thread.split("<Target>").skip(1).map(of).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn thread_operations_are_shared_by_target_weight() {
    let stage = Stage::shared();
    let xml = done(&stage, "-c4M -b64K -F2 -O6 -r -Su -w30 -Rxml one two").stdout;
    let all = of_each(&xml);
    let names: Vec<_> = all.iter().map(|(thread, path, _)| (*thread, path.as_str())).collect();
    assert_eq!(names, [(0, "one"), (0, "two"), (1, "one"), (1, "two")]);
    assert!(all.iter().all(|(.., ios)| *ios > 0), "{all:?}");
    let result = last(&stage).remove(0);
    assert_eq!(
        (stream(&result)["depth"].as_u64(), &stream(&result)["sharing"]["weighted"]),
        (Some(6), &serde_json::json!([1, 1]))
    );
    // The rows list all threads: their sum is the number of operations in the window.
    let counted = operations(&result);
    assert_eq!(all.iter().map(|(.., ios)| ios).sum::<u64>(), counted);
    assert!(result["ledger"]["read"]["issued"]["ios"].as_u64() > Some(0), "{:#}", result["ledger"]);
    // An XML profile can set weights, and targets of a single thread.
    let printed = diskspd(&stage, "-Rpxml -d1 -W0 -c4M -b64K -F2 -O6 -r -Su one two three").stdout;
    let own = |thread: u32| {
        format!("<ThreadTargets><ThreadTarget><Thread>{thread}</Thread></ThreadTarget></ThreadTargets>")
    };
    let mut parts = printed.split("<Weight>1</Weight>");
    let text = [
        parts.next().unwrap(),
        "<Weight>4</Weight>",
        parts.next().unwrap(),
        &own(0),
        parts.next().unwrap(),
        &own(1),
        parts.next().unwrap(),
    ]
    .concat();
    std::fs::write(stage.folder("here").join("weights.xml"), text).unwrap();
    let all = of_each(&diskspd(&stage, "-Xweights.xml -Rxml").stdout);
    let names: Vec<_> = all.iter().map(|(thread, path, _)| (*thread, path.as_str())).collect();
    assert_eq!(names, [(0, "one"), (0, "two"), (1, "one"), (1, "three")]);
    for pair in all.chunks(2) {
        let share = pair[0].2 as f64 / (pair[0].2 + pair[1].2) as f64;
        assert!((share - 0.8).abs() < 0.1, "four of five: {pair:?}");
    }
}

#[test]
fn intervals_of_one_millisecond_work() {
    let stage = Stage::shared();
    let xml = done(&stage, "-D1 -L -Rxml -c4M -b4K -r -Su -o4 -w20 data").stdout;
    let (of_all, _) = xml.split_once("<Thread>").unwrap();
    let buckets: Vec<&str> = of_all.split("<Bucket SampleMillisecond=").skip(1).collect();
    assert!((990..=1000).contains(&buckets.len()), "{} intervals of a second", buckets.len());
    let total = |bucket: &str| -> f64 {
        bucket.split("Total=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    let counted = operations(&last(&stage)[0]) as f64;
    // Each bucket has a rate per second, measured over one millisecond.
    let sum: f64 = buckets.iter().map(|bucket| total(bucket) / 1000.0).sum();
    assert!((sum - counted).abs() < counted * 0.02 + 2.0, "{sum} of {counted}");
}

#[test]
fn distributions_select_the_ranges_of_runs() {
    let stage = Stage::shared();
    done(&stage, "-c4M -b64K -w100 -Su -rs25 -r -rdpct100/25:0/75 -f4M parts");
    let result = last(&stage).remove(0);
    let line = &stream(&result)["access"]["lines"][0];
    assert_eq!(
        (line["run_length"].as_f64(), line["order"]["zones"].is_array()),
        (Some(4.0), true),
        "{line:#}"
    );
    // Random operations hit only the first quarter, whose last blocks must be written. Only sequential runs leave the quarter.
    let touched: Vec<bool> = here(&stage, "parts").chunks(64 << 10).map(counts).collect();
    assert!(touched[..16].iter().all(|t| *t), "{touched:?}");
    assert!(result["ledger"]["write"]["issued"]["ios"].as_u64() > Some(0), "{:#}", result["ledger"]);
}

#[test]
fn utf16_profiles_are_read() {
    let stage = Stage::shared();
    let printed = diskspd(&stage, "-Rpxml -d1 -W0 -c1M -r -Su data").stdout;
    let units: Vec<u8> = std::iter::once(0xfeff)
        .chain(printed.replace('\n', "\r\n").encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    std::fs::write(stage.folder("here").join("windows.xml"), units).unwrap();
    let out = diskspd(&stage, "-Xwindows.xml");
    assert!(out.code == Some(0) && out.stdout.contains("<IOCount>"), "{out:?}");
}

#[test]
fn each_thread_keeps_its_throughput_and_bursts() {
    let stage = Stage::new();
    let iops = |stage: &Stage| last(stage)[0]["total"]["iops"].as_f64().unwrap();
    for (words, expected) in [("-g100i -t2", 200.0), ("-g4096 -t1", 1000.0), ("-i10 -j100 -o1 -t1", 99.0)] {
        done(&stage, &format!("-c4M -b4K -r {words} paced"));
        let seen = iops(&stage);
        assert!((seen - expected).abs() < expected * 0.2, "{words}: {seen}");
    }
}

#[test]
fn latencies_and_intervals_are_where_parsers_expect_them() {
    let stage = Stage::one_per_cpu();
    let out = diskspd(&stage, "-d2 -W1 -C1 -D500 -L -c4M -b4K -r -Su -o4 -w20 -v data");
    assert_eq!(out.code, Some(0), "{out:?}");
    for words in [
        "\tgathering IOPS at intervals of 500ms\n",
        "\twarm up time: 1s\n\tcool down time: 1s\n",
        "|  I/O per s |  AvgLat  | IopsStdDev | LatStdDev |  file\n",
        "  %-ile |  Read (ms) | Write (ms) | Total (ms)\n",
        "9-nines |        N/A |        N/A |        N/A\n",
    ] {
        assert!(out.stdout.contains(words), "{words}: {out:?}");
    }
    let (_, after) = out.stdout.split_once("\nactual test time:\t").unwrap();
    let seconds: f64 = after.split_once("s\n").unwrap().0.parse().unwrap();
    assert!((2.0..3.0).contains(&seconds), "warm-up and cool-down do not count: {out:?}");
    assert!(
        out.stderr.contains("fathom: ") && !out.stdout.contains("fathom: "),
        "the verdict is on standard error: {out:?}"
    );
    let out = done(&stage, "-D250 -L -Rxml -c4M -b4K -r -Su -o4 data");
    assert_eq!(out.stderr, "", "nothing next to XML");
    assert!(
        out.stdout.starts_with("<Results>\n  <System>\n") && out.stdout.ends_with("</Results>\n"),
        "{out:?}"
    );
    let (of_all, _) = out.stdout.split_once("<Thread>").unwrap();
    assert_eq!(of_all.matches("<Bucket SampleMillisecond=").count(), 4, "{of_all}");
    assert_eq!(of_all.matches("<Percentile>").count(), 108);
    assert!(out.stdout.contains("<Verdict>"), "{out:?}");
}

#[test]
fn profiles_are_printed_and_run_with_all_time_spans() {
    // The output reports the time of both time spans.
    let stage = Stage::new();
    let printed = diskspd(&stage, "-Rpxml -d1 -W0 -L -c2M -b8K -r -Su -o4 data");
    assert_eq!(
        (printed.code, printed.stderr.as_str(), stage.sessions().len()),
        (Some(0), "", 0),
        "{printed:?}"
    );
    assert!(!stage.folder("here").join("data").exists(), "nothing is made");
    let (before, rest) = printed.stdout.split_once("    <TimeSpan>\n").unwrap();
    let (span, after) = rest.split_once("    </TimeSpan>\n").unwrap();
    let span = format!("    <TimeSpan>\n{span}    </TimeSpan>\n").replace("<Path>data<", "<Path>*1<");
    let two = format!("{before}{span}{}{after}", span.replace("<WriteRatio>0<", "<WriteRatio>100<"));
    std::fs::write(stage.folder("here").join("two.xml"), two).unwrap();
    let out = diskspd(&stage, "-Xtwo.xml -Rtext data");
    assert_eq!(out.code, Some(0), "{out:?}");
    for words in ["timespan:   2\n", "Results for timespan 2:", "\nTotals:\n", "\ntotal test time:\t2.0"] {
        assert!(out.stdout.contains(words), "{words}: {out:?}");
    }
    let all = last(&stage);
    assert!(
        all.len() == 2
            && all[0]["read"]["ops"].as_u64() > Some(0)
            && all[1]["write"]["ops"].as_u64() > Some(0)
    );
    // `fathom run` runs the profile like any other job.
    let here = stage.folder("here");
    std::fs::write(
        here.join("own.xml"),
        span.replace("*1", here.join("data").to_str().unwrap())
            .replace("    <TimeSpan>", &format!("{before}<TimeSpan>"))
            + after,
    )
    .unwrap();
    let out =
        stage.fathom("run --runs 1 --attempts 1 --time 100ms --format json --quiet", &here.join("own.xml"));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    assert_eq!(out.report().0["results"][0]["runs"].as_array().map(Vec::len), Some(1));
    check_outcome(&diskspd(&stage, "-Xtwo.xml"), 1, &["template target '*1' was not substituted"]);
}

#[test]
fn only_files_made_by_c_are_written() {
    let stage = Stage::shared();
    let out = done(&stage, "-c2M -w100 -Su kept");
    assert!(out.stdout.contains("Command Line: -d1 -W0 -c2M -w100 -Su kept\n"), "{out:?}");
    done(&stage, "-c4M -w100 -Su kept");
    assert_eq!(here(&stage, "kept").len(), 4 * MIB, "it is made again, and larger");
    let foreign = stage.folder("here").join("foreign");
    std::fs::write(&foreign, vec![7; MIB]).unwrap();
    check_outcome(&diskspd(&stage, "-d1 -W0 -w100 foreign"), 1, &["--destroy", "foreign"]);
    check_outcome(&diskspd(&stage, "-d1 -W0 -c2M foreign"), 1, &["fathom did not make it", "leave -c out"]);
    assert!(here(&stage, "foreign").iter().all(|byte| *byte == 7));
    done(&stage, "-f64M foreign");
    let set = [("FATHOM_DESTROY", foreign.to_str().unwrap())];
    let out = diskspd_with(&stage, "-d1 -W0 -w100 -Su foreign", &set);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(counts(&here(&stage, "foreign")));
    std::fs::write(&foreign, vec![7; MIB]).unwrap();
    done(&stage, &format!("--destroy={} -w100 -Su foreign", foreign.display()));
    // A named file does not permit another one: fathom's mark alone permits that, and it is checked again before the first write.
    done(&stage, &format!("--destroy={} -w100 -Su foreign kept", foreign.display()));
    let session = std::fs::read_to_string(stage.sessions().pop().unwrap()).unwrap();
    let header: Value = serde_json::from_str(&session.lines().nth(1).unwrap()[9..]).unwrap();
    let targets = header["header"]["plan"]["targets"].as_array().unwrap();
    let by_mark: Vec<bool> = targets.iter().map(|target| target["only_by_mark"] == true).collect();
    assert_eq!(by_mark, [false, true], "{targets:?}");
    check_outcome(&diskspd(&stage, "-d1 absent"), 1, &["does not exist", "-c1G"]);
    check_outcome(&diskspd(&stage, "-d1 ."), 1, &["is a directory"]);
}

#[test]
fn errors_exit_with_1_before_anything_is_made() {
    let stage = Stage::shared();
    for (words, reported) in [
        ("-c1M -t0 a", "at least 1"),
        ("-c1M -x a", "completion routines"),
        ("-c1M -eDISK_IO a", "fathom capture"),
        ("-c1M -ysgo a", "named events"),
        ("-c1M #3", "/dev/sdb"),
        ("-c1M Q:", "lsblk"),
        ("-c1M -r -T1M -t2 a", "-T conflicts with -r"),
        ("a -c1M", "options before targets"),
        ("-c1M", "at least one target"),
    ] {
        check_outcome(&diskspd(&stage, words), 1, &[reported]);
    }
    assert_eq!(std::fs::read_dir(stage.folder("here")).unwrap().count(), 0);
    let help = diskspd(&stage, "-?");
    assert!(help.code == Some(0) && help.stdout.contains("Usage: diskspd [options] target1"), "{help:?}");
    let warned = done(&stage, "-c1M -t2 -P a");
    assert!(warned.stderr.contains("will not be sequential, consider -si"), "{warned:?}");
    let out =
        wait(stage.command(&[], "diskspd -d1 -W0 -c1M b", Path::new("")).current_dir(stage.folder("here")));
    assert_eq!(out.code, Some(0), "{out:?}");
}

#[test]
fn the_next_call_writes_a_file_made_by_c_but_no_other() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let run = |words: &str| {
        wait(stage.command(&[], &format!("diskspd {words}"), Path::new("")).current_dir(&folder))
    };
    let out = run("-c1M -w0 -d1 -W0 f");
    assert_eq!(out.code, Some(0), "{out:?}");
    let out = run("-w100 -d1 -W0 f");
    assert_eq!(out.code, Some(0), "{out:?}");
    // Another program wrote the file, so it now belongs to the user.
    std::fs::write(folder.join("f"), vec![7; 1 << 20]).unwrap();
    let out = run("-w100 -d1 -W0 f");
    assert!(out.code == Some(1) && out.stderr.contains("--destroy"), "{out:?}");
    assert!(std::fs::read(folder.join("f")).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn profiles_of_rp_run_and_typographic_dashes_are_recognised() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let run = |words: &str| {
        wait(stage.command(&[], &format!("diskspd {words}"), Path::new("")).current_dir(&folder))
    };
    let profile = run("-Rpxml -c1M -w50 -d1 -W0 -t2 -o4 -b8K -r -L -Sh -Z1M f");
    assert_eq!(profile.code, Some(0), "{profile:?}");
    std::fs::write(folder.join("p.xml"), &profile.stdout).unwrap();
    let out = run("-Xp.xml");
    assert!(out.code == Some(0) && out.stdout.contains("<ThreadsPerFile>2</ThreadsPerFile>"), "{out:?}");
    let out = run("\u{2013}b8K \u{2013}d1 f");
    assert!(
        out.code == Some(1) && out.stderr.contains("type -b8K") && out.stderr.contains("U+2013"),
        "{out:?}"
    );
}
