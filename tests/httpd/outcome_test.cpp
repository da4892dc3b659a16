// What a backend did, as outcome class and verdict: every way to answer, on a fresh and on a kept backend connection,
// for a client whose own connection is new or kept.
#include "outcomes.hpp"

namespace cb::test {
namespace {

struct Case {
    std::string name;
    Reply reply;
    std::string outcome;  // the class, or "5xx"
    std::string verdict;
    bool is_stale_when_kept = false;  // on a kept backend connection it is the keep-alive race
    std::string method = "GET";
};

std::vector<Case> cases() {
    std::vector<Case> all{
        {"Hang", Reply::hang(), "timeout", "failure"},
        {"Reset", Reply::reset(), "reset", "failure", true},
        {"ClosedWithoutAWord", Reply::nothing(Ending::fin), "reset", "failure", true},
        {"Garbage", Reply::garbage(), "protocol", "failure"},
        {"GarbageThenSilence", Reply::garbage(Ending::silence), "protocol", "failure"},
        {"AnotherProtocolsVersion", Reply::raw("HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"), "protocol", "failure"},
        {"HalfAStatusLine", Reply::raw("HTTP/1.1 20"), "reset", "failure"},
        {"HalfAHeader", Reply::half_header(), "reset", "failure"},
        {"HalfAHeaderThenReset", Reply::half_header(Ending::reset), "reset", "failure"},
        {"HalfAHeaderThenSilence", Reply::half_header(Ending::silence), "timeout", "failure"},
        {"HeaderWithoutItsEnd", Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"), "reset", "failure"},
        {"HeaderWithNonsense", Reply::raw("HTTP/1.1 200 OK\r\nthis is no field\r\nContent-Length: 0\r\n\r\n"),
         "protocol", "failure"},
        {"ImpossibleLength", Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nxx"), "truncated", "failure"},
        {"OnlyInterim", Reply::only_interim(), "reset", "failure"},
        {"OnlyInterimThenReset", Reply::only_interim(103, Ending::reset), "reset", "failure"},
        {"OnlyInterimThenSilence", Reply::only_interim(103, Ending::silence), "timeout", "failure"},
        {"InterimThenAnswer", Reply::ok().after_interim(103), "2xx", "success"},
        {"InterimThenFailure", Reply::status(503).after_interim(103), "5xx", "failure"},
        {"UpgradeNobodyAskedFor", Reply::upgrade(), "protocol", "failure"},
        {"LongAnswer", Reply::of_size(1'000'000), "2xx", "success"},
        {"AnswerUntilClose", Reply::of_size(50'000).until_close(), "2xx", "success"},
        {"AnswerToHead", Reply::of_size(50'000), "2xx", "success", false, "HEAD"},
        {"FailureToHead", Reply::status(503), "5xx", "failure", false, "HEAD"},
        {"StallInTheBody", Reply::of_size(1'000'000).stalling(10'000), "truncated", "failure"},
        {"StallInTheChunks", Reply::of_size(1'000'000).in_chunks().stalling(10'000), "truncated", "failure"},
        {"ChunksWithoutTheLastOne", Reply::of_size(20'000).in_chunks().between_chunks().cut_after(10'000, Ending::fin),
         "truncated", "failure"},
        {"TruncatedFailure", Reply::status(503, std::string(50'000, 'x')).cut_after(20'000, Ending::reset), "truncated",
         "failure"},
    };
    // A large answer that breaks off after part of it, and smaller ones that fit into one read.
    for (const Ending ending : {Ending::fin, Ending::reset}) {
        const std::string how = ending == Ending::fin ? "ByFin" : "ByReset";
        for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, std::size_t{10'000}}) {
            const std::string name = "TruncatedAfter" + std::to_string(sent) + how;
            all.push_back({name, Reply::of_size(1'000'000).cut_after(sent, ending), "truncated", "failure"});
            all.push_back({name + "InChunks", Reply::of_size(1'000'000).in_chunks().cut_after(sent, ending),
                           "truncated", "failure"});
        }
    }
    for (const int status :
         {200, 201, 204, 301, 304, 400, 401, 404, 429, 500, 501, 502, 503, 504, 505, 599, 600, 799, 999}) {
        const bool fails = status >= 502 && status <= 504;
        all.push_back({"Status" + std::to_string(status), Reply::status(status), std::to_string(status / 100) + "xx",
                       fails ? "failure" : "success"});
    }
    return all;
}

void PrintTo(const Case& one, std::ostream* out) {
    *out << one.name;
}  // GoogleTest finds it by its name

class Outcome : public testing::TestWithParam<Case> {
  public:
    static void SetUpTestSuite() {
        fresh_ = std::make_unique<Backend>("fresh");
        kept_ = std::make_unique<Backend>("kept");
        HttpdOptions options =
            site(Mpm::event, counting_policy,
                 "ProxyPass /brief/fresh " + member_at("/brief/fresh") +
                     " timeout=1 disablereuse=on\nProxyPass /brief/kept " + member_at("/brief/kept") +
                     " timeout=1\nProxyPass /fresh " + member_at("/fresh") + " disablereuse=on\nProxyPass /kept " +
                     member_at("/kept") + "\n");
        options.children = 1;
        options.mpm_directives = {"ServerLimit 1", "MaxRequestWorkers 8"};  // one child has all the kept connections
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }
    static void TearDownTestSuite() {
        httpd_.reset();
        fresh_.reset();
        kept_.reset();
    }

  protected:
    /// One more call, by a client on a connection of its own, or on one that has been used. Raw, because a library
    /// would ask again by itself when a kept connection ends without an answer.
    static void expect_outcome(Backend& backend, bool client_is_kept, const std::string& expected) {
        SCOPED_TRACE((client_is_kept ? "kept" : "new") + std::string(" client, ") + backend.name() + " backend");
        // What is stale is so at once: once more where the machine stood still meanwhile. And mpm_event may close a
        // kept connection of a client when it wants to: once more, too.
        const bool is_stale = expected.starts_with("Outcome-stale");
        Seen seen;
        const auto is_over = [&] {
            seen = {};
            call(backend, client_is_kept, seen);
            return !seen.was_lost && (!is_stale || seen.was_at_once || testing::Test::HasFatalFailure());
        };
        EXPECT_TRUE(wait_until(is_over, patience, "a call at once"));
        EXPECT_EQ(seen.outcomes, expected) << seen.response.substr(0, 300);
    }

    struct Seen {
        std::string response{};
        std::string outcomes{};
        bool was_at_once = false;
        bool was_lost = false;  // the request has not even come to the backend
    };
    static void call(Backend& backend, bool client_is_kept, Seen& seen) {
        const std::string place = (waits_for_a_timeout() ? "/brief/" : "/") + backend.name();
        const std::string member = member_at(place);
        const std::string head = " " + place + "/x HTTP/1.1\r\nHost: me\r\n";
        RawClient first(httpd_->port());
        RawClient second(httpd_->port());
        RawClient& client = client_is_kept ? first : second;
        // This one makes a connection to the backend that can be kept, and one of the client.
        ASSERT_TRUE(first.send("GET" + head + "\r\n"));
        ASSERT_NE(first.read_until(backend.name()).find(" 200 "), std::string::npos);
        const OutcomeCounters before(*httpd_, member);
        if (GetParam().is_stale_when_kept) let_connections_idle();
        const unsigned requests = backend.requests();
        backend.answer_next(1, GetParam().reply);
        const Stopwatch stopwatch;
        ASSERT_TRUE(client.send(GetParam().method + head + "Connection: close\r\n\r\n"));
        seen.response = client.read_to_end();
        seen.was_at_once = stopwatch.was_at_once();
        seen.was_lost = client_is_kept && backend.requests() == requests;
        if (seen.was_lost) {
            backend.answer_as_usual();
            return;
        }
        seen.outcomes = OutcomeCounters::of_next_call(*httpd_, member, before) - before;
        EXPECT_EQ(backend.last_request()->nth_on_connection > 1, &backend == kept_.get());
        backend.release();
        EXPECT_TRUE(wait_for_no_permits(*httpd_, member));
    }

    /// The member at that place. A timeout of a second is for replies that wait for it: any other would be one, too, on
    /// a machine that stands still for a moment.
    static std::string member_at(const std::string& place) {
        const Backend& backend = place.ends_with("fresh") ? *fresh_ : *kept_;
        return backend.member() + (place.starts_with("/brief/") ? "/brief" : "");
    }
    /// A second each: not all four combinations then.
    static bool waits_for_a_timeout() {
        const std::string& name = GetParam().name;
        return name == "Hang" || name.starts_with("Stall") || name.ends_with("Silence");
    }

    static inline std::unique_ptr<Backend> fresh_;
    static inline std::unique_ptr<Backend> kept_;
    static inline std::unique_ptr<Httpd> httpd_;
};

INSTANTIATE_TEST_SUITE_P(Replies, Outcome, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Outcome, OnAFreshBackendConnection) {
    const std::string expected = "Outcome-" + GetParam().outcome + " Verdict-" + GetParam().verdict;
    expect_outcome(*fresh_, false, expected);
    if (!waits_for_a_timeout()) expect_outcome(*fresh_, true, expected);
}

TEST_P(Outcome, OnAKeptBackendConnection) {
    const std::string expected = GetParam().is_stale_when_kept
                                     ? "Outcome-stale Verdict-ignore"
                                     : "Outcome-" + GetParam().outcome + " Verdict-" + GetParam().verdict;
    expect_outcome(*kept_, true, expected);
    if (!waits_for_a_timeout()) expect_outcome(*kept_, false, expected);
}

}  // namespace
}  // namespace cb::test
