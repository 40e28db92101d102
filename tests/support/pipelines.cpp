#include "support/pipelines.h"

#include <cmath>

#include "base/check.h"
#include "base/file.h"
#include "support/problems.h"

namespace mayfly::support {

Profile small_pipeline() {
  PipelineProfile pipeline{.bytes_per_parameter = 1, .layers = {{5, 10}}, .max_stages = 4};
  pipeline.transfers = {{{0}, Seconds(0)}, {{100}, Seconds(100)}};
  for (int stages = 1; stages <= 4; ++stages) pipeline.builds.push_back({stages, Seconds(1 + 2 * stages)});
  pipeline.restart = RestartCost{.rendezvous = Seconds(10),
                                 .process = Seconds(1),
                                 .group = {.per = "machines", .join = Seconds(2), .leave = Seconds(1)}};
  return {.name = "small", .pipeline = pipeline};
}

Profile random_pipeline(Rng& rng, double scale) {
  const auto time = [&](double most) { return Seconds(scale * most * rng.uniform()); };
  PipelineProfile pipeline{.bytes_per_parameter = 1, .max_stages = 4};
  for (int layer = 0; layer < 6; ++layer) pipeline.layers.push_back({1, 1 + 19 * rng.uniform()});
  pipeline.transfers = {{{0}, Seconds(0)}, {{100}, time(50)}};
  for (int stages = 1; stages <= 4; ++stages) pipeline.builds.push_back({stages, time(10)});
  pipeline.restart = RestartCost{
      .rendezvous = time(10), .process = time(2), .group = {.per = "machines", .join = time(4), .leave = time(1)}};
  return {.name = "random", .pipeline = pipeline};
}

Shapes grid_shapes(int machines, const std::vector<int>& depths) {
  std::vector<Shape> shapes;
  std::vector<double> speeds;
  for (const int stages : depths) {
    for (int width = 1; width * stages <= machines; ++width) {
      shapes.push_back({width, stages});
      speeds.push_back(width * stages * std::pow(0.9, std::log2(width)) * std::pow(0.93, std::log2(stages)));
    }
  }
  return {std::move(shapes), std::move(speeds)};
}

Profile gpt_pipeline() {
  PipelineProfile pipeline{.bytes_per_parameter = 12,
                           .layers = {{1, 82'124'800}, {48, 30'740'800}, {1, 82'128'000}},
                           .max_stages = 26,
                           .transfers = shipped_profile("parcae-bert").pipeline->transfers};
  // 234.8155 ms: the embedding, 50,257 x 1,024 x 4 B, through that table.
  for (int stages = 1; stages <= 26; ++stages)
    pipeline.builds.push_back({stages, Seconds(0.2348155 + 0.43 * std::ceil(48.0 / stages))});
  pipeline.restart =
      RestartCost{.rendezvous = Seconds(6.6),
                  .process = Seconds(0.24),
                  .group = {.per = "groups", .fixed = Seconds(0.035), .join = Seconds(0.5), .leave = Seconds(0.0393)}};
  return {.name = "gpt-1.5b", .pipeline = pipeline};
}

std::optional<std::vector<ParcaeChoice>> parcae_choices(const std::string& model) {
  const auto shared = shared_data();
  if (!shared) return std::nullopt;
  const auto path = *shared / "traces" / "parcae" / model / "choices_p3.json";
  if (!std::filesystem::exists(path)) return std::nullopt;
  const auto text = load_text(path);
  MAYFLY_CHECK(text.has_value(), "a file that exists can be read");
  auto choices = parse_parcae_choices(*text, path.string());
  MAYFLY_CHECK(choices.has_value(), choices ? "" : choices.error().message.c_str());
  return *choices;
}

}  // namespace mayfly::support
