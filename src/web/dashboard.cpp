#include "web/dashboard.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "report/page.h"
#include "web/metrics.h"
#include "web/shelf.h"

namespace mayfly {

// Written by the build from openapi.json (cmake/embed.cmake).
extern const unsigned char kApiDescription[];
extern const std::size_t kApiDescriptionSize;

namespace {

using Clock = std::chrono::steady_clock;
using httplib::Request;
using httplib::Response;

constexpr std::size_t kThreads = 48;    ///< connections served at a time
constexpr int kMostStreams = 32;        ///< of them, kept open to tell news
constexpr int kMostWaiting = 4;         ///< questions that compute, the one in hand included
constexpr double kMostPerSecond = 300;  ///< requests answered at once; beyond that each is held back
constexpr std::chrono::milliseconds kHeldBack{50};
constexpr std::size_t kMostBody = 64 * 1024;
constexpr int kPatience = 5;  ///< seconds with a connection that says nothing
constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::chrono::milliseconds kTellEvery{500};
constexpr std::chrono::seconds kBeatEvery{10};
constexpr std::int64_t kMostLines = 1000;

constexpr const char* kJson = "application/json";
constexpr const char* kName = R"(/api/runs/([^/]+))";

void refuse(Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(Json{{"error", why}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", kJson);
}

void answer(Response& response, const Json& json) {
  response.set_content(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", kJson);
}

/// Whether requests come faster than people ask: a bucket of a second's worth that fills again as time passes.
class Bucket {
 public:
  bool too_fast() {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    left_ = std::min(kMostPerSecond, left_ + kMostPerSecond * std::chrono::duration<double>(now - filled_).count());
    filled_ = now;
    if (left_ < 1) return true;
    left_ -= 1;
    return false;
  }

 private:
  std::mutex mutex_{};
  double left_ = kMostPerSecond;
  std::chrono::steady_clock::time_point filled_ = std::chrono::steady_clock::now();
};

/// The time it takes does not tell how much of the word was right.
bool same_word(const std::string& a, const std::string& b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ (b.empty() ? '\0' : b[i % b.size()]));
  return difference == 0;
}

/// A page of another site can make a browser ask, under a name of its own that leads here; then this is not ours.
bool names_this_machine(std::string host) {
  std::transform(host.begin(), host.end(), host.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (const auto colon = host.rfind(':'); colon != std::string::npos && !host.ends_with(']')) host.resize(colon);
  return host == "localhost" || host == "[::1]" || is_loopback(host);
}

/// Journal lines `after` which so many are wanted.
Json journal_page(const std::string& text, std::int64_t after, std::int64_t limit) {
  Json lines = Json::array();
  std::int64_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    if (number >= after && std::cmp_less(lines.size(), limit)) {
      Json parsed = parsed_json(line);
      lines.push_back(parsed.is_discarded() ? Json() : std::move(parsed));
    }
    ++number;
  }
  const auto next = std::min(number, after + static_cast<std::int64_t>(lines.size()));
  return {{"lines", std::move(lines)}, {"next", next}, {"total", number}};
}

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

struct Dashboard::Parts {
  explicit Parts(DashboardOptions given)
      : options(std::move(given)), shelf(options.root, options.catalog), answers(options.choices) {}
  ~Parts() {
    stopping = true;
    server.stop();
    if (thread.joinable()) thread.join();
  }

  void limits();
  void routes();
  bool let_in(const Request& request, Response& response) const;
  void list_runs(Response& response) const;
  void view(const Request& request, Response& response);
  void stream(const Request& request, Response& response);
  void file(const Request& request, Response& response, const char* name) const;
  void journal(const Request& request, Response& response) const;
  template <class Ask>
  void compute(const Request& request, Response& response, const Ask& ask);

  const DashboardOptions options;
  Shelf shelf;
  Answers answers;
  httplib::Server server{};
  int port = 0;
  std::thread thread{};
  std::atomic<bool> stopping{false};
  Bucket bucket{};
  std::atomic<int> streams{0};
  std::atomic<int> waiting{0};
  std::mutex computing{};  ///< one question at a time: training wants the cores
};

void Dashboard::Parts::limits() {
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kMostBody);
  server.set_read_timeout(kPatience);
  server.set_write_timeout(kPatience);
  server.set_keep_alive_timeout(kPatience);
  server.set_keep_alive_max_count(1000);
  server.set_tcp_nodelay(true);
  server.set_exception_handler(
      [](const Request&, Response& response, const std::exception_ptr&) { refuse(response, 500, "internal error"); });
  server.set_error_handler([](const Request&, Response& response) {
    if (response.body.empty()) refuse(response, response.status, fmt::format("status {}", response.status));
  });
  server.set_pre_routing_handler([this](const Request& request, Response& response) {
    // A client that asks in a loop waits, so that training does not.
    if (bucket.too_fast()) std::this_thread::sleep_for(kHeldBack);
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Cache-Control", "no-store");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Content-Security-Policy",
                        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
                        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    return let_in(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                     : httplib::Server::HandlerResponse::Handled;
  });
}

bool Dashboard::Parts::let_in(const Request& request, Response& response) const {
  // The library would read a body in chunks to its end, however long, and answer with each range that is asked for.
  if (request.has_header("Transfer-Encoding")) {
    refuse(response, 411, "want Content-Length instead of Transfer-Encoding");
    return false;
  }
  if (request.has_header("Range")) {
    refuse(response, 416, "ranges are not served");
    return false;
  }
  if (request.get_header_value_count("Host") > 1) {
    refuse(response, 400, "want one Host");
    return false;
  }
  if (is_loopback(options.host) && !names_this_machine(request.get_header_value("Host"))) {
    refuse(response, 403, "this dashboard answers to localhost only");
    return false;
  }
  // The page itself holds no figures, and asks for them with the token.
  if (options.token.empty() || request.path == "/healthz" || request.path == "/") return true;
  std::string given = request.get_header_value("Authorization");
  given = given.starts_with("Bearer ") ? given.substr(7) : request.get_param_value("token");
  if (same_word(given, options.token)) return true;
  refuse(response, 401, "want the dashboard's token: Authorization: Bearer TOKEN");
  return false;
}

void Dashboard::Parts::list_runs(Response& response) const {
  Json runs = Json::array();
  std::vector<RunView> views = shelf.runs();
  std::sort(views.begin(), views.end(), [](const RunView& a, const RunView& b) {
    return (a.status ? a.status->written : 0) > (b.status ? b.status->written : 0);
  });
  for (const RunView& run : views) {
    Json json{{"name", run_name(run.directory)}};
    json.update(run_json(run));
    runs.push_back(std::move(json));
  }
  answer(response, {{"runs", std::move(runs)}});
}

void Dashboard::Parts::view(const Request& request, Response& response) {
  const auto run = shelf.watch(request.matches[1]);
  if (!run) return refuse(response, 404, "no such run");
  response.set_content(*run->snapshot().view, kJson);
}

void Dashboard::Parts::stream(const Request& request, Response& response) {
  const auto run = shelf.watch(request.matches[1]);
  if (!run) return refuse(response, 404, "no such run");
  if (++streams > kMostStreams) {
    --streams;
    return refuse(response, 503, "too many are watching");
  }
  struct Told {
    std::uint64_t version = 0;
    Clock::time_point at{};
    bool over = false;
  };
  response.set_chunked_content_provider(
      "text/event-stream",
      [this, run, told = Told()](std::size_t, httplib::DataSink& sink) mutable {
        const auto send = [&](const std::string& text) { return sink.write(text.data(), text.size()); };
        while (!stopping) {
          const auto now = Clock::now();
          const auto snapshot = run->snapshot();
          if (snapshot.version != told.version && now - told.at >= kTellEvery) {
            told.version = snapshot.version;
            told.at = now;
            told.over = snapshot.over;
            return send("event: view\ndata: " + *snapshot.view + "\n\n");
          }
          if (told.over && snapshot.version == told.version) {
            send("event: end\ndata: {}\n\n");
            sink.done();
            return true;
          }
          if (now - told.at >= kBeatEvery) {
            told.at = now;
            return send(": still here\n\n");
          }
          std::this_thread::sleep_for(kLookEvery);
        }
        sink.done();
        return true;
      },
      [this](bool) { --streams; });
}

void Dashboard::Parts::file(const Request& request, Response& response, const char* name) const {
  const auto directory = shelf.find(request.matches[1]);
  if (!directory) return refuse(response, 404, "no such run");
  const auto text = load_own_text(*directory / name);
  if (!text) return refuse(response, 404, fmt::format("this run has no {}", name));
  response.set_content(*text, kJson);
}

void Dashboard::Parts::journal(const Request& request, Response& response) const {
  const auto directory = shelf.find(request.matches[1]);
  if (!directory) return refuse(response, 404, "no such run");
  const auto number = [&](const char* key, std::int64_t otherwise) -> std::optional<std::int64_t> {
    if (!request.has_param(key)) return otherwise;
    const auto value = parse_integer(request.get_param_value(key));
    return value && *value >= 0 ? std::optional<std::int64_t>(*value) : std::nullopt;
  };
  const auto after = number("after", 0);
  const auto limit = number("limit", kMostLines);
  if (!after || !limit) return refuse(response, 400, "after and limit: want whole numbers of at least 0");
  const auto text = load_own_text(*directory / "journal.jsonl");
  if (!text) return refuse(response, 404, "this run has no journal");
  answer(response, journal_page(*text, *after, std::min(*limit, kMostLines)));
}

template <class Ask>
void Dashboard::Parts::compute(const Request& request, Response& response, const Ask& ask) {
  // A form of another site cannot say this without asking first.
  if (!request.get_header_value("Content-Type").starts_with(kJson))
    return refuse(response, 415, "want Content-Type: application/json");
  if (++waiting > kMostWaiting) {
    --waiting;
    return refuse(response, 503, "busy with other questions, ask again");
  }
  const auto result = [&] {
    const std::lock_guard lock(computing);
    return ask(request.body);
  }();
  --waiting;
  if (!result) return refuse(response, 422, result.error().message);
  answer(response, *result);
}

void Dashboard::Parts::routes() {
  server.Get("/", [](const Request&, Response& response) {
    response.set_content(page().data(), page().size(), "text/html; charset=utf-8");
  });
  server.Get("/healthz", [](const Request&, Response& response) { response.set_content("ok\n", "text/plain"); });
  server.Get("/metrics", [this](const Request&, Response& response) {
    response.set_content(metrics_text(shelf.runs()), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/openapi.json", [](const Request&, Response& response) {
    response.set_content(reinterpret_cast<const char*>(kApiDescription), kApiDescriptionSize, kJson);
  });
  server.Get("/api/runs", [this](const Request&, Response& response) { list_runs(response); });
  server.Get("/api/choices", [this](const Request&, Response& response) { answer(response, answers.choices()); });
  const std::string run = kName;
  server.Get(run, [this](const Request& request, Response& response) { view(request, response); });
  server.Get(run + "/stream", [this](const Request& request, Response& response) { stream(request, response); });
  server.Get(run + "/journal", [this](const Request& request, Response& response) { journal(request, response); });
  for (const char* name : {"status", "summary", "plan"}) {
    server.Get(run + "/" + name, [this, name](const Request& request, Response& response) {
      file(request, response, fmt::format("{}.json", name).c_str());
    });
  }
  server.Post("/api/plan", [this](const Request& request, Response& response) {
    compute(request, response, [this](const std::string& body) { return answers.plan(body); });
  });
  server.Post("/api/replay", [this](const Request& request, Response& response) {
    compute(request, response, [this](const std::string& body) { return answers.replay(body); });
  });
}

Dashboard::Dashboard(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Dashboard::Dashboard(Dashboard&&) noexcept = default;
Dashboard::~Dashboard() = default;

int Dashboard::port() const { return parts_->port; }

Result<Dashboard> Dashboard::start(DashboardOptions options) {
  if (options.token.empty() && !is_loopback(options.host))
    return fail("{}: others can reach this address, so the dashboard wants a token", options.host);
  auto parts = std::make_unique<Parts>(std::move(options));
  parts->limits();
  parts->routes();
  const auto& [host, port] = std::pair{parts->options.host, parts->options.port};
  if (port == 0) {
    parts->port = parts->server.bind_to_any_port(host);
  } else {
    parts->port = parts->server.bind_to_port(host, port) ? port : -1;
  }
  if (parts->port <= 0) return fail("{}:{}: cannot listen there; is the port taken?", host, port);
  parts->thread = std::thread([&server = parts->server] { server.listen_after_bind(); });
  return Dashboard(std::move(parts));
}

}  // namespace mayfly
