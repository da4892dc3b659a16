#include "directives.hpp"

#include "httpd/runtime.hpp"
#include "parse.hpp"
#include "readers.hpp"

namespace cb::httpd {

namespace {

constexpr int kMostWords = 63;  // httpd passes on 64 and says nothing of more

/// What an inner section sets replaces what an outer one sets; verdict rules come before those of the outer one.
template <class T>
void lay_over(apr_pool_t*, T& outer, const T& inner) noexcept {
    outer = inner;
}
void lay_over(apr_pool_t* p, RuleList& outer, const RuleList& inner) noexcept {
    outer = joined(p, inner, outer);
}

}  // namespace

#define DIRECTIVE(id, name, place, most_words, reader, member, usage)                                                 \
    {Place::place, most_words,                                                                                        \
     [](const Words& words, Settings& settings) noexcept { return reader(words, settings.member); },                  \
     [](apr_pool_t* p, Settings& outer, const Settings& inner) noexcept { lay_over(p, outer.member, inner.member); }, \
     usage},
constexpr DirectiveRow kDirectiveRows[kDirectives] = {
#include "directives.def"
};
#undef DIRECTIVE

namespace {

/// Name of the innermost section that the directive stands in ("<proxy"), or nullptr at server level.
const char* section_of(const cmd_parms* cmd) noexcept {
    return cmd->directive != nullptr && cmd->directive->parent != nullptr ? cmd->directive->parent->directive : nullptr;
}

const char* on_directive(cmd_parms* cmd, void* mconfig, int argc, char* const argv[]) noexcept {
    const DirectiveRow& row = *static_cast<const DirectiveRow*>(cmd->info);
    const auto directive = static_cast<Directive>(&row - kDirectiveRows);
    char nothing[] = "";
    char* const missing[] = {nothing};  // no reader takes it, and its message says what would be right
    const Words words{cmd, argc > 0 ? argc : 1, argc > 0 ? argv : missing};
    if (argc > row.most_words) {
        return words.contradiction(apr_psprintf(cmd->pool, "\"%s\" is one word too many, at most %d belong here",
                                                argv[row.most_words], row.most_words));
    }
    if (row.place == Place::main_server && cmd->server->is_virtual != 0) {
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
        if (is_proxy && row.place == Place::requests) {
            return words.contradiction("not allowed here; it belongs where SetHandler circuitbreaker-status stands");
        }
        auto* dir = static_cast<DirConfig*>(mconfig);
        settings = is_proxy ? &dir->section : &dir->request;
        is_for_request = !is_proxy;
    }
    const char* const error = row.read(words, *settings);
    if (error != nullptr) return error;
    // Which member it will meet is not known before the request (core::contradiction).
    if (is_for_request && has_fatal(settings->rules)) runtime.has_fatal_for_requests = true;
    if (is_for_request && runtime.slow_rule_for_requests == nullptr) {
        const VerdictRule* const slow = slow_rule(settings->rules, settings->probe_rules);
        if (slow != nullptr) runtime.slow_rule_for_requests = slow->where;
    }
    if (is_for_request && directive == Directive::settle) runtime.has_settle_for_requests = true;
    runtime.wants_timer = runtime.wants_timer || settings->policy.open_time.notice > 0 ||
                          settings->policy.health_check != core::HealthCheck::off;
    if (directive == Directive::fallback && settings->fallback != nullptr) {
        APR_ARRAY_PUSH(runtime.fallbacks, NamedFallback) = {cmd->server, settings->fallback, cmd->directive};
    }
    settings->note(directive, cmd->directive);
    return nullptr;
}

constexpr int overrides_of(Place place) noexcept {
    switch (place) {
        case Place::main_server:
            return RSRC_CONF;
        case Place::members:
            return RSRC_CONF | PROXY_CONF;
        case Place::everywhere:
            return RSRC_CONF | ACCESS_CONF;
        case Place::requests:
            return ACCESS_CONF;
    }
    return 0;
}

constexpr command_rec command(Directive directive) noexcept {
    const DirectiveRow& row = kDirectiveRows[index_of(directive)];
    return {kDirectiveNames[index_of(directive)],
            {.take_argv = on_directive},
            const_cast<DirectiveRow*>(&row),  // httpd's field is not const; nobody writes
            overrides_of(row.place),
            TAKE_ARGV,
            row.usage};
}

}  // namespace

#define DIRECTIVE(id, ...) command(Directive::id),
constinit const command_rec kDirectiveTable[] = {
#include "directives.def"
    {},
};
#undef DIRECTIVE

}  // namespace cb::httpd
