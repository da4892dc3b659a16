// Sessions, spares, standbys, redirects and lbsets around members whose breaker is open: mod_proxy's own rules.
#include "trip.hpp"

namespace cb::test {
namespace {

const RequestOptions session_a{.cookie = "SID=1234.a"};
const RequestOptions session_b{.cookie = "SID=1234.b"};

const std::string policy = std::string(quick_policy) + long_open;

class Sticky : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Sticky, any_mpm, mpm_name);

TEST_P(Sticky, ASessionOfAnOpenMemberIsServedByAnotherOneThatIsTold) {
    Backend a("a");
    Backend b("b");
    Httpd httpd(site(policy, balancer_of(member_line(a, "route=a") + member_line(b, "route=b") +
                                         "    ProxySet stickysession=SID\n")));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/app/mine"), session_a).backend(), "a");
    EXPECT_TRUE(httpd.wait_for_access_line("path=/app/mine member=" + a.member()));
    trip(httpd, a, {.request = session_a});
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(get(httpd.url("/app/moved"), session_a).backend(), "b");
        EXPECT_EQ(get(httpd.url("/app/stays"), session_b).backend(), "b");
    }
    EXPECT_EQ(a.requests(), 0U);
    EXPECT_TRUE(httpd.wait_for_access_line("path=/app/moved", 5));
    EXPECT_TRUE(httpd.wait_for_access_line("path=/app/stays", 5));
    for (const auto& line : httpd.access_lines_with("/app/moved"))
        EXPECT_NE(line.find("route_changed=1"), line.npos) << line;
    for (const auto& line : httpd.access_lines_with("/app/stays"))
        EXPECT_NE(line.find("route_changed=-"), line.npos) << line;
}

TEST_P(Sticky, UnderNofailoverASessionOfAnOpenMemberIsRefusedAndNoOtherOne) {
    Backend a("a");
    Backend b("b");
    Httpd httpd(site(policy, balancer_of(member_line(a, "route=a") + member_line(b, "route=b") +
                                         "    ProxySet stickysession=SID nofailover=On\n")));
    httpd.start();
    trip(httpd, a, {.request = session_a});
    for (int i = 0; i < 5; ++i) {
        const Response refused = get(httpd.url("/app/refused"), session_a);
        EXPECT_EQ(refused.status, 503);
        EXPECT_EQ(refused.backend(), "");
        EXPECT_TRUE(refused.headers.has("Retry-After"));
        EXPECT_EQ(get(httpd.url("/app/x"), session_b).backend(), "b");
        EXPECT_EQ(get(httpd.url("/app/x")).backend(), "b") << "no session, no claim";
    }
    EXPECT_EQ(a.requests(), 0U);
    EXPECT_EQ(b.requests(), 10U);
    EXPECT_TRUE(httpd.wait_for_access_line("rejected=open ", 5));
}

TEST_P(Sticky, UnderNofailoverAFailedConnectGoesOnToNobody) {
    Backend a("a");
    Backend b("b");
    Backend c("c");
    const RequestOptions session_c{.cookie = "SID=1234.c"};
    Httpd httpd(
        site(policy, balancer_of(member_line(a, "route=a") + member_line(b, "route=b") + member_line(c, "route=c") +
                                 "    ProxySet stickysession=SID nofailover=On\n")));
    httpd.start();
    a.refuse();
    EXPECT_EQ(get(httpd.url("/app/x"), session_a).status, 503);
    EXPECT_EQ(b.requests(), 0U);
    EXPECT_EQ(BreakerPage(httpd).member(a).number("Outcome-connect"), 1U);
    EXPECT_EQ(BreakerPage(httpd).member(a).number("Failovers"), 0U);

    // Though another member is open, this is no refusal.
    trip(httpd, c, {.request = session_c});
    const Response failed = get(httpd.url("/app/failed"), session_a);
    EXPECT_EQ(failed.status, 503);
    EXPECT_FALSE(failed.headers.has("Retry-After"));
    EXPECT_TRUE(httpd.wait_for_access_line("verdict=failure:connect probe=- rejected=- ", 2));
    EXPECT_EQ(b.requests(), 0U);
}

