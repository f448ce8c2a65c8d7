// Would catch: a missing driver that is not told, NVRTC that does not build what a card would run; on a
// machine with a card: wrong arguments and offsets, graphs that forget an exchanged buffer, wrong
// architectures loaded.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <numeric>

#include "backend/backend.h"

namespace thrice::backend {
namespace {

artifact::KernelSource source() {
  artifact::KernelSource s;
  s.language = artifact::Language::kCuda;
  s.text =
      "extern \"C\" __global__ void add_scaled(const float* a, float* y, const int* E) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < E[0]) y[i] = a[i] + E[1];\n}\n";
  s.kernels = {"add_scaled"};
  s.key = "test";
  return s;
}

std::unique_ptr<Compiler> nvrtc(const std::string& architecture) {
  try {
    return cross_compiler(architecture);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kNotFound);
    return nullptr;
  }
}

TEST(Nvrtc, BuildsCubinsWithoutACard) {
  for (const char* architecture : {"sm_80", "sm_90a", "sm_103a"}) {
    const auto compiler = nvrtc(architecture);
    if (!compiler) GTEST_SKIP() << "skipped: no NVRTC on this machine";
    const artifact::KernelBinary binary = compiler->compile(source());
    EXPECT_EQ(binary.format, artifact::BinaryFormat::kCubin);
    EXPECT_EQ(binary.architecture, architecture);
    ASSERT_GT(binary.bytes.size(), 100u);
    EXPECT_EQ(binary.bytes[1], std::byte{'E'});  // an ELF file
    EXPECT_NE(compiler->version().find("--fmad=false"), std::string::npos);
  }
}

TEST(Nvrtc, BadSourceGivesTheLog) {
  const auto compiler = nvrtc("sm_90a");
  if (!compiler) GTEST_SKIP() << "skipped: no NVRTC on this machine";
  artifact::KernelSource bad = source();
  bad.text = "extern \"C\" __global__ void f(float* y) { y[0] = undeclared_thing; }";
  try {
    compiler->compile(bad);
    FAIL() << "built";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kCompileFailed);
    EXPECT_NE(std::string(e.what()).find("undeclared_thing"), std::string::npos) << e.what();
  }
}

// A program of nothing but library calls has no kernel in its text.
TEST(Nvrtc, BuildsATextWithoutKernels) {
  const auto compiler = nvrtc("sm_90a");
  if (!compiler) GTEST_SKIP() << "skipped: no NVRTC on this machine";
  artifact::KernelSource empty = source();
  empty.text = "// cublaslt:f32:f32:nn:0:1:2:3\n";
  EXPECT_GT(compiler->compile(empty).bytes.size(), 100u);
}

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    for (const BackendReport& r : list_backends())
      if (r.name == "cuda" && !r.available) GTEST_SKIP() << "skipped: " << r.reason;
    device = open_device("cuda:0");
    stream = device->make_stream();
    if (!device->compiler()) GTEST_SKIP() << "skipped: no NVRTC on this machine";
    program = device->load(device->compiler()->compile(source()), {"add_scaled"});
  }
  BufferSpan put(const std::vector<int32_t>& values) {
    BufferSpan span{device->allocate(values.size() * 4), 0, values.size() * 4};
    stream->copy_to_device(span, std::as_bytes(std::span(values)));
    return span;
  }
  BufferSpan floats(size_t n) {
    BufferSpan span{device->allocate(n * 4), 0, n * 4};
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 0.f);
    stream->copy_to_device(span, std::as_bytes(std::span(values)));
    return span;
  }
  std::vector<float> get(const BufferSpan& span) {
    std::vector<float> values(span.bytes / 4);
    stream->copy_to_host(std::as_writable_bytes(std::span(values)), span);
    return values;
  }
  RecordedLaunch add_scaled(BufferSpan a, BufferSpan y, int n, int shift) {
    RecordedLaunch l;
    l.program = program;
    l.launch.grid = {(n + 63) / 64, 1, 1};
    l.launch.block = {64, 1, 1};
    l.buffers = {std::move(a), std::move(y)};
    l.extents = put({n, shift});
    return l;
  }
  DevicePtr device;
  std::unique_ptr<Stream> stream;
  ProgramPtr program;
};

