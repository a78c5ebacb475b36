/// @file
/// What a process that must go on does about mapped files that others cut short.
#pragma once

#include <einrel/input.h>

#include <memory>

namespace einrel::api {

/// Tensor::load maps files, and the system ends a process that touches bytes which are gone, because others cut the
/// file short (SIGBUS). From now on they read as 0 instead, on every thread, while a WholeFiles lives, which finds that
/// out. To be called again where somebody else may have taken the signal for themselves.
void outlive_cut_files();

/// Whether the elements lie in a file that is mapped.
bool is_mapped(const Tensor& tensor);

/// Watches over something that reads tensors, from before it does until after.
class WholeFiles {
 public:
  /// Throws RunError, which names the file, where one that such a tensor is mapped from has been cut short.
  explicit WholeFiles(Inputs read);
  /// The same for what happened since, also to files that the process has mapped otherwise: what was read is wrong.
  void check() const;

 private:
  struct Data;

  std::shared_ptr<const Data> data_;
};

}  // namespace einrel::api
