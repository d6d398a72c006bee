//! Tests of fio's job files and command lines: the streams that they become, and their error messages.

mod order;
mod replay;
mod settings;

use super::options::OPTIONS;
use super::{CommandLine, as_one_line, read_in};
use crate::Trouble;
use crate::fio::job_file::Environment;
use crate::options::How;
use model::job::{
    Batch, Cache, Clones, Content, Create, Filling, IoPriority, Mix, Order, PerKind, Positions, Sharing,
    Sizes,
};
use model::spec::conditions::RateLimit;
use model::spec::{JobSpec, Rw, StreamSpec};

/// A fake machine.
struct Test;

impl Environment for Test {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "DISK").then(|| "/dev/sdx".into())
    }

    fn number(&self, keyword: &str) -> Result<u64, String> {
        if keyword == "$ncpus" { Ok(4) } else { Err("this test has none".into()) }
    }

    fn bytes(&self, name: &str, most: usize) -> Result<Vec<u8>, String> {
        let bytes: &[u8] = match name {
            "data" => b"from a file",
            "x.log" => b"fio version 3 iolog\n0 f add\n",
            "local-j-0-verify.state" => b"fathom verify state: writes 7\n",
            "sda.bin" => &[7, 0x74, 0x61, 0x65, 0, 0],
            _ => return Err("there is none".into()),
        };
        Ok(bytes[..most.min(bytes.len())].to_vec())
    }

    fn length(&self, name: &str) -> Result<u64, String> {
        match name {
            "f" | "g" => Ok((1 << 20) + 5),
            "shorter" => Ok(1 << 19),
            "/dev/small" => Ok((1 << 20) + 512),
            _ => Err("there is none".into()),
        }
    }

    fn is_device(&self, name: &str) -> bool {
        name.starts_with("/dev/")
    }

    fn is_directory(&self, name: &str) -> bool {
        name == "folder"
    }

    fn include(&self, _by: &str, name: &str) -> Result<String, String> {
        match name {
            "common.inc" => Ok("bs=8k\ndirect=1\n".into()),
            "loop.inc" => Ok("include loop.inc\n".repeat(100)),
            "sections.inc" => Ok("[no]\n".into()),
            _ => Err("there is none".into()),
        }
    }

    fn present_cpus(&self) -> String {
        "0-15\n".into()
    }

    fn nodes(&self) -> Result<String, String> {
        Ok("0-2".into())
    }

    fn cpus_of_node(&self, node: u32) -> Result<String, String> {
        let cpus = ["0-1,4", "2-3", ""].get(node as usize);
        cpus.map(|cpus| (*cpus).into()).ok_or_else(|| "there is no such NUMA node; the nodes are: 0-2".into())
    }
}

fn parsed(text: &str) -> Result<JobSpec, Trouble> {
    read_line(&CommandLine::of_file("x.fio", text))
}

fn read_line(line: &CommandLine) -> Result<JobSpec, Trouble> {
    read_in(line, &|_| Vec::new(), &Test)
}

/// A command line of these words; the only job file is `f.fio`.
fn parse_words(words: &str) -> CommandLine {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    CommandLine::parse(&words, &|_| Ok("[f]\nsize=1m\n".into())).unwrap_or_else(|why| panic!("{why}"))
}

#[track_caller]
fn job(text: &str) -> JobSpec {
    parsed(text).unwrap_or_else(|e| panic!("{e}"))
}

/// The only stream of a job with these options.
#[track_caller]
fn stream(options: &str) -> StreamSpec {
    let job = job(&format!("[j]\nsize=1m\n{}\n", options.replace(' ', "\n")));
    let [phase] = job.phases.as_slice() else { panic!("{job:?}") };
    let [stream] = phase.streams.as_slice() else { panic!("{job:?}") };
    stream.clone()
}

/// Asserts that options are refused with all these words.
#[track_caller]
fn refused(options: &str, words: &[&str]) {
    refused_file(&format!("[j]\nsize=1m\n{}\n", options.replace(' ', "\n")), words);
}

/// Asserts that a job file is refused with all these words.
#[track_caller]
fn refused_file(text: &str, words: &[&str]) {
    let trouble = parsed(text).map_or_else(|e| e.to_string(), |job| panic!("{text} is {job:?}"));
    for word in words {
        assert!(trouble.contains(word), "no {word:?} in:\n{trouble}");
    }
}

