//! Rings on a file: reads and writes, refused misuse, and drops with operations in flight.

use super::*;

fn scratch(writable: bool) -> io::Result<OpenFile> {
    use std::fs::File;
    use std::io::Write;
    let path = std::env::temp_dir().join(format!("fathom-ring-{}-{writable}", std::process::id()));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(&[7; 8192])?;
    Ok(OpenFile::new(file, writable))
}

fn ring_of(writable: bool) -> Option<Ring> {
    match Ring::new(Arena::new(2, 4096).ok()?, vec![scratch(writable).ok()?], &RingOptions::default()) {
        Ok((ring, _)) => Some(ring),
        Err(e) => {
            println!("SKIPPED: io_uring cannot be set up here: {e}");
            None
        }
    }
}

#[test]
fn writes_are_read_back() {
    let Some(mut ring) = ring_of(true) else { return };
    let mut done = [Done::default(); 4];
    ring.slot_mut(0).fill(42);
    ring.write(0, 0, 4096, 4096);
    ring.submit(1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((ring.reap(&mut done), done[0]), (1, Done { slot: 0, result: 4096 }));
    ring.read(1, 0, 4096, 4096);
    ring.submit(1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ring.reap(&mut done), 1);
    assert!(ring.slot_mut(1).iter().all(|b| *b == 42));
}

/// Returns the message of a panic; `None` without a panic.
fn panic_message(misuse: impl FnOnce()) -> Option<String> {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(misuse)).err()?;
    panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
}

#[test]
fn a_write_to_a_reading_file_is_stopped_before_the_kernel() {
    let Some(mut ring) = ring_of(false) else { return };
    let panic = panic_message(|| ring.write(0, 0, 0, 4096));
    assert!(panic.is_some_and(|p| p.contains("opened for reading")));
}

#[test]
fn a_slot_in_flight_cannot_be_borrowed() {
    let Some(mut ring) = ring_of(true) else { return };
    ring.read(0, 0, 0, 4096);
    let panic = panic_message(|| {
        ring.slot_mut(0);
    });
    assert!(panic.is_some_and(|p| p.contains("in flight")));
}

#[test]
fn a_registered_ring_is_unregistered_with_the_ring() {
    // A thread can register 16 rings. More than 16 rings, one after another, must all be granted.
    for _ in 0..40 {
        let Ok(file) = scratch(false) else { return };
        match Ring::new(
            Arena::new(1, 4096).unwrap_or_else(|e| panic!("{e}")),
            vec![file],
            &RingOptions::default(),
        ) {
            Ok((_, granted)) if granted.fallbacks.iter().any(|f| f.contains("Invalid argument")) => {
                return println!("SKIPPED: this kernel registers no rings");
            }
            Ok((_, granted)) => assert!(granted.used.contains(&"registered ring".into()), "{granted:?}"),
            Err(e) => return println!("SKIPPED: io_uring cannot be set up here: {e}"),
        }
    }
}

#[test]
fn dropping_with_operations_in_flight_cancels_them() {
    let Some(mut ring) = ring_of(true) else { return };
    let (Ok((end, _keep)), started) = (std::io::pipe(), Instant::now()) else { return };
    let arena = Arena::new(1, 4096).unwrap_or_else(|e| panic!("{e}"));
    let file = OpenFile::new(std::os::fd::OwnedFd::from(end).into(), false);
    // A read of an empty pipe ends only if it is cancelled.
    let Ok((mut waiting, _)) = Ring::new(arena, vec![file], &RingOptions::default()) else { return };
    waiting.read(0, 0, 0, 4096);
    ring.read(0, 0, 0, 4096);
    for r in [&mut waiting, &mut ring] {
        r.submit(0).unwrap_or_else(|e| panic!("{e}"));
    }
    drop((waiting, ring));
    assert!(started.elapsed() < DRAIN_LIMIT, "nothing was cancelled");
}
