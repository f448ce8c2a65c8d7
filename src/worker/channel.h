// Whole messages over one end of a socket pair, with deadlines. One thread at a time.
#pragma once
#include "worker/message.h"

namespace thrice::worker {

class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}  // taken over
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  enum class Got { kMessage, kEnd, kTimeout };  // kEnd: the other side is gone, or speaks nonsense
  // deadline_us: monotonic; infinity = none.
  Got receive(Message& message, double deadline_us);
  // False: the other side is gone or did not take it in time. Never a signal.
  bool send(Kind kind, const std::vector<std::byte>& body, double deadline_us);
  int descriptor() const { return descriptor_; }

 private:
  Got wait(short events, double deadline_us) const;
  Got read(std::byte* to, size_t bytes, double deadline_us);

  int descriptor_;
};

}  // namespace thrice::worker
