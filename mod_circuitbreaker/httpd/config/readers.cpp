#include "readers.hpp"

#include <cstring>

#include "host_names.hpp"
#include "parse.hpp"

namespace cb::httpd {

const char* read_mode(const Words& words, core::Mode& mode) noexcept {
    if (is_word(words.word[0], "On")) {
        mode = core::Mode::on;
    } else if (is_word(words.word[0], "Off")) {
        mode = core::Mode::off;
    } else if (is_word(words.word[0], "Observe")) {
        mode = core::Mode::observe;
    } else {
        return words.wrong(words.word[0], "On, Off or Observe");
    }
    return nullptr;
}

const char* read_window(const Words& words, core::Window& window) noexcept {
    constexpr const char* kAllowed =
        "a duration from 1s to 24h (\"10s\"), or a number of calls from 1 to 4096 (\"100calls\")";
    const char* const text = words.word[0];
    const std::size_t length = std::strlen(text);
    if (length > 5 && is_word(text + length - 5, "calls")) {
        const char* const number = apr_pstrmemdup(words.cmd->temp_pool, text, length - 5);
        window.span = 0;
        return parse_number(number, 1, core::kMaxWindowCalls, window.calls) ? nullptr : words.wrong(text, kAllowed);
    }
    window.calls = 0;
    return parse_duration(text, core::kMinWindow, core::kMaxWindow, window.span) ? nullptr
                                                                                 : words.wrong(text, kAllowed);
}

const char* read_minimum_calls(const Words& words, std::uint32_t& minimum_calls) noexcept {
    return parse_number(words.word[0], 1, core::kMaxMinimumCalls, minimum_calls)
               ? nullptr
               : words.wrong(words.word[0], "a whole number from 1 to 1000000");
}

const char* read_failure_rate(const Words& words, std::uint32_t& failure_rate) noexcept {
    failure_rate = 0;
    if (is_word(words.word[0], "Off") || parse_percent(words.word[0], 1, failure_rate)) return nullptr;
    return words.wrong(words.word[0], "a percentage from 1 to 100 (\"50\" or \"50%\"), or Off");
}

const char* read_consecutive_failures(const Words& words, std::uint32_t& consecutive_failures) noexcept {
    consecutive_failures = 0;
    if (is_word(words.word[0], "Off") ||
        parse_number(words.word[0], 1, core::kMaxConsecutiveFailures, consecutive_failures)) {
        return nullptr;
    }
    return words.wrong(words.word[0], "a whole number from 1 to 1023, or Off");
}

const char* read_failure_count(const Words& words, std::uint32_t& failure_count) noexcept {
    failure_count = 0;
    if (is_word(words.word[0], "Off") || parse_number(words.word[0], 1, core::kMaxFailureCount, failure_count)) {
        return nullptr;
    }
    return words.wrong(words.word[0], "a whole number from 1 to 10000, or Off");
}

const char* read_slow_call(const Words& words, core::SlowCall& slow_call) noexcept {
    slow_call = core::SlowCall{};
    if (is_word(words.word[0], "Off")) {
        return words.count == 1 ? nullptr : words.wrong(words.word[1], "nothing after Off");
    }
    if (!parse_duration(words.word[0], 1, core::kDay, slow_call.threshold)) {
        return words.wrong(words.word[0], "a duration from 1ms to 24h (\"2s\"), or Off");
    }
    for (int i = 1; i < words.count; ++i) {
        const char* const word = words.word[i];
        if (const char* const rate = value_of(word, "rate")) {
            if (is_word(rate, "Off")) {
                slow_call.rate = 0;
            } else if (!parse_percent(rate, 1, slow_call.rate)) {
                return words.wrong(word, "rate=PERCENT from 1 to 100 (\"rate=50%\"), or rate=Off");
            }
        } else if (const char* const until = value_of(word, "until")) {
            slow_call.until_end = is_word(until, "end");
            if (!slow_call.until_end && !is_word(until, "first-byte")) {
                return words.wrong(word, "until=first-byte or until=end");
            }
        } else {
            return words.wrong(word,
                               "rate=PERCENT from 1 to 100 (\"rate=50%\"), rate=Off, until=first-byte or until=end");
        }
    }
    return nullptr;
}

const char* read_body_limit(const Words& words, std::uint32_t& body_limit) noexcept {
    return parse_number(words.word[0], 1, core::kMaxBodyLimit, body_limit)
               ? nullptr
               : words.wrong(words.word[0], "a number of bytes from 1 to 1048576");
}

const char* read_probe_body(const Words& words, std::uint32_t& probe_body) noexcept {
    return parse_number(words.word[0], 0, core::kMaxProbeBody, probe_body)
               ? nullptr
               : words.wrong(words.word[0], "a number of bytes from 0 to 16777216");
}

const char* read_settle(const Words& words, core::Millis& settle) noexcept {
    return parse_duration(words.word[0], 0, core::kDay, settle)
               ? nullptr
               : words.wrong(words.word[0], "a duration from 0s to 24h (\"10s\")");
}

const char* read_max_concurrent(const Words& words, std::uint32_t& max_concurrent) noexcept {
    max_concurrent = 0;
    if (is_word(words.word[0], "Off") || parse_number(words.word[0], 1, core::kMaxConcurrentCalls, max_concurrent)) {
        return nullptr;
    }
    return words.wrong(words.word[0], "a number of calls from 1 to 1000000, or Off");
}

const char* read_health_check(const Words& words, core::HealthCheck& health_check) noexcept {
    for (std::uint32_t i = 0; i < std::size(core::kHealthChecks); ++i) {
        health_check = static_cast<core::HealthCheck>(i);
        if (is_word(words.word[0], core::kHealthChecks[i])) return nullptr;
    }
    return words.wrong(words.word[0], "Off, Early, Gate or Both");
}

const char* read_probe_if(const Words& words, const ap_expr_info_t*& probe_if) noexcept {
    if (*words.word[0] == '\0') return words.wrong("", "an expression (\"%{REQUEST_METHOD} == 'GET'\")");
    return read_expression(words, words.word[0], words.word[0], probe_if);
}

const char* read_fallback(const Words& words, const char*& fallback) noexcept {
    fallback = nullptr;
    const char* const name = words.word[0];
    if (is_word(name, "Off")) return nullptr;
    constexpr std::size_t kPrefix = sizeof(BALANCER_PREFIX) - 1;
    if (ap_cstr_casecmpn(name, BALANCER_PREFIX, kPrefix) != 0 || name[kPrefix] == '\0' ||
        std::strchr(name + kPrefix, '/') != nullptr) {
        return words.wrong(name, "the name of a balancer (\"balancer://spare\"), or Off");
    }
    char* const lower = apr_pstrdup(words.cmd->pool, name);
    ap_str_tolower(lower);  // as mod_proxy keeps it
    fallback = lower;
    return nullptr;
}

const char* read_event_log(const Words& words, EventLog& event_log) noexcept {
    event_log = EventLog{};
    const char* const target = words.word[0];
    const char* const probes = words.count > 1 ? value_of(words.word[1], "probes") : "On";
    if (probes == nullptr || !parse_on_off(probes, event_log.with_probes))
        return words.wrong(words.word[1], "probes=On or probes=Off");
    if (is_word(target, "Off")) return nullptr;
    if (value_of(target, "probes") != nullptr) return words.wrong(target, "a file, \"|PROGRAM\", or Off before it");
    const char* program = target;
    while (*program == '|' || (program > target && *program == '$'))
        ++program;
    while (apr_isspace(*program))
        ++program;
    if (*program == '\0') return words.wrong(target, "a file, \"|PROGRAM\", or Off");
    event_log.target = apr_pstrdup(words.cmd->pool, target);
    return nullptr;
}

const char* read_on_off(const Words& words, bool& value) noexcept {
    return parse_on_off(words.word[0], value) ? nullptr : words.wrong(words.word[0], "On or Off");
}

const char* read_control(const Words& words, Control& control) noexcept {
    control = Control{};
    if (!parse_on_off(words.word[0], control.is_on)) {
        return words.wrong(words.word[0], "On or Off, and after On host=NAME for each name that the page answers to");
    }
    if (words.count > 1 && !control.is_on) return words.wrong(words.word[1], "nothing after Off");
    apr_array_header_t* hosts = nullptr;
    for (int i = 1; i < words.count; ++i) {
        const char* const host = value_of(words.word[i], "host");
        const char* const name = host != nullptr ? host_name(words.cmd->pool, host) : nullptr;
        if (name == nullptr) {
            return words.wrong(words.word[i],
                               "host=NAME with a host name, an IPv4 address or an [IPv6] address, without a port "
                               "(\"host=www.example.com\", \"host=10.0.0.7\", \"host=[2001:db8::7]\")");
        }
        if (hosts == nullptr) hosts = apr_array_make(words.cmd->pool, words.count - 1, sizeof(const char*));
        APR_ARRAY_PUSH(hosts, const char*) = name;
    }
    control.hosts = hosts;
    return nullptr;
}

const char* read_probe_header(const Words& words, const char*& probe_header) noexcept {
    const char* const name = words.word[0];
    probe_header = nullptr;
    if (is_word(name, "Off")) return nullptr;
    constexpr const char* kAllowed = "the name of a header field of your own (\"X-Circuit-Breaker-Probe\"), or Off";
    if (!is_token(name)) return words.wrong(name, kAllowed);
    for (const char* taken : {"On", "Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "TE",
                              "Trailer", "Keep-Alive", "Expect", "Content-Type", "Cookie", "Authorization"}) {
        if (is_word(name, taken)) return words.wrong(name, kAllowed);
    }
    probe_header = apr_pstrdup(words.cmd->pool, name);
    return nullptr;
}

}  // namespace cb::httpd
