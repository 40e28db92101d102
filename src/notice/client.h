#pragma once

#include <memory>
#include <optional>
#include <string>

#include "notice/answer.h"
#include "notice/cloud.h"

namespace mayfly {

/// Asks one metadata service. Every question is short: a service that does not answer within two seconds is an error.
/// One thread; only stop() may be called from another.
class MetadataClient {
 public:
  explicit MetadataClient(MetadataService service);
  ~MetadataClient();
  MetadataClient(const MetadataClient&) = delete;

  /// The notice that is out; none: the machine is not to be taken. With AWS, the instance's own end before a
  /// recommendation.
  Result<std::optional<PreemptionNotice>> ask();
  /// Ends a question under way.
  void stop();

  /// The cloud's own documents say how often.
  static Seconds interval(Cloud cloud);

 private:
  struct Parts;
  Result<Answer> get(const std::string& path);
  Result<Answer> get_with_token(const std::string& path);
  Result<void> renew_token();
  Result<std::optional<PreemptionNotice>> ask_aws();
  Result<std::optional<PreemptionNotice>> ask_azure();

  MetadataService service_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace mayfly
