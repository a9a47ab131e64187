// Looks at tensors through DLPack's exchange interface, which PyTorch offers as a table of C
// functions from 2.10 on, and at NumPy's arrays through their buffer: address, shape, strides and
// dtype in one step, where asking for each of them from Python takes longer than a small kernel.
// Nothing here needs the headers of PyTorch or NumPy.
//
// Every function returns None for what it does not know, and the caller then asks in Python.
#include "tensors.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

#include <array>

#include "attention/problem.h"
#include "rows/block.h"

namespace softscope {
namespace {

namespace nb = nanobind;

// As in dlpack.h 1.3, which promises that they stay.
struct Borrowed {
  void* data;
  int32_t device, device_index;
  int32_t ndim;
  nb::dlpack::dtype dtype;
  const int64_t* shape;
  const int64_t* strides;
  uint64_t offset;
};
struct Exchange {
  uint32_t major, minor;
  void* previous;
  void* allocate;
  void* from_object;
  void* to_object;
  int (*borrow)(void* object, Borrowed* tensor);  // 0, or −1 with a Python error set
};
constexpr int32_t kCpu = 1;

struct Known {
  const Exchange* exchange = nullptr;
  PyObject* tensor = nullptr;  // these types hold a plain tensor's memory; others may hold anything
  PyObject* parameter = nullptr;
  PyObject* is_neg = nullptr;
};
Known known;
PyObject* known_array = nullptr;

void know_arrays(nb::handle array) { known_array = nb::object(nb::borrow(array)).release().ptr(); }

void know_tensors(nb::handle capsule, nb::handle tensor, nb::handle parameter) {
  const auto* found =
      static_cast<const Exchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (found == nullptr) throw nb::python_error();
  if (found->major != 1) return;  // another layout, for which None is right
  known = {.exchange = found,
           .tensor = nb::object(nb::borrow(tensor)).release().ptr(),
           .parameter = nb::object(nb::borrow(parameter)).release().ptr(),
           .is_neg = PyUnicode_InternFromString("is_neg")};
}

// A CPU tensor's own memory. False for what has none, or holds other values than its memory.
bool look(nb::handle x, Borrowed& found) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(x.ptr()));
  if (known.exchange == nullptr || (type != known.tensor && type != known.parameter)) return false;
  if (known.exchange->borrow(x.ptr(), &found) != 0) {
    PyErr_Clear();  // sparse, nested, meta, or a transform's wrapper
    return false;
  }
  if (found.device != kCpu || found.data == nullptr || found.offset != 0) return false;
  PyObject* arguments[] = {x.ptr()};
  PyObject* negative = PyObject_VectorcallMethod(known.is_neg, arguments,
                                                 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (negative == nullptr) {
    PyErr_Clear();
    return false;
  }
  Py_DECREF(negative);
  return negative == Py_False;
}

constexpr uint8_t kFloat = 2, kBrain = 4, kBool = 6;  // of DLPack's types
constexpr int kMostAxes = 4;

// An array's own memory. The caller holds the array, and so its memory.
struct BorrowedArray : Borrowed {
  int64_t sizes[kMostAxes], distances[kMostAxes];
};
bool look(nb::handle x, BorrowedArray& found) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(x.ptr())) != known_array) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(x.ptr(), &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // a dtype that buffers do not know
    return false;
  }
  const char kind = view.format[0];
  // Longer formats tell of another byte order, or of records.
  bool known_type = view.format[1] == 0 && view.ndim <= kMostAxes &&
                    (kind == 'e' || kind == 'f' || kind == 'd' || kind == '?');
  found.data = view.buf;
  found.ndim = view.ndim;
  found.dtype = {.code = kind == '?' ? kBool : kFloat,
                 .bits = static_cast<uint8_t>(8 * view.itemsize),
                 .lanes = 1};
  for (int i = 0; known_type && i < view.ndim; ++i) {
    found.sizes[i] = view.shape[i];
    found.distances[i] = view.strides[i] / view.itemsize;
    known_type = view.strides[i] % view.itemsize == 0;
  }
  found.shape = found.sizes;
  found.strides = found.distances;
  PyBuffer_Release(&view);
  return known_type && found.data != nullptr;
}

