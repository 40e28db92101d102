#include "wire/message.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/json.h"

namespace mayfly {
namespace {

/// One key of a message; numbers below `least` are errors.
template <class M, class T>
struct Field {
  const char* key;
  T M::* member;
  double least = 0;
};

template <class... Fields>
struct Table {
  const char* name;
  std::tuple<Fields...> fields;
};
template <class... Fields>
constexpr Table<Fields...> named(const char* name, Fields... fields) {
  return {name, {fields...}};
}

/// What diverged is no number; it travels as null.
constexpr double kAnything = -std::numeric_limits<double>::infinity();

// The pointers only choose the overload.
constexpr auto table(const Hello*) {
  return named("hello", Field{"protocol", &Hello::protocol}, Field{"pid", &Hello::pid}, Field{"role", &Hello::role},
               Field{"slot", &Hello::launch, -1}, Field{"machine", &Hello::machine}, Field{"worker", &Hello::worker},
               Field{"sample", &Hello::sample}, Field{"pending", &Hello::pending},
               Field{"formation", &Hello::formation});
}
constexpr auto table(const Ready*) {
  return named("ready", Field{"samples", &Ready::samples}, Field{"data", &Ready::data},
               Field{"parameters", &Ready::parameters}, Field{"state_mb", &Ready::state_mb},
               Field{"load_s", &Ready::load_s}, Field{"address", &Ready::address}, Field{"cache", &Ready::cache});
}
constexpr auto table(const Reachable*) {
  return named("reachable", Field{"formation", &Reachable::formation}, Field{"address", &Reachable::address});
}
constexpr auto table(const Formed*) { return named("formed", Field{"formation", &Formed::formation}); }
constexpr auto table(const StepDone*) {
  return named("step-done", Field{"formation", &StepDone::formation}, Field{"first_sample", &StepDone::first_sample},
               Field{"samples", &StepDone::samples}, Field{"read", &StepDone::read},
               Field{"loss", &StepDone::loss, kAnything}, Field{"compute_s", &StepDone::compute_s},
               Field{"exchange_s", &StepDone::exchange_s}, Field{"wait_s", &StepDone::wait_s},
               Field{"validation_loss", &StepDone::validation_loss, kAnything}, Field{"accuracy", &StepDone::accuracy},
               Field{"state", &StepDone::state}, Field{"compare_s", &StepDone::compare_s});
}
constexpr auto table(const Pushed*) {
  return named("pushed", Field{"formation", &Pushed::formation}, Field{"lease", &Pushed::lease},
               Field{"sample", &Pushed::sample}, Field{"read", &Pushed::read}, Field{"loss", &Pushed::loss, kAnything},
               Field{"compute_s", &Pushed::compute_s}, Field{"pull_s", &Pushed::pull_s},
               Field{"push_s", &Pushed::push_s}, Field{"wait_s", &Pushed::wait_s},
               Field{"validation_loss", &Pushed::validation_loss, kAnything}, Field{"accuracy", &Pushed::accuracy});
}
constexpr auto table(const Broken*) {
  return named("broken", Field{"formation", &Broken::formation}, Field{"what", &Broken::what},
               Field{"unreached", &Broken::unreached});
}
constexpr auto table(const CheckpointWritten*) {
  return named("checkpoint-written", Field{"sample", &CheckpointWritten::sample},
               Field{"path", &CheckpointWritten::path}, Field{"size_mb", &CheckpointWritten::size_mb},
               Field{"stall_s", &CheckpointWritten::stall_s}, Field{"write_s", &CheckpointWritten::write_s});
}
constexpr auto table(const CheckpointFailed*) {
  return named("checkpoint-failed", Field{"sample", &CheckpointFailed::sample}, Field{"what", &CheckpointFailed::what});
}
constexpr auto table(const Unable*) { return named("unable", Field{"what", &Unable::what}); }
constexpr auto table(const Leaving*) {
  return named("leaving", Field{"left_s", &Leaving::left_s}, Field{"why", &Leaving::why});
}
constexpr auto table(const AtRisk*) { return named("at-risk", Field{"why", &AtRisk::why}); }
constexpr auto table(const Drill*) {
  return named("drill", Field{"workers", &Drill::workers}, Field{"cloud", &Drill::cloud},
               Field{"endpoint", &Drill::endpoint}, Field{"window_s", &Drill::window_s});
}
constexpr auto table(const Alive*) { return named("alive", Field{"doing", &Alive::doing}); }
constexpr auto table(const Welcome*) {
  return named("welcome", Field{"worker", &Welcome::worker}, Field{"run", &Welcome::run}, Field{"job", &Welcome::job},
               Field{"job_file", &Welcome::job_file}, Field{"directory", &Welcome::directory},
               Field{"heartbeat_s", &Welcome::heartbeat_s}, Field{"lease_s", &Welcome::lease_s},
               Field{"orphan_s", &Welcome::orphan_s}, Field{"seed", &Welcome::seed}, Field{"sum", &Welcome::sum},
               Field{"clip", &Welcome::clip}, Field{"network", &Welcome::network},
               Field{"private_network", &Welcome::private_network});
}
constexpr auto table(const Refused*) { return named("refused", Field{"why", &Refused::why}); }
constexpr auto table(const Form*) {
  return named("form", Field{"formation", &Form::formation}, Field{"rank", &Form::rank}, Field{"size", &Form::size, 1},
               Field{"sample", &Form::sample}, Field{"source", &Form::source}, Field{"checkpoint", &Form::checkpoint},
               Field{"from_checkpoint", &Form::from_checkpoint}, Field{"receivers", &Form::receivers});
}
constexpr auto table(const Peers*) {
  return named("peers", Field{"formation", &Peers::formation}, Field{"addresses", &Peers::addresses});
}
constexpr auto table(const Proceed*) {
  return named("proceed", Field{"formation", &Proceed::formation}, Field{"committed", &Proceed::committed},
               Field{"step", &Proceed::step}, Field{"counts", &Proceed::counts}, Field{"evaluate", &Proceed::evaluate},
               Field{"compare", &Proceed::compare});
}
constexpr auto table(const Serve*) {
  return named("serve", Field{"formation", &Serve::formation}, Field{"shard", &Serve::shard},
               Field{"shards", &Serve::shards, 1}, Field{"sample", &Serve::sample}, Field{"source", &Serve::source},
               Field{"checkpoint", &Serve::checkpoint}, Field{"from_checkpoint", &Serve::from_checkpoint});
}
constexpr auto table(const Attach*) {
  return named("attach", Field{"formation", &Attach::formation}, Field{"shards", &Attach::shards, 1},
               Field{"addresses", &Attach::addresses});
}
constexpr auto table(const Lease*) {
  return named("lease", Field{"formation", &Lease::formation}, Field{"lease", &Lease::lease},
               Field{"sample", &Lease::sample}, Field{"first_sample", &Lease::first_sample},
               Field{"samples", &Lease::samples}, Field{"share", &Lease::share}, Field{"evaluate", &Lease::evaluate});
}
constexpr auto table(const Commit*) {
  return named("commit", Field{"formation", &Commit::formation}, Field{"from", &Commit::from},
               Field{"sample", &Commit::sample}, Field{"leases", &Commit::leases}, Field{"step", &Commit::step},
               Field{"workers", &Commit::workers, 1});
}
constexpr auto table(const Forget*) {
  return named("forget", Field{"formation", &Forget::formation}, Field{"leases", &Forget::leases});
}
constexpr auto table(const Save*) {
  return named("save", Field{"formation", &Save::formation}, Field{"sample", &Save::sample}, Field{"step", &Save::step},
               Field{"loss", &Save::loss, kAnything}, Field{"ledger", &Save::ledger},
               Field{"addresses", &Save::addresses});
}
constexpr auto table(const WriteCheckpoint*) {
  return named("write-checkpoint", Field{"formation", &WriteCheckpoint::formation});
}
constexpr auto table(const Halt*) { return named("halt", Field{"formation", &Halt::formation}); }
constexpr auto table(const Explain*) { return named("explain"); }
constexpr auto table(const Leave*) { return named("leave", Field{"why", &Leave::why}); }
constexpr auto table(const Neighbours*) {
  return named("neighbours", Field{"workers", &Neighbours::workers}, Field{"addresses", &Neighbours::addresses});
}
constexpr auto table(const Fed*) {
  return named("fed", Field{"hits", &Fed::hits}, Field{"from_peers", &Fed::from_peers},
               Field{"from_storage", &Fed::from_storage}, Field{"peers_failed", &Fed::peers_failed},
               Field{"prepared", &Fed::prepared}, Field{"received", &Fed::received}, Field{"fetch_s", &Fed::fetch_s},
               Field{"prep_s", &Fed::prep_s}, Field{"wait_s", &Fed::wait_s});
}
constexpr auto table(const Watch*) {
  return named("watch", Field{"cloud", &Watch::cloud}, Field{"endpoint", &Watch::endpoint});
}
constexpr auto table(const Drilling*) {
  return named("drilling", Field{"time_s", &Drilling::time_s}, Field{"samples", &Drilling::samples});
}

constexpr auto table(const Measure*) {
  return named("measure", Field{"formation", &Measure::formation}, Field{"data", &Measure::data},
               Field{"samples", &Measure::samples}, Field{"layers", &Measure::layers},
               Field{"batch", &Measure::batch, 1}, Field{"exchanges", &Measure::exchanges},
               Field{"rehearse", &Measure::rehearse});
}
constexpr auto table(const Measurement*) {
  using M = Measurement;
  return named("measurement", Field{"formation", &M::formation}, Field{"cpu_s", &M::cpu_s},
               Field{"peak_mb", &M::peak_mb}, Field{"prep_threads", &M::prep_threads},
               Field{"rehearsed", &M::rehearsed}, Field{"rehearsed_mb", &M::rehearsed_mb}, Field{"read_s", &M::read_s},
               Field{"reread_s", &M::reread_s}, Field{"prepare_s", &M::prepare_s}, Field{"tensors", &M::tensors},
               Field{"gflops", &M::gflops}, Field{"layers", &M::layers}, Field{"layer_forward_s", &M::layer_forward_s},
               Field{"layer_backward_s", &M::layer_backward_s}, Field{"layer_parameters", &M::layer_parameters},
               Field{"layer_output_mb", &M::layer_output_mb}, Field{"exchanges_s", &M::exchanges_s});
}

constexpr auto table(const Browse*) { return named("browse"); }
constexpr auto table(const Fetch*) {
  return named("fetch", Field{"name", &Fetch::name}, Field{"offset", &Fetch::offset}, Field{"count", &Fetch::count, 1});
}
constexpr auto table(const Bring*) {
  return named("bring", Field{"checkpoint", &Bring::checkpoint}, Field{"file", &Bring::file},
               Field{"offset", &Bring::offset});
}
constexpr auto table(const Keep*) { return named("keep", Field{"checkpoint", &Keep::checkpoint}); }
constexpr auto table(const Shelved*) {
  return named("shelved", Field{"names", &Shelved::names}, Field{"sizes", &Shelved::sizes},
               Field{"hashes", &Shelved::hashes}, Field{"programs", &Shelved::programs});
}
constexpr auto table(const Piece*) { return named("piece", Field{"offset", &Piece::offset}); }
constexpr auto table(const Taken*) { return named("taken"); }
constexpr auto table(const Kept*) { return named("kept", Field{"path", &Kept::path}); }
constexpr auto table(const Undone*) { return named("undone", Field{"why", &Undone::why}); }

template <class T>
void put(Json& object, const char* key, const T& value) {
  object[key] = value;
}
template <class T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

// Each returns whether the value was one of its type and range.
template <class Whole>
bool take_whole(const Json& from, Whole& to, double least) {
  if (!from.is_number_integer()) return false;
  if (from.is_number_unsigned() && from.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<Whole>::max()})
    return false;
  const auto value = from.get<std::int64_t>();
  if (static_cast<double>(value) < least || !std::in_range<Whole>(value)) return false;
  to = static_cast<Whole>(value);
  return true;
}
bool take(const Json& from, int& to, double least) { return take_whole(from, to, least); }
bool take(const Json& from, std::int64_t& to, double least) { return take_whole(from, to, least); }
bool take(const Json& from, double& to, double least) {
  if (from.is_null() && least == kAnything) {
    to = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (!from.is_number()) return false;
  to = from.get<double>();
  return std::isfinite(to) && to >= least;
}
bool take(const Json& from, bool& to, double /*least*/) {
  if (from.is_boolean()) to = from.get<bool>();
  return from.is_boolean();
}
bool take(const Json& from, std::string& to, double /*least*/) {
  if (from.is_string()) to = from.get<std::string>();
  return from.is_string();
}
template <class T>
bool take(const Json& from, std::vector<T>& to, double least) {
  if (!from.is_array()) return false;
  to.reserve(from.size());
  for (const auto& item : from) {
    if (!take(item, to.emplace_back(), least)) return false;
  }
  return true;
}

bool take(const Json& from, std::vector<bool>& to, double least) {
  if (!from.is_array()) return false;
  for (const auto& item : from) {
    bool one = false;
    if (!take(item, one, least)) return false;
    to.push_back(one);
  }
  return true;
}

template <class T>
bool take(const Json& from, std::optional<T>& to, double least) {
  return take(from, to.emplace(), least);
}

template <class T>
constexpr bool kMayBeAbsent = false;
template <class T>
constexpr bool kMayBeAbsent<std::optional<T>> = true;

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

/// What single fields cannot tell.
template <class M>
bool sound(const M& /*message*/) {
  return true;
}
bool sound(const Form& form) {
  const auto stands = [&](int rank) { return rank < form.size; };
  return stands(form.rank) && stands(form.source) && std::all_of(form.receivers.begin(), form.receivers.end(), stands);
}

bool sound(const Serve& serve) { return serve.shard < serve.shards; }
bool sound(const Attach& attach) { return attach.addresses.size() >= static_cast<std::size_t>(attach.shards); }
bool sound(const Commit& commit) { return commit.from <= commit.sample; }
bool sound(const Measure& measure) {
  constexpr std::array kFeeds{"synthetic", "real", "cold", "warm"};
  return std::find(kFeeds.begin(), kFeeds.end(), measure.data) != kFeeds.end();
}
bool sound(const Measurement& used) {
  const auto layers = used.layers.size();
  return used.layer_forward_s.size() == layers && used.layer_backward_s.size() == layers &&
         used.layer_parameters.size() == layers && used.layer_output_mb.size() == layers;
}
bool sound(const Shelved& shelved) {
  const auto files = shelved.names.size();
  return shelved.sizes.size() == files && shelved.hashes.size() == files && shelved.programs.size() == files;
}
bool sound(const Fetch& fetch) { return fetch.count <= kLongestPiece; }
bool sound(const Save& save) { return save.ledger.size() % 2 == 0; }

template <class M>
Result<M> read_as(const Json& object) {
  constexpr auto kTable = table(static_cast<const M*>(nullptr));
  M message;
  std::string wrong;
  std::size_t known = 1;
  const auto read = [&]<class T>(const Field<M, T>& field) {
    const auto found = object.find(field.key);
    known += found != object.end();
    if (!wrong.empty() || (found == object.end() && kMayBeAbsent<T>)) return;
    if (found == object.end())
      wrong = fmt::format("'{}' is missing", field.key);
    else if (!take(*found, message.*field.member, field.least))
      wrong = fmt::format("'{}' cannot be {}", field.key, shown(*found));
  };
  std::apply([&](const auto&... fields) { (read(fields), ...); }, kTable.fields);
  if (!wrong.empty()) return fail("message {}: {}", kTable.name, wrong);
  if (known != object.size()) return fail("message {}: unknown keys in {}", kTable.name, shown(object));
  if (!sound(message)) return fail("message {}: values that do not fit together in {}", kTable.name, shown(object));
  return message;
}

/// The alternatives of a direction; some of them are variants themselves.
template <class M>
struct Reader {
  static bool knows(const std::string& name) { return name == table(static_cast<const M*>(nullptr)).name; }
  static Result<M> read(const std::string& /*name*/, const Json& object) { return read_as<M>(object); }
};
template <class... Ms>
struct Reader<std::variant<Ms...>> {
  static bool knows(const std::string& name) { return (Reader<Ms>::knows(name) || ...); }
  /// Of a name that it knows.
  static Result<std::variant<Ms...>> read(const std::string& name, const Json& object) {
    Result<std::variant<Ms...>> message;
    const auto attempt = [&]<class M>(const M* /*type*/) {
      if (!Reader<M>::knows(name)) return;
      auto held = Reader<M>::read(name, object);
      if (held) {
        message = *std::move(held);
      } else {
        message = unexpected(held.error());
      }
    };
    (attempt(static_cast<const Ms*>(nullptr)), ...);
    return message;
  }
};

// Who reads it.
constexpr const char* reader(const ToController*) { return "the controller"; }
constexpr const char* reader(const ToMember*) { return "a worker or server"; }
constexpr const char* reader(const ToOperator*) { return "an operator"; }
constexpr const char* reader(const ToCarrier*) { return "a carrier"; }

bool of_any_direction(const std::string& name) {
  return Reader<ToController>::knows(name) || Reader<ToMember>::knows(name) || Reader<ToOperator>::knows(name) ||
         Reader<ToCarrier>::knows(name);
}

/// What stands behind a message's JSON: none where the message has no bytes.
template <class M>
std::string* bytes_of(M& message) {
  if constexpr (requires { message.bytes; }) return &message.bytes;
  return nullptr;
}
template <class... Ms>
std::string* bytes_of(std::variant<Ms...>& message) {
  return std::visit([](auto& held) { return bytes_of(held); }, message);
}

struct Writer {
  template <class M>
  std::string operator()(const M& held) const {
    constexpr auto kTable = table(static_cast<const M*>(nullptr));
    Json object{{"message", kTable.name}};
    std::apply([&](const auto&... fields) { (put(object, fields.key, held.*fields.member), ...); }, kTable.fields);
    // Paths and system messages may be no UTF-8; a worker must not end because of it.
    std::string text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
    if constexpr (requires { held.bytes; }) text.append(1, '\0').append(held.bytes);
    return text;
  }
  template <class... Ms>
  std::string operator()(const std::variant<Ms...>& held) const {
    return std::visit(*this, held);
  }
};

/// Nothing where the text is no JSON, or an object has a key twice.
std::optional<Json> parsed(std::string_view text) {
  std::set<std::string> keys;
  bool twice = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1)
      twice |= !keys.insert(value.get_ref<const std::string&>()).second;
    return depth <= 2;  // no message is deeper; what is cut off is missed by its reader
  };
  Json document = Json::parse(text.begin(), text.end(), watch, false);
  if (document.is_discarded() || twice) return std::nullopt;
  return document;
}

}  // namespace

