#include "frontend/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thrice/status.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace thrice::frontend::onnx {

MappedFile::~MappedFile() {
  if (!bytes.empty()) munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

std::shared_ptr<const MappedFile> map_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a named pipe must not block
  if (fd < 0) {
    const int code = errno;
    throw Error(code == ENOENT || code == ENOTDIR ? Code::kNotFound : Code::kIo,
                fmt::format("cannot open {}: {}", path, std::strerror(code)));
  }
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    throw Error(Code::kInvalidModel, fmt::format("{} is not a regular file", path));
  }
  auto file = std::make_shared<MappedFile>();
  const auto size = static_cast<size_t>(info.st_size);
  if (size > 0) {
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) {
      const int code = errno;
      close(fd);
      throw Error(Code::kIo, fmt::format("cannot map {} ({} bytes): {}", path, size, std::strerror(code)));
    }
    file->bytes = {static_cast<const std::byte*>(address), size};
  }
  close(fd);
  return file;
}

ExternalData::Slice ExternalData::open(const std::string& location, uint64_t offset, int64_t length,
                                       uint64_t expected, const std::string& where) {
  namespace fs = std::filesystem;
  const auto refuse = [&](const std::string& reason) {
    throw Error(Code::kInvalidModel, fmt::format("{}: external data '{}': {}", where, location, reason));
  };
  if (folder_.empty())
    refuse("the model was read from memory, so it has no folder to look in; give the file's path");
  if (location.empty() || location.find('\0') != std::string::npos) refuse("no file is named");
  const fs::path relative(location);
  if (relative.is_absolute()) refuse("an absolute path is refused; data must lie inside the model's folder");
  for (const auto& part : relative) {
    if (part == "..") refuse("'..' is refused; data must lie inside the model's folder");
  }
  std::error_code error;
  const fs::path root = fs::weakly_canonical(fs::path(folder_), error);
  if (error) refuse("the model's folder cannot be resolved: " + error.message());
  const fs::path full = fs::canonical(root / relative, error);
  if (error) {
    throw Error(Code::kNotFound, fmt::format("{}: external data '{}' is not in the model's folder {}: {}",
                                             where, location, folder_, error.message()));
  }
  // Links are resolved by now: the real file must still be below the real folder.
  const auto [root_end, ignored] = std::mismatch(root.begin(), root.end(), full.begin(), full.end());
  if (root_end != root.end()) refuse("a link leads outside the model's folder");

  auto& file = files_[full.string()];
  if (!file) file = map_file(full.string());
  const uint64_t size = file->bytes.size();
  const uint64_t wanted = length < 0 ? expected : static_cast<uint64_t>(length);
  if (offset > size || wanted > size - offset) {
    refuse(fmt::format("offset {} and length {} reach outside the file, which has {} bytes", offset, wanted,
                       size));
  }
  if (wanted != expected) {
    refuse(fmt::format("length {} but the tensor's type and shape need {} bytes", wanted, expected));
  }
  return {file, file->bytes.subspan(offset, expected)};
}

}  // namespace thrice::frontend::onnx
