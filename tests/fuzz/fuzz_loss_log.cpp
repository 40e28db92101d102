#include <cmath>

#include "fuzz/fuzz.h"
#include "predict/loss_fit.h"

namespace {

using mayfly::fuzz::require;

/// A fit takes milliseconds: long logs are only read.
constexpr std::size_t kMostFitted = 24;

void check_fit(const std::vector<mayfly::LossPoint>& points, mayfly::LossCurve::Form form) {
  const auto fit = mayfly::fit_loss(form, points, mayfly::Sync::asp);
  if (!fit) return require(!fit.error().message.empty(), "an error has a message");
  require(std::isfinite(fit->curve.scale) && fit->curve.scale > 0, "a fitted curve falls");
  require(std::isfinite(fit->curve.floor) && std::isfinite(fit->curve.initial), "a fitted curve is finite");
  require(std::isfinite(fit->residual_sd) && fit->residual_sd >= 0, "a residual is finite");
  require(std::isfinite(fit->curve.relative_sd) && fit->curve.relative_sd >= 0, "an uncertainty is finite");
  const auto& last = points.back();
  const auto band = mayfly::loss_band(*fit, {last.batch, last.workers, last.cc, mayfly::Sync::asp}, last.step + 1);
  require(band.p10 <= band.middle && band.middle <= band.p90, "a band holds its middle");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto points = mayfly::parse_loss_log(mayfly::fuzz::text_of(data, size), mayfly::fuzz::kFile);
  if (!points) {
    mayfly::fuzz::check_message(points.error());
    return 0;
  }
  for (const auto& point : *points) {
    require(std::isfinite(point.step) && point.step >= 0, "a step is finite and not negative");
    require(std::isfinite(point.loss), "a loss is finite");
    require(std::isfinite(point.batch) && point.batch >= 0, "a batch is finite and not negative");
    require(point.workers >= 1, "there is at least one worker");
  }
  if (points->size() > kMostFitted) return 0;
  using Form = mayfly::LossCurve::Form;
  for (const auto form : {Form::common_start, Form::spotdnn, Form::cynthia}) check_fit(*points, form);
  return 0;
}
