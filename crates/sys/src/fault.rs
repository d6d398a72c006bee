//! Turning the signal of a failed mapping into an error.
//!
//! For: SIGBUS, which the kernel sends where a page of a mapped file cannot be had: the file was cut off below it, or its
//! device failed. Not for: any other fault; those go to whoever handled the signal before.
//!
//! The handler puts a page of zeros where the access failed, so that it can go on, and remembers it; whoever watches drops what
//! was accessed and maps the file again. It uses nothing but a thread-local word, `mmap` and `sigaction`.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

/// What a thread watches: addresses from, to, and whether an access failed there.
#[derive(Clone, Copy)]
struct Watch {
    from: usize,
    to: usize,
    hit: bool,
}

thread_local! {
    // Constant and without a destructor: reading it in a handler runs no code but the load.
    static WATCH: Cell<Watch> = const { Cell::new(Watch { from: 0, to: 0, hit: false }) };
}

/// The handler's constants: the page size, and what handled the signal before.
static BEFORE: OnceLock<(usize, libc::sigaction)> = OnceLock::new();

/// Installs the handler for the process and lets the signal reach the calling thread.
///
/// # Errors
/// What sigaction answers; none is known for a valid call.
pub(crate) fn install() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is initialised by the first call and read by the others; all pointers are to this frame.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGBUS);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
    BEFORE.get_or_init(|| {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null action only asks for the present one, which is written to this frame; zeros are an action too.
        let before = unsafe {
            libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr());
            before.assume_init()
        };
        (rustix::param::page_size(), before)
    });
    // Only then, since the handler reads what was before. To install it again changes nothing.
    // SAFETY: zeros are a valid action, of which the fields that matter are set; the handler has the signature that SA_SIGINFO
    // asks for and keeps to what a handler may do.
    let answer = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs `access` and says whether a page between the addresses could not be had. If so, pages of zeros are mapped there now,
/// and what was stored to them is lost.
#[inline]
pub(crate) fn caught(from: usize, to: usize, access: impl FnOnce()) -> bool {
    WATCH.with(|watch| {
        watch.set(Watch { from, to, hit: false });
        // The handler runs on this thread: it is the compiler alone that must not move accesses.
        compiler_fence(Ordering::SeqCst);
        access();
        compiler_fence(Ordering::SeqCst);
        watch.replace(Watch { from: 0, to: 0, hit: false }).hit
    })
}

extern "C" fn on_bus(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let Some((page_bytes, before)) = BEFORE.get() else { return };
    // SAFETY: with SA_SIGINFO the kernel gives a filled siginfo, which has an address for this signal.
    let address = unsafe { (*info).si_addr() } as usize;
    let handled = WATCH.with(|cell| {
        let watch = cell.get();
        if address < watch.from || address >= watch.to {
            return false;
        }
        cell.set(Watch { hit: true, ..watch });
        let page = address & !(page_bytes - 1);
        // SAFETY: the page holds an address of the watched range, which is a mapping that its owner watches through `caught`
        // and reaches by raw address alone; replacing its page invalidates nothing that Rust knows of.
        let placed = unsafe {
            libc::mmap(
                page as *mut libc::c_void,
                *page_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        placed != libc::MAP_FAILED
    });
    if !handled {
        // SAFETY: the action is the one that the kernel gave. The access is repeated after the return and then handled by it.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
}
