#include "train/state_fetch.h"

#include <utility>

namespace mayfly {
Result<DataHeader> greet(DataLink& link, std::int64_t formation) {
  const DataHeader hello{.kind = DataHeader::Kind::hello, .formation = formation};
  if (auto said = link.send(hello); !said) return unexpected(said.error());
  return link.expect(DataHeader::Kind::welcome, formation);
}

Result<void> StateFetch::fetch(const std::string& address, std::int64_t formation, std::int64_t sample,
                               std::span<std::byte> into) {
  auto link = std::make_shared<DataLink>(credentials_, network_);
  {
    const std::lock_guard lock(mutex_);
    if (over_) return fail("{}: the fetch was ended", address);
    link_ = link;
  }
  auto fetched = link->connect(address, kLinkPatience);
  if (!fetched) return fetched;
  fetched = receive(*link, formation, sample, into);
  if (!fetched) return fail("{}: {}", address, fetched.error().message);
  return {};
}

Result<void> StateFetch::receive(DataLink& link, std::int64_t formation, std::int64_t sample,
                                 std::span<std::byte> into) {
  if (const auto welcome = greet(link, formation); !welcome) return unexpected(welcome.error());
  const DataHeader wanted{
      .kind = DataHeader::Kind::fetch, .formation = formation, .number = sample, .count = into.size()};
  if (auto asked = link.send(wanted); !asked) return asked;
  const auto header = link.expect(DataHeader::Kind::state, formation);
  if (!header) return unexpected(header.error());
  if (header->number != sample || header->count != into.size())
    return fail("{} bytes of the state {}, want {} of the state {}", header->count, header->number, into.size(),
                sample);
  return link.receive_into(into);
}

void StateFetch::abort() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  if (link_) link_->abort();
}

}  // namespace mayfly
