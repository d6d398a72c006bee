//! Hostile and foreign input: names that are not text or that control a terminal, endless inputs, and files of other tools.

use crate::output::{RUN, check_outcome, shell};
use crate::stage::{Stage, wait};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn non_utf8_names_are_measured_and_shown_escaped() {
    let stage = Stage::shared();
    let odd = stage.path("").join(OsStr::from_bytes(b"odd\xff\x1b[31m\n"));
    std::fs::create_dir(&odd).unwrap();
    for words in [
        RUN,
        "bench --profile real --size 16m --time 60ms --warmup 0 --runs 1 --quiet",
        "doctor",
        "run --explain --size 16m",
    ] {
        let out = stage.fathom(words, &odd);
        assert!(matches!(out.code, Some(0 | 1)), "{words}: {out:?}");
        assert!(!out.stdout.contains('\u{1b}') && !out.stderr.contains('\u{1b}'), "{out:?}");
    }
    let explained = stage.fathom("run --explain --size 16m", &odd);
    assert!(explained.stdout.contains(r"odd\xff\x1b[31m\x0a"), "{explained:?}");
    let file = odd.join(OsStr::from_bytes(b"file\xfe"));
    crate::stage::fill(&file, 16);
    let run = "run --time 60ms --warmup 0 --runs 1 --quiet";
    assert!(matches!(stage.fathom(run, &file).code, Some(0 | 1)));
    let against = stage.fathom(&format!("{run} --against last"), &file);
    assert!(matches!(against.code, Some(0 | 1)), "{against:?}");
    let list = shell(&stage, "COLUMNS=200 \"$F\" list");
    assert!(list.stdout.contains(r"file\xfe") || list.stdout.contains("..."), "{list:?}");
}

