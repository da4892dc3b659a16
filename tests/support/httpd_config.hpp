// The httpd.conf of a test's server: what every test needs around the lines it is about.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "process.hpp"

namespace cb::test {

enum class Mpm { prefork, worker, event };

[[nodiscard]] std::string name_of(Mpm mpm);

struct HttpdOptions {
    Mpm mpm = Mpm::event;
    /// The test's own lines; they come last.
    std::string config{};

    /// Children at the start; under load up to four times as many, and none goes for being idle.
    unsigned children = 2;
    /// Threads of each child (not prefork).
    unsigned threads = 8;
    /// Lines like "MaxRequestWorkers 16", instead of the harness's own of the same directive.
    std::vector<std::string> mpm_directives{};

    /// Names without `mod_`: "proxy_fcgi". What a left-out module defines is left out too.
    std::vector<std::string> add_modules{};
    std::vector<std::string> leave_out_modules{};
    /// Whether the module under test is loaded, and from where; by default see `module_under_test`.
    bool circuitbreaker = true;
    std::filesystem::path circuitbreaker_file{};

    std::string log_level = "notice";  // "notice circuitbreaker:debug"
    Environment environment{};
    std::vector<std::string> arguments{};  // more of httpd's command line: "-X"
    std::vector<std::string> run_under{};  // a program that runs it: {"valgrind", "--tool=callgrind"}
};

/// CB_MODULE of the environment, else build/mod_circuitbreaker.so in a folder above this program or above the working
/// directory. Throws if there is none: a test without the module it is for must not pass.
[[nodiscard]] std::filesystem::path module_under_test();

/// The whole file, for a server with its files in `root`, listening on 127.0.0.1:`port`.
[[nodiscard]] std::string httpd_config(const HttpdOptions& options, const std::filesystem::path& root,
                                       std::uint16_t port);

}  // namespace cb::test
