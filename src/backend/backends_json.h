// The list of back ends and devices as JSON, for the command line and the C interface alike.
#pragma once
#include <string>
#include <vector>

#include "backend/backend.h"

namespace thrice::backend {

// {"backends": [{"name", "available", "reason", "devices": [{"id", "api", "name", ...}]}]}
std::string backends_json(const std::vector<BackendReport>& backends);

}  // namespace thrice::backend
