#!/bin/sh
# Runs a command under restrictions that containers have.
# Usage: unshare --mount --propagation private sh container.sh DIR RESTRICTIONS COMMAND...
# DIR remains writable under `read-only-root`. RESTRICTIONS are separated by commas; each is a case below.
set -eu
here=$(dirname "$(readlink -f "$0")")
dir=$1
restrictions=$(echo "$2" | tr , ' ')
shift 2
mount --bind "$dir" "$dir"
# Restrictions set these: a command that changes user or capabilities, and a command that filters system calls.
who=
filter=

hide() {
    if [ -d "$1" ]; then mount -t tmpfs -o ro,size=0 tmpfs "$1"; elif [ -e "$1" ]; then mount --bind /dev/null "$1"; fi
}
protect() {
    [ ! -e "$1" ] || { mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"; }
}

for restriction in $restrictions; do
    case $restriction in
    none) ;;
    eperm) filter="python3 $here/deny_calls.py io_uring 1" ;;
    enosys) filter="python3 $here/deny_calls.py io_uring 38" ;;
    sys-read-only) mount -o remount,bind,ro /sys ;;
    masked)
        # Docker's MaskedPaths and ReadonlyPaths.
        for path in /proc/asound /proc/acpi /proc/interrupts /proc/kcore /proc/keys /proc/latency_stats /proc/timer_list \
            /proc/timer_stats /proc/sched_debug /proc/scsi /sys/firmware /sys/devices/virtual/powercap; do
            hide "$path"
        done
        for path in /proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger; do protect "$path"; done
        ;;
    read-only-root) mount -o remount,bind,ro / ;;
    shm) mount -t tmpfs -o size=64m tmpfs /dev/shm ;;
    # This user has no entry in /etc/passwd.
    user) who="setpriv --reuid 12345 --regid 12345 --clear-groups" ;;
    no-admin) [ -n "$who" ] || who="setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin" ;;
    # Join the cgroup here, so that the memory of the mounts above is not counted.
    memory=*) echo 0 >"${restriction#memory=}/cgroup.procs" ;;
    *)
        echo "container.sh: unknown restriction $restriction" >&2
        exit 64
        ;;
    esac
done
cd "$dir"
# shellcheck disable=SC2086
exec $filter $who "$@"