#[test]
fn control_characters_reach_no_terminal() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    let evil = "\u{1b}]0;x\u{7}\r\u{9b}31m";
    let job = stage.path(&format!("job{evil}.toml"));
    std::fs::write(&job, "size = \"16m\"\ntime = \"60ms\"\nwarmup = \"0\"\nruns = 1\n").unwrap();
    let mut run = stage.command(&[], "run --quiet", &job);
    assert!(matches!(wait(run.arg(&here)).code, Some(0 | 1)));
    let typed = wait(stage.command(&[], "show", Path::new("")).arg(evil));
    let flag = wait(stage.command(&[], "run", Path::new("")).arg(format!("--{evil}")));
    let value = wait(stage.command(&[], "run", Path::new("")).args(["--bs", evil]));
    let missing = wait(stage.command(&[], "run", Path::new("")).arg(format!("/none/{evil}")));
    let output = wait(stage.command(&[], RUN, &here).args(["-o", &format!("/none/{evil}.json")]));
    assert!(wait(stage.command(&[], "note last", Path::new("")).arg("a plain note")).code == Some(0));
    // Craft a session: the same frames with another title, machine and note.
    let session = stage.sessions().remove(0);
    let text = std::fs::read_to_string(&session).unwrap();
    let crafted: String = text
        .lines()
        .enumerate()
        .map(|(at, line)| match line.split_once(' ') {
            Some((_, json)) if at > 0 => {
                let mut frame: serde_json::Value = serde_json::from_str(json).unwrap();
                taint(&mut frame, evil);
                let json = frame.to_string();
                format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let file = stage.path("20261121-161226-crafted.fathom");
    std::fs::write(&file, crafted).unwrap();
    let mut outcomes = vec![typed, flag, value, missing, output];
    for words in [
        "show",
        "show --format json",
        "show --format csv",
        "show --ledger --explain --verbose",
        "show --format markdown",
        "show --brief --format markdown",
        "import",
    ] {
        outcomes.push(stage.fathom(words, &file));
    }
    for line in [
        "\"$F\" list",
        "\"$F\" list --format json",
        "\"$F\" list --format csv",
        "\"$F\" show last -o r.txt && cat r.txt",
    ] {
        outcomes.push(shell(&stage, line));
    }
    let both = format!("compare {}", session.display());
    for form in ["text", "json", "markdown"] {
        outcomes.push(stage.fathom(&format!("{both} --format {form}"), &file));
    }
    for out in outcomes {
        let acts = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!out.stdout.replace("\r\n", "\n").contains(acts) && !out.stderr.contains(acts), "{out:?}");
        assert!(!out.stderr.contains("panicked"), "{out:?}");
    }
}

/// Appends text to every value of a frame that is only shown.
fn taint(value: &mut serde_json::Value, words: &str) {
    let serde_json::Value::Object(fields) = value else {
        if let serde_json::Value::Array(all) = value {
            for each in all {
                taint(each, words);
            }
        }
        return;
    };
    for (key, value) in fields.iter_mut() {
        match value {
            serde_json::Value::String(text)
                if ["title", "name", "path", "model", "serial", "sentence", "why", "kernel", "note"]
                    .contains(&key.as_str()) =>
            {
                text.push_str(words);
            }
            other => taint(other, words),
        }
    }
}

#[test]
fn endless_inputs_are_refused() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    let fifo = stage.path("fifo.json");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let socket = stage.path("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(matches!(stage.fathom(RUN, &here).code, Some(0 | 1)));
    let endless: [(&Path, &str); 6] = [
        (&fifo, "a FIFO"),
        (Path::new("/dev/zero"), "a character device"),
        (Path::new("/proc/kmsg"), "of the kernel"),
        (Path::new("/proc/self/mountinfo"), "of the kernel"),
        (&socket, "a socket"),
        (&here, "a directory"),
    ];
    for (path, word) in endless {
        for words in ["import", "show", "compare last", "verify --check", "export -o -", "tag --remove x"] {
            let (words, tail) = if words.starts_with("tag") { ("tag", " word") } else { (words, "") };
            let out = shell(&stage, &format!("timeout 20 \"$F\" {words} {}{tail}", path.display()));
            if words == "tag" {
                assert_ne!(out.code, Some(124), "{out:?}");
                continue;
            }
            assert!(matches!(out.code, Some(2 | 3)), "{words} {}: {out:?}", path.display());
            assert!(out.stderr.contains(word), "{words} {}: {out:?}", path.display());
        }
        let out = stage.fathom(&format!("{RUN} --rw write --data {}", path.display()), &here);
        assert!(matches!(out.code, Some(2 | 3)) && out.stderr.contains(word), "{out:?}");
        // A file that is named inside a job file follows the same rule.
        let including = stage.path("including.fio");
        std::fs::write(&including, format!("[a]\nfilename=x\nsize=1m\ninclude {}\n", path.display()))
            .unwrap();
        for words in [
            format!("fio {}", including.display()),
            format!("fio --name=a --filename=x --size=1m --buffer_pattern=\\'{}\\'", path.display()),
            format!("fio --name=a --filename=x --read_iolog={}", path.display()),
        ] {
            let out = shell(&stage, &format!("cd {}; timeout 20 \"$F\" {words}", here.display()));
            assert!(!matches!(out.code, Some(0 | 124 | 137)), "{words}: {out:?}");
            assert!(
                [&out.stdout, &out.stderr].iter().any(|printed| printed.contains(word)),
                "{words}: {out:?}"
            );
        }
    }
    let link = stage.path("job.toml");
    symlink("/proc/kmsg", &link).unwrap();
    let out = stage.fathom("run", &link);
    assert!(matches!(out.code, Some(2 | 3)) && out.stderr.contains("of the kernel"), "{out:?}");
}

#[test]
fn job_files_of_other_tools_are_not_measured_as_targets() {
    let stage = Stage::shared();
    let fio = "[global]\nbs=4k\n[a]\nrw=read\nsize=1g\n".repeat(10);
    let icf = format!("Version 1.1.0 \n'TEST SETUP ===\n{}", "'Run Time\n".repeat(100));
    let xml =
        "<?xml version=\"1.0\"?>\n<Profile>\n<TimeSpans><TimeSpan/></TimeSpans>\n</Profile>\n".to_owned();
    let wide: Vec<u8> = format!("\u{feff}{xml}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let table: [(&str, &[u8], &str); 9] = [
        ("a.fio", fio.as_bytes(), "fio"),
        ("a.txt", fio.as_bytes(), "fio"),
        ("job", fio.as_bytes(), "fio"),
        ("b.icf", icf.as_bytes(), "Iometer"),
        ("b", icf.as_bytes(), "Iometer"),
        ("c.xml", xml.as_bytes(), "DISKSPD"),
        ("c.img", xml.as_bytes(), "DISKSPD"),
        ("wide.xml", &wide, "DISKSPD"),
        // If the content of a file is not recognised, its extension decides.
        ("d.icf", b"Version\n", "Iometer"),
    ];
    let commands = [RUN, "bench", "layers", "api", "limit", "sweep", "verify", "recipe etcd"];
    for (name, content, tool) in table {
        let path = stage.path(name);
        std::fs::write(&path, content).unwrap();
        for command in commands {
            // `fathom run` runs a job file of any language.
            if command == RUN {
                continue;
            }
            let out = stage.fathom(command, &path);
            check_outcome(&out, 2, &["job file of", tool, "not a disk to measure", "`fathom "]);
        }
        assert_eq!(std::fs::read(&path).unwrap(), content, "{name}: untouched");
    }
    let toml = stage.path("c.toml");
    std::fs::write(&toml, "size = \"16m\"\n").unwrap();
    check_outcome(&stage.fathom("bench --quiet", &toml), 2, &["fathom run", "c.toml"]);
}

#[test]
fn captures_and_traces_are_not_measured_as_targets() {
    let stage = Stage::shared();
    let log = stage.path("log");
    let text = "fio version 3 iolog\n0 /x add\n0 /x open\n5 /x read 0 4096\n1000 /x close\n";
    std::fs::write(&log, text).unwrap();
    let capture = stage.path("x.capture");
    let words = format!("capture --import {} -o {}", log.display(), capture.display());
    assert_eq!(stage.fathom(&words, Path::new("")).code, Some(0));
    let msr = stage.path("data.csv");
    std::fs::write(&msr, "128166372003061629,hm,1,Read,383496192,32768,413\n").unwrap();
    for (path, reported) in [
        (&capture, ["is a capture, not a disk", "fathom run"]),
        (&log, ["a trace (fio iolog v3)", "capture --import"]),
        (&msr, ["a trace (MSR Cambridge CSV)", "capture --import"]),
    ] {
        let before = std::fs::read(path).unwrap();
        for command in ["bench", "layers", "api", "limit", "sweep", "verify"] {
            check_outcome(&stage.fathom(command, path), 2, &reported);
        }
        assert_eq!(std::fs::read(path).unwrap(), before);
    }
    // `run` refuses a log as a target too.
    check_outcome(&stage.fathom("run", &log), 2, &["a trace (fio iolog v3)"]);
}

#[test]
fn job_files_are_recognised_by_content_not_by_name() {
    let stage = Stage::shared();
    let job = stage.path("job.txt");
    let text = "rw = \"read\"\ndepth = 1\nsize = \"16m\"\ntime = \"60ms\"\nwarmup = \"0\"\nruns = 1\n";
    std::fs::write(&job, text).unwrap();
    let out = wait(stage.command(&[], "run --quiet --verbose", &job).arg(stage.folder("here")));
    assert!(matches!(out.code, Some(0 | 1)) && out.stdout.contains("run /"), "{out:?}");
    let data = stage.file("data.fio", 16);
    assert!(matches!(stage.fathom("run --time 60ms --warmup 0 --runs 1 --quiet", &data).code, Some(0 | 1)));
}

#[test]
fn refusals_escape_control_characters_in_names() {
    let stage = Stage::shared();
    let odd = |name: &[u8]| stage.path("").join(OsStr::from_bytes(&[b"odd\xff\x1b[2J", name].concat()));
    let (empty, full, absent) = (odd(b"empty"), odd(b"full"), odd(b"absent"));
    std::fs::write(&empty, "").unwrap();
    std::fs::write(&full, vec![7; 1 << 20]).unwrap();
    let words = "--time 100ms --runs 1 --quiet";
    let table = [
        (format!("run {words}"), &absent),
        (format!("run {words}"), &empty),
        (format!("run {words} --size 2m"), &full),
        (format!("run {words} --rw randwrite"), &full),
        (format!("run {words} --rw randwrite --destroy other"), &full),
        ("verify --quiet".to_owned(), &full),
        ("verify --check".to_owned(), &full),
        ("verify --check".to_owned(), &absent),
        ("doctor".to_owned(), &absent),
        ("import".to_owned(), &full),
        ("sweep --quiet".to_owned(), &absent),
    ];
    for (words, target) in &table {
        let out = stage.fathom(words, target);
        assert!(matches!(out.code, Some(2 | 3)), "{words}: {out:?}");
        let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{fffd}';
        assert!(!out.stderr.contains(acts), "{words}: {:?}", out.stderr);
        let shown = out.stderr.split_whitespace().collect::<String>();
        assert!(shown.contains(r"odd\xff\x1b[2J"), "{words}: {}", out.stderr);
    }
}
