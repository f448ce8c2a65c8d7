// One copy in a process of what sessions of the same release on the same device have in common.
#pragma once
#include <memory>
#include <string>

#include "exec/executable.h"
#include "runtime/programs.h"

namespace thrice::runtime {

// Programs, weights and packed weights of a release: made by the first who asks, held as long as anyone uses
// them. Releases are the same where their manifests are (which name the weights, plan and kernels by digest).
// Threads: safe; releases are loaded one after the other. Errors: those of make_executable and
// release_programs.
std::shared_ptr<const exec::Executable> shared_code(const backend::DevicePtr& device,
                                                    const std::shared_ptr<const release::Release>& release,
                                                    const Builder& build);

// backend::open_device, but everyone gets the same Device while anyone holds it: without that no two sessions
// could share memory.
backend::DevicePtr shared_device(const std::string& id);

}  // namespace thrice::runtime
