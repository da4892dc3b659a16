// Request lines and fields: unusual ones, and wrong ones.
#include "differential_requests.hpp"

namespace cb::test {
namespace {

/// By which name it is reported, and what is done.
template <typename Change>
struct Named {
    const char* name;
    Change change;
};
using LineOf = std::string (*)(const Draft&);

std::string plain_line(const Draft& d) {
    return d.method + " " + d.target + " " + d.version;
}

const Named<LineOf> request_lines[] = {
    {"two spaces after the method", [](const Draft& d) { return d.method + "  " + d.target + " " + d.version; }},
    {"two spaces before the version", [](const Draft& d) { return d.method + " " + d.target + "  " + d.version; }},
    {"tabs", [](const Draft& d) { return d.method + "\t" + d.target + "\t" + d.version; }},
    {"space at the end", [](const Draft& d) { return plain_line(d) + " "; }},
    {"space at the beginning", [](const Draft& d) { return " " + plain_line(d); }},
    {"no version", [](const Draft& d) { return d.method + " " + d.target; }},
    {"HTTP/0.9 by name", [](const Draft& d) { return d.method + " " + d.target + " HTTP/0.9"; }},
    {"HTTP/1.2", [](const Draft& d) { return d.method + " " + d.target + " HTTP/1.2"; }},
    {"HTTP/1.10", [](const Draft& d) { return d.method + " " + d.target + " HTTP/1.10"; }},
    {"HTTP/2.0", [](const Draft& d) { return d.method + " " + d.target + " HTTP/2.0"; }},
    {"version in lower case", [](const Draft& d) { return d.method + " " + d.target + " http/1.1"; }},
    {"another protocol", [](const Draft& d) { return d.method + " " + d.target + " HTTPS/1.1"; }},
    {"letters after the version", [](const Draft& d) { return plain_line(d) + "x"; }},
    {"method in lower case", [](const Draft& d) { return "put " + d.target + " " + d.version; }},
    {"unknown method", [](const Draft& d) { return "FROB " + d.target + " " + d.version; }},
    {"WebDAV method", [](const Draft& d) { return "PROPFIND " + d.target + " " + d.version; }},
    {"TRACE", [](const Draft& d) { return "TRACE " + d.target + " " + d.version; }},
    {"CONNECT", [](const Draft& d) { return "CONNECT test.example:80 " + d.version; }},
    {"no method", [](const Draft& d) { return " " + d.target + " " + d.version; }},
    {"method that is no token", [](const Draft& d) { return "G(T " + d.target + " " + d.version; }},
    {"NUL in the method", [](const Draft& d) { return std::string("G\0T ", 4) + d.target + " " + d.version; }},
    {"very long method", [](const Draft& d) { return std::string(9000, 'M') + " " + d.target + " " + d.version; }},
    {"target without a slash", [](const Draft& d) { return d.method + " " + d.target.substr(1) + " " + d.version; }},
    {"absolute target", [](const Draft& d) { return d.method + " http://test.example" + d.target + " " + d.version; }},
    {"absolute target, another host",
     [](const Draft& d) { return d.method + " http://other.example" + d.target + " HTTP/1.1"; }},
    {"absolute target with a user",
     [](const Draft& d) { return d.method + " http://a:b@test.example" + d.target + " HTTP/1.1"; }},
    {"absolute target, another scheme",
     [](const Draft& d) { return d.method + " https://test.example" + d.target + " HTTP/1.1"; }},
    {"OPTIONS *", [](const Draft& d) { return "OPTIONS * " + d.version; }},
    {"asterisk", [](const Draft& d) { return d.method + " * " + d.version; }},
    {"fragment", [](const Draft& d) { return d.method + " " + d.target + "#part " + d.version; }},
    {"encoded NUL", [](const Draft& d) { return d.method + " " + d.target + "%00 " + d.version; }},
    {"encoded slash", [](const Draft& d) { return d.method + " /a%2f" + d.target.substr(1) + " " + d.version; }},
    {"encoded line end", [](const Draft& d) { return d.method + " /a%0d%0a" + d.target.substr(1) + " " + d.version; }},
    {"encoded nonsense", [](const Draft& d) { return d.method + " /%zz" + d.target.substr(1) + " " + d.version; }},
    {"dots", [](const Draft& d) { return d.method + " /a/../b/.%2e/" + d.target.substr(1) + " " + d.version; }},
    {"dots above the root", [](const Draft& d) { return d.method + " /../.." + d.target + " " + d.version; }},
    {"space in the target", [](const Draft& d) { return d.method + " /a b" + d.target + " " + d.version; }},
    {"NUL in the target",
     [](const Draft& d) { return d.method + std::string(" /a\0b", 5) + d.target + " " + d.version; }},
    {"control character in the target",
     [](const Draft& d) { return d.method + " /a\x01" + d.target + " " + d.version; }},
    {"CR in the target", [](const Draft& d) { return d.method + " /a\r" + d.target + " " + d.version; }},
    {"bytes above 127 in the target",
     [](const Draft& d) { return d.method + " /\xc3\xa4\xff" + d.target + " " + d.version; }},
    {"target of 7 KB", [](const Draft& d) { return d.method + " /" + std::string(7000, 'a') + " " + d.version; }},
    {"target about the limit",
     [](const Draft& d) { return d.method + " /" + std::string(8190 - d.target.size(), 'a') + " " + d.version; }},
    {"target of 20 KB", [](const Draft& d) { return d.method + " /" + std::string(20'000, 'a') + " " + d.version; }},
    {"query of 7 KB", [](const Draft& d) { return d.method + " /?" + std::string(7000, 'q') + " " + d.version; }},
    {"empty line before", [](const Draft& d) { return "\r\n" + plain_line(d); }},
    {"LF before", [](const Draft& d) { return "\n" + plain_line(d); }},
    {"many empty lines before",
     [](const Draft& d) { return "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n" + plain_line(d); }},
    {"two CR at the end", [](const Draft& d) { return plain_line(d) + "\r"; }},
};

const std::string nul(1, '\0');

const Named<std::string> lines[] = {
    {"space before the colon", "X-Odd : value"},
    {"tab before the colon", "X-Odd\t: value"},
    {"no colon", "X-Odd value"},
    {"no name", ": value"},
    {"no value", "X-Odd:"},
    {"no space", "X-Odd:value"},
    {"tabs around", "X-Odd:\t\tvalue\t"},
    {"name that is no token", "X(Odd): value"},
    {"name with a space", "X Odd: value"},
    {"name with an underscore", "X_Odd: value"},
    {"folded", "X-Odd: value\r\n  folded"},
    {"folded to nothing", "X-Odd: value\r\n "},
    {"folded with a tab", "X-Odd: value\r\n\tContent-Length: 3"},
    {"CR in a value", "X-Odd: a\rb"},
    {"CR and a field in a value", "X-Odd: a\rContent-Length: 5"},
    {"two CR at the end", "X-Odd: a\r"},
    {"LF at the end", "X-Odd: a\nX-Other: b"},
    {"LF in a value", "X-Odd: a\nb"},
    {"NUL in a value", "X-Odd: a" + nul + "b"},
    {"NUL in a name", "X-O" + nul + "dd: a"},
    {"control character in a value", "X-Odd: a\x01\x02\x7f"},
    {"bytes above 127 in a value", "X-Odd: \xc3\xa4\xff"},
    {"bytes above 127 in a name", "X-\xc3\xa4: a"},
    {"value of 8 KB", "X-Odd: " + std::string(8100, 'v')},
    {"value about the limit", "X-Odd: " + std::string(8183, 'v')},
    {"value of 9 KB", "X-Odd: " + std::string(9000, 'v')},
    {"name of 9 KB", std::string(9000, 'n') + ": v"},
    {"second Host", "Host: other.example"},
    {"the same Host again", "Host: test.example"},
    {"Connection names Host", "Connection: Host"},
    {"Connection names Content-Length", "Connection: Content-Length"},
    {"Connection names Transfer-Encoding", "Connection: keep-alive, Transfer-Encoding"},
    {"Connection names another", "Connection: X-Field"},
    {"Connection is empty", "Connection:"},
    {"Connection is nonsense", "Connection: ,,(;"},
    {"Keep-Alive", "Keep-Alive: timeout=500"},
    {"Proxy-Connection", "Proxy-Connection: close"},
    {"Max-Forwards 0", "Max-Forwards: 0"},
    {"X-Forwarded-For", "X-Forwarded-For: 10.0.0.1, 10.0.0.2"},
    {"Proxy", "Proxy: http://other.example"},
    {"TE", "TE: trailers, deflate;q=0.5"},
    {"Trailer", "Trailer: X-After"},
    {"Date", "Date: not a date"},
    {"a status line", "HTTP/1.1 200 OK"},
    {"a request line", "GET /smuggled HTTP/1.1"},
};

const Named<std::string> hosts[] = {{"empty Host", "Host:"},
                                    {"Host with a port", "Host: test.example:81"},
                                    {"Host with a path", "Host: a/b"},
                                    {"Host with a space", "Host: a b"},
                                    {"Host of IPv6", "Host: [::1]"},
                                    {"Host with a bad port", "Host: test.example:x"},
                                    {"Host of nonsense", "Host: a@b,c"}};

const Named<std::string> features[] = {
    {"Upgrade to websocket",
     "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
     "AAAAAAAAAAAAAAAAAAAAAA=="},
    {"Upgrade to h2c", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__"},
    {"Upgrade to nonsense", "Upgrade: nonsense/1, other\r\nConnection: upgrade"},
    {"Upgrade without Connection", "Upgrade: websocket"},
    {"Range", "Range: bytes=0-3"},
    {"Range, several", "Range: bytes=0-3,6-8"},
    {"Range, from the end", "Range: bytes=-4"},
    {"Range, out of reach", "Range: bytes=90000-"},
    {"Range, nonsense", "Range: bytes=9-3,x"},
    {"If-Range", "Range: bytes=0-3\r\nIf-Range: \"x\""},
    {"If-None-Match", "If-None-Match: *"},
    {"If-Match", "If-Match: \"x\""},
    {"If-Modified-Since", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"},
    {"If-Unmodified-Since", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT"},
    {"Connection: close", "Connection: close"},
    {"Connection: keep-alive", "Connection: keep-alive"},
    {"Connection: close, keep-alive", "Connection: close, keep-alive"},
    {"Accept-Encoding", "Accept-Encoding: gzip"},
    {"Content-Encoding", "Content-Encoding: gzip"},
    {"Content-Type", "Content-Type: multipart/form-data; boundary=b"},
    {"Authorization", "Authorization: Basic YTpi"},
    {"Cookie", "Cookie: a=b; c=d"},
    {"Pragma and Cache-Control", "Pragma: no-cache\r\nCache-Control: no-store"},
};

}  // namespace

Draft with_unusual_request_line(Maker& make) {
    Draft draft = make.one_in(3) ? make.good_with_body() : make.good();
    const auto& line = make.one_of(request_lines);
    draft.kind = std::string("request line: ") + line.name;
    draft.first_line = line.change(draft);
    return draft;
}

Draft with_unusual_field(Maker& make) {
    Draft draft = make.one_in(2) ? make.good_with_body() : make.good();
    if (make.one_in(8)) {
        const auto& other = make.one_of(hosts);
        draft.fields[0] = other.change;
        draft.kind = std::string("field: ") + other.name;
    } else if (make.one_in(12)) {
        draft.fields.erase(draft.fields.begin());
        draft.kind = "field: no Host";
    } else if (make.one_in(12)) {
        draft.line_end = "\n";
        draft.kind = "field: all lines end with LF";
    } else if (make.one_in(16)) {
        draft.line_end = "\r";
        draft.kind = "field: all lines end with CR";
    } else if (make.one_in(10)) {
        const std::size_t count = 96 + make.below(8);  // httpd's limit is 100
        for (std::size_t i = 0; i < count; ++i)
            draft.fields.push_back("X-" + std::to_string(i) + ": v");
        draft.kind = "field: about a hundred";
    } else {
        const auto& line = make.one_of(lines);
        draft.fields.insert(draft.fields.begin() + static_cast<std::ptrdiff_t>(make.below(draft.fields.size() + 1)),
                            line.change);
        draft.kind = std::string("field: ") + line.name;
    }
    return draft;
}

Draft with_feature(Maker& make) {
    Draft draft = make.one_in(3) ? make.good_with_body() : make.good();
    if (make.one_in(6)) {
        draft.version = "HTTP/1.0";
        draft.kind = "HTTP/1.0";
        if (make.one_in(2)) draft.fields.emplace_back("Connection: keep-alive");
        if (make.one_in(3)) draft.fields.erase(draft.fields.begin());
        return draft;
    }
    if (make.one_in(12)) {
        draft.first_line = "GET " + draft.target;
        draft.fields.clear();
        draft.body.clear();
        draft.kind = "HTTP/0.9";
        return draft;
    }
    const auto& feature = make.one_of(features);
    draft.fields.push_back(feature.change);
    draft.kind = feature.name;
    return draft;
}

}  // namespace cb::test
