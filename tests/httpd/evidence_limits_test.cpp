// httpd's own troubles, and names that clients choose: nothing of either counts against a member.
#include <fstream>

#include "evidence.hpp"
#include "real_servers.hpp"

namespace cb::test {
namespace {

/// The number that the next descriptor of that process would get.
unsigned next_descriptor(pid_t process) {
    const std::filesystem::path folder = "/proc/" + std::to_string(process) + "/fd";
    unsigned number = 0;
    while (std::filesystem::exists(std::filesystem::symlink_status(folder / std::to_string(number))))
        ++number;
    return number;
}

unsigned sockets_of(pid_t process) {
    unsigned count = 0;
    std::error_code gone;  // a descriptor, while we look
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd"))
        count += std::filesystem::read_symlink(entry, gone).string().starts_with("socket:") ? 1U : 0U;
    return count;
}

/// Sets the limit on a child's descriptors, as the user it runs as: nobody else may everywhere, not even root.
void limit_descriptors(pid_t child, const std::string& soft_limit) {
    std::ifstream status("/proc/" + std::to_string(child) + "/status");
    std::string user;
    std::string group;
    for (std::string word; status >> word;) {
        if (word == "Uid:") status >> user;
        if (word == "Gid:") status >> group;
    }
    const CommandResult result =
        run_command({.argv = {"setpriv", "--reuid", user, "--regid", group, "--clear-groups", "prlimit", "--pid",
                              std::to_string(child), "--nofile=" + soft_limit + ":"}});
    ASSERT_EQ(result.exit_status, 0) << result.output;
}

/// Children can open no more descriptors while this lives.
class NoMoreDescriptors {
  public:
    explicit NoMoreDescriptors(const Httpd& httpd) : children_(httpd.children()) {
        for (const pid_t child : children_) {
            // The listener and one client: connections of before are gone, and give no descriptor back any more.
            EXPECT_TRUE(wait_until([&] { return sockets_of(child) == 2; }, patience, "connections of before to go"));
            limit_descriptors(child, std::to_string(next_descriptor(child)));
        }
    }
    ~NoMoreDescriptors() {
        for (const pid_t child : children_)
            limit_descriptors(child, "1024");
    }

