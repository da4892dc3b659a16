#include "ramp.hpp"

#include <new>

#include "session.hpp"

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

}  // namespace

shm::RampTicket* ramp_ticket(RequestState& state, const Breaker& breaker, shm::Slot& slot) noexcept {
    const std::uint64_t bits = slot.word.load(std::memory_order_acquire);  // as peek() looks at it
    const core::State breaker_state = core::state_of(bits);
    if (breaker_state == core::State::closed || breaker_state == core::State::forced_closed) return nullptr;
    shm::RampTicket& ticket = ramp_of(state, slot).ticket;
    if (breaker_state != core::State::recovering || ticket.kind != shm::RampTicket::Kind::untaken) return &ticket;
    if (state.balancer == nullptr) return &ticket;
    const Session session = find_session(state.r, *state.balancer, state.balancer_url);
    if (!is_bound(session, *state.balancer, *breaker.key)) return &ticket;
    // A session that may go nowhere else must not be refused by a ramp.
    ticket.kind = state.balancer->s->sticky_force != 0 ? shm::RampTicket::Kind::always : shm::RampTicket::Kind::taken;
    // Each ramp has its own order of sessions, so that it is not always the same ones that come first.
    ticket.draw = session_draw(state.r, session, core::unpack(bits).ramp_start);
    return &ticket;
}

}  // namespace cb::httpd
