// What the simulations have in common: arrivals at random, the members' slots in shared memory on a clock that is moved
// by hand, and mod_proxy's choice by `byrequests`.
//
// Thread safety: none needed; each belongs to one run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "shm/member.hpp"
#include "shm/table.hpp"

namespace cb::bench {

inline constexpr std::uint32_t kMs = 1000;  // of a second
inline constexpr core::Millis kStart = 1'000'000;

/// xorshift64: small, and the same everywhere.
class Random {
  public:
    std::uint32_t below(std::uint32_t n) noexcept {
        state_ ^= state_ << 13U;
        state_ ^= state_ >> 7U;
        state_ ^= state_ << 17U;
        return static_cast<std::uint32_t>((state_ >> 11U) % n);
    }

  private:
    std::uint64_t state_ = 0x9E3779B97F4A7C15U;
};

/// The members' slots, as every process of a server has them.
class Segment {
  public:
    Segment(const core::Policy& policy, std::uint32_t members)
        : slot(members),
          memory_(
              std::aligned_alloc(shm::kLine, (shm::segment_size(members, 1) + shm::kLine) / shm::kLine * shm::kLine),
              std::free) {
        std::fill_n(static_cast<unsigned char*>(memory_.get()), shm::segment_size(members, 1), 0);
        now = kStart;
        const shm::Segment segment = shm::format(memory_.get(), members, 1, 0);
        for (std::uint32_t i = 0; i < members; ++i) {
            shm::Identity identity;
            std::uint32_t index = 0;
            const std::string name = "http://member" + std::to_string(i);
            if (!shm::make_identity(identity, 1, "balancer://b", name.c_str(), "") ||
                shm::bind(segment, identity, 1, 1, index) != shm::BindResult::bound) {
                std::abort();
            }
            slot[i] = &segment.slots[index];
            shm::configure(*slot[i], policy, process());
        }
    }
    [[nodiscard]] shm::Process process() const { return {shm::Clock{0, &now}, 1, nullptr}; }

    std::vector<shm::Slot*> slot;
    shm::Atomic64 now{0};

  private:
    std::unique_ptr<void, void (*)(void*)> memory_;
};

/// byrequests with equal factors.
class ByRequests {
  public:
    explicit ByRequests(std::uint32_t members) : lbstatus_(members) {}

    /// One that is not hidden; the number of members if there is none.
    std::uint32_t choose(const std::vector<bool>& is_hidden) {
        const auto count = static_cast<std::uint32_t>(lbstatus_.size());
        std::uint32_t best = count;
        std::int32_t total = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            if (is_hidden[i]) continue;
            lbstatus_[i] += 1;
            total += 1;
            if (best == count || lbstatus_[i] > lbstatus_[best]) best = i;
        }
        if (best < count) lbstatus_[best] -= total;
        return best;
    }

  private:
    std::vector<std::int32_t> lbstatus_;
};

}  // namespace cb::bench
