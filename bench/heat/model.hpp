// SPDX-License-Identifier: BSD-3-Clause
// The paper's model of hiding (section 2.1): what a step takes at best, and how much faster that is than
// calculating and communicating one after the other.
#pragma once

#include <algorithm>

namespace parc::heat::demo {

// Equation (1): (t_calc + t_com) / max(t_calc, t_com). At most 2, where both take the same time.
constexpr double model_gain(double t_calc, double t_com) {
  const double longer = std::max(t_calc, t_com);
  return longer > 0 ? (t_calc + std::max(t_com, 0.0)) / longer : 1;
}

// The same where t_com is what a step of the reference took besides its calculation: the gain of a program
// that hides all it can of that.
constexpr double ideal_gain(double t_calc, double reference_step) {
  return model_gain(t_calc, reference_step - t_calc);
}

} // namespace parc::heat::demo
