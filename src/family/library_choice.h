// What a schedule says to a vendor's library (tactics cublaslt, cudnn): `algorithm`, a place in the library's
// list, best guess first; `workspace_mib`, memory that it may use.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "family/family.h"

namespace thrice::family {

// `workspace_mib`: what the library is offered, where it is offered any.
std::vector<std::pair<std::string, int64_t>> default_library_choice(int64_t workspace_mib);
std::vector<artifact::Parameter> library_choice_parameters(int64_t workspace_mib);
Refusal refuse_library_choice(const Schedule& schedule);
int64_t library_workspace_bytes(const Schedule& schedule);
int buffer_position_of(const std::string& name);  // 3 of "p3", an argument's name

}  // namespace thrice::family
