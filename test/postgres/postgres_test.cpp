#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>

#include "base/error.h"
#include "einsum/reference.h"
#include "lang/corpus.h"
#include "lang/promises.h"
#include "postgres/server.h"
#include "run/choose_formats.h"
#include "run/compile.h"
#include "sql/direct_transformations.h"
#include "sql/papers_formats.h"
#include "sql/plain_documents.h"
#include "sql/plain_programs.h"
#include "sql/program/run.h"
#include "sql/steps_in_database.h"

namespace einrel::test {
namespace {

namespace fs = std::filesystem;

/// One connection for all tests: a program that fails must leave it as it was.
class Postgres : public testing::Environment {
 public:
  explicit Postgres(std::vector<std::string> command) : command_(std::move(command)) {}
  void SetUp() override {
    server_ = std::make_unique<PostgresServer>(command_);
    connect();
  }
  void TearDown() override {
    EXPECT_EQ(database_
                  ->first_row("SELECT count(*) FROM pg_class WHERE relnamespace >= 16384 AND "
                              "relnamespace <> (SELECT oid FROM pg_namespace WHERE nspname = 'pg_toast')")
                  .at(0),
              0)
        << "tables are left";
    database_.reset();
    server_.reset();
  }
  sql::Database& database() { return *database_; }
  /// Does something while nobody is connected.
  void while_alone(const std::function<void(const std::string& url)>& action) {
    database_.reset();
    action(server_->url());
    connect();
  }

 private:
  void connect() {
    database_ = sql::open_database(server_->url());
    database_->execute("SET search_path = public, pg_temp");  // for tables that tests make and scripts read
  }

  std::vector<std::string> command_;
  std::unique_ptr<PostgresServer> server_;
  std::unique_ptr<sql::Database> database_;
};

Postgres*& postgres() {
  static Postgres* environment = nullptr;  // GoogleTest's
  return environment;
}

Outputs in_reference(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  const std::vector<Tensor> values = evaluate_reference(graph, inputs, scalars);
  Outputs outputs;
  for (std::size_t i = 0; i < values.size(); ++i) outputs.insert({graph[graph.outputs[i]].name, values[i]});
  return outputs;
}

/// In chunks of at most `extent` along each dimension; 0: as they are chosen.
template <std::int64_t extent>
Outputs in_postgres(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  EinGraph ordered = compile("document", graph).graph;
  ordered.steps.feedback = 0;  // the next values of states are compared, too
  Formats formats;
  if (extent != 0) formats.most_extent = extent;
  sql::DatabaseRun run{.graph = ordered,
                       .scalars = scalars,
                       .inputs = {},
                       .outputs = {},
                       .chunked = chunked_graph(ordered, choose_formats(ordered, formats))};
  for (const auto& [name, tensor] : inputs) run.inputs.emplace(name, tensor);
  return sql::run(postgres()->database(), run).tensors;
}

/// The statements of a program in chunks of 3, each vertex of several chunks in parts that processes share, however
/// small it is; and its inputs in the tables that these read.
sql::ChunkScript shared_script(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  sql::Database& database = postgres()->database();
  std::optional<sql::Sharing> sharing = database.share();
  if (!sharing) throw std::runtime_error("the server has no processes to share work");
  sharing->most_operations_alone = 0;
  Formats formats;
  formats.most_extent = 3;
  const sql::ChunkedGraph chunked = chunked_graph(graph, choose_formats(graph, formats));
  sql::TableNames names(database.names(), sql::most_name_bytes(database.dialect()));
  std::map<std::string, std::string> stored;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!is_input(vertex)) continue;
    std::vector<DimensionCut> cuts;
    for (const std::int64_t parts : chunked.cuts.parts[v]) cuts.push_back({parts, 1});
    std::string& table = stored[vertex.name];
    table = sql::chunk_table(database.dialect(), sharing, names.fresh(vertex.name));
    database.store_chunks(table, cut_tensor(inputs.at(vertex.name), cut_of_all(cuts)), cuts.size());
  }
  return sql::vertex_script(graph, chunked, scalars, stored, names, database.kernels(), database.dialect(), sharing);
}

