//! The safety checks of a target: in the plan, when it is opened, and before writes.
//!
//! A device is written only if `--destroy` names it. It is never written while the device, a part of it or a
//! device built on it is in use, or while it holds anything with a signature. An existing file
//! with content is written only if `--destroy` names it. A refusal says what to type instead, if anything helps.
//!
//! 1. Planning: [`may_write_device`] and [`may_write_file`].
//! 2. Opening: [`open_device`] claims the device exclusively, checks everything again and refuses any other
//!    device than the planned one. Files are compared by [`check_planned_path`] and [`check_planned_file`].
//! 3. Before the first write: [`refuse_users`]; before later ones: [`refuse_new_users`].
//!
//! Test files that fathom makes are in `test_file`.

use crate::error::{MachineError, NotNamed, describe};
use crate::in_use::Use;
use crate::processes::ProcessVisibility;
use crate::root::{Root, number_of};
use crate::{file_systems, identity, in_use, signature, stack};
use model::job::Cache;
use model::machine::Identity;
use model::name;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use sys::open_file::O_DSYNC;

const O_EXCL: i32 = rustix::fs::OFlags::EXCL.bits() as i32;
const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;
const O_SYNC: i32 = rustix::fs::OFlags::SYNC.bits() as i32;
const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
/// Devices that this process has claimed, each by an `O_EXCL` descriptor that stays open until the process
/// ends. While it is open the kernel allows no mount or swap on the device, not even between two runs.
/// Workers open further descriptors.
static CLAIMED: Mutex<BTreeMap<String, File>> = Mutex::new(BTreeMap::new());

/// The first check of a block device, in the plan. `destroy` is the value of `--destroy`; `allows_unseen` is whether
/// `--unseen-users` names the device.
///
/// # Errors
/// Refuses a device that is used, holds a signature or is read-only; [`MachineError::NotNamed`] if `--destroy`
/// does not name it; [`MachineError::Usage`] if `path` is not a block device.
pub fn may_write_device(
    root: &Root,
    path: &Path,
    destroy: Option<&str>,
    allows_unseen: bool,
) -> Result<(), MachineError> {
    let (name, number) = identify(root, path)?;
    refuse_used_device(root, path, &name, allows_unseen)?;
    if !lock_claimed().contains_key(&number) {
        // Opening for reading with `O_EXCL` tests for exclusive use and changes nothing.
        let probe = open_exclusively(root, path, &number, false)?;
        refuse_signature(path, &probe)?;
    }
    let (serial, target) = (stack::serial(root, &name), name::shown(path));
    let Some(typed) = destroy else {
        let name = serial.unwrap_or(name);
        let message = format!(
            "writing would destroy all data on {target}; if you want that, type --destroy={}",
            name::quoted(&name)
        );
        return Err(MachineError::NotNamed(NotNamed { message, name, target }));
    };
    // The typed path may be another node of the same device.
    let names_path = || typed.starts_with('/') && is_same(Path::new(typed), path);
    if serial.as_deref() == Some(typed) || typed == name || Path::new(typed) == path || names_path() {
        return Ok(());
    }
    let serial_advice = serial.as_ref().map_or_else(String::new, |s| format!("its serial number '{s}' or "));
    let message = format!(
        "--destroy '{typed}' does not name {target}, so nothing is written; type {serial_advice}its name '{name}'"
    );
    Err(MachineError::NotNamed(NotNamed { message, name: serial.unwrap_or(name), target }))
}

