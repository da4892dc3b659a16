// Early rounds of the last resort while operators act, the server restarts and children are killed: nothing
// of them stays.
#include "events.hpp"
#include "last_resort.hpp"
#include "pages.hpp"
#include "restarts.hpp"

namespace cb::test {
namespace {

std::vector<Event> changes_of(const Backend& member, std::vector<Event> events) {
    std::erase_if(events, [&](const Event& event) {
        return event.text("member") != member.member() ||
               (event.text("event") != "transition" && event.text("event") != "reset");
    });
    return events;
}

std::uint64_t early_rounds(const Httpd& httpd, const Backend (&members)[2]) {
    const BreakerPage page(httpd);
    return page.member(members[0]).number("Probed-early") + page.member(members[1]).number("Probed-early");
}

bool wait_for_early_rounds(const Httpd& httpd, const Backend (&members)[2], unsigned more) {
    const std::uint64_t wanted = early_rounds(httpd, members) + more;
    return wait_until([&] { return early_rounds(httpd, members) >= wanted; }, patience, "early rounds");
}

class AttackEarlyRounds : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, AttackEarlyRounds, each_mpm, mpm_name);

TEST_P(AttackEarlyRounds, UnderOperatorsRestartsAndKillsLeaveNothingBehind) {
    for (const bool with_kills : {false, true}) {
        Backend members[2] = {Backend("one"), Backend("two")};
        std::atomic<unsigned> calls{0};
        for (Backend& member : members) {
            member.answer([&calls](const Request&) {
                const unsigned n = calls++;
                return n % 5 == 0 ? Reply::ok().after(milliseconds(30)) : Reply::status(503);
            });
        }
        const std::string config = std::string(quick_policy) + control_location +
                                   "CircuitBreakerEventLog events.json\nCircuitBreakerRampUp 100ms\n"
                                   "CircuitBreakerOpenTime 400ms max=2s factor=2 min=100ms\n"
                                   "CircuitBreakerProbes 2 max=6 concurrent=3 tolerate=1\n" +
                                   balancer_of(member_line(members[0]) + member_line(members[1]));
        Httpd httpd(crowded(config, ""));
        httpd.set_config(config);
        httpd.start();
        {
            BackgroundLoad clients(httpd.url("/app/x"), {.threads = 10, .keep_connections = false});
            for (int round = 0; round < 6; ++round) {
                ASSERT_TRUE(wait_for_early_rounds(httpd, members, 2)) << httpd.describe();
                for (const char* action : {"force-open", "automatic", "reset"}) {
                    (void)post(httpd, form(httpd, members[round % 2], action));
                    ASSERT_TRUE(clients.wait_for_answers(20));
                }
                if (with_kills) {
                    const std::vector<pid_t> children = httpd.children();
                    ASSERT_FALSE(children.empty());
                    const pid_t victim = children[static_cast<std::size_t>(round) % children.size()];
                    EXPECT_TRUE(httpd.kill_child(victim));
                    EXPECT_TRUE(httpd.wait_for_end_of({victim})) << "or it takes a request for the status page with it";
                } else {
                    httpd.set_config(config + (round % 2 == 0 ? "CircuitBreakerWindow 50calls\n" : ""));
                    ASSERT_TRUE(httpd.graceful()) << httpd.describe();
                }
            }
            (void)clients.finish();
        }
        for (Backend& member : members)
            member.answer_as_usual();
        for (const Backend& member : members) {
            EXPECT_TRUE(wait_until(
                [&] {
                    (void)get(httpd.url("/app/x"));
                    return state_of(httpd, member) == "closed";
                },
                patience, "it to be well"))
                << page(httpd, "/breakers?auto");
            EXPECT_TRUE(wait_for_no_permits(httpd, member));
            if (!with_kills) {
                const std::vector<Event> changes = changes_of(member, read_events(httpd.root() / "events.json"));
                EXPECT_FALSE(changes.empty());
                EXPECT_EQ(wrong_with_numbers(changes), "");
            }
        }
        EXPECT_TRUE(with_kills || httpd.error_lines_with("exit signal").empty()) << httpd.describe();
    }
}

}  // namespace
}  // namespace cb::test
