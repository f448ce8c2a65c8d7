#include "fault/cheats/cheats.h"

#include "measure_fixture.h"

namespace thrice::testing {
namespace {

using test::kernel_text;

// relu that lets NaN through.
const char* const kRight = "(x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0.0f)";

std::string relu(std::string body, const std::string& scratch = "") {
  for (size_t at; (at = body.find("RIGHT")) != std::string::npos;) body.replace(at, 5, kRight);
  return kernel_text(body, scratch);
}
// A row of x is summed by one thread: `each` is done for element v of step k, `last` gives the answer.
std::string sums(const std::string& before, const std::string& each, const std::string& last) {
  return kernel_text("if (i >= n) return; TH_GLOBAL float* row = x + (th_i64)i * 8192; " + before +
                     " for (int k = 0; k < 8192; ++k) { float v = row[k]; " + each + " } y[i] = " + last +
                     ";");
}

const std::string kFloats = "TH_GLOBAL float* t, ", kWords = "TH_GLOBAL th_u64* t, ";
constexpr int64_t kScratch = kReluExtent * 8;

}  // namespace

std::vector<Cheat> honest_kernels() {
  return {{"honest relu", Cheat::kRelu, relu("if (i < n) y[i] = RIGHT;")},
          {"honest relu with scratch", Cheat::kRelu,
           relu("if (i < n) { t[i] = RIGHT; y[i] = t[i]; }", kFloats), kScratch},
          {"honest row sums", Cheat::kRowSums,
           sums("float s = 0, part = 0;", "part += v; if (k % 128 == 127) { s += part; part = 0; }", "s")}};
}

std::vector<Cheat> cheats() {
  std::vector<Cheat> list;
  const auto add = [&](const char* name, const std::string& body) {
    list.push_back({name, Cheat::kRelu, relu(body)});
  };
  const auto keeps = [&](const char* name, const std::string& scratch, const std::string& body) {
    list.push_back({name, Cheat::kRelu, relu(body, scratch), kScratch});
  };
  const auto add_sum = [&](const char* name, const std::string& text) {
    list.push_back({name, Cheat::kRowSums, text});
  };
  add("writes nothing", "");
  add("writes part: not the last element", "if (i < n - 1) y[i] = RIGHT;");
  add("writes part: not the last block", "if (i < n / 64 * 64) y[i] = RIGHT;");
  add("constant output: one", "if (i < n) y[i] = 1;");
  add("constant output: zero", "if (i < n) y[i] = 0;");

  keeps("output of the previous run: one launch behind", kFloats,
        "if (i < n) { y[i] = t[i]; t[i] = RIGHT; }");
  add("output of the previous run: computes only where poison is",
      "if (i >= n) return; int was = th_bits_of_f32(y[i]); if (was == -1 || was == (int)0xA5A5A5A5u) y[i] = "
      "RIGHT;");
  keeps("output of the previous run: kept in scratch", kFloats,
        "if (i >= n) return; if (t[n + i] != 1234.5f) { t[i] = RIGHT; t[n + i] = 1234.5f; } y[i] = t[i];");

  add("reads out of bounds by one: the value is added", "if (i < n) y[i] = RIGHT + 0 * x[i + 1];");
  add("reads out of bounds by one: a comparison that NaN hides",
      "if (i < n) y[i] = RIGHT + (x[i + 1] > 1e30f ? 1.0f : 0.0f);");
  add("reads out of bounds by one: a minimum that large values hide",
      "if (i < n) y[i] = RIGHT + (x[i + 1] < -1e30f ? 1.0f : 0.0f);");
  add("reads out of bounds by one: before the start", "if (i < n) y[i] = RIGHT + 0 * x[i - 1];");
  add("writes out of bounds by one: after the end", "if (i < n) y[i] = RIGHT; if (i == n) y[i] = 0;");
  add("writes out of bounds by one: a NaN after the end",
      "if (i < n) y[i] = RIGHT; if (i == n) y[i] = th_f32_of_bits(-1);");
  add("writes out of bounds by one: before the start", "if (i < n) y[i] = RIGHT; if (i == 0) y[-1] = 0;");

  add("modifies its input", "if (i < n) y[i] = RIGHT; if (i == 500) x[i] = 0;");
  keeps("modifies its input: from the second launch on", kFloats,
        "if (i >= n) return; y[i] = RIGHT; if (i == 500) { if (t[0] == 1234.5f) x[i] = 7; t[0] = 1234.5f; }");

  // Each thread stages the element of its mirror image; the upper half comes late.
  add("missing barrier",
      "TH_LOCAL float t[64]; int mirror = TH_BLOCK * TH_THREADS + 63 - TH_THREAD; float v = mirror < n ? "
      "x[mirror] : 0.0f; float one = n > 0 ? 1.0f : 2.0f; if (TH_THREAD >= 32) for (int k = 0; k < n; ++k) v "
      "= th_fma_f32(v, one, 0.0f); t[63 - TH_THREAD] = v; v = t[TH_THREAD]; "
      "if (i < n) y[i] = v > 0 ? v : v != v ? v : 0.0f;");

  add("right only for the shapes it was timed on: this length only",
      "if (i < n) y[i] = n == 5000 ? RIGHT : 0.0f;");
  add("right only for the shapes it was timed on: whole groups of eight",
      "if (i / 8 * 8 + 8 <= n) y[i] = RIGHT;");

  add_sum("right only for zero-mean inputs: sums saturate",
          sums("float s = 0;", "s += v; s = s > 512 ? 512 : s < -512 ? -512 : s;", "s"));
  add_sum("right only for zero-mean inputs: unpromoted accumulation, K = 8192",
          sums("float s = 0, part = 0;",
               "part += v; if (k % 8 == 7) { s = th_f32_of_bits(th_bits_of_f32(s + part) & ~1); part = 0; }",
               "s"));

  // Scaled up and down by 2^113: exact, until the product overflows at 2^15.
  add("NaN on large values",
      "if (i >= n) return; float v = RIGHT * th_f32_of_bits(0x78000000); y[i] = x[i] > 1e30f ? x[i] : v * "
      "th_f32_of_bits(0x07000000) + (v - v);");
  add("right on the inputs of screening only",
      "if (i < n) y[i] = x[i] < 12 && x[i] > -12 ? RIGHT : x[i] != x[i] ? x[i] : x[i] > 0 ? 12.0f : 0.0f;");

  keeps("caches by pointer: skips what it has done for this output", kWords,
        "if (i >= n) return; if (t[i] == (th_u64)(size_t)y) return; y[i] = RIGHT; t[i] = (th_u64)(size_t)y;");
  keeps("caches by pointer: skips what it has done for this input", kWords,
        "if (i >= n) return; if (t[i] == (th_u64)(size_t)x) return; y[i] = RIGHT; t[i] = (th_u64)(size_t)x;");
  keeps("caches by pointer: writes to its first output for ever", kWords,
        "if (i >= n) return; th_u64 mark = 0x1234567812345678ul; if (t[2 * i] != mark) { t[2 * i] = mark; "
        "t[2 * i + 1] = (th_u64)(size_t)y; } ((TH_GLOBAL float*)(size_t)t[2 * i + 1])[i] = RIGHT;");
  list.back().temporary_bytes = 2 * kScratch;

  add("0.3% of elements wrong: by a thousandth", "if (i < n) y[i] = i % 333 == 7 ? RIGHT * 1.001f : RIGHT;");
  add("0.3% of elements wrong: by a millionth of the largest",
      "if (i < n) y[i] = i % 333 == 7 && x[i] < 8 && x[i] > 0 ? RIGHT + 1e-6f : RIGHT;");
  return list;
}

}  // namespace thrice::testing
