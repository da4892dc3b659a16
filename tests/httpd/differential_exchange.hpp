// One connection of a client that sends given bytes, whatever they are, and what came of it: for the client and for the
// members.
//
// Thread safety: a Lane belongs to one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "differential_members.hpp"

namespace cb::test {

/// What the client does when all is sent.
enum class After {
    half_close,  ///< sends no more, and reads on: nothing has to wait for a timeout
    wait,        ///< reads on, and half-closes when nothing has come for a while
    stall,       ///< reads on until the server ends it
    close,
    reset
};

struct Exchange {
    std::string kind;
    std::string bytes;
    After after = After::half_close;
    unsigned number = 0;
};

struct Outcome {
    std::string answer;
    bool is_ended = true;  // by the server
    std::vector<Message> messages;
};

/// A server, as one lane sees it: ports and members that only this lane uses.
struct Door {
    std::uint16_t port = 0;
    std::uint16_t impatient_port = 0;  // where a client may be silent for a second
    std::filesystem::path log;         // a line for each request, which begins with the client's port
};

class Lane {
  public:
    explicit Lane(const std::vector<Manner>& manners) : members(manners) {}

    [[nodiscard]] Outcome run(const Door& door, const Exchange& exchange);

    RecordingMembers members;
    /// Every one so far, with its client's port.
    std::vector<std::pair<std::uint16_t, const Exchange*>> exchanges;

  private:
    void speak(Socket& client, const Exchange& exchange, Outcome& outcome);
    /// A line of it that begins after `from` bytes of the log.
    void wait_for_line(const Door& door, std::uint16_t port, std::size_t from);
};

}  // namespace cb::test
