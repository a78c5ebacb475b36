#include "sql/postgres/copy.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "sql/functions/array_bytes.h"

namespace einrel::sql {
namespace {

constexpr std::string_view signature{"PGCOPY\n\377\r\n\0", 11};

/// As networks have them: the highest byte first.
template <class Number>
void put(std::string& bytes, Number number) {
  for (std::size_t i = sizeof(Number); i-- > 0;)
    bytes += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i) & 0xFFU);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  std::span<const std::byte> take(std::size_t size) {
    if (size > left_.size()) refuse();
    const std::span<const std::byte> taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  template <class Number>
  Number number() {
    std::uint64_t value = 0;
    for (const std::byte byte : take(sizeof(Number))) value = value << 8U | static_cast<std::uint64_t>(byte);
    return static_cast<Number>(value);
  }
  bool is_at_end() const { return left_.empty(); }
  [[noreturn]] static void refuse() { throw RunError("the server sent rows that are no chunks"); }

 private:
  std::span<const std::byte> left_;
};

}  // namespace

std::string copy_header() {
  std::string bytes(signature);
  put(bytes, std::int32_t{0});  // no flags
  put(bytes, std::int32_t{0});  // and nothing behind the header
  return bytes;
}

std::string copy_trailer() {
  std::string bytes;
  put(bytes, std::int16_t{-1});
  return bytes;
}

namespace {

/// The keys of a row that has one more field.
std::string begin_row(const Key& key) {
  std::string bytes;
  put(bytes, static_cast<std::int16_t>(key.size() + 1));
  for (const std::int64_t number : key) {
    put(bytes, static_cast<std::int32_t>(sizeof(number)));
    put(bytes, number);
  }
  return bytes;
}

}  // namespace

std::string copy_row(const Key& key, const Tensor& array) {
  std::string bytes = begin_row(key);
  const std::size_t size = array_size(array);
  put(bytes, static_cast<std::int32_t>(size));
  const std::size_t begin = bytes.size();
  bytes.resize(begin + size);
  write_array(array, reinterpret_cast<std::byte*>(bytes.data()) + begin);
  return bytes;
}

std::string copy_row(const Key& key, std::int64_t value) {
  std::string bytes = begin_row(key);
  put(bytes, static_cast<std::int32_t>(sizeof(value)));
  put(bytes, value);
  return bytes;
}

std::string copy_row(const Key& key, double value) { return copy_row(key, std::bit_cast<std::int64_t>(value)); }

void CopyReader::read(std::span<const std::byte> message, Relation& rows) {
  Reader reader(message);
  if (!has_begun_) {
    const std::span<const std::byte> begin = reader.take(signature.size());
    if (std::memcmp(begin.data(), signature.data(), signature.size()) != 0) Reader::refuse();
    reader.number<std::int32_t>();
    reader.take(reader.number<std::uint32_t>());
    has_begun_ = true;
  }
  while (!reader.is_at_end()) {
    const auto fields = reader.number<std::int16_t>();
    if (fields == -1) return;
    if (static_cast<std::size_t>(fields) != key_arity_ + 1) Reader::refuse();
    Key key;
    for (std::size_t i = 0; i < key_arity_; ++i) {
      if (reader.number<std::int32_t>() != sizeof(std::int64_t)) Reader::refuse();
      key.push_back(reader.number<std::int64_t>());
    }
    const Tensor view = array_in(reader.take(reader.number<std::uint32_t>()));
    Tensor array(view.dtype(), view.shape());
    if (view.byte_count() != 0)
      copy_elements(view.dtype(), view.shape(), {view.data(), view.strides()}, array.mutable_data(), array.strides());
    rows.emplace(std::move(key), std::move(array));
  }
}

}  // namespace einrel::sql
