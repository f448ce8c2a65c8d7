#include "worker/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thrice/status.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"

namespace thrice::worker {
namespace {

// Sanitizers reserve terabytes of addresses.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanLimitMemory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kCanLimitMemory = false;
#else
constexpr bool kCanLimitMemory = true;
#endif
#else
constexpr bool kCanLimitMemory = true;
#endif

std::string ending(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

Child::Child(const std::string& executable, const std::vector<std::string>& arguments, int64_t memory_bytes)
    : channel_(start(executable, arguments, memory_bytes)) {}

// Between fork and exec only calls that are safe beside other threads' locks.
int Child::start(const std::string& executable, const std::vector<std::string>& arguments,
                 int64_t memory_bytes) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(Code::kIo, fmt::format("cannot make a socket for a worker: {}", std::strerror(errno)));
  std::vector<char*> words;
  words.push_back(const_cast<char*>("thrice"));
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) {
    const int why = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw Error(Code::kIo, fmt::format("cannot start a worker: {}", std::strerror(why)));
  }
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before it could be said
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGTERM, SIG_IGN);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    if (memory_bytes > 0 && kCanLimitMemory) {
      const rlimit memory{static_cast<rlim_t>(memory_bytes), static_cast<rlim_t>(memory_bytes)};
      ::setrlimit(RLIMIT_AS, &memory);
    }
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    if (ends[1] == kWorkerDescriptor)
      ::fcntl(kWorkerDescriptor, F_SETFD, 0);
    else
      ::dup2(ends[1], kWorkerDescriptor);
#ifdef SYS_close_range
    ::syscall(SYS_close_range, kWorkerDescriptor + 1, ~0U, 0);
#endif
    ::execv(executable.c_str(), words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  return ends[0];
}

const std::string& Child::end(double patience_s) {
  constexpr double kMostWait_s = 20;  // a driver may take seconds over the memory of a killed process
  if (!ended_.empty()) return ended_;
  const double begin = monotonic_us();
  bool killed = false;
  for (;;) {
    int status = 0;
    const pid_t done = ::waitpid(pid_, &status, WNOHANG);
    const double waited_s = (monotonic_us() - begin) * 1e-6;
    if (done == pid_)
      ended_ = ending(status);
    else if (done < 0 && errno != EINTR)
      ended_ = "a status that is not known";
    else if (waited_s > patience_s + kMostWait_s)
      ended_ = "SIGKILL, which it has not followed yet";
    if (!ended_.empty()) return ended_;
    if (!killed && waited_s >= patience_s) killed = ::kill(pid_, SIGKILL) == 0;
    ::usleep(killed && waited_s < 0.1 ? 500 : 5000);
  }
}

}  // namespace thrice::worker
