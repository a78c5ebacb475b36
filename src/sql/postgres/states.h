#pragma once

namespace einrel::sql {

// How errors of Einrel's functions come from the server: SQLSTATEs of a class that nobody else has.
constexpr const char* user_error_state = "ER001";
constexpr const char* run_error_state = "ER002";
constexpr const char* bug_state = "ER003";

}  // namespace einrel::sql
