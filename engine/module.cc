// softscope._engine: the only file, beside by_address.cc and tensors.cc, that knows Python. It
// checks what the type system cannot, releases the interpreter lock and calls the kernels.
// Friendlier checks are up to the public functions.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "attention/attention_tasks.h"
#include "by_address.h"
#include "dispatch/choose_level.h"
#include "rows/row_tasks.h"
#include "tensors.h"
#include "threads/parallel_for.h"

namespace nb = nanobind;

namespace {

// ro: else nanobind refuses read-only arrays.
using Input = nb::ndarray<nb::ro, nb::device::cpu>;
using Output = nb::ndarray<nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::device::cpu>;

using softscope::Kernels, softscope::kernels, softscope::MaskType, softscope::Operand,
    softscope::Operation, softscope::Rows, softscope::State, softscope::Type, softscope::gives_rows,
    softscope::kTypeSize, softscope::numbers_per_row;

constexpr size_t kStateNumbers = sizeof(State) / sizeof(double);

Type type_of(const nb::dlpack::dtype& dtype, bool brain) {
  if (dtype == nb::dtype<float>()) return softscope::kFloat32;
  if (dtype == nb::dtype<double>()) return softscope::kFloat64;
  // NumPy cannot export bfloat16, so both 16-bit types come as their bits.
  if (dtype == nb::dtype<uint16_t>()) return brain ? softscope::kBFloat16 : softscope::kFloat16;
  throw nb::type_error("x must be float32, float64, or 16-bit floats viewed as uint16.");
}

// One temperature for all rows, or numbers for each row. If an operation takes several numbers, one
// set of them may serve all rows.
struct PerRow {
  double temperature = 1;
  const Numbers* each = nullptr;

  explicit PerRow(double t) : temperature(t) {}
  explicit PerRow(const Numbers& numbers) : each(&numbers) {}

