// Text of unknown origin, made safe for JSON and for Prometheus.
//
// Purpose: a member's name is what an administrator wrote, and may hold any byte. What leaves here is valid UTF-8 and
// escaped. The JSON writer fills a buffer of fixed size.
// Invariants: nothing is written behind the buffer's end; a string that is cut is cut between characters.
#ifndef CIRCUITBREAKER_CORE_TEXT_HPP
#define CIRCUITBREAKER_CORE_TEXT_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cb::core {

/// Bytes of the UTF-8 character (RFC 3629) that `text` begins with; 0 if it begins with none.
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept;

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD, for a byte that is no UTF-8

class JsonWriter {
  public:
    static constexpr std::size_t kNoLimit = ~std::size_t{0};

    JsonWriter(char* buffer, std::size_t size) noexcept : buffer_(buffer), size_(size) {}

    /// Written unchanged: punctuation and our own names.
    void raw(std::string_view text) noexcept;
    void number(std::uint64_t value) noexcept;
    /// Quoted and escaped; at most `most` bytes of it between the quotes.
    void string(std::string_view text, std::size_t most = kNoLimit) noexcept;
    /// One string of several parts; `most` is for all of them.
    void string(std::span<const std::string_view> parts, std::size_t most) noexcept;

    [[nodiscard]] std::size_t length() const noexcept { return length_; }
    /// Something did not fit; it and all that followed was left out.
    [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
    /// Back to an earlier length().
    void rewind(std::size_t length) noexcept {
        length_ = length;
        is_cut_ = false;
    }

  private:
    std::size_t escaped(std::string_view text, std::size_t most) noexcept;

    char* buffer_;
    std::size_t size_;
    std::size_t length_ = 0;
    bool is_cut_ = false;
};

}  // namespace cb::core

#endif
