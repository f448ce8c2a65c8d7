// Source: cuBLAS documentation, chapter cuBLASLt (signatures, values of the constants, layout of a result of
// the heuristic).
#include "backend/cuda/cublaslt.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "backend/cuda/vendor_library.h"

namespace thrice::backend::cuda {
namespace {

using artifact::ProductExtents;
using LtHandle = struct LtHandleStruct*;
using Desc = struct LtDescStruct*;
using Layout = struct LtLayoutStruct*;
using Preference = struct LtPreferenceStruct*;

constexpr int kOk = 0;
enum : int {  // cudaDataType_t, cublasComputeType_t, cublasOperation_t
  kR32F = 0,
  kR64F = 1,
  kR16F = 2,
  kR16BF = 14,
  kCompute32F = 68,  // no tf32: float32 stays float32
  kCompute64F = 70,
  kOpT = 1,
};
enum : int {  // attributes of descriptor, layout and preference
  kDescTransA = 3,
  kDescTransB = 4,
  kLayoutBatches = 5,
  kLayoutStep = 6,
  kMaxWorkspace = 1,
  kReductionSchemes = 3,
  kAlignA = 5,  // then B, C, D
};
// Parts of a split depth are added in the compute type, in a fixed order; never in 16 bits.
constexpr uint32_t kReduceInComputeType = 2;
constexpr int kListed = 8;            // algorithms asked for
constexpr int64_t kAligned = 256;     // bytes; more helps nothing
constexpr size_t kChoicesKept = 256;  // of one product: extents, alignments

struct Algorithm {
  uint64_t data[8];
};
struct Result {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

struct LtApi {
  size_t (*GetVersion)() = nullptr;
  size_t (*GetCudartVersion)() = nullptr;
  int (*Create)(LtHandle*) = nullptr;
  int (*Destroy)(LtHandle) = nullptr;
  int (*MatmulDescCreate)(Desc*, int compute, int scale) = nullptr;
  int (*MatmulDescDestroy)(Desc) = nullptr;
  int (*MatmulDescSetAttribute)(Desc, int, const void*, size_t) = nullptr;
  int (*MatrixLayoutCreate)(Layout*, int type, uint64_t rows, uint64_t cols, int64_t pitch) = nullptr;
  int (*MatrixLayoutDestroy)(Layout) = nullptr;
  int (*MatrixLayoutSetAttribute)(Layout, int, const void*, size_t) = nullptr;
  int (*MatmulPreferenceCreate)(Preference*) = nullptr;
  int (*MatmulPreferenceDestroy)(Preference) = nullptr;
  int (*MatmulPreferenceSetAttribute)(Preference, int, const void*, size_t) = nullptr;
  int (*MatmulAlgoGetHeuristic)(LtHandle, Desc, Layout, Layout, Layout, Layout, Preference, int, Result*,
                                int*) = nullptr;
  int (*Matmul)(LtHandle, Desc, const void* alpha, const void* a, Layout, const void* b, Layout,
                const void* beta, const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace,
                size_t workspace_bytes, CUstream) = nullptr;
};

bool find_all(SharedLibrary& library, LtApi& a) {
#define THRICE_LT_FIND(name) library.find("cublasLt" #name, a.name)
  return THRICE_LT_FIND(GetVersion) && THRICE_LT_FIND(GetCudartVersion) && THRICE_LT_FIND(Create) &&
         THRICE_LT_FIND(Destroy) && THRICE_LT_FIND(MatmulDescCreate) && THRICE_LT_FIND(MatmulDescDestroy) &&
         THRICE_LT_FIND(MatmulDescSetAttribute) && THRICE_LT_FIND(MatrixLayoutCreate) &&
         THRICE_LT_FIND(MatrixLayoutDestroy) && THRICE_LT_FIND(MatrixLayoutSetAttribute) &&
         THRICE_LT_FIND(MatmulPreferenceCreate) && THRICE_LT_FIND(MatmulPreferenceDestroy) &&
         THRICE_LT_FIND(MatmulPreferenceSetAttribute) && THRICE_LT_FIND(MatmulAlgoGetHeuristic) &&
         THRICE_LT_FIND(Matmul);
#undef THRICE_LT_FIND
}

using Opened = VendorLibrary<LtApi>;

const Opened& opened(int driver_version) {
  static const Opened one(
      library_paths("THRICE_CUBLASLT",
                    {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                     "/usr/local/cuda/lib64/libcublasLt.so.12"},
                    "libcublasLt.so.13 or .12 not found; install CUDA's cuBLAS"),
      find_all, "cuBLASLt 12", driver_version);
  return one;
}

int type_of(DType dtype) {
  if (dtype == DType::kF64) return kR64F;
  if (dtype == DType::kF16) return kR16F;
  return dtype == DType::kBF16 ? kR16BF : kR32F;
}

const void* scale(bool is_double, bool is_one) {
  static const float kFloats[] = {0, 1};
  static const double kDoubles[] = {0, 1};
  return is_double ? static_cast<const void*>(kDoubles + is_one) : kFloats + is_one;
}

}  // namespace

std::string cublaslt_version(int driver_version, std::string* reason) {
  const Opened& o = opened(driver_version);
  if (reason) *reason = o.reason;
  return o.version;
}

// One a context, shared by its products.
struct CublasltProduct::Handle {
  ContextPtr context;
  const LtApi& a;
  LtHandle handle = nullptr;

