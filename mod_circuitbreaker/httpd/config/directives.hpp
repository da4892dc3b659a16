// The table of directives: it reads httpd.conf into Settings.
//
// A wrong value stops the start with the directive, the value and what would be right; httpd adds file and line.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_DIRECTIVES_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_DIRECTIVES_HPP

#include "settings.hpp"
#include "words.hpp"

namespace cb::httpd {

/// Where a directive may stand.
enum class Place : std::uint8_t {
    main_server,  // outside all sections: it is about the server as a whole
    members,      // server, virtual host, <Proxy>
    everywhere,   // also in <Location>, <Directory>, <Files> and <If>
    requests,     // everywhere but in <Proxy>: it has no meaning for a member
};

/// A row of directives.def.
struct DirectiveRow {
    Place place;
    int most_words;
    const char* (*read)(const Words& words, Settings& settings) noexcept;
    void (*lay_over)(apr_pool_t* p, Settings& outer, const Settings& inner) noexcept;
    const char* usage;
};
extern const DirectiveRow kDirectiveRows[kDirectives];

/// May it also stand in <Location>, <Directory>, <Files> and <If>?
[[nodiscard]] inline bool is_for_requests(Directive directive) noexcept {
    const Place place = kDirectiveRows[index_of(directive)].place;
    return place == Place::everywhere || place == Place::requests;
}

/// For httpd.
extern const command_rec kDirectiveTable[];

}  // namespace cb::httpd

#endif
