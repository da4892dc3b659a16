// How the value of each directive is read.
//
// Purpose: from words to a Policy or Settings, or to a message that says what would be right.
// Thread safety: used while the configuration is read.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_READERS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_READERS_HPP

#include "settings.hpp"
#include "words.hpp"

namespace cb::httpd {

/// Reads at least one word; nullptr, or the message. `read_more` stands where a Policy is not enough.
struct Reader {
    const char* (*read)(const Words& words, core::Policy& policy) noexcept;
    int max_words;
    const char* (*read_more)(const Words& words, Settings& settings) noexcept = nullptr;
};

/// In the order of Directive.
extern const Reader kReaders[kDirectives];

}  // namespace cb::httpd

#endif
