//! A read lease, taken and given back at once: the kernel's own answer whether anybody has a file open for writing.
//!
//! For: that question, on an open file. Not for: keeping others away from it; nothing is held afterwards.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Of `asm-generic/fcntl.h`; `libc` does not have it for every target.
const F_SETSIG: libc::c_int = 10;

/// Whether anybody has the file open for writing, in whichever name space and under whichever name; a shared mapping that may
/// be written counts as long as it is there. Asked on a descriptor that is open for reading only.
///
/// # Errors
/// `EACCES` for who neither owns the file nor has `CAP_LEASE`, `EINVAL` where there are no leases.
pub fn is_open_for_writing(file: &File) -> io::Result<bool> {
    // Whoever opens it for writing in between makes the kernel tell us, by default with a signal that ends the process.
    set(file, F_SETSIG, libc::SIGURG)?;
    let taken = set(file, libc::F_SETLEASE, libc::F_RDLCK);
    let answer = match taken {
        Ok(()) => {
            set(file, libc::F_SETLEASE, libc::F_UNLCK)?;
            Ok(false)
        }
        Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(e) => Err(e),
    };
    set(file, F_SETSIG, 0)?;
    answer
}

fn set(file: &File, command: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: these commands take an int and touch no memory of ours; the descriptor is open.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[test]
fn a_writer_is_told_also_when_its_descriptor_is_another_one_and_a_reader_is_none() -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("fathom-lease-{}", std::process::id()));
    std::fs::write(&path, "x")?;
    let ours = File::open(&path)?;
    assert!(!is_open_for_writing(&ours)?);
    let reader = File::open(&path)?;
    assert!(!is_open_for_writing(&ours)?);
    let writer = File::options().append(true).open(&path)?;
    assert!(is_open_for_writing(&ours)?);
    drop((writer, reader));
    assert!(!is_open_for_writing(&ours)?);
    std::fs::remove_file(&path)?;
    assert!(is_open_for_writing(&File::open("/dev/null")?).is_err());
    Ok(())
}
