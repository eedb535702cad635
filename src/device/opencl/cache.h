/* cache.h - where compiled programs are kept, below the cache folder (base/cache_path.h). */
#ifndef STK_DEVICE_OPENCL_CACHE_H
#define STK_DEVICE_OPENCL_CACHE_H

#define STK_CL_CACHE "opencl"

#endif
