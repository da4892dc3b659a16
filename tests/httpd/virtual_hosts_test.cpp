// What stands in a virtual host and has no effect there, as the member that its requests go to is the main server's:
// said at start, with where it would have one.
#include <gtest/gtest.h>

#include <string>

#include "config_check.hpp"
#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

constexpr const char* balancer =
    "<Proxy balancer://app>\n    BalancerMember http://127.0.0.1:9001\n</Proxy>\n<Proxy balancer://apple>\n    "
    "BalancerMember http://127.0.0.1:9002\n</Proxy>\n";

std::string vhost(const std::string& lines) {
    return "<VirtualHost *:81>\n" + lines + "</VirtualHost>\n";
}

TEST(VirtualHost, ThatSwitchesABreakerOnOrOffForABalancerOfTheMainServerIsToldThatItDoesNot) {
    ConfigCheck check(balancer);
    const std::vector<std::string> advice{"no effect on balancer://app of the main server",
                                          "<Proxy \"balancer://app\">", "outside all virtual hosts"};
    for (const std::string use :
         {"ProxyPass / balancer://app/\n", "ProxyPassMatch \"^/(.*)$\" \"BALANCER://App/$1\"\n",
          "<Location /x>\n    ProxyPass balancer://app\n</Location>\n",
          "<Location /x>\n    <If \"true\">\n        SetHandler \"proxy:balancer://app\"\n    </If>\n</Location>\n"}) {
        check.expect_warned(vhost(use + "CircuitBreaker On\n"), "CircuitBreaker On", advice);
        check.expect_warned("CircuitBreaker On\n" + vhost(use + "CircuitBreaker Off\n"), "CircuitBreaker Off", advice);
        check.expect_warned("<Proxy balancer://app>\n    CircuitBreaker On\n</Proxy>\n" +
                                vhost("<IfModule proxy_module>\nCircuitBreaker Observe\n</IfModule>\n" + use),
                            "CircuitBreaker Observe", advice);
    }
    const CommandResult result = check.check(vhost("ProxyPass / balancer://app/\nCircuitBreaker On\n"));
    EXPECT_EQ(result.output.find("balancer://apple"), std::string::npos) << "not of what it does not use";
}

TEST(VirtualHost, IsToldOfEachDirectiveWithFileAndLine) {
    ConfigCheck check(balancer);
    const std::string lines = vhost(
        "ProxyPass / balancer://app/\nCircuitBreaker On\nCircuitBreakerWindow 20s\n"
        "CircuitBreakerVerdict failure 500\n");
    const std::string output = check.check("CircuitBreaker On\nCircuitBreakerWindow 10s\n" + lines).output;
    EXPECT_EQ(ConfigCheck::warnings_in(output), 1U) << output;
    EXPECT_EQ(output.find("\"CircuitBreaker On\""), std::string::npos) << "that holds there as well\n" << output;
    for (const std::string line : {"CircuitBreakerWindow 20s", "CircuitBreakerVerdict failure 500"}) {
        EXPECT_NE(
            output.find("\"" + line + "\" on line " + std::to_string(check.line_of(line)) + " of " + check.file()),
            std::string::npos)
            << output;
    }
    EXPECT_NE(output.find("a <Location> of the virtual host is a place for CircuitBreakerVerdict, too"),
              std::string::npos)
        << output;
    const std::string other =
        check.check("CircuitBreaker On\n" + vhost("ProxyPass / balancer://app/\nCircuitBreakerWindow 20s\n")).output;
    EXPECT_EQ(other.find("<Location>"), std::string::npos) << other;
}

TEST(VirtualHost, WithoutMembersOfItsOwnIsToldWhateverWayItsRequestsTake) {
    ConfigCheck check(balancer);
    check.expect_warned(vhost("CircuitBreaker On\n"), "CircuitBreaker On",
                        {"no effect on balancer://app, balancer://apple of the main server"});
    check.expect_warned("CircuitBreaker On\nProxyPass / balancer://app/\n" + vhost("CircuitBreaker Off\n"),
                        "CircuitBreaker Off", {"no effect on"});
}

