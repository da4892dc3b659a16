// No client sees by anything but time whether the module is there: thousands of requests, good and malformed, go byte
// for byte to a server with the module and to one without it, before the same members.
//
//     CB_DIFFERENTIAL_SEED=7 CB_DIFFERENTIAL_COUNT=20000 build/httpd_tests --gtest_filter='*Differential*'
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <thread>

#include "breaker_page.hpp"
#include "differential_requests.hpp"
#include "differential_views.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

constexpr unsigned lanes = 8;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// A server that has for each lane two ports, and a balancer before that lane's members.
class Server {
  public:
    using MembersOf = std::function<std::string(const Lane&)>;

    Server(Mpm mpm, bool with_module, const std::string& policy, const std::vector<std::unique_ptr<Lane>>& all,
           const MembersOf& members_of)
        : ports_(2 * all.size()) {
        HttpdOptions options{.mpm = mpm, .children = mpm == Mpm::prefork ? 2 * lanes : 1, .threads = 4 * lanes};
        options.circuitbreaker = with_module;
        options.add_modules = {"reqtimeout"};
        options.config = (with_module ? policy + status_location : "") +
                         "ProxyTimeout 30\nLogFormat \"%{remote}p %s %<{CIRCUIT_BREAKER_VERDICT}e "
                         "%<{BALANCER_WORKER_NAME}e.\" lane\n";
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::string name = "balancer://lane" + std::to_string(i);
            options.config += "<Proxy " + name + ">\n" + members_of(*all[i]) + "</Proxy>\n";
            const char* const impatient = i % 2 == 0 ? "    Timeout 1\n" : "    RequestReadTimeout header=1 body=1\n";
            options.config += host(i, 2 * i, "") + host(i, 2 * i + 1, impatient);
        }
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }

    [[nodiscard]] Door door(std::size_t lane) const {
        return {ports_[2 * lane].number(), ports_[2 * lane + 1].number(),
                httpd_->root() / ("lane" + std::to_string(lane) + ".log")};
    }
    [[nodiscard]] const Httpd& httpd() const { return *httpd_; }

  private:
    [[nodiscard]] std::string host(std::size_t lane, std::size_t port, const std::string& more) const {
        const std::string number = std::to_string(ports_[port].number());
        const std::string name = "lane" + std::to_string(lane);
        return "Listen 127.0.0.1:" + number + "\n<VirtualHost 127.0.0.1:" + number +
               ">\n    ServerName test.example\n    CustomLog " + name + ".log lane\n    ProxyPass / balancer://" +
               name + "/\n" + more + "</VirtualHost>\n";
    }

    std::vector<ReservedPort> ports_;
    std::unique_ptr<Httpd> httpd_;
};

std::string member(const Lane& lane, unsigned number, const char* parameters = "") {
    return "    BalancerMember " + lane.members.url(number) + " retry=0 " + parameters + "\n";
}

std::string two_equal_members(const Lane& lane) {
    return member(lane, 0) + member(lane, 1);
}

/// The second is asked when the first can't be.
std::string one_after_the_other(const Lane& lane) {
    return member(lane, 0) + member(lane, 1, "lbset=1");
}

/// Nothing opens: what a wrong verdict counts is seen in the counters.
const std::string failover_of_all = std::string(counting_policy) + "CircuitBreakerFailover All budget=100\n";

class Differential : public testing::TestWithParam<Mpm> {
  protected:
    using Check = std::function<std::string(Lane& lane, std::size_t number, const Exchange& exchange)>;

    void SetUp() override {
        std::printf("seed %llu, %u exchanges (CB_DIFFERENTIAL_SEED, CB_DIFFERENTIAL_COUNT)\n",
                    static_cast<unsigned long long>(seed_), count_);
    }

    void make_lanes(const std::vector<Manner>& manners) {
        for (unsigned i = 0; i < lanes; ++i)
            lanes_.push_back(std::make_unique<Lane>(manners));
    }

    [[nodiscard]] std::unique_ptr<Server> server(bool with_module, const std::string& policy,
                                                 const Server::MembersOf& members_of) const {
        return std::make_unique<Server>(GetParam(), with_module, policy, lanes_, members_of);
    }

