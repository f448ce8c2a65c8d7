// Settings from file, environment and flags; and what commands that run releases share.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "flow/settings.h"
#include "runtime/session.h"

namespace thrice::cli {

std::vector<Option> settings_options();  // --config, --device, --cache, --store
flow::Settings settings_from(const Arguments& arguments);

// True where the file begins as a release does.
bool is_release(const std::string& path);
// Loads a release on the chosen device; kernels come from the release, from the cache only where a device
// needs a rebuild.
std::unique_ptr<runtime::Session> open_session(const std::string& path, const flow::Settings& settings);

// Inputs of a run: `--input x=FILE.npy` (or FILE.npy in order); what is not given is random by seed at
// --dims.
std::vector<ir::Tensor> inputs_from(const ir::Graph& graph, const Arguments& arguments,
                                    std::vector<std::string>* notes);

}  // namespace thrice::cli
