// Unix domain sockets that a request names for a worker without one of its own (SetHandler "proxy:unix:PATH|URL"): each
// is a member with a breaker.
#include "protocols.hpp"

namespace cb::test {
namespace {

/// One failed call opens a breaker for the rest of the test.
const std::string touchy_sockets =
    std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\nCircuitBreakerFailover Off\n" + long_open;

struct Way {
    std::string scheme;
    bool by_rewriting = false;
};

void PrintTo(const Way& way, std::ostream* out) {
    *out << way.scheme;
}

/// Two pools behind one worker: /a/... goes to one socket, /b/... to the other.
class Sockets : public testing::TestWithParam<Way> {
  protected:
    Sockets() {
        if (GetParam().scheme == "http") return;
        const Dialect dialect = GetParam().scheme == "scgi" ? scgi() : fcgi();
        wire_a_ = std::make_unique<WireBackend>("a", dialect, true);
        wire_b_ = std::make_unique<WireBackend>("b", dialect, true);
    }
    [[nodiscard]] static std::string url() { return GetParam().scheme + "://localhost"; }
    [[nodiscard]] static std::string path_of(const WireBackend& backend) {
        const std::string member = backend.member();
        return member.substr(5, member.find('|') - 5);
    }
    [[nodiscard]] std::string path_a() const { return wire_a_ ? path_of(*wire_a_) : a_.unix_socket().string(); }
    [[nodiscard]] std::string path_b() const { return wire_b_ ? path_of(*wire_b_) : b_.unix_socket().string(); }
    [[nodiscard]] std::string name_a() const { return "unix:" + path_a() + "|" + url(); }
    [[nodiscard]] std::string name_b() const { return "unix:" + path_b() + "|" + url(); }
    void refuse_a() { wire_a_ ? wire_a_->refuse() : a_.refuse(); }
    void accept_a() { wire_a_ ? wire_a_->accept_again() : a_.accept_again(); }

    /// Requests below /where go to that socket.
    [[nodiscard]] static std::string place(const std::string& where, const std::string& path) {
        if (GetParam().by_rewriting) {
            return "RewriteRule \"^/" + where + "(/.*)\" \"unix:" + path + "|" + url() + "$1\" [P]\n";
        }
        return "<Location /" + where + ">\n    SetHandler \"proxy:unix:" + path + "|" + url() + "/\"\n</Location>\n";
    }
    [[nodiscard]] HttpdOptions options(const std::string& policy) const {
        HttpdOptions options = site(Mpm::event, policy,
                                    "RewriteEngine On\n<Proxy \"" + url() + "\" enablereuse=on>\n</Proxy>\n" +
                                        place("a", path_a()) + place("b", path_b()) +
                                        "LogFormat \"%U %{CIRCUIT_BREAKER_MEMBER}e\" member\n"
                                        "CustomLog member.log member\nCircuitBreakerEventLog events.json\n");
        options.add_modules = {"proxy_fcgi", "proxy_scgi", "rewrite"};
        return options;
    }
    void start(const std::string& policy) {
        httpd_ = std::make_unique<Httpd>(options(policy));
        httpd_->start();
    }
    [[nodiscard]] int ask(const std::string& where) const { return get(httpd_->url("/" + where + "/x")).status; }
    [[nodiscard]] BreakerBlock member(const std::string& name) const { return BreakerPage(*httpd_).member(name); }
    [[nodiscard]] bool wait_for_text(const std::string& file, const std::string& text) const {
        return wait_until([&] { return read_file(httpd_->root() / file).find(text) != std::string::npos; }, patience,
                          text);
    }

