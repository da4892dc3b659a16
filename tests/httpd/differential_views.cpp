#include "differential_views.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>

namespace cb::test {
namespace {

/// As much of a body mod_proxy_http reads before it connects to a member (16 KB, less 80 bytes).
constexpr std::size_t read_ahead = 16'000;
/// CircuitBreakerBodyLimit: a longer body is not kept for another member.
constexpr std::size_t surely_kept = 8192;
/// And one as long as that may be, where a probe's body is read first.
constexpr std::size_t never_kept = 64 * 1024;

bool contains_in_any_case(std::string_view text, std::string_view part) {
    const auto is_same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), is_same) != text.end();
}

/// A body in chunks comes in other chunks than it left the client: as many bytes as were there when httpd looked. The
/// bytes alone are compared, as Message has them. Which member got it is the balancer's choice.
std::vector<std::string> texts_of(const std::vector<Message>& messages, bool with_parts) {
    std::vector<std::string> texts;
    for (const Message& message : messages) {
        if (message.is_whole || with_parts) texts.push_back(message.text());
    }
    return texts;
}

std::string list(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts)
        all += "      " + shown(text, 500) + "\n";
    return all.empty() ? "      nothing\n" : all;
}

std::string both(const char* what, const std::string& expected, const std::string& found) {
    return std::string("  ") + what + ", expected:\n" + expected + "  found:\n" + found;
}

std::string in_line(const std::string& bytes) {
    return "      " + shown(bytes) + "\n";
}

bool is_at(std::string_view text, std::size_t at, std::string_view pattern) {
    if (text.size() - at < pattern.size()) return false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const bool is_digit = std::isdigit(static_cast<unsigned char>(text[at + i])) != 0;
        if (pattern[i] == '#' ? !is_digit : pattern[i] != text[at + i]) return false;
    }
    return true;
}

/// Not what httpd answers without a member. (416 is made of a member's 200.)
bool is_of_member(const std::string& response) {
    return response.find("\r\nX-Member: yes\r\n") != std::string::npos || !response.starts_with("HTTP/") ||
           response.starts_with("HTTP/1.1 416 ");
}

bool is_idempotent(const Message& message) {
    static const char* const methods[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    return std::ranges::find(methods, message.method()) != std::end(methods);
}

/// Whether a call that failed is made again with another member.
enum class Again { yes, no, maybe };

Again again(const Message& message, Manner first) {
    if (first == Manner::refuses) return Again::yes;  // nothing was sent
    if (!is_idempotent(message) || message.body.size() > never_kept) return Again::no;
    return message.body.size() <= surely_kept ? Again::yes : Again::maybe;
}

constexpr const char* nothing_more = "(no more responses)";

std::string at(const std::vector<std::string>& responses, std::size_t i) {
    return i < responses.size() ? responses[i] : nothing_more;
}

/// The failing member's answer to the `i`th request of a connection. The server that has only that member may have
/// closed after the first, so those after it are only known in part.
bool is_failures_answer(const std::vector<std::string>& from_failing, const std::vector<std::string>& found,
                        std::size_t i, Manner first) {
    if (i == 0) return at(found, 0) == at(from_failing, 0);
    // mod_proxy_http has no answer for a client that may make its request again: it closes.
    if (first == Manner::resets) return at(found, i) == nothing_more;
    return at(found, i).starts_with("HTTP/1.1 503 ") && found.size() == i + 1;
}

/// A client that expects a `100 Continue` has got it when another member is asked: that one has nothing to say of it.
std::vector<Message> without_expectation(std::vector<Message> messages) {
    for (Message& message : messages) {
        const auto at = message.head.find("\r\nExpect: ");
        if (at != std::string::npos) message.head.erase(at, message.head.find("\r\n", at + 2) - at);
    }
    return messages;
}

/// What no server without the module would have given to a member.
std::string unknown_messages(const Outcome& stock, const Outcome& tested, bool with_parts) {
    std::string wrong;
    const std::vector<Message> expected = without_expectation(stock.messages);
    const std::vector<Message> found_messages = without_expectation(tested.messages);
    for (const unsigned member : {0U, 1U}) {
        std::vector<std::string> known = texts_of(expected, with_parts);
        std::vector<Message> its;
        std::ranges::copy_if(found_messages, std::back_inserter(its),
                             [&](const Message& m) { return m.member == member; });
        for (const std::string& text : texts_of(its, with_parts)) {
            const auto found = std::ranges::find(known, text);
            if (found != known.end())
                known.erase(found);
            else
                wrong += "  member " + std::to_string(member) + " should not have got:\n" + in_line(text);
        }
    }
    return wrong;
}

}  // namespace

