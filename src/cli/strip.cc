// thrice strip: a structure-only copy of a model, so that people can share shapes without weights.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "frontend/import.h"

namespace thrice::cli {

namespace {
int run(const Arguments& arguments) {
  const std::string model = *arguments.get("MODEL"), output = *arguments.get("OUTPUT");
  refuse_overwriting(model, output, "OUTPUT");
  frontend::strip_model(model, output);
  const auto before = std::filesystem::file_size(model), after = std::filesystem::file_size(output);
  if (arguments.has("--json"))
    fmt::print("{{\"model_bytes\": {}, \"stripped_bytes\": {}}}\n", before, after);
  else
    fmt::print("{} bytes -> {} bytes. Use it with --random-weights SEED.\n", before, after);
  return 0;
}
}  // namespace

Command strip_command() {
  return {"strip",
          "write a structure-only copy of a model (no weights)",
          "thrice strip model.onnx structure.onnx",
          {{"MODEL", "ONNX file"}, {"OUTPUT", "file to write"}},
          {},
          run};
}

}  // namespace thrice::cli
