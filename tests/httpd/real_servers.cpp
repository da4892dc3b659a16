#include "real_servers.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace cb::test {
namespace {

constexpr const char* php_script = R"(<?php
file_put_contents(__DIR__ . '/hits', 'x', FILE_APPEND);
$mode = file_get_contents(__DIR__ . '/mode');
if ($mode === 'die') posix_kill(getmypid(), 9);
if ($mode === 'sleep') sleep(3);
if ($mode === 'work') usleep(200000);
if ($mode === '503') http_response_code(503);
header('X-Backend: php');
echo 'ok';
)";

constexpr const char* jsp_script = R"(<%@ page contentType="text/plain" import="java.nio.file.*" %><%
Path folder = Paths.get(application.getRealPath("/"));
Files.write(folder.resolve("hits"), "x".getBytes(), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
String mode = new String(Files.readAllBytes(folder.resolve("mode")));
if (mode.equals("die")) Runtime.getRuntime().halt(1);
if (mode.equals("sleep")) Thread.sleep(3000);
if (mode.equals("503")) response.setStatus(503);
response.setHeader("X-Backend", "tomcat");
%>ok
)";

constexpr const char* tomcat_home = "/usr/share/tomcat10";

}  // namespace

void RealServer::write(const std::filesystem::path& name, const std::string& text) const {
    std::filesystem::create_directories((scripts() / name).parent_path());
    std::ofstream file(scripts() / name, std::ios::binary | std::ios::trunc);
    file << text;
    if (!file.flush()) throw std::runtime_error("can't write " + (scripts() / name).string());
}

void RealServer::start() {
    Command what = command();
    what.output_file = folder() / "console";
    process_ = std::make_unique<Process>(what);
    const bool is_up = wait_until([&] { return !process_->running() || takes_connections(); }, 60s,
                                  what.argv.front() + " to take connections");
    if (!is_up || !process_->running()) throw std::runtime_error(what.argv.front() + ": " + console());
}

void RealServer::stop() {
    if (!process_) return;
    process_->signal(SIGTERM);
    if (!process_->wait_for_exit(patience)) process_->kill_group();
    process_.reset();
}

bool RealServer::wait_for_end() {
    return process_->wait_for_exit(patience).has_value();
}

PhpFpm::PhpFpm(unsigned workers) : RealServer("cb-php") {
    // Its workers are another user, if the test is root.
    ::chmod(folder().c_str(), 0777);
    write("x.php", php_script);
    write("fpm.conf", "[global]\nerror_log = " + (folder() / "fpm.log").string() +
                          "\n[www]\nuser = www-data\ngroup = www-data\nlisten = " + (folder() / "socket").string() +
                          "\nlisten.mode = 0666\npm = static\npm.max_children = " + std::to_string(workers) + "\n");
    set_mode("200");
}

std::string PhpFpm::program() {
    for (const auto& entry : std::filesystem::directory_iterator("/usr/sbin")) {
        if (entry.path().filename().string().starts_with("php-fpm")) return entry.path().string();
    }
    return "";
}

Command PhpFpm::command() const {
    return {.argv = {program(), "--nodaemonize", "--fpm-config", (folder() / "fpm.conf").string()}};
}

bool PhpFpm::takes_connections() const {
    const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (folder() / "socket").c_str(), sizeof address.sun_path - 1);
    return ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Tomcat::Tomcat() : RealServer("cb-tomcat") {
    for (const char* name : {"conf", "logs", "temp", "work", "webapps/ROOT"})
        std::filesystem::create_directories(folder() / name);
    std::filesystem::copy_file(std::filesystem::path(tomcat_home) / "etc/web.xml", folder() / "conf/web.xml");
    write(
        "../../conf/server.xml",
        R"(<Server port="-1"><Service name="Catalina"><Connector protocol="AJP/1.3" address="127.0.0.1" port=")" +
            std::to_string(port()) + R"(" secretRequired="true" secret=")" + secret +
            R"("/><Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine>)" +
            "</Service></Server>\n");
    write("x.jsp", jsp_script);
    write("warm.jsp", R"(<% application.getRequestDispatcher("/x.jsp").include(request, response); %>)");
    set_mode("200");
}

bool Tomcat::is_installed() {
    return std::filesystem::exists(std::filesystem::path(tomcat_home) / "bin/catalina.sh") &&
           std::filesystem::exists("/usr/bin/java");
}

Command Tomcat::command() const {
    return {.argv = {std::string(tomcat_home) + "/bin/catalina.sh", "run"},
            .environment = {{"CATALINA_HOME", tomcat_home},
                            {"CATALINA_BASE", folder().string()},
                            {"JAVA_OPTS", "-Xmx64m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}}};
}

Nghttpd::Nghttpd() : RealServer("cb-nghttpd") {
    write("x", "ok");
}

Command Nghttpd::command() const {
    return {.argv = {"/usr/sbin/nghttpd", "--no-tls", "-v", "-a", "127.0.0.1", "-d", folder().string(),
                     std::to_string(port())}};
}

TlsServer::TlsServer() : RealServer("cb-tls") {
    for (const char* name : {"known", "unknown"}) {
        const CommandResult made = run_command(
            {.argv = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                      "-days", "2", "-subj", "/CN=127.0.0.1", "-keyout", certificate_file(std::string(name) + ".key"),
                      "-out", certificate_file(name)}});
        if (made.exit_status != 0) throw std::runtime_error("openssl req: " + made.output);
    }
}

Command TlsServer::command() const {
    Command command{.argv = {"openssl", "s_server", "-accept", address(), "-cert", certificate_file(certificate_),
                             "-key", certificate_file(certificate_ + ".key"), "-www"}};
    if (asks_) command.argv.insert(command.argv.end(), {"-tls1_3", "-Verify", "1"});
    return command;
}

}  // namespace cb::test
