//! Settings that contradict each other or would change nothing, and settings that can be combined.

use crate::spec::JobSpec;

fn parse_flags(flags: &str) -> JobSpec {
    let mut job = JobSpec::default();
    for flag in flags.split_whitespace() {
        let (name, value) = flag.split_once('~').unwrap_or((flag, "true"));
        let key = crate::spec::keys::find(name).unwrap_or_else(|| panic!("there is no {name}"));
        key.parse_into_job(&mut job, [value]).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    job
}

#[test]
fn compatible_settings_are_accepted() {
    for flags in [
        "rw~randrw mix~70 bs~read=4k,write=8k fsync~1 drain compress~50 dedup~10",
        "rw~write dedup~30 dedup-set~64m",
        "rw~rw positions~own hole~4k",
        "rw~trimwrite hole~4k fsync~8 compress~50",
        "strided~1m,4m,1g random~once target~a target~b workers~2",
        "strided~1m line~bs=4k,reply=512 target~a target~b sharing~each",
        "rw~randrw random~mixed:20 positions~own",
        "rw~randrw random~once consecutive~8 positions~own",
        "rw~read stride~8k start~same workers~2 backwards",
        "rw~randwrite zeros random~zipf:1.1 rate~5k arrivals~constant",
        "line~share=60,bs=4k line~share=40,bs=8k,mix=0 fdatasync~1",
        "line~bs=4k,reply=512 fsync~1",
        "think~1ms burst~8 limit-iops~100",
        "think~lognormal:38us/161us depth~1",
        "rw~randrw positions~own random~zones:50/10,50/90 run-length~3.5 interleaved~4",
        "rw~write interleaved~4 fdatasync~2.9",
        "rate~5 arrivals~on-off:2ms/30ms depth~8",
        "flow~3,1 workers~2 limit-iops~100",
        "serialize-overlap depth~8 rw~randrw max-errors~all",
        "target~a target~b sharing~weighted:3,1 cpus~0-3 pin",
        "clones~own workers~2 target~a target~b passes~2 create~1g,blocks rw~write",
        "shared~strided workers~4 rw~randread random~once passes~2 shift-hosts~1",
        "shared~segmented rw~write bs~4k-64k",
        "own workers~4 rw~write shift-hosts~2",
        "engine~mmap cache~mmap depth~8 batch~8,4 delay~1s time~2s",
        "rw~randrw mix~100/0/0 data~x mix~0/50/50",
        "precision~2.5% runs~7 max-runs~20",
        "op-priority~20%=rt:0,read/10%=be:7",
        "op-priority~write/20%=rt:0 rw~randrw mix~0/50/50",
        "op-priority~write/20%=rt:0 line~share=60,bs=4k line~share=40,bs=8k,mix=0",
        "until~steady max-runs~40",
        "settle runs~5 max-runs~40 fail-if~iops<5",
    ] {
        assert_eq!(parse_flags(flags).check(), [], "{flags}");
    }
}

/// Settings that contradict each other or change nothing, with the keys that the problem names.
const CONTRADICTIONS: &[(&str, &str)] = &[
    ("mix~70 rw~read", "mix rw"),
    ("mix~70", "mix rw"),
    ("bs~read=4k,write=8k rw~write", "bs rw"),
    ("bs~trim=4k,write=8k rw~trimwrite", "bs rw"),
    ("random~once rw~write", "random rw"),
    ("stride~8k rw~randread", "stride rw"),
    ("hole~8k", "hole rw"),
    ("op-priority~20%=rt:0,write/20%=rt:0", "op-priority"),
    ("op-priority~read/20%=rt:0 rw~randrw mix~0/50/50", "op-priority"),
    ("op-priority~20%=rt:0 rw~trim", "op-priority"),
    ("backwards", "backwards rw"),
    ("start~same rw~randwrite workers~2", "start rw"),
    ("start~same rw~write", "start workers"),
    ("consecutive~8 rw~read", "consecutive rw"),
    ("line~bs=4k consecutive~8", "consecutive line"),
    ("run-length~8 rw~read", "run-length rw"),
    ("run-length~8 consecutive~4", "run-length consecutive"),
    ("run-length~8 random~mixed:20", "run-length random"),
    ("run-length~8 random~once", "run-length random"),
    ("line~bs=4k run-length~8", "run-length line"),
    ("interleaved~4", "interleaved rw"),
    ("interleaved~4 rw~read start~same workers~2", "interleaved start"),
    ("interleaved~4 rw~read strided~1m", "interleaved strided"),
    ("line~bs=4k interleaved~4", "interleaved line"),
    ("rate~5 arrivals~on-off:2ms/30ms workers~2", "arrivals workers"),
    ("positions~own rw~randrw consecutive~1", "positions rw"),
    ("positions~own rw~read", "positions rw"),
    ("positions~own rw~randrw", "positions rw"),
    ("positions~own rw~rw start~interlocked workers~2", "positions start"),
    ("line~bs=4k positions~own", "positions line"),
    ("stride~8k hole~4k rw~read", "hole stride"),
    ("strided~1m start~same workers~2 rw~read", "strided start"),
    ("strided~1m target~a target~b sharing~random", "strided sharing"),
    ("line~bs=4k bs~4k", "bs line"),
    ("line~bs=4k random~once", "random line"),
    ("line~bs=4k think~1ms", "think line"),
    ("line~share=60,bs=4k line~share=30,bs=8k", "line"),
    ("rate~5 limit-iops~5", "limit-iops rate"),
    ("rate~5 limit-bandwidth~5m", "limit-bandwidth rate"),
    ("rate~5 think~5ms", "think rate"),
    ("rate~5 flow~5 workers~2", "flow rate"),
    ("flow~5", "flow"),
    ("arrivals~poisson", "arrivals"),
    ("burst~3", "burst"),
    ("batch~8 depth~4", "batch depth"),
    ("serialize-overlap depth~1", "serialize-overlap depth"),
    ("fsync~1", "fsync rw"),
    ("compress~10 line~bs=4k", "compress line"),
    ("fsync~1 fdatasync~1 rw~write", "fdatasync fsync"),
    ("sync-file-range~1 fdatasync~1 rw~write", "sync-file-range fdatasync"),
    ("drain rw~write", "drain"),
    ("zeros compress~10 rw~write", "compress zeros"),
    ("zeros data~x rw~write", "data zeros"),
    ("data~x dedup~10 rw~write", "dedup data"),
    ("dedup-set~1m rw~write", "dedup-set"),
    ("zeros rw~rw mix~50/0/50", "zeros rw"),
    ("pin", "pin"),
    ("target~a sharing~random", "sharing target"),
    ("clones~same", "clones workers"),
    ("clones~own workers~2 target~a", "clones target"),
    ("clones~same workers~2 start~same rw~read", "start clones"),
    ("target~a target~b sharing~weighted:1,2,3", "sharing target"),
    ("own shared~strided", "own shared"),
    ("shared~strided clones~same workers~2", "shared clones"),
    ("shared~strided start~same workers~2 rw~read", "shared start"),
    ("shared~1m strided~1m", "shared strided"),
    ("shared~1m target~a target~b", "shared target"),
    ("own create~1g", "own create"),
    ("cache~mmap engine~sync", "cache engine"),
    ("cache~direct engine~mmap", "cache engine"),
    ("delay~5s time~5s", "delay time"),
    ("precision~5 until~steady", "until precision"),
    ("until~steady runs~9", "runs until"),
    ("until~steady attempts~2", "attempts until"),
    ("ends-others", "ends-others"),
    ("precision~5 runs~4", "runs precision"),
    ("max-runs~9", "max-runs"),
    ("max-runs~9 runs~9", "max-runs"),
    ("until~steady max-runs~4", "max-runs"),
    ("precision~5 runs~9 max-runs~8", "max-runs runs"),
];

#[test]
fn contradictory_and_useless_settings_are_rejected() {
    for (flags, keys) in CONTRADICTIONS {
        let found = parse_flags(flags).check();
        let [problem] = found.as_slice() else { panic!("{flags}: {found:?}") };
        assert_eq!(problem.keys.join(" "), *keys, "{flags}");
        let (flag, toml) = (problem.in_flags(), problem.in_toml());
        assert!(flag.contains(&format!("--{}", problem.keys[0])) && !flag.contains(['{', '}']), "{flag}");
        assert!(toml.contains(&format!("`{}", problem.keys[0])) && flag.contains("; "), "{toml}");
    }
}

#[test]
fn targets_named_outside_the_job_are_counted() {
    let job = parse_flags("sharing~weighted:3,1");
    assert_eq!(job.check(), []);
    assert_eq!(job.check_targets(2), []);
    assert!(job.check_targets(3)[0].message.contains("weights: 2, targets: 3"));
    assert!(job.check_targets(0)[0].message.contains("there is one"));
}

#[test]
fn keys_are_written_in_the_readers_syntax() {
    let found = parse_flags("mix~70 rw~read").check();
    let problem = &found[0];
    assert_eq!(
        problem.in_flags(),
        "--mix is for --rw rw or --rw randrw, not for --rw read; type one of these, or leave --mix out"
    );
    assert!(problem.in_toml().starts_with("`mix` is for `rw = \"rw\"`"));
}
