#include "httpd_config.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace cb::test {
namespace {

constexpr const char* modules_folder = "/usr/lib/apache2/modules";

/// In an order in which each finds the symbols it needs. unixd and log_config are built into Debian's httpd.
const std::vector<std::string>& default_modules() {
    static const std::vector<std::string> modules{"authz_core",
                                                  "alias",
                                                  "env",
                                                  "headers",
                                                  "setenvif",
                                                  "slotmem_shm",
                                                  "proxy",
                                                  "proxy_http",
                                                  "proxy_balancer",
                                                  "lbmethod_byrequests",
                                                  "lbmethod_bybusyness",
                                                  "lbmethod_bytraffic",
                                                  "status"};
    return modules;
}

/// One line a request, written at its end: `pid=17 status=503 method=GET path=/app?x=1 member=... rejected=...`. The
/// original request's environment (`<`), as an ErrorDocument has one of its own.
constexpr const char* access_format =
    "pid=%P status=%>s method=%m path=%U%q member=%<{BALANCER_WORKER_NAME}e state=%<{CIRCUIT_BREAKER_STATE}e "
    "verdict=%<{CIRCUIT_BREAKER_VERDICT}e probe=%<{CIRCUIT_BREAKER_PROBE}e rejected=%<{CIRCUIT_BREAKER_REJECTED}e "
    "route_changed=%<{BALANCER_ROUTE_CHANGED}e microseconds=%D";

std::string directive_of(const std::string& line) {
    return line.substr(0, line.find(' '));
}

std::string load_module(const std::string& name, const std::filesystem::path& file) {
    return "LoadModule " + name + "_module \"" + file.string() + "\"\n";
}

std::string mpm_lines(const HttpdOptions& options) {
    const auto line = [](const char* name, unsigned value) { return std::string(name) + " " + std::to_string(value); };
    const unsigned limit = 4 * options.children;
    std::vector<std::string> lines{line("ServerLimit", limit), line("StartServers", options.children)};
    if (options.mpm == Mpm::prefork) {
        lines.insert(lines.end(),
                     {line("MaxRequestWorkers", limit), line("MinSpareServers", 1), line("MaxSpareServers", limit)});
    } else {
        const unsigned threads = options.threads;
        lines.insert(lines.end(), {line("ThreadLimit", threads), line("ThreadsPerChild", threads),
                                   line("MaxRequestWorkers", limit * threads), line("MinSpareThreads", threads),
                                   line("MaxSpareThreads", limit * threads)});
    }
    for (const std::string& own : options.mpm_directives) {
        std::erase_if(lines, [&](const std::string& other) { return directive_of(other) == directive_of(own); });
        lines.push_back(own);
    }
    std::string text;
    for (const std::string& each : lines)
        text += each + "\n";
    return text;
}

std::string module_lines(const HttpdOptions& options) {
    std::vector<std::string> modules{"mpm_" + name_of(options.mpm)};
    modules.insert(modules.end(), default_modules().begin(), default_modules().end());
    modules.insert(modules.end(), options.add_modules.begin(), options.add_modules.end());
    std::string text;
    for (const std::string& name : modules) {
        if (std::ranges::count(options.leave_out_modules, name) > 0) continue;
        text += load_module(name, std::filesystem::path(modules_folder) / ("mod_" + name + ".so"));
    }
    if (options.circuitbreaker) {
        const auto& given = options.circuitbreaker_file;
        text += load_module("circuitbreaker", given.empty() ? module_under_test() : given);
    }
    return text;
}

}  // namespace

std::string name_of(Mpm mpm) {
    switch (mpm) {
        case Mpm::prefork:
            return "prefork";
        case Mpm::worker:
            return "worker";
        case Mpm::event:
            return "event";
    }
    std::abort();
}

std::filesystem::path module_under_test() {
    if (const char* given = std::getenv("CB_MODULE")) {
        if (!std::filesystem::exists(given)) throw std::runtime_error(std::string("no such CB_MODULE: ") + given);
        return std::filesystem::absolute(given);
    }
    const std::filesystem::path program = executable_of(::getpid());
    for (std::filesystem::path from : {program.parent_path(), std::filesystem::current_path()}) {
        for (;; from = from.parent_path()) {
            const std::filesystem::path file = from / "build" / "mod_circuitbreaker.so";
            if (std::filesystem::exists(file)) return file;
            if (from == from.root_path()) break;
        }
    }
    throw std::runtime_error("no build/mod_circuitbreaker.so above " + program.string() +
                             " or the working directory: build the module, or set CB_MODULE");
}

std::string httpd_config(const HttpdOptions& options, const std::filesystem::path& root, std::uint16_t port) {
    const std::string files = root.string();
    std::string text = "ServerRoot \"" + files + "\"\nDefaultRuntimeDir \"" + files + "/run\"\nPidFile \"" + files +
                       "/run/httpd.pid\"\nServerName 127.0.0.1\nListen 127.0.0.1:" + std::to_string(port) + "\n";
    text += module_lines(options);
    if (::geteuid() == 0) text += "User www-data\nGroup www-data\n";
    text += mpm_lines(options);
    text += "ErrorLog \"" + files + "/error.log\"\nLogLevel " + options.log_level + "\nCustomLog \"" + files +
            "/access.log\" \"" + access_format + "\"\nDocumentRoot \"" + files + "/htdocs\"\n";
    text += "\n# the test's own part\n" + options.config + "\n";
    return text;
}

}  // namespace cb::test
