// What the breakers do, as lines of the error log: one per change of state, none per request.
#include "flapping_text.hpp"
#include "runtime.hpp"

namespace cb::httpd {
namespace {

constexpr int kMaxText = 256;

/// What led to the change, in numbers.
void evidence_text(char (&text)[kMaxText], const shm::Change& change) noexcept {
    const core::Sums& sums = change.sums;
    switch (change.reason) {
        case core::Reason::failure_rate:
            apr_snprintf(text, kMaxText, ", %u of %u calls failed", sums.failures, sums.calls);
            break;
        case core::Reason::slow_rate:
            apr_snprintf(text, kMaxText, ", %u of %u calls were slow", sums.slow_calls, sums.timed_calls);
            break;
        case core::Reason::consecutive_failures:
            apr_snprintf(text, kMaxText, ", %u in a row, %u of %u calls failed", change.consecutive, sums.failures,
                         sums.calls);
            break;
        case core::Reason::fatal:
            apr_snprintf(text, kMaxText, ", %u of %u calls failed", sums.failures, sums.calls);
            break;
        case core::Reason::probe_failed:
        case core::Reason::no_evidence:
        case core::Reason::probes_succeeded:
            // The counts of before: the probe that decided comes on top.
            apr_snprintf(text, kMaxText, ", %u succeeded, %u failed, %u proved nothing",
                         change.before.successes + (change.reason == core::Reason::probes_succeeded ? 1U : 0U),
                         change.before.failures + (change.reason == core::Reason::probe_failed ? 1U : 0U),
                         change.before.neutral + (change.reason == core::Reason::no_evidence ? 1U : 0U));
            break;
        default:
            text[0] = '\0';
    }
}

const char* separator(const shm::Slot& slot) noexcept {
    return slot.identity.balancer[0] != '\0' ? " of " : "";
}

class LogObserver final : public shm::Observer {
  public:
    void on_change(const shm::Slot& slot, const shm::Change& change) noexcept override {
        char numbers[kMaxText];
        char next_probe[64] = "";
        evidence_text(numbers, change);
        if (change.to == core::State::open) {
            apr_snprintf(next_probe, sizeof next_probe, "; next probe in %.1f s (level %u)",
                         static_cast<double>(change.open_for) / 1000.0, change.level);
        }
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, runtime.server, "circuit breaker: member %s%s%s: %s -> %s: %s%s%s",
                     slot.identity.name, separator(slot), slot.identity.balancer, core::name(change.from).data(),
                     core::name(change.to).data(), core::name(change.reason).data(), numbers, next_probe);
    }

    void on_suppressed(const shm::Slot& slot, core::Reason reason, const core::Sums& sums) noexcept override {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                     "circuit breaker: member %s%s%s: suppressed: would have opened (%s, %u of %u calls failed), but "
                     "CircuitBreakerMaxOpen allows no more open members",
                     slot.identity.name, separator(slot), slot.identity.balancer, core::name(reason).data(),
                     sums.failures, sums.calls);
    }

    void on_probe_lost(const shm::Slot& slot) noexcept override {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                     "circuit breaker: member %s%s%s: probe-lost: a probe was sent and its deadline passed without an "
                     "answer; it counts as failed",
                     slot.identity.name, separator(slot), slot.identity.balancer);
    }

    void on_flapping(const shm::Slot& slot, const core::Flapping& figures) noexcept override {
        char text[kFlappingText];
        flapping_text(text, figures);
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server, "circuit breaker: member %s%s%s: flapping: %s",
                     slot.identity.name, separator(slot), slot.identity.balancer, text);
    }
};

constinit LogObserver observer;

}  // namespace

shm::Observer* log_observer() noexcept {
    return &observer;
}

}  // namespace cb::httpd
