#include "cli/command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "cloud/ages.h"

namespace mayfly::cli {
namespace fs = std::filesystem;

namespace {

/// One line whatever the input held: no line ends and no terminal codes from a hostile file, and not the whole of it.
std::string one_line(const std::string& text) {
  constexpr std::size_t kMost = 800;
  std::string line;
  // Not in the middle of a character.
  const std::string_view beginning = std::string_view(text).substr(0, kMost);
  const auto whole = text.size() > kMost && valid_utf8(text) > kMost ? valid_utf8(beginning) : beginning.size();
  for (const char c : printable(beginning.substr(0, whole)))
    line += c == '\n' ? "\\x0a" : c == '\t' ? "\\x09" : std::string(1, c);
  return text.size() > kMost ? line + "..." : line;
}

}  // namespace

int bad_input(const Error& error) {
  fmt::print(stderr, "mayfly: {}\n", one_line(error.message));
  return kBadInput;
}

void note(const std::string& text) { fmt::print(stderr, "note: {}\n", one_line(text)); }

void print_json(const Json& document) {
  fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

namespace {

fs::path data_file(const std::string& folder, const std::string& file) {
  std::error_code error;
  const fs::path candidate = data_folder(folder) / file;
  return fs::exists(candidate, error) ? candidate : fs::path();
}

fs::path find_data(const std::string& given, const std::string& folder, const std::string& ending) {
  std::error_code error;
  const bool bare = given.find('/') == std::string::npos && !given.ends_with(ending);
  if (bare && !fs::exists(given, error)) {
    if (const auto shipped = data_file(folder, given + ending); !shipped.empty()) return shipped;
  }
  return given;
}

}  // namespace

Result<fs::path> train_program() {
  std::error_code error;
  const auto self = fs::read_symlink("/proc/self/exe", error);
  auto program = self.parent_path() / "mayfly-train";
  if (error || ::access(program.c_str(), X_OK) != 0)
    return fail("{}: not there; it is built and installed beside mayfly", program.string());
  return program;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

MetadataEndpoints endpoints_of_environment() {
  return {.aws = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
          .gcp = environment("GCE_METADATA_HOST"),
          .azure = environment("MAYFLY_AZURE_METADATA_ENDPOINT")};
}

/// Data lies beside the program: in the source tree above build/, or in share/mayfly of an installation.
fs::path data_folder(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& base : {program / ".." / "data", program / ".." / "share" / "mayfly"}) {
    if (fs::is_directory(base / name, error)) return (base / name).lexically_normal();
  }
  return {};
}

Result<Catalog> shipped_gpus() { return load_catalog(data_folder("catalogs").parent_path() / "gpus.yaml"); }

Result<WeatherTable> shipped_weather() { return load_weather(data_folder("catalogs").parent_path() / "weather.yaml"); }

Result<Tariffs> shipped_tariffs() { return load_tariffs(data_folder("catalogs").parent_path() / "tariffs.yaml"); }

Result<Catalog> read_catalogs(const std::string& given) {
  auto shipped = shipped_gpus();
  if (!shipped) return shipped;
  Catalog gpus = *std::move(shipped);
  Catalog all;
  const std::string names = given.empty() ? "default" : given;
  for (const auto part : split(names, ',')) {
    const std::string name(trimmed(part));
    if (name.empty()) return fail("catalogues '{}': an empty name, want files or names separated by commas", names);
    auto one = load_catalog(find_data(name, "catalogs", ".yaml"), gpus);
    if (!one) return one;
    // Those that follow may name its GPUs.
    if (!one->gpus.empty()) gpus = merged(std::move(gpus), {.sources = one->sources, .gpus = one->gpus});
    all = all.name.empty() ? *std::move(one) : merged(std::move(all), *one);
  }
  if (all.types.empty() && all.functions.empty()) return fail("{}: no types and no functions", names);
  return all;
}

std::string shipped_elsewhere(const Catalog& read, const std::function<bool(const InstanceType&)>& is_such) {
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& file : fs::directory_iterator(data_folder("catalogs"), error)) {
    const std::string name = file.path().stem();
    const auto other = read_catalogs(name);
    if (other && std::any_of(other->types.begin(), other->types.end(), is_such)) found.push_back(name);
  }
  if (found.empty()) return "";
  const std::string name = *std::min_element(found.begin(), found.end());
  return fmt::format("; catalogue '{}' has it: --catalog {},{}", name, read.name, name);
}

Result<const InstanceType*> find_type(const Catalog& catalog, const std::string& name) {
  auto type = lookup(catalog, name);
  if (type) return type;
  return fail("{}{}", type.error().message,
              shipped_elsewhere(catalog, [&](const InstanceType& other) { return other.name == name; }));
}

fs::path find_profile(const std::string& given) { return find_data(given, "profiles", ".json"); }
fs::path find_trace(const std::string& given) { return find_data(given, "traces", ".json"); }

std::string words(const Target& target) {
  if (const auto* loss = std::get_if<ToLoss>(&target)) return fmt::format("loss {:g}", loss->loss);
  if (const auto* epochs = std::get_if<ForEpochs>(&target)) return fmt::format("{:g} epochs", epochs->epochs);
  return fmt::format("{:g} steps", std::get<ForSteps>(target).steps);
}

CLI::Validator above_zero() {
  return {[](const std::string& text) {
            const auto number = parse_number(text);
            return number && *number > 0 ? std::string() : fmt::format("'{}', want a number above 0", text);
          },
          "ABOVE 0"};
}

void TargetOptions::add_to(CLI::App& verb) {
  auto* group = verb.add_option_group("target", "how far to train");
  group->add_option("--loss", loss, "train to this loss");
  group->add_option("--epochs", epochs, "train for this many epochs")->check(above_zero());
  group->add_option("--steps", steps, "train for this many steps (updates)")->check(above_zero());
  group->require_option(0, 1);
}

Result<std::optional<Target>> TargetOptions::target() const {
  for (const auto& value : {loss, epochs, steps}) {
    if (value && !std::isfinite(*value))
      return fail("--loss, --epochs and --steps: '{}', want a finite number", *value);
  }
  if (loss) return Target(ToLoss{*loss});
  if (epochs) return Target(ForEpochs{*epochs});
  if (steps) return Target(ForSteps{*steps});
  return std::optional<Target>();
}

std::optional<std::string> old_prices(const Catalog& catalog, const std::vector<std::string>& types, Market market) {
  const auto now = std::chrono::system_clock::now();
  const auto today = std::chrono::duration_cast<std::chrono::days>(now.time_since_epoch()).count();
  const Source* oldest = nullptr;
  std::string which;
  for (const auto& type_name : types) {
    const InstanceType* type = catalog.find(type_name);
    if (type == nullptr || !type->price(market)) continue;
    const Source& source = catalog.sources[type->price(market)->source];
    if (oldest == nullptr || source.day < oldest->day) {
      oldest = &source;
      which = type_name;
    }
  }
  constexpr int kOld = 365;
  if (oldest == nullptr || today - oldest->day < kOld) return {};
  return fmt::format("the {} price of {} is of {} ({} old); 'mayfly catalog import' brings newer ones", name(market),
                     which, oldest->date, age_text(static_cast<int>(today - oldest->day)));
}

}  // namespace mayfly::cli