// The engine's number of a dtype; kTypes if it has none.
int type_of(const nb::dlpack::dtype& dtype) {
  if (dtype.lanes != 1) return kTypes;
  if (dtype.code == kBrain) return dtype.bits == 16 ? kBFloat16 : kTypes;
  if (dtype.code != kFloat) return kTypes;
  return dtype.bits == 16   ? kFloat16
         : dtype.bits == 32 ? kFloat32
         : dtype.bits == 64 ? kFloat64
                            : kTypes;
}

bool contiguous(const Borrowed& x) {
  int64_t step = 1;
  for (int i = x.ndim - 1; i >= 0; --i) {
    if (x.shape[i] != 1 && x.strides[i] != step) return false;
    step *= x.shape[i];
  }
  return true;
}

bool aligned(const Borrowed& x) {
  return reinterpret_cast<uintptr_t>(x.data) % (x.dtype.bits / 8) == 0;
}

uintptr_t address(const Borrowed& x) { return reinterpret_cast<uintptr_t>(x.data); }

// Of contiguous rows: how many, their length and type. No rows if x has none of the four types.
struct Described {
  size_t count = 0, n = 0;
  int type = kTypes;
};
Described described(const Borrowed& x) {
  Described rows;
  if (x.ndim == 0 || type_of(x.dtype) == kTypes || !aligned(x) || !contiguous(x)) return rows;
  rows.type = type_of(x.dtype);
  rows.n = static_cast<size_t>(x.shape[x.ndim - 1]);
  rows.count = 1;
  for (int i = 0; i + 1 < x.ndim; ++i) rows.count *= static_cast<size_t>(x.shape[i]);
  return rows;
}

nb::tuple as_tuple(const Described& rows) { return nb::make_tuple(rows.count, rows.n, rows.type); }

// (address, rows, number of axes) of contiguous rows.
nb::object rows_of(nb::handle x) {
  Borrowed found;
  if (!look(x, found)) return nb::none();
  const Described rows = described(found);
  if (rows.count == 0 || rows.n == 0) return nb::none();
  return nb::make_tuple(address(found), as_tuple(rows), found.ndim);
}

// (address of x, address of the targets, rows) of contiguous rows and an int64 for each.
nb::object labelled_rows_of(nb::handle x, nb::handle targets) {
  Borrowed logits, classes;
  if (!look(x, logits) || !look(targets, classes)) return nb::none();
  const Described rows = described(logits);
  const bool integers = classes.dtype == nb::dtype<int64_t>();
  if (rows.count == 0 || rows.n == 0 || !integers || classes.ndim != logits.ndim - 1 ||
      !aligned(classes) || !contiguous(classes)) {
    return nb::none();
  }
  for (int i = 0; i < classes.ndim; ++i) {
    if (classes.shape[i] != logits.shape[i]) return nb::none();
  }
  return nb::make_tuple(address(logits), address(classes), as_tuple(rows));
}

// Where (batch, heads, n, d), (heads, n, d) or (n, d) lies; see Placed in by_address.cc.
nb::tuple placed(const Borrowed& x) {
  const int64_t* last = x.strides + x.ndim;
  return nb::make_tuple(address(x), x.ndim > 3 ? last[-4] : 0, x.ndim > 2 ? last[-3] : 0, last[-2]);
}

