// The live table in the terminal: redrawn in place on a terminal, one block a second elsewhere.
//
// Thread safety: belongs to the main thread.
#pragma once

#include <string>

#include "scene.hpp"

namespace cb::demo {

class Table {
  public:
    Table();
    /// A sentence of the story; stays where it was said.
    void say(const std::string& text);
    void show(const Scene& scene, int second);

  private:
    bool is_terminal_;
    bool is_drawn_ = false;
    int last_second_ = -1;
};

}  // namespace cb::demo
