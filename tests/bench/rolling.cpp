#include "rolling.hpp"

#include <deque>
#include <optional>
#include <utility>

#include "balancer.hpp"

namespace cb::bench {
namespace {

constexpr std::uint32_t kRequestRate = 300;  // a second
constexpr std::uint32_t kFirstDown = 10 * kMs;
constexpr std::uint32_t kEnd = 120 * kMs;
constexpr std::uint32_t kRetry = 60 * kMs;      // mod_proxy's `retry=`
constexpr std::uint32_t kLeaseSpan = 60 * kMs;  // longer than any probe here

core::Policy policy_of(const Rollout& rollout) {
    core::Policy policy;
    policy.mode = core::Mode::on;
    policy.open_time.jitter = 0;
    if (rollout.guard == Guard::breaker_as_once) policy.open_time.base = 30 * kMs;
    policy.ramp_up.duration = rollout.ramp * kMs;
    return policy;
}

struct Request {
    explicit Request(std::uint32_t members) : is_tried(members), ticket(members) {}
    std::vector<bool> is_tried;
    std::vector<shm::RampTicket> ticket;
};

/// A call that will be answered.
struct Call {
    std::uint32_t ends = 0;
    std::uint32_t member = 0;
    shm::Permit permit;
};

/// mod_proxy's error state.
class ErrorState {
  public:
    explicit ErrorState(std::uint32_t members) : since_(members) {}
    void set(std::uint32_t member, std::uint32_t now) { since_[member] = now; }
    /// Who can't be used; with forcerecovery never everyone.
    std::vector<bool> look(std::uint32_t now) {
        std::vector<bool> is_in_error;
        for (auto& since : since_) {
            if (since && now > *since + kRetry) since.reset();
            is_in_error.push_back(since.has_value());
        }
        if (std::find(is_in_error.begin(), is_in_error.end(), false) == is_in_error.end()) {
            for (auto& since : since_)
                since.reset();
            is_in_error.assign(since_.size(), false);
        }
        return is_in_error;
    }

  private:
    std::vector<std::optional<std::uint32_t>> since_;
};

class Simulation {
  public:
    explicit Simulation(const Rollout& rollout)
        : rollout_(rollout),
          policy_(policy_of(rollout)),
          segment_(policy_, rollout.members),
          byrequests_(rollout.members),
          errors_(rollout.members),
          answered_at_(rollout.members) {}

