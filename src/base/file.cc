#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <thrice/status.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace thrice {

namespace {

FileFault& fault() {
  static FileFault hook;
  return hook;
}
// True when the test seam says that this operation fails now; errno is set.
bool fails(const char* operation, const std::string& path) {
  if (!fault()) return false;
  const int error = fault()(operation, path);
  if (error != 0) errno = error;
  return error != 0;
}

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  const int error = errno;
  throw Error(error == ENOENT ? Code::kNotFound : Code::kIo,
              fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

}  // namespace

void set_file_fault(FileFault hook) { fault() = std::move(hook); }

std::vector<std::byte> read_file(const std::string& path, size_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail("open", path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail("look at", path);
  if (S_ISDIR(info.st_mode)) throw Error(Code::kIo, fmt::format("cannot read '{}': it is a folder", path));
  const size_t size = static_cast<size_t>(info.st_size);
  if (size > limit)
    throw Error(Code::kIo, fmt::format("'{}' has {} bytes; the limit is {}", path, size, limit));
  std::vector<std::byte> bytes(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file.get(), bytes.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path);
    if (n == 0) throw Error(Code::kIo, fmt::format("'{}' became shorter while it was read", path));
    done += static_cast<size_t>(n);
  }
  return bytes;
}

std::string read_text(const std::string& path, size_t limit) {
  const std::vector<std::byte> bytes = read_file(path, limit);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::vector<std::string> list_folder(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) {
    errno = error.value();
    fail("list", path);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void write_file_atomic(const std::string& path, std::span<const std::byte> bytes) {
  write_file_atomic(path, std::span<const std::span<const std::byte>>(&bytes, 1));
}

void write_file_atomic(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter++);
  try {
    if (fails("open", path)) fail("create", path);
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file.get() < 0) fail("create", path);
    for (const std::span<const std::byte> bytes : pieces)
      for (size_t done = 0; done < bytes.size();) {
        if (fails("write", path)) fail("write", path);
        const ssize_t n = ::write(file.get(), bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("write", path);
        done += static_cast<size_t>(n);
      }
    if (fails("fsync", path) || ::fsync(file.get()) != 0) fail("write", path);
    if (file.close() != 0) fail("write", path);
    if (fails("rename", path) || ::rename(temporary.c_str(), path.c_str()) != 0)
      fail("rename into place", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor directory(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0)
    ::fsync(directory.get());  // some file systems refuse; the rename itself has happened
}

void write_file_atomic(const std::string& path, std::string_view text) {
  write_file_atomic(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace thrice
