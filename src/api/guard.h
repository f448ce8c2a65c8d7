// The one place where exceptions become statuses: no exception leaves the C interface.
#pragma once
#include <thrice/status.h>
#include <thrice/thrice.h>

#include <cstring>
#include <new>
#include <string>

namespace thrice::api {

std::string& last_message();  // of the calling thread

// Text that thrice_free frees.
inline char* copy_text(const std::string& text) {
  char* copy = strdup(text.c_str());
  if (!copy) throw std::bad_alloc();
  return copy;
}

inline thrice_status refuse(Code code, const char* message) {
  try {
    last_message() = message;
  } catch (...) {  // no memory for the words: the status is still right
  }
  return static_cast<thrice_status>(code);
}

template <class Body>
thrice_status guarded(Body&& body) {
  try {
    body();
    return THRICE_OK;
  } catch (const Error& e) {
    return refuse(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return refuse(Code::kOutOfMemory, "out of host memory");
  } catch (const std::exception& e) {
    return refuse(Code::kInternal, e.what());
  } catch (...) {
    return refuse(Code::kInternal, "an exception of an unknown type");
  }
}

}  // namespace thrice::api
