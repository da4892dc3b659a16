// The status page: what it shows, in each of its forms.
#include <gtest/gtest.h>
#include <jansson.h>

#include <memory>
#include <string>

#include "pages.hpp"

namespace cb::test {
namespace {

using Json = std::unique_ptr<json_t, decltype(&json_decref)>;

Json parsed(const std::string& text) {
    json_error_t error;
    Json json(json_loads(text.c_str(), JSON_REJECT_DUPLICATES, &error), json_decref);
    EXPECT_NE(json, nullptr) << error.text << "\n" << text;
    return json;
}

std::string text_at(const json_t* object, const char* key) {
    const json_t* const value = json_object_get(object, key);
    EXPECT_TRUE(json_is_string(value)) << key;
    return json_is_string(value) ? json_string_value(value) : "";
}

long long number_at(const json_t* object, const char* key) {
    const json_t* const value = json_object_get(object, key);
    EXPECT_TRUE(json_is_integer(value)) << key;
    return json_integer_value(value);
}

std::string keys_of(const json_t* object) {
    std::string text;
    const char* key = nullptr;
    json_t* value = nullptr;
    json_object_foreach(const_cast<json_t*>(object), key, value) text += (text.empty() ? "" : " ") + std::string(key);
    return text;
}

class StatusPage : public testing::Test {
  protected:
    void start(const std::string& policy, const std::string& proxied) {
        httpd_.set_config(policy + status_location + proxied);
        httpd_.start();
    }
    /// Opens the breaker of /app, for the rest of the test.
    void open() {
        start(quick_policy + std::string(long_open), balancer_of(member_line(app_)));
        open_breaker(httpd_, app_, 1);
    }
    /// The only member in `?format=json`.
    [[nodiscard]] const json_t* only_member() {
        json_ = parsed(page(httpd_, "/breakers?format=json"));
        const json_t* const members = json_object_get(json_.get(), "members");
        EXPECT_EQ(json_array_size(members), 1U);
        return json_array_get(members, 0);
    }

    Backend app_{"app"};
    Httpd httpd_;
    Json json_{nullptr, json_decref};
};

TEST_F(StatusPage, TellsAtItsTopWhoIsOutSinceWhenWhyAndWhenItWillBeProbed) {
    open();
    const std::string html = page(httpd_);
    EXPECT_TRUE(has(html, "<title>1 out: circuit breakers</title>"));
    const std::string top = html.substr(0, html.find("<section"));
    EXPECT_TRUE(has(top, "1 of 1 members is out")) << top;
    EXPECT_TRUE(has(top, "<span class=\"state open\">open</span>")) << top;
    EXPECT_TRUE(has(top, app_.member() + "</a> of balancer://app")) << top;
    EXPECT_TRUE(has(top, "3 failures in a row")) << top;
    EXPECT_NE(first_match(top, "may be probed in (9 min [0-9]+ s|10 min 0 s)"), "") << top;
    EXPECT_NE(first_match(top, "\\(since <time datetime=\"([-0-9]+T[0-9:.]+Z)\">[0-9:]+</time>\\)"), "") << top;
}

TEST_F(StatusPage, HasARowForEachMemberGroupedByVirtualHostAndBalancer) {
    Backend second("second");
    Backend third("third");
    start("CircuitBreaker On\n", balancer_of(member_line(app_) + member_line(second)) + "ProxyPass /plain " +
                                     third.member() +
                                     "\n<VirtualHost *:1>\n    ServerName other.example\n    ProxyPass /x " +
                                     third.member() + "/x\n</VirtualHost>\n");
    const std::string html = page(httpd_);
    EXPECT_EQ(count_of(html, "<tr class=\"member calm\""), 4U);
    EXPECT_EQ(count_of(html, "<section class=\"group\">"), 3U);
    EXPECT_TRUE(has(html, "<h2>127.0.0.1")) << html;
    EXPECT_TRUE(has(html, "<h2>other.example")) << html;
    EXPECT_EQ(count_of(html, "<h3>balancer://app</h3>"), 1U);
    EXPECT_EQ(count_of(html, "<h3>Workers without a balancer</h3>"), 2U);
    EXPECT_TRUE(has(html, "All members take their traffic."));
    EXPECT_FALSE(has(html, "<form")) << "CircuitBreakerControl is Off";
}

TEST_F(StatusPage, ShowsWhatWasTriedSinceTheMemberIsOut) {
    start(quick_policy, plain_worker(app_));
    open_breaker(httpd_, app_);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd_, app_));
    EXPECT_EQ(statuses(1, httpd_.url("/app/x")), "503");
    ASSERT_TRUE(wait_for_state(httpd_, app_, "open"));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd_, app_));
    const std::string html = page(httpd_);
    const std::string top = html.substr(0, html.find("<section"));
    EXPECT_TRUE(has(top, "a probe failed; out since ")) << top;
    EXPECT_TRUE(has(top, "(3 failures in a row), probed once in vain; <b>will be probed by the next request</b>"))
        << top;
    const std::string changes = html.substr(html.find("<h4>Last changes</h4>"));
    EXPECT_LT(changes.find("probe failed"), changes.find("open time over")) << changes;
    EXPECT_LT(changes.find("open time over"), changes.find("consecutive failures")) << "the latest first";
    EXPECT_EQ(count_of(html, "<rect class=\"open\""), 2U);
    EXPECT_EQ(count_of(html, "<rect class=\"half-open\""), 1U);
    EXPECT_EQ(count_of(html, "<rect class=\"closed\""), 1U);
    EXPECT_TRUE(has(html, "aria-label=\"States in the last hour: open 2 times, now open\""));

    app_.hold();
    auto probe = get_later(httpd_.url("/app/x"));
    ASSERT_TRUE(app_.wait_for_concurrent(1));
    EXPECT_TRUE(has(page(httpd_), "probed once in vain; <b>1 of 1 probes in flight; 0 of 1 needed have succeeded</b>"))
        << "the present one may still succeed";
    app_.release();
    EXPECT_EQ(probe.get().status, 503);
}

