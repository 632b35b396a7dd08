/* libblk for C++17 and later: blk.h with owners, arrays and exceptions.  Nothing but blk.h and the standard library.
 *
 *	blk::device gpu;                                        // "auto": the GPU, else the processor
 *	blk::module code(gpu, "add.blk", {{"BLOCK", 2048}});
 *	blk::kernel add = code.kernel("add");
 *	blk::buffer x(gpu, host_x), y(gpu, host_y);             // of containers: buffer<float>
 *	blk::buffer<float> z(gpu, host_x.size());
 *	add(z, x, y, int(host_x.size()));                       // count and types are checked
 *	std::vector<float> sums = z.read();
 *
 * Conventions, not repeated below:
 *  - What fails throws blk::error, which has the blk_status and blk_error()'s text.  A function whose name begins with
 *    `try_` returns a result instead, which is the value or the failure, and throws nothing of blk's.
 *  - Sizes, counts and offsets of buffers are in elements; blk.h's are in bytes.
 *  - An owner can be moved and not copied; a kernel can be copied.  What is made on a device keeps it open, and a
 *    kernel keeps its module, so they may be destroyed in any order.  Destructors wait as blk.h's calls do and swallow
 *    failures: call device::sync() first to hear of them.
 *  - get() is blk.h's handle, for the calls that have no name here; it still belongs to its owner.  What was moved from
 *    holds null, and may only be assigned to, destroyed or tested; other calls of it fail with a sentence.
 *  - Threads may do what blk.h allows.  Without exceptions (-fno-exceptions) what would throw ends the program. */
#ifndef BLK_HPP
#define BLK_HPP

#include "blk.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif

namespace blk
{

/* ---- Failures ---- */

/* What a call that failed has to say: blk_error()'s text, the compiler's diagnostics included. */
struct failure {
	blk_status status;
	std::string text;
};

class error : public std::runtime_error
{
      public:
	explicit error(const failure &f) : std::runtime_error(f.text), status_(f.status)
	{
	}
	blk_status status() const noexcept
	{
		return status_;
	}

