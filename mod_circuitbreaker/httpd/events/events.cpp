// What the breakers do, as lines of the error log and of the event log: one per change of state and one
// per probe, none per other request.
#include "events.hpp"

#include "event_log.hpp"
#include "httpd/members/health.hpp"
#include "probe_event.hpp"
#include "shm/changes.hpp"

namespace cb::httpd {
namespace {

constexpr int kMaxText = 256;

void probes_text(char (&text)[kMaxText], const shm::Round& round) noexcept {
    apr_snprintf(text, kMaxText, ", %u succeeded, %u failed, %u proved nothing", round.succeeded, round.failed,
                 round.neutral);
}

/// What led to the change, in numbers.
void evidence_text(char (&text)[kMaxText], const shm::Change& change) noexcept {
    const core::Sums& sums = change.sums;
    switch (change.reason) {
        case core::Reason::failure_rate:
        case core::Reason::failure_count:
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
            if (change.from == core::State::half_open) return probes_text(text, change.round);
            apr_snprintf(text, kMaxText, ", %u of %u calls failed", sums.failures, sums.calls);
            break;
        case core::Reason::probe_failed:
        case core::Reason::no_evidence:
        case core::Reason::probes_succeeded:
            return probes_text(text, change.round);
        default:
            text[0] = '\0';
    }
}

void write_change(const shm::Slot& slot, const shm::Change& change) noexcept {
    EventData event;
    event.from = change.from;
    event.to = change.to;
    event.reason = core::name(change.reason);
    event.sums = change.sums;
    event.level = change.level;
    event.number = change.number;
    event.open_for = change.open_for;
    event.round = change.round;
    event.with_recent = change.to == core::State::open;
    write_event(slot, event);
}

/// What is no change of state: the breaker stays as it is.
void write_incident(const shm::Slot& slot, EventName name, const char* reason, const core::Sums& sums,
                    core::Millis open_for = 0) noexcept {
    const shm::NumberedWord now = shm::numbered_word(slot);
    const core::Word word = core::unpack(now.word);
    EventData event;
    event.name = name;
    event.from = word.state;
    event.reason = reason;
    event.sums = sums;
    event.level = word.level;
    event.number = now.number;
    event.open_for = open_for;
    event.round = {word.round, word.successes, word.failures, word.neutral};
    event.with_recent = true;
    write_event(slot, event);
}

const Breaker* breaker_of(const shm::Slot& slot) noexcept {
    return runtime.registry != nullptr ? runtime.registry->at(runtime.segment.index_of(slot)) : nullptr;
}

/// It has just opened: only a health check that begins from now on counts.
void look_at_checks(const shm::Slot& slot) noexcept {
    const Breaker* const breaker = breaker_of(slot);
    if (breaker != nullptr) heed_health_check(*breaker, *breaker->slot.load(std::memory_order_acquire));
}

bool needs_check(const shm::Slot& slot) noexcept {
    const Breaker* const breaker = breaker_of(slot);
    return breaker != nullptr && is_awaiting_check(*breaker, slot);
}

class LogObserver final : public shm::Observer {
  public:
    void on_change(const shm::Slot& slot, const shm::Change& change) noexcept override {
        char numbers[kMaxText];
        char next_probe[128] = "";
        evidence_text(numbers, change);
        if (change.to == core::State::open) {
            apr_snprintf(next_probe, sizeof next_probe, "; next probe in %.1f s (level %u)%s",
                         static_cast<double>(change.open_for) / 1000.0, change.level,
                         needs_check(slot) ? ", or later: a health check has to pass first" : "");
        }
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, runtime.server, "circuit breaker: member %s: %s -> %s: %s%s%s",
                     LogName(slot.identity).text, core::name(change.from), core::name(change.to),
                     core::name(change.reason), numbers, next_probe);
        write_change(slot, change);
        if (change.to == core::State::open) look_at_checks(slot);
    }

