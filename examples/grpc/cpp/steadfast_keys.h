// Exactly once over stock gRPC: gives each call a key. docs/gateway.md has the rules of a key.
//
//     Keys keys;  // one for a channel
//     grpc::ClientContext context;
//     Keys::Call call(keys, context);  // it has ended when this goes out of scope
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>

class Keys {
  // Numbers calls from 1.
  struct Session {
    std::string name;
    std::uint64_t next = 1;
    std::set<std::uint64_t> open;

    Session() {
      std::random_device random;
      std::uint64_t drawn = 0;
      while (drawn == 0) drawn = std::uint64_t{random()} << 32 | random();
      std::ostringstream text;
      text << std::hex << drawn;
      name = text.str();
    }

    std::uint64_t oldest() const { return open.empty() ? next : *open.begin(); }
  };

  static constexpr std::uint64_t window = 64;  // calls under way in a session

  std::mutex lock_;
  std::shared_ptr<Session> session_ = std::make_shared<Session>();

 public:
  // A call that is under way. A channel has one session, and a further one where more than 64 are.
  class Call {
    Keys& keys_;
    std::shared_ptr<Session> session_;
    std::uint64_t number_;

   public:
    Call(Keys& keys, grpc::ClientContext& context) : keys_(keys) {
      std::lock_guard<std::mutex> guard(keys.lock_);
      if (keys.session_->next - keys.session_->oldest() >= window) {
        keys.session_ = std::make_shared<Session>();
      }
      session_ = keys.session_;
      number_ = session_->next++;
      session_->open.insert(number_);
      context.AddMetadata("steadfast-session", session_->name);
      context.AddMetadata("steadfast-call", std::to_string(number_));
      context.AddMetadata("steadfast-unanswered", std::to_string(session_->oldest()));
    }

    ~Call() {
      std::lock_guard<std::mutex> guard(keys_.lock_);
      session_->open.erase(number_);
    }

    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
  };
};