/// Options as `name=value`.
fn shown(options: &model::spec::Options) -> String {
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_engine_has_the_same_name_in_advice_as_in_jobs() {
    for (fio, ours) in super::ENGINES {
        let meant = model::spec::keys::in_other_tools("ioengine", &[*fio]).unwrap_or_else(|| panic!("{fio}"));
        assert_eq!(meant.values, [*ours], "{fio}");
    }
}

#[test]
fn a_job_with_only_a_size_has_the_defaults_of_fio() {
    let job = job("[reader]\nsize=64m\n");
    assert_eq!((job.name.as_deref(), job.phases.len(), job.cold), (Some("reader"), 1, Some(true)));
    assert!(job.seed.is_some(), "offsets are the same in every call");
    let stream = &job.phases[0].streams[0];
    assert_eq!(stream.target, ["reader.0.0"]);
    assert_eq!((stream.rw, stream.cache, stream.depth), (Some(Rw::Read), Some(Cache::Buffered), Some(1)));
    assert_eq!(stream.bs, Some(PerKind::all(Sizes::Fixed(4096))));
    assert_eq!((stream.passes, stream.size), (Some(1), Some(64 << 20)));
    assert_eq!(stream.create, Some(Create { bytes: 64 << 20, filling: Filling::Data, unlink: false }));
    assert_eq!(stream.engine.as_ref().map(|e| e.name.as_str()), Some("sync"));
    assert_eq!(job.phases[0].time, None, "it ends by its size");
}

#[test]
fn defaults_hold_for_the_sections_below() {
    let job = job(
        "; by hand\n[global]\nbs=8k\nioengine=libaio\niodepth=4 ; deep\nfilename=/dev/sda:/dev/sd\\:b\n\n[one]\nrw=randread\n[global]\nbs = 16k\n[two]\nstonewall\nrw=write\niodepth=2\n",
    );
    let stream = |phase: usize| job.phases[phase].streams[0].clone();
    assert_eq!(job.phases.len(), 2);
    assert_eq!(
        (stream(0).bs, stream(1).bs),
        (Some(PerKind::all(Sizes::Fixed(8192))), Some(PerKind::all(Sizes::Fixed(16384))))
    );
    assert_eq!(
        (stream(0).depth, stream(1).depth, stream(1).name.as_deref()),
        (Some(4), Some(2), Some("two"))
    );
    assert_eq!(stream(0).target, ["/dev/sda", "/dev/sd:b"]);
    assert_eq!(stream(0).resolved.sharing, Sharing::RoundRobin);
    assert_eq!(stream(0).create, None, "without a size no file is created");
}

#[test]
fn variables_keywords_and_includes_are_replaced() {
    let job = job("[global]\ninclude common.inc\n[a]\nfilename=${DISK}\nnumjobs=2*$ncpus\ngroup_reporting\n");
    let stream = &job.phases[0].streams[0];
    assert_eq!((stream.target.as_slice(), stream.resolved.workers), (["/dev/sdx".to_owned()].as_slice(), 8));
    assert_eq!((stream.cache, stream.resolved.clones), (Some(Cache::Direct), Some(Clones::Same)));
    for (text, words) in [
        ("[a]\nfilename=${NOPE}\n", ["NOPE is not set", "NOPE=VALUE"]),
        ("[a]\nsize=$mb_memory\n", ["value of $mb_memory is unknown", "type a number"]),
        ("[a]\ninclude none.inc\n", ["cannot be included", "there is none"]),
        ("[a]\ninclude loop.inc\n", ["more than 256 files", "remove an include line"]),
        ("[a]\ninclude sections.inc\n", ["cannot have a section", "[no]"]),
    ] {
        let trouble = parsed(text).map_or_else(|e| e.to_string(), |job| panic!("{job:?}"));
        assert!(words.iter().all(|w| trouble.contains(w)), "{text}: {trouble}");
    }
}

#[test]
fn blocks_are_accessed_as_in_fio() {
    assert_eq!(stream("rw=randread").random, Some(Order::Once), "the random map");
    assert_eq!(stream("rw=randread norandommap").random, Some(Order::Random));
    assert_eq!(
        stream("rw=randwrite blockalign=16k").random,
        Some(Order::Random),
        "blockalign turns the map off"
    );
    assert_eq!(stream("rw=randwrite blockalign=4k").random, Some(Order::Once), "unless it is the block size");
    let drawn = |law: &str| stream(&format!("rw=randread random_distribution={law}")).random;
    assert_eq!((drawn("zipf:1.2"), drawn("zipf")), (Some(Order::Zipf(1.2)), Some(Order::Zipf(1.1))));
    assert_eq!((drawn("pareto:0.9"), drawn("pareto")), (Some(Order::Pareto(0.9)), Some(Order::Pareto(0.2))));
    let is_normal =
        |law, percent: f64| matches!(drawn(law), Some(Order::Normal(is)) if (is - percent).abs() < 0.01);
    assert!(is_normal("normal", 8.33) && is_normal("normal:10", 8.82) && is_normal("normal:90%", 16.67));
    refused("rw=randread random_distribution=normal:100", &["type normal:10"]);
    assert_eq!(stream("rw=randread norandommap percentage_random=30").random, Some(Order::Mixed(30.0)));
    let mixed = stream("rw=randrw rwmixread=20 rwmixwrite=70 bs=4k,8k norandommap=1");
    assert_eq!(mixed.mix, Some(Mix::from_percents(30, 0)), "the last option wins");
    let sizes = mixed.bs.unwrap_or_else(|| panic!("no sizes"));
    assert_eq!((sizes.read, sizes.write), (Sizes::Fixed(4096), Sizes::Fixed(8192)));
    let listed = stream("rw=randrw norandommap bs=4k-8k");
    assert_eq!(listed.bs, stream("rw=randrw norandommap bs=4k,8k").bs, "no range");
    assert_eq!(stream("rw=rw rate=1m:2m").limit_bandwidth, stream("rw=rw rate=1m,2m").limit_bandwidth);
    let mix = |options: &str| (stream(options).rw, stream(options).line.positions);
    assert_eq!(mix("rw=rw"), (Some(Rw::Rw), Positions::Own), "each direction continues at its own position");
    assert_eq!(mix("rw=readwrite"), mix("rw=rw"));
    assert_eq!(mix("rw=randrw norandommap percentage_random=9"), (Some(Rw::Randrw), Positions::Own));
    assert_eq!(
        (mix("rw=randrw").1, mix("rw=write").1),
        (Positions::Shared, Positions::Shared),
        "no direction continues, or there is only one"
    );
    assert_eq!(stream("rw=rw loops=2 time_based runtime=1").line.positions, Positions::Own);
    for words in ["rw=rw loops=2", "rw=rw io_size=2m"] {
        assert_eq!(stream(words).line.positions, Positions::OwnRestart, "{words}");
    }
    let each = PerKind { read: 100.0, write: 50.0, trim: 50.0 };
    assert_eq!(stream("rw=randrw percentage_random=100,50").random, Some(Order::MixedEach(each)));
    assert_eq!(stream("rw=randread percentage_random=20%").random, Some(Order::Mixed(20.0)));
    let remarks =
        |words: &str| job(&format!("[j]\nsize=1m\n{}\n", words.replace(' ', "\n"))).remarks.join("\n");
    assert!(remarks("rw=randread percentage_random=20").contains("repeat a block"));
    assert!(!remarks("rw=randread percentage_random=20 norandommap").contains("percentage_random"));
    assert!(
        remarks("time_based").contains("without runtime")
            && !remarks("time_based runtime=1").contains("without")
    );
    assert!(
        remarks("bs=4k-8k").contains("bsrange") && !remarks("bs=4k-8k bsrange=4k-8k").contains("bsrange")
    );
    refused("rw=rw:-8k bs=4k,2k", &["single block size"]);
    let split = stream("rw=randwrite norandommap bssplit=4k/60:8k/:16k/");
    assert_eq!(split.bs.map(|b| b.write), Some(Sizes::Split(vec![(4096, 60), (8192, 20), (16384, 20)])));
    assert_eq!(stream("rw=read:512k bs=1m").steps.hole_bytes, 512 << 10);
    let back = stream("rw=read:-8k bs=4k");
    assert_eq!((back.steps.backwards, back.steps.stride_bytes), (true, 0));
    assert_eq!(stream("rw=read:-12k bs=4k").steps.stride_bytes, 8192);
    let zones = stream("rw=randread random_distribution=zoned:50/5:30/15:20/");
    assert_eq!(zones.random, stream("rw=randread random_distribution=zoned:50/5:30/15:20/80").random);
    let halves = stream("rw=randread random_distribution=zoned:50/20:30/:20/");
    assert_eq!(halves.random, stream("rw=randread random_distribution=zoned:50/20:30/40:20/40").random);
    assert_eq!(stream("rw=randrw bssplit=4k/50:8k/50").random, Some(Order::Once));
    assert_eq!(stream("rw=randread norandommap random_generator=lfsr").random, Some(Order::Once));
    let several = stream("rw=randread norandommap random_generator=lfsr bsrange=1k-4k");
    assert_eq!(several.random, Some(Order::Random), "as in fio");
    let rows = stream("rw=randrw:8");
    assert_eq!(
        (rows.line.consecutive, rows.random, rows.line.positions),
        (8, Some(Order::Once), Positions::Own)
    );
    assert_eq!((stream("rw=randread:1").line.consecutive, stream("rw=read:8").line.consecutive), (1, 1));
    assert_eq!(stream("rw=write end_fsync=1 fsync_on_close"), stream("rw=write"), "a run ends with a flush");
    refused("end_fsync=maybe", &["end_fsync=maybe"]);
    assert_eq!(stream("rw=write end_syncfs=1"), stream("rw=write"), "and so with fio 3.42's option");
    refused("rw=randread:-8", &["rw=randread:-8", "type one such as rw=randread:8"]);
    assert_eq!(stream("rw=randread:8k"), stream("rw=randread:8"), "fio ignores the unit");
    refused("rw=randread:0", &["at each random offset"]);
    refused("rw=randread:5000000000", &["at each random offset"]);
    refused("rw=raed", &["no such pattern"]);
    refused("rw=randread random_distribution=zipf:1.2:0.5", &["center", "zipf:1.2"]);
    refused("rw=read:-2k bs=4k", &["rw=read:-8k"]);
}

#[test]
fn engines_and_depths_are_those_of_fio() {
    let uring = stream("ioengine=io_uring iodepth=32 iodepth_batch=8 hipri direct=1 registerfiles=1");
    let words = uring.engine.as_ref().map(model::spec::EngineSpec::to_flag);
    assert_eq!(words.as_deref(), Some("io_uring:iopoll,plain-buffers"));
    assert_eq!((uring.depth, uring.batch), (Some(32), Some(Batch { submit: 8, complete: 1 })));
    assert_eq!(stream("ioengine=psync iodepth=32").depth, Some(1), "a synchronous engine has one");
    for name in ["aio", "linuxaio", "aiolib"] {
        assert_eq!(stream(&format!("ioengine={name} iodepth=4")), stream("ioengine=libaio iodepth=4"));
    }
    assert_eq!(stream("ioengine=mmap").cache, Some(Cache::Mmap));
    assert_eq!(stream("sync=dsync buffered=0").cache, Some(Cache::DirectDsync));
    assert_eq!(stream("lockmem=1g direct=1"), stream("direct=1"));
    refused("lockmem=1g", &["type direct=1"]);
    assert_eq!(stream("direct=1 buffered=1").cache, Some(Cache::Buffered), "the last option wins");
    let null = stream("ioengine=null iodepth=0x10");
    assert_eq!((null.target.len(), null.cache, null.depth), (0, None, Some(16)));
    let trims = stream("rw=randtrim ioengine=libaio iodepth=8 direct=1");
    assert_eq!(
        (trims.engine.map(|e| e.name).as_deref(), trims.depth),
        (Some("sync"), Some(1)),
        "in the call"
    );
    refused("rw=randtrimwrite ioengine=libaio", &["ioengine=libaio", "type ioengine=io_uring"]);
    refused("ioengine=http", &["object stores", "mount"]);
    refused("ioengine=foo", &["no such engine", "type psync"]);
    refused("hipri=1", &["ioengine=io_uring or pvsync2"]);
    refused("http_host=x", &["ioengine=http"]);
}

#[test]
fn clones_of_a_group_are_one_result() {
    let own = stream("rw=write numjobs=3 group_reporting number_ios=10 rate_iops=100");
    assert_eq!((own.resolved.clones, own.resolved.workers), (Some(Clones::Own), 3));
    assert_eq!(own.target, ["j.0.0", "j.1.0", "j.2.0"]);
    assert_eq!(
        (own.resolved.limit.operations, own.limit_iops),
        (Some(30), Some(RateLimit::All(300.0))),
        "multiplied by the clones"
    );
    let apart = job("[j]\nsize=1m\nnumjobs=2\noffset_increment=1m\nfilename=f\n");
    let offsets: Vec<_> = apart.phases[0]
        .streams
        .iter()
        .map(|s| (s.resolved.access.offset_bytes, s.create.map(|c| c.bytes)))
        .collect();
    assert_eq!(offsets, [(0, Some(1 << 20)), (1 << 20, Some(2 << 20))]);
    let files = stream("nrfiles=2 directory=/a:/b filename_format=$jobname-$filenum");
    assert_eq!(
        (files.target.as_slice(), files.size),
        (["/a/j-0".to_owned(), "/a/j-1".to_owned()].as_slice(), Some(512 << 10))
    );
    assert_eq!(stream("unlink=1").create.map(|create| create.unlink), Some(true));
    assert_eq!(stream("size=100%").size, None, "the whole file");
    let half = stream("filename=f:g size=50% offset=10%");
    assert_eq!(
        (half.size, half.resolved.access.offset_bytes, half.create),
        (Some(524_288), 106_496, None),
        "a whole number of blocks, and the next block"
    );
    refused("size=50%", &["there is none", "type a size"]);
    refused("size=50% filename=f:shorter", &["different lengths"]);
    assert_eq!(
        (stream("io_size=50%").resolved.limit.bytes, stream("io_size=0%").passes),
        (Some(1 << 19), Some(1))
    );
    assert_eq!(
        stream("nrfiles=2 filesize=4m io_size=50%").resolved.limit.bytes,
        Some(1 << 20),
        "no more than the size"
    );
    refused("io_size=150%", &["io_size=150%"]);
    assert_eq!(
        stream("io_size=30% bs=64k").resolved.limit.bytes,
        Some(5 << 16),
        "the last operation may be more"
    );
    let share = job("[j]\nfilesize=1m\nsize=50%\noffset=25%\n").phases[0].streams[0].clone();
    let made = share.create.map(|create| create.bytes);
    assert_eq!(
        (share.size, share.resolved.access.offset_bytes, made),
        (Some(1 << 19), 0, Some(1 << 19)),
        "a missing file has no quarter"
    );
    assert_eq!(job("[j]\nsize=1m-2m\n").phases[0].streams[0].size, Some(2 << 20), "the last of a range");
    let tenths = job("[j]\nsize=100%\nfilename=f\nnumjobs=3\noffset_increment=10%\n");
    let offsets: Vec<_> = tenths.phases[0].streams.iter().map(|s| s.resolved.access.offset_bytes).collect();
    assert_eq!(offsets, [0, 212_992, 106_496], "rounded up to whole blocks");
    let apart = job("[j]\nsize=1m\nnumjobs=2\noffset_increment=1m\nfilename=f\ngroup_reporting\n");
    assert_eq!(apart.phases[0].streams.len(), 2, "each has its own blocks");
    let two = job("[a]\nsize=1m\nexitall\n[b]\nsize=1m\n");
    assert_eq!(two.phases[0].streams.iter().map(|s| s.has("ends-others")).collect::<Vec<_>>(), [true, false]);
    assert!(!stream("exitall").has("ends-others"), "there is no other job");
    let first = stream("prio=2 nice=-5").resolved.place;
    assert_eq!((first.io_priority, first.nice), (Some(IoPriority::BestEffort(2)), Some(-5)));
    assert_eq!(stream("prioclass=3").resolved.place.io_priority, Some(IoPriority::Idle));
    refused("prioclass=3 prio=1", &["no levels"]);
    refused("prio=8", &["type a level from 0"]);
    refused("nrfiles=2 filename_format=$jobname", &["$filenum"]);
    let turns = |options: &str| stream(&format!("nrfiles=4 {options}")).resolved.sharing;
    let some = |drawn, operations, open| Sharing::Turns { drawn, operations, open };
    assert_eq!(turns("openfiles=2"), some(false, 1, 2));
    assert_eq!((turns("openfiles=8"), turns("")), (Sharing::RoundRobin, Sharing::RoundRobin));
    assert_eq!(turns("file_service_type=sequential:4"), some(false, 1, 1));
    assert_eq!(turns("file_service_type=roundrobin:3"), some(false, 3, 4));
    assert_eq!(turns("file_service_type=random:3 openfiles=2"), some(true, 3, 2));
    refused("nrfiles=4 file_service_type=zipf:1.1", &["equally often"]);
}

#[test]
fn a_state_file_counts_the_writes_that_are_read_back() {
    let verified =
        |options: &str| job(&format!("[j]\nsize=1m\nverify=md5\n{}\n", options.replace(' ', "\n")));
    let states = |options: &str| -> Vec<String> {
        let typed = verified(options).typed.unwrap_or_default();
        typed.phases[0].iter().filter_map(|stream| stream.state.clone()).collect()
    };
    assert_eq!(states("rw=write"), ["local-j-0-verify.state"]);
    let clones = states("rw=write numjobs=3 group_reporting");
    assert_eq!((clones.len(), clones[2].as_str()), (3, "local-j-2-verify.state"));
    for options in ["rw=read", "rw=write verify_state_save=0", "rw=write verify_only"] {
        assert!(states(options).is_empty(), "{options}");
    }
    let limit = |options: &str| verified(options).phases[0].streams[0].resolved.limit.operations;
    assert_eq!(limit("rw=read verify_state_load=1"), Some(7));
    assert_eq!(limit("rw=randwrite verify_only verify_state_load=1 number_ios=3"), Some(3));
    refused("rw=write verify=md5 verify_state_load=1", &["type verify_only=1"]);
    refused("name=k verify=md5 verify_state_load=1", &["local-k-0-verify.state: there is none"]);
}

#[test]
fn verified_blocks_are_read_back_in_a_separate_phase() {
    let content = |options: &str| stream(options).resolved.verify.map(|verify| verify.content);
    let both = job(
        "[a]\nsize=1m\nrw=write\n[b]\nsize=1m\nrw=randwrite\nverify=md5\n[c]\nstonewall\nsize=1m\nverify=md5\n",
    );
    let back = |at: usize| both.phases[at].streams.iter().map(|s| s.read_back).collect::<Vec<_>>();
    assert_eq!([back(0), back(1), back(2)], [vec![None, None], vec![Some(2)], vec![None]]);
    let checks = |phase: usize, stream: usize| {
        both.phases[phase].streams[stream].resolved.verify.as_ref().map(|verify| verify.checks)
    };
    assert_eq!((checks(0, 0), checks(0, 1), checks(2, 0)), (None, Some(false), Some(true)));
    assert_eq!(
        both.phases[0].streams[1].resolved.verify.as_ref().map(|v| &v.content),
        both.phases[2].streams[0].resolved.verify.as_ref().map(|v| &v.content)
    );
    let only = stream("rw=randwrite verify=crc32c verify_only=1");
    assert_eq!((only.rw, only.resolved.verify.map(|v| v.checks)), (Some(Rw::Randread), Some(true)));
    assert_eq!(job("[j]\nsize=1m\nrw=write\nverify=md5\ndo_verify=0\n").phases.len(), 1);
    assert!(stream("rw=write verify=0").resolved.verify.is_none());
    let bytes = Some(Content::Pattern { bytes: vec![0xde, 0xad], offsets: Vec::new() });
    assert_eq!(content("rw=write verify=pattern verify_pattern=0xdead do_verify=0"), bytes);
    assert_eq!(content("rw=write buffer_pattern=0xdead"), bytes);
    let from_file = Some(Content::Pattern { bytes: b"from a file".to_vec(), offsets: Vec::new() });
    assert_eq!(content("rw=write buffer_pattern='data'"), from_file);
    refused("verify=pattern", &["verify_pattern=0xdeadbeef"]);
    refused("verify=md4", &["crc32c"]);
    refused("buffer_pattern='none'", &["cannot be read"]);
}

#[test]
fn holes_restart_until_the_size_is_moved() {
    let ends = |options: &str| {
        let stream = stream(&format!("rw=read:60k {options}"));
        (stream.passes, stream.resolved.limit.bytes)
    };
    assert_eq!(ends("size=256k"), (None, Some(256 << 10)));
    assert_eq!(ends("size=256k loops=2"), (None, Some(512 << 10)));
    assert_eq!(ends("size=260k"), (Some(1), None), "an operation ends where the file ends");
    assert_eq!(ends("filename=f size=256k"), (Some(1), None), "the file is longer");
    assert_eq!(ends("size=256k offset=128k"), (Some(1), None));
    assert_eq!(ends("size=256k filesize=1m offset=128k loops=2"), (Some(2), None), "to the end of the file");
    let clones = job("[j]\nrw=read:60k\nsize=256k\nnumjobs=2\noffset_increment=64k\n");
    let ends_of_clones: Vec<_> =
        clones.phases[0].streams.iter().map(|s| (s.passes, s.resolved.limit.bytes)).collect();
    assert_eq!(ends_of_clones, [(None, Some(256 << 10)), (Some(1), None)], "the second clone has an offset");
    assert_eq!(ends("filename=f size=0"), (Some(1), None), "5 bytes remain after the last hole");
    assert_eq!(
        ends("bs=64k size=1100k"),
        (None, Some(18 * (64 << 10))),
        "a part of an operation counts as one"
    );
}

#[test]
fn stepping_back_by_a_block_repeats_the_first_block() {
    let same = stream("rw=read:-4k bs=4k size=64k");
    assert_eq!((same.size, same.resolved.limit.bytes, same.passes), (Some(4096), Some(64 << 10), None));
    assert_eq!(same.create.map(|create| create.bytes), Some(64 << 10));
    assert_eq!((same.steps.backwards, same.has("evict-each-pass")), (false, false));
    assert!(stream("rw=read:-8k bs=4k size=64k").steps.backwards);
}

#[test]
fn operations_of_loops_are_counted_together() {
    assert_eq!(stream("number_ios=10 loops=3").resolved.limit.operations, Some(30));
    assert_eq!(stream("number_ios=10 loops=3").passes, Some(3));
    assert_eq!(stream("number_ios=10").resolved.limit.operations, Some(10));
    let timed = |options: &str| stream(&format!("time_based {options}")).resolved.limit.operations;
    assert_eq!(timed("number_ios=10 runtime=1"), None, "a time_based job ends only by time");
    assert_eq!((timed("number_ios=10"), timed("create_only=1 runtime=1")), (Some(10), Some(0)));
    let moved =
        |options: &str| stream(&format!("size=2m bs=64k {options}")).resolved.limit.bytes.map(|b| b >> 20);
    assert_eq!(moved("io_size=6m loops=3"), Some(6), "passes end with the file");
    assert_eq!(moved("io_size=5m loops=2 rw=randread"), Some(6), "and go on until io_size is moved");
    assert_eq!(
        moved("io_size=3m loops=2 rw=randread norandommap"),
        Some(6),
        "without a map nothing ends a pass"
    );
}

#[test]
fn jobs_that_may_repeat_blocks_move_all_of_the_size() {
    let blocks = |options: &str| {
        let moved = stream(&format!("rw=randwrite bs=7k {options}")).resolved.limit.bytes;
        moved.map(|bytes| bytes.div_ceil(7 << 10))
    };
    for (options, fio) in [
        ("size=2m norandommap", 293),
        ("size=100% filesize=2m norandommap", 293),
        ("filesize=4m size=2m norandommap", 293),
        ("size=2m random_distribution=zipf:1.1", 293),
        ("size=2m percentage_random=50 nrfiles=3", 293),
        ("size=100% filesize=2m norandommap nrfiles=3", 878),
        ("size=2m norandommap loops=3", 878),
        ("filesize=4m size=2m norandommap loops=3", 878),
        ("size=2m io_size=1m norandommap loops=3", 439),
    ] {
        assert_eq!(blocks(options), Some(fio), "{options}: fio 3.33 runs {fio} operations");
    }
    // A job that visits each block once, or whose size is a multiple of the blocks, ends by its pass.
    for options in ["size=2m", "filesize=2m size=50% norandommap", "size=7m norandommap"] {
        assert_eq!(blocks(options), None, "{options}");
    }
}

#[test]
fn a_file_keeps_its_length_whatever_the_offset_of_a_clone() {
    let clones = |options: &str| -> Vec<_> {
        let job =
            job(&format!("[j]\nrw=write\nbs=1m\nnumjobs=3\noffset_increment=1m\nfilesize=4m\n{options}\n"));
        let all = job.phases[0].streams.iter();
        all.map(|s| {
            (
                s.resolved.access.offset_bytes,
                s.size,
                s.create.map(|c| c.bytes >> 20),
                s.resolved.limit.bytes.map(|b| b >> 20),
            )
        })
        .collect()
    };
    let (mib, four) = (|n: u64| Some(n << 20), Some(4));
    assert_eq!(
        clones(""),
        [(0, mib(4), four, None), (2 << 20, mib(2), four, None), (1 << 20, mib(3), four, None)],
        "the last clone follows the first, as in fio"
    );
    assert_eq!(
        clones("size=3m"),
        [(0, mib(4), four, Some(3)), (2 << 20, mib(2), four, Some(2)), (1 << 20, mib(3), four, Some(3))]
    );
    refused("filesize=2m size=2m numjobs=3 offset_increment=1m", &["offset_increment=1m", "filesize"]);
}

#[test]
fn percentages_and_sizes_stop_at_the_end_of_the_file() {
    let region = |options: &str| {
        let stream = stream(&format!("bs=4k {options}"));
        (stream.resolved.access.offset_bytes, stream.size)
    };
    assert_eq!(region("filename=f size=10% offset=0%"), (0, Some(25 * 4096)));
    assert_eq!(region("filename=f size=10% offset=95%"), (244 * 4096, Some(12 * 4096)));
    assert_eq!(region("filename=/dev/small size=512k offset=768k"), (768 << 10, Some(256 << 10)));
    assert_eq!(region("filename=/dev/small size=512k"), (0, Some(512 << 10)));
    assert_eq!(region("filename=f size=512k offset=768k"), (768 << 10, Some(512 << 10)), "a file grows");
}

#[test]
fn each_filename_adds_to_those_before_it() {
    let job = job("[global]\nfilename=a\nsize=1m\n[one]\nfilename=b\nfilename=c:d\n[two]\nrw=read\n");
    let targets: Vec<_> = job.phases[0].streams.iter().map(|s| s.target.join(" ")).collect();
    assert_eq!(targets, ["a b c d", "a"]);
    let typed = job.typed.as_ref().map(|t| t.phases[0][0].options.clone()).unwrap_or_default();
    assert_eq!(typed, [("filename".to_owned(), "b:c:d".to_owned())]);
    refused("filename=folder", &["folder is a directory", "type directory=folder"]);
    assert_eq!(stream("filename=folder ioengine=null").target, [""; 0], "nothing is opened");
}

#[test]
fn kb_base_holds_for_a_section_and_in_order_on_the_command_line() {
    let sizes = |words: &str| {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let line =
            CommandLine::parse(&words, &|_| Err("no file".into())).unwrap_or_else(|why| panic!("{why}"));
        let job = read_line(&line).unwrap_or_else(|why| panic!("{why}"));
        let stream = &job.phases[0].streams[0];
        (stream.size, stream.bs.as_ref().map(|bs| bs.read.least()))
    };
    assert_eq!(sizes("--name=x --size=1m --kb_base=1000 --bs=4k"), (Some(1 << 20), Some(4000)));
    assert_eq!(sizes("--size=1m --kb_base=1000 --name=x --bs=4k"), (Some(1 << 20), Some(4000)));
    assert_eq!(sizes("--kb_base=1000 --name=x --size=1m --bs=4k"), (Some(1_000_000), Some(4000)));
    let later = job("[j]\nsize=1m\nkb_base=1000\n");
    assert_eq!(later.phases[0].streams[0].size, Some(1_000_000));
    let twice = job("[j]\nkb_base=1024\nsize=1m\nkb_base=1000\n");
    assert_eq!(twice.phases[0].streams[0].size, Some(1_000_000));
    let own = job("[global]\nsize=1m\n[j]\nkb_base=1000\nbs=4k\n");
    let own = &own.phases[0].streams[0];
    assert_eq!((own.size, own.bs.as_ref().map(|bs| bs.read.least())), (Some(1 << 20), Some(4000)));
    refused("kb_base=1001", &["kb_base=1001", "1024 or 1000"]);
}

#[test]
fn output_settings_of_a_job_are_kept() {
    let layout = |options: &str| {
        let job = job(&format!("[j]\nsize=1m\n{}\n", options.replace(' ', "\n")));
        job.typed.map(|typed| typed.phases[0][0].layout.clone()).unwrap_or_default()
    };
    assert_eq!(layout("rw=read"), model::spec::FioLayout::default());
    let own = layout("lat_percentiles=1 clat_percentiles=0 percentile_list=99.9:50 unit_base=1 kb_base=1000");
    assert_eq!((own.lat_percentiles, own.clat_percentiles, own.bits), (true, false, true));
    assert_eq!(
        (own.ranks.as_slice(), own.rank_decimals, own.decimal_first),
        ([50.0, 99.9].as_slice(), 1, true)
    );
    assert_eq!(layout("description=nightly").description, "nightly");
    let percentiles = |options: &str| {
        let own = layout(&format!("lat_percentiles=1 {options}"));
        [own.clat_percentiles, own.lat_percentiles]
    };
    assert_eq!(percentiles("gtod_reduce=1"), [false, false]);
    assert_eq!(percentiles("disable_clat=1"), [false, true]);
    assert_eq!(percentiles("disable_lat=1"), [true, false]);
    refused("percentile_list=50:x", &["percentile_list=50:x", "50:99:99.9"]);
    refused("unit_base=2", &["unit_base=2", "8 for bytes"]);
}

#[test]
fn a_read_only_command_line_makes_no_file() {
    let line = |more: &str| {
        let words: Vec<String> = format!("--name=x --size=1m {more}").split(' ').map(str::to_owned).collect();
        let line =
            CommandLine::parse(&words, &|_| Err("no file".into())).unwrap_or_else(|why| panic!("{why}"));
        read_line(&line).map(|job| job.phases[0].streams[0].create.is_some())
    };
    assert_eq!(line("--rw=read").ok(), Some(true));
    assert_eq!(line("--rw=read --readonly").ok(), Some(false));
}

#[test]
fn a_job_ends_by_its_size_unless_it_is_time_based() {
    assert_eq!(stream("loops=3").passes, Some(3));
    assert_eq!(stream("io_size=10k loops=2").resolved.limit.bytes, Some(24 << 10), "whole operations");
    let timed = job("[j]\nsize=1m\nruntime=5\ntime_based\nramp_time=1\n");
    assert_eq!((timed.phases[0].time, timed.phases[0].warmup), (Some(5_000_000_000), Some(1_000_000_000)));
    assert_eq!(timed.phases[0].streams[0].passes, None);
    let both = job("[a]\nsize=1m\nruntime=5\n[b]\nsize=1m\nstartdelay=2\nruntime=3s\n");
    assert_eq!(both.phases[0].time, Some(5_000_000_000), "both end at once");
    assert_eq!(stream("time_based").passes, Some(1), "it ends by its size");
    let late = job("[j]\nsize=1m\nruntime=5\ntime_based\nramp_time=1\nstartdelay=2\n").phases.remove(0);
    let seconds = |time: Option<u64>| time.map(|ns| ns / 1_000_000_000);
    assert_eq!(
        (seconds(late.warmup), seconds(late.time), seconds(Some(late.streams[0].resolved.delay_ns))),
        (Some(3), Some(5), Some(2))
    );
    assert_eq!(seconds(job("[j]\nsize=1m\nruntime=90000\n").phases[0].time), Some(90_000), "more than a day");
    refused("runtime=400d", &["more than a year"]);
    refused("ramp_time=1", &["type time_based and runtime"]);
    refused("runtime=(60)", &["microseconds"]);
    // A stream has its own run time if it does not end together with its phase.
    let uneven = job(
        "[a]\nsize=1m\nruntime=5\ntime_based\n[b]\nsize=1m\nruntime=2\n[c]\nsize=1m\nruntime=2\nstartdelay=3\n",
    );
    let own =
        |job: &JobSpec| job.phases[0].streams.iter().map(|s| s.resolved.limit.time_ns).collect::<Vec<_>>();
    assert_eq!(
        (uneven.phases[0].time, own(&uneven)),
        (Some(5_000_000_000), vec![None, Some(2_000_000_000), None])
    );
    let open = job("[a]\nsize=1m\nruntime=5\n[b]\nsize=1m\n");
    assert_eq!((open.phases[0].time, own(&open)), (None, vec![Some(5_000_000_000), None]));
}

#[test]
fn a_job_that_waits_for_all_others_starts_a_phase() {
    let wait =
        "[global]\nsize=1m\nfilename=f\n[w]\nrw=write\n[r]\nwait_for=w\n[s]\nwait_for=r\n[t]\nwait_for=w\n";
    let job = job(wait);
    assert_eq!(job.phases.iter().map(|p| p.streams.len()).collect::<Vec<_>>(), [1, 1, 2]);
    let concurrent = parsed("[global]\nsize=1m\n[a]\n[b]\n[c]\nwait_for=a\n");
    assert!(concurrent.is_err_and(|e| e.to_string().contains("type stonewall")));
    refused("wait_for=x", &["no earlier job"]);
}

#[test]
fn a_command_line_has_sections_too() {
    let two = "--bs=8k --name=a --size=1m --name=b --size=2m --rw=write";
    let all = read_line(&parse_words(two)).unwrap_or_else(|e| panic!("{e}"));
    let streams = &all.phases[0].streams;
    assert_eq!(streams.iter().map(|s| s.size).collect::<Vec<_>>(), [Some(1 << 20), Some(2 << 20)]);
    assert!(streams.iter().all(|s| s.bs == Some(PerKind::all(Sizes::Fixed(8192)))));
    let one = read_line(&parse_words(&format!("{two} --section=b"))).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(one.name.as_deref(), Some("b"));
    let trouble =
        |line: &str| read_line(&parse_words(line)).map_or_else(|e| e.to_string(), |j| panic!("{j:?}"));
    let wrong = trouble("--name=a --iodepht=3");
    assert!(wrong.contains("--> command line:1:10") && wrong.contains("type iodepth"), "{wrong}");
    let writes = trouble(&format!("{two} --readonly"));
    assert!(writes.contains("rw=write") && writes.contains("--readonly forbids writes"), "{writes}");
    let two = read_line(&parse_words("f.fio --name=a --size=1m")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(two.phases.len(), 2, "a second file waits for all before it");
}

#[test]
fn job_files_become_one_quoted_command_line() {
    let text =
        "[global]\nrw=randread\nstonewall\n[one job]\nfilename=a b\n[two]\nblocksize=4k\ndescription=it's\n";
    let mut line = CommandLine::of_file("x.fio", text);
    let shown = |line: &CommandLine| as_one_line(line).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        shown(&line),
        r"fio --rw=randread --stonewall --name='one job' --filename='a b' --name=two --bs=4k --description='it'\''s'"
    );
    line.sections.push("two".into());
    assert!(!shown(&line).contains("one job"));
    let bare = shown(&CommandLine::of_file("x.fio", "[a]\nsize=1m\nwrite_bw_log\n[b]\nsize=2m\n"));
    assert_eq!(bare, "fio --name=a --size=1m --write_bw_log= --name=b --size=2m");
    let again = read_line(&parse_words(bare.trim_start_matches("fio "))).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.phases[0].streams.len(), 2);
}

