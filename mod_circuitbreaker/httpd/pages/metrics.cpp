#include "metrics.hpp"

#include <new>

#include "exposition.hpp"

namespace cb::httpd {
namespace {

constexpr Metric kEventsLost = {
    MetricKind::counter,
    "Lines that the event log did not take, and changes of state that a killed child did not report."};

Number text_of(const Figure& figure, const Value& value) noexcept {
    if (figure.shape == Shape::ratio) return Number::ratio(value.number, value.whole);
    return figure.metric.unit != nullptr ? Number::seconds(value.number) : Number::count(value.number);
}

void put(Exposition& out, const Figure& figure, const MemberSnapshot& member) noexcept {
    if (figure.shape == Shape::histogram) return out.put(member.*figure.durations);
    for (std::uint32_t i = 0; i < figure.count; ++i) {
        const Value value = figure.value(member, i);
        if (figure.shape == Shape::set && !value.is_there) continue;
        const auto& [first, second] = figure.metric.labels;
        const Label labels[] = {{first, value.name}, {second, value.to}};
        const std::size_t count = second != nullptr ? 2 : first != nullptr ? 1 : 0;
        out.put(text_of(figure, value), std::span(labels, count));
    }
}

/// Not those that are no longer configured and wait for the last old child to end.
std::span<const MemberSnapshot> read_configured(apr_pool_t* p) noexcept {
    const MemberList list = list_members(p, Order::by_slot);
    auto* const members =
        static_cast<MemberSnapshot*>(apr_palloc(p, (list.count + std::size_t{1}) * sizeof(MemberSnapshot)));
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < list.count; ++i) {
        MemberSnapshot& member = *new (&members[count]) MemberSnapshot;
        if (read_member(member, list.index[i]) && member.breaker != nullptr) ++count;
    }
    return {members, count};
}

void put_all(Exposition& out, apr_pool_t* p) noexcept {
    const std::span<const MemberSnapshot> members = read_configured(p);
    for (const Figure* const figure : figures_in(Form::metrics)) {
        out.begin(figure->key_in(Form::metrics).name, figure->metric);
        for (const MemberSnapshot& member : members) {
            out.of(names_of(member.identity, member.breaker));
            put(out, *figure, member);
        }
    }
    out.begin("events_lost", kEventsLost);
    out.put(Number::count(runtime.segment.is_valid()
                              ? runtime.segment.header->events_lost.load(std::memory_order_relaxed)  // for people
                              : 0));
    out.end();
}

}  // namespace

extern "C" int cb_on_metrics(request_rec* r) noexcept {
    if (r->handler == nullptr || strcmp(r->handler, "circuitbreaker-metrics") != 0) return DECLINED;
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, -1);
    if (r->method_number != M_GET) return HTTP_METHOD_NOT_ALLOWED;
    const bool is_open_metrics = wants_open_metrics(apr_table_get(r->headers_in, "Accept"));
    ap_set_content_type(r, is_open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8");
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_mergen(r->headers_out, "Vary", "Accept");
    if (r->header_only) return OK;
    Exposition out(r, is_open_metrics);
    put_all(out, r->pool);
    return OK;
}

}  // namespace cb::httpd
