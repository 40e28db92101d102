#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/provider.h"

// What a program of the user's reads and writes, in lines of JSON: docs/engines.md#any-program
namespace mayfly {

inline constexpr std::string_view kExecFormat = "mayfly-exec/1";
/// With it ends a program that has no such verb.
inline constexpr int kNoSuchVerb = 64;

/// The first line of every input.
std::string exec_head(const std::string& run);
std::string exec_order(const Order& order, const std::string& run, const std::string& command);
std::string exec_machine(const Ordered& machine);

/// By launch; what is wrong is an error that shows the line.
Result<std::map<int, Granted>> exec_placed(std::string_view output);
Result<std::vector<Listed>> exec_listed(std::string_view output);

}  // namespace mayfly
