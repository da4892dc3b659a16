// JSON (RFC 8259) onto a response, value by value.
//
// Purpose: commas, quotes and escapes in one place. Keys are ours and need none.
// Thread safety: belongs to one request.
// Invariants: what is begun must be ended; a key belongs to a value in an object, nullptr to one in an array.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_JSON_PAGE_WRITER_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_JSON_PAGE_WRITER_HPP

#include <cstdint>

#include "escape.hpp"

namespace cb::httpd {

class JsonPageWriter {
  public:
    /// What escaping needs of memory comes from `scratch`, which may be cleared between two values.
    JsonPageWriter(request_rec* r, apr_pool_t* scratch) noexcept : r_(r), scratch_(scratch) {}

    void begin_object(const char* key = nullptr) noexcept { begin(key, '{'); }
    void end_object() noexcept { end('}'); }
    void begin_array(const char* key) noexcept { begin(key, '['); }
    void end_array() noexcept { end(']'); }

    void number(const char* key, std::uint64_t value) noexcept {
        put_key(key);
        ap_rprintf(r_, "%" APR_UINT64_T_FMT, value);
    }
    /// `null` where there is none.
    void number_if(bool is_there, const char* key, std::uint64_t value) noexcept {
        is_there ? number(key, value) : null(key);
    }
    /// part / whole, with four decimals; 0 of nothing.
    void ratio(const char* key, std::uint64_t part, std::uint64_t whole) noexcept {
        put_key(key);
        const std::uint64_t parts = whole == 0 ? 0 : (part * 10'000 + whole / 2) / whole;
        ap_rprintf(r_, "%" APR_UINT64_T_FMT ".%04" APR_UINT64_T_FMT, parts / 10'000, parts % 10'000);
    }
    /// nullptr: `null`.
    void text(const char* key, const char* value) noexcept {
        if (value == nullptr) return null(key);
        put_key(key);
        ap_rvputs(r_, "\"", json_text(scratch_, value), "\"", nullptr);
    }
    void flag(const char* key, bool value) noexcept {
        put_key(key);
        ap_rputs(value ? "true" : "false", r_);
    }
    void null(const char* key) noexcept {
        put_key(key);
        ap_rputs("null", r_);
    }

  private:
    void put_key(const char* key) noexcept {
        if (!is_first_) ap_rputs(",", r_);
        is_first_ = false;
        if (key != nullptr) ap_rvputs(r_, "\"", key, "\":", nullptr);
    }
    void begin(const char* key, char bracket) noexcept {
        put_key(key);
        ap_rputc(bracket, r_);
        is_first_ = true;
    }
    void end(char bracket) noexcept {
        ap_rputc(bracket, r_);
        is_first_ = false;
    }

    request_rec* r_;
    apr_pool_t* scratch_;
    bool is_first_ = true;
};

}  // namespace cb::httpd

#endif
