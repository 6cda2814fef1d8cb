// SPDX-License-Identifier: BSD-3-Clause
// What a model has between two sides, as a part of its state: places for tokens, of which those of
// Kind::nothing are free and lie behind the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace parc::model {

// False: it is full.
template <class Token, std::size_t room> bool push(Token (&queue)[room], Token token) {
  for (Token& place : queue)
    if (place.kind == decltype(place.kind)::nothing) return place = token, true;
  return false;
}

template <class Token, std::size_t room> Token pop(Token (&queue)[room]) {
  const Token first = queue[0];
  std::copy(std::begin(queue) + 1, std::end(queue), std::begin(queue));
  queue[room - 1] = {};
  return first;
}

} // namespace parc::model