TEST_P(Sticky, ASessionInThePathIsAsGoodAsACookie) {
    Backend a("a");
    Backend b("b");
    Httpd httpd(site(policy, balancer_of(member_line(a, "route=a") + member_line(b, "route=b") +
                                         "    ProxySet stickysession=SID|sid\n")));
    httpd.start();
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(get(httpd.url("/app/x;sid=99.a")).backend(), "a");
    trip(httpd, a, {.request = session_a});
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(get(httpd.url("/app/x;sid=99.a?q=1")).backend(), "b");
    EXPECT_EQ(b.last_request()->target, "/x;sid=99.a?q=1");
    EXPECT_EQ(a.requests(), 0U);
}

TEST_P(Sticky, TheRedirectOfAnOpenMemberIsFollowed) {
    Backend a("a");
    Backend b("b");
    Backend heir("heir");
    Httpd httpd(
        site(policy,
             balancer_of(member_line(a, "route=a redirect=h loadfactor=1") + member_line(b, "route=b loadfactor=100") +
                         member_line(heir, "route=h loadfactor=1") + "    ProxySet stickysession=SID\n")));
    httpd.start();
    trip(httpd, a, {.request = session_a});
    for (int i = 0; i < 6; ++i)
        EXPECT_EQ(get(httpd.url("/app/x"), session_a).backend(), "heir");
}

TEST_P(Sticky, ASpareServesWhileAMemberIsOpenAndOnlyThen) {
    Backend a("a");
    Backend b("b");
    Backend spare("spare");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerOpenTime 2s jitter=0\n",
                     balancer_of(member_line(a, "route=a") + member_line(b, "route=b") +
                                 member_line(spare, "status=+R") + "    ProxySet stickysession=SID\n")));
    httpd.start();
    (void)statuses(10, httpd.url("/app/x"));
    EXPECT_EQ(spare.requests(), 0U);
    trip(httpd, a, {.request = session_a});
    b.forget();
    (void)statuses(10, httpd.url("/app/x"));
    EXPECT_GT(BreakerPage(httpd).member(a).number("Next-probe-ms"), 0U) << "the machine is too slow for this test";
    EXPECT_EQ(spare.requests(), 5U);
    EXPECT_EQ(b.requests(), 5U);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, a));
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "a"; }, patience, "the probe"));
    ASSERT_EQ(state_of(httpd, a), "closed");
    spare.forget();
    (void)statuses(10, httpd.url("/app/x"));
    EXPECT_EQ(spare.requests(), 0U) << "it steps back";
}

TEST_P(Sticky, AStandbyServesWhenAllOthersAreOpen) {
    Backend a("a");
    Backend b("b");
    Backend standby("standby");
    Httpd httpd(site(policy, balancer_of(member_line(a, "route=a") + member_line(b, "route=b") +
                                         member_line(standby, "status=+H") + "    ProxySet stickysession=SID\n")));
    httpd.start();
    trip(httpd, a, {.request = session_a});
    EXPECT_EQ(answerers(4, httpd.url("/app/x")), "b b b b");
    trip(httpd, b, {.request = session_b});
    EXPECT_EQ(answerers(4, httpd.url("/app/x")), "standby standby standby standby");
    EXPECT_EQ(get(httpd.url("/app/x"), session_a).backend(), "standby");
    standby.answer(Reply::status(502));
    EXPECT_EQ(answerers(5, httpd.url("/app/x")), "standby standby standby httpd httpd");
    EXPECT_EQ(httpd.error_lines_with("All workers are in error state").size(), 0U) << httpd.describe();
}

TEST_P(Sticky, TheNextLbsetServesWhenThoseBeforeItAreOpen) {
    Backend first("first");
    Backend second("second");
    Httpd httpd(site(policy, balancer_of(member_line(first, "lbset=0") + member_line(second, "lbset=1"))));
    httpd.start();
    first.answer(Reply::status(502));
    EXPECT_EQ(answerers(6, httpd.url("/app/x")), "first first first second second second");
}

}  // namespace
}  // namespace cb::test
