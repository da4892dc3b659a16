// Members that are restarted one after another, 2 s each, under a steady load: an everyday deployment is no outage.
// Three servers have the same members at the same time: httpd without the module, with its defaults, and with Failover
// All.
#include <thread>

#include "steady_load.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

enum class Manner { stops, is_killed, starts_with_503 };

std::string manner_name(Manner manner) {
    switch (manner) {
        case Manner::stops:
            return "stops";
        case Manner::is_killed:
            return "is_killed";
        case Manner::starts_with_503:
            return "starts_with_503";
    }
    return "";
}

enum Server : std::size_t { stock, defaults, failover_all, kServers };
constexpr const char* kConfig[kServers] = {"", "CircuitBreaker On\n",
                                           "CircuitBreaker On\nCircuitBreakerFailover All\n"};
constexpr milliseconds kDown(2000);
constexpr milliseconds kUnwell(4000);  // of one that starts with 503
constexpr milliseconds kWork(3);       // of each request

/// A member that works on each request for a while, and counts for each server what it cut off by dying.
class Member {
  public:
    explicit Member(const std::string& name) : backend(name) {
        backend.answer([this](const Request& request) { return serve(request); });
    }
    void stop(Manner manner) {
        if (manner == Manner::is_killed) ++life_;
        backend.refuse();
    }
    void start(Manner manner) {
        is_unwell_ = manner == Manner::starts_with_503;
        if (!is_unwell_) become_well();
        backend.accept_again();
    }
    void become_well() {
        for (auto& at : served_at_)
            at = 0;
        well_at_ = Clock::now().time_since_epoch().count();
        is_unwell_ = false;
    }
    [[nodiscard]] unsigned cut(Server server) const { return cut_[server]; }
    [[nodiscard]] bool has_served(Server server) const { return well_at_ != 0 && served_at_[server] != 0; }
    /// From when it was well until that server first had a good answer of it.
    [[nodiscard]] milliseconds away(Server server) const {
        return std::chrono::duration_cast<milliseconds>(Clock::duration(served_at_[server] - well_at_));
    }

    Backend backend;

  private:
    Reply serve(const Request& request) {
        const auto server = static_cast<std::size_t>(request.target[1] - '0');
        const unsigned born_in = life_;
        std::this_thread::sleep_for(kWork);
        if (life_ != born_in) {
            ++cut_[server];
            return Reply::reset();
        }
        if (is_unwell_) return Reply::status(503, "starting");
        Clock::rep never = 0;
        served_at_[server].compare_exchange_strong(never, Clock::now().time_since_epoch().count());
        return Reply::ok(backend.name());
    }

    std::atomic<unsigned> life_{0};
    std::atomic<bool> is_unwell_{false};
    std::atomic<Clock::rep> well_at_{0};
    std::atomic<Clock::rep> served_at_[kServers]{};
    std::atomic<unsigned> cut_[kServers]{};
};

/// The three servers, and clients at each: 150 requests a second, so that a round of three probes is over before the
/// next request comes. (A request more than `concurrent` at that moment would be refused.)
class Site {
  public:
    Site(Mpm mpm, const std::vector<Member*>& members) {
        for (std::size_t i = 0; i < kServers; ++i) {
            std::string lines;
            for (Member* member : members)
                lines += "  BalancerMember " + member->backend.member() + "/" + std::to_string(i) + "\n";
            HttpdOptions options = site(mpm, kConfig[i], balancer_of(lines));
            options.circuitbreaker = i != stock;
            if (i == stock) options.config = balancer_of(lines);
            options.children = mpm == Mpm::prefork ? 8 : 2;
            servers_.push_back(std::make_unique<Httpd>(options));
            servers_.back()->start();
        }
    }
    void begin_load() {
        for (const auto& server : servers_)
            loads_.push_back(std::make_unique<SteadyLoad>(server->url("/app/x")));
    }
    void finish_load() {
        for (const auto& load : loads_)
            load->finish();
    }
    [[nodiscard]] const SteadyLoad& load(Server server) const { return *loads_[server]; }
    [[nodiscard]] const Httpd& operator[](Server server) const { return *servers_[server]; }
    /// Calls of a server with the module whose connections the members ended.
    [[nodiscard]] std::uint64_t broken_calls(Server server) const {
        std::uint64_t count = 0;
        const BreakerPage page(*servers_[server]);
        for (const BreakerBlock& member : page.members())
            count += member.number("Outcome-reset") + member.number("Outcome-stale");
        return count;
    }

  private:
    std::vector<std::unique_ptr<Httpd>> servers_;
    std::vector<std::unique_ptr<SteadyLoad>> loads_;
};

