// The pages in a real browser: both themes, wide and narrow, with and without JavaScript; and the buttons.
//
// With CB_SCREENSHOTS=FOLDER in the environment, what it looks like is kept there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "browser.hpp"
#include "pages.hpp"

namespace cb::test {
namespace {

// The lowest contrast (WCAG 2, 1.4.3) of any text on the page with what is behind it.
constexpr const char* kLeastContrast = R"js((() => {
  const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number); return n.length > 3 && n[3] === 0 ? null : n; };
  const light = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, k, i) => {
    const c = rgb[i] / 255; return sum + k * (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); }, 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c) return c; }
    return [255, 255, 255]; };
  let least = 21;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.getClientRects().length || e.closest("script,style,svg")) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return Math.floor(least * 10);
})())js";

class RealBrowser : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (!Browser::program().empty()) shared_ = std::make_unique<Browser>();
    }
    static void TearDownTestSuite() { shared_.reset(); }
    void SetUp() override {
        if (Browser::program().empty()) GTEST_SKIP() << "The program is not installed: chromium";
        ASSERT_NE(shared_, nullptr);
        browser().set_view({});
        browser().open("about:blank");
        (void)browser().errors();
    }
    [[nodiscard]] static Browser& browser() { return *shared_; }

    void start(const std::string& policy, const std::string& proxied) {
        httpd_.set_config(policy + control_location + manager_location + proxied);
        httpd_.start();
    }
    void open(const std::string& path) { browser().open(httpd_.url(path)); }
    [[nodiscard]] static std::string state_shown() {
        return browser().evaluate("document.querySelector('tr.member .state').textContent");
    }
    static void keep_screenshot(const std::string& name) {
        const char* const folder = std::getenv("CB_SCREENSHOTS");
        if (folder != nullptr) browser().save_screenshot(std::filesystem::path(folder) / (name + ".png"));
    }
    static void click(const std::string& selector) {
        browser().run("document.querySelector('" + selector + "').click()");
    }

    Backend app_{"app"};
    Httpd httpd_;

  private:
    static inline std::unique_ptr<Browser> shared_;
};

TEST_F(RealBrowser, ShowsTwentyBalancersInBothThemesWideAndNarrow) {
    std::string proxied;
    for (int b = 0; b < 20; ++b) {
        const std::string name = "shop" + std::to_string(b);
        proxied += "<Proxy balancer://" + name + ">\n";
        for (int m = 0; m < 3; ++m)
            proxied += "    BalancerMember " + app_.member() + "/" + name + "-" + std::to_string(m) + "\n";
        proxied += "</Proxy>\nProxyPass /" + name + " balancer://" + name + "\n";
    }
    start("CircuitBreaker On\nCircuitBreakerConsecutiveFailures 3\nCircuitBreakerRecordPath On\n" +
              std::string(long_open),
          proxied);
    app_.answer_path("/shop3-0/x", Reply::status(503));
    app_.answer_path("/shop7-1/x", Reply::status(503));
    for (int i = 0; i < 9; ++i) {
        (void)get(httpd_.url("/shop3/x"));
        (void)get(httpd_.url("/shop7/x"));
    }
    EXPECT_TRUE(wait_until([&] { return has(page(httpd_), "2 out:"); }, patience, "two breakers to open"));
    for (const bool dark : {false, true}) {
        for (const int width : {390, 768, 1280}) {
            SCOPED_TRACE(std::to_string(width) + (dark ? " dark" : " light"));
            browser().set_view({.width = width, .dark = dark});
            open("/breakers?refresh=0");
            EXPECT_EQ(browser().errors(), "");
            EXPECT_EQ(browser().evaluate("document.querySelectorAll('tr.member').length"), "60");
            EXPECT_EQ(browser().evaluate("document.querySelectorAll('svg.strip rect').length > 60"), "true");
            EXPECT_EQ(browser().evaluate("document.querySelectorAll('details[open]').length"), "2") << "who is out";
            EXPECT_EQ(browser().evaluate("document.documentElement.scrollWidth"), std::to_string(width))
                << "nothing to scroll sideways";
            EXPECT_EQ(browser().evaluate("getComputedStyle(document.body).backgroundColor"),
                      dark ? "rgb(14, 18, 23)" : "rgb(244, 246, 248)");
            if (width == 1280) {
                EXPECT_GE(std::stoi(browser().evaluate(kLeastContrast)), 45) << "tenths";
            }
            // What an operator looks for first is on the first screen.
            EXPECT_EQ(browser().evaluate("document.querySelector('.notice').getBoundingClientRect().bottom < 844"),
                      "true");
            browser().set_view({.width = width, .height = 1700, .dark = dark});
            keep_screenshot(std::to_string(width) + (dark ? "-dark" : "-light"));
        }
    }
}

TEST_F(RealBrowser, NeedsNoJavaScript) {
    start("CircuitBreaker On\n", plain_worker(app_));
    browser().set_view({.script = false});
    open("/breakers?refresh=1");
    EXPECT_EQ(state_shown(), "closed");
    ASSERT_TRUE(httpd_.wait_for_access_line("path=/breakers?refresh=1 ", 3)) << "it reloads itself";
    browser().set_view({});
    open("/breakers?refresh=0");
    EXPECT_EQ(browser().errors(), "");
}

