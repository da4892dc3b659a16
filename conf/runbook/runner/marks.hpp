// What programs have set for a member, until clear.d's programs clear it.
//
// Purpose: remembers it over restarts of httpd: one file FOLDER/set-HASH/VHOST.PROGRAM for each breaker and program.
// HASH is fnv1a() of the event's key and VHOST that of its virtual host, in 16 hexadecimal digits; PROGRAM is the name
// of a file that was found in the runbook. So nothing of an event becomes part of a path. The file's lines are which
// httpd it was, and the last opening. What can't be written is remembered in memory. Thread safety: one thread; another
// runner may use the same folder, but not for the same key at the same time (see Queue::lock).
#ifndef CIRCUITBREAKER_RUNBOOK_MARKS_HPP
#define CIRCUITBREAKER_RUNBOOK_MARKS_HPP

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "event.hpp"

namespace cb::runbook {

/// The 64-bit FNV-1a hash: the same in every version and on every machine, unlike std::hash.
[[nodiscard]] std::uint64_t fnv1a(const std::string& text);

class Marks {
  public:
    using Names = std::set<std::string>;  // "set-HASH/VHOST.PROGRAM"

    explicit Marks(const std::string& folder);

    void set(const Event& opening, const std::string& program);
    void drop(const Names& marks);
    /// What the event clears, by program.
    [[nodiscard]] std::map<std::string, Names> of(const Event& event) const;
    /// A reset_event() for each mark that was set under another httpd than the one that has started this runner.
    [[nodiscard]] std::vector<Event> of_earlier_httpds() const;

  private:
    [[nodiscard]] Names in_folder(const std::string& name) const;
    [[nodiscard]] bool write(const std::string& mark, const std::string& line) const;
    /// As it stands in the file.
    struct Mark {
        std::string httpd;
        std::string line;
    };
    [[nodiscard]] Mark read(const std::string& mark) const;
    void say_why_not(const std::string& folder, int error);

    const std::string folder_;
    const std::string httpd_;
    bool has_said_ = false;
    Names in_memory_;
};

}  // namespace cb::runbook

#endif
