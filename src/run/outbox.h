#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "run/acts.h"

namespace mayfly {

/// What a session wants done, in the order in which it came to want it, and what it tells people with it.
class Outbox {
 public:
  template <class What>
  void add(What what) {
    acts_.emplace_back(std::move(what));
  }
  void send(WorkerId worker, ToMember message) { add(Letter{worker, std::move(message)}); }
  void note(std::string key, std::string value) { add(Note{std::move(key), std::move(value)}); }
  /// For a person, at once, and for the journal.
  void say(Seconds now, const std::string& text) {
    remark(now, text);
    add(Say{text});
  }
  /// For the journal.
  void remark(Seconds now, const std::string& text) { journal(now, {{"remark", text}}); }
  void journal(Seconds now, const Json& what) {
    Json line{{"t_s", now.count()}};
    line.update(what);
    add(JournalLine{line.dump()});
  }
  /// Empties it.
  std::vector<Act> take() { return std::exchange(acts_, {}); }

 private:
  std::vector<Act> acts_{};
};

}  // namespace mayfly
