#pragma once

#include <netinet/in.h>
#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "train/lane.h"
#include "wire/channel.h"

namespace mayfly {

/// What precedes every payload between workers and servers, between the caches of workers, and between workers that add
/// up among themselves, as it lies in memory: the machines of a run are alike. docs/protocol.md#the-data-connections
struct DataHeader {
  static constexpr std::uint32_t kMagic = 0x3146'594d;  // "MYF1"
  enum class Kind : std::uint32_t {
    hello = 1,  ///< the guest's first word
    welcome,    ///< the server's shard: floats [first, first + count)
    push,       ///< `count` floats of lease `number` from `first` on follow; the last of a lease is answered by staged
    staged,     ///< all of lease `number` is here
    pull,       ///< wanted: the weights at the state `number` or later
    weights,    ///< at the state `number`; `count` floats follow
    fetch,      ///< wanted: the whole state `number`, of `count` bytes
    state,      ///< `count` bytes follow
    ask,        ///< wanted: the sample `number`, if it is in the cache
    sample,     ///< it is; `count` bytes follow
    missing,    ///< it is not
    give,       ///< the sample `number`, for the cache; `count` bytes follow
    addend,     ///< of the exchange `number`: `count` bytes from `first` on follow, to be added to the receiver's
    total,      ///< of the exchange `number`: `count` bytes from `first` on follow, summed over all workers
    handed,     ///< of the exchange `number`: `count` bytes of the state follow
  };
  std::uint32_t magic = kMagic;
  Kind kind = Kind::hello;
  std::int64_t formation = 0;
  std::int64_t number = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const DataHeader&) const = default;
};
static_assert(sizeof(DataHeader) == 40);

/// Of "127.0.0.1:40001".
Result<sockaddr_in> socket_address(const std::string& address);

/// With a peer that is connected to.
constexpr Seconds kLinkPatience{5};

/// One connection between two processes of a run that train. Its calls come from one thread, and block where nothing
/// else is said; abort() may come from any. After an error every further call fails.
class DataLink {
 public:
  /// Not connected yet. The network, if one is emulated, is shared by all links of a process.
  DataLink(const Credentials& credentials, std::shared_ptr<EmulatedNetwork> network);
  /// Takes the socket of a guest that came; nothing but advance_proof() may be called until that says true.
  DataLink(int socket, const Credentials& credentials, std::shared_ptr<EmulatedNetwork> network);
  ~DataLink();
  DataLink(const DataLink&) = delete;
  DataLink& operator=(const DataLink&) = delete;

  /// To "127.0.0.1:40001"; both have proven that they belong to the run.
  Result<void> connect(const std::string& address, Seconds patience);
  /// One step of the proof, with what has come and without waiting. True: both ends have proven that they belong to
  /// the run.
  Result<bool> advance_proof();
  /// For poll(): what the next step of the proof, or receive_now(), waits for.
  pollfd awaited();

  /// From where the payload lies.
  Result<void> send(const DataHeader& header, std::span<const std::byte> payload = {});
  /// As much as the system takes without waiting, and less than all of it where a network is emulated.
  Result<std::size_t> send_some(std::span<const std::byte> payload);
  /// The same of two parts, one behind the other. All of it is on its way when sealed() is false.
  Result<std::size_t> send_some(std::span<const std::byte> first, std::span<const std::byte> second);
  /// What is encrypted and waits for the system to take it; the next send_some() goes on with it.
  bool sealed() { return !channel_.outgoing().empty(); }
  /// Until the system takes more.
  Result<void> await_room();
  /// Bytes that the peer's system has not got yet. What is encrypted already goes on its way first.
  Result<std::size_t> unsent();

  /// None: the peer closed the connection in good order. What is no header is an error.
  Result<std::optional<DataHeader>> receive();
  /// The next header, which must be of this kind and formation.
  Result<DataHeader> expect(DataHeader::Kind kind, std::int64_t formation);
  /// Exactly this much, to where it stays.
  Result<void> receive_into(std::span<std::byte> payload);
  /// What is here already, into one part and then the other; 0: nothing yet. The end of the connection is an error.
  Result<std::size_t> receive_now(std::span<std::byte> first, std::span<std::byte> second);
  /// Receiving fails after so long without a byte; none: never.
  void limit_silence(std::optional<Seconds> limit);
  /// Sending fails when the peer takes nothing for so long.
  void limit_sending(Seconds limit);
  /// Whether the peer is known to have closed the connection. Only between a peer's request and the answer.
  bool hung_up() const;

  void abort();

 private:
  DataLink(int socket, Channel channel, std::shared_ptr<EmulatedNetwork> network);
  Result<void> prove(Seconds patience);
  /// Encrypted, as far as it is not sent yet.
  Result<void> flush();
  Result<std::size_t> receive_sealed(std::span<std::byte> payload);
  Result<void> send_all(std::span<const std::byte> first, std::span<const std::byte> second);
  /// What came with the end of the proof.
  std::size_t deliver(std::span<std::byte> place);
  /// Fewer bytes than wanted: the peer closed.
  Result<std::size_t> receive_some(std::span<std::byte> payload);

  const int socket_;
  std::atomic<bool> over_ = false;
  std::shared_ptr<EmulatedNetwork> network_;
  Channel channel_;
  std::string clear_{};  ///< decrypted with the end of the proof; from `clear_at_` on not asked for yet
  std::size_t clear_at_ = 0;
};

}  // namespace mayfly
