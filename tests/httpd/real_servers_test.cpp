// Backends as they are in the field: PHP-FPM, Tomcat over AJP, an HTTP/2 server, a TLS server with the wrong
// certificate.
#include "real_servers.hpp"
#include "pages.hpp"

#include "outcomes.hpp"

namespace cb::test {
namespace {

// run_tests.sh knows these words: only such tests may be skipped.
#define SKIP_WITHOUT(is_installed, program) \
    if (!(is_installed)) GTEST_SKIP() << "The program is not installed: " << (program)

/// The breaker of one member, through one URL.
struct Course {
    const Httpd& httpd;
    std::string member;
    std::string url;

    [[nodiscard]] BreakerBlock block() const { return BreakerPage(httpd).member(member); }
    [[nodiscard]] std::string state() const { return block().at("State"); }

    /// It answers well, until `breaking`: three failures of that class trip the breaker, and the next request is
    /// refused, seen by nobody: `asked` counts what reaches the server. Then `mend`, and one probe closes it.
    void run(const std::function<void()>& breaking, const std::function<void()>& mend,
             const std::function<std::size_t()>& asked, const std::string& outcome) const {
        SCOPED_TRACE(member + " " + outcome);
        EXPECT_EQ(get(url, {.timeout = 30s}).status, 200) << httpd.describe();
        EXPECT_EQ(state(), "closed");
        const std::uint64_t before = block().number("Outcome-" + outcome);
        breaking();
        for (int i = 0; i < 3; ++i)
            EXPECT_NE(get(url).status, 200);
        EXPECT_EQ(block().number("Outcome-" + outcome), before + 3) << httpd.describe();
        EXPECT_EQ(state(), "open");
        const std::size_t asked_before = asked();
        const Response refusal = get(url);
        EXPECT_EQ(refusal.status, 503);
        EXPECT_TRUE(refusal.headers.has("Retry-After"));
        EXPECT_EQ(asked(), asked_before);
        mend();
        const auto is_open_time_over = [&] { return block().number("Next-probe-ms") == 0; };
        ASSERT_TRUE(wait_until(is_open_time_over, patience, "the open time to be over"));
        EXPECT_EQ(get(url, {.timeout = 30s}).status, 200) << httpd.describe();
        EXPECT_EQ(state(), "closed");
        EXPECT_EQ(block().number("In-flight") + block().number("Leases"), 0U);
    }
};

/// Backoff would make the second trip of a test a slow one.
const std::string steady_policy = std::string(quick_policy) + "CircuitBreakerOpenTime 1500ms factor=1 jitter=0\n";

HttpdOptions real_site(const std::string& proxied, const std::vector<std::string>& modules) {
    HttpdOptions options = site(Mpm::event, steady_policy, proxied);
    options.add_modules = modules;
    return options;
}

TEST(RealServers, PhpFpmOverAUnixDomainSocket) {
    SKIP_WITHOUT(!PhpFpm::program().empty(), "php-fpm");
    PhpFpm php;
    php.start();
    Httpd httpd(
        real_site("ProxyPass /app/ \"" + php.member() + php.folder().string() + "/\" timeout=2\n", {"proxy_fcgi"}));
    httpd.start();
    const Course course{httpd, BreakerPage(httpd).members().at(0).at("Member"), httpd.url("/app/x.php")};
    const auto good = [&] { php.set_mode("200"); };
    const auto hits = [&] { return php.hits(); };
    course.run([&] { php.set_mode("503"); }, good, hits, "5xx");
    course.run([&] { php.set_mode("die"); }, good, hits, "reset");
    course.run([&] { php.set_mode("sleep"); }, good, hits, "timeout");
    course.run([&] { php.stop(); }, [&] { php.start(); }, hits, "connect");
}

TEST(RealServers, PhpFpmAsAMemberOfABalancer) {
    SKIP_WITHOUT(!PhpFpm::program().empty(), "php-fpm");
    PhpFpm one;
    PhpFpm two;
    one.start();
    two.start();
    const std::string members = "    BalancerMember \"" + one.member() + "\" timeout=5\n    BalancerMember \"" +
                                two.member() + "\" timeout=5 status=+H\n";
    HttpdOptions options = real_site("<Proxy balancer://app>\n" + members + "</Proxy>\nProxyPass /app/ balancer://app" +
                                         one.folder().string() + "/\n",
                                     {"proxy_fcgi"});
    Httpd httpd(options);
    httpd.start();
    const std::string url = httpd.url("/app/x.php");
    EXPECT_EQ(get(url).status, 200) << httpd.describe();
    EXPECT_EQ(one.hits(), 1U);
    one.stop();
    // Nothing was sent to the first one, so nobody loses anything: the spare runs the first one's script.
    EXPECT_EQ(statuses(5, url), "200 200 200 200 200");
    const Course first{httpd, one.member(), url};
    EXPECT_EQ(first.block().number("Outcome-connect"), 3U + first.block().number("Probes"));
    EXPECT_EQ(first.state(), "open");
    one.start();
    ASSERT_TRUE(wait_until([&] { return first.block().number("Next-probe-ms") == 0; }, patience, "the open time"));
    EXPECT_EQ(get(url).status, 200);
    EXPECT_EQ(first.state(), "closed");
}

TEST(RealServers, TomcatOverAjpWithASecretAndWithAndWithoutPing) {
    SKIP_WITHOUT(Tomcat::is_installed(), "tomcat10");
    Tomcat tomcat;
    tomcat.start();
    const std::string without = "ajp://" + tomcat.address();
    const std::string with = "ajp://localhost:" + std::to_string(tomcat.port());
    // A JVM is slow when it has just started: a page of its own takes that time away, unwatched.
    const std::string warm = without + "/warm.jsp";
    const std::string parameters = std::string(" secret=") + Tomcat::secret;
    Httpd httpd(real_site("ProxyPass /without " + without + parameters + " timeout=2\nProxyPass /with " + with +
                              parameters + " timeout=2 ping=1\nProxyPass /warm " + warm + parameters +
                              " timeout=30\n<Proxy \"" + warm + "\">\n    CircuitBreaker Off\n</Proxy>\n",
                          {"proxy_ajp"}));
    httpd.start();
    const auto start = [&] {
        tomcat.set_mode("200");
        if (!tomcat.running()) tomcat.start();
        EXPECT_TRUE(wait_until([&] { return get(httpd.url("/warm"), {.timeout = 30s}).status == 200; }, 60s,
                               "Tomcat to be warm"))
            << tomcat.console();
    };
    start();
    const auto good = [&] { tomcat.set_mode("200"); };
    const auto hits = [&] { return tomcat.hits(); };
    for (const Course& course :
         {Course{httpd, without, httpd.url("/without/x.jsp")}, Course{httpd, with, httpd.url("/with/x.jsp")}}) {
        course.run([&] { tomcat.set_mode("503"); }, good, hits, "5xx");
        course.run([&] { tomcat.set_mode("sleep"); }, good, hits, "timeout");
        course.run([&] { tomcat.stop(); }, start, hits, "connect");
        // The first request takes the whole JVM with it.
        tomcat.set_mode("die");
        EXPECT_NE(get(course.url).status, 200);
        EXPECT_EQ(course.block().number("Outcome-reset"), 1U) << httpd.describe();
        ASSERT_TRUE(tomcat.wait_for_end());
        start();
    }
}

TEST(RealServers, NghttpdOverHttp2) {
    SKIP_WITHOUT(Nghttpd::is_installed(), "nghttpd");
    Nghttpd nghttpd;
    nghttpd.start();
    const std::string member = "h2c://" + nghttpd.address();
    Httpd httpd(real_site("ProxyPass /app " + member + " timeout=1\n", {"proxy_http2"}));
    httpd.start();
    const Course course{httpd, member, httpd.url("/app/x")};
    const auto asked = [&] { return nghttpd.console().size(); };
    course.run([&] { nghttpd.stop(); }, [&] { nghttpd.start(); }, asked, "connect");
    course.run([&] { nghttpd.signal(SIGSTOP); }, [&] { nghttpd.signal(SIGCONT); }, asked, "timeout");
    EXPECT_EQ(get(httpd.url("/app/none")).status, 404);
    EXPECT_EQ(course.block().number("Outcome-4xx"), 1U);
    EXPECT_EQ(course.state(), "closed");
}

TEST(RealServers, TlsWithACertificateOfAnUnknownAuthority) {
    SKIP_WITHOUT(TlsServer::is_installed(), "openssl");
    TlsServer server;
    server.start();
    const std::string member = "https://" + server.address();
    Httpd httpd(real_site("SSLProxyEngine On\nSSLProxyVerify require\nSSLProxyCACertificateFile " +
                              server.certificate_file("known") + "\nProxyPass /app " + member +
                              " timeout=5 disablereuse=on\n",
                          {"socache_shmcb", "ssl"}));
    httpd.start();
    const Course course{httpd, member, httpd.url("/app/")};
    const auto restart_with = [&](const char* certificate) {
        server.stop();
        server.use(certificate);
        server.start();
    };
    // It tells of a failed handshake a moment after httpd knows.
    const auto asked = [&] {
        const auto failed = [&] { return count_of(server.console(), " alert "); };
        EXPECT_TRUE(wait_until([&] { return failed() >= 3; }, patience, "three failed handshakes"));
        return failed();
    };
    course.run([&] { restart_with("unknown"); }, [&] { restart_with("known"); }, asked, "connect");
}

}  // namespace
}  // namespace cb::test
