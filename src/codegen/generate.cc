#include "codegen/generate.h"

#include "base/hash.h"
#include "family/prelude.h"

namespace thrice::codegen {

artifact::KernelSource generate(const ir::Workload& workload, const family::Family& family,
                                const artifact::Schedule& schedule, const target::DeviceSpec& device,
                                artifact::Language language) {
  family::ProgramText program = family.emit(workload, schedule, device);
  artifact::KernelSource source;
  source.language = language;
  source.text = family::prelude(language) + program.text;
  source.kernels = std::move(program.kernels);
  Hasher hasher;
  hasher.add(static_cast<int64_t>(language)).add(source.text);
  for (const std::string& kernel : source.kernels) hasher.add(kernel);
  source.key = hasher.hex();
  return source;
}

}  // namespace thrice::codegen
