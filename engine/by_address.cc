// Calls on contiguous arrays, given by address or as an object with a buffer, such as NumPy's: they
// cost less than nanobind's arrays, and small calls would cost more than their work. Who calls them
// has checked everything.
#include "by_address.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "attention/attention_tasks.h"
#include "dispatch/choose_level.h"
#include "rows/cross_entropy_tasks.h"
#include "rows/distillation.h"
#include "rows/readings.h"
#include "rows/row_tasks.h"
#include "rows/sampling.h"
#include "rows/temperature.h"

namespace softscope {
namespace {

namespace nb = nanobind;

// What would crash: no memory, or a type that does not exist.
void refuse_if(bool wrong) {
  if (wrong) throw nb::value_error("no arrays at these addresses, or of another type.");
}

// The memory of an argument: an address, or an object with a buffer, which is held meanwhile.
class Memory {
 public:
  explicit Memory(nb::handle given, bool written = false) {
    if (PyLong_Check(given.ptr())) {
      address_ = PyLong_AsSize_t(given.ptr());
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return;
    }
    // Simple: refused unless contiguous.
    const int flags = written ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    if (PyObject_GetBuffer(given.ptr(), &view_, flags) != 0) throw nb::python_error();
    address_ = reinterpret_cast<uintptr_t>(view_.buf);
  }
  ~Memory() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(address_);
  }

