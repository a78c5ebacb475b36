-- What scripts of Einrel call (src/sql/functions/functions.h). Arrays are bytea: src/sql/functions/array_bytes.h.
\echo Use "CREATE EXTENSION einrel" to load this file. \quit

-- The schema is the extension's own (einrel.control): who may use it may call the functions, and nobody may add any.
GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;

CREATE FUNCTION einrel_kernel(kernel text, VARIADIC arguments "any") RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_kernel' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10000;
CREATE FUNCTION einrel_positions(begin bigint, extent bigint) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_positions' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_zeros(dtype text) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_zeros' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_zeros(dtype text, VARIADIC extents "any") RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_zeros' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_tile(chunk bytea, dimension bigint, size bigint, number bigint) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_tile' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_box(chunk bytea) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_box' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_box(chunk bytea, VARIADIC boxes "any") RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_box' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_extent(chunk bytea, dimension bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'einrel_extent' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;

-- The elements of an array as a table; the query says its columns: einrel_elements(x) AS e(value real, d0 bigint).
CREATE FUNCTION einrel_elements(chunk bytea) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'einrel_elements' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 STRICT ROWS 100000;

-- Arrays of PostgreSQL.
CREATE FUNCTION einrel_to_array(chunk bytea) RETURNS double precision[]
  AS 'MODULE_PATHNAME', 'einrel_to_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 STRICT;
CREATE FUNCTION einrel_from_array(elements double precision[]) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_from_array' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 STRICT;

-- Aggregates.
CREATE FUNCTION einrel_receive(bytes bytea, state internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_receive' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 STRICT;
CREATE FUNCTION einrel_gather_add(internal, text, text, VARIADIC "any") RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_gather_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_gather_finish(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_gather_finish' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE AGGREGATE einrel_gather(text, text, VARIADIC "any") (
  SFUNC = einrel_gather_add, STYPE = internal, FINALFUNC = einrel_gather_finish, PARALLEL = SAFE);

CREATE FUNCTION einrel_whole_add(internal, text, text, VARIADIC "any") RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_whole_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_whole_finish(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_whole_finish' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE AGGREGATE einrel_whole(text, text, VARIADIC "any") (
  SFUNC = einrel_whole_add, STYPE = internal, FINALFUNC = einrel_whole_finish, PARALLEL = SAFE);

CREATE FUNCTION einrel_fold_add(internal, text, bytea) RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_fold_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_fold_add(internal, text, bytea, VARIADIC "any") RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_fold_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_fold_finish(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_fold_finish' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_fold_send(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_fold_send' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 STRICT;
CREATE FUNCTION einrel_fold_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_fold_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE AGGREGATE einrel_fold(text, bytea) (
  SFUNC = einrel_fold_add, STYPE = internal, FINALFUNC = einrel_fold_finish,
  COMBINEFUNC = einrel_fold_combine, SERIALFUNC = einrel_fold_send, DESERIALFUNC = einrel_receive, PARALLEL = SAFE);
CREATE AGGREGATE einrel_fold(text, bytea, VARIADIC "any") (
  SFUNC = einrel_fold_add, STYPE = internal, FINALFUNC = einrel_fold_finish,
  COMBINEFUNC = einrel_fold_combine, SERIALFUNC = einrel_fold_send, DESERIALFUNC = einrel_receive, PARALLEL = SAFE);

CREATE FUNCTION einrel_concat_add(internal, bigint, bigint, bytea) RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_concat_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_concat_finish(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_concat_finish' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_concat_send(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_concat_send' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 STRICT;
CREATE FUNCTION einrel_concat_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_concat_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE AGGREGATE einrel_concat(bigint, bigint, bytea) (
  SFUNC = einrel_concat_add, STYPE = internal, FINALFUNC = einrel_concat_finish,
  COMBINEFUNC = einrel_concat_combine, SERIALFUNC = einrel_concat_send, DESERIALFUNC = einrel_receive, PARALLEL = SAFE);

CREATE FUNCTION einrel_place_add(internal, bytea) RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_place_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_place_add(internal, bytea, VARIADIC "any") RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_place_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_place_finish(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_place_finish' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE FUNCTION einrel_place_send(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'einrel_place_send' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 STRICT;
CREATE FUNCTION einrel_place_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'einrel_place_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
CREATE AGGREGATE einrel_place(bytea) (
  SFUNC = einrel_place_add, STYPE = internal, FINALFUNC = einrel_place_finish,
  COMBINEFUNC = einrel_place_combine, SERIALFUNC = einrel_place_send, DESERIALFUNC = einrel_receive, PARALLEL = SAFE);
CREATE AGGREGATE einrel_place(bytea, VARIADIC "any") (
  SFUNC = einrel_place_add, STYPE = internal, FINALFUNC = einrel_place_finish,
  COMBINEFUNC = einrel_place_combine, SERIALFUNC = einrel_place_send, DESERIALFUNC = einrel_receive, PARALLEL = SAFE);
