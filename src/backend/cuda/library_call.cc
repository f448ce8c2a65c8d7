#include "backend/cuda/library_call.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "artifact/library_symbol.h"
#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cudnn.h"

namespace thrice::backend::cuda {

std::shared_ptr<const LibraryCall> make_library_call(const ContextPtr& context, const std::string& symbol) {
  if (!artifact::is_library_symbol(symbol)) return nullptr;
  if (const auto product = artifact::LibraryProduct::parse(symbol))
    return std::make_shared<CublasltProduct>(context, *product);
  if (const auto convolution = artifact::LibraryConvolution::parse(symbol))
    return std::make_shared<CudnnConvolution>(context, *convolution);
  artifact::refuse_symbol(symbol, "the library is not known");
}

CUdeviceptr buffer_at(const std::vector<CUdeviceptr>& addresses, int position, const std::string& symbol) {
  if (static_cast<size_t>(position) >= addresses.size())
    throw Error(Code::kInternal, fmt::format("'{}' names a buffer that its launch lacks", symbol));
  return addresses[static_cast<size_t>(position)];
}

int64_t alignment_of(std::initializer_list<CUdeviceptr> addresses, int64_t most) {
  CUdeviceptr all = 0;
  for (const CUdeviceptr address : addresses) all |= address;
  while ((all & static_cast<CUdeviceptr>(most - 1)) != 0) most /= 2;
  return most;
}

}  // namespace thrice::backend::cuda