TEST_F(Cuda, LaunchesAndCopies) {
  const BufferSpan a = floats(100), whole{device->allocate(kAlignment * 2), 0, kAlignment * 2};
  stream->fill(whole, std::byte{0});
  stream->launch(add_scaled(a, {whole.buffer, kAlignment, 400}, 100, 7));
  const std::vector<float> got = get(whole);
  EXPECT_EQ(got[kAlignment / 4 - 1], 0);
  for (size_t i = 0; i < 100; ++i) ASSERT_EQ(got[kAlignment / 4 + i], static_cast<float>(i) + 7) << i;
  EXPECT_EQ(got[kAlignment / 4 + 100], 0);
}

TEST_F(Cuda, ReplayRunsAllAndTakesNewBuffers) {
  const BufferSpan a = floats(10), b = floats(10), y = floats(10), z = floats(10);
  auto replay = stream->record({add_scaled(a, b, 10, 1), add_scaled(a, a, 0, 0), add_scaled(b, y, 10, 1)});
  stream->replay(*replay);
  EXPECT_EQ(get(y)[9], 11);
  replay->set_buffer(2, 1, z);
  stream->replay(*replay);
  EXPECT_EQ(get(z)[9], 11);
  const auto begin = stream->record_event();
  for (int i = 0; i < 10; ++i) stream->replay(*replay);
  const auto end = stream->record_event();
  EXPECT_GT(end->microseconds_since(*begin), 0);
}

TEST_F(Cuda, LimitsAndWrongBinaries) {
  RecordedLaunch l = add_scaled(floats(8), floats(8), 8, 0);
  l.launch.block = {2048, 1, 1};
  EXPECT_THROW(stream->launch(l), Error);
  EXPECT_THROW(device->allocate(size_t{1} << 50), Error);
  artifact::KernelBinary other = device->compiler()->compile(source());
  EXPECT_GE(other.registers, 1);
  other.architecture = "sm_10";
  EXPECT_THROW(device->load(other, {"add_scaled"}), Error);
  EXPECT_GT(device->free_memory_bytes(), 0);
  const BufferSpan nothing{device->allocate(0), 0, 0};
  l = add_scaled(nothing, nothing, 0, 0);
  l.launch.grid = {1, 1, 1};
  stream->launch(l);  // touches nothing
  stream->synchronize();
}

// y = b * a for 8x8 matrices of 0 to 63, by the library: its first row is known.
float first_element() {
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += static_cast<float>(k * k * 8);
  return sum;
}

TEST_F(Cuda, LibraryProductsLaunchAndReplayWithNewBuffers) {
  if (device->spec().cublaslt.empty()) GTEST_SKIP() << "skipped: no cuBLASLt on this machine";
  artifact::KernelBinary binary = device->compiler()->compile(source());
  const std::vector<std::string> kernels{"cublaslt:f32:f32:nn:0:1:2:3", "add_scaled"};
  const ProgramPtr mixed = device->load(binary, kernels);
  const BufferSpan a = floats(64), b = floats(64), y = floats(64), z = floats(64), other = floats(64),
                   workspace{device->allocate(1 << 20), 0, 1 << 20};
  RecordedLaunch l;
  l.program = mixed;
  l.launch.extents = {1, 8, 8, 8, 0, 0, 0};
  l.buffers = {a, b, y, workspace};
  stream->launch(l);
  EXPECT_EQ(get(y)[0], first_element());
  l.launch.extents[6] = 1000;  // behind the end of the library's list
  stream->launch(l);
  EXPECT_EQ(get(y)[0], first_element());
  RecordedLaunch nothing = l, cleared = l, after = add_scaled(y, z, 64, 1);
  nothing.launch.grid = {0, 1, 1};
  cleared.launch.extents[3] = 0;  // a sum over nothing
  auto replay = stream->record({cleared, nothing, l, after});
  stream->fill(y, std::byte{0xff});
  stream->replay(*replay);
  EXPECT_EQ(get(z)[0], first_element() + 1);
  replay->set_buffer(2, 2, other);
  replay->set_buffer(3, 0, other);
  stream->replay(*replay);
  EXPECT_EQ(get(other)[0], first_element());
  EXPECT_EQ(get(y)[0], 0);
  // An address that is aligned to 4 bytes only: other algorithms, maybe another number of kernels.
  const BufferSpan odd{device->wrap(static_cast<char*>(y.buffer->native()) + 4, 252), 0, 252};
  RecordedLaunch small = l;
  small.launch.extents = {1, 7, 7, 8, 0, 0, 0};
  replay = stream->record({small});
  stream->replay(*replay);
  const float expected = get(y)[0];
  replay->set_buffer(0, 2, odd);
  stream->replay(*replay);
  EXPECT_EQ(get(y)[1], expected);
  small.launch.extents.pop_back();
  EXPECT_THROW(stream->launch(small), Error);
  EXPECT_THROW(device->load(binary, {"cublaslt:f32:f32:nn:0:1"}), Error);
}

