#include "wire/channel.h"

#include <gtest/gtest.h>

#include "support/token.h"

namespace mayfly {
namespace {

using support::known;
using support::sealed;
using Side = Channel::Side;

/// Everything one end has to say, to the other, in pieces; what that end's reader gets.
Result<std::string> passed(Channel& from, Channel& to, std::size_t piece, std::string* recorded = nullptr) {
  std::string got;
  while (!from.outgoing().empty()) {
    const auto bytes = from.outgoing().substr(0, piece);
    from.outgoing().erase(0, bytes.size());
    if (recorded != nullptr) *recorded += bytes;
    const auto clear = to.take(bytes);
    if (!clear) return unexpected(clear.error());
    got += *clear;
  }
  return got;
}

/// Until both have nothing more to say; what the host's reader gets.
Result<std::string> talk(Channel& guest, Channel& host, std::size_t piece, std::string* recorded = nullptr) {
  std::string got;
  while (!guest.outgoing().empty() || !host.outgoing().empty()) {
    const auto there = passed(guest, host, piece, recorded);
    if (!there) return there;
    got += *there;
    if (const auto back = passed(host, guest, piece); !back) return back;
  }
  return got;
}

TEST(Channel, CarriesBytesOnceBothHaveProvenThemselves) {
  for (const auto& run : {known(), sealed()}) {
    for (const std::size_t piece : {1, 7, 1 << 20}) {
      Channel guest(Side::guest, run), host(Side::host, run);
      guest.put("said before anybody was known");
      EXPECT_EQ(talk(guest, host, piece).value(), "said before anybody was known");
      EXPECT_TRUE(guest.open() && host.open());
      EXPECT_EQ(guest.plain(), !run.encrypted());
      guest.put(std::string(100'000, 'x'));
      EXPECT_EQ(talk(guest, host, piece).value(), std::string(100'000, 'x'));
      host.put("back");
      EXPECT_EQ(passed(host, guest, piece).value(), "back");
    }
  }
}

TEST(Channel, WantsNoMoreThanBelongsToTheProof) {
  const auto run = known();
  Channel guest(Side::guest, run), host(Side::host, run);
  EXPECT_EQ(host.wanted(), 40U);  // 8 bytes of greeting, 32 at random
  EXPECT_EQ(guest.wanted(), 64U);
  ASSERT_TRUE(host.take(guest.outgoing().substr(0, 39)));
  EXPECT_EQ(host.wanted(), 1U);
  ASSERT_TRUE(host.take(guest.outgoing().substr(39)));
  EXPECT_EQ(host.wanted(), 32U);
}

TEST(Channel, NobodyWithAnotherSecretIsLetIn) {
  const auto other = Credentials();
  for (const auto& [guest_knows, host_knows] :
       {std::pair{known(), other}, {sealed(), sealed()}, {known(), sealed()}, {sealed(), known()}}) {
    Channel guest(Side::guest, guest_knows), host(Side::host, host_knows);
    guest.put("the job");
    const auto heard = talk(guest, host, 1 << 20);
    EXPECT_TRUE(!heard || heard->empty());
    EXPECT_FALSE(host.open());
    EXPECT_FALSE(guest.open());
  }
}

// The host's random number is another one.
TEST(Channel, WhatWasOverheardOnceOpensNothing) {
  const auto run = known();
  std::string recorded;
  {
    Channel guest(Side::guest, run), host(Side::host, run);
    ASSERT_TRUE(talk(guest, host, 1 << 20, &recorded));
  }
  Channel again(Side::host, run);
  const auto taken = again.take(recorded);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "a stranger: it does not know the run's secret");
  EXPECT_FALSE(again.open());
  EXPECT_FALSE(again.take("more"));
}

// A guest's own words sent back to it prove nothing.
TEST(Channel, AMirrorIsNoHost) {
  Channel guest(Side::guest, known());
  const auto words = guest.outgoing();
  EXPECT_FALSE(guest.take(words + words));
  EXPECT_FALSE(guest.open());
}

// 40,000 bytes are three records of TLS. They are taken in pieces of 1,000 into places of 700, so that there is always
// something left over, and the end is told when all is taken.
TEST(Channel, WhatIsEncryptedGoesToWhereItStaysInPiecesOfAnySize) {
  const auto run = sealed();
  Channel guest(Side::guest, run), host(Side::host, run);
  ASSERT_TRUE(talk(guest, host, 1 << 20));
  ASSERT_TRUE(guest.open() && host.open());
  std::string wanted;
  for (int i = 0; i < 40'000; ++i) wanted += static_cast<char>(i % 251);
  guest.outgoing().clear();
  guest.put(wanted);
  const std::string sent = guest.outgoing();
  EXPECT_GT(sent.size(), wanted.size());
  std::string got;
  std::array<char, 700> place{};
  for (std::size_t at = 0; at < sent.size(); at += 1000) {
    auto taken = host.take(std::string_view(sent).substr(at, 1000), place);
    while (taken && *taken > 0) {
      got.append(place.data(), *taken);
      taken = host.take({}, place);
    }
    ASSERT_TRUE(taken) << taken.error().message;
  }
  EXPECT_EQ(got, wanted);
  // A record that was changed on the way.
  guest.outgoing().clear();
  guest.put("more");
  guest.outgoing().back() ^= 1;
  EXPECT_FALSE(host.take(guest.outgoing(), place));
  EXPECT_FALSE(host.take({}, place)) << "it stays over";
}

TEST(Credentials, TokensAreReadOrRefused) {
  const auto token = fresh_token(true).value();
  EXPECT_EQ(token.size(), 129U);
  EXPECT_NE(token, fresh_token(true).value());
  EXPECT_TRUE(Credentials::from(token)->encrypted());
  EXPECT_FALSE(Credentials::from(token.substr(0, 64))->encrypted());
  for (const std::string& wrong :
       {std::string(), std::string("secret"), token.substr(1), token + "0", token.substr(0, 65), std::string(64, 'g')})
    EXPECT_FALSE(Credentials::from(wrong)) << wrong;
  auto swapped = token;
  swapped.back() = swapped.back() == '0' ? '1' : '0';
  EXPECT_EQ(Credentials::from(swapped).error().message,
            "the token's fingerprint does not belong to its secret: copied wrongly?");
}

/// tests/python/network_test.py makes this fingerprint from this secret without OpenSSL.
TEST(Credentials, AreTheSameInPython) {
  const std::string secret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const auto known = Credentials::from(secret + "-6aad7f2e59724ead129a0be07aa991786131c05dd7b8c79fbd1ac1e0da021e2d");
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_TRUE(known->encrypted());
  EXPECT_FALSE(known->unencrypted().encrypted());
}

}  // namespace
}  // namespace mayfly
