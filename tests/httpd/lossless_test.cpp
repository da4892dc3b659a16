// From before a failure until after the recovery no idempotent client loses a request, and the fragile member, which
// can serve two at a time when it comes back, sees no more than `concurrent` calls until its ramp begins.
#include "traffic.hpp"

namespace cb::test {
namespace {

enum class Fault { refuses, resets, hangs, answers_503 };

std::string fault_name(Fault fault) {
    switch (fault) {
        case Fault::refuses:
            return "refuses";
        case Fault::resets:
            return "resets";
        case Fault::hangs:
            return "hangs";
        case Fault::answers_503:
            return "answers_503";
    }
    return "";
}

class Lossless : public testing::TestWithParam<std::tuple<Fault, Mpm>> {};
INSTANTIATE_TEST_SUITE_P(
    Faults, Lossless,
    testing::Combine(testing::Values(Fault::refuses, Fault::resets, Fault::hangs, Fault::answers_503), each_mpm),
    [](const auto& info) { return fault_name(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param)); });

TEST_P(Lossless, IdempotentClientsLoseNoRequestAndTheFragileMemberIsSpared) {
    const auto [fault, mpm] = GetParam();
    Backend fragile("fragile");
    Backend second("second");
    Backend third("third");
    HttpdOptions options =
        site(mpm,
             "CircuitBreaker On\nCircuitBreakerConsecutiveFailures 3\nCircuitBreakerFailureRate Off\n"
             "CircuitBreakerOpenTime 300ms factor=1 jitter=0\n"
             "CircuitBreakerProbes 4 concurrent=2\nCircuitBreakerProbeHeader X-Probe\n"
             "CircuitBreakerRampUp 1s from=5\n"
             "CircuitBreakerFailover All budget=100 tries=3 timeout=30s\n",
             balancer_of(member_line(fragile, "timeout=1") + member_line(second) + member_line(third)));
    options.children = mpm == Mpm::prefork ? 12 : 3;
    options.threads = 8;
    Httpd httpd(options);
    httpd.start();
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 6, .time_limit = milliseconds(60'000)});
    ASSERT_TRUE(clients.wait_for_answers(200));

    switch (fault) {
        case Fault::refuses:
            fragile.refuse();
            break;
        case Fault::resets:
            fragile.answer(Reply::reset());
            break;
        case Fault::hangs:
            fragile.answer(Reply::hang());
            break;
        case Fault::answers_503:
            fragile.answer(Reply::status(503, "sorry"));
            break;
    }
    ASSERT_TRUE(wait_until([&] { return transitions(httpd, "closed", "open") == 1; }, patience, "a trip"));
    ASSERT_TRUE(wait_until([&] { return transitions(httpd, "half-open", "open") >= 1; }, patience, "a failed round"));

    // It comes back, able to serve two at a time, and each of them slowly.
    fragile.release();
    ASSERT_TRUE(fragile.wait_until_quiet());
    fragile.forget();
    std::atomic<unsigned> most_before_ramp{0};
    std::atomic<bool> is_ramp{false};  // a call that is no probe has come
    std::atomic<bool> is_well{false};
    fragile.answer([&](const Request& request) {
        const unsigned now = fragile.concurrent();
        if (!request.headers.has("X-Probe")) is_ramp = true;
        if (!is_ramp && now > most_before_ramp) most_before_ramp = now;
        return !is_well && now > 2 ? Reply::status(503, "too many") : Reply::ok("served").after(milliseconds(2));
    });
    if (fault == Fault::refuses) fragile.accept_again();
    ASSERT_TRUE(wait_until([&] { return transitions(httpd, "half-open", "recovering") >= 1; }, patience,
                           "the ramp's beginning"));
    ASSERT_TRUE(wait_until([&] { return is_ramp.load(); }, patience, "the ramp's first call"));
    EXPECT_LE(most_before_ramp, 2U) << "calls at once before the ramp";
    ASSERT_TRUE(clients.wait_for_answers(100));
    is_well = true;
    ASSERT_TRUE(
        wait_until([&] { return transitions(httpd, "recovering", "closed") >= 1; }, patience, "the end of a ramp"));
    ASSERT_TRUE(clients.wait_for_answers(200));
    const LoadResult result = clients.finish();
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_GT(result.from("fragile"), 0U);
    for (const Backend* backend : {&fragile, &second, &third})
        EXPECT_TRUE(wait_for_no_permits(httpd, *backend));
}

}  // namespace
}  // namespace cb::test
