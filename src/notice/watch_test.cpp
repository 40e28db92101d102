#include "notice/watch.h"

#include <gtest/gtest.h>

#include <deque>

#include "notice/mock.h"

namespace mayfly {
namespace {

/// What a watch said, waited for.
class Heard {
 public:
  NoticeWatch::Calls calls() {
    return {.notice = [this](const PreemptionNotice& notice) { add(notices_, notice); },
            .trouble = [this](const std::string& why) { add(troubles_, why); }};
  }
  PreemptionNotice notice() { return wait_for(notices_); }
  std::string trouble() { return wait_for(troubles_); }

 private:
  template <class T>
  void add(std::deque<T>& list, const T& item) {
    const std::lock_guard lock(mutex_);
    list.push_back(item);
    changed_.notify_all();
  }
  template <class T>
  T wait_for(std::deque<T>& list) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !list.empty(); });
    T first = list.front();
    list.pop_front();
    return first;
  }
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<PreemptionNotice> notices_{};
  std::deque<std::string> troubles_{};
};

std::unique_ptr<MockMetadata> mock_of(MockMetadata::Options options) {
  auto mock = MockMetadata::open(std::move(options));
  EXPECT_TRUE(mock);
  return *std::move(mock);
}

NoticeWatch::Options quick(const MockMetadata& mock, Cloud cloud) {
  return {.service = {.cloud = cloud, .endpoint = mock.endpoint()}, .interval = Seconds(0.01)};
}

class EachCloud : public testing::TestWithParam<Cloud> {};
INSTANTIATE_TEST_SUITE_P(Notices, EachCloud, testing::Values(Cloud::aws, Cloud::gcp, Cloud::azure),
                         [](const auto& cloud) { return std::string(name(cloud.param)); });

TEST_P(EachCloud, IsHeardOnceItIsAnnouncedAndNotBefore) {
  const auto mock = mock_of({.cloud = GetParam()});
  MetadataClient client({.cloud = GetParam(), .endpoint = mock->endpoint()});
  const auto before = client.ask();
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_FALSE(*before);
  Heard heard;
  const NoticeWatch watch(quick(*mock, GetParam()), heard.calls());
  mock->announce(Seconds(30));
  const auto notice = heard.notice();
  EXPECT_EQ(notice.source, name(GetParam()));
  ASSERT_TRUE(notice.left);
  EXPECT_GT(*notice.left, Seconds(0));
  EXPECT_LE(*notice.left, Seconds(30));
}

TEST_P(EachCloud, AServiceThatIsNotThereIsTroubleAndAskedAgain) {
  auto mock = mock_of({.cloud = GetParam()});
  const auto options = quick(*mock, GetParam());
  mock.reset();
  Heard heard;
  const NoticeWatch watch(options, heard.calls());
  EXPECT_NE(heard.trouble().find(options.service.endpoint), std::string::npos);
}

TEST(AwsWatch, AnExpiredTokenIsRenewed) {
  const auto mock = mock_of({.cloud = Cloud::aws, .token_uses = 1});
  MetadataClient client({.cloud = Cloud::aws, .endpoint = mock->endpoint()});
  for (int i = 0; i < 3; ++i) {
    const auto notice = client.ask();
    ASSERT_TRUE(notice) << notice.error().message;
    EXPECT_FALSE(*notice);
  }
  // 6 questions, each of which uses its token up: 5 times one is found expired.
  EXPECT_EQ(mock->refused(), 5);
}

TEST(AwsWatch, Version1IsNotUsedWhereThereIsNoVersion2) {
  const auto mock = mock_of({.cloud = Cloud::aws, .gives_tokens = false});
  mock->announce(Seconds(30));
  MetadataClient client({.cloud = Cloud::aws, .endpoint = mock->endpoint()});
  const auto notice = client.ask();
  ASSERT_FALSE(notice);
  EXPECT_NE(notice.error().message.find("IMDSv2"), std::string::npos);
  EXPECT_EQ(mock->served(), 0);
}

TEST(AwsWatch, ARecommendationIsSaidOnceAndTheEndStillComes) {
  const auto mock = mock_of({.cloud = Cloud::aws});
  mock->recommend_rebalance();
  Heard heard;
  const NoticeWatch watch(quick(*mock, Cloud::aws), heard.calls());
  EXPECT_FALSE(heard.notice().left);
  mock->announce(Seconds(60));
  EXPECT_TRUE(heard.notice().left);
}

TEST(AzureWatch, AnotherMachinesEndIsNone) {
  const auto mock = mock_of({.cloud = Cloud::azure, .machine_name = "vm1"});
  mock->announce_for("vm2", Seconds(30));
  MetadataClient client({.cloud = Cloud::azure, .endpoint = mock->endpoint()});
  const auto notice = client.ask();
  ASSERT_TRUE(notice) << notice.error().message;
  EXPECT_FALSE(*notice);
  // Told by hand that it is that one.
  MetadataClient other({.cloud = Cloud::azure, .endpoint = mock->endpoint(), .machine_name = "vm2"});
  EXPECT_TRUE(*other.ask());
}

TEST(Watch, EndsWhileItWaitsForTheNextQuestion) {
  const auto mock = mock_of({.cloud = Cloud::gcp});
  Heard heard;
  auto options = quick(*mock, Cloud::gcp);
  options.interval = Seconds(3600);
  {
    const NoticeWatch watch(options, heard.calls());
  }
  SUCCEED() << "an hour is not waited for";
}

}  // namespace
}  // namespace mayfly
