/* Pictures of another size: Resizing and CenterCrop. */
#include "layers/kinds/image.h"
#include "stoker/image.h"

static const stk_resize_kind kinds[] = {STK_RESIZE_NEAREST,  STK_RESIZE_BILINEAR,
                                        STK_RESIZE_BICUBIC,  STK_RESIZE_LANCZOS3,
                                        STK_RESIZE_LANCZOS5, STK_RESIZE_AREA};
#define KINDS "nearest|bilinear|bicubic|lanczos3|lanczos5|area"

typedef struct resizing {
    int64_t height, width;
    int32_t interpolation, data_format;
    bool crop_to_aspect_ratio, pad_to_aspect_ratio, antialias;
    const char *fill_mode;
    double fill_value;
} resizing;

/* The middle of a picture that has the shape of the result. */
static stk_val middle(stk_graph *g, stk_val x, int64_t height, int64_t width)
{
    int64_t h = stk_g_dim(g, x, -3), w = stk_g_dim(g, x, -2);
    int64_t crop_h = w * height / width, crop_w = h * width / height;
    if (crop_h > h) crop_h = h;
    if (crop_w > w) crop_w = w;
    return stk_g_image_crop(g, x, (h - crop_h) / 2, (w - crop_w) / 2, crop_h, crop_w);
}

static stk_val picture(stk_layer_call *c, int32_t format)
{
    if (!stk_c_rank(c, 0, 4, 4)) return 0;
    return stk_image_last(c->g, stk_g_cast(c->g, c->x[0], c->compute), format);
}

static void call_resizing(stk_layer_call *c)
{
    const resizing *o = c->config;
    stk_val x = picture(c, o->data_format);
    if (!x) return;
    if (o->pad_to_aspect_ratio) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED, "pad_to_aspect_ratio; crop_to_aspect_ratio is possible");
        return;
    }
    if (o->crop_to_aspect_ratio) x = middle(c->g, x, o->height, o->width);
    x = stk_g_image_resize(c->g, x, o->height, o->width, kinds[o->interpolation], o->antialias);
    c->y[0] = stk_image_back(c->g, x, o->data_format);
}
static const stk_config_field resizing_fields[] = {
    STK_FIELD(resizing, height, INT, NULL, .low = 1),
    STK_FIELD(resizing, width, INT, NULL, .low = 1),
    STK_FIELD(resizing, interpolation, CHOICE, "bilinear", .choices = KINDS),
    STK_FIELD(resizing, crop_to_aspect_ratio, BOOL, "False"),
    STK_FIELD(resizing, pad_to_aspect_ratio, BOOL, "False"),
    STK_FIELD(resizing, fill_mode, TEXT, "constant"),
    STK_FIELD(resizing, fill_value, REAL, "0"),
    STK_FIELD(resizing, antialias, BOOL, "False"),
    STK_FIELD_FORMAT(resizing),
};
const stk_layer_def stk_layer_resizing = {.keras_class = "Resizing",
                                          .fields = STK_FIELDS(resizing, resizing_fields),
                                          .keeps_dtype = true,
                                          .call = call_resizing};

/* ---- CenterCrop: too small a picture is enlarged first ------------------------------------------------------------------- */

static void call_center_crop(stk_layer_call *c)
{
    const resizing *o = c->config;
    stk_val x = picture(c, o->data_format);
    if (!x) return;
    int64_t high = stk_g_dim(c->g, x, 1) - o->height, wide = stk_g_dim(c->g, x, 2) - o->width;
    if (high >= 0 && wide >= 0)
        x = stk_g_image_crop(c->g, x, high / 2, wide / 2, o->height, o->width);
    else
        x = stk_g_image_resize(c->g, middle(c->g, x, o->height, o->width), o->height, o->width,
                               STK_RESIZE_BILINEAR, false);
    c->y[0] = stk_image_back(c->g, x, o->data_format);
}
static const stk_config_field center_crop_fields[] = {
    STK_FIELD(resizing, height, INT, NULL, .low = 1),
    STK_FIELD(resizing, width, INT, NULL, .low = 1),
    STK_FIELD_FORMAT(resizing),
};
const stk_layer_def stk_layer_center_crop = {.keras_class = "CenterCrop",
                                             .fields = STK_FIELDS(resizing, center_crop_fields),
                                             .keeps_dtype = true,
                                             .call = call_center_crop};
