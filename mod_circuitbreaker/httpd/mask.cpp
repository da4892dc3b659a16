#include "mask.hpp"

#include <cstring>

#include "refuse.hpp"
#include "runtime.hpp"

namespace cb::httpd {
namespace {

/// Could mod_proxy use the member, were it not for us? In a breaker's member IN_ERROR does not last: with
/// IGNORE_ERRORS it is cleared as soon as mod_proxy looks (ap_proxy_retry_worker).
bool is_usable(const proxy_worker& worker) noexcept {
    unsigned barred = PROXY_WORKER_NOT_USABLE_BITMAP;
    if ((worker.s->status & PROXY_WORKER_IGNORE_ERRORS) != 0) barred &= ~static_cast<unsigned>(PROXY_WORKER_IN_ERROR);
    return (worker.s->status & barred) == 0;
}

}  // namespace

Mask::Mask(const RequestState& state) noexcept
    : pool_(state.r->pool), workers_(workers_of(*state.balancer)), count_(state.balancer->workers->nelts) {
    for (int i = 0; i < count_; ++i) {
        const proxy_worker* const worker = workers_[i];
        if (worker == nullptr) continue;  // just being added by another thread
        bool is_tried = false;
        for (int t = 0; t < state.tried_count; ++t)
            is_tried = is_tried || state.tried[t] == worker;
        if (is_tried) {
            hide_at(i, shm::Refusal::none);
            continue;
        }
        Breaker* const breaker = runtime.registry->find(*worker);
        if (breaker == nullptr) continue;
        const shm::Refusal refusal = refusal_of(*breaker, *breaker->slot.load(std::memory_order_acquire));
        if (refusal != shm::Refusal::none) hide_at(i, refusal);
    }
}

void Mask::hide_at(int i, shm::Refusal refusal) noexcept {
    if (hidden_ == nullptr) {
        hidden_ = static_cast<Hidden*>(apr_pcalloc(pool_, static_cast<apr_size_t>(count_) * sizeof(Hidden)));
    }
    hidden_[i] = {true, refusal};
}

void Mask::hide(const proxy_worker& worker, shm::Refusal refusal) noexcept {
    for (int i = 0; i < count_; ++i) {
        if (workers_[i] != &worker) continue;
        hide_at(i, refusal);
        Breaker* const breaker = runtime.registry->find(worker);
        if (breaker != nullptr) count_refusal(*breaker, *breaker->slot.load(std::memory_order_acquire), refusal);
    }
}

bool Mask::hides_all_usable() const noexcept {
    if (hidden_ == nullptr) return false;
    bool hides_any_usable = false;
    for (int i = 0; i < count_; ++i) {
        if (workers_[i] == nullptr || !is_usable(*workers_[i])) continue;
        if (!hidden_[i].is_hidden) return false;
        hides_any_usable = true;
    }
    return hides_any_usable;
}

proxy_balancer* Mask::apply(proxy_balancer& view) const noexcept {
    auto* const array = static_cast<apr_array_header_t*>(apr_pmemdup(pool_, view.workers, sizeof(apr_array_header_t)));
    auto** const workers = static_cast<proxy_worker**>(
        apr_pmemdup(pool_, workers_, static_cast<apr_size_t>(count_) * sizeof(proxy_worker*)));
    for (int i = 0; i < count_; ++i) {
        if (!hidden_[i].is_hidden || workers_[i] == nullptr) continue;
        auto* const worker = static_cast<proxy_worker*>(apr_pmemdup(pool_, workers_[i], sizeof(proxy_worker)));
        worker->s = static_cast<proxy_worker_shared*>(apr_pmemdup(pool_, workers_[i]->s, sizeof(proxy_worker_shared)));
        // STOPPED as well: it keeps ap_proxy_retry_worker() from clearing the error.
        worker->s->status |= PROXY_WORKER_IN_ERROR | PROXY_WORKER_STOPPED;
        workers[i] = worker;
    }
    array->elts = reinterpret_cast<char*>(workers);
    array->nelts = array->nalloc = count_;
    view.workers = array;
    view.wupdated = APR_INT64_MAX;  // or mod_proxy would sync the real list into this one
    return &view;
}

shm::Refusal Mask::refusal(int i) const noexcept {
    return hidden_ != nullptr && hidden_[i].is_hidden ? hidden_[i].refusal : shm::Refusal::none;
}

}  // namespace cb::httpd
