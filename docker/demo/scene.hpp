// The demo's stage: httpd, three backends, and clients.
//
// Thread safety: a Scene belongs to the main thread; Load runs threads of its own, which only make requests.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/backend.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace cb::demo {

/// Can a server listen on this port of 127.0.0.1?
[[nodiscard]] bool is_free(int port);

class Scene {
  public:
    static constexpr int backends = 3;
    static constexpr const char* user = "demo";

    explicit Scene(std::uint16_t port);
    ~Scene();
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    void fail(int backend);
    void mend(int backend);
    [[nodiscard]] const std::string& name(int backend) const {
        return backends_[static_cast<std::size_t>(backend)]->name();
    }
    [[nodiscard]] std::string url(const std::string& path = "/") const;
    [[nodiscard]] bool is_running() { return httpd_->running(); }
    /// Of `user`, for the buttons of the status page.
    [[nodiscard]] const std::string& password() const { return password_; }

    /// The status page's block of each backend, by key.
    [[nodiscard]] std::array<std::map<std::string, std::string>, backends> look() const;
    [[nodiscard]] std::string state_of(int backend) const { return look()[static_cast<std::size_t>(backend)]["State"]; }
    /// What the module wrote to the error log.
    [[nodiscard]] std::string log_lines() const;

  private:
    const std::uint16_t port_;
    const std::string password_;
    const cb::test::TempDir root_{"cb-demo"};
    std::array<std::unique_ptr<cb::test::Backend>, backends> backends_;
    std::unique_ptr<cb::test::Process> httpd_;
};

/// Four clients with some forty requests a second together.
class Load {
  public:
    explicit Load(const Scene& scene);
    ~Load() { stop(); }
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    void stop();
    /// What the clients saw; after stop().
    [[nodiscard]] std::string summary() const;

  private:
    void work(const std::string& url);

    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::map<int, unsigned> by_status_;
    std::map<std::string, unsigned> by_backend_;
    std::vector<std::thread> threads_;
};

}  // namespace cb::demo