      private:
	blk_status status_;
};

[[noreturn]] inline void raise(const failure &f)
{
#ifdef __cpp_exceptions
	throw error(f);
#else
	(void)f;
	std::terminate();
#endif
}

/* A value, or why there is none. */
template <class T> class [[nodiscard]] result
{
      public:
	result(T value) : held_(std::in_place_index<0>, std::move(value))
	{
	}
	result(failure f) : held_(std::in_place_index<1>, std::move(f))
	{
	}
	explicit operator bool() const noexcept
	{
		return held_.index() == 0;
	}
	/* The value; what failed throws. */
	T &value() &
	{
		if (!*this) raise(std::get<1>(held_));
		return std::get<0>(held_);
	}
	T value() &&
	{
		return std::move(value());
	}
	T &operator*() &
	{
		return value();
	}
	T operator*() &&
	{
		return std::move(value());
	}
	T *operator->()
	{
		return &value();
	}
	blk_status status() const noexcept
	{
		return *this ? BLK_OK : std::get_if<1>(&held_)->status;
	}
	/* "" for a value */
	std::string_view text() const noexcept
	{
		return *this ? std::string_view() : std::get_if<1>(&held_)->text;
	}

      private:
	std::variant<T, failure> held_;
};

template <> class [[nodiscard]] result<void>
{
      public:
	result() = default;
	result(failure f) : failed_(std::move(f))
	{
	}
	explicit operator bool() const noexcept
	{
		return !failed_;
	}
	void value() const
	{
		if (failed_) raise(*failed_);
	}
	blk_status status() const noexcept
	{
		return failed_ ? failed_->status : BLK_OK;
	}
	std::string_view text() const noexcept
	{
		return failed_ ? std::string_view(failed_->text) : std::string_view();
	}

      private:
	std::optional<failure> failed_;
};

/* What blk.h's calls return, as a result: blk::checked(blk_device_sync(gpu.get())).value(). */
inline result<void> checked(blk_status status)
{
	if (status == BLK_OK) return {};
	return failure{status, blk_error()};
}

/* Compiler warnings and the like, of this thread's last module or launch; "" when nothing. */
inline std::string note()
{
	return blk_note();
}

/* ---- Arrays of the host ---- */

#if __cplusplus >= 202002L && __has_include(<span>)
using std::span;
#else
/* The part of std::span that is needed here: a view of neighbouring elements that somebody else owns. */
template <class T> class span
{
	template <class C>
	using fits = std::enable_if_t<
		std::is_convertible_v<std::remove_pointer_t<decltype(std::data(std::declval<C &>()))> (*)[], T (*)[]>>;

      public:
	constexpr span() = default;
	constexpr span(T *data, std::size_t size) : data_(data), size_(size)
	{
	}
	template <class C, class = fits<C>> constexpr span(C &&c) : data_(std::data(c)), size_(std::size(c))
	{
	}
	constexpr T *data() const
	{
		return data_;
	}
	constexpr std::size_t size() const
	{
		return size_;
	}
	constexpr T *begin() const
	{
		return data_;
	}
	constexpr T *end() const
	{
		return data_ + size_;
	}

      private:
	T *data_ = nullptr;
	std::size_t size_ = 0;
};
#endif

/* ---- Types of elements ---- */

/* Floats that C++ has no type for, by their bits. */
struct f16 {
	std::uint16_t bits;
};
struct bf16 {
	std::uint16_t bits;
};
struct f8e4m3 {
	std::uint8_t bits;
};
struct f8e5m2 {
	std::uint8_t bits;
};

namespace detail
{
template <class T>
constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char16_t> ||
			      std::is_same_v<T, char32_t>;
inline constexpr blk_type no_type = BLK_TYPE_BUFFER; // which no element is

template <class T> constexpr blk_type integer()
{
	constexpr blk_type types[2][4] = {{BLK_TYPE_U8, BLK_TYPE_U16, BLK_TYPE_U32, BLK_TYPE_U64},
		{BLK_TYPE_I8, BLK_TYPE_I16, BLK_TYPE_I32, BLK_TYPE_I64}};
	return types[std::is_signed_v<T>][sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3];
}
} // namespace detail

/* The element type that a C++ type stands for: int32_t is i32, float f32, and so on; std::byte and void are memory of
 * any type.  Specialise it for a float type of your own whose bits are the same:
 *	template <> struct blk::element<__half> { static constexpr blk_type type = BLK_TYPE_F16; }; */
template <class T> struct element {
	static constexpr blk_type type = detail::no_type;
};
template <> struct element<bool> {
	static constexpr blk_type type = BLK_TYPE_BOOL;
};
template <> struct element<float> {
	static constexpr blk_type type = BLK_TYPE_F32;
};
template <> struct element<double> {
	static constexpr blk_type type = BLK_TYPE_F64;
};
template <> struct element<f16> {
	static constexpr blk_type type = BLK_TYPE_F16;
};
template <> struct element<bf16> {
	static constexpr blk_type type = BLK_TYPE_BF16;
};
template <> struct element<f8e4m3> {
	static constexpr blk_type type = BLK_TYPE_F8E4M3;
};
template <> struct element<f8e5m2> {
	static constexpr blk_type type = BLK_TYPE_F8E5M2;
};
template <> struct element<std::byte> {
	static constexpr blk_type type = BLK_TYPE_POINTER;
};
template <> struct element<void> {
	static constexpr blk_type type = BLK_TYPE_POINTER;
};

namespace detail
{
template <class T> constexpr blk_type type_of()
{
	if constexpr (element<T>::type != no_type)
		return element<T>::type;
	else if constexpr (std::is_integral_v<T> && !is_character<T>)
		return integer<T>();
	else
		return no_type;
}

/* As a signature spells them. ORDER blk_type */
inline constexpr std::string_view type_names[] = {
	"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"};

/* A handle, and what has to be there as long as it is. */
template <class H, void (*Free)(H *)> class owner
{
      public:
	owner(H *handle, std::shared_ptr<void> needs) : handle_(handle), needs_(std::move(needs))
	{
	}
	owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)), needs_(std::move(other.needs_))
	{
	}
	owner &operator=(owner &&other) noexcept
	{
		std::swap(handle_, other.handle_);
		std::swap(needs_, other.needs_);
		return *this;
	}
	~owner()
	{
		Free(handle_);
	}
	H *get() const noexcept
	{
		return handle_;
	}
	explicit operator bool() const noexcept
	{
		return handle_;
	}

