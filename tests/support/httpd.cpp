#include "httpd.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace cb::test {
namespace {

constexpr const char* program = "/usr/sbin/apache2";

/// Logged by the parent after each start and restart, on every MPM, whatever the LogLevel.
constexpr std::string_view ready_line = "resuming normal operations";

/// A request that httpd answers with 400 as soon as it has read the line: no hook of the request, no handler, no
/// backend ever sees it, whatever the test has configured.
constexpr std::string_view are_you_there = "HARNESS-ARE-YOU-THERE";

std::vector<std::string> lines_with(const std::string& text, std::string_view part) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        if (line.find(part) != std::string::npos) lines.push_back(line);
    }
    return lines;
}

void write_file(const std::filesystem::path& path, const std::string& content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << content;
    if (!file.flush()) throw std::runtime_error("can't write " + path.string());
}

}  // namespace

Httpd::Httpd(HttpdOptions options) : options_(std::move(options)) {
    std::filesystem::create_directory(root() / "run");
    std::filesystem::create_directory(root() / "htdocs");
    write_config();
}

Httpd::~Httpd() {
    if (!process_) return;
    // A test that is over doesn't wait for its hung requests; the parent still gets to clean up.
    process_->signal(SIGTERM);
    if (!process_->wait_for_exit(500ms)) {
        for (const pid_t child : children())
            (void)kill_child(child);
        (void)process_->wait_for_exit(patience);
    }
}

void Httpd::start() {
    if (!try_start()) throw std::runtime_error("httpd did not start\n" + describe());
}

bool Httpd::try_start() {
    if (running()) throw std::logic_error("httpd runs already");
    const std::size_t ready_before = times_ready();
    const bool logs_ready = std::ranges::count(options_.arguments, "-X") == 0;
    exit_status_ = -1;
    process_ = std::make_unique<Process>(Command{command_line(), options_.environment, root() / "console"});
    const bool served =
        wait_until([&] { return !running() || ((!logs_ready || times_ready() > ready_before) && answers()); },
                   3 * patience, "httpd to answer on its port");
    if (served && running()) return true;
    if (running()) kill_all();
    if (process_) ended();
    return false;
}

int Httpd::stop() {
    if (!process_) return exit_status_;
    process_->signal(SIGTERM);
    if (!process_->wait_for_exit(patience)) {
        for (const pid_t child : children())
            (void)kill_child(child);
        if (!process_->wait_for_exit(patience)) process_->kill_group();
    }
    return ended();
}

void Httpd::kill_all() {
    if (!process_) return;
    process_->kill_group();
    ended();
}

/// Takes down what is known of a run that is over, or about to be.
int Httpd::ended() {
    exit_status_ = process_->wait_for_exit(patience).value_or(-1);
    left_behind_ = process_->left_behind();
    process_.reset();
    return exit_status_;
}

void Httpd::set_config(const std::string& lines) {
    options_.config = lines;
    write_config();
}

void Httpd::write_config() const {
    write_file(root() / "httpd.conf", httpd_config(options_, root(), port()));
}

std::vector<std::string> Httpd::command_line() const {
    std::vector<std::string> words = options_.run_under;
    words.insert(words.end(), {program, "-DFOREGROUND", "-f", (root() / "httpd.conf").string()});
    words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
    return words;
}

CommandResult Httpd::run(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words{program, "-f", (root() / "httpd.conf").string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run_command({words, options_.environment, {}}, 3 * patience);
}

bool Httpd::answers() const {
    RawClient client(port());
    return client.connected() && client.send(std::string(are_you_there) + "\r\n\r\n") &&
           client.read_until("\r\n").find(" 400 ") != std::string::npos;
}

std::size_t Httpd::times_ready() const {
    return error_lines_with(ready_line).size();
}

bool Httpd::restart_by(int signal) {
    const std::size_t before = times_ready();
    process_->signal(signal);
    const bool over =
        wait_until([&] { return !running() || times_ready() > before; }, 3 * patience, "httpd to restart");
    return over && running() && answers();
}

bool Httpd::wait_for_end_of(const std::vector<pid_t>& old, milliseconds timeout) const {
    // By the parent, not by children(): a dying process loses its executable before it is dead.
    const auto its_child = [this](pid_t pid) {
        const auto info = process_info(pid);
        return info && info->parent == parent();
    };
    return wait_until([&] { return std::ranges::none_of(old, its_child); }, timeout, "the old children to exit");
}

std::string Httpd::url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port()) + path;
}

void Httpd::put_document(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = root() / "htdocs" / name;
    std::filesystem::create_directories(path.parent_path());
    write_file(path, content);
}

std::vector<pid_t> Httpd::children() const {
    std::vector<pid_t> pids;
    if (!process_) return pids;
    const std::filesystem::path its_program = executable_of(parent());
    for (const ProcessInfo& info : processes_in_group(parent())) {
        if (info.parent == parent() && info.state != 'Z' && executable_of(info.pid) == its_program)
            pids.push_back(info.pid);
    }
    return pids;
}

bool Httpd::wait_for_children(std::size_t count, milliseconds timeout) const {
    return wait_until([&] { return children().size() == count; }, timeout, std::to_string(count) + " children");
}

bool Httpd::kill_child(pid_t child, int signal) const {
    const auto info = process_info(child);
    return process_ && info && info->parent == parent() && ::kill(child, signal) == 0;
}

std::string Httpd::access_log() const {
    std::string text;
    std::istringstream stream(read_file(root() / "access.log"));
    for (std::string line; std::getline(stream, line);) {
        if (line.find(are_you_there) == std::string::npos) text += line + "\n";
    }
    return text;
}

std::vector<std::string> Httpd::error_lines_with(std::string_view text) const {
    return lines_with(error_log(), text);
}

std::vector<std::string> Httpd::access_lines_with(std::string_view text) const {
    return lines_with(access_log(), text);
}

bool Httpd::wait_for_error_line(std::string_view text, std::size_t count, milliseconds timeout) const {
    return wait_until([&] { return error_lines_with(text).size() >= count; }, timeout,
                      "the error log to say: " + std::string(text));
}

bool Httpd::wait_for_access_line(std::string_view text, std::size_t count, milliseconds timeout) const {
    return wait_until([&] { return access_lines_with(text).size() >= count; }, timeout,
                      "the access log to say: " + std::string(text));
}

std::string Httpd::describe() const {
    constexpr std::size_t enough = 6000;
    std::string log = error_log();
    if (log.size() > enough) log = "...\n" + log.substr(log.size() - enough);
    return "server root " + root().string() + ", exit status " + std::to_string(exit_status_) + "\n--- console\n" +
           console() + "--- error log\n" + log;
}

}  // namespace cb::test
