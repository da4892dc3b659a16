// What the tests of the pages have in common: where they are, and what an operator's browser sends.
//
// Thread safety: values and pure functions.
#pragma once

#include <string>

#include "traffic.hpp"

namespace cb::test {

/// `status_location` with actions allowed.
inline constexpr const char* control_location =
    "ProxyPass /breakers !\n<Location /breakers>\n    SetHandler circuitbreaker-status\n    CircuitBreakerControl "
    "On\n</Location>\n";

inline constexpr const char* manager_location =
    "ProxyPass /balancer-manager !\n<Location /balancer-manager>\n    SetHandler balancer-manager\n</Location>\n";

/// Characters that mean something to HTML, XML and JSON.
inline constexpr const char* odd = "<b>&amp;'";

/// The first group of the first match; "" if there is none.
std::string first_match(const std::string& text, const std::string& pattern);

/// Each match replaced.
std::string replaced(const std::string& text, const std::string& pattern, const std::string& by);

inline std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        ++count;
    return count;
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A page of ours as an operator sees it.
inline std::string page(const Httpd& httpd, const std::string& path = "/breakers") {
    const Response response = get(httpd.url(path));
    EXPECT_EQ(response.status, 200) << path << httpd.describe();
    return response.body;
}

/// The token of the forms on that page.
inline std::string token_on(const std::string& html) {
    return first_match(html, "name=\"token\" value=\"([0-9a-f]{32})\"");
}

inline std::string id_of(const Httpd& httpd, const Backend& backend) {
    return BreakerPage(httpd).member(backend).at("Id");
}

/// Under quick_policy: opens the breaker by three failing calls; then `refused` requests that it refuses. (A client has
/// its answer before the call is judged.)
inline void open_breaker(const Httpd& httpd, Backend& backend, unsigned refused = 0) {
    backend.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503") << httpd.describe();
    EXPECT_TRUE(wait_for_state(httpd, backend, "open")) << httpd.describe();
    for (unsigned i = 0; i < refused; ++i)
        EXPECT_EQ(get(httpd.url("/app/x")).status, 503);
}

/// A form as a browser sends it from the status page.
inline Response post(const Httpd& httpd, const std::string& fields, Headers more = {}) {
    more.add("Content-Type", "application/x-www-form-urlencoded");
    if (!more.has("Origin") && !more.has("Referer")) {
        more.add("Origin", httpd.url().substr(0, httpd.url().size() - 1));
        more.add("Referer", httpd.url("/breakers"));
    }
    return get(httpd.url("/breakers"), {.method = "POST", .headers = more, .body = fields});
}

inline std::string form(const Httpd& httpd, const Backend& backend, const std::string& action) {
    return "token=" + token_on(page(httpd)) + "&member=" + id_of(httpd, backend) + "&action=" + action;
}

}  // namespace cb::test
