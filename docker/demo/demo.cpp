// The demo: httpd with the module in front of three small backends, one of which fails and recovers under light load.
//
// PORT (8080) is where httpd listens, on 127.0.0.1; DEMO=once ends it after the story instead of serving until Ctrl-C.
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "scene.hpp"
#include "table.hpp"

namespace {

using namespace cb::test;
using cb::demo::Scene;
using cb::demo::Table;

volatile std::sig_atomic_t is_interrupted = 0;

void on_signal(int) {
    is_interrupted = 1;
}

int port_from_environment() {
    const char* const text = std::getenv("PORT");
    if (text == nullptr || *text == '\0') return 8080;
    char* end = nullptr;
    const long port = std::strtol(text, &end, 10);
    return *end == '\0' && port > 0 && port < 65536 ? static_cast<int>(port) : -1;
}

/// What the demo tells, second by second.
struct Moment {
    int at_second;
    const char* text;
    void (*act)(Scene&);
};

const std::array<Moment, 5> story{{
    {0, "All three backends are well.", [](Scene&) {}},
    {3, "bravo begins to answer 503. Five of those, and its breaker opens.", [](Scene& s) { s.fail(1); }},
    {8, "bravo is still bad: the next probe fails, and the open time doubles.", [](Scene&) {}},
    {12, "bravo is well again. Three probes have to succeed, then it gets its traffic back over 4 s.",
     [](Scene& s) { s.mend(1); }},
    {23, "That was it.", [](Scene&) {}},
}};

void sleep_a_little() {
    std::this_thread::sleep_for(250ms);
}

void tell(Scene& scene, Table& table) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t next = 0; next < story.size() && is_interrupted == 0;) {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
        if (seconds.count() >= story[next].at_second) {
            table.say(story[next].text);
            story[next].act(scene);
            ++next;
        }
        table.show(scene, static_cast<int>(seconds.count()));
        sleep_a_little();
    }
}

int run() {
    const int port = port_from_environment();
    if (port < 0) {
        std::fprintf(stderr, "PORT=%s is no port, write a number from 1 to 65535\n", std::getenv("PORT"));
        return 2;
    }
    if (!cb::demo::is_free(port)) {
        std::fprintf(stderr,
                     "Port %d on 127.0.0.1 is in use by another program.\n"
                     "Stop that program, or take another port: make run PORT=%d\n",
                     port, port == 8080 ? 8081 : 8080);
        return 1;
    }
    Scene scene(static_cast<std::uint16_t>(port));
    std::printf("httpd with mod_circuitbreaker: http://127.0.0.1:%d/  (three backends: alfa, bravo, charlie)\n\n",
                port);
    Table table;
    {
        cb::demo::Load load(scene);
        tell(scene, table);
        load.stop();
        table.show(scene, story.back().at_second);
        std::printf("%s\n%s\n", load.summary().c_str(), scene.log_lines().c_str());
    }
    const bool is_well = scene.state_of(1) == "closed" || scene.state_of(1) == "recovering";
    const char* const once = std::getenv("DEMO");
    if (once != nullptr && std::strcmp(once, "once") == 0) return is_well ? 0 : 1;
    std::printf(
        "Still serving:\n  http://127.0.0.1:%d/           the application\n"
        "  http://127.0.0.1:%d/breakers   the breakers; the buttons ask for user %s, password %s\nCtrl-C ends it.\n",
        port, port, Scene::user, scene.password().c_str());
    std::fflush(stdout);
    while (is_interrupted == 0 && scene.is_running())
        sleep_a_little();
    return 0;
}

}  // namespace

int main() {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    try {
        return run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
