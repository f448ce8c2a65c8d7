// Options that every command with a model file shares: shapes, constants, stripped weights.
#pragma once
#include "cli/arguments.h"
#include "frontend/import.h"
#include "ir/dim.h"

namespace thrice::cli {

std::vector<Option> model_options();
frontend::ImportOptions import_options(const Arguments& arguments);
// `--dims width=320,batch=1`, completed for the symbols of the graph that it does not name: an axis 0 takes
// 1, spatial axes of images take 320 (or 48 high), sequences 128. `assumed` gets one sentence a guess.
ir::Bindings bindings_for(const ir::Graph& graph, const Arguments& arguments,
                          std::vector<std::string>* assumed);
// Errors: kInvalidArgument naming `flag` where `output` is the file `model` itself, under whatever name.
void refuse_overwriting(const std::string& model, const std::string& output, const std::string& flag);

}  // namespace thrice::cli
