// How the runner tells people something: on stderr, which is httpd's error log.
#ifndef CIRCUITBREAKER_RUNBOOK_SAY_HPP
#define CIRCUITBREAKER_RUNBOOK_SAY_HPP

#include <unistd.h>

#include <string>

namespace cb::runbook {

inline void say(const std::string& text) {
    const std::string line = "circuitbreaker-runbook: " + text + "\n";
    (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace cb::runbook

#endif
