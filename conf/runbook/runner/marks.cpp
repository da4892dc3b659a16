#include "marks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "say.hpp"

namespace cb::runbook {
namespace {

constexpr std::size_t kHashDigits = 16;

/// A folder that only this user can change; else false, with errno.
bool is_own_folder(const std::string& folder) {
    struct stat found {};
    if (::lstat(folder.c_str(), &found) != 0) return false;
    errno = S_ISDIR(found.st_mode) ? EPERM : ENOTDIR;
    return S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// The same, and it is made if it is not there.
bool has_own_folder(const std::string& folder) {
    return (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) && is_own_folder(folder);
}

std::string hash_of(const std::string& text) {
    char digits[kHashDigits + 1];
    (void)std::snprintf(digits, sizeof digits, "%016" PRIx64, fnv1a(text));
    return digits;
}

std::string folder_of(const Event& event) {
    return "set-" + hash_of(event.key);
}

/// The httpd that has started this runner. Its pid alone may be that of an earlier one (1 in a container).
std::string this_httpd() {
    const std::string pid = std::to_string(::getppid());
    std::string text;
    std::ifstream file("/proc/" + pid + "/stat");
    (void)std::getline(file, text);
    std::istringstream fields(text.substr(text.rfind(')') + 1));  // behind the name, which may hold anything
    std::string started;
    for (int field = 3; field <= 22; ++field)
        fields >> started;
    return pid + "." + started;
}

}  // namespace

std::uint64_t fnv1a(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char byte : text)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    return hash;
}

Marks::Marks(const std::string& folder) : folder_(folder), httpd_(this_httpd()) {
    if (!has_own_folder(folder_)) say_why_not(folder_, errno);
}

void Marks::say_why_not(const std::string& folder, int error) {
    if (has_said_) return;
    has_said_ = true;
    say("can't remember in " + folder + " what programs have set: " + std::strerror(error) +
        "; it is forgotten when httpd is restarted");
}

bool Marks::write(const std::string& mark, const std::string& line) const {
    const std::string path = folder_ + "/" + mark;
    if (!has_own_folder(folder_) || !has_own_folder(path.substr(0, path.rfind('/')))) return false;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return false;
    const std::string text = httpd_ + "\n" + line;
    const bool is_written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    return ::close(file) == 0 && is_written;
}

void Marks::set(const Event& opening, const std::string& program) {
    const std::string mark = folder_of(opening) + "/" + hash_of(opening.vhost) + "." + program;
    if (write(mark, opening.line)) return;
    say_why_not(folder_, errno);
    in_memory_.insert(mark);
}

void Marks::drop(const Names& marks) {
    for (const std::string& mark : marks) {
        in_memory_.erase(mark);
        const std::string path = folder_ + "/" + mark;
        const std::string folder = path.substr(0, path.rfind('/'));
        // Where others could have put a link, it might be anybody's file.
        if (!is_own_folder(folder_) || !is_own_folder(folder)) continue;
        (void)::unlink(path.c_str());
        (void)::rmdir(folder.c_str());  // if that was the last
    }
}

Marks::Names Marks::in_folder(const std::string& name) const {
    Names marks;
    if (!is_own_folder(folder_) || !is_own_folder(folder_ + "/" + name)) return marks;
    const std::string prefix = name + "/";
    std::error_code error;
    auto entry = std::filesystem::directory_iterator(folder_ + "/" + name, error);
    for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
        const std::string file = entry->path().filename().string();
        if (file.find('.') == kHashDigits) marks.insert(std::string(prefix).append(file));
    }
    return marks;
}

Marks::Mark Marks::read(const std::string& mark) const {
    std::ifstream file(folder_ + "/" + mark);
    Mark found;
    if (std::getline(file, found.httpd)) (void)std::getline(file, found.line);
    return found;
}

std::map<std::string, Marks::Names> Marks::of(const Event& event) const {
    const std::string folder = folder_of(event);
    Names marks = in_folder(folder);
    if (!event.mark.empty()) {
        // By now, another runner may have cleared it, and it may have been set again since.
        marks = marks.contains(event.mark) && read(event.mark).httpd == event.httpd ? Names{event.mark} : Names{};
    } else {
        marks.insert(in_memory_.begin(), in_memory_.end());
    }
    // Each virtual host has a breaker of its own for the member. Where httpd's parent has told the opening or the
    // closing of a member that was added at run time, the virtual host is not known, and it may be any of them. Then
    // the mark is cleared: better too early, as the member has just been found well, than never.
    std::map<std::string, Names> found;
    for (const std::string& mark : marks) {
        if (!mark.starts_with(folder + "/")) continue;
        const std::string vhost = mark.substr(folder.size() + 1, kHashDigits);
        if (!event.vhost.empty() && vhost != hash_of(event.vhost) && vhost != hash_of("")) continue;
        found[mark.substr(folder.size() + kHashDigits + 2)].insert(mark);
    }
    return found;
}

std::vector<Event> Marks::of_earlier_httpds() const {
    std::vector<Event> events;
    // If its httpd has ended, another one may be later, not earlier.
    if (this_httpd() != httpd_ || !is_own_folder(folder_)) return events;
    std::error_code error;
    auto entry = std::filesystem::directory_iterator(folder_, error);
    for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (!name.starts_with("set-")) continue;
        for (const std::string& mark : in_folder(name)) {
            const Mark found = read(mark);
            if (found.httpd == httpd_) continue;
            std::optional<Event> event = reset_event(found.line);
            if (!event) continue;
            event->mark = mark;
            event->httpd = found.httpd;
            events.push_back(std::move(*event));
        }
    }
    return events;
}

}  // namespace cb::runbook
