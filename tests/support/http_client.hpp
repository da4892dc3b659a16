// The client's side of a test: one HTTP request over libcurl, on a connection of its own or on a kept one.
//
// Thread safety: `get` may be called from any thread; a Client belongs to one thread at a time. Proxy settings of the
// environment are ignored; redirects are not followed.
#pragma once

#include <curl/curl.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "headers.hpp"
#include "wait.hpp"

namespace cb::test {

struct RequestOptions {
    std::string method = "GET";
    Headers headers{};
    std::string body{};    // with Content-Length, or chunked if `headers` say so
    std::string cookie{};  // "name=value; other=value"
    milliseconds timeout = patience;
    bool fresh_connection = false;  // of a Client: open one for this request, and don't keep it
    std::string unix_socket{};      // connect there, whatever the URL's host
};

struct Response {
    int status = 0;  // 0: no answer, see `error`. A truncated answer has its status, and an error.
    Headers headers{};
    std::string body{};
    CURLcode code = CURLE_OK;
    std::string error{};  // what curl says; empty if the answer came whole
    milliseconds total_time{0};
    bool new_connection = false;

    [[nodiscard]] bool complete() const { return code == CURLE_OK; }
    [[nodiscard]] std::string header(std::string_view name) const { return headers.get(name); }
    /// The Backend that gave this answer; empty if httpd made it up itself.
    [[nodiscard]] std::string backend() const { return headers.get("X-Backend"); }
};

/// A client that keeps its connection alive from one request to the next.
class Client {
  public:
    Client();
    [[nodiscard]] Response get(const std::string& url, const RequestOptions& options = {});

  private:
    std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle_;
};

/// One request on a connection of its own.
[[nodiscard]] Response get(const std::string& url, const RequestOptions& options = {});

/// The same in the background; the future waits for it when it goes.
[[nodiscard]] std::future<Response> get_later(const std::string& url, const RequestOptions& options = {});

/// `count` requests that start at the same instant, each on a thread and connection of its own.
[[nodiscard]] std::vector<Response> get_at_once(unsigned count, const std::string& url,
                                                const RequestOptions& options = {});

}  // namespace cb::test
