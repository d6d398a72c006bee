// C++ streams on an open descriptor, for stdio.rs.
//
// Measures the cost of std::istream::read and std::ostream::write. The buffer is libstdc++'s stdio_filebuf, which is the
// basic_filebuf of std::fstream on a descriptor instead of a path.

#include <cerrno>
#include <ext/stdio_filebuf.h>
#include <istream>
#include <new>
#include <system_error>

namespace {
struct Stream {
    __gnu_cxx::stdio_filebuf<char> buffer;
    std::iostream stream;
    bool readable;
    Stream(int fd, std::ios_base::openmode mode)
        : buffer(fd, mode | std::ios_base::binary), stream(&buffer), readable(mode & std::ios_base::in) {}
};

// Carries a call whose failure is an exception; minus errno then.
template <typename Call> long guarded(Call call) {
    errno = 0;
    try {
        return call();
    } catch (const std::system_error &e) {
        bool has_number = e.code().category() != std::iostream_category();
        return -(has_number ? e.code().value() : errno ? errno : EIO);
    } catch (...) {
        return -(errno ? errno : EIO);
    }
}

// What was moved, or what the failure that moved nothing says; what a stream remembers of its end is forgotten.
template <typename Call> long carried(Stream *s, Call call) {
    s->stream.exceptions(std::ios_base::badbit);
    long moved = guarded(call);
    s->stream.exceptions(std::ios_base::goodbit);
    s->stream.clear();
    return moved;
}
} // namespace

// The stream owns the descriptor. Null where it cannot be had.
extern "C" Stream *fathom_fstream_open(int fd, int readable, int writable) {
    std::ios_base::openmode mode{};
    if (readable) mode |= std::ios_base::in;
    if (writable) mode |= std::ios_base::out;
    try {
        Stream *s = new Stream(fd, mode);
        if (s->buffer.is_open()) return s;
        delete s;
    } catch (...) {
    }
    return nullptr;
}

extern "C" long fathom_fstream_read(Stream *s, char *to, long bytes) {
    // The buffer would answer that the file ends here.
    if (!s->readable) return -EBADF;
    return carried(s, [=] { return s->stream.read(to, bytes), static_cast<long>(s->stream.gcount()); });
}

extern "C" long fathom_fstream_write(Stream *s, const char *from, long bytes) {
    return carried(s, [=] { return s->stream.write(from, bytes), bytes; });
}

extern "C" long fathom_fstream_seek(Stream *s, long offset) {
    return guarded([=] {
        bool moved = s->buffer.pubseekoff(offset, std::ios_base::beg) != std::streampos(std::streamoff(-1));
        return moved ? 0L : -static_cast<long>(errno ? errno : EIO);
    });
}

extern "C" long fathom_fstream_flush(Stream *s) {
    return guarded([=] { return s->buffer.pubsync() == 0 ? 0L : -static_cast<long>(errno ? errno : EIO); });
}

extern "C" void fathom_fstream_close(Stream *s) { delete s; }
