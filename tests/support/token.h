#pragma once

#include "wire/channel.h"

namespace mayfly::support {

inline constexpr const char* kToken = "1f0e2d3c4b5a69788796a5b4c3d2e1f01f0e2d3c4b5a69788796a5b4c3d2e1f0";

/// Of the run that tests play.
inline Credentials known() { return Credentials::from(kToken).value(); }
/// Of a run whose connections are encrypted.
inline Credentials sealed() { return Credentials::from(fresh_token(true).value()).value(); }

}  // namespace mayfly::support
