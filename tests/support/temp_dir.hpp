// A folder of one's own under the system's temp folder, gone with its owner.
//
// Thread safety: immutable after construction.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace cb::test {

/// Readable and searchable by everybody, because httpd's children run as another user than the test.
/// With CB_KEEP in the environment the folder stays, and its path is printed.
class TempDir {
  public:
    explicit TempDir(const std::string& stem) {
        std::string pattern = (std::filesystem::temp_directory_path() / (stem + ".XXXXXX")).string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::system_error(errno, std::generic_category(), pattern);
        path_ = pattern;
        if (::chmod(path_.c_str(), 0755) != 0) throw std::system_error(errno, std::generic_category(), pattern);
    }

    ~TempDir() {
        if (std::getenv("CB_KEEP") != nullptr) {
            std::fprintf(stderr, "kept: %s\n", path_.c_str());
            return;
        }
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace cb::test
