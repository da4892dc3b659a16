// A real browser without a window: Chromium, told what to do over its DevTools protocol (through a pipe).
//
//     Browser browser;
//     browser.set_view({.width = 390, .dark = true});
//     browser.open(httpd.url("/breakers"));
//     EXPECT_EQ(browser.evaluate("document.title"), "Circuit breakers");
//     EXPECT_EQ(browser.errors(), "");
//
// It reaches 127.0.0.1 and localhost only.
//
// Thread safety: belongs to the main thread (see process.hpp).
#pragma once

#include <jansson.h>

#include <filesystem>
#include <memory>
#include <string>

#include "support/net.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace cb::test {

struct View {
    int width = 1280;
    int height = 900;
    bool dark = false;
    bool script = true;
};

class Browser {
  public:
    /// Its program; empty if it isn't installed.
    [[nodiscard]] static std::string program();

    /// Returns when it has a page; throws if it doesn't come to that.
    Browser();
    ~Browser();
    Browser(const Browser&) = delete;
    Browser& operator=(const Browser&) = delete;

    /// For the pages to come.
    void set_view(const View& view);
    /// Returns when it has been loaded.
    void open(const std::string& url);
    /// The value of an expression, or of the promise it is, as text; throws if it throws.
    std::string evaluate(const std::string& script);
    /// Runs it in a moment: it may lead to another page, and then there is nobody to wait for.
    void run(const std::string& script);
    /// The page has been loaded as a whole, and the expression is true.
    [[nodiscard]] bool wait_for(const std::string& script);
    /// What scripts threw, what was logged to the console and what the browser blocked, since it was asked last.
    std::string errors();
    /// What is in view, as PNG.
    void save_screenshot(const std::filesystem::path& file);

  private:
    using Json = std::unique_ptr<json_t, decltype(&json_decref)>;
    /// Takes over `parameters`; returns the result.
    Json call(const std::string& method, json_t* parameters);
    Json receive();
    void note(const json_t* message);

    const TempDir folder_{"cb-browser"};
    Socket to_;  // named pipes
    Socket from_;
    std::unique_ptr<Process> process_;
    std::string session_;
    std::string received_;
    std::string errors_;
    int last_id_ = 0;
    bool is_loaded_ = false;
};

}  // namespace cb::test
