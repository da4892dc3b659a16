// Sticky sessions bound to a member that recovers under a ramp: each comes back once, and stays.
#include "support/fcgi.hpp"
#include "support/wire_backend.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

std::string ramp(const std::string& line) {
    return quick_policy + ("CircuitBreakerOpenTime 200ms jitter=0\nCircuitBreakerRampUp " + line + "\n");
}

RequestOptions session(const std::string& value) {
    return {.cookie = "SID=" + value};
}

/// `back` has opened and recovers; whoever is not let to it finds `good`.
class SessionRamp : public TrafficTest {
  protected:
    void start(const std::string& ramp_up, const std::string& of_balancer = "stickysession=SID") {
        HttpdOptions options = site(ramp(ramp_up), balancer_of(member_line(back_, "route=back loadfactor=100") +
                                                               member_line(good_, "route=good loadfactor=1") +
                                                               "    ProxySet " + of_balancer + "\n"));
        options.children = 4;
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }
    /// By requests that are bound to it. The last one is a request that is not: the first of the evenly spread sequence
    /// is the only one that a share of nearly nothing may let in.
    void recover(const std::string& path = "/app/trip", const RequestOptions& bound = session("0.back")) {
        back_.answer_next(3, Reply::status(502));
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(get(url(path), bound).backend(), "back");
        ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, back_));
        EXPECT_EQ(get(url(path), bound).backend(), "back");
        ASSERT_EQ(state_of(*httpd_, back_), "recovering");
        EXPECT_EQ(get(url("/app/first")).status, 200);
    }
    [[nodiscard]] std::string url(const std::string& path) const { return httpd_->url(path); }

    Backend back_{"back"};
    Backend good_{"good"};
    std::unique_ptr<Httpd> httpd_;
};
INSTANTIATE_TEST_SUITE_P(Mpms, SessionRamp, any_mpm, mpm_name);

/// What several children do at once.
class SessionRampOfAllChildren : public SessionRamp {};
INSTANTIATE_TEST_SUITE_P(Mpms, SessionRampOfAllChildren, each_mpm, mpm_name);

TEST_P(SessionRamp, BringsEachSessionBackOnceWhileItGrowsAndThoseOfOthersStayWhereTheyAre) {
    start("1500ms from=0");
    recover();
    constexpr unsigned kSessions = 40;
    std::vector<std::string> stations(kSessions);
    unsigned were_away = 0;
    bool is_over = false;
    for (unsigned round = 0; !is_over; ++round) {
        is_over = state_of(*httpd_, back_) == "closed";
        for (unsigned i = 0; i < kSessions; ++i) {
            const std::string at = get(url("/app/x"), session(std::to_string(i) + ".back")).backend();
            if (round == 0 && at == "good") ++were_away;
            if (stations[i].empty() || !stations[i].ends_with(at)) stations[i] += at;
        }
        EXPECT_EQ(get(url("/app/x"), session("5.good")).backend(), "good");
    }
    EXPECT_GT(were_away, 0U) << "or this test proves nothing";
    for (const std::string& each : stations)
        EXPECT_TRUE(each == "goodback" || each == "back") << each;
}

TEST_P(SessionRampOfAllChildren, LetsItsShareOfSessionsInWhicheverChildTheyComeTo) {
    start("24h from=30");
    recover();
    constexpr unsigned kSessions = 400;
    std::vector<std::future<unsigned>> workers;
    for (unsigned worker = 0; worker < 4; ++worker) {
        workers.push_back(std::async(std::launch::async, [&, worker] {
            unsigned let_in = 0;
            for (unsigned i = worker; i < kSessions; i += 4) {
                const RequestOptions mine = session("user" + std::to_string(i) + ".back");
                const std::string first = get(url("/app/x"), mine).backend();
                EXPECT_EQ(get(url("/app/x"), mine).backend(), first) << i;
                let_in += first == "back" ? 1 : 0;
            }
            return let_in;
        }));
    }
    unsigned let_in = 0;
    for (auto& each : workers)
        let_in += each.get();
    EXPECT_NEAR(let_in, 120, 45) << "30 % of sessions that anybody might have: five standard deviations";
    EXPECT_GT(children_that_served(*httpd_, "/app/x"), 1U);
}

TEST_P(SessionRamp, LetsASessionInAtOnceThatMayGoNowhereElse) {
    start("24h from=0", "stickysession=SID nofailover=On");
    recover();
    for (int i = 0; i < 30; ++i) {
        EXPECT_EQ(get(url("/app/x"), session(std::to_string(i) + ".back")).backend(), "back");
        EXPECT_EQ(get(url("/app/x")).backend(), "good") << "no session, no claim";
        EXPECT_EQ(get(url("/app/x"), session("1.nobody")).backend(), "good");
    }
}