#[test]
fn every_error_has_its_place_and_a_suggestion() {
    for (text, place, words) in [
        ("", "1:1", ["there is no job", "[NAME]"]),
        ("bs=4k\n", "1:1", ["not in a section", "[global]"]),
        ("[a\n", "1:1", ["name in brackets", "[NAME]"]),
        ("[a]\nsize=4kx\n", "2:1", ["'4kx'", "type one such as 4096"]),
        ("[a]\nsize=10%\n", "2:1", ["a percentage needs the length", "type a size"]),
        ("[a]\nreadwrit=read\n", "2:1", ["no option 'readwrit'", "type readwrite"]),
        ("[a]\nverify=null\n", "2:1", ["verify=null", "crc32c"]),
        ("[a]\n  merge_blktrace_file=x\n", "2:3", ["merge_blktrace_file=x", "does not merge traces"]),
        ("[a]\nsize=1m\nfsync=2\nfdatasync=1\nrw=write\n", "4:1", ["or only fdatasync", "one kind of sync"]),
        ("[a]\nsize=1m\niodepth=0\n", "3:1", ["out of range", "from 1"]),
    ] {
        let trouble = parsed(text).map_or_else(|e| e.to_string(), |job| panic!("{text:?} is {job:?}"));
        assert!(trouble.contains(&format!("--> x.fio:{place}\n")), "not at {place}:\n{trouble}");
        assert!(words.iter().all(|w| trouble.contains(w)), "{words:?} not in:\n{trouble}");
    }
}

