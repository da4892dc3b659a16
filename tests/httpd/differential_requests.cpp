#include "differential_requests.hpp"

#include <algorithm>
#include <utility>

namespace cb::test {
namespace {

constexpr const char* host = "Host: test.example";

/// What follows on the same connection; with `Connection: close` the server ends it then.
std::string next_request(Maker& make, bool is_last) {
    Draft next = make.one_in(4) ? make.good_with_body() : make.good();
    if (next.method == "HEAD") next.method = "GET";
    if (is_last) next.fields.emplace_back("Connection: close");
    return next.text();
}

Draft as_is(Maker& make) {
    Draft draft = make.one_in(2) ? make.good() : make.good_with_body();
    draft.kind = "good";
    return draft;
}

/// A slice or a byte of it changed, anywhere.
void scramble(Maker& make, std::string& bytes) {
    static const std::string other("\0\t\n\r :,;/%0Aaz\x7f\x80\xff", 18);
    // Most often in the head, or where a body begins.
    const std::size_t reach = make.one_in(4) ? bytes.size() : std::min<std::size_t>(bytes.size(), 300);
    const std::size_t at = make.below(reach);
    const std::size_t length = std::min(make.below(8) + 1, bytes.size() - at);
    switch (make.below(5)) {
        case 0:
            bytes[at] = make.one_of(other);
            break;
        case 1:
            bytes.insert(at, 1, make.one_of(other));
            break;
        case 2:
            bytes.erase(at, length);
            break;
        case 3:
            bytes.insert(at, bytes.substr(at, length));
            break;
        default:
            bytes.insert(make.below(reach), bytes.substr(at, length));
            break;
    }
}

struct Share {
    unsigned weight;
    Mutation mutation;
};
constexpr Share shares[] = {
    {8, as_is},
    {12, with_unusual_request_line},
    {14, with_unusual_field},
    {10, with_feature},
    {6, with_expectation},
    {20, with_unusual_length},
    {8, with_good_chunks},
    {22, with_bad_chunks},
    {8, with_trailers},
};

Draft any_draft(Maker& make) {
    unsigned all = 0;
    for (const Share& share : shares)
        all += share.weight;
    std::size_t choice = make.below(all);
    for (const Share& share : shares) {
        if (choice < share.weight) return share.mutation(make);
        choice -= share.weight;
    }
    return as_is(make);
}

/// A client that leaves without a word: its request has a head, or nobody would know when the server has seen it.
Exchange early_close(Maker& make) {
    const Draft draft = make.one_in(2) ? make.good_with_body() : with_bad_chunks(make);
    std::string bytes = draft.text();
    const std::size_t head = bytes.size() - draft.body.size();
    if (make.one_in(2)) bytes.resize(head + make.below(draft.body.size() + 1));
    const bool resets = make.one_in(2);
    return {(resets ? "reset: " : "close: ") + draft.kind, bytes, resets ? After::reset : After::close};
}

Exchange stall(Maker& make) {
    Draft draft = make.one_in(2) ? make.good_with_body() : with_good_chunks(make);
    std::string bytes = draft.text();
    bytes.resize(make.below(bytes.size() - 1) + 1);
    return {"stall: " + draft.kind, bytes, After::stall};
}

Exchange any_exchange(Maker& make) {
    if (make.one_in(50)) return early_close(make);
    Draft draft = any_draft(make);
    Exchange exchange{draft.kind, draft.text()};
    if (make.one_in(12)) {
        exchange.kind = "scrambled: " + exchange.kind;
        for (std::size_t times = make.below(2) + 1; times > 0; --times)
            scramble(make, exchange.bytes);
    }
    if (make.one_in(10)) {
        exchange.kind = "cut: " + exchange.kind;
        exchange.bytes.resize(make.below(exchange.bytes.size()));
        return exchange;
    }
    const std::size_t more = make.one_in(20) ? 3 : make.one_in(10) ? 0 : 1;
    const bool waits = more > 0 && make.one_in(6);
    for (std::size_t i = 0; i < more; ++i)
        exchange.bytes += next_request(make, waits && i + 1 == more);
    if (waits) exchange.after = After::wait;
    return exchange;
}

}  // namespace

std::string Draft::text() const {
    std::string all = (first_line.empty() ? method + " " + target + " " + version : first_line) + line_end;
    for (const std::string& field : fields)
        all += field + line_end;
    return all + line_end + body;
}

std::string Maker::target() {
    return "/r" + std::to_string(++targets_) + (one_in(4) ? "?a=b&c=d" : "");
}

std::string Maker::content(std::size_t size) {
    const std::string request = "GET /smuggled" + std::to_string(targets_) + " HTTP/1.1\r\nHost: test.example\r\n\r\n";
    const std::string pattern = one_in(2)   ? request
                                : one_in(2) ? "0\r\n\r\n" + request
                                : one_in(2) ? std::string("a\0b\xff\r\n", 6)
                                            : "key=value&";
    std::string text;
    while (text.size() < size)
        text += pattern;
    text.resize(size);
    return text;
}

std::size_t Maker::size_of_body() {
    switch (below(10)) {
        case 0:
            return below(3);
        case 1:
            return 8000 + below(400);  // about CircuitBreakerBodyLimit, and what httpd reads at once
        case 2:
            return 16'200 + below(6000);  // more than mod_proxy_http reads ahead
        case 3:
            return below(2) == 0 ? 30'000 + below(10'000) : 65'000 + below(30'000);
        default:
            return 1 + below(400);
    }
}

Draft Maker::good() {
    static const char* const methods[] = {"GET", "GET", "GET", "GET", "HEAD", "DELETE", "OPTIONS", "POST", "PUT"};
    Draft draft;
    draft.kind = "good";
    draft.method = one_of(methods);
    draft.target = target();
    draft.fields.emplace_back(host);
    if (one_in(3)) draft.fields.emplace_back("X-Field: of the client");
    if (draft.method == "POST" || draft.method == "PUT") draft.fields.emplace_back("Content-Length: 0");
    return draft;
}

Draft Maker::good_with_body() {
    static const char* const methods[] = {"PUT", "PUT",  "PUT",  "PUT",     "DELETE",
                                          "GET", "POST", "POST", "OPTIONS", "PATCH"};
    Draft draft;
    draft.kind = "good";
    draft.method = one_of(methods);
    draft.target = target();
    draft.body = content(size_of_body());
    draft.fields = {host, "Content-Length: " + std::to_string(draft.body.size())};
    return draft;
}

std::vector<Exchange> make_exchanges(std::uint64_t seed, unsigned count) {
    // A stall takes the server's timeout: few of them, and never two in a row for the same lane.
    constexpr unsigned between_stalls = 401;
    Maker make(seed);
    std::vector<Exchange> exchanges;
    while (exchanges.size() < count) {
        const auto number = static_cast<unsigned>(exchanges.size());
        exchanges.push_back(number % between_stalls == 0 ? stall(make) : any_exchange(make));
        exchanges.back().number = number;
    }
    return exchanges;
}

}  // namespace cb::test
