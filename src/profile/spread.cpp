#include "profile/spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/least_squares.h"

namespace mayfly {
namespace {

/// Values that make three stretches.
constexpr int kFewest = 6;
constexpr double kFar = 5;
/// The median deviation of a normal distribution, times this, is its standard deviation.
constexpr double kDeviation = 1.4826;
constexpr double kMostOutliers = 0.1;
/// 97.5 % point of Student's t with 2 to 9 degrees of freedom.
constexpr std::array kStudent{4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::size_t warm_up(std::size_t values) {
  if (values < 6) return values / 2;
  return std::clamp<std::size_t>(values / 10, 3, 20);
}

int leave_out_far_ones(std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> apart;
  for (const double value : values) apart.push_back(std::fabs(value - middle));
  // Where most are the same to the bit any other would be far.
  const double deviation = std::max(kDeviation * median(std::move(apart)), 0.01 * middle);
  const double limit = middle + kFar * deviation;
  const auto far = std::count_if(values.begin(), values.end(), [&](double value) { return value > limit; });
  if (static_cast<double>(far) > kMostOutliers * static_cast<double>(values.size())) return 0;
  std::erase_if(values, [&](double value) { return value > limit; });
  return static_cast<int>(far);
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

MeasuredMean estimated(std::span<const double> values) {
  MeasuredMean found{.warm_up = static_cast<int>(warm_up(values.size()))};
  std::vector<double> kept(values.begin() + found.warm_up, values.end());
  if (kept.empty()) return found;
  found.outliers = leave_out_far_ones(kept);
  found.counted = static_cast<int>(kept.size());
  found.mean = mean(kept);
  const std::size_t stretches = std::min(kStretches, kept.size() / 2);
  if (stretches < 3) return found;
  std::vector<double> means;
  for (std::size_t i = 0; i < stretches; ++i) {
    const std::size_t begin = i * kept.size() / stretches;
    const std::size_t end = (i + 1) * kept.size() / stretches;
    means.push_back(mean(std::span(kept).subspan(begin, end - begin)));
  }
  const double middle = mean(means);
  double squares = 0;
  for (const double value : means) squares += (value - middle) * (value - middle);
  const double sd = std::sqrt(squares / static_cast<double>(stretches - 1));
  found.relative_sd = middle > 0 ? sd / middle : 0;
  found.interval = kStudent[stretches - 3] * sd / std::sqrt(static_cast<double>(stretches));
  return found;
}

bool tight(const MeasuredMean& estimate, double share) {
  return estimate.counted >= kFewest && estimate.interval <= share * estimate.mean;
}

LinkFit link_fit(std::span<const double> bytes, std::span<const double> seconds) {
  if (bytes.size() < 2 || bytes.size() != seconds.size()) return {};
  std::vector<double> rows;
  std::vector<double> targets(bytes.size(), 1.0);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (seconds[i] <= 0) return {};
    rows.insert(rows.end(), {1 / seconds[i], bytes[i] / seconds[i]});
  }
  const auto line = linear_least_squares(rows, 2, targets);
  if (!line || (*line)[1] <= 0) return {};
  LinkFit fit{.latency_s = std::max(0.0, (*line)[0]), .bytes_per_s = 1 / (*line)[1]};
  double squares = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const double error = (fit.latency_s + bytes[i] / fit.bytes_per_s) / seconds[i] - 1;
    squares += error * error;
  }
  if (bytes.size() > 2) fit.relative_sd = std::sqrt(squares / static_cast<double>(bytes.size() - 2));
  return fit;
}

}  // namespace mayfly