bool may_be_sent_in_parts(const Exchange& exchange) {
    return exchange.bytes.size() > read_ahead || contains_in_any_case(exchange.bytes, "expect");
}

std::string shown(std::string_view bytes, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes.size() > most && i == most * 2 / 3) {
            const std::size_t left_out = bytes.size() - most;
            text += "<" + std::to_string(left_out) + " bytes>";
            i += left_out;
        }
        const auto byte = static_cast<unsigned char>(bytes[i]);
        char escaped[8];
        if (byte == '\r') {
            text += "\\r";
        } else if (byte == '\n') {
            text += "\\n";
        } else if (byte >= 32 && byte < 127) {
            text += bytes[i];
        } else {
            std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
            text += escaped;
        }
    }
    return text;
}

std::string comparable(std::string answer) {
    const auto leave_out = [&](std::string_view field, std::size_t from) {
        const auto at = answer.find(field, from);
        if (at != std::string::npos) answer.erase(at, std::min(answer.find("\r\n", at + 2), answer.size()) - at);
        return at;
    };
    for (std::size_t at = 0; at != std::string::npos;)
        at = leave_out("\r\nDate: ", at);
    constexpr std::string_view name = "multipart/byteranges; boundary=";
    for (auto at = answer.find(name); at != std::string::npos; at = answer.find(name, at)) {
        at += name.size();
        const std::string boundary = answer.substr(at, answer.find("\r\n", at) - at);
        if (boundary.empty() || boundary == "(drawn)") continue;
        leave_out("\r\nContent-Length: ", at);  // boundaries are not of one length
        for (auto where = answer.find(boundary); where != std::string::npos; where = answer.find(boundary))
            answer.replace(where, boundary.size(), "(drawn)");
    }
    return answer;
}

std::vector<std::string> responses_of(const std::string& answer) {
    // No body of these tests has a status line in it.
    std::vector<std::string> responses;
    std::size_t from = 0;
    bool is_interim = false;
    for (std::size_t i = 0; i < answer.size(); ++i) {
        if (!is_at(answer, i, "HTTP/1.# ### ")) continue;
        if (i > from && !is_interim) {
            responses.push_back(answer.substr(from, i - from));
            from = i;
        }
        is_interim = is_at(answer, i, "HTTP/1.# 1## ");
    }
    if (from < answer.size()) responses.push_back(answer.substr(from));
    return responses;
}

std::string difference(const Exchange& exchange, const Outcome& stock, const Outcome& tested) {
    std::string text;
    if (!stock.is_ended || !tested.is_ended) {
        text += std::string("  not ended by the server ") + (stock.is_ended ? "with" : "without") + " the module\n";
    }
    // A client that leaves has seen what was there by then.
    const bool has_left = exchange.after == After::close || exchange.after == After::reset;
    const std::string expected = comparable(stock.answer);
    const std::string found = comparable(tested.answer);
    if (!has_left && expected != found) text += both("client", in_line(expected), in_line(found));
    const bool with_parts = !may_be_sent_in_parts(exchange);
    const auto expected_messages = texts_of(stock.messages, with_parts);
    const auto found_messages = texts_of(tested.messages, with_parts);
    if (expected_messages != found_messages) text += both("members", list(expected_messages), list(found_messages));
    return text;
}

std::string difference_after_failover(const Exchange& exchange, const Outcome& well, const Outcome& failing,
                                      const Outcome& tested, Manner first) {
    std::string text = unknown_messages(well, tested, !may_be_sent_in_parts(exchange));
    if (!tested.is_ended) text += "  not ended by the server\n";
    if (exchange.after == After::close || exchange.after == After::reset) return text;
    const auto from_well = responses_of(comparable(well.answer));
    const auto from_failing = responses_of(comparable(failing.answer));
    const auto found = responses_of(comparable(tested.answer));
    std::size_t executed = 0;
    for (std::size_t i = 0; i < std::max(from_well.size(), found.size()); ++i) {
        const bool is_executed = i < from_well.size() && is_of_member(from_well[i]);
        if (is_executed && executed == well.messages.size()) return text + "  a response without a request\n";
        const Again wanted = is_executed ? again(well.messages[executed++], first) : Again::yes;
        if (wanted != Again::no && at(from_well, i) == at(found, i)) continue;
        if (wanted == Again::yes || !is_failures_answer(from_failing, found, i, first)) {
            const std::string& expected = wanted == Again::no ? at(from_failing, i) : at(from_well, i);
            return text + both("client", in_line(expected), in_line(at(found, i)));
        }
        if (i > 0 || from_failing.size() == 1) break;
    }
    return text;
}

}  // namespace cb::test
