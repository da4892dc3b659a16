#include "marks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "say.hpp"

namespace cb::runbook {
namespace {

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

}  // namespace

std::uint64_t fnv1a(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const unsigned char byte : text)
        hash = (hash ^ byte) * 0x100000001b3U;
    return hash;
}

Marks::Marks(const std::string& folder) : folder_(folder) {
    if (!has_own_folder(folder_)) say_why_not(folder_, errno);
}

std::string Marks::folder_of(const std::string& key) const {
    char name[32];
    (void)std::snprintf(name, sizeof name, "/set-%016" PRIx64, fnv1a(key));
    return folder_ + name;
}

void Marks::say_why_not(const std::string& folder, int error) {
    if (has_said_) return;
    has_said_ = true;
    say("can't remember in " + folder + " what programs have set: " + std::strerror(error) +
        "; it is forgotten when httpd is restarted");
}

bool Marks::write(const std::string& key, const std::string& program) const {
    const std::string folder = folder_of(key);
    if (!has_own_folder(folder_) || !has_own_folder(folder)) return false;
    const int file = ::open((folder + "/" + program).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return file >= 0 && ::close(file) == 0;
}

void Marks::set(const std::string& key, const std::string& program) {
    if (write(key, program)) return;
    say_why_not(folder_, errno);
    in_memory_[key].insert(program);
}

void Marks::drop(const std::string& key, const std::string& program) {
    const std::string folder = folder_of(key);
    (void)::unlink((folder + "/" + program).c_str());
    (void)::rmdir(folder.c_str());  // if that was the last
    if (const auto found = in_memory_.find(key); found != in_memory_.end()) {
        found->second.erase(program);
        if (found->second.empty()) in_memory_.erase(found);
    }
}

std::set<std::string> Marks::of(const std::string& key) const {
    const auto found = in_memory_.find(key);
    std::set<std::string> programs = found != in_memory_.end() ? found->second : std::set<std::string>{};
    if (!is_own_folder(folder_)) return programs;
    std::error_code error;
    auto entry = std::filesystem::directory_iterator(folder_of(key), error);
    for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error))
        programs.insert(entry->path().filename().string());
    return programs;
}

}  // namespace cb::runbook
