// Proves the small parts of the harness: waiting, ports, raw clients, processes, the HTTP client and load.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "backend.hpp"
#include "http_client.hpp"
#include "load.hpp"
#include "net.hpp"
#include "process.hpp"

namespace cb::test {
namespace {

TEST(WaitUntil, ReturnsAsSoonAsTheConditionHolds) {
    int asked = 0;
    EXPECT_TRUE(wait_until([&] { return ++asked == 3; }, patience, "the third time"));
    EXPECT_EQ(asked, 3);
}

TEST(WaitUntil, GivesUpAndSaysWhatWasMissing) {
    testing::internal::CaptureStderr();
    EXPECT_FALSE(wait_until([] { return false; }, 20ms, "a miracle"));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "waited 20 ms in vain for a miracle\n");
}

TEST(ReservedPort, RefusesConnectionsUntilSomebodyListens) {
    const ReservedPort port;
    EXPECT_FALSE(connect_to_port(port.number()).valid());
    Socket listener = listen_on_port(port.number());
    EXPECT_TRUE(connect_to_port(port.number()).valid());
    listener.close();
    EXPECT_FALSE(connect_to_port(port.number()).valid());
    EXPECT_NO_THROW(listen_on_port(port.number())) << "the port of closed connections can be taken again";
}

TEST(ReservedPort, IsGivenToNobodyElse) {
    std::vector<ReservedPort> ports(2000);
    std::set<std::uint16_t> numbers;
    for (const ReservedPort& port : ports)
        numbers.insert(port.number());
    EXPECT_EQ(numbers.size(), ports.size());
}

TEST(SilentPort, NeitherAcceptsNorRefuses) {
    const SilentPort port;
    const Response response = get("http://127.0.0.1:" + std::to_string(port.number()) + "/", {.timeout = 200ms});
    EXPECT_EQ(response.code, CURLE_OPERATION_TIMEDOUT) << response.error;
    EXPECT_EQ(response.status, 0);
}

TEST(RawClient, SendsARequestInPieces) {
    Backend backend("app");
    RawClient client(backend.port());
    ASSERT_TRUE(client.connected());
    EXPECT_TRUE(client.send("GET /half HTTP/1.1\r\nHo"));
    EXPECT_EQ(client.read_until("\r\n", 50ms), "") << "half a request must not be answered";
    EXPECT_EQ(backend.requests(), 0U);
    EXPECT_TRUE(client.send("st: me\r\n\r\n"));
    EXPECT_EQ(client.read_until("\r\n"), "HTTP/1.1 200 OK\r\n");
    EXPECT_NE(client.read_until("\r\n\r\n").find("Content-Length: 3"), std::string::npos);
    EXPECT_EQ(client.read_until("app"), "app");
    EXPECT_FALSE(client.closed_by_peer());
    client.finish_sending();
    EXPECT_EQ(client.read_to_end(), "");
    EXPECT_TRUE(client.closed_by_peer());
    EXPECT_FALSE(client.reset_by_peer());
}

TEST(RawClient, LeavesWithAResetInTheMiddleOfAnUpload) {
    Backend backend;
    RawClient client(backend.port());
    client.send("POST / HTTP/1.1\r\nHost: me\r\nContent-Length: 1000\r\n\r\nonly this");
    EXPECT_TRUE(wait_until([&] { return backend.concurrent() == 1; }, patience, "the upload"));
    client.reset();
    EXPECT_TRUE(backend.wait_until_quiet());
    EXPECT_TRUE(wait_until([&] { return backend.unfinished_requests() == 1; }, patience, "the end of the upload"));
    EXPECT_EQ(backend.requests(), 0U);
}

TEST(Process, ReportsExitStatusAndOutput) {
    const CommandResult result =
        run_command({.argv = {"sh", "-c", "echo out; echo $CB_WORD >&2; exit 3"}, .environment = {{"CB_WORD", "err"}}});
    EXPECT_EQ(result.exit_status, 3);
    EXPECT_EQ(result.output, "out\nerr\n");
}

TEST(Process, IsKilledAtItsTimeoutWithWhatItStarted) {
    CommandResult result;
    // On a busy machine it may take a while to say a word.
    for (milliseconds timeout = 100ms; result.output.empty() && timeout < patience; timeout *= 2)
        result = run_command({.argv = {"sh", "-c", "sleep 1000 & echo $!; wait"}}, timeout);
    EXPECT_EQ(result.exit_status, 128 + SIGKILL);
    const auto grandchild = process_info(std::stoi(result.output));
    EXPECT_TRUE(!grandchild || grandchild->state == 'Z');
}

TEST(Process, ReportsWhoOutlivedIt) {
    Process process({.argv = {"sh", "-c", "sleep 1000 & exit 0"}});
    EXPECT_EQ(process.wait_for_exit(patience), 0);
    ASSERT_EQ(process.left_behind().size(), 1U);
    EXPECT_TRUE(process.left_behind()[0].starts_with("sleep (")) << process.left_behind()[0];
}

TEST(Process, SaysSoIfThereIsNoSuchProgram) {
    const CommandResult result = run_command({.argv = {"no-such-program-anywhere"}});
    EXPECT_EQ(result.exit_status, 127);
    EXPECT_EQ(result.output, "can't be executed\n");
}

TEST(Process, MustBeStartedOnTheMainThread) {
    std::thread([] { EXPECT_THROW(Process({.argv = {"true"}}), std::logic_error); }).join();
}

TEST(Process, InheritsNoDescriptor) {
    Backend backend;
    const CommandResult result = run_command({.argv = {"ls", "/proc/self/fd"}});
    EXPECT_EQ(result.output, "0\n1\n2\n3\n") << "3 is the folder ls reads";
}

TEST(Process, EndsWithTheTestThatStartedIt) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t test = ::fork();
    ASSERT_GE(test, 0);
    if (test == 0) {
        Process process({.argv = {"sleep", "1000"}});
        const pid_t pid = process.pid();
        (void)wait_until([&] { return process_info(pid)->name == "sleep"; }, patience, "sleep to run");
        (void)!::write(ends[1], &pid, sizeof pid);
        ::raise(SIGKILL);
    }
    const Socket reading(ends[0]);
    const Socket writing(ends[1]);
    pid_t pid = 0;
    ASSERT_EQ(::read(reading.fd(), &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    EXPECT_EQ(::waitpid(test, nullptr, 0), test);
    EXPECT_TRUE(wait_until(
        [&] {
            const auto info = process_info(pid);
            return !info || info->state == 'Z';
        },
        patience, "the orphan's end"));
}

TEST(HttpClient, SendsMethodHeadersCookieAndBody) {
    Backend backend;
    const Response response =
        get(backend.url("/form?x=1"),
            {.method = "PUT", .headers = {{"X-One", "1"}, {"X-One", "2"}}, .body = "hello", .cookie = "route=.a"});
    EXPECT_EQ(response.status, 200);
    const Request request = backend.last_request().value();
    EXPECT_EQ(request.method, "PUT");
    EXPECT_EQ(request.target, "/form?x=1");
    EXPECT_EQ(request.path, "/form");
    EXPECT_EQ(request.headers.all("x-one"), (std::vector<std::string>{"1", "2"}));
    EXPECT_EQ(request.headers.get("Cookie"), "route=.a");
    EXPECT_EQ(request.headers.get("Content-Length"), "5");
    EXPECT_FALSE(request.headers.has("Content-Type"));
    EXPECT_EQ(request.body, "hello");
}

TEST(HttpClient, FindsHeadersWithoutRegardToCaseAndAllOfAName) {
    Backend backend;
    backend.answer(Reply::ok().header("Set-Cookie", "a=1").header("set-cookie", "b=2").after_interim(103));
    const Response response = get(backend.url());
    EXPECT_EQ(response.headers.all("SET-COOKIE"), (std::vector<std::string>{"a=1", "b=2"}));
    EXPECT_EQ(response.header("x-backend"), "backend");
    EXPECT_FALSE(response.headers.has("X-Interim")) << "only the final answer's";
}

TEST(HttpClient, KeepsItsConnectionUnlessAskedForAFreshOne) {
    Backend backend;
    Client client;
    EXPECT_TRUE(client.get(backend.url()).new_connection);
    EXPECT_FALSE(client.get(backend.url()).new_connection);
    EXPECT_EQ(backend.last_request()->nth_on_connection, 2U);
    EXPECT_TRUE(client.get(backend.url(), {.fresh_connection = true}).new_connection);
    EXPECT_EQ(backend.connections(), 2U);
}

TEST(HttpClient, ReportsARefusedConnection) {
    const ReservedPort port;
    const Response response = get("http://127.0.0.1:" + std::to_string(port.number()) + "/");
    EXPECT_EQ(response.status, 0);
    EXPECT_EQ(response.code, CURLE_COULDNT_CONNECT);
    EXPECT_NE(response.error, "");
}

TEST(Load, CountsByStatusAndBackend) {
    Backend backend("app");
    backend.answer_next(30, Reply::status(503));
    const LoadResult result = load(backend.url(), {.threads = 4, .requests_per_thread = 25});
    EXPECT_EQ(result.total(), 100U);
    EXPECT_EQ(result.with_status(503), 30U) << result.describe();
    EXPECT_EQ(result.with_status(200), 70U);
    EXPECT_EQ(result.from("app"), 100U);
    EXPECT_EQ(backend.connections(), 4U) << "one kept connection a thread";
    EXPECT_FALSE(result.all(200));
}

TEST(Load, CountsErrors) {
    Backend backend;
    backend.answer(Reply::reset());
    const LoadResult result = load(backend.url(), {.threads = 2, .requests_per_thread = 5});
    EXPECT_EQ(result.with_status(0), 10U) << result.describe();
    EXPECT_FALSE(result.errors.empty());
}

TEST(Load, RunsInTheBackgroundUntilItIsFinished) {
    Backend backend;
    BackgroundLoad load(backend.url(), {.threads = 2, .keep_connections = false});
    EXPECT_TRUE(load.wait_for_answers(20));
    backend.answer(Reply::status(500));
    EXPECT_TRUE(load.wait_for_answers(20));
    const LoadResult result = load.finish();
    EXPECT_GE(result.with_status(500), 18U) << result.describe();
    EXPECT_EQ(result.total(), load.answers());
    EXPECT_EQ(backend.connections(), result.total());
}

}  // namespace
}  // namespace cb::test
