#include "family/conv/conv.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "family/conv/conv_library.h"
#include "family/conv/conv_problem.h"
#include "family/conv/conv_taps.h"
#include "family/drafted.h"
#include "family/gemm_keep.h"
#include "family/gemm_mma.h"
#include "family/gemm_wgmma16.h"

namespace thrice::family {

namespace {

constexpr const char* kTactics[] = {
    "naive",    "implicit",       "implicit_mma",      "implicit_wgmma",  "pointwise",
    "dot",      "direct",         "depthwise",         "panel",           "implicit_panel",
    "subpixel", "subpixel_tiled", "subpixel_mma",      "subpixel_wgmma",  "cublaslt",
    "cudnn",    "taps",           "pointwise_wgmma16", "implicit_wgmma16"};

// The kernel of gemm.h behind a tactic; "" = none.
std::string gemm_tactic(const std::string& tactic) {
  if (tactic == "implicit" || tactic == "subpixel_tiled") return "tiled";
  if (tactic == "implicit_mma" || tactic == "subpixel_mma") return "mma";
  if (tactic == "implicit_wgmma" || tactic == "subpixel_wgmma") return "wgmma";
  if (tactic == "pointwise_wgmma16" || tactic == "implicit_wgmma16") return "wgmma16";
  if (tactic == "pointwise" || tactic == "subpixel") return "vector";
  if (tactic == "panel" || tactic == "implicit_panel") return "panel";
  return tactic == "dot" || tactic == "cublaslt" ? tactic : "";
}

// `schedule`: nullptr where only the extents are asked for.
Gemm gemm_of(const ProgramDraft& draft, const ConvProblem& conv, const std::string& tactic,
             const Schedule* schedule = nullptr) {
  if (tactic == "implicit_mma" && schedule != nullptr)
    return implicit_gemm(draft, conv, legal_chunk(conv, schedule->get("tile_k")));
  if (tactic == "implicit_wgmma") return implicit_gemm(draft, conv, legal_chunk(conv, 64));
  if (tactic == "implicit" || tactic == "implicit_mma" || tactic == "implicit_panel" ||
      tactic == "implicit_wgmma16")
    return implicit_gemm(draft, conv);
  if (tactic == "pointwise" || tactic == "pointwise_wgmma16" || tactic == "panel" || tactic == "dot" ||
      tactic == "cublaslt")
    return pointwise_gemm(draft, conv);
  return subpixel_gemm(draft, conv);
}

// Reasons of the convolution itself against a tactic.
Refusal refuse_structure(const ConvProblem& conv, const std::string& tactic) {
  if (tactic == "naive" || tactic == "cudnn") return std::nullopt;
  if (tactic.rfind("subpixel", 0) == 0) {
    if (!conv.is_subpixel())
      return "taps overlap or leave gaps: only a transposed convolution whose stride is its kernel, "
             "unpadded, is one product";
    return std::nullopt;
  }
  if (conv.transposed) return fmt::format("{} is not written for transposed convolutions", tactic);
  if ((tactic == "pointwise" || tactic == "pointwise_wgmma16" || tactic == "panel" || tactic == "dot" ||
       tactic == "cublaslt") &&
      !conv.is_pointwise())
    return "not a 1x1 convolution of stride 1 without padding";
  if (tactic == "depthwise" || tactic == "taps") {
    if (!conv.is_depthwise()) return "more than one input channel a group";
    if (conv.spatial > 2) return "written for 1 and 2 spatial axes";
    int64_t taps = 1;
    for (const auto& a : conv.window.axes) {
      if (!a.kernel.dim.is_const()) return "the kernel's extent is only known at run time";
      taps *= a.kernel.dim.value();
    }
    if (taps > 64) return fmt::format("{} taps do not fit into registers", taps);
  }
  return std::nullopt;
}

int64_t lanes_of(const DeviceSpec& device) { return std::clamp<int64_t>(device.warp_size, 4, 16); }

struct ConvSize {
  int64_t batch, rows, outer, width, group;
};

ConvSize conv_size(const ConvProblem& conv, const Facts& facts) {
  ConvSize size{conv.batch.source(facts), conv.group_outputs.source(facts), 1,
                conv.window.axes.back().out.source(facts), conv.group};
  for (size_t a = 0; a + 1 < conv.spatial; ++a) size.outer *= conv.window.axes[a].out.source(facts);
  return size;
}

// Narrowest vectors that still cover the row, at most `most` of them.
std::pair<int64_t, int64_t> row_vectors(int64_t width, int64_t lanes, int64_t most) {
  while (lanes > 4 && width <= lanes / 2) lanes /= 2;
  int64_t best = 1, best_total = -1;
  for (int64_t v = most; v >= 1; --v) {
    const int64_t total = (width + v * lanes - 1) / (v * lanes) * (v * lanes);
    if (best_total < 0 || total < best_total) {
      best = v;
      best_total = total;
    }
  }
  return {lanes, best};
}

std::vector<std::pair<std::string, int64_t>> default_direct(const ConvSize& size, const DeviceSpec& device) {
  const auto [lanes, reg_v] = row_vectors(size.width, lanes_of(device), 2);
  int64_t reg_m = 1, waste = -1;
  for (const int64_t m :
       reg_v == 2 ? std::vector<int64_t>{6, 5, 4, 3, 2, 1} : std::vector<int64_t>{10, 8, 6, 5, 4, 2, 1}) {
    const int64_t total = (size.rows + m - 1) / m * m;
    if (waste < 0 || total < waste) {
      reg_m = m;
      waste = total;
    }
  }
  const int64_t row_tiles = (size.rows + reg_m - 1) / reg_m;
  int64_t items = 1;
  while (items < 8 && row_tiles % (items * 2) == 0) items *= 2;
  return {{"reg_m", reg_m}, {"reg_v", reg_v}, {"lanes", lanes}, {"items", items}};
}

std::vector<std::pair<std::string, int64_t>> default_depthwise(const ConvProblem& conv, const ConvSize& size,
                                                               const DeviceSpec& device) {
  const auto [lanes, reg_v] = row_vectors(size.width, lanes_of(device), 2);
  const int64_t rows = conv.spatial == 2 ? size.outer : 1;
  int64_t reg_p = 1;
  for (const int64_t p : {2, 3, 4})
    if (rows % p == 0) reg_p = p;
  if (reg_v * reg_p > 8) reg_p = 4 / reg_v;
  return {{"reg_p", reg_p}, {"reg_v", reg_v}, {"lanes", lanes}, {"items", 4}};
}

std::vector<std::pair<std::string, int64_t>> default_values(const ProgramDraft& draft,
                                                            const ConvProblem& conv,
                                                            const std::string& tactic, const Facts& facts,
                                                            const DeviceSpec& device) {
  if (tactic == "naive") return {{"threads", device.is_cpu ? 64 : 256}};
  if (tactic == "cudnn") return default_conv_library();
  if (tactic == "direct") return default_direct(conv_size(conv, facts), device);
  if (tactic == "taps") return default_conv_taps(conv, facts, device);
  if (tactic == "depthwise") return default_depthwise(conv, conv_size(conv, facts), device);
  return default_gemm(gemm_tactic(tactic), gemm_size(gemm_of(draft, conv, tactic), facts), device);
}

std::vector<artifact::Parameter> parameters_of(const std::string& tactic, const DeviceSpec& device) {
  if (tactic == "naive") return {{"threads", {32, 64, 128, 256}}};
  if (tactic == "cudnn") return conv_library_parameters();
  if (tactic == "direct")
    return {{"reg_m", {1, 2, 3, 4, 5, 6, 8, 10, 12}},
            {"reg_v", {1, 2, 3, 4}},
            {"lanes", {4, 8, 16}},
            {"items", {1, 2, 4, 8, 16}}};
  if (tactic == "taps") return conv_taps_parameters();
  if (tactic == "depthwise")
    return {{"reg_p", {1, 2, 3, 4, 6}},
            {"reg_v", {1, 2, 3, 4}},
            {"lanes", {4, 8, 16}},
            {"items", {1, 2, 4, 8, 16}}};
  return gemm_parameters(gemm_tactic(tactic), device);
}

class Conv final : public DraftedFamily {
 public:
  std::string_view name() const override { return "conv"; }

