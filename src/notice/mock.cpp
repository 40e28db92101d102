#include "notice/mock.h"

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "notice/answer.h"
#include "notice/clock.h"

namespace mayfly {
namespace {}  // namespace

struct MockMetadata::Parts {
  explicit Parts(Options given) : options(std::move(given)) {}

  void serve_aws();
  void serve_gcp();
  void serve_azure();
  bool token_holds(const httplib::Request& request);
  void answer(httplib::Response& response, const std::string& body, const char* type);
  void refuse(httplib::Response& response, int status);
  std::string azure_document();

  const Options options;
  httplib::Server server{};
  int port = 0;
  std::thread thread{};
  std::atomic<int> served{0}, refused{0};

  std::mutex mutex{};  ///< of what follows
  std::optional<double> deadline{};
  std::string victim{};
  bool rebalance = false;
  int tokens = 0;
  int uses = 0;  ///< of the last token
};

void MockMetadata::Parts::answer(httplib::Response& response, const std::string& body, const char* type) {
  ++served;
  response.set_content(body, type);
}

void MockMetadata::Parts::refuse(httplib::Response& response, int status) {
  ++refused;
  response.status = status;
}

bool MockMetadata::Parts::token_holds(const httplib::Request& request) {
  const bool known =
      tokens > 0 && request.get_header_value("X-aws-ec2-metadata-token") == fmt::format("token-{}", tokens);
  return known && (options.token_uses == 0 || uses++ < options.token_uses);
}

void MockMetadata::Parts::serve_aws() {
  server.Put("/latest/api/token", [this](const httplib::Request& request, httplib::Response& response) {
    const std::lock_guard lock(mutex);
    const auto life = parse_integer(request.get_header_value("X-aws-ec2-metadata-token-ttl-seconds"));
    if (!options.gives_tokens) return refuse(response, 403);
    if (!life || *life < 1 || *life > 21600) return refuse(response, 400);
    uses = 0;
    answer(response, fmt::format("token-{}", ++tokens), "text/plain");
  });
  server.Get(
      "/latest/meta-data/spot/instance-action", [this](const httplib::Request& request, httplib::Response& response) {
        const std::lock_guard lock(mutex);
        if (!token_holds(request)) return refuse(response, 401);
        if (!deadline) {
          ++served;
          response.status = 404;
          return;
        }
        answer(response, Json{{"action", "terminate"}, {"time", format_time(*deadline)}}.dump(), "application/json");
      });
  server.Get("/latest/meta-data/events/recommendations/rebalance",
             [this](const httplib::Request& request, httplib::Response& response) {
               const std::lock_guard lock(mutex);
               if (!token_holds(request)) return refuse(response, 401);
               if (!rebalance) {
                 ++served;
                 response.status = 404;
                 return;
               }
               answer(response, Json{{"noticeTime", format_time(unix_now())}}.dump(), "application/json");
             });
}

void MockMetadata::Parts::serve_gcp() {
  server.Get("/computeMetadata/v1/instance/preempted",
             [this](const httplib::Request& request, httplib::Response& response) {
               const std::lock_guard lock(mutex);
               if (request.get_header_value("Metadata-Flavor") != "Google") return refuse(response, 403);
               response.set_header("Metadata-Flavor", "Google");
               answer(response, deadline ? "TRUE" : "FALSE", "application/text");
             });
}

std::string MockMetadata::Parts::azure_document() {
  Json events = Json::array();
  if (deadline)
    events.push_back({{"EventId", "5c4d8d9e-3d1f-4c9e-8a51-000000000001"},
                      {"EventType", "Preempt"},
                      {"ResourceType", "VirtualMachine"},
                      {"Resources", {victim}},
                      {"EventStatus", "Scheduled"},
                      {"NotBefore", format_http_date(*deadline)},
                      {"Description", ""},
                      {"EventSource", "Platform"},
                      {"DurationInSeconds", -1}});
  return Json{{"DocumentIncarnation", deadline ? 2 : 1}, {"Events", events}}.dump();
}

void MockMetadata::Parts::serve_azure() {
  server.Get("/metadata/instance/compute/name", [this](const httplib::Request& request, httplib::Response& response) {
    if (request.get_header_value("Metadata") != "true") return refuse(response, 400);
    answer(response, options.machine_name, "text/plain");
  });
  server.Get("/metadata/scheduledevents", [this](const httplib::Request& request, httplib::Response& response) {
    const std::lock_guard lock(mutex);
    if (request.get_header_value("Metadata") != "true") return refuse(response, 400);
    answer(response, azure_document(), "application/json");
  });
}

Result<std::unique_ptr<MockMetadata>> MockMetadata::open(Options options) {
  const Cloud cloud = options.cloud;
  auto parts = std::make_unique<Parts>(std::move(options));
  if (cloud == Cloud::aws) parts->serve_aws();
  if (cloud == Cloud::gcp) parts->serve_gcp();
  if (cloud == Cloud::azure) parts->serve_azure();
  parts->port = parts->server.bind_to_any_port("127.0.0.1");
  if (parts->port <= 0) return fail("no port on 127.0.0.1 for the rehearsal's metadata service");
  parts->thread = std::thread([server = &parts->server] { server->listen_after_bind(); });
  // stop() before it runs would be forgotten.
  while (!parts->server.is_running()) std::this_thread::yield();
  return std::unique_ptr<MockMetadata>(new MockMetadata(std::move(parts)));
}

MockMetadata::MockMetadata(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MockMetadata::~MockMetadata() {
  parts_->server.stop();
  parts_->thread.join();
}

std::string MockMetadata::endpoint() const { return fmt::format("http://127.0.0.1:{}", parts_->port); }

void MockMetadata::announce(Seconds left) { announce_for(parts_->options.machine_name, left); }

void MockMetadata::announce_for(const std::string& machine, Seconds left) {
  const std::lock_guard lock(parts_->mutex);
  parts_->deadline = unix_now() + left.count();
  parts_->victim = machine;
}

void MockMetadata::recommend_rebalance() {
  const std::lock_guard lock(parts_->mutex);
  parts_->rebalance = true;
}

int MockMetadata::served() const { return parts_->served; }
int MockMetadata::refused() const { return parts_->refused; }

}  // namespace mayfly