// y = x * w with a window of ones: a sum over nine neighbours.
TEST_F(Cuda, LibraryConvolutionsLaunchAndReplayWithNewBuffers) {
  if (device->spec().cudnn.empty()) GTEST_SKIP() << "skipped: no cuDNN on this machine";
  artifact::KernelBinary binary = device->compiler()->compile(source());
  const ProgramPtr mixed = device->load(binary, {"cudnn:f32:2:0:1:2:3", "add_scaled"});
  const BufferSpan x = floats(64), y = floats(64), z = floats(64), other = floats(64), first = floats(65),
                   workspace{device->allocate(1 << 20), 0, 1 << 20};
  BufferSpan w{device->allocate(36), 0, 36};
  const std::vector<float> ones(9, 1.f);
  stream->copy_to_device(w, std::as_bytes(std::span(ones)));
  RecordedLaunch l;
  l.program = mixed;
  l.launch.extents = {1, 1, 1, 1, 0, 8, 8, 3, 1, 1, 1, 8, 8, 3, 1, 1, 1};
  l.buffers = {x, w, y, workspace};
  const float corner = 0 + 1 + 8 + 9;
  stream->launch(l);
  EXPECT_EQ(get(y)[0], corner);
  EXPECT_EQ(get(y)[9], 9 * 9);
  l.launch.extents[4] = 1000;  // behind the end of the library's list
  stream->launch(l);
  EXPECT_EQ(get(y)[0], corner);
  RecordedLaunch nothing = l, cleared = l, after = add_scaled(y, z, 64, 1);
  nothing.launch.grid = {0, 1, 1};
  cleared.launch.extents[2] = 0;  // no channels
  auto replay = stream->record({cleared, nothing, l, after});
  stream->fill(y, std::byte{0xff});
  stream->replay(*replay);
  EXPECT_EQ(get(z)[0], corner + 1);
  replay->set_buffer(2, 2, other);
  replay->set_buffer(3, 0, other);
  stream->replay(*replay);
  EXPECT_EQ(get(other)[0], corner);
  EXPECT_EQ(get(y)[0], 0);
  // An input that is aligned to 4 bytes only: elements 1 to 64.
  const BufferSpan odd{device->wrap(static_cast<char*>(first.buffer->native()) + 4, 256), 0, 256};
  replay->set_buffer(2, 0, odd);
  stream->replay(*replay);
  EXPECT_EQ(get(other)[0], corner + 4);
  l.launch.extents.pop_back();
  EXPECT_THROW(stream->launch(l), Error);
  EXPECT_THROW(device->load(binary, {"cudnn:f32:2:0:1"}), Error);
  EXPECT_THROW(device->load(binary, {"library:f32:2:0:1"}), Error);
}

}  // namespace
}  // namespace thrice::backend
