// SPDX-License-Identifier: BSD-3-Clause
#include "client/base/in_library.hpp"

namespace parc::client {

thread_local int InLibrary::depth_ = 0, InLibrary::brief_ = 0,
                 InLibrary::cancel_state_ = PTHREAD_CANCEL_ENABLE, InLibrary::called_back_ = 0;

} // namespace parc::client
