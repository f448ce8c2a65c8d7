#include "family/delta_rule/chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/choices.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

constexpr int64_t kMakers = 8;  // warps

// Four warps a 64 columns walk.
int64_t threads_of(int64_t columns) { return 2 * columns + 32 * kMakers; }

// As th_delta_layout in kernels/cuda/delta_rule.cuh.
int64_t shared_bytes(int64_t columns) {
  const int64_t stages = columns == 64 ? 11 : 10;
  const int64_t stage = 8192 + 4096 + 16 * (columns * 2 + 16) + 2 * 16 * 48 + 4 * 36 * 4;
  return stages * (ceil_div(stage, 1024) * 1024) + columns / 16 * 16 * 48 +
         kMakers * (16 * 20 * 4 + 64 + 512) + 2 * stages * 8 + 1024;
}

// An input that the kernel may read as it lies.
bool is_bare_input(const Workload& workload, ir::ValueId value) {
  const auto& inputs = workload.graph.inputs;
  const auto at = std::find(inputs.begin(), inputs.end(), value);
  return at != inputs.end() && !ir::is_shape_input(workload, static_cast<size_t>(at - inputs.begin()));
}

int64_t items(const DeltaRuleForm& form, const Facts& facts, int64_t columns) {
  return extent_at(facts, form.last, 0) * extent_at(facts, form.q, 2) * (128 / columns);
}

}  // namespace

void emit_chunks(ProgramDraft& draft, const DeltaRuleForm& form, const Schedule& s) {
  Emitter e(draft, "delta_rule_chunks");
  const int64_t columns = s.get("columns"), blocks = s.get("blocks");
  e.preamble(Template("cuda/delta_rule.cuh").section("functions"));
  const auto set = [&](const char* field, const std::string& value) {
    e.line(fmt::format("job.{} = {};", field, value));
  };
  const auto input = [&](const char* field, ir::ValueId value) {
    set(field, value == ir::kNoValue ? "nullptr" : draft.input_name(value));
  };
  const auto output = [&](const char* field, int position) {
    set(field, position < 0 ? "nullptr" : draft.output_name(static_cast<size_t>(position)));
  };
  e.line("th_delta_job job;");
  input("q", form.q);
  input("k", form.k);
  input("v", form.v);
  input("g", form.g);
  input("beta", form.beta);
  input("a_log", form.a_log);
  input("dt_bias", form.dt_bias);
  input("first", form.first);
  output("out", form.out);
  output("last", form.last_out);
  const bool wide = form.offsets != ir::kNoValue && e.graph().value(form.offsets).type.dtype == DType::kI64;
  input("offsets", wide ? ir::kNoValue : form.offsets);
  input("wide_offsets", wide ? form.offsets : ir::kNoValue);
  const Index sequences = e.dim(form.last, 0), heads = e.dim(form.q, 2);
  set("heads", e.text(heads));
  set("sequences", e.text(sequences));
  set("items", e.text(e.product({sequences, heads, e.constant(128 / columns)})));
  set("tokens", e.text(e.dim(form.q, 1)));
  set("scale", float_literal(DType::kF32, form.scale));
  set("lower_bound", float_literal(DType::kF32, form.lower_bound));
  set("epsilon", float_literal(DType::kF32, form.epsilon));
  e.line(fmt::format("th_delta_rule<{}, {}>(job);", columns / 64, kMakers));
  const int64_t threads = threads_of(columns);
  draft.kernels.push_back(e.finish(
      [form, columns, blocks, threads](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, std::min(blocks, items(form, f, columns)), threads);
        launch.dynamic_shared_bytes = shared_bytes(columns);
      },
      threads, 1, true));
}

Schedule default_chunks(const DeltaRuleForm& form, const Facts& facts, const DeviceSpec& device) {
  const int64_t blocks = device.compute_units;
  // Half of the columns a block where whole heads would leave half of the multiprocessors idle.
  const int64_t columns = 2 * items(form, facts, 128) <= blocks ? 64 : 128;
  return {"delta_rule", "chunks", {{"columns", columns}, {"blocks", blocks}}};
}

std::vector<artifact::Parameter> chunks_parameters(const DeviceSpec& device) {
  return {{"columns", {64, 128}}, {"blocks", {device.compute_units}}};
}

Refusal refuse_chunks(const Workload& workload, const DeltaRuleForm& form, const Schedule& s,
                      const DeviceSpec& device) {
  if (device.api != target::Api::kCuda || device.architecture != "sm_90a")
    return "chunks needs wgmma and registers that move between warps (sm_90a)";
  const ir::Graph& graph = workload.graph;
  const auto dim = [&](ir::ValueId v, size_t axis) -> const ir::Dim& {
    return graph.value(v).type.shape[axis];
  };
  if (graph.value(form.q).type.dtype != DType::kBF16) return "chunks is written for bf16";
  if (form.depth != 128 || dim(form.v, 3) != ir::Dim(128)) return "chunks is written for heads of 128";
  if (dim(form.g, 3) != ir::Dim(128) || dim(form.dt_bias, 1) != ir::Dim(128))
    return "chunks is written for a gate a channel";
  // 16 steps of exp(-5) are just within float32 and tf32.
  if (!(form.lower_bound >= -5 && form.lower_bound <= 0))
    return "gates below exp(-5) leave float32 in a chunk";
  for (const ir::ValueId v :
       {form.q, form.k, form.v, form.g, form.beta, form.a_log, form.dt_bias, form.first, form.offsets})
    if (v != ir::kNoValue && !is_bare_input(workload, v)) return "chunks copies operands as they are";
  const int64_t columns = s.get("columns");
  if ((columns != 64 && columns != 128) || s.get("blocks") < 1) return "columns are 64 or 128";
  if (shared_bytes(columns) + 1024 > device.optin_shared_bytes)
    return fmt::format("{} bytes of shared memory a block; {} allows {}", shared_bytes(columns) + 1024,
                       device.name, device.optin_shared_bytes);
  return refuse_device(workload, device, threads_of(columns), 0);
}

}  // namespace thrice::family