TEST_F(RealBrowser, TakesOverWhatIsNewInPlace) {
    start(quick_policy + std::string(long_open), plain_worker(app_));
    open("/breakers?refresh=1");
    EXPECT_EQ(browser().evaluate("window.isStillTheSamePage = true"), "true");
    EXPECT_EQ(browser().evaluate("document.querySelector('tr.more details').open"), "false");
    click("tr.more summary");
    EXPECT_TRUE(browser().wait_for("document.querySelector('tr.more details').open"));
    app_.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd_.url("/app/")), "503 503 503");
    EXPECT_TRUE(browser().wait_for("document.title === '1 out: circuit breakers'"));
    EXPECT_EQ(state_shown(), "open");
    EXPECT_EQ(browser().evaluate("document.querySelector('tr.more details').open"), "true") << "as it was left";
    click("tr.more summary");
    EXPECT_TRUE(browser().wait_for("!document.querySelector('tr.more details').open"));
    EXPECT_EQ(post(httpd_, form(httpd_, app_, "force-open")).status, 303);
    EXPECT_TRUE(browser().wait_for("document.querySelector('tr.member .state').textContent === 'forced-open'"));
    EXPECT_EQ(browser().evaluate("document.querySelector('tr.more details').open"), "false") << "as it was left";
    EXPECT_EQ(browser().evaluate("window.isStillTheSamePage"), "true");
    EXPECT_EQ(browser().errors(), "");

    EXPECT_EQ(httpd_.stop(), 0);
    EXPECT_TRUE(browser().wait_for("document.getElementById('trouble').textContent.startsWith('No update since')"));
    (void)browser().errors();
}

TEST_F(RealBrowser, ItsButtonsAskAndAct) {
    start(quick_policy, plain_worker(app_));
    open("/breakers?refresh=0");
    EXPECT_EQ(browser().evaluate("window.confirm = (text) => { window.asked = text; return false; }, 1"), "1");
    click("button[value=force-open]");
    EXPECT_TRUE(browser().wait_for("window.asked === 'Force open: " + app_.member() + "?'"));
    EXPECT_EQ(state_of(httpd_, app_), "closed") << "no is no";
    EXPECT_EQ(browser().evaluate("window.confirm = () => true, 1"), "1");
    click("button[value=force-open]");
    EXPECT_TRUE(browser().wait_for("document.querySelector('tr.member .state.forced-open') !== null"));
    EXPECT_EQ(browser().evaluate("location.pathname + location.search + location.hash"),
              "/breakers?refresh=0#m-" + id_of(httpd_, app_));
    EXPECT_EQ(browser().evaluate("document.querySelector('button[value=force-open]')"), "null");
    click("button[value=automatic]");
    EXPECT_TRUE(browser().wait_for("document.querySelector('tr.member .state.closed') !== null"));
    EXPECT_EQ(state_of(httpd_, app_), "closed");
    EXPECT_EQ(browser().errors(), "");
}

TEST_F(RealBrowser, BalancerManagersButtonsActAndLeadBackToIt) {
    start(quick_policy, balancer_of(member_line(app_)));
    open("/balancer-manager");
    click("button[value=force-open]");
    EXPECT_TRUE(browser().wait_for("document.body.textContent.includes('forced-open')"));
    EXPECT_EQ(browser().evaluate("location.pathname"), "/balancer-manager");
    EXPECT_EQ(state_of(httpd_, app_), "forced-open");
    keep_screenshot("balancer-manager");
    // The page's own links and forms work beside ours, with the browser's own Referer.
    click("td a");
    EXPECT_TRUE(browser().wait_for("document.body.textContent.includes('Edit worker settings')"));
    browser().run("document.querySelector('#w_wr').value = 'far'; document.querySelector('#w_wr').form.submit()");
    EXPECT_TRUE(browser().wait_for("document.querySelector('#w_wr').value === 'far'"));
    EXPECT_TRUE(browser().wait_for("document.body.textContent.includes('forced-open')"));
    EXPECT_EQ(browser().errors(), "");
}

TEST_F(RealBrowser, AFormOnAPageOfAnotherOriginDoesNothing) {
    start(quick_policy, plain_worker(app_));
    httpd_.put_document("evil.html", "<!DOCTYPE html><title>evil</title><form method=post action=\"" +
                                         httpd_.url("/breakers") + "\"><input name=token value=" +
                                         token_on(page(httpd_)) + "><input name=member value=" + id_of(httpd_, app_) +
                                         "><input name=action value=force-open></form>\n");
    browser().open("http://localhost:" + std::to_string(httpd_.port()) + "/evil.html");
    browser().run("document.forms[0].submit()");
    EXPECT_TRUE(httpd_.wait_for_error_line("neither Origin nor Referer")) << httpd_.describe();
    EXPECT_EQ(state_of(httpd_, app_), "closed");
    EXPECT_TRUE(browser().wait_for("document.title === '403 Forbidden'"));
    (void)browser().errors();  // it names the status
}

TEST_F(RealBrowser, RunsNothingThatANameSays) {
    start(quick_policy, "<Proxy balancer://app>\n    BalancerMember \"" + app_.member() +
                            "/<b>x</b><script>isHacked()</script>\"\n</Proxy>\n");
    open("/breakers?refresh=0");
    EXPECT_EQ(browser().evaluate("document.querySelectorAll('main .name b, main script').length"), "0");
    EXPECT_TRUE(has(browser().evaluate("document.querySelector('tr.member .name').textContent"), "<script>"));
    EXPECT_EQ(browser().errors(), "");
}

}  // namespace
}  // namespace cb::test
