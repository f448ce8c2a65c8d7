// Tensor data beside the model file. A model may name any path, so every path is judged before it is opened.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace thrice::frontend::onnx {

// A file mapped read-only. `bytes` stay valid while the object lives.
struct MappedFile {
  std::span<const std::byte> bytes;
  ~MappedFile();
};
// Errors: kNotFound, kIo, kInvalidModel (not a regular file).
std::shared_ptr<const MappedFile> map_file(const std::string& path);

// Location that marks a tensor without data (docs/stripped_models.md).
inline constexpr const char* kStrippedLocation = "thrice:stripped";

class ExternalData {
 public:
  // An empty folder means that the model came from memory: every external tensor is refused.
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}

  struct Slice {
    std::shared_ptr<const MappedFile> file;
    std::span<const std::byte> bytes;
  };
  // `length` < 0: `expected` bytes are taken. Errors: kInvalidModel for an absolute path, `..`, a link that
  // leaves the folder, an offset or length outside the file (also where their sum overflows), a length other
  // than `expected`; kNotFound. The message names the tensor through `where`.
  Slice open(const std::string& location, uint64_t offset, int64_t length, uint64_t expected,
             const std::string& where);

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace thrice::frontend::onnx