/// Opens a block device. This is the second check: before the first opening for writing, everything is
/// checked again on an exclusive descriptor. `planned` is the device that the plan was made for.
///
/// # Errors
///
/// As [`may_write_device`], if opening fails, and if the path is another device by now.
pub fn open_device(
    root: &Root,
    path: &Path,
    planned: Option<&Identity>,
    write: bool,
    cache: Cache,
) -> Result<File, MachineError> {
    let (name, number) = identify(root, path)?;
    check_planned(root, path, &identity::from_device_number(number.clone()), planned)?;
    if write {
        claim(root, path, &name, &number)?;
    }
    let opened_for = if write { "opened for writing" } else { "opened for reading" };
    let file = open_file(path, write, cache).map_err(|e| MachineError::at(path, opened_for, &e))?;
    // Without a plan, the device must at least be the same as a moment ago.
    check_planned_file(root, path, &file, planned.or(Some(&identity::from_device_number(number))))?;
    Ok(file)
}

/// Refuses a path that no longer leads to the file or device of the plan. Does not open the path: if a FIFO is
/// there now, opening it could block forever.
///
/// # Errors
///
/// If the path cannot be read, or is something else by now.
pub fn check_planned_path(root: &Root, path: &Path, planned: Option<&Identity>) -> Result<(), MachineError> {
    let found = identity::from_path(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => MachineError::Refused(format!(
            "{} is no longer there: it was removed or renamed after the plan was made",
            name::shown(path)
        )),
        _ => MachineError::at(path, "accessed", &e),
    })?;
    check_planned(root, path, &found, planned)
}

/// Refuses an open file or device that differs from the planned one. An open descriptor cannot be redirected later.
///
/// # Errors
///
/// If its status cannot be read, if it is something else, or if it is on a synthetic file system.
pub fn check_planned_file(
    root: &Root,
    path: &Path,
    file: &File,
    planned: Option<&Identity>,
) -> Result<(), MachineError> {
    let found = identity::from_file(file).map_err(|e| MachineError::at(path, "accessed", &e))?;
    if matches!(found, Identity::File { .. }) {
        file_systems::refuse_synthetic(path, file)?;
    }
    check_planned(root, path, &found, planned)
}

fn check_planned(
    root: &Root,
    path: &Path,
    found: &Identity,
    planned: Option<&Identity>,
) -> Result<(), MachineError> {
    let Some(planned) = planned else { return Ok(()) };
    // Only a planned identity has identifiers, such as the serial number. If it has none, devices are compared by number alone.
    let has_identifiers = !matches!(planned, Identity::Device { identifiers, .. } if identifiers.is_empty());
    let found = if has_identifiers { stack::with_identifiers(root, found.clone()) } else { found.clone() };
    found.change_from(planned).map_or(Ok(()), |how| {
        Err(MachineError::Refused(format!(
            "{} has changed since the plan was made: {how}; fathom has neither read nor written the \
             present file or device",
            name::shown(path)
        )))
    })
}

/// Refuses an open file or device that is in use. Called before the first write. Returns a note for the report if users may be
/// hidden. `allows_unseen` is whether `--unseen-users` names the file or device.
///
/// # Errors
///
/// If it is in use, or if its use is unknown.
pub fn refuse_users(
    root: &Root,
    path: &Path,
    file: &File,
    allows_unseen: bool,
) -> Result<Option<String>, MachineError> {
    refuse_users_of(root, path, file, true, allows_unseen)
}

/// Refuses an open file or device that came into use since [`refuse_users`] allowed it. Ignores the content, which fathom may have
/// written.
///
/// # Errors
///
/// If it is in use, or if its use is unknown.
pub fn refuse_new_users(
    root: &Root,
    path: &Path,
    file: &File,
    allows_unseen: bool,
) -> Result<(), MachineError> {
    refuse_users_of(root, path, file, false, allows_unseen).map(|_| ())
}

