#include "scene.hpp"

#include <arpa/inet.h>
#include <crypt.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "support/http_client.hpp"
#include "support/httpd_config.hpp"

namespace cb::demo {

using namespace cb::test;

namespace {

constexpr std::array<const char*, Scene::backends> names{"alfa", "bravo", "charlie"};

std::string demo_config(const std::array<std::unique_ptr<Backend>, Scene::backends>& backends) {
    std::string config = "<Proxy \"balancer://app\">\n";
    for (const auto& backend : backends)
        config += "    BalancerMember \"" + backend->member() + "\"\n";
    return config +
           "    CircuitBreaker On\n"
           "    CircuitBreakerConsecutiveFailures 5\n"
           "    CircuitBreakerOpenTime 3s max=30s factor=2 jitter=0\n"
           "    CircuitBreakerProbes 3 concurrent=1\n"
           "    CircuitBreakerRampUp 4s from=10%\n"
           "</Proxy>\n"
           "ProxyPass \"/breakers\" !\n"
           "<Location \"/breakers\">\n"
           "    SetHandler circuitbreaker-status\n"
           "    CircuitBreakerControl On host=127.0.0.1 host=localhost\n"
           "    AuthType Basic\n"
           "    AuthName \"circuit breakers\"\n"
           "    AuthUserFile \"users\"\n"  // in the ServerRoot
           "    <RequireAll>\n"
           "        Require local\n"
           "        <RequireAny>\n"
           "            Require method GET\n"
           "            Require valid-user\n"
           "        </RequireAny>\n"
           "    </RequireAll>\n"
           "</Location>\n"
           "ProxyPass \"/\" \"balancer://app/\"\n";
}

/// Letters and digits, for a password that is good for one demo.
std::string drawn(std::size_t length) {
    constexpr std::string_view kLetters = "abcdefghijkmnpqrstuvwxyz23456789";
    std::random_device random;
    std::string text;
    while (text.size() < length)
        text += kLetters[random() % kLetters.size()];
    return text;
}

/// A line of an AuthUserFile.
std::string user_line(const std::string& user, const std::string& password) {
    crypt_data data{};
    const char* const hash = crypt_r(password.c_str(), ("$5$" + drawn(12)).c_str(), &data);
    if (hash == nullptr || *hash == '*') throw std::runtime_error("crypt() does not work here");
    return user + ":" + hash + "\n";
}

}  // namespace

bool is_free(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_bound =
        bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
    close(fd);
    return is_bound;
}

Scene::Scene(std::uint16_t port) : port_(port), password_(drawn(10)) {
    for (std::size_t i = 0; i < backends_.size(); ++i)
        backends_[i] = std::make_unique<Backend>(names[i]);
    HttpdOptions options;
    options.add_modules = {"authz_host", "authn_core", "authn_file", "auth_basic", "authz_user"};
    options.config = demo_config(backends_);
    const std::filesystem::path& root = root_.path();
    std::filesystem::create_directory(root / "run");
    std::filesystem::create_directory(root / "htdocs");
    std::ofstream(root / "users") << user_line(user, password_);
    std::ofstream(root / "httpd.conf") << httpd_config(options, root, port_);
    httpd_ = std::make_unique<Process>(
        Command{{"/usr/sbin/apache2", "-f", root / "httpd.conf", "-DFOREGROUND"}, {}, root / "console"});
    const bool is_up = wait_until([&] { return !httpd_->running() || get(url("/breakers")).status == 200; }, patience,
                                  "httpd to answer");
    if (!is_up || !httpd_->running()) {
        throw std::runtime_error("httpd did not start:\n" + read_file(root / "console") +
                                 read_file(root / "error.log"));
    }
}

Scene::~Scene() {
    httpd_->signal(SIGTERM);
    (void)httpd_->wait_for_exit(patience);
}

void Scene::fail(int backend) {
    backends_[static_cast<std::size_t>(backend)]->answer(Reply::status(503));
}
void Scene::mend(int backend) {
    backends_[static_cast<std::size_t>(backend)]->answer_as_usual();
}

std::string Scene::url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::array<std::map<std::string, std::string>, Scene::backends> Scene::look() const {
    std::array<std::map<std::string, std::string>, backends> found;
    std::istringstream lines(get(url("/breakers?auto")).body);
    std::map<std::string, std::string>* block = nullptr;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(": ");
        if (colon == std::string::npos) continue;
        const std::string value = line.substr(colon + 2);
        if (line.starts_with("Member: ")) {
            for (std::size_t i = 0; i < backends_.size(); ++i) {
                if (backends_[i]->member() == value) block = &found[i];
            }
        }
        if (block != nullptr) (*block)[line.substr(0, colon)] = value;
    }
    return found;
}

std::string Scene::log_lines() const {
    std::istringstream lines(read_file(root_.path() / "error.log"));
    std::string found = "What the error log says:\n";
    for (std::string line; std::getline(lines, line);) {
        const std::size_t at = line.find("circuit breaker: ");
        if (at != std::string::npos) found += "  " + line.substr(at) + "\n";
    }
    return found;
}

Load::Load(const Scene& scene) {
    for (int i = 0; i < 4; ++i)
        threads_.emplace_back([this, url = scene.url("/")] { work(url); });
}

void Load::work(const std::string& url) {
    Client client;
    while (!stop_) {
        const Response response = client.get(url);
        {
            const std::lock_guard lock(mutex_);
            ++by_status_[response.status];
            ++by_backend_[response.backend()];
        }
        std::this_thread::sleep_for(100ms);
    }
}

void Load::stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
}

std::string Load::summary() const {
    std::string text = "What the clients saw:\n";
    for (const auto& [status, count] : by_status_) {
        text += "  " + std::to_string(count) + " answers with status " + std::to_string(status) + "\n";
    }
    for (const auto& [backend, count] : by_backend_) {
        text += "  " + std::to_string(count) + " of them from " + (backend.empty() ? "httpd itself" : backend) + "\n";
    }
    return text;
}

}  // namespace cb::demo
