#include "engine/ssh_script.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "engine/machine_script.h"

namespace mayfly {
namespace {

constexpr std::string_view kOptions =
    "-o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3";

/// For a name of a file: whatever else is in it becomes a line.
std::string file_name(std::string name) {
  for (char& c : name) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

std::string folder_of(const std::string& run, int launch) {
  return "\"$here\"/" + shell_word(file_name(machine_name(run, launch)));
}

constexpr std::string_view kPrelude = R"sh(umask 077
base=/tmp/mayfly-$(id -u)
mkdir -p "$base" && [ -O "$base" ] && [ ! -L "$base" ] || { echo "$base: cannot be made, or is not this user's"; exit 1; }
here=$base/)sh";

// What a machine starts is known by the folder that it is held in: its first process has that, and all others inherit
// it.
constexpr std::string_view kFunctions = R"sh(mkdir -p "$here" || exit 1
alive() {
  pid=$(cat "$1/pid" 2>/dev/null) && [ -n "$pid" ] && tr '\0' '\n' 2>/dev/null < "/proc/$pid/environ" | grep -qxF "MAYFLY_HELD=$1"
}
begin() {
  mkdir "$1" 2>/dev/null || { [ -d "$1" ] && return 0; echo "$1: cannot be made"; exit 1; }
  printf '%s\n' "$2" > "$1/script" || { rm -rf "$1"; echo "$here: cannot be written"; exit 1; }
  MAYFLY_HELD=$1 setsid sh -c 'echo $$ > "$1/pid"; date +%s > "$1/since"; trap : TERM; sh "$1/script"; code=$?; echo $code > "$1/code"' sh "$1" < /dev/null > "$1/log" 2>&1 &
  looks=0
  while [ ! -s "$1/since" ] && [ $looks -lt 100 ]; do sleep 0.05; looks=$((looks + 1)); done
}
finish() {
  if alive "$1"; then kill -s KILL -- "-$pid"; fi
  for file in $(grep -lszxF "MAYFLY_HELD=$1" /proc/[0-9]*/environ); do
    file=${file#/proc/}; kill -KILL "${file%/environ}" 2>/dev/null
  done
  forget "$1"
}
forget() {
  mkdir -p "$here/.logs" && [ -s "$1/log" ] && mv -f "$1/log" "$here/.logs/${1##*/}"
  if [ -s "$1/own" ]; then rm -rf "$(cat "$1/own")"; fi
  rm -rf "$1"
  find "$here/.logs" -type f -mtime +7 -exec rm -f {} + 2>/dev/null
}
last_words() {
  if [ -f "$1/log" ]; then tail -c 2000 "$1/log"; else tail -c 2000 "$here/.logs/${1##*/}" 2>/dev/null || :; fi
}
tell() {
  if alive "$1"; then kill -s TERM -- "-$pid"; fi
}
)sh";

constexpr std::string_view kList = R"sh(others=0
for d in "$here"/*; do
  [ -d "$d" ] || continue
  name=${d##*/}; launch=${name#"$run"-}
  case $launch in
    "$name" | *[!0-9]* | '') if alive "$d"; then others=$((others + 1)); fi; continue ;;
  esac
  age=$(($(date +%s) - $(cat "$d/since" 2>/dev/null || date +%s)))
  if [ -f "$d/code" ]; then
    echo "$launch $(cat "$d/code") $age $(tail -n 1 "$d/log" | cut -c 1-200)"; finish "$d"
  elif alive "$d"; then echo "$launch running $age"
  else echo "$launch killed $age"; finish "$d"
  fi
done
echo "others $others"
)sh";

constexpr std::string_view kAsk = R"sh(d=$(mktemp -d) || exit 1
trap 'rm -rf "$d"' EXIT
ask() {
  n=$1; text=$2; shift 2
  if out=$({ reach "$@" && printf '%s' "$text" | "$@" sh; } 2>&1); then code=0; else code=$?; fi
  { printf '%s\n' "$out" | tail -n 5000 | sed 's/^/ /'; echo "= $code"; } > "$d/$n"
}
)sh";

/// For `reach`, whose arguments begin a command on a host: sees to it that the whole program is there. The host's own
/// shell for users may be any.
std::string reach_text(const SshCopy& copy) {
  std::error_code error;
  const auto size = std::filesystem::file_size(copy.program, error);
  const std::string there = copied_program(copy.name);
  const std::string make = fmt::format(
      "f={} && mkdir -p \"${{f%/*}}\" && {{ cat > \"$f.$$\" && [ \"$(wc -c < \"$f.$$\")\" -eq {} ] && chmod 700 "
      "\"$f.$$\" && "
      "mv -f \"$f.$$\" \"$f\" || {{ rm -f \"$f.$$\"; echo \"$f: not all of it came\" >&2; exit 1; }}; }}",
      there, error ? 0 : size);
  const auto for_host = [](const std::string& text) { return shell_word("sh -c " + shell_word(text)); };
  return fmt::format("reach() {{\n  \"$@\" {} < /dev/null 2>/dev/null && return\n  \"$@\" {} < {}\n}}\n",
                     for_host("test -x " + there), for_host(make), shell_word(copy.program.string()));
}

