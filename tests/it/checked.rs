//! Verification while measuring, with fathom's and with fio's options: correct data pass, and each kind of damage is found and named with its
//! offset.

use crate::fio::fio;
use crate::stage::{Outcome, Stage, undisturbed};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a block.
const BLOCK: u64 = 4096;

fn job(out: &Outcome, at: usize) -> Value {
    let all: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    all["jobs"][at].clone()
}

/// Flips a bit.
fn damage(path: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn fio_verify_data_is_read_back_by_a_later_call() {
    let stage = Stage::shared();
    let file = stage.path("data");
    for (rw, engine, sizes) in [
        ("write", "psync", "bs=4k"),
        ("randwrite", "libaio --iodepth=8 --direct=1", "bs=4k"),
        ("randwrite", "io_uring --iodepth=8", "bsrange=512-16k --norandommap=1"),
        ("randwrite", "psync", "bssplit=512/50:8k/50"),
        ("randrw", "libaio --iodepth=4", "bs=4k"),
        ("write", "mmap", "bs=64k"),
        ("randwrite", "posixaio --iodepth=4 --direct=1", "bs=8k"),
    ] {
        let words = format!(
            "--name=j --filename={} --rw={rw} --ioengine={engine} --{sizes} --size=1m --verify=crc32c --output-format=json",
            file.display()
        );
        let out = fio(&stage, &words);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{words}: {out:?}");
        let reported = job(&out, 0);
        let bytes = |direction: &str| reported[direction]["io_bytes"].as_u64().unwrap();
        // A mix of reads and writes has its own reads, and also reads back its writes.
        let own = if rw == "randrw" { (1 << 20) - bytes("write") } else { 0 };
        assert!(bytes("write") + own == bytes("read") && bytes("read") >= 1 << 20, "{words}: {reported:#}");
        assert_eq!(reported["error"], 0);
        // A later call with the same arguments finds the written data correct.
        for rest in ["--verify_only=1", "--do_verify=0 --rw=read --bs=4k"] {
            // A later call can check the data only if the first call wrote the whole file with known content.
            if rw == "randrw" || (sizes.contains("norandommap") && rest.contains("rw=read")) {
                continue;
            }
            let out = fio(&stage, &format!("{words} {rest}"));
            assert_eq!(out.code, Some(0), "{words} {rest}: {out:?}");
            assert_eq!(job(&out, 0)["write"]["io_bytes"], 0);
        }
    }
    // A file with holes is no error: only the written data are read back.
    let new = stage.path("new");
    let out = fio(
        &stage,
        &format!("--name=j --filename={} --rw=write --bs=4k --size=512k --verify=md5", new.display()),
    );
    assert!(out.code == Some(0) && !out.stderr.contains("A05"), "{out:?}");
}

#[test]
fn a_later_call_reads_back_the_writes_that_a_state_file_counts() {
    let stage = Stage::shared();
    let words = format!(
        "--name=j --filename={} --rw=randwrite --bs=4k --size=1m --verify=md5 --output-format=json --aux-path={}",
        stage.path("data").display(),
        stage.folder("states").display()
    );
    let out = fio(&stage, &format!("{words} --do_verify=0 --number_ios=20"));
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(stage.path("states/local-j-0-verify.state").is_file());
    assert_eq!(
        fio(&stage, &format!("{words} --verify_only=1")).code,
        Some(1),
        "most blocks were not written"
    );
    let out = fio(&stage, &format!("{words} --verify_only=1 --verify_state_load=1"));
    assert_eq!((out.code, job(&out, 0)["read"]["total_ios"].as_u64()), (Some(0), Some(20)), "{out:?}");
}

#[test]
fn damage_is_error_84_with_its_offset_as_in_fio() {
    let stage = Stage::shared();
    let file = stage.path("data");
    let words = format!("--name=j --filename={} --rw=write --bs=4k --size=256k --verify=md5", file.display());
    assert_eq!(fio(&stage, &words).code, Some(0));
    damage(&file, 5 * BLOCK + 77);
    let out = fio(&stage, &format!("{words} --verify_only=1 --output-format=json"));
    assert_eq!(out.code, Some(1), "{out:?}");
    let place = format!("verify failed: {}, offset {}, length 4096: data byte 77", file.display(), 5 * BLOCK);
    assert!(out.stderr.contains(&place), "{out:?}");
    assert_eq!(job(&out, 0)["error"], 84);
    // All other blocks are correct.
    assert_eq!(job(&out, 0)["read"]["total_ios"], 63);
    let out = fio(&stage, &format!("{words} --verify_only=1 --verify_fatal=1 --output-format=json"));
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(job(&out, 0)["read"]["total_ios"].as_u64() < Some(63), "{out:?}");
    // A correct block at the wrong offset is damage. Make the file again first: fathom does not write a file that was changed from
    // outside.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(fio(&stage, &words).code, Some(0));
    let handle = File::options().read(true).write(true).open(&file).unwrap();
    let mut block = vec![0; BLOCK as usize];
    handle.read_exact_at(&mut block, 3 * BLOCK).unwrap();
    handle.write_all_at(&block, 9 * BLOCK).unwrap();
    handle.sync_all().unwrap();
    drop(handle);
    let out = fio(&stage, &format!("{words} --verify_only=1 --output-format=json"));
    assert!(out.stderr.contains(&format!("offset {}", 9 * BLOCK)), "{out:?}");
}

#[test]
fn verify_patterns_are_written_and_compared() {
    let stage = Stage::shared();
    let file = stage.path("data");
    let words = format!("--name=j --filename={} --bs=16k --size=32k --output-format=json", file.display());
    let out = fio(&stage, &format!("{words} --rw=write --buffer_pattern=\"abcd\"-120xdeadface"));
    assert_eq!(out.code, Some(0), "{out:?}");
    let expected = b"abcd\xf4\xff\xff\xff\xde\xad\xfa\xce";
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(bytes.len(), 32 << 10);
    for block in bytes.chunks(16 << 10) {
        assert!(block.chunks(expected.len()).all(|some| some == &expected[..some.len()]));
    }
    let read = format!("{words} --rw=read --verify=pattern --verify_pattern");
    let out = fio(&stage, &format!("{read}=\"abcd\"-120xdeadface"));
    assert_eq!(out.code, Some(0), "{out:?}");
    let out = fio(&stage, &format!("{read}=\"abce\"-120xdeadface"));
    assert_eq!((out.code, job(&out, 0)["error"].as_i64()), (Some(1), Some(84)), "{out:?}");
}

#[test]
fn fathom_job_files_verify_what_they_wrote() {
    let stage = Stage::new();
    let (file, toml) = (stage.file("data", 4), stage.path("job.toml"));
    let text = format!(
        "target = [{:?}]\ntime = \"300ms\"\nwarmup = \"50ms\"\nrw = \"randwrite\"\nrandom = \"uniform\"\nbs = \"4k\"\ndepth = 8\nverify = \"stamps\"\nworkers = 2\nops = 500\n\n[[phase]]\n\n[[phase.stream]]\n\n[[phase]]\n\n[[phase.stream]]\nread-back = 1\n",
        file.display().to_string()
    );
    std::fs::write(&toml, text).unwrap();
    let words = format!("run --destroy {} --runs 2 --attempts 1 --quiet --format json", file.display());
    let out = undisturbed(|| stage.fathom(&words, &toml));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let report = out.report().0;
    let ops = |at: usize, kind: &str| report["results"][at][kind]["ops"].as_u64();
    // Writes of the warm-up are read back too.
    assert!(ops(0, "write") >= Some(1000) && ops(1, "read") >= ops(0, "write"), "{report:#}");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|f| f["id"] != "B12" || f["outcome"] != "finding"), "{report:#}");
    let wrong = |text: &str, words: &str| {
        std::fs::write(&toml, text).unwrap();
        let out = stage.fathom("run", &toml);
        assert!(out.code == Some(2) && out.stderr.contains(words), "{out:?}");
    };
    wrong("[[phase]]\n[[phase.stream]]\nread-back = 1\n", "the previous phase has no such stream");
    wrong(
        "[[phase]]\n[[phase.stream]]\nrw = \"write\"\n[[phase]]\n[[phase.stream]]\nread-back = 1\n",
        "verify = \"stamps\"",
    );
    wrong(
        "[[phase]]\n[[phase.stream]]\nrw = \"randrw\"\nverify = \"stamps\"\nlimit-iops = \"write=100\"\n[[phase]]\n[[phase.stream]]\nread-back = 1\n",
        "type one limit for all directions",
    );
    let out = stage.fathom("run --verify stamps --time 100ms", &stage.folder("here"));
    assert!(out.code == Some(2) && out.stderr.contains("type --rw randwrite"), "{out:?}");
    let out = stage.fathom("run --engine null --verify stamps --time 100ms", Path::new(""));
    assert!(out.code == Some(2) && out.stderr.contains("moves no bytes"), "{out:?}");
}
