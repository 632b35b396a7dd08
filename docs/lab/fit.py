#!/usr/bin/env python3
# usage: fit.py [NAME...]     Coefficients of the polynomials in compiler/lib/special.blk and special64.blk, and their errors.
#
# A fit is least squares on Chebyshev points, which is near the minimax polynomial, weighted so that what is small is
# the error relative to the function.  Coefficients are rounded to the type from the lowest power on, and after each the
# rest is fitted anew, so that what rounding loses is made up for.  Needs mpmath (Debian: python3-mpmath).
import struct, sys
from mpmath import mp, mpf, matrix, qr_solve, log, pi, cos, sin, tan, asin, atan, sinh, cosh, erfc, exp, sqrt, loggamma, cbrt

mp.dps = 50
LN2 = log(2)


def rounded(c, bits):
    fmt = "<f" if bits == 24 else "<d"
    return mpf(struct.unpack(fmt, struct.pack(fmt, float(c)))[0]) if bits == 24 else mpf(float(c))


def fit(f, weight, lo, hi, n, bits):
    """c with sum(c[j] t^j) near f(t) on [lo, hi]; the error counts times weight(t)."""
    points = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * i + 1) / (8 * n)) for i in range(4 * n)]
    values = [(t, f(t), weight(t)) for t in points]
    known = []
    while len(known) < n:
        k = len(known)
        A = matrix(len(values), n - k)
        b = matrix(len(values), 1)
        for i, (t, y, w) in enumerate(values):
            for j in range(k, n):
                A[i, j - k] = w * t**j
            b[i] = w * (y - sum(c * t**j for j, c in enumerate(known)))
        x, _ = qr_solve(A, b)
        known.append(rounded(x[0], bits))
    worst = 0
    for i in range(400):
        t = (lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * i + 1) / 800)
        worst = max(worst, abs(weight(t) * (sum(c * t**j for j, c in enumerate(known)) - f(t))))
    return known, worst


def root(f):  # of a function of t = x^2 that is given of x
    return lambda t: f(sqrt(t))


def erfcx(t, k):
    a = k * (1 + t) / (1 - t)
    return (1 + 2 * a) * exp(a * a) * erfc(a)


def stirling(z):
    x = 1 / sqrt(z)
    return (loggamma(x) - (x - mpf(1) / 2) * (log(x) - 1) - (log(2 * pi) - 1) / 2) * x


def gamma_part(t):
    return loggamma(1 + t) / (t * (t - 1))


tiny = mpf(10) ** -12
FITS = {  # name: function, weight, interval, coefficients for f32 and f64
    "tan": (root(lambda r: (tan(r) / r - 1) / r**2), root(lambda r: r**3 / tan(r)), tiny, (pi / 4) ** 2, 7, 16),
    "asin": (root(lambda r: (asin(r) / r - 1) / r**2), root(lambda r: r**3 / asin(r)), tiny, mpf(1) / 4, 5, 13),
    "atan": (root(lambda r: (atan(r) / r - 1) / r**2), root(lambda r: r**3 / atan(r)), tiny, mpf(1), 9, 23),
    "sinh": (root(lambda r: (sinh(r) / r - 1) / r**2), root(lambda r: r**3 / sinh(r)), tiny, (LN2 / 2) ** 2 * mpf("1.01"), 3, 6),
    "cosh": (root(lambda r: (cosh(r) - 1 - r**2 / 2) / r**4), root(lambda r: r**4), tiny, (LN2 / 2) ** 2 * mpf("1.01"), 3, 6),
    "exp": (lambda f: (exp(f) - 1 - f) / f**2, lambda f: f**2, -LN2 / 2 * mpf("1.01"), LN2 / 2 * mpf("1.01") + tiny, 5, 11),
    "erfc": (None, None, None, None, 12, 28),
    "inverse_cbrt": (lambda m: 1 / cbrt(m), cbrt, mpf(1), mpf(2), 4, 4),
    "lgamma": (lambda u: gamma_part(u + mpf(1) / 2), lambda u: 1 / gamma_part(u + mpf(1) / 2), -mpf(1) / 2 + tiny, mpf(1) / 2 - tiny, 11, 24),
    "stirling": (stirling, lambda z: sqrt(z) / (8 + 0 * z), tiny, mpf(1) / 64, 3, 7),
    "sinpi": (root(lambda r: (sin(pi * r) / r - pi) / r**2), root(lambda r: r**3 / sin(pi * r)), tiny, mpf(1) / 4, 5, 9),
}

for name in sys.argv[1:] or FITS:
    for BITS in 24, 53:
        f, w, lo, hi, n32, n64 = FITS[name]
        if name == "erfc":
            k, top = (mpf(2), mpf(11)) if BITS == 24 else (mpf(4), mpf(28))
            f, w, lo, hi = (lambda t: erfcx(t, k)), (lambda t: 1 / erfcx(t, k)), mpf(-1), (top - k) / (top + k)
        c, worst = fit(f, w, lo, hi, n32 if BITS == 24 else n64, BITS)
        print("%s, f%d: 2^%.1f" % (name, 32 if BITS == 24 else 64, float(log(worst, 2))))
        for x in c:
            print("\t%s" % (("%.10g" if BITS == 24 else "%.17g") % float(x)))
        sys.stdout.flush()