Listed ended(Listed one, std::string_view state, std::string_view words) {
  one.phase = Listed::Phase::over;
  if (state == "killed") {
    one.ending.how = fmt::format("killed, or {} was started anew", one.id);
    return one;
  }
  one.ending.kind = state == "0" ? Ending::Kind::finished : Ending::Kind::failed;
  one.ending.how = fmt::format("ended with {} on {}", state, one.id);
  if (!trimmed(words).empty()) one.ending.how = printable(fmt::format("{}: {}", one.ending.how, trimmed(words)));
  return one;
}

/// "LAUNCH STATE AGE WORDS..."
std::optional<Listed> listed_of(std::string_view line, const std::string& host) {
  const auto fields = split(line, ' ');
  if (fields.size() < 3) return {};
  const auto launch = parse_integer(fields[0]);
  const auto age = parse_number(fields[2]);
  const std::string_view state = fields[1];
  const auto code = parse_integer(state);
  if (!launch || *launch < 0 || *launch > kMostLaunches || (!code && state != "running" && state != "killed"))
    return {};
  Listed one{.launch = *launch, .id = host, .where = host};
  // A clock that was set back is no machine that costs less than nothing.
  if (age) one.age = std::clamp(Seconds(*age), Seconds(0), kMostAge);
  if (state == "running") return one;
  const auto behind = static_cast<std::size_t>(fields[2].data() + fields[2].size() - line.data());
  return ended(std::move(one), state, line.substr(behind));
}

}  // namespace

std::string ssh_prelude(const SshHost& host) {
  return std::string(kPrelude) + shell_word(file_name(host.host)) + "\n" + std::string(kFunctions);
}

std::string ssh_start(const std::string& run, int launch, const std::string& script) {
  return fmt::format("begin {} {}\n", folder_of(run, launch), shell_word(script));
}

std::string ssh_end(const std::string& run, int launch) { return fmt::format("finish {}\n", folder_of(run, launch)); }
std::string ssh_tell(const std::string& run, int launch) { return fmt::format("tell {}\n", folder_of(run, launch)); }

std::string ssh_tail(const std::string& run, int launch) {
  return fmt::format("last_words {}\n", folder_of(run, launch));
}

std::string ssh_list(const std::string& run) { return fmt::format("run={}\n{}", shell_word(file_name(run)), kList); }

ProgramCall ssh_call(const SshSpec& spec, const std::vector<SshWord>& words, const SshCopy& copy) {
  std::string text(kAsk);
  text += copy.name.empty() ? std::string("reach() { :; }\n") : reach_text(copy);
  for (const SshWord& word : words) {
    text += fmt::format("ask {} {} ssh", word.host, shell_word(word.text));
    for (const std::string& option : spec.options) text += " " + shell_word(option);  // the first of two wins
    text += fmt::format(" {} {} &\n", kOptions, shell_word(spec.hosts.at(word.host).host));
  }
  text += "wait\n";
  for (const SshWord& word : words) text += fmt::format("echo 'host {}'; cat \"$d/{}\"\n", word.host, word.host);
  return {.words = {"sh"}, .input = text};
}

std::string SshAnswer::why() const {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!trimmed(*line).empty()) return printable(trimmed(*line).substr(0, 300));
  }
  return fmt::format("exit code {}", code);
}

std::map<std::size_t, SshAnswer> ssh_answers(std::string_view output) {
  std::map<std::size_t, SshAnswer> all;
  SshAnswer answer;
  int host = -1;
  for (const std::string_view line : split(output, '\n')) {
    if (line.starts_with("host ")) {
      host = parse_integer(line.substr(5)).value_or(-1);
      answer = {};
    } else if (line.starts_with(' ')) {
      answer.lines.emplace_back(line.substr(1));
    } else if (line.starts_with("= ") && host >= 0) {
      answer.code = parse_integer(line.substr(2)).value_or(255);
      all[static_cast<std::size_t>(std::exchange(host, -1))] = std::exchange(answer, {});
    }
  }
  return all;
}

SshHeld ssh_held(const SshAnswer& answer, const SshHost& host) {
  SshHeld held;
  for (const std::string& line : answer.lines) {
    if (line.starts_with("others ")) held.others = std::max(0, parse_integer(line.substr(7)).value_or(0));
    auto one = listed_of(line, host.host);
    const bool twice =
        one && std::ranges::any_of(held.machines, [&](const Listed& other) { return other.launch == one->launch; });
    if (one && !twice) held.machines.push_back(*std::move(one));
  }
  return held;
}

}  // namespace mayfly
