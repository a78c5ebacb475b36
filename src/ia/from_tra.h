#pragma once

#include "base/ids.h"
#include "ia/ia_program.h"

namespace einrel {

/// Throws UserError unless it is 1 to most_sites.
void check_sites(std::int64_t sites);

/// An input and where it lies: as `layout` says, else spread by its first position that is cut. Throws UserError for a
/// layout that does not fit its keys.
PlacedRelation placed(const StoredRelation& stored, const std::optional<InputLayout>& layout, std::int64_t sites);

/// The first compilation (TRA paper, Table 1): Aggregate -> LocalAggregate(Shuf(groupByKeys)); Join ->
/// LocalJoin(Bcast(L), R); ReKey, Transform, Tile -> LocalMap; Filter -> LocalFilter; Concat -> LocalAggregate(Shuf); a
/// Repartition as its definition. Inputs lie as `layouts` says, see `placed`. Throws TraError as infer(TraExpr) does,
/// UserError for a layout that does not fit its input.
IaProgram compile_by_table_1(const TraExpr& program, std::int64_t sites, const InputLayouts& layouts = {});

}  // namespace einrel