TEST_P(SessionRamp, TellsClientsApartWhereTheirSessionsNameTheMemberOnly) {
    start("24h from=50");
    recover();
    std::set<std::string> seen;
    for (int i = 0; i < 40; ++i) {
        const RequestOptions client{.headers = {{"User-Agent", "browser " + std::to_string(i)}}, .cookie = "SID=.back"};
        const std::string first = get(url("/app/x"), client).backend();
        seen.insert(first);
        for (int again = 0; again < 2; ++again)
            EXPECT_EQ(get(url("/app/x"), client).backend(), first);
    }
    EXPECT_EQ(seen, (std::set<std::string>{"back", "good"})) << "not all at once";
}

TEST_P(SessionRamp, KeepsASessionThatHasBegunMeanwhileThoughItsTurnHasNotCome) {
    start("24h from=20");
    recover();
    unsigned begun = 0;
    for (int i = 0; i < 20; ++i) {
        const std::string value = "new" + std::to_string(i) + ".back";
        back_.answer_path("/login", Reply::ok()
                                        .header("Set-Cookie", "other=1; Path=/")
                                        .header("Set-Cookie", "SID=" + value + "; Path=/; HttpOnly"));
        if (get(url("/app/login")).backend() != "back") continue;
        ++begun;
        for (int again = 0; again < 3; ++again)
            EXPECT_EQ(get(url("/app/x"), session(value)).backend(), "back") << value;
    }
    EXPECT_GE(begun, 2U) << "or this test proves nothing";
    unsigned let_in = 0;
    for (int i = 0; i < 100; ++i)
        let_in += get(url("/app/x"), session("old" + std::to_string(i) + ".back")).backend() == "back" ? 1 : 0;
    EXPECT_LT(let_in, 50U) << "the others still wait for their turn";
}

TEST_P(SessionRamp, KeepsASessionThatAProbeHasBegun) {
    start("24h from=1");
    back_.answer_path("/login", Reply::ok().header("Set-Cookie", "SID=probe.back; Path=/"));
    recover("/app/login");
    for (int again = 0; again < 5; ++again)
        EXPECT_EQ(get(url("/app/x"), session("probe.back")).backend(), "back");
    unsigned let_in = 0;
    for (int i = 0; i < 20; ++i)
        let_in += get(url("/app/x"), session("old" + std::to_string(i) + ".back")).backend() == "back" ? 1 : 0;
    EXPECT_LT(let_in, 10U);
}

class SessionRampOverFastCgi : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Answers, SessionRampOverFastCgi, testing::Values("", "page"),
                         [](const auto& info) { return info.param.empty() ? "without_body" : "with_body"; });

TEST_P(SessionRampOverFastCgi, KeepsASessionThatAProbeHasBegun) {
    Dialect php = fcgi();
    php.end = std::string{1, 3, 0, 1, 0, 8, 0, 0} + std::string(8, '\0');  // no empty record before the end
    WireBackend back("back", php);
    Backend good("good");
    HttpdOptions options =
        site(Mpm::event, ramp("24h from=0"),
             balancer_of("    BalancerMember " + back.member() + " route=back loadfactor=100\n" +
                         member_line(good, "route=good loadfactor=1") + "    ProxySet stickysession=SID\n"));
    options.add_modules.emplace_back("proxy_fcgi");
    Httpd httpd(options);
    httpd.start();
    back.answer(WireReply::status(502));
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(get(httpd.url("/app/trip"), session("0.back")).status, 502);
    WireReply login = WireReply::status(200, GetParam());
    login.more_fields = "Set-Cookie: SID=probe.back; Path=/\r\n";
    back.answer(login);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, back.member()));
    EXPECT_EQ(get(httpd.url("/app/login"), session("0.back")).header("Set-Cookie"), "SID=probe.back; Path=/");
    ASSERT_EQ(BreakerPage(httpd).member(back.member()).at("State"), "recovering");
    EXPECT_EQ(get(httpd.url("/app/first")).status, 200);
    const unsigned before = back.requests();
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(get(httpd.url("/app/x"), session("probe.back")).status, 200);
    EXPECT_EQ(back.requests(), before + 10);
}

