// Named places between two steps of a shared-memory protocol.
//
// Purpose: tests (CB_TEST_STEPS) kill a process at any of these places. In the module they compile to nothing.
#ifndef CIRCUITBREAKER_SHM_STEP_HPP
#define CIRCUITBREAKER_SHM_STEP_HPP

namespace cb::shm {

#ifdef CB_TEST_STEPS
/// Called with the name of each place passed; set by a test, nullptr by default.
extern void (*on_step)(const char* place) noexcept;
inline void step(const char* place) noexcept {
    if (on_step != nullptr) on_step(place);
}
#else
inline void step(const char*) noexcept {}
#endif

}  // namespace cb::shm

#endif
