// Every figure of a member, once: what it is called in each form, and where its value comes from.
//
// Purpose: JSON, text, mod_status' lines, balancer-manager's XML, the metrics and the totals in HTML all show this one
// table, so that a new figure is one row. What is no number (names, times of day, changes, policy), and what HTML says
// in sentences, each form writes by itself.
// Thread safety: constants and pure functions of a snapshot.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_FIGURES_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_FIGURES_HPP

#include <span>

#include "model.hpp"

namespace cb::httpd {

/// The JSON object that a figure stands in; of those at the top, between which names it stands.
enum class Part : std::uint8_t { stay, state, window, limits, probes, load, totals };

enum class Form : std::uint8_t { json, text, status, xml, metrics, html };
inline constexpr std::size_t kForms = 6;

struct Key {
    const char* name = nullptr;  // nullptr: not in this form. In text and HTML, the name of a set's value is added
    std::uint8_t place = 0;      // lower ones come first; equal ones in the order of the table
    bool shows_zero = false;     // HTML leaves out other figures that are 0
};

struct Value {
    std::uint64_t number = 0;
    bool is_there = true;        // false: `null` in JSON, left out of a set in the metrics
    std::uint64_t whole = 0;     // of a ratio: what `number` is a part of
    const char* name = nullptr;  // in a set; "timeout" in `outcomes`
    const char* to = nullptr;    // of a change: the second name
};

enum class MetricKind : std::uint8_t { counter, gauge, histogram };

struct Metric {
    MetricKind kind = MetricKind::gauge;
    const char* help = nullptr;
    const char* unit = nullptr;  // "seconds": the figure is in ms
    const char* labels[2] = {};  // of a set: for Value::name and Value::to
};

enum class Shape : std::uint8_t { number, ratio, set, histogram };

struct Figure {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a row
    Part part;
    Key key[kForms];
    Value (*value)(const MemberSnapshot& member, std::uint32_t i) noexcept;  // histogram: nullptr
    Metric metric = {};
    Shape shape = Shape::number;
    std::uint32_t count = 1;  // of a set: values
    Durations MemberSnapshot::*durations = nullptr;

    [[nodiscard]] constexpr const Key& key_in(Form form) const noexcept { return key[static_cast<std::size_t>(form)]; }
};

/// Those that the form shows, in its order.
[[nodiscard]] std::span<const Figure* const> figures_in(Form form) noexcept;

/// Calls `put(key, label, value)` for each number of a form that has no shapes: `label` is nullptr, or the name within
/// a set.
template <class Put>
void for_each_number(Form form, const MemberSnapshot& member, Put put) noexcept {
    for (const Figure* const figure : figures_in(form)) {
        for (std::uint32_t i = 0; i < figure->count; ++i) {
            const Value value = figure->value(member, i);
            put(figure->key_in(form), value.name, value.number);
        }
    }
}

}  // namespace cb::httpd

#endif
