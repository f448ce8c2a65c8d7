#include "target/device_spec.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "base/hash.h"
#include "target/architecture.h"

namespace thrice::target {
namespace {

constexpr int kOldestArchitecture = 80;  // asynchronous copies and tf32 products

constexpr const char* kApiNames[] = {"null", "opencl", "cuda"};

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(Code::kInvalidArgument,
              fmt::format("'{}' is no target: {}. Accepted: null:0, opencl:0, cuda:0 (a device by number), "
                          "cuda:sm_90a or cuda:sm_80,sm_90a (architectures, no device needed)",
                          text, why));
}

bool is_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// 90 of "sm_90a"; -1 of what is no name of an architecture.
int architecture_number(const std::string& text) {
  if (text.rfind("sm_", 0) != 0) return -1;
  std::string digits = text.substr(3);
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.pop_back();
  return is_digits(digits) && digits.size() >= 2 && digits.size() <= 3 ? std::stoi(digits) : -1;
}

}  // namespace

double DeviceSpec::product_gflops() const {
  return api == Api::kCuda && architecture == "sm_90a" ? 5 * f32_gflops : f32_gflops;
}

std::string DeviceSpec::key() const {
  // Left out: id (a number of this start), memory sizes beyond one allocation's limit, and peaks (reports
  // only).
  Hasher h;
  h.add(static_cast<int64_t>(api)).add(name).add(driver).add(architecture).add(int64_t{is_cpu});
  h.add(int64_t{compute_units})
      .add(int64_t{max_threads_per_block})
      .add(max_shared_bytes)
      .add(optin_shared_bytes)
      .add(max_alloc_bytes);
  h.add(l2_bytes).add(int64_t{warp_size}).add(int64_t{registers_per_block});
  h.add(int64_t{has_f64}).add(int64_t{has_f16_arithmetic}).add(int64_t{has_int64_atomics});
  h.add(cublaslt).add(cudnn);
  return h.hex();
}

Target Target::parse(const std::string& text) {
  Target target;
  const size_t colon = text.find(':');
  const std::string api = text.substr(0, colon);
  const auto* found = std::find(std::begin(kApiNames), std::end(kApiNames), api);
  if (found == std::end(kApiNames)) refuse(text, fmt::format("'{}' is no back end", api));
  target.api = static_cast<Api>(found - std::begin(kApiNames));
  if (colon == std::string::npos) {
    target.index = 0;
    return target;
  }
  const std::string rest = text.substr(colon + 1);
  constexpr size_t kMaxDigits = 4;
  if (is_digits(rest) && rest.size() <= kMaxDigits) {
    target.index = std::stoi(rest);
    return target;
  }
  if (target.api != Api::kCuda) refuse(text, fmt::format("'{}' is no device number", rest));
  for (size_t begin = 0; begin <= rest.size();) {
    const size_t end = std::min(rest.find(',', begin), rest.size());
    const std::string name = rest.substr(begin, end - begin);
    const int number = architecture_number(name);
    if (number < 0) refuse(text, fmt::format("'{}' is neither a device number nor an architecture", name));
    if (number < kOldestArchitecture)
      refuse(text,
             fmt::format("'{}' does not exist or is older than what kernels are written for; there are {}",
                         name, kTestedArchitectures));
    if (std::find(target.architectures.begin(), target.architectures.end(), name) ==
        target.architectures.end())
      target.architectures.push_back(name);
    begin = end + 1;
  }
  return target;
}

}  // namespace thrice::target
