// The members that a request must not be given to.
//
// Purpose: asks every breaker of a balancer once, and shows mod_proxy a copy of the balancer in which the refused
// members look stopped: copies of their records in the request's pool, with IN_ERROR|STOPPED set. It also finds the
// last resort: where nothing else can serve, the open member whose open time ends first (DESIGN.md, Nothing else can
// serve).
// Thread safety: belongs to one request.
// Invariants: allocates only if something is hidden. Each member is asked once, so that a request draws once at a
// ramp.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_MASK_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_MASK_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

class Mask {
  public:
    explicit Mask(RequestState& state) noexcept;

    /// Hides a member. False if the mask does not know it.
    [[nodiscard]] bool hide(const proxy_worker& worker, shm::Refusal refusal) noexcept;
    /// Shows the next hidden member that may be a last resort. False: there is none.
    [[nodiscard]] bool show_last_resort(RequestState& state) noexcept;
    /// The member that is shown as the last resort; nullptr: none.
    [[nodiscard]] const proxy_worker* last_resort() const noexcept { return last_resort_; }
    /// Hides that member again; it is not shown another time.
    void hide_last_resort() noexcept;
    [[nodiscard]] bool is_empty() const noexcept { return hidden_ == nullptr; }
    /// Does any member have a breaker?
    [[nodiscard]] bool has_breakers() const noexcept { return has_breakers_; }
    /// Is no member left that mod_proxy could use, and at least one of them only because it is hidden? For a fallback
    /// the second part is not asked.
    [[nodiscard]] bool has_nobody_left(const RequestState& state) const noexcept;
    /// Makes `view`, a copy of the balancer, show the hidden members as stopped.
    [[nodiscard]] proxy_balancer* apply(proxy_balancer& view) const noexcept;

    [[nodiscard]] std::size_t count() const noexcept { return members_.size(); }
    [[nodiscard]] const proxy_worker& member(std::size_t i) const noexcept { return *members_[i]; }
    /// Why its breaker refuses member i; none if it does not, or if the member is hidden because it was tried before.
    [[nodiscard]] shm::Refusal refusal(std::size_t i) const noexcept;

  private:
    struct Hidden {
        bool is_hidden;
        bool was_shown;  // as the last resort
        shm::Refusal refusal;
    };
    void hide_at(std::size_t i, shm::Refusal refusal) noexcept;

    apr_pool_t* pool_;
    Members members_;
    bool has_breakers_ = false;
    proxy_worker* last_resort_ = nullptr;
    Hidden* hidden_ = nullptr;  // one for each member, once something is hidden
};

}  // namespace cb::httpd

#endif
