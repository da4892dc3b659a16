#include "browser.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "support/wait.hpp"

namespace cb::test {
namespace {

/// Open for both, so that it neither waits for the other side nor ends with it.
Socket named_pipe(const std::filesystem::path& path) {
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("no named pipe " + path.string());
    return Socket(::open(path.c_str(), O_RDWR | O_CLOEXEC));
}

std::string text_of(const json_t* object, const char* key) {
    const json_t* const value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : "";
}

std::string decoded(const std::string& base64) {
    static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned bits = 0;
    int count = 0;
    for (const char c : base64) {
        const std::size_t digit = digits.find(c);
        if (digit == std::string::npos) break;
        bits = bits << 6U | static_cast<unsigned>(digit);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> static_cast<unsigned>(count) & 0xFFU);
    }
    return bytes;
}

}  // namespace

std::string Browser::program() {
    for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser"}) {
        if (std::filesystem::exists(path)) return path;
    }
    return "";
}

Browser::Browser() : to_(named_pipe(folder_.path() / "to")), from_(named_pipe(folder_.path() / "from")) {
    const std::string folder = folder_.path().string();
    const std::string redirected = "exec \"$@\" 3< '" + folder + "/to' 4> '" + folder + "/from'";
    process_ = std::make_unique<Process>(
        Command{{"sh",
                 "-c",
                 redirected,
                 "browser",
                 program(),
                 "--headless",
                 "--no-sandbox",
                 "--disable-gpu",
                 "--disable-dev-shm-usage",
                 "--remote-debugging-pipe",
                 "--no-first-run",
                 "--disable-extensions",
                 "--disable-background-networking",
                 "--disable-component-update",
                 "--disable-sync",
                 "--disable-default-apps",
                 "--no-proxy-server",
                 "--hide-scrollbars",
                 "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
                 "--user-data-dir=" + folder + "/profile",
                 "about:blank"},
                {{"HOME", folder}},
                folder_.path() / "console"});
    const Json target = call("Target.createTarget", json_pack("{s:s}", "url", "about:blank"));
    const Json attached =
        call("Target.attachToTarget",
             json_pack("{s:s, s:b}", "targetId", text_of(target.get(), "targetId").c_str(), "flatten", 1));
    session_ = text_of(attached.get(), "sessionId");
    for (const char* domain : {"Page.enable", "Runtime.enable", "Log.enable"})
        (void)call(domain, json_object());
    set_view({});
}

Browser::~Browser() {
    process_->signal(SIGTERM);
    (void)process_->wait_for_exit(patience);
    process_->kill_group();
}

void Browser::set_view(const View& view) {
    (void)call("Emulation.setDeviceMetricsOverride",
               json_pack("{s:i, s:i, s:i, s:b}", "width", view.width, "height", view.height, "deviceScaleFactor", 1,
                         "mobile", view.width < 600 ? 1 : 0));
    (void)call("Emulation.setEmulatedMedia", json_pack("{s:[{s:s, s:s}]}", "features", "name", "prefers-color-scheme",
                                                       "value", view.dark ? "dark" : "light"));
    (void)call("Emulation.setScriptExecutionDisabled", json_pack("{s:b}", "value", view.script ? 0 : 1));
}

void Browser::open(const std::string& url) {
    is_loaded_ = false;
    const Json answer = call("Page.navigate", json_pack("{s:s}", "url", url.c_str()));
    const std::string error = text_of(answer.get(), "errorText");
    if (!error.empty()) throw std::runtime_error(url + ": " + error);
    while (!is_loaded_)
        (void)receive();
}

std::string Browser::evaluate(const std::string& script) {
    const Json answer = call("Runtime.evaluate", json_pack("{s:s, s:b, s:b}", "expression",
                                                           ("(async () => String(await (" + script + ")))()").c_str(),
                                                           "returnByValue", 1, "awaitPromise", 1));
    const json_t* const thrown = json_object_get(answer.get(), "exceptionDetails");
    if (thrown != nullptr) {
        throw std::runtime_error(script + ": " + text_of(json_object_get(thrown, "exception"), "description"));
    }
    return text_of(json_object_get(answer.get(), "result"), "value");
}

