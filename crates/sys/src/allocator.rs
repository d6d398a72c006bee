//! The program's allocator. If memory runs out (`ulimit -v`), it ends the program with a message and an exit code; Rust's default would
//! abort the program.

use std::alloc::{GlobalAlloc, Layout, System};

/// Exit code of fathom if the machine refuses a resource.
const REFUSED: i32 = 3;
const MESSAGE: &[u8] = b"fathom: no memory is left for this process (`ulimit -v` shows its limit); give it more, or use a smaller \
--depth, --workers or --bs\n";

/// The system allocator, except that it ends the program where the system allocator returns null.
#[derive(Debug)]
pub struct EndOnFailure;

// SAFETY: every call goes to the system allocator with the same arguments and returns its result, unless that is null, which ends the
// process.
unsafe impl GlobalAlloc for EndOnFailure {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        end_if_null(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        end_if_null(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        end_if_null(unsafe { System.realloc(memory, layout, bytes) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn end_if_null(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end_without_memory();
    }
    memory
}

#[cold]
fn end_without_memory() -> ! {
    // SAFETY: the bytes are constant and outlive the call. `_exit` runs no other code, which might allocate again. Unnamed test files
    // disappear with the process, and the next call of fathom finds the named ones.
    unsafe {
        let _ = libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(REFUSED)
    }
}
