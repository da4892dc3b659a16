// Actions on the status page: what they do, who may ask for them, and that nothing else changes a breaker.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pages.hpp"

namespace cb::test {
namespace {

class Actions : public TrafficTest {
  protected:
    [[nodiscard]] static HttpdOptions controlled(const std::string& proxied, const std::string& policy = quick_policy) {
        return {.mpm = GetParam(), .config = policy + control_location + proxied};
    }

    Backend app_{"app"};
};

INSTANTIATE_TEST_SUITE_P(Httpd, Actions, any_mpm, mpm_name);

/// What several children do at once.
class ActionsOfAllChildren : public Actions {};
INSTANTIATE_TEST_SUITE_P(Httpd, ActionsOfAllChildren, each_mpm, mpm_name);

TEST_P(Actions, ForceAMemberOpenAndClosedAndGiveItBack) {
    Httpd httpd(controlled(plain_worker(app_)));
    httpd.start();
    const Response answer = post(httpd, form(httpd, app_, "force-open"));
    EXPECT_EQ(answer.status, 303) << answer.body;
    EXPECT_EQ(answer.header("Location"), "/breakers#m-" + id_of(httpd, app_));
    EXPECT_EQ(state_of(httpd, app_), "forced-open");
    EXPECT_EQ(statuses(2, httpd.url("/app/")), "503 503");
    EXPECT_EQ(app_.requests(), 0U);

    EXPECT_EQ(post(httpd, form(httpd, app_, "force-closed")).status, 303);
    EXPECT_EQ(state_of(httpd, app_), "forced-closed");
    app_.answer(Reply::status(503));
    EXPECT_EQ(statuses(6, httpd.url("/app/")), "503 503 503 503 503 503");
    EXPECT_EQ(app_.requests(), 6U) << "everything passes";
    app_.answer_as_usual();

    EXPECT_EQ(post(httpd, form(httpd, app_, "automatic")).status, 303);
    EXPECT_EQ(state_of(httpd, app_), "closed");
    EXPECT_EQ(statuses(1, httpd.url("/app/")), "200");
}

TEST_P(Actions, ResetClosesAnOpenBreaker) {
    Httpd httpd(controlled(plain_worker(app_), quick_policy + std::string(long_open)));
    httpd.start();
    open_breaker(httpd, app_, 1);
    app_.answer_as_usual();
    EXPECT_EQ(post(httpd, form(httpd, app_, "reset")).status, 303);
    EXPECT_EQ(state_of(httpd, app_), "closed");
    EXPECT_EQ(BreakerPage(httpd).member(app_).number("Level"), 0U);
    EXPECT_EQ(statuses(1, httpd.url("/app/")), "200");
}

TEST_P(ActionsOfAllChildren, AreSeenByEveryChildAndOutliveARestart) {
    Backend seats("seats");
    Httpd httpd(few_threads_each(controlled(seats_at(seats) + plain_worker(app_)), 4));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(4));
    const std::string token = token_on(page(httpd));
    EXPECT_EQ(post(httpd, form(httpd, app_, "force-open")).status, 303);
    ClientForEachChild clients(httpd, seats, 4);
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(clients.get("/app/").status, 503);
    EXPECT_EQ(app_.requests(), 0U);
    ASSERT_TRUE(httpd.graceful());
    EXPECT_EQ(token_on(page(httpd)), token) << "a page that was open before still works";
    EXPECT_EQ(state_of(httpd, app_), "forced-open");
    EXPECT_EQ(post(httpd, "token=" + token + "&action=automatic&member=" + id_of(httpd, app_)).status, 303);
    EXPECT_EQ(state_of(httpd, app_), "closed");
}

class Control : public testing::Test {
  protected:
    void start(const std::string& more = "") {
        httpd_.set_config(quick_policy + std::string(control_location) + more + plain_worker(app_));
        httpd_.start();
        id_ = id_of(httpd_, app_);
        token_ = token_on(page(httpd_));
        ASSERT_EQ(token_.size(), 32U);
    }
    [[nodiscard]] std::string fields(const std::string& token) const {
        return "action=force-open&member=" + id_ + "&token=" + token;
    }
    [[nodiscard]] std::size_t refusals(const std::string& why) const {
        return httpd_.error_lines_with("an action on the status page was refused: " + why).size();
    }
    /// 403, one line of the error log with the reason, and nothing has changed.
    void expect_refused(const Response& answer, const std::string& why, std::size_t times = 1) {
        EXPECT_EQ(answer.status, 403) << why;
        EXPECT_EQ(refusals(why), times) << why << httpd_.describe();
        EXPECT_EQ(refusals(""), ++refused_) << httpd_.describe();
        EXPECT_EQ(state_of(httpd_, app_), "closed") << why;
        EXPECT_EQ(transition_lines(httpd_).size(), 0U) << why;
    }

