"""A file system with one file whose reads are slow in a known way, like a dead server, a drive that sleeps, or a disk with burst credits.

Tests use it for storage with a chosen behaviour. It uses the kernel's protocol on /dev/fuse directly (include/uapi/linux/fuse.h), so it
needs no library.

Usage: slow_reads.py DIRECTORY BYTES MANNER NUMBER...
Prints "ready" and answers requests until its standard input ends. Times are in seconds. Manners:
dies READS              answers READS reads, and no read after them
forgets READS           like dies, and the kernel asks for the attributes of the file at each access
stalls READS PAUSE      the first read after each group of READS reads takes PAUSE
wakes AFTER PAUSE       a read takes PAUSE if there was no read for AFTER
spends READS EACH THEN  the first READS reads take EACH, all later ones THEN
"""

import ctypes
import errno
import os
import select
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT = 20, 25, 26, 27, 28, 29, 36
BATCH_FORGET, DESTROY = 42, 38
ROOT, FILE = 1, 2
NAME = b"file"
S_IFDIR, S_IFREG = 0o040000, 0o100000
# How long the kernel may use the attributes of a file without asking again.
SECONDS = 0 if sys.argv[3:4] == ["forgets"] else 3600


def attributes(node, size):
    """struct fuse_attr."""
    mode = S_IFDIR | 0o755 if node == ROOT else S_IFREG | 0o644
    size = 0 if node == ROOT else size
    blocks = (size + 511) // 512
    return struct.pack("<6Q10I", node, size, blocks, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def entry(size):
    """struct fuse_entry_out for the file."""
    return struct.pack("<4Q2I", FILE, 0, SECONDS, SECONDS, 0, 0) + attributes(FILE, size)


def mount(directory):
    """Mounts an empty FUSE file system and returns its channel."""
    channel = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={channel},rootmode=40000,user_id=0,group_id=0,allow_other,max_read=131072"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"stall", directory.encode(), b"fuse.stall", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    return channel


def answer(request, size):
    """The reply to a request as (errno, body); None for requests without a reply."""
    opcode, node = opcode_of(request), struct.unpack_from("<Q", request, 16)[0]
    body = request[40:]
    if opcode == INIT:
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 16, 12, 131072, 1, 0, 0, 0, *[0] * 7)
    if opcode == LOOKUP:
        return (0, entry(size)) if body.rstrip(b"\0") == NAME else (errno.ENOENT, b"")
    if opcode == GETATTR:
        return 0, struct.pack("<Q2I", SECONDS, 0, 0) + attributes(node, size)
    if opcode in (OPEN, OPENDIR):
        # FOPEN_DIRECT_IO: the kernel passes on each read of any process.
        return 0, struct.pack("<Q2I", 1, opcode == OPEN, 0)
    if opcode == READ:
        offset, length = struct.unpack_from("<QI", body, 8)
        return 0, b"x" * max(0, min(length, size - offset))
    if opcode == STATFS:
        return 0, struct.pack("<5Q4I24x", 1 << 20, 1 << 19, 1 << 19, 1, 0, 4096, 255, 4096, 0)
    if opcode in (RELEASE, RELEASEDIR, FLUSH, FSYNC, READDIR):
        return 0, b""
    if opcode in (FORGET, BATCH_FORGET, INTERRUPT, DESTROY):
        return None
    return errno.ENOSYS, b""


def opcode_of(request):
    return struct.unpack_from("<I", request, 4)[0]


# Each manner yields a function for each read. The function returns how long the read waits, and gets the time since the previous read.
def dies(reads):
    for _ in range(int(reads)):
        yield lambda idle: 0


def forgets(reads):
    yield from dies(reads)


def stalls(reads, pause):
    while True:
        yield from dies(reads)
        yield lambda idle: pause


def wakes(after, pause):
    while True:
        yield lambda idle: pause if idle > after else 0


def spends(reads, each, then):
    for _ in range(int(reads)):
        yield lambda idle: each
    while True:
        yield lambda idle: then


def serve(channel, size, pauses):
    """Answers requests until standard input ends or the file system is unmounted. `pauses` has the pause before each read.

    After the last pause, no further request is taken from the channel: if a request was taken, the kernel would not end the process that
    waits for the answer.
    """
    pause, last = next(pauses), time.monotonic()
    while True:
        ready, _, _ = select.select([sys.stdin] if pause is None else [channel, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        try:
            request = os.read(channel, 1 << 20)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                continue
            return
        read = opcode_of(request) == READ
        if read:
            time.sleep(pause(time.monotonic() - last))
        reply = answer(request, size)
        if reply is not None:
            code, body = reply
            unique = struct.unpack_from("<Q", request, 8)[0]
            os.write(channel, struct.pack("<IiQ", 16 + len(body), -code, unique) + body)
        if read:
            pause, last = next(pauses, None), time.monotonic()


if __name__ == "__main__":
    manners = {manner.__name__: manner for manner in (dies, forgets, stalls, wakes, spends)}
    opened = mount(sys.argv[1])
    print("ready", flush=True)
    serve(opened, int(sys.argv[2]), manners[sys.argv[3]](*map(float, sys.argv[4:])))