  bool shared(Operation operation) const {
    return each == nullptr || (numbers_per_row(operation) > 1 && each->ndim() == 1);
  }
};

bool same_shape(const Input& a, const Input& b) {
  if (a.ndim() != b.ndim() || a.dtype() != b.dtype()) return false;
  for (size_t i = 0; i < a.ndim(); ++i) {
    if (a.shape(i) != b.shape(i)) return false;
  }
  return true;
}

// Whether the shapes fit. The numbers have the shape of x without its last axis, plus an axis for
// them if there are several per row. `out` has the shape of x, or lacks the last axis, plus an axis
// for the state if it is one.
bool fit(Operation operation, const Input& x, const Output& out, const PerRow& numbers) {
  if (x.ndim() == 0) return false;
  const size_t lead = x.ndim() - 1;
  const size_t extra = operation == softscope::kLogSumExp ? 0 : 1;
  const size_t count = numbers_per_row(operation);
  if (out.ndim() != lead + extra) return false;
  if (numbers.each == nullptr && count > 1) return false;
  const bool shared = numbers.shared(operation);
  if (!shared && numbers.each->ndim() != lead + (count > 1 ? 1 : 0)) return false;
  for (size_t i = 0; i < lead; ++i) {
    if (out.shape(i) != x.shape(i)) return false;
    if (!shared && numbers.each->shape(i) != x.shape(i)) return false;
  }
  if (count > 1) {
    const size_t last = numbers.each->ndim() - 1;
    if (numbers.each->shape(last) != count || numbers.each->stride(last) != 1) return false;
  }
  if (operation == softscope::kState) {
    return out.shape(lead) == kStateNumbers && out.stride(lead) == 1 &&
           out.dtype() == nb::dtype<double>();
  }
  return out.dtype() == x.dtype() && (extra == 0 || out.shape(lead) == x.shape(lead));
}

// An array whose last axis has this step. `whole`: entries that make one result.
template <class Byte, class Array>
Operand<Byte> operand(const Array& x, size_t lead, ptrdiff_t step, ptrdiff_t whole = 1) {
  Operand<Byte> rows = {.data = static_cast<Byte*>(x.data()), .strides = {}, .step = step};
  for (size_t i = 0; i < lead; ++i) rows.strides.push_back(x.stride(i) / whole);
  return rows;
}

// Rows of x, and of y if the operation takes two inputs, along the last axis.
void run(Operation operation, const Input& x, const Input& y, const Output& out,
         const PerRow& numbers, bool brain, int threads) {
  if (!fit(operation, x, out, numbers) || !same_shape(x, y)) {
    throw nb::value_error("the shapes or dtypes of the arrays do not fit.");
  }
  const size_t lead = x.ndim() - 1;
  const bool state = operation == softscope::kState;
  const ptrdiff_t out_step = gives_rows(operation) ? out.stride(lead) : 0;
  const Type type = type_of(x.dtype(), brain);
  Rows rows = {.type = type,
               .lead = {},
               .n = x.shape(lead),
               .x = operand<const char>(x, lead, x.stride(lead)),
               .y = operand<const char>(y, lead, y.stride(lead)),
               .out = operand<char>(out, lead, out_step, state ? kStateNumbers : 1),
               .out_size = state ? sizeof(State) : kTypeSize[type],
               .numbers = numbers.each == nullptr ? &numbers.temperature : numbers.each->data(),
               .numbers_strides = {}};
  for (size_t i = 0; i < lead; ++i) {
    rows.lead.push_back(x.shape(i));
    rows.numbers_strides.push_back(numbers.shared(operation) ? 0 : numbers.each->stride(i));
  }
  const nb::gil_scoped_release released;
  softscope::run(kernels(), operation, rows, threads);
}

// With a number for all rows (PerRowArgument is double), or with an array of them.
template <class PerRowArgument>
void define_with(nb::module_& m, const char* name, Operation operation) {
  // noconvert: a silent copy of x would cost more than the work, and a copy of `out` would lose it.
  const auto x = nb::arg("x").noconvert(), y = nb::arg("y").noconvert();
  const auto out = nb::arg("out").noconvert(), numbers = nb::arg("numbers").noconvert();
  const auto brain = nb::arg("brain"), threads = nb::arg("threads");
  if (softscope::takes_two_inputs(operation)) {
    const auto call = [operation](const Input& a, const Input& b, const Output& result,
                                  PerRowArgument each, bool bf16,
                                  int n) { run(operation, a, b, result, PerRow(each), bf16, n); };
    m.def(name, call, x, y, out, numbers, brain, threads);
  } else {
    const auto call = [operation](const Input& a, const Output& result, PerRowArgument each,
                                  bool bf16,
                                  int n) { run(operation, a, a, result, PerRow(each), bf16, n); };
    m.def(name, call, x, out, numbers, brain, threads);
  }
}

void define(nb::module_& m, const char* name, Operation operation) {
  define_with<double>(m, name, operation);
  define_with<const Numbers&>(m, name, operation);
}

using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::device::cpu>;
using Vectors = nb::ndarray<const double, nb::device::cpu>;

// Strides of the axes before the heads, of an array (…, heads, n, width).
template <class Arrays>
std::vector<ptrdiff_t> before_heads(const Arrays& x) {
  std::vector<ptrdiff_t> strides;
  for (size_t i = 0; i + 3 < x.ndim(); ++i) strides.push_back(x.stride(i));
  return strides;
}

template <class Arrays>
bool has(const Arrays& x, const Input& q, size_t heads, size_t n, size_t width) {
  const size_t lead = q.ndim() - 3;
  if (x.ndim() != q.ndim() || x.shape(lead) != heads || x.shape(lead + 1) != n ||
      x.shape(lead + 2) != width) {
    return false;
  }
  for (size_t i = 0; i < lead; ++i) {
    if (x.shape(i) != q.shape(i)) return false;
  }
  return true;
}

template <class Arrays>
bool dense(const Arrays& x) {
  return x.shape(x.ndim() - 1) <= 1 || x.stride(x.ndim() - 1) == 1;
}

// The rows of an array (…, heads, rows, entries), as `Data`.
template <class Data, class Arrays>
softscope::HeadRows<Data> head_rows(const Arrays& x) {
  const size_t lead = x.ndim() - 3;
  return {.data = static_cast<Data*>(
              const_cast<std::remove_const_t<Data>*>(static_cast<const Data*>(x.data()))),
          .head = x.stride(lead),
          .row = x.stride(lead + 1)};
}

MaskType mask_type(const Input& mask, bool brain) {
  if (mask.dtype() == nb::dtype<uint8_t>()) return softscope::kMaskBool;
  return static_cast<MaskType>(type_of(mask.dtype(), brain));
}

// How queries see keys. The arrays belong to Python, and live as long as this does.
struct AttentionOptions {
  Vector scale;       // of each head
  Indices positions;  // of each query
  int64_t left, right;
  std::optional<Input> mask;  // (…, heads, n, m); boolean as bytes
  bool brain_mask;
  double softcap;  // 0: none
  std::optional<Vector> sink;
};

softscope::Attentions attentions(const Input& q, const Input& k, const std::optional<Input>& v,
                                 const AttentionOptions& options, bool brain) {
  const bool deep = q.ndim() >= 3 && k.ndim() == q.ndim();
  if (!deep) throw nb::value_error("q and k must have the same axes.");
  const size_t lead = q.ndim() - 3;
  const size_t heads = q.shape(lead), n = q.shape(lead + 1), d = q.shape(lead + 2);
  const size_t kv_heads = k.shape(lead), m = k.shape(lead + 1);
  softscope::Attentions all;
  softscope::Attention& one = all.one;
  const bool fits =
      kv_heads != 0 && heads % kv_heads == 0 && has(k, q, kv_heads, m, d) && dense(q) && dense(k) &&
      k.dtype() == q.dtype() && options.scale.shape(0) == heads &&
      options.positions.shape(0) == n && (!options.sink || options.sink->shape(0) == heads) &&
      (!options.mask || has(*options.mask, q, heads, n, m)) &&
      (!v || (has(*v, q, kv_heads, m, v->shape(lead + 2)) && dense(*v) && v->dtype() == q.dtype()));
  if (!fits) throw nb::value_error("the shapes or dtypes of the arrays do not fit.");
  all.type = type_of(q.dtype(), brain);
  all.kv_heads = kv_heads;
  for (size_t i = 0; i < lead; ++i) all.batch.push_back(q.shape(i));
  all.q = before_heads(q);
  all.k = before_heads(k);
  if (v) all.v = before_heads(*v);
  if (options.mask) all.mask = before_heads(*options.mask);
  one = {};
  one.heads = heads / kv_heads;
  one.n = n;
  one.m = m;
  one.d = d;
  one.dv = v ? v->shape(lead + 2) : 0;
  one.q = head_rows<const void>(q);
  one.k = head_rows<const void>(k);
  if (v) one.v = head_rows<const void>(*v);
  one.scale = options.scale.data();
  one.sink = options.sink ? options.sink->data() : nullptr;
  one.positions = options.positions.data();
  one.left = options.left;
  one.right = options.right;
  one.softcap = options.softcap;
  one.mask.type = softscope::kNoMask;
  if (options.mask) {
    one.mask = {.type = mask_type(*options.mask, options.brain_mask),
                .data = options.mask->data(),
                .head = options.mask->stride(lead),
                .row = options.mask->stride(lead + 1),
                .key = options.mask->stride(lead + 2)};
  }
  return all;
}

void attention(const Input& q, const Input& k, const std::optional<Input>& v,
               const std::optional<Output>& out, const std::optional<Output>& state,
               const AttentionOptions& options, bool brain, bool statistics, int threads) {
  softscope::Attentions all = attentions(q, k, v, options, brain);
  softscope::Attention& one = all.one;
  const size_t lead = q.ndim() - 3, heads = q.shape(lead);
  constexpr size_t numbers = softscope::kAttentionNumbers;
  if (v.has_value() != out.has_value() || (!out && !state) ||
      (out && !(has(*out, q, heads, one.n, one.dv) && dense(*out) && out->dtype() == q.dtype())) ||
      (state && !(has(*state, q, heads, one.n, numbers) && dense(*state) &&
                  state->dtype() == nb::dtype<double>()))) {
    throw nb::value_error("the shapes or dtypes of the results do not fit.");
  }
  if (out) {
    all.out = before_heads(*out);
    one.out = head_rows<void>(*out);
  }
  if (state) {
    all.state = before_heads(*state);
    one.state = head_rows<double>(*state);
  }
  one.statistics = state.has_value() && statistics;
  const nb::gil_scoped_release released;
  softscope::attend(kernels(), all, threads);
}

// Whether a gradient is contiguous, of q's type, and of this shape after q's axes before the heads.
bool whole(const Output& x, const Input& q, size_t heads, size_t n, size_t width) {
  size_t step = 1;
  bool contiguous = has(x, q, heads, n, width) && x.dtype() == q.dtype();
  for (size_t i = x.ndim(); contiguous && i-- > 0;) {
    contiguous = x.shape(i) == 1 || x.stride(i) == static_cast<int64_t>(step);
    step *= x.shape(i);
  }
  return contiguous;
}

void attention_backward(const Input& q, const Input& k, const Input& v, const Input& out,
                        const Vectors& state, const Input& grad, const Output& dq, const Output& dk,
                        const Output& dv, const nb::ndarray<double, nb::c_contig>& dscale,
                        const AttentionOptions& options, bool brain, int threads) {
  softscope::Attentions all = attentions(q, k, v, options, brain);
  softscope::Attention& one = all.one;
  const size_t lead = q.ndim() - 3, heads = q.shape(lead), kv_heads = all.kv_heads;
  if (!(has(out, q, heads, one.n, one.dv) && dense(out) && out.dtype() == q.dtype() &&
        has(grad, q, heads, one.n, one.dv) && dense(grad) && grad.dtype() == q.dtype() &&
        has(state, q, heads, one.n, softscope::kAttentionNumbers) && dense(state) &&
        whole(dq, q, heads, one.n, one.d) && whole(dk, q, kv_heads, one.m, one.d) &&
        whole(dv, q, kv_heads, one.m, one.dv) && dscale.size() * one.d == dq.size())) {
    throw nb::value_error("the shapes or dtypes of the gradients do not fit.");
  }
  all.out = before_heads(out);
  one.out = head_rows<void>(out);  // the backward pass only reads it
  all.state = before_heads(state);
  one.state = head_rows<double>(state);
  const softscope::Gradients gradients = {.grad = head_rows<const void>(grad),
                                          .grad_batch = before_heads(grad),
                                          .dq = dq.data(),
                                          .dk = dk.data(),
                                          .dv = dv.data(),
                                          .dscale = dscale.data(),
                                          .dalpha = nullptr};
  const nb::gil_scoped_release released;
  softscope::attend_backward(kernels(), all, gradients, threads);
}

// Sparse attention, with an alpha for each head: the output, the numbers of every row, or both.
void sparse_attention(const Input& q, const Input& k, const std::optional<Input>& v,
                      const Vector& alpha, const std::optional<Output>& out, const Output& numbers,
                      const AttentionOptions& options, bool brain, bool statistics, int threads) {
  softscope::Attentions all = attentions(q, k, v, options, brain);
  softscope::Attention& one = all.one;
  const size_t lead = q.ndim() - 3, heads = q.shape(lead);
  if (alpha.shape(0) != heads || v.has_value() != out.has_value() || options.sink ||
      (out && !(has(*out, q, heads, one.n, one.dv) && dense(*out) && out->dtype() == q.dtype())) ||
      !(has(numbers, q, heads, one.n, softscope::kSparseNumbers) && dense(numbers) &&
        numbers.dtype() == nb::dtype<double>())) {
    throw nb::value_error("the shapes or dtypes of the results do not fit.");
  }
  if (out) {
    all.out = before_heads(*out);
    one.out = head_rows<void>(*out);
  }
  all.state = before_heads(numbers);
  one.state = head_rows<double>(numbers);
  one.statistics = statistics;
  one.alpha = alpha.data();
  const nb::gil_scoped_release released;
  softscope::attend_sparsely(kernels(), all, threads);
}

void sparse_attention_backward(const Input& q, const Input& k, const Input& v, const Vector& alpha,
                               const Vectors& numbers, const Input& grad, const Output& dq,
                               const Output& dk, const Output& dv,
                               const nb::ndarray<double, nb::c_contig>& dscale,
                               const std::optional<nb::ndarray<double, nb::c_contig>>& dalpha,
                               const AttentionOptions& options, bool brain, int threads) {
  softscope::Attentions all = attentions(q, k, v, options, brain);
  softscope::Attention& one = all.one;
  const size_t lead = q.ndim() - 3, heads = q.shape(lead), kv_heads = all.kv_heads;
  if (!(alpha.shape(0) == heads && !options.sink && has(grad, q, heads, one.n, one.dv) &&
        dense(grad) && grad.dtype() == q.dtype() &&
        has(numbers, q, heads, one.n, softscope::kSparseNumbers) && dense(numbers) &&
        whole(dq, q, heads, one.n, one.d) && whole(dk, q, kv_heads, one.m, one.d) &&
        whole(dv, q, kv_heads, one.m, one.dv) && dscale.size() * one.d == dq.size() &&
        (!dalpha || dalpha->size() == dscale.size()))) {
    throw nb::value_error("the shapes or dtypes of the gradients do not fit.");
  }
  all.state = before_heads(numbers);
  one.state = head_rows<double>(numbers);
  one.alpha = alpha.data();
  const softscope::Gradients gradients = {.grad = head_rows<const void>(grad),
                                          .grad_batch = before_heads(grad),
                                          .dq = dq.data(),
                                          .dk = dk.data(),
                                          .dv = dv.data(),
                                          .dscale = dscale.data(),
                                          .dalpha = dalpha ? dalpha->data() : nullptr};
  const nb::gil_scoped_release released;
  softscope::attend_backward(kernels(), all, gradients, threads);
}

void read_attention(const Input& q, const Input& k, const std::optional<Input>& v,
                    const std::optional<Input>& grad, const std::optional<Input>& key_lengths,
                    const Output& numbers, const std::optional<Output>& weights,
                    const AttentionOptions& options, bool brain, int threads) {
  softscope::Attentions all = attentions(q, k, v, options, brain);
  softscope::Attention& one = all.one;
  const size_t lead = q.ndim() - 3, heads = q.shape(lead);
  const nb::dlpack::dtype computed =
      all.type == softscope::kFloat64 ? nb::dtype<double>() : nb::dtype<float>();
  bool fits = grad.has_value() == v.has_value() &&
              has(numbers, q, heads, one.n, softscope::kReadingNumbers) && dense(numbers) &&
              numbers.dtype() == nb::dtype<double>();
  if (grad) {
    fits =
        fits && has(*grad, q, heads, one.n, one.dv) && dense(*grad) && grad->dtype() == q.dtype();
  }
  if (weights) {
    fits = fits && has(*weights, q, heads, one.n, one.m) && dense(*weights) &&
           weights->dtype() == computed;
  }
  if (key_lengths) {
    fits = fits && key_lengths->ndim() == lead + 2 && key_lengths->shape(lead) == all.kv_heads &&
           key_lengths->shape(lead + 1) == one.m && dense(*key_lengths) &&
           key_lengths->dtype() == computed;
    for (size_t i = 0; fits && i < lead; ++i) fits = key_lengths->shape(i) == q.shape(i);
  }
  if (!fits) throw nb::value_error("the shapes or dtypes of the readings do not fit.");
  all.state = before_heads(numbers);
  one.state = head_rows<double>(numbers);
  softscope::Readings readings = {};
  if (grad) {
    readings.grad = head_rows<const void>(*grad);
    readings.grad_batch = before_heads(*grad);
  }
  if (weights) {
    readings.weights = head_rows<void>(*weights);
    readings.weights_batch = before_heads(*weights);
  }
  if (key_lengths) {
    readings.key_lengths = {
        .data = key_lengths->data(), .head = key_lengths->stride(lead), .row = 0};
    for (size_t i = 0; i < lead; ++i) {
      readings.key_lengths_batch.push_back(key_lengths->stride(i));
    }
  }
  const nb::gil_scoped_release released;
  softscope::read_rows(kernels(), all, readings, threads);
}

}  // namespace