    Backend app_{"app"};
    Httpd httpd_;
    std::string id_;
    std::string token_;
    std::size_t refused_ = 0;
};

TEST_F(Control, RefusesWithoutTheTokenOrWithAnother) {
    start();
    expect_refused(post(httpd_, "action=force-open&member=" + id_), "there is no token");
    std::string almost = token_;
    almost.back() = almost.back() == '0' ? '1' : '0';
    std::size_t times = 0;
    for (const std::string& wrong :
         {almost, token_.substr(1), token_ + "0", std::string(32, '0'), std::string(4000, 'a')}) {
        expect_refused(post(httpd_, fields(wrong)), "the token is wrong", ++times);
    }
    EXPECT_EQ(post(httpd_, fields(token_)).status, 303) << "and with the right one it acts";
}

TEST_F(Control, RefusesWhatComesFromAnotherHostOrDoesNotSayWhere) {
    start();
    const std::string why = "neither Origin nor Referer";
    const std::string host = httpd_.url().substr(7, httpd_.url().size() - 8);  // 127.0.0.1:port
    std::size_t times = 0;
    for (const std::string& origin :
         {std::string("http://evil.example"), "http://evil.example:" + std::to_string(httpd_.port()),
          std::string("null"), std::string("http://127.0.0.1"), "http://" + host + "0",
          "http://" + host + "@evil.example", "http://evil.example/" + host, "http://evil.example#" + host, host,
          std::string("http://")}) {
        expect_refused(post(httpd_, fields(token_), {{"Origin", origin}}), why, ++times);
        expect_refused(post(httpd_, fields(token_), {{"Referer", origin + "/page"}}), why, ++times);
    }
    expect_refused(
        post(httpd_, fields(token_), {{"Origin", "http://evil.example"}, {"Referer", httpd_.url("/breakers")}}), why,
        ++times);
    const Response nowhere = get(
        httpd_.url("/breakers"),
        {.method = "POST", .headers = {{"Content-Type", "application/x-www-form-urlencoded"}}, .body = fields(token_)});
    expect_refused(nowhere, why, ++times);
}

TEST_F(Control, TakesItFromAPageOfThisHostByOriginOrReferer) {
    start();
    const std::string here = httpd_.url().substr(0, httpd_.url().size() - 1);
    for (const Headers& headers : std::vector<Headers>{{{"Origin", here}},
                                                       {{"Origin", "HTTPS" + here.substr(4)}},  // TLS ends before httpd
                                                       {{"Referer", here + "/x?y"}},
                                                       {{"Referer", here}}}) {
        EXPECT_EQ(post(httpd_, fields(token_), headers).status, 303);
        EXPECT_EQ(post(httpd_, "action=automatic&member=" + id_ + "&token=" + token_, headers).status, 303);
    }
    // Ports that the scheme implies may be written or not.
    const auto from = [&](const std::string& host, const std::string& origin) {
        return post(httpd_, fields(token_), {{"Host", host}, {"Origin", origin}}).status;
    };
    EXPECT_EQ(from("breakers.example", "http://BREAKERS.example:80"), 303);
    EXPECT_EQ(from("breakers.example:443", "https://breakers.example"), 303);
    EXPECT_EQ(from("breakers.example:443", "http://breakers.example"), 403);
    EXPECT_EQ(from("[::1]:8080", "http://[::1]:8080"), 303);
}

TEST_F(Control, GoesBackToTheRefererOfThisHostOnly) {
    start();
    const std::string here = httpd_.url().substr(0, httpd_.url().size() - 1);
    const auto back = [&](const std::string& referer) {
        return post(httpd_, fields(token_), {{"Origin", here}, {"Referer", referer}}).header("Location");
    };
    EXPECT_EQ(back(here + "/balancer-manager?b=app#x"), "/balancer-manager?b=app#m-" + id_);
    EXPECT_EQ(back(here + "//evil.example/"), "/breakers#m-" + id_);
    EXPECT_EQ(back(here + "/\\evil.example/"), "/breakers#m-" + id_);
    EXPECT_EQ(back(here), "/breakers#m-" + id_);
}

TEST_F(Control, DoesNothingByGet) {
    start();
    const Headers browser{{"Referer", httpd_.url("/breakers")}};
    std::size_t times = 0;
    for (const std::string& query : {"/breakers?" + fields(token_), "/breakers?auto&action=reset&token=" + token_}) {
        expect_refused(get(httpd_.url(query), {.headers = browser}), "it was asked for by GET", ++times);
    }
    const Response put = get(httpd_.url("/breakers"), {.method = "PUT", .headers = browser, .body = fields(token_)});
    EXPECT_EQ(put.status, 405);
}

TEST_F(Control, RefusesUnknownMembersAndActionsAndTooMuch) {
    start();
    expect_refused(post(httpd_, "token=" + token_ + "&member=" + id_ + "&action=explode"), "there is no such action");
    expect_refused(post(httpd_, "token=" + token_ + "&member=" + id_), "there is no such action", 2);
    expect_refused(post(httpd_, "token=" + token_ + "&member=0123456789abcdef&action=reset"),
                   "there is no such member");
    expect_refused(post(httpd_, "token=" + token_ + "&member=&action=reset"), "there is no such member", 2);
    EXPECT_EQ(post(httpd_, std::string(100'000, 'x') + "&" + fields(token_)).status, 413);
    EXPECT_EQ(post(httpd_, "a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&i=9&" + fields(token_)).status, 413);
    EXPECT_EQ(get(httpd_.url("/breakers"),
                  {.method = "POST",
                   .headers = {{"Content-Type", "application/json"}, {"Referer", httpd_.url("/breakers")}},
                   .body = "{\"action\":\"reset\",\"token\":\"" + token_ + "\"}"})
                  .status,
              403);
    EXPECT_EQ(state_of(httpd_, app_), "closed");
}

TEST_F(Control, IsNeededWhereThePageStands) {
    start(
        "ProxyPass /look !\n<Location /look>\n    SetHandler circuitbreaker-status\n</Location>\n"
        "ProxyPass /off !\n<Location /off>\n    SetHandler circuitbreaker-status\n    CircuitBreakerControl "
        "Off\n</Location>\n");
    for (const char* path : {"/look", "/off"}) {
        const std::string html = page(httpd_, path);
        EXPECT_FALSE(has(html, "<form")) << path;
        EXPECT_EQ(token_on(html), "") << path;
        EXPECT_TRUE(has(page(httpd_, std::string(path) + "?format=json"), "\"token\":null")) << path;
        const Response answer =
            get(httpd_.url(path),
                {.method = "POST",
                 .headers = {{"Content-Type", "application/x-www-form-urlencoded"}, {"Referer", httpd_.url(path)}},
                 .body = fields(token_)});
        EXPECT_EQ(answer.status, 403) << path;
    }
    EXPECT_EQ(refusals("CircuitBreakerControl is not On here"), 2U) << httpd_.describe();
    EXPECT_EQ(state_of(httpd_, app_), "closed");
    EXPECT_TRUE(has(page(httpd_, "/breakers?format=json"), "\"token\":\"" + token_ + "\""));
}

TEST_F(Control, LogsWhoDidWhatFromWhere) {
    httpd_.options().add_modules = {"authn_core", "authn_file", "auth_basic", "authz_user"};
    httpd_.put_document("users", "olga:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n");
    start(
        "<Location /breakers>\n    AuthType Basic\n    AuthName ops\n    AuthBasicProvider file\n    AuthUserFile \"" +
        (httpd_.root() / "htdocs" / "users").string() +
        "\"\n    <RequireAny>\n        Require method GET\n        Require valid-user\n    "
        "</RequireAny>\n</Location>\n");
    EXPECT_EQ(post(httpd_, fields(token_)).status, 401);
    EXPECT_EQ(post(httpd_, fields(token_), {{"Authorization", "Basic b2xnYTpwdw=="}}).status, 303);
    const std::vector<std::string> lines = httpd_.error_lines_with("force-open by");
    ASSERT_EQ(lines.size(), 1U) << httpd_.describe();
    EXPECT_TRUE(has(lines[0], "circuitbreaker:notice")) << lines[0];
    EXPECT_TRUE(has(lines[0], "member " + app_.member() + ": force-open by olga from 127.0.0.1")) << lines[0];
    EXPECT_EQ(transition_lines(httpd_).size(), 1U) << "and the change of state itself";
    EXPECT_FALSE(has(httpd_.error_log() + httpd_.access_log(), token_));

    // What changes nothing is said too.
    EXPECT_EQ(post(httpd_, fields(token_), {{"Authorization", "Basic b2xnYTpwdw=="}}).status, 303);
    EXPECT_EQ(httpd_.error_lines_with("from 127.0.0.1: nothing to change").size(), 1U) << httpd_.describe();
}

}  // namespace
}  // namespace cb::test
