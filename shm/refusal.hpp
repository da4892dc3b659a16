// Why a request was not let to a member: which refusal a state means, and what each is called.
//
// Purpose: one spelling for the environment, the metrics and the pages.
// Thread safety: pure functions.
#ifndef CIRCUITBREAKER_SHM_REFUSAL_HPP
#define CIRCUITBREAKER_SHM_REFUSAL_HPP

#include "layout.hpp"

namespace cb::shm {

[[nodiscard]] Refusal refusal_in(core::State state) noexcept;

/// As CIRCUIT_BREAKER_REJECTED and the metrics spell it.
[[nodiscard]] const char* name(Refusal refusal) noexcept;

}  // namespace cb::shm

#endif
