#include "trip.hpp"

namespace cb::test {

void trip(const Httpd& httpd, Backend& backend, const Trip& how) {
    backend.answer(Reply::status(502));
    for (unsigned i = 0; i < how.failures; ++i)
        EXPECT_EQ(get(httpd.url(how.path), how.request).backend(), backend.name()) << httpd.describe();
    EXPECT_TRUE(wait_for_state(httpd, backend, "open")) << httpd.describe();
    backend.answer_as_usual();
    backend.forget();
}

void make_due(const Httpd& httpd, Backend& backend, const Trip& how) {
    trip(httpd, backend, how);
    EXPECT_TRUE(wait_for_end_of_open_time(httpd, backend)) << httpd.describe();
}

}  // namespace cb::test