TEST_F(StatusPage, RunsItsOwnScriptOnlyAndIsFramedByNobody) {
    start("CircuitBreaker On\n", plain_worker(app_));
    const Response first = get(httpd_.url("/breakers"));
    const Response second = get(httpd_.url("/breakers"));
    const std::string policy = first.header("Content-Security-Policy");
    const std::string nonce = first_match(policy, "script-src 'nonce-([0-9a-f]{32})'");
    EXPECT_TRUE(has(first.body, "<script nonce=\"" + nonce + "\">")) << policy;
    EXPECT_FALSE(has(second.header("Content-Security-Policy"), nonce)) << "drawn for each response";
    EXPECT_TRUE(has(policy, "default-src 'none'")) << policy;
    EXPECT_TRUE(has(policy, "frame-ancestors 'none'")) << policy;
    EXPECT_FALSE(has(policy, "unsafe")) << policy;
}

TEST_F(StatusPage, ShowsRatesAgainstTheirThresholds) {
    start(
        "CircuitBreaker On\nCircuitBreakerMinimumCalls 10\nCircuitBreakerFailureRate 80\n"
        "CircuitBreakerConsecutiveFailures 7\nCircuitBreakerSlowCall 5s rate=60\nCircuitBreakerMaxConcurrent 9\n"
        "CircuitBreakerWindow 20calls\n",
        plain_worker(app_));
    app_.answer_next(3, Reply::status(503));
    EXPECT_EQ(statuses(8, httpd_.url("/app/x")), "503 503 503 200 200 200 200 200");
    ASSERT_TRUE(wait_for_counter(httpd_, app_, "Calls", 8));
    std::string html = page(httpd_);
    EXPECT_TRUE(has(html, "38 %")) << html;
    EXPECT_TRUE(has(html, "3 of 8 calls; opens at 80 % of 10 or more")) << html;
    EXPECT_TRUE(has(html, "0 of 8 calls; opens at 60 % of 10 or more")) << html;
    EXPECT_TRUE(has(html, "<td data-label=\"In a row\">0 of 7</td>")) << html;
    EXPECT_TRUE(has(html, "<td data-label=\"In flight\">0 of 9</td>")) << html;
    const json_t* const member = only_member();
    const json_t* const window = json_object_get(member, "window");
    EXPECT_EQ(number_at(window, "span_calls"), 20);
    EXPECT_TRUE(json_is_null(json_object_get(window, "span_ms")));
    EXPECT_EQ(number_at(window, "failures"), 3);
    EXPECT_DOUBLE_EQ(json_real_value(json_object_get(window, "failure_rate")), 0.375);
    const json_t* const limits = json_object_get(member, "limits");
    EXPECT_EQ(number_at(limits, "failure_percent"), 80);
    EXPECT_EQ(number_at(limits, "slow_call_ms"), 5000);
}

