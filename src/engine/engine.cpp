#include "engine/engine.h"

#include "base/text.h"

namespace mayfly {

std::string machine_name(const std::string& run, int launch) { return fmt::format("{}-{}", run, launch); }

std::string_view name(Sighting::Stage stage) {
  switch (stage) {
    case Sighting::Stage::ordered:
      return "ordered";
    case Sighting::Stage::starting:
      return "starting";
    case Sighting::Stage::running:
      return "running";
    case Sighting::Stage::gone:
      return "gone";
  }
  return "";
}

}  // namespace mayfly