#[test]
fn values_that_fio_would_refuse_are_refused_even_if_they_have_no_effect() {
    for (options, words) in [
        ("bs=4x bs=4k", ["bs=4x", "'4x' is not a number"]),
        ("rw=read rwmixread=7O", ["rwmixread=7O", "type one such as 4096"]),
        ("rw=read rwmixread=101", ["rwmixread=101", "type 0 to 100"]),
        ("rw=read overwrite=x", ["overwrite=x", "type 1 or 0"]),
        ("thinktime_spin=5x", ["thinktime_spin=5x", "type microseconds"]),
        ("io_size=x time_based runtime=1", ["io_size=x", "is not a number"]),
        ("runtime=5min runtime=5m", ["runtime=5min", "type seconds"]),
        ("rate=1m,x rate=1m", ["rate=1m,x", "'x' is not a number"]),
    ] {
        refused(options, &words);
    }
    assert_eq!(stream("bs=,8k, rate= io_size=50%").limit_bandwidth, None, "an empty number is the default");
}

#[test]
fn a_job_is_named_by_its_section_or_its_own_name() {
    let jobs = job("[global]\nname=all\nsize=1m\n[a]\n[b]\nname=own\n");
    let names: Vec<_> = jobs.phases[0].streams.iter().map(|s| s.name.as_deref()).collect();
    assert_eq!(names, [Some("a"), Some("own")]);
}

