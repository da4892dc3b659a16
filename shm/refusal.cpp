#include "refusal.hpp"

namespace cb::shm {

Refusal refusal_in(core::State state) noexcept {
    switch (state) {
        case core::State::half_open:
            return Refusal::half_open;
        case core::State::recovering:
            return Refusal::ramp;
        case core::State::forced_open:
            return Refusal::forced_open;
        default:
            return Refusal::open;
    }
}

const char* name(Refusal refusal) noexcept {
    switch (refusal) {
        case Refusal::none:
            return "none";
        case Refusal::open:
            return "open";
        case Refusal::half_open:
            return "half-open";
        case Refusal::ramp:
            return "ramp";
        case Refusal::forced_open:
            return "forced-open";
        case Refusal::max_concurrent:
            return "max-concurrent";
    }
    return "unknown";
}

}  // namespace cb::shm
