// Would catch: a stored time or kernel that is used where something that it depends on is different. Each
// case once fooled a tuner: equal node names in two models, another layout, flag, shape, device of the same
// name, driver or compiler, a damaged entry, two writers. Kernel files: tests/unit/jit.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "cross/family_runner.h"
#include "flow/environment.h"
#include "flow/tuning.h"
#include "measure_fixture.h"
#include "store/database.h"

namespace thrice::testing {
namespace {

using artifact::Outcome;
using artifact::Schedule;
using ir::Dim;
using ir::Op;

std::string fresh_store(const char* name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  return folder + "/store.sqlite";
}

artifact::TuningRecord verified(const std::string& workload, const std::string& environment,
                                const Schedule& schedule, double us) {
  artifact::TuningRecord r;
  r.workload = workload;
  r.shape = "s0=1";
  r.environment = environment;
  r.schedule = schedule;
  r.measurement.outcome = Outcome::kOk;
  r.measurement.time_us = us;
  r.measurement.error = 1e-7;
  r.measurement.error_limit = 1e-5;
  return r;
}

TEST(WorkloadKey, TwoModelsWithEqualNodeNames) {
  const auto model = [](Op op, const char* name) {
    Builder b;
    b.graph().origins[0] = {"Node", name, 17};
    b.output(b.op(op, {b.f32({Dim::symbol("n"), 8})}));
    return b.workload().hash;
  };
  EXPECT_NE(model(Op::relu, "layer1/node"), model(Op::tanh, "layer1/node"));
  EXPECT_EQ(model(Op::relu, "layer1/node"), model(Op::relu, "another"));
}

TEST(WorkloadKey, LayoutFlagAndStaticShape) {
  const auto product = [](bool is_transposed, int64_t columns, int64_t axis, bool keep) {
    Builder b;
    const auto x = b.f32({Dim::symbol("n"), 8});
    auto w = is_transposed ? b.f32({columns, 8}) : b.f32({8, columns});
    if (is_transposed) w = b.op(Op::transpose, {w}, {{"perm", std::vector<int64_t>{1, 0}}});
    b.output(b.op(
        Op::reduce, {b.op(Op::matmul, {x, w})},
        {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{keep}}}));
    return b.workload().hash;
  };
  // Square, so that nothing but the layout differs.
  EXPECT_NE(product(false, 8, 1, true), product(true, 8, 1, true));
  EXPECT_NE(product(false, 8, 1, true), product(false, 8, 1, false));
  EXPECT_NE(product(false, 8, 1, true), product(false, 8, 0, true));
  EXPECT_NE(product(false, 8, 1, true), product(false, 16, 1, true));
  EXPECT_EQ(product(false, 8, 1, true), product(false, 8, 1, true));
}

TEST(EnvironmentKey, AnotherDeviceOfTheSameNameSaysWhatDiffers) {
  target::DeviceSpec full;
  full.name = "NVIDIA Card";
  full.driver = "575.1 CUDA 13.0";
  full.compute_units = 132;
  target::DeviceSpec cut = full;
  cut.compute_units = 114;
  const std::string here = flow::environment_json(full, "nvrtc 13.0");
  const auto fields = [&](const target::DeviceSpec& spec, const std::string& compiler) {
    std::string text;
    for (const auto& d : flow::differing_fields(here, flow::environment_json(spec, compiler)))
      text += fmt::format("{} {} {};", d.field, d.now, d.then);
    return text;
  };
  EXPECT_EQ(fields(full, "nvrtc 13.0"), "");
  EXPECT_EQ(fields(cut, "nvrtc 13.0"), "compute_units 132 114;");
  target::DeviceSpec updated = full;
  updated.driver = "580.2 CUDA 13.0";
  EXPECT_EQ(fields(updated, "nvrtc 13.0"), "driver \"575.1 CUDA 13.0\" \"580.2 CUDA 13.0\";");
  target::DeviceSpec slower = full;
  slower.bandwidth_gbs = 100;
  EXPECT_EQ(fields(slower, "nvrtc 13.0"), "bandwidth_gbs 0.0 100.0;") << "another memory clock";
  EXPECT_EQ(flow::differing_fields(here, flow::environment_json(full, "nvrtc 13.0", 400))[0].field,
            "power_limit_w");
  std::string edited = here;  // a template of the kernels was changed
  const size_t digest = edited.find("\"kernel_templates\":\"");
  ASSERT_NE(digest, std::string::npos) << here;
  char& letter = edited[digest + std::string("\"kernel_templates\":\"").size()];
  letter = letter == '0' ? '1' : '0';
  ASSERT_EQ(flow::differing_fields(here, edited).size(), 1u);
  EXPECT_EQ(flow::differing_fields(here, edited)[0].field, "kernel_templates");
  EXPECT_EQ(fields(full, "nvrtc 12.9"), "compiler \"nvrtc 13.0\" \"nvrtc 12.9\";");
  // A property without a line of its own still makes another environment.
  target::DeviceSpec no_f64 = full;
  no_f64.has_f64 = !full.has_f64;
  EXPECT_NE(fields(no_f64, "nvrtc 13.0"), "");

  store::Store store(fresh_store("keys_same_name"));
  const Schedule schedule{"map", "only", {{"width", 4}}};
  store.add(verified("3f2a", store.put_environment(flow::environment_json(cut, "nvrtc 13.0")), schedule, 7));
  auto answers = flow::explain_workload(store, "3f", here);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0].hit);
  ASSERT_EQ(answers[0].differs.size(), 1u);
  EXPECT_EQ(answers[0].differs[0].field, "compute_units");
  const std::string key = store.put_environment(here);
  EXPECT_FALSE(store.best("3f2a", key, "s0=1"));
  ASSERT_EQ(flow::warm_starts(store, "3f2a", "s0=1", key).size(), 1u);
  EXPECT_EQ(flow::warm_starts(store, "3f2a", "s0=1", key)[0], schedule);

  artifact::TuningRecord wrong = verified("3f2a", key, schedule, 5);
  wrong.measurement.outcome = Outcome::kWrong;
  store.add(wrong);
  answers = flow::explain_workload(store, "3f", here);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_FALSE(answers[0].hit) << "a wrong result is no hit";
  store.add(verified("3f2a", key, schedule, 6));
  answers = flow::explain_workload(store, "3f", here);
  EXPECT_TRUE(answers[0].hit);
  EXPECT_EQ(answers[0].best_us, 6);
  EXPECT_TRUE(flow::explain_workload(store, "77", here).empty());
}

