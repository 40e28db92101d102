#include "wire/message.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <typeinfo>

namespace mayfly {
namespace {

// Every message, every field away from its default.

std::vector<ToController> to_controller() {
  return {
      Hello{.protocol = 3, .pid = 4711, .launch = 3, .machine = "run-3", .worker = 7, .sample = 1LL << 53},
      Hello{},
      Hello{.role = "server"},
      Pushed{.formation = 2,
             .lease = 7,
             .sample = 64,
             .loss = 0.5,
             .compute_s = 1,
             .pull_s = 0.1,
             .push_s = 0.2,
             .wait_s = 0.3},
      Pushed{.formation = 2, .lease = 7, .validation_loss = 0.25, .accuracy = 0.5},
      Ready{.samples = 60000, .data = "60000 samples 1f", .parameters = 669706, .state_mb = 5.36, .load_s = 0.25},
      Ready{.samples = 60000, .cache = "127.0.0.1:4000"},
      Fed{.hits = 1,
          .from_peers = 2,
          .from_storage = 3,
          .peers_failed = 4,
          .prepared = 5,
          .received = 6,
          .fetch_s = 0.5,
          .prep_s = 0.25,
          .wait_s = 0.125},
      Reachable{.formation = 9, .address = "00ff"},
      Formed{.formation = 9},
      StepDone{.formation = 9,
               .first_sample = 128,
               .samples = 64,
               .loss = 0.5,
               .compute_s = 0.1,
               .exchange_s = 0.01,
               .validation_loss = 0.75,
               .accuracy = 0.9},
      StepDone{.formation = 1, .samples = 1, .loss = -0.125},
      Broken{.formation = 9, .what = "rank 2 is gone"},
      CheckpointWritten{.sample = 192, .path = "/c/checkpoint-3", .size_mb = 8, .stall_s = 0.001, .write_s = 0.2},
      CheckpointFailed{.sample = 192, .what = "no space"},
      Unable{.what = "job.yaml:3: no"},
      Leaving{.left_s = 30},
      Leaving{.left_s = 120, .why = "aws: terminate"},
      AtRisk{.why = "aws: rebalance recommendation"},
      Browse{},
      Fetch{.name = "job/data.bin", .offset = 1 << 20, .count = 4096},
      Bring{.checkpoint = "checkpoint-660",
            .file = "model.safetensors",
            .offset = 3,
            .bytes = std::string("a\0{\xff", 4)},
      Bring{.checkpoint = "checkpoint-660", .file = "model.safetensors"},
      Keep{.checkpoint = "checkpoint-660"},
      Drill{.workers = {3, 1}, .cloud = "gcp", .endpoint = "http://127.0.0.1:4000", .window_s = 30},
      Measurement{.formation = 3,
                  .cpu_s = 1,
                  .peak_mb = 2,
                  .prep_threads = 2,
                  .rehearsed = 14,
                  .rehearsed_mb = 15,
                  .read_s = 16,
                  .reread_s = 17,
                  .prepare_s = 18,
                  .tensors = 4,
                  .gflops = 50,
                  .layers = {"0", "1"},
                  .layer_forward_s = {1, 2},
                  .layer_backward_s = {2, 3},
                  .layer_parameters = {3, 4},
                  .layer_output_mb = {4, 5},
                  .exchanges_s = {0.1, 0.2}},
      Alive{},
      Alive{.doing = "exchange"},
  };
}

std::vector<ToMember> to_member() {
  return {
      Serve{.formation = 2, .shard = 1, .shards = 2, .sample = 64, .source = "127.0.0.1:4000"},
      Serve{.formation = 2, .checkpoint = "/c/checkpoint-3", .from_checkpoint = true},
      Attach{.formation = 2, .shards = 2, .addresses = {"127.0.0.1:4000", "127.0.0.1:4001", "", "127.0.0.1:4002"}},
      Lease{.formation = 2, .lease = 7, .sample = 64, .first_sample = 72, .samples = 8, .share = 0.5, .evaluate = true},
      Commit{.formation = 2, .from = 64, .sample = 80, .leases = {7, 8}, .step = 4, .workers = 2},
      Forget{.formation = 2, .leases = {9}},
      Save{.formation = 2, .sample = 80, .step = 5, .loss = 1, .ledger = {0, 72, 80, 8}, .addresses = {"a", "b"}},
      Neighbours{.workers = {1, 3}, .addresses = {"127.0.0.1:4000", "127.0.0.1:4001"}},
      Watch{.cloud = "azure", .endpoint = "http://127.0.0.1:4000"},
      Measure{.formation = 3,
              .data = "cold",
              .samples = 64,
              .layers = true,
              .batch = 16,
              .exchanges = {1024, 4096},
              .rehearse = 32},
      Welcome{.worker = 4,
              .run = "x-0000001f",
              .job = "name: x\n",
              .job_file = "/j/job.yaml",
              .directory = "/c",
              .heartbeat_s = 0.1,
              .lease_s = 1,
              .orphan_s = 9,
              .seed = 7,
              .sum = true,
              .clip = 1.5,
              .network = "/c/network.safetensors"},
      Refused{.why = "lease ended"},
      Form{.formation = 10,
           .rank = 1,
           .size = 3,
           .sample = 192,
           .source = 2,
           .checkpoint = "/c/checkpoint-3",
           .from_checkpoint = true,
           .receivers = {0, 1}},
      Peers{.formation = 10, .addresses = {"aa", "", "cc"}},
      Proceed{.formation = 10, .committed = 192, .step = 3, .counts = {22, 21, 21}, .evaluate = true},
      WriteCheckpoint{.formation = 10},
      Halt{.formation = 10},
      Explain{},
      Leave{.why = "done"},
      Alive{},
  };
}

std::vector<ToOperator> to_operator() {
  return {
      Drilling{.time_s = 1.5, .samples = 4096},
      Refused{.why = "lease ended"},
  };
}

std::vector<ToCarrier> to_carrier() {
  return {
      Shelved{
          .names = {"job/a", "job/b"}, .sizes = {1, 1LL << 40}, .hashes = {"00ff", "ab"}, .programs = {true, false}},
      Piece{.offset = 7, .bytes = std::string("\0\0", 2)},
      Taken{},
      Kept{.path = "/runs/a/checkpoint-1"},
      Undone{.why = "no space"},
      Refused{.why = "protocol 3, want 7"},
  };
}

/// The alternatives of a direction that were seen; those of the variants in it one by one.
template <class Direction>
struct Seen {
  bool once = false;
  void note(const Direction& /*message*/) { once = true; }
  void check(const char* what) const { EXPECT_TRUE(once) << "no example of " << what; }
};
template <class... Ms>
struct Seen<std::variant<Ms...>> {
  std::tuple<Seen<Ms>...> all{};
  void note(const std::variant<Ms...>& message) {
    std::visit([&]<class M>(const M& held) { std::get<Seen<M>>(all).note(held); }, message);
  }
  void check(const char* /*what*/) const { (std::get<Seen<Ms>>(all).check(typeid(Ms).name()), ...); }
};

template <class Direction>
void expect_all_back(const std::vector<Direction>& messages) {
  Seen<Direction> seen;
  for (const auto& message : messages) {
    const auto text = encoded<Direction>(message);
    const auto again = decoded<Direction>(text);
    ASSERT_TRUE(again) << text << ": " << again.error().message;
    EXPECT_EQ(*again, message) << text;
    seen.note(message);
  }
  seen.check("");
}

TEST(Message, EveryOneComesBackAsItWas) {
  expect_all_back(to_controller());
  expect_all_back(to_member());
  expect_all_back(to_operator());
  expect_all_back(to_carrier());
}

TEST(Message, BytesStandBehindTheirOwnMessagesAlone) {
  const std::string piece = encoded<ToCarrier>(Piece{.offset = 7, .bytes = "{}"});
  EXPECT_EQ(piece, std::string("{\"message\":\"piece\",\"offset\":7}\0{}", 33));
  EXPECT_FALSE(decoded<ToCarrier>(R"({"message":"piece","offset":7})")) << "they are missing";
  EXPECT_FALSE(decoded<ToMember>(std::string("{\"message\":\"alive\"}\0x", 21)));
  EXPECT_FALSE(decoded<ToController>(R"({"message":"fetch","name":"a","offset":0,"count":1048577})"))
      << "too long a piece";
}

/// Names of messages that are not these: why they are refused.
template <class Direction, class Other>
std::map<std::string, std::string> refusals(const std::vector<Other>& messages) {
  std::map<std::string, std::string> found;
  for (const auto& message : messages) {
    const auto text = encoded<Other>(message);
    const auto name = text.substr(12, text.find('"', 12) - 12);  // {"message":"NAME"
    if (const auto read = decoded<Direction>(text); !read) found[name] = read.error().message;
  }
  return found;
}

TEST(Message, OneOfTheOtherDirectionIsRefused) {
  auto at_controller = refusals<ToController>(to_member());
  EXPECT_EQ(at_controller.size(), std::variant_size_v<ToMember> - 1);  // all but heartbeats
  EXPECT_EQ(at_controller["proceed"], "message proceed: nothing that the controller is told");
  EXPECT_FALSE(at_controller.contains("alive"));
  EXPECT_EQ(refusals<ToController>(to_operator()).size(), std::variant_size_v<ToOperator>);

  auto at_member = refusals<ToMember>(to_controller());
  // Hello, drill, all that members say but heartbeats, and what carriers ask.
  EXPECT_EQ(at_member.size(), 1 + std::variant_size_v<FromOperator> + std::variant_size_v<FromMember> - 1 +
                                  std::variant_size_v<FromCarrier>);
  EXPECT_EQ(at_member["step-done"], "message step-done: nothing that a worker or server is told");
  EXPECT_EQ(refusals<ToMember>(to_operator()).size(), 1);  // both are told that they are refused

  EXPECT_EQ(refusals<ToOperator>(to_member())["form"], "message form: nothing that an operator is told");
}

TEST(Message, ReadsAsItsDocumentationDoes) {
  EXPECT_EQ(
      encoded<ToMember>(Proceed{.formation = 2, .committed = 64, .step = 1, .counts = {32, 32}}),
      R"({"message":"proceed","formation":2,"committed":64,"step":1,"counts":[32,32],"evaluate":false,"compare":false})");
  EXPECT_EQ(encoded<ToController>(Hello{.pid = 5}),
            R"({"message":"hello","protocol":8,"pid":5,"role":"worker","slot":-1})");
  EXPECT_EQ(encoded<ToMember>(Alive{}), R"({"message":"alive"})");
}

TEST(Message, KeysMayComeInAnyOrder) {
  const auto message = decoded<ToController>(R"({"what":"w","formation":3,"message":"broken"})");
  ASSERT_TRUE(message);
  EXPECT_EQ(*message, ToController(Broken{.formation = 3, .what = "w"}));
}

TEST(Message, ALossThatIsNoNumberArrivesAsSuch) {
  const auto text = encoded<ToController>(StepDone{.loss = std::numeric_limits<double>::quiet_NaN()});
  const auto message = decoded<ToController>(text);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_TRUE(std::isnan(std::get<StepDone>(std::get<FromMember>(*message)).loss));
}

TEST(Message, TextThatIsNoUtf8DoesNotEndTheSender) {
  const auto message = decoded<ToController>(encoded<ToController>(Unable{.what = "caf\xe9"}));
  ASSERT_TRUE(message);
  EXPECT_TRUE(std::get<Unable>(std::get<FromMember>(*message)).what.starts_with("caf"));
}

TEST(Message, BrokenOnesAreRefusedWithTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not one JSON object"},
      {"[]", "not one JSON object"},
      {"{", "not one JSON object"},
      {R"({"message":"alive"}{})", "not one JSON object"},
      {R"({"message":"halt","formation":1,"formation":2})", "not one JSON object"},
      {"\xff", "not one JSON object"},
      {"{}", "'message' must be its name"},
      {R"({"message":7})", "'message' must be its name"},
      {R"({"message":"sing"})", "unknown message 'sing'"},
      {R"({"message":"alive","loud":1})", "unknown keys"},
      {R"({"message":"halt"})", "'formation' is missing"},
      {R"({"message":"halt","formation":-1})", "'formation' cannot be -1"},
      {R"({"message":"halt","formation":1.5})", "'formation' cannot be 1.5"},
      {R"({"message":"halt","formation":"1"})", "'formation' cannot be \"1\""},
      {R"({"message":"halt","formation":null})", "'formation' cannot be null"},
      {R"({"message":"halt","formation":9223372036854775808})", "'formation' cannot be"},
      {R"({"message":"leaving","left_s":-1})", "'left_s' cannot be"},
      {R"({"message":"leaving","left_s":1e999})", "not one JSON object"},
      {R"({"message":"hello","protocol":1,"pid":1,"role":"worker","slot":-2})", "'slot' cannot be -2"},
      {R"({"message":"hello","protocol":4294967297,"pid":1,"slot":0})", "'protocol' cannot be"},
      {R"({"message":"peers","formation":1,"addresses":["a",1]})", "'addresses' cannot be"},
      {R"({"message":"peers","formation":1,"addresses":[["a"]]})", "'addresses' cannot be"},
      {R"({"message":"proceed","formation":1,"committed":0,"step":0,"counts":[1,-1],"evaluate":false})",
       "'counts' cannot be [1,-1]"},
      {R"({"message":"proceed","formation":1,"committed":0,"step":0,"counts":[1],"evaluate":0})", "'evaluate' cannot"},
  };
  // Hello and leaving are for the controller, the others for workers; that they are broken is seen only where they
  // belong.
  for (const auto& [text, reason] : cases) {
    const auto heard = decoded<ToController>(text);
    const auto told = decoded<ToMember>(text);
    ASSERT_FALSE(heard) << text;
    ASSERT_FALSE(told) << text;
    const auto both = heard.error().message + "\n" + told.error().message;
    EXPECT_NE(both.find(reason), std::string::npos) << text << " gave " << both;
  }
}

TEST(Message, ARankMustStandInItsFormation) {
  EXPECT_TRUE(decoded<ToMember>(encoded<ToMember>(Form{.rank = 1, .size = 2, .source = 1, .receivers = {0}})));
  EXPECT_FALSE(decoded<ToMember>(encoded<ToMember>(Form{.rank = 2, .size = 2})));
  EXPECT_FALSE(decoded<ToMember>(encoded<ToMember>(Form{.rank = 0, .size = 2, .source = 2})));
  EXPECT_FALSE(decoded<ToMember>(encoded<ToMember>(Form{.rank = 0, .size = 2, .receivers = {2}})));
  EXPECT_FALSE(decoded<ToMember>(encoded<ToMember>(Form{.rank = 0, .size = 0})));
}

TEST(Message, DeepNestingIsNoMessage) {
  EXPECT_FALSE(decoded<ToMember>(std::string(1 << 20, '[')));
  EXPECT_FALSE(
      decoded<ToMember>(R"({"message":"alive","x":)" + std::string(100000, '[') + std::string(100000, ']') + "}"));
}

}  // namespace
}  // namespace mayfly
