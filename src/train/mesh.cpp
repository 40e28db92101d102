#include "train/mesh.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "train/add_up.h"
#include "train/data_link.h"
#include "train/reception.h"
#include "train/traffic.h"
#include "wire/interface.h"

namespace mayfly {
namespace {

using Kind = DataHeader::Kind;

/// A slow peer is not a dead one. Who is lost the controller says, and abort() ends the waiting.
constexpr Seconds kUntilAborted{24 * 3600.0};
/// For a guest that is let in to say where it belongs.
constexpr Seconds kFirstWord{5};

/// The first word of `rank` to `other`, and the answer with the ranks the other way round.
DataHeader greeting(Kind kind, const Mesh::Place& place, int rank, int other) {
  return {.kind = kind,
          .formation = place.formation,
          .number = rank,
          .first = static_cast<std::uint64_t>(other),
          .count = static_cast<std::uint64_t>(place.size)};
}

/// Of each pair one opens the connection, and each rank opens about half of its own.
bool opens(int rank, int other) { return (rank < other) == ((rank + other) % 2 == 0); }

}  // namespace

struct NetworkDevice::Parts {
  Result<void> attend(Guest& guest);

  Credentials credentials{};
  std::mutex mutex{};
  std::map<std::int64_t, Mesh::Parts*> meshes{};  ///< those that let others in, by formation
  std::unique_ptr<Reception> reception{};         ///< whose threads use all of the above
};

struct Mesh::Parts {
  Parts(NetworkDevice::Parts& its_network, Place its_place)
      : network(its_network), place(its_place), links(static_cast<std::size_t>(its_place.size)) {}

  bool awaits(const DataHeader& hello) const;
  /// From the door's threads. Whether it is still wanted.
  bool arrive(const DataHeader& hello, const std::shared_ptr<DataLink>& link);
  Result<void> visit(int rank, const std::string& address);
  Result<void> await_visitors();
  Result<std::vector<std::string>> places_of(std::span<const std::string> words) const;
  template <class T>
  Result<void> sum(std::span<T> values);
  void end();
  /// After a failure no other worker must wait for this one.
  Result<void> settled(Result<void> result);

  NetworkDevice::Parts& network;
  const Place place;
  std::optional<Traffic> traffic{};  ///< once all stand
  std::int64_t number = 0;           ///< of the next exchange
  std::vector<std::byte> room{};

