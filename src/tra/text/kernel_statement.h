#pragma once

#include <vector>

#include "base/source.h"
#include "einsum/front/text/parse_expr.h"
#include "tra/text/call_tree.h"

namespace einrel::calls {

/// What stands behind the word `kernel`. Throws SyntaxError. O(size).
KernelStatement parse_kernel(parsing::Cursor& cursor, std::vector<Diagnostic>& errors);

}  // namespace einrel::calls
