#include "ir/evaluate_gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace thrice::ir {
namespace {

constexpr int64_t kRows = 6, kColumns = 8;                // one register tile: 12 accumulators of 4 doubles
constexpr int64_t kDepth = 256, kTall = 96, kWide = 512;  // blocks: B panel fits L1, A block L2, B block L3

using Vector = double __attribute__((vector_size(32)));

// tile[6][8] = sum over k of a[k][6] * b[k][8], both packed.
[[gnu::always_inline]] inline void tile_body(int64_t depth, const double* a, const double* b, double* tile) {
  Vector acc[kRows][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vector b0, b1;
    std::memcpy(&b0, b, sizeof b0);
    std::memcpy(&b1, b + 4, sizeof b1);
    for (int64_t r = 0; r < kRows; ++r) {
      acc[r][0] += a[r] * b0;
      acc[r][1] += a[r] * b1;
    }
    a += kRows;
    b += kColumns;
  }
  std::memcpy(tile, acc, sizeof acc);
}

void tile_plain(int64_t depth, const double* a, const double* b, double* tile) {
  tile_body(depth, a, b, tile);
}
using Tile = void (*)(int64_t, const double*, const double*, double*);
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void tile_avx2(int64_t depth, const double* a, const double* b, double* tile) {
  tile_body(depth, a, b, tile);
}
Tile choose_tile() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? tile_avx2 : tile_plain;
}
#else
Tile choose_tile() { return tile_plain; }
#endif

// Packs `lines` lines of width `width` (rows of A, columns of B) in groups, the lines of a group side by
// side.
void pack(const double* from, int64_t line_stride, int64_t depth_stride, int64_t lines, int64_t depth,
          int64_t width, double* to) {
  for (int64_t l = 0; l < lines; l += width) {
    const int64_t here = std::min(width, lines - l);
    const double* base = from + l * line_stride;
    for (int64_t k = 0; k < depth; ++k, to += width) {
      for (int64_t r = 0; r < here; ++r) to[r] = base[r * line_stride + k * depth_stride];
      for (int64_t r = here; r < width; ++r) to[r] = 0;
    }
  }
}

double dot(const double* a, const double* b, int64_t n) {
  double sum[4] = {};  // four chains hide the latency of the add
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int64_t r = 0; r < 4; ++r) sum[r] += a[i + r] * b[i + r];
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

constexpr int64_t kThin = 3;  // up to so many rows or columns, packing costs more than it saves

// Thin products (recurrent cells, one position of a convolution), each matrix read once where it lies. False
// where the layout is not the one that allows it.
bool thin_product(int64_t m, int64_t n, int64_t k, MatrixView<double> a, MatrixView<double> b, double* c,
                  int64_t ldc) {
  if (m <= kThin && b.column == 1) {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p) {
        const double x = a.data[i * a.row + p * a.column];
        const double* row = b.data + p * b.row;
        for (int64_t j = 0; j < n; ++j) c[i * ldc + j] += x * row[j];
      }
    return true;
  }
  const bool few_rows = m <= kThin && b.row == 1, few_columns = n <= kThin && a.column == 1;
  if (!few_rows && !few_columns) return false;
  std::vector<double> line(static_cast<size_t>(k));
  if (few_rows) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) line[static_cast<size_t>(p)] = a.data[i * a.row + p * a.column];
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] += dot(line.data(), b.data + j * b.column, k);
    }
    return true;
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) line[static_cast<size_t>(p)] = b.data[p * b.row + j * b.column];
    for (int64_t i = 0; i < m; ++i) c[i * ldc + j] += dot(a.data + i * a.row, line.data(), k);
  }
  return true;
}

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, MatrixView<double> a, MatrixView<double> b, double* c,
          int64_t ldc) {
  if (m <= 0 || n <= 0 || k <= 0) return;
  if ((m <= kThin || n <= kThin) && thin_product(m, n, k, a, b, c, ldc)) return;
  static const Tile tile = choose_tile();
  const int64_t deep = std::min(k, kDepth);
  std::vector<double> pa(static_cast<size_t>(round_up(std::min(m, kTall), kRows) * deep));
  std::vector<double> pb(static_cast<size_t>(round_up(std::min(n, kWide), kColumns) * deep));
  double sums[kRows * kColumns];
  for (int64_t n0 = 0; n0 < n; n0 += kWide) {
    const int64_t wide = std::min(kWide, n - n0);
    for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, k - k0);
      pack(b.data + k0 * b.row + n0 * b.column, b.column, b.row, wide, depth, kColumns, pb.data());
      for (int64_t m0 = 0; m0 < m; m0 += kTall) {
        const int64_t tall = std::min(kTall, m - m0);
        pack(a.data + m0 * a.row + k0 * a.column, a.row, a.column, tall, depth, kRows, pa.data());
        for (int64_t j = 0; j < wide; j += kColumns)
          for (int64_t i = 0; i < tall; i += kRows) {
            tile(depth, pa.data() + i * depth, pb.data() + j * depth, sums);
            const int64_t rows = std::min(kRows, tall - i), columns = std::min(kColumns, wide - j);
            for (int64_t r = 0; r < rows; ++r) {
              double* to = c + (m0 + i + r) * ldc + n0 + j;
              for (int64_t q = 0; q < columns; ++q) to[q] += sums[r * kColumns + q];
            }
          }
      }
    }
  }
}

void gemm(int64_t m, int64_t n, int64_t k, MatrixView<int64_t> a, MatrixView<int64_t> b, int64_t* c,
          int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      const auto x = static_cast<uint64_t>(a.data[i * a.row + p * a.column]);
      if (x == 0) continue;
      int64_t* to = c + i * ldc;
      const int64_t* from = b.data + p * b.row;
      for (int64_t j = 0; j < n; ++j)
        to[j] = static_cast<int64_t>(static_cast<uint64_t>(to[j]) +
                                     x * static_cast<uint64_t>(from[j * b.column]));
    }
}

}  // namespace thrice::ir
