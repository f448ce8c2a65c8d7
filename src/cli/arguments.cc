#include "cli/arguments.h"

#include <thrice/status.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>

#include "cli/exit_code.h"

namespace thrice::cli {

std::optional<std::string> Arguments::get(const std::string& flag) const {
  const auto it = values.find(flag);
  if (it == values.end() || it->second.empty()) return std::nullopt;
  return it->second.back();
}
std::string Arguments::get(const std::string& flag, const std::string& otherwise) const {
  return get(flag).value_or(otherwise);
}
std::vector<std::string> Arguments::all(const std::string& flag) const {
  const auto it = values.find(flag);
  return it == values.end() ? std::vector<std::string>{} : it->second;
}
int64_t Arguments::integer(const std::string& flag, int64_t otherwise) const {
  const auto text = get(flag);
  if (!text) return otherwise;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text->c_str(), &end, 10);
  if (end == text->c_str() || *end || errno == ERANGE)
    throw Error(Code::kInvalidArgument, flag + ": '" + *text + "' is no whole number of 64 bits");
  return value;
}

int run_command_line(int argc, char** argv, const std::vector<Command>& commands) {
  CLI::App app(
      "thrice: makes a model's operators faster on this machine's GPU, proves that they are still right, and "
      "runs them",
      "thrice");
  app.require_subcommand(1);
  app.set_version_flag("--version", THRICE_VERSION);
  std::map<const CLI::App*, const Command*> by_app;
  std::map<const CLI::App*, Arguments> given;
  for (const Command& command : commands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    by_app[sub] = &command;
    Arguments& arguments = given[sub];
    if (command.hidden) sub->group("");
    if (!command.example.empty()) sub->footer("Example:\n  " + command.example);
    for (const Positional& p : command.positionals) {
      // One word each: a list would swallow the words of the positionals behind it.
      auto* option = sub->add_option_function<std::string>(
          p.name, [&arguments, name = p.name](const std::string& v) { arguments.values[name] = {v}; },
          p.help);
      if (p.required) option->required();
    }
    std::vector<Option> options = command.options;
    options.push_back({"--json", "", "print the result as JSON on standard output"});
    options.push_back({"--log", "LEVEL", "error | warning | info | debug (default warning)"});
    for (const Option& o : options) {
      if (o.value_name.empty()) {
        sub->add_flag_callback(
            o.flag, [&arguments, flag = o.flag] { arguments.values[flag] = {""}; }, o.help);
        continue;
      }
      auto* option = sub->add_option_function<std::vector<std::string>>(
          o.flag,
          [&arguments, flag = o.flag](const std::vector<std::string>& v) { arguments.values[flag] = v; },
          o.help);
      option->type_name(o.value_name);
      option->expected(1);
      if (o.repeats)
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      else
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kExitUsage;
  }
  const CLI::App* chosen = app.get_subcommands().front();
  return by_app.at(chosen)->run(given.at(chosen));
}

}  // namespace thrice::cli