 private:
  Py_buffer view_{};
  uintptr_t address_ = 0;
};

bool is_type(int type) { return type >= 0 && type < kTypes; }

// Contiguous rows at an address: how many, their length and type.
using RowsAt = std::tuple<size_t, size_t, int>;

// Such rows where any type is read in float64.
WideRows wide_rows(const Memory& x, const RowsAt& which) {
  const auto [count, n, type] = which;
  refuse_if(!x.as<char>() || !is_type(type));
  return {.data = x.as<const void>(), .type = static_cast<Type>(type), .count = count, .n = n};
}

void run_at(Operation operation, const Memory& x, const Memory& y, nb::handle result,
            const RowsAt& which, const double* numbers, int threads) {
  const auto [count, n, type] = which;
  const Memory out(result, true);
  refuse_if(!x.as<char>() || !y.as<char>() || !out.as<char>() || !is_type(type));
  const bool to_rows = gives_rows(operation);
  const auto row = static_cast<ptrdiff_t>(n);
  const auto input = [&](const Memory& from) {
    return Operand<const char>{.data = from.as<const char>(), .strides = {row}, .step = 1};
  };
  const Rows rows = {
      .type = static_cast<Type>(type),
      .lead = {count},
      .n = n,
      .x = input(x),
      .y = input(y),
      .out = {.data = out.as<char>(), .strides = {to_rows ? row : 1}, .step = to_rows ? 1 : 0},
      .out_size = operation == kState ? sizeof(State) : kTypeSize[type],
      .numbers = numbers,
      .numbers_strides = {0}};
  const nb::gil_scoped_release released;
  run(kernels(), operation, rows, threads);
}

// One input and one temperature; or an α besides; or a second input and an α, which an operation
// without it does not read.
void define_rows(nb::module_& m, const char* name, Operation operation) {
  m.def(name,
        [operation](nb::handle x, nb::handle out, const RowsAt& which, double t, int threads) {
          const Memory from(x);
          run_at(operation, from, from, out, which, &t, threads);
        });
}
void define_alpha_rows(nb::module_& m, const char* name, Operation operation) {
  m.def(name, [operation](nb::handle x, nb::handle out, const RowsAt& which, double t, double alpha,
                          int threads) {
    const Memory from(x);
    const double numbers[] = {t, alpha};
    run_at(operation, from, from, out, which, numbers, threads);
  });
}
void define_two_inputs(nb::module_& m, const char* name, Operation operation) {
  m.def(name, [operation](nb::handle x, nb::handle y, nb::handle out, const RowsAt& which, double t,
                          double alpha, int threads) {
    const double numbers[] = {t, alpha};
    run_at(operation, Memory(x), Memory(y), out, which, numbers, threads);
  });
}

// One reading of each state: the first seven numbers of rows of float64. `temperatures`: as in
// `labelled`.
void reading_at(nb::handle states, nb::handle result, const RowsAt& which, int reading, double t,
                nb::handle temperatures, int threads) {
  const auto [count, width, type] = which;
  const Memory from(states), to(result, true), each(temperatures);
  refuse_if(!from.as<double>() || !to.as<double>() || type != kFloat64 ||
            width * sizeof(double) < sizeof(State) || reading < 0 ||
            reading >= static_cast<int>(Reading::kCount));
  const bool one = each.as<double>() == nullptr;
  const States rows = {.numbers = from.as<const double>(),
                       .count = count,
                       .width = width,
                       .temperatures = one ? &t : each.as<const double>(),
                       .temperatures_row = one ? 0 : 1};
  const nb::gil_scoped_release released;
  read_states(static_cast<Reading>(reading), rows, to.as<double>(), threads);
}

// `targets`: one for each row; without them, all have `target`.
void temperature_for_at(nb::handle x, nb::handle result, const RowsAt& which, bool peak,
                        double target, nb::handle targets, int threads) {
  const Memory from(x), to(result, true), each(targets);
  refuse_if(!to.as<double>());
  const bool one = each.as<double>() == nullptr;
  const Searches rows = {.x = wide_rows(from, which),
                         .targets = one ? &target : each.as<const double>(),
                         .targets_row = one ? 0 : 1,
                         .peak = peak};
  const nb::gil_scoped_release released;
  find_temperatures(rows, to.as<double>(), threads);
}

// Writes the mean loss in the type of the rows. `temperatures`: as in `labelled`.
void distillation_at(nb::handle student, nb::handle teacher, nb::handle result, const RowsAt& which,
                     double t, nb::handle temperatures, int threads) {
  const Memory learns(student), knows(teacher), to(result, true), each(temperatures);
  refuse_if(!to.as<char>());
  const bool one = each.as<double>() == nullptr;
  const Lessons rows = {.student = wide_rows(learns, which),
                        .teacher = wide_rows(knows, which),
                        .temperatures = one ? &t : each.as<const double>(),
                        .temperatures_row = one ? 0 : 1};
  const nb::gil_scoped_release released;
  kernels().cross_entropy.write[rows.student.type](distillation(rows, threads), to.as<void>());
}

size_t first_without_weights_at(nb::handle x, const RowsAt& which) {
  const Memory from(x);
  return first_without_weights(wide_rows(from, which));
}

// top_k, top_p and min_p.
using FiltersAt = std::tuple<size_t, double, double>;

// Every row must have weights.
void sample_at(nb::handle x, nb::handle result, const RowsAt& which, double t,
               nb::handle temperatures, const FiltersAt& filters, nb::handle uniform, int threads) {
  const Memory from(x), to(result, true), each(temperatures), numbers(uniform);
  refuse_if(!to.as<int64_t>() || !numbers.as<double>() || std::get<1>(which) == 0 ||
            std::get<0>(filters) == 0);
  const bool one = each.as<double>() == nullptr;
  const Draws rows = {.x = wide_rows(from, which),
                      .temperatures = one ? &t : each.as<const double>(),
                      .temperatures_row = one ? 0 : 1,
                      .top_k = std::get<0>(filters),
                      .top_p = std::get<1>(filters),
                      .min_p = std::get<2>(filters),
                      .uniform = numbers.as<const double>()};
  const nb::gil_scoped_release released;
  draw(rows, to.as<int64_t>(), threads);
}

// The index that is ignored, ε, and the reduction.
using LossAt = std::tuple<int64_t, double, int>;
enum Reduction { kNone, kSum, kMean };

// `temperatures`: one for each row; without them, all have `t`.
LabelledRows labelled(const Memory& x, const Memory& targets, const RowsAt& which,
                      const LossAt& loss, const double& t, const Memory& temperatures) {
  const auto [count, n, type] = which;
  refuse_if(!x.as<char>() || !targets.as<char>() || count == 0 || n == 0 || !is_type(type));
  const auto* each = temperatures.as<const double>();
  return {.type = static_cast<Type>(type),
          .x = x.as<const char>(),
          .count = count,
          .n = n,
          .temperatures = each != nullptr ? each : &t,
          .temperatures_row = each != nullptr ? 1 : 0,
          .targets = targets.as<const int64_t>(),
          .ignored = std::get<0>(loss),
          .smoothing = std::get<1>(loss)};
}

// What the mean divides by; the mean of no rows is 0.
double divisor(const LabelledRows& rows, const LossAt& loss) {
  if (std::get<2>(loss) != kMean) return 1;
  const size_t kept = kept_rows(rows);
  return kept == 0 ? 1 : static_cast<double>(kept);
}

// Writes the losses in float64, or their sum or mean in the type of x, and the sums of each row if
// there is an address for them. False if a target is no class; then nothing is written.
bool cross_entropy_at(nb::handle x, nb::handle targets, const RowsAt& which, const LossAt& loss,
                      double t, nb::handle temperatures, nb::handle out, uintptr_t sums,
                      int threads) {
  const Memory from(x), classes(targets), each(temperatures), to(out, true);
  const LabelledRows rows = labelled(from, classes, which, loss, t, each);
  refuse_if(!to.as<char>());
  const nb::gil_scoped_release released;
  if (first_misfit(rows) != rows.count) return false;
  const bool reduced = std::get<2>(loss) != kNone;
  const double total = cross_entropy(kernels(), rows, reduced ? nullptr : to.as<double>(),
                                     reinterpret_cast<LossSums*>(sums), threads);
  if (reduced) {
    kernels().cross_entropy.write[rows.type](total / divisor(rows, loss), to.as<void>());
  }
  return true;
}

// `gradient`: of each loss in float64, or of the sum or mean in the type of x.
void cross_entropy_backward_at(nb::handle x, nb::handle targets, const RowsAt& which,
                               const LossAt& loss, double t, nb::handle temperatures,
                               uintptr_t gradient, uintptr_t sums, uintptr_t out, int threads) {
  const Memory from(x), classes(targets), own(temperatures);
  const LabelledRows rows = labelled(from, classes, which, loss, t, own);
  refuse_if(out == 0 || sums == 0 || gradient == 0);
  if (first_misfit(rows) != rows.count) throw nb::value_error("the targets have changed.");
  const nb::gil_scoped_release released;
  double one = 0;
  LossGradient each = {.each = reinterpret_cast<const double*>(gradient), .step = 1, .factor = 1};
  if (std::get<2>(loss) != kNone) {
    one = kernels().cross_entropy.read[rows.type](reinterpret_cast<const void*>(gradient));
    each = {.each = &one, .step = 0, .factor = 1 / divisor(rows, loss)};
  }
  cross_entropy_backward(kernels(), rows, reinterpret_cast<const LossSums*>(sums), each,
                         reinterpret_cast<void*>(out), threads);
}

// Where a tensor (batch, heads, rows, entries) lies: its address, and the distance between batch
// entries, heads and rows. Entries are contiguous.
using Placed = std::tuple<uintptr_t, ptrdiff_t, ptrdiff_t, ptrdiff_t>;

template <class Data>
HeadRows<Data> placed(const Placed& at) {
  return {.data = reinterpret_cast<Data*>(std::get<0>(at)),
          .head = std::get<2>(at),
          .row = std::get<3>(at)};
}

// The same for a mask: its address, its distances down to the key, and its MaskType.
using PlacedMask = std::tuple<uintptr_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, int>;

// batch, heads, key heads, n, m, d, dv
using Sizes = std::array<size_t, 7>;

// Scale, cap (0: none), position of the first query, how far a query sees to the left and right,
// and the mask.
using View = std::tuple<double, double, int64_t, int64_t, int64_t, std::optional<PlacedMask>>;

// Everything but where the results go. The arrays that it makes live as long as it does.
struct Described {
  Attentions all;
  std::vector<double> scales;
  std::vector<int64_t> positions;