fn refuse_users_of(
    root: &Root,
    path: &Path,
    file: &File,
    is_first_write: bool,
    allows_unseen: bool,
) -> Result<Option<String>, MachineError> {
    let what = identity::from_file(file).map_err(|e| MachineError::at(path, "accessed", &e))?;
    let is_file = matches!(what, Identity::File { .. });
    let found = match what {
        Identity::File { .. } => in_use::file(root, file, is_first_write),
        Identity::Device { number, .. } => stack::name_of(root, &number)
            .ok_or_else(|| format!("the kernel shows no device {number} in /sys"))
            .and_then(|name| in_use::device(root, &name)),
    };
    match found.map_err(|why| unknown_use_error(path, &why))? {
        Use::By(user) => Err(used_error(path, &user)),
        Use::Unused => Ok(None),
        Use::NeedsConsent(why) if allows_unseen => Ok(Some(format!(
            "users of {} may be hidden ({why}); writing it was allowed because --unseen-users or FATHOM_UNSEEN_USERS names it",
            name::shown(path)
        ))),
        // The first write of a file was allowed although users may be hidden, so later ones are too.
        Use::NeedsConsent(why) if !is_file || (is_first_write && holds_data_of_others(file)) => {
            Err(hidden_use_error(path, &why, is_file))
        }
        Use::NeedsConsent(why) | Use::CannotTell(why) => Ok(Some(format!(
            "could not check whether another program has {} open for writing: {why}",
            name::shown(path)
        ))),
    }
}

/// Refuses an existing file that a report or a capture would replace, if something uses it. `--unseen-users` does not
/// apply here: the user can simply choose another name.
///
/// # Errors
///
/// The reason, as the end of a sentence about the file, and what to do instead.
pub fn may_replace(root: &Root, path: &Path) -> Result<(), String> {
    let opened = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    let found = opened.map_err(|e| e.to_string()).and_then(|file| {
        let found = in_use::file(root, &file, true)?;
        Ok((found, holds_data_of_others(&file)))
    });
    match found {
        Ok((found, has_data)) => replaceable(found, has_data),
        Err(why) => Err(format!(
            "may be in use, which fathom cannot check ({why}), so it is not replaced; type another name"
        )),
    }
}

/// Decides from the use of a file whether a report may replace it, see [`may_replace`].
fn replaceable(found: Use, has_data: bool) -> Result<(), String> {
    match found {
        Use::By(user) => Err(format!("is in use ({user}), so it is not replaced; type another name")),
        Use::NeedsConsent(why) if has_data => Err(format!(
            "may be in use ({why}), so it is not replaced; type another name, or remove the file first if nothing uses it"
        )),
        Use::NeedsConsent(_) | Use::CannotTell(_) | Use::Unused => Ok(()),
    }
}

/// Whether a file has content that fathom did not write.
fn holds_data_of_others(file: &File) -> bool {
    !crate::mark::holds_our_data(file) && !crate::mark::is_empty(file).unwrap_or(false)
}

/// Checks an existing file for the plan. `typed` is the path as typed, and `path` the same path,
/// absolute and without links. `allows_unseen` is whether `--unseen-users` names the file.
///
/// # Errors
///
/// Refuses a file that is in use, or that this user is not allowed to write; [`MachineError::Usage`] if the path is
/// not a regular file; [`MachineError::NotNamed`] if the file has content and `--destroy` does not name it.
pub fn may_write_file(
    root: &Root,
    typed: &Path,
    path: &Path,
    destroy: Option<&str>,
    allows_unseen: bool,
) -> Result<(), MachineError> {
    let facts = file_metadata(path)?;
    if !facts.is_file() {
        return Err(MachineError::Usage(format!(
            "{} is not a regular file; name a regular file or a directory",
            name::shown(typed)
        )));
    }
    file_systems::refuse_synthetic_at(typed, path)?;
    let file = open(path, OpenOptions::new().read(true).custom_flags(O_NONBLOCK), "opened for reading")?;
    file_systems::refuse_synthetic(typed, &file)?;
    refuse_users(root, typed, &file, allows_unseen)?;
    // Opening changes nothing. It fails if permissions are missing, the mount is read-only, or the file is a
    // running program.
    open(path, OpenOptions::new().write(true).custom_flags(O_NONBLOCK), "opened for writing")?;
    let absolute = std::path::absolute(typed).unwrap_or_else(|_| path.to_owned());
    let named = destroy
        .map(name::path)
        .is_some_and(|d| d == typed || d == absolute || d == path || is_same(&d, path));
    if named || crate::mark::is_empty(&file).map_err(|e| MachineError::at(path, "read", &e))? {
        return Ok(());
    }
    let mut what = destroy.map_or_else(String::new, |d| format!("--destroy '{d}' names another file; "));
    let name = name::text(typed);
    let shown = name::shown(typed);
    let mut target = shown.clone();
    if let Some(why) = crate::mark::void_because(path) {
        what += &format!("{why}: ");
        target += &format!(": {why}");
    }
    let message = format!(
        "{what}writing would overwrite the content of {shown}; if you want that, type --destroy={}, \
         otherwise name its directory, and fathom creates its own file there",
        name::quoted(&name)
    );
    Err(MachineError::NotNamed(NotNamed { message, name, target }))
}

