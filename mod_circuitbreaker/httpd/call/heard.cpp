#include "heard.hpp"

#include <algorithm>
#include <cstring>

#include "httpd/proxy_api.hpp"

namespace cb::httpd {
namespace {

using core::Outcome;

enum class Kind : std::uint8_t {
    fixed,          // the outcome is that
    connecting,     // `connect`, or httpd's own trouble, by the status
    not_connected,  // follows one of the above, or mod_proxy did not even try
    writing,        // the request could not be written
    request,        // it could not be put into the protocol, or not be written, by the status
    dialog,         // by the status
    proxy_error,    // ap_proxyerror: by its text
    no_headers,     // the member has left; mod_proxy_fcgi says that only if a field was too long
};

struct Saying {
    const char* begin;
    Kind kind;
    Outcome outcome = Outcome::none;
    const char* part = "";  // also to be found in the text
};

constexpr Saying kSayings[] = {
    // mod_proxy itself
    {"AH00940", Kind::fixed, Outcome::local},  // disabled connection for
    {"AH00941", Kind::fixed, Outcome::local},  // failed to acquire connection for
    {"AH00916", Kind::fixed, Outcome::local},  // connect to remote machine blocked (ProxyBlock)
    {"AH00917", Kind::fixed, Outcome::local},  // the same
    {"AH00952", Kind::fixed, Outcome::local},  // error creating a socket
    {"AH02453", Kind::fixed, Outcome::local},  // the same, a unix domain socket
    {"AH00961", Kind::fixed, Outcome::local},  // failed to enable ssl support for
    {"AH01089", Kind::fixed, Outcome::local},  // search for temporary directory failed
    {"AH01090", Kind::fixed, Outcome::local},  // creation of temporary file failed
    {"AH01091", Kind::fixed, Outcome::local},  // write to temporary file failed
    {"AH01096", Kind::fixed, Outcome::local},  // processing prefetched request body failed
    {"AH00957", Kind::connecting},             // attempt to connect failed, to the last address
    {"AH02454", Kind::connecting},             // the same to a unix domain socket
    {"AH00958", Kind::connecting},             // through a ProxyRemote
    {"AH00898", Kind::proxy_error},            // ... returned by ...
    // http
    {"AH01114", Kind::not_connected},
    {"AH01093", Kind::fixed, Outcome::client},  // that Transfer-Encoding is not supported
    {"AH01086", Kind::fixed, Outcome::local},   // a filter has changed the length of the body
    // http2
    {"AH03382", Kind::fixed, Outcome::client},  // check input
    // fcgi
    {"AH01079", Kind::not_connected},
    {"AH10241", Kind::fixed, Outcome::local},     // ProxyFCGISetEnvIf
    {"AH01073", Kind::writing},                   // failed writing request
    {"AH01074", Kind::writing},                   // failed writing environment
    {"AH01070", Kind::fixed, Outcome::protocol},  // error parsing script headers
    {"AH01075", Kind::writing, Outcome::none, "(sending"},
    {"AH01075", Kind::fixed, Outcome::local, "(flattening"},
    {"AH01075", Kind::dialog},  // error dispatching request to
    // scgi
    {"AH00866", Kind::not_connected},
    {"AH00858", Kind::writing},                 // sending data failed
    {"AH00859", Kind::fixed, Outcome::client},  // receiving request body failed
    {"%s: %s", Kind::fixed, Outcome::protocol, "Premature end of script headers: "},
    {"%s: %s", Kind::no_headers, Outcome::reset, "End of script output before headers: "},
    {"malformed header", Kind::fixed, Outcome::protocol},
    // uwsgi
    {"AH10101", Kind::not_connected},
    {"AH10098", Kind::writing},                 // sending data failed
    {"AH10099", Kind::fixed, Outcome::client},  // receiving request body failed
    {"AH10100", Kind::fixed, Outcome::client},  // unable to decode uri
    {"AH10259", Kind::fixed, Outcome::client},  // headers too large
    // ajp
    {"AH00896", Kind::not_connected},
    {"AH00897", Kind::connecting},              // cping/cpong failed
    {"AH10396", Kind::fixed, Outcome::client},  // that Transfer-Encoding is not supported
    {"AH00868", Kind::request},                 // request failed
    {"AH00876", Kind::writing},                 // send failed
    {"AH00877", Kind::fixed, Outcome::client},  // the body is shorter than announced
    {"AH02822", Kind::fixed, Outcome::client},  // dialog with client failed
    {"AH00878", Kind::dialog},                  // read response failed
    {"AH00893", Kind::dialog},                  // dialog failed
    // ftp, its data connection
    {"AH01043", Kind::connecting},
    {"AH01048", Kind::connecting},
    // wstunnel
    {"AH02452", Kind::not_connected},
    // fdpass
    {"AH01152", Kind::connecting},
};

// mod_proxy_ajp's (ajp.h)
constexpr apr_status_t kAjpOverflow = APR_OS_START_USERERR + 1;
constexpr apr_status_t kAjpSignature = APR_OS_START_USERERR + 4;
constexpr apr_status_t kAjpTooBig = APR_OS_START_USERERR + 5;
constexpr apr_status_t kAjpHeader = APR_OS_START_USERERR + 7;
constexpr apr_status_t kAjpMethod = APR_OS_START_USERERR + 10;

/// Why there is no connection: because httpd has no descriptors, ports, memory or permission, or because of the member.
Outcome not_connected_by(apr_status_t status) noexcept {
    const bool is_own_trouble = APR_STATUS_IS_EMFILE(status) || APR_STATUS_IS_ENFILE(status) ||
                                APR_STATUS_IS_ENOMEM(status) || APR_STATUS_IS_EACCES(status) || status == ENOBUFS ||
                                status == EPERM || status == EADDRNOTAVAIL || status == EADDRINUSE;
    return is_own_trouble ? Outcome::local : Outcome::connect;
}

Outcome broken_by(apr_status_t status) noexcept {
    if (APR_STATUS_IS_TIMEUP(status)) return Outcome::timeout;
    if (status == APR_EGENERAL) return Outcome::local;  // no socket's
    const bool is_nonsense = status == APR_SUCCESS || APR_STATUS_IS_EINVAL(status) || status == kAjpOverflow ||
                             status == kAjpSignature || status == kAjpTooBig || status == kAjpHeader;
    return is_nonsense ? Outcome::protocol : Outcome::reset;
}

/// The request can't be expressed in the protocol.
bool cannot_be_said(apr_status_t status) noexcept {
    return status == kAjpOverflow || status == kAjpMethod || status == APR_EGENERAL;
}

bool begins(const char* text, const char* with) noexcept {
    return std::strncmp(text, with, std::strlen(with)) == 0;
}

/// By its first words, after the number: the client's path comes later.
Outcome proxy_error(const Call& call, const ap_errorlog_info& said, const char* text) noexcept {
    const char* const message = text + std::min(std::strlen(text), sizeof "AH00898: " - 1);
    if (begins(message, "DNS lookup failure") || begins(message, "Error resolving backend address")) {
        constexpr apr_status_t kTryAgain = APR_OS_START_EAIERR + 3;  // EAI_AGAIN: the resolver did not answer
        return said.status == kTryAgain ? Outcome::local : not_connected_by(said.status);
    }
    if (begins(message, "URI ")) return Outcome::client;                      // cannot be parsed, has no hostname
    if (!begins(call.target.worker->s->scheme, "ftp")) return Outcome::none;  // known otherwise, or an HTTP response
    // AH01043 or AH01048 has just said why there is no data connection.
    if (begins(message, "EPSV attempt") || begins(message, "PASV attempt")) return Outcome::none;
    // Everything else that an FTP server says depends on what the client has asked for.
    return begins(message, "Error reading from remote server") ? Outcome::reset : Outcome::client;
}

const Saying* find(const char* format, const char* text) noexcept {
    for (const Saying& saying : kSayings) {
        if (!begins(format, saying.begin)) continue;
        // Where the format has no number of its own, a name of the client's choice may follow.
        const bool is_numbered = begins(saying.begin, "AH");
        if (is_numbered ? std::strstr(text, saying.part) != nullptr : begins(text, saying.part)) return &saying;
    }
    return nullptr;
}

}  // namespace

void hear(Call& call, const ap_errorlog_info& said, const char* text) noexcept {
    if (said.format == nullptr || call.is_sent()) return;
    // Debug messages decide nothing, such as AH00957 about an address that is not the last one.
    if ((said.level & APLOG_LEVELMASK) > APLOG_WARNING) return;
    const Saying* const saying = find(said.format, text);
    if (saying == nullptr || call.seen.told == Outcome::local) return;  // later messages only follow from that
    switch (saying->kind) {
        case Kind::fixed:
            call.seen.told = saying->outcome;
            break;
        case Kind::connecting:
            call.seen.told = not_connected_by(said.status);
            break;
        case Kind::not_connected:
            if (call.seen.told != Outcome::connect) call.seen.told = Outcome::local;
            break;
        case Kind::writing:
            call.seen.told = broken_by(said.status);
            call.seen.is_write_failed = true;
            break;
        case Kind::request:
            call.seen.told = cannot_be_said(said.status) ? Outcome::client : broken_by(said.status);
            break;
        case Kind::dialog:
            call.seen.told = broken_by(said.status);
            break;
        case Kind::no_headers:
            call.seen.told = begins(call.target.worker->s->scheme, "fcgi") ? Outcome::protocol : saying->outcome;
            break;
        case Kind::proxy_error:
            if (const Outcome outcome = proxy_error(call, said, text); outcome != Outcome::none)
                call.seen.told = outcome;
            break;
    }
}

bool hears_errors(const request_rec* r) noexcept {
    return ap_get_server_module_loglevel(r->server, proxy.proxy_module->module_index) >= APLOG_ERR;
}

}  // namespace cb::httpd
