// C++ streams on an open descriptor, for stdio.rs.
//
// Measures the cost of std::istream::read and std::ostream::write. The buffer is libstdc++'s stdio_filebuf, which is the
// basic_filebuf of std::fstream on a descriptor instead of a path.

#include <cerrno>
#include <ext/stdio_filebuf.h>
#include <istream>
#include <memory>
#include <system_error>
#include <unistd.h>

namespace {
using Buffer = __gnu_cxx::stdio_filebuf<char>;

struct Stream {
    Buffer buffer;
    std::iostream stream{&buffer};
    bool readable = false;
};

// Returns the result of a call, or minus the error number if the call throws.
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

// Moves bytes and returns their number, or minus the error number. Clears the state of the stream, so that the next
// call works after an error or the end of the file.
template <typename Call> long transfer(Stream *s, Call call) {
    s->stream.exceptions(std::ios_base::badbit);
    long moved = guarded(call);
    s->stream.exceptions(std::ios_base::goodbit);
    s->stream.clear();
    return moved;
}
} // namespace

// Takes the descriptor in every case: the stream closes it, or this function does if it returns null.
extern "C" Stream *fathom_fstream_open(int fd, int readable, int writable, size_t buffer_bytes) {
    std::ios_base::openmode mode = std::ios_base::binary;
    if (readable) mode |= std::ios_base::in;
    if (writable) mode |= std::ios_base::out;
    bool owned = true;
    try {
        auto s = std::make_unique<Stream>();
        s->readable = readable;
        // A constructor that throws has opened the descriptor, and closes it again.
        owned = false;
        s->buffer = Buffer(fd, mode, buffer_bytes);
        if (s->buffer.is_open()) return s.release();
        owned = true;
    } catch (...) {
    }
    if (owned) close(fd);
    return nullptr;
}

extern "C" long fathom_fstream_read(Stream *s, char *to, long bytes) {
    // Without this check the buffer would report the end of the file.
    if (!s->readable) return -EBADF;
    return transfer(s, [=] { return s->stream.read(to, bytes), static_cast<long>(s->stream.gcount()); });
}

extern "C" long fathom_fstream_write(Stream *s, const char *from, long bytes) {
    return transfer(s, [=] { return s->stream.write(from, bytes), bytes; });
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
