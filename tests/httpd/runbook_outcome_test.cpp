// CB_OUTCOME, what is wrong with a member in a word; and scale-out, which acts on it.
#include <fstream>

#include "pages.hpp"
#include "runbook.hpp"

namespace cb::test {
namespace {

class RunbookOutcome : public RunnerAlone {
  protected:
    /// An opening with these last failing calls: "503", "slow 200" (a slow one), "null".
    [[nodiscard]] static std::string opening(const std::vector<std::string>& calls,
                                             const std::string& reason = "consecutive failures",
                                             const std::string& member = "m", const std::string& to = "open") {
        std::string recent;
        for (const std::string& call : calls) {
            const bool is_slow = call.starts_with("slow ");
            const std::string outcome = is_slow ? call.substr(5) : call;
            recent += std::string(recent.empty() ? "" : ",") +
                      "{\"outcome\":" + (outcome == "null" ? outcome : "\"" + outcome + "\"") +
                      ",\"latency_ms\":1,\"slow\":" + (is_slow ? "true" : "false") + "}";
        }
        return "{\"event\":\"transition\",\"balancer\":\"balancer://b\",\"member\":\"" + member + "\",\"to\":\"" + to +
               "\",\"reason\":\"" + reason + "\",\"recent\":[" + recent + "]}\n";
    }
    [[nodiscard]] std::string outcome_of(const std::string& line) const {
        std::filesystem::remove(runbook_.path("told"));
        for (const char* folder : {"on-open.d", "on-probe.d"})
            runbook_.program(std::string(folder) + "/10",
                             "env | grep -c '^CB_OUTCOME=' >> $T/told; "
                             "printf '%s' \"$CB_OUTCOME\" >> $T/told");
        const CommandResult result = run(line);
        EXPECT_EQ(result.output, "");
        return runbook_.text("told");
    }
};

TEST_F(RunbookOutcome, NamesEachClassAndStatusOnceTheMostFrequentFirst) {
    EXPECT_EQ(outcome_of(opening({"503", "timeout", "timeout", "503", "timeout", "connect"})),
              "1\ntimeout 503 connect");
    EXPECT_EQ(outcome_of(opening({"reset", "timeout", "reset", "timeout"})), "1\ntimeout reset")
        << "the last one first";
    EXPECT_EQ(outcome_of(opening({})), "1\n");
    EXPECT_EQ(outcome_of("{\"event\":\"transition\",\"member\":\"m\",\"to\":\"open\"}\n"), "1\n");
}

TEST_F(RunbookOutcome, CallsAGoodAnswerThatCameTooLateSlow) {
    EXPECT_EQ(outcome_of(opening({"slow 200", "slow 304", "503"})), "1\nslow 503");
    EXPECT_EQ(outcome_of(opening({"slow 504", "slow timeout"})), "1\ntimeout 504") << "these fail in any case";
    EXPECT_EQ(outcome_of(opening({"404"})), "1\n404") << "a rule has made it a failure";
}

TEST_F(RunbookOutcome, OfAProbeIsItsOwn) {
    const auto probe = [](const std::string& outcome) {
        return "{\"event\":\"probe\",\"member\":\"m\",\"to\":null,\"outcome\":" + outcome +
               ",\"verdict\":\"failure\",\"result\":\"failure\",\"latency_ms\":3,"
               "\"recent\":[{\"outcome\":\"timeout\"}]}\n";
    };
    EXPECT_EQ(outcome_of(probe("\"503\"")), "1\n503");
    EXPECT_EQ(outcome_of(probe("null")), "1\n");
}

TEST_F(RunbookOutcome, IsNothingButWords) {
    EXPECT_EQ(outcome_of(opening({"503", "a b", "$(touch harm)", "\\n", "null", ""})), "1\n503");
}

// --- scale-out ---

class ScaleOut : public RunbookOutcome {
  protected:
    ScaleOut() {
        runbook_.program("one-more", "echo \"more $CB_MEMBER\" >> $T/scaled");
        runbook_.program("one-less", "echo \"less $CB_MEMBER\" >> $T/scaled; [ ! -e $T/broken ]");
        runbook_.ready_program("scale-out", "on-open.d");
        runbook_.ready_program("scale-out", "clear.d");
    }
    void configure(const std::string& more = "") const {
        runbook_.configure("SCALE_OUT_EVERY=0\nSCALE_OUT_COMMAND=" + runbook_.path("one-more").string() + "\n" + more);
    }
    [[nodiscard]] std::string in_command() const {
        return "SCALE_IN_COMMAND=" + runbook_.path("one-less").string() + "\n";
    }
    [[nodiscard]] std::string scaled(const std::string& lines, bool is_anew = false) const {
        std::filesystem::remove(runbook_.path("scaled"));
        output_ = (is_anew ? run_anew(lines) : run(lines)).output;
        return runbook_.text("scaled");
    }
    static std::string of_vhost(const std::string& vhost, const std::string& line) {
        return replaced(line, "\"balancer\"", "\"vhost\":\"" + vhost + "\",\"balancer\"");
    }
    static std::string closing(const std::string& member = "m") { return opening({}, "r", member, "closed"); }
    mutable std::string output_;
};

TEST_F(ScaleOut, ActsOnSignsOfExhaustionOnly) {
    configure();
    for (const char* outcome : {"timeout", "503", "504", "slow 200"}) {
        EXPECT_EQ(scaled(opening({"502", outcome, outcome})), "more m\n") << outcome;
        EXPECT_EQ(output_, "");
    }
    EXPECT_EQ(scaled(opening({"502"}, "slow call rate")), "more m\n");
    for (const char* outcome : {"connect", "reset", "502", "500", "protocol"}) {
        EXPECT_EQ(scaled(opening({"503", outcome, outcome})), "") << outcome;
        EXPECT_EQ(output_, "no sign of exhaustion, so nothing is scaled out: consecutive failures: " +
                               std::string(outcome) + " 503\n");
    }
    EXPECT_EQ(scaled(opening({})), "");
    EXPECT_NE(output_.find("no failing call"), std::string::npos) << output_;
}

TEST_F(ScaleOut, ScalesInWhenTheMemberIsBackForWhichItHasScaledOut) {
    configure(in_command());
    EXPECT_EQ(scaled(opening({"503"}) + opening({"503"}) + closing()), "more m\nless m\n")
        << "once for an outage, however often it opens again";
    EXPECT_EQ(scaled(closing()), "");
    EXPECT_EQ(scaled(opening({"connect"}) + closing()), "") << "it has done nothing";
    EXPECT_EQ(scaled(opening({"503"})), "more m\n");
    EXPECT_EQ(scaled(opening({"connect"}, "r", "n") + closing("n")), "") << "that was for another member";
    runbook_.create("broken");
    EXPECT_EQ(scaled(closing()), "less m\n");
    EXPECT_NE(output_.find("clear.d/50-scale-out: exit status 1"), std::string::npos) << output_;
    std::filesystem::remove(runbook_.path("broken"));
    EXPECT_EQ(scaled(closing()), "less m\n") << "once more, as it has failed";
    EXPECT_EQ(output_, "");
    EXPECT_EQ(scaled(closing()), "");
}

TEST_F(ScaleOut, MayActAgainInAnOutageIfNothingWouldScaleIn) {
    configure();
    EXPECT_EQ(scaled(opening({"503"}) + opening({"503"})), "more m\nmore m\n") << "there is no command for it";
    EXPECT_EQ(scaled(closing()), "");
    configure(in_command());
    std::filesystem::remove_all(runbook_.path("clear.d"));
    EXPECT_EQ(scaled(opening({"503"}) + closing() + opening({"503"}) + opening({"503"})), "more m\nmore m\nmore m\n")
        << "nothing runs the command";
}

TEST_F(ScaleOut, ScalesInAsOftenAsOutWhereAMemberHasBreakersInTwoVirtualHosts) {
    configure(in_command());
    const std::string open = opening({"503"});
    EXPECT_EQ(scaled(of_vhost("one", open) + of_vhost("two", open) + of_vhost("one", open)), "more m\nmore m\n");
    EXPECT_EQ(scaled(of_vhost("one", closing()) + of_vhost("one", closing())), "less m\n");
    EXPECT_EQ(scaled(of_vhost("two", closing())), "less m\n");
    EXPECT_EQ(scaled(of_vhost("one", open) + of_vhost("two", open) + of_vhost("", open) + of_vhost("", closing())),
              "more m\nmore m\nless m\nless m\n")
        << "of which virtual host it is, httpd's parent does not know";
    EXPECT_EQ(scaled(of_vhost("", open) + of_vhost("one", open) + of_vhost("one", closing())), "more m\nless m\n");
}

TEST_F(ScaleOut, ScalesInWhenHttpdWasStartedAnew) {
    configure(in_command());
    EXPECT_EQ(scaled(opening({"503"})), "more m\n");
    EXPECT_EQ(scaled("", true), "less m\n");
    EXPECT_EQ(scaled(opening({"503"}), true), "more m\n");
}

TEST_F(ScaleOut, NeedsNoCommandToScaleIn) {
    configure();
    EXPECT_EQ(scaled(opening({"503"}) + closing()), "more m\n");
    EXPECT_EQ(output_, "");
    configure(in_command());
    EXPECT_EQ(scaled(closing()), "") << "that opening is over";
}

}  // namespace
}  // namespace cb::test