  Described(const Placed& q, const Placed& k, const Placed& v, const Sizes& sizes, const View& view,
            int type)
      : all{}, scales(sizes[1], std::get<0>(view)), positions(sizes[3]) {
    const auto [batch, heads, kv_heads, n, m, d, dv] = sizes;
    const auto& [scale, softcap, start, left, right, mask] = view;
    refuse_if(!is_type(type) || kv_heads == 0 || heads % kv_heads != 0 || std::get<0>(q) == 0 ||
              std::get<0>(k) == 0 || (std::get<0>(v) == 0) != (dv == 0));
    for (size_t i = 0; i < n; ++i) positions[i] = start + static_cast<int64_t>(i);
    all.type = static_cast<Type>(type);
    all.kv_heads = kv_heads;
    all.batch = {batch};
    all.q = {std::get<1>(q)};
    all.k = {std::get<1>(k)};
    all.v = {std::get<1>(v)};
    Attention& one = all.one;
    one.heads = heads / kv_heads;
    one.n = n;
    one.m = m;
    one.d = d;
    one.dv = dv;
    one.q = placed<const void>(q);
    one.k = placed<const void>(k);
    one.v = placed<const void>(v);
    one.scale = scales.data();
    one.positions = positions.data();
    one.left = left;
    one.right = right;
    one.softcap = softcap;
    one.mask.type = kNoMask;
    if (mask) {
      const auto [address, batches, head, row, key, kind] = *mask;
      refuse_if(address == 0 || kind < 0 || kind >= kNoMask);
      all.mask = {batches};
      one.mask = {.type = static_cast<MaskType>(kind),
                  .data = reinterpret_cast<const void*>(address),
                  .head = head,
                  .row = row,
                  .key = key};
    }
  }

