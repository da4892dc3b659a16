#include "status.hpp"

#include <bit>

#include "refuse.hpp"
#include "runtime.hpp"

namespace cb::httpd {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

const char* mode_name(core::Mode mode) noexcept {
    return mode == core::Mode::on ? "On" : mode == core::Mode::observe ? "Observe" : "Off";
}

void put(request_rec* r, const char* key, std::uint64_t value) noexcept {
    ap_rprintf(r, "%s: %" APR_UINT64_T_FMT "\n", key, value);
}

std::uint64_t sum_of(const shm::Atomic64* counters, std::size_t count) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        sum += counters[i].load(kRelaxed);
    return sum;
}

void put_totals(request_rec* r, const shm::Totals& totals) noexcept {
    put(r, "Calls", totals.calls.load(kRelaxed));
    for (std::uint32_t i = 0; i < core::kVerdicts; ++i) {
        ap_rprintf(r, "Verdict-%s: %" APR_UINT64_T_FMT "\n", core::name(static_cast<core::Verdict>(i)).data(),
                   totals.verdict[i].load(kRelaxed));
    }
    for (std::uint32_t i = 0; i < core::kClasses; ++i) {
        const auto outcome = static_cast<core::Outcome>(static_cast<std::uint32_t>(core::Outcome::connect) + i);
        ap_rprintf(r, "Outcome-%s: %" APR_UINT64_T_FMT "\n", core::class_name(outcome).data(),
                   totals.outcome_class[i].load(kRelaxed));
    }
    for (int i = 0; i < 5; ++i) {
        ap_rprintf(r, "Outcome-%dxx: %" APR_UINT64_T_FMT "\n", i + 1, totals.status[i].load(kRelaxed));
    }
    put(r, "Slow", totals.slow.load(kRelaxed));
    put(r, "Probes", totals.probes.load(kRelaxed));
    put(r, "Probes-lost", totals.probes_lost.load(kRelaxed));
    put(r, "Late", totals.late.load(kRelaxed));
    put(r, "Suppressed", totals.suppressed.load(kRelaxed));
    put(r, "Failovers", totals.failovers.load(kRelaxed));
    put(r, "Refused", sum_of(totals.refused, shm::kRefusals));
    put(r, "Would-refuse", sum_of(totals.would_refuse, shm::kRefusals));
    put(r, "Transitions", sum_of(&totals.transition[0][0], std::size_t{core::kStates} * core::kStates));
    put(r, "Opened",
        totals.transition[static_cast<int>(core::State::closed)][static_cast<int>(core::State::open)].load(kRelaxed) +
            totals.transition[static_cast<int>(core::State::half_open)][static_cast<int>(core::State::open)].load(
                kRelaxed) +
            totals.transition[static_cast<int>(core::State::recovering)][static_cast<int>(core::State::open)].load(
                kRelaxed));
}

void put_member(request_rec* r, std::uint32_t index) noexcept {
    const shm::Slot& slot = runtime.segment.slots[index];
    const Breaker* const breaker = runtime.registry != nullptr ? runtime.registry->at(index) : nullptr;
    const core::Policy policy = breaker != nullptr ? breaker->policy : core::Policy{};
    const core::Word word = core::unpack(slot.word.load(std::memory_order_seq_cst));
    const core::Millis now = runtime.process.clock.now();
    const core::Sums sums = shm::sums_now(slot, policy, runtime.process);
    ap_rprintf(r, "Member: %s\n", breaker != nullptr ? breaker->name : slot.identity.name);
    ap_rprintf(r, "Balancer: %s\n", slot.identity.balancer);
    ap_rprintf(r, "Vhost: %s\n", breaker != nullptr ? breaker->vhost : "");
    ap_rprintf(r, "Mode: %s\n", breaker != nullptr ? mode_name(policy.mode) : "unknown");
    ap_rprintf(r, "State: %s\n", core::name(word.state).data());
    put(r, "Level", word.level);
    put(r, "Generation", word.generation);
    put(r, "Since-ms", now - slot.since.load(kRelaxed));
    put(r, "Next-probe-ms", word.state == core::State::open ? core::open_remaining(word, now) : 0);
    put(r, "Window-calls", sums.calls);
    put(r, "Window-failures", sums.failures);
    put(r, "Window-slow", sums.slow_calls);
    put(r, "Consecutive", word.consecutive);
    put(r, "Probes-in-flight", static_cast<std::uint64_t>(std::popcount(word.slots)));
    put(r, "Probes-limit", policy.probes.concurrent);
    std::uint64_t flying = 0;
    const auto columns = runtime.segment.header->columns_used.load(kRelaxed);
    for (std::uint64_t c = 0; c < columns; ++c)
        flying += runtime.segment.row(index)[c].load(kRelaxed);
    put(r, "In-flight", flying);
    std::uint64_t leases = 0;
    for (const shm::Atomic64& lease : slot.lease) {
        leases += shm::Lease::of(lease.load(kRelaxed)).state != shm::LeaseState::free ? 1U : 0U;
    }
    put(r, "Leases", leases);
    put_totals(r, slot.totals);
    ap_rputs("\n", r);
}

}  // namespace

extern "C" int cb_on_status(request_rec* r) noexcept {
    if (r->handler == nullptr || strcmp(r->handler, "circuitbreaker-status") != 0) return DECLINED;
    r->allowed = AP_METHOD_BIT << M_GET;
    if (r->method_number != M_GET) return HTTP_METHOD_NOT_ALLOWED;
    ap_set_content_type(r, "text/plain; charset=utf-8");
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    if (r->header_only || !runtime.segment.is_valid()) return OK;
    for (std::uint32_t i = 0; i < runtime.segment.header->capacity; ++i) {
        if (runtime.segment.is_ready(i)) put_member(r, i);
    }
    return OK;
}

}  // namespace cb::httpd
