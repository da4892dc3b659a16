// Our parts of balancer-manager and of mod_status; mod_info.
#include <gtest/gtest.h>

#include <string>

#include "pages.hpp"

namespace cb::test {
namespace {

constexpr const char* observing = "CircuitBreaker Observe\n";  // changes no status of a member

/// Without what differs from one start to the next: nonces, and the order in which the lbmethods are listed.
std::string comparable(const std::string& text) {
    const std::string stable = replaced(text, "<select name='b_lbm'[^/]*/select>", "METHODS");
    return replaced(stable, "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "NONCE");
}

/// `text` without what stands from `begin` up to `end`; that is put into `part`.
std::string without(const std::string& text, const std::string& begin, const std::string& end, std::string& part) {
    const std::size_t from = text.find(begin);
    const std::size_t to = text.find(end, from);
    EXPECT_NE(from, std::string::npos) << text;
    if (from == std::string::npos || to == std::string::npos) return text;
    part = text.substr(from, to - from);
    return text.substr(0, from) + text.substr(to);
}

class ManagerPage : public testing::Test {
  protected:
    void start(const std::string& policy, const std::string& members, const std::string& more = status_location) {
        httpd_.set_config(policy + more + manager_location + balancer_of(members));
        httpd_.start();
    }
    [[nodiscard]] Response manager(const std::string& query = "", const std::string& method = "GET") const {
        return get(httpd_.url("/balancer-manager" + query),
                   {.method = method, .headers = {{"Referer", httpd_.url("/balancer-manager")}}});
    }
    [[nodiscard]] std::string nonce() const { return first_match(manager().body, "nonce=([-0-9a-f]{36})"); }

    Backend app_{"app"};
    Httpd httpd_;
};

TEST_F(ManagerPage, HasOurSectionAndIsOtherwiseTheSameByteForByte) {
    Backend second("second");
    start(observing, member_line(app_, "route=a") + member_line(second));
    const std::string edit = "&nonce=" + nonce();
    const std::string worker = "http%3A%2F%2F127.0.0.1%3A" + std::to_string(app_.port());
    // The page itself, of a balancer, of a member, and its XML.
    const std::string queries[] = {"", "?b=app" + edit, "?b=app&w=" + worker + edit, "?xml=1"};
    std::vector<Response> ours;
    for (const std::string& query : queries)
        ours.push_back(manager(query));
    const Response head = manager("", "HEAD");
    httpd_.options().circuitbreaker = false;
    httpd_.set_config("<IfModule circuitbreaker_module>\n</IfModule>\n" + std::string(manager_location) +
                      balancer_of(member_line(app_, "route=a") + member_line(second)));
    ASSERT_TRUE(httpd_.restart()) << httpd_.describe();
    const std::string other_edit = "&nonce=" + nonce();
    ASSERT_EQ(ours.size(), 4U);
    for (std::size_t i = 0; i < ours.size(); ++i) {
        const bool is_xml = i == 3;
        const Response native = manager(replaced(queries[i], "&nonce=.*", other_edit));
        EXPECT_EQ(native.status, 200);
        EXPECT_EQ(ours[i].status, 200);
        EXPECT_TRUE(ours[i].complete()) << ours[i].error;
        std::string part;
        const std::string rest = is_xml ? without(ours[i].body, "  <cb:breakers", "</httpd:manager>", part)
                                        : without(ours[i].body, "<h2>Circuit breakers", "</body>", part);
        EXPECT_EQ(comparable(rest), comparable(native.body)) << queries[i];
        EXPECT_EQ(ours[i].header("Content-Type"), native.header("Content-Type"));
        EXPECT_EQ(count_of(part, app_.member()), 1U) << part;
        EXPECT_EQ(count_of(part, second.member()), 1U) << part;
    }
    EXPECT_EQ(head.status, 200);
    EXPECT_TRUE(head.body.empty());
}

TEST_F(ManagerPage, ShowsStateRatesNextProbeProbesAndRefusals) {
    start(quick_policy + std::string(long_open), member_line(app_));
    open_breaker(httpd_, app_, 2);
    std::string part;
    (void)without(manager().body, "<h2>Circuit breakers", "</body>", part);
    EXPECT_TRUE(has(part, "<td>balancer://app</td><td>" + app_.member() + "</td><td><b>open</b></td>")) << part;
    EXPECT_TRUE(has(part, "<td>3 failures in a row</td><td>may be probed in ")) << part;
    EXPECT_TRUE(has(part, "<td>0 of 1</td><td>2</td></tr>")) << "probes in flight, refusals\n" << part;
    const std::string xml = manager("?xml=1").body;
    EXPECT_TRUE(has(xml, "<cb:state>open</cb:state>")) << xml;
    EXPECT_TRUE(has(xml, "<cb:refused>2</cb:refused>")) << xml;
    EXPECT_NE(first_match(xml, "<cb:next_probe_ms>([1-9][0-9]*)</cb:next_probe_ms>"), "") << xml;
}

TEST_F(ManagerPage, ShowsFailuresAndSlowCallsEachInAColumn) {
    start(counting_policy + std::string("CircuitBreakerSlowCall 60s rate=50\n"), member_line(app_));
    app_.answer_next(1, Reply::status(503));
    EXPECT_EQ(statuses(2, httpd_.url("/app/x")), "503 200");
    ASSERT_TRUE(wait_for_no_permits(httpd_, app_));
    const std::string html = manager().body;
    EXPECT_TRUE(has(html, "<td>1 of 2 (50%, opens at 100%)</td><td>0 of 2 (0%, opens at 50%)</td>")) << html;
}

TEST_F(ManagerPage, KeepsItsFormsItsNonceAndItsRefererCheck) {
    start(quick_policy, member_line(app_));
    const std::string page = manager("?b=app&nonce=" + nonce()).body;
    EXPECT_TRUE(has(page, "Edit balancer settings for balancer://app")) << page;
    const auto change = [&](const std::string& with_nonce, const std::string& referer) {
        return get(httpd_.url("/balancer-manager"),
                   {.method = "POST",
                    .headers = {{"Content-Type", "application/x-www-form-urlencoded"}, {"Referer", referer}},
                    .body = "b=app&w=http%3A%2F%2F127.0.0.1%3A" + std::to_string(app_.port()) +
                            "&w_status_D=1&nonce=" + with_nonce});
    };
    const std::string own = httpd_.url("/balancer-manager");
    EXPECT_FALSE(has(change("00000000-0000-0000-0000-000000000000", own).body, "Dis "));
    EXPECT_FALSE(has(change(nonce(), "http://evil.example/").body, "Dis "));
    EXPECT_EQ(get(httpd_.url("/app/")).backend(), "app");
    const Response changed = change(nonce(), own);
    EXPECT_TRUE(has(changed.body, "Dis ")) << changed.body;
    EXPECT_TRUE(has(changed.body, "<h2>Circuit breakers</h2>")) << "on the answer to a POST too";
    EXPECT_EQ(get(httpd_.url("/app/")).status, 503);
}

TEST_F(ManagerPage, HasButtonsOnlyWhereAStatusPageTakesActions) {
    const auto form_of = [&](const std::string& locations) {
        httpd_.set_config(quick_policy + locations + manager_location + balancer_of(member_line(app_)));
        EXPECT_TRUE(httpd_.running() ? httpd_.restart() : httpd_.try_start()) << httpd_.describe();
        return first_match(manager().body, "<form method=\"post\" action=\"([^\"]*)\">");
    };
    EXPECT_EQ(form_of(status_location), "");
    EXPECT_EQ(form_of("<Location /x>\n    CircuitBreakerControl On\n</Location>\n"), "");
    EXPECT_EQ(form_of("<LocationMatch \"^/breakers\">\n    SetHandler circuitbreaker-status\n    CircuitBreakerControl "
                      "On\n</LocationMatch>\n"),
              "")
        << "a pattern is no place to post to";
    for (const char* pattern :
         {"<LocationMatch \"/breakers\">", "<Location \"/break*\">", "<Location ~ \"/breakers\">"}) {
        const std::string end = has(pattern, "Match") ? "</LocationMatch>\n" : "</Location>\n";
        EXPECT_EQ(form_of(pattern +
                          std::string("\n    SetHandler circuitbreaker-status\n    CircuitBreakerControl On\n") + end),
                  "")
            << pattern;
    }
    EXPECT_EQ(form_of(control_location), "/breakers");
    EXPECT_EQ(form_of(std::string(status_location) + "<Location \"/a b<&\">\n    SetHandler CircuitBreaker-Status\n    "
                                                     "CircuitBreakerControl On\n</Location>\n"),
              "/a%20b%3c&#38;");
    EXPECT_EQ(form_of(std::string(control_location) + "<Location />\n    CircuitBreakerControl Off\n</Location>\n"), "")
        << "the last section that says it wins";
    EXPECT_EQ(form_of("<Location />\n    CircuitBreakerControl On\n</Location>\n" + std::string(status_location)),
              "/breakers");
    EXPECT_EQ(
        form_of(std::string(control_location) + "<Location /breakers>\n    CircuitBreakerControl Off\n</Location>\n"),
        "");
    EXPECT_EQ(form_of("<VirtualHost *:1>\n    ServerName other\n" + std::string(control_location) + "</VirtualHost>\n"),
              "")
        << "of another virtual host";
}

TEST_F(ManagerPage, ButtonsActAndLeadBack) {
    start(quick_policy, member_line(app_), control_location);
    const std::string html = manager().body;
    const std::string fields = "token=" + token_on(html) + "&action=force-open&member=" +
                               first_match(html, "name=\"member\" value=\"([0-9a-f]{16})\"");
    const Response answer = post(httpd_, fields, {{"Referer", httpd_.url("/balancer-manager")}});
    EXPECT_EQ(answer.status, 303) << httpd_.describe();
    EXPECT_EQ(first_match(answer.header("Location"), "^(/balancer-manager)#m-"), "/balancer-manager");
    EXPECT_TRUE(has(manager().body, "<b>forced-open</b>"));
    EXPECT_TRUE(has(manager().body, "Back to automatic"));
    EXPECT_EQ(get(httpd_.url("/app/")).status, 503);
}

TEST_F(ManagerPage, OfOthersIsLeftAlone) {
    // What ends otherwise, or is no page of balancer-manager's at all.
    start(quick_policy, member_line(app_), "ProxyPass /x !\n" + std::string(status_location));
    httpd_.put_document("x/page.html", "<html><body>balancer-manager</body></html>\n");
    EXPECT_EQ(get(httpd_.url("/x/page.html")).body, "<html><body>balancer-manager</body></html>\n");
    const Response put = manager("", "PUT");
    EXPECT_EQ(put.status, 405);
    EXPECT_FALSE(has(put.body, "Circuit breakers"));
}

TEST(ServerStatus, HasASectionAndLines) {
    Backend app("app");
    Httpd httpd(
        site(Mpm::event, quick_policy + std::string(long_open),
             "<Location /server-status>\n    SetHandler server-status\n</Location>\nProxyPass /server-status !\n" +
                 balancer_of(member_line(app))));
    httpd.start();
    open_breaker(httpd, app, 1);
    const std::string html = page(httpd, "/server-status");
    EXPECT_TRUE(has(html, "<td>balancer://app</td><td>" + app.member() + "</td><td><b>open</b></td>")) << html;
    EXPECT_LT(html.find("<h2>Circuit breakers</h2>"), html.find("</body>"));
    EXPECT_EQ(count_of(html, "</body>"), 1U);
    const std::string plain = page(httpd, "/server-status?notable");
    EXPECT_TRUE(has(plain, "<dt>" + app.member() + " of balancer://app</dt><dd>open for ")) << plain;
    const std::string lines = page(httpd, "/server-status?auto");
    EXPECT_TRUE(has(lines, "\nCircuitBreaker Members: 1\nCircuitBreaker Out: 1\nCircuitBreaker[0]Member: " +
                               app.member() + "\nCircuitBreaker[0]Balancer: balancer://app\n"))
        << lines;
    EXPECT_TRUE(has(lines, "\nCircuitBreaker[0]State: open\n")) << lines;
    EXPECT_TRUE(has(lines, "\nCircuitBreaker[0]Refused: 1\n")) << lines;
    EXPECT_NE(first_match(lines, "CircuitBreaker\\[0\\]NextProbeMs: ([1-9][0-9]*)\n"), "") << lines;
}

TEST(ServerStatus, IsNotNeeded) {
    Backend app("app");
    HttpdOptions options = site(Mpm::event, quick_policy, plain_worker(app));
    options.leave_out_modules = {"status"};
    Httpd httpd(options);
    httpd.start();
    EXPECT_EQ(get(httpd.url("/app/")).status, 200);
    EXPECT_EQ(BreakerPage(httpd).members().size(), 1U);
}

TEST(ServerInfo, ListsOurDirectives) {
    Backend app("app");
    HttpdOptions options = site(Mpm::event, "",
                                "<Location /server-info>\n    SetHandler server-info\n</Location>\nProxyPass "
                                "/server-info !\n<Proxy balancer://app>\n    CircuitBreaker On\n    "
                                "CircuitBreakerWindow 17s\n" +
                                    member_line(app) + "</Proxy>\nProxyPass /app balancer://app\n");
    options.add_modules = {"info"};
    Httpd httpd(options);
    httpd.start();
    const std::string info = page(httpd, "/server-info?mod_circuitbreaker.c");
    for (const char* directive : {"CircuitBreaker", "CircuitBreakerWindow", "CircuitBreakerControl"})
        EXPECT_TRUE(has(info, std::string(directive) + " - <i>")) << info;
    EXPECT_TRUE(has(info, "CircuitBreakerWindow <i>17s</i>")) << info;
}

}  // namespace
}  // namespace cb::test
