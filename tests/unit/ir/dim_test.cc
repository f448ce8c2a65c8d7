// Catches: a simplification of Dim that is wrong for some binding, forms that should agree but do not, and a
// broadcast or division that hides an illegal binding.
#include "ir/dim.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <functional>

#include "base/rng.h"

namespace thrice::ir {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");

int64_t floor_int(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? q - 1 : q;
}

// A random expression beside a plain function that computes it.
struct Expression {
  Dim dim;
  std::function<int64_t(int64_t, int64_t, int64_t)> value;
};
Expression random_expression(Rng& rng, int depth) {
  if (depth == 0 || rng.below(5) == 0) {
    switch (rng.below(4)) {
      case 0:
        return {n, [](int64_t a, int64_t, int64_t) { return a; }};
      case 1:
        return {m, [](int64_t, int64_t b, int64_t) { return b; }};
      case 2:
        return {k, [](int64_t, int64_t, int64_t c) { return c; }};
      default: {
        const int64_t c = static_cast<int64_t>(rng.below(11)) - 5;
        return {Dim(c), [c](int64_t, int64_t, int64_t) { return c; }};
      }
    }
  }
  const Expression x = random_expression(rng, depth - 1), y = random_expression(rng, depth - 1);
  const int64_t c = static_cast<int64_t>(rng.below(6)) + 1;
  const auto both = [&](const Dim& d, int64_t (*f)(int64_t, int64_t)) {
    return Expression{
        d, [x, y, f](int64_t p, int64_t q, int64_t r) { return f(x.value(p, q, r), y.value(p, q, r)); }};
  };
  switch (rng.below(7)) {
    case 0:
      return both(x.dim + y.dim, [](int64_t p, int64_t q) { return p + q; });
    case 1:
      return both(x.dim - y.dim, [](int64_t p, int64_t q) { return p - q; });
    case 2:
      return both(x.dim * y.dim, [](int64_t p, int64_t q) { return p * q; });
    case 3:
      return both(dim_max(x.dim, y.dim), [](int64_t p, int64_t q) { return std::max(p, q); });
    case 4:
      return both(dim_min(x.dim, y.dim), [](int64_t p, int64_t q) { return std::min(p, q); });
    case 5:
      return {floor_div(x.dim, c),
              [x, c](int64_t p, int64_t q, int64_t r) { return floor_int(x.value(p, q, r), c); }};
    default:
      return {modulo(x.dim, c), [x, c](int64_t p, int64_t q, int64_t r) {
                const int64_t v = x.value(p, q, r);
                return v - c * floor_int(v, c);
              }};
  }
}

TEST(Dim, RandomExpressionsEvaluateAsPlainIntegers) {
  Rng rng(7);
  int64_t compared = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Expression e = random_expression(rng, 4);
    for (int64_t a = 0; a < 4; ++a)
      for (int64_t b = 0; b < 4; ++b)
        for (int64_t c = 0; c < 3; ++c) {
          const Bindings all{{"n", a}, {"m", b}, {"k", c}};
          ASSERT_EQ(e.dim.evaluate(all), e.value(a, b, c))
              << e.dim.str() << " at " << a << " " << b << " " << c;
          ASSERT_EQ(e.dim.substitute({{"n", a}, {"k", c}}).evaluate(all), e.value(a, b, c)) << e.dim.str();
          if (is_nonnegative(e.dim)) {
            ASSERT_GE(e.value(a, b, c), 0) << e.dim.str();
          }
          ++compared;
        }
  }
  EXPECT_EQ(compared, 400 * 48);
}