TEST(VirtualHost, WhoseWorkerHasTheNameOfTheMainServersIsToldThatItIsThatOne) {
    // mod_proxy finds the main server's worker first.
    ConfigCheck check("ProxyPass /main http://127.0.0.1:9005\n");
    check.expect_warned(vhost("ProxyPass / http://127.0.0.1:9005\nCircuitBreaker On\n"), "CircuitBreaker On",
                        {"no effect on http://127.0.0.1:9005 of the main server", "<Proxy \"http://127.0.0.1:9005\">"});
    const std::string section = "<Proxy \"http://127.0.0.1:9005\" enablereuse=on>";
    check.expect_warned(vhost(section + "\nCircuitBreaker On\n</Proxy>\n"), section,
                        {"applies to no member", "the main server", "outside all virtual hosts"});
    check.expect_accepted(
        vhost("ProxyPassInherit Off\nBalancerInherit Off\nProxyPass / http://127.0.0.1:9005\n"
              "CircuitBreaker On\n"));
}

TEST(VirtualHost, WhoseDirectivesHaveAnEffectIsNotWarned) {
    ConfigCheck check(balancer);
    const std::string own = "ProxyPass / http://127.0.0.1:9005/\n";
    check.expect_accepted(vhost(own + "CircuitBreaker On\n"));
    check.expect_accepted("CircuitBreaker On\n" + vhost(own + "CircuitBreaker Off\n"));
    check.expect_accepted("CircuitBreaker On\n" + vhost("ProxyPass / balancer://app/\nCircuitBreaker on\n"));
    check.expect_accepted("CircuitBreaker On\n" + vhost("ProxyPass / balancer://app/\n"));
    check.expect_accepted(vhost("ProxyPass / balancer://app/\nCircuitBreaker Off\nCircuitBreakerWindow 20s\n"));
    check.expect_accepted(
        vhost("<Location /x>\n    CircuitBreakerVerdict failure 500\n</Location>\n"
              "ProxyPass / balancer://app/\n"));
    check.expect_accepted(
        vhost("<Proxy balancer://own>\n    BalancerMember http://127.0.0.1:9003\n</Proxy>\n"
              "ProxyPass / balancer://own/\nCircuitBreaker On\n"));
    check.expect_accepted(vhost("ProxyPassInherit Off\nBalancerInherit Off\nCircuitBreaker On\n"));
    ConfigCheck nothing;
    nothing.expect_accepted(vhost("CircuitBreaker On\n"));
    nothing.expect_accepted(vhost("ProxyPass / http://127.0.0.1:9005/\nCircuitBreaker On\n") +
                            "<VirtualHost *:82>\nCircuitBreaker On\n</VirtualHost>\n");
}

TEST(VirtualHost, WhoseBalancerHasTheNameOfTheMainServersIsToldThatItIsThatOne) {
    // mod_proxy puts the main server's members in the place of its own.
    ConfigCheck check(balancer);
    check.expect_warned(vhost("<Proxy balancer://app>\n    BalancerMember http://127.0.0.1:9009\n</Proxy>\n"
                              "ProxyPass / balancer://app/\nCircuitBreaker On\n"),
                        "CircuitBreaker On", {"no effect on balancer://app of the main server"});
}

TEST(VirtualHost, WithMembersOfItsOwnIsToldOfThoseOfTheMainServerThatItNames) {
    ConfigCheck check(balancer);
    check.expect_warned(vhost("ProxyPass /own http://127.0.0.1:9005\nProxyPass / balancer://app/\nCircuitBreaker On\n"),
                        "CircuitBreaker On", {"no effect on balancer://app of the main server"});
}

