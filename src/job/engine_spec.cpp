#include "job/engine_spec.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 5> kEngineKinds{"local", "none", "slurm", "ssh", "exec"};
constexpr std::size_t kMostHosts = 1000;
constexpr int kMostOnHost = 1000;

/// A word for Slurm: without spaces, which no name of Slurm's has.
std::string read_word(Section& section, std::string_view key) {
  std::string text = section.maybe_text(key).value_or("");
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!plain) section.reject(key, fmt::format("'{}', want a name without spaces", text));
  return text;
}

std::optional<Seconds> read_span(Section& section, std::string_view key) {
  const auto text = section.maybe_text(key);
  if (!text) return {};
  const auto time = parse_duration(*text);
  if (!time || time->count() <= 0) {
    section.reject(key, time ? fmt::format("'{}', want more than nothing", *text) : time.error().message);
    return {};
  }
  return *time;
}

std::optional<SlurmQueue> read_queue(Section& section, std::string_view key) {
  auto market = section.maybe_section(key);
  if (!market) return {};
  SlurmQueue queue{.partition = read_word(*market, "partition"),
                   .qos = read_word(*market, "qos"),
                   .account = read_word(*market, "account")};
  if (queue.partition.empty() && queue.qos.empty()) market->reject("partition", "want a partition, a qos or both");
  market->finish();
  return queue;
}

/// `1.1`, or `{spot: 0.4, on-demand: 1.1}`.
template <class Type>
void read_price(Section& section, Type& type) {
  const Value* value = section.raw("usd_per_hour");
  if (value == nullptr) return;
  const auto rate = [](const std::optional<double>& usd) {
    return usd ? std::optional(UsdPerHour{*usd}) : std::nullopt;
  };
  if (value->kind != Value::Kind::map) {
    type.spot = type.on_demand = rate(section.maybe_number("usd_per_hour", Range::non_negative));
    return;
  }
  auto prices = section.section("usd_per_hour");
  type.spot = rate(prices.maybe_number("spot", Range::non_negative));
  type.on_demand = rate(prices.maybe_number("on-demand", Range::non_negative));
  prices.finish();
}

SlurmType read_machine_type(Section& section) {
  SlurmType type{.gres = read_word(section, "gres"),
                 .constraint = read_word(section, "constraint"),
                 .cores = section.maybe_integer("cores")};
  if (const auto gb = section.maybe_number("memory_gb", Range::positive)) type.memory = Bytes{*gb * 1e9};
  if (type.memory && (type.memory->value < 1e7 || type.memory->value > 1e15))
    section.reject("memory_gb", "want 0.01 to 1000000");
  read_price(section, type);
  section.finish();
  return type;
}

SlurmSpec read_slurm(Section section) {
  SlurmSpec slurm{.spot = read_queue(section, "spot"),
                  .on_demand = read_queue(section, "on-demand"),
                  .account = read_word(section, "account"),
                  .reservation = read_word(section, "reservation"),
                  .time = read_span(section, "time"),
                  .hand_over = read_span(section, "hand_over"),
                  .setup = section.maybe_text("setup").value_or("")};
  if (slurm.time && *slurm.time < Seconds(60)) section.reject("time", "Slurm counts in minutes: want 1m or more");
  if (slurm.time && slurm.hand_over && *slurm.hand_over > *slurm.time / 2)
    section.reject("hand_over", "want at most half of time");
  if (auto types = section.maybe_section("types")) {
    for (auto& [name, type] : types->each()) slurm.types[name] = read_machine_type(type);
  }
  section.finish();
  return slurm;
}

/// One word, or a list of words.
std::vector<std::string> read_words(Section& section, std::string_view key) {
  const Value* value = section.raw(key);
  if (value == nullptr) return {};
  if (value->kind == Value::Kind::scalar && !value->scalar.empty()) return {value->scalar};
  std::vector<std::string> words;
  for (const Value& item : value->items) {
    if (item.kind == Value::Kind::scalar) words.push_back(item.scalar);
  }
  if (words.empty() || words.size() != value->items.size() || words.front().empty())
    section.reject(key, "want a word, or a list of words");
  return words;
}

