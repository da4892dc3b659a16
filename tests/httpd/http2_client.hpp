// A client that speaks HTTP/2 to httpd: many requests on one connection.
//
//     Http2Client client(httpd);
//     Stream& stream = client.start("/app/x");
//     ... client.run_until([&] { return stream.received() > 0; }, "the answer"); client.give_up(stream);
//
// Thread safety: belongs to one thread.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/headers.hpp"
#include "support/http_client.hpp"
#include "support/httpd.hpp"

namespace cb::test {

/// One request of a Http2Client.
class Stream {
  public:
    explicit Stream(const std::string& url, std::size_t upload = 0) : handle_(curl_easy_init()), upload_(upload) {
        curl_easy_setopt(handle_, CURLOPT_URL, url.c_str());
        curl_easy_setopt(handle_, CURLOPT_PROXY, "");
        curl_easy_setopt(handle_, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(handle_, CURLOPT_PIPEWAIT, 1L);
        curl_easy_setopt(handle_, CURLOPT_WRITEFUNCTION, &take_body);
        curl_easy_setopt(handle_, CURLOPT_WRITEDATA, this);
        curl_easy_setopt(handle_, CURLOPT_HEADERFUNCTION, &take_header);
        curl_easy_setopt(handle_, CURLOPT_HEADERDATA, this);
        if (upload > 0) {  // half of it comes at once, the rest only by send_more()
            curl_easy_setopt(handle_, CURLOPT_UPLOAD, 1L);
            curl_easy_setopt(handle_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(2 * upload));
            curl_easy_setopt(handle_, CURLOPT_READFUNCTION, &give_body);
            curl_easy_setopt(handle_, CURLOPT_READDATA, this);
        }
    }
    ~Stream() { curl_easy_cleanup(handle_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    [[nodiscard]] CURL* handle() const { return handle_; }
    [[nodiscard]] std::size_t received() const { return received_; }
    void send_more(std::size_t bytes) {
        upload_ += bytes;
        curl_easy_pause(handle_, CURLPAUSE_CONT);
    }
    [[nodiscard]] bool is_uploading() const { return sent_ == upload_; }
    [[nodiscard]] const Headers& headers() const { return headers_; }
    [[nodiscard]] long status() const { return number(CURLINFO_RESPONSE_CODE); }
    [[nodiscard]] bool is_http2() const { return number(CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_2_0; }
    [[nodiscard]] bool is_on_new_connection() const { return number(CURLINFO_NUM_CONNECTS) > 0; }

  private:
    static std::size_t take_body(const char*, std::size_t, std::size_t count, void* self) {
        static_cast<Stream*>(self)->received_ += count;
        return count;
    }
    static std::size_t take_header(const char* bytes, std::size_t, std::size_t count, void* self) {
        static_cast<Stream*>(self)->headers_.add_line(std::string_view(bytes, count));
        return count;
    }
    static std::size_t give_body(char* into, std::size_t, std::size_t room, void* self) {
        Stream& stream = *static_cast<Stream*>(self);
        const std::size_t count = std::min(room, stream.upload_ - stream.sent_);
        if (count == 0) return CURL_READFUNC_PAUSE;
        std::fill_n(into, count, 'x');
        stream.sent_ += count;
        return count;
    }
    [[nodiscard]] long number(CURLINFO what) const {
        long value = 0;
        curl_easy_getinfo(handle_, what, &value);
        return value;
    }

    CURL* handle_;
    std::size_t upload_;
    std::size_t sent_ = 0;
    std::size_t received_ = 0;
    Headers headers_;
};

/// One connection to httpd, as many streams on it as one likes.
class Http2Client {
  public:
    /// Connects. (libcurl 7.88 can't use a connection again by prior knowledge, but finds it as one that is HTTP/2.)
    explicit Http2Client(const Httpd& httpd) : httpd_(httpd), multi_(curl_multi_init()) {
        const Stream& first = start("/breakers?auto", 0, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
        EXPECT_TRUE(finish());
        EXPECT_TRUE(first.is_http2() && first.is_on_new_connection());
    }
    ~Http2Client() { close(); }
    Http2Client(const Http2Client&) = delete;
    Http2Client& operator=(const Http2Client&) = delete;

    Stream& start(const std::string& path, std::size_t upload = 0, long version = CURL_HTTP_VERSION_2_0) {
        streams_.push_back(std::make_unique<Stream>(httpd_.url(path), upload));
        curl_easy_setopt(streams_.back()->handle(), CURLOPT_HTTP_VERSION, version);
        curl_multi_add_handle(multi_, streams_.back()->handle());
        return *streams_.back();
    }
    /// Whatever is to be sent and received, until `condition` holds.
    template <typename Condition>
    [[nodiscard]] bool run_until(Condition condition, std::string_view what) {
        return wait_until(
            [&] {
                curl_multi_poll(multi_, nullptr, 0, 5, nullptr);
                curl_multi_perform(multi_, &running_);
                return condition();
            },
            patience, what);
    }
    [[nodiscard]] bool finish() {
        return run_until([&] { return running_ == 0; }, "all streams to end");
    }
    /// Ends the stream by a RST_STREAM.
    void give_up(const Stream& stream) { curl_multi_remove_handle(multi_, stream.handle()); }
    /// Closes the connection, whatever goes on there.
    void close() {
        for (const auto& stream : streams_)
            curl_multi_remove_handle(multi_, stream->handle());
        streams_.clear();
        curl_multi_cleanup(std::exchange(multi_, nullptr));
    }
    /// One whole request.
    Stream& get(const std::string& path) {
        Stream& stream = start(path);
        EXPECT_TRUE(finish());
        return stream;
    }

  private:
    const Httpd& httpd_;
    CURLM* multi_;
    int running_ = 0;
    std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace cb::test
