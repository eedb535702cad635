/* report_scaling.c - what more threads would bring, in words, as JSON and as a table of the HTML report. */
#include "watch/report_html.h"
#include "watch/scaling.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t at;
} SECONDS[] = {{"cut", offsetof(stk_scaling, cut)},
               {"serial", offsetof(stk_scaling, serial)},
               {"outside", offsetof(stk_scaling, outside)},
               {"bytes", offsetof(stk_scaling, bytes)},
               {"join", offsetof(stk_scaling, join)}};
enum { FIELDS = sizeof SECONDS / sizeof *SECONDS };

static double whole_of(const stk_scaling *s)
{
    double all = s->cut + s->serial + s->outside;
    return all > 0 ? all : 1;
}

static double serial_share(const stk_scaling *s) { return (s->serial + s->outside) / whole_of(s); }

/* How many times faster than on one thread. */
static double gain(const stk_scaling *s, int64_t i, bool memory)
{
    const stk_scaling_point *p = &s->point[i], *one = &s->point[0];
    double now = memory ? p->memory_seconds : p->seconds;
    return now > 0 ? (memory ? one->memory_seconds : one->seconds) / now : 0;
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

void stk_scaling_put_text(const stk_scaling *s, stk_text *t)
{
    char a[24], b[24], c[24];
    stk_text_put(
        t, "  %d regions, %d of them in several parts; %.1f %% of a step on one thread is serial\n",
        s->regions, s->split, 100 * serial_share(s));
    stk_text_put(
        t, "  (kernels in one piece %s, no kernel %s); calling two threads %s; through memory %s\n",
        stk_time_text(s->serial, a), stk_time_text(s->outside, b), stk_time_text(s->join, c),
        stk_bytes_text(s->bytes, (char[24]){0}));
    stk_text_put(t, "  %-24s", "threads");
    for (int64_t i = 0; i < s->npoints; i++) stk_text_put(t, "%8d", s->point[i].threads);
    for (int memory = 0; memory < 2; memory++) {
        stk_text_put(t, "\n  %-24s", memory ? "with the memory of here" : "when memory keeps up");
        for (int64_t i = 0; i < s->npoints; i++) stk_text_put(t, "%7.2fx", gain(s, i, memory));
    }
    stk_text_put(t, "\n  what takes longest on %d: %17s %10s %10s\n",
                 s->point[s->npoints - 1].threads, "parts", "one thread", "then");
    for (int64_t i = 0; i < s->nlimits; i++) {
        const stk_scaling_limit *l = &s->limit[i];
        stk_text_put(t, "    %-18.18s %-20.20s %3d %10s %10s\n", l->op, l->place, l->parts,
                     stk_time_text(l->one, a), stk_time_text(l->most, b));
    }
}

/* ---- HTML ------------------------------------------------------------------------------------------------------ */

void stk_scaling_put_html(const stk_scaling *s, stk_text *t)
{
    char a[24], b[24];
    stk_text_put(
        t, "<h2>More threads</h2>\n<div class=\"wide\"><table><tr><th class=\"l\">threads</th>");
    for (int64_t i = 0; i < s->npoints; i++) stk_text_put(t, "<th>%d</th>", s->point[i].threads);
    for (int memory = 0; memory < 2; memory++) {
        stk_text_put(t, "</tr>\n<tr><td class=\"l\">%s</td>",
                     memory ? "with the memory of here" : "when memory keeps up");
        for (int64_t i = 0; i < s->npoints; i++)
            stk_text_put(t, "<td>%.2fx</td>", gain(s, i, memory));
    }
    stk_text_put(t,
                 "</tr></table></div>\n<p class=\"soft small\">A model over the measured regions "
                 "(doc/watch.md), not "
                 "a measurement. %d regions, %d of them in several parts; serial: %.1f %% of a "
                 "step on one thread "
                 "(kernels in one piece %s, no kernel %s).",
                 s->regions, s->split, 100 * serial_share(s), stk_time_text(s->serial, a),
                 stk_time_text(s->outside, b));
    for (int64_t i = 0; i < s->nlimits; i++) {
        const stk_scaling_limit *l = &s->limit[i];
        stk_text_put(t, i ? "; " : " What takes longest then: ");
        stk_text_html(t, l->op);
        stk_html_escaped(t, l->place[0] ? " of " : "", l->place, "");
        stk_text_put(t, " (%d %s, %s)", l->parts, l->parts == 1 ? "part" : "parts",
                     stk_time_text(l->most, a));
    }
    stk_text_put(t, "</p>\n");
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

void stk_scaling_put_json(const stk_scaling *s, stk_json_writer *w)
{
    stk_json_name(w, "scaling");
    stk_json_begin_object(w);
    stk_json_member_int(w, "regions", s->regions);
    stk_json_member_int(w, "split", s->split);
    for (int i = 0; i < FIELDS; i++) {
        double v;
        memcpy(&v, (const char *)s + SECONDS[i].at, sizeof v);
        stk_json_member_double(w, SECONDS[i].name, v);
    }
    stk_json_member_double(w, "serial_share", serial_share(s));
    stk_json_name(w, "limits");
    stk_json_begin_array(w);
    for (int64_t i = 0; i < s->nlimits; i++) {
        stk_json_begin_object(w);
        stk_json_member_text(w, "op", s->limit[i].op);
        stk_json_member_text(w, "place", s->limit[i].place);
        stk_json_member_int(w, "parts", s->limit[i].parts);
        stk_json_member_double(w, "one", s->limit[i].one);
        stk_json_member_double(w, "most", s->limit[i].most);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    stk_json_name(w, "points");
    stk_json_begin_array(w);
    for (int64_t i = 0; i < s->npoints; i++) {
        stk_json_begin_object(w);
        stk_json_member_int(w, "threads", s->point[i].threads);
        stk_json_member_double(w, "seconds", s->point[i].seconds);
        stk_json_member_double(w, "memory_seconds", s->point[i].memory_seconds);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
    stk_json_end_object(w);
}

static bool read_limits(const stk_json *array, stk_arena *arena, stk_scaling *out)
{
    for (int64_t i = 0; array && i < array->count && i < STK_SCALING_LIMITS; i++) {
        const stk_json *v = stk_json_item(array, i);
        const char *op = stk_arena_strdup(arena, stk_json_text(stk_json_get(v, "op"), ""));
        const char *place = stk_arena_strdup(arena, stk_json_text(stk_json_get(v, "place"), ""));
        if (!op || !place) return false;
        out->limit[out->nlimits++] =
            (stk_scaling_limit){op, place, (int32_t)stk_json_int(stk_json_get(v, "parts"), 1),
                                stk_json_double(stk_json_get(v, "one"), 0),
                                stk_json_double(stk_json_get(v, "most"), 0)};
    }
    return true;
}

bool stk_scaling_read(const stk_json *root, stk_arena *arena, stk_scaling *out)
{
    const stk_json *v = stk_json_get(root, "scaling"), *points = stk_json_get(v, "points");
    *out = (stk_scaling){0};
    if (!v) return true;
    out->regions = (int32_t)stk_json_int(stk_json_get(v, "regions"), 0);
    out->split = (int32_t)stk_json_int(stk_json_get(v, "split"), 0);
    for (int i = 0; i < FIELDS; i++) {
        double number = stk_json_double(stk_json_get(v, SECONDS[i].name), 0);
        memcpy((char *)out + SECONDS[i].at, &number, sizeof number);
    }
    for (int64_t i = 0; points && i < points->count && i < STK_SCALING_POINTS; i++) {
        const stk_json *p = stk_json_item(points, i);
        out->point[out->npoints++] =
            (stk_scaling_point){(int32_t)stk_json_int(stk_json_get(p, "threads"), 1),
                                stk_json_double(stk_json_get(p, "seconds"), 0),
                                stk_json_double(stk_json_get(p, "memory_seconds"), 0)};
    }
    return read_limits(stk_json_get(v, "limits"), arena, out);
}
