#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace mayfly {

/// Several minds about the same weather, each with the account of what it would have trained. The first is the cautious
/// one, that nothing changes; another is believed only when it is clearly ahead of it, by what is more than the chance
/// of so many stretches of their size would give.
class Contest {
 public:
  /// `doubt`: standard errors by which a mind must lead.
  Contest(std::size_t minds, double doubt) : doubt_(doubt), accounts_(minds) {}

  void earn(std::size_t mind, double samples) { accounts_[mind].stretch += samples; }
  /// An event ends a stretch: the accounts are compared.
  void close() {
    const double cautious = accounts_[0].stretch;
    for (Account& account : accounts_) {
      const double lead = account.stretch - cautious;
      account.lead += lead;
      account.spread += lead * lead;
      account.stretch = 0;
    }
  }
  std::size_t leader() const {
    std::size_t ahead = 0;
    for (std::size_t mind = 1; mind < accounts_.size(); ++mind) {
      if (clear_lead(mind) > (ahead == 0 ? 0 : clear_lead(ahead))) ahead = mind;
    }
    return ahead;
  }

 private:
  struct Account {
    double stretch = 0;  ///< samples since the last event
    double lead = 0;     ///< more than the cautious one's, up to the last event
    double spread = 0;   ///< sum of the squared leads of each stretch
  };
  double clear_lead(std::size_t mind) const {
    return accounts_[mind].lead - doubt_ * std::sqrt(accounts_[mind].spread);
  }

  double doubt_;
  std::vector<Account> accounts_;
};

}  // namespace mayfly
