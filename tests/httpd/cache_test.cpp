// mod_cache in front of the breaker: what it answers by itself is no call, and a refusal may be answered by a stale
// copy.
#include <algorithm>

#include "pages.hpp"

namespace cb::test {
namespace {

/// One failure trips.
const std::string touchy_policy = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n";

/// Asks the cache to ask the backend.
const RequestOptions revalidating{.headers = {{"Cache-Control", "max-age=0"}}};

class Cache : public TrafficTest {
  protected:
    /// A cache that all children share, in front of everything (as it is by default) or in its place among the
    /// handlers.
    static HttpdOptions cached(const std::string& policy, const std::string& proxied, bool is_quick,
                               const std::string& more = "CacheStaleOnError On\n") {
        HttpdOptions options = site(
            policy + "CacheSocache shmcb:cache(1024000)\nCacheEnable socache /app\nCacheHeader On\nCacheQuickHandler " +
                (is_quick ? "On\n" : "Off\n") + more,
            proxied);
        options.add_modules = {"socache_shmcb", "cache", "cache_socache"};
        return options;
    }
    /// Answers that may be kept and are known again; a 304 to who has it.
    static Reply cacheable(const Request& request) {
        Reply reply = request.headers.has("If-None-Match") ? Reply::status(304) : Reply::ok("page " + request.path);
        return reply.header("Cache-Control", "max-age=1000").header("ETag", "\"one\"");
    }
    static std::uint64_t calls(const Httpd& httpd, const Backend& app) {
        return BreakerPage(httpd).member(app).number("Calls");
    }
    static bool is_hit(const Response& response) {
        return response.status == 200 && response.header("X-Cache").starts_with("HIT");
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, Cache, any_mpm, mpm_name);

TEST_P(Cache, AnswersWithoutACallAndWithoutAProbe) {
    for (const bool is_quick : {true, false}) {
        SCOPED_TRACE(is_quick ? "CacheQuickHandler On" : "CacheQuickHandler Off");
        Backend app("app");
        Httpd httpd(cached(touchy_policy, plain_worker(app), is_quick));
        httpd.start();
        app.answer(cacheable);
        EXPECT_FALSE(is_hit(get(httpd.url("/app/x"))));
        EXPECT_EQ(calls(httpd, app), 1U);
        for (int i = 0; i < 5; ++i)
            EXPECT_TRUE(is_hit(get(httpd.url("/app/x"))));
        EXPECT_EQ(app.requests(), 1U);
        EXPECT_EQ(calls(httpd, app), 1U);

        app.answer_next(1, Reply::status(502));
        EXPECT_EQ(statuses(1, httpd.url("/app/bad")), "502");
        EXPECT_TRUE(is_hit(get(httpd.url("/app/x")))) << "though the breaker is open";
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
        EXPECT_TRUE(is_hit(get(httpd.url("/app/x"))));
        BreakerBlock block = BreakerPage(httpd).member(app);
        EXPECT_EQ(block.at("State"), "open") << "nobody has asked for the member";
        EXPECT_EQ(block.number("Probes"), 0U);
        EXPECT_EQ(block.number("Refused"), 0U);
        EXPECT_EQ(block.number("Calls"), 2U);

        // To ask whether a copy is still good is a call, and as good a probe as any.
        const Response again = get(httpd.url("/app/x"), revalidating);
        EXPECT_EQ(again.status, 200);
        EXPECT_EQ(again.body, "page /x");
        EXPECT_TRUE(app.last_request()->headers.has("If-None-Match"));
        block = BreakerPage(httpd).member(app);
        EXPECT_EQ(block.at("State"), "closed");
        EXPECT_EQ(block.number("Outcome-3xx"), 1U);
        EXPECT_EQ(block.number("Probes"), 1U);
    }
}

TEST_P(Cache, ServesItsStaleCopyWhereTheBreakerRefuses) {
    for (const bool is_quick : {true, false}) {
        SCOPED_TRACE(is_quick ? "CacheQuickHandler On" : "CacheQuickHandler Off");
        Backend one("one");
        Backend two("two");
        for (const std::string& proxied : {plain_worker(one), balancer_of(member_line(one) + member_line(two))}) {
            SCOPED_TRACE(proxied);
            const bool has_two = proxied.find("balancer") != std::string::npos;
            Httpd httpd(cached(touchy_policy + long_open, proxied, is_quick));
            httpd.start();
            one.answer(cacheable);
            two.answer(cacheable);
            EXPECT_EQ(get(httpd.url("/app/x")).body, "page /x");
            one.answer(Reply::status(502));
            two.answer(Reply::status(502));
            EXPECT_EQ(statuses(3, httpd.url("/app/bad")), has_two ? "502 502 503" : "502 503 503");
            const unsigned asked = one.requests() + two.requests();
            const std::uint64_t called = calls(httpd, one);
            const std::uint64_t refused = BreakerPage(httpd).member(one).number("Refused");

            const Response stale = get(httpd.url("/app/x"), revalidating);
            EXPECT_EQ(stale.status, 200);
            EXPECT_EQ(stale.body, "page /x");
            EXPECT_NE(stale.header("Warning").find("111"), std::string::npos) << "revalidation failed";
            EXPECT_TRUE(httpd.wait_for_access_line("status=200 method=GET path=/app/x ", 2));
            const std::vector<std::string> lines = httpd.access_lines_with("path=/app/x");
            EXPECT_EQ(std::ranges::count_if(lines, [](const auto& line) { return has(line, "rejected=- "); }), 1);
            EXPECT_EQ(one.requests() + two.requests(), asked);
            EXPECT_EQ(calls(httpd, one), called);
            EXPECT_EQ(BreakerPage(httpd).member(one).number("Refused"), refused + 1);
            EXPECT_EQ(get(httpd.url("/app/new")).status, 503) << "of which there is no copy";
            one.forget();
            two.forget();
        }
    }
}

TEST_P(Cache, KeepsNoRefusal) {
    for (const bool is_quick : {true, false}) {
        SCOPED_TRACE(is_quick ? "CacheQuickHandler On" : "CacheQuickHandler Off");
        Backend app("app");
        Httpd httpd(cached(touchy_policy + long_open, control_location + plain_worker(app), is_quick,
                           "CacheStoreExpired On\nCacheDefaultExpire 1000\nCacheMinExpire 1000\n"
                           "CacheIgnoreNoLastMod On\nErrorDocument 503 /sorry.html\n"));
        httpd.put_document("sorry.html", "come back later");
        httpd.start();
        app.answer_next(1, Reply::status(502));
        EXPECT_EQ(statuses(1, httpd.url("/app/bad")), "502");
        app.answer(cacheable);
        for (int i = 0; i < 3; ++i) {
            const Response refused = get(httpd.url("/app/x"));
            EXPECT_EQ(refused.status, 503);
            EXPECT_EQ(refused.body, "come back later");
            EXPECT_TRUE(refused.headers.has("Retry-After")) << "not the header of a copy either";
        }
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Refused"), 3U);
        EXPECT_EQ(post(httpd, form(httpd, app, "reset")).status, 303);
        const Response well = get(httpd.url("/app/x"));
        EXPECT_EQ(well.status, 200);
        EXPECT_EQ(well.body, "page /x");
        EXPECT_TRUE(is_hit(get(httpd.url("/app/x"))));
        EXPECT_EQ(app.requests_for("/x"), 1U);
    }
}

}  // namespace
}  // namespace cb::test
