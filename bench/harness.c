// See harness.h. The sampling rule, in the order it happens:
//
//   calibrate   double the iteration count until a run fills half a slice; one that is far longer is left at once
//   warm up     run slices until two in a row agree within 3 %, or a quarter of the time is used
//   measure     one sample per slice until the time is used (at least MIN_SLICES)
//   extend      while (p90 - p10) / median is above 10 %, up to twice the time: a disturbed
//               machine gets a chance to calm down, and the spread is reported in any case
//
// Where one iteration is as long as the time, FEW_SLICES are enough.
#define _GNU_SOURCE
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double SLICE_SECONDS = 0.010;
static const double WARM_AGREEMENT = 0.03;
static const double STABLE_SPREAD = 0.10;
enum { MIN_SLICES = 5, FEW_SLICES = 3, LONG = 20, MAX_NOTES = 32, NOTE_TEXT = 640 };

typedef struct note {
    char key[32];
    char json[NOTE_TEXT]; // the value as it stands in the line, quotes included
} note;

static note notes[MAX_NOTES];
static int note_count;

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_peak_rss_mb(void)
{
    // VmHWM and not getrusage(): ru_maxrss survives exec and would count the caller's memory.
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    double kb = 0;
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "VmHWM:", 6) == 0) kb = strtod(line + 6, NULL);
    }
    if (status) fclose(status);
    return kb / 1024.0;
}

static note *next_note(const char *key)
{
    if (note_count == MAX_NOTES) return NULL;
    note *n = &notes[note_count++];
    snprintf(n->key, sizeof n->key, "%s", key);
    return n;
}

void bench_note_number(const char *key, double number)
{
    note *n = next_note(key);
    if (!n) return;
    // JSON has no inf and nan.
    if (isfinite(number))
        snprintf(n->json, sizeof n->json, "%.9g", number);
    else
        snprintf(n->json, sizeof n->json, "null");
}

void bench_note_text(const char *key, const char *text)
{
    note *n = next_note(key);
    if (!n) return;
    size_t at = 0;
    n->json[at++] = '"';
    for (; *text && at + 4 < sizeof n->json; text++) {
        if (*text == '"' || *text == '\\') n->json[at++] = '\\';
        n->json[at++] = (unsigned char)*text < 0x20 ? ' ' : *text;
    }
    n->json[at++] = '"';
    n->json[at] = '\0';
}

void bench_note_numbers(const char *key, int count, const double *numbers)
{
    note *n = next_note(key);
    if (!n) return;
    size_t at = 0;
    for (int i = 0; i < count && at + 32 < sizeof n->json; i++)
        at += (size_t)snprintf(n->json + at, sizeof n->json - at, "%s%.12g", i ? ", " : "[",
                               isfinite(numbers[i]) ? numbers[i] : 0);
    snprintf(n->json + at, sizeof n->json - at, "]");
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int count, double q)
{
    double at = q * (count - 1);
    int low = (int)at;
    int high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

bench_summary bench_summarize(const bench_samples *samples)
{
    bench_summary s = {0, 0, 0, 0};
    if (samples->count == 0) return s;
    double sorted[BENCH_MAX_SAMPLES];
    memcpy(sorted, samples->value, sizeof(double) * (size_t)samples->count);
    qsort(sorted, (size_t)samples->count, sizeof(double), compare_double);
    s.best = sorted[0];
    s.p10 = quantile(sorted, samples->count, 0.10);
    s.median = quantile(sorted, samples->count, 0.50);
    s.p90 = quantile(sorted, samples->count, 0.90);
    return s;
}

typedef struct timed {
    int (*run)(void *state, int64_t iterations);
    void *state;
    int64_t iterations;
    double seconds; // of the last slice
} timed;

static int run_slice(timed *t)
{
    double start = bench_now();
    int failed = t->run(t->state, t->iterations);
    t->seconds = bench_now() - start;
    return failed;
}

// The shortest of three slices: the first one prepares things, any may be put aside by the system. One
// that is too long would leave a single iteration between two looks at the clock.
static int run_shortest(timed *t)
{
    double shortest = HUGE_VAL;
    for (int i = 0; i < 3; i++) {
        if (run_slice(t)) return 1;
        shortest = fmin(shortest, t->seconds);
    }
    t->seconds = shortest;
    return 0;
}

static int calibrate(timed *t, double slice)
{
    t->iterations = 1;
    for (;;) {
        if (run_slice(t)) return 1;
        if (t->seconds >= LONG * slice && t->iterations == 1) return 0;
        if (t->seconds >= slice / 2) {
            if (run_shortest(t)) return 1;
            if (t->seconds >= slice / 2) break;
        }
        t->iterations *= 2;
    }
    double fitting = (double)t->iterations * slice / t->seconds;
    t->iterations = fitting < 1 ? 1 : (int64_t)fitting;
    return 0;
}

static int warm_up(timed *t, double seconds)
{
    double end = bench_now() + seconds, last = 0;
    do {
        if (run_slice(t)) return 1;
        if (last > 0 && fabs(t->seconds - last) < WARM_AGREEMENT * last) return 0;
        last = t->seconds;
    } while (bench_now() < end);
    return 0;
}

int bench_time_slices(int (*run)(void *, int64_t), void *state, double seconds, bench_samples *out)
{
    timed t = {.run = run, .state = state};
    // Twice the time must fit the array, also when slices come out somewhat short.
    double slice = fmax(SLICE_SECONDS, 2.5 * seconds / BENCH_MAX_SAMPLES);
    out->count = 0;
    if (calibrate(&t, slice) || warm_up(&t, seconds / 4)) return 1;
    double start = bench_now();
    while (out->count < BENCH_MAX_SAMPLES) {
        if (run_slice(&t)) return 1;
        out->value[out->count++] = t.seconds / (double)t.iterations;
        double used = bench_now() - start;
        bool few = out->count >= FEW_SLICES && used > 2 * seconds;
        if (!few && (out->count < MIN_SLICES || used < seconds)) continue;
        bench_summary s = bench_summarize(out);
        if (used > 2 * seconds || s.p90 - s.p10 < STABLE_SPREAD * s.median) break;
    }
    return 0;
}

static const bench_row *current;

static double unit_per_second(const char *unit)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].name, unit) == 0) return units[i].factor;
    }
    return 1;
}