template <class Direction>
std::string encoded(const std::type_identity_t<Direction>& message) {
  return Writer{}(message);
}

template <class Direction>
Result<Direction> decoded(std::string_view text) {
  const auto end = text.find('\0');  // which no JSON has
  const auto object = parsed(text.substr(0, end));
  if (!object || !object->is_object()) return fail("no message: {} bytes that are not one JSON object", text.size());
  const auto found = object->find("message");
  if (found == object->end() || !found->is_string()) return fail("no message: 'message' must be its name");
  const auto name = found->get<std::string>();
  if (!Reader<Direction>::knows(name)) {
    if (!of_any_direction(name)) return fail("unknown message '{}'", name.substr(0, 60));
    return fail("message {}: nothing that {} is told", name, reader(static_cast<const Direction*>(nullptr)));
  }
  auto message = Reader<Direction>::read(name, *object);
  if (!message) return message;
  std::string* const bytes = bytes_of(*message);
  if ((bytes == nullptr) != (end == text.npos))
    return fail("message {}: bytes behind it: want {}", name, bytes ? "some" : "none");
  if (bytes != nullptr) *bytes = text.substr(end + 1);
  return message;
}

template std::string encoded<ToController>(const ToController&);
template std::string encoded<ToMember>(const ToMember&);
template std::string encoded<ToOperator>(const ToOperator&);
template std::string encoded<ToCarrier>(const ToCarrier&);
template Result<ToController> decoded<ToController>(std::string_view);
template Result<ToMember> decoded<ToMember>(std::string_view);
template Result<ToOperator> decoded<ToOperator>(std::string_view);
template Result<ToCarrier> decoded<ToCarrier>(std::string_view);

}  // namespace mayfly
