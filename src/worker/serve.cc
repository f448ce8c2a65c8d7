#include "worker/serve.h"

#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <new>

#include "backend/backend.h"
#include "hardware/sampler.h"
#include "jit/cache_entry.h"
#include "worker/child.h"
#include "worker/launches_file.h"

namespace thrice::worker {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
const Error kNoMemory(Code::kOutOfMemory, "out of host memory: the worker holds all that its limit allows");

// A worker without its parent has nothing to do, and a broken driver must not be waited for.
void say(Channel& channel, Kind kind, const std::vector<std::byte>& body) {
  if (!channel.send(kind, body, kForever)) ::_exit(0);
}

class TrialServer {
 public:
  TrialServer(const ServeOptions& options, Channel& channel)
      : channel_(channel),
        device_(backend::open_device(options.device)),
        place_(measure::place_here(
            device_, std::make_shared<jit::KernelCache>(device_, options.kernels),
            {[this](measure::Phase phase) { entered(phase); }, state_hook(), options.fences})) {
    say(channel_, Kind::kHello, write_text(device_->spec().key()));
  }

  void answer(const Message& message) {
    if (message.kind == Kind::kWorkload) return keep(read_workload(message.body));
    if (message.kind == Kind::kRun) return run(read_run(message.body));
    if (message.kind == Kind::kCompare) return compare(read_compare(message.body));
    if (message.kind == Kind::kProbe) return probe();
    throw Error(Code::kCorrupt, "a worker cannot answer this message");
  }

 private:
  struct Entry {
    std::string key;
    Known known;
    measure::Oracle oracle;
    explicit Entry(Known k)
        : key(workload_key(k.workload, k.facts)), known(std::move(k)), oracle(known.workload, known.facts) {}
  };