TEST_F(StatusPage, ShowsTheLastFailingCallsAndTheirPathsOnlyIfAsked) {
    for (const bool with_path : {false, true}) {
        start(quick_policy + std::string(long_open) + (with_path ? "CircuitBreakerRecordPath On\n" : ""),
              plain_worker(app_));
        app_.answer_next(1, Reply::reset());  // the first, or it could be the race for a kept connection
        app_.answer_next(1, Reply::status(502));
        app_.answer_next(1, Reply::status(504));
        for (const char* path : {"/app/one?secret=1", "/app/t%20wo%3Cb%3E", "/app/three"})
            (void)get(httpd_.url(path), {.method = "PUT", .body = "x"});
        ASSERT_TRUE(wait_for_state(httpd_, app_, "open"));
        const json_t* const calls = json_object_get(only_member(), "failed_calls");
        ASSERT_EQ(json_array_size(calls), 3U);
        const char* const outcomes[] = {"reset", "502", "504"};
        const char* const paths[] = {"/app/one", "/app/t%20wo%3Cb%3E", "/app/three"};
        const std::string html = page(httpd_);
        for (std::size_t i = 0; i < 3; ++i) {
            const json_t* const call = json_array_get(calls, i);
            EXPECT_EQ(text_at(call, "outcome"), outcomes[i]);
            EXPECT_EQ(text_at(call, "method"), "PUT");
            EXPECT_GE(number_at(call, "latency_ms"), 0);
            EXPECT_EQ(has(html, "PUT <code>" + std::string(paths[i]) + "</code>"), with_path) << html;
            if (with_path) {
                EXPECT_EQ(text_at(call, "path"), paths[i]);
            } else {
                EXPECT_TRUE(json_is_null(json_object_get(call, "path")));
            }
        }
        EXPECT_FALSE(has(html, "secret"));
        EXPECT_EQ(httpd_.stop(), 0);
    }
}

TEST_F(StatusPage, ShowsAFailingCallWhoseMethodHttpdDoesNotKnow) {
    start(quick_policy + std::string(long_open), balancer_of(member_line(app_)));
    app_.answer(Reply::status(503));
    EXPECT_EQ(get(httpd_.url("/app/x"), {.method = "FOO"}).status, 503);
    ASSERT_TRUE(wait_for_no_permits(httpd_, app_));
    EXPECT_TRUE(has(page(httpd_), "<td>other <code>")) << httpd_.describe();
    const json_t* const call = json_array_get(json_object_get(only_member(), "failed_calls"), 0);
    EXPECT_EQ(text_at(call, "method"), "other");
}

TEST_F(StatusPage, NamesTheMethodOfAFailingCallThatADirectiveHasRegistered) {
    start("RegisterHttpMethod FOO\n" + std::string(quick_policy) + long_open, balancer_of(member_line(app_)));
    app_.answer(Reply::status(503));
    EXPECT_EQ(get(httpd_.url("/app/x"), {.method = "FOO"}).status, 503);
    ASSERT_TRUE(wait_for_no_permits(httpd_, app_));
    EXPECT_TRUE(has(page(httpd_), "<td>FOO <code>")) << httpd_.describe();
    const json_t* const call = json_array_get(json_object_get(only_member(), "failed_calls"), 0);
    EXPECT_EQ(text_at(call, "method"), "FOO");
}

