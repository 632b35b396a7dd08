/* usage: api DEVICE     blk.hpp from end to end on one device: results against the host's own arithmetic, what is
 * refused and how, who owns what.  Ends with "N passed, M failed". */
#include <blk.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

static int passed, failed;

static void expect(bool good, int line, const char *what)
{
	if (good) {
		passed++;
		return;
	}
	failed++;
	std::printf("FAILED: line %d: %s\n", line, what);
}
#define EXPECT(what) expect((what) ? true : false, __LINE__, #what)

/* What `call` throws, or nothing. */
template <class F> static std::optional<blk::error> thrown(const F &call)
{
	try {
		call();
	} catch (const blk::error &e) {
		return e;
	}
	return {};
}
static bool says(const std::optional<blk::error> &e, blk_status status, const char *text)
{
	if (e && e->status() == status && std::strstr(e->what(), text)) return true;
	std::printf("  said: %s (%d)\n", e ? e->what() : "nothing", e ? int(e->status()) : 0);
	return false;
}
template <class T> static bool says(const blk::result<T> &r, blk_status status, const char *text)
{
	if (!r && r.status() == status && r.text().find(text) != r.text().npos) return true;
	std::printf("  said: %s (%d)\n", std::string(r.text()).c_str(), int(r.status()));
	return false;
}

static const char source[] = R"(
kernel scale(y: *f32, x: *const f32, n: i32, const BLOCK: i32 = 128, const FACTOR: f32 = 2.0,
	const NEGATE: bool = false)
	grid(cdiv(n, BLOCK))
{
	let i = program_id(0) * BLOCK + arange(0, BLOCK);
	let v = load(x + i, mask = i < n) * FACTOR;
	store(y + i, NEGATE ? -v : v, mask = i < n);
}
kernel numbers(y: *f64, a: bool, b: i8, c: i16, d: i32, e: i64, f: u8, g: u16, h: u32, i: u64, j: f32, k: f64, l: f16,
	m: bf16, o: f8e4m3, p: f8e5m2) grid(1)
{
	store(y, a ? 1.0 : 0.0);
	store(y + 1, b.to(f64));
	store(y + 2, c.to(f64));
	store(y + 3, d.to(f64));
	store(y + 4, e.to(f64));
	store(y + 5, f.to(f64));
	store(y + 6, g.to(f64));
	store(y + 7, h.to(f64));
	store(y + 8, i.to(f64));
	store(y + 9, j.to(f64));
	store(y + 10, k);
	store(y + 11, l.to(f64));
	store(y + 12, m.to(f64));
	store(y + 13, o.to(f64));
	store(y + 14, p.to(f64));
}
kernel where_am_i(y: *i32) { store(y + program_id(0) + 3 * program_id(1), program_id(0) + 10 * program_id(1) + 1); }
kernel nothing() grid(1) {}
)";

/* Ownership: what can be moved is not copied; only a kernel is both. */
template <class T>
constexpr bool owns = std::is_nothrow_move_constructible_v<T> &&std::is_nothrow_move_assignable_v<T> &&
		      !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;
static_assert(
	owns<blk::device> && owns<blk::module> && owns<blk::stream> && owns<blk::event> && owns<blk::buffer<float>>);
static_assert(std::is_copy_constructible_v<blk::kernel> && std::is_copy_assignable_v<blk::kernel>);

/* A float of a program's own, of which blk needs to know the bits only. */
struct half {
	std::uint16_t bits;
};
template <> struct blk::element<half> {
	static constexpr blk_type type = BLK_TYPE_F16;
};

