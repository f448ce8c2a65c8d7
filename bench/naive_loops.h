// The rival that every programmer writes first: plain loops, one thread, -O2; and how to time things.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace thrice::bench {

// c[z][m][n] = sum_k a[z][m][k] b[z][k][n]; `shared_b`: b has no z.
inline void naive_matmul(const float* a, const float* b, float* c, int64_t batch, int64_t m, int64_t n,
                         int64_t k, bool shared_b) {
  for (int64_t z = 0; z < batch; ++z)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += a[(z * m + i) * k + p] * b[((shared_b ? 0 : z) * k + p) * n + j];
        c[(z * m + i) * n + j] = sum;
      }
}

// A convolution of two spatial axes, NCHW and OIHW.
struct NaiveConv {
  int64_t batch = 1, channels = 1, height = 1, width = 1;               // x
  int64_t outputs = 1, group_channels = 1, kernel_y = 1, kernel_x = 1;  // w
  int64_t out_height = 1, out_width = 1;                                // y
  int64_t group = 1, stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0, dilation_y = 1, dilation_x = 1;
};

inline void naive_conv(const float* x, const float* w, float* y, const NaiveConv& c) {
  const int64_t per_group = c.outputs / c.group;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.outputs; ++o)
      for (int64_t p = 0; p < c.out_height; ++p)
        for (int64_t q = 0; q < c.out_width; ++q) {
          float sum = 0;
          const int64_t first = o / per_group * c.group_channels;
          for (int64_t i = 0; i < c.group_channels; ++i)
            for (int64_t u = 0; u < c.kernel_y; ++u)
              for (int64_t v = 0; v < c.kernel_x; ++v) {
                const int64_t iy = p * c.stride_y + u * c.dilation_y - c.pad_y,
                              ix = q * c.stride_x + v * c.dilation_x - c.pad_x;
                if (iy >= 0 && iy < c.height && ix >= 0 && ix < c.width)
                  sum += x[((n * c.channels + first + i) * c.height + iy) * c.width + ix] *
                         w[((o * c.group_channels + i) * c.kernel_y + u) * c.kernel_x + v];
              }
          y[((n * c.outputs + o) * c.out_height + p) * c.out_width + q] = sum;
        }
}

// Median time of `samples` runs.
inline double microseconds(const std::function<void()>& work, int samples) {
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace thrice::bench