// (q, k, v, sizes, type) of attention with one batch: each placed, and the seven sizes. Without v,
// its place is nowhere and its width 0.
nb::object heads_from(const Borrowed& q, const Borrowed& k, const Borrowed* v) {
  const int ndim = q.ndim, type = type_of(q.dtype);
  if (ndim < 2 || ndim > 4 || type == kTypes) return nb::none();
  for (const Borrowed* x : {&q, &k, v}) {
    if (x == nullptr) continue;
    if (x->ndim != ndim || x->dtype != q.dtype || x->strides[ndim - 1] != 1 || !aligned(*x)) {
      return nb::none();
    }
    if (ndim == 4 && x->shape[0] != q.shape[0]) return nb::none();
    for (int i = 0; i < ndim; ++i) {
      if (x->shape[i] == 0) return nb::none();
    }
  }
  const auto heads_of_one = [ndim](const Borrowed& x) { return ndim > 2 ? x.shape[ndim - 3] : 1; };
  const int row = ndim - 2, entry = ndim - 1;
  const int64_t heads = heads_of_one(q), kv_heads = heads_of_one(k), m = k.shape[row];
  if (k.shape[entry] != q.shape[entry] || heads % kv_heads != 0) return nb::none();
  if (v != nullptr && (heads_of_one(*v) != kv_heads || v->shape[row] != m)) return nb::none();
  const int64_t batch = ndim == 4 ? q.shape[0] : 1, dv = v != nullptr ? v->shape[entry] : 0;
  return nb::make_tuple(
      placed(q), placed(k), v != nullptr ? placed(*v) : nb::make_tuple(0, 0, 0, 0),
      nb::make_tuple(batch, heads, kv_heads, q.shape[row], m, q.shape[entry], dv), type);
}

template <class Found>
nb::object heads_of(nb::handle q_given, nb::handle k_given, nb::handle v_given) {
  Found q, k, v;
  if (!look(q_given, q) || !look(k_given, k) || !look(v_given, v)) return nb::none();
  return heads_from(q, k, &v);
}

template <class Found>
nb::object queries_of(nb::handle q_given, nb::handle k_given) {
  Found q, k;
  if (!look(q_given, q) || !look(k_given, k)) return nb::none();
  return heads_from(q, k, nullptr);
}

// Where a mask lies that broadcasts to (batch, heads, n, m), with strides of 0 where it is shared:
// address, strides and MaskType; see PlacedMask in by_address.cc. `sizes` are those of heads_of.
template <class Found>
nb::object mask_of(nb::handle given, const std::array<int64_t, 7>& sizes) {
  Found mask;
  if (!look(given, mask) || mask.ndim > 4 || !aligned(mask)) return nb::none();
  const bool boolean = mask.dtype.code == kBool && mask.dtype.bits == 8;
  const int type = boolean ? static_cast<int>(kMaskBool) : type_of(mask.dtype);
  if (!boolean && type == kTypes) return nb::none();
  const int64_t wanted[] = {sizes[0], sizes[1], sizes[3], sizes[4]};
  int64_t strides[4] = {};
  for (int i = 0; i < mask.ndim; ++i) {
    const int axis = i + 4 - mask.ndim;
    if (mask.shape[i] == 1) continue;
    if (mask.shape[i] != wanted[axis]) return nb::none();
    strides[axis] = mask.strides[i];
  }
  return nb::make_tuple(address(mask), strides[0], strides[1], strides[2], strides[3], type);
}

template <class Found>
void define_heads(nb::module_& m, const char* heads, const char* queries, const char* mask) {
  const auto any = nb::arg().none();
  m.def(heads, heads_of<Found>, any, any, any);
  m.def(queries, queries_of<Found>, any, any);
  m.def(mask, mask_of<Found>, any, nb::arg());
}

}  // namespace

void define_tensors(nb::module_& m) {
  m.def("know_tensors", know_tensors);
  m.def("know_arrays", know_arrays);
  // Whatever a user passes comes here, also None, which nanobind would refuse in words of its own.
  const auto any = nb::arg().none();
  m.def("rows_of", rows_of, any);
  m.def("labelled_rows_of", labelled_rows_of, any, any);
  define_heads<Borrowed>(m, "heads_of", "queries_of", "mask_of");
  define_heads<BorrowedArray>(m, "array_heads_of", "array_queries_of", "array_mask_of");
}

}  // namespace softscope
