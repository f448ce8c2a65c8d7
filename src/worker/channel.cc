#include "worker/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/clock.h"

namespace thrice::worker {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;  // a kernel's text and a graph are kilobytes

struct Head {
  uint64_t bytes;  // of the body
  int64_t kind;
};

}  // namespace

Channel::~Channel() { ::close(descriptor_); }

Channel::Got Channel::wait(short events, double deadline_us) const {
  for (;;) {
    int milliseconds = -1;
    if (std::isfinite(deadline_us)) {
      const double left = (deadline_us - monotonic_us()) * 1e-3;
      if (left <= 0) return Got::kTimeout;
      milliseconds = static_cast<int>(std::min(std::ceil(left), 1e6));
    }
    pollfd entry{descriptor_, events, 0};
    const int ready = ::poll(&entry, 1, milliseconds);
    if (ready > 0) return Got::kMessage;
    if (ready < 0 && errno != EINTR) return Got::kEnd;
  }
}

Channel::Got Channel::read(std::byte* to, size_t bytes, double deadline_us) {
  while (bytes > 0) {
    const ssize_t got = ::recv(descriptor_, to, bytes, MSG_DONTWAIT);
    if (got > 0) {
      to += got;
      bytes -= static_cast<size_t>(got);
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return Got::kEnd;
    if (const Got waited = wait(POLLIN, deadline_us); waited != Got::kMessage) return waited;
  }
  return Got::kMessage;
}

Channel::Got Channel::receive(Message& message, double deadline_us) {
  Head head{};
  if (const Got got = read(reinterpret_cast<std::byte*>(&head), sizeof(head), deadline_us);
      got != Got::kMessage)
    return got;
  if (head.bytes > kMostBytes) return Got::kEnd;
  message.kind = static_cast<Kind>(head.kind);
  message.body.resize(head.bytes);
  return read(message.body.data(), head.bytes, deadline_us);
}

bool Channel::send(Kind kind, const std::vector<std::byte>& body, double deadline_us) {
  const Head head{body.size(), static_cast<int64_t>(kind)};
  std::vector<std::byte> all(sizeof(head) + body.size());
  std::memcpy(all.data(), &head, sizeof(head));
  if (!body.empty()) std::memcpy(all.data() + sizeof(head), body.data(), body.size());
  for (size_t sent = 0; sent < all.size();) {
    const ssize_t n = ::send(descriptor_, all.data() + sent, all.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<size_t>(n);
      continue;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return false;
    if (wait(POLLOUT, deadline_us) != Got::kMessage) return false;
  }
  return true;
}

}  // namespace thrice::worker