      private:
	H *handle_;
	std::shared_ptr<void> needs_;
};
} // namespace detail

/* ---- Devices ---- */

class device
{
      public:
	/* "auto", "cuda:1", "cpu", "sim", "sim:sm_90a", ..: blk_device_open() */
	explicit device(const std::string &name = "auto") : device(try_open(name).value())
	{
	}
	static result<device> try_open(const std::string &name)
	{
		blk_device *d = nullptr;
		if (blk_status status = blk_device_open(name.c_str(), &d)) return failure{status, blk_error()};
		return device(d);
	}
	/* In a CUcontext that you own and keep alive. */
	static device wrap(void *cu_context)
	{
		blk_device *d = nullptr;
		checked(blk_device_wrap(cu_context, &d)).value();
		return device(d);
	}
	device(device &&) noexcept = default;
	device &operator=(device &&) noexcept = default;

	/* Waits for all that was launched; a kernel's failure is reported here at the latest. */
	void sync() const
	{
		try_sync().value();
	}
	result<void> try_sync() const
	{
		return checked(blk_device_sync(get()));
	}
	blk_device_info info() const
	{
		blk_device_info i;
		checked(blk_device_query(get(), &i)).value();
		return i;
	}
	std::string name() const
	{
		return blk_device_name(get());
	}
	std::uint32_t num_sms() const
	{
		return blk_device_num_sms(get());
	}
	/* Bytes a second of a large copy, read and written both counted; measured by the first call. */
	double bandwidth() const
	{
		double bytes_per_s = 0;
		checked(blk_device_bandwidth(get(), &bytes_per_s)).value();
		return bytes_per_s;
	}
	void *context() const
	{
		return blk_device_context(get());
	}
	blk_device *get() const noexcept
	{
		return handle_.get();
	}
	explicit operator bool() const noexcept
	{
		return bool(handle_);
	}
	/* What keeps the device open, for owners of your own. */
	std::shared_ptr<void> keep() const noexcept
	{
		return handle_;
	}

      private:
	explicit device(blk_device *d) : handle_(d, blk_device_close)
	{
	}
	std::shared_ptr<blk_device> handle_;
};

/* ---- Memory ---- */

