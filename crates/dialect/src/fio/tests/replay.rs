//! Tests of jobs of fio that replay a log, and of options that are refused with a log.

use super::*;
use model::job::{Changes, Kind, ReplayPace};
use model::spec::ReplaySpec;

#[test]
fn a_log_is_replayed_at_its_times_or_as_fast_as_possible() {
    let plain = stream("read_iolog=x.log");
    let expected =
        ReplaySpec { file: "x.log".into(), pace: Some(ReplayPace::Timed), ..ReplaySpec::default() };
    assert_eq!((plain.replay, plain.rw, plain.size, plain.depth), (Some(expected), None, None, Some(1)));
    assert_eq!(
        (plain.target, plain.create, plain.passes),
        (Vec::new(), None, None),
        "the log names its file"
    );
    let all = stream(
        "read_iolog=x.log replay_redirect=/dev/sdx replay_no_stall=1 replay_time_scale=50 replay_scale=2 replay_align=4k replay_skip=write,trim",
    );
    let changes = Changes { divide: 2, align_bytes: 4096, skip: vec![Kind::Write, Kind::Trim] };
    let expected = ReplaySpec { file: "x.log".into(), pace: Some(ReplayPace::Fast), speed: None, changes };
    assert_eq!(
        (all.replay, all.target),
        (Some(expected), vec!["/dev/sdx".to_owned()]),
        "without times, their scale has no effect"
    );
    let slow = stream("read_iolog=x.log replay_time_scale=50").replay;
    assert_eq!(slow.map(|replay| (replay.pace, replay.speed)), Some((Some(ReplayPace::Timed), Some(0.5))));
    // Limits of a job apply to a replay too.
    let limited = stream("read_iolog=x.log max_latency=10ms rate_iops_min=100");
    assert_eq!(limited.shown("max-latency").as_deref(), Some("10.0 ms"));
    assert_eq!(
        limited.resolved.min_rate.map(|rule| rule.to_flag()),
        Some("iops:read=100,write=100:1s".into())
    );
}

#[test]
fn a_trace_has_its_own_depth_by_default() {
    let depth =
        |options: &str| stream(&format!("read_iolog=sda.bin replay_redirect=/dev/sdx {options}")).depth;
    assert_eq!(
        [depth("ioengine=libaio"), depth("ioengine=libaio iodepth=4"), depth("")],
        [None, Some(4), Some(1)]
    );
    refused("read_iolog=sda.bin", &["read_iolog=sda.bin", "type replay_redirect=/dev/NAME too"]);
}

#[test]
fn clones_take_logs_in_turn() {
    let job = job("[j]\nread_iolog=x.log:sda.bin\nreplay_redirect=f\nnumjobs=3\n");
    let files: Vec<&str> =
        job.phases[0].streams.iter().filter_map(|s| Some(s.replay.as_ref()?.file.as_str())).collect();
    assert_eq!(files, ["x.log", "x.log", "sda.bin"]);
}

#[test]
fn options_of_operations_have_a_remark_and_options_of_times_are_refused() {
    let job = job("[j]\nread_iolog=x.log\nrw=randwrite\nbs=8k\n");
    assert!(
        job.remarks.iter().any(|remark| remark.starts_with("rw, bs have no effect in a replay")),
        "{job:?}"
    );
    let section = |name: &str, also: &str| format!("[{name}]\nread_iolog=x.log\nrw=read\n{also}");
    let repeated = super::job(&[section("a", ""), section("b", "bs=8k\n"), section("c", "")].concat());
    assert_eq!(repeated.remarks.len(), 2, "each remark once: {:?}", repeated.remarks);
    let logs = stream("read_iolog=x.log write_iolog=y.log").resolved.log_interval_ns;
    assert_eq!(logs, None, "a replay writes no log of its operations");
    for (options, words) in [
        ("rate_iops=100", ["rate_iops=100", "replay_time_scale=50"]),
        ("thinktime=5", ["thinktime=5", "defines the times"]),
        ("verify=md5", ["verify=md5", "does not verify"]),
        ("directory=/mnt", ["directory=/mnt", "replay_redirect"]),
        ("replay_scale=2", ["replay_scale=2", "replay_align=4096"]),
        ("replay_align=1000", ["replay_align=1000", "power of two"]),
        ("replay_skip=reads", ["replay_skip=reads", "read,write,trim,sync"]),
        ("numjobs=1001", ["numjobs=1001", "at most"]),
    ] {
        refused(&format!("read_iolog=x.log {options}"), &words);
    }
    for (file, words) in
        [("data", "neither an iolog"), ("none", "type the name of a log"), ("-", "standard input")]
    {
        refused(&format!("read_iolog={file}"), &[words]);
    }
}

#[test]
fn readonly_needs_a_log_that_skips_writes() {
    let line = |words: &str| read_line(&parse_words(words));
    assert!(line("--readonly --name=j --read_iolog=x.log --replay_skip=write,trim").is_ok());
    let refused = line("--readonly --name=j --read_iolog=x.log");
    assert!(refused.is_err_and(|e| e.to_string().contains("replay_skip=write,trim")));
}