    RollingResult run() {
        for (now_ = 0; now_ < kEnd; ++now_) {
            segment_.now = kStart + now_;
            for (; !under_way_.empty() && under_way_.front().ends <= now_; under_way_.pop_front())
                answer(under_way_.front());
            for (int step = 0; step < 10; ++step) {  // a tenth of a millisecond each
                if (random_.below(10'000) >= kRequestRate) continue;
                ++result_.requests;
                Request request(rollout_.members);
                if (!serve(request)) ++result_.lost;
            }
        }
        summarise();
        return result_;
    }

  private:
    [[nodiscard]] bool has_breaker() const { return rollout_.guard != Guard::stock; }
    [[nodiscard]] std::uint32_t down_at(std::uint32_t member) const {
        return kFirstDown + member * (rollout_.down + rollout_.apart);
    }
    [[nodiscard]] std::uint32_t back_at(std::uint32_t member) const { return down_at(member) + rollout_.down; }
    [[nodiscard]] bool is_down(std::uint32_t member) const { return now_ >= down_at(member) && now_ < back_at(member); }

    /// From member to member, until one takes the connection. False: none did.
    bool serve(Request& request) {
        std::vector<std::pair<std::uint32_t, shm::Permit>> uncounted;
        bool is_served = false;
        for (std::uint32_t calls = 0; calls < rollout_.members && !is_served; ++calls) {
            shm::Permit permit;
            const std::uint32_t chosen =
                has_breaker() ? choose(request, permit) : byrequests_.choose(errors_.look(now_));
            if (chosen == rollout_.members) break;
            request.is_tried[chosen] = true;
            is_served = !is_down(chosen);
            if (is_served) {
                under_way_.push_back({now_ + rollout_.work, chosen, permit});
                continue;
            }
            ++result_.refused_connections;
            errors_.set(chosen, now_);
            if (!has_breaker()) continue;
            if (rollout_.second_look == SecondLook::uncounted && permit.kind == shm::PermitKind::call) {
                uncounted.emplace_back(chosen, permit);
            } else {
                end(chosen, permit, core::Outcome::connect, core::Verdict::failure);
            }
        }
        for (auto& [member, permit] : uncounted) {
            end(member, permit, core::Outcome::connect, is_served ? core::Verdict::ignore : core::Verdict::failure);
        }
        return is_served;
    }

    /// As the module does it: members whose breaker refuses are hidden from the choice, and whom a permit is refused is
    /// hidden next. When all are, open ones are shown again, one after the other.
    std::uint32_t choose(Request& request, shm::Permit& permit) {
        const std::uint32_t count = rollout_.members;
        std::vector<bool> is_hidden(count);
        std::vector<bool> was_shown(count);
        std::uint32_t last_resort = count;
        for (std::uint32_t i = 0; i < count; ++i) {
            is_hidden[i] = request.is_tried[i] || shm::peek(*segment_.slot[i], policy_, process(),
                                                            &request.ticket[i]) == core::Decision::refuse;
        }
        for (;;) {
            std::uint32_t chosen = byrequests_.choose(is_hidden);
            if (chosen == count) {
                last_resort = chosen = first_due(request, was_shown);
                if (chosen == count && rollout_.second_look == SecondLook::ramp_yields) {
                    chosen = ramping(request, was_shown);
                }
                if (chosen == count) return count;
                was_shown[chosen] = true;
            }
            const shm::Admission admission = shm::admit(*segment_.slot[chosen], policy_, process(), {}, true,
                                                        kLeaseSpan, &request.ticket[chosen], chosen == last_resort);
            if (admission.refusal == shm::Refusal::none) {
                permit = admission.permit;
                return chosen;
            }
            is_hidden[chosen] = true;
        }
    }

    /// Of those that may be probed early, the one whose open time ends first.
    std::uint32_t first_due(const Request& request, const std::vector<bool>& was_shown) {
        std::uint32_t first = rollout_.members;
        core::Millis least = 0;
        if (rollout_.guard != Guard::breaker || rollout_.members < 2) return first;
        for (std::uint32_t i = 0; i < rollout_.members; ++i) {
            shm::Slot& slot = *segment_.slot[i];
            if (request.is_tried[i] || was_shown[i] || !shm::may_probe_early(slot, policy_, process())) continue;
            const core::Millis left = core::open_remaining(core::unpack(slot.word), segment_.now);
            if (first < rollout_.members && left >= least) continue;
            first = i;
            least = left;
        }
        return first;
    }

    std::uint32_t ramping(Request& request, const std::vector<bool>& was_shown) {
        std::vector<bool> is_hidden(rollout_.members);
        for (std::uint32_t i = 0; i < rollout_.members; ++i) {
            is_hidden[i] = request.is_tried[i] || was_shown[i] ||
                           core::state_of(segment_.slot[i]->word) != core::State::recovering;
            request.ticket[i].kind = shm::RampTicket::Kind::always;
        }
        return byrequests_.choose(is_hidden);
    }

    void answer(Call& call) {
        if (has_breaker()) end(call.member, call.permit, core::status_outcome(200), core::Verdict::success);
        auto& first = answered_at_[call.member];
        if (!first && call.ends - rollout_.work >= back_at(call.member)) first = call.ends;
    }

    void end(std::uint32_t member, shm::Permit& permit, core::Outcome outcome, core::Verdict verdict) {
        shm::Ending ending;
        ending.outcome = outcome;
        ending.verdict = verdict;
        shm::finish(*segment_.slot[member], policy_for(member), process(), permit, ending, {});
    }
    /// What the second look makes of it.
    [[nodiscard]] core::Policy policy_for(std::uint32_t member) const {
        core::Policy policy = policy_;
        if (rollout_.second_look == SecondLook::sooner) policy.open_time.base = kMs;
        if (rollout_.second_look == SecondLook::short_round && core::unpack(segment_.slot[member]->word).level == 0) {
            policy.probes.successes = 1;
            policy.ramp_up.duration = 0;
            policy.minimum_calls = 1;  // level 0 from the first success on
        }
        return policy;
    }

    void summarise() {
        for (std::uint32_t i = 0; i < rollout_.members; ++i)
            result_.idle.push_back(answered_at_[i].value_or(kEnd) - back_at(i));
    }

    [[nodiscard]] shm::Process process() const { return segment_.process(); }

    Rollout rollout_;
    core::Policy policy_;
    Segment segment_;
    Random random_;
    ByRequests byrequests_;
    ErrorState errors_;
    std::deque<Call> under_way_;
    std::vector<std::optional<std::uint32_t>> answered_at_;  // since its return
    std::uint32_t now_ = 0;
    RollingResult result_;
};

}  // namespace

RollingResult roll(const Rollout& rollout) {
    return Simulation(rollout).run();
}

Rollout of_three(Rollout rollout, std::uint32_t apart) {
    rollout.members = 3;
    rollout.apart = apart;
    return rollout;
}

Rollout alone(Rollout rollout) {
    rollout.members = 1;
    rollout.down = kAloneDown;
    return rollout;
}

std::string rolling_table() {
    const std::pair<const char*, Rollout> rows[] = {
        {"mod_proxy alone", {.guard = Guard::stock}},
        {"breaker, OpenTime 30s, no early probes", {.guard = Guard::breaker_as_once}},
        {"breaker, no early probes", {.guard = Guard::breaker_without_early}},
        {"breaker", {.guard = Guard::breaker}},
        {"breaker, RampUp 30s", {.guard = Guard::breaker, .ramp = 30}},
    };
    std::string text =
        "| setting | lost, 6 s apart | without traffic | lost, 3 s apart | without traffic | lost, 0.5 s apart | "
        "without "
        "traffic | lost, alone | without traffic |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    const auto add = [&](const Rollout& rollout) {
        const RollingResult result = roll(rollout);
        text += " | " + std::to_string(result.lost) + " | ";
        for (const std::uint32_t idle : result.idle)
            text += std::to_string(idle / kMs) + "." + std::to_string(idle % kMs / 100) + ", ";
        text.replace(text.size() - 2, 2, " s");
    };
    for (const auto& [name, rollout] : rows) {
        text += std::string("| ") + name;
        for (const std::uint32_t apart : kApart)
            add(of_three(rollout, apart));
        add(alone(rollout));
        text += " |\n";
    }
    return text;
}

}  // namespace cb::bench