  void place_out(const Placed& out) {
    refuse_if(std::get<0>(out) == 0);
    all.out = {std::get<1>(out)};
    all.one.out = placed<void>(out);
  }

  // Contiguous rows of results, or none if there is no memory.
  template <class Data>
  void place(const Memory& memory, size_t width, std::vector<ptrdiff_t>& batch,
             HeadRows<Data>& rows) const {
    if (memory.as<Data>() == nullptr) return;
    const auto row = static_cast<ptrdiff_t>(width);
    const ptrdiff_t head = static_cast<ptrdiff_t>(all.one.n) * row;
    batch = {head * static_cast<ptrdiff_t>(all.one.heads * all.kv_heads)};
    rows = {.data = memory.as<Data>(), .head = head, .row = row};
  }
  void place_state(const Memory& memory) {
    place(memory, kAttentionNumbers, all.state, all.one.state);
  }
};

// `out` and `state` are contiguous. Without values there is no `out`.
void attention_at(const Placed& q, const Placed& k, const Placed& v, nb::handle out,
                  nb::handle state, const Sizes& sizes, const View& view, bool statistics, int type,
                  int threads) {
  const Memory output(out, true), numbers(state, true);
  Described problem(q, k, v, sizes, view, type);
  problem.place(output, problem.all.one.dv, problem.all.out, problem.all.one.out);
  problem.place_state(numbers);
  Attention& one = problem.all.one;
  refuse_if((one.out.data == nullptr) != (one.dv == 0) ||
            (one.out.data == nullptr && one.state.data == nullptr));
  one.statistics = one.state.data != nullptr && statistics;
  const nb::gil_scoped_release released;
  attend(kernels(), problem.all, threads);
}

// `gradients`: the addresses of dq, dk and dv, contiguous.
void attention_backward_at(const Placed& q, const Placed& k, const Placed& v, const Placed& out,
                           const Placed& grad, nb::handle state,
                           const std::array<uintptr_t, 3>& gradients, const Sizes& sizes,
                           const View& view, int type, int threads) {
  const Memory numbers(state);
  Described problem(q, k, v, sizes, view, type);
  problem.place_out(out);
  refuse_if(!numbers.as<double>() || std::get<0>(grad) == 0 || gradients[0] == 0 ||
            gradients[1] == 0 || gradients[2] == 0);
  problem.place_state(numbers);
  std::vector<double> dscale(sizes[0] * sizes[1] * sizes[3]);  // nobody asks for it
  const Gradients to = {.grad = placed<const void>(grad),
                        .grad_batch = {std::get<1>(grad)},
                        .dq = reinterpret_cast<void*>(gradients[0]),
                        .dk = reinterpret_cast<void*>(gradients[1]),
                        .dv = reinterpret_cast<void*>(gradients[2]),
                        .dscale = dscale.data()};
  const nb::gil_scoped_release released;
  attend_backward(kernels(), problem.all, to, threads);
}

}  // namespace

void define_calls_by_address(nb::module_& m) {
  define_rows(m, "softmax_at", kSoftmax);
  define_rows(m, "log_softmax_at", kLogSoftmax);
  define_rows(m, "logsumexp_at", kLogSumExp);
  define_rows(m, "state_at", kState);
  define_alpha_rows(m, "entmax_at", kEntmax);
  define_two_inputs(m, "jacobian_product_at", kJacobianProduct);
  define_two_inputs(m, "log_softmax_backward_at", kLogSoftmaxBackward);
  m.def("reading_at", reading_at);
  m.def("temperature_for_at", temperature_for_at);
  m.def("distillation_at", distillation_at);
  m.def("first_without_weights_at", first_without_weights_at);
  m.def("sample_at", sample_at);
  m.def("cross_entropy_at", cross_entropy_at);
  m.def("cross_entropy_backward_at", cross_entropy_backward_at);
  m.def("attention_at", attention_at);
  m.def("attention_backward_at", attention_backward_at);
}

}  // namespace softscope
