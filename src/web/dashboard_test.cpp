#include "web/dashboard.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "status/folder.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

/// A folder with one finished run in it.
class DashboardTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "runs" / "count");
    write("secret", "outside");
    write("runs/count/request.json", "{}");
    write("runs/count/journal.jsonl",
          "{\"format\":\"mayfly-journal/1\",\"job\":\"count\"}\n"
          "{\"t_s\":1,\"event\":\"joined\",\"worker\":\"w1\",\"type\":\"local\"}\n"
          "{\"t_s\":2,\"event\":\"lost\",\"worker\":\"w1\"}\n");
    write("runs/count/summary.json", R"({"end":"trained","samples":7})");
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(root_ / name) << text; }

  Dashboard started(const std::string& token = {}) {
    return Dashboard::start({.root = root_ / "runs",
                             .token = token,
                             .choices = {.profiles = {{"p", MAYFLY_SOURCE_DIR "/data/profiles/spotdnn-resnet110.json"}},
                                         .catalogs = {{"default", MAYFLY_SOURCE_DIR "/data/catalogs/spotdnn.yaml"}},
                                         .weather = load_weather(MAYFLY_SOURCE_DIR "/data/weather.yaml").value()}})
        .value();
  }
  static int status(const httplib::Result& result) { return result ? result->status : -1; }

  support::TempFolder folder_{};
  const fs::path root_ = folder_.path();
};

TEST_F(DashboardTest, ShowsARunAsItsJournalHasIt) {
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  const auto runs = Json::parse(client.Get("/api/runs")->body);
  ASSERT_EQ(runs["runs"].size(), 1u);
  EXPECT_EQ(runs["runs"][0]["name"], "count");
  EXPECT_EQ(runs["runs"][0]["state"], "finished");
  const auto view = Json::parse(client.Get("/api/runs/count")->body);
  EXPECT_EQ(view["preemptions"], 1);
  EXPECT_EQ(view["samples"], 7);
  const auto journal = Json::parse(client.Get("/api/runs/count/journal?after=1&limit=1")->body);
  EXPECT_EQ(journal["lines"][0]["event"], "joined");
  EXPECT_EQ(journal["next"], 2);
  EXPECT_EQ(journal["total"], 3);
  EXPECT_EQ(Json::parse(client.Get("/api/runs/count/summary")->body)["samples"], 7);
  EXPECT_EQ(status(client.Get("/api/runs/count/plan")), 404);
}

TEST_F(DashboardTest, TellsWhatIsAddedToAJournal) {
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  EXPECT_EQ(Json::parse(client.Get("/api/runs/count")->body)["machines_total"], 1);
  std::ofstream(root_ / "runs/count/journal.jsonl", std::ios::app)
      << "{\"t_s\":3,\"event\":\"joined\",\"worker\":\"w2\",\"type\":\"local\"}\n";
  int seen = 0;
  for (int i = 0; i < 100 && seen != 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    seen = Json::parse(client.Get("/api/runs/count")->body)["machines_total"];
  }
  EXPECT_EQ(seen, 2);
}

TEST_F(DashboardTest, AStreamOfARunThatIsOverHasItsViewAndItsEnd) {
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  const auto result = client.Get("/api/runs/count/stream");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->body.find("event: view\ndata: {\"format\":\"mayfly-view/1\""), 0u);
  EXPECT_NE(result->body.find("event: end\n"), std::string::npos);
}

TEST_F(DashboardTest, NothingOutsideOfItsFolderCanBeNamed) {
  fs::create_symlink(root_ / "secret", root_ / "runs/count/status.json");
  fs::create_directory(root_ / "other");
  write("other/request.json", "{}");
  fs::create_directory_symlink(root_ / "other", root_ / "runs/linked");
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  EXPECT_EQ(Json::parse(client.Get("/api/runs")->body)["runs"].size(), 1u);
  for (const char* path : {"/api/runs/linked", "/api/runs/..", "/api/runs/../secret", "/api/runs/%2e%2e%2fother",
                           "/api/runs/..%2fother/journal", "/api/runs/count%2f..%2f..%2fsecret",
                           "/api/runs/count/../../../secret", "/../secret", "/secret", "/api/runs/other",
                           "/api/runs/count%00/journal", "/api/runs/count/status", "/api/runs/./summary"}) {
    const auto result = client.Get(path);
    EXPECT_GE(status(result), 400) << path;
    if (result) {
      EXPECT_EQ(result->body.find("outside"), std::string::npos) << path;
    }
  }
}

// More requests than the server has threads: were one to wait for a pipe, all would.
TEST_F(DashboardTest, PipesInTheFolderOfARunHoldNobodyUp) {
  fs::create_directory(root_ / "runs/piped");
  write("runs/piped/request.json", "{}");
  for (const char* name : {"run.lock", "status.json", "summary.json", "journal.jsonl", "job.yaml", "plan.json"})
    ASSERT_EQ(::mkfifo((root_ / "runs/piped" / name).c_str(), 0600), 0);
  const Dashboard dashboard = started();
  std::vector<std::thread> clients;
  for (int i = 0; i < 48; ++i) {
    clients.emplace_back([&] {
      httplib::Client client("127.0.0.1", dashboard.port());
      client.set_read_timeout(60);
      EXPECT_EQ(status(client.Get("/api/runs/piped")), 200);
      EXPECT_GE(status(client.Get("/api/runs/piped/journal")), 400);
    });
  }
  for (std::thread& client : clients) client.join();
  httplib::Client client("127.0.0.1", dashboard.port());
  EXPECT_EQ(status(client.Get("/api/runs")), 200);
}

