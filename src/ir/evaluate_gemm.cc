#include "ir/evaluate_gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace thrice::ir {
namespace {

// Blocks: a B panel fits L1, an A block L2, a B block L3.
constexpr int64_t kDepth = 256, kTall = 96, kWide = 512;

// tile[ROWS][COLUMNS] = sum over k of a[k][ROWS] * b[k][COLUMNS], both packed, COLUMNS of two vectors. Each
// element is one chain of multiply-adds in the order of k, whatever the shape of the tile.
template <class Vector, int ROWS>
[[gnu::always_inline]] inline void tile_body(int64_t depth, const double* a, const double* b, double* tile) {
  constexpr int kLanes = sizeof(Vector) / sizeof(double);
  Vector acc[ROWS][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vector b0, b1;
    std::memcpy(&b0, b, sizeof b0);
    std::memcpy(&b1, b + kLanes, sizeof b1);
    for (int r = 0; r < ROWS; ++r) {
      acc[r][0] += a[r] * b0;
      acc[r][1] += a[r] * b1;
    }
    a += ROWS;
    b += 2 * kLanes;
  }
  std::memcpy(tile, acc, sizeof acc);
}

using Vector4 = double __attribute__((vector_size(32)));
using Vector8 = double __attribute__((vector_size(64)));

struct Tile {
  int64_t rows, columns;
  void (*multiply)(int64_t depth, const double* a, const double* b, double* tile);
};
constexpr int64_t kMostTile = 12 * 16;

void tile_plain(int64_t depth, const double* a, const double* b, double* tile) {
  tile_body<Vector4, 6>(depth, a, b, tile);
}
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void tile_avx2(int64_t depth, const double* a, const double* b, double* tile) {
  tile_body<Vector4, 6>(depth, a, b, tile);  // 12 of 16 registers
}
// GCC splits vectors of 64 bytes in two unless told otherwise; Clang does not, and knows no such word.
#if defined(__clang__)
#define THRICE_AVX512 "avx512f,avx512vl"
#else
#define THRICE_AVX512 "avx512f,avx512vl,prefer-vector-width=512"
#endif
[[gnu::target(THRICE_AVX512)]] void tile_avx512(int64_t depth, const double* a, const double* b,
                                                double* tile) {
  tile_body<Vector8, 12>(depth, a, b, tile);  // 24 of 32 registers
}
#endif
Tile choose_tile() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return {12, 16, tile_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {6, 8, tile_avx2};
#endif
  return {6, 8, tile_plain};
}

// Packs `lines` lines (rows of A, columns of B) in groups of WIDTH, the lines of a group side by side.
template <int64_t WIDTH>
void pack(const double* from, int64_t line_stride, int64_t depth_stride, int64_t lines, int64_t depth,
          double* to) {
  const int64_t whole = lines - lines % WIDTH, rest = lines - whole;
  if (line_stride == 1) {
    constexpr int64_t kStreams = 8;  // rows read side by side
    for (int64_t k0 = 0; k0 < depth; k0 += kStreams)
      for (int64_t l = 0; l < whole; l += WIDTH)
        for (int64_t k = k0; k < std::min(depth, k0 + kStreams); ++k)
          std::memcpy(to + l * depth + k * WIDTH, from + l + k * depth_stride, WIDTH * sizeof(double));
  } else {
    for (int64_t l = 0; l < whole; l += WIDTH) {
      const double* base = from + l * line_stride;
      double* group = to + l * depth;
      for (int64_t k = 0; k < depth; ++k, group += WIDTH)
        for (int64_t r = 0; r < WIDTH; ++r) group[r] = base[r * line_stride + k * depth_stride];
    }
  }
  if (rest == 0) return;
  const double* base = from + whole * line_stride;
  double* group = to + whole * depth;
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t r = 0; r < WIDTH; ++r)
      group[k * WIDTH + r] = r < rest ? base[r * line_stride + k * depth_stride] : 0;
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
  const bool wide_tile = tile.columns == 16;
  const int64_t deep = std::min(k, kDepth);
  // Kept by the thread: products are many, and some small.
  static thread_local std::vector<double> pa, pb;
  const auto room = [](std::vector<double>& buffer, int64_t elements) {
    if (buffer.size() < static_cast<size_t>(elements)) buffer.resize(static_cast<size_t>(elements));
  };
  room(pa, round_up(std::min(m, kTall), tile.rows) * deep);
  room(pb, round_up(std::min(n, kWide), tile.columns) * deep);
  double sums[kMostTile];
  for (int64_t n0 = 0; n0 < n; n0 += kWide) {
    const int64_t wide = std::min(kWide, n - n0);
    for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, k - k0);
      (wide_tile ? pack<16> : pack<8>)(b.data + k0 * b.row + n0 * b.column, b.column, b.row, wide, depth,
                                       pb.data());
      for (int64_t m0 = 0; m0 < m; m0 += kTall) {
        const int64_t tall = std::min(kTall, m - m0);
        (wide_tile ? pack<12> : pack<6>)(a.data + m0 * a.row + k0 * a.column, a.row, a.column, tall, depth,
                                         pa.data());
        for (int64_t j = 0; j < wide; j += tile.columns)
          for (int64_t i = 0; i < tall; i += tile.rows) {
            tile.multiply(depth, pa.data() + i * depth, pb.data() + j * depth, sums);
            const int64_t rows = std::min(tile.rows, tall - i), columns = std::min(tile.columns, wide - j);
            for (int64_t r = 0; r < rows; ++r) {
              double* to = c + (m0 + i + r) * ldc + n0 + j;
              const double* from = sums + r * tile.columns;
              for (int64_t q = 0; q < columns; ++q) to[q] += from[q];
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
