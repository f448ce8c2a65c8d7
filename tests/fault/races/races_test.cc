// Would catch: a race or an access beyond a buffer that a checker reports and that is released all the same;
// a checker that is absent, hangs or fails and is taken for one that found nothing; a refused kernel without
// a successor, without a word, or taken again by a later run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/generate.h"
#include "flow/tuning.h"
#include "measure_fixture.h"

namespace thrice::worker {
namespace {

namespace fs = std::filesystem;
using artifact::Schedule;

constexpr const char* kHonest = "if (i < n) y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;";
// Right, and yet: each work-item reads what its neighbour writes.
constexpr const char* kRacy =
    "if (i < n) y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;\n"
    "  if (i < n) { volatile float seen = ((volatile TH_GLOBAL float*)y)[i + 1 < n ? i + 1 : 0]; (void)seen; "
    "}";

// relu with one tactic for each text; the first is the rule-chosen one.
class Tactics : public test::TextFamily {
 public:
  explicit Tactics(std::vector<std::string> bodies) : TextFamily(""), bodies_(std::move(bodies)) {}
  static Schedule schedule(size_t tactic) { return {"text", "t" + std::to_string(tactic), {{"a", 1}}}; }
  Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                            const target::DeviceSpec&) const override {
    return schedule(0);
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    artifact::ScheduleSpace space;
    for (size_t t = 0; t < bodies_.size(); ++t)
      space.tactics.push_back({"text", "t" + std::to_string(t), {{"a", {1}}}});
    return space;
  }
  family::ProgramText emit(const ir::Workload&, const Schedule& s, const target::DeviceSpec&) const override {
    return {test::kernel_text(bodies_[static_cast<size_t>(std::stoi(s.tactic.substr(1)))]), {"k"}};
  }

 private:
  std::vector<std::string> bodies_;
};

class Races : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = fs::path(::testing::TempDir()) / "races";
    fs::remove_all(folder);
    fs::create_directories(folder);
    workload = test::unary_workload(ir::Op::relu);
    facts = ir::facts_at(workload.graph, {{"s0", 300}});
  }
  ToLaunch item(const Tactics& family, size_t tactic, const target::DeviceSpec& spec) {
    ToLaunch one{&workload, &facts, {}};
    one.job.source =
        codegen::generate(workload, family, Tactics::schedule(tactic), spec, artifact::Language::kOpenCL);
    one.job.launches = family.launch(workload, Tactics::schedule(tactic), facts);
    return one;
  }
  // A compute-sanitizer that looks into the file of launches for the word of a racy kernel.
  std::string tool(const std::string& body) {
    const fs::path path = folder / "compute-sanitizer";
    std::ofstream(path) << "#!/bin/sh\n"
                           "echo run >> "
                        << (folder / "runs").string()
                        << "\n"
                           "while [ $# -gt 0 ]; do\n"
                           "  case $1 in --tool) tool=$2;; --log-file) log=$2;; --launches) file=$2;; esac\n"
                           "  shift\n"
                           "done\n"
                        << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  static target::DeviceSpec card() {
    target::DeviceSpec spec;
    spec.api = target::Api::kCuda;
    spec.id = "cuda:0";
    return spec;
  }
  int runs() const {
    std::ifstream file(folder / "runs");
    return static_cast<int>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }

  fs::path folder;
  ir::Workload workload;
  std::vector<ir::Fact> facts;
};

constexpr const char* kFindsVolatile = R"(
if [ $tool = racecheck ]; then
  if grep -q 'volatile float seen' $file; then
    { echo '========= COMPUTE-SANITIZER'
      echo '========= Error: Race reported between Write access at k+0x10 and Read access at k+0x20 [8 hazards]'
      echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'; } > $log
  else echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)' > $log; fi
else echo '========= ERROR SUMMARY: 0 errors' > $log; fi)";

