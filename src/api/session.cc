// The functions of thrice.h on sessions.
#include <fmt/format.h>

#include <cstring>

#include "api/guard.h"
#include "api/tensors.h"
#include "runtime/deployment.h"
#include "runtime/shared_code.h"

using namespace thrice;

struct thrice_session {
  thrice_session(const backend::DevicePtr& device, const runtime::ReleasePtr& release, runtime::Builder build)
      : deployment(device, release, std::move(build)),
        graph(release->graph),
        inputs(*graph, graph->inputs, graph->input_names),
        outputs(*graph, graph->outputs, graph->output_names) {}
  runtime::Deployment deployment;
  const std::shared_ptr<const ir::Graph> graph;  // of the first release: a swap keeps inputs and outputs
  const api::Description inputs, outputs;
};

namespace {

void demand(bool is_given, const char* what) {
  if (!is_given) throw Error(Code::kInvalidArgument, fmt::format("{} is NULL", what));
}

runtime::ReleasePtr read(const char* path) {
  return std::make_shared<const release::Release>(release::read_release(path));
}

// CUDA's own name of the default stream: nullptr asks the back end for a stream of its own.
void* stream_of(const thrice_session& session, void* stream) {
  constexpr uintptr_t kLegacyDefaultStream = 1;
  const bool is_cuda = session.deployment.device()->spec().api == target::Api::kCuda;
  return stream || !is_cuda ? stream : reinterpret_cast<void*>(kLegacyDefaultStream);
}

thrice_result* result_of(const runtime::Deployment& deployment, std::vector<exec::Operand> outputs) {
  return new thrice_result{
      std::make_shared<const api::ResultData>(api::ResultData{deployment.device(), std::move(outputs)})};
}

thrice_load_options options_of(const thrice_load_options* given) {
  thrice_load_options options{};
  if (!given) return options;
  if (given->struct_size < sizeof options)
    throw Error(Code::kInvalidArgument, fmt::format("thrice_load_options: struct_size is {}, not {}",
                                                    given->struct_size, sizeof options));
  return *given;
}

}  // namespace

thrice_status thrice_load(const char* path, const thrice_load_options* options, thrice_session** session) {
  return api::guarded([&] {
    demand(path, "path");
    demand(session, "session");
    const thrice_load_options o = options_of(options);
    const backend::DevicePtr device = runtime::shared_device(o.device ? o.device : "");
    runtime::Builder build = o.no_build ? runtime::Builder() : runtime::driver_builder(device);
    *session = new thrice_session(device, read(path), std::move(build));
  });
}
void thrice_session_free(thrice_session* session) { delete session; }

size_t thrice_num_inputs(const thrice_session* session) { return session ? session->inputs.size() : 0; }
size_t thrice_num_outputs(const thrice_session* session) { return session ? session->outputs.size() : 0; }
thrice_status thrice_input_info(const thrice_session* session, size_t index, thrice_tensor_info* info) {
  return api::guarded([&] {
    demand(session, "session");
    demand(info, "info");
    *info = session->inputs.info(index);
  });
}
thrice_status thrice_output_info(const thrice_session* session, size_t index, thrice_tensor_info* info) {
  return api::guarded([&] {
    demand(session, "session");
    demand(info, "info");
    *info = session->outputs.info(index);
  });
}
const char* thrice_device_id(const thrice_session* session) {
  return session ? session->deployment.device()->spec().id.c_str() : "";
}
const char* thrice_device_name(const thrice_session* session) {
  return session ? session->deployment.device()->spec().name.c_str() : "";
}
thrice_status thrice_manifest_json(const thrice_session* session, char** json) {
  return api::guarded([&] {
    demand(session, "session");
    demand(json, "json");
    *json = api::copy_text(session->deployment.release()->manifest.to_json());
  });
}

thrice_status thrice_run(thrice_session* session, const thrice_tensor* inputs, size_t num_inputs,
                         thrice_result** result) {
  return api::guarded([&] {
    demand(session, "session");
    demand(result, "result");
    runtime::Deployment& deployment = session->deployment;
    const auto operands = api::operands_of(*deployment.device(), *session->graph, inputs, num_inputs);
    std::vector<exec::Operand> outputs;
    for (ir::Tensor& tensor : deployment.run(operands))
      outputs.push_back(exec::Operand::from_host(std::move(tensor)));
    *result = result_of(deployment, std::move(outputs));
  });
}

thrice_status thrice_run_async(thrice_session* session, void* stream, const thrice_tensor* inputs,
                               size_t num_inputs, thrice_result** result) {
  return api::guarded([&] {
    demand(session, "session");
    demand(result, "result");
    runtime::Deployment& deployment = session->deployment;
    const auto operands = api::operands_of(*deployment.device(), *session->graph, inputs, num_inputs);
    *result = result_of(deployment, deployment.run_on(stream_of(*session, stream), operands));
  });
}
thrice_status thrice_synchronize(thrice_session* session, void* stream) {
  return api::guarded([&] {
    demand(session, "session");
    session->deployment.synchronize(stream_of(*session, stream));
  });
}
thrice_status thrice_forget_stream(thrice_session* session, void* stream) {
  return api::guarded([&] {
    demand(session, "session");
    session->deployment.forget_stream(stream_of(*session, stream));
  });
}

thrice_status thrice_read(thrice_session* session, void* stream, const thrice_result* result, size_t index,
                          void* to, size_t bytes) {
  return api::guarded([&] {
    demand(session, "session");
    demand(result, "result");
    if (index >= result->data->outputs.size())
      throw Error(Code::kInvalidArgument,
                  fmt::format("output {} of {}", index, result->data->outputs.size()));
    const exec::Operand& o = result->data->outputs[index];
    if (o.bytes() != bytes)
      throw Error(Code::kInvalidArgument,
                  fmt::format("output {} has {} bytes, {} were asked for", index, o.bytes(), bytes));
    if (bytes == 0) return;
    demand(to, "to");
    const ir::Tensor tensor = o.host ? *o.host : session->deployment.read(stream_of(*session, stream), o);
    std::memcpy(to, tensor.data(), bytes);
  });
}

thrice_status thrice_swap(thrice_session* session, const char* path) {
  return api::guarded([&] {
    demand(session, "session");
    demand(path, "path");
    session->deployment.swap(read(path));
  });
}
