// Four threads ask while the release is exchanged under them; no request fails.
//   c++ -std=c++20 examples/02_swap.cc -I include -L build/release -lthrice -o swap && ./swap old.thrice
//   new.thrice 4
// The number after the files is taken for every symbolic extent. Inputs: float32 only.
#include <thrice/session.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s RELEASE NEXT [EXTENT]\n", argv[0]);
    return 2;
  }
  const int64_t extent = argc > 3 ? std::atoll(argv[3]) : 1;
  thrice::Session session;
  thrice::Status status = thrice::Session::load(argv[1], {}, &session);
  if (!status.ok()) {
    std::fprintf(stderr, "loading: %s\n", status.message.c_str());
    return 1;
  }

  std::vector<thrice::TensorView> inputs;
  std::vector<std::vector<float>> memory;
  for (const thrice::TensorInfo& info : session.inputs()) {
    if (info.dtype != thrice::DType::kF32) {
      std::fprintf(stderr, "input '%s' is not float32\n", info.name.c_str());
      return 1;
    }
    thrice::TensorView& view = inputs.emplace_back();
    for (int64_t e : info.shape) view.shape.push_back(e < 0 ? extent : e);
    view.data = memory.emplace_back(static_cast<size_t>(view.size()), 0.5f).data();
  }

  std::atomic<bool> is_swapped{false};
  std::atomic<int> before{0}, after{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int more = 5; more > 0; more -= is_swapped) {
        thrice::Outputs outputs;
        const bool late = is_swapped;
        const thrice::Status s = session.run(inputs, &outputs);
        if (s.ok())
          ++(late ? after : before);
        else if (++failed == 1)
          std::fprintf(stderr, "running: %s\n", s.message.c_str());
      }
    });
  status = session.swap(argv[2]);
  is_swapped = true;
  for (std::thread& thread : threads) thread.join();
  if (!status.ok()) std::fprintf(stderr, "swap: %s\n", status.message.c_str());
  std::printf("%d answers until the swap, %d after it, %d failed\n", before.load(), after.load(),
              failed.load());
  return status.ok() && failed == 0 ? 0 : 1;
}
