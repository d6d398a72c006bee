//! dd, hdparm and ioping: beside the real ones, what they may write, and what is said of their figures.
//!
//! For: files, lines and exit codes that are those of the tool, and the sentences under them. Not for: their languages, which have
//! unit tests, nor how fast they are (`benches` and measurements on a quiet machine).

use crate::disk::{Device, Image};
use crate::output::shell;
use crate::stage::{Outcome, Stage, is_root, skip, tool};
use rustix::process::Signal;
use std::path::Path;

/// Whether a tool is here; says that the story is skipped otherwise.
fn has(name: &str) -> bool {
    let has = tool(&[&"sh", &"-c", &format!("command -v {name}")]).is_ok();
    if !has {
        skip(&format!("{name} is not installed"));
    }
    has
}

/// Lines without their figures and units: what has to be the same of two tools.
fn shape(text: &str) -> Vec<String> {
    const UNITS: [&str; 17] = [
        "ns", "us", "ms", "s", "min", "B", "KiB", "MiB", "GiB", "k", "M", "G", "kB/s", "MB/s", "GB/s", "kB",
        "MB",
    ];
    let bare = |word: &str| word.trim_matches(|c: char| "(),/".contains(c)).to_owned();
    let is_figure = |word: &str| bare(word).starts_with(|c: char| c.is_ascii_digit());
    let one = |line: &str| {
        // Seconds go on from one call to the next.
        let line = if line.contains("\"localtime\"") { "\"localtime\"" } else { line };
        let line = line.replace("time=", "time= ").replace("B/s", "B");
        let words = line.split_whitespace().filter(|w| !is_figure(w) && !UNITS.contains(&bare(w).as_str()));
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(one).collect()
}

/// What the tool itself says, without fathom's lines.
fn of_tool(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with("fathom: ")).collect()
}

