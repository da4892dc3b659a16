#include "http_client.hpp"

#include <latch>
#include <mutex>
#include <new>
#include <thread>

namespace cb::test {
namespace {

std::size_t take_body(const char* bytes, std::size_t, std::size_t count, void* response) {
    static_cast<Response*>(response)->body.append(bytes, count);
    return count;
}

std::size_t take_header(const char* bytes, std::size_t, std::size_t count, void* response) {
    Headers& headers = static_cast<Response*>(response)->headers;
    const std::string_view line(bytes, count);
    if (line.starts_with("HTTP/"))
        headers.clear();  // those before belong to a 1xx
    else
        headers.add_line(line);
    return count;
}

class FieldList {
  public:
    ~FieldList() { curl_slist_free_all(list_); }
    FieldList() = default;
    FieldList(const FieldList&) = delete;
    FieldList& operator=(const FieldList&) = delete;

    void add(const std::string& line) {
        curl_slist* longer = curl_slist_append(list_, line.c_str());
        if (longer == nullptr) throw std::bad_alloc();
        list_ = longer;
    }
    [[nodiscard]] curl_slist* get() const { return list_; }

  private:
    curl_slist* list_ = nullptr;
};

}  // namespace

Client::Client() : handle_(nullptr, &curl_easy_cleanup) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    handle_.reset(curl_easy_init());
    if (handle_ == nullptr) throw std::bad_alloc();
}

Response Client::get(const std::string& url, const RequestOptions& options) {
    CURL* curl = handle_.get();
    curl_easy_reset(curl);  // the connection stays

    Response response;
    char error[CURL_ERROR_SIZE] = "";
    FieldList fields;
    // A field of the caller's stands; else curl's own Expect and Content-Type would colour the tests.
    if (!options.headers.has("Expect")) fields.add("Expect:");
    if (!options.headers.has("Content-Type")) fields.add("Content-Type:");
    for (const auto& [name, value] : options.headers) {
        std::string line = name;
        line += value.empty() ? ";" : ": ";
        fields.add(line + value);
    }

    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields.get());
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &response);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &response);
    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, options.fresh_connection ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, options.fresh_connection ? 1L : 0L);
    if (!options.cookie.empty()) curl_easy_setopt(curl, CURLOPT_COOKIE, options.cookie.c_str());
    if (!options.unix_socket.empty()) curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, options.unix_socket.c_str());
    if (!options.body.empty() || options.method == "POST") {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(options.body.size()));
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, options.body.c_str());
    }
    if (options.method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, options.method.c_str());

    response.code = curl_easy_perform(curl);

    long status = 0;
    long connects = 0;
    curl_off_t microseconds = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &connects);
    curl_easy_getinfo(curl, CURLINFO_TOTAL_TIME_T, &microseconds);
    response.status = static_cast<int>(status);
    response.new_connection = connects > 0;
    response.total_time = milliseconds(microseconds / 1000);
    if (response.code != CURLE_OK) {
        response.error = curl_easy_strerror(response.code);
        if (error[0] != '\0') response.error += std::string(": ") + error;
    }
    return response;
}

Response get(const std::string& url, const RequestOptions& options) {
    RequestOptions alone = options;
    alone.fresh_connection = true;
    return Client().get(url, alone);
}

std::future<Response> get_later(const std::string& url, const RequestOptions& options) {
    return std::async(std::launch::async, [url, options] { return get(url, options); });
}

std::vector<Response> get_at_once(unsigned count, const std::string& url, const RequestOptions& options) {
    std::vector<Response> responses(count);
    std::latch start(static_cast<std::ptrdiff_t>(count));
    std::vector<std::jthread> clients;
    for (Response& response : responses) {
        clients.emplace_back([&] {
            start.arrive_and_wait();
            response = get(url, options);
        });
    }
    clients.clear();
    return responses;
}

}  // namespace cb::test
