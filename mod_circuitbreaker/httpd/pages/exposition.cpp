#include "exposition.hpp"

#include "core/text.hpp"

namespace cb::httpd {
namespace {

constexpr const char* kPrefix = "httpd_circuitbreaker_";

const char* kind_name(MetricKind kind) noexcept {
    return kind == MetricKind::counter ? "counter" : kind == MetricKind::gauge ? "gauge" : "histogram";
}

/// One character of a label's value; `length` is what it took of the text.
std::string_view escaped(std::string_view text, std::size_t& length) noexcept {
    length = core::utf8_length(text);
    if (length == 0) {
        length = 1;
        return core::kReplacement;
    }
    switch (text.front()) {
        case '\\':
            return "\\\\";
        case '"':
            return "\\\"";
        case '\n':
            return "\\n";
        default:
            return text.substr(0, length);
    }
}

std::string_view trimmed(std::string_view text) noexcept {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

/// What stands before the next `separator`, which is taken out of `text` with it.
std::string_view next_part(std::string_view& text, char separator) noexcept {
    const std::size_t at = text.find(separator);
    const std::string_view part = trimmed(text.substr(0, at));
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return part;
}

bool is_same(std::string_view text, std::string_view lower) noexcept {
    return text.size() == lower.size() && ap_cstr_casecmpn(text.data(), lower.data(), lower.size()) == 0;
}

/// RFC 9110: 0 to 1 with at most three decimals; in thousandths. What is no such number is 1.
int thousandths(std::string_view text) noexcept {
    if (text.empty() || (text[0] != '0' && text[0] != '1')) return 1000;
    int value = (text[0] - '0') * 1000;
    int unit = 100;
    for (std::size_t i = 2; i < text.size() && i < 5 && text[1] == '.' && apr_isdigit(text[i]); ++i, unit /= 10)
        value += (text[i] - '0') * unit;
    return value < 1000 ? value : 1000;
}

/// Seconds as the clients of either format spell them: 0.005, 2.5, and 1 or 1.0.
void write_bound(char (&text)[40], std::uint32_t ms, bool is_open_metrics) noexcept {
    if (ms % 1000 == 0) {
        apr_snprintf(text, sizeof text, "%u%s", ms / 1000, is_open_metrics ? ".0" : "");
        return;
    }
    apr_snprintf(text, sizeof text, "%u.%03u", ms / 1000, ms % 1000);
    for (std::size_t last = strlen(text) - 1; text[last] == '0'; --last)
        text[last] = '\0';
}

}  // namespace

bool wants_open_metrics(const char* accept) noexcept {
    std::string_view rest = accept != nullptr ? accept : "";
    int open_metrics = 0;
    int text = 0;
    while (!rest.empty()) {
        std::string_view range = next_part(rest, ',');
        const std::string_view type = next_part(range, ';');
        std::string_view version;
        int quality = 1000;
        while (!range.empty()) {
            std::string_view value = next_part(range, ';');
            const std::string_view key = next_part(value, '=');
            if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
                value = value.substr(1, value.size() - 2);
            if (is_same(key, "q")) quality = thousandths(value);
            if (is_same(key, "version")) version = value;
        }
        if (is_same(type, "application/openmetrics-text") && (version.empty() || version == "1.0.0")) {
            open_metrics = open_metrics > quality ? open_metrics : quality;
        }
        if (is_same(type, "text/plain")) text = text > quality ? text : quality;
    }
    return open_metrics > 0 && open_metrics >= text;
}

Number Number::count(std::uint64_t value) noexcept {
    Number number;
    apr_snprintf(number.text, sizeof number.text, "%" APR_UINT64_T_FMT, value);
    return number;
}

Number Number::seconds(core::Millis value) noexcept {
    Number number;
    apr_snprintf(number.text, sizeof number.text, "%" APR_UINT64_T_FMT ".%03u", value / 1000,
                 static_cast<unsigned>(value % 1000));
    return number;
}

Number Number::ratio(std::uint64_t part, std::uint64_t whole) noexcept {
    Number number;
    apr_snprintf(number.text, sizeof number.text, "%.6f",
                 whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0);
    return number;
}

void Exposition::begin(const char* name, const Metric& metric) noexcept {
    family_ = name;
    kind_ = metric.kind;
    length_ = 0;
    // In OpenMetrics a counter's family has its name without `_total`, in the older format with it.
    const char* const suffix = kind_ == MetricKind::counter && !is_open_metrics_ ? "_total" : "";
    ap_rvputs(r_, "# HELP ", kPrefix, name, suffix, " ", metric.help, "\n", nullptr);
    ap_rvputs(r_, "# TYPE ", kPrefix, name, suffix, " ", kind_name(kind_), "\n", nullptr);
    if (is_open_metrics_ && metric.unit != nullptr) {
        ap_rvputs(r_, "# UNIT ", kPrefix, name, " ", metric.unit, "\n", nullptr);
    }
}

void Exposition::label(const char* name, std::span<const std::string_view> parts, std::size_t most) noexcept {
    const auto add = [this](std::string_view text) noexcept {
        memcpy(labels_ + length_, text.data(), text.size());
        length_ += text.size();
    };
    if (length_ > 0) add(",");
    add(name);
    add("=\"");
    for (std::string_view part : parts) {
        while (!part.empty()) {
            std::size_t length = 0;
            const std::string_view piece = escaped(part, length);
            if (piece.size() > most) break;
            most -= piece.size();
            add(piece);
            part.remove_prefix(length);
        }
    }
    add("\"");
}

void Exposition::of(const MemberNames& names) noexcept {
    // The limits hold whatever mod_proxy keeps of a name three times over (U+FFFD); together they fit into labels_.
    constexpr std::size_t kMostVhost = 1024;
    constexpr std::size_t kMostBalancer = 3 * sizeof(shm::Identity::balancer);
    constexpr std::size_t kMostMember = 3 * (sizeof(shm::Identity::name) + sizeof(shm::Identity::uds_path)) + 8;
    static_assert(kMostVhost + kMostBalancer + kMostMember + 64 < sizeof labels_);
    length_ = 0;
    label("vhost", std::span(&names.vhost, 1), kMostVhost);
    label("balancer", std::span(&names.balancer, 1), kMostBalancer);
    label("member", names.member, kMostMember);
}

void Exposition::sample(const char* suffix, const Number& value, std::span<const Label> labels) noexcept {
    ap_rvputs(r_, kPrefix, family_, suffix, nullptr);
    const bool has_labels = length_ > 0 || labels.size() > 0;
    if (has_labels) ap_rputs("{", r_);
    ap_rwrite(labels_, static_cast<int>(length_), r_);
    bool is_first = length_ == 0;
    for (const Label& label : labels) {
        ap_rvputs(r_, is_first ? "" : ",", label.name, "=\"", label.value, "\"", nullptr);
        is_first = false;
    }
    ap_rvputs(r_, has_labels ? "} " : " ", value.text, "\n", nullptr);
}

void Exposition::put(const Number& value, std::span<const Label> labels) noexcept {
    sample(kind_ == MetricKind::counter ? "_total" : "", value, labels);
}

void Exposition::put(const Durations& durations) noexcept {
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < shm::kLatencyBuckets; ++i) {
        count += durations.bucket[i];
        char bound[40] = "+Inf";
        if (i < shm::kLatencyBuckets - 1) {
            write_bound(bound, durations.bounds[i], is_open_metrics_);
        }
        const Label le = {"le", bound};
        sample("_bucket", Number::count(count), {&le, 1});
    }
    sample("_sum", Number::seconds(durations.sum_ms), {});
    sample("_count", Number::count(count), {});
}

void Exposition::end() noexcept {
    if (is_open_metrics_) ap_rputs("# EOF\n", r_);
}

}  // namespace cb::httpd
