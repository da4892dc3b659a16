// What ProxyPassReverse and its companions make of a fallback's answer: what they would have made of the first one's.
#include "traffic.hpp"

namespace cb::test {
namespace {

/// Where the members stand, and what is written for the first ones.
struct Case {
    std::string name;
    std::string first_path;  // of the member's URL
    std::string spare_path;
    std::string place;  // where ProxyPass puts it
    std::string lines;  // FIRST, HOST and PORT are the first member's
    bool has_balancer = true;
    std::string location = "";  // if the mapping is to be seen: its path, as the client gets it
};

void PrintTo(const Case& it, std::ostream* out) {
    *out << it.name;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

class FallbackMap : public testing::TestWithParam<Case> {
  protected:
    /// The fields of a response that are mapped.
    static std::string fields_of(const Response& response) {
        std::string fields;
        for (const std::string name : {"Location", "Content-Location", "URI", "Destination", "Set-Cookie"}) {
            if (name == "Set-Cookie" && GetParam().lines.find("CookiePath") == std::string::npos) continue;
            for (const std::string& value : response.headers.all(name))
                fields += name + ": " + value + "\n";
        }
        return fields;
    }
    /// A redirect with the member's own URL in every field that has one.
    static Reply redirect(const std::string& host, std::uint16_t port, const std::string& path) {
        const std::string url = "http://" + host + ":" + std::to_string(port) + path;
        return Reply::status(302)
            .header("Location", url + "/to/x?y=" + url)
            .header("Content-Location", url + "/at")
            .header("URI", url)
            .header("Destination", url + "/")
            .header("Set-Cookie", "a=1; Path=" + path + "/to; Secure")
            .header("Set-Cookie", "b=1; Path=" + (path.empty() ? "/" : path) + "; Domain=" + host)
            .header("Set-Cookie", "c=1; Domain=." + host + "; HttpOnly; Path=" + path + "/");
    }
};
INSTANTIATE_TEST_SUITE_P(
    Each, FallbackMap,
    testing::Values(
        Case{"Balancer", "", "", "/", "ProxyPassReverse / balancer://app/\n", true, "/to/x"},
        Case{"BalancerBelowAPath", "", "", "/app", "ProxyPassReverse /app balancer://app\n", true, "/app/to/x"},
        Case{"BalancerWithPaths", "/inner/a", "/other", "/app", "ProxyPassReverse /app balancer://app\n", true,
             "/app/to/x"},
        Case{"PartOfABalancer", "", "", "/app", "ProxyPassReverse /there balancer://app/to\n", true, "/there/x"},
        Case{"Member", "", "", "/", "ProxyPassReverse / FIRST/\n", true, "/to/x"},
        Case{"MemberBelowAPath", "/inner", "/b", "/app/", "ProxyPassReverse /app/ FIRST/inner/\n", true, "/app/to/x"},
        Case{"HostOfAMember", "/inner/deep", "", "/app", "ProxyPassReverse /app FIRST/inner\n", true, "/app/deep/to/x"},
        Case{"Path", "/inner", "/b", "/app", "ProxyPassReverse /app /inner\n", true, "/app/to/x"},
        Case{"Worker", "/inner", "", "/app", "ProxyPassReverse /app FIRST/inner\n", false, "/app/to/x"},
        Case{"HostOfAWorker", "/inner", "/b/c", "/app", "ProxyPassReverse / FIRST/\n", false, "/inner/to/x"},
        Case{"AnotherHost", "", "", "/app", "ProxyPassReverse /app http://elsewhere.example/\n", true, ""},
        Case{"Location", "", "/b", "/app", "<Location /app>\n    ProxyPassReverse balancer://app/\n</Location>\n", true,
             "/app/to/x"},
        Case{"Variables", "/inner", "/b", "/app",
             "SetEnv SHOP shop\nProxyPassInterpolateEnv On\nProxyPassReverse /app/${SHOP} FIRST/inner interpolate\n"
             "ProxyPassReverseCookiePath /inner /${SHOP} interpolate\n",
             true, "/app/shop/to/x"},
        Case{"VariablesInside", "/inner", "/b", "/app",
             "SetEnv SCHEME http\nSetEnv REST inner\nProxyPassInterpolateEnv On\n"
             "ProxyPassReverse /never FIRST/other\n"
             "ProxyPassReverse /app ${SCHEME}://127.0.0.1:PORT/${REST} interpolate\n",
             true, "/app/to/x"},
        Case{"Cookies", "/inner", "/b", "/app",
             "ProxyPassReverseCookiePath /inner /app\nProxyPassReverseCookieDomain HOST shop.example\n"
             "ProxyPassReverseCookieDomain .HOST .shop.example\n"},
        Case{"CookiesOfWorker", "/inner", "", "/app",
             "ProxyPassReverseCookiePath / /app/\nProxyPassReverseCookieDomain HOST shop.example\n", false},
        Case{"CookiesOfAPathAboveTheMembers", "/inner/deep", "", "/app", "ProxyPassReverseCookiePath /inner /app\n"},
        Case{"CookiesToTheTop", "", "/b", "/app", "ProxyPassReverseCookiePath / /app\n"},
        Case{"TwoLines", "/inner", "/b", "/app",
             "ProxyPassReverse /special/ FIRST/inner/to/\nProxyPassReverse /app FIRST/inner\n", true, "/special/x"},
        Case{"NoLine", "", "", "/app", ""}),
    [](const auto& each) { return each.param.name; });

TEST_P(FallbackMap, IsThatOfTheBalancerOrWorkerWhosePlaceItTakes) {
    const Case& it = GetParam();
    Backend first("first");
    Backend spare("spare");
    const std::string first_url = "http://127.0.0.1:" + std::to_string(first.port());
    const std::string spare_url = "http://localhost:" + std::to_string(spare.port()) + it.spare_path;
    const std::string target = it.has_balancer ? "balancer://app" + std::string(it.place.ends_with('/') ? "/" : "")
                                               : first_url + it.first_path;
    std::string lines = replaced(replaced(it.lines, "FIRST", first_url), "HOST", "127.0.0.1");
    lines = replaced(lines, "PORT", std::to_string(first.port()));
    Httpd httpd(
        site(Mpm::event, std::string(quick_policy) + long_open + "CircuitBreakerFallback balancer://spare\n",
             "ProxyPass /breakers !\n<Proxy balancer://app>\n    BalancerMember " + first_url + it.first_path +
                 "\n</Proxy>\n<Proxy balancer://spare>\n    BalancerMember http://127.0.0.1:1/dead status=+D\n" +
                 "    BalancerMember " + spare_url + "\n</Proxy>\n" + lines + "ProxyPass " + it.place + " " + target +
                 "\n"));
    httpd.start();
    first.answer(redirect("127.0.0.1", first.port(), it.first_path));
    spare.answer(redirect("localhost", spare.port(), it.spare_path));
    const std::string path = it.place + std::string(it.place.ends_with('/') ? "" : "/") + "x";
    const Response from_first = get(httpd.url(path));
    ASSERT_EQ(from_first.backend(), "first");
    // What is not mapped says who answered, each with its own name.
    const std::string expected = replaced(replaced(fields_of(from_first), "=" + first_url + it.first_path, "=URL"),
                                          first_url + it.first_path, "URL");
    if (!it.location.empty()) {
        EXPECT_TRUE(from_first.header("Location").starts_with(httpd.url(it.location))) << from_first.header("Location");
    }
    first.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url(path)), "503 503 503");
    const Response from_spare = get(httpd.url(path));
    ASSERT_EQ(from_spare.backend(), "spare");
    std::string got = replaced(fields_of(from_spare), spare_url, "URL");
    got = replaced(got, "=localhost", "=127.0.0.1");  // where it is not mapped
    got = replaced(got, "=.localhost", "=.127.0.0.1");
    EXPECT_EQ(got, expected);
    EXPECT_EQ(fields_of(get(httpd.url(path))), fields_of(from_spare)) << "nothing of it stays in the configuration";
}

TEST(FallbackMapOfAnotherPath, ThatOnlyBeginsLikeTheMembersStaysWhereItIs) {
    Backend first("first");
    Backend spare("spare");
    Httpd httpd(site(Mpm::event, std::string(quick_policy) + long_open + "CircuitBreakerFallback balancer://spare\n",
                     "<Proxy balancer://app>\n    BalancerMember " + first.member() + "/inner\n</Proxy>\n" +
                         "<Proxy balancer://spare>\n    BalancerMember " + spare.member() + "/b\n</Proxy>\n" +
                         "ProxyPassReverse /app " + first.member() + "/inner2\nProxyPass /app balancer://app\n"));
    httpd.start();
    first.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    spare.answer(Reply::status(302).header("Location", spare.member() + "/b2/x"));
    const Response response = get(httpd.url("/app/x"));
    EXPECT_EQ(response.backend(), "spare");
    EXPECT_EQ(response.header("Location"), spare.member() + "/b2/x");
}

}  // namespace
}  // namespace cb::test
