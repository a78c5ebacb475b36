#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "sql/functions/array_bytes.h"
#include "sql/postgres/extension/exchange.h"
#include "tensor/convert.h"

extern "C" {
#include <catalog/pg_type.h>
#include <funcapi.h>
#include <miscadmin.h>
#include <utils/array.h>
#include <utils/builtins.h>
}

namespace einrel::sql {
namespace {

constexpr std::int64_t most_extent = 2'147'483'647;

/// What a part that calls PostgreSQL knows of an array.
struct ArrayView {
  std::int64_t count = 0;
  std::size_t rank = 0;
  std::int64_t extents[most_dimensions] = {};
  bool is_real = false;  ///< its elements
};

/// A block of elements, wide.
struct Block {
  static constexpr std::int64_t most = 4096;
  double real[most];
  std::int64_t whole[most];
};

ArrayView view_of(const Tensor& array) {
  if (array.rank() > most_dimensions) throw UserError("an array of so many dimensions is no table of elements");
  ArrayView view{array.count(), array.rank(), {}, is_float(array.dtype())};
  for (std::size_t d = 0; d < array.rank(); ++d) view.extents[d] = array.shape()[d].value();
  return view;
}

/// Elements of a row-major array.
void read_block(const Tensor& array, std::int64_t begin, std::int64_t count, Block& block) {
  with_stored_type(array.dtype(), [&]<class Stored>() {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = widen(array.load<Stored>(begin + i));
      if constexpr (std::is_floating_point_v<decltype(value)>) {
        block.real[i] = value;
      } else {
        block.whole[i] = value;
      }
    }
  });
}

Value bytes_value(const bytea* bytes) {
  return Bytes{
      {reinterpret_cast<const std::byte*>(VARDATA_ANY(bytes)), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(bytes))}};
}

/// What a column of values is of, as the query calls it (einrel_elements(...) AS e(value real, d0 bigint)).
Datum element_datum(Oid type, bool is_real, double real, std::int64_t whole) {
  switch (type) {
    case FLOAT8OID: return Float8GetDatum(is_real ? real : static_cast<double>(whole));
    case FLOAT4OID: return Float4GetDatum(static_cast<float>(is_real ? real : static_cast<double>(whole)));
    case BOOLOID: return BoolGetDatum(whole != 0);
    case INT4OID: return Int32GetDatum(static_cast<std::int32_t>(whole));
    default: return Int64GetDatum(whole);
  }
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity): of ereport, a macro
void check_columns(TupleDesc columns, const ArrayView& view) {
  if (columns->natts != static_cast<int>(view.rank) + 1)
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("an array of %d dimensions has %d columns: value, d0, ...",
                                                        static_cast<int>(view.rank), static_cast<int>(view.rank) + 1)));
  const Oid type = TupleDescAttr(columns, 0)->atttypid;
  const bool fits = type == FLOAT8OID || type == FLOAT4OID ||
                    (!view.is_real && (type == BOOLOID || type == INT4OID || type == INT8OID));
  if (!fits)
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("the elements of an array of %s are no %s", view.is_real ? "floats" : "whole numbers",
                           format_type_be(type))));
  for (int d = 1; d < columns->natts; ++d) {
    if (TupleDescAttr(columns, d)->atttypid != INT8OID)
      ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("a coordinate of an element is a bigint")));
  }
}

void put_block(ReturnSetInfo* result, const ArrayView& view, std::int64_t begin, std::int64_t count,
               const Block& block) {
  Datum values[most_dimensions + 1];
  bool nulls[most_dimensions + 1] = {};
  const Oid type = TupleDescAttr(result->setDesc, 0)->atttypid;
  for (std::int64_t i = 0; i < count; ++i) {
    if (type == INT4OID && block.whole[i] != static_cast<std::int32_t>(block.whole[i]))
      ereport(ERROR,
              (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("an element is no integer: it is too large")));
    values[0] = element_datum(type, view.is_real, block.real[i], block.whole[i]);
    std::int64_t rest = begin + i;
    for (std::size_t d = view.rank; d-- > 0;) {
      values[d + 1] = Int64GetDatum(rest % view.extents[d]);
      rest /= view.extents[d];
    }
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
  }
}

