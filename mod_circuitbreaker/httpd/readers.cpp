#include "readers.hpp"

#include <cstring>

#include "event_log.hpp"
#include "parse.hpp"

namespace cb::httpd {
namespace {

using core::Millis;
using core::Policy;

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
        } else if (const char* retry_after = value_of(word, "retry-after")) {
            if (!parse_on_off(retry_after, open.retry_after)) {
                return words.wrong(word, "retry-after=On or retry-after=Off");
            }
        } else {
            return words.wrong(word, "max=DURATION, factor=NUMBER, jitter=PERCENT or retry-after=On|Off");
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
    // What is not said follows from the number of probes; a concurrent of 0 stands for that.
    probes.concurrent = 0;
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
        } else if (const char* max = value_of(word, "max")) {
            if (!parse_number(max, 1, core::kMaxProbes, probes.max)) {
                return words.wrong(word, "max=N from 1 to 63");
            }
        } else {
            return words.wrong(word, "concurrent=N, tolerate=N, successes=N or max=N");
        }
    }
    if (probes.max < probes.round) {
        return words.contradiction(apr_psprintf(words.cmd->pool,
                                                "max=%u is less than the %u probes of a round, write max=%u or more",
                                                probes.max, probes.round, probes.round));
    }
    if (probes.concurrent == 0) {
        probes.concurrent = probes.max < core::kMaxConcurrent ? probes.max : core::kMaxConcurrent;
    }
    if (probes.concurrent > probes.max) {
        return words.contradiction(apr_psprintf(words.cmd->pool, "concurrent=%u is more than the %u probes of a round",
                                                probes.concurrent, probes.max));
    }
    if (probes.successes > probes.round) {
        return words.contradiction(apr_psprintf(
            words.cmd->pool, "successes=%u is more than the %u probes of a round, so it could never recover",
            probes.successes, probes.round));
    }
    return nullptr;
}

const char* read_probe_timeout(const Words& words, Policy& policy) noexcept {
    policy.probe_timeout = 0;
    if (is_word(words.word[0], "Off") || parse_duration(words.word[0], 1, core::kDay, policy.probe_timeout)) {
        return nullptr;
    }
    return words.wrong(words.word[0], "a duration from 1ms to 24h (\"2s\"), or Off (the member's own timeout)");
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

const char* read_max_concurrent(const Words& words, Policy& policy) noexcept {
    policy.max_concurrent = 0;
    if (is_word(words.word[0], "Off") ||
        parse_number(words.word[0], 1, core::kMaxConcurrentCalls, policy.max_concurrent)) {
        return nullptr;
    }
    return words.wrong(words.word[0], "a number of calls from 1 to 1000000, or Off");
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

const char* read_probe_if(const Words& words, Settings& settings) noexcept {
    if (*words.word[0] == '\0') return words.wrong("", "an expression (\"%{REQUEST_METHOD} == 'GET'\")");
    return read_expression(words, words.word[0], words.word[0], settings.probe_if);
}

const char* read_fallback(const Words& words, Settings& settings) noexcept {
    settings.fallback = nullptr;
    const char* const name = words.word[0];
    if (is_word(name, "Off")) return nullptr;
    constexpr std::size_t kPrefix = sizeof(BALANCER_PREFIX) - 1;
    if (ap_cstr_casecmpn(name, BALANCER_PREFIX, kPrefix) != 0 || name[kPrefix] == '\0' ||
        std::strchr(name + kPrefix, '/') != nullptr) {
        return words.wrong(name, "the name of a balancer (\"balancer://spare\"), or Off");
    }
    char* const lower = apr_pstrdup(words.cmd->pool, name);
    ap_str_tolower(lower);  // as mod_proxy keeps it
    settings.fallback = lower;
    return nullptr;
}

const char* read_record_path(const Words& words, Policy& policy) noexcept {
    return parse_on_off(words.word[0], policy.record_path) ? nullptr : words.wrong(words.word[0], "On or Off");
}

const char* read_control(const Words& words, Settings& settings) noexcept {
    return parse_on_off(words.word[0], settings.control) ? nullptr : words.wrong(words.word[0], "On or Off");
}

const char* read_probe_header(const Words& words, Settings& settings) noexcept {
    const char* const name = words.word[0];
    settings.probe_header = nullptr;
    if (is_word(name, "Off")) return nullptr;
    constexpr const char* kAllowed = "the name of a header field of your own (\"X-Circuit-Breaker-Probe\"), or Off";
    if (!is_token(name)) return words.wrong(name, kAllowed);
    for (const char* taken : {"Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "TE", "Trailer",
                              "Keep-Alive", "Expect", "Content-Type", "Cookie", "Authorization"}) {
        if (is_word(name, taken)) return words.wrong(name, kAllowed);
    }
    settings.probe_header = apr_pstrdup(words.cmd->pool, name);
    return nullptr;
}

const char* read_failover(const Words& words, Policy& policy) noexcept {
    core::Failover& failover = policy.failover;
    failover = core::Failover{};
    const char* const mode = words.word[0];
    if (is_word(mode, "Off")) {
        failover.mode = core::FailoverMode::off;
        return words.count == 1 ? nullptr : words.wrong(words.word[1], "nothing after Off");
    }
    if (!is_word(mode, "Probes") && !is_word(mode, "All")) return words.wrong(mode, "Off, Probes or All");
    failover.mode = is_word(mode, "All") ? core::FailoverMode::all : core::FailoverMode::probes;
    for (int i = 1; i < words.count; ++i) {
        const char* const word = words.word[i];
        if (const char* budget = value_of(word, "budget")) {
            if (!parse_percent(budget, 0, failover.budget)) {
                return words.wrong(word, "budget=PERCENT from 0 to 100 (\"budget=20%\")");
            }
        } else if (const char* tries = value_of(word, "tries")) {
            if (!parse_number(tries, 2, core::kMaxTries, failover.tries)) {
                return words.wrong(word, "tries=N from 2 to 100 (the first call is one)");
            }
        } else if (const char* timeout = value_of(word, "timeout")) {
            if (!parse_duration(timeout, 1, core::kDay, failover.timeout)) {
                return words.wrong(word, "timeout=DURATION from 1ms to 24h (\"timeout=10s\")");
            }
        } else {
            return words.wrong(word, "budget=PERCENT, tries=N or timeout=DURATION");
        }
    }
    return nullptr;
}

constexpr int kMaxRuleWords = 63;  // httpd passes on 64 and says nothing of more

}  // namespace

constinit const Reader kReaders[kDirectives] = {
    {read_mode, 1},
    {read_window, 1},
    {read_minimum_calls, 1},
    {read_failure_rate, 1},
    {read_consecutive_failures, 1},
    {read_slow_call, 2},
    {read_open_time, 5},
    {read_max_open, 1},
    {read_probes, 5},
    {read_probe_timeout, 1},
    {nullptr, 1, read_probe_if},
    {nullptr, 1, read_probe_header},
    {read_ramp_up, 2},
    {nullptr, kMaxRuleWords, read_verdict},
    {nullptr, kMaxRuleWords, read_probe_verdict},
    {read_body_limit, 1},
    {read_settle, 1},
    {read_retry_after, 1},
    {read_max_concurrent, 1},
    {nullptr, 1, read_fallback},
    {read_failover, 4},
    {nullptr, 1, read_event_log},
    {read_record_path, 1},
    {nullptr, 1, read_control},
};

}  // namespace cb::httpd
