#include "notice/client.h"

#include <httplib.h>

#include <chrono>
#include <utility>

#include "base/text.h"
#include "notice/clock.h"

namespace mayfly {
namespace {

constexpr std::chrono::seconds kPatience{2};
/// Of AWS's tokens; they are renewed long before.
constexpr std::chrono::seconds kTokenLife{21600};
constexpr std::size_t kMostBytes = 1 << 20;
constexpr const char* kAwsToken = "X-aws-ec2-metadata-token";

}  // namespace

struct MetadataClient::Parts {
  explicit Parts(const std::string& endpoint) : http(endpoint) {
    http.set_connection_timeout(kPatience);
    http.set_read_timeout(kPatience);
    http.set_write_timeout(kPatience);
    http.set_keep_alive(false);
    http.set_follow_location(false);  // who sends us elsewhere is no metadata service
  }
  httplib::Client http;
  httplib::Headers headers{};
};

MetadataClient::MetadataClient(MetadataService service)
    : service_(std::move(service)), parts_(std::make_unique<Parts>(service_.endpoint)) {
  if (service_.cloud == Cloud::gcp) parts_->headers.emplace("Metadata-Flavor", "Google");
  if (service_.cloud == Cloud::azure) parts_->headers.emplace("Metadata", "true");
}

MetadataClient::~MetadataClient() = default;

void MetadataClient::stop() { parts_->http.stop(); }

Seconds MetadataClient::interval(Cloud cloud) { return cloud == Cloud::aws ? Seconds(5) : Seconds(1); }

Result<Answer> MetadataClient::get(const std::string& path) {
  Answer answer;
  const auto take = [&](const char* data, std::size_t size) {
    answer.body.append(data, size);
    return answer.body.size() <= kMostBytes;
  };
  const auto response = parts_->http.Get(path, parts_->headers, take);
  if (!response) return fail("{}: {}", service_.endpoint, httplib::to_string(response.error()));
  answer.status = response->status;
  return answer;
}

/// IMDSv2. A service that gives no token is not asked the old way: a service on which
/// version 2 is switched off, or one that stands between, is not to be trusted with the end of a machine.
Result<void> MetadataClient::renew_token() {
  const httplib::Headers life{{"X-aws-ec2-metadata-token-ttl-seconds", std::to_string(kTokenLife.count())}};
  const auto response = parts_->http.Put("/latest/api/token", life, "", "text/plain");
  if (!response) return fail("{}: {}", service_.endpoint, httplib::to_string(response.error()));
  if (response->status != 200 || response->body.empty() || response->body.size() > 1000)
    return fail("{}: status {} for a session token (IMDSv2), and version 1 is not used", service_.endpoint,
                response->status);
  parts_->headers.erase(kAwsToken);
  parts_->headers.emplace(kAwsToken, std::string(trimmed(response->body)));
  return {};
}

Result<Answer> MetadataClient::get_with_token(const std::string& path) {
  if (!parts_->headers.contains(kAwsToken)) {
    if (const auto renewed = renew_token(); !renewed) return unexpected(renewed.error());
  }
  auto answer = get(path);
  if (!answer || answer->status != 401) return answer;
  if (const auto renewed = renew_token(); !renewed) return unexpected(renewed.error());
  return get(path);
}

Result<std::optional<PreemptionNotice>> MetadataClient::ask_aws() {
  const auto action = get_with_token("/latest/meta-data/spot/instance-action");
  if (!action) return unexpected(action.error());
  auto notice = aws_instance_action(*action, unix_now());
  if (!notice || *notice) return notice;
  const auto rebalance = get_with_token("/latest/meta-data/events/recommendations/rebalance");
  if (!rebalance) return unexpected(rebalance.error());
  return aws_rebalance(*rebalance);
}

Result<std::optional<PreemptionNotice>> MetadataClient::ask_azure() {
  if (service_.machine_name.empty()) {
    const auto name = get("/metadata/instance/compute/name?api-version=2021-02-01&format=text");
    if (!name) return unexpected(name.error());
    if (name->status != 200 || trimmed(name->body).empty())
      return fail("{}: status {} for this machine's name, without which its events are not known from others'",
                  service_.endpoint, name->status);
    service_.machine_name = trimmed(name->body);
  }
  const auto events = get("/metadata/scheduledevents?api-version=2020-07-01");
  if (!events) return unexpected(events.error());
  return azure_events(*events, unix_now(), service_.machine_name);
}

Result<std::optional<PreemptionNotice>> MetadataClient::ask() {
  if (service_.cloud == Cloud::aws) return ask_aws();
  if (service_.cloud == Cloud::azure) return ask_azure();
  if (service_.cloud == Cloud::none) return std::nullopt;
  const auto answer = get("/computeMetadata/v1/instance/preempted");
  if (!answer) return unexpected(answer.error());
  return gcp_preempted(*answer);
}

}  // namespace mayfly
