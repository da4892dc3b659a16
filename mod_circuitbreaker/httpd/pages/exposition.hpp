// Writes metrics as Prometheus reads them: text format 0.0.4, or OpenMetrics 1.0.
//
// Purpose: the syntax of both formats in one place; figures.cpp says what is shown.
// Thread safety: belongs to the thread of its request.
// Invariants: all samples of a family follow its TYPE line; label values are valid UTF-8 and escaped.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_EXPOSITION_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_EXPOSITION_HPP

#include "figures.hpp"
#include "httpd/members/names.hpp"

namespace cb::httpd {

struct Label {
    const char* name;
    const char* value;
};

/// A sample's value as text.
struct Number {
    char text[40];
    static Number count(std::uint64_t value) noexcept;
    static Number seconds(core::Millis value) noexcept;
    static Number ratio(std::uint64_t part, std::uint64_t whole) noexcept;  // 0 of nothing
};

/// Does a client with this Accept field (nullptr: none) want OpenMetrics rather than the older format?
[[nodiscard]] bool wants_open_metrics(const char* accept) noexcept;

class Exposition {
  public:
    Exposition(request_rec* r, bool is_open_metrics) noexcept : r_(r), is_open_metrics_(is_open_metrics) {}

    /// A family of that name (of a counter without its `_total`; with a unit it ends with that).
    void begin(const char* name, const Metric& metric) noexcept;
    /// Whose samples come next.
    void of(const MemberNames& names) noexcept;
    void put(const Number& value, std::span<const Label> labels = {}) noexcept;
    void put(const Durations& durations) noexcept;
    void end() noexcept;

  private:
    void sample(const char* suffix, const Number& value, std::span<const Label> labels) noexcept;
    void label(const char* name, std::span<const std::string_view> parts, std::size_t most) noexcept;

    request_rec* r_;
    const char* family_ = nullptr;
    MetricKind kind_ = MetricKind::gauge;
    bool is_open_metrics_;
    std::size_t length_ = 0;
    char labels_[4096];  // the member's, escaped once for all its samples
};

}  // namespace cb::httpd

#endif
