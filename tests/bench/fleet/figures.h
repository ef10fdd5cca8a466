// figures.h — what a simulated day counted, and how it is shown.
//
// Thread safety: one thread.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::bench::fleet {

// Of the requests that came after the warm-up.
struct figures {
  std::uint64_t requests = 0, ended = 0, refused = 0;
  std::uint64_t refused_by_worker = 0;  // offers that a worker refused: the job asked the next one
  double prompt_tokens = 0, found = 0, promised = 0;
  std::vector<float> first_ms;  // from arrival at the gateway to the first token there
  std::vector<float> gap_ms;    // mean time between tokens, by request of more than one token
  // By device, of the time after the warm-up.
  std::vector<double> jobs, busy_s, tokens;
  double seconds = 0;  // of virtual time
  double busy() const;
};

// Adds another cell's.
void add(figures& to, const figures& cell);

// The value below which this share of the values is; 0 where there is none. Sorts the values.
double quantile(std::vector<float>& values, double share);
// The largest, divided by the mean.
double busiest(const std::vector<double>& of_devices);

// An object for machines, and a line of the table for people.
boost::json::object json_of(figures& f);
std::string table_head();
std::string table_line(const std::string& policy, figures& f);

}  // namespace weir::bench::fleet
