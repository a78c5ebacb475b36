/// @file
/// The C++ interface of Einrel: include this one.
///
/// A program over tensors is written in the language (docs/language.md) or as C++ expressions, checked, explained and
/// run:
///
///     #include <einrel/einrel.h>
///
///     const einrel::Program program = einrel::Program::parse("input A[i,j], B[j,k]\n"
///                                                            "C[i,k] = sum[j] A[i,j] * B[j,k]\n");
///     const auto a = einrel::Tensor::load("a.npy");
///     const einrel::Tensor b({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
///     const einrel::RunResult result = program.run({{"A", a}, {"B", b}});
///     for (const float value : result["C"].values<float>()) std::cout << value << '\n';
///
/// Everything throws einrel::UserError, einrel::RunError or einrel::Bug, and nothing else (error.h).
///
/// @mainpage
/// Include einrel/einrel.h, an example of which is there. What one meets, all in einrel and described in einrel::api:
/// - Program (program.h): checked, explained and run
/// - Tensor (tensor.h): what goes in and comes out; Input (input.h): what is made piece by piece
/// - outlive_cut_files, WholeFiles (mapped_files.h): what to do about files that others cut short
/// - Expression, Variable, Label (expression.h): programs written as C++ expressions
/// - Ranks (ranks.h): processes that mpirun started together; planners, calibrate (planning.h)
/// - train (train.h): a program with state, trained on samples
/// - run_in_database, to_sql, explain_sql, calibrate_database (database.h): a program where data are, or as SQL
/// - UserError, NoGradient, RunError, Bug (error.h): what is thrown
///
/// How to install and link it, and more of it in one piece: docs/cpp.md of the source.
#pragma once

#include <einrel/database.h>
#include <einrel/error.h>
#include <einrel/expression.h>
#include <einrel/input.h>
#include <einrel/mapped_files.h>
#include <einrel/planning.h>
#include <einrel/program.h>
#include <einrel/ranks.h>
#include <einrel/tensor.h>
#include <einrel/train.h>

/// All names of the interface: those of einrel::api, where they are described.
namespace einrel {

using api::Bug;
using api::Error;
using api::NoGradient;
using api::RunError;
using api::UserError;

using api::BFloat16;
using api::DType;
using api::dtype_of;
using api::Element;
using api::Elements;
using api::Float16;
using api::name_of;
using api::Shape;
using api::size_of;
using api::Tensor;
using api::to_bfloat16;
using api::to_float;
using api::to_float16;

using api::Input;
using api::InputMaker;
using api::Inputs;

using api::is_mapped;
using api::outlive_cut_files;
using api::WholeFiles;

using api::calibrate;
using api::calibrate_database;
using api::PlannerInfo;
using api::planners;

using api::Cost;
using api::Dims;
using api::einsum;
using api::EinsumOperand;
using api::EinsumOptions;
using api::ExplainOptions;
using api::LabelNames;
using api::peak_memory;
using api::Placements;
using api::Program;
using api::Ranks;
using api::RunOptions;
using api::RunReport;
using api::RunResult;
using api::State;
using api::Stepper;
using api::TensorInfo;

using api::Epoch;
using api::Samples;
using api::train;
using api::TrainOptions;
using api::TrainResult;

using api::DatabaseAnalysis;
using api::DatabaseInput;
using api::DatabaseOptions;
using api::DatabaseResult;
using api::explain_sql;
using api::run_in_database;
using api::SqlOptions;
using api::to_sql;

using api::adam;
using api::adamw;
using api::define;
using api::Expression;
using api::gradient;
using api::input;
using api::iteration;
using api::Label;
using api::LabelGroup;
using api::Labels;
using api::Minimize;
using api::momentum;
using api::nesterov;
using api::next;
using api::Optimiser;
using api::scalar;
using api::sgd;
using api::state;
using api::Steps;
using api::Variable;
using api::view;

using api::named_functions;
using api::named_reductions;
using api::NamedFunction;
using api::NamedReduction;
using api::pow;
using namespace api::functions;

}  // namespace einrel

/// The interface itself. Its headers keep to this namespace, and einrel.h brings its names into `einrel`.
namespace einrel::api {}
