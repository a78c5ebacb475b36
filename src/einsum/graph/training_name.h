#pragma once

namespace einrel {

/// The scalar that is 1 in the steps of a training and 0 everywhere else, in a program that declares it.
inline constexpr const char* training_name = "training";

}  // namespace einrel