  // Float64 answers are large: only the workloads touched last keep theirs.
  void keep(Known known) {
    constexpr size_t kKept = 12;
    entries_.push_front(std::make_unique<Entry>(std::move(known)));
    if (entries_.size() > kKept) entries_.pop_back();
  }
  Entry* find(const std::string& key) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it)
      if ((*it)->key == key) {
        std::rotate(entries_.begin(), it, it + 1);
        return entries_.front().get();
      }
    say(channel_, Kind::kUnknownWorkload, {});
    return nullptr;
  }

  void run(const RunRequest& request) {
    Entry* entry = find(request.workload);
    if (!entry) return;
    measure::TrialResult result;
    try {
      result = place_->run(entry->known.workload, entry->oracle, request.job);
    } catch (const std::bad_alloc&) {
      measure::set_failure(result, kNoMemory);
    }
    const bool ends = result.failure == Code::kLaunchFailed && !device_answers();
    say(channel_, Kind::kResult, write_result(result, ends));
    if (ends) ::_exit(0);  // what holds memory of a broken context cannot give it back
  }

  void compare(const CompareRequest& request) {
    if (Entry* entry = find(request.workload))
      say(channel_, Kind::kTimings,
          write_timings(
              place_->compare(entry->known.workload, entry->oracle, request.contenders, request.options)));
  }

  // Before it times anything a worker waits until the tuner has made the machine quiet.
  void entered(measure::Phase phase) {
    say(channel_, Kind::kEntered, write_phase(phase));
    if (phase != measure::Phase::kTiming) return;
    Message go;
    if (channel_.receive(go, kForever) != Channel::Got::kMessage || go.kind != Kind::kGo) ::_exit(0);
  }

  void probe() {
    const target::DeviceSpec spec = place_->probe();
    say(channel_, Kind::kPeaks, write_peaks({spec.bandwidth_gbs, spec.f32_gflops, spec.peaks_source}));
  }

  // Cards only. A power cap is no throttling: a busy card lives with it, and the model will run under it too.
  std::function<measure::SampleState()> state_hook() {
    if (device_->spec().api != target::Api::kCuda) return {};
    constexpr double kInterval_ms = 25;  // a candidate is sampled for a few milliseconds
    sampler_ = std::make_unique<hardware::Sampler>(hardware::system_source(), kInterval_ms);
    return [this] {
      measure::SampleState sample;
      for (const hardware::DeviceState& state : sampler_->latest().devices) {
        if (state.id != device_->spec().id) continue;
        sample.throttled = std::any_of(state.throttle_reasons.begin(), state.throttle_reasons.end(),
                                       [](const std::string& reason) { return reason != "power cap"; });
        sample.sm_mhz = state.sm_clock_mhz;
        sample.memory_mhz = state.memory_clock_mhz;
        sample.temperature_c = state.temperature_c;
        sample.power_w = state.power_w;
      }
      return sample;
    };
  }

  // After some faults a driver refuses every further call of the process.
  bool device_answers() {
    try {
      const auto stream = device_->make_stream();
      const backend::BufferPtr buffer = device_->allocate(backend::kAlignment);
      stream->fill({buffer, 0, backend::kAlignment}, std::byte{0});
      stream->synchronize();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  Channel& channel_;
  backend::DevicePtr device_;
  std::unique_ptr<hardware::Sampler> sampler_;
  std::unique_ptr<measure::TrialPlace> place_;
  std::deque<std::unique_ptr<Entry>> entries_;
};

class BuildServer {
 public:
  BuildServer(const ServeOptions& options, Channel& channel)
      : channel_(channel), compiler_(backend::cross_compiler(options.architecture)) {
    say(channel_, Kind::kHello, write_text(compiler_->version()));
  }
  void answer(const Message& message) {
    if (message.kind != Kind::kBuild) throw Error(Code::kCorrupt, "a builder cannot answer this message");
    say(channel_, Kind::kBuilt, jit::write_entry(compiler_->compile(read_source(message.body))));
  }

 private:
  Channel& channel_;
  std::unique_ptr<backend::Compiler> compiler_;
};

// Trials take and give back the same megabytes again and again: memory that returns to the system each time
// is faulted in page by page.
void keep_freed_memory() {
#if defined(__GLIBC__)
  ::mallopt(M_MMAP_MAX, 0);  // float64 answers of large batches are hundreds of megabytes each
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

template <class Server>
int answer_all(const ServeOptions& options, Channel& channel) {
  try {
    Server server(options, channel);
    Message message;
    while (channel.receive(message, kForever) == Channel::Got::kMessage) try {
        server.answer(message);
      } catch (const Error& error) {
        say(channel, Kind::kFailed, write_error(error));
      } catch (const std::bad_alloc&) {
        say(channel, Kind::kFailed, write_error(kNoMemory));
      }
    ::_exit(0);  // the parent is gone, or wants no more: nothing is worth an orderly end of the driver
  } catch (const Error& error) {
    say(channel, Kind::kFailed, write_error(error));
    return 1;
  }
}

}  // namespace

int serve(const ServeOptions& options) {
  if (!options.launches.empty()) {
    make_launches(options.launches, {options.device, options.kernels, options.groups});
    return 0;
  }
  int type = 0;
  socklen_t size = sizeof(type);
  if (::getsockopt(kWorkerDescriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    throw Error(Code::kInvalidArgument, "worker processes are started by thrice optimize, not by hand");
  Channel channel(kWorkerDescriptor);
  keep_freed_memory();
  return options.architecture.empty() ? answer_all<TrialServer>(options, channel)
                                      : answer_all<BuildServer>(options, channel);
}

std::optional<int> serve_if_worker(int argc, char** argv) {
  if (argc < 2 || std::string(argv[1]) != "worker") return {};
  ServeOptions options;
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--device") options.device = value;
    if (flag == "--architecture") options.architecture = value;
    if (flag == "--kernels") options.kernels = value;
    if (flag == "--fences") options.fences = true;
    if (flag == "--launches") options.launches = value;
    if (flag == "--groups") options.groups = std::atoll(value.c_str());
  }
  return serve(options);
}

}  // namespace thrice::worker
