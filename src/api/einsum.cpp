#include <einrel/program.h>

#include "api/border.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/tensor_data.h"
#include "einsum/text/einsum_notation.h"

namespace einrel::api {

Tensor einsum(std::string_view subscripts, const std::vector<Tensor>& operands, const EinsumOptions& options) {
  return at_border([&] {
    EinsumRequest request{std::string(subscripts), {}, options.join, options.reduce};
    std::map<std::string, Tensor> inputs;
    for (const Tensor& operand : operands) {
      const std::string name = operand_name(request.operands.size(), operands.size());
      request.operands.push_back({make_shape(operand.shape()),
                                  std::string(name_of(operand.dtype())),
                                  {inside(operand.dtype())},
                                  "operand " + name});
      inputs.insert({name, operand});
    }
    Version version(compile(request.subscripts, einsum_graph(request)));
    const SourceText source("<einsum>", request.subscripts);
    return run_version({version, source, std::move(inputs), {}}, {.threads = options.threads})[einsum_result];
  });
}

}  // namespace einrel::api
