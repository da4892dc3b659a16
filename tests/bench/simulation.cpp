// What a failing and slowly recovering member costs, with and without a breaker, and what rolling restarts cost:
// recovery.hpp and rolling.hpp say what is modelled.
//
// `simulation` prints the tables of README.md, `simulation FILE` writes the plot there as well.
#include <cstdio>
#include <fstream>

#include "recovery.hpp"
#include "rolling.hpp"

int main(int argc, char** argv) {
    using namespace cb::bench;
    std::vector<Result> results;
    for (const Named& each : settings())
        results.push_back(run(each.setting));
    std::printf("%u requests\n\n%s", results.front().requests, table(results).c_str());
    std::printf("\n%s", rolling_table().c_str());
    if (argc < 2) return 0;
    std::ofstream file(argv[1]);
    file << plot(results);
    file.close();
    if (file) return 0;
    std::fprintf(stderr, "%s can't be written\n", argv[1]);
    return 1;
}
