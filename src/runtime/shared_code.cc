#include "runtime/shared_code.h"

#include <map>
#include <mutex>
#include <tuple>

#include "base/hash.h"

namespace thrice::runtime {

std::shared_ptr<const exec::Executable> shared_code(const backend::DevicePtr& device,
                                                    const std::shared_ptr<const release::Release>& release,
                                                    const Builder& build) {
  // A release that needs the compiler must go on being refused where building is not allowed.
  using Key = std::tuple<const backend::Device*, std::string, bool>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const exec::Executable>> loaded;
  const artifact::Manifest& manifest = release->manifest;
  if (manifest.model_digest.empty() || manifest.plan_digest.empty())  // made in memory, and not described
    return exec::make_executable(device, release->graph, release->plan,
                                 release_programs(device, release, build));
  const Key key{device.get(), hash_hex(manifest.to_json()), static_cast<bool>(build)};
  const std::lock_guard lock(mutex);
  for (auto it = loaded.begin(); it != loaded.end();)
    it = it->second.expired() ? loaded.erase(it) : std::next(it);
  // An executable holds its device, so that a key's address is not another device's.
  if (const auto it = loaded.find(key); it != loaded.end())
    if (auto code = it->second.lock()) return code;
  auto code =
      exec::make_executable(device, release->graph, release->plan, release_programs(device, release, build));
  loaded[key] = code;
  return code;
}

backend::DevicePtr shared_device(const std::string& id) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<backend::Device>> open;
  const std::lock_guard lock(mutex);
  if (const auto it = open.find(id); it != open.end())
    if (backend::DevicePtr device = it->second.lock()) return device;
  backend::DevicePtr device = backend::open_device(id);
  // "" and the beginning of a UUID are names of a device too.
  auto& by_id = open[device->spec().id];
  if (backend::DevicePtr other = by_id.lock()) device = other;
  by_id = device;
  open[id] = device;
  return device;
}

}  // namespace thrice::runtime