  private:
    const std::vector<pid_t> children_;
};

TEST(Evidence, WhatHttpdLacksItselfIsLocal) {
    Backend app("app");
    Backend on_socket("on_socket", OnUnixSocket{});
    WireBackend fcgi_app("fcgi", fcgi());
    HttpdOptions options = site(Mpm::event, touchy,
                                plain_worker(app, "disablereuse=on") + "ProxyPass /socket \"" + on_socket.member() +
                                    "\" disablereuse=on\nProxyPass /fcgi " + fcgi_app.member() +
                                    "\n<Location /app/spooled>\n    SetEnv proxy-sendcl 1\n</Location>\n");
    options.add_modules = {"proxy_fcgi"};
    options.children = 1;
    options.mpm_directives = {"ServerLimit 1", "MaxRequestWorkers " + std::to_string(options.threads)};
    Httpd httpd(options);
    httpd.start();
    // The client's connection is accepted before.
    const auto expect_local = [&](const std::string& request, const std::string& member, const std::string& expected) {
        SCOPED_TRACE(request.substr(0, 20));
        RawClient client(httpd.port());
        ASSERT_TRUE(client.send("GET /seat HTTP/1.1\r\nHost: me\r\n\r\n"));
        ASSERT_NE(client.read_until("\r\n\r\n"), "");
        {
            const NoMoreDescriptors limit(httpd);
            ASSERT_TRUE(client.send(request));
            EXPECT_NE(client.read_until("\r\n\r\n").find(" 50"), std::string::npos);
        }
        EXPECT_TRUE(wait_for_charge(httpd, member, expected));
    };
    const std::string rest = " HTTP/1.1\r\nHost: me\r\n\r\n";
    expect_local("GET /app/x" + rest, app.member(), "closed Calls=1 Outcome-local=1");
    expect_local("GET /socket/x" + rest, on_socket.member(), "closed Calls=1 Outcome-local=1");
    expect_local("GET /fcgi/x" + rest, fcgi_app.member(), "closed Calls=1 Outcome-local=1");
    // No temporary file for a body that has to be written to one before the member is asked.
    std::string chunks;
    for (int i = 0; i < 10; ++i)
        chunks += "2710\r\n" + std::string(10'000, 'x') + "\r\n";
    expect_local("PUT /app/spooled HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n",
                 app.member(), "closed Calls=2 Outcome-local=2");
}

TEST(Evidence, ASocketThatHttpdMayNotUseIsNoEvidence) {
    Backend app("app", OnUnixSocket{});
    Httpd httpd(site(Mpm::event, touchy, "ProxyPass /app \"" + app.member() + "\"\n"));
    httpd.start();
    std::filesystem::permissions(app.unix_socket(), std::filesystem::perms::none);
    EXPECT_EQ(get(httpd.url("/app/x")).status, 503);
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-local=1"));
}

class TlsNames : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Schemes, TlsNames, testing::Values("https", "h2"),
                         [](const auto& info) { return info.param; });

TEST_P(TlsNames, ThatTheClientChoosesAreNoEvidence) {
    TlsServer server;  // its certificate is for 127.0.0.1
    server.start();
    const std::string member = GetParam() + "://" + server.address();
    HttpdOptions options =
        site(Mpm::event, touchy,
             "SSLProxyEngine On\nSSLProxyVerify require\nSSLProxyCheckPeerName On\nSSLProxyCACertificateFile " +
                 server.certificate_file("known") +
                 "\nProxyPreserveHost On\n<VirtualHost *>\n    ServerName me\n"
                 "ServerAlias also.me *.me\n</VirtualHost>\nProxyPass /app " +
                 member + " timeout=5 disablereuse=on\n");
    options.add_modules = {"socache_shmcb", "ssl", "proxy_http2"};
    Httpd httpd(options);
    httpd.start();
    const auto ask = [&](const std::string& host) {
        RawClient client(httpd.port());
        EXPECT_TRUE(client.send("GET /app/ HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"));
        return client.read_to_end();
    };
    for (const char* host : {"evil.example", "any.me", "evil.example:443"})
        EXPECT_EQ(ask(host).substr(9, 1), "5");
    EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=3 Outcome-client=3"));
    // A name that the administrator has written is one that the member has to know.
    EXPECT_EQ(ask("also.me").substr(9, 1), "5");
    EXPECT_TRUE(wait_for_charge(httpd, member, "open Calls=4 Outcome-connect=1 Outcome-client=3 Verdict-failure=1"));
}

/// Names of the virtual host, and a member that is asked under the one of the client.
HttpdOptions named_site(const std::string& member, const std::string& lines = "") {
    HttpdOptions options = site(Mpm::event, touchy,
                                "SSLProxyEngine On\nSSLProxyCheckPeerName Off\nSSLProxyCheckPeerCN Off\n"
                                "ProxyPreserveHost On\n<VirtualHost *>\n    ServerName me\n</VirtualHost>\n" +
                                    lines + "ProxyPass /app " + member + " timeout=5 disablereuse=on\n");
    options.add_modules = {"socache_shmcb", "ssl", "proxy_wstunnel"};
    return options;
}

TEST(Evidence, ARefusalUnderANameOfTheClientsIsNoneEvenAfterTheHandshake) {
    TlsServer server;
    server.ask_for_certificates();
    server.start();
    const std::string member = "https://" + server.address();
    Httpd httpd(named_site(member));
    httpd.start();
    const auto ask = [&](const std::string& host) {
        RawClient client(httpd.port());
        EXPECT_TRUE(client.send("GET /app/ HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"));
        return client.read_to_end();
    };
    EXPECT_EQ(ask("evil.example").substr(9, 1), "5");
    EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-client=1"));
    EXPECT_EQ(ask("me").substr(9, 1), "5");
    EXPECT_TRUE(wait_for_charge(httpd, member, "open Calls=2 Outcome-reset=1 Outcome-client=1 Verdict-failure=1"));
}

TEST(Evidence, AHandshakeThatFailsForATunnelIsAConnectionThatFails) {
    TlsServer server;
    server.start();
    const std::string member = "wss://" + server.address();
    Httpd httpd(named_site(member,
                           "ProxyWebsocketFallbackToProxyHttp Off\nSSLProxyVerify require\n"
                           "SSLProxyCACertificateFile " +
                               server.certificate_file("unknown") + "\n"));
    httpd.start();
    const auto ask = [&](const std::string& host) {
        RawClient client(httpd.port());
        EXPECT_TRUE(client.send("GET /app/ HTTP/1.1\r\nHost: " + host +
                                "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
        return client.read_until("\r\n");
    };
    EXPECT_EQ(ask("evil.example").substr(9, 1), "5");
    EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-client=1"));
    EXPECT_EQ(ask("me").substr(9, 1), "5");
    EXPECT_TRUE(wait_for_charge(httpd, member, "open Calls=2 Outcome-connect=1 Outcome-client=1 Verdict-failure=1"));
}

TEST(Evidence, ASourceAddressThatHttpdHasNotIsNoEvidence) {
    // mod_proxy logs it as an error, and goes on without.
    Backend app("app");
    Httpd httpd(site(Mpm::event, touchy, "ProxySourceAddress 192.0.2.1\n" + plain_worker(app)));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/app/x")).status, 200);
    EXPECT_TRUE(httpd.wait_for_error_line("AH00956"));
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-2xx=1"));
}

/// A member with which no connection comes about, and one that is well.
class NoConnection : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Schemes, NoConnection, testing::Values("https", "h2", "http"),
                         [](const auto& info) { return info.param; });

TEST_P(NoConnection, CostsNoClientAnythingWhateverTheReasonIs) {
    Backend no_tls("no_tls");
    no_tls.answer(Reply::garbage());
    Backend well("well");
    const bool is_lookup = GetParam() == "http";
    const std::string member =
        is_lookup ? "http://no-such-host.invalid" : GetParam() + "://127.0.0.1:" + std::to_string(no_tls.port());
    HttpdOptions options = site(Mpm::event, touchy + "SSLProxyEngine On\n",
                                balancer_of("BalancerMember " + member + " loadfactor=100\n" + member_line(well)));
    options.add_modules = {"socache_shmcb", "ssl", "proxy_http2"};
    Httpd httpd(options);
    httpd.start();
    const Response first = get(httpd.url("/app/x"), {.method = "POST", .body = is_lookup ? "a body" : ""});
    EXPECT_EQ(first.backend(), "well");
    EXPECT_TRUE(wait_for_charge(httpd, member, "open Calls=1 Outcome-connect=1 Verdict-failure=1"));
    EXPECT_EQ(answerers(3, httpd.url("/app/x")), "well well well");
}

}  // namespace
}  // namespace cb::test