  Refusal match(const Workload& workload) const override {
    try {
      make_conv(workload);
      return std::nullopt;
    } catch (const NotMatched& reason) {
      return reason.reason;
    }
  }

  Schedule default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                            const DeviceSpec& device) const override {
    const ConvProblem conv = make_conv(workload);
    const ProgramDraft draft(workload);
    const Facts all = ir::bind(workload.graph, facts);
    const std::string tactic = default_tactic(draft, conv, all, device);
    return {"conv", tactic, default_values(draft, conv, tactic, all, device)};
  }

  ScheduleSpace space(const Workload& workload, const std::vector<Fact>& facts,
                      const DeviceSpec& device) const override {
    const ConvProblem conv = make_conv(workload);
    const ProgramDraft draft(workload);
    const Facts all = ir::bind(workload.graph, facts);
    ScheduleSpace space;
    for (const char* tactic : kTactics) {
      if (refuse_structure(conv, tactic)) continue;
      // Legal there, but depthwise, which holds vectors of a row, is always faster.
      if (device.is_cpu && std::string_view(tactic) == "taps") continue;
      const Schedule s{"conv", tactic, default_values(draft, conv, tactic, all, device)};
      if (illegal(workload, s, device)) continue;
      space.tactics.push_back({"conv", tactic, parameters_of(tactic, device)});
    }
    return space;
  }

