// Status codes, and the one exception type that carries them inside the program.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace thrice {

// Whose fault, and what kind. Each code has one exit code of the command line (docs/exit_codes.md) and a test
// that provokes it.
enum class Code {
  kOk = 0,
  kInvalidArgument,  // the caller's: a flag, a shape, a dtype, a settings file
  kInvalidModel,     // the model file's: truncated, cyclic, ill-typed; the message names the node
  kUnsupported,  // a legal model that thrice cannot run; the message names operator, opset, node, and what to
                 // do
  kNotFound,     // a file, device, library or entry that is not there
  kIo,           // the operating system refused: disk full, permission, short read
  kCorrupt,      // a file of ours is damaged: digest or structure does not match
  kOutOfMemory,  // host or device; the message has the number of bytes
  kCompileFailed,  // a generated kernel did not build; the message holds the log's first lines
  kLaunchFailed,   // the device refused or lost a launch
  kTimedOut,       // a limit of time ran out
  kWrongResult,    // verification failed
  kCancelled,      // the user stopped it (Ctrl-C)
  kInternal,       // ours: a broken invariant
};

// Name of a code without its k: "InvalidModel".
const char* code_name(Code code);

// Value form for faces that do not throw (C ABI, C++ session).
struct Status {
  Code code = Code::kOk;
  std::string message;
  bool ok() const { return code == Code::kOk; }
};

// Thrown inside the program; caught only by faces (cli, api, serve), by the tuner (a failed candidate is
// data), and by tests. The message says what is wrong, where, and what to do.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }
  Status status() const { return {code_, what()}; }

 private:
  Code code_;
};

}  // namespace thrice
