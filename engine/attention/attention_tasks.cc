#include "attention/attention_tasks.h"

#include <algorithm>
#include <memory>
#include <type_traits>

#include "threads/parallel_for.h"
#include "threads/scratch.h"

namespace softscope {
namespace {

// Query rows of a task. Each task packs the keys for itself, so the more rows the better, as long
// as there are enough tasks to share; multiples of the six rows that kernels take at a time.
size_t rows_of_a_task(size_t rows, size_t problems) {
  constexpr size_t kMost = 768, kLeast = 96, kTasks = 16;
  const size_t wanted = (kTasks + problems - 1) / problems;
  const size_t even = (rows / wanted + 5) / 6 * 6;
  return std::clamp(even, kLeast, kMost);
}

// If rows are few, as when a model generates token by token, threads share the parts of the keys as
// well. This is how many take their share.
size_t shares_of_the_keys(size_t m, size_t tasks) {
  constexpr size_t kTasks = 8;
  return std::clamp<size_t>(kTasks / tasks, 1, std::max<size_t>(1, m / kPartKeys));
}

// Waking threads takes longer than this many multiply-adds.
int threads_worth(const Attention& one, size_t problems, int threads) {
  constexpr double kFew = 1 << 20;
  const auto size = [](size_t n) { return static_cast<double>(n); };
  const double work = size(problems) * size(one.heads * one.n) * size(one.m) * size(one.d + one.dv);
  return work < kFew ? 1 : threads;
}

// A problem is one key head of one batch entry.
size_t problems_of(const Attentions& all) {
  size_t problems = all.kv_heads;
  for (const size_t n : all.batch) problems *= n;
  return problems;
}

// How far the batch entry of a problem lies from the first, in entries.
ptrdiff_t batch_offset(const Attentions& all, const std::vector<ptrdiff_t>& strides,
                       size_t problem) {
  size_t entry = problem / all.kv_heads;
  ptrdiff_t distance = 0;
  for (size_t i = all.batch.size(); i-- > 0;) {
    distance += offset(entry % all.batch[i], strides[i]);
    entry /= all.batch[i];
  }
  return distance;
}

template <class Data>
Data* advanced(Data* data, ptrdiff_t entries, size_t size) {
  using Byte = std::conditional_t<std::is_const_v<Data>, const char, char>;
  return static_cast<Byte*>(data) + entries * static_cast<ptrdiff_t>(size);
}

Attention problem_at(const Attentions& all, size_t index) {
  const size_t size = kTypeSize[all.type];
  const size_t kv_head = index % all.kv_heads;
  const size_t head = kv_head * all.one.heads;  // the first query head that reads it
  Attention a = all.one;
  const auto move = [&](auto& rows, const std::vector<ptrdiff_t>& strides, size_t at,
                        size_t bytes) {
    if (rows.data == nullptr) return;
    rows.data =
        advanced(rows.data, offset(at, rows.head) + batch_offset(all, strides, index), bytes);
  };
  move(a.q, all.q, head, size);
  move(a.k, all.k, kv_head, size);
  move(a.v, all.v, kv_head, size);
  move(a.out, all.out, head, size);
  move(a.mask, all.mask, head, kMaskSize[a.mask.type]);
  if (a.state.data != nullptr) {
    a.state.data += offset(head, a.state.head) + batch_offset(all, all.state, index);
  }
  a.scale += head;
  if (a.alpha != nullptr) a.alpha += head;
  if (a.sink != nullptr) a.sink += head;
  return a;
}

// Rows of a task that are read: the scores and gradients of so many stay in the second-level cache,
// and packing the keys for them is still a small part of the work.
size_t rows_of_a_reading(size_t m) {
  constexpr size_t kEntries = size_t{1} << 16, kMost = 192, kLeast = 24;
  return std::clamp(kEntries / std::max<size_t>(m, 1) / 6 * 6, kLeast, kMost);
}

}  // namespace

void attend(const Kernels& kernels, const Attentions& all, int threads) {
  const size_t problems = problems_of(all);
  const Attention& one = all.one;
  const size_t rows = one.heads * one.n;
  if (problems == 0 || rows == 0) return;
  threads = threads_worth(one, problems, threads);
  const size_t many = rows_of_a_task(rows, problems);
  const size_t chunks = (rows + many - 1) / many;
  const size_t parts = std::max<size_t>(1, (one.m + kPartKeys - 1) / kPartKeys);
  const size_t shares = shares_of_the_keys(one.m, problems * chunks);
  const size_t stride =
      std::min(many, rows) * part_bytes(one, std::max<size_t>(kTypeSize[all.type], 4));
  const size_t room = shares == 1 ? 0 : problems * chunks * parts * stride;
  char* found = static_cast<char*>(scratch(room, Scratch::kSharedRow));

  const auto task_of = [&](const Attention& a, size_t index) {
    // Later rows of causal attention see more keys. They go first, so that no long task is left for
    // the end.
    const size_t first = (chunks - 1 - index / problems) * many;
    const size_t count = std::min(many, rows - first);
    return AttentionTask{.first = first,
                         .count = count,
                         .keys = {.begin = 0, .end = one.m},
                         .part = nullptr,
                         .scratch = scratch(forward_scratch(a, count)),
                         .stride = stride};
  };
  parallel_for(problems * chunks * shares, threads, [&](size_t index) {
    const size_t block = index / shares, share = index % shares;
    const Attention a = problem_at(all, block % problems);
    AttentionTask task = task_of(a, block);
    if (shares > 1) {
      const size_t first = share * parts / shares, last = (share + 1) * parts / shares;
      task.keys = {.begin = first * kPartKeys, .end = std::min(one.m, last * kPartKeys)};
      task.part = found + (block * parts + first) * stride;
    }
    kernels.attention->forward[all.type](a, task);
  });
  if (shares == 1) return;
  parallel_for(problems * chunks, threads, [&](size_t index) {
    const Attention a = problem_at(all, index % problems);
    AttentionTask task = task_of(a, index);
    task.part = found + index * parts * stride;
    kernels.attention->merge_parts[all.type](a, task, {.count = parts, .stride = stride});
  });
}

// A threshold needs all keys of its row, so these are not shared out.
void attend_sparsely(const Kernels& kernels, const Attentions& all, int threads) {
  const size_t problems = problems_of(all);
  const size_t rows = all.one.heads * all.one.n;
  if (problems == 0 || rows == 0) return;
  const size_t many = rows_of_a_task(rows, problems), chunks = (rows + many - 1) / many;
  parallel_for(problems * chunks, threads_worth(all.one, problems, threads), [&](size_t index) {
    const Attention a = problem_at(all, index % problems);
    const size_t first = (chunks - 1 - index / problems) * many;
    const size_t count = std::min(many, rows - first);
    kernels.attention->sparse_forward[all.type](
        a, {.first = first,
            .count = count,
            .keys = {.begin = 0, .end = a.m},
            .part = nullptr,
            .scratch = scratch(sparse_scratch(a, count, false))});
  });
}

// Each task adds up dk and dv over its rows for itself. If there are fewer key heads than threads
// may want, their rows are cut as well, and the sums of all parts are added up in the end.
void attend_backward(const Kernels& kernels, const Attentions& all, const Gradients& gradients,
                     int threads) {
  constexpr size_t kTasks = 8, kLeast = 96;
  const size_t problems = problems_of(all);
  const Attention& one = all.one;
  const size_t rows = one.heads * one.n, size = kTypeSize[all.type];
  if (problems == 0 || rows == 0) return;
  threads = threads_worth(one, problems, threads);
  const size_t parts = std::clamp<size_t>(kTasks / problems, 1, (rows + kLeast - 1) / kLeast);
  const size_t many = (rows + parts - 1) / parts;
  const size_t computed = std::max<size_t>(size, 4);  // bytes in the type that computes
  const size_t dk_wide = sum_width(one.d, kernels.attention->width),
               dv_wide = sum_width(one.dv, kernels.attention->width);
  const size_t dv_sums = one.m * dk_wide * computed;  // where they begin
  const size_t sums_bytes = dv_sums + one.m * dv_wide * computed;

  const auto store = [&](size_t problem, const char* sums) {
    const auto add_up = [&](const char* from, size_t wide, size_t n, void* to) {
      const GradientParts found = {.sums = from,
                                   .count = parts,
                                   .stride = sums_bytes / computed,
                                   .rows = one.m,
                                   .n = n,
                                   .wide = wide};
      kernels.attention->add_up[all.type](found,
                                          static_cast<char*>(to) + problem * one.m * n * size);
    };
    add_up(sums, dk_wide, one.d, gradients.dk);
    add_up(sums + dv_sums, dv_wide, one.dv, gradients.dv);
  };
  std::unique_ptr<char[]> shared;
  if (parts > 1) shared.reset(new char[problems * parts * sums_bytes]);

  parallel_for(problems * parts, threads, [&](size_t task) {
    const size_t part = parts - 1 - task / problems, index = task % problems;
    const size_t first = part * many, count = first < rows ? std::min(many, rows - first) : 0;
    const Attention a = problem_at(all, index);
    const bool sparse = a.alpha != nullptr;
    const size_t need = sparse ? sparse_scratch(a, count, true) : backward_scratch(a, count);
    char* memory = static_cast<char*>(scratch(need + (parts == 1 ? sums_bytes : 0) + 64));
    char* sums = parts == 1 ? memory + (need + 63) / 64 * 64
                            : shared.get() + (index * parts + part) * sums_bytes;
    std::fill_n(sums, sums_bytes, char{0});
    const size_t head = index % all.kv_heads * one.heads;
    const ptrdiff_t grad =
        offset(head, gradients.grad.head) + batch_offset(all, gradients.grad_batch, index);
    const AttentionBackward b = {
        .forward = a,
        .grad = {.data = advanced(gradients.grad.data, grad, size),
                 .head = gradients.grad.head,
                 .row = gradients.grad.row},
        .dq = {.data = static_cast<char*>(gradients.dq) + index * rows * one.d * size,
               .head = static_cast<ptrdiff_t>(one.n * one.d),
               .row = static_cast<ptrdiff_t>(one.d)},
        .dscale = gradients.dscale + index * rows,
        .dalpha = gradients.dalpha == nullptr ? nullptr : gradients.dalpha + index * rows,
        .dk_sum = sums,
        .dv_sum = sums + dv_sums,
        .width = kernels.attention->width};
    if (count > 0) {
      const auto& backward =
          sparse ? kernels.attention->sparse_backward : kernels.attention->backward;
      backward[all.type](b, {.first = first,
                             .count = count,
                             .keys = {.begin = 0, .end = one.m},
                             .part = nullptr,
                             .scratch = memory});
    }
    if (parts == 1) store(index, sums);
  });
  if (parts == 1) return;
  parallel_for(problems, threads,
               [&](size_t index) { store(index, shared.get() + index * parts * sums_bytes); });
}

void read_rows(const Kernels& kernels, const Attentions& all, const Readings& readings,
               int threads) {
  const size_t problems = problems_of(all);
  const size_t rows = all.one.heads * all.one.n, many = rows_of_a_reading(all.one.m);
  if (problems == 0 || rows == 0) return;
  const size_t chunks = (rows + many - 1) / many, size = kTypeSize[all.type];
  const size_t computed = std::max<size_t>(size, 4);
  parallel_for(problems * chunks, threads_worth(all.one, problems, threads), [&](size_t index) {
    const size_t problem = index % problems, first = (chunks - 1 - index / problems) * many;
    const size_t kv_head = problem % all.kv_heads, head = kv_head * all.one.heads;
    AttentionReading r = {.forward = problem_at(all, problem),
                          .grad = readings.grad,
                          .weights = readings.weights,
                          .key_lengths = nullptr};
    const auto move = [&](auto& of, const std::vector<ptrdiff_t>& strides, size_t at,
                          size_t bytes) {
      if (of.data == nullptr) return;
      of.data = advanced(of.data, offset(at, of.head) + batch_offset(all, strides, problem), bytes);
    };
    HeadRows<const void> lengths = readings.key_lengths;
    move(r.grad, readings.grad_batch, head, size);
    move(r.weights, readings.weights_batch, head, computed);
    move(lengths, readings.key_lengths_batch, kv_head, computed);
    r.key_lengths = lengths.data;
    const size_t count = std::min(many, rows - first);
    kernels.attention->read_rows[all.type](r, {.first = first,
                                               .count = count,
                                               .keys = {.begin = 0, .end = all.one.m},
                                               .part = nullptr,
                                               .scratch = scratch(reading_scratch(r, count))});
  });
}

}  // namespace softscope
