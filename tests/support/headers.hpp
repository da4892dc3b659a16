// HTTP header fields: in order, names without regard to case, a name may come several times.
//
// Thread safety: a plain value.
#pragma once

#include <strings.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cb::test {

class Headers {
  public:
    using Field = std::pair<std::string, std::string>;

    Headers() = default;
    Headers(std::initializer_list<Field> fields) : fields_(fields) {}

    void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
    void clear() { fields_.clear(); }

    [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

    /// The first value of that name; empty if there is none (`has` tells the two apart).
    [[nodiscard]] std::string get(std::string_view name) const {
        const Field* field = find(name);
        return field != nullptr ? field->second : std::string{};
    }

    [[nodiscard]] std::vector<std::string> all(std::string_view name) const {
        std::vector<std::string> values;
        for (const Field& field : fields_) {
            if (same(field.first, name)) values.push_back(field.second);
        }
        return values;
    }

    [[nodiscard]] auto begin() const { return fields_.begin(); }
    [[nodiscard]] auto end() const { return fields_.end(); }
    [[nodiscard]] std::size_t size() const { return fields_.size(); }

    [[nodiscard]] static bool same(std::string_view a, std::string_view b) {
        return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
    }

    /// Adds the field of a line `Name: value` as it stands on the wire; false if the line has no colon.
    bool add_line(std::string_view line) {
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) return false;
        std::string_view value = line.substr(colon + 1);
        constexpr std::string_view blank = " \t\r\n";
        value.remove_prefix(std::min(value.find_first_not_of(blank), value.size()));
        value.remove_suffix(value.size() - (value.find_last_not_of(blank) + 1));
        add(std::string(line.substr(0, colon)), std::string(value));
        return true;
    }

  private:
    [[nodiscard]] const Field* find(std::string_view name) const {
        for (const Field& field : fields_) {
            if (same(field.first, name)) return &field;
        }
        return nullptr;
    }

    std::vector<Field> fields_;
};

}  // namespace cb::test
