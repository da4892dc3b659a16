// A program of the runbook as a process of its own.
#ifndef CIRCUITBREAKER_RUNBOOK_PROCESS_HPP
#define CIRCUITBREAKER_RUNBOOK_PROCESS_HPP

#include <sys/types.h>

#include <string>
#include <vector>

#include "event.hpp"

namespace cb::runbook {

/// Starts the program with the event on its standard input, and with the event's environment and `own`, in a process
/// group of its own; -1, with errno, if it can't be.
[[nodiscard]] pid_t start(const std::string& program, const Event& event, const std::vector<std::string>& own);

}  // namespace cb::runbook

#endif
