#include "flow/open_target.h"

#include <algorithm>

#include "backend/cross_device.h"
#include "target/device_spec.h"

namespace thrice::flow {

OpenedTarget open_target(const std::string& text) {
  OpenedTarget opened;
  if (text.rfind("cuda:sm", 0) != 0) {
    opened.device = backend::open_device(text);
    opened.runs = opened.device->spec().api != target::Api::kNull;
    return opened;
  }
  opened.also = target::Target::parse(text).architectures;
  for (const backend::BackendReport& report : backend::list_backends())
    for (const target::DeviceSpec& card : report.devices) {
      const auto same = std::find(opened.also.begin(), opened.also.end(), card.architecture);
      if (opened.device || card.api != target::Api::kCuda || same == opened.also.end()) continue;
      opened.device = backend::open_device(card.id);
      opened.also.erase(same);
      return opened;
    }
  opened.device = backend::open_cross_device(opened.also.front());
  opened.runs = false;
  opened.also.erase(opened.also.begin());
  return opened;
}

}  // namespace thrice::flow
