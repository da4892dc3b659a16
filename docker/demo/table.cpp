#include "table.hpp"

#include <unistd.h>

#include <cstdio>

namespace cb::demo {
namespace {

constexpr int lines = Scene::backends + 2;

std::string number(std::map<std::string, std::string>& block, const char* key) {
    return block.contains(key) ? block[key] : "?";
}

std::string seconds(const std::string& ms) {
    if (ms == "?" || ms == "0") return "-";
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", std::stod(ms) / 1000.0);
    return text;
}

}  // namespace

Table::Table() : is_terminal_(isatty(STDOUT_FILENO) != 0) {}

void Table::say(const std::string& text) {
    std::printf("\n> %s\n", text.c_str());
    is_drawn_ = false;
    last_second_ = -1;
}

void Table::show(const Scene& scene, int second) {
    if (!is_terminal_ && second == last_second_) return;
    last_second_ = second;
    if (is_drawn_ && is_terminal_) std::printf("\033[%dA", lines);
    std::printf("%3d s  %-8s %-12s %15s %14s %9s %10s %10s\n", second, "backend", "state", "window: failed",
                "next probe", "probes", "in flight", "refused");
    auto blocks = scene.look();
    for (int i = 0; i < Scene::backends; ++i) {
        auto& block = blocks[static_cast<std::size_t>(i)];
        const std::string rate = number(block, "Window-failures") + "/" + number(block, "Window-calls");
        std::printf("       %-8s %-12s %15s %14s %9s %10s %10s\n", scene.name(i).c_str(),
                    number(block, "State").c_str(), rate.c_str(), seconds(number(block, "Next-probe-ms")).c_str(),
                    number(block, "Probes").c_str(), number(block, "Probes-in-flight").c_str(),
                    number(block, "Refused").c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
    is_drawn_ = true;
}

}  // namespace cb::demo
