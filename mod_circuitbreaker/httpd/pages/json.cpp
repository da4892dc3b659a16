#include "json.hpp"

#include "figures.hpp"
#include "json_page_writer.hpp"
#include "words.hpp"

namespace cb::httpd {
namespace {

constexpr int kVersion = 1;

void put_part(JsonPageWriter& out, const MemberSnapshot& member, Part part) noexcept {
    for (const Figure* const figure : figures_in(Form::json)) {
        if (figure->part != part) continue;
        const char* const key = figure->key_in(Form::json).name;
        const Value value = figure->value(member, 0);
        if (figure->shape == Shape::number) out.number_if(value.is_there, key, value.number);
        if (figure->shape == Shape::ratio) out.ratio(key, value.number, value.whole);
        if (figure->shape != Shape::set) continue;
        out.begin_object(key);
        for (std::uint32_t i = 0; i < figure->count; ++i) {
            const Value each = figure->value(member, i);
            out.number(each.name, each.number);
        }
        out.end_object();
    }
}

void put_object(JsonPageWriter& out, const char* key, const MemberSnapshot& member, Part part) noexcept {
    out.begin_object(key);
    put_part(out, member, part);
    out.end_object();
}

void put_changes(JsonPageWriter& out, apr_pool_t* p, const MemberSnapshot& member) noexcept {
    out.begin_array("changes");
    for (std::uint32_t i = 0; i < member.changes; ++i) {
        const shm::HistoryEntry& change = member.change[i];
        out.begin_object();
        out.text("time", utc_text(p, wall_time(member, change.at)));
        out.text("state", core::name(change.to));
        out.text("reason", core::name(change.reason));
        out.number("level", change.level);
        out.end_object();
    }
    out.end_array();
}

void put_failed_calls(JsonPageWriter& out, apr_pool_t* p, const MemberSnapshot& member) noexcept {
    out.begin_array("failed_calls");
    for (std::uint32_t i = 0; i < member.failed_calls; ++i) {
        const shm::FailedCall& call = member.failed_call[i];
        out.begin_object();
        out.text("time", utc_text(p, wall_time(member, call.at)));
        out.text("outcome", outcome_text(p, call.outcome));
        out.number("latency_ms", call.latency);
        out.text("method", method_text(p, call.method));
        out.flag("probe", call.is_probe);
        out.flag("slow", call.is_slow);
        out.text("path", *call.path != '\0' ? call.path : nullptr);
        out.end_object();
    }
    out.end_array();
}

void put_policy(JsonPageWriter& out, apr_pool_t* p, const MemberSnapshot& member) noexcept {
    const apr_array_header_t* const lines = policy_lines(p, member);
    out.begin_array("policy");
    for (int i = 0; i < lines->nelts; ++i) {
        const PolicyLine& line = APR_ARRAY_IDX(lines, i, const PolicyLine);
        out.text(nullptr, apr_pstrcat(p, line.name, " ", line.value, nullptr));
    }
    out.end_array();
}

void put_member(JsonPageWriter& out, apr_pool_t* p, const MemberSnapshot& member) noexcept {
    out.begin_object();
    out.text("id", member.id);
    out.text("vhost", member.breaker != nullptr ? member.vhost : nullptr);
    out.text("balancer", *member.balancer != '\0' ? member.balancer : nullptr);
    out.text("member", member.name);
    out.text("mode", member.breaker != nullptr ? mode_name(member.policy.mode) : nullptr);
    out.text("state", core::name(member.state()));
    out.text("since", utc_text(p, wall_time(member, member.since)));
    put_part(out, member, Part::stay);
    out.text("reason", member.reason != core::Reason::none ? core::name(member.reason) : nullptr);
    put_part(out, member, Part::state);
    put_object(out, "window", member, Part::window);
    put_object(out, "limits", member, Part::limits);
    put_object(out, "probes", member, Part::probes);
    put_part(out, member, Part::load);
    put_object(out, "totals", member, Part::totals);
    put_changes(out, p, member);
    put_failed_calls(out, p, member);
    put_policy(out, p, member);
    out.end_object();
}

}  // namespace

void write_json(request_rec* r, const MemberList& members, const char* token) noexcept {
    ap_set_content_type(r, "application/json");
    apr_pool_t* each = nullptr;  // a member's texts go with it
    if (apr_pool_create(&each, r->pool) != APR_SUCCESS) return;
    JsonPageWriter out(r, each);
    out.begin_object();
    out.number("version", kVersion);
    out.text("time", utc_text(r->pool, apr_time_now()));
    out.text("token", token);
    out.begin_array("members");
    for_each_member(members, [&](const MemberSnapshot& member) noexcept {
        put_member(out, each, member);
        apr_pool_clear(each);
    });
    out.end_array();
    out.end_object();
    ap_rputs("\n", r);
}

}  // namespace cb::httpd