TEST_F(Races, OneProcessWhereNothingIsFoundOneAKernelWhereSomethingIs) {
  const Tactics family({kHonest, kRacy});
  RaceCheckOptions options;
  options.tool = tool(kFindsVolatile);
  const RaceChecker checker(card(), options);
  const ToLaunch honest = item(family, 0, card()), racy = item(family, 1, card());
  EXPECT_EQ(checker.check({honest, honest, honest})[2].kind, RaceVerdict::kClean);
  EXPECT_EQ(runs(), 2) << "memcheck and racecheck, once";
  const auto verdicts = checker.check({honest, racy});
  EXPECT_EQ(verdicts[0].kind, RaceVerdict::kClean);
  EXPECT_EQ(verdicts[1].kind, RaceVerdict::kHazard);
  EXPECT_NE(verdicts[1].why.find("racecheck: Error: Race reported between"), std::string::npos)
      << verdicts[1].why;
}

TEST_F(Races, AnAccessBeyondABufferIsAHazardToo) {
  const Tactics family({kHonest});
  RaceCheckOptions options;
  options.tool = tool(
      "{ echo '========= Invalid __global__ read of size 4 bytes'; echo '========= ERROR SUMMARY: 12 "
      "errors'; } > $log");
  const auto verdict = RaceChecker(card(), options).check({item(family, 0, card())})[0];
  EXPECT_EQ(verdict.kind, RaceVerdict::kHazard);
  EXPECT_NE(verdict.why.find("memcheck: Invalid __global__ read"), std::string::npos) << verdict.why;
}

TEST_F(Races, AToolThatFailsOrHangsFoundNothingOut) {
  const Tactics family({kHonest});
  const ToLaunch one = item(family, 0, card());
  RaceCheckOptions options;
  options.tool = tool("echo 'no device for this user'; exit 3");
  RaceVerdict verdict = RaceChecker(card(), options).check({one})[0];
  EXPECT_EQ(verdict.kind, RaceVerdict::kNotChecked);
  EXPECT_NE(verdict.why.find("exit code 3: no device for this user"), std::string::npos) << verdict.why;
  options.tool = tool("exit 0");  // without a summary
  EXPECT_EQ(RaceChecker(card(), options).check({one})[0].kind, RaceVerdict::kNotChecked);
  options.tool = tool("sleep 60");
  options.limit_s = 0.3;
  verdict = RaceChecker(card(), options).check({one})[0];
  EXPECT_EQ(verdict.kind, RaceVerdict::kNotChecked);
  EXPECT_NE(verdict.why.find("killed after 0.3 s"), std::string::npos) << verdict.why;
}

TEST_F(Races, LibrariesAreLeftOut) {
  const Tactics family({kRacy});
  RaceCheckOptions options;
  options.tool = tool(kFindsVolatile);
  ToLaunch call = item(family, 0, card());
  call.job.source.kernels = {"cublaslt:1"};
  EXPECT_EQ(RaceChecker(card(), options).check({call})[0].kind, RaceVerdict::kNotChecked);
  EXPECT_EQ(runs(), 0);
}

TEST_F(Races, AnAbsentToolIsSaid) {
  ::setenv("THRICE_RACE_CHECKER", (folder / "absent").c_str(), 1);
  try {
    const RaceChecker checker(card(), {});
    ADD_FAILURE() << "no tool was no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
  }
  ::unsetenv("THRICE_RACE_CHECKER");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.c_str(), 1);
  try {
    find_race_checker(card());  // where CUDA's folder has one, that is found
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("install the CUDA toolkit"), std::string::npos) << error.what();
  }
  const std::string mine = tool("exit 0");
  EXPECT_EQ(find_race_checker(card()), mine);
  ::setenv("PATH", path.c_str(), 1);
}

// The real oclgrind over kernels of this machine's OpenCL device.
class Oclgrind : public Races {
 protected:
  void SetUp() override {
    Races::SetUp();
    try {
      device = backend::open_device("opencl:0");
      options.executable = THRICE_EXECUTABLE;
      checker.emplace(device->spec(), options);
    } catch (const Error& error) {
      GTEST_SKIP() << "skipped: " << error.what();
    }
  }
  backend::DevicePtr device;
  RaceCheckOptions options;
  std::optional<RaceChecker> checker;
};

