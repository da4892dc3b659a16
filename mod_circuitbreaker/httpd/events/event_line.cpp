#include "event_line.hpp"

#include "core/text.hpp"
#include "httpd/shown.hpp"
#include "shm/recorder.hpp"

namespace cb::httpd {
namespace {

using core::JsonWriter;

/// With everything else at its longest these leave more than 700 bytes for `recent`.
constexpr std::size_t kMostVhost = 512;
constexpr std::size_t kMostBalancer = 512;
constexpr std::size_t kMostMember = 1536;
constexpr std::size_t kMostPath = 256;

const char* name_of(EventName name) noexcept {
    switch (name) {
        case EventName::transition:
            return "transition";
        case EventName::reset:
            return "reset";
        case EventName::suppressed:
            return "suppressed";
        case EventName::flapping:
            return "flapping";
        case EventName::probe_lost:
            return "probe-lost";
        case EventName::probe_soon:
            return "probe-soon";
        case EventName::too_cautious:
            return "too-cautious";
        case EventName::probe:
            return "probe";
    }
    return "unknown";
}

void write_time(JsonWriter& json, apr_time_t at) noexcept {
    json.raw("\"");
    json.raw(UtcText(at).text);
    json.raw("\"");
}

void member(JsonWriter& json, const char* key, std::uint64_t value) noexcept {
    json.raw(",\"");
    json.raw(key);
    json.raw("\":");
    json.number(value);
}

void member(JsonWriter& json, const char* key, std::string_view value, std::size_t most) noexcept {
    json.raw(",\"");
    json.raw(key);
    json.raw("\":");
    json.string(value, most);
}

void flag(JsonWriter& json, const char* key, bool value) noexcept {
    json.raw(",\"");
    json.raw(key);
    json.raw(value ? "\":true" : "\":false");
}

void null_member(JsonWriter& json, const char* key) noexcept {
    json.raw(",\"");
    json.raw(key);
    json.raw("\":null");
}

void outcome_member(JsonWriter& json, core::Outcome outcome) noexcept {
    char status[16];
    apr_snprintf(status, sizeof status, "%u", static_cast<unsigned>(outcome));
    member(json, "outcome", core::is_status(outcome) ? status : core::class_name(outcome), JsonWriter::kNoLimit);
}

/// Percent with one decimal, as CircuitBreakerFailureRate counts it.
void write_rate(JsonWriter& json, const core::Sums& sums) noexcept {
    const std::uint64_t tenths =
        sums.calls > 0 ? (std::uint64_t{sums.failures} * 1000 + sums.calls / 2) / sums.calls : 0;
    json.raw(",\"failure_rate\":");
    json.number(tenths / 10);
    json.raw(".");
    json.number(tenths % 10);
}

void write_call(JsonWriter& json, const shm::FailedCall& call, core::Millis now, apr_time_t now_wall) noexcept {
    json.raw("{\"time\":");
    const core::Millis ago = now > call.at ? now - call.at : 0;
    write_time(json, now_wall - apr_time_from_msec(static_cast<apr_int64_t>(ago)));
    outcome_member(json, call.outcome);
    member(json, "latency_ms", call.latency);
    member(json, "method", method_name(call.method), JsonWriter::kNoLimit);
    flag(json, "probe", call.is_probe);
    flag(json, "slow", call.is_slow);
    if (call.path[0] != '\0') member(json, "path", call.path, kMostPath);
    json.raw("}");
}

void write_probe(JsonWriter& json, const shm::ProbeEnd& probe, bool is_failed_over) noexcept {
    member(json, "round", probe.round.size);
    probe.outcome != core::Outcome::none ? outcome_member(json, probe.outcome) : null_member(json, "outcome");
    member(json, "verdict", core::name(probe.verdict), JsonWriter::kNoLimit);
    member(json, "result", shm::name(probe.result), JsonWriter::kNoLimit);
    if (probe.is_of_its_call()) {
        member(json, "latency_ms", probe.latency);
        member(json, "method", method_name(probe.method), JsonWriter::kNoLimit);
    } else {
        null_member(json, "latency_ms");
        null_member(json, "method");
    }
    flag(json, "failover", is_failed_over);
}

/// Oldest first. As many of the newest as there is room for.
void write_recent(JsonWriter& json, const shm::Slot& slot, std::size_t room, apr_time_t now_wall) noexcept {
    shm::FailedCall calls[shm::kRecordedCalls];
    const std::uint32_t count = shm::read_failed_calls(slot, calls);
    const core::Millis present = now();
    std::size_t used = 0;
    std::uint32_t first = count;
    while (first > 0) {
        char text[640];
        JsonWriter one(text, sizeof text);
        write_call(one, calls[first - 1], present, now_wall);
        if (one.is_cut() || used + one.length() + 1 > room) break;
        used += one.length() + 1;
        --first;
    }
    for (std::uint32_t i = first; i < count; ++i) {
        if (i > first) json.raw(",");
        write_call(json, calls[i], present, now_wall);
    }
}

}  // namespace

std::size_t write_event_line(char (&line)[kMaxEventLine], const shm::Slot& slot, const EventData& event) noexcept {
    constexpr std::string_view kEnd = "]}\n";
    const MemberNames names = names_of(slot);
    const apr_time_t now = apr_time_now();
    JsonWriter json(line, sizeof line - kEnd.size());
    json.raw("{\"time\":");
    write_time(json, now);
    member(json, "event", name_of(event.name), JsonWriter::kNoLimit);
    member(json, "vhost", names.vhost, kMostVhost);
    member(json, "balancer", names.balancer, kMostBalancer);
    json.raw(",\"member\":");
    json.string(names.member, kMostMember);
    member(json, "from", core::name(event.from), JsonWriter::kNoLimit);
    if (event.name == EventName::transition) {
        member(json, "to", core::name(event.to), JsonWriter::kNoLimit);
    } else {
        json.raw(",\"to\":null");
    }
    member(json, "reason", event.reason, kMostPath);
    member(json, "calls", event.sums.calls);
    member(json, "failures", event.sums.failures);
    member(json, "slow", event.sums.slow_calls);
    write_rate(json, event.sums);
    member(json, "level", event.level);
    member(json, "open_for_ms", event.open_for);
    member(json, "generation", event.number);
    json.raw(",\"probes\":{\"succeeded\":");
    json.number(event.round.succeeded);
    member(json, "failed", event.round.failed);
    member(json, "neutral", event.round.neutral);
    json.raw("}");
    if (event.probe != nullptr) write_probe(json, *event.probe, event.is_failed_over);
    member(json, "pid", runtime.process.pid);
    json.raw(",\"recent\":[");
    if (event.with_recent) write_recent(json, slot, sizeof line - kEnd.size() - json.length(), now);
    memcpy(line + json.length(), kEnd.data(), kEnd.size());
    return json.length() + kEnd.size();
}

}  // namespace cb::httpd
