/* JPEG files, and whatever comes of them. */
#include "fuzz/picture.h"
