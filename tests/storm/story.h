#pragma once

#include <string>
#include <vector>

#include "run/session.h"

namespace mayfly::storm {

// A story is a text: everything that the sessions of one run were told, line by line, and indented below each line what
// was then done of what it wanted done. What is told can be read back and told to another session.
//
//   # seed 17: the promise that was broken
//   0 starts
//   0 begin
//     note fleet {"launches":[...
//   3.25 hear 2 {"message":"formed",...}
//   9.5 dies

std::string text_of(const Sighting& sight);
std::string text_of(const std::vector<Sighting>& sights);
std::string text_of(const FoundCheckpoint& found);
std::string text_of(const Act& act);

/// Tells the session what a line says, without its time. False where nothing can be made of the line.
bool tell(Session& session, Seconds now, std::string_view what);

/// Tells sessions what a story's were told, without the world that made it, and compares what they want done. What
/// differs first, or nothing.
std::string replay(const std::vector<std::string>& story, const RunInputs& inputs, const Expectation& expected);

}  // namespace mayfly::storm