/* `size` elements in the device's memory.  Of std::byte it is memory of any type. */
template <class T> class buffer
{
	static_assert(std::is_trivially_copyable_v<T>, "a buffer's elements are copied as bytes");
	static_assert(!std::is_const_v<T>, "a buffer that is not to be written is a const buffer<T>");

      public:
	/* Uninitialised. */
	buffer(const device &d, std::size_t size) : buffer(try_create(d, size).value())
	{
	}
	/* With a copy of the host's elements. */
	buffer(const device &d, span<const T> from) : buffer(d, from.size())
	{
		write(from);
	}
	static result<buffer> try_create(const device &d, std::size_t size)
	{
		blk_buffer *b = nullptr;
		if (size > SIZE_MAX / sizeof(T))
			return failure{BLK_ERROR_MEMORY, "a buffer of more bytes than there are"};
		if (blk_status status = blk_buffer_create(d.get(), size * sizeof(T), &b))
			return failure{status, blk_error()};
		return buffer(b, d.keep());
	}

	/* Between the host and the elements from `first` on; they wait for what was launched before. */
	void write(span<const T> from, std::size_t first = 0)
	{
		try_write(from, first).value();
	}
	void read(span<T> to, std::size_t first = 0) const
	{
		try_read(to, first).value();
	}
	result<void> try_write(span<const T> from, std::size_t first = 0)
	{
		return checked(blk_buffer_write(get(), offset(first), from.data(), from.size() * sizeof(T)));
	}
	result<void> try_read(span<T> to, std::size_t first = 0) const
	{
		return checked(blk_buffer_read(get(), offset(first), to.data(), to.size() * sizeof(T)));
	}
	/* All elements. */
	std::vector<T> read() const
	{
		static_assert(
			!std::is_same_v<T, bool>, "a std::vector<bool> has no elements to read to: use read(span)");
		std::vector<T> v(size());
		read(v);
		return v;
	}
	/* Sets each byte. */
	void fill(std::uint8_t byte)
	{
		checked(blk_buffer_fill(get(), 0, byte, bytes())).value();
	}
	/* As many elements as `from` has, of the same device, to the front. */
	void copy(const buffer &from)
	{
		checked(blk_buffer_copy(get(), 0, from.get(), 0, from.bytes())).value();
	}
	std::size_t size() const noexcept
	{
		return bytes() / sizeof(T);
	}
	std::size_t bytes() const noexcept
	{
		return blk_buffer_size(get());
	}
	/* Where it lies: a CUdeviceptr, or host memory on cpu and sim. */
	T *data() noexcept
	{
		return static_cast<T *>(blk_buffer_pointer(get()));
	}
	const T *data() const noexcept
	{
		return static_cast<const T *>(blk_buffer_pointer(get()));
	}
	blk_buffer *get() const noexcept
	{
		return owned_.get();
	}
	explicit operator bool() const noexcept
	{
		return bool(owned_);
	}

      private:
	buffer(blk_buffer *b, std::shared_ptr<void> device) : owned_(b, std::move(device))
	{
	}
	/* In bytes; one that does not fit lies outside of any buffer. */
	static std::size_t offset(std::size_t first)
	{
		return first > SIZE_MAX / sizeof(T) ? SIZE_MAX : first * sizeof(T);
	}
	detail::owner<blk_buffer, blk_buffer_free> owned_;
};
template <class C>
buffer(const device &, const C &)
	-> buffer<std::remove_const_t<std::remove_pointer_t<decltype(std::data(std::declval<const C &>()))>>>;

/* ---- Streams and events ---- */

/* Work on one stream happens in order. */
class stream
{
      public:
	explicit stream(const device &d) : stream(make(d, nullptr, false))
	{
	}
	/* A CUstream of yours. */
	static stream wrap(const device &d, void *cu_stream)
	{
		return make(d, cu_stream, true);
	}
	void sync() const
	{
		checked(blk_stream_sync(get())).value();
	}
	void *handle() const
	{
		return blk_stream_handle(get());
	}
	blk_stream *get() const noexcept
	{
		return owned_.get();
	}
	explicit operator bool() const noexcept
	{
		return bool(owned_);
	}

      private:
	stream(blk_stream *s, std::shared_ptr<void> device) : owned_(s, std::move(device))
	{
	}
	static stream make(const device &d, void *cu_stream, bool wrapped)
	{
		blk_stream *s = nullptr;
		checked(wrapped ? blk_stream_wrap(d.get(), cu_stream, &s) : blk_stream_create(d.get(), &s)).value();
		return stream(s, d.keep());
	}
	detail::owner<blk_stream, blk_stream_free> owned_;
};

class event
{
      public:
	explicit event(const device &d) : event(make(d))
	{
	}
	void record()
	{
		checked(blk_event_record(get(), nullptr)).value();
	}
	void record(const stream &s)
	{
		if (!s) raise({BLK_ERROR_HANDLE, "a stream that was moved from"});
		checked(blk_event_record(get(), s.get())).value();
	}
	/* From that event to this one, for both of which it waits. */
	double milliseconds_since(const event &start) const
	{
		double ms = 0;
		checked(blk_event_elapsed(start.get(), get(), &ms)).value();
		return ms;
	}
	blk_event *get() const noexcept
	{
		return owned_.get();
	}
	explicit operator bool() const noexcept
	{
		return bool(owned_);
	}

      private:
	event(blk_event *e, std::shared_ptr<void> device) : owned_(e, std::move(device))
	{
	}
	static event make(const device &d)
	{
		blk_event *e = nullptr;
		checked(blk_event_create(d.get(), &e)).value();
		return event(e, d.keep());
	}
	detail::owner<blk_event, blk_event_free> owned_;
};

/* ---- Arguments ---- */

