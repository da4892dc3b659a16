// Hot standbys, hot spares and later lbsets: they serve for a member from its opening until its ramp lets everything
// in.
#include "traffic.hpp"

namespace cb::test {
namespace {

struct Kind {
    const char* test_name;
    std::string first;   // parameters of the member
    std::string second;  // and of the one that stands by
};

struct Setting {
    Mpm mpm;
    Kind kind;
};
void PrintTo(const Setting& setting, std::ostream* out) {
    *out << setting.kind.test_name;
}

std::vector<Setting> settings() {
    const Kind standby{"HotStandby", "", "status=+H"};
    const Kind spare{"HotSpare", "", "status=+R"};
    return {{Mpm::prefork, standby}, {Mpm::worker, standby}, {Mpm::event, standby},
            {Mpm::prefork, spare},   {Mpm::event, spare},    {Mpm::event, {"LaterLbset", "lbset=0", "lbset=1"}}};
}

class Spare : public testing::TestWithParam<Setting> {
  protected:
    [[nodiscard]] HttpdOptions options(const std::string& ramp_up) {
        return site(
            GetParam().mpm,
            std::string(quick_policy) + "CircuitBreakerOpenTime 2s jitter=0\nCircuitBreakerRampUp " + ramp_up + "\n",
            balancer_of(member_line(first_, GetParam().kind.first) + member_line(second_, GetParam().kind.second)));
    }

    Backend first_{"first"};
    Backend second_{"second"};
};
INSTANTIATE_TEST_SUITE_P(Kinds, Spare, testing::ValuesIn(of_chosen_mpms(settings())), [](const auto& info) {
    return std::string(info.param.kind.test_name) + "_" + name_of(info.param.mpm);
});

TEST_P(Spare, ServesWhileTheMemberIsOpenAndProbedAndHandsBackAsTheRampSays) {
    HttpdOptions with_ramp = options("24h from=30");
    with_ramp.children = 4;
    Httpd httpd(with_ramp);
    httpd.start();
    EXPECT_EQ(answerers(4, httpd.url("/app/x")), "first first first first");
    first_.answer_next(3, Reply::status(502));
    EXPECT_EQ(answerers(7, httpd.url("/app/x")), "first first first second second second second");
    EXPECT_GT(BreakerPage(httpd).member(first_).number("Next-probe-ms"), 0U) << "the machine is too slow for this test";

    ASSERT_TRUE(wait_for_end_of_open_time(httpd, first_));
    first_.hold();
    std::future<Response> probe = get_later(httpd.url("/app/x"));
    ASSERT_TRUE(first_.wait_for_concurrent(1)) << httpd.describe();
    EXPECT_EQ(answerers(5, httpd.url("/app/x")), "second second second second second") << "while it is probed";
    EXPECT_EQ(state_of(httpd, first_), "half-open");
    first_.release();
    EXPECT_EQ(probe.get().backend(), "first");

    ASSERT_EQ(state_of(httpd, first_), "recovering");
    first_.forget();
    const LoadResult result =
        load(httpd.url("/app/x"), {.threads = 4, .requests_per_thread = 75, .keep_connections = false});
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_NEAR(first_.requests(), 90, 6) << "30 percent of 300";

    httpd.set_config(options("100ms").config);
    ASSERT_TRUE(httpd.restart());
    ASSERT_TRUE(wait_until(
        [&] { return get(httpd.url("/app/x")).status == 200 && transitions(httpd, "recovering", "closed") == 1; },
        patience, "the end of the ramp"));
    second_.forget();
    EXPECT_EQ(answerers(8, httpd.url("/app/x")), "first first first first first first first first");
    EXPECT_EQ(second_.requests(), 0U);
}

}  // namespace
}  // namespace cb::test
