// The LogFormat that circuitbreaker.conf offers: what the breakers did to each request, also where an ErrorDocument
// takes the answer's place.
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

class AccessLog : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, AccessLog, each_mpm, mpm_name);

TEST_P(AccessLog, HasTheMemberItsStateTheVerdictAndTheReasonOfARefusal) {
    Backend app("app");
    Backend spare("spare");
    Backend back("back");
    Httpd httpd(site(
        std::string(quick_policy) + long_open,
        shipped_log_format() + "CustomLog breakers.log circuitbreaker\nErrorDocument 503 /sorry\nProxyPass /sorry !\n" +
            "<Proxy balancer://spare>\n" + member_line(spare) +
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

    const auto fields = [&](const std::string& path) {
        std::string line;
        const auto is_there = [&] {
            std::istringstream lines(read_file(httpd.root() / "breakers.log"));
            for (std::string each; std::getline(lines, each);) {
                if (each.find("\"GET " + path + " HTTP/") != std::string::npos) line = each;
            }
            return !line.empty();
        };
        EXPECT_TRUE(wait_until(is_there, patience, path + " in the log"));
        const std::size_t at = line.find(" member=");
        return at != std::string::npos ? line.substr(at + 1) : line;
    };
    const std::string none = "member=- state=- verdict=- probe=- rejected=- fallback=-";
    EXPECT_EQ(fields("/app/well"),
              "member=" + app.member() + " state=closed verdict=success probe=- rejected=- fallback=-");
    EXPECT_EQ(fields("/app/bad"),
              "member=" + app.member() + " state=closed verdict=failure:502 probe=- rejected=- fallback=-");
    EXPECT_EQ(fields("/app/refused"), "member=- state=- verdict=- probe=- rejected=open fallback=-");
    EXPECT_EQ(fields("/app/spared"), "member=" + spare.member() +
                                         " state=closed verdict=success probe=- rejected=- fallback=balancer://spare");
    EXPECT_EQ(fields("/back/probe"),
              "member=" + back.member() + " state=half-open verdict=success probe=1 rejected=- fallback=-");
    EXPECT_EQ(fields("/sorry"), none);
}

}  // namespace
}  // namespace cb::test
