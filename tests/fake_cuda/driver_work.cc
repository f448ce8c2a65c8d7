// Second half of the fake driver: programs, streams, events and graphs.
#include <algorithm>
#include <cstring>

#include "machine.h"

using namespace fake_cuda;

extern "C" {
// The fake NVRTC's binaries are the source text: a kernel is found by its name before a bracket.
int cuModuleLoadData(Module** module, const void* image) {
  ENTER("ModuleLoadData");
  const std::string text = static_cast<const char*>(image);
  if (text.rfind("// fake cubin\n", 0) != 0) return kInvalidImage;
  *module = new Module{text, {}};
  ++state().live["modules"];
  return kOk;
}
int cuModuleUnload(Module* module) {
  ENTER_ANYWHERE("ModuleUnload");
  finish_all();
  delete module;
  --state().live["modules"];
  return kOk;
}
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  ENTER("ModuleGetFunction");
  const size_t at = module->text.find(" " + std::string(name) + "(");
  if (at == std::string::npos) return kNotFound;
  const std::string signature = module->text.substr(at, module->text.find(')', at) - at);
  module->functions.push_back(
      {name, 1 + static_cast<size_t>(std::count(signature.begin(), signature.end(), ','))});
  *function = &module->functions.back();
  return kOk;
}
int cuFuncGetAttribute(int* value, int, Function*) {
  ENTER("FuncGetAttribute");
  *value = 0;
  return kOk;
}
int cuFuncSetAttribute(Function*, int, int) {
  ENTER("FuncSetAttribute");
  return kOk;
}
int cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned, Stream* stream, void** params, void**) {
  ENTER("LaunchKernel");
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  if (!known(stream) || !is_launchable(grid, block)) return kInvalidValue;
  const Work work = work_of(function, params);
  if (stream->capture) {
    stream->capture->nodes.push_back({{work}, {}});
    return kOk;
  }
  stream->queue.emplace_back([work, at = stream->card] { run_kernel(work, at); });
  return kOk;
}

int cuStreamCreate(Stream** stream, unsigned) {
  ENTER("StreamCreate");
  *stream = new Stream{current().back()->card, {}};
  state().streams.insert(*stream);
  ++state().live["streams"];
  return kOk;
}
int cuStreamDestroy_v2(Stream* stream) {
  ENTER_ANYWHERE("StreamDestroy_v2");
  if (!known(stream)) return kInvalidHandle;
  finish(stream);
  state().streams.erase(stream);
  delete stream;
  --state().live["streams"];
  return kOk;
}
int cuStreamSynchronize(Stream* stream) {
  ENTER("StreamSynchronize");
  if (!known(stream)) return kInvalidHandle;
  finish(stream);
  return card(stream->card).broken;
}
int cuStreamBeginCapture_v2(Stream* stream, int) {
  ENTER("StreamBeginCapture_v2");
  stream->capture = new Graph;
  ++state().live["graphs"];
  return kOk;
}
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  ENTER("StreamEndCapture");
  *graph = stream->capture;
  stream->capture = nullptr;
  return kOk;
}

int cuEventCreate(Event** event, unsigned) {
  ENTER("EventCreate");
  *event = new Event;
  ++state().live["events"];
  return kOk;
}
int cuEventDestroy_v2(Event* event) {
  ENTER_ANYWHERE("EventDestroy_v2");
  delete event;
  --state().live["events"];
  return kOk;
}
int cuEventRecord(Event* event, Stream* stream) {
  ENTER("EventRecord");
  event->stream = stream;
  return kOk;
}
int cuEventSynchronize(Event* event) {
  ENTER("EventSynchronize");
  if (Stream* stream = known(event->stream)) {
    finish(stream);
    return card(stream->card).broken;
  }
  return kOk;
}
int cuEventElapsedTime(float* milliseconds, Event*, Event*) {
  ENTER("EventElapsedTime");
  *milliseconds = 0.25f;
  return kOk;
}

int cuGraphCreate(Graph** graph, unsigned) {
  ENTER("GraphCreate");
  *graph = new Graph;
  ++state().live["graphs"];
  return kOk;
}
int cuGraphDestroy(Graph* graph) {
  ENTER_ANYWHERE("GraphDestroy");
  delete graph;
  --state().live["graphs"];
  return kOk;
}
int cuGraphAddKernelNode(Node** node, Graph* graph, Node* const* before, size_t count, const NodeParams* p) {
  ENTER("GraphAddKernelNode");
  if (!is_launchable(p->grid, p->block)) return kInvalidValue;
  graph->nodes.push_back({{work_of(p->function, p->params)}, {before, before + count}});
  *node = &graph->nodes.back();
  return kOk;
}
// A map's first eight bytes are its address: what a kernel sees of it.
int cuTensorMapEncodeTiled(void* map, int, unsigned, void* address, const unsigned long long*,
                           const unsigned long long*, const unsigned*, const unsigned*, int, int, int, int) {
  ENTER("TensorMapEncodeTiled");
  if (reinterpret_cast<unsigned long long>(address) % 16 != 0) return kInvalidValue;
  std::memcpy(map, &address, sizeof address);
  return kOk;
}
int cuGraphAddChildGraphNode(Node** node, Graph* graph, Node* const* before, size_t count, Graph* child) {
  ENTER("GraphAddChildGraphNode");
  graph->nodes.push_back({all_work(*child), {before, before + count}});
  *node = &graph->nodes.back();
  return kOk;
}
int cuGraphInstantiateWithFlags(Exec** exec, Graph* graph, unsigned long long) {
  ENTER("GraphInstantiateWithFlags");
  *exec = new Exec;
  for (const Node& node : graph->nodes) (*exec)->nodes.emplace_back(&node, node);
  ++state().live["execs"];
  return kOk;
}
int cuGraphExecDestroy(Exec* exec) {
  ENTER_ANYWHERE("GraphExecDestroy");
  finish_all();
  delete exec;
  --state().live["execs"];
  return kOk;
}
int cuGraphExecKernelNodeSetParams(Exec* exec, Node* node, const NodeParams* p) {
  ENTER("GraphExecKernelNodeSetParams");
  for (auto& [identity, kept] : exec->nodes)
    if (identity == node) {
      kept.work = {work_of(p->function, p->params)};
      return kOk;
    }
  return kInvalidHandle;
}
#ifndef FAKE_CUDA_OLD
int cuGraphExecChildGraphNodeSetParams(Exec* exec, Node* node, Graph* child) {
  ENTER("GraphExecChildGraphNodeSetParams");
  for (auto& [identity, kept] : exec->nodes)
    if (identity == node && kept.work.size() == all_work(*child).size()) {
      kept.work = all_work(*child);
      return kOk;
    }
  return kInvalidValue;
}
#endif
int cuGraphLaunch(Exec* exec, Stream* stream) {
  ENTER("GraphLaunch");
  if (!known(stream)) return kInvalidHandle;
  for (const Node* node : order_of(*exec))
    for (const Work& work : node->work)
      stream->queue.emplace_back([work, at = stream->card] { run_kernel(work, at); });
  return kOk;
}
}
