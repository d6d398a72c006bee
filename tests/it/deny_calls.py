"""Runs a command under a seccomp filter that answers system calls with an errno.

Usage: deny_calls.py GROUP ERRNO COMMAND...

io_uring    denies the calls of io_uring, as container runtimes do
new         denies the calls of io_uring, statx, preadv2, pwritev2, copy_file_range and openat2: with errno 38 (ENOSYS) as on Linux 4.4
"""

import ctypes
import os
import platform
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
# io_uring_setup, io_uring_enter and io_uring_register. These calls and openat2 have the same numbers on every architecture.
IO_URING = (425, 426, 427)
OPENAT2 = 437
# copy_file_range, preadv2, pwritev2, statx.
OLDER = {"x86_64": (326, 327, 328, 332), "aarch64": (285, 286, 287, 291)}


def instruction(code, if_true, if_false, value):
    return struct.pack("HBBI", code, if_true, if_false, value)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def main():
    group, errno = sys.argv[1], int(sys.argv[2])
    calls = {"io_uring": IO_URING, "new": IO_URING + (OPENAT2,) + OLDER[platform.machine()]}[group]
    program = instruction(LOAD_WORD, 0, 0, 0)
    for at, call in enumerate(calls):
        program += instruction(JUMP_IF_EQUAL, len(calls) - at, 0, call)
    program += instruction(RETURN, 0, 0, ALLOW) + instruction(RETURN, 0, 0, ERRNO | errno)
    buffer = ctypes.create_string_buffer(program)
    libc = ctypes.CDLL(None, use_errno=True)
    filter = Program(len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter), 0, 0
    ):
        sys.exit(f"deny_calls: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[3], sys.argv[3:])


main()
