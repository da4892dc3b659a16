// A real Apache httpd with a server root, a port and a configuration of its own.
//
//     Httpd httpd({.mpm = Mpm::worker, .config = "ProxyPass / " + app.member() + "/"});
//     httpd.start();
//     EXPECT_EQ(get(httpd.url("/x")).status, 200);
//     httpd.set_config(...); httpd.graceful();
//
// All of it is gone with the object: processes (also those it started in turn) and files; CB_KEEP=1 in the environment
// keeps the files. If the test dies, the kernel ends httpd.
//
// Thread safety: belongs to the main thread (see process.hpp). What only reads (the URL, the logs, `children`) may be
// called from other threads while the main thread doesn't start or stop it.
#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "httpd_config.hpp"
#include "net.hpp"
#include "process.hpp"
#include "temp_dir.hpp"

namespace cb::test {

class Httpd {
  public:
    explicit Httpd(HttpdOptions options = {});
    ~Httpd();
    Httpd(const Httpd&) = delete;
    Httpd& operator=(const Httpd&) = delete;

    /// @name Start and stop
    /// @{
    /// Returns when it serves requests; throws with `describe()` if it doesn't come to that.
    void start();
    /// The same, for a server that may refuse to start: false then, and `console` and `error_log` say why.
    [[nodiscard]] bool try_start();
    /// SIGTERM, and waits; returns the exit status. Children that don't end within `patience` are killed.
    int stop();
    /// SIGKILL to parent and children: nothing gets the time to clean up.
    void kill_all();
    [[nodiscard]] bool running() const { return process_ && process_->running(); }
    /// The exit status of the last run; -1 while it runs or before the first.
    [[nodiscard]] int exit_status() const { return exit_status_; }
    /// Processes that outlived the parent, as "name (pid)"; killed by now.
    [[nodiscard]] const std::vector<std::string>& left_behind() const { return left_behind_; }
    /// @}

    /// @name Configuration
    /// @{
    /// The test's own lines, from the next start or restart on.
    void set_config(const std::string& lines);
    [[nodiscard]] HttpdOptions& options() { return options_; }
    /// Writes httpd.conf again, after a change to `options()`.
    void write_config() const;
    /// `-t`, without a start.
    [[nodiscard]] CommandResult config_test() const { return run({"-t"}); }
    /// Runs httpd with these arguments on this configuration, to its end.
    [[nodiscard]] CommandResult run(const std::vector<std::string>& arguments) const;
    /// @}

    /// @name Restarts; each returns false if it isn't complete in time
    /// @{
    /// SIGUSR1; returns when the new configuration is in force. Children of before may still be busy, and for a moment
    /// even take new connections: with the `children()` of before, `wait_for_end_of` waits for that to be over.
    [[nodiscard]] bool graceful() { return restart_by(SIGUSR1); }
    /// SIGHUP.
    [[nodiscard]] bool restart() { return restart_by(SIGHUP); }
    /// Returns when each of these children has exited and the parent knows (it has waited for it).
    [[nodiscard]] bool wait_for_end_of(const std::vector<pid_t>& children, milliseconds timeout = patience) const;
    /// @}

    /// @name Where it is
    /// @{
    [[nodiscard]] std::uint16_t port() const { return port_.number(); }
    [[nodiscard]] std::string url(const std::string& path = "/") const;
    [[nodiscard]] const std::filesystem::path& root() const { return root_.path(); }
    /// Puts a file below the DocumentRoot.
    void put_document(const std::string& name, const std::string& content) const;
    /// @}

    /// @name Its processes
    /// @{
    [[nodiscard]] pid_t parent() const { return process_ ? process_->pid() : -1; }
    /// Children that run httpd itself (no piped loggers).
    [[nodiscard]] std::vector<pid_t> children() const;
    [[nodiscard]] bool wait_for_children(std::size_t count, milliseconds timeout = patience) const;
    /// A signal to one of its children, SIGKILL by default; false if that is none of them (any more).
    bool kill_child(pid_t child, int signal = SIGKILL) const;
    void signal_parent(int number) const { process_->signal(number); }
    [[nodiscard]] std::size_t parent_resident_kib() const { return resident_kib(parent()); }
    /// @}

    /// @name What it says
    /// @{
    [[nodiscard]] std::string error_log() const { return read_file(root() / "error.log"); }
    [[nodiscard]] std::string access_log() const;
    /// stdout and stderr, of all runs.
    [[nodiscard]] std::string console() const { return read_file(root() / "console"); }
    [[nodiscard]] std::vector<std::string> error_lines_with(std::string_view text) const;
    [[nodiscard]] std::vector<std::string> access_lines_with(std::string_view text) const;
    /// That many lines of the error log (of all runs) contain the text.
    [[nodiscard]] bool wait_for_error_line(std::string_view text, std::size_t count = 1,
                                           milliseconds timeout = patience) const;
    [[nodiscard]] bool wait_for_access_line(std::string_view text, std::size_t count = 1,
                                            milliseconds timeout = patience) const;
    /// Everything worth reading when a test has failed: root, console, the end of the error log.
    [[nodiscard]] std::string describe() const;
    /// @}

  private:
    [[nodiscard]] std::vector<std::string> command_line() const;
    [[nodiscard]] std::size_t times_ready() const;
    [[nodiscard]] bool answers() const;
    bool restart_by(int signal);
    int ended();

    HttpdOptions options_;
    const TempDir root_{"cb-httpd"};
    const ReservedPort port_;
    std::unique_ptr<Process> process_;
    int exit_status_ = -1;
    std::vector<std::string> left_behind_;
};

}  // namespace cb::test