#[test]
fn options_without_effect_are_reported_once() {
    let job = job("[global]\nthread\n[a]\nsize=1mib\n[b]\nsize=1m\nthread=1\nfilename=x;y\n");
    let all = job.remarks.join("\n");
    assert_eq!(all.matches("thread has no effect").count(), 1, "{all}");
    assert!(all.contains("powers of ten") && all.contains("only 'filename=x' is used"), "{all}");
}

#[test]
fn honoured_options_are_read_and_others_are_not() {
    let sources = [
        include_str!("access.rs"),
        include_str!("files.rs"),
        include_str!("job_file.rs"),
        include_str!("phases.rs"),
        include_str!("rates.rs"),
        include_str!("replay.rs"),
        include_str!("streams.rs"),
        include_str!("verify_state.rs"),
    ];
    for option in OPTIONS {
        // The parser reads an option by its name, or by the setting that it sets.
        let names = [option.name, option.settings].map(|name| format!("\"{name}\""));
        let is_read = sources.iter().any(|s| names.iter().any(|name| name.len() > 2 && s.contains(name)));
        match option.how {
            // An option with listed values may need no reader: the parser only checks the value.
            How::Honoured => {
                assert!(is_read || !option.words.is_empty(), "{} is honoured but never read", option.name);
            }
            _ => {
                assert!(!is_read || option.name == "description", "{} is read but not honoured", option.name);
            }
        }
    }
}