TEST_F(Oclgrind, SeesWhatReadsItsNeighboursResult) {
  const Tactics family({kHonest, kRacy, "this is no kernel"});
  const auto verdicts = checker->check(
      {item(family, 0, device->spec()), item(family, 1, device->spec()), item(family, 2, device->spec())});
  EXPECT_EQ(verdicts[0].kind, RaceVerdict::kClean) << verdicts[0].why;
  EXPECT_EQ(verdicts[1].kind, RaceVerdict::kHazard) << verdicts[1].why;
  EXPECT_NE(verdicts[1].why.find("data race"), std::string::npos) << verdicts[1].why;
  EXPECT_EQ(verdicts[2].kind, RaceVerdict::kNotChecked);
}

TEST_F(Oclgrind, ARacyWinnerGivesWayAndIsNotTakenAgain) {
  using namespace flow;
  const Tactics family({kRacy, kRacy, kHonest});
  store::Store store((folder / "store.sqlite").string());
  measure::TrialRunner runner(device, std::make_shared<jit::KernelCache>(device, ""));
  plan::PlannedWorkload planned;
  planned.workload = workload;
  planned.family = &family;
  planned.facts = facts;
  planned.schedule = Tactics::schedule(0);
  planned.uses = {"Relu_7"};
  Settings settings;
  const Listener listener;
  std::map<std::string, Tuned> results;
  int64_t trials = 0;
  TuningContext c;
  c.device = device;
  c.runner = &runner;
  c.store = &store;
  c.environment = store.put_environment("{}");
  c.settings = &settings;
  c.listener = &listener;
  c.results = &results;
  c.trials = &trials;
  const std::map<std::string, plan::PlannedWorkload> workloads{{workload.hash, planned}};
  std::vector<std::string> notes;
  measure_defaults(c, workloads, "build and check");
  confirm(c, workloads, notes);
  ASSERT_TRUE(notes.empty()) << notes[0];
  const RaceReport report = check_races(c, workloads, *checker, notes);
  EXPECT_EQ(report.refused, 1);
  EXPECT_EQ(results.at(workload.hash).schedule, Tactics::schedule(2));
  ASSERT_EQ(notes.size(), 2u);
  for (const char* word : {"Relu_7", "text/t0", "data race", "text/t2"})
    EXPECT_NE(notes[0].find(word), std::string::npos) << notes[0];
  int64_t marked = 0;
  for (const artifact::TuningRecord& r : store.records(workload.hash, c.environment))
    marked += r.measurement.message.find("race checker") != std::string::npos;
  EXPECT_EQ(marked, 2) << "both racy tactics";

  // A later run takes the rule-chosen one no more, with a checker or without.
  results.clear();
  measure_defaults(c, workloads, "build and check");
  EXPECT_EQ(results.at(workload.hash).schedule, Tactics::schedule(2));
  EXPECT_NE(results.at(workload.hash).note.find("data race"), std::string::npos);

  const Tactics racy({kRacy, kRacy});
  planned.family = &racy;
  results.clear();
  store::Store other((folder / "other.sqlite").string());
  c.store = &other;
  c.environment = other.put_environment("{}");
  const std::map<std::string, plan::PlannedWorkload> hopeless{{workload.hash, planned}};
  try {
    measure_defaults(c, hopeless, "build and check");
    confirm(c, hopeless, notes);
    check_races(c, hopeless, *checker, notes);
    ADD_FAILURE() << "a racy kernel was kept";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kWrongResult);
  }
}

// Otherwise racecheck refuses right kernels, whose lane 0 arrives for its warp.
TEST(RaceText, EveryLaneArrivesWhereOneDoes) {
  const std::string prelude = "#ifndef TH_ARRIVING_LANES\n#define TH_ARRIVING_LANES 1\n#endif\n";
  const artifact::KernelSource plain{.text = prelude + "k", .kernels = {"k"}, .key = "a"};
  EXPECT_EQ(for_race_checker(plain).text, plain.text);
  EXPECT_EQ(for_race_checker(plain).key, "a");
  const artifact::KernelSource arrives{
      .text = prelude + "if (lane < TH_ARRIVING_LANES) arrive();", .kernels = {"k"}, .key = "a"};
  EXPECT_EQ(for_race_checker(arrives).text.find("#define TH_ARRIVING_LANES 32\n"), 0u);
  EXPECT_NE(for_race_checker(arrives).key, "a");
}

}  // namespace
}  // namespace thrice::worker
