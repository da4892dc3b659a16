// The LogFormat that circuitbreaker.conf offers: what the breakers did to each request, also where an ErrorDocument
// takes the answer's place.
#include <algorithm>
#include <sstream>

#include "runbook.hpp"

namespace cb::test {
namespace {

std::string shipped_log_format() {
    std::istringstream lines(read_file(project() / "conf/circuitbreaker.conf"));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("LogFormat ")) return line + "\n";
    }
    return "there is none\n";
}

class AccessLog : public TrafficTest {
  protected:
    /// The shipped format in breakers.log, and in last.log with the values of the last request in place of the first's,
    /// where httpd has made several of the client's.
    static std::string logs() {
        std::string last = shipped_log_format();
        for (std::size_t at = 0; (at = last.find("%<{", at)) != std::string::npos;)
            last.replace(at, 3, "%{");
        last.replace(last.rfind(" circuitbreaker"), std::string::npos, " last\n");
        return shipped_log_format() + "CustomLog breakers.log circuitbreaker\n" + last + "CustomLog last.log last\n";
    }
    /// What the log says of the breakers in its last line about that path.
    static std::string fields(const Httpd& httpd, const std::string& path, const std::string& log = "breakers.log") {
        std::string line;
        const auto is_there = [&] {
            std::istringstream lines(read_file(httpd.root() / log));
            for (std::string each; std::getline(lines, each);) {
                if (each.find("\"GET " + path + " HTTP/") != std::string::npos) line = each;
            }
            return !line.empty();
        };
        EXPECT_TRUE(wait_until(is_there, patience, path + " in the log"));
        const std::size_t at = line.find(" member=");
        return at != std::string::npos ? line.substr(at + 1) : line;
    }
    static void expect_in_both(const Httpd& httpd, const std::string& path, const std::string& expected) {
        EXPECT_EQ(fields(httpd, path), expected) << path;
        EXPECT_EQ(fields(httpd, path, "last.log"), expected) << path;
    }
    /// The log has these lines and no others, in any order: several children write it.
    static void expect_lines(const Httpd& httpd, const std::string& log, const std::vector<std::string>& expected) {
        const auto sorted_lines = [&] {
            std::vector<std::string> lines;
            std::istringstream text(read_file(httpd.root() / log));
            for (std::string line; std::getline(text, line);)
                lines.push_back(line);
            std::ranges::sort(lines);
            return lines;
        };
        EXPECT_TRUE(wait_until([&] { return sorted_lines().size() >= expected.size(); }, patience, "lines in " + log));
        EXPECT_EQ(sorted_lines(), expected) << log;
    }
    static std::string a_call(const Backend& backend, const std::string& verdict, const std::string& rejected = "-",
                              const std::string& fallback = "-") {
        return "member=" + backend.member() + " state=closed verdict=" + verdict + " probe=- attempts=\"" +
               backend.member() + " " + verdict + "\" rejected=" + rejected + " fallback=" + fallback;
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, AccessLog, any_mpm, mpm_name);

TEST_P(AccessLog, HasTheMemberItsStateTheVerdictAndTheReasonOfARefusal) {
    Backend app("app");
    Backend spare("spare");
    Backend back("back");
    Httpd httpd(site(
        std::string(quick_policy) + long_open,
        logs() + "ErrorDocument 503 /sorry\nProxyPass /sorry !\n" + "<Proxy balancer://spare>\n" + member_line(spare) +
            "</Proxy>\n<Location /app/spared>\n    CircuitBreakerFallback balancer://spare\n</Location>\n" +
            "<Proxy \"" + back.member() + "\">\n    CircuitBreakerOpenTime 100ms jitter=0\n</Proxy>\nProxyPass /back " +
            back.member() + "\n" + balancer_of(member_line(app))));
    httpd.put_document("sorry", "sorry");
    httpd.start();
    EXPECT_EQ(statuses(1, httpd.url("/app/well")), "200");
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/bad")), "502 502 502");
    EXPECT_EQ(statuses(1, httpd.url("/app/refused")), "503");
    EXPECT_EQ(answerers(1, httpd.url("/app/spared")), "spare");
    back.answer_next(3, Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/back/bad")), "502 502 502");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, back));
    EXPECT_EQ(statuses(1, httpd.url("/back/probe")), "200");
    EXPECT_EQ(statuses(1, httpd.url("/sorry")), "200");

    const std::string none = "member=- state=- verdict=- probe=- attempts=\"-\" rejected=- fallback=-";
    EXPECT_EQ(fields(httpd, "/app/well"), a_call(app, "success"));
    EXPECT_EQ(fields(httpd, "/app/bad"), a_call(app, "failure:502"));
    EXPECT_EQ(fields(httpd, "/app/refused"),
              "member=- state=- verdict=- probe=- attempts=\"-\" rejected=open fallback=-");
    EXPECT_EQ(fields(httpd, "/app/spared"), a_call(spare, "success", "-", "balancer://spare"));
    EXPECT_EQ(fields(httpd, "/back/probe"), "member=" + back.member() +
                                                " state=half-open verdict=success probe=1 attempts=\"" + back.member() +
                                                " probe success\" rejected=- fallback=-");
    EXPECT_EQ(fields(httpd, "/sorry"), none);
}

/// A site whose every path is served by /index.php, which balancer://app has.
HttpdOptions with_front_controller(HttpdOptions options) {
    options.add_modules = {"rewrite", "actions"};
    options.config += "<Directory />\n    AllowOverride All\n    Options FollowSymLinks\n</Directory>\n";
    return options;
}
void put_front_controller(const Httpd& httpd) {
    httpd.put_document("index.php", "never read");
    httpd.put_document(".htaccess",
                       "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^page index.php [END]\n"
                       "<Files index.php>\n    SetHandler \"proxy:balancer://app\"\n</Files>\n");
}

TEST_P(AccessLog, HasThemBehindAFrontControllerAndAnAction) {
    Backend app("app");
    Httpd httpd(with_front_controller(
        site(std::string(quick_policy) + long_open,
             logs() + "Action gate /app/gate virtual\n<Location /acted>\n    SetHandler gate\n</Location>\n" +
                 "ErrorDocument 503 /sorry.html\n" + balancer_of(member_line(app)))));
    httpd.put_document("sorry.html", "sorry");
    put_front_controller(httpd);
    httpd.start();
    EXPECT_EQ(answerers(2, httpd.url("/page/well")), "app app");
    EXPECT_EQ(answerers(1, httpd.url("/acted/well")), "app");
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(1, httpd.url("/page/bad")), "502");
    EXPECT_EQ(statuses(2, httpd.url("/acted/bad")), "502 502");
    EXPECT_EQ(get(httpd.url("/page/refused")).body, "sorry");
    EXPECT_EQ(get(httpd.url("/acted/refused")).body, "sorry");
    for (const std::string path : {"/page/", "/acted/"}) {
        expect_in_both(httpd, path + "well", a_call(app, "success"));
        expect_in_both(httpd, path + "bad", a_call(app, "failure:502"));
        expect_in_both(httpd, path + "refused",
                       "member=- state=- verdict=- probe=- attempts=\"-\" rejected=open fallback=-");
    }
}

TEST_P(AccessLog, HasThemWhereAnotherMemberGivesTheErrorPage) {
    Backend app("app");
    Backend pages("pages");
    Backend spare("spare");
    Httpd httpd(site(std::string(quick_policy) + long_open + "ProxyErrorOverride On\nErrorDocument 502 /pages/bad\n" +
                         "ErrorDocument 503 /pages/sorry\n<Location /app/spared>\n    CircuitBreakerFallback " +
                         "balancer://spare\n</Location>\n",
                     logs() + balancer_of(member_line(app)) + "<Proxy balancer://spare>\n" + member_line(spare) +
                         "</Proxy>\nProxyPass /pages " + pages.member() + "\n"));
    httpd.start();
    app.answer(Reply::status(502));
    EXPECT_EQ(answerers(3, httpd.url("/app/bad")), "pages pages pages");
    EXPECT_EQ(answerers(1, httpd.url("/app/refused")), "pages");
    EXPECT_EQ(answerers(1, httpd.url("/app/spared")), "spare");
    spare.answer(Reply::status(502));
    EXPECT_EQ(answerers(3, httpd.url("/app/spared/bad")), "pages pages pages");
    EXPECT_EQ(answerers(1, httpd.url("/app/spared/refused")), "pages");

    expect_in_both(httpd, "/app/refused", a_call(pages, "success", "open"));
    expect_in_both(httpd, "/app/spared", a_call(spare, "success", "-", "balancer://spare"));
    EXPECT_EQ(fields(httpd, "/app/bad"), a_call(app, "failure:502")) << "the client's own request";
    EXPECT_EQ(fields(httpd, "/app/bad", "last.log"), a_call(pages, "success")) << "that of the page";
    EXPECT_EQ(fields(httpd, "/app/spared/bad"), a_call(spare, "failure:502", "-", "balancer://spare"));
    EXPECT_EQ(fields(httpd, "/app/spared/bad", "last.log"), a_call(pages, "success"));
    EXPECT_EQ(fields(httpd, "/app/spared/refused"), a_call(pages, "success", "open", "balancer://spare"));

    // The page's member fails, too (its own error page is asked of it, as often as httpd allows), and is refused then.
    pages.answer(Reply::status(502));
    EXPECT_EQ(statuses(1, httpd.url("/app/again")), "503");
    ASSERT_EQ(state_of(httpd, pages), "open");
    EXPECT_EQ(statuses(1, httpd.url("/app/both")), "503");
    expect_in_both(httpd, "/app/again", a_call(pages, "failure:502", "open"));
    expect_in_both(httpd, "/app/both", "member=- state=- verdict=- probe=- attempts=\"-\" rejected=open fallback=-");
}

TEST_P(AccessLog, HasThemInObserveAndChoosesItsLinesByThem) {
    Backend app("app");
    Httpd httpd(with_front_controller(
        site(std::string(quick_policy) + "CircuitBreaker Observe\n",
             logs() +
                 "CustomLog some.log \"%r\" env=CIRCUIT_BREAKER_MEMBER\n"
                 "CustomLog failed.log \"%r\" \"expr=reqenv('CIRCUIT_BREAKER_VERDICT') =~ /^failure/\"\n" +
                 balancer_of(member_line(app)))));
    put_front_controller(httpd);
    httpd.start();
    EXPECT_EQ(statuses(1, httpd.url("/page/well")), "200");
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(1, httpd.url("/page/bad")), "502");
    EXPECT_EQ(statuses(1, httpd.url("/index.html")), "404");
    expect_in_both(httpd, "/page/well", a_call(app, "success"));
    expect_in_both(httpd, "/page/bad", a_call(app, "failure:502"));
    expect_in_both(httpd, "/index.html", "member=- state=- verdict=- probe=- attempts=\"-\" rejected=- fallback=-");
    expect_lines(httpd, "some.log", {"GET /page/bad HTTP/1.1", "GET /page/well HTTP/1.1"});
    expect_lines(httpd, "failed.log", {"GET /page/bad HTTP/1.1"});
}

}  // namespace
}  // namespace cb::test
