// All of httpd's and APR's headers, in the one order that works in C++.
//
// Purpose: the only file that includes httpd's headers. Designated initialisers are switched on for C++20 (ap_config.h
// does it for C only), so that the directive table is type-checked. The module's own log level applies to every file.
#ifndef CIRCUITBREAKER_HTTPD_HTTPD_API_HPP
#define CIRCUITBREAKER_HTTPD_HTTPD_API_HPP

#include <ap_config.h>
#ifndef AP_HAVE_DESIGNATED_INITIALIZER
#define AP_HAVE_DESIGNATED_INITIALIZER
#endif

#include <httpd.h>
// The order from here on is httpd's.
#include <ap_mpm.h>
#include <ap_provider.h>
#include <ap_slotmem.h>
#include <apr_fnmatch.h>
#include <apr_strings.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_proxy.h>
#include <mod_status.h>
#include <mpm_common.h>
#include <scoreboard.h>
#include <util_filter.h>

extern "C" {
// Visible: httpd finds it by name. Everything else in the .so is hidden.
extern module AP_MODULE_DECLARE_DATA circuitbreaker_module __attribute__((visibility("default")));
}
APLOG_USE_MODULE(circuitbreaker);

#endif
