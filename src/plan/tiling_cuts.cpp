#include "plan/tiling_cuts.h"

namespace einrel {

double TilingCuts::moved() const {
  double moved = 0;
  double groups = 1;
  for (const TilingCut& cut : cuts) {
    moved += groups * cut.moved;
    groups *= static_cast<double>(cut.groups);
  }
  return moved;
}

}  // namespace einrel
