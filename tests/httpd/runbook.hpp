// A runbook's folder in a test: programs, settings, and the directive that runs it.
//
//     const Runbook runbook;
//     runbook.program("on-open.d/10", "echo \"$CB_MEMBER\" >> $T/told");
//     Httpd httpd(site(policy + runbook.directive(), plain_worker(app)));
//     ... runbook.wait_for_lines("told", 1) ...
//
// Thread safety: belongs to one thread; what its programs write is read as files.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "traffic.hpp"

namespace cb::test {

/// The project's folder, by the module's.
inline std::filesystem::path project() {
    return module_under_test().parent_path().parent_path();
}

inline std::string runner() {
    return (module_under_test().parent_path() / "circuitbreaker-runbook").string();
}

/// A runbook's folder.
class Runbook {
  public:
    Runbook() {
        // The programs run as httpd's parent does; what they write, the test reads.
        std::filesystem::create_directories(path("state"));
        configure("");
    }
    [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
    [[nodiscard]] std::string text(const std::string& name) const { return read_file(path(name)); }

    /// `name` like "on-open.d/10-hang"; a shell script, in which $T is this folder.
    void program(const std::string& name, const std::string& script, bool executable = true) const {
        std::filesystem::create_directories(path(name).parent_path());
        std::ofstream(path(name)) << "#!/bin/sh\nT='" + folder_.path().string() + "'\n" + script + "\n";
        if (executable) ::chmod(path(name).c_str(), 0755);
    }
    /// A program that comes with the module.
    void ready_program(const std::string& name, const std::string& folder) const {
        std::filesystem::create_directories(path(folder));
        std::filesystem::create_symlink(project() / "conf/runbook" / name, path(folder) / ("50-" + name));
    }
    void configure(const std::string& lines) const {
        std::ofstream(path("runbook.conf")) << "RUNBOOK_STATE='" + path("state").string() + "'\n" + lines;
    }
    void create(const std::string& name) const { std::ofstream(path(name)) << "\n"; }

    [[nodiscard]] std::vector<std::string> command(const std::string& options = "") const {
        std::istringstream words(runner() + " -l " + path("lock").string() + " -s " + path("marks").string() + " " +
                                 options);
        std::vector<std::string> argv;
        for (std::string word; words >> word;)
            argv.push_back(word);
        argv.push_back(folder_.path().string());
        return argv;
    }
    [[nodiscard]] std::string directive(const std::string& options = "") const {
        std::string line = "CircuitBreakerEventLog \"|";
        for (const std::string& word : command(options))
            line += word + " ";
        return line + "\"\n";
    }
    [[nodiscard]] bool wait_for_lines(const std::string& name, std::size_t count) const {
        return wait_until(
            [&] {
                const std::string lines = text(name);
                return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n')) >= count;
            },
            patience, std::to_string(count) + " lines in " + name);
    }

  private:
    TempDir folder_{"cb-runbook"};
};

/// Opens its breaker by three failures.
inline void fail_three_times(const Httpd& httpd, Backend& backend, const std::string& path) {
    backend.answer(Reply::status(502));
    EXPECT_EQ(answerers(3, httpd.url(path)), backend.name() + " " + backend.name() + " " + backend.name());
}

/// The runner without an httpd.
class RunnerAlone : public testing::Test {
  protected:
    /// Runs it on these lines, to its end. This process is the parent of each, as an httpd is over graceful restarts.
    [[nodiscard]] CommandResult run(const std::string& lines, const std::string& options = "") const {
        std::ofstream(runbook_.path("input")) << lines;
        return run_shell("exec " + shell_command(options) + " < " + runbook_.path("input").string());
    }
    /// The same under another parent, as after a stop and a start of httpd.
    [[nodiscard]] CommandResult run_anew(const std::string& lines, const std::string& options = "") const {
        std::ofstream(runbook_.path("input")) << lines;
        return run_shell(shell_command(options) + " < " + runbook_.path("input").string() + "; exit $?");
    }
    [[nodiscard]] std::string shell_command(const std::string& options = "") const {
        std::string command;
        for (const std::string& word : runbook_.command(options))
            command += "'" + word + "' ";
        return command;
    }
    [[nodiscard]] static CommandResult run_shell(const std::string& script) {
        return run_command({.argv = {"sh", "-c", script}}, 30s);
    }
    [[nodiscard]] static std::string event(const std::string& member, const std::string& to = "open") {
        return "{\"event\":\"transition\",\"balancer\":\"b\",\"member\":\"" + member +
               "\",\"from\":\"closed\",\"to\":\"" + to + "\",\"reason\":\"r\"}\n";
    }
    const Runbook runbook_;
};

}  // namespace cb::test