namespace detail
{
/* One argument, and what a signature has to say of a pointer: the type of its elements, and whether they are const. */
struct argument {
	blk_arg arg;
	blk_type element;
	bool constant;
};

template <class T> argument make_argument(const T &v)
{
	constexpr blk_type type = type_of<T>();
	static_assert(
		type < BLK_TYPE_POINTER, "no kernel argument: pass a buffer, a pointer or a number with its type");
	std::uint64_t bits = 0;
	static_assert(sizeof v <= sizeof bits, "no number of a kernel's");
	std::memcpy(&bits, &v, sizeof v);
	return {blk_arg_make(type, bits), no_type, false};
}
template <class T> argument make_argument(buffer<T> &b)
{
	return {blk_buf(b.get()), type_of<T>(), false};
}
template <class T> argument make_argument(const buffer<T> &b)
{
	return {blk_buf(b.get()), type_of<T>(), true};
}
template <class T> argument make_argument(T *const &p)
{
	return {blk_ptr(p), type_of<std::remove_const_t<T>>(), std::is_const_v<T>};
}
inline argument make_argument(const std::nullptr_t &)
{
	return {blk_ptr(nullptr), BLK_TYPE_POINTER, false};
}
inline argument make_argument(const blk_arg &a)
{
	return {a, no_type, false};
}
} // namespace detail

/* A const parameter or an option, of a number, a bool, or text: {"BLOCK", 2048}, {"T", "f16"}. */
class define
{
      public:
	template <class T> define(std::string name, const T &value) : name_(std::move(name)), value_(text(value))
	{
	}
	const std::string &name() const noexcept
	{
		return name_;
	}
	const std::string &value() const noexcept
	{
		return value_;
	}

      private:
	template <class T> static std::string text(const T &v)
	{
		if constexpr (std::is_same_v<T, bool>)
			return v ? "true" : "false";
		else if constexpr (std::is_floating_point_v<T>) {
			char digits[40];
			std::snprintf(digits, sizeof digits, "%.17g", double(v));
			return std::strpbrk(digits, ".ein") ? digits : std::string(digits) + ".0";
		} else if constexpr (std::is_integral_v<T>)
			return std::to_string(v);
		else
			return std::string(v);
	}
	std::string name_, value_;
};

/* ---- Modules, kernels, launches ---- */

class kernel;

/* How a kernel is launched: made by kernel::grid() and kernel::on(), used at once:
 *	add.grid(n / 256).on(stream)(z, x, y, n);
 * Arguments are buffers, pointers to the device's memory, and numbers of exactly the parameter's type (int is i32).  A
 * pointer or a buffer has the parameter's element type; a const one is no argument for a parameter that is not. */
class launcher
{
      public:
	explicit launcher(const kernel &k) : kernel_(k)
	{
	}
	/* Programs along each axis, instead of the kernel's grid clause. */
	launcher grid(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) const
	{
		launcher l = *this;
		l.grid_ = blk_grid{x, y, z};
		return l;
	}
	launcher on(const stream &s) const
	{
		launcher l = *this;
		l.stream_ = &s;
		return l;
	}
	/* Starts it; on cpu and sim it has then ended. */
	template <class... A> void operator()(A &&...arguments) const
	{
		try_launch(arguments...).value();
	}
	template <class... A> result<void> try_launch(A &&...arguments) const;
	/* Times it on the device: blk_bench(). */
	template <class... A> blk_timing bench(A &&...arguments) const;
	/* Tunes it for these arguments; how many configurations were tried. */
	template <class... A> std::uint32_t tune(A &&...arguments) const;

      private:
	template <class F, class... A> result<void> call(const F &f, A &&...arguments) const;
	const blk_grid *grid_pointer() const
	{
		return grid_ ? &*grid_ : nullptr;
	}
	const kernel &kernel_;
	const stream *stream_ = nullptr;
	std::optional<blk_grid> grid_;
};

