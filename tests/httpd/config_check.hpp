// `httpd -t` on a few lines of configuration, and what it said.
//
//     ConfigCheck check;
//     check.expect_refused("CircuitBreakerWindow 10", {"\"10\"", "from 1s to 24h"});
//     check.expect_accepted("CircuitBreakerWindow 10s\n");
//
// Thread safety: belongs to the main thread (it starts processes).
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/httpd.hpp"

namespace cb::test {

class ConfigCheck {
  public:
    /// `around` stands after the lines in question: members for them to apply to.
    explicit ConfigCheck(std::string around = "", const HttpdOptions& options = {})
        : httpd_(options), around_(std::move(around)) {}

    [[nodiscard]] CommandResult check(const std::string& lines) {
        httpd_.set_config(lines + "\n" + around_);
        return httpd_.config_test();
    }

    /// Exit status 1 and a message with the file, the line of `at` (of the last of `lines`, by default), all of
    /// `parts`, and nothing started.
    void expect_refused(const std::string& lines, const std::vector<std::string>& parts, std::string at = "") {
        const CommandResult result = check(lines);
        if (at.empty()) at = lines.substr(lines.rfind('\n') + 1);
        SCOPED_TRACE(lines);
        EXPECT_EQ(result.exit_status, 1) << result.output;
        EXPECT_NE(result.output.find(file()), std::string::npos) << "the file is missing: " << result.output;
        expect_part(result.output, "line " + std::to_string(line_of(at)));
        for (const std::string& part : parts)
            expect_part(result.output, part);
        EXPECT_TRUE(nothing_started());
    }

    /// Exit status 0, and not a word but httpd's own.
    void expect_accepted(const std::string& lines) {
        SCOPED_TRACE(lines);
        const CommandResult result = check(lines);
        EXPECT_EQ(result.exit_status, 0) << result.output;
        EXPECT_EQ(result.output, "Syntax OK\n");
    }

    /// Exit status 0, and one warning of the module, with the file, the line of `at` and all of `parts`.
    void expect_warned(const std::string& lines, const std::string& at, const std::vector<std::string>& parts) {
        SCOPED_TRACE(lines);
        const CommandResult result = check(lines);
        EXPECT_EQ(result.exit_status, 0) << result.output;
        expect_part(result.output, "Syntax OK");
        EXPECT_EQ(warnings_in(result.output), 1U) << result.output;
        expect_part(result.output, file());
        expect_part(result.output, "line " + std::to_string(line_of(at)));
        for (const std::string& part : parts)
            expect_part(result.output, part);
    }

    [[nodiscard]] static unsigned warnings_in(const std::string& output) {
        unsigned count = 0;
        std::istringstream stream(output);
        for (std::string line; std::getline(stream, line);) {
            if (line.find("mod_circuitbreaker: ") != std::string::npos) ++count;  // stderr has no level
        }
        return count;
    }

    [[nodiscard]] Httpd& httpd() { return httpd_; }
    [[nodiscard]] std::string file() const { return (httpd_.root() / "httpd.conf").string(); }

    /// The first line of httpd.conf that contains the text; 0 if there is none.
    [[nodiscard]] unsigned line_of(const std::string& text) const {
        std::istringstream stream(read_file(file()));
        unsigned number = 0;
        for (std::string line; std::getline(stream, line);) {
            ++number;
            if (line.find(text) != std::string::npos) return number;
        }
        return 0;
    }

    [[nodiscard]] bool nothing_started() const {
        return std::filesystem::is_empty(httpd_.root() / "run") && httpd_.error_log().empty();
    }

  private:
    static void expect_part(const std::string& output, const std::string& part) {
        // "line 4" is not found in "line 42".
        for (std::size_t at = output.find(part); at != std::string::npos; at = output.find(part, at + 1)) {
            const std::size_t end = at + part.size();
            if (!std::isdigit(part.back()) || end == output.size() || !std::isdigit(output[end])) return;
        }
        ADD_FAILURE() << "\"" << part << "\" is missing: " << output;
    }

    Httpd httpd_;
    const std::string around_;
};

}  // namespace cb::test
