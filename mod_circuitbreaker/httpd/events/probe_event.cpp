#include "probe_event.hpp"

#include "event_log.hpp"
#include "shm/changes.hpp"

namespace cb::httpd {
namespace {

constexpr int kMaxText = 128;

const char* reason_of(const shm::ProbeEnd& end, const char* verdict) noexcept {
    const bool is_known = end.is_of_its_call() && end.result != shm::ProbeResult::lost && verdict != nullptr;
    if (end.by == shm::EndedBy::deadline && !is_known) return "deadline";
    return end.by == shm::EndedBy::death ? "its process died" : verdict;
}

/// Where its round stands now.
void round_text(char (&text)[kMaxText], const shm::Round& round) noexcept {
    if (round.size == 0) {
        apr_snprintf(text, kMaxText, "its round was over");
        return;
    }
    char neutral[32] = "";
    if (round.neutral > 0) apr_snprintf(neutral, sizeof neutral, ", %u proved nothing", round.neutral);
    apr_snprintf(text, kMaxText, "%u of %u succeeded, %u failed%s", round.succeeded, round.size, round.failed, neutral);
}

void tell(const shm::Slot& slot, const shm::ProbeEnd& end, const char* reason, bool is_failed_over) noexcept {
    char latency[48] = "";
    char round[kMaxText];
    if (end.is_of_its_call())
        apr_snprintf(latency, sizeof latency, " in %" APR_UINT64_T_FMT " ms%s", end.latency, end.slow ? " (slow)" : "");
    round_text(round, end.round);
    ap_log_error(APLOG_MARK, APLOG_INFO, 0, runtime.server, "circuit breaker: member %s: probe: %s%s, %s%s",
                 LogName(slot.identity).text, reason, latency, round,
                 is_failed_over ? "; another member got the request" : "");
    if (!runtime.logs_probes) return;
    const shm::NumberedWord now = shm::numbered_word(slot);
    EventData event;
    event.name = EventName::probe;
    event.from = core::state_of(now.word);
    event.reason = reason;
    event.level = core::unpack(now.word).level;
    event.number = now.number;
    event.round = end.round;
    event.probe = &end;
    event.is_failed_over = is_failed_over;
    write_event(slot, event);
}

}  // namespace

void tell_probe(std::optional<UntoldProbe>& probe, bool is_failed_over) noexcept {
    if (!probe) return;
    tell(*probe->slot, probe->end, reason_of(probe->end, probe->verdict), is_failed_over);
    probe.reset();
}

void tell_probe_of_others(const shm::Slot& slot, const shm::ProbeEnd& end) noexcept {
    tell(slot, end, reason_of(end, core::name(end.verdict)), false);
}

}  // namespace cb::httpd
