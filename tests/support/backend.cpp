#include "backend.hpp"

#include <algorithm>
#include <utility>

#include "answer.hpp"
#include "request_reader.hpp"

namespace cb::test {
namespace {

class OnLeaving {
  public:
    explicit OnLeaving(std::function<void()> action) : action_(std::move(action)) {}
    ~OnLeaving() { action_(); }
    OnLeaving(const OnLeaving&) = delete;
    OnLeaving& operator=(const OnLeaving&) = delete;

  private:
    std::function<void()> action_;
};

Handler its_name(const std::string& name) {
    return [reply = Reply::ok(name)](const Request&) { return reply; };
}

}  // namespace

Backend::Backend(std::string name)
    : name_(std::move(name)), usual_(its_name(name_)), server_([this](Connection& c) { serve(c); }) {}

Backend::Backend(std::string name, const OnUnixSocket& where)
    : name_(std::move(name)),
      folder_(where.path.empty() ? std::optional<TempDir>(std::in_place, "cb-backend") : std::nullopt),
      usual_(its_name(name_)),
      server_([this](Connection& c) { serve(c); }, folder_ ? folder_->path() / "socket" : where.path) {}

std::string Backend::url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port()) + path;
}

std::string Backend::member() const {
    if (unix_socket().empty()) return "http://127.0.0.1:" + std::to_string(port());
    return "unix:" + unix_socket().string() + "|http://" + name_;
}

void Backend::answer(Reply reply) {
    answer([reply = std::move(reply)](const Request&) { return reply; });
}

void Backend::answer(Handler handler) {
    const std::scoped_lock lock(mutex_);
    usual_ = std::move(handler);
}

void Backend::answer_path(const std::string& path, Reply reply) {
    const std::scoped_lock lock(mutex_);
    by_path_.insert_or_assign(path, std::move(reply));
}

void Backend::answer_next(unsigned requests, const Reply& reply) {
    const std::scoped_lock lock(mutex_);
    next_.insert(next_.end(), requests, reply);
}

void Backend::answer_as_usual() {
    const std::scoped_lock lock(mutex_);
    usual_ = its_name(name_);
    by_path_.clear();
    next_.clear();
}

Reply Backend::choose(const Request& request) {
    Handler handler;
    {
        const std::scoped_lock lock(mutex_);
        if (!next_.empty()) {
            Reply reply = std::move(next_.front());
            next_.pop_front();
            return reply;
        }
        const auto found = by_path_.find(request.path);
        if (found != by_path_.end()) return found->second;
        handler = usual_;
    }
    return handler(request);
}

void Backend::hold() {
    const std::scoped_lock lock(mutex_);
    holding_ = true;
}

void Backend::release() {
    {
        const std::scoped_lock lock(mutex_);
        holding_ = false;
        tickets_ = 0;
        ++releases_;
    }
    server_.wake_all();
}

void Backend::release_some(unsigned requests) {
    {
        const std::scoped_lock lock(mutex_);
        tickets_ += requests;
    }
    server_.wake_all();
}

/// Whether a request that came after `arrived_at` releases may go on.
bool Backend::may_go(std::uint64_t arrived_at) {
    const std::scoped_lock lock(mutex_);
    if (releases_ != arrived_at) return true;
    if (tickets_ == 0) return false;
    --tickets_;
    return true;
}

bool Backend::holding() const {
    const std::scoped_lock lock(mutex_);
    return holding_;
}

void Backend::serve(Connection& connection) {
    RequestReader reader(connection);
    while (connection.become_idle()) {
        const std::optional<Request> head = reader.read_head();
        if (!head || !serve_one(connection, reader, *head)) return;
    }
}

bool Backend::serve_one(Connection& connection, RequestReader& reader, Request request) {
    connection.become_busy();
    enter();
    const std::uint64_t arrived_at = releases_;
    unsigned answering = 0;
    bool left = false;
    const auto leave = [&] {
        if (std::exchange(left, true)) return;
        connection.become_nearly_idle();
        --concurrent_;
        answering_ -= answering;
    };
    const OnLeaving leave_at_last(leave);

    if (!reader.read_body(request)) {
        ++unfinished_;
        return false;
    }
    // What a test does after it has seen the request counted comes too late for the answer, unless the gate is closed.
    std::optional<Reply> reply;
    const bool held = holding();
    if (!held) reply = choose(request);
    answering = 1;
    ++answering_;
    note(request);
    if (held) {
        const auto woken = connection.wait([&] { return may_go(arrived_at); });
        if (woken != Connection::Woken::by_condition) return false;
        reply = choose(request);
    }
    AnswerContext context{name_, [&] { return may_go(arrived_at); }, leave};
    return Answer(connection, *reply, request, std::move(context)).give();
}

void Backend::enter() {
    unsigned now = ++concurrent_;
    unsigned highest = peak_;
    if (now > highest) now = std::min(now, server_.working_connections());
    while (now > highest && !peak_.compare_exchange_weak(highest, now)) {
    }
}

void Backend::note(const Request& request) {
    const std::scoped_lock lock(mutex_);
    log_.push_back(request);
    if (log_.size() > most_logged) log_.pop_front();
    ++requests_by_path_[request.path];
    ++requests_;
}

unsigned Backend::requests_for(const std::string& path) const {
    const std::scoped_lock lock(mutex_);
    const auto found = requests_by_path_.find(path);
    return found != requests_by_path_.end() ? found->second : 0;
}

std::vector<Request> Backend::log() const {
    const std::scoped_lock lock(mutex_);
    return {log_.begin(), log_.end()};
}

std::optional<Request> Backend::last_request() const {
    const std::scoped_lock lock(mutex_);
    return log_.empty() ? std::nullopt : std::optional<Request>(log_.back());
}

void Backend::forget() {
    const std::scoped_lock lock(mutex_);
    log_.clear();
    requests_by_path_.clear();
    requests_ = 0;
    unfinished_ = 0;
    peak_ = concurrent_.load();
}

bool Backend::wait_for_concurrent(unsigned requests, milliseconds timeout) const {
    return wait_until([&] { return answering_ >= requests; }, timeout,
                      std::to_string(requests) + " concurrent requests in backend " + name_);
}

bool Backend::wait_for_requests(unsigned requests, milliseconds timeout) const {
    return wait_until([&] { return requests_ >= requests; }, timeout,
                      std::to_string(requests) + " requests to backend " + name_);
}

bool Backend::wait_until_quiet(milliseconds timeout) const {
    return wait_until([&] { return concurrent_ == 0; }, timeout, "backend " + name_ + " to be quiet");
}

}  // namespace cb::test