  Refusal illegal(const Workload& workload, const Schedule& s, const DeviceSpec& device) const override {
    if (s.family != "conv" ||
        std::find(std::begin(kTactics), std::end(kTactics), s.tactic) == std::end(kTactics))
      return fmt::format("conv has no tactic '{}'", s.tactic);
    const ConvProblem conv = make_conv(workload);
    if (auto refusal = refuse_structure(conv, s.tactic)) return refusal;
    if (s.tactic == "naive") return refuse_device(workload, device, s.get("threads"), 0);
    if (s.tactic == "taps") return refuse_conv_taps(workload, conv, s, device);
    if (s.tactic == "cudnn") return refuse_conv_library(workload, conv, s, device);
    if (const std::string gemm = gemm_tactic(s.tactic); !gemm.empty()) {
      const ProgramDraft draft(workload);
      if (s.tactic == "pointwise_wgmma16" && !suits_wgmma16(pointwise_gemm(draft, conv)))
        return "lines of channels or positions are not whole 16 bytes: take implicit_wgmma16";
      Schedule inner = s;
      inner.tactic = gemm;
      return refuse_gemm(workload, gemm_of(draft, conv, s.tactic, &s), inner, device);
    }
    if (device.api == target::Api::kCuda)
      return fmt::format("{} keeps vectors of a row in one thread: OpenCL only; on a GPU take implicit",
                         s.tactic);
    if (!is_float(conv.dtype)) return fmt::format("{} is written for floats", s.tactic);
    const int64_t rows = s.tactic == "direct" ? s.get("reg_m") : s.get("reg_p"), lanes = s.get("lanes"),
                  vectors = s.get("reg_v");
    if (rows < 1 || vectors < 1 || (lanes != 4 && lanes != 8 && lanes != 16)) return "lanes are 4, 8 or 16";
    const int64_t element = conv.dtype == DType::kF64 ? 2 : 1;
    if (const int64_t sums = rows * vectors * lanes * element / lanes_of(device); sums > 24)
      return fmt::format("{} vector registers of sums; they would spill", sums);
    return refuse_device(workload, device, s.get("items"), 0);
  }

  std::vector<Share> shares(const Workload& workload, const Schedule& schedule) const override {
    const std::string gemm = gemm_tactic(schedule.tactic);
    const bool once = gemm.empty() ? schedule.tactic == "naive" || schedule.tactic == "direct" ||
                                         schedule.tactic == "depthwise"
                                   : stores_once(gemm);
    return once ? epilogue_shares(workload) : std::vector<Share>();
  }

  std::vector<KernelUse> uses(const Workload& workload, const Schedule& schedule) const override {
    return make_draft(workload, schedule, false).uses();
  }

