// Catches: a missing library or function that ends the program or is not named, a switch in the environment
// that is not heeded.
#include "base/shared_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace thrice {
namespace {

TEST(SharedLibrary, FindsFunctionsAndNamesTheFirstThatIsMissing) {
  SharedLibrary library("libm.so.6");
  ASSERT_TRUE(library);
  double (*cosine)(double) = nullptr;
  EXPECT_TRUE(library.find("cos", cosine));
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(library.missing(), "");
  EXPECT_FALSE(library.find("cosine_of_tomorrow", cosine));
  EXPECT_EQ(cosine, nullptr);
  EXPECT_FALSE(library.find("another", cosine));
  EXPECT_EQ(library.missing(), "cosine_of_tomorrow");
}

TEST(SharedLibrary, OneThatIsNotThereIsEmpty) {
  for (SharedLibrary library : {SharedLibrary(), SharedLibrary("/nowhere/libnothing.so.1")}) {
    EXPECT_FALSE(library);
    void (*function)() = nullptr;
    EXPECT_FALSE(library.find("anything", function));
  }
}

TEST(SharedLibrary, TheEnvironmentNamesOneFileOrNone) {
  const std::vector<std::string> usual{"liba.so", "libb.so"};
  ::unsetenv("THRICE_TEST_LIBRARY");
  LibraryPaths found = library_paths("THRICE_TEST_LIBRARY", usual, "liba not found");
  EXPECT_EQ(found.paths, usual);
  EXPECT_EQ(found.reason, "liba not found, or set THRICE_TEST_LIBRARY to the library");
  ::setenv("THRICE_TEST_LIBRARY", "/opt/liba.so", 1);
  found = library_paths("THRICE_TEST_LIBRARY", usual, "liba not found");
  EXPECT_EQ(found.paths, std::vector<std::string>{"/opt/liba.so"});
  EXPECT_NE(found.reason.find("'/opt/liba.so'"), std::string::npos);
  ::setenv("THRICE_TEST_LIBRARY", "off", 1);
  found = library_paths("THRICE_TEST_LIBRARY", usual, "liba not found");
  EXPECT_TRUE(found.paths.empty());
  EXPECT_NE(found.reason.find("switched off"), std::string::npos);
  ::unsetenv("THRICE_TEST_LIBRARY");
}

}  // namespace
}  // namespace thrice
