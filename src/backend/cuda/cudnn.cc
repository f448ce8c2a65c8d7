#include "backend/cuda/cudnn.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "backend/cuda/cudnn_api.h"
#include "backend/cuda/vendor_library.h"

namespace thrice::backend::cuda {
namespace {

using artifact::ConvolutionExtents;

constexpr int kOk = 0;
constexpr int64_t kListed = 32;    // engine configurations asked for, of each list
constexpr int64_t kAligned = 16;   // bytes; more helps nothing
constexpr size_t kPlansKept = 64;  // of one convolution: extents, alignments
constexpr int64_t kIdX = 'x', kIdW = 'w', kIdY = 'y';

bool find_all(SharedLibrary& library, DnnApi& a) {
#define THRICE_DNN_FIND(name) library.find("cudnn" #name, a.name)
  return THRICE_DNN_FIND(GetVersion) && THRICE_DNN_FIND(GetCudartVersion) &&
         THRICE_DNN_FIND(GetLastErrorString) && THRICE_DNN_FIND(Create) && THRICE_DNN_FIND(Destroy) &&
         THRICE_DNN_FIND(SetStream) && THRICE_DNN_FIND(BackendCreateDescriptor) &&
         THRICE_DNN_FIND(BackendDestroyDescriptor) && THRICE_DNN_FIND(BackendSetAttribute) &&
         THRICE_DNN_FIND(BackendGetAttribute) && THRICE_DNN_FIND(BackendFinalize) &&
         THRICE_DNN_FIND(BackendExecute);
#undef THRICE_DNN_FIND
}

using Opened = VendorLibrary<DnnApi>;

const Opened& opened(int driver_version) {
  static const Opened one(
      library_paths("THRICE_CUDNN", {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"},
                    "libcudnn.so.9 not found; install NVIDIA's cuDNN 9"),
      find_all, "cuDNN 9", driver_version);
  return one;
}

// Owns the descriptors that it makes.
class Descriptors {
 public:
  explicit Descriptors(const DnnApi& api) : a_(api) {}
  Descriptors(const Descriptors&) = delete;
  ~Descriptors() {
    while (!made_.empty()) {
      a_.BackendDestroyDescriptor(made_.back());
      made_.pop_back();
    }
  }
  DnnDescriptor make(int kind) {
    DnnDescriptor made = nullptr;
    check(a_.BackendCreateDescriptor(kind, &made), "making a descriptor");
    made_.push_back(made);
    return made;
  }
  void set(DnnDescriptor of, int name, int type, int64_t count, const void* values) const {
    check(a_.BackendSetAttribute(of, name, type, count, values), "setting an attribute");
  }
  void set(DnnDescriptor of, int name, DnnDescriptor value) const {
    set(of, name, kDnnTypeDescriptor, 1, &value);
  }
  void set(DnnDescriptor of, int name, const std::vector<int64_t>& values) const {
    set(of, name, kDnnTypeInt64, static_cast<int64_t>(values.size()), values.data());
  }
  void finalize(DnnDescriptor made) const { check(a_.BackendFinalize(made), "completing a descriptor"); }
  void check(int status, const char* doing) const {
    if (status == kOk) return;
    char words[256] = {};
    a_.GetLastErrorString(words, sizeof(words) - 1);
    throw Error(Code::kLaunchFailed, fmt::format("cuDNN: {}: status {}: {}", doing, status, words));
  }

 private:
  const DnnApi& a_;
  std::vector<DnnDescriptor> made_;
};

std::vector<int64_t> dense(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

DnnDescriptor tensor(Descriptors& d, int64_t id, const std::vector<int64_t>& shape, int64_t alignment) {
  const DnnDescriptor t = d.make(kDnnTensor);
  d.set(t, kDnnTensorId, {id});
  d.set(t, kDnnTensorDataType, kDnnTypeDataType, 1, &kDnnFloat);
  d.set(t, kDnnTensorAlignment, {alignment});
  d.set(t, kDnnTensorDimensions, shape);
  d.set(t, kDnnTensorStrides, dense(shape));
  d.finalize(t);
  return t;
}

// The operation graph of one convolution at the extents and the alignment of `key`.
DnnDescriptor graph_of(Descriptors& d, DnnHandle handle, int spatial, const std::vector<int64_t>& key,
                       int64_t alignment) {
  std::vector<int64_t> x{key[ConvolutionExtents::kBatch],
                         key[ConvolutionExtents::kGroups] * key[ConvolutionExtents::kGroupChannels]},
      w{key[ConvolutionExtents::kOutputs], key[ConvolutionExtents::kGroupChannels]},
      y{key[ConvolutionExtents::kBatch], key[ConvolutionExtents::kOutputs]}, strides, dilations, pads;
  const auto add_axis = [&](const std::array<int64_t, ConvolutionExtents::kAxisCount>& axis) {
    x.push_back(axis[ConvolutionExtents::kIn]);
    w.push_back(axis[ConvolutionExtents::kKernel]);
    y.push_back(axis[ConvolutionExtents::kOut]);
    strides.push_back(axis[ConvolutionExtents::kStride]);
    dilations.push_back(axis[ConvolutionExtents::kDilation]);
    pads.push_back(axis[ConvolutionExtents::kPad]);
  };
  if (spatial == 1) add_axis({1, 1, 1, 1, 1, 0});  // the library wants two axes or three
  for (size_t k = 0; k < static_cast<size_t>(spatial); ++k) {
    std::array<int64_t, ConvolutionExtents::kAxisCount> axis{};
    std::copy_n(key.begin() + static_cast<std::ptrdiff_t>(ConvolutionExtents::axis(k, 0)), axis.size(),
                axis.begin());
    add_axis(axis);
  }

  const DnnDescriptor convolution = d.make(kDnnConvolution);
  d.set(convolution, kDnnConvolutionComputeType, kDnnTypeDataType, 1, &kDnnFloat);
  d.set(convolution, kDnnConvolutionMode, kDnnTypeConvolutionMode, 1, &kDnnCrossCorrelation);
  d.set(convolution, kDnnConvolutionSpatial, {static_cast<int64_t>(strides.size())});
  d.set(convolution, kDnnConvolutionBeginPads, pads);
  d.set(convolution, kDnnConvolutionEndPads, pads);
  d.set(convolution, kDnnConvolutionStrides, strides);
  d.set(convolution, kDnnConvolutionDilations, dilations);
  d.finalize(convolution);

  const float one = 1, zero = 0;
  const DnnDescriptor forward = d.make(kDnnConvolutionForward);
  d.set(forward, kDnnForwardConvolution, convolution);
  d.set(forward, kDnnForwardX, tensor(d, kIdX, x, alignment));
  d.set(forward, kDnnForwardW, tensor(d, kIdW, w, alignment));
  d.set(forward, kDnnForwardY, tensor(d, kIdY, y, alignment));
  d.set(forward, kDnnForwardAlpha, kDnnTypeFloat, 1, &one);
  d.set(forward, kDnnForwardBeta, kDnnTypeFloat, 1, &zero);
  d.finalize(forward);

  const DnnDescriptor graph = d.make(kDnnOperationGraph);
  d.set(graph, kDnnGraphHandle, kDnnTypeHandle, 1, &handle);
  d.set(graph, kDnnGraphOperations, forward);
  d.finalize(graph);
  return graph;
}

// Whether the engine of a configuration computes as float32 arithmetic does, in a fixed order.
bool keeps_float32(Descriptors& d, const DnnApi& a, DnnDescriptor config) {
  DnnDescriptor engine = d.make(kDnnEngine);
  int64_t count = 0;
  if (a.BackendGetAttribute(config, kDnnEngineConfigEngine, kDnnTypeDescriptor, 1, &count, &engine) != kOk)
    return false;
  int notes[kDnnMostNotes] = {};
  if (a.BackendGetAttribute(engine, kDnnEngineNumericalNote, kDnnTypeNumericalNote, kDnnMostNotes, &count,
                            notes) != kOk)
    return false;
  return std::none_of(notes, notes + std::clamp<int64_t>(count, 0, kDnnMostNotes),
                      [](int note) { return note >= kDnnFirstInexact && note <= kDnnLastInexact; });
}

}  // namespace

std::string cudnn_version(int driver_version, std::string* reason) {
  const Opened& o = opened(driver_version);
  if (reason) *reason = o.reason;
  return o.version;
}

// One a context, shared by its convolutions. The library wants one call at a time on it.
struct CudnnConvolution::Handle {
  ContextPtr context;
  const DnnApi& a;
  DnnHandle handle = nullptr;
  std::mutex mutex;

  Handle(ContextPtr c, const DnnApi& api) : context(std::move(c)), a(api) {
    if (const int status = a.Create(&handle); status != kOk)
      throw Error(Code::kLaunchFailed, fmt::format("{}: cuDNN {}: starting the library: status {}",
                                                   context->spec.id, context->spec.cudnn, status));
  }
  ~Handle() {
    if (context->api.CtxPushCurrent_v2(context->handle) != kCuSuccess) return;
    a.Destroy(handle);
    CUcontext popped = nullptr;
    context->api.CtxPopCurrent_v2(&popped);
  }
  static std::shared_ptr<Handle> of(const ContextPtr& context) {
    const Opened& o = opened(0);  // opened when the device was described
    if (o.version.empty())
      throw Error(Code::kUnsupported, fmt::format("{}: the program calls cuDNN, but: {}. Or optimize the "
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

// An execution plan with what it refers to.
struct CudnnConvolution::Plan {
  Descriptors descriptors;
  DnnDescriptor plan = nullptr;

  explicit Plan(const DnnApi& a) : descriptors(a) {}
};

CudnnConvolution::CudnnConvolution(const ContextPtr& context, const artifact::LibraryConvolution& convolution)
    : context_(context), convolution_(convolution), handle_(Handle::of(context)) {}
CudnnConvolution::~CudnnConvolution() = default;

// `key`: the launch's integers, then alignment and bytes of workspace. The library's list for these extents,
// and behind it the engines that take nearly everything; of those that keep float32's accuracy and make a
// plan the one at the schedule's place, or the last.
std::shared_ptr<const CudnnConvolution::Plan> CudnnConvolution::plan(const std::vector<int64_t>& key) const {
  if (const auto it = plans_.find(key); it != plans_.end()) return it->second;
  const DnnApi& a = handle_->a;
  const int64_t workspace = key.back(), alignment = key[key.size() - 2];
  auto chosen = std::make_shared<Plan>(a);
  Descriptors& d = chosen->descriptors;
  const DnnDescriptor graph = graph_of(d, handle_->handle, convolution_.spatial, key, alignment);
  int64_t place = 0;
  for (const int mode : {kDnnHeuristicA, kDnnHeuristicFallback}) {
    const DnnDescriptor heuristic = d.make(kDnnHeuristic);
    d.set(heuristic, kDnnHeuristicGraph, graph);
    d.set(heuristic, kDnnHeuristicMode, kDnnTypeHeuristicMode, 1, &mode);
    if (a.BackendFinalize(heuristic) != kOk) continue;
    std::vector<DnnDescriptor> configs;
    for (int64_t i = 0; i < kListed; ++i) configs.push_back(d.make(kDnnEngineConfig));
    int64_t found = 0;
    if (a.BackendGetAttribute(heuristic, kDnnHeuristicResults, kDnnTypeDescriptor, kListed, &found,
                              configs.data()) != kOk)
      continue;
    for (int64_t i = 0; i < std::min(found, kListed); ++i) {
      if (!keeps_float32(d, a, configs[static_cast<size_t>(i)])) continue;
      const DnnDescriptor plan = d.make(kDnnExecutionPlan);
      d.set(plan, kDnnPlanHandle, kDnnTypeHandle, 1, &handle_->handle);
      d.set(plan, kDnnPlanEngineConfig, configs[static_cast<size_t>(i)]);
      int64_t bytes = 0, count = 0;
      if (a.BackendFinalize(plan) != kOk ||
          a.BackendGetAttribute(plan, kDnnPlanWorkspaceBytes, kDnnTypeInt64, 1, &count, &bytes) != kOk ||
          bytes > workspace)
        continue;
      chosen->plan = plan;
      if (place++ == key[ConvolutionExtents::kAlgorithm]) break;
    }
    if (place > key[ConvolutionExtents::kAlgorithm]) break;
  }
  if (!chosen->plan)
    throw Error(Code::kLaunchFailed,
                fmt::format("{}: cuDNN {} has no float32 algorithm for {} at [{}] with {} bytes of workspace",
                            context_->spec.id, context_->spec.cudnn, convolution_.symbol(),
                            fmt::join(key.begin(), key.end() - 2, ", "), workspace));
  if (plans_.size() >= kPlansKept) plans_.clear();
  plans_[key] = chosen;
  return chosen;
}

void CudnnConvolution::enqueue(const artifact::Launch& launch, const std::vector<CUdeviceptr>& addresses,
                               size_t workspace_bytes, CUstream stream) const {
  const std::string symbol = convolution_.symbol();
  if (launch.extents.size() != ConvolutionExtents::count(convolution_.spatial))
    throw Error(Code::kInternal, fmt::format("'{}' was given {} integers", symbol, launch.extents.size()));
  const CUdeviceptr x = buffer_at(addresses, convolution_.x, symbol),
                    w = buffer_at(addresses, convolution_.w, symbol),
                    y = buffer_at(addresses, convolution_.y, symbol),
                    workspace = buffer_at(addresses, convolution_.workspace, symbol);
  std::vector<int64_t> key(launch.extents.begin(), launch.extents.end());
  if (key[ConvolutionExtents::kGroupChannels] == 0) {
    size_t bytes = sizeof(float);
    for (const size_t extent : {size_t{ConvolutionExtents::kBatch}, size_t{ConvolutionExtents::kOutputs}})
      bytes *= static_cast<size_t>(key[extent]);
    for (size_t k = 0; k < static_cast<size_t>(convolution_.spatial); ++k)
      bytes *= static_cast<size_t>(key[ConvolutionExtents::axis(k, ConvolutionExtents::kOut)]);
    context_->api.check(context_->api.MemsetD8Async(y, 0, bytes, stream),
                        context_->spec.id + ": clearing an empty convolution");
    return;
  }
  key.push_back(alignment_of({x, w, y}, kAligned));
  key.push_back(static_cast<int64_t>(workspace_bytes));
  const std::lock_guard<std::mutex> lock(handle_->mutex);
  const std::shared_ptr<const Plan> p = plan(key);
  const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  void* const pointers[] = {pointer(x), pointer(w), pointer(y)};
  void* const scratch = pointer(workspace);
  Descriptors d(handle_->a);
  const DnnDescriptor pack = d.make(kDnnVariantPack);
  d.set(pack, kDnnPackIds, {kIdX, kIdW, kIdY});
  d.set(pack, kDnnPackPointers, kDnnTypePointer, 3, pointers);
  d.set(pack, kDnnPackWorkspace, kDnnTypePointer, 1, &scratch);
  d.finalize(pack);
  d.check(handle_->a.SetStream(handle_->handle, stream), "taking a stream");
  d.check(handle_->a.BackendExecute(handle_->handle, p->plan, pack), "launching a convolution");
}

}  // namespace thrice::backend::cuda
