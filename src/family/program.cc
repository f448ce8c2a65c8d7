#include "family/program.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>

#include "family/scalar.h"

namespace thrice::family {

using ir::ValueId;

ProgramDraft::ProgramDraft(const Workload& workload) : workload_(workload) {
  for (size_t i = 0; i < workload.graph.inputs.size(); ++i)
    if (!ir::is_shape_input(workload, i)) ++num_inputs_;
}

int ProgramDraft::add_temporary(DType dtype, Source elements, bool kept) {
  temporaries_.push_back({dtype, std::move(elements), kept});
  return static_cast<int>(temporaries_.size()) - 1;
}

std::string ProgramDraft::input_name(ValueId value) const {
  int position = 0;
  for (size_t i = 0; i < graph().inputs.size(); ++i) {
    if (ir::is_shape_input(workload_, i)) continue;
    if (graph().inputs[i] == value) return fmt::format("p{}", position);
    ++position;
  }
  return "";
}

std::string ProgramDraft::output_name(size_t output) const {
  return fmt::format("p{}", num_inputs_ + output);
}

std::string ProgramDraft::temporary_name(int number) const {
  return fmt::format("p{}", num_inputs_ + graph().outputs.size() + static_cast<size_t>(number));
}

std::string ProgramDraft::parameters() const {
  std::string text;
  const auto add = [&](const char* access, DType dtype, const std::string& name) {
    text += fmt::format("TH_GLOBAL {}{}* TH_RESTRICT {}, ", access, storage_type(dtype), name);
  };
  for (size_t i = 0; i < graph().inputs.size(); ++i)
    if (!ir::is_shape_input(workload_, i))
      add("const ", graph().value(graph().inputs[i]).type.dtype, input_name(graph().inputs[i]));
  for (size_t i = 0; i < graph().outputs.size(); ++i)
    add("", graph().value(graph().outputs[i]).type.dtype, output_name(i));
  for (size_t i = 0; i < temporaries_.size(); ++i)
    add("", temporaries_[i].dtype, temporary_name(static_cast<int>(i)));
  return text + "TH_GLOBAL const int* TH_RESTRICT E";
}

ProgramText ProgramDraft::text() const {
  ProgramText program;
  for (const auto& kernel : kernels) {
    program.text += kernel.text;
    program.kernels.push_back(kernel.symbol);
  }
  return program;
}

namespace {

bool is_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Whether `name` stands in the text as a word of its own.
bool names(std::string_view text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::vector<KernelUse> ProgramDraft::uses() const {
  const std::string header = parameters() + ") {";
  const size_t buffers = num_inputs_ + graph().outputs.size() + temporaries_.size();
  std::vector<KernelUse> uses;
  for (const KernelDraft& kernel : kernels) {
    KernelUse& use = uses.emplace_back(KernelUse{kernel.once, std::vector<bool>(buffers, true)});
    const size_t begin = kernel.text.find(header);
    if (begin == std::string::npos) continue;
    const std::string_view body = std::string_view(kernel.text).substr(begin + header.size());
    if (kernel.once) use.body = body;
    for (size_t b = 0; b < buffers; ++b) use.touches[b] = names(body, fmt::format("p{}", b));
  }
  return uses;
}

LaunchPlan ProgramDraft::launch(const std::vector<Fact>& input_facts) const {
  const Facts facts = ir::bind(graph(), input_facts);
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < facts.size(); ++i) {
    int64_t n = 1;
    for (const auto& d : facts[i].type.shape) {
      if (d.value() == 0) n = 0;
      if (n != 0) n = n > kLimit / d.value() ? kLimit + 1 : n * d.value();
    }
    if (n > kLimit)
      throw Error(Code::kUnsupported,
                  fmt::format("a tensor of shape {} has 2^31 elements or more; kernels index with 32 bits. "
                              "Split the batch or the model",
                              ir::shape_str(facts[i].type.shape)));
  }
  LaunchPlan plan;
  for (size_t k = 0; k < kernels.size(); ++k) {
    artifact::Launch launch;
    launch.kernel = static_cast<int>(k);
    for (const auto& source : kernels[k].extents) {
      const int64_t value = source(facts);
      if (value > kLimit || value < -kLimit)
        throw Error(Code::kUnsupported, fmt::format("a kernel argument ({}) exceeds 32 bits", value));
      launch.extents.push_back(static_cast<int32_t>(value));
    }
    kernels[k].geometry(facts, launch);
    launch.once = kernels[k].once;
    plan.launches.push_back(std::move(launch));
  }
  for (const auto& temporary : temporaries_) {
    const int64_t elements = temporary.elements(facts);
    if (elements > kLimit)
      throw Error(Code::kUnsupported, fmt::format("a scratch buffer of {} elements exceeds 2^31", elements));
    plan.temporary_kept.push_back(temporary.kept);
    plan.temporary_bytes.push_back(elements * static_cast<int64_t>(dtype_bytes(temporary.dtype)));
  }
  return plan;
}

std::shared_ptr<const ProgramDraft> draft_of(const Workload& workload, const Schedule& schedule,
                                             const std::function<void(ProgramDraft&)>& build) {
  constexpr size_t kKept = 512;  // a model has some hundred regions; a tuner's candidates pass through
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const ProgramDraft>> kept;
  const std::string key = workload.hash + " " + schedule.str();
  if (!workload.hash.empty()) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto it = kept.find(key);
    if (it != kept.end()) return it->second;
  }
  auto draft = std::make_shared<ProgramDraft>(workload);
  build(*draft);
  if (!workload.hash.empty()) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (kept.size() >= kKept) kept.clear();
    kept[key] = draft;
  }
  return draft;
}

