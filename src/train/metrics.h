/* metrics.h (internal) - metrics inside. */
#ifndef STK_TRAIN_METRICS_H
#define STK_TRAIN_METRICS_H

#include "stoker/metrics.h"
#include "train/losses.h"

#endif