/// In a transaction that is undone.
Outputs shared_in_postgres(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  const EinGraph ordered = compile("document", graph).graph;
  sql::Database& database = postgres()->database();
  sql::Transaction transaction(database, sql::Access::reads);
  database.use_functions();
  const sql::ChunkScript script = shared_script(ordered, inputs, scalars);
  for (const sql::Statement& statement : script.statements) database.execute(statement.text);
  Outputs outputs;
  for (const VertexId id : ordered.outputs) {
    const Vertex& vertex = ordered[id];
    const std::size_t arity = script.types.at(vertex.name).key_arity;
    outputs.emplace(vertex.name, assemble(database.load_chunks(script.tables.at(vertex.name), arity), vertex.dtype,
                                          vertex.bound.size()));
  }
  return outputs;
}

/// All steps of a program with state in one run.
Configuration steps_in_postgres(const std::string& name, std::int64_t extent, FirstStates first_states) {
  return of_states(name, [=](const Runnable& runnable) {
    return steps_in_database(postgres()->database(), runnable, extent, first_states);
  });
}

const std::vector<Configuration>& configurations() {
  static const std::vector<Configuration> all{
      {"reference", in_reference},
      {"PostgreSQL, formats chosen", in_postgres<0>},
      {"PostgreSQL, in chunks of 3", in_postgres<3>},
      {"PostgreSQL, in chunks of 3 by several processes", shared_in_postgres},
      steps_in_postgres("PostgreSQL, all steps, formats chosen", 0, FirstStates::computed),
      steps_in_postgres("PostgreSQL, all steps, in chunks of 3", 3, FirstStates::computed),
      steps_in_postgres("PostgreSQL, all steps from states that are given", 3, FirstStates::given)};
  return all;
}

class PostgresDocument : public testing::TestWithParam<fs::path> {};

TEST_P(PostgresDocument, KeepsItsPromises) {
  const std::vector<std::string> problems = broken_promises(read_document(read_source(GetParam())), configurations());
  EXPECT_TRUE(problems.empty()) << fmt::format("{}", fmt::join(problems, "\n"));
}

class PostgresExample : public testing::TestWithParam<fs::path> {};