    void on_reset(const shm::Slot& slot, std::uint64_t number) noexcept override {
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, runtime.server,
                     "circuit breaker: member %s: reset: it was closed already, and counts anew",
                     LogName(slot.identity).text);
        EventData event;
        event.name = EventName::reset;
        event.reason = core::name(core::Reason::reset);
        event.number = number;
        event.with_recent = true;
        write_event(slot, event);
    }

    void on_suppressed(const shm::Slot& slot, core::Reason reason, const core::Sums& sums) noexcept override {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                     "circuit breaker: member %s: suppressed: would have opened (%s, %u of %u calls failed), but "
                     "CircuitBreakerMaxOpen allows no more open members",
                     LogName(slot.identity).text, core::name(reason), sums.failures, sums.calls);
        write_incident(slot, EventName::suppressed, core::name(reason), sums);
    }

    void on_probe_lost(const shm::Slot& slot) noexcept override {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                     "circuit breaker: member %s: probe-lost: a probe was sent and its deadline passed without an "
                     "answer; it counts as failed",
                     LogName(slot.identity).text);
        write_incident(slot, EventName::probe_lost, "deadline", {});
    }

    void on_probe(const shm::Slot& slot, const shm::ProbeEnd& end) noexcept override {
        tell_probe_of_others(slot, end);
    }

    void on_early_round(const shm::Slot& slot, const shm::EarlyRound& round) noexcept override {
        const double left = static_cast<double>(round.left) / 1000.0;
        if (!round.has_failed) {
            // Once a second as long as nothing else can serve: at notice level the first time only.
            ap_log_error(APLOG_MARK, round.is_repeated ? APLOG_INFO : APLOG_NOTICE, 0, runtime.server,
                         "circuit breaker: member %s: %s; it was to be probed in %.1f s (level %u)",
                         LogName(slot.identity).text, core::name(core::Reason::no_other_member), left, round.level);
            return;
        }
        char numbers[kMaxText];
        probes_text(numbers, round.round);
        ap_log_error(APLOG_MARK, APLOG_INFO, 0, runtime.server,
                     "circuit breaker: member %s: stays open: its early probes failed: %s%s; next probe in %.1f s "
                     "(level %u), or when there is no other member",
                     LogName(slot.identity).text, core::name(round.reason), numbers, left, round.level);
        look_at_checks(slot);
    }

    void on_flapping(const shm::Slot& slot, const core::Flapping& figures,
                     const core::Policy& policy) noexcept override {
        const core::FlappingText words(figures, policy);
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server, "circuit breaker: member %s: flapping: %s",
                     LogName(slot.identity).text, words.text);
        write_incident(slot, EventName::flapping, words.summary, {});
    }

    void on_too_cautious(const shm::Slot& slot, const core::Outage& outage,
                         const core::Policy& policy) noexcept override {
        const core::OutageText words(outage, policy);
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, runtime.server, "circuit breaker: member %s: too cautious: %s",
                     LogName(slot.identity).text, words.text);
        write_incident(slot, EventName::too_cautious, words.text, {});
    }

    void on_probe_soon(const shm::Slot& slot, core::Millis left) noexcept override {
        ap_log_error(APLOG_MARK, APLOG_INFO, 0, runtime.server,
                     "circuit breaker: member %s: probe-soon: it may be probed in %.1f s", LogName(slot.identity).text,
                     static_cast<double>(left) / 1000.0);
        write_incident(slot, EventName::probe_soon, "open time ends", {}, left);
    }

    void on_stale(const shm::Slot& slot, const core::KeptCalls& calls) noexcept override {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                     "circuit breaker: member %s: stale: %u of the last %u calls on kept connections found them "
                     "closed. If the member closes idle connections sooner than httpd, a ttl= below its keep-alive "
                     "timeout helps, or disablereuse=on; if that does not, it dies over requests",
                     LogName(slot.identity).text, calls.stale, calls.calls);
    }
};

constinit LogObserver observer;

}  // namespace

shm::Observer* log_observer() noexcept {
    return &observer;
}

}  // namespace cb::httpd