TEST(Dim, DivisionBySymbolicDivisorsEvaluatesAsPlainIntegers) {
  Rng rng(8);
  for (int trial = 0; trial < 300; ++trial) {
    const Expression e = random_expression(rng, 3);
    const Dim divisors[] = {m + 1, m * k + 2, k + m + 1, (m + 1) * 2};
    for (const Dim& d : divisors) {
      const Dim q = floor_div(e.dim, d);
      for (int64_t a = 0; a < 4; ++a)
        for (int64_t b = 0; b < 4; ++b) {
          const Bindings all{{"n", a}, {"m", b}, {"k", 1}};
          ASSERT_EQ(q.evaluate(all), floor_int(e.value(a, b, 1), d.evaluate(all)))
              << e.dim.str() << " / " << d.str() << " = " << q.str();
        }
    }
  }
}

TEST(Dim, EqualForms) {
  EXPECT_EQ(n * 2 + m - n, m + n);
  EXPECT_EQ((n + 1) * (n + 1), n * n + n * 2 + 1);
  EXPECT_EQ(floor_div(n * m * 6, m * 2), n * 3);
  EXPECT_EQ(floor_div((n + m) * (n - m), n + m), n - m);
  EXPECT_EQ(floor_div(n * 2 + 1, 2), n);
  EXPECT_EQ(floor_div(n * 2 + 1, 4), floor_div(n, 2));
  EXPECT_EQ(floor_div(floor_div(n - 1, 2), 2), floor_div(n - 1, 4));
  EXPECT_EQ(ceil_div(n, 4), floor_div(n + 3, 4));
  EXPECT_EQ(modulo(n * 8, 4), Dim(0));
  EXPECT_EQ(dim_max(n - 1, n + 1), n + 1);
  EXPECT_EQ(dim_max(n, 0), n);
  EXPECT_EQ(dim_min(dim_min(n, m), n), dim_min(m, n));
  EXPECT_NE(n, m);
  EXPECT_NE(dim_max(n - 1, 0), n - 1);
  EXPECT_TRUE((n - n).is_const());
}

TEST(Dim, Text) {
  EXPECT_EQ((n * 2 + 1).str(), "2*n + 1");
  EXPECT_EQ((Dim(0) - n + 3).str(), "-n + 3");
  EXPECT_EQ(floor_div(n, 4).str(), "floordiv(n,4)");
  EXPECT_EQ(shape_str({n, 3, m * n}), "[n, 3, m*n]");
  EXPECT_EQ(Dim(0).str(), "0");
}

TEST(Dim, BroadcastIsRightForEveryLegalBinding) {
  const Dim b = broadcast(n, m);
  const Dim three = broadcast(broadcast(k, n), m);
  EXPECT_EQ(three, broadcast(n, broadcast(m, k)));
  EXPECT_EQ(broadcast(b, n), b);
  EXPECT_EQ(broadcast(n, 1), n);
  EXPECT_EQ(broadcast(n, 5), Dim(5));
  for (int64_t x = 0; x < 4; ++x)
    for (int64_t y = 0; y < 4; ++y) {
      const Bindings at{{"n", x}, {"m", y}};
      if (x == y || x == 1 || y == 1)
        EXPECT_EQ(b.evaluate(at), x == 1 ? y : x);
      else
        EXPECT_THROW(b.evaluate(at), Error) << x << " " << y;
    }
}

TEST(Dim, Errors) {
  EXPECT_THROW(n.value(), Error);
  EXPECT_THROW(n.evaluate({}), Error);
  EXPECT_THROW(floor_div(n, m).evaluate({{"n", 4}, {"m", 0}}), Error);
  EXPECT_THROW(Dim(INT64_MAX) + Dim(1), Error);
  EXPECT_THROW(Dim(INT64_MAX / 2) * Dim(3), Error);
  EXPECT_THROW((n * n).evaluate({{"n", int64_t{1} << 40}}), Error);
  EXPECT_EQ(num_elements(Shape{0, INT64_MAX, INT64_MAX}), Dim(0));
  EXPECT_EQ((n * m + n).symbols(), (std::set<std::string>{"m", "n"}));
}

}  // namespace
}  // namespace thrice::ir