static void results(const blk::device &d)
{
	constexpr int n = 1003, room = 1024; /* that no block divides */
	std::vector<float> x(room);
	std::iota(x.begin(), x.end(), -500.0f);
	const std::vector<blk::define> none, all = {{"BLOCK", 64}, {"FACTOR", 0.1}, {"NEGATE", true}},
					     text = {{"FACTOR", "3.0"}};
	const struct {
		const std::vector<blk::define> &defines;
		float factor;
	} cases[] = {{none, 2}, {all, -0.1f}, {text, 3}};
	for (const auto &c : cases) {
		blk::module m = blk::module::source(d, "scale.blk", source, c.defines);
		blk::kernel scale = m.kernel("scale");
		const blk::buffer in(d, x);
		static_assert(std::is_same_v<decltype(in), const blk::buffer<float>>);
		blk::buffer<float> out(d, room);
		out.fill(0xff);
		scale(out, in, n);
		std::vector<float> y = out.read();
		bool right = y.size() == room;
		for (int i = 0; i < room; i++) right = right && (i < n ? y[i] == x[i] * c.factor : std::isnan(y[i]));
		EXPECT(right);
		/* the same by addresses */
		out.fill(0xff);
		scale(out.data(), in.data(), n);
		EXPECT(out.read() == y || std::memcmp(out.read().data(), y.data(), room * sizeof(float)) == 0);
	}

	blk::module m = blk::module::source(d, "scale.blk", source);
	blk::buffer<double> y(d, 15);
	y.fill(0xff);
	m.kernel("numbers")(y, true, std::int8_t(-3), std::int16_t(-300), -70000, std::int64_t(-5000000000),
		std::uint8_t(200), std::uint16_t(60000), 4000000000u, std::uint64_t(1) << 40, 1.5f, 0.1, half{0x3e00},
		blk::bf16{0xbfc0}, blk::f8e4m3{0x3c}, blk::f8e5m2{0x3e});
	EXPECT((y.read() == std::vector<double>{1, -3, -300, -70000, -5e9, 200, 60000, 4e9, 1099511627776.0, 1.5, 0.1,
				    1.5, -1.5, 1.5, 1.5}));
	/* the last number goes in by a type of blk.h's, a long long is an i64 */
	m.kernel("numbers")(y, false, std::int8_t(0), std::int16_t(0), 0, 7LL, std::uint8_t(0), std::uint16_t(0), 0u,
		0ull, 0.0f, 0.0, blk::f16{0x4000}, blk::bf16{0}, blk::f8e4m3{0}, blk_f8e5m2(0x40));
	EXPECT((y.read() == std::vector<double>{0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 2, 0, 0, 2}));

	/* a grid and a stream of one's own */
	blk::kernel here = m.kernel("where_am_i");
	blk::buffer<int> places(d, 6);
	places.fill(0);
	here.grid(3, 2)(places);
	EXPECT((places.read() == std::vector<int>{1, 2, 3, 11, 12, 13}));
	blk::stream s(d);
	blk::event start(d), end(d);
	places.fill(0);
	start.record(s);
	here.on(s).grid(2)(places);
	end.record(s);
	s.sync();
	EXPECT((places.read() == std::vector<int>{1, 2, 0, 0, 0, 0}));
	EXPECT(end.milliseconds_since(start) >= 0);
	start.record();
	end.record();
	EXPECT(end.milliseconds_since(start) >= 0);
	m.kernel("nothing")();

	/* what is known of a launch */
	blk::kernel scale = m.kernel("scale");
	blk::buffer<float> f(d, 256);
	f.fill(0);
	EXPECT(scale.grid_for(f, f, 256).x == 2);
	EXPECT(scale.info(f, f, 256).target == std::string(d.info().target));
	EXPECT(scale.bench(f, f, 256).runs > 0);
	EXPECT(scale.tune(f, f, 256) == 0);
	EXPECT(scale.name() == "scale" && scale.parameters().size() == 3);
	EXPECT(scale.signature().find("kernel scale\n") == 0);
	EXPECT(std::string((scale.parameters().begin() + 1)->type) == "*const f32");
	EXPECT((m.kernels() == std::vector<std::string>{"scale", "numbers", "where_am_i", "nothing"}));
	EXPECT(d.name() == d.info().name && d.num_sms() == d.info().num_sms && !d.context());
	EXPECT(d.info().kind == BLK_DEVICE_SIM || d.bandwidth() > 0);
}

