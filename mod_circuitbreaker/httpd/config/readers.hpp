// How the value of each directive is read: at least one word; nullptr, or a message that says what would be right.
//
// Purpose: declares the reader of each directive, with the type of the member of Settings that it sets.
// Thread safety: used while the configuration is read.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_READERS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_READERS_HPP

#include "settings.hpp"
#include "words.hpp"

namespace cb::httpd {

// Hidden, so that the linker finds a row without a reader, or with one for another type.
#define DIRECTIVE(id, name, place, most_words, reader, member, usage)               \
    [[nodiscard, gnu::visibility("hidden")]] const char* reader(const Words& words, \
                                                                decltype(Settings::member)& value) noexcept;
#include "directives.def"
#undef DIRECTIVE

}  // namespace cb::httpd

#endif
