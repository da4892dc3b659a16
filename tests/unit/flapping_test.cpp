// What the figures of a flapping breaker suggest, and the words for it.
#include "core/flapping.hpp"

#include <string>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

constexpr std::uint32_t bit(Reason reason) {
    return 1U << static_cast<unsigned>(reason);
}
constexpr std::uint32_t kByRate = bit(Reason::failure_rate);
constexpr std::uint32_t kBySlow = bit(Reason::slow_rate);
constexpr std::uint32_t kInARow = bit(Reason::consecutive_failures);

struct Line {
    Flapping figures;  // of four openings
    const char* suggested;
    const char* text = "";  // part of it
    std::uint32_t minimum_calls = 20;
    std::uint32_t failure_rate = 50;
    Millis ramp_up = 0;
};

const Line kLines[] = {
    {{}, "", "times (300 s); the figures suggest no other setting: the member itself comes and goes"},
    {{.recovery = 5000}, ""},
    {{.recovery = 5001}, "OpenTime", "failing for 5.001 s, longer than its open time of 5 s: if it needs so long to"},
    {{.recovery = 5000, .is_recovered = true}, ""},
    {{.recovery = 9000, .is_recovered = true}, "OpenTime", "it took 9 s to be well again, longer than its open"},
    // Probes that fail by their limits.
    {{.recovery = 9000, .failed_probes = 3, .timed_out_probes = 1}, "OpenTime"},
    {{.recovery = 9000, .failed_probes = 3, .timed_out_probes = 2}, "ProbeTimeout", "; 2 of its last 3 failed"},
    {{.failed_probes = 1, .timed_out_probes = 1}, "ProbeTimeout", "timed out after 0.7 s: if it is no more than slow"},
    {{.recovery = 9000, .is_recovered = true, .failed_probes = 1, .timed_out_probes = 1}, "OpenTime, ProbeTimeout"},
    {{.recovery = 9000, .failed_probes = 4, .slow_probes = 1}, "OpenTime"},
    {{.recovery = 9000, .failed_probes = 4, .slow_probes = 2}, "SlowCall", "; 2 of its last 4 failed probes were"},
    {{.failed_probes = 1, .slow_probes = 1}, "SlowCall", "only a little slower than 1.5 s: raise the time of"},
    // A share close to the limit: 20 calls show 25 % give or take 29.
    {{.reasons = kByRate, .failing = 0.2}, ""},
    {{.reasons = kByRate, .failing = 0.25}, "FailureRate"},
    {{.reasons = kByRate, .failing = 0.82}, ""},
    {{.reasons = kByRate, .failing = 1}, "", "", 20, 100},
    {{.reasons = kByRate, .failing = 0.25}, "", "", 100},
    {{.reasons = kByRate, .failing = 0.4}, "FailureRate", "40 % of all its calls fail, close to the limit of 50 %", 99},
    {{.reasons = ~kByRate, .failing = 0.4}, ""},
    {{.reasons = kBySlow, .slow = 0.02}, ""},
    {{.reasons = kBySlow, .slow = 0.4567}, "SlowCall", "45.7 % of all its calls are slow, close to the limit of 60 %"},
    {{.reasons = kBySlow, .slow = 0.45, .failed_probes = 1, .slow_probes = 1}, "SlowCall", "raise the time of"},
    {{.reasons = ~kBySlow, .slow = 0.45}, ""},
    // 0.3^5 comes once in 588 calls.
    {{.reasons = kInARow, .failing = 0.3, .calls_per_opening = 295}, "ConsecutiveFailures", "30 % of all its calls"},
    {{.reasons = kInARow, .failing = 0.1, .calls_per_opening = 1e9}, "ConsecutiveFailures", "that 5 in a row come"},
    {{.reasons = kInARow, .failing = 0.3, .calls_per_opening = 293}, ""},
    {{.reasons = kInARow, .failing = 1, .calls_per_opening = 1e9}, ""},
    {{.reasons = ~kInARow, .failing = 0.1, .calls_per_opening = 1e9}, ""},
    {{.after_recovery = 1}, ""},
    {{.after_recovery = 2}, "RampUp", "; 2 of these times it had just recovered: let its load grow slowly with"},
    {{.after_recovery = 2}, "", "", 20, 50, 60'000},
};

TEST(Flaps, SuggestWhatTheirFiguresShow) {
    for (const Line& line : kLines) {
        Flapping figures = line.figures;
        figures.openings = 4;
        figures.span = 300'000;
        Policy policy;
        policy.probe_timeout = 700;
        policy.slow_call = {1500, 60};
        policy.minimum_calls = line.minimum_calls;
        policy.failure_rate = line.failure_rate;
        policy.ramp_up.duration = line.ramp_up;
        const FlappingText words(figures, policy);
        std::string expected = line.suggested;
        for (std::size_t at = 0; !expected.empty() && at != std::string::npos; at = expected.find(' ', at + 1))
            expected.insert(at == 0 ? 0 : ++at, "CircuitBreaker");
        const std::string plain = "opened 4 times within 10 of its open times";
        EXPECT_EQ(words.summary, plain + (expected.empty() ? "" : ": " + expected)) << "line " << &line - kLines;
        EXPECT_TRUE(std::string(words.text).starts_with(plain + " (300 s); ")) << words.text;
        EXPECT_NE(std::string(words.text).find(line.text), std::string::npos) << words.text << "\n" << line.text;
    }
}

}  // namespace
}  // namespace cb::test
