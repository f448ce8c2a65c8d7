// What a time depends on beside the kernel, and why a stored trial is or is not of use here.
#pragma once
#include <string>
#include <vector>

#include "backend/backend.h"
#include "store/store.h"

namespace thrice::flow {

// Device (each property that can change an answer or a time), its power limit, driver, compiler, digest of
// the kernel templates, product, version of the gate. JSON with sorted keys: equal texts are the same
// environment.
std::string environment_json(backend::Device& device);
std::string environment_json(const target::DeviceSpec& spec, const std::string& compiler,
                             double power_limit_w = -1);

struct FieldDifference {
  std::string field, now, then;  // values as JSON; "absent" where one side lacks the field
};
// Of two such texts; one that is no JSON object differs as a whole ("description").
std::vector<FieldDifference> differing_fields(const std::string& now, const std::string& then);

// The trials of one workload at one shape in one environment.
struct CacheAnswer {
  std::string workload, shape, environment;
  bool hit = false;  // of this very environment, and a verified time among them
  int64_t trials = 0, verified = 0;
  double best_us = -1;  // the fastest verified
  std::string schedule;
  std::vector<FieldDifference> differs;  // empty in this environment
};
// For every workload whose hash begins with `prefix`; those of this environment first. Empty: no trial at
// all.
std::vector<CacheAnswer> explain_workload(const store::Store& store, const std::string& prefix,
                                          const std::string& environment_here);

// Schedules that were the fastest verified ones of a workload in other environments, or at other shapes:
// worth a trial here, never a result. The latest environment first, each schedule once.
std::vector<artifact::Schedule> warm_starts(const store::Store& store, const std::string& workload,
                                            const std::string& shape, const std::string& environment_key,
                                            size_t most = 3);

}  // namespace thrice::flow
