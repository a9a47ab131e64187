// The state of a row: seven numbers from which all its readings follow, and which merge. Plain
// data, the same for every unit; merge_states.h has the arithmetic.
#pragma once

namespace softscope {

// With d = (x − m)/T, and Σ' over the entries below the maximum:
struct State {
  double count;  // of the entries that are not −inf
  double c;      // how many are at the maximum
  double m;      // the maximum
  double r;      // Σ' exp(d)
  double u;      // Σ' exp(d)·d
  double t;      // Σ' exp(d)·d²
  double w;      // Σ' exp(2d)
};

// A state whose r is a double-double, and which knows how coarse that may be. Where only r was
// wanted, c may be 0 and r include what is at the maximum.
struct PreciseState : State {
  double r_low;
  double coarse;  // roundoffs in each term of r; 0 if every term was taken carefully
};

}  // namespace softscope
