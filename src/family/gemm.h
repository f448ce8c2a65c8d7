// Matrix products for several rooms: matmul, and convolutions that are products (pointwise, implicit). The
// room says what an element of A and B is and what happens to an element of the product; the kernels here
// choose the order of work.
//
// product[z][m][n] = sum over k of a(z, m, k) * b(z, k, n)
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "family/heavy.h"

namespace thrice::family {

// An extent: as an expression, and as a number at launch.
struct Extent {
  ir::Dim dim;
  Source source;
};

// Where an element lies in memory, and when it is there: elsewhere it is zero ("" = it always is).
struct GemmPlace {
  std::string address, inside;
};

// A buffer argument whose bytes are a whole matrix, row-major: one for all batches, or one a batch in order.
struct GemmMatrix {
  ir::ValueId value = ir::kNoValue;
  bool is_batched = false;
};

struct Gemm {
  DType dtype = DType::kF32;  // of A, B and the product
  Extent batches, rows, cols, depth;
  // Text of an element at the compute type (may write declarations).
  std::function<std::string(Emitter&, Index z, Index m, Index k)> a;
  std::function<std::string(Emitter&, Index z, Index k, Index n)> b;
  // Address of an element whose neighbours in the named direction follow in memory; empty functions where
  // they do not.
  std::function<std::string(Emitter&, Index z, Index m, Index k)> a_along_k, b_along_k, b_along_n;
  // For operands without a prologue that are stored in `dtype`; empty functions elsewhere.
  // `in_fours`: four neighbours in the direction that follows in memory, counted from a multiple of four, are
  // aligned together and all inside or all outside; `in_eights`: eight.
  std::function<GemmPlace(Emitter&, Index z, Index m, Index k)> a_place;
  std::function<GemmPlace(Emitter&, Index z, Index k, Index n)> b_place;
  bool a_in_fours = false, b_in_fours = false, a_in_eights = false, b_in_eights = false;
  bool a_rows_follow = false;    // neighbours of A in m are closer in memory than those in k (trans_a)
  bool b_depth_follows = false;  // neighbours of B in k are closer in memory than those in n (trans_b)
  // Operands stored in `dtype` as a library takes them (gemm_library.h), and the output whose bytes are the
  // product's; nullopt and -1 where that is not so.
  std::optional<GemmMatrix> a_matrix, b_matrix;
  int plain_output = -1;
  int sums = -1;  // scratch that was declared for the tactic mma (declare_mma_sums)
  bool a_is_weight = false, b_is_weight = false;  // with a place, and the same bytes in every run
  std::function<void(Emitter&, Index z, Index m, Index n, const std::string& acc)> epilogue;
};

// Concrete extents that a default is chosen for.
struct GemmSize {
  int64_t batches = 1, rows = 1, cols = 1, depth = 1;
  DType dtype = DType::kF32;
  bool is_direct = false;  // both operands have places, in fours
};
GemmSize gemm_size(const Gemm& gemm, const Facts& facts);

// Each tactic: kernel text, rule-chosen parameters, choices, and reasons against a schedule.
// naive: one thread an element. parameters: threads.
// tiled: shared-memory tiles, register tiles; both languages. tile_m tile_n tile_k reg_m reg_n.
// mma: tensor cores, float32-accurate; CUDA only (gemm_mma.h).
// wgmma: tensor cores of sm_90a, float32-accurate (gemm_wgmma.h).
// wgmma16: f16 and bf16 operands as they lie in memory on the tensor cores of sm_90a (gemm_wgmma16.h).
// skinny: tensor cores for few rows, B straight into registers (gemm_skinny.h).
// cublaslt: the vendor's library where the device has it (gemm_library.h).
// vector: register tile of reg_m rows and reg_v vectors of `lanes` columns, no shared memory: for CPUs;
// OpenCL
//         only, since CUDA C++ has no float8 and a GPU wants neighbouring threads on neighbouring columns.
// panel: as vector, out of a copy of B's columns (gemm_panel.h): for CPUs, where B is large.
// dot: vectors along depth, for A and B^T that both lie along it; OpenCL only. reg_m reg_n lanes.
bool is_gemm_tactic(const std::string& tactic);
// Adds the kernels of a product to the draft: one, or a library's call and what follows it.
void emit_gemm(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm, const Schedule& schedule,
               bool is_cpu);
std::vector<std::pair<std::string, int64_t>> default_gemm(const std::string& tactic, const GemmSize& size,
                                                          const DeviceSpec& device);
std::vector<artifact::Parameter> gemm_parameters(const std::string& tactic, const DeviceSpec& device);
Refusal refuse_gemm(const Workload& workload, const Gemm& gemm, const Schedule& schedule,
                    const DeviceSpec& device);
// The tactic to take with no tuning.
std::string default_gemm_tactic(const Gemm& gemm, const GemmSize& size, const DeviceSpec& device);

// What the kernels of several tactics share. An extent as an index and as text; the batch, 0 where there is
// one.
Index extent_index(Emitter& e, const Extent& extent);
std::string extent_text(Emitter& e, const Extent& extent);
Index batch_index(Emitter& e, const Gemm& gemm);
// A finished tile of sums in shared memory: rows `pitch` apart; `parts` blocks of a cluster hold one each
// where it is above 1 (gemm_mma.cuh).
struct FinishedTile {
  std::string sums;  // the array
  int64_t rows = 0, cols = 0, pitch = 0, threads = 0, parts = 1;
  std::string thread = "TH_THREAD";  // 0 .. threads - 1
  bool packs = true;                 // the epilogue stores outputs only, so that it may be written twice
};
// Runs the epilogue over the tile at (block_m, block_n): sixteen bytes of a row at a time where neighbouring
// columns of all results are neighbours in memory (sums then lie on 16 bytes), else four rows at a time, so
// that what it reads of one row is on its way while others are computed. Without a branch: beyond an edge the
// last row or column is stored again. Uses the kernel's variables rank, parts, block_m, block_n.
void write_tile_stores(Emitter& e, const Gemm& gemm, Index z, const FinishedTile& tile);
// One block a tile of bm x bn and part of the depth.
void set_tile_grid(artifact::Launch& launch, const Gemm& gemm, const Facts& facts, int64_t bm, int64_t bn,
                   int64_t split, int64_t threads);
// ceil(extent / tile) as text: a literal where the extent is one, else an integer argument called `name`.
std::string tile_count(Emitter& e, const std::string& name, const Extent& extent, int64_t tile);

// Conditions as text, "" = always true. All of them; and "variable < extent", `text` being the extent, ""
// where whole tiles never reach beyond it.
std::string all_of(const std::vector<std::string>& conditions);
std::string below(const Extent& extent, const std::string& text, const std::string& variable, int64_t tile);

// "float8" and the like; lanes 1 is the scalar.
std::string vector_type(DType dtype, int64_t lanes);
// Steps of the depth after which a partial sum is added to the total: bounds the rounding error of long sums.
constexpr int64_t kPartialDepth = 512;

}  // namespace thrice::family
