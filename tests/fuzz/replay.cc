// Runs a fuzz target without libFuzzer: every file of a corpus, then seeded mutations of them (bytes changed,
// cut out, repeated, spliced between files). Arguments: CORPUS_FOLDER [MUTATIONS A FILE]. A crash or an abort
// fails the run; the file and mutation are printed before it, so that it can be repeated.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

Bytes mutate(Bytes bytes, const Bytes& other, thrice::Rng& rng) {
  for (size_t edits = 1 + rng.below(4); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = rng.below(bytes.size());
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t length = 1 + rng.below(std::min<size_t>(16, bytes.size() - at));
    switch (rng.below(6)) {
      case 0:
        bytes[at] = static_cast<uint8_t>(rng.next());
        break;
      case 1:
        bytes[at] ^= static_cast<uint8_t>(1u << rng.below(8));
        break;
      case 2:
        bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(length));
        break;
      case 3: {
        const Bytes piece(begin, begin + static_cast<std::ptrdiff_t>(length));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(rng.below(bytes.size())), piece.begin(),
                     piece.end());
        break;
      }
      case 4:
        bytes.resize(at);
        break;
      default:
        if (!other.empty()) {
          const size_t from = rng.below(other.size());
          bytes.insert(begin, other.begin() + static_cast<std::ptrdiff_t>(from),
                       other.begin() + static_cast<std::ptrdiff_t>(std::min(other.size(), from + 32)));
        }
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: replay CORPUS_FOLDER [MUTATIONS]\n");
    return 2;
  }
  const int mutations = argc > 2 ? std::atoi(argv[2]) : 400;
  thrice::set_log_sink([](thrice::LogLevel, const std::string&) {});
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const auto& path : paths) {
    const auto bytes = thrice::read_file(path);
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    files.emplace_back(data, data + bytes.size());
  }
  if (files.empty()) {
    std::fprintf(stderr, "no corpus in %s\n", argv[1]);
    return 1;
  }
  size_t runs = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    thrice::Rng rng(f);
    for (int m = 0; m <= mutations; ++m, ++runs) {
      const Bytes input = m == 0 ? files[f] : mutate(files[f], files[rng.below(files.size())], rng);
      std::printf("\r%s mutation %d   ", paths[f].c_str(), m);
      LLVMFuzzerTestOneInput(input.data(), input.size());
    }
  }
  std::printf("\n%zu inputs of %zu files, no crash\n", runs, files.size());
  return 0;
}
