// Adds 1 to the group `counter` in a loop, over stock gRPC, without protobuf.
//
//     client TARGET [--calls N | --seconds S] [--no-keys] [--tls DIR --authority NAME]
//
// TARGET is unix:PATH, HOST:PORT or xds:///counter. It calls until N calls, S seconds or SIGTERM,
// and prints one line of JSON. Failures, and calls of more than 5 ms, are told on the error stream.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "steadfast_keys.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string target, tls, authority;
  double calls = 1e18, seconds = 1e9, deadline_ms = 5000;
  bool keys = true;
};

Options read_options(int count, char** words) {
  Options options;
  for (int at = 1; at < count; ++at) {
    const std::string word = words[at];
    const auto value = [&] {
      if (at + 1 == count) {
        std::cerr << word << " needs a value\n";
        std::exit(2);
      }
      return std::string(words[++at]);
    };
    if (word == "--no-keys") options.keys = false;
    else if (word == "--calls") options.calls = std::stod(value());
    else if (word == "--seconds") options.seconds = std::stod(value());
    else if (word == "--deadline-ms") options.deadline_ms = std::stod(value());
    else if (word == "--tls") options.tls = value();
    else if (word == "--authority") options.authority = value();
    else options.target = word;
  }
  return options;
}

// The file of a client's folder that begins and ends so.
std::string read(const std::string& folder, const std::string& start, const std::string& end) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.rfind(start, 0) == 0 && entry.path().extension() == end) {
      std::ifstream file(entry.path());
      return {std::istreambuf_iterator<char>(file), {}};
    }
  }
  std::cerr << "no " << start << "*" << end << " in " << folder << "\n";
  std::exit(2);
}

std::shared_ptr<grpc::Channel> open_channel(const Options& options) {
  grpc::ChannelArguments arguments;
  if (options.tls.empty()) {
    return grpc::CreateCustomChannel(options.target, grpc::InsecureChannelCredentials(), arguments);
  }
  arguments.SetSslTargetNameOverride(options.authority);
  grpc::SslCredentialsOptions files;
  files.pem_root_certs = read(options.tls, "authority", ".pem");
  files.pem_private_key = read(options.tls, "client-", ".key");
  files.pem_cert_chain = read(options.tls, "client-", ".pem");
  return grpc::CreateCustomChannel(options.target, grpc::SslCredentials(files), arguments);
}

// A unary call with JSON in and out.
grpc::Status call(grpc::GenericStub& stub, grpc::ClientContext& context, const std::string& method,
                  const std::string& json) {
  const grpc::Slice slice(json);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer reply;
  grpc::Status status;
  grpc::CompletionQueue queue;
  context.AddMetadata("steadfast-encoding", "json");
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  return status;
}

volatile std::sig_atomic_t stopped = 0;

double milliseconds(Clock::duration span) {
  return std::chrono::duration<double, std::milli>(span).count();
}

}  // namespace

int main(int count, char** words) {
  const Options options = read_options(count, words);
  std::signal(SIGTERM, [](int) { stopped = 1; });
  grpc::GenericStub stub(open_channel(options));
  Keys keys;
  std::vector<double> waits;
  std::map<int, int> codes;
  int failed = 0;
  std::string gateway;
  const auto start = Clock::now();
  while (waits.size() < options.calls && !stopped &&
         milliseconds(Clock::now() - start) < options.seconds * 1000) {
    const auto began = Clock::now();
    const auto now = std::chrono::system_clock::now();
    const auto at = std::chrono::duration<double, std::milli>(now.time_since_epoch()).count();
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(now + std::chrono::microseconds(long(options.deadline_ms * 1000)));
    std::optional<Keys::Call> key;
    if (options.keys) key.emplace(keys, context);
    const grpc::Status status = call(stub, context, "/counter/add", "[1]");
    if (!status.ok()) {
      ++failed;
      ++codes[status.error_code()];
      std::fprintf(stderr, "failed %d %s\n", status.error_code(), status.error_message().c_str());
    }
    waits.push_back(milliseconds(Clock::now() - began));
    if (waits.back() > 5) std::fprintf(stderr, "slow %.0f %.1f\n", at, waits.back());
    if (status.ok() && context.peer() != gateway) {
      gateway = context.peer();
      std::fprintf(stderr, "peer %.0f %s\n", at + waits.back(), gateway.c_str());
    }
  }
  std::sort(waits.begin(), waits.end());
  std::string told;
  for (const auto& [code, times] : codes) {
    told += (told.empty() ? "\"" : ", \"") + std::to_string(code) + "\": " + std::to_string(times);
  }
  const double median = waits.empty() ? 0 : waits[waits.size() / 2];
  const double longest = waits.empty() ? 0 : waits.back();
  std::printf(
      "{\"calls\": %zu, \"failed\": %d, \"codes\": {%s}, \"p50_us\": %.0f, \"longest_ms\": %.1f}\n",
      waits.size(), failed, told.c_str(), median * 1000, longest);
}