  Handle(ContextPtr c, const LtApi& api) : context(std::move(c)), a(api) {
    check(a.Create(&handle), "starting the library");
  }
  ~Handle() {
    if (context->api.CtxPushCurrent_v2(context->handle) != kCuSuccess) return;
    a.Destroy(handle);
    CUcontext popped = nullptr;
    context->api.CtxPopCurrent_v2(&popped);
  }
  void check(int status, const std::string& doing) const {
    if (status != kOk)
      throw Error(Code::kLaunchFailed, fmt::format("{}: cuBLASLt {}: {}: status {}", context->spec.id,
                                                   context->spec.cublaslt, doing, status));
  }
  static std::shared_ptr<Handle> of(const ContextPtr& context) {
    const Opened& o = opened(0);  // opened when the device was described
    if (o.version.empty())
      throw Error(Code::kUnsupported, fmt::format("{}: the program calls cuBLASLt, but: {}. Or optimize the "
                                                  "model on this machine without it",
                                                  context->spec.id, o.reason));
    static std::mutex mutex;
    static std::map<const Context*, std::weak_ptr<Handle>> handles;
    const std::lock_guard<std::mutex> lock(mutex);
    std::weak_ptr<Handle>& kept = handles[context.get()];
    std::shared_ptr<Handle> handle = kept.lock();
    if (!handle) kept = handle = std::make_shared<Handle>(context, o.a);
    return handle;
  }
};

// Descriptors and algorithm for one set of extents and alignments.
struct CublasltProduct::Choice {
  const LtApi& a;
  Desc desc = nullptr;
  Layout first = nullptr, second = nullptr, product = nullptr;
  Preference preference = nullptr;
  Result result{};

