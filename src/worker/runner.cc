#include "worker/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "codegen/generate.h"

namespace thrice::worker {
namespace {

using measure::Phase;

// relu over a thousand elements: what any device can do.
ir::Workload honest_workload() {
  ir::Graph graph;
  const ir::Type type{DType::kF32, {ir::Dim(1000)}};
  graph.inputs = {graph.add_value(type)};
  graph.input_names = {"x"};
  graph.outputs = {graph.add_value(type)};
  graph.output_names = {"y"};
  graph.origins.push_back({"Relu", "probe", 17});
  ir::Node node;
  node.op = ir::Op::relu;
  node.inputs = graph.inputs;
  node.outputs = graph.outputs;
  node.origin = 0;
  graph.add_node(std::move(node));
  return ir::extract(graph, ir::make_region(graph, {0}));
}

const char* doing(Phase phase) {
  switch (phase) {
    case Phase::kBuild:
      return "building";
    case Phase::kDevice:
      return "running on the device";
    case Phase::kHost:
      break;
  }
  return "being judged on the host";
}

}  // namespace

Runner::Runner(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache, RunnerOptions options)
    : device_(std::move(device)), cache_(std::move(cache)), options_(std::move(options)) {
  if (device_->spec().api == target::Api::kCuda && device_->compiler() && !cache_->folder().empty())
    builders_ =
        std::make_unique<Builders>(options_.executable, device_->spec().architecture,
                                   device_->compiler()->version(), options_.builders, options_.limits);
}
Runner::~Runner() = default;

void Runner::start() {
  const target::DeviceSpec& spec = device_->spec();
  std::vector<std::string> words{"worker", "--device", spec.id};
  if (!cache_->folder().empty()) words.insert(words.end(), {"--kernels", cache_->folder()});
  if (options_.fences) words.emplace_back("--fences");
  child_ = std::make_unique<Child>(options_.executable, words,
                                   spec.is_cpu ? options_.limits.memory_bytes : int64_t{0});
  Message hello;
  const auto got = child_->channel().receive(hello, monotonic_us() + options_.limits.start_s * 1e6);
  if (got == Channel::Got::kMessage && hello.kind == Kind::kHello && read_text(hello.body) == spec.key())
    return;
  std::string why;
  if (got == Channel::Got::kMessage && hello.kind == Kind::kFailed)
    why = read_error(hello.body).what();
  else if (got == Channel::Got::kMessage)
    why = "it found another device";
  else
    why = bury(got == Channel::Got::kTimeout ? fmt::format("no answer in {} s", options_.limits.start_s) : "")
              .message;
  child_.reset();
  throw Error(Code::kLaunchFailed, fmt::format("a worker for {} did not start: {}", spec.id, why));
}

// An honest kernel through the screening gate.
void Runner::probe() {
  static const ir::Workload workload = honest_workload();
  ++probes_;
  const std::vector<ir::Fact> facts = ir::facts_at(workload.graph, {});
  const target::DeviceSpec& spec = device_->spec();
  const family::Family* family = family::find_family("map");
  const artifact::Schedule schedule = family->default_schedule(workload, facts, spec);
  measure::Job job;
  job.source = codegen::generate(
      workload, *family, schedule, spec,
      spec.api == target::Api::kCuda ? artifact::Language::kCuda : artifact::Language::kOpenCL);
  job.launches = family->launch(workload, schedule, facts);
  const measure::TrialResult result = run_in_child(workload, facts, job);
  if (result.measurement.outcome != artifact::Outcome::kOk)
    throw Error(Code::kLaunchFailed, fmt::format("{} fails a plain kernel in a fresh worker: {}", spec.id,
                                                 result.measurement.message));
}

void Runner::require_worker() {
  if (child_ && !suspect_) return;
  for (int attempt = 0;; ++attempt) try {
      if (!child_) start();
      if (suspect_) probe();
      suspect_ = false;
      lost_.clear();
      return;
    } catch (const Error& error) {
      child_.reset();
      suspect_ = true;
      if (attempt == 0) continue;
      lost_ = error.what();
      if (!last_fault_.empty()) lost_ += fmt::format(" (after: {})", last_fault_);
      throw Error(Code::kLaunchFailed, lost_);
    }
}

double Runner::limit_s(Phase phase, double best_us) const {
  constexpr double kExecutions = 8;  // of a phase, where one takes longer than a batch
  const Limits& l = options_.limits;
  if (phase == Phase::kBuild) return l.build_s;
  if (phase == Phase::kHost) return l.host_s;
  return best_us > 0 ? std::max(l.run_s, l.slower * kExecutions * best_us * 1e-6) : l.first_run_s;
}

Runner::Ended Runner::bury(const std::string& late) {
  // A worker that closed its end is about to be gone by itself: its own ending is what tells.
  const std::string ended = child_->end(late.empty() ? 2 : 0);
  child_.reset();
  if (!late.empty()) return {Code::kTimedOut, late};
  return {Code::kLaunchFailed, fmt::format("the worker process ended: {}", ended)};
}

std::optional<Runner::Ended> Runner::ask(Kind kind, const std::vector<std::byte>& body,
                                         const ir::Workload& workload, const std::vector<ir::Fact>& facts,
                                         double best_us, Message& answer) {
  Phase phase = Phase::kBuild;
  double limit = limit_s(phase, best_us);
  const auto deadline = [&] { return monotonic_us() + limit * 1e6; };
  if (!child_->channel().send(kind, body, deadline())) return bury("");
  for (;;) {
    const Channel::Got got = child_->channel().receive(answer, deadline());
    if (got == Channel::Got::kEnd) return bury("");
    if (got == Channel::Got::kTimeout)
      return bury(fmt::format("killed after {:.3g} s without an answer while {}", limit, doing(phase)));
    switch (answer.kind) {
      case Kind::kEntered:
        phase = read_phase(answer.body);
        limit = limit_s(phase, best_us);
        break;
      case Kind::kUnknownWorkload:
        if (!child_->channel().send(Kind::kWorkload, write_workload(workload, facts), deadline()) ||
            !child_->channel().send(kind, body, deadline()))
          return bury("");
        break;
      case Kind::kFailed:
        throw read_error(answer.body);
      default:
        return {};
    }
  }
}

measure::TrialResult Runner::run_in_child(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
                                          const measure::Job& job) {
  constexpr double kGiveUpAtTimes = 3;  // of the best known time (flow/search)
  Message answer;
  const auto ended = ask(Kind::kRun, write_run(workload_key(workload, facts), job), workload, facts,
                         job.options.give_up_us / kGiveUpAtTimes, answer);
  measure::TrialResult result;
  if (!ended) {
    RunAnswer told = read_result(answer.body);
    if (told.worker_ends) {
      bury("");
      told.result.measurement.message += "; the device refused every further call, the worker was replaced";
      ++faults_;
      suspect_ = true;
      last_fault_ = told.result.measurement.message;
    }
    return told.result;
  }
  ++faults_;
  suspect_ = true;
  last_fault_ = ended->message;
  log(LogLevel::kInfo, "trial: {}", ended->message);
  result.source_key = job.source.key;
  measure::set_failure(result, Error(ended->code, "quarantined: " + ended->message));
  return result;
}

measure::TrialResult Runner::run(const ir::Workload& workload, measure::Oracle& oracle,
                                 const measure::Job& job) {
  double built_ms = 0;
  if (builders_) {
    const auto built = builders_->take(job.source.key);
    if (built && !built->binary) {
      measure::TrialResult result;
      result.source_key = job.source.key;
      measure::set_failure(result, Error(built->code, built->message));
      return result;
    }
    if (built) {
      cache_->put(job.source, *built->binary);
      built_ms = built->ms;
    }
  }
  require_worker();
  measure::TrialResult result = run_in_child(workload, oracle.facts(), job);
  if (built_ms > 0) result.measurement.build_ms = built_ms;
  return result;
}

std::vector<measure::Timing> Runner::compare(const ir::Workload& workload, measure::Oracle& oracle,
                                             const std::vector<measure::Contender>& contenders,
                                             const measure::TimingOptions& options) {
  require_worker();
  Message answer;
  const auto ended =
      ask(Kind::kCompare, write_compare(workload_key(workload, oracle.facts()), contenders, options),
          workload, oracle.facts(), 0, answer);
  if (!ended) return read_timings(answer.body);
  ++faults_;
  suspect_ = true;
  last_fault_ = ended->message;
  throw Error(ended->code, ended->message);
}

void Runner::prepare(const std::vector<artifact::KernelSource>& sources) {
  if (!builders_) return;
  for (const artifact::KernelSource& source : sources)
    if (!cache_->has(source)) builders_->submit(source);
}

bool Runner::drop_fences() {
  if (!options_.fences) return false;
  options_.fences = false;
  dropped_fences_ = true;
  child_.reset();
  return true;
}

size_t Runner::lookahead() const { return builders_ ? static_cast<size_t>(builders_->count()) : 1; }

std::vector<std::string> Runner::notes() const {
  std::vector<std::string> notes;
  if (faults_ > 0)
    notes.push_back(fmt::format("{} {} the worker process; none is tried again here (the last: {})", faults_,
                                faults_ == 1 ? "candidate cost" : "candidates cost", last_fault_));
  if (dropped_fences_)
    notes.emplace_back(
        "a default schedule faulted between fences (it reads beyond its buffers) and was tried again "
        "without: "
        "from then on only guard zones watched the ends of buffers; please report it");
  if (!lost_.empty()) notes.push_back("tuning ended early: " + lost_);
  return notes;
}

}  // namespace thrice::worker
