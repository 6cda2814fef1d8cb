// SPDX-License-Identifier: BSD-3-Clause
// An object that a program opens and closes: one class of ours for each of libfabric's C structures, which is
// its base. One way of opening it, and one table of the calls that all of them have.
#pragma once

#include "fabric/provider.hpp"

#include <atomic>
#include <memory>

namespace parc::fabric {

template <class OfLibfabric> struct Object : OfLibfabric {
  using Structure = OfLibfabric;
  std::atomic<unsigned> users = 0; // objects that were opened on it, are bound to it or have it in them

  // What a class has of its own hides these. False: it cannot be closed.
  [[nodiscard]] bool let_go() const { return users.load() == 0; }
  int bind(struct fid*, std::uint64_t) { return -FI_ENOSYS; }
  int control(int, void*) { return -FI_ENOSYS; }
};

// One that was opened on another, which cannot be closed before it.
template <class OfLibfabric, class Parent> struct Child : Object<OfLibfabric> {
  explicit Child(Parent& opened_on) : parent(opened_on) { ++parent.users; }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { --parent.users; }
  Parent& parent;
};

template <class Class> Class& object_of(typename Class::Structure* base) {
  return static_cast<Class&>(*base);
}
template <class Class> Class& object_of(fid* base) { // a fid is the first member of each structure
  return object_of<Class>(reinterpret_cast<typename Class::Structure*>(base));
}

template <class Class> inline fi_ops object_calls{
    .size = sizeof(fi_ops),
    .close =
        [](fid* of) {
          auto& object = object_of<Class>(of);
          if (!object.let_go()) return -FI_EBUSY;
          delete &object;
          return 0;
        },
    .bind = [](fid* of, fid* other, std::uint64_t flags) { return object_of<Class>(of).bind(other, flags); },
    .control = [](fid* of, int command,
                  void* answer) { return object_of<Class>(of).control(command, answer); },
    .ops_open = [](fid*, const char*, std::uint64_t, void**, void*) { return -FI_ENOSYS; },
    .tostr = nullptr,
    .ops_set = nullptr};

// Makes a Class of `arguments`; complete(object) gives it the calls that it has besides, and what can fail
// with a negative FI_E*.
template <class Class, class Complete, class... Arguments>
int open_object(std::size_t kind, void* context, typename Class::Structure** object, const Complete& complete,
                Arguments&... arguments) {
  return guarded([&] {
    auto made = std::make_unique<Class>(arguments...);
    made->fid = {.fclass = kind, .context = context, .ops = &object_calls<Class>};
    if (const int code = complete(*made); code != 0) return code;
    *object = made.release();
    return 0;
  });
}

} // namespace parc::fabric