TEST_P(PostgresExample, AgreesWithTheReference) {
  Document document{read_source(GetParam()), {}, 1, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const auto problems = broken_run(document, small_extents(GetParam()), false, configurations());
  EXPECT_TRUE(problems.empty()) << fmt::format("{}", fmt::join(problems, "\n"));
}

class PostgresFormats : public testing::TestWithParam<Computation> {};

TEST_P(PostgresFormats, AreComputedRight) { expect_right_in_every_format(postgres()->database(), GetParam()); }

TEST(PostgresTransformations, AreOneQueryEach) {
  expect_direct_transformations_to_be_one_query(postgres()->database());
}

TEST(PostgresTransformations, OfAnyFormatToAnyOtherAreOneQuery) {
  expect_every_transformation_to_be_one_query(postgres()->database());
}

TEST(PostgresProcesses, ShareVerticesOfSeveralChunks) {
  const EinGraph graph = program("P[i,k] = sum[j] X[i,j] * Y[j,k]");
  std::mt19937 random(5);
  const TensorBindings inputs = random_integers(graph, random);
  sql::Database& database = postgres()->database();
  sql::Transaction transaction(database, sql::Access::reads);
  database.use_functions();
  std::string texts;
  for (const sql::Statement& statement : shared_script(graph, inputs, {}).statements) {
    database.execute(statement.text);
    texts += statement.text;
  }
  EXPECT_NE(texts.find("UNION ALL"), std::string::npos) << texts;
}

/// Documents that plain SQL cannot compute here, or not as the language defines it, and what of them it is.
const PlainExceptions& exceptions() {
  static const PlainExceptions all{
      {"13_functions", {"no erf"}},
      {"14_accurate_functions", {"no erf"}},
      {"30_casts", {"no floats that narrow"}},
      {"34_integers_wrap", {"powers of whole numbers"}},
      {"37_integer_products", {"bigint out of range"}},  // whole numbers do not wrap
      {"38_numbers_alone", {"powers of whole numbers"}},
      {"39_narrow_casts", {"no floats that narrow"}},
      {"3a_statements_round_once", {"no floats that narrow"}},
      {"90_inverse", {"no linear algebra"}},
      {"90_qr", {"no linear algebra"}},
      {"91_random_numbers", {"random numbers"}},
      {"92_gathers", {"does not check an index"}},
      {"94_complex", {"does not check an index"}},
      {"96_gradients_at_kinks", {"division by zero"}},
      {"97_gradients_of_reads", {"no linear algebra"}},
      {"98_gradients_of_gathers", {"does not check an index"}},
      {"9a_state_random", {"random numbers"}},
      {"embedding", {"random numbers"}},
      {"ridge_regression", {"no linear algebra"}},
      {"train_dropout", {"random numbers"}},
  };
  return all;
}

Outputs in_plain_sql(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  const EinGraph ordered = compile("document", graph).graph;
  sql::DatabaseRun run{.graph = ordered, .scalars = scalars, .inputs = {}, .outputs = {}, .chunked = {}};
  run.is_element = true;
  for (const auto& [name, tensor] : inputs) run.inputs.emplace(name, tensor);
  return sql::run(postgres()->database(), run).tensors;
}

class PostgresPlainSql : public testing::TestWithParam<fs::path> {};

TEST_P(PostgresPlainSql, ComputesWhatTheReferenceDoesOrSaysWhyNot) {
  expect_in_plain_sql(GetParam(), exceptions(), in_plain_sql);
}

TEST(PostgresPlainValues, ReductionsAreThoseOfTheLanguage) {
  const std::vector<std::array<double, 3>> rows = special_rows();
  const std::string text = reductions(rows.size(), 3);
  const NamedTensors inputs{{"X", rows_tensor(rows)}};
  expect_agreement(in_elements(postgres()->database(), text, inputs), by_reference(text, inputs), 1);
}

TEST(PostgresPlainValues, ExponentialsMayLeaveTheRangeOfDoubles) { expect_exponentials(postgres()->database()); }

TEST(PostgresPlainValues, PrintedScriptsComputeWithTheTypesOfTheLanguage) {
  for (const char* const type : {"integer", "bigint", "numeric", "real", "double precision"}) {
    const sql::Transaction undone(postgres()->database(), sql::Access::writes);
    expect_types_of_the_language(postgres()->database(), type, "integer", "boolean");
  }
  const sql::Transaction undone(postgres()->database(), sql::Access::writes);
  expect_types_of_the_language(postgres()->database(), "smallint", "bigint", "integer");
}

TEST(PostgresPlainValues, TensorsMayHaveAnyNameThatScriptsUse) {
  for (const Role role : {Role::input, Role::between, Role::output})
    expect_names_to_be_free(postgres()->database(), words_of_scripts(), role);
}

using Handler = void (*)(int);

void handler_of_the_program(int /*signal*/) {}

Handler handler_of(int signal) {
  struct sigaction found {};
  sigaction(signal, nullptr, &found);
  return found.sa_handler;
}

/// As Python's at Ctrl-C: a library may take a signal only where the process has nothing of its own.
TEST(PostgresSignals, WhatTheProcessDoesAtThemStays) {
  postgres()->while_alone([](const std::string& url) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      const Handler kept = handler_of(signal);
      for (const Handler before : std::array<Handler, 3>{SIG_DFL, SIG_IGN, handler_of_the_program}) {
        std::signal(signal, before);
        {
          const std::unique_ptr<sql::Database> first = sql::open_database(url);
          EXPECT_EQ(handler_of(signal) == before, before != SIG_DFL);
          sql::open_database(url);  // and ends
          EXPECT_EQ(handler_of(signal) == before, before != SIG_DFL);
        }
        EXPECT_EQ(handler_of(signal), before);
      }
      std::signal(signal, SIG_DFL);
      {
        const std::unique_ptr<sql::Database> connected = sql::open_database(url);
        std::signal(signal, handler_of_the_program);
      }
      EXPECT_EQ(handler_of(signal), handler_of_the_program);
      std::signal(signal, kept);
    }
  });
}

