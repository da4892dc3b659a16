// A runner alone with programs that note that they have run.
#pragma once

#include <fstream>

#include "pages.hpp"
#include "runbook.hpp"

namespace cb::test {

/// A program that notes its name, its folder and its member, and ends with what stands in $T/status-NAME, or with 0.
inline const std::string noting =
    "name=${0##*/}; folder=${0%/*}; echo \"${folder##*/}/$name $CB_MEMBER\" >> $T/ran; "
    "exit \"$(cat \"$T/status-$name\" 2> /dev/null || echo 0)\"";

class NotingRunner : public RunnerAlone {
  protected:
    /// With these programs in these folders.
    void programs(const std::vector<std::string>& names) const {
        for (const std::string& name : names)
            runbook_.program(name, noting);
    }
    void ends_with(const std::string& program, int status) const {
        std::ofstream(runbook_.path("status-" + program)) << status << "\n";
    }
    /// What has run since the last time, for one member after the other.
    [[nodiscard]] std::string ran(const std::string& lines, const std::string& options = "") const {
        return ran_in([&] { return run(lines, options); });
    }
    /// The same after httpd has been stopped and started.
    [[nodiscard]] std::string ran_anew(const std::string& lines = "", const std::string& options = "") const {
        return ran_in([&] { return run_anew(lines, options); });
    }
    [[nodiscard]] std::size_t marks() const {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(runbook_.path("marks")))
            count += entry.is_regular_file() ? 1 : 0;
        return count;
    }
    /// As event() of RunnerAlone, of that virtual host.
    [[nodiscard]] static std::string event_of(const std::string& vhost, const std::string& member,
                                              const std::string& to = "open") {
        return replaced(event(member, to), "\"balancer\"", "\"vhost\":\"" + vhost + "\",\"balancer\"");
    }
    mutable std::string output_;

  private:
    template <typename Run>
    std::string ran_in(const Run& run) const {
        std::filesystem::remove(runbook_.path("ran"));
        const CommandResult result = run();
        EXPECT_EQ(result.exit_status, 0) << result.output;
        output_ = result.output;
        return runbook_.text("ran");
    }
};

}  // namespace cb::test