  std::mutex mutex{};
  std::condition_variable arrived{};
  bool over = false;
  std::vector<std::shared_ptr<DataLink>> links;  ///< by rank; none at its own
};

Result<void> NetworkDevice::Parts::attend(Guest& guest) {
  guest.link.limit_silence(kFirstWord);
  const auto heard = guest.link.receive();
  if (!heard) return unexpected(heard.error());
  if (!*heard) return fail("said nothing");
  guest.link.limit_silence(std::nullopt);
  const DataHeader& hello = **heard;
  const auto mesh = [&]() -> Mesh::Parts* {
    const auto found = meshes.find(hello.formation);
    return found != meshes.end() && found->second->awaits(hello) ? found->second : nullptr;
  };
  std::optional<DataHeader> welcome;
  {
    const std::lock_guard lock(mutex);
    if (auto* const host = mesh())
      welcome = greeting(Kind::welcome, host->place, host->place.rank, static_cast<int>(hello.number));
  }
  if (!welcome) return fail("no rank {} of formation {} is awaited here", hello.number, hello.formation);
  // Before others may write to the link.
  if (auto said = guest.link.send(*welcome); !said) return said;
  const std::lock_guard lock(mutex);
  auto* const host = mesh();
  guest.stays = host != nullptr && host->arrive(hello, guest.own);
  return {};
}

NetworkDevice::NetworkDevice(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
NetworkDevice::~NetworkDevice() = default;

Result<std::unique_ptr<NetworkDevice>> NetworkDevice::open(const std::string& interface,
                                                           const Credentials& credentials) {
  const auto address = interface_address(interface);
  if (!address) return unexpected(address.error());
  auto parts = std::make_unique<Parts>();
  parts->credentials = credentials;
  auto reception = Reception::open({.address = *address, .credentials = credentials},
                                   [door = parts.get()](Guest& guest) { return door->attend(guest); });
  if (!reception) return unexpected(reception.error());
  parts->reception = std::move(*reception);
  return std::unique_ptr<NetworkDevice>(new NetworkDevice(std::move(parts)));
}

bool Mesh::Parts::awaits(const DataHeader& hello) const {
  return hello.number >= 0 && hello.number < place.size && opens(static_cast<int>(hello.number), place.rank) &&
         hello == greeting(Kind::hello, place, static_cast<int>(hello.number), place.rank);
}

bool Mesh::Parts::arrive(const DataHeader& hello, const std::shared_ptr<DataLink>& link) {
  const std::lock_guard lock(mutex);
  auto& seat = links[static_cast<std::size_t>(hello.number)];
  if (over || seat) return false;
  seat = link;
  arrived.notify_all();
  return true;
}

Result<void> Mesh::Parts::visit(int rank, const std::string& address) {
  const auto link = std::make_shared<DataLink>(network.credentials, nullptr);
  {
    const std::lock_guard lock(mutex);
    if (over) return fail("the formation is over");
    links[static_cast<std::size_t>(rank)] = link;
  }
  if (auto met = link->connect(address, kUntilAborted); !met) return met;
  if (auto said = link->send(greeting(Kind::hello, place, place.rank, rank)); !said) return said;
  const auto welcome = link->expect(Kind::welcome, place.formation);
  if (!welcome) return fail("{}: {}", address, welcome.error().message);
  if (*welcome != greeting(Kind::welcome, place, rank, place.rank))
    return fail("{}: rank {} of {} answers, want rank {} of {}", address, welcome->number, welcome->count, rank,
                place.size);
  return {};
}

Result<void> Mesh::Parts::await_visitors() {
  std::unique_lock lock(mutex);
  const auto missing = [&] { return std::ranges::count(links, nullptr) > 1; };
  arrived.wait(lock, [&] { return over || !missing(); });
  return {};
}

Result<std::vector<std::string>> Mesh::Parts::places_of(std::span<const std::string> words) const {
  if (words.size() != links.size()) return fail("{} places of peers for a formation of {}", words.size(), place.size);
  for (const auto& word : words) {
    if (const auto fine = socket_address(word); !fine) return unexpected(fine.error());
  }
  return std::vector<std::string>(words.begin(), words.end());
}

template <class T>
Result<void> Mesh::Parts::sum(std::span<T> values) {
  if (!traffic) return settled({});
  return settled(add_up({.traffic = *traffic,
                         .rank = place.rank,
                         .size = place.size,
                         .formation = place.formation,
                         .number = number++,
                         .room = room},
                        values));
}

void Mesh::Parts::end() {
  const std::lock_guard lock(mutex);
  over = true;
  for (const auto& link : links) {
    if (link) link->abort();
  }
  arrived.notify_all();
}

Result<void> Mesh::Parts::settled(Result<void> result) {
  {
    const std::lock_guard lock(mutex);
    if (over) result = fail("the formation is over");
  }
  if (!result) end();
  return result;
}

Mesh::Mesh(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Mesh::~Mesh() {
  {
    const std::lock_guard lock(parts_->network.mutex);
    auto& meshes = parts_->network.meshes;
    if (const auto own = meshes.find(parts_->place.formation); own != meshes.end() && own->second == parts_.get())
      meshes.erase(own);
  }
  abort();
}

Result<std::unique_ptr<Mesh>> Mesh::open(NetworkDevice& network, Place place) {
  auto& door = network.parts();
  auto parts = std::make_unique<Parts>(door, place);
  const std::lock_guard lock(door.mutex);
  door.meshes[place.formation] = parts.get();
  return std::unique_ptr<Mesh>(new Mesh(std::move(parts)));
}

const std::string& Mesh::word() const { return parts_->network.reception->address(); }

Result<void> Mesh::connect(std::span<const std::string> words) {
  auto& parts = *parts_;
  const auto places = parts.places_of(words);
  if (!places) return parts.settled(unexpected(places.error()));
  // Beginning with another one each, so that not all stand at the same door.
  for (int step = 1; step < parts.place.size; ++step) {
    const int rank = (parts.place.rank + step) % parts.place.size;
    if (!opens(parts.place.rank, rank)) continue;
    if (auto met = parts.visit(rank, (*places)[static_cast<std::size_t>(rank)]); !met) return parts.settled(met);
  }
  auto met = parts.settled(parts.await_visitors());
  if (met && parts.place.size > 1) parts.traffic.emplace(parts.links);
  return met;
}

std::vector<std::string> Mesh::doorsteps(std::span<const std::string> words) const {
  std::vector<std::string> places(words.begin(), words.end());
  const auto own = static_cast<std::size_t>(parts_->place.rank);
  if (own < places.size()) places[own].clear();
  return places;
}

Result<void> Mesh::sum(std::span<float> values) { return parts_->sum(values); }
Result<void> Mesh::sum(std::span<double> values) { return parts_->sum(values); }

Result<void> Mesh::hand_over(int source, std::span<const int> receivers, std::span<const std::span<std::byte>> parts) {
  const auto& place = parts_->place;
  const auto number = parts_->number++;
  if (!parts_->traffic) return parts_->settled({});
  auto& traffic = *parts_->traffic;
  const auto header = [&](std::span<std::byte> part) {
    return DataHeader{
        .kind = Kind::handed, .formation = place.formation, .number = number, .first = 0, .count = part.size()};
  };
  for (const auto part : parts) {
    for (const int receiver : receivers) {
      if (receiver == source) continue;
      if (place.rank == source) traffic.send(receiver, header(part), part);
      if (place.rank == receiver) traffic.receive(source, header(part), part);
    }
  }
  return parts_->settled(traffic.finish());
}

void Mesh::abort() { parts_->end(); }

}  // namespace mayfly
