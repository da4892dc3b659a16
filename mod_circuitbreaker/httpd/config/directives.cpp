#include "directives.hpp"

#include "httpd/runtime.hpp"
#include "parse.hpp"
#include "readers.hpp"

namespace cb::httpd {

bool is_for_requests(Directive directive) noexcept {
    return directive == Directive::verdict || directive == Directive::probe_verdict ||
           directive == Directive::probe_if || directive == Directive::body_limit || directive == Directive::settle ||
           directive == Directive::retry_after || directive == Directive::fallback ||
           directive == Directive::failover || directive == Directive::control;
}

namespace {

/// The directives that are about the server as a whole, so not in a <VirtualHost> either.
bool is_for_main_server(Directive directive) noexcept {
    return directive == Directive::event_log;
}

/// The one that has no meaning for a member.
bool is_for_requests_only(Directive directive) noexcept {
    return directive == Directive::control;
}

/// Name of the innermost section that the directive stands in ("<proxy"), or nullptr at server level.
const char* section_of(const cmd_parms* cmd) noexcept {
    return cmd->directive != nullptr && cmd->directive->parent != nullptr ? cmd->directive->parent->directive : nullptr;
}

const char* on_directive(cmd_parms* cmd, void* mconfig, int argc, char* const argv[]) noexcept {
    const auto index = static_cast<std::uint32_t>(static_cast<const Reader*>(cmd->info) - kReaders);
    const auto directive = static_cast<Directive>(index);
    char nothing[] = "";
    char* const missing[] = {nothing};  // no reader takes it, and its message says what would be right
    const Words words{cmd, argc > 0 ? argc : 1, argc > 0 ? argv : missing};
    const int most = kReaders[index].max_words;
    if (argc > most) {
        return words.contradiction(
            apr_psprintf(cmd->pool, "\"%s\" is one word too many, at most %d belong here", argv[most], most));
    }
    if (is_for_main_server(directive) && cmd->server->is_virtual != 0) {
        return words.contradiction("not allowed here; it belongs to the server, outside all sections");
    }
    Settings* settings = &server_settings(cmd->server);
    bool is_for_request = false;
    if (cmd->path != nullptr) {
        const char* const section = section_of(cmd);
        const bool is_proxy = section != nullptr && (is_word(section, "<Proxy") || is_word(section, "<ProxyMatch"));
        if (!is_proxy && !is_for_requests(directive)) {
            return words.contradiction(
                "not allowed here; it belongs to the server, a virtual host or a <Proxy> section");
        }
        if (is_proxy && is_for_requests_only(directive)) {
            return words.contradiction("not allowed here; it belongs where SetHandler circuitbreaker-status stands");
        }
        auto* dir = static_cast<DirConfig*>(mconfig);
        settings = is_proxy ? &dir->section : &dir->request;
        is_for_request = !is_proxy;
    }
    const Reader& reader = kReaders[index];
    const char* const error =
        reader.read_more != nullptr ? reader.read_more(words, *settings) : reader.read(words, settings->policy);
    if (error != nullptr) return error;
    // Which member it will meet is not known before the request (core::contradiction).
    if (is_for_request && has_fatal(settings->rules)) runtime.has_fatal_for_requests = true;
    if (directive == Directive::fallback && settings->fallback != nullptr) {
        APR_ARRAY_PUSH(runtime.fallbacks, NamedFallback) = {cmd->server, settings->fallback, cmd->directive};
    }
    settings->note(directive, cmd->directive);
    return nullptr;
}

constexpr int kServerOnly = RSRC_CONF;
constexpr int kServerProxy = RSRC_CONF | PROXY_CONF;
constexpr int kEverywhere = RSRC_CONF | ACCESS_CONF;

constexpr command_rec entry(Directive directive, int where, const char* help) noexcept {
    const auto index = static_cast<std::uint32_t>(directive);
    return {kDirectiveNames[index],
            {.take_argv = on_directive},
            const_cast<Reader*>(&kReaders[index]),  // httpd's field is not const; nobody writes
            where,
            TAKE_ARGV,
            help};
}

}  // namespace

constinit const command_rec kDirectiveTable[] = {
    entry(Directive::mode, kServerProxy, "On, Off or Observe (report, but refuse nothing)"),
    entry(Directive::window, kServerProxy, "a duration (10s) or a number of calls (100calls)"),
    entry(Directive::minimum_calls, kServerProxy, "calls in the window before its rates count"),
    entry(Directive::failure_rate, kServerProxy, "percentage of failures that trips, or Off"),
    entry(Directive::consecutive_failures, kServerProxy, "failures in a row that trip, or Off"),
    entry(Directive::slow_call, kServerProxy, "DURATION [rate=PERCENT], or Off"),
    entry(Directive::open_time, kServerProxy,
          "BASE [max=DURATION] [factor=NUMBER] [jitter=PERCENT] [min=DURATION] [retry-after=On|Off]"),
    entry(Directive::max_open, kServerProxy, "largest percentage of a balancer's members to be out at once"),
    entry(Directive::probes, kServerProxy, "N [concurrent=N] [tolerate=N] [successes=N] [max=N]"),
    entry(Directive::probe_timeout, kServerProxy, "time that a probe's response may take to begin, or Off"),
    entry(Directive::probe_if, kEverywhere, "an expression: only such requests may be probes"),
    entry(Directive::probe_header, kServerProxy, "name of a header field sent with probes, or Off"),
    entry(Directive::ramp_up, kServerProxy, "DURATION [from=PERCENT], or Off"),
    entry(Directive::verdict, kEverywhere, "VERDICT CONDITION...: what a call that ended like this counts as"),
    entry(Directive::probe_verdict, kEverywhere, "the same for probes only, tried first"),
    entry(Directive::body_limit, kEverywhere, "bytes of a response body that conditions look at"),
    entry(Directive::settle, kEverywhere, "time after the headers at which a call's verdict is due"),
    entry(Directive::retry_after, kEverywhere, "On or Off: send Retry-After with a refusal"),
    entry(Directive::max_concurrent, kServerProxy, "calls in flight to one member over all processes, or Off"),
    entry(Directive::fallback, kEverywhere, "a balancer that takes over when every member is refused, or Off"),
    entry(Directive::failover, kEverywhere, "Off, Probes or All, [budget=PERCENT] [tries=N] [timeout=DURATION]"),
    entry(Directive::event_log, kServerOnly, "a file or \"|PROGRAM\" for one line of JSON per event, or Off"),
    entry(Directive::record_path, kServerProxy, "On or Off: the last failing calls are kept with their paths"),
    entry(Directive::control, ACCESS_CONF, "Off, or On [host=NAME]...: POSTs to the status page may act on breakers"),
    entry(Directive::health_check, kServerProxy, "Off or Early: a passing health check ends the open time"),
    entry(Directive::probe_body, kServerProxy, "bytes of a request's body that are read before it may be a probe"),
    {},
};

}  // namespace cb::httpd
