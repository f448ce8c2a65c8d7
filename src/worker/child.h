// A worker process as its parent sees it: started, spoken to, killed, buried.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "worker/channel.h"

namespace thrice::worker {

constexpr int kWorkerDescriptor = 3;  // the worker's end of the socket pair

// Dies with the thread that started it (PR_SET_PDEATHSIG), and by itself at the end of its socket. Ctrl-C of
// the terminal does not reach it: the parent decides.
class Child {
 public:
  // `memory_bytes`: RLIMIT_AS; 0 = none. Errors: kIo.
  Child(const std::string& executable, const std::vector<std::string>& arguments, int64_t memory_bytes);
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Channel& channel() { return channel_; }
  pid_t pid() const { return pid_; }
  // Kills it unless it ends by itself within a moment (`patience_s`), waits, and says how it ended:
  // "signal 11 (Segmentation fault)", "exit code 8". Later calls say the same.
  const std::string& end(double patience_s = 0);

 private:
  int start(const std::string& executable, const std::vector<std::string>& arguments, int64_t memory_bytes);

  pid_t pid_ = -1;
  Channel channel_;
  std::string ended_;
};

}  // namespace thrice::worker
