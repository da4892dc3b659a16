#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "recovery.hpp"

namespace cb::bench {
namespace {

constexpr int kWidth = 880;
constexpr int kHeight = 624;
constexpr int kLeft = 56;
constexpr int kRight = 852;
constexpr int kPanelHeight = 210;
constexpr int kSmooth = 1;  // seconds on either side that a point is the mean of

/// What is drawn: settings()[index] in a class of the style sheet.
struct Curve {
    std::size_t index;
    const char* style;
};
constexpr Curve kCurves[] = {{0, "a"}, {1, "b"}, {5, "c"}};

__attribute__((format(printf, 2, 3))) void put(std::string& svg, const char* format, ...) {
    char text[1024];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    svg += text;
}

struct Panel {
    const char* title;
    int top;
    std::uint32_t max;
    std::uint32_t grid;

    [[nodiscard]] static double x(double second) { return kLeft + (kRight - kLeft) * second / kSeconds; }
    [[nodiscard]] double y(double value) const {
        return top + kPanelHeight - kPanelHeight * std::min(value, static_cast<double>(max)) / max;
    }
};

void put_frame(std::string& svg, const Panel& panel) {
    put(svg, "<text class=\"t h\" x=\"%d\" y=\"%d\">%s</text>\n", kLeft, panel.top - 14, panel.title);
    for (std::uint32_t value = 0; value <= panel.max; value += panel.grid) {
        put(svg, "<path class=\"g\" d=\"M%d %.1fH%d\"/>", kLeft, panel.y(value), kRight);
        put(svg, "<text class=\"t e\" x=\"%d\" y=\"%.1f\">%u</text>\n", kLeft - 8, panel.y(value) + 4, value);
    }
    for (std::uint32_t second = 0; second <= kSeconds; second += 20) {
        put(svg, "<text class=\"t m\" x=\"%.1f\" y=\"%d\">%u s</text>\n", Panel::x(second),
            panel.top + kPanelHeight + 18, second);
    }
}

double mean(const Result& result, std::uint32_t Second::*field, int second) {
    const int from = std::max(second - kSmooth, 0);
    const int to = std::min(second + kSmooth, static_cast<int>(kSeconds) - 1);
    double sum = 0;
    for (int s = from; s <= to; ++s)
        sum += result.second[static_cast<std::size_t>(s)].*field;
    return sum / (to - from + 1);
}

void put_curve(std::string& svg, const Panel& panel, const Result& result, std::uint32_t Second::*field,
               const char* style) {
    put(svg, "<path class=\"l %s\" d=\"", style);
    for (int second = 0; second < static_cast<int>(kSeconds); ++second) {
        put(svg, "%s%.1f %.1f", second == 0 ? "M" : "L", Panel::x(second + 0.5), panel.y(mean(result, field, second)));
    }
    svg += "\"/>\n";
}

void put_capacity(std::string& svg, const Panel& panel, const Result& result) {
    put(svg, "<path class=\"cap\" d=\"M%.1f %.1fV%.1f", Panel::x(0), panel.y(0), panel.y(kCapacity));
    for (std::uint32_t second = 0; second < kSeconds; ++second)
        put(svg, "L%.1f %.1f", Panel::x(second + 0.5), panel.y(result.second[second].capacity));
    put(svg, "L%.1f %.1fV%.1fZ\"/>\n", Panel::x(kSeconds), panel.y(kCapacity), panel.y(0));
}

void put_phases(std::string& svg, const Panel& panel) {
    constexpr struct {
        std::uint32_t from;
        std::uint32_t to;
        const char* name;
    } kPhases[] = {
        {kFailingFrom, kDownFrom, "fails"}, {kDownFrom, kBackFrom, "is down"}, {kBackFrom, kWellFrom, "is back, cold"}};
    for (const auto& phase : kPhases) {
        put(svg, "<path class=\"p\" d=\"M%.1f %dV%d\"/>", Panel::x(phase.from), panel.top, panel.top + kPanelHeight);
        put(svg, "<text class=\"t m\" x=\"%.1f\" y=\"%d\">%s</text>\n", Panel::x((phase.from + phase.to) / 2.0),
            panel.top + 12, phase.name);
    }
    put(svg, "<path class=\"p\" d=\"M%.1f %dV%d\"/>\n", Panel::x(kWellFrom), panel.top, panel.top + kPanelHeight);
}

// The reader's theme, as far as the browser passes it on to an image.
constexpr const char* kStyle = R"(<style>
.bg{fill:#fff}.t{fill:#1f2328;font:13px system-ui,-apple-system,"Segoe UI",sans-serif}.h{font-weight:600;font-size:15px}
.e{text-anchor:end}.m{text-anchor:middle}.g{stroke:#d0d7de;stroke-width:1}.p{stroke:#8c959f;stroke-dasharray:2 3}
.cap{fill:#d8dee4}.l{fill:none;stroke-width:2;stroke-linejoin:round}
.a{stroke:#c2410c;stroke-dasharray:1 3;stroke-linecap:round}.b{stroke:#0b66b8;stroke-dasharray:7 3}.c{stroke:#0a7d4f}
@media(prefers-color-scheme:dark){.bg{fill:#0d1117}.t{fill:#e6edf3}.g{stroke:#30363d}.p{stroke:#7d8590}.cap{fill:#2a313a}
.a{stroke:#ff9a5c}.b{stroke:#6cb6ff}.c{stroke:#4ade9b}}
</style>
)";

}  // namespace

std::string plot(const std::vector<Result>& results) {
    const Panel load{"Calls a second given to the member that fails and comes back", 84, 200, 50};
    const Panel failed{"Requests that failed, a second", 84 + kPanelHeight + 88, 200, 50};
    std::string svg;
    put(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n", kWidth, kHeight);
    svg += "<title>One of three members fails and comes back slowly: its load, and the requests that fail</title>\n";
    svg += kStyle;
    put(svg, "<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", kWidth, kHeight);
    int x = kLeft;
    for (const Curve& curve : kCurves) {
        put(svg, "<path class=\"l %s\" d=\"M%d 26h34\"/>", curve.style, x);
        put(svg, "<text class=\"t\" x=\"%d\" y=\"30\">%s</text>\n", x + 42, settings()[curve.index].name.c_str());
        x += 190;
    }
    put(svg, "<rect class=\"cap\" x=\"%d\" y=\"17\" width=\"34\" height=\"16\"/>", x);
    put(svg, "<text class=\"t\" x=\"%d\" y=\"30\">what it could serve</text>\n", x + 42);
    put_capacity(svg, load, results[0]);
    for (const Panel& panel : {load, failed}) {
        put_frame(svg, panel);
        put_phases(svg, panel);
    }
    for (const Curve& curve : kCurves) {
        put_curve(svg, load, results[curve.index], &Second::calls, curve.style);
        put_curve(svg, failed, results[curve.index], &Second::failed, curve.style);
    }
    return svg + "</svg>\n";
}

}  // namespace cb::bench
