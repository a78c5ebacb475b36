#include "kernel/kernel.h"

namespace einrel {

void run_alone(const PreparedKernel& kernel, const Arrays& arrays, Workspace workspace) {
  for (const Stage& stage : kernel.stages) {
    for (std::int64_t part = 0; part < stage.parts; ++part) stage.run(arrays, workspace, part);
  }
}

}  // namespace einrel
