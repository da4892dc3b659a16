#include "ramp.hpp"

#include <new>

#include "httpd/runtime.hpp"
#include "session.hpp"
#include "shm/newcomers.hpp"

namespace cb::httpd {

struct Ramp {
    const shm::Slot* slot;
    shm::RampTicket ticket;
    Ramp* next;
};

namespace {

Ramp& ramp_of(RequestState& state, const shm::Slot& slot) noexcept {
    for (Ramp* ramp = state.ramps; ramp != nullptr; ramp = ramp->next) {
        if (ramp->slot == &slot) return *ramp;
    }
    state.ramps = new (apr_palloc(state.r->pool, sizeof(Ramp))) Ramp{&slot, {}, state.ramps};
    return *state.ramps;
}

/// The session's place in the order of sessions. Each ramp has its own order, so that the first ones differ.
std::uint32_t draw_of(const request_rec* r, const Session& session, const core::Word& word) noexcept {
    return static_cast<std::uint32_t>(session_hash(r, session, std::uint64_t{word.ramp_start} + 1) >> 32U);
}

/// The hash by which a session is remembered as a newcomer, also before the ramp has begun.
std::uint64_t name_of(const request_rec* r, const Session& session) noexcept {
    return session_hash(r, session, 0);
}

}  // namespace

shm::RampTicket* ramp_ticket(RequestState& state, const Breaker& breaker, shm::Slot& slot) noexcept {
    const std::uint64_t bits = slot.word.load(std::memory_order_acquire);  // as peek() looks at it
    const core::State breaker_state = core::state_of(bits);
    if (breaker_state == core::State::closed || breaker_state == core::State::forced_closed) return nullptr;
    shm::RampTicket& ticket = ramp_of(state, slot).ticket;
    if (breaker_state != core::State::recovering || ticket.kind != shm::RampTicket::Kind::untaken) return &ticket;
    if (state.balancer == nullptr) return &ticket;
    const Session session = find_session(state.r, *state.balancer, state.balancer_url);
    if (!is_bound(session, runtime.registry->members(*state.balancer), *breaker.key)) return &ticket;
    // A ramp must not refuse a session that can go nowhere else, nor one that has begun at this member.
    const bool is_exempt = state.balancer->s->sticky_force != 0 || shm::is_newcomer(slot, name_of(state.r, session));
    ticket.kind = is_exempt ? shm::RampTicket::Kind::always : shm::RampTicket::Kind::taken;
    ticket.draw = draw_of(state.r, session, core::unpack(bits));
    return &ticket;
}

void note_new_session(RequestState& state) noexcept {
    const Call& call = state.call;
    if (state.balancer == nullptr || *state.balancer->s->sticky == '\0') return;
    const core::Word word = core::unpack(call.target.slot->word.load(std::memory_order_acquire));
    if (word.state != core::State::recovering && word.state != core::State::half_open) return;
    const proxy_worker_shared& worker = *call.target.breaker->key;
    Session session = find_new_session(state.r, *state.balancer);
    if (session.value == nullptr && apr_table_get(state.r->subprocess_env, "BALANCER_ROUTE_CHANGED") != nullptr) {
        session = {worker.route, worker.route};  // httpd may add a cookie of its own, which names the member only
    }
    if (session.value == nullptr || *worker.route == '\0' || strcmp(session.route, worker.route) != 0) return;
    if (word.state == core::State::recovering) {
        const core::RampUp& ramp_up = call.target.breaker->policy.ramp_up;
        const core::Millis elapsed = core::ramp_elapsed(word, ramp_up, now());
        if (draw_of(state.r, session, word) >> 16U < core::ramp_share(ramp_up, elapsed)) return;  // let in anyway
    }
    shm::note_newcomer(*call.target.slot, name_of(state.r, session));
}

}  // namespace cb::httpd
