#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace mayfly {

/// The first IPv4 address of a network interface of this machine.
Result<std::string> interface_address(const std::string& interface);

/// The interface by which this machine reaches HOST:PORT: the one with the local end of such a connection. Sends
/// nothing.
Result<std::string> interface_towards(const std::string& host, std::uint16_t port);

}  // namespace mayfly