void bench_note_seconds(const char *key, double seconds)
{
    bench_note_number(key, seconds * unit_per_second(current->unit));
}

static void print_line(const bench_row *row, const bench_options *options, bench_samples *samples,
                       double factor)
{
    for (int i = 0; i < samples->count; i++) samples->value[i] *= factor;
    bench_summary s = bench_summarize(samples);
    printf("{\"row\": \"%s\", \"unit\": \"%s\", \"threads\": %d, ", row->name, row->unit,
           options->threads);
    printf("\"median\": %.6g, \"p10\": %.6g, \"p90\": %.6g, ", s.median, s.p10, s.p90);
    for (int i = 0; i < note_count; i++) printf("\"%s\": %s, ", notes[i].key, notes[i].json);
    printf("\"samples\": [");
    for (int i = 0; i < samples->count; i++) printf("%s%.6g", i ? ", " : "", samples->value[i]);
    printf("]}\n");
}

static int measure_row(const bench_row *row, const bench_options *options)
{
    static bench_samples samples;
    current = row;
    if (row->value) {
        samples.count = 1;
        if (row->value(options, &samples.value[0])) return 1;
        print_line(row, options, &samples, 1);
        return 0;
    }
    void *state = NULL;
    if (row->setup && row->setup(options, &state)) return 1;
    int failed = bench_time_slices(row->run, state, options->seconds, &samples);
    if (!failed && row->finish) failed = row->finish(state);
    if (!failed) print_line(row, options, &samples, unit_per_second(row->unit));
    if (row->teardown) row->teardown(state);
    return failed ? 1 : 0;
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s --row NAME [--seconds S] [--threads T] | --list\n", program);
    return 2;
}

static int parse(int argc, char **argv, bench_options *options)
{
    *options = (bench_options){.row = NULL, .seconds = 1.0, .threads = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) continue;
        if (i + 1 == argc) return usage(argv[0]);
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--row") == 0)
            options->row = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            options->seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--threads") == 0)
            options->threads = (int)strtol(value, NULL, 10);
        else
            return usage(argv[0]);
        i++;
    }
    bool sane = options->seconds > 0 && options->seconds < 3600 && options->threads >= 1;
    return sane ? 0 : usage(argv[0]);
}

int bench_main(int argc, char **argv, const bench_row *rows, size_t row_count)
{
    bench_options options;
    int wrong = parse(argc, argv, &options);
    if (wrong) return wrong;
    for (size_t i = 0; i < row_count; i++) {
        if (!options.row)
            printf("%s\n", rows[i].name);
        else if (strcmp(rows[i].name, options.row) == 0)
            return measure_row(&rows[i], &options);
    }
    if (!options.row) return 0;
    fprintf(stderr, "%s: no row \"%s\"; --list names them\n", argv[0], options.row);
    return 3;
}