/// What happens when: the scenario itself takes this time.
struct Happening {
    milliseconds at;
    std::function<void()> happen;
};
void play(std::vector<Happening> happenings) {
    std::stable_sort(happenings.begin(), happenings.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    const auto begin = Clock::now();
    for (const Happening& each : happenings) {
        std::this_thread::sleep_until(begin + each.at);
        each.happen();
    }
}

void add_restart(std::vector<Happening>& happenings, Member& member, Manner manner, milliseconds at) {
    happenings.push_back({at, [&member, manner] { member.stop(manner); }});
    happenings.push_back({at + kDown, [&member, manner] { member.start(manner); }});
    if (manner == Manner::starts_with_503) {
        happenings.push_back({at + kDown + kUnwell, [&member] { member.become_well(); }});
    }
}

using Rollout = std::tuple<Manner, int, Mpm>;

/// Each takes 20 s. Every manner with every gap on a chosen MPM; on another one, each manner and each gap once.
std::vector<Rollout> rollouts() {
    constexpr Manner manners[] = {Manner::stops, Manner::is_killed, Manner::starts_with_503};
    constexpr int gaps[] = {500, 3000, 6000};
    std::vector<Rollout> all;
    for (std::size_t manner = 0; manner < 3; ++manner) {
        for (std::size_t gap = 0; gap < 3; ++gap) {
            for (const Mpm mpm : {Mpm::prefork, Mpm::worker, Mpm::event}) {
                if (is_chosen(mpm) || gap == (manner + static_cast<std::size_t>(mpm)) % 3)
                    all.emplace_back(manners[manner], gaps[gap], mpm);
            }
        }
    }
    return all;
}

class RollingRestart : public testing::TestWithParam<Rollout> {};
INSTANTIATE_TEST_SUITE_P(Gaps, RollingRestart, testing::ValuesIn(rollouts()), [](const auto& info) {
    return manner_name(std::get<0>(info.param)) + "_gap_" + std::to_string(std::get<1>(info.param)) + "_ms_" +
           name_of(std::get<2>(info.param));
});

TEST_P(RollingRestart, LosesNoMoreThanWithoutTheModuleAndNothingWithFailoverAll) {
    const auto [manner, gap, mpm] = GetParam();
    Member a("a");
    Member b("b");
    Member c("c");
    const std::vector<Member*> members{&a, &b, &c};
    Site servers(mpm, members);
    servers.begin_load();
    for (const Server server : {stock, defaults, failover_all})
        ASSERT_TRUE(servers.load(server).wait_for_answers(50));

    std::vector<Happening> happenings;
    for (std::size_t i = 0; i < members.size(); ++i)
        add_restart(happenings, *members[i], manner, i * (kDown + milliseconds(gap)));
    play(happenings);
    for (const Server server : {defaults, failover_all}) {
        for (const Member* member : members) {
            EXPECT_TRUE(wait_until([&] { return member->has_served(server); }, milliseconds(15'000), "its traffic"));
        }
    }
    servers.finish_load();

    const unsigned cut_of_stock = a.cut(stock) + b.cut(stock) + c.cut(stock);
    const auto lost = [&](Server server) { return servers.load(server).lost(); };
    // Requests that a member had been sent when it died may be lost, whether it had read them or not: one or two of
    // each client.
    const std::uint64_t broken = servers.broken_calls(defaults);
    EXPECT_LE(broken, 2U * 3U * members.size());
    // If the machine stood still, the early probe came later by that time, at 150 requests a second.
    const std::uint64_t piled_up = 150 * static_cast<std::uint64_t>(servers.load(stock).longest().count()) / 1000;
    EXPECT_LE(lost(defaults) + cut_of_stock, lost(stock) + broken + 2 + piled_up) << piled_up << " piled up\n"
                                                                                  << servers[defaults].describe();
    const bool was_one_always_well = manner != Manner::starts_with_503 || gap > 500;
    if (was_one_always_well) {
        // When the last one that is not open goes, the one that is well is found by early probes, which let no more in
        // at once than `concurrent`.
        EXPECT_LE(lost(failover_all), manner == Manner::starts_with_503 ? piled_up : 0U)
            << servers[failover_all].describe();
    }
    // Probed after 5 s; or, where that was in vain, after 10 s more. The ends of open times have 10 percent of jitter.
    const milliseconds longest =
        milliseconds(manner == Manner::starts_with_503 ? 5'500 + 11'000 - 6'000 + 500 : 6'000) +
        servers.load(stock).longest();
    for (const Server server : {defaults, failover_all}) {
        for (const Member* member : members)
            EXPECT_LE(member->away(server), longest) << member->backend.name() << servers[server].describe();
    }
}

class OnlyOneLeft : public testing::TestWithParam<std::tuple<Manner, Mpm>> {};
INSTANTIATE_TEST_SUITE_P(Manners, OnlyOneLeft,
                         testing::Combine(testing::Values(Manner::stops, Manner::is_killed, Manner::starts_with_503),
                                          each_mpm),
                         [](const auto& info) {
                             return manner_name(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param));
                         });

TEST_P(OnlyOneLeft, HasItsTrafficAgainWithinASecondAndAHalf) {
    const auto [manner, mpm] = GetParam();
    Member gone("gone");
    Member left("left");
    Site servers(mpm, {&gone, &left});
    gone.stop(Manner::stops);
    servers.begin_load();
    for (const Server server : {stock, defaults, failover_all})
        ASSERT_TRUE(servers.load(server).wait_for_answers(50));
    std::vector<Happening> happenings;
    add_restart(happenings, left, manner, milliseconds(0));
    play(happenings);
    for (const Server server : {defaults, failover_all}) {
        EXPECT_TRUE(wait_until([&] { return left.has_served(server); }, patience, "its traffic"));
    }
    servers.finish_load();
    for (const Server server : {defaults, failover_all}) {
        EXPECT_LE(left.away(server), milliseconds(1'500) + servers.load(stock).longest()) << servers[server].describe();
    }
}

}  // namespace
}  // namespace cb::test