    /// Every exchange, each lane's share on a thread of its own.
    void run(unsigned count, const Check& check) {
        exchanges_ = make_exchanges(seed_, count);
        {
            std::vector<std::jthread> threads;
            for (std::size_t number = 0; number < lanes_.size(); ++number) {
                threads.emplace_back([&, number] {
                    for (std::size_t i = number; i < exchanges_.size(); i += lanes_.size())
                        note(exchanges_[i], check(*lanes_[number], number, exchanges_[i]));
                });
            }
        }
        report();
    }

    void note(const Exchange& exchange, const std::string& found) {
        if (found.empty()) return;
        const std::scoped_lock lock(mutex_);
        found_.push_back("exchange " + std::to_string(exchange.number) + " (" + exchange.kind +
                         "): " + shown(exchange.bytes) + "\n" + found);
    }

    void report() {
        std::string text;
        for (const std::string& each : found_)
            text += each;
        EXPECT_EQ(found_.size(), 0U) << "exchanges differ, seed " << seed_ << "; among them\n" << text.substr(0, 8000);
        write_report(text);
    }

    /// CB_DIFFERENTIAL_REPORT: a file for all of it.
    static void write_report(const std::string& text) {
        const char* const file = std::getenv("CB_DIFFERENTIAL_REPORT");
        if (file == nullptr) return;
        std::ofstream(file, std::ios::app)
            << "== " << testing::UnitTest::GetInstance()->current_test_info()->name() << "\n"
            << text;
    }

    /// Members that are well have not failed, whatever clients sent.
    void expect_no_failures(const Server& tested, const std::vector<unsigned>& well = {0, 1}) {
        const BreakerPage page(tested.httpd());
        std::uint64_t failures = 0;
        std::string blamed;
        for (std::size_t number = 0; number < lanes_.size(); ++number) {
            for (const unsigned member : well) {
                const std::string name = lanes_[number]->members.url(member);
                failures += page.member(name).number("Verdict-failure");
                blamed += exchanges_of_failures(*lanes_[number], name, tested.door(number).log);
            }
        }
        EXPECT_EQ(failures, 0U) << "calls count as failures of members that are well, seed " << seed_
                                << "; some after\n"
                                << blamed.substr(0, 4000);
        write_report(blamed);
    }

    /// By the server's log, which has the last call's verdict. Its lines are in the order of the exchanges; a port
    /// alone may have been used twice.
    [[nodiscard]] static std::string exchanges_of_failures(const Lane& lane, const std::string& member,
                                                           const std::filesystem::path& log) {
        std::string text;
        auto next = lane.exchanges.begin();
        std::istringstream lines(read_file(log));
        for (std::string line; std::getline(lines, line);) {
            const auto port = static_cast<std::uint16_t>(std::stoul(line));
            const auto found = std::find_if(next, lane.exchanges.end(), [&](const auto& e) { return e.first == port; });
            if (found == lane.exchanges.end()) continue;
            next = found;
            if (line.find(" failure:") == std::string::npos || line.find(member + ".") == std::string::npos) continue;
            text += "counted " + line.substr(line.find(' ') + 1) + " after exchange " +
                    std::to_string(found->second->number) + " (" + found->second->kind +
                    "): " + shown(found->second->bytes, 300) + "\n";
        }
        return text;
    }

    const std::uint64_t seed_ = from_environment("CB_DIFFERENTIAL_SEED", 9110);
    /// What differs from MPM to MPM is how connections are kept, not what becomes of a request: fewer for the others.
    const unsigned count_ =
        static_cast<unsigned>(from_environment("CB_DIFFERENTIAL_COUNT", 3200)) / (GetParam() == Mpm::event ? 1 : 8);
    std::vector<Exchange> exchanges_;
    std::vector<std::unique_ptr<Lane>> lanes_;

  private:
    std::mutex mutex_;  // guards found_
    std::vector<std::string> found_;
};
INSTANTIATE_TEST_SUITE_P(Mpms, Differential, any_mpm, mpm_name);

TEST_P(Differential, TwoServersWithoutTheModuleDifferInNothing) {
    make_lanes({Manner::answers, Manner::answers});
    const auto one = server(false, "", two_equal_members);
    const auto other = server(false, "", two_equal_members);
    run(count_, [&](Lane& lane, std::size_t number, const Exchange& exchange) {
        const Outcome first = lane.run(one->door(number), exchange);
        return difference(exchange, first, lane.run(other->door(number), exchange));
    });
}

