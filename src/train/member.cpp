#include "train/member.h"

#include "train/log.h"

namespace mayfly {

int Member::run() {
  while (true) {
    const auto mail = line().next();
    if (std::holds_alternative<Orphaned>(mail)) {
      log("no word from the controller for too long");
      finish();
      save_what_it_has();
      return kOrphaned;
    }
    if (const auto* rejected = std::get_if<Rejected>(&mail)) {
      log("{}", rejected->why);
      return kRejected;
    }
    if (std::holds_alternative<Dropped>(mail)) {
      drop();
      continue;
    }
    const auto& message = std::get<ToMember>(mail);
    if (const auto* leave = std::get_if<Leave>(&message)) {
      log("leaving: {}", leave->why);
      finish();
      return kDone;
    }
    if (const auto obeyed = obey(message); !obeyed) {
      log("{}", obeyed.error().message);
      finish();
      save_what_others_lack();
      line().say(Unable{.what = obeyed.error().message});
      return kUnable;
    }
  }
}

}  // namespace mayfly
