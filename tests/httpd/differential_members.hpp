// Members that keep every byte they get: what servers with and without the module have sent them can be compared.
//
//     RecordingMembers members({Manner::answers, Manner::answers});
//     ... requests go through httpd to members.url(0) and members.url(1), while somebody calls members.serve() ...
//     for (const Message& message : members.take()) ...
//
// They have no thread: who waits for a client's answer serves them meanwhile, and when the answer has come, all that
// httpd has sent is in their sockets. So nothing has to be waited for before it is compared.
//
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/net.hpp"

namespace cb::test {

/// What a member does with a request that has come whole.
enum class Manner {
    answers,         ///< 200, and says what it has understood
    is_unavailable,  ///< 503
    resets,          ///< no byte, and a RST
    refuses          ///< nobody listens
};

/// A request as it came to a member.
struct Message {
    unsigned member = 0;
    std::string head;         // with its empty line, but for the value of Host, which names the member
    std::string body;         // without its chunks' sizes
    bool is_chunked = false;  // how it came
    bool is_whole = false;    // else it broke off, or is none

    /// All of it, to be compared and read.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::string method() const { return head.substr(0, head.find(' ')); }
};

class RecordingMembers {
  public:
    explicit RecordingMembers(const std::vector<Manner>& manners);

    [[nodiscard]] std::string url(unsigned member) const;
    /// Readable when `serve` has something to do.
    [[nodiscard]] int fd() const { return events_.fd(); }
    /// Takes what has come and answers what is whole, without waiting.
    void serve();
    /// What has come since the last time: requests in the order in which they were whole, then unfinished ones.
    [[nodiscard]] std::vector<Message> take();

    /// A request for it gets a 599 from the first member.
    static constexpr std::string_view trip = "/trip";

  private:
    struct Listener {
        Manner manner;
        ReservedPort port;
        Socket socket;
    };
    struct Peer {
        unsigned member;
        Socket socket;
        std::string bytes;
        bool was_told_to_continue = false;
    };

    void watch(const Socket& socket);
    void accept_on(unsigned member);
    /// False when the connection is over.
    bool read_from(Peer& peer);
    bool answer(const Peer& peer, const Message& message);
    void keep_unfinished(const Peer& peer);

    Socket events_;  // an epoll
    std::vector<std::unique_ptr<Listener>> listeners_;
    std::map<int, Peer> peers_;
    std::vector<Message> whole_;
    std::vector<Message> unfinished_;
};

}  // namespace cb::test
