#pragma once

#include <httplib.h>

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace mayfly::support {

/// A server on loopback, for tests, that gives the answers it was told to give, one after another, and remembers what
/// it was asked.
class StubServer {
 public:
  using Answer = std::function<void(const httplib::Request&, httplib::Response&)>;

  StubServer() {
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request);
      if (answers_.empty()) {
        response.status = 599;
        return;
      }
      // The answer is sent as it is told here, not cut to what was asked for; the library's own request is no constant.
      const_cast<httplib::Request&>(request).ranges.clear();
      answers_.front()(request, response);
      answers_.pop_front();
    };
    server_.Get(".*", answer).Put(".*", answer).Post(".*", answer).Delete(".*", answer);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~StubServer() {
    server_.stop();
    thread_.join();
  }

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void then(int status, const std::string& body = "") {
    then([status, body](const httplib::Request&, httplib::Response& response) {
      response.status = status;
      response.set_content(body, "application/xml");
    });
  }
  void then(Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }
  std::vector<httplib::Request> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  httplib::Server server_{};
  int port_ = 0;
  std::mutex mutex_{};
  std::deque<Answer> answers_{};
  std::vector<httplib::Request> asked_{};
  std::thread thread_{};
};

}  // namespace mayfly::support
