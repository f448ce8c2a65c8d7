// State of the fake driver and what its functions share. Everything is under one lock.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_cuda.h"
#include "script.h"

namespace fake_cuda {

using Address = unsigned long long;

enum : int {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLastBreaking = 719,
};

struct Context {
  size_t card;
};
struct Function {
  std::string name;
  size_t arguments;
};
struct Module {
  std::string text;
  std::deque<Function> functions;
};
struct Block {
  size_t bytes, card;
  std::unique_ptr<char[]> memory;
};
// As the driver's struct: what a kernel node is given.
struct NodeParams {
  Function* function;
  unsigned grid[3], block[3], shared_bytes;
  void** params;
  void** extra;
};
struct Work {
  Function* function;
  std::vector<Address> arguments;
};
struct Node {
  std::vector<Work> work;  // a kernel, or a child graph's
  std::vector<const Node*> before;
};
struct Graph {
  std::deque<Node> nodes;
};
struct Exec {
  std::vector<std::pair<const Node*, Node>> nodes;
};
struct Stream {
  size_t card;
  std::deque<std::function<void()>> queue;
  Graph* capture = nullptr;
};
struct Event {
  Stream* stream = nullptr;
};

struct State {
  std::recursive_mutex mutex;
  Script script;
  std::map<std::string, long long> calls, live;
  std::map<Address, Block> blocks;
  std::set<Stream*> streams;
  std::vector<Context> contexts = std::vector<Context>(64);
  fake_cuda_kernel on_kernel = nullptr;
};

State& state();
std::vector<Context*>& current();  // of this thread
Card& card(size_t index);
// Counts a call. The code that the script gives to it, or that the current card is broken with.
int enter(const std::string& function, bool needs_context);
// Whether [address, address + bytes) lies in one living block of a card.
bool is_inside(Address address, size_t bytes, size_t card);
void run_kernel(const Work& work, size_t card);
// Runs what waits in a stream. Work behind a kernel that broke the card is lost.
void finish(Stream* stream);
void finish_all();
Stream* known(Stream* stream);  // nullptr: no such stream
Work work_of(Function* function, void** params);
bool is_launchable(const unsigned* grid, const unsigned* block);
// Order of a graph's nodes that its edges allow; the last added first, so that a missing edge shows.
std::vector<const Node*> order_of(const Exec& exec);
std::vector<Work> all_work(const Graph& graph);

}  // namespace fake_cuda

#define ENTER(name)                                     \
  const std::lock_guard lock(fake_cuda::state().mutex); \
  if (const int code = fake_cuda::enter(name, true)) return code
#define ENTER_ANYWHERE(name)                            \
  const std::lock_guard lock(fake_cuda::state().mutex); \
  if (const int code = fake_cuda::enter(name, false)) return code
