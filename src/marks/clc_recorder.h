/* Regions, markers and metrics of a program's own in what `clc-replay record` records. Nothing has to be linked: without the recorder these calls do
 * nothing and cost a comparison. Names are texts that end in zero, of at most 256 bytes; equal texts are equal names. Any thread may call
 * them, after MPI_Init and before MPI_Finalize (earlier and later calls are not recorded). From C and C++. */
#ifndef CLC_RECORDER_H
#define CLC_RECORDER_H

#if defined(__GNUC__)
/* Not there unless the recorder is. By the global offset table, since a program of fixed addresses would be linked with zeros. */
#define CLC_RECORDER_OPTIONAL __attribute__((weak, noplt))
/* They are no functions of the program's own. */
#define CLC_RECORDER_INLINE static inline __attribute__((no_instrument_function))
#else
#error "clc_recorder.h needs weak symbols: GCC, Clang or a compiler that is compatible with them"
#endif

#ifdef __cplusplus
extern "C" {
#endif

CLC_RECORDER_OPTIONAL void clc_recorder_region_begin(const char *name);
CLC_RECORDER_OPTIONAL void clc_recorder_region_end(const char *name);
CLC_RECORDER_OPTIONAL void clc_recorder_marker(const char *name);
CLC_RECORDER_OPTIONAL void clc_recorder_metric(const char *name, double value);

/* A region begins, and ends: an Enter and a Leave event. Regions of a thread nest. */
CLC_RECORDER_INLINE void clc_region_begin(const char *name)
{
    if (clc_recorder_region_begin)
        clc_recorder_region_begin(name);
}

CLC_RECORDER_INLINE void clc_region_end(const char *name)
{
    if (clc_recorder_region_end)
        clc_recorder_region_end(name);
}

/* Something has happened: a region of no length. */
CLC_RECORDER_INLINE void clc_marker(const char *name)
{
    if (clc_recorder_marker)
        clc_recorder_marker(name);
}

/* The metric has this value from now on: a Metric event. */
CLC_RECORDER_INLINE void clc_metric(const char *name, double value)
{
    if (clc_recorder_metric)
        clc_recorder_metric(name, value);
}

#ifdef __cplusplus
}
#endif

#endif
