// Where a pointer stands in a table with open addressing.
#ifndef CIRCUITBREAKER_HTTPD_MEMBERS_PLACE_HPP
#define CIRCUITBREAKER_HTTPD_MEMBERS_PLACE_HPP

#include <cstdint>

namespace cb::httpd {

/// The place to look at first; `size`: of the table, a power of two.
[[nodiscard]] inline std::uint32_t place_of(const void* key, std::uint32_t size) noexcept {
    return static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(key) >> 4U) * 0x9E3779B97F4A7C15U >> 32U) &
           (size - 1);
}

}  // namespace cb::httpd

#endif