/// Whether two paths lead to the same file or device.
pub fn is_same(a: &Path, b: &Path) -> bool {
    identity::from_path(a).is_ok_and(|a| identity::from_path(b).is_ok_and(|b| a.is_same(&b)))
}

/// Claims a device exclusively, once per process.
fn claim(root: &Root, path: &Path, name: &str, number: &str) -> Result<(), MachineError> {
    let mut claimed = lock_claimed();
    // A device cannot have been mounted since it was claimed. Do not check its content again: fathom wrote random data, which may look like
    // anything.
    if claimed.contains_key(number) {
        return Ok(());
    }
    let file = open_exclusively(root, path, number, true)?;
    // The plan and `refuse_users` handle users who may be hidden.
    refuse_used_device(root, path, name, true)?;
    refuse_signature(path, &file)?;
    claimed.insert(number.to_owned(), file);
    Ok(())
}

/// Opens the device `number` exclusively. Refuses the path if it leads to another device by now: claiming that device would not
/// protect device `number`.
fn open_exclusively(root: &Root, path: &Path, number: &str, write: bool) -> Result<File, MachineError> {
    let what = if write { "opened for writing" } else { "opened exclusively" };
    let file =
        open(path, OpenOptions::new().read(true).write(write).custom_flags(O_EXCL | O_NONBLOCK), what)?;
    check_planned_file(root, path, &file, Some(&identity::from_device_number(number.to_owned())))?;
    Ok(file)
}

fn lock_claimed() -> std::sync::MutexGuard<'static, BTreeMap<String, File>> {
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns kernel name and number of a block device.
fn identify(root: &Root, path: &Path) -> Result<(String, String), MachineError> {
    let facts = file_metadata(path)?;
    if !facts.file_type().is_block_device() {
        return Err(MachineError::Usage(format!("{} is not a block device", name::shown(path))));
    }
    let number = number_of(facts.rdev());
    let name = stack::name_of(root, &number).ok_or_else(|| {
        MachineError::Refused(format!("{}: the kernel shows no device {number} in /sys", name::shown(path)))
    })?;
    Ok((name, number))
}

fn file_metadata(path: &Path) -> Result<Metadata, MachineError> {
    std::fs::metadata(path).map_err(|e| MachineError::at(path, "accessed", &e))
}

fn refuse_used_device(root: &Root, path: &Path, name: &str, allows_unseen: bool) -> Result<(), MachineError> {
    match in_use::device(root, name).map_err(|why| unknown_use_error(path, &why))? {
        Use::By(user) => return Err(used_error(path, &user)),
        Use::NeedsConsent(why) if !allows_unseen => return Err(hidden_use_error(path, &why, false)),
        Use::NeedsConsent(_) | Use::CannotTell(_) | Use::Unused => {}
    }
    if root.word(&format!("/sys/class/block/{name}/ro")).as_deref() == Some("1") {
        return Err(MachineError::Refused(format!(
            "{} is read-only, so it cannot be written; name another device",
            name::shown(path)
        )));
    }
    Ok(())
}