  explicit Choice(const LtApi& api) : a(api) {}
  Choice(const Choice&) = delete;
  ~Choice() {
    if (preference) a.MatmulPreferenceDestroy(preference);
    for (Layout layout : {first, second, product})
      if (layout) a.MatrixLayoutDestroy(layout);
    if (desc) a.MatmulDescDestroy(desc);
  }
};

CublasltProduct::CublasltProduct(const ContextPtr& context, const artifact::LibraryProduct& product)
    : context_(context), product_(product), handle_(Handle::of(context)) {}
CublasltProduct::~CublasltProduct() = default;

// The library knows column-major matrices: a row-major result is its transpose, B^T * A^T. So B comes first,
// rows and columns change places, and a matrix that is stored transposed for us is so for it too.
std::shared_ptr<const CublasltProduct::Choice> CublasltProduct::choice(
    const std::vector<int64_t>& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto it = choices_.find(key); it != choices_.end()) return it->second;
  const Handle& h = *handle_;
  const int64_t rows = key[ProductExtents::kRows], cols = key[ProductExtents::kCols],
                depth = key[ProductExtents::kDepth], alignment = key[ProductExtents::kCount],
                workspace = key[ProductExtents::kCount + 1];
  const auto batches = static_cast<int32_t>(key[ProductExtents::kBatches]);
  auto choice = std::make_shared<Choice>(h.a);
  const bool is_double = product_.dtype == DType::kF64;
  h.check(
      h.a.MatmulDescCreate(&choice->desc, is_double ? kCompute64F : kCompute32F, is_double ? kR64F : kR32F),
      "describing a product");
  const auto transpose = [&](int which) {
    const int32_t op = kOpT;
    h.check(h.a.MatmulDescSetAttribute(choice->desc, which, &op, sizeof(op)), "transposing");
  };
  if (product_.trans_b) transpose(kDescTransA);
  if (product_.trans_a) transpose(kDescTransB);
  // A row-major matrix [lines, along].
  const auto layout = [&](Layout& to, DType dtype, int64_t lines, int64_t along, int64_t step) {
    h.check(h.a.MatrixLayoutCreate(&to, type_of(dtype), static_cast<uint64_t>(along),
                                   static_cast<uint64_t>(lines), along),
            "describing a matrix");
    if (batches == 1) return;
    h.check(h.a.MatrixLayoutSetAttribute(to, kLayoutBatches, &batches, sizeof(batches)), "counting batches");
    h.check(h.a.MatrixLayoutSetAttribute(to, kLayoutStep, &step, sizeof(step)), "stepping over batches");
  };
  layout(choice->first, product_.dtype, product_.trans_b ? cols : depth, product_.trans_b ? depth : cols,
         key[ProductExtents::kStepB]);
  layout(choice->second, product_.dtype, product_.trans_a ? depth : rows, product_.trans_a ? rows : depth,
         key[ProductExtents::kStepA]);
  layout(choice->product, product_.result, rows, cols, rows * cols);
  h.check(h.a.MatmulPreferenceCreate(&choice->preference), "stating preferences");
  const auto prefer = [&](int which, const void* value, size_t bytes) {
    h.check(h.a.MatmulPreferenceSetAttribute(choice->preference, which, value, bytes), "stating preferences");
  };
  const auto most = static_cast<uint64_t>(workspace);
  const auto aligned = static_cast<uint32_t>(alignment);
  prefer(kMaxWorkspace, &most, sizeof(most));
  prefer(kReductionSchemes, &kReduceInComputeType, sizeof(kReduceInComputeType));
  for (int matrix = 0; matrix < 4; ++matrix) prefer(kAlignA + matrix, &aligned, sizeof(aligned));
  Result results[kListed] = {};
  int found = 0;
  const int status =
      h.a.MatmulAlgoGetHeuristic(h.handle, choice->desc, choice->first, choice->second, choice->product,
                                 choice->product, choice->preference, kListed, results, &found);
  if (status != kOk || found < 1)
    throw Error(
        Code::kLaunchFailed,
        fmt::format("{}: cuBLASLt {} has no algorithm for {} at {} x {}x{}x{} with {} bytes of workspace "
                    "(status {})",
                    context_->spec.id, context_->spec.cublaslt, product_.symbol(), batches, rows, cols, depth,
                    workspace, status));
  choice->result = results[std::clamp<int64_t>(key[ProductExtents::kAlgorithm], 0, found - 1)];
  if (choices_.size() >= kChoicesKept) choices_.clear();
  choices_[key] = choice;
  return choice;
}

void CublasltProduct::enqueue(const artifact::Launch& launch, const std::vector<CUdeviceptr>& addresses,
                              size_t workspace_bytes, CUstream stream) const {
  if (launch.extents.size() != ProductExtents::kCount)
    throw Error(Code::kInternal,
                fmt::format("'{}' was given {} integers", product_.symbol(), launch.extents.size()));
  const std::string symbol = product_.symbol();
  const CUdeviceptr a = buffer_at(addresses, product_.a, symbol),
                    b = buffer_at(addresses, product_.b, symbol),
                    d = buffer_at(addresses, product_.product, symbol),
                    workspace = buffer_at(addresses, product_.workspace, symbol);
  std::vector<int64_t> key(launch.extents.begin(), launch.extents.end());
  if (key[ProductExtents::kDepth] == 0) {
    const auto count = static_cast<size_t>(key[ProductExtents::kBatches] * key[ProductExtents::kRows] *
                                           key[ProductExtents::kCols]);
    context_->api.check(context_->api.MemsetD8Async(d, 0, count * dtype_bytes(product_.result), stream),
                        context_->spec.id + ": clearing an empty product");
    return;
  }
  key.push_back(alignment_of({a, b, d}, kAligned));
  key.push_back(static_cast<int64_t>(workspace_bytes));
  const std::shared_ptr<const Choice> c = choice(key);
  const bool is_double = product_.dtype == DType::kF64;
  const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  handle_->check(
      handle_->a.Matmul(handle_->handle, c->desc, scale(is_double, true), pointer(b), c->first, pointer(a),
                        c->second, scale(is_double, false), pointer(d), c->product, pointer(d), c->product,
                        &c->result.algorithm, pointer(workspace), workspace_bytes, stream),
      fmt::format("launching {}", product_.symbol()));
}

}  // namespace thrice::backend::cuda
