// Programs that read a file as three rows of `fathom api` do: with pread, with fread, and through a mapping in random order.
// A test compares their system calls with those of fathom. Usage: programs pread|fread|mmap FILE BYTES. The page cache of FILE is dropped first.
// Prints bytes and page faults of the loop, and its user and system time in microseconds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

enum { RECORD = 4096 };

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static size_t by_pread(int file, size_t bytes) {
    char *to = aligned_alloc(RECORD, RECORD);
    for (size_t at = 0; at < bytes; at += RECORD)
        if (pread(file, to, RECORD, (off_t)at) != RECORD) fail("pread");
    return bytes;
}

static size_t by_fread(int file, size_t bytes) {
    FILE *stream = fdopen(file, "r");
    char to[RECORD];
    for (size_t at = 0; at < bytes; at += RECORD)
        if (fread(to, 1, RECORD, stream) != RECORD) fail("fread");
    return bytes;
}

// Reads half of the records in random order, none twice, as fathom does. An odd step through a power of two reaches every record.
static size_t by_mmap(int file, size_t bytes) {
    char *from = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0), to[RECORD];
    if (from == MAP_FAILED) fail("mmap");
    if (madvise(from, bytes, MADV_RANDOM)) fail("madvise");
    size_t records = bytes / RECORD;
    for (size_t i = 0, at = 0; i < records / 2; i++, at = (at + 611) % records) {
        memcpy(to, from + at * RECORD, RECORD);
        // Otherwise the compiler removes the unused copy.
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return records / 2 * RECORD;
}

static long micros(struct timeval t) { return t.tv_sec * 1000000L + t.tv_usec; }

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int file = open(argv[2], O_RDONLY);
    if (file < 0) fail(argv[2]);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    size_t bytes = strtoull(argv[3], NULL, 10);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    size_t moved = !strcmp(argv[1], "pread")   ? by_pread(file, bytes)
                   : !strcmp(argv[1], "fread") ? by_fread(file, bytes)
                                               : by_mmap(file, bytes);
    getrusage(RUSAGE_SELF, &after);
    printf("%zu %ld %ld %ld\n", moved, after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt,
           micros(after.ru_utime) - micros(before.ru_utime), micros(after.ru_stime) - micros(before.ru_stime));
    return 0;
}