/* A kernel of a module, which stays open as long as it.  It can be called: add(z, x, y, n). */
class kernel
{
      public:
	template <class... A> void operator()(A &&...arguments) const
	{
		launcher (*this)(arguments...);
	}
	template <class... A> result<void> try_launch(A &&...arguments) const
	{
		return launcher(*this).try_launch(arguments...);
	}
	launcher grid(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) const
	{
		return launcher(*this).grid(x, y, z);
	}
	launcher on(const stream &s) const
	{
		return launcher(*this).on(s);
	}
	template <class... A> blk_timing bench(A &&...arguments) const
	{
		return launcher(*this).bench(arguments...);
	}
	template <class... A> std::uint32_t tune(A &&...arguments) const
	{
		return launcher(*this).tune(arguments...);
	}
	/* What a launch with these arguments would use: registers, occupancy, PTX.  Its texts live as long as the
	 * module. */
	template <class... A> blk_info info(A &&...arguments) const
	{
		blk_info i;
		call([&](const blk_arg *a, std::size_t n) { return blk_kernel_info(get(), a, n, &i); }, arguments...)
			.value();
		return i;
	}
	/* What the grid clause says for these arguments. */
	template <class... A> blk_grid grid_for(A &&...arguments) const
	{
		blk_grid g;
		call([&](const blk_arg *a, std::size_t n) { return blk_kernel_grid(get(), a, n, &g); }, arguments...)
			.value();
		return g;
	}
	/* The value of a const parameter for these arguments, which launches may compute; pointers may be null. */
	template <class... A> std::int64_t constant(const char *name, A &&...arguments) const
	{
		std::int64_t v;
		call([&](const blk_arg *a, std::size_t n) { return blk_kernel_constant(get(), name, a, n, &v); },
			arguments...)
			.value();
		return v;
	}
	/* The run-time parameters in order; they live as long as the module. */
	span<const blk_parameter> parameters() const
	{
		return {parameters_, count_};
	}
	std::string name() const
	{
		return blk_kernel_name(get());
	}
	/* One fact a line (docs/api.md). */
	std::string signature() const
	{
		return blk_kernel_signature(get());
	}
	blk_kernel *get() const noexcept
	{
		return handle_;
	}

	/* f(arguments, how many) of the arguments as blk.h's calls take them, checked: for calls that have no name
	 * here. */
	template <class F, class... A> result<void> call(const F &f, A &&...arguments) const
	{
		const detail::argument made[sizeof...(A) + 1] = {detail::make_argument(arguments)...};
		blk_arg args[sizeof...(A) + 1];
		for (std::size_t i = 0; i < sizeof...(A); i++) {
			if (sizeof...(A) == count_ && !fits(parameters_[i], made[i])) return misfit(i, made[i]);
			args[i] = made[i].arg;
		}
		return checked(f(sizeof...(A) ? args : nullptr, sizeof...(A)));
	}

      private:
	friend class module;
	kernel(blk_kernel *k, std::shared_ptr<void> module) : handle_(k), module_(std::move(module))
	{
	}
	/* Of pointers only: libblk itself knows a number's type, and how many arguments there are. */
	static bool fits(const blk_parameter &p, const detail::argument &a)
	{
		if (a.element == detail::no_type || !p.is_pointer) return true;
		std::string_view wanted(p.type + 1);
		bool constant = wanted.substr(0, 6) == "const ";
		if (constant) wanted.remove_prefix(6);
		if (a.constant && !constant) return false;
		return a.element >= BLK_TYPE_POINTER || wanted == detail::type_names[a.element];
	}
	failure misfit(std::size_t i, const detail::argument &a) const
	{
		const blk_parameter &p = parameters_[i];
		std::string text = "parameter " + std::string(p.name) + " of kernel " + name() + " is " + p.type +
				   ", but argument " + std::to_string(i) + " is a pointer to " +
				   (a.constant ? "const " : "");
		return {BLK_ERROR_TYPE,
			text + (a.element < BLK_TYPE_POINTER ? std::string(detail::type_names[a.element]) : "bytes")};
	}
	blk_kernel *handle_;
	std::shared_ptr<void> module_;
	const blk_parameter *parameters_ = nullptr;
	std::size_t count_ = 0;
};

