#include "worker/race_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "artifact/library_symbol.h"
#include "base/clock.h"

extern char** environ;

namespace thrice::worker {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "thrice_races_XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw Error(Code::kIo,
                  fmt::format("cannot make a folder for the race checker: {}", std::strerror(errno)));
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string last_line(const std::string& path) {
  std::istringstream text(text_of(path));
  std::string line, last;
  while (std::getline(text, line))
    if (!line.empty()) last = line;
  return last;
}

// Runs a command to its end, what it prints into `output`. Its exit status as of waitpid; -1 = it was killed,
// with all that it started, after `limit_s`.
int run_limited(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                const std::string& output, double limit_s) {
  std::vector<char*> argv, envp;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const auto is_given = [&](const std::string& entry) {  // the first of a name is the one that is read
    const std::string name = entry.substr(0, entry.find('=') + 1);
    return std::any_of(variables.begin(), variables.end(),
                       [&](const std::string& variable) { return variable.rfind(name, 0) == 0; });
  };
  for (char** e = environ; *e; ++e)
    if (!is_given(*e)) envp.push_back(*e);
  for (const std::string& variable : variables) envp.push_back(const_cast<char*>(variable.c_str()));
  envp.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(Code::kIo, fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  const double deadline_us = monotonic_us() + limit_s * 1e6;
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0) return 127 << 8;  // its end was taken by somebody else: as if it had not started
    if (monotonic_us() > deadline_us) {
      ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return -1;
    }
    ::usleep(10'000);
  }
}

// /proc/self/exe would be the tool's own.
std::string real_path(const std::string& executable) {
  std::error_code error;
  const fs::path target = fs::read_symlink(executable, error);
  return error || executable.rfind("/proc/", 0) != 0 ? executable : target.string();
}

std::string first_that_exists(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (::access(path.c_str(), R_OK) == 0) return path;
  return {};
}

std::string on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  std::vector<std::string> all;
  for (std::string folder; std::getline(folders, folder, ':');) all.push_back(folder + "/" + name);
  return first_that_exists(all);
}

bool is_cuda(const target::DeviceSpec& device) { return device.api == target::Api::kCuda; }

// What compute-sanitizer says at its end; -1 = it did not come so far.
int64_t errors_in(const std::string& log) {
  static const std::regex plain("ERROR SUMMARY: ([0-9]+) error");
  static const std::regex races("RACECHECK SUMMARY: [0-9]+ hazards? displayed \\(([0-9]+) error");
  std::smatch match;
  if (std::regex_search(log, match, races) || std::regex_search(log, match, plain))
    return std::stoll(match[1]);
  return -1;
}

// The first sentence about a fault.
std::string first_words(const std::string& log) {
  std::istringstream text(log);
  std::string first;
  for (std::string line; std::getline(text, line);) {
    const size_t begin = line.find_first_not_of("= \t");
    if (begin == std::string::npos) continue;
    line.erase(0, begin);
    if (line.rfind("COMPUTE-SANITIZER", 0) == 0) continue;
    if (first.empty()) first = line;
    for (const char* word : {"Race", "race", "Invalid", "hazard at", "Error"})
      if (line.find(word) != std::string::npos) return line;
  }
  return first;
}

}  // namespace

std::string find_race_checker(const target::DeviceSpec& device) {
  if (device.api == target::Api::kNull) return {};
  std::string found;
  if (const char* named = std::getenv("THRICE_RACE_CHECKER"); named && *named) {
    found = first_that_exists({named});
    if (found.empty())
      throw Error(Code::kNotFound,
                  fmt::format("THRICE_RACE_CHECKER names '{}', which cannot be read", named));
    return found;
  }
  if (is_cuda(device)) {
    found = on_path("compute-sanitizer");
    if (found.empty())
      found = first_that_exists({"/usr/local/cuda/bin/compute-sanitizer",
                                 "/usr/local/cuda/compute-sanitizer/compute-sanitizer",
                                 "/opt/cuda/bin/compute-sanitizer"});
    if (found.empty())
      throw Error(Code::kNotFound,
                  "--check-races needs NVIDIA's compute-sanitizer, which is neither on PATH nor below "
                  "/usr/local/cuda: install the CUDA toolkit, name it by THRICE_RACE_CHECKER, or leave "
                  "--check-races out");
    return found;
  }
  std::vector<std::string> places;
  for (const char* folder : {"/usr/lib/oclgrind", "/usr/lib/x86_64-linux-gnu/oclgrind", "/usr/lib64/oclgrind",
                             "/usr/local/lib/oclgrind", "/usr/local/lib"})
    places.push_back(std::string(folder) + "/liboclgrind-rt-icd.so");
  found = first_that_exists(places);
  if (found.empty())
    throw Error(Code::kNotFound,
                "--check-races needs oclgrind for an OpenCL device: apt-get install oclgrind, name its "
                "liboclgrind-rt-icd.so by THRICE_RACE_CHECKER, or leave --check-races out");
  return found;
}

