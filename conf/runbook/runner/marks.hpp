// What programs have set for a member, until clear.d's programs clear it.
//
// Purpose: remembers it over graceful restarts: one empty file FOLDER/set-HASH/PROGRAM for each member and program.
// HASH is fnv1a() of the member's key in 16 hexadecimal digits, PROGRAM the name of a file that was found in the
// runbook, so nothing of an event becomes part of a path. What can't be written is remembered in memory. Thread safety:
// one thread; another runner may use the same folder, but not for the same member at the same time (see Queue::lock).
#ifndef CIRCUITBREAKER_RUNBOOK_MARKS_HPP
#define CIRCUITBREAKER_RUNBOOK_MARKS_HPP

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace cb::runbook {

/// The 64-bit FNV-1a hash: the same in every version and on every machine, unlike std::hash.
[[nodiscard]] std::uint64_t fnv1a(const std::string& text);

class Marks {
  public:
    explicit Marks(const std::string& folder);

    void set(const std::string& key, const std::string& program);
    void drop(const std::string& key, const std::string& program);
    /// The programs with a mark for that key, in the order of their names.
    [[nodiscard]] std::set<std::string> of(const std::string& key) const;

  private:
    [[nodiscard]] std::string folder_of(const std::string& key) const;
    [[nodiscard]] bool write(const std::string& key, const std::string& program) const;
    void say_why_not(const std::string& folder, int error);

    const std::string folder_;
    bool has_said_ = false;
    std::map<std::string, std::set<std::string>> in_memory_;  // by key
};

}  // namespace cb::runbook

#endif
