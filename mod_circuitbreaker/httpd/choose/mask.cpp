#include "mask.hpp"

#include <algorithm>

#include "ask.hpp"
#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

/// Has this member failed this request already? mod_proxy's forcerecovery might choose it again until its attempts are
/// used up.
bool has_failed(const RequestState& state, const proxy_worker* worker) noexcept {
    return std::find(state.failed, state.failed + state.failed_count, worker) != state.failed + state.failed_count;
}

}  // namespace

Mask::Mask(RequestState& state) noexcept : pool_(state.r->pool), members_(runtime.registry->members(*state.balancer)) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const proxy_worker* const worker = members_[i];
        bool is_tried = false;
        for (int t = 0; t < state.tried_count; ++t)
            is_tried = is_tried || state.tried[t] == worker;
        if (is_tried) {
            has_breakers_ = true;  // members are noted as tried only where there are breakers
            hide_at(i, shm::Refusal::none);
            continue;
        }
        Breaker* const breaker = runtime.registry->find(*worker);
        if (breaker == nullptr) continue;
        has_breakers_ = true;
        const shm::Refusal refusal = refusal_of(state, *breaker, *breaker->slot.load(std::memory_order_acquire));
        if (refusal != shm::Refusal::none) hide_at(i, refusal);
    }
}

void Mask::hide_at(std::size_t i, shm::Refusal refusal) noexcept {
    if (hidden_ == nullptr) {
        hidden_ = static_cast<Hidden*>(apr_pcalloc(pool_, members_.size() * sizeof(Hidden)));
    }
    hidden_[i].is_hidden = true;
    hidden_[i].refusal = refusal;
}

bool Mask::hide(const proxy_worker& worker, shm::Refusal refusal) noexcept {
    const auto* const found = std::find(members_.data(), members_.data() + members_.size(), &worker);
    const auto i = static_cast<std::size_t>(found - members_.data());
    if (i == members_.size()) return false;
    hide_at(i, refusal);
    if (last_resort_ == &worker) last_resort_ = nullptr;
    return true;
}

bool Mask::show_last_resort(RequestState& state) noexcept {
    if (hidden_ == nullptr) return false;
    const std::size_t none = members_.size();
    std::size_t first = none;
    core::Millis least = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const Hidden& hidden = hidden_[i];
        const bool is_out = hidden.refusal == shm::Refusal::open || hidden.refusal == shm::Refusal::half_open;
        if (!hidden.is_hidden || hidden.was_shown || !is_out) continue;
        if (!is_last_resort(state, *members_[i])) continue;
        const shm::Slot& slot = *runtime.registry->find(*members_[i])->slot.load(std::memory_order_acquire);
        const core::Word word = core::unpack(slot.word.load(std::memory_order_seq_cst));
        const bool is_open = word.state == core::State::open;
        const core::Millis left = is_open ? core::open_remaining(word, now()) : 0;
        if (first != none && left >= least) continue;
        first = i;
        least = left;
    }
    if (first == none) return false;
    hidden_[first].is_hidden = false;
    hidden_[first].was_shown = true;
    last_resort_ = members_[first];
    return true;
}

void Mask::hide_last_resort() noexcept {
    if (last_resort_ != nullptr) (void)hide(*last_resort_, shm::Refusal::open);
}

bool Mask::has_nobody_left(const RequestState& state) const noexcept {
    if (hidden_ == nullptr && !state.is_fallback) return false;  // if nobody is left, that is not because of us
    bool hides_any_usable = false;
    bool is_all_in_error = true;  // then forcerecovery makes mod_proxy try those without a breaker
    bool is_any_recoverable = false;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const bool can_be_used = is_usable(state, *members_[i]);
        if (hidden_ != nullptr && hidden_[i].is_hidden) {
            hides_any_usable = hides_any_usable || can_be_used;
        } else if (can_be_used) {
            return false;
        } else {
            is_all_in_error = is_all_in_error && (members_[i]->s->status & PROXY_WORKER_IN_ERROR) != 0;
            is_any_recoverable =
                is_any_recoverable || !(has_failed(state, members_[i]) || is_barred_for(state, *members_[i]->s));
        }
    }
    if (!hides_any_usable && !state.is_fallback) return false;
    const bool is_recovery_forced = state.balancer->s->forcerecovery != 0 && is_all_in_error;
    return !(is_recovery_forced && is_any_recoverable);
}

proxy_balancer* Mask::apply(proxy_balancer& view) const noexcept {
    auto* const array = static_cast<apr_array_header_t*>(apr_pmemdup(pool_, view.workers, sizeof(apr_array_header_t)));
    auto** const workers = static_cast<proxy_worker**>(apr_pmemdup(pool_, members_.data(), members_.size_bytes()));
    for (std::size_t i = 0; i < members_.size(); ++i) {
        if (!hidden_[i].is_hidden) continue;
        auto* const worker = static_cast<proxy_worker*>(apr_pmemdup(pool_, members_[i], sizeof(proxy_worker)));
        worker->s = static_cast<proxy_worker_shared*>(apr_pmemdup(pool_, members_[i]->s, sizeof(proxy_worker_shared)));
        // STOPPED as well: it keeps ap_proxy_retry_worker() from clearing the error.
        worker->s->status |= PROXY_WORKER_IN_ERROR | PROXY_WORKER_STOPPED;
        workers[i] = worker;
    }
    array->elts = reinterpret_cast<char*>(workers);
    array->nelts = array->nalloc = static_cast<int>(members_.size());
    view.workers = array;
    view.wupdated = APR_INT64_MAX;  // or mod_proxy would sync the real list into this one
    return &view;
}

shm::Refusal Mask::refusal(std::size_t i) const noexcept {
    return hidden_ != nullptr && hidden_[i].is_hidden ? hidden_[i].refusal : shm::Refusal::none;
}

}  // namespace cb::httpd
