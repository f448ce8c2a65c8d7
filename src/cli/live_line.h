// The live progress line of long commands, and Ctrl-C as "stop cleanly with the best so far".
#pragma once
#include "flow/progress.h"

namespace thrice::cli {

// A listener that redraws one line on standard error while it is a terminal (at most 10 times a second);
// elsewhere it prints a line at each new phase. The first SIGINT or SIGTERM asks to stop, the second ends the
// process at once (the tuning store is safe either way).
class LiveLine {
 public:
  enum class Form { kLine, kJson, kNone };  // kJson: one object a line, at most 10 a second, for programs
  explicit LiveLine(Form form);
  ~LiveLine();  // clears the line, restores the signal handlers
  flow::Listener listener();

 private:
  void show(const flow::Progress& progress);
  Form form_;
  bool is_terminal_;
  double last_us_ = 0;
  std::string last_phase_;
};

}  // namespace thrice::cli
