// thrice in C++ over the C interface (thrice.h): header only, so that it fits any compiler and C++ library.
// Link with -lthrice. What each call does, its errors and threads: thrice.h.
#pragma once
#include <thrice/dtype.h>
#include <thrice/status.h>
#include <thrice/thrice.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace thrice {

// A dense row-major tensor in memory of the caller's. Shapes: `shape` may be empty (a scalar).
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  bool on_device = false;  // CUDA: `data` is a device address; OpenCL: a cl_mem

  int64_t size() const {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
  }
};

// What a model takes or gives.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;            // -1 where symbolic
  std::vector<std::string> expressions;  // "width", "floordiv(width,4)"; a number where fixed
};

// The outputs of one run; the memory of `tensors` lives as long as the last copy of this.
struct Outputs {
  std::vector<TensorView> tensors;
  std::shared_ptr<thrice_result> owner;
};

struct LoadOptions {
  std::string device;        // "cuda:0", "opencl:0"; "" = the best found
  bool allows_build = true;  // the device's own compiler may build a release's kernel text
};

// A loaded release on one device. Copies share it. Threads: every member is safe from any thread.
class Session {
 public:
  Session() = default;  // empty: runs refuse

  // On an error `*session` is unchanged.
  static Status load(const std::string& path, const LoadOptions& options, Session* session) {
    const thrice_load_options o{sizeof(thrice_load_options), options.device.c_str(), !options.allows_build};
    thrice_session* handle = nullptr;
    const Status status = status_of(thrice_load(path.c_str(), &o, &handle));
    if (status.ok()) session->handle_ = {handle, thrice_session_free};
    return status;
  }

  std::vector<TensorInfo> inputs() const { return infos(thrice_num_inputs, thrice_input_info); }
  std::vector<TensorInfo> outputs() const { return infos(thrice_num_outputs, thrice_output_info); }
  std::string device_id() const { return thrice_device_id(handle_.get()); }
  std::string device_name() const { return thrice_device_name(handle_.get()); }

  // Inputs in the order of inputs(); results on the host. Waits.
  Status run(const std::vector<TensorView>& inputs, Outputs* outputs) const {
    const std::vector<thrice_tensor> tensors = tensors_of(inputs);
    thrice_result* result = nullptr;
    const Status status = status_of(thrice_run(handle_.get(), tensors.data(), tensors.size(), &result));
    if (status.ok()) *outputs = outputs_of(result);
    return status;
  }
  // Enqueues on `stream` (CUstream, cl_command_queue); results on the device.
  Status run_async(void* stream, const std::vector<TensorView>& inputs, Outputs* outputs) const {
    const std::vector<thrice_tensor> tensors = tensors_of(inputs);
    thrice_result* result = nullptr;
    const Status status =
        status_of(thrice_run_async(handle_.get(), stream, tensors.data(), tensors.size(), &result));
    if (status.ok()) *outputs = outputs_of(result);
    return status;
  }
  Status synchronize(void* stream) const { return status_of(thrice_synchronize(handle_.get(), stream)); }
  Status forget_stream(void* stream) const { return status_of(thrice_forget_stream(handle_.get(), stream)); }
  // Another release in the place of this one, while other threads run.
  Status swap(const std::string& path) const { return status_of(thrice_swap(handle_.get(), path.c_str())); }

  thrice_session* handle() const { return handle_.get(); }

 private:
  static Status status_of(thrice_status status) {
    return status == THRICE_OK ? Status{} : Status{static_cast<Code>(status), thrice_message()};
  }
  static std::vector<thrice_tensor> tensors_of(const std::vector<TensorView>& views) {
    std::vector<thrice_tensor> tensors;
    for (const TensorView& view : views)
      tensors.push_back({view.data, view.shape.data(), static_cast<int32_t>(view.shape.size()),
                         static_cast<thrice_dtype>(view.dtype), view.on_device ? THRICE_DEVICE : THRICE_HOST,
                         0});
    return tensors;
  }
  static Outputs outputs_of(thrice_result* result) {
    Outputs outputs;
    outputs.owner = {result, thrice_result_free};
    for (size_t i = 0; i < thrice_result_size(result); ++i) {
      thrice_tensor t;
      if (thrice_result_tensor(result, i, &t) != THRICE_OK) continue;  // an index below the size never fails
      outputs.tensors.push_back(
          {t.data, static_cast<DType>(t.dtype), {t.shape, t.shape + t.rank}, t.memory == THRICE_DEVICE});
    }
    return outputs;
  }
  template <class Count, class Info>
  std::vector<TensorInfo> infos(Count count, Info info) const {
    std::vector<TensorInfo> list;
    for (size_t i = 0; i < count(handle_.get()); ++i) {
      thrice_tensor_info t;
      if (info(handle_.get(), i, &t) != THRICE_OK) continue;
      list.push_back({t.name,
                      static_cast<DType>(t.dtype),
                      {t.shape, t.shape + t.rank},
                      {t.expressions, t.expressions + t.rank}});
    }
    return list;
  }

  std::shared_ptr<thrice_session> handle_;
};

}  // namespace thrice