Datum elements(FunctionCallInfo call) {
  const bytea* const bytes = DatumGetByteaPP(call->args[0].value);
  InitMaterializedSRF(call, MAT_SRF_USE_EXPECTED_DESC);
  auto* const result = reinterpret_cast<ReturnSetInfo*>(call->resultinfo);
  ArrayView view;
  guarded([&] { view = view_of(array_of(bytes_value(bytes), "einrel_elements")); });
  check_columns(result->setDesc, view);
  auto* const block = static_cast<Block*>(palloc0(sizeof(Block)));
  for (std::int64_t begin = 0; begin < view.count; begin += Block::most) {
    CHECK_FOR_INTERRUPTS();
    const std::int64_t count = std::min(Block::most, view.count - begin);
    guarded([&] { read_block(array_of(bytes_value(bytes), "einrel_elements"), begin, count, *block); });
    put_block(result, view, begin, count, *block);
  }
  return 0;
}

/// An array of PostgreSQL, in its memory: the header, extents, lower bounds, elements.
ArrayType* new_array(const ArrayView& view) {
  const int rank = view.count == 0 ? 0 : std::max(static_cast<int>(view.rank), 1);
  if (rank > MAXDIM) throw UserError("an array of more than 6 dimensions is none of PostgreSQL");
  const std::size_t head = ARR_OVERHEAD_NONULLS(rank);
  const std::size_t size = head + static_cast<std::size_t>(view.count) * sizeof(double);
  auto* const array = static_cast<ArrayType*>(room_for(size));
  std::memset(array, 0, head);
  SET_VARSIZE(array, size);
  array->ndim = rank;
  array->elemtype = FLOAT8OID;
  for (int d = 0; d < rank; ++d) {
    const std::int64_t extent = view.rank == 0 ? 1 : view.extents[d];
    if (extent > most_extent) throw UserError("an array of more than 2^31 - 1 elements is none of PostgreSQL");
    ARR_DIMS(array)[d] = static_cast<int>(extent);
    ARR_LBOUND(array)[d] = 1;
  }
  return array;
}

ArrayType* to_array(const Tensor& tensor) {
  const ArrayView view = view_of(tensor);
  ArrayType* const array = new_array(view);
  auto* to = reinterpret_cast<double*>(ARR_DATA_PTR(array));
  with_stored_type(tensor.dtype(), [&]<class Stored>() {
    for (std::int64_t i = 0; i < view.count; ++i) *to++ = static_cast<double>(widen(tensor.load<Stored>(i)));
  });
  return array;
}

bytea* from_array(const ArrayType* array) {
  Shape shape;
  for (int d = 0; d < ARR_NDIM(array); ++d) shape.emplace_back(ARR_DIMS(array)[d]);
  if (shape.empty()) shape.emplace_back(0);  // '{}'
  Tensor tensor(DType::f64, std::move(shape));
  if (tensor.byte_count() != 0)
    std::memcpy(tensor.mutable_data(), ARR_DATA_PTR(array), static_cast<std::size_t>(tensor.byte_count()));
  return bytea_of(tensor);
}

Datum array_of_bytes(FunctionCallInfo fcinfo) {
  const bytea* const bytes = PG_GETARG_BYTEA_PP(0);
  ArrayType* array = nullptr;
  guarded([&] { array = to_array(array_of(bytes_value(bytes), "einrel_to_array")); });
  PG_RETURN_ARRAYTYPE_P(array);
}

Datum bytes_of_array(FunctionCallInfo fcinfo) {
  const ArrayType* const array = PG_GETARG_ARRAYTYPE_P(0);
  if (array_contains_nulls(const_cast<ArrayType*>(array)))
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("an array of Einrel has no NULL")));
  bytea* result = nullptr;
  guarded([&] { result = from_array(array); });
  PG_RETURN_BYTEA_P(result);
}

}  // namespace

extern "C" {
EINREL_SQL_FUNCTION(einrel_elements, elements)
EINREL_SQL_FUNCTION(einrel_to_array, array_of_bytes)
EINREL_SQL_FUNCTION(einrel_from_array, bytes_of_array)
}

}  // namespace einrel::sql
