// What a scripted backend gets and what it does with it: Request, and Reply with all its ways to go wrong.
//
// A Reply is built like a sentence: `Reply::status(503).header("Retry-After", "7").after(50ms)`,
// `Reply::of_size(1'000'000).in_chunks().cut_after(10'000, Ending::reset)`.
//
// Thread safety: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headers.hpp"
#include "wait.hpp"

namespace cb::test {

struct Request {
    /// At most so much of a body is kept; `body_size` counts all of it.
    static constexpr std::size_t most_kept_body = 16 * 1024;

    std::string method;
    std::string target;   // as it came, with the query
    std::string path;     // the target without the query
    std::string version;  // "HTTP/1.1"
    Headers headers;
    std::string body;
    std::size_t body_size = 0;
    unsigned connection = 0;         // 1: the first connection the backend accepted
    unsigned nth_on_connection = 0;  // 1: the first request on it; more: it was kept alive
    std::chrono::steady_clock::time_point at;
};

/// How an answer ends that doesn't end as it should.
enum class Ending {
    fin,     ///< the connection is closed
    reset,   ///< the connection is reset
    silence  ///< nothing more comes, until the peer leaves, the backend is released (then a FIN) or stops
};

class Reply {
  public:
    /// @name What to answer
    /// @{
    static Reply ok(std::string body = "ok") { return status(200, std::move(body)); }
    static Reply status(int code, std::string body = "") {
        Reply reply;
        reply.code_ = code;
        reply.body(std::move(body));
        return reply;
    }
    /// 200 with a body of that many bytes.
    static Reply of_size(std::size_t bytes) { return ok(std::string(bytes, 'x')); }
    /// 101, and afterwards every byte that comes is sent back, until the peer leaves.
    static Reply upgrade(std::string protocol = "websocket");
    /// @}

    /// @name What goes wrong
    /// @{
    /// Reads the request and says nothing until `Backend::release`; then it is answered late, as the reply says.
    static Reply hang() { return ok().when_released(); }
    /// Reads the request, answers not one byte, and closes the connection that way.
    static Reply nothing(Ending ending) { return raw("", ending); }
    static Reply reset() { return nothing(Ending::reset); }
    static Reply garbage(Ending ending = Ending::fin) { return raw("\x15\x03\x01 this is not HTTP\r\n\r\n", ending); }
    static Reply half_header(Ending ending = Ending::fin) {
        return raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Unfini", ending);
    }
    static Reply only_interim(int code = 103, Ending ending = Ending::fin) {
        return raw("HTTP/1.1 " + std::to_string(code) + " Interim\r\n\r\n", ending);
    }
    /// Exactly these bytes.
    static Reply raw(std::string bytes, Ending ending = Ending::fin);
    /// @}

    Reply& header(std::string name, std::string value) {
        headers_.add(std::move(name), std::move(value));
        return *this;
    }
    Reply& body(std::string text) { return body_ = std::make_shared<const std::string>(std::move(text)), *this; }
    /// Chunked instead of Content-Length.
    Reply& in_chunks() { return framing_ = Framing::chunked, *this; }
    /// Neither: the end of the connection is the end of the body.
    Reply& until_close() { return framing_ = Framing::until_close, *this; }
    /// An interim answer before the real one, with a header field X-Interim.
    Reply& after_interim(int code) { return interim_ = code, *this; }

    /// Waits before the first byte.
    Reply& after(milliseconds delay) { return delay_ = delay, *this; }
    /// Waits for `Backend::release` before the first byte.
    Reply& when_released() { return when_released_ = true, *this; }
    /// Waits in the body, before byte `at`.
    Reply& pausing(std::size_t at, milliseconds pause) { return pause_at_ = at, pause_ = pause, *this; }
    /// Waits in the body, before byte `at`, for `Backend::release`.
    Reply& stalling(std::size_t at) { return pause_at_ = at, pause_.reset(), *this; }
    /// Sends the body in pieces (each a chunk, if chunked) with a pause before every piece.
    Reply& dripping(std::size_t piece, milliseconds pause) { return drip_size_ = piece, drip_pause_ = pause, *this; }

    /// Ends after so many bytes of the body, although the whole of it has been announced. A chunked body ends in the
    /// middle of a chunk.
    Reply& cut_after(std::size_t bytes, Ending ending) { return cut_at_ = bytes, ending_ = ending, *this; }
    /// A cut chunked body ends after a whole chunk; only the last, empty one is missing.
    Reply& between_chunks() { return cut_in_chunk_ = false, *this; }

    /// Says `Connection: close` and closes.
    Reply& closing() { return closing_ = true, *this; }
    /// Closes after the answer without having said so.
    Reply& closing_silently() { return closing_silently_ = true, *this; }

  private:
    friend class Answer;
    enum class Framing { length, chunked, until_close };

    int code_ = 200;
    Headers headers_;
    // Shared, or a backend that copies a long one for each request would be slow to its first byte.
    std::shared_ptr<const std::string> body_ = std::make_shared<const std::string>();
    Framing framing_ = Framing::length;
    std::optional<int> interim_;
    std::optional<std::string> raw_;
    bool echo_ = false;

    milliseconds delay_{0};
    bool when_released_ = false;
    std::optional<std::size_t> pause_at_;
    std::optional<milliseconds> pause_{milliseconds{0}};  // none: until released
    std::size_t drip_size_ = 0;
    milliseconds drip_pause_{0};

    std::optional<std::size_t> cut_at_;
    bool cut_in_chunk_ = true;
    Ending ending_ = Ending::fin;
    bool closing_ = false;
    bool closing_silently_ = false;
};

using Handler = std::function<Reply(const Request&)>;

}  // namespace cb::test
