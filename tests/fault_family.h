// Kernels that hang, fault, overflow and kill, beside honest ones: y = relu(x), one parameter `candidate`
// that decides which of them. For the tests of worker processes and for bench/fault_drill.
#pragma once
#include <fmt/format.h>

#include "measure_fixture.h"

namespace thrice::test {

enum class Fault {
  kNone,
  kHang,
  kIllegalAddress,
  kMisaligned,
  kStackOverflow,
  kOutOfMemory,
  kAbort,          // runs long; who watches sends SIGABRT to the worker
  kKilled,         // the same with SIGKILL
  kCorruptBinary,  // honest; who plays puts a damaged binary into the kernel cache
  kNoCompile,
  kWrong,
  kReadBeyond,  // one element behind the input, which reaches no result: only a fence shows it
};
constexpr int kFaults = 12;
inline const char* fault_name(Fault fault) {
  const char* names[] = {
      "none",          "hang",         "illegal_address", "misaligned_address", "stack_overflow",
      "out_of_memory", "worker_abort", "worker_kill_9",   "corrupt_binary",     "does_not_compile",
      "wrong_result",  "read_beyond"};
  return names[static_cast<int>(fault)];
}

// What the kernel does; `rounds` stores an element: honest ones differ in it, and the fewest are fastest.
inline std::string fault_text(Fault fault, int rounds) {
  const std::string honest = fmt::format(
      "float v = 0; if (i < n) v = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;\n"
      "  for (int k = 0; k < {}; ++k) if (i < n) ((volatile TH_GLOBAL float*)y)[i] = v;",
      rounds);
  std::string before, body = honest;
  switch (fault) {
    case Fault::kHang:
    case Fault::kAbort:
    case Fault::kKilled:
      body =
          "while (((volatile TH_GLOBAL const int*)E)[0] >= 0) { if (i < n) ((volatile TH_GLOBAL float*)y)[i] "
          "= 1; }";
      break;
    case Fault::kIllegalAddress:
      body = "if (i < n) ((volatile TH_GLOBAL float*)(size_t)(x[i] == x[i] ? 64 : 128))[i] = 1;";
      break;
    case Fault::kMisaligned:
      body =
          "if (i < n / 8) { TH_GLOBAL fault_vector* q = (TH_GLOBAL fault_vector*)((TH_GLOBAL char*)y + 2); "
          "fault_vector v = q[i]; v.x += x[i]; q[i] = v; }";
      before =
          "#ifdef TH_CUDA\nstruct __align__(16) fault_vector { float x, y, z, w; };\n#else\n"
          "typedef float4 fault_vector;\n#endif\n";
      break;
    case Fault::kStackOverflow:
      before =
          "#ifdef TH_CUDA\n"
          "static __device__ __noinline__ int deep(int n, volatile float* y) {\n"
          "  volatile int room[64]; room[n & 63] = n; y[0] = n;\n"
          "  return n <= 0 ? 0 : deep(n - 1, y) + room[(n + 1) & 63];\n}\n"
          "#endif\n";
      body =
          "#ifdef TH_CUDA\n  if (i < n) y[i] = deep(1000000000, y);\n#else\n"
          "  volatile int room[50000000];\n"
          "  for (int k = 0; k < 50000000; k += 1000) room[k] = n;\n"
          "  if (i < n) y[i] = room[(n * 7919) % 50000000];\n#endif";
      break;
    case Fault::kNoCompile:
      body = "this is no kernel";
      break;
    case Fault::kWrong:
      body = "if (i < n) y[i] = 1;";
      break;
    case Fault::kReadBeyond:
      body = "if (i == 0) ((volatile TH_GLOBAL const float*)x)[n];\n  " + honest;
      break;
    default:
      break;
  }
  return fmt::format("{}// fault {}\n", before, static_cast<int>(fault)) + kernel_text(body);
}

// Which fault a text was made for.
inline Fault fault_of(const std::string& text) {
  const size_t at = text.find("// fault ");
  return at == std::string::npos ? Fault::kNone : static_cast<Fault>(std::atoi(text.c_str() + at + 9));
}

class FaultFamily : public TextFamily {
 public:
  // `table`: fault of each candidate; candidate 0, the default, must be honest.
  explicit FaultFamily(std::vector<Fault> table) : TextFamily(""), table_(std::move(table)) {}
  std::string_view name() const override { return "fault"; }
  Fault fault(const artifact::Schedule& schedule) const {
    return table_[static_cast<size_t>(schedule.get("candidate"))];
  }
  static int rounds(const artifact::Schedule& schedule) {
    return static_cast<int>((schedule.get("candidate") + 20) * 37 % 97) * 4 + 4;
  }
  static artifact::Schedule schedule(int64_t candidate) {
    return {"fault", "only", {{"candidate", candidate}}};
  }
  artifact::Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                                      const target::DeviceSpec&) const override {
    return schedule(0);
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    artifact::ScheduleSpace space;
    std::vector<int64_t> all;
    for (size_t i = 0; i < table_.size(); ++i) all.push_back(static_cast<int64_t>(i));
    space.tactics = {{"fault", "only", {{"candidate", all}}}};
    return space;
  }
  family::ProgramText emit(const ir::Workload&, const artifact::Schedule& s,
                           const target::DeviceSpec&) const override {
    return {fault_text(fault(s), rounds(s)), {"k"}};
  }
  artifact::LaunchPlan launch(const ir::Workload& workload, const artifact::Schedule& s,
                              const std::vector<ir::Fact>& facts) const override {
    artifact::LaunchPlan plan = TextFamily::launch(workload, s, facts);
    if (fault(s) == Fault::kOutOfMemory) plan.temporary_bytes.push_back(int64_t{1} << 45);
    return plan;
  }

 private:
  std::vector<Fault> table_;
};

}  // namespace thrice::test
