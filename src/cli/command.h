#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cloud/catalog.h"
#include "cloud/spot_weather.h"
#include "cloud/tariffs.h"
#include "job/profile.h"
#include "notice/cloud.h"
#include "predict/prediction.h"

namespace mayfly::cli {

/// Exit codes scripts rely on.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kNo = 3;
inline constexpr int kMissed = 4;

/// Each verb adds itself to the program; its callback leaves the exit code in `code`.
void add_profile(CLI::App& program, int& code);
void add_predict(CLI::App& program, int& code);
void add_plan(CLI::App& program, int& code);
void add_catalog(CLI::App& program, int& code);
void add_trace(CLI::App& program, int& code);
void add_replay(CLI::App& program, int& code);
void add_backtest(CLI::App& program, int& code);
void add_run(CLI::App& program, int& code);
void add_resume(CLI::App& program, int& code);
void add_status(CLI::App& program, int& code);
void add_logs(CLI::App& program, int& code);
void add_torchrun(CLI::App& program, int& code);
void add_stop(CLI::App& program, int& code);
void add_worker(CLI::App& program, int& code);
void add_drill(CLI::App& program, int& code);
void add_report(CLI::App& program, int& code);
void add_dashboard(CLI::App& program, int& code);
void add_sweep(CLI::App& program, int& code);
void add_check(CLI::App& program, int& code);
/// The actions of `trace`.
void add_trace_files(CLI::App& verb, int& code);
void add_trace_generate(CLI::App& verb, int& code);
void add_trace_forecast(CLI::App& verb, int& code);

/// One message on standard error, exit code 2.
int bad_input(const Error& error);
void note(const std::string& text);

/// Of an option's value: a number above 0, finite.
CLI::Validator above_zero();

/// Prints the document and nothing else.
void print_json(const Json& document);

/// mayfly-train, which stands beside this program.
Result<std::filesystem::path> train_program();
/// Endpoints of metadata services that the environment names.
MetadataEndpoints endpoints_of_environment();
/// The environment's value, or nothing.
std::string environment(const char* name);

/// GPUs that every catalogue may name.
Result<Catalog> shipped_gpus();
Result<WeatherTable> shipped_weather();
Result<Tariffs> shipped_tariffs();
/// Catalogues by their paths or, of those that ship with mayfly, bare names, separated by commas: merged, the later
/// over the earlier. Empty: the default one.
Result<Catalog> read_catalogs(const std::string& given);
/// "; catalogue 'neoclouds' has it: --catalog default,neoclouds" where another that ships has such a type, or "".
std::string shipped_elsewhere(const Catalog& read, const std::function<bool(const InstanceType&)>& is_such);
/// The type of this name, or an error that says which other catalogue has it.
Result<const InstanceType*> find_type(const Catalog& catalog, const std::string& name);
/// A path, or the bare name of a profile or trace that ships with mayfly.
std::filesystem::path find_profile(const std::string& given);
std::filesystem::path find_trace(const std::string& given);
/// Where the shipped catalogs, profiles or traces lie.
std::filesystem::path data_folder(const std::string& name);

/// "loss 0.8", "3 epochs", "5000 steps"
std::string words(const Target& target);
/// Of --loss, --epochs and --steps at most one may be set.
struct TargetOptions {
  std::optional<double> loss{};
  std::optional<double> epochs{};
  std::optional<double> steps{};
  void add_to(CLI::App& verb);
  Result<std::optional<Target>> target() const;
};

/// Warnings about prices older than a year, for the types named; one line.
std::optional<std::string> old_prices(const Catalog& catalog, const std::vector<std::string>& types, Market market);

}  // namespace mayfly::cli
