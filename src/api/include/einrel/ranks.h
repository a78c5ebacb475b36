/// @file
/// Processes that mpirun started together.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace einrel::api {

/// The processes that mpirun (or Slurm) started together, this one among them, for as long as a copy of this lives: one
/// per process, made and destroyed on the same thread. Each of them runs the whole program and makes the same runs in
/// the same order; with RunOptions::ranks, each is a site of them.
///
/// A rank that fails by itself, where the others would wait for it, says why on standard error and ends all of them.
class Ranks {
 public:
  /// Starts MPI, on all of them together, if this process is one of several; else it is rank 0 of 1, and needs no MPI.
  /// Throws RunError when MPI does not start.
  Ranks();

  /// The number of this process among them, from 0.
  int rank() const;
  /// How many there are.
  int count() const;
  /// Ends all of them, this one too, with that exit code.
  [[noreturn]] void end_all(int exit_code) const;

 private:
  friend struct RanksAccess;
  struct Data;

  std::shared_ptr<const Data> data_;
};

}  // namespace einrel::api
