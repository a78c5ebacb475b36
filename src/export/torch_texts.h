#pragma once

/// The parts of an exported module for PyTorch that are the same for every program.
namespace einrel {

extern const char* const torch_imports;
extern const char* const torch_mesh;         ///< class Mesh: devices in a grid, and their lines
extern const char* const torch_collectives;  ///< along a line
extern const char* const torch_frame;        ///< make_mesh, place, whole, step, initial_states
extern const char* const torch_main;         ///< what runs where the module is the program

// Functions that formulas call.
extern const char* const torch_extreme;
extern const char* const torch_read;
extern const char* const torch_rounding;
extern const char* const torch_to_integer;
extern const char* const torch_whole_power;
extern const char* const torch_philox;
extern const char* const torch_uniform;
extern const char* const torch_normal;

}  // namespace einrel
