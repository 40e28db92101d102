#include "light_run.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace mayfly::bench {
namespace {

/// It goes when this process does.
pid_t started(std::vector<std::string> words, const std::filesystem::path& log) {
  const pid_t pid = ::fork();
  MAYFLY_CHECK(pid >= 0, "fork");
  if (pid > 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

void end(pid_t pid) {
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

std::string programs() {
  if (const char* named = std::getenv("MAYFLY_PROGRAMS")) return named;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().string();
}

/// As soon as it is there.
std::string awaited_text(const std::filesystem::path& path) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (const auto text = load_text(path); text && !text->empty()) return std::string(trimmed(*text));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fmt::print(stderr, "{} is not written\n", path.string());
  std::abort();
}

double cpu_seconds(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string job(const Run::Options& options) {
  return fmt::format(
      "name: light\nobjective: {{epochs: 100000000}}\nelastic: {{max: {}}}\ntrain:\n  model: {{name: count}}\n"
      "  data: {{name: count, samples: 1000}}\n  optimiser: {{kind: sgd, rate: 1}}\n  reduction: sum\n  batch: {}\n"
      "  servers: {{count: 1, sync: {}}}\n",
      options.most, Run::kBatch, options.sync);
}

}  // namespace

Run::Run(const Options& options) {
  const auto& folder = folder_.path();
  MAYFLY_CHECK(save_text(folder / "job.yaml", job(options)), "job.yaml");
  front_ = started({programs() + "/mayfly", "run", (folder / "job.yaml").string(), "--engine", "none", "--workers",
                    std::to_string(options.workers), "--out", (folder / "run").string(), "-y"},
                   folder / "controller.log");
  credentials_ = Credentials::from(awaited_text(folder / "run/token")).value();
  address_ = awaited_text(folder / "run/address");
  server_ = started(
      {programs() + "/mayfly-train", "server", "--join", address_, "--token-file", (folder / "run/token").string()},
      folder / "server.log");
  const Json processes = Json::parse(awaited_text(folder / "run/processes.json"));
  controller_ = processes.at("controller").get<pid_t>();
}

Run::~Run() {
  end(front_);
  if (controller_ > 0) ::kill(controller_, SIGKILL);
  end(server_);
}

double Run::controller_cpu() const { return cpu_seconds(controller_); }
double Run::server_cpu() const { return cpu_seconds(server_); }

double Run::controller_mb() const {
  std::ifstream file(fmt::format("/proc/{}/statm", controller_));
  double whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

std::vector<double> Run::losses() const {
  std::vector<double> times;
  std::ifstream file(folder_.path() / "run/journal.jsonl");
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"lost\"") == std::string::npos) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object() && json.value("event", "") == "lost") times.push_back(json.at("t_s"));
  }
  return times;
}

double Run::span_of_losses(int count) const {
  const auto times = losses();
  return times.back() - times[times.size() - static_cast<std::size_t>(count)];
}

namespace {

/// A connection's place in the cycle of exchanges.
struct Turn {
  int socket = -1;
  std::size_t at = 0;
  std::string in{};
};

/// Takes questions and gives answers, for ever.
void answer(int listener, const std::vector<PlainTcp::Exchange>& exchanges, int connections) {
  Poller poller;
  std::vector<std::unique_ptr<Turn>> turns;
  for (int i = 0; i < connections; ++i) {
    turns.push_back(std::make_unique<Turn>(Turn{.socket = ::accept(listener, nullptr, nullptr)}));
    poller.watch(turns.back()->socket, [&exchanges, turn = turns.back().get()] {
      if (!receive_more(turn->socket, turn->in)) ::_exit(0);
      const auto& exchange = exchanges[turn->at];
      if (turn->in.size() < exchange.question) return;
      turn->in.erase(0, exchange.question);
      turn->at = (turn->at + 1) % exchanges.size();
      send_all(turn->socket, std::string(exchange.answer, '\0'));
    });
  }
  poller.run(Seconds(1e6), [] { return false; });
}

}  // namespace

PlainTcp::PlainTcp(int connections, std::vector<Exchange> exchanges) : exchanges_(std::move(exchanges)) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  MAYFLY_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&place), size) == 0 && ::listen(listener, 1024) == 0 &&
                   ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size) == 0,
               "listen");
  peer_ = ::fork();
  if (peer_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    answer(listener, exchanges_, connections);
    ::_exit(0);
  }
  for (int i = 0; i < connections; ++i)
    sockets_.push_back(connected_to(fmt::format("127.0.0.1:{}", ntohs(place.sin_port))));
  ::close(listener);
}

PlainTcp::~PlainTcp() {
  for (const int socket : sockets_) ::close(socket);
  end(peer_);
}

double PlainTcp::seconds_per_cycle(double seconds) {
  Poller poller;
  std::vector<Turn> turns(sockets_.size());
  std::int64_t cycles = 0;
  std::size_t busy = sockets_.size();
  bool over = false;
  const auto ask = [&](const Turn& turn) { send_all(turn.socket, std::string(exchanges_[turn.at].question, '\0')); };
  const auto start = Clock::now();
  for (std::size_t i = 0; i < turns.size(); ++i) {
    turns[i].socket = sockets_[i];
    poller.watch(sockets_[i], [&, turn = &turns[i]] {
      MAYFLY_CHECK(receive_more(turn->socket, turn->in), "the plain peer answers");
      if (turn->in.size() < exchanges_[turn->at].answer) return;
      turn->in.clear();
      turn->at = (turn->at + 1) % exchanges_.size();
      if (turn->at == 0) ++cycles;
      if (turn->at == 0 && over) {
        --busy;  // the next window begins with a whole cycle
      } else {
        ask(*turn);
      }
    });
    ask(turns[i]);
  }
  poller.run(Seconds(seconds), [] { return false; });
  const double took = Seconds(Clock::now() - start).count() / static_cast<double>(cycles);
  over = true;
  MAYFLY_CHECK(poller.run(Seconds(10), [&] { return busy == 0; }), "the plain peer answers");
  return took;
}

std::string load_average() {
  std::ifstream file("/proc/loadavg");
  std::string one, five, fifteen;
  file >> one >> five >> fifteen;
  return one + " " + five + " " + fifteen;
}

}  // namespace mayfly::bench