fn used_error(path: &Path, user: &str) -> MachineError {
    MachineError::Refused(format!(
        "{} is in use ({user}), so it is not written; name another target, or a directory, where fathom creates its own file",
        name::shown(path)
    ))
}

fn hidden_use_error(path: &Path, why: &str, is_file: bool) -> MachineError {
    let shown = name::shown(path);
    let visibility = ProcessVisibility::of_this_process(&Root::real());
    let instead = match (is_file, visibility.in_namespace || !visibility.is_root) {
        (true, true) => {
            "run fathom as root outside containers with the file's path on the file system that stores it (`findmnt` shows it), or, "
        }
        (true, false) => "type the file's path on the file system that stores it (`findmnt` shows it), or, ",
        (false, true) => "run fathom as root outside containers, where all users can be seen, or, ",
        (false, false) => "",
    };
    MachineError::Refused(format!(
        "users of {shown} may be hidden ({why}), so it is not written; {instead}if nothing else uses it, type \
         --unseen-users {shown} (fio, diskspd and other tools' commands: set FATHOM_UNSEEN_USERS={shown})"
    ))
}

fn unknown_use_error(path: &Path, why: &str) -> MachineError {
    MachineError::Refused(format!(
        "cannot check whether {} is in use ({why}), so it is not written",
        name::shown(path)
    ))
}

fn refuse_signature(path: &Path, file: &File) -> Result<(), MachineError> {
    let bytes = sys::ioctl::device_bytes(file).map_err(|e| describe(&e));
    let found = bytes.and_then(|bytes| signature::signatures(file, bytes)).map_err(|why| {
        MachineError::Refused(format!(
            "cannot check what is stored on {} ({why}), so it is not written",
            name::shown(path)
        ))
    })?;
    if found.is_empty() {
        return Ok(());
    }
    Err(MachineError::Refused(format!(
        "{} holds {}, so it is never written; if that content is not needed, first remove all signatures with `wipefs --all {}`, or overwrite the device with zeros",
        name::shown(path),
        found.join(" and "),
        name::shown(path)
    )))
}

/// Opens a target for operations. Never uses `O_NONBLOCK`, because io_uring would fail operations
/// instead of waiting for the device. Uses `O_NOATIME` if the kernel allows it to this user:
/// updating the access time is not part of the workload, and takes up to 3 % of the time of a read
/// from the page cache. For a regular file, the caller must call [`check_planned_file`] before any
/// operation.
///
/// # Errors
///
/// If opening fails.
pub fn open_file(path: &Path, write: bool, cache: Cache) -> io::Result<File> {
    let sync = match cache {
        Cache::Sync | Cache::DirectSync => O_SYNC,
        Cache::Dsync | Cache::DirectDsync => O_DSYNC,
        Cache::Direct | Cache::Buffered | Cache::Mmap => 0,
    };
    let flags = (if cache.is_direct() { O_DIRECT } else { 0 }) | sync;
    let file = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path)?;
    let _ = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags | OFlags::NOATIME));
    Ok(file)
}