 private:
  // Large convolutions of 16 bits on sm_90a. A copy of all windows costs less than gathering them two bytes
  // at a time into every block that needs them.
  static std::optional<std::string> default_of_16_bits(const ProgramDraft& draft, const ConvProblem& conv,
                                                       const Facts& facts, const DeviceSpec& device) {
    constexpr double kLarge = 4e8;  // multiplications and additions
    if (device.api != target::Api::kCuda || device.architecture != "sm_90a" || conv.group != 1 ||
        (conv.dtype != DType::kF16 && conv.dtype != DType::kBF16))
      return std::nullopt;
    const GemmSize size = gemm_size(implicit_gemm(draft, conv), facts);
    if (size.rows < 32 || size.depth < 32 ||
        2.0 * static_cast<double>(size.rows * size.cols) * static_cast<double>(size.depth) < kLarge)
      return std::nullopt;
    if (conv.is_pointwise() && suits_wgmma16(pointwise_gemm(draft, conv))) return "pointwise_wgmma16";
    // The copy's elements are counted by 32 bits.
    const double copied =
        static_cast<double>(size.batches * size.cols) * static_cast<double>(size.depth + 63);
    if (copied > static_cast<double>(INT32_MAX)) return std::nullopt;
    return "implicit_wgmma16";
  }
  static std::string default_tactic(const ProgramDraft& draft, const ConvProblem& conv, const Facts& facts,
                                    const DeviceSpec& device) {
    const bool vectors = device.is_cpu && device.api != target::Api::kCuda && is_float(conv.dtype);
    const auto product = [&](const char* mma, const char* tiled, const Gemm& gemm) {
      const std::string tactic = default_gemm_tactic(gemm, gemm_size(gemm, facts), device);
      return tactic == "tiled" || tactic == "naive" ? tiled : mma;
    };
    if (conv.is_subpixel())
      return vectors ? "subpixel" : product("subpixel_mma", "subpixel_tiled", subpixel_gemm(draft, conv));
    if (conv.transposed) return "naive";
    if (!refuse_structure(conv, "depthwise")) return vectors ? "depthwise" : "taps";
    if (!vectors) {
      if (const auto tactic = default_of_16_bits(draft, conv, facts, device)) return *tactic;
      return product("implicit_mma", "implicit", implicit_gemm(draft, conv));
    }
    if (!conv.is_pointwise()) return "direct";
    const Gemm gemm = pointwise_gemm(draft, conv);
    const std::string tactic = default_gemm_tactic(gemm, gemm_size(gemm, facts), device);
    return tactic == "dot" || tactic == "panel" ? tactic : "pointwise";
  }

  ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool is_cpu) const override {
    ProgramDraft draft(workload);
    const ConvProblem conv = make_conv(workload);
    if (const std::string gemm = gemm_tactic(schedule.tactic); !gemm.empty()) {
      Schedule inner = schedule;
      inner.tactic = gemm;
      const std::string symbol = "conv_" + schedule.tactic;
      Gemm product = gemm_of(draft, conv, schedule.tactic, &schedule);
      // In the order of the kernel's steps neighbours in the depth are a window apart.
      if (schedule.tactic == "implicit_mma" && legal_chunk(conv, schedule.get("tile_k")) > 0) {
        product.sums = declare_mma_sums(draft, product, inner);
        keep_rows(draft, symbol, product);
      }
      emit_gemm(draft, symbol, product, inner, is_cpu);
    } else if (schedule.tactic == "naive") {
      draft.kernels.push_back(emit_conv_naive(draft, conv, schedule));
    } else if (schedule.tactic == "taps") {
      draft.kernels.push_back(emit_conv_taps(draft, conv, schedule));
    } else if (schedule.tactic == "cudnn") {
      emit_conv_library(draft, conv, schedule);
    } else if (schedule.tactic == "direct") {
      draft.kernels.push_back(emit_conv_direct(draft, conv, schedule));
    } else if (schedule.tactic == "depthwise") {
      draft.kernels.push_back(emit_conv_depthwise(draft, conv, schedule));
    } else {
      throw Error(Code::kInternal, fmt::format("conv has no tactic '{}'", schedule.tactic));
    }
    return draft;
  }
};

}  // namespace

const Family& conv_family() {
  static const Conv kFamily;
  return kFamily;
}

}  // namespace thrice::family
