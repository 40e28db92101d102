#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace mayfly {

/// The page of web/: one HTML file with everything in it. As it is it asks the dashboard for what it shows.
std::string_view page();

/// The page with a document in it (docs/formats.md#report), so that it shows that and asks no server.
std::string report_html(const Json& document);

}  // namespace mayfly
