// Command-line parsing: a command is described as a value, and reads its arguments as text. The parser behind
// it (CLI11) is seen by arguments.cc only: its header takes 4 s a file.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace thrice::cli {

struct Option {
  std::string flag;        // "--budget"
  std::string value_name;  // "TIME"; empty = a switch
  std::string help;
  bool repeats = false;
};
struct Positional {
  std::string name, help;
  bool required = true;
};

class Arguments {
 public:
  std::map<std::string, std::vector<std::string>>
      values;  // by flag or positional name; a switch that is given holds one empty text
  bool has(const std::string& flag) const { return values.count(flag) != 0; }
  std::optional<std::string> get(const std::string& flag) const;
  std::string get(const std::string& flag, const std::string& otherwise) const;
  std::vector<std::string> all(const std::string& flag) const;
  int64_t integer(const std::string& flag,
                  int64_t otherwise) const;  // throws kInvalidArgument naming the flag
};

struct Command {
  std::string name, summary;
  std::string example;  // one line that works
  std::vector<Positional> positionals;
  std::vector<Option> options;
  int (*run)(const Arguments&) = nullptr;  // returns the exit code; may throw Error
  bool hidden = false;                     // not in the list of --help: for processes, not for people
};

// Parses and runs. Exit codes: docs/exit_codes.md; usage errors give 2. Every command has --json, --log LEVEL
// and --help.
int run_command_line(int argc, char** argv, const std::vector<Command>& commands);

}  // namespace thrice::cli