template <class F, class... A> result<void> launcher::call(const F &f, A &&...arguments) const
{
	if (stream_ && !*stream_) return failure{BLK_ERROR_HANDLE, "a stream that was moved from"};
	blk_stream *s = stream_ ? stream_->get() : nullptr;
	return kernel_.call([&](const blk_arg *a, std::size_t n) { return f(s, a, n); }, arguments...);
}
template <class... A> result<void> launcher::try_launch(A &&...arguments) const
{
	return call([&](blk_stream *s, const blk_arg *a,
			    std::size_t n) { return blk_launch(kernel_.get(), s, grid_pointer(), a, n); },
		arguments...);
}
template <class... A> blk_timing launcher::bench(A &&...arguments) const
{
	blk_timing t;
	call(
		[&](blk_stream *s, const blk_arg *a, std::size_t n) {
			blk_bench_options o{};
			o.stream = s;
			return blk_bench(kernel_.get(), grid_pointer(), a, n, &o, &t);
		},
		arguments...)
		.value();
	return t;
}
template <class... A> std::uint32_t launcher::tune(A &&...arguments) const
{
	std::uint32_t timed = 0;
	call([&](blk_stream *, const blk_arg *a,
		     std::size_t n) { return blk_kernel_tune(kernel_.get(), grid_pointer(), a, n, nullptr, &timed); },
		arguments...)
		.value();
	return timed;
}

/* Kernels of one source, package or PTX text, with what is defined for them: blk_module_open(). */
class module
{
      public:
	module(const device &d, const std::string &path, const std::vector<define> &defines = {}) :module(
		try_open(d, path, defines).value())
	{
	}
	/* Of text in memory; `name` stands in messages and is what imports are relative to. */
	static module source(const device &d, const std::string &name, const std::string &text,
		const std::vector<define> &defines = {})
	{
		return try_source(d, name, text, defines).value();
	}
	static result<module> try_open(
		const device &d, const std::string &path, const std::vector<define> &defines = {})
	{
		return make(d, defines, [&](const blk_define *list, std::size_t n, blk_module **m) {
			return blk_module_open(d.get(), path.c_str(), list, n, m);
		});
	}
	static result<module> try_source(const device &d, const std::string &name, const std::string &text,
		const std::vector<define> &defines = {})
	{
		return make(d, defines, [&](const blk_define *list, std::size_t n, blk_module **m) {
			return blk_module_source(d.get(), name.c_str(), text.c_str(), list, n, m);
		});
	}
	module(module &&) noexcept = default;
	module &operator=(module &&) noexcept = default;

	blk::kernel kernel(const std::string &name) const
	{
		return try_kernel(name).value();
	}
	/* The only one. */
	blk::kernel kernel() const
	{
		return find(nullptr).value();
	}
	result<blk::kernel> try_kernel(const std::string &name) const
	{
		return find(name.c_str());
	}
	std::vector<std::string> kernels() const
	{
		std::vector<std::string> names;
		while (const char *name = blk_module_kernel(get(), names.size())) names.emplace_back(name);
		return names;
	}
	blk_module *get() const noexcept
	{
		return shared_ ? shared_->get() : nullptr;
	}
	explicit operator bool() const noexcept
	{
		return bool(shared_);
	}

      private:
	using owner = detail::owner<blk_module, blk_module_close>;
	explicit module(std::shared_ptr<owner> shared) : shared_(std::move(shared))
	{
	}
	template <class F>
	static result<module> make(const device &d, const std::vector<define> &defines, const F &open)
	{
		std::vector<blk_define> list;
		for (const define &one : defines) list.push_back({one.name().c_str(), one.value().c_str()});
		blk_module *m = nullptr;
		if (blk_status status = open(list.data(), list.size(), &m)) return failure{status, blk_error()};
		return module(std::make_shared<owner>(m, d.keep()));
	}
	result<blk::kernel> find(const char *name) const
	{
		blk_kernel *handle = nullptr;
		blk_status status = blk_kernel_find(get(), name, &handle);
		blk::kernel k(handle, shared_);
		if (!status) status = blk_kernel_parameters(handle, &k.parameters_, &k.count_);
		if (status) return failure{status, blk_error()};
		return k;
	}
	std::shared_ptr<owner> shared_;
};

} // namespace blk
#endif
