// A scripted HTTP/1.1 server in the test's own process: what stands behind the httpd under test.
//
//     Backend app("app");                                   // answers 200 with its name, until told otherwise
//     app.answer(Reply::status(503));
//     app.answer_path("/slow", Reply::ok().after(200ms));
//     app.hold();                                           // requests come in, and wait
//     ... app.wait_for_concurrent(3) ... app.release();
//
// Every well-formed answer carries `X-Backend: name`. The behaviour holds for the requests that come after it was set
// (for a request held at the gate: what is set when it is let go); a request seen in `requests` or by a wait has its
// answer.
//
// Thread safety: everything may be called from any thread at any time, except that the destructor and `refuse` must not
// be called in a Handler. A Handler runs on the connections' threads, several at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "connection_server.hpp"
#include "http_message.hpp"
#include "temp_dir.hpp"

namespace cb::test {

class RequestReader;

/// Where a Backend listens instead of on a TCP port; an empty path means in a folder of its own.
struct OnUnixSocket {
    std::filesystem::path path{};
};

class Backend {
  public:
    explicit Backend(std::string name = "backend");
    Backend(std::string name, const OnUnixSocket& where);

    /// @name Where it is
    /// @{
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::uint16_t port() const { return server_.port(); }
    [[nodiscard]] const std::filesystem::path& unix_socket() const { return server_.unix_socket(); }
    /// For a client that comes directly: `http://127.0.0.1:PORT/path`.
    [[nodiscard]] std::string url(const std::string& path = "/") const;
    /// For BalancerMember and ProxyPass: `http://127.0.0.1:PORT` or `unix:PATH|http://NAME`.
    [[nodiscard]] std::string member() const;
    /// @}

    /// @name How it answers; for one request the first that applies: the next ones, the path, the rest
    /// @{
    void answer(Reply reply);
    void answer(Handler handler);
    /// The path without the query; until `answer_as_usual`.
    void answer_path(const std::string& path, Reply reply);
    void answer_next(unsigned requests, const Reply& reply);
    /// As at the start: 200 with the name, for everything.
    void answer_as_usual();
    /// @}

    /// @name Its connections
    /// @{
    /// The server is down: connecting is refused, idle connections are closed. `accept_again`: same port, up again.
    void refuse() { server_.refuse(); }
    void accept_again() { server_.accept_again(); }
    /// Every new connection gets a RST before anything is read (idle ones now).
    void reset_connections(bool on = true) { server_.reset_on_accept(on); }
    /// Kept-alive connections without a request, without a word; returns how many.
    unsigned close_idle_connections() { return server_.close_idle(); }
    unsigned reset_idle_connections() { return server_.reset_idle(); }
    /// @}

    /// @name The gate
    /// @{
    /// Requests are read (and counted, and logged), then wait before they are answered.
    void hold();
    /// Lets all go that wait, also in a hang, stall or silence, and opens the gate.
    void release();
    /// Lets that many go, the gate stays closed. What finds nobody waiting goes to the next ones to come.
    void release_some(unsigned requests);
    /// @}

    /// @name What it saw
    /// @{
    [[nodiscard]] unsigned requests() const { return requests_; }  ///< read as a whole
    [[nodiscard]] unsigned requests_for(const std::string& path) const;
    /// Uploads that were given up half way.
    [[nodiscard]] unsigned unfinished_requests() const { return unfinished_; }
    /// From the end of a request's head to just before the last byte of its answer (so that no correct client, however
    /// fast, is ever counted twice), or until the peer is seen to leave.
    [[nodiscard]] unsigned concurrent() const { return concurrent_; }
    /// The most at once; who has left does not count, seen or not.
    [[nodiscard]] unsigned peak() const { return peak_; }
    [[nodiscard]] unsigned connections() const { return server_.accepted(); }  ///< accepted so far
    [[nodiscard]] unsigned open_connections() { return server_.open_connections(); }
    /// The latest requests, oldest first, at most `most_logged`.
    [[nodiscard]] std::vector<Request> log() const;
    [[nodiscard]] std::optional<Request> last_request() const;
    /// Counts from zero again: requests, unfinished ones, the peak, the log.
    void forget();

    /// That many requests are in the backend at once, read as a whole and now being answered or held.
    [[nodiscard]] bool wait_for_concurrent(unsigned requests, milliseconds timeout = patience) const;
    [[nodiscard]] bool wait_for_requests(unsigned requests, milliseconds timeout = patience) const;
    /// No request is left.
    [[nodiscard]] bool wait_until_quiet(milliseconds timeout = patience) const;
    /// @}

    static constexpr std::size_t most_logged = 2000;

  private:
    void serve(Connection& connection);
    bool serve_one(Connection& connection, RequestReader& reader, Request request);
    void enter();
    void note(const Request& request);
    [[nodiscard]] Reply choose(const Request& request);
    [[nodiscard]] bool may_go(std::uint64_t arrived_at);
    [[nodiscard]] bool holding() const;

    const std::string name_;
    const std::optional<TempDir> folder_;

    mutable std::mutex mutex_;  // guards the script, the gate and the log
    Handler usual_;
    std::map<std::string, Reply> by_path_;
    std::deque<Reply> next_;
    bool holding_ = false;
    std::atomic<std::uint64_t> releases_{0};
    unsigned tickets_ = 0;
    std::deque<Request> log_;
    std::map<std::string, unsigned> requests_by_path_;

    std::atomic<unsigned> requests_{0};
    std::atomic<unsigned> unfinished_{0};
    std::atomic<unsigned> concurrent_{0};
    std::atomic<unsigned> answering_{0};  // of these, the ones whose answer is chosen or that are held at the gate
    std::atomic<unsigned> peak_{0};

    ConnectionServer server_;  // last: its threads use all of the above
};

}  // namespace cb::test
