#include "exec/job/alike.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"

namespace einrel {
namespace {

std::uint64_t digest_of(const Fact& fact) {
  Digest digest;
  digest.add(fact.what);
  digest.add(fact.value);
  digest.add(static_cast<std::int64_t>(fact.digest));
  return digest.value();
}

/// Whether all ranks have this number.
bool is_shared(const std::vector<std::uint64_t>& by_rank) {
  return std::all_of(by_rank.begin(), by_rank.end(), [&](std::uint64_t number) { return number == by_rank.front(); });
}

std::vector<int> ranks_unlike_0(const std::vector<std::uint64_t>& by_rank) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank] != by_rank.front()) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

/// Of the first two ranks that differ in a fact: what the other one has, beside what rank 0 has.
std::string told(const Fact& other, const Fact& of_rank_0) {
  const auto shown = [](const Fact& fact) { return fact.value.empty() ? "not given" : fact.value; };
  if (other.what != of_rank_0.what) {
    const auto named = [](const Fact& fact) { return fact.what.empty() ? "nothing" : fact.what; };
    return fmt::format("it has {} where rank 0 has {}", named(other), named(of_rank_0));
  }
  if (other.value != of_rank_0.value)
    return fmt::format("{} is {} there, and {} on rank 0", other.what, shown(other), shown(of_rank_0));
  return fmt::format("it has {}", other.what);
}

Fact from(const Job& job, int rank, const Fact& own) {
  return {from_rank(job, rank, own.what), from_rank(job, rank, own.value), 0, from_rank(job, rank, own.help)};
}

}  // namespace

std::string difference(const Job& job, const std::vector<Fact>& facts) {
  if (job.ranks == 1) return "";
  Digest all;
  for (const Fact& fact : facts) all.add(static_cast<std::int64_t>(digest_of(fact)));
  if (is_shared(of_all_ranks(job, all.value()))) return "";
  const std::vector<std::uint64_t> counts = of_all_ranks(job, facts.size());
  const std::uint64_t most = *std::max_element(counts.begin(), counts.end());
  for (std::size_t i = 0; i < most; ++i) {
    const Fact own = i < facts.size() ? facts[i] : Fact{};
    const std::vector<int> others = ranks_unlike_0(of_all_ranks(job, digest_of(own)));
    if (others.empty()) continue;
    const Fact of_rank_0 = from(job, 0, own);
    const Fact of_other = from(job, others.front(), own);
    const std::string more = others.size() == 1
                                 ? ""
                                 : fmt::format(", and so {} {}", others.size() == 2 ? "does rank" : "do ranks",
                                               fmt::join(others.begin() + 1, others.end(), ", "));
    return fmt::format(
        "rank {} computes something else than rank 0{}: {}; every rank has to compute the same, in the same order{}{}",
        others.front(), more, told(of_other, of_rank_0), of_rank_0.help.empty() ? "" : "\n  help: ", of_rank_0.help);
  }
  throw Bug("digests of facts differ, but of no fact");
}

void check_alike(const Job& job, const std::vector<Fact>& facts) {
  const std::string found = difference(job, facts);
  agree(job, [&] {
    if (!found.empty()) throw UserError(found);
  });
}

}  // namespace einrel