TEST_F(StatusPage, ShowsThePolicyInForce) {
    start(
        "CircuitBreaker Observe\nCircuitBreakerWindow 100calls\nCircuitBreakerOpenTime 5s max=1min factor=1.5\n"
        "CircuitBreakerFailover All tries=3 timeout=5s\nCircuitBreakerHealthCheck Early\n"
        "CircuitBreakerProbes 4 tolerate=1 max=9\nCircuitBreakerRampUp 1min from=5\nCircuitBreakerProbeHeader X-Probe\n"
        "CircuitBreakerVerdict fatal 500-501 timeout json=/error/code:7\nCircuitBreakerProbeVerdict ignore 404\n"
        "CircuitBreakerVerdict failure 2xx slow\nCircuitBreakerSlowCall 2s rate=Off until=end\n"
        "CircuitBreakerFailureCount 30\n",
        "<Proxy balancer://app>\n    CircuitBreakerFailureRate Off\n" + member_line(app_) +
            "    ProxySet failonstatus=500,503\n</Proxy>\nProxyPass /app balancer://app\n");
    const std::string html = page(httpd_);
    const json_t* const policy = json_object_get(only_member(), "policy");
    const auto is_in_json = [&](const std::string& line) {
        for (std::size_t i = 0; i < json_array_size(policy); ++i) {
            if (line == json_string_value(json_array_get(policy, i))) return true;
        }
        return false;
    };
    for (const char* line :
         {"CircuitBreaker Observe", "CircuitBreakerWindow 100calls", "CircuitBreakerFailureRate Off",
          "CircuitBreakerOpenTime 5s max=1min factor=1.500 jitter=10 min=1s notice=Off retry-after=Off",
          "CircuitBreakerProbes 4 concurrent=9 tolerate=1 successes=3 max=9", "CircuitBreakerFailureCount 30",
          "CircuitBreakerSlowCall 2s rate=Off until=end", "CircuitBreakerVerdict failure 200-299 slow",
          "CircuitBreakerFailover All budget=20 tries=3 timeout=5s", "CircuitBreakerHealthCheck Early",
          "CircuitBreakerRampUp 1min from=5", "CircuitBreakerProbeHeader X-Probe",
          "CircuitBreakerProbeVerdict ignore 404", "CircuitBreakerVerdict fatal 500-501 timeout json=/error/code",
          "CircuitBreakerVerdict failure 502-504 500 connect timeout reset truncated protocol"}) {
        EXPECT_TRUE(has(html, std::string("<code>") + line + "</code>")) << line << "\n" << html;
        EXPECT_TRUE(is_in_json(line)) << line;
    }
    EXPECT_TRUE(has(html, "observing"));
    EXPECT_TRUE(has(html, "<span class=\"quiet\">rate off</span>")) << html;
    EXPECT_TRUE(has(html, "of 0 calls; opens at 30</span>")) << html;
    const json_t* const limits = json_object_get(only_member(), "limits");
    EXPECT_EQ(number_at(limits, "failure_count"), 30);
    EXPECT_EQ(number_at(limits, "slow_call_ms"), 2000);
    EXPECT_TRUE(json_is_null(json_object_get(limits, "slow_percent")));
}

TEST_F(StatusPage, CountsTheProbesOfTheRoundByWhatTheyProved) {
    start(quick_policy + std::string("CircuitBreakerProbes 5 tolerate=34%\n"), plain_worker(app_));
    EXPECT_EQ(number_at(json_object_get(only_member(), "probes"), "needed"), 4);
    open_breaker(httpd_, app_);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd_, app_));
    EXPECT_EQ(statuses(1, httpd_.url("/app/x")), "503");
    ASSERT_TRUE(wait_for_no_permits(httpd_, app_));
    const json_t* const probes = json_object_get(only_member(), "probes");
    EXPECT_EQ(number_at(probes, "failed"), 1);
    EXPECT_EQ(number_at(probes, "tolerated"), 1);
    EXPECT_EQ(number_at(probes, "succeeded"), 0);
    EXPECT_EQ(number_at(probes, "needed"), 4);
    EXPECT_TRUE(has(page(httpd_), "0 of 5 probes in flight; 0 of 4 needed have succeeded"));
    EXPECT_EQ(number_at(probes, "neutral"), 0);
}

