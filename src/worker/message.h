// What tuner and worker say to each other, as values and as bytes. Both ends are the same executable.
#pragma once
#include <thrice/status.h>

#include <cstddef>
#include <string>
#include <vector>

#include "measure/place.h"

namespace thrice::worker {

enum class Kind : int64_t {
  kHello,            // worker: ready; the device's key, or the compiler's version
  kWorkload,         // tuner: Known below, kept by the worker under its key
  kRun,              // tuner: key, measure::Job
  kCompare,          // tuner: key, contenders
  kBuild,            // tuner: source
  kProbe,            // tuner: the device's peaks
  kGo,               // tuner: the machine is quiet, time now (answer to kEntered of Phase::kTiming)
  kEntered,          // worker: measure::Phase of the trial
  kResult,           // worker: measure::TrialResult, and whether the worker ends with it
  kTimings,          // worker: of kCompare
  kBuilt,            // worker: of kBuild
  kPeaks,            // worker: of kProbe
  kFailed,           // worker: code and message, in place of an answer
  kUnknownWorkload,  // worker: send it, then ask again
};
struct Message {
  Kind kind = Kind::kHello;
  std::vector<std::byte> body;
};

// A workload with the facts of its inputs. Facts point at `held`.
struct Known {
  ir::Workload workload;
  std::vector<ir::Tensor> held;
  std::vector<ir::Fact> facts;
};
// Constants of facts are sent where a shape may depend on them: small ones.
std::vector<std::byte> write_workload(const ir::Workload& workload, const std::vector<ir::Fact>& facts);
// The same for the same bytes of facts and the same structure; what a worker knows a workload by.
std::string workload_key(const ir::Workload& workload, const std::vector<ir::Fact>& facts);
// All readers throw kCorrupt where the bytes are no such value.
Known read_workload(const std::vector<std::byte>& body);

struct RunRequest {
  std::string workload;
  measure::Job job;
};
std::vector<std::byte> write_run(const std::string& workload, const measure::Job& job);
RunRequest read_run(const std::vector<std::byte>& body);

struct CompareRequest {
  std::string workload;
  std::vector<measure::Contender> contenders;
  measure::TimingOptions options;
};
std::vector<std::byte> write_compare(const std::string& workload,
                                     const std::vector<measure::Contender>& contenders,
                                     const measure::TimingOptions& options);
CompareRequest read_compare(const std::vector<std::byte>& body);

std::vector<std::byte> write_source(const artifact::KernelSource& source);
artifact::KernelSource read_source(const std::vector<std::byte>& body);

struct RunAnswer {
  measure::TrialResult result;
  bool worker_ends = false;
};
std::vector<std::byte> write_result(const measure::TrialResult& result, bool worker_ends);
RunAnswer read_result(const std::vector<std::byte>& body);

std::vector<std::byte> write_timings(const std::vector<measure::Timing>& timings);
std::vector<measure::Timing> read_timings(const std::vector<std::byte>& body);

struct Peaks {
  double bandwidth_gbs = 0, f32_gflops = 0;
  std::string source;
};
std::vector<std::byte> write_peaks(const Peaks& peaks);
Peaks read_peaks(const std::vector<std::byte>& body);

std::vector<std::byte> write_text(const std::string& text);
std::string read_text(const std::vector<std::byte>& body);
std::vector<std::byte> write_phase(measure::Phase phase);
measure::Phase read_phase(const std::vector<std::byte>& body);
std::vector<std::byte> write_error(const Error& error);
Error read_error(const std::vector<std::byte>& body);

}  // namespace thrice::worker
