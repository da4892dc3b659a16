// What a failed call must not leave behind for the next one: its environment, and the chain of filters of others.
#include <algorithm>

#include "protocols.hpp"

namespace cb::test {
namespace {

constexpr const char* failover_all = "CircuitBreakerFailover All budget=100\n";

TEST(PutBack, TheEnvironmentOfTheFirstMemberIsNotTheSecondOnes) {
    WireBackend bad("bad", fcgi());
    WireBackend good("good", fcgi());
    bad.answer(WireReply::status(503));
    HttpdOptions options = wire_site(
        std::string(counting_policy) + failover_all +
            "<Location /app>\n"
            "    ProxyFCGISetEnvIf \"reqenv('BALANCER_WORKER_ROUTE') == 'a'\" POOL secret-of-a\n"
            "    ProxyFCGISetEnvIf true TRAIL \"%{reqenv:TRAIL}+once\"\n"
            "</Location>\n",
        "<Proxy balancer://app>\n    BalancerMember " + bad.member() + " route=a loadfactor=100\n    BalancerMember " +
            good.member() + " route=b\n</Proxy>\nProxyPass /app balancer://app\n");
    Httpd httpd(options);
    httpd.start();
    ASSERT_EQ(get(httpd.url("/app/x")).backend(), "good");
    ASSERT_EQ(bad.requests(), 1U);
    EXPECT_NE(bad.last_request().find("secret-of-a"), std::string::npos) << "or this test proves nothing";
    EXPECT_EQ(good.last_request().find("secret-of-a"), std::string::npos);
    EXPECT_NE(good.last_request().find("+once"), std::string::npos);
    EXPECT_EQ(good.last_request().find("+once+once"), std::string::npos);
}

// mod_proxy_fcgi counts the bytes of a chunked body before it connects, and notes their number in the request.
TEST(PutBack, ABodyOverFastCgiComesWholeAndOnce) {
    WireBackend bad("bad", fcgi());
    WireBackend good("good", fcgi());
    const std::string members = "<Proxy balancer://app>\n    BalancerMember " + bad.member() +
                                " loadfactor=100\n    BalancerMember " + good.member() +
                                "\n</Proxy>\nProxyPass /app balancer://app\n";
    const std::string body(5000, '~');
    const RequestOptions requests[] = {{.method = "PUT", .headers = {{"Transfer-Encoding", "chunked"}}, .body = body},
                                       {.method = "PUT", .body = body}};
    for (const std::string policy : {"CircuitBreakerFailover All budget=100\n", "CircuitBreakerFailover Off\n",
                                     "CircuitBreakerFailover All budget=100\nCircuitBreakerBodyLimit 100\n"}) {
        SCOPED_TRACE(policy);
        Httpd httpd(wire_site(counting_policy + policy, members));
        httpd.start();
        const auto expect_whole = [&](const char* what) {
            for (const RequestOptions& request : requests) {
                SCOPED_TRACE(what);
                const unsigned before = good.requests();
                EXPECT_EQ(get(httpd.url("/app/x"), request).backend(), "good");
                EXPECT_EQ(good.requests(), before + 1);
                const std::string seen = good.last_request();
                EXPECT_EQ(std::ranges::count(seen, '~'), 5000);
                EXPECT_NE(seen.find("CONTENT_LENGTH5000"), std::string::npos);
            }
        };
        bad.refuse();
        expect_whole("not connected");
        bad.accept_again();
        bad.answer(WireReply::status(503));
        if (policy == "CircuitBreakerFailover All budget=100\n") expect_whole("it fails");
    }
}

/// Chains of httpd's own filters, each with the lines that set it up.
std::vector<std::string> chains() {
    std::vector<std::string> all;
    for (const char* filters : {"INFLATE", "INFLATE;SUBSTITUTE;DEFLATE", "SUBSTITUTE", "Sed", "CHARSETLITE;SUBSTITUTE",
                                "RATE_LIMIT", "CONTENT_LENGTH;DEFLATE", "INFLATE;proxy-html", "INFLATE;BROTLI_COMPRESS",
                                "tag5;INFLATE", "INFLATE;tag10", "tag20;SUBSTITUTE", "tag30", "tag0;INFLATE"}) {
        all.push_back("SetOutputFilter " + std::string(filters) + "\n");
    }
    all.push_back("AddOutputFilterByType INFLATE;SUBSTITUTE text/plain\n");
    all.push_back("AddOutputFilterByType DEFLATE text/html text/plain\n");
    all.push_back("AddOutputFilterByType tag5 text/plain\n");
    return all;
}

// For any chain, what comes of a failover is byte for byte what the second member alone gives.
TEST(PutBack, NothingOfAFailingAnswerPassesAFilterOfOthers) {
    Backend bad("bad");
    Backend good("good");
    const std::string zipped = run_command({.argv = {"sh", "-c", "printf 'a word in a page' | gzip -nc"}}).output;
    std::string config;
    for (const char* type : {"0", "5", "10", "20", "30"}) {
        config += std::string("ExtFilterDefine tag") + type + " mode=output ftype=" + type + " cmd=\"/bin/sed s/^/" +
                  type + "/\"\n";
    }
    const std::vector<std::string> all = chains();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string lines = all[i] +
                                  "Substitute s/word/place/\nOutputSed s/page/book/\n"
                                  "CharsetSourceEnc ISO-8859-1\nCharsetDefault UTF-8\nSetEnv rate-limit 4096\n"
                                  "ProxyHTMLEnable Off\nProxyHTMLURLMap /a /b\n";
        for (const char* place : {"/app", "/well"})
            config += "<Location " + (place + ("/" + std::to_string(i))) + "/>\n" + lines + "</Location>\n";
    }
    HttpdOptions options = site(Mpm::event, std::string(counting_policy) + failover_all + config,
                                balancer_of(member_line(bad, "loadfactor=100") + member_line(good)) +
                                    "ProxyPass /well " + good.member() + "\n");
    options.add_modules = {"filter",     "deflate", "substitute", "sed",        "xml2enc",
                           "proxy_html", "brotli",  "ratelimit",  "ext_filter", "charset_lite"};
    Httpd httpd(options);
    httpd.start();
    const Reply good_answers[] = {
        Reply::ok(zipped).header("Content-Type", "text/plain").header("Content-Encoding", "gzip"),
        Reply::ok("a word in a page").header("Content-Type", "text/plain")};
    const Reply bad_answers[] = {
        Reply::status(503, zipped).header("Content-Type", "text/plain").header("Content-Encoding", "gzip"),
        Reply::status(503, "a word in an error").header("Content-Type", "text/html"), Reply::status(503),
        Reply::status(503, std::string(50'000, 'x')).header("Content-Type", "text/plain").in_chunks(), Reply::reset()};
    const RequestOptions request{.headers = {{"Accept-Encoding", "gzip, br"}}};
    for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(all[i]);
        for (const Reply& good_answer : good_answers) {
            good.answer(good_answer);
            const Response alone = get(httpd.url("/well/" + std::to_string(i) + "/x"), request);
            for (const Reply& bad_answer : bad_answers) {
                bad.answer(bad_answer);
                const unsigned before = good.requests();
                const Response response = get(httpd.url("/app/" + std::to_string(i) + "/x"), request);
                EXPECT_EQ(good.requests(), before + 1);
                EXPECT_EQ(response.backend(), alone.backend());
                EXPECT_EQ(response.status, alone.status);
                EXPECT_EQ(response.body, alone.body);
                EXPECT_EQ(response.header("Content-Encoding"), alone.header("Content-Encoding"));
                EXPECT_EQ(response.header("Content-Type"), alone.header("Content-Type"));
                EXPECT_EQ(response.header("Content-Length"), alone.header("Content-Length"));
            }
        }
    }
    EXPECT_GE(bad.requests(), all.size());
}

}  // namespace
}  // namespace cb::test