TEST_P(Differential, FailoverOfAllCallsChangesNothingWhileMembersAreWell) {
    make_lanes({Manner::answers, Manner::answers});
    const auto stock = server(false, "", two_equal_members);
    const auto tested = server(true, failover_of_all, two_equal_members);
    run(count_, [&](Lane& lane, std::size_t number, const Exchange& exchange) {
        const Outcome expected = lane.run(stock->door(number), exchange);
        return difference(exchange, expected, lane.run(tested->door(number), exchange));
    });
    expect_no_failures(*tested);
}

/// The defaults, but for rounds of as many probes as there can be, and for an open time that is soon over. With the
/// default budget most of what would be failed over would not be.
constexpr const char* always_probing =
    "CircuitBreaker On\nCircuitBreakerProbes 63 concurrent=16 successes=63\n"
    "CircuitBreakerOpenTime 100ms max=100ms factor=1 jitter=0\nCircuitBreakerVerdict fatal 599\n"
    "CircuitBreakerFailover Probes budget=100\n";

/// Opens the breaker of the lane's first member, and returns when the next request is a probe.
void open_and_wait(const Server& tested, Lane& lane, std::size_t number) {
    static const Exchange trip{"trip", "GET " + std::string(RecordingMembers::trip) +
                                           " HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\n\r\n"};
    (void)lane.run(tested.door(number), trip);
    (void)wait_for_end_of_open_time(tested.httpd(), lane.members.url(0));
}

TEST_P(Differential, ProbesChangeNothingForTheirClients) {
    make_lanes({Manner::answers, Manner::answers});
    const auto stock = server(false, "", one_after_the_other);
    const auto tested = server(true, always_probing, one_after_the_other);
    std::vector<unsigned> left(lanes, 0);  // probes until the round may end
    std::atomic<unsigned> messages{0};
    run(count_, [&](Lane& lane, std::size_t number, const Exchange& exchange) {
        if (left[number] < 8) {
            open_and_wait(*tested, lane, number);
            left[number] = 62;
        }
        const Outcome expected = lane.run(stock->door(number), exchange);
        const Outcome found = lane.run(tested->door(number), exchange);
        for (const Message& message : found.messages) {
            // The second member is asked while the first is out, and for what may be no probe: a body that can't be
            // read before the member is asked.
            const bool is_out = message.member == 1 && !may_be_sent_in_parts(exchange);
            left[number] -= is_out ? left[number] : std::min(left[number], 1U);
            if (message.is_whole) ++messages;
        }
        return difference(exchange, expected, found);
    });
    expect_no_failures(*tested);
    std::uint64_t probes = 0;
    const BreakerPage page(tested->httpd());
    for (const auto& lane : lanes_)
        probes += page.member(lane->members.url(0)).number("Probes");
    std::printf("%u requests at members, %llu probes\n", messages.load(), static_cast<unsigned long long>(probes));
    EXPECT_GT(probes, messages * 3 / 4);
}

/// What may not be made again (POST, a long body) is answered as by a server that has only the member that fails.
class DifferentialFailover : public Differential {
  protected:
    void expect_the_second_members_answers(Manner first) {
        make_lanes({first, Manner::answers});
        const auto well = server(false, "", [](const Lane& lane) { return member(lane, 1); });
        const auto failing = server(false, "", [](const Lane& lane) { return member(lane, 0); });
        const auto tested = server(true, failover_of_all, one_after_the_other);
        run(count_ / 2, [&](Lane& lane, std::size_t number, const Exchange& exchange) {
            const Outcome if_well = lane.run(well->door(number), exchange);
            const Outcome if_failing = lane.run(failing->door(number), exchange);
            const Outcome found = lane.run(tested->door(number), exchange);
            return difference_after_failover(exchange, if_well, if_failing, found, first);
        });
        expect_no_failures(*tested, {1});
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, DifferentialFailover, testing::Values(Mpm::event), mpm_name);

TEST_P(DifferentialFailover, AfterA503WhatMayBeMadeAgainIsAnsweredAsByTheSecondMemberAlone) {
    expect_the_second_members_answers(Manner::is_unavailable);
}

TEST_P(DifferentialFailover, AfterAResetWhatMayBeMadeAgainIsAnsweredAsByTheSecondMemberAlone) {
    expect_the_second_members_answers(Manner::resets);
}

TEST_P(DifferentialFailover, AfterARefusedConnectionWhatMayBeMadeAgainIsAnsweredAsByTheSecondMemberAlone) {
    expect_the_second_members_answers(Manner::refuses);
}

}  // namespace
}  // namespace cb::test