static void memory(const blk::device &d)
{
	float array[] = {1, 2, 3};
	std::array<float, 3> other{};
	blk::buffer b(d, array);
	static_assert(std::is_same_v<decltype(b), blk::buffer<float>>);
	EXPECT(b.size() == 3 && b.bytes() == 12);
	b.read(other);
	EXPECT(other[0] == 1 && other[2] == 3);
	b.write(blk::span<const float>(array, 1), 2);
	b.read(array, 0);
	EXPECT(array[2] == 1);
	blk::buffer<float> c(d, 4);
	c.fill(0);
	c.copy(b);
	EXPECT((c.read() == std::vector<float>{1, 2, 1, 0}));
	blk::buffer<bool> bools(d, 2);
	bool two[] = {true, false};
	bools.write(two);
	two[0] = false;
	bools.read(two);
	EXPECT(two[0] && !two[1]);
	EXPECT(blk::buffer<int>(d, 0).read().empty());

	/* outside */
	EXPECT(says(thrown([&] { b.write(array, 1); }), BLK_ERROR_RANGE, ""));
	EXPECT(says(thrown([&] { b.read(array, SIZE_MAX / 4 + 2); }), BLK_ERROR_RANGE, ""));
	EXPECT(says(b.try_read(array, 1), BLK_ERROR_RANGE, ""));
	EXPECT(says(b.try_write(array, SIZE_MAX), BLK_ERROR_RANGE, ""));
	EXPECT(says(blk::buffer<double>::try_create(d, SIZE_MAX / 4), BLK_ERROR_MEMORY, "more bytes than there are"));
	EXPECT(says(thrown([&] { c.copy(blk::buffer<float>(d, 5)); }), BLK_ERROR_RANGE, ""));
	EXPECT(b.try_read(array) && b.try_write(array) && blk::buffer<int>::try_create(d, 3)->size() == 3);
}

static void refused(const blk::device &d)
{
	blk::module m = blk::module::source(d, "scale.blk", source);
	blk::kernel scale = m.kernel("scale");
	blk::buffer<float> y(d, 8);
	y.fill(0);
	const blk::buffer x(d, std::vector<float>(8));
	blk::buffer<int> ints(d, 8);
	blk::buffer<std::byte> bytes(d, 32);
	bytes.fill(0);

	EXPECT(says(thrown([&] { scale(y, x); }), BLK_ERROR_TYPE, "kernel scale takes 3 arguments, not 2"));
	EXPECT(says(thrown([&] { scale(y, x, std::size_t(8)); }), BLK_ERROR_TYPE,
		"parameter n of kernel scale is i32, but argument 2 is u64"));
	EXPECT(says(thrown([&] { scale(y, 8, 8); }), BLK_ERROR_TYPE,
		"parameter x of kernel scale is *const f32, but argument 1 is i32"));
	EXPECT(says(thrown([&] { scale(ints, x, 8); }), BLK_ERROR_TYPE,
		"parameter y of kernel scale is *f32, but argument 0 is a pointer to i32"));
	EXPECT(says(thrown([&] { scale(y, ints.data(), 8); }), BLK_ERROR_TYPE,
		"parameter x of kernel scale is *const f32, but argument 1 is a pointer to i32"));
	EXPECT(says(thrown([&] { scale(x, x, 8); }), BLK_ERROR_TYPE,
		"parameter y of kernel scale is *f32, but argument 0 is a pointer to const f32"));
	EXPECT(says(scale.try_launch(std::as_const(bytes), x, 8), BLK_ERROR_TYPE,
		"argument 0 is a pointer to const bytes"));
	EXPECT(says(scale.try_launch(y, x, y), BLK_ERROR_TYPE,
		"parameter n of kernel scale is i32, but argument 2 is a buffer"));
	EXPECT(says(scale.grid(0).try_launch(y, x, 8), BLK_ERROR_GRID, ""));
	EXPECT(says(thrown([&] { scale.info(ints, x, 8); }), BLK_ERROR_TYPE, "a pointer to i32"));
	EXPECT(says(m.kernel("where_am_i").try_launch(ints), BLK_ERROR_GRID, ""));
	EXPECT(scale.try_launch(bytes, x, 8) && scale.try_launch(static_cast<void *>(y.data()), x, 8) &&
		scale.try_launch(y, x, 8));
	EXPECT(scale.try_launch(nullptr, nullptr, 0).status() == BLK_OK);

	EXPECT(says(thrown([&] { m.kernel("scal"); }), BLK_ERROR_NOT_FOUND, "scal"));
	EXPECT(says(m.try_kernel("scal"), BLK_ERROR_NOT_FOUND, "scal"));
	EXPECT(thrown([&] { m.kernel(); }).has_value());
	EXPECT(says(thrown([&] { blk::module::source(d, "bad.blk", "kernel k(x: *f32) grid(1) { store(x, y); }"); }),
		BLK_ERROR_COMPILE, "bad.blk:1:"));
	EXPECT(says(blk::module::try_open(d, "missing.blk"), BLK_ERROR_NOT_FOUND, "missing.blk"));
	EXPECT(says(blk::device::try_open("toaster"), BLK_ERROR_ARGUMENT, "toaster"));
	EXPECT(says(thrown([] { blk::device t("toaster"); }), BLK_ERROR_ARGUMENT, "toaster"));
	EXPECT(blk::module::source(d, "one.blk", "kernel one(x: *f32) grid(1) {}").kernel().name() == "one");
	EXPECT(says(thrown([&] { blk::device::wrap(nullptr); }), BLK_ERROR_ARGUMENT, ""));
	EXPECT(thrown([&] { blk::stream::wrap(d, &y); }).has_value());

	blk::result<blk::device> good = blk::device::try_open("cpu");
	EXPECT(good && good.status() == BLK_OK && good.text().empty() && good->num_sms() > 0 && (*good).get());
	blk::device taken = *std::move(good);
	EXPECT(taken && taken.try_sync());
	taken.sync();
	blk::result<blk::device> none = blk::device::try_open("toaster");
	EXPECT(says(thrown([&] { none->sync(); }), BLK_ERROR_ARGUMENT, "toaster"));
	blk::module warned =
		blk::module::source(d, "warned.blk", "kernel k(x: *f32) grid(1) { let unused = 3; static_print(4); }");
	EXPECT(!blk::note().empty());
}