/// While the server sleeps for this connection, which another one sees.
TEST(PostgresStatements, EndWhenInterrupted) {
  postgres()->while_alone([](const std::string& url) {
    const std::unique_ptr<sql::Database> database = sql::open_database(url);
    const std::jthread asking([&](const std::stop_token& has_ended) {
      const std::unique_ptr<sql::Database> other = sql::open_database(url);
      const char* const sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
      while (!has_ended.stop_requested() && other->first_row(sleeping).at(0) == 0) continue;
      database->interrupt();
    });
    try {
      const sql::Transaction transaction(*database, sql::Access::writes);
      database->execute("CREATE TABLE public.left_behind (i int)");
      database->execute("SELECT pg_sleep(3600)");
      ADD_FAILURE() << "it slept for an hour";
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "the run was stopped");
    }
  });
}

/// The server forgets a request that comes while it does nothing: what was asked to end asks for nothing more.
TEST(PostgresStatements, DoNotBeginAfterAnInterrupt) {
  postgres()->while_alone([](const std::string& url) {
    const std::unique_ptr<sql::Database> database = sql::open_database(url);
    {
      const sql::Transaction transaction(*database, sql::Access::writes);
      database->execute("CREATE TABLE public.left_behind (i int)");
      database->interrupt();
      EXPECT_THROW(database->execute("SELECT 1"), RunError);
      EXPECT_THROW(database->first_row("SELECT 1"), RunError);
      EXPECT_THROW(database->read_rows("SELECT 1", [](const std::vector<sql::Cell>&) {}), RunError);
      EXPECT_THROW(database->store_chunks("chunks", {}, 0), RunError);
    }
    const std::unique_ptr<sql::Database> other = sql::open_database(url);
    EXPECT_EQ(other->find_table("left_behind"), std::nullopt);
  });
}

/// Rows that nobody has read yet, and some that nobody has sent.
TEST(PostgresStatements, EndBetweenRows) {
  postgres()->while_alone([](const std::string& url) {
    const std::unique_ptr<sql::Database> reading = sql::open_database(url);
    std::size_t rows = 0;
    const auto stop_soon = [&](const std::vector<sql::Cell>&) {
      if (++rows == 5) reading->interrupt();
    };
    {
      const sql::Transaction transaction(*reading, sql::Access::reads);
      EXPECT_THROW(reading->read_rows("SELECT generate_series(1, 100000000)", stop_soon), RunError);
    }
    EXPECT_LT(rows, 100'000U);
  });
}

/// Alone, they are in a transaction of their own, which ends with them.
TEST(PostgresStatements, LeaveNoTransactionOpenWhenTheyFail) {
  sql::Database& database = postgres()->database();
  EXPECT_THROW(database.first_row("SELECT 1 / 0"), UserError);
  EXPECT_EQ(database.first_row("SELECT 1").at(0), 1);
  {
    const sql::Transaction transaction(database, sql::Access::reads);
    EXPECT_THROW(database.columns_of("SELECT nothing", sql::Author::user), UserError);
  }
  EXPECT_EQ(database.first_row("SELECT 1").at(0), 1);
  database.execute("SET default_transaction_read_only = on");
  EXPECT_THROW((sql::Transaction{database, sql::Access::writes}), UserError);
  database.execute("SET default_transaction_read_only = off");
  EXPECT_EQ(database.first_row("SELECT CAST(pg_current_xact_id_if_assigned() IS NULL AS integer)").at(0), 1);
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

INSTANTIATE_TEST_SUITE_P(All, PostgresDocument, testing::ValuesIn(ein_files(EINREL_LANG_DOCUMENTS)), test_name);
INSTANTIATE_TEST_SUITE_P(All, PostgresFormats, testing::ValuesIn(computations()), name_of_computation);
INSTANTIATE_TEST_SUITE_P(All, PostgresPlainSql, testing::ValuesIn(documents_and_examples()), test_name);
INSTANTIATE_TEST_SUITE_P(All, PostgresExample, testing::ValuesIn(examples()), test_name);

}  // namespace

void use_server(std::vector<std::string> command) {
  postgres() = new Postgres(std::move(command));
  testing::AddGlobalTestEnvironment(postgres());
}

}  // namespace einrel::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  einrel::test::use_server({argv + 1, argv + argc});
  return RUN_ALL_TESTS();
}
