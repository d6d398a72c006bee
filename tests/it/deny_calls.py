"""Runs a command under a seccomp filter that answers every system call of io_uring with an errno, as container runtimes do.

Usage: deny_io_uring.py ERRNO COMMAND...
"""

import ctypes
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
# io_uring_setup, io_uring_enter and io_uring_register have these numbers on every architecture.
CALLS = (425, 426, 427)


def instruction(code, if_true, if_false, value):
    return struct.pack("HBBI", code, if_true, if_false, value)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def main():
    errno = int(sys.argv[1])
    program = instruction(LOAD_WORD, 0, 0, 0)
    for at, call in enumerate(CALLS):
        program += instruction(JUMP_IF_EQUAL, len(CALLS) - at, 0, call)
    program += instruction(RETURN, 0, 0, ALLOW) + instruction(RETURN, 0, 0, ERRNO | errno)
    buffer = ctypes.create_string_buffer(program)
    libc = ctypes.CDLL(None, use_errno=True)
    filter = Program(len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter), 0, 0
    ):
        sys.exit(f"deny_io_uring: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[2], sys.argv[2:])


main()
