// CircuitBreakerFailover: which failed calls another member makes again, and what the client sees of it.
#include "withheld.hpp"
#include "outcomes.hpp"

namespace cb::test {
namespace {

constexpr const char* all = "CircuitBreakerFailover All tries=3 timeout=20s\n";

/// Header fields as they came, without those that tell the time or the member.
std::string fields_of(const Response& response) {
    std::string text;
    for (const auto& [name, value] : response.headers) {
        if (!Headers::same(name, "Date") && !Headers::same(name, "X-Backend")) text += name + ": " + value + "\n";
    }
    return text;
}

/// A member that fails and is asked first, one that is well, and the well one alone at /well.
class Withheld : public WithheldTest {
  protected:
    void start(const std::string& policy, const std::string& parameters = "") {
        WithheldTest::start(site(std::string(counting_policy) + policy,
                                 balancer_of(member_line(bad_, "loadfactor=100 " + parameters) + member_line(good_)) +
                                     "ProxyPass /well " + good_.member() + "\n"));
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, Withheld, any_mpm, mpm_name);

TEST_P(Withheld, AnAnswerLeavesNothingBehind) {
    start(all);
    good_.answer([](const Request&) { return Reply::ok("fine").header("X-Good", "1"); });
    const Response alone = ask("/well/x");
    for (const bool is_chunked : {false, true}) {
        Reply failing = Reply::status(503, "an error page")
                            .header("Set-Cookie", "session=bad; Path=/")
                            .header("X-Mark", "bad")
                            .header("Content-Type", "text/x-bad; charset=x")
                            .header("Content-Language", "xx")
                            .header("Content-Encoding", "x-bad")
                            .header("Last-Modified", "Mon, 30 Nov 2020 10:00:00 GMT")
                            .header("ETag", "\"bad\"")
                            .header("Cache-Control", "no-store")
                            .header("Warning", "199 - bad")
                            .header("Retry-After", "7");
        if (is_chunked) failing.in_chunks();
        bad_.answer(failing);
        const Response response = ask();
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.body, "fine");
        EXPECT_EQ(fields_of(response), fields_of(alone));
    }
    // Trailers too.
    good_.answer([](const Request&) { return Reply::ok("fine").header("X-Good", "1").in_chunks(); });
    const std::string trailing = fields_of(ask("/well/x"));
    bad_.answer(
        Reply::raw("HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                   "2\r\nno\r\n0\r\nX-Sum: bad\r\n\r\n"));
    EXPECT_EQ(fields_of(ask()), trailing);
    EXPECT_EQ(bad().number("Outcome-5xx"), 3U) << "charged all the same";
    EXPECT_EQ(bad().number("Verdict-failure"), 3U);
    EXPECT_EQ(bad().number("Failovers"), 3U);
    EXPECT_TRUE(httpd_->wait_for_access_line("status=200 method=GET path=/app/x", 3));
    EXPECT_TRUE(wait_for_no_permits(*httpd_, bad_));
    EXPECT_TRUE(wait_for_no_permits(*httpd_, good_));
}

TEST_P(Withheld, ACallMayFailInAnyWay) {
    start(all, "timeout=2");
    struct Way {
        const char* name;
        Reply reply;
        const char* outcome;
    };
    const Way ways[] = {
        {"answers 503", Reply::status(503, "no"), "Outcome-5xx Verdict-failure"},
        {"answers 502 of unknown length", Reply::status(502, "no").until_close(), "Outcome-5xx Verdict-failure"},
        {"resets", Reply::reset(), "Outcome-reset Verdict-failure"},
        {"closes", Reply::nothing(Ending::fin), "Outcome-reset Verdict-failure"},
        {"hangs", Reply::hang(), "Outcome-timeout Verdict-failure"},
        {"sends nonsense", Reply::garbage(), "Outcome-protocol Verdict-failure"},
        {"breaks off in its head", Reply::half_header(), "Outcome-reset Verdict-failure"}};
    for (const Way& way : ways) {
        // mod_proxy_http treats clients that come back another way: it closes their connection without an answer.
        for (const bool is_kept : {false, true}) {
            Client client;
            bad_.answer_as_usual();
            if (is_kept) {
                EXPECT_EQ(client.get(httpd_->url("/app/x")).backend(), "bad");
                bad_.close_idle_connections();
            }
            bad_.answer(way.reply);
            const OutcomeCounters before(*httpd_, bad_);
            const unsigned asked = good_.requests();
            const Response response = client.get(httpd_->url("/app/x"));
            EXPECT_EQ(response.backend(), "good") << way.name << (is_kept ? ", kept" : "") << " " << response.status;
            EXPECT_EQ(response.status, 200) << way.name;
            EXPECT_EQ(response.body, "good") << way.name;
            EXPECT_EQ(good_.requests() - asked, 1U) << way.name;
            EXPECT_EQ(OutcomeCounters(*httpd_, bad_) - before, way.outcome) << way.name << (is_kept ? ", kept" : "");
            bad_.release();
        }
    }
    bad_.refuse();
    EXPECT_EQ(ask().backend(), "good");
    EXPECT_EQ(bad().number("Outcome-connect"), 1U);
}

TEST_P(Withheld, TheKeepAliveRaceCountsNothingAndLosesNothing) {
    start(all, "keepalive=On");
    Client client;
    EXPECT_EQ(client.get(httpd_->url("/app/x")).backend(), "bad");
    // On a connection that has served a request before.
    bad_.answer([](const Request& request) {
        return request.nth_on_connection > 1 ? Reply::nothing(Ending::fin) : Reply::ok();
    });
    unsigned held_up = 0;  // on a machine that stood still meanwhile
    EXPECT_TRUE(wait_until(
        [&] {
            let_connections_idle();
            const Stopwatch stopwatch;
            EXPECT_EQ(client.get(httpd_->url("/app/x")).status, 200);
            held_up += stopwatch.was_at_once() ? 0 : 1;
            return bad().number("Outcome-stale") >= 1;
        },
        patience, "a call on a kept connection"));
    EXPECT_LE(bad().number("Verdict-failure"), held_up);
    EXPECT_GE(bad().number("Failovers"), 1U);
}

TEST_P(Withheld, ABodyIsReplayedWholeOrNotSentAgain) {
    start(std::string(all) + "CircuitBreakerBodyLimit 20000\n");
    bad_.answer(Reply::status(503));
    for (const std::size_t size : {std::size_t{1}, std::size_t{9'000}, std::size_t{16'000}, std::size_t{20'000},
                                   std::size_t{20'001}, std::size_t{100'000}}) {
        std::string body;
        while (body.size() < size)
            body += std::to_string(body.size()) + " ";
        body.resize(size);
        for (const bool is_chunked : {false, true}) {
            RequestOptions options{.method = "PUT", .body = body};
            if (is_chunked) options.headers.add("Transfer-Encoding", "chunked");
            if (size == 9'000) options.headers.add("Expect", "100-continue");
            good_.forget();
            const Response response = ask("/app/x", options);
            if (size <= 20'000) {
                EXPECT_EQ(response.backend(), "good") << size << (is_chunked ? " chunked" : "");
                ASSERT_TRUE(good_.last_request().has_value());
                EXPECT_EQ(good_.last_request()->body_size, size);
                EXPECT_EQ(good_.last_request()->body, body.substr(0, Request::most_kept_body));
            } else {
                EXPECT_EQ(response.status, 503) << size << (is_chunked ? " chunked" : "");
                EXPECT_EQ(response.backend(), "bad") << "its own answer";
                EXPECT_EQ(good_.requests(), 0U);
            }
        }
    }
}

TEST_P(Withheld, ABodyThatHttpdHasReadForADeadMemberComesOnce) {
    start(std::string(all) + "CircuitBreakerBodyLimit 60000\n");
    bad_.refuse();
    for (const std::size_t size : {std::size_t{5}, std::size_t{16'384}, std::size_t{50'000}, std::size_t{100'000}}) {
        std::string body;
        while (body.size() < size)
            body += std::to_string(body.size()) + " ";
        body.resize(size);
        for (const char* method : {"PUT", "POST"}) {
            for (const bool is_chunked : {false, true}) {
                RequestOptions options{.method = method, .body = body};
                if (is_chunked) options.headers.add("Transfer-Encoding", "chunked");
                EXPECT_EQ(ask("/app/x", options).backend(), "good") << method << size;
                EXPECT_EQ(good_.last_request()->body_size, size) << method << (is_chunked ? " chunked" : "");
                EXPECT_EQ(good_.last_request()->body, body.substr(0, Request::most_kept_body));
            }
        }
    }
}

TEST_P(Withheld, ABodyTooLongToBeKeptIsPassedOnAsItComes) {
    start(all);
    RawClient client(httpd_->port());
    ASSERT_TRUE(
        client.send("PUT /app/x HTTP/1.1\r\nHost: me\r\nContent-Length: 50000\r\n\r\n" + std::string(40'000, 'x')));
    EXPECT_TRUE(wait_until([&] { return bad_.connections() > 0; }, patience, "the member to be asked"))
        << "before the client has sent all of it";
    ASSERT_TRUE(client.send(std::string(10'000, 'x')));
    EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    EXPECT_EQ(bad_.last_request()->body_size, 50'000U);
}

TEST_P(Withheld, CallLeavesNoVerdictOnTheNextOne) {
    start(std::string(all) + "<Proxy \"" + good_.member() + "\">\n    CircuitBreaker Off\n</Proxy>\n");
    bad_.answer(Reply::status(503));
    EXPECT_EQ(ask().backend(), "good");
    EXPECT_TRUE(httpd_->wait_for_access_line("status=200 method=GET path=/app/x"));
    EXPECT_EQ(httpd_->access_lines_with("verdict=- ").size(), 1U) << httpd_->access_log();
}

TEST_P(Withheld, NothingIsWhereAProxyRemoteIsOneMembersAlone) {
    Backend remote("remote");
    remote.answer(Reply::status(503));
    start(std::string(all) + "ProxyRemote " + bad_.member() + " " + remote.url() + "\n");
    EXPECT_EQ(ask().backend(), "remote");
    remote.refuse();
    EXPECT_EQ(ask().status, 503);
    EXPECT_EQ(remote.requests(), 1U) << "not for the other member";
    EXPECT_EQ(good_.requests(), 0U);
}

TEST_P(Withheld, OnlyIdempotentMethodsAreSentTwice) {
    start(all);
    bad_.answer(Reply::status(503));
    for (const char* method : {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}) {
        EXPECT_EQ(ask("/app/x", {.method = method}).backend(), "good") << method;
    }
    for (const char* method : {"POST", "PATCH", "PROPFIND", "LOCK"}) {
        EXPECT_EQ(ask("/app/x", {.method = method}).backend(), "bad") << method;
    }
    bad_.answer(Reply::reset());
    EXPECT_EQ(ask("/app/x", {.method = "POST", .body = "x"}).status, 502);
    bad_.refuse();
    EXPECT_EQ(ask("/app/x", {.method = "POST", .body = "pay"}).backend(), "good") << "nothing was sent";
    EXPECT_EQ(good_.last_request()->body, "pay");
}

TEST_P(Withheld, NothingIsOnceSomethingHasGoneToTheClient) {
    start(all);
    bad_.answer(Reply::of_size(300'000).cut_after(200'000, Ending::fin));
    const Response cut = ask();
    EXPECT_EQ(cut.status, 200);
    EXPECT_FALSE(cut.complete());
    bad_.answer(Reply::status(503, "late").after_interim(103));
    EXPECT_EQ(ask().backend(), "bad") << "its interim response went first";
    EXPECT_EQ(good_.requests(), 0U);
}

TEST_P(Withheld, ASlowErrorPageCostsNoTime) {
    start(all);
    bad_.answer(Reply::status(503, std::string(5000, 'x')).stalling(1000));
    EXPECT_EQ(ask().backend(), "good") << "though the rest never comes";
    EXPECT_TRUE(bad_.wait_until_quiet()) << "httpd has left";
    bad_.answer(Reply::status(503, std::string(5'000'000, 'x')));
    EXPECT_EQ(ask().backend(), "good");
}

TEST_P(Withheld, AnAnswerMayFailByWhatItsBodySays) {
    start(std::string(all) +
          "CircuitBreakerVerdict failure 200 json=/code:7\nCircuitBreakerVerdict failure body=/broken/\n"
          "CircuitBreakerBodyLimit 2000\n");
    const auto json = [](const std::string& body) {
        return Reply::ok(body).header("Content-Type", "application/json");
    };
    for (const bool is_chunked : {false, true}) {
        const auto framed = [&](Reply reply) { return is_chunked ? reply.in_chunks() : reply; };
        bad_.answer(framed(json("{\"code\": 7}")));
        EXPECT_EQ(ask().backend(), "good");
        bad_.answer(framed(json("{\"code\": 8}")));
        const Response fine = ask();
        EXPECT_EQ(fine.backend(), "bad");
        EXPECT_EQ(fine.body, "{\"code\": 8}");
        bad_.answer(framed(Reply::ok(std::string(100, 'x') + "broken").header("Content-Type", "text/plain")));
        EXPECT_EQ(ask().backend(), "good");
        // Longer than what is looked at.
        const std::string page = std::string(3000, 'x') + "broken";
        bad_.answer(framed(Reply::ok(page).header("Content-Type", "text/plain")));
        EXPECT_EQ(ask().body, page);
    }
    // A member that pauses isn't waited for.
    bad_.answer(json("{\"code\":        7}").stalling(9));
    RawClient client(httpd_->port());
    ASSERT_TRUE(client.send("GET /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n"));
    EXPECT_NE(client.read_until("{\"code\":").find("X-Backend: bad"), std::string::npos);
    bad_.release();
    EXPECT_EQ(client.read_to_end(), "        7}");
}

TEST_P(Withheld, TheFirstAnswerCountsIfTheOtherMemberIsGoneWhenItIsAsked) {
    // It looks well, but can take no more.
    start(std::string(all) + "CircuitBreakerMaxConcurrent 1\nCircuitBreakerVerdict failure 700\n");
    good_.hold();
    auto other = get_later(httpd_->url("/well/x"));
    ASSERT_TRUE(good_.wait_for_concurrent(1));
    // The plain worker is a breaker of its own: the member's is taken by a second request.
    bad_.refuse();
    auto last = get_later(httpd_->url("/app/x"));
    ASSERT_TRUE(good_.wait_for_concurrent(2));
    bad_.accept_again();
    bad_.answer(Reply::status(503, "sorry").header("X-Mark", "1").header("Set-Cookie", "a=b"));
    const Response whole = ask();
    EXPECT_EQ(whole.status, 503);
    EXPECT_EQ(whole.body, "sorry");
    EXPECT_EQ(whole.header("X-Mark"), "1");
    EXPECT_EQ(whole.header("Set-Cookie"), "a=b");
    EXPECT_EQ(whole.header("Content-Length"), "5");
    bad_.answer(Reply::status(504, std::string(100'000, 'x')).header("X-Mark", "1"));
    const Response cut = ask();
    EXPECT_EQ(cut.status, 504);
    EXPECT_NE(cut.body.find("<title>504 "), std::string::npos) << "httpd's own page";
    EXPECT_FALSE(cut.headers.has("X-Mark"));
    bad_.answer(Reply::status(700, "sorry"));
    EXPECT_EQ(ask().status, 700);
    bad_.answer(Reply::status(700, std::string(100'000, 'x')));
    EXPECT_EQ(ask().status, 502) << "httpd has no page for it";
    good_.release();
    EXPECT_EQ(last.get().status, 200);
    EXPECT_EQ(other.get().status, 200);
    EXPECT_TRUE(wait_for_no_permits(*httpd_, bad_));
    EXPECT_TRUE(wait_for_no_permits(*httpd_, good_));
}

TEST_P(Withheld, NothingIsForAMemberWhoseRampKeepsTheRequestOut) {
    httpd_ = std::make_unique<Httpd>(
        site(std::string(counting_policy) + all + "<Proxy \"" + good_.member() +
                 "\">\n    CircuitBreakerConsecutiveFailures 1\n    CircuitBreakerOpenTime 200ms jitter=0\n"
                 "    CircuitBreakerProbes 1\n    CircuitBreakerRampUp 24h from=0\n</Proxy>\n",
             balancer_of(member_line(bad_, "loadfactor=100") + member_line(good_))));
    httpd_->start();
    bad_.answer(Reply::status(503));
    good_.answer_next(1, Reply::status(503));
    EXPECT_EQ(ask().status, 503);
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, good_));
    EXPECT_EQ(ask().backend(), "good") << "the probe";
    ASSERT_EQ(state_of(*httpd_, good_), "recovering");
    bad_.answer(Reply::status(503, std::string(100'000, 'x')));
    EXPECT_EQ(ask().body.size(), 100'000U) << "its own page, whole";
}

TEST_P(Withheld, NothingIsForAMemberThatDrains) {
    httpd_ = std::make_unique<Httpd>(
        site(std::string(counting_policy) + all,
             balancer_of(member_line(bad_, "route=bad") + member_line(good_, "route=good status=+N") +
                         "    ProxySet stickysession=SESSION\n")));
    httpd_->start();
    bad_.answer(Reply::status(503, std::string(100'000, 'x')));
    EXPECT_EQ(ask().body.size(), 100'000U) << "its own page, whole";
    EXPECT_EQ(good_.requests(), 0U);
}

TEST_P(Withheld, ErrorPagesOfProxyErrorOverrideAreToo) {
    start(std::string(all) + "ProxyErrorOverride On\nErrorDocument 503 \"ours\"\n");
    bad_.answer(Reply::status(503, "theirs").header("X-Mark", "1").header("Set-Cookie", "a=b"));
    const Response response = ask();
    EXPECT_EQ(response.backend(), "good");
    EXPECT_FALSE(response.headers.has("X-Mark"));
    EXPECT_FALSE(response.headers.has("Set-Cookie"));
    good_.answer(Reply::status(503, "theirs too"));
    EXPECT_EQ(ask().body, "ours") << "nobody is left";
}

}  // namespace
}  // namespace cb::test
