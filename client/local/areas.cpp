// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/areas.hpp"

#include "parc/parc.h"

#include <sys/mman.h>

namespace parc::client {

namespace {

template <class Part> bool open_to(const Part& part, int access) {
  return mprotect(const_cast<Part*>(&part), sizeof part, access) == 0;
}

} // namespace

// The area of a letterbox, to be read.
Result<std::byte*> Areas::attach(const shm::LetterboxLocation& place) {
  const std::size_t number = place.number / shm::area_letterboxes;
  if (number >= most_areas)
    return error(PARC_EVERSION, "the kernel of this host speaks of letterbox {}", place.number);
  shm::Segment& area = areas_[number];
  if (!area) {
    PARC_TRY(attached, shm::Segment::attach(place.area, shm::area_bytes));
    if (mprotect(attached.data(), shm::area_bytes, PROT_READ) != 0)
      return system_error("cannot protect the letterboxes of others");
    area = std::move(attached);
  }
  return area.data();
}

Result<void> Areas::open(const shm::LetterboxLocation& own) {
  PARC_TRY(area, attach(own));
  own_number_ = own.number;
  own_ = reinterpret_cast<shm::Letterbox*>(area) + own.number % shm::area_letterboxes;
  if (!open_to(own_->all, PROT_READ | PROT_WRITE) || !open_to(own_->owner, PROT_READ | PROT_WRITE))
    return system_error("cannot open this program's letterbox");
  return success();
}

const shm::Letterbox* Areas::at(const shm::LetterboxLocation& place) {
  const auto area = attach(place);
  if (!area) return nullptr;
  return reinterpret_cast<const shm::Letterbox*>(area.value()) + place.number % shm::area_letterboxes;
}

bool Areas::open_owner_words(const shm::Letterbox& of) {
  return open_to(of.all, PROT_READ | PROT_WRITE);
}

} // namespace parc::client