fn open(path: &Path, options: &OpenOptions, what: &str) -> Result<File, MachineError> {
    options.open(path).map_err(|e| MachineError::at(path, what, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_flags_follow_the_cache_mode() -> io::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        for (cache, flags) in [(Cache::Buffered, 0), (Cache::Dsync, O_DSYNC), (Cache::Sync, O_SYNC)] {
            let open = open_file(file.path(), true, cache)?;
            let found = fcntl_getfl(&open)?.bits().cast_signed() & O_SYNC;
            assert_eq!(found, flags, "{cache:?}");
        }
        Ok(())
    }

    fn judge(path: &Path, destroy: Option<&str>) -> Result<(), MachineError> {
        let canonical = path.canonicalize().unwrap_or_else(|e| panic!("{e}"));
        may_write_file(&Root::real(), path, &canonical, destroy, false)
    }

    #[test]
    fn a_file_with_content_is_written_only_if_destroy_names_it() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("mine");
        std::fs::write(&path, "")?;
        assert_eq!(judge(&path, None), Ok(()));
        std::fs::write(&path, "precious")?;
        let refusal = judge(&path, None);
        assert!(matches!(refusal, Err(MachineError::NotNamed(_))), "{refusal:?}");
        assert!(refusal.is_err_and(|e| e.to_string().contains("--destroy")));
        assert!(judge(&path, Some("mine")).is_err());
        assert_eq!(judge(&path, path.to_str()), Ok(()));
        assert!(matches!(judge(dir.path(), None), Err(MachineError::Usage(_))));
        assert_eq!(std::fs::read_to_string(&path)?, "precious");
        Ok(())
    }

    #[test]
    fn swap_files_and_files_of_loop_devices_are_never_written() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("image");
        std::fs::write(&path, "precious")?;
        let shown = path.to_string_lossy().into_owned();
        // In the copied tree, the file's path leads back out of the tree to the real file.
        let copy = dir.path().join("copy");
        let put = |file: &str, text: String| {
            let file = copy.join(file);
            file.parent().map(std::fs::create_dir_all);
            std::fs::write(file, text)
        };
        let inside = copy.join(shown.trim_start_matches('/'));
        inside.parent().map(std::fs::create_dir_all);
        std::os::unix::fs::symlink(&path, &inside)?;
        let root = Root::at(copy.clone());
        put("proc/swaps", format!("Filename\n{shown} file 1 0 -2\n"))?;
        let swap = may_write_file(&root, &path, &path, Some(&shown), false);
        assert!(swap.is_err_and(|e| e.to_string().contains("swap")));
        put("proc/swaps", "Filename\n".into())?;
        put("sys/class/block/loop7/loop/backing_file", format!("{shown}\n"))?;
        let refusal = may_write_file(&root, &path, &path, Some(&shown), false);
        assert!(refusal.is_err_and(|e| e.to_string().contains("loop7")));
        // For the file of a report, the advice is to type another name.
        let refusal = may_replace(&root, &path);
        assert!(refusal.is_err_and(|why| why.contains("loop7") && why.ends_with("type another name")));
        Ok(())
    }

    #[test]
    fn a_file_that_a_report_replaces_needs_no_option_of_targets() -> io::Result<()> {
        let path = tempfile::NamedTempFile::new()?.into_temp_path();
        std::fs::write(&path, [0; 10])?;
        assert_eq!(may_replace(&Root::real(), &path), Ok(()));
        let why = || "this is a container".to_owned();
        let refusals = [
            may_replace(&Root::at("/nonexistent-prefix".into()), &path),
            replaceable(Use::NeedsConsent(why()), true),
            replaceable(Use::By(why()), false),
        ];
        for refusal in refusals {
            let why = refusal.err().unwrap_or_default();
            assert!(why.contains("type another name"), "{why}");
            assert!(!why.contains("--unseen-users") && !why.contains("target"), "{why}");
        }
        assert_eq!(replaceable(Use::NeedsConsent(why()), false), Ok(()), "an empty file");
        Ok(())
    }

    #[test]
    fn only_block_devices_are_opened_as_devices() -> io::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        let root = Root::real();
        // Another file has taken the path of the device since the device was identified.
        let refusal = claim(&root, file.path(), "loop0", "7:0");
        assert!(
            refusal.as_ref().is_err_and(|e| e.to_string().contains("it was device 7:0 and is inode")),
            "{refusal:?}"
        );
        assert!(!lock_claimed().contains_key("7:0"));
        assert!(may_write_device(&root, file.path(), Some("x"), false).is_err());
        assert!(open_device(&root, file.path(), None, true, Cache::Buffered).is_err());
        let absent = may_write_device(&root, Path::new("/nowhere"), None, false);
        assert!(matches!(absent, Err(MachineError::Usage(_))), "{absent:?}");
        Ok(())
    }
}
