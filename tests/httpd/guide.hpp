// GUIDE.md's commands and configurations, so that tests run what it prints.
//
//     std::string config = from_guide("Health checks", "apache");
//     put(config, "10.0.0.7:8080", "127.0.0.1:" + port);
//
// Thread safety: values and pure functions.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "runbook.hpp"

namespace cb::test {

/// The code of that language below that heading of the guide, up to the next heading.
inline std::string from_guide(const std::string& heading, const std::string& language) {
    std::ifstream guide(project() / "mod_circuitbreaker/GUIDE.md");
    std::string code;
    bool is_there = false;
    bool is_code = false;
    for (std::string line; std::getline(guide, line);) {
        if (!is_code && line.starts_with("##")) is_there = line.ends_with("# " + heading);
        if (line.starts_with("```")) {
            is_code = line == "```" + language && is_there;
        } else if (is_code) {
            code += line + "\n";
        }
    }
    EXPECT_NE(code, "") << heading;
    return code;
}

/// Everywhere, and at least once.
inline void put(std::string& text, const std::string& example, const std::string& real) {
    std::size_t at = text.find(example);
    EXPECT_NE(at, std::string::npos) << "the guide has no " << example;
    for (; at != std::string::npos; at = text.find(example, at + real.size()))
        text.replace(at, example.size(), real);
}

}  // namespace cb::test
