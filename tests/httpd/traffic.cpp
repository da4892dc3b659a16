#include "traffic.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <string_view>

namespace cb::test {

bool is_chosen(Mpm mpm) {
    const char* const wanted = std::getenv("MPM");
    return mpm == Mpm::event || (wanted != nullptr && std::string_view(wanted) == "all");
}

static Mpms chosen(std::vector<Mpm> mpms) {
    std::erase_if(mpms, [](Mpm mpm) { return !is_chosen(mpm); });
    return testing::ValuesIn(mpms);
}

const Mpms each_mpm = testing::ValuesIn({Mpm::prefork, Mpm::worker, Mpm::event});
const Mpms any_mpm = chosen({Mpm::prefork, Mpm::worker, Mpm::event});
const Mpms any_threaded_mpm = chosen({Mpm::worker, Mpm::event});

std::string load_test_module(const std::string& name) {
    const std::filesystem::path file = executable_of(::getpid()).parent_path() / "test_modules" / (name + ".so");
    return "LoadModule " + name + "_module \"" + file.string() + "\"\n";
}

std::string plain_worker(const Backend& backend, const std::string& parameters) {
    return "ProxyPass /app " + backend.member() + " " + parameters + "\n";
}

std::string member_line(const Backend& backend, const std::string& parameters) {
    return "    BalancerMember " + backend.member() + " " + parameters + "\n";
}

std::string balancer_of(const std::string& lines) {
    return "<Proxy balancer://app>\n" + lines + "</Proxy>\nProxyPass /app balancer://app\n";
}

HttpdOptions site(Mpm mpm, const std::string& policy, const std::string& proxied) {
    return {.mpm = mpm, .config = policy + status_location + proxied};
}

std::string statuses(unsigned count, const std::string& url) {
    std::string text;
    for (unsigned i = 0; i < count; ++i)
        text += (i > 0 ? " " : "") + std::to_string(get(url).status);
    return text;
}

std::string answerers(unsigned count, const std::string& url) {
    std::string text;
    for (unsigned i = 0; i < count; ++i) {
        const std::string backend = get(url).backend();
        text += (i > 0 ? " " : "") + (backend.empty() ? "httpd" : backend);
    }
    return text;
}

std::string answer_to(const Httpd& httpd, const std::string& request, bool finishes_sending) {
    RawClient client(httpd.port());
    EXPECT_TRUE(client.send(request));
    if (finishes_sending) client.finish_sending();
    return client.read_to_end();
}

std::vector<std::string> transition_lines(const Httpd& httpd) {
    std::vector<std::string> lines;
    for (const std::string& line : httpd.error_lines_with("circuit breaker: member")) {
        if (line.find(" -> ") != std::string::npos) lines.push_back(line);
    }
    return lines;
}

std::size_t transitions(const Httpd& httpd, const std::string& from, const std::string& to) {
    return httpd.error_lines_with(": " + from + " -> " + to + ":").size();
}

bool wait_for_end_of_open_time(const Httpd& httpd, const std::string& member) {
    return wait_until([&] { return BreakerPage(httpd).member(member).number("Next-probe-ms") == 0; }, patience,
                      "the open time of " + member + " to be over");
}

bool wait_for_counter(const Httpd& httpd, const std::string& member, const std::string& key, std::uint64_t value) {
    return wait_until([&] { return BreakerPage(httpd).member(member).number(key) >= value; }, patience,
                      key + " of " + member + " to be " + std::to_string(value));
}

bool wait_for_no_permits(const Httpd& httpd, const std::string& member) {
    return wait_until(
        [&] {
            const BreakerBlock block = BreakerPage(httpd).member(member);
            return block.number("In-flight") == 0 && block.number("Leases") == 0 &&
                   block.number("Probes-in-flight") == 0;
        },
        patience, "every permit of " + member + " to be given back");
}

std::string seats_at(const Backend& backend) {
    return "ProxyPass /seat " + backend.member() + "\n<Proxy \"" + backend.member() +
           "\">\n    CircuitBreaker Off\n</Proxy>\n";
}

ClientForEachChild::ClientForEachChild(const Httpd& httpd, Backend& seats, unsigned count) : httpd_(httpd) {
    seats.answer(Reply::ok().after(milliseconds(50)));  // so that the requests don't all find the same child idle
    EXPECT_TRUE(wait_until([&] { return find_seats(count); }, patience, "a seat in each child")) << httpd.describe();
}

bool ClientForEachChild::find_seats(unsigned count) {
    static std::atomic<unsigned> last{0};
    std::vector<std::pair<std::string, std::unique_ptr<Client>>> candidates;
    std::vector<std::future<Response>> responses;
    const std::size_t wanted =
        count - clients_.size() + rounds_++;  // more each time, as some children are hard to find
    while (candidates.size() < wanted) {
        auto& [path, client] = candidates.emplace_back("/seat/" + std::to_string(++last), std::make_unique<Client>());
        responses.push_back(
            std::async(std::launch::async, [&client = *client, url = httpd_.url(path)] { return client.get(url); }));
    }
    for (auto& response : responses)
        EXPECT_EQ(response.get().status, 200);
    for (auto& [path, client] : candidates) {
        const std::string mark = "path=" + path + " ";
        EXPECT_TRUE(httpd_.wait_for_access_line(mark));
        const std::string line = httpd_.access_lines_with(mark).at(0);
        if (clients_.size() < count && children_.insert(line.substr(0, line.find(' '))).second)
            clients_.push_back(std::move(client));
    }
    return clients_.size() == count;
}

Response ClientForEachChild::get(const std::string& path, const RequestOptions& options) {
    return clients_[next_++ % clients_.size()]->get(httpd_.url(path), options);
}

std::size_t children_that_served(const Httpd& httpd, const std::string& path) {
    std::set<std::string> pids;
    for (const std::string& line : httpd.access_lines_with("path=" + path + " ")) {
        pids.insert(line.substr(0, line.find(' ')));
    }
    return pids.size();
}

bool wait_for_several_children(const Httpd& httpd, const std::string& path) {
    return wait_until([&] { return children_that_served(httpd, path) > 1; }, patience, "several children's lines");
}

HttpdOptions one_child(HttpdOptions options) {
    options.children = 1;
    options.mpm_directives = {"ServerLimit 1", "MaxRequestWorkers " + std::to_string(options.threads)};
    return options;
}

HttpdOptions few_threads_each(HttpdOptions options, unsigned children) {
    options.children = children;
    options.threads = 2;
    return options;
}

}  // namespace cb::test
