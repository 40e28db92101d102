#pragma once

#include <utility>
#include <vector>

namespace mayfly {

/// What happens in one interval: some machines come, some go.
struct Outlook {
  int added = 0;
  int removed = 0;
  bool operator==(const Outlook&) const = default;
};

/// What is learned of the weather while it passes: how likely losses and arrivals are, so long after the last one of
/// either kind, and how many machines they take or bring. Losses come in bursts and so do arrivals, so the time since
/// the last event is the state. Nothing is known of the future; every rate is shrunk towards the pooled one, and that
/// towards one event in an hour of intervals, until there is evidence. docs/models.md#weather
class Weather {
 public:
  /// `most`: machines that are ever held, so that a full cluster expects no arrivals. `memory`: intervals after an
  /// event that count as its aftermath.
  explicit Weather(int most, int memory = 5);

  /// One interval has passed, with `before` machines at its start.
  void observe(int before, const Outlook& seen);

  /// State 0: nothing for long. Then so many intervals after a loss, then so many after an arrival.
  int modes() const { return 1 + 2 * memory_; }
  int mode() const { return mode_; }
  int next_mode(int mode, const Outlook& seen) const;
  int most() const { return most_; }
  /// Losses and arrivals seen so far.
  double events() const { return losses_.events + arrivals_.events; }

  /// Probability that the next interval takes machines, and that it brings some, in that state of a cluster neither
  /// empty nor full. Both at once is rare, and counts as a loss.
  std::pair<double, double> rates(int mode) const;
  /// Given that there is a loss or an arrival: probability by machines, [0] unused, summing to 1.
  std::vector<double> loss_sizes(int machines) const { return losses_.spread(machines); }
  std::vector<double> arrival_sizes(int machines) const { return arrivals_.spread(most_ - machines); }

  /// Probability of each count 0..most after each of the next intervals, [interval][count].
  std::vector<std::vector<double>> distribution(int machines, int intervals) const;

 private:
  /// One kind of event.
  struct Kind {
    std::vector<double> seen{};   ///< events by mode
    std::vector<double> spent{};  ///< intervals in which one could have happened
    std::vector<double> sizes{};  ///< events by machines, those that went all the way apart
    double events = 0;
    double all = 0;  ///< events of more than one machine that left none, or left none missing

    void observe(int mode, int size, int room);
    double rate(int mode) const;
    std::vector<double> spread(int room) const;
  };

  int most_;
  int memory_;
  int mode_ = 0;
  Kind losses_{};
  Kind arrivals_{};
};

}  // namespace mayfly