bool Browser::wait_for(const std::string& script) {
    // On the way from one page to the next there may be nothing to look at.
    const std::string careful = "(() => { try { return document.readyState === 'complete' && " + script +
                                "; } catch (e) { return false; } })()";
    const auto is_true = [&] {
        try {
            return evaluate(careful) == "true";
        } catch (const std::runtime_error&) {  // the page has gone while it was asked
            return false;
        }
    };
    return wait_until(is_true, patience, script);
}

void Browser::run(const std::string& script) {
    (void)evaluate("setTimeout(() => { " + script + "; }, 0)");
}

std::string Browser::errors() {
    (void)evaluate("1");  // what was said before has been received then
    return std::exchange(errors_, "");
}

void Browser::save_screenshot(const std::filesystem::path& file) {
    const Json answer = call("Page.captureScreenshot", json_pack("{s:s}", "format", "png"));
    std::ofstream(file, std::ios::binary) << decoded(text_of(answer.get(), "data"));
}

Browser::Json Browser::call(const std::string& method, json_t* parameters) {
    const int id = ++last_id_;
    const Json message(json_pack("{s:i, s:s, s:o}", "id", id, "method", method.c_str(), "params", parameters),
                       json_decref);
    if (!session_.empty()) json_object_set_new(message.get(), "sessionId", json_string(session_.c_str()));
    const std::unique_ptr<char, decltype(&std::free)> text(json_dumps(message.get(), JSON_COMPACT), std::free);
    const std::string line(text.get(), std::char_traits<char>::length(text.get()) + 1);  // messages end with a NUL
    if (::write(to_.fd(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        throw std::runtime_error("can't write to the browser");
    for (;;) {
        const Json answer = receive();
        if (json_integer_value(json_object_get(answer.get(), "id")) != id) continue;
        json_t* const result = json_object_get(answer.get(), "result");
        if (result == nullptr)
            throw std::runtime_error(method + ": " + text_of(json_object_get(answer.get(), "error"), "message"));
        return {json_incref(result), json_decref};
    }
}

Browser::Json Browser::receive() {
    for (;;) {
        const std::size_t end = received_.find('\0');
        if (end != std::string::npos) {
            json_error_t error;
            Json message(json_loads(received_.c_str(), 0, &error), json_decref);
            received_.erase(0, end + 1);
            if (message == nullptr) throw std::runtime_error(std::string("the browser said: ") + error.text);
            note(message.get());
            return message;
        }
        pollfd wanted{from_.fd(), POLLIN, 0};
        constexpr milliseconds start_included = 3 * patience;  // it is large, and the machine may be busy
        if (::poll(&wanted, 1, static_cast<int>(start_included.count())) != 1)
            throw std::runtime_error("the browser says nothing:\n" + read_file(folder_.path() / "console"));
        std::array<char, 65536> bytes;
        const ssize_t size = ::read(from_.fd(), bytes.data(), bytes.size());
        if (size > 0) received_.append(bytes.data(), static_cast<std::size_t>(size));
    }
}

void Browser::note(const json_t* message) {
    const std::string method = text_of(message, "method");
    const json_t* const parameters = json_object_get(message, "params");
    if (method == "Page.loadEventFired") is_loaded_ = true;
    if (method == "Runtime.exceptionThrown" || method == "Runtime.consoleAPICalled" || method == "Log.entryAdded") {
        const std::unique_ptr<char, decltype(&std::free)> text(json_dumps(parameters, JSON_COMPACT), std::free);
        // Pages of others name no icon, and browsers look for one.
        if (std::string_view(text.get()).find("/favicon.ico") != std::string_view::npos) return;
        errors_ += text.get() + std::string("\n");
    }
}

}  // namespace cb::test
