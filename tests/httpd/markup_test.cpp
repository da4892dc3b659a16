// Names, routes, URLs and paths of others on the pages: escaped in HTML, XML and JSON, whatever they are. Other
// programs (tidy, xmllint) find the pages valid.
#include <gtest/gtest.h>
#include <jansson.h>

#include <fstream>
#include <string>
#include <vector>

#include "pages.hpp"

namespace cb::test {
namespace {

/// `<`, `>`, `&`, both quotes, UTF-8 of two to four bytes, and bytes that are none.
constexpr const char* kOddPath =
    "/<script>alert(1)</script>&amp;\"'\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF\xC0\xAF\xED\xA0\x80\xE0\x80\xAF";
constexpr const char* kEscapedPath =
    "/&#60;script&#62;alert(1)&#60;/script&#62;&#38;amp;&#34;&#39;&#233;&#8364;&#128512;"
    "&#65533;&#65533;&#65533;&#65533;&#65533;&#65533;&#65533;&#65533;&#65533;";

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text)
        result += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    return result + "\"";
}

bool is_ascii(const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; });
}

class Markup : public testing::Test {
  protected:
    Markup() {
        app_.answer(Reply::status(503));
        Httpd& httpd = httpd_;
        // As few members as there are, they show everything that the pages can show.
        httpd.set_config(
            "CircuitBreaker On\nCircuitBreakerConsecutiveFailures 3\nCircuitBreakerRecordPath On\n"
            "CircuitBreakerSlowCall 1s\nCircuitBreakerOpenTime 10min\n" +
            std::string(control_location) + manager_location +
            "<Location /server-status>\n    SetHandler server-status\n</Location>\n" +
            "ProxyPass /server-status !\n<Proxy balancer://app>\n    BalancerMember " +
            quoted(app_.member() + kOddPath) + " route=" + quoted(odd) + "\n    BalancerMember " + well_.member() +
            " status=+D\n</Proxy>\nProxyPass /app balancer://app\n" +
            "<Proxy balancer://idle>\n    CircuitBreaker Observe\n    BalancerMember " + well_.member() +
            "\n</Proxy>\n");
        httpd.start();
        for (int i = 0; i < 4; ++i)
            (void)get(httpd.url(std::string("/app") + kOddPath + "?secret"));
        EXPECT_TRUE(wait_until([&] { return has(page(httpd), "1 out:"); }, patience, "the breaker to open"));
    }
    /// What the program says of the text as a file; empty if it finds nothing wrong.
    [[nodiscard]] std::string judged(std::vector<std::string> program, const std::string& text) const {
        const std::filesystem::path file = httpd_.root() / "judged";
        std::ofstream(file) << text;
        program.push_back(file.string());
        const CommandResult result = run_command({program, {}, {}});
        return result.exit_status == 0 ? "" : std::to_string(result.exit_status) + ": " + result.output + text;
    }
    [[nodiscard]] std::string referred(const std::string& path) const {
        return get(httpd_.url(path), {.headers = {{"Referer", httpd_.url(path)}}}).body;
    }

    Backend app_{"app"};
    Backend well_{"well"};
    Httpd httpd_;
};

TEST_F(Markup, EscapesNamesAndPathsInHtml) {
    for (const char* path : {"/breakers", "/balancer-manager", "/server-status", "/server-status?notable"}) {
        std::string html = referred(path);
        if (html.find("<h2>Circuit breakers") != std::string::npos)
            html = html.substr(html.find("<h2>Circuit breakers"));
        EXPECT_TRUE(has(html, app_.member() + kEscapedPath)) << path << "\n" << html;
        EXPECT_FALSE(has(html, "<script>alert")) << path;
        EXPECT_TRUE(is_ascii(html)) << "whatever the page's charset: " << path;
    }
    const std::string html = page(httpd_);
    EXPECT_GE(count_of(html, "GET <code>/app/&#60;script&#62;alert(1)"), 3U) << "of the failing calls\n" << html;
    EXPECT_FALSE(has(html, "secret"));
    EXPECT_TRUE(has(html, "data-ask=\"Force closed: http")) << html;
}

TEST_F(Markup, EscapesNamesAndPathsInJson) {
    const std::string text = page(httpd_, "/breakers?format=json");
    EXPECT_TRUE(is_ascii(text));
    json_error_t error;
    json_t* const json = json_loads(text.c_str(), 0, &error);
    ASSERT_NE(json, nullptr) << error.text;
    bool is_found = false;
    const std::string as_utf8 =
        "/<script>alert(1)</script>&amp;\"'\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"
        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";
    const json_t* const members = json_object_get(json, "members");
    for (std::size_t i = 0; i < json_array_size(members); ++i) {
        is_found = is_found ||
                   json_string_value(json_object_get(json_array_get(members, i), "member")) == app_.member() + as_utf8;
    }
    EXPECT_TRUE(is_found) << text;
    json_decref(json);
}

TEST_F(Markup, EscapesNamesInTheElementsOfBalancerManager) {
    const std::string xml = referred("/balancer-manager?xml=1");
    const std::size_t begin = xml.find("<cb:breakers");
    const std::size_t end = xml.find("</cb:breakers>") + 14;
    ASSERT_NE(begin, std::string::npos) << xml;
    // Alone, as httpd's own part does not escape the names of members.
    const std::string ours = xml.substr(begin, end - begin);
    EXPECT_EQ(judged({"xmllint", "--noout"}, ours), "");
    EXPECT_TRUE(has(ours, "<cb:worker>" + app_.member() + kEscapedPath + "</cb:worker>")) << ours;
}

TEST_F(Markup, OfTheStatusPageIsValidHtml) {
    const std::string id = first_match(page(httpd_), "id=\"m-([0-9a-f]{16})\"");
    for (const std::string& path :
         {std::string("/breakers"), std::string("/breakers?refresh=0"), "/breakers?member=" + id}) {
        std::string html = page(httpd_, path);
        // tidy 5.6 is older than the attribute.
        html = replaced(html, " nonce=\"[0-9a-f]{32}\"", "");
        EXPECT_EQ(judged({"tidy", "-errors", "-quiet"}, html), "") << "warnings count too";
    }
    EXPECT_NE(judged({"tidy", "-errors", "-quiet"}, page(httpd_) + "<p>x"), "") << "tidy finds what is wrong";
}

TEST(ManagersXml, StaysValidWithARouteOfAnyCharacters) {
    Backend app("app");
    Httpd httpd(site(Mpm::event, "CircuitBreaker On\n",
                     manager_location + balancer_of(member_line(app, "route=" + quoted(odd)))));
    httpd.start();
    const std::string xml =
        get(httpd.url("/balancer-manager?xml=1"), {.headers = {{"Referer", httpd.url("/balancer-manager")}}}).body;
    std::ofstream(httpd.root() / "xml") << xml;
    const CommandResult result = run_command({{"xmllint", "--noout", httpd.root() / "xml"}, {}, {}});
    EXPECT_EQ(result.exit_status, 0) << result.output << xml;
    EXPECT_TRUE(has(xml, "<cb:state>closed</cb:state>")) << xml;
}

}  // namespace
}  // namespace cb::test
