"""A file system of one file whose reads stop being answered: what a dead server or a dying disk looks like.

For: the stories of lifecycle.rs, and with pauses those of open_loop.rs. Not for: anything else; it knows as much of FUSE as one file needs.
Speaks the kernel's protocol on /dev/fuse itself (include/uapi/linux/fuse.h), so no library is needed.

Usage: fuse_stall.py DIRECTORY BYTES READS [PAUSE]
Prints "ready", answers so many reads, then none; with PAUSE, none for so many seconds, and then goes on. Ends with its input.
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
SECONDS = 3600


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


def answer(request, size, left):
    """The reply to a request as (errno, body), None for those that get none, and the reads that are left."""
    opcode, node = struct.unpack_from("<I", request, 4)[0], struct.unpack_from("<Q", request, 16)[0]
    body = request[40:]
    if opcode == INIT:
        return (0, struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 16, 12, 131072, 1, 0, 0, 0, *[0] * 7)), left
    if opcode == LOOKUP:
        return ((0, entry(size)) if body.rstrip(b"\0") == NAME else (errno.ENOENT, b"")), left
    if opcode == GETATTR:
        return (0, struct.pack("<Q2I", SECONDS, 0, 0) + attributes(node, size)), left
    if opcode in (OPEN, OPENDIR):
        return (0, struct.pack("<Q2I", 1, 0, 0)), left
    if opcode == READ:
        offset, length = struct.unpack_from("<QI", body, 8)
        return (0, b"x" * max(0, min(length, size - offset))), left - 1
    if opcode == STATFS:
        return (0, struct.pack("<5Q4I24x", 1 << 20, 1 << 19, 1 << 19, 1, 0, 4096, 255, 4096, 0)), left
    if opcode in (RELEASE, RELEASEDIR, FLUSH, FSYNC, READDIR):
        return (0, b""), left
    if opcode in (FORGET, BATCH_FORGET, INTERRUPT, DESTROY):
        return None, left
    return (errno.ENOSYS, b""), left


def serve(channel, size, reads, pause):
    """Answers until standard input ends or the file system is unmounted.

    Once it stalls it does not take requests off the channel either: the kernel lets nobody die who waits for an answer to
    one that was taken.
    """
    left = reads
    while True:
        if left == 0 and pause > 0:
            time.sleep(pause)
            left = reads
        ready, _, _ = select.select([channel, sys.stdin] if left else [sys.stdin], [], [])
        if sys.stdin in ready:
            return
        try:
            request = os.read(channel, 1 << 20)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                continue
            return
        reply, left = answer(request, size, left)
        if reply is not None:
            code, body = reply
            unique = struct.unpack_from("<Q", request, 8)[0]
            os.write(channel, struct.pack("<IiQ", 16 + len(body), -code, unique) + body)


if __name__ == "__main__":
    where, bytes_of_file, reads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    opened = mount(where)
    print("ready", flush=True)
    serve(opened, bytes_of_file, reads, float(sys.argv[4]) if len(sys.argv) > 4 else 0)
