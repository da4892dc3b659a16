// What the tests about withheld answers have in common: a member that fails and is asked first, and one that is well.
//
// Thread safety: belongs to the main thread.
#pragma once

#include <memory>
#include <string>

#include "traffic.hpp"

namespace cb::test {

class WithheldTest : public TrafficTest {
  protected:
    void start(const HttpdOptions& options) {
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }
    Response ask(const std::string& path = "/app/x", const RequestOptions& options = {}) {
        return get(httpd_->url(path), options);
    }
    BreakerBlock bad() { return BreakerPage(*httpd_).member(bad_); }

    Backend bad_{"bad"};
    Backend good_{"good"};
    std::unique_ptr<Httpd> httpd_;
};

}  // namespace cb::test
