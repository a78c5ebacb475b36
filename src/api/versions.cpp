#include "api/versions.h"

#include <algorithm>

namespace einrel::api {

std::unique_ptr<Version::Session> Version::session_of(std::size_t threads) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(idle_.begin(), idle_.end(),
                                    [&](const auto& session) { return session->workers.threads() == threads; });
    if (found != idle_.end()) {
      std::unique_ptr<Session> session = std::move(*found);
      idle_.erase(found);
      return session;
    }
  }
  return std::make_unique<Session>(compiled_, threads);
}

std::vector<einrel::Tensor> Version::run(std::span<const einrel::Tensor> inputs, const ScalarBindings& scalars,
                                         std::size_t threads) {
  std::unique_ptr<Session> session = session_of(threads);
  std::vector<einrel::Tensor> outputs = session->runner.run(inputs, scalars, session->workers);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
  return outputs;
}

std::shared_ptr<Version> Versions::get(const InputTypes& types, const std::function<Compiled()>& compile) {
  constexpr std::size_t most_kept = 8;
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(made_.begin(), made_.end(), [&](const auto& version) { return version.first == types; });
  if (found != made_.end()) return found->second;
  auto version = std::make_shared<Version>(compile());
  if (made_.size() == most_kept) made_.erase(made_.begin());
  made_.emplace_back(types, version);
  return version;
}

}  // namespace einrel::api