#[test]
fn dd_leaves_what_dd_leaves_and_says_what_dd_says() {
    let stage = Stage::beside_others();
    for words in [
        "if=src of=out",
        "if=src of=out bs=1000 count=3",
        "if=src of=out ibs=300 obs=1000",
        "if=src of=out bs=4k skip=1 seek=2",
        "if=src of=out bs=1k seek=3 count=1 conv=notrunc",
        "if=src of=out bs=4096 conv=sync",
        "if=src of=out bs=4096 conv=sparse,fsync",
        "if=src of=out bs=1k count=1500 iflag=count_bytes",
        "if=src of=out bs=7 skip=100 iflag=skip_bytes",
        "if=src of=out bs=4k oflag=direct conv=fdatasync",
        "if=src of=out bs=4k oflag=append conv=notrunc status=noxfer",
        "if=src of=out bs=1M conv=excl",
        "if=src of=out bs=4k skip=99",
        "if=src of=new bs=4k conv=nocreat",
        "if=src of=/dev/full bs=4k",
        "if=none of=out",
        "if=. of=out bs=4k",
        "if=src of=. bs=4k",
        "if=src of=/dev/null iflag=nocache oflag=nocache bs=64k",
        "if=src count=1 bs=10 status=none",
        "if=/dev/zero | head -c 5",
    ] {
        let run = |by: &str| {
            let line = format!(
                "export FATHOM_DESTROY=out; mkdir -p {0}; cd {0}; head -c 20000 /dev/zero > src; printf data >> src; head -c 9000 /dev/zero >> src; \
                 {1} {words}; code=$?; sha256sum out new 2>/dev/null; stat -c %s out 2>/dev/null; exit $code",
                by.replace(['"', '$', ' '], ""),
                by
            );
            shell(&stage, &line)
        };
        let (real, ours) = (run("dd"), run("\"$F\" dd"));
        assert_eq!((real.code, &real.stdout), (ours.code, &ours.stdout), "{words}: {ours:?}");
        // How the C library puts it, which may be another's word for it.
        let said = |out: &Outcome| shape(&of_tool(&out.stderr));
        assert_eq!(said(&real), said(&ours), "{words}: {real:?} {ours:?}");
        let records = |out: &Outcome| {
            out.stderr.lines().filter(|l| l.contains("records")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(records(&real), records(&ours), "{words}");
    }
}

#[test]
fn dd_writes_what_is_its_own_and_nothing_of_yours_unless_it_is_named() {
    let stage = Stage::beside_others();
    let out = shell(
        &stage,
        "cd \"$D\"; printf precious > mine; \"$F\" dd if=/dev/zero of=mine bs=1 count=1; echo $?; cat mine; \
         \"$F\" dd of=mine conv=notrunc,fdatasync oflag=nocache count=0 status=none; echo $?; cat mine; \
         FATHOM_DESTROY=/other:mine \"$F\" dd if=/dev/zero of=mine bs=3 count=1 status=none; echo $?; stat -c %s mine; \
         \"$F\" dd if=/dev/zero of=new bs=4k count=2 status=none; \"$F\" dd if=/dev/zero of=new bs=4k count=1; echo $?; stat -c %s new; \
         : > own; exec 9>>own; \"$F\" dd if=/dev/zero of=own bs=4k count=1 status=none; echo $?; exec 9>&-; \
         \"$F\" fio --name=a --filename=made --size=4k --rw=write > fio.out; \
         \"$F\" dd if=mine of=made conv=notrunc --destroy=made status=none; \"$F\" fio --name=a --filename=made --size=4k --rw=write > fio.out; echo $?",
    );
    // What dd copies is never marked as fathom's, and voids the mark of a file that was.
    assert_eq!(out.stdout, "1\nprecious0\nprecious0\n3\n1\n8192\n1\n1\n", "{out:?}");
    assert!(out.stderr.contains("type '--destroy=mine'") && out.stderr.contains("is in use"), "{out:?}");
    assert!(out.stderr.contains("something else has written it since"), "{out:?}");
    if !is_root() {
        return;
    }
    let Some(device) = Device::new(&stage, 8, Image::Buffered) else { return };
    let line = |words: &str| {
        shell(
            &stage,
            &format!("\"$F\" dd if=/dev/urandom of={0} bs=1M count=1 {words}", device.path.display()),
        )
    };
    let before = device.checksum();
    let refused = line("");
    assert!(refused.code == Some(1) && refused.stderr.contains("--destroy="), "{refused:?}");
    assert_eq!(device.checksum(), before);
    let named = line(&format!("--destroy={}", device.name()));
    assert!(
        named.code == Some(0) && named.stderr.contains(&format!("({}) wrote", device.name()))
            || named.stderr.contains("page cache took it"),
        "{named:?}"
    );
    assert_ne!(device.checksum(), before);
}

#[test]
fn under_dds_lines_stands_where_the_bytes_came_from_and_went() {
    let stage = Stage::beside_others();
    let said = |line: &str| {
        let out = shell(&stage, &format!("cd \"$D\"; export FATHOM_DESTROY=\"$PWD/a\"; {line}"));
        assert_eq!(out.code, Some(0), "{out:?}");
        out.stderr
    };
    let cached = said("\"$F\" dd if=/dev/zero of=a bs=1M count=32");
    assert!(cached.contains("MiB had reached the disk when dd ended; with conv=fsync "), "{cached}");
    assert!(cached.contains("fathom: every byte was zero"), "{cached}");
    let again = said("\"$F\" dd if=a of=/dev/null bs=1M");
    assert!(again.contains("it was read from the page cache: 32 MiB of 'a' were resident before"), "{again}");
    let evicted = said("\"$F\" dd if=a iflag=nocache count=0 status=none; \"$F\" dd if=a of=/dev/null bs=1M");
    assert!(evicted.contains("fathom: 0 B of 'a' were resident before"), "{evicted}");
    let direct = said("\"$F\" dd if=a of=/dev/null bs=1M iflag=direct");
    assert!(direct.contains("one at a time") && direct.contains("--depth 8"), "{direct}");
    let synced = said("\"$F\" dd if=/dev/zero of=a bs=1M count=4 conv=fsync");
    assert!(synced.contains("fathom: all of it was stable when dd ended"), "{synced}");
    assert_eq!(said("\"$F\" dd if=a of=/dev/null status=none"), "", "nothing where nothing is wanted");
    let memory =
        said("\"$F\" dd if=/dev/zero of=/dev/shm/fathom-it-dd bs=4k count=1; rm /dev/shm/fathom-it-dd");
    assert!(memory.contains("is memory") || memory.contains("page cache took it"), "{memory}");
}

#[test]
fn called_dd_it_is_dd_and_sigusr1_has_it_tell() {
    let stage = Stage::beside_others();
    let by_name = ["bash", "-c", "exec -a /bin/dd \"$0\" \"$@\""].map(str::to_owned);
    let mut command = stage.command(&by_name, "if=/dev/zero of=/dev/null", Path::new(""));
    let mut running = crate::stage::Running::start(&mut command);
    // Before it has its own handlers, SIGUSR1 does nothing.
    let status = format!("/proc/{}/status", running.id());
    let catches = |text: &str| {
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() & 1 << (Signal::INT.as_raw() - 1) != 0
    };
    while !std::fs::read_to_string(&status).is_ok_and(|text| catches(&text)) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal(Signal::USR1);
    running.until_it_says("copied, ");
    running.signal(Signal::INT);
    let out = running.end();
    assert!(out.code.is_none() && out.stderr.matches("records in").count() == 2, "{out:?}");
}

#[test]
fn hdparms_lines_are_hdparms_and_memory_is_told_from_the_disk() {
    if !is_root() || !has("hdparm") {
        return;
    }
    let stage = Stage::beside_others();
    let Some(device) = Device::new(&stage, 64, Image::Buffered) else { return };
    for words in ["-tT", "-t --direct --offset 0", "-t --offset 9"] {
        let real = shell(&stage, &format!("hdparm {words} {}", device.path.display()));
        let ours = shell(&stage, &format!("\"$F\" hdparm {words} {}", device.path.display()));
        assert_eq!(
            (real.code, shape(&real.stdout)),
            (ours.code, shape(&ours.stdout)),
            "{words}: {real:?} {ours:?}"
        );
        assert_eq!(of_tool(&ours.stderr).contains("lseek() failed"), words.ends_with('9'), "{ours:?}");
        if words == "-tT" {
            assert!(
                ours.stderr.contains("no speed of a disk") && ours.stderr.contains("in flight on average"),
                "{ours:?}"
            );
        }
    }
    let refused = shell(&stage, &format!("\"$F\" hdparm -W0 {}", device.path.display()));
    assert!(refused.code == Some(22) && refused.stderr.contains("fathom doctor"), "{refused:?}");
}

#[test]
fn iopings_lines_are_iopings_and_who_answered_is_said() {
    if !has("ioping") {
        return;
    }
    let stage = Stage::beside_others();
    let file = stage.file("data", 8);
    let place = file.parent().unwrap().display();
    for words in [
        "-c 3 -i 0".to_owned(),
        "-c 9 -i 0 -b 3 -p 4 -a 2".to_owned(),
        "-c 3 -i 0 -q -L".to_owned(),
        "-c 3 -i 0 -B -D".to_owned(),
        "-c 2 -i 0 -J".to_owned(),
        "-c 3 -i 0 -W".to_owned(),
        "-c 4 -i 0 -G -Y -s 8k -S 64k".to_owned(),
        "-c 2 -i 0 -T 0 -q".to_owned(),
    ] {
        let real = shell(&stage, &format!("ioping {words} {place}"));
        let ours = shell(&stage, &format!("\"$F\" ioping {words} {place}"));
        // A request may be called slow or fast in one of the two.
        let lines = |out: &Outcome| shape(&out.stdout.replace(" (slow)", "").replace(" (fast)", ""));
        assert_eq!((real.code, lines(&real)), (ours.code, lines(&ours)), "{words}: {real:?} {ours:?}");
        assert_eq!(of_tool(&ours.stderr), "", "{ours:?}");
        let is_for_programs = words.contains("-B") || words.contains("-J");
        assert_eq!(ours.stderr.is_empty(), is_for_programs, "{ours:?}");
    }
    let kept = shell(
        &stage,
        "cd \"$D\"; \"$F\" ioping -k -c 1 -q . && \"$F\" ioping -k -c 1 -q . && stat -c %s ioping.tmp; rm ioping.tmp; printf mine > ioping.tmp; \"$F\" ioping -k -c 1 -q .; echo $?; cat ioping.tmp",
    );
    assert!(kept.stdout.ends_with("1048576\n2\nmine"), "{kept:?}");
    let cached =
        shell(&stage, &format!("cat {0} > /dev/null; \"$F\" ioping -C -c 20 -i 0 -q {0}", file.display()));
    assert!(cached.stderr.contains("memory answered most of the 20 requests"), "{cached:?}");
    let direct = shell(&stage, &format!("\"$F\" ioping -D -c 20 -i 0 -q {0}", file.display()));
    assert!(direct.stderr.contains("answered the 20 requests"), "{direct:?}");
    let before = std::fs::read(&file).unwrap();
    for (words, why) in [("-W", "think twice"), ("-WWW", "--destroy=")] {
        let refused = shell(&stage, &format!("\"$F\" ioping {words} -c 1 {}", file.display()));
        assert!(refused.code == Some(2) && refused.stderr.contains(why), "{refused:?}");
    }
    assert!(std::fs::read(&file).unwrap() == before);
    let named = shell(&stage, &format!("\"$F\" ioping -WWW -c 3 -i 0 -q --destroy={0} {0}", file.display()));
    assert!(named.code == Some(0) && named.stderr.contains("wrote"), "{named:?}");
}

/// As "Measure for Measure" (ADMIN magazine) types them, with other names and smaller.
#[test]
fn each_command_of_the_article_is_answered_and_its_trap_named() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(device) = Device::new(&stage, 16, Image::Buffered) else { return };
    let disk = device.path.display();
    for (words, traps) in [
        (
            "dd of=file if=/dev/zero bs=512 count=20000".to_owned(),
            ["had reached the disk when dd ended", "every byte was zero"],
        ),
        (
            "dd --destroy=file of=file if=/dev/zero bs=512 count=1000 oflag=direct".into(),
            ["one at a time", "every byte was zero"],
        ),
        ("dd if=file of=/dev/null".into(), ["resident before", "the disk ("]),
        ("dd if=file iflag=direct of=/dev/null".into(), ["one at a time", "several at once: fathom run"]),
        (format!("dd if={disk} of=/dev/null"), ["resident before", "the disk ("]),
        (format!("hdparm -tT {disk}"), ["no speed of a disk", "as the kernel's read-ahead asked for them"]),
    ] {
        let out = shell(&stage, &format!("\"$F\" {words}"));
        assert_eq!(out.code, Some(0), "{words}: {out:?}");
        assert!(traps.iter().all(|trap| out.stderr.contains(trap)), "{words}: {out:?}");
    }
    // As it stands there, without a space.
    let slip = shell(&stage, &format!("\"$F\" hdparm -tT{disk}"));
    assert!(slip.code == Some(22) && slip.stderr.contains(&format!("-tT {disk}")), "{slip:?}");
    let to_terminal =
        shell(&stage, "head -c 4096 /dev/zero | tr '\\0' x > few; script -qec \"$F dd if=few\" /dev/null");
    assert!(to_terminal.stdout.contains("it went to a terminal, whose speed this is"), "{to_terminal:?}");
}