static blk::kernel made(const char *device)
{
	blk::device d(device);
	return blk::module::source(d, "scale.blk", source).kernel("scale");
}

static void ownership(const char *name)
{
	/* in any order: a kernel keeps its module, and what is made on a device keeps it */
	blk::kernel scale = made(name);
	EXPECT(scale.name() == "scale");
	std::optional<blk::device> d(std::in_place, name);
	std::map<std::string, blk::buffer<float>> many;
	many.emplace("x", blk::buffer(*d, std::vector<float>(100, 4)));
	many.emplace("y", blk::buffer<float>(*d, 100));
	std::optional<blk::module> m(blk::module::source(*d, "scale.blk", source));
	blk::kernel again = m->kernel("scale"), copy = again;
	blk::stream s(*d);
	m.reset();
	d.reset();
	copy.on(s)(many.at("y"), many.at("x"), 100);
	EXPECT((many.at("y").read() == std::vector<float>(100, 8)));
	/* of another device */
	EXPECT(says(scale.try_launch(many.at("y"), many.at("x"), 100), BLK_ERROR_HANDLE, ""));

	/* moved: the new one has the handle, the old one has none, and what was there before is freed */
	blk::device e(name);
	blk::buffer<float> a(e, 3), b(e, 5);
	blk_buffer *handle = a.get(), *before = b.get();
	blk::buffer<float> c = std::move(a);
	EXPECT(c.get() == handle && !a.get() && !a && c);
	EXPECT(a.size() == 0 && a.try_read({}).status() != BLK_OK);
	{
		blk::buffer<float> gone = std::move(b);
	}
	EXPECT(blk_buffer_write(before, 0, &handle, 4) == BLK_ERROR_HANDLE);
	b = std::move(c);
	EXPECT(b.get() == handle && b.size() == 3);
	blk::module one = blk::module::source(e, "scale.blk", source), two = std::move(one);
	EXPECT(!one && two && two.kernels().size() == 4 && one.try_kernel("scale").status() != BLK_OK);
	one = std::move(two);
	EXPECT(one.kernel("scale").try_launch(b, blk::buffer(e, std::vector<float>(3)), 3));
	blk::stream first(e), second = std::move(first);
	EXPECT(!first && says(one.kernel("scale").on(first).try_launch(b, b, 3), BLK_ERROR_HANDLE, "moved"));
	blk::event t(e), u = std::move(t);
	EXPECT(!t && u && says(thrown([&] { u.record(first); }), BLK_ERROR_HANDLE, "moved"));
	EXPECT(second.handle() == blk_stream_handle(second.get()));
	blk::device f = std::move(e);
	EXPECT(f && !e && e.try_sync().status() != BLK_OK && blk::buffer<int>::try_create(e, 1).status() != BLK_OK);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "auto";
	try {
		blk::device d(name);
		results(d);
		memory(d);
		refused(d);
		ownership(name);
	} catch (const std::exception &e) {
		std::printf("FAILED: %s\n", e.what());
		failed++;
	}
	std::printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
