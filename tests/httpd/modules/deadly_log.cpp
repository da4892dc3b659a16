// A module for one test: a child that logs that a breaker opens dies right after that line.
#include <ap_config.h>
// The order is httpd's.
// clang-format off
#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
// clang-format on
#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace {

extern "C" void die(const ap_errorlog_info*, const char* text) noexcept {
    if (std::strstr(text, ": closed -> open: ") != nullptr) kill(getpid(), SIGKILL);
}

extern "C" void register_hooks(apr_pool_t*) noexcept {
    ap_hook_error_log(die, nullptr, nullptr, APR_HOOK_MIDDLE);
}

}  // namespace

extern "C" {
extern module AP_MODULE_DECLARE_DATA deadly_log_module;
module AP_MODULE_DECLARE_DATA deadly_log_module = {
    STANDARD20_MODULE_STUFF, nullptr, nullptr, nullptr, nullptr, nullptr, register_hooks, AP_MODULE_FLAG_NONE};
}