int64_t extent_at(const Facts& facts, ValueId value, int axis) {
  return facts[static_cast<size_t>(value)].type.shape[static_cast<size_t>(axis)].value();
}

int64_t elements_at(const Facts& facts, ValueId value) {
  int64_t n = 1;
  for (const auto& d : facts[static_cast<size_t>(value)].type.shape) n *= d.value();
  return n;
}

Source extent_of(ValueId value, int axis) {
  return [value, axis](const Facts& facts) { return extent_at(facts, value, axis); };
}

Source elements_of(ValueId value) {
  return [value](const Facts& facts) { return elements_at(facts, value); };
}

std::vector<int64_t> known_ints(const Fact& fact) {
  std::vector<int64_t> values;
  if (fact.constant != nullptr) {
    for (int64_t i = 0; i < fact.constant->size(); ++i) values.push_back(fact.constant->as_int(i));
    return values;
  }
  if (!fact.known) throw Error(Code::kInternal, "the value of a shape operand is not known at launch");
  for (const auto& d : *fact.known) values.push_back(d.value());
  return values;
}

void set_grid(artifact::Launch& launch, int64_t blocks, int64_t threads) {
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
}

Refusal refuse_dtypes(const Workload& workload) {
  for (const auto& value : workload.graph.values)
    if (!is_emittable(value.type.dtype))
      return fmt::format("kernels do not handle {} yet; it runs on the host only",
                         dtype_name(value.type.dtype));
  return std::nullopt;
}

Refusal refuse_device(const Workload& workload, const DeviceSpec& device, int64_t threads,
                      int64_t shared_bytes) {
  if (threads > device.max_threads_per_block)
    return fmt::format("{} threads a block; {} allows {}", threads, device.name,
                       device.max_threads_per_block);
  if (shared_bytes > device.max_shared_bytes)
    return fmt::format("{} bytes of shared memory a block; {} allows {}", shared_bytes, device.name,
                       device.max_shared_bytes);
  if (!device.has_f64)
    for (const auto& value : workload.graph.values)
      if (value.type.dtype == DType::kF64) return fmt::format("{} has no f64 arithmetic", device.name);
  return std::nullopt;
}

Refusal refuse_at_launch(const Workload& workload, const DeviceSpec& device, int64_t threads,
                         int64_t shared_bytes) {
  const int64_t most = std::max(device.max_shared_bytes, device.optin_shared_bytes);
  if (shared_bytes > most)
    return fmt::format("{} bytes of shared memory a block; {} allows {}", shared_bytes, device.name, most);
  return refuse_device(workload, device, threads, 0);
}

}  // namespace thrice::family
