// What a closed breaker costs a request: permit and result, against the least that any shared, timed counter costs.
//
// Runs: bare     two clock reads and two shared atomic updates (a permit may cost 2.5 times this)
//       permit   peek(), admit() and finish() of a successful call on a closed breaker
//       refusal  peek() of an open breaker
// Figures are compared within one run; the last line is the ratio permit / bare, from the fastest of several rounds.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "shm/table.hpp"

namespace {

using namespace cb;

struct World {
    shm::Segment segment;
    shm::Process process;
    core::Policy policy;
    shm::Slot* slot = nullptr;
    shm::InFlight in_flight;

    World() {
        const std::size_t size = shm::segment_size(64, 16);
        void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        segment = shm::format(memory, 64, 16, shm::monotonic_ns());
        process = {segment.clock(), 1, nullptr};
        shm::Identity identity;
        std::uint32_t index = 0;
        if (!shm::make_identity(identity, 1, "balancer://bench", "http://127.0.0.1:1", "") ||
            shm::bind(segment, identity, 1, 1, index) != shm::BindResult::bound) {
            std::abort();
        }
        bool is_stale = false;
        const std::uint32_t column = shm::register_child(segment, 1, 1, is_stale);
        slot = &segment.slots[index];
        in_flight = {segment.row(index) + column, segment.row(index), column + 1};
        policy.mode = core::Mode::on;
        shm::configure(*slot, policy, process);
    }
};

World& world() {
    static World the_world;
    return the_world;
}

void bare(benchmark::State& state) {
    World& w = world();
    shm::Atomic64& a = w.slot->totals.late;
    shm::Atomic64& b = w.slot->ramp_asked;
    for (auto _ : state) {
        benchmark::DoNotOptimize(w.process.clock.now());
        a.fetch_add(1);
        b.fetch_add(1);
        benchmark::DoNotOptimize(w.process.clock.now());
    }
}

void permit(benchmark::State& state) {
    World& w = world();
    shm::operate(*w.slot, w.policy, w.process, core::EventKind::reset);
    for (auto _ : state) {
        benchmark::DoNotOptimize(shm::peek(*w.slot, w.policy, w.process));
        shm::Admission admission = shm::admit(*w.slot, w.policy, w.process, w.in_flight, true, 1000);
        const shm::Ending ending{core::status_outcome(200), core::Verdict::success, false, 0};
        shm::finish(*w.slot, w.policy, w.process, admission.permit, ending, {});
    }
}

void refusal(benchmark::State& state) {
    World& w = world();
    shm::operate(*w.slot, w.policy, w.process, core::EventKind::force_open);
    for (auto _ : state)
        benchmark::DoNotOptimize(shm::peek(*w.slot, w.policy, w.process));
    shm::operate(*w.slot, w.policy, w.process, core::EventKind::automatic);
}

class Ratio : public benchmark::ConsoleReporter {
  public:
    void ReportRuns(const std::vector<Run>& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (const Run& run : runs) {
            if (run.run_type != Run::RT_Iteration) continue;
            double& best = std::strcmp(run.run_name.function_name.c_str(), "bare") == 0     ? bare_
                           : std::strcmp(run.run_name.function_name.c_str(), "permit") == 0 ? permit_
                                                                                            : other_;
            best = std::min(best, run.GetAdjustedCPUTime());
        }
    }
    [[nodiscard]] double ratio() const { return permit_ / bare_; }

  private:
    double bare_ = 1e9;
    double permit_ = 1e9;
    double other_ = 1e9;
};

}  // namespace

BENCHMARK(bare)->Repetitions(7)->ReportAggregatesOnly(false);
BENCHMARK(permit)->Repetitions(7)->ReportAggregatesOnly(false);
BENCHMARK(refusal)->Repetitions(3)->ReportAggregatesOnly(false);

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    Ratio reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    std::printf("permit / bare = %.2f (budget 2.5)\n", reporter.ratio());
    return 0;
}
