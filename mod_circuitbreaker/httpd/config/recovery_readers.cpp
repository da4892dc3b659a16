#include <cstring>

#include "parse.hpp"
#include "readers.hpp"

namespace cb::httpd {
namespace {

/// `least`..`most`, or with a percent sign a share of the round, `least_percent`..100.
bool parse_share(const char* text, std::uint32_t least, std::uint32_t most, std::uint32_t least_percent,
                 std::uint32_t& value, bool& is_share) noexcept {
    is_share = *text != '\0' && text[std::strlen(text) - 1] == '%';
    return is_share ? parse_percent(text, least_percent, value) : parse_number(text, least, most, value);
}

}  // namespace

const char* read_open_time(const Words& words, core::OpenTime& open) noexcept {
    open = core::OpenTime{};
    bool has_max = false;
    if (!parse_duration(words.word[0], core::kMinOpenTime, core::kMaxOpenTime, open.base)) {
        return words.wrong(words.word[0], "a duration from 100ms to 24h (\"5s\")");
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
        } else if (const char* min = value_of(word, "min")) {
            if (!parse_duration(min, core::kMinOpenTime, core::kMaxOpenTime, open.min)) {
                return words.wrong(word, "min=DURATION from 100ms to 24h (\"min=1s\")");
            }
        } else if (const char* notice = value_of(word, "notice")) {
            open.notice = 0;
            if (!is_word(notice, "Off") && !parse_duration(notice, 1, core::kMaxOpenTime, open.notice)) {
                return words.wrong(word, "notice=DURATION from 1ms to 24h (\"notice=5s\"), or notice=Off");
            }
        } else if (const char* retry_after = value_of(word, "retry-after")) {
            if (!parse_on_off(retry_after, open.retry_after)) {
                return words.wrong(word, "retry-after=On or retry-after=Off");
            }
        } else {
            return words.wrong(
                word,
                "max=DURATION, factor=NUMBER, jitter=PERCENT, min=DURATION, notice=DURATION or retry-after=On|Off");
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

const char* read_max_open(const Words& words, std::uint32_t& max_open) noexcept {
    return parse_percent(words.word[0], 1, max_open) ? nullptr
                                                     : words.wrong(words.word[0], "a percentage from 1 to 100");
}

const char* read_probes(const Words& words, core::Probes& probes) noexcept {
    if (!parse_number(words.word[0], 1, core::kMaxProbes, probes.round)) {
        return words.wrong(words.word[0], "a number of probes from 1 to 63");
    }
    // What is not said follows from the number of probes; a concurrent of 0 stands for that.
    probes = core::Probes{.round = probes.round, .concurrent = 0, .successes = 0, .max = probes.round};
    bool has_successes = false;
    const char* tolerated = "0";  // as written
    for (int i = 1; i < words.count; ++i) {
        const char* const word = words.word[i];
        if (const char* concurrent = value_of(word, "concurrent")) {
            if (!parse_number(concurrent, 1, core::kMaxConcurrent, probes.concurrent)) {
                return words.wrong(word, "concurrent=N from 1 to 16");
            }
        } else if (const char* tolerate = value_of(word, "tolerate")) {
            tolerated = tolerate;
            if (!parse_share(tolerate, 0, core::kMaxTolerate, 0, probes.tolerate, probes.is_tolerate_share)) {
                return words.wrong(word, "tolerate=N from 0 to 15, or a share of the round (\"tolerate=50%\")");
            }
        } else if (const char* successes = value_of(word, "successes")) {
            if (!parse_share(successes, 1, core::kMaxProbes, 1, probes.successes, probes.is_successes_share)) {
                return words.wrong(word, "successes=N from 1 to 63, or a share of the round (\"successes=75%\")");
            }
            has_successes = true;
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
    if (!has_successes && core::tolerated(probes, probes.round) >= probes.round) {
        return words.contradiction(apr_psprintf(
            words.cmd->pool,
            "\"tolerate=%s\" allows all %u probes of a round to fail, so none would have to succeed: lower "
            "it, or write successes=N",
            tolerated, probes.round));
    }
    // As many as are left beside the tolerated failures. With a share that depends on the round: core::needed().
    if (!has_successes && !probes.is_tolerate_share) {
        probes.successes = core::needed(probes, probes.round);
    }
    if (!probes.is_successes_share && probes.successes > probes.round) {
        return words.contradiction(apr_psprintf(
            words.cmd->pool, "successes=%u is more than the %u probes of a round, so it could never recover",
            probes.successes, probes.round));
    }
    return nullptr;
}

const char* read_probe_timeout(const Words& words, core::Millis& probe_timeout) noexcept {
    probe_timeout = 0;
    if (is_word(words.word[0], "Off") || parse_duration(words.word[0], 1, core::kDay, probe_timeout)) {
        return nullptr;
    }
    return words.wrong(words.word[0], "a duration from 1ms to 24h (\"2s\"), or Off (the member's own timeout)");
}

const char* read_ramp_up(const Words& words, core::RampUp& ramp_up) noexcept {
    ramp_up = core::RampUp{};
    if (is_word(words.word[0], "Off")) {
        return words.count == 1 ? nullptr : words.wrong(words.word[1], "nothing after Off");
    }
    if (!parse_duration(words.word[0], 100, core::kDay, ramp_up.duration)) {
        return words.wrong(words.word[0], "a duration from 100ms to 24h (\"60s\"), or Off");
    }
    for (int i = 1; i < words.count; ++i) {
        const char* const from = value_of(words.word[i], "from");
        if (from == nullptr || !parse_percent(from, 0, ramp_up.from)) {
            return words.wrong(words.word[i], "from=PERCENT from 0 to 100 (\"from=10%\")");
        }
    }
    return nullptr;
}

const char* read_failover(const Words& words, core::Failover& failover) noexcept {
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

}  // namespace cb::httpd
