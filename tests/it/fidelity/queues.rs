//! Queue depth, shares of several targets, flushes, and the end of a stream, as seen in the queue of the device.

use super::{
    BLOCK, COUNTED, MIB, NEVER_WRITTEN, Request, Storage, TARGET_MIB, TIMED, assert_share, assert_success,
    is_of_a_worker, on_both, undisturbed,
};
use crate::disk::{Device, Image};
use crate::stage::{Stage, is_root};
use crate::trace::{Direction, Event, Step, Trace, number};
use std::collections::BTreeSet;

/// Requests in flight at a device: the largest number, and the mean between the first and the last issue.
fn in_flight(events: &[Event], device: (u32, u32)) -> (u32, f64) {
    let mut pending = BTreeSet::new();
    let (mut most, mut sum, mut since, mut first, mut last) = (0, 0.0, 0, None, (0, 0.0));
    for e in events.iter().filter(|e| e.device == device) {
        sum += pending.len() as f64 * (e.at_ns - since) as f64;
        since = e.at_ns;
        if is_of_a_worker(e) {
            first.get_or_insert(e.at_ns);
            pending.insert(e.sector);
            most = most.max(pending.len());
            last = (e.at_ns, sum);
        } else if e.step == Step::Completed {
            pending.remove(&e.sector);
        }
    }
    (most as u32, last.1 / (last.0 - first.unwrap()) as f64)
}

fn depth(words: &str, asked: u32) {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu().watching_as_for_users();
    let Some(Storage::Device(device)) = Storage::full_device(&stage) else { return };
    let Some(trace) = Trace::start(&stage, &[device.name()]) else { return };
    // `--random once` puts no block in flight twice, so the sector identifies a request.
    let words = format!("run --rw randread --bs 256k --random once --time 500ms {TIMED} {words}");
    let out = stage.fathom(&words, &device.path);
    assert_success(&out);
    let (most, mean) = in_flight(&trace.take(), number(device.name()));
    assert_eq!(most, asked, "never more at the device than asked for, and at times as many");
    let printed = out.report().0["results"][0]["read"]["depth_mean"].as_f64().unwrap() * 1.02;
    // After each completion at the device, fathom needs time to send the next request. On a busy machine this takes longer than the
    // request.
    let least = f64::from(asked) * 0.3;
    assert!(
        (least..printed).contains(&mean),
        "{mean} in flight on average, {asked} asked for, {printed} reported"
    );
}

#[test]
fn requested_depth_is_in_flight_at_the_device() {
    undisturbed(|| {
        depth("--depth 8", 8);
        depth("--depth 16 --workers 2", 32);
    });
}

#[test]
fn synchronous_engines_have_depth_one_per_worker() {
    undisturbed(|| {
        depth("--engine sync --depth 1", 1);
        depth("--engine sync --depth 1 --workers 3", 3);
    });
}

/// Runs on two devices. Passes to the test the device index of each worker's request in order, all events, and the device numbers.
fn on_two(words: &str, test: impl Fn(&[usize], &[Event], [(u32, u32); 2])) {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(Storage::Device(one)) = Storage::device(&stage) else { return };
    let image = stage.path("second");
    std::fs::File::create(&image).unwrap().set_len(TARGET_MIB as u64 * MIB).unwrap();
    let Some(two) = Device::on(&image, Image::Direct) else { return };
    let Some(trace) = Trace::start(&stage, &[one.name(), two.name()]) else { return };
    let words = format!("run {words} {NEVER_WRITTEN} {}", one.path.display());
    assert_success(&stage.fathom(&words, &two.path));
    let (events, numbers) = (trace.take(), [number(one.name()), number(two.name())]);
    let of = events.iter().filter(|e| is_of_a_worker(e)).map(|e| usize::from(e.device == numbers[1]));
    test(&of.collect::<Vec<_>>(), &events, numbers);
}

#[test]
fn targets_alternate() {
    let words = "--rw randread --sharing round-robin --depth 8 --ops 2000";
    on_two(&format!("{words} {COUNTED}"), |of, _, _| {
        assert_eq!(of, (0..2000).map(|i| i % 2).collect::<Vec<_>>());
    });
}

#[test]
fn targets_follow_their_weights() {
    let words = "--rw randread --sharing weighted:3,1 --depth 8 --ops 8000";
    on_two(&format!("{words} {COUNTED}"), |of, _, _| {
        assert_share(of.iter().filter(|d| **d == 0).count(), 8000, 0.75);
    });
}

#[test]
fn each_target_has_its_own_depth() {
    on_two(&format!("--rw randread --random once --depth 4 --time 300ms {TIMED}"), |_, events, devices| {
        for device in devices {
            assert_eq!(in_flight(events, device).0, 4, "{device:?}");
        }
    });
}

#[test]
fn operation_and_byte_limits_are_exact() {
    let one_by_one = |count: usize| {
        move |all: &[Request]| {
            assert_eq!(all.len(), count);
            assert!(all.iter().all(|r| r.bytes == BLOCK && r.direction == Direction::Read));
        }
    };
    on_both(&format!("--rw randread --depth 8 --workers 3 --ops 777 {COUNTED}"), one_by_one(777));
    on_both(&format!("--rw randread --depth 8 --workers 2 --bytes 3m {COUNTED}"), one_by_one(768));
}

#[test]
fn flushes_follow_every_nth_write() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(Storage::Device(device)) = Storage::device(&stage) else { return };
    let Some(trace) = Trace::start(&stage, &[device.name()]) else { return };
    let words = format!("run --rw randwrite --depth 1 --fsync 8 --ops 400 {COUNTED}");
    let out = stage.fathom(&format!("{words} --destroy {}", device.name()), &device.path);
    assert_success(&out);
    let issued: Vec<Event> = trace.take().into_iter().filter(|e| e.step == Step::Issued).collect();
    let is_write = |e: &Event| e.direction == Direction::Write;
    let (first, last) = (issued.iter().position(is_write), issued.iter().rposition(is_write));
    let groups = issued[first.unwrap()..=last.unwrap()].split(|e| e.direction == Direction::Flush);
    let writes: Vec<usize> = groups.map(<[Event]>::len).collect();
    assert_eq!(writes, [8; 50], "a flush, no more and no less, after every eighth write");
}
