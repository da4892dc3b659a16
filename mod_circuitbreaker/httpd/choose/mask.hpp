// The members that a request must not be given to.
//
// Purpose: asks every breaker of a balancer once, and shows mod_proxy a balancer in which the refused members look
// stopped: copies of their records in the request's pool, with IN_ERROR|STOPPED set (DESIGN 4.2).
// And the last resort: where nothing else can serve, the open member whose open time ends first (DESIGN 13).
// Thread safety: belongs to one request.
// Invariants: allocates only if something is hidden; each member is asked once, so a request has one draw of a ramp.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_MASK_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_MASK_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

class Mask {
  public:
    explicit Mask(RequestState& state) noexcept;

    /// False if the mask does not know that member.
    [[nodiscard]] bool hide(const proxy_worker& worker, shm::Refusal refusal) noexcept;
    /// Shows the next member that may be a last resort, and no other. False: there is none.
    [[nodiscard]] bool show_last_resort(RequestState& state) noexcept;
    /// The member that is shown as the last resort; nullptr: none.
    [[nodiscard]] const proxy_worker* last_resort() const noexcept { return last_resort_; }
    /// Hides it again, for good.
    void hide_last_resort() noexcept;
    [[nodiscard]] bool is_empty() const noexcept { return hidden_ == nullptr; }
    /// Is there a breaker among the members?
    [[nodiscard]] bool has_breakers() const noexcept { return has_breakers_; }
    /// No member is left that mod_proxy could use, and one only because of us; or the balancer is a fallback, which may
    /// as well have none.
    [[nodiscard]] bool has_nobody_left(const RequestState& state) const noexcept;
    /// Makes `view`, a copy of the balancer, show the hidden members as stopped.
    [[nodiscard]] proxy_balancer* apply(proxy_balancer& view) const noexcept;

    [[nodiscard]] std::size_t count() const noexcept { return members_.size(); }
    [[nodiscard]] const proxy_worker& member(std::size_t i) const noexcept { return *members_[i]; }
    /// Why member i is hidden by its breaker; none if it isn't, or was only tried before.
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
