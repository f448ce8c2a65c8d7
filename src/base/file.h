// Files: whole reads with a limit, atomic writes, and the seam where tests make the operating system fail.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thrice {

// Errors: kNotFound, kIo (permission, short read, larger than `limit`); messages name the path.
std::vector<std::byte> read_file(const std::string& path, size_t limit = size_t{64} << 30);
std::string read_text(const std::string& path, size_t limit = size_t{1} << 30);

// Names of the entries of a folder, sorted, without "." and "..". Errors: kNotFound, kIo.
std::vector<std::string> list_folder(const std::string& path);

// Writes beside `path` (same folder, unique name), fsyncs, renames, fsyncs the folder. On any error `path` is
// as it was and the temporary is gone. Errors: kIo with the reason of the operating system ("No space left on
// device").
void write_file_atomic(const std::string& path, std::span<const std::byte> bytes);
// The same, of pieces one after another.
void write_file_atomic(const std::string& path, std::span<const std::span<const std::byte>> pieces);
void write_file_atomic(const std::string& path, std::string_view text);

// For tests: called before each operation ("open", "write", "fsync", "rename") with the path; a non-zero
// errno makes that operation fail with it. Not for threads: set it while nothing else writes.
using FileFault = std::function<int(const char* operation, const std::string& path)>;
void set_file_fault(FileFault fault);

}  // namespace thrice
