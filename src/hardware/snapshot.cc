#include "hardware/snapshot.h"

#include "base/clock.h"
#include "hardware/host.h"
#include "hardware/nvml.h"

namespace thrice::hardware {
namespace {

class SystemSource : public Source {
 public:
  SystemSource(const std::string& root, const std::string& nvml)
      : host_(root), nvml_(Nvml::open(nullptr, nvml)) {}
  Snapshot sample() override {
    Snapshot s;
    s.time_us = monotonic_us();
    s.unix_time = unix_time();
    s.host = host_.read();
    if (nvml_) s.devices = nvml_->read();
    return s;
  }

 private:
  HostReader host_;
  std::unique_ptr<Nvml> nvml_;
};

class ScriptedSource : public Source {
 public:
  explicit ScriptedSource(std::vector<Snapshot> snapshots) : snapshots_(std::move(snapshots)) {
    if (snapshots_.empty()) snapshots_.emplace_back();
  }
  Snapshot sample() override {
    const Snapshot& s = snapshots_[next_];
    if (next_ + 1 < snapshots_.size()) ++next_;
    return s;
  }

 private:
  std::vector<Snapshot> snapshots_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Source> system_source(const std::string& root, const std::string& nvml) {
  return std::make_unique<SystemSource>(root, nvml);
}
std::unique_ptr<Source> scripted_source(std::vector<Snapshot> snapshots) {
  return std::make_unique<ScriptedSource>(std::move(snapshots));
}

}  // namespace thrice::hardware
