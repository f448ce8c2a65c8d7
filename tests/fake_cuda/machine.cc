#include "machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace fake_cuda {

State& state() {
  static State* s = [] {
    auto* made = new State;  // outlives the tests' own static objects
    const char* path = std::getenv("FAKE_CUDA_SCRIPT");
    std::ifstream file(path ? path : "");
    std::stringstream text;
    text << file.rdbuf();
    made->script = parse(text.str());
    return made;
  }();
  return *s;
}

std::vector<Context*>& current() {
  static thread_local std::vector<Context*> stack;
  return stack;
}

Card& card(size_t index) {
  auto& cards = state().script.cards;
  if (index >= cards.size()) cards.resize(index + 1);  // of an object that outlived its script
  return cards[index];
}

static void break_card(size_t index, int code) {
  if (code >= kIllegalAddress && code <= kLastBreaking) card(index).broken = code;
}

int enter(const std::string& function, bool needs_context) {
  State& s = state();
  ++s.calls[function];
  ++s.calls["*"];
  if (needs_context && current().empty()) return kInvalidContext;
  int code = kOk;
  for (Failure& f : s.script.failures)
    if (f.function == function && ++f.seen >= f.from && f.seen < f.from + f.count) code = f.code;
  if (current().empty()) return code;
  const size_t at = current().back()->card;
  break_card(at, code);
  return needs_context && card(at).broken ? card(at).broken : code;
}

bool is_inside(Address address, size_t bytes, size_t at) {
  auto it = state().blocks.upper_bound(address);
  if (it == state().blocks.begin()) return false;
  --it;
  return it->second.card == at && address + bytes <= it->first + std::max<size_t>(it->second.bytes, 1);
}

void run_kernel(const Work& work, size_t at) {
  for (const Address argument : work.arguments)
    if (!is_inside(argument, 1, at)) {
      break_card(at, kIllegalAddress);
      return;
    }
  if (state().on_kernel)
    state().on_kernel(work.function->name.c_str(), work.arguments.data(), work.arguments.size());
}

void finish(Stream* stream) {
  while (!stream->queue.empty()) {
    const auto work = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (!card(stream->card).broken) work();
  }
}
void finish_all() {
  for (Stream* stream : state().streams) finish(stream);
}

Stream* known(Stream* stream) { return state().streams.count(stream) ? stream : nullptr; }

Work work_of(Function* function, void** params) {
  Work work{function, {}};
  for (size_t i = 0; i < function->arguments; ++i) {
    Address value = 0;
    std::memcpy(&value, params[i], sizeof(value));
    work.arguments.push_back(value);
  }
  return work;
}

bool is_launchable(const unsigned* grid, const unsigned* block) {
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  return grid[0] && grid[1] && grid[2] && threads > 0 && threads <= 1024;
}

std::vector<const Node*> order_of(const Exec& exec) {
  std::vector<const Node*> order;
  std::set<const Node*> done;
  while (order.size() < exec.nodes.size())
    for (size_t i = exec.nodes.size(); i-- > 0;) {
      const auto& [identity, node] = exec.nodes[i];
      const bool is_ready = std::all_of(node.before.begin(), node.before.end(),
                                        [&](const Node* n) { return done.count(n) > 0; });
      if (!is_ready || !done.insert(identity).second) continue;
      order.push_back(&node);
      break;
    }
  return order;
}

std::vector<Work> all_work(const Graph& graph) {
  std::vector<Work> all;
  for (const Node& node : graph.nodes) all.insert(all.end(), node.work.begin(), node.work.end());
  return all;
}

}  // namespace fake_cuda
