#pragma once

#include <string>
#include <variant>
#include <vector>

#include "control/event.h"
#include "data/checkpoint.h"
#include "engine/engine.h"
#include "run/crew.h"

namespace mayfly {

// What a Session wants done, by its shell, which has sockets, files and machines. In the order in which it is to be
// done: a later one may follow only when an earlier one has succeeded, so what must not be forgotten comes before what
// follows from it.

/// The connection of this worker or server is closed.
struct Cut {
  WorkerId worker = 0;
};
/// For the engine.
struct Ask {
  std::vector<Order> orders{};
  std::vector<int> tells{};
  std::vector<int> ends{};
};
/// An event goes into the store, with a note, and what the controller recorded about it into the journal.
struct Record {
  TimedEvent event{};
  std::vector<std::string> lines{};
  std::string key{};  ///< of the note; empty: none
  std::string note{};
  bool stored = false;  ///< the store has it already
};
/// A line of the journal that is no event, likewise.
struct JournalLine {
  std::string text{};
  bool stored = false;
};
/// Kept until another with the same key.
struct Note {
  std::string key{};
  std::string value{};
};
/// For a person, at once.
struct Say {
  std::string text{};
};
/// Session::sought() is to be told of the newest whole checkpoint of this lineage.
struct Seek {
  Lineage lineage{};
};
/// The newest checkpoint is made known, and old ones are removed; then Session::published().
struct Publish {
  CheckpointWritten checkpoint{};
};
/// Who is in the run has changed.
struct List {};
/// The run is over: nothing follows.
struct Close {};

using Act = std::variant<Letter, Cut, Ask, Record, JournalLine, Note, Say, Seek, Publish, List, Close>;

}  // namespace mayfly
