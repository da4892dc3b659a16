// One scripted backend for each protocol that is not HTTP, behind one httpd: each at /name, with ProxyErrorOverride
// also at /override/name.
//
// Thread safety: belongs to the main thread.
#pragma once

#include <map>

#include "outcomes.hpp"
#include "support/ajp.hpp"
#include "support/fcgi.hpp"
#include "support/h2c.hpp"
#include "support/scgi.hpp"
#include "support/uwsgi.hpp"

namespace cb::test {

struct Protocol {
    std::string name;  // of the backend, and in paths and test names
    std::string module;
    Dialect (*dialect)();
    bool on_unix_socket = false;
    std::string parameters{};
};

[[nodiscard]] inline const std::vector<Protocol>& protocols() {
    static const auto plain_ajp = [] { return ajp(); };
    static const std::vector<Protocol> all{{"fcgi", "proxy_fcgi", fcgi},
                                           {"fcgi_kept", "proxy_fcgi", fcgi, false, "enablereuse=on"},
                                           {"fcgi_unix", "proxy_fcgi", fcgi, true},
                                           {"scgi", "proxy_scgi", scgi},
                                           {"scgi_unix", "proxy_scgi", scgi, true},
                                           {"uwsgi", "proxy_uwsgi", uwsgi},
                                           {"uwsgi_unix", "proxy_uwsgi", uwsgi, true},
                                           {"ajp", "proxy_ajp", plain_ajp},
                                           {"ajp_ping", "proxy_ajp", plain_ajp, false, "ping=3"},
                                           // it closes after each answer: a pooled connection might be about to end
                                           {"h2c", "proxy_http2", h2c, false, "disablereuse=on"}};
    return all;
}

inline void PrintTo(const Protocol& protocol, std::ostream* out) {
    *out << protocol.name;
}
inline std::string protocol_name(const testing::TestParamInfo<Protocol>& info) {
    return info.param.name;
}

/// `ProxyPass /path member` with that protocol's parameters; "timeout=1" and the like.
[[nodiscard]] inline std::string worker_at(const std::string& path, const WireBackend& backend,
                                           const Protocol& protocol, const std::string& more = "") {
    return "ProxyPass " + path + " \"" + backend.member() + "\" " + protocol.parameters + " " + more + "\n";
}

[[nodiscard]] inline HttpdOptions wire_site(const std::string& policy, const std::string& proxied) {
    HttpdOptions options = site(Mpm::event, policy, proxied);
    options.add_modules = {"proxy_fcgi", "proxy_scgi", "proxy_uwsgi", "proxy_ajp", "proxy_http2"};
    return options;
}

/// The server that all tests of this suite share.
class ProtocolTest : public testing::TestWithParam<Protocol> {
  protected:
    static void SetUpTestSuite() {
        std::string proxied;
        for (const Protocol& protocol : protocols()) {
            auto& backend = backends_[protocol.name];
            backend = std::make_unique<WireBackend>(protocol.name, protocol.dialect(), protocol.on_unix_socket);
            proxied += "ProxyPass /brief/" + protocol.name + " \"" + brief_member(*backend) + "\" " +
                       protocol.parameters + " timeout=1\n" + worker_at("/" + protocol.name, *backend, protocol) +
                       worker_at("/override/" + protocol.name, *backend, protocol);
        }
        httpd_ = std::make_unique<Httpd>(
            wire_site(std::string(counting_policy) + "<Location /override>\n    ProxyErrorOverride On\n</Location>\n",
                      proxied + "<VirtualHost *>\n    ServerName me\n</VirtualHost>\n"
                                "<VirtualHost *>\n    ServerName brief\n    Timeout 1\n</VirtualHost>\n"));
        httpd_->start();
    }
    static void TearDownTestSuite() {
        httpd_.reset();
        backends_.clear();
    }
    void SetUp() override {
        backend().answer(WireReply::status(200));
        for (const std::string& member : {backend().member(), brief_member(backend())})
            before_.insert_or_assign(member, OutcomeCounters(*httpd_, member));
    }

    /// The same backend with a timeout of a second, at /brief/name, for what is never answered: on a machine that
    /// stands still for a moment any other call would be one, too.
    static std::string brief_member(const WireBackend& backend) { return backend.member() + "/brief"; }

    static WireBackend& backend() { return *backends_.at(GetParam().name); }
    static std::string url(const std::string& prefix = "") {
        return httpd_->url(prefix + "/" + GetParam().name + "/x");
    }
    static bool is(const std::string& scheme) { return GetParam().name.starts_with(scheme); }

    /// What the calls since the last one added to the counters: "Outcome-reset Verdict-failure".
    std::string judged() { return judged(backend().member()); }
    std::string judged(const std::string& member) {
        OutcomeCounters& before = before_.at(member);
        const OutcomeCounters now = OutcomeCounters::of_next_call(*httpd_, member, before);
        const std::string added = now - before;
        before = now;
        return added;
    }
    std::string judged_of(const WireReply& reply, const std::string& prefix = "", RequestOptions options = {}) {
        options.headers.add("Connection", "close");  // or a truncated answer ends at KeepAliveTimeout
        backend().answer(reply);
        const bool is_silent = reply.ending == Ending::silence;
        last_ = get(url(is_silent ? "/brief" + prefix : prefix), options);
        backend().release();
        return judged(is_silent ? brief_member(backend()) : backend().member());
    }

    static inline std::map<std::string, std::unique_ptr<WireBackend>> backends_;
    static inline std::unique_ptr<Httpd> httpd_;
    std::map<std::string, OutcomeCounters> before_;
    Response last_;
};

}  // namespace cb::test
