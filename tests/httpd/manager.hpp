// What an operator does in balancer-manager: adds members, and switches them on and off.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "traffic.hpp"

namespace cb::test {

/// `balancer://app` with these members and room for five more, and balancer-manager.
[[nodiscard]] inline std::string managed_balancer(const std::string& members) {
    return "ProxyPass /balancer-manager !\n<Location /balancer-manager>\n    SetHandler "
           "balancer-manager\n</Location>\n" +
           balancer_of(members + "    ProxySet growth=12\n");
}

/// What an operator's browser sends: the page's own nonce, and where it comes from.
inline int post_to_manager(const Httpd& httpd, const std::string& fields) {
    const std::string page = get(httpd.url("/balancer-manager")).body;
    const std::string mark = "nonce=";
    const std::size_t at = page.find(mark);
    EXPECT_NE(at, std::string::npos) << page;
    if (at == std::string::npos) return 0;
    const std::string nonce = page.substr(at + mark.size(), 36);
    return get(httpd.url("/balancer-manager"), {.method = "POST",
                                                .headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                                                            {"Referer", httpd.url("/balancer-manager")}},
                                                .body = "b=app&nonce=" + nonce + "&" + fields})
        .status;
}

[[nodiscard]] inline std::string escaped_for_manager(std::string url) {
    for (std::size_t at = 0; (at = url.find_first_of(":/", at)) != std::string::npos; ++at) {
        url.replace(at, 1, url[at] == ':' ? "%3A" : "%2F");
    }
    return url;
}

/// It is disabled at first.
inline void add_member(const Httpd& httpd, const Backend& backend) {
    EXPECT_EQ(post_to_manager(httpd, "b_wyes=1&b_nwrkr=" + escaped_for_manager(backend.member())), 200)
        << httpd.describe();
}

inline void enable_member(const Httpd& httpd, const Backend& backend, bool on = true) {
    EXPECT_EQ(post_to_manager(httpd, "w=" + escaped_for_manager(backend.member()) + "&w_status_D=" + (on ? "0" : "1")),
              200);
}

}  // namespace cb::test
