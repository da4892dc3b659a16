#include "recovery.hpp"

#include <algorithm>
#include <atomic>
#include <deque>

#include "balancer.hpp"
#include "shm/retries.hpp"

namespace cb::bench {
namespace {

struct Request {
    std::uint32_t arrived = 0;
    std::uint32_t calls = 0;
    bool tried[kMembers] = {};
};

/// A call in a member's queue. Its caller may have given up.
struct Call {
    Request request;
    std::uint32_t deadline = 0;
    shm::Permit permit;
    bool is_waited_for = true;
};

struct Member {
    std::deque<Call> queue;
    std::uint32_t credit = 0;  // work done on the first call, in thousandths
    std::uint32_t next_deadline = ~0U;
};

core::Policy policy_of(const Setting& setting) {
    core::Policy policy;
    policy.mode = core::Mode::on;
    policy.open_time = {5000, 10'000, 2000, 0, false};
    policy.probe_timeout = kProbeTimeout;
    policy.failover.mode = setting.failover == Failover::off      ? core::FailoverMode::off
                           : setting.failover == Failover::probes ? core::FailoverMode::probes
                                                                  : core::FailoverMode::all;
    if (setting.failover == Failover::all_in_5s) policy.failover.timeout = 5 * kMs;
    if (setting.has_ramp) policy.ramp_up.duration = kRampSeconds * kMs;
    return policy;
}

class Simulation {
  public:
    explicit Simulation(const Setting& setting)
        : setting_(setting), policy_(policy_of(setting)), segment_(policy_, kMembers) {}

    Result run() {
        for (now_ = 0; now_ < kSeconds * kMs; ++now_) {
            segment_.now = kStart + now_;
            if (now_ == kBackFrom * kMs) restart_member_zero();
            for (std::uint32_t i = 0; i < kMembers; ++i) {
                serve(i);
                give_up(i);
            }
            for (int step = 0; step < 10; ++step) {  // a tenth of a millisecond each
                if (random_.below(10'000) < kRate) arrive();
            }
            if (now_ >= kBackFrom * kMs && now_ < kWellFrom * kMs) {
                const auto length = static_cast<std::uint32_t>(members_[0].queue.size());
                result_.longest_queue = std::max(result_.longest_queue, length);
            }
        }
        summarise();
        return result_;
    }

  private:
    [[nodiscard]] std::uint32_t second() const { return now_ / kMs; }

    void arrive() {
        ++result_.requests;
        Request request;
        request.arrived = now_;
        dispatch(request);
    }

    /// As the module does it: members whose breaker refuses are hidden from the choice, and whom a permit is refused is
    /// hidden next.
    void dispatch(Request& request) {
        std::vector<bool> is_hidden(kMembers);
        for (std::uint32_t i = 0; i < kMembers; ++i) {
            is_hidden[i] = request.tried[i] || (setting_.has_breaker && shm::peek(*segment_.slot[i], policy_,
                                                                                  process()) == core::Decision::refuse);
        }
        for (;;) {
            const std::uint32_t chosen = byrequests_.choose(is_hidden);
            if (chosen == kMembers) return fail();
            shm::Admission admission;
            if (setting_.has_breaker) {
                admission = shm::admit(*segment_.slot[chosen], policy_, process(), {}, true, kTimeout + 20 * kMs);
            }
            if (admission.refusal == shm::Refusal::none) return send(request, chosen, admission.permit);
            is_hidden[chosen] = true;
        }
    }

    void send(Request& request, std::uint32_t to, const shm::Permit& permit) {
        Member& member = members_[to];
        request.tried[to] = true;
        ++request.calls;
        if (to == 0) ++result_.second[second()].calls;
        Call call;
        call.request = request;
        call.permit = permit;
        call.deadline = now_ + (permit.kind == shm::PermitKind::probe ? kProbeTimeout : kTimeout);
        if (member.queue.size() >= kBacklog) return end(call, to, core::status_outcome(503), core::Verdict::failure);
        member.next_deadline = std::min(member.next_deadline, call.deadline);
        member.queue.push_back(call);
    }

    void serve(std::uint32_t i) {
        Member& member = members_[i];
        member.credit += i == 0 ? capacity_at(now_) : kCapacity;
        while (member.credit >= kMs && !member.queue.empty()) {
            member.credit -= kMs;
            Call call = member.queue.front();
            member.queue.pop_front();
            if (!call.is_waited_for) continue;
            if (i == 0) ++result_.second[second()].answers;
            end(call, i, core::status_outcome(200), core::Verdict::success);
        }
        if (member.queue.empty()) member.credit = std::min(member.credit, kMs);  // an idle member saves nothing up
    }

    void give_up(std::uint32_t i) {
        Member& member = members_[i];
        if (now_ < member.next_deadline) return;
        member.next_deadline = ~0U;
        for (std::size_t n = 0; n < member.queue.size(); ++n) {  // (a failover adds to another queue only)
            Call& call = member.queue[n];
            if (!call.is_waited_for) continue;
            if (call.deadline > now_) {
                member.next_deadline = std::min(member.next_deadline, call.deadline);
                continue;
            }
            call.is_waited_for = false;
            end(call, i, core::Outcome::timeout, core::Verdict::failure);
        }
    }

    void restart_member_zero() {
        std::deque<Call> lost;
        lost.swap(members_[0].queue);
        members_[0].next_deadline = ~0U;
        for (Call& call : lost) {
            if (call.is_waited_for) end(call, 0, core::Outcome::reset, core::Verdict::failure);
        }
    }

    void end(Call& call, std::uint32_t at, core::Outcome outcome, core::Verdict verdict) {
        const bool is_probe = call.permit.kind == shm::PermitKind::probe;
        if (setting_.has_breaker) {
            shm::Ending ending;
            ending.outcome = outcome;
            ending.verdict = verdict;
            shm::finish(*segment_.slot[at], policy_, process(), call.permit, ending, {});
        }
        if (verdict == core::Verdict::success) return;
        if (!may_call_again(call.request, is_probe) || !take_retry(at)) return fail();
        ++result_.failovers;
        Request request = call.request;
        dispatch(request);
    }

    // As httpd/failover.cpp does it.
    [[nodiscard]] bool may_call_again(const Request& request, bool is_probe) const {
        const core::Failover& failover = policy_.failover;
        const bool is_wanted =
            failover.mode == core::FailoverMode::all || (failover.mode == core::FailoverMode::probes && is_probe);
        const core::Millis limit = failover.timeout > 0 ? failover.timeout : kTimeout;
        return is_wanted && request.calls < failover.tries && now_ - request.arrived < limit;
    }
    [[nodiscard]] bool take_retry(std::uint32_t failed) {
        std::uint64_t calls = 0;
        for (const shm::Slot* slot : segment_.slot)
            calls += shm::sums_now(*slot, policy_, process()).calls;
        const core::Millis span = policy_.window.span;
        const std::uint64_t allowed = core::allowed_retries(policy_.failover, calls, span);
        return shm::take_retry(*segment_.slot[failed], segment_.slot.data(), kMembers, span, allowed, segment_.now);
    }

    void fail() {
        ++result_.second[second()].failed;
        ++(second() < kBackFrom ? result_.failed_before : result_.failed_after);
    }

    void summarise() {
        for (const auto& from : segment_.slot[0]->totals.transition) {
            result_.openings += static_cast<std::uint32_t>(from[static_cast<std::size_t>(core::State::open)].load());
        }
        for (std::uint32_t s = 0; s < kSeconds; ++s) {
            result_.second[s].capacity = capacity_at(s * kMs + kMs / 2);
            if (s < kBackFrom || s >= kWellFrom) continue;
            const Second& second = result_.second[s];
            result_.peak_load = std::max(result_.peak_load, second.calls * 100 / second.capacity);
        }
        // The last five seconds in which it had less ended when its full share begins.
        constexpr std::uint32_t kSpan = 5;
        for (std::uint32_t s = kBackFrom; s + kSpan <= kSeconds; ++s) {
            std::uint32_t answers = 0;
            for (std::uint32_t i = 0; i < kSpan; ++i)
                answers += result_.second[s + i].answers;
            if (answers * 10 < kSpan * kRate / kMembers * 9) result_.full_share_after = s + 1 - kBackFrom;
        }
    }

    [[nodiscard]] shm::Process process() const { return segment_.process(); }

    Setting setting_;
    core::Policy policy_;
    Segment segment_;
    Random random_;
    ByRequests byrequests_{kMembers};
    Member members_[kMembers];
    std::uint32_t now_ = 0;
    Result result_;
};

}  // namespace

std::uint32_t capacity_at(std::uint32_t ms) noexcept {
    if (ms < kFailingFrom * kMs) return kCapacity;
    if (ms < kDownFrom * kMs) return kCapacity * (kDownFrom * kMs - ms) / ((kDownFrom - kFailingFrom) * kMs);
    if (ms < kBackFrom * kMs) return 0;
    constexpr std::uint32_t kCold = kCapacity / 10;
    if (ms >= kWellFrom * kMs) return kCapacity;
    return kCold + (kCapacity - kCold) * (ms - kBackFrom * kMs) / ((kWellFrom - kBackFrom) * kMs);
}

Result run(const Setting& setting) {
    return Simulation(setting).run();
}

const std::vector<Named>& settings() {
    static const std::vector<Named> all = {
        {"no breaker", {false, false, Failover::off}},
        {"breaker, no ramp", {true, false, Failover::off}},
        {"breaker, no ramp, Failover Probes", {true, false, Failover::probes}},
        {"breaker, no ramp, Failover All", {true, false, Failover::all}},
        {"breaker, no ramp, Failover All timeout=5s", {true, false, Failover::all_in_5s}},
        {"breaker, ramp", {true, true, Failover::off}},
        {"breaker, ramp, Failover Probes", {true, true, Failover::probes}},
        {"breaker, ramp, Failover All", {true, true, Failover::all}},
        {"breaker, ramp, Failover All timeout=5s", {true, true, Failover::all_in_5s}},
    };
    return all;
}

std::string table(const std::vector<Result>& results) {
    std::string text =
        "| setting | failed requests | while it fails | while it recovers | opened | failed over | peak load | longest "
        "queue | full share after |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (std::size_t i = 0; i < results.size(); ++i) {
        const Result& result = results[i];
        text += "| " + settings()[i].name;
        for (const std::uint32_t number : {result.failed_before + result.failed_after, result.failed_before,
                                           result.failed_after, result.openings, result.failovers}) {
            text += " | " + std::to_string(number);
        }
        text += " | " + std::to_string(result.peak_load) + " % | " + std::to_string(result.longest_queue) + " | " +
                std::to_string(result.full_share_after) + " s |\n";
    }
    return text;
}

}  // namespace cb::bench
