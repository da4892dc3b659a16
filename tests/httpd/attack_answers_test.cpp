// Answers that a member, or whoever writes its pages, has made to hurt httpd: none does.
#include "outcomes.hpp"

namespace cb::test {
namespace {

Reply json(const std::string& body) {
    return Reply::ok(body).header("Content-Type", "application/json");
}

std::string repeated(const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i)
        all += text;
    return all;
}

TEST(HostileAnswer, OfDeeplyNestedJsonKillsNoChildHoweverSmallItsStack) {
    Backend app("app");
    // 128 KB is what musl gives a thread.
    Httpd httpd(site(Mpm::event,
                     std::string(counting_policy) + "ThreadStackSize 131072\nCircuitBreakerBodyLimit 1048576\n"
                                                    "CircuitBreakerVerdict failure json=/code:7\n",
                     plain_worker(app)));
    httpd.start();
    const std::vector<pid_t> children = httpd.children();
    for (const std::string& body :
         {std::string(8100, '['), std::string(1'000'000, '['), repeated("{\"a\":", 8100), repeated("[{\"a\":", 4050),
          std::string(2000, '[') + std::string(2000, ']'), "{\"code\":7,\"deep\":" + std::string(8000, '[')}) {
        app.answer(json(body));
        const Response answer = get(httpd.url("/app/x"));
        EXPECT_EQ(answer.status, 200) << httpd.describe();
        EXPECT_TRUE(answer.body == body) << answer.body.size();
    }
    app.answer(json("{\"deep\":" + std::string(40, '[') + std::string(40, ']') + ",\"code\":7}"));
    EXPECT_EQ(get(httpd.url("/app/x")).status, 200);
    EXPECT_TRUE(wait_for_counter(httpd, app, "Calls", 7));
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Verdict-failure"), 1U) << "the one that is not too deep";
    EXPECT_EQ(httpd.children(), children) << httpd.describe();
}

}  // namespace
}  // namespace cb::test