artifact::KernelSource for_race_checker(artifact::KernelSource source) {
  const std::string usual = "#define TH_ARRIVING_LANES 1";  // in the prelude of every CUDA text
  const size_t at = source.text.find(usual);
  if (at == std::string::npos ||
      source.text.find("TH_ARRIVING_LANES", at + usual.size()) == std::string::npos)
    return source;
  source.text = "#define TH_ARRIVING_LANES 32\n" + source.text;
  source.key += "_lanes";
  return source;
}

RaceChecker::RaceChecker(target::DeviceSpec device, RaceCheckOptions options)
    : device_(std::move(device)), options_(std::move(options)) {
  if (options_.tool.empty()) options_.tool = find_race_checker(device_);
  options_.executable = real_path(options_.executable);
}

std::string RaceChecker::name() const {
  if (options_.tool.empty()) return "none";
  return is_cuda(device_) ? "compute-sanitizer (memcheck, racecheck)" : "oclgrind";
}

RaceVerdict RaceChecker::run(const std::vector<ToLaunch>& some) const {
  const Scratch scratch;
  write_launches(scratch.file("launches"), some);
  const double limit_s = options_.limit_s * (1 + 0.1 * static_cast<double>(some.size() - 1));
  std::vector<std::string> words{options_.executable, "worker", "--launches", scratch.file("launches")};
  const auto put = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  const std::string log = scratch.file("log"), output = scratch.file("output");
  const auto unchecked = [&](int status) -> RaceVerdict {
    if (status == -1) return {RaceVerdict::kNotChecked, fmt::format("killed after {:.3g} s", limit_s)};
    const std::string said = last_line(output);
    const std::string ended = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                  : fmt::format("exit code {}", WEXITSTATUS(status));
    return {RaceVerdict::kNotChecked, fmt::format("{}{}{}", ended, said.empty() ? "" : ": ", said)};
  };
  if (!is_cuda(device_)) {
    // The loader looks into this folder only, so that no other platform is picked.
    std::ofstream(scratch.file("oclgrind.icd")) << options_.tool << "\n";
    put({"--device", "opencl:0", "--groups", std::to_string(options_.most_groups)});
    const int status = run_limited(words,
                                   {"OCL_ICD_VENDORS=" + fs::path(log).parent_path().string(),
                                    "OCLGRIND_DATA_RACES=1", "OCLGRIND_MAX_ERRORS=10", "OCLGRIND_LOG=" + log},
                                   output, limit_s);
    if (const std::string said = text_of(log); !said.empty())
      return {RaceVerdict::kHazard, first_words(said)};
    if (status != 0) return unchecked(status);
    if (const std::string ran_on = last_line(output); ran_on.find("Oclgrind") == std::string::npos)
      return {RaceVerdict::kNotChecked, fmt::format("it ran on '{}', not on oclgrind", ran_on)};
    return {};
  }
  put({"--device", device_.id});
  if (!options_.kernels.empty()) put({"--kernels", options_.kernels});
  for (const char* tool : {"memcheck", "racecheck"}) {
    std::vector<std::string> all{options_.tool, "--tool", tool, "--log-file", log, "--print-limit", "10"};
    if (std::string(tool) == "memcheck") all.insert(all.end(), {"--report-api-errors", "no"});
    all.insert(all.end(), words.begin(), words.end());
    std::error_code ignored;
    fs::remove(log, ignored);
    const int status = run_limited(all, {}, output, limit_s);
    const std::string said = text_of(log);
    const int64_t errors = errors_in(said);
    if (errors > 0) return {RaceVerdict::kHazard, fmt::format("{}: {}", tool, first_words(said))};
    if (status != 0 || errors < 0) {
      RaceVerdict verdict = unchecked(status);
      verdict.why = fmt::format("{}: {}", tool, verdict.why);
      return verdict;
    }
  }
  return {};
}

std::vector<RaceVerdict> RaceChecker::check(const std::vector<ToLaunch>& all) const {
  std::vector<RaceVerdict> verdicts(all.size());
  if (options_.tool.empty()) {
    for (RaceVerdict& verdict : verdicts) verdict = {RaceVerdict::kNotChecked, "this device runs nothing"};
    return verdicts;
  }
  std::vector<ToLaunch> ours;
  std::vector<size_t> places;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& kernels = all[i].job.source.kernels;
    if (std::any_of(kernels.begin(), kernels.end(), artifact::is_library_symbol)) {
      verdicts[i] = {RaceVerdict::kNotChecked, "a vendor's library"};
      continue;
    }
    ours.push_back(all[i]);
    places.push_back(i);
    ours.back().job.source = for_race_checker(all[i].job.source);
  }
  if (is_cuda(device_) && ours.size() > 1 && run(ours).kind == RaceVerdict::kClean) return verdicts;
  for (size_t i = 0; i < ours.size(); ++i) verdicts[places[i]] = run({ours[i]});
  return verdicts;
}

}  // namespace thrice::worker
