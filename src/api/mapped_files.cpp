#include <einrel/error.h>
#include <einrel/mapped_files.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "api/border.h"
#include "api/input_data.h"
#include "base/cut_files.h"

namespace einrel::api {
namespace {

void refuse_cut(const Inputs& read) {
  for (const auto& [name, input] : read) {
    const auto* const tensor = std::get_if<einrel::Tensor>(&InputAccess::source(input));
    if (tensor == nullptr) continue;
    const std::optional<std::string> file = cut_file_mapped_at({tensor->data(), 1});
    if (file) throw RunError(fmt::format("the file '{}' has become shorter since it was opened: open it again", *file));
  }
}

}  // namespace

void outlive_cut_files() { einrel::outlive_cut_files(); }

bool is_mapped(const Tensor& tensor) { return file_mapped_at(tensor.bytes()).has_value(); }

struct WholeFiles::Data {
  explicit Data(Inputs inputs) : read(std::move(inputs)) {}

  Inputs read;
  CutWatch watch;
};

WholeFiles::WholeFiles(Inputs read) : data_(std::make_shared<const Data>(std::move(read))) { refuse_cut(data_->read); }

void WholeFiles::check() const {
  at_border([&] { data_->watch.check(); });
  refuse_cut(data_->read);
}

}  // namespace einrel::api
