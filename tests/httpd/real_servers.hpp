// Servers from Debian's packages, as child processes of the test: PHP-FPM, Tomcat, nghttpd, openssl s_server. Each with
// files in a folder of its own and a free port; gone with its object.
//
// What a script answers is in the file `mode` beside it; each time it is run it adds a byte to the file `hits`.
//
// Thread safety: belongs to the main thread (see process.hpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/net.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace cb::test {

class RealServer {
  public:
    RealServer(const RealServer&) = delete;
    RealServer& operator=(const RealServer&) = delete;

    /// Returns when it takes connections; throws with what it said if it doesn't come to that.
    void start();
    /// SIGTERM, and waits.
    void stop();
    void signal(int number) { process_->signal(number); }
    [[nodiscard]] bool running() { return process_ && process_->running(); }
    [[nodiscard]] bool wait_for_end();

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
    [[nodiscard]] std::uint16_t port() const { return port_.number(); }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
    [[nodiscard]] std::string console() const { return read_file(folder() / "console"); }

    void set_mode(const std::string& mode) const { write("mode", mode); }
    [[nodiscard]] std::size_t hits() const { return read_file(scripts() / "hits").size(); }

  protected:
    explicit RealServer(const std::string& stem) : folder_(stem) {}
    ~RealServer() { stop(); }

    [[nodiscard]] virtual Command command() const = 0;
    [[nodiscard]] virtual bool takes_connections() const { return connect_to_port(port()).valid(); }
    [[nodiscard]] virtual std::filesystem::path scripts() const { return folder(); }
    void write(const std::filesystem::path& name, const std::string& text) const;

  private:
    const TempDir folder_;
    const ReservedPort port_;
    std::unique_ptr<Process> process_;
};

/// modes: "200", "503", "sleep" (for 3 s), "work" (for 200 ms), "die" (by SIGKILL)
class PhpFpm : public RealServer {
  public:
    explicit PhpFpm(unsigned workers = 2);
    /// Empty if it isn't installed.
    [[nodiscard]] static std::string program();
    /// The host's name is unique: members of a balancer that differ in the socket only are one to mod_proxy.
    [[nodiscard]] std::string member() const {
        return "unix:" + (folder() / "socket").string() + "|fcgi://php" + std::to_string(port());
    }

  private:
    [[nodiscard]] Command command() const override;
    [[nodiscard]] bool takes_connections() const override;
};

/// modes: "200", "503", "sleep" (for 3 s), "die" (the whole JVM)
class Tomcat : public RealServer {
  public:
    Tomcat();
    [[nodiscard]] static bool is_installed();
    static constexpr const char* secret = "between-us";

  private:
    [[nodiscard]] Command command() const override;
    [[nodiscard]] std::filesystem::path scripts() const override { return folder() / "webapps/ROOT"; }
};

/// HTTP/2 without TLS; a file at /x.
class Nghttpd : public RealServer {
  public:
    Nghttpd();
    [[nodiscard]] static bool is_installed() { return std::filesystem::exists("/usr/sbin/nghttpd"); }

  private:
    [[nodiscard]] Command command() const override;
};

/// HTTPS with a certificate that is its own authority: one of two.
class TlsServer : public RealServer {
  public:
    TlsServer();
    [[nodiscard]] static bool is_installed() { return std::filesystem::exists("/usr/bin/openssl"); }
    void use(const std::string& certificate) { certificate_ = certificate; }
    /// Takes no client without a certificate; over TLS 1.3 it says so after the handshake.
    void ask_for_certificates() { asks_ = true; }
    [[nodiscard]] std::string certificate_file(const std::string& name) const {
        return (folder() / (name + ".pem")).string();
    }

  private:
    [[nodiscard]] Command command() const override;
    std::string certificate_ = "known";
    bool asks_ = false;
};

}  // namespace cb::test