TEST_P(SessionRamp, KeepsAClientThatHttpdItselfHasBoundMeanwhile) {
    start("24h from=20", "stickysession=ROUTE");
    httpd_->set_config(httpd_->options().config +
                       "Header add Set-Cookie \"ROUTE=.%{BALANCER_WORKER_ROUTE}e; path=/\" "
                       "env=BALANCER_ROUTE_CHANGED\n");
    ASSERT_TRUE(httpd_->restart());
    recover("/app/trip", {.cookie = "ROUTE=.back"});
    unsigned begun = 0;
    for (int i = 0; i < 30; ++i) {
        const Headers browser{{"User-Agent", "browser " + std::to_string(i)}};
        const Response first = get(url("/app/x"), {.headers = browser});
        EXPECT_EQ(first.header("Set-Cookie"), "ROUTE=." + first.backend() + "; path=/");
        if (first.backend() == "back") ++begun;
        for (int again = 0; again < 3; ++again) {
            EXPECT_EQ(get(url("/app/x"), {.headers = browser, .cookie = "ROUTE=." + first.backend()}).backend(),
                      first.backend())
                << i;
        }
    }
    EXPECT_GE(begun, 3U) << "or this test proves nothing";
}

TEST_P(SessionRamp, FollowsTheRedirectOfAMemberThatIsOut) {
    Backend old("old");
    HttpdOptions options = site(ramp("24h from=0"), balancer_of(member_line(old, "route=old redirect=back status=+D") +
                                                                member_line(back_, "route=back loadfactor=100") +
                                                                member_line(good_, "route=good") +
                                                                "    ProxySet stickysession=SID nofailover=On\n"));
    httpd_ = std::make_unique<Httpd>(options);
    httpd_->start();
    recover();
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(get(url("/app/x"), session(std::to_string(i) + ".old")).backend(), "back");
    EXPECT_EQ(old.requests(), 0U);
}

struct Found {
    const char* path;
    const char* cookies;
    bool is_bound;
};

/// Under `nofailover` a session that mod_proxy finds and we don't is refused, and one that we find and it doesn't comes
/// to the member that looks idle.
class FoundSession : public SessionRamp {
  protected:
    void expect_found_as_by_mod_proxy(const std::string& of_balancer, const std::vector<Found>& all) {
        start("24h from=0", of_balancer + " nofailover=On");
        recover(all.at(0).path, {.cookie = all.at(0).cookies});
        for (const Found& each : all) {
            const Response response = get(url(each.path), {.cookie = each.cookies});
            EXPECT_EQ(response.backend(), each.is_bound ? "back" : "good")
                << each.path << " " << each.cookies << " " << response.status;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, FoundSession, testing::Values(Mpm::event), mpm_name);

TEST_P(FoundSession, InCookies) {
    expect_found_as_by_mod_proxy("stickysession=SID", {{"/app/x", "SID=1.back", true},
                                                       {"/app/x", "a=b; SID=1.back; c=d", true},
                                                       {"/app/x", "a=b,SID=1.back,c=d", true},
                                                       {"/app/x", "SID =1.back", true},
                                                       {"/app/x", "SID=; SID=1.back", false},
                                                       {"/app/x", "SID=1.x.back; SID=1.back", false},
                                                       {"/app/x", "SID=1.good; SID=1.back", false},
                                                       {"/app/x", "XSID=1.back", false},
                                                       {"/app/x", "sid=1.back", false},
                                                       {"/app/x", "SID=1back", false},
                                                       {"/app/x", "SID=1.", false},
                                                       {"/app/x", "SID=.back", true}});
}

TEST_P(FoundSession, InTheUrl) {
    expect_found_as_by_mod_proxy("stickysession=SID|sid", {{"/app/x;sid=1.back", "", true},
                                                           {"/app/x;sid=1.back?q=1", "", true},
                                                           {"/app/x;xsid=1.back", "", true},
                                                           {"/app/x;sid=1.back", "SID=1.good", true},
                                                           {"/app/x;sid=1.good", "SID=1.back", false},
                                                           {"/app/x;sid=", "SID=1.back", true},
                                                           {"/app/x;sidsid=1.back", "", true},
                                                           {"/app/x;sid=1.back;y=z", "", false},
                                                           {"/app/x;SID=1.back", "", false},
                                                           {"/app/x?sid=1.good", "SID=1.good", false}});
}

TEST_P(FoundSession, UpToASemicolonAndWithAnotherSeparator) {
    expect_found_as_by_mod_proxy(
        "stickysession=SID scolonpathdelim=On stickysessionsep=!",
        {{"/app/x;SID=1.2!back;y=z", "", true}, {"/app/x", "SID=1.2!back", true}, {"/app/x", "SID=1.back", false}});
}

TEST_P(FoundSession, WithoutASeparator) {
    expect_found_as_by_mod_proxy("stickysession=SID stickysessionsep=Off",
                                 {{"/app/x", "SID=back", true}, {"/app/x", "SID=1.back", false}});
}

}  // namespace
}  // namespace cb::test
