#include "worker/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

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
    case Phase::kTiming:
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
  if (device_->spec().is_cpu && device_->compiler()) make_ahead();
}

// The runner itself has little to do where what it is asked for has been built.
void Runner::make_ahead() {
  constexpr int kMost = 8;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int count = std::min({options_.builders > 0 ? options_.builders : kMost, cores, kMost});
  ahead_.reset();
  if (count > 1)
    ahead_ =
        std::make_unique<Ahead>(options_.executable, worker_words(), memory_limit(), count, options_.limits);
}
Runner::~Runner() = default;

std::vector<std::string> Runner::worker_words() const {
  std::vector<std::string> words{"worker", "--device", device_->spec().id};
  if (!cache_->folder().empty()) words.insert(words.end(), {"--kernels", cache_->folder()});
  if (options_.fences) words.emplace_back("--fences");
  return words;
}
int64_t Runner::memory_limit() const { return device_->spec().is_cpu ? options_.limits.memory_bytes : 0; }

void Runner::launch() {
  ready_ = false;
  child_ = std::make_unique<Child>(options_.executable, worker_words(), memory_limit());
}

void Runner::start() {
  const target::DeviceSpec& spec = device_->spec();
  if (!child_) launch();
  Message hello;
  const auto got = child_->channel().receive(hello, monotonic_us() + options_.limits.start_s * 1e6);
  if (got == Channel::Got::kMessage && hello.kind == Kind::kHello && read_text(hello.body) == spec.key()) {
    ready_ = true;
    return;
  }
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
void Runner::check_health() {
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
  if (child_ && ready_ && !suspect_) return;
  for (int attempt = 0;; ++attempt) try {
      if (!child_ || !ready_) start();
      if (suspect_) check_health();
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
  Ahead::Pause quiet(ahead_.get());
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
        if (phase != Phase::kTiming) {
          quiet.end();
          break;
        }
        quiet.begin();
        if (!child_->channel().send(Kind::kGo, {}, deadline())) return bury("");
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
  blame(*ended);
  log(LogLevel::kInfo, "trial: {}", ended->message);
  result.source_key = job.source.key;
  measure::set_failure(result, Error(ended->code, "quarantined: " + ended->message));
  return result;
}

std::optional<BuiltElsewhere> Runner::take(const artifact::KernelSource& source) {
  if (!builders_) return {};
  auto built = builders_->take(source.key);
  if (built && built->binary) cache_->put(source, *built->binary);
  return built;
}

void Runner::build_later(const std::vector<artifact::KernelSource>& sources) {
  if (!builders_) return;
  std::vector<artifact::KernelSource> missing;
  for (const artifact::KernelSource& source : sources)
    if (!cache_->has(source)) missing.push_back(source);
  builders_->submit_last(missing);
}

void Runner::fetch(const artifact::KernelSource& source) {
  if (builders_) builders_->finish_all();
  take(source);  // where it did not build, whoever asks the cache hears why
}

measure::TrialResult Runner::run(const ir::Workload& workload, measure::Oracle& oracle,
                                 const measure::Job& job) {
  double built_ms = 0;
  if (const auto built = take(job.source)) {
    if (!built->binary) {
      measure::TrialResult result;
      result.source_key = job.source.key;
      measure::set_failure(result, Error(built->code, built->message));
      return result;
    }
    built_ms = built->ms;
  }
  require_worker();
  if (ahead_) ahead_->wait_for(job.source.key);
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
  blame(*ended);
  throw Error(ended->code, ended->message);
}

Runner::Ended Runner::blame(const Ended& ended) {
  ++faults_;
  suspect_ = true;
  last_fault_ = ended.message;
  return ended;
}

target::DeviceSpec Runner::probe() {
  target::DeviceSpec spec = device_->spec();
  if (spec.bandwidth_gbs > 0 && spec.f32_gflops > 0) return spec;
  require_worker();
  static const ir::Workload none;
  Message answer;
  if (const auto ended = ask(Kind::kProbe, {}, none, {}, 0, answer)) {
    blame(*ended);
    throw Error(ended->code, "measuring the device's peaks: " + ended->message);
  }
  const Peaks peaks = read_peaks(answer.body);
  spec.bandwidth_gbs = peaks.bandwidth_gbs;
  spec.f32_gflops = peaks.f32_gflops;
  spec.peaks_source = peaks.source;
  return spec;
}

void Runner::prepare(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
                     const std::vector<measure::Contender>& coming) {
  // A driver takes a third of a second to start: meanwhile the first kernels are built.
  if (!child_ && !coming.empty() && lost_.empty()) try {
      launch();
    } catch (const Error&) {
      // the trial will say so
    }
  std::vector<artifact::KernelSource> sources;
  for (const measure::Contender& contender : coming)
    if (builders_ && !cache_->has(contender.source)) sources.push_back(contender.source);
  if (builders_) builders_->submit(sources);
  if (ahead_) ahead_->submit(workload, facts, coming);
}

bool Runner::drop_fences() {
  if (!options_.fences) return false;
  options_.fences = false;
  dropped_fences_ = true;
  child_.reset();
  if (ahead_) make_ahead();
  return true;
}

size_t Runner::lookahead() const {
  // On a CPU twice as many as are under way: the search asks for more when half of them are left.
  return builders_ ? static_cast<size_t>(builders_->count()) : ahead_ ? 2 * ahead_->count() : 1;
}

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
