#include "engine/ssh_script.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "engine/machine_script.h"
#include "engine/ssh_provider.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

using Phase = Listed::Phase;

/// Hosts of their own name in /tmp, whose ssh runs its command here.
class LocalHosts {
 public:
  LocalHosts() {
    for (const char* name : {"one", "two"}) {
      spec.hosts.push_back({.host = fmt::format("ssh-test-{}-{}", name, ::getpid()), .machines = 2});
      folders_.push_back(fmt::format("/tmp/mayfly-{}/{}", ::getuid(), spec.hosts.back().host));
    }
    EXPECT_TRUE(
        save_text(folder_.path() / "ssh",
                  "#!/bin/sh\nfor word in \"$@\"; do [ \"$word\" = \"$silent\" ] && { echo no route >&2; exit 255; }; "
                  "done\nexec sh\n"));
    std::filesystem::permissions(folder_.path() / "ssh", std::filesystem::perms::owner_all);
    before_ = std::getenv("PATH");
    ::setenv("PATH", fmt::format("{}:{}", folder_.path().string(), before_).c_str(), 1);
    machine.terms = {.run = "run-1", .join = "127.0.0.1:1", .directory = folder_.path()};
    machine.program = "/bin/true";
    EXPECT_TRUE(save_text(folder_.path() / "token", "secret\n"));
    std::filesystem::create_directories(folder_.path() / "logs");
  }
  ~LocalHosts() {
    ::unsetenv("silent");
    ::setenv("PATH", before_.c_str(), 1);
    for (const auto& folder : folders_) std::filesystem::remove_all(folder);
  }
  LocalHosts(const LocalHosts&) = delete;
  LocalHosts& operator=(const LocalHosts&) = delete;

  /// A host of these does not answer any more.
  void silence(std::size_t host) { ::setenv("silent", spec.hosts[host].host.c_str(), 1); }
  ProgramEnd asked(const ProgramCall& question) { return answer_to(question, Seconds(60)); }
  std::vector<Granted> ordered(SshProvider& provider, const std::vector<Order>& orders) {
    const auto question = provider.order(orders);
    EXPECT_TRUE(question) << question.error().message;
    return provider.placed(orders, asked(*question));
  }
  std::vector<Listed> listed(SshProvider& provider) {
    const auto all = provider.listed(asked(provider.list()));
    EXPECT_TRUE(all) << all.error().message;
    return all.value_or(std::vector<Listed>());
  }
  /// With these lines of shell for a program, which ends a machine.
  void program(const std::string& lines) {
    EXPECT_TRUE(save_text(folder_.path() / "program", "#!/bin/sh\n" + lines));
    machine.program = folder_.path() / "program";
    std::filesystem::permissions(machine.program, std::filesystem::perms::owner_all);
  }

  SshSpec spec{};
  MachineProgram machine{};

 private:
  support::TempFolder folder_{};
  std::vector<std::string> folders_{};
  std::string before_{};
};

std::vector<Order> orders(int count) {
  std::vector<Order> all;
  for (int launch = 0; launch < count; ++launch)
    all.push_back({.launch = launch, .role = {.type = "host", .market = Market::on_demand}});
  return all;
}

// Two hosts with room for two each, five machines: two and two, and one that is refused.
TEST(SshHosts, MachinesAreSpreadOverTheRoomThereIs) {
  LocalHosts site;
  site.program("sleep 600\n");
  SshProvider provider(site.spec, site.machine);
  const auto placed = site.ordered(provider, orders(5));
  ASSERT_EQ(placed.size(), 5U);
  EXPECT_NE(placed[0].id, placed[1].id) << "on the host with the most room";
  EXPECT_NE(placed[4].refused.find("no host has room for host: 4 of 4 in use"), std::string::npos) << placed[4].refused;
  const auto all = site.listed(provider);
  EXPECT_EQ(all.size(), 4U);
  for (const Listed& one : all) EXPECT_EQ(one.phase, Phase::running);

  std::vector<Ordered> machines;
  for (const Listed& one : all) machines.push_back({.launch = one.launch, .id = one.id});
  EXPECT_TRUE(site.asked(provider.end(machines)).well());
  EXPECT_TRUE(site.listed(provider).empty());
}

TEST(SshHosts, OrderedTwiceIsStartedOnce) {
  LocalHosts site;
  site.program("echo started >> \"$(dirname \"$0\")/count\"; sleep 600\n");
  SshProvider provider(site.spec, site.machine);
  const auto first = site.ordered(provider, orders(1));
  SshProvider again(site.spec, site.machine);  // as after a restart that forgot it, with the same choice of host
  const auto second = site.ordered(again, orders(1));
  EXPECT_EQ(first, second);
  EXPECT_EQ(load_text(site.machine.program.parent_path() / "count").value_or(""), "started\n");
  EXPECT_TRUE(site.asked(again.end(std::vector<Ordered>{{.launch = 0, .id = first[0].id}})).well());
}

TEST(SshHosts, AMachineThatEndedSaysHow) {
  LocalHosts site;
  site.program("echo 'no such library'; exit 3\n");
  SshProvider provider(site.spec, site.machine);
  (void)site.ordered(provider, orders(1));
  std::vector<Listed> all;
  while (all.empty() || all.front().phase != Phase::over) all = site.listed(provider);
  EXPECT_EQ(all.front().ending.kind, Ending::Kind::failed);
  EXPECT_NE(all.front().ending.how.find("ended with 3"), std::string::npos) << all.front().ending.how;
  EXPECT_TRUE(site.listed(provider).empty()) << "and is told once";
}

TEST(SshHosts, OneThatDoesNotAnswerGetsNoMachinesAndLosesNone) {
  LocalHosts site;
  site.program("sleep 600\n");
  SshProvider provider(site.spec, site.machine);
  const auto placed = site.ordered(provider, orders(2));
  (void)site.listed(provider);
  site.silence(1);
  const auto all = site.listed(provider);
  ASSERT_EQ(all.size(), 2U) << "for all that is known";
  EXPECT_NE(provider.unheard().find("no route"), std::string::npos) << provider.unheard();
  const auto more = site.ordered(provider, {{.launch = 5, .role = {.type = "host", .market = Market::on_demand}}});
  EXPECT_EQ(more[0].id, site.spec.hosts[0].host);
  ::unsetenv("silent");
  std::vector<Ordered> machines{{.launch = 5, .id = more[0].id}};
  for (const Listed& one : site.listed(provider)) machines.push_back({.launch = one.launch, .id = one.id});
  EXPECT_TRUE(site.asked(provider.end(machines)).well());
  (void)placed;
}

TEST(SshText, WhatHostsSayIsReadAsFarAsItCanBe) {
  const auto answers =
      ssh_answers("host 0\n 7 running 12\n others 2\n= 0\nhost 1\n ssh: no route\n= 255\nhost x\n= 0\n");
  ASSERT_EQ(answers.size(), 2U);
  const SshHeld held = ssh_held(answers.at(0), {.host = "n1"});
  ASSERT_EQ(held.machines.size(), 1U);
  EXPECT_EQ(held.machines[0].launch, 7);
  EXPECT_EQ(held.machines[0].age, Seconds(12));
  EXPECT_EQ(held.others, 2);
  EXPECT_EQ(answers.at(1).why(), "ssh: no route");
}

}  // namespace
}  // namespace mayfly