NB_MODULE(_engine, m) {
  // Releasing the interpreter lock and taking it again would wait for the main interpreter's, for
  // ever.
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    throw nb::import_error(
        "softscope runs only in Python's main interpreter, but is imported in a subinterpreter; "
        "use another process, or the main interpreter");
  }
  kernels();  // a wrong SOFTSCOPE_ISA is then an ImportError, and not a surprise later
  softscope::prepare_for_forks();

  m.doc() = "softscope's compiled kernels.";

  m.def("isa", [] { return std::string(kernels().isa); });

  m.def("isas", [] {
    std::vector<std::string> names;
    for (const Kernels* k : softscope::runnable_kernels()) names.emplace_back(k->isa);
    return names;
  });

  softscope::define_calls_by_address(m);
  softscope::define_tensors(m);

  define(m, "softmax", softscope::kSoftmax);
  define(m, "log_softmax", softscope::kLogSoftmax);
  define(m, "entmax", softscope::kEntmax);
  define(m, "logsumexp", softscope::kLogSumExp);
  define(m, "state", softscope::kState);
  define(m, "jacobian_product", softscope::kJacobianProduct);
  define(m, "log_softmax_backward", softscope::kLogSoftmaxBackward);
  define(m, "scaled_weights", softscope::kScaledWeights);

  const auto given = [](const char* name) { return nb::arg(name).noconvert(); };
  const auto optional = [](const char* name) { return nb::arg(name).noconvert().none(); };
  nb::class_<AttentionOptions>(m, "AttentionOptions")
      .def(
          "__init__",
          [](AttentionOptions* self, const Vector& scale, const Indices& positions, int64_t left,
             int64_t right, const std::optional<Input>& mask, bool brain_mask, double softcap,
             const std::optional<Vector>& sink) {
            new (self) AttentionOptions{.scale = scale,
                                        .positions = positions,
                                        .left = left,
                                        .right = right,
                                        .mask = mask,
                                        .brain_mask = brain_mask,
                                        .softcap = softcap,
                                        .sink = sink};
          },
          nb::kw_only(), given("scale"), given("positions"), nb::arg("left"), nb::arg("right"),
          optional("mask"), nb::arg("brain_mask"), nb::arg("softcap"), optional("sink"));
  // nanobind lists its instances in a table, and ends the process if there is no memory to let that
  // grow. So it grows now, to as many as calls of many threads will have at a time.
  std::vector<nb::object> at_a_time(64);
  for (nb::object& one : at_a_time) one = nb::inst_alloc(nb::type<AttentionOptions>());
  at_a_time.clear();

  m.def("attention", attention, given("q"), given("k"), optional("v"), nb::kw_only(),
        optional("out"), optional("state"), nb::arg("options"), nb::arg("brain"),
        nb::arg("statistics"), nb::arg("threads"));
  m.def("attention_backward", attention_backward, given("q"), given("k"), given("v"), nb::kw_only(),
        given("out"), given("state"), given("grad"), given("dq"), given("dk"), given("dv"),
        given("dscale"), nb::arg("options"), nb::arg("brain"), nb::arg("threads"));
  m.def("sparse_attention", sparse_attention, given("q"), given("k"), optional("v"), nb::kw_only(),
        given("alpha"), optional("out"), given("numbers"), nb::arg("options"), nb::arg("brain"),
        nb::arg("statistics"), nb::arg("threads"));
  m.def("sparse_attention_backward", sparse_attention_backward, given("q"), given("k"), given("v"),
        nb::kw_only(), given("alpha"), given("numbers"), given("grad"), given("dq"), given("dk"),
        given("dv"), given("dscale"), optional("dalpha"), nb::arg("options"), nb::arg("brain"),
        nb::arg("threads"));
  m.def("read_attention", read_attention, given("q"), given("k"), optional("v"), optional("grad"),
        nb::kw_only(), optional("key_lengths"), given("numbers"), optional("weights"),
        nb::arg("options"), nb::arg("brain"), nb::arg("threads"));
}