/// Machines fetch the job's files over the run's connection, unless they see them anyway.
bool read_shared(Section& section) {
  const std::string files = section.maybe_text("files").value_or("own");
  if (files != "own" && files != "shared") section.reject("files", fmt::format("'{}', want own or shared", files));
  return files == "shared";
}

ExecSpec read_exec(Section section) {
  ExecSpec exec{.program = read_words(section, "program")};
  exec.patience = read_span(section, "patience").value_or(exec.patience);
  exec.every = read_span(section, "every").value_or(exec.every);
  exec.start = read_span(section, "start").value_or(exec.start);
  exec.notice = read_span(section, "notice").value_or(exec.notice);
  exec.setup = section.maybe_text("setup").value_or("");
  exec.shared_files = read_shared(section);
  if (auto types = section.maybe_section("types")) {
    for (auto& [name, type] : types->each()) {
      ExecType& one = exec.types[name];
      one.cores = type.maybe_integer("cores");
      read_price(type, one);
      type.finish();
    }
  }
  section.finish();
  return exec;
}

SshHost read_host(Section& section) {
  SshHost host{.host = read_word(section, "host"),
               .zone = read_word(section, "zone"),
               .cores = section.maybe_integer("cores"),
               .machines = section.maybe_integer("machines").value_or(1)};
  if (host.host.empty() || host.host.starts_with('-')) section.reject("host", "want [USER@]NAME, as ssh takes it");
  if (host.machines > kMostOnHost) section.reject("machines", fmt::format("want at most {}", kMostOnHost));
  if (auto type = read_word(section, "type"); !type.empty()) host.type = std::move(type);
  const std::string market = section.maybe_text("market").value_or("on-demand");
  if (market != "spot" && market != "on-demand")
    section.reject("market", fmt::format("'{}', want spot or on-demand", market));
  host.spot = market == "spot";
  if (const auto usd = section.maybe_number("usd_per_hour", Range::non_negative)) host.price = UsdPerHour{*usd};
  section.finish();
  return host;
}

/// A plan cannot tell two prices of one offer apart.
bool cost_alike(const SshHost& one, const SshHost& other) {
  return one.type != other.type || one.spot != other.spot || one.price == other.price;
}

SshSpec read_ssh(Section section) {
  SshSpec ssh{.options = read_words(section, "options"), .setup = section.maybe_text("setup").value_or("")};
  ssh.notice = read_span(section, "notice").value_or(ssh.notice);
  ssh.shared_files = read_shared(section);
  for (Section& one : section.list("hosts")) {
    SshHost host = read_host(one);
    for (const SshHost& other : ssh.hosts) {
      if (other.host == host.host) one.reject("host", fmt::format("'{}' stands there twice", host.host));
      if (!cost_alike(other, host))
        one.reject("usd_per_hour", fmt::format("want that of {}, which is of the same type and market", other.host));
    }
    ssh.hosts.push_back(std::move(host));
    if (ssh.hosts.size() > kMostHosts || !one.ok()) break;
  }
  if (ssh.hosts.empty() || ssh.hosts.size() > kMostHosts)
    section.reject("hosts", fmt::format("want 1 to {}", kMostHosts));
  section.finish();
  return ssh;
}

}  // namespace

bool is_engine_kind(std::string_view kind) { return std::ranges::find(kEngineKinds, kind) != kEngineKinds.end(); }

EngineSpec read_engine(Section& section) {
  EngineSpec engine{.kind = section.maybe_text("kind").value_or("")};
  if (!engine.kind.empty() && !is_engine_kind(engine.kind))
    section.reject("kind", fmt::format("'{}', want one of {}", engine.kind, fmt::join(kEngineKinds, ", ")));
  if (section.has("slurm")) engine.slurm = read_slurm(section.section("slurm"));
  if (section.has("exec")) engine.exec = read_exec(section.section("exec"));
  if (section.has("ssh")) engine.ssh = read_ssh(section.section("ssh"));
  return engine;
}

Result<EngineSpec> parse_engine(std::string_view text, const std::string& file) {
  return read_document(text, file, "mayfly-engine/1", read_engine);
}

}  // namespace mayfly