TEST_F(DashboardTest, WithATokenNobodyElseIsAnswered) {
  const Dashboard dashboard = started("a-long-enough-token");
  httplib::Client client("127.0.0.1", dashboard.port());
  EXPECT_EQ(status(client.Get("/healthz")), 200);
  EXPECT_EQ(status(client.Get("/")), 200) << "the page without figures";
  for (const char* path : {"/api/runs", "/metrics", "/api/runs/count", "/api/runs/count/stream", "/api/choices"})
    EXPECT_EQ(status(client.Get(path)), 401) << path;
  EXPECT_EQ(status(client.Get("/api/runs?token=a-long-enough-tokem")), 401);
  EXPECT_EQ(status(client.Get("/api/runs?token=")), 401);
  EXPECT_EQ(status(client.Get("/api/runs?token=a-long-enough-token")), 200);
  EXPECT_EQ(status(client.Get("/api/runs", {{"Authorization", "Bearer a-long-enough-token"}})), 200);
}

TEST_F(DashboardTest, BeyondLoopbackATokenIsNeeded) {
  const auto open = Dashboard::start({.root = root_, .host = "0.0.0.0"});
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().message, "0.0.0.0: others can reach this address, so the dashboard wants a token");
}

TEST_F(DashboardTest, AnotherSitesNameForThisMachineIsRefused) {
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  EXPECT_EQ(status(client.Get("/api/runs", {{"Host", "evil.example:8080"}})), 403);
  EXPECT_EQ(status(client.Get("/api/runs", {{"Host", "localhost:8080"}})), 200);
}

TEST_F(DashboardTest, AnswersThePlannersQuestionsAndSaysWhatIsWrongWithThem) {
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  const std::string question = R"({"profile":"p","loss":0.8,"deadline_s":2600})";
  const auto plan = client.Post("/api/plan", question, "application/json");
  ASSERT_EQ(status(plan), 200);
  EXPECT_EQ(Json::parse(plan->body)["feasible"], true);
  EXPECT_EQ(status(client.Post("/api/plan", question, "text/plain")), 415);
  const auto wrong = client.Post("/api/plan", R"({"profile":"p"})", "application/json");
  EXPECT_EQ(status(wrong), 422);
  EXPECT_EQ(Json::parse(wrong->body)["error"], "want exactly one of loss, epochs and steps");
  EXPECT_EQ(status(client.Post("/api/plan", std::string(100'000, ' '), "application/json")), 413);
  EXPECT_EQ(status(client.Get("/api/plan")), 404);
}

TEST_F(DashboardTest, DescribesEveryPathItServes) {
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  const auto api = Json::parse(client.Get("/openapi.json")->body);
  for (const auto& [path, operations] : api["paths"].items()) {
    std::string real = path;
    if (const auto at = real.find("{name}"); at != std::string::npos) real.replace(at, 6, "count");
    const bool post = operations.contains("post");
    const int code = status(post ? client.Post(real, "{}", "application/json") : client.Get(real));
    const char* kind = post ? "post" : "get";
    EXPECT_TRUE(operations[kind]["responses"].contains(std::to_string(code))) << path << " answers " << code;
  }
}

TEST_F(DashboardTest, WhatTheLibraryWouldReadOrRepeatWithoutEndIsRefused) {
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  const auto chunked = client.Post(
      "/api/plan",
      [](std::size_t offset, httplib::DataSink& sink) {
        const std::string part(1000, ' ');
        if (offset < 200'000)
          sink.write(part.data(), part.size());
        else
          sink.done();
        return true;
      },
      "application/json");
  EXPECT_TRUE(!chunked || chunked->status == 411) << chunked->status;
  EXPECT_EQ(status(client.Get("/", {{"Range", "bytes=0-9,0-9,0-9"}})), 416);
  EXPECT_EQ(status(client.Get("/healthz")), 200);
}

TEST_F(DashboardTest, APipeInARunsFolderKeepsNobodyWaiting) {
  fs::remove(root_ / "runs/count/summary.json");
  ASSERT_EQ(::mkfifo((root_ / "runs/count/summary.json").c_str(), 0600), 0);
  fs::remove(root_ / "runs/count/journal.jsonl");
  ASSERT_EQ(::mkfifo((root_ / "runs/count/journal.jsonl").c_str(), 0600), 0);
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  EXPECT_EQ(status(client.Get("/api/runs/count/summary")), 404);
  EXPECT_EQ(status(client.Get("/api/runs/count/journal")), 404);
  EXPECT_EQ(status(client.Get("/api/runs/count")), 200);
}

TEST_F(DashboardTest, ALineNestedWithoutEndIsNone) {
  write("runs/count/journal.jsonl", "{\"t_s\":1,\"remark\":" + std::string(200'000, '[') + "\n");
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  EXPECT_TRUE(Json::parse(client.Get("/api/runs/count/journal")->body)["lines"][0].is_null());
}

TEST_F(DashboardTest, GarbageDisturbsNobody) {
  const Dashboard dashboard = started();
  httplib::Client client("127.0.0.1", dashboard.port());
  for (int i = 0; i < 20; ++i) {
    httplib::Client rude("127.0.0.1", dashboard.port());
    rude.set_read_timeout(1);
    rude.Get("/" + std::string(20'000, 'x'));
    rude.Get("/api/runs/count", {{"X-Long", std::string(20'000, 'y')}});
    rude.Get("/api/runs/%ff%fe%00");
  }
  EXPECT_EQ(status(client.Get("/healthz")), 200);
}

}  // namespace
}  // namespace mayfly