// One kernel, many schedules that all mean it; `more` is put behind the text.
class ManySchedules : public test::TextFamily {
 public:
  explicit ManySchedules(const std::string& more = "")
      : TextFamily(test::kernel_text("if (i < n) y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;") + more) {
  }
  Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                            const target::DeviceSpec&) const override {
    return {"text", "only", {{"a", 1}}};
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    artifact::Parameter a{"a", {}};
    for (int64_t v = 1; v <= 64; ++v) a.choices.push_back(v);
    artifact::ScheduleSpace space;
    space.tactics = {{"text", "only", {a}}};
    return space;
  }
};

TEST(EnvironmentKey, AnUpdatedDriverMeansToVerifyAndTimeAgain) {
  backend::DevicePtr device;
  try {
    device = backend::open_device("opencl:0");
  } catch (const Error& error) {
    GTEST_SKIP() << "skipped: " << error.what();
  }
  const ManySchedules family;
  plan::PlannedWorkload planned;
  planned.workload = test::unary_workload(Op::relu);
  planned.family = &family;
  planned.facts = ir::facts_at(planned.workload.graph, {{"s0", 1000}});
  planned.schedule = {"text", "only", {{"a", 1}}};
  planned.uses = {"Relu_7"};
  const std::string hash = planned.workload.hash;
  std::map<std::string, plan::PlannedWorkload> workloads{{hash, planned}};
  measure::TrialRunner runner(device, std::make_shared<jit::KernelCache>(device, ""));
  store::Store store(fresh_store("keys_driver"));
  flow::Settings settings;
  settings.max_trials = 2;
  const flow::Listener listener;
  std::map<std::string, flow::Tuned> results;
  const auto run = [&](const std::string& environment) {
    results.clear();
    int64_t trials = 0;
    const flow::TuningContext context{device,    &runner,   &store,   environment,
                                      &settings, &listener, &results, &trials};
    flow::measure_defaults(context, workloads, "build and check");
    flow::tune(context, workloads, 1e300);
    return trials;
  };
  target::DeviceSpec spec = device->spec();
  const std::string before = store.put_environment(flow::environment_json(spec, "compiler"));
  EXPECT_EQ(run(before), 2);
  // A winner that no measurement here can confirm.
  const Schedule winner{"text", "only", {{"a", 37}}};
  artifact::TuningRecord record = verified(hash, before, winner, 1e-6);
  record.shape = flow::shape_key(planned);
  flow::TuningContext keys;
  keys.runner = &runner;
  record.source_key = flow::record_of(keys, planned, winner).source_key;
  store.add(record);
  settings.max_trials = 0;
  EXPECT_EQ(run(before), 0) << "the same environment: nothing is measured again";
  EXPECT_EQ(results.at(hash).schedule, winner);

  spec.driver += " updated";
  const std::string after = store.put_environment(flow::environment_json(spec, "compiler"));
  ASSERT_NE(after, before);
  settings.max_trials = 2;
  EXPECT_EQ(run(after), 2);
  const auto records = store.records(hash, after);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].schedule, planned.schedule) << "the default is verified anew";
  EXPECT_EQ(records[1].schedule, winner) << "the old winner is where the search begins";
  EXPECT_EQ(records[1].measurement.outcome, Outcome::kOk);
  EXPECT_GT(records[1].measurement.time_us, 1e-3) << "and it is timed anew";
  EXPECT_GT(results.at(hash).best.time_us, 1e-3);

  // The same environment, but the kernel's text has changed: measured anew, the old winner first.
  const ManySchedules changed("// a line more\n");
  std::map<std::string, plan::PlannedWorkload> other_text = workloads;
  other_text.at(hash).family = &changed;
  std::swap(other_text, workloads);
  EXPECT_EQ(run(after), 2) << "trials of another text were taken for this one's";
  const auto newer = store.records(hash, after);
  ASSERT_EQ(newer.size(), 4u);
  EXPECT_EQ(newer[2].schedule, planned.schedule);
  EXPECT_NE(newer[2].source_key, newer[0].source_key);
  EXPECT_EQ(newer[3].schedule, winner);
  settings.max_trials = 0;
  EXPECT_EQ(run(after), 0) << "and kept under the new text";
  settings.max_trials = 2;
  std::swap(other_text, workloads);

  const std::string other_compiler = store.put_environment(flow::environment_json(spec, "compiler 2"));
  EXPECT_EQ(run(other_compiler), 2);
}

