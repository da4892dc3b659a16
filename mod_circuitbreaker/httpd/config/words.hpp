// The words of one directive, and how its messages are made.
//
// Purpose: shared by the readers of directives; each message says what is wrong and what would be right.
// Thread safety: used while the configuration is read.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_WORDS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_WORDS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

struct Words {
    cmd_parms* cmd;
    int count;  // at least 1: a missing value is an empty word
    char* const* word;

    [[nodiscard]] const char* wrong(const char* value, const char* allowed) const noexcept {
        if (*value == '\0') return apr_psprintf(cmd->pool, "%s: a value is missing, write %s", cmd->cmd->name, allowed);
        return apr_psprintf(cmd->pool, "%s: \"%s\" is wrong, write %s", cmd->cmd->name, value, allowed);
    }
    [[nodiscard]] const char* contradiction(const char* what) const noexcept {
        return apr_psprintf(cmd->pool, "%s: %s", cmd->cmd->name, what);
    }
};

}  // namespace cb::httpd

#endif