#[test]
fn typed_options_are_kept_by_their_main_names() {
    let text =
        "[global]\nblocksize=4k\nsize=1m\n[a]\nrw=read\nreadwrite=write\nthread\n[global]\nbs=8k\n[b]\n";
    let typed = job(text).typed.unwrap_or_default();
    assert_eq!(shown(&typed.defaults), "size=1m bs=8k");
    let own: Vec<String> = typed.phases[0].iter().map(|stream| shown(&stream.options)).collect();
    assert_eq!(own, ["rw=write", ""]);
    // On a command line the name is an option too. Each clone has the options of its job.
    let line = parse_words("--size=1m --name=x --bs 8k --numjobs=2 --thread --bs=16k --name=y");
    let typed = read_line(&line).unwrap_or_else(|e| panic!("{e}")).typed.unwrap_or_default();
    assert_eq!(shown(&typed.defaults), "size=1m");
    let own: Vec<String> = typed.phases[0].iter().map(|stream| shown(&stream.options)).collect();
    assert_eq!(own, ["name=x numjobs=2 bs=16k", "name=x numjobs=2 bs=16k", "name=y"]);
}

#[test]
fn groups_begin_as_in_fio_and_jobs_join_those_before_them() {
    let typed = |text: &str| job(&format!("[global]\nsize=1m\n{text}")).typed.unwrap_or_default();
    let groups = |text: &str| -> Vec<(usize, bool)> {
        typed(text).phases.iter().flatten().map(|stream| (stream.group, stream.joins)).collect()
    };
    assert_eq!(
        groups(
            "group_reporting\n[a]\nstonewall\n[b]\n[c]\nnew_group\n[d]\nstonewall\n[e]\ngroup_reporting=0\n"
        ),
        [(0, true), (0, true), (1, true), (2, true), (2, false)]
    );
    assert_eq!(
        groups("[a]\nnumjobs=2\n[b]\nnumjobs=2\ngroup_reporting\n"),
        [(0, false), (0, false), (0, true)]
    );
    let mixed = |value: &str| typed(&format!("[a]\nunified_rw_reporting={value}\n")).phases[0][0].mixed;
    assert_eq!(["none", "0", "mixed", "1", "both"].map(mixed), [false, false, true, true, false]);
    let shown = typed("[a]\nunified_rw_reporting=both\n[b]\nstats=0\n").phases[0].clone();
    assert!(shown[0].also_mixed && !shown[0].hidden && shown[1].hidden);
}

#[test]
fn a_file_of_only_unknown_options_is_refused_quickly() {
    let slips: Vec<String> = (0..40_000).map(|i| format!("abcdefghijklmnopqr{i}=1")).collect();
    let since = std::time::Instant::now();
    let trouble =
        parsed(&format!("[j]\n{}", slips.join("\n"))).map_or_else(|t| t.to_string(), |_| String::new());
    // Without optimization, searching similar names for each unknown option took a minute.
    assert!(since.elapsed().as_secs() < 20, "{:?}", since.elapsed());
    assert!(trouble.contains("and 39980 more"), "{}", &trouble[..500]);
}
