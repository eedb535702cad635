/* shapes.c - a data set without a download: learnable, but not by looking at single pixels. */
#include "shapes.h"

#include <math.h>

typedef struct dice {
    uint64_t state;
} dice;

static double roll(dice *d) /* [0, 1) */
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double between(dice *d, double low, double high) { return low + (high - low) * roll(d); }

typedef struct stroke {
    double x0, y0, x1, y1;
} stroke;

/* The seven segments, in a box from (-1, -2) to (1, 2), and which of them each digit lights. */
static const stroke segments[7] = {{-1, -2, 1, -2}, {1, -2, 1, 0},   {1, 0, 1, 2}, {-1, 2, 1, 2},
                                   {-1, 0, -1, 2},  {-1, -2, -1, 0}, {-1, 0, 1, 0}};
static const unsigned char lit[SHAPE_CLASSES] = {0x3f, 0x06, 0x5b, 0x4f, 0x66,
                                                 0x6d, 0x7d, 0x07, 0x7f, 0x6f};

static double distance(const stroke *s, double x, double y)
{
    double dx = s->x1 - s->x0, dy = s->y1 - s->y0;
    double t = ((x - s->x0) * dx + (y - s->y0) * dy) / (dx * dx + dy * dy + 1e-9);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypot(x - s->x0 - t * dx, y - s->y0 - t * dy);
}

/* The digit's strokes in pixels, moved by a random affine map, and a stray one. */
static int place(dice *d, int digit, stroke *out)
{
    double angle = between(d, -0.25, 0.25), shear = between(d, -0.2, 0.2);
    double sx = between(d, 3.0, 5.0), sy = between(d, 3.0, 4.6);
    double cx = SHAPE_SIDE / 2.0 + between(d, -3, 3), cy = SHAPE_SIDE / 2.0 + between(d, -2, 2);
    double c = cos(angle), s = sin(angle);
    int n = 0;
    for (int i = 0; i < 7; i++) {
        if (!(lit[digit] >> i & 1)) continue;
        const stroke *g = &segments[i];
        double x0 = sx * (g->x0 + shear * g->y0), y0 = sy * g->y0;
        double x1 = sx * (g->x1 + shear * g->y1), y1 = sy * g->y1;
        out[n++] = (stroke){cx + c * x0 - s * y0, cy + s * x0 + c * y0, cx + c * x1 - s * y1,
                            cy + s * x1 + c * y1};
    }
    double x = between(d, 0, SHAPE_SIDE), y = between(d, 0, SHAPE_SIDE);
    out[n++] = (stroke){x, y, x + between(d, -3, 3), y + between(d, -3, 3)};
    return n;
}

static void paint(dice *d, int digit, unsigned char *pixels)
{
    stroke strokes[8];
    int n = place(d, digit, strokes);
    double width = between(d, 0.7, 1.5), ink = between(d, 130, 240), paper = between(d, 0, 60);
    for (int y = 0; y < SHAPE_SIDE; y++)
        for (int x = 0; x < SHAPE_SIDE; x++) {
            double nearest = 1e9;
            for (int i = 0; i < n; i++)
                nearest = fmin(nearest, distance(&strokes[i], x + 0.5, y + 0.5));
            double cover = fmin(1, fmax(0, width + 0.5 - nearest));
            double noise = (roll(d) + roll(d) + roll(d) - 1.5) * 70;
            double value = paper + (ink - paper) * cover + noise;
            pixels[y * SHAPE_SIDE + x] = (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
}

stk_status cli_make_shapes(int64_t rows, uint64_t seed, stk_tensor **x, stk_tensor **y,
                           stk_error *err)
{
    stk_status status =
        stk_tensor_new(STK_U8, 4, (int64_t[]){rows, SHAPE_SIDE, SHAPE_SIDE, 1}, x, err);
    if (status == STK_OK) status = stk_tensor_new(STK_I32, 1, &rows, y, err);
    if (status != STK_OK) return status;
    dice d = {seed};
    for (int64_t i = 0; i < rows; i++) {
        int digit = (int)(roll(&d) * SHAPE_CLASSES);
        ((int32_t *)(*y)->data)[i] = digit;
        paint(&d, digit, (unsigned char *)(*x)->data + i * SHAPE_SIDE * SHAPE_SIDE);
    }
    return STK_OK;
}

void cli_draw_shape(FILE *out, const unsigned char *pixels, int line)
{
    for (int x = 0; x < SHAPE_SIDE; x++) {
        int both = pixels[2 * line * SHAPE_SIDE + x] + pixels[(2 * line + 1) * SHAPE_SIDE + x];
        fputc(" .:-=+*#%@"[both * 9 / 510], out);
    }
}