TEST(VirtualHost, ThatOnlyMentionsAMemberOfTheMainServerIsNotTold) {
    ConfigCheck check(
        "ProxyPass /main http://127.0.0.1:9005/\n<Proxy balancer://app>\n    BalancerMember "
        "http://127.0.0.1:9001\n</Proxy>\n",
        {.add_modules = {"rewrite"}});
    const std::string own = "ProxyPass / http://127.0.0.1:9006/\nCircuitBreaker On\n";
    // The same backend, as a member of a balancer of its own.
    check.expect_accepted(
        vhost("<Proxy balancer://own>\n    BalancerMember http://127.0.0.1:9005/\n    BalancerMember "
              "http://127.0.0.1:9001\n</Proxy>\nProxyPass / balancer://own/\nCircuitBreaker On\n"));
    check.expect_accepted(
        vhost("ProxyPassReverse / http://127.0.0.1:9005/\nProxyPassReverse / balancer://app/\n" + own));
    check.expect_accepted(vhost("Redirect /b http://127.0.0.1:9005/x\n" + own));
    check.expect_accepted(
        vhost("RewriteEngine On\nRewriteCond %{HTTP_REFERER} ^http://127.0.0.1:9005/\nRewriteRule ^/c "
              "http://127.0.0.1:9005/ [R=301,L]\n" +
              own));
    // Of two workers the one with the longer name is asked.
    check.expect_accepted(vhost("ProxyPass / http://127.0.0.1:9005/longer\nCircuitBreaker On\n"));
    // Its requests go elsewhere, though no directive declares that.
    check.expect_accepted(
        vhost("<Location /x>\n    SetHandler \"proxy:fcgi://127.0.0.1:9000/\"\n</Location>\nCircuitBreaker Off\n"));
}

TEST(VirtualHost, IsToldInWhateverWayItSendsRequestsToAMemberOfTheMainServer) {
    ConfigCheck check("ProxyPass /main http://127.0.0.1:9005/\n", {.add_modules = {"rewrite", "mime"}});
    for (const std::string use : {"RewriteRule ^/(.*) http://127.0.0.1:9005/$1 [QSA,P,L]\n",
                                  "RewriteRule ^(.*) \"HTTP://127.0.0.1:9005$1\" [proxy]\n",
                                  "<Location /x>\n    ProxyPass http://127.0.0.1:9005/ retry=0\n</Location>\n",
                                  "<FilesMatch php>\n    SetHandler \"proxy:http://127.0.0.1:9005/\"\n</FilesMatch>\n",
                                  "AddHandler \"proxy:unix:/run/a.sock|http://127.0.0.1:9005/\" .php\n"}) {
        check.expect_warned(
            vhost("ProxyPass /own http://127.0.0.1:9006/\nRewriteEngine On\n" + use + "CircuitBreaker On\n"),
            "CircuitBreaker On", {"no effect on http://127.0.0.1:9005/ of the main server"});
    }
}

TEST(VirtualHost, SectionForAMemberOfTheMainServerIsToldWhereItWouldApply) {
    ConfigCheck check(balancer);
    for (const std::string name :
         {"<Proxy \"balancer://app\">", "<Proxy \"http://127.0.0.1:9001\">", "<Proxy \"*\">"}) {
        check.expect_warned(vhost(name + "\n    CircuitBreaker On\n</Proxy>\nProxyPass / balancer://app/\n"), name,
                            {"applies to no member", "the main server", "outside all virtual hosts"});
    }
}

TEST(VirtualHost, HasTheMainServersWorkerOfTheSameNameAndItsBreaker) {
    Backend app("app");
    Httpd httpd(site(Mpm::event, quick_policy + std::string(long_open),
                     plain_worker(app) + "<VirtualHost *>\nServerName a.example\nProxyPass /own " + app.member() +
                         "\nCircuitBreakerConsecutiveFailures 1\n</VirtualHost>\n"));
    httpd.start();
    EXPECT_EQ(BreakerPage(httpd).members().size(), 1U) << "the other one is never asked";
    app.answer(Reply::status(503));
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(get(httpd.url("/own/x"), {.headers = {{"Host", "a.example"}}}).status, 503);
    EXPECT_EQ(app.requests(), 3U) << "by the main server's policy";
}

}  // namespace
}  // namespace cb::test
