//! What lies on a block device, asked of libblkid where the system has it.
//!
//! For: the name of a signature before anything is overwritten. Not for: a verdict without it; the caller has a table of its
//! own for systems without the library.

use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;

type Probe = *mut c_void;
type NewProbe = unsafe extern "C" fn() -> Probe;
type FreeProbe = unsafe extern "C" fn(Probe);
type SetDevice = unsafe extern "C" fn(Probe, c_int, i64, i64) -> c_int;
type Switch = unsafe extern "C" fn(Probe, c_int) -> c_int;
type Run = unsafe extern "C" fn(Probe) -> c_int;
type Lookup = unsafe extern "C" fn(Probe, *const c_char, *mut *const c_char, *mut usize) -> c_int;

/// The signature on an open device: `ext4`, `swap`, `LVM2_member`, `gpt`, ... `None` where there is none.
///
/// # Errors
/// Why the library could not be asked.
pub fn signature(device: &File) -> Result<Option<String>, String> {
    let why = |e: libloading::Error| format!("libblkid cannot be used: {e}");
    // SAFETY: libblkid.so.1 is the system's own library of util-linux; its initialisation has no effects on the process.
    let library = unsafe { Library::new("libblkid.so.1") }.map_err(why)?;
    // SAFETY: names and signatures are those of util-linux's blkid.h, unchanged since 2.20; blkid_loff_t is 64 bits wide.
    // Each symbol is used while `library` is loaded. The probe is freed on the only way out of the inner block, and the
    // looked-up string, which belongs to the probe, is copied before that.
    unsafe {
        let new: Symbol<NewProbe> = library.get(b"blkid_new_probe\0").map_err(why)?;
        let free: Symbol<FreeProbe> = library.get(b"blkid_free_probe\0").map_err(why)?;
        let set: Symbol<SetDevice> = library.get(b"blkid_probe_set_device\0").map_err(why)?;
        let superblocks: Symbol<Switch> = library.get(b"blkid_probe_enable_superblocks\0").map_err(why)?;
        let partitions: Symbol<Switch> = library.get(b"blkid_probe_enable_partitions\0").map_err(why)?;
        let run: Symbol<Run> = library.get(b"blkid_do_probe\0").map_err(why)?;
        let lookup: Symbol<Lookup> = library.get(b"blkid_probe_lookup_value\0").map_err(why)?;
        let probe = new();
        if probe.is_null() {
            return Err("libblkid cannot be used: no memory for a probe".into());
        }
        let answer = if set(probe, device.as_raw_fd(), 0, 0) != 0 {
            Err("libblkid cannot read the device".into())
        } else {
            superblocks(probe, 1);
            partitions(probe, 1);
            match run(probe) {
                0 => Ok(Some(name(probe, &lookup))),
                1 => Ok(None),
                _ => Err("libblkid failed to probe the device".into()),
            }
        };
        free(probe);
        answer
    }
}

/// The name of what a probe has found.
///
/// # Safety
/// `probe` must be live and `lookup` must be libblkid's `blkid_probe_lookup_value`.
unsafe fn name(probe: Probe, lookup: &Symbol<Lookup>) -> String {
    for key in ["TYPE", "PTTYPE"] {
        let Ok(key) = CString::new(key) else { continue };
        let mut value: *const c_char = std::ptr::null();
        // SAFETY: by the contract above; on success the value is a string that lives as long as the probe's result.
        let found = unsafe { lookup(probe, key.as_ptr(), &raw mut value, std::ptr::null_mut()) };
        if found == 0 && !value.is_null() {
            // SAFETY: see above; it is copied at once.
            return unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned();
        }
    }
    "an unnamed signature".into()
}
