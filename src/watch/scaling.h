/* scaling.h - what more threads would bring: the regions of a step with their measured times, and a model over them.
 *
 *     step(n) = outside + sum over regions of  max(pieces, bytes / bandwidth) + serial + join n / 2
 *     pieces  = time on one thread * ceil(parts / m) / parts,  on the m <= n threads that are best for this region
 *
 * `outside` is everything of a step that is no kernel. The bandwidth counts where a region's data does not fit the caches. */
#ifndef STK_WATCH_SCALING_H
#define STK_WATCH_SCALING_H

#include "base/json.h"
#include "watch/report.h"

typedef struct stk_region_cost { /* of one step */
    double cut;                  /* seconds of all threads together in launches cut into parts */
    double serial; /* in those that are not, and in what follows when all parts are done */
    double bytes;  /* 0: the data is in a cache */
    int32_t parts;
    const char *op, *place; /* of its dearest launch */
    double dearest;
} stk_region_cost;

/* Names are kept as they are. The roofline may be empty: then memory keeps up. */
void stk_scaling_predict(const stk_region_cost *regions, int64_t n, double outside,
                         const stk_roofline *roof, stk_scaling *out);

void stk_scaling_put_text(const stk_scaling *s, stk_text *t); /* without its heading */
void stk_scaling_put_html(const stk_scaling *s, stk_text *t);
void stk_scaling_put_json(const stk_scaling *s, stk_json_writer *w); /* one member */
/* Texts go into the arena; false without memory. */
bool stk_scaling_read(const stk_json *root, stk_arena *arena, stk_scaling *out);

#endif