TEST(StoreKey, ADamagedRowIsAsIfItWereNotThere) {
  const std::string path = fresh_store("keys_damaged");
  store::Store store(path);
  const std::string key = store.put_environment("{}");
  for (const double us : {20.0, 10.0}) store.add(verified("3f2a", key, {"map", "only", {}}, us));
  store::Database(path).execute("UPDATE trial SET time_us = 1 WHERE time_us = 20");
  EXPECT_EQ(store.records("3f2a", key).size(), 1u);
  EXPECT_EQ(store.damaged_rows(), 1);
  EXPECT_EQ(store.best("3f2a", key, "s0=1")->measurement.time_us, 10);
}

TEST(StoreKey, TwoWritersAtOnce) {
  constexpr int kRows = 60;
  const std::string path = fresh_store("keys_writers");
  std::vector<pid_t> writers;
  for (int w = 0; w < 2; ++w) {
    const pid_t writer = fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      int code = 0;
      try {
        store::Store store(path);  // both create it
        const std::string key = store.put_environment("{}");
        for (int i = 0; i < kRows; ++i)
          store.add(verified("3f2a", key, {"map", "only", {{"writer", w}, {"i", i}}}, i + 1));
      } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        code = 1;
      }
      _exit(code);
    }
    writers.push_back(writer);
  }
  for (const pid_t writer : writers) {
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
  }
  store::Store store(path);
  std::set<std::string> distinct;
  for (const auto& r : store.records("3f2a", store.put_environment("{}"))) distinct.insert(r.schedule.str());
  EXPECT_EQ(distinct.size(), 2u * kRows);
  EXPECT_EQ(store.damaged_rows(), 0);
}

}  // namespace
}  // namespace thrice::testing