TEST_F(StatusPage, HasADocumentedJsonSchema) {
    open();
    const json_t* const member = only_member();
    EXPECT_EQ(keys_of(json_.get()), "version time token members");
    EXPECT_EQ(number_at(json_.get(), "version"), 1);
    EXPECT_EQ(keys_of(member),
              "id vhost balancer member mode state since since_ms reason level generation next_probe_ms awaits_check "
              "ramp_percent "
              "window limits probes in_flight totals changes failed_calls policy");
    EXPECT_EQ(keys_of(json_object_get(member, "window")),
              "span_ms span_calls calls failures failure_rate timed_calls slow_calls slow_rate consecutive_failures");
    EXPECT_EQ(keys_of(json_object_get(member, "limits")),
              "minimum_calls failure_percent failure_count consecutive_failures slow_call_ms slow_percent in_flight");
    EXPECT_EQ(keys_of(json_object_get(member, "probes")),
              "in_flight overdue concurrent succeeded needed failed tolerated neutral");
    EXPECT_EQ(keys_of(json_object_get(member, "totals")),
              "calls verdicts probe_verdicts outcomes probe_outcomes slow probes probes_lost late suppressed failovers "
              "probed_early refused would_refuse "
              "transitions opened state_ms outages outage_ms outage_waiting_ms");
    EXPECT_EQ(keys_of(json_array_get(json_object_get(member, "changes"), 0)), "time state reason level");
    EXPECT_EQ(keys_of(json_array_get(json_object_get(member, "failed_calls"), 0)),
              "time outcome latency_ms method probe slow path");
    EXPECT_EQ(text_at(member, "state"), "open");
    EXPECT_EQ(text_at(member, "reason"), "consecutive failures");
    EXPECT_EQ(text_at(member, "member"), app_.member());
    EXPECT_EQ(text_at(member, "balancer"), "balancer://app");
    EXPECT_GT(number_at(member, "next_probe_ms"), 500'000);
    EXPECT_EQ(number_at(json_object_get(json_object_get(member, "totals"), "refused"), "open"), 1);
    // Every field is in the reference.
    const std::string reference =
        read_file(module_under_test().parent_path().parent_path() / "mod_circuitbreaker" / "README.md");
    for (const char* part : {"window", "limits", "probes", "totals"}) {
        std::istringstream keys(keys_of(json_object_get(member, part)));
        for (std::string key; keys >> key;)
            EXPECT_TRUE(has(reference, "`" + key + "`")) << key << " is not documented";
    }
    std::istringstream keys(keys_of(member));
    for (std::string key; keys >> key;)
        EXPECT_TRUE(has(reference, "`" + key + "`")) << key << " is not documented";
}

TEST_F(StatusPage, IsNotCachedNorTaggedInAnyForm) {
    open();
    for (const char* form : {"", "?auto", "?format=json", "?refresh=0"}) {
        const std::string url = httpd_.url("/breakers" + std::string(form));
        const Response full = get(url);
        const Response head = get(url, {.method = "HEAD"});
        for (const Response* response : {&full, &head}) {
            EXPECT_EQ(response->status, 200) << form;
            EXPECT_EQ(response->header("Cache-Control"), "no-store") << form;
            EXPECT_FALSE(response->headers.has("ETag")) << form;
            EXPECT_FALSE(response->headers.has("Last-Modified")) << form;
            EXPECT_EQ(response->header("X-Content-Type-Options"), "nosniff") << form;
            EXPECT_EQ(response->header("Content-Type"), full.header("Content-Type")) << form;
        }
        EXPECT_FALSE(full.body.empty()) << form;
        EXPECT_TRUE(head.body.empty()) << form;
    }
    EXPECT_EQ(get(httpd_.url("/breakers")).header("Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(get(httpd_.url("/breakers?auto")).header("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(get(httpd_.url("/breakers?format=json")).header("Content-Type"), "application/json");
}

TEST_F(StatusPage, SaysWhichMethodsItTakes) {
    start("CircuitBreaker On\n", balancer_of(member_line(app_)));
    const Response response = get(httpd_.url("/breakers"), {.method = "PUT"});
    EXPECT_EQ(response.status, 405);
    const std::string allowed = "," + response.header("Allow") + ",";  // in any order
    for (const char* method : {"GET", "HEAD", "POST"})
        EXPECT_TRUE(has(allowed, "," + std::string(method) + ",")) << allowed;
}

TEST_F(StatusPage, ShowsOneMemberWhereItIsAskedForById) {
    Backend second("second");
    start("CircuitBreaker On\n", balancer_of(member_line(app_) + member_line(second)));
    const std::string id = id_of(httpd_, second);
    ASSERT_EQ(id.size(), 16U);
    for (const std::string& query : {"?member=" + id, "?auto&member=" + id, "?format=json&member=" + id}) {
        const std::string body = page(httpd_, "/breakers" + query);
        EXPECT_TRUE(has(body, second.member())) << query;
        EXPECT_FALSE(has(body, app_.member())) << query;
    }
    const std::string html = page(httpd_, "/breakers?member=" + id) + page(httpd_, "/breakers?refresh=0&member=" + id);
    for (const char* link : {"?refresh=0", "?refresh=5", "?format=json", "?auto"})
        EXPECT_TRUE(has(html, std::string("<a href=\"") + link + "&amp;member=" + id + "\">")) << link << html;
    const Response none = get(httpd_.url("/breakers?member=0123456789abcdef"));
    EXPECT_EQ(none.status, 404);
    EXPECT_EQ(none.header("Cache-Control"), "no-store");
    EXPECT_EQ(get(httpd_.url("/breakers?member=")).status, 404);
}

TEST_F(StatusPage, OfVeryManyMembersHasTheDetailsOfTheClosedOnesElsewhere) {
    std::string members;
    for (int i = 0; i < 102; ++i)  // no name is the beginning of another: to mod_proxy it would be the same worker
        members += "    BalancerMember " + app_.member() + "/" + std::to_string(i) + (i > 0 ? "x status=+D\n" : "x\n");
    start(quick_policy + std::string(long_open), balancer_of(members));
    app_.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd_.url("/app/x")), "503 503 503");
    EXPECT_TRUE(wait_until([&] { return has(page(httpd_), "1 out:"); }, patience, "the breaker to open"));
    const std::string html = page(httpd_);
    EXPECT_EQ(count_of(html, "<tr class=\"member"), 102U);
    EXPECT_EQ(count_of(html, "<details id=\"d-"), 1U) << "of the one that is out";
    const std::string other = first_match(html, "<a class=\"quiet\" href=\"(\\?member=[0-9a-f]{16})\">");
    EXPECT_EQ(count_of(page(httpd_, "/breakers" + other), "<details id=\"d-"), 1U);
    // Numbers in names by their value.
    EXPECT_LT(html.find(app_.member() + "/9x</span>"), html.find(app_.member() + "/10x</span>"));
}

TEST_F(StatusPage, RefreshesByItselfUnlessToldNotTo) {
    start("CircuitBreaker On\n", plain_worker(app_));
    const auto refresh = [&](const char* query) {
        return first_match(page(httpd_, "/breakers" + std::string(query)),
                           "http-equiv=\"refresh\" content=\"([^\"]*)\"");
    };
    EXPECT_EQ(refresh(""), "5");
    EXPECT_EQ(refresh("?refresh=30"), "30");
    EXPECT_EQ(refresh("?refresh=99999999999999999999"), "3600");
    EXPECT_EQ(refresh("?refresh=0"), "");
    EXPECT_EQ(refresh("?refresh=-1"), "");
    EXPECT_EQ(refresh("?refresh=%22%3E"), "");
}

TEST_F(StatusPage, SaysSoWhereNobodyHasABreaker) {
    start("", plain_worker(app_));
    EXPECT_TRUE(has(page(httpd_), "No member has a circuit breaker"));
    EXPECT_EQ(page(httpd_, "/breakers?auto"), "");
    const Json json = parsed(page(httpd_, "/breakers?format=json"));
    EXPECT_EQ(json_array_size(json_object_get(json.get(), "members")), 0U);
}

TEST_F(StatusPage, ShowsAMemberThatIsNoLongerConfiguredUntilItsLastChildHasGone) {
    start(counting_policy, plain_worker(app_));
    app_.hold();
    auto busy = get_later(httpd_.url("/app/"));
    ASSERT_TRUE(app_.wait_for_concurrent(1));
    httpd_.set_config(std::string(counting_policy) + status_location);
    ASSERT_TRUE(httpd_.graceful());
    // Its old child may still take a connection.
    EXPECT_TRUE(wait_until([&] { return has(page(httpd_), "No longer configured"); }, patience, "a new child's page"));
    const json_t* const member = only_member();
    EXPECT_EQ(text_at(member, "member"), app_.member());
    EXPECT_TRUE(json_is_null(json_object_get(member, "mode")));
    app_.release();
    EXPECT_EQ(busy.get().status, 200);
}

}  // namespace
}  // namespace cb::test
