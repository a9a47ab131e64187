#include "attention/attention_tasks.h"

#include <algorithm>
#include <memory>

#include "threads/parallel_for.h"

namespace softscope {
namespace {

// Query rows of a task. Each packs the keys for itself, so the more the better, while there are
// enough tasks to share; multiples of the six rows that kernels take at a time.
size_t rows_of_a_task(size_t rows, size_t problems) {
  constexpr size_t kMost = 768, kLeast = 96, kTasks = 16;
  const size_t wanted = (kTasks + problems - 1) / problems;
  const size_t even = (rows / wanted + 5) / 6 * 6;
  return std::clamp(even, kLeast, kMost);
}

constexpr size_t kPartKeys = 1024;

// Where rows are few, as when a model writes word after word, the keys are shared as well.
size_t parts_of_the_keys(size_t m, size_t tasks) {
  constexpr size_t kTasks = 8;
  return std::clamp<size_t>(kTasks / tasks, 1, std::max<size_t>(1, m / kPartKeys));
}

// Threads take longer to wake than this many multiply-adds.
int threads_worth(const Attention& one, size_t problems, int threads) {
  constexpr double kFew = 1 << 20;
  const auto size = [](size_t n) { return static_cast<double>(n); };
  const double work = size(problems) * size(one.heads * one.n) * size(one.m) * size(one.d + one.dv);
  return work < kFew ? 1 : threads;
}

void* scratch(size_t bytes) {
  thread_local std::unique_ptr<char[]> memory;
  thread_local size_t size = 0;
  if (size < bytes) {
    memory.reset(new char[bytes + 64]);
    size = bytes;
  }
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  return memory.get() + (64 - address % 64) % 64;
}

const char* moved(const void* p, ptrdiff_t entries, size_t size) {
  return p == nullptr ? nullptr
                      : static_cast<const char*>(p) + entries * static_cast<ptrdiff_t>(size);
}

// The problem of one key head of one batch entry.
Attention problem(const Attentions& all, size_t index) {
  const size_t size = kTypeSize[all.type];
  const size_t kv_head = index % all.kv_heads;
  index /= all.kv_heads;
  const auto key_head = static_cast<ptrdiff_t>(kv_head);
  const size_t head = kv_head * all.one.heads;  // the first that reads it
  const auto first = static_cast<ptrdiff_t>(head);
  ptrdiff_t q = first * all.one.q_head, k = key_head * all.k_head, v = key_head * all.v_head;
  ptrdiff_t out = first * all.one.out_head, mask = first * all.one.mask_head;
  ptrdiff_t state = first * all.one.state_head;
  for (size_t i = all.batch.size(); i-- > 0;) {
    const auto at = static_cast<ptrdiff_t>(index % all.batch[i]);
    index /= all.batch[i];
    q += at * all.q[i];
    k += at * all.k[i];
    if (all.one.v != nullptr) v += at * all.v[i];
    if (all.one.out != nullptr) out += at * all.out[i];
    if (all.one.mask != nullptr) mask += at * all.mask[i];
    if (all.one.state != nullptr) state += at * all.state[i];
  }
  Attention a = all.one;
  a.q = moved(a.q, q, size);
  a.k = moved(a.k, k, size);
  a.v = moved(a.v, v, size);
  a.out = const_cast<char*>(moved(a.out, out, size));
  a.mask = moved(a.mask, mask, kMaskSize[a.mask_type]);
  if (a.state != nullptr) a.state += state;
  a.scale += head;
  if (a.sink != nullptr) a.sink += head;
  return a;
}

}  // namespace

void attend(const Kernels& kernels, const Attentions& all, int threads) {
  size_t problems = all.kv_heads;
  for (const size_t n : all.batch) problems *= n;
  const Attention& one = all.one;
  const size_t rows = one.heads * one.n;
  if (problems == 0 || rows == 0) return;
  threads = threads_worth(one, problems, threads);
  const size_t many = rows_of_a_task(rows, problems);
  const size_t chunks = (rows + many - 1) / many;
  const size_t parts = parts_of_the_keys(one.m, problems * chunks);
  const size_t keys = ((one.m + parts - 1) / parts + kPartKeys - 1) / kPartKeys * kPartKeys;
  const size_t stride = std::min(many, rows) * part_bytes(one);
  std::unique_ptr<char[]> found(parts == 1 ? nullptr
                                           : new char[problems * chunks * parts * stride]);

  const auto rows_of = [&](size_t chunk) {
    const size_t first = chunk * many;
    return AttentionRows{first, std::min(many, rows - first), 0, one.m, nullptr, nullptr};
  };
  parallel_for(problems * chunks * parts, threads, [&](size_t index) {
    const size_t task = index / parts, part = index % parts;
    // Later rows of causal attention see more: these first, so that none is left for the end.
    AttentionRows some = rows_of(chunks - 1 - task / problems);
    const Attention a = problem(all, task % problems);
    some.scratch = scratch(attention_scratch(a, some.count));
    if (parts > 1) {
      some.from = std::min(one.m, part * keys);
      some.to = std::min(one.m, some.from + keys);
      some.part = found.get() + index * stride;
    }
    kernels.attention->attend[all.type](a, some);
  });
  if (parts == 1) return;
  parallel_for(problems * chunks, threads, [&](size_t task) {
    AttentionRows some = rows_of(chunks - 1 - task / problems);
    const Attention a = problem(all, task % problems);
    some.scratch = scratch(attention_scratch(a, some.count));
    some.part = found.get() + task * parts * stride;
    kernels.attention->merge_parts[all.type](a, some, parts, stride);
  });
}

// Each task adds up dk and dv over its rows for itself. Where there are fewer key heads than
// threads may want, their rows are cut, too, and what the parts have found is added up in the end.
void attend_back(const Kernels& kernels, const Attentions& all, const Gradients& gradients,
                 int threads) {
  constexpr size_t kTasks = 8, kLeast = 96;
  size_t problems = all.kv_heads;
  for (const size_t n : all.batch) problems *= n;
  const Attention& one = all.one;
  const size_t rows = one.heads * one.n, size = kTypeSize[all.type];
  if (problems == 0 || rows == 0) return;
  threads = threads_worth(one, problems, threads);
  const size_t parts = std::clamp<size_t>(kTasks / problems, 1, (rows + kLeast - 1) / kLeast);
  const size_t many = (rows + parts - 1) / parts;
  const size_t wide = sum_width(one.d) + sum_width(one.dv);
  const size_t sums_bytes = one.m * wide * std::max<size_t>(size, 4);

  const auto store = [&](size_t index, const char* sums) {
    const size_t width = std::max<size_t>(size, 4);
    const size_t wide_k = sum_width(one.d), wide_v = sum_width(one.dv);
    for (size_t j = 0; j < one.m; ++j) {
      kernels.attention->add_up[all.type](
          sums + j * wide_k * width, parts, sums_bytes / width, one.d,
          static_cast<char*>(gradients.dk) + (index * one.m + j) * one.d * size);
      kernels.attention->add_up[all.type](
          sums + (one.m * wide_k + j * wide_v) * width, parts, sums_bytes / width, one.dv,
          static_cast<char*>(gradients.dv) + (index * one.m + j) * one.dv * size);
    }
  };
  std::unique_ptr<char[]> shared;
  if (parts > 1) shared.reset(new char[problems * parts * sums_bytes]);

  parallel_for(problems * parts, threads, [&](size_t task) {
    const size_t part = parts - 1 - task / problems, index = task % problems;
    const size_t first = part * many, count = first < rows ? std::min(many, rows - first) : 0;
    AttentionBack b = {};
    b.forward = problem(all, index);
    const size_t scratch_bytes = attention_back_scratch(b.forward, count);
    char* memory = static_cast<char*>(scratch(scratch_bytes + (parts == 1 ? sums_bytes : 0) + 64));
    char* sums = parts == 1 ? memory + (scratch_bytes + 63) / 64 * 64
                            : shared.get() + (index * parts + part) * sums_bytes;
    std::fill_n(sums, sums_bytes, char{0});
    b.dk_sum = sums;
    b.dv_sum = sums + one.m * sum_width(one.d) * std::max<size_t>(size, 4);
    const size_t head = index % all.kv_heads * one.heads;
    ptrdiff_t grad = static_cast<ptrdiff_t>(head) * gradients.grad_head;
    size_t entry = index / all.kv_heads;
    for (size_t i = all.batch.size(); i-- > 0;) {
      grad += static_cast<ptrdiff_t>(entry % all.batch[i]) * gradients.grad_batch[i];
      entry /= all.batch[i];
    }
    b.grad = moved(gradients.grad, grad, size);
    b.grad_head = gradients.grad_head;
    b.grad_row = gradients.grad_row;
    b.dq = static_cast<char*>(gradients.dq) + index * rows * one.d * size;
    b.dq_head = static_cast<ptrdiff_t>(one.n * one.d);
    b.dq_row = static_cast<ptrdiff_t>(one.d);
    b.dscale = gradients.dscale + index * rows;
    if (count > 0)
      kernels.attention->attend_back[all.type](b, {first, count, 0, one.m, nullptr, memory});
    if (parts == 1) store(index, sums);
  });
  if (parts == 1) return;
  parallel_for(problems, threads,
               [&](size_t index) { store(index, shared.get() + index * parts * sums_bytes); });
}

}  // namespace softscope
