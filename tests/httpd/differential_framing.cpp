// Where a request's body ends: Content-Length, Transfer-Encoding, chunks, trailers, Expect.
#include <cstdio>

#include "differential_requests.hpp"

namespace cb::test {
namespace {

std::string hex(std::size_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "%zx", number);
    return text;
}

struct Chunks {
    std::vector<std::string> pieces;  // each with its size and its CRLF
    std::string end = "0\r\n";
    std::string trailers = "\r\n";

    [[nodiscard]] std::string text() const {
        std::string all;
        for (const std::string& piece : pieces)
            all += piece;
        return all + end + trailers;
    }
};

std::string chunk_of(const std::string& data) {
    return hex(data.size()) + "\r\n" + data + "\r\n";
}

Chunks chunks_of(Maker& make, const std::string& data) {
    Chunks chunks;
    for (std::size_t at = 0; at < data.size();) {
        const std::size_t size = make.one_in(2) ? 1 + make.below(100) : 1 + make.below(20'000);
        chunks.pieces.push_back(chunk_of(data.substr(at, size)));
        at += size;
        if (chunks.pieces.size() == 40) break;  // no thousands of tiny ones
    }
    return chunks;
}

/// A request for a chunked body, which comes later.
Draft announcing_chunks(Maker& make) {
    Draft draft = make.good_with_body();
    draft.fields.back() = "Transfer-Encoding: chunked";
    return draft;
}

struct BadChunk {
    const char* name;
    std::string (*piece)(const std::string& data);
};
const BadChunk bad_chunks[] = {
    {"size zz", [](const std::string& data) { return "zz\r\n" + data + "\r\n"; }},
    {"size with a letter behind", [](const std::string& data) { return hex(data.size()) + "x\r\n" + data + "\r\n"; }},
    {"negative size", [](const std::string& data) { return "-" + chunk_of(data); }},
    {"size with a plus", [](const std::string& data) { return "+" + chunk_of(data); }},
    {"size with 0x", [](const std::string& data) { return "0x" + chunk_of(data); }},
    {"size of 16 digits", [](const std::string& data) { return "ffffffffffffffff\r\n" + data + "\r\n"; }},
    {"size of 17 digits", [](const std::string& data) { return "fffffffffffffffff\r\n" + data + "\r\n"; }},
    {"size of 7fff...", [](const std::string& data) { return "7fffffffffffffff\r\n" + data + "\r\n"; }},
    {"size with many zeros", [](const std::string& data) { return std::string(200, '0') + chunk_of(data); }},
    {"size with 9000 zeros", [](const std::string& data) { return std::string(9000, '0') + chunk_of(data); }},
    {"empty size", [](const std::string& data) { return "\r\n" + data + "\r\n"; }},
    {"space before the size", [](const std::string& data) { return " " + chunk_of(data); }},
    {"space after the size", [](const std::string& data) { return hex(data.size()) + "  \r\n" + data + "\r\n"; }},
    {"tab after the size", [](const std::string& data) { return hex(data.size()) + "\t\r\n" + data + "\r\n"; }},
    {"letters after a space", [](const std::string& data) { return hex(data.size()) + " a\r\n" + data + "\r\n"; }},
    {"size too large by one", [](const std::string& data) { return hex(data.size() + 1) + "\r\n" + data + "\r\n"; }},
    {"size too large by two", [](const std::string& data) { return hex(data.size() + 2) + "\r\n" + data + "\r\n"; }},
    {"size far too large", [](const std::string& data) { return hex(data.size() + 90'000) + "\r\n" + data + "\r\n"; }},
    {"size too small", [](const std::string& data) { return hex(data.size() / 2) + "\r\n" + data + "\r\n"; }},
    {"no CRLF behind", [](const std::string& data) { return hex(data.size()) + "\r\n" + data; }},
    {"LF behind", [](const std::string& data) { return hex(data.size()) + "\r\n" + data + "\n"; }},
    {"CR behind", [](const std::string& data) { return hex(data.size()) + "\r\n" + data + "\r"; }},
    {"letters behind", [](const std::string& data) { return hex(data.size()) + "\r\n" + data + "xx"; }},
    {"LF after the size", [](const std::string& data) { return hex(data.size()) + "\n" + data + "\r\n"; }},
    {"CR after the size", [](const std::string& data) { return hex(data.size()) + "\r" + data + "\r\n"; }},
    {"two CR after the size", [](const std::string& data) { return hex(data.size()) + "\r\r\n" + data + "\r\n"; }},
    {"extension", [](const std::string& data) { return hex(data.size()) + ";name=value\r\n" + data + "\r\n"; }},
    {"quoted extension", [](const std::string& data) { return hex(data.size()) + ";n=\"a;b\"\r\n" + data + "\r\n"; }},
    {"LF in an extension", [](const std::string& data) { return hex(data.size()) + ";a\nb\r\n" + data + "\r\n"; }},
    {"CR in an extension", [](const std::string& data) { return hex(data.size()) + ";a\rb\r\n" + data + "\r\n"; }},
    {"NUL in an extension",
     [](const std::string& data) { return hex(data.size()) + std::string(";a\0b\r\n", 6) + data + "\r\n"; }},
    {"extension of 9 KB",
     [](const std::string& data) { return hex(data.size()) + ";" + std::string(9000, 'e') + "\r\n" + data + "\r\n"; }},
    {"NUL in the size", [](const std::string& data) { return std::string("\0", 1) + chunk_of(data); }},
    {"a request instead", [](const std::string&) { return std::string("GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"); }},
};

struct BadEnd {
    const char* name;
    const char* end;
};
const BadEnd bad_ends[] = {{"no last chunk", ""},
                           {"last chunk with an extension", "0;last\r\n\r\n"},
                           {"last chunk of many zeros", "00000000\r\n\r\n"},
                           {"last chunk with LF", "0\n\n"},
                           {"last chunk without an empty line", "0\r\n"},
                           {"last chunk with a sign", "-0\r\n\r\n"},
                           {"last chunk with letters", "0zz\r\n\r\n"},
                           {"last chunk twice", "0\r\n\r\n0\r\n\r\n"}};

const std::string nul(1, '\0');
const std::pair<const char*, std::string> trailers[] = {
    {"one", "X-After: body\r\n\r\n"},
    {"Content-Length", "Content-Length: 5\r\n\r\n"},
    {"Transfer-Encoding", "Transfer-Encoding: identity\r\n\r\n"},
    {"Host", "Host: other.example\r\n\r\n"},
    {"no colon", "X-After body\r\n\r\n"},
    {"space before the colon", "X-After : body\r\n\r\n"},
    {"folded", "X-After: body\r\n folded\r\n\r\n"},
    {"NUL", "X-After: a" + nul + "b\r\n\r\n"},
    {"CR", "X-After: a\rb\r\n\r\n"},
    {"no name", ": body\r\n\r\n"},
    {"of 9 KB", "X-After: " + std::string(9000, 't') + "\r\n\r\n"},
    {"not ended", "X-After: body\r\n"},
    {"a request", "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"},
};

const char* const lengths[] = {"+%",
                               "-%",
                               "0%",
                               " % ",
                               "%,%",
                               "%, %",
                               "%;",
                               "%a",
                               "0x%",
                               "% %",
                               "%,0",
                               "\"%\"",
                               "1e1",
                               "-1",
                               "-0",
                               "",
                               "0",
                               "1",
                               "99",
                               "9223372036854775807",
                               "9223372036854775808",
                               "99999999999999999999999999",
                               "\x01",
                               "a"};
const char* const codings[] = {"chunked",
                               "Chunked",
                               "CHUNKED",
                               "gzip, chunked",
                               "identity, chunked",
                               "chunked, chunked",
                               "identity",
                               "gzip",
                               "chunked, gzip",
                               "chunked, identity",
                               "xchunked",
                               "chunkedx",
                               "chunked;q=1",
                               "",
                               "\tchunked",
                               "chunked\x0b",
                               ",chunked",
                               "chunked,",
                               "\"chunked\"",
                               "chunk ed",
                               "deflate, gzip, chunked",
                               "x-gzip ,chunked"};
const char* const names[] = {"Transfer-Encoding: ",      "transfer-encoding:",   "Transfer-Encoding : ",
                             "Transfer_Encoding: ",      " Transfer-Encoding: ", "Transfer-Encoding:\r\n ",
                             "X: y\rTransfer-Encoding: "};

std::string length_like(Maker& make, std::size_t size) {
    std::string value = make.one_of(lengths);
    for (auto at = value.find('%'); at != std::string::npos; at = value.find('%'))
        value.replace(at, 1, std::to_string(size));
    return value;
}

}  // namespace

Draft with_unusual_length(Maker& make) {
    Draft draft = make.good_with_body();
    const std::string data = draft.body;
    draft.fields.pop_back();
    std::string right = std::to_string(data.size());
    const std::size_t with_length = make.below(3);  // none, one, two
    const std::size_t with_coding = with_length == 0 ? 1 + make.below(2) : make.below(3);
    std::string kind = "framing:";
    for (std::size_t i = 0; i < with_length; ++i) {
        const std::size_t off = data.size() + make.below(4) - 2;
        const std::string value = make.one_in(2)   ? right
                                  : make.one_in(3) ? std::to_string(off)
                                                   : length_like(make, data.size());
        draft.fields.push_back("Content-Length: " + value);
        kind += value == right ? " right length" : " odd length";
    }
    for (std::size_t i = 0; i < with_coding; ++i) {
        const std::string value = make.one_in(3) ? "chunked" : make.one_of(codings);
        const std::string name = make.one_in(5) ? make.one_of(names) : names[0];
        draft.fields.push_back(name + value);
        kind += " " + (name == names[0] ? std::string() : "(odd name) ") + "'" + value + "'";
    }
    if (with_coding > 0 && make.one_in(2)) std::swap(draft.fields[1], draft.fields.back());
    if (make.one_in(8)) draft.version = "HTTP/1.0";
    if (with_coding > 0 && !make.one_in(4)) draft.body = chunks_of(make, data).text();
    draft.kind = kind;
    return draft;
}

Draft with_good_chunks(Maker& make) {
    Draft draft = announcing_chunks(make);
    draft.kind = "chunks: good";
    draft.body = chunks_of(make, draft.body).text();
    return draft;
}

Draft with_bad_chunks(Maker& make) {
    Draft draft = announcing_chunks(make);
    Chunks chunks = chunks_of(make, draft.body);
    if (make.one_in(5)) {
        const BadEnd& bad = make.one_of(bad_ends);
        draft.kind = std::string("chunks: ") + bad.name;
        chunks.end = bad.end;
        chunks.trailers.clear();
    } else {
        const BadChunk& bad = make.one_of(bad_chunks);
        const std::size_t at = make.one_in(2)   ? 0
                               : make.one_in(2) ? chunks.pieces.size()
                                                : make.below(chunks.pieces.size() + 1);
        draft.kind = std::string("chunks: ") + bad.name + (at == 0 ? ", first" : ", later");
        chunks.pieces.insert(chunks.pieces.begin() + static_cast<std::ptrdiff_t>(at),
                             bad.piece(make.content(1 + make.below(60))));
    }
    draft.body = chunks.text();
    return draft;
}

Draft with_trailers(Maker& make) {
    Draft draft = announcing_chunks(make);
    Chunks chunks = chunks_of(make, draft.body);
    if (make.one_in(10)) {
        chunks.trailers.clear();
        const std::size_t count = 96 + make.below(8);
        for (std::size_t i = 0; i < count; ++i)
            chunks.trailers += "X-" + std::to_string(i) + ": v\r\n";
        chunks.trailers += "\r\n";
        draft.kind = "trailers: about a hundred";
    } else {
        const auto& [name, text] = make.one_of(trailers);
        chunks.trailers = text;
        draft.kind = std::string("trailers: ") + name;
    }
    draft.body = chunks.text();
    return draft;
}

Draft with_expectation(Maker& make) {
    Draft draft = make.one_in(2)   ? make.good_with_body()
                  : make.one_in(2) ? with_good_chunks(make)
                                   : with_bad_chunks(make);
    if (make.one_in(6)) draft = make.good();
    if (make.one_in(8)) draft.version = "HTTP/1.0";
    static const char* const others[] = {"200-ok", "100-continue, other", "", "100-Continue", "100-continue;a=b"};
    const bool is_known = !make.one_in(4);
    const std::string value = is_known ? "100-continue" : make.one_of(others);
    draft.fields.push_back("Expect: " + value);
    draft.kind = "Expect: " + value + ", " + draft.kind;
    return draft;
}

}  // namespace cb::test
