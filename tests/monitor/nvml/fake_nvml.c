/* A library in place of NVIDIA's, for tests. What it answers stands in the file that FAKE_NVML names, and is
 * read again at every call:
 *
 *   gpu 0 name NVIDIA A40      a figure of the device in that place; without it, the call is not supported
 *   gpu 0 compute 4711 1024    a process and its bytes; the same for graphics
 *   gpu 0 lost 1               the device has fallen off the bus
 *   hang nvmlDeviceGetName     the call returns when this line is gone
 *   dead 1                     nothing is answered any more, as when the driver is replaced
 *
 * Built with OLD it lacks the calls that drivers of some years ago do. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };
#define LINE 512

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned pid; unsigned long long bytes; unsigned instance, compute_instance; } process_t;
typedef struct { unsigned version, sensor; int celsius; } temperature_t;
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} pci_t;

/* The rest of the nth line that begins so; 0 if there is none. */
static int find(const char *head, int nth, char *rest) {
    char line[LINE];
    size_t length = strlen(head);
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, head, length) == 0 && line[length] == ' ' && nth-- == 0) {
            strcpy(rest, line + length + 1);
            found = 1;
        }
    }
    if (file) fclose(file);
    return found;
}

static int of_gpu(void *handle, const char *key, int nth, char *rest) {
    char head[LINE];
    snprintf(head, sizeof head, "gpu %d %s", (int)(long)handle - 1, key);
    return find(head, nth, rest);
}

static int hangs(const char *call) {
    char rest[LINE];
    for (int nth = 0; find("hang", nth, rest); nth++)
        if (strcmp(rest, call) == 0) return 1;
    return 0;
}

static int before(const char *call) {
    char rest[LINE];
    while (hangs(call)) usleep(5000);
    return find("dead", 0, rest) ? DRIVER_NOT_LOADED : SUCCESS;
}

/* What a call about a device answers, as text. */
static int asked(const char *call, void *handle, const char *key, char *rest) {
    int status = before(call);
    if (status) return status;
    if (of_gpu(handle, "lost", 0, rest)) return GPU_IS_LOST;
    return of_gpu(handle, key, 0, rest) ? SUCCESS : NOT_SUPPORTED;
}

static int number(const char *call, void *handle, const char *key, unsigned long long *value) {
    char rest[LINE];
    int status = asked(call, handle, key, rest);
    if (!status) *value = strtoull(rest, NULL, 10);
    return status;
}

static int small(const char *call, void *handle, const char *key, unsigned *value) {
    unsigned long long large = 0;
    int status = number(call, handle, key, &large);
    if (!status) *value = (unsigned)large;
    return status;
}

static int text(const char *call, void *handle, const char *key, char *value, unsigned size) {
    char rest[LINE];
    int status = asked(call, handle, key, rest);
    if (!status) snprintf(value, size, "%s", rest);
    return status;
}

static int processes(const char *call, void *handle, const char *key, unsigned *count, process_t *list) {
    char rest[LINE];
    int status = before(call);
    unsigned found = 0;
    if (status) return status;
    if (of_gpu(handle, "lost", 0, rest)) return GPU_IS_LOST;
    for (; of_gpu(handle, key, (int)found, rest); found++)
        if (found < *count && list)
            sscanf(rest, "%u %llu", &list[found].pid, &list[found].bytes);
    status = found > *count ? INSUFFICIENT_SIZE : SUCCESS;
    *count = found;
    return status;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return before("nvmlInitWithFlags"); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int status) { (void)status; return "an error"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    char rest[LINE];
    int status = before("nvmlDeviceGetCount_v2");
    for (*count = 0; of_gpu((void *)(long)(*count + 1), "uuid", 0, rest); ++*count) {}
    return status;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    char rest[LINE];
    *handle = (void *)(long)(index + 1);
    return asked("nvmlDeviceGetHandleByIndex_v2", *handle, "uuid", rest);
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned size) {
    return text("nvmlDeviceGetUUID", handle, "uuid", uuid, size);
}

int nvmlDeviceGetName(void *handle, char *name, unsigned size) {
    return text("nvmlDeviceGetName", handle, "name", name, size);
}

int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor) {
    return small("nvmlDeviceGetMinorNumber", handle, "minor", minor);
}

int nvmlDeviceGetPciInfo_v3(void *handle, pci_t *info) {
    memset(info, 0, sizeof *info);
    return text("nvmlDeviceGetPciInfo_v3", handle, "bus", info->bus_id, sizeof info->bus_id);
}

int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    memset(memory, 0, sizeof *memory);
    number("nvmlDeviceGetMemoryInfo", handle, "used", &memory->used);
    return number("nvmlDeviceGetMemoryInfo", handle, "total", &memory->total);
}

int nvmlDeviceGetUtilizationRates(void *handle, utilization_t *utilization) {
    utilization->memory = 0;
    return small("nvmlDeviceGetUtilizationRates", handle, "busy", &utilization->gpu);
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) {
    return small("nvmlDeviceGetPowerUsage", handle, "milliwatts", milliwatts);
}

int nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *celsius) {
    (void)sensor;
    return small("nvmlDeviceGetTemperature", handle, "celsius", celsius);
}

int nvmlDeviceGetComputeRunningProcesses_v2(void *handle, unsigned *count, process_t *list) {
    return processes("nvmlDeviceGetComputeRunningProcesses_v2", handle, "compute", count, list);
}

#ifndef OLD
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_t *list) {
    return processes("nvmlDeviceGetComputeRunningProcesses_v3", handle, "compute", count, list);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *count, process_t *list) {
    return processes("nvmlDeviceGetGraphicsRunningProcesses_v3", handle, "graphics", count, list);
}

int nvmlDeviceGetTemperatureV(void *handle, temperature_t *temperature) {
    unsigned celsius = 0;
    int status = small("nvmlDeviceGetTemperatureV", handle, "celsius", &celsius);
    temperature->celsius = (int)celsius;
    return status;
}

int nvmlDeviceGetTotalEccErrors(void *handle, unsigned type, unsigned counter, unsigned long long *errors) {
    if (type != 1 || counter != 1) return INVALID; /* uncorrected, in all */
    return number("nvmlDeviceGetTotalEccErrors", handle, "errors", errors);
}

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    *pending = 0;
    return small("nvmlDeviceGetMigMode", handle, "mig", current);
}
#endif