    Backend a_{"a", OnUnixSocket{}};
    Backend b_{"b", OnUnixSocket{}};
    std::unique_ptr<WireBackend> wire_a_;
    std::unique_ptr<WireBackend> wire_b_;
    std::unique_ptr<Httpd> httpd_;
};
INSTANTIATE_TEST_SUITE_P(Ways, Sockets, testing::Values(Way{"fcgi"}, Way{"scgi"}, Way{"http"}, Way{"http", true}),
                         [](const auto& info) {
                             return info.param.scheme + (info.param.by_rewriting ? "_rewritten" : "");
                         });

TEST_P(Sockets, OfOneWorkerHaveABreakerEach) {
    start(touchy_sockets);
    EXPECT_EQ(ask("b"), 200);
    refuse_a();
    EXPECT_EQ(ask("a"), 503);
    EXPECT_EQ(member(name_a()).at("State"), "open");
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(ask("b"), 200);
    EXPECT_EQ(member(name_b()).at("State"), "closed");
    EXPECT_EQ(member(name_b()).at("Calls"), "21");
    accept_a();
    EXPECT_TRUE(get(httpd_->url("/a/x")).headers.has("Retry-After")) << "refused";
    EXPECT_EQ(member(url()).at("Calls"), "0") << "nobody has asked the worker's own host";
    EXPECT_EQ(BreakerPage(*httpd_).members().size(), 3U);
}

TEST_P(Sockets, AreCalledTheSameInLogsPagesAndEnvironment) {
    start(touchy_sockets);
    refuse_a();
    EXPECT_EQ(ask("a"), 503);
    EXPECT_EQ(httpd_->error_lines_with("circuit breaker: member " + name_a() + ": closed -> open").size(), 1U);
    EXPECT_TRUE(wait_for_text("member.log", "/a/x " + name_a() + "\n"));
    EXPECT_TRUE(wait_for_text("events.json", "\"member\":\"" + name_a() + "\""));
    EXPECT_NE(get(httpd_->url("/breakers?format=json")).body.find("\"member\":\"" + name_a() + "\""),
              std::string::npos);
}

TEST_P(Sockets, AreKnownToEveryChildWhicheverMakesThePage) {
    HttpdOptions many = few_threads_each(options(touchy_sockets), 4);
    many.mpm = Mpm::prefork;
    httpd_ = std::make_unique<Httpd>(many);
    httpd_->start();
    EXPECT_EQ(ask("b"), 200);
    for (int i = 0; i < 30; ++i)
        ASSERT_EQ(member(name_b()).at("Mode"), "On");
}

TEST_P(Sockets, StayOpenOverARestartThoughNobodyAsksMeanwhile) {
    start(touchy_sockets);
    refuse_a();
    EXPECT_EQ(ask("a"), 503);
    for (const bool is_graceful : {true, false}) {
        const std::vector<pid_t> children = httpd_->children();
        ASSERT_TRUE(is_graceful ? httpd_->graceful() : httpd_->restart());
        ASSERT_TRUE(httpd_->wait_for_end_of(children));
        EXPECT_EQ(member(name_a()).at("State"), "open");
        EXPECT_EQ(member(name_a()).at("Calls"), "1");
        EXPECT_TRUE(get(httpd_->url("/a/x")).headers.has("Retry-After"));
    }
    EXPECT_EQ(ask("b"), 200);
}

TEST_P(Sockets, AreWatchedInObserveToo) {
    start(touchy_sockets + "CircuitBreaker Observe\n");
    refuse_a();
    EXPECT_EQ(ask("a"), 503);
    EXPECT_EQ(member(name_a()).at("State"), "open");
    EXPECT_EQ(member(name_a()).at("Mode"), "Observe");
}

TEST(RequestedSockets, BeyondSixtyFourHaveNoBreakerAndOneWarningSaysSo) {
    const TempDir folder("cb-sockets");
    Backend last("last", OnUnixSocket{folder.path() / "last"});
    const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
    HttpdOptions options = site(Mpm::worker, touchy_sockets,
                                "RewriteEngine On\n<Proxy \"http://localhost\" enablereuse=on>\n</Proxy>\n"
                                "RewriteRule \"^/to/(.*)\" \"unix:" +
                                    path("$1") + "|http://localhost/\" [P]\n");
    options.add_modules = {"rewrite"};
    Httpd httpd(few_threads_each(options, 3));
    httpd.start();
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(get(httpd.url("/to/" + std::to_string(i))).status, 503);
    // Neither refused nor judged by another one's breaker.
    for (int i = 0; i < 30; ++i) {
        EXPECT_EQ(get(httpd.url("/to/last")).backend(), "last");
        EXPECT_FALSE(get(httpd.url("/to/none" + std::to_string(i))).headers.has("Retry-After"));
    }
    EXPECT_EQ(httpd.error_lines_with("have no breaker").size(), 1U);
    const BreakerPage page(httpd);
    EXPECT_EQ(page.members().size(), 65U);
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(page.member("unix:" + path(std::to_string(i)) + "|http://localhost").at("State"), "open") << i;
    EXPECT_EQ(page.member("http://localhost").number("Calls"), 0U);
}

/// `/a/...` goes to that socket, and `url` names the worker.
std::string handler(const std::string& path, const std::string& url) {
    return "<Location /a>\n    SetHandler \"proxy:unix:" + path + "|" + url + "\"\n</Location>\n";
}

TEST(RequestedSockets, WhosePathIsTooLongHaveNoBreaker) {
    Httpd httpd(site(Mpm::event, touchy_sockets,
                     "<Proxy \"http://localhost\" enablereuse=on>\n</Proxy>\n" +
                         handler("/tmp/" + std::string(95, 'x'), "http://localhost/")));
    httpd.start();
    for (int i = 0; i < 10; ++i)
        EXPECT_FALSE(get(httpd.url("/a/x")).headers.has("Retry-After"));
    EXPECT_EQ(httpd.error_lines_with("have no breaker").size(), 1U);
    EXPECT_EQ(BreakerPage(httpd).member("http://localhost").number("Calls"), 0U);
}

TEST(RequestedSockets, HaveABreakerForEachWorkerThatTheyAreNamedFor) {
    Backend app("app", OnUnixSocket{});
    const std::string path = app.unix_socket().string();
    Httpd httpd(
        site(Mpm::event, touchy_sockets,
             "<Proxy \"http://one\" enablereuse=on>\n</Proxy>\n<Proxy \"http://two\" enablereuse=on>\n</Proxy>\n" +
                 handler(path, "http://one/") + "<Location /b>\n    SetHandler \"proxy:unix:" + path +
                 "|http://two/\"\n</Location>\n"));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/a/x")).backend(), "app");
    EXPECT_EQ(get(httpd.url("/b/x")).backend(), "app");
    const BreakerPage page(httpd);
    EXPECT_EQ(page.member("unix:" + path + "|http://one").number("Calls"), 1U);
    EXPECT_EQ(page.member("unix:" + path + "|http://two").number("Calls"), 1U);
}

TEST(RequestedSockets, AreNotAskedByAFallback) {
    Backend app("app", OnUnixSocket{});
    Backend other("other");
    Httpd httpd(site(Mpm::event, touchy_sockets,
                     "<Proxy balancer://spare>\n" + member_line(other) +
                         "</Proxy>\n<Proxy \"http://localhost\" enablereuse=on>\n    CircuitBreakerFallback "
                         "balancer://spare\n</Proxy>\n" +
                         handler(app.unix_socket().string(), "http://localhost/")));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/a/x")).backend(), "app");
    app.refuse();
    EXPECT_EQ(get(httpd.url("/a/x")).status, 503);
    app.accept_again();
    EXPECT_EQ(get(httpd.url("/a/x")).backend(), "other");
    EXPECT_EQ(BreakerPage(httpd).member(other).number("Calls"), 1U);
}

TEST(RequestedSockets, AreNotAskedByABalancer) {
    // mod_proxy_balancer makes the URL anew, without the socket.
    Backend app("app", OnUnixSocket{});
    Backend one("one");
    Httpd httpd(site(Mpm::event, touchy_sockets,
                     balancer_of(member_line(one)) + handler(app.unix_socket().string(), "balancer://app/")));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/a/x")).backend(), "one");
    EXPECT_EQ(BreakerPage(httpd).member(one).number("Calls"), 1U);
    EXPECT_EQ(BreakerPage(httpd).members().size(), 1U);
}

}  // namespace
}  // namespace cb::test
