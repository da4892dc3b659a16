#include "directives.hpp"

#include <cstring>

#include "parse.hpp"
#include "runtime.hpp"
#include "settings.hpp"
#include "words.hpp"

namespace cb::httpd {
namespace {

using core::Millis;
using core::Policy;

// Each reader gets at least one word; it returns nullptr, or the message.

const char* read_mode(const Words& words, Policy& policy) noexcept {
    if (is_word(words.word[0], "On")) {
        policy.mode = core::Mode::on;
    } else if (is_word(words.word[0], "Off")) {
        policy.mode = core::Mode::off;
    } else if (is_word(words.word[0], "Observe")) {
        policy.mode = core::Mode::observe;
    } else {
        return words.wrong(words.word[0], "On, Off or Observe");
    }
    return nullptr;
}

const char* read_window(const Words& words, Policy& policy) noexcept {
    constexpr const char* kAllowed =
        "a duration from 1s to 24h (\"10s\"), or a number of calls from 1 to 4096 (\"100calls\")";
    const char* const text = words.word[0];
    const std::size_t length = std::strlen(text);
    if (length > 5 && is_word(text + length - 5, "calls")) {
        const char* const number = apr_pstrmemdup(words.cmd->temp_pool, text, length - 5);
        policy.window.span = 0;
        return parse_number(number, 1, core::kMaxWindowCalls, policy.window.calls) ? nullptr
                                                                                   : words.wrong(text, kAllowed);
    }
    policy.window.calls = 0;
    return parse_duration(text, core::kMinWindow, core::kMaxWindow, policy.window.span) ? nullptr
                                                                                        : words.wrong(text, kAllowed);
}

const char* read_minimum_calls(const Words& words, Policy& policy) noexcept {
    return parse_number(words.word[0], 1, core::kMaxMinimumCalls, policy.minimum_calls)
               ? nullptr
               : words.wrong(words.word[0], "a whole number from 1 to 1000000");
}

const char* read_failure_rate(const Words& words, Policy& policy) noexcept {
    policy.failure_rate = 0;
    if (is_word(words.word[0], "Off") || parse_percent(words.word[0], 1, policy.failure_rate)) return nullptr;
    return words.wrong(words.word[0], "a percentage from 1 to 100 (\"50\" or \"50%\"), or Off");
}

const char* read_consecutive_failures(const Words& words, Policy& policy) noexcept {
    policy.consecutive_failures = 0;
    if (is_word(words.word[0], "Off") ||
        parse_number(words.word[0], 1, core::kMaxConsecutiveFailures, policy.consecutive_failures)) {
        return nullptr;
    }
    return words.wrong(words.word[0], "a whole number from 1 to 1023, or Off");
}

const char* read_slow_call(const Words& words, Policy& policy) noexcept {
    policy.slow_call = core::SlowCall{};
    if (is_word(words.word[0], "Off")) {
        return words.count == 1 ? nullptr : words.wrong(words.word[1], "nothing after Off");
    }
    if (!parse_duration(words.word[0], 1, core::kDay, policy.slow_call.threshold)) {
        return words.wrong(words.word[0], "a duration from 1ms to 24h (\"2s\"), or Off");
    }
    for (int i = 1; i < words.count; ++i) {
        const char* const rate = value_of(words.word[i], "rate");
        if (rate == nullptr || !parse_percent(rate, 1, policy.slow_call.rate)) {
            return words.wrong(words.word[i], "rate=PERCENT from 1 to 100 (\"rate=50%\")");
        }
    }
    return nullptr;
}

const char* read_open_time(const Words& words, Policy& policy) noexcept {
    core::OpenTime& open = policy.open_time;
    open = core::OpenTime{};
    bool has_max = false;
    if (!parse_duration(words.word[0], core::kMinOpenTime, core::kMaxOpenTime, open.base)) {
        return words.wrong(words.word[0], "a duration from 100ms to 24h (\"30s\")");
    }
    for (int i = 1; i < words.count; ++i) {
        const char* const word = words.word[i];
        if (const char* max = value_of(word, "max")) {
            if (!parse_duration(max, core::kMinOpenTime, core::kMaxOpenTime, open.max)) {
                return words.wrong(word, "max=DURATION from 100ms to 24h (\"max=5min\")");
            }
            has_max = true;
        } else if (const char* factor = value_of(word, "factor")) {
            if (!parse_factor(factor, open.factor_milli)) {
                return words.wrong(word, "factor=NUMBER from 1 to 100 (\"factor=1.5\")");
            }
        } else if (const char* jitter = value_of(word, "jitter")) {
            if (!parse_percent(jitter, 0, open.jitter)) {
                return words.wrong(word, "jitter=PERCENT from 0 to 100 (\"jitter=10%\")");
            }
        } else {
            return words.wrong(word, "max=DURATION, factor=NUMBER or jitter=PERCENT");
        }
    }
    if (!has_max && open.max < open.base) open.max = open.base;  // a base above the default max is its own max
    if (open.max < open.base) {
        return words.contradiction(
            apr_psprintf(words.cmd->pool, "max=%s is less than the open time %s, write max=%s or more",
                         duration_text(words.cmd->pool, open.max), duration_text(words.cmd->pool, open.base),
                         duration_text(words.cmd->pool, open.base)));
    }
    return nullptr;
}

const char* read_max_open(const Words& words, Policy& policy) noexcept {
    return parse_percent(words.word[0], 1, policy.max_open) ? nullptr
                                                            : words.wrong(words.word[0], "a percentage from 1 to 100");
}

const char* read_probes(const Words& words, Policy& policy) noexcept {
    core::Probes& probes = policy.probes;
    if (!parse_number(words.word[0], 1, core::kMaxProbes, probes.round)) {
        return words.wrong(words.word[0], "a number of probes from 1 to 63");
    }
    // What is not said follows from the number of probes.
    probes.concurrent = probes.round < core::kMaxConcurrent ? probes.round : core::kMaxConcurrent;
    probes.tolerate = 0;
    probes.successes = probes.round;
    probes.max = probes.round;
    for (int i = 1; i < words.count; ++i) {
        const char* const word = words.word[i];
        if (const char* concurrent = value_of(word, "concurrent")) {
            if (!parse_number(concurrent, 1, core::kMaxConcurrent, probes.concurrent)) {
                return words.wrong(word, "concurrent=N from 1 to 16");
            }
        } else if (const char* tolerate = value_of(word, "tolerate")) {
            if (!parse_number(tolerate, 0, core::kMaxTolerate, probes.tolerate)) {
                return words.wrong(word, "tolerate=N from 0 to 15");
            }
        } else if (const char* successes = value_of(word, "successes")) {
            if (!parse_number(successes, 1, core::kMaxProbes, probes.successes)) {
                return words.wrong(word, "successes=N from 1 to 63");
            }
        } else {
            return words.wrong(word, "concurrent=N, tolerate=N or successes=N");
        }
    }
    if (probes.concurrent > probes.round) {
        return words.contradiction(apr_psprintf(words.cmd->pool, "concurrent=%u is more than the %u probes of a round",
                                                probes.concurrent, probes.round));
    }
    if (probes.successes > probes.round) {
        return words.contradiction(apr_psprintf(
            words.cmd->pool, "successes=%u is more than the %u probes of a round, so it could never recover",
            probes.successes, probes.round));
    }
    return nullptr;
}

const char* read_ramp_up(const Words& words, Policy& policy) noexcept {
    policy.ramp_up = core::RampUp{};
    if (is_word(words.word[0], "Off")) {
        return words.count == 1 ? nullptr : words.wrong(words.word[1], "nothing after Off");
    }
    if (!parse_duration(words.word[0], 100, core::kDay, policy.ramp_up.duration)) {
        return words.wrong(words.word[0], "a duration from 100ms to 24h (\"60s\"), or Off");
    }
    for (int i = 1; i < words.count; ++i) {
        const char* const from = value_of(words.word[i], "from");
        if (from == nullptr || !parse_percent(from, 0, policy.ramp_up.from)) {
            return words.wrong(words.word[i], "from=PERCENT from 0 to 100 (\"from=10%\")");
        }
    }
    return nullptr;
}

const char* read_body_limit(const Words& words, Policy& policy) noexcept {
    return parse_number(words.word[0], 1, core::kMaxBodyLimit, policy.body_limit)
               ? nullptr
               : words.wrong(words.word[0], "a number of bytes from 1 to 1048576");
}

const char* read_settle(const Words& words, Policy& policy) noexcept {
    return parse_duration(words.word[0], 0, core::kDay, policy.settle)
               ? nullptr
               : words.wrong(words.word[0], "a duration from 0s to 24h (\"10s\")");
}

const char* read_retry_after(const Words& words, Policy& policy) noexcept {
    return parse_on_off(words.word[0], policy.retry_after) ? nullptr : words.wrong(words.word[0], "On or Off");
}

const char* read_verdict(const Words& words, Settings& settings) noexcept {
    return read_verdict_rule(words, settings.rules);
}

const char* read_probe_verdict(const Words& words, Settings& settings) noexcept {
    return read_verdict_rule(words, settings.probe_rules);
}

struct Reader {
    const char* (*read)(const Words& words, Policy& policy) noexcept;
    int max_words;
    const char* (*read_rule)(const Words& words, Settings& settings) noexcept = nullptr;  // instead of `read`
};

constexpr int kMaxRuleWords = 63;  // httpd passes on 64 and says nothing of more

constexpr Reader kReaders[kDirectives] = {
    {read_mode, 1},
    {read_window, 1},
    {read_minimum_calls, 1},
    {read_failure_rate, 1},
    {read_consecutive_failures, 1},
    {read_slow_call, 2},
    {read_open_time, 4},
    {read_max_open, 1},
    {read_probes, 4},
    {read_ramp_up, 2},
    {nullptr, kMaxRuleWords, read_verdict},
    {nullptr, kMaxRuleWords, read_probe_verdict},
    {read_body_limit, 1},
    {read_settle, 1},
    {read_retry_after, 1},
};

/// The directives that may also stand in <Location>, <Directory>, <Files> and <If>.
bool is_for_requests(Directive directive) noexcept {
    return directive == Directive::verdict || directive == Directive::probe_verdict ||
           directive == Directive::body_limit || directive == Directive::settle || directive == Directive::retry_after;
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
    Settings* settings = &server_settings(cmd->server);
    if (cmd->path != nullptr) {
        const char* const section = section_of(cmd);
        const bool is_proxy = section != nullptr && (is_word(section, "<Proxy") || is_word(section, "<ProxyMatch"));
        if (!is_proxy && !is_for_requests(directive)) {
            return words.contradiction(
                "not allowed here; it belongs to the server, a virtual host or a <Proxy> section");
        }
        auto* dir = static_cast<DirConfig*>(mconfig);
        settings = is_proxy ? &dir->section : &dir->request;
    }
    const Reader& reader = kReaders[index];
    const char* const error =
        reader.read_rule != nullptr ? reader.read_rule(words, *settings) : reader.read(words, settings->policy);
    if (error != nullptr) return error;
    // Which member it will meet is not known before the request (core::contradiction).
    if (settings != &server_settings(cmd->server) && has_fatal(settings->rules)) runtime.has_fatal_for_requests = true;
    settings->note(directive, cmd->directive);
    return nullptr;
}

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
    entry(Directive::open_time, kServerProxy, "BASE [max=DURATION] [factor=NUMBER] [jitter=PERCENT]"),
    entry(Directive::max_open, kServerProxy, "largest percentage of a balancer's members to be out at once"),
    entry(Directive::probes, kServerProxy, "N [concurrent=N] [tolerate=N] [successes=N]"),
    entry(Directive::ramp_up, kServerProxy, "DURATION [from=PERCENT], or Off"),
    entry(Directive::verdict, kEverywhere, "VERDICT CONDITION...: what a call that ended like this counts as"),
    entry(Directive::probe_verdict, kEverywhere, "the same for probes only, tried first"),
    entry(Directive::body_limit, kEverywhere, "bytes of a response body that conditions look at"),
    entry(Directive::settle, kEverywhere, "time after the headers at which a call's verdict is due"),
    entry(Directive::retry_after, kEverywhere, "On or Off: send Retry-After with a refusal"),
    {},
};

}  // namespace cb::httpd
