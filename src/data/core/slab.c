/* Memory for batches that is used again and again. Fresh pages cost more than the arithmetic that fills them, so a
 * tensor's block goes back to a list when its last handle is released, wherever that happens.
 *
 *     [stk_buffer | stk_tensor | slab, next, pages | pad to 64 | elements]     from 2 MB on elements in pages
 *
 * With a source of memory (pinned memory of a device) all elements come from there, whatever their size. */
#include "data/core/run.h"

#include "base/dtype.h"
#include "base/tensor.h"

enum { PAGES_FROM = 2 << 20, MOST_FREE = 64 };

typedef struct block {
    stk_buffer buffer;
    stk_tensor tensor;
    stk_slab *slab;
    struct block *next;
} block;

enum { HEAD = (sizeof(block) + STK_ALIGN - 1) / STK_ALIGN * STK_ALIGN };

struct stk_slab {
    pthread_mutex_t lock;
    block *free;
    int64_t nfree, out, bytes;
    bool closed;
    stk_memory_source memory;
};

/* Written under the lock, read without it (stk_slab_bytes). */
static void count_bytes(stk_slab *s, int64_t more)
{
    __atomic_store_n(&s->bytes, s->bytes + more, __ATOMIC_RELAXED);
}

static void drop_block(const stk_slab *s, block *b)
{
    if (s->memory.alloc)
        s->memory.free(s->memory.context, b->buffer.data, b->buffer.size + 1);
    else if (b->buffer.size >= PAGES_FROM)
        stk_free_pages(b->buffer.data, b->buffer.size);
    stk_free(b);
}

static void drop_slab(stk_slab *s)
{
    pthread_mutex_destroy(&s->lock);
    if (s->memory.release) s->memory.release(s->memory.context);
    stk_free(s);
}

/* The last handle of a tensor is gone. Runs on any thread. */
static void come_back(stk_buffer *self)
{
    block *b = (block *)self;
    stk_slab *s = b->slab;
    pthread_mutex_lock(&s->lock);
    s->out--;
    bool keep = !s->closed && s->nfree < MOST_FREE + s->out;
    if (keep) {
        b->next = s->free;
        s->free = b;
        s->nfree++;
    } else {
        count_bytes(s, -(int64_t)b->buffer.size);
        drop_block(s, b); /* before anybody can drop the slab */
    }
    bool last = s->closed && s->out == 0;
    pthread_mutex_unlock(&s->lock);
    if (last) drop_slab(s);
}

stk_status stk_slab_new(const stk_memory_source *memory, stk_slab **out, stk_error *err)
{
    *out = stk_calloc(1, sizeof **out);
    if (!*out) return stk_fail_memory(err, "stream", sizeof **out);
    (*out)->memory = *memory;
    if (memory->retain) memory->retain(memory->context);
    pthread_mutex_init(&(*out)->lock, NULL);
    return STK_OK;
}

void stk_slab_close(stk_slab *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    while (s->free) {
        block *b = s->free;
        s->free = b->next;
        drop_block(s, b);
    }
    bool last = s->out == 0;
    pthread_mutex_unlock(&s->lock);
    if (last) drop_slab(s);
}

int64_t stk_slab_bytes(const stk_slab *s) { return __atomic_load_n(&s->bytes, __ATOMIC_RELAXED); }

static block *make_block(const stk_slab *s, size_t size)
{
    const stk_memory_source *from = &s->memory;
    bool pages = size >= PAGES_FROM;
    block *b = stk_malloc(pages || from->alloc ? sizeof *b : HEAD + size);
    if (!b) return NULL;
    void *data = from->alloc ? from->alloc(from->context, size + 1)
                 : pages     ? stk_alloc_pages(size)
                             : (char *)b + HEAD;
    if (!data) {
        stk_free(b);
        return NULL;
    }
    b->buffer =
        (stk_buffer){.data = data, .size = size, .release = come_back, .device = s->memory.device};
    return b;
}

/* A free block of this very size, or NULL. Streams use few sizes. */
static block *find_block(stk_slab *s, size_t size)
{
    pthread_mutex_lock(&s->lock);
    block **link = &s->free;
    for (int i = 0; *link && (*link)->buffer.size != size && i < MOST_FREE; i++)
        link = &(*link)->next;
    block *found = *link && (*link)->buffer.size == size ? *link : NULL;
    if (found) {
        *link = found->next;
        s->nfree--;
    }
    s->out++;
    if (!found) count_bytes(s, (int64_t)size);
    pthread_mutex_unlock(&s->lock);
    return found;
}

stk_status stk_slab_take(stk_slab *s, stk_dtype dtype, int32_t rank, const int64_t *shape,
                         stk_tensor **out, stk_error *err)
{
    *out = NULL;
    if (dtype == STK_STRING) return stk_tensor_raw(dtype, rank, shape, out, err);
    STK_TRY(stk_shape_check("batch", rank, shape, stk_dtype_size(dtype), err));
    size_t size = (size_t)stk_dtype_size(dtype);
    for (int i = 0; i < rank; i++) size *= (size_t)shape[i];
    block *b = find_block(s, size);
    if (!b) b = make_block(s, size);
    if (!b) {
        pthread_mutex_lock(&s->lock);
        s->out--;
        count_bytes(s, -(int64_t)size);
        pthread_mutex_unlock(&s->lock);
        return stk_fail_memory(err, "batch", size);
    }
    b->slab = s;
    b->buffer.refs = 1;
    b->buffer.readonly = false;
    stk_tensor *t = &b->tensor;
    *t = (stk_tensor){.data = b->buffer.data,
                      .dtype = dtype,
                      .rank = rank,
                      .buffer = &b->buffer,
                      .refs = 1,
                      .inside = true};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        t->shape[i] = shape[i];
        t->stride[i] = step;
        if (shape[i] > 0) step *= shape[i];
    }
    *out = t;
    return STK_OK;
}
