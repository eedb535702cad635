/* Where the weight files of Keras 3 keep a weight. They do not name layers but count them by class:
 *
 *     layers/dense/vars/0                        the first Dense: its kernel
 *     layers/dense_1/vars/1                      the second one: its bias
 *     layers/lstm/cell/vars/2                    a part of a layer: the attribute that holds it
 *     layers/bidirectional/forward_layer/cell/vars/0
 *     layers/functional/layers/dense/vars/0      a model as a layer
 *
 * Variables of one object are numbered as it made them, those that are never trained behind the others. */
#include "layers/model.h"

#include <stdio.h>
#include <string.h>

static const char *class_of(const stk_layer_state *layer)
{
    if (!layer->inner) return layer->def->keras_class;
    return layer->inner->kind == STK_MODEL_FUNCTIONAL ? "Functional" : "Sequential";
}

/* How many layers of the class stand before this one. */
static int32_t twins_before(const stk_model *m, const stk_layer_state *layer)
{
    int32_t n = 0;
    for (int64_t i = 0; i < m->norder; i++) {
        const stk_layer_state *other = stk_layer_at(m, m->order[i]);
        if (other == layer) break;
        n += !other->def->operation && !strcmp(class_of(other), class_of(layer));
    }
    return n;
}

typedef struct place {
    char *text;
    size_t size, used;
} place;

static void add(place *p, const char *word, size_t length)
{
    int n = snprintf(p->text + p->used, p->size - p->used, "%s%.*s", p->used ? "/" : "",
                     (int)length, word);
    p->used += n > 0 && (size_t)n < p->size - p->used ? (size_t)n : p->size - p->used;
}

static void add_layer(place *p, const stk_model *m, const stk_layer_state *layer)
{
    char name[160], word[180];
    int32_t twins = twins_before(m, layer);
    stk_snake_case(class_of(layer), name, sizeof name);
    snprintf(word, sizeof word, twins ? "%s_%d" : "%s", name, twins);
    add(p, "layers", 6);
    add(p, word, strlen(word));
}

/* The words of a weight's name between its layer and its own, as attributes. */
static void add_scopes(place *p, const stk_layer_def *def, const char *words)
{
    for (const char *end; (end = strchr(words, '/')); words = end + 1) {
        size_t n = (size_t)(end - words);
        const char *row = def->scopes;
        while (row && (strncmp(row, words, n) != 0 || row[n] != '='))
            row = strchr(row, '|') ? strchr(row, '|') + 1 : NULL;
        if (row)
            add(p, row + n + 1, strcspn(row + n + 1, "|"));
        else
            add(p, words, n);
    }
}

/* Everything in front of /vars/. */
static void add_object(place *p, const stk_model *m, const stk_mweight *w)
{
    const char *words = w->name;
    for (int32_t k = w->depth - 1; k >= 0; k--) { /* a name has one word per layer */
        const stk_layer_state *layer = w->chain[k];
        const char *end = strchr(words, '/');
        words = end ? end + 1 : words;
        if (layer->attribute)
            add(p, layer->attribute, strlen(layer->attribute));
        else if (layer->number && m)
            add_layer(p, m, layer);
        if (layer->inner) m = layer->inner;
    }
    if (w->depth) add_scopes(p, w->chain[0]->def, words);
}

bool stk_model_weight_path(const stk_model *m, int32_t i, char *text, size_t size)
{
    const stk_mweight *w = &m->weights[m->weight_order[i]];
    char other[1024] = "", number[24];
    place p = {text, size, 0};
    int32_t before = 0;
    add_object(&p, m, w);
    for (int64_t k = 0; k < m->nweights; k++) {
        const stk_mweight *v = &m->weights[k];
        if (v->layer != w->layer || v == w || v->state ||
            (v->fixed ? !w->fixed || v > w : !w->fixed && v > w))
            continue;
        place q = {other, sizeof other, 0};
        add_object(&q, m, v);
        before += p.used == q.used && !memcmp(text, other, p.used);
    }
    snprintf(number, sizeof number, "%d", before + w->behind);
    add(&p, "vars", 4);
    add(&p, number, strlen(number));
    return p.used < size;
}

bool stk_model_weight_second_path(const stk_model *m, int32_t i, char *text, size_t size)
{
    const stk_mweight *w = &m->weights[m->weight_order[i]];
    place p = {text, size, 0};
    if (!w->next || !m->weights[w->next - 1].behind) return false;
    add_object(&p, m, &m->weights[w->next - 1]);
    add(&p, "vars", 4);
    add(&p, "0", 1);
    return p.used < size;
}
